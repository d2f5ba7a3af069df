"""Delta's types and Spark's: the same JSON, less what only the log has use for."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from deltaic.errors import UnsupportedFeatureError
from deltaic.protocol.column_mapping import map_fields, physical_name
from deltaic.protocol.schema import DataType, Field, Schema, Struct


def to_spark(fields: Iterable[Field]) -> Any:
    """A pyspark StructType of these columns, without their metadata."""
    from pyspark.sql.types import StructType

    return StructType.fromJson(json.loads(Schema(map(bare, fields)).to_json()))


def type_to_spark(data_type: DataType) -> Any:
    """A pyspark DataType."""
    return to_spark([Field("t", data_type)])["t"].dataType


_COLLATION = re.compile(r'"__COLLATIONS":\{"((?:[^"\\]|\\.)*)":"([^"]*)"')
"""In Spark's JSON of a schema: the column (`a.element`, ...) and its collation."""


def of_frame(frame: Any) -> Schema:
    """The columns of a DataFrame. UnsupportedFeatureError for text that is compared by a collation: a table would not say so."""
    text = frame.schema.json()
    if collated := _COLLATION.search(text):
        raise UnsupportedFeatureError(
            "text with a collation", where=f"column {collated[1]}", found=collated[2], expected="STRING COLLATE UTF8_BINARY, by a cast"
        )
    return Schema(map(bare, Schema.from_json(text)))


def bare(field: Field) -> Field:
    """The field without metadata, at every depth."""
    return _each(field, lambda item: item.with_(metadata={}))


def in_files(field: Field) -> Field:
    """The field under the names that data files use, at every depth; nothing is sure to be there."""
    return _each(field, lambda item: item.with_(name=physical_name(item), nullable=True, metadata={}))


ID = "parquet.field.id"
"""By which name Spark's reader and writer know the id of a Parquet column."""


def with_ids(fields: Iterable[Field]) -> Any:
    """A pyspark StructType of fields in files, with the ids by which Spark's reader finds their columns at every depth."""
    from pyspark.sql.types import StructType

    def numbered(item: Field) -> Field:
        number = item.metadata.get("delta.columnMapping.id")
        return item.with_(name=physical_name(item), nullable=True, metadata={} if number is None else {ID: number})

    return StructType.fromJson(json.loads(Schema(_each(field, numbered) for field in fields).to_json()))


def is_renamed_inside(data_type: DataType) -> bool:
    """Whether a field within the type has another name in data files."""
    if isinstance(data_type, Struct):
        return any(physical_name(item) != item.name or is_renamed_inside(item.type) for item in data_type.fields)
    return any(is_renamed_inside(getattr(data_type, part)) for part in ("element", "key", "value") if hasattr(data_type, part))


def _each(field: Field, change: Any) -> Field:
    changed: Field = change(field)
    return changed.with_(type=map_fields(changed.type, change))
