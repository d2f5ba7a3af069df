"""Translates window functions: `rank() OVER (PARTITION BY a ORDER BY b)`, aggregates over windows, frames,
named windows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from math import inf
from typing import TYPE_CHECKING

from sqlglot import exp

from deltaic.errors import InvalidArgumentError
from deltaic.protocol.schema import DataType
from deltaic.spark_sql import values as v
from deltaic.spark_sql.casts import cast, literal
from deltaic.spark_sql.functions.aggregates import NAMES
from deltaic.spark_sql.nested_values import normalized
from deltaic.spark_sql.query.aggregate_calls import AggregateCall, aggregate_call
from deltaic.spark_sql.query.ordering import direction
from deltaic.spark_sql.translation import AGGREGATES
from deltaic.spark_sql.values import Limits, Value, unsupported

if TYPE_CHECKING:
    from deltaic.spark_sql.query.subqueries import QueryTranslator

_RANKS = {
    "row_number": "integer",
    "rank": "integer",
    "dense_rank": "integer",
    "ntile": "integer",
    "percent_rank": "double",
    "cume_dist": "double",
}
_PLACES = Limits(1, 2**31 - 2)
"""Limits of a row's rank. With these, `rank() + 1` cannot overflow, so DuckDB may optimize it. In a partition
of 2,147,483,647 or more rows, the cast of the rank raises an error."""
_POSITIONS = {"first_value": "first_value", "first": "first_value", "any_value": "first_value",
              "last_value": "last_value", "last": "last_value", "nth_value": "nth_value"}  # fmt: skip
_OFFSETS = {"lag": 1, "lead": -1}
FUNCTIONS = frozenset([*_RANKS, *_POSITIONS, *_OFFSETS])
"""Functions that need OVER, or mean something else with OVER than without."""
_CALL = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|([a-z_][a-z_0-9]*)\(""", re.IGNORECASE)


def window(node: exp.Window, translator: QueryTranslator, named: Sequence[exp.Expr]) -> Value:
    """Returns the value of a call with OVER. `named`: the windows of the WINDOW clause."""
    call, nulls, condition = _call(node)
    specification = _specification(node, named)
    function = call.this.lower()
    arguments = list(call.expressions)
    if any(isinstance(argument, exp.Distinct) for argument in arguments):
        raise InvalidArgumentError(
            "[DISTINCT_WINDOW_FUNCTION_UNSUPPORTED] a window function takes no DISTINCT", found=function
        )
    keys = [
        normalized(translator.queries.used(translator.window_key(tree))) for tree in specification.partition
    ]
    partition = f"PARTITION BY {', '.join(key.sql for key in keys)}" if keys else ""
    items = [_ordered(item, translator) for item in specification.order]
    order = f"ORDER BY {', '.join(direction(item, value) for item, value in items)}" if items else ""
    if function in _RANKS or function in _OFFSETS:
        if not items:
            raise InvalidArgumentError(
                f"[WINDOW_FUNCTION_FRAME_NOT_ORDERED] {function} needs an ORDER BY in its window",
                found=function,
            )
        if specification.frame is not None and not _is_default(specification.frame):
            raise InvalidArgumentError(
                f"[WINDOW_FUNCTION_AND_FRAME_MISMATCH] {function} takes no frame", found=function
            )
        frame = ""
    else:
        frame = _frame(specification.frame, items, translator)
    over = f"OVER ({' '.join(part for part in (partition, order, frame) if part)})"
    if condition is not None and function not in AGGREGATES and function not in NAMES:
        raise InvalidArgumentError("FILTER needs an aggregate function", found=function)
    if function in _RANKS:
        return _rank(function, arguments, translator, over)
    if function in _OFFSETS:
        return _offset(function, arguments, translator, nulls, over)
    if function in _POSITIONS:
        return _position(function, arguments, translator, nulls, over)
    if (function not in AGGREGATES and function not in NAMES) or nulls:
        raise unsupported(f"the window function {function}{' with IGNORE NULLS' if nulls else ''}")
    value = aggregate_call(translator, AggregateCall(call, condition=condition))
    return value.like(_over(value.sql, over), value.type)


def _call(node: exp.Window) -> tuple[exp.Anonymous, bool, exp.Expr | None]:
    """Returns the call, whether it has IGNORE NULLS, and the condition of its FILTER."""
    call, nulls, condition = node.this, False, None
    if isinstance(call, exp.WithinGroup) or (
        isinstance(call, exp.Filter) and isinstance(call.this, exp.WithinGroup)
    ):
        sorted_call = AggregateCall.of(call)
        if sorted_call.order:
            raise unsupported(f"{sorted_call.name} with WITHIN GROUP over a window")
        return sorted_call.node, False, sorted_call.condition
    while isinstance(call, (exp.IgnoreNulls, exp.RespectNulls, exp.Filter)):
        if isinstance(call, exp.Filter):
            condition = call.expression.this
        else:
            nulls = isinstance(call, exp.IgnoreNulls)
        call = call.this
    if not isinstance(call, exp.Anonymous):
        raise unsupported(f"the window function {call.sql(dialect='databricks')[:60]}")
    if call.expressions and isinstance(call.expressions[0], (exp.IgnoreNulls, exp.RespectNulls)):
        nulls = isinstance(call.expressions[0], exp.IgnoreNulls)
        call = call.copy()
        call.set("expressions", [call.expressions[0].this, *call.expressions[1:]])
    return call, nulls, condition


class _Specification:
    def __init__(self, node: exp.Expr) -> None:
        order = node.args.get("order")
        self.partition: list[exp.Expr] = list(node.args.get("partition_by") or ())
        self.order: list[exp.Expr] = list(order.expressions) if order is not None else []
        self.frame: exp.Expr | None = node.args.get("spec")


def _specification(node: exp.Expr, named: Sequence[exp.Expr]) -> _Specification:
    """Returns the window of OVER (…). If OVER gives a name, returns the window that the WINDOW clause defines
    by this name."""
    alias = node.args.get("alias")
    own = _Specification(node)
    if alias is None:
        return own
    found = next((each for each in named if each.name.lower() == alias.name.lower()), None)
    if found is None:
        raise InvalidArgumentError(f"[MISSING_WINDOW_SPECIFICATION] no window {alias.name}", found=alias.name)
    if own.partition or own.order or own.frame is not None:
        raise unsupported("a named window with more clauses")
    return _Specification(found) if found.args.get("alias") is None else _specification(found, named)


def _ordered(item: exp.Expr, translator: QueryTranslator) -> tuple[exp.Expr, Value]:
    value = translator.queries.used(
        translator.window_key(item.this if isinstance(item, exp.Ordered) else item)
    )
    return item, normalized(value) if v.holds_fraction(value.type) else value


def _is_default(frame: exp.Expr) -> bool:
    bounds = [str(frame.args.get(key) or "").upper() for key in ("kind", "start", "start_side", "end")]
    return bounds in (
        ["ROWS", "UNBOUNDED", "PRECEDING", "CURRENT ROW"],
        ["ROWS", "UNBOUNDED", "PRECEDING", ""],
    )


def _frame(
    frame: exp.Expr | None, items: Sequence[tuple[exp.Expr, Value]], translator: QueryTranslator
) -> str:
    if frame is None:
        return ""
    kind = str(frame.args.get("kind") or "ROWS").upper()
    if kind not in ("ROWS", "RANGE") or frame.args.get("exclude"):
        raise unsupported(f"a frame of {kind}")
    bounds, types, places = [], list[DataType](), list[float]()
    for key in ("start", "end"):
        bound = frame.args.get(key)
        side = str(frame.args.get(f"{key}_side") or "").upper()
        if bound is None or bound == "CURRENT ROW":
            bounds.append("CURRENT ROW")
            places.append(0)
        elif bound == "UNBOUNDED":
            bounds.append(f"UNBOUNDED {side}")
            places.append(-inf if side == "PRECEDING" else inf)
        else:
            bounds.append(_bound(kind, bound, side, items, translator))
            value = translator.value(bound)
            types.append(value.type)
            places.append(_place(value, side))
    if kind == "RANGE" and len(types) == 2 and any(map(v.is_interval, types)) and types[0] != types[1]:
        message = (
            "[DATATYPE_MISMATCH.SPECIFIED_WINDOW_FRAME_DIFF_TYPES] the intervals of a frame have two types"
        )
        raise InvalidArgumentError(message, found=" and ".join(map(v.type_text, types)))
    if places[0] == inf or places[1] == -inf:
        message = (
            "[DATATYPE_MISMATCH.SPECIFIED_WINDOW_FRAME_INVALID_BOUND] a frame starts at the end or ends at"
            " the start"
        )
        raise InvalidArgumentError(message, found=frame.sql(dialect="databricks"))
    if places[0] <= places[1]:
        return f"{kind} BETWEEN {bounds[0]} AND {bounds[1]}"
    if len(types) == len(places):
        message = "[DATATYPE_MISMATCH.SPECIFIED_WINDOW_FRAME_WRONG_COMPARISON] a frame starts after its end"
        raise InvalidArgumentError(message, found=frame.sql(dialect="databricks"))
    # `CURRENT ROW AND 1 PRECEDING` has no rows, and DuckDB does not parse it
    return "ROWS BETWEEN 2 FOLLOWING AND 1 FOLLOWING"


def _place(value: Value, side: str) -> float:
    """Returns the distance of a bound from the current row, negative before it; for a bound that is no
    literal number, only its sign is right."""
    is_number = isinstance(value.constant, (int, float, Decimal)) and not isinstance(value.constant, bool)
    amount = float(value.constant) if is_number else 1
    return -amount if side == "PRECEDING" else amount


def _bound(
    kind: str,
    bound: exp.Expr,
    side: str,
    items: Sequence[tuple[exp.Expr, Value]],
    translator: QueryTranslator,
) -> str:
    value = translator.value(bound)
    if kind == "ROWS":
        if not isinstance(value.constant, int) or isinstance(value.constant, bool):
            raise InvalidArgumentError(
                "[DATATYPE_MISMATCH] a bound of ROWS is a whole number", found=bound.sql(dialect="databricks")
            )
        amount = value.constant
        if amount < 0:  # -1 PRECEDING is 1 FOLLOWING
            amount, side = -amount, "FOLLOWING" if side == "PRECEDING" else "PRECEDING"
        return f"{amount} {side}"
    if len(items) != 1:
        raise InvalidArgumentError(
            "[DATATYPE_MISMATCH.RANGE_FRAME_MULTI_ORDER] a bound of RANGE needs one key of order",
            found=len(items),
        )
    key = items[0][1]
    if key.type in v.TEMPORAL:
        if v.is_day_time(value.type) and (key.type != "date" or value.type == v.DAYS):
            return f"to_microseconds({value.sql}) {side}"
        if v.is_year_month(value.type):
            return f"to_months({value.sql}) {side}"
        if key.type == "date" and value.type in v.INTEGRAL:
            return f"to_days(CAST({value.sql} AS INTEGER)) {side}"
    elif (
        v.is_numeric(key.type)
        and v.is_numeric(value.type)
        and (v.common_type(value.type, key.type) == key.type or value.is_constant)
    ):
        return f"{cast(value, key.type, translator.zone).sql} {side}"
    raise InvalidArgumentError(
        "[DATATYPE_MISMATCH.SPECIFIED_WINDOW_FRAME_UNACCEPTED_TYPE] a bound of RANGE does not fit the key of"
        " order",
        found=v.type_text(value.type),
        expected=v.type_text(key.type),
    )


def _rank(function: str, arguments: Sequence[exp.Expr], translator: QueryTranslator, over: str) -> Value:
    argument = ""
    if function == "ntile" and len(arguments) <= 1:
        buckets = translator.value(arguments[0]) if arguments else literal(1, "integer")
        if not isinstance(buckets.constant, int) or buckets.constant < 1:
            raise InvalidArgumentError("[DATATYPE_MISMATCH] ntile takes a number of buckets, at least 1")
        argument = str(buckets.constant)
    elif arguments:
        raise InvalidArgumentError(
            f"[WRONG_NUM_ARGS] {function} takes no argument here", found=len(arguments)
        )
    kind = _RANKS[function]
    limits = _PLACES if kind == "integer" else None
    return Value(
        f"CAST({function}({argument}) {over} AS {v.duckdb_type(kind)})", kind, nullable=False, limits=limits
    )


def _offset(
    function: str, arguments: Sequence[exp.Expr], translator: QueryTranslator, nulls: bool, over: str
) -> Value:
    if not 1 <= len(arguments) <= 3:
        raise InvalidArgumentError(
            f"[WRONG_NUM_ARGS] {function} takes one to three arguments", found=len(arguments)
        )
    value = translator.value(arguments[0])
    offset = translator.value(arguments[1]) if len(arguments) > 1 else literal(1, "integer")
    if not isinstance(offset.constant, int):
        raise unsupported(f"{function} by a number of rows that is not a literal")
    default = translator.value(arguments[2]) if len(arguments) > 2 else literal(None, "void")
    if (default.type != "void" and default.type != value.type) or default.type == "void":
        default = cast(default, value.type, translator.zone)
    ignore = " IGNORE NULLS" if nulls else ""
    sql = f"{function}({value.sql}, {offset.constant}, {default.sql}{ignore}) {over}"
    nullable = value.nullable or default.nullable
    return v.combine(sql, value.type, [value, default], nullable=nullable).not_foldable([value])


def _position(
    function: str, arguments: Sequence[exp.Expr], translator: QueryTranslator, nulls: bool, over: str
) -> Value:
    name = _POSITIONS[function]
    most = 2
    if not 1 <= len(arguments) <= most:
        raise InvalidArgumentError(
            f"[WRONG_NUM_ARGS] {function} takes one or two arguments", found=len(arguments)
        )
    value = translator.value(arguments[0])
    operands = value.sql
    if len(arguments) == most:
        second = translator.value(arguments[1]).constant
        if name == "nth_value":
            if not isinstance(second, int) or isinstance(second, bool) or second < 1:
                raise InvalidArgumentError(
                    "[DATATYPE_MISMATCH] nth_value takes a place, a whole number from 1"
                )
            operands += f", {second}"
        elif isinstance(second, bool):
            nulls = nulls or second
        else:
            raise InvalidArgumentError(
                f"[DATATYPE_MISMATCH] {function} takes true or false as its second argument"
            )
    elif name == "nth_value":
        raise InvalidArgumentError("[WRONG_NUM_ARGS] nth_value takes two arguments", found=1)
    sql = f"{name}({operands}{' IGNORE NULLS' if nulls else ''}) {over}"
    return v.combine(sql, value.type, [value], nullable=True).not_foldable([value])


def _over(sql: str, over: str) -> str:
    """Returns the SQL of an aggregate with `over` after each call of an aggregate function: `coalesce(sum(a)
    OVER (…), 0)`.

    One function of Spark may be several calls in DuckDB: `avg` of decimals divides a sum by a count."""
    found, position = [], 0
    while (match := _CALL.search(sql, position)) is not None:
        if match[1] is None or match[1].lower() not in _ENGINE:
            found.append(sql[position : match.end()])
            position = match.end()
            continue
        end = _closed(sql, match.end())
        if rest := re.match(r" FILTER \(", sql[end:]):
            end = _closed(sql, end + rest.end())
        found.append(f"{sql[position:end]} {over}")
        position = end
    return "".join([*found, sql[position:]])


def _closed(sql: str, position: int) -> int:
    """Returns the position after the bracket that closes the one before `position`."""
    depth = 1
    for match in re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|[()]""").finditer(sql, position):
        depth += (match[0] == "(") - (match[0] == ")")
        if depth == 0:
            return match.end()
    raise ValueError("an aggregate without its closing bracket")


_ENGINE = frozenset(
    # as a list it takes sixty lines
    """any_value approx_count_distinct approx_quantile arbitrary arg_max arg_max_null arg_min arg_min_null
    array_agg avg bit_and bit_or bit_xor bool_and bool_or corr count count_if count_star covar_pop covar_samp
    entropy favg first fsum group_concat histogram kurtosis kurtosis_pop last list listagg mad max max_by
    median min min_by mode product quantile quantile_cont quantile_disc regr_avgx regr_avgy regr_count
    regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy reservoir_quantile sem skewness stddev
    stddev_pop stddev_samp string_agg sum sum_no_overflow var_pop var_samp variance""".split()  # noqa: SIM905
)
"""Names of DuckDB's aggregate functions."""
