"""Spark's casts in DuckDB's SQL: ANSI CAST and TRY_CAST between each two types, and the casts that Spark adds
by itself.

A pair of types that is not written here raises UnsupportedFeatureError with both types. Where DuckDB casts as
Spark does (integers, exact decimals), DuckDB's own CAST is used; `failure_of` in `duckdb.py` turns its errors
into CAST_OVERFLOW or NUMERIC_VALUE_OUT_OF_RANGE.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from deltaic.protocol.schema import Array, DataType, Map, Struct, is_shape
from deltaic.spark_sql import values as v
from deltaic.spark_sql.constants import fold
from deltaic.spark_sql.values import Value

_NAMES = {"byte": "TINYINT", "short": "SMALLINT", "integer": "INT", "long": "BIGINT"}


@dataclass(frozen=True)
class Zone:
    """The session time zone. Writes SQL that converts local times to instants, and instants to local
    times. `moment`: the value of current_timestamp() in microseconds since 1970; None for the time at which
    the query runs."""

    name: str = "UTC"
    moment: int | None = None

    def local(self, instant: str) -> str:
        """Returns SQL of the local time (DuckDB's TIMESTAMP) in this zone at an instant (TIMESTAMP WITH TIME
        ZONE)."""
        return (
            f"deltaic_utc_local({instant})"
            if self.name == "UTC"
            else f"timezone({v.text(self.name)}, {instant})"
        )

    def instant(self, local: str) -> str:
        """Returns SQL of the instant (DuckDB's TIMESTAMP WITH TIME ZONE) of a local time (TIMESTAMP) in this
        zone: the earlier instant where the local time occurs twice, as at the end of summer time."""
        return (
            f"deltaic_utc({local})"
            if self.name == "UTC"
            else f"deltaic_instant({local}, {v.text(self.name)})"
        )


def cast(value: Value, target: DataType, zone: Zone, *, safe: bool = False) -> Value:
    """Returns `value` cast to `target` by Spark's ANSI rules. With `safe`, the cast is TRY_CAST: null where
    CAST fails."""
    # no value changes; the result may be null where either type may be
    if v.same_but_nulls(value.type, target):
        common = v.common_type(value.type, target)
        return value if common is None or common == value.type else replace(value, type=common)
    # raise_error() returns no value, but must still raise its error
    if value.type == "void" and value.raises:
        return value.like(
            f"(CASE WHEN {value.sql} IS NULL THEN CAST(NULL AS {v.duckdb_type(target)}) END)", target
        )
    if value.type == "void":
        return Value(
            f"CAST(NULL AS {v.duckdb_type(target)})",
            target,
            True,
            constant=None,
            deterministic=value.deterministic,
        )
    if value.is_constant and value.constant is None:
        # raises if this pair of types is not supported
        cast(replace(value, constant=v.MISSING), target, zone, safe=safe)
        return literal(None, target)
    if value.is_constant and (folded := fold(value.constant, value.type, target, zone.name)) is not None:
        return folded
    if v.is_interval(value.type) or v.is_interval(target):
        from deltaic.spark_sql.interval_casts import interval_cast

        return interval_cast(value, target, zone, safe=safe)
    if "variant" in (value.type, target):
        from deltaic.spark_sql.variant_casts import from_variant, to_variant

        return to_variant(value) if target == "variant" else from_variant(value, target, zone, safe=safe)
    if isinstance(target, str) and isinstance(value.type, str):
        result = _primitive(value, target, zone, safe)
        if result is None:
            raise v.unsupported("try_cast" if safe else "cast", value.type, target)
        return result
    return _nested(value, target, zone, safe)


def implicit(value: Value, target: DataType, zone: Zone, form: str) -> Value:
    """Returns the argument of `form` cast to `target` as Spark casts by itself, by its rules of store
    assignment. Raises InvalidArgumentError if Spark does not cast between these types by itself."""
    source = value.type
    if v.same_but_nulls(source, target) or source == "void":
        return cast(value, target, zone)
    allowed = (
        (v.is_numeric(source) and v.is_numeric(target))
        or (isinstance(source, str) and target == "string" and source != "binary")
        or (source == "string" and isinstance(target, str))
        or (source in v.TEMPORAL and target in v.TEMPORAL)
    )
    if not allowed and (isinstance(source, str) or v.common_type(source, target) is None):
        raise v.mismatch(form, source)
    return cast(value, target, zone)


def invalid_input(value: Value, target: str) -> str:
    """Returns SQL that raises CAST_INVALID_INPUT: the text `value` is no value of type `target`."""
    message = (
        f"'The value ''' || {value.sql} || ''' of the type \"STRING\" cannot be cast to "
        f'"{v.type_text(target).upper()}" because it is malformed.\''
    )
    return v.failure("CAST_INVALID_INPUT", message)


def or_fail(attempt: str, value: Value, error: str, target: DataType) -> Value:
    """Returns `attempt`, but raises `error` where `attempt` is null although `value` is not. `attempt`: SQL
    of a cast that is null where the cast fails."""
    kind = v.duckdb_type(target)
    return value.like(
        f"CAST(coalesce({attempt}, CASE WHEN {value.sql} IS NOT NULL THEN {error} END) AS {kind})",
        target,
        raises=True,
    )


def _primitive(value: Value, target: str, zone: Zone, safe: bool) -> Value | None:
    source = value.type
    if (is_shape(source) or is_shape(target)) and "binary" in (source, target):
        return value.like(value.sql, target)
    if is_shape(source) or is_shape(target):
        return None
    if source == "string":
        return _from_string(value, target, zone, safe)
    if target == "string":
        return _to_string(value, zone)
    if v.is_numeric(source) and v.is_numeric(target):
        return _number(value, target, safe)
    if source == "boolean" and v.is_numeric(target):
        return value.like(f"CAST({value.sql} AS {v.duckdb_type(target)})", target)
    if v.is_numeric(source) and target == "boolean":
        return value.like(f"({value.sql} <> 0)", target)
    if source in v.TEMPORAL and target in v.TEMPORAL:
        return _moment(value, target, zone)
    if source == "timestamp" and v.is_numeric(target):
        return _seconds_of(value, target, safe)
    if v.is_numeric(source) and target == "timestamp":
        return _from_seconds(value, safe)
    return None


def _attempt(value: Value, target: str, sql: str, safe: bool) -> Value:
    """Returns DuckDB's own CAST of `sql`, or its TRY_CAST if `safe`."""
    word = "TRY_CAST" if safe else "CAST"
    return value.like(
        f"{word}({sql} AS {v.duckdb_type(target)})",
        target,
        nullable=True if safe else None,
        raises=value.raises or not safe,
    )


def _number(value: Value, target: str, safe: bool) -> Value:
    source, decimal = value.type, v.decimal_parts(value.type)
    if target in v.INTEGRAL:
        if source in v.INTEGRAL:
            limits, most = v.limits_of(value), 1 << (v.INTEGER_BITS[target] - 1)
            if -most <= limits.least and limits.greatest < most:
                return replace(value.like(v.cast_sql(value, target), target), limits=limits)
            return _attempt(value, target, value.sql, safe)
        whole = f"trunc({value.sql})"
        # Spark casts the double 2^63 to the greatest long: 2^63 - 1 has no double of its own
        if target == "long" and decimal is None:
            whole = (
                f"CASE WHEN {value.sql} = 9223372036854775808 THEN CAST(9223372036854775807 AS HUGEINT) ELSE"
                f" {_whole(whole, safe)} END"
            )
        return _attempt(value, target, whole, safe)
    if target in v.FRACTIONAL:
        # DuckDB's own cast is inexact here; a cast of the text is exact
        if decimal and (decimal[0] > 15 or target == "float"):
            return value.like(f"CAST(CAST({value.sql} AS VARCHAR) AS {v.duckdb_type(target)})", target)
        if source == "double":  # a double too large for a float becomes infinite
            large = f"CASE WHEN {value.sql} > 0 THEN CAST('inf' AS FLOAT) ELSE CAST('-inf' AS FLOAT) END"
            return value.like(
                f"(CASE WHEN abs({value.sql}) >= 3.4028235677973366e38 AND isfinite({value.sql}) THEN {large}"
                f" ELSE CAST({value.sql} AS FLOAT) END)",
                target,
            )
        return value.like(v.cast_sql(value, target), target)
    to = v.decimal_parts(target)
    assert to is not None
    if source in v.FRACTIONAL:
        digits = f"CAST(CAST(CASE WHEN isfinite({value.sql}) THEN {value.sql} END AS DOUBLE) AS VARCHAR)"
        if to[0] == 38:  # DuckDB casts 1.2e38 to a decimal of 39 digits, Spark refuses it
            far = f"abs({value.sql}) >= 1e{to[0] - to[1]} AND isfinite({value.sql})"
            shown = f"CAST({value.sql} AS VARCHAR) || ' cannot be represented as {target}'"
            digits = (
                f"CASE WHEN {far} THEN {'NULL' if safe else v.failure('NUMERIC_VALUE_OUT_OF_RANGE', shown)}"
                f" ELSE {digits} END"
            )
        return _attempt(value, target, digits, safe).like(
            _attempt(value, target, digits, safe).sql, target, nullable=True
        )
    have = v.as_decimal(source)
    fits = to[0] - to[1] >= have[0] - have[1] and to[1] >= have[1]
    if fits:
        return value.like(v.cast_sql(value, target), target)
    return _attempt(value, target, value.sql, safe)


def _whole(sql: str, safe: bool) -> str:
    return f"{'TRY_CAST' if safe else 'CAST'}({sql} AS HUGEINT)"


def _to_string(value: Value, zone: Zone) -> Value | None:
    source = value.type
    if source in ("double", "float"):
        return value.like(f"deltaic_{source}_to_string({value.sql})", "string")
    decimal = v.decimal_parts(source)
    if decimal and decimal[0] == decimal[1]:  # DuckDB writes .5, Spark writes 0.5
        return value.like(f"regexp_replace({v.cast_sql(value, 'string')}, '^(-?)\\.', '\\10.')", "string")
    if source in v.INTEGRAL or source == "boolean" or decimal:
        return value.like(v.cast_sql(value, "string"), "string")
    if source == "date":
        return value.like(f"deltaic_date_to_string({value.sql})", "string")
    if source == "timestamp_ntz":
        return value.like(f"deltaic_local_to_string({value.sql})", "string")
    if source == "timestamp":
        return value.like(f"deltaic_local_to_string({zone.local(value.sql)})", "string")
    if source == "binary":
        return value.like(f"decode({value.sql})", "string", raises=True)
    return None


def _from_string(value: Value, target: str, zone: Zone, safe: bool) -> Value | None:
    if target == "binary":
        return value.like(f"encode({value.sql})", target)
    decimal = v.decimal_parts(target)
    if target in v.INTEGRAL or target in v.FRACTIONAL or target in ("boolean", "date"):
        attempt = f"deltaic_try_{target}({value.sql})"
    elif decimal:
        return _decimal_from_string(value, target, safe)
    elif target == "timestamp":
        attempt = f"deltaic_try_instant({value.sql}, {v.text(zone.name)})"
    elif target == "timestamp_ntz":
        attempt = f"deltaic_try_local({value.sql})"
    else:
        return None
    if safe:
        return value.like(attempt, target, nullable=True)
    return or_fail(attempt, value, invalid_input(value, target), target)


def _decimal_from_string(value: Value, target: str, safe: bool) -> Value:
    kind = v.duckdb_type(target)
    number = f"deltaic_number_text({value.sql})"
    attempt = f"TRY_CAST({number} AS {kind})"
    if safe:
        return value.like(attempt, target, nullable=True)
    too_large = v.failure(
        "NUMERIC_VALUE_OUT_OF_RANGE", f"{value.sql} || ' cannot be represented as {target}'"
    )
    far = v.failure(
        "NUMERIC_OUT_OF_SUPPORTED_RANGE", f"'The value ' || {value.sql} || ' has more than 38 digits'"
    )
    huge = f"abs(TRY_CAST({number} AS DOUBLE)) >= 1e38"
    error = (
        f"CASE WHEN {number} IS NULL THEN {invalid_input(value, target)} WHEN {huge} THEN {far} ELSE"
        f" {too_large} END"
    )
    return or_fail(attempt, value, error, target)


def _moment(value: Value, target: str, zone: Zone) -> Value:
    sql = value.sql
    if value.type == "timestamp":
        sql = zone.local(sql)
    elif value.type == "date" and target != "date":
        sql = f"CAST({sql} AS TIMESTAMP)"
    if target == "date":
        sql = f"CAST({sql} AS DATE)"
    elif target == "timestamp":
        sql = zone.instant(sql)
    return value.like(sql, target)


def _seconds_of(value: Value, target: str, safe: bool) -> Value:
    micros = f"epoch_us({value.sql})"
    if target in v.FRACTIONAL:
        return value.like(f"CAST(CAST({micros} AS DOUBLE) / 1000000 AS {v.duckdb_type(target)})", target)
    if target in v.INTEGRAL:
        return _attempt(
            value, target, f"CAST(floor(CAST({micros} AS DECIMAL(19, 0)) * 0.000001) AS BIGINT)", safe
        )
    return _attempt(value, target, f"(CAST({micros} AS DECIMAL(19, 0)) * 0.000001)", safe)


def _from_seconds(value: Value, safe: bool) -> Value | None:
    if safe:
        return None
    sql = value.sql
    # Spark wraps around, or takes the last timestamp
    far = v.failure("UNSUPPORTED_TIMESTAMP", "'a number so large as a timestamp'")
    if value.type in v.INTEGRAL:
        seconds = f"CAST({sql} AS BIGINT)"
        inside = (
            f"CASE WHEN {seconds} BETWEEN -9223372036854 AND 9223372036854 THEN {seconds} WHEN {seconds} IS"
            f" NOT NULL THEN {far} END"
        )
        return value.like(
            f"make_timestamptz(multiply(({inside}), CAST(1000000 AS BIGINT)))", "timestamp", raises=True
        )
    if value.type in v.FRACTIONAL:
        bad = v.failure("CAST_INVALID_INPUT", "'a number that is not finite is no timestamp'")
        whole = (
            f"CASE WHEN abs({sql}) < 9223372036854 THEN CAST(trunc(CAST({sql} AS DOUBLE) * 1000000) AS"
            f" BIGINT) ELSE {far} END"
        )
        return value.like(
            f"make_timestamptz(CASE WHEN NOT isfinite({sql}) THEN {bad} WHEN {sql} IS NOT NULL THEN {whole}"
            " END)",
            "timestamp",
            raises=True,
        )
    whole = (
        f"CASE WHEN abs({sql}) < 9223372036854 THEN CAST(trunc({sql} * 1000000) AS BIGINT) WHEN {sql} IS NOT"
        f" NULL THEN {far} END"
    )
    return value.like(f"make_timestamptz({whole})", "timestamp", raises=True)


def _nested(value: Value, target: DataType, zone: Zone, safe: bool) -> Value:
    source = value.type
    if isinstance(source, Array) and isinstance(target, Array):
        item = cast(
            Value("deltaic_item", source.element, source.contains_null), target.element, zone, safe=safe
        )
        sql = f"list_transform({value.sql}, lambda deltaic_item: {item.sql})"
        return value.like(
            f"CAST({sql} AS {v.duckdb_type(target)})",
            Array(target.element, target.contains_null),
            raises=value.raises or item.raises,
        )
    if isinstance(source, Struct) and isinstance(target, Struct) and len(source.fields) == len(target.fields):
        return _struct(value, source, target, zone, safe)
    if isinstance(source, Map) and isinstance(target, Map):
        key = cast(Value("deltaic_item.key", source.key, False), target.key, zone, safe=safe)
        if safe and key.nullable:
            raise v.unsupported("try_cast", source, target)  # a key that cannot be cast would become null
        item = cast(Value("deltaic_item.value", source.value), target.value, zone, safe=safe)
        pair = f"{{'key': {key.sql}, 'value': {item.sql}}}"
        sql = f"map_from_entries(list_transform(map_entries({value.sql}), lambda deltaic_item: {pair}))"
        return value.like(
            f"CAST({sql} AS {v.duckdb_type(target)})",
            target,
            raises=value.raises or key.raises or item.raises,
        )
    if target == "string" and not safe:
        return _nested_text(value, zone)
    raise v.unsupported("try_cast" if safe else "cast", source, target)


def _nested_text(value: Value, zone: Zone, depth: int = 0) -> Value:
    """Returns an array, map or struct cast to text: `[1, null]`, `{a -> 1}`, `{1, x}`."""

    def shown(sql: str, kind: DataType) -> str:
        inner = Value(sql, kind)
        text = (
            cast(inner, "string", zone)
            if isinstance(kind, str) and kind != "binary"
            else _nested_text(inner, zone, depth + 1)
        )
        return f"coalesce({text.sql}, 'null')"

    kind, item = value.type, f"deltaic_s{depth}"
    if kind == "binary":  # Spark writes any bytes as text, even if they are not valid UTF-8
        raise v.unsupported("cast", kind, "string")
    if isinstance(kind, Struct):
        parts = [
            shown(f"struct_extract({value.sql}, {v.text(field.name)})", field.type) for field in kind.fields
        ]
        sql = (
            f"(CASE WHEN {value.sql} IS NOT NULL THEN '{{' || {' || {} || '.format(v.text(', ')).join(parts)}"
            " || '}' END)"
        )
    elif isinstance(kind, Map):
        pair = f"{shown(f'{item}.key', kind.key)} || ' -> ' || {shown(f'{item}.value', kind.value)}"
        sql = (
            f"('{{' || array_to_string(list_transform(map_entries({value.sql}), lambda {item}: {pair}), ', ')"
            " || '}')"
        )
    elif isinstance(kind, Array):
        sql = (
            f"('[' || array_to_string(list_transform({value.sql}, lambda {item}:"
            f" {shown(item, kind.element)}), ', ') || ']')"
        )
    else:
        raise v.unsupported("cast", kind, "string")
    return value.like(sql, "string")


def _struct(value: Value, source: Struct, target: Struct, zone: Zone, safe: bool) -> Value:
    """Returns a struct cast to another: fields are matched by position, as in Spark, and named after the
    fields of `target`."""
    parts, raises = [], value.raises
    for source_field, target_field in zip(source.fields, target.fields, strict=True):
        part = cast(
            Value(
                f"struct_extract({value.sql}, {v.text(source_field.name)})",
                source_field.type,
                source_field.nullable,
            ),
            target_field.type,
            zone,
            safe=safe,
        )
        raises = raises or part.raises
        parts.append(f"{v.name(target_field.name)} := {part.sql}")
    sql = f"CASE WHEN {value.sql} IS NULL THEN NULL ELSE struct_pack({', '.join(parts)}) END"
    return value.like(f"CAST({sql} AS {v.duckdb_type(target)})", target, raises=raises)


def literal(constant: Any, data_type: DataType) -> Value:
    """Returns `constant`, a Python value, as a literal of `data_type`."""
    return Value(literal_sql(constant, data_type), data_type, constant is None, constant=constant)


def literal_sql(constant: Any, data_type: DataType) -> str:
    if constant is None:
        return f"CAST(NULL AS {v.duckdb_type(data_type)})"
    if data_type == "string":
        return v.text(constant)
    if data_type == "boolean":
        return "true" if constant else "false"
    if data_type == "binary":
        return "CAST('" + "".join(f"\\x{byte:02X}" for byte in constant) + "' AS BLOB)"
    if isinstance(constant, float):
        return f"CAST('{constant!r}' AS {v.duckdb_type(data_type)})"
    shown = format(constant, "f") if isinstance(constant, Decimal) else str(constant)
    return f"CAST({v.text(shown)} AS {v.duckdb_type(data_type)})"
