"""Parses the JSON of schemas (PROTOCOL.md: "Schema Serialization Format"). Depth and number of fields are
bounded, as the text may come from any writer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from deltaic.errors import InvalidArgumentError, ProtocolError, UnsupportedFeatureError
from deltaic.protocol.bounded_json import parse_json
from deltaic.protocol.schema import (
    MAX_DEPTH,
    PRIMITIVES,
    USER_TYPES,
    Array,
    DataType,
    Field,
    Map,
    Struct,
    check_type,
)
from deltaic.sql_text import quote_name

MAX_FIELDS = 100_000
"""Maximum number of fields of a schema, nested ones included; a schema with more is an error."""
# Types that other writers may have written to a log, and that this release does not support.
_LATER_TYPES = re.compile(
    r"(geometry|geography|interval|char|varchar|time|timestamp_nanos|string collate)\b", re.IGNORECASE
)


def parse_schema_string(text: str | bytes) -> Struct:
    """Parses a schemaString. The errors are those of `Schema.from_json`."""
    try:
        value = parse_json(text)
    except (ValueError, RecursionError) as error:
        raise ProtocolError(
            f"the schema is not JSON: {error}", where="schemaString", found=repr(text[:80]), expected="JSON"
        ) from None
    if not isinstance(value, dict) or value.get("type") != "struct":
        raise ProtocolError(
            "the schema is not a struct", where="schemaString", found=text[:80], expected="a struct"
        )
    parsed = _type_from_json(value, "schemaString", 0, [0], {})
    assert isinstance(parsed, Struct)  # as its type is "struct"
    return parsed


def type_from_json(value: Any) -> DataType:
    """Parses a JSON value of `type_to_json`. The errors are those of `Schema.from_json`."""
    return _type_from_json(value, "type", 0, [0], {})


def _type_from_json(
    value: Any, where: str, depth: int, count: list[int], user_types: dict[str, Mapping[str, Any]]
) -> DataType:
    """Parses a type. `count`: a list with the number of fields parsed so far in the whole schema.
    `user_types`: gets the user-defined types that are found up to the next field, by their places."""
    if depth > MAX_DEPTH:
        raise ProtocolError(
            "the schema nests deeper than it may",
            where=where[:200],
            found=f"{depth} types",
            expected=f"at most {MAX_DEPTH}",
        )
    if isinstance(value, dict) and value.get("type") in PRIMITIVES and "fields" not in value:
        value = value["type"]  # PROTOCOL.md's variant section writes {"type": "variant"} for a nested one
    if isinstance(value, str):
        return _name_from_json(value, where)
    kind = value.get("type") if isinstance(value, dict) else None
    if kind == "struct":
        fields = _member(value, "fields", list, where)
        count[0] += len(fields)
        if count[0] > MAX_FIELDS:
            raise ProtocolError(
                "the schema has too many fields",
                where=where,
                found=count[0],
                expected=f"at most {MAX_FIELDS}",
            )
        parsed = [_field_from_json(item, where, depth, count) for item in fields]
        try:
            return Struct(parsed)
        except InvalidArgumentError as error:
            raise ProtocolError(
                error.message, where=where, found=error.found, expected=error.expected
            ).with_values(**error.values) from None
    if kind == "array":
        element = _type_from_json(value.get("elementType"), f"{where}.element", depth + 1, count, user_types)
        return Array(element, _member(value, "containsNull", bool, where))
    if kind == "map":
        key = _type_from_json(value.get("keyType"), f"{where}.key", depth + 1, count, user_types)
        item = _type_from_json(value.get("valueType"), f"{where}.value", depth + 1, count, user_types)
        return Map(key, item, _member(value, "valueContainsNull", bool, where))
    if kind == "udt":  # Spark writes them, PROTOCOL.md does not know them
        user_types[where] = {key: item for key, item in value.items() if key != "sqlType"}
        return _type_from_json(value.get("sqlType"), where, depth + 1, count, user_types)
    raise ProtocolError(
        "not a type",
        where=where,
        found=repr(value)[:80],
        expected="a type's name, a struct, an array or a map",
    )


def _name_from_json(name: str, where: str) -> DataType:
    if name == "null":
        return "void"  # Spark before 3.1
    try:
        return check_type(name)
    except InvalidArgumentError as error:
        shown = repr(name[:80])
        if _LATER_TYPES.match(name):
            raise UnsupportedFeatureError(
                f"the type {shown} is not supported", where=where, found=shown, expected="another type"
            ) from None
        raise ProtocolError(
            error.message, where=where, found=shown, expected="a type of PROTOCOL.md"
        ) from None


def _field_from_json(value: Any, where: str, depth: int, count: list[int]) -> Field:
    if not isinstance(value, dict):
        raise ProtocolError(
            "a field is not an object", where=where, found=repr(value)[:80], expected="an object"
        )
    name = _member(value, "name", str, where)
    where = f"{where}.{quote_name(name)}"
    metadata = value.get("metadata")
    if metadata is not None and not isinstance(metadata, dict):
        raise ProtocolError(
            "metadata is not an object", where=where, found=repr(metadata)[:80], expected="an object"
        )
    user_types: dict[str, Mapping[str, Any]] = {}
    data_type = _type_from_json(value.get("type"), where, depth + 1, count, user_types)
    own = {key: item for key, item in (metadata or {}).items() if key != USER_TYPES}
    if user_types:
        own[USER_TYPES] = {place[len(where) + 1 :]: user_type for place, user_type in user_types.items()}
    return Field(name, data_type, _member(value, "nullable", bool, where), own)


def _member(value: Mapping[str, Any], key: str, kind: type, where: str) -> Any:
    found = value.get(key)
    if not isinstance(found, kind):
        raise ProtocolError(
            f"{key} is missing or not valid", where=where, found=repr(found)[:80], expected=kind.__name__
        )
    return found
