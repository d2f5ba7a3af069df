"""deltaic.write: modes, a definition that must match that of the table, schemas, races, and what a failed
write leaves behind."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltaic
from deltaic import CommitOptions, DeltaTable, ParquetOptions
from deltaic.errors import (
    ConstraintViolationError,
    InvalidArgumentError,
    InvalidTypeError,
    SchemaMismatchError,
    TableAlreadyExistsError,
)


def rows(table: DeltaTable) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = table.scan().to_arrow().to_pylist()
    return sorted(found, key=lambda row: row.get("id", 0))


def ids(table: DeltaTable) -> list[int]:
    return sorted(table.scan(["id"]).to_arrow()["id"].to_pylist())


def data_files(folder: Path) -> list[str]:
    return sorted(
        str(path.relative_to(folder)) for path in folder.rglob("*.parquet") if "_delta_log" not in path.parts
    )


def batch(*values: int, **columns: Any) -> pa.Table:
    return pa.table({"id": pa.array(values, pa.int64()), **columns})


def test_the_first_write_makes_the_table(tmp_path: Path) -> None:
    table = deltaic.write(
        tmp_path / "t", batch(1, 2), name="n", description="d", properties={"delta.appendOnly": True}
    )
    assert (table.version, ids(table)) == (0, [1, 2])
    assert (table.metadata.name, table.metadata.description) == ("n", "d")
    assert table.metadata.configuration == {"delta.appendOnly": "true", "delta.enableDeletionVectors": "true"}
    info = table.history()[0]
    assert (info["operation"], info["operationParameters"]) == (
        "WRITE",
        {"mode": "ErrorIfExists", "partitionBy": "[]"},
    )
    assert info["operationMetrics"]["numFiles"] == "1"
    assert info["operationMetrics"]["numOutputRows"] == "2"
    assert (
        int(info["operationMetrics"]["numOutputBytes"])
        == (tmp_path / "t" / data_files(tmp_path / "t")[0]).stat().st_size
    )


def test_modes_on_a_table_that_is_there(tmp_path: Path) -> None:
    path = tmp_path / "t"
    deltaic.write(path, batch(1))
    with pytest.raises(TableAlreadyExistsError):
        deltaic.write(path, batch(2))
    assert deltaic.write(path, batch(2), mode="ignore").version == 0
    assert ids(deltaic.write(path, batch(2), mode="append")) == [1, 2]
    overwritten = deltaic.write(path, batch(3), mode="overwrite")
    assert ids(overwritten) == [3]
    assert overwritten.history()[0]["operationMetrics"]["numRemovedFiles"] == "2"
    assert ids(overwritten.at(1)) == [1, 2]
    assert len(data_files(path)) == 3


def test_a_table_object_moves_to_its_own_commit(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path, batch(1))
    other = DeltaTable(tmp_path)
    assert deltaic.write(table, batch(2), mode="append") is table
    assert (table.version, other.version) == (1, 0)
    other.refresh()
    assert other.version == 1
    with pytest.raises(InvalidArgumentError, match="storage_options"):
        deltaic.write(table, batch(2), mode="append", storage_options={})


def test_a_write_that_changes_nothing_commits_nothing(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path, batch(1))
    for arguments in (
        {"mode": "append"},
        {"mode": "overwrite", "where": "id = 7"},
        {"mode": "append", "schema_mode": "merge"},
    ):
        assert deltaic.write(table, batch(), **arguments).version == 0
    assert (
        deltaic.write(table, batch(), mode="append", commit=CommitOptions(transactions={"app": 1})).version
        == 1
    )
    assert (
        deltaic.write(table, batch(x=pa.array([], pa.int64())), mode="append", schema_mode="merge").version
        == 2
    )
    assert deltaic.write(table, batch(), mode="overwrite").version == 3
    assert deltaic.write(table, batch(), mode="overwrite").version == 3


def test_data_must_have_the_partition_columns(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path, batch(1, p=[1], v=[1]), partition_by="p")
    for arguments in ({"mode": "append"}, {"mode": "append", "schema_mode": "merge"}, {"mode": "overwrite"}):
        with pytest.raises(SchemaMismatchError, match="lacks a partition column; found id, v; expected p"):
            deltaic.write(table, batch(2, v=[2]), **arguments)
    deltaic.write(table, batch(2, p=[2]), mode="append")
    assert rows(table) == [{"id": 1, "p": 1, "v": 1}, {"id": 2, "p": 2, "v": None}]
    deltaic.sql("INSERT INTO t (id) VALUES (3)", tables={"t": table})
    assert rows(table)[2] == {"id": 3, "p": None, "v": None}
    deltaic.sql(
        "ALTER TABLE t SET TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')",
        tables={"t": table},
    )
    deltaic.sql("ALTER TABLE t ALTER COLUMN p SET DEFAULT 9", tables={"t": table})
    deltaic.write(table, batch(4), mode="append")
    assert rows(table)[3] == {"id": 4, "p": 9, "v": None}


@pytest.mark.parametrize(
    "arguments",
    [
        {"mode": "replace"},
        {"mode": "append", "where": "id = 1"},
        {"mode": "append", "schema_mode": "overwrite"},
        {"mode": "overwrite", "schema_mode": "overwrite", "where": "id = 1"},
        {"mode": "append", "schema_mode": "evolve"},
        {"mode": "append", "target_file_size": 0},
        {"mode": "append", "properties": {"delta.noSuchProperty": "1"}},
        {
            "mode": "append",
            "parquet": ParquetOptions(columns={"nowhere": deltaic.ColumnOptions(dictionary=True)}),
        },
    ],
)
def test_arguments_that_contradict(tmp_path: Path, arguments: dict[str, Any]) -> None:
    deltaic.write(tmp_path, batch(1))
    with pytest.raises(InvalidArgumentError):
        deltaic.write(tmp_path, batch(2), **arguments)
    assert ids(DeltaTable(tmp_path)) == [1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"partition_by": ["id"]}, r"partition_by differs.*found \['id'\]; expected \['month'\]"),
        ({"partition_by": []}, r"partition_by differs.*found \[\]; expected \['month'\]"),
        ({"name": "b"}, "name differs.*found 'b'; expected 'a'"),
        ({"description": "b"}, "description differs.*found 'b'; expected None"),
        ({"properties": {"delta.appendOnly": "true"}}, r"delta\.appendOnly differs"),
        ({"properties": {"mine": "2"}}, "mine differs.*found '2'; expected '1'"),
        ({"properties": {"delta.minReaderVersion": 3}}, r"minReaderVersion differs.*found 3; expected 1"),
        ({"properties": {"delta.feature.deletionVectors": "supported"}}, "feature deletionVectors differs"),
    ],
)
def test_what_is_said_of_a_table_must_agree_with_it(
    tmp_path: Path, arguments: dict[str, Any], message: str
) -> None:
    properties = {"mine": "1", "delta.enableDeletionVectors": "false"}
    data = batch(1, month=["1"])
    deltaic.write(tmp_path, data, partition_by="month", name="a", properties=properties)
    with pytest.raises(InvalidArgumentError, match=message):
        deltaic.write(tmp_path, data, mode="append", **arguments)
    agreeing = {
        "mine": "1",
        "delta.checkpointInterval": 10,
        "delta.minReaderVersion": 1,
        "delta.minWriterVersion": 2,
    }
    assert (
        deltaic.write(
            tmp_path, data, mode="append", partition_by="MONTH", name="a", properties=agreeing
        ).version
        == 1
    )


# --- schemas


def test_columns_match_by_name_without_case_in_any_order(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path, pa.table({"id": pa.array([1], pa.int64()), "Name": ["a"]}))
    deltaic.write(table, pa.table({"NAME": ["b"], "ID": pa.array([2], pa.int32())}), mode="append")
    deltaic.write(table, batch(3), mode="append")
    assert rows(table) == [{"id": 1, "Name": "a"}, {"id": 2, "Name": "b"}, {"id": 3, "Name": None}]
    assert table.schema.names == ["id", "Name"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (pa.table({"id": pa.array([1], pa.int64()), "extra": [1]}), "extra"),
        (pa.table({"id": [[1, 2]]}), "id"),
        (pa.table({"id": pa.array([300], pa.int64()), "small": pa.array([300], pa.int64())}), "small"),
        (pa.table({"id": pa.array([1], pa.int64()), "amount": [Decimal("123456.78")]}), "amount"),
    ],
)
def test_data_that_does_not_fit_names_the_column_and_leaves_nothing(
    tmp_path: Path, data: pa.Table, message: str
) -> None:
    table = DeltaTable.create(tmp_path, "id bigint, small tinyint, amount decimal(6,2)")
    with pytest.raises(SchemaMismatchError, match=message):
        deltaic.write(table, data, mode="append")
    assert table.refresh() is None
    assert (table.version, data_files(tmp_path)) == (0, [])


def test_schema_mode_merge_adds_columns_and_fields(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path, pa.table({"id": pa.array([1], pa.int64()), "s": [{"a": 1}]}))
    new = pa.table({"id": pa.array([2], pa.int64()), "s": [{"a": 2, "b": "x"}], "extra": [1.5]})
    with pytest.raises(SchemaMismatchError):
        deltaic.write(table, new, mode="append")
    deltaic.write(table, new, mode="append", schema_mode="merge")
    assert rows(table) == [
        {"id": 1, "s": {"a": 1, "b": None}, "extra": None},
        {"id": 2, "s": {"a": 2, "b": "x"}, "extra": 1.5},
    ]
    assert rows(table.at(0)) == [{"id": 1, "s": {"a": 1}}]


def test_schema_mode_overwrite_replaces_the_definition(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path, batch(1, month=["1"]), partition_by="month", name="old")
    identity = table.metadata.id
    new = pa.table({"word": ["x"], "day": ["d"]})
    deltaic.write(table, new, mode="overwrite", schema_mode="overwrite", partition_by=["day"], name="new")
    assert table.schema.names == ["word", "day"]
    assert table.metadata.partition_columns == ("day",)
    assert (table.metadata.name, table.metadata.id) == ("new", identity)
    assert rows(table) == [{"word": "x", "day": "d"}]
    assert rows(table.at(0)) == [{"id": 1, "month": "1"}]


def test_not_null_is_checked(tmp_path: Path) -> None:
    table = DeltaTable.create(tmp_path, "id bigint not null, name string")
    with pytest.raises(ConstraintViolationError, match="id"):
        deltaic.write(table, pa.table({"id": pa.array([1, None], pa.int64())}), mode="append")
    with pytest.raises(SchemaMismatchError, match="id"):
        deltaic.write(table, pa.table({"name": ["a"]}), mode="append")
    assert data_files(tmp_path) == []
    assert ids(deltaic.write(table, batch(1), mode="append")) == [1]


def test_invariants_are_checked(tmp_path: Path) -> None:
    field = deltaic.Field("id", "long", True, {"delta.invariants": '{"expression":{"expression":"id > 3"}}'})
    table = DeltaTable.create(tmp_path, deltaic.Schema([field, deltaic.Field("name", "string")]))
    for bad in (batch(3, 4), pa.table({"id": pa.array([None], pa.int64())})):
        with pytest.raises(ConstraintViolationError, match="id > 3"):
            deltaic.write(table, bad, mode="append")
    assert data_files(tmp_path) == []
    assert ids(deltaic.write(table, batch(4, 5), mode="append")) == [4, 5]


# --- overwrite a part


def months(*pairs: tuple[int, str | None]) -> pa.Table:
    return pa.table(
        {
            "id": pa.array([pair[0] for pair in pairs], pa.int64()),
            "month": pa.array([pair[1] for pair in pairs], pa.string()),
        }
    )


@pytest.mark.parametrize("vectors", ["true", "false"])
@pytest.mark.parametrize("partition_by", [None, "month"])
def test_overwrite_where(tmp_path: Path, vectors: str, partition_by: str | None) -> None:
    table = deltaic.write(
        tmp_path,
        months((1, "a"), (2, "a"), (3, "b"), (4, None)),
        partition_by=partition_by,
        properties={"delta.enableDeletionVectors": vectors},
    )
    deltaic.write(table, months((5, "a")), mode="overwrite", where="month = 'a'")
    assert rows(table) == rows_of((3, "b"), (4, None), (5, "a"))
    info = table.history()[0]
    assert info["operationParameters"]["predicate"] == "month = 'a'"
    deltaic.write(table, months(), mode="overwrite", where="month is null")
    assert rows(table) == rows_of((3, "b"), (5, "a"))


def rows_of(*pairs: tuple[int, str | None]) -> list[dict[str, Any]]:
    return [{"id": number, "month": month} for number, month in sorted(pairs)]


def test_overwrite_where_on_data_columns(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path, months(*((number, "a") for number in range(10))))
    deltaic.write(table, months((100, "z")), mode="overwrite", where="id >= 5")
    assert ids(table) == [0, 1, 2, 3, 4, 100]


@pytest.mark.parametrize("bad", [(9, "b"), (9, None)])
def test_every_new_row_must_match_the_where(tmp_path: Path, bad: tuple[int, str | None]) -> None:
    table = deltaic.write(tmp_path, months((1, "a"), (2, "b")))
    before = data_files(tmp_path)
    with pytest.raises(ConstraintViolationError, match="month = 'a'"):
        deltaic.write(table, months((8, "a"), bad), mode="overwrite", where="month = 'a'")
    assert rows(table) == rows_of((1, "a"), (2, "b"))
    assert data_files(tmp_path) == before


def test_overwrite_partitions(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path, months((1, "a"), (2, "b"), (3, None), (4, "c d/e")), partition_by="month")
    deltaic.write(table, months((5, "a"), (6, None)), mode="overwrite_partitions")
    assert rows(table) == rows_of((2, "b"), (4, "c d/e"), (5, "a"), (6, None))
    assert table.history()[0]["operationParameters"]["isDynamicPartitionOverwrite"] is True
    deltaic.write(table, months((7, "c d/e")), mode="overwrite_partitions")
    deltaic.write(table, months(), mode="overwrite_partitions")
    assert rows(table) == rows_of((2, "b"), (5, "a"), (6, None), (7, "c d/e"))


def test_overwrite_partitions_compares_values_not_texts(tmp_path: Path) -> None:
    def data(number: int, day: str) -> pa.Table:
        return pa.table({"id": pa.array([number], pa.int64()), "amount": [Decimal(day)], "ok": [True]})

    table = deltaic.write(tmp_path, data(1, "1.50"), partition_by=["amount", "ok"])
    deltaic.write(table, data(2, "2.50"), mode="append")
    deltaic.write(table, data(3, "1.5"), mode="overwrite_partitions")
    assert ids(table) == [2, 3]


def test_overwrite_partitions_needs_partitions(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path, batch(1))
    with pytest.raises(InvalidArgumentError, match="partitioned table"):
        deltaic.write(table, batch(2), mode="overwrite_partitions")
    assert len(data_files(tmp_path)) == 1


# --- what data may be


def test_sources(tmp_path: Path) -> None:
    pandas, polars, duckdb = (
        pytest.importorskip("pandas"),
        pytest.importorskip("polars"),
        pytest.importorskip("duckdb"),
    )
    table = DeltaTable.create(tmp_path, "id bigint")
    sources: list[Any] = [
        batch(0),
        batch(1).to_batches()[0],
        batch(2).to_reader(),
        pandas.DataFrame({"id": [3]}),
        polars.DataFrame({"id": [4]}),
        polars.LazyFrame({"id": [5]}),
        duckdb.sql("select 6::bigint as id"),
        (piece for piece in batch(7).to_batches()),
        [*batch(8).to_batches(), *batch(9).to_batches()],
    ]
    for source in sources:
        deltaic.write(table, source, mode="append")
    assert ids(table) == list(range(10))
    deltaic.write(table, table.scan(where="id < 2"), mode="append")
    assert ids(table)[:4] == [0, 0, 1, 1]


@pytest.mark.parametrize("source", [None, 5, "text", {"id": 1}])
def test_what_holds_no_rows_is_refused(tmp_path: Path, source: Any) -> None:
    with pytest.raises((InvalidTypeError, InvalidArgumentError)):
        deltaic.write(tmp_path, source)
    assert not DeltaTable.exists(tmp_path)


def test_a_source_that_fails_leaves_nothing(tmp_path: Path) -> None:
    table = DeltaTable.create(tmp_path, "id bigint")

    def failing() -> Iterator[pa.RecordBatch]:
        yield from batch(*range(100)).to_batches()
        raise RuntimeError("the source broke")

    with pytest.raises(RuntimeError, match="the source broke"):
        deltaic.write(table, failing(), mode="append", target_file_size=1)
    assert data_files(tmp_path) == []
    assert DeltaTable(tmp_path).version == 0


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (
            pa.record_batch({"id": pa.array([1.5])}),
            "column id of batch 1 has another type than in the first; found double; expected int64",
        ),
        (pa.record_batch({"id": ["x"]}), "column id of batch 1"),
        (
            pa.record_batch({"other": pa.array([1], pa.int64())}),
            "batch 1 has other columns than the first; found other; expected id",
        ),
        (pa.record_batch({"id": pa.array([1], pa.int64()), "more": ["x"]}), "batch 1 has other columns"),
    ],
)
def test_batches_that_differ_are_refused(tmp_path: Path, second: pa.RecordBatch, message: str) -> None:
    """An Arrow stream declares its schema once: a batch of another schema would be misread."""
    with pytest.raises(SchemaMismatchError, match=message):
        deltaic.write(tmp_path / "t", [batch(1).to_batches()[0], second])
    assert not DeltaTable.exists(tmp_path / "t")
    assert list(tmp_path.rglob("*.parquet")) == []


def test_batches_whose_columns_come_in_another_order(tmp_path: Path) -> None:
    first = pa.record_batch({"id": pa.array([1], pa.int64()), "n": pa.array([10], pa.int64())})
    table = deltaic.write(tmp_path, iter([first, first.select(["n", "id"])]))
    assert table.scan().to_arrow().to_pylist() == [{"id": 1, "n": 10}] * 2


def test_a_stream_is_not_gathered_first(tmp_path: Path) -> None:
    """A million rows in 16 batches: when the last is made, files of the first are there."""
    seen: list[int] = []

    def batches() -> Iterator[pa.RecordBatch]:
        for number in range(16):
            seen.append(len(list(tmp_path.rglob("*.parquet*"))))
            yield pa.record_batch(
                {
                    "id": pa.array(range(number * 65_536, (number + 1) * 65_536), pa.int64()),
                    "text": [str(number) * 50] * 65_536,
                }
            )

    table = deltaic.write(
        tmp_path, batches(), target_file_size=200_000, parquet=ParquetOptions(compression="uncompressed")
    )
    assert table.scan().count() == 16 * 65_536
    assert len(data_files(tmp_path)) > 2
    assert seen[-1] > 0


def test_target_file_size_and_compression(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    data = batch(*range(200_000))
    deltaic.write(tmp_path, data, target_file_size=100_000, parquet=ParquetOptions(compression="snappy"))
    files = data_files(tmp_path)
    assert len(files) > 3
    assert pq.ParquetFile(tmp_path / files[0]).metadata.row_group(0).column(0).compression == "SNAPPY"
    assert ids(DeltaTable(tmp_path)) == list(range(200_000))


# --- commits


def test_application_transactions_skip_what_is_there(tmp_path: Path) -> None:
    options = CommitOptions(transactions={"job": 1}, user_metadata="run 1")
    table = deltaic.write(tmp_path, batch(1), commit=options)
    assert table.transaction_version("job") == 1
    assert table.transaction_version("other") is None
    again = deltaic.write(tmp_path, batch(1), mode="append", commit=options)
    assert (again.version, ids(again)) == (0, [1])
    assert table.history()[0]["userMetadata"] == "run 1"
    newer = deltaic.write(tmp_path, batch(2), mode="append", commit=CommitOptions(transactions={"job": 2}))
    assert (newer.version, ids(newer)) == (1, [1, 2])


def test_transaction_state_finds_a_commit_by_its_id(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path, batch(1))
    deltaic.write(table, batch(2), mode="append")
    identity = table.history()[1]["txnId"]
    assert table.transaction_state(identity) == 0
    assert table.transaction_state("nobody") is None


def test_two_first_writes_with_mode_append_both_land(tmp_path: Path) -> None:
    for attempt in range(5):
        path = tmp_path / str(attempt)
        start = threading.Barrier(4)

        def work(number: int, path: Path = path, start: threading.Barrier = start) -> None:
            start.wait()
            deltaic.write(path, batch(number), mode="append")

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(work, range(4)))
        table = DeltaTable(path)
        assert ids(table) == [0, 1, 2, 3]
        assert len({entry.get("metaData") for entry in table.history()}) == 1
        assert len(data_files(path)) == 4


class Late:
    """Rows that another writer's table comes before: the table is made while they are read."""

    def __init__(self, path: Path, table: pa.Table, schema: str, **options: Any) -> None:
        self.path, self.table, self.schema, self.options = path, table, schema, options

    def __arrow_c_schema__(self) -> object:
        return self.table.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        if not DeltaTable.exists(self.path):
            DeltaTable.create(self.path, self.schema, **self.options)
        return self.table.__arrow_c_stream__(requested_schema)


def test_a_first_write_that_comes_second_appends_to_the_winners_table(tmp_path: Path) -> None:
    table = deltaic.write(
        tmp_path, Late(tmp_path, batch(1), "id bigint, name string", name="winner"), mode="append"
    )
    assert (table.version, table.metadata.name, table.schema.names) == (1, "winner", ["id", "name"])
    assert rows(table) == [{"id": 1, "name": None}]


def test_a_first_write_that_comes_second_and_may_not(tmp_path: Path) -> None:
    with pytest.raises(TableAlreadyExistsError):
        deltaic.write(tmp_path, Late(tmp_path, batch(1), "id bigint"))
    assert (DeltaTable(tmp_path).version, data_files(tmp_path)) == (0, [])


@pytest.mark.parametrize(
    ("schema", "options"),
    [
        ("id string", {}),
        ("name string", {}),
        ("id bigint not null", {}),
        ("id bigint, name string not null", {}),
        ("id bigint, name string", {"partition_by": "name"}),
        ("id bigint", {"properties": {"delta.columnMapping.mode": "name"}}),
    ],
)
def test_a_first_write_that_does_not_fit_the_winners_table(
    tmp_path: Path, schema: str, options: dict[str, Any]
) -> None:
    with pytest.raises(SchemaMismatchError, match="another writer created the table first"):
        deltaic.write(tmp_path, Late(tmp_path, batch(1), schema, **options), mode="append")
    assert (DeltaTable(tmp_path).version, data_files(tmp_path)) == (0, [])


def test_column_mapping_writes_physical_names(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    data = pa.table({"my id": pa.array([1], pa.int64()), "b,c": ["x"]})
    table = deltaic.write(tmp_path, data, properties={"delta.columnMapping.mode": "name"})
    deltaic.write(table, data, mode="append")
    assert rows(table) == [{"my id": 1, "b,c": "x"}] * 2
    names = pq.read_schema(tmp_path / data_files(tmp_path)[0]).names
    assert all(name.startswith("col-") for name in names)


def test_memory_tables() -> None:
    path = f"memory://{os.urandom(8).hex()}/t"
    assert not DeltaTable.exists(path)
    table = deltaic.write(path, batch(1))
    assert ids(DeltaTable(path)) == [1]
    assert table.location == path
