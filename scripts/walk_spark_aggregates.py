"""Walks the list of aggregate functions, and compares each result of the embedded engine with Spark's (ANSI
on).

Prints every query with different results; queries that are refused by name are skipped. Needs PySpark and
Java; run it in the repository's root: `python scripts/walk_spark_aggregates.py [--zone ZONE] [--sample N]
[--seed N] [--record N]`. `--record` writes N of the queries with equal results, and all of
tests/spark_sql/aggregates_found.txt (those that once differed), to the file that
tests/spark_sql/test_aggregates_recorded.py reads. `--statistics` alone records the queries of
tests/spark_sql/statistics_cases.py.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import time
from collections.abc import Iterator, Sequence, Set
from itertools import groupby
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "spark_sql"))

from aggregate_answers import Aggregates, differences, failing
from aggregate_cases import Query, queries, select
from pyspark.sql import DataFrame, SparkSession
from record_spark_expressions import condition, load, session
from spark_recording import encode, save
from statistics_cases import QUERIES
from walk_cases import WALK

from deltaic.errors import DeltaError, UnsupportedFeatureError

_ORDER = re.compile(r"\b(first|last|any)\w*\(")  # in Spark too of the order in which rows happen to come
FOUND = Path(__file__).resolve().parents[1] / "tests" / "spark_sql" / "aggregates_found.txt"


class Spark:
    """Spark's answers to queries over the rows of the walk."""

    def __init__(self, spark: SparkSession, zone: str) -> None:
        self._spark = spark
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        load(spark, WALK.rows).localCheckpoint().createOrReplaceTempView("given")
        spark.conf.set("spark.sql.session.timeZone", zone)

    def answers(
        self, asked: Sequence[Query], alone: Set[Query], batch: int = 20
    ) -> Iterator[tuple[Query, dict[str, Any]]]:
        """Yields {"type", "rows": [[key, value], ...]}, {"type", "error": condition} or {"refused":
        condition} for each query. Queries that may fail must be evaluated `alone`, because a failure affects
        all queries that are evaluated together."""
        for query in asked:
            if query in alone:
                yield from self._together([query]).items()
        for _, group in groupby(
            sorted((query for query in asked if query not in alone), key=_alike), key=_alike
        ):
            same = list(group)
            for start in range(0, len(same), batch):
                yield from self._together(same[start : start + batch]).items()

    def _together(self, asked: Sequence[Query]) -> dict[Query, dict[str, Any]]:
        text = select([query.aggregate for query in asked], asked[0].tail, asked[0].key)
        frame: DataFrame | None = None
        try:
            frame = self._spark.sql(text)
            table = frame.toArrow()
        except Exception as error:
            if len(asked) == 1:
                kind = None if frame is None else frame.schema["v0"].dataType.json()
                return {
                    asked[0]: (
                        {"refused": condition(error)}
                        if kind is None
                        else {"type": kind, "error": condition(error)}
                    )
                }
            half = len(asked) // 2
            return self._together(asked[:half]) | self._together(asked[half:])
        keys = encode(table.column("k")) if asked[0].key else [None] * table.num_rows
        return {
            query: {
                "type": frame.schema[f"v{number}"].dataType.json(),
                "rows": [list(row) for row in zip(keys, encode(table.column(f"v{number}")), strict=True)],
            }
            for number, query in enumerate(asked)
        }


def _alike(query: Query) -> tuple[str, str, bool]:
    return query.tail, query.key, "DISTINCT" in query.aggregate


def record_statistics(zone: str) -> None:
    """Records the queries of statistics_cases.py, all of them."""
    answers = Spark(session(), zone).answers(QUERIES, set(QUERIES))
    save("statistics", zone, [{"query": list(query), **theirs} for query, theirs in answers])


def main(options: argparse.Namespace) -> None:
    if options.statistics:
        return record_statistics(options.zone)
    ours, asked = Aggregates(WALK, options.zone), queries()
    chosen, start = random.Random(options.seed), time.monotonic()
    if options.sample:
        asked = chosen.sample(asked, options.sample)
    once = {Query(*line.split("\t")) for line in FOUND.read_text(encoding="utf-8").split("\n") if line}
    asked = list(dict.fromkeys([*once, *asked]) if options.record else asked)
    mine = {query: ours.outcome(query) for query in asked}
    answered = [query for query in asked if not isinstance(mine[query], DeltaError)]
    wrong = [
        query
        for query in asked
        if isinstance(mine[query], DeltaError) and not isinstance(mine[query], UnsupportedFeatureError)
    ]
    print(
        f"{len(asked)} queries, {len(answered)} answered, {len(wrong)} refused as wrong;"
        f" {time.monotonic() - start:.0f} s",
        flush=True,
    )
    # Most are wrong in Spark too, and asking one takes long.
    wrong = chosen.sample(wrong, min(len(wrong), 400))
    spark, same = Spark(session(), options.zone), []
    known = answered + wrong + [query for query in once if options.record and query not in answered + wrong]
    for query, theirs in spark.answers(known, {query for query in known if failing(mine[query])}):
        if why := differences(query, mine[query], theirs):
            print(query.sql(), why, flush=True)
        else:
            same.append({"query": list(query), **theirs})
    print(f"{len(same)} the same; {time.monotonic() - start:.0f} s")
    if options.record:
        old = [entry for entry in same if Query(*entry["query"]) in once]
        rest = [
            entry
            for entry in same
            if Query(*entry["query"]) not in once and not _ORDER.search(entry["query"][0])
        ]
        recorded = old + chosen.sample(rest, min(options.record, len(rest)))
        save("aggregates", options.zone, sorted(recorded, key=lambda entry: entry["query"]))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    for name in ("--sample", "--seed", "--record"):
        parser.add_argument(name, type=int, default=0)
    parser.add_argument("--statistics", action="store_true")
    parser.add_argument("--zone", default="America/New_York")
    main(parser.parse_args())
