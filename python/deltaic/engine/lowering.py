"""From a plan to one DuckDB query: SQL text, and the Arrow sources that it names.

Expressions go through `relation.duckdb.translate`, the allow-list; everything else here is structure. Names are always quoted.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from deltaic import configuration
from deltaic.protocol.schema import Field, Schema
from deltaic.relation.duckdb import translate
from deltaic.relation.plan import (
    Aggregate,
    Data,
    Filter,
    Join,
    Plan,
    Project,
    Scan,
    Union,
)
from deltaic.scan.opening import scan_schema

if TYPE_CHECKING:
    from deltaic.engine.connection import Work

_JOINS = {
    "inner": "JOIN",
    "left": "LEFT JOIN",
    "right": "RIGHT JOIN",
    "full": "FULL JOIN",
    "left_semi": "SEMI JOIN",
    "left_anti": "ANTI JOIN",
}
_numbers = itertools.count()


def quote(name: str) -> str:
    """A name as DuckDB's SQL."""
    return '"' + name.replace('"', '""') + '"'


@dataclass
class Query:
    """A SELECT in the making. `select` None: all columns under the aliases of `scope`, so that more can be joined and filtered."""

    source: str
    scope: dict[str, Schema]
    where: list[str] = field(default_factory=list)
    select: list[str] | None = None
    group: list[str] = field(default_factory=list)

    def sql(self) -> str:
        columns = ", ".join(self.select if self.select is not None else self._all())
        text = f"SELECT {columns} FROM {self.source}"
        if self.where:
            text += " WHERE " + " AND ".join(f"({condition})" for condition in self.where)
        if self.group:
            text += " GROUP BY " + ", ".join(self.group)
        return text

    def _all(self) -> list[str]:
        return [f"{quote(alias)}.{quote(name)}" for alias, schema in self.scope.items() for name in schema.names] or ["1"]

    def as_source(self) -> Query:
        """The same rows as something to select from."""
        if self.select is None and not self.where:
            return self
        if self.select is None and len(self.scope) > 1:
            return self  # whoever joins it says that it must be projected first
        alias = next(iter(self.scope))
        return Query(f"({self.sql()}) AS {quote(alias)}", self.scope)


@dataclass
class Lowered:
    """`schema`: the columns in order. `leaves`: name in the query -> opens it for a piece of work. `constants`: SQL that has to be computed
    before the query is (`relation.values.Value.constants`)."""

    sql: str
    schema: Schema
    leaves: Mapping[str, Callable[[Work], Any]]
    constants: Sequence[str] = ()


@dataclass(frozen=True)
class Leaf:
    """What the rows of a leaf come from: the table `name`, or an Arrow source that `opener` opens. `schema`: its columns, those that
    only `where` (what is left of the leaf's conditions) reads included."""

    schema: Schema
    name: str | None = None
    opener: Callable[[Work], Any] | None = None
    where: Sequence[str] = ()


class Lowering:
    """Lowers one plan."""

    def __init__(self, open_leaf: Callable[[Scan | Data], Leaf]) -> None:
        self._open_leaf = open_leaf
        self._leaves: dict[str, Callable[[Work], Any]] = {}
        self._constants: dict[str, None] = {}

    def lower(self, plan: Plan) -> Lowered:
        query = self._query(plan)
        if len(query.scope) != 1:
            raise ValueError("a join must be projected before it is run")
        return Lowered(query.sql(), next(iter(query.scope.values())), self._leaves, tuple(self._constants))

    def _query(self, plan: Plan) -> Query:
        if isinstance(plan, (Scan, Data)):
            return self._leaf(plan)
        if isinstance(plan, Filter):
            return self._filter(plan)
        if isinstance(plan, Project):
            return self._project(plan)
        if isinstance(plan, Join):
            return self._join(plan)
        if isinstance(plan, Union):
            return self._union(plan)
        return self._aggregate(plan)

    def _leaf(self, plan: Scan | Data) -> Query:
        leaf = self._open_leaf(plan)
        name = leaf.name
        if leaf.opener is not None:
            name = f"__deltaic_source_{next(_numbers)}"
            self._leaves[name] = leaf.opener
        query = Query(f"{quote(name or '')} AS {quote(plan.alias)}", {plan.alias: leaf.schema})
        query.where = [self._sql(text, query)[0] for text in leaf.where]
        query.scope = {plan.alias: scan_schema(plan) if isinstance(plan, Scan) else plan.schema}
        return query

    def _filter(self, plan: Filter) -> Query:
        query = self._query(plan.input)
        if query.select is not None:
            query = query.as_source()
        condition, _ = self._sql(plan.condition, query)
        return replace(query, where=[*query.where, condition])

    def _project(self, plan: Project) -> Query:
        query = self._query(plan.input)
        if query.select is not None:
            query = query.as_source()
        select, fields = self._columns(plan.columns, query)
        return replace(query, select=select, scope={plan.alias: Schema(fields)})

    def _join(self, plan: Join) -> Query:
        left, right = self._query(plan.left).as_source(), self._query(plan.right).as_source()
        if left.where or right.where:
            raise ValueError("project a filtered join before it is joined again")
        scope = {**left.scope, **right.scope}
        if len(scope) != len(left.scope) + len(right.scope):
            raise ValueError(f"both sides of a join use one alias: {sorted(set(left.scope) & set(right.scope))}")
        condition, _ = self._translated(plan.condition, scope)
        source = f"{left.source} {_JOINS[plan.kind]} {right.source} ON ({condition})"
        kept = left.scope if plan.kind in ("left_semi", "left_anti") else scope
        return Query(source, dict(kept))

    def _union(self, plan: Union) -> Query:
        queries = [self._query(item) for item in plan.inputs]
        schema = next(iter(queries[0].scope.values()))
        text = " UNION ALL ".join(f"({query.sql()})" for query in queries)
        return Query(f"({text}) AS {quote(plan.alias)}", {plan.alias: schema})

    def _aggregate(self, plan: Aggregate) -> Query:
        query = self._query(plan.input)
        if query.select is not None:
            query = query.as_source()
        select, fields = self._columns(plan.keys, query)
        for name, text in plan.columns:
            sql, data_type = self._aggregated(text, query)
            select.append(f"{sql} AS {quote(name)}")
            fields.append(Field(name, data_type))
        group = [str(number + 1) for number in range(len(plan.keys))]
        return replace(query, select=select, scope={plan.alias: Schema(fields)}, group=group)

    def _columns(self, columns: tuple[tuple[str, str], ...], query: Query) -> tuple[list[str], list[Field]]:
        select, fields = [], []
        for name, text in columns:
            sql, data_type = self._sql(text, query)
            select.append(f"{sql} AS {quote(name)}")
            fields.append(Field(name, data_type))
        return select, fields

    def _aggregated(self, text: str, query: Query) -> tuple[str, Any]:
        """`count(*)`, `min(...)`, `max(...)`: what the commands compute over groups."""
        if text == "count(*)":
            return "count(*)", "long"
        function, inner = text[:3], text[4:-1]
        if function not in ("min", "max") or text[3] != "(" or text[-1] != ")":
            raise ValueError(f"not an aggregate of the plan: {text}")
        sql, data_type = self._sql(inner, query)
        return f"{function}({sql})", data_type

    def _sql(self, text: str, query: Query) -> tuple[str, Any]:
        return self._translated(text, query.scope)

    def _translated(self, text: str, scope: Mapping[str, Schema]) -> tuple[str, Any]:
        """An expression over aliased columns as DuckDB's SQL, and its Delta type."""
        translated = translate(text, scope, column_sql=_column, time_zone=configuration.current().time_zone)
        self._constants.update(dict.fromkeys(translated.constants))
        return translated.sql, translated.type


def _column(alias: str, path: tuple[str, ...]) -> str:
    """A column or a struct's field; the parentheses keep DuckDB from reading the alias as a schema."""
    whole = f"{quote(alias)}.{quote(path[0])}"
    return whole if len(path) == 1 else f"({whole})" + "".join(f".{quote(part)}" for part in path[1:])
