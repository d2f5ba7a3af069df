"""Pushdown: translates conjuncts of a condition in Spark's SQL to the predicate tree of `_core`.

Each conjunct is translated alone. `x > 5` is *exact*: the predicate is true for exactly the rows for which
the conjunct is, so the engine need not evaluate it. `s LIKE 'ab%c'` gives the *weaker* predicate
`starts_with(s, 'ab')`: it prunes files and rows, and the engine still evaluates the conjunct. A conjunct that
calls any other function, or has a literal without an exact value in the column's type, is left to the engine.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import Any

from sqlglot import exp

from deltaic import _core
from deltaic.plan.expression import Expression
from deltaic.planning import literals
from deltaic.planning.bounds import bounds, function_of
from deltaic.planning.literals import Json, Literal, NotExpressible, Number, Text, compare
from deltaic.planning.simple import predicate_of
from deltaic.protocol.schema import DataType, Schema
from deltaic.spark_sql.char_types import LengthLimit, bounded_type, has_char
from deltaic.spark_sql.parsing import operands

_COMPARISONS: dict[type[exp.Expr], tuple[str, str]] = {
    exp.EQ: ("=", "="),
    exp.NEQ: ("!=", "!="),
    exp.LT: ("<", ">"),
    exp.LTE: ("<=", ">="),
    exp.GT: (">", "<"),
    exp.GTE: (">=", "<="),
}
# Casts from the types on the right to the type on the left keep every value and the order.
_WIDER: dict[Any, tuple[str, ...]] = {
    exp.DType.SMALLINT: ("byte", "short"),
    exp.DType.INT: ("byte", "short", "integer"),
    exp.DType.BIGINT: ("byte", "short", "integer", "long"),
}
# Types of date and timestamp literals, as the schema names them.
_DATED: dict[Any, str] = {
    exp.DType.DATE: "date",
    exp.DType.DATE32: "date",
    exp.DType.TIMESTAMPTZ: "timestamp",
    exp.DType.TIMESTAMPLTZ: "timestamp",
    exp.DType.TIMESTAMPNTZ: "timestamp_ntz",
    exp.DType.TIMESTAMP: "timestamp_ntz",
}


@dataclass(frozen=True)
class Pushdown:
    """A divided condition. `predicate`: for the scan, None if no conjunct could be pushed. `residual`: the
    conjuncts that the engine must still evaluate."""

    predicate: _core.Predicate | None
    residual: tuple[Expression, ...]


def push(
    conjuncts: Sequence[Expression],
    schema: Schema,
    table_schema: _core.TableSchema,
    alias: str = "t",
    *,
    others: Sequence[str] = (),
    time_zone: str = "UTC",
    pads_char: bool = False,
) -> Pushdown:
    """Divides conjuncts into those that the scan of a table evaluates and the residual ones.

    `schema`, `alias`: columns of the table and their alias. `others`: aliases of other relations in scope.
    `time_zone`: of timestamps written without one.
    `pads_char`: True if the engine pads CHAR(n) values; comparisons of them then only bound the stored
    values.

    A pushed predicate is deterministic, as no function that is pushed can change its value."""
    nodes: list[Json] = []
    residual: list[Expression] = []
    for conjunct in conjuncts:
        node, exact = _Reader(schema, alias, others, time_zone, pads_char).read(conjunct)
        if node is not None:
            nodes.append(node)
        if not exact:
            residual.append(conjunct)
    return Pushdown(predicate_of(nodes, schema, table_schema), tuple(residual))


class _Reader:
    """Translates one conjunct. A method that cannot translate its node exactly raises NotExpressible."""

    def __init__(
        self, schema: Schema, alias: str, others: Sequence[str], time_zone: str, pads_char: bool
    ) -> None:
        self.schema, self.alias, self.others = schema, alias, {name.lower() for name in others}
        self.padded = {field.name for field in schema if has_char(field)} if pads_char else set()
        self.utc = literals.is_utc(time_zone)

    def read(self, conjunct: Expression) -> tuple[Json | None, bool]:
        """Returns the predicate of a conjunct, or None, and whether the predicate is exact."""
        # Sessions differ in how they read a backslash in a string literal, so the engine parses such a text.
        if conjunct.tree is None or "\\" in conjunct.text:
            return None, False
        try:
            return self.node(conjunct.tree), True
        except NotExpressible:
            return self.weaker(conjunct.tree), False

    def weaker(self, node: exp.Expr, *, negated: bool = False) -> Json | None:
        """Returns a predicate that is true for every row for which `node` is true, or false if `negated`;
        None if there is none. `NOT (a < 1 OR f(b))` gives `NOT a < 1`."""
        if isinstance(node, exp.Paren):
            return self.weaker(node.this, negated=negated)
        if isinstance(node, exp.Not):
            return self.weaker(node.this, negated=not negated)
        if isinstance(node, (exp.And, exp.Or)):
            sides = [self.weaker(side, negated=negated) for side in operands(node)]
            if isinstance(node, exp.Or) != negated:
                return None if None in sides else {"op": "or", "args": sides}
            parts = [side for side in sides if side is not None]
            return parts[0] if len(parts) == 1 else {"op": "and", "args": parts} if parts else None
        try:
            exact = self.node(node)
        except NotExpressible:
            if negated:
                return None
            if (stored := self.as_stored(node)) is not None:
                return stored
            return (
                self.prefixed(node) if isinstance(node, exp.Like) and not _extra(node) else self.bounded(node)
            )
        return {"op": "not", "arg": exact} if negated else exact

    def as_stored(self, node: exp.Expr) -> Json | None:
        """Translates `c = 'ab'` and `c IN ('ab', …)` for the stored values of a CHAR(n) column, which may end
        in any number of spaces."""
        if isinstance(node, exp.EQ):
            column, values = (
                (node.this, [node.expression])
                if isinstance(node.this, exp.Column)
                else (node.expression, [node.this])
            )
        elif isinstance(node, exp.In) and node.expressions and not set(node.args) - {"this", "expressions"}:
            column, values = node.this, node.expressions
        else:
            return None
        try:
            path, _ = self.any_column(column)
        except NotExpressible:
            return None
        kind = bounded_type(self.schema.field(path[0]))
        if path[0] not in self.padded or not isinstance(kind, LengthLimit) or not all(map(_is_text, values)):
            return None
        tests = []
        for value in values:
            low = str(value.this).rstrip(" ")
            high = low + " " * (max(kind.length, len(str(value.this))) - len(low))
            tests.append({"op": "and", "args": [compare(">=", path, low), compare("<=", path, high)]})
        return tests[0] if len(tests) == 1 else {"op": "or", "args": tests}

    def prefixed(self, node: exp.Like) -> Json | None:
        """Translates a LIKE by the text before its first wildcard: `s LIKE 'ab%'` becomes `starts_with(s,
        'ab')`."""
        if not isinstance(node.this, exp.Column) or not _is_text(node.expression):
            return None
        try:
            path, data_type = self.column(node.this)
        except NotExpressible:
            return None
        prefix = re.split("[%_]", str(node.expression.this))[0]
        return (
            {"op": "starts_with", "column": list(path), "literal": prefix}
            if prefix and data_type == "string"
            else None
        )

    def bounded(self, node: exp.Expr) -> Json | None:
        """Translates a comparison of a function that keeps the order of its argument into one of the
        argument: `year(d) = 2024` bounds `d`."""
        if isinstance(node, exp.Between) and not node.args.get("symmetric"):
            sides = [
                exp.GTE(this=node.this, expression=node.args["low"]),
                exp.LTE(this=node.this, expression=node.args["high"]),
            ]
            parts = [part for side in sides if (part := self.bounded(side)) is not None]
            return {"op": "and", "args": parts} if parts else None
        if type(node) not in _COMPARISONS:
            return None
        for op, call, literal in zip(
            _COMPARISONS[type(node)], (node.this, node.expression), (node.expression, node.this), strict=True
        ):
            try:
                if type(call) is exp.Cast and call.to.this in _WIDER and isinstance(call.this, exp.Column):
                    path, data_type = self.column(call.this)
                    if data_type in _WIDER[call.to.this]:
                        return self.compared(op, path, data_type, literal)
                elif (found := function_of(call)) is not None:
                    path, data_type = self.column(found[1])
                    return bounds(
                        op,
                        found[0],
                        path,
                        data_type,
                        partial(_year, literal),
                        partial(_day, literal),
                        utc=self.utc,
                    )
            except NotExpressible:
                continue
        return None

    def node(self, node: exp.Expr) -> Json:
        if isinstance(node, exp.Paren):
            return self.node(node.this)
        if isinstance(node, (exp.And, exp.Or)):
            return {
                "op": "and" if isinstance(node, exp.And) else "or",
                "args": [self.node(side) for side in operands(node)],
            }
        if isinstance(node, exp.Not):
            return {"op": "not", "arg": self.node(node.this)}
        if isinstance(node, exp.Boolean):
            return {"op": "true" if node.this else "false"}
        if isinstance(node, exp.Null):
            return {"op": "null"}
        if isinstance(node, exp.Column):
            path, data_type = self.column(node)
            if data_type != "boolean":
                raise NotExpressible
            return compare("=", path, "true")
        return self.test(node)

    def test(self, node: exp.Expr) -> Json:
        if type(node) in _COMPARISONS:
            return self.comparison(node)
        if isinstance(node, exp.NullSafeEQ):
            return self.null_safe(node)
        if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
            return {"op": "is_null", "column": list(self.any_column(node.this)[0])}
        if isinstance(node, exp.Between) and not node.args.get("symmetric"):
            path, data_type = self.column(node.this)
            return literals.between(
                path, data_type, _plain(node.args["low"]), _plain(node.args["high"]), utc=self.utc
            )
        if isinstance(node, exp.In) and node.expressions and not set(node.args) - {"this", "expressions"}:
            return self.membership(node)
        if isinstance(node, exp.Like) and not _extra(node):
            return self.like(node)
        if (
            isinstance(node, exp.Anonymous)
            and node.name.lower() == "startswith"
            and len(node.expressions) == 2
        ):
            path, data_type = self.column(node.expressions[0])
            if data_type != "string" or not _is_text(node.expressions[1]):
                raise NotExpressible
            return {"op": "starts_with", "column": list(path), "literal": str(node.expressions[1].this)}
        raise NotExpressible

    def comparison(self, node: exp.Expr) -> Json:
        straight, mirrored = _COMPARISONS[type(node)]
        if isinstance(node.this, exp.Column):
            return self.compared(straight, *self.column(node.this), node.expression)
        return self.compared(mirrored, *self.column(node.expression), node.this)

    def compared(self, op: str, path: Sequence[str], data_type: DataType, literal: exp.Expr) -> Json:
        return literals.compared(op, path, data_type, _plain(literal), utc=self.utc)

    def null_safe(self, node: exp.Expr) -> Json:
        column, literal = (
            (node.this, node.expression)
            if isinstance(node.this, exp.Column)
            else (node.expression, node.this)
        )
        path, data_type = self.column(column)
        null = {"op": "is_null", "column": list(path)}
        if isinstance(literal, exp.Null):
            return null
        return {
            "op": "and",
            "args": [{"op": "not", "arg": null}, self.compared("=", path, data_type, literal)],
        }

    def membership(self, node: exp.In) -> Json:
        path, data_type = self.column(node.this)
        return literals.contained(path, data_type, [_plain(item) for item in node.expressions], utc=self.utc)

    def like(self, node: exp.Like) -> Json:
        path, data_type = self.column(node.this)
        if data_type != "string" or not _is_text(node.expression):
            raise NotExpressible
        pattern = str(node.expression.this)
        prefix = pattern.rstrip("%")
        if "%" in prefix or "_" in prefix:
            raise NotExpressible
        if prefix == pattern:
            return compare("=", path, pattern)
        return {"op": "starts_with", "column": list(path), "literal": prefix}

    def column(self, node: exp.Expr) -> tuple[tuple[str, ...], DataType]:
        """Like `any_column`, but raises NotExpressible for CHAR(n) columns, of which Spark compares padded
        values."""
        path, data_type = self.any_column(node)
        if path[0] in self.padded:
            raise NotExpressible
        return path, data_type

    def any_column(self, node: exp.Expr) -> tuple[tuple[str, ...], DataType]:
        """Returns the path of a column or struct field as the schema spells it, and its type."""
        if not isinstance(node, exp.Column):
            raise NotExpressible
        parts = [part.name for part in node.parts]
        if len(parts) > 1 and parts[0].lower() in self.others:
            raise NotExpressible
        return literals.find_column(self.schema, self.alias, parts)


def _extra(node: exp.Expr) -> bool:
    return any(value for key, value in node.args.items() if key not in ("this", "expression"))


def _is_text(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal) and bool(node.is_string)


def _plain(node: exp.Expr) -> Literal:
    """Returns the literal of a node: a number with a sign or a suffix, a string, `date'...'`,
    `cast('...' as date)`, a boolean or NULL."""
    if isinstance(node, exp.Null):
        return None
    if isinstance(node, exp.Boolean):
        return bool(node.this)
    if _is_text(node):
        return Text(str(node.this))
    if type(node) is exp.Cast and node.to.this in _DATED and _is_text(node.this):
        return Text(str(node.this.this), _DATED[node.to.this])
    return _number(node)


def _number(node: exp.Expr) -> Number:
    negative = isinstance(node, exp.Neg)
    inner = node.this if negative else node
    double = False
    if isinstance(inner, exp.Cast) and isinstance(inner.this, exp.Literal):
        kind = inner.to.this
        if kind == exp.DType.DOUBLE:
            double = True
        elif kind not in (exp.DType.BIGINT, exp.DType.SMALLINT, exp.DType.TINYINT, exp.DType.INT):
            raise NotExpressible
        inner = inner.this
    if not isinstance(inner, exp.Literal) or inner.is_string:
        raise NotExpressible
    return Number.of(str(inner.this), negative=negative, double=double)


def _day(node: exp.Expr) -> date:
    return literals.day(_plain(node))


def _year(node: exp.Expr) -> int:
    return literals.integer(_number(node), 32)
