"""Conditions of CONVERT TO DELTA and CLONE. An error gets the first one that fits."""

from __future__ import annotations

from deltaic import errors as e
from deltaic.spark.condition import ANALYSIS, ARGUMENT, RUNTIME, Condition

_ARGUMENT = e.InvalidArgumentError
_UNSUPPORTED = e.UnsupportedFeatureError

CONDITIONS: tuple[Condition, ...] = (
    Condition(
        "DELTA_OPERATION_NOT_ALLOWED_DETAIL",
        "0AKDC",
        ANALYSIS,
        _ARGUMENT,
        "^a view cannot be converted",
        {"operation": "=Converting a view to a Delta table", "tableName": "found"},
    ),
    Condition(
        "DELTA_CONVERT_NON_PARQUET_TABLE",
        "0AKDC",
        ANALYSIS,
        _UNSUPPORTED,
        "^CONVERT TO DELTA takes only Parquet tables",
        {"sourceName": "found", "tableId": "where"},
    ),
    Condition(
        "DELTA_MISSING_PROVIDER_FOR_CONVERT",
        "0AKDC",
        ANALYSIS,
        _ARGUMENT,
        "^CONVERT TO DELTA needs the format",
        {"path": "found"},
    ),
    Condition(
        "DELTA_UNEXPECTED_PARTITION_SCHEMA_FROM_USER",
        "KD009",
        ANALYSIS,
        _ARGUMENT,
        "^PARTITIONED BY has other columns than the catalog",
        {"catalogPartitionSchema": "%known", "userPartitionSchema": "%given"},
    ),
    Condition("DELTA_CONVERSION_NO_PARTITION_FOUND", "42KD6", ANALYSIS, parameters={"tableName": "table"}),
    Condition(
        "DELTA_CLONE_UNSUPPORTED_SOURCE", "0AKDC", ANALYSIS, parameters={"name": "name", "format": "format"}
    ),
    Condition(
        "DELTA_CLONE_AMBIGUOUS_TARGET",
        "42613",
        ARGUMENT,
        _ARGUMENT,
        "^the clone has a path as its name, and a LOCATION",
        {"externalLocation": "location", "targetIdentifier": "target"},
        details="found (?P<target>.*) LOCATION '(?P<location>.*)'; expected",
    ),
    Condition(
        "DELTA_UNSUPPORTED_CLONE_REPLACE_SAME_TABLE",
        "0AKDC",
        ANALYSIS,
        _ARGUMENT,
        "cannot be cloned onto itself",
    ),
    Condition(
        "DELTA_EMPTY_DIRECTORY",
        "42K03",
        RUNTIME,
        _ARGUMENT,
        "there are no Parquet files",
        {"directory": "where"},
    ),
)
