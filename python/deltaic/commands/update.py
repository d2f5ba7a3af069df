"""UPDATE: find the rows by the narrowest scan, read just those rows' columns, write them changed, mark the old ones.

Source: DESIGN section 3; metrics as delta-spark's DeltaOperations names them.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from deltaic import _core
from deltaic.commands.assignment import Assignments, check_casting
from deltaic.commands.data_files import snapshot_target, tracked_columns
from deltaic.commands.delete import NOTHING as NOTHING_DELETED
from deltaic.commands.delete import file_metrics
from deltaic.commands.invariants import checked
from deltaic.commands.marking import staging, take_out
from deltaic.commands.store_assignment import Casting
from deltaic.options import CommitOptions, ParquetOptions
from deltaic.protocol.features import Change
from deltaic.relation.literal import col
from deltaic.relation.plan import FILE_COLUMN, ROW_COLUMN, Project, Scan
from deltaic.scan.scan import plan
from deltaic.transaction.transaction import Transaction, already_committed

if TYPE_CHECKING:
    from deltaic.engine.engine import Engine
    from deltaic.log.snapshot import Snapshot

NOTHING = {"num_updated_rows": 0, **{name: value for name, value in NOTHING_DELETED.items() if name != "num_deleted_rows"}}
ALIAS = "t"


def update(
    snapshot: Snapshot,
    engine: Engine,
    set: Mapping[str, Any],
    where: str | None = None,
    *,
    casting: Casting = "strict",
    parquet: ParquetOptions | None = None,
    commit: CommitOptions | None = None,
) -> tuple[Snapshot, dict[str, int]]:
    """Changes the rows for which `where` is true (all without it). Every expression sees the old row. Where nothing matches, nothing is
    committed. SchemaMismatchError: a value that does not fit its column (with casting="try" it becomes null)."""
    check_casting(casting)
    if already_committed(snapshot, commit):
        return snapshot, dict(NOTHING)
    started = time.monotonic()
    assignments = Assignments(snapshot.schema, set, ALIAS)
    planned = plan(snapshot, engine, where, alias=ALIAS)
    changed_columns = _expressions(snapshot, engine, assignments, casting)  # errors of the expressions come before any work
    transaction = Transaction(snapshot, "UPDATE", {"predicate": [] if where is None else [where]}, commit)
    transaction.expect(Change.REPLACE)
    transaction.read(planned.predicate)
    with staging(transaction):
        scan = planned.scan(planned.residual_columns, alias=ALIAS, row_ids=True)
        rows = engine.row_ids(engine.run(Project(scan, ((FILE_COLUMN, FILE_COLUMN), (ROW_COLUMN, ROW_COLUMN)), "ids")))
        if len(rows) == 0:
            return snapshot, dict(NOTHING)
        target = snapshot_target(snapshot, parquet)
        matched = replace(matched_rows(scan, rows, snapshot), row_tracking=target.row_tracking)
        changed_rows = Project(matched, (*changed_columns, *tracked_columns(target, ALIAS)), ALIAS)
        new = checked(changed_rows, snapshot.schema, engine, hidden=target.row_tracking or ())
        changed = take_out(transaction, snapshot, engine, scan, rows, [new], target)
    metrics = {
        "num_updated_rows": len(rows),
        "num_copied_rows": changed.written_rows - len(rows),
        **file_metrics(changed),
    }
    times = {"execution_time_ms": int((time.monotonic() - started) * 1000)}
    return transaction.commit({**metrics, **times}), metrics


def matched_rows(scan: Scan, rows: _core.RowIds, snapshot: Snapshot, *, row_ids: bool = False) -> Scan:
    """The same scan leaf with only these rows, and all columns of them."""
    files = rows.select(scan.files)
    return replace(scan, files=files, columns=tuple(snapshot.schema.names), where=(), predicate=None, row_ids=row_ids)


def _expressions(snapshot: Snapshot, engine: Engine, assignments: Assignments, casting: Casting) -> tuple[tuple[str, str], ...]:
    scope = {ALIAS: snapshot.schema}
    return tuple(
        (item.name, assignments.expression(engine, item, scope, casting, kept=f"{ALIAS}.{col(item.name)}")) for item in snapshot.schema
    )
