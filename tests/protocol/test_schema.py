"""Schemas: JSON and DDL round trips, names, lookups, refusals. Source: PROTOCOL.md, "Schema Serialization
Format"."""

from __future__ import annotations

import json
import pickle
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaic.errors import (
    InvalidArgumentError,
    InvalidTypeError,
    ProtocolError,
    SchemaMismatchError,
    UnsupportedFeatureError,
)
from deltaic.protocol.column_mapping import assign, strip
from deltaic.protocol.evolution import merge_schemas
from deltaic.protocol.schema import (
    MAX_DEPTH,
    Array,
    Field,
    Map,
    Schema,
    Struct,
    path_text,
    split_path,
    type_name,
    type_to_json,
    walk,
)
from deltaic.protocol.schema_parser import type_from_json

PRIMITIVE = st.sampled_from(
    [
        "string",
        "long",
        "integer",
        "short",
        "byte",
        "float",
        "double",
        "boolean",
        "binary",
        "date",
        "timestamp",
        "timestamp_ntz",
        "variant",
    ]
) | st.integers(1, 38).flatmap(
    lambda precision: st.integers(0, precision).map(lambda scale: f"decimal({precision},{scale})")
)
NAME = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
COMMENT = st.text(st.characters(exclude_categories=["Cs"]), max_size=10)


def fields(types, metadata, names=NAME):
    one = st.builds(Field, names, types, st.booleans(), metadata)
    return st.lists(one, max_size=4, unique_by=lambda item: item.name.lower())


JSON_METADATA = st.dictionaries(
    st.text(max_size=5),
    st.booleans() | st.integers() | st.text(max_size=5) | st.lists(st.integers(), max_size=2),
    max_size=2,
)
JSON_TYPES = st.recursive(
    PRIMITIVE,
    lambda inner: (
        st.builds(Array, inner, st.booleans())
        | st.builds(Map, inner, inner, st.booleans())
        | st.builds(Struct, fields(inner, JSON_METADATA))
    ),
    max_leaves=6,
)
DDL_METADATA = st.just({}) | st.builds(lambda text: {"comment": text}, COMMENT)
DDL_TYPES = st.recursive(
    PRIMITIVE,
    lambda inner: (
        st.builds(Array, inner)
        | st.builds(Map, inner, inner)
        | st.builds(Struct, fields(inner, DDL_METADATA))
    ),
    max_leaves=6,
)


@given(fields(JSON_TYPES, JSON_METADATA).map(Schema))
def test_json_round_trip(schema):
    assert Schema.from_json(schema.to_json()) == schema
    assert hash(Schema.from_json(schema.to_json())) == hash(schema)
    assert pickle.loads(pickle.dumps(schema)) == schema


@given(fields(DDL_TYPES, DDL_METADATA).map(Schema))
def test_ddl_round_trip(schema):
    assert Schema.from_ddl(schema.to_ddl()) == schema


@given(st.text(max_size=40))
def test_any_text_as_ddl_is_a_schema_or_a_named_error(text):
    with suppress(InvalidArgumentError, UnsupportedFeatureError):
        Schema.from_ddl(text)


@given(st.lists(NAME, min_size=1, max_size=4))
def test_path_round_trip(path):
    assert split_path(path_text(path)) == tuple(path)


def test_protocol_example():
    """PROTOCOL.md, "Schema Serialization Format", Example."""
    text = (
        '{"type":"struct","fields":[{"name":"a","type":"integer","nullable":false,'
        '"metadata":{"comment":"this is a comment"}},{"name":"b","type":{"type":"struct",'
        '"fields":[{"name":"d","type":"integer","nullable":false,"metadata":{}}]},"nullable":true,'
        '"metadata":{}},{"name":"c","type":{"type":"array","elementType":"integer","containsNull":false},'
        '"nullable":true,"metadata":{}},{"name":"e","type":{"type":"array","elementType":{"type":"struct",'
        '"fields":[{"name":"d","type":"integer","nullable":false,"metadata":{}}]},"containsNull":true},'
        '"nullable":true,"metadata":{}},{"name":"f","type":{"type":"map","keyType":"string",'
        '"valueType":"string","valueContainsNull":true},"nullable":true,"metadata":{}}]}'
    )
    schema = Schema.from_json(text)
    assert schema.to_json() == text
    assert schema.names == ["a", "b", "c", "e", "f"]
    assert schema.field("B").type == Struct([Field("d", "integer", nullable=False)])
    assert schema.field("a").metadata == {"comment": "this is a comment"}
    assert schema.find("E.Element.D") == (("e", "element", "d"), Field("d", "integer", nullable=False))
    assert schema.find("f.value")[1] == Field("value", "string")
    assert [".".join(path) for path, _ in walk(schema)] == ["a", "b", "b.d", "c", "e", "e.element.d", "f"]


def test_nested_variant_as_an_object():
    """PROTOCOL.md's variant section writes a nested variant as an object."""
    assert type_from_json(
        {"type": "array", "elementType": {"type": "variant"}, "containsNull": False}
    ) == Array("variant", False)


def test_spellings():
    assert type_from_json("decimal( 10 , 2 )") == "decimal(10,2)"
    assert type_from_json("decimal") == "decimal(10,0)"
    assert type_from_json("null") == "void"
    assert type_to_json(Map("string", Array("long"), False)) == {
        "type": "map",
        "keyType": "string",
        "valueType": {"type": "array", "elementType": "long", "containsNull": True},
        "valueContainsNull": False,
    }
    assert (
        type_name(Map("string", Array(Struct([Field("my col", "long")]))))
        == "map<string, array<struct<`my col`: long>>>"
    )


def test_ddl():
    """Spark SQL reference: data types, and the column clauses of CREATE TABLE."""
    schema = Schema.from_ddl(
        "id bigint NOT NULL, `my col` struct<a:int, b:array<string>> comment 'it''s', d dec(10,2) default"
        ' coalesce(1, 2) comment "x\\ty", g int generated always as (id + (1) -- c\n), i long generated by'
        " default as identity (start with 5 increment by -1), m map<string,struct<x int not null comment"
        " 'q'>>, t timestamp_ntz, r real /* c */"
    )
    assert schema == Schema(
        [
            Field("id", "long", nullable=False),
            Field(
                "my col",
                Struct([Field("a", "integer"), Field("b", Array("string"))]),
                metadata={"comment": "it's"},
            ),
            Field("d", "decimal(10,2)", metadata={"CURRENT_DEFAULT": "coalesce(1, 2)", "comment": "x\ty"}),
            Field("g", "integer", metadata={"delta.generationExpression": "id + (1) -- c"}),
            Field(
                "i",
                "long",
                metadata={
                    "delta.identity.start": 5,
                    "delta.identity.step": -1,
                    "delta.identity.allowExplicitInsert": True,
                },
            ),
            Field("m", Map("string", Struct([Field("x", "integer", False, {"comment": "q"})]))),
            Field("t", "timestamp_ntz"),
            Field("r", "float"),
        ]
    )
    assert Schema.from_ddl(schema.to_ddl().replace(" -- c", "")) == Schema(
        [f if f.name != "g" else f.with_(metadata={"delta.generationExpression": "id + (1)"}) for f in schema]
    )
    assert Schema.from_ddl("") == Schema()


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("a", "character 2 "),
        ("a foo", "character 3 "),
        ("a int b", "character 7 "),
        ("a int,", "character 7 "),
        ("a struct<b:int", "character 15 "),
        ("a int not", "character 7 "),
        ("a decimal(39)", "character 3 "),
        ("a decimal(3,4)", "character 3 "),
        ("a int comment x", "character 15 "),
        ("`` int", "character 1 "),
        ("a map<int>", "character 10 "),
        ("a int generated always as (b", "character 29 "),
        ("a int generated by default as (b)", "character 31 "),
        ("a int default", "character 14 "),
        ("a " + "array<" * (MAX_DEPTH + 2), "character "),
    ],
)
def test_ddl_errors_name_the_position(text, position):
    with pytest.raises(InvalidArgumentError, match=position):
        Schema.from_ddl(text)


@pytest.mark.parametrize("text", ["a interval day", "a string collate UTF8_LCASE", "a time"])
def test_ddl_types_of_unsupported_features(text):
    with pytest.raises(UnsupportedFeatureError):
        Schema.from_ddl(text)


def deep(levels: int) -> str:
    text = '"long"'
    for _ in range(levels):
        text = '{"type":"array","elementType":' + text + ',"containsNull":true}'
    return '{"type":"struct","fields":[{"name":"a","type":' + text + ',"nullable":true,"metadata":{}}]}'


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("", ProtocolError, "not JSON"),
        ("[" * 100_000, ProtocolError, "not JSON"),
        ('"long"', ProtocolError, "not a struct"),
        ("{}", ProtocolError, "not a struct"),
        ('{"type":"struct"}', ProtocolError, "fields"),
        ('{"type":"struct","fields":[1]}', ProtocolError, "not an object"),
        ('{"type":"struct","fields":[{"type":"long","nullable":true}]}', ProtocolError, "name"),
        (
            '{"type":"struct","fields":[{"name":"a","type":"long"}]}',
            ProtocolError,
            "schemaString.a: nullable",
        ),
        (
            '{"type":"struct","fields":[{"name":"a","type":"long","nullable":true,"metadata":[]}]}',
            ProtocolError,
            "metadata",
        ),
        (
            '{"type":"struct","fields":[{"name":"a","type":"lung","nullable":true,"metadata":{}}]}',
            ProtocolError,
            "no such type",
        ),
        (
            '{"type":"struct","fields":[{"name":"a","type":"decimal(40,2)","nullable":true,"metadata":{}}]}',
            ProtocolError,
            "decimal",
        ),
        (
            '{"type":"struct","fields":[{"name":"a","type":"geometry(4326)","nullable":true,"metadata":{}}]}',
            UnsupportedFeatureError,
            "geometry",
        ),
        (
            '{"type":"struct","fields":[{"name":"a","type":{"type":"udt"},"nullable":true,"metadata":{}}]}',
            ProtocolError,
            "not a type",
        ),
        (
            (
                '{"type":"struct","fields":[{"name":"a","type":{"type":"array","elementType":"long"},'
                '"nullable":true}]}'
            ),
            ProtocolError,
            "containsNull",
        ),
        (
            (
                '{"type":"struct","fields":[{"name":"a","type":"long","nullable":true},{"name":"A",'
                '"type":"long","nullable":true}]}'
            ),
            ProtocolError,
            "differ only in case",
        ),
        (deep(MAX_DEPTH + 1), ProtocolError, "deeper"),
    ],
)
def test_json_errors(text, error, message):
    with pytest.raises(error, match=message):
        Schema.from_json(text)


def test_deep_but_allowed():
    schema = Schema.from_json(deep(MAX_DEPTH - 2))
    assert Schema.from_json(schema.to_json()) == schema
    assert Schema.from_ddl(schema.to_ddl()) == schema


def test_refusals_of_values():
    with pytest.raises(InvalidArgumentError, match="no such type"):
        Field("a", "bigint")
    with pytest.raises(InvalidTypeError):
        Field("a", int)
    with pytest.raises(InvalidTypeError):
        Schema(["a"])
    with pytest.raises(InvalidArgumentError, match="comes twice"):
        Struct([Field("a", "long"), Field("a", "long")])
    with pytest.raises(InvalidArgumentError, match=r"'ab'.*expected abc"):
        Schema.from_ddl("abc int, z int").field("ab")
    with pytest.raises(InvalidArgumentError, match="no field"):
        Schema.from_ddl("a int").find("a.b")
    for path in ["", ".", "a.", "`a", "a`b", "a..b"]:
        with pytest.raises(InvalidArgumentError):
            Schema.from_ddl("a int").find(path)
    for item in [5, b"a int", {"a": "int"}]:
        with pytest.raises(InvalidTypeError):
            Schema.of(item)


def test_immutable_and_a_sequence():
    schema = Schema.of([Field("a.b", "long", metadata={"k": [1]}), Field("c", "string")])
    assert schema.find("a.b")[0] == ("a.b",)
    assert schema.find("`a.b`")[0] == ("a.b",)
    assert schema[0].name == "a.b"
    assert schema[1:] == Schema([Field("c", "string")])
    assert "C" in schema
    assert Field("c", "string") in schema
    assert "x" not in schema
    with pytest.raises(TypeError):
        schema[0].metadata["k"] = 2
    with pytest.raises(AttributeError):
        schema[0].name = "x"
    assert json.loads(json.dumps(schema[0].metadata)) == {"k": [1]}
    assert Schema.of(Struct(list(schema))) == schema


VECTOR = {"type": "udt", "class": "org.example.VectorUDT", "pyClass": "example.VectorUDT"}


def user_type(sql_type: object) -> dict[str, object]:
    return {**VECTOR, "sqlType": sql_type}


@pytest.mark.parametrize(
    "data_type",
    [
        user_type("binary"),
        user_type({"type": "array", "elementType": "double", "containsNull": False}),
        {"type": "array", "elementType": user_type("string"), "containsNull": True},
        {
            "type": "map",
            "keyType": user_type("long"),
            "valueType": {"type": "array", "elementType": user_type("date"), "containsNull": True},
            "valueContainsNull": True,
        },
        {
            "type": "struct",
            "fields": [{"name": "v", "type": user_type("long"), "nullable": True, "metadata": {"k": 1}}],
        },
    ],
)
def test_user_defined_types_stay_in_the_schema(data_type: object) -> None:
    column = {"name": "a", "type": data_type, "nullable": True, "metadata": {"comment": "x"}}
    text = json.dumps({"type": "struct", "fields": [column]})
    schema = Schema.from_json(text)
    assert json.loads(schema.to_json()) == json.loads(text)
    mapped, _ = assign(schema)
    (back,) = json.loads(strip(mapped).to_json())["fields"]
    assert back == column


def test_a_user_defined_type_is_read_as_the_type_of_its_values() -> None:
    inside = {"name": "x", "type": "byte", "nullable": False, "metadata": {}}
    point = user_type({"type": "struct", "fields": [inside]})
    column = {"name": "p", "type": point, "nullable": True, "metadata": {"__USER_TYPES": "of another writer"}}
    (field,) = Schema.from_json(json.dumps({"type": "struct", "fields": [column]}))
    assert field.type == Struct([Field("x", "byte", nullable=False)])
    (mapped,) = assign(Schema([field]))[0]
    assert mapped.type == field.type, "Spark finds the fields of its type by their own names"


def test_no_data_adds_a_field_to_a_user_defined_type() -> None:
    inside = {"name": "x", "type": "byte", "nullable": False, "metadata": {}}
    point = user_type({"type": "struct", "fields": [inside]})
    column = {"name": "p", "type": point, "nullable": True, "metadata": {}}
    table = Schema.from_json(json.dumps({"type": "struct", "fields": [column]}))
    same = Schema([Field("p", Struct([Field("x", "byte")]))])
    assert merge_schemas(table, same) == table
    more = Schema([Field("p", Struct([Field("x", "byte"), Field("y", "byte")]))])
    with pytest.raises(SchemaMismatchError, match="the data's type does not fit"):
        merge_schemas(table, more)
