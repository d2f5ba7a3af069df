"""Translates ORDER BY, LIMIT and OFFSET of a query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from deltaic.errors import InvalidArgumentError
from deltaic.spark_sql import values as v
from deltaic.spark_sql.nested_values import sort_key
from deltaic.spark_sql.query.scopes import Column, QueryScope
from deltaic.spark_sql.query.subqueries import QueryTranslator
from deltaic.spark_sql.values import Value, unsupported

if TYPE_CHECKING:
    from deltaic.spark_sql.query.queries import Context, Queries, Query


class Ordering:
    """ORDER BY, LIMIT and OFFSET of a query. A sort key is a position in the output, a name of the output, or
    an expression over the columns that the query reads (`translator`); such an expression becomes a hidden
    column of the query."""

    def __init__(
        self,
        queries: Queries,
        node: exp.Expr,
        context: Context,
        translator: QueryTranslator | None = None,
        items: Sequence[tuple[str, exp.Expr]] = (),
    ) -> None:
        self._queries = queries
        self._node = node
        self._context = context
        self._translator = translator
        self._given = items
        self._items: list[str] = []
        self._resolved = False

    def resolve(self, columns: Sequence[Column], values: Sequence[Value] = ()) -> list[tuple[str, Value]]:
        """Resolves the sort keys; returns (label, value) of the hidden columns that they need. `columns`: the
        output of the SELECT;
        `values`: what it computes them from."""
        hidden: list[tuple[str, Value]] = []
        order = self._node.args.get("order")
        for item in order.expressions if order is not None else ():
            tree = item.this if isinstance(item, exp.Ordered) else item
            if isinstance(item, exp.Ordered) and item.args.get("with_fill"):
                raise unsupported("WITH FILL")
            if _is_all(tree):
                self._items += [direction(item, column.value) for column in columns]
                continue
            value = self._output(tree, columns, values)
            if value is None:
                translator = self._translator if self._translator is not None else self._over(columns)
                value = self._queries.used(translator.value(tree))
                _check_no_outer_columns(tree)
                if self._translator is not None:
                    column = self._queries.column("order", value)
                    hidden.append((column.label, value))
                    value = column.value
            self._items.append(direction(item, value))
        self._resolved = True
        return hidden

    def around(self, query: Query) -> Query:
        """Returns the query with ORDER BY, LIMIT and OFFSET around it."""
        from deltaic.spark_sql.query.queries import Query

        if not self._resolved:
            self.resolve(query.columns)
        tail = limits(self._node, QueryTranslator(self._queries, QueryScope(), self._context))
        if not self._items and not tail:
            return query
        order = f" ORDER BY {', '.join(self._items)}" if self._items else ""
        columns = ", ".join(v.name(column.label) for column in query.columns)
        return Query(f"SELECT {columns} FROM ({query.sql}){order}{tail}", query.columns)

    def _output(self, tree: exp.Expr, columns: Sequence[Column], values: Sequence[Value]) -> Value | None:
        """Returns the column of the output that a sort key stands for: by position, by name, or because the
        SELECT has the same expression. Returns None if there is none."""
        if isinstance(tree, exp.Literal) and not tree.is_string and tree.name.isdecimal():
            position = int(tree.name)
            if not 1 <= position <= len(columns):
                raise InvalidArgumentError(
                    "[ORDER_BY_POS_OUT_OF_RANGE] ORDER BY position out of range",
                    found=tree.name,
                    expected=f"1 to {len(columns)}",
                )
            return columns[position - 1].value
        if isinstance(tree, exp.Column) and not tree.table:
            found = [
                index for index, column in enumerate(columns) if column.name.lower() == tree.name.lower()
            ]
            if len({values[index].sql if values else index for index in found}) > 1:
                raise InvalidArgumentError(
                    f"[AMBIGUOUS_REFERENCE] column {tree.name} is ambiguous", found=f"{len(found)} columns"
                )
            return columns[found[0]].value if found else None
        if len(self._given) == len(columns):
            same = next((index for index, (_, item) in enumerate(self._given) if item == tree), None)
            return None if same is None or isinstance(tree, exp.Column) else columns[same].value
        return None

    def _over(self, columns: Sequence[Column]) -> QueryTranslator:
        """Returns a translator of expressions over the output alone."""
        from deltaic.spark_sql.query.scopes import Attribute

        # A column of a SELECT DISTINCT is also found with its table's name: `SELECT DISTINCT t.a FROM t ORDER
        # BY t.a + 1`.
        tables = [tree.table or None if isinstance(tree, exp.Column) else None for _, tree in self._given]
        if len(tables) != len(columns):
            tables = [None] * len(columns)
        attributes = [Attribute(column, table) for column, table in zip(columns, tables, strict=True)]
        return _OverOutput(
            self._queries, QueryScope(attributes, self._context.outer), self._context, self._given, columns
        )


def _check_no_outer_columns(tree: exp.Expr) -> None:
    """InvalidArgumentError where a query in ORDER BY reads columns of the query around it."""
    for query in tree.find_all(exp.Subquery, exp.Exists, exp.In):
        if query.meta.get("outer"):
            raise InvalidArgumentError(
                "[UNSUPPORTED_SUBQUERY_EXPRESSION_CATEGORY.UNSUPPORTED_CORRELATED_SCALAR_SUBQUERY] a query in"
                " ORDER BY reads columns of the query around it",
                expected="the query as a column of SELECT, and its name in ORDER BY",
            )


class _OverOutput(QueryTranslator):
    """Translates expressions over the columns of a query. A column is found by its name, and by its
    expression in the SELECT."""

    def __init__(
        self,
        queries: Queries,
        scope: QueryScope,
        context: Context,
        items: Sequence[tuple[str, exp.Expr]],
        columns: Sequence[Column],
    ) -> None:
        super().__init__(queries, scope, context)
        self._columns = (
            list(zip((tree for _, tree in items), columns, strict=True)) if len(items) == len(columns) else []
        )

    def value(self, node: exp.Expr) -> Value:
        if not isinstance(node, exp.Literal):
            for tree, column in self._columns:
                if tree == node:
                    return column.value
        return super().value(node)


def direction(item: exp.Expr, value: Value) -> str:
    """Returns SQL of a sort key with its direction. As in Spark, nulls come first in ascending order and last
    in descending order, unless the key has NULLS FIRST or NULLS LAST."""
    if not v.is_comparable(value.type):
        raise InvalidArgumentError(
            "[DATATYPE_MISMATCH.INVALID_ORDERING_TYPE] values of this type have no order",
            found=v.type_text(value.type),
        )
    descending = isinstance(item, exp.Ordered) and bool(item.args.get("desc"))
    first = isinstance(item, exp.Ordered) and bool(item.args.get("nulls_first"))
    key = value.sql if isinstance(value.type, str) else sort_key(value.sql, value.type)
    return f"{key} {'DESC' if descending else 'ASC'} NULLS {'FIRST' if first else 'LAST'}"


def _is_all(tree: exp.Expr) -> bool:
    return isinstance(tree, exp.Var) and tree.name.upper() == "ALL"


def limits(node: exp.Expr, translator: QueryTranslator) -> str:
    """Returns SQL of LIMIT and OFFSET. Both must be whole numbers, or arithmetic on literals: `LIMIT 5 +
    5`."""
    text = ""
    for key, word in (("limit", "LIMIT"), ("offset", "OFFSET")):
        clause = node.args.get(key)
        if clause is None:
            continue
        amount = clause.expression
        while isinstance(amount, exp.Paren):
            amount = amount.this
        if isinstance(amount, (exp.Var, exp.Column)) and amount.name.upper() == "ALL":
            continue
        if isinstance(amount, exp.Binary) and (folded := _folded(amount, translator)) is not None:
            text += f" {word} {folded}"
            continue
        if not isinstance(amount, exp.Literal) or amount.is_string or not amount.name.isdecimal():
            shown = amount.sql(dialect="databricks")[:60]
            if isinstance(amount, exp.Neg):
                raise InvalidArgumentError(f"{word} is negative", found=shown, expected="0 or more rows")
            raise unsupported(f"{word} {shown}, which is no whole number,")
        text += f" {word} {int(amount.name)}"
    return text


def _folded(tree: exp.Expr, translator: QueryTranslator) -> int | None:
    """Returns the value of arithmetic on literals, or None for any other expression and for a negative
    value."""
    try:
        found = translator.value(tree).constant
    except InvalidArgumentError:
        return None
    return found if isinstance(found, int) and not isinstance(found, bool) and found >= 0 else None
