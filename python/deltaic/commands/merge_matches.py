"""Matches the rows of the target and the source of a MERGE: joins them, finds the clause of each pair, and
tells which rows of the target change."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from deltaic import _core
from deltaic.commands.merge_cardinality import cardinality_error
from deltaic.commands.merge_clauses import BoundClause, chosen, conditions
from deltaic.commands.merge_planning import plan_target
from deltaic.errors import MergeCardinalityError
from deltaic.log.snapshot import table_schema
from deltaic.plan.expression import COUNT, Expression, column, columns_of
from deltaic.plan.nodes import (
    FILE_COLUMN,
    ROW_COLUMN,
    Aggregate,
    Data,
    Filter,
    Join,
    JoinKind,
    Plan,
    Project,
    Scan,
    Union,
)
from deltaic.planning.opening import ROW_ID_FIELDS
from deltaic.planning.planned import ScanPlan, column_names
from deltaic.protocol.schema import Field, Schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltaic.engine.engine import Engine
    from deltaic.log.snapshot import Snapshot
    from deltaic.protocol.actions import Metadata, Protocol

CLAUSE = "__deltaic_clause"
"""int: number of the clause that applies to a pair of rows; null if none applies."""
CLAUSE_FIELD = Field(CLAUSE, "integer")
_IDS = tuple(item.with_(nullable=True) for item in ROW_ID_FIELDS)
"""The row id of the target row in a pair; null for a source row without a match."""


@dataclass(kw_only=True, eq=False)
class Matches:
    """The rows of one MERGE to which clauses may apply. The joins run when `pairs` and `orphans` are read for
    the first time; `held` then keeps their rows until the end of the command.

    `protocol`, `metadata`, `schema`: the definition of the target after the MERGE; the schema may have new
        columns.
    `target_alias`: alias of the target; that of the source is `source.alias`.
    `on`: the condition of the join.
    `source_schema`: the columns of the source, as clauses see them.
    `matched`, `inserts`, `by_source`: the clauses of each kind."""

    snapshot: Snapshot
    engine: Engine
    held: ExitStack
    protocol: Protocol
    metadata: Metadata
    schema: Schema
    target_alias: str
    on: Expression
    source: Data
    source_schema: Schema
    matched: list[BoundClause]
    inserts: list[BoundClause]
    by_source: list[BoundClause]

    @cached_property
    def planned(self) -> ScanPlan:
        """The target's files that may contain a match. With clauses by source these are all files, as rows
        without a source row may be in any file."""
        if self.by_source:
            return ScanPlan(self.snapshot, changes=True)
        return plan_target(
            self.snapshot, self.engine, self.on, self.source, self.source.alias, self.target_alias
        )

    @cached_property
    def _table_schema(self) -> _core.TableSchema:
        same = self.metadata is self.snapshot.metadata
        return self.snapshot.table_schema if same else table_schema(self.protocol, self.metadata)

    def target(self, columns: Sequence[str]) -> Scan:
        """Returns the scan of these columns of the target, with row ids."""
        scan = self.planned.scan(tuple(columns), alias=self.target_alias, row_ids=True)
        return replace(scan, schema=self.schema, table_schema=self._table_schema)

    def _target_of(self, expressions: list[Expression]) -> Scan:
        """Returns the scan of the target's columns that these expressions read, with row ids."""
        return self.target(column_names(expressions, self.schema, self.target_alias))

    @cached_property
    def pairs(self) -> Data:
        """The target rows with the source rows that match them, and source rows without a match (row id
        null), if there are inserts. The columns are the source's, the row id and the number of the clause of
        each pair. Pairs to which no clause applies are left out, unless clauses by source need all
        matches."""
        engine, alias = self.engine, self.source.alias
        # Without clauses for matched rows, only the columns of the join condition are read.
        target = self._target_of([self.on, *conditions(self.matched)])
        kind: JoinKind = "right" if self.inserts else "inner"
        columns, ids = columns_of(alias, self.source_schema), columns_of(self.target_alias, _IDS)
        matches = Join(target, self.source, self.on, kind)
        of_match, of_rest = chosen(engine, self.matched), chosen(engine, self.inserts)
        if self.inserts and not conditions(self.inserts):
            # One projection is enough here: the clauses have no conditions, in which a column name could be
            # ambiguous.
            of_pair = engine.compose(
                ("CASE WHEN ", ids[1][1], " IS NOT NULL THEN ", of_match, " ELSE ", of_rest, " END"),
                "integer",
            )
            pairs: Plan = Project(matches, (*columns, *ids, (CLAUSE, of_pair)), alias)
        else:
            pairs = Project(matches, (*columns, *ids, (CLAUSE, of_match)), alias)
            if self.inserts:
                # A separate projection: conditions of inserts can use only the source, so a name without
                # alias is not ambiguous.
                kept, clause = columns_of(alias, _IDS), column(alias, CLAUSE_FIELD)
                of_row = engine.compose(
                    ("CASE WHEN ", kept[1][1], " IS NOT NULL THEN ", clause, " ELSE ", of_rest, " END"),
                    "integer",
                )
                pairs = Project(pairs, (*columns, *kept, (CLAUSE, of_row)), alias)
        if not self.by_source:
            pairs = self._with_clause(pairs)
        return self.held.enter_context(engine.hold(engine.run(pairs), alias))

    @cached_property
    def orphans(self) -> Data | None:
        """The target rows that no source row matches, with the number of their clause by source; None without
        such clauses."""
        if not self.by_source:
            return None
        target = self._target_of(conditions(self.by_source))
        of_pairs = Project(
            Filter(self.pairs, self._is_match), columns_of(self.source.alias, _IDS), "__deltaic_pairs"
        )
        alone = Join(target, of_pairs, self.same_row("__deltaic_pairs"), "left_anti")
        clause = (CLAUSE, chosen(self.engine, self.by_source))
        columns = (*columns_of(self.target_alias, _IDS), clause)
        rows = self._with_clause(Project(alone, columns, self.source.alias))
        return self.held.enter_context(self.engine.hold(self.engine.run(rows), self.source.alias))

    def _with_clause(self, rows: Plan) -> Filter:
        """Returns the rows to which a clause applies."""
        clause = column(self.source.alias, CLAUSE_FIELD)
        return Filter(rows, self.engine.compose((clause, " IS NOT NULL"), "boolean"))

    @cached_property
    def _is_match(self) -> Expression:
        """The condition that a pair has a target row."""
        return self.engine.compose((column(self.source.alias, _IDS[1]), " IS NOT NULL"), "boolean")

    def same_row(self, alias: str) -> Expression:
        """Returns the condition that the target row has the row id under `alias`."""
        (file, other_file), (row, other_row) = (
            (column(self.target_alias, item), column(alias, item)) for item in _IDS
        )
        return self.engine.compose((file, " = ", other_file, " AND ", row, " = ", other_row), "boolean")

    def of_clauses(self, rows: Data, clauses: list[BoundClause]) -> Filter:
        """Returns the rows of these clauses. `rows`: `pairs` or `orphans`."""
        numbers = ", ".join(str(each.number) for each in clauses)
        clause = column(self.source.alias, CLAUSE_FIELD)
        return Filter(rows, self.engine.compose((clause, f" IN ({numbers})"), "boolean"))

    def counts(self) -> dict[int, int]:
        """Counts the rows of each clause, by its number."""
        pairs, orphans = self.pairs, self.orphans
        return self._counts(pairs) | (self._counts(orphans) if orphans is not None else {})

    def _counts(self, rows: Data) -> dict[int, int]:
        keys = columns_of(self.source.alias, [CLAUSE_FIELD])
        grouped = Aggregate(self._with_clause(rows), keys, (("rows", COUNT),))
        table = self.engine.to_table(self.engine.run(grouped))
        return dict(zip(table[CLAUSE].to_pylist(), table["rows"].to_pylist(), strict=True))

    def row_ids(
        self, matched: list[BoundClause], by_source: list[BoundClause], *, unique: bool = False
    ) -> _core.RowIds:
        """Returns the row ids of the target rows to which these clauses apply. `unique`: True to raise
        MergeCardinalityError if a row occurs twice."""
        plans = [self._ids(self.pairs, matched)] if matched else []
        if self.orphans is not None and by_source:
            plans.append(self._ids(self.orphans, by_source))
        if not plans:
            return _core.RowIds.collect(_no_ids())
        changed = Union(tuple(plans)) if len(plans) > 1 else plans[0]
        try:
            return self.engine.row_ids(self.engine.run(changed), unique=unique)
        except MergeCardinalityError as error:
            read = {path[0] for alias, path in self.on.columns if alias == self.source.alias}
            keys = [name for name in self.source_schema.names if name in read]
            files = self.planned.selection.adds
            raise (
                cardinality_error(self.engine, changed, self.pairs, self.source_schema, keys, files) or error
            ) from None

    def _ids(self, rows: Data, clauses: list[BoundClause]) -> Project:
        changed = Filter(self.of_clauses(rows, clauses), self._is_match)
        return Project(changed, columns_of(self.source.alias, _IDS), "ids")


def _no_ids() -> pa.Table:
    return pa.table({FILE_COLUMN: pa.array([], pa.int32()), ROW_COLUMN: pa.array([], pa.int64())})
