"""Tables as sources of structured streams. Rules, and the names of tests in the comments: delta-spark's
DeltaSourceSuite, DeltaSourceDeletionVectorsSuite and DeltaCDCStreamSuite."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from collector import Collector, failure, last_offset

import deltaic
import deltaic.spark
from deltaic import DeltaTable
from deltaic.errors import InvalidArgumentError
from single_rows import VECTORS, appended, rows
from spark_session import with_jvm


@pytest.fixture
def session(session: Any) -> Any:
    return with_jvm(session)


def test_the_snapshot_comes_first_and_each_row_once(collector: Collector, tmp_path: Path) -> None:
    """DeltaSourceSuite: "maxFilesPerTrigger", "Delta sources should verify the protocol reader version" and
    "restarting a query"."""
    table = appended(tmp_path / "t", 3, properties=VECTORS)
    table.delete("id = 1")
    first = collector.run(tmp_path / "t", maxFilesPerTrigger=1)
    assert sorted(first) == [[0], [2]]
    assert last_offset(tmp_path)["reservoirVersion"] == table.version + 1
    assert sum(each["numInputRows"] for each in collector.progress) == 2
    assert collector.progress[0]["sources"][0]["description"] == f"DeltaSource[file:{table.location}]"
    appended(tmp_path / "t", 4, 3)
    assert collector.run(tmp_path / "t", maxFilesPerTrigger=2) == [[3, 4], [5, 6]]
    assert collector.run(tmp_path / "t") == []


def test_a_checkpoint_of_delta_spark_goes_on(collector: Collector, tmp_path: Path) -> None:
    """Offsets and metadata as delta-spark leaves them, and those that are written here have the same
    fields."""
    table = appended(tmp_path / "t", 5)
    place = tmp_path / "checkpoint"
    for folder in ("offsets", "commits"):
        (place / folder).mkdir(parents=True)
    (place / "metadata").write_text('{"id":"3c9a3a8e-0c39-4d6f-9f9c-2a5f7a2f7f10"}')
    settings = {"batchWatermarkMs": 0, "batchTimestampMs": 1, "conf": {"spark.sql.shuffle.partitions": "2"}}
    offset = {
        "sourceVersion": 1,
        "reservoirId": table.metadata.id,
        "reservoirVersion": 3,
        "index": -1,
        "isStartingVersion": False,
    }
    (place / "offsets" / "0").write_text("\n".join(["v1", json.dumps(settings), json.dumps(offset)]))
    (place / "commits" / "0").write_text('v1\n{"nextBatchWatermarkMs":0}')
    assert collector.run(tmp_path / "t") == [[3, 4]]
    assert last_offset(tmp_path) == {**offset, "reservoirVersion": 5}


def test_a_batch_without_a_start_is_run_again(collector: Collector, tmp_path: Path) -> None:
    """A query that ended within its first batch: the checkpoint has only the batch's end."""
    appended(tmp_path / "t", 3)
    collector.run(tmp_path / "t", maxFilesPerTrigger=1)
    first = collector.batches[0]
    for path in (tmp_path / "checkpoint" / "commits").iterdir():
        path.unlink()
    for number in (1, 2, 3):
        for path in (tmp_path / "checkpoint" / "offsets").glob(f"*{number}*"):
            path.unlink()
    assert collector.run(tmp_path / "t", maxFilesPerTrigger=1)[0] == first


def test_it_starts_where_it_is_told(collector: Collector, tmp_path: Path) -> None:
    """DeltaSourceSuite: "startingVersion", "startingVersion latest", "startingTimestamp"."""
    table = appended(tmp_path / "t", 3)
    assert collector.run(tmp_path / "t", startingVersion="latest") == []
    appended(tmp_path / "t", 1, 3)
    assert collector.run(tmp_path / "t", startingVersion="latest") == [[3]]
    collector.place = tmp_path / "second"
    assert collector.run(tmp_path / "t", startingVersion=2) == [[2, 3]]
    moment = table.history()[0]["timestamp"]
    collector.place = tmp_path / "third"
    assert collector.run(tmp_path / "t", startingTimestamp=f"{moment:%Y-%m-%d %H:%M:%S.%f}") == [[2, 3]]


@pytest.mark.parametrize(
    "options",
    [
        {"startingVersion": "-1"},
        {"startingVersion": 1, "startingTimestamp": "2020-01-01"},
        {"maxFilesPerTrigger": 0},
        {"maxBytesPerTrigger": "many"},
        {"versionAsOf": 1},
        {"ignoreDeletes": "maybe"},
        {"excludeRegex": "("},
    ],
)
def test_wrong_options_are_named(session: Any, tmp_path: Path, options: dict[str, Any]) -> None:
    appended(tmp_path / "t", 1)
    with pytest.raises(InvalidArgumentError):
        session.readStream.format("delta").options(**options).load(str(tmp_path / "t"))


def test_a_version_in_the_path_is_refused(session: Any, tmp_path: Path) -> None:
    appended(tmp_path / "t", 1)
    with pytest.raises(InvalidArgumentError, match="a stream follows a table") as raised:
        session.readStream.format("delta").load(str(tmp_path / "t@v0"))
    error: Any = raised.value
    assert error.getCondition() == "DELTA_UNSUPPORTED_TIME_TRAVEL_VIEWS"


def ended(collector: Collector, table: Path, **options: Any) -> str:
    """Returns the text of the error that ends a query."""
    return str(failure(lambda: collector.run(table, **options)))


def test_the_cause_of_the_end_has_a_condition(session: Any, tmp_path: Path) -> None:
    appended(tmp_path / "t", 2).delete("id = 0")
    writer = (
        session.readStream.format("delta")
        .option("startingVersion", "0")
        .load(str(tmp_path / "t"))
        .writeStream.format("noop")
    )
    query = writer.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True).start()
    with pytest.raises(Exception, match="DELTA_SOURCE") as raised:
        query.awaitTermination(60)
    assert raised.value._cause.getCondition() in str(raised.value)
    assert raised.value._cause.getSqlState() == "0A000"


def test_what_a_stream_cannot_say_ends_it(collector: Collector, tmp_path: Path) -> None:
    """DeltaSourceSuite: "deltaSourceIgnoreDeleteError", "deltaSourceIgnoreChangesError", "schema change",
    "fail on data loss"."""
    table = appended(tmp_path / "t", 2)
    collector.run(tmp_path / "t")
    table.delete("id = 0")
    assert "[DELTA_SOURCE_IGNORE_DELETE]" in ended(collector, tmp_path / "t")
    assert collector.run(tmp_path / "t", ignoreDeletes=True) == []
    table.update({"p": "7"}, "id = 1")
    # Spark plans the last batch again.
    assert "[DELTA_SOURCE_TABLE_IGNORE_CHANGES]" in ended(collector, tmp_path / "t", ignoreDeletes=True)
    assert collector.run(tmp_path / "t", skipChangeCommits=True) == []
    appended(tmp_path / "t", 2, 8)
    DeltaTable(tmp_path / "t").checkpoint()
    for version in range(table.version + 2):
        (tmp_path / "t" / "_delta_log" / f"{version:020}.json").unlink()
    assert "[DELTA_MISSING_FILES_UNEXPECTED_VERSION]" in ended(
        collector, tmp_path / "t", skipChangeCommits=True
    )


def test_a_new_column_ends_it_and_a_restart_goes_on(collector: Collector, tmp_path: Path) -> None:
    table = appended(tmp_path / "t", 1)
    frame = collector.session.readStream.format("delta").load(str(tmp_path / "t"))
    query = collector.start(frame, {"processingTime": "0 seconds"})
    query.processAllAvailable()
    deltaic.write(table, rows(1).append_column("n", pa.array([5])), mode="append", schema_mode="merge")
    with pytest.raises(Exception, match="DELTA_SCHEMA_CHANGED_WITH_VERSION"):
        query.awaitTermination(60)
    with pytest.raises(Exception, match="DELTA_STREAMING_SCHEMA_MISMATCH_ON_RESTART"):
        collector.start(frame).awaitTermination(60)
    assert collector.run(tmp_path / "t") == [[1]]


@pytest.mark.parametrize("way", ["native", "public"])
@pytest.mark.parametrize("partition_by", [None, "p"])
def test_changes(
    collector: Collector, spark: Any, tmp_path: Path, way: str, partition_by: str | None
) -> None:
    """DeltaCDCStreamSuite: "no startingVersion should result fetch the entire snapshot", "updates". In a
    session that is not enabled PySpark finds the data source."""
    session, name = (collector.session, "delta") if way == "native" else (spark, "deltaic")
    properties = {"delta.enableChangeDataFeed": True, **VECTORS}
    table = deltaic.write(tmp_path / "t", rows(1, 2), partition_by=partition_by, properties=properties)
    table.update({"p": "p + 10"}, "id = 2")
    deltaic.write(table, rows(3), mode="append")
    table.delete("id = 1")
    found: list[tuple[Any, ...]] = []

    def collect(batch: Any, number: int) -> None:
        found.extend(
            tuple(row)
            for row in batch.where("_commit_timestamp > '2020-01-01'").drop("_commit_timestamp").collect()
        )

    for options in ({"startingVersion": 0}, {}):
        stream = (
            session.readStream.format(name).options(readChangeFeed=True, **options).load(str(tmp_path / "t"))
        )
        assert stream.columns == ["id", "p", "_change_type", "_commit_version", "_commit_timestamp"]
        stream.writeStream.foreachBatch(collect).trigger(availableNow=True).start().awaitTermination(60)
        wanted = [
            [
                (1, 1, "insert", 0),
                (2, 2, "insert", 0),
                (2, 2, "update_preimage", 1),
                (2, 12, "update_postimage", 1),
            ],
            [(3, 3, "insert", 2), (1, 1, "delete", 3)],
        ]
        assert sorted(found) == sorted(
            wanted[0] + wanted[1] if options else [(2, 12, "insert", 3), (3, 3, "insert", 3)]
        )
        found.clear()


def test_rows_are_pruned_and_grouped(collector: Collector, tmp_path: Path) -> None:
    """Spark prunes columns and pushes filters into the scan of a batch; state goes on from batch to batch."""
    appended(tmp_path / "t", 4, partition_by="p")
    counts: list[dict[int, int]] = []
    frame = (
        collector.session.readStream.format("delta").option("maxFilesPerTrigger", 3).load(str(tmp_path / "t"))
    )
    grouped = frame.where("p > 0").selectExpr("id % 2 AS odd").groupBy("odd").count()
    writer = grouped.writeStream.outputMode("complete").option("checkpointLocation", str(tmp_path / "c"))
    query = writer.foreachBatch(
        lambda batch, number: counts.append({row.odd: row["count"] for row in batch.collect()})
    )
    query.trigger(availableNow=True).start().awaitTermination(60)
    assert counts[-1] == {0: 1, 1: 2}


@pytest.mark.parametrize("ordered", [True, False])
def test_no_row_of_the_snapshot_is_late_with_event_time_order(
    session: Any, tmp_path: Path, ordered: bool
) -> None:
    """Each file has an older time than the file before. Without the option, a batch per file makes the last
    ones late; with it, only the commits after the snapshot can be."""
    times = [datetime(2026, 1, day, tzinfo=UTC) for day in (5, 4, 3, 2)]
    for time in times:
        deltaic.write(tmp_path / "t", pa.table({"time": [time]}), mode="append")
    found: list[int] = []

    def run() -> list[dict[str, int]]:
        found.clear()
        reader = session.readStream.format("delta").option("maxFilesPerTrigger", 1)
        frame = reader.option("withEventTimeOrder", ordered).load(str(tmp_path / "t"))
        unique = (
            frame.withWatermark("time", "0 seconds").dropDuplicates(["time"]).selectExpr("day(time) AS d")
        )
        writer = unique.writeStream.option("checkpointLocation", str(tmp_path / "c"))
        query = writer.foreachBatch(lambda batch, _: found.extend(row.d for row in batch.collect()))
        query = query.trigger(availableNow=True).start()
        query.awaitTermination(60)
        return [dict(each) for each in query.recentProgress]

    progress = run()
    assert sorted(found) == ([2, 3, 4, 5] if ordered else [4, 5])
    assert max(each["numInputRows"] for each in progress) == (4 if ordered else 1)
    for day in (6, 7):
        more = pa.table({"time": [datetime(2026, 1, day, tzinfo=UTC)]})
        deltaic.write(tmp_path / "t", more, mode="append")
    assert max(each["numInputRows"] for each in run()) == 1
    assert found == [6, 7]


@pytest.mark.parametrize("way", ["native", "public"])
def test_each_query_of_a_frame_begins_when_it_starts(
    spark: Any, session: Any, tmp_path: Path, way: str
) -> None:
    """DeltaDataSource.createSource opens the table for each query. A frame that was made before an UPDATE has
    its rows, and two queries over one frame do not disturb each other."""
    table = appended(tmp_path / "t", 2)
    session, name = (session, "delta") if way == "native" else (spark, "deltaic")
    frame = session.readStream.format(name).option("maxFilesPerTrigger", 1).load(str(tmp_path / "t"))
    latest = session.readStream.format(name).option("startingVersion", "latest").load(str(tmp_path / "t"))
    table.update({"id": "id + 10"})
    first, second, last = (Collector(session, tmp_path / each) for each in ("first", "second", "last"))
    last.start(latest).awaitTermination(60)
    queries = [collector.start(frame) for collector in (first, second)]
    for query in queries:
        query.awaitTermination(60)
    assert sorted(first.batches) == sorted(second.batches) == [[10, 11]]
    assert last.batches == []
    table.update({"id": "id + 10"})
    third = Collector(session, tmp_path / "third")
    third.start(frame).awaitTermination(60)
    assert third.batches == [[20, 21]]


def test_once_and_by_path(collector: Collector, tmp_path: Path) -> None:
    appended(tmp_path / "t", 3)
    frame = collector.session.readStream.option("maxFilesPerTrigger", 1).table(f"delta.`{tmp_path / 't'}`")
    query = collector.start(frame, {"once": True})
    query.awaitTermination(60)
    assert collector.batches == [[0, 1, 2]]


def test_the_data_source_of_a_session_that_is_not_enabled(spark: Any, tmp_path: Path) -> None:
    """The format "deltaic" as PySpark finds it."""
    table = appended(tmp_path / "t", 3, properties=VECTORS)
    table.delete("id = 1")
    collector = Collector(spark, tmp_path)
    frame = spark.readStream.format("deltaic").option("maxFilesPerTrigger", 1).load(str(tmp_path / "t"))
    collector.start(frame).awaitTermination(60)
    limited = not spark.version.startswith("4.1.")  # where batches of a Python data source have no limits
    assert sorted(collector.batches) == ([[0], [2]] if limited else [[0, 2]])
    assert last_offset(tmp_path)["reservoirId"] == table.metadata.id
