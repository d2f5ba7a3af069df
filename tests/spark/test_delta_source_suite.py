"""Streams from tables: limits of batches, offsets, and commits that change rows. Each test has the behaviour
of the tests of delta-spark's DeltaSourceSuite that its docstring or its parameters name."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from collector import Collector, commit, commit_file, end_offset, failure, last_offset

import deltaic
from deltaic import DeltaTable
from deltaic.errors import InvalidArgumentError
from single_rows import appended, rows
from spark_session import with_jvm


@pytest.fixture
def session(session: Any) -> Any:
    return with_jvm(session)


@pytest.mark.parametrize(
    ("count", "options"),
    [
        pytest.param(5, {"maxFilesPerTrigger": 1}, id="maxFilesPerTrigger"),
        pytest.param(12, {"maxFilesPerTrigger": 1}, id="maxFilesPerTrigger: metadata checkpoint"),
        pytest.param(5, {"maxBytesPerTrigger": "1b"}, id="maxBytesPerTrigger: process at least one file"),
        pytest.param(12, {"maxBytesPerTrigger": "1b"}, id="maxBytesPerTrigger: metadata checkpoint"),
        pytest.param(
            3,
            {"maxFilesPerTrigger": 1, "maxBytesPerTrigger": "100gb"},
            id="maxBytesPerTrigger: max bytes and max files together",
        ),
        pytest.param(
            3,
            {"maxFilesPerTrigger": 2, "maxBytesPerTrigger": "1b"},
            id="maxBytesPerTrigger: max bytes and max files together, one byte",
        ),
    ],
)
def test_a_batch_has_one_file(
    collector: Collector, tmp_path: Path, count: int, options: dict[str, Any]
) -> None:
    """After more than ten commits the log has a checkpoint."""
    appended(tmp_path / "t", count)
    with collector.running(collector.frame(tmp_path / "t", **options)) as more:
        assert sorted(more()) == [[number] for number in range(count)]
    assert [each["numInputRows"] for each in collector.progress if each["numInputRows"]] == [1] * count


@pytest.mark.parametrize(
    ("first", "second", "batches"),
    [
        pytest.param(
            {"maxFilesPerTrigger": 1},
            {"maxFilesPerTrigger": 2},
            [[4, 5], [6, 7]],
            id="maxFilesPerTrigger: change and restart",
        ),
        pytest.param(
            {"maxBytesPerTrigger": "1b"},
            {"maxBytesPerTrigger": "100g"},
            [[4, 5, 6, 7]],
            id="maxBytesPerTrigger: change and restart",
        ),
    ],
)
def test_a_limit_changes_with_a_restart(
    collector: Collector,
    tmp_path: Path,
    first: dict[str, Any],
    second: dict[str, Any],
    batches: list[list[int]],
) -> None:
    appended(tmp_path / "t", 4)
    assert sorted(collector.run(tmp_path / "t", **first)) == [[0], [1], [2], [3]]
    appended(tmp_path / "t", 4, 4)
    assert collector.run(tmp_path / "t", **second) == batches


@pytest.mark.parametrize("value", [0, -1, "string", 10**20])
@pytest.mark.parametrize("name", ["maxFilesPerTrigger", "maxBytesPerTrigger"])
def test_a_limit_is_a_positive_number(session: Any, tmp_path: Path, name: str, value: Any) -> None:
    """DeltaSourceSuite: "maxFilesPerTrigger: invalid parameter", "maxBytesPerTrigger: invalid parameter"."""
    appended(tmp_path / "t", 1)
    with pytest.raises(InvalidArgumentError, match=name) as raised:
        session.readStream.format("delta").option(name, value).load(str(tmp_path / "t"))
    error: Any = raised.value
    assert error.getCondition() == "DELTA_ILLEGAL_OPTION"
    assert error.getMessageParameters()["name"] == name


def test_a_query_of_one_batch_has_no_limit(session: Any, tmp_path: Path) -> None:
    """DeltaSourceSuite: "maxFilesPerTrigger: ignored when using Trigger.Once"."""
    for last, name in ((3, "first"), (6, "second")):
        appended(tmp_path / "t", 3, last - 3)
        collector = Collector(session, tmp_path / name)
        frame = collector.frame(tmp_path / "t", maxFilesPerTrigger=1)
        assert collector.run_frame(frame, {"once": True}) == [list(range(last))]


@pytest.mark.parametrize("options", [{"maxFilesPerTrigger": 1}, {"maxBytesPerTrigger": "1b"}])
def test_offsets_of_a_query_that_reads_what_is_there(
    collector: Collector, tmp_path: Path, options: dict[str, Any]
) -> None:
    """DeltaSourceSuite: "maxFilesPerTrigger: Trigger.AvailableNow respects read limits", "maxBytesPerTrigger:
    Trigger.AvailableNow respects read limits", "initial snapshot ends at base index of next version"."""
    appended(tmp_path / "t", 3)
    assert sorted(collector.run(tmp_path / "t", **options)) == [[0], [1], [2]]
    assert collector.ends == [(2, 0, True), (2, 1, True), (3, -1, False)]
    appended(tmp_path / "t", 2, 3)
    assert collector.run(tmp_path / "t", **options) == [[3], [4]]
    assert collector.ends == [(4, -1, False), (5, -1, False)]
    assert collector.run(tmp_path / "t", **options) == []
    (only,) = [each["sources"][0] for each in collector.progress]
    assert only["startOffset"] == only["endOffset"]


def test_a_table_without_rows_ends_a_query_that_reads_what_is_there(
    collector: Collector, tmp_path: Path
) -> None:
    """DeltaSourceSuite: "Trigger.AvailableNow with an empty table"."""
    collector.session.sql(f"CREATE TABLE delta.`{tmp_path / 't'}` (id BIGINT, p BIGINT) USING delta")
    assert collector.run(tmp_path / "t", maxFilesPerTrigger=1) == []
    appended(tmp_path / "t", 1)
    assert collector.run(tmp_path / "t", maxFilesPerTrigger=1) == [[0]]


def test_a_filter_is_applied_to_new_commits_and_after_a_restart(collector: Collector, tmp_path: Path) -> None:
    """DeltaSourceSuite: "basic", "make sure that the delta sources works fine"."""
    frame_of = lambda: collector.frame(tmp_path / "t").where("id % 2 = 0")  # noqa: E731
    deltaic.write(tmp_path / "t", rows(1, 2, 3, 4))
    with collector.running(frame_of()) as more:
        assert more() == [[2, 4]]
    deltaic.write(tmp_path / "t", rows(5, 6), mode="append")
    with collector.running(frame_of()) as more:
        assert more() == [[6]]
        deltaic.write(tmp_path / "t", rows(7, 8, 9), mode="append")
        assert more() == [[8]]


def test_a_table_made_again_is_another_one(collector: Collector, tmp_path: Path) -> None:
    """DeltaSourceSuite: "streaming query should fail when table is deleted and recreated with new id"."""
    appended(tmp_path / "t", 2)
    assert sorted(collector.run(tmp_path / "t")) == [[0, 1]]
    shutil.rmtree(tmp_path / "t")
    appended(tmp_path / "t", 3, 5)
    error = failure(lambda: collector.run(tmp_path / "t"))
    assert error.getCondition() == "DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE"
    assert "checkpoint" in str(error)


def test_files_of_a_pattern_are_never_opened(collector: Collector, tmp_path: Path) -> None:
    """DeltaSourceSuite: "excludeRegex works and doesn't mess up offsets across restarts - parquet
    version"."""
    deltaic.write(tmp_path / "t", rows(1, 2))

    def add_text(*names: str) -> None:
        adds: list[dict[str, Any]] = []
        for name in names:
            (tmp_path / "t" / name).write_text("no Parquet")
            adds.append(
                {
                    "add": {
                        "path": name,
                        "partitionValues": {},
                        "size": 10,
                        "modificationTime": 1_700_000_000_000,
                        "dataChange": True,
                        "stats": '{"numRecords":1}',
                    }
                }
            )
        commit(tmp_path / "t", *adds)

    add_text("batch1-ignore-file1", "batch1-ignore-file2")
    options = {"excludeRegex": "ignore", "maxFilesPerTrigger": 1}
    assert collector.run(tmp_path / "t", **options) == [[1, 2]]
    assert len(collector.ends) == 3
    add_text("batch2-ignore-file1")
    deltaic.write(tmp_path / "t", rows(3), mode="append")
    assert collector.run(tmp_path / "t", **options) == [[3]]
    assert collector.ends == [(3, -1, False), (4, -1, False)]


def test_a_pattern_that_is_none_is_named(session: Any, tmp_path: Path) -> None:
    """DeltaSourceSuite: "excludeRegex throws good error on bad regex pattern"."""
    appended(tmp_path / "t", 1)
    with pytest.raises(InvalidArgumentError, match="excludeRegex") as raised:
        session.readStream.format("delta").option("excludeRegex", "[abc").load(str(tmp_path / "t"))
    error: Any = raised.value
    assert (error.getCondition(), error.getSqlState()) == ("DELTA_REGEX_OPT_SYNTAX_ERROR", "2201B")
    assert error.getMessageParameters() == {"regExpOption": "excludeRegex"}


def test_a_writer_that_goes_on_does_not_keep_a_reader_waiting(session: Any, tmp_path: Path) -> None:
    """DeltaSourceSuite: "a fast writer should not starve a Delta source"."""
    rates = session.readStream.format("rate").option("rowsPerSecond", 50).load().selectExpr("value AS id")
    writer = (
        rates.writeStream.format("delta")
        .option("checkpointLocation", str(tmp_path / "writer"))
        .start(str(tmp_path / "t"))
    )
    collector = Collector(session, tmp_path)

    def wait_for(condition: Any) -> None:
        until = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < until
            time.sleep(0.05)

    try:
        wait_for(lambda: DeltaTable.exists(tmp_path / "t") and DeltaTable(tmp_path / "t").scan().count())
        with collector.running(collector.frame(tmp_path / "t")):
            wait_for(lambda: collector.batches)
    finally:
        writer.stop()


def test_an_older_frame_reads_new_commits_and_beyond_a_checkpoint(session: Any, tmp_path: Path) -> None:
    """DeltaSourceSuite: "can consume new data without update"."""
    table = appended(tmp_path / "t", 1)
    frame = Collector(session, tmp_path).frame(tmp_path / "t")
    appended(tmp_path / "t", 2, 1)
    assert Collector(session, tmp_path / "first").run_frame(frame) == [[0, 1, 2]]
    appended(tmp_path / "t", 2, 3).checkpoint()
    assert Collector(session, tmp_path / "second").run_frame(frame) == [[0, 1, 2, 3, 4]]
    assert table.version == 0


def test_old_commits_may_go_while_a_query_runs(collector: Collector, tmp_path: Path) -> None:
    """DeltaSourceSuite: "can delete old files of a snapshot without update"."""
    appended(tmp_path / "t", 3).checkpoint()
    with collector.running(collector.frame(tmp_path / "t")) as more:
        assert more() == [[0, 1, 2]]
        for version in (0, 1):
            commit_file(tmp_path / "t", version).unlink()
        appended(tmp_path / "t", 2, 3)
        assert [number for batch in more() for number in batch] == [3, 4]


def test_an_offset_has_these_fields(collector: Collector, tmp_path: Path) -> None:
    """DeltaSourceSuite: "Delta sources don't write offsets with null json"."""
    table = appended(tmp_path / "t", 1)
    collector.run(tmp_path / "t")
    assert last_offset(tmp_path) == {
        "sourceVersion": 1,
        "reservoirId": table.metadata.id,
        "reservoirVersion": 1,
        "index": -1,
        "isStartingVersion": False,
    }


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(
            {},
            id="Delta source advances with non-data inserts and generates empty dataframe for non-data"
            " operations",
        ),
        pytest.param(
            {"maxFilesPerTrigger": 2}, id="Rate limited Delta source advances with non-data inserts"
        ),
    ],
)
def test_commits_without_files_move_the_offset(session: Any, tmp_path: Path, options: dict[str, Any]) -> None:
    appended(tmp_path / "t", 1)
    counts: list[int] = []
    frame = session.readStream.format("delta").options(**options).load(str(tmp_path / "t"))
    writer = frame.writeStream.foreachBatch(lambda batch, number: counts.append(batch.count()))
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    try:
        for commits, end in ((0, 1), (1, 2), (3, 5)):
            for _ in range(commits):
                commit(tmp_path / "t")
            query.processAllAvailable()
            offset = end_offset(query.lastProgress)
            assert (offset["reservoirVersion"], offset["index"]) == (end, -1)
            assert offset["isStartingVersion"] is False
    finally:
        query.stop()
    assert counts[0] == 1
    assert set(counts[1:]) == {0}


def test_a_newer_protocol_ends_a_running_query(collector: Collector, tmp_path: Path) -> None:
    """DeltaSourceSuite: "Delta sources should verify the protocol reader version"."""
    appended(tmp_path / "t", 1)
    with collector.running(collector.frame(tmp_path / "t")) as more:
        assert more() == [[0]]
        commit(tmp_path / "t", {"protocol": {"minReaderVersion": 2**31 - 1, "minWriterVersion": 2}})
        error = failure(more)
    assert error.getCondition() == "DELTA_INVALID_PROTOCOL_VERSION"


ALL_BUT_CHANGES = [[1, 2, 3], [4, 5], [9, 10]]
ALL = [[1, 2, 3], [4, 5], [6, 7, 8, 9, 10]]


@pytest.mark.parametrize(
    ("names", "batches"),
    [
        pytest.param(
            ["ignoreDeletes"],
            [[1, 2, 3], [4, 5]],
            id="read options [ignoreDeletes]: ignores delete, rejects change",
        ),
        pytest.param(
            ["skipChangeCommits"],
            ALL_BUT_CHANGES,
            id="read options [skipChangeCommits]: ignores delete, skips change",
        ),
        pytest.param(
            ["ignoreChanges"],
            ALL,
            id="read options [ignoreChanges]: ignores delete, includes change AddFiles",
        ),
        pytest.param(
            ["ignoreFileDeletion"],
            ALL,
            id="read options [ignoreFileDeletion] (deprecated): equivalent to ignoreChanges",
        ),
        pytest.param(
            ["ignoreDeletes", "ignoreChanges"],
            ALL,
            id="read options [ignoreDeletes, ignoreChanges]: equivalent to ignoreChanges",
        ),
        pytest.param(
            ["ignoreChanges", "skipChangeCommits"],
            ALL_BUT_CHANGES,
            id="read options [ignoreChanges, skipChangeCommits]: equivalent to skipChangeCommits",
        ),
        pytest.param(
            ["ignoreDeletes", "skipChangeCommits"],
            ALL_BUT_CHANGES,
            id="read options [ignoreDeletes, skipChangeCommits]: equivalent to skipChangeCommits",
        ),
        pytest.param(
            ["ignoreDeletes", "ignoreChanges", "skipChangeCommits"],
            ALL_BUT_CHANGES,
            id="read options [ignoreDeletes, ignoreChanges, skipChangeCommits]: equivalent to"
            " skipChangeCommits",
        ),
    ],
)
def test_commits_that_remove_rows(
    collector: Collector, tmp_path: Path, names: list[str], batches: list[list[int]]
) -> None:
    """A commit that only removes files, then one that also adds files, each with an append after it. Two runs
    read them, because a running query could divide them into more batches."""
    table, options = deltaic.write(tmp_path / "t", rows(1, 2, 3)), dict.fromkeys(names, True)
    collector.run(tmp_path / "t", **options)
    table.delete()
    deltaic.write(tmp_path / "t", rows(4, 5), mode="append")
    collector.run(tmp_path / "t", **options)
    deltaic.write(tmp_path / "t", rows(6, 7, 8), mode="overwrite")
    deltaic.write(tmp_path / "t", rows(9, 10), mode="append")
    if len(batches) == 3:
        collector.run(tmp_path / "t", **options)
    else:
        error = failure(lambda: collector.run(tmp_path / "t", **options))
        assert error.getCondition() == "DELTA_SOURCE_TABLE_IGNORE_CHANGES"
        assert "skipChangeCommits" in str(error)
    assert collector.batches == batches


@pytest.mark.parametrize(
    ("changes", "condition", "option"),
    [
        pytest.param(
            lambda table: deltaic.write(table, rows(1, 2), mode="overwrite"),
            "DELTA_SOURCE_TABLE_IGNORE_CHANGES",
            "skipChangeCommits",
            id="deltaSourceIgnoreChangesError contains changeInfo, version, tablePath",
        ),
        pytest.param(
            lambda table: table.delete(),
            "DELTA_SOURCE_IGNORE_DELETE",
            "ignoreDeletes",
            id="deltaSourceIgnoreDeleteError contains removeFile, version, tablePath",
        ),
    ],
)
def test_an_error_names_the_commit_that_removes_rows(
    collector: Collector, tmp_path: Path, changes: Any, condition: str, option: str
) -> None:
    table = appended(tmp_path / "t", 1)
    (removed,) = (path.name for path in (tmp_path / "t").glob("*.parquet"))
    collector.run(tmp_path / "t")
    changes(table)
    error = failure(lambda: collector.run(tmp_path / "t"))
    assert (error.getCondition(), error.getSqlState()) == (condition, "0A000")
    for part in ("version 1", removed, str(tmp_path / "t"), option):
        assert part in str(error)


def test_a_union_of_two_tables_is_started_again(collector: Collector, tmp_path: Path) -> None:
    """DeltaSourceSuite: "should not attempt to read a non exist version". The last batch has new rows of one
    table alone, so both its offsets in the other table name a version that is not there yet."""
    one, other = tmp_path / "one", tmp_path / "other"
    both = lambda: collector.frame(one).union(collector.frame(other))  # noqa: E731
    appended(one, 1)
    appended(other, 1)
    assert collector.run_frame(both()) == [[0, 0]]
    appended(one, 1, 1)
    appended(other, 1, 1)
    assert collector.run_frame(both()) == [[1, 1]]
    appended(other, 1, 2)
    assert collector.run_frame(both()) == [[2]]
    assert collector.run_frame(both()) == []
    appended(one, 1, 3)
    assert collector.run_frame(both()) == [[3]]


@pytest.mark.usefixtures("catalog_of_the_test_alone")
def test_a_union_of_a_table_with_itself(collector: Collector) -> None:
    """DeltaSourceSuite: "self union a Delta table should pass the catalog table assert"."""
    collector.session.range(3).write.format("delta").saveAsTable("self_union_delta")
    frame = collector.session.readStream.format("delta").table("self_union_delta")
    assert collector.run_frame(frame.union(frame)) == [[0, 0, 1, 1, 2, 2]]


def test_a_filter_of_partitions_reads_each_row_once(collector: Collector, tmp_path: Path) -> None:
    """DeltaSourceSuite: "delta source should not hang or reprocess data when using AvailableNow". The second
    commit has more files than the first, and none in the partition."""
    deltaic.write(tmp_path / "t", rows(0), partition_by="p")
    in_partition = lambda frame: frame.where("p = 0")  # noqa: E731
    assert collector.run(tmp_path / "t", in_partition) == [[0]]
    deltaic.write(tmp_path / "t", rows(*range(1, 10)), mode="append")
    assert collector.run(tmp_path / "t", in_partition) == []
    assert last_offset(tmp_path)["reservoirVersion"] == 2


def test_many_commits_of_one_value(collector: Collector, tmp_path: Path) -> None:
    """DeltaSourceSuite: "streaming processes 100 sequential single-value commits and contains all values 0 to
    99"."""
    appended(tmp_path / "t", 1)
    with collector.running(collector.frame(tmp_path / "t")) as more:
        assert more() == [[0]]
        appended(tmp_path / "t", 99, 1)
        assert [number for batch in more() for number in batch] == list(range(1, 100))
