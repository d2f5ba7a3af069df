"""Merging of schemas and store assignment. Sources: Spark's ANSI store assignment, delta-spark's schema
merging."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from deltaic.errors import SchemaMismatchError
from deltaic.protocol.evolution import (
    can_store,
    check_fits,
    check_nullability,
    merge_schemas,
    replaced_schema,
)
from deltaic.protocol.schema import Array, Field, Map, Schema, Struct, walk

NAMES = st.sampled_from(["a", "B", "c", "dd"])


def some_fields(types):
    metadata = st.sampled_from([{}, {"comment": "x"}])
    return st.lists(
        st.builds(Field, NAMES, types, st.booleans(), metadata),
        max_size=4,
        unique_by=lambda item: item.name.lower(),
    )


TYPES = st.recursive(
    st.sampled_from(["long", "string"]),
    lambda inner: (
        st.builds(Array, inner)
        | st.builds(Map, st.just("string"), inner)
        | st.builds(Struct, some_fields(inner))
    ),
    max_leaves=5,
)


SCHEMAS = some_fields(TYPES).map(Schema)


def merged(left, right):
    try:
        return merge_schemas(left, right)
    except SchemaMismatchError:
        assume(False)


@given(SCHEMAS)
def test_merging_a_schema_with_itself_changes_nothing(schema):
    assert merge_schemas(schema, schema) == schema
    check_fits(schema, schema)


@given(SCHEMAS, SCHEMAS)
def test_merge_laws(table, data):
    result = merged(table, data)
    assert merge_schemas(result, data) == result
    check_fits(result, data)
    assert result.names[: len(table)] == table.names
    old = dict(walk(table))
    for path, item in walk(result):
        if path in old:
            assert (item.nullable, item.metadata) == (old[path].nullable, old[path].metadata)
        else:
            assert item.nullable
    lower = {tuple(part.lower() for part in path) for path, _ in walk(result)}
    assert {tuple(part.lower() for part in path) for path, _ in [*walk(table), *walk(data)]} == lower


@given(SCHEMAS, SCHEMAS, SCHEMAS)
def test_merge_is_associative_in_its_fields(one, two, three):
    left = merged(merged(one, two), three)
    right = merged(one, merged(two, three))
    assert {path for path, _ in walk(left)} == {path for path, _ in walk(right)}


def test_new_columns_and_fields_join_at_the_end():
    table = Schema.from_ddl(
        "id bigint not null, s struct<a: int>, l array<struct<a: int>>, m map<string, struct<a: int>>"
    )
    data = Schema.from_ddl(
        "N decimal(5,2) comment 'c', M map<string, struct<b: int not null>>, l array<struct<b: int, A: int>>,"
        " S struct<b: date>, ID int"
    )
    assert merge_schemas(table, data) == Schema(
        [
            Field("id", "long", nullable=False),
            Field("s", Struct([Field("a", "integer"), Field("b", "date")])),
            Field("l", Array(Struct([Field("a", "integer"), Field("b", "integer")]))),
            Field("m", Map("string", Struct([Field("a", "integer"), Field("b", "integer")]))),
            Field("N", "decimal(5,2)", metadata={"comment": "c"}),
        ]
    )


def test_new_fields_come_without_ids_and_nullable_all_the_way():
    foreign = Field(
        "n",
        Array(Struct([Field("x", "long", False, {"delta.columnMapping.id": 7})]), False),
        False,
        {"delta.columnMapping.physicalName": "p", "k": 1},
    )
    result = merge_schemas(Schema.from_ddl("a int"), Schema([foreign]))
    assert result.field("n") == Field("n", Array(Struct([Field("x", "long")]), True), True, {"k": 1})
    assert replaced_schema(Schema([foreign])).field("n").metadata == {"k": 1}


@pytest.mark.parametrize(
    ("table", "data", "where", "types"),
    [
        ("a int", "a date", "a", ("date", "integer")),
        ("a int", "a string", "a", ("string", "integer")),
        ("s struct<x: int>", "s struct<X: array<int>>", r"s\.x", ("array<integer>", "integer")),
        ("l array<int>", "l array<boolean>", r"l\.element", ("boolean", "integer")),
        ("m map<string, date>", "m map<string, int>", r"m\.value", ("integer", "date")),
        ("a array<int>", "a map<int, int>", "a", ("map<integer, integer>", "array<integer>")),
    ],
)
def test_conflicts_name_the_path_and_both_types(table, data, where, types):
    with pytest.raises(SchemaMismatchError, match=rf"^{where}: ") as caught:
        merge_schemas(Schema.from_ddl(table), Schema.from_ddl(data))
    assert (caught.value.found, caught.value.expected) == types


def test_void():
    table = Schema.from_ddl("a int, s struct<x: int>")
    assert merge_schemas(table, Schema.from_ddl("a void, s struct<x: void>")) == table
    assert merge_schemas(table, Schema.from_ddl("b void")) == Schema.from_ddl(
        "a int, s struct<x: int>, b void"
    )
    assert merge_schemas(table, Schema.from_ddl("s struct<y: void>")) == Schema.from_ddl(
        "a int, s struct<x: int, y: void>"
    )


def test_a_void_field_gets_a_type():
    table = Schema.from_ddl("s struct<x: int, t: struct<y: void, z: int>>")
    data = Schema.from_ddl("s struct<x: int, t: struct<Y: array<int>>>")
    assert merge_schemas(table, data) == Schema.from_ddl("s struct<x: int, t: struct<y: array<int>, z: int>>")
    with pytest.raises(
        SchemaMismatchError, match=r"^s\.t\.y: the column has no type yet.*schema_mode='merge'"
    ):
        check_fits(table, data)
    check_fits(table, Schema.from_ddl("s struct<t: struct<y: void>>"))


def test_data_for_a_schema_that_stays():
    table = Schema.from_ddl("a int not null, s struct<x: int>")
    check_fits(table, Schema.from_ddl("S struct<x: int>"))
    for data, where in [("a int, b int", "b"), ("s struct<y: int>", r"s\.y")]:
        with pytest.raises(SchemaMismatchError, match=rf"^{where}: .*schema_mode='merge'"):
            check_fits(table, Schema.from_ddl(data))
    check_nullability(table, Schema.from_ddl("A int"))
    with pytest.raises(SchemaMismatchError, match=r"^a: "):
        check_nullability(table, Schema.from_ddl("s struct<x: int>"))


ATOMS = [
    "boolean",
    "byte",
    "short",
    "integer",
    "long",
    "float",
    "double",
    "decimal(10,2)",
    "string",
    "binary",
    "date",
    "timestamp",
    "timestamp_ntz",
]
NUMBERS = set(ATOMS[1:8])
TIMES = {"date", "timestamp", "timestamp_ntz"}


@pytest.mark.parametrize("source", ATOMS)
@pytest.mark.parametrize("target", ATOMS)
def test_store_assignment_of_primitives(source, target):
    """Cast.canANSIStoreAssign: equal, number to number, anything to string, date and timestamps to each
    other."""
    expected = (
        source == target or {source, target} <= NUMBERS or target == "string" or {source, target} <= TIMES
    )
    assert can_store(source, target) is expected


def test_store_assignment_of_nested_types():
    assert can_store(Array("integer", False), Array("long"))
    assert not can_store(Array("integer"), Array("long", False))
    assert not can_store(Array("string"), Array("long"))
    assert can_store(Map("string", "integer", False), Map("string", "long", False))
    assert not can_store(Map("string", "integer"), Map("string", "long", False))
    assert can_store(Struct([Field("B", "integer")]), Struct([Field("a", "date"), Field("b", "long")]))
    assert not can_store(Struct([Field("c", "integer")]), Struct([Field("a", "date")]))
    assert not can_store("long", Array("long"))
    assert not can_store("variant", "string")
    assert can_store("void", Array("long"))
