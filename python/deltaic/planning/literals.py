"""Converts literals of a condition to the text that the predicate tree of `_core` has for the column's type.

A literal is converted only if Spark compares column and literal as two values of the column's type. For
`int_column < 1.5` Spark compares decimals: NotExpressible is raised, and the engine evaluates the
condition."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from decimal import Context, Decimal, InvalidOperation
from typing import Any, TypeAlias

from deltaic.protocol.schema import INTEGER_BITS, DataType, Schema, Struct, collation_of, decimal_parts

Json: TypeAlias = dict[str, Any]
Path: TypeAlias = Sequence[str]

_MOST_DIGITS = 100
"""Maximum number of digits of a number; a longer one is NotExpressible."""
_EXACT = Context(prec=3 * _MOST_DIGITS)  # Python's default precision is 28 digits
_FLOAT_MAX = 3.4028234663852886e38
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_TIMESTAMP = re.compile(
    r"(\d{4}-\d{2}-\d{2})(?:[ T](\d{2}:\d{2}:\d{2})(?:\.(\d{1,6}))?(Z|[+-]\d{2}:\d{2})?)?"
)


class NotExpressible(Exception):
    """The expression cannot be expressed in the tree of `_core.Predicate`."""


@dataclass(frozen=True)
class Number:
    """A numeric literal. `double`: True if it is a double in Spark, as `1e3` and `1.5D`; `1.5` is a
    decimal."""

    value: Decimal
    double: bool = False

    @classmethod
    def of(cls, digits: str, *, negative: bool = False, double: bool = False) -> Number:
        if len(digits) > _MOST_DIGITS:
            raise NotExpressible
        try:
            value = Decimal(digits)
        except InvalidOperation:
            raise NotExpressible from None
        return cls(value.copy_negate() if negative else value, double or "e" in digits.lower())


@dataclass(frozen=True)
class Text:
    """A text literal. `cast`: "date", "timestamp" or "timestamp_ntz" for `date'...'` or a cast to one of
    these types; None for a plain string."""

    value: str
    cast: str | None = None


Literal: TypeAlias = Number | Text | bool | None
"""A literal of SQL; None is NULL."""


# --- columns


def find_column(schema: Schema, alias: str, parts: Sequence[str]) -> tuple[tuple[str, ...], DataType]:
    """Returns the path as the schema spells it, and the type, of the column or struct field that is written
    `a.b.c`. A part of an array or a map is NotExpressible."""
    # Spark tries the alias first
    column = _find(schema, parts[1:]) if parts[0].lower() == alias.lower() else None
    column = column or _find(schema, parts)
    if column is None:
        raise NotExpressible
    path, data_type, collated = column
    if collated:  # statistics are in the order of the bytes, not of the collation
        raise NotExpressible
    return path, data_type


def _find(schema: Schema, names: Sequence[str]) -> tuple[tuple[str, ...], DataType, bool] | None:
    field = schema.get(names[0]) if names else None
    if field is None:
        return None
    path, data_type, collated = [field.name], field.type, collation_of(field) is not None
    for name in names[1:]:
        inside = data_type.fields if isinstance(data_type, Struct) else ()
        child = next((item for item in inside if item.name.lower() == name.lower()), None)
        if child is None:
            return None
        path.append(child.name)
        data_type, collated = child.type, collated or collation_of(child) is not None
    return tuple(path), data_type, collated


# --- tests


def compare(op: str, path: Path, literal: str) -> Json:
    return {"op": op, "column": list(path), "literal": literal}


def compared(op: str, path: Path, data_type: DataType, literal: Literal, *, utc: bool) -> Json:
    """Returns the test `column op literal`. `utc`: True if timestamps without a zone are in UTC."""
    return {"op": "null"} if literal is None else compare(op, path, literal_text(literal, data_type, utc=utc))


def between(path: Path, data_type: DataType, low: Literal, high: Literal, *, utc: bool) -> Json:
    return {
        "op": "and",
        "args": [compared(op, path, data_type, side, utc=utc) for op, side in ((">=", low), ("<=", high))],
    }


def contained(path: Path, data_type: DataType, literals: Sequence[Literal], *, utc: bool) -> Json:
    """Returns the test `column IN (literals)`."""
    values = [literal for literal in literals if literal is not None]
    if data_type == "string" and not all(isinstance(value, Text) and value.cast is None for value in values):
        raise NotExpressible  # with one number in the list, Spark compares all values as numbers
    test: Json = {
        "op": "in",
        "column": list(path),
        "literals": [literal_text(value, data_type, utc=utc) for value in values],
    }
    return test if len(values) == len(literals) else {"op": "or", "args": [test, {"op": "null"}]}


# --- values


def value_text(value: Any) -> str:
    """Serializes a Python value as in PROTOCOL.md, "Partition Value Serialization": `Decimal("1E+2")` becomes
    `100`, and 12:00 on 2024-03-05 in UTC `2024-03-05T12:00:00.000000Z`."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return (
            value.isoformat(sep=" ", timespec="microseconds")
            if value.tzinfo is None
            else instant(value.astimezone(timezone.utc))
        )
    if isinstance(value, date):
        return value.isoformat()
    return format(value, "f") if isinstance(value, Decimal) else str(value)


def literal_text(literal: Literal, data_type: DataType, *, utc: bool) -> str:
    """Serializes a literal of SQL for a column's type, as `value_text` does a value of Python. Raises
    NotExpressible if Spark does not compare the two as values of this type."""
    if not isinstance(data_type, str):
        raise NotExpressible
    if data_type == "boolean" and isinstance(literal, bool):
        return value_text(literal)
    if isinstance(literal, Number):
        return _number(literal, data_type)
    if not isinstance(literal, Text):
        raise NotExpressible
    if data_type == "string" and literal.cast is None:
        return literal.value
    if literal.cast in (None, data_type):
        if data_type == "date":
            return day(literal).isoformat()
        if data_type == "timestamp":
            return _timestamp(literal.value, utc)
        if data_type == "timestamp_ntz":
            return _timestamp_ntz(literal.value)
    raise NotExpressible


def _number(number: Number, data_type: str) -> str:
    if data_type in INTEGER_BITS:
        return str(integer(number, INTEGER_BITS[data_type]))
    if data_type in ("double", "float"):
        return _floating(number, data_type)
    if parts := decimal_parts(data_type):
        return _decimal(number, *parts)
    raise NotExpressible


def integer(number: Number, bits: int) -> int:
    value, limit = number.value, 1 << (bits - 1)
    if (
        value != value.to_integral_value()
        or not -limit <= value < limit
        or (number.double and value.copy_abs() > 1 << 53)
    ):
        raise NotExpressible
    if number.double and bits == 64:
        raise NotExpressible  # Spark compares as doubles, and several longs are equal to one double
    return int(value)


def _floating(number: Number, data_type: str) -> str:
    value = float(number.value)
    if not math.isfinite(value):
        raise NotExpressible
    if data_type == "float" and (
        abs(value) > _FLOAT_MAX or struct.unpack("f", struct.pack("f", value))[0] != value
    ):
        raise NotExpressible  # Spark compares as doubles, and no float has this value
    return repr(value)


def _decimal(number: Number, precision: int, scale: int) -> str:
    if number.double:
        raise NotExpressible
    shifted = number.value.scaleb(scale, _EXACT)
    if shifted != shifted.to_integral_value() or shifted.copy_abs() >= 10**precision:
        raise NotExpressible
    return value_text(number.value)


def day(literal: Literal) -> date:
    """Parses a date: `date'2024-03-05'`, or a string, which Spark casts to the column's type."""
    if (
        not isinstance(literal, Text)
        or literal.cast not in (None, "date")
        or not _DATE.fullmatch(literal.value)
    ):
        raise NotExpressible
    try:
        return date.fromisoformat(literal.value)
    except ValueError:
        raise NotExpressible from None


def _timestamp(text: str, utc: bool) -> str:
    moment, zone = _moment(text)
    if zone is None and not utc:
        raise NotExpressible
    if zone is not None and zone != "Z":
        sign = -1 if zone[0] == "-" else 1
        try:
            moment -= sign * timedelta(hours=int(zone[1:3]), minutes=int(zone[4:6]))
        except OverflowError:  # `0001-01-01 00:00:00+10:00` is in the year 0 in UTC
            raise NotExpressible from None
    return instant(moment)


def _timestamp_ntz(text: str) -> str:
    moment, zone = _moment(text)
    if zone is not None:
        raise NotExpressible
    return value_text(moment)


def _moment(text: str) -> tuple[datetime, str | None]:
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        raise NotExpressible
    written, clock, fraction, zone = match.groups()
    try:
        moment = datetime.fromisoformat(f"{written}T{clock or '00:00:00'}")
        return moment.replace(microsecond=int((fraction or "0").ljust(6, "0"))), zone
    except ValueError:
        raise NotExpressible from None


def is_utc(time_zone: str) -> bool:
    """True if this zone is another name of UTC."""
    return time_zone.upper() in ("UTC", "ETC/UTC", "Z", "GMT")


def instant(moment: datetime) -> str:
    """Serializes a datetime in UTC for a timestamp column: `2024-03-05T00:00:00.000000Z`."""
    return moment.replace(tzinfo=timezone.utc).isoformat(timespec="microseconds").replace("+00:00", "Z")
