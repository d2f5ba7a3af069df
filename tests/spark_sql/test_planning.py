"""Literals that Spark computes while it plans fail before any row is read, as recorded by
scripts/record_spark_expressions.py."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from planning_queries import PLANNING, PLANNING_SCHEMA
from spark_recording import load

import deltaic
from deltaic.errors import InvalidArgumentError, UnsupportedFeatureError
from deltaic.spark_sql.duckdb import ExpressionError

RECORDED = load("planning", "UTC")


def outcome(query: str, table: deltaic.DeltaTable) -> str | None:
    """Returns the condition with which the query fails, `refused`, or None if it succeeds."""
    try:
        # One row of an aggregate over none.
        assert deltaic.sql(query, tables={"t": table}).to_arrow().num_rows <= 1
    except ExpressionError as error:
        return error.condition
    except (InvalidArgumentError, UnsupportedFeatureError):
        return "refused"
    return None


def test_a_query_over_no_rows_fails_where_spark_does(tmp_path: Path) -> None:
    table = deltaic.DeltaTable.create(str(tmp_path / "t"), PLANNING_SCHEMA)
    found = {entry["query"]: outcome(entry["query"], table) for entry in RECORDED}
    assert [entry["query"] for entry in RECORDED] == PLANNING
    answers = {query for query, error in found.items() if error is None}
    fails = {query for query, error in found.items() if error not in (None, "refused")}
    assert answers & {entry["query"] for entry in RECORDED if "error" in entry} == set()
    assert fails & {entry["query"] for entry in RECORDED if "error" not in entry} == set()
    assert len(answers | fails) > len(RECORDED) * 2 // 3


@pytest.mark.parametrize("where", ["i = 'q'", "b AND i < 1/0", "d < 'a'"])
@pytest.mark.parametrize(
    "verb",
    [
        lambda table, where: table.delete(where),
        lambda table, where: table.update({"b": "NULL"}, where=where),
        lambda table, where: table.scan(where=where).to_arrow(),
    ],
    ids=["delete", "update", "scan"],
)
def test_verbs_fail_as_queries_do(
    verb: Callable[[deltaic.DeltaTable, str], Any], where: str, tmp_path: Path
) -> None:
    nothing = {"i": pa.nulls(3, pa.int32()), "b": pa.nulls(3, pa.bool_()), "d": pa.nulls(3, pa.date32())}
    table = deltaic.write(str(tmp_path / "t"), pa.table(nothing))
    with pytest.raises(ExpressionError):
        verb(table, where)
    assert table.version == 0
