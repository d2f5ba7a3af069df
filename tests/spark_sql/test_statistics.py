"""Aggregates that describe columns have the results that were recorded from Spark by
scripts/walk_spark_aggregates.py --statistics."""

from __future__ import annotations

import json
import re
from typing import Any

import pyarrow as pa
import pytest
from aggregate_answers import Aggregates, differences
from aggregate_cases import Query
from spark_recording import load
from walk_cases import WALK

import deltaic
from deltaic.errors import UnsupportedFeatureError
from deltaic.protocol.schema_parser import type_from_json

ZONE = "America/New_York"
RECORDED = load("statistics", ZONE)
NAMES = sorted({entry["query"][0].split("(")[0] for entry in RECORDED})
_ORDER = re.compile(r"^(max_by|min_by|mode|first|first_value|last|last_value|any_value)\(")
"""Of rows that are equal in what counts, these answer the one that comes first, in Spark as here: types and
groups are compared."""


@pytest.fixture(scope="module")
def aggregates() -> Aggregates:
    return Aggregates(WALK, ZONE)


@pytest.mark.parametrize("name", NAMES)
def test_statistics_are_those_of_spark(aggregates: Aggregates, name: str) -> None:
    entries = [entry for entry in RECORDED if entry["query"][0].split("(")[0] == name]
    different = [(entry["query"], found) for entry in entries if (found := _difference(aggregates, entry))]
    assert entries
    assert different == []


def _difference(aggregates: Aggregates, entry: dict[str, Any]) -> str:
    query = Query(*entry["query"])
    outcome = aggregates.outcome(query)
    if isinstance(outcome, UnsupportedFeatureError):
        return str(outcome)
    if _ORDER.search(query.aggregate) and isinstance(outcome, tuple) and isinstance(outcome[1], list):
        keys = [sorted(repr(row[0]) for row in rows) for rows in (outcome[1], entry["rows"])]
        same = outcome[0] == type_from_json(json.loads(entry["type"])) and keys[0] == keys[1]
        return "" if same else f"{outcome}, in Spark {entry}"
    return differences(query, outcome, entry)


ROWS = pa.table(
    {
        "k": [1, 1, 1, 2, 2],
        "n": [3, 1, 2, 5, 4],
        "s": ["a", "b", "c", "d", "e"],
        "x": [1.0, 2.0, float("inf"), 4.0, 5.0],
    }
)


def test_filter_leaves_literal_arguments_as_they_are() -> None:
    query = (
        "SELECT percentile(n, 0.5) FILTER (WHERE n > 1) AS p, listagg(s, '-') FILTER (WHERE n > 2) AS s"
        " FROM t"
    )
    assert deltaic.sql(query, tables={"t": ROWS}).to_arrow().to_pylist() == [{"p": 3.5, "s": "a-d-e"}]


def test_statistics_over_windows_are_those_of_groups() -> None:
    calls = [
        "skewness(n)",
        "corr(n, k * n)",
        "percentile(n, 0.5)",
        "max_by(s, n)",
        "regr_r2(n, k + n)",
        "median(n)",
    ]
    for call in calls:
        windows = (
            deltaic.sql(f"SELECT DISTINCT k, {call} OVER (PARTITION BY k) AS v FROM t", tables={"t": ROWS})
            .to_arrow()
            .to_pylist()
        )
        groups = (
            deltaic.sql(f"SELECT k, {call} AS v FROM t GROUP BY k", tables={"t": ROWS}).to_arrow().to_pylist()
        )
        assert sorted(windows, key=lambda row: row["k"]) == sorted(groups, key=lambda row: row["k"]), call


def test_a_percentile_of_numbers_that_are_not_finite_is_refused() -> None:
    with pytest.raises(UnsupportedFeatureError, match="percentile of numbers that are not finite"):
        deltaic.sql("SELECT percentile(x, 0.5) AS p FROM t", tables={"t": ROWS}).to_arrow()
