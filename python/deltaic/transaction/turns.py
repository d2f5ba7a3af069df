"""A queue of the writers of one process to one table. They commit one after the other, in the order of their
arrival, so they do not compete for a version, and each knows the newest version without listing the log."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from deltaic import _core
from deltaic.log.segment import commit_path
from deltaic.process_state import ProcessState

# Maximum number of tables with a queue; above it, the least recently used one is dropped.
_MOST_TABLES = 1000
# Seconds between the checks of a waiting writer whether its caller was interrupted
_LOOK = 0.1


class Turns:
    """The queue of the writers of this process to one table.

    `newest`: the newest version that a writer of this process committed or found; -1 if unknown.
    `appended_since`: all versions after this one, up to `newest`, are blind appends of this process, which
        only add files.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: deque[threading.Lock] = deque()
        self._taken = False
        self.newest = self.appended_since = -1
        self._size: int | None = None

    @contextmanager
    def turn(self, stop: Callable[[], object]) -> Iterator[None]:
        """Waits for the writer's turn, which ends with the block. `stop`: called while waiting; raises if the
        caller was interrupted."""
        mine = threading.Lock()
        mine.acquire()
        with self._lock:
            if self._taken:
                self._waiting.append(mine)
            else:
                self._taken = True
                mine.release()
        try:
            while not mine.acquire(timeout=_LOOK):
                stop()
        except BaseException:
            self._leave(mine)
            raise
        try:
            yield
        finally:
            self._next()

    def _leave(self, mine: threading.Lock) -> None:
        with self._lock:
            if mine in self._waiting:
                self._waiting.remove(mine)
                return
        self._next()  # the writer got its turn at this moment, and passes it on

    def _next(self) -> None:
        with self._lock:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._taken = False

    def known(self, store: _core.Store, base: int) -> int:
        """Returns the newest known version after `base`, or `base`. Must be called in the writer's turn. If
        the log was replaced by an older one meanwhile (the commit is missing or has another size), the known
        version is discarded."""
        if self.newest <= base:
            return base
        commit = store.head(commit_path(self.newest))
        if commit is None or commit[0] != (self._size or commit[0]):
            self.newest = self.appended_since = -1
        return max(self.newest, base)

    def committed(self, version: int, *, size: int | None = None, append: bool = False) -> None:
        """Records that a version exists. `size`: bytes of its commit; None if another process made it.
        `append`: True for a blind append of this process (see `appended_since`)."""
        if not append:
            self.appended_since = version
        elif version != self.newest + 1:
            self.appended_since = version - 1
        self.newest, self._size = version, size


class _Tables(ProcessState):
    def reset(self) -> None:
        self._lock = threading.Lock()
        self._tables: OrderedDict[tuple[str, str], Turns] = OrderedDict()

    def of(self, location: str, table_id: str) -> Turns:
        with self._lock:
            turns = self._tables.pop((location, table_id), None) or Turns()
            self._tables[(location, table_id)] = turns
            while len(self._tables) > _MOST_TABLES:
                self._tables.popitem(last=False)
            return turns


_TABLES = _Tables()


def turns_of(store: _core.Store, table_id: str) -> Turns:
    """Returns the queue of a table on a local disk or a remote store. Stores in memory and a user's LogStore
    get a new queue each time: a LogStore may take a lock and commit inside of a put, which would wait for the
    queue."""
    return _TABLES.of(store.location, table_id) if store.is_remote or "://" not in store.location else Turns()
