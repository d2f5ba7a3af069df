"""One run of MERGE: match, decide, read the changed rows, write, mark."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from deltaic import _core
from deltaic.commands.data_files import tracked_columns, write_target
from deltaic.commands.defaults import value_of
from deltaic.commands.invariants import checked
from deltaic.commands.marking import Changed, staging, take_out, vector_metrics
from deltaic.commands.merge_clauses import Bound, bind, check_conditions, chosen, conditions, evolved_schema
from deltaic.commands.merge_planning import plan_target
from deltaic.errors import InvalidArgumentError
from deltaic.log.snapshot import table_schema
from deltaic.protocol.definition import evolve
from deltaic.protocol.evolution import can_store
from deltaic.protocol.schema import Field, Schema
from deltaic.relation.literal import col
from deltaic.relation.plan import FILE_COLUMN, ROW_COLUMN, Aggregate, Data, Filter, Join, JoinKind, Plan, Project, Scan
from deltaic.scan.scan import Planned, column_names
from deltaic.transaction.transaction import Transaction

if TYPE_CHECKING:
    from deltaic.commands.merge import MergeSpec
    from deltaic.engine.engine import Engine, WriteTarget
    from deltaic.log.snapshot import Snapshot

CLAUSE = "__deltaic_clause"
"""int: number of the clause that a pair of rows comes to, null where none applies."""


class Run:
    """`stage()` does everything up to the commit. `changes`: whether there is anything to commit."""

    def __init__(self, snapshot: Snapshot, engine: Engine, spec: MergeSpec, held: ExitStack) -> None:
        self.snapshot, self.engine, self.spec, self.held = snapshot, engine, spec, held
        self.t, self.s = spec.target_alias, spec.source_alias
        source = _with_variants(engine.source(spec.source, self.s), snapshot.schema, engine)
        self.source_schema = source.schema
        widen = snapshot.properties.type_widening
        self.schema = evolved_schema(snapshot.schema, source.schema, spec.clauses, spec.schema_mode, self.t, widen=widen)
        self.protocol, self.metadata = evolve(snapshot.protocol, snapshot.metadata, schema=self.schema)
        self.schema = Schema.from_json(self.metadata.schema_string)
        bound = [
            bind(clause, number, self.schema, source.schema, self.s, self.t, spec.casting)
            for number, clause in enumerate(spec.clauses, start=1)
        ]
        self.matched = [each for each in bound if each.clause.kind == "matched"]
        self.inserts = [each for each in bound if each.clause.kind == "not_matched"]
        self.by_source = [each for each in bound if each.clause.kind == "not_matched_by_source"]
        self.both = {self.t: self.schema, self.s: source.schema}
        check_conditions(engine, self.matched, self.both)
        check_conditions(engine, self.inserts, {self.s: source.schema})
        check_conditions(engine, self.by_source, {self.t: self.schema})
        self.on = engine.resolve(spec.on, self.both)
        if not self.on.deterministic or self.on.type not in ("boolean", "void"):
            raise InvalidArgumentError("on= must be a deterministic condition", found=repr(spec.on))
        self._check_expressions()
        self.source: Data = held.enter_context(engine.hold(engine.run(source), self.s))
        self.transaction = Transaction(snapshot, "MERGE", self._parameters(), spec.commit)
        self.changes = False

    def _check_expressions(self) -> None:
        """Errors of the assignments come before any work."""
        for each in self.matched:
            self._values(each, self.both, keep=True)
        for each in self.inserts:
            self._values(each, {self.s: self.source_schema}, keep=False)
        for each in self.by_source:
            self._values(each, {self.t: self.schema}, keep=True)

    def _parameters(self) -> dict[str, object]:
        clauses = {
            "matchedPredicates": self.matched,
            "notMatchedPredicates": self.inserts,
            "notMatchedBySourcePredicates": self.by_source,
        }
        described = {name: [each.clause.described() for each in found] for name, found in clauses.items()}
        return {"predicate": self.spec.on, **described}

    def _values(self, bound: Bound, scope: Mapping[str, Schema], *, keep: bool) -> list[str]:
        """SQL of each of the table's columns as this clause leaves it."""
        if bound.assignments is None:
            return []
        assignments, casting = bound.assignments, self.spec.casting
        kept = [f"{col(self.t)}.{col(item.name)}" if keep else None for item in self.schema]
        if not keep:  # a new row gets the default of a column that nobody names
            named = assignments.columns
            kept = [None if item.name in named else value_of(self.engine, item, casting) for item in self.schema]
        return [assignments.expression(self.engine, item, scope, casting, text) for item, text in zip(self.schema, kept, strict=True)]

    # --- matching

    @cached_property
    def planned(self) -> Planned:
        """The target's files that may hold a match. Rows without a source may be anywhere."""
        if self.by_source:
            return Planned(self.snapshot)
        return plan_target(self.snapshot, self.engine, self.on, self.source, self.s, self.t)

    def _target(self, texts: list[str], scope: Mapping[str, Schema]) -> Scan:
        """The narrow scan: the columns that these expressions read."""
        columns = column_names([self.engine.resolve(text, scope) for text in texts], self.schema, self.t)
        scan = self.planned.scan(columns, alias=self.t, row_ids=True)
        return replace(scan, schema=self.schema, table_schema=table_schema(self.protocol, self.metadata))

    def _pairs(self) -> Data:
        """Target rows with the source rows that match them, and source rows that match none (row id null): the clause of each, and the
        source's columns. Pairs to which no clause applies are left out, unless by-source clauses must know who has a match."""
        on = self.spec.on
        # Without clauses for matched rows nothing but the match itself is asked of the target.
        target = self._target([on, *conditions(self.matched)], self.both)
        kind: JoinKind = "right" if self.inserts else "inner"
        columns = [(name, f"{col(self.s)}.{col(name)}") for name in self.source_schema.names]
        ids = [(name, f"{col(self.t)}.{name}") for name in (FILE_COLUMN, ROW_COLUMN)]
        pairs: Plan = Project(Join(target, self.source, on, kind), (*columns, *ids, (CLAUSE, chosen(self.matched))), self.s)
        if self.inserts:
            # A projection of its own: these conditions see the source alone, so that a bare name is never ambiguous.
            of_row = f"CASE WHEN {col(self.s)}.{ROW_COLUMN} IS NOT NULL THEN {col(self.s)}.{CLAUSE} ELSE {chosen(self.inserts)} END"
            kept = [(name, f"{col(self.s)}.{name}") for name in (FILE_COLUMN, ROW_COLUMN)]
            pairs = Project(pairs, (*columns, *kept, (CLAUSE, of_row)), self.s)
        if not self.by_source:
            pairs = Filter(pairs, f"{CLAUSE} IS NOT NULL")
        return self.held.enter_context(self.engine.hold(self.engine.run(pairs), self.s))

    def _orphans(self, pairs: Data) -> Data | None:
        """Target rows that no source row matches, with the by-source clause of each."""
        if not self.by_source:
            return None
        target = self._target(conditions(self.by_source), {self.t: self.schema})
        of_pairs = Project(
            Filter(pairs, f"{ROW_COLUMN} IS NOT NULL"), ((FILE_COLUMN, FILE_COLUMN), (ROW_COLUMN, ROW_COLUMN)), "__deltaic_pairs"
        )
        same = " AND ".join(f"{col(self.t)}.{name} = __deltaic_pairs.{name}" for name in (FILE_COLUMN, ROW_COLUMN))
        alone = Join(target, of_pairs, same, "left_anti")
        ids = tuple((name, f"{col(self.t)}.{name}") for name in (FILE_COLUMN, ROW_COLUMN))
        rows = Filter(Project(alone, (*ids, (CLAUSE, chosen(self.by_source))), self.s), f"{CLAUSE} IS NOT NULL")
        return self.held.enter_context(self.engine.hold(self.engine.run(rows), self.s))

    # --- changing

    def stage(self) -> dict[str, int]:
        with staging(self.transaction):
            pairs = self._pairs()
            orphans = self._orphans(pairs)
            counts = self._counts(pairs) | (self._counts(orphans) if orphans is not None else {})
            # Two source rows for one target row are fine only where it is deleted whatever they say.
            only_delete = len(self.matched) == 1 and self.matched[0].clause.action == "delete" and self.matched[0].clause.where is None
            changed_rows = self._row_ids(pairs, orphans, self.matched, self.by_source, unique=not only_delete)
            self.transaction.read(self.planned.predicate)
            target = write_target(self.snapshot.store, self.metadata, self.protocol, self.spec.parquet, copies=True)
            only_update = orphans is None and all(each.clause.action == "update" for each in self.matched)
            updated = changed_rows if only_update else self._row_ids_of_updates(pairs, self.matched)
            new = [*self._updated(pairs, updated, self.matched, self.both, target), *self._inserted(pairs, counts, target)]
            if orphans is not None:
                updated = self._row_ids_of_updates(orphans, self.by_source)
                new += self._updated(orphans, updated, self.by_source, {self.t: self.schema}, target)
            self.changes = any(counts.values())
            changed = Changed()
            if self.changes:
                self._stage_definition()
                rows = [checked(plan, self.schema, self.engine, hidden=target.row_tracking or ()) for plan in new]
                known = table_schema(self.protocol, self.metadata)
                scan = replace(self.planned.scan((), alias=self.t, row_ids=True), schema=self.schema, table_schema=known)
                changed = take_out(self.transaction, self.snapshot, self.engine, scan, changed_rows, rows, target)
            return self._metrics(counts, len(changed_rows), changed)

    def _stage_definition(self) -> None:
        if self.metadata != self.snapshot.metadata:
            self.transaction.set_metadata(self.metadata)
        if self.protocol != self.snapshot.protocol:
            self.transaction.set_protocol(self.protocol)

    def _counts(self, rows: Data) -> dict[int, int]:
        """Rows of each clause."""
        grouped = Aggregate(Filter(rows, f"{CLAUSE} IS NOT NULL"), ((CLAUSE, CLAUSE),), (("rows", "count(*)"),))
        table = self.engine.to_arrow(self.engine.run(grouped)).read_all()
        return dict(zip(table[CLAUSE].to_pylist(), table["rows"].to_pylist(), strict=True))

    def _row_ids(self, pairs: Data, orphans: Data | None, matched: list[Bound], by_source: list[Bound], *, unique: bool) -> _core.RowIds:
        """The target rows that these clauses change."""
        found = [self._ids(pairs, matched)] if matched else []
        if orphans is not None and by_source:
            found.append(self._ids(orphans, by_source))
        if not found:
            return _core.RowIds.collect(_no_ids())
        from deltaic.relation.plan import Union

        return self.engine.row_ids(self.engine.run(Union(tuple(found)) if len(found) > 1 else found[0]), unique=unique)

    def _ids(self, rows: Data, clauses: list[Bound]) -> Plan:
        numbers = ", ".join(str(each.number) for each in clauses)
        changed = Filter(rows, f"{CLAUSE} IN ({numbers}) AND {ROW_COLUMN} IS NOT NULL")
        return Project(changed, ((FILE_COLUMN, FILE_COLUMN), (ROW_COLUMN, ROW_COLUMN)), "ids")

    def _row_ids_of_updates(self, rows: Data, clauses: list[Bound]) -> _core.RowIds:
        updates = _updates(clauses)
        return self.engine.row_ids(self.engine.run(self._ids(rows, updates))) if updates else _core.RowIds.collect(_no_ids())

    def _updated(self, rows: Data, ids: _core.RowIds, clauses: list[Bound], scope: Mapping[str, Schema], to: WriteTarget) -> list[Plan]:
        """The changed rows, whose `ids` these are: their columns are read now, and only theirs."""
        updates = _updates(clauses)
        if len(ids) == 0:
            return []
        wide = self.planned.scan(self._read_by(updates, scope), alias=self.t, row_ids=True)
        target = replace(
            wide,
            schema=self.schema,
            table_schema=table_schema(self.protocol, self.metadata),
            files=ids.select(wide.files),
            where=(),
            predicate=None,
            row_tracking=to.row_tracking,
        )
        same = " AND ".join(f"{col(self.t)}.{name} = {col(self.s)}.{name}" for name in (FILE_COLUMN, ROW_COLUMN))
        join = Join(target, Filter(rows, _among(updates)), same)
        return [Project(join, (*self._by_clause(updates, scope, keep=True), *tracked_columns(to, self.t)), "u")]

    def _read_by(self, updates: list[Bound], scope: Mapping[str, Schema]) -> tuple[str, ...]:
        """The target's columns that the new values need."""
        texts = [text for each in updates for text in self._values(each, scope, keep=True)]
        return column_names([self.engine.resolve(text, scope) for text in texts], self.schema, self.t)

    def _inserted(self, pairs: Data, counts: Mapping[int, int], to: WriteTarget) -> list[Plan]:
        inserts = [each for each in self.inserts if counts.get(each.number)]
        if not inserts:
            return []
        scope = {self.s: self.source_schema}
        columns = (*self._by_clause(inserts, scope, keep=False), *tracked_columns(to, None))
        return [Project(Filter(pairs, _among(inserts)), columns, "u")]

    def _by_clause(self, clauses: list[Bound], scope: Mapping[str, Schema], *, keep: bool) -> tuple[tuple[str, str], ...]:
        values = [self._values(each, scope, keep=keep) for each in clauses]
        if len(clauses) == 1:
            return tuple(zip(self.schema.names, values[0], strict=True))
        columns = []
        for number, name in enumerate(self.schema.names):
            texts = [each[number] for each in values]
            if all(text == texts[0] for text in texts):
                columns.append((name, texts[0]))
                continue
            whens = " ".join(f"WHEN {col(self.s)}.{CLAUSE} = {each.number} THEN {text}" for each, text in zip(clauses, texts, strict=True))
            columns.append((name, f"CASE {whens} END"))
        return tuple(columns)

    # --- what it reports

    def _metrics(self, counts: Mapping[int, int], changed_rows: int, changed: Changed) -> dict[str, int]:
        def total(clauses: list[Bound], action: str) -> int:
            return sum(counts.get(each.number, 0) for each in clauses if each.clause.action == action)

        inserted = total(self.inserts, "insert")
        updated, orphans_updated = total(self.matched, "update"), total(self.by_source, "update")
        orphans_deleted = total(self.by_source, "delete")
        deleted = changed_rows - updated - orphans_updated - orphans_deleted  # a row with two matches is deleted once
        selection = self.planned.selection
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
            "num_target_files_added": changed.added_files,
            "num_target_files_removed": changed.removed_files,
            "num_target_bytes_added": changed.added_bytes,
            "num_target_bytes_removed": changed.removed_bytes,
            **vector_metrics(changed, "num_target"),
            "num_target_files_scanned": selection.adds.num_rows,
            "num_target_files_skipped": selection.total_files - selection.adds.num_rows,
        }

    def _source_rows(self) -> int:
        counted = Aggregate(self.source, (), (("rows", "count(*)"),))
        return int(pc.sum(self.engine.to_arrow(self.engine.run(counted)).read_all()["rows"]).as_py())


def _with_variants(source: Data, target: Schema, engine: Engine) -> Data:
    """The source with its columns as variants that the target has as such: Arrow has them as structs of two parts."""

    def is_variant(item: Field) -> bool:
        column = target.get(item.name)
        return column is not None and column.type == "variant" and item.type != "variant" and can_store(item.type, "variant")

    typed = Schema([item.with_(type="variant") if is_variant(item) else item for item in source.schema])
    return source if typed == source.schema else engine.conform(source, typed)


def _updates(clauses: list[Bound]) -> list[Bound]:
    return [each for each in clauses if each.clause.action == "update"]


def _among(clauses: list[Bound]) -> str:
    return f"{CLAUSE} IN ({', '.join(str(each.number) for each in clauses)})"


def _no_ids() -> object:
    import pyarrow as pa

    return pa.table({FILE_COLUMN: pa.array([], pa.int32()), ROW_COLUMN: pa.array([], pa.int64())})
