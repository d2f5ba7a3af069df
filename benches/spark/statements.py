"""Measures small statements and streams on a warm Spark session of two threads: deltaic beside delta-spark,
and names beside paths.

    DELTA_SPARK_JARS=/path/to/jars python benches/spark/statements.py [--rows 1000000] [--large 4000000]
        [--commits 200] [--pairs 5]
        [--record FILE] [--jobs delete_ten,stream]

`--rows`: number of rows of the table that statements change, ten rows each; `--large`: of the table into
which a stream merges 20 batches of 1,000 rows by foreachBatch, half of them new; `--commits`: number of
commits of the table that a stream of AvailableNow reads, two in each of its batches, and copies into another
table. `micro_batch` is the time from such a commit of 100 rows until a running stream has copied it. One
session runs at a time, the systems take turns, and the minimum of each counts. DELTA_SPARK_JARS and
DELTA_SPARK_PYTHON are as for jobs.py. The rows that the systems leave are compared: a difference ends the
bench.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "peers"))

import jobs
from _pairs import Job, data

STATEMENTS = {
    "delete_ten": "DELETE FROM {table} WHERE id BETWEEN {first} AND {first} + 9",
    "update_ten": "UPDATE {table} SET value = value + 1 WHERE id BETWEEN {first} AND {first} + 9",
    "merge_ten": (
        "MERGE INTO {table} t USING (SELECT id + {first} AS id, 0.5D AS value FROM range(-5, 5)) s ON t.id ="
        " s.id WHEN MATCHED THEN UPDATE SET value = s.value WHEN NOT MATCHED THEN INSERT (id, value) VALUES"
        " (s.id, s.value)"
    ),
}
MERGE_BATCH = (
    "MERGE INTO {table} t USING batch s ON t.id = s.id WHEN MATCHED THEN UPDATE SET value = s.value "
    "WHEN NOT MATCHED THEN INSERT (id, key, value) VALUES (s.id, s.key, s.value)"
)
BATCHES, BATCH_ROWS = 20, 1_000
VECTORS = {"delta.enableDeletionVectors": True}
QUERY = "SELECT count(*) AS n FROM {table} WHERE id < {first}"
WARM, TIMED = 4, 8
WARM_BATCHES, TIMED_BATCHES = 20, 40
NAMED = 1.1
"""Maximum ratio of the time of queries by name to that of queries by path."""
JOBS = (
    *(Job(name=name, limits=jobs.against_delta(0.25)) for name in STATEMENTS),
    Job(name="merge_batches", limits=jobs.against_delta(0.5)),
    Job(name="stream", limits=jobs.against_delta(0.5)),
    Job(name="micro_batch", limits=jobs.against_delta(0.5)),
    Job(name="queries_by_path", limits={}),
    Job(name="queries_by_name", limits=jobs.against_delta(0.5)),
)


def prepare(root: Path, rows: int, large: int, commits: int) -> None:
    import deltaic

    for name, count in (("changed", rows), ("large", large)):
        table = data(count)
        made = deltaic.DeltaTable.create(root / name, table.schema, properties=VECTORS)
        for number in range(4):
            deltaic.write(made, table.slice(number * count // 4, count // 4), mode="append")
    for number in range(BATCHES):
        deltaic.write(root / "batches", batch_rows(large, number), mode="append")
    for _ in range(commits):
        deltaic.write(root / "commits", data(100), mode="append")
    (root / "rows").write_text(str(rows))


def batch_rows(large: int, number: int) -> Any:
    """Returns the rows of one batch: half of them are in the large table, spread over all of it, and in no
    other batch."""
    import numpy as np
    import pyarrow as pa

    half = BATCH_ROWS // 2
    old, new = (
        np.linspace(0, large - 1 - BATCHES, half).astype(np.int64) + number,
        np.arange(half) + large + number * half,
    )
    rows = data(BATCH_ROWS).set_column(0, "id", pa.array(np.concatenate([old, new])))
    return rows.set_column(2, "value", pa.array(np.full(BATCH_ROWS, 0.5)))


def work(system: str, spark: Any, job: str, root: Path) -> dict[str, Any]:
    """Runs a job, and returns the best seconds of one statement, or the seconds of all, and the rows to
    compare."""
    place = root / f"{system}-{job}"
    if job == "stream":
        return streamed(spark, root, place)
    if job == "merge_batches":
        return merged(spark, root, place)
    if job == "micro_batch":
        return followed(spark, root, place)
    jobs.copied(root / "changed", place)
    table = f"delta.`{place}`"
    if job == "queries_by_name":
        table = f"named_{os.getpid()}"
        spark.sql(f"CREATE TABLE {table} USING delta LOCATION '{place}'")
    if job.startswith("queries"):
        found = queried(spark, table)
        if job == "queries_by_name":
            spark.sql(f"DROP TABLE {table}")
        shutil.rmtree(place)
        return found
    rows, best = int((root / "rows").read_text()), float("inf")
    for number in range(WARM + TIMED):
        text = STATEMENTS[job].format(table=table, first=number * rows // (WARM + TIMED) + 17)
        start = time.perf_counter()
        spark.sql(text).collect()
        seconds = time.perf_counter() - start
        if number >= WARM:
            best = min(best, seconds)
    return {"seconds": best, "place": str(place)}


def queried(spark: Any, table: str) -> dict[str, Any]:
    """Runs 100 small queries; another 20 run before the clock starts."""
    answers: list[int] = []
    start = 0.0
    for number in range(120):
        if number == 20:
            start = time.perf_counter()
        answers.append(spark.sql(QUERY.format(table=table, first=number + 1)).first().n)
    return {"seconds": time.perf_counter() - start, "check": sum(answers)}


def merged(spark: Any, root: Path, place: Path) -> dict[str, Any]:
    """Streams of AvailableNow whose batches are merged into a large table: one of 3 commits first, for the
    JVM's compiler."""
    seconds = 0.0
    for number, last in enumerate((2, BATCHES - 1)):
        into = place.with_name(f"{place.name}-{number}")
        for left in (into, Path(f"{into}-checkpoint")):  # of the pair before
            shutil.rmtree(left, ignore_errors=True)
        jobs.copied(root / "large", into)

        def merge(batch: Any, at: int, table: str = f"delta.`{into}`", last: int = last) -> None:
            if at <= last:
                batch.createOrReplaceTempView("batch")
                batch.sparkSession.sql(MERGE_BATCH.format(table=table)).collect()

        frame = spark.readStream.format("delta").option("maxFilesPerTrigger", 1).load(str(root / "batches"))
        writer = (
            frame.writeStream.foreachBatch(merge)
            .option("checkpointLocation", f"{into}-checkpoint")
            .trigger(availableNow=True)
        )
        start = time.perf_counter()
        writer.start().awaitTermination()
        seconds = time.perf_counter() - start
        if number == 0:
            shutil.rmtree(into)
    return {"seconds": seconds, "place": str(into)}


def streamed(spark: Any, root: Path, place: Path) -> dict[str, Any]:
    """Runs a stream. A short stream runs first, for the JVM's compiler."""
    seconds = 0.0
    for number, limit in enumerate((50, 2)):
        into = place.with_name(f"{place.name}-{number}")
        for left in (into, Path(f"{into}-checkpoint")):  # of the pair before
            shutil.rmtree(left, ignore_errors=True)
        frame = (
            spark.readStream.format("delta").option("maxFilesPerTrigger", limit).load(str(root / "commits"))
        )
        writer = (
            frame.writeStream.format("delta")
            .option("checkpointLocation", f"{into}-checkpoint")
            .trigger(availableNow=True)
        )
        start = time.perf_counter()
        writer.start(str(into)).awaitTermination()
        seconds = time.perf_counter() - start
    return {"seconds": seconds, "place": str(into)}


def followed(spark: Any, root: Path, place: Path) -> dict[str, Any]:
    """Returns the median seconds of a batch of a stream that follows a table, after some batches for the
    JVM's compiler. Each commit of the table is linked into its log when the stream has copied the one
    before."""
    source, checkpoint = place.with_name(f"{place.name}-source"), place.with_name(f"{place.name}-checkpoint")
    for left in (source, checkpoint, place):  # of the pair before
        shutil.rmtree(left, ignore_errors=True)
    shutil.copytree(
        root / "commits", source, copy_function=os.link, ignore=shutil.ignore_patterns("_delta_log")
    )
    commits = sorted((root / "commits" / "_delta_log").glob("0*.json"))[: WARM_BATCHES + TIMED_BATCHES]
    (source / "_delta_log").mkdir()
    query, seconds = None, []
    for commit in commits:
        start = time.perf_counter()
        os.link(commit, source / "_delta_log" / commit.name)
        if query is None:
            frame = spark.readStream.format("delta").load(str(source))
            query = (
                frame.writeStream.format("delta")
                .option("checkpointLocation", str(checkpoint))
                .start(str(place))
            )
        query.processAllAvailable()
        seconds.append(time.perf_counter() - start)
    assert query is not None
    query.stop()
    return {"seconds": statistics.median(seconds[WARM_BATCHES:]), "place": str(place)}


def child(system: str, names: list[str], root: Path) -> None:
    spark = jobs.session(system)
    if system == "deltaic":
        import deltaic.spark

        deltaic.spark.enable(spark)
    for job in names:
        print("RESULT " + json.dumps({"job": job, **work(system, spark, job, root)}), flush=True)
    spark.stop()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--large", type=int, default=4_000_000)
    parser.add_argument("--commits", type=int, default=200)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--jobs", default=",".join(job.name for job in JOBS), help="comma-separated")
    parser.add_argument("--record", type=Path, help="file for the results as JSON")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    wanted = options.jobs.split(",")
    if options.child:
        child(options.child[0], wanted, Path(options.child[1]))
        return
    with tempfile.TemporaryDirectory(prefix="deltaic-bench-") as directory:
        root = Path(directory)
        prepare(root, options.rows, options.large, options.commits)
        results = jobs.compare([job for job in JOBS if job.name in wanted], root, options.pairs, __file__)
    seconds = {found["job"]: found["deltaic"] for found in results}
    if {"queries_by_path", "queries_by_name"} <= set(seconds):
        ratio = seconds["queries_by_name"] / seconds["queries_by_path"]
        rival = {"seconds": seconds["queries_by_path"], "ratio": ratio, "limit": NAMED, "met": ratio <= NAMED}
        results.append(
            {"job": "name_against_path", "deltaic": seconds["queries_by_name"], "rivals": {"by path": rival}}
        )
        jobs.show(results[-1])
    sizes = (
        f"--rows {options.rows} --large {options.large} --commits {options.commits} --pairs {options.pairs}"
    )
    some = "" if len(wanted) == len(JOBS) else f" --jobs {','.join(wanted)}"
    command = f"DELTA_SPARK_JARS=jars python benches/spark/statements.py {sizes}{some}"
    jobs.finish(
        options.record,
        options.rows,
        options.pairs,
        results,
        large=options.large,
        commits=options.commits,
        command=command,
    )


if __name__ == "__main__":
    main()
