"""Delta tables on a Spark cluster, by plain PySpark and without a jar.

`enable` gives a session the formats "delta" and "deltaic"; `read` and `write` need no enabling.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the same names for type checkers and editors
    from deltaic.spark.frames import read as read
    from deltaic.spark.frames import write as write
    from deltaic.spark.session import enable as enable
    from deltaic.spark.session import session as session

_HOMES = {
    "enable": "deltaic.spark.session",
    "read": "deltaic.spark.frames",
    "session": "deltaic.spark.session",
    "write": "deltaic.spark.frames",
}

__all__ = sorted(_HOMES)  # pyright: ignore


def __getattr__(name: str) -> Any:
    if home := _HOMES.get(name):
        value = globals()[name] = getattr(import_module(home), name)
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
