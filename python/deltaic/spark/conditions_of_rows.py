"""Conditions of conflicting commits, of rows that violate a constraint, and of values that do not fit their
columns. An error gets the first one that fits."""

from __future__ import annotations

from deltaic import errors as e
from deltaic.spark.condition import ANALYSIS, ARITHMETIC, BASE, NUMBER, OPERATION, RUNTIME, TIME, Condition

_SCHEMA = e.SchemaMismatchError
_ROW = e.ConstraintViolationError

CONDITIONS: tuple[Condition, ...] = (
    # Conflicts of commits. In the JVM, delta-spark adds .WITHOUT_HINT or .WITH_PARTITION_HINT to these three.
    *(
        Condition(
            f"DELTA_CONCURRENT_{name}",
            "2D521",
            BASE,
            error,
            "",
            {
                "operation": "winner_operation",
                "tableName": "catalog_table|table_by_url",
                "version": "winner",
                "docLink": "=https://docs.delta.io/latest/concurrency-control.html",
                "partitionValues": "partition",
            },
        )
        for name, error in (
            ("APPEND", e.ConcurrentAppendException),
            ("DELETE_READ", e.ConcurrentDeleteReadException),
            ("DELETE_DELETE", e.ConcurrentDeleteDeleteException),
        )
    ),
    Condition("DELTA_CONCURRENT_TRANSACTION", "2D521", BASE, e.ConcurrentTransactionException, ""),
    Condition("DELTA_CONCURRENT_WRITE", "2D521", BASE, e.ConcurrentWriteException, ""),
    Condition("DELTA_METADATA_CHANGED", "2D521", BASE, e.MetadataChangedException, ""),
    Condition("DELTA_PROTOCOL_CHANGED", "2D521", BASE, e.ProtocolChangedException, ""),
    # Rows
    Condition(
        "DELTA_CANNOT_MODIFY_APPEND_ONLY",
        "42809",
        OPERATION,
        e.AppendOnlyError,
        "",
        {"config": "=delta.appendOnly"},
    ),
    Condition(
        "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE",
        "21506",
        OPERATION,
        e.MergeCardinalityError,
        "",
        {"usageReference": "=https://docs.delta.io/latest/delta-update.html#upsert-into-a-table-using-merge"},
    ),
    Condition(
        "DELTA_NEW_CHECK_CONSTRAINT_VIOLATION",
        "23512",
        ANALYSIS,
        _ROW,
        "break the new CHECK constraint",
        {"numRows": "rows", "tableName": "table|where", "checkConstraint": "expected"},
        details=r"(found (?P<rows>\d+) .*)?$",
    ),
    Condition(
        "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES",
        "23001",
        RUNTIME,
        _ROW,
        r"breaks the CHECK constraint (?P<name>.+)",
        {"constraintName": "name", "expression": "expected", "values": "found"},
    ),
    Condition(
        "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES",
        "23001",
        RUNTIME,
        _ROW,
        "a value of the generated column .+ is not what its expression gives",
        {"constraintName": "=Generated Column", "values": "found"},
    ),
    Condition(
        "DELTA_NOT_NULL_CONSTRAINT_VIOLATED",
        "23502",
        RUNTIME,
        _ROW,
        r"column (?P<name>.+) is NOT NULL|does not take null|takes no null|NOT NULL",
        {"columnName": "name"},
    ),
    Condition(
        "DELTA_EXCEED_CHAR_VARCHAR_LIMIT",
        "22001",
        RUNTIME,
        _ROW,
        "longer than its type takes",
        {"value": "found", "expr": "expected"},
    ),
    Condition(
        "DELTA_REPLACE_WHERE_MISMATCH",
        "44000",
        ANALYSIS,
        _ROW,
        "where=|overwrite",
        {"replaceWhere": "expected", "message": "found"},
    ),
    Condition("DELTA_VIOLATE_CONSTRAINT_WITH_VALUES", "23001", RUNTIME, _ROW, "", {"values": "found"}),
    # Default values of columns
    Condition("NO_DEFAULT_COLUMN_VALUE_AVAILABLE", "42608", ANALYSIS, parameters={"colName": "`where`"}),
    Condition(
        "INVALID_DEFAULT_VALUE.NON_DETERMINISTIC",
        "42623",
        ANALYSIS,
        e.InvalidArgumentError,
        "^the default is not deterministic",
        {"colName": "`column`", "defaultValue": "found"},
        details=r"^default(?:,| of) column (?P<column>[^,:]+)",
    ),
    Condition(
        "INVALID_DEFAULT_VALUE.DATA_TYPE",
        "42623",
        ANALYSIS,
        _SCHEMA,
        "^the default has another type than the column",
        {
            "colName": "`column`",
            "defaultValue": "text",
            "actualType": '"found"',
            "expectedType": '"expected"',
        },
        details=r"^default(?:,| of) column (?P<column>[^,:]+)",
    ),
    *(
        Condition(
            f"INVALID_DEFAULT_VALUE.{kind}",
            "42623",
            ANALYSIS,
            error,
            pattern,
            {"colName": "`column`"},
            details=r"^default(?:,| of) column (?P<column>[^,:]+)",
        )
        for kind, error, pattern in (
            ("SUBQUERY_EXPRESSION", e.UnsupportedFeatureError, "^a subquery"),
            (
                "NOT_CONSTANT",
                e.InvalidArgumentError,
                r"^no such column|^\[UNRESOLVED_COLUMN\] |^A column, .* cannot be resolved",
            ),
            ("DATA_TYPE", _SCHEMA, ""),
        )
    ),
    # Values that are cast to the type of their column
    *(
        Condition(
            "CAST_INVALID_INPUT",
            "22018",
            kind,
            _SCHEMA,
            "an? (assigned )?value of type (?P<source>string) does not fit",
            {
                "expression": "'found'",
                "sourceType": '"source"',
                "targetType": '"expected"',
                "ansiConfig": '="spark.sql.ansi.enabled"',
            },
            details=f"; expected ({types})",
        )
        for kind, types in ((TIME, "date|timestamp"), (RUNTIME, "boolean"), (NUMBER, ""))
    ),
    Condition(
        "CANNOT_UP_CAST_DATATYPE",
        "42846",
        ANALYSIS,
        _SCHEMA,
        "value needs a cast, because its column has no wider type",
        {"expression": "expression", "sourceType": '"found"', "targetType": '"expected"'},
    ),
    Condition(
        "DELTA_CAST_OVERFLOW_IN_TABLE_WRITE",
        "22003",
        ARITHMETIC,
        _SCHEMA,
        "(?:column (?P<column>.+): )?an assigned value of type (?P<source>.+) does not fit",
        {"columnName": "`column`", "sourceType": '"source"', "targetType": '"expected"'},
    ),
    Condition(
        "CAST_OVERFLOW_IN_TABLE_INSERT",
        "22003",
        ARITHMETIC,
        _SCHEMA,
        "(?:column (?P<column>.+): )?a value of type (?P<source>.+) does not fit",
        {"columnName": "`column`", "sourceType": '"source"', "targetType": '"expected"'},
    ),
    *(
        Condition(
            f"DATATYPE_MISMATCH.CAST_{hint}",
            "42K09",
            ANALYSIS,
            _SCHEMA,
            "a value does not fit its column",
            {"sqlExpr": "(expression)", "srcType": '"found"', "targetType": '"expected"'},
            details=details,
        )
        for hint, details in (
            (
                "WITH_FUNC_SUGGESTION",
                (
                    "found (byte|short|integer|long); expected date|found date; expected"
                    " (byte|short|integer|long)"
                ),
            ),
            (
                "WITH_CONF_SUGGESTION",
                "found timestamp; expected boolean|found boolean; expected timestamp",
            ),
            ("WITHOUT_SUGGESTION", ""),
        )
    ),
)
