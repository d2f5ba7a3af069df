"""Evaluates aggregates on the rows of a family by the embedded engine, and compares the results with
Spark's."""

from __future__ import annotations

import json
import re
from typing import Any

import duckdb
from aggregate_cases import Query
from engine_answers import recorded_type
from spark_cases import Family
from spark_recording import encode
from test_recorded import schema_of

from deltaic.engine.duckdb.shown_types import shown_values
from deltaic.errors import DeltaError, InvalidArgumentError, UnsupportedFeatureError
from deltaic.spark_sql import values as v
from deltaic.spark_sql.duckdb import ExpressionError, failure_of, prepare
from deltaic.spark_sql.parsing import parse_statement
from deltaic.spark_sql.query.queries import translate_query

_MOMENTS = re.compile(r"\b(std|stddev|stddev_samp|stddev_pop|variance|var_samp|var_pop)\(")
_CANCELLING = re.compile(r"\b(corr|covar_\w+|regr_\w+|skewness|kurtosis|percentile|median)\(")
"""Sums of parts that cancel each other out, whose last places hang on the order of rows, in Spark as here."""
_SETS = re.compile(r"\bcollect_set\(|DISTINCT")


class Aggregates:
    """Answers in one session time zone: (type, rows) or the error before or while it runs."""

    def __init__(self, family: Family, zone: str) -> None:
        self._tables, self._zone = {"given": schema_of(family)}, zone
        self._connection = duckdb.connect()
        prepare(self._connection)
        self._connection.register("arrow", family.rows)
        self._connection.execute("CREATE TABLE given AS SELECT * FROM arrow; SET threads = 1")

    def outcome(self, query: Query) -> tuple[Any, list[list[Any]] | DeltaError] | DeltaError:
        """(type, rows or the error of a row), or why it is refused."""
        try:
            found = translate_query(parse_statement(query.sql()), self._tables, time_zone=self._zone)
        except (UnsupportedFeatureError, InvalidArgumentError) as error:
            return error
        kind = found.schema[-1].type
        try:
            table = self._connection.sql(found.sql).to_arrow_table()
        except duckdb.Error as error:
            failure = failure_of(error)
            if failure is None:
                raise AssertionError(f"{query.sql()}: {error}\n{found.sql}") from error
            return failure if isinstance(failure, UnsupportedFeatureError) else (kind, failure)
        keys = encode(table.column(0)) if query.key else [None] * table.num_rows
        shown = shown_values(table.column(table.num_columns - 1).combine_chunks(), kind)
        return kind, [list(row) for row in zip(keys, encode(shown), strict=True)]


def differences(query: Query, ours: Any, recorded: dict[str, Any]) -> str:
    """How our answer differs from what is recorded of Spark; nothing where it is the same or refused by
    name."""
    if isinstance(ours, UnsupportedFeatureError):
        return ""
    if isinstance(ours, DeltaError):
        return "" if "refused" in recorded else f"refused as wrong: {ours}; Spark answers {recorded['type']}"
    kind, rows = ours
    if "refused" in recorded:
        return f"Spark refuses it: {recorded['refused']}; here it is a {v.type_text(kind)}"
    if not v.same_but_nulls(kind, recorded_type(json.loads(recorded["type"]))):
        return f"type {v.type_text(kind)}, in Spark {recorded['type']}"
    if isinstance(rows, DeltaError):
        mine = rows.condition if isinstance(rows, ExpressionError) else str(rows)
        if "error" not in recorded:
            return f"fails with {mine}; in Spark {recorded['rows'][:3]}"
        same = mine.split(".")[0] == recorded["error"].split(".")[0]
        return "" if same else f"fails with {mine}, in Spark with {recorded['error']}"
    if "error" in recorded:
        return f"{rows[:3]}; in Spark it fails with {recorded['error']}"
    if len(rows) != len(recorded["rows"]):
        return f"{len(rows)} rows, in Spark {len(recorded['rows'])}"
    for one, other in zip(sorted(rows, key=_key), sorted(recorded["rows"], key=_key), strict=True):
        if one[0] != other[0] or not _same(query.aggregate, one[1], other[1]):
            return f"{one}, in Spark {other}"
    return ""


def failing(outcome: Any) -> bool:
    """Returns true if an outcome is an error, before or while the query runs."""
    return isinstance(outcome, DeltaError) or isinstance(outcome[1], DeltaError)


def _key(row: list[Any]) -> str:
    return repr(row[0])


def _same(aggregate: str, mine: Any, theirs: Any) -> bool:
    if mine == theirs:
        return True
    if isinstance(mine, list) and isinstance(theirs, list) and _SETS.search(aggregate):
        return sorted(map(repr, mine)) == sorted(map(repr, theirs))
    if isinstance(mine, str) and isinstance(theirs, str) and _MOMENTS.search(aggregate):
        return abs(float(mine) - float(theirs)) <= 1e-12 * abs(float(theirs))
    if isinstance(mine, str) and isinstance(theirs, str) and _CANCELLING.search(aggregate):
        return abs(float(mine) - float(theirs)) <= 1e-9 * abs(float(theirs))
    return False
