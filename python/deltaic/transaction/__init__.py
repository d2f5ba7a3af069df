"""Transactions: the loop that makes a version of staged actions, and the rules by which commits conflict.

`deltaic.transaction` is a function to those who use it, and this package to those who read it, as with `deltaic.sql`.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any


class _Callable(ModuleType):
    """Importing any module below `deltaic.transaction` binds that name in `deltaic` to this package, over the function, which is above."""

    def __call__(self, *tables: Any, commit: Any = None) -> Any:
        return import_module("deltaic.several_tables").transaction(*tables, commit=commit)


sys.modules[__name__].__class__ = _Callable
