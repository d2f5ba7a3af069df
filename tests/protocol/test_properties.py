"""Table properties: names, values, and the properties that are refused."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaic.errors import InvalidArgumentError, InvalidTypeError, ProtocolError, UnsupportedFeatureError
from deltaic.protocol.properties import REGISTRY, Status, TableProperties, constraint_names, request
from deltaic.protocol.values import format_duration, parse_columns, parse_duration, parse_size


@given(st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=100_000)))
def test_durations_round_trip(value):
    assert parse_duration(format_duration(value)) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("interval 7 days", timedelta(days=7)),
        ("INTERVAL 1 WEEK", timedelta(weeks=1)),
        ("2 weeks 3 hours", timedelta(weeks=2, hours=3)),
        ("interval 0 hours", timedelta(0)),
        ("-1 day 86400001 milliseconds", timedelta(milliseconds=1)),
        ("1 day -1 microseconds", timedelta(days=1, microseconds=-1)),
        ("1 day - 1 hour", timedelta(hours=23)),
        (" interval 1 day 5 milliseconds ", timedelta(days=1, milliseconds=5)),
    ],
)
def test_durations(text, value):
    assert parse_duration(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "interval",
        "7",
        "interval 1 month",
        "interval 1 year",
        "interval -1 days",
        "1 day -86400001 milliseconds",
        "1 day x",
        "1 day-1 hour",
        "1.5 days",
        "interval 999999999999999 weeks",
    ],
)
def test_bad_durations(text):
    with pytest.raises(InvalidArgumentError, match="duration"):
        parse_duration(text)


def test_sizes_and_columns():
    assert [parse_size(text) for text in ("134217728", "128mb", "1 GiB", "2K", "5b")] == [
        2**27,
        2**27,
        2**30,
        2048,
        5,
    ]
    for text in ("", "0", "-1", "1.5mb", "mb", "9999999999tb"):
        with pytest.raises(InvalidArgumentError, match="size"):
            parse_size(text)
    assert parse_columns("a, b.c ,`x,y`.z") == ("a", "b.c", "`x,y`.z")
    assert parse_columns("") == parse_columns(" ") == ()
    for text in (",", "a,,b", "`a"):
        with pytest.raises(InvalidArgumentError, match="columns"):
            parse_columns(text)


def test_request_normalises():
    asked = request(
        {
            "delta.ENABLEdeletionvectors": True,
            "delta.checkpointInterval": 5,
            "delta.logRetentionDuration": timedelta(days=2, hours=1),
            "delta.columnMapping.mode": "NAME",
            "delta.minReaderVersion": 2,
            "delta.minWriterVersion": "5",
            "delta.feature.deletionVectors": "supported",
            "delta.ignoreProtocolDefaults": "true",
            "deltaic.inlineDeletionVectors": "True",
            "my.own": "x",
            "Own": False,
        }
    )
    assert asked.stored == {
        "delta.enableDeletionVectors": "true",
        "delta.checkpointInterval": "5",
        "delta.logRetentionDuration": "interval 2 days 1 hours",
        "delta.columnMapping.mode": "name",
        "deltaic.inlineDeletionVectors": "True",
        "my.own": "x",
        "Own": "false",
    }
    assert (asked.min_reader_version, asked.min_writer_version, asked.features) == (
        2,
        5,
        ("deletionVectors",),
    )
    assert request(None).stored == {}


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("delta.enableDeletionVector", "true", "delta.enableDeletionVectors"),
        ("delta.nonsense", "1", "unknown"),
        ("deltaic.nonsense", "1", "unknown"),
        ("delta.appendOnly", "yes", "boolean"),
        ("delta.checkpointInterval", 0, "whole number"),
        ("delta.checkpointInterval", "x", "whole number"),
        ("delta.dataSkippingNumIndexedCols", -2, "whole number"),
        ("delta.columnMapping.mode", "names", "none, name, id"),
        ("delta.columnMapping.maxColumnId", 5, "cannot be set"),
        ("delta.isolationLevel", "ReadCommitted", "SnapshotIsolation"),
        ("delta.constraints.x", "a > 1", "add_constraints"),
        ("delta.feature.x", "yes", "supported"),
        ("delta.logRetentionDuration", timedelta(days=-1), "negative"),
    ],
)
def test_request_refuses(name, value, message):
    with pytest.raises(InvalidArgumentError, match=message):
        request({name: value})


def test_request_refuses_types_and_doubles():
    with pytest.raises(InvalidTypeError, match="float"):
        request({"a": 1.5})
    with pytest.raises(InvalidTypeError):
        request({1: "a"})
    with pytest.raises(InvalidArgumentError, match="twice"):
        request({"delta.appendOnly": True, "delta.appendonly": True})


def other_value(text):
    return {False: "true", True: "false", "classic": "v2", "1.0.0": "2.12.0", "": "iceberg"}.get(
        text, "interval 99 days"
    )


@pytest.mark.parametrize(
    "known", [item for item in REGISTRY.values() if item.status is Status.REFUSED], ids=lambda item: item.name
)
def test_what_is_not_honoured_is_refused_unless_it_changes_nothing(known):
    with pytest.raises(UnsupportedFeatureError, match=known.name):
        request({known.name: other_value(known.default)})
    same = known.default if not isinstance(known.default, bool) else str(known.default).lower()
    assert request({known.name: same}).stored


def test_typed_access():
    unset = TableProperties({})
    assert unset.checkpoint_interval == 10
    assert unset.log_retention == timedelta(days=30)
    assert unset.deleted_file_retention == timedelta(days=7)
    assert unset.target_file_size == 256 * 1024 * 1024
    assert unset.set_transaction_retention is None
    assert unset.random_prefix_length == 0
    assert unset.data_skipping_stats_columns is None
    assert unset.compression == "zstd"
    assert not any(
        (
            unset.append_only,
            unset.deletion_vectors,
            unset.auto_compact,
            unset.inline_deletion_vectors,
            unset.iceberg_compat,
        )
    )
    assert all((unset.expired_log_cleanup, unset.checkpoint_stats_as_json, unset.checkpoint_stats_as_struct))
    given = TableProperties(
        {
            "delta.enableDeletionVectors": "TRUE",
            "delta.targetFileSize": "64mb",
            "delta.randomizeFilePrefixes": "true",
            "delta.dataSkippingStatsColumns": "a,b.c",
            "delta.autoOptimize.autoCompact": "auto",
            "delta.enableIcebergCompatV2": "true",
            "delta.parquet.compression.codec": "NONE",
        }
    )
    assert given.deletion_vectors
    assert given.target_file_size == 2**26
    assert given.random_prefix_length == 2
    assert given.data_skipping_stats_columns == ("a", "b.c")
    assert given.auto_compact
    assert given.iceberg_compat == (2,)
    assert given.compression == "uncompressed"
    with pytest.raises(ProtocolError, match=r"delta\.checkpointInterval"):
        _ = TableProperties({"delta.checkpointInterval": "ten"}).checkpoint_interval


def test_every_accessor_reads_its_default():
    for name in dir(TableProperties):
        if isinstance(getattr(TableProperties, name), property):
            getattr(TableProperties({}), name)


def test_constraint_names():
    assert constraint_names(
        {"delta.constraints.b": "x", "delta.constraints.a": "y", "delta.appendOnly": "true"}
    ) == ["a", "b"]
