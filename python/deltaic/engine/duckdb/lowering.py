"""Converts a plan to one DuckDB query: its SQL text, and the Arrow sources that the text names.

The expressions of a plan are SQL of DuckDB already (`spark_sql.expression`). This module adds SELECT, FROM,
WHERE, joins and groups around them, and quotes every name.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from deltaic.plan.expression import Expression, GroupAggregate
from deltaic.plan.nodes import (
    Aggregate,
    Data,
    Filter,
    Join,
    Plan,
    Project,
    Scan,
    Union,
)
from deltaic.planning.opening import scan_schema
from deltaic.protocol.schema import Array, DataType, Field, Map, Schema, Struct
from deltaic.spark_sql.expression import column_sql, value_of
from deltaic.sql_text import duckdb_name

if TYPE_CHECKING:
    from deltaic.engine.duckdb.connection import Work
    from deltaic.spark_sql.query.queries import TableColumn

_JOINS = {
    "inner": "JOIN",
    "left": "LEFT JOIN",
    "right": "RIGHT JOIN",
    "full": "FULL JOIN",
    "left_semi": "SEMI JOIN",
    "left_anti": "ANTI JOIN",
}
_numbers = itertools.count()


@dataclass
class Query:
    """A SELECT under construction. `select` None: all columns under the aliases of `scope`, so that more can
    be joined and filtered."""

    source: str
    scope: dict[str, Schema]
    where: list[str] = field(default_factory=list)
    select: list[str] | None = None
    group: list[str] = field(default_factory=list)
    origins: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)
    """Columns with maps that are copies of a leaf's column: (alias, name) -> (leaf, name)."""

    def sql(self) -> str:
        columns = ", ".join(self.select if self.select is not None else self._all())
        text = f"SELECT {columns} FROM {self.source}"
        if self.where:
            text += " WHERE " + " AND ".join(f"({condition})" for condition in self.where)
        if self.group:
            text += " GROUP BY " + ", ".join(self.group)
        return text

    def _all(self) -> list[str]:
        return [
            f"{duckdb_name(alias)}.{duckdb_name(name)}"
            for alias, schema in self.scope.items()
            for name in schema.names
        ] or ["1"]

    def as_source(self) -> Query:
        """Returns these rows as a query that another query can select from."""
        if self.select is None and not self.where:
            return self
        if self.select is None and len(self.scope) > 1:
            return self  # a join of these rows raises an error that asks for a projection
        alias = next(iter(self.scope))
        return Query(f"({self.sql()}) AS {duckdb_name(alias)}", self.scope, origins=self.origins)


@dataclass
class LoweredQuery:
    """`schema`: the columns in order. `leaves`: name in the query -> opens it for a piece of work.
    `constants`: SQL that has to be computed before the query is (`spark_sql.values.Value.constants`).
    `entries`: columns whose maps come as lists of entries."""

    sql: str
    schema: Schema
    leaves: Mapping[str, Callable[[Work], Any]]
    constants: Sequence[str] = ()
    entries: frozenset[str] = frozenset()
    rows: Mapping[str, int | None] = field(default_factory=dict)
    """Estimated number of rows of each leaf, by its name in the query."""
    once: Sequence[str] = ()
    """Leaves that the query reads in one place only, provided that DuckDB computes each query in `shared`
    once."""
    shared: Sequence[str] = ()
    """Names that WITH defines and that the query reads in several places."""
    keys: Sequence[tuple[TableColumn, TableColumn]] = ()
    """Columns (leaf, name) of two leaves: the query needs no row of the second leaf without an equal one in
    the first."""
    learned: dict[str, tuple[str, ...]] | None = None
    """Filters that DuckDB pushed to each leaf in the first run of the query, which the next run applies
    without a first plan (`TranslatedQuery.learned`); None before the first run."""


@dataclass(frozen=True)
class Leaf:
    """Source of the rows of a leaf: the table `name`, or an Arrow source that `opener` opens. `schema`: its
    columns, those that only `where` (what is left of the leaf's conditions) reads included. `maps`: columns
    that `with_entries` can open with lists of entries in place of maps, where no expression reads them."""

    schema: Schema
    name: str | None = None
    opener: Callable[[Work], Any] | None = None
    where: Sequence[Expression] = ()
    maps: frozenset[str] = frozenset()
    with_entries: Callable[[frozenset[str]], Callable[[Work], Any]] | None = None
    rows: int | None = None
    """Estimated number of rows of the leaf; None if unknown."""


class Lowering:
    """Translates one plan to a `LoweredQuery`."""

    def __init__(self, open_leaf: Callable[[Scan | Data], Leaf], time_zone: str) -> None:
        self._open_leaf, self._time_zone = open_leaf, time_zone
        self._leaves: dict[str, Callable[[Work], Any]] = {}
        self._constants: dict[str, None] = {}
        # By leaf: columns with maps that no expression has read so far
        self._copied: dict[str, set[str]] = {}
        self._with_maps: dict[str, Leaf] = {}

    def lower(self, plan: Plan) -> LoweredQuery:
        query = self._query(plan)
        if len(query.scope) != 1:
            raise ValueError("a join must be projected before it is run")
        for name, leaf in self._with_maps.items():
            if leaf.with_entries is not None and self._copied[name]:
                self._leaves[name] = leaf.with_entries(frozenset(self._copied[name]))
        entries = frozenset(
            name
            for (_, name), (leaf_name, column) in query.origins.items()
            if column in self._copied[leaf_name]
        )
        return LoweredQuery(
            query.sql(), next(iter(query.scope.values())), self._leaves, tuple(self._constants), entries
        )

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
        query = Query(f"{duckdb_name(name or '')} AS {duckdb_name(plan.alias)}", {plan.alias: leaf.schema})
        if name is not None and leaf.maps:
            self._copied[name], self._with_maps[name] = set(leaf.maps), leaf
            query.origins = {(plan.alias, column): (name, column) for column in leaf.maps}
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
        select, fields, copies = self._columns(plan.columns, query)
        origins = {(plan.alias, name): origin for name, origin in copies.items()}
        return replace(query, select=select, scope={plan.alias: Schema(fields)}, origins=origins)

    def _join(self, plan: Join) -> Query:
        left, right = self._query(plan.left).as_source(), self._query(plan.right).as_source()
        if left.where or right.where:
            raise ValueError("project a filtered join before it is joined again")
        scope = {**left.scope, **right.scope}
        if len(scope) != len(left.scope) + len(right.scope):
            raise ValueError(
                f"both sides of a join use one alias: {sorted(set(left.scope) & set(right.scope))}"
            )
        origins = {**left.origins, **right.origins}
        condition, _ = self._translated(plan.condition, scope, origins)
        source = f"{left.source} {_JOINS[plan.kind]} {right.source} ON ({condition})"
        kept = left.scope if plan.kind in ("left_semi", "left_anti") else scope
        return Query(
            source, dict(kept), origins={key: origin for key, origin in origins.items() if key[0] in kept}
        )

    def _union(self, plan: Union) -> Query:
        queries = [self._query(item) for item in plan.inputs]
        for query in queries:  # each input may return its maps in another form
            self._read(query.origins.values())
        schema = next(iter(queries[0].scope.values()))
        text = " UNION ALL ".join(f"({query.sql()})" for query in queries)
        return Query(f"({text}) AS {duckdb_name(plan.alias)}", {plan.alias: schema})

    def _aggregate(self, plan: Aggregate) -> Query:
        query = self._query(plan.input)
        if query.select is not None:
            query = query.as_source()
        select, fields, origins = self._columns(plan.keys, query)
        self._read(origins.values())
        for name, aggregated in plan.columns:
            sql, data_type = self._aggregated(aggregated, query)
            select.append(f"{sql} AS {duckdb_name(name)}")
            fields.append(Field(name, data_type))
        group = [str(number + 1) for number in range(len(plan.keys))]
        return replace(query, select=select, scope={plan.alias: Schema(fields)}, group=group, origins={})

    def _columns(
        self, columns: tuple[tuple[str, Expression], ...], query: Query
    ) -> tuple[list[str], list[Field], dict[str, tuple[str, str]]]:
        """Returns SQL and fields of a projection, and which of its columns are plain copies of a leaf's
        columns with maps."""
        select, fields, origins = [], [], {}
        copies = {column_sql(alias, (name,)): origin for (alias, name), origin in query.origins.items()}
        for name, value in columns:
            sql, data_type = self._translated(value, query.scope, query.origins, copies=copies)
            if sql in copies:
                origins[name] = copies[sql]
            select.append(f"{sql} AS {duckdb_name(name)}")
            fields.append(Field(name, data_type))
        return select, fields, origins

    def _read(self, origins: Iterable[tuple[str, str]]) -> None:
        """Notes that an expression reads these columns, so that their maps must not be lists of entries."""
        for leaf, column in origins:
            self._copied[leaf].discard(column)

    def _aggregated(self, aggregated: GroupAggregate, query: Query) -> tuple[str, Any]:
        if aggregated.argument is None:
            return "count(*)", "long"
        sql, data_type = self._sql(aggregated.argument, query)
        return f"{aggregated.function}({sql})", data_type

    def _sql(self, expression: Expression, query: Query) -> tuple[str, Any]:
        return self._translated(expression, query.scope, query.origins)

    def _translated(
        self,
        expression: Expression,
        scope: Mapping[str, Schema],
        origins: Mapping[tuple[str, str], tuple[str, str]],
        *,
        copies: Container[str] = (),
    ) -> tuple[str, Any]:
        """Translates an expression over aliased columns to DuckDB's SQL and its Delta type. An expression
        whose SQL is in `copies` counts as reading no column."""
        value = value_of(expression, self._time_zone)
        if origins and value.sql not in copies:
            read = [(alias, path) for alias, path in expression.columns if (alias, path[0]) in origins]
            self._read(
                origins[alias, path[0]] for alias, path in read if has_map(scope[alias].find(path)[1].type)
            )
        self._constants.update(dict.fromkeys(value.constants))
        for name, leaf in expression.sources.items():
            if (opener := self._open_leaf(leaf).opener) is not None:
                self._leaves[name] = opener
        return value.sql, value.type


def columns_with_maps(schema: Schema) -> frozenset[str]:
    """Returns the names of the columns that are maps or contain a map."""
    return frozenset(item.name for item in schema if has_map(item.type))


def has_map(data_type: DataType) -> bool:
    """True if values of this type contain a map."""
    if isinstance(data_type, Struct):
        return any(has_map(item.type) for item in data_type.fields)
    return isinstance(data_type, Map) or (isinstance(data_type, Array) and has_map(data_type.element))
