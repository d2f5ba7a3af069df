"""ORDER BY, LIMIT and OFFSET around a query."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from deltaic.errors import InvalidArgumentError
from deltaic.protocol.schema import Schema
from deltaic.relation import values as v
from deltaic.relation.scope import Scope
from deltaic.relation.subqueries import QueryTranslator
from deltaic.relation.translation import Translator
from deltaic.relation.values import Value, unsupported

if TYPE_CHECKING:
    from deltaic.relation.query import Queries, TranslatedQuery


class Ordering:
    """What stands after a query. An item is a position, a name of the output, or an expression over what the query reads (`translator`),
    which then travels as a hidden column."""

    def __init__(self, queries: Queries, node: exp.Expr, translator: Translator | None = None) -> None:
        self._queries = queries
        self._node = node
        self._translator = translator
        self._items: list[str] = []
        self._resolved = False

    def resolve(self, schema: Schema) -> list[tuple[str, Value]]:
        """The hidden columns that the order needs besides the output `schema`."""
        hidden: list[tuple[str, Value]] = []
        order = self._node.args.get("order")
        for item in order.expressions if order is not None else ():
            tree = item.this if isinstance(item, exp.Ordered) else item
            if isinstance(item, exp.Ordered) and item.args.get("with_fill"):
                raise unsupported("WITH FILL")
            value = self._output(tree, schema)
            if value is None:
                translator = self._translator if self._translator is not None else self._over(schema)
                value = self._queries.used(translator.value(tree))
                if self._translator is not None:
                    name = self._queries.fresh("order")
                    hidden.append((name, value))
                    value = value.like(v.name(name), value.type)
            if not v.is_orderable(value.type):
                raise InvalidArgumentError("values of this type have no order", found=v.type_text(value.type))
            descending = isinstance(item, exp.Ordered) and bool(item.args.get("desc"))
            first = isinstance(item, exp.Ordered) and bool(item.args.get("nulls_first"))
            self._items.append(f"{value.sql} {'DESC' if descending else 'ASC'} NULLS {'FIRST' if first else 'LAST'}")
        self._resolved = True
        return hidden

    def around(self, query: TranslatedQuery, *, hidden: bool = False) -> TranslatedQuery:
        """The query in its order, as many rows of it as are asked for."""
        from deltaic.relation.query import TranslatedQuery

        if not self._resolved:
            self.resolve(query.schema)
        tail = limits(self._node)
        if not self._items and not tail:
            return query
        order = f" ORDER BY {', '.join(self._items)}" if self._items else ""
        columns = ", ".join(v.name(name) for name in query.schema.names)
        return TranslatedQuery(f"SELECT {columns} FROM ({query.sql}){order}{tail}", query.schema)

    def _output(self, tree: exp.Expr, schema: Schema) -> Value | None:
        """A column of the output: by position or by its name."""
        if isinstance(tree, exp.Literal) and not tree.is_string:
            position = int(tree.name) if tree.name.isdecimal() else 0
            if not 1 <= position <= len(schema):
                raise InvalidArgumentError("ORDER BY a position that is none", found=tree.name, expected=f"1 to {len(schema)}")
            field = schema[position - 1]
        elif isinstance(tree, exp.Column) and not tree.table and (found := schema.get(tree.name)) is not None:
            field = found
        else:
            return None
        return Value(v.name(field.name), field.type, field.nullable)

    def _over(self, schema: Schema) -> Translator:
        """Expressions over the output alone."""
        return QueryTranslator(
            self._queries, Scope({"": schema}, lambda alias, path: ".".join(v.name(part) for part in path)), self._queries.zone, {}
        )


def limits(node: exp.Expr) -> str:
    """LIMIT and OFFSET, which must be whole numbers."""
    text = ""
    for key, word in (("limit", "LIMIT"), ("offset", "OFFSET")):
        clause = node.args.get(key)
        if clause is None:
            continue
        amount = clause.expression
        if (isinstance(amount, exp.Var) and amount.name.upper() == "ALL") or (
            isinstance(amount, exp.Column) and amount.name.upper() == "ALL"
        ):
            continue
        if not isinstance(amount, exp.Literal) or amount.is_string or not amount.name.isdecimal():
            raise unsupported(f"{word} {clause.sql(dialect='databricks')[:60]}: only a whole number is")
        text += f" {word} {int(amount.name)}"
    return text
