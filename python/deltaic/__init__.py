"""Delta Lake for Python: the public names, loaded when first used."""

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
    from deltaic.options import ColumnOptions as ColumnOptions
    from deltaic.options import CommitOptions as CommitOptions
    from deltaic.options import ParquetOptions as ParquetOptions
    from deltaic.protocol.schema import Array as Array
    from deltaic.protocol.schema import Field as Field
    from deltaic.protocol.schema import Map as Map
    from deltaic.protocol.schema import Schema as Schema
    from deltaic.protocol.schema import Struct as Struct
    from deltaic.relation.literal import col as col
    from deltaic.relation.literal import lit as lit
    from deltaic.scan.rows import Rows as Rows
    from deltaic.scan.rows import ScanReport as ScanReport
    from deltaic.sql.statement import sql as sql
    from deltaic.table import DeltaTable as DeltaTable
    from deltaic.table import write as write

_HOMES: dict[str, str] = {
    "__version__": "deltaic._core",
    "AddFile": "deltaic.commands.add_files",
    "Array": "deltaic.protocol.schema",
    "ColumnOptions": "deltaic.options",
    "CommitOptions": "deltaic.options",
    "DeletionVector": "deltaic._core",
    "DeltaTable": "deltaic.table",
    "Detail": "deltaic.commands.describe",
    "Field": "deltaic.protocol.schema",
    "Map": "deltaic.protocol.schema",
    "Merge": "deltaic.commands.merge",
    "ParquetOptions": "deltaic.options",
    "Rows": "deltaic.scan.rows",
    "ScanReport": "deltaic.scan.rows",
    "Schema": "deltaic.protocol.schema",
    "Struct": "deltaic.protocol.schema",
    "col": "deltaic.relation.literal",
    "configure": "deltaic.configuration",
    "lit": "deltaic.relation.literal",
    "sql": "deltaic.sql.statement",
    "write": "deltaic.table",
}

__all__ = sorted({*_HOMES, "errors"} - {"__version__"})  # pyright: ignore


def __getattr__(name: str) -> Any:
    if name == "errors":
        return import_module("deltaic.errors")  # importing binds the name
    if home := _HOMES.get(name):
        value = globals()[name] = getattr(import_module(home), name)
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
