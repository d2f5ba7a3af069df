"""Measures the change data feed and constraints on a warm Spark session of two threads: deltaic beside
delta-spark.

    DELTA_SPARK_JARS=/path/to/jars python benches/spark/feed_and_rules.py [--rows 4000000] [--pairs 5]
    [--record FILE]
        [--jobs changes,append]

changes: `readChangeFeed` of 100 commits (those of benches/peers/features.py) to rows. append: `--rows` rows
into a table with three constraints. One session runs at a time, the systems take turns, and the minimum of
each counts; the rows that they read and write are compared. DELTA_SPARK_JARS and DELTA_SPARK_PYTHON are as
for jobs.py.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "peers"))

import jobs
from _pairs import Job, data

LIMIT = 0.7
# How often a job runs before the clock starts, and with it: short ones more often, for the JVM's compiler.
CHANGES, APPENDS = (4, 6), (2, 3)
JOBS = tuple(Job(name=name, limits=jobs.against_delta(LIMIT)) for name in ("changes", "append"))


def prepare(root: Path, rows: int) -> None:
    import pyarrow.parquet as pq
    from features import COLUMNS, RULES, write_changes

    import deltaic

    table = data(rows)
    write_changes(root / "changes", table)
    pq.write_table(table, root / "rows.parquet")
    deltaic.DeltaTable.create(root / "rules", COLUMNS).alter.add_constraints(RULES)


def changes(spark: Any, root: Path) -> dict[str, Any]:
    best, (warm, timed) = float("inf"), CHANGES
    for number in range(warm + timed):
        start = time.perf_counter()
        frame = (
            spark.read.format("delta")
            .option("readChangeFeed", "true")
            .option("startingVersion", 1)
            .load(str(root / "changes"))
        )
        frame._jdf.queryExecution().toRdd().count()
        if number >= warm:
            best = min(best, time.perf_counter() - start)
    kinds = frame.groupBy("_change_type").agg({"id": "sum", "*": "count"}).orderBy("_change_type")
    return {"seconds": best, "check": [list(row) for row in kinds.collect()]}


def append(system: str, spark: Any, root: Path) -> dict[str, Any]:
    best, (warm, timed) = float("inf"), APPENDS
    rows, place = spark.read.parquet(str(root / "rows.parquet")), root / f"{system}-append"
    for number in range(warm + timed):
        shutil.rmtree(place, ignore_errors=True)
        place = place.with_name(f"{system}-append-{number}")  # delta-spark keeps logs by path
        shutil.rmtree(place, ignore_errors=True)  # of the pair before
        jobs.copied(root / "rules", place)
        start = time.perf_counter()
        rows.write.format("delta").mode("append").save(str(place))
        if number >= warm:
            best = min(best, time.perf_counter() - start)
    return {"seconds": best, "place": str(place)}


def child(system: str, names: list[str], root: Path) -> None:
    spark = jobs.session(system)
    if system == "deltaic":
        import deltaic.spark

        deltaic.spark.enable(spark)
    for job in names:
        found = changes(spark, root) if job == "changes" else append(system, spark, root)
        print("RESULT " + json.dumps({"job": job, **found}), flush=True)
    spark.stop()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=4_000_000)
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
        prepare(root, options.rows)
        results = jobs.compare([job for job in JOBS if job.name in wanted], root, options.pairs, __file__)
    command = (
        f"DELTA_SPARK_JARS=jars python benches/spark/feed_and_rules.py --rows {options.rows} --pairs"
        f" {options.pairs}"
    )
    jobs.finish(options.record, options.rows, options.pairs, results, command=command)


if __name__ == "__main__":
    main()
