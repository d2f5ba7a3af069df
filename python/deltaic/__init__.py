"""Delta Lake for Python: reads and changes Delta tables in this process or on Spark.

`write` creates a table from data, or adds rows to one. `DeltaTable` opens a table: its `scan` reads rows, and
its `delete`, `update` and `merge` change rows. `sql` runs a statement of Spark SQL, `transaction` changes
several tables in one commit, and `configure` sets memory, time zone and stores. `deltaic.errors` has the
exceptions, `deltaic.spark` the interface on Spark. The public names are loaded when they are first used.

>>> table = deltaic.write("cities", {"name": ["Oslo", "Rome"], "degrees": [4.5, 19.0]})
>>> table.scan(["name"], where="degrees > 10").to_pylist()
[{'name': 'Rome'}]
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the same names for type checkers and editors
    from deltaic import errors as errors
    from deltaic._core import DeletionVector as DeletionVector
    from deltaic._core import __version__ as __version__
    from deltaic.commands.add_files import AddFile as AddFile
    from deltaic.commands.describe import Detail as Detail
    from deltaic.commands.merge import Merge as Merge
    from deltaic.configuration import configure as configure
    from deltaic.log.catalog import CommitCoordinator as CommitCoordinator
    from deltaic.log.catalog import RatifiedCommits as RatifiedCommits
    from deltaic.log.log_stores.dynamodb import DynamoDBLogStores as DynamoDBLogStores
    from deltaic.log.log_stores.locked import FileLocks as FileLocks
    from deltaic.log.log_stores.locked import LockedLogStores as LockedLogStores
    from deltaic.options import ColumnOptions as ColumnOptions
    from deltaic.options import CommitOptions as CommitOptions
    from deltaic.options import ParquetOptions as ParquetOptions
    from deltaic.pictures.picture import Picture as Picture
    from deltaic.plan.literal import col as col
    from deltaic.plan.literal import lit as lit
    from deltaic.protocol.schema import Array as Array
    from deltaic.protocol.schema import Field as Field
    from deltaic.protocol.schema import Map as Map
    from deltaic.protocol.schema import Schema as Schema
    from deltaic.protocol.schema import Struct as Struct
    from deltaic.rows.query_report import QueryReport as QueryReport
    from deltaic.rows.rows import Rows as Rows
    from deltaic.rows.rows import ScanReport as ScanReport
    from deltaic.rows.tail import TailBatch as TailBatch
    from deltaic.several_tables import TableTransaction as TableTransaction
    from deltaic.several_tables import transaction as transaction
    from deltaic.sql.statement import sql as sql
    from deltaic.table import DeltaTable as DeltaTable
    from deltaic.table import write as write

_HOMES: dict[str, str] = {
    "__version__": "deltaic._core",
    "AddFile": "deltaic.commands.add_files",
    "Array": "deltaic.protocol.schema",
    "ColumnOptions": "deltaic.options",
    "CommitCoordinator": "deltaic.log.catalog",
    "CommitOptions": "deltaic.options",
    "DeletionVector": "deltaic._core",
    "DeltaTable": "deltaic.table",
    "Detail": "deltaic.commands.describe",
    "DynamoDBLogStores": "deltaic.log.log_stores.dynamodb",
    "Field": "deltaic.protocol.schema",
    "FileLocks": "deltaic.log.log_stores.locked",
    "LockedLogStores": "deltaic.log.log_stores.locked",
    "Map": "deltaic.protocol.schema",
    "Merge": "deltaic.commands.merge",
    "ParquetOptions": "deltaic.options",
    "Picture": "deltaic.pictures.picture",
    "RatifiedCommits": "deltaic.log.catalog",
    "Rows": "deltaic.rows.rows",
    "QueryReport": "deltaic.rows.query_report",
    "ScanReport": "deltaic.rows.rows",
    "TableTransaction": "deltaic.several_tables",
    "TailBatch": "deltaic.rows.tail",
    "Schema": "deltaic.protocol.schema",
    "Struct": "deltaic.protocol.schema",
    "col": "deltaic.plan.literal",
    "configure": "deltaic.configuration",
    "lit": "deltaic.plan.literal",
    "sql": "deltaic.sql.statement",
    "transaction": "deltaic.several_tables",
    "write": "deltaic.table",
}

__all__ = sorted({*_HOMES, "errors"} - {"__version__"})  # pyright: ignore


def __dir__() -> list[str]:
    """The public names alone, for completion in shells and notebooks."""
    return [*__all__, "__version__"]


def __getattr__(name: str) -> Any:
    if name == "errors":
        return import_module("deltaic.errors")  # importing binds the name
    if home := _HOMES.get(name):
        value = globals()[name] = getattr(import_module(home), name)
        return value
    from deltaic.deltalake_names import MODULE, MODULE_OF_FRAMES, unknown

    raise unknown(name, f"module {__name__!r}", MODULE, MODULE_OF_FRAMES)
