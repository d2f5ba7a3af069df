"""Columns as SQL text: Spark gives the text the same meaning as the column, or the column is refused."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest

from deltaic.errors import InvalidTypeError, UnsupportedFeatureError

pytest.importorskip("pyspark")

from pyspark.sql import functions as F

from deltaic.spark.expressions import assignments, sql_text


def said() -> dict[str, Any]:
    a, b = F.col("a"), F.col("b")
    return {
        "(a = 'x')": a == "x",
        "((a > 1) AND (NOT (b = 'it\\'s')))": (a > 1) & (b != "it's"),
        "((a >= 1) AND (a <= 2))": a.between(1, 2),
        "(a IN (1, 2))": a.isin(1, 2),
        "(t.id = s.id)": F.col("t.id") == F.col("s.id"),
        "(`a.b` IS NULL)": F.col("`a.b`").isNull(),
        "coalesce(upper(a), 'none')": F.coalesce(F.upper(a), F.lit("none")),
        "CASE WHEN (a > 1) THEN 1.5D ELSE NULL END": F.when(a > 1, F.lit(1.5)).otherwise(F.lit(None)),
        "CAST((a + 1) AS DECIMAL(10,2))": (a + 1).cast("decimal(10,2)"),
        "1.50BD": F.lit(Decimal("1.50")),
        "DATE '2024-01-02'": F.lit(dt.date(2024, 1, 2)),
        "X'6162'": F.lit(b"ab"),
        "m['k']": F.col("m")["k"],
    }


def test_columns(spark: Any) -> None:
    assert {text: sql_text(column, "x") for text, column in said().items()} == {text: text for text in said()}
    assert sql_text("any text", "x") == "any text"


def test_the_text_means_the_same(spark: Any) -> None:
    frame = spark.createDataFrame(
        [(1, "x", 2.5), (2, "y", None), (None, None, -1.0)], "a int, b string, c double"
    )
    a, b, c = F.col("a"), F.col("b"), F.col("c")
    for column in (
        a + c * 2 > 3,
        ~(b == "x") | a.isNull(),
        -a < c,
        b.like("x%"),
        a % 2 == 0,
        a.eqNullSafe(None),
        (a.bitwiseAND(1)) == 1,
    ):
        assert frame.where(F.expr(sql_text(column, "x"))).collect() == frame.where(column).collect()


def test_what_has_no_text(spark: Any) -> None:
    from pyspark.sql.window import Window

    frame = spark.range(1)
    refused = {
        "no SQL text": F.row_number().over(Window.orderBy("a")),
        "of another DataFrame": frame["id"] == 1,
    }
    for message, column in refused.items():
        with pytest.raises(UnsupportedFeatureError, match=message):
            sql_text(column, "condition")
    with pytest.raises(InvalidTypeError):
        sql_text(3, "condition")
    with pytest.raises(InvalidTypeError):
        assignments({"a": 3}, "set")


def test_texts_become_columns_in_one_call(spark: Any) -> None:
    """Any end of a text, and any name of its column."""
    from pyspark.errors import ParseException

    from deltaic.engine.spark.lowering import with_columns

    texts = [
        ("plain", "id"),
        ("with ` tick", "id + 1 -- more"),
        ("case", "CASE WHEN id > 0 THEN 'a' END /* c */"),
        ("list", "array(id, 2)[0]"),
    ]
    found = with_columns(spark.range(1, 2), texts)
    assert found.columns == [name for name, _ in texts]
    assert tuple(found.first()) == (1, 2, "a", 1)
    with pytest.raises(ParseException):
        with_columns(spark.range(1), [("two", "id) AS a, (id")])
