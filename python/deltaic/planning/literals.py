"""Literals of a condition as the predicate tree has them: only where Spark's comparison of column and literal is the comparison of these
two values. What cannot be said so stays with the engine."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from decimal import Context, Decimal, InvalidOperation
from typing import Any, TypeAlias

from deltaic.protocol.schema import DataType, Schema, Struct, collation_of, decimal_parts

Json: TypeAlias = dict[str, Any]
Path: TypeAlias = Sequence[str]

INTEGERS = {"byte": 8, "short": 16, "integer": 32, "long": 64}
_MOST_DIGITS = 100
_EXACT = Context(prec=3 * _MOST_DIGITS)  # Python's own keeps 28 digits
_FLOAT_MAX = 3.4028234663852886e38
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_TIMESTAMP = re.compile(r"(\d{4}-\d{2}-\d{2})(?:[ T](\d{2}:\d{2}:\d{2})(?:\.(\d{1,6}))?(Z|[+-]\d{2}:\d{2})?)?")


class NotExpressible(Exception):
    """The expression cannot be expressed in the tree of `_core.Predicate`."""


@dataclass(frozen=True)
class Number:
    """`double`: whether Spark types it so. A plain `1.5` is a decimal, `1e3` and `1.5D` are doubles."""

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
    """`cast`: the type of `date'...'` or of a cast to one ("date", "timestamp", "timestamp_ntz"); None for a plain string."""

    value: str
    cast: str | None = None


Literal: TypeAlias = Number | Text | bool | None
"""None: the null."""


# --- columns


def find_column(schema: Schema, alias: str, parts: Sequence[str]) -> tuple[tuple[str, ...], DataType]:
    """The path in the table's own case, and its type, of what is written `a.b.c`. Arrays and maps are not looked into."""
    found = _find(schema, parts[1:]) if parts[0].lower() == alias.lower() else None  # Spark looks for the alias first
    found = found or _find(schema, parts)
    if found is None:
        raise NotExpressible
    path, data_type, collated = found
    if collated:  # bounds are of the bytes, and say nothing of another order
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
    """`column op literal`. `utc`: whether timestamps without a zone are in UTC."""
    return {"op": "null"} if literal is None else compare(op, path, said(literal, data_type, utc=utc))


def between(path: Path, data_type: DataType, low: Literal, high: Literal, *, utc: bool) -> Json:
    return {"op": "and", "args": [compared(op, path, data_type, side, utc=utc) for op, side in ((">=", low), ("<=", high))]}


def contained(path: Path, data_type: DataType, literals: Sequence[Literal], *, utc: bool) -> Json:
    """`column IN (literals)`."""
    values = [literal for literal in literals if literal is not None]
    if data_type == "string" and not all(isinstance(value, Text) and value.cast is None for value in values):
        raise NotExpressible  # one number in the list and Spark compares all of it as numbers
    found: Json = {"op": "in", "column": list(path), "literals": [said(value, data_type, utc=utc) for value in values]}
    return found if len(values) == len(literals) else {"op": "or", "args": [found, {"op": "null"}]}


# --- values


def said(literal: Literal, data_type: DataType, *, utc: bool) -> str:
    """The literal as PROTOCOL.md's "Partition Value Serialization" of the column's type."""
    if not isinstance(data_type, str):
        raise NotExpressible
    if data_type == "boolean" and isinstance(literal, bool):
        return "true" if literal else "false"
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
    if data_type in INTEGERS:
        return str(integer(number, INTEGERS[data_type]))
    if data_type in ("double", "float"):
        return _floating(number, data_type)
    if parts := decimal_parts(data_type):
        return _decimal(number, *parts)
    raise NotExpressible


def integer(number: Number, bits: int) -> int:
    value, limit = number.value, 1 << (bits - 1)
    if value != value.to_integral_value() or not -limit <= value < limit or (number.double and value.copy_abs() > 1 << 53):
        raise NotExpressible
    if number.double and bits == 64:
        raise NotExpressible  # Spark compares as doubles: several longs are equal to one
    return int(value)


def _floating(number: Number, data_type: str) -> str:
    value = float(number.value)
    if not math.isfinite(value):
        raise NotExpressible
    if data_type == "float" and (abs(value) > _FLOAT_MAX or struct.unpack("f", struct.pack("f", value))[0] != value):
        raise NotExpressible  # compared as doubles, and no float has this value
    return repr(value)


def _decimal(number: Number, precision: int, scale: int) -> str:
    if number.double:
        raise NotExpressible
    shifted = number.value.scaleb(scale, _EXACT)
    if shifted != shifted.to_integral_value() or shifted.copy_abs() >= 10**precision:
        raise NotExpressible
    return format(number.value, "f")


def day(literal: Literal) -> date:
    """A date's literal: `date'...'`, or a string, which Spark casts to the column's type."""
    if not isinstance(literal, Text) or literal.cast not in (None, "date") or not _DATE.fullmatch(literal.value):
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
        moment -= sign * timedelta(hours=int(zone[1:3]), minutes=int(zone[4:6]))
    return instant(moment)


def _timestamp_ntz(text: str) -> str:
    moment, zone = _moment(text)
    if zone is not None:
        raise NotExpressible
    return moment.isoformat(sep=" ", timespec="microseconds")


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
    """True if timestamps written in this zone are UTC's."""
    return time_zone.upper() in ("UTC", "ETC/UTC", "Z", "GMT")


def instant(moment: datetime) -> str:
    """A moment by UTC's clock as the literal of a timestamp column."""
    return moment.replace(tzinfo=timezone.utc).isoformat(timespec="microseconds").replace("+00:00", "Z")
