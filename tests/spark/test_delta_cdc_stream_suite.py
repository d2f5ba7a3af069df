"""The behaviour of streams of change data feeds that delta-spark's suites test: DeltaCDCStreamSuite and
DeltaCDCStreamDeletionVectorSuite. A docstring names the tests of the suite."""

from __future__ import annotations

import json
import os
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from collector import end_offset, last_offset

import deltaic
from deltaic import DeltaTable
from spark_session import setting, with_jvm

FEED = {"delta.enableChangeDataFeed": "true"}
RANGE = "spark.databricks.delta.changeDataFeed.timestampOutOfRange.enabled"
LIMITS = pytest.mark.parametrize("limit", [{"maxFilesPerTrigger": "1"}, {"maxBytesPerTrigger": "1b"}])


@pytest.fixture
def session(session: Any) -> Any:
    return with_jvm(session)


@pytest.fixture(params=["true", "false"], ids=["vectors", "no vectors"])
def properties(request: pytest.FixtureRequest) -> dict[str, str]:
    """Properties of a table with a change data feed, with and without deletion vectors."""
    return {**FEED, "delta.enableDeletionVectors": request.param}


class Feed:
    """The changes of the table `t` that a stream reads: batches of rows without the column
    _commit_timestamp."""

    def __init__(self, session: Any, place: Path) -> None:
        self.session, self.place, self.path = session, place, place / "t"
        self.batches: list[list[tuple[Any, ...]]] = []

    def frame(self, **options: Any) -> Any:
        reader = self.session.readStream.format("delta").option("readChangeFeed", "true")
        return reader.options(**options).load(str(self.path))

    def start(self, frame: Any, trigger: dict[str, Any] | None = None) -> Any:
        def collect(batch: Any, number: int) -> None:
            if found := sorted(map(tuple, batch.drop("_commit_timestamp").collect())):
                self.batches.append(found)

        writer = frame.writeStream.foreachBatch(collect)
        writer = writer.option("checkpointLocation", str(self.place / "checkpoint"))
        return writer.trigger(**(trigger or {"processingTime": "0 seconds"})).start()

    def run(self, **options: Any) -> list[list[tuple[Any, ...]]]:
        """Returns the batches of a query that reads all available data."""
        before = len(self.batches)
        assert self.start(self.frame(**options), {"availableNow": True}).awaitTermination(60)
        return self.batches[before:]

    def ends(self, **options: Any) -> str:
        """Returns the text of the error of a query."""
        with pytest.raises(Exception, match=r"\[DELTA_") as raised:
            self.run(**options)
        return str(raised.value)


@pytest.fixture
def feed(session: Any, tmp_path: Path) -> Feed:
    return Feed(session, tmp_path)


def write(feed: Feed, *ids: int, **options: Any) -> DeltaTable:
    rows = {"id": pa.array(ids, pa.int64())}
    return deltaic.write(feed.path, rows, mode="append", **options)


def parts(feed: Feed, count: int, first: int = 0, **columns: int) -> DeltaTable:
    """Appends ids to a table with a change data feed that is partitioned by `part`, which is 0 or 1."""
    ids = list(range(first, first + count))
    rows = {"id": ids, "part": [number % 2 for number in ids]}
    rows.update({name: [value] * count for name, value in columns.items()})
    options = {} if DeltaTable.exists(feed.path) else {"properties": FEED, "partition_by": "part"}
    return deltaic.write(feed.path, rows, mode="append", **options)


def commit_at(feed: Feed, version: int, seconds: int) -> None:
    """Sets the time at which the log shows that a version was committed, in seconds since 1970."""
    os.utime(feed.path / "_delta_log" / f"{version:020}.json", (seconds, seconds))


def time_text(seconds: int) -> str:
    return f"{datetime.fromtimestamp(seconds, timezone.utc):%Y-%m-%d %H:%M:%S}"


def test_without_a_start_the_rows_of_the_table_are_inserts(feed: Feed) -> None:
    """DeltaCDCStreamSuite: "no startingVersion should result fetch the entire snapshot"."""
    write(feed, 1, 9).delete("id = 9")
    table = write(feed, 2)
    table.alter.set_properties(FEED)
    query = feed.start(feed.frame())
    try:
        query.processAllAvailable()
        assert feed.batches == [[(1, "insert", 3), (2, "insert", 3)]]
        DeltaTable(feed.path).delete("id = 1")
        query.processAllAvailable()
        assert feed.batches[1:] == [[(1, "delete", 4)]]
    finally:
        query.stop()


def test_the_offset_after_the_snapshot(feed: Feed) -> None:
    """DeltaCDCStreamSuite: "CDC initial snapshot should end at base index of next version"."""
    write(feed, 5, 6, properties=FEED)
    assert feed.run() == [[(5, "insert", 0), (6, "insert", 0)]]
    offset = last_offset(feed.place)
    assert (offset["reservoirVersion"], offset["index"], offset["isStartingVersion"]) == (1, -1, False)


def test_it_starts_with_the_latest_version(feed: Feed) -> None:
    """DeltaCDCStreamSuite: "startingVersion = latest"."""
    write(feed, 1, 2, properties=FEED)
    query = feed.start(feed.frame(startingVersion="latest"))
    try:
        query.processAllAvailable()
        assert feed.batches == []
        write(feed, 3)
        query.processAllAvailable()
        assert feed.batches == [[(3, "insert", 1)]]
    finally:
        query.stop()


def test_it_starts_with_a_version(feed: Feed, properties: dict[str, str]) -> None:
    """DeltaCDCStreamSuite: "user provided startingVersion"."""
    write(feed, 1, 2, 3, properties=properties)
    write(feed, 4, 5)
    query = feed.start(feed.frame(startingVersion="1"))
    try:
        query.processAllAvailable()
        assert feed.batches == [[(4, "insert", 1), (5, "insert", 1)]]
        DeltaTable(feed.path).delete("id = 3")
        query.processAllAvailable()
        assert feed.batches[1:] == [[(3, "delete", 2)]]
    finally:
        query.stop()


def test_it_cannot_start_before_the_feed_was_on(feed: Feed) -> None:
    """DeltaCDCStreamSuite: "startingVersion before CDF was enabled rejects with change-data-not-recorded"."""
    write(feed, 1, 2)
    write(feed, 3, 4).alter.set_properties(FEED)
    write(feed, 5, 6)
    assert "[DELTA_MISSING_CHANGE_DATA]" in feed.ends(startingVersion="1")
    assert feed.batches == []


def test_it_starts_with_a_time(feed: Feed, properties: dict[str, str]) -> None:
    """DeltaCDCStreamSuite: "user provided startingTimestamp"."""
    write(feed, 1, 2, 3, properties=properties)
    write(feed, -1)
    commit_at(feed, 0, 1000)
    commit_at(feed, 1, 2000)
    query = feed.start(feed.frame(startingTimestamp=time_text(2000)))
    try:
        query.processAllAvailable()
        assert feed.batches == [[(-1, "insert", 1)]]
        DeltaTable(feed.path).update({"id": "4"}, "id = -1")
        query.processAllAvailable()
        assert feed.batches[1:] == [[(-1, "update_preimage", 2), (4, "update_postimage", 2)]]
    finally:
        query.stop()


@pytest.mark.parametrize(
    ("options", "condition", "first"),
    [
        ({"startingVersion": "1"}, "DELTA_VERSION_NOT_FOUND", 1),
        ({"startingVersion": "2"}, "DELTA_VERSION_NOT_FOUND", 2),
        ({"startingTimestamp": time_text(3000)}, "DELTA_TIMESTAMP_GREATER_THAN_COMMIT", 1),
    ],
)
def test_a_start_after_the_newest_version(
    feed: Feed, options: dict[str, str], condition: str, first: int
) -> None:
    """DeltaCDCStreamSuite: "starting[Version/Timestamp] > latest version", "check starting[Version/Timestamp]
    > latest version without error"."""
    write(feed, 1, 2, 3, properties=FEED)
    commit_at(feed, 0, 1000)
    assert f"[{condition}]" in feed.ends(**options)
    feed.place = feed.place / "allowed"
    with setting(feed.session, RANGE, "true"):
        query = feed.start(feed.frame(**options))
        try:
            query.processAllAvailable()
            assert feed.batches == []
            DeltaTable(feed.path).update({"id": "4"}, "id = 1")
            query.processAllAvailable()
            write(feed, 5)
            query.processAllAvailable()
            changes = [[(1, "update_preimage", 1), (4, "update_postimage", 1)], [(5, "insert", 2)]]
            assert feed.batches == changes[first - 1 :]
        finally:
            query.stop()


def test_two_starts(feed: Feed) -> None:
    """DeltaCDCStreamSuite: "startingVersion and startingTimestamp are both set"."""
    write(feed, 1, properties=FEED)
    text = feed.ends(startingVersion="0", startingTimestamp="2020-07-15")
    assert "[DELTA_STARTING_VERSION_AND_TIMESTAMP_BOTH_SET]" in text


def test_a_checkpoint_says_what_was_read(feed: Feed, properties: dict[str, str]) -> None:
    """DeltaCDCStreamSuite: "cdc streams should respect checkpoint"."""
    write(feed, 1, 2, 3, properties=properties)
    write(feed, 4, 5, 6).delete("id = 5")
    changes = [(4, "insert", 1), (5, "delete", 2), (5, "insert", 1), (6, "insert", 1)]
    assert feed.run(startingVersion="1") == [changes]
    assert feed.run(startingVersion="1") == []
    feed.place = feed.place / "other"
    assert feed.run(startingVersion="1") == [changes]


def test_a_merge_that_changes_nothing(feed: Feed, properties: dict[str, str]) -> None:
    """DeltaCDCStreamSuite: "cdc streams with noop merge"."""
    write(feed, 1, 2, properties=properties)
    assert feed.run(startingVersion="latest") == []
    merge = DeltaTable(feed.path).merge(pa.table({"key": [1, 2]}), "t.id = s.key", source_alias="s")
    merge = merge.when_matched_update({"id": "s.key"}, "s.key = 10")
    merge.when_not_matched_insert({"id": "s.key"}, "s.key = 11").execute()
    assert feed.run(startingVersion="latest") == []


@pytest.mark.parametrize("changes", ["true", "false"])
def test_commits_without_actions_are_passed(feed: Feed, changes: str) -> None:
    """DeltaCDCStreamSuite: "streams updating latest offset with readChangeFeed=" and the value."""
    DeltaTable.create(feed.path, "id bigint", properties=FEED)
    write(feed, *range(10))
    assert len(feed.run(readChangeFeed=changes)[0]) == 10
    for version in (2, 3, 4):
        info = {"commitInfo": {"timestamp": 0, "operation": "Manual Update", "operationParameters": {}}}
        (feed.path / "_delta_log" / f"{version:020}.json").write_text(json.dumps(info))
    query = feed.start(feed.frame(readChangeFeed=changes), {"availableNow": True})
    assert query.awaitTermination(60)
    assert len(feed.batches) == 1
    end = end_offset(query.lastProgress)
    assert (query.lastProgress["batchId"], end["reservoirVersion"], end["index"]) == (1, 5, -1)


def test_commits_that_only_remove_files(feed: Feed) -> None:
    """DeltaCDCStreamSuite: "cdc streams should be able to get offset when there only RemoveFiles", "cdc
    streams should work starting from RemoveFile"."""
    table = parts(feed, 2)
    query = feed.start(feed.frame(startingVersion="0"))
    try:
        query.processAllAvailable()
        assert feed.batches == [[(0, 0, "insert", 0), (1, 1, "insert", 0)]]
        table.delete("part = 0")
        query.processAllAvailable()
        assert feed.batches[1:] == [[(0, 0, "delete", 1)]]
    finally:
        query.stop()
    feed.place = feed.place / "other"
    assert feed.run(startingVersion="1") == [[(0, 0, "delete", 1)]]


def test_it_starts_with_recorded_changes(feed: Feed, properties: dict[str, str]) -> None:
    """DeltaCDCStreamSuite: "cdc streams should work starting from AddCDCFile"."""
    write(feed, 0, 1, properties=properties).delete("id = 0")
    query = feed.start(feed.frame(startingVersion="1"))
    try:
        query.processAllAvailable()
        assert feed.batches == [[(0, "delete", 1)]]
        write(feed, 2)
        query.processAllAvailable()
        assert feed.batches[1:] == [[(2, "insert", 2)]]
    finally:
        query.stop()


@LIMITS
def test_limits_split_inserts_alone(feed: Feed, limit: dict[str, str]) -> None:
    """DeltaCDCStreamSuite: "rateLimit - maxFilesPerTrigger - overall", "rateLimit - maxBytesPerTrigger -
    overall"."""
    table = parts(feed, 4)
    deltaic.write(table, {"id": [4], "part": [-1]}, mode="append")
    table.delete("part = -1")
    table.update({"id": "0"}, "id < 2")
    table.update({"id": "0"}, "id > 1")
    batches = feed.run(startingVersion="0", **limit)
    assert [len(batch) for batch in batches] == [2, 2, 1, 1, 4, 4]
    assert sorted(batches[0] + batches[1]) == [(each, each % 2, "insert", 0) for each in range(4)]
    assert batches[2:4] == [[(4, -1, "insert", 1)], [(4, -1, "delete", 2)]]
    for version, ids in ((3, (0, 1)), (4, (2, 3))):
        before = [(each, each % 2, "update_preimage", version) for each in ids]
        after = [(0, each % 2, "update_postimage", version) for each in ids]
        assert batches[version + 1] == sorted(before + after)


@LIMITS
def test_limits_split_the_snapshot(feed: Feed, limit: dict[str, str]) -> None:
    """DeltaCDCStreamSuite: "rateLimit - maxFilesPerTrigger - starting from initial snapshot", "rateLimit -
    maxBytesPerTrigger - starting from initial snapshot"."""
    for number in range(3):
        write(feed, number, **({} if number else {"properties": FEED}))
    feed.session.range(3, 5, 1, 2).write.format("delta").mode("append").save(str(feed.path))
    assert len(list(DeltaTable(feed.path).files())) == 5
    assert sorted(feed.run(**limit)) == [[(number, "insert", 3)] for number in range(5)]


def updated_twice(feed: Feed) -> None:
    """Two rows in two partitions, and two updates of both."""
    parts(feed, 2, n=0)
    DeltaTable(feed.path).update({"n": "0"}, "n < 2")
    DeltaTable(feed.path).update({"n": "1"}, "n < 2")


INSERTED = [(each, each, 0, "insert", 0) for each in (0, 1)]
UPDATES = [
    sorted(
        (each, each, n, f"update_{image}image", version)
        for each in (0, 1)
        for image, n in (("pre", 0), ("post", version - 1))
    )
    for version in (1, 2)
]


@LIMITS
def test_a_commit_larger_than_the_limit(feed: Feed, limit: dict[str, str]) -> None:
    """DeltaCDCStreamSuite: "rateLimit - maxFilesPerTrigger - should not deadlock", "rateLimit -
    maxBytesPerTrigger - should not deadlock"."""
    updated_twice(feed)
    assert feed.run(startingVersion="1", **limit) == UPDATES


@pytest.mark.parametrize("trigger", [{"availableNow": True}, {"processingTime": "0 seconds"}])
def test_recorded_changes_are_not_split(feed: Feed, trigger: dict[str, Any]) -> None:
    """DeltaCDCStreamSuite: "maxFilesPerTrigger - 2 successive AddCDCFile commits", "maxFilesPerTrigger with
    Trigger.AvailableNow respects read limits"."""
    updated_twice(feed)
    query = feed.start(feed.frame(startingVersion="0", maxFilesPerTrigger="3"), trigger)
    try:
        if "availableNow" in trigger:
            assert query.awaitTermination(60)
        else:
            query.processAllAvailable()
    finally:
        query.stop()
    assert feed.batches == [INSERTED, *UPDATES]


def test_nothing_follows_changes_that_do_not_fit(feed: Feed) -> None:
    """DeltaCDCStreamSuite: "maxFilesPerTrigger - batch reject stops iteration to prevent data loss"."""
    parts(feed, 2, n=0).update({"n": "1"}, "n < 2")
    parts(feed, 1, 10, n=2)
    updates = [
        (each, each, n, f"update_{image}image", 1)
        for each in (0, 1)
        for image, n in (("pre", 0), ("post", 1))
    ]
    batches = feed.run(startingVersion="0", maxFilesPerTrigger="3")
    assert batches == [INSERTED, sorted([*updates, (10, 0, 2, "insert", 2)])]


def test_files_are_excluded(feed: Feed) -> None:
    """DeltaCDCStreamSuite: "excludeRegex works with cdc", "excludeRegex on cdcPath should not return
    Add/RemoveFiles"."""
    parts(feed, 2).update({"id": "id + 10"}, "id = 1")
    commit = (feed.path / "_delta_log" / f"{1:020}.json").read_text().splitlines()
    (recorded,) = [action["cdc"]["path"] for action in map(json.loads, commit) if "cdc" in action]
    assert feed.run(startingVersion="0", excludeRegex="part=0") == [
        [(1, 1, "insert", 0), (1, 1, "update_preimage", 1), (11, 1, "update_postimage", 1)]
    ]
    feed.place = feed.place / "other"
    inserted = [(0, 0, "insert", 0), (1, 1, "insert", 0)]
    assert feed.run(startingVersion="0", excludeRegex=recorded) == [inserted]


def test_a_change_of_the_schema(feed: Feed) -> None:
    """DeltaCDCStreamSuite: "schema check for cdc stream"."""
    write(feed, 0, properties=FEED)
    table = write(feed, 1)
    query = feed.start(feed.frame(startingVersion="0"))
    try:
        query.processAllAvailable()
        assert feed.batches == [[(0, "insert", 0), (1, "insert", 1)]]
        table.alter.set_properties({"note": "the same columns"})
        query.processAllAvailable()
        table.alter.add_columns("value string")
        with pytest.raises(Exception, match=r"\[DELTA_SCHEMA_CHANGED_WITH_STARTING_OPTIONS\]"):
            query.processAllAvailable()
    finally:
        query.stop()


def test_two_feeds_of_which_one_has_no_news(feed: Feed, tmp_path: Path) -> None:
    """DeltaCDCStreamSuite: "should not attempt to read a non exist version"."""
    other = Feed(feed.session, tmp_path / "second")
    for each in (feed, other):
        write(each, 1, properties=FEED)

    def start() -> Any:
        return feed.start(feed.frame().union(other.frame()))

    query = start()
    try:
        query.processAllAvailable()
        for number, feeds in ((2, (feed, other)), (3, (other,))):
            for each in feeds:
                write(each, number)
            query.processAllAvailable()
        query.stop()
        # Both ends of the last batch are, for the first table, a version that it does not have yet.
        query = start()
        query.processAllAvailable()
        write(feed, 4)
        query.processAllAvailable()
    finally:
        query.stop()
    inserts = sorted(row for batch in feed.batches for row in batch)
    assert inserts[:5] == [(1, "insert", 0)] * 2 + [(2, "insert", 1)] * 2 + [(3, "insert", 2)]
    assert inserts[5:] == [(4, "insert", 2)]


def test_two_deletes_from_one_file(feed: Feed, properties: dict[str, str]) -> None:
    """DeltaCDCStreamSuite: "double delete-only on the same file"."""
    table = write(feed, *range(10), properties=properties)
    table.delete("id IN (1, 3, 6)")
    table.delete("id IN (2, 4, 7)")
    assert feed.run(startingVersion="1", maxFilesPerTrigger="1") == [
        [(each, "delete", 1) for each in (1, 3, 6)],
        [(each, "delete", 2) for each in (2, 4, 7)],
    ]


def test_columns_are_pruned(feed: Feed, properties: dict[str, str]) -> None:
    """DeltaCDCStreamSuite: "CDC stream supports column pruning of data columns"."""
    rows = {"id": [1, 2], "name": ["a", "b"], "value": [100, 200]}
    deltaic.write(feed.path, rows, properties=properties)
    deltaic.write(feed.path, {"id": [3], "name": ["c"], "value": [300]}, mode="append").delete("id = 1")
    changes = feed.frame(startingVersion="0").select("id", "_change_type")
    assert feed.start(changes, {"availableNow": True}).awaitTermination(60)
    assert feed.batches == [[(1, "delete"), (1, "insert"), (2, "insert"), (3, "insert")]]


def test_a_feed_has_no_row_ids(feed: Feed) -> None:
    """DeltaCDCStreamSuite: "CDC stream rejects reading row tracking metadata fields"."""
    from pyspark.errors import AnalysisException

    write(feed, 1, 2, properties={**FEED, "delta.enableRowTracking": "true"})
    with pytest.raises(AnalysisException, match="row_id"):
        feed.frame(startingVersion="0").selectExpr("id", "_metadata.row_id", "_change_type")
