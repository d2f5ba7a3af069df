"""Aggregate functions of Spark for DuckDB: the allow-list, with Spark's result types, for GROUP BY queries.

Source of the meaning: Spark's expressions/aggregate, ANSI on. Sums of whole numbers that leave `bigint` are Spark's ARITHMETIC_OVERFLOW, of
decimals NUMERIC_VALUE_OUT_OF_RANGE; nulls are left out; a sum of floats depends on the order of rows, in Spark as here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from deltaic.errors import InvalidArgumentError
from deltaic.protocol.schema import Array
from deltaic.relation import operators
from deltaic.relation import values as v
from deltaic.relation.casts import Zone, cast
from deltaic.relation.values import Value

Build = Callable[[Sequence[Value], bool, Zone], Value]


def aggregate(name: str, arguments: Sequence[Value], distinct: bool, zone: Zone) -> Value:
    """The aggregate `name` over `arguments`; UnsupportedFeatureError where it is not on the list."""
    build = _AGGREGATES.get(name)
    if build is None:
        raise v.unsupported(f"aggregate function {name}", *(argument.type for argument in arguments))
    if name in _OF_ORDER and len(arguments) == 2:
        raise v.unsupported(f"aggregate function {name} that leaves out nulls")
    if name != "count" and len(arguments) != 1:
        raise InvalidArgumentError(f"[WRONG_NUM_ARGS] {name} takes one argument", found=len(arguments))
    return build(arguments, distinct, zone).not_foldable(arguments)


def count_rows() -> Value:
    """count(*)"""
    return Value("count(*)", "long", nullable=False)


def normalized(value: Value) -> Value:
    """As Spark keeps a value that it groups by: one zero and one NaN."""
    if value.type in v.FRACTIONAL:
        kind = v.duckdb_type(value.type)
        nan = f"WHEN isnan({value.sql}) THEN CAST('NaN' AS {kind})"
        return value.like(f"(CASE WHEN {value.sql} = 0 THEN CAST(0 AS {kind}) {nan} ELSE {value.sql} END)", value.type)
    if not v.is_orderable(value.type) or not isinstance(value.type, str):
        raise v.unsupported("grouping", value.type)
    return value


def _call(function: str, value: Value, distinct: bool) -> str:
    return f"{function}({'DISTINCT ' if distinct else ''}{value.sql})"


def _count(arguments: Sequence[Value], distinct: bool, zone: Zone) -> Value:
    if not arguments:
        raise InvalidArgumentError("[WRONG_NUM_ARGS] count takes an argument", found=0)
    if distinct:
        arguments = [normalized(argument) for argument in arguments]
    known = " AND ".join(f"{argument.sql} IS NOT NULL" for argument in arguments)
    if not distinct:
        return v.combine(f"count(CASE WHEN {known} THEN 1 END)", "long", arguments, nullable=False)
    if len(arguments) == 1:
        return v.combine(_call("count", arguments[0], True), "long", arguments, nullable=False)
    row = ", ".join(argument.sql for argument in arguments)
    return v.combine(f"count(DISTINCT CASE WHEN {known} THEN row({row}) END)", "long", arguments, nullable=False)


def _sum(arguments: Sequence[Value], distinct: bool, zone: Zone) -> Value:
    (value,) = arguments
    if distinct:
        value = normalized(value)
    if value.type in v.INTEGRAL:
        total = _call("sum", value, distinct)
        error = v.failure("ARITHMETIC_OVERFLOW", v.text("long overflow in sum"))
        limits = f"{total} NOT BETWEEN -9223372036854775808 AND 9223372036854775807"
        return v.combine(f"(CASE WHEN {limits} THEN {error} ELSE CAST({total} AS BIGINT) END)", "long", [value], nullable=True, raises=True)
    if value.type in v.FRACTIONAL:
        wide = cast(value, "double", zone)
        return v.combine(_call("sum", wide, distinct), "double", [wide], nullable=True)
    if parts := v.decimal_of(value.type):
        data_type = v.decimal(min(38, parts[0] + 10), parts[1])
        return v.combine(
            f"CAST({_call('sum', value, distinct)} AS {v.duckdb_type(data_type)})", data_type, [value], nullable=True, raises=True
        )
    raise v.unsupported("aggregate function sum", value.type)


def _average(arguments: Sequence[Value], distinct: bool, zone: Zone) -> Value:
    (value,) = arguments
    if distinct:
        value = normalized(value)
    if value.type in v.INTEGRAL or value.type in v.FRACTIONAL:
        wide = cast(value, "double", zone)
        return v.combine(_call("avg", wide, distinct), "double", [wide], nullable=True)
    parts = v.decimal_of(value.type)
    if parts is None or parts[0] > 24:
        # Beyond 24 digits the exact quotient does not fit 38.
        raise v.unsupported("aggregate function avg", value.type)
    precision, scale = parts[0] + 4, parts[1] + 4
    total = operators.unscaled(f"CAST(sum({'DISTINCT ' if distinct else ''}{value.sql}) AS DECIMAL(38, {parts[1]}))", parts[1], 38)
    rows = f"CAST({_call('count', value, distinct)} AS HUGEINT)"
    # Halves go away from zero, as in Spark's decimal division.
    doubled = f"(abs({total}) * 20000 + {rows})"
    quotient = f"(CASE WHEN {total} < 0 THEN -({doubled} // (2 * {rows})) ELSE {doubled} // (2 * {rows}) END)"
    data_type = v.decimal(precision, scale)
    sql = f"(CASE WHEN {rows} = 0 THEN NULL ELSE {operators.scaled(quotient, scale, data_type)} END)"
    return v.combine(sql, data_type, [value], nullable=True)


def _extreme(function: str) -> Build:
    def build(arguments: Sequence[Value], distinct: bool, zone: Zone) -> Value:
        (value,) = arguments
        if not isinstance(value.type, str) or not v.is_orderable(value.type) or value.type == "void":
            raise v.unsupported(f"aggregate function {function}", value.type)
        if distinct:
            value = normalized(value)
        return v.combine(f"{function}({value.sql})", value.type, [value], nullable=True)

    return build


def _any(function: str) -> Build:
    """first, last: of the order in which rows come, nulls among them."""

    def build(arguments: Sequence[Value], distinct: bool, zone: Zone) -> Value:
        kind = arguments[0].type
        if distinct:
            raise v.unsupported(f"aggregate function {function} of DISTINCT", kind)
        if not isinstance(kind, str) and v.holds_fraction(kind):  # the engine keeps them in a form that has no negative zero
            raise v.unsupported(f"aggregate function {function}", kind)
        return v.combine(f"{function}({arguments[0].sql})", kind, arguments, nullable=True)

    return build


def _logical(function: str) -> Build:
    def build(arguments: Sequence[Value], distinct: bool, zone: Zone) -> Value:
        value = operators.boolean(arguments[0], zone, function)
        return v.combine(f"{function}({value.sql})", "boolean", [value], nullable=True).not_foldable([value])

    return build


def _count_if(arguments: Sequence[Value], distinct: bool, zone: Zone) -> Value:
    value = operators.boolean(arguments[0], zone, "count_if")
    found = f"count({'DISTINCT ' if distinct else ''}CASE WHEN {value.sql} THEN 1 END)"
    return v.combine(found, "long", [value], nullable=False).not_foldable([value])


def _moment(function: str) -> Build:
    def build(arguments: Sequence[Value], distinct: bool, zone: Zone) -> Value:
        if not v.is_numeric(arguments[0].type) or distinct:
            raise v.unsupported(f"aggregate function {function}", arguments[0].type)
        wide = cast(arguments[0], "double", zone)
        if arguments[0].type not in v.FRACTIONAL:
            return v.combine(f"{function}({wide.sql})", "double", [wide], nullable=True)
        few = 1 if function.endswith("_samp") else 0  # of one row a sample has no deviation, not even from infinity
        nan = f"CASE WHEN count({wide.sql}) > {few} THEN CAST('nan' AS DOUBLE) END"
        finite = f"{function}(CASE WHEN isfinite({wide.sql}) THEN {wide.sql} END)"
        return v.combine(f"(CASE WHEN bool_or(NOT isfinite({wide.sql})) THEN {nan} ELSE {finite} END)", "double", [wide], nullable=True)

    return build


def _collect(arguments: Sequence[Value], distinct: bool, zone: Zone) -> Value:
    v.check_storable("an array of", arguments)
    value = normalized(arguments[0]) if distinct else arguments[0]
    data_type = Array(value.type, False)
    found = f"list({'DISTINCT ' if distinct else ''}{value.sql}) FILTER (WHERE {value.sql} IS NOT NULL)"
    return v.combine(f"coalesce({found}, CAST([] AS {v.duckdb_type(data_type)}))", data_type, [value], nullable=False)


_AGGREGATES: dict[str, Build] = {
    "count": _count,
    "sum": _sum,
    "avg": _average,
    "mean": _average,
    "min": _extreme("min"),
    "max": _extreme("max"),
    "first": _any("first"),
    "first_value": _any("first"),
    "any_value": _any("first"),
    "last": _any("last"),
    "last_value": _any("last"),
    "bool_and": _logical("bool_and"),
    "every": _logical("bool_and"),
    "bool_or": _logical("bool_or"),
    "some": _logical("bool_or"),
    "any": _logical("bool_or"),
    "count_if": _count_if,
    "stddev": _moment("stddev_samp"),
    "std": _moment("stddev_samp"),
    "stddev_samp": _moment("stddev_samp"),
    "stddev_pop": _moment("stddev_pop"),
    "variance": _moment("var_samp"),
    "var_samp": _moment("var_samp"),
    "var_pop": _moment("var_pop"),
    "collect_list": _collect,
    "array_agg": _collect,
    "collect_set": lambda arguments, distinct, zone: _collect(arguments, True, zone),
}
_OF_ORDER = ("first", "first_value", "any_value", "last", "last_value")
NAMES = frozenset(_AGGREGATES)
"""The aggregate functions that may be on the list, by their arguments' types."""
