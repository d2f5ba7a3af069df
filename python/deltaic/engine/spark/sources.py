"""Converts the user's data to a DataFrame, and its columns to those of a table. The rules are those of
`_core.conform`, written in Spark's SQL."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from deltaic.engine.engine import Replayable
from deltaic.engine.exporters import rows_of
from deltaic.engine.source import read_source
from deltaic.engine.spark.lowering import with_columns
from deltaic.engine.spark.types import described, nullable_inside, to_spark
from deltaic.errors import InvalidArgumentError, SchemaMismatchError, UnsupportedFeatureError
from deltaic.plan.failures import failing
from deltaic.plan.literal import col, lit
from deltaic.protocol.ddl import cast_type, format_type
from deltaic.protocol.evolution import is_number, nullable_field
from deltaic.protocol.schema import Array, DataType, Field, Map, Schema, Struct, type_name, user_types_of

# Number type -> types to which its values are cast without loss; and pairs of date and time types that are
# cast.
_LOSSLESS = {
    "byte": {"short", "integer", "long", "float", "double"},
    "short": {"integer", "long", "float", "double"},
    "integer": {"long", "double"},
    "float": {"double"},
}
_TIMES = {
    ("date", "timestamp"),
    ("date", "timestamp_ntz"),
    ("timestamp", "timestamp_ntz"),
    ("timestamp_ntz", "timestamp"),
}


def frame_of(spark: Any, data: Any, rounding: bool = False) -> tuple[Any, Schema, int | None]:
    """Returns the data as a DataFrame, its schema, and its size in bytes if it is known. A DataFrame, and a
    table that is opened on Spark, stay on the cluster. All other data that the embedded engine accepts is
    read into the driver's memory. `rounding`: as for `read_source`."""
    if _is_frame(data):
        refuse_repeated_names(data)
        return data, _nullable(data), None
    if (frame := _own_frame(data)) is not None:
        return frame, _nullable(frame), None
    source = read_source(data, rounding=rounding)
    try:
        table = pa.RecordBatchReader.from_stream(source.open()).read_all()
    except Exception:
        source.failure.check()
        raise
    return spark.createDataFrame(table, to_spark(nullable_inside(source.schema))), source.schema, table.nbytes


def _nullable(frame: Any) -> Schema:
    """Returns the frame's schema with all fields nullable: Spark infers NOT NULL for some columns, but a
    table that is created from a DataFrame accepts nulls, as in delta-spark."""
    return Schema(map(nullable_field, described(frame)))


def _is_frame(data: Any) -> bool:
    from pyspark.sql import DataFrame

    return isinstance(data, DataFrame)


def _own_frame(data: Any) -> Any | None:
    """Returns the DataFrame of a table that is opened on Spark, or of a scan of one; None for other data."""
    rows = rows_of(data)
    if not isinstance(rows, Replayable):
        return None
    try:
        return rows.to_spark()
    except UnsupportedFeatureError:
        return None


def refuse_repeated_names(data: Any, *, reads: bool = False) -> None:
    """Raises InvalidArgumentError if two columns, or two fields of a struct, of a DataFrame have one name,
    apart from case. `reads`: True for the condition that delta-spark gives to statements that match columns
    by name."""
    _refuse_repeated(data.schema, (), reads)


def _refuse_repeated(data_type: Any, path: tuple[str, ...], reads: bool) -> None:
    """Like `refuse_repeated_names`, for a PySpark type. `path`: where the type is, `("tags", "element")`."""
    by_lower_case: dict[str, str] = {}
    for field in getattr(data_type, "fields", ()):
        name = field.name
        if (other := by_lower_case.get(name.lower())) is not None:
            problem = "two columns of the data differ only in case"
            if other == name:
                problem = "a column of the data comes twice"
            error = InvalidArgumentError(
                f"[DELTA_DUPLICATE_COLUMNS_FOUND.READ_SCHEMA] {problem}" if reads else problem,
                found=f"{'.'.join((*path, other))!r} and {'.'.join((*path, name))!r}",
                expected="names that are unique without regard to case",
            )
            twin = tuple(part.lower() for part in (*path, name))
            raise error.with_values(both=f"{other}, {name}", duplicate=".".join(twin), duplicate_parts=twin)
        by_lower_case[name.lower()] = name
        _refuse_repeated(field.dataType, (*path, name), reads)
    for part, attribute in (("element", "elementType"), ("key", "keyType"), ("value", "valueType")):
        if (inner := getattr(data_type, attribute, None)) is not None:
            _refuse_repeated(inner, (*path, part), reads)


def conformed(frame: Any, source: Schema, target: Schema) -> Any:
    """Returns the frame with the columns of `target`: matched by name without regard to case, null if
    missing, and cast if no value changes. `source`: the frame's schema.

    Raises SchemaMismatchError for a type that never fits. The query raises it for a value that does not fit,
    such as 300 for a byte."""
    _refuse_unknown(source, target, "")
    columns = []
    for field in target:
        have = source.get(field.name)
        text = _null(field.type) if have is None else _of_field(col(have.name), have, field, field.name, 0)
        columns.append((field.name, text))
    return with_columns(frame, columns)


def _refuse_unknown(source: Any, target: Any, place: str) -> None:
    """Raises SchemaMismatchError for a field of `source` that `target` does not have."""
    names = {item.name.lower() for item in target}
    for item in source:
        if item.name.lower() not in names:
            raise SchemaMismatchError(
                "the table has no such column",
                where=f"column {place}{item.name}",
                expected=f"one of {', '.join(each.name for each in target)}",
            )


def _null(data_type: DataType) -> str:
    return "NULL" if data_type == "void" else f"CAST(NULL AS {cast_type(data_type)})"


def _of_field(text: str, have: Field, want: Field, place: str, depth: int) -> str:
    """Like `_value`, but values of the same user-defined types, in which SQL finds no fields, stay as they
    are."""
    user_types = user_types_of(have)
    same = bool(user_types) and user_types == user_types_of(want)
    return text if same else _value(text, have.type, want.type, place, depth)


def _value(text: str, have: DataType, want: DataType, place: str, depth: int) -> str:
    """Returns the SQL that converts `text`, an expression of the type `have`, to the type `want`. `place`:
    the column, for errors. `depth`: number of enclosing arrays and maps, for the names of lambda
    variables."""
    if have == "void":
        return _null(want)
    if _names(have) == _names(want):
        return text
    if isinstance(have, Struct) and isinstance(want, Struct):
        return _struct(text, have, want, place, depth)
    item = f"__deltaic_item{depth}"
    if isinstance(have, Array) and isinstance(want, Array):
        return (
            f"transform({text}, {item} ->"
            f" {_value(item, have.element, want.element, f'{place}.element', depth + 1)})"
        )
    if isinstance(have, Map) and isinstance(want, Map):
        key = _value(f"{item}.key", have.key, want.key, f"{place}.key", depth + 1)
        value = _value(f"{item}.value", have.value, want.value, f"{place}.value", depth + 1)
        return (
            f"map_from_entries(transform(map_entries({text}), {item} -> named_struct('key', {key}, 'value',"
            f" {value})))"
        )
    if isinstance(have, str) and isinstance(want, str):
        return _primitive(text, have, want, place)
    raise _wrong_type(have, want, place)


def _names(data_type: DataType) -> str:
    """Returns the type as text, without the nullability of its parts."""
    return type_name(data_type).lower() if isinstance(data_type, str) else format_type(data_type)


def _struct(text: str, have: Struct, want: Struct, place: str, depth: int) -> str:
    _refuse_unknown(have.fields, want.fields, f"{place}.")
    by_name: dict[str, Field] = {item.name.lower(): item for item in have.fields}
    parts = []
    for item in want.fields:
        other = by_name.get(item.name.lower())
        inner = f"{place}.{item.name}"
        value = (
            _null(item.type)
            if other is None
            else _of_field(f"{text}.{col(other.name)}", other, item, inner, depth)
        )
        parts.append(f"{lit(item.name)}, {value}")
    return f"CASE WHEN {text} IS NOT NULL THEN named_struct({', '.join(parts)}) END"


def _primitive(text: str, have: str, want: str, place: str) -> str:
    target = cast_type(want)
    if want in _LOSSLESS.get(have, ()) or (have, want) in _TIMES or (have, want) == ("string", "binary"):
        return f"CAST({text} AS {target})"
    if not (is_number(have) and is_number(want)):
        raise _wrong_type(have, want, place)
    # A value fits if casting the result back gives the value again: 1.5 does not fit an integer, because 1
    # is cast back to 1.0.
    attempt = f"try_cast({text} AS {target})"
    failure = failing(
        SchemaMismatchError, "a value does not fit", where=f"column {place}", expected=type_name(want)
    )
    return (
        f"CASE WHEN try_cast({attempt} AS {cast_type(have)}) <=> {text} THEN {attempt} ELSE CAST({failure}"
        f" AS {target}) END"
    )


def _wrong_type(have: DataType, want: DataType, place: str) -> SchemaMismatchError:
    return SchemaMismatchError(
        "the data has a type that the column cannot take",
        where=f"column {place}",
        found=type_name(have),
        expected=type_name(want),
    )
