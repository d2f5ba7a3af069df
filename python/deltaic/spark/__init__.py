"""Delta tables on a Spark cluster, by plain PySpark and without a jar.

`enable` adds the formats "delta" and "deltaic" and SQL on delta.`path` to a session; `disable` undoes it.
`read`, `write`, `sql`, `tables` and `functions` also work in a session that is not enabled.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the same names for type checkers and editors
    from deltaic.spark import exceptions as exceptions
    from deltaic.spark import functions as functions
    from deltaic.spark import tables as tables
    from deltaic.spark.frames import read as read
    from deltaic.spark.frames import write as write
    from deltaic.spark.sessions import disable as disable
    from deltaic.spark.sessions import enable as enable
    from deltaic.spark.sessions import session as session
    from deltaic.spark.statements import sql as sql

_HOMES = {
    "disable": "deltaic.spark.sessions",
    "enable": "deltaic.spark.sessions",
    "read": "deltaic.spark.frames",
    "session": "deltaic.spark.sessions",
    "sql": "deltaic.spark.statements",
    "write": "deltaic.spark.frames",
}

_MODULES = ("exceptions", "functions", "tables")

__all__ = sorted((*_HOMES, *_MODULES))  # pyright: ignore


def __getattr__(name: str) -> Any:
    if home := _HOMES.get(name):
        value = globals()[name] = getattr(import_module(home), name)
        return value
    if name in _MODULES:
        return import_module(f"deltaic.spark.{name}")  # importing binds the name
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
