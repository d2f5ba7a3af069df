"""Names of the deltalake package, each with deltaic's name for it: errors about an unknown name say which one to use.

Nothing here makes a deltalake name work. `docs/` and API signatures have deltaic's names alone.
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


def unknown(name: str, owner: str, names: dict[str, str]) -> AttributeError:
    """The error for an attribute that `owner` does not have."""
    hint = f"; deltalake's {name} is {names[name]} here" if name in names else ""
    return AttributeError(f"{owner} has no attribute {name!r}{hint}", name=name)


class Explained(type):
    """Metaclass of DeltaTable: an unknown static name is explained, as in `DeltaTable.is_deltatable(path)`."""

    def __getattr__(cls, name: str) -> object:
        raise unknown(name, cls.__name__, TABLE)


class Version(int):
    """A version number. deltalake has `version()`: a call says that it is a property here."""

    def __call__(self) -> int:
        raise InvalidTypeError("version is a property", found="table.version()", expected="table.version")


def renamed(**names: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Explains arguments of deltalake: `renamed(predicate="where")` makes `f(predicate=...)` an InvalidTypeError that names `where=`."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            for name in kwargs:
                if name in names:
                    raise InvalidTypeError(f"{function.__name__}() has no argument {name!r}", found=f"{name}=", expected=f"{names[name]}=")
            return function(*args, **kwargs)

        return call

    return decorate
