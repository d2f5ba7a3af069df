"""Transactions: the loop that commits staged actions as a version, and the rules by which commits conflict.

For users, `deltaic.transaction` is a function; the package of this name can be called for that, as
`deltaic.sql`. The rules of conflicts are in `conflicts.py`, the loop is in `attempts.py`.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any


class _Callable(ModuleType):
    """The type of this package, which makes it callable. The package hides the function
    `deltaic.transaction`, because importing a module of the package binds the name `transaction` in `deltaic`
    to the package."""

    def __call__(self, *tables: Any, commit: Any = None) -> Any:
        return import_module("deltaic.several_tables").transaction(*tables, commit=commit)


sys.modules[__name__].__class__ = _Callable
