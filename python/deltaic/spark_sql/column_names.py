"""Returns the names that Spark gives to columns of a query without an alias (its `toPrettySQL`): `sum(id)`,
`(id + 1)`, `CASE WHEN ok THEN a END`.

Source: the names in Spark 4.3's answers, in tests/spark_sql/test_column_names.py. An expression of any other
form is named after its own text.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from decimal import Decimal
from math import isinf
from typing import Any

from sqlglot import exp

from deltaic.errors import DeltaError
from deltaic.spark_sql import interval_literals
from deltaic.spark_sql.call_names import call_name, usual_name
from deltaic.spark_sql.types import data_type
from deltaic.spark_sql.values import DAYS, TEMPORAL, is_interval, type_text

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
_CONVERSIONS = {
    "string",
    "int",
    "bigint",
    "smallint",
    "tinyint",
    "double",
    "float",
    "boolean",
    "date",
    "timestamp",
    "binary",
    "decimal",
}
_SUFFIXED = {
    exp.DType.DECIMAL,
    exp.DType.TINYINT,
    exp.DType.SMALLINT,
    exp.DType.BIGINT,
    exp.DType.FLOAT,
    exp.DType.DOUBLE,
}
_FRACTIONAL = {exp.DType.FLOAT, exp.DType.DOUBLE}


def column_name(node: exp.Expr) -> str:
    """Returns the name of a column of a SELECT without an alias.

    The tree must have been translated. The translation puts into the `meta` of nodes what a name depends on
    besides the text: `types`, the types of operands; `outer`, the columns of the outer query that a subquery
    reads; `shown`, the text of a path; `key`, the last part of a path into a variant."""
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.Column) or (isinstance(node, exp.Dot) and isinstance(_base(node), exp.Column)):
        return node.name
    if (
        isinstance(node, (exp.Cast, exp.TryCast))
        and isinstance(node.this, exp.Column)
        and "." not in node.this.meta.get("shown", "")
    ):
        return node.this.name
    path = node.this if isinstance(node, (exp.Cast, exp.TryCast)) else node
    if (key := path.meta.get("key")) is not None:  # v:a.b
        return str(key)
    if isinstance(node, exp.Anonymous) and _called(node) in _CONVERSIONS and len(node.expressions) == 1:
        return column_name(node.expressions[0])
    return pretty(node)


def pretty(node: exp.Expr) -> str:
    """Returns an expression as Spark shows it: operations in parentheses, text literals without quotes."""
    if isinstance(node, exp.Paren):
        return pretty(node.this)
    if operator := _BINARY.get(type(node)):
        return _moved(node, operator) or f"({pretty(node.this)} {operator} {pretty(node.expression)})"
    if form := _FORMS.get(type(node)):
        return form(node)
    return node.sql(dialect="databricks")


def _base(node: Any) -> exp.Expr:
    while isinstance(node, (exp.Dot, exp.Paren)):
        node = node.this
    return node  # type: ignore[no-any-return]


def _moved(node: Any, operator: str) -> str:
    """Returns the name of an operation that adds days or an interval to a date or timestamp, or multiplies an
    interval: `d + 3` is `date_add(d, 3)`. Returns the empty text for any other operation."""
    left, right = node.this, node.expression
    first, second = node.meta.get("types", ("", ""))
    if is_interval(second) and not is_interval(first) and operator == "*":
        return f"({pretty(right)} * {pretty(left)})"
    if "void" in (first, second):
        moment = left if first in TEMPORAL else right if second in TEMPORAL else None
        return f"{pretty(moment)} + NULL" if operator == "+" and moment is not None else ""
    if operator == "+" and (second in TEMPORAL or is_interval(first)) and not is_interval(second):
        left, right, first, second = right, left, second, first
    if operator not in "+-" or is_interval(first):
        return ""
    days, sign = second == DAYS and first == "date", "- " if operator == "-" else ""
    if days:
        shown = f"extractansiintervaldays({pretty(right)})"
        return f"date_add({pretty(left)}, {f'(- {shown})' if sign else shown})"
    if first == "date" and second in ("byte", "short", "integer"):
        return f"{'date_sub' if sign else 'date_add'}({pretty(left)}, {pretty(right)})"
    return (
        f"{pretty(left)} {operator} {pretty(right)}"
        if is_interval(second) or isinstance(right, exp.Interval)
        else ""
    )


def _called(node: exp.Anonymous) -> str:
    return node.this.lower() if isinstance(node.this, str) else str(node.this)


def _list(nodes: Any) -> str:
    return ", ".join(pretty(node) for node in nodes)


def _literal(node: Any) -> str:
    if not node.is_string and node.name.endswith("."):
        return str(node.name[:-1])
    return str(node.name) if node.is_string or "e" not in node.name.lower() else _double(float(node.name))


def _negative(node: Any) -> str:
    """Returns a negation as Spark shows it: `-2` of a literal, `(- a)` of any other expression. Zero is shown
    without a sign (`-0.0` is 0.0), unless it is a double."""
    if not isinstance(node, exp.Literal) and not _is_suffixed(node):
        return f"(- {pretty(node)})"
    shown = pretty(node)
    is_zero = (
        isinstance(node, exp.Literal)
        and not node.is_string
        and "e" not in node.name.lower()
        and not Decimal(node.name)
    )
    return shown if is_zero else f"-{shown}"


def _double(number: float) -> str:
    """Returns a double as Java writes it: `1.0E10`, `0.001`."""
    # an infinite literal (1e400) is refused elsewhere
    if number == 0 or 1e-3 <= abs(number) < 1e7 or isinf(number):
        return f"{number!r}"
    digits, _, exponent = f"{Decimal(repr(number)):e}".partition("e")
    whole, _, fraction = digits.partition(".")
    return f"{whole}.{fraction.rstrip('0') or '0'}E{int(exponent)}"


def _function(node: Any) -> str:
    name, arguments = _called(node), node.expressions
    if name in ("isnull", "isnotnull") and len(arguments) == 1:
        return f"({pretty(arguments[0])} IS {'NOT ' if name == 'isnotnull' else ''}NULL)"
    if len(arguments) == 1 and isinstance(arguments[0], exp.Star):
        return f"{name}(1)"
    if name in _CONVERSIONS and len(arguments) == 1:
        return pretty(arguments[0])
    if (sign := node.meta.get("operator")) is not None:
        return f"({pretty(arguments[0])} {sign} {pretty(arguments[1])})"
    count = sum(len(each.expressions) if isinstance(each, exp.Distinct) else 1 for each in arguments)
    return call_name(name, [pretty(each) for each in arguments], node.meta.get("types", ()), count)


_LITERALS = {
    exp.DType.DATE: "DATE",
    exp.DType.TIMESTAMPTZ: "TIMESTAMP",
    exp.DType.TIMESTAMPNTZ: "TIMESTAMP_NTZ",
}
"""Type of a literal such as `DATE '2024-01-01'` -> the word that Spark shows before the text."""


def _cast(node: Any) -> str:
    shown = _LITERALS.get(node.args["to"].this) if node.meta.get("literal") else None
    if shown is not None and (match := _MOMENT.fullmatch(node.this.name.strip())) is not None:
        year, month, day, hour, minute, second, fraction = (part or "0" for part in match.groups())
        fraction = fraction.rstrip("0").rstrip(".") if "." in fraction else ""
        clock = f" {hour:>02}:{minute:>02}:{second:>02}{fraction}"
        return f"{shown} '{year}-{month:>02}-{day:>02}{clock if shown != 'DATE' else ''}'"
    if _is_suffixed(node):
        return _double(float(node.this.name)) if node.args["to"].this in _FRACTIONAL else pretty(node.this)
    try:
        kind = data_type(node.args["to"])
        if not isinstance(kind, str):
            return pretty(node.this)
        target = type_text(kind).upper()
    except DeltaError:
        target = node.args["to"].sql(dialect="databricks")
    return f"{'TRY_CAST' if isinstance(node, exp.TryCast) else 'CAST'}({pretty(node.this)} AS {target})"


_MOMENT = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})(?:[ T](\d{1,2}):(\d{1,2})(?::(\d{1,2})(\.\d{1,6})?)?)?")


def _is_suffixed(node: Any) -> bool:
    """True if `node` is a number literal with a suffix, such as `2L`, `3Y` or `1.5D`. The parser turns such a
    literal into a cast."""
    if node.meta.get("written") or not isinstance(node, exp.Cast):
        return False
    return (
        isinstance(node.this, exp.Literal) and not node.this.is_string and node.args["to"].this in _SUFFIXED
    )


def _is(node: Any) -> str:
    if isinstance(node.expression, (exp.Null, exp.Var)):  # IS NULL, IS UNKNOWN
        return f"({pretty(node.this)} IS NULL)"
    return f"({pretty(node.this)} <=> {pretty(node.expression)})"


def _not(node: Any) -> str:
    inner = node.this.this if isinstance(node.this, exp.Paren) else node.this
    if (
        isinstance(inner, exp.Is)
        and isinstance(inner.expression, (exp.Null, exp.Var))
        and node.meta.get("is_not")
    ):
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


def _like_some(node: Any, shown: str) -> str:
    """Returns `s LIKE ANY (p, q)` as Spark shows it: `likeany(s)`, or `(s LIKE p OR s LIKE q)` if one of the
    patterns is no literal text."""
    listed, word = node.expression.this, "any" if isinstance(node.expression, exp.Any) else "all"
    trees = (
        listed.expressions
        if isinstance(listed, exp.Tuple)
        else [listed.this if isinstance(listed, exp.Paren) else listed]
    )
    negated = node.args.get("negate")
    if all(isinstance(each, exp.Literal) and each.is_string for each in trees):
        value = pretty(node.this) if shown == "LIKE" else f"lower({pretty(node.this)})"
        return f"{'not' if negated else ''}like{word}({value})"
    parts = [
        pretty(type(node)(this=node.this.copy(), expression=each.copy(), negate=negated)) for each in trees
    ]
    operator = " OR " if word == "any" else " AND "
    return functools.reduce(lambda left, right: f"({left}{operator}{right})", parts)


def _like(node: Any) -> str:
    if isinstance(node.expression, (exp.Any, exp.All)):
        return _like_some(node, "LIKE")
    text = f"{pretty(node.this)} LIKE {pretty(node.expression)}"
    return f"(NOT {text})" if node.args.get("negate") else text


def _ilike(node: Any) -> str:
    if isinstance(node.expression, (exp.Any, exp.All)):
        return _like_some(node, "ILIKE")
    text = f"ilike({pretty(node.this)}, {pretty(node.expression)})"
    return f"(NOT {text})" if node.args.get("negate") else text


def _escaped(node: Any) -> str:
    if isinstance(node.this, exp.ILike):
        return pretty(node.this)
    text = f"{pretty(node.this.this)} LIKE {pretty(node.this.expression)}"
    text += "" if node.expression.name == "\\" else f" ESCAPE '{node.expression.name}'"
    return f"(NOT {text})" if node.this.args.get("negate") else text


def _in(node: Any) -> str:
    within = _query(node.args["query"], "listquery") if node.args.get("query") else _list(node.expressions)
    return f"({pretty(node.this)} IN ({within}))"


def _query(node: Any, kind: str) -> str:
    """Returns a subquery as Spark shows it, with the columns of the outer query that the subquery reads:
    `scalarsubquery(a)`."""
    return f"{kind}({', '.join(node.meta.get('outer', ()))})"


def _row(node: Any) -> str:
    """Returns `(a, 1)` as Spark shows it: `named_struct(a, a, col2, 1)`."""
    names = [
        each.name if isinstance(each, exp.Column) else f"col{place}"
        for place, each in enumerate(node.expressions, 1)
    ]
    fields = (f"{name}, {pretty(each)}" for name, each in zip(names, node.expressions, strict=True))
    return f"named_struct({', '.join(fields)})"


def _lambda(node: Any) -> str:
    """Returns `x -> x + 1` as Spark shows it: `lambdafunction((namedlambdavariable() + 1),
    namedlambdavariable())`."""
    variable = "namedlambdavariable()"
    names = {each.name.lower() for each in node.expressions}
    body = node.this.copy()
    root = exp.Paren(this=body)
    for each in list(root.find_all(exp.Column)):
        if not each.table and each.name.lower() in names:
            each.replace(exp.Identifier(this=variable))
        elif each.table.lower() in names:
            each.replace(
                exp.Dot(this=exp.Identifier(this=variable), expression=exp.Identifier(this=each.name))
            )
    for name in list(root.find_all(exp.Identifier)):
        is_field = isinstance(name.parent, (exp.Column, exp.Dot)) and name.parent.this is not name
        if name.name.lower() in names and not is_field and not isinstance(name.parent, exp.Column):
            name.replace(exp.Identifier(this=variable))
    return f"lambdafunction({', '.join([pretty(root.this), *(variable for _ in names)])})"


def _within_group(node: Any) -> str:
    """Returns `percentile_cont(0.5) WITHIN GROUP (ORDER BY a)` as Spark shows it; the keys of listagg show
    the order of nulls too."""
    name, keys = _called(node.this), node.expression.expressions
    if name in ("listagg", "string_agg"):
        return (
            f"listagg{pretty(node.this).removeprefix(name)} WITHIN GROUP (ORDER BY"
            f" {', '.join(_key(item) for item in keys)})"
        )
    if name == "mode":  # Spark shows the opposite direction
        shown = ", ".join(f"{pretty(item.this)}{'' if item.args.get('desc') else ' DESC'}" for item in keys)
    else:
        shown = ", ".join(f"{pretty(item.this)}{' DESC' if item.args.get('desc') else ''}" for item in keys)
    return f"{pretty(node.this)} WITHIN GROUP (ORDER BY {shown})"


_RANKS = {
    "rank": "RANK",
    "dense_rank": "DENSE_RANK",
    "percent_rank": "PERCENT_RANK",
    "row_number": "row_number",
    "ntile": "ntile",
}


def _window(node: Any) -> str:
    """Returns a window function as Spark shows it. `rank() OVER (ORDER BY a)` is
    `RANK() OVER (ORDER BY a ASC NULLS FIRST ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)`."""
    call, condition, ignores = node.this, "", False
    while isinstance(call, (exp.IgnoreNulls, exp.RespectNulls, exp.Filter)):
        ignores = ignores or isinstance(call, exp.IgnoreNulls)
        if isinstance(call, exp.Filter):
            condition = f" FILTER (WHERE {pretty(call.expression.this)})"
        call = call.this
    name = _called(call)
    arguments = [
        pretty(each.this if isinstance(each, (exp.IgnoreNulls, exp.RespectNulls)) else each)
        for each in call.expressions
    ]
    frame = None
    if name in ("lag", "lead"):
        arguments += ["1", "NULL"][max(len(arguments) - 1, 0) :]
        offset = (
            arguments[1]
            if name == "lead"
            else arguments[1].removeprefix("-")
            if arguments[1].startswith("-")
            else f"-{arguments[1]}"
        )
        frame = f"ROWS BETWEEN {offset} FOLLOWING AND {offset} FOLLOWING"
    elif name in ("first", "last", "first_value", "last_value", "any_value"):
        arguments = arguments[:1]
        name = name.removesuffix("_value") if ignores and name != "any_value" else name
    elif name == "nth_value" and ignores:
        condition = " ignore nulls"
    elif name in _RANKS:
        frame = "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
    shown = pretty(call) if name == "count" else usual_name(_RANKS.get(name, name), arguments, len(arguments))
    return f"{shown}{condition} OVER ({_specification(_named_window(node), frame)})"


def _named_window(node: Any) -> Any:
    """Returns the window of an OVER clause. If OVER gives a name, returns the window that the query's WINDOW
    clause defines by this name."""
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
    end = (
        "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
        if keys
        else "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
    )
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
    exp.Column: lambda node: str(node.meta.get("shown", node.name)),
    exp.Interval: lambda node: interval_literals.text_of(*interval_literals.read(node)),
    exp.Tuple: _row,
    exp.Escape: _escaped,
    exp.Identifier: lambda node: str(node.name),
    exp.Dot: lambda node: (
        f"NULL[{node.name}]" if isinstance(node.this, exp.Null) else f"{pretty(node.this)}.{node.name}"
    ),
    exp.HexString: lambda node: f"X'{node.name.zfill(len(node.name) + len(node.name) % 2).upper()}'",
    exp.Literal: _literal,
    exp.RawString: lambda node: str(node.name),
    exp.Concat: lambda node: "".join(pretty(part) for part in node.expressions),
    exp.Null: lambda node: "NULL",
    exp.Boolean: lambda node: "true" if node.this else "false",
    exp.NEQ: lambda node: f"(NOT ({pretty(node.this)} = {pretty(node.expression)}))",
    exp.NullSafeNEQ: lambda node: f"(NOT ({pretty(node.this)} <=> {pretty(node.expression)}))",
    exp.Neg: lambda node: _negative(node.this),
    exp.Alias: lambda node: f"{pretty(node.this)} AS {node.alias}",
    exp.BitwiseNot: lambda node: f"~{pretty(node.this)}",
    exp.Not: _not,
    exp.Is: _is,
    exp.In: _in,
    exp.Between: lambda node: (
        f"between({pretty(node.this)}, {pretty(node.args['low'])}, {pretty(node.args['high'])})"
    ),
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
        f"{node.meta.get('name', 'substring')}({pretty(node.this)}, {pretty(node.args['start'])}, "
        f"{pretty(node.args['length']) if node.args.get('length') else 2147483647})"
    ),
    exp.Trim: lambda node: _trim(node),
    exp.Bracket: lambda node: f"{pretty(node.this)}[{_list(node.expressions)}]",
    exp.CurrentDate: lambda node: "current_date()",
    exp.CurrentTimestamp: lambda node: "current_timestamp()",
    exp.Extract: lambda node: f"extract({node.meta.get('unit', node.name)} FROM {pretty(node.expression)})",
    exp.Subquery: lambda node: _query(node, "scalarsubquery"),
    exp.Window: _window,
    exp.Exists: lambda node: _query(node.this, "exists"),
    exp.Lambda: _lambda,
    exp.WithinGroup: _within_group,
    exp.IgnoreNulls: lambda node: pretty(node.this),
    exp.RespectNulls: lambda node: pretty(node.this),
}


def _trim(node: Any) -> str:
    side = (node.args.get("position") or "BOTH").upper()
    if node.expression is None:
        return f"{ {'LEADING': 'ltrim', 'TRAILING': 'rtrim'}.get(side, 'trim') }({pretty(node.this)})"
    return f"TRIM({side} {pretty(node.expression)} FROM {pretty(node.this)})"
