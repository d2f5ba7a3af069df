"""Forms that Spark 4.3 refuses are refused here; and forms whose results once differed from Spark's have
Spark's results."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import duckdb
import pytest

from deltaic.errors import DeltaError, UnsupportedFeatureError
from deltaic.protocol.schema import Schema
from deltaic.spark_sql.duckdb import ExpressionError, failure_of, prepare, quote, translate

TABLE = {
    "t": Schema.from_ddl(
        "i int, l bigint, x double, d decimal(10,2), s string, b binary, p boolean, t timestamp"
    )
}


@pytest.mark.parametrize(
    "form",
    [
        "d & i",
        "hex(d)",
        "x & 1",
        "s & 1e0",
        "p | i",
        "greatest(x, '1')",
        "least(p, '1')",
        "greatest(t, '1')",
        "array_repeat(i, '1')",
        "repeat(s, l)",
        "substring(s, l)",
        "array_size(map(1, 2))",
        "array_join(array('a'), s)",  # Spark answers these two; the embedded engine takes literals only
        "substring_index(s, s, 1)",
    ],
)
def test_types_that_spark_does_not_take(form: str) -> None:
    with pytest.raises(DeltaError):
        translate(form, TABLE, column_sql=lambda alias, path: quote(*path))


@pytest.fixture(scope="module")
def engine() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    prepare(connection)
    return connection


def answer(engine: duckdb.DuckDBPyConnection, form: str) -> Any:
    found = translate(form, {}, column_sql=lambda alias, path: quote(*path))
    return found.type, engine.sql(f"SELECT {found.sql}").fetchall()[0][0]


@pytest.mark.parametrize(
    ("form", "data_type", "value"),
    [
        ("-1Y / cast(4 AS decimal(10,2))", "decimal(16,11)", Decimal("-0.25000000000")),
        ("abs('1')", "double", 1.0),
        ("bround(5)", "integer", 5),
        ("bround(7Y, 1)", "byte", 7),
        ("substring_index('1', '1.5', cast(NULL AS int))", "string", None),
        ("substring_index('a.b.c', '.', 2)", "string", "a.b"),
        ("greatest(1, NULL, 3)", "integer", 3),
        ("make_date(concat(1, 999), 1, 1)", "date", date(1999, 1, 1)),
    ],
)
def test_value(engine: duckdb.DuckDBPyConnection, form: str, data_type: str, value: Any) -> None:
    assert answer(engine, form) == (data_type, value)


@pytest.mark.parametrize(
    ("form", "error"),
    [
        ("unix_timestamp('1')", ExpressionError),
        ("cast(X'FF' AS string)", UnsupportedFeatureError),
    ],
)
def test_failures_of_the_engine_have_names(engine: duckdb.DuckDBPyConnection, form: str, error: Any) -> None:
    with pytest.raises(duckdb.Error) as caught:
        answer(engine, form)
    assert isinstance(failure_of(caught.value), error)


@pytest.mark.parametrize(
    "form", ["from_json(s, 'a INT, _corrupt_record STRING')", "from_csv(s, '_corrupt_record STRING, a INT')"]
)
def test_the_field_of_bad_records_is_refused_by_its_name(form: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match="_corrupt_record"):
        translate(form, TABLE, column_sql=lambda alias, path: quote(*path))
