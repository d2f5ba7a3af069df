"""Protocol and metadata of new and changed tables."""

from __future__ import annotations

import itertools
import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaic.errors import InvalidArgumentError, SchemaMismatchError, UnsupportedFeatureError
from deltaic.protocol import edits
from deltaic.protocol.actions import Metadata, Protocol
from deltaic.protocol.column_mapping import ID, MAX_ID, MODE, PHYSICAL_NAME
from deltaic.protocol.definition import evolve, new_table
from deltaic.protocol.evolution import merge_schemas
from deltaic.protocol.features import supported
from deltaic.protocol.schema import Array, Field, Schema, Struct, walk


def made(schema="a int, b string", **options):
    counter = itertools.count(1)
    return new_table(schema, new_id=lambda: f"id{next(counter)}", clock=lambda: 1234, **options)


def stats_columns(names: str) -> dict[str, object]:
    schema = "a int, p int, l array<int>, s struct<x: int, l: array<int>>"
    return {"schema": schema, "properties": {"delta.dataSkippingStatsColumns": names}}


def schema_of(metadata: Metadata) -> Schema:
    return Schema.from_json(metadata.schema_string)


def test_plain_table():
    protocol, metadata = made(
        "a int not null, day date", partition_columns="DAY", name="n", description="d", properties={"own": 1}
    )
    assert protocol == Protocol(1, 2)
    assert metadata == Metadata(
        "id1", "n", "d", Schema.from_ddl("a int not null, day date").to_json(), ("day",), {"own": "1"}, 1234
    )


def test_users_properties_go_before_defaults():
    defaults = {"delta.enableDeletionVectors": "true", "delta.checkpointInterval": 7}
    protocol, metadata = made(defaults=defaults)
    assert protocol == Protocol(3, 7, ("deletionVectors",), ("deletionVectors",))
    assert metadata.configuration == {"delta.enableDeletionVectors": "true", "delta.checkpointInterval": "7"}
    assert "timestampNtz" in supported(made(defaults={"delta.feature.timestampntz": "supported"})[0])
    protocol, metadata = made(defaults=defaults, properties={"DELTA.enabledeletionvectors": False})
    assert protocol == Protocol(1, 2)
    assert metadata.configuration["delta.enableDeletionVectors"] == "false"


def test_pseudo_properties_are_not_stored():
    protocol, metadata = made(
        properties={
            "delta.minReaderVersion": 2,
            "delta.minWriterVersion": 5,
            "delta.feature.timestampNtz": "supported",
        }
    )
    assert metadata.configuration == {}
    assert protocol.min_reader_version == 3
    assert supported(protocol) >= {"timestampNtz", "columnMapping", "generatedColumns"}


@pytest.mark.parametrize("mode", ["name", "id"])
def test_column_mapping_of_a_new_table(mode):
    protocol, metadata = made(
        "id bigint, `my col` struct<x: int, y: array<struct<z: int>>>, p int",
        partition_columns="p",
        properties={MODE: mode},
    )
    assert protocol == Protocol(2, 7, None, ("columnMapping",))
    ids = {".".join(path): item.metadata[ID] for path, item in walk(schema_of(metadata))}
    assert set(ids) == {"id", "my col", "my col.x", "my col.y", "my col.y.element.z", "p"}
    assert sorted(ids.values()) == [1, 2, 3, 4, 5, 6]
    assert metadata.configuration == {MODE: mode, MAX_ID: "6"}
    names = [item.metadata[PHYSICAL_NAME] for _, item in walk(schema_of(metadata))]
    assert len(set(names)) == 6
    assert all(name.startswith("col-") for name in names)
    assert metadata.partition_columns == ("p",)


def test_ids_of_another_table_are_taken_off():
    _, mapped = new_table("a int, b string", properties={MODE: "name"})
    _, plain = made(schema_of(mapped))
    assert schema_of(plain) == Schema.from_ddl("a int, b string")
    _, again = new_table(schema_of(mapped), properties={MODE: "name"})
    old, new = ({item.metadata[PHYSICAL_NAME] for item in schema_of(each)} for each in (mapped, again))
    assert len(new) == 2
    assert not old & new


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"schema": "a int, a string"}, InvalidArgumentError, "twice"),
        ({"schema": "`a b` int"}, InvalidArgumentError, "column mapping"),
        ({"schema": "s struct<`x;`: int>"}, InvalidArgumentError, "column mapping"),
        ({"schema": [Field("", "long")]}, InvalidArgumentError, "empty name"),
        ({"schema": "a void"}, InvalidArgumentError, "nothing but nulls"),
        (
            {"schema": "a int, b int", "partition_columns": ["a", "b"]},
            InvalidArgumentError,
            "not every column",
        ),
        ({"schema": "a int, b int", "partition_columns": ["a", "A"]}, InvalidArgumentError, "twice"),
        ({"schema": "a int, b array<int>", "partition_columns": "b"}, InvalidArgumentError, "array<integer>"),
        ({"schema": "a int", "partition_columns": "x"}, InvalidArgumentError, "no such partition column"),
        (
            {"properties": {"delta.enableIcebergWriterCompatV1": True}},
            UnsupportedFeatureError,
            "enableIcebergWriterCompatV1",
        ),
        (
            {"schema": "a int, _Change_Type string", "properties": {"delta.enableChangeDataFeed": True}},
            SchemaMismatchError,
            "_Change_Type",
        ),
        (
            {"properties": {"delta.feature.icebergWriterCompatV1": "supported"}},
            UnsupportedFeatureError,
            "icebergWriterCompatV1",
        ),
        ({"properties": {"delta.feature.shiny": "supported"}}, UnsupportedFeatureError, "shiny"),
        ({"properties": {"delta.minWriterVersion": 9}}, InvalidArgumentError, "protocol version"),
        ({"properties": {"delta.dataSkippingStatsColumns": "a,x"}}, InvalidArgumentError, "'x'"),
        ({"schema": 5}, InvalidArgumentError, "schema"),
        ({**stats_columns("p"), "partition_columns": "p"}, InvalidArgumentError, "a partition column"),
        (stats_columns("a,l"), InvalidArgumentError, "column l: no statistics of this type"),
        ({**stats_columns("P"), "partition_columns": "p"}, InvalidArgumentError, "a partition column"),
        (stats_columns("a,a"), InvalidArgumentError, "comes twice; found a"),
        (stats_columns("a,A"), InvalidArgumentError, "comes twice; found a"),
        (stats_columns("s,s.x"), InvalidArgumentError, "comes twice; found s.x"),
    ],
)
def test_refused_tables(options, error, message):
    with pytest.raises(error, match=message):
        made(**options)


def test_nested_columns_of_statistics_may_have_any_type():
    _, metadata = made(**stats_columns("a,s,s.l"))
    assert metadata.configuration == {"delta.dataSkippingStatsColumns": "a,s,s.l"}


def test_nothing_to_change():
    for options in (
        {},
        {"properties": {MODE: "name"}},
        {"properties": {"delta.enableDeletionVectors": True}},
    ):
        table = made(**options)
        assert evolve(*table) == table
        assert evolve(*table, schema=schema_of(table[1]), properties=options.get("properties")) == table


def test_properties_raise_the_protocol():
    protocol, metadata = evolve(*made(), properties={"delta.enableDeletionVectors": "true", "x": "y"})
    assert protocol == Protocol(3, 7, ("deletionVectors",), ("appendOnly", "deletionVectors", "invariants"))
    assert metadata.configuration == {"delta.enableDeletionVectors": "true", "x": "y"}
    protocol, metadata = evolve(protocol, metadata, unset=["x", "delta.enableDeletionVectors"])
    assert "deletionVectors" in supported(protocol)
    assert metadata.configuration == {}


def test_a_property_without_its_feature_gets_it_when_set_again():
    before = Metadata(
        "i",
        schema_string=Schema.from_ddl("a int").to_json(),
        configuration={"delta.enableDeletionVectors": "true"},
    )
    assert evolve(Protocol(1, 2), before, properties={"x": "y"})[0] == Protocol(1, 2)
    assert "deletionVectors" in supported(
        evolve(Protocol(1, 2), before, properties={"delta.enableDeletionVectors": "true"})[0]
    )


def test_a_preview_stands_for_its_feature():
    """DeltaVariantSuite: "manually adding preview table feature does not require adding stable table
    feature"; TypeWideningTableFeatureSuite: "tables created with the preview feature"."""
    preview, widening = "delta.feature.variantType-preview", "delta.feature.typeWidening-preview"
    protocol, metadata = made("a int, v variant", properties={preview: "supported"})
    assert supported(protocol) == {"variantType-preview"}
    protocol, metadata = evolve(*made("a int"), properties={preview: "supported", widening: "supported"})
    wide = {"delta.enableTypeWidening": "true"}
    protocol, metadata = evolve(
        protocol, metadata, properties=wide, schema=Schema.from_ddl("a bigint, v variant")
    )
    assert not supported(protocol) & {"variantType", "typeWidening"}
    assert "variantType" in supported(
        evolve(protocol, metadata, properties={"delta.feature.variantType": "supported"})[0]
    )


def test_new_types_raise_the_protocol():
    table = made("a int")
    protocol, _ = evolve(*table, schema=Schema.from_ddl("a int, s struct<t: timestamp_ntz>"))
    assert protocol == Protocol(3, 7, ("timestampNtz",), ("appendOnly", "invariants", "timestampNtz"))


@pytest.mark.parametrize(
    ("columns", "listed"),
    [
        ("a int not null", True),
        ("a int, s struct<x: int not null>", True),
        ("a int, s struct<r: struct<x: int not null>>", True),
        ("a int, l array<struct<x: int not null>>", False),
        ("a int, m map<string, struct<x: int not null>>", False),
        ("a int", False),
    ],
)
def test_not_null_needs_the_feature_invariants(columns: str, listed: bool):
    """delta-spark refuses a table with a column or field that is NOT NULL if its protocol lists features
    without this one (DELTA_FEATURES_PROTOCOL_METADATA_MISMATCH)."""
    protocol, _ = made(columns, properties={"delta.enableDeletionVectors": True})
    assert ("invariants" in supported(protocol)) is listed


def test_mapping_turned_on_later_keeps_the_names_in_files():
    protocol, metadata = evolve(*made("a int, s struct<x: int>"), properties={MODE: "name"})
    assert protocol == Protocol(2, 7, None, ("appendOnly", "columnMapping", "invariants"))
    assert [(item.metadata[ID], item.metadata[PHYSICAL_NAME]) for _, item in walk(schema_of(metadata))] == [
        (1, "a"),
        (2, "s"),
        (3, "x"),
    ]
    assert metadata.configuration == {MODE: "name", MAX_ID: "3"}
    protocol, metadata = evolve(
        *made("a int"), properties={MODE: "name"}, schema=Schema.from_ddl("a int, `b c` int")
    )
    first, second = schema_of(metadata)
    assert first.metadata[PHYSICAL_NAME] == "a"
    assert second.metadata[PHYSICAL_NAME].startswith("col-")


@pytest.mark.parametrize(
    ("before", "after"), [("none", "id"), ("name", "none"), ("name", "id"), ("id", "name"), ("id", "none")]
)
def test_other_changes_of_mode_are_refused(before, after):
    table = made(properties={MODE: before})
    with pytest.raises(UnsupportedFeatureError, match=f"'{before}' to '{after}'"):
        evolve(*table, properties={MODE: after})


def test_unsetting_the_mode_is_a_change_of_mode():
    with pytest.raises(UnsupportedFeatureError, match="'name' to 'none'"):
        evolve(*made(properties={MODE: "name"}), unset=[MODE])


def test_new_fields_get_new_ids_and_none_is_used_twice():
    protocol, metadata = made("a int, b int", properties={MODE: "name"})
    dropped = Schema(item for item in schema_of(metadata) if item.name != "b")
    protocol, metadata = evolve(protocol, metadata, schema=dropped)
    assert metadata.configuration[MAX_ID] == "2"
    again = merge_schemas(schema_of(metadata), Schema.from_ddl("b int, s struct<x: int>"))
    protocol, metadata = evolve(protocol, metadata, schema=again)
    assert [item.metadata[ID] for _, item in walk(schema_of(metadata))] == [1, 3, 4, 5]
    assert metadata.configuration[MAX_ID] == "5"


def test_a_replaced_schema_keeps_the_ids_of_columns_of_the_same_name_and_type():
    """As in delta-spark 4.4.0, which also gives the whole struct new ids if a field of it changes."""
    ddl = "a int, b int, c int, s struct<x: array<struct<y: int>>>, t struct<x: int>"
    protocol, metadata = made(ddl, partition_columns="a", properties={MODE: "name", "own": "x"})
    new = Schema.from_ddl(
        "s struct<x: array<struct<y: int>>>, t struct<x: int, z: int>, a int, b long, C int"
    )
    _, after = evolve(protocol, metadata, schema=new, replace_schema=True, partition_columns=())
    assert [item.metadata[ID] for _, item in walk(schema_of(after))] == [4, 5, 6, 9, 10, 11, 1, 12, 13]
    old, now = ({item.metadata[PHYSICAL_NAME] for _, item in walk(schema_of(m))} for m in (metadata, after))
    assert len(old & now) == 4
    assert after.partition_columns == ()
    assert after.configuration == {MODE: "name", "own": "x", MAX_ID: "13"}


@pytest.mark.parametrize(
    ("before", "after"), [("none", "id"), ("none", "name"), ("name", "none"), ("id", "name")]
)
def test_a_replaced_schema_may_have_any_mode(before, after):
    table = made("a int", properties={MODE: before})
    schema = "a int, b int" if after == "none" else "`a b` int"
    protocol, metadata = evolve(
        *table, schema=Schema.from_ddl(schema), replace_schema=True, properties={MODE: after}
    )
    names = [item.metadata.get(PHYSICAL_NAME) for item in schema_of(metadata)]
    assert names == [None, None] if after == "none" else names[0].startswith("col-")
    assert supported(protocol) >= supported(table[0])
    with pytest.raises(InvalidArgumentError, match="column mapping"):
        evolve(*table, schema=Schema.from_ddl("`a b` int"), replace_schema=True, properties={MODE: "none"})


def test_partition_columns_must_stay_in_the_schema():
    table = made("p int, a int", partition_columns="p")
    for schema in ("a int, b int", "p int"):
        with pytest.raises(InvalidArgumentError):
            evolve(*table, schema=Schema.from_ddl(schema))
    assert evolve(*table, schema=Schema.from_ddl("q int, a int"), partition_columns=["q"])[
        1
    ].partition_columns == ("q",)


def test_names_that_are_there_already_may_stay():
    """A table of another writer may have such names; only new ones are checked."""
    before = Metadata("i", schema_string=Schema([Field("a b", "long")]).to_json())
    _, after = evolve(Protocol(1, 2), before, schema=Schema([Field("a b", "long"), Field("c", "long")]))
    assert schema_of(after).names == ["a b", "c"]
    with pytest.raises(InvalidArgumentError, match="c d"):
        evolve(Protocol(1, 2), before, schema=Schema([Field("a b", "long"), Field("c d", "long")]))


@pytest.mark.parametrize(
    "other",
    [
        "delta.compatibility.symlinkFormatManifest.enabled",
        "delta.enableIcebergCompatV1",
        "delta.enableIcebergCompatV2",
    ],
)
def test_vectors_exclude_manifests_and_old_iceberg(other):
    schema = Schema.from_ddl("a int").to_json()
    protocol = Protocol(3, 7, ("deletionVectors",), ("deletionVectors", "icebergCompatV1", "icebergCompatV2"))
    with pytest.raises(InvalidArgumentError, match=other):
        evolve(
            protocol,
            Metadata("i", schema_string=schema, configuration={other: "true"}),
            properties={"delta.enableDeletionVectors": True},
        )
    with pytest.raises((InvalidArgumentError, UnsupportedFeatureError), match=other):
        evolve(
            protocol,
            Metadata("i", schema_string=schema, configuration={"delta.enableDeletionVectors": "true"}),
            properties={other: "true"},
        )
    with pytest.raises((InvalidArgumentError, UnsupportedFeatureError), match=other):
        made(properties={other: True, "delta.enableDeletionVectors": True})


def test_what_cannot_be_honoured_is_not_brought_into_use_even_where_the_protocol_has_it():
    protocol, plain = Protocol(1, 7, None, ("collations",)), Schema.from_ddl("a int")
    collated = Schema([*plain, Field("g", "string", metadata={"__COLLATIONS": {"g": "ICU.en_US"}})])
    with pytest.raises(UnsupportedFeatureError, match="collations"):
        evolve(protocol, Metadata("i", schema_string=plain.to_json()), schema=collated)
    assert evolve(protocol, Metadata("i", schema_string=collated.to_json()), description="x")[0] == protocol


def test_metadata_of_fields_is_kept():
    """PROTOCOL.md: writers must preserve delta.typeChanges, and the like."""
    field = Field(
        "a",
        "long",
        metadata={"delta.typeChanges": [{"fromType": "integer", "toType": "long"}], "own": {"x": [1]}},
    )
    before = Metadata(
        "i",
        schema_string=Schema(
            [field, Field("s", Array(Struct([Field("x", "long", metadata={"k": 1})])))]
        ).to_json(),
    )
    protocol = Protocol(3, 7, ("typeWidening",), ("typeWidening",))
    _, after = evolve(
        protocol,
        before,
        schema=merge_schemas(schema_of(before), Schema.from_ddl("b int, s array<struct<y: int>>")),
    )
    assert json.loads(after.schema_string)["fields"][0] == json.loads(before.schema_string)["fields"][0]
    assert schema_of(after).find("s.element.x")[1].metadata == {"k": 1}
    assert schema_of(after).find("s.element.y")[1] == Field("y", "integer")


ADDED = st.sampled_from(
    [
        "x int",
        "y struct<u: int>",
        "s struct<v: int>",
        "l array<struct<w: int>>",
        "z map<string, struct<q: date>>",
    ]
)


@given(
    st.lists(
        st.tuples(st.sampled_from(["add", "drop", "rename", "replace"]), ADDED, st.integers(0, 50)),
        max_size=10,
    )
)
def test_no_sequence_of_edits_gives_an_id_or_a_physical_name_to_two_fields(steps):
    """An old file keeps its values under a field's physical name and id: given to another field, they would
    show there."""
    protocol, metadata = new_table(
        "id bigint, s struct<a: int>, l array<struct<b: int>>", properties={MODE: "name"}
    )
    owners: dict[object, object] = {}
    for number, (step, added, pick) in enumerate(steps):
        schema = schema_of(metadata)
        paths = [path for path, _ in walk(schema)]
        with suppress(InvalidArgumentError):
            if step == "add":
                schema = edits.add_columns(schema, Schema.from_ddl(added))
            elif step == "drop":
                schema = edits.drop_columns(schema, [paths[pick % len(paths)]])
            elif step == "rename":
                schema = edits.rename_column(schema, paths[pick % len(paths)], f"n{number}")
        before = {
            item.metadata[ID]: item.metadata[PHYSICAL_NAME] for _, item in walk(schema) if ID in item.metadata
        }
        last = int(metadata.configuration[MAX_ID])
        protocol, metadata = evolve(protocol, metadata, schema=schema, replace_schema=step == "replace")
        after = {item.metadata[ID]: item.metadata[PHYSICAL_NAME] for _, item in walk(schema_of(metadata))}
        if step != "replace":
            assert before.items() <= after.items()
        assert all(new > last for new in after.keys() - before.keys())
        assert int(metadata.configuration[MAX_ID]) >= max(after)
        for column_id, name in after.items():
            assert owners.setdefault(column_id, name) == name
            assert owners.setdefault(name, column_id) == column_id


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("array<void>", "the column has no type, .*found"),
        ("map<string, void>", "the column has no type, .*found"),
        ("array<struct<a: int, b: void>>", "the column has no type, .*found"),
        ("struct<a: void>", "every field of the struct holds nothing but nulls"),
    ],
)
def test_a_column_of_nulls_gets_no_type_with_nulls_inside(written: str, message: str) -> None:
    protocol, metadata = new_table(Schema.from_ddl("id int, n void"))
    merged = merge_schemas(schema_of(metadata), Schema.from_ddl(f"n {written}"))
    with pytest.raises(InvalidArgumentError, match=f"^n: {message}"):
        evolve(protocol, metadata, schema=merged)
    known = merge_schemas(schema_of(metadata), Schema.from_ddl("n array<int>"))
    assert schema_of(evolve(protocol, metadata, schema=known)[1]) == Schema.from_ddl("id int, n array<int>")
