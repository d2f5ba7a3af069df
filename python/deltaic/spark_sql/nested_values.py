"""SQL that groups, compares and sorts arrays and structs in Spark's order.

Spark sorts a null inside an array or struct before any other value, DuckDB after. A sort key therefore adds a
flag to each value inside: `[1, NULL]` becomes `[{n: true, v: 1}, {n: false, v: NULL}]`, as false sorts before
true.
"""

from __future__ import annotations

from deltaic.protocol.schema import Array, DataType, Map, Struct
from deltaic.spark_sql import values as v
from deltaic.spark_sql.values import Value


def is_sortable(kind: DataType) -> bool:
    """True if values of this type have an order in Spark: all types except those with a map or variant at any
    depth."""
    return kind != "void" and v.is_comparable(kind)


def sort_key(sql: str, kind: DataType, depth: int = 0) -> str:
    """Returns SQL of a sort key: DuckDB orders the keys as Spark orders the values. A value that is no array
    or struct is its own key."""
    if isinstance(kind, Array):
        item = f"deltaic_k{depth}"
        return f"list_transform({sql}, lambda {item}: {_flagged(item, kind.element, depth + 1)})"
    if isinstance(kind, Struct):
        parts = [
            f"f{place} := {_flagged(f'struct_extract({sql}, {v.text(field.name)})', field.type, depth + 1)}"
            for place, field in enumerate(kind.fields)
        ]
        return f"(CASE WHEN {sql} IS NOT NULL THEN struct_pack({', '.join(parts)}) END)"
    return sql


def _flagged(sql: str, kind: DataType, depth: int) -> str:
    return f"struct_pack(n := {sql} IS NOT NULL, v := {sort_key(sql, kind, depth)})"


def with_one_zero(sql: str, kind: DataType, depth: int = 0) -> str:
    """Returns SQL of a value in which, at any depth, -0.0 becomes 0.0 and every NaN the same NaN."""
    if not v.holds_fraction(kind):
        return sql
    if isinstance(kind, Array):
        item = f"deltaic_z{depth}"
        return f"list_transform({sql}, lambda {item}: {with_one_zero(item, kind.element, depth + 1)})"
    if isinstance(kind, Struct):
        parts = [
            f"{v.name(field.name)} :="
            f" {with_one_zero(f'struct_extract({sql}, {v.text(field.name)})', field.type, depth + 1)}"
            for field in kind.fields
        ]
        return f"(CASE WHEN {sql} IS NOT NULL THEN struct_pack({', '.join(parts)}) END)"
    name = v.duckdb_type(kind)
    return (
        f"(CASE WHEN {sql} = 0 THEN CAST(0 AS {name}) WHEN isnan({sql}) THEN CAST('NaN' AS {name}) ELSE {sql}"
        " END)"
    )


def grouped(value: Value) -> Value:
    """SQL of a key of GROUP BY. Maps are equal that have the same entries in any order; Spark shows these in
    the order of their keys."""
    kind = value.type
    if (
        not isinstance(kind, Map)
        or not isinstance(kind.key, str)
        or not v.is_comparable(kind.key)
        or v.holds_fraction(kind)
    ):
        return normalized(value)
    if not v.is_comparable(kind.value):
        raise v.unsupported("grouping", kind)
    entries = f"list_sort(map_entries({value.sql}))"
    return value.like(f"(CASE WHEN {value.sql} IS NOT NULL THEN map_from_entries({entries}) END)", kind)


def normalized(value: Value) -> Value:
    """Returns a value as Spark groups by it: -0.0 becomes 0.0, and every NaN the same NaN. Raises
    UnsupportedFeatureError for a type that cannot be grouped by."""
    if not v.is_comparable(value.type):
        raise v.unsupported("grouping", value.type)
    return (
        value.like(with_one_zero(value.sql, value.type), value.type)
        if v.holds_fraction(value.type)
        else value
    )
