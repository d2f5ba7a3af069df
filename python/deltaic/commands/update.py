"""UPDATE: finds the rows by a scan of as few files and columns as possible, reads these rows, writes them
with new values and marks the old ones.

Source: metrics as in delta-spark's DeltaOperations.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from deltaic import _core
from deltaic.commands import generated, identity
from deltaic.commands.assignment import Assignments, check_assignments, check_casting
from deltaic.commands.change_files import RecordedChanges
from deltaic.commands.data_files import snapshot_target, tracked_columns
from deltaic.commands.delete import NOTHING as NOTHING_DELETED
from deltaic.commands.delete import file_metrics
from deltaic.commands.invariants import Rule, as_stored, checked, counting, rules_of
from deltaic.commands.marking import commit_changes, staging, take_out
from deltaic.commands.phase_times import PhaseTimes
from deltaic.commands.store_assignment import Casting
from deltaic.options import CommitOptions, ParquetOptions
from deltaic.plan.expression import Expression, column, columns_of
from deltaic.plan.nodes import Plan, Project, Scan
from deltaic.planning.opening import ROW_ID_FIELDS
from deltaic.planning.planned import check_deterministic, own_alias, plan, reads_table
from deltaic.protocol import change_feed
from deltaic.protocol.features import Change
from deltaic.transaction.transaction import Transaction, already_committed

if TYPE_CHECKING:
    from deltaic.engine.engine import Engine
    from deltaic.log.snapshot import Snapshot

NOTHING = {
    "num_updated_rows": 0,
    **{name: value for name, value in NOTHING_DELETED.items() if name != "num_deleted_rows"},
}


def update(
    snapshot: Snapshot,
    engine: Engine,
    set: Mapping[str, Any],
    where: str | None = None,
    *,
    casting: Casting = "strict",
    parquet: ParquetOptions | None = None,
    commit: CommitOptions | None = None,
    alias: str | None = None,
) -> tuple[Snapshot, dict[str, int]]:
    """Updates the rows for which `where` is true; without it all rows. Expressions read the old row, under
    `alias`. An empty `set` writes the rows again as they are, as in delta-spark. If no row matches, only
    application transactions are committed. A value that does not fit its column is a SchemaMismatchError;
    with casting="try" it becomes null."""
    check_casting(casting)
    if already_committed(snapshot, commit):
        return snapshot, dict(NOTHING)
    times = PhaseTimes()
    alias = own_alias(snapshot.schema) if alias is None else alias
    check_assignments(set)
    assignments = Assignments(snapshot.schema, set, alias)
    identity.check_updated(identity.columns_of(snapshot.protocol, snapshot.schema), assignments.columns)
    planned = plan(snapshot, engine, where, alias=alias, changes=True)
    # errors in them are raised before rows are read
    changed_columns = _expressions(snapshot, engine, assignments, alias, casting)
    shown = [] if planned.condition is None else [engine.shown_condition(planned.condition, alias)]
    transaction = Transaction(snapshot, "UPDATE", {"predicate": shown}, commit)
    transaction.expect(Change.REPLACE)
    reads_itself = planned.reads_itself or reads_table((value for _, value in changed_columns), snapshot)
    transaction.read(None if reads_itself else planned.predicate, rows_only=not reads_itself)
    with staging(transaction), ExitStack() as held:
        scan = planned.scan(planned.residual_columns, row_ids=True)
        rows = engine.row_ids(engine.run(Project(scan, columns_of(alias, ROW_ID_FIELDS), "ids")))
        if len(rows) == 0:
            current = transaction.commit(dict(NOTHING)) if transaction.changes_table else snapshot
            return current, dict(NOTHING)
        times.found_rows()
        target = snapshot_target(snapshot, parquet)
        matched = replace(matched_rows(scan, rows, snapshot), row_tracking=target.row_tracking)
        old: Plan = matched
        recording = RecordedChanges.of(snapshot.store, snapshot.metadata, snapshot.protocol, parquet)
        more = tracked_columns(target, alias)
        if recording is not None:
            old, recording = recording.with_old_rows(engine, matched, rows, change_feed.BEFORE, held)
            more = (*more, (change_feed.CHANGE_TYPE, engine.compose((f"'{change_feed.AFTER}'",), "string")))
        hidden = [name for name, _ in more]
        set_rows = Project(old, (*changed_columns, *more), alias)
        changed_rows, rules = _with_generated(snapshot, engine, set_rows, assignments, hidden)
        partitions = snapshot.metadata.partition_columns
        changed_rows = as_stored(changed_rows, snapshot.schema, rules, engine, partitions, hidden=hidden)
        new = checked(changed_rows, snapshot.schema, rules, engine, hidden=hidden)
        with counting(engine, [changed_rows], snapshot.schema, rules):
            changed = take_out(
                transaction, snapshot, engine, scan, rows, [new], target, recording, command="update"
            )

    def metrics() -> dict[str, int]:
        return {
            "num_updated_rows": len(rows),
            "num_copied_rows": changed.written_rows - len(rows),
            **file_metrics(changed),
            # Unlike DELETE, delta-spark's UPDATE also counts the files that only got a new deletion vector.
            "num_removed_files": max(changed.removed_files, changed.touched_files),
        }

    return commit_changes(transaction, engine, metrics, times)


def _with_generated(
    snapshot: Snapshot, engine: Engine, rows: Plan, assignments: Assignments, hidden: list[str]
) -> tuple[Plan, list[Rule]]:
    """Computes the generated columns again whose expressions read a column that the UPDATE sets. Returns the
    rows and the rules that they must follow. `rows` have the columns of the table and then `hidden`."""
    texts = generated.columns_of(snapshot.protocol, snapshot.schema)
    stale = generated.changed_by(engine, snapshot.schema, texts, assignments.columns)
    computed = generated.computed(
        rows, snapshot.schema, {name: texts[name] for name in stale}, engine, hidden=hidden
    )
    rules = generated.rules_of({name: text for name, text in texts.items() if name in assignments.columns})
    return computed, [*rules, *rules_of(snapshot.metadata, snapshot.schema, engine)]


def matched_rows(scan: Scan, rows: _core.RowIds, snapshot: Snapshot, *, row_ids: bool = False) -> Scan:
    """Restricts a scan to these rows, with all columns."""
    files = rows.select(scan.files)
    return replace(
        scan, files=files, columns=tuple(snapshot.schema.names), where=(), predicate=None, row_ids=row_ids
    )


def _expressions(
    snapshot: Snapshot, engine: Engine, assignments: Assignments, alias: str, casting: Casting
) -> tuple[tuple[str, Expression], ...]:
    scope = {alias: snapshot.schema}
    for value in assignments.values(engine, scope):
        check_deterministic(value, "a value that UPDATE sets")
    return tuple(
        (item.name, assignments.expression(engine, item, scope, casting, column(alias, item)))
        for item in snapshot.schema
    )
