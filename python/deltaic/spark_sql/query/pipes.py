"""Translates the pipe syntax: `FROM t |> WHERE a > 1 |> AGGREGATE count(*) AS n GROUP BY b`. Each operator
takes the rows and columns of the operator before it. Columns are found with their table's name until a
SELECT, an AGGREGATE or an AS."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from deltaic.errors import InvalidArgumentError
from deltaic.spark_sql.query.ordering import Ordering
from deltaic.spark_sql.query.pivots import pivoted
from deltaic.spark_sql.query.scopes import Attribute, QueryScope
from deltaic.spark_sql.query.selects import Select, known
from deltaic.spark_sql.query.sources import Rows, Sources
from deltaic.spark_sql.query.subqueries import QueryTranslator, boolean
from deltaic.spark_sql.values import name, unsupported

if TYPE_CHECKING:
    from deltaic.spark_sql.query.queries import Context, Queries, Query


class Pipe:
    """Translates a query and the operators after it."""

    def __init__(self, queries: Queries, context: Context) -> None:
        self._queries = queries
        self._context = context
        self._rows = Rows(queries)
        self._attributes: list[Attribute] = []

    def query(self, first: exp.Expr, operators: Sequence[exp.Expr]) -> Query:
        from deltaic.spark_sql.query.queries import Query

        if first.meta.get("bare"):  # FROM t, without a SELECT: the names of its tables stay
            self._rows, scope = Sources(self._queries, self._context).of(first)  # type: ignore[arg-type]
            self._attributes = list(scope.attributes)
        else:
            self._take(self._queries.query(first, self._context))
        for operator in operators:
            getattr(self, f"_{operator.name.lower()}")(operator)
        columns = tuple(each.column for each in self._attributes if not each.qualified)
        listed = ", ".join(name(column.label) for column in columns)
        return Query(f"SELECT {listed}{self._rows.clause}", columns)

    def _take(self, query: Query, attributes: Sequence[Attribute] | None = None) -> None:
        self._rows = Rows(self._queries)
        self._rows.replace(query.sql)
        self._attributes = list(query.attributes if attributes is None else attributes)

    @property
    def _scope(self) -> QueryScope:
        return QueryScope(self._attributes, self._context.outer)

    def _selected(self, expressions: Sequence[exp.Expr], **clauses: exp.Expr | None) -> Query:
        """Returns a SELECT of `expressions`, with `clauses`, over the current rows."""
        node = exp.Select(
            expressions=list(expressions),
            **{key: value for key, value in clauses.items() if value is not None},
        )
        return Select(self._queries, node, self._context, source=(self._rows, self._scope)).query()

    # --- the operators, by their names

    def _where(self, operator: exp.Expr) -> None:
        self._rows.where(
            boolean(
                QueryTranslator(self._queries, self._scope, self._context), operator.args["condition"]
            ).sql
        )
        self._rows.replace(f"SELECT *{self._rows.clause}")

    def _select(self, operator: exp.Expr) -> None:
        self._take(
            self._selected(
                operator.expressions, distinct=exp.Distinct() if operator.args.get("distinct") else None
            )
        )

    def _extend(self, operator: exp.Expr) -> None:
        visible = [each for each in self._attributes if not each.qualified]
        query = self._selected([*(known(each.column, each.name) for each in visible), *operator.expressions])
        tables = [*(each.table for each in visible), *([None] * len(query.columns))]
        self._take(
            query, [Attribute(column, table) for column, table in zip(query.columns, tables, strict=False)]
        )

    def _set(self, operator: exp.Expr) -> None:
        for assignment in operator.expressions:
            target = self._scope.locate([assignment.this.name]) if isinstance(assignment, exp.EQ) else None
            if target is None:
                raise InvalidArgumentError(
                    "[UNRESOLVED_COLUMN] no such column to set",
                    found=assignment.sql(dialect="databricks")[:60],
                )
            visible = [each for each in self._attributes if not each.qualified]
            trees = [
                exp.alias_(assignment.expression.copy(), each.name, quoted=True)
                if each is target[0]
                else known(each.column, each.name)
                for each in visible
            ]
            query = self._selected(trees)
            self._take(
                query,
                [Attribute(column, each.table) for column, each in zip(query.columns, visible, strict=True)],
            )

    def _drop(self, operator: exp.Expr) -> None:
        for tree in operator.expressions:
            located = self._scope.locate(
                [part.name for part in tree.parts] if isinstance(tree, exp.Column) else [tree.name]
            )
            if located is None:
                raise InvalidArgumentError(
                    f"[UNRESOLVED_COLUMN] no column {tree.name} to drop", found=tree.name
                )
            self._attributes = [each for each in self._attributes if each is not located[0]]
        if not self._attributes:
            raise unsupported("a DROP of all columns")

    def _as(self, operator: exp.Expr) -> None:
        alias = operator.args["alias"].name
        self._attributes = [replace(each, table=alias) for each in self._attributes if not each.qualified]

    def _aggregate(self, operator: exp.Expr) -> None:
        keys = operator.args.get("keys") or []
        bare = [key.this if isinstance(key, exp.Alias) else key for key in keys]
        group = exp.Group(expressions=[key.copy() for key in bare]) if keys else None
        self._take(self._selected([*keys, *operator.expressions], group=group))

    def _join(self, operator: exp.Expr) -> None:
        source = Sources(self._queries, self._context).joined(
            (self._rows, self._attributes), operator.args["join"]
        )
        self._rows, self._attributes = source

    def _union(self, operator: exp.Expr) -> None:
        from deltaic.spark_sql.query.queries import Query

        columns = tuple(each.column for each in self._attributes if not each.qualified)
        listed = ", ".join(name(column.label) for column in columns)
        query = Query(f"SELECT {listed}{self._rows.clause}", columns)
        for other in operator.expressions:
            right = self._queries.query(other, self._context)
            by_name, distinct = bool(operator.args.get("by_name")), bool(operator.args.get("distinct"))
            query = self._queries.combined(
                query, right, operator.args["word"], distinct=distinct, by_name=by_name
            )
        self._take(query)

    def _order(self, operator: exp.Expr) -> None:
        """Applies ORDER BY, LIMIT or OFFSET."""
        from deltaic.spark_sql.query.queries import Query

        self._queries.narrowed(self._attributes)
        columns = tuple(each.column for each in self._attributes)
        translator = QueryTranslator(self._queries, self._scope, self._context, windows=exp.Select())
        ordering = Ordering(self._queries, operator, self._context, translator=translator)
        hidden = ordering.resolve([each.column for each in self._attributes if not each.qualified])
        translator.add_lifted(self._rows)
        extra = "".join(f", {value.sql} AS {name(label)}" for label, value in hidden)
        query = ordering.around(Query(f"SELECT *{extra}{self._rows.clause}", columns))
        self._take(query, self._attributes)

    def _pivot(self, operator: exp.Expr) -> None:
        pivot = operator.args["pivot"]
        self._attributes = pivoted(self._queries, self._context, self._rows, self._attributes, pivot)

    def _sample(self, operator: exp.Expr) -> None:
        source = Sources(self._queries, self._context).sampled(
            (self._rows, self._attributes), operator.args["sample"]
        )
        self._rows, self._attributes = source
