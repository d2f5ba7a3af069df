"""The function sequence on dates and timestamps, in steps of days, months or any literal interval."""

from __future__ import annotations

from deltaic.errors import InvalidArgumentError
from deltaic.protocol.schema import Array
from deltaic.spark_sql import intervals
from deltaic.spark_sql import values as v
from deltaic.spark_sql.casts import Zone, cast
from deltaic.spark_sql.values import Value

_DAY = 86_400_000_000
_WRONG = v.failure(
    "_LEGACY_ERROR_TEMP_3235", "'the step of a sequence does not lead from its start to its stop'"
)
MOST_ITEMS = 2_147_483_632
"""Maximum number of items of an array in Spark."""
TOO_MANY = v.failure(
    "COLLECTION_SIZE_LIMIT_EXCEEDED.PARAMETER", f"'a sequence has at most {MOST_ITEMS} items'"
)


def of_times(arguments: list[Value], zone: Zone) -> Value:
    """Builds `sequence(start, stop [, interval])` of dates or timestamps. Without an interval, the steps are
    days, forwards or backwards."""
    start, stop, *step = arguments
    common = v.common_of([start, stop], "sequence")
    if common not in v.TEMPORAL or (
        step and not (v.is_day_time(step[0].type) or v.is_year_month(step[0].type))
    ):
        raise v.unsupported("function sequence", *(argument.type for argument in arguments))
    start, stop = cast(start, common, zone), cast(stop, common, zone)
    if not step:
        step = [Value(f"CAST({_DAY} AS BIGINT)", v.DAYS, False, constant=_DAY)]
        down = Value(f"CAST({-_DAY} AS BIGINT)", v.DAYS, False, constant=-_DAY)
        if common != "date":
            up, falling = (
                _stepped(start, stop, step[0], common, zone),
                _stepped(start, stop, down, common, zone),
            )
            sql = f"(CASE WHEN {start.sql} <= {stop.sql} THEN {up.sql} ELSE {falling.sql} END)"
            return v.combine(sql, up.type, arguments, raises=True)
    (by,) = step
    if not isinstance(by.constant, int):
        raise v.unsupported("sequence by an interval that is not a literal")
    if by.constant == 0:
        raise v.unsupported("sequence by an interval of nothing")
    if common == "date" and v.is_day_time(by.type) and by.constant % _DAY:
        raise InvalidArgumentError(
            "[_LEGACY_ERROR_TEMP_3242] a sequence of dates goes by whole days or months", found=by.constant
        )
    return _stepped(start, stop, by, common, zone)


def _stepped(start: Value, stop: Value, by: Value, common: str, zone: Zone) -> Value:
    """Returns a sequence from `start` in steps of `by`, not beyond `stop`. Item n is `start` plus n times
    `by`, not the item before plus
    `by`: January 31 in steps of months is followed by February 29, then March 31."""
    assert isinstance(by.constant, int)
    days = int(by.constant / _DAY) if v.is_day_time(by.type) else 0
    amount = by.constant if v.is_year_month(by.type) else days * _DAY
    kind = by.type if v.is_year_month(by.type) else v.DAYS
    interval = Value(f"(CAST(deltaic_n AS {v.duckdb_type(kind)}) * {amount})", kind, False)
    item = cast(intervals.arithmetic("+", start, interval, zone), common, zone) if amount else start
    # days are added to the local date, hours to the instant
    if v.is_day_time(by.type) and (rest := by.constant - days * _DAY):
        make = "make_timestamptz" if common == "timestamp" else "make_timestamp"
        item = item.like(f"{make}(epoch_us({item.sql}) + deltaic_n * {rest})", common)
    if v.is_year_month(by.type):
        steps = (
            f"abs(date_diff('month', {_local(start, zone)}, {_local(stop, zone)})) // {abs(by.constant)} + 1"
        )
    else:
        steps = (
            f"abs(epoch_us({_local(stop, zone)}) - epoch_us({_local(start, zone)})) // {abs(by.constant)} + 1"
        )
    forward, inside = (
        (f"{start.sql} <= {stop.sql}", "<=") if by.constant > 0 else (f"{start.sql} >= {stop.sql}", ">=")
    )
    items = f"list_transform(range(0, CAST({steps} AS BIGINT) + 1), lambda deltaic_n: {item.sql})"
    kept = f"list_filter({items}, lambda deltaic_t: deltaic_t {inside} {stop.sql})"
    sql = (
        f"(CASE WHEN {start.sql} IS NULL OR {stop.sql} IS NULL THEN NULL WHEN NOT ({forward}) THEN {_WRONG} "
    )
    sql += f"WHEN {steps} > {MOST_ITEMS} THEN {TOO_MANY} ELSE {kept} END)"
    return v.combine(sql, Array(common, False), (start, stop), raises=True)


def _local(value: Value, zone: Zone) -> str:
    return zone.local(value.sql) if value.type == "timestamp" else f"CAST({value.sql} AS TIMESTAMP)"
