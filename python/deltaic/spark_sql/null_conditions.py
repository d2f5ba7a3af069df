"""SQL conditions for nulls that a column's schema does not allow, at every depth."""

from __future__ import annotations

from deltaic.plan.literal import col
from deltaic.protocol.schema import Array, DataType, Field, Map, Struct


def null_conditions(field: Field) -> list[tuple[str, str]]:
    """(condition under which a null is where none may be, its place) of a column and what is nested in it."""
    return _of_field(col(field.name), field, field.name, 0)


def _of_field(text: str, field: Field, place: str, depth: int) -> list[tuple[str, str]]:
    """(condition under which a null is where none may be, its place)."""
    found = [] if field.nullable else [(f"{text} IS NULL", place)]
    return found + _inside(text, field.type, place, depth)


def _inside(text: str, data_type: DataType, place: str, depth: int) -> list[tuple[str, str]]:
    if isinstance(data_type, Struct):
        inside = [pair for item in data_type.fields for pair in _of_field(f"{text}.{col(item.name)}", item, f"{place}.{item.name}", depth)]
        return [(f"({text} IS NOT NULL AND {condition})", where) for condition, where in inside]
    item = f"__deltaic_item{depth}"
    if isinstance(data_type, Array):
        element = Field("element", data_type.element, data_type.contains_null)
        return [
            (f"exists({text}, {item} -> {condition})", where)
            for condition, where in _of_field(item, element, f"{place}.element", depth + 1)
        ]
    if isinstance(data_type, Map):
        value = Field("value", data_type.value, data_type.value_contains_null)
        inside = _of_field(item, value, f"{place}.value", depth + 1)
        key = _of_field(item, Field("key", data_type.key), f"{place}.key", depth + 1)
        return [
            *((f"exists(map_values({text}), {item} -> {condition})", where) for condition, where in inside),
            *((f"exists(map_keys({text}), {item} -> {condition})", where) for condition, where in key),
        ]
    return []
