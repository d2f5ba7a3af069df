"""Methods of PySpark's classes that `enable` replaces, and the originals that `disable` puts back."""

from __future__ import annotations

import threading
from typing import Any

ORIGINAL = "_deltaic_original"
"""Attribute of a method that stands in the place of Spark's own, which it names."""
_MISSING = object()
_lock = threading.Lock()
_originals: dict[tuple[Any, str], Any] = {}
"""(class, name of an attribute) -> what stood there before; _MISSING where the class had it from a base."""


def replace(owner: Any, name: str, value: Any) -> None:
    """Puts `value` in the place of an attribute of a class."""
    with _lock:
        _originals.setdefault((owner, name), vars(owner).get(name, _MISSING))
        setattr(owner, name, value)


def original(method: Any) -> Any:
    """Spark's own method of a class of sessions."""
    return getattr(method, ORIGINAL, method)


def spark_sql(spark: Any, statement: str, args: Any = None, **parameters: Any) -> Any:
    """Spark's own `sql`, whatever stands in its place on the class of the session."""
    return original(type(spark).sql)(spark, statement, args, **parameters)


def restore() -> None:
    """Puts back everything that was replaced."""
    with _lock:
        for (owner, name), value in _originals.items():
            if value is _MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, value)
        _originals.clear()
