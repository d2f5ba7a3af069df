"""Converts types that a query can return and no table can store (nulls without a type, and intervals) from
and to the DuckDB types that stand for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltaic.protocol.schema import Array, DataType, Map, Schema, Struct
from deltaic.spark_sql.interval_types import is_day_time, is_year_month
from deltaic.spark_sql.values import holds

if TYPE_CHECKING:
    import pyarrow as pa
else:
    from deltaic.deferred import pyarrow as pa


def held_types(schema: Schema, *, keep_nulls: bool = False) -> Schema:
    """Returns the columns in the types that DuckDB holds: nulls without a type become integers, and intervals
    numbers."""
    types = [_held(field.type, keep_nulls) for field in schema]
    if all(one is field.type for one, field in zip(types, schema, strict=True)):
        return schema
    return Schema([field.with_(type=one) for field, one in zip(schema, types, strict=True)])


def _held(data_type: DataType, keep_nulls: bool) -> DataType:
    if isinstance(data_type, (Array, Map, Struct)):
        return _nested(data_type) if holds(data_type, is_day_time) else data_type
    if is_day_time(data_type):
        return "long"
    if is_year_month(data_type) or (data_type == "void" and not keep_nulls):
        return "integer"
    return data_type


def _nested(data_type: DataType) -> DataType:
    """Returns a nested type with numbers in place of intervals."""
    if isinstance(data_type, Array):
        return Array(_nested(data_type.element), data_type.contains_null)
    if isinstance(data_type, Map):
        return Map(_nested(data_type.key), _nested(data_type.value), data_type.value_contains_null)
    if isinstance(data_type, Struct):
        return Struct(field.with_(type=_nested(field.type)) for field in data_type.fields)
    return "long" if is_day_time(data_type) else data_type


def shown_type(data_type: DataType, held: pa.DataType) -> pa.DataType:
    """Returns the Arrow type of a result. Intervals of months become `month_day_nano_interval`, because
    pyarrow has no interval of months alone."""
    if is_day_time(data_type):
        return pa.duration("us")
    if isinstance(data_type, Array):
        return pa.list_(held.value_field.with_type(shown_type(data_type.element, held.value_type)))
    if isinstance(data_type, Map):
        key, item = held.key_field, held.item_field
        return pa.map_(
            key.with_type(shown_type(data_type.key, key.type)),
            item.with_type(shown_type(data_type.value, item.type)),
        )
    if isinstance(data_type, Struct):
        return pa.struct(
            [
                held[place].with_type(shown_type(field.type, held[place].type))
                for place, field in enumerate(data_type.fields)
            ]
        )
    return pa.month_day_nano_interval() if is_year_month(data_type) else held


def shown_values(column: pa.Array, data_type: DataType) -> pa.Array:
    """Converts a column of DuckDB to the Arrow type of the result."""
    if data_type == "void":
        return pa.nulls(len(column))
    if holds(data_type, is_day_time):
        return column.cast(shown_type(data_type, column.type))
    if not is_year_month(data_type):
        return column
    # An interval has 16 bytes: months in the first four, then days and nanoseconds, both 0. A decimal of 128
    # bits has the same bytes.
    months = column.view(pa.uint32()).cast(pa.int64()).cast(pa.decimal128(19, 0))
    return pa.Array.from_buffers(
        pa.month_day_nano_interval(), len(months), months.buffers(), offset=months.offset
    )
