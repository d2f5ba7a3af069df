"""Streams beside other commands: two sinks of one table; a source whose table is compacted, vacuumed and
restored meanwhile; and MERGEs of many batches, after which the process holds no more objects than before.

`DELTAIC_STREAM_BATCHES=2000` makes a long run of the last test.
"""

from __future__ import annotations

import os
import threading
import time
from datetime import timedelta
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa
import pytest
from test_session_resources import counted

import deltaic
from deltaic import DeltaTable
from deltaic.engine.spark.native.callbacks import THREADS
from spark_session import with_jvm

BATCHES = int(os.environ.get("DELTAIC_STREAM_BATCHES", "15"))
TIMED = 100
"""Number of batches whose median time is compared with that of the last ones, in a stream of at least ten
times as many."""
VECTORS = {"delta.enableDeletionVectors": True}


@pytest.fixture
def session(session: Any) -> Any:
    return with_jvm(session)


def appended(path: Path, *ids: int) -> DeltaTable:
    for number in ids:
        rows = {"id": pa.array([number], pa.int64()), "n": pa.array([0], pa.int64())}
        table = deltaic.write(
            path, rows, mode="append", properties=VECTORS if not DeltaTable.exists(path) else None
        )
    return table


def source(session: Any, path: Path, **options: Any) -> Any:
    return (
        session.readStream.format("delta").option("maxFilesPerTrigger", 1).options(**options).load(str(path))
    )


def ids(path: Path) -> list[int]:
    return sorted(DeltaTable(path).scan(["id"]).to_arrow()["id"].to_pylist())


def test_two_sinks_of_one_table(session: Any, tmp_path: Path) -> None:
    """Each batch of both streams is one commit, whoever is first."""
    target, queries = tmp_path / "target", []
    appended(target, -1)
    for name, numbers in (("a", range(0, 5)), ("b", range(100, 105))):
        appended(tmp_path / name, *numbers)
        writer = (
            source(session, tmp_path / name)
            .writeStream.format("delta")
            .option("checkpointLocation", str(tmp_path / f"{name} of"))
        )
        queries.append(writer.trigger(availableNow=True).start(str(target)))
    for query in queries:
        assert query.awaitTermination(120)
    assert ids(target) == [-1, *range(5), *range(100, 105)]
    table = DeltaTable(target)
    assert [table.transaction_version(query.id) for query in queries] == [4, 4]
    assert table.version == 10


def test_a_source_that_is_compacted_and_vacuumed_meanwhile(session: Any, tmp_path: Path) -> None:
    """DeltaSourceSuite: files that OPTIMIZE writes are no new rows ("dataChange = false"), and files that
    were read may go."""
    path, found = tmp_path / "t", []
    appended(path, 0)
    writer = source(session, path).writeStream.foreachBatch(
        lambda batch, number: found.extend(row.id for row in batch.collect())
    )
    query = (
        writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(processingTime="0 seconds")
        .start()
    )
    try:
        for first in range(1, 13, 3):
            work = threading.Thread(target=lambda: DeltaTable(path).optimize.compact())
            work.start()
            appended(path, *range(first, first + 3))
            work.join()
        query.processAllAvailable()
        DeltaTable(path).optimize.z_order(["id"])
        DeltaTable(path).vacuum(retention=timedelta(0), enforce_retention=False)
        appended(path, 13)
        query.processAllAvailable()
    finally:
        query.stop()
    assert sorted(found) == list(range(14)) == ids(path)


def test_a_restored_table_ends_its_stream(session: Any, tmp_path: Path) -> None:
    """RESTORE takes rows out: the stream ends as after a DELETE, and goes on where that is passed over."""
    path, found = tmp_path / "t", []
    appended(path, 0, 1, 2)

    def run(**options: Any) -> None:
        writer = source(session, path, **options).writeStream.option(
            "checkpointLocation", str(tmp_path / "checkpoint")
        )
        collected = writer.foreachBatch(lambda batch, number: found.extend(row.id for row in batch.collect()))
        collected.trigger(availableNow=True).start().awaitTermination(60)

    run()
    DeltaTable(path).restore(1)
    appended(path, 3)
    with pytest.raises(Exception, match="DELTA_SOURCE_IGNORE_DELETE"):
        run()
    run(ignoreDeletes=True)
    assert (sorted(found), ids(path)) == ([0, 1, 2, 3], [0, 1, 3])


def held(session: Any) -> dict[str, int]:
    """Counts of Python and the JVM, besides those of `counted`: RDDs that are cached, views, megabytes that
    are in use."""
    counts = counted(session)
    runtime = session._jvm.java.lang.Runtime.getRuntime()
    return {
        **counts,
        "RDDs": int(session._jsc.getPersistentRDDs().size()),
        "views": len(session.catalog.listTables()),
        "MB of the heap": int(runtime.totalMemory() - runtime.freeMemory()) >> 20,
        "MB of Python": int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        >> 20,
    }


@pytest.mark.timeout(300 + 2 * BATCHES)
def test_merges_of_many_batches_leave_nothing_behind(session: Any, tmp_path: Path) -> None:
    """A stream that merges each batch into a table with vectors, which is never compacted."""
    path, wanted = tmp_path / "target", {}
    table = deltaic.write(path, {"id": list(range(200)), "n": [0] * 200}, properties=VECTORS)
    numbers: list[dict[str, int]] = []
    seconds: list[float] = []

    def merged(batch: Any, number: int) -> None:
        start, target = time.perf_counter(), f"delta.`{path}`"
        batch.createOrReplaceTempView("batch")
        update = (
            "WHEN MATCHED THEN UPDATE SET n = t.n + 1 WHEN NOT MATCHED THEN INSERT (id, n) VALUES (s.id, 0)"
        )
        batch.sparkSession.sql(f"MERGE INTO {target} t USING batch s ON t.id = s.id {update}")
        seconds.append(time.perf_counter() - start)
        if number in (BATCHES // 3, BATCHES - 1):
            numbers.append(held(session))

    for number in range(BATCHES):
        changed = [number % 200, 200 + number]
        appended_rows = {"id": pa.array(changed, pa.int64())}
        deltaic.write(tmp_path / "in", appended_rows, mode="append")
        for each in changed:
            wanted[each] = wanted.get(each, 0 if each < 200 else -1) + 1
    writer = source(session, tmp_path / "in").writeStream.option(
        "checkpointLocation", str(tmp_path / "checkpoint")
    )
    assert writer.foreachBatch(merged).trigger(availableNow=True).start().awaitTermination(60 + 5 * BATCHES)
    rows = DeltaTable(path).scan(where="n > 0 OR id >= 200").to_arrow().to_pylist()
    assert {row["id"]: row["n"] for row in rows} == wanted
    assert DeltaTable(path).version == table.version + BATCHES
    first, last = numbers
    # Pools of threads grow by themselves. In the long profile 100 KB that each batch leaves are more than the
    # spare memory.
    spare = {"RDDs": 0, "views": 0, "MB of the heap": 150, "MB of Python": 150}
    for what, count in last.items():
        most = first[what] + spare.get(what, 2 * THREADS)
        assert count <= most, f"{what}: {first[what]} and, {BATCHES - BATCHES // 3} batches later, {count}"
    if BATCHES >= 10 * TIMED:
        # The JVM's compiler is at work in the batches before.
        early, late = (median(part) for part in (seconds[TIMED : 2 * TIMED], seconds[-TIMED:]))
        print(f"seconds of a batch: {early:.3f} early, {late:.3f} late; {first} early, {last} late")
        assert late <= 1.5 * early
