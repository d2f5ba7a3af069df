"""Conditions about columns of table definitions, and about changes of definitions. An error gets the first
one that fits."""

from __future__ import annotations

from deltaic import errors as e
from deltaic.spark.condition import ANALYSIS, Condition

_ARGUMENT = e.InvalidArgumentError
_SCHEMA = e.SchemaMismatchError
_UNSUPPORTED = e.UnsupportedFeatureError

_TYPE_CHANGE = "type can only (change where type widening|become a wider)"
_UP_CAST = (
    r"found (byte|byte to short|(byte|short) to integer|(byte|short|integer) to long|\w+ to"
    r" decimal.*|decimal.* to decimal.*"
    r"|(byte|short|integer|long|decimal.*) to float|(byte|short|integer|long|decimal.*|float) to double|date"
    r" to timestamp\w*"
    r"|timestamp\w* to timestamp\w*|[^<]+ to string)(;|$)"
)
"""Matches a change of a column's type that Spark considers lossless (`Cast.canUpCast`), so that the table's
format decides about it."""

_MAPPING_ADVICE = """
Please enable Column Mapping on your Delta table with mapping mode 'name'.
You can use one of the following commands.

ALTER TABLE table_name SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')

Note, if your table is not on the required protocol version it will be upgraded.
Column mapping requires at least protocol (2, 5)
"""
"""delta-spark's text in the parameter `advice`."""

CONDITIONS: tuple[Condition, ...] = (
    # Fields and names
    Condition(
        "INVALID_FIELD_NAME",
        "42000",
        ANALYSIS,
        _ARGUMENT,
        "^only a struct (gets new fields|has fields with names)",
        {"fieldName": ".path", "path": ".above|where"},
    ),
    Condition(
        "DELTA_UNSUPPORTED_DROP_NESTED_COLUMN_FROM_NON_STRUCT_TYPE",
        "0AKDC",
        ANALYSIS,
        _ARGUMENT,
        "^an array's element and a map's key and value cannot be dropped",
        {"struct": "^type"},
    ),
    Condition(
        "DELTA_UNSUPPORTED_COMMENT_MAP_ARRAY",
        "0AKDC",
        ANALYSIS,
        _ARGUMENT,
        "^only a column or a field of a struct has a comment",
        {"fieldPath": "where"},
    ),
    Condition(
        "DELTA_CANNOT_WRITE_EMPTY_SCHEMA.STRUCT_NO_FIELDS",
        "428GU",
        ANALYSIS,
        _ARGUMENT,
        "^a struct without fields cannot be written",
        {"columnPath": "empty_struct"},
    ),
    Condition(
        "DELTA_COMPLEX_TYPE_COLUMN_CONTAINS_NULL_TYPE",
        "22005",
        ANALYSIS,
        _ARGUMENT,
        "^the column has no type, because",
        details="found (?P<kind>array|map)",
        parameters={"columName": "where", "dataType": "^kind"},
    ),
    Condition(
        "DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP",
        "0AKDC",
        ANALYSIS,
        _ARGUMENT,
        "^replacing columns (drops none|changes no type|adds a column and drops)",
        {"details": "message", "oldSchema": "%old_schema", "newSchema": "%new_schema"},
    ),
    Condition(
        "FIELD_ALREADY_EXISTS",
        "42710",
        ANALYSIS,
        _ARGUMENT,
        "^the column exists already",
        {"op": "op", "fieldNames": ".path|where", "struct": '"struct"'},
    ),
    Condition(
        "FIELD_NOT_FOUND",
        "42704",
        ANALYSIS,
        _ARGUMENT,
        "^no such field to place",
        {"fieldName": "`field`", "fields": "expected"},
    ),
    Condition(
        "FIELD_NOT_FOUND",
        "42704",
        ANALYSIS,
        _ARGUMENT,
        "^no such field",
        {"fieldName": "`field|found`", "fields": "`fields`"},
    ),
    Condition(
        "INVALID_EXTRACT_BASE_FIELD_TYPE",
        "42000",
        ANALYSIS,
        _ARGUMENT,
        "^column .* has no field",
        {"base": "(base)", "other": '"parent"'},
    ),
    Condition(
        "DELTA_UNSUPPORTED_NESTED_FIELD_IN_UPDATE",
        "0A000",
        ANALYSIS,
        _ARGUMENT,
        "^only fields of structs can be assigned alone",
        {"optionalPrefixMessage": "="},
    ),
    Condition(
        "DELTA_OPERATION_NOT_ALLOWED",
        "0AKDC",
        ANALYSIS,
        _ARGUMENT,
        "^a new column must take null",
        {"operation": "=NOT NULL in ALTER TABLE ADD COLUMNS"},
    ),
    Condition(
        "WRONG_COLUMN_DEFAULTS_FOR_DELTA_ALTER_TABLE_ADD_COLUMN_NOT_SUPPORTED",
        "0AKDC",
        ANALYSIS,
        _ARGUMENT,
        "^a new column has no default yet",
    ),
    Condition(
        "UNSUPPORTED_TIME_TYPE", "0A000", ANALYSIS, _UNSUPPORTED, "^the type 'time(.\\d.)?' is not supported"
    ),
    Condition(
        "DELTA_UNSUPPORTED_DATA_TYPES",
        "0AKDC",
        ANALYSIS,
        _UNSUPPORTED,
        "^the type '.+' is not supported|^collations are not supported|^text with a collation is not",
        {"dataTypeList": "#unsupported", "config": "=spark.databricks.delta.schema.typeCheck.enabled"},
    ),
    Condition(  # Spark's own, for a DataFrame that is saved
        "UNSUPPORTED_DATA_TYPE_FOR_DATASOURCE",
        "0A000",
        ANALYSIS,
        parameters={"columnName": "`column`", "columnType": '"column_type"'},
        details=r"(^schemaString\.(?P<column>[^.:]+): the type '(?P<column_type>[^']+)')?",
    ),
    Condition(
        "COLUMN_ALREADY_EXISTS",
        "42711",
        ANALYSIS,
        e.DeltaError,
        "^a column comes twice|^two columns differ only in case",
        {"columnName": ".duplicate_parts|column"},
        details="found '?(?P<column>[^']+)",
    ),
    Condition(
        "DELTA_CANNOT_WRITE_EMPTY_SCHEMA.TABLE_ALL_VOID_COLUMNS",
        "428GU",
        ANALYSIS,
        _ARGUMENT,
        "^every column holds nothing but nulls",
    ),
    Condition(
        "DELTA_CANNOT_WRITE_EMPTY_SCHEMA.STRUCT_ALL_VOID_FIELDS",
        "428GU",
        ANALYSIS,
        _ARGUMENT,
        "^every field of the struct holds nothing but nulls",
        {"columnPath": "where"},
    ),
    Condition(
        "DELTA_INVALID_PARTITION_COLUMN_NAME", "42996", ANALYSIS, _ARGUMENT, "^a partition column's name has"
    ),
    Condition(
        "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES",
        "42K05",
        ANALYSIS,
        _ARGUMENT,
        "characters that need column mapping",
        {"invalidColumnNames": "column|where"},
    ),
    Condition(
        "DELTA_INVALID_COLUMN_NAMES_WHEN_REMOVING_COLUMN_MAPPING",
        "42K05",
        ANALYSIS,
        _ARGUMENT,
        "^column mapping cannot be removed, because names",
        {"invalidColumnNames": "found"},
    ),
    # Changes of columns
    *(
        Condition(
            name,
            "0AKDC",
            ANALYSIS,
            _ARGUMENT,
            f"only be {word} where columns are mapped",
            {"advice": f"={_MAPPING_ADVICE}"},
        )
        for name, word in (
            ("DELTA_UNSUPPORTED_DROP_COLUMN", "dropped"),
            ("DELTA_UNSUPPORTED_RENAME_COLUMN", "renamed"),
        )
    ),
    Condition(
        "DELTA_UNSUPPORTED_DROP_PARTITION_COLUMN",
        "0AKDC",
        ANALYSIS,
        _ARGUMENT,
        "partition column cannot be dropped",
        {"columnList": "where"},
    ),
    Condition(
        "DELTA_UNSUPPORTED_DROP_CLUSTERING_COLUMN",
        "0AKDC",
        ANALYSIS,
        _ARGUMENT,
        "the table is clustered by the column",
        {"columnList": "where"},
    ),
    Condition(
        "DELTA_DROP_COLUMN_ON_SINGLE_FIELD_SCHEMA",
        "0AKDC",
        ANALYSIS,
        _ARGUMENT,
        "the last column cannot be dropped",
        {"schema": "%schema"},
    ),
    Condition(  # Spark's own, for ALTER COLUMN
        "_LEGACY_ERROR_TEMP_2330",
        None,
        ANALYSIS,
        _ARGUMENT,
        "^NOT NULL cannot be set on a column that takes null, only dropped",
        {"fieldName": "where"},
    ),
    Condition(
        "DELTA_ALTER_TABLE_CHANGE_COL_NOT_SUPPORTED",
        "42837",
        ANALYSIS,
        _ARGUMENT,
        "NOT NULL cannot be set on a column",
    ),
    Condition(
        "DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP",
        "0AKDC",
        ANALYSIS,
        _ARGUMENT,
        _TYPE_CHANGE,
        {"fieldPath": "where", "oldField": "<before>", "newField": "<after>"},
        details=_UP_CAST,
    ),
    Condition(  # Spark's own, for a change of a type that may lose values
        "NOT_SUPPORTED_CHANGE_COLUMN",
        "0A000",
        ANALYSIS,
        _ARGUMENT,
        _TYPE_CHANGE,
        {
            "table": "quoted_table",
            "originName": "`where`",
            "newName": "`where`",
            "originType": '"before"',
            "newType": '"after"',
        },
    ),
    Condition(
        "NOT_SUPPORTED_CHANGE_COLUMN",
        "0A000",
        ANALYSIS,
        _SCHEMA,
        "^the type of a column cannot become shorter",
        {
            "table": "quoted_table",
            "originName": "`where`",
            "newName": "`where`",
            "originType": '"before"',
            "newType": '"found"',
        },
        details="expected (?P<before>.+), or longer",
    ),
)
