"""Feature gates. Source: PROTOCOL.md, "Table Features", "Valid Feature Names", and the feature's own
sections."""

from __future__ import annotations

import json

import pytest

from deltaic.errors import ProtocolError, UnsupportedFeatureError
from deltaic.protocol import features
from deltaic.protocol.actions import Metadata, Protocol
from deltaic.protocol.features import FEATURES, Change, check_readable, check_writable
from deltaic.protocol.schema import Array, Field, Map, Schema, Struct
from deltaic.protocol.widening import is_widening


def metadata(schema: Schema | str = "a int", configuration=None, partition_columns=()):
    return Metadata(
        "id",
        schema_string=Schema.of(schema).to_json(),
        configuration=configuration or {},
        partition_columns=partition_columns,
    )


def listed(*names: str) -> Protocol:
    """Returns a protocol with exactly these features, each in its list."""
    return Protocol(3, 7, tuple(name for name in names if FEATURES[name].reader), names)


def keyed(**keys):
    return Schema(
        [Field("a", "long", metadata={name.replace("__", "."): value for name, value in keys.items()})]
    )


IN_USE = {
    "appendOnly": metadata(configuration={"delta.appendOnly": "true"}),
    "invariants": metadata(keyed(delta__invariants="{}")),
    "checkConstraints": metadata(configuration={"delta.constraints.c": "a > 1"}),
    "changeDataFeed": metadata(configuration={"delta.enableChangeDataFeed": "true"}),
    "generatedColumns": metadata(keyed(delta__generationExpression="1")),
    "columnMapping": metadata(configuration={"delta.columnMapping.mode": "name"}),
    "identityColumns": metadata(keyed(delta__identity__start=1)),
    "deletionVectors": metadata(configuration={"delta.enableDeletionVectors": "true"}),
    "timestampNtz": metadata("s struct<m: map<string, timestamp_ntz>>"),
    "variantType": metadata(Schema([Field("a", Array("variant"))])),
    "allowColumnDefaults": metadata(keyed(CURRENT_DEFAULT="1")),
    "inCommitTimestamp": metadata(configuration={"delta.enableInCommitTimestamps": "true"}),
    "icebergCompatV1": metadata(configuration={"delta.enableIcebergCompatV1": "true"}),
    "icebergCompatV2": metadata(configuration={"delta.enableIcebergCompatV2": "true"}),
    "icebergCompatV3": metadata(configuration={"delta.enableIcebergCompatV3": "true"}),
    "icebergWriterCompatV1": metadata(configuration={"delta.enableIcebergWriterCompatV1": "true"}),
    "rowTracking": metadata(),
    "materializePartitionColumns": metadata("p int, a int", partition_columns=("p",)),
    "typeWidening": metadata(
        Schema(
            [Field("a", "long", metadata={"delta.typeChanges": [{"fromType": "integer", "toType": "long"}]})]
        )
    ),
    "checkpointProtection": metadata(configuration={"delta.requireCheckpointProtectionBeforeVersion": "5"}),
    "coordinatedCommits-preview": metadata(
        configuration={"delta.coordinatedCommits.commitCoordinator-preview": "x"}
    ),
    "redirectReaderWriter-preview": metadata(configuration={"delta.redirectReaderWriter-preview": "{}"}),
    "redirectWriterOnly-preview": metadata(configuration={"delta.redirectWriterOnly-preview": "{}"}),
    "collations": metadata(Schema([Field("a", "string", metadata={"__COLLATIONS": {"a": "x"}})])),
    "vacuumProtocolCheck": metadata(),
    "domainMetadata": metadata(),
    "clustering": metadata(),
    "v2Checkpoint": metadata(configuration={"delta.checkpointPolicy": "v2"}),
}


@pytest.mark.parametrize("name", sorted(FEATURES))
def test_a_listed_feature_hinders_only_where_it_is_in_use(name):
    known = FEATURES[name]
    if not known.used(features.Definition(metadata())):
        check_readable(listed(name), metadata())
        for change in Change:
            check_writable(listed(name), metadata(), change)
    if name in IN_USE:
        assert known.used(features.Definition(IN_USE[name]))
        for change in Change:
            if change in known.refused:
                with pytest.raises(UnsupportedFeatureError, match=name):
                    check_writable(listed(name), IN_USE[name], change)
            else:
                check_writable(listed(name), IN_USE[name], change)


REFUSED = [
    ("checkConstraints", set()),
    ("generatedColumns", set()),
    ("identityColumns", set()),
    ("allowColumnDefaults", set()),
    ("changeDataFeed", set()),
    ("rowTracking", set()),
    ("inCommitTimestamp", set()),
    ("icebergCompatV2", set()),
    ("icebergWriterCompatV1", set(Change)),
    ("deletionVectors", set()),
    ("columnMapping", set()),
    ("appendOnly", set()),
    ("invariants", set()),
    ("typeWidening", set()),
]


@pytest.mark.parametrize(("name", "changes"), REFUSED)
def test_what_each_feature_in_use_refuses(name, changes):
    for change in Change:
        if change in changes:
            with pytest.raises(UnsupportedFeatureError, match=name):
                check_writable(listed(name), IN_USE[name], change)
        else:
            check_writable(listed(name), IN_USE[name], change)


def test_legacy_versions_imply_features():
    """PROTOCOL.md, "Writer Version Requirements"."""
    expected = {
        (1, 1): set(),
        (1, 2): {"appendOnly", "invariants"},
        (1, 3): {"appendOnly", "invariants", "checkConstraints"},
        (1, 4): {"appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns"},
        (2, 5): {
            "appendOnly",
            "invariants",
            "checkConstraints",
            "changeDataFeed",
            "generatedColumns",
            "columnMapping",
        },
        (2, 6): {
            "appendOnly",
            "invariants",
            "checkConstraints",
            "changeDataFeed",
            "generatedColumns",
            "columnMapping",
            "identityColumns",
        },
    }
    for versions, names in expected.items():
        assert features.supported(Protocol(*versions)) == names
        for change in Change:
            check_writable(Protocol(*versions), metadata(), change)
    with pytest.raises(UnsupportedFeatureError, match="icebergWriterCompatV1"):
        check_writable(listed("icebergWriterCompatV1"), IN_USE["icebergWriterCompatV1"], Change.ADD)
    # Not supported by the protocol, so not active.
    check_writable(Protocol(2, 6), IN_USE["icebergWriterCompatV1"], Change.ADD)


@pytest.mark.parametrize(
    ("protocol", "error", "message"),
    [
        (Protocol(4, 7, (), ()), UnsupportedFeatureError, "newer reader"),
        (Protocol(1, 8, None, ()), UnsupportedFeatureError, "newer writer"),
        (Protocol(3, 7, ("shiny",), ("shiny",)), UnsupportedFeatureError, "shiny"),
        (Protocol(3, 7, (), ("shiny",)), UnsupportedFeatureError, "shiny"),
        (Protocol(3, 7, ("catalogManaged",), ("catalogManaged",)), UnsupportedFeatureError, "catalogManaged"),
        (Protocol(3, 6, ("deletionVectors",), None), ProtocolError, "writer version 7"),
        (Protocol(3, 7, ("deletionVectors",), ()), ProtocolError, "deletionVectors"),
    ],
)
def test_refused_protocols(protocol, error, message):
    with pytest.raises(error, match=message):
        check_writable(protocol, metadata())


def test_writer_only_unknowns_do_not_hinder_readers():
    check_readable(Protocol(1, 7, None, ("shiny",)), metadata())
    check_readable(Protocol(1, 9, None, ("shiny",)), metadata())


def test_type_changes_are_checked_by_readers():
    check_readable(listed("typeWidening"), IN_USE["typeWidening"])
    for changes in (
        [{"fromType": "long", "toType": "integer"}],
        [{"fromType": "string"}],
        ["x"],
        {"a": 1},
        [{"fromType": "string", "toType": "long"}],
    ):
        schema = Schema([Field("s", Struct([Field("a", "long", metadata={"delta.typeChanges": changes})]))])
        with pytest.raises(UnsupportedFeatureError, match=r"s\.a"):
            check_readable(listed("typeWidening"), metadata(schema))


WIDER = [
    ("byte", "short"), ("short", "integer"), ("integer", "long"), ("byte", "long"), ("float", "double"),
    ("integer", "double"), ("date", "timestamp_ntz"), ("decimal(5,2)", "decimal(6,2)"),
    ("decimal(5,2)", "decimal(6,3)"), ("integer", "decimal(10,0)"), ("byte", "decimal(12,2)"),
    ("long", "decimal(20,0)"),
]  # fmt: skip
NOT_WIDER = [
    ("long", "integer"), ("long", "double"), ("double", "float"), ("integer", "float"), ("date", "timestamp"),
    ("decimal(5,2)", "decimal(5,2)"), ("decimal(5,2)", "decimal(5,3)"), ("decimal(6,2)", "decimal(6,1)"),
    ("integer", "decimal(11,2)"), ("long", "decimal(19,0)"), ("string", "long"), ("boolean", "byte"),
    ("byte", "byte"),
]  # fmt: skip


def test_widening_table():
    """PROTOCOL.md, "Type Widening", supported type changes."""
    assert [pair for pair in WIDER if not is_widening(*pair)] == []
    assert [pair for pair in NOT_WIDER if is_widening(*pair)] == []


def test_column_mapping_counts_only_with_its_feature():
    mapped = IN_USE["columnMapping"]
    assert features.column_mapping_mode(Protocol(2, 5), mapped) == "name"
    assert features.column_mapping_mode(Protocol(2, 7, None, ("columnMapping",)), mapped) == "name"
    assert features.column_mapping_mode(listed("columnMapping"), mapped) == "name"
    assert features.column_mapping_mode(Protocol(1, 2), mapped) == "none"
    assert features.column_mapping_mode(listed("deletionVectors"), mapped) == "none"


@pytest.mark.parametrize(
    ("adds", "removes", "data_change", "expected"),
    [
        (False, False, True, Change.DEFINITION),
        (True, False, True, Change.ADD),
        (False, True, True, Change.REMOVE),
        (True, True, True, Change.REPLACE),
        (True, True, False, Change.REARRANGE),
    ],
)
def test_change_of_a_commit(adds, removes, data_change, expected):
    assert Change.of(adds=adds, removes=removes, data_change=data_change) is expected


def domain(*columns):
    return {"delta.clustering": json.dumps({"clusteringColumns": list(columns)})}


def test_clustering_columns_need_statistics():
    """PROTOCOL.md, "Clustered Table": statistics of the clustering columns are a must; the names are
    physical."""
    protocol = listed("clustering", "domainMetadata", "columnMapping")
    schema = Schema(
        [
            Field(
                "a", "long", metadata={"delta.columnMapping.physicalName": "pa", "delta.columnMapping.id": 1}
            ),
            Field(
                "s",
                Struct([Field("x", "long", metadata={"delta.columnMapping.physicalName": "px"})]),
                metadata={"delta.columnMapping.physicalName": "ps"},
            ),
            Field("m", Map("string", "long")),
        ]
    )
    for configuration, columns, missing in [
        ({}, [["pa"], ["ps", "px"]], None),
        ({}, ["pa"], None),
        ({"delta.dataSkippingNumIndexedCols": "1"}, [["pa"], ["ps", "px"]], r"found s\.x"),
        ({"delta.dataSkippingNumIndexedCols": "-1"}, [["ps", "px"]], None),
        ({"delta.dataSkippingStatsColumns": "s,gone"}, [["ps", "px"]], None),
        ({"delta.dataSkippingStatsColumns": "S.x"}, [["pa"], ["ps", "px"]], "found a"),
    ]:
        given = metadata(schema, configuration)
        if missing is None:
            check_writable(protocol, given, Change.ADD, domains=domain(*columns))
        else:
            with pytest.raises(UnsupportedFeatureError, match=missing):
                check_writable(protocol, given, Change.ADD, domains=domain(*columns))
            check_writable(protocol, given, Change.REMOVE, domains=domain(*columns))
    for text in (
        "",
        "[]",
        '{"clusteringColumns": 1}',
        '{"clusteringColumns": [[]]}',
        '{"clusteringColumns": [[1]]}',
    ):
        with pytest.raises(ProtocolError, match=r"delta\.clustering"):
            check_writable(protocol, metadata(schema), Change.ADD, domains={"delta.clustering": text})
