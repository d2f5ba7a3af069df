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
        "DELTA_UNSUPPORTED_TYPE_CHANGE_IN_SCHEMA",
        "0AKDC",
        RUNTIME,
        _UNSUPPORTED,
        "^a column's type was changed in a way",
        {"fieldName": "field", "fromType": "<before>", "toType": "<after>"},
        details=r"found (?P<before>.+) to (?P<after>.+)$",
    ),
    Condition("DELTA_UNRECOGNIZED_INVARIANT", "56038", OPERATION, e.ProtocolError, "^an invariant is not as"),
    Condition(
        "DELTA_MATERIALIZED_ROW_TRACKING_COLUMN_NAME_MISSING",
        "22000",
        RUNTIME,
        e.ProtocolError,
        "^row tracking is on, but the table has no name for the column",
        {"rowTrackingColumn": "=Row ID"},
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
        {"table": "table"},
    ),
    Condition(
        "DELTA_VIOLATE_TABLE_PROPERTY_VALIDATION_FAILED"
        ".EXISTING_DELETION_VECTORS_WITH_INCREMENTAL_MANIFEST_GENERATION",
        "0A000",
        RUNTIME,
        parameters={"table": "table"},
    ),
    Condition(
        "DELTA_POST_COMMIT_HOOK_FAILED",
        "2DKD0",
        RUNTIME,
        e.CommitUnknownError,
        "its symlink manifests could not be written",
        {
            "version": "version",
            "name": "=Generate Symlink Format Manifest",
            "message": "=: Generate Symlink Format Manifest",
        },
    ),
    Condition("DELTA_UNSUPPORTED_CATALOG_MANAGED_TABLE_CREATION", "0AKDC", OPERATION),
    Condition(
        "DELTA_PATH_BASED_ACCESS_TO_CATALOG_MANAGED_TABLE_BLOCKED",
        "KD00G",
        RUNTIME,
        _UNSUPPORTED,
        "^the table is managed by a catalog, which alone knows",
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
