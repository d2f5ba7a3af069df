"""Conditions of the options of reads and writes, of the change data feed, and of streams. An error gets
the first one that fits."""

from __future__ import annotations

from deltaic import errors as e
from deltaic.spark.condition import ANALYSIS, ARGUMENT, OPERATION, RUNTIME, Condition

_ARGUMENT = e.InvalidArgumentError
_SCHEMA = e.SchemaMismatchError
_VERSION = e.VersionNotFoundError

CONDITIONS: tuple[Condition, ...] = (
    # Options of reads and writes
    Condition(
        "DELTA_REGEX_OPT_SYNTAX_ERROR",
        "2201B",
        ARGUMENT,
        _ARGUMENT,
        r"^the option (?P<name>\w+) is not a valid pattern",
        {"regExpOption": "name"},
    ),
    Condition(
        "DELTA_ILLEGAL_USAGE",
        "42601",
        ARGUMENT,
        _ARGUMENT,
        "^the option (?P<option>overwriteSchema) is not allowed when",
        {"option": "option", "operation": "=replacing"},
    ),
    Condition(
        "DELTA_OVERWRITE_SCHEMA_WITH_DYNAMIC_PARTITION_OVERWRITE",
        "42613",
        ARGUMENT,
        _ARGUMENT,
        "schema_mode='overwrite' goes",
    ),
    Condition(
        "DELTA_REPLACE_WHERE_WITH_DYNAMIC_PARTITION_OVERWRITE",
        "42613",
        ARGUMENT,
        _ARGUMENT,
        "^replaceWhere and partitionOver",
    ),
    Condition("DELTA_DYNAMIC_PARTITION_OVERWRITE_DISABLED", "0A000", ARGUMENT),
    Condition(
        "DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS",
        "42616",
        ARGUMENT,
        _ARGUMENT,
        "txnAppId and txnVersion|application transaction",
        {"reason": "=Both txnVersion and txnAppId must be specified for idempotent data frame writes"},
    ),
    Condition(
        "DELTA_VERSION_NOT_FOUND",
        "22003",
        ANALYSIS,
        _ARGUMENT,
        "^the option versionAsOf",
        {"userVersion": "found"},
        details="found '-",
    ),
    Condition(
        "DELTA_TIME_TRAVEL_INVALID_BEGIN_VALUE",
        "42604",
        ARGUMENT,
        _ARGUMENT,
        "^the option (?P<name>versionAsOf|timestampAsOf)",
        {"timeTravelKey": "name"},
    ),
    Condition(
        "CODEC_NOT_AVAILABLE.WITH_AVAILABLE_CODECS_SUGGESTION",
        "56038",
        ARGUMENT,
        _ARGUMENT,
        "^unknown compression",
        {"codecName": "found", "availableCodecs": "expected"},
    ),
    Condition(
        "DELTA_VERSION_INVALID",
        "42815",
        ANALYSIS,
        _ARGUMENT,
        "^the option (starting|ending)Version",
        {"version": "found"},
        details="whole number, at least 0$",
    ),
    Condition(
        "DELTA_ILLEGAL_OPTION",
        "42616",
        ARGUMENT,
        _ARGUMENT,
        r"^the option (?P<name>\w+)",
        {"name": "name", "input": "found", "explain": "explain|expected"},
    ),
    # The options replaceUsing and replaceOn
    Condition(
        "DELTA_INCOMPATIBLE_DATAFRAME_OPTIONS",
        "42613",
        ARGUMENT,
        parameters={"firstDeltaOption": "first", "secondDeltaOption": "second"},
    ),
    Condition("DELTA_OVERWRITE_BY_FILTER_INCOMPATIBLE_REPLACE_ON_OR_USING", "42613", ARGUMENT),
    Condition("DELTA_DYNAMIC_PARTITION_OVERWRITE_INCOMPATIBLE_REPLACE_ON_OR_USING", "42613", ARGUMENT),
    Condition("DELTA_DFV2_CREATE_REPLACE_INCOMPATIBLE_REPLACE_ON_OR_USING", "42000", ANALYSIS),
    Condition(
        "UNRESOLVED_INSERT_REPLACE_USING_COLUMN",
        "42703",
        ANALYSIS,
        parameters={"colName": "`column`", "relationType": "relation", "suggestion": "columns"},
    ),
    Condition(
        "INSERT_REPLACE_USING_DISALLOW_MISALIGNED_COLUMNS",
        "42802",
        ANALYSIS,
        parameters={"misalignedReplaceUsingCols": "`columns`"},
    ),
    Condition(
        "DELTA_INSERT_REPLACE_ON_AMBIGUOUS_COLUMNS_IN_CONDITION",
        "42702",
        ANALYSIS,
        parameters={"columnNames": "found"},
    ),
    Condition(
        "DELTA_INSERT_REPLACE_ON_UNRESOLVED_COLUMNS_IN_CONDITION",
        "42703",
        ANALYSIS,
        parameters={"columnNames": "found"},
    ),
    Condition("DELTA_METADATA_MISMATCH", "42KDG", ANALYSIS, _ARGUMENT, "^partition_by differs"),
    Condition("DELTA_CLUSTERING_COLUMNS_MISMATCH", "42P10", ANALYSIS, _ARGUMENT, "^cluster_by differs"),
    # The change data feed
    Condition(
        "DELTA_CDC_READ_NULL_RANGE_BOUNDARY",
        "22004",
        ARGUMENT,
        _ARGUMENT,
        "^a range of changes begins and ends at",
    ),
    Condition(
        "INCORRECT_NUMBER_OF_ARGUMENTS",
        "42605",
        ANALYSIS,
        parameters={
            "failure": "failure",
            "functionName": "function",
            "minArgs": "=2",
            "maxArgs": "=3",
        },
    ),
    Condition(
        "DELTA_UNSUPPORTED_EXPRESSION",
        "0A000",
        ANALYSIS,
        parameters={"expType": "found", "causedBy": "argument", "supportedTypes": "expected"},
    ),
    Condition(
        "DELTA_NO_START_FOR_CDC_READ", "42601", ANALYSIS, _ARGUMENT, "needs a first version or timestamp"
    ),
    Condition(
        "DELTA_CDC_START_VERSION_AFTER_LATEST",
        "22003",
        ARGUMENT,
        _VERSION,
        "^the changes begin after the last version",
        {"start": "found", "latest": "expected"},
    ),
    Condition(
        "DELTA_INVALID_CDC_RANGE",
        "22003",
        ARGUMENT,
        _ARGUMENT,
        "the range ends before it begins",
        {"start": "first", "end": "last"},
    ),
    Condition(
        "DELTA_MULTIPLE_CDC_BOUNDARY",
        "42614",
        ANALYSIS,
        _ARGUMENT,
        r"(?P<end>starting|ending)_version and .*_timestamp exclude",
        {"startingOrEnding": "end"},
    ),
    Condition(
        "DELTA_VERSION_NOT_FOUND",
        "22003",
        ANALYSIS,
        _VERSION,
        "",
        {"userVersion": "found", "earliest": "earliest", "latest": "latest"},
        details=r"(expected (?P<earliest>\d+) to (?P<latest>\d+))?$",
    ),
    Condition(
        "DELTA_MISSING_CHANGE_DATA",
        "KD002",
        ANALYSIS,
        _ARGUMENT,
        r"the change data feed was not on( at version (?P<version>\d+))?",
        {
            "version": "version",
            "startVersion": "first",
            "endVersion": "last",
            "key": "=delta.enableChangeDataFeed",
        },
    ),
    *(
        Condition(
            f"DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_{kind}",
            "0AKDC",
            OPERATION,
            _SCHEMA,
            pattern,
            {
                "start": "first",
                "end": "last",
                "readSchema": "read_schema",
                "readVersion": "last",
                "incompatibleVersion": "version",
            },
        )
        for kind, pattern in (
            ("DATA_SCHEMA", "between the first version, .* changes cannot be read"),
            ("SCHEMA_CHANGE", "so their changes cannot be read"),
        )
    ),
    Condition(
        "RESERVED_CDC_COLUMNS_ON_WRITE",
        "42939",
        RUNTIME,
        _SCHEMA,
        "has one of the feed's own names",
        {"columnList": "[column]", "config": "=delta.enableChangeDataFeed"},
        details=r"^column (?P<column>[^:]+):",
    ),
    Condition(
        "DELTA_TABLE_ALREADY_CONTAINS_CDC_COLUMNS",
        "42711",
        RUNTIME,
        _SCHEMA,
        "no column of the feed's own names",
        {"columnList": "[column]"},
        details=r"^column (?P<column>[^:]+):",
    ),
    # Streams
    Condition("DELTA_READ_SOURCE_SCHEMA_CONFLICT", "42K07", ANALYSIS),
    Condition("DELTA_SCHEMA_CHANGED_WITH_VERSION", "KD007", RUNTIME),
    Condition("DELTA_SCHEMA_CHANGED_WITH_STARTING_OPTIONS", "KD007", RUNTIME),
    Condition("DELTA_STREAMING_SCHEMA_MISMATCH_ON_RESTART", "KD007", RUNTIME),
    Condition("DELTA_SOURCE_IGNORE_DELETE", "0A000", OPERATION),
    Condition("DELTA_SOURCE_TABLE_IGNORE_CHANGES", "0A000", OPERATION),
    Condition("DELTA_MISSING_FILES_UNEXPECTED_VERSION", "42K03", RUNTIME),
    Condition("DELTA_LOG_FILE_NOT_FOUND_FOR_STREAMING_SOURCE", "42K03", RUNTIME),
    Condition("DELTA_INVALID_SOURCE_VERSION", "XXKDS", RUNTIME),
    Condition("DELTA_INVALID_SOURCE_OFFSET_FORMAT", "XXKDS", RUNTIME),
    Condition("DELTA_INVALID_FORMAT_FROM_SOURCE_VERSION", "XXKDS", RUNTIME),
    Condition("DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE", "55019", RUNTIME),
    Condition("DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG", "42KD4", OPERATION),
    Condition("DELTA_STREAMING_METADATA_EVOLUTION", "22000", RUNTIME),
    Condition("DELTA_STREAMING_CANNOT_CONTINUE_PROCESSING_POST_SCHEMA_EVOLUTION", "KD002", RUNTIME),
    Condition("DELTA_STREAMING_SCHEMA_LOCATION_CONFLICT", "22000", RUNTIME),
    Condition("DELTA_STREAMING_SCHEMA_LOG_DESERIALIZE_FAILED", "22000", RUNTIME),
    Condition("DELTA_STREAMING_SCHEMA_LOG_INCOMPATIBLE_DELTA_TABLE_ID", "22000", RUNTIME),
    Condition("DELTA_STREAMING_SCHEMA_LOG_INIT_FAILED_INCOMPATIBLE_METADATA", "22000", RUNTIME),
    Condition("DELTA_STARTING_VERSION_AND_TIMESTAMP_BOTH_SET", "42613", ARGUMENT),
    Condition(
        "DELTA_UNSUPPORTED_OUTPUT_MODE",
        "0AKDC",
        ANALYSIS,
        _ARGUMENT,
        "the output mode of a stream",
        {"mode": "found", "dataSource": "=delta"},
    ),
)
