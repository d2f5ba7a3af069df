"""Pads the values of CHAR(n) columns as Spark does: a value shorter than n is padded with spaces.

Spark pads values, and the literals that are compared with them, for a relation whose columns have the type
CHAR in their metadata. Scans that are not such a relation (rows on the driver, unions, reads in tasks) are
padded here, and get the same metadata.
"""

from __future__ import annotations

from typing import Any

from deltaic.engine.spark.settings import is_off, is_on
from deltaic.engine.spark.types import shown, type_to_spark
from deltaic.plan.literal import col, lit
from deltaic.protocol.schema import Array, DataType, Field, Map, Schema, Struct
from deltaic.spark_sql.char_types import LengthLimit, NestedLimit, bounded_type, has_char

AS_STRING = "spark.sql.legacy.charVarcharAsString"
PADDING = "spark.sql.readSideCharPadding"


def compares_padded(spark: Any) -> bool:
    """True if the session compares CHAR columns as padded text, False if it compares the stored text."""
    return not is_on(spark, AS_STRING)


def padded(spark: Any, frame: Any, schema: Schema) -> Any:
    """Returns the frame with padded CHAR columns, if the session's settings ask for it, and with the metadata
    of `schema`."""
    fields = {field.name: field for field in schema if has_char(field)}
    if not fields or not compares_padded(spark):
        return frame
    from pyspark.sql import functions as F

    pads = not is_off(spark, PADDING)

    def column(name: str) -> Any:
        values, field = F.col(col(name)), fields.get(name)
        if field is None:
            return values
        if pads:
            values = F.expr(_padded(col(name), field.type, bounded_type(field), 0))
            if not isinstance(field.type, str):
                values = values.cast(type_to_spark(field.type))
        return values.alias(name, metadata=dict(shown(field, char=_is_whole(field)).metadata))

    return frame.select(*map(column, frame.columns))


def _is_whole(field: Field) -> bool:
    """True if the field has all struct fields that its metadata names. If a scan reads only some fields of a
    struct, Spark cannot apply the metadata."""
    kind = bounded_type(field)
    if not isinstance(kind, NestedLimit) or kind.kind != "struct":
        return True
    return isinstance(field.type, Struct) and [item.name for item in field.type.fields] == [
        name for name, _ in kind.parts
    ]


def _padded(value: str, data_type: DataType, kind: LengthLimit | NestedLimit | None, depth: int) -> str:
    """Returns the SQL of a value with padded CHAR(n) parts: `c` of the type CHAR(5) becomes `rpad(c,
    greatest(length(c), 5), ' ')`."""
    if isinstance(kind, LengthLimit):
        return (
            f"rpad({value}, greatest(length({value}), {kind.length}), ' ')" if kind.name == "char" else value
        )
    if kind is None:
        return value
    item, parts = f"__deltaic_char{depth}", dict(kind.parts)
    if isinstance(data_type, Struct):
        fields = (
            f"{lit(f.name)}, {_padded(f'{value}.{col(f.name)}', f.type, parts.get(f.name), depth)}"
            for f in data_type.fields
        )
        return f"CASE WHEN {value} IS NOT NULL THEN named_struct({', '.join(fields)}) END"
    if isinstance(data_type, Array):
        return (
            f"transform({value}, {item} -> {_padded(item, data_type.element, parts['element'], depth + 1)})"
        )
    assert isinstance(data_type, Map)
    keys = f"transform(map_keys({value}), {item} -> {_padded(item, data_type.key, parts['key'], depth + 1)})"
    values = (
        f"transform(map_values({value}), {item} ->"
        f" {_padded(item, data_type.value, parts['value'], depth + 1)})"
    )
    return f"map_from_arrays({keys}, {values})"
