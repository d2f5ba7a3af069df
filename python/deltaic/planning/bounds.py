"""Bounds of a column from conditions on `date(column)` and `year(column)`, which keep the order of the
column: `year(d) = 2024` becomes `d >= '2024-01-01' AND d < '2025-01-01'`.

The bounds are equal to the condition or weaker, so files can be skipped by them.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from typing import Any, TypeAlias

from sqlglot import exp

from deltaic.planning.literals import instant, value_text
from deltaic.protocol.schema import DataType

Json: TypeAlias = dict[str, Any]

FURTHEST_ZONE = timedelta(hours=18)
"""Maximum offset of a time zone from UTC, as in `java.time.ZoneOffset`."""
DAY_FUNCTIONS = ("date", "to_date")


def function_of(node: exp.Expr) -> tuple[str, exp.Expr] | None:
    """Returns the unit that a call or cast extracts and its argument: `year(d)` -> `("year", d)`, `date(ts)`
    -> `("day", ts)`. The units are day (a date), year, month, dayofmonth and hour; None for anything else."""
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
    op: str,
    function: str,
    path: tuple[str, ...],
    data_type: DataType,
    number: Callable[[], int],
    day: Callable[[], date],
    *,
    utc: bool,
) -> Json | None:
    """Translates `function(column) op value` to bounds of the column.

    `number`, `day`: return the value as a year or as a date. `utc`: True if the session's time zone is
    UTC."""
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
            args.append(
                {
                    "op": ">=",
                    "column": list(path),
                    "literal": _literal(after if op == ">" else first, data_type, -1, utc),
                }
            )
        if op in ("=", "<", "<="):
            args.append(
                {
                    "op": "<",
                    "column": list(path),
                    "literal": _literal(first if op == "<" else after, data_type, 1, utc),
                }
            )
    except (ValueError, OverflowError):  # Python's dates end with the year 9999
        return None
    return args[0] if len(args) == 1 else {"op": "and", "args": args}


def _literal(day: date, data_type: DataType, outwards: int, utc: bool) -> str:
    """Returns midnight of a day as a literal of the column's type. `outwards`: for instants in an unknown
    zone, -1 for the earliest instant at which a clock may show midnight, 1 for the latest."""
    midnight = datetime.combine(day, time())
    if data_type != "timestamp":
        return value_text(day if data_type == "date" else midnight)
    return instant(midnight if utc else midnight + outwards * FURTHEST_ZONE)
