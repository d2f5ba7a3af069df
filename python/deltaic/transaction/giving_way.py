"""Compaction in the background gives way to the commands of its process: it commits nothing that one of them would have to fail for.

A command that reads or removes files says when it begins and ends. A compaction commits only if none began or ran since it began itself:
it would lose the conflict with a commit of theirs, but theirs would lose to its own. Appends conflict with neither.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from deltaic.log.snapshot import Snapshot

Gate = Callable[[int, Callable[[], bool]], bool]
"""(version, put) -> whether `put` says that the version is the compaction's. Raises CompactionYielded where it must not be put any more."""


# Tables whose commands are counted; of more the one used longest ago is forgotten, unless a command runs on it. A compaction that was at
# work there loses to commands by conflict then, or they to it.
_MOST_TABLES = 1000


class CompactionYielded(Exception):
    """A command of this process came first, so the compaction must not commit. Only the compaction catches this."""


class _Commands:
    """Commands of this process on one table. `compacted`: newest version that a compaction in the background committed, -1 for none."""

    def __init__(self, compacted: int = -1) -> None:
        self._changed = threading.Condition()
        self._running = self._begun = 0
        self._is_putting = False
        self.compacted = compacted

    @contextmanager
    def command(self) -> Iterator[None]:
        """While a command runs. Waits for a put that is under way."""
        with self._changed:
            self._changed.wait_for(lambda: not self._is_putting)
            self._running += 1
            self._begun += 1
        try:
            yield
        finally:
            with self._changed:
                self._running -= 1

    @property
    def is_idle(self) -> bool:
        """No command runs, and no compaction puts a version."""
        return not self._running and not self._is_putting

    def compaction(self) -> Gate:
        """The gate of a compaction that begins now. CompactionYielded where a command runs: a VACUUM may have listed files already."""
        with self._changed:
            if self._running:
                raise CompactionYielded("a command runs")
            begun = self._begun

        def gate(version: int, put: Callable[[], bool]) -> bool:
            with self._changed:
                if self._begun != begun:
                    raise CompactionYielded("a command began")
                self._is_putting = True
            is_ours = False
            try:
                is_ours = put()
            finally:
                with self._changed:
                    self._is_putting = False
                    if is_ours:
                        self.compacted = max(self.compacted, version)
                    self._changed.notify_all()
            return is_ours

        return gate


class _Tables:
    """By location and id. In a forked child no command runs, but its snapshots may be older than a compaction of the parent."""

    def __init__(self) -> None:
        self._tables: OrderedDict[tuple[str, str], _Commands] = OrderedDict()
        self._lock = threading.Lock()
        os.register_at_fork(after_in_child=self._reset)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._tables = OrderedDict((table, _Commands(commands.compacted)) for table, commands in self._tables.items())

    def of(self, snapshot: Snapshot) -> _Commands:
        table = snapshot.location, snapshot.metadata.id
        with self._lock:
            commands = self._tables.setdefault(table, _Commands())
            self._tables.move_to_end(table)
            if len(self._tables) > _MOST_TABLES:
                idle = next((each for each, of in self._tables.items() if of.is_idle and each != table), None)
                if idle is not None:
                    del self._tables[idle]
            return commands


_TABLES = _Tables()


@contextmanager
def command(snapshot: Snapshot) -> Iterator[Snapshot]:
    """While a command runs that reads or removes files; -> the version that it starts from, as of `compacted`."""
    with _TABLES.of(snapshot).command():
        yield compacted(snapshot)


def compaction(snapshot: Snapshot) -> Gate:
    """The gate of a compaction in the background that begins now. CompactionYielded where a command runs."""
    return _TABLES.of(snapshot).compaction()


def compacted(snapshot: Snapshot) -> Snapshot:
    """`snapshot`, or the version of the last compaction in the background where that put its rows into other files. Not a newer one:
    what others committed after the compaction is judged by the conflict rules, as without it."""
    version = _TABLES.of(snapshot).compacted
    if version <= snapshot.version:
        return snapshot
    newest = snapshot.refresh()
    return newest if newest.version <= version else newest.at(version)
