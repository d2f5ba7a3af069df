"""Methods of PySpark's classes that `enable` replaces, and the originals that `disable` puts back."""

from __future__ import annotations

import threading
from typing import Any

_MISSING = object()
_lock = threading.Lock()
_originals: dict[tuple[Any, str], Any] = {}
"""(class, name of an attribute) -> what stood there before; _MISSING where the class had it from a base."""


def replace(owner: Any, name: str, value: Any) -> None:
    """Puts `value` in the place of an attribute of a class."""
    with _lock:
        _originals.setdefault((owner, name), vars(owner).get(name, _MISSING))
        setattr(owner, name, value)


def restore() -> None:
    """Puts back everything that was replaced."""
    with _lock:
        for (owner, name), value in _originals.items():
            if value is _MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, value)
        _originals.clear()
