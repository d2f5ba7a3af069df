"""The name that Spark gives a column of a query without an alias (`toPrettySQL`): `sum(id)`, `(id + 1)`, `CASE WHEN ok THEN a END`.

Source: what Spark 4.3 answered for each form of tests/spark_sql/test_column_names.py. A form that is not here keeps its own text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp

from deltaic.errors import DeltaError
from deltaic.spark_sql.types import data_type
from deltaic.spark_sql.values import type_text

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
_RENAMED = {"array_agg": "collect_list", "string_agg": "listagg", "if": "IF", "ceil": "CEIL", "floor": "FLOOR", "power": "POWER"}
_CONVERSIONS = {"string", "int", "bigint", "smallint", "tinyint", "double", "float", "boolean", "date", "timestamp", "binary", "decimal"}
_SUFFIXED = {exp.DType.TINYINT, exp.DType.SMALLINT, exp.DType.BIGINT, exp.DType.FLOAT, exp.DType.DOUBLE}
_DEFAULTED = {("regexp_replace", 3): ", 1", ("split", 2): ", -1", ("months_between", 2): ", true",
              ("sort_array", 1): ", true", ("str_to_map", 1): ", ,, :", ("str_to_map", 2): ", :", ("percentile", 2): ", 1",
              ("approx_top_k", 1): ", 5, 10000", ("approx_top_k", 2): ", 10000"}  # fmt: skip
_UNSHOWN = {"from_json", "approx_count_distinct", "first", "last", "any_value", "first_value", "last_value"}
"""Functions of which Spark shows the first argument alone."""


def column_name(node: exp.Expr) -> str:
    """The name of a column of a SELECT that has no alias."""
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.Column) or (isinstance(node, exp.Dot) and node.find(exp.Anonymous) is None):
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
        if isinstance(node, (exp.Add, exp.Sub)) and isinstance(node.expression, exp.Interval):
            return f"{pretty(node.this)} {operator} {pretty(node.expression)}"
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
    if name in _UNSHOWN:
        arguments = arguments[:1]
    text = f"{_RENAMED.get(name, name)}({_list(arguments)}{_DEFAULTED.get((name, len(arguments)), '')})"
    return f"({text})" if name == "if" else text


_LITERALS = {exp.DType.DATE: ("DATE", 10), exp.DType.TIMESTAMPTZ: ("TIMESTAMP", 19), exp.DType.TIMESTAMPNTZ: ("TIMESTAMP_NTZ", 19)}
"""The word before a literal, and how long one without a fraction of a second is."""


def _cast(node: Any) -> str:
    if node.meta.get("literal") and (shown := _LITERALS.get(node.args["to"].this)) is not None:
        text = node.this.name.replace("T", " ")
        text += " 00:00:00" if len(text) == 10 and shown[1] > 10 else ""
        if len(text) == shown[1]:
            return f"{shown[0]} '{text}'"
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


def _lambda(node: Any) -> str:
    """`x -> x + 1` as `lambdafunction((namedlambdavariable() + 1), namedlambdavariable())`."""
    variable = "namedlambdavariable()"
    names = {each.name.lower() for each in node.expressions}
    body = node.this.copy()
    root = exp.Paren(this=body)
    for each in list(root.find_all(exp.Column)):
        if not each.table and each.name.lower() in names:
            each.replace(exp.Identifier(this=variable))
    for name in list(root.find_all(exp.Identifier)):
        if name.name.lower() in names and not isinstance(name.parent, (exp.Column, exp.Dot)):
            name.replace(exp.Identifier(this=variable))
    return f"lambdafunction({', '.join([pretty(root.this), *(variable for _ in names)])})"


def _within_group(node: Any) -> str:
    """`percentile_cont(0.5) WITHIN GROUP (ORDER BY a)`; of listagg with the order of nulls."""
    name, keys = _called(node.this), node.expression.expressions
    if name in ("listagg", "string_agg"):
        return f"{pretty(node.this)} WITHIN GROUP (ORDER BY {', '.join(_key(item) for item in keys)})"
    if name == "mode":  # Spark shows the opposite direction
        shown = ", ".join(f"{pretty(item.this)}{'' if item.args.get('desc') else ' DESC'}" for item in keys)
    else:
        shown = ", ".join(f"{pretty(item.this)}{' DESC' if item.args.get('desc') else ''}" for item in keys)
    return f"{pretty(node.this)} WITHIN GROUP (ORDER BY {shown})"


_RANKS = {"rank": "RANK", "dense_rank": "DENSE_RANK", "percent_rank": "PERCENT_RANK", "row_number": "row_number", "ntile": "ntile"}


def _window(node: Any) -> str:
    """`rank() OVER (ORDER BY a)` as `RANK() OVER (ORDER BY a ASC NULLS FIRST ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)`."""
    call, condition = node.this, ""
    while isinstance(call, (exp.IgnoreNulls, exp.RespectNulls, exp.Filter)):
        if isinstance(call, exp.Filter):
            condition = f" FILTER (WHERE {pretty(call.expression.this)})"
        call = call.this
    name = _called(call)
    arguments = [pretty(each.this if isinstance(each, (exp.IgnoreNulls, exp.RespectNulls)) else each) for each in call.expressions]
    frame = None
    if name in ("lag", "lead"):
        arguments += ["1", "NULL"][max(len(arguments) - 1, 0) :]
        offset = arguments[1].removeprefix("-") if name == "lead" or arguments[1].startswith("-") else f"-{arguments[1]}"
        frame = f"ROWS BETWEEN {offset} FOLLOWING AND {offset} FOLLOWING"
    elif name in ("first", "last", "first_value", "last_value", "any_value"):
        arguments = arguments[:1]
    elif name in _RANKS:
        frame = "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
    shown = pretty(call) if name == "count" else f"{_RANKS.get(name, _RENAMED.get(name, name))}({', '.join(arguments)})"
    return f"{shown}{condition} OVER ({_specification(_named_window(node), frame)})"


def _named_window(node: Any) -> Any:
    """What stands in OVER, or what the WINDOW clause of the query around has under this name."""
    select = node.find_ancestor(exp.Select) if node.args.get("alias") is not None else None
    for each in select.args.get("windows") or () if select is not None else ():
        if each.name.lower() == node.args["alias"].name.lower():
            return each
    return node


def _specification(node: Any, frame: str | None) -> str:
    order = node.args["order"].expressions if node.args.get("order") is not None else []
    keys = ", ".join(_key(item) for item in order)
    parts = [f"PARTITION BY {_list(node.args['partition_by'])}"] if node.args.get("partition_by") else []
    parts += [f"ORDER BY {keys}"] if keys else []
    spec = node.args.get("spec")
    if frame is None and spec is not None:
        start, end = (_bound(spec, side) for side in ("start", "end"))
        frame = f"{spec.args['kind']} BETWEEN {start} AND {end}"
    end = "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW" if keys else "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
    return " ".join([*parts, frame or end])


def _key(item: Any) -> str:
    tree = item.this if isinstance(item, exp.Ordered) else item
    first = "FIRST" if item.args.get("nulls_first") else "LAST"
    return f"{pretty(tree)} {'DESC' if item.args.get('desc') else 'ASC'} NULLS {first}"


def _bound(spec: Any, side: str) -> str:
    bound, direction = spec.args.get(side), str(spec.args.get(f"{side}_side") or "").upper()
    if bound is None or isinstance(bound, str):
        return f"{bound or 'CURRENT ROW'} {direction if bound == 'UNBOUNDED' else ''}".strip()
    if isinstance(bound, exp.Interval) and bound.args.get("unit") is not None:
        return f"INTERVAL '{bound.name}' {str(bound.args['unit'].name).upper().removesuffix('S')} {direction}"
    return f"{pretty(bound)} {direction}"


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
    exp.Window: _window,
    exp.Exists: lambda node: "exists()",
    exp.Lambda: _lambda,
    exp.WithinGroup: _within_group,
    exp.IgnoreNulls: lambda node: pretty(node.this),
    exp.RespectNulls: lambda node: pretty(node.this),
}


def _trim(node: Any) -> str:
    return f"TRIM({(node.args.get('position') or 'BOTH').upper()} {pretty(node.expression)} FROM {pretty(node.this)})"
