"""Names of deltalake, pandas, Polars and PySpark, each with deltaic's name for it: errors about an unknown
name say which one to use.

Nothing here makes such a name work. `docs/` and API signatures have deltaic's names alone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from deltaic.errors import InvalidTypeError

P = ParamSpec("P")
R = TypeVar("R")

MODULE = {
    "write_deltalake": "deltaic.write(path, data)",
    "convert_to_deltalake": "deltaic.DeltaTable.convert(path)",
    "QueryBuilder": 'deltaic.sql(statement, tables={"name": table})',
    "CommitProperties": "deltaic.CommitOptions",
    "PostCommitHookProperties": "deltaic.CommitOptions",
    "WriterProperties": "deltaic.ParquetOptions",
    "ColumnProperties": "deltaic.ColumnOptions",
    "BloomFilterProperties": "deltaic.ColumnOptions",
    "TableFeatures": 'the feature\'s name in PROTOCOL.md, as in table.alter.add_features("deletionVectors")',
    "Transaction": "deltaic.CommitOptions(transactions={app_id: version})",
    "TableMerger": "deltaic.Merge",
    "TableOptimizer": "DeltaTable.optimize",
    "TableAlterer": "DeltaTable.alter",
}
# What users of pandas, Polars and PySpark try first.
MODULE_OF_FRAMES = {
    "read": "deltaic.DeltaTable(path).scan()",
    "read_table": "deltaic.DeltaTable(path).scan()",
    "read_delta": "deltaic.DeltaTable(path).scan()",
    "scan_delta": "deltaic.DeltaTable(path).scan()",
    "read_parquet": "deltaic.DeltaTable.convert(path), which makes a table of Parquet files",
    "write_delta": "deltaic.write(path, data)",
    "write_table": "deltaic.write(path, data)",
    "merge": "deltaic.DeltaTable(path).merge(source, on)",
    "Table": "deltaic.DeltaTable",
}
TABLE = {
    "is_deltatable": "DeltaTable.exists(path)",
    "to_pandas": "scan().to_pandas()",
    "to_polars": "scan().to_polars()",
    "to_pyarrow_table": "scan().to_arrow()",
    "to_arrow": "scan().to_arrow()",
    "to_pyarrow_dataset": "scan().to_dataset()",
    "count": "scan().count()",
    "file_uris": "files()",
    "get_add_actions": "files()",
    "deletion_vectors": "files(deleted_rows=True)",
    "load_as_version": "at(version) or at(timestamp=...), which give another DeltaTable",
    "load_cdf": "changes()",
    "update_incremental": "refresh()",
    "table_uri": "location",
    "create_write_transaction": "add_files()",
    "create_checkpoint": "checkpoint()",
    "cleanup_metadata": "clean_log()",
    "transaction_versions": "transaction_version(app_id)",
}
TABLE_OF_FRAMES = {
    "columns": "schema.names",
    "dtypes": "schema",
    "shape": "scan().count() and schema.names",
    "head": "scan(limit=5).to_pandas()",
    "select": "scan(columns)",
    "filter": "scan(where=condition)",
    "query": "scan(where=condition)",
    "where": "scan(where=condition)",
    "toDF": "scan()",
    "to_duckdb": "scan().to_duckdb()",
    "to_pylist": "scan().to_pylist()",
    "write": "deltaic.write(table, data)",
    "append": 'deltaic.write(table, data, mode="append")',
    "insert": 'deltaic.write(table, data, mode="append")',
    "upsert": "merge(source, on)",
    "drop": "alter.drop_columns(name)",
    "rename": "alter.rename_column(name, new_name)",
    "z_order": "optimize.z_order(columns)",
    "compact": "optimize.compact()",
    "properties": "metadata.configuration",
    "path": "location",
    "name": "metadata.name",
}
ROWS = {
    "select": "scan(columns)",
    "filter": "scan(where=condition)",
    "where": "scan(where=condition)",
    "head": "scan(limit=5)",
    "limit": "scan(limit=5)",
    "columns": "schema.names",
    "collect": "to_arrow() or to_pylist()",
    "to_df": "to_pandas()",
    "df": "to_pandas()",
    "pl": "to_polars()",
    "toPandas": "to_pandas()",
    "to_table": "to_arrow()",
    "to_pyarrow": "to_arrow()",
    "show": "to_pandas()",
    "fetchall": "to_pylist()",
}
ALTER = {
    "add_feature": "add_features(names)",
    "add_constraint": "add_constraints({name: condition})",
    "set_table_properties": "set_properties({name: value})",
    "set_table_name": "set_name(name)",
    "set_table_description": "set_description(text)",
    "add_column": "add_columns(schema)",
    "drop_column": "drop_columns(name)",
    "rename_columns": "rename_column(name, new_name)",
}


def unknown(
    name: str, owner: str, names: dict[str, str], more: dict[str, str] | None = None
) -> AttributeError:
    """The error for an attribute that `owner` does not have: `names` are deltalake's, `more` those of
    others."""
    hint = f"; deltalake's {name} is {names[name]} here" if name in names else ""
    hint = f"; use {more[name]}" if more is not None and name in more else hint
    return AttributeError(f"{owner} has no attribute {name!r}{hint}", name=name)


class ExplainedNames(type):
    """Metaclass of DeltaTable. For a static name of deltalake, as in `DeltaTable.is_deltatable(path)`, the
    AttributeError names ours."""

    def __getattr__(cls, name: str) -> object:
        raise unknown(name, cls.__name__, TABLE, TABLE_OF_FRAMES)


class Version(int):
    """A version number. deltalake has `version()`: a call says that it is a property here."""

    def __call__(self) -> int:
        raise InvalidTypeError("version is a property", found="table.version()", expected="table.version")


def renamed(**names: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Explains arguments of deltalake: `renamed(predicate="where")` makes `f(predicate=...)` an
    InvalidTypeError that names `where=`."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            for name in kwargs:
                if name in names:
                    raise InvalidTypeError(
                        f"{function.__name__}() has no argument {name!r}",
                        found=f"{name}=",
                        expected=f"{names[name]}=",
                    )
            return function(*args, **kwargs)

        return call

    return decorate
