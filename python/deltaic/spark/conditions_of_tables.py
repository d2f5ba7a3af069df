"""Conditions about tables and versions, protocols and properties. The first that fits an error is its
condition."""

from __future__ import annotations

from deltaic import errors as e
from deltaic.spark.condition import ANALYSIS, ARGUMENT, OPERATION, PARSE, RUNTIME, Condition

_ARGUMENT = e.InvalidArgumentError
_SCHEMA = e.SchemaMismatchError
_UNSUPPORTED = e.UnsupportedFeatureError
_VERSION = e.VersionNotFoundError

CONDITIONS: tuple[Condition, ...] = (
    # Tables and versions
    Condition(
        "TABLE_OR_VIEW_NOT_FOUND",
        "42P01",
        ANALYSIS,
        e.DeltaError,
        "^no such table or view|no table to replace|^REPLACE TABLE needs",
        {"relationName": "found"},
    ),
    Condition("DELTA_PATH_DOES_NOT_EXIST", "42K03", ANALYSIS, parameters={"path": "where"}),
    Condition("PATH_NOT_FOUND", "42K03", ANALYSIS, e.TableNotFoundError, "", {"path": "where"}, details="found no such folder"),
    Condition("DELTA_TABLE_NOT_FOUND", "42P01", ANALYSIS, e.TableNotFoundError, "", {"tableName": "where"}),
    Condition("DELTA_SCHEMA_NOT_SET", "KD008", ANALYSIS),
    Condition("DELTA_MISSING_DELTA_TABLE", "42P01", ANALYSIS, _ARGUMENT, "^no Delta table", {"tableName": "found"}),
    Condition(
        "DELTA_TABLE_ALREADY_EXISTS", "42P07", ANALYSIS, e.TableAlreadyExistsError, "^the table of the clone", {"tableName": "where"}
    ),
    Condition(
        "DELTA_UNEXPECTED_NUM_PARTITION_COLUMNS_FROM_FILE_NAME", "KD009", ANALYSIS, _ARGUMENT, "^the folders do not fit partition_schema"
    ),
    Condition("TABLE_OR_VIEW_ALREADY_EXISTS", "42P07", ANALYSIS, e.TableAlreadyExistsError, "", {"relationName": "where"}),
    Condition("DELTA_PATH_EXISTS", "42K04", ANALYSIS, parameters={"path": "where"}),
    Condition("DELTA_CREATE_TABLE_SCHEME_MISMATCH", "42KD7", ANALYSIS, parameters={"path": "where", "specifiedSchema": "found"}),
    Condition(
        "DELTA_TABLE_LOCATION_MISMATCH", "42613", ANALYSIS, parameters={"tableLocation": "found", "existingTableLocation": "expected"}
    ),
    Condition("DELTA_SET_LOCATION_SCHEMA_MISMATCH", "42KD7", ANALYSIS, parameters={"original": "expected", "destination": "found"}),
    Condition("DELTA_CANNOT_SET_LOCATION_ON_PATH_IDENTIFIER", "42613", ANALYSIS, _UNSUPPORTED, "^ALTER TABLE SET LOCATION"),
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
        parameters={"requestedTimestamp": "found", "latestTimestamp": "expected"},
    ),
    Condition(
        "DELTA_CANNOT_RESTORE_TIMESTAMP_EARLIER",
        "22003",
        ANALYSIS,
        parameters={"requestedTimestamp": "found", "earliestTimestamp": "expected"},
    ),
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
    Condition("PARSE_SYNTAX_ERROR", "42601", PARSE, _ARGUMENT, "^not a version", {"error": "found"}, details="found -"),
    Condition("DELTA_TIME_TRAVEL_INVALID_BEGIN_VALUE", "42604", ARGUMENT, _ARGUMENT, "^not a version"),
    Condition("INVALID_TIME_TRAVEL_TIMESTAMP_EXPR.INPUT", "42K0E", ANALYSIS, parameters={"expr": "found"}),
    Condition("DELTA_TIMESTAMP_INVALID", "42816", ANALYSIS, _ARGUMENT, "^not a timestamp", {"expr": "found"}),
    Condition("DELTA_ONEOF_IN_TIMETRAVEL", "42601", ARGUMENT, _ARGUMENT, "^versionAsOf and timestampAsOf"),
    Condition("DELTA_UNSUPPORTED_TIME_TRAVEL_MULTIPLE_FORMATS", "42613", ANALYSIS, _ARGUMENT, "^time travel is given both"),
    Condition("DELTA_UNSUPPORTED_TIME_TRAVEL_VIEWS", "0AKDC", ANALYSIS, _ARGUMENT, "^the change data feed of a version in the past"),
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
    Condition("DELTA_FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE", "0AKDC", RUNTIME, _ARGUMENT, "^no feature to drop", {"feature": "found"}),
    Condition("DELTA_FEATURE_DROP_FEATURE_NOT_PRESENT", "55000", RUNTIME, _ARGUMENT, "does not have this feature"),
    Condition(
        "DELTA_FEATURE_DROP_NONREMOVABLE_FEATURE", "0AKDC", RUNTIME, _UNSUPPORTED, "this feature cannot be dropped", {"feature": "found"}
    ),
    Condition("DELTA_FEATURE_DROP_DEPENDENT_FEATURE", "55000", RUNTIME, _ARGUMENT, "another feature needs this one"),
    Condition("DELTA_FEATURE_DROP_HISTORICAL_VERSIONS_EXIST", "22KD0", RUNTIME, _ARGUMENT, "older versions of the table"),
    Condition("DELTA_FEATURE_DROP_HISTORY_TRUNCATION_NOT_ALLOWED", "42000", RUNTIME, _ARGUMENT, "needs the history to be truncated"),
    Condition("DELTA_CANNOT_DROP_CHECK_CONSTRAINT_FEATURE", "0AKDE", ANALYSIS, _ARGUMENT, "^the table has constraints"),
    Condition(
        "DELTA_UNKNOWN_CONFIGURATION",
        "F0000",
        ANALYSIS,
        _ARGUMENT,
        "^unknown table property",
        {"config": "found", "disableCheckConfig": "=spark.databricks.delta.allowArbitraryProperties.enabled"},
    ),
    Condition(
        "DELTA_CANNOT_MODIFY_TABLE_PROPERTY",
        "42939",
        OPERATION,
        _ARGUMENT,
        "property belongs to its feature",
        {"prop": "found"},
    ),
    Condition("DELTA_INVALID_INTERVAL", "22006", ARGUMENT, _ARGUMENT, "^not a duration", {"interval": "found"}),
    Condition(
        "DELTA_INVALID_ISOLATION_LEVEL",
        "25000",
        ARGUMENT,
        _ARGUMENT,
        "^not a valid value",
        {"isolationLevel": "found"},
        details="^property delta.isolationLevel",
    ),
    Condition(
        "DELTA_UNSUPPORTED_FEATURE_STATUS",
        "0AKDE",
        RUNTIME,
        _ARGUMENT,
        "^not a valid value",
        {"feature": "feature", "status": "found"},
        details=r"^property delta\.feature\.(?P<feature>\w[^:]*)",
    ),
    Condition("DELTA_ADD_CONSTRAINTS", "0A000", ANALYSIS, _ARGUMENT, "a constraint is not set as a property"),
    Condition(
        "DELTA_NON_BOOLEAN_CHECK_CONSTRAINT",
        "42621",
        ANALYSIS,
        _SCHEMA,
        "^the CHECK constraint (?P<name>.+) must be a boolean",
        {"name": "name", "expr": "where"},
    ),
    Condition("DELTA_CONSTRAINT_ALREADY_EXISTS", "42710", ANALYSIS, _ARGUMENT, "a constraint of this name is there already"),
    Condition(
        "DELTA_CONSTRAINT_DOES_NOT_EXIST",
        "42704",
        ANALYSIS,
        _ARGUMENT,
        "^no such constraint",
        {"constraintName": "found", "config": "=spark.databricks.delta.constraints.assumesDropIfExists.enabled", "confValue": "=true"},
    ),
    Condition(
        "DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE",
        "0AKDC",
        OPERATION,
        _UNSUPPORTED,
        "mode of column mapping",
        {"oldMode": "old", "newMode": "new"},
        details=r"(found '(?P<old>\w+)' to '(?P<new>\w+)'.*)?$",
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
    Condition("DELTA_CREATE_TABLE_MISSING_TABLE_NAME_OR_LOCATION", "42601", ANALYSIS, _ARGUMENT, "^a table needs a place"),
    Condition("PARTITION_BY_NOT_ALLOWED_WITH_INSERT_INTO", "42601", ANALYSIS, _ARGUMENT, "^insertInto and partitionBy"),
    Condition("NON_PARTITION_COLUMN", "42000", ANALYSIS, _SCHEMA, "^PARTITION takes partition columns", {"columnName": "found"}),
    Condition("DELTA_TRUNCATE_TABLE_PARTITION_NOT_SUPPORTED", "0AKDC", ANALYSIS, _UNSUPPORTED, "^TRUNCATE TABLE of single partitions"),
    Condition("DELTA_CDC_READ_NULL_RANGE_BOUNDARY", "22004", ARGUMENT, _ARGUMENT, "^a range of changes begins and ends at"),
    *(
        Condition(f"DELTA_CREATE_TABLE_WITH_DIFFERENT_{what}", "42KD7", ANALYSIS, parameters={"path": "where"})
        for what in ("PARTITIONING", "PROPERTY")
    ),
    Condition(
        "DELTA_MODE_NOT_SUPPORTED",
        "0AKDC",
        ARGUMENT,
        _ARGUMENT,
        "^unknown mode of generate",
        {"mode": "found", "supportedModes": "=symlink_format_manifest"},
    ),
    Condition("DELTA_VACUUM_RETENTION_PERIOD_NEGATIVE", "22003", ARGUMENT, _ARGUMENT, "^retention is negative"),
    Condition("DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT", "22003", ARGUMENT, _ARGUMENT, "^retention is shorter than"),
)
