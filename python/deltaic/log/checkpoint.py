"""Writing classic checkpoints and `_last_checkpoint` (PROTOCOL.md: Checkpoints, Last Checkpoint File)."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from deltaic.errors import ProtocolError
from deltaic.log import cleanup
from deltaic.log import hint as last_checkpoint
from deltaic.log.cleanup import milliseconds
from deltaic.log.segment import LAST_CHECKPOINT, checkpoint_path, list_log, read_hint

if TYPE_CHECKING:
    from deltaic.log.snapshot import Snapshot
    from deltaic.options import CommitOptions

log = logging.getLogger("deltaic.log")


class _InFlight:
    """Tables that this process is writing a checkpoint of. A forked child starts with none."""

    def __init__(self) -> None:
        self.reset()
        os.register_at_fork(after_in_child=self.reset)

    def reset(self) -> None:
        self._lock = threading.Lock()
        self._tables: set[str] = set()

    @contextmanager
    def claim(self, location: str) -> Iterator[bool]:
        """True for the one that may write; False for all others meanwhile."""
        with self._lock:
            free = location not in self._tables
            self._tables.add(location)
        try:
            yield free
        finally:
            if free:
                with self._lock:
                    self._tables.discard(location)


_IN_FLIGHT = _InFlight()


def write(snapshot: Snapshot, *, now: int) -> dict[str, int]:
    """Writes the checkpoint of a snapshot, with the tombstones that have not expired at `now` (ms), and moves `_last_checkpoint` on.

    -> size (actions), size_in_bytes, num_of_add_files.
    """
    properties = snapshot.properties
    path = checkpoint_path(snapshot.version)
    transactions = properties.set_transaction_retention
    written = snapshot.core.write_checkpoint(
        snapshot.store,
        path,
        min_deletion_timestamp=now - milliseconds(properties.deleted_file_retention),
        min_transaction_timestamp=None if transactions is None else now - milliseconds(transactions),
        stats_as_json=properties.checkpoint_stats_as_json,
        stats_as_struct=properties.checkpoint_stats_as_struct,
        schema=snapshot.table_schema,
    )
    found = snapshot.store.head(path)
    if found is None or found[0] != written["size_in_bytes"]:
        raise ProtocolError(
            "the checkpoint is not what was written",
            where=f"{snapshot.location}/{path}",
            found="nothing" if found is None else f"{found[0]} bytes",
            expected=f"{written['size_in_bytes']} bytes",
        )
    _point_at(snapshot, written)
    return written


def after_commit(snapshot: Snapshot, options: CommitOptions, *, clock: Callable[[], int]) -> None:
    """Writes the checkpoint that is due, and cleans the log behind it. What goes wrong is logged: the commit stands."""
    if snapshot.version == 0 or not options.checkpoint:
        return
    try:
        if snapshot.version % snapshot.properties.checkpoint_interval == 0:
            _write_due(snapshot, options, clock)
    except Exception as error:  # whatever it is: the commit is there, and nobody may take it for failed
        log.warning("%s: the checkpoint of version %d failed: %s", snapshot.location, snapshot.version, error)


def _write_due(snapshot: Snapshot, options: CommitOptions, clock: Callable[[], int]) -> None:
    with _IN_FLIGHT.claim(snapshot.location) as ours:
        if not ours:
            log.info("%s: no checkpoint of version %d, as another is being written", snapshot.location, snapshot.version)
            return
        write(snapshot, now=clock())
        wanted = options.clean_log
        if snapshot.properties.expired_log_cleanup if wanted is None else wanted:
            cleanup.clean(snapshot, now=clock())


def _point_at(snapshot: Snapshot, written: dict[str, int]) -> None:
    """Moves the hint to this checkpoint, unless it names a newer one that is there."""
    named = read_hint(snapshot.store)
    if named is not None and named > snapshot.version:
        listing = list_log(snapshot.store, named)
        if any(checkpoint.version == named for checkpoint in listing.checkpoints):
            return
    hint = {
        "version": snapshot.version,
        "size": written["size"],
        "sizeInBytes": written["size_in_bytes"],
        "numOfAddFiles": written["num_of_add_files"],
    }
    snapshot.store.put(LAST_CHECKPOINT, last_checkpoint.to_json(hint))
