"""SQL conditions that find nulls where a column's schema does not allow them, at any depth."""

from __future__ import annotations

from deltaic.plan.literal import col
from deltaic.protocol.schema import Array, DataType, Field, Map, Struct, user_types_of


def null_conditions(field: Field) -> list[tuple[str, str]]:
    """Returns (condition, place) for a column and each field, item, key and value in it that may not be null.
    The condition is true if the place holds a null."""
    return _of_field(col(field.name), field, field.name, 0)


def _of_field(text: str, field: Field, place: str, depth: int) -> list[tuple[str, str]]:
    """Returns (condition, place) for a field and for what is nested in it. SQL finds nothing within values of
    a user-defined type."""
    own = [] if field.nullable else [(f"{text} IS NULL", place)]
    return own if user_types_of(field) else own + _inside(text, field.type, place, depth)


def _inside(text: str, data_type: DataType, place: str, depth: int) -> list[tuple[str, str]]:
    if isinstance(data_type, Struct):
        inside = [
            pair
            for item in data_type.fields
            for pair in _of_field(f"{text}.{col(item.name)}", item, f"{place}.{item.name}", depth)
        ]
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
