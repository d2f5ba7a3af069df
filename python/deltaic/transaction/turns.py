"""The writers of one process to one table: each commits when it is its turn, first come first served, so that none is lost to another's
race, and knows without a look at the log what the ones before it did."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from deltaic import _core
from deltaic.log.segment import commit_path

# Tables whose newest version is remembered; of more the one used longest ago is forgotten.
_MOST_TABLES = 1000
# Seconds between two looks of a waiting writer at whether its caller was interrupted.
_LOOK = 0.1


class Turns:
    """Queue of the writers of this process to one table.

    `newest`: the newest version that a writer of this process committed or met, -1 where that is not known. `appended_since`: all versions
    after this one up to `newest` are blind appends of this process that change nothing but the list of files.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: deque[threading.Lock] = deque()
        self._taken = False
        self.newest = self.appended_since = -1
        self._size: int | None = None

    @contextmanager
    def turn(self, stop: Callable[[], object]) -> Iterator[None]:
        """Waits for the turn. `stop` is called now and then meanwhile, and raises where the caller was interrupted."""
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
        self._next()  # the turn came just now

    def _next(self) -> None:
        with self._lock:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._taken = False

    def known(self, store: _core.Store, base: int) -> int:
        """The newest version after `base` that is known to be there, or `base`. Asked in one's turn. What was known is forgotten where the
        log was put back to an older one meanwhile."""
        if self.newest <= base:
            return base
        found = store.head(commit_path(self.newest))
        if found is None or found[0] != (self._size or found[0]):
            self.newest = self.appended_since = -1
        return max(self.newest, base)

    def committed(self, version: int, *, size: int | None = None, append: bool = False) -> None:
        """A version is there. `size`: bytes of its commit, None for that of another process. `append`: as `appended_since` says."""
        if not append:
            self.appended_since = version
        elif version != self.newest + 1:
            self.appended_since = version - 1
        self.newest, self._size = version, size


class _Tables:
    def __init__(self) -> None:
        self.reset()
        os.register_at_fork(after_in_child=self.reset)

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
    """Returns the queue of a table on a disk or in a bucket. A store of a user's own, which may have a lock and commit inside of a put, and
    a store in memory have no queue."""
    return _TABLES.of(store.location, table_id) if store.is_remote or "://" not in store.location else Turns()
