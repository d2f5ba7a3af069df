"""Removes rows from files for DELETE, UPDATE and MERGE: marks them in deletion vectors, or rewrites the files
without them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from deltaic import _core
from deltaic.commands import change_files
from deltaic.commands.change_files import RecordedChanges
from deltaic.commands.data_files import compacted, writes_vectors
from deltaic.plan.nodes import Plan, Scan, Union
from deltaic.transaction.marks import Marks

if TYPE_CHECKING:
    from deltaic.commands.phase_times import PhaseTimes
    from deltaic.engine.engine import Changing, Engine, WriteTarget
    from deltaic.log.snapshot import Snapshot
    from deltaic.transaction.transaction import Transaction


@contextmanager
def staging(transaction: Transaction) -> Iterator[None]:
    """Encloses a command's work between the start of its transaction and the commit. If it fails, the files
    that it wrote are deleted."""
    try:
        yield
    except BaseException:
        transaction.discard()
        raise


@dataclass
class FileChanges:
    """Counts of files and rows that a command changed.

    `deleted`: number of deleted rows. `written_rows`: number of rows in new files, copied rows included.
    `touched_files`: number of files that were removed or got a new deletion vector.
    `vectors`: numbers of deletion vectors that were added, removed and updated, as delta-spark counts
        them."""

    deleted: int = 0
    written_rows: int = 0
    added_files: int = 0
    added_bytes: int = 0
    removed_files: int = 0
    removed_bytes: int = 0
    touched_files: int = 0
    vectors: dict[str, int] = field(default_factory=lambda: {"added": 0, "removed": 0, "updated": 0})
    vector_bytes: int = 0
    change_files: int = 0

    def count(self, marked: _core.MarkedFiles) -> None:
        """Sets the counts of rows and files from the deletion vectors that were written. Called again if the
        vectors are written again."""
        metrics = marked.metrics
        self.deleted = metrics["num_deleted_rows"]
        self.removed_files, self.touched_files = metrics["num_removed_files"], marked.removes.num_rows
        kept = pc.is_in(marked.removes["path"], value_set=marked.adds["path"])
        self.removed_bytes = total_size(marked.removes.filter(pc.invert(kept)))
        self.vectors = {
            name: metrics[f"num_deletion_vectors_{name}"] for name in ("added", "removed", "updated")
        }
        self.vector_bytes = metrics["num_bytes_written"]


def take_out(
    transaction: Transaction,
    snapshot: Snapshot,
    engine: Engine,
    scan: Scan,
    rows: _core.RowIds,
    new: list[Plan],
    target: WriteTarget,
    recording: RecordedChanges | None = None,
    *,
    command: Changing,
) -> FileChanges:
    """Stages the deletion of `rows` from the files of `scan`, and new rows. Files are rewritten if
    `writes_vectors` is false for `command`.

    `new`: plans of new rows, with the columns of the target's schema in its order.
    `recording`: if set, the changes are also written to change files, and rows of `new` have CHANGE_TYPE as
        their last column."""
    with ExitStack() as held:
        recorded: list[Plan] = []
        if recording is not None:
            new, recorded = change_files.divided(engine, new, target, scan.schema, held)
        if writes_vectors(snapshot, engine, command):
            changed = _mark(transaction, snapshot, engine, scan, rows, new, target)
        else:
            changed = _rewrite(transaction, engine, scan, rows, new, target)
        if recording is not None and changed.written_rows:
            # otherwise the removed files or the vectors show all changes
            changed.change_files = change_files.write(
                transaction, engine, [*recording.before(scan), *recorded], recording.target
            )
    return changed


def _mark(
    transaction: Transaction,
    snapshot: Snapshot,
    engine: Engine,
    scan: Scan,
    rows: _core.RowIds,
    new: list[Plan],
    target: WriteTarget,
) -> FileChanges:
    changed = FileChanges()
    _write(transaction, engine, new, target, changed)
    if len(rows) == 0:
        return changed

    def mark(files: pa.Table, rows: _core.RowIds) -> _core.MarkedFiles:
        return engine.mark_deleted(
            rows,
            replace(scan, files=files),
            deletion_timestamp=transaction.clock(),
            inline=snapshot.properties.inline_deletion_vectors,
            prefix_length=snapshot.properties.random_prefix_length,
        )

    transaction.mark(Marks(scan.files, rows, mark, changed.count))
    return changed


def _rewrite(
    transaction: Transaction,
    engine: Engine,
    scan: Scan,
    rows: _core.RowIds,
    new: list[Plan],
    target: WriteTarget,
) -> FileChanges:
    changed = FileChanges(deleted=len(rows))
    plans: list[Plan] = list(new)
    if len(rows):
        touched = rows.select(scan.files, keep_selected=False)
        # The remaining rows are written first, in their order, and then the new ones.
        columns = tuple(scan.schema.names)
        kept = replace(
            scan,
            columns=columns,
            where=(),
            predicate=None,
            row_ids=False,
            row_tracking=target.row_tracking,
            as_stored=True,
        )
        plans.insert(0, replace(kept, files=touched))
        changed.removed_files = touched.num_rows
        changed.removed_bytes = total_size(touched)
        changed.vectors["removed"] = pc.sum(pc.is_valid(touched["deletionVector"])).as_py() or 0
        transaction.remove(_core.removes_of(touched, transaction.clock()))
    _write(transaction, engine, plans, target, changed)
    return changed


def _write(
    transaction: Transaction, engine: Engine, plans: list[Plan], target: WriteTarget, changed: FileChanges
) -> None:
    if not plans:
        return
    plan = plans[0] if len(plans) == 1 else Union(tuple(plans))
    adds = engine.write(engine.run(plan), target)
    transaction.written(adds["path"].to_pylist())
    transaction.add(adds)
    changed.added_files, changed.added_bytes, changed.written_rows = (
        adds.num_rows,
        total_size(adds),
        rows_of(adds),
    )


def total_size(actions: pa.Table) -> int:
    """Returns the bytes of files. A file without a size in the log counts as 0."""
    return int(pc.sum(actions["size"]).as_py() or 0)


def rows_of(adds: pa.Table) -> int:
    """Counts the rows of files that were just written, whose statistics always have the number of rows."""
    # Each column that goes to `_core` takes time, which counts in a commit of few rows.
    return int(pc.sum(_core.physical_rows(adds.select(["stats"]))).as_py() or 0)


def vector_metrics(changed: FileChanges, prefix: str = "num") -> dict[str, int]:
    """Returns the metrics of deletion vectors, with delta-spark's names."""
    return {f"{prefix}_deletion_vectors_{name}": count for name, count in changed.vectors.items()}


def commit_changes(
    transaction: Transaction, engine: Engine, metrics: Callable[[], dict[str, int]], times: PhaseTimes
) -> tuple[Snapshot, dict[str, int]]:
    """Commits a DELETE or UPDATE with its metrics and times, and compacts the files that it wrote if the
    table has auto compaction. Returns the newest version and the metrics without times."""
    timed = times.metrics()
    committed = transaction.commit(lambda: {**metrics(), **timed})
    return compacted(committed, transaction.snapshot, engine, transaction.adds), metrics()
