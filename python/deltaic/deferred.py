"""Stands for modules that take long to import: each one is imported when one of its names is first used, so
that opening and planning need none of them.

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
