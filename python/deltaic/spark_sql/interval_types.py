"""Spark's interval types: their names, their DuckDB types, and the common type of two intervals. A query
can return intervals, but no column of a Delta table can store them.

An interval of days and times (`interval day to second`, `interval hour`) is kept as BIGINT microseconds, one
of years and months (`interval year to month`, `interval month`) as INTEGER months. `CALENDAR`, the result of
make_interval, is a struct of months, days and microseconds.
"""

from __future__ import annotations

from typing import Any

from deltaic.protocol.schema import ResultType

DAY_TIME_FIELDS = ("day", "hour", "minute", "second")
YEAR_MONTH_FIELDS = ("year", "month")
CALENDAR = "interval"


def interval(first: str, last: str) -> str:
    """The type of intervals whose greatest field is `first` and whose least is `last`."""
    return ResultType(f"interval {first}" if first == last else f"interval {first} to {last}")


def _types(fields: tuple[str, ...]) -> dict[str, tuple[str, str]]:
    return {
        interval(first, last): (first, last) for place, first in enumerate(fields) for last in fields[place:]
    }


_DAY_TIME, _YEAR_MONTH = _types(DAY_TIME_FIELDS), _types(YEAR_MONTH_FIELDS)
DAY_TIME = interval("day", "second")
DAYS = interval("day", "day")
YEAR_MONTH = interval("year", "month")
DUCKDB_TYPES = {
    **dict.fromkeys(_DAY_TIME, "BIGINT"),
    **dict.fromkeys(_YEAR_MONTH, "INTEGER"),
    CALENDAR: "STRUCT(months INTEGER, days INTEGER, micros BIGINT)",
}


def is_day_time(data_type: Any) -> bool:
    return isinstance(data_type, str) and data_type in _DAY_TIME


def is_year_month(data_type: Any) -> bool:
    return isinstance(data_type, str) and data_type in _YEAR_MONTH


def is_interval(data_type: Any) -> bool:
    return isinstance(data_type, str) and data_type in DUCKDB_TYPES


def fields_of(data_type: str) -> tuple[str, ...]:
    """Fields of an interval that is no calendar interval, the greatest first: `interval hour to second` has
    hour, minute and second."""
    order = DAY_TIME_FIELDS if data_type in _DAY_TIME else YEAR_MONTH_FIELDS
    first, last = (_DAY_TIME if data_type in _DAY_TIME else _YEAR_MONTH)[data_type]
    return order[order.index(first) : order.index(last) + 1]


def common_interval(left: str, right: str) -> str | None:
    """The type with the fields of both; None for days beside months."""
    for known, order in ((_DAY_TIME, DAY_TIME_FIELDS), (_YEAR_MONTH, YEAR_MONTH_FIELDS)):
        if left in known and right in known:
            firsts, lasts = zip(known[left], known[right], strict=True)
            return interval(min(firsts, key=order.index), max(lasts, key=order.index))
    return None
