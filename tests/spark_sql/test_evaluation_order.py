"""Which arguments are evaluated on a row in which another argument is null: an argument that fails does so
exactly if it does in Spark.

Expected: results of Spark 4.3 with ANSI mode on, on a row of a Parquet file.
"""

from __future__ import annotations

import pyarrow as pa
import pytest

import deltaic
from deltaic import Schema
from deltaic.spark_sql.duckdb import ExpressionError

SCHEMA = pa.schema(Schema.from_ddl("i int, n int, s string, ns string, mn map<int, int>"))
ROW = pa.Table.from_pylist([{"i": 1, "n": None, "s": "abc", "ns": None, "mn": None}], SCHEMA)

FAILING = """try_divide(n, cast(s AS int))
try_divide(n, cast(s AS double))
try_divide(n, 2147483647 + i)
try_mod(n, cast(s AS int))
try_mod(n, cast(s AS double))
mod(n, cast(s AS int))
mod(n, 2147483647 + i)
n / cast(s AS int)
n % cast(s AS int)
pmod(n, cast(s AS int))
try_add(cast(s AS int), n)
try_subtract(cast(s AS int), n)
array_repeat(cast(s AS int), n)
array_repeat(cast(s AS int), i - 1)
array_repeat(n, cast(s AS int))
concat(cast(cast(s AS int) AS string), ns)""".splitlines()

NULL = """try_divide(cast(s AS int), n)
try_mod(cast(s AS int), n)
mod(cast(s AS int), n)
pmod(cast(s AS int), n)
cast(s AS int) / n
try_add(n, cast(s AS int))
try_subtract(n, cast(s AS int))
try_multiply(n, cast(s AS int))
array_repeat(i, n)""".splitlines()


@pytest.mark.parametrize("form", FAILING)
def test_arguments_that_spark_evaluates(form: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        deltaic.sql(f"SELECT {form} AS x FROM t", tables={"t": ROW}).to_arrow()
    assert caught.value.condition in ("CAST_INVALID_INPUT", "ARITHMETIC_OVERFLOW")


@pytest.mark.parametrize("form", NULL)
def test_arguments_that_spark_skips(form: str) -> None:
    assert deltaic.sql(f"SELECT {form} AS x FROM t", tables={"t": ROW}).to_arrow()["x"].to_pylist() == [None]
