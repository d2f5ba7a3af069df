"""Converts Arrow batches that pass between Spark's Python workers and `_core`. The two sides use different
Arrow types for the same values, such as timestamps with different names of UTC."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from deltaic import _core
from deltaic.errors import SchemaMismatchError

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from deltaic.protocol.schema import Schema

_COLUMN = re.compile(r"[Cc]olumn (\d+)")


def relabelled(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yields each batch under another schema, as `as_schema` does. Raises SchemaMismatchError for text that
    is not UTF-8."""
    for batch in batches:
        if (position := invalid_text(batch)) is not None:
            raise SchemaMismatchError(
                "text that is not UTF-8",
                where=f"column {batch.schema.names[position]}",
                expected="UTF-8; cast the column to binary to keep its bytes",
            )
        yield as_schema(batch, schema)


def invalid_text(data: pa.RecordBatch | pa.Table) -> int | None:
    """Returns the position of the first column with text that is not UTF-8; None if there is none. Spark does
    not look at the bytes of text, as in `CAST(X'ff' AS STRING)`, but `_core` relies on them."""
    try:
        data.validate(full=True)
    except pa.ArrowInvalid as error:  # "In column 0: Invalid: Invalid UTF8 sequence at string index 1"
        if "UTF8" in str(error) and (place := _COLUMN.search(str(error))):
            return int(place[1])
    return None


def as_schema(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Returns a batch with the same columns, matched by position, under another schema. Raises
    SchemaMismatchError if the number of columns differs."""
    if batch.schema.equals(schema):
        return batch
    if batch.num_columns != len(schema):
        raise SchemaMismatchError(
            "a batch has another number of columns", found=batch.schema.names, expected=schema.names
        )
    columns = [as_type(column, item.type) for column, item in zip(batch.columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def as_type(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Returns the array's values under another type with the same nesting. Struct fields are matched by name;
    a timestamp stays the same instant."""
    if array.type.equals(target):
        return array
    nulls = array.is_null() if array.null_count else None
    if pa.types.is_struct(target):
        children = [as_type(array.field(item.name), item.type) for item in target]
        return pa.StructArray.from_arrays(children, fields=list(target), mask=nulls)
    if pa.types.is_map(target):
        keys, items = as_type(array.keys, target.key_type), as_type(array.items, target.item_type)
        return pa.MapArray.from_arrays(_offsets(array), keys, items, type=target, mask=nulls)
    if pa.types.is_list(target):
        return pa.ListArray.from_arrays(
            _offsets(array), as_type(array.values, target.value_type), type=target, mask=nulls
        )
    return array.cast(target)


def _offsets(array: Any) -> pa.Array:
    """Returns the offsets of a list or map array. The offsets of a slice are copied, because pyarrow does not
    accept a mask together with sliced offsets."""
    offsets = array.offsets
    return pa.concat_arrays([offsets, offsets[:0]]) if offsets.offset else offsets


def declared(table: pa.Table, schema: Schema) -> pa.Table:
    """Returns rows of Spark with the Arrow types and the metadata of a schema."""
    of_core = _core.TableSchema(schema.to_json())
    rows, wanted = _core.conform(table, of_core).to_table(), of_core.to_arrow()
    return (
        rows
        if rows.schema.equals(wanted, check_metadata=True)
        else pa.Table.from_arrays(rows.columns, schema=wanted)
    )


def to_bytes(table: pa.Table) -> bytes:
    """Converts a table to the bytes of an Arrow stream, the form in which the driver and tasks send add
    actions."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def of_bytes(data: bytes) -> pa.Table:
    """Converts the bytes of an Arrow stream to a table."""
    return pa.ipc.open_stream(data).read_all()


def spark_arrow_schema(schema: StructType) -> pa.Schema:
    """Returns the Arrow schema against which PySpark checks the batches that a task returns. Versions of
    PySpark differ in whether the time zone is an argument."""
    from pyspark.sql.pandas.types import to_arrow_schema

    zoned = "timezone" in inspect.signature(to_arrow_schema).parameters
    return to_arrow_schema(schema, timezone="UTC") if zoned else to_arrow_schema(schema)
