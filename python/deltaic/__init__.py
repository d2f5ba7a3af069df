"""Delta Lake for Python: the public names, loaded when first used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOMES: dict[str, str] = {
    "DeletionVector": "deltaic._core",
}

__all__ = sorted(_HOMES)  # pyright: ignore


def __getattr__(name: str) -> Any:
    if home := _HOMES.get(name):
        value = globals()[name] = getattr(import_module(home), name)
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
