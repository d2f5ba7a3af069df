"""Replaces methods of PySpark's classes for `enable`, and restores the originals for `disable`."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

from deltaic.spark.raising import raises_as_spark

_ORIGINAL = "_deltaic_original"
"""Attribute of a replacement: the method of Spark that it replaces."""
_MISSING = object()
_lock = threading.Lock()
_originals: dict[tuple[Any, str], Any] = {}
"""(class, attribute name) -> the attribute before it was replaced; _MISSING if the class inherited it."""


def wrap(owner: Any, name: str, replacement_of: Callable[[Any], Any]) -> None:
    """Replaces an attribute of a class by `replacement_of(attribute)`. Does nothing if it is replaced already
    or the class lacks it in this version of PySpark."""
    with _lock:
        attribute = getattr(owner, name, None)
        if attribute is None or hasattr(attribute, _ORIGINAL) or (owner, name) in _originals:
            return
        replacement = replacement_of(attribute)
        if callable(replacement):
            setattr(replacement, _ORIGINAL, attribute)
        _originals[owner, name] = vars(owner).get(name, _MISSING)
        setattr(owner, name, replacement)


def replace(
    owner: Any,
    name: str,
    call: Callable[..., Any],
    raises: Callable[[Callable[..., Any]], Callable[..., Any]] | None = None,
) -> None:
    """Replaces a method of a class by `call`, which gets Spark's own method, `self` and the arguments of the
    method. `raises`: a decorator that `raises_as_spark` returns; None: that of a call without arguments."""

    def replacement_of(method: Any) -> Any:
        @functools.wraps(method)
        def replacement(self: Any, *args: Any, **named: Any) -> Any:
            return call(method, self, *args, **named)

        return (raises or raises_as_spark())(replacement)

    wrap(owner, name, replacement_of)


def original(method: Any) -> Any:
    """Returns the method that a replacement replaces. Any other method is returned unchanged."""
    return getattr(method, _ORIGINAL, method)


def spark_sql(spark: Any, statement: str, args: Any = None, **parameters: Any) -> Any:
    """Runs Spark's own `sql`, even if `enable` has replaced the method."""
    return original(type(spark).sql)(spark, statement, args, **parameters)


def restore() -> None:
    """Restores all attributes that `wrap` has replaced."""
    with _lock:
        for (owner, name), value in _originals.items():
            if value is _MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, value)
        _originals.clear()
