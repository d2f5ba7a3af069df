"""Compaction after the answer of a write, on a thread of its own: it gives way to this process's commands and loses every conflict."""

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
"""New files of writes since the last compaction began, by table."""


def submit(committed: Snapshot, engine: Engine, adds: pa.Table) -> None:
    """Compacts the partitions of `adds` soon, where the table asks for it: one compaction of a table at a time, and one more for all writes
    that came meanwhile. The process does not end before."""
    table = f"{committed.location}, compaction"
    _ADDED.setdefault(table, deque()).append(adds)
    background.submit(table, lambda: _compact(_ADDED[table], committed, engine))


def _compact(added: deque[pa.Table], committed: Snapshot, engine: Engine) -> None:
    adds = [added.popleft() for _ in range(len(added))]
    if not adds:  # the compaction before this one has taken those of the write that asked for this one
        return
    try:
        gate = giving_way.compaction(committed)
        auto_compact(committed.refresh(), engine, pa.concat_tables(adds, promote_options="permissive"), gate)
    except (giving_way.CompactionYielded, DeltaConcurrentModificationException) as reason:
        log.debug("%s: compaction after version %d gave way: %s", committed.location, committed.version, reason)
    except Exception as error:  # whatever it is: nobody waits for it
        log.warning("%s: compaction after version %d failed: %s", committed.location, committed.version, error)
