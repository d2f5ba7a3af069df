"""Translates expressions in queries: those of `Translator`, subqueries, which may read columns of outer
queries, and window functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from deltaic.errors import InvalidArgumentError
from deltaic.spark_sql import operators
from deltaic.spark_sql.nested_values import normalized
from deltaic.spark_sql.patterns import bounds_of_like
from deltaic.spark_sql.query.scopes import Column, QueryScope, refuse_collations
from deltaic.spark_sql.scope import fields
from deltaic.spark_sql.translation import Translator
from deltaic.spark_sql.values import Value, combine, unsupported

if TYPE_CHECKING:
    from deltaic.spark_sql.query.queries import Context, Queries, Query
    from deltaic.spark_sql.query.sources import Rows


_COMPARED: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_RANDOM = {
    "rand": ("random()", "double"),
    "random": ("random()", "double"),
    "randn": ("(sqrt(-2 * ln(1 - random())) * cos(2 * pi() * random()))", "double"),
    "uuid": ("CAST(uuid() AS VARCHAR)", "string"),
}
"""Functions without arguments that give another value for each row -> their SQL and type."""


class QueryTranslator(Translator):
    """Translates expressions in queries: also EXISTS, IN (query), scalar subqueries and, if `windows` is
    given, window functions.

    `lifted`: SQL -> column that a layer around the rows computes for these expressions, and the layer's
    level; a window over the values of another window is on a higher level. `grouped`: the rows are groups,
    and aggregates are values. `lifts`: the caller adds these layers by `add_lifted`, so expressions may need
    them."""

    scope: QueryScope
    grouped = False
    lifts = False

    def __init__(
        self, queries: Queries, scope: QueryScope, context: Context, *, windows: exp.Select | None = None
    ) -> None:
        super().__init__(scope, queries.zone)
        self.queries = queries
        self.context = context
        self.lifted: dict[str, tuple[Column, int]] = {}
        self._windows = windows
        self._levels: list[int] = []
        self._conjuncts: set[int] = set()
        self.of_groups_around: Callable[[exp.Expr], Value | None] | None = None
        """Translates aggregates of the outer query's groups while the WHERE of a subquery of its HAVING is
        translated."""

    def value(self, node: exp.Expr) -> Value:
        # a column in place of a star
        if isinstance(node, exp.Column) and (column := node.meta.get("column")) is not None:
            return column.value  # type: ignore[no-any-return]
        if (
            isinstance(node, exp.Dot)
            and node.find(exp.Column) is not None
            and (value := self._field_of_known(node)) is not None
        ):
            return value
        if isinstance(node, exp.Exists):
            return Value(f"EXISTS ({self._within(node.this).sql})", "boolean", nullable=False)
        if isinstance(node, exp.Subquery):
            inner = self._one_column(node)
            # A scalar subquery is computed once for all rows, so no condition around it prevents its errors:
            # `raises` stays false.
            (column,) = inner.columns
            return self.compared_by_bytes(
                node, Value(f"({inner.sql})", column.type, collation=column.collation)
            )
        if (among := _negated(node)) is not None:
            return self._as_spark(node, operators.negate(self._among(among)))
        if isinstance(node, exp.In) and node.args.get("query") is not None:
            return self._as_spark(node, self._among(node))
        if (
            isinstance(node, exp.Binary)
            and isinstance(node.expression, (exp.Any, exp.All))
            and isinstance(node.expression.this, exp.Query)
        ):
            return self._compared_with_each(node)
        if isinstance(node, exp.Window):
            return self._window(node)
        if isinstance(node, exp.Like) and id(node) in self._conjuncts and not node.args.get("negate"):
            return self._bounded(node)
        if (
            self.of_groups_around is not None
            and self._is_outer(node)
            and (value := self.of_groups_around(node)) is not None
        ):
            return value
        if (
            isinstance(node, exp.Anonymous)
            and isinstance(node.this, str)
            and not node.expressions
            and node.this.lower() in _RANDOM
        ):
            return self._random(node.this.lower())
        return super().value(node)

    def _bounded(self, node: exp.Like) -> Value:
        """Returns a condition with LIKE, and with the range that it implies, by which a source that has no
        LIKE can filter."""
        like = super().value(node)
        if not isinstance(node.this, exp.Column) or not isinstance(node.expression, exp.Literal):
            return like
        bounds = bounds_of_like(self.value(node.this), self.value(node.expression))
        return like.like(f"({' AND '.join([*bounds, like.sql])})", "boolean")

    def _is_outer(self, node: exp.Expr) -> bool:
        """True if an expression reads columns, and all of them belong to outer queries."""
        columns = [each for each in node.find_all(exp.Column) if not isinstance(each.this, exp.Star)]
        return bool(columns) and all(
            self.scope.locate([part.name for part in each.parts]) is None for each in columns
        )

    def _field_of_known(self, node: exp.Dot) -> Value | None:
        """Returns a field of an expression that was computed as a column, such as `window(at, '1
        day').start`, or None for any other node."""
        names: list[str] = []
        base: exp.Expr = node
        while isinstance(base, exp.Dot) and isinstance(base.expression, exp.Identifier):
            names.insert(0, base.expression.name)
            base = base.this
        column = base.meta.get("column") if isinstance(base, exp.Column) else None
        return None if column is None else fields(column.value, names)

    def _random(self, name: str) -> Value:
        """Returns a value that is random in each row. It is a column of a layer, so that it is computed once
        even if the SQL of an expression over it uses it several times."""
        if not self.lifts:
            raise unsupported(f"{name}() in this clause")
        sql, kind = _RANDOM[name]
        number = self.queries.fresh("random")  # two calls must become two columns
        return self._in_layer(
            "random", lambda: Value(f"{sql} /* {number} */", kind, False, deterministic=False), always=True
        )

    def _window(self, node: exp.Window) -> Value:
        """Returns the value of a window function: a column of a layer around the rows."""
        from deltaic.spark_sql.query.windows import window

        if self._windows is None:
            raise InvalidArgumentError(
                "[WINDOW_FUNCTION_NOT_ALLOWED_IN_CLAUSE] a window function cannot stand in this clause",
                found=node.sql(dialect="databricks")[:100],
            )
        named = self._windows.args.get("windows") or ()
        return self._in_layer("window", lambda: window(node, self, named), always=True)

    def window_key(self, tree: exp.Expr) -> Value:
        """Returns a key of PARTITION BY or ORDER BY of a window. A key that may fail, such as `ORDER BY a /
        b`, becomes a column of a lower layer, as DuckDB does not allow it within OVER."""
        return self._in_layer("key", lambda: self.value(tree), always=False)

    def _in_layer(self, what: str, translate: Callable[[], Value], *, always: bool) -> Value:
        """Returns a value as a column of a layer around the rows, above the layers whose columns the value
        reads. With `always=False`, only a value that may fail becomes such a column."""
        self._levels.append(0)
        value = translate()
        level = self._levels.pop()
        if always or value.raises:
            if value.sql not in self.lifted:
                self.lifted[value.sql] = self.queries.column(what, self.queries.used(value)), level
            column, level = self.lifted[value.sql]
            value, level = column.value, level + 1
        if self._levels:
            self._levels[-1] = max(self._levels[-1], level)
        return value

    def add_lifted(self, rows: Rows) -> None:
        """Adds to the rows the layers that compute `lifted`."""
        for level in sorted({level for _, level in self.lifted.values()}):
            rows.add([(column.label, text) for text, (column, own) in self.lifted.items() if own == level])
        self.lifted = {}

    def condition(self, node: exp.Expr, *, outer: bool = False, inner: bool = False) -> Value:
        pending = [node]
        while pending:
            tree = pending.pop()
            if isinstance(tree, (exp.Paren, exp.And)):
                pending += [each for each in (tree.this, tree.args.get("expression")) if each is not None]
            else:
                self._conjuncts.add(id(tree))
        return super().condition(node, outer=outer, inner=inner)

    def is_key(self, tree: exp.Expr) -> bool:
        if not isinstance(tree, (exp.EQ, exp.NullSafeEQ)) or tree.find(exp.Query, exp.Lambda) is not None:
            return False
        sides = [
            [self.scope.locate([part.name for part in column.parts]) for column in side.find_all(exp.Column)]
            for side in (tree.this, tree.expression)
        ]
        if not all(side and all(side) for side in sides):
            return False
        left, right = ({found[0].table for found in side if found is not None} for side in sides)
        return left.isdisjoint(right)

    def _within(self, node: exp.Expr) -> Query:
        """Translates a subquery, which may use the columns of this query."""
        outer: list[str] = []

        def find(parts: Sequence[str]) -> Value | None:
            found = self.scope.find(parts)
            if found is not None:
                outer.append(parts[-1])
            return found

        inner = node.this if isinstance(node, exp.Subquery) and not _around(node) else node
        query = self.queries.query(
            inner, replace(self.context, outer=find, aggregate=self.aggregate_within())
        )
        node.meta["outer"] = outer  # Spark shows these columns in the name of a column
        return query

    def aggregate_within(self) -> Callable[[exp.Expr], Value | None] | None:
        """Returns what translates aggregates of this query's rows in the WHERE of a subquery, or None if
        Spark refuses them there."""
        return None

    def _as_spark(self, node: exp.Expr, value: Value) -> Value:
        """Returns IN (query) as Spark computes it: within a condition that filters rows it may be null;
        anywhere else it is false instead, unless it is a literal NULL that is searched for."""
        is_null_of_rows = (_negated(node) or node).meta.get("null_of_rows")
        return (
            value
            if is_null_of_rows or id(node) in self._conjuncts
            else value.like(f"coalesce({value.sql}, false)", "boolean", nullable=False)
        )

    def _among(self, node: exp.In) -> Value:
        """Returns `value IN (query)`. Values are compared as by `=`, also floats and values of different
        types."""
        inner = self._within(node.args["query"])
        refuse_collations(inner.columns, "IN")
        node.meta["columns"] = inner.columns  # for `Queries.note_keys`
        tuples = node.this.expressions if isinstance(node.this, exp.Tuple) else [node.this]
        if len(inner.columns) != len(tuples):
            raise InvalidArgumentError(
                "[DATATYPE_MISMATCH] IN compares as many columns as the query has",
                found=len(inner.columns),
                expected=len(tuples),
            )
        pairs = []
        for tree, column in zip(tuples, inner.columns, strict=True):
            left, right = operators.comparable(self.value(tree), column.value, self.zone, "IN")
            if left.type in ("float", "double"):
                left, right = normalized(left), normalized(right)
            pairs.append((left, right))
        sides = [side for pair in pairs for side in pair]
        if len(pairs) == 1:
            ((left, right),) = pairs
            if _is_null_of_rows(left, node):
                node.meta["null_of_rows"] = True
                sql = f"(CASE WHEN EXISTS ({inner.sql}) THEN CAST(NULL AS BOOLEAN) ELSE false END)"
            else:
                sql = f"({left.sql} IN (SELECT {right.sql} FROM ({inner.sql})))"
        else:
            # Compared column by column: as structs, rows with nulls would be equal in DuckDB.
            equal = " AND ".join(f"({left.sql} = {right.sql})" for left, right in pairs)
            rows = f"EXISTS (SELECT 1 FROM ({inner.sql}) WHERE"
            sql = (
                f"(CASE WHEN {rows} {equal}) THEN true WHEN {rows} ({equal}) IS NULL) THEN NULL ELSE false"
                " END)"
            )
        return combine(sql, "boolean", sides)

    def _compared_with_each(self, node: exp.Binary) -> Value:
        """Returns `value > ANY (query)` or `value > ALL (query)`, which Spark's grammar does not have, by the
        rules of the SQL standard: null if a null decides."""
        operator, word = _COMPARED.get(type(node)), "ANY" if isinstance(node.expression, exp.Any) else "ALL"
        if operator is None:
            raise self.refused(node.expression)
        inner = self._one_column(node.expression.this)
        refuse_collations(inner.columns, word)
        left, right = operators.comparable(self.value(node.this), inner.columns[0].value, self.zone, word)
        if left.type in ("float", "double"):
            left, right = normalized(left), normalized(right)
        return combine(
            f"({left.sql} {operator} {word} (SELECT {right.sql} FROM ({inner.sql})))",
            "boolean",
            [left, right],
            nullable=True,
        )

    def _one_column(self, node: exp.Expr) -> Query:
        inner = self._within(node)
        if len(inner.columns) != 1:
            raise InvalidArgumentError(
                "[INVALID_SUBQUERY_EXPRESSION] a query in an expression gives one column",
                found=[each.name for each in inner.columns],
            )
        return inner

    def refused(self, node: exp.Expr) -> Exception:
        if isinstance(node, (exp.Any, exp.All)):
            return unsupported("ANY or ALL in this place")
        return super().refused(node)


def _is_null_of_rows(value: Value, node: exp.In) -> bool:
    """True for `NULL IN (query)` where the query reads no column of an outer one: Spark's optimizer replaces
    it by null, or by false if the query has no rows."""
    return value.is_constant and value.constant is None and not node.args["query"].meta.get("outer")


def _around(node: exp.Subquery) -> bool:
    return any(
        node.args.get(key) for key in ("order", "limit", "offset", "with_", "pivots", "sample", "joins")
    )


def _negated(node: exp.Expr) -> exp.In | None:
    """Returns the IN (query) of `a NOT IN (query)` or `NOT (a IN (query))`, or None for any other node."""
    if not isinstance(node, exp.Not):
        return None
    inner = node.this
    while isinstance(inner, exp.Paren):
        inner = inner.this
    return inner if isinstance(inner, exp.In) and inner.args.get("query") is not None else None


def boolean(
    translator: QueryTranslator, tree: exp.Expr, *, outer: bool = False, inner: bool = False
) -> Value:
    """Returns the condition of a WHERE, HAVING, QUALIFY or ON. `outer`: ON of an outer join; `inner`: all
    joins of the tables are inner joins."""
    return translator.queries.used(translator.condition(tree, outer=outer, inner=inner))


def where(translator: QueryTranslator, tree: exp.Expr, *, inner: bool) -> Value:
    """Returns the condition of WHERE; `inner` as in `boolean`."""
    translator.of_groups_around = translator.context.aggregate
    value = boolean(translator, tree, inner=inner)
    translator.of_groups_around = None
    return value
