"""Modules that take long to import, imported when something of them is first used: opening and planning go
without.

if TYPE_CHECKING:
    import pyarrow as pa
else:
    from deltaic.deferred import pyarrow as pa
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


class _Deferred:
    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __getattr__(self, name: str) -> Any:
        value = getattr(import_module(self.__name__), name)
        setattr(self, name, value)
        return value


pyarrow = _Deferred("pyarrow")
