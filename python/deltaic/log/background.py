"""Work on a table's log after the commit's answer: one thread for each table with something to do.

The threads end when there is nothing left, and the interpreter waits for them: what was asked for is done before the process ends. Of two
works that wait for the same table the later one is done: it is of a newer version.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextvars import copy_context

Work = Callable[[], None]


class Queue:
    """Waiting work by table. A forked child starts with an empty queue."""

    def __init__(self) -> None:
        self.reset()
        os.register_at_fork(after_in_child=self.reset)

    def reset(self) -> None:
        self._changed = threading.Condition()
        self._waiting: dict[str, Work] = {}
        self._busy: set[str] = set()

    def submit(self, table: str, work: Work) -> None:
        """Does `work` soon, after what is being done for the same table."""
        settings = copy_context()  # of `with deltaic.configure(...)`, which a new thread does not see
        with self._changed:
            self._waiting[table] = lambda: settings.run(work)
            if table in self._busy:
                return
            self._busy.add(table)
        try:
            threading.Thread(target=self._run, args=(table,), name=f"deltaic log {table}", daemon=False).start()
        except RuntimeError:  # no thread can be had any more: the interpreter is about to end
            self._run(table)

    def wait(self, timeout: float | None = None) -> bool:
        """Until nothing waits; False where that took longer than `timeout` seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._busy, timeout)

    def _run(self, table: str) -> None:
        while True:
            with self._changed:
                work = self._waiting.pop(table, None)
                if work is None:
                    self._busy.discard(table)
                    self._changed.notify_all()
                    return
            try:
                work()
            except BaseException:
                with self._changed:
                    self._waiting.pop(table, None)
                    self._busy.discard(table)
                    self._changed.notify_all()
                raise


_QUEUE = Queue()
submit = _QUEUE.submit
wait = _QUEUE.wait
