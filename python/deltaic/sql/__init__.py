"""Statements of SQL: each one is parsed by a cursor over its tokens, and calls the command or makes the plan
that runs it.

`statement.py` lists the statements; each module parses a family of them. For users, `deltaic.sql` is a
function; the package of this name can be called for that.
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
    """The type of this package, which makes it callable. The package hides the function `deltaic.sql`,
    because importing a module of the package binds the name `sql` in `deltaic` to the package."""

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
