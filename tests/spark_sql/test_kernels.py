"""Kernels called directly: the arguments that they take, and their errors. Their values are Spark's, which
test_recorded.py compares."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest

from deltaic import _core
from deltaic.errors import InvalidArgumentError, UnsupportedFeatureError
from deltaic.spark_sql.duckdb import ExpressionError, failure_of, prepare
from deltaic.spark_sql.functions.kernels import kernel_sql


def test_chunks_and_slices_are_taken() -> None:
    words = pa.chunked_array([["kitten", "a"], pa.array(["x", "flaw"]).slice(1)])
    others = pa.array(["-", "sitting", None, "lawn"]).slice(1)
    names = pa.array(["levenshtein"] * 3)
    assert _core.evaluate_kernel([names, words, others]).to_pylist() == [3, None, 2]


def test_no_row_gives_no_value() -> None:
    empty = pa.array([], pa.string())
    with pytest.raises(InvalidArgumentError, match="a kernel without a name"):
        _core.evaluate_kernel([empty, empty])


def test_wrong_calls_are_errors_by_name() -> None:
    with pytest.raises(InvalidArgumentError, match="unknown kernel; found nothing"):
        _core.evaluate_kernel([pa.array(["nothing"]), pa.array(["a"])])
    with pytest.raises(InvalidArgumentError, match="arguments of different lengths; found 2; expected 1"):
        _core.evaluate_kernel([pa.array(["upper"]), pa.array(["a"]), pa.array(["a", "b"])])


@pytest.mark.parametrize(
    ("call", "condition"),
    [
        ("deltaic_kernel_varchar('conv', repeat('9', 30), 10, 10)", "ARITHMETIC_OVERFLOW"),
        ("deltaic_kernel_varchar('url_decode', '%', 0)", "CANNOT_DECODE_URL"),
        ("deltaic_kernel_varchar('parse_url', 'a b', 'HOST', CAST(NULL AS VARCHAR), 0)", "INVALID_URL"),
    ],
)
def test_a_row_that_fails_has_sparks_condition(call: str, condition: str) -> None:
    connection = duckdb.connect()
    prepare(connection)
    with pytest.raises(duckdb.InvalidInputException) as raised:
        connection.sql(f"SELECT {call}").fetchall()
    failure = failure_of(raised.value)
    assert isinstance(failure, ExpressionError)
    assert failure.condition == condition
    assert "UDF" not in str(failure)


def test_a_time_without_a_date_is_refused() -> None:
    connection = duckdb.connect()
    prepare(connection)
    with pytest.raises(duckdb.InvalidInputException) as raised:
        connection.sql("SELECT deltaic_try_instant('12:30', 'UTC')").fetchall()
    assert isinstance(failure_of(raised.value), UnsupportedFeatureError)


@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("2150-07-01 00:00:00", "2150-07-01 04:00:00"),  # daylight saving time goes on after 2099
        ("2150-01-01 00:00:00", "2150-01-01 05:00:00"),
        ("2150-07-01 00:00:00+01:00", "2150-06-30 23:00:00"),
        ("2050-07-01 00:00:00", "2050-07-01 04:00:00"),
        ("2050-07-01 00:00:00 Europe/Berlin", "2050-06-30 22:00:00"),
        ("2150-07-01 00:00:00 Europe/Berlin", "2150-06-30 22:00:00"),
        ("2150-01-01 00:00:00 Europe/Berlin", "2149-12-31 23:00:00"),
        ("1500-01-01 00:00:00", "1500-01-01 04:56:02"),
    ],
)
def test_timestamps_of_any_century_have_the_clock_of_their_zone(text: str, utc: str) -> None:
    connection = duckdb.connect()
    prepare(connection)
    shown = f"CAST(deltaic_utc_local(deltaic_try_instant('{text}', 'America/New_York')) AS VARCHAR)"
    assert connection.sql(f"SELECT {shown}").fetchall() == [(utc,)]


@pytest.mark.parametrize(
    "zone",
    ["America/New_York", "Australia/Lord_Howe", "Europe/Dublin", "Asia/Tehran", "Pacific/Chatham", "UTC"],
)
def test_json_has_the_clock_that_duckdb_shows(zone: str) -> None:
    connection = duckdb.connect()
    prepare(connection)
    kernel = kernel_sql("to_json", "string", f"'{zone}'", "{'t': t}", "0")
    found = connection.sql(
        f"""SELECT t, {kernel}, strftime(timezone('{zone}', t), '%Y-%m-%dT%H:%M:%S')
        FROM range(
            TIMESTAMPTZ '1950-01-01 00:30:00+00', TIMESTAMPTZ '2420-01-01 00:00:00+00', INTERVAL '731 hours'
        ) AS r(t)"""
    ).fetchall()
    assert len(found) > 5000
    assert [(at, shown) for at, shown, clock in found if clock not in shown] == []
