"""Tables as sinks of structured streams. Rules: delta-spark's DeltaSinkSuite; each row is written once even
if the driver is killed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltaic
import deltaic.spark
from deltaic import DeltaTable
from deltaic.errors import InvalidArgumentError

KILLS = int(os.environ.get("DELTAIC_STREAM_KILLS", "1"))


def files(place: Path, *numbers: int, **columns: Any) -> None:
    """A Parquet file with these ids."""
    import pyarrow.parquet as pq

    place.mkdir(exist_ok=True)
    table = pa.table(
        {"id": pa.array(numbers, pa.int64()), "part": [number % 2 for number in numbers], **columns}
    )
    pq.write_table(table, place / f"{min(numbers):06}.parquet")


def source(session: Any, place: Path, schema: str = "id long, part long") -> Any:
    return session.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(place))


def run(writer: Any, place: Path, *path: str) -> Any:
    query = (
        writer.option("checkpointLocation", str(place / "checkpoint")).trigger(availableNow=True).start(*path)
    )
    query.awaitTermination(60)
    return query


def ids(table: DeltaTable | Path) -> list[int]:
    opened = table if isinstance(table, DeltaTable) else DeltaTable(table)
    return sorted(opened.scan(["id"]).to_arrow()["id"].to_pylist())


def test_batches_are_commits_with_a_transaction(session: Any, tmp_path: Path) -> None:
    """DeltaSinkSuite: "append mode", "partitioned writing and batch reading", "recovery"."""
    files(tmp_path / "in", 1, 2)
    files(tmp_path / "in", 3)
    path = str(tmp_path / "t")
    frame = source(session, tmp_path / "in")
    query = run(
        frame.writeStream.format("delta").partitionBy("part").option("userMetadata", "why"), tmp_path, path
    )
    table = DeltaTable(path)
    assert ids(table) == [1, 2, 3]
    assert table.metadata.partition_columns == ("part",) or list(table.metadata.partition_columns) == ["part"]
    assert table.transaction_version(query.id) == 1
    newest = table.history()[0]
    assert newest["operation"] == "STREAMING UPDATE"
    assert newest["operationParameters"] == {"outputMode": "Append", "queryId": query.id, "epochId": "1"}
    assert newest["userMetadata"] == "why"
    version = table.version
    # The driver died after the commit, before Spark noted it.
    (tmp_path / "checkpoint" / "commits" / "1").unlink()
    (tmp_path / "checkpoint" / "commits" / ".1.crc").unlink(missing_ok=True)
    run(frame.writeStream.format("delta").partitionBy("part"), tmp_path, path)
    table.refresh()
    assert (table.version, ids(table)) == (version, [1, 2, 3])


def test_complete_mode_replaces_all_rows(session: Any, tmp_path: Path) -> None:
    """DeltaSinkSuite: "complete mode"."""
    files(tmp_path / "in", 1, 2)
    files(tmp_path / "in", 3, 5)
    path = str(tmp_path / "t")
    grouped = source(session, tmp_path / "in").groupBy("part").count()
    complete = grouped.writeStream.outputMode("complete").format("delta").partitionBy("part")
    session.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        # delta-spark's sink does not read replaceWhere.
        run(complete.option("replaceWhere", "part = 7"), tmp_path, path)
    finally:
        session.conf.unset("spark.sql.sources.partitionOverwriteMode")
    table = DeltaTable(path)
    assert sorted((row["part"], row["count"]) for row in table.scan()) == [(0, 1), (1, 3)]
    assert [entry["isBlindAppend"] for entry in table.history()] == [False, False]
    # DescribeDeltaHistorySuite: "operation metrics - streaming update - complete mode"
    metrics = table.history(1)[0]["operationMetrics"]
    assert (metrics["numRemovedFiles"], metrics["numOutputRows"]) == ("2", "2")
    assert set(metrics) == {"numAddedFiles", "numRemovedFiles", "numOutputRows", "numOutputBytes"}
    with pytest.raises(InvalidArgumentError, match="append or complete"):
        run(grouped.writeStream.outputMode("update").format("delta"), tmp_path, path)


def test_a_query_with_state_continues_after_a_crash_behind_a_commit(session: Any, tmp_path: Path) -> None:
    """The checkpoint does not know that the last batch was completed. The batch is not written again, but its
    state is: Spark 4.2 and newer check that."""
    for number in (1, 2):
        files(tmp_path / "in", number)
    path = str(tmp_path / "t")

    def count() -> list[tuple[int, int]]:
        grouped = source(session, tmp_path / "in").groupBy("part").count()
        run(grouped.writeStream.outputMode("complete").format("delta"), tmp_path, path)
        return sorted((row["part"], row["count"]) for row in DeltaTable(path).scan())

    assert count() == [(0, 1), (1, 1)]
    commits = tmp_path / "checkpoint" / "commits"
    (commits / "1").unlink()
    (commits / ".1.crc").unlink(missing_ok=True)
    files(tmp_path / "in", 3)
    assert count() == [(0, 1), (1, 2)]
    assert DeltaTable(path).version == 2


def test_columns_are_added_where_that_is_asked_for(session: Any, tmp_path: Path) -> None:
    """DeltaSinkSuite: "incompatible schema merging throws errors", "can add a column"."""
    files(tmp_path / "in", 1)
    path = str(tmp_path / "t")
    run(source(session, tmp_path / "in").writeStream.format("delta"), tmp_path, path)
    files(tmp_path / "in", 2, n=[5])
    wider = source(session, tmp_path / "in", "id long, part long, n long")
    with pytest.raises(Exception, match=r"\[DELTA_METADATA_MISMATCH\] n"):
        run(wider.writeStream.format("delta"), tmp_path, path)
    run(wider.writeStream.format("delta").option("mergeSchema", True), tmp_path, path)
    assert sorted((row["id"], row["n"]) for row in DeltaTable(path).scan()) == [(1, None), (2, 5)]


def test_values_are_cast_to_the_types_of_the_table(session: Any, tmp_path: Path) -> None:
    """DeltaSinkImplicitCastSuite: a stream of another type is cast, and a value that does not fit ends it."""
    files(tmp_path / "in", 1, 2)
    path = str(tmp_path / "t")
    DeltaTable.create(path, "id smallint, s struct<a: bigint, b: string>, text string")
    frame = source(session, tmp_path / "in")
    run(
        frame.selectExpr(
            "id + 0.75D AS id", "named_struct('a', string(id)) AS s", "id AS text"
        ).writeStream.format("delta"),
        tmp_path,
        path,
    )
    found = sorted((row["id"], row["s"], row["text"]) for row in DeltaTable(path).scan())
    assert found == [(1, {"a": 1, "b": None}, "1"), (2, {"a": 2, "b": None}, "2")]
    for wrong, condition in {
        "'x' AS id": "CAST_INVALID_INPUT",
        "100000 AS id": "CAST_OVERFLOW_IN_TABLE_INSERT",
        "array(1) AS id": "DELTA_FAILED_TO_MERGE_FIELDS",
        "named_struct('z', 1) AS s": "DELTA_METADATA_MISMATCH",
    }.items():
        with pytest.raises(Exception, match=rf"exception: \[{condition}\] "):
            run(frame.selectExpr(wrong).writeStream.format("delta"), tmp_path / wrong[:3], path)


def test_an_existing_table_keeps_its_clustering_and_properties(session: Any, tmp_path: Path) -> None:
    """DeltaSink reads neither clusterBy nor options of table properties, nor dataChange."""
    files(tmp_path / "in", 1, 2)
    DeltaTable.create(tmp_path / "t", "id bigint, part bigint", cluster_by="id")
    writer = source(session, tmp_path / "in").writeStream.format("delta").clusterBy("part")
    writer = writer.option("delta.appendOnly", "true").option("dataChange", "false")
    run(writer, tmp_path, str(tmp_path / "t"))
    table = DeltaTable(tmp_path / "t")
    detail = session.sql(f"DESCRIBE DETAIL delta.`{tmp_path / 't'}`").first()
    assert (ids(table), detail.clusteringColumns) == ([1, 2], ["id"])
    assert "delta.appendOnly" not in table.metadata.configuration


def test_it_needs_a_checkpoint_and_a_path(session: Any, tmp_path: Path) -> None:
    files(tmp_path / "in", 1)
    frame = source(session, tmp_path / "in")
    with pytest.raises(InvalidArgumentError, match="checkpoint"):
        frame.writeStream.format("delta").start(str(tmp_path / "t"))
    with pytest.raises(InvalidArgumentError, match="one path"):
        run(frame.writeStream.format("delta"), tmp_path)


def test_a_wrong_option_is_refused_before_the_query_starts(session: Any, tmp_path: Path) -> None:
    files(tmp_path / "in", 1)
    frame = source(session, tmp_path / "in")
    for writer, message in (
        (frame.writeStream.format("delta").option("mergeSchema", "maybe"), "mergeSchema"),
        (
            frame.writeStream.format("delta").partitionBy("nothing"),
            "no such partition column.*nothing",
        ),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            run(writer, tmp_path, str(tmp_path / "t"))
    assert not (tmp_path / "t").exists()
    assert not (tmp_path / "checkpoint").exists()


def test_from_table_to_table_by_path(session: Any, tmp_path: Path) -> None:
    table = deltaic.write(
        tmp_path / "from", pa.table({"id": [1, 2]}), properties={"delta.enableDeletionVectors": True}
    )
    table.delete("id = 1")
    frame = session.readStream.table(f"delta.`{tmp_path / 'from'}`").where("id > 0")
    writer = (
        frame.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
        .queryName("copied")
        .trigger(availableNow=True)
    )
    query = writer.toTable(f"delta.`{tmp_path / 'to'}`")
    query.awaitTermination(60)
    assert (query.name, ids(tmp_path / "to")) == ("copied", [2])


@pytest.mark.parametrize(
    ("options", "partition", "error"),
    [
        ({}, "part", "needs a checkpoint"),
        ({"checkpointLocation": "c", "mergeSchema": "maybe"}, "part", "option mergeSchema"),
        ({"checkpointLocation": "c"}, "other", "other"),
    ],
)
def test_a_refused_stream_creates_no_table(
    session: Any, tmp_path: Path, options: dict[str, str], partition: str, error: str
) -> None:
    files(tmp_path / "in", 1)
    if "checkpointLocation" in options:
        options = {**options, "checkpointLocation": str(tmp_path / "c")}
    writer = source(session, tmp_path / "in").writeStream.options(**options).partitionBy(partition)
    with pytest.raises(deltaic.errors.DeltaError, match=error) as refused:
        writer.toTable("refused_stream", format="delta")
    assert options or refused.value.getCondition() == "_LEGACY_ERROR_TEMP_1298"
    assert not session.catalog.tableExists("refused_stream")


def test_a_temporary_view_takes_no_stream(session: Any, tmp_path: Path) -> None:
    from pyspark.errors import AnalysisException

    files(tmp_path / "in", 1)
    session.range(1).createOrReplaceTempView("only_read")
    writer = source(session, tmp_path / "in").writeStream.option(
        "checkpointLocation", str(tmp_path / "checkpoint")
    )
    with pytest.raises(AnalysisException, match="Temporary view only_read doesn't support streaming write"):
        writer.toTable("only_read", format="delta")


def test_merges_of_a_batch_happen_once(session: Any, tmp_path: Path) -> None:
    """foreachBatch with MERGE, idempotent by txnAppId and txnVersion."""
    files(tmp_path / "in", 1, 2)
    path = str(tmp_path / "t")
    DeltaTable.create(path, "id bigint, part bigint, n int")

    def merged(batch: Any, number: int) -> None:
        own = batch.sparkSession
        own.conf.set("spark.databricks.delta.write.txnAppId", "merges")
        own.conf.set("spark.databricks.delta.write.txnVersion", str(number))
        batch.createOrReplaceTempView("batch")
        own.sql(
            f"MERGE INTO delta.`{path}` t USING batch s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = t.n +"
            " 1 WHEN NOT MATCHED THEN INSERT (id, part, n) VALUES (s.id, s.part, 0)"
        )

    frame = source(session, tmp_path / "in")
    run(frame.writeStream.foreachBatch(merged), tmp_path)
    version = DeltaTable(path).version
    for name in ("0", ".0.crc"):
        (tmp_path / "checkpoint" / "commits" / name).unlink(missing_ok=True)
    run(frame.writeStream.foreachBatch(merged), tmp_path)
    assert DeltaTable(path).version == version == 1
    assert [row["n"] for row in DeltaTable(path).scan()] == [0, 0]


def test_void_columns_are_refused(session: Any, tmp_path: Path) -> None:
    files(tmp_path / "in", 1)
    frame = source(session, tmp_path / "in").selectExpr("id", "NULL AS nothing")
    with pytest.raises(Exception, match="DELTA_NULL_SCHEMA_IN_STREAMING_WRITE"):
        run(frame.writeStream.format("delta"), tmp_path, str(tmp_path / "t"))


DRIVER = """
import sys
sys.path[:0] = sys.argv[4:]
from spark_session import SETTINGS
from pyspark.sql import SparkSession
import deltaic.spark
source, sink, checkpoint = sys.argv[1:4]
builder = SparkSession.builder.master("local[2]")
for name, value in SETTINGS.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
spark.sparkContext.setLogLevel("OFF")
deltaic.spark.enable(spark)
frame = spark.readStream.format("delta").option("maxFilesPerTrigger", 1).load(source)
writer = frame.writeStream.format("delta").option("checkpointLocation", checkpoint)
writer.trigger(availableNow=True).start(sink).awaitTermination()
"""


@pytest.mark.timeout(300 + 120 * KILLS)
def test_each_row_once_though_the_driver_is_killed(session: Any, tmp_path: Path) -> None:
    """kill -9 of the driver at random moments after its first commit; the last run is left alone."""
    chance = random.Random(3)
    commits = 6
    for number in range(commits):
        deltaic.write(tmp_path / "from", pa.table({"id": [number]}), mode="append")
    log, count = tmp_path / "to" / "_delta_log", 0
    for _ in range(KILLS):
        arguments = [str(tmp_path / name) for name in ("from", "to", "checkpoint")]
        child = subprocess.Popen(
            [sys.executable, "-c", DRIVER, *arguments, *sys.path],
            start_new_session=True,
            stderr=subprocess.DEVNULL,
        )
        try:
            deadline = time.monotonic() + 120
            while (
                child.poll() is None
                and time.monotonic() < deadline
                and len(list(log.glob("*.json"))) <= count
            ):
                time.sleep(0.01)
            time.sleep(chance.random())
        finally:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        count = len(list(log.glob("*.json")))
        deltaic.write(tmp_path / "from", pa.table({"id": [commits]}), mode="append")
        commits += 1
    assert count
    frame = session.readStream.format("delta").option("maxFilesPerTrigger", 1).load(str(tmp_path / "from"))
    run(frame.writeStream.format("delta"), tmp_path, str(tmp_path / "to"))
    assert ids(tmp_path / "to") == list(range(commits))
