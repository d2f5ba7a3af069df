"""The protocol and metaData actions. Source: PROTOCOL.md, "Protocol Evolution", "Change Metadata"."""

from __future__ import annotations

import copy
import json
import pickle

import pytest

from deltaic.errors import InvalidArgumentError, ProtocolError
from deltaic.protocol.actions import Metadata, Protocol


def test_protocol_lines():
    legacy = Protocol.from_json('{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}')
    assert legacy == Protocol(1, 2)
    assert legacy.to_json() == '{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}'
    features = Protocol.from_json(
        '{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["b","a"],"writerFeatures":["b","a",'
        '"a"],"new":1}'
    )
    assert features == Protocol(3, 7, ("a", "b"), ("a", "b"))
    assert Protocol.from_json(features.to_json()) == features
    assert (
        Protocol.from_json('{"minReaderVersion":2,"minWriterVersion":7,"writerFeatures":[]}').reader_features
        is None
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"minReaderVersion":"1","minWriterVersion":2}',
        '{"minReaderVersion":1}',
        '{"minReaderVersion":true,"minWriterVersion":2}',
        '{"minReaderVersion":-1,"minWriterVersion":2}',
        '{"minReaderVersion":3,"minWriterVersion":7,"writerFeatures":[]}',
        '{"minReaderVersion":1,"minWriterVersion":7}',
        '{"minReaderVersion":1,"minWriterVersion":2,"writerFeatures":["a"]}',
        '{"minReaderVersion":1,"minWriterVersion":7,"writerFeatures":"a"}',
        '{"minReaderVersion":1,"minWriterVersion":7,"writerFeatures":[1]}',
    ],
)
def test_bad_protocols(text):
    with pytest.raises(ProtocolError, match="protocol"):
        Protocol.from_json(text)


FULL = {
    "id": "i",
    "name": "n",
    "description": "d ü",
    "format": {"provider": "parquet", "options": {}},
    "schemaString": '{"type":"struct","fields":[]}',
    "partitionColumns": ["p"],
    "configuration": {"k": "v"},
    "createdTime": 5,
}


def test_lists_of_names():
    metadata = Metadata("i", partition_columns=["a", "b"])
    assert (
        metadata.partition_columns
        == ["a", "b"]
        == metadata.partition_columns
        == ("a", "b")
        == metadata.partition_columns
    )
    assert metadata.partition_columns != ["b", "a"]
    assert metadata.partition_columns != "ab"
    assert hash(metadata.partition_columns) == hash(("a", "b"))
    assert Protocol(3, 7, (), ["b", "a"]).writer_features == ["a", "b"]
    assert pickle.loads(pickle.dumps(metadata.partition_columns)) == ("a", "b")


def test_text_that_is_no_unicode():
    for metadata in (Metadata("i", name="\ud800"), Metadata("i", configuration={"k": "a\udfff"})):
        with pytest.raises(InvalidArgumentError, match="surrogate"):
            metadata.to_json()


def test_metadata_lines():
    metadata = Metadata.from_json(json.dumps({"metaData": {**FULL, "unknown": 1}}))
    assert json.loads(metadata.to_json()) == {"metaData": FULL}
    assert "ü" in metadata.to_json()
    assert metadata.partition_columns == ("p",)
    assert metadata.created_time == 5
    assert Metadata.from_json(metadata.to_json()) == metadata
    assert pickle.loads(pickle.dumps(metadata)) == metadata
    assert copy.deepcopy(metadata) == metadata
    assert hash(metadata) == hash(copy.copy(metadata))
    with pytest.raises(TypeError, match="cannot change"):
        metadata.configuration["k"] = "w"
    with pytest.raises(TypeError):
        metadata.configuration.update(k="w")
    fields = {
        "id": "i",
        "format": {"provider": "parquet"},
        "schemaString": "{}",
        "partitionColumns": [],
        "configuration": {"a": None},
    }
    small = Metadata.from_json(json.dumps(fields))
    assert (small.name, small.created_time, small.configuration, small.partition_columns) == (
        None,
        None,
        {},
        (),
    )


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("partitionColumns", None),
        ("configuration", None),
        ("id", None),
        ("id", 1),
        ("name", 1),
        ("schemaString", None),
        ("schemaString", {}),
        ("partitionColumns", "p"),
        ("partitionColumns", [1]),
        ("configuration", []),
        ("configuration", {"k": 1}),
        ("createdTime", "x"),
        ("createdTime", True),
        ("format", None),
        ("format", {"provider": "orc"}),
    ],
)
def test_bad_metadata(key, value):
    with pytest.raises(ProtocolError, match=f"metaData.*{key}"):
        Metadata.from_json(json.dumps({**FULL, key: value}))
