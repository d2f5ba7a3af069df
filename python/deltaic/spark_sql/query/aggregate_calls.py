"""Translates calls of aggregate functions with the clauses after the call: WITHIN GROUP, FILTER, IGNORE
NULLS."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from deltaic.errors import InvalidArgumentError
from deltaic.spark_sql import operators
from deltaic.spark_sql import values as v
from deltaic.spark_sql.casts import literal
from deltaic.spark_sql.functions.aggregates import OF_ONE_ROW, aggregate, all_of, count_rows, of_one_row
from deltaic.spark_sql.functions.statistical_aggregates import approx_top_k
from deltaic.spark_sql.query.ordering import direction
from deltaic.spark_sql.translation import AGGREGATES
from deltaic.spark_sql.values import Value, unsupported

if TYPE_CHECKING:
    from deltaic.spark_sql.query.subqueries import QueryTranslator

_ORDERED = ("percentile_cont", "percentile_disc")
"""Functions that need WITHIN GROUP."""
_PERCENTILES = ("percentile", "percentile_approx", "approx_percentile", *_ORDERED)


def holds_aggregate(tree: exp.Expr) -> bool:
    """True if an expression contains an aggregate function, not counting subqueries. The function of a window
    does not count, but its arguments may contain aggregate functions."""
    if isinstance(tree, (exp.Column, exp.Query)):
        return False
    if isinstance(tree, exp.Window):
        call, sorted_by = tree.this, []
        while isinstance(call, (exp.IgnoreNulls, exp.RespectNulls, exp.Filter, exp.WithinGroup)):
            sorted_by += [call.expression] if isinstance(call, exp.WithinGroup) else []
            call = call.this
        order = tree.args.get("order")
        parts = [
            *sorted_by,
            *call.iter_expressions(),
            *(tree.args.get("partition_by") or ()),
            *(order.expressions if order is not None else ()),
        ]
        return any(holds_aggregate(part) for part in parts)
    return is_aggregate(tree) or any(holds_aggregate(child) for child in tree.iter_expressions())


def is_aggregate(node: exp.Expr) -> bool:
    if isinstance(node, (exp.Filter, exp.WithinGroup)):
        return True
    if isinstance(node, (exp.IgnoreNulls, exp.RespectNulls)):
        return is_aggregate(node.this)
    return isinstance(node, exp.Anonymous) and isinstance(node.this, str) and node.this.lower() in AGGREGATES


@dataclass(frozen=True)
class AggregateCall:
    """A call of an aggregate function with its clauses. `order`: the keys of WITHIN GROUP; `condition`: the
    condition of FILTER."""

    node: exp.Anonymous
    order: tuple[exp.Expr, ...] = ()
    condition: exp.Expr | None = None
    ignore_nulls: bool = False

    @property
    def name(self) -> str:
        return str(self.node.this).lower()

    @staticmethod
    def of(node: exp.Expr) -> AggregateCall:
        """Returns the call in a tree. Raises UnsupportedFeatureError for a clause that is not supported."""
        inner, order, condition, ignore = node, (), None, False
        while not isinstance(inner, exp.Anonymous):
            if isinstance(inner, exp.Filter):
                condition = inner.expression.this
            elif isinstance(inner, exp.WithinGroup) and isinstance(inner.expression, exp.Order):
                order = tuple(inner.expression.expressions)
            elif isinstance(inner, (exp.IgnoreNulls, exp.RespectNulls)):
                ignore = isinstance(inner, exp.IgnoreNulls)
            else:
                raise unsupported(f"the aggregate {node.sql(dialect='databricks')[:60]}")
            inner = inner.this
        call = AggregateCall(inner, order, condition, ignore)
        if call.name in _ORDERED or (call.name == "mode" and order):
            return call._of_sorted()
        if order and call.name not in ("listagg", "string_agg"):
            raise InvalidArgumentError(
                "[INVALID_WITHIN_GROUP_EXPRESSION] this function takes no WITHIN GROUP", found=call.name
            )
        return call

    def _of_sorted(self) -> AggregateCall:
        """Returns the call with the key of WITHIN GROUP among its arguments: `percentile_cont(0.5) WITHIN
        GROUP (ORDER BY x DESC)` becomes `percentile_cont(x, 0.5, true)`."""
        if len(self.order) != 1 or len(self.node.expressions) != (0 if self.name == "mode" else 1):
            raise InvalidArgumentError(
                f"[INVALID_WITHIN_GROUP_EXPRESSION] {self.name} takes one key in WITHIN GROUP (ORDER BY ...)",
                found=len(self.order),
            )
        (key,) = self.order
        ordered = isinstance(key, exp.Ordered)
        falling = exp.Boolean(this=bool(ordered and key.args.get("desc")))
        arguments = [key.this if ordered else key, *self.node.expressions, falling]
        name = "mode_sorted" if self.name == "mode" else self.name
        return replace(self, node=exp.Anonymous(this=name, expressions=arguments), order=())


def aggregate_call(translator: QueryTranslator, call: AggregateCall, *, among: Value | None = None) -> Value:
    """Returns an aggregate over the rows of `translator`. `among`: a further condition on the rows."""
    arguments, distinct, function, condition = list(call.node.expressions), False, call.name, call.condition
    if len(arguments) == 1 and isinstance(arguments[0], exp.Distinct):
        arguments, distinct = list(arguments[0].expressions), True
    elif arguments and isinstance(arguments[0], exp.Distinct):
        arguments, distinct = [*arguments[0].expressions, *arguments[1:]], True
    if not translator.grouped and any(holds_aggregate(argument) for argument in arguments):
        raise InvalidArgumentError(
            "[NESTED_AGGREGATE_FUNCTION] an aggregate function contains another one", found=function
        )
    if function == "count" and len(arguments) == 1 and isinstance(arguments[0], exp.Star):
        if condition is None and among is None:
            return count_rows()
        arguments = [exp.Literal.number(1)]
    if function in _PERCENTILES and len(arguments) > 1 and (places := _places_of(arguments[1])) is not None:
        each = [
            replace(
                call, node=exp.Anonymous(this=function, expressions=[arguments[0], place, *arguments[2:]])
            )
            for place in places
        ]
        return all_of([aggregate_call(translator, one, among=among) for one in each])
    values = [translator.value(argument) for argument in arguments]
    if call.ignore_nulls:
        if function not in OF_ONE_ROW:
            raise InvalidArgumentError(
                "[FUNCTION_WITH_UNSUPPORTED_SYNTAX] this function takes no IGNORE NULLS", found=function
            )
        values = [values[0], literal(True, "boolean")]
    holds = among
    if condition is not None:
        holds = translator.queries.used(translator.value(condition))
        if holds.type != "boolean":
            raise v.mismatch("FILTER", holds.type)
        holds = holds if among is None else operators.connect("AND", [among, holds])
    if holds is not None:
        if function in OF_ONE_ROW:
            return translator.queries.used(of_one_row(function, values, holds))
        if function == "approx_top_k":
            if among is not None:
                raise v.mismatch("PIVOT of approx_top_k", values[0].type)
            return translator.queries.used(
                approx_top_k(values, distinct, translator.zone, holds).not_foldable(values)
            )
        # a literal after the first argument, such as the percentage of percentile, stays a literal
        values = [
            value
            if number and value.is_constant
            else v.combine(
                f"(CASE WHEN {holds.sql} THEN {value.sql} END)", value.type, (value, holds), nullable=True
            )
            for number, value in enumerate(values)
        ]
    keys = [_direction(translator, item) for item in call.order]
    return translator.queries.used(
        aggregate(function, values, distinct, translator.zone, order=", ".join(keys))
    )


def _direction(translator: QueryTranslator, item: exp.Expr) -> str:
    return direction(
        item, translator.queries.used(translator.value(item.this if isinstance(item, exp.Ordered) else item))
    )


def _places_of(tree: exp.Expr) -> Sequence[exp.Expr] | None:
    """Returns the percentages of an array: 0.25 and 0.5 of `percentile(x, array(0.25, 0.5))`. Returns None
    for a single percentage."""
    is_array = isinstance(tree, exp.Anonymous) and str(tree.this).lower() == "array"
    return tree.expressions if is_array else None
