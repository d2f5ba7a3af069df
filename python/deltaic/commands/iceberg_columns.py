"""The columns of an Iceberg table as those of a Delta table, with Iceberg's ids as the ids of column
mapping."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from deltaic.errors import UnsupportedFeatureError
from deltaic.plan.literal import lit
from deltaic.protocol.column_mapping import ID, PHYSICAL_NAME
from deltaic.protocol.schema import Array, DataType, Field, Map, Schema, Struct, path_text
from deltaic.protocol.widening import is_widening, recorded

log = logging.getLogger("deltaic.commands")

# Iceberg's primitive types that Delta has, by Iceberg's name.
TYPES = {
    "boolean": "boolean",
    "int": "integer",
    "long": "long",
    "float": "float",
    "double": "double",
    "date": "date",
    "timestamp": "timestamp_ntz",
    "timestamptz": "timestamp",
    "string": "string",
    "binary": "binary",
    "unknown": "void",
}


def delta_schema(metadata: Any) -> Schema:
    """Returns the current columns. Types that Iceberg has promoted (int to long) are recorded as type
    changes, because older data files have the older types."""
    current = metadata.schema()
    result = Schema([_field(item, ()) for item in current.fields])
    today = {item.field_id: item.field_type for item in all_fields(current)}
    # If the table was set back to an earlier schema, some schemas have wider types than the current one. They
    # are left out, because no live file has them.
    history = [
        {
            item.field_id: item.field_type
            for item in all_fields(schema)
            if _may_become(item.field_type, today.get(item.field_id))
        }
        for schema in [*metadata.schemas, current]
    ]
    types: dict[int, Any] = {}
    for known in reversed(history):
        types |= known  # columns that were added later begin with their first types
    earlier: list[Schema] = []
    for known in history:
        types |= {field_id: found for field_id, found in known.items() if _may_become(types[field_id], found)}
        before = Schema([_as_before(item, types) for item in current.fields])
        if not earlier or before != earlier[-1]:
            earlier.append(before)
    for before, after in pairwise(earlier):
        result = _with_changes(result, recorded(before, after))
    return result


def all_fields(schema: Any) -> list[Any]:
    from pyiceberg.schema import index_by_id

    return list(index_by_id(schema).values())


def _may_become(before: Any, after: Any) -> bool:
    """True if values of one Iceberg type can be values of the other one (None: of no column)."""
    if after is None or not before.is_primitive or not after.is_primitive or before == after:
        return bool(before == after)
    one, other = str(_primitive(before, ())), str(_primitive(after, ()))
    return one in (other, "void") or is_widening(one, other)


def _as_before(item: Any, types: Mapping[int, Any]) -> Field:
    """Returns a current column with the primitive types that `types` has by id."""
    return Field(item.name, _type_as_before(item.field_id, item.field_type, types))


def _type_as_before(field_id: int, today: Any, types: Mapping[int, Any]) -> DataType:
    if today.is_struct:
        return Struct([_as_before(item, types) for item in today.fields])
    if hasattr(today, "element_id"):
        return Array(_type_as_before(today.element_id, today.element_type, types))
    if hasattr(today, "key_id"):
        key = _type_as_before(today.key_id, today.key_type, types)
        return Map(key, _type_as_before(today.value_id, today.value_type, types))
    before = types.get(field_id, today)
    return _primitive(before if before.is_primitive else today, ())


def _with_changes(schema: Schema, noted: Schema) -> Schema:
    """Returns the schema with the type changes of `noted`, which has the same columns, after its own."""
    return Schema([_changed(mine, other) for mine, other in zip(schema, noted, strict=True)])


def _changed(mine: Field, other: Field) -> Field:
    key = "delta.typeChanges"
    data_type = _type_changed(mine.type, other.type)
    changes = [*mine.metadata.get(key, []), *other.metadata.get(key, [])]
    return mine.with_(type=data_type, metadata={**mine.metadata, key: changes} if changes else mine.metadata)


def _type_changed(mine: DataType, other: DataType) -> DataType:
    if isinstance(mine, Struct) and isinstance(other, Struct):
        return Struct([_changed(one, two) for one, two in zip(mine.fields, other.fields, strict=True)])
    if isinstance(mine, Array) and isinstance(other, Array):
        return Array(_type_changed(mine.element, other.element), mine.contains_null)
    if isinstance(mine, Map) and isinstance(other, Map):
        return Map(
            _type_changed(mine.key, other.key),
            _type_changed(mine.value, other.value),
            mine.value_contains_null,
        )
    return mine


def _field(item: Any, above: tuple[str, ...]) -> Field:
    path = (*above, item.name)
    metadata: dict[str, Any] = {ID: item.field_id, PHYSICAL_NAME: item.name}
    if item.doc:
        metadata["comment"] = item.doc
    if item.write_default is not None and not above:
        metadata["CURRENT_DEFAULT"] = lit(item.write_default)
    elif item.write_default is not None:
        log.warning(
            "column %s: Delta has no defaults of fields in structs, so its write-default is left out",
            path_text(path),
        )
    return Field(item.name, _type(item.field_type, path), nullable=not item.required, metadata=metadata)


def _type(found: Any, path: tuple[str, ...]) -> DataType:
    if found.is_struct:
        return Struct([_field(item, path) for item in found.fields])
    if hasattr(found, "element_id"):
        return Array(_type(found.element_type, (*path, "element")), not found.element_required)
    if hasattr(found, "key_id"):
        key, value = _type(found.key_type, (*path, "key")), _type(found.value_type, (*path, "value"))
        return Map(key, value, not found.value_required)
    return _primitive(found, path)


def _primitive(found: Any, path: tuple[str, ...]) -> DataType:
    name = str(found)
    if match := re.fullmatch(r"decimal\(\s*([0-9]+),\s*([0-9]+)\)", name):
        return f"decimal({match[1]},{match[2]})"
    if re.fullmatch(r"fixed\[[0-9]+\]", name):
        return "binary"
    if name not in TYPES:
        raise UnsupportedFeatureError(
            "a column has an Iceberg type that Delta does not have",
            where=f"column {path_text(path)}",
            found=name,
            expected=_shown_types(),
        )
    return TYPES[name]


def _shown_types() -> str:
    return ", ".join(
        [*(name for name in TYPES if name != "unknown"), "decimal", "fixed", "struct, list or map"]
    )
