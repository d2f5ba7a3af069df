"""Edits of schemas: add, rename, drop, change, nested."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from deltaic.errors import InvalidArgumentError
from deltaic.protocol import dependents, edits
from deltaic.protocol.actions import Metadata
from deltaic.protocol.schema import Array, Field, Schema, Struct

TABLE = Schema.from_ddl(
    "id bigint not null, s struct<a: int, b: struct<c: int>>, l array<struct<a: int>>, m map<struct<k: int>,"
    " struct<v: int>>, `x.y` int"
)


def path(name):
    return TABLE.find(name)[0]


def test_add_columns():
    new = Schema.from_ddl(
        "n int comment 'c', S struct<b: struct<d: int>, e: int>, l array<struct<b: date>>, m map<struct<k:"
        " int>, struct<w: int>>"
    )
    assert edits.add_columns(TABLE, new) == Schema.from_ddl(
        "id bigint not null, s struct<a: int, b: struct<c: int, d: int>, e: int>, l array<struct<a: int, b:"
        " date>>, m map<struct<k: int>, struct<v: int, w: int>>, `x.y` int, n int comment 'c'"
    )
    ids = Schema([Field("n", "long", metadata={"delta.columnMapping.id": 1, "k": 2})])
    assert edits.add_columns(TABLE, ids).field("n").metadata == {"k": 2}


@pytest.mark.parametrize(
    ("new", "message"),
    [
        ("", "no columns"),
        ("ID bigint", "^ID: the column exists"),
        ("s struct<a: int>", r"^s\.a: the column exists"),
        ("s int", "^s: the column exists"),
        ("n int not null", "^n: a new column must take null"),
        ("s struct<z: int not null>", r"^s\.z: a new column must take null"),
        ("m map<struct<k: int>, struct<v: int>>", r"m.*exists"),
    ],
)
def test_refused_additions(new, message):
    with pytest.raises(InvalidArgumentError, match=message):
        edits.add_columns(TABLE, Schema.from_ddl(new))


def test_rename():
    assert edits.rename_column(TABLE, path("ID"), "Key").names == ["Key", "s", "l", "m", "x.y"]
    assert edits.rename_column(TABLE, path("s.b.c"), "d").find("s.b.d")[1] == Field("d", "integer")
    assert edits.rename_column(TABLE, path("l.element.a"), "d").find("l.element.d")[1] == Field(
        "d", "integer"
    )
    assert edits.rename_column(TABLE, path("m.key.k"), "d").find("m.key.d")[1] == Field("d", "integer")
    assert edits.rename_column(TABLE, path("m.value.v"), "d").find("m.value.d")[1] == Field("d", "integer")
    assert edits.rename_column(TABLE, path("id"), "ID").names[0] == "ID"
    for name, new in [("id", "L"), ("s.a", "B"), ("id", ""), ("l.element", "x")]:
        with pytest.raises(InvalidArgumentError):
            edits.rename_column(TABLE, path(name), new)


def test_drop():
    dropped = edits.drop_columns(TABLE, [path("id"), path("s.a"), path("`x.y`")])
    assert dropped == Schema.from_ddl(
        "s struct<b: struct<c: int>>, l array<struct<a: int>>, m map<struct<k: int>, struct<v: int>>"
    )
    for name in ("s.b.c", "l.element.a", "m.key.k", "m.value", "l.element"):
        with pytest.raises(InvalidArgumentError):
            edits.drop_columns(TABLE, [path(name)])
    with pytest.raises(InvalidArgumentError, match="last column"):
        edits.drop_columns(TABLE, [path(name) for name in ("id", "s", "l", "m", "x.y")])


def test_set_metadata():
    changed = edits.set_metadata(TABLE, path("s.a"), {"k": [1, {"x": None}], "comment": "c"})
    assert changed.find("s.a")[1].metadata == {"k": [1, {"x": None}], "comment": "c"}
    assert edits.set_metadata(changed, path("s.a"), {"k": None}).find("s.a")[1].metadata == {"comment": "c"}
    for bad in (
        {"delta.x": 1},
        {"CURRENT_DEFAULT": "1"},
        {"__COLLATIONS": {}},
        {"k": object()},
        {"k": float("nan")},
        {1: 2},
    ):
        with pytest.raises(InvalidArgumentError):
            edits.set_metadata(TABLE, path("id"), bad)


@pytest.mark.parametrize(
    ("expression", "used"),
    [
        ("id > 1", True),
        ("`ID` > 1", True),
        ("idx > 1", False),
        ("name = 'id'", False),
        ('name = "id"', False),
        ("t.id is null", True),
    ],
)
def test_columns_that_expressions_use(expression, used):
    plain = Schema.from_ddl("id bigint, name string")
    invariant = '{"expression": {"expression": "' + expression.replace('"', '\\"') + '"}}'
    places = [
        (plain, Metadata("i", configuration={"delta.constraints.c": expression})),
        (
            Schema(
                [Field("id", "long"), Field("g", "long", metadata={"delta.generationExpression": expression})]
            ),
            Metadata("i"),
        ),
        (
            Schema(
                [
                    Field("id", "long"),
                    Field("s", Struct([Field("x", "long", metadata={"delta.invariants": invariant})])),
                ]
            ),
            Metadata("i"),
        ),
    ]
    for schema, metadata in places:
        if used:
            with pytest.raises(InvalidArgumentError, match="expression"):
                dependents.check_unused(schema, metadata, ("id",))
        else:
            dependents.check_unused(schema, metadata, ("id",))


@pytest.mark.parametrize(
    ("check", "used"), [("hash(S) > 0", True), ("s . `X` > 0", True), ("s.y > 0", False), ("t.s > 0", False)]
)
def test_a_field_of_a_struct_that_an_expression_uses_as_a_whole(check, used):
    """delta-spark 4.4 refuses the same changes."""
    fields = [Field("x", "long"), Field("y", "long")]
    schema = Schema([Field("s", Struct(fields)), Field("t", Struct([Field("s", "long")]))])
    metadata = Metadata("i", configuration={"delta.constraints.c": check})
    with pytest.raises(InvalidArgumentError, match="expression") if used else nullcontext():
        dependents.check_unused(schema, metadata, ("s", "x"))


def test_clustering_columns_stay():
    schema = Schema(
        [
            Field(
                "a",
                Struct([Field("x", "long", metadata={"delta.columnMapping.physicalName": "px"})]),
                metadata={"delta.columnMapping.physicalName": "pa"},
            ),
            Field("b", Array("long")),
        ]
    )
    for name in ("a", "a.x"):
        with pytest.raises(InvalidArgumentError, match="clustered"):
            dependents.check_unused(schema, Metadata("i"), schema.find(name)[0], clustering=[("pa", "px")])
    dependents.check_unused(schema, Metadata("i"), ("b",), clustering=[("pa", "px")])


def test_list_of_statistics_columns_follows():
    metadata = Metadata("i", configuration={"delta.dataSkippingStatsColumns": "A, s.b.c,`x.y`"})

    def after(renamed):
        return edits.stats_columns(metadata, renamed).get("delta.dataSkippingStatsColumns")

    assert after({("a",): ("n",)}) == "n,s.b.c,`x.y`"
    assert after({("s", "b"): ("s", "new one")}) == "A,s.`new one`.c,`x.y`"
    assert after({("s",): None, ("x.y",): ("z",)}) == "A,z"
    assert after({("other",): ("z",)}) is None
    assert after({("a",): None, ("s",): None, ("x.y",): None}) == ""
    assert edits.stats_columns(Metadata("i"), {("a",): ("n",)}) == {}
