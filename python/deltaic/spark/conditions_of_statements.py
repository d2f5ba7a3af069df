"""Conditions of statements, and Spark's own conditions for statements that deltaic parses. An error gets
the first one that fits."""

from __future__ import annotations

from deltaic import errors as e
from deltaic.spark.condition import ANALYSIS, ARGUMENT, OPERATION, PARSE, RUNTIME, Condition

_ARGUMENT = e.InvalidArgumentError
_SCHEMA = e.SchemaMismatchError
_UNSUPPORTED = e.UnsupportedFeatureError
_CONDITION = {"operation": "operation", "cond": "condition"}

CONDITIONS: tuple[Condition, ...] = (
    Condition("UNSUPPORTED_TABLE_CHANGE", "0A000", RUNTIME, _ARGUMENT, None, {"message": "message"}),
    Condition(
        "DELTA_CONFLICT_SET_COLUMN",
        "42701",
        ANALYSIS,
        _ARGUMENT,
        "^a column is (assigned|set) twice",
        {"columnList": "[columns]"},
    ),
    Condition(
        "COLUMN_ALREADY_EXISTS",
        "42711",
        ANALYSIS,
        _SCHEMA,
        "^a column is listed twice",
        {"columnName": "`found`"},
    ),
    Condition("DELTA_DUPLICATE_COLUMNS_ON_INSERT", "42701", ANALYSIS, _ARGUMENT, "^a column is listed twice"),
    Condition(
        "DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED",
        "0AKDC",
        ANALYSIS,
        _ARGUMENT,
        "a condition of MERGE must be deterministic",
        {"operation": "operation", "expression": "predicate"},
    ),
    Condition(
        "DELTA_AGGREGATION_NOT_SUPPORTED",
        "42903",
        ANALYSIS,
        _ARGUMENT,
        "^an aggregate cannot stand in a condition of MERGE",
        {"operation": "operation", "predicate": "predicate"},
    ),
    Condition(
        "UNSUPPORTED_EXPR_FOR_OPERATOR",
        "42K0E",
        ANALYSIS,
        _ARGUMENT,
        "^(an aggregate|a window function) cannot stand in an expression on rows"
        r"|^the aggregate function \w+ cannot stand in this place",
        {"invalidExprSqls": "(found)"},
    ),
    Condition("UNSUPPORTED_SQL_UDF_USAGE", "0A000", ANALYSIS, _ARGUMENT, "^a SQL function cannot stand"),
    Condition(
        "UNSUPPORTED_GENERATOR.OUTSIDE_SELECT",
        "42K0E",
        ANALYSIS,
        _ARGUMENT,
        "^a generator cannot stand",
        {"plan": "found"},
    ),
    Condition(
        "AMBIGUOUS_REFERENCE",
        "42704",
        ANALYSIS,
        _ARGUMENT,
        "^source and target need different aliases",
    ),
    Condition(
        "AMBIGUOUS_REFERENCE",
        "42704",
        ANALYSIS,
        _UNSUPPORTED,
        "a column of target and source alike",
        {"name": "`found`"},
    ),
    Condition("DEFAULT_PLACEMENT_INVALID", "42608", ANALYSIS, _ARGUMENT, "^DEFAULT is part of an expression"),
    Condition("DELTA_MERGE_MISSING_WHEN", "42601", ANALYSIS, _ARGUMENT, "a merge needs at least one clause"),
    Condition(
        "DELTA_NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION",
        "42601",
        ANALYSIS,
        _ARGUMENT,
        "only the last matched clause",
    ),
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
    *(
        Condition(f"NON_LAST_{kind}_CLAUSE_OMIT_CONDITION", "42613", PARSE)
        for kind in ("MATCHED", "NOT_MATCHED_BY_TARGET", "NOT_MATCHED_BY_SOURCE")
    ),
    Condition("MERGE_WITHOUT_WHEN", "42601", PARSE),
    Condition(
        "DELTA_SHOW_PARTITION_IN_NON_PARTITIONED_COLUMN",
        "42P10",
        ANALYSIS,
        e.SchemaMismatchError,
        "^SHOW PARTITIONS takes only",
        {"badCols": "found"},
    ),
    Condition("DELTA_FAILED_RECOGNIZE_PREDICATE", "42601", ANALYSIS, parameters={"predicate": "predicate"}),
    Condition("DELTA_ONLY_OPERATION", "0AKDD", ANALYSIS, parameters={"operation": "operation"}),
    Condition("DELTA_NOT_A_DELTA_TABLE", "0AKDD", ANALYSIS, parameters={"tableName": "name"}),
    Condition("DELTA_UNSUPPORTED_SOURCE", "0AKDD", ANALYSIS, parameters={"operation": "operation"}),
    Condition("UNSUPPORTED_OVERWRITE.TABLE", "42902", ANALYSIS, parameters={"table": "quoted_table"}),
    Condition("DELTA_CANNOT_WRITE_INTO_VIEW", "0A000", ANALYSIS, parameters={"table": "relation"}),
    Condition(
        "EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE",
        "42809",
        ANALYSIS,
        parameters={"viewName": "view|found", "operation": "operation"},
    ),
    Condition(
        "DELTA_NON_PARTITION_COLUMN_REFERENCE",
        "42P10",
        ANALYSIS,
        _ARGUMENT,
        "references non-partition column|OPTIMIZE is a condition on partition",
        {"columnName": "column", "columnList": "columns"},
    ),
    Condition(
        "DELTA_ZORDERING_ON_PARTITION_COLUMN",
        "42P10",
        ARGUMENT,
        _ARGUMENT,
        "Z-Ordering can only be performed on data columns",
        {"colName": "found"},
    ),
    Condition(
        "DELTA_ZORDERING_COLUMN_DOES_NOT_EXIST",
        "42703",
        ARGUMENT,
        _ARGUMENT,
        "^no such column to order",
        {"columnName": "found"},
    ),
    Condition(
        "DELTA_ZORDERING_ON_COLUMN_WITHOUT_STATS",
        "KD00D",
        ANALYSIS,
        _ARGUMENT,
        "column without statistics skips no",
    ),
    Condition(
        "DELTA_CLUSTERING_WITH_PARTITION_PREDICATE",
        "0A000",
        OPERATION,
        _UNSUPPORTED,
        "^where= of OPTIMIZE on a clustered table",
        {"predicates": "found"},
    ),
    Condition(
        "DELTA_CLUSTERING_WITH_ZORDER_BY",
        "42613",
        ANALYSIS,
        _ARGUMENT,
        "clustered table is clustered by its own",
        {"zOrderBy": "columns"},
    ),
    Condition(
        "DELTA_OPTIMIZE_FULL_NOT_SUPPORTED",
        "42601",
        OPERATION,
        _UNSUPPORTED,
        "the table has no clustering columns",
    ),
    Condition(
        "DELTA_SHOW_PARTITION_IN_NON_PARTITIONED_TABLE",
        "42809",
        ANALYSIS,
        _ARGUMENT,
        "the table is not partitioned",
        {"tableName": "table|where"},
    ),
    Condition(
        "DELTA_UNSUPPORTED_SCHEMA_DURING_READ",
        "0AKDC",
        ANALYSIS,
        _ARGUMENT,
        "a Delta table has its own schema",
    ),
    Condition(
        "DELTA_UNSUPPORTED_SUBQUERY_IN_PARTITION_PREDICATES",
        "0AKDC",
        ANALYSIS,
        _UNSUPPORTED,
        "^the condition on partition columns has a subquery",
    ),
    Condition("DELTA_UNSUPPORTED_SUBQUERY", "0AKDC", ANALYSIS, _UNSUPPORTED, "a subquery", _CONDITION),
    Condition("DELTA_OPERATION_ON_VIEW_NOT_ALLOWED", "0AKDC", ANALYSIS, _UNSUPPORTED, "^\\w+ of a view"),
    Condition("SORT_BY_WITHOUT_BUCKETING", "42601", ANALYSIS),
    Condition(
        "DELTA_OPERATION_NOT_ALLOWED_DETAIL",
        "0AKDC",
        ANALYSIS,
        _UNSUPPORTED,
        "^buckets of",
        {"operation": "=Bucketing", "tableName": "relation"},
    ),
    *(
        Condition(
            "DELTA_OPERATION_NOT_ALLOWED",
            "0AKDC",
            ANALYSIS,
            _UNSUPPORTED,
            pattern,
            {"operation": f"={operation}"},
        )
        for pattern, operation in (
            ("^a partition by an expression", "Partitioning by expressions"),
            ("^INSERT OVERWRITE DIRECTORY", "INSERT OVERWRITE DIRECTORY"),
        )
    ),
    Condition(
        "PARTITION_BY_NOT_ALLOWED_WITH_INSERT_INTO",
        "42601",
        ANALYSIS,
        _ARGUMENT,
        "^insertInto and partitionBy",
    ),
    Condition(
        "NON_PARTITION_COLUMN",
        "42000",
        ANALYSIS,
        _SCHEMA,
        "^PARTITION takes partition columns",
        {"columnName": "`column`"},
    ),
    Condition(
        "STATIC_PARTITION_COLUMN_IN_INSERT_COLUMN_LIST",
        "42713",
        ANALYSIS,
        _SCHEMA,
        "^PARTITION gives a value to a column that is listed",
        {"staticName": "column"},
    ),
    Condition(
        "DUPLICATE_KEY",
        "23505",
        PARSE,
        _ARGUMENT,
        "^PARTITION names a column twice",
        {"keyColumn": "`found`"},
    ),
    Condition(
        "DELTA_TRUNCATE_TABLE_PARTITION_NOT_SUPPORTED",
        "0AKDC",
        ANALYSIS,
        _UNSUPPORTED,
        "^TRUNCATE TABLE of single partitions",
    ),
    Condition(
        "DELTA_MODE_NOT_SUPPORTED",
        "0AKDC",
        ARGUMENT,
        _ARGUMENT,
        "^unknown mode of generate",
        {"mode": "found", "supportedModes": "=symlink_format_manifest"},
    ),
    Condition(
        "DELTA_VACUUM_RETENTION_PERIOD_NEGATIVE", "22003", ARGUMENT, _ARGUMENT, "^retention is negative"
    ),
    Condition(
        "DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT",
        "22003",
        ARGUMENT,
        _ARGUMENT,
        "^retention is shorter than",
        {"configuredRetentionHours": "hours"},
    ),
    Condition("DELTA_CANNOT_VACUUM_LITE", "55000", RUNTIME),
    # Statements that Delta tables do not have
    *(
        Condition(
            "NOT_SUPPORTED_COMMAND_FOR_V2_TABLE", "0A000", ANALYSIS, _UNSUPPORTED, pattern, {"cmd": cmd}
        )
        for pattern, cmd in (
            ("^ANALYZE TABLE", "=ANALYZE TABLE"),
            ("^MSCK REPAIR TABLE", "=MSCK REPAIR TABLE"),
            ("^DESCRIBE TABLE AS JSON is not supported", "=DESCRIBE TABLE AS JSON"),
            ("^Spark cannot run", "operation"),
            ("^ALTER TABLE SET SERDE", "=ALTER TABLE ... SET [SERDE|SERDEPROPERTIES]"),
            ("^ALTER TABLE RECOVER", "=ALTER TABLE ... RECOVER PARTITIONS"),
        )
    ),
    Condition(
        "INVALID_PARTITION_OPERATION.PARTITION_MANAGEMENT_IS_UNSUPPORTED",
        "42601",
        ANALYSIS,
        _UNSUPPORTED,
        "of single partitions",
        {"name": "quoted_table"},
    ),
    Condition(
        "UNSUPPORTED_FEATURE.TABLE_OPERATION",
        "0A000",
        ANALYSIS,
        _UNSUPPORTED,
        "^a table constraint|REPLACE USING and REPLACE ON",
        {"operation": "message"},
    ),
    Condition(
        "UNSUPPORTED_FEATURE.INSERT_PARTITION_SPEC_IF_NOT_EXISTS",
        "0A000",
        ANALYSIS,
        parameters={"tableName": "quoted_table"},
    ),
    # Spark's own conditions, for statements that deltaic parses
    Condition("NO_MERGE_ACTION_SPECIFIED", "42K0E", RUNTIME),
    Condition(
        "_LEGACY_ERROR_TEMP_0034",
        None,
        PARSE,
        parameters={"operation": "operation", "command": "=ALTER COLUMN", "msg": "advice"},
    ),
    Condition(
        "UNSUPPORTED_FEATURE.SET_TABLE_PROPERTY",
        "0A000",
        PARSE,
        parameters={"property": "found", "msg": "advice"},
    ),
    Condition(
        "NOT_SUPPORTED_CHANGE_SAME_COLUMN",
        "0A000",
        ANALYSIS,
        parameters={"table": "quoted_table", "fieldName": ".path|where"},
    ),
    *(
        Condition(
            f"CANNOT_UPDATE_FIELD.{kind}_TYPE",
            "0A000",
            ANALYSIS,
            parameters={"table": "quoted_table", "fieldName": ".path|where"},
        )
        for kind in ("STRUCT", "ARRAY", "MAP")
    ),
    Condition("UNSUPPORTED_DATATYPE", "0A000", PARSE, _ARGUMENT, "^no such type", {"typeName": '"found"'}),
    *(
        Condition(
            "PARSE_SYNTAX_ERROR",
            "42601",
            PARSE,
            _ARGUMENT,
            "does not parse",
            {"error": error, "hint": "="},
            details=details,
        )
        for error, details in (("'unknown|=end of input", "^end of the statement"), ("'unknown|found'", ""))
    ),
    *(
        Condition(
            f"CREATE_VIEW_COLUMN_ARITY_MISMATCH.{kind}_DATA_COLUMNS",
            "21S01",
            ANALYSIS,
            parameters={"viewName": "where", "viewColumns": "`expected", "dataColumns": "`found"},
        )
        for kind in ("TOO_MANY", "NOT_ENOUGH")
    ),
    Condition("DUPLICATE_CLAUSES", "42614", PARSE, parameters={"clauseName": "found"}),
    Condition("UNSUPPORTED_FEATURE.ANALYZE_VIEW", "0A000", ANALYSIS),
    Condition("UNSUPPORTED_FEATURE.TIME_TRAVEL", "0A000", ANALYSIS, parameters={"relationId": "where"}),
    Condition("RECURSIVE_VIEW", "42K0H", ANALYSIS, parameters={"viewIdent": "where", "newPath": "found"}),
    Condition("INVALID_SCHEMA_OR_RELATION_NAME", "42602", ANALYSIS, parameters={"name": "found"}),
    Condition("SCHEMA_NOT_FOUND", "42704", ANALYSIS, parameters={"schemaName": "schema|found"}),
    Condition(
        "UNRESOLVED_COLUMN.WITH_SUGGESTION",
        "42703",
        ANALYSIS,
        _ARGUMENT,
        r"^no such column|^\[UNRESOLVED_COLUMN\] ",
        {"objectName": ".path|found", "proposal": "`columns`"},
    ),
    Condition("INVALID_WHERE_CONDITION", "42903", ANALYSIS, parameters={"expressionList": "found"}),
    Condition("INVALID_NON_DETERMINISTIC_EXPRESSIONS", "42K0E", ANALYSIS, parameters={"sqlExprs": "(found)"}),
    Condition(
        "JOIN_CONDITION_IS_NOT_BOOLEAN_TYPE",
        "42K0E",
        ANALYSIS,
        _SCHEMA,
        "^the condition of a merge must be a boolean",
        {"joinCondition": "(where)", "conditionType": '"found"'},
    ),
    Condition(
        "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN",
        "42K09",
        ANALYSIS,
        _SCHEMA,
        "(a condition|the condition of replaceOn) must be a boolean",
        {"sqlExpr": "(where)", "filter": "(where)", "type": '"found"'},
    ),
)
