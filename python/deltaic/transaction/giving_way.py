"""Compaction in the background gives way to the commands of its process: it commits nothing that one of them would have to fail for.

A command that reads or removes files says when it begins and ends. A compaction commits only if none began or ran since it began itself:
it would lose the conflict with a commit of theirs, but theirs would lose to its own. Appends conflict with neither.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from deltaic.log.snapshot import Snapshot

Gate = Callable[[int], AbstractContextManager[None]]
"""Entered around each put of a commit, with its version; raises GaveWay where it must not be put any more."""


class GaveWay(Exception):
    """A command came first. Nobody but the compaction itself sees this."""


class _Commands:
    """Of one table in this process. `compacted`: the newest version that a compaction in the background may have made."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._running = self._begun = 0
        self._is_putting = False
        self.compacted = -1

    @contextmanager
    def command(self) -> Iterator[None]:
        """While a command runs. Waits for a put that is under way."""
        self.begin()
        try:
            yield
        finally:
            with self._changed:
                self._running -= 1

    def begin(self, running: int = 1) -> None:
        with self._changed:
            self._changed.wait_for(lambda: not self._is_putting)
            self._running += running
            self._begun += 1

    def compaction(self) -> Gate:
        """The gate of a compaction that begins now. GaveWay where a command runs: a VACUUM may have listed files already."""
        with self._changed:
            if self._running:
                raise GaveWay("a command runs")
            begun = self._begun

        @contextmanager
        def gate(version: int) -> Iterator[None]:
            with self._changed:
                if self._begun != begun:
                    raise GaveWay("a command began")
                self._is_putting, self.compacted = True, max(self.compacted, version)
            try:
                yield
            finally:
                with self._changed:
                    self._is_putting = False
                    self._changed.notify_all()

        return gate


class _Tables:
    """By location and id. A forked child starts with nothing, as no command runs in it."""

    def __init__(self) -> None:
        self.reset()
        os.register_at_fork(after_in_child=self.reset)

    def reset(self) -> None:
        self._tables: dict[tuple[str, str], _Commands] = {}

    def of(self, snapshot: Snapshot) -> _Commands:
        return self._tables.setdefault((snapshot.location, snapshot.metadata.id), _Commands())


_TABLES = _Tables()


@contextmanager
def command(snapshot: Snapshot) -> Iterator[Snapshot]:
    """While a command runs that reads or removes files; -> the version that it starts from: the newest where a compaction in the background
    has put the rows of `snapshot` into other files meanwhile."""
    commands = _TABLES.of(snapshot)
    with commands.command():
        yield _uncompacted(commands, snapshot)


def begun(snapshot: Snapshot) -> Snapshot:
    """Like `command`, for a command that begins now and does not say when it ends: a change of the definition, with which the appends
    that a compaction follows conflict anyway."""
    commands = _TABLES.of(snapshot)
    commands.begin(running=0)
    return _uncompacted(commands, snapshot)


def compaction(snapshot: Snapshot) -> Gate:
    """The gate of a compaction in the background that begins now. GaveWay where a command runs."""
    return _TABLES.of(snapshot).compaction()


def _uncompacted(commands: _Commands, snapshot: Snapshot) -> Snapshot:
    return snapshot.refresh() if commands.compacted > snapshot.version else snapshot
