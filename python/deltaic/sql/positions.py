"""Columns by position, as INSERT matches them: those of a query, and the fields of structs within them, under the names of a table's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from deltaic.errors import InvalidArgumentError, SchemaMismatchError
from deltaic.protocol.schema import Array, DataType, Field, Map, Schema, Struct
from deltaic.rows.rows import Rows

if TYPE_CHECKING:
    import pyarrow as pa
else:
    from deltaic.deferred import pyarrow as pa


def matched(names: Sequence[str], columns: Sequence[Field], table: str, *, evolves: bool) -> list[Field | None]:
    """The table's column for each of the query's, by position; None for those beyond the last one, which are new columns if the schema
    `evolves`. SchemaMismatchError for another number of columns, InvalidArgumentError for a new one with the name of another."""
    if len(names) < len(columns) or (len(names) > len(columns) and not evolves):
        raise SchemaMismatchError(
            "INSERT needs one value for each column",
            where=table,
            found=f"{len(names)} ({', '.join(names)})",
            expected=f"{len(columns)} ({', '.join(column.name for column in columns)})",
        )
    taken = {column.name.lower() for column in columns}
    for name in names[len(columns) :]:
        if name.lower() in taken:
            raise InvalidArgumentError("a column comes twice", where=table, found=name)
        taken.add(name.lower())
    return [*columns, *([None] * (len(names) - len(columns)))]


def placed(rows: Rows, columns: Sequence[Field | None]) -> Rows:
    """The rows with the names of `columns`, one for each of their columns; None leaves a column its name."""
    fields = Schema(given if wanted is None else named(given, wanted) for given, wanted in zip(rows.schema, columns, strict=True))

    def opened() -> pa.RecordBatchReader:
        reader = rows.to_reader()
        schema = pa.schema([_arrow_field(given, field) for given, field in zip(reader.schema, fields, strict=True)])
        return pa.RecordBatchReader.from_batches(schema, (_viewed(batch, schema) for batch in reader))

    return Rows(fields, opened)


def named(given: Field, wanted: Field) -> Field:
    """The field with the name of `wanted`, and so the fields within; those beyond the last of `wanted` keep theirs."""
    return given.with_(name=wanted.name, type=_named_type(given.type, wanted.type))


def _named_type(given: DataType, wanted: DataType) -> DataType:
    if isinstance(given, Struct) and isinstance(wanted, Struct):
        pairs = zip(given.fields, wanted.fields, strict=False)
        return Struct([*(named(*pair) for pair in pairs), *given.fields[len(wanted.fields) :]])
    if isinstance(given, Array) and isinstance(wanted, Array):
        return Array(_named_item(given.element, wanted.element), given.contains_null)
    if isinstance(given, Map) and isinstance(wanted, Map):
        return Map(_named_item(given.key, wanted.key), _named_item(given.value, wanted.value), given.value_contains_null)
    return given


def _named_item(given: DataType, wanted: DataType) -> DataType:
    """Assigns an element, key or value. Like in delta-spark, structs there are matched by name if no cast is needed."""
    return given if _same_by_name(given, wanted) else _named_type(given, wanted)


def _same_by_name(given: DataType, wanted: DataType) -> bool:
    if isinstance(given, Struct) and isinstance(wanted, Struct):
        types = {item.name.lower(): item.type for item in wanted.fields}
        names = {item.name.lower() for item in given.fields}
        return names == types.keys() and all(_same_by_name(item.type, types[item.name.lower()]) for item in given.fields)
    if isinstance(given, Array) and isinstance(wanted, Array):
        return _same_by_name(given.element, wanted.element)
    if isinstance(given, Map) and isinstance(wanted, Map):
        return _same_by_name(given.key, wanted.key) and _same_by_name(given.value, wanted.value)
    return given == wanted


def _arrow_field(given: pa.Field, named: Field) -> pa.Field:
    return given.with_name(named.name).with_type(_arrow_type(given.type, named.type))


def _arrow_type(given: pa.DataType, named: DataType) -> pa.DataType:
    """Arrow's type of the same values with the names of `named`. Fields may be null: of a struct that is null they are."""
    if isinstance(named, Struct) and pa.types.is_struct(given):
        return pa.struct([_arrow_field(*pair).with_nullable(True) for pair in zip(given.fields, named.fields, strict=True)])
    if isinstance(named, Array) and (pa.types.is_list(given) or pa.types.is_large_list(given)):
        element = given.value_field.with_type(_arrow_type(given.value_type, named.element))
        return pa.large_list(element) if pa.types.is_large_list(given) else pa.list_(element)
    if isinstance(named, Map) and pa.types.is_map(given):
        key = given.key_field.with_type(_arrow_type(given.key_type, named.key))
        value = given.item_field.with_type(_arrow_type(given.item_type, named.value))
        return pa.map_(key, value, keys_sorted=given.keys_sorted)
    return given


def _viewed(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    pairs = zip(batch.columns, schema.types, strict=True)
    return pa.RecordBatch.from_arrays([array if array.type == to else array.view(to) for array, to in pairs], schema=schema)
