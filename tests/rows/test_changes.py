"""The change data feed, written and read. Source: PROTOCOL.md, "Change Data Files"; delta-spark's CDCReader
for the errors."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltaic
from deltaic import DeltaTable
from deltaic.errors import (
    InvalidArgumentError,
    MergeCardinalityError,
    ProtocolError,
    SchemaMismatchError,
    VersionNotFoundError,
)
from golden import GOLDEN, needs_golden

FEED = {"delta.enableChangeDataFeed": True}
VECTORS = {**FEED, "delta.enableDeletionVectors": True}
ROWS = pa.table({"id": [1, 2, 3, 4], "p": ["a", "b", "a", "b"], "n": [10, None, 30, 40]})


def changes(
    table: DeltaTable, first: int, last: int | None = None, columns: tuple[str, ...] = ("id",), **options: Any
) -> list[tuple[Any, ...]]:
    """(version, kind, values) of each change, in order."""
    found = table.changes(
        first, last, columns=["_commit_version", "_change_type", *columns], **options
    ).to_pylist()
    return sorted((tuple(row.values()) for row in found), key=repr)


def change_files(table: DeltaTable) -> list[str]:
    root = Path(table.location)
    return sorted(str(path.relative_to(root)) for path in root.rglob("_change_data/**/*.parquet"))


def commit(table: DeltaTable, version: int | None = None) -> list[dict[str, Any]]:
    path = Path(table.location, "_delta_log", f"{table.version if version is None else version:020}.json")
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_file_that_many_commits_change_is_read_once(tmp_path: Path) -> None:
    """Rows that were deleted, restored and deleted again are there as often; row groups, a condition and few
    columns change nothing."""
    properties = {"delta.enableChangeDataFeed": True, "delta.enableDeletionVectors": True}
    data = pa.table({"id": range(1000), "s": [f"s{n % 7}" for n in range(1000)]})
    table = deltaic.write(
        tmp_path, data, properties=properties, parquet=deltaic.ParquetOptions(max_row_group_size=128)
    )
    for part in range(5):
        table.delete(f"id % 10 = {part}")
    table.restore(0)
    for part in range(3):
        table.delete(f"id % 7 = {part} AND id > 500")
    rows = table.changes(1)
    each = [table.changes(version, version).to_arrow() for version in range(1, table.version + 1)]
    expected = sorted(pa.concat_tables(each).to_pylist(), key=str)
    assert sorted(rows.to_arrow().to_pylist(), key=str) == expected
    assert rows.count() == len(expected)
    where = "id < 700 AND s <> 's3' AND (_commit_version > 3 OR _change_type = 'delete')"
    wanted = [
        row
        for row in expected
        if row["id"] < 700
        and row["s"] != "s3"
        and (row["_commit_version"] > 3 or row["_change_type"] == "delete")
    ]
    found = table.changes(1, columns=["_commit_version", "id"], where=where).to_arrow().to_pylist()
    assert sorted(found, key=str) == sorted(
        ({"_commit_version": row["_commit_version"], "id": row["id"]} for row in wanted), key=str
    )
    assert rows.explain().row_groups <= 8  # of one file


def test_what_actions_say_needs_no_files_of_changes(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path, ROWS, properties=VECTORS, partition_by="p")
    deltaic.write(table, ROWS.slice(0, 1), mode="append")
    table.delete("id = 3")
    table.delete("id in (1, 3, 4) and n > 20")
    table.delete("p = 'b'")
    table.merge(
        pa.table({"id": [9], "p": ["a"], "n": [9]}), "t.id = s.id"
    ).when_not_matched_insert_all().execute()
    table.optimize.compact()
    table.restore(1)
    deltaic.write(table, ROWS.slice(1, 1), mode="overwrite")
    table.delete()
    assert change_files(table) == []
    kept = [
        (8, "delete", 1),
        (8, "delete", 1),
        (8, "delete", 2),
        (8, "delete", 3),
        (8, "delete", 4),
        (8, "insert", 2),
    ]
    assert changes(table, 0) == [
        *((0, "insert", number) for number in (1, 2, 3, 4)),
        (1, "insert", 1),
        (2, "delete", 3),
        (3, "delete", 4),
        (4, "delete", 2),
        (5, "insert", 9),
        *((7, kind, number) for kind, number in (("delete", 1), ("delete", 1), ("delete", 9))),
        *((7, "insert", number) for number in (1, 1, 2, 3, 4)),
        *kept,
        (9, "delete", 2),
    ]


def test_a_vector_that_shrinks_inserts_rows_again(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path, ROWS, properties=VECTORS)
    table.delete("id = 2")
    table.delete("id = 3")
    table.restore(1)
    table.restore(0)
    assert changes(table, 1) == [(1, "delete", 2), (2, "delete", 3), (3, "insert", 3), (4, "insert", 2)]
    assert table.changes(2, 2).explain().rows == 1
    # A file comes in it as often as its rows changed.
    assert len(table.changes(1)._scans) == 1  # type: ignore[attr-defined]


SETTINGS = list(product([False, True], ["none", "name", "id"], [None, "p"]))


@pytest.mark.parametrize(("vectors", "mapping", "partition"), SETTINGS, ids=repr)
def test_what_actions_do_not_say_is_recorded(
    tmp_path: Path, vectors: bool, mapping: str, partition: str | None
) -> None:
    properties = {
        **FEED,
        "delta.enableDeletionVectors": vectors,
        "delta.columnMapping.mode": mapping,
        "delta.enableRowTracking": vectors,
    }
    table = deltaic.write(tmp_path, ROWS, properties=properties, partition_by=partition)
    metrics = table.delete("id = 1")
    assert metrics["num_added_change_files"] == (0 if vectors else 1)
    table.update({"n": "id + 100"}, "p = 'b'")
    source = pa.table({"id": [2, 4, 7], "p": ["z", "b", "y"], "n": [0, 0, 0]})
    building = (
        table.merge(source, "t.id = s.id")
        .when_matched_delete("t.id = 4")
        .when_matched_update_all()
        .when_not_matched_insert_all()
    )
    metrics = building.when_not_matched_by_source_update({"n": "-1"}).execute()
    assert metrics["num_target_change_files_added"] >= 1
    deltaic.write(table, pa.table({"id": [7], "p": ["y"], "n": [77]}), mode="overwrite", where="id = 7")
    if mapping != "none":
        table.alter.rename_column("n", "number")
    expected = [
        (1, "delete", 1, "a", 10),
        (2, "update_postimage", 2, "b", 102),
        (2, "update_postimage", 4, "b", 104),
        (2, "update_preimage", 2, "b", None),
        (2, "update_preimage", 4, "b", 40),
        (3, "delete", 4, "b", 104),
        (3, "insert", 7, "y", 0),
        (3, "update_postimage", 2, "z", 0),
        (3, "update_postimage", 3, "a", -1),
        (3, "update_preimage", 2, "b", 102),
        (3, "update_preimage", 3, "a", 30),
        (4, "delete", 7, "y", 0),
        (4, "insert", 7, "y", 77),
    ]
    assert changes(table, 1, 4, ("id", "p", "n")) == expected
    for version in (2, 3):
        recorded = [line["cdc"] for line in commit(table, version) if "cdc" in line]
        assert recorded
        assert all(
            set(action) <= {"path", "partitionValues", "size", "dataChange", "tags"} for action in recorded
        )
        assert all(
            action["path"].startswith("_change_data/") and action["dataChange"] is False
            for action in recorded
        )
    assert sorted(table.scan(["id"]).to_arrow()["id"].to_pylist()) == [2, 3, 7]
    if mapping == "none":
        assert _of_deltalake(tmp_path, 1) == multiset(table.changes(1).to_arrow())


def multiset(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.drop_columns("_commit_timestamp").to_pylist()))


def _of_deltalake(path: Path, first: int) -> list[str]:
    from deltalake import DeltaTable as Theirs

    schema = DeltaTable(path).changes(first).to_arrow().schema
    return multiset(pa.table(Theirs(str(path)).load_cdf(first)).select(schema.names).cast(schema))


def test_changes_that_deltalake_wrote(tmp_path: Path) -> None:
    from deltalake import DeltaTable as Theirs
    from deltalake import write_deltalake

    path = str(tmp_path)
    write_deltalake(path, ROWS, partition_by=["p"], configuration={"delta.enableChangeDataFeed": "true"})
    Theirs(path).update({"n": "n + 1"}, predicate="id > 1")
    Theirs(path).delete("id = 3")
    source = pa.table({"id": [1, 8], "p": ["a", "c"], "n": [5, 8]})
    building = Theirs(path).merge(source, "t.id = s.id", source_alias="s", target_alias="t")
    building.when_matched_update_all().when_not_matched_insert_all().execute()
    write_deltalake(path, ROWS.slice(0, 1), mode="overwrite")
    found = DeltaTable(path).changes(0).to_arrow()
    assert multiset(found) == _of_deltalake(tmp_path, 0)
    assert len(set(found["_change_type"].to_pylist())) == 4
    table = DeltaTable(path)
    table.update({"n": "0"})
    assert changes(table, table.version, None, ("id", "n")) == [
        (5, "update_postimage", 1, 0),
        (5, "update_preimage", 1, 10),
    ]


@pytest.mark.parametrize("mapping", ["none", "name"])
def test_remove_actions_without_null_partition_values(tmp_path: Path, mapping: str) -> None:
    """delta-spark writes `"partitionValues":{}` in the remove action of a file whose partition value is
    null."""
    data = pa.table({"id": [1, 2, 3], "p": ["a", None, None], "q": [7, 8, None]})
    table = deltaic.write(
        tmp_path / "t",
        data,
        partition_by=["p", "q"],
        properties={**FEED, "delta.columnMapping.mode": mapping},
    )
    table.delete("id > 1")
    table.delete("id = 1")
    for version in (1, 2):
        lines = commit(table, version)
        for remove in (line["remove"] for line in lines if "remove" in line):
            remove["partitionValues"] = {
                name: value for name, value in remove["partitionValues"].items() if value is not None
            }
        path = Path(table.location, "_delta_log", f"{version:020}.json")
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    columns = ("id", "p", "q")
    assert changes(DeltaTable(table.location), 1, None, columns) == [
        (1, "delete", 2, None, 8),
        (1, "delete", 3, None, None),
        (2, "delete", 1, "a", 7),
    ]
    assert changes(DeltaTable(table.location), 1, None, columns, where="p is null and q = 8") == [
        (1, "delete", 2, None, 8)
    ]
    followed = [
        row
        for batch in DeltaTable(table.location).tail(start=1, changes=True, poll=None)
        for row in batch.rows.to_pylist()
    ]
    deleted = [(1, "a", "delete"), (2, None, "delete"), (3, None, "delete")]
    assert sorted((row["id"], row["p"], row["_change_type"]) for row in followed) == deleted


@needs_golden
@pytest.mark.parametrize(
    ("name", "versions", "counts"),
    [
        (
            "cdf-column-mapping-id-mode",
            (1, 4),
            {"insert": 1, "delete": 1, "update_preimage": 1, "update_postimage": 1},
        ),
        (
            "cdf-column-mapping-name-mode-3-7",
            (1, 4),
            {"insert": 1, "delete": 1, "update_preimage": 1, "update_postimage": 1},
        ),
        ("cdf-table-data-change", (0, 1), {"insert": 10}),
        ("cdf-table-delete-conditional-all-rows", (0, 1), {"insert": 10, "delete": 10}),
        ("cdf-table-delete-conditional-two-rows", (0, 1), {"insert": 10, "delete": 2}),
        ("cdf-table-delete-unconditional", (0, 1), {"insert": 10, "delete": 10}),
        (
            "cdf-table-partitioned",
            (0, 2),
            {"insert": 6, "delete": 4, "update_preimage": 1, "update_postimage": 1},
        ),
        ("cdf-table-with-dv", (0, 4), {"insert": 14, "delete": 6}),
    ],
)
def test_golden_changes(name: str, versions: tuple[int, int], counts: dict[str, int]) -> None:
    place = GOLDEN / name / "delta" if (GOLDEN / name / "delta").is_dir() else GOLDEN / name
    table = DeltaTable(place)
    kinds = [kind for _, kind in changes(table, *versions, columns=())]
    assert {kind: kinds.count(kind) for kind in set(kinds)} == counts
    for version in range(versions[0] + 1, versions[1] + 1):
        before, after = (
            sorted(map(repr, table.at(each).scan().to_pylist())) for each in (version - 1, version)
        )
        names = table.schema.names
        for row in table.changes(version, version).to_pylist():
            (before.remove if row["_change_type"] in ("delete", "update_preimage") else before.append)(
                repr({key: row[key] for key in names})
            )
        assert sorted(before) == after


def test_conditions_and_columns_are_pushed_down(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path, ROWS, properties=VECTORS, partition_by="p")
    table.update({"n": "n + 1"}, "id > 1")
    table.delete("id = 3")
    deltaic.write(table, pa.table({"id": [50, 60], "p": ["a", "c"], "n": [1, 2]}), mode="append")
    everything = table.changes(0).to_pylist()
    conditions: dict[str, Callable[[dict[str, Any]], bool]] = {
        "p = 'c'": lambda row: row["p"] == "c",
        "_commit_version = 2": lambda row: row["_commit_version"] == 2,
        "_change_type = 'update_preimage' and n > 10": lambda row: (
            row["_change_type"] == "update_preimage" and (row["n"] or 0) > 10
        ),
        "_change_type <> 'insert' and _commit_version < 2": lambda row: (
            row["_change_type"] != "insert" and row["_commit_version"] < 2
        ),
        "id >= 50": lambda row: row["id"] >= 50,
        "id % 2 = 0 and _commit_timestamp > '2001-01-01'": lambda row: row["id"] % 2 == 0,
        "n is null or length(_change_type) = 6": lambda row: (
            row["n"] is None or len(row["_change_type"]) == 6
        ),
    }
    for text, holds in conditions.items():
        rows = table.changes(0, where=text)
        assert sorted(map(repr, rows)) == sorted(repr(row) for row in everything if holds(row)), text
        assert rows.count() == rows.to_arrow().num_rows
    whole = table.changes(0).explain()
    assert table.changes(0, where="p = 'c'").explain().files_read == 1
    assert table.changes(0, where="id >= 50").explain().files_read < whole.files_read
    assert table.changes(0, where="_commit_version = 2").explain().files_read == 1
    assert table.changes(0, columns=["N", "_change_type"]).schema.names == ["n", "_change_type"]
    with pytest.raises(InvalidArgumentError, match="nothing"):
        table.changes(0, where="nothing = 1")


def test_the_ends_of_a_range(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path, ROWS, properties={**FEED, "delta.enableInCommitTimestamps": True})
    for number in (5, 6):
        table = deltaic.write(table, pa.table({"id": [number], "p": ["a"], "n": [0]}), mode="append")
    times = [entry["timestamp"] for entry in reversed(table.history())]
    assert {row["_commit_timestamp"] for row in table.changes(1)} == set(times[1:])
    ids = lambda *range, **options: sorted(  # noqa: E731
        row["id"] for row in table.changes(*range, **options)
    )
    assert ids(1) == ids(1, 2) == [5, 6]
    assert ids(starting_timestamp=times[1]) == [5, 6]
    assert ids(starting_timestamp=times[0] + timedelta(milliseconds=1), ending_timestamp=times[1]) == [5]
    assert DeltaTable(tmp_path, version=1).changes(1).count() == 1
    late = datetime(2300, 1, 1, tzinfo=timezone.utc)
    for options in (
        {"starting_version": 9},
        {"starting_timestamp": late},
        {"starting_version": 1, "ending_version": 9},
    ):
        with pytest.raises(VersionNotFoundError):
            table.changes(**options)  # type: ignore[arg-type]
    assert table.changes(9, allow_out_of_range=True).to_pylist() == []
    assert table.changes(starting_timestamp=late, allow_out_of_range=True).count() == 0
    assert table.changes(2, 9, allow_out_of_range=True).count() == 1
    for wrong in ((), (2, 1), (-1,), (True,)):
        with pytest.raises(InvalidArgumentError):
            table.changes(*wrong)
    with pytest.raises(InvalidArgumentError, match="exclude each other"):
        table.changes(1, starting_timestamp=times[1])
    between = times[1] + timedelta(microseconds=1)
    if times[2] - times[1] > timedelta(milliseconds=1):
        assert (
            table.changes(
                starting_timestamp=between + timedelta(milliseconds=1),
                ending_timestamp=between + timedelta(milliseconds=1),
            ).count()
            == 0
        )


def test_versions_without_the_feed_are_refused(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path, ROWS)
    table.alter.set_properties(FEED)
    table.update({"n": "0"}, "id = 1")
    assert table.changes(1).count() == 2
    with pytest.raises(InvalidArgumentError, match="not on at version 0"):
        table.changes(0)
    table.alter.set_properties({"delta.enableChangeDataFeed": False})
    table.update({"n": "1"}, "id = 1")
    with pytest.raises(InvalidArgumentError, match="not on at version 3"):
        table.changes(1)
    assert table.changes(1, 2).count() == 2
    assert len(change_files(table)) == 1


def test_schemas_that_change_within_the_range(tmp_path: Path) -> None:
    properties = {**FEED, "delta.columnMapping.mode": "name", "delta.enableTypeWidening": True}
    table = deltaic.write(
        tmp_path, ROWS.set_column(2, "n", ROWS["n"].cast(pa.int32())), properties=properties
    )
    table.update({"n": "1"}, "id = 1")
    table.alter.add_columns("more string")
    table.alter.change_column("n", type="bigint")
    table.update({"more": "'x'"}, "id = 2")
    found = table.changes(0)
    assert found.schema.names == [
        "id",
        "p",
        "n",
        "more",
        "_change_type",
        "_commit_version",
        "_commit_timestamp",
    ]
    assert found.to_arrow().schema.field("n").type == pa.int64()
    assert changes(table, 1, None, ("n", "more")) == [
        (1, "update_postimage", 1, None),
        (1, "update_preimage", 10, None),
        (4, "update_postimage", None, "x"),
        (4, "update_preimage", None, None),
    ]
    table.alter.rename_column("n", "number")
    with pytest.raises(SchemaMismatchError, match="column n"):
        table.changes(1)
    assert table.changes(table.version).count() == 0
    assert table.changes(0, 4).count() == 8
    table.alter.drop_columns("more")
    with pytest.raises(SchemaMismatchError, match="column more"):
        table.changes(5)
    with pytest.raises(SchemaMismatchError, match="_commit_version"):
        table.alter.add_columns("_commit_version bigint")


def test_a_change_that_fails_leaves_no_files(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path, ROWS, properties=FEED)
    files = sorted(tmp_path.rglob("*.parquet"))
    late = table.at(0)
    table.alter.set_properties({"note": "1"})
    for run in (
        lambda: late.update({"n": "0"}, "id = 1"),
        lambda: (
            late.merge(pa.table({"id": [1, 1]}), "t.id = s.id").when_matched_update({"n": "s.id"}).execute()
        ),
        lambda: table.update({"n": "raise_error('no')"}, "id = 1"),
    ):
        with pytest.raises((deltaic.errors.CommitError, MergeCardinalityError, deltaic.errors.DeltaError)):
            run()
        assert sorted(tmp_path.rglob("*.parquet")) == files


def test_vacuum_takes_files_of_changes_when_they_are_old_enough(tmp_path: Path) -> None:
    for mode in ("full", "lite"):
        table = deltaic.write(tmp_path / mode, ROWS, properties=FEED, partition_by="p")
        table.update({"n": "0"}, "id = 1")
        (recorded,) = change_files(table)
        assert recorded.startswith("_change_data/p=a/")
        assert table.vacuum(mode=mode).count() == 0
        assert table.changes(1, 1).count() == 2
        gone = (
            table.vacuum(retention=timedelta(0), enforce_retention=False, mode=mode)
            .to_arrow()["path"]
            .to_pylist()
        )
        assert recorded in gone
        assert change_files(table) == []
        assert not (tmp_path / mode / "_change_data").exists()
        assert table.scan().count() == 4


def test_vectors_that_vacuum_took_are_named(tmp_path: Path) -> None:
    feed = {"delta.enableChangeDataFeed": True}
    table = deltaic.write(tmp_path / "t", {"id": list(range(100))}, properties=feed)
    table.delete("id = 5")
    table.optimize.purge()
    table.vacuum(retention=timedelta(0), enforce_retention=False)
    for read in (
        lambda: table.changes(1),
        lambda: list(table.tail(start=1, changes=True, poll=None)),
        lambda: table.at(1).files(deleted_rows=True).to_arrow(),
    ):
        with pytest.raises(ProtocolError, match=r"^deletion_vector_.*VACUUM may have removed it"):
            read()


def test_nested_values_and_long_updates(tmp_path: Path) -> None:
    """Enough rows that they are held outside of memory while both kinds of files are written."""

    def batches() -> Iterator[pa.RecordBatch]:
        for part in range(3):
            numbers = range(part * 50_000, (part + 1) * 50_000)
            nested = [{"a": [number], "m": [("k", str(number))]} for number in numbers]
            kind = pa.struct({"a": pa.list_(pa.int64()), "m": pa.map_(pa.string(), pa.string())})
            yield pa.record_batch({"id": pa.array(numbers), "s": pa.array(nested, kind)})

    first = next(batches())
    data = pa.RecordBatchReader.from_batches(first.schema, batches())
    table = deltaic.write(tmp_path, data, properties=VECTORS)
    table.update({"id": "id + 1"})
    found = table.changes(1, where="id in (7, 100000)").to_arrow()
    rows = sorted((row["id"], row["_change_type"], row["s"]["a"], row["s"]["m"]) for row in found.to_pylist())
    assert rows == [
        (7, "update_postimage", [6], [("k", "6")]),
        (7, "update_preimage", [7], [("k", "7")]),
        (100000, "update_postimage", [99999], [("k", "99999")]),
        (100000, "update_preimage", [100000], [("k", "100000")]),
    ]
    assert table.changes(1).count() == 300_000
