"""Auto compaction: OPTIMIZE of the partitions to which a command wrote files, right after its commit or in
the background.

In the background it gives way to commands of this process, and if it conflicts with another commit, it is
dropped."""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from deltaic import configuration
from deltaic.commands.bins import CandidateFiles, compaction_bins, measure, small_size
from deltaic.commands.optimize_rewrite import Job, Rewrite, partition_keys
from deltaic.errors import DeltaConcurrentModificationException
from deltaic.log import background
from deltaic.transaction import giving_way
from deltaic.transaction.giving_way import Gate
from deltaic.transaction.transaction import is_collecting
from deltaic.worker import Worker

if TYPE_CHECKING:
    from deltaic.engine.engine import Engine
    from deltaic.log.snapshot import Snapshot

log = logging.getLogger("deltaic.commands")

AUTO_COMPACT_FILES = 50
"""Minimum number of small files of a partition; a partition with fewer is not compacted."""
AUTO_COMPACT_SIZE = 128 * 1024**2
"""Target size of new files in bytes. Files below half of it are small, if the host sets no other bound."""
_MEASURED = ["path", "size", "stats", "deletionVector", "partitionValues"]

_ADDED: dict[str, deque[pa.Table]] = {}
"""New files of commands since the last compaction of each table began."""


def compact_after(committed: Snapshot, engine: Engine, adds: pa.Table) -> Snapshot:
    """Compacts the partitions of `adds` after the write of these files to a table with auto compaction
    (`delta.autoOptimize.autoCompact`, or a setting of the session). Returns the version after it; that of the
    write if the compaction runs in the background or fails."""

    def compact(worker: Worker[Snapshot]) -> Snapshot:
        worker.watch()
        try:
            return auto_compact(committed, engine, adds)
        except Exception as error:  # the write is committed, so no error may make it look failed
            log.warning(
                "%s: compaction after version %d failed: %s", committed.location, committed.version, error
            )
            return committed

    if not adds.num_rows or is_collecting():
        return committed
    if configuration.current().background_optimize and engine.is_embedded:
        submit(committed, engine, adds)
        return committed
    try:
        # on a thread, so that an exception of a signal handler is not taken for a failed compaction
        return Worker(compact).result()
    except BaseException as error:
        error.add_note(
            f"{committed.location}: the write is committed as version {committed.version}; do not do it again"
        )
        raise


def auto_compact(snapshot: Snapshot, engine: Engine, adds: pa.Table, gate: Gate | None = None) -> Snapshot:
    """Compacts the partitions of `adds` that have enough small files: AUTO_COMPACT_FILES, or as many as the
    host sets."""
    keys, limits = partition_keys(snapshot), engine.compaction
    enough = limits.auto_files or AUTO_COMPACT_FILES

    def bins(files: CandidateFiles, target: int) -> list[list[pa.Table]]:
        together = measure(
            pa.concat_tables(
                [files.files.select(_MEASURED), adds.select(_MEASURED)], promote_options="permissive"
            ),
            keys,
        )
        touched = np.unique(together.partition[files.files.num_rows :])
        is_touched = np.isin(together.partition[: files.files.num_rows], touched)
        small = (files.live < small_size(target, limits.auto_small)) & is_touched
        counts = np.bincount(files.partition[small], minlength=int(files.partition.max(initial=0)) + 1)
        chosen = files.only(small & (counts[files.partition] >= enough))
        return compaction_bins(chosen, target, limits.auto_small)

    job = Job(target_size=limits.auto_target or AUTO_COMPACT_SIZE, auto=True, gate=gate)
    return Rewrite(snapshot, engine, job, "OPTIMIZE").run(
        bins, {"zOrderBy": [], "clusterBy": [], "auto": True}
    )[0]


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
        if newest.properties.auto_compact:
            auto_compact(newest, engine, pa.concat_tables(adds, promote_options="permissive"), gate)
    except (giving_way.CompactionYielded, DeltaConcurrentModificationException) as reason:
        log.debug("%s: compaction after version %d gave way: %s", newest.location, newest.version, reason)
    except Exception as error:  # no caller waits for the result, so the error is only logged
        log.warning("%s: compaction after version %d failed: %s", newest.location, newest.version, error)
