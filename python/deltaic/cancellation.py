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
        """Wraps a function, so that `cancel` stops the work that it starts. The work may go on after the
        function returned: a reader that it returned reads later."""

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
    """Adds work to each Cancellation whose function is running in this thread. Called by the thread that
    starts the work."""
    for each in _current.get():
        each.add(work)
