"""Evaluates many forms on the rows of a family by the embedded engine, and compares the results with
Spark's."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Sequence
from typing import Any

import duckdb
from spark_cases import Family
from spark_recording import encode
from test_recorded import schema_of

from deltaic.errors import InvalidArgumentError, UnsupportedFeatureError
from deltaic.protocol.schema import Array, DataType, Field, Map, ResultType, Struct
from deltaic.protocol.schema_parser import type_from_json
from deltaic.spark_sql import values as v
from deltaic.spark_sql.duckdb import (
    ExpressionError,
    TranslatedExpression,
    failure_of,
    prepare,
    quote,
    translate,
)
from deltaic.spark_sql.macros import MACROS

Outcome = TranslatedExpression | UnsupportedFeatureError | InvalidArgumentError
# Java's StrictMath and the C library differ in the last place of these; what is made of their results may
# differ a little more.
_INEXACT = re.compile(
    r"\b(exp|expm1|ln|log\w*|power|pow|sinh?|cosh?|tanh?|asin|acos|atan2?|degrees|radians|cbrt|cot|e)\(",
)
_ERROR = re.compile(r"\berror\(")


def _soft(connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """Returns a connection whose errors TRY catches. TRY takes no volatile function, so `deltaic_soft`
    replaces `error`."""
    from duckdb import sqltypes

    def fail(message: str) -> None:
        raise ValueError(message)

    prepare(connection)
    connection.create_function(
        "deltaic_soft", fail, [sqltypes.VARCHAR], sqltypes.SQLNULL, null_handling="special"
    )
    for head, body in MACROS.items():
        if _ERROR.search(body):
            connection.execute(f"CREATE OR REPLACE MACRO {head} AS {_ERROR.sub('deltaic_soft(', body)}")
    return connection


class Answers:
    """Answers in one session time zone."""

    def __init__(self, family: Family, zone: str) -> None:
        self.rows = family.rows.num_rows
        self._schemas = {"t": schema_of(family)}
        self._zone = zone
        self._connection, self._trying = duckdb.connect(), _soft(duckdb.connect())
        prepare(self._connection)
        for connection in (self._connection, self._trying):
            connection.register("given", family.rows)
            connection.execute(
                "CREATE TABLE rows_given AS SELECT row_number() OVER () AS position, * FROM given"
            )

    def outcome(self, form: str) -> Outcome:
        """What becomes of a form before any row."""
        try:
            return translate(
                form, self._schemas, column_sql=lambda alias, path: quote(*path), time_zone=self._zone
            )
        except (UnsupportedFeatureError, InvalidArgumentError) as error:
            return error

    def values(self, found: Sequence[TranslatedExpression]) -> list[list[Any]]:
        """For each the value on every row; an error is {"error": condition}, a refusal on a row {"refused":
        text}."""
        result: dict[int, list[Any]] = {}
        together = [index for index, one in enumerate(found) if not one.raises]
        for start in range(0, len(together), 30):
            chunk = together[start : start + 30]
            columns = ", ".join(f"{found[index].sql} AS v{index}" for index in chunk)
            table = self._connection.sql(
                f"SELECT {columns} FROM rows_given ORDER BY position"
            ).to_arrow_table()
            result |= {index: encode(table.column(place)) for place, index in enumerate(chunk)}
        return [result[index] if index in result else self.failing(one) for index, one in enumerate(found)]

    def failing(self, one: TranslatedExpression, expected: Sequence[Any] = (), most: int = 1000) -> list[Any]:
        """Returns the values of a form that may fail, row by row if it does. With `expected`, values of which
        some are errors, the rows that should not fail are evaluated together, and of the others only the
        first `most`: the rest is assumed to be as expected."""
        if not one.columns and one.deterministic:
            return [self.single(one, None)] * self.rows
        bad = [row for row, value in enumerate(expected, 1) if _is(value, "error")]
        rest = f"WHERE position NOT IN ({', '.join(map(str, bad))})" if bad else ""
        try:
            query = f"SELECT {one.sql} AS value FROM rows_given {rest} ORDER BY position"
            good = iter(encode(self._connection.sql(query).to_arrow_table().column(0)))
        except duckdb.Error:
            return [self.single(one, row) for row in range(1, self.rows + 1)]
        asked = {row: self.single(one, row) for row in bad[:most]}
        return [
            (asked[row] if row in asked else expected[row - 1]) if row in bad else next(good)
            for row in range(1, self.rows + 1)
        ]

    def tried(self, found: Sequence[TranslatedExpression], seconds: float = 20) -> list[list[Any]]:
        """`values`, of many forms at once that may all fail; an error or a refusal on a row is {"error": ""}.
        What takes longer than `seconds` alone is {"crash": ...} on every row."""
        result: list[list[Any]] = []
        for start in range(0, len(found), 20):
            result += self._tried(found[start : start + 20], seconds)
        return result

    def _tried(self, found: Sequence[TranslatedExpression], seconds: float) -> list[list[Any]]:
        boxes = (f"struct_pack(v := {_ERROR.sub('deltaic_soft(', one.sql)})" for one in found)
        columns = ", ".join(
            f"{f'try({box})' if one.raises else box} AS v{i}"
            for i, (one, box) in enumerate(zip(found, boxes, strict=True))
        )
        timer = threading.Timer(seconds, self._trying.interrupt)
        timer.start()
        try:
            table = self._trying.sql(f"SELECT {columns} FROM rows_given ORDER BY position").to_arrow_table()
        except duckdb.Error as error:
            if len(found) > 1:
                step = 1 if isinstance(error, duckdb.InterruptException) else (len(found) + 1) // 2
                return [
                    values
                    for start in range(0, len(found), step)
                    for values in self._tried(found[start : start + step], seconds)
                ]
            if isinstance(error, duckdb.InterruptException):
                return [[{"crash": f"longer than {seconds} s"}] * self.rows]
            return [self.failing(found[0])]
        finally:
            timer.cancel()
        return [
            [{"error": ""} if box is None else box["v"] for box in encode(table.column(place))]
            for place in range(len(found))
        ]

    def kept(self, one: TranslatedExpression) -> list[int] | None:
        """Returns the rows, counted from 1, that a boolean form keeps as a condition; None if it fails."""
        try:
            found = self._connection.sql(
                f"SELECT position FROM rows_given WHERE {one.sql} ORDER BY position"
            ).fetchall()
        except duckdb.Error:
            return None
        return [position for (position,) in found]

    def single(self, one: TranslatedExpression, row: int | None) -> Any:
        """Returns the value on one row, counted from 1; on no row for None."""
        where = "" if row is None else f" FROM rows_given WHERE position = {row}"
        try:
            return encode(
                self._connection.sql(f"SELECT {one.sql} AS value{where}").to_arrow_table().column(0)
            )[0]
        except duckdb.Error as error:
            failure = failure_of(error)
            if isinstance(failure, ExpressionError):
                unsupported = failure.condition.startswith("UNSUPPORTED")
                return {"refused": str(failure)} if unsupported else {"error": failure.condition}
            if isinstance(failure, UnsupportedFeatureError):
                return {"refused": str(failure)}
            return {"crash": f"{type(error).__name__}: {str(error)[:300]}"}


def recorded_type(kind: Any) -> DataType:
    """Returns a type as Spark's JSON has it, which can hold intervals."""
    if isinstance(kind, str):
        return ResultType(kind) if kind.startswith("interval") else type_from_json(kind)
    if kind["type"] == "array":
        return Array(recorded_type(kind["elementType"]), kind["containsNull"])
    if kind["type"] == "map":
        return Map(
            recorded_type(kind["keyType"]), recorded_type(kind["valueType"]), kind["valueContainsNull"]
        )
    return Struct(
        Field(each["name"], recorded_type(each["type"]), each["nullable"]) for each in kind["fields"]
    )


def differences(
    form: str, found: TranslatedExpression, ours: Sequence[Any], recorded: dict[str, Any]
) -> list[str]:
    """How our answer to a form differs from what is recorded of Spark; nothing where it is the same."""
    if "refused" in recorded:
        return [f"Spark refuses it: {recorded['refused']}; here it is a {v.type_text(found.type)}"]
    if not v.same_but_nulls(found.type, recorded_type(json.loads(recorded["type"]))):
        return [f"type {v.type_text(found.type)}, in Spark {recorded['type']}"]
    if v.holds(found.type, v.is_interval):
        # Here they are numbers, and only a query makes intervals of them: formats.sql compares these values.
        return []
    theirs_fail = all(_is(value, "error") for value in recorded["values"])
    if (
        theirs_fail
        and any(_is(value, "error") for value in ours)
        and all(value is None or _is(value, "error") for value in ours)
    ):
        # A constant that cannot be cast fails while Spark plans, here on the first row that is not null.
        return []
    wrong = []
    for row, (mine, theirs) in enumerate(zip(ours, recorded["values"], strict=True), 1):
        if not _agrees(form, mine, theirs):
            wrong.append(f"row {row}: {mine!r}, in Spark {theirs!r}")
    if any(_is(value, "error") for value in ours) and not found.raises:
        wrong.append("it fails and does not say that it may")
    if any(value is None for value in ours) and not found.nullable:
        wrong.append("it is null and does not say that it may be")
    return wrong


def conditional(answers: Answers, found: TranslatedExpression, ours: Sequence[Any]) -> list[str]:
    """How a boolean form as a condition differs from its values."""
    if any(isinstance(value, dict) for value in ours):
        return []
    kept, expected = answers.kept(found), [row for row, value in enumerate(ours, 1) if value]
    return [] if kept == expected else [f"as a condition it keeps {kept}, not {expected}"]


def _is(value: Any, kind: str) -> bool:
    return isinstance(value, dict) and kind in value


def _agrees(form: str, mine: Any, theirs: Any) -> bool:
    if _is(mine, "refused"):
        return True
    if _is(mine, "error") and _is(theirs, "error"):
        return (
            not theirs["error"]
            or not mine["error"]
            or mine["error"].split(".")[0] == theirs["error"].split(".")[0]
        )
    return same_value(form, mine, theirs)


def same_value(form: str, mine: Any, theirs: Any) -> bool:
    """Equal, to the last place where that is not Spark's; maps in any order."""
    if mine == theirs:
        return True
    if (
        isinstance(mine, dict)
        and isinstance(theirs, dict)
        and mine.keys() == theirs.keys()
        and "error" not in mine
    ):
        return all(same_value(form, mine[key], theirs[key]) for key in mine)
    if isinstance(mine, list) and isinstance(theirs, list) and len(mine) == len(theirs):
        if all(same_value(form, a, b) for a, b in zip(mine, theirs, strict=True)):
            return True
        return "map" in form and sorted(map(repr, mine)) == sorted(map(repr, theirs))
    if isinstance(mine, str) and isinstance(theirs, str) and _INEXACT.search(form):
        try:
            return abs(float(mine) - float(theirs)) <= 1e-13 * abs(float(theirs))
        except ValueError:
            return False
    return False
