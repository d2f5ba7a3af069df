"""Functions that format and parse dates and timestamps by a literal pattern of simple fields: date_format,
to_date, to_timestamp, from_unixtime, unix_timestamp. Source: Spark's DateTimeFormatterHelper."""

from __future__ import annotations

import re
from collections.abc import Container

from deltaic.errors import InvalidArgumentError
from deltaic.spark_sql import values as v
from deltaic.spark_sql.casts import Zone, cast, literal, or_fail
from deltaic.spark_sql.functions.registry import Build, constant_text, register
from deltaic.spark_sql.functions.zone_names import zone_names
from deltaic.spark_sql.values import Value

_TOKENS = re.compile(r"([A-Za-z])\1*|'((?:[^']|'')*)'|[\[\]]|[^A-Za-z'\[\]]+")
# Letters of a pattern -> the same field in the format of DuckDB's strftime.
_SHOWN = {
    "yyyy": "%Y",
    "yy": "%y",
    "MM": "%m",
    "M": "%-m",
    "L": "%-m",
    "LL": "%m",
    **dict.fromkeys(("MMM", "LLL"), "%b"),
    **dict.fromkeys(("MMMM", "LLLL"), "%B"),
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
    **dict.fromkeys(("E", "EE", "EEE"), "%a"),
    "EEEE": "%A",
    "D": "%-j",
    "DDD": "%j",
}
# Letters without an equivalent in strftime -> SQL of their text.
_COMPUTED = {
    "y": "CAST(CASE WHEN year({0}) < 1 THEN 1 - year({0}) ELSE year({0}) END AS VARCHAR)",
    **dict.fromkeys(("Q", "q"), "CAST(quarter({0}) AS VARCHAR)"),
    **dict.fromkeys(("QQ", "qq"), "'0' || CAST(quarter({0}) AS VARCHAR)"),
    **dict.fromkeys(("QQQ", "qqq"), "'Q' || CAST(quarter({0}) AS VARCHAR)"),
    **dict.fromkeys(("QQQQ", "qqqq"), "['1st', '2nd', '3rd', '4th'][quarter({0})] || ' quarter'"),
    "DD": "printf('%02d', dayofyear({0}))",
    "F": "CAST((day({0}) - 1) % 7 + 1 AS VARCHAR)",
    "k": "CAST((hour({0}) + 23) % 24 + 1 AS VARCHAR)",
    "kk": "printf('%02d', (hour({0}) + 23) % 24 + 1)",
    "K": "CAST(hour({0}) % 12 AS VARCHAR)",
    "KK": "printf('%02d', hour({0}) % 12)",
    **{"S" * digits: f"left(strftime({{0}}, '%f') || '000', {digits})" for digits in (1, 2, 4, 5, 7, 8, 9)},
    **dict.fromkeys(("G", "GG", "GGG"), "'AD'"),
    "GGGG": "'Anno Domini'",
}
_OF_OUR_ERA = frozenset(("yy", "G", "GG", "GGG", "GGGG"))
"""Letters that are formatted for the years 1 to 9999 only."""
_COLON, _PLAIN, _IF_ANY = (
    "':' || printf('%02d', {0})",
    "printf('%02d', {0})",
    "CASE WHEN {0} = 0 THEN '' ELSE printf('%02d', {0}) END",
)
_SECONDS = "CASE WHEN deltaic_offset % 60 = 0 THEN '' ELSE {} || printf('%02d', abs(deltaic_offset) % 60) END"
# Letters of an offset -> (text of UTC, SQL of the minutes).
_OFFSETS = {
    "X": ("'Z'", _IF_ANY),
    "XX": ("'Z'", _PLAIN),
    "XXX": ("'Z'", _COLON),
    "XXXX": ("'Z'", f"{_PLAIN} || {_SECONDS.format(v.text(''))}"),
    "XXXXX": ("'Z'", f"{_COLON} || {_SECONDS.format(v.text(':'))}"),
    "x": ("'+00'", _IF_ANY),
    "xx": ("'+0000'", _PLAIN),
    "xxx": ("'+00:00'", _COLON),
    "xxxx": ("'+0000'", f"{_PLAIN} || {_SECONDS.format(v.text(''))}"),
    "xxxxx": ("'+00:00'", f"{_COLON} || {_SECONDS.format(v.text(':'))}"),
    **dict.fromkeys(("Z", "ZZ", "ZZZ"), ("'+0000'", _PLAIN)),
    **dict.fromkeys(("OOOO", "ZZZZ"), ("'GMT'", _COLON)),
    "O": ("'GMT'", "CASE WHEN {0} = 0 THEN '' ELSE ':' || printf('%02d', {0}) END"),
}
_MONTHS = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
# Letters -> (field, regular expression) for parsing. A fraction may have fewer digits than letters, as in
# Spark.
_READ = {
    "yyyy": ("year", "[0-9]{4}"),
    "yy": ("year_of_century", "[0-9]{2}"),
    "y": ("year", "-?[0-9]{1,6}"),
    **dict.fromkeys(("MM", "LL"), ("month", "[0-9]{2}")),
    **dict.fromkeys(("M", "L"), ("month", "[0-9]{1,2}")),
    "D": ("day_of_year", "[0-9]{1,3}"),
    "DDD": ("day_of_year", "[0-9]{3}"),
    "dd": ("day", "[0-9]{2}"),
    "d": ("day", "[0-9]{1,2}"),
    "HH": ("hour", "[0-9]{2}"),
    "H": ("hour", "[0-9]{1,2}"),
    "mm": ("minute", "[0-9]{2}"),
    "m": ("minute", "[0-9]{1,2}"),
    "ss": ("second", "[0-9]{2}"),
    "s": ("second", "[0-9]{1,2}"),
    **dict.fromkeys(("MMM", "LLL"), ("month_name", "|".join(month[:3] for month in _MONTHS))),
    **dict.fromkeys(("MMMM", "LLLL"), ("month_name", "|".join(_MONTHS))),
    "hh": ("half_day_hour", "0[1-9]|1[0-2]"),
    "h": ("half_day_hour", "0?[1-9]|1[0-2]"),
    "KK": ("half_day_hour", "0[0-9]|1[01]"),
    "K": ("half_day_hour", "0?[0-9]|1[01]"),
    "kk": ("clock_hour", "0[1-9]|1[0-9]|2[0-4]"),
    "k": ("clock_hour", "0?[1-9]|1[0-9]|2[0-4]"),
    "a": ("half_day", "am|pm"),
    **{"S" * digits: ("fraction", f"[0-9]{{1,{digits}}}") for digits in range(1, 10)},
    "[": ("", "(?:"),
    "]": ("", ")?"),
    "X": ("offset", "z|[+-][0-9]{2}(?:[0-5][0-9])?"),
    "XX": ("offset", "z|[+-][0-9]{2}[0-5][0-9]"),
    "XXX": ("offset", "z|[+-][0-9]{2}:[0-5][0-9]"),
    "Z": ("offset", "[+-][0-9]{2}[0-5][0-9]"),
}
_TWICE = (
    {"month", "month_name"},
    {"hour", "half_day_hour"},
    {"hour", "clock_hour"},
    {"half_day_hour", "clock_hour"},
    {"year", "year_of_century"},
    *({"day_of_year", field} for field in ("month", "month_name", "day", "year_of_century")),
)
"""Pairs of fields that say the same: a pattern has at most one field of each pair."""
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
        if match[1] or text in "[]":
            if text not in known:
                raise _refused(pattern, text[0])
            found.append((text, True))
        else:
            if any(character in "{}#" for character in text) and match[2] is None:
                raise v.unsupported(f"the pattern {pattern!r}")
            found.append((match[2].replace("''", "'") or "'" if match[2] is not None else text, False))
    brackets = "".join(text for text, is_field in found if is_field and text in "[]")
    while "[]" in brackets:
        brackets = brackets.replace("[]", "")
    if end != len(pattern) or not pattern or brackets:
        raise v.unsupported(f"the pattern {pattern!r}")
    return found


def _refused(pattern: str, letter: str) -> Exception:
    """Returns the error for a letter of a pattern that is not supported here, or in no pattern of Spark."""
    if letter in "ABNcnp":
        message = "[INVALID_DATETIME_PATTERN.ILLEGAL_CHARACTER] a letter that no pattern has"
        return InvalidArgumentError(message, where=repr(pattern), found=letter)
    return v.unsupported(f"the pattern {pattern!r}")


def _formatted(value: Value, pattern: str, zone: Zone) -> Value:
    """Returns a timestamp, formatted by a pattern. DuckDB's %Y equals Java's yyyy for the years 1 to 9999
    only."""
    instant = value.sql
    clock = zone.local(instant)
    names = {"VV": v.text(zone.name), **zone_names(zone, clock, instant)}
    tokens = _tokens(pattern, {*_SHOWN, *_COMPUTED, *_OFFSETS, *names, "[", "]"})
    # an optional part is always written
    tokens = [(text, field) for text, field in tokens if not (field and text in "[]")]
    computed = [
        _COMPUTED[text].format(clock) if field and text in _COMPUTED else "" for text, field in tokens
    ]
    for place, (text, field) in enumerate(tokens):
        if field and text in names:
            computed[place] = names[text]
        elif field and text in _OFFSETS:
            computed[place] = _offset(clock, instant, text)
    shown = [
        sql or f"strftime({clock}, {v.text(_strftime(*token))})"
        for sql, token in zip(computed, tokens, strict=True)
    ]
    whole = v.text("".join(_strftime(*token) for token in tokens))
    near = " || ".join(shown) if any(computed) else f"strftime({clock}, {whole})"
    is_of_our_era = any(field and text in _OF_OUR_ERA for text, field in tokens)
    if is_of_our_era:
        failed = v.failure("UNSUPPORTED_DATETIME", "'a year outside 1 to 9999 by a pattern with yy or G'")
        far = f"CASE WHEN {clock} IS NOT NULL THEN {failed} END"
    else:
        year = f"deltaic_year_text(year({clock}))"
        far = " || ".join(
            year if token == ("yyyy", True) else sql for token, sql in zip(tokens, shown, strict=True)
        )
    sql = f"(CASE WHEN year({clock}) BETWEEN 1 AND 9999 THEN {near} ELSE {far} END)"
    return value.like(sql, "string", raises=value.raises or is_of_our_era)


def _offset(clock: str, instant: str, letters: str) -> str:
    """SQL of the distance of a clock from UTC."""
    (none, minutes), seconds = _OFFSETS[letters], "deltaic_offset"
    sign = f"CASE WHEN {seconds} < 0 THEN '-' ELSE '+' END"
    hour = f"abs({seconds}) // 3600" if letters == "O" else f"printf('%02d', abs({seconds}) // 3600)"
    minute = f"abs({seconds}) // 60 % 60"
    prefix = f"{none} || " if none == "'GMT'" else ""
    shown = f"{prefix}{sign} || {hour} || {minutes.format(minute)}"
    text = f"CASE WHEN {seconds} = 0 THEN {none} ELSE {shown} END"
    return (
        f"list_extract(list_transform([(epoch_us({clock}) - epoch_us({instant})) // 1000000], lambda"
        f" {seconds}: {text}), 1)"
    )


def _strftime(text: str, field: bool) -> str:
    return _SHOWN.get(text, "") if field else text.replace("%", "%%")


def _is_null(pattern: Value) -> bool:
    return pattern.is_constant and pattern.constant is None


def _date_format(arguments: list[Value], zone: Zone) -> Value:
    if _is_null(arguments[1]):
        return literal(None, "string")
    value, pattern = arguments[0], constant_text(arguments[1], "a pattern of date_format")
    return _formatted(value, pattern, zone)


def _from_unixtime(arguments: list[Value], zone: Zone) -> Value:
    pattern = (
        constant_text(arguments[1], "a pattern of from_unixtime")
        if len(arguments) > 1
        else "yyyy-MM-dd HH:mm:ss"
    )
    moment = cast(arguments[0], "timestamp", zone)
    shown = _formatted(moment, pattern, zone)
    return shown.like(shown.sql, "string", raises=True)


def _fields(tokens: list[tuple[str, bool]], pattern: str) -> tuple[str, list[str]]:
    """Returns the regular expression of a pattern, and the field of each of its groups. Letters match in any
    case, as in Spark. A fraction must follow a literal character: in `yyyyMMddHHmmssSSS`, Spark takes more
    than four digits for `yyyy`."""
    regex, fields, before = "(?i)", list[str](), ""
    for text, field in tokens:
        name, digits = _READ[text] if field else ("", "")
        if field and text in "[]":
            regex += digits
            continue
        if (
            (name and name in fields)
            or (name == "fraction" and before)
            or (before == "fraction" and name not in ("", "offset", "half_day"))
        ):
            raise v.unsupported(f"the pattern {pattern!r}")
        if before == "signed_year" and name:
            raise v.unsupported(f"the pattern {pattern!r}")
        before = "signed_year" if text == "y" else name
        if field:
            regex += f"({digits})"
            fields.append(name)
        else:
            regex += text if text.isspace() else re.escape(text).replace("/", "\\/")
    known = set(fields)
    if ("fraction" in known and "second" not in known) or (
        "half_day" in known and "half_day_hour" not in known
    ):
        raise v.unsupported(f"the pattern {pattern!r}")
    if any(both <= known for both in _TWICE):
        raise v.unsupported(f"the pattern {pattern!r}")
    return regex, fields


def _read(value: Value, pattern: str, zone: Zone, *, safe: bool = False) -> Value:
    """Returns text parsed by a pattern: a local timestamp, or an instant if the pattern has an offset. Text
    that does not match the pattern raises an error, or gives null with `safe`."""
    if value.raises:
        return v.computed_once(value, lambda text: _read(text, pattern, zone, safe=safe))
    tokens = _tokens(pattern, _READ)
    regex, fields = _fields(tokens, pattern)
    optional = _optional(tokens)
    if optional & {"month_name", "year_of_century", "half_day_hour", "clock_hour", "day_of_year"}:
        raise v.unsupported(f"the pattern {pattern!r}")
    part = {
        name: f"regexp_extract({value.sql}, {v.text(regex)}, {index})" for index, name in enumerate(fields, 1)
    }
    get = {name: _number(part, name, default, name in optional) for name, default in _DEFAULTS.items()}
    if "month_name" in part:
        starts = "".join(month[:3] for month in _MONTHS)
        get["month"] = f"((strpos('{starts}', lower(left({part['month_name']}, 3))) + 2) // 3)"
    if "year_of_century" in part:
        get["year"] = f"(2000 + TRY_CAST({part['year_of_century']} AS BIGINT))"
    if "half_day_hour" in part:
        noon = f"CASE WHEN lower({part['half_day']}) = 'pm' THEN 12 ELSE 0 END" if "half_day" in part else "0"
        get["hour"] = f"(TRY_CAST({part['half_day_hour']} AS BIGINT) % 12 + {noon})"
    if "clock_hour" in part:
        get["hour"] = f"(TRY_CAST({part['clock_hour']} AS BIGINT) % 24)"
    moment = (
        f"make_timestamp({get['year']}, {get['month']}, {get['day']}, {get['hour']}, {get['minute']},"
        f" CAST({get['second']} AS DOUBLE))"
    )
    if "fraction" in part:
        moment += f" + to_microseconds(TRY_CAST(rpad({part['fraction']}, 6, '0') AS BIGINT))"
    valid = f"{get['hour']} < 24 AND {get['second']} < 60"
    if "day_of_year" in part:
        number = f"TRY_CAST({part['day_of_year']} AS BIGINT)"
        days = f"dayofyear(make_date({get['year']}, 12, 31))"
        moment, valid = (
            f"{moment} + to_days(CAST({number} - 1 AS INTEGER))",
            f"{valid} AND {number} BETWEEN 1 AND {days}",
        )
    kind = "timestamp_ntz"
    if offset := part.get("offset"):
        kind = "timestamp"
        rest = f"CASE WHEN length({offset}) > 3 THEN TRY_CAST(right({offset}, 2) AS BIGINT) ELSE 0 END"
        minutes = f"(TRY_CAST(substr({offset}, 2, 2) AS BIGINT) * 60 + {rest})"
        east = f"(CASE left({offset}, 1) WHEN '-' THEN -{minutes} WHEN '+' THEN {minutes} ELSE 0 END)"
        valid += f" AND abs({east}) <= {_MAX_OFFSET}"
        moved = f"make_timestamptz(epoch_us({moment}) - {east} * 60000000)"
        moment = (
            f"CASE WHEN {offset} = '' THEN {zone.instant(moment)} ELSE {moved} END"
            if "offset" in optional
            else moved
        )
    attempt = (
        f"CASE WHEN regexp_full_match({value.sql}, {v.text(regex)}) THEN try(CASE WHEN {valid} THEN {moment}"
        " END) END"
    )
    if safe:
        return value.like(f"CAST({attempt} AS {v.duckdb_type(kind)})", kind, nullable=True)
    error = v.failure("CANNOT_PARSE_TIMESTAMP", f"'Text ''' || {value.sql} || ''' could not be parsed'")
    return or_fail(attempt, value, error, kind)


def _optional(tokens: list[tuple[str, bool]]) -> set[str]:
    """Returns the fields inside the brackets of a pattern: of `yyyy[-MM]`, month."""
    depth, found = 0, set[str]()
    for text, is_field in tokens:
        depth += (text == "[") - (text == "]") if is_field else 0
        if is_field and depth:
            found.add(_READ[text][0])
    return found


def _number(part: dict[str, str], name: str, default: int, is_optional: bool) -> str:
    """Returns SQL of the number of a field, or its default if the pattern or the text does not have it."""
    if name not in part:
        return str(default)
    number = f"TRY_CAST({part[name]} AS BIGINT)"
    return f"coalesce({number}, {default})" if is_optional else number


def _to_date(arguments: list[Value], zone: Zone) -> Value:
    if _is_null(arguments[1]):
        return literal(None, "date")
    read = _read(arguments[0], constant_text(arguments[1], "a pattern of to_date"), zone)
    return cast(read, "date", zone)


def _to_timestamp(arguments: list[Value], zone: Zone) -> Value:
    if _is_null(arguments[1]):
        return literal(None, "timestamp")
    read = _read(arguments[0], constant_text(arguments[1], "a pattern of to_timestamp"), zone)
    return cast(read, "timestamp", zone)


def _unix_timestamp(arguments: list[Value], zone: Zone) -> Value:
    pattern = (
        constant_text(arguments[1], "a pattern of unix_timestamp")
        if len(arguments) > 1
        else "yyyy-MM-dd HH:mm:ss"
    )
    moment = cast(_read(arguments[0], pattern, zone), "timestamp", zone)
    return moment.like(f"(epoch_us({moment.sql}) // 1000000)", "long")


def _as_timestamp(arguments: list[Value], zone: Zone) -> list[Value]:
    return [cast(arguments[0], "timestamp", zone), arguments[1]]


register("date_format", "timestamp, string", "string", _date_format)
for _kind in v.TEMPORAL:
    register(
        "to_char to_varchar",
        f"={_kind}, string",
        "string",
        lambda arguments, zone: _date_format(_as_timestamp(arguments, zone), zone),
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
        read = _read(arguments[0], pattern, zone, safe=safe)
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
