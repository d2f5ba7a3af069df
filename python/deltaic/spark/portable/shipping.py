"""Pickles objects for Python workers so that a worker without deltaic raises an error that says how to
install it."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any


def _opened(payload: bytes) -> Any:
    """Unpickles an object on a worker, which may have only Python and PySpark. Therefore this function must
    not use other names of this module."""
    import pickle
    import socket
    import sys

    try:
        return pickle.loads(payload)
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "deltaic":
            raise
        raise ModuleNotFoundError(
            f"deltaic is not installed where this task runs ({socket.gethostname()}, {sys.executable}): the"
            " driver has it, and every executor needs the same wheel, by `pip install deltaic` there or with"
            " the archive of spark.archives",
            name=error.name,
        ) from None


def by_value(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a copy of a function of which PySpark's pickler sends the code instead of the name, as for
    functions of the main program."""
    copy = types.FunctionType(function.__code__, {"__builtins__": __builtins__}, function.__name__)
    copy.__module__ = "__main__"
    copy.__qualname__ = function.__name__
    return copy


class WorkerObject:
    """Base class of objects that are sent to Spark's workers. Their pickles include the code of `_opened`,
    which raises a clear error on a worker without deltaic. All attributes must be picklable."""

    def __reduce__(self) -> tuple[Any, ...]:
        import pickle

        return by_value(_opened), (pickle.dumps(_PickleStandIn(type(self), self.__dict__)),)


class _PickleStandIn:
    """Stand-in for an object in a pickle, so that pickle does not call the object's own `__reduce__`
    again."""

    def __init__(self, kind: type, state: dict[str, Any]) -> None:
        self.kind, self.state = kind, state

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.kind, self.state)


def _restored(kind: type, state: dict[str, Any]) -> Any:
    """Returns an object of the class with these attributes."""
    restored: Any = object.__new__(kind)
    restored.__dict__.update(state)
    return restored
