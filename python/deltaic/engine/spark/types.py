"""Delta's types and Spark's: the same JSON, less what only the log has use for."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from deltaic.errors import UnsupportedFeatureError
from deltaic.protocol.column_mapping import ID as COLUMN_ID
from deltaic.protocol.column_mapping import map_fields, physical_name
from deltaic.protocol.schema import CHAR_TYPES, DataType, Field, Schema, Struct
from deltaic.spark_sql.char_types import has_char

_GEOGRAPHY = re.compile(r'("geography\([^()",]+, )(\w+)\)"')


def spark_struct(schema: Schema) -> Any:
    """A pyspark StructType of these columns, as they are. Spark writes how the edges of a geography run in capitals."""
    from pyspark.sql.types import StructType

    return StructType.fromJson(json.loads(_GEOGRAPHY.sub(lambda match: f'{match[1]}{match[2].upper()})"', schema.to_json())))


def to_spark(fields: Iterable[Field]) -> Any:
    """A pyspark StructType of these columns, without their metadata."""
    return spark_struct(Schema(map(bare, fields)))


def shown_to_spark(fields: Iterable[Field], *, char: bool = False) -> Any:
    """A pyspark StructType of these columns, with what of their metadata a DataFrame of a table shows, at every
    depth. `char`: as in `shown`."""
    return spark_struct(Schema(shown(field, char=char) for field in fields))


def type_to_spark(data_type: DataType) -> Any:
    """A pyspark DataType, whose fields have the metadata that a DataFrame shows."""
    return shown_to_spark([Field("t", data_type)])["t"].dataType


_COLLATION = re.compile(r'"__COLLATIONS":\{"((?:[^"\\]|\\.)*)":"([^"]*)"')
"""In Spark's JSON of a schema: the column (`a.element`, ...) and its collation."""


def of_frame(frame: Any) -> Schema:
    """The columns of a DataFrame, without metadata. UnsupportedFeatureError for text that is compared by a collation: a table would not say
    so."""
    return Schema(map(bare, described(frame)))


def described(frame: Any) -> Schema:
    """Like `of_frame`, but with the columns' comments and the rest of the metadata that users set."""
    text = frame.schema.json()
    if collated := _COLLATION.search(text):
        raise UnsupportedFeatureError(
            "text with a collation", where=f"column {collated[1]}", found=collated[2], expected="STRING COLLATE UTF8_BINARY, by a cast"
        )
    return Schema(_each(field, lambda item: item.with_(metadata=users_metadata(item.metadata))) for field in Schema.from_json(text))


_INTERNAL = frozenset({"CURRENT_DEFAULT", "EXISTS_DEFAULT", "parquet.field.id", "parquet.field.nested.ids"})


def users_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """A column's metadata without what features of one table (`delta.`...), defaults and Spark itself (`__`...) keep there."""
    return {
        name: value
        for name, value in metadata.items()
        if name == CHAR_TYPES or not (name in _INTERNAL or name.startswith(("delta.", "__")))
    }


def shown(field: Field, *, char: bool = False) -> Field:
    """The field with the metadata that a DataFrame of a table shows, at every depth. `char`: a type with CHAR, too.
    Spark takes the values of such a column for padded, and pads them itself where a relation that it reads has it."""

    def change(item: Field) -> Field:
        if not item.metadata:
            return item
        metadata = users_metadata(item.metadata)
        if not char and has_char(item):
            del metadata[CHAR_TYPES]
        return item.with_(metadata=metadata)

    return _each(field, change)


def bare(field: Field) -> Field:
    """The field without metadata, at every depth."""
    return _each(field, lambda item: item.with_(metadata={}))


def in_files(field: Field) -> Field:
    """The field under the names that data files use, at every depth, with the metadata that is shown; nothing is sure to be there."""
    return shown(_each(field, lambda item: item.with_(name=physical_name(item), nullable=True)))


ID = "parquet.field.id"
"""By which name Spark's reader and writer know the id of a Parquet column."""


def with_ids(fields: Iterable[Field]) -> Any:
    """A pyspark StructType of fields in files, with the ids of column mapping, which Spark's reader and writer know, at every depth."""

    def numbered(item: Field) -> Field:
        number = item.metadata.get(COLUMN_ID)
        return item.with_(name=physical_name(item), nullable=True, metadata={} if number is None else {ID: number})

    return spark_struct(Schema(_each(field, numbered) for field in fields))


def is_renamed_inside(data_type: DataType) -> bool:
    """True if a field within the type has another name in data files."""
    return _any_inside(data_type, lambda item: physical_name(item) != item.name)


def is_mapped_inside(data_type: DataType) -> bool:
    """True if a field within the type has another name or an id in data files."""
    return _any_inside(data_type, lambda item: physical_name(item) != item.name or COLUMN_ID in item.metadata)


def _any_inside(data_type: DataType, test: Callable[[Field], bool]) -> bool:
    if isinstance(data_type, Struct):
        return any(test(item) or _any_inside(item.type, test) for item in data_type.fields)
    return any(_any_inside(getattr(data_type, part), test) for part in ("element", "key", "value") if hasattr(data_type, part))


def _each(field: Field, change: Any) -> Field:
    changed: Field = change(field)
    return changed if isinstance(changed.type, str) else changed.with_(type=map_fields(changed.type, change))
