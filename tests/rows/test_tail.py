"""Following a table without Spark. Rules: delta-spark's DeltaSourceSuite, DeltaSourceDeletionVectorsSuite,
DeltaCDCStreamSuite and DeltaSourceOffsetSuite."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deltaic
from deltaic import DeltaTable, TailBatch
from deltaic.errors import InvalidArgumentError, SchemaMismatchError, VersionNotFoundError
from deltaic.log.history import moment
from deltaic.log.stream import TableStream
from deltaic.log.stream_offset import StreamOffset
from deltaic.log.stream_options import StreamOptions
from single_rows import VECTORS, appended, rows

KILLS = int(os.environ.get("DELTAIC_STREAM_KILLS", "2"))


def ids(batches: Iterable[TailBatch]) -> list[list[int]]:
    return [batch.rows.to_arrow()["id"].to_pylist() for batch in batches]


def all_ids(batches: Iterable[TailBatch]) -> list[int]:
    return sorted(number for batch in ids(batches) for number in batch)


def place(offset: str) -> tuple[int, int, bool]:
    values = json.loads(offset)
    return values["reservoirVersion"], values["index"], values["isStartingVersion"]


def test_offsets_are_those_of_delta_spark() -> None:
    text = '{"sourceVersion":1,"reservoirId":"a","reservoirVersion":3,"index":-1,"isStartingVersion":false}'
    assert StreamOffset.parse(text, "a") == StreamOffset("a", 3)
    assert StreamOffset("a", 3).json() == text
    assert StreamOffset.parse(text.replace(":1,", ":3,").replace("-1", "-100"), "a") == StreamOffset("a", 3)
    barrier = text.replace(":1,", ":3,").replace("-1", "-20")
    assert StreamOffset.parse(barrier, "a").json() == barrier


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("nothing", "DELTA_INVALID_SOURCE_OFFSET_FORMAT"),
        ("[]", "DELTA_INVALID_SOURCE_OFFSET_FORMAT"),
        (
            '{"sourceVersion":1,"reservoirId":"a","reservoirVersion":"3","index":0,"isStartingVersion":true}',
            "OFFSET_FORMAT",
        ),
        (
            '{"sourceVersion":4,"reservoirId":"a","reservoirVersion":3,"index":0,"isStartingVersion":true}',
            "FORMAT_FROM_SOURCE_VERSION",
        ),
        (
            '{"sourceVersion":2,"reservoirId":"a","reservoirVersion":3,"index":0,"isStartingVersion":true}',
            "DELTA_INVALID_SOURCE_VERSION",
        ),
        (
            '{"sourceVersion":1,"reservoirId":"b","reservoirVersion":3,"index":0,"isStartingVersion":true}',
            "DIFFERENT_DELTA_TABLE_READ",
        ),
    ],
)
def test_what_is_no_offset_of_the_table_is_refused(text: str, condition: str) -> None:
    with pytest.raises(InvalidArgumentError, match=condition):
        StreamOffset.parse(text, "a")


def test_a_table_that_replaces_another_ends_the_stream(tmp_path: Path) -> None:
    """DeltaSourceBase.checkReadIncompatibleSchemaChanges: the id of the table, before rows that are gone."""
    table = appended(tmp_path / "t", 2)
    tail = table.tail(start="earliest", poll=None)
    assert all_ids([next(tail)]) == [0, 1]
    log = tmp_path / "t" / "_delta_log"
    first = (log / f"{0:020}.json").read_text().splitlines()
    replaced = [line.replace(table.metadata.id, "another-id") for line in first if '"metaData"' in line]
    (log / f"{2:020}.json").write_text("\n".join(replaced))
    with pytest.raises(InvalidArgumentError, match="DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE"):
        next(tail)


def test_the_snapshot_comes_first_from_the_oldest_file_on(tmp_path: Path) -> None:
    table = appended(tmp_path / "t", 3)
    files = table.files().to_arrow().sort_by([("modification_time", "ascending"), ("path", "ascending")])
    order = files["path"].to_pylist()
    wanted = [pq.read_table(tmp_path / "t" / name)["id"].to_pylist() for name in order]
    tail = table.tail(start="earliest", max_files=1, poll=None)
    appended(tmp_path / "t", 2, 3)
    assert place(tail.offset) == (2, -1, True)
    found = list(tail)
    assert ids(found) == [*wanted, [3], [4]]
    assert [place(batch.offset) for batch in found] == [
        (2, 0, True),
        (2, 1, True),
        (3, -1, False),
        (4, -1, False),
        (5, -1, False),
    ]


def test_a_commit_of_many_files_is_divided(tmp_path: Path) -> None:
    table = appended(tmp_path / "t", 1, partition_by="p")
    tail = table.tail(max_files=2, poll=None)
    deltaic.write(table, rows(1, 2, 3, 4, 5), mode="append")
    found = list(tail)
    assert [place(batch.offset)[1] for batch in found] == [1, 3, -1]
    assert all_ids(found) == [1, 2, 3, 4, 5]


def test_bytes_bound_a_batch_and_one_file_is_always_there(tmp_path: Path) -> None:
    table = appended(tmp_path / "t", 4)
    size = max(table.files().to_arrow()["size"].to_pylist())
    assert [len(batch) for batch in ids(table.tail(start="earliest", max_bytes=1, poll=None))] == [1, 1, 1, 1]
    assert [len(batch) for batch in ids(table.tail(start="earliest", max_bytes=size + 1, poll=None))] == [
        2,
        2,
    ]
    assert [
        len(batch) for batch in ids(table.tail(start="earliest", max_bytes=10**9, max_files=3, poll=None))
    ] == [3, 1]


def test_it_starts_where_it_is_told(tmp_path: Path) -> None:
    table = appended(tmp_path / "t", 5)
    assert ids(table.tail(poll=None)) == []
    assert ids(table.at(2).tail(poll=None)) == [[3, 4]]
    assert ids(table.tail(start=1, poll=None)) == [[1, 2, 3, 4]]
    for number in range(5):
        path = tmp_path / "t" / "_delta_log" / f"{number:020}.json"
        os.utime(path, (1_000_000 + number, 1_000_000 + number))
    assert ids(table.tail(start=moment(1_000_003_000), poll=None)) == [[3, 4]]
    assert ids(table.tail(start=moment(1_000_002_500), poll=None)) == [[3, 4]]
    with pytest.raises(VersionNotFoundError, match="after the last version"):
        table.tail(start=moment(2_000_000_000))
    with pytest.raises(VersionNotFoundError, match="DELTA_VERSION_NOT_FOUND"):
        table.tail(start=5)


@pytest.mark.parametrize(
    "options",
    [
        {"start": "now"},
        {"start": True},
        {"max_files": 0},
        {"max_bytes": "1"},
        {"poll": -1},
        {"exclude_regex": "("},
        {"offset": "{}"},
    ],
)
def test_wrong_arguments_are_named(tmp_path: Path, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError):
        appended(tmp_path / "t", 1).tail(**options)


@pytest.mark.parametrize(
    "properties", [VECTORS, {"delta.enableDeletionVectors": False}], ids=["vectors", "files"]
)
def test_commits_that_remove_rows(tmp_path: Path, properties: dict[str, Any]) -> None:
    table = deltaic.write(tmp_path / "t", rows(1, 2, 3), properties=properties)
    table.delete("id = 2")
    deltaic.write(table, rows(4), mode="append")
    with pytest.raises(InvalidArgumentError, match="DELTA_SOURCE_TABLE_IGNORE_CHANGES"):
        next(table.tail(start=0, poll=None))
    with pytest.raises(InvalidArgumentError, match="DELTA_SOURCE_TABLE_IGNORE_CHANGES"):
        next(table.tail(start=0, poll=None, ignore_deletes=True))
    assert ids(table.tail(start=0, poll=None, skip_change_commits=True)) == [[1, 2, 3, 4]]
    assert ids(table.tail(start=0, poll=None, ignore_changes=True)) == [[1, 2, 3, 1, 3, 4]]
    assert all_ids(table.tail(start="earliest", poll=None)) == [1, 3, 4]
    table.delete("id < 4")
    with pytest.raises(InvalidArgumentError, match="DELTA_SOURCE_IGNORE_DELETE"):
        next(table.tail(start=3, poll=None))
    assert ids(table.tail(start=3, poll=None, ignore_deletes=True)) == []


def test_what_only_rearranges_says_nothing(tmp_path: Path) -> None:
    table = appended(tmp_path / "t", 4, properties=VECTORS)
    tail = table.tail(start="earliest", max_files=1, poll=None)
    first = next(tail)
    table.optimize.compact()
    table.vacuum(retention=timedelta(0), enforce_retention=False, dry_run=True)
    table.alter.set_properties({"of.mine": "1"})
    appended(tmp_path / "t", 1, 4)
    assert all_ids([first, *tail]) == [0, 1, 2, 3, 4]


def test_a_schema_change_ends_it_and_a_new_one_goes_on(tmp_path: Path) -> None:
    table = appended(tmp_path / "t", 2)
    tail = table.tail(poll=None)
    old = DeltaTable(tmp_path / "t").tail(start=0, poll=None)
    table.alter.add_columns("n int")
    deltaic.write(table, pa.table({"id": [7], "p": [7], "n": pa.array([1], pa.int32())}), mode="append")
    with pytest.raises(SchemaMismatchError, match=r"DELTA_SCHEMA_CHANGED_WITH_VERSION.*version 2"):
        next(tail)
    with pytest.raises(SchemaMismatchError, match="DELTA_SCHEMA_CHANGED_WITH_STARTING_OPTIONS"):
        next(old)
    (batch,) = DeltaTable(tmp_path / "t").tail(offset=tail.offset, poll=None)
    assert batch.rows.to_pylist() == [{"id": 7, "p": 7, "n": 1}]
    older = DeltaTable(tmp_path / "t").tail(start=0, poll=None)
    assert [(row["id"], row["n"]) for row in next(older).rows] == [(0, None), (1, None), (7, 1)]


def test_columns_that_are_renamed_or_dropped_end_it(tmp_path: Path) -> None:
    """DeltaSourceBase.checkReadIncompatibleSchemaChanges: before the start, and while the stream runs."""
    table = appended(tmp_path / "t", 2, properties={"delta.columnMapping.mode": "name"})
    condition = "DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG"
    running = DeltaTable(tmp_path / "t").tail(start="earliest", poll=None)
    next(running)
    table.alter.drop_columns("p")
    deltaic.write(table, {"id": [7]}, mode="append")
    with pytest.raises(SchemaMismatchError, match=f"{condition}.*column p is dropped"):
        next(running)
    table.alter.rename_column("id", "number")
    with pytest.raises(SchemaMismatchError, match=f"{condition}.*column id is now number"):
        next(table.tail(start=0, poll=None))


def test_commits_that_are_gone(tmp_path: Path) -> None:
    table = appended(tmp_path / "t", 6)
    tail = table.tail(start=1, max_files=1, poll=None)
    first = next(tail)
    table.checkpoint()
    for version in range(4):
        (tmp_path / "t" / "_delta_log" / f"{version:020}.json").unlink()
    with pytest.raises(VersionNotFoundError, match="DELTA_MISSING_FILES_UNEXPECTED_VERSION"):
        next(tail)
    assert ids(table.tail(offset=first.offset, fail_on_data_loss=False, poll=None)) == [[4, 5]]


def test_the_commit_at_the_start_is_gone(tmp_path: Path) -> None:
    """It is lost if an older commit is there, as in delta-spark. Else the version is too old. A version after
    it need not be readable (DeltaSourceFastDropFeatureSuite: "Protocol validations supress errors when
    snapshot cannot be reconstructed")."""
    table = appended(tmp_path / "t", 6)
    table.checkpoint()
    log = tmp_path / "t" / "_delta_log"
    (log / f"{2:020}.json").unlink()
    with pytest.raises(VersionNotFoundError, match="DELTA_MISSING_FILES_UNEXPECTED_VERSION"):
        next(table.tail(start=2, poll=None))
    assert ids(table.tail(start=2, fail_on_data_loss=False, poll=None)) == [[3, 4, 5]]
    assert ids(table.tail(start=3, poll=None)) == [[3, 4, 5]]
    for version in (0, 1):
        (log / f"{version:020}.json").unlink()
    with pytest.raises(VersionNotFoundError, match="DELTA_VERSION_NOT_FOUND"):
        next(table.tail(start=2, fail_on_data_loss=False, poll=None))


def test_files_are_left_out_by_their_paths(tmp_path: Path) -> None:
    table = appended(tmp_path / "t", 1, partition_by="p")
    deltaic.write(table, rows(1, 2, 3), mode="append")
    assert all_ids(table.tail(start="earliest", exclude_regex="p=[13]/", poll=None)) == [0, 2]


def test_a_table_made_again_is_another_one(tmp_path: Path) -> None:
    offset = appended(tmp_path / "t", 1).tail().offset
    other = appended(tmp_path / "other", 1)
    with pytest.raises(InvalidArgumentError, match="DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE"):
        other.tail(offset=offset)


def test_a_replaced_table_is_another_one_until_it_is_restored(tmp_path: Path) -> None:
    """REPLACE TABLE gives a new id, RESTORE the id of the version (delta-spark 4.4.0)."""
    table = appended(tmp_path / "t", 1)
    offset, former = table.tail().offset, table.metadata
    replaced = deltaic.DeltaTable.create(tmp_path / "t", table.schema, mode="overwrite")
    with pytest.raises(InvalidArgumentError, match="DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE"):
        replaced.tail(offset=offset)
    deltaic.sql(f"CREATE OR REPLACE TABLE delta.`{tmp_path / 't'}` AS SELECT 1L AS id")
    with pytest.raises(InvalidArgumentError, match="DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE"):
        replaced.at().tail(offset=offset)
    replaced.refresh()
    replaced.restore(0)
    assert (replaced.metadata.id, replaced.metadata.created_time) == (former.id, former.created_time)
    replaced.tail(offset=offset)


@pytest.mark.parametrize("mapping", ["none", "name"])
def test_changes_come_with_the_snapshot_as_inserts(tmp_path: Path, mapping: str) -> None:
    properties = {"delta.enableChangeDataFeed": True, "delta.columnMapping.mode": mapping, **VECTORS}
    table = deltaic.write(tmp_path / "t", pa.table({"id": [1, 2], "n": [1, 2]}), properties=properties)
    deltaic.write(table, pa.table({"id": [3], "n": [3]}), mode="append")
    tail = table.tail(start="earliest", changes=True, max_files=1, poll=None)
    table.update({"n": "n + 10"}, "id = 2")
    table.delete("id = 1")
    deltaic.write(table, pa.table({"id": [4], "n": [4]}), mode="append")
    found = [[tuple(row.values()) for row in batch.rows.to_pylist()] for batch in tail]
    assert [sorted(row[:4] for row in batch) for batch in found] == [
        [(1, 1, "insert", 1), (2, 2, "insert", 1)],
        [(3, 3, "insert", 1)],
        [(2, 2, "update_preimage", 2), (2, 12, "update_postimage", 2)],
        [(1, 1, "delete", 3)],
        [(4, 4, "insert", 4)],
    ]
    whole = table.changes(2).to_pylist()
    times = {row["_commit_version"]: row["_commit_timestamp"] for row in whole}
    assert {row[3]: row[4] for batch in found[2:] for row in batch} == times
    (together,) = table.tail(start="earliest", changes=True, poll=None)
    assert together.rows.count() == len(together.rows.to_arrow())
    assert sorted(
        map(repr, table.tail(start=2, changes=True, poll=None).__next__().rows.to_pylist())
    ) == sorted(map(repr, whole))


def test_changes_continue_after_a_batch_of_delta_spark(tmp_path: Path) -> None:
    """delta-spark ends a batch that ends with an UPDATE at the number of the commit's last file, not at the
    next version."""
    properties = {"delta.enableChangeDataFeed": True}
    table = deltaic.write(
        tmp_path / "t", pa.table({"id": [1, 2], "p": [1, 2]}), partition_by="p", properties=properties
    )
    table.update({"id": "id + 10"}, "true")
    deltaic.write(table, pa.table({"id": [3], "p": [3]}), mode="append")
    change_files = list((tmp_path / "t" / "_change_data").rglob("*.parquet"))
    assert len(change_files) == 2
    end = StreamOffset(table.metadata.id, 1, len(change_files) - 1)
    assert ids(table.tail(offset=end.json(), changes=True, poll=None)) == [[3]]
    stream = TableStream(DeltaTable(tmp_path / "t")._snapshot, StreamOptions(changes=True))
    files = stream.batch(StreamOffset(table.metadata.id, 1), end)
    assert files.recorded is not None
    assert files.recorded.num_rows == len(change_files)
    within = StreamOffset(table.metadata.id, 1, 0)
    for wrong in (lambda: stream.next(within, None), lambda: stream.batch(within, end)):
        with pytest.raises(InvalidArgumentError, match="the offset is within a commit"):
            wrong()


def test_a_table_without_the_feed_has_no_changes(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="DELTA_MISSING_CHANGE_DATA"):
        appended(tmp_path / "t", 1).tail(changes=True)


def test_each_row_once_across_restarts(tmp_path: Path) -> None:
    """A follower that stops after any batch, under other limits each time, while the table changes."""
    chance = random.Random(5)
    table = appended(tmp_path / "t", 3, properties=VECTORS)
    seen: list[int] = []
    number = 3
    offset = table.tail(start="earliest").offset
    while number < 60:
        for _ in range(chance.randrange(4)):
            count = chance.randrange(1, 4)
            deltaic.write(
                tmp_path / "t", rows(*range(number, number + count)), mode="append", target_file_size=1
            )
            number += count
        if chance.random() < 0.3:
            DeltaTable(tmp_path / "t").optimize.compact()
        tail = DeltaTable(tmp_path / "t").tail(offset=offset, max_files=chance.randrange(1, 4), poll=None)
        for batch in tail:
            seen += batch.rows.to_arrow()["id"].to_pylist()
            offset = batch.offset
            if chance.random() < 0.4:
                break
    for batch in DeltaTable(tmp_path / "t").tail(offset=offset, poll=None):
        seen += batch.rows.to_arrow()["id"].to_pylist()
    assert sorted(seen) == list(range(number))


FOLLOWER = """
import json, os, sys
import deltaic
table, kept = sys.argv[1:]
state = json.load(open(kept)) if os.path.exists(kept) else {"offset": None, "ids": []}
for batch in deltaic.DeltaTable(table).tail(start="earliest", offset=state["offset"], max_files=2, poll=0.01):
    state = {"offset": batch.offset, "ids": state["ids"] + batch.rows.to_arrow()["id"].to_pylist()}
    with open(kept + ".new", "w") as file:
        json.dump(state, file)
    os.replace(kept + ".new", kept)
"""


def test_each_row_once_though_the_follower_is_killed(tmp_path: Path) -> None:
    """kill -9 at random moments; the follower keeps rows and offset in one file."""
    chance = random.Random(9)
    table = appended(tmp_path / "t", 2)
    kept = tmp_path / "state.json"
    number, deadline = 2, time.monotonic() + 60 * KILLS
    for _ in range(KILLS):
        child = subprocess.Popen([sys.executable, "-c", FOLLOWER, table.location, str(kept)])
        before = kept.stat().st_mtime_ns if kept.exists() else 0
        appended(tmp_path / "t", 5, number)
        number += 5
        while time.monotonic() < deadline and (not kept.exists() or kept.stat().st_mtime_ns == before):
            time.sleep(0.01)
        time.sleep(chance.random() / 10)
        child.send_signal(signal.SIGKILL)
        child.wait()
    state = json.loads(kept.read_text())
    rest = all_ids(DeltaTable(table.location).tail(offset=state["offset"], poll=None))
    assert sorted(state["ids"] + rest) == list(range(number))
