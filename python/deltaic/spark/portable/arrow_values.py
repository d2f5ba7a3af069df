"""Arrow data between Delta's types and those that PySpark wants: the same values under other labels.

They differ in variants (Spark has the value first), in the nullability that Spark gives a column, and in the zone's name of timestamps.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from deltaic.errors import SchemaMismatchError
from deltaic.protocol.column_mapping import map_fields
from deltaic.protocol.evolution import nullable_everywhere
from deltaic.protocol.schema import Field, Schema

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_KEPT = ("comment", "__CHAR_VARCHAR_TYPE_STRING")
"""What of a column's metadata Spark's side is to see; the rest is the table's own."""


def spark_schema(schema: Schema) -> StructType:
    """The columns as Spark's StructType."""
    from pyspark.sql.types import StructType

    return StructType.fromJson(json.loads(Schema([_shown(item) for item in schema]).to_json()))


def delta_schema(schema: StructType) -> Schema:
    """Spark's columns as Delta's; UnsupportedFeatureError names a type that Delta has not."""
    return Schema.from_json(json.dumps(schema.jsonValue()))


def written_schema(schema: StructType) -> Schema:
    """The columns of a DataFrame as those of a table that it makes: all take null, as with delta-spark. That Spark knows of no null in a
    column is no promise of those who append to it."""
    return Schema([item.with_(nullable=True, type=nullable_everywhere(item.type)) for item in delta_schema(schema)])


def _shown(item: Field) -> Field:
    kept = {name: value for name, value in item.metadata.items() if name in _KEPT}
    return item.with_(type=map_fields(item.type, _shown), metadata=kept)


def spark_arrow_schema(schema: StructType) -> pa.Schema:
    """The Arrow schema that PySpark checks batches against, whatever its version calls the time zone."""
    from pyspark.sql.pandas.types import to_arrow_schema

    zoned = "timezone" in inspect.signature(to_arrow_schema).parameters
    return to_arrow_schema(schema, timezone="UTC") if zoned else to_arrow_schema(schema)


def relabelled(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The same columns, by position, under another schema."""
    for batch in batches:
        yield as_schema(batch, schema)


def as_schema(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """SchemaMismatchError where it has another number of columns."""
    if batch.schema.equals(schema):
        return batch
    if batch.num_columns != len(schema):
        raise SchemaMismatchError("a batch with other columns", found=batch.schema.names, expected=schema.names)
    columns = [as_type(column, item.type) for column, item in zip(batch.columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def as_type(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    """The same values as another type of the same shape: fields of structs by name, timestamps of the same instants."""
    if array.type.equals(wanted):
        return array
    missing = array.is_null() if array.null_count else None
    if pa.types.is_struct(wanted):
        children = [as_type(array.field(item.name), item.type) for item in wanted]
        return pa.StructArray.from_arrays(children, fields=list(wanted), mask=missing)
    if pa.types.is_map(wanted):
        keys, items = as_type(array.keys, wanted.key_type), as_type(array.items, wanted.item_type)
        return pa.MapArray.from_arrays(_offsets(array), keys, items, type=wanted, mask=missing)
    if pa.types.is_list(wanted):
        return pa.ListArray.from_arrays(_offsets(array), as_type(array.values, wanted.value_type), type=wanted, mask=missing)
    return array.cast(wanted)


def _offsets(array: Any) -> pa.Array:
    """Where its lists begin and end, as an array that is no slice: pyarrow takes no mask beside one."""
    offsets = array.offsets
    return pa.concat_arrays([offsets, offsets[:0]]) if offsets.offset else offsets
