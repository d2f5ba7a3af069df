"""ALTER TABLE on real tables: each statement makes one commit with delta-spark's operation name, and rows do
not change."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

import deltaic
from deltaic.errors import (
    InvalidArgumentError,
    InvalidTypeError,
    MetadataChangedException,
    UnsupportedFeatureError,
)
from deltaic.options import CommitOptions
from deltaic.protocol.actions import Protocol
from deltaic.protocol.features import supported
from deltaic.protocol.schema import Field, Struct, walk

NAME_MODE = {"delta.columnMapping.mode": "name"}
SCHEMA = "id bigint, s struct<a: bigint, b: bigint>, p string"


@pytest.fixture
def plain(tmp_path):
    return deltaic.DeltaTable.create(
        tmp_path / "plain", SCHEMA, properties={"delta.enableDeletionVectors": False}
    )


@pytest.fixture
def mapped(tmp_path):
    return deltaic.DeltaTable.create(tmp_path / "mapped", SCHEMA, properties=NAME_MODE, partition_by="p")


def last(table):
    (entry,) = table.history(limit=1)
    return entry["operation"], {key: _parsed(value) for key, value in entry["operationParameters"].items()}


def _parsed(value):
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return value


def test_add_columns(plain):
    plain.alter.add_columns("n int comment 'new', s struct<c: string>")
    assert plain.version == 1
    assert plain.protocol == Protocol(1, 2)
    operation, parameters = last(plain)
    assert operation == "ADD COLUMNS"
    assert [item["column"]["name"] for item in parameters["columns"]] == ["n", "s.c"]
    assert plain.schema.field("n") == Field("n", "integer", metadata={"comment": "new"})
    with pytest.raises(InvalidArgumentError, match="exists"):
        plain.alter.add_columns("N int")
    with pytest.raises(InvalidArgumentError, match="default"):
        plain.alter.add_columns("d int default 5")


def test_add_columns_raises_the_protocol_for_a_new_type(plain):
    plain.alter.add_columns("t timestamp_ntz")
    assert supported(plain.protocol) == {"appendOnly", "invariants", "timestampNtz"}
    assert plain.protocol.min_reader_version == 3


def test_rename_and_drop_need_mapping(plain):
    for change in (lambda: plain.alter.rename_column("id", "key"), lambda: plain.alter.drop_columns("id")):
        with pytest.raises(InvalidArgumentError, match="columns are mapped"):
            change()


def test_rename(mapped):
    mapped.alter.rename_column("ID", "key")
    assert last(mapped) == ("RENAME COLUMN", {"oldColumnPath": "id", "newColumnPath": "key"})
    mapped.alter.rename_column("s.a", "my field")
    assert last(mapped)[1] == {"oldColumnPath": "s.a", "newColumnPath": "s.my field"}
    mapped.alter.rename_column("p", "q")
    assert mapped.metadata.partition_columns == ("q",)
    assert [".".join(path) for path, _ in walk(mapped.schema)] == ["key", "s", "s.my field", "s.b", "q"]
    for name, new in [("key", "S"), ("s.b", "MY FIELD"), ("x", "y"), ("key", "")]:
        with pytest.raises(InvalidArgumentError):
            mapped.alter.rename_column(name, new)
    with pytest.raises(InvalidTypeError):
        mapped.alter.rename_column("key", 5)
    version = mapped.version
    mapped.alter.rename_column("key", "key")
    assert mapped.version == version


def test_drop_columns(mapped):
    for names in (("p",), ("x",), (), ("s", "s"), ("s.a", "s.b"), ("s", "id")):
        with pytest.raises(InvalidArgumentError):
            mapped.alter.drop_columns(*names)
    mapped.alter.drop_columns("id", "s.b")
    assert last(mapped) == ("DROP COLUMNS", {"columns": ["id", "s.b"]})
    assert mapped.schema.names == ["s", "p"]
    mapped.alter.add_columns("id bigint, s struct<b: bigint>")
    assert mapped.metadata.configuration["delta.columnMapping.maxColumnId"] == "7"


def test_change_column(tmp_path):
    table = deltaic.DeltaTable.create(tmp_path / "t", "id bigint not null, s struct<a: int not null>")
    table.alter.change_column("ID", nullable=True, comment="the key")
    operation, parameters = last(table)
    assert (operation, parameters["column"]["nullable"]) == ("CHANGE COLUMN", True)
    table.alter.change_column("s.a", nullable=True)
    assert table.schema.field("id") == Field("id", "long", metadata={"comment": "the key"})
    assert table.schema.field("s").type == Struct([Field("a", "integer")])
    version = table.version
    table.alter.change_column("id", type="bigint", nullable=True)
    table.alter.change_column("id", type="long", comment="the key")
    assert table.version == version
    with pytest.raises(InvalidArgumentError, match="type widening"):
        table.alter.change_column("s.a", type="bigint")
    with pytest.raises(InvalidArgumentError, match="NOT NULL"):
        table.alter.change_column("id", nullable=False)
    with pytest.raises(InvalidArgumentError):
        table.alter.change_column("x", comment="y")


def test_set_column_metadata(plain):
    plain.alter.set_column_metadata("s.a", {"unit": "m", "range": [0, 1]})
    assert plain.schema.find("s.a")[1].metadata == {"unit": "m", "range": [0, 1]}
    plain.alter.set_column_metadata("s.a", {"range": None})
    assert plain.schema.find("s.a")[1].metadata == {"unit": "m"}
    with pytest.raises(InvalidArgumentError, match="belongs to a feature"):
        plain.alter.set_column_metadata("id", {"delta.invariants": "x"})


def test_properties(plain):
    plain.alter.set_properties({"delta.enableDeletionVectors": True, "own": "x", "delta.minWriterVersion": 7})
    operation, parameters = last(plain)
    assert operation == "SET TBLPROPERTIES"
    assert parameters["properties"] == {
        "delta.enableDeletionVectors": "true",
        "own": "x",
        "delta.minWriterVersion": "7",
    }
    assert plain.protocol.reader_features == ("deletionVectors",)
    assert plain.protocol.writer_features == ("appendOnly", "deletionVectors", "invariants")
    assert plain.metadata.configuration == {"delta.enableDeletionVectors": "true", "own": "x"}
    plain.alter.unset_properties("OWN", "gone", if_exists=True)
    assert plain.metadata.configuration["own"] == "x"
    plain.alter.unset_properties("own", "delta.enabledeletionvectors")
    assert last(plain)[0] == "UNSET TBLPROPERTIES"
    assert plain.metadata.configuration == {}
    with pytest.raises(InvalidArgumentError, match="not set"):
        plain.alter.unset_properties("own")
    with pytest.raises(InvalidArgumentError, match="unknown"):
        plain.alter.set_properties({"delta.nonsense": 1})
    with pytest.raises(UnsupportedFeatureError, match="enableIcebergWriterCompatV1"):
        plain.alter.set_properties({"delta.enableIcebergWriterCompatV1": True})


def test_the_log_is_kept_as_long_as_deleted_files(plain, tmp_path):
    """DeltaConfigs of delta-spark check the properties of a statement, and count others with their
    defaults."""
    log, files = "delta.logRetentionDuration", "delta.deletedFileRetentionDuration"
    for properties in (
        {log: "interval 1 day"},
        {files: timedelta(days=40)},
        {log.upper(): "interval 1 hour", files: "1 day"},
    ):
        with pytest.raises(InvalidArgumentError, match=f"{log} is shorter than {files}; found interval"):
            plain.alter.set_properties(properties)
        with pytest.raises(InvalidArgumentError, match="is shorter than"):
            deltaic.DeltaTable.create(tmp_path / "new", SCHEMA, properties=properties)
    assert plain.version == 0
    with deltaic.configure(default_properties={log: "interval 1 day"}):
        deltaic.DeltaTable.create(tmp_path / "new", SCHEMA)
    plain.alter.set_properties({log: "interval 1 hour", files: "interval 1 hour"})
    assert plain.version == 1


def test_internal_properties_stay(mapped):
    with pytest.raises(InvalidArgumentError, match="belongs to its feature"):
        mapped.alter.unset_properties("delta.columnMapping.maxColumnId")
    with pytest.raises(UnsupportedFeatureError, match="'name' to 'id'"):
        mapped.alter.set_properties({"delta.columnMapping.mode": "id"})


def test_name_and_description(plain):
    plain.alter.set_name("flights")
    plain.alter.set_description("all of them")
    assert (plain.metadata.name, plain.metadata.description) == ("flights", "all of them")
    assert last(plain) == ("UPDATE TABLE METADATA", {"description": "all of them"})
    for wrong in (None, 5):
        with pytest.raises(InvalidTypeError):
            plain.alter.set_name(wrong)


def test_add_features(plain):
    plain.alter.add_features("deletionVectors", "vacuumProtocolCheck")
    assert last(plain) == ("ADD FEATURE", {"features": ["deletionVectors", "vacuumProtocolCheck"]})
    assert plain.protocol.reader_features == ("deletionVectors", "vacuumProtocolCheck")
    assert plain.metadata.configuration == {"delta.enableDeletionVectors": "false"}
    version = plain.version
    plain.alter.add_features("appendOnly")
    assert plain.version == version
    for name in ("icebergWriterCompatV1", "shiny"):
        with pytest.raises(UnsupportedFeatureError, match=name):
            plain.alter.add_features(name)


def test_commit_options_and_conflicts(plain):
    plain.alter.set_name("a", commit=CommitOptions(user_metadata="why", transactions={"app": 1}))
    assert plain.history(limit=1)[0]["userMetadata"] == "why"
    plain.alter.set_name("b", commit=CommitOptions(transactions={"app": 1}))
    assert (plain.version, plain.metadata.name) == (1, "a")
    behind = plain.at(0)
    with pytest.raises(MetadataChangedException):
        behind.alter.set_name("c")
    assert behind.version == 0


def test_the_history_names_nested_fields_by_their_path(mapped):
    """As in delta-spark's `DeltaOperations.AddColumns` and `ChangeColumn`."""
    name = mapped.location
    deltaic.sql(
        f"ALTER TABLE delta.`{name}` ADD COLUMNS (t STRUCT<x: INT, l: ARRAY<STRUCT<y: INT>>>, `a b` INT)"
    )
    deltaic.sql(f"ALTER TABLE delta.`{name}` ADD COLUMN t.w BIGINT COMMENT 'deep' AFTER x")
    mapped = deltaic.DeltaTable(name)
    added = {
        "column": {"name": "t.w", "type": "long", "nullable": True, "metadata": {"comment": "deep"}},
        "position": "AFTER x",
    }
    assert last(mapped) == ("ADD COLUMNS", {"columns": [added]})
    assert [
        (each["column"]["name"], each["column"]["type"])
        for each in _parsed(mapped.history()[1]["operationParameters"]["columns"])
    ] == [("t", "struct"), ("a b", "integer")]
    mapped.alter.add_columns("t struct<l: array<struct<z: int>>>, n int")
    assert [each["column"]["name"] for each in last(mapped)[1]["columns"]] == ["t.l.element.z", "n"]
    mapped.alter.change_column("t.l.element.z", first=True)
    assert (last(mapped)[1]["column"]["name"], last(mapped)[1]["position"]) == ("t.l.element.z", "FIRST")
    mapped.alter.set_column_metadata("t.w", {"unit": "m"})
    assert last(mapped)[1]["column"]["name"] == "t.w"


def test_a_dropped_default_leaves_nothing(plain):
    plain.alter.set_properties({"delta.feature.allowColumnDefaults": "supported"})
    plain.alter.change_column("id", default="7", comment="key")
    plain.alter.change_column("id", default="")
    assert plain.schema.field("id").metadata == {"comment": "key"}
    deltaic.sql(f"ALTER TABLE delta.`{plain.location}` ALTER COLUMN id SET DEFAULT 7")
    deltaic.sql(f"ALTER TABLE delta.`{plain.location}` ALTER COLUMN id DROP DEFAULT")
    assert deltaic.DeltaTable(plain.location).schema.field("id").metadata == {"comment": "key"}


def test_the_property_comment_is_the_description(plain):
    """As in delta-spark; a property of this name is reserved in Spark's catalog."""
    plain.alter.set_properties({"comment": "all flights", "team": "x"})
    assert (plain.metadata.description, plain.metadata.configuration.get("comment")) == ("all flights", None)
    assert last(plain) == ("SET TBLPROPERTIES", {"properties": {"comment": "all flights", "team": "x"}})
    deltaic.sql(f"COMMENT ON TABLE delta.`{plain.location}` IS 'again'")
    plain = deltaic.DeltaTable(plain.location)
    assert (plain.metadata.description, last(plain)) == (
        "again",
        ("SET TBLPROPERTIES", {"properties": {"comment": "again"}}),
    )
    plain.alter.unset_properties("comment", "team")
    assert (plain.metadata.description, plain.metadata.configuration.get("team")) == (None, None)
    assert last(plain)[1]["properties"] == ["comment", "team"]
    with pytest.raises(InvalidArgumentError, match="not set"):
        plain.alter.unset_properties("comment")
    made = deltaic.DeltaTable.create(plain.location + "2", SCHEMA, properties={"comment": "new", "team": "y"})
    assert (made.metadata.description, made.metadata.configuration.get("comment")) == ("new", None)
