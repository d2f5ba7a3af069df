"""Commands that change different rows of one file at the same time: all succeed, by the union of their
deletion vectors."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltaic
from deltaic import CommitOptions, DeltaTable, _core
from deltaic.errors import ConcurrentAppendException, ConcurrentDeleteReadException
from deltaic.log.snapshot import Snapshot
from deltaic.planning.opening import numbered
from log_actions import commit_lines

ROWS = 40


def new_table(path: Path, **properties: Any) -> DeltaTable:
    data = pa.table({"id": pa.array(range(ROWS), pa.int64()), "n": pa.array([0] * ROWS, pa.int64())})
    return deltaic.write(
        path, data, properties={f"delta.{name}": value for name, value in properties.items()}
    )


def ids(table: DeltaTable) -> list[int]:
    return sorted(table.scan(["id"]).to_arrow()["id"].to_pylist())


def at_once(*commands: Any) -> None:
    begin, failures = threading.Barrier(len(commands)), []

    def one(command: Any) -> None:
        begin.wait()
        try:
            command()
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=one, args=(command,)) for command in commands]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


@pytest.mark.parametrize("inline", [False, True])
def test_eight_deleters_of_one_file_all_succeed(tmp_path: Path, inline: bool) -> None:
    data = pa.table({"id": pa.array(range(ROWS), pa.int64())})
    deltaic.write(tmp_path, data, properties={"deltaic.inlineDeletionVectors": inline})
    tables = [DeltaTable(tmp_path) for _ in range(8)]
    at_once(
        *(lambda number=number: tables[number].delete(f"id % 8 = {number} AND id > 7") for number in range(8))
    )
    table = DeltaTable(tmp_path)
    assert (table.version, ids(table)) == (8, list(range(8)))
    assert [int(entry["operationMetrics"]["numDeletedRows"]) for entry in table.history(8)] == [4] * 8
    # The vectors of attempts that lost are gone.
    assert len(list(tmp_path.rglob("deletion_vector_*.bin"))) == (0 if inline else 8)
    assert table.files().to_arrow().num_rows == 1


def test_the_last_rows_go_with_the_file(tmp_path: Path) -> None:
    new_table(tmp_path)
    first, second = DeltaTable(tmp_path), DeltaTable(tmp_path)
    first.delete("id < 20")
    metrics = second.delete("id >= 20")
    table = DeltaTable(tmp_path)
    assert ids(table) == []
    assert table.files().to_arrow().num_rows == 0
    assert (metrics["num_deleted_rows"], metrics["num_removed_files"]) == (20, 1)


def test_rows_that_another_delete_took_are_not_counted(tmp_path: Path) -> None:
    new_table(tmp_path)
    loser, whole = DeltaTable(tmp_path), DeltaTable(tmp_path)
    DeltaTable(tmp_path).delete("id < 10")
    metrics = loser.delete("id BETWEEN 5 AND 14")
    assert metrics["num_deleted_rows"] == 5
    assert DeltaTable(tmp_path).history(1)[0]["operationMetrics"]["numDeletedRows"] == "5"
    # All its rows were deleted by the other commit: the commit records this, and changes no file.
    assert whole.delete("id < 15 AND n = 0")["num_deleted_rows"] == 0
    lines = commit_lines(_core.Store(str(tmp_path)), 3)
    assert [next(iter(line)) for line in lines] == ["commitInfo"]
    assert ids(DeltaTable(tmp_path)) == list(range(15, ROWS))


def test_an_update_of_a_row_that_is_gone_conflicts(tmp_path: Path) -> None:
    new_table(tmp_path)
    loser = DeltaTable(tmp_path)
    DeltaTable(tmp_path).delete("id = 7")
    name = DeltaTable(tmp_path).files().to_arrow()["path"][0].as_py()
    with pytest.raises(
        ConcurrentDeleteReadException,
        match=r"version 1 \(DELETE\) came first and changed, moved or deleted rows",
    ) as raised:
        loser.update({"n": "1"}, "id IN (7, 8)")
    assert raised.value.where is not None
    assert name in raised.value.where
    assert ids(DeltaTable(tmp_path)) == [each for each in range(ROWS) if each != 7]


def test_a_deleted_row_that_was_changed_conflicts_though_it_matches_no_more(tmp_path: Path) -> None:
    new_table(tmp_path)
    loser = DeltaTable(tmp_path)
    DeltaTable(tmp_path).update({"id": "id + 1000"}, "id = 7")
    with pytest.raises(ConcurrentDeleteReadException):
        loser.delete("id = 7")


def test_rows_that_a_restore_brought_back_are_seen(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.delete("id < 10")
    loser = DeltaTable(tmp_path)
    DeltaTable(tmp_path).restore(0)
    with pytest.raises(ConcurrentAppendException):
        loser.update({"n": "5"}, "id < 20")
    DeltaTable(tmp_path).delete("id < 20")
    assert ids(DeltaTable(tmp_path)) == list(range(20, ROWS))


def test_a_condition_that_reads_the_table_knows_no_single_rows(tmp_path: Path) -> None:
    new_table(tmp_path)
    loser = DeltaTable(tmp_path)
    DeltaTable(tmp_path).delete("id = 30")
    with pytest.raises(ConcurrentDeleteReadException):
        loser.delete(f"id = (SELECT max(id) FROM delta.`{tmp_path}`)")


def test_inserts_of_rows_that_were_found_before_conflict(tmp_path: Path) -> None:
    """The source's row 7 was not inserted because it was there; now it is not."""
    new_table(tmp_path)
    loser = DeltaTable(tmp_path)
    DeltaTable(tmp_path).delete("id = 7")
    source = pa.table({"id": pa.array([7, 900], pa.int64()), "n": pa.array([1, 1], pa.int64())})
    with pytest.raises(ConcurrentDeleteReadException):
        loser.merge(source, "t.id = s.id").when_not_matched_insert_all().execute()


def test_row_ids_and_changes_are_those_of_both_commits(tmp_path: Path) -> None:
    new_table(tmp_path, enableRowTracking=True, enableChangeDataFeed=True)
    first, second, third = (DeltaTable(tmp_path) for _ in range(3))
    first.delete("id = 1")
    second.update({"n": "7"}, "id = 2")
    third.delete("id = 3")
    changes = (
        DeltaTable(tmp_path)
        .changes(1, 3)
        .to_arrow()
        .sort_by([("_commit_version", "ascending"), ("_change_type", "descending")])
    )
    found = list(
        zip(
            *(changes[name].to_pylist() for name in ("_commit_version", "_change_type", "id", "n")),
            strict=True,
        )
    )
    assert found == [
        (1, "delete", 1, 0),
        (2, "update_preimage", 2, 0),
        (2, "update_postimage", 2, 7),
        (3, "delete", 3, 0),
    ]
    added = [line["add"] for line in commit_lines(_core.Store(str(tmp_path)), 3) if "add" in line]
    assert [each["baseRowId"] for each in added] == [0]
    assert json.loads(added[0]["stats"])["numRecords"] == ROWS


def test_a_rewrite_of_other_files_is_in_nobodys_way(tmp_path: Path) -> None:
    new_table(tmp_path)
    for first in (100, 200):
        more = pa.table({"id": pa.array([first, first + 1], pa.int64()), "n": pa.array([0, 0], pa.int64())})
        deltaic.write(tmp_path, more, mode="append")
    deleter, changer = DeltaTable(tmp_path), DeltaTable(tmp_path)
    DeltaTable(tmp_path).delete("id = 200")
    DeltaTable(tmp_path).optimize.purge()
    deleter.delete("id % 30 = 5")
    changer.update({"n": "1"}, "id % 30 = 6", commit=CommitOptions(isolation="snapshot"))
    assert ids(DeltaTable(tmp_path)) == [each for each in (*range(ROWS), 100, 101, 201) if each % 30 != 5]
    with pytest.raises(ConcurrentDeleteReadException, match=r"\(REORG\)"):
        DeltaTable(tmp_path, version=3).update({"n": "1"}, "id = 201")


def test_what_a_commit_did_to_rows(tmp_path: Path) -> None:
    """`_core.rebase_rows` and `_core.adds_with_new_rows`, by commits of every kind on one file."""
    table = new_table(tmp_path)
    store = _core.Store(str(tmp_path))
    files = numbered(Snapshot.load(store).files().adds)
    pairs = {
        "__deltaic_file": pa.array([0, 0, 0], pa.int32()),
        "__deltaic_row": pa.array([1, 5, 6], pa.int64()),
    }
    rows = _core.RowIds.collect(pa.table(pairs))
    table.delete("id IN (5, 30)")
    commit = _core.read_commit(store, 1, f"_delta_log/{1:020}.json")
    after = _core.rebase_rows(store, files, rows, commit.adds, commit.removes)
    assert (after.is_changed, [count for _, count in after.deleted], len(after.rows)) == (True, [1], 3)
    assert _core.adds_with_new_rows(store, commit.adds, commit.removes).num_rows == 0
    # The rows that the second commit deleted are distinguished from those of the first.
    DeltaTable(tmp_path).delete("id = 6")
    commit = _core.read_commit(store, 2, f"_delta_log/{2:020}.json")
    after = _core.rebase_rows(store, after.files, after.rows, commit.adds, commit.removes)
    assert [count for _, count in after.deleted] == [1]
    DeltaTable(tmp_path).restore(1)
    commit = _core.read_commit(store, 3, f"_delta_log/{3:020}.json")
    assert _core.adds_with_new_rows(store, commit.adds, commit.removes).num_rows == 1
    assert _core.rebase_rows(store, after.files, after.rows, commit.adds, commit.removes).deleted == []
    DeltaTable(tmp_path).optimize.purge()
    commit = _core.read_commit(store, 4, f"_delta_log/{4:020}.json")
    gone = _core.rebase_rows(store, after.files, after.rows, commit.adds, commit.removes)
    assert ([count for _, count in gone.deleted], gone.files.num_rows, len(gone.rows)) == ([1], 0, 0)
