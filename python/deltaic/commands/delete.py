"""DELETE: finds the rows by a scan of as few files and columns as possible, marks them as deleted (or
rewrites their files), and commits.

Source: PROTOCOL.md, "Deletion Vectors"; metrics as in delta-spark's DeltaOperations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from deltaic import _core
from deltaic.commands.change_files import RecordedChanges
from deltaic.commands.data_files import snapshot_target, writes_vectors
from deltaic.commands.marking import (
    FileChanges,
    commit_changes,
    staging,
    take_out,
    total_size,
    vector_metrics,
)
from deltaic.commands.phase_times import PhaseTimes
from deltaic.options import CommitOptions, ParquetOptions
from deltaic.plan.expression import columns_of
from deltaic.plan.nodes import Plan, Project, Scan
from deltaic.planning.opening import ROW_ID_FIELDS
from deltaic.planning.planned import ScanPlan, live_rows, plan
from deltaic.protocol import change_feed
from deltaic.protocol.features import Change
from deltaic.transaction.transaction import Transaction, already_committed

if TYPE_CHECKING:
    from deltaic.engine.engine import Engine
    from deltaic.log.snapshot import Snapshot

Metrics: TypeAlias = "Callable[[], dict[str, int]]"
"""Function that returns the metrics of a command. It is called again after the commit, as another writer may
have deleted some of the rows first."""

NOTHING = {
    "num_deleted_rows": 0,
    "num_copied_rows": 0,
    "num_added_files": 0,
    "num_removed_files": 0,
    "num_added_bytes": 0,
    "num_removed_bytes": 0,
    "num_deletion_vectors_added": 0,
    "num_deletion_vectors_removed": 0,
    "num_deletion_vectors_updated": 0,
    "num_added_change_files": 0,
}
_OF_A_WRITE = {
    "num_deleted_rows",
    "num_copied_rows",
    "num_removed_files",
    "num_removed_bytes",
    "num_added_change_files",
}
"""Metrics of a deletion that a write shows in the history if it replaces rows, as in delta-spark."""


def delete(
    snapshot: Snapshot,
    engine: Engine,
    where: str | None = None,
    *,
    parquet: ParquetOptions | None = None,
    commit: CommitOptions | None = None,
    alias: str | None = None,
) -> tuple[Snapshot, dict[str, int]]:
    """Deletes the rows for which `where`, a condition on the relation `alias` (None: `own_alias`), is true;
    without it all rows. If no row matches, nothing is committed.

    Whole partitions and whole tables are deleted without reading rows. An append-only table raises
    AppendOnlyError.
    """
    if already_committed(snapshot, commit):
        return snapshot, dict(NOTHING)
    times = PhaseTimes()
    planned = plan(snapshot, engine, where, alias=alias, changes=True)
    shown = engine.shown_condition(planned.condition or "true", planned.alias)
    transaction = Transaction(snapshot, "DELETE", {"predicate": [shown]}, commit)
    transaction.change = Change.REMOVE  # a rewritten file has only unchanged rows
    transaction.expect(Change.REMOVE)
    with staging(transaction):
        metrics = stage(transaction, snapshot, engine, planned, parquet, times)
        if metrics is None:
            return snapshot, dict(NOTHING)
    return commit_changes(transaction, engine, metrics, times)


def truncate(
    snapshot: Snapshot, engine: Engine, *, commit: CommitOptions | None = None
) -> tuple[Snapshot, dict[str, int]]:
    """Removes all files of a table without reading rows. If there are none, nothing is committed."""
    if already_committed(snapshot, commit):
        return snapshot, {}
    times = PhaseTimes()
    transaction = Transaction(snapshot, "TRUNCATE", {}, commit)
    transaction.change = Change.REMOVE
    transaction.expect(Change.REMOVE)
    with staging(transaction):
        metrics = stage(transaction, snapshot, engine, None, None)
        if metrics is None:
            return snapshot, {}
    counts = {
        "num_removed_files": metrics()["num_removed_files"],
        "execution_time_ms": times.metrics()["execution_time_ms"],
    }
    return transaction.commit(counts), counts


def stage(
    transaction: Transaction,
    snapshot: Snapshot,
    engine: Engine,
    condition: ScanPlan | str | None,
    parquet: ParquetOptions | None,
    times: PhaseTimes | None = None,
) -> Metrics | None:
    """Stages a deletion in a transaction, which may be that of another command. Returns its metrics; None if
    no row matches."""
    planned = (
        condition if isinstance(condition, ScanPlan) else plan(snapshot, engine, condition, changes=True)
    )
    transaction.read(None if planned.reads_itself else planned.predicate, rows_only=not planned.reads_itself)
    if planned.partition_only:
        return _drop_files(transaction, planned)
    scan = planned.scan(planned.residual_columns, row_ids=True)
    return drop_rows(transaction, snapshot, engine, scan, scan, parquet, times)


def stage_replaced(
    transaction: Transaction, snapshot: Snapshot, engine: Engine, where: str, parquet: ParquetOptions | None
) -> Metrics:
    """Stages the deletion of the rows that a write replaces. Returns the metrics that the write shows: those
    of the deletion, and `num_files`, `num_output_rows` and `num_output_bytes` of the files to which rows that
    stay are copied."""
    return of_write(stage(transaction, snapshot, engine, where, parquet))


def of_write(deletion: Metrics | None) -> Metrics:
    """Returns the metrics that a write shows of the deletion of the rows that it replaces. None: it deletes
    no row."""
    staged = deletion or NOTHING.copy

    def metrics() -> dict[str, int]:
        counts = staged()
        return {
            **{name: count for name, count in counts.items() if name in _OF_A_WRITE},
            "num_files": counts["num_added_files"],
            "num_output_rows": counts.get("num_copied_rows", 0),
            "num_output_bytes": counts["num_added_bytes"],
        }

    return metrics


def _drop_files(transaction: Transaction, planned: ScanPlan) -> Metrics | None:
    """Removes the selected files, of which every row matches."""
    files = planned.selection.adds
    if not files.num_rows:
        return None
    transaction.remove(_core.removes_of(files, transaction.clock()))
    rows = live_rows(planned)
    vectors = files.num_rows - files["deletionVector"].null_count
    metrics = {
        **NOTHING,
        "num_removed_files": files.num_rows,
        "num_removed_bytes": total_size(files),
        "num_deletion_vectors_removed": vectors,
    }
    if rows is None:
        del metrics["num_deleted_rows"], metrics["num_copied_rows"]
    else:
        metrics["num_deleted_rows"] = rows
    return lambda: metrics


def drop_rows(
    transaction: Transaction,
    snapshot: Snapshot,
    engine: Engine,
    scan: Scan,
    matches: Plan,
    parquet: ParquetOptions | None,
    times: PhaseTimes | None = None,
) -> Metrics | None:
    """Stages the deletion of the rows of `scan` that `matches`, a plan over it, returns with their row ids.
    Returns the metrics; None if there is none."""
    rows = engine.row_ids(engine.run(Project(matches, columns_of(scan.alias, ROW_ID_FIELDS), "ids")))
    if len(rows) == 0:
        return None
    if times is not None:
        times.found_rows()
    recording = None
    # with vectors, readers of the feed derive the deleted rows from them
    if not writes_vectors(snapshot, engine, "delete"):
        recording = RecordedChanges.of(snapshot.store, snapshot.metadata, snapshot.protocol, parquet)
        recording = recording and recording.with_rows(rows, change_feed.DELETE)
    target = snapshot_target(snapshot, parquet)
    changed = take_out(transaction, snapshot, engine, scan, rows, [], target, recording, command="delete")
    return lambda: {
        "num_deleted_rows": changed.deleted,
        "num_copied_rows": changed.written_rows,
        **file_metrics(changed),
    }


def file_metrics(changed: FileChanges) -> dict[str, int]:
    """Returns the metrics that DELETE and UPDATE have in common."""
    return {
        "num_added_files": changed.added_files,
        "num_removed_files": changed.removed_files,
        "num_added_bytes": changed.added_bytes,
        "num_removed_bytes": changed.removed_bytes,
        **vector_metrics(changed),
        "num_added_change_files": changed.change_files,
    }
