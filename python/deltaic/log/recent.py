"""Remembers the newest version of each table on a local disk that this process opened, or to which it
appended, so that it does not read the log of an unchanged table again.

A table that is opened by its path is listed. If the log is the same folder, with the same files of the same
sizes and times as before, the snapshot of that time is used again, with all that queries have derived from
it.

A blind append needs a table's definition, not its files. Any version may be its start, as the commit checks
all later ones.
"""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass

from deltaic import _core, configuration
from deltaic.errors import DeltaError
from deltaic.log.segment import commit_path
from deltaic.log.snapshot import Snapshot
from deltaic.log.store import is_own_and_local
from deltaic.process_state import ProcessState

# Maximum number of tables; above it, the least recently used one is forgotten.
_MOST_TABLES = 8
# Maximum number of files of a table that is remembered, as its file actions stay in memory
_MOST_FILES = 10_000
# Maximum bytes of the log of an opened table that is remembered before its file actions are read
_MOST_BYTES = 1024**2
# Minimum age (ms) of the newest file of a log at which the version is remembered. A younger file could be
# replaced without a new modification time, because some file systems store times in steps of two seconds.
_SETTLED = 5_000


class _RecentVersions(ProcessState):
    """Versions by location. A forked child starts with none."""

    def reset(self) -> None:
        self._lock = threading.Lock()
        self._versions: OrderedDict[str, tuple[Snapshot, tuple[int, int]]] = OrderedDict()
        self._appends: OrderedDict[str, tuple[str, int, int]] = OrderedDict()

    def appended(self, location: str, table_id: str, version: int) -> None:
        """Registers a version that a blind append of this process has just made. It adds only files, so that
        the next append need not read it to know the definition of the table."""
        with self._lock:
            former, first, last = self._appends.pop(location, (table_id, version, version))
            self._appends[location] = (
                table_id,
                first if (former, last + 1) == (table_id, version) else version,
                version,
            )
            while len(self._appends) > _MOST_TABLES:
                self._appends.popitem(last=False)

    def remember(self, snapshot: Snapshot) -> None:
        """Remembers a version that was just committed, unless a later one is known or the store fails."""
        try:
            commit = snapshot.store.head(commit_path(snapshot.version))
        except (DeltaError, OSError):
            return
        known = snapshot.file_count_if_read
        if commit is None or known is None or known > _MOST_FILES:
            return
        with self._lock:
            former = self._versions.pop(snapshot.location, None)
            is_older = (
                former is not None
                and former[0].version > snapshot.version
                and former[0].metadata.id == snapshot.metadata.id
            )
            self._versions[snapshot.location] = (
                former if former is not None and is_older else (snapshot, commit)
            )
            while len(self._versions) > _MOST_TABLES:
                self._versions.popitem(last=False)

    def newest(self, store: _core.Store) -> Snapshot | None:
        """Returns the newest version of a table, or an earlier one if only blind appends of this process
        follow it. None if no version is remembered, or if the log was replaced: the commit of the remembered
        version is missing, or has another size or time."""
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
        before, known = None, self._last_append(snapshot)
        while known != before:
            if store.head(commit_path(known + 1)) is None:
                return snapshot
            before, known = known, self._last_append(snapshot)  # another thread may have appended meanwhile
        try:
            return snapshot.refresh()
        except (DeltaError, FileNotFoundError):
            return None  # reading the whole log may succeed, or raise a better error

    def _last_append(self, snapshot: Snapshot) -> int:
        """Returns the last version of the appends of this process that follow a version without a gap."""
        with self._lock:
            table_id, first, last = self._appends.get(snapshot.location, ("", 0, -1))
        is_own = table_id == snapshot.metadata.id and first <= snapshot.version + 1 <= last
        return last if is_own else snapshot.version


def _identity(location: str, name: str) -> tuple[int, int, int] | None:
    """Returns what changes if another file or folder takes the place of this one, even if sizes and times are
    the same. None if it is missing."""
    try:
        found = os.stat(os.path.join(location, name))
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_ctime_ns


@dataclass(frozen=True)
class _OpenedVersion:
    """A snapshot, with the configuration that it was opened with, and the identities of its log's folder and
    newest commit."""

    snapshot: Snapshot
    configuration: configuration.Configuration
    folder: tuple[int, int, int]
    commit: tuple[int, int, int]


class _OpenedTables(ProcessState):
    """Snapshots by location. A forked child starts with none."""

    def reset(self) -> None:
        self._lock = threading.Lock()
        self._snapshots: OrderedDict[str, _OpenedVersion] = OrderedDict()

    def load(self, store: _core.Store) -> Snapshot:
        """Loads the newest version of a table, which may be one that was loaded before."""
        if not is_own_and_local(store):
            return Snapshot.load(store)
        location, current, now = store.location, configuration.current(), time.time() * 1000
        folder = _identity(location, "_delta_log")
        with self._lock:
            found = self._snapshots.pop(location, None)
        known = None
        if found is not None and (found.configuration, found.folder) == (current, folder):
            known = (
                found.snapshot
                if found.commit == _identity(location, commit_path(found.snapshot.version))
                else None
            )
        snapshot = Snapshot.load(store, known=known)
        commit = _identity(location, commit_path(snapshot.version))
        count, times = snapshot.file_count_if_read, snapshot.log_times
        is_small = snapshot.log_size <= _MOST_BYTES if count is None else count <= _MOST_FILES
        is_small_and_old = is_small and bool(times) and max(times) < now - _SETTLED
        # The identity of the folder is compared with that before the listing: the table may have been deleted
        # and created again in between.
        if (
            is_small_and_old
            and folder is not None
            and commit is not None
            and folder == _identity(location, "_delta_log")
        ):
            with self._lock:
                self._snapshots[location] = _OpenedVersion(snapshot, current, folder, commit)
                while len(self._snapshots) > _MOST_TABLES:
                    self._snapshots.popitem(last=False)
        return snapshot


_OPENED = _OpenedTables()
load = _OPENED.load
_VERSIONS = _RecentVersions()
remember = _VERSIONS.remember
appended = _VERSIONS.appended
newest = _VERSIONS.newest
