"""Methods of PySpark's classes that `enable` replaces, and the originals that `disable` puts back."""

from __future__ import annotations

import threading
from typing import Any

ORIGINAL = "_deltaic_original"
"""Attribute of a replacement: Spark's own method."""
_MISSING = object()
_lock = threading.Lock()
_originals: dict[tuple[Any, str], Any] = {}
"""Maps (class, attribute name) to the attribute before it was replaced; _MISSING if the class inherited
it."""


def replace(owner: Any, name: str, value: Any) -> None:
    """Sets an attribute of a class, and remembers the original for `restore`."""
    with _lock:
        _originals.setdefault((owner, name), vars(owner).get(name, _MISSING))
        setattr(owner, name, value)


def original(method: Any) -> Any:
    """Returns Spark's own method for a replacement, and any other method as it is."""
    return getattr(method, ORIGINAL, method)


def spark_sql(spark: Any, statement: str, args: Any = None, **parameters: Any) -> Any:
    """Runs Spark's own `sql`, also in a session whose class has a replacement."""
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
