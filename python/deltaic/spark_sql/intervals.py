"""Interval literals, and arithmetic on intervals, dates and timestamps.

A date plus an INTERVAL DAY is a date; with any other day-time interval, the sum is a timestamp.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from deltaic.errors import InvalidArgumentError
from deltaic.spark_sql import interval_literals, operators
from deltaic.spark_sql import values as v
from deltaic.spark_sql.casts import Zone, cast, implicit
from deltaic.spark_sql.constants import computed
from deltaic.spark_sql.interval_literals import MICROS, MONTHS
from deltaic.spark_sql.values import (
    DAY_TIME,
    DAYS,
    YEAR_MONTH,
    Value,
    is_day_time,
    is_interval,
    is_year_month,
)

_DAY = MICROS["day"]
_BY_ZERO = v.failure(
    "INTERVAL_DIVIDED_BY_ZERO", "'Division by zero. Use `try_divide` to tolerate divisor being 0.'"
)


def literal(node: exp.Expr) -> Value:
    """INTERVAL 1 DAY, INTERVAL '1 02:03:04' DAY TO SECOND, INTERVAL '1-2' YEAR TO MONTH, INTERVAL 1 DAY 2
    HOURS."""
    return constant(*interval_literals.read(node))


def constant(amount: int, data_type: str) -> Value:
    return Value(f"CAST({amount} AS {v.duckdb_type(data_type)})", data_type, False, constant=amount)


def arithmetic(operator: str, left: Value, right: Value, zone: Zone) -> Value:
    """Returns `left operator right`. Without dates, timestamps and intervals, `operators.arithmetic` computes
    it."""
    kinds = (left.type, right.type)
    if not any(kind in v.TEMPORAL or is_interval(kind) for kind in kinds):
        return operators.arithmetic(operator, left, right, zone)
    if (
        operator == "+"
        and (right.type in v.TEMPORAL or is_interval(left.type))
        and not is_interval(right.type)
    ):
        left, right = right, left
    result = None
    if operator in ("+", "-"):
        left, right = _typed(operator, left, right, zone)
        if left.type == "string" and (is_day_time(right.type) or right.type == v.CALENDAR):
            shown = cast(arithmetic(operator, cast(left, "timestamp", zone), right, zone), "string", zone)
            return shown.like(shown.sql, "string", nullable=True)
        result = _add(operator, left, right, zone)
    elif operator == "*" and is_interval(right.type):
        return arithmetic(operator, right, left, zone)
    elif operator in ("*", "/") and (is_day_time(left.type) or is_year_month(left.type)):
        result = scaled(operator, left, right, zone)
    if result is None:
        raise v.unsupported(f"the operator {operator}", *kinds)
    return computed(operator, left, right, v.in_order((left, right), result), zone.name)


def _typed(operator: str, left: Value, right: Value, zone: Zone) -> tuple[Value, Value]:
    """Returns the operands of `+` or `-`. A NULL without a type is a day-time interval if it is added to a
    date or timestamp, and else has the other operand's type. In `-`, text beside a date or timestamp has its
    type, too: `day - '2026-01-31'`."""
    kinds = {left.type, right.type}
    if "void" in kinds and v.CALENDAR not in kinds:
        (known,) = kinds - {"void"}
        kind = DAY_TIME if operator == "+" and known in v.TEMPORAL else known
        return cast(left, kind, zone) if left.type == "void" else left, (
            cast(right, kind, zone) if right.type == "void" else right
        )
    if operator == "-" and "string" in kinds and not kinds.isdisjoint(v.TEMPORAL):
        (known,) = kinds - {"string"}
        return cast(left, known, zone), cast(right, known, zone)
    return left, right


def scaled(operator: str, left: Value, right: Value, zone: Zone, *, by_zero: str = _BY_ZERO) -> Value | None:
    """An interval times a number, or divided by one: halves go away from zero. `by_zero`: SQL of a quotient
    by zero."""
    if right.type in ("string", "void"):
        right = cast(right, "double", zone)
    if not v.is_numeric(right.type):
        return None
    kind = DAY_TIME if is_day_time(left.type) else YEAR_MONTH
    decimal = v.decimal_parts(right.type)
    if right.type in v.FRACTIONAL:
        sql = f"round(CAST({left.sql} AS DOUBLE) {operator} CAST({right.sql} AS DOUBLE))"
    elif decimal is not None and (decimal[0] > 19 or (operator == "/" and decimal[0] + decimal[1] > 19)):
        return None
    elif operator == "/":
        amount, number = f"CAST({left.sql} AS HUGEINT)", f"CAST({right.sql} AS HUGEINT)"
        if decimal is not None:
            amount, number = (
                f"({amount} * {10 ** decimal[1]})",
                operators.unscaled(right.sql, decimal[1], decimal[0]),
            )
        sql = half_up(amount, number)
    elif decimal is not None:
        sql = f"round(multiply(CAST({left.sql} AS DECIMAL(19, 0)), {right.sql}), 0)"
    else:
        sql = f"multiply(CAST({left.sql} AS BIGINT), CAST({right.sql} AS BIGINT))"
    sql = f"CAST({sql} AS {v.duckdb_type(kind)})"
    if operator == "/":
        sql = f"(CASE WHEN {right.sql} = 0 AND {left.sql} IS NOT NULL THEN {by_zero} ELSE {sql} END)"
    return v.combine(sql, kind, (left, right), raises=True)


def half_up(amount: str, number: str) -> str:
    """SQL of the quotient of two whole numbers (SQL, of type HUGEINT), its halves away from zero."""
    return f"(sign({amount}) * sign({number}) * ((2 * abs({amount}) + abs({number})) // (2 * abs({number}))))"


def _add(operator: str, left: Value, right: Value, zone: Zone) -> Value | None:
    sign = "" if operator == "+" else "-"
    function = operators.FUNCTIONS[operator]
    if is_interval(left.type) and is_interval(right.type):
        common = v.common_type(left.type, right.type)
        if common is None or v.CALENDAR in (left.type, right.type):
            return None
        return v.combine(f"{function}({left.sql}, {right.sql})", common, (left, right), raises=True)
    if left.type in v.TEMPORAL and right.type == v.CALENDAR:
        return _add_calendar(operator, left, right, zone)
    if left.type == "date" and right.type in ("byte", "short", "integer"):
        return v.combine(
            f"{function}({left.sql}, CAST({right.sql} AS INTEGER))", "date", (left, right), raises=True
        )
    if left.type == "date" and right.type == "date" and operator == "-":
        return v.combine(
            f"multiply(CAST(subtract({left.sql}, {right.sql}) AS BIGINT), CAST({_DAY} AS BIGINT))",
            DAYS,
            (left, right),
            raises=True,
        )
    if left.type in v.TEMPORAL and right.type in v.TEMPORAL and operator == "-":
        return _between(left, right, zone)
    if left.type in v.TEMPORAL and is_year_month(right.type):
        return _add_months(left, right.like(f"({sign} {right.sql})" if sign else right.sql, YEAR_MONTH), zone)
    if left.type == "date" and right.type == DAYS:
        return v.combine(
            f"{function}({left.sql}, CAST({right.sql} // {_DAY} AS INTEGER))",
            "date",
            (left, right),
            raises=True,
        )
    if left.type in v.TEMPORAL and is_day_time(right.type):
        return _add_micros(left, right.like(f"({sign} {right.sql})" if sign else right.sql, DAY_TIME), zone)
    return None


def _add_calendar(operator: str, left: Value, right: Value, zone: Zone) -> Value:
    """A date or timestamp and the months, days and microseconds of a calendar interval, one after the other.
    A date takes no microseconds."""
    months, days, micros = (f"struct_extract({right.sql}, '{part}')" for part in ("months", "days", "micros"))
    parts = [
        right.like(f"({'- ' if operator == '-' else ''}{part})", YEAR_MONTH)
        for part in (months, days, micros)
    ]
    if left.type == "date":
        wrong = v.failure(
            "INVALID_INTERVAL_WITH_MICROSECONDS_ADDITION",
            "'an interval with hours cannot be added to a date'",
        )
        moved = _add_months(left, parts[0], zone)
        day = f"CASE WHEN {micros} <> 0 THEN {wrong} ELSE add({moved.sql}, {parts[1].sql}) END"
        return v.combine(f"CAST({day} AS DATE)", "date", (left, right), raises=True)
    later = _add_months(left, parts[0], zone)
    later = _add_micros(
        later,
        parts[1].like(f"multiply(CAST({parts[1].sql} AS BIGINT), CAST({_DAY} AS BIGINT))", DAY_TIME),
        zone,
    )
    if later.type == "timestamp_ntz":
        return _add_micros(later, parts[2], zone)
    return v.combine(
        f"make_timestamptz(add(epoch_us({later.sql}), {parts[2].sql}))",
        "timestamp",
        (left, right),
        raises=True,
    )


def _between(left: Value, right: Value, zone: Zone) -> Value:
    """Returns the number of microseconds between the local times of two dates or timestamps, as Spark
    subtracts timestamps."""
    sides = []
    for side in (left, right):
        sql = zone.local(side.sql) if side.type == "timestamp" else f"CAST({side.sql} AS TIMESTAMP)"
        sides.append(f"epoch_us({sql})")
    return v.combine(f"subtract({sides[0]}, {sides[1]})", DAY_TIME, (left, right), raises=True)


def _add_months(left: Value, months: Value, zone: Zone) -> Value:
    if left.type == "date":
        return v.combine(
            f"CAST(({left.sql} + to_months({months.sql})) AS DATE)", "date", (left, months), raises=True
        )
    if left.type == "timestamp_ntz":
        return v.combine(
            f"({left.sql} + to_months({months.sql}))", "timestamp_ntz", (left, months), raises=True
        )
    return moved(left, f"({zone.local(left.sql)} + to_months({months.sql}))", [months], zone)


def _add_micros(left: Value, micros: Value, zone: Zone) -> Value:
    if left.type == "timestamp_ntz":
        return v.combine(
            f"make_timestamp(add(epoch_us({left.sql}), {micros.sql}))",
            "timestamp_ntz",
            (left, micros),
            raises=True,
        )
    left = cast(left, "timestamp", zone)
    if zone.name == "UTC":
        return v.combine(
            f"make_timestamptz(add(epoch_us({left.sql}), {micros.sql}))",
            "timestamp",
            (left, micros),
            raises=True,
        )
    days = moved(
        left, f"({zone.local(left.sql)} + to_days(CAST({micros.sql} // {_DAY} AS INTEGER)))", [micros], zone
    )
    return v.combine(
        f"make_timestamptz(add(epoch_us({days.sql}), {micros.sql} % {_DAY}))",
        "timestamp",
        (left, micros),
        raises=True,
    )


def moved(start: Value, local: str, others: Sequence[Value], zone: Zone) -> Value:
    """Returns the instant of a changed local time. `start`: the timestamp before the change; `local`: SQL of
    the local time after it. If the local time occurs twice, the instant with the same offset from UTC as
    `start` is taken, as in Java."""
    sql = (
        f"deltaic_utc({local})"
        if zone.name == "UTC"
        else f"deltaic_moved({start.sql}, {local}, {v.text(zone.name)})"
    )
    return v.combine(sql, "timestamp", [start, *others], raises=True)


def negative(value: Value, zone: Zone) -> Value:
    if not is_interval(value.type):
        return operators.negative(value, zone)
    result = value.like(f"(- {value.sql})", value.type, raises=True)
    return constant(-value.constant, str(value.type)) if isinstance(value.constant, int) else result


# --- functions whose first argument is a unit


def _unit(arguments: Sequence[exp.Expression]) -> str | None:
    if len(arguments) == 3 and isinstance(arguments[0], exp.Column) and len(arguments[0].parts) == 1:
        return str(arguments[0].name.lower())
    return None


UNIT_FIRST: dict[str, Callable[[Sequence[exp.Expression]], str | None]] = dict.fromkeys(
    ("dateadd", "date_add", "timestampadd", "datediff", "date_diff", "timestampdiff"), _unit
)


def with_unit(name: str, unit: str, arguments: Sequence[Value], zone: Zone) -> Value:
    """Returns timestampadd(unit, amount, time) or timestampdiff(unit, from, to). `name`: any of their
    names, such as `dateadd`."""
    if unit == "dayofyear" and name.endswith("diff"):
        raise v.unsupported(f"function {name} of dayofyear")
    if unit == "dayofyear":
        unit = "day"
    if unit not in MICROS and unit not in MONTHS:
        raise InvalidArgumentError(
            f"[INVALID_PARAMETER_VALUE.DATETIME_UNIT] {name} takes no unit {unit}",
            expected=", ".join((*MICROS, *MONTHS)),
        )
    if name.endswith("diff"):
        start, stop = (implicit(argument, "timestamp", zone, name) for argument in arguments)
        return v.in_order((start, stop), _difference(unit, start, stop, zone))
    amount, moment = arguments
    if amount.type == "void":
        amount = cast(amount, "integer", zone)
    if amount.type not in v.INTEGRAL:
        raise v.unsupported(f"function {name}", *(argument.type for argument in arguments))
    if moment.type != "timestamp_ntz":
        moment = implicit(moment, "timestamp", zone, name)
    return v.in_order((amount, moment), _moved_by(unit, amount, moment, zone))


def _moved_by(unit: str, amount: Value, moment: Value, zone: Zone) -> Value:
    if unit in MONTHS:
        return _add_months(
            moment,
            amount.like(f"multiply(CAST({amount.sql} AS INTEGER), {MONTHS[unit]})", YEAR_MONTH, raises=True),
            zone,
        )
    micros = amount.like(
        f"multiply(CAST({amount.sql} AS BIGINT), CAST({MICROS[unit]} AS BIGINT))", DAY_TIME, raises=True
    )
    if unit in ("day", "week") or zone.name == "UTC" or moment.type == "timestamp_ntz":
        return _add_micros(moment, micros, zone)
    return v.combine(
        f"make_timestamptz(add(epoch_us({moment.sql}), {micros.sql}))",
        "timestamp",
        (moment, micros),
        raises=True,
    )


def _difference(unit: str, start: Value, stop: Value, zone: Zone) -> Value:
    first, last = zone.local(start.sql), zone.local(stop.sql)
    if unit in MICROS:
        sql = f"(subtract(epoch_us({last}), epoch_us({first})) // {MICROS[unit]})"
    else:
        # Within a lambda function, the SQL of each side is written once instead of ten times.
        months = "lambda deltaic_sides: deltaic_months(deltaic_sides.a, deltaic_sides.b)"
        sql = (
            f"(list_extract(list_transform([struct_pack(a := {first}, b := {last})], {months}), 1) //"
            f" {MONTHS[unit]})"
        )
    return v.combine(sql, "long", (start, stop), raises=True)
