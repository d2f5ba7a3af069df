"""CHAR(n) as Spark reads it: values shorter than n end in spaces, and its analyser pads the literals that
are compared with such a column.

Spark does both by itself for a relation whose columns have the type CHAR in their metadata. Scans that do
not come to Spark as one (rows on the driver, unions, reads in tasks) are padded here, with the same
metadata.
"""

from __future__ import annotations

from typing import Any

from deltaic.engine.spark.types import shown, type_to_spark
from deltaic.plan.literal import col, lit
from deltaic.protocol.schema import Array, DataType, Field, Map, Schema, Struct
from deltaic.spark_sql.char_types import LengthLimit, NestedLimit, bounded_type, has_char

AS_STRING = "spark.sql.legacy.charVarcharAsString"
PADDING = "spark.sql.readSideCharPadding"


def compares_padded(spark: Any) -> bool:
    """True if the session compares CHAR columns as padded text, and not as the text that is stored."""
    return str(spark.conf.get(AS_STRING, "false")).lower() != "true"


def padded(spark: Any, frame: Any, schema: Schema) -> Any:
    """The frame with the columns of `schema` that hold CHAR as the session reads them, under their
    metadata."""
    fields = {field.name: field for field in schema if has_char(field)}
    if not fields or not compares_padded(spark):
        return frame
    from pyspark.sql import functions as F

    pads = str(spark.conf.get(PADDING, "true")).lower() != "false"

    def column(name: str) -> Any:
        there, field = F.col(col(name)), fields.get(name)
        if field is None:
            return there
        if pads:
            there = F.expr(_padded(col(name), field.type, bounded_type(field), 0))
            if not isinstance(field.type, str):
                there = there.cast(type_to_spark(field.type))
        return there.alias(name, metadata=dict(shown(field, char=_is_whole(field)).metadata))

    return frame.select(*map(column, frame.columns))


def _is_whole(field: Field) -> bool:
    """True if the field has all that its text of types says: of a struct with one branch left, Spark could
    not read the text."""
    kind = bounded_type(field)
    if not isinstance(kind, NestedLimit) or kind.kind != "struct":
        return True
    return isinstance(field.type, Struct) and [item.name for item in field.type.fields] == [name for name, _ in kind.parts]


def _padded(value: str, data_type: DataType, kind: LengthLimit | NestedLimit | None, depth: int) -> str:
    """SQL of a value whose CHAR(n) parts are padded: `c` becomes `rpad(c, greatest(length(c), 5), ' ')`."""
    if isinstance(kind, LengthLimit):
        return f"rpad({value}, greatest(length({value}), {kind.length}), ' ')" if kind.name == "char" else value
    if kind is None:
        return value
    item, parts = f"__deltaic_char{depth}", dict(kind.parts)
    if isinstance(data_type, Struct):
        fields = (f"{lit(f.name)}, {_padded(f'{value}.{col(f.name)}', f.type, parts.get(f.name), depth)}" for f in data_type.fields)
        return f"CASE WHEN {value} IS NOT NULL THEN named_struct({', '.join(fields)}) END"
    if isinstance(data_type, Array):
        return f"transform({value}, {item} -> {_padded(item, data_type.element, parts['element'], depth + 1)})"
    assert isinstance(data_type, Map)
    keys = f"transform(map_keys({value}), {item} -> {_padded(item, data_type.key, parts['key'], depth + 1)})"
    values = f"transform(map_values({value}), {item} -> {_padded(item, data_type.value, parts['value'], depth + 1)})"
    return f"map_from_arrays({keys}, {values})"
