"""Aggregates of NULLs, and the names of columns with NULLs without a type, are those of Spark 4.3."""

from __future__ import annotations

from typing import Any

import pytest

import deltaic
from deltaic.errors import InvalidArgumentError
from deltaic.spark_sql.values import type_text


@pytest.mark.parametrize(
    ("form", "kind", "value"),
    [
        ("listagg(NULL)", "string", None),
        ("string_agg(NULL, ',')", "string", None),
        ("mode(NULL)", "void", None),
        ("mode() WITHIN GROUP (ORDER BY NULL)", "void", None),
        ("bit_or(NULL)", "int", None),
        ("histogram_numeric(NULL, 3)", "array<struct<x:double,y:double>>", None),
        ("percentile_approx(NULL, 0.5)", "double", None),
        ("percentile_cont(0.5) WITHIN GROUP (ORDER BY NULL)", "double", None),
        ("percentile_disc(0.5) WITHIN GROUP (ORDER BY NULL)", "double", None),
        ("max_by(1, NULL)", "int", None),
        ("listagg(x, NULL)", "string", "aa"),
        ("percentile(y, 0.5, NULL)", "double", None),
        ("min_by(NULL, NULL)", "void", None),
        (
            "approx_top_k(x)",
            "array<struct<item:string,count:bigint>>",
            [{"item": None, "count": 3}, {"item": "a", "count": 2}],
        ),
        ("approx_top_k(x, 1)", "array<struct<item:string,count:bigint>>", [{"item": None, "count": 3}]),
        (
            "approx_top_k(x) FILTER (WHERE y IS NULL)",
            "array<struct<item:string,count:bigint>>",
            [{"item": "a", "count": 1}, {"item": None, "count": 1}],
        ),
        (
            "approx_top_k(x) FILTER (WHERE x IS NULL AND y IS NULL)",
            "array<struct<item:string,count:bigint>>",
            [{"item": None, "count": 1}],
        ),
        (
            "approx_top_k(y)",
            "array<struct<item:int,count:bigint>>",
            [{"item": 7, "count": 3}, {"item": None, "count": 2}],
        ),
    ],
)
def test_aggregate(form: str, kind: str, value: Any) -> None:
    rows = (
        "VALUES ('a', 7), ('a', NULL), (NULL, 7), (NULL, NULL), (NULL, 7), ('b', 7) AS t(x, y) WHERE x IS"
        " NULL OR x = 'a'"
    )
    found = deltaic.sql(f"SELECT {form} AS found FROM {rows}")
    assert type_text(found.schema.fields[0].type) == kind
    assert found.to_arrow().column(0).to_pylist() == [value]


@pytest.mark.parametrize(
    ("form", "name"),
    [
        ("NULL + current_date", "current_date() + NULL"),
        ("DATE '2020-01-01' - NULL", "(DATE '2020-01-01' - NULL)"),
        ("INTERVAL 1 DAY + NULL", "(INTERVAL '1' DAY + NULL)"),
        ("NULL.a", "NULL[a]"),
        (
            "listagg('a') OVER (PARTITION BY 1)",
            "listagg(a, NULL) OVER (PARTITION BY 1 ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)",
        ),
        ("'2024-01-05' - INTERVAL 3 DAYS", "2024-01-05 - INTERVAL '3' DAY"),
        ("lpad(x'4a', 3)", "lpad(X'4A', 3, X'00')"),
        ("lpad('a', 3)", "lpad(a, 3,  )"),
    ],
)
def test_name(form: str, name: str) -> None:
    assert [field.name for field in deltaic.sql(f"SELECT {form}").schema.fields] == [name]


def test_the_order_of_distinct_texts_is_named_in_the_words_of_the_query() -> None:
    with pytest.raises(InvalidArgumentError, match="MISMATCH_WITH_DISTINCT_INPUT") as raised:
        deltaic.sql(
            "SELECT listagg(DISTINCT x) WITHIN GROUP (ORDER BY y) FROM VALUES ('a', 1) AS t(x, y)"
        ).to_arrow()
    assert "NULLS" not in str(raised.value)
