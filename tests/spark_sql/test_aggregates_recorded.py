"""Aggregates have the value, type and error that was recorded from Spark, or are refused by name;
scripts/walk_spark_aggregates.py records."""

from __future__ import annotations

from typing import Any

import pytest
from aggregate_answers import Aggregates, differences
from aggregate_cases import Query
from spark_recording import load
from walk_cases import WALK

from deltaic.errors import UnsupportedFeatureError

ZONE = "America/New_York"
RECORDED = load("aggregates", ZONE)
CHUNKS = [RECORDED[part::10] for part in range(10)]


@pytest.fixture(scope="module")
def aggregates() -> Aggregates:
    return Aggregates(WALK, ZONE)


@pytest.mark.parametrize("entries", CHUNKS, ids=range(len(CHUNKS)))
def test_aggregates_are_those_of_spark(aggregates: Aggregates, entries: list[dict[str, Any]]) -> None:
    queries = [(Query(*entry["query"]), entry) for entry in entries]
    different = [
        (query.sql(), differences(query, aggregates.outcome(query), entry)) for query, entry in queries
    ]
    assert [found for found in different if found[1]] == []


def test_most_of_what_is_recorded_is_answered(aggregates: Aggregates) -> None:
    answered = [
        entry
        for entry in RECORDED
        if not isinstance(aggregates.outcome(Query(*entry["query"])), UnsupportedFeatureError)
    ]
    assert len(RECORDED) > 200
    assert len(answered) > len(RECORDED) * 2 // 3
