"""The name that Spark gives a column of a query without an alias (`toPrettySQL`): `sum(id)`, `(id + 1)`, `CASE WHEN ok THEN a END`.

Source: what Spark 4.3 answered for each form of tests/relation/test_column_names.py. A form that is not here keeps its own text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp

from deltaic.errors import DeltaError
from deltaic.relation.types import data_type
from deltaic.relation.values import type_text

_BINARY: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.IntDiv: "div",
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseXor: "^",
    exp.EQ: "=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
    exp.And: "AND",
    exp.Or: "OR",
}
_RENAMED = {"array_agg": "collect_list", "if": "IF", "ceil": "CEIL", "floor": "FLOOR", "power": "POWER"}
_CONVERSIONS = {"string", "int", "bigint", "smallint", "tinyint", "double", "float", "boolean", "date", "timestamp", "binary", "decimal"}
_SUFFIXED = {exp.DType.TINYINT, exp.DType.SMALLINT, exp.DType.BIGINT, exp.DType.FLOAT, exp.DType.DOUBLE}
_DEFAULTED = {("regexp_replace", 3): ", 1", ("split", 2): ", -1", ("months_between", 2): ", true"}


def column_name(node: exp.Expr) -> str:
    """The name of a column of a SELECT that has no alias."""
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, (exp.Column, exp.Dot)):
        return node.name
    if isinstance(node, (exp.Cast, exp.TryCast)) and isinstance(node.this, (exp.Column, exp.Dot)):
        return node.this.name
    if isinstance(node, exp.Anonymous) and _called(node) in _CONVERSIONS and len(node.expressions) == 1:
        return column_name(node.expressions[0])
    return pretty(node)


def pretty(node: exp.Expr) -> str:
    """An expression as Spark shows it: operators in brackets, text without quotes."""
    if isinstance(node, exp.Paren):
        return pretty(node.this)
    if operator := _BINARY.get(type(node)):
        return f"({pretty(node.this)} {operator} {pretty(node.expression)})"
    if form := _FORMS.get(type(node)):
        return form(node)
    return node.sql(dialect="databricks")


def _called(node: exp.Anonymous) -> str:
    return node.this.lower() if isinstance(node.this, str) else str(node.this)


def _list(nodes: Any) -> str:
    return ", ".join(pretty(node) for node in nodes)


def _literal(node: Any) -> str:
    if node.is_string:
        return str(node.name)
    return str(float(node.name)) if "e" in node.name.lower() and abs(float(node.name)) < 1e7 else str(node.name)


def _function(node: Any) -> str:
    name, arguments = _called(node), node.expressions
    if name in ("isnull", "isnotnull") and len(arguments) == 1:
        return f"({pretty(arguments[0])} IS {'NOT ' if name == 'isnotnull' else ''}NULL)"
    if len(arguments) == 1 and isinstance(arguments[0], exp.Star):
        return f"{name}(1)"
    text = f"{_RENAMED.get(name, name)}({_list(arguments)}{_DEFAULTED.get((name, len(arguments)), '')})"
    return f"({text})" if name == "if" else text


def _cast(node: Any) -> str:
    if _is_suffixed(node):
        return pretty(node.this)
    try:
        target = type_text(data_type(node.args["to"])).upper()
    except DeltaError:
        target = node.args["to"].sql(dialect="databricks")
    return f"{'TRY_CAST' if isinstance(node, exp.TryCast) else 'CAST'}({pretty(node.this)} AS {target})"


def _is_suffixed(node: Any) -> bool:
    """2L, 3Y, 1.5D: the parser makes casts of number literals of them."""
    return isinstance(node.this, exp.Literal) and not node.this.is_string and node.args["to"].this in _SUFFIXED


def _is(node: Any) -> str:
    if isinstance(node.expression, exp.Null):
        return f"({pretty(node.this)} IS NULL)"
    return f"({pretty(node.this)} <=> {pretty(node.expression)})"


def _not(node: Any) -> str:
    inner = node.this.this if isinstance(node.this, exp.Paren) else node.this
    if isinstance(inner, exp.Is) and isinstance(inner.expression, exp.Null) and inner is node.this:
        return f"({pretty(inner.this)} IS NOT NULL)"
    return f"(NOT {pretty(inner)})"


def _case(node: Any) -> str:
    subject = node.this
    parts = []
    for branch in node.args["ifs"]:
        condition = pretty(branch.this) if subject is None else f"({pretty(subject)} = {pretty(branch.this)})"
        parts.append(f"WHEN {condition} THEN {pretty(branch.args['true'])}")
    default = node.args.get("default")
    return f"CASE {' '.join(parts)}{'' if default is None else f' ELSE {pretty(default)}'} END"


def _like(node: Any) -> str:
    text = f"{pretty(node.this)} LIKE {pretty(node.expression)}"
    return f"(NOT {text})" if node.args.get("negate") else text


def _ilike(node: Any) -> str:
    text = f"ilike({pretty(node.this)}, {pretty(node.expression)})"
    return f"(NOT {text})" if node.args.get("negate") else text


def _in(node: Any) -> str:
    within = "listquery()" if node.args.get("query") else _list(node.expressions)
    return f"({pretty(node.this)} IN ({within}))"


_FORMS: dict[type[exp.Expr], Callable[[Any], str]] = {
    exp.Column: lambda node: str(node.name),
    exp.Identifier: lambda node: str(node.name),
    exp.Dot: lambda node: f"{pretty(node.this)}.{node.name}",
    exp.Literal: _literal,
    exp.RawString: lambda node: str(node.name),
    exp.Concat: lambda node: "".join(pretty(part) for part in node.expressions),
    exp.Null: lambda node: "NULL",
    exp.Boolean: lambda node: "true" if node.this else "false",
    exp.NEQ: lambda node: f"(NOT ({pretty(node.this)} = {pretty(node.expression)}))",
    exp.NullSafeNEQ: lambda node: f"(NOT ({pretty(node.this)} <=> {pretty(node.expression)}))",
    exp.Neg: lambda node: f"-{node.this.name}" if isinstance(node.this, exp.Literal) else f"(- {pretty(node.this)})",
    exp.BitwiseNot: lambda node: f"~{pretty(node.this)}",
    exp.Not: _not,
    exp.Is: _is,
    exp.In: _in,
    exp.Between: lambda node: f"between({pretty(node.this)}, {pretty(node.args['low'])}, {pretty(node.args['high'])})",
    exp.Like: _like,
    exp.ILike: _ilike,
    exp.RegexpLike: lambda node: f"RLIKE({pretty(node.this)}, {pretty(node.expression)})",
    exp.DPipe: lambda node: f"concat({pretty(node.this)}, {pretty(node.expression)})",
    exp.Case: _case,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Anonymous: _function,
    exp.Distinct: lambda node: f"DISTINCT {_list(node.expressions)}",
    exp.Filter: lambda node: f"{pretty(node.this)} FILTER (WHERE {pretty(node.expression.this)})",
    exp.Substring: lambda node: (
        f"substring({_list(part for part in (node.this, node.args.get('start'), node.args.get('length')) if part)})"
    ),
    exp.Trim: lambda node: f"trim({pretty(node.this)})" if node.expression is None else _trim(node),
    exp.Bracket: lambda node: f"{pretty(node.this)}[{_list(node.expressions)}]",
    exp.CurrentDate: lambda node: "current_date()",
    exp.CurrentTimestamp: lambda node: "current_timestamp()",
    exp.Extract: lambda node: f"extract({node.name.lower()} FROM {pretty(node.expression)})",
    exp.Subquery: lambda node: "scalarsubquery()",
    exp.Exists: lambda node: "exists()",
}


def _trim(node: Any) -> str:
    return f"TRIM({(node.args.get('position') or 'BOTH').upper()} {pretty(node.expression)} FROM {pretty(node.this)})"
