"""Translates GROUP BY with ROLLUP, CUBE and GROUPING SETS. An inner query computes the keys and aggregate
functions; all other expressions are computed over its columns."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from deltaic.errors import InvalidArgumentError
from deltaic.spark_sql import values as v
from deltaic.spark_sql.nested_values import grouped
from deltaic.spark_sql.query import generators
from deltaic.spark_sql.query.aggregate_calls import (
    AggregateCall,
    aggregate_call,
    holds_aggregate,
    is_aggregate,
)
from deltaic.spark_sql.query.scopes import QueryScope
from deltaic.spark_sql.query.subqueries import QueryTranslator
from deltaic.spark_sql.scope import fields
from deltaic.spark_sql.values import Value, unsupported

if TYPE_CHECKING:
    from deltaic.spark_sql.query.queries import Queries
    from deltaic.spark_sql.query.sources import Rows

_OF_GROUPING = ("grouping", "grouping_id", "grouping__id")
MAX_SETS = 4_096
"""Maximum number of grouping sets of a query, which is the number of CUBE with twelve keys; more raise
InvalidArgumentError."""


class GroupedScope(QueryScope):
    """The names in expressions over groups: the keys. The name of a column that is no key raises an error,
    unless something else has this name."""

    def __init__(self, below: QueryScope, key: Callable[[Sequence[str]], Value | None]) -> None:
        super().__init__(below.attributes, below.outer)
        self._key = key

    def own(self, parts: Sequence[str]) -> Value | None:
        if (key := self._key(parts)) is not None:
            return key
        if self.locate(parts) is None:
            return None
        if parts[0].lower() in self.aliases and len(parts) == 1:
            return None
        shown = ".".join(parts)
        raise InvalidArgumentError(
            f"[MISSING_AGGREGATION] column {shown} is neither grouped nor aggregated", found=shown
        )


class GroupedTranslator(QueryTranslator):
    """Translates expressions over groups. Keys and aggregate functions are columns of the inner query; any
    other column raises an error."""

    scope: GroupedScope
    grouped = True

    def __init__(
        self,
        queries: Queries,
        below: QueryTranslator,
        items: Sequence[tuple[str, exp.Expr]],
        node: exp.Select,
    ) -> None:
        super().__init__(queries, GroupedScope(below.scope, self._key_of), below.context, windows=node)
        self._below = below
        self._items = items
        self._keys: dict[str, int] = {}
        """Text of a key's tree -> index of the key in `_labels`."""
        self._labels: list[tuple[str, Value]] = []
        """Label of each key, and its value over the rows before grouping."""
        self._aggregates: dict[str, tuple[str, Value]] = {}
        """Text of an aggregate's tree -> its label in the inner query, and the value that computes it."""
        group = node.args.get("group")
        self._sets = self._grouping_sets(group) if group is not None else None
        self.filters = False
        """True while HAVING is translated: subqueries in HAVING may use aggregates of these groups."""

    # --- keys

    def _grouping_sets(self, group: exp.Group) -> list[tuple[int, ...]] | None:
        """Returns the sets of keys to group by, each as indexes of keys. Returns None if all keys are a
        single set."""
        unknown = [
            key
            for key, value in group.args.items()
            if value and key not in ("expressions", "all", "rollup", "cube", "grouping_sets")
        ]
        if unknown:
            raise unsupported(f"GROUP BY with {', '.join(unknown)}")
        if group.args.get("all"):
            for _, tree in self._items:
                if (
                    not holds_aggregate(tree)
                    and generators.call(tree) is None
                    and tree.find(exp.Window) is None
                ):
                    self._place(tree)
            return None
        parts: list[list[tuple[int, ...]]] = []
        trailing = [
            *(group.args.get("rollup") or ()),
            *(group.args.get("cube") or ()),
            *(group.args.get("grouping_sets") or ()),
        ]
        if any(isinstance(tree, exp.Tuple) and not tree.expressions for tree in group.expressions):
            raise InvalidArgumentError(
                "SQL does not parse: GROUP BY ()", expected="an expression in the brackets"
            )
        plain = [
            tree
            for tree in group.expressions
            if not isinstance(tree, (exp.Rollup, exp.Cube, exp.GroupingSets))
        ]
        if len(trailing) == 1 and not trailing[0].expressions and len(plain) == len(group.expressions):
            # GROUP BY a, b WITH ROLLUP
            parts = [self._sets_of(trailing[0], plain)]
        elif len(trailing) == 1 and isinstance(trailing[0], exp.GroupingSets) and plain:
            # GROUP BY a, b GROUPING SETS (...)
            for tree in plain:
                self._place(self._key_tree(tree))
            parts = [self._sets_of(trailing[0], trailing[0].expressions)]
        else:
            for tree in (*group.expressions, *trailing):
                if isinstance(tree, (exp.Rollup, exp.Cube, exp.GroupingSets)):
                    parts.append(self._sets_of(tree, tree.expressions))
                else:
                    parts.append([(self._place(self._key_tree(tree)),)])
            if (
                all(len(part) == 1 for part in parts)
                and not trailing
                and len(plain) == len(group.expressions)
            ):
                return None
        if (count := math.prod(len(part) for part in parts)) > MAX_SETS:
            raise InvalidArgumentError("too many grouping sets", found=count, expected=f"at most {MAX_SETS}")
        return [tuple(dict.fromkeys(itertools.chain(*chosen))) for chosen in itertools.product(*parts)]

    def _sets_of(self, kind: exp.Expr, trees: Sequence[exp.Expr]) -> list[tuple[int, ...]]:
        """Returns the sets of a ROLLUP, CUBE or GROUPING SETS: of ROLLUP (a, b), the sets (a, b), (a) and
        ()."""
        if isinstance(kind, exp.GroupingSets):
            found: list[tuple[int, ...]] = []
            for tree in trees:
                if isinstance(tree, (exp.Rollup, exp.Cube, exp.GroupingSets)):
                    found += self._sets_of(tree, tree.expressions)
                else:
                    found.append(self._places(tree))
            return found
        items = [self._places(tree) for tree in trees]
        if isinstance(kind, exp.Rollup):
            return [tuple(itertools.chain(*items[:length])) for length in range(len(items), -1, -1)]
        if len(items) > 12:
            raise InvalidArgumentError(
                "too many grouping sets", found=2 ** len(items), expected=f"at most {MAX_SETS}"
            )
        return [
            tuple(itertools.chain(*chosen))
            for length in range(len(items), -1, -1)
            for chosen in itertools.combinations(items, length)
        ]

    def _places(self, tree: exp.Expr) -> tuple[int, ...]:
        if isinstance(tree, exp.Tuple):
            return tuple(self._place(self._key_tree(each)) for each in tree.expressions)
        return (self._place(self._key_tree(tree)),)

    def _place(self, tree: exp.Expr) -> int:
        """Returns the index of a key, which is added if it is new."""
        text = self._text(tree)
        if text not in self._keys:
            value = grouped(self.queries.used(self._below.value(tree)))
            self._keys[text] = len(self._labels)
            self._labels.append((self.queries.fresh("key"), value))
        return self._keys[text]

    def _key_tree(self, tree: exp.Expr) -> exp.Expr:
        """Returns the tree of a key. A number or an alias stands for a column of the SELECT, but a name that
        is also a column of the tables stands for that column."""
        while isinstance(tree, exp.Paren):
            tree = tree.this
        if isinstance(tree, exp.Literal) and not tree.is_string and tree.name.isdecimal():
            position = int(tree.name)
            if not 1 <= position <= len(self._items):
                raise InvalidArgumentError(
                    "[GROUP_BY_POS_OUT_OF_RANGE] GROUP BY position out of range",
                    found=tree.name,
                    expected=f"1 to {len(self._items)}",
                )
            return self._without_aggregate(self._items[position - 1][1])
        if isinstance(tree, exp.Column) and not tree.table and self._below.scope.locate([tree.name]) is None:
            for name, item in self._items:
                if name.lower() == tree.name.lower():
                    return self._without_aggregate(item)
        return self._without_aggregate(tree)

    def _without_aggregate(self, tree: exp.Expr) -> exp.Expr:
        if holds_aggregate(tree):
            raise InvalidArgumentError(
                "[GROUP_BY_AGGREGATE] an aggregate function cannot be grouped by",
                found=tree.sql(dialect="databricks"),
            )
        return tree

    def _key_value(self, place: int) -> Value:
        label, value = self._labels[place]
        return Value(v.name(label), value.type, value.nullable or self._sets is not None)

    def _key_of(self, parts: Sequence[str]) -> Value | None:
        """Returns the key, or the field of a key, with this name."""
        located = self._below.scope.locate(parts)
        if located is None:
            return None
        attribute, rest = located
        for length in range(len(rest), -1, -1):
            text = _path_text(attribute.column.label, rest[:length])
            if (place := self._keys.get(text)) is not None:
                return fields(self._key_value(place), rest[length:])
        return None

    # --- the query below

    def group(self, rows: Rows) -> None:
        """Replaces the rows by their groups. Call it after all expressions over the groups are translated, as
        only then all aggregates are known."""
        labels, keys = [label for label, _ in self._labels], [value.sql for _, value in self._labels]
        computed = [f"{value.sql} AS {v.name(label)}" for label, value in self._aggregates.values()]
        if self._sets is None:
            listed = [f"{text} AS {v.name(label)}" for label, text in zip(labels, keys, strict=True)]
            grouped = (
                f" GROUP BY {', '.join(str(number + 1) for number in range(len(listed)))}" if listed else ""
            )
            columns = ", ".join([*listed, *computed]) or f"count(*) AS {v.name(self.queries.fresh('unused'))}"
            rows.replace(f"SELECT {columns}{rows.clause}{grouped}")
            return
        rows.add(list(zip(labels, keys, strict=True)))
        sets = ", ".join(
            "(" + ", ".join(v.name(labels[place]) for place in places) + ")" for places in self._sets
        )
        used = {place for places in self._sets for place in places}
        listed = [
            (
                v.name(label)
                if place in used
                else f"CAST(NULL AS {v.duckdb_type(value.type)}) AS {v.name(label)}"
            )
            for place, (label, value) in enumerate(self._labels)
        ]
        # Without rows, Spark returns no group, not even for the set without keys: without rows, only the
        # empty set alone has a group.
        filled = "" if self._sets == [()] else " HAVING count(*) > 0"
        rows.replace(
            f"SELECT {', '.join([*listed, *computed])}{rows.clause} GROUP BY GROUPING SETS ({sets}){filled}"
        )

    # --- expressions above

    def aggregate_within(self) -> Callable[[exp.Expr], Value | None] | None:
        return (lambda node: self._aggregate(node) if is_aggregate(node) else None) if self.filters else None

    def value(self, node: exp.Expr) -> Value:
        if (key := self.known(node)) is not None:
            return key
        if is_aggregate(node):
            return self._aggregate(node)
        if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier):
            return fields(self.value(node.this), [node.expression.name])
        if isinstance(node, exp.Column) and node.name.lower() == "grouping__id" and self._sets is not None:
            return self._grouping_id([])
        return super().value(node)

    def known(self, node: exp.Expr) -> Value | None:
        if self._shadowed(node):
            return None
        place = self._keys.get(self._text(node))
        return None if place is None else self._key_value(place)

    def _shadowed(self, node: exp.Expr) -> bool:
        """True if the tree contains an alias of the SELECT that hides a column of this scope."""
        first = self.scope.first
        return bool(first) and any(
            isinstance(each, exp.Column)
            and not each.table
            and each.name.lower() in first
            and not each.meta.get("column")
            for each in node.walk()
        )

    def _aggregate(self, node: exp.Expr) -> Value:
        text = self._text(node)
        if text not in self._aggregates:
            call = AggregateCall.of(node)
            if call.name in _OF_GROUPING:
                return self._of_grouping(call.node)
            value = self._of_rows(call)
            self._aggregates[text] = (self.queries.fresh("aggregate"), value)
        label, value = self._aggregates[text]
        return Value(v.name(label), value.type, value.nullable)

    def _of_rows(self, call: AggregateCall) -> Value:
        """Returns an aggregate over the rows before grouping. Raises an error for an aggregate of the outer
        query's columns, as Spark does: `SELECT (SELECT max(o.a)) FROM t o`. In standard SQL and in DuckDB,
        such an aggregate belongs to the outer query."""
        scope = self._below.scope
        read, scope.columns = scope.columns, set()
        outer, scope.outer_columns = scope.outer_columns, set()
        value = aggregate_call(self._below, call)
        if scope.outer_columns:
            kind = (
                "AGGREGATE_FUNCTION_MIXED_OUTER_LOCAL_REFERENCES" if scope.columns else "CORRELATED_REFERENCE"
            )
            raise InvalidArgumentError(
                f"[UNSUPPORTED_SUBQUERY_EXPRESSION_CATEGORY.{kind}] an aggregate function of columns of the"
                " query around it",
                found=call.node.sql(dialect="databricks")[:100],
                expected="columns of its own query",
            )
        scope.columns, scope.outer_columns = scope.columns | read, outer
        return value

    def _of_grouping(self, node: exp.Anonymous) -> Value:
        if self._sets is None:
            raise InvalidArgumentError(
                "[UNSUPPORTED_GROUPING_EXPRESSION] grouping() and grouping_id() need ROLLUP, CUBE or GROUPING"
                " SETS",
                found=node.sql(dialect="databricks"),
            )
        if node.this.lower() == "grouping":
            if len(node.expressions) != 1:
                raise InvalidArgumentError(
                    "[WRONG_NUM_ARGS] grouping takes one argument", found=len(node.expressions)
                )
            return self._grouping_bits([self._grouping_place(node.expressions[0])], "byte")
        return self._grouping_id(node.expressions)

    def _grouping_id(self, trees: Sequence[exp.Expr]) -> Value:
        places = list(range(len(self._labels)))
        if trees and [self._grouping_place(tree) for tree in trees] != places:
            raise InvalidArgumentError(
                "[GROUPING_ID_COLUMN_MISMATCH] grouping_id() takes all keys of GROUP BY in their order, or"
                " none"
            )
        return self._grouping_bits(places, "long")

    def _grouping_place(self, tree: exp.Expr) -> int:
        place = self._keys.get(self._text(tree))
        if place is None:
            raise InvalidArgumentError(
                "[GROUPING_COLUMN_MISMATCH] a column of grouping() is none of GROUP BY",
                found=tree.sql(dialect="databricks"),
            )
        return place

    def _grouping_bits(self, places: Sequence[int], kind: str) -> Value:
        """Returns a number with a bit for each key, the first key's bit the highest. A bit is 1 if the row is
        not grouped by its key."""
        used = {place for chosen in self._sets or () for place in chosen}
        bits = []
        for index, place in enumerate(reversed(places)):
            one = f"GROUPING({v.name(self._labels[place][0])})" if place in used else "1"
            bits.append(f"{one} * {1 << index}" if index else one)
        value = Value(f"CAST({' + '.join(bits)} AS {v.duckdb_type(kind)})", kind, nullable=False)
        label, _ = self._aggregates.setdefault(value.sql, (self.queries.fresh("grouping"), value))
        return Value(v.name(label), kind, nullable=False)

    def _text(self, node: exp.Expr) -> str:
        """Returns a text that is the same for equal expressions: with resolved names, and functions in lower
        case."""
        if isinstance(node, exp.Paren):
            return self._text(node.this)
        if isinstance(node, exp.Column) and (column := node.meta.get("column")) is not None:
            return _path_text(column.label, [])
        if isinstance(node, exp.Column) and not isinstance(node.this, exp.Star):
            located = self._below.scope.locate([part.name for part in node.parts])
            if located is not None:
                return _path_text(located[0].column.label, located[1])
        if isinstance(node, exp.Literal):
            return node.sql(dialect="databricks")
        if isinstance(node, exp.Table) and (source := node.meta.get("source")) is not None:
            return f"table {source} {node.alias}"  # two mentions of a table have two names in the tree
        parts = []
        for key, item in sorted(node.args.items()):
            for each in item if isinstance(item, list) else [item]:
                if isinstance(each, exp.Expr):
                    parts.append(f"{key}={self._text(each)}")
                elif each not in (None, False, ""):
                    folded = isinstance(node, exp.Anonymous) or (
                        isinstance(node, exp.Identifier) and not isinstance(node.parent, exp.Alias)
                    )
                    parts.append(f"{key}={str(each).lower() if folded else each}")
        return f"{type(node).__name__}({', '.join(parts)})"


def _path_text(label: str, path: Sequence[str]) -> str:
    return "column " + " ".join([v.name(label), *(v.name(part.lower()) for part in path)])
