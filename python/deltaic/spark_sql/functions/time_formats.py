"""Functions that format and parse dates and timestamps by a literal pattern of simple fields: date_format,
to_date, to_timestamp, from_unixtime, unix_timestamp. Source: Spark's DateTimeFormatterHelper."""

from __future__ import annotations

import re
from collections.abc import Container

from deltaic.spark_sql import values as v
from deltaic.spark_sql.casts import Zone, cast, or_fail
from deltaic.spark_sql.functions.registry import Build, constant_text, register
from deltaic.spark_sql.values import Value

_TOKENS = re.compile(r"([A-Za-z])\1*|'((?:[^']|'')*)'|[^A-Za-z']+")
# Letters of a pattern -> the same field in the format of DuckDB's strftime.
_SHOWN = {
    "yyyy": "%Y",
    "yy": "%y",
    "MM": "%m",
    "M": "%-m",
    "LL": "%m",
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
# Letters without an equivalent in strftime -> SQL of their text.
_COMPUTED = {
    "y": "CAST(CASE WHEN year({0}) < 1 THEN 1 - year({0}) ELSE year({0}) END AS VARCHAR)",
    "Q": "CAST(quarter({0}) AS VARCHAR)",
    "q": "CAST(quarter({0}) AS VARCHAR)",
}
_COLON, _PLAIN, _IF_ANY = "':' || printf('%02d', {0})", "printf('%02d', {0})", "CASE WHEN {0} = 0 THEN '' ELSE printf('%02d', {0}) END"
# Letters of an offset -> (text of UTC, SQL of the minutes).
_OFFSETS = {
    "X": ("'Z'", _IF_ANY),
    "XX": ("'Z'", _PLAIN),
    "XXX": ("'Z'", _COLON),
    "x": ("'+00'", _IF_ANY),
    "xx": ("'+0000'", _PLAIN),
    "xxx": ("'+00:00'", _COLON),
    "Z": ("'+0000'", _PLAIN),
    "O": ("'GMT'", "CASE WHEN {0} = 0 THEN '' ELSE ':' || printf('%02d', {0}) END"),
}
_MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december")
# Letters -> (field, regular expression) for parsing. A fraction may have fewer digits than letters, as in
# Spark.
_READ = {
    "yyyy": ("year", "[0-9]{4}"),
    "yy": ("year_of_century", "[0-9]{2}"),
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
    "MMM": ("month_name", "|".join(month[:3] for month in _MONTHS)),
    "MMMM": ("month_name", "|".join(_MONTHS)),
    "hh": ("half_day_hour", "0[1-9]|1[0-2]"),
    "h": ("half_day_hour", "0?[1-9]|1[0-2]"),
    "a": ("half_day", "am|pm"),
    "SSS": ("fraction", "[0-9]{1,3}"),
    "SSSSSS": ("fraction", "[0-9]{1,6}"),
    "X": ("offset", "z|[+-][0-9]{2}(?:[0-5][0-9])?"),
    "XX": ("offset", "z|[+-][0-9]{2}[0-5][0-9]"),
    "XXX": ("offset", "z|[+-][0-9]{2}:[0-5][0-9]"),
    "Z": ("offset", "[+-][0-9]{2}[0-5][0-9]"),
}
_TWICE = ({"month", "month_name"}, {"hour", "half_day_hour"}, {"year", "year_of_century"})
"""Pairs of fields with the same meaning: a pattern has at most one field of each pair."""
_MAX_OFFSET = 18 * 60
"""Maximum offset from UTC in minutes, as in Java; a text with a larger offset does not match its pattern."""
_DEFAULTS = {"year": 1970, "month": 1, "day": 1, "hour": 0, "minute": 0, "second": 0}


def _tokens(pattern: str, known: Container[str]) -> list[tuple[str, bool]]:
    """Returns (text, is_field) of each part of a pattern: `yyyy` is a field, `-` is literal text. Raises
    UnsupportedFeatureError for a field that is not in `known`."""
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


def _formatted(instant: str, pattern: str, zone: Zone) -> str:
    """Returns SQL that formats a timestamp by a pattern. DuckDB's %Y equals Java's yyyy for the years 1 to
    9999 only."""
    clock = zone.local(instant)
    names = {"VV": zone.name, **({"z": "UTC", "zzzz": "Coordinated Universal Time"} if zone.name == "UTC" else {})}
    tokens = _tokens(pattern, {*_SHOWN, *_COMPUTED, *_OFFSETS, *names})
    computed = [_COMPUTED[text].format(clock) if field and text in _COMPUTED else "" for text, field in tokens]
    for place, (text, field) in enumerate(tokens):
        if field and text in names:
            computed[place] = v.text(names[text])
        elif field and text in _OFFSETS:
            computed[place] = _offset(clock, instant, text)
    shown = [sql or f"strftime({clock}, {v.text(_strftime(*token))})" for sql, token in zip(computed, tokens, strict=True)]
    whole = v.text("".join(_strftime(*token) for token in tokens))
    near = " || ".join(shown) if any(computed) else f"strftime({clock}, {whole})"
    if ("yy", True) in tokens:
        failed = v.failure("UNSUPPORTED_DATETIME", "'a year outside 1 to 9999 by the pattern yy'")
        far = f"CASE WHEN {clock} IS NOT NULL THEN {failed} END"
    else:
        year = f"deltaic_year_text(year({clock}))"
        far = " || ".join(year if token == ("yyyy", True) else sql for token, sql in zip(tokens, shown, strict=True))
    return f"(CASE WHEN year({clock}) BETWEEN 1 AND 9999 THEN {near} ELSE {far} END)"


def _offset(clock: str, instant: str, letters: str) -> str:
    """SQL of the distance of a clock from UTC."""
    (none, minutes), seconds = _OFFSETS[letters], "deltaic_offset"
    sign = f"CASE WHEN {seconds} < 0 THEN '-' ELSE '+' END"
    hour = f"abs({seconds}) // 3600" if letters == "O" else f"printf('%02d', abs({seconds}) // 3600)"
    minute = f"abs({seconds}) // 60 % 60"
    shown = f"{'' if letters != 'O' else none + ' || '}{sign} || {hour} || {minutes.format(minute)}"
    text = f"CASE WHEN {seconds} = 0 THEN {none} ELSE {shown} END"
    return f"list_extract(list_transform([(epoch_us({clock}) - epoch_us({instant})) // 1000000], lambda {seconds}: {text}), 1)"


def _strftime(text: str, field: bool) -> str:
    return _SHOWN.get(text, "") if field else text.replace("%", "%%")


def _date_format(arguments: list[Value], zone: Zone) -> Value:
    value, pattern = arguments[0], constant_text(arguments[1], "a pattern of date_format")
    return value.like(_formatted(value.sql, pattern, zone), "string", raises=value.raises or "yy" in pattern)


def _from_unixtime(arguments: list[Value], zone: Zone) -> Value:
    pattern = constant_text(arguments[1], "a pattern of from_unixtime") if len(arguments) > 1 else "yyyy-MM-dd HH:mm:ss"
    moment = cast(arguments[0], "timestamp", zone)
    return moment.like(_formatted(moment.sql, pattern, zone), "string", raises=True)


def _fields(tokens: list[tuple[str, bool]], pattern: str) -> tuple[str, list[str]]:
    """Returns the regular expression of a pattern, and the field of each of its groups. Letters match in any
    case, as in Spark. A fraction must follow a literal character: in `yyyyMMddHHmmssSSS`, Spark takes more
    than four digits for `yyyy`."""
    regex, fields, before = "(?i)", list[str](), ""
    for text, field in tokens:
        name, digits = _READ[text] if field else ("", "")
        if name in fields or (name == "fraction" and before) or (before == "fraction" and name not in ("", "offset", "half_day")):
            raise v.unsupported(f"the pattern {pattern!r}")
        before = name
        if field:
            regex += f"({digits})"
            fields.append(name)
        else:
            regex += text if text.isspace() else re.escape(text).replace("/", "\\/")
    known = set(fields)
    if ("fraction" in known and "second" not in known) or ("half_day" in known and "half_day_hour" not in known):
        raise v.unsupported(f"the pattern {pattern!r}")
    if any(both <= known for both in _TWICE):
        raise v.unsupported(f"the pattern {pattern!r}")
    return regex, fields


def _read(value: Value, pattern: str, *, safe: bool = False) -> Value:
    """Returns text parsed by a pattern: a local timestamp, or an instant if the pattern has an offset. Text
    that does not match the pattern raises an error, or gives null with `safe`."""
    regex, fields = _fields(_tokens(pattern, _READ), pattern)
    part = {name: f"regexp_extract({value.sql}, {v.text(regex)}, {index})" for index, name in enumerate(fields, 1)}
    get = {name: f"TRY_CAST({part[name]} AS BIGINT)" if name in part else str(default) for name, default in _DEFAULTS.items()}
    if "month_name" in part:
        starts = "".join(month[:3] for month in _MONTHS)
        get["month"] = f"((strpos('{starts}', lower(left({part['month_name']}, 3))) + 2) // 3)"
    if "year_of_century" in part:
        get["year"] = f"(2000 + TRY_CAST({part['year_of_century']} AS BIGINT))"
    if "half_day_hour" in part:
        noon = f"CASE WHEN lower({part['half_day']}) = 'pm' THEN 12 ELSE 0 END" if "half_day" in part else "0"
        get["hour"] = f"(TRY_CAST({part['half_day_hour']} AS BIGINT) % 12 + {noon})"
    moment = f"make_timestamp({get['year']}, {get['month']}, {get['day']}, {get['hour']}, {get['minute']}, CAST({get['second']} AS DOUBLE))"
    if "fraction" in part:
        moment += f" + to_microseconds(TRY_CAST(rpad({part['fraction']}, 6, '0') AS BIGINT))"
    valid = f"{get['hour']} < 24 AND {get['second']} < 60"
    kind = "timestamp_ntz"
    if offset := part.get("offset"):
        kind = "timestamp"
        rest = f"CASE WHEN length({offset}) > 3 THEN TRY_CAST(right({offset}, 2) AS BIGINT) ELSE 0 END"
        minutes = f"(TRY_CAST(substr({offset}, 2, 2) AS BIGINT) * 60 + {rest})"
        east = f"(CASE left({offset}, 1) WHEN '-' THEN -{minutes} WHEN '+' THEN {minutes} ELSE 0 END)"
        valid += f" AND abs({east}) <= {_MAX_OFFSET}"
        moment = f"make_timestamptz(epoch_us({moment}) - {east} * 60000000)"
    attempt = f"CASE WHEN regexp_full_match({value.sql}, {v.text(regex)}) THEN try(CASE WHEN {valid} THEN {moment} END) END"
    if safe:
        return value.like(f"CAST({attempt} AS {v.duckdb_type(kind)})", kind, nullable=True)
    error = v.failure("CANNOT_PARSE_TIMESTAMP", f"'Text ''' || {value.sql} || ''' could not be parsed'")
    return or_fail(attempt, value, error, kind)


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
    """Builds to_date, to_timestamp and the like: parses text by a pattern, or as a cast does if there is no
    pattern."""

    def build(arguments: list[Value], zone: Zone) -> Value:
        if len(arguments) == 1:
            return cast(arguments[0], kind, zone, safe=safe and arguments[0].type == "string")
        pattern = constant_text(arguments[1], "a pattern")
        read = _read(arguments[0], pattern, safe=safe)
        if (kind, read.type) == ("timestamp_ntz", "timestamp"):
            raise v.unsupported(f"the pattern {pattern!r} for a timestamp without a zone")
        return cast(read, kind, zone)

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
