"""Random queries have the results that were recorded from Spark: names and types of columns, and rows.
`scripts/walk_spark_queries.py` records them, and compares further ones; tests/spark/test_random_queries.py
compares with a running Spark."""

from __future__ import annotations

import pyarrow as pa
import pytest
from query_answers import answer, difference
from query_walk import tables
from spark_recording import load

RECORDED = [*load("query_walk", "UTC"), *load("pivot_walk", "UTC")]


@pytest.fixture(scope="module")
def rows() -> dict[str, pa.Table]:
    return tables()


@pytest.mark.parametrize("number", range(len(RECORDED)))
def test_the_answer_is_that_of_spark(number: int, rows: dict[str, pa.Table]) -> None:
    expected = RECORDED[number]
    columns, found = answer(expected["query"], rows)
    assert difference(columns, found, expected, ordered=False) == "", expected["query"]
