"""`deltaic.sql`: selects the module that runs a statement by its first word."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from deltaic.errors import InvalidArgumentError, InvalidTypeError, UnsupportedFeatureError
from deltaic.rows.rows import Rows
from deltaic.sql.identifiers import with_identifiers
from deltaic.sql.names import Tables
from deltaic.sql.subqueries import defined, read_definitions
from deltaic.sql.tokens import Reader, inserts

# First word of a statement -> module of `deltaic.sql` and its function. Modules are imported when needed, so
# a query does not import those of commands.
STATEMENTS = {
    "SELECT": ("select", "select"),
    "WITH": ("select", "select"),
    "VALUES": ("select", "select"),
    "FROM": ("select", "select"),
    "TABLE": ("select", "select"),
    "(": ("select", "select"),
    "INSERT": ("insert", "insert"),
    "DELETE": ("change", "delete"),
    "TRUNCATE": ("change", "truncate"),
    "UPDATE": ("change", "update"),
    "MERGE": ("merge", "merge"),
    "CREATE": ("create", "create"),
    "REPLACE": ("create", "create"),
    "ALTER": ("alter", "alter"),
    "OPTIMIZE": ("upkeep", "optimize"),
    "REORG": ("upkeep", "reorg"),
    "VACUUM": ("upkeep", "vacuum"),
    "RESTORE": ("upkeep", "restore"),
    "FSCK": ("upkeep", "repair"),
    "GENERATE": ("upkeep", "generate"),
    "CONVERT": ("upkeep", "convert"),
    "DESCRIBE": ("describe", "describe"),
    "DESC": ("describe", "describe"),
    "EXPLAIN": ("select", "explain"),
    "SHOW": ("show", "show"),
    "COMMENT": ("show", "comment"),
}

CHANGES_ROWS = frozenset({"INSERT", "DELETE", "UPDATE", "MERGE"})
"""First words of statements that change rows, and that WITH may precede."""

REFUSED = {
    "DROP": "dropping a table: delete its folder",
    "ANALYZE": "ANALYZE TABLE: statistics are in the log, table.optimize.statistics() computes them anew",
    "MSCK": "MSCK REPAIR TABLE: the log has the partitions of a Delta table",
    "REPAIR": "MSCK REPAIR TABLE: the log has the partitions of a Delta table",
    "CALL": "CALL",
    "CACHE": "CACHE",
    "SET": "session settings and variables: deltaic.configure(), parameters=",
    "USE": "catalogs",
    "DECLARE": "session variables: parameters= gives values to a statement",
    "EXECUTE": "EXECUTE IMMEDIATE: parameters= gives values to a statement",
    "COPY": "COPY INTO",
}


def run(statement: str, tables: Tables) -> Rows:
    """Runs one statement on these tables, whose class decides on the engine."""
    if not isinstance(statement, str):
        raise InvalidTypeError("a statement must be a string", found=type(statement).__name__, expected="str")
    statement = with_identifiers(statement)
    reader = Reader(statement)
    if reader.at("FROM") or reader.at("WITH"):
        definitions = read_definitions(reader, (*CHANGES_ROWS, "FROM"))
        statements = inserts(reader.rest("a statement"))
        if len(statements) > 1:
            before = "" if definitions is None else f"{definitions[0]} "
            return [run(f"{before}{each}", tables) for each in statements][-1]
        # a query that begins with FROM stays as it is
        if Reader(statements[0]).tokens[0].keyword in CHANGES_ROWS:
            statement = statements[0]
            if definitions is not None:
                tables.definitions, tables.defined = definitions
                statement = defined(statement, *definitions)
        reader = Reader(statement)
    word = reader.tokens[0].keyword
    if (family := STATEMENTS.get(word)) is not None:
        module, function = family
        rows: Rows = getattr(import_module(f"deltaic.sql.{module}"), function)(reader, tables)
        return rows
    if word in REFUSED:
        raise UnsupportedFeatureError(REFUSED[word], found=word)
    raise InvalidArgumentError(
        "SQL does not parse", where="line 1, column 1", found=reader.tokens[0].text, expected="a statement"
    )


def sql(
    statement: str,
    *,
    tables: Mapping[str, Any] | None = None,
    parameters: Mapping[str, Any] | Sequence[Any] | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Rows:
    """Runs one statement of Spark SQL on Delta tables.

    `statement` (str): the text. A table in it is written delta.`path`, or is a name in `tables`.
    `tables`: a dict from name (compared without case) to `DeltaTable`, or, for tables that are only read, to
    Arrow data, pandas, Polars or DuckDB objects.
    `parameters`: a dict with the values of `:name`, or a list with those of `?`, of the types of `lit`:
    `sql("SELECT * FROM t WHERE id = :id", tables={"t": table}, parameters={"id": 7})`.
    `storage_options`: options of the store, for the paths in the statement.

    A query (SELECT, WITH, VALUES) is lazy: each conversion of its `Rows` runs it, on the versions that the
    tables had at the call. Any other statement runs at the call and returns the columns that delta-spark
    returns:

    | statement | columns |
    |---|---|
    | DELETE, UPDATE | num_affected_rows |
    | MERGE | num_affected_rows, num_updated_rows, num_deleted_rows, num_inserted_rows |
    | OPTIMIZE, REORG ... APPLY (PURGE) | path, metrics |
    | VACUUM | path: of the table; with DRY RUN of each file |
    | RESTORE | table_size_after_restore, num_of_files_after_restore, num_removed_files, |
    | | num_restored_files, sizes |
    | CREATE TABLE ... CLONE | source_table_size, source_num_of_files, num_removed_files, |
    | | num_copied_files, sizes of these |
    | FSCK REPAIR TABLE [DRY RUN] | dataFilePath, dataFileMissing, deletionVectorPath, |
    | | deletionVectorFileMissing |
    | DESCRIBE HISTORY | version, timestamp, operation, operationParameters, operationMetrics, |
    | | userMetadata, readVersion, isolationLevel, isBlindAppend, engineInfo, ... |
    | DESCRIBE DETAIL | those of `Detail`, in camel case: numFiles, sizeInBytes, ... |
    | DESCRIBE TABLE [EXTENDED] | col_name, data_type, comment; for one column info_name, info_value |
    | SHOW COLUMNS | col_name |
    | SHOW PARTITIONS | the partition columns |
    | SHOW TBLPROPERTIES | key, value |
    | SHOW CREATE TABLE | createtab_stmt |
    | EXPLAIN query: runs it | plan: as text, with the files, bytes and rows that it read of each table |
    | INSERT, CREATE, ALTER, TRUNCATE, COMMENT ON TABLE, CONVERT TO DELTA, GENERATE | none |

    Raises InvalidArgumentError with line and column if the text does not parse, InvalidTypeError if
    `statement` is no str, UnsupportedFeatureError for a statement or an expression that this release does not
    support, and the errors of the command.

    >>> query = "SELECT count(*) AS n FROM delta.`flights` WHERE id > :id"
    >>> deltaic.sql(query, parameters={"id": 2}).to_pylist()
    [{'n': 2}]
    """
    if parameters is not None and isinstance(statement, str):
        from deltaic.sql.parameters import bound

        statement = bound(statement, parameters)
    return run(statement, Tables(tables, storage_options))
