"""Conditions about tables: whether they exist, where they lie, and their versions. An error gets the first
one that fits."""

from __future__ import annotations

from deltaic import errors as e
from deltaic.spark.condition import ANALYSIS, ARGUMENT, BASE, PARSE, RUNTIME, Condition

_ARGUMENT = e.InvalidArgumentError
_UNSUPPORTED = e.UnsupportedFeatureError
_VERSION = e.VersionNotFoundError

CONDITIONS: tuple[Condition, ...] = (
    Condition(
        "DELTA_NESTED_NOT_NULL_CONSTRAINT",
        "0AKDC",
        ANALYSIS,
        _ARGUMENT,
        None,
        {
            "parent": "parent",
            "nestType": "part",
            "configKey": "=spark.databricks.delta.constraints.allowUnenforcedNotNull.enabled",
        },
    ),
    Condition(
        "DELTA_CANNOT_REPLACE_MISSING_TABLE", "42P01", ANALYSIS, parameters={"tableName": "short_table"}
    ),
    Condition(
        "TABLE_OR_VIEW_NOT_FOUND",
        "42P01",
        ANALYSIS,
        e.DeltaError,
        "table to replace cannot be found|^REPLACE TABLE needs",
        {"relationName": "relation|found|where", "searchPath": "relation_path"},
    ),
    Condition(
        "TABLE_OR_VIEW_NOT_FOUND",
        "42P01",
        ANALYSIS,
        e.DeltaError,
        "^no such table or view",
        {"relationName": "found", "searchPath": "function_path|search_path"},
    ),
    Condition(
        "REQUIRES_SINGLE_PART_NAMESPACE",
        "42K05",
        ANALYSIS,
        parameters={"sessionCatalog": "=spark_catalog", "identifier": ".parts"},
    ),
    Condition(
        "DELTA_METADATA_ABSENT_EXISTING_CATALOG_TABLE",
        "42K03",
        RUNTIME,
        parameters={"tableName": "relation", "tableNameForDropCmd": "relation", "tablePath": "where"},
    ),
    Condition("DELTA_FILE_NOT_FOUND", "42K03", RUNTIME, parameters={"path": "where"}),
    Condition("DELTA_INVALID_PARTITION_PATH", "22KD1", ANALYSIS, parameters={"path": "partition"}),
    Condition("DELTA_PATH_DOES_NOT_EXIST", "42K03", ANALYSIS, parameters={"path": "where"}),
    Condition(
        "PATH_NOT_FOUND",
        "42K03",
        ANALYSIS,
        e.TableNotFoundError,
        "",
        {"path": "where"},
        details="found no such folder",
    ),
    Condition(
        "DELTA_TABLE_NOT_FOUND", "42P01", ANALYSIS, e.TableNotFoundError, "", {"tableName": ".name|where"}
    ),
    Condition(
        "DELTA_CANNOT_CREATE_LOG_PATH",
        "42KD5",
        BASE,
        _ARGUMENT,
        "^no table can be created here",
        {"path": "where"},
        details="found a file",
    ),
    Condition("DELTA_SCHEMA_NOT_SET", "KD008", ANALYSIS),
    Condition(
        "DELTA_TABLE_ONLY_OPERATION",
        "0AKDD",
        ANALYSIS,
        parameters={"tableName": "`where`", "operation": "operation"},
    ),
    Condition(
        "DELTA_MISSING_DELTA_TABLE",
        "42P01",
        ANALYSIS,
        _ARGUMENT,
        "^the (name|path) is not a Delta table",
        {"tableName": "`name|where|found`"},
    ),
    Condition(
        "DELTA_TABLE_ALREADY_EXISTS",
        "42P07",
        ANALYSIS,
        e.TableAlreadyExistsError,
        "^the table of the clone",
        {"tableName": "quoted_table|where"},
    ),
    Condition(
        "DELTA_UNEXPECTED_PARTITION_COLUMN_FROM_FILE_NAME",
        "KD009",
        ANALYSIS,
        _ARGUMENT,
        "^a folder has another name than the partition column",
        {"expectedCol": "`column`", "parsedCol": "`folder`", "path": "path"},
    ),
    Condition(
        "DELTA_UNEXPECTED_NUM_PARTITION_COLUMNS_FROM_FILE_NAME",
        "KD009",
        ANALYSIS,
        _ARGUMENT,
        "^the folders do not fit partition_schema",
        {
            "expectedCols": "[columns]",
            "expectedColsSize": "columns_size",
            "parsedCols": "[folders]",
            "parsedColsSize": "folders_size",
            "path": "path",
        },
    ),
    Condition(
        "TABLE_OR_VIEW_ALREADY_EXISTS",
        "42P07",
        ANALYSIS,
        e.TableAlreadyExistsError,
        "",
        {"relationName": "relation|where"},
    ),
    Condition(
        "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION",
        "42601",
        ANALYSIS,
        parameters={"tableId": "relation", "tableLocation": "where"},
    ),
    Condition("DELTA_PATH_EXISTS", "42K04", ANALYSIS, parameters={"path": "where"}),
    Condition(
        "DELTA_CREATE_TABLE_SCHEME_MISMATCH",
        "42KD7",
        ANALYSIS,
        parameters={"path": "where", "specifiedSchema": "%specified", "existingSchema": "%existing"},
    ),
    Condition(
        "DELTA_TABLE_LOCATION_MISMATCH",
        "42613",
        ANALYSIS,
        parameters={
            "tableName": "relation",
            "tableLocation": "`found`",
            "existingTableLocation": "`expected`",
        },
    ),
    Condition(
        "DELTA_AMBIGUOUS_PATHS_IN_CREATE_TABLE",
        "42613",
        ANALYSIS,
        parameters={
            "identifier": "where",
            "location": "found",
            "config": "=spark.databricks.delta.legacy.allowAmbiguousPathsInCreateTable",
        },
    ),
    Condition(
        "DELTA_SET_LOCATION_SCHEMA_MISMATCH",
        "42KD7",
        ANALYSIS,
        parameters={
            "original": "%old_schema",
            "destination": "%new_schema",
            "config": "=spark.databricks.delta.alterLocation.bypassSchemaCheck",
        },
    ),
    Condition(
        "DELTA_CANNOT_SET_LOCATION_ON_PATH_IDENTIFIER",
        "42613",
        ANALYSIS,
        _UNSUPPORTED,
        "^ALTER TABLE SET LOCATION",
    ),
    Condition(
        "DELTA_CANNOT_RESTORE_TABLE_VERSION",
        "22003",
        ANALYSIS,
        parameters={"version": "found", "startVersion": "first", "endVersion": "last"},
        details=r"(expected (?P<first>\d+) to (?P<last>\d+))?$",
    ),
    Condition(
        "DELTA_CANNOT_RESTORE_TIMESTAMP_GREATER",
        "22003",
        ANALYSIS,
        parameters={"requestedTimestamp": "@time", "latestTimestamp": "@bound"},
    ),
    Condition(
        "DELTA_CANNOT_RESTORE_TIMESTAMP_EARLIER",
        "22003",
        ANALYSIS,
        parameters={"requestedTimestamp": "@time", "earliestTimestamp": "@bound"},
    ),
    Condition(
        "DELTA_TIMESTAMP_GREATER_THAN_COMMIT",
        "42816",
        ANALYSIS,
        _VERSION,
        "the time is after the last version",
        {"providedTimestamp": "@time", "lastCommitTimestamp": "@bound", "maximumTimestamp": "~bound"},
    ),
    Condition(
        "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION",
        "42816",
        ANALYSIS,
        _VERSION,
        "the time is before the first version",
        {"userTimestamp": "@time", "commitTs": "@bound", "timestampString": "~bound"},
    ),
    Condition(
        "PARSE_SYNTAX_ERROR",
        "42601",
        PARSE,
        _ARGUMENT,
        "^not a version",
        {"error": "'error'", "hint": "="},
        # Spark's grammar takes a whole number or a text, and names the first token that is neither
        details=r"found (?:\d+(?![\w.])\s*)?(?P<error>[\w.]+|[^'\"])",
    ),
    Condition(
        "DELTA_FAILED_SCAN_WITH_HISTORICAL_VERSION",
        "KD002",
        ANALYSIS,
        parameters={"historicalVersion": "version"},
    ),
    Condition("DELTA_UNEXPECTED_PARTIAL_SCAN", "KD00A", ANALYSIS, parameters={"path": "path"}),
    Condition(
        "DELTA_CANNOT_RESOLVE_COLUMN",
        "42703",
        ANALYSIS,
        parameters={"columnName": "column", "schema": "%schema"},
    ),
    Condition(
        "DELTA_OPERATION_ON_TEMP_VIEW_WITH_GENERATED_COLS_NOT_SUPPORTED",
        "0A000",
        ANALYSIS,
        parameters={"operation": "operation"},
    ),
    Condition(
        "DELTA_TABLE_FOR_PATH_UNSUPPORTED_HADOOP_CONF",
        "0AKDC",
        ARGUMENT,
        parameters={"allowedPrefixes": "=[fs.,dfs.]", "unsupportedOptions": "options"},
    ),
    Condition(
        "DELTA_TIME_TRAVEL_INVALID_BEGIN_VALUE",
        "42604",
        ARGUMENT,
        _ARGUMENT,
        "^not a version(?! of the Parquet)",
        {"timeTravelKey": "=versionAsOf"},
    ),
    *(
        Condition(
            f"INVALID_TIME_TRAVEL_TIMESTAMP_EXPR.{place}", "42K0E", ANALYSIS, parameters={"expr": "(found)"}
        )
        for place in ("INPUT", "NON_DETERMINISTIC", "OPTION")
    ),
    Condition(
        "DELTA_TIMESTAMP_INVALID",
        "42816",
        ANALYSIS,
        _ARGUMENT,
        "^not a timestamp|^The provided timestamp",
        {"expr": "'found'"},
    ),
    Condition("INVALID_TIME_TRAVEL_SPEC", "42K0E", ANALYSIS),
    Condition("DELTA_ONEOF_IN_TIMETRAVEL", "42601", ARGUMENT, _ARGUMENT, "^versionAsOf and timestampAsOf"),
    Condition(
        "DELTA_UNSUPPORTED_TIME_TRAVEL_MULTIPLE_FORMATS",
        "42613",
        ANALYSIS,
        _ARGUMENT,
        "^time travel is given both",
    ),
    Condition("MULTIPLE_TIME_TRAVEL_SPEC", "42K0E", ANALYSIS),
    Condition(
        "DELTA_UNSUPPORTED_TIME_TRAVEL_VIEWS",
        "0AKDC",
        ANALYSIS,
        _ARGUMENT,
        "^a change data feed and time travel exclude each other",
    ),
    *(
        Condition(
            "DELTA_STATE_RECOVER_ERROR",
            "XXKDS",
            RUNTIME,
            e.ProtocolError,
            f"^the log has no {action} action",
            {"operation": f"={operation}", "version": "version"},
            details=r"version (?P<version>\d+)",
        )
        for action, operation in (("protocol", "protocol"), ("metaData", "metadata"))
    ),
    *(
        Condition(
            f"DELTA_MISSING_COMMIT_{missing}",
            "KD004",
            RUNTIME,
            parameters={"featureName": "=inCommitTimestamp", "version": "version"},
        )
        for missing in ("INFO", "TIMESTAMP")
    ),
    Condition(
        "DELTA_TRUNCATED_TRANSACTION_LOG",
        "42K03",
        RUNTIME,
        e.ProtocolError,
        "the log is truncated",
        {
            "path": "path",
            "version": "version",
            "logRetentionKey": "=delta.logRetentionDuration",
            "logRetention": "=30 days",
            "checkpointRetentionKey": "=delta.checkpointRetentionDuration",
            "checkpointRetention": "=2 days",
        },
    ),
    Condition(
        "DELTA_TXN_LOG_FAILED_INTEGRITY",
        "XXKDS",
        RUNTIME,
        e.ProtocolError,
        "^the log of version .* does not lead to the",
        {"version": "version"},
    ),
    Condition(
        "DELTA_MISSING_PART_FILES",
        "42KD6",
        RUNTIME,
        e.ProtocolError,
        "^versions are not contiguous",
        {"version": "version"},
        details=r"checkpoint of version (?P<version>\d+), which _last_checkpoint names",
    ),
    Condition(
        "DELTA_MISSING_PART_FILES",
        "42KD6",
        RUNTIME,
        e.ProtocolError,
        r"^parts of the checkpoint of version (?P<version>\d+) are missing",
        {"version": "version"},
    ),
    Condition(
        "DELTA_VERSIONS_NOT_CONTIGUOUS", "KD00C", RUNTIME, e.ProtocolError, "^versions are not contiguous"
    ),
    Condition(
        "DELTA_CREATE_TABLE_WITH_DIFFERENT_PARTITIONING",
        "42KD7",
        ANALYSIS,
        parameters={"path": "where", "specifiedColumns": "specified", "existingColumns": "existing"},
    ),
    Condition(
        "DELTA_CREATE_TABLE_WITH_DIFFERENT_CLUSTERING",
        "42KD7",
        ANALYSIS,
        parameters={"path": "where", "specifiedColumns": "specified", "existingColumns": "existing"},
    ),
    Condition(
        "DELTA_CREATE_TABLE_WITH_DIFFERENT_PROPERTY",
        "42KD7",
        ANALYSIS,
        parameters={"path": "where", "specifiedProperties": "specified", "existingProperties": "existing"},
    ),
    Condition(
        "DELTA_CREATE_EXTERNAL_TABLE_WITHOUT_TXN_LOG",
        "42K03",
        ANALYSIS,
        parameters={
            "tableName": "relation",
            "path": "where",
            "logPath": "log",
            "docLink": "=https://docs.delta.io/latest/index.html",
        },
    ),
    Condition(
        "DELTA_CREATE_TABLE_MISSING_TABLE_NAME_OR_LOCATION",
        "42601",
        ANALYSIS,
        _ARGUMENT,
        "^the builder has no location and no table name",
    ),
    Condition(
        "DELTA_CREATE_TABLE_IDENTIFIER_LOCATION_MISMATCH",
        "0AKDC",
        ANALYSIS,
        _ARGUMENT,
        "^the table has two locations",
    ),
    Condition("DELTA_MERGE_INTO_EMPTY_SCHEMA_TARGET", "428GU", ANALYSIS),
)
