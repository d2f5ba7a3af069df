"""Conditions about identity columns and generated columns, and about columns that the expressions of a table
use. An error gets the first one that fits."""

from __future__ import annotations

from deltaic import errors as e
from deltaic.spark.condition import ANALYSIS, OPERATION, PARSE, Condition

_ARGUMENT = e.InvalidArgumentError
_SCHEMA = e.SchemaMismatchError
_UNSUPPORTED = e.UnsupportedFeatureError

CONDITIONS: tuple[Condition, ...] = (
    Condition(
        "DELTA_IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED",
        "42808",
        ANALYSIS,
        _ARGUMENT,
        "identity column cannot be updated",
        {"colName": "where"},
    ),
    Condition(
        "DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED",
        "42808",
        ANALYSIS,
        _ARGUMENT,
        "GENERATED ALWAYS AS IDENTITY cannot be given",
        {"colName": "where"},
    ),
    Condition("IDENTITY_COLUMNS_ILLEGAL_STEP", "42611", PARSE, _ARGUMENT, "step is not 0"),
    Condition(
        "IDENTITY_COLUMNS_DUPLICATED_SEQUENCE_GENERATOR_OPTION",
        "42601",
        PARSE,
        _ARGUMENT,
        "^an option of IDENTITY comes twice",
        {"sequenceGeneratorOption": "found"},
    ),
    Condition(
        "CREATE_TABLE_COLUMN_DESCRIPTOR_DUPLICATE",
        "42710",
        PARSE,
        _ARGUMENT,
        "^a clause of a column comes twice",
        {"columnName": "where", "optionName": "found"},
    ),
    Condition("DELTA_IDENTITY_COLUMNS_ILLEGAL_STEP", "42611", ANALYSIS, _ARGUMENT, "step to be non-zero"),
    Condition(
        "IDENTITY_COLUMNS_UNSUPPORTED_DATA_TYPE", "428H2", PARSE, parameters={"dataType": "^column_type"}
    ),
    Condition(
        "DELTA_IDENTITY_COLUMNS_UNSUPPORTED_DATA_TYPE",
        "428H2",
        OPERATION,
        _ARGUMENT,
        "of type bigint is an identity",
        {"dataType": "found"},
    ),
    Condition(
        "DELTA_IDENTITY_COLUMNS_PARTITION_NOT_SUPPORTED",
        "42601",
        ANALYSIS,
        _ARGUMENT,
        "not partitioned by an identity",
        {"colName": "column"},
        details=r"^identity column (?P<column>[^:]+):",
    ),
    Condition("DELTA_IDENTITY_COLUMNS_ALTER_NON_DELTA_FORMAT", "0AKDD", ANALYSIS),
    Condition(
        "IDENTITY_COLUMN_WITH_DEFAULT_VALUE",
        "42623",
        ANALYSIS,
        _ARGUMENT,
        "^an identity column cannot have a default",
        {"colName": "column"},
        details=r"^identity column (?P<column>[^:]+):.*found CURRENT_DEFAULT",
    ),
    Condition(
        "DELTA_IDENTITY_COLUMNS_ALTER_NON_IDENTITY_COLUMN",
        "429BQ",
        ANALYSIS,
        _ARGUMENT,
        "^not an identity column",
    ),
    Condition(
        "DELTA_IDENTITY_COLUMNS_ALTER_COLUMN_NOT_SUPPORTED",
        "429BQ",
        ANALYSIS,
        _ARGUMENT,
        "^the type of an identity column cannot change|^an identity column cannot have a default$",
    ),
    Condition(
        "DELTA_IDENTITY_COLUMNS_REPLACE_COLUMN_NOT_SUPPORTED",
        "429BQ",
        ANALYSIS,
        _ARGUMENT,
        "^the columns of a table with identity columns cannot be replaced",
    ),
    Condition(
        "DELTA_GENERATED_COLUMNS_EXPR_TYPE_MISMATCH",
        "42K09",
        ANALYSIS,
        _SCHEMA,
        "than the generated column",
        {"columnName": "column", "expressionType": "<found>", "columnType": "<expected>"},
    ),
    Condition(
        "DELTA_GENERATED_COLUMNS_EXPR_TYPE_MISMATCH",
        "42K09",
        ANALYSIS,
        _ARGUMENT,
        "^the type of a generated column cannot change",
        {"columnName": "where", "expressionType": "<expected>", "columnType": "<found>"},
    ),
    Condition(
        "PARSE_SYNTAX_ERROR",
        "42601",
        PARSE,
        _ARGUMENT,
        "^a generated or identity column can only be created with the table",
        {"error": "='GENERATED'", "hint": "="},
    ),
    Condition(
        "DELTA_NON_DETERMINISTIC_EXPRESSION_IN_GENERATED_COLUMN",
        "42621",
        ANALYSIS,
        _UNSUPPORTED,
        "cannot be computed by the non-deterministic",
        {"expr": "found"},
    ),
    Condition(
        "DELTA_AGGREGATE_IN_GENERATED_COLUMN",
        "42621",
        ANALYSIS,
        _UNSUPPORTED,
        "cannot be computed by the aggregate",
        {"sqlExpr": "found"},
    ),
    Condition(
        "UNSUPPORTED_EXPRESSION_GENERATED_COLUMN",
        "42621",
        ANALYSIS,
        _UNSUPPORTED,
        "cannot be computed by a subquery",
        {"fieldName": "column", "expressionStr": "text|found", "reason": "reason|message"},
    ),
    Condition(
        "DELTA_UDF_IN_GENERATED_COLUMN",
        "42621",
        ANALYSIS,
        _UNSUPPORTED,
        "cannot be computed by the user's function",
        {"udfExpr": "found"},
    ),
    Condition(
        "DELTA_UNSUPPORTED_DATA_TYPE_IN_GENERATED_COLUMN",
        "42621",
        ANALYSIS,
        _UNSUPPORTED,
        "^a generated column cannot have the type",
        {"dataType": "=VARIANT"},
    ),
    Condition(
        "DELTA_UNSUPPORTED_EXPRESSION_GENERATED_COLUMN",
        "42621",
        ANALYSIS,
        _UNSUPPORTED,
        "cannot be computed by",
        {"expression": "found"},
    ),
    Condition(
        "DELTA_INVALID_GENERATED_COLUMN_REFERENCES",
        "42621",
        ANALYSIS,
        _ARGUMENT,
        "^a generated column cannot be computed from",
    ),
    Condition(
        "GENERATED_COLUMN_WITH_DEFAULT_VALUE",
        "42623",
        ANALYSIS,
        _ARGUMENT,
        "^a generated column has no default",
        {"colName": "column", "defaultValue": "found", "genExpr": "text"},
    ),
    *(
        Condition(
            f"DELTA_{users}_DATA_TYPE_MISMATCH",
            "42K09",
            ANALYSIS,
            _ARGUMENT,
            "an expression of the table uses",
            {
                "columnName": "column",
                "columnType": "<before>",
                "dataType": "<after>",
                parameter: values,
            },
            details=f"(?s){first}; expected rows with the type",
        )
        for users, parameter, values, first in (
            ("GENERATED_COLUMNS", "generatedColumns", "generated", "found delta.generationExpression of .*"),
            ("CONSTRAINT", "constraints", "constraints", ""),
        )
    ),
    Condition(
        "DELTA_GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE",
        "42K09",
        ANALYSIS,
        _ARGUMENT,
        "an expression of the table uses",
        {"columnName": "where", "generatedColumns": "generated"},
        details="found delta.generationExpression of",
    ),
    Condition(
        "DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE",
        "42K09",
        ANALYSIS,
        _ARGUMENT,
        "an expression of the table uses",
        {"columnName": "where", "constraints": "constraints"},
    ),
)
