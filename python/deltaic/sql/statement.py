"""`deltaic.sql`: the first words of a statement choose the family that runs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from deltaic.errors import InvalidArgumentError, InvalidTypeError, UnsupportedFeatureError
from deltaic.scan.rows import Rows
from deltaic.sql.alter import alter
from deltaic.sql.change import delete, truncate, update
from deltaic.sql.create import create
from deltaic.sql.describe import describe
from deltaic.sql.insert import insert
from deltaic.sql.merge import merge
from deltaic.sql.names import Tables
from deltaic.sql.select import select
from deltaic.sql.tokens import Reader
from deltaic.sql.upkeep import optimize, reorg, restore, vacuum

_STATEMENTS: dict[str, Callable[[Reader, Tables], Rows]] = {
    "SELECT": select,
    "WITH": select,
    "VALUES": select,
    "FROM": select,
    "TABLE": select,
    "(": select,
    "INSERT": insert,
    "DELETE": delete,
    "TRUNCATE": truncate,
    "UPDATE": update,
    "MERGE": merge,
    "CREATE": create,
    "REPLACE": create,
    "ALTER": alter,
    "OPTIMIZE": optimize,
    "REORG": reorg,
    "VACUUM": vacuum,
    "RESTORE": restore,
    "DESCRIBE": describe,
    "DESC": describe,
}

_LATER = {
    "GENERATE": "manifests (generate)",
    "CONVERT": "converting Parquet files in place",
    "FSCK": "repair",
    "DROP": "dropping a table: delete its folder",
    "SHOW": "SHOW",
    "CALL": "CALL",
    "CACHE": "CACHE",
    "EXPLAIN": "EXPLAIN: Rows.explain() says what a scan reads",
    "SET": "session settings: deltaic.configure()",
    "USE": "catalogs",
    "COPY": "COPY INTO",
}


def run(statement: str, tables: Tables) -> Rows:
    """One statement on these tables, by whatever engine they have."""
    if not isinstance(statement, str):
        raise InvalidTypeError("a statement is text", found=type(statement).__name__, expected="str")
    reader = Reader(statement)
    word = reader.tokens[0].keyword
    if (family := _STATEMENTS.get(word)) is not None:
        return family(reader, tables)
    if word in _LATER:
        raise UnsupportedFeatureError(_LATER[word], found=word)
    raise InvalidArgumentError("SQL does not parse", where="line 1, column 1", found=reader.tokens[0].text, expected="a statement")


def sql(statement: str, *, tables: Mapping[str, Any] | None = None, storage_options: Mapping[str, str] | None = None) -> Rows:
    """Run one statement of Spark SQL on Delta tables.

    A table is written delta.`path`, or is one of `tables`: a name (matched without case) to a `DeltaTable`, or, where it is only read, to
    Arrow data, pandas, Polars or DuckDB. `storage_options` open the paths. A query (SELECT, WITH, VALUES) is lazy: each exit of its `Rows`
    runs it, on the versions the tables had at the call. Any other statement runs at the call and returns what delta-spark returns:

    | statement | columns |
    |---|---|
    | DELETE, UPDATE | num_affected_rows |
    | MERGE | num_affected_rows, num_updated_rows, num_deleted_rows, num_inserted_rows |
    | OPTIMIZE, REORG ... APPLY (PURGE) | path, metrics |
    | VACUUM | path: of the table; with DRY RUN of each file |
    | RESTORE | table_size_after_restore, num_of_files_after_restore, num_removed_files, num_restored_files, sizes |
    | DESCRIBE HISTORY, DETAIL, TABLE | as delta-spark |
    | INSERT, CREATE, ALTER, TRUNCATE | none |

    Errors: InvalidArgumentError with line and column where the text does not parse; UnsupportedFeatureError naming a statement or an
    expression that this release does not know; else those of the command.
    """
    return run(statement, Tables(tables, storage_options))
