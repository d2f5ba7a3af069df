"""Other implementations: `deltalake` reads tables of deltaic, and tables of other writers have exactly their
rows.

The golden tables (tests/README.md) are not part of this project: if they are missing, their tests are
skipped.
"""

from __future__ import annotations

from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deltaic
from deltaic.errors import DeltaError
from golden import GOLDEN, needs_golden
from row_model import arrow_rows, multiset

# --- deltalake reads ours


def every_type() -> pa.Table:
    """Returns two rows of each type: a value at an edge of its range, and null."""
    utc = timezone.utc
    columns: dict[str, pa.Array] = {
        "id": pa.array([1, 2], pa.int64()),
        "byte": pa.array([-128, None], pa.int8()),
        "short": pa.array([32767, None], pa.int16()),
        "int": pa.array([-(2**31), None], pa.int32()),
        "float": pa.array([0.5, None], pa.float32()),
        "double": pa.array([float("inf"), None], pa.float64()),
        "decimal": pa.array([Decimal("-99999999.99"), None], pa.decimal128(10, 2)),
        "decimal38": pa.array([Decimal(10**37), None], pa.decimal128(38, 0)),
        "boolean": pa.array([True, None], pa.bool_()),
        "string": pa.array(["é\0\n", None], pa.string()),
        "binary": pa.array([b"\0\xff", None], pa.binary()),
        "date": pa.array([date(1900, 1, 1), None], pa.date32()),
        "timestamp": pa.array(
            [datetime(2024, 2, 29, 23, 59, 59, 999999, utc), None], pa.timestamp("us", tz="UTC")
        ),
        "timestamp_ntz": pa.array([datetime(1969, 12, 31, 23, 59, 59, 1), None], pa.timestamp("us")),
        "array": pa.array([[1, None], None], pa.list_(pa.int32())),
        "struct": pa.array(
            [{"a": 1, "b": {"c": "x"}}, None],
            pa.struct({"a": pa.int32(), "b": pa.struct({"c": pa.string()})}),
        ),
        "map": pa.array([[("k", 1.5), ("l", None)], None], pa.map_(pa.string(), pa.float64())),
    }
    return pa.table(columns)


def deltalake_rows(path: str, columns: list[str]) -> Any:
    from deltalake import DeltaTable, QueryBuilder

    names = ", ".join('"' + name.replace('"', '""') + '"' for name in columns)
    reader = QueryBuilder().register("t", DeltaTable(path)).execute(f"SELECT {names} FROM t")
    return multiset(arrow_rows(pa.table(reader)))


def ours(table: deltaic.DeltaTable, columns: list[str]) -> Any:
    return multiset(arrow_rows(table.scan(columns).to_arrow()))


@pytest.mark.parametrize("partition", [None, "string", "int", "date", "boolean", "decimal", "timestamp"])
def test_deltalake_reads_every_type(tmp_path: Path, partition: str | None) -> None:
    data = every_type()
    table = deltaic.write(tmp_path / "t", data, partition_by=partition)
    assert ours(table, data.column_names) == multiset(arrow_rows(data))
    assert deltalake_rows(table.location, data.column_names) == multiset(arrow_rows(data))


def test_deltalake_reads_our_vectors(tmp_path: Path) -> None:
    data = pa.table(
        {
            "id": list(range(10_000)),
            "part": [number % 3 for number in range(10_000)],
            "text": [str(n) for n in range(10_000)],
        }
    )
    table = deltaic.write(
        tmp_path / "t",
        data,
        partition_by="part",
        target_file_size=20_000,
        properties={"delta.enableDeletionVectors": True},
    )
    table.delete("id % 10 = 3")
    table.update({"text": "concat(text, '!')"}, "id % 100 = 5")
    table.delete("id < 50")
    news = pa.table({"id": [60, 20_000], "part": [0, 9], "text": ["merged", "inserted"]})
    table.merge(news, "t.id = s.id").when_matched_update_all().when_not_matched_insert_all().execute()
    assert any(row["deletion_vector"] for row in table.files().to_arrow().to_pylist())
    found = ours(table, ["id", "part", "text"])
    assert sum(found.values()) == 10_000 - 1_000 - 45 + 1
    assert deltalake_rows(table.location, ["id", "part", "text"]) == found


def test_deltalake_reads_after_upkeep(tmp_path: Path) -> None:
    data = pa.table({"id": list(range(2_000)), "text": [str(number % 50) for number in range(2_000)]})
    table = deltaic.write(
        tmp_path / "t",
        data,
        target_file_size=2_000,
        properties={"delta.enableDeletionVectors": True, "delta.checkpointInterval": 2},
    )
    table.delete("id % 2 = 0")
    table.optimize.z_order(["text", "id"])
    table.delete("id < 100")
    table.optimize.purge()
    table.restore(1)
    table.checkpoint()
    assert deltalake_rows(table.location, ["id", "text"]) == ours(table, ["id", "text"])


@pytest.mark.parametrize("maker", ["deltaic", "deltalake"])
def test_both_keep_constraints_and_generated_columns(tmp_path: Path, maker: str) -> None:
    """Two writers change a table by turns: what one leaves out the other computes, and both refuse what
    breaks a rule."""
    import deltalake

    path = str(tmp_path / "t")
    if maker == "deltaic":
        properties = {"delta.constraints.pos": "id > 0", "delta.enableDeletionVectors": False}
        deltaic.DeltaTable.create(
            path, "id bigint, twice bigint generated always as (id * 2)", properties=properties
        )
    else:
        twice = deltalake.Field("twice", "long", metadata={"delta.generationExpression": "id * 2"})
        deltalake.DeltaTable.create(
            path, deltalake.Schema([deltalake.Field("id", "long"), twice])
        ).alter.add_constraint({"pos": "id > 0"})

    def theirs(data: pa.Table) -> None:
        deltalake.write_deltalake(path, data, mode="append")

    def our(data: pa.Table) -> None:
        deltaic.write(path, data, mode="append")

    for turn in range(1, 11):
        (our if turn % 2 else theirs)(pa.table({"id": [turn]}))
    for write, error in ((our, DeltaError), (theirs, deltalake.exceptions.DeltaError)):
        for wrong in ({"id": [-1]}, {"id": [1], "twice": [3]}):
            with pytest.raises(error):
                write(pa.table(wrong))
    deltaic.DeltaTable(path).update({"id": "id + 100"}, "id > 5")
    deltaic.DeltaTable(path).alter.add_constraints({"small": "id < 1000"})
    with pytest.raises(deltalake.exceptions.DeltaError):
        theirs(pa.table({"id": [1000]}))
    expected = multiset((number, number * 2) for number in [1, 2, 3, 4, 5, 106, 107, 108, 109, 110])
    assert (
        deltalake_rows(path, ["id", "twice"]) == ours(deltaic.DeltaTable(path), ["id", "twice"]) == expected
    )
    deltaic.DeltaTable(path).alter.drop_constraint("pos")
    theirs(pa.table({"id": [-1]}))


def test_we_read_what_deltalake_wrote(tmp_path: Path) -> None:
    from deltalake import write_deltalake

    data = every_type()
    write_deltalake(str(tmp_path / "t"), data, partition_by=["string"])
    write_deltalake(str(tmp_path / "t"), data, mode="append")
    table = deltaic.DeltaTable(tmp_path / "t")
    assert ours(table, data.column_names) == multiset(arrow_rows(data) * 2)
    table.delete("id = 2")
    assert table.scan(where="byte = -128").count() == 2
    assert deltalake_rows(table.location, ["id"]) == ours(table, ["id"])


# --- golden tables

# What the folder holds without `expected`, read by `deltalake` as the reference.
READ_BY_BOTH = [
    "app-txn-checkpoint",
    "basic_partitioned",
    "cdf-column-mapping-id-mode",
    "cdf-column-mapping-name-mode-3-7",
    "cdf-table-data-change",
    "cdf-table-delete-conditional-all-rows",
    "cdf-table-delete-conditional-two-rows",
    "cdf-table-delete-unconditional",
    "cdf-table-partitioned",
    "cdf-table-update-ops",
    "cdf-table-with-dv",
    "compacted-log-files-table",
    "mixed-nulls",
    "parsed-stats",
    "partitioned_with_materialize_feature",
    "stats-writing-all-types",
    "table-with-cdf",
    "table-with-dv-small",
    "table-without-dv-small",
    "timestamp-partitioned-table",
    "timestamp-truncation-stats",
    "void-column",
    "with-short-dv",
    "v2-checkpoints-json-with-last-checkpoint",
    "v2-checkpoints-json-without-sidecars",
    "v2-checkpoints-parquet-with-last-checkpoint",
    "v2-checkpoints-parquet-without-sidecars",
    "v2-classic-checkpoint-json",
    "v2-classic-parquet-struct-stats-only",
    "v2-json-sidecars-struct-stats-only",
]

# Counts that the folder's README gives, or that follow from a log that removes every file.
COUNTS = {
    "with-short-dv": 7,
    "table-with-dv-small": 8,
    "canonicalized-paths-normal-a": 0,
    "canonicalized-paths-special-a": 0,
    "canonicalized-paths-special-b": 0,
}

# Tables that no reader may accept, and the text of the error.
REFUSED = {
    "crc-full": "numFiles of its checksum.*found 0; expected 10",  # of its log only the definition is there
    "crc-malformed": "not a Delta table",
    "data-reader-absolute-paths-escaped-chars": "no metaData",
    "deltalog-state-reconstruction-from-checkpoint-missing-metadata": "no metaData",
    "deltalog-state-reconstruction-from-checkpoint-missing-protocol": "no protocol",
    "update-deleted-directory": "schemaString",
    "versions-not-contiguous": "not contiguous",
}

# A log without its data files: the version, the schema and the listing are what there is to read.
LOG_ONLY = {
    "app-txn-with-last-updated",
    "table-with-geo",
    "with_checkpoint_no_last_checkpoint",
    "partition_cm",
}

# Written in America/Los_Angeles without a zone: the timestamps of its partitions are another reader's guess.
EXCEPT_COLUMNS = {"data-reader-partition-values": {"as_timestamp"}}


def _golden() -> list[str]:
    return sorted(path.name for path in GOLDEN.iterdir() if path.is_dir()) if GOLDEN.is_dir() else []


def _location(name: str) -> Path:
    return GOLDEN / name / "delta" if (GOLDEN / name / "delta").is_dir() else GOLDEN / name


WITH_ROWS = [name for name in _golden() if (GOLDEN / name / "expected").is_dir()]


@needs_golden
@pytest.mark.parametrize("name", WITH_ROWS)
def test_golden_rows(name: str) -> None:
    files = sorted((GOLDEN / name / "expected").rglob("*.parquet"))
    expected = pa.concat_tables([pq.read_table(path) for path in files], promote_options="default")
    table = deltaic.DeltaTable(_location(name))
    columns = [column for column in expected.column_names if column not in EXCEPT_COLUMNS.get(name, set())]
    assert sorted(column.lower() for column in table.schema.names) == sorted(
        column.lower() for column in expected.column_names
    )
    found = table.scan(columns).to_arrow()
    if expected.num_rows > 10_000:  # a million rows as Python objects take minutes
        order = [(column, "ascending") for column in columns]
        assert found.sort_by(order).equals(expected.select(columns).cast(found.schema).sort_by(order))
    else:
        assert multiset(arrow_rows(found)) == multiset(arrow_rows(expected.select(columns)))
    assert table.scan().count() == expected.num_rows


@needs_golden
@pytest.mark.parametrize("name", READ_BY_BOTH)
def test_golden_tables_as_deltalake_reads_them(name: str) -> None:
    table = deltaic.DeltaTable(_location(name))
    assert ours(table, table.schema.names) == deltalake_rows(str(_location(name)), table.schema.names)


@needs_golden
@pytest.mark.parametrize("path", sorted((GOLDEN / "hive" / "delta").glob("*")), ids=lambda path: path.name)
def test_golden_tables_of_a_folder_as_deltalake_reads_them(path: Path) -> None:
    table = deltaic.DeltaTable(path)
    assert ours(table, table.schema.names) == deltalake_rows(str(path), table.schema.names)


@needs_golden
@pytest.mark.parametrize("name", sorted(COUNTS))
def test_golden_counts(name: str) -> None:
    table = deltaic.DeltaTable(_location(name))
    assert table.scan().count() == table.scan().to_arrow().num_rows == COUNTS[name]


@needs_golden
@pytest.mark.parametrize("name", sorted(REFUSED))
def test_golden_refusals(name: str) -> None:
    with pytest.raises(DeltaError, match=REFUSED[name]):
        deltaic.DeltaTable(_location(name)).scan().to_arrow()


@needs_golden
def test_every_golden_table_is_tested() -> None:
    known = {*WITH_ROWS, *READ_BY_BOTH, *COUNTS, *REFUSED, *LOG_ONLY, "hive"}
    assert set(_golden()) - known == set()


@needs_golden
def test_logs_without_their_data() -> None:
    table = deltaic.DeltaTable(GOLDEN / "app-txn-with-last-updated")
    assert table.files().count() == len(table.files().to_arrow()) > 0
    assert table.transaction_version("new_app_0") is not None
    for mode in ("id", "name", "none"):
        assert deltaic.DeltaTable(GOLDEN / "partition_cm" / mode).metadata.partition_columns
    assert deltaic.DeltaTable(GOLDEN / "with_checkpoint_no_last_checkpoint").version > 0
