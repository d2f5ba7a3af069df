"""Compaction in the background after a write. It gives way to commands of this process, and if it conflicts
with another commit, it is dropped."""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING

import pyarrow as pa

from deltaic.commands.optimize import auto_compact
from deltaic.errors import DeltaConcurrentModificationException
from deltaic.log import background
from deltaic.transaction import giving_way

if TYPE_CHECKING:
    from deltaic.engine.engine import Engine
    from deltaic.log.snapshot import Snapshot

log = logging.getLogger("deltaic.commands")

_ADDED: dict[str, deque[pa.Table]] = {}
"""New files of writes since the last compaction of each table began."""


def submit(committed: Snapshot, engine: Engine, adds: pa.Table) -> None:
    """Submits a compaction of the partitions of `adds`, if the table has auto compaction. One compaction of a
    table runs at a time; the next one handles all writes that came meanwhile. The process does not end before
    it is done."""
    table = f"{committed.location}, compaction"
    _ADDED.setdefault(table, deque()).append(adds)
    background.submit(table, lambda: _compact(_ADDED[table], committed, engine))


def _compact(added: deque[pa.Table], committed: Snapshot, engine: Engine) -> None:
    adds = [added.popleft() for _ in range(len(added))]
    if not adds:  # the compaction before this one has handled the files
        return
    newest = committed
    try:
        gate = giving_way.compaction(committed)
        newest = committed.refresh()  # a later write may have come while this compaction waited for its turn
        auto_compact(newest, engine, pa.concat_tables(adds, promote_options="permissive"), gate)
    except (giving_way.CompactionYielded, DeltaConcurrentModificationException) as reason:
        log.debug("%s: compaction after version %d gave way: %s", newest.location, newest.version, reason)
    except Exception as error:  # no caller waits for the result, so the error is only logged
        log.warning("%s: compaction after version %d failed: %s", newest.location, newest.version, error)
