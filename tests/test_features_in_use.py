"""Tables of other writers that list or use features: the features that can be read and written, and those
that are refused by name.

Source: PROTOCOL.md, "Table Features" and the features' own sections. The logs are written by hand.
"""

from __future__ import annotations

import json
from contextlib import nullcontext

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deltaic
from deltaic.errors import ConstraintViolationError, UnsupportedFeatureError

LONG = {"name": "a", "type": "long", "nullable": True, "metadata": {}}
MORE = pa.table({"a": [10]})


def listed(*names, readers=()):
    return {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": list(readers),
        "writerFeatures": [*names, *readers],
    }


def legacy(reader, writer):
    return {"minReaderVersion": reader, "minWriterVersion": writer}


def make(path, protocol, configuration=None, metadata=None):
    """A table with the rows 1, 2, 3 in column a."""
    (path / "_delta_log").mkdir(parents=True)
    pq.write_table(pa.table({"a": [1, 2, 3]}), path / "f.parquet")
    schema = {"type": "struct", "fields": [{**LONG, "metadata": metadata or {}}]}
    definition = {
        "id": "i",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps(schema),
        "partitionColumns": [],
        "configuration": configuration or {},
    }
    stats = json.dumps({"numRecords": 3, "minValues": {"a": 1}, "maxValues": {"a": 3}, "nullCount": {"a": 0}})
    file = {
        "path": "f.parquet",
        "partitionValues": {},
        "size": (path / "f.parquet").stat().st_size,
        "modificationTime": 1,
        "dataChange": True,
        "stats": stats,
    }
    lines = [{"protocol": protocol}, {"metaData": definition}, {"add": file}]
    (path / "_delta_log" / f"{0:020}.json").write_text("\n".join(map(json.dumps, lines)))
    return path


UNUSED = [
    legacy(1, 1),
    legacy(1, 3),
    legacy(1, 4),
    legacy(2, 5),
    legacy(2, 6),
    listed(
        "appendOnly",
        "invariants",
        "checkConstraints",
        "changeDataFeed",
        "generatedColumns",
        "identityColumns",
    ),
    listed(
        "allowColumnDefaults",
        "inCommitTimestamp",
        "icebergCompatV1",
        "icebergCompatV2",
        "domainMetadata",
        "clustering",
    ),
    listed(
        readers=[
            "columnMapping",
            "deletionVectors",
            "timestampNtz",
            "v2Checkpoint",
            "vacuumProtocolCheck",
            "typeWidening",
        ]
    ),
    listed(readers=["variantType", "variantShredding", "geospatial"]),
]


@pytest.mark.parametrize("protocol", UNUSED, ids=json.dumps)
def test_what_is_not_used_hinders_nothing(tmp_path, protocol):
    table = deltaic.write(make(tmp_path / "t", protocol), MORE, mode="append")
    table.update({"a": "a + 100"}, "a = 3")
    table.delete("a = 1")
    table.alter.set_description("x")
    assert sorted(table.scan().to_arrow()["a"].to_pylist()) == [2, 10, 103]


APPEND, DELETE, UPDATE, DESCRIBE = "append", "delete", "update", "describe"
RUN = {
    APPEND: lambda table: deltaic.write(table, MORE, mode="append"),
    DELETE: lambda table: table.delete("a = 1"),
    UPDATE: lambda table: table.update({"a": "5"}, "a = 1"),
    DESCRIBE: lambda table: table.alter.set_description("x"),
}
IN_USE = [
    ("checkConstraints", legacy(1, 3), {"delta.constraints.c": "a > 0"}, None, set()),
    ("checkConstraints", listed("checkConstraints"), {"delta.constraints.c": "a > 0"}, None, set()),
    ("changeDataFeed", legacy(1, 4), {"delta.enableChangeDataFeed": "true"}, None, set()),
    ("generatedColumns", legacy(1, 4), {}, {"delta.generationExpression": "if(a > 0, a, 7)"}, set()),
    (
        "icebergWriterCompatV1",
        listed("icebergWriterCompatV1"),
        {"delta.enableIcebergWriterCompatV1": "true"},
        None,
        set(RUN),
    ),
    ("shiny", listed("shiny"), {}, None, set(RUN)),
]


@pytest.mark.parametrize("operation", sorted(RUN))
@pytest.mark.parametrize(
    ("name", "protocol", "configuration", "metadata", "refused"),
    IN_USE,
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_feature_in_use_refuses_the_writes_that_would_break_it(
    tmp_path, name, protocol, configuration, metadata, refused, operation
):
    table = deltaic.DeltaTable(make(tmp_path / "t", protocol, configuration, metadata))
    assert sorted(table.scan().to_arrow()["a"].to_pylist()) == [1, 2, 3]
    before = {path for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(UnsupportedFeatureError, match=name) if operation in refused else nullcontext():
        RUN[operation](table)
    if operation in refused:
        assert {path for path in tmp_path.rglob("*") if path.is_file()} == before
        assert deltaic.DeltaTable(tmp_path / "t").version == 0


@pytest.mark.parametrize("name", ["shiny", "catalogManaged"])
def test_a_reader_feature_that_is_not_supported_refuses_to_open(tmp_path, name):
    with pytest.raises(UnsupportedFeatureError, match=name):
        deltaic.DeltaTable(make(tmp_path / "t", listed(readers=[name])))


def test_newer_versions_refuse(tmp_path):
    with pytest.raises(UnsupportedFeatureError, match="newer reader"):
        deltaic.DeltaTable(make(tmp_path / "r", {**listed(), "minReaderVersion": 4}))
    table = deltaic.DeltaTable(
        make(tmp_path / "w", {"minReaderVersion": 1, "minWriterVersion": 8, "writerFeatures": []})
    )
    with pytest.raises(UnsupportedFeatureError, match="newer writer"):
        table.alter.set_description("x")


def test_column_invariants_are_kept(tmp_path):
    """PROTOCOL.md, "Column Invariants", its example."""
    path = make(
        tmp_path / "t",
        legacy(1, 2),
        metadata={"delta.invariants": json.dumps({"expression": {"expression": "a > 0"}})},
    )
    deltaic.write(path, MORE, mode="append")
    for bad in (0, None):
        with pytest.raises(ConstraintViolationError):
            deltaic.write(path, pa.table({"a": pa.array([bad], pa.int64())}), mode="append")
    assert deltaic.DeltaTable(path).version == 1
