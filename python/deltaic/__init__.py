"""Delta Lake for Python: the public names, loaded when first used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOMES: dict[str, str] = {
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

__all__ = sorted(_HOMES)  # pyright: ignore


def __getattr__(name: str) -> Any:
    if home := _HOMES.get(name):
        value = globals()[name] = getattr(import_module(home), name)
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
