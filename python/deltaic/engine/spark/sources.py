"""Converts users' DataFrames to a table's columns, by the rules of `_core.conform` in Spark's SQL."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from deltaic.engine.engine import Replayable
from deltaic.engine.source import read_source
from deltaic.engine.spark.lowering import with_columns
from deltaic.engine.spark.types import described, to_spark
from deltaic.errors import InvalidArgumentError, SchemaMismatchError, UnsupportedFeatureError
from deltaic.plan.failures import failing
from deltaic.plan.literal import col, lit
from deltaic.protocol.ddl import format_type
from deltaic.protocol.evolution import is_number, nullable_everywhere
from deltaic.protocol.schema import Array, DataType, Field, Map, Schema, Struct, type_name

_LOSSLESS = {
    "byte": {"short", "integer", "long", "float", "double"},
    "short": {"integer", "long", "float", "double"},
    "integer": {"long", "double"},
    "float": {"double"},
}
_TIMES = {("date", "timestamp"), ("date", "timestamp_ntz"), ("timestamp", "timestamp_ntz"), ("timestamp_ntz", "timestamp")}


def frame_of(spark: Any, data: Any, rounding: bool = False) -> tuple[Any, Schema, int | None]:
    """A DataFrame as it is; anything else that the embedded engine takes as a source, brought to the driver: then also its bytes."""
    if _is_frame(data):
        _refuse_twins(data.columns)
        return data, _nullable(data), None
    if (frame := _own_frame(data)) is not None:
        return frame, _nullable(frame), None
    source = read_source(data, rounding=rounding)
    try:
        table = pa.RecordBatchReader.from_stream(source.open()).read_all()
    except Exception:
        source.failure.check()
        raise
    return spark.createDataFrame(table, to_spark(source.schema)), source.schema, table.nbytes


def _nullable(frame: Any) -> Schema:
    """Returns the schema with all fields nullable: Spark infers NOT NULL, but a table created from a DataFrame takes nulls, as
    delta-spark's does."""
    return Schema([field.with_(nullable=True, type=nullable_everywhere(field.type)) for field in described(frame)])


def _is_frame(data: Any) -> bool:
    from pyspark.sql import DataFrame

    return isinstance(data, DataFrame)


def _own_frame(data: Any) -> Any | None:
    """The rows of a table opened on Spark, or of a scan of one, which need not come to the driver."""
    rows = data.scan() if type(data).__name__ == "DeltaTable" and hasattr(data, "scan") else data
    if not isinstance(rows, Replayable):
        return None
    try:
        return rows.to_spark()
    except UnsupportedFeatureError:
        return None


def _refuse_twins(names: list[str]) -> None:
    seen: dict[str, str] = {}
    for name in names:
        if (other := seen.setdefault(name.lower(), name)) is not name:
            raise InvalidArgumentError(
                "two columns of the data differ only in case" if other != name else "a column of the data comes twice",
                found=f"{other!r} and {name!r}",
                expected="names that are unique without regard to case",
            )


def conformed(frame: Any, found: Schema, wanted: Schema) -> Any:
    """The frame's rows as the columns of `wanted`: matched by name without case, a missing one null, cast where no value changes.

    SchemaMismatchError: here where types never fit, at a row where its value does not."""
    _refuse_unknown(found, wanted, "")
    columns = []
    for field in wanted:
        have = found.get(field.name)
        text = _null(field.type) if have is None else _value(col(have.name), have.type, field.type, field.name, 0)
        columns.append((field.name, text))
    return with_columns(frame, columns)


def _refuse_unknown(found: Any, wanted: Any, place: str) -> None:
    known = {item.name.lower() for item in wanted}
    for item in found:
        if item.name.lower() not in known:
            raise SchemaMismatchError(
                "the table has no such column",
                where=f"column {place}{item.name}",
                expected=f"one of {', '.join(each.name for each in wanted)}",
            )


def _null(data_type: DataType) -> str:
    return "NULL" if data_type == "void" else f"CAST(NULL AS {format_type(data_type)})"


def _value(text: str, have: DataType, want: DataType, place: str, depth: int) -> str:
    """SQL of `text` (of type `have`) as `want`."""
    if have == "void":
        return _null(want)
    if _names(have) == _names(want):
        return text
    if isinstance(have, Struct) and isinstance(want, Struct):
        return _struct(text, have, want, place, depth)
    item = f"__deltaic_item{depth}"
    if isinstance(have, Array) and isinstance(want, Array):
        return f"transform({text}, {item} -> {_value(item, have.element, want.element, f'{place}.element', depth + 1)})"
    if isinstance(have, Map) and isinstance(want, Map):
        key = _value(f"{item}.key", have.key, want.key, f"{place}.key", depth + 1)
        value = _value(f"{item}.value", have.value, want.value, f"{place}.value", depth + 1)
        return f"map_from_entries(transform(map_entries({text}), {item} -> named_struct('key', {key}, 'value', {value})))"
    if isinstance(have, str) and isinstance(want, str):
        return _primitive(text, have, want, place)
    raise _wrong_type(have, want, place)


def _names(data_type: DataType) -> str:
    """The type as text, whatever may be null in it."""
    return type_name(data_type).lower() if isinstance(data_type, str) else format_type(data_type)


def _struct(text: str, have: Struct, want: Struct, place: str, depth: int) -> str:
    _refuse_unknown(have.fields, want.fields, f"{place}.")
    by_name: dict[str, Field] = {item.name.lower(): item for item in have.fields}
    parts = []
    for item in want.fields:
        other = by_name.get(item.name.lower())
        inner = f"{place}.{item.name}"
        value = _null(item.type) if other is None else _value(f"{text}.{col(other.name)}", other.type, item.type, inner, depth)
        parts.append(f"{lit(item.name)}, {value}")
    return f"CASE WHEN {text} IS NOT NULL THEN named_struct({', '.join(parts)}) END"


def _primitive(text: str, have: str, want: str, place: str) -> str:
    target = format_type(want)
    if want in _LOSSLESS.get(have, ()) or (have, want) in _TIMES or (have, want) == ("string", "binary"):
        return f"CAST({text} AS {target})"
    if not (is_number(have) and is_number(want)):
        raise _wrong_type(have, want, place)
    # A cast is kept where casting back gives the value again.
    attempt = f"try_cast({text} AS {target})"
    failure = failing(SchemaMismatchError, "a value does not fit", where=f"column {place}", expected=type_name(want))
    return f"CASE WHEN try_cast({attempt} AS {format_type(have)}) <=> {text} THEN {attempt} ELSE CAST({failure} AS {target}) END"


def _wrong_type(have: DataType, want: DataType, place: str) -> SchemaMismatchError:
    return SchemaMismatchError(
        "the data has a type that the column cannot take", where=f"column {place}", found=type_name(have), expected=type_name(want)
    )
