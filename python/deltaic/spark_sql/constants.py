"""Computes casts of literals and arithmetic on them once, during translation, so that DuckDB gets a plain
constant that it can compare with the statistics of a Parquet file: `date '1994-01-01' + interval 1 year`
becomes `DATE '1995-01-01'`."""

from __future__ import annotations

import calendar
import re
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal, localcontext
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from deltaic.protocol.schema import DataType
from deltaic.spark_sql import values as v
from deltaic.spark_sql.values import Value

_DATE = re.compile(r"(\d{4})-(\d{2})-(\d{2})")
_MOMENT = re.compile(r"(\d{4}-\d{2}-\d{2})(?:[ T](\d{2}:\d{2}:\d{2})(?:\.(\d{1,6}))?)?(Z|[+-]\d{2}:\d{2})?")
_NUMBER = re.compile(r"[+-]?\d{1,18}")
_MICROS_OF_A_DAY = 86_400_000_000


def fold(constant: Any, source: DataType, target: DataType, zone: str) -> Value | None:
    """Returns a constant cast to `target`, or None if only DuckDB can compute the cast, or the cast fails:
    then DuckDB raises the error."""
    if source == "string" and isinstance(constant, str) and isinstance(target, str):
        return _string(constant, target, zone)
    if source in v.INTEGRAL and isinstance(constant, int):
        return _integer(constant, target)
    decimal = v.decimal_parts(target)
    if v.decimal_parts(source) and isinstance(constant, Decimal):
        if decimal:
            return _decimal(constant, target, decimal)
        if target == "double":
            return _constant(float(constant), f"CAST('{float(constant)!r}' AS DOUBLE)", target)
    return None


def _constant(value: Any, sql: str, data_type: DataType) -> Value:
    return Value(sql, data_type, False, constant=value)


def _integer(constant: int, target: DataType) -> Value | None:
    if target in v.INTEGRAL:
        limit = 1 << (v.INTEGER_BITS[str(target)] - 1)
        return (
            _constant(constant, f"CAST({constant} AS {v.duckdb_type(target)})", target)
            if -limit <= constant < limit
            else None
        )
    if target == "double" and abs(constant) <= 1 << 53:
        return _constant(float(constant), f"CAST({constant} AS DOUBLE)", target)
    if decimal := v.decimal_parts(target):
        return _decimal(Decimal(constant), target, decimal)
    return None


def _decimal(constant: Decimal, target: DataType, parts: tuple[int, int]) -> Value | None:
    with localcontext() as context:
        context.prec = 80
        exact = constant.quantize(Decimal(1).scaleb(-parts[1]))
        if exact != constant or abs(exact) >= Decimal(10) ** (parts[0] - parts[1]):
            return None
    return _constant(exact, f"CAST('{exact:f}' AS {v.duckdb_type(target)})", target)


def _string(constant: str, target: str, zone: str) -> Value | None:
    if target in v.INTEGRAL and _NUMBER.fullmatch(constant):
        return _integer(int(constant), target)
    if target == "date" and (match := _DATE.fullmatch(constant)) and (day := _date(*match.groups())):
        return _constant(day, f"DATE '{day.isoformat()}'", target)
    if target in ("timestamp", "timestamp_ntz") and (match := _MOMENT.fullmatch(constant)):
        return _moment(match, target, zone)
    return None


def _date(year: str, month: str, day: str) -> date | None:
    try:
        return date(int(year), int(month), int(day))
    except ValueError:
        return None


def _moment(match: re.Match[str], target: str, zone: str) -> Value | None:
    day, time, fraction, offset = match.groups()
    if offset and not time:
        return None
    try:
        local = datetime.fromisoformat(f"{day} {time or '00:00:00'}.{(fraction or '').ljust(6, '0')}")
        if target == "timestamp_ntz":
            return _constant(local, f"TIMESTAMP '{local.isoformat(sep=' ')}'", target)
        # the earlier instant where the local time occurs twice
        moment = local.replace(tzinfo=_zone(offset, zone)).astimezone(timezone.utc)
    except (ValueError, OverflowError, ZoneInfoNotFoundError):
        return None
    return _constant(moment, f"TIMESTAMPTZ '{moment.replace(tzinfo=None).isoformat(sep=' ')}+00'", target)


def _zone(offset: str | None, zone: str) -> timezone | ZoneInfo:
    if offset is None:
        return timezone.utc if zone == "UTC" else ZoneInfo(zone)
    if offset == "Z":
        return timezone.utc
    hours, minutes = int(offset[1:3]), int(offset[4:6])
    if hours > 18 or minutes > 59 or (hours == 18 and minutes):
        raise ValueError("offset out of range")
    return timezone((-1 if offset[0] == "-" else 1) * timedelta(hours=hours, minutes=minutes))


# --- arithmetic


def computed(operator: str, left: Value, right: Value, result: Value, zone: str) -> Value:
    """Returns an operation on two literals as a literal: `date '1994-01-01' + interval 1 year` becomes `DATE
    '1995-01-01'`.

    `result`: the operation as translated. It is returned unchanged if a side is no literal, the outcome is
    not exact, or the operation fails, so that DuckDB raises the error."""
    if not (left.is_constant and right.is_constant) or left.constant is None or right.constant is None:
        return result
    constant = _outcome(operator, left, right, result.type, zone)
    if constant is None:
        return result
    sql = _literal(constant, result.type)
    return replace(
        result.like(sql, result.type, nullable=False, raises=False), constant=constant, computed=True
    )


def _outcome(operator: str, left: Value, right: Value, data_type: DataType, zone: str) -> Any:
    one, other = left.constant, right.constant
    if data_type in v.INTEGRAL or v.decimal_parts(data_type):
        return _number(operator, one, other, data_type)
    sign = {"+": 1, "-": -1}.get(operator)
    if sign is None or not isinstance(one, date):
        return None
    try:
        if data_type == "date" and v.is_year_month(right.type):
            return _months_later(one, sign * other)
        if data_type == "date" and right.type in v.INTEGRAL:
            return one + timedelta(days=sign * other)
        if data_type == "date" and right.type == v.DAYS:
            return one + timedelta(days=sign * (other // _MICROS_OF_A_DAY))
        on_one_clock = data_type == "timestamp_ntz" or zone == "UTC"
        if data_type == left.type and on_one_clock and v.is_day_time(right.type):
            return one + timedelta(microseconds=sign * other)
    except (OverflowError, ValueError):  # beyond the years of Python's dates
        return None
    return None


def _number(operator: str, one: Any, other: Any, data_type: DataType) -> int | Decimal | None:
    if not all(isinstance(side, (int, Decimal)) and not isinstance(side, bool) for side in (one, other)):
        return None
    with localcontext() as context:
        context.prec = 80
        if operator == "+":
            number = one + other
        elif operator == "-":
            number = one - other
        elif operator == "*":
            number = one * other
        else:
            return None
    parts = v.decimal_parts(data_type)
    exact = (
        _integer(int(number), data_type)
        if parts is None
        else _decimal(Decimal(number), str(data_type), parts)
    )
    return None if exact is None else exact.constant


def _months_later(day: date, months: int) -> date:
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    return date(year, month + 1, min(day.day, calendar.monthrange(year, month + 1)[1]))


def _literal(constant: Any, data_type: DataType) -> str:
    if data_type == "date":
        return f"DATE '{constant.isoformat()}'"
    if data_type == "timestamp_ntz":
        return f"TIMESTAMP '{constant.isoformat(sep=' ')}'"
    if data_type == "timestamp":
        return f"TIMESTAMPTZ '{constant.replace(tzinfo=None).isoformat(sep=' ')}+00'"
    shown = f"'{constant:f}'" if isinstance(constant, Decimal) else str(constant)
    return f"CAST({shown} AS {v.duckdb_type(data_type)})"
