"""Statements of SQL: each is read by a cursor over its words and ends in the command or plan that does it.

`deltaic.sql` is a function to those who use it, and this package to those who read it; whichever of the two Python finds under the name,
it can be called.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

from deltaic.rows.rows import Rows
from deltaic.sql.statement import sql

__all__ = ["sql"]


class _Callable(ModuleType):
    """Importing any module below `deltaic.sql` binds that name in `deltaic` to this package, over the function."""

    def __call__(
        self,
        statement: str,
        *,
        tables: Mapping[str, Any] | None = None,
        parameters: Mapping[str, Any] | Sequence[Any] | None = None,
        storage_options: Mapping[str, str] | None = None,
    ) -> Rows:
        return sql(statement, tables=tables, parameters=parameters, storage_options=storage_options)

    __call__.__doc__ = sql.__doc__


sys.modules[__name__].__class__ = _Callable
