"""Converts schemas between Delta and Spark, which have the same JSON. DataFrames do not get the metadata that
only the log needs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from deltaic.errors import UnsupportedFeatureError
from deltaic.protocol.column_mapping import ID as COLUMN_ID
from deltaic.protocol.column_mapping import map_fields, physical_name
from deltaic.protocol.evolution import nullable_everywhere
from deltaic.protocol.schema import (
    CHAR_TYPES,
    USER_TYPES,
    DataType,
    Field,
    ResultType,
    Schema,
    Struct,
    user_types_of,
)
from deltaic.protocol.schema_parser import type_from_json
from deltaic.spark_sql.char_types import has_char

_GEOGRAPHY = re.compile(r'("geography\([^()",]+, )(\w+)\)"')


def spark_struct(schema: Schema) -> Any:
    """Returns a pyspark StructType of the schema with all its metadata. Spark writes the edge algorithm of a
    geography in capitals: `geography(OGC:CRS84, spherical)` becomes `geography(OGC:CRS84, SPHERICAL)`."""
    from pyspark.sql.types import StructType

    return StructType.fromJson(
        json.loads(_GEOGRAPHY.sub(lambda match: f'{match[1]}{match[2].upper()})"', schema.to_json()))
    )


def to_spark(fields: Iterable[Field]) -> Any:
    """Returns a pyspark StructType of these columns, without their metadata."""
    return spark_struct(Schema(map(bare, fields)))


def shown_to_spark(fields: Iterable[Field], *, char: bool = False) -> Any:
    """Returns a pyspark StructType of these columns with the metadata that a DataFrame of a table has, at
    every depth. `char`: as in `shown`."""
    return spark_struct(Schema(shown(field, char=char) for field in fields))


def type_to_spark(data_type: DataType) -> Any:
    """Returns a pyspark DataType for a cast. Fields within it have the metadata that a DataFrame of a table
    has. All of them are nullable, as those of files are: Spark refuses a cast of them to NOT NULL fields."""
    return shown_to_spark([Field("t", nullable_everywhere(data_type))])["t"].dataType


def nullable_inside(fields: Iterable[Field]) -> Schema:
    """Returns the columns with nullable fields within them. `createDataFrame` needs them for Arrow data,
    because Arrow's cast refuses a null struct that has a NOT NULL field."""
    return Schema(field.with_(type=nullable_everywhere(field.type)) for field in fields)


_COLLATION = re.compile(r'"__COLLATIONS":\{"((?:[^"\\]|\\.)*)":"([^"]*)"')
"""Matches a column (`a.element`, ...) and its collation in Spark's JSON of a schema."""


_PART = re.compile(r"\.(element|key|value)\b")


def _in_brackets(part: re.Match[str]) -> str:
    """Writes a part of a place as `result_types` does: `.element` becomes `[]`, `.key` becomes `[key]`."""
    return f"[{part[1].replace('element', '')}]"


def of_frame(frame: Any) -> Schema:
    """Returns the columns of a DataFrame, without metadata. Raises UnsupportedFeatureError for text with a
    collation, which a table cannot store."""
    return Schema(map(bare, described(frame)))


def described(frame: Any) -> Schema:
    """Like `of_frame`, but with the metadata of users, such as comments."""
    text = frame.schema.json()
    if collated := _COLLATION.search(text):
        raise UnsupportedFeatureError(
            "text with a collation is not supported",
            where=f"column {collated[1]}",
            found=collated[2],
            expected="STRING COLLATE UTF8_BINARY, by a cast",
        ).with_values(
            unsupported=tuple(
                (_PART.sub(_in_brackets, place), f"string({name.rpartition('.')[2]})")
                for place, name in _COLLATION.findall(text)
            )
        )
    fields = _with_intervals(text) if '"interval' in text else Schema.from_json(text)
    return Schema(
        _each(field, lambda item: item.with_(metadata=users_metadata(item.metadata))) for field in fields
    )


def _with_intervals(text: str) -> Iterable[Field]:
    """Parses Spark's JSON of a schema with intervals, which no table can store: they are a ResultType."""

    def typed(item: dict[str, Any]) -> dict[str, Any]:
        intervals = {
            key: ResultType(item[key])
            for key in ("type", "elementType", "keyType", "valueType")
            if str(item.get(key, "")).startswith("interval")
        }
        return {**item, **intervals}

    schema = type_from_json(json.loads(text, object_hook=typed))
    assert isinstance(schema, Struct)
    return schema.fields


_INTERNAL = frozenset({"CURRENT_DEFAULT", "EXISTS_DEFAULT", "parquet.field.id", "parquet.field.nested.ids"})


def users_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a column's metadata without the keys of table features (`delta.*`), of column defaults, and of
    Spark itself (`__*`)."""
    return {
        name: value
        for name, value in metadata.items()
        if name in (CHAR_TYPES, USER_TYPES) or not (name in _INTERNAL or name.startswith(("delta.", "__")))
    }


def shown(field: Field, *, char: bool = False) -> Field:
    """Returns the field with the metadata that a DataFrame of a table has, at every depth.

    `char`: True keeps the types CHAR(n) in the metadata. Spark then assumes that the column's values are
    padded, or pads them itself if the column belongs to a relation that Spark reads."""

    def change(item: Field) -> Field:
        if not item.metadata:
            return item
        metadata = users_metadata(item.metadata)
        if not char and has_char(item):
            del metadata[CHAR_TYPES]
        return item.with_(metadata=metadata)

    return _each(field, change)


def bare(field: Field) -> Field:
    """Returns the field without metadata, at every depth. User-defined types stay, as they are types."""

    def change(item: Field) -> Field:
        user_types = user_types_of(item)
        return item.with_(metadata={USER_TYPES: user_types} if user_types else {})

    return _each(field, change)


def in_files(field: Field) -> Field:
    """Returns the field with the physical names of data files and the metadata of `shown`, at every depth.
    All fields are nullable, because a file may lack a column."""
    return shown(_each(field, lambda item: item.with_(name=physical_name(item), nullable=True)))


ID = "parquet.field.id"
"""Key of field metadata under which Spark's reader and writer expect the id of a Parquet column."""


def with_ids(fields: Iterable[Field]) -> Any:
    """Returns a pyspark StructType of the fields with the physical names of data files, at every depth. Their
    metadata has the ids of column mapping under the key ID."""

    def numbered(item: Field) -> Field:
        number = item.metadata.get(COLUMN_ID)
        return item.with_(
            name=physical_name(item), nullable=True, metadata={} if number is None else {ID: number}
        )

    return spark_struct(Schema(_each(field, numbered) for field in fields))


def is_renamed_inside(data_type: DataType) -> bool:
    """True if data files use another name for a field within the type."""
    return _any_inside(data_type, lambda item: physical_name(item) != item.name)


def is_mapped_inside(data_type: DataType) -> bool:
    """True if data files use another name for a field within the type, or the field has an id of column
    mapping."""
    return _any_inside(data_type, lambda item: physical_name(item) != item.name or COLUMN_ID in item.metadata)


def _any_inside(data_type: DataType, test: Callable[[Field], bool]) -> bool:
    if isinstance(data_type, Struct):
        return any(test(item) or _any_inside(item.type, test) for item in data_type.fields)
    return any(
        _any_inside(getattr(data_type, part), test)
        for part in ("element", "key", "value")
        if hasattr(data_type, part)
    )


def _each(field: Field, change: Any) -> Field:
    new_field: Field = change(field)
    return (
        new_field
        if isinstance(new_field.type, str)
        else new_field.with_(type=map_fields(new_field.type, change))
    )
