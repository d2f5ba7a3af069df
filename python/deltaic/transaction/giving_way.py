"""Makes compaction in the background give way to commands of the same process, so that no command fails
because of it.

A command that reads or removes files registers when it begins and ends. A compaction commits only if no
command was running when it began, or began since: otherwise its commit could be a conflict for the command.
Appends conflict with neither.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from deltaic.process_state import call_after_fork

if TYPE_CHECKING:
    from deltaic.log.snapshot import Snapshot

Gate = Callable[[int, Callable[[], bool]], bool]
"""(version, put) -> the result of `put`, which commits the version. Raises CompactionYielded if the
compaction must not commit."""


# Maximum number of tables whose commands are counted. Above it, the least recently used table without a
# running command is dropped; a compaction and a command of that table may then conflict.
_MOST_TABLES = 1000
# Seconds that a compaction waits for running commands: a MERGE ends right after submitting its compaction.
_WAIT = 0.5


class CompactionYielded(Exception):
    """A command of this process came first, so the compaction must not commit. Only the compaction catches
    this."""


class _Commands:
    """Commands of this process on one table. `compacted`: the newest version that a compaction in the
    background committed; -1 if there is none."""

    def __init__(self, compacted: int = -1) -> None:
        self._changed = threading.Condition()
        self._running = self._begun = 0
        self._is_putting = False
        self.compacted = compacted

    @contextmanager
    def command(self) -> Iterator[None]:
        """Registers a command for the duration of the block. Waits while a compaction puts its commit."""
        with self._changed:
            self._changed.wait_for(lambda: not self._is_putting)
            self._running += 1
            self._begun += 1
        try:
            yield
        finally:
            with self._changed:
                self._running -= 1
                self._changed.notify_all()

    @property
    def is_idle(self) -> bool:
        """True if no command runs and no compaction puts its commit."""
        return not self._running and not self._is_putting

    def compaction(self) -> Gate:
        """Returns the gate of a compaction that begins when no command runs. If one still runs after _WAIT,
        CompactionYielded is raised: a VACUUM may have listed files before the compaction writes new ones."""
        with self._changed:
            if not self._changed.wait_for(lambda: not self._running, _WAIT):
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
    """Commands by location and table id. A forked child resets the running commands, but keeps `compacted`,
    as its snapshots may be older than a compaction of the parent."""

    def __init__(self) -> None:
        self._tables: OrderedDict[tuple[str, str], _Commands] = OrderedDict()
        self._lock = threading.Lock()
        call_after_fork(self._reset)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._tables = OrderedDict(
            (table, _Commands(commands.compacted)) for table, commands in self._tables.items()
        )

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
    """Registers a command that reads or removes files, for the duration of the block. Yields the version from
    which it starts: the result of `compacted`."""
    with _TABLES.of(snapshot).command():
        yield compacted(snapshot)


def compaction(snapshot: Snapshot) -> Gate:
    """Returns the gate of a compaction in the background that begins now. If a command runs,
    CompactionYielded is raised."""
    return _TABLES.of(snapshot).compaction()


def compacted(snapshot: Snapshot) -> Snapshot:
    """Returns the version of the last compaction in the background if it is newer than `snapshot`, else
    `snapshot`. A version after that compaction is not returned: the conflict rules decide about later commits
    of others."""
    version = _TABLES.of(snapshot).compacted
    if version <= snapshot.version:
        return snapshot
    newest = snapshot.refresh()
    return newest if newest.version <= version else newest.at(version)
