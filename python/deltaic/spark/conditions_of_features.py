"""Conditions about a table's protocol: features, properties, constraints, and metadata of other formats.
An error gets the first one that fits."""

from __future__ import annotations

from deltaic import errors as e
from deltaic.spark.condition import ANALYSIS, ARGUMENT, OPERATION, RUNTIME, Condition

_ARGUMENT = e.InvalidArgumentError
_SCHEMA = e.SchemaMismatchError
_UNSUPPORTED = e.UnsupportedFeatureError

CONDITIONS: tuple[Condition, ...] = (
    Condition(
        "DELTA_ROW_TRACKING_ILLEGAL_PROPERTY_COMBINATION",
        "55000",
        RUNTIME,
        _ARGUMENT,
        "^row tracking cannot be on while it is suspended",
        {"property1": "=delta.enableRowTracking", "property2": "=delta.rowTrackingSuspended"},
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
    Condition(
        "DELTA_READ_FEATURE_PROTOCOL_REQUIRES_WRITE",
        "KD004",
        RUNTIME,
        parameters={"writerVersion": "=7", "docLink": "=https://docs.delta.io/latest/index.html"},
    ),
    Condition(
        "DELTA_INVALID_PROTOCOL_VERSION", "KD004", RUNTIME, _UNSUPPORTED, "needs a newer (reader|writer)"
    ),
    Condition(
        "DELTA_UNSUPPORTED_FEATURES_IN_CONFIG",
        "56038",
        RUNTIME,
        _UNSUPPORTED,
        "no feature of this name is known|cannot be turned on by this release",
        {"configs": "found"},
    ),
    Condition(
        "DELTA_FEATURES_REQUIRE_MANUAL_ENABLEMENT",
        "42000",
        RUNTIME,
        _ARGUMENT,
        "^the columns need a table feature",
        {"unsupportedFeatures": "found", "supportedFeatures": "supported"},
    ),
    Condition(
        "WRONG_COLUMN_DEFAULTS_FOR_DELTA_FEATURE_NOT_ENABLED",
        "0AKDE",
        ANALYSIS,
        _ARGUMENT,
        "^column defaults need a table feature",
        {"commandType": "command"},
    ),
    Condition("DELTA_CLUSTERING_REPLACE_TABLE_WITH_PARTITIONED_TABLE", "42000", ANALYSIS),
    *(
        Condition(
            f"DELTA_{verb}_TABLE_SET_CLUSTERING_TABLE_FEATURE_NOT_ALLOWED",
            "42000",
            ANALYSIS,
            parameters={"tableFeature": "=clustering"},
        )
        for verb in ("CREATE", "ALTER")
    ),
    Condition(
        "DELTA_FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE",
        "0AKDC",
        RUNTIME,
        _ARGUMENT,
        "^no feature to drop",
        {"feature": "found"},
    ),
    Condition(
        "DELTA_FEATURE_DROP_FEATURE_IS_DELTA_PROPERTY",
        "42000",
        RUNTIME,
        _ARGUMENT,
        "name of a property and not of a feature",
        {"property": "found"},
    ),
    Condition(
        "DELTA_FEATURE_DROP_FEATURE_NOT_PRESENT",
        "55000",
        RUNTIME,
        _ARGUMENT,
        "does not have this feature",
        {"feature": "found"},
    ),
    Condition(
        "DELTA_FEATURE_DROP_NONREMOVABLE_FEATURE",
        "0AKDC",
        RUNTIME,
        _UNSUPPORTED,
        "this feature cannot be dropped",
        {"feature": "found"},
    ),
    Condition(
        "DELTA_FEATURE_DROP_DEPENDENT_FEATURE",
        "55000",
        RUNTIME,
        _ARGUMENT,
        "another feature needs this one",
        {"feature": "feature", "dependentFeatures": "dependents"},
    ),
    Condition(
        "DELTA_FEATURE_CAN_ONLY_DROP_CHECKPOINT_PROTECTION_WITH_HISTORY_TRUNCATION",
        "55000",
        RUNTIME,
        _ARGUMENT,
        "^checkpoint protection ends with the versions",
    ),
    Condition(
        "DELTA_FEATURE_DROP_CHECKPOINT_PROTECTION_WAIT_FOR_RETENTION_PERIOD",
        "22KD0",
        RUNTIME,
        _ARGUMENT,
        "older versions of the table still need checkpointProtection",
    ),
    Condition(
        "DELTA_FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD",
        "22KD0",
        RUNTIME,
        _ARGUMENT,
        r"^the table does not use (?P<feature>\S+) any more, but older versions",
        {"feature": "feature"},
    ),
    Condition(
        "DELTA_FEATURE_DROP_HISTORICAL_VERSIONS_EXIST",
        "22KD0",
        RUNTIME,
        _ARGUMENT,
        "older versions of the table",
    ),
    Condition(
        "DELTA_FEATURE_DROP_HISTORY_TRUNCATION_NOT_ALLOWED",
        "42000",
        RUNTIME,
        _ARGUMENT,
        "needs the history to be truncated",
    ),
    Condition(
        "DELTA_CANNOT_DROP_CHECK_CONSTRAINT_FEATURE",
        "0AKDE",
        ANALYSIS,
        _ARGUMENT,
        "^the table has constraints",
        {"constraints": "`constraints`"},
    ),
    # Properties and constraints
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
    Condition("DELTA_INVALID_CALENDAR_INTERVAL_EMPTY", "2200P", ARGUMENT, _ARGUMENT, "^a duration is empty"),
    Condition(
        "DELTA_INVALID_INTERVAL", "22006", ARGUMENT, _ARGUMENT, "^not a duration", {"interval": "found"}
    ),
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
    Condition("DELTA_INVALID_CONSTRAINT_NAME", "42939", ANALYSIS, _ARGUMENT, None, {"name": "found"}),
    Condition(
        "DELTA_CONSTRAINT_ALREADY_EXISTS",
        "42710",
        ANALYSIS,
        _ARGUMENT,
        "a constraint of this name is there already",
        {"constraintName": "found", "oldConstraint": "before"},
    ),
    Condition(
        "DELTA_CONSTRAINT_DOES_NOT_EXIST",
        "42704",
        ANALYSIS,
        _ARGUMENT,
        "^no such constraint",
        {
            "tableName": "relation",
            "constraintName": "found",
            "config": "=spark.databricks.delta.constraints.assumesDropIfExists.enabled",
            "confValue": "=true",
        },
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
    # Iceberg and symlink manifests
    Condition(
        "DELTA_VIOLATE_TABLE_PROPERTY_VALIDATION_FAILED"
        ".PERSISTENT_DELETION_VECTORS_WITH_INCREMENTAL_MANIFEST_GENERATION",
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
        "DELTA_ICEBERG_COMPAT_VIOLATION.COMPAT_VERSION_NOT_SUPPORTED",
        "KD00E",
        OPERATION,
        _ARGUMENT,
        "^no such version of Iceberg compatibility",
        {"version": "found", "maxVersion": "=3"},
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
    Condition(
        "DELTA_ICEBERG_COMPAT_VIOLATION.UNSUPPORTED_DATA_TYPE",
        "KD00E",
        OPERATION,
        _UNSUPPORTED,
        "does not allow the column's type",
    ),
    Condition(
        "DELTA_ICEBERG_COMPAT_VIOLATION.UNSUPPORTED_PARTITION_DATA_TYPE",
        "KD00E",
        OPERATION,
        _UNSUPPORTED,
        "Iceberg cannot partition by",
    ),
    Condition(
        "DELTA_ICEBERG_COMPAT_VIOLATION.UNSUPPORTED_TYPE_WIDENING",
        "KD00E",
        OPERATION,
        _UNSUPPORTED,
        "widened in a way that Iceberg",
    ),
    Condition(
        "DELTA_ICEBERG_COMPAT_VIOLATION.CHANGE_VERSION_NEED_REWRITE",
        "KD00E",
        OPERATION,
        _UNSUPPORTED,
        "written again for Iceberg compatibility",
    ),
    Condition(
        "DELTA_UNIVERSAL_FORMAT_VIOLATION", "KD00E", OPERATION, _ARGUMENT, "Iceberg metadata needs a version"
    ),
    Condition(
        "DELTA_UNSUPPORTED_GENERATE_WITH_DELETION_VECTORS",
        "0A000",
        OPERATION,
        _UNSUPPORTED,
        "manifest would see deleted rows",
    ),
    Condition(
        "DELTA_UNSUPPORTED_MANIFEST_GENERATION_WITH_COLUMN_MAPPING",
        "0AKDC",
        OPERATION,
        _UNSUPPORTED,
        "manifest know columns",
    ),
    Condition(
        "DELTA_BLOCK_COLUMN_MAPPING_AND_CDC_OPERATION",
        "42KD4",
        OPERATION,
        parameters={"opName": "operation"},
    ),
)
