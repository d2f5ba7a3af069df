"""Streams from tables: the version or time at which they start, and commits or checkpoints that are missing
in the log. Each test has the behaviour of the tests of delta-spark's DeltaSourceSuite that its docstring or
its parameters name."""

from __future__ import annotations

import json
import os
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from collector import Collector, commit_file, failure

import deltaic
from deltaic import DeltaTable
from deltaic.errors import InvalidArgumentError, ProtocolError
from deltaic.log.stream import TableStream
from deltaic.log.stream_offset import StreamOffset
from deltaic.log.stream_options import StreamOptions
from single_rows import appended, rows
from spark_session import setting, with_jvm

FIRST = datetime(2020, 7, 14, 23, 50, tzinfo=timezone.utc).timestamp()
"""Seconds since 1970 of the first commit of `timed`."""
MINUTE = 60
STRICT = "spark.databricks.delta.timeTravel.parsing.strict"


@pytest.fixture
def session(session: Any) -> Any:
    return with_jvm(session)


def timed(table: Path, *minutes: int) -> None:
    """Sets the time of each commit, in minutes after FIRST."""
    for version, after in enumerate(minutes):
        os.utime(commit_file(table, version), (FIRST + after * MINUTE,) * 2)


def without_checkpoints(table: Path) -> None:
    for path in (table / "_delta_log").glob("*.checkpoint*"):
        path.unlink()


@pytest.mark.parametrize(("start", "ids"), [(0, [0, 1]), (1, [1])])
def test_it_starts_with_a_version(collector: Collector, tmp_path: Path, start: int, ids: list[int]) -> None:
    """DeltaSourceSuite: "startingVersion"."""
    appended(tmp_path / "t", 2)
    assert collector.run(tmp_path / "t", startingVersion=start) == [ids]


def test_a_version_that_cannot_be_the_start(session: Any, tmp_path: Path) -> None:
    """DeltaSourceSuite: "startingVersion". Version 1 alone cannot be read after version 0 is gone, but its
    commit can."""
    table = appended(tmp_path / "t", 2)
    for value in ("-1", "foo", " 1", "LATEST", str(2**63)):
        with pytest.raises(InvalidArgumentError, match="startingVersion") as raised:
            session.readStream.format("delta").option("startingVersion", value).load(str(tmp_path / "t"))
        error: Any = raised.value
        assert error.getCondition() == "DELTA_ILLEGAL_OPTION"
    missing = failure(lambda: Collector(session, tmp_path / "a").run(tmp_path / "t", startingVersion=2))
    assert (missing.getCondition(), missing.getSqlState()) == ("DELTA_VERSION_NOT_FOUND", "22003")
    table.alter.set_properties({"delta.enableExpiredLogCleanup": "false"})
    DeltaTable(tmp_path / "t").checkpoint()
    commit_file(tmp_path / "t", 0).unlink()
    missing = failure(lambda: Collector(session, tmp_path / "b").run(tmp_path / "t", startingVersion=0))
    assert missing.getCondition() == "DELTA_VERSION_NOT_FOUND"
    assert Collector(session, tmp_path / "c").run(tmp_path / "t", startingVersion=1) == [[1]]


@pytest.mark.parametrize("tracked", [True, False])
def test_a_restart_ignores_the_start(session: Any, tmp_path: Path, tracked: bool) -> None:
    """DeltaSourceSuite: "startingVersion should be ignored when restarting from a checkpoint,
    withRowTracking = true", "withRowTracking = false"."""
    collector, path = Collector(session, tmp_path), tmp_path / "t"
    appended(path, 2, properties={"delta.enableRowTracking": tracked})
    assert collector.run(path, startingVersion=1) == [[1]]
    appended(path, 1, 2).checkpoint()
    assert collector.run(path, startingVersion=1) == [[2]]
    appended(path, 1, 3)
    for version in (0, 1):
        commit_file(path, version).unlink()
    assert collector.run(path, startingVersion=1) == [[3]]
    error = failure(lambda: Collector(session, tmp_path / "new").run(path, startingVersion=1))
    assert error.getCondition() == "DELTA_VERSION_NOT_FOUND"
    assert "2 to 3" in str(error)


def test_it_starts_with_a_time(session: Any, tmp_path: Path) -> None:
    """DeltaSourceSuite: "startingTimestamp". The first commit at or after the time is the first one that is
    read."""
    path = tmp_path / "t"
    appended(path, 2)
    timed(path, 0, 20)

    def ids(start: str) -> list[int]:
        ((*found,),) = Collector(session, tmp_path / start).run(path, startingTimestamp=start)
        return found

    for start in ("2020-07-14", "2020-07-14 23:50:00"):
        assert ids(start) == [0, 1]
    for start in ("2020-07-14 23:50:01", "2020-07-15", "2020-07-15 00:10:00"):
        assert ids(start) == [1]
    late = failure(lambda: ids("2020-07-15 00:10:01"))
    assert (late.getCondition(), late.getSqlState()) == ("DELTA_TIMESTAMP_GREATER_THAN_COMMIT", "42816")
    with pytest.raises(InvalidArgumentError) as raised:
        ids("i am not a timestamp")
    error: Any = raised.value
    assert (error.getCondition(), error.getSqlState()) == ("DELTA_TIMESTAMP_INVALID", "42816")
    assert error.getMessageParameters() == {"expr": "'i am not a timestamp'"}
    with setting(session, STRICT, "false"):
        assert ids("i am not a timestamp") == [0, 1]
    DeltaTable(path).checkpoint()
    commit_file(path, 0).unlink()
    assert Collector(session, tmp_path / "gone").run(path, startingTimestamp="2020-07-14") == [[1]]


def test_a_time_before_the_commits_had_times_of_their_own(collector: Collector, tmp_path: Path) -> None:
    """DeltaSourceSuite: "startingTimestamp with mid-history ICT". The start is after the time of the file of
    version 4, but before the in-commit timestamp of version 3, which is the first one that has one."""
    path = tmp_path / "t"
    appended(path, 3).alter.set_properties({"delta.enableInCommitTimestamps": "true"})
    appended(path, 2, 4)
    timed(path, 0, 20, 40, 60, 80, 100)
    for version, hours in ((3, 2), (4, 3), (5, 4)):
        times = commit_file(path, version).stat()
        lines = [json.loads(line) for line in commit_file(path, version).read_text().splitlines()]
        stamp = int((FIRST + hours * 60 * MINUTE) * 1000)
        for line in lines:
            if "commitInfo" in line:
                line["commitInfo"]["inCommitTimestamp"] = stamp
            enabled = line.get("metaData", {}).get("configuration", {})
            if "delta.inCommitTimestampEnablementTimestamp" in enabled:
                enabled["delta.inCommitTimestampEnablementTimestamp"] = str(stamp)
        commit_file(path, version).write_text("".join(json.dumps(line) + "\n" for line in lines))
        commit_file(path, version).with_suffix(".crc").unlink()
        os.utime(commit_file(path, version), (times.st_atime, times.st_mtime))
    start = datetime.fromtimestamp(FIRST + 81 * MINUTE, timezone.utc)
    assert collector.run(path, startingTimestamp=f"{start:%Y-%m-%d %H:%M:%S}") == [[4, 5]]


def test_a_version_and_a_time_exclude_each_other(session: Any, tmp_path: Path) -> None:
    """DeltaSourceSuite: "startingVersion and startingTimestamp are both set"."""
    appended(tmp_path / "t", 1)
    reader = session.readStream.format("delta").options(startingVersion=0, startingTimestamp="2020-07-15")
    with pytest.raises(InvalidArgumentError) as raised:
        reader.load(str(tmp_path / "t"))
    error: Any = raised.value
    assert error.getCondition() == "DELTA_STARTING_VERSION_AND_TIMESTAMP_BOTH_SET"


@pytest.mark.parametrize("option", [{"endingVersion": 1}, {"endingTimestamp": "1970-01-01 00:00:02"}])
def test_a_stream_has_no_end(collector: Collector, tmp_path: Path, option: dict[str, Any]) -> None:
    """DeltaSourceSuite: "batch-only options are ignored in streaming"."""
    appended(tmp_path / "t", 2)
    with collector.running(collector.frame(tmp_path / "t", startingVersion=0, **option)) as more:
        assert more() == [[0, 1]]
        appended(tmp_path / "t", 1, 2)
        assert more() == [[2]]


def test_columns_that_came_after_the_start_are_null(session: Any, tmp_path: Path) -> None:
    """DeltaSourceSuite: "startingVersion: user defined start works with mergeSchema"."""
    for version in range(3):
        columns = {name: [version] for name in ("id", "id2", "id3")[: version + 1]}
        deltaic.write(tmp_path / "t", columns, mode="append", schema_mode="merge")
    collector = Collector(session, tmp_path, "id", "id2", "id3")
    assert collector.run(tmp_path / "t", startingVersion=1) == [[(1, 1, None), (2, 2, 2)]]


@pytest.mark.parametrize(
    "count",
    [
        pytest.param(2, id="startingVersion latest"),
        pytest.param(0, id="startingVersion latest works on defined but empty table"),
    ],
)
def test_the_latest_version_has_no_rows_of_its_own(collector: Collector, tmp_path: Path, count: int) -> None:
    deltaic.write(tmp_path / "t", rows(*range(count)))
    with collector.running(collector.frame(tmp_path / "t", startingVersion="latest")) as more:
        assert more() == []
        appended(tmp_path / "t", 1, 5)
        assert more() == [[5]]
        appended(tmp_path / "t", 2, 6)
        assert [number for batch in more() for number in batch] == [6, 7]


def test_the_latest_version_is_that_of_the_query(collector: Collector, tmp_path: Path) -> None:
    """DeltaSourceSuite: "startingVersion latest defined before started", "startingVersion latest calls update
    when starting"."""
    appended(tmp_path / "t", 1)
    frame = collector.frame(tmp_path / "t", startingVersion="latest")
    appended(tmp_path / "t", 1, 1)
    with collector.running(frame) as more:
        assert more() == []
        appended(tmp_path / "t", 1, 2)
        assert more() == [[2]]


def test_a_version_is_divided_by_a_limit(collector: Collector, tmp_path: Path) -> None:
    """DeltaSourceSuite: "startingVersion should work with rate time"."""
    for first in (0, 2):
        deltaic.write(tmp_path / "t", rows(first, first + 1), mode="append", partition_by="p")
    batches = collector.run(tmp_path / "t", startingVersion=1, maxFilesPerTrigger=1)
    assert sorted(batches) == [[2], [3]]
    assert collector.ends == [(1, 0, False), (2, -1, False)]


def test_commits_after_the_start_of_a_query_that_starts_with_a_version(
    collector: Collector, tmp_path: Path
) -> None:
    """DeltaSourceSuite: "startingVersion specific version: new commits arrive after stream
    initialization"."""
    appended(tmp_path / "t", 2)
    frame = collector.frame(tmp_path / "t", startingVersion=1, maxFilesPerTrigger=1)
    with collector.running(frame) as more:
        assert more() == [[1]]
        appended(tmp_path / "t", 2, 2)
        assert more() == [[2], [3]]


@pytest.mark.parametrize("limit", [None, 3])
@pytest.mark.parametrize("changes", [False, True])
def test_the_last_commit_of_a_batch_is_missing(
    collector: Collector, tmp_path: Path, changes: bool, limit: int | None
) -> None:
    """DeltaSourceSuite: "fail on missing trailing commit - trailing commit disappears between latestOffset
    and getBatch", with and without readChangeFeed and midVersionEndOffset. The query ended after it wrote the
    offset of the batch, which is within version 2 if there is a limit."""
    path = tmp_path / "t"
    table = appended(path, 2, properties={"delta.enableChangeDataFeed": changes}, partition_by="p")
    deltaic.write(path, rows(2, 3, 4), mode="append")
    options = {"startingVersion": 0, "readChangeFeed": changes}
    if limit is not None:
        options["maxFilesPerTrigger"] = limit
    collector.run(path, **options)
    assert collector.ends[0] == ((3, -1, False) if limit is None else (2, 0, False))
    for folder in ("offsets", "commits"):
        for entry in (tmp_path / "checkpoint" / folder).iterdir():
            if folder == "commits" or entry.name.strip(".").split(".")[0] != "0":
                entry.unlink()
    table = DeltaTable(path)
    table.checkpoint()
    commit_file(path, 2).unlink()
    before = len(collector.batches)
    error = failure(lambda: collector.run(path, **options))
    assert error.getCondition() == "DELTA_MISSING_FILES_UNEXPECTED_VERSION"
    assert len(collector.batches) == before


@pytest.mark.parametrize("changes", [False, True])
def test_a_batch_between_equal_offsets_is_empty(tmp_path: Path, changes: bool) -> None:
    """DeltaSourceSuite: "fail on missing trailing commit - empty batch from startIndex >= endIndex is not a
    false positive", with and without readChangeFeed."""
    path = tmp_path / "t"
    appended(path, 2, properties={"delta.enableChangeDataFeed": changes}, partition_by="p")
    deltaic.write(path, rows(2, 3, 4), mode="append")
    snapshot = DeltaTable(path)._snapshot
    stream = TableStream(snapshot, StreamOptions(start=0, changes=changes))
    at = StreamOffset(snapshot.metadata.id, 2, 1)
    files = stream.batch(at, at)
    assert files.added.num_rows == 0
    assert all(table is None or table.num_rows == 0 for table in (files.derived, files.recorded))


@pytest.mark.parametrize(
    "gone",
    [
        pytest.param(1, id="incremental: first commit file missing"),
        pytest.param(2, id="incremental: commit file gap between versions"),
    ],
)
def test_a_commit_is_missing(collector: Collector, tmp_path: Path, gone: int) -> None:
    """Each case without options, where the query fails, and with failOnDataLoss=false, where it goes on."""
    path = tmp_path / "t"
    appended(path, 1)
    assert collector.run(path) == [[0]]
    appended(path, 3, 1).checkpoint()
    commit_file(path, gone).unlink()
    error = failure(lambda: collector.run(path))
    assert (error.getCondition(), error.getSqlState()) == ("DELTA_MISSING_FILES_UNEXPECTED_VERSION", "42K03")
    for part in (f"version {gone}", f"version {gone + 1}", "failOnDataLoss"):
        assert part in str(error)
    left = [number for number in (1, 2, 3) if number != gone]
    assert collector.run(path, failOnDataLoss=False) == [left]


def test_a_snapshot_of_what_is_left_of_the_log(session: Any, tmp_path: Path) -> None:
    """DeltaSourceSuite: "initial snapshot: commit file missing but checkpoint intact, succeeds", "initial
    snapshot: checkpoint missing but all commit files intact, succeeds", "initial snapshot: both checkpoint
    and commit file missing, fails"."""
    paths = [tmp_path / name for name in ("checkpoint alone", "commits alone", "neither")]
    for path in paths:
        appended(path, 4).checkpoint()
        if path != paths[0]:
            without_checkpoints(path)
        if path != paths[1]:
            commit_file(path, 1).unlink()
    for path in paths[:2]:
        assert Collector(session, tmp_path / f"of {path.name}").run(path) == [[0, 1, 2, 3]]
    with pytest.raises(ProtocolError, match="commit 1 is missing") as raised:
        Collector(session, tmp_path / "of neither").run(paths[2])
    error: Any = raised.value
    assert (error.getCondition(), error.getSqlState()) == ("DELTA_MISSING_PART_FILES", "42KD6")
    assert error.getMessageParameters() == {"version": "3"}


def test_the_initial_snapshot_is_gone(collector: Collector, tmp_path: Path) -> None:
    """DeltaSourceSuite: "initial snapshot: log retention deletes old checkpoint and commit files mid-stream,
    restart fails"."""
    path = tmp_path / "t"
    appended(path, 4)
    collector.run(path, maxFilesPerTrigger=1)
    for folder in ("offsets", "commits"):
        for entry in (tmp_path / "checkpoint" / folder).iterdir():
            if entry.name.strip(".").split(".")[0] not in ("0", "1"):
                entry.unlink()
    collector.batches.clear()
    appended(path, 4, 4).checkpoint()
    for version in range(4):
        commit_file(path, version).unlink()
    error = failure(lambda: collector.run(path, maxFilesPerTrigger=1))
    assert error.getCondition() == "DELTA_LOG_FILE_NOT_FOUND_FOR_STREAMING_SOURCE"
    assert collector.batches == []


@pytest.mark.parametrize(
    "count",
    [
        pytest.param(0, id="initial snapshot: checkpoint resume produces all rows without duplicates"),
        pytest.param(3, id="initial snapshot: checkpoint resume after new commits produces all rows"),
    ],
)
def test_the_initial_snapshot_goes_on_after_a_restart(
    collector: Collector, tmp_path: Path, count: int
) -> None:
    """The first query ends within the snapshot, which a later one finishes before it reads new commits."""
    path = tmp_path / "t"
    appended(path, 5)

    def stop(batch: Any, number: int) -> None:
        raise ValueError("stopped")

    writer = collector.frame(path, maxFilesPerTrigger=2).writeStream.foreachBatch(stop)
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    failure(lambda: query.awaitTermination(60))
    if count:
        appended(path, count, 5)
    batches = collector.run(path, maxFilesPerTrigger=2)
    assert sorted(number for batch in batches for number in batch) == list(range(5 + count))
    assert [len(batch) for batch in batches[:2]] == [2, 2]
    assert all(number < 5 for batch in batches[:2] for number in batch)


def test_the_initial_snapshot_ends_a_query_that_reads_what_is_there(
    collector: Collector, tmp_path: Path
) -> None:
    """DeltaSourceSuite: "initial snapshot: Trigger.AvailableNow processes all data and terminates", "start
    from corrupt checkpoint"."""
    appended(tmp_path / "t", 5).checkpoint()
    appended(tmp_path / "t", 1, 5)
    without_checkpoints(tmp_path / "t")
    assert collector.run(tmp_path / "t") == [[0, 1, 2, 3, 4, 5]]
