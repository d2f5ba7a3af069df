"""Sums and averages: `sum`, `avg`, their `try_` forms, and `regr_avgx` and `regr_avgy`.

Like the functions of `statistical_aggregates.py`, each one takes the arguments of a call and returns its
value.
"""

from __future__ import annotations

from collections.abc import Sequence

from deltaic.spark_sql import intervals, operators
from deltaic.spark_sql import values as v
from deltaic.spark_sql.casts import Zone, cast
from deltaic.spark_sql.functions.kernels import kernel_sql
from deltaic.spark_sql.functions.statistical_aggregates import Build, doubles
from deltaic.spark_sql.nested_values import normalized
from deltaic.spark_sql.values import Value

ROWS_DIGITS = 19
"""Maximum number of digits that a sum has more than its values: a table has fewer than 10^19 rows."""


def call(function: str, value: Value, distinct: bool) -> str:
    """Returns a call of an aggregate function of DuckDB."""
    return f"{function}({'DISTINCT ' if distinct else ''}{value.sql})"


def sum_of(arguments: Sequence[Value], distinct: bool, zone: Zone) -> Value:
    (value,) = arguments
    if distinct:
        value = normalized(value)
    if value.type in v.INTEGRAL:
        total = call("sum", value, distinct)
        error = v.failure("ARITHMETIC_OVERFLOW", v.text("long overflow in sum"))
        limits = f"{total} NOT BETWEEN -9223372036854775808 AND 9223372036854775807"
        return v.combine(
            f"(CASE WHEN {limits} THEN {error} ELSE CAST({total} AS BIGINT) END)",
            "long",
            [value],
            nullable=True,
            raises=True,
        )
    if value.type in v.FRACTIONAL:
        wide = cast(value, "double", zone)
        return v.combine(call("sum", wide, distinct), "double", [wide], nullable=True)
    if parts := v.decimal_parts(value.type):
        data_type = v.decimal(min(38, parts[0] + 10), parts[1])
        total = f"sum({'DISTINCT ' if distinct else ''}{value.narrow or value.sql})"
        return v.combine(
            f"CAST({total} AS {v.duckdb_type(data_type)})", data_type, [value], nullable=True, raises=True
        )
    if v.is_day_time(value.type) or v.is_year_month(value.type):
        total = f"CAST({call('sum', value, distinct)} AS {v.duckdb_type(value.type)})"
        return v.combine(total, value.type, [value], nullable=True, raises=True)
    raise v.unsupported("aggregate function sum", value.type)


def average(arguments: Sequence[Value], distinct: bool, zone: Zone) -> Value:
    (value,) = arguments
    if distinct:
        value = normalized(value)
    if value.type in v.INTEGRAL or value.type in v.FRACTIONAL:
        wide = cast(value, "double", zone)
        return v.combine(call("avg", wide, distinct), "double", [wide], nullable=True)
    if v.is_day_time(value.type) or v.is_year_month(value.type):
        return _average_interval(value, distinct)
    parts = v.decimal_parts(value.type)
    if parts is None:
        raise v.unsupported("aggregate function avg", value.type)
    if parts[0] > 24:  # the exact quotient does not fit 38 digits
        return _wide_average(value, distinct, parts)
    precision, scale = parts[0] + 4, parts[1] + 4
    digits = min(parts[0] + ROWS_DIGITS, 38)
    total = operators.unscaled(
        f"CAST(sum({'DISTINCT ' if distinct else ''}{value.sql}) AS DECIMAL({digits}, {parts[1]}))",
        parts[1],
        digits,
    )
    rows = f"CAST({call('count', value, distinct)} AS HUGEINT)"
    # A half is rounded away from zero, as in Spark's decimal division.
    doubled = f"(abs({total}) * 20000 + {rows})"
    quotient = f"(CASE WHEN {total} < 0 THEN -({doubled} // (2 * {rows})) ELSE {doubled} // (2 * {rows}) END)"
    data_type = v.decimal(precision, scale)
    sql = f"(CASE WHEN {rows} = 0 THEN NULL ELSE {operators.scaled(quotient, scale, data_type)} END)"
    return v.combine(sql, data_type, [value], nullable=True)


def _average_interval(value: Value, distinct: bool) -> Value:
    kind = v.DAY_TIME if v.is_day_time(value.type) else v.YEAR_MONTH
    total, rows = (f"CAST({call(function, value, distinct)} AS HUGEINT)" for function in ("sum", "count"))
    sql = f"(CASE WHEN {rows} > 0 THEN CAST({intervals.half_up(total, rows)} AS {v.duckdb_type(kind)}) END)"
    return v.combine(sql, kind, [value], nullable=True, raises=True)


def _wide_average(value: Value, distinct: bool, parts: tuple[int, int]) -> Value:
    """Returns the average of decimals of more than 24 digits. A kernel divides the sum, as the quotient does
    not fit DuckDB's decimals."""
    precision, scale = min(parts[0] + 4, 38), min(parts[1] + 4, 38)
    kind = v.decimal(precision, scale)
    total = f"CAST(sum({'DISTINCT ' if distinct else ''}{value.sql}) AS DECIMAL(38, {parts[1]}))"
    rows = f"CAST({call('count', value, distinct)} AS DECIMAL(20, 0))"
    digits = kernel_sql("decimal", "decimal(38,0)", "'/'", total, rows, str(scale))
    sql = f"(CASE WHEN {rows} = 0 THEN NULL ELSE {operators.scaled(digits, scale, kind)} END)"
    return v.combine(sql, kind, [value], nullable=True, raises=True)


def pair_average(place: int) -> Build:
    """Builds regr_avgx or regr_avgy: the average of one of two columns over the rows where neither is
    null."""

    def build(arguments: Sequence[Value], distinct: bool, zone: Zone) -> Value:
        doubles("regr_avgx", arguments, distinct, zone)
        known = " AND ".join(f"{argument.sql} IS NOT NULL" for argument in arguments)
        value = arguments[place]
        kept = v.combine(f"(CASE WHEN {known} THEN {value.sql} END)", value.type, arguments, nullable=True)
        return average([kept], distinct, zone)

    return build


def try_sum(arguments: Sequence[Value], distinct: bool, zone: Zone) -> Value:
    (value,) = arguments
    if v.is_interval(value.type) and value.type != v.CALENDAR:
        total = f"TRY_CAST({call('sum', value, distinct)} AS {v.duckdb_type(value.type)})"
        return v.combine(total, value.type, [value], nullable=True)
    if value.type not in v.INTEGRAL:
        if value.type in v.FRACTIONAL or _fits(value):
            return sum_of(arguments, distinct, zone)
        raise v.unsupported("aggregate function try_sum", value.type)
    return v.combine(f"TRY_CAST({call('sum', value, distinct)} AS BIGINT)", "long", [value], nullable=True)


def _fits(value: Value) -> bool:
    """True if a sum of values of this decimal type fits 38 digits, however many rows there are."""
    parts = v.decimal_parts(value.type)
    return parts is not None and parts[0] <= 24


def try_average(arguments: Sequence[Value], distinct: bool, zone: Zone) -> Value:
    # the sum of decimals may overflow on the way
    if v.decimal_parts(arguments[0].type) and not _fits(arguments[0]):
        raise v.unsupported("aggregate function try_avg", arguments[0].type)
    return average(arguments, distinct, zone)
