"""Literals of intervals: their amount and type, and the text that Spark shows for them."""

from __future__ import annotations

import re
from decimal import Decimal

from sqlglot import exp

from deltaic.errors import InvalidArgumentError
from deltaic.spark_sql import values as v
from deltaic.spark_sql.interval_types import (
    DAY_TIME_FIELDS,
    YEAR_MONTH_FIELDS,
    fields_of,
    interval,
    is_day_time,
)

MICROS = {
    "microsecond": 1,
    "millisecond": 1000,
    "second": 10**6,
    "minute": 60 * 10**6,
    "hour": 3600 * 10**6,
    "day": 86400 * 10**6,
    "week": 7 * 86400 * 10**6,
}
MONTHS = {"month": 1, "quarter": 3, "year": 12}
_FIELD_OF = {"microsecond": "second", "millisecond": "second", "week": "day"}
_WORDS = re.compile(r"([+-]?\s*\d+(?:\.\d*)?|[+-]?\s*\.\d+)\s+([a-z]+)\s*", re.IGNORECASE)
_OF_FIELD = {
    "day": r"(?P<day>\d{1,9}) ",
    "hour": r"(?P<hour>\d{1,9}):",
    "minute": r"(?P<minute>\d{1,9}):",
    "second": r"(?P<second>\d{1,9}(\.\d{1,9})?):",
}


def read(node: exp.Expr) -> tuple[int, str]:
    """Returns amount (microseconds or months) and type of a literal: `INTERVAL 1 DAY 2 HOURS`, `INTERVAL
    '1-2' YEAR TO MONTH`, `INTERVAL '1 day'`. Raises InvalidArgumentError for any other text."""
    unit, shown = node.args.get("unit"), node.sql(dialect="databricks")
    text = str(node.name)
    if isinstance(unit, exp.IntervalSpan):
        return of_text(text, interval(unit.this.name.lower(), unit.expression.name.lower()), shown)
    return _sum([(text.strip(), unit.name)] if unit is not None else _parts(text, shown), shown)


def _parts(text: str, shown: str) -> list[tuple[str, str]]:
    """Returns the numbers and units of `1 day 2 hours`, also behind the word INTERVAL."""
    rest = re.sub(r"^\s*interval\s+", "", text, flags=re.IGNORECASE).strip()
    if not rest or not re.fullmatch(f"(?:{_WORDS.pattern})+", rest + " ", re.IGNORECASE):
        raise _invalid(shown)
    return [(re.sub(r"\s", "", number), unit) for number, unit in _WORDS.findall(rest + " ")]


def _sum(parts: list[tuple[str, str]], shown: str) -> tuple[int, str]:
    fields, total = [], 0
    for number, word in parts:
        unit = word.lower().removesuffix("s")
        if unit == "quarter":
            raise InvalidArgumentError("[PARSE_SYNTAX_ERROR] an interval has no unit QUARTER", found=shown)
        whole = re.fullmatch(r"[+-]?\d{1,18}", number)
        if unit not in MICROS and unit not in MONTHS:
            raise _invalid(shown)
        if whole is None and (
            unit != "second" or not re.fullmatch(r"[+-]?(\d{1,12}(\.\d{0,9})?|\.\d{1,9})", number)
        ):
            raise _invalid(shown)
        fields.append(_FIELD_OF.get(unit, unit))
        total += int(Decimal(number) * (MICROS.get(unit) or MONTHS[unit]))
    order = DAY_TIME_FIELDS if fields[0] in DAY_TIME_FIELDS else YEAR_MONTH_FIELDS
    if any(field not in order for field in fields):
        raise InvalidArgumentError(
            "[INVALID_INTERVAL_FORMAT] an interval has months or days, not both",
            found=shown,
            expected="one of either",
        )
    kind = interval(min(fields, key=order.index), max(fields, key=order.index))
    if not -(1 << 63) <= total < 1 << (63 if is_day_time(kind) else 31):
        raise InvalidArgumentError("[INVALID_INTERVAL_FORMAT] the interval is out of range", found=shown)
    return total, kind


def of_text(text: str, kind: str, shown: str) -> tuple[int, str]:
    """Returns the amount of a text in the form of a type, `1 02:03` for INTERVAL DAY TO MINUTE, and the
    type."""
    text = text.strip()
    sign, digits = (-1 if text.startswith("-") else 1), re.sub(r"^[+-]", "", text)
    if not (v.is_day_time(kind) or v.is_year_month(kind)):
        raise v.unsupported(f"the interval {shown}")
    names = fields_of(kind)
    if len(names) == 1:
        return _sum([(text, names[0])], shown)
    if names == YEAR_MONTH_FIELDS:
        match = re.fullmatch(r"(\d{1,9})-(\d{1,2})", digits)
        if match is None or int(match[2]) > 11:
            raise _invalid(shown)
        return sign * (int(match[1]) * 12 + int(match[2])), kind
    match = re.fullmatch("".join(_OF_FIELD[name] for name in names)[:-1], digits)
    if match is None or any(float(match[name]) >= (24 if name == "hour" else 60) for name in names[1:]):
        raise _invalid(shown)
    return sign * sum(int(Decimal(match[name]) * MICROS[name]) for name in names), kind


def _invalid(shown: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"[INVALID_INTERVAL_FORMAT] {shown} is no interval", expected="INTERVAL 1 DAY 2 HOURS"
    )


def text_of(amount: int, kind: str) -> str:
    """Returns an interval as Spark shows it: `INTERVAL '1 02' DAY TO HOUR`."""
    sign, rest, names = "-" if amount < 0 else "", abs(amount), fields_of(kind)
    if not is_day_time(kind):
        shown = f"{rest // 12}-{rest % 12}" if len(names) == 2 else str(rest // MONTHS[names[0]])
    else:
        shown = ""
        for place, name in enumerate(names):
            part, rest = divmod(rest, MICROS[name])
            shown += ("" if place == 0 else " " if names[place - 1] == "day" else ":") + (
                str(part) if name == "day" else f"{part:02d}"
            )
        if names[-1] == "second" and rest:
            shown += f".{rest:06d}".rstrip("0")
    return f"INTERVAL '{sign}{shown}' {kind.removeprefix('interval ').upper()}"
