"""Parsers of table property values: booleans, whole numbers, sizes, durations, column lists."""

from __future__ import annotations

import re
from datetime import timedelta

from deltaic.errors import InvalidArgumentError

_UNITS = {
    "week": timedelta(weeks=1),
    "day": timedelta(days=1),
    "hour": timedelta(hours=1),
    "minute": timedelta(minutes=1),
    "second": timedelta(seconds=1),
    "millisecond": timedelta(milliseconds=1),
    "microsecond": timedelta(microseconds=1),
}
_DURATION_PART = re.compile(r"\s*([+-]?)\s*(\d{1,15})\s*([a-z]+)(?!\S)")
_SIZE = re.compile(r"(\d{1,18})\s*(b|k|kb|kib|m|mb|mib|g|gb|gib|t|tb|tib)?", re.IGNORECASE)
_POWERS = {"b": 0, "k": 1, "m": 2, "g": 3, "t": 4}
INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1


def parse_boolean(text: str) -> bool:
    """Parses 'true' or 'false', in any case."""
    lowered = text.strip().lower()
    if lowered not in ("true", "false"):
        raise InvalidArgumentError("not a boolean", found=repr(text), expected="'true' or 'false'")
    return lowered == "true"


def parse_integer(text: str, minimum: int, maximum: int = INT32_MAX) -> int:
    """Parses a whole number from `minimum` to `maximum`, both inclusive."""
    if not re.fullmatch(r"[+-]?[0-9]{1,19}", text.strip()) or not minimum <= int(text) <= maximum:
        raise InvalidArgumentError(
            "not a valid whole number", found=repr(text), expected=f"{minimum} to {maximum}"
        )
    return int(text)


def parse_size(text: str) -> int:
    """Parses a size and returns its bytes: '134217728', '128mb', '1 GiB'. Units are powers of 1024, as in
    Spark."""
    match = _SIZE.fullmatch(text.strip())
    value = int(match[1]) * 1024 ** _POWERS[(match[2] or "b")[0].lower()] if match else 0
    if not 0 < value <= INT64_MAX:
        raise InvalidArgumentError(
            "not a size", found=repr(text), expected="bytes, or a number with kb, mb, gb, tb"
        )
    return value


def parse_duration(text: str) -> timedelta:
    """Parses Spark's day-time intervals: 'interval 7 days', '1 week 2 hours', '1 day -1 hour'. Months and
    years are refused, as they have no fixed length, and so is a duration that is negative in total."""
    if not text.strip():
        raise InvalidArgumentError(
            "a duration is empty", expected="weeks to seconds, as in 'interval 7 days'"
        )
    rest = re.sub(r"^interval\b", "", text.strip().lower())
    total = timedelta()
    position = 0
    while match := _DURATION_PART.match(rest, position):
        unit = match[3].removesuffix("s")
        if unit in ("month", "year"):
            raise InvalidArgumentError(
                "not a fixed duration", found=repr(text), expected="weeks to seconds, as in 'interval 7 days'"
            )
        if unit not in _UNITS:
            break
        try:
            total += int(match[1] + match[2]) * _UNITS[unit]
        except OverflowError:
            break
        position = match.end()
    if position == 0 or rest[position:].strip():
        raise InvalidArgumentError(
            "not a duration", found=repr(text), expected="weeks to seconds, as in 'interval 7 days'"
        )
    if total < timedelta():
        raise InvalidArgumentError("a duration is not negative", found=repr(text))
    return total


def format_duration(value: timedelta) -> str:
    """Writes a duration so that `parse_duration` returns it: 'interval 1 days 2 hours'."""
    if value < timedelta():
        raise InvalidArgumentError("a duration is not negative", found=str(value))
    hours, seconds = divmod(value.seconds, 3600)
    minutes, seconds = divmod(seconds, 60)
    milliseconds, microseconds = divmod(value.microseconds, 1000)
    parts = {
        "days": value.days,
        "hours": hours,
        "minutes": minutes,
        "seconds": seconds,
        "milliseconds": milliseconds,
        "microseconds": microseconds,
    }
    return "interval " + (" ".join(f"{count} {unit}" for unit, count in parts.items() if count) or "0 days")


def parse_columns(text: str) -> tuple[str, ...]:
    """Parses column paths divided by commas; a blank text has none. A name in backticks may contain commas
    and dots."""
    if not text.strip():
        return ()
    parts = re.findall(r"\s*((?:`(?:[^`]|``)+`|[^`,])+)\s*(?:,|$)", text)
    if not parts or ",".join(parts).replace(" ", "") != text.replace(" ", ""):
        raise InvalidArgumentError(
            "not a list of columns", found=repr(text), expected="names divided by commas"
        )
    return tuple(part.strip() for part in parts)
