"""Casts of literals, done once while translating: what is left for the engine is a plain constant that it can push down."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal, localcontext
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from deltaic.protocol.schema import DataType
from deltaic.relation import values as v
from deltaic.relation.values import Value

_DATE = re.compile(r"(\d{4})-(\d{2})-(\d{2})")
_MOMENT = re.compile(r"(\d{4}-\d{2}-\d{2})(?:[ T](\d{2}:\d{2}:\d{2})(?:\.(\d{1,6}))?)?(Z|[+-]\d{2}:\d{2})?")
_NUMBER = re.compile(r"[+-]?\d{1,18}")


def fold(constant: Any, source: DataType, target: DataType, zone: str) -> Value | None:
    """The constant as a constant of `target`; None where that is not plain and the engine has to do it (and to raise)."""
    if source == "string" and isinstance(constant, str) and isinstance(target, str):
        return _string(constant, target, zone)
    if source in v.INTEGRAL and isinstance(constant, int):
        return _integer(constant, target)
    decimal = v.decimal_of(target)
    if v.decimal_of(source) and isinstance(constant, Decimal):
        if decimal:
            return _decimal(constant, target, decimal)
        if target == "double":
            return _constant(float(constant), f"CAST('{float(constant)!r}' AS DOUBLE)", target)
    return None


def _constant(value: Any, sql: str, data_type: DataType) -> Value:
    return Value(sql, data_type, False, constant=value)


def _integer(constant: int, target: DataType) -> Value | None:
    if target in v.INTEGRAL:
        limit = 1 << (v.BITS[str(target)] - 1)
        return _constant(constant, f"CAST({constant} AS {v.duckdb_type(target)})", target) if -limit <= constant < limit else None
    if target == "double" and abs(constant) <= 1 << 53:
        return _constant(float(constant), f"CAST({constant} AS DOUBLE)", target)
    if decimal := v.decimal_of(target):
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
        moment = local.replace(tzinfo=_zone(offset, zone)).astimezone(timezone.utc)  # the earlier one where the clock shows it twice
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
