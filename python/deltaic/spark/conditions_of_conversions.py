"""Conditions of CONVERT TO DELTA and CLONE. An error gets the first one that fits."""

from __future__ import annotations

from deltaic import errors as e
from deltaic.spark.condition import ANALYSIS, ARGUMENT, OPERATION, RUNTIME, Condition

_ARGUMENT = e.InvalidArgumentError
_UNSUPPORTED = e.UnsupportedFeatureError

CONDITIONS: tuple[Condition, ...] = (
    Condition(
        "DELTA_CONVERSION_UNSUPPORTED_COLUMN_MAPPING",
        "0AKDC",
        OPERATION,
        e.UnsupportedFeatureError,
        "^columns of files that others wrote are found by their names",
        {"config": "=spark.databricks.delta.properties.defaults.columnMapping.mode", "mode": "found"},
    ),
    Condition(
        "DELTA_UNEXPECTED_NUM_PARTITION_COLUMNS_FROM_FILE_NAME",
        "KD009",
        ANALYSIS,
        _ARGUMENT,
        "^two files lie in folders of different partition columns",
        {
            "expectedCols": "[columns]",
            "expectedColsSize": "columns_size",
            "parsedCols": "[folders]",
            "parsedColsSize": "folders_size",
            "path": "path",
        },
    ),
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
    Condition(
        "DELTA_FAILED_CAST_PARTITION_VALUE",
        "22018",
        RUNTIME,
        e.SchemaMismatchError,
        "^the name of a folder is not a value of the partition column",
        {"value": "found"},
    ),
    Condition(
        "DELTA_FAILED_MERGE_SCHEMA_FILE",
        "42KDA",
        RUNTIME,
        e.SchemaMismatchError,
        "^a column has two types",
        {"file": "file"},
        details=r"^(?P<file>[^:]+), column ",
    ),
    Condition(
        "DELTA_FAILED_READ_FILE_FOOTER",
        "KD001",
        RUNTIME,
        e.ProtocolError,
        "^a file to convert cannot be read",
        {"currentFile": "where"},
    ),
    Condition(
        "DELTA_PARTITION_SCHEMA_IN_ICEBERG_TABLES",
        "42613",
        ARGUMENT,
        _ARGUMENT,
        "^PARTITIONED BY cannot be used for an Iceberg table",
    ),
    Condition("DELTA_CONVERSION_NO_PARTITION_FOUND", "42KD6", ANALYSIS, parameters={"tableName": "table"}),
    Condition(
        "DELTA_CLONE_UNSUPPORTED_SOURCE", "0AKDC", ANALYSIS, parameters={"name": "name", "format": "format"}
    ),
    Condition(
        "DELTA_CONVERT_TO_DELTA_ROW_TRACKING_WITHOUT_STATS",
        "22000",
        RUNTIME,
        _ARGUMENT,
        "^row tracking needs the number of rows of every file",
        {
            "statisticsCollectionPropertyKey": "=spark.databricks.delta.stats.collect",
            "rowTrackingTableFeatureDefaultKey": (
                "=spark.databricks.delta.properties.defaults.feature.rowTracking"
            ),
            "rowTrackingDefaultPropertyKey": "=spark.databricks.delta.properties.defaults.enableRowTracking",
        },
    ),
    Condition("DELTA_CLONE_WITH_ROW_TRACKING_WITHOUT_STATS", "22000", OPERATION),
    Condition("DELTA_INVALID_CLONE_PATH", "22KD1", ARGUMENT, parameters={"path": "path"}),
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
        "DELTA_UNSUPPORTED_NON_EMPTY_CLONE",
        "0AKDC",
        RUNTIME,
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
