"""Runs random queries (tests/spark_sql/query_walk.py) on Spark and on the embedded engine, and prints those
with different rows: `python scripts/walk_spark_queries.py 0 5000`, with the number of the first query and the
number after the last. Queries from number 200000 on have PIVOT and UNPIVOT (tests/spark_sql/pivot_walk.py).

After every 500 queries, the counts of a walk are written to tests/spark_sql/recorded/walked.json, under the
number of its first query. Before that file existed, about 20,000 queries, among them those up to number
120160, were walked on Spark 4.3 without a difference.

`--record 300` writes Spark's results of the first 300 queries that it can run to
tests/spark_sql/recorded/query_walk-UTC.json.gz, `--record 100 pivot` those of the first 100 with PIVOT and
UNPIVOT to pivot_walk-UTC.json.gz. Needs PySpark and Java.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "spark_sql"))

from pivot_walk import FIRST, query
from pyspark.sql import SparkSession
from query_answers import answer, difference
from query_walk import tables
from record_spark_expressions import load, session
from record_spark_queries import ask
from spark_recording import FOLDER, save

from deltaic.errors import DeltaError

WALKED = FOLDER / "walked.json"


def open_tables() -> SparkSession:
    spark = session()
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    for name, rows in tables().items():
        load(spark, rows, partitions=False).createOrReplaceTempView(name)
    return spark


def record(count: int, name: str) -> None:
    first = FIRST if name == "pivot" else 0
    spark, recorded, number = open_tables(), [], first
    while len(recorded) < count:
        text = query(number)
        asked = ask(spark, text)
        if "error" not in asked:
            recorded.append({"query": text, **asked})
        number += 1
    save(f"{name}_walk", "UTC", recorded)
    print(f"{count} of the first {number - first} queries recorded")


def walk(first: int, behind: int) -> None:
    spark, rows, counts, start = open_tables(), tables(), Counter[str](), time.monotonic()
    for number in range(first, behind):
        text = query(number)
        asked = ask(spark, text)
        outcome, shown = compared(text, rows, asked)
        counts[outcome] += 1
        if shown:
            print(f"{number} {outcome}: {text}\n    {shown}", flush=True)
        if number + 1 == behind or (number + 1 - first) % 500 == 0:
            print(
                f"{number + 1 - first} queries, {time.monotonic() - start:.0f} s: {dict(counts)}", flush=True
            )
            note_counts(first, {"behind": number + 1, "spark": spark.version, **dict(sorted(counts.items()))})


def note_counts(first: int, found: dict[str, Any]) -> None:
    """Writes what became of the queries from `first` on."""
    walks = json.loads(WALKED.read_text()) if WALKED.exists() else {}
    walks[str(first)] = found
    WALKED.write_text(
        "{\n"
        + ",\n".join(f"{json.dumps(key)}: {json.dumps(walks[key])}" for key in sorted(walks, key=int))
        + "\n}\n"
    )


def compared(text: str, rows: dict[str, Any], asked: dict[str, Any]) -> tuple[str, str]:
    """Returns the outcome of a query, and the difference."""
    try:
        columns, found = answer(text, rows)
    except DeltaError as error:
        if "error" in asked:
            return "refused by both", ""
        return "refused here", f"{type(error).__name__}: {str(error)[:300]}"
    if "error" in asked:
        return "refused by Spark", ""
    shown = difference(columns, found, asked, ordered=False)
    return ("different", shown) if shown else ("alike", "")


if __name__ == "__main__":
    if sys.argv[1] == "--record":
        record(int(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else "query")
    else:
        walk(int(sys.argv[1]), int(sys.argv[2]))
