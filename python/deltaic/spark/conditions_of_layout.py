"""Conditions about columns by which the files of a table are arranged: partition columns, clustering columns,
columns of a Z-order, and columns with statistics. An error gets the first one that fits."""

from __future__ import annotations

from deltaic import errors as e
from deltaic.spark.condition import ANALYSIS, ARGUMENT, Condition

_ARGUMENT = e.InvalidArgumentError
_SCHEMA = e.SchemaMismatchError

_UNKNOWN_PATH = "^no such clustering column|^no such column to (collect statistics|order)"
"""Matches errors for columns whose names lead into types."""

CONDITIONS: tuple[Condition, ...] = (
    Condition(
        "DELTA_PARTITION_COLUMN_NOT_FOUND",
        "42703",
        ANALYSIS,
        _ARGUMENT,
        "^no such partition column",
        {"columnName": "`found`", "schemaMap": "columns"},
        details="(expected (one of )?(?P<columns>.+))?$",
    ),
    Condition(  # Spark's own, for CREATE TABLE
        "UNSUPPORTED_FEATURE.PARTITION_WITH_NESTED_COLUMN_IS_UNSUPPORTED",
        "0A000",
        ANALYSIS,
        parameters={"cols": ".path|found"},
    ),
    *(
        Condition(
            f"DELTA_{name}",
            state,
            ANALYSIS,
            _ARGUMENT,
            _UNKNOWN_PATH,
            {**parameters, "schema": "%table_schema"},
            requires=requires,
        )
        for name, state, requires, parameters in (
            (
                "INCORRECT_ARRAY_ACCESS_BY_NAME",
                "KD003",
                "element",
                {"rightName": "element", "wrongName": "base"},
            ),
            ("FOUND_MAP_TYPE_COLUMN", "KD003", "key", {"key": "key", "value": "value"}),
            (
                "COLUMN_PATH_NOT_NESTED",
                "42704",
                "leaf",
                {"columnPath": "part", "other": "^leaf_type", "column": "leaf"},
            ),
        )
    ),
    Condition(
        "FIELD_NOT_FOUND",
        "42704",
        ANALYSIS,
        _ARGUMENT,
        "^no such column to order",
        {"fieldName": "`field", "fields": "`fields"},
        requires="fields",
    ),
    Condition(
        "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA",
        "42703",
        ANALYSIS,
        _ARGUMENT,
        "^no such clustering column|^no such column to collect statistics|^a column is dropped twice",
        {"columnName": "found|where", "tableSchema": "%table_schema"},
    ),
    Condition(
        "DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_PARTITIONED_COLUMN",
        "0AKDC",
        ARGUMENT,
        _ARGUMENT,
        "^a partition column has no statistics",
        {"column": "found"},
    ),
    Condition(
        "DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_TYPE",
        "0AKDC",
        ARGUMENT,
        _ARGUMENT,
        "no statistics of this type$",
        {"column": "column", "type": "found"},
    ),
    Condition(
        "DELTA_DUPLICATE_DATA_SKIPPING_COLUMNS",
        "42701",
        ARGUMENT,
        _ARGUMENT,
        "^a column to collect statistics comes twice",
        {"columns": "found"},
    ),
    *(
        Condition(
            f"DELTA_DUPLICATE_COLUMNS_FOUND.{place}",
            "42711",
            ANALYSIS,
            _ARGUMENT,
            pattern,
            {"duplicateCols": "`found`"},
        )
        for place, pattern in (
            ("PARTITION_COLUMNS", "^a partition column is named twice"),
            ("CLUSTER_BY", "^a clustering column comes twice"),
        )
    ),
    Condition(  # Spark's own, for CREATE TABLE
        "_LEGACY_ERROR_TEMP_3058",
        None,
        ANALYSIS,
        parameters={"checkType": "=in the partitioning", "duplicateColumns": "found"},
    ),
    Condition(
        "DELTA_CANNOT_USE_ALL_COLUMNS_FOR_PARTITION",
        "428FT",
        ANALYSIS,
        _ARGUMENT,
        "not every column can be a partition",
    ),
    Condition("ALL_PARTITION_COLUMNS_NOT_ALLOWED", "KD005", ANALYSIS),
    Condition(
        "DELTA_NON_PARTITION_COLUMN_ABSENT",
        "KD005",
        ANALYSIS,
        _SCHEMA,
        "^the data has partition columns only",
        {"details": "="},
    ),
    Condition("INVALID_PARTITION_COLUMN_DATA_TYPE", "0A000", ANALYSIS, parameters={"type": '"type"'}),
    Condition(
        "DELTA_INVALID_PARTITION_COLUMN_TYPE",
        "42996",
        ANALYSIS,
        _ARGUMENT,
        "cannot be partitioned by this column",
        {"name": "where", "dataType": "^column_type"},
    ),
    Condition(
        "DELTA_ALTER_TABLE_CLUSTER_BY_ON_PARTITIONED_TABLE_NOT_ALLOWED",
        "42000",
        ANALYSIS,
        _ARGUMENT,
        "^a partitioned table cannot be clustered",
    ),
    Condition(
        "DELTA_CLUSTER_BY_WITH_PARTITIONED_BY",
        "42613",
        ANALYSIS,
        _ARGUMENT,
        "partitioned or clustered, not both",
    ),
    Condition("SPECIFY_CLUSTER_BY_WITH_PARTITIONED_BY_IS_NOT_ALLOWED", "42908", ANALYSIS),
    Condition(
        "DELTA_CLUSTER_BY_INVALID_NUM_COLUMNS",
        "54000",
        ANALYSIS,
        _ARGUMENT,
        r"clustered by at most (?P<limit>\d+)",
        {"numColumnsLimit": "limit", "actualNumColumns": "found"},
    ),
    Condition(
        "DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED",
        "0A000",
        ANALYSIS,
        _ARGUMENT,
        "no statistics to cluster by",
        {"columnsWithDataTypes": "columns"},
    ),
    Condition(
        "DELTA_ZORDERING_ON_COLUMN_WITHOUT_STATS",
        "KD00D",
        ANALYSIS,
        _ARGUMENT,
        "^Z-ordering by a column without statistics",
        {
            "cols": "cols",
            "zorderColStatKey": "=spark.databricks.delta.optimize.zorder.checkStatsCollection.enabled",
        },
    ),
    Condition(
        "DELTA_CLUSTERING_COLUMN_MISSING_STATS",
        "22000",
        ANALYSIS,
        _ARGUMENT,
        "by a column without statistics|by a column that would have no statistics",
    ),
)
