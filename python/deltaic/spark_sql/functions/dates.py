"""SQL functions on dates and timestamps: date_add, date_trunc, unix_timestamp, ... The year, hour and other
fields of a timestamp are those of its local time in the session time zone."""

from __future__ import annotations

from collections.abc import Callable
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from deltaic.spark_sql import intervals
from deltaic.spark_sql import values as v
from deltaic.spark_sql.casts import Zone, cast, implicit, literal
from deltaic.spark_sql.functions.intervals import part_of
from deltaic.spark_sql.functions.registry import call, constant_text, form, register
from deltaic.spark_sql.values import Value

_DATE_FIELDS = {
    "year": "year({0})",
    "month": "month({0})",
    "day dayofmonth": "day({0})",
    "quarter": "quarter({0})",
    "dayofweek": "dayofweek({0}) + 1",
    "weekday": "isodow({0}) - 1",
    "dayofyear": "dayofyear({0})",
    "weekofyear": "weekofyear({0})",
}
_PARTS = {
    "year": ("y", "years", "yr", "yrs"),
    "quarter": ("qtr",),
    "month": ("mon", "mons", "months"),
    "weekofyear": ("week", "weeks", "w"),
    "day": ("d", "days"),
    "dayofweek": ("dow",),
    "dayofyear": ("doy",),
    "hour": ("h", "hours", "hr", "hrs"),
    "minute": ("m", "min", "mins", "minutes"),
    "second": ("s", "sec", "seconds", "secs"),
}
_DATE_UNITS = {
    "year": "year",
    "yyyy": "year",
    "yy": "year",
    "quarter": "quarter",
    "month": "month",
    "mm": "month",
    "mon": "month",
    "week": "week",
}
_TIME_UNITS = ("hour", "minute", "second", "millisecond", "microsecond")
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")

for _names, _sql in _DATE_FIELDS.items():
    form(_names, "date", "integer", _sql)
form("date_add", "date, integer", "date", "add({0}, {1})", raises=True)
form("dateadd", "date, integer", "date", "add({0}, {1})", raises=True)
form("date_sub", "date, integer", "date", "subtract({0}, {1})", raises=True)
form("datediff date_diff", "date, date", "integer", "subtract({0}, {1})", raises=True)
form("add_months", "date, integer", "date", "{0} + to_months({1})", raises=True)
form("last_day", "date", "date", "last_day({0})")
form("unix_date", "=date", "integer", "subtract({0}, DATE '1970-01-01')")
form("date_from_unix_date", "integer", "date", "add(DATE '1970-01-01', {0})", raises=True)
form("dayname", "date", "string", "left(dayname({0}), 3)")
form("monthname", "date", "string", "left(monthname({0}), 3)")
form("make_date", "integer, integer, integer", "date", "deltaic_make_date({0}, {1}, {2})", raises=True)
form("unix_seconds", "=timestamp", "long", "deltaic_floor(epoch_us({0}), 1000000)")
form("unix_millis", "=timestamp", "long", "deltaic_floor(epoch_us({0}), 1000)")
form("unix_micros", "=timestamp", "long", "epoch_us({0})")
form("timestamp_micros", "integral", "timestamp", "make_timestamptz(CAST({0} AS BIGINT))", raises=True)
form(
    "timestamp_millis",
    "integral",
    "timestamp",
    "make_timestamptz(multiply(CAST({0} AS BIGINT), CAST(1000 AS BIGINT)))",
    raises=True,
)


def local(value: Value, zone: Zone) -> str:
    """Returns SQL of the local time of a `timestamp` or `timestamp_ntz`."""
    return zone.local(value.sql) if value.type == "timestamp" else value.sql


def _clock(sql: str, result: str = "integer") -> Callable[[list[Value], Zone], Value]:
    def build(arguments: list[Value], zone: Zone) -> Value:
        return arguments[0].like(
            f"CAST({sql.format(local(arguments[0], zone))} AS {v.duckdb_type(result)})", result
        )

    return build


for _name, _sql in {"hour": "hour({0})", "minute": "minute({0})", "second": "second({0})"}.items():
    register(_name, "timestamp", "integer", _clock(_sql))
    register(_name, "timestamp_ntz", "integer", _clock(_sql))


def _part(arguments: list[Value], zone: Zone) -> Value:
    """Builds extract(unit FROM x) and date_part(unit, x)."""
    if arguments[0].is_constant and arguments[0].constant is None:
        return literal(None, "double")
    unit, value = constant_text(arguments[0], "a unit").lower(), arguments[1]
    unit = next((name for name, others in _PARTS.items() if unit == name or unit in others), unit)
    if v.is_interval(value.type):
        return part_of(unit, value)
    if unit in _PARTS and unit != "second":
        return call(unit, [value], zone)
    day = implicit(value, "date", zone, f"extracting {unit}")
    if unit in ("dayofweek_iso", "dow_iso"):
        return day.like(f"CAST(isodow({day.sql}) AS INTEGER)", "integer")
    if unit == "yearofweek":
        return day.like(f"CAST(isoyear({day.sql}) AS INTEGER)", "integer")
    if unit == "second":
        if value.type != "timestamp_ntz":
            value = implicit(value, "timestamp", zone, f"extracting {unit}")
        clock = local(value, zone)
        micros = f"CAST(extract(microseconds FROM {clock}) AS DECIMAL(19, 0))"
        return value.like(
            f"CAST(multiply({micros}, CAST(0.000001 AS DECIMAL(6, 6))) AS DECIMAL(8, 6))", "decimal(8,6)"
        )
    raise v.unsupported(f"extracting {unit}", value.type)


def _trunc(arguments: list[Value], zone: Zone) -> Value:
    unit = constant_text(arguments[1], "the unit of trunc").lower()
    if unit not in _DATE_UNITS:
        return arguments[0].like("CAST(NULL AS DATE)", "date", nullable=True)
    return arguments[0].like(f"CAST(date_trunc('{_DATE_UNITS[unit]}', {arguments[0].sql}) AS DATE)", "date")


def _date_trunc(arguments: list[Value], zone: Zone) -> Value:
    unit, value = constant_text(arguments[0], "the unit of date_trunc").lower(), arguments[1]
    unit = _DATE_UNITS.get(unit, "day" if unit == "dd" else unit)
    if unit not in (*_DATE_UNITS.values(), "day", *_TIME_UNITS):
        return value.like("CAST(NULL AS TIMESTAMP WITH TIME ZONE)", "timestamp", nullable=True)
    if unit in ("second", "millisecond", "microsecond"):
        size = {"second": 1_000_000, "millisecond": 1000, "microsecond": 1}[unit]
        return value.like(
            f"make_timestamptz(deltaic_floor(epoch_us({value.sql}), {size}) * {size})", "timestamp"
        )
    clock = f"date_trunc('{unit}', {zone.local(value.sql)})"
    if unit in ("hour", "minute"):
        return intervals.moved(value, clock, [], zone)
    return value.like(zone.instant(clock), "timestamp")


def _next_day(arguments: list[Value], zone: Zone) -> Value:
    """Builds next_day: the first day after a date that is the given weekday."""
    name = constant_text(arguments[1], "the weekday of next_day").lower()
    found = [number for number, day in enumerate(_WEEKDAYS, 1) if name in (day, day[:3], day[:2])]
    if not found:
        raise v.unsupported(f"next_day with the weekday {name!r}")
    sql = arguments[0].sql
    return arguments[0].like(
        f"CAST(add({sql}, CAST((({found[0] - 1} - isodow({sql}) + 7) % 7) + 1 AS INTEGER)) AS DATE)", "date"
    )


def _months_between(arguments: list[Value], zone: Zone) -> Value:
    named = any(
        side.raises for side in arguments[:2]
    )  # the SQL of a cast from text is long: bound to a name, it is written once instead of ten times
    sides = []
    for side, name in zip(arguments[:2], ("a", "b"), strict=True):
        instant = f"deltaic_sides.{name}" if named else side.sql
        clock = zone.local(instant)
        midnight = zone.instant(f"date_trunc('day', {clock})")
        sides += [clock, f"((epoch_us({instant}) - epoch_us({midnight})) // 1000000)"]
    sql = f"deltaic_months_apart({', '.join(sides)})"
    if len(arguments) == 2:
        sql = f"deltaic_eight_digits({sql})"
    elif arguments[2].constant is not False:
        sql = (
            f"CASE WHEN {arguments[2].sql} THEN deltaic_eight_digits({sql}) WHEN NOT {arguments[2].sql} THEN"
            f" {sql} END"
        )
    if named:
        pair = f"struct_pack(a := {arguments[0].sql}, b := {arguments[1].sql})"
        sql = f"list_extract(list_transform([{pair}], lambda deltaic_sides: {sql}), 1)"
    return v.combine(f"({sql})", "double", arguments)


def _zone_name(value: Value) -> str:
    text = constant_text(value, "a time zone")
    try:
        ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise v.unsupported(f"the time zone {text!r}") from None
    return text


def _to_utc(arguments: list[Value], zone: Zone) -> Value:
    other = Zone(_zone_name(arguments[1]))
    return arguments[0].like(other.instant(f"deltaic_utc_local({arguments[0].sql})"), "timestamp")


def _from_utc(arguments: list[Value], zone: Zone) -> Value:
    other = Zone(_zone_name(arguments[1]))
    return arguments[0].like(f"deltaic_utc({other.local(arguments[0].sql)})", "timestamp")


def _make_timestamp(kind: str) -> Callable[[list[Value], Zone], Value]:
    def build(arguments: list[Value], zone: Zone) -> Value:
        sql = f"deltaic_make_local({', '.join(argument.sql for argument in arguments)})"
        return v.combine(zone.instant(sql) if kind == "timestamp" else sql, kind, arguments, raises=True)

    return build


def _timestamp_seconds(arguments: list[Value], zone: Zone) -> Value:
    value = arguments[0]
    if value.type in v.FRACTIONAL:  # NaN and infinity give null here; a cast raises an error
        finite = value.like(
            f"(CASE WHEN isfinite({value.sql}) THEN {value.sql} END)", value.type, nullable=True
        )
        return cast(finite, "timestamp", zone)
    if value.type in v.INTEGRAL:
        far = v.failure("DATETIME_OVERFLOW", "'a number of seconds that is no timestamp'")
        wide = f"CAST({value.sql} AS BIGINT)"
        sql = (
            f"CASE WHEN {wide} BETWEEN -9223372036854 AND 9223372036854 THEN {wide} * 1000000 WHEN {wide} IS"
            f" NOT NULL THEN {far} END"
        )
        return value.like(f"make_timestamptz({sql})", "timestamp", raises=True)
    if v.as_decimal(value.type)[1] > 6:  # Spark raises an error if digits beyond microseconds are left
        raise v.unsupported("function timestamp_seconds", value.type)
    return cast(value, "timestamp", zone)


def _unix_timestamp(arguments: list[Value], zone: Zone) -> Value:
    moment = cast(arguments[0], "timestamp", zone)
    return moment.like(f"(epoch_us({moment.sql}) // 1000000)", "long")


def _now(sql: str, kind: str) -> Callable[[list[Value], Zone], Value]:
    def build(arguments: list[Value], zone: Zone) -> Value:
        now = "now()" if zone.moment is None else f"make_timestamptz({zone.moment})"
        text = sql.format(now=now, local=zone.local(now))
        return Value(text, kind, False, deterministic=zone.moment is not None)

    return build


register("date_part datepart", "string, any", "integer", _part)
register("trunc", "date, string", "date", _trunc)
register("date_trunc", "string, timestamp", "timestamp", _date_trunc)
register("next_day", "date, string", "date", _next_day)
register("months_between", "timestamp, timestamp", "double", _months_between)
register("months_between", "timestamp, timestamp, boolean", "double", _months_between)
register("to_utc_timestamp", "timestamp, string", "timestamp", _to_utc)
register("from_utc_timestamp", "timestamp, string", "timestamp", _from_utc)
register(
    "make_timestamp",
    "integer, integer, integer, integer, integer, decimal(16,6)",
    "timestamp",
    _make_timestamp("timestamp"),
)
register(
    "make_timestamp_ntz",
    "integer, integer, integer, integer, integer, decimal(16,6)",
    "timestamp_ntz",
    _make_timestamp("timestamp_ntz"),
)
register("timestamp_seconds", "numeric", "timestamp", _timestamp_seconds)
register("unix_timestamp to_unix_timestamp", "=timestamp", "long", _unix_timestamp)
register("unix_timestamp to_unix_timestamp", "=date", "long", _unix_timestamp)
form("unix_timestamp to_unix_timestamp", "=timestamp_ntz", "long", "(epoch_us({0}) // 1000000)")
register(
    "current_timestamp now", "", "timestamp", _now("CAST({now} AS TIMESTAMP WITH TIME ZONE)", "timestamp")
)
register("current_date curdate", "", "date", _now("CAST({local} AS DATE)", "date"))
register("unix_timestamp", "", "long", _now("(epoch_us({now}) // 1000000)", "long"))
register("localtimestamp", "", "timestamp_ntz", _now("CAST({local} AS TIMESTAMP)", "timestamp_ntz"))
register(
    "make_timestamp_ltz",
    "integer, integer, integer, integer, integer, decimal(16,6)",
    "timestamp",
    _make_timestamp("timestamp"),
)


def _try_make(kind: str) -> Callable[[list[Value], Zone], Value]:
    """Builds try_make_timestamp and its variants: null if no such date or time exists, such as February
    30."""

    def build(arguments: list[Value], zone: Zone) -> Value:
        sql = f"deltaic_try_make_local({', '.join(argument.sql for argument in arguments)})"
        return v.combine(zone.instant(sql) if kind == "timestamp" else sql, kind, arguments, nullable=True)

    return build


for _name, _kind in {
    "try_make_timestamp": "timestamp",
    "try_make_timestamp_ltz": "timestamp",
    "try_make_timestamp_ntz": "timestamp_ntz",
}.items():
    register(_name, "integer, integer, integer, integer, integer, decimal(16,6)", _kind, _try_make(_kind))
register(
    "current_timezone",
    "",
    "string",
    lambda arguments, zone: Value(v.text(zone.name), "string", False, foldable=True),
)


def _convert_timezone(arguments: list[Value], zone: Zone) -> Value:
    """Builds convert_timezone: the local time of one time zone as the local time of another."""
    source = Zone(_zone_name(arguments[0])) if len(arguments) == 3 else zone
    target, value = Zone(_zone_name(arguments[-2])), cast(arguments[-1], "timestamp_ntz", zone)
    return value.like(f"CAST({target.local(source.instant(value.sql))} AS TIMESTAMP)", "timestamp_ntz")


register("convert_timezone", "string, timestamp_ntz", "timestamp_ntz", _convert_timezone)
register("convert_timezone", "string, string, timestamp_ntz", "timestamp_ntz", _convert_timezone)
