"""The functions time_bucket (its first argument is an interval), window_time and bitmap_count."""

from __future__ import annotations

from deltaic.errors import InvalidArgumentError
from deltaic.protocol.schema import Struct
from deltaic.spark_sql import values as v
from deltaic.spark_sql.casts import Zone, literal
from deltaic.spark_sql.functions.registry import form, register, takes_no_untyped_null
from deltaic.spark_sql.values import Value

takes_no_untyped_null("bitmap_count", "=void")
form(
    "bitmap_count",
    "binary",
    "long",
    "CASE WHEN octet_length({0}) = 0 THEN 0 ELSE bit_count(CAST({0} AS BIT)) END",
)


def _time_bucket(arguments: list[Value], zone: Zone) -> Value:
    """Builds time_bucket: the start of the bucket that holds a timestamp. Buckets are counted from an origin,
    in microseconds or months. Buckets of months begin on the origin's day of the month, or on the last day of
    a shorter month."""
    size, moment = arguments[:2]
    kind = arguments[2].type if moment.type == "void" and len(arguments) > 2 else moment.type
    kind = "timestamp" if kind == "void" else kind
    if kind not in ("timestamp", "timestamp_ntz") or not (
        size.type == "void" or v.is_day_time(size.type) or v.is_year_month(size.type)
    ):
        raise v.mismatch("time_bucket", size.type, kind)
    if kind == "timestamp" and zone.name != "UTC":
        raise v.unsupported(f"time_bucket of timestamps in the time zone {zone.name}")
    if not size.is_constant:
        raise v.unsupported("time_bucket of a size that is not a literal")
    if size.constant is not None and size.constant <= 0:
        raise InvalidArgumentError(
            "[DATATYPE_MISMATCH.VALUE_OUT_OF_RANGE] the size of a bucket is greater than 0",
            found=size.constant,
        )
    if any(each.type == "void" for each in arguments):
        return literal(None, kind)
    if len(arguments) > 2 and arguments[2].type != kind:
        raise v.mismatch("time_bucket", kind, arguments[2].type)
    at = f"epoch_us({moment.sql})"
    start = f"epoch_us({arguments[2].sql})" if len(arguments) > 2 else "CAST(0 AS BIGINT)"
    if v.is_year_month(size.type):
        months = f"datediff('month', make_timestamp({start}), make_timestamp({at}))"
        whole = f"CAST(floor({months} / {float(size.constant)}) AS INTEGER)"
        later, sooner = (
            f"(make_timestamp({start}) + to_months(({whole} - {back}) * {size.constant}))" for back in (0, 1)
        )
        micros = f"epoch_us(CASE WHEN {later} > make_timestamp({at}) THEN {sooner} ELSE {later} END)"
    else:
        micros = f"({at} - ((({at} - {start}) % {size.constant}) + {size.constant}) % {size.constant})"
    sql = f"{'make_timestamptz' if kind == 'timestamp' else 'make_timestamp'}({micros})"
    return v.combine(sql, kind, arguments, raises=True)


def _window_time(arguments: list[Value], zone: Zone) -> Value:
    """Builds window_time: the last microsecond of a time window."""
    (value,) = arguments
    fields = (
        [(field.name, field.type) for field in value.type.fields] if isinstance(value.type, Struct) else []
    )
    kind = fields[1][1] if len(fields) == 2 else "void"
    if fields != [("start", kind), ("end", kind)] or kind not in ("timestamp", "timestamp_ntz"):
        raise v.mismatch("window_time", value.type)
    end = f"epoch_us(struct_extract({value.sql}, 'end')) - 1"
    return v.combine(
        f"{'make_timestamptz' if kind == 'timestamp' else 'make_timestamp'}({end})", kind, arguments
    )


register("window_time", "any", "timestamp", _window_time)
register("time_bucket", "any, any", "timestamp", _time_bucket)
register("time_bucket", "any, any, any", "timestamp", _time_bucket)
