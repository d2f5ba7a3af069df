"""`deltaic.sql`: the first words of a statement choose the family that runs it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from deltaic.errors import InvalidArgumentError, InvalidTypeError, UnsupportedFeatureError
from deltaic.rows.rows import Rows
from deltaic.sql.identifiers import with_identifiers
from deltaic.sql.names import Tables
from deltaic.sql.tokens import Reader, insert_first

# First word of a statement -> module of `deltaic.sql` and function in it: a query does not import what only commands need.
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

REFUSED = {
    "DROP": "dropping a table: delete its folder",
    "ANALYZE": "ANALYZE TABLE: statistics are in the log, table.optimize.statistics() computes them anew",
    "CALL": "CALL",
    "CACHE": "CACHE",
    "SET": "session settings and variables: deltaic.configure(), parameters=",
    "USE": "catalogs",
    "DECLARE": "session variables: parameters= gives values to a statement",
    "EXECUTE": "EXECUTE IMMEDIATE: parameters= gives values to a statement",
    "COPY": "COPY INTO",
}


def run(statement: str, tables: Tables) -> Rows:
    """One statement on these tables, by whatever engine they have."""
    if not isinstance(statement, str):
        raise InvalidTypeError("a statement is text", found=type(statement).__name__, expected="str")
    statement = with_identifiers(statement)
    reader = Reader(statement)
    if reader.at("FROM"):
        reader = Reader(insert_first(statement))
    word = reader.tokens[0].keyword
    if (family := STATEMENTS.get(word)) is not None:
        module, function = family
        rows: Rows = getattr(import_module(f"deltaic.sql.{module}"), function)(reader, tables)
        return rows
    if word in REFUSED:
        raise UnsupportedFeatureError(REFUSED[word], found=word)
    raise InvalidArgumentError("SQL does not parse", where="line 1, column 1", found=reader.tokens[0].text, expected="a statement")


def sql(
    statement: str,
    *,
    tables: Mapping[str, Any] | None = None,
    parameters: Mapping[str, Any] | Sequence[Any] | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Rows:
    """Run one statement of Spark SQL on Delta tables.

    A table is written delta.`path`, or is one of `tables`: a name (matched without case) to a `DeltaTable`, or, where it is only read, to
    Arrow data, pandas, Polars or DuckDB. `parameters`: a mapping gives the values of `:name`, a sequence those of `?`, each as `lit` writes
    it: `sql("SELECT * FROM t WHERE id = :id", tables={"t": table}, parameters={"id": 7})`. `storage_options` open the paths.

    A query (SELECT, WITH, VALUES) is lazy: each exit of its `Rows` runs it, on the versions the tables had at the call. Any other statement
    runs at the call and returns what delta-spark returns:

    | statement | columns |
    |---|---|
    | DELETE, UPDATE | num_affected_rows |
    | MERGE | num_affected_rows, num_updated_rows, num_deleted_rows, num_inserted_rows |
    | OPTIMIZE, REORG ... APPLY (PURGE) | path, metrics |
    | VACUUM | path: of the table; with DRY RUN of each file |
    | RESTORE | table_size_after_restore, num_of_files_after_restore, num_removed_files, num_restored_files, sizes |
    | CREATE TABLE ... CLONE | source_table_size, source_num_of_files, num_removed_files, num_copied_files, sizes of these |
    | FSCK REPAIR TABLE [DRY RUN] | dataFilePath, dataFileMissing, deletionVectorPath, deletionVectorFileMissing |
    | DESCRIBE HISTORY, DETAIL, TABLE [EXTENDED] | as delta-spark |
    | SHOW COLUMNS, PARTITIONS, TBLPROPERTIES | as delta-spark |
    | SHOW CREATE TABLE | createtab_stmt |
    | EXPLAIN query: runs it | plan: as text, with the files, bytes and rows that it read of each table |
    | INSERT, CREATE, ALTER, TRUNCATE, COMMENT ON TABLE, CONVERT TO DELTA, GENERATE | none |

    Errors: InvalidArgumentError with line and column where the text does not parse; UnsupportedFeatureError naming a statement or an
    expression that this release does not know; else those of the command.

    >>> deltaic.sql("SELECT count(*) AS n FROM delta.`flights` WHERE id > :id", parameters={"id": 2}).to_pylist()
    [{'n': 2}]
    """
    if parameters is not None and isinstance(statement, str):
        from deltaic.sql.parameters import bound

        statement = bound(statement, parameters)
    return run(statement, Tables(tables, storage_options))
