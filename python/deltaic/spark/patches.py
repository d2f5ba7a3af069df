"""Replaces methods of PySpark's classes for `enable`, and restores the originals for `disable`."""

from __future__ import annotations

import threading
from typing import Any

ORIGINAL = "_deltaic_original"
"""Attribute of a replacement: the method of Spark that it replaces."""
_MISSING = object()
_lock = threading.Lock()
_originals: dict[tuple[Any, str], Any] = {}
"""(class, attribute name) -> the attribute before it was replaced; _MISSING if the class inherited it."""


def replace(owner: Any, name: str, value: Any) -> None:
    """Sets an attribute of a class, and stores the original attribute for `restore`."""
    with _lock:
        _originals.setdefault((owner, name), vars(owner).get(name, _MISSING))
        setattr(owner, name, value)


def original(method: Any) -> Any:
    """Returns the method that a replacement replaces. Any other method is returned unchanged."""
    return getattr(method, ORIGINAL, method)


def spark_sql(spark: Any, statement: str, args: Any = None, **parameters: Any) -> Any:
    """Runs Spark's own `sql`, even if `enable` has replaced the method."""
    return original(type(spark).sql)(spark, statement, args, **parameters)


def restore() -> None:
    """Restores all attributes that `replace` has set."""
    with _lock:
        for (owner, name), value in _originals.items():
            if value is _MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, value)
        _originals.clear()
