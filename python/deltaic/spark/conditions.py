"""Which of delta-spark's error conditions an error of ours is: its name, SQLSTATE and class of `pyspark.errors`.

Source: delta-io/delta, spark/src/main/resources/error/delta-error-classes.json, for names and SQLSTATEs; DeltaErrors.scala for classes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from deltaic import errors as e

ANALYSIS, RUNTIME, ARGUMENT = "AnalysisException", "SparkRuntimeException", "IllegalArgumentException"
OPERATION, PARSE, BASE = "UnsupportedOperationException", "ParseException", "PySparkException"


@dataclass(frozen=True)
class Condition:
    """One of delta-spark's conditions.

    `kind`: the class of `pyspark.errors`. `error`, `pattern`: errors of this class whose message the pattern finds are of the condition; an
    empty pattern takes every message, None only one that begins with `[name]`. `parameters`: names of message parameters -> the attribute
    of the error, or the group of the pattern, that has the value; "`found`" puts the value into backticks, as Spark does with column names.
    """

    name: str
    sql_state: str
    kind: str
    error: type[e.DeltaError] = e.DeltaError
    pattern: str | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)


_ARGUMENT, _SCHEMA, _ROW = e.InvalidArgumentError, e.SchemaMismatchError, e.ConstraintViolationError
_UNSUPPORTED, _VERSION = e.UnsupportedFeatureError, e.VersionNotFoundError

# The first that fits counts.
CONDITIONS: tuple[Condition, ...] = (
    # Conflicts of commits
    Condition("DELTA_CONCURRENT_APPEND", "2D521", BASE, e.ConcurrentAppendException, "", {"partition": "where"}),
    Condition("DELTA_CONCURRENT_DELETE_READ", "2D521", BASE, e.ConcurrentDeleteReadException, "", {"file": "where"}),
    Condition("DELTA_CONCURRENT_DELETE_DELETE", "2D521", BASE, e.ConcurrentDeleteDeleteException, "", {"file": "where"}),
    Condition("DELTA_CONCURRENT_TRANSACTION", "2D521", BASE, e.ConcurrentTransactionException, ""),
    Condition("DELTA_CONCURRENT_WRITE", "2D521", BASE, e.ConcurrentWriteException, ""),
    Condition("DELTA_METADATA_CHANGED", "2D521", BASE, e.MetadataChangedException, ""),
    Condition("DELTA_PROTOCOL_CHANGED", "2D521", BASE, e.ProtocolChangedException, ""),
    # Rows
    Condition("DELTA_CANNOT_MODIFY_APPEND_ONLY", "42809", OPERATION, e.AppendOnlyError, ""),
    Condition("DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE", "21506", OPERATION, e.MergeCardinalityError, ""),
    Condition(
        "DELTA_NEW_CHECK_CONSTRAINT_VIOLATION",
        "23512",
        ANALYSIS,
        _ROW,
        "break the new CHECK constraint",
        {"numRows": "found", "tableName": "where", "checkConstraint": "expected"},
    ),
    Condition(
        "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES",
        "23001",
        RUNTIME,
        _ROW,
        r"breaks the CHECK constraint (?P<name>.+)",
        {"constraintName": "name", "expression": "expected", "values": "found"},
    ),
    Condition("DELTA_NOT_NULL_CONSTRAINT_VIOLATED", "23502", RUNTIME, _ROW, "NOT NULL|does not take null|takes no null"),
    Condition(
        "DELTA_EXCEED_CHAR_VARCHAR_LIMIT",
        "22001",
        RUNTIME,
        _ROW,
        "longer than its type takes",
        {"value": "found", "expr": "expected"},
    ),
    Condition("DELTA_REPLACE_WHERE_MISMATCH", "44000", ANALYSIS, _ROW, "where=|overwrite", {"replaceWhere": "expected"}),
    Condition("DELTA_VIOLATE_CONSTRAINT_WITH_VALUES", "23001", RUNTIME, _ROW, "", {"values": "found"}),
    # Tables and versions
    Condition("DELTA_CANNOT_REPLACE_MISSING_TABLE", "42P01", ANALYSIS, e.DeltaError, "no table to replace|REPLACE TABLE needs a table"),
    Condition("DELTA_PATH_DOES_NOT_EXIST", "42K03", ANALYSIS, e.TableNotFoundError, "", {"path": "where"}),
    Condition("DELTA_MISSING_DELTA_TABLE", "42P01", ANALYSIS, _ARGUMENT, "^no Delta table", {"tableName": "found"}),
    Condition("DELTA_TABLE_NOT_FOUND", "42P01", ANALYSIS, parameters={"tableName": "where"}),
    Condition("DELTA_TABLE_ALREADY_EXISTS", "42P07", ANALYSIS, e.TableAlreadyExistsError, "", {"tableName": "where"}),
    Condition("DELTA_PATH_EXISTS", "42K04", ANALYSIS, parameters={"path": "where"}),
    Condition("DELTA_CREATE_TABLE_SCHEME_MISMATCH", "42KD7", ANALYSIS, parameters={"path": "where", "specifiedSchema": "found"}),
    Condition(
        "DELTA_TABLE_LOCATION_MISMATCH", "42613", ANALYSIS, parameters={"tableLocation": "found", "existingTableLocation": "expected"}
    ),
    Condition("DELTA_CANNOT_RESTORE_TABLE_VERSION", "22003", ARGUMENT, parameters={"version": "found"}),
    Condition(
        "DELTA_TIMESTAMP_GREATER_THAN_COMMIT",
        "42816",
        ANALYSIS,
        _VERSION,
        "the time is after the last version",
        {"providedTimestamp": "found", "tableName": "where", "maximumTimestamp": "expected"},
    ),
    Condition(
        "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION",
        "42816",
        ANALYSIS,
        _VERSION,
        "the time is before the first version",
        {"userTimestamp": "found", "commitTs": "expected"},
    ),
    Condition("DELTA_VERSION_NOT_FOUND", "22003", ANALYSIS, _VERSION, "", {"userVersion": "found"}),
    Condition("DELTA_TIMESTAMP_INVALID", "42816", ANALYSIS, _ARGUMENT, "^not a timestamp", {"expr": "found"}),
    Condition("DELTA_ONEOF_IN_TIMETRAVEL", "42601", ARGUMENT, _ARGUMENT, "^versionAsOf and timestampAsOf"),
    Condition("DELTA_UNSUPPORTED_TIME_TRAVEL_MULTIPLE_FORMATS", "42613", ANALYSIS, _ARGUMENT, "^time travel is given both"),
    Condition("DELTA_UNSUPPORTED_TIME_TRAVEL_VIEWS", "0AKDC", ANALYSIS),
    Condition("DELTA_STATE_RECOVER_ERROR", "XXKDS", RUNTIME, e.ProtocolError, "the log is truncated"),
    # Protocol and properties
    Condition(
        "DELTA_UNSUPPORTED_FEATURES_FOR_READ",
        "56038",
        RUNTIME,
        _UNSUPPORTED,
        "that this release cannot read",
        {"unsupported": "found"},
    ),
    Condition(
        "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE",
        "56038",
        RUNTIME,
        _UNSUPPORTED,
        "that this release does not know|that this release cannot keep up",
        {"unsupported": "found"},
    ),
    Condition("DELTA_INVALID_PROTOCOL_VERSION", "KD004", RUNTIME, _UNSUPPORTED, "needs a newer (reader|writer)"),
    Condition(
        "DELTA_UNSUPPORTED_FEATURES_IN_CONFIG",
        "56038",
        RUNTIME,
        _UNSUPPORTED,
        "no feature of this name is known|cannot be turned on by this release",
        {"configs": "found"},
    ),
    Condition("DELTA_FEATURE_DROP_FEATURE_NOT_PRESENT", "0AKDE", RUNTIME, _ARGUMENT, "does not have this feature"),
    Condition("DELTA_FEATURE_DROP_NONREMOVABLE_FEATURE", "0AKDE", RUNTIME, _UNSUPPORTED, "this feature cannot be dropped"),
    Condition("DELTA_FEATURE_DROP_DEPENDENT_FEATURE", "0AKDE", RUNTIME, _ARGUMENT, "another feature needs this one"),
    Condition("DELTA_FEATURE_DROP_HISTORICAL_VERSIONS_EXIST", "0AKDE", RUNTIME, _ARGUMENT, "older versions of the table"),
    Condition("DELTA_FEATURE_DROP_HISTORY_TRUNCATION_NOT_ALLOWED", "0AKDE", RUNTIME, _ARGUMENT, "needs the history to be truncated"),
    Condition("DELTA_CANNOT_DROP_CHECK_CONSTRAINT_FEATURE", "0AKDE", RUNTIME, _ARGUMENT, "^the table has constraints"),
    Condition("DELTA_UNKNOWN_CONFIGURATION", "F0000", ANALYSIS, _ARGUMENT, "^unknown table property", {"config": "found"}),
    Condition(
        "DELTA_CANNOT_MODIFY_TABLE_PROPERTY",
        "42939",
        OPERATION,
        _ARGUMENT,
        "property belongs to its feature",
        {"prop": "found"},
    ),
    Condition("DELTA_ADD_CONSTRAINTS", "0A000", ANALYSIS, _ARGUMENT, "a constraint is not set as a property"),
    Condition("DELTA_CONSTRAINT_ALREADY_EXISTS", "42710", ANALYSIS, _ARGUMENT, "a constraint of this name is there already"),
    Condition("DELTA_CONSTRAINT_DOES_NOT_EXIST", "42704", ANALYSIS, _ARGUMENT, "^no such constraint"),
    Condition(
        "DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE",
        "0AKDC",
        ANALYSIS,
        _UNSUPPORTED,
        "mode of column mapping",
    ),
    Condition(
        "DELTA_VIOLATE_TABLE_PROPERTY_VALIDATION_FAILED.PERSISTENT_DELETION_VECTORS_WITH_INCREMENTAL_MANIFEST_GENERATION",
        "0A000",
        RUNTIME,
        _ARGUMENT,
        "deletion vectors and symlink manifests exclude",
    ),
    Condition(
        "DELTA_ICEBERG_COMPAT_VIOLATION.DELETION_VECTORS_SHOULD_BE_DISABLED",
        "KD00E",
        OPERATION,
        _ARGUMENT,
        "vectors and Iceberg compatibility below",
    ),
    Condition(
        "DELTA_ICEBERG_COMPAT_VIOLATION.VERSION_MUTUAL_EXCLUSIVE",
        "KD00E",
        OPERATION,
        _ARGUMENT,
        "versions of Iceberg compatibility exclude",
    ),
    Condition(
        "DELTA_ICEBERG_COMPAT_VIOLATION.WRONG_REQUIRED_TABLE_PROPERTY",
        "KD00E",
        OPERATION,
        _ARGUMENT,
        "Iceberg compatibility (?:version 3 )?needs (?:column mapping|row tracking)",
    ),
    Condition(
        "DELTA_ICEBERG_COMPAT_VIOLATION.REPLACE_TABLE_CHANGE_PARTITION_NAMES",
        "KD00E",
        OPERATION,
        _ARGUMENT,
        "keeps the names of its partition columns",
    ),
    Condition("DELTA_ICEBERG_COMPAT_VIOLATION.UNSUPPORTED_DATA_TYPE", "KD00E", OPERATION, _UNSUPPORTED, "does not allow the column's type"),
    Condition(
        "DELTA_ICEBERG_COMPAT_VIOLATION.UNSUPPORTED_PARTITION_DATA_TYPE", "KD00E", OPERATION, _UNSUPPORTED, "Iceberg cannot partition by"
    ),
    Condition(
        "DELTA_ICEBERG_COMPAT_VIOLATION.UNSUPPORTED_TYPE_WIDENING", "KD00E", OPERATION, _UNSUPPORTED, "widened in a way that Iceberg"
    ),
    Condition(
        "DELTA_ICEBERG_COMPAT_VIOLATION.CHANGE_VERSION_NEED_REWRITE",
        "KD00E",
        OPERATION,
        _UNSUPPORTED,
        "written again for Iceberg compatibility",
    ),
    Condition("DELTA_UNIVERSAL_FORMAT_VIOLATION", "KD00E", OPERATION, _ARGUMENT, "Iceberg metadata needs a version"),
    Condition("DELTA_UNSUPPORTED_GENERATE_WITH_DELETION_VECTORS", "0A000", OPERATION, _UNSUPPORTED, "manifest would see deleted rows"),
    Condition("DELTA_UNSUPPORTED_MANIFEST_GENERATION_WITH_COLUMN_MAPPING", "0AKDC", OPERATION, _UNSUPPORTED, "manifest know columns"),
    # Schemas
    Condition("DELTA_READ_TABLE_WITHOUT_COLUMNS", "428GU", ANALYSIS, _SCHEMA, "^the table has no columns yet", {"tableName": "where"}),
    Condition("DELTA_SCHEMA_NOT_PROVIDED", "42908", ANALYSIS, _ARGUMENT, "^a table needs columns"),
    Condition(
        "DELTA_NON_PARTITION_COLUMN_SPECIFIED",
        "42P10",
        ANALYSIS,
        _ARGUMENT,
        "the path names a partition by other columns",
        {"columnList": "expected", "fragment": "found"},
    ),
    Condition("DELTA_EMPTY_DATA", "428GU", ANALYSIS, _SCHEMA, "^the data has no columns"),
    Condition(
        "DELTA_PARTITION_COLUMN_NOT_FOUND",
        "42703",
        ANALYSIS,
        _SCHEMA,
        "^the data lacks a partition column",
        {"columnName": "`expected`", "schemaMap": "found"},
    ),
    Condition(
        "DELTA_MISSING_NOT_NULL_COLUMN_VALUE",
        "23502",
        ANALYSIS,
        _SCHEMA,
        "the data has no such column, and the table does not take null",
        {"columnName": "where"},
    ),
    Condition(
        "DELTA_FAILED_TO_MERGE_FIELDS",
        "22005",
        ANALYSIS,
        _SCHEMA,
        "does not fit the column's|a value does not fit its column",
        {"currentField": "where", "updateField": "where"},
    ),
    Condition("DELTA_NULL_SCHEMA_IN_STREAMING_WRITE", "42P18", ANALYSIS, _SCHEMA),
    Condition("DELTA_MERGE_UNRESOLVED_EXPRESSION", "42601", ANALYSIS),
    Condition(
        "DELTA_INSERT_COLUMN_ARITY_MISMATCH",
        "42802",
        ANALYSIS,
        _SCHEMA,
        "needs (a column|one value) for each|number of columns",
        {"tableName": "where"},
    ),
    Condition(
        "MERGE_INSERT_VALUE_COUNT_MISMATCH",
        "21S01",
        PARSE,
        _ARGUMENT,
        "^INSERT needs one value",
        {"actualCount": "found", "expectedCount": "expected"},
    ),
    Condition("FIELD_ALREADY_EXISTS", "42710", ANALYSIS, _ARGUMENT, "^the column exists already", {"fieldNames": "`where`"}),
    Condition("FIELD_NOT_FOUND", "42704", ANALYSIS, _ARGUMENT, "^no such neighbour", {"fieldName": "`found`", "fields": "expected"}),
    Condition(
        "DELTA_OPERATION_NOT_ALLOWED",
        "0AKDC",
        ANALYSIS,
        _ARGUMENT,
        "^a new column must take null",
        {"operation": "message"},
    ),
    Condition(
        "WRONG_COLUMN_DEFAULTS_FOR_DELTA_ALTER_TABLE_ADD_COLUMN_NOT_SUPPORTED",
        "0AKDC",
        ANALYSIS,
        _ARGUMENT,
        "^a new column has no default yet",
    ),
    Condition("DELTA_METADATA_MISMATCH", "42KDG", ANALYSIS, _SCHEMA, "the data has a column that the table has not"),
    Condition("DELTA_DUPLICATE_COLUMNS_FOUND", "42711", ANALYSIS, _ARGUMENT, "a column comes twice|differ only in case"),
    Condition(
        "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES",
        "42K05",
        ANALYSIS,
        _ARGUMENT,
        "characters that need column mapping",
        {"invalidColumnNames": "where"},
    ),
    Condition("DELTA_CANNOT_USE_ALL_COLUMNS_FOR_PARTITION", "428FT", ANALYSIS, _ARGUMENT, "not every column can be a partition"),
    Condition("DELTA_INVALID_PARTITION_COLUMN_TYPE", "42996", ANALYSIS, _ARGUMENT, "cannot be partitioned by this column"),
    Condition("DELTA_CLUSTER_BY_WITH_PARTITIONED_BY", "42613", ANALYSIS, _ARGUMENT, "partitioned or clustered, not both"),
    Condition("DELTA_CLUSTER_BY_INVALID_NUM_COLUMNS", "54000", ANALYSIS, _ARGUMENT, "clustered by at most"),
    Condition("DELTA_CLUSTERING_COLUMN_MISSING_STATS", "22000", ANALYSIS, _ARGUMENT, "by a column without statistics"),
    Condition("DELTA_UNSUPPORTED_DROP_COLUMN", "0AKDC", ANALYSIS, _ARGUMENT, "only be dropped where columns are mapped"),
    Condition("DELTA_UNSUPPORTED_RENAME_COLUMN", "0AKDC", ANALYSIS, _ARGUMENT, "only be renamed where columns are mapped"),
    Condition("DELTA_UNSUPPORTED_DROP_PARTITION_COLUMN", "0AKDC", ANALYSIS, _ARGUMENT, "partition column cannot be dropped"),
    Condition("DELTA_UNSUPPORTED_DROP_CLUSTERING_COLUMN", "0AKDC", ANALYSIS, _ARGUMENT, "the table is clustered by the column"),
    Condition("DELTA_DROP_COLUMN_ON_SINGLE_FIELD_SCHEMA", "0AKDC", ANALYSIS, _ARGUMENT, "the last column cannot be dropped"),
    Condition("DELTA_ALTER_TABLE_CHANGE_COL_NOT_SUPPORTED", "42837", ANALYSIS, _ARGUMENT, "NOT NULL cannot be set on a column"),
    Condition(
        "DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP",
        "0AKDC",
        ANALYSIS,
        _ARGUMENT,
        "type can only (change where type widening|become a wider)",
        {"fieldPath": "where"},
    ),
    Condition("DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE", "42K09", ANALYSIS, _ARGUMENT, "an expression of the table uses"),
    Condition("DELTA_IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED", "42808", ANALYSIS, _ARGUMENT, "identity column cannot be updated"),
    Condition(
        "DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED",
        "42808",
        ANALYSIS,
        _ARGUMENT,
        "GENERATED ALWAYS AS IDENTITY cannot be given",
        {"colName": "where"},
    ),
    Condition("DELTA_IDENTITY_COLUMNS_ILLEGAL_STEP", "42611", ANALYSIS, _ARGUMENT, "step is not 0|step to be non-zero"),
    Condition("DELTA_IDENTITY_COLUMNS_UNSUPPORTED_DATA_TYPE", "428H2", ANALYSIS, _ARGUMENT, "of type bigint is an identity"),
    Condition("DELTA_IDENTITY_COLUMNS_PARTITION_NOT_SUPPORTED", "42601", ANALYSIS, _ARGUMENT, "not partitioned by an identity"),
    Condition("DELTA_IDENTITY_COLUMNS_ALTER_NON_IDENTITY_COLUMN", "429BQ", ANALYSIS, _ARGUMENT, "^not an identity column"),
    Condition("DELTA_GENERATED_COLUMNS_EXPR_TYPE_MISMATCH", "42K09", ANALYSIS, _SCHEMA, "than the generated column"),
    Condition("DELTA_UNSUPPORTED_EXPRESSION_GENERATED_COLUMN", "42621", ANALYSIS, _UNSUPPORTED, "cannot be computed by"),
    # Statements and options
    Condition("DELTA_CONFLICT_SET_COLUMN", "42701", ANALYSIS, _ARGUMENT, "^a column is (assigned|set) twice", {"columnList": "found"}),
    Condition("DELTA_DUPLICATE_COLUMNS_ON_INSERT", "42701", ANALYSIS, _SCHEMA, "^a column is listed twice"),
    Condition("DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED", "0AKDC", ANALYSIS, _ARGUMENT, "must be a deterministic condition"),
    Condition("DELTA_AGGREGATION_NOT_SUPPORTED", "42903", ANALYSIS, _ARGUMENT, "^an aggregate cannot stand", {"predicate": "found"}),
    Condition("DELTA_REGEX_OPT_SYNTAX_ERROR", "2201B", ARGUMENT, _ARGUMENT, "^exclude_regex", {"regExpOption": "found"}),
    Condition("DELTA_MERGE_MISSING_WHEN", "42601", ANALYSIS, _ARGUMENT, "a merge needs at least one clause"),
    Condition("DELTA_NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION", "42601", ANALYSIS, _ARGUMENT, "only the last matched clause"),
    Condition(
        "DELTA_NON_LAST_NOT_MATCHED_BY_SOURCE_CLAUSE_OMIT_CONDITION",
        "42601",
        ANALYSIS,
        _ARGUMENT,
        "only the last .*source clause",
    ),
    Condition(
        "DELTA_NON_LAST_NOT_MATCHED_CLAUSE_OMIT_CONDITION",
        "42601",
        ANALYSIS,
        _ARGUMENT,
        "a clause follows one that takes every",
    ),
    Condition("DELTA_NON_PARTITION_COLUMN_REFERENCE", "42P10", ANALYSIS, _ARGUMENT, "OPTIMIZE is a condition on partition"),
    Condition("DELTA_ZORDERING_ON_PARTITION_COLUMN", "42P10", ARGUMENT, _ARGUMENT, "the files of a partition have one value"),
    Condition("DELTA_ZORDERING_ON_COLUMN_WITHOUT_STATS", "KD00D", ANALYSIS, _ARGUMENT, "column without statistics skips no"),
    Condition("DELTA_CLUSTERING_WITH_ZORDER_BY", "42613", ANALYSIS, _ARGUMENT, "clustered table is clustered by its own"),
    Condition("DELTA_OPTIMIZE_FULL_NOT_SUPPORTED", "42601", OPERATION, _UNSUPPORTED, "the table has no clustering columns"),
    Condition("DELTA_SHOW_PARTITION_IN_NON_PARTITIONED_TABLE", "42809", ANALYSIS, _ARGUMENT, "the table is not partitioned"),
    Condition("DELTA_UNSUPPORTED_SCHEMA_DURING_READ", "0AKDC", ANALYSIS, _ARGUMENT, "a Delta table has its own schema"),
    Condition("DELTA_UNSUPPORTED_SUBQUERY", "0AKDC", ANALYSIS, _UNSUPPORTED, "a subquery"),
    Condition("DELTA_OPERATION_ON_VIEW_NOT_ALLOWED", "0AKDC", ANALYSIS, _UNSUPPORTED, "^\\w+ of a view"),
    Condition("DELTA_OVERWRITE_SCHEMA_WITH_DYNAMIC_PARTITION_OVERWRITE", "42613", ARGUMENT, _ARGUMENT, "schema_mode='overwrite' goes"),
    Condition("DELTA_REPLACE_WHERE_WITH_DYNAMIC_PARTITION_OVERWRITE", "42613", ARGUMENT, _ARGUMENT, "^replaceWhere and partitionOver"),
    Condition(
        "DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS",
        "42616",
        ARGUMENT,
        _ARGUMENT,
        "txnAppId and txnVersion|application transaction",
    ),
    Condition(
        "DELTA_ILLEGAL_OPTION",
        "42616",
        ARGUMENT,
        _ARGUMENT,
        r"^the option (?P<name>\w+)",
        {"name": "name", "input": "found", "explain": "expected"},
    ),
    Condition("DELTA_NO_START_FOR_CDC_READ", "42601", ANALYSIS, _ARGUMENT, "the changes since which version"),
    Condition("DELTA_INVALID_CDC_RANGE", "22003", ARGUMENT, _ARGUMENT, "the range ends before it begins"),
    Condition("DELTA_MULTIPLE_CDC_BOUNDARY", "42614", ANALYSIS, _ARGUMENT, "_version and .*_timestamp exclude"),
    Condition("DELTA_MISSING_CHANGE_DATA", "KD002", ANALYSIS, _ARGUMENT, "the change data feed was not on"),
    Condition("DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE", "0AKDC", OPERATION, _SCHEMA, "so their changes cannot be read"),
    Condition("RESERVED_CDC_COLUMNS_ON_WRITE", "42939", ANALYSIS, _ARGUMENT, "no column of the feed's own names"),
    Condition("DELTA_UNSUPPORTED_CLONE_REPLACE_SAME_TABLE", "0AKDC", ANALYSIS, _ARGUMENT, "cannot be cloned onto itself"),
    Condition("DELTA_EMPTY_DIRECTORY", "42K03", RUNTIME, _ARGUMENT, "there are no Parquet files", {"directory": "where"}),
    # Streams
    Condition("DELTA_SCHEMA_CHANGED_WITH_VERSION", "KD007", RUNTIME),
    Condition("DELTA_SCHEMA_CHANGED_WITH_STARTING_OPTIONS", "KD007", RUNTIME),
    Condition("DELTA_SOURCE_IGNORE_DELETE", "0A000", OPERATION),
    Condition("DELTA_SOURCE_TABLE_IGNORE_CHANGES", "0A000", OPERATION),
    Condition("DELTA_MISSING_FILES_UNEXPECTED_VERSION", "XXKDS", RUNTIME),
    Condition("DELTA_INVALID_SOURCE_VERSION", "XXKDS", RUNTIME),
    Condition("DELTA_INVALID_SOURCE_OFFSET_FORMAT", "XXKDS", RUNTIME),
    Condition("DELTA_INVALID_FORMAT_FROM_SOURCE_VERSION", "XXKDS", RUNTIME),
    Condition("DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE", "55019", RUNTIME),
    Condition("DELTA_STREAMING_METADATA_EVOLUTION", "22000", RUNTIME),
    Condition("DELTA_STREAMING_CANNOT_CONTINUE_PROCESSING_POST_SCHEMA_EVOLUTION", "KD002", RUNTIME),
    Condition("DELTA_STREAMING_SCHEMA_LOCATION_CONFLICT", "22000", RUNTIME),
    Condition("DELTA_STREAMING_SCHEMA_LOG_DESERIALIZE_FAILED", "22000", RUNTIME),
    Condition("DELTA_STREAMING_SCHEMA_LOG_INCOMPATIBLE_DELTA_TABLE_ID", "22000", RUNTIME),
    Condition("DELTA_STARTING_VERSION_AND_TIMESTAMP_BOTH_SET", "42613", ARGUMENT),
    Condition("DELTA_UNSUPPORTED_OUTPUT_MODE", "0AKDC", ANALYSIS, _ARGUMENT, "the output mode of a stream", {"mode": "found"}),
    Condition("NOT_SUPPORTED_COMMAND_FOR_V2_TABLE", "0A000", ANALYSIS, _UNSUPPORTED, "^ANALYZE TABLE", {"cmd": "found"}),
    # Spark's own, of statements that are read here
    Condition("PARSE_SYNTAX_ERROR", "42601", PARSE, _ARGUMENT, "does not parse", {"error": "found"}),
    Condition("SCHEMA_NOT_FOUND", "42704", ANALYSIS, parameters={"schemaName": "found"}),
    Condition("UNRESOLVED_COLUMN.WITH_SUGGESTION", "42703", ANALYSIS, _ARGUMENT, "^no such column", {"objectName": "`found`"}),
    Condition("INVALID_NON_DETERMINISTIC_EXPRESSIONS", "42K0E", ANALYSIS),
    Condition("DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN", "42K09", ANALYSIS, _SCHEMA, "a condition must be a boolean"),
)

# What is left of a class, where Spark has no condition for it either.
REST: tuple[Condition, ...] = (
    Condition("DELTA_OPERATION_NOT_ALLOWED", "0AKDC", ANALYSIS, e.UnsupportedFeatureError, "", {"operation": "message"}),
    Condition("DELTA_METADATA_MISMATCH", "42KDG", ANALYSIS, e.SchemaMismatchError, ""),
)
KINDS: tuple[tuple[type[e.DeltaError], str], ...] = (
    (e.InvalidTypeError, ARGUMENT),
    (e.InvalidArgumentError, ANALYSIS),
    (e.DeltaError, RUNTIME),
)
"""The class of `pyspark.errors` for errors without a condition."""

_TAG = re.compile(r"\[([A-Z][A-Z0-9_.]+)\] ")
_QUOTED = re.compile(r"\A'([^']*)'\Z")
_BY_NAME = {each.name: each for each in reversed((*CONDITIONS, *REST))}


def condition_named(name: str) -> Condition | None:
    """The condition of a name; None where it is none of ours."""
    return _BY_NAME.get(name)


def tag_of(error: e.DeltaError) -> str | None:
    """The name of a condition with which a message begins."""
    found = _TAG.match(error.message)
    return None if found is None else found[1]


def fitting(error: e.DeltaError, conditions: tuple[Condition, ...]) -> Condition | None:
    """The first of the conditions that an error is of."""
    return next((each for each in conditions if _fits(error, each)), None)


def _fits(error: e.DeltaError, condition: Condition) -> bool:
    return condition.pattern is not None and isinstance(error, condition.error) and re.search(condition.pattern, error.message) is not None


def parameters_of(error: e.DeltaError, condition: Condition) -> Iterator[tuple[str, str]]:
    """Message parameters of the condition that the error knows."""
    groups = re.search(condition.pattern or "", error.message)
    named = {} if groups is None else groups.groupdict()
    for name, source in condition.parameters.items():
        attribute = source.strip("`")
        value = named.get(attribute, getattr(error, attribute, None))
        if value is not None:
            text = _QUOTED.sub(r"\1", str(value))
            yield name, f"`{text}`" if attribute != source else text
