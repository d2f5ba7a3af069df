"""Conditions on a function that keeps the order of a column, as bounds of the column itself: `date(ts) = ...`, `year(d) > ...`.

What comes out is weaker than the condition, or equal to it: good for skipping.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from typing import Any, TypeAlias

from sqlglot import exp

from deltaic.planning.literals import instant
from deltaic.protocol.schema import DataType

Json: TypeAlias = dict[str, Any]

FURTHEST_ZONE = timedelta(hours=18)
"""No zone's clock is further from UTC's: `java.time.ZoneOffset`."""
DAY_FUNCTIONS = ("date", "to_date")


def function_of(node: exp.Expr) -> tuple[str, exp.Expr] | None:
    """The unit that a call or cast takes of its argument ("day", "year", "month", "dayofmonth", "hour"), and the argument; else None."""
    if type(node) is exp.Cast and node.to.this in (exp.DType.DATE, exp.DType.DATE32):
        return "day", node.this
    if isinstance(node, exp.Anonymous) and len(node.expressions) == 1:
        name = node.name.lower()
        if name in DAY_FUNCTIONS:
            return "day", node.expressions[0]
        if name in ("year", "month", "dayofmonth", "day", "hour"):
            return "dayofmonth" if name == "day" else name, node.expressions[0]
    return None


def bounds(
    op: str, function: str, path: tuple[str, ...], data_type: DataType, number: Callable[[], int], day: Callable[[], date], *, utc: bool
) -> Json | None:
    """`function(column) op value` as bounds of the column. `number`, `day`: the value as a year, as a date. `utc`: the session's zone."""
    if data_type not in ("date", "timestamp", "timestamp_ntz") or op not in ("=", "<", "<=", ">", ">="):
        return None
    try:
        if function == "day":
            first = day()
            after = first + timedelta(days=1)
        elif function == "year":
            first, after = date(number(), 1, 1), date(number() + 1, 1, 1)
        else:
            return None
        args = []
        if op in ("=", ">", ">="):
            args.append({"op": ">=", "column": list(path), "literal": _literal(after if op == ">" else first, data_type, -1, utc)})
        if op in ("=", "<", "<="):
            args.append({"op": "<", "column": list(path), "literal": _literal(first if op == "<" else after, data_type, 1, utc)})
    except (ValueError, OverflowError):  # no year or day of Python's
        return None
    return args[0] if len(args) == 1 else {"op": "and", "args": args}


def _literal(day: date, data_type: DataType, outwards: int, utc: bool) -> str:
    """Midnight of that day as the column's own literal; for instants the earliest (-1) or latest (1) that a clock may show it."""
    if data_type == "date":
        return day.isoformat()
    midnight = datetime.combine(day, time())
    if data_type == "timestamp_ntz":
        return midnight.isoformat(sep=" ", timespec="microseconds")
    return instant(midnight if utc else midnight + outwards * FURTHEST_ZONE)
