"""Computes generated columns in a MERGE, for the rows whose clause does not set their value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from deltaic.commands import generated
from deltaic.commands.data_files import hidden_field
from deltaic.commands.invariants import Rule
from deltaic.commands.merge_matches import CLAUSE, CLAUSE_FIELD
from deltaic.plan.expression import Expression, column
from deltaic.plan.nodes import STORED_ALIAS, Plan, Project
from deltaic.protocol.schema import Field, Schema

if TYPE_CHECKING:
    from deltaic.commands.merge_clauses import BoundClause
    from deltaic.engine.engine import Engine
    from deltaic.protocol.actions import Protocol


class GeneratedValues:
    """Tells for which clauses generated columns of the target are computed: for an insert if the clause does
    not set the column, for an update if it changes a column that the expression reads and does not set the
    generated column."""

    def __init__(
        self, engine: Engine, protocol: Protocol, schema: Schema, clauses: Sequence[BoundClause]
    ) -> None:
        self._engine, self._schema = engine, schema
        self._texts = generated.columns_of(protocol, schema)
        self._computing: dict[str, list[int]] = {name: [] for name in self._texts}
        self._kept_or_given: set[str] = set()
        self._given: set[str] = set()
        for each in clauses if self._texts else ():
            if each.assignments is None:
                continue
            named = each.assignments.columns
            self._given |= named & self._texts.keys()
            if each.clause.action == "insert":
                stale = [name for name in self._texts if name not in named]
            else:
                stale = generated.changed_by(engine, schema, self._texts, named)
            for name in stale:
                self._computing[name].append(each.number)
            self._kept_or_given |= self._texts.keys() - set(stale)

    def is_computed(self, name: str, clause: BoundClause) -> bool:
        """True if the column is computed for rows of the clause."""
        return clause.number in self._computing.get(name, ())

    @property
    def rules(self) -> list[Rule]:
        """Returns the rules for values of generated columns that clauses set."""
        return generated.rules_of({name: text for name, text in self._texts.items() if name in self._given})

    def rows(
        self,
        rows: Plan,
        columns: Sequence[tuple[str, Expression]],
        tracked: Sequence[tuple[str, Expression]],
        alias: str,
    ) -> Plan:
        """Projects `columns` of the table and the hidden columns `tracked` from `rows`, and computes
        generated columns from the others. `rows` have the number of their clause in CLAUSE, under `alias`."""
        if not any(self._computing.values()):
            return Project(rows, (*columns, *tracked), "u")
        number = (CLAUSE, column(alias, CLAUSE_FIELD))
        plan = Project(rows, (*columns, *tracked, number), STORED_ALIAS)
        fields = [*self._schema, *(hidden_field(name) for name, _ in tracked)]
        return Project(plan, tuple((item.name, self._value(item)) for item in fields), "u")

    def _value(self, item: Field) -> Expression:
        kept = column(STORED_ALIAS, item)
        if not (clauses := self._computing.get(item.name)):
            return kept
        value = generated.expression(self._engine, self._schema, item.name, self._texts[item.name])
        if item.name not in self._kept_or_given:
            return value
        number, listed = column(STORED_ALIAS, CLAUSE_FIELD), ", ".join(map(str, clauses))
        return self._engine.compose(
            ("CASE WHEN ", number, f" IN ({listed}) THEN ", value, " ELSE ", kept, " END"), item.type
        )
