"""Objects on their way to Python workers: a worker without deltaic says in its error what it lacks."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any


def _opened(payload: bytes) -> Any:
    """Runs on a worker, where nothing but Python and PySpark may be: it must not use a name of this module."""
    import pickle
    import socket
    import sys

    try:
        return pickle.loads(payload)
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "deltaic":
            raise
        raise ModuleNotFoundError(
            f"deltaic is not installed where this task runs ({socket.gethostname()}, {sys.executable}): the driver has it, and every "
            "executor needs the same wheel, by `pip install deltaic` there or with the archive of spark.archives",
            name=error.name,
        ) from None


def by_value(function: Callable[..., Any]) -> Callable[..., Any]:
    """A copy that is pickled with its code: pickle by value is what PySpark's pickler does with functions of the main program."""
    copy = types.FunctionType(function.__code__, {"__builtins__": __builtins__}, function.__name__)
    copy.__module__ = "__main__"
    copy.__qualname__ = function.__name__
    return copy


class WorkerObject:
    """Base of objects that are sent to Spark's workers. They are pickled with code that brings deltaic to a worker that lacks it; all
    attributes must be plain to pickle."""

    def __reduce__(self) -> tuple[Any, ...]:
        import pickle

        return by_value(_opened), (pickle.dumps(_PickleStandIn(type(self), self.__dict__)),)


class _PickleStandIn:
    """Stand-in for an object in a pickle, so that pickle does not call the object's own `__reduce__` again."""

    def __init__(self, kind: type, state: dict[str, Any]) -> None:
        self.kind, self.state = kind, state

    def __reduce__(self) -> tuple[Any, ...]:
        return _thawed, (self.kind, self.state)


def _thawed(kind: type, state: dict[str, Any]) -> Any:
    made: Any = object.__new__(kind)
    made.__dict__.update(state)
    return made
