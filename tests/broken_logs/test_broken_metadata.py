"""metaData actions and schemas that are broken (PROTOCOL.md, "Change Metadata", "Schema Serialization
Format", "Column Mapping")."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bounded import Bounded
from healthy import AT_2, FIELDS, METADATA, Case, Fails, Reads, Table, check, text

HEALTHY = Reads(AT_2)
LINE = f"{0:020}.json:3"  # the place of the definition


def metadata(**fields: Any) -> Callable[[Table], None]:
    return lambda table: table.change(0, "metaData", **fields)


def schema(value: Any) -> Callable[[Table], None]:
    """`value`: the schema's JSON as text, or the value that becomes this text."""
    return metadata(schemaString=value if isinstance(value, str) else json.dumps(value))


def fields(*more: dict[str, Any], first: dict[str, Any] | None = None) -> Callable[[Table], None]:
    """Fields besides the two, and what is changed in the first; ... takes a part out."""
    changed = {key: value for key, value in {**FIELDS[0], **(first or {})}.items() if value is not ...}
    return schema({"type": "struct", "fields": [changed, *FIELDS[1:], *more]})


def typed(data_type: Any) -> Callable[[Table], None]:
    return fields({"name": "b", "type": data_type, "nullable": True, "metadata": {}})


def mapped(mode: str, *columns: dict[str, Any]) -> Callable[[Table], None]:
    def apply(table: Table) -> None:
        table.change(0, "protocol", minReaderVersion=2, minWriterVersion=5)
        named = [{**field, "metadata": extra} for field, extra in zip(FIELDS, columns, strict=True)]
        table.change(
            0,
            "metaData",
            configuration={"delta.columnMapping.mode": mode},
            schemaString=text({"type": "struct", "fields": named}),
        )

    return apply


def physical(name: str | None, number: Any) -> dict[str, Any]:
    parts = {"delta.columnMapping.physicalName": name, "delta.columnMapping.id": number}
    return {key: value for key, value in parts.items() if value is not None}


def bad(found: str, expected: str, where: str = LINE, error: str = "ProtocolError") -> Fails:
    return Fails(error, where, found, expected)


CASES = [
    # --- the action
    Case("no id", metadata(id=...), bad("None", "text")),
    Case("an id of a number", metadata(id=5), bad("5", "text")),
    Case("no schema", metadata(schemaString=...), bad("None", "text")),
    Case(
        "a schema that is no text",
        metadata(schemaString={"type": "struct", "fields": []}),
        bad("{'type'", "text"),
    ),
    Case("no format", metadata(format=...), bad("None", "an object")),
    Case("a format as text", metadata(format="parquet"), bad("'parquet'", "an object")),
    Case("another format", metadata(format={"provider": "orc", "options": {}}), bad("'orc'", "'parquet'")),
    Case("no columns of partitions", metadata(partitionColumns=...), bad("None", "a list of text")),
    Case("columns of partitions of null", metadata(partitionColumns=None), bad("None", "a list of text")),
    Case("columns of partitions as text", metadata(partitionColumns="p"), bad("'p'", "a list of text")),
    Case("columns of partitions as numbers", metadata(partitionColumns=[1]), bad("[1]", "a list of text")),
    Case(
        "a column of partitions that is not there",
        metadata(partitionColumns=["p", "q"]),
        bad("q", "a column of the schema"),
    ),
    Case("a column of partitions twice", metadata(partitionColumns=["p", "p"]), bad("p", "once")),
    Case("a name that is a number", metadata(name=5), bad("5", "text")),
    Case("a time that is text", metadata(createdTime="now"), bad("'now'", "milliseconds")),
    Case("properties as a list", metadata(configuration=[]), bad("[]", "an object of text")),
    Case(
        "a property that is a number",
        metadata(configuration={"delta.checkpointInterval": 10}),
        bad("10", "text"),
    ),
    Case("a property of null", metadata(configuration={"x": None}), HEALTHY),
    Case("no properties", metadata(configuration=...), bad("None", "an object of text")),
    Case(
        "a field twice",
        lambda t: t.replace(0, '"partitionColumns":["p"]', '"partitionColumns":["p"],"partitionColumns":[]'),
        bad("partitionColumns", "once"),
    ),
    Case(
        "a later one that is broken",
        lambda t: t.append(1, {"metaData": {**METADATA, "id": None}}),
        bad("None", "text", f"{1:020}.json:3"),
    ),
    Case(
        "a refresh to a broken one",
        lambda t: t.append(2, {"metaData": {**METADATA, "id": None}}),
        bad("None", "text", f"{2:020}.json:4"),
        "refresh",
    ),
    # --- the schema as JSON
    Case("an empty schema", schema(""), bad("''", "JSON")),
    Case("a schema that is cut off", schema(METADATA["schemaString"][:-3]), bad("{", "JSON")),
    Case("a schema that is a number", schema("5"), bad("5", "a struct")),
    Case("a schema that is a type", schema('"long"'), bad("long", "a struct")),
    Case("a schema of null", schema("null"), bad("null", "a struct")),
    Case(
        "a schema that is an array",
        schema({"type": "array", "elementType": "long", "containsNull": True}),
        bad("array", "a struct"),
    ),
    Case("a schema without fields", schema({"type": "struct"}), bad("None", "list")),
    Case("fields as an object", schema({"type": "struct", "fields": {}}), bad("{}", "list")),
    Case("a field that is text", schema({"type": "struct", "fields": ["a"]}), bad("'a'", "an object")),
    # --- fields
    Case("a field without a name", fields(first={"name": ...}), bad("None", "str")),
    Case("a name that is a list", fields(first={"name": ["a"]}), bad("['a']", "str")),
    Case("a field without a type", fields(first={"type": ...}), bad("None", "a type's name")),
    Case("a field that may be null or not", fields(first={"nullable": "true"}), bad("'true'", "bool")),
    Case("metadata of a field as text", fields(first={"metadata": "x"}), bad("'x'", "an object")),
    Case("no metadata of a field", fields(first={"metadata": None}), HEALTHY),
    Case("a column twice", fields(FIELDS[0]), bad("'a'", "unique names")),
    Case("columns that differ in case", fields({**FIELDS[0], "name": "A"}), bad("'A'", "unique names")),
    Case(
        "columns of a struct that differ in case",
        typed({"type": "struct", "fields": [FIELDS[0], {**FIELDS[0], "name": "A"}]}),
        bad("'A'", "unique names"),
    ),
    # --- types
    Case("a type that nobody knows", typed("frob"), bad("frob", "a type of PROTOCOL.md")),
    Case("a type in another case", typed("LONG"), bad("LONG", "a type of PROTOCOL.md")),
    Case("a decimal that is too wide", typed("decimal(39,0)"), bad("decimal(39,0)", "a type of PROTOCOL.md")),
    Case(
        "a decimal with more places than digits",
        typed("decimal(5,6)"),
        bad("decimal(5,6)", "a type of PROTOCOL.md"),
    ),
    Case(
        "a decimal with a negative scale",
        typed("decimal(5,-2)"),
        bad("decimal(5,-2)", "a type of PROTOCOL.md"),
    ),
    Case("a decimal of letters", typed("decimal(x,y)"), bad("decimal(x,y)", "a type of PROTOCOL.md")),
    Case(
        "an array without elements",
        typed({"type": "array", "containsNull": True}),
        bad("None", "a type's name"),
    ),
    Case(
        "an array that does not say of null",
        typed({"type": "array", "elementType": "long"}),
        bad("None", "bool"),
    ),
    Case(
        "a map without values",
        typed({"type": "map", "keyType": "string", "valueContainsNull": True}),
        bad("None", "a type's name"),
    ),
    Case("a struct that is a text", typed("struct"), bad("struct", "a type of PROTOCOL.md")),
    Case(
        "a type of the user without a type of its values",
        typed({"type": "udt", "class": "x"}),
        bad("None", "a type's name"),
    ),
    # --- mapped names
    Case("a mode of mapping that nobody knows", mapped("uuid", {}, {}), bad("uuid", "none, name, id")),
    Case(
        "mapped by name, without names",
        mapped("name", {}, {}),
        bad("no physical name", "delta.columnMapping.physicalName"),
    ),
    Case(
        "two columns of one physical name",
        mapped("name", physical("x", 1), physical("x", 2)),
        bad("x", "a name of its own"),
    ),
    Case(
        "mapped by id, without ids",
        mapped("id", physical("x", None), physical("y", None)),
        bad("no id", "delta.columnMapping.id"),
    ),
    Case(
        "two columns of one id",
        mapped("id", physical("x", 1), physical("y", 1)),
        bad("1", "an id of its own"),
    ),
    Case(
        "an id that is text",
        mapped("id", physical("x", "1"), physical("y", 2)),
        bad("no id that is a whole number", "delta.columnMapping.id"),
    ),
    Case(
        "mapping without the feature", metadata(configuration={"delta.columnMapping.mode": "name"}), HEALTHY
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_broken_metadata(case: Case, tmp_path: Path, bounded: Bounded) -> None:
    check(case, tmp_path, bounded)
