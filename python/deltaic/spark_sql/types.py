"""Converts types that sqlglot parsed, as in CAST(… AS type), to types of Delta."""

from __future__ import annotations

from sqlglot import exp

from deltaic.errors import InvalidArgumentError
from deltaic.protocol.schema import Array, DataType, Field, Map, Struct, check_type
from deltaic.spark_sql import values as v
from deltaic.spark_sql.interval_types import interval

_NAMES = {
    exp.DataType.Type.TINYINT: "byte",
    exp.DataType.Type.SMALLINT: "short",
    exp.DataType.Type.INT: "integer",
    exp.DataType.Type.BIGINT: "long",
    exp.DataType.Type.FLOAT: "float",
    exp.DataType.Type.DOUBLE: "double",
    exp.DataType.Type.TEXT: "string",
    exp.DataType.Type.BINARY: "binary",
    exp.DataType.Type.BOOLEAN: "boolean",
    exp.DataType.Type.DATE: "date",
    exp.DataType.Type.TIMESTAMPTZ: "timestamp",
    exp.DataType.Type.TIMESTAMPLTZ: "timestamp",
    exp.DataType.Type.TIMESTAMP: "timestamp",
    exp.DataType.Type.TIMESTAMPNTZ: "timestamp_ntz",
    exp.DataType.Type.VARIANT: "variant",
}

_PATH = '$.[]"'


def data_type(node: exp.Expression) -> DataType:
    """Returns Delta's type. Raises UnsupportedFeatureError for a type that expressions cannot have."""
    if not isinstance(node, exp.DataType):
        raise v.unsupported(f"the type {node.sql(dialect='databricks')}")
    if known := _NAMES.get(node.this):
        return known
    if isinstance(node.this, exp.Interval):
        return _interval(node.this)
    inner = node.expressions
    if node.this == exp.DataType.Type.DECIMAL:
        sizes = [int(part.name) for part in inner] or [10, 0]
        precision, scale = sizes[0], sizes[1] if len(sizes) > 1 else 0
        if not (0 < precision <= 38 and 0 <= scale <= precision):
            raise InvalidArgumentError(
                "a decimal has 1 to 38 digits, and a scale of at most as many",
                found=f"decimal({precision},{scale})",
            )
        return v.decimal(precision, scale)
    if node.this in (exp.DataType.Type.GEOMETRY, exp.DataType.Type.GEOGRAPHY):
        return check_type(f"{node.this.value.lower()}({', '.join(_parameter(part.this) for part in inner)})")
    if node.this == exp.DataType.Type.ARRAY and len(inner) == 1:
        return Array(data_type(inner[0]))
    if node.this == exp.DataType.Type.MAP and len(inner) == 2:
        return Map(data_type(inner[0]), data_type(inner[1]))
    if (
        node.this == exp.DataType.Type.STRUCT
        and inner
        and all(isinstance(part, exp.ColumnDef) and part.kind for part in inner)
    ):
        return Struct(Field(part.name, _field_type(part.kind)) for part in inner)
    raise v.unsupported(f"the type {node.sql(dialect='databricks')}")


def _field_type(node: exp.Expression) -> DataType:
    """Returns the type of a struct's field, which may be void: columns of tables have such fields."""
    is_void = isinstance(node, exp.DataType) and node.this == exp.DataType.Type.NULL
    return "void" if is_void else data_type(node)


def _interval(node: exp.Interval) -> DataType:
    unit = node.args.get("unit")
    if unit is None:
        return v.CALENDAR
    first, last = (unit.this, unit.expression) if isinstance(unit, exp.IntervalSpan) else (unit, unit)
    kind = interval(first.name.lower(), last.name.lower())
    if not v.is_interval(kind):
        raise InvalidArgumentError("[PARSE_SYNTAX_ERROR] this interval type does not exist", found=kind)
    return kind


def _parameter(node: exp.Expression) -> str:
    """Returns the parameter of a geographic type as written. The parser takes OGC:CRS84 for a path into a
    variant, `variant_get(OGC, …)`."""
    if isinstance(node, exp.Anonymous) and len(node.expressions) == 2:
        return f"{node.expressions[0].name}:{node.expressions[1].name.strip(_PATH)}"
    return node.name.lower()
