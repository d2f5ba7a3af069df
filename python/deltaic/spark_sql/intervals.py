"""Interval literals, and arithmetic on intervals, dates and timestamps.

A day-time interval is a BIGINT of microseconds, a year-month interval an INTEGER of months. `DAYS` is a day-time interval that Spark
types as
INTERVAL DAY: only with that one a date stays a date.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from decimal import Decimal

from sqlglot import exp

from deltaic.errors import InvalidArgumentError
from deltaic.protocol.schema import DataType
from deltaic.spark_sql import operators
from deltaic.spark_sql import values as v
from deltaic.spark_sql.casts import Zone, cast, implicit
from deltaic.spark_sql.constants import computed
from deltaic.spark_sql.values import DAY_TIME, DAYS, YEAR_MONTH, Value

_MICROS = {
    "microsecond": 1,
    "millisecond": 1000,
    "second": 10**6,
    "minute": 60 * 10**6,
    "hour": 3600 * 10**6,
    "day": 86400 * 10**6,
    "week": 7 * 86400 * 10**6,
}
_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_DAY = _MICROS["day"]
_SPAN_PARTS = ("day", "hour", "minute", "second")


def is_interval(data_type: DataType) -> bool:
    return data_type in (DAY_TIME, DAYS, YEAR_MONTH)


def literal(node: exp.Expression, value_of: Callable[[exp.Expression], Value], zone: Zone) -> Value:
    """Returns an interval literal: `INTERVAL 1 DAY`, `INTERVAL '1' MONTH`, `INTERVAL '1 02:03:04' DAY TO
    SECOND`, `INTERVAL '1-2' YEAR TO MONTH`."""
    unit, amount = node.args.get("unit"), node.this
    shown = node.sql(dialect="databricks")
    if isinstance(amount, exp.Neg):
        text = "-" + amount.this.name
    elif isinstance(amount, exp.Literal):
        text = amount.name.strip()
    else:
        raise v.unsupported(f"the interval {shown}")
    if isinstance(unit, exp.IntervalSpan):
        return _span(text, unit.this.name.lower(), unit.expression.name.lower(), shown)
    name = unit.name.lower().removesuffix("s") if unit is not None else ""
    if not re.fullmatch(r"[+-]?\d{1,15}" if name != "second" else r"[+-]?\d{1,12}(\.\d{1,9})?", text):
        raise v.unsupported(f"the interval {shown}")
    if name == "quarter":
        raise InvalidArgumentError("[PARSE_SYNTAX_ERROR] an interval has no unit QUARTER", found=shown)
    if name in _MONTHS:
        return _constant(int(text) * _MONTHS[name], YEAR_MONTH)
    if name in _MICROS:
        return _constant(int(Decimal(text) * _MICROS[name]), DAYS if name in ("day", "week") else DAY_TIME)
    raise v.unsupported(f"the interval {shown}")


def _constant(amount: int, data_type: str) -> Value:
    return Value(f"CAST({amount} AS {v.duckdb_type(data_type)})", data_type, False, constant=amount)


def _span(text: str, first: str, last: str, shown: str) -> Value:
    sign = -1 if text.startswith("-") else 1
    text = text.lstrip("+-")
    if (first, last) == ("year", "month") and (match := re.fullmatch(r"(\d{1,9})-(\d{1,2})", text)) and int(match[2]) < 12:
        return _constant(sign * (int(match[1]) * 12 + int(match[2])), YEAR_MONTH)
    pattern = {
        "day": r"(?P<day>\d{1,9}) ",
        "hour": r"(?P<hour>\d{1,9}):",
        "minute": r"(?P<minute>\d{1,9}):",
        "second": r"(?P<second>\d{1,9}(\.\d{1,9})?):",
    }
    if first not in _SPAN_PARTS or last not in _SPAN_PARTS or _SPAN_PARTS.index(first) >= _SPAN_PARTS.index(last):
        raise v.unsupported(f"the interval {shown}")
    names = _SPAN_PARTS[_SPAN_PARTS.index(first) : _SPAN_PARTS.index(last) + 1]
    match = re.fullmatch("".join(pattern[name] for name in names)[:-1], text)
    if match is None or any(float(match[name]) >= (24 if name == "hour" else 60) for name in names[1:]):
        raise v.unsupported(f"the interval {shown}")
    return _constant(sign * sum(int(Decimal(match[name]) * _MICROS[name]) for name in names), DAY_TIME)


def arithmetic(operator: str, left: Value, right: Value, zone: Zone) -> Value:
    """Returns `left operator right`. Without dates, timestamps and intervals, `operators.arithmetic` computes
    it."""
    kinds = (left.type, right.type)
    if not any(kind in v.TEMPORAL or is_interval(kind) for kind in kinds):
        return operators.arithmetic(operator, left, right, zone)
    if operator == "+" and (right.type in v.TEMPORAL or is_interval(left.type)) and not is_interval(right.type):
        left, right = right, left
    result = None
    if operator in ("+", "-"):
        result = _add(operator, left, right, zone)
    elif operator == "*" and is_interval(left.type) and right.type in v.INTEGRAL:
        result = v.combine(
            f"multiply({left.sql}, CAST({right.sql} AS {v.duckdb_type(left.type)}))", _loose(left.type), (left, right), raises=True
        )
    elif operator == "*" and is_interval(right.type) and left.type in v.INTEGRAL:
        return arithmetic(operator, right, left, zone)
    if result is None:
        raise v.unsupported(f"the operator {operator}", *kinds)
    return computed(operator, left, right, v.in_order((left, right), result), zone.name)


def _loose(data_type: DataType) -> DataType:
    return DAY_TIME if data_type == DAYS else data_type


def _add(operator: str, left: Value, right: Value, zone: Zone) -> Value | None:
    sign = "" if operator == "+" else "-"
    function = operators.FUNCTIONS[operator]
    if is_interval(left.type) and is_interval(right.type):
        common = v.common_type(left.type, right.type)
        return None if common is None else v.combine(f"{function}({left.sql}, {right.sql})", common, (left, right), raises=True)
    if left.type == "date" and right.type in ("byte", "short", "integer"):
        return v.combine(f"{function}({left.sql}, CAST({right.sql} AS INTEGER))", "date", (left, right), raises=True)
    if left.type == "date" and right.type == "date" and operator == "-":
        return v.combine(
            f"multiply(CAST(subtract({left.sql}, {right.sql}) AS BIGINT), CAST({_DAY} AS BIGINT))", DAYS, (left, right), raises=True
        )
    if left.type in v.TEMPORAL and right.type in v.TEMPORAL and operator == "-":
        return _between(left, right, zone)
    if left.type in v.TEMPORAL and right.type == YEAR_MONTH:
        return _add_months(left, right.like(f"({sign} {right.sql})" if sign else right.sql, YEAR_MONTH), zone)
    if left.type == "date" and right.type == DAYS:
        return v.combine(f"{function}({left.sql}, CAST({right.sql} // {_DAY} AS INTEGER))", "date", (left, right), raises=True)
    if left.type in v.TEMPORAL and right.type in (DAY_TIME, DAYS):
        return _add_micros(left, right.like(f"({sign} {right.sql})" if sign else right.sql, DAY_TIME), zone)
    return None


def _between(left: Value, right: Value, zone: Zone) -> Value:
    """Returns the number of microseconds between the local times of two moments, as Spark subtracts
    timestamps."""
    sides = []
    for side in (left, right):
        sql = zone.local(side.sql) if side.type == "timestamp" else f"CAST({side.sql} AS TIMESTAMP)"
        sides.append(f"epoch_us({sql})")
    return v.combine(f"subtract({sides[0]}, {sides[1]})", DAY_TIME, (left, right), raises=True)


def _add_months(left: Value, months: Value, zone: Zone) -> Value:
    if left.type == "date":
        return v.combine(f"CAST(({left.sql} + to_months({months.sql})) AS DATE)", "date", (left, months), raises=True)
    if left.type == "timestamp_ntz":
        return v.combine(f"({left.sql} + to_months({months.sql}))", "timestamp_ntz", (left, months), raises=True)
    return moved(left, f"({zone.local(left.sql)} + to_months({months.sql}))", [months], zone)


def _add_micros(left: Value, micros: Value, zone: Zone) -> Value:
    if left.type == "timestamp_ntz":
        return v.combine(f"make_timestamp(add(epoch_us({left.sql}), {micros.sql}))", "timestamp_ntz", (left, micros), raises=True)
    left = cast(left, "timestamp", zone)
    if zone.name == "UTC":
        return v.combine(f"make_timestamptz(add(epoch_us({left.sql}), {micros.sql}))", "timestamp", (left, micros), raises=True)
    days = moved(left, f"({zone.local(left.sql)} + to_days(CAST({micros.sql} // {_DAY} AS INTEGER)))", [micros], zone)
    return v.combine(f"make_timestamptz(add(epoch_us({days.sql}), {micros.sql} % {_DAY}))", "timestamp", (left, micros), raises=True)


def moved(start: Value, local: str, others: Sequence[Value], zone: Zone) -> Value:
    """Returns the instant of a changed local time. `start`: the timestamp before the change; `local`: SQL of
    the local time after it. If the local time occurs twice, the instant with the same offset from UTC as
    `start` is taken, as in Java."""
    sql = f"deltaic_utc({local})" if zone.name == "UTC" else f"deltaic_moved({start.sql}, {local}, {v.text(zone.name)})"
    return v.combine(sql, "timestamp", [start, *others], raises=True)


def negative(value: Value, zone: Zone) -> Value:
    if is_interval(value.type):
        return value.like(f"(- {value.sql})", value.type, raises=True)
    return operators.negative(value, zone)


# --- functions whose first argument is a unit


def _unit(arguments: Sequence[exp.Expression]) -> str | None:
    if len(arguments) == 3 and isinstance(arguments[0], exp.Column) and len(arguments[0].parts) == 1:
        return str(arguments[0].name.lower())
    return None


UNIT_FIRST: dict[str, Callable[[Sequence[exp.Expression]], str | None]] = dict.fromkeys(
    ("dateadd", "date_add", "timestampadd", "datediff", "date_diff", "timestampdiff"), _unit
)


def with_unit(name: str, unit: str, arguments: Sequence[Value], zone: Zone) -> Value:
    """Returns timestampadd(unit, amount, moment) or timestampdiff(unit, from, to). `name`: any of their
    names, such as `dateadd`."""
    if unit == "dayofyear" and name.endswith("diff"):
        raise v.unsupported(f"function {name} of dayofyear")
    if unit == "dayofyear":
        unit = "day"
    if unit not in _MICROS and unit not in _MONTHS:
        raise InvalidArgumentError(
            f"[INVALID_PARAMETER_VALUE.DATETIME_UNIT] {name} takes no unit {unit}", expected=", ".join((*_MICROS, *_MONTHS))
        )
    if name.endswith("diff"):
        start, stop = (implicit(argument, "timestamp", zone, name) for argument in arguments)
        return v.in_order((start, stop), _difference(unit, start, stop, zone))
    amount, moment = arguments
    if amount.type not in v.INTEGRAL:
        raise v.unsupported(f"function {name}", *(argument.type for argument in arguments))
    if moment.type != "timestamp_ntz":
        moment = implicit(moment, "timestamp", zone, name)
    return v.in_order((amount, moment), _moved_by(unit, amount, moment, zone))


def _moved_by(unit: str, amount: Value, moment: Value, zone: Zone) -> Value:
    if unit in _MONTHS:
        return _add_months(moment, amount.like(f"multiply(CAST({amount.sql} AS INTEGER), {_MONTHS[unit]})", YEAR_MONTH, raises=True), zone)
    micros = amount.like(f"multiply(CAST({amount.sql} AS BIGINT), CAST({_MICROS[unit]} AS BIGINT))", DAY_TIME, raises=True)
    if unit in ("day", "week") or zone.name == "UTC" or moment.type == "timestamp_ntz":
        return _add_micros(moment, micros, zone)
    return v.combine(f"make_timestamptz(add(epoch_us({moment.sql}), {micros.sql}))", "timestamp", (moment, micros), raises=True)


def _difference(unit: str, start: Value, stop: Value, zone: Zone) -> Value:
    first, last = zone.local(start.sql), zone.local(stop.sql)
    if unit in _MICROS:
        sql = f"(subtract(epoch_us({last}), epoch_us({first})) // {_MICROS[unit]})"
    else:
        # Within a lambda function, the SQL of each side is written once instead of ten times.
        months = "lambda deltaic_sides: deltaic_months(deltaic_sides.a, deltaic_sides.b)"
        sql = f"(list_extract(list_transform([struct_pack(a := {first}, b := {last})], {months}), 1) // {_MONTHS[unit]})"
    return v.combine(sql, "long", (start, stop), raises=True)
