"""Conditions about Iceberg compatibility and Iceberg metadata. An error gets the first one that fits."""

from __future__ import annotations

from deltaic import errors as e
from deltaic.spark.condition import OPERATION, Condition

_ARGUMENT = e.InvalidArgumentError
_UNSUPPORTED = e.UnsupportedFeatureError

CONDITIONS: tuple[Condition, ...] = (
    Condition(
        "DELTA_ICEBERG_COMPAT_VIOLATION.DELETION_VECTORS_SHOULD_BE_DISABLED",
        "KD00E",
        OPERATION,
        _ARGUMENT,
        "vectors and Iceberg compatibility below",
        {"version": "version"},
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
        {"version": "version"},
    ),
    Condition(
        "DELTA_ICEBERG_COMPAT_VIOLATION.WRONG_REQUIRED_TABLE_PROPERTY",
        "KD00E",
        OPERATION,
        _ARGUMENT,
        "Iceberg compatibility (?:version 3 )?needs (?:column mapping|row tracking)",
        {"version": "version", "key": "key", "requiredValue": "required", "actualValue": "actual"},
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
        {"version": "version", "dataType": "type", "schema": "%schema"},
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
        "DELTA_UNIVERSAL_FORMAT_VIOLATION",
        "KD00E",
        OPERATION,
        _ARGUMENT,
        "Iceberg metadata needs a version",
        {
            "format": "=iceberg",
            "violation": "=Requires IcebergCompat to be explicitly enabled in order for Universal Format"
            " (Iceberg) to be enabled on an existing table. Supported versions are IcebergCompatV1 and"
            " IcebergCompatV2.",
        },
    ),
)
