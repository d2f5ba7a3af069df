"""Conditions about columns of data that do not fit the table's columns. An error gets the first one that
fits."""

from __future__ import annotations

from deltaic import errors as e
from deltaic.spark.condition import ANALYSIS, ARGUMENT, PARSE, RUNTIME, Condition

_ARGUMENT = e.InvalidArgumentError
_SCHEMA = e.SchemaMismatchError

_INVENTORY = "".join(
    f"{line}\n"
    for line in (
        "root",
        " |-- path: string (nullable = true)",
        " |-- length: long (nullable = true)",
        " |-- isDir: boolean (nullable = true)",
        " |-- modificationTime: long (nullable = true)",
    )
)

CONDITIONS: tuple[Condition, ...] = (
    Condition(
        "DELTA_READ_TABLE_WITHOUT_COLUMNS",
        "428GU",
        ANALYSIS,
        _SCHEMA,
        "^the table has no columns yet",
        {"tableName": "where"},
    ),
    Condition(
        "DELTA_READ_TABLE_WITHOUT_COLUMNS",
        "428GU",
        ANALYSIS,
        e.ProtocolError,
        "schemaString is not valid",
        details="found None",
    ),
    *(
        Condition(f"FAILED_READ_FILE.{kind}", "KD001", RUNTIME, e.ProtocolError, pattern, {"path": "where"})
        for kind, pattern in (
            ("FILE_NOT_EXIST", "^a file that the log names is not there"),
            (
                "NO_HINT",
                "^deletion vector |^the file is shorter than the log says|^the file is too short for Parquet"
                "|^the line is no valid action",
            ),
        )
    ),
    Condition("DELTA_SCHEMA_NOT_PROVIDED", "42908", ANALYSIS, _ARGUMENT, "^a table needs columns"),
    Condition(
        "DELTA_NON_PARTITION_COLUMN_SPECIFIED",
        "42P10",
        ANALYSIS,
        _ARGUMENT,
        "the path names a partition by other columns",
        {"columnList": "[columns]", "fragment": "found"},
    ),
    Condition(
        "DELTA_PARTITION_COLUMN_NOT_FOUND",
        "42703",
        ANALYSIS,
        _SCHEMA,
        "^the data lacks a partition column",
        {"columnName": "`expected`", "schemaMap": "found"},
    ),
    Condition("DELTA_EMPTY_DATA", "428GU", ANALYSIS, _SCHEMA, "^the data has no columns"),
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
        "does not fit the column's",
        {"currentField": "where", "updateField": "where"},
    ),
    Condition(  # `mergeSchema` would make the column short or int
        "DELTA_METADATA_MISMATCH",
        "42KDG",
        ANALYSIS,
        _SCHEMA,
        "^the data has a type that the column cannot take",
        details=r"found (short|integer); expected (byte|short)\b",
    ),
    Condition(
        "DELTA_FAILED_TO_MERGE_FIELDS",
        "22005",
        ANALYSIS,
        _SCHEMA,
        "^the data has a type that the column cannot take",
        {"currentField": "column", "updateField": "column"},
        details=r"^column (?P<column>[^.;:]+)",
    ),
    Condition(
        "DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION",
        "42846",
        ANALYSIS,
        _SCHEMA,
        "^an assigned struct (has fields that|lacks fields of)",
        {"fromCatalog": "&given_type", "toCatalog": "&column_type"},
    ),
    Condition(
        "DELTA_INSERT_COLUMN_ARITY_MISMATCH",
        "42802",
        ANALYSIS,
        _SCHEMA,
        "^a struct lacks fields of",
        {
            "tableName": "table",
            "columnName": "shortage",
            "insertColumns": "value_count",
            "numColumns": "column_count",
        },
    ),
    Condition("DELTA_NULL_SCHEMA_IN_STREAMING_WRITE", "42P18", ANALYSIS, _SCHEMA),
    Condition(
        "DELTA_INSERT_COLUMN_MISMATCH",
        "42802",
        ANALYSIS,
        _SCHEMA,
        "^INSERT leaves out a column",
        {"columnName": "where"},
    ),
    Condition(
        "DELTA_MISSING_COLUMN",
        "42703",
        ANALYSIS,
        _SCHEMA,
        "^INSERT BY NAME has a column",
        {"columnName": "found", "columnList": "columns"},
    ),
    Condition(
        "DELTA_MERGE_UNRESOLVED_EXPRESSION",
        "42601",
        ANALYSIS,
        parameters={"sqlExpr": "column|found", "clause": "clause", "cols": "columns"},
    ),
    Condition(
        "DELTA_UNSUPPORTED_NESTED_FIELD_IN_OPERATION",
        "0AKDC",
        ANALYSIS,
        parameters={"operation": "operation", "fieldName": ".path"},
    ),
    *(
        Condition(
            f"INSERT_COLUMN_ARITY_MISMATCH.{kind}",
            "21S01",
            ANALYSIS,
            _SCHEMA,
            pattern,
            {"tableName": "quoted_table|where", "tableColumns": "`columns`", "dataColumns": "`given`"},
        )
        for kind, pattern in (
            ("NOT_ENOUGH_DATA_COLUMNS", "^INSERT needs one value for each column of its list"),
            (
                "TOO_MANY_DATA_COLUMNS",
                "^INSERT has more values than columns of its list|^INSERT BY NAME has more",
            ),
        )
    ),
    Condition(
        "DELTA_INSERT_COLUMN_ARITY_MISMATCH",
        "42802",
        ANALYSIS,
        _SCHEMA,
        "needs one value for each column",
        {
            "tableName": "table|where",
            "columnName": "=not enough data columns",
            "insertColumns": "value_count",
            "numColumns": "column_count",
        },
    ),
    Condition(
        "DELTA_INSERT_COLUMN_ARITY_MISMATCH",
        "42802",
        ANALYSIS,
        _SCHEMA,
        "needs (a column|one value) for each|number of columns",
        {"tableName": "table|where"},
    ),
    Condition(
        "MERGE_INSERT_VALUE_COUNT_MISMATCH",
        "21S01",
        PARSE,
        _ARGUMENT,
        "^INSERT needs one value",
        {"actualCount": "found", "expectedCount": "expected"},
    ),
    Condition(
        "DELTA_INVALID_INVENTORY_SCHEMA",
        "42000",
        ANALYSIS,
        _SCHEMA,
        "^the inventory does not have the required columns",
        {"expectedSchema": f"={_INVENTORY}"},
    ),
    Condition(
        "DELTA_METADATA_MISMATCH", "42KDG", ANALYSIS, _SCHEMA, "the data has a column that the table lacks"
    ),
    *(
        Condition(
            f"DELTA_DUPLICATE_COLUMNS_FOUND.{place}",
            "42711",
            ANALYSIS,
            e.ProtocolError,
            "^a column comes twice|^two columns differ only in case",
            {"duplicateCols": "both"},
            details=where,
        )
        for place, where in (("EXISTING_SCHEMA", "_delta_log/"), ("READ_SCHEMA", ""))
    ),
    Condition(
        "DELTA_DUPLICATE_COLUMNS_FOUND.ADDING_COLUMNS",
        "42711",
        ANALYSIS,
        parameters={"duplicateCols": "duplicate"},
    ),
    Condition(
        "INVALID_JSON_DATA_TYPE",
        "2203G",
        ARGUMENT,
        e.ProtocolError,
        "^no such type$",
        {"invalidType": "found"},
    ),
    Condition(
        "DELTA_DUPLICATE_COLUMNS_FOUND.READ_SCHEMA",
        "42711",
        ANALYSIS,
        parameters={"duplicateCols": "both"},
    ),
    Condition(
        "DELTA_DUPLICATE_COLUMNS_FOUND.METADATA_UPDATE",
        "42711",
        ANALYSIS,
        parameters={"duplicateCols": "duplicate|column"},
        details="found '?(?P<column>[^';]+)",
    ),
    Condition(
        "DELTA_DUPLICATE_COLUMNS_FOUND.DATA",
        "42711",
        ANALYSIS,
        _ARGUMENT,
        "columns? of the data (comes twice|differ only in case)",
        {"duplicateCols": "duplicate|column"},
        details="found '?(?P<column>[^';]+)",
    ),
)
