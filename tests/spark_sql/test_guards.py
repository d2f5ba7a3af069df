"""Guards of conditions: the parts that the optimizer can still see, and the rows on which they prevent an
evaluation."""

from __future__ import annotations

import pyarrow as pa
import pytest

import deltaic
from deltaic import Schema
from deltaic.spark_sql.duckdb import ExpressionError, translate

COLUMNS = Schema.from_ddl("i int, s string, d date, t timestamp, x decimal(15,2)")
ORDERS = pa.table({"key": [1, 2, 3], "s": ["7", "bad", "9"]})
LINES = pa.table({"line": [1, 1, 3, 4], "text": ["7", "8", "no number", "also none"]})


def sql_of(text: str) -> str:
    return translate(text, {"c": COLUMNS}, column_sql=lambda alias, path: ".".join(path)).sql


@pytest.mark.parametrize(
    ("text", "literal"),
    [
        ("d < date '1994-01-01' + interval 1 year", "DATE '1995-01-01'"),
        ("d < date '2020-01-31' + interval 1 month", "DATE '2020-02-29'"),
        ("d >= date '2020-03-31' - interval 13 month", "DATE '2019-02-28'"),
        ("d <= date '1998-12-01' - interval 90 day", "DATE '1998-09-02'"),
        ("d <= date '1998-12-01' + 31", "DATE '1999-01-01'"),
        ("t < timestamp '2020-02-28 23:00:00' + interval 2 hour", "TIMESTAMPTZ '2020-02-29 01:00:00+00'"),
        ("i < 2 + 3 * 4", "CAST(14 AS INTEGER)"),
        ("x > 0.06 - 0.01", "CAST('0.05' AS DECIMAL(15, 2))"),
        ("x > 1 - 0.25 * 2", "CAST('0.50' AS DECIMAL(15, 2))"),
    ],
)
def test_arithmetic_on_literals_is_a_literal(text: str, literal: str) -> None:
    column, operator, _ = text.split(" ", 2)
    assert sql_of(text) == f"({column} {operator} {literal})"


@pytest.mark.parametrize(
    "text",
    [
        "i > 2147483647 + 1",
        "d > date '9999-12-31' + 1",
        "x > 1e0 + 1",
        "i > -2147483648 - 1",
        "x > 1 / 0",
        "i > 5 % 0",
    ],
)
def test_what_fails_or_is_inexact_is_left_to_the_engine(text: str) -> None:
    translated = translate(text, {"c": COLUMNS}, column_sql=lambda alias, path: ".".join(path))
    assert any(word in translated.sql for word in ("add(", "subtract(", "error(", "+"))


def test_a_computed_whole_number_has_the_digits_of_its_type() -> None:
    """Spark's rule: the literal 5 is a decimal(1,0), and 2 + 3 a decimal(10,0)."""
    typed = [
        translate(text, {"c": COLUMNS}, column_sql=lambda alias, path: path[0]).type
        for text in ("x * 5", "x * (2 + 3)")
    ]
    assert typed == ["decimal(17,2)", "decimal(26,2)"]


def answer(query: str) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = (
        deltaic.sql(query, tables={"o": ORDERS, "l": LINES}).to_arrow().to_pylist()
    )
    return rows


def test_an_equality_before_what_may_fail_still_joins() -> None:
    """With the equality inside the guard it would be a product of 20,000 x 20,000 rows."""
    many = pa.table({"a": range(20_000), "text": ["7"] * 20_000})
    query = "SELECT count(*) AS n FROM t JOIN u WHERE t.a = u.a AND cast(t.text AS int) + u.a >= 7"
    assert deltaic.sql(query, tables={"t": many, "u": many}).to_arrow()["n"].to_pylist() == [20_000]


def test_parts_that_cannot_fail_stay_operands_of_the_whole() -> None:
    assert sql_of("i = 1 AND cast(s AS int) = 2 AND d > date '2020-01-01'").startswith(
        "((i = CAST(1 AS INTEGER)) AND (d > DATE '2020-01-01') AND (CASE WHEN NOT (i = CAST(1 AS INTEGER))"
        " THEN false ELSE ("
    )
    assert sql_of("i = 1 OR cast(s AS int) = 2").startswith(
        "((i = CAST(1 AS INTEGER)) OR (CASE WHEN (i = CAST(1 AS INTEGER)) THEN true ELSE ("
    )


def test_rows_that_an_earlier_part_leaves_out_do_not_fail() -> None:
    assert answer("SELECT key FROM o WHERE s <> 'bad' AND cast(s AS int) > 7") == [{"key": 3}]
    assert answer("SELECT key FROM o WHERE (s <> 'bad' AND cast(s AS int) > 7) AND cast(s AS int) > 8") == [
        {"key": 3}
    ]
    assert answer("SELECT key FROM o WHERE s = 'bad' OR cast(s AS int) = 9 ORDER BY key") == [
        {"key": 2},
        {"key": 3},
    ]
    assert answer("SELECT key, s <> 'bad' AND cast(s AS int) > 7 AS b FROM o ORDER BY key") == [
        {"key": 1, "b": False},
        {"key": 2, "b": False},
        {"key": 3, "b": True},
    ]


def test_a_part_over_both_tables_sees_joined_rows_only() -> None:
    """The rows of key 3 and 4 would fail, and the condition before them excludes them."""
    assert answer("SELECT line FROM o, l WHERE key = line AND key < 3 AND cast(text AS int) + key = 8") == [
        {"line": 1}
    ]
    outer = (
        "SELECT key, line FROM o LEFT JOIN l ON key = line AND key < 3 AND cast(text AS int) = 8 ORDER BY key"
    )
    assert [row["line"] for row in answer(outer)] == [1, None, None]


@pytest.mark.parametrize(
    "where",
    [
        "cast(s AS int) > 7",
        "key > 1 AND cast(s AS int) > 7",
        "cast(s AS int) > 7 AND key > 0",
        "key = line AND cast(s AS int) > 7",  # Spark moves the second part below the join
    ],
)
def test_a_row_that_is_evaluated_fails(where: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        answer(f"SELECT key FROM o{', l' if 'line' in where else ''} WHERE {where}")
    assert caught.value.condition == "CAST_INVALID_INPUT"


def test_null_is_not_false_within_a_value() -> None:
    nulls = pa.table({"n": pa.array([None, 1], pa.int32()), "s": ["5", "x"]})
    rows = (
        deltaic.sql("SELECT n > 1 AND cast(s AS int) > 4 AS b FROM t", tables={"t": nulls})
        .to_arrow()["b"]
        .to_pylist()
    )
    assert rows == [None, False]
    rows = (
        deltaic.sql("SELECT n < 2 OR cast(s AS int) > 6 AS b FROM t", tables={"t": nulls})
        .to_arrow()["b"]
        .to_pylist()
    )
    assert rows == [None, True]
