"""`Cancellation`, which stops the running work of one `Rows` from any thread (`Rows.cancel`)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import Protocol, TypeVar
from weakref import WeakSet

T = TypeVar("T")
_current: ContextVar[tuple[Cancellation, ...]] = ContextVar("deltaic cancellations", default=())


class Stoppable(Protocol):
    """Work that is running and can be stopped."""

    def stop(self) -> None:
        """Ends the work soon. Any thread may call it."""


class Cancellation:
    """The running work that was started by functions of `started_by`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: WeakSet[Stoppable] = WeakSet()

    def started_by(self, function: Callable[[], T]) -> Callable[[], T]:
        """The function; work that it starts is stopped by `cancel`, also when it is done later, as by a
        reader that the function gives."""

        def run() -> T:
            token = _current.set((*_current.get(), self))
            try:
                return function()
            finally:
                _current.reset(token)

        return run

    def add(self, work: Stoppable) -> None:
        with self._lock:
            self._running.add(work)

    def cancel(self) -> None:
        """Stops all work that is running now."""
        with self._lock:
            running = list(self._running)
        for work in running:
            work.stop()


def register(work: Stoppable) -> None:
    """Makes work known to those who may stop it: called where work is made, by the thread that starts it."""
    for each in _current.get():
        each.add(work)
