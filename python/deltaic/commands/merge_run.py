"""One run of MERGE: reads the rows that change, computes and writes the new rows, and marks the old ones.
`merge_matches.py` joins target and source before that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from deltaic import _core
from deltaic.commands import change_files, identity
from deltaic.commands.change_files import RecordedChanges
from deltaic.commands.data_files import tracked_columns, write_target, writes_vectors
from deltaic.commands.defaults import value_of
from deltaic.commands.delete import Metrics
from deltaic.commands.invariants import Rule, as_stored, checked, counting, rules_of
from deltaic.commands.marking import FileChanges, staging, take_out, vector_metrics
from deltaic.commands.merge_clauses import (
    BoundClause,
    bind,
    conditions,
    errors_of,
    evolved_schema,
    of_source,
    resolve_in_merge,
    shown,
    with_source_columns,
)
from deltaic.commands.merge_generated import GeneratedValues
from deltaic.commands.merge_matches import CLAUSE_FIELD, Matches
from deltaic.commands.phase_times import PhaseTimes
from deltaic.errors import SchemaMismatchError, UnsupportedFeatureError
from deltaic.plan.expression import COUNT, Expression, Pieces, column
from deltaic.plan.nodes import Aggregate, Data, Join, Plan
from deltaic.planning.planned import column_names, own_reads, reads_table
from deltaic.protocol import change_feed
from deltaic.protocol.definition import evolve
from deltaic.protocol.evolution import can_store
from deltaic.protocol.schema import Field, Schema, Struct, type_name
from deltaic.transaction.transaction import Transaction

if TYPE_CHECKING:
    from deltaic.commands.assignment import Assignments
    from deltaic.commands.merge import MergeSpec
    from deltaic.engine.engine import Engine, WriteTarget
    from deltaic.log.snapshot import Snapshot


class Run:
    """One run of a merge; `stage()` does everything before the commit. `changes`: True if there is something
    to commit. `recording`: the rows for change files, or None."""

    def __init__(self, snapshot: Snapshot, engine: Engine, spec: MergeSpec, held: ExitStack) -> None:
        self.times = PhaseTimes()
        self.snapshot, self.engine, self.spec, self.held = snapshot, engine, spec, held
        self.t, self.s = spec.target_alias, spec.source_alias
        given = engine.source(spec.source, self.s)
        self.source_reads = own_reads(given.reads, snapshot)
        source = _with_variants(given, snapshot.schema, engine)
        self.source_schema = source.schema
        widen = snapshot.properties.type_widening
        self.protocol, self.metadata, self.schema = snapshot.protocol, snapshot.metadata, snapshot.schema
        evolved = evolved_schema(
            snapshot.schema, source.schema, spec.clauses, spec.schema_mode, self.t, widen=widen
        )
        if evolved is not snapshot.schema:
            self.protocol, self.metadata = evolve(snapshot.protocol, snapshot.metadata, schema=evolved)
            self.schema = Schema.from_json(self.metadata.schema_string)
        added = {name.lower() for name in self.schema.names if snapshot.schema.get(name) is None}
        bound = [
            bind(engine, with_source_columns(clause, added, spec), number, self.schema, source.schema, spec)
            for number, clause in enumerate(spec.clauses, start=1)
        ]
        self.clauses = bound
        self.matched = [each for each in bound if each.clause.kind == "matched"]
        self.inserts = [each for each in bound if each.clause.kind == "not_matched"]
        self.by_source = [each for each in bound if each.clause.kind == "not_matched_by_source"]
        self.identities = identity.columns_of(self.protocol, self.schema)
        self.numbers_rows = self._check_identities(bound)
        self.generated = GeneratedValues(engine, self.protocol, self.schema, bound)
        self.both = {self.t: self.schema, self.s: source.schema}
        on = of_source(spec.on, added, spec) if added else spec.on
        self.on = resolve_in_merge(engine, on, self.both, "search condition")
        if self.on.type not in ("boolean", "void"):
            raise SchemaMismatchError(
                "the condition of a merge must be a boolean",
                where=repr(spec.on),
                found=type_name(self.on.type),
            )
        self._values_of: dict[int, list[Expression]] = {}
        for each in bound:  # errors in assignments are raised before rows are read
            self._values(each)
        with self.times.materializing_source():
            self.source: Data = held.enter_context(engine.hold(engine.run(source), self.s))
        self.matches = Matches(
            snapshot=snapshot,
            engine=engine,
            held=held,
            protocol=self.protocol,
            metadata=self.metadata,
            schema=self.schema,
            target_alias=self.t,
            on=self.on,
            source=self.source,
            source_schema=source.schema,
            matched=self.matched,
            inserts=self.inserts,
            by_source=self.by_source,
        )
        self.transaction = Transaction(snapshot, "MERGE", self._parameters(), spec.commit)
        self.changes = False
        self.recording: RecordedChanges | None = None

    def _check_identities(self, clauses: list[BoundClause]) -> bool:
        """True if inserts assign identity values. If a clause sets an identity column that it may not set,
        InvalidArgumentError is raised."""
        numbered = set()
        for each in clauses if self.identities else ():
            if each.assignments is not None and each.clause.action == "update":
                identity.check_updated(self.identities, each.assignments.columns)
            elif each.assignments is not None:
                identity.check_inserted(self.identities, each.assignments.columns)
                numbered.add(frozenset(self.identities) - each.assignments.columns)
        if len(numbered - {frozenset()}) > 1:
            raise UnsupportedFeatureError(
                "the inserts of one MERGE must leave the same identity columns to the table"
            )
        return bool(numbered - {frozenset()})

    def _parameters(self) -> dict[str, object]:
        clauses = {
            "matchedPredicates": self.matched,
            "notMatchedPredicates": self.inserts,
            "notMatchedBySourcePredicates": self.by_source,
        }
        described = {
            name: [each.described(self.engine) for each in of_kind] for name, of_kind in clauses.items()
        }
        return {"predicate": [shown(self.engine, self.on)], **described}

    def _values(self, bound: BoundClause) -> list[Expression]:
        """Returns the value of each column of the table for rows of this clause."""
        if bound.assignments is None:
            return []
        if bound.number not in self._values_of:
            with errors_of(bound.clause.place, bound.scope):
                self._values_of[bound.number] = self._assigned(bound, bound.assignments)
        return self._values_of[bound.number]

    def _assigned(self, bound: BoundClause, assignments: Assignments) -> list[Expression]:
        casting, named = self.spec.casting, assignments.columns
        values = []
        for item in self.schema:
            # some fields of a struct may keep their values
            replaced = item.name in named and not isinstance(item.type, Struct)
            kept = None if replaced or self.generated.is_computed(item.name, bound) else column(self.t, item)
            # in a new row, a column that the clause does not set gets its default
            if bound.clause.action == "insert":
                kept = None if item.name in named else value_of(self.engine, item, casting)
            values.append(assignments.expression(self.engine, item, bound.scope, casting, kept))
        return values

    # --- changing

    def stage(self) -> Metrics:
        with staging(self.transaction):
            matches = self.matches
            counts = matches.counts()
            # Several source rows may match one target row only if the single clause deletes it without a
            # condition.
            only_delete = (
                len(self.matched) == 1
                and self.matched[0].clause.action == "delete"
                and self.matched[0].clause.where is None
            )
            changed_rows = matches.row_ids(self.matched, self.by_source, unique=not only_delete)
            self.times.found_rows()
            self._stage_read()
            target = write_target(
                self.snapshot.store, self.metadata, self.protocol, self.spec.parquet, copies=True
            )
            if self._must_record(counts, changed_rows):
                self.recording = RecordedChanges.of(
                    self.snapshot.store, self.metadata, self.protocol, self.spec.parquet
                )
            only_update = not self.by_source and all(each.clause.action == "update" for each in self.matched)
            updated = changed_rows if only_update else matches.row_ids(_updates(self.matched), [])
            new = self._new_rows(updated, counts, target)
            if matches.orphans is not None:
                of_orphans = matches.row_ids([], _updates(self.by_source))
                new += self._updated(matches.orphans, of_orphans, self.by_source, target)
            self.changes = any(counts.values())
            changed = FileChanges()
            if self.changes:
                if self.recording is not None and not only_update:
                    deleted = matches.row_ids(_deletes(self.matched), _deletes(self.by_source))
                    self.recording = self.recording.with_rows(deleted, change_feed.DELETE)
                changed = self._write(new, changed_rows, target)
            elif self.metadata != self.snapshot.metadata:  # the table gets the new columns in any case
                self._stage_definition()
                self.changes = True
            metrics = self._metrics(counts, len(changed_rows), changed)
            return lambda: {**metrics, **_file_metrics(changed)}

    def _stage_read(self) -> None:
        """Records in the transaction which rows of the target the command depends on."""
        read = [*conditions(self.clauses), *(value for each in self.clauses for value in self._values(each))]
        reads_itself = reads_table(read, self.snapshot)
        self.transaction.read(
            None if reads_itself else self.matches.planned.predicate,
            rows_only=not reads_itself and self._changes_all_matches,
        )
        for predicate in self.source_reads:
            self.transaction.read(predicate)

    def _write(self, new: list[Plan], changed_rows: _core.RowIds, target: WriteTarget) -> FileChanges:
        """Stages the definition, writes the new rows, and marks the old ones."""
        self._stage_definition()
        rules, engine, schema = self.rules, self.engine, self.schema
        hidden = [*(target.row_tracking or ()), *([change_feed.CHANGE_TYPE] if self.recording else ())]
        partitions = self.metadata.partition_columns
        new = [as_stored(plan, schema, rules, engine, partitions, hidden=hidden) for plan in new]
        rows = [checked(plan, schema, rules, engine, hidden=hidden) for plan in new]
        scan = self.matches.target(())
        with counting(engine, new, schema, rules):
            changed = take_out(
                self.transaction,
                self.snapshot,
                engine,
                scan,
                changed_rows,
                rows,
                target,
                self.recording,
                command="merge",
            )
        if self.numbers_rows:
            self._stage_marks()
        return changed

    @cached_property
    def rules(self) -> list[Rule]:
        """The conditions that new rows must satisfy."""
        return [*self.generated.rules, *rules_of(self.metadata, self.schema, self.engine)]

    @property
    def _changes_all_matches(self) -> bool:
        """True if the command changes every target row on which it depends. With inserts, it also depends on
        matched rows to which no clause applies: because of them, a source row is not inserted."""
        return not self.inserts or (bool(self.matched) and self.matched[-1].clause.where is None)

    def _must_record(self, counts: Mapping[int, int], changed_rows: _core.RowIds) -> bool:
        """True if the commit needs change files. Inserts, and deletes by deletion vectors, need none, as
        readers derive them from the actions."""
        if not change_files.are_kept(self.protocol, self.metadata):
            return False
        updates = any(counts.get(each.number) for each in _updates([*self.matched, *self.by_source]))
        return updates or (len(changed_rows) > 0 and not writes_vectors(self.snapshot, self.engine, "merge"))

    def _kind(
        self, kind: str, other: str = "", clauses: Sequence[BoundClause] = ()
    ) -> tuple[tuple[str, Expression], ...]:
        """Returns the column CHANGE_TYPE of new rows, if changes are recorded: `kind`, or `other` for rows of
        `clauses`."""
        if self.recording is None:
            return ()
        pieces: Pieces = (f"'{kind}'",)
        if clauses:
            numbers = ", ".join(str(each.number) for each in clauses)
            pieces = (
                "CASE WHEN ",
                column(self.s, CLAUSE_FIELD),
                f" IN ({numbers}) THEN '{other}' ELSE '{kind}' END",
            )
        return ((change_feed.CHANGE_TYPE, self.engine.compose(pieces, "string")),)

    def _stage_definition(self) -> None:
        if self.metadata != self.snapshot.metadata:
            self.transaction.set_metadata(self.metadata)
        if self.protocol != self.snapshot.protocol:
            self.transaction.set_protocol(self.protocol)

    def _stage_marks(self) -> None:
        """Stages the high-water marks of identity columns after the rows that were written."""
        marked = self.metadata
        for adds in self.transaction.staged_adds:
            schema = Schema.from_json(marked.schema_string)
            columns = [schema.field(name) for name in self.identities]
            marked = identity.marked(
                self.engine, self.snapshot.store, self.protocol, marked, schema, columns, adds
            )
        self.transaction.set_metadata(marked)

    def _new_rows(self, updated: _core.RowIds, counts: Mapping[int, int], to: WriteTarget) -> list[Plan]:
        """Returns the updated and the inserted rows. If both have the same values, as in an upsert of all
        columns, they are one plan."""
        inserts = [each for each in self.inserts if counts.get(each.number)]
        updates = _updates(self.matched) if len(updated) else []
        if inserts and updates and not self.numbers_rows and not self._reads_target(updates, to):
            inserted = self._by_clause(inserts)
            if inserted == self._by_clause(updates):
                self._record_old_rows(updated)
                kind = self._kind(change_feed.INSERT, change_feed.AFTER, updates)
                rows = self.matches.of_clauses(self.matches.pairs, [*updates, *inserts])
                return [self.generated.rows(rows, inserted, kind, self.s)]
        changed = self._updated(self.matches.pairs, updated, self.matched, to)
        return [*changed, *self._inserted(inserts, to)]

    def _updated(
        self, rows: Data, ids: _core.RowIds, clauses: list[BoundClause], to: WriteTarget
    ) -> list[Plan]:
        """Returns the updated rows. `ids`: their row ids. Of the old rows, only the columns are read that the
        new values need; if change files need the old rows, all columns."""
        updates = _updates(clauses)
        if len(ids) == 0:
            return []
        columns = self._by_clause(updates)
        tracked = (*tracked_columns(to, self.t), *self._kind(change_feed.AFTER))
        changed = self.matches.of_clauses(rows, updates)
        if not self._reads_target(updates, to):
            self._record_old_rows(ids)
            return [self.generated.rows(changed, columns, tracked, self.s)]
        names = tuple(self.schema.names) if self.recording is not None else self._read_by(updates)
        wide = self.matches.target(names)
        old = replace(
            wide, files=ids.select(wide.files), where=(), predicate=None, row_tracking=to.row_tracking
        )
        target: Plan = old
        if self.recording is not None:
            target, self.recording = self.recording.with_old_rows(
                self.engine, old, ids, change_feed.BEFORE, self.held
            )
        joined = Join(target, changed, self.matches.same_row(self.s))
        return [self.generated.rows(joined, columns, tracked, self.s)]

    def _record_old_rows(self, ids: _core.RowIds) -> None:
        """Adds the old rows with these ids to the change files, if changes are recorded."""
        if self.recording is not None:
            self.recording = self.recording.with_rows(ids, change_feed.BEFORE)

    def _reads_target(self, updates: list[BoundClause], to: WriteTarget) -> bool:
        """True if new values are computed from the target's columns, or if rows keep their row ids. An update
        of all columns from the source without row tracking needs neither."""
        return to.row_tracking is not None or bool(self._read_by(updates))

    def _read_by(self, updates: list[BoundClause]) -> tuple[str, ...]:
        """Returns the target's columns that the new values read."""
        return column_names([value for each in updates for value in self._values(each)], self.schema, self.t)

    def _inserted(self, inserts: list[BoundClause], to: WriteTarget) -> list[Plan]:
        if not inserts:
            return []
        plans = []
        for given, clauses in self._by_given_identities(inserts):
            tracked = (*tracked_columns(to, None), *self._kind(change_feed.INSERT))
            pairs = self.matches.of_clauses(self.matches.pairs, clauses)
            rows = self.generated.rows(pairs, self._by_clause(clauses), tracked, self.s)
            numbered = [field for name, field in self.identities.items() if name not in given]
            plans.append(identity.numbered(self.engine, rows, numbered))
        return plans

    def _by_given_identities(
        self, inserts: list[BoundClause]
    ) -> list[tuple[frozenset[str], list[BoundClause]]]:
        """Groups the clauses by the identity columns that they set."""
        groups: dict[frozenset[str], list[BoundClause]] = {}
        for each in inserts:
            given = (
                each.assignments.columns & self.identities.keys()
                if each.assignments is not None
                else frozenset()
            )
            groups.setdefault(frozenset(given), []).append(each)
        return list(groups.items())

    def _by_clause(self, clauses: list[BoundClause]) -> tuple[tuple[str, Expression], ...]:
        values = [self._values(each) for each in clauses]
        if len(clauses) == 1:
            return tuple(zip(self.schema.names, values[0], strict=True))
        columns = []
        for number, item in enumerate(self.schema):
            of_column = [each[number] for each in values]
            if all(value == of_column[0] for value in of_column):
                columns.append((item.name, of_column[0]))
                continue
            whens: list[str | Expression] = []
            for each, value in zip(clauses, of_column, strict=True):
                whens += [" WHEN ", column(self.s, CLAUSE_FIELD), f" = {each.number} THEN ", value]
            columns.append((item.name, self.engine.compose(("CASE", *whens, " END"), item.type)))
        return tuple(columns)

    # --- metrics

    def _metrics(self, counts: Mapping[int, int], changed_rows: int, changed: FileChanges) -> dict[str, int]:
        def total(clauses: list[BoundClause], action: str) -> int:
            return sum(counts.get(each.number, 0) for each in clauses if each.clause.action == action)

        inserted = total(self.inserts, "insert")
        updated, orphans_updated = total(self.matched, "update"), total(self.by_source, "update")
        orphans_deleted = total(self.by_source, "delete")
        # not by counts: a row with two matches is deleted once
        deleted = changed_rows - updated - orphans_updated - orphans_deleted
        selection = self.matches.planned.selection
        return {
            "num_source_rows": self._source_rows(),
            "num_output_rows": changed.written_rows,
            "num_target_rows_inserted": inserted,
            "num_target_rows_updated": updated + orphans_updated,
            "num_target_rows_matched_updated": updated,
            "num_target_rows_not_matched_by_source_updated": orphans_updated,
            "num_target_rows_deleted": deleted + orphans_deleted,
            "num_target_rows_matched_deleted": deleted,
            "num_target_rows_not_matched_by_source_deleted": orphans_deleted,
            "num_target_rows_copied": changed.written_rows - inserted - updated - orphans_updated,
            **_file_metrics(changed),
            "num_target_files_scanned": selection.adds.num_rows,
            "num_target_files_skipped": selection.total_files - selection.adds.num_rows,
        }

    def _source_rows(self) -> int:
        counted = Aggregate(self.source, (), (("rows", COUNT),))
        return int(pc.sum(self.engine.to_table(self.engine.run(counted))["rows"]).as_py())


def _file_metrics(changed: FileChanges) -> dict[str, int]:
    return {
        "num_target_files_added": changed.added_files,
        "num_target_files_removed": changed.removed_files,
        "num_target_bytes_added": changed.added_bytes,
        "num_target_bytes_removed": changed.removed_bytes,
        **vector_metrics(changed, "num_target"),
        "num_target_change_files_added": changed.change_files,
    }


def _with_variants(source: Data, target: Schema, engine: Engine) -> Data:
    """Converts columns of the source to variants if they are variants in the target. In Arrow, a variant is a
    struct of two parts."""

    def is_variant(item: Field) -> bool:
        column = target.get(item.name)
        return (
            column is not None
            and column.type == "variant"
            and item.type != "variant"
            and can_store(item.type, "variant")
        )

    typed = Schema([item.with_(type="variant") if is_variant(item) else item for item in source.schema])
    return source if typed == source.schema else engine.conform(source, typed)


def _updates(clauses: list[BoundClause]) -> list[BoundClause]:
    return [each for each in clauses if each.clause.action == "update"]


def _deletes(clauses: list[BoundClause]) -> list[BoundClause]:
    return [each for each in clauses if each.clause.action == "delete"]
