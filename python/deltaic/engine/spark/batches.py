"""Arrow batches between Spark's workers and our own readers and writers: the same values under the types that each side wants to see."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from deltaic.errors import SchemaMismatchError

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


def relabelled(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The batch's columns, by position, under another schema."""
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
    """The array's values as another type of the same shape: fields of structs by name, timestamps of the same instants."""
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
    """Offsets of a list array, copied if the array is a slice: pyarrow takes no mask beside sliced offsets."""
    offsets = array.offsets
    return pa.concat_arrays([offsets, offsets[:0]]) if offsets.offset else offsets


def to_bytes(table: pa.Table) -> bytes:
    """A table as an Arrow stream: how actions travel between the driver and tasks."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def of_bytes(data: bytes) -> pa.Table:
    """The table of `to_bytes`."""
    return pa.ipc.open_stream(data).read_all()


def spark_arrow_schema(schema: StructType) -> pa.Schema:
    """The Arrow schema that PySpark checks batches against, whatever its version calls the time zone."""
    from pyspark.sql.pandas.types import to_arrow_schema

    zoned = "timezone" in inspect.signature(to_arrow_schema).parameters
    return to_arrow_schema(schema, timezone="UTC") if zoned else to_arrow_schema(schema)
