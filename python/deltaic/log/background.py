"""Background work on a table's log after a commit returned, such as a checkpoint: one thread for each table
and kind of work.

A thread pauses after each work, and ends if no more work waits for it then. The interpreter waits for the
threads, so submitted work is done before the process ends. If two works of one kind wait for one table, only
the later one is done, as it is for a newer version.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import copy_context

from deltaic import _core
from deltaic.process_state import ProcessState

Work = Callable[[], None]
# Seconds between two works of a table. Writers that commit faster need one checksum and no further thread for
# all their versions in this time.
_PAUSE = 0.02


class Queue(ProcessState):
    """Pending work by table and kind of work. A forked child starts with an empty queue."""

    def reset(self) -> None:
        self._changed = threading.Condition()
        self._waiting: dict[str, Work] = {}
        self._busy: set[str] = set()
        self._waiters = 0

    def submit(self, table: str, work: Work) -> None:
        """Runs `work` in the background, after the running work of the same table, and in place of its work
        that has not begun. `table`: a location and a kind of work."""
        settings = copy_context()  # of `with deltaic.configure(...)`, which a new thread does not see
        with self._changed:
            self._waiting[table] = lambda: settings.run(work)
            if table in self._busy:
                return
            self._busy.add(table)
        try:
            threading.Thread(
                target=self._run, args=(table,), name=f"deltaic log {table}", daemon=False
            ).start()
        except RuntimeError:  # the interpreter is shutting down and starts no threads
            self._run(table)

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until no work is pending or running; False if that takes longer than `timeout` seconds."""
        with self._changed:
            self._waiters += 1
            self._changed.notify_all()
            try:
                return self._changed.wait_for(lambda: not self._busy, timeout)
            finally:
                self._waiters -= 1

    def _run(self, table: str) -> None:
        if threading.current_thread() is not threading.main_thread():
            # nothing interrupts the work, so `_core` needs no thread to wait for signals
            _core.Interrupt().watch()
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
            with self._changed:
                self._changed.wait_for(lambda: self._waiters, _PAUSE)


_QUEUE = Queue()
submit = _QUEUE.submit
wait = _QUEUE.wait
