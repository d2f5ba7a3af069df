"""Measures jobs on a Spark session of two threads: deltaic beside Spark's own Parquet files and, if its jars
are given, beside delta-spark.

    DELTA_SPARK_JARS=/path/to/jars python benches/spark/jobs.py [--rows 20000000] [--changed 4000000]
        [--pairs 5] [--record FILE]
        [--jobs delete_one,merge_1pct]

`--rows`: number of rows of the table that is scanned and appended to; `--changed`: of the table that is
changed. One session runs at a time, the systems take turns, and the minimum of each counts. A job runs at
least once before the clock starts, and every change has a fresh copy of the table. DELTA_SPARK_JARS: folder
of delta-spark's jars, for the PySpark of DELTA_SPARK_PYTHON (by default this interpreter); both systems
should run on the same Spark. The rows that a job leaves are compared between the systems: a difference ends
the bench. `--files N`: also runs the jobs plan_first, plan_warm, plan_again and count_files, over a log of N
files (benches/peers/log.py makes it; no job reads the files).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "peers"))

from _pairs import Job, data, record, show, sums

from log import checkpointed, write_log

JARS = os.environ.get("DELTA_SPARK_JARS")
NEEDED = ("delta-", "unitycatalog", "jackson-datatype-jdk8")
FILES = 4
DELTA = {} if JARS is None else {"delta-spark": None}


def against_delta(limit: float) -> dict[str, float | None]:
    return {} if JARS is None else {"delta-spark": limit}


SCANS = ("scan_two", "scan_all", "scan_selective")
HOLES = ("holes_two", "holes_all", "holes_selective")
JOBS = (
    *(Job(name=name, limits={"parquet": 0.95, **DELTA}) for name in SCANS),
    Job(name="holes_two", limits={"parquet": 1.35, **DELTA}),
    Job(name="holes_all", limits={"parquet": 1.05, **DELTA}),
    Job(name="holes_selective", limits={"parquet": 1.2, **DELTA}),
    Job(name="append", limits={"parquet": 1.1, **against_delta(1.0)}),
    Job(name="appends_50", limits={"parquet": None, **against_delta(0.5)}),
    Job(name="delete_one", limits=against_delta(0.5)),
    Job(name="delete_1pct", limits=against_delta(0.5)),
    Job(name="update_one", limits=against_delta(0.5)),
    Job(name="merge_1pct", limits=against_delta(0.5)),
    Job(name="merge_200k", limits=against_delta(0.5)),
    Job(name="z_order", limits=against_delta(0.7)),
    Job(name="count_wide", limits=against_delta(0.5)),
    Job(name="count_files", limits=against_delta(0.5)),
    Job(name="plan_first", limits=against_delta(0.1)),
    Job(name="plan_warm", limits=against_delta(0.2)),
    Job(name="plan_again", limits=against_delta(1 / 3)),
)
PLANS = ("plan_first", "plan_warm", "plan_again")
OF_LOGS = (*PLANS, "count_files")
COUNTS = ("count_wide", "count_files")
COLUMNS = 400
"""Columns of the table whose rows `count_wide` counts; the files have statistics of each."""
REPEATED = {
    **dict.fromkeys(SCANS + HOLES, (4, 6)),
    **dict.fromkeys(("scan_all", "holes_all"), (3, 4)),
    **dict.fromkeys(COUNTS, (4, 10)),
    **dict.fromkeys(("append", "appends_50"), (1, 1)),
    "z_order": (1, 2),
}
"""How often a job runs before the clock starts, and with it. Short ones more often: their first runs show the
JVM's compiler at work."""


# --- what all runs need


def wide(rows: int, first: int = 0) -> Any:
    """Returns the table that all benches use and five columns more."""
    import numpy as np
    import pyarrow as pa

    table = data(rows).set_column(0, "id", pa.array(np.arange(first, first + rows)))
    rng = np.random.default_rng(11)
    for number in range(3):
        table = table.append_column(f"amount{number}", pa.array(np.round(rng.random(rows) * 100, 2)))
    table = table.append_column("count", pa.array(rng.integers(0, 1_000_000, rows)))
    return table.append_column(
        "code", pa.array([f"c{number}" for number in range(50)]).take(pa.array(rng.integers(0, 50, rows)))
    )


def merge_source(rows: int, half: int) -> Any:
    """Returns twice `half` rows: half of them are in the table, spread over all of it, half are new."""
    import numpy as np
    import pyarrow as pa

    ids = np.concatenate([np.linspace(0, rows - 1, half).astype(np.int64), np.arange(rows, rows + half)])
    table = wide(2 * half)
    return table.set_column(0, "id", pa.array(ids)).set_column(2, "value", pa.array(np.full(len(ids), 0.5)))


def columns_of_numbers(rows: int) -> Any:
    import numpy as np
    import pyarrow as pa

    return pa.table({f"c{number}": pa.array(np.arange(rows) + number) for number in range(COLUMNS)})


def prepare(root: Path, rows: int, changed: int, files: int) -> None:
    """Makes one table for the systems to read, one like it with a tenth of its rows deleted, one to copy and
    change, and a log of many files."""
    import pyarrow.parquet as pq

    import deltaic

    if files:
        write_log(root / "log", files)
        checkpointed(root / "log")
    (root / "files").write_text(str(files))
    for name, count in (("plain", rows), ("changed", changed)):
        step = -(-count // FILES)
        for start in range(0, count, step):
            deltaic.write(root / name, wide(min(step, count - start), start), mode="append")
    copied(root / "plain", root / "holes")
    deltaic.DeltaTable(root / "holes").delete("count % 10 = 3")
    deltaic.write(
        root / "wide", columns_of_numbers(1_000), properties={"delta.dataSkippingNumIndexedCols": -1}
    )
    pq.write_table(merge_source(changed, changed // 200), root / "source.parquet")
    pq.write_table(merge_source(changed, min(100_000, changed)), root / "source_200k.parquet")
    (root / "rows").write_text(str(changed))


def copied(table: Path, place: Path) -> None:
    """Copies a table to another place. No writer changes a file that it finds."""
    shutil.copytree(table, place, copy_function=os.link)


# --- one system, in a process of its own


@dataclass
class Child:
    """The jobs of one system in one session. A job is a function of the place it may change (a table made for
    it); -> what is compared."""

    system: str
    root: Path

    def __post_init__(self) -> None:
        self.rows = int((self.root / "rows").read_text())
        self.spark = session(self.system)

    def run(self, job: str) -> dict[str, Any]:
        """Runs a job, and returns the best seconds, and a check or the place of what the job leaves."""
        if job in PLANS:
            return self.plan(job)
        before, times = REPEATED.get(job, (2, 3))
        best, answer, place = float("inf"), None, self.root
        for number in range(before + times):
            place = self.place(job, number)
            start = time.perf_counter()
            answer = self.work(job, place, warming=number < before)
            seconds = time.perf_counter() - start
            if number >= before:
                best = min(best, seconds)
        return {"seconds": best, **({"place": str(place)} if answer is None else {"check": answer})}

    def place(self, job: str, number: int) -> Path:
        """Scans and counts read the table as it is; the rest has a copy, or nothing."""
        if job in COUNTS:
            return self.root / ("wide" if job == "count_wide" else "log")
        if job.startswith(("scan_", "holes_")):
            return self.root / ("holes" if job.startswith("holes_") else "plain")
        place = self.root / f"{self.system}-{job}-{number}"
        shutil.rmtree(self.root / f"{self.system}-{job}-{number - 1}", ignore_errors=True)
        if not job.startswith("append"):
            copied(self.root / "changed", place)
        return place

    def work(self, job: str, place: Path, *, warming: bool) -> Any:
        kind, _, what = job.partition("_")
        if kind == "count":
            return int(self.read(place).count())
        if kind in ("scan", "holes"):
            return self.count(self.narrowed(self.read(place), what))
        if kind == "append":
            return self.append(
                self.spark.read.parquet(*files_of(self.root / ("changed" if warming else "plain"))), place
            )
        if kind == "appends":
            for number in range(5 if warming else 50):
                first = number * 100
                self.append(
                    self.spark.range(first, first + 100).selectExpr(
                        "id", "CAST(id % 7 AS INT) AS key", "id / 3 AS value"
                    ),
                    place,
                )
            return None
        return getattr(self, f"{self.system.replace('-', '_')}_change")(job, place)

    def read(self, place: Path) -> Any:
        if self.system == "parquet":
            return self.spark.read.parquet(*files_of(place))
        if self.system == "delta-spark":
            return self.spark.read.format("delta").load(str(place))
        import deltaic.spark

        return deltaic.spark.read(self.spark, place)

    @staticmethod
    def narrowed(frame: Any, what: str) -> Any:
        if what == "two":
            return frame.select("key", "value")
        return (
            frame if what == "all" else frame.where("id BETWEEN 1000 AND 1999").select("id", "value", "name")
        )

    def count(self, frame: Any) -> int:
        """Returns the number of rows that a consumer gets: no column is omitted as unused. The raw files have
        the deleted rows too."""
        return int(frame._jdf.queryExecution().toRdd().count())

    def append(self, frame: Any, place: Path) -> None:
        if self.system == "parquet":
            frame.write.mode("append").option("compression", "zstd").parquet(str(place))
        elif self.system == "delta-spark":
            frame.write.format("delta").mode("append").save(str(place))
        else:
            import deltaic.spark

            deltaic.spark.write(frame, place, mode="append")

    def deltaic_change(self, job: str, place: Path) -> None:
        import deltaic

        table = deltaic.DeltaTable(place, spark=self.spark)
        if job == "delete_one":
            table.delete(f"id = {self.rows // 2 + 1}")
        elif job == "delete_1pct":
            table.delete("key < 10")
        elif job == "update_one":
            table.update({"value": "value + 1"}, f"id = {self.rows // 2 + 1}")
        elif job == "z_order":
            table.optimize.z_order(["key", "at"])
        else:
            table.merge(
                self.source(job), "t.id = s.id"
            ).when_matched_update_all().when_not_matched_insert_all().execute()

    def delta_spark_change(self, job: str, place: Path) -> None:
        table = f"delta.`{place}`"
        if job == "delete_one":
            self.spark.sql(f"DELETE FROM {table} WHERE id = {self.rows // 2 + 1}").collect()
        elif job == "delete_1pct":
            self.spark.sql(f"DELETE FROM {table} WHERE key < 10").collect()
        elif job == "update_one":
            self.spark.sql(f"UPDATE {table} SET value = value + 1 WHERE id = {self.rows // 2 + 1}").collect()
        elif job == "z_order":
            self.spark.sql(f"OPTIMIZE {table} ZORDER BY (key, at)").collect()
        else:
            self.source(job).createOrReplaceTempView("source")
            self.spark.sql(
                f"MERGE INTO {table} t USING source s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT"
                " MATCHED THEN INSERT *"
            ).collect()

    def source(self, job: str) -> Any:
        return self.spark.read.parquet(
            str(self.root / ("source_200k.parquet" if job == "merge_200k" else "source.parquet"))
        )

    def plan(self, job: str) -> dict[str, Any]:
        """Measures opening a log and planning a query that needs few of its files: in a new session, again
        without cached objects, and again."""
        first = int((self.root / "files").read_text()) // 2 * 1000

        def query() -> int:
            frame = self.read(self.root / "log").where(f"id BETWEEN {first} AND {first + 9999}")
            parts = frame._jdf.queryExecution().toRdd().partitions()
            return sum(len(part.files()) for part in parts)

        def forget() -> None:
            if self.system == "delta-spark":
                self.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
            elif self.system == "deltaic":
                from deltaic.engine.spark.engine import engine_of
                from deltaic.engine.spark.stores import RecentSnapshots

                engine_of(self.spark).recent_snapshots = RecentSnapshots()

        best, files = float("inf"), 0
        for number in range({"plan_first": 1, "plan_warm": 3, "plan_again": 4}[job]):
            if job != "plan_again":
                forget()
            start = time.perf_counter()
            files = query()
            if not (number == 0 and job != "plan_first"):
                best = min(best, time.perf_counter() - start)
        return {"seconds": best, "check": files}


def session(system: str) -> Any:
    from pyspark.sql import SparkSession

    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "2g",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.host": "127.0.0.1",
    }
    if system == "delta-spark":
        settings |= {
            "spark.jars": ",".join(
                str(path)
                for path in Path(JARS or "").glob("*.jar")
                if any(name in path.name for name in NEEDED)
            ),
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            "spark.databricks.delta.snapshotPartitions": "2",
        }
    builder = SparkSession.builder.master("local[2]").appName("bench")
    for name, value in settings.items():
        builder = builder.config(name, value)
    made = builder.getOrCreate()
    made.sparkContext.setLogLevel("OFF")
    return made


def files_of(place: Path) -> list[str]:
    return [str(path) for path in place.rglob("*.parquet") if "_delta_log" not in path.parts]


def left_behind(system: str, place: Path) -> list[Any]:
    """Sums of the rows that a system left behind, by one reader for all systems; then they go."""
    import duckdb

    import deltaic

    if system == "parquet":
        found = sums(
            duckdb.sql(f"SELECT id, key, value FROM read_parquet('{place}/**/*.parquet')").to_arrow_reader()
        )
    else:
        with deltaic.DeltaTable(place).scan(["id", "key", "value"]).to_reader() as rows:
            found = sums(rows)
    shutil.rmtree(place)
    return found


def child(system: str, jobs: list[str], root: Path) -> None:
    run = Child(system, root)
    for job in jobs:
        print("RESULT " + json.dumps({"job": job, **run.run(job)}), flush=True)
    run.spark.stop()


# --- turns


def turn(system: str, jobs: list[str], root: Path, script: str) -> dict[str, dict[str, Any]]:
    python = (
        os.environ.get("DELTA_SPARK_PYTHON", sys.executable) if system == "delta-spark" else sys.executable
    )
    command = [python, script, "--child", system, str(root), "--jobs", ",".join(jobs)]
    finished = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "PYSPARK_PYTHON": python}
    )
    if finished.returncode:
        raise SystemExit(f"{system} {jobs} failed:\n{finished.stderr[-5000:]}")
    found = [json.loads(line[7:]) for line in finished.stdout.splitlines() if line.startswith("RESULT ")]
    return {row["job"]: row for row in found}


def compare(jobs: list[Job], root: Path, pairs: int, script: str = __file__) -> list[dict[str, Any]]:
    """`script`: what runs as `script --child SYSTEM ROOT --jobs NAMES` and prints a line of results for each
    job."""
    systems = ["deltaic", *dict.fromkeys(rival for job in jobs for rival in job.limits)]
    best: dict[tuple[str, str], dict[str, Any]] = {}
    checks: dict[str, dict[str, Any]] = {}
    for number in range(pairs):
        print(f"pair {number + 1} of {pairs}, {time.strftime('%H:%M:%S')}", file=sys.stderr, flush=True)
        for system in systems:
            theirs = [job.name for job in jobs if system == "deltaic" or system in job.limits]
            for name, found in turn(system, theirs, root, script).items():
                if "place" in found:
                    found["check"] = left_behind(system, Path(found.pop("place")))
                if name in (check := checks.setdefault(system, {})) and check[name] != found["check"]:
                    raise SystemExit(
                        f"{name}: {system} disagrees with itself:\n{check[name]}\n{found['check']}"
                    )
                check[name] = found["check"]
                if (system, name) not in best or found["seconds"] < best[system, name]["seconds"]:
                    best[system, name] = found
    return [row(job, best) for job in jobs]


def row(job: Job, best: dict[tuple[str, str], dict[str, Any]]) -> dict[str, Any]:
    ours = best["deltaic", job.name]
    rivals = {}
    for system, limit in job.limits.items():
        theirs = best[system, job.name]
        # Raw files have the rows that a table has deleted.
        if theirs["check"] != ours["check"] and not (system == "parquet" and job.name.startswith("holes_")):
            raise SystemExit(
                f"{job.name}: deltaic and {system} disagree:\n{ours['check']}\n{theirs['check']}"
            )
        ratio = ours["seconds"] / theirs["seconds"]
        rivals[system] = {
            "seconds": theirs["seconds"],
            "ratio": ratio,
            "limit": limit,
            "met": None if limit is None else ratio <= limit,
        }
    found = {"job": job.name, "deltaic": ours["seconds"], "rivals": rivals}
    show(found) if rivals else print(f"{job.name:24} {ours['seconds']:8.4f} s", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--changed", type=int, default=4_000_000)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--jobs", help="comma-separated; all but those that need --files")
    parser.add_argument("--files", type=int, default=0, help="of the log that is planned over")
    parser.add_argument("--record", type=Path, help="file for the results as JSON")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    wanted = (
        options.jobs.split(",")
        if options.jobs
        else [job.name for job in JOBS if options.files or job.name not in OF_LOGS]
    )
    if options.child:
        child(options.child[0], wanted, Path(options.child[1]))
        return
    with tempfile.TemporaryDirectory(prefix="deltaic-bench-") as directory:
        root = Path(directory)
        prepare(root, options.rows, options.changed, options.files)
        results = compare([job for job in JOBS if job.name in wanted], root, options.pairs)
    finish(options.record, options.rows, options.pairs, results, changed_rows=options.changed)


def finish(place: Path | None, rows: int, pairs: int, results: list[dict[str, Any]], **more: Any) -> None:
    """Writes the record, if one is requested. Raises SystemExit for a target that was missed."""
    if place:
        import pyspark

        record(place, rows, pairs, results)
        document = json.loads(place.read_text())
        jars = sorted(path.name for path in Path(JARS).glob("delta-*.jar")) if JARS else []
        java = subprocess.run(["java", "-version"], capture_output=True, text=True).stderr.partition("\n")[0]
        document["versions"] |= {"pyspark": pyspark.__version__, "java": java, "delta-spark": jars}
        place.write_text(json.dumps(document | more, indent=1) + "\n")
    if any(rival["met"] is False for found in results for rival in found["rivals"].values()):
        raise SystemExit("a target was missed")


if __name__ == "__main__":
    main()
