"""Remembers the newest version of each table on a local disk to which this process appended, so that its next
append by path starts from there without reading the log again.

A blind append needs a table's definition, not its files. Any version may be its start, as the commit checks
all later ones.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

from deltaic import _core
from deltaic.errors import DeltaError
from deltaic.log.segment import commit_path

if TYPE_CHECKING:
    from deltaic.log.snapshot import Snapshot

# Maximum number of tables; above it, the least recently used one is forgotten.
_MOST_TABLES = 8
# Maximum number of files of a table that is remembered, as its file actions stay in memory
_MOST_FILES = 10_000


class _RecentVersions:
    """Versions by location. A forked child starts with none."""

    def __init__(self) -> None:
        self.reset()
        os.register_at_fork(after_in_child=self.reset)

    def reset(self) -> None:
        self._lock = threading.Lock()
        self._versions: OrderedDict[str, tuple[Snapshot, tuple[int, int]]] = OrderedDict()

    def remember(self, snapshot: Snapshot) -> None:
        """Remembers a version that was just committed, unless a later one is known."""
        commit = snapshot.store.head(commit_path(snapshot.version))
        known = snapshot.file_count_if_read
        if commit is None or known is None or known > _MOST_FILES:
            return
        with self._lock:
            former = self._versions.pop(snapshot.location, None)
            is_older = former is not None and former[0].version > snapshot.version and former[0].metadata.id == snapshot.metadata.id
            self._versions[snapshot.location] = former if former is not None and is_older else (snapshot, commit)
            while len(self._versions) > _MOST_TABLES:
                self._versions.popitem(last=False)

    def newest(self, store: _core.Store) -> Snapshot | None:
        """Returns the newest version of a table; None if no version is remembered, or if the log was
        replaced: the commit of the remembered version is missing, or has another size or time."""
        with self._lock:
            found = self._versions.get(store.location)
        if found is None:
            return None
        snapshot, commit = found
        if store.head(commit_path(snapshot.version)) != commit:
            with self._lock:
                if self._versions.get(store.location) is found:
                    del self._versions[store.location]
            return None
        snapshot = snapshot.through(store)
        if store.head(commit_path(snapshot.version + 1)) is None:
            return snapshot
        try:
            return snapshot.refresh()
        except (DeltaError, FileNotFoundError):
            return None  # reading the whole log may succeed, or raise a better error


_VERSIONS = _RecentVersions()
remember = _VERSIONS.remember
newest = _VERSIONS.newest
