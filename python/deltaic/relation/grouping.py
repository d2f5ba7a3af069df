"""GROUP BY: keys and aggregates are computed by an inner query, and everything else is an expression over its columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from deltaic.errors import InvalidArgumentError
from deltaic.relation import values as v
from deltaic.relation.aggregates import aggregate, count_rows, normalized
from deltaic.relation.scope import Scope, fields
from deltaic.relation.subqueries import QueryTranslator
from deltaic.relation.translation import AGGREGATES
from deltaic.relation.values import Value, unsupported

if TYPE_CHECKING:
    from deltaic.relation.query import Queries

_NAMES = (exp.Column, exp.Identifier, exp.Dot)


def holds_aggregate(tree: exp.Expr) -> bool:
    """Whether an aggregate function stands in it, outside of queries within."""
    if isinstance(tree, exp.Query):
        return False
    return _is_aggregate(tree) or any(holds_aggregate(child) for child in tree.iter_expressions())


def _is_aggregate(node: exp.Expr) -> bool:
    return isinstance(node, exp.Filter) or (
        isinstance(node, exp.Anonymous) and isinstance(node.this, str) and node.this.lower() in AGGREGATES
    )


class GroupedTranslator(QueryTranslator):
    """Expressions above a grouping: its keys and aggregates are columns, any other column is an error."""

    def __init__(self, queries: Queries, inner: QueryTranslator, items: Sequence[tuple[str, exp.Expr]], node: exp.Select) -> None:
        super().__init__(queries, Scope({}, lambda alias, path: ""), inner.zone, inner.defined)
        self._inner = inner
        self._items = items
        self._alias = queries.fresh("groups")
        self._keys: dict[str, Value] = {}
        self._columns: dict[str, str] = {}  # of the inner query: name -> SQL, keys first
        self._aggregates: dict[str, Value] = {}
        for number, tree in enumerate(self._key_trees(node.args.get("group"))):
            value = normalized(queries.used(inner.value(tree)))
            name = f"key_{number}"
            self._keys.setdefault(self._text(tree), self._named(name, value))
            self._columns[name] = value.sql
        self._key_count = len(self._columns)

    def _key_trees(self, group: exp.Group | None) -> list[exp.Expr]:
        if group is None:
            return []
        if any(value for key, value in group.args.items() if key not in ("expressions", "all")):
            raise unsupported("ROLLUP, CUBE and GROUPING SETS")
        if group.args.get("all"):
            return [tree for _, tree in self._items if not holds_aggregate(tree)]
        return [self._key_tree(tree) for tree in group.expressions]

    def _key_tree(self, tree: exp.Expr) -> exp.Expr:
        """A key as it stands, or the column of the SELECT that a number or an alias names; a column of the tables comes first."""
        if isinstance(tree, exp.Literal) and not tree.is_string:
            position = int(tree.name) if tree.name.isdecimal() else 0
            if not 1 <= position <= len(self._items):
                raise InvalidArgumentError("GROUP BY a position that is none", found=tree.name, expected=f"1 to {len(self._items)}")
            return self._without_aggregate(self._items[position - 1][1])
        if isinstance(tree, exp.Column) and not tree.table and self._path(tree) is None:
            for name, item in self._items:
                if name.lower() == tree.name.lower():
                    return self._without_aggregate(item)
        return self._without_aggregate(tree)

    def _without_aggregate(self, tree: exp.Expr) -> exp.Expr:
        if holds_aggregate(tree):
            raise InvalidArgumentError(
                "[GROUP_BY_AGGREGATE] an aggregate function cannot be grouped by", found=tree.sql(dialect="databricks")
            )
        return tree

    def _named(self, name: str, value: Value) -> Value:
        return Value(f"{v.name(self._alias)}.{v.name(name)}", value.type, value.nullable)

    def sql(self, source: str, where: str) -> str:
        """The inner query, with its alias; to be asked once all expressions above it are translated."""
        columns = ", ".join(f"{text} AS {v.name(name)}" for name, text in self._columns.items()) or "count(*) AS unused"
        grouped = f" GROUP BY {', '.join(str(number + 1) for number in range(self._key_count))}" if self._key_count else ""
        rows = f" FROM {source}" if source else ""
        return f"(SELECT {columns}{rows}{where}{grouped}) AS {v.name(self._alias)}"

    def value(self, node: exp.Expr) -> Value:
        if (key := self.known(node)) is not None:
            return key
        if _is_aggregate(node):
            return self._aggregate(node)
        if isinstance(node, _NAMES):
            return self._name(node)
        return super().value(node)

    def known(self, node: exp.Expr) -> Value | None:
        return self._keys.get(self._text(node))

    def _name(self, node: exp.Expr) -> Value:
        """A field of a key, a parameter of a lambda function, or an alias of the SELECT (in HAVING and ORDER BY)."""
        if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier):
            return fields(self.value(node.this), [node.expression.name])
        parts = [part.name for part in node.parts] if isinstance(node, exp.Column) else [node.name]
        path = self._path(node)
        if path is None:
            for name, item in self._items:
                if len(parts) == 1 and name.lower() == parts[0].lower() and item is not node:
                    return self.value(item)
            return self.scope.resolve(parts)
        alias, names = path
        for length in range(len(names) - 1, 0, -1):
            if (key := self._keys.get(_path_text(alias, names[:length]))) is not None:
                return fields(key, names[length:])
        shown = ".".join(parts)
        raise InvalidArgumentError(f"[MISSING_AGGREGATION] column {shown} is neither grouped nor aggregated", found=shown)

    def _aggregate(self, node: exp.Expr) -> Value:
        text = self._text(node)
        if (known := self._aggregates.get(text)) is not None:
            return known
        condition = None
        call = node
        if isinstance(node, exp.Filter):
            call, condition = node.this, node.expression.this
        if not isinstance(call, exp.Anonymous):
            raise unsupported(f"FILTER on {call.sql(dialect='databricks')[:60]}")
        value = self._call(call, condition)
        name = f"aggregate_{len(self._aggregates)}"
        self._columns[name] = value.sql
        self._aggregates[text] = self._named(name, value)
        return self._aggregates[text]

    def _call(self, node: exp.Anonymous, condition: exp.Expr | None) -> Value:
        arguments, distinct = list(node.expressions), False
        if len(arguments) == 1 and isinstance(arguments[0], exp.Distinct):
            arguments, distinct = list(arguments[0].expressions), True
        function = node.this.lower()
        if any(holds_aggregate(argument) for argument in arguments):
            raise InvalidArgumentError(
                "[NESTED_AGGREGATE_FUNCTION] an aggregate in an aggregate", found=node.sql(dialect="databricks")[:100]
            )
        if function == "count" and len(arguments) == 1 and isinstance(arguments[0], exp.Star):
            if condition is None:
                return count_rows()
            arguments = [exp.Literal.number(1)]
        values = [self._inner.value(argument) for argument in arguments]
        if condition is not None:
            if function in ("first", "first_value", "any_value", "last", "last_value"):
                raise unsupported(f"FILTER on {function}")
            kept = self.queries.used(self._inner.value(condition))
            if kept.type != "boolean":
                raise v.mismatch("FILTER", kept.type)
            holds = kept.sql
            values = [value.like(f"(CASE WHEN {holds} THEN {value.sql} END)", value.type, nullable=True) for value in values]
        return self.queries.used(aggregate(function, values, distinct, self.zone))

    def _path(self, node: exp.Expr) -> tuple[str, tuple[str, ...]] | None:
        """The column that a name means below the grouping, with its fields; None where there is none."""
        parts = [part.name for part in node.parts] if isinstance(node, exp.Column) else [node.name]
        scope = self._inner.scope
        known = set(scope.columns)
        try:
            scope.columns.clear()
            scope.resolve(parts)
            ((alias, path),) = scope.columns
        except InvalidArgumentError as error:
            if "AMBIGUOUS" in str(error):
                raise
            return None
        finally:
            scope.columns |= known
        return alias, path

    def _text(self, node: exp.Expr) -> str:
        """The same text for the same expression: names as what they mean, functions in lower case."""
        if isinstance(node, exp.Paren):
            return self._text(node.this)
        if isinstance(node, exp.Column) and not isinstance(node.this, exp.Star) and (path := self._path(node)) is not None:
            return _path_text(*path)
        if isinstance(node, exp.Literal):
            return node.sql(dialect="databricks")
        parts = []
        for key, item in sorted(node.args.items()):
            for each in item if isinstance(item, list) else [item]:
                if isinstance(each, exp.Expr):
                    parts.append(f"{key}={self._text(each)}")
                elif each not in (None, False, ""):
                    parts.append(f"{key}={str(each).lower() if isinstance(node, exp.Anonymous) else each}")
        return f"{type(node).__name__}({', '.join(parts)})"


def _path_text(alias: str, path: Sequence[str]) -> str:
    return "column " + " ".join(v.name(part) for part in (alias, *path))
