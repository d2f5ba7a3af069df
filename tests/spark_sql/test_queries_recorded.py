"""Whole queries have the results that were recorded from Spark: rows, names and types of columns, and errors
by their condition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest
from query_answers import difference, encoded, queries
from query_tables import tables
from spark_recording import load

import deltaic
from deltaic.errors import DeltaError
from deltaic.spark_sql.values import type_text

RECORDED: Mapping[str, dict[str, Any]] = {entry["query"]: entry for entry in load("queries", "UTC")}
QUERIES = dict(queries())


@pytest.fixture(scope="module")
def warehouse() -> dict[str, pa.Table]:
    return tables()


def test_every_query_is_recorded() -> None:
    assert list(RECORDED) == list(QUERIES)


@pytest.mark.parametrize("name", QUERIES)
def test_the_answer_is_that_of_spark(name: str, warehouse: dict[str, pa.Table]) -> None:
    expected = RECORDED[name]
    if "error" in expected:
        with pytest.raises(DeltaError):
            deltaic.sql(QUERIES[name], tables=warehouse).to_arrow()
        return
    rows = deltaic.sql(QUERIES[name], tables=warehouse)
    columns = [[field.name, type_text(field.type).lower()] for field in rows.schema]
    assert difference(columns, encoded(rows.to_arrow()), expected, ordered=_is_ordered(QUERIES[name])) == ""


def _is_ordered(text: str) -> bool:
    return "ORDER BY" in text and text.rfind("ORDER BY") > text.rfind(")")  # no bracket closes after it
