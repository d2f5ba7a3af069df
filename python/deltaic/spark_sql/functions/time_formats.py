"""Dates and timestamps by a pattern: date_format, to_date, to_timestamp, from_unixtime, unix_timestamp with a literal pattern of simple
fields."""

from __future__ import annotations

import re

from deltaic.spark_sql import values as v
from deltaic.spark_sql.casts import Zone, cast, or_fail
from deltaic.spark_sql.functions.registry import Build, constant_text, register
from deltaic.spark_sql.values import Value

_TOKENS = re.compile(r"([A-Za-z])\1*|'((?:[^']|'')*)'|[^A-Za-z']+")
# Letters of a pattern -> the engine's strftime.
_SHOWN = {
    "yyyy": "%Y",
    "yy": "%y",
    "MM": "%m",
    "M": "%-m",
    "MMM": "%b",
    "MMMM": "%B",
    "dd": "%d",
    "d": "%-d",
    "HH": "%H",
    "H": "%-H",
    "hh": "%I",
    "h": "%-I",
    "mm": "%M",
    "m": "%-M",
    "ss": "%S",
    "s": "%-S",
    "SSS": "%g",
    "SSSSSS": "%f",
    "a": "%p",
    "E": "%a",
    "EEE": "%a",
    "EEEE": "%A",
    "D": "%-j",
    "DDD": "%j",
}
# Letters -> (field, digits) for reading.
_READ = {
    "yyyy": ("year", "[0-9]{4}"),
    "MM": ("month", "[0-9]{2}"),
    "M": ("month", "[0-9]{1,2}"),
    "dd": ("day", "[0-9]{2}"),
    "d": ("day", "[0-9]{1,2}"),
    "HH": ("hour", "[0-9]{2}"),
    "H": ("hour", "[0-9]{1,2}"),
    "mm": ("minute", "[0-9]{2}"),
    "m": ("minute", "[0-9]{1,2}"),
    "ss": ("second", "[0-9]{2}"),
    "s": ("second", "[0-9]{1,2}"),
    "SSS": ("fraction", "[0-9]{3}"),
    "SSSSSS": ("fraction", "[0-9]{6}"),
}
_DEFAULTS = {"year": 1970, "month": 1, "day": 1, "hour": 0, "minute": 0, "second": 0}


def _tokens(pattern: str, known: dict[str, str] | dict[str, tuple[str, str]]) -> list[tuple[str, bool]]:
    """(letters or literal text, is it letters); UnsupportedFeatureError for a pattern with other fields."""
    found, end = [], 0
    for match in _TOKENS.finditer(pattern):
        if match.start() != end:
            break
        end = match.end()
        text = match.group()
        if match[1]:
            if text not in known:
                raise v.unsupported(f"the pattern {pattern!r}")
            found.append((text, True))
        else:
            if any(character in "[]{}#" for character in text) and match[2] is None:
                raise v.unsupported(f"the pattern {pattern!r}")
            found.append((match[2].replace("''", "'") or "'" if match[2] is not None else text, False))
    if end != len(pattern) or not pattern:
        raise v.unsupported(f"the pattern {pattern!r}")
    return found


def _formatted(clock: str, pattern: str) -> str:
    """SQL of the text of a local timestamp. The engine's %Y is Java's yyyy in the years 1 to 9999 only."""
    tokens = _tokens(pattern, _SHOWN)
    strftime = "".join(_strftime(*token) for token in tokens)
    parts = [
        f"deltaic_year_text(year({clock}))" if token == ("yyyy", True) else f"strftime({clock}, {v.text(_strftime(*token))})"
        for token in tokens
    ]
    if ("yy", True) in tokens:
        failed = v.failure("UNSUPPORTED_DATETIME", "'a year outside 1 to 9999 by the pattern yy'")
        parts = [f"CASE WHEN {clock} IS NOT NULL THEN {failed} END"]
    return f"(CASE WHEN year({clock}) BETWEEN 1 AND 9999 THEN strftime({clock}, {v.text(strftime)}) ELSE {' || '.join(parts)} END)"


def _strftime(text: str, field: bool) -> str:
    return _SHOWN[text] if field else text.replace("%", "%%")


def _date_format(arguments: list[Value], zone: Zone) -> Value:
    value, pattern = arguments[0], constant_text(arguments[1], "a pattern of date_format")
    return value.like(_formatted(zone.local(value.sql), pattern), "string", raises=value.raises or "yy" in pattern)


def _from_unixtime(arguments: list[Value], zone: Zone) -> Value:
    pattern = constant_text(arguments[1], "a pattern of from_unixtime") if len(arguments) > 1 else "yyyy-MM-dd HH:mm:ss"
    moment = cast(arguments[0], "timestamp", zone)
    return moment.like(_formatted(zone.local(moment.sql), pattern), "string", raises=True)


def _read(value: Value, pattern: str, *, safe: bool = False) -> Value:
    """Text as a local timestamp, an error (`safe`: null) where it does not follow the pattern."""
    regex, fields = "", []
    for text, field in _tokens(pattern, _READ):
        if not field:
            regex += re.escape(text).replace("/", "\\/") if not text.isspace() else text
            continue
        name, digits = _READ[text]
        if name in fields:
            raise v.unsupported(f"the pattern {pattern!r}")
        regex += f"({digits})"
        fields.append(name)
    if "fraction" in fields and "second" not in fields:
        raise v.unsupported(f"the pattern {pattern!r}")
    part = {name: f"TRY_CAST(regexp_extract({value.sql}, {v.text(regex)}, {index}) AS BIGINT)" for index, name in enumerate(fields, 1)}
    get = {name: part.get(name, str(default)) for name, default in _DEFAULTS.items()}
    moment = f"make_timestamp({get['year']}, {get['month']}, {get['day']}, {get['hour']}, {get['minute']}, CAST({get['second']} AS DOUBLE))"
    if "fraction" in part:
        unit = 1000 if "SSSSSS" not in pattern else 1
        moment += f" + to_microseconds({part['fraction']} * {unit})"
    valid = f"{get['hour']} < 24 AND {get['second']} < 60"
    attempt = f"CASE WHEN regexp_full_match({value.sql}, {v.text(regex)}) THEN try(CASE WHEN {valid} THEN {moment} END) END"
    if safe:
        return value.like(f"CAST({attempt} AS TIMESTAMP)", "timestamp_ntz", nullable=True)
    error = v.failure("CANNOT_PARSE_TIMESTAMP", f"'Text ''' || {value.sql} || ''' could not be parsed'")
    return or_fail(attempt, value, error, "timestamp_ntz")


def _to_date(arguments: list[Value], zone: Zone) -> Value:
    read = _read(arguments[0], constant_text(arguments[1], "a pattern of to_date"))
    return cast(read, "date", zone)


def _to_timestamp(arguments: list[Value], zone: Zone) -> Value:
    read = _read(arguments[0], constant_text(arguments[1], "a pattern of to_timestamp"))
    return cast(read, "timestamp", zone)


def _unix_timestamp(arguments: list[Value], zone: Zone) -> Value:
    pattern = constant_text(arguments[1], "a pattern of unix_timestamp") if len(arguments) > 1 else "yyyy-MM-dd HH:mm:ss"
    moment = cast(_read(arguments[0], pattern), "timestamp", zone)
    return moment.like(f"(epoch_us({moment.sql}) // 1000000)", "long")


def _as_timestamp(arguments: list[Value], zone: Zone) -> list[Value]:
    return [cast(arguments[0], "timestamp", zone), arguments[1]]


register("date_format", "timestamp, string", "string", _date_format)
for _kind in v.TEMPORAL:
    register(
        "to_char to_varchar", f"={_kind}, string", "string", lambda arguments, zone: _date_format(_as_timestamp(arguments, zone), zone)
    )
register("from_unixtime", "long", "string", _from_unixtime)
register("from_unixtime", "long, string", "string", _from_unixtime)
register("to_date", "any", "date", lambda arguments, zone: cast(arguments[0], "date", zone))
register("to_date", "=string, string", "date", _to_date)
register("to_timestamp", "any", "timestamp", lambda arguments, zone: cast(arguments[0], "timestamp", zone))
register("to_timestamp", "=string, string", "timestamp", _to_timestamp)


def _read_as(kind: str, *, safe: bool) -> Build:
    """Text as a date or timestamp: by a pattern, or without one as a cast reads it."""

    def build(arguments: list[Value], zone: Zone) -> Value:
        if len(arguments) == 1:
            return cast(arguments[0], kind, zone, safe=safe and arguments[0].type == "string")
        return cast(_read(arguments[0], constant_text(arguments[1], "a pattern"), safe=safe), kind, zone)

    return build


for _name, _kind, _safe in (
    ("to_timestamp_ltz", "timestamp", False),
    ("to_timestamp_ntz", "timestamp_ntz", False),
    ("try_to_timestamp", "timestamp", True),
    ("try_to_date", "date", True),
):
    register(_name, "any", _kind, _read_as(_kind, safe=_safe))
    register(_name, "=string, string", _kind, _read_as(_kind, safe=_safe))
register("unix_timestamp to_unix_timestamp", "=string", "long", _unix_timestamp)
register("unix_timestamp to_unix_timestamp", "=string, =string", "long", _unix_timestamp)
