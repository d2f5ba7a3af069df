"""A session that reads, writes and changes tables many times has no more threads, descriptors and objects
than after its first round.

`DELTAIC_SESSION_OPERATIONS=5000` is the long profile.
"""

from __future__ import annotations

import gc
import os
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import deltaic.spark
from deltaic.engine.spark.engine import SETTING, engine_of
from deltaic.engine.spark.native.callbacks import THREADS
from deltaic.engine.spark.settings import LAST_COMMIT

OPERATIONS = int(os.environ.get("DELTAIC_SESSION_OPERATIONS", "300"))

pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="descriptors are counted in /proc")


def counted(session: Any) -> dict[str, int]:
    """Of Python and of the JVM. Spark's own pools of threads, which it empties by itself, are left out."""
    jvm = session._jvm
    gc.collect()
    jvm.java.lang.System.gc()
    process = int(jvm.java.lang.ProcessHandle.current().pid())
    names = [thread.getName() for thread in jvm.java.lang.Thread.getAllStackTraces().keySet().toArray()]
    ours = Counter(
        "deltaic" if name.startswith("deltaic") else "py4j" if name.startswith("Thread-") else "spark"
        for name in names
    )
    return {
        "threads of Python": threading.active_count(),
        "descriptors of Python": len(os.listdir("/proc/self/fd")),
        "descriptors of the JVM": len(os.listdir(f"/proc/{process}/fd")),
        "threads of ours in the JVM": ours["deltaic"],
        "threads of py4j in the JVM": ours["py4j"],
    }


def operate(session: Any, place: str, number: int) -> None:
    if number % 30 == 29:
        session.sql(f"DELETE FROM delta.`{place}` WHERE id = {number}")
    elif number % 10 == 9:
        session.createDataFrame([(number, number % 3)], "id long, part int").write.format("delta").mode(
            "append"
        ).save(place)
    else:  # a shuffle: Spark lists the files in a thread of its own
        frame = session.read.format("delta").load(place).where(f"id <> {number}")
        (
            frame.groupBy("part").count() if number % 5 == 0 else frame
        )._jdf.queryExecution().toRdd().getNumPartitions()


def test_nothing_grows_with_what_a_session_does(session: Any, tmp_path: Path) -> None:
    place = str(tmp_path / "t")
    session.range(20).selectExpr("id", "CAST(id % 3 AS int) AS part").write.format("delta").partitionBy(
        "part"
    ).save(place)
    for number in range(30):
        operate(session, place, number)
    kept = engine_of(session).jvm.callbacks
    before, kept_before = counted(session), kept.count
    for number in range(OPERATIONS):
        operate(session, place, number)
    for _ in range(10):  # the JVM closes some descriptors a moment after a collection
        after = counted(session)
        if all(count <= before[what] + 2 * THREADS for what, count in after.items()):
            break
        time.sleep(1)
    for what, count in after.items():
        assert count <= before[what] + 2 * THREADS, (
            f"{what}: {before[what]} and, {OPERATIONS} operations later, {count}"
        )
    # What the JVM has collected is handed back by the next read, and is free to be collected then.
    for _ in range(3):
        operate(session, place, 1)
        counted(session)
    assert kept.count - kept_before < OPERATIONS / 2, "objects that Python keeps for the JVM"
    assert engine_of(session).is_native


def test_every_session_of_the_application_is_enabled(session: Any, tmp_path: Path) -> None:
    """`newSession`, and what a batch of `foreachBatch` calls its session."""
    place = str(tmp_path / "t")
    session.range(3).write.format("delta").save(place)
    batch = type(session)(session.sparkContext, session._jsparkSession.cloneSession())
    for number, other in enumerate((session.newSession(), batch)):
        rows = other.createDataFrame([(number + 10,)], "id long")
        rows.write.format("delta").mode("append").save(place)
        rows.createOrReplaceTempView("batch")
        merged = "WHEN MATCHED THEN UPDATE SET id = t.id + 100 WHEN NOT MATCHED THEN INSERT *"
        rows.sparkSession.sql(f"MERGE INTO delta.`{place}` t USING batch s ON t.id = s.id {merged}")
        assert other.table(f"delta.`{place}`").where(f"id = {number + 110}").count() == 1
        assert other.read.format("delta").load(place).count() == 4 + number
    assert session.read.format("delta").load(place).count() == 5


@pytest.mark.parametrize("native", ["auto", "never"])
def test_disable_leaves_the_settings_as_they_were(spark: Any, tmp_path: Path, native: Any) -> None:
    own = spark.newSession()
    before = own.conf.getAll
    deltaic.spark.enable(own, native=native)
    own.range(3).write.format("delta").save(str(tmp_path / "t"))
    own.sql(f"DELETE FROM delta.`{tmp_path / 't'}` WHERE id = 1")
    assert own.conf.get(LAST_COMMIT) == "1"
    deltaic.spark.disable(own)
    assert own.conf.getAll == before


def test_a_write_by_public_interfaces_leaves_the_settings_alone(spark: Any, tmp_path: Path) -> None:
    own = spark.newSession()
    deltaic.spark.enable(own, native="never")
    own.conf.set("spark.deltaic.driverRows", 0)
    own.conf.set("spark.sql.parquet.outputTimestampType", "INT96")
    own.conf.set("spark.sql.parquet.writeLegacyFormat", "true")
    own.conf.set("spark.sql.sources.partitionOverwriteMode", "DYNAMIC")
    before = own.conf.getAll
    rows = own.range(30).selectExpr("CAST(id AS DECIMAL(9,2)) AS d", "timestamp_micros(id) AS t")
    rows.write.format("delta").save(str(tmp_path / "t"))
    assert own.conf.getAll == {**before, LAST_COMMIT: "0"}
    columns = {
        str(column.physical_type)
        for file in (tmp_path / "t").rglob("*.parquet")
        for column in pq.ParquetFile(file).schema
    }
    assert columns == {"INT32", "INT64"}, "neither decimals of Parquet's old form nor INT96"
    assert not own.catalog.listTables()
    delattr(own, SETTING)  # sessions that are not enabled by themselves are as this one is
