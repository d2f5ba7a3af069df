"""Examples from the documents on which Delta is based, each on a whole table. Other modules test the examples
that concern a single part:

bytes of vectors, Z85 and ids in tests/test_deletion_vector.py, tests/test_z85.py, tests/test_core_log.py;
steps 1 to 4 of the High Level Design and the four transactions of the consistency model in
tests/commands/test_update.py, its specification in tests/test_consistency_model.py; curves and skipped files
in tests/test_zorder.py; gaps in a listing in tests/log/test_segment.py; MERGE with the table's past in
tests/commands/test_merge.py; automatic compaction and wide statistics made tight in
tests/commands/test_optimize.py.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deltaic
from deltaic.errors import AppendOnlyError, ProtocolError, UnsupportedFeatureError

VECTORS = {"delta.enableDeletionVectors": True}


def actions(table: deltaic.DeltaTable, version: int, kind: str) -> list[dict[str, Any]]:
    lines = (
        (Path(table.location) / "_delta_log" / f"{version:020}.json").read_text(encoding="utf-8").splitlines()
    )
    return [action[kind] for line in lines if kind in (action := json.loads(line))]


def append_commit(table: deltaic.DeltaTable, *lines: dict[str, Any]) -> deltaic.DeltaTable:
    """Another writer's commit on top of the newest version."""
    text = "\n".join(json.dumps(line) for line in ({"commitInfo": {"timestamp": 0}}, *lines))
    (Path(table.location) / "_delta_log" / f"{table.version + 1:020}.json").write_text(text, encoding="utf-8")
    return deltaic.DeltaTable(table.location)


def ids(table: deltaic.DeltaTable, where: str | None = None) -> list[int]:
    return sorted(table.scan(["id"], where).to_arrow()["id"].to_pylist())


@pytest.fixture
def thousand(tmp_path: Path) -> deltaic.DeltaTable:
    """One file of 1000 rows."""
    data = pa.table(
        {"id": pa.array(range(1000), pa.int64()), "n": pa.array([None] * 10 + [1] * 990, pa.int64())}
    )
    return deltaic.write(tmp_path / "t", data, properties=VECTORS)


def test_tombstones_of_one_file_with_several_vectors(thousand: deltaic.DeltaTable) -> None:
    """Deletion Vectors High Level Design, steps 2 to 4: after the compaction (a), (a, dv1) and (a, dv2) are
    tombstones, each by itself."""
    (a,) = [row["path"] for row in thousand.files().to_arrow().to_pylist()]
    thousand.update({"n": 7}, "id in (24, 42)")
    thousand.delete("id between 300 and 800")
    thousand.optimize.purge()
    removed = [action for version in (1, 2, 3) for action in actions(thousand, version, "remove")]
    assert [(action["path"], action.get("deletionVector", {}).get("cardinality")) for action in removed] == [
        (a, None),
        (a, 2),
        (a, 503),
    ]
    thousand.checkpoint()
    (path,) = (Path(thousand.location) / "_delta_log").glob("*.checkpoint.parquet")
    kept = [row for row in pq.read_table(path)["remove"].to_pylist() if row is not None]
    assert sorted((row["deletionVector"] or {"cardinality": 0})["cardinality"] for row in kept) == [0, 2, 503]
    assert {row["path"] for row in kept} == {a}


def test_add_and_remove_of_one_file_with_different_vectors_in_one_commit(
    thousand: deltaic.DeltaTable,
) -> None:
    """Deletion Vectors High Level Design, and PROTOCOL.md on action reconciliation: legal, and what every
    DELETE writes."""
    thousand.delete("id < 3")
    (add,), (remove,) = actions(thousand, 1, "add"), actions(thousand, 1, "remove")
    assert add["path"] == remove["path"]
    assert "deletionVector" not in remove
    assert ids(deltaic.DeltaTable(thousand.location)) == list(range(3, 1000))


def test_a_file_among_the_change_data_is_not_read_as_data(thousand: deltaic.DeltaTable) -> None:
    """PROTOCOL.md, Add CDC File: cdc actions do not change which rows a version has, also beside an add of
    the same commit."""
    (add,) = actions(thousand, 0, "add")
    cdc = {"path": add["path"], "partitionValues": {}, "size": add["size"], "dataChange": False}
    again = append_commit(thousand, {"add": add}, {"cdc": cdc})
    assert ids(again) == list(range(1000))


@pytest.mark.parametrize("kind", ["add", "remove"])
def test_one_path_twice_in_a_commit_is_reported(thousand: deltaic.DeltaTable, kind: str) -> None:
    """PROTOCOL.md, Action Reconciliation: not two adds, nor two removes, of one path and vector; nor of two
    vectors."""
    (add,) = actions(thousand, 0, "add")
    remove = {"path": add["path"], "deletionTimestamp": 0, "dataChange": True}
    action = {"add": add, "remove": remove}[kind]
    inline = {
        "storageType": "i",
        "pathOrInlineDv": "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L",
        "sizeInBytes": 44,
        "cardinality": 6,
    }
    with pytest.raises(ProtocolError, match=r"(added|removed) twice"):
        append_commit(thousand, {kind: action}, {kind: action | {"deletionVector": inline}}).scan().to_arrow()


def test_wide_statistics_skip_but_do_not_answer(tmp_path: Path) -> None:
    """Deletion Vectors High Level Design, statistics with tightBounds=false: min and max still skip files,
    numRecords is physical; a null count has a meaning only if it is 0 or numRecords."""
    data = pa.table(
        {"id": pa.array(range(100), pa.int64()), "n": pa.array([None] * 50 + [5] * 50, pa.int64())}
    )
    table = deltaic.write(tmp_path / "t", data, properties=VECTORS)
    table.delete("n = 5 or id = 0")
    (add,) = actions(table, 1, "add")
    stats = json.loads(add["stats"])
    assert (stats["tightBounds"], stats["numRecords"], stats["maxValues"]["id"]) == (False, 100, 99)
    assert table.scan().count() == 49
    assert ids(table, "id > 98") == []
    assert table.scan(["id"], "id > 99").explain().files_read == 0
    assert ids(table, "n is null") == list(range(1, 50))
    assert ids(table, "n is not null") == []
    top = (
        deltaic.sql("SELECT max(id) AS high, count(n) AS filled FROM t", tables={"t": table})
        .to_arrow()
        .to_pylist()
    )
    assert top == [{"high": 49, "filled": 0}]


def test_restore_across_the_upgrade_keeps_the_protocol(tmp_path: Path) -> None:
    """Deletion Vectors High Level Design: RESTORE to a version before the upgrade brings the rows back and
    does not lower the protocol."""
    table = deltaic.write(
        tmp_path / "t", pa.table({"id": [1, 2, 3]}), properties={"delta.enableDeletionVectors": False}
    )
    assert table.protocol.reader_features is None
    table.alter.set_properties(VECTORS)
    table.delete("id = 2")
    table.restore(0)
    assert ids(table) == [1, 2, 3]
    assert "deletionVectors" in (table.protocol.reader_features or ())
    assert ids(deltaic.DeltaTable(tmp_path / "t")) == [1, 2, 3]


def test_manifests_of_a_snapshot_with_vectors(thousand: deltaic.DeltaTable) -> None:
    """Deletion Vectors High Level Design: GENERATE refuses a snapshot with vectors, as readers of manifests
    would see deleted rows."""
    thousand.delete("id = 1")
    with pytest.raises(UnsupportedFeatureError):
        thousand.generate()


def test_writers_read_their_own_writes_and_versions_never_go_back(tmp_path: Path) -> None:
    """Delta Lake (VLDB 2020), section 3.3."""
    mine = deltaic.write(tmp_path / "t", pa.table({"id": [0]}))
    other = deltaic.DeltaTable(tmp_path / "t")
    seen = [mine.version]
    for number in range(1, 12):  # across the checkpoint of version 10
        deltaic.write(other if number % 2 else mine, pa.table({"id": [number]}), mode="append")
        mine.refresh()
        seen.append(mine.version)
        assert ids(mine) == list(range(number + 1))
    assert seen == sorted(seen)


def test_exactly_once_by_an_applications_transaction(tmp_path: Path) -> None:
    """Delta Lake (VLDB 2020), section 4.3: a stream that writes its batch again after a failure writes
    nothing twice."""
    table = deltaic.write(tmp_path / "t", pa.table({"id": [0]}))
    for batch in (1, 2, 2, 1):
        once = deltaic.CommitOptions(transactions={"stream": batch})
        deltaic.write(
            deltaic.DeltaTable(tmp_path / "t"), pa.table({"id": [batch]}), mode="append", commit=once
        )
    table.refresh()
    assert ids(table) == [0, 1, 2]
    assert table.transaction_version("stream") == 2


def test_rearrangement_is_no_change_of_data(tmp_path: Path) -> None:
    """Delta Lake (VLDB 2020), section 4.3: OPTIMIZE writes dataChange=false in every action, so that streams
    do not see its rows again."""
    table = deltaic.write(tmp_path / "t", pa.table({"id": [1, 2]}), properties=VECTORS)
    deltaic.write(table, pa.table({"id": [3]}), mode="append")
    table.delete("id = 1")
    for rearrange in (table.optimize.compact, table.optimize.purge, lambda: table.optimize.z_order(["id"])):
        before = table.version
        rearrange()
        for version in range(before + 1, table.version + 1):
            changes = [
                action["dataChange"] for kind in ("add", "remove") for action in actions(table, version, kind)
            ]
            assert changes
            assert not any(changes)
    assert ids(table) == [2, 3]


def test_missing_statistics_are_added_without_rewriting(tmp_path: Path) -> None:
    """Delta Lake (VLDB 2020), section 4.4: files of a writer that kept no statistics get them later."""
    table = deltaic.write(tmp_path / "t", pa.table({"id": [1, 2, 3]}))
    (add,) = actions(table, 0, "add")
    table = append_commit(table, {"add": {key: value for key, value in add.items() if key != "stats"}})
    assert table.scan(["id"], "id > 5").explain().files_read == 1
    table.optimize.statistics()
    assert table.scan(["id"], "id > 5").explain().files_read == 0
    assert {row["path"] for row in table.files().to_arrow().to_pylist()} == {add["path"]}
    assert ids(table) == [1, 2, 3]


def test_the_newest_records_are_moved_into_z_ordered_files_alone(tmp_path: Path) -> None:
    """Delta Lake (VLDB 2020), section 4.4: OPTIMIZE of the newest partition leaves the files of all others as
    they are."""
    for day in ("2020-01-01", "2020-01-02"):
        for first in (0, 50):
            rows = pa.table({"day": [day] * 50, "x": range(first, first + 50), "y": range(50)})
            deltaic.write(tmp_path / "t", rows, mode="append", partition_by=["day"])
    table = deltaic.DeltaTable(tmp_path / "t")
    older = {row["path"] for row in table.files("day = '2020-01-01'").to_pylist()}
    done = table.optimize.z_order(["x", "y"], where="day = '2020-01-02'")
    assert (done["num_files_removed"], done["num_files_added"]) == (2, 1)
    (newest,) = table.files("day = '2020-01-02'").to_pylist()
    assert {row["path"] for row in table.files().to_pylist()} == {*older, newest["path"]}
    assert sorted(table.scan(["x"], "day = '2020-01-02'").to_arrow()["x"].to_pylist()) == list(range(100))


def test_a_dropped_columns_data_can_be_purged(tmp_path: Path) -> None:
    """Delta Lake (VLDB 2020), section 4.7: DROP COLUMN changes metadata alone; the values are gone from the
    files after a purge."""
    table = deltaic.write(
        tmp_path / "t",
        pa.table({"id": [1], "secret": ["x"]}),
        properties={"delta.columnMapping.mode": "name"},
    )
    table.alter.drop_columns("secret")
    columns = [
        len(pq.read_schema(Path(table.location) / row["path"]))
        for row in table.files().to_arrow().to_pylist()
    ]
    assert columns == [2]
    table.optimize.purge()
    columns = [
        len(pq.read_schema(Path(table.location) / row["path"]))
        for row in table.files().to_arrow().to_pylist()
    ]
    assert columns == [1]
    assert ids(table) == [1]
    version = table.version
    table.optimize.purge()
    assert table.version == version  # nothing is left to purge


def test_a_later_add_of_a_path_replaces_the_earlier_ones_statistics(tmp_path: Path) -> None:
    """The early transaction protocol, and PROTOCOL.md, Add File: the newest add of a path is the one that
    counts."""
    table = deltaic.write(tmp_path / "t", pa.table({"id": [1, 2, 3]}))
    (add,) = actions(table, 0, "add")
    wider = json.dumps(
        {"numRecords": 3, "minValues": {"id": 0}, "maxValues": {"id": 9}, "nullCount": {"id": 0}}
    )
    table = append_commit(table, {"add": add | {"stats": wider}})
    (row,) = table.files().to_arrow().to_pylist()
    assert (row["min_values"]["id"], row["max_values"]["id"]) == (0, 9)
    assert ids(table) == [1, 2, 3]


def test_append_only_tables_refuse_removes_that_change_data(tmp_path: Path) -> None:
    """The early transaction protocol: rearrangement is allowed, a DELETE is not."""
    table = deltaic.write(tmp_path / "t", pa.table({"id": [1]}), properties={"delta.appendOnly": True})
    deltaic.write(table, pa.table({"id": [2]}), mode="append")
    for change in (lambda: table.delete("id = 1"), lambda: table.update({"id": 5}), table.delete):
        with pytest.raises(AppendOnlyError):
            change()
    table.optimize.compact()
    assert table.files().count() == 1
    assert ids(table) == [1, 2]


def test_transaction_identifiers_may_decrease(tmp_path: Path) -> None:
    """The early transaction protocol: the newest txn action of an application counts, not the greatest."""
    table = deltaic.write(
        tmp_path / "t", pa.table({"id": [1]}), commit=deltaic.CommitOptions(transactions={"app": 9})
    )
    table = append_commit(table, {"txn": {"appId": "app", "version": 4}})
    assert table.transaction_version("app") == 4
