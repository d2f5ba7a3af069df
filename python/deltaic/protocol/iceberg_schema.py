"""Converts a table's columns to Iceberg's metadata: schema, partition spec, name mapping.

Source: the Apache Iceberg table specification, "Schemas", "Partition Specs", "Column Projection" and their
JSON in appendix C.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from deltaic.errors import ProtocolError
from deltaic.protocol.column_mapping import ID, NESTED_IDS, physical_name
from deltaic.protocol.schema import Array, DataType, Field, Map, Schema, Struct, path_text

FIRST_PARTITION_ID = 1000
_TYPES = {
    "byte": "int",
    "short": "int",
    "integer": "int",
    "long": "long",
    "float": "float",
    "double": "double",
    "boolean": "boolean",
    "string": "string",
    "binary": "binary",
    "date": "date",
    "timestamp": "timestamptz",
    "timestamp_ntz": "timestamp",
    "variant": "variant",
}


class Numbering:
    """Ids of the elements, keys and values below one field. Tables with Iceberg compatibility version 1 have
    none, as they have no arrays and maps."""

    def __init__(self, item: Field) -> None:
        self.ids: Mapping[str, int] = item.metadata.get(NESTED_IDS, {})

    def of(self, path: str) -> int:
        if path not in self.ids:
            raise ProtocolError(
                "an element, key or value has no id", where=path, expected=f"one in {NESTED_IDS}"
            )
        return self.ids[path]


def schema_json(schema: Schema, schema_id: int) -> dict[str, Any]:
    """Returns Iceberg's JSON of a schema, with the ids of column mapping and logical names."""
    return {"type": "struct", "schema-id": schema_id, "fields": [_field(item) for item in schema]}


def _field(item: Field) -> dict[str, Any]:
    field = {"id": _id(item), "name": item.name, "required": not item.nullable}
    field["type"] = _type(item.type, physical_name(item), Numbering(item))
    if comment := item.metadata.get("comment"):
        field["doc"] = comment
    return field


def _id(item: Field) -> int:
    number = item.metadata.get(ID)
    if not isinstance(number, int):
        raise ProtocolError("a column has no id", where=path_text((item.name,)), expected=ID)
    return number


def _type(data_type: DataType, path: str, numbers: Numbering) -> Any:
    if isinstance(data_type, Struct):
        return {"type": "struct", "fields": [_field(item) for item in data_type.fields]}
    if isinstance(data_type, Array):
        below = f"{path}.element"
        return {
            "type": "list",
            "element-id": numbers.of(below),
            "element": _type(data_type.element, below, numbers),
            "element-required": not data_type.contains_null,
        }
    if isinstance(data_type, Map):
        key, value = f"{path}.key", f"{path}.value"
        return {
            "type": "map",
            "key-id": numbers.of(key),
            "key": _type(data_type.key, key, numbers),
            "value-id": numbers.of(value),
            "value": _type(data_type.value, value, numbers),
            "value-required": not data_type.value_contains_null,
        }
    name = str(data_type)
    if name.startswith("decimal"):
        precision, scale = re.findall(r"[0-9]+", name) or ("10", "0")
        return f"decimal({precision}, {scale})"
    return _TYPES["string" if name.startswith(("char(", "varchar(")) else name]


def name_mapping(schema: Schema) -> str:
    """Returns the property `schema.name-mapping.default`: ids by physical name, for files without ids, which
    were written before the table had column mapping."""
    return json.dumps([_mapped(item) for item in schema], separators=(",", ":"))


def _mapped(item: Field) -> dict[str, Any]:
    name = physical_name(item)
    return {"field-id": _id(item), "names": [name], **_below(item.type, name, Numbering(item))}


def _below(data_type: DataType, path: str, numbers: Numbering) -> dict[str, Any]:
    if isinstance(data_type, Struct):
        return {"fields": [_mapped(item) for item in data_type.fields]}
    parts: Sequence[tuple[str, DataType]] = ()
    if isinstance(data_type, Array):
        parts = (("element", data_type.element),)
    elif isinstance(data_type, Map):
        parts = (("key", data_type.key), ("value", data_type.value))
    fields = [
        {"field-id": numbers.of(f"{path}.{name}"), "names": [name], **_below(part, f"{path}.{name}", numbers)}
        for name, part in parts
    ]
    return {"fields": fields} if fields else {}


def partition_fields(schema: Schema, columns: Sequence[str]) -> list[dict[str, Any]]:
    """Returns the fields of the partition spec, one identity transform for each partition column."""
    return [
        {
            "name": name,
            "transform": "identity",
            "source-id": _id(schema.field(name)),
            "field-id": FIRST_PARTITION_ID + at,
        }
        for at, name in enumerate(columns)
    ]


def avro_name(name: str) -> str:
    """Converts a name to one that Avro allows, as Iceberg does: `a b` becomes `a_x20b`, `1a` becomes
    `_1a`."""
    shown = "".join(
        each if each.isascii() and (each.isalnum() or each == "_") else f"_x{ord(each):X}" for each in name
    )
    return f"_{shown}" if shown[:1].isdigit() else shown
