"""lit() and col(): the text of each Python value, which the engine reads as the same value."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import deltaic
from deltaic.errors import DeltaError, InvalidArgumentError, InvalidTypeError
from deltaic.plan.literal import col, lit
from deltaic.protocol.schema import Array, Field, Schema, Struct
from deltaic.spark_sql.duckdb import prepare, translate
from deltaic.spark_sql.expression import resolve


@pytest.fixture(scope="module")
def engine() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    prepare(connection)
    return connection


def read_back(engine: duckdb.DuckDBPyConnection, value: Any) -> Any:
    found = translate(lit(value), {}, column_sql=lambda alias, path: "")
    return engine.sql(f"SELECT {found.sql} AS v").to_arrow_table().column(0)[0].as_py()


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (None, "void"),
        (True, "boolean"),
        (5, "integer"),
        (-(2**31), "integer"),
        (2**40, "long"),
        (-(2**63), "long"),
        (2**63, "decimal(19,0)"),
        (1.5, "double"),
        (Decimal("1.50"), "decimal(3,2)"),
        ("O'Neil", "string"),
        (b"\x01\xff", "binary"),
        (dt.date(2024, 2, 29), "date"),
        (dt.datetime(2024, 1, 1, 2, 3, 4), "timestamp_ntz"),
        (dt.datetime(2024, 1, 1, 2, tzinfo=dt.timezone(dt.timedelta(hours=2))), "timestamp"),
        ([1, 2], Array("integer", False)),
        ({"a": 1, "b'": "x"}, Struct([Field("a", "integer", False), Field("b'", "string", False)])),
    ],
)
def test_value_and_type_come_back(engine: duckdb.DuckDBPyConnection, value: Any, kind: Any) -> None:
    assert resolve(lit(value), {}).type == kind
    assert read_back(engine, value) == value


@pytest.mark.parametrize("value", [dt.timedelta(1, 2, 3), dt.timedelta(0, -1), dt.timedelta(-400, 5, 6)])
def test_an_interval_comes_back(value: dt.timedelta) -> None:
    assert deltaic.sql("SELECT :v AS v", parameters={"v": value}).to_pylist() == [{"v": value}]


def test_scalars_of_numpy_and_pandas() -> None:
    for value, text in (
        (pd.NaT, "NULL"),
        (pd.NA, "NULL"),
        (np.datetime64("NaT", "ns"), "NULL"),
        (np.int64(5), "5"),
        (np.datetime64("2026-01-31T10:00", "ns"), "TIMESTAMP_NTZ'2026-01-31 10:00:00'"),
        (np.timedelta64(90, "m"), "INTERVAL '0 01:30:00.000000' DAY TO SECOND"),
    ):
        assert lit(value) == text
    for wrong, error in (
        (np.datetime64(1, "ns"), InvalidArgumentError),
        (np.timedelta64(1, "M"), InvalidTypeError),
        (np.datetime64(10**18, "s"), InvalidTypeError),
    ):
        with pytest.raises(error):
            lit(wrong)


def test_a_quote_is_doubled() -> None:
    assert lit("O'Neil") == "'O''Neil'"


@given(st.text())
def test_any_text_comes_back(engine: duckdb.DuckDBPyConnection, value: str) -> None:
    if not any("\ud800" <= character <= "\udfff" for character in value):
        assert read_back(engine, value) == value


@given(st.one_of(st.integers(-(2**63), 2**63 - 1), st.booleans(), st.binary(), st.dates(), st.datetimes()))
def test_any_other_value_comes_back(engine: duckdb.DuckDBPyConnection, value: Any) -> None:
    assert read_back(engine, value) == value


@given(st.floats())
def test_any_float_comes_back(engine: duckdb.DuckDBPyConnection, value: float) -> None:
    found = read_back(engine, value)
    assert (math.isnan(found) and math.isnan(value)) or (
        found == value and math.copysign(1, found) == math.copysign(1, value)
    )


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**20), max_value=10**20, places=10))
def test_any_decimal_comes_back(engine: duckdb.DuckDBPyConnection, value: Decimal) -> None:
    assert read_back(engine, value) == value


@pytest.mark.parametrize("value", [object(), dt.time(1), Decimal("NaN"), {1: 2}, {"a": object()}, 10**40])
def test_what_has_no_literal_is_refused(value: Any) -> None:
    with pytest.raises(DeltaError):
        lit(value)


def test_the_wrong_type_is_a_type_error_too() -> None:
    with pytest.raises(TypeError):
        lit(object())
    assert issubclass(InvalidTypeError, TypeError)


def test_a_name_is_quoted() -> None:
    assert col("my `col`") == "`my ``col```"
    assert resolve(col("my `col`"), {"t": Schema([Field("my `col`", "date")])}).type == "date"
    with pytest.raises(DeltaError):
        col("")
