"""Casts of intervals: to text, to and from numbers, to intervals of other fields."""

from __future__ import annotations

from deltaic.protocol.schema import DataType
from deltaic.spark_sql import values as v
from deltaic.spark_sql.casts import Zone, cast
from deltaic.spark_sql.interval_literals import MICROS, MONTHS, of_text
from deltaic.spark_sql.interval_types import fields_of
from deltaic.spark_sql.values import Value


def interval_cast(value: Value, target: DataType, zone: Zone, *, safe: bool) -> Value:
    """Returns a value cast from or to an interval. Raises UnsupportedFeatureError for a cast that is not
    written here."""
    source = value.type
    result = None
    if (
        not safe
        and isinstance(source, str)
        and isinstance(target, str)
        and v.CALENDAR not in (source, target)
    ):
        if v.is_interval(source) and v.is_interval(target):
            result = _to_interval(value, target)
        elif target == "string":
            result = _to_text(value)
        elif v.is_interval(source):
            result = _to_number(value, target, zone)
        elif source in v.INTEGRAL:
            result = _from_number(value, target)
        elif source == "string" and isinstance(value.constant, str):
            amount, kind = of_text(value.constant, target, repr(value.constant))
            result = Value(f"CAST({amount} AS {v.duckdb_type(kind)})", kind, False, constant=amount)
    if result is None:
        raise v.unsupported("try_cast" if safe else "cast", source, target)
    return result


def _unit(kind: str) -> int:
    """Microseconds or months of the least field of an interval."""
    last = fields_of(kind)[-1]
    return MICROS[last] if v.is_day_time(kind) else MONTHS[last]


def _to_interval(value: Value, target: str) -> Value | None:
    """Returns an interval without what is smaller than the least field of `target`: `INTERVAL '1 02' DAY TO
    HOUR` becomes `INTERVAL '1' DAY`. None for an interval of months as one of days, and the other way."""
    if v.is_day_time(value.type) != v.is_day_time(target):
        return None
    unit = _unit(target)
    if unit <= _unit(str(value.type)):
        return (
            value.like(value.sql, target)
            if not value.is_constant
            else Value(value.sql, target, value.nullable, constant=value.constant)
        )
    return value.like(f"({value.sql} - {value.sql} % {unit})", target)


def _to_number(value: Value, target: str, zone: Zone) -> Value | None:
    """Returns an interval as a number of its least field: 26 for `INTERVAL '1 02' DAY TO HOUR`."""
    kind = str(value.type)
    if not v.is_numeric(target) or target in v.FRACTIONAL:
        return None
    if fields_of(kind)[-1] == "second" and v.decimal_parts(target):
        seconds = f"multiply(CAST({value.sql} AS DECIMAL(19, 0)), CAST(0.000001 AS DECIMAL(6, 6)))"
        return cast(value.like(seconds, "decimal(25,6)"), target, zone)
    return cast(value.like(f"CAST({value.sql} // {_unit(kind)} AS BIGINT)", "long"), target, zone)


def _from_number(value: Value, target: str) -> Value:
    kind = v.duckdb_type(target)
    return value.like(
        f"multiply(CAST({value.sql} AS {kind}), CAST({_unit(target)} AS {kind}))", target, raises=True
    )


def _to_text(value: Value) -> Value:
    """`INTERVAL '1 02:03:04.5' DAY TO SECOND`, `INTERVAL '-1-2' YEAR TO MONTH`."""
    kind, names = str(value.type), fields_of(str(value.type))
    rest, shown = "deltaic_rest", []
    if not v.is_day_time(kind):
        shown = (
            [f"{rest} // 12", "'-'", f"{rest} % 12"] if len(names) == 2 else [f"{rest} // {MONTHS[names[0]]}"]
        )
    else:
        for place, name in enumerate(names):
            shown += [] if place == 0 else ["' '" if names[place - 1] == "day" else "':'"]
            part = (
                f"{rest} // {MICROS[name]}"
                if place == 0
                else f"{rest} % {MICROS[names[place - 1]]} // {MICROS[name]}"
            )
            shown.append(part if name == "day" else f"printf('%02d', {part})")
        if names[-1] == "second":
            shown.append(f"rtrim(rtrim(printf('.%06d', {rest} % 1000000), '0'), '.')")
    head, tail = v.text("INTERVAL '"), v.text(f"' {kind.removeprefix('interval ').upper()}")
    text = " || ".join(
        part if part.startswith(("'", "printf", "rtrim")) else f"CAST({part} AS VARCHAR)" for part in shown
    )
    text = f"list_extract(list_transform([abs({value.sql})], lambda deltaic_rest: {text}), 1)"
    return value.like(
        f"({head} || CASE WHEN {value.sql} < 0 THEN '-' ELSE '' END || {text} || {tail})", "string"
    )
