"""Functions that make intervals, take fields of them, and do arithmetic on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from deltaic.errors import InvalidArgumentError
from deltaic.spark_sql import intervals
from deltaic.spark_sql import values as v
from deltaic.spark_sql.casts import Zone, literal
from deltaic.spark_sql.functions.registry import register
from deltaic.spark_sql.interval_literals import MICROS, MONTHS
from deltaic.spark_sql.interval_types import DAY_TIME_FIELDS, YEAR_MONTH_FIELDS, fields_of
from deltaic.spark_sql.values import CALENDAR, DAY_TIME, YEAR_MONTH, Value

_ZERO = literal(0, "integer")
_UNITS = {name: MICROS.get(name) or MONTHS[name] for name in (*DAY_TIME_FIELDS, *YEAR_MONTH_FIELDS)}
"""Microseconds or months of a field."""


def part_of(unit: str, value: Value) -> Value:
    """Returns a field of an interval, with the interval's sign, as `extract` does: the hours of
    `INTERVAL '30:05' HOUR TO MINUTE` are 6, because the other 24 are a day."""
    if value.type == CALENDAR or unit not in _UNITS:
        raise v.unsupported(f"extracting {unit}", value.type)
    names = fields_of(str(value.type))
    if unit not in names:
        raise InvalidArgumentError(
            f"[INVALID_EXTRACT_FIELD] an {value.type} has no {unit}", expected=", ".join(names)
        )
    order = DAY_TIME_FIELDS if v.is_day_time(value.type) else YEAR_MONTH_FIELDS
    above = order[order.index(unit) - 1] if order.index(unit) else None
    rest = value.sql if above is None else f"({value.sql} % {_UNITS[above]})"
    if unit == "second":
        sql = f"multiply(CAST({rest} AS DECIMAL(19, 0)), CAST(0.000001 AS DECIMAL(6, 6)))"
        return value.like(f"CAST({sql} AS DECIMAL(8, 6))", "decimal(8,6)")
    kind = "integer" if above is None else "byte"
    return value.like(f"CAST({rest} // {_UNITS[unit]} AS {v.duckdb_type(kind)})", kind)


def _micros(arguments: Sequence[Value]) -> str:
    """Returns SQL of the microseconds that these days, hours, minutes and seconds have together."""
    units = [MICROS[name] for name in DAY_TIME_FIELDS[-len(arguments) :]]
    parts = [
        f"CAST({each.sql} AS DECIMAL(38, 6)) * {unit}" for each, unit in zip(arguments, units, strict=True)
    ]
    return f"CAST({' + '.join(parts)} AS BIGINT)"


def _filled(arguments: Sequence[Value], count: int) -> list[Value]:
    return [*arguments, *[_ZERO] * (count - len(arguments))]


def _make_day_time(arguments: list[Value], zone: Zone) -> Value:
    return v.combine(_micros(_filled(arguments, 4)), DAY_TIME, arguments, raises=True)


def _make_year_month(arguments: list[Value], zone: Zone) -> Value:
    years, months = _filled(arguments, 2)
    sql = f"add(multiply({years.sql}, CAST(12 AS INTEGER)), {months.sql})"
    return v.combine(sql, YEAR_MONTH, arguments, raises=True)


def _make_calendar(*, safe: bool) -> Callable[[list[Value], Zone], Value]:
    def build(arguments: list[Value], zone: Zone) -> Value:
        years, months, weeks, days, *times = _filled(arguments, 7)
        parts = {
            "months": f"CAST(CAST({years.sql} AS BIGINT) * 12 + {months.sql} AS INTEGER)",
            "days": f"CAST(CAST({weeks.sql} AS BIGINT) * 7 + {days.sql} AS INTEGER)",
            "micros": _micros(times),
        }
        made = f"struct_pack({', '.join(f'{name} := {sql}' for name, sql in parts.items())})"
        sql = f"TRY({made})" if safe else made
        if nulls := " OR ".join(f"{each.sql} IS NULL" for each in arguments):
            sql = f"(CASE WHEN {nulls} THEN NULL ELSE {sql} END)"
        return v.combine(sql, CALENDAR, arguments, nullable=True if safe else None, raises=not safe)

    return build


def _abs(arguments: list[Value], zone: Zone) -> Value:
    (value,) = arguments
    return value.like(f"abs({value.sql})", value.type, raises=True)


def _sign(arguments: list[Value], zone: Zone) -> Value:
    return arguments[0].like(f"CAST(sign({arguments[0].sql}) AS DOUBLE)", "double")


def _trying(operator: str) -> Callable[[list[Value], Zone], Value]:
    """Builds try_add and similar functions, which are null in place of an overflow or a division by zero."""

    def build(arguments: list[Value], zone: Zone) -> Value:
        left, right = arguments
        raises = left.raises or right.raises
        result = intervals.scaled("/", left, right, zone, by_zero="NULL") if operator == "/" else None
        result = result or intervals.arithmetic(operator, left, right, zone)
        if not result.raises:
            return result
        return result.like(f"TRY({result.sql})", result.type, nullable=True, raises=raises)

    return build


_SIZES = ("integer", "integer", "integer", "decimal(18,6)")
for _count in range(5):
    register("make_dt_interval", ", ".join(_SIZES[:_count]), DAY_TIME, _make_day_time)
for _count in range(3):
    register("make_ym_interval", ", ".join(["integer"] * _count), YEAR_MONTH, _make_year_month)
for _count in range(8):
    _types = ", ".join([*["integer"] * 6, "decimal(18,6)"][:_count])
    register("make_interval", _types, CALENDAR, _make_calendar(safe=False))
    register("try_make_interval", _types, CALENDAR, _make_calendar(safe=True))
register("abs", "interval", "T", _abs)
register("positive", "interval", "T", lambda arguments, zone: arguments[0])
register("sign signum", "interval", "double", _sign)
for _name, _operator in {"try_add": "+", "try_subtract": "-"}.items():
    register(_name, "interval, interval", "T", _trying(_operator))
    register(_name, "temporal, interval", "T", _trying(_operator))
    register(_name, "=date, integer", "date", _trying(_operator))
    for _pair in (
        "interval, =void",
        "=void, interval",
        "temporal, =void",
        "=void, temporal",
        "=string, interval",
    ):
        register(_name, _pair, "T", _trying(_operator))
register("try_multiply", "interval, numeric", "T", _trying("*"))
register("try_multiply", "numeric, interval", "T", _trying("*"))
register("try_divide", "interval, numeric", "T", _trying("/"))
