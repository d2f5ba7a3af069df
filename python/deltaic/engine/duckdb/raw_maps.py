"""Maps that a plan only copies pass through DuckDB as lists of entries: DuckDB refuses a map with a duplicate
key, which files of other writers may contain. Arrow has one layout for both, so no value is copied."""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa

from deltaic.engine.dataset import viewed


def as_entries(data_type: pa.DataType) -> pa.DataType:
    """Returns the type with lists of structs in place of maps."""
    if pa.types.is_map(data_type):
        return pa.list_(
            pa.struct(
                [
                    pa.field("key", as_entries(data_type.key_type)),
                    pa.field("value", as_entries(data_type.item_type)),
                ]
            )
        )
    if pa.types.is_struct(data_type):
        return pa.struct([item.with_type(as_entries(item.type)) for item in data_type])
    if pa.types.is_list(data_type):
        return pa.list_(data_type.value_field.with_type(as_entries(data_type.value_type)))
    return data_type


def as_maps(found: pa.DataType, wanted: pa.DataType) -> pa.DataType:
    """Returns the type with maps again at the places where `wanted` has maps. Keys, values and all other
    types stay those of `found`."""
    if pa.types.is_map(wanted) and pa.types.is_list(found):
        key, value = (found.value_type.field(number).type for number in (0, 1))
        return pa.map_(as_maps(key, wanted.key_type), as_maps(value, wanted.item_type))
    if pa.types.is_struct(wanted) and pa.types.is_struct(found):
        return pa.struct(
            [
                item.with_type(as_maps(item.type, other.type))
                for item, other in zip(found, wanted, strict=True)
            ]
        )
    if pa.types.is_list(wanted) and pa.types.is_list(found):
        return pa.list_(found.value_field.with_type(as_maps(found.value_type, wanted.value_type)))
    return found


def entries_schema(schema: pa.Schema, columns: Collection[str]) -> pa.Schema:
    """Returns the schema with these columns as lists of entries."""
    return pa.schema(
        [item.with_type(as_entries(item.type)) if item.name in columns else item for item in schema]
    )


def with_maps(
    reader: pa.RecordBatchReader, schema: pa.Schema, columns: Collection[str]
) -> pa.RecordBatchReader:
    """Returns the rows with maps in these columns again, as in `schema`."""
    types = [
        as_maps(item.type, schema.field(item.name).type) if item.name in columns else item.type
        for item in reader.schema
    ]
    return viewed(
        reader, pa.schema([item.with_type(kind) for item, kind in zip(reader.schema, types, strict=True)])
    )
