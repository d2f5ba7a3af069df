"""Measures TPC-H on a Spark session of two threads: deltaic beside Spark's own reader on the same Parquet
files.

    python benches/spark/tpch.py [--scale 1] [--pairs 3] [--queries q1,q6] [--data FOLDER] [--record FILE]

`tpchgen-cli` (PyPI; on the path, or named by TPCHGEN) makes the data, unless FOLDER has it already: a file
`<table>.parquet` for each of the eight tables. lineitem is partitioned by the month of l_shipdate. The raw
side has the same files as the Delta tables, by links, in folders in which Spark finds the partitions. One
session runs at a time, and the systems take turns; each runs all queries once before the clock starts, then
once more. The minimum of each query counts; the limit applies to the geometric mean of the 22 ratios. Rows
must be equal, otherwise the bench ends; joins that Spark planned differently are printed. At scale 1 a pair
takes about 4 minutes on two cores.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "peers"))

from _pairs import record
from jobs import session

LIMIT = 1.0
TABLES = ("customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier")
SYSTEMS = ("deltaic", "parquet")
MONTH = "l_month"
JOINS = re.compile(
    r"\b(BroadcastHashJoin|SortMergeJoin|ShuffledHashJoin|BroadcastNestedLoopJoin|CartesianProduct)\b"
)
TIMES = 1


def queries() -> dict[str, str]:
    text = Path(__file__).with_suffix(".sql").read_text()
    parts = re.split(r"^-- (q\d+)$", text, flags=re.MULTILINE)[1:]
    return {name: body.strip().rstrip(";") for name, body in zip(parts[::2], parts[1::2], strict=True)}


# --- data


def generate(folder: Path, scale: str) -> None:
    subprocess.run(
        [os.environ.get("TPCHGEN", "tpchgen-cli"), "parquet", "-s", scale, f"--output-dir={folder}"],
        check=True,
    )


def prepare(root: Path, data: Path) -> None:
    """Makes Delta tables by Spark, and their files again as plain ones."""
    import deltaic
    import deltaic.spark

    spark = session("deltaic")
    for name in TABLES:
        frame, by = spark.read.parquet(str(data / f"{name}.parquet")), None
        if name == "lineitem":
            frame, by = (
                frame.selectExpr("*", f"date_format(l_shipdate, 'yyyy-MM') AS {MONTH}").repartition(MONTH),
                [MONTH],
            )
        deltaic.spark.write(frame, root / "delta" / name, partition_by=by)
        for file in (
            deltaic.DeltaTable(root / "delta" / name)
            .files()
            .to_arrow()
            .select(["location", "partition_values"])
            .to_pylist()
        ):
            folder = root / "parquet" / name
            if by is not None:
                folder = folder / f"{MONTH}={file['partition_values'][MONTH]}"
            folder.mkdir(parents=True, exist_ok=True)
            link(Path(file["location"]), folder)
    spark.stop()


def link(file: Path, folder: Path) -> None:
    """Links a file and the checksums that Hadoop wrote beside it: Spark verifies them where they are, which
    is up to half of the time of a scan of small files."""
    for each in (file, file.with_name(f".{file.name}.crc")):
        os.link(each, folder / each.name)


# --- one system, in a process of its own


def opened(spark: Any, system: str, root: Path, name: str) -> Any:
    if system == "deltaic":
        import deltaic.spark

        return deltaic.spark.read(spark, root / "delta" / name)
    import deltaic

    place = str(root / "parquet" / name)
    if name != "lineitem":
        return spark.read.parquet(place)
    schema = deltaic.DeltaTable(root / "delta" / name).schema.to_ddl()  # else the month is taken for a date
    return spark.read.schema(schema).parquet(place)


def child(system: str, root: Path, wanted: list[str]) -> None:
    spark = session(system)
    for name in TABLES:
        opened(spark, system, root, name).createOrReplaceTempView(name)
    texts, answers = queries(), {}
    for number in range(1 + TIMES):
        for name in wanted:
            start = time.perf_counter()
            frame = spark.sql(texts[name])
            rows = frame.collect()
            seconds = time.perf_counter() - start
            final = frame._jdf.queryExecution().executedPlan().toString().partition("== Initial Plan ==")[0]
            answer = {
                "seconds": seconds,
                "rows": [[str(value) for value in row] for row in rows],
                "joins": sorted(JOINS.findall(final)),
            }
            if number < 2 or seconds < answers[name]["seconds"]:
                answers[name] = {"query": name, **answer}
    for answer in answers.values():
        print("RESULT " + json.dumps(answer), flush=True)
    spark.stop()


# --- turns


def turn(system: str, root: Path, wanted: list[str]) -> dict[str, dict[str, Any]]:
    command = [sys.executable, __file__, "--child", system, str(root), "--queries", ",".join(wanted)]
    finished = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "PYSPARK_PYTHON": sys.executable}
    )
    if finished.returncode:
        raise SystemExit(f"{system} failed:\n{finished.stderr[-5000:]}")
    found = [json.loads(line[7:]) for line in finished.stdout.splitlines() if line.startswith("RESULT ")]
    return {row["query"]: row for row in found}


def compare(root: Path, wanted: list[str], pairs: int) -> list[dict[str, Any]]:
    best: dict[tuple[str, str], dict[str, Any]] = {}
    for number in range(pairs):
        for system in SYSTEMS if number % 2 == 0 else SYSTEMS[::-1]:
            for name, found in turn(system, root, wanted).items():
                known = best.setdefault((system, name), found)
                if found["rows"] != known["rows"]:
                    raise SystemExit(f"{name}: {system} gives other rows in another run")
                if found["seconds"] < known["seconds"]:
                    best[system, name] = found
    return [row(name, best["deltaic", name], best["parquet", name]) for name in wanted]


def row(name: str, ours: dict[str, Any], theirs: dict[str, Any]) -> dict[str, Any]:
    if ours["rows"] != theirs["rows"]:
        raise SystemExit(
            f"{name}: other rows than those of raw Parquet:\n{ours['rows'][:3]}\n{theirs['rows'][:3]}"
        )
    ratio = ours["seconds"] / theirs["seconds"]
    other = "" if ours["joins"] == theirs["joins"] else f"  joins {ours['joins']} | {theirs['joins']}"
    print(
        f"{name:4} {len(ours['rows']):6} rows {ours['seconds']:8.3f} s | parquet {theirs['seconds']:8.3f} s |"
        f" {ratio:5.2f} x{other}",
        flush=True,
    )
    rivals = {"parquet": {"seconds": theirs["seconds"], "ratio": ratio, "limit": None, "met": None}}
    return {
        "job": name,
        "deltaic": ours["seconds"],
        "rivals": rivals,
        "rows": len(ours["rows"]),
        "same_joins": not other,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scale", default="1")
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--queries", default=",".join(queries()), help="comma-separated")
    parser.add_argument("--data", type=Path, help="folder with the eight Parquet files")
    parser.add_argument("--record", type=Path, help="file for the results as JSON")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    wanted = options.queries.split(",")
    if options.child:
        child(options.child[0], Path(options.child[1]), wanted)
        return
    with tempfile.TemporaryDirectory(prefix="deltaic-bench-") as directory:
        root = Path(directory)
        if options.data is None:
            generate(root / "data", options.scale)
        prepare(root, options.data or root / "data")
        results = compare(root, wanted, options.pairs)
    mean = math.exp(
        sum(math.log(found["deltaic"] / found["rivals"]["parquet"]["seconds"]) for found in results)
        / len(results)
    )
    print(
        f"geometric mean of {len(results)}: {mean:.3f} x, limit {LIMIT}"
        f" {'met' if mean <= LIMIT else 'MISSED'}"
    )
    if options.record:
        write_record(options, results, mean)
    if mean > LIMIT:
        raise SystemExit("a target was missed")


def write_record(options: argparse.Namespace, results: list[dict[str, Any]], mean: float) -> None:
    import pyspark

    record(options.record, 0, options.pairs, results)
    document = json.loads(options.record.read_text())
    del document["rows"]
    document["command"] = f"python benches/spark/tpch.py --scale {options.scale} --pairs {options.pairs}"
    document |= {"scale": options.scale, "geometric_mean": mean, "limit": LIMIT, "met": mean <= LIMIT}
    document["versions"]["pyspark"] = pyspark.__version__
    options.record.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
