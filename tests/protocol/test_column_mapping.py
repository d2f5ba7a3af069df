"""Ids and physical names. Source: PROTOCOL.md, "Column Mapping"."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaic.errors import InvalidArgumentError, UnsupportedFeatureError
from deltaic.protocol import column_mapping
from deltaic.protocol.column_mapping import ID, PHYSICAL_NAME
from deltaic.protocol.schema import Array, Field, Map, Schema, Struct, walk

NESTED = Schema.from_ddl(
    "a int, s struct<b: int, l array<struct<c: int>>>, m map<struct<k: int>, struct<v: int>>"
)


def names():
    counter = itertools.count(1)
    return lambda: f"col-{next(counter)}"


def test_every_field_gets_an_id_and_a_name():
    schema, last = column_mapping.assign(NESTED, new_name=names())
    assert last == 8
    assert {item.metadata[ID] for _, item in walk(schema)} == set(range(1, 9))
    assert {item.metadata[PHYSICAL_NAME] for _, item in walk(schema)} == {
        f"col-{number}" for number in range(1, 9)
    }
    assert not any(
        key in item.metadata
        for _, item in walk(schema)
        for key in ("delta.columnMapping.nested.ids", "parquet.field.nested.ids")
    )
    assert column_mapping.assign(schema, last) == (schema, last)
    assert column_mapping.strip(schema) == NESTED
    assert column_mapping.new_physical_name() != column_mapping.new_physical_name()
    column_mapping.check_unique(schema)


def test_existing_names_are_those_of_the_files():
    schema, last = column_mapping.assign_existing(NESTED)
    assert last == 8
    assert all(
        item.metadata[PHYSICAL_NAME] == item.name == column_mapping.physical_name(item)
        for _, item in walk(schema)
    )
    assert column_mapping.physical_name(Field("x", "long")) == "x"


@given(st.lists(st.sampled_from(["add", "drop"]), max_size=12))
def test_no_id_or_name_is_ever_used_again(steps):
    schema, last = column_mapping.assign(Schema.from_ddl("a int"), new_name=(new := names()))
    seen = {(item.metadata[ID], item.metadata[PHYSICAL_NAME]) for item in schema}
    for step in steps:
        if step == "drop" and len(schema) > 1:
            schema = schema[:-1]
        elif step == "add":
            schema, last = column_mapping.assign(
                Schema([*schema, Field(f"c{len(schema)}", "long")]), last, new_name=new
            )
            added = (schema[-1].metadata[ID], schema[-1].metadata[PHYSICAL_NAME])
            assert added not in seen
            assert added[0] == last
            seen.add(added)
    assert len({number for number, _ in seen}) == len({name for _, name in seen}) == len(seen)


def test_ids_above_the_property_are_respected():
    schema = Schema([Field("a", "long", metadata={ID: 40, PHYSICAL_NAME: "x"}), Field("b", "long")])
    assigned, last = column_mapping.assign(schema, 3)
    assert (assigned.field("b").metadata[ID], last) == (41, 41)


def test_modes():
    for pair in [("none", "none"), ("name", "name"), ("id", "id"), ("none", "name")]:
        column_mapping.check_mode_change(*pair)
    for pair in [("none", "id"), ("name", "none"), ("name", "id"), ("id", "name")]:
        with pytest.raises(UnsupportedFeatureError):
            column_mapping.check_mode_change(*pair)


@pytest.mark.parametrize("character", list(" ,;{}()\n\t="))
def test_names_without_mapping(character):
    schema = Schema([Field("s", Array(Map("string", Struct([Field(f"a{character}", "long")]))))])
    with pytest.raises(InvalidArgumentError, match="column mapping"):
        column_mapping.check_names(schema, "none")
    column_mapping.check_names(schema, "name")
    column_mapping.check_names(schema, "none", schema)


@pytest.mark.parametrize("name", ["a.b", "ä", "a-b", "a/b", "a%20b", "1", "`", "'", "日本"])
def test_other_names_need_no_mapping(name):
    column_mapping.check_names(Schema([Field(name, "long")]), "none")


@pytest.mark.parametrize(
    "fields",
    [
        [
            Field("a", "long", metadata={ID: 1, PHYSICAL_NAME: "x"}),
            Field("b", "long", metadata={ID: 1, PHYSICAL_NAME: "y"}),
        ],
        [
            Field("a", "long", metadata={ID: 1, PHYSICAL_NAME: "x"}),
            Field("b", "long", metadata={ID: 2, PHYSICAL_NAME: "X"}),
        ],
    ],
)
def test_shared_ids_and_names_are_refused(fields):
    with pytest.raises(InvalidArgumentError, match="share"):
        column_mapping.check_unique(Schema(fields))
