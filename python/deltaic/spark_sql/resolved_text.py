"""Writes a condition as Spark's SQL of a resolved one: `id = 5 AND NOT v IS NULL` becomes
`((id = 5) AND (v IS NOT NULL))`."""

from __future__ import annotations

from sqlglot import exp

from deltaic.errors import DeltaError
from deltaic.plan.expression import Expression
from deltaic.spark_sql.parsing import parse

_ARITHMETIC = (
    exp.Add,
    exp.Sub,
    exp.Mul,
    exp.Div,
    exp.IntDiv,
    exp.Mod,
    exp.BitwiseAnd,
    exp.BitwiseOr,
    exp.BitwiseXor,
)
_OPERATIONS = (exp.Connector, exp.Predicate, exp.Not, *_ARITHMETIC)
_UNBRACKETED = (exp.Like, exp.ILike, exp.RegexpLike, exp.SubqueryPredicate)
"""Predicates that Spark writes without brackets of their own."""
_BETWEEN_OPERANDS: dict[type[exp.Expr], str] = {
    kind: kind(this=exp.Var(this="l"), expression=exp.Var(this="r")).sql(dialect="spark")[1:-1]
    for kind in (exp.And, exp.Or, *_ARITHMETIC)
}
"""What Spark writes between the operands of an operation: ` AND `."""


def resolved_text(condition: str | Expression, relation: str | None) -> str:
    """Returns a condition with brackets around each operation. Names keep the case in which they are written.

    `relation`: alias whose qualifiers are left out, so that `t.id = 5` becomes `(id = 5)`; None keeps all
    qualifiers. A text that only Spark's own parser reads is returned unchanged."""
    try:
        tree = parse(condition) if isinstance(condition, str) else condition.tree
    except DeltaError:
        tree = None
    if tree is None:
        return condition if isinstance(condition, str) else condition.text
    holder = exp.Paren(this=tree.copy())
    for node in reversed(list(holder.this.dfs())):  # operands before their operations
        node.replace(_resolved(node, relation))
    return _text(holder.this)


def _text(tree: exp.Expr) -> str:
    """Returns the text of a tree. A stack holds what is left to write: thousands of ANDs and ORs form a tree
    as deep as they are many, and the generator of sqlglot calls itself once a level."""
    written: list[str] = []
    left: list[exp.Expr | str] = [tree]
    while left:
        part = left.pop()
        if isinstance(part, str):
            written.append(part)
        elif isinstance(part, exp.Paren):
            left += [")", part.this, "("]
        elif type(part) in _BETWEEN_OPERANDS:
            left += [part.expression, _BETWEEN_OPERANDS[type(part)], part.this]
        else:
            written.append(part.sql(dialect="spark", normalize_functions="lower"))
    return "".join(written)


def _resolved(node: exp.Expr, relation: str | None) -> exp.Expr:
    """Returns the form of a node whose operands already have theirs."""
    if isinstance(node, exp.Paren):
        inner: exp.Expr = node.this
        return inner
    if isinstance(node, exp.Column):
        return _column(node, relation)
    if isinstance(node, exp.Boolean):
        return exp.Var(this=str(node.this).lower())
    if isinstance(node, exp.Cast) and isinstance(number := node.this, exp.Literal) and not number.is_string:
        return number  # 5L
    if isinstance(node, exp.Between):
        low, high = (
            _bracketed(bound(this=node.this.copy(), expression=node.args[of]))
            for bound, of in ((exp.GTE, "low"), (exp.LTE, "high"))
        )
        return _bracketed(exp.And(this=low, expression=high))
    if isinstance(node, exp.NEQ):
        return _bracketed(exp.Not(this=_bracketed(exp.EQ(this=node.this, expression=node.expression))))
    if (
        isinstance(node, exp.Not)
        and isinstance(test := node.this.unnest(), exp.Is)
        and isinstance(test.expression, exp.Null)
    ):
        return _bracketed(exp.Is(this=test.this, expression=exp.Not(this=test.expression)))
    if isinstance(node, exp.NullSafeEQ):
        return exp.Var(this=f"({node.this.sql(dialect='spark')} <=> {node.expression.sql(dialect='spark')})")
    return _bracketed(node) if isinstance(node, _OPERATIONS) and not isinstance(node, _UNBRACKETED) else node


def _bracketed(node: exp.Expr) -> exp.Expr:
    """Returns brackets around a node like the given one. The given node keeps its place in the tree, for the
    caller to replace it."""
    return exp.Paren(this=type(node)(**node.args))


def _column(node: exp.Column, relation: str | None) -> exp.Expr:
    parts = node.parts
    if relation is None or len(parts) < 2 or parts[0].name.lower() != relation.lower():
        return node
    return (
        exp.Dot.build([part.copy() for part in parts[1:]])
        if len(parts) > 2
        else exp.Column(this=parts[1].copy())
    )
