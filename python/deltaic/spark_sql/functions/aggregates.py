"""Spark's aggregate functions in DuckDB's SQL, with Spark's result types. A function that is not here is
refused.

Source: Spark's expressions/aggregate, in ANSI mode. Nulls are ignored. A sum of whole numbers that exceeds
`bigint` raises ARITHMETIC_OVERFLOW, a sum of decimals that exceeds its type raises
NUMERIC_VALUE_OUT_OF_RANGE. A sum of floats depends on the order of rows, as in Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from deltaic.errors import InvalidArgumentError
from deltaic.protocol.schema import Array
from deltaic.spark_sql import operators
from deltaic.spark_sql import values as v
from deltaic.spark_sql.casts import Zone, cast
from deltaic.spark_sql.functions.kernels import kernel_sql
from deltaic.spark_sql.functions.statistical_aggregates import (
    approx_top_k,
    histogram,
    mode,
    moment,
    pair,
    pair_count,
    percentile,
    shape,
    sorted_mode,
)
from deltaic.spark_sql.functions.sum_aggregates import (
    average,
    call,
    pair_average,
    sum_of,
    try_average,
    try_sum,
)
from deltaic.spark_sql.nested_values import is_sortable, normalized, sort_key
from deltaic.spark_sql.values import Value

Build = Callable[[Sequence[Value], bool, Zone], Value]
_OF_DOUBLES = {
    *(
        "sum",
        "avg",
        "mean",
        "try_sum",
        "try_avg",
        "std",
        "stddev",
        "stddev_samp",
        "stddev_pop",
        "variance",
        "var_samp",
        "var_pop",
    ),
    *(
        "skewness",
        "kurtosis",
        "corr",
        "covar_pop",
        "covar_samp",
        "median",
        "percentile",
        "regr_avgx",
        "regr_avgy",
        "regr_count",
    ),
    *("regr_intercept", "regr_r2", "regr_slope", "regr_sxx", "regr_sxy", "regr_syy"),
}
"""Aggregates of numbers: text, and NULL without a type, is cast to double as in Spark, so that `sum('1')` is
1.0."""
_UNTYPED = {
    **dict.fromkeys(("bit_and", "bit_or", "bit_xor"), "integer"),
    **dict.fromkeys(
        ("percentile_approx", "approx_percentile", "percentile_cont", "percentile_disc", "histogram_numeric"),
        "double",
    ),
    **dict.fromkeys(("listagg", "string_agg"), "string"),
}
"""Aggregate -> the type that Spark casts a NULL without a type to."""


def aggregate(name: str, arguments: Sequence[Value], distinct: bool, zone: Zone, *, order: str = "") -> Value:
    """Returns the aggregate function `name` of `arguments`. `order`: sort keys in DuckDB's SQL, for listagg
    alone: the order in which it joins its texts. Raises UnsupportedFeatureError if the function is not
    supported."""
    build = _AGGREGATES.get(name)
    if arguments and arguments[0].type == "void" and name in _UNTYPED:
        arguments = [cast(arguments[0], _UNTYPED[name], zone), *arguments[1:]]
    if order:
        return _listed(arguments, distinct, zone, order).not_foldable(arguments)
    if build is None:
        raise v.unsupported(f"aggregate function {name}", *(argument.type for argument in arguments))
    least, most = _COUNTS.get(name, (1, 1))
    if name != "count" and not least <= len(arguments) <= most:
        takes = (
            f"{least} argument{'s' if least > 1 else ''}" if least == most else f"{least} to {most} arguments"
        )
        raise InvalidArgumentError(f"[WRONG_NUM_ARGS] {name} takes {takes}", found=len(arguments))
    if name in _OF_DOUBLES:
        arguments = [
            cast(each, "double", zone) if each.type in ("string", "void") else each for each in arguments
        ]
    return build(arguments, distinct, zone).not_foldable(arguments)


def count_rows() -> Value:
    """Returns count(*)."""
    return Value("count(*)", "long", nullable=False)


def _count(arguments: Sequence[Value], distinct: bool, zone: Zone) -> Value:
    if not arguments:
        raise InvalidArgumentError("[WRONG_NUM_ARGS] count takes an argument", found=0)
    if distinct:
        arguments = [normalized(argument) for argument in arguments]
    known = " AND ".join(f"{argument.sql} IS NOT NULL" for argument in arguments)
    if not distinct:
        return v.combine(f"count(CASE WHEN {known} THEN 1 END)", "long", arguments, nullable=False)
    if len(arguments) == 1:
        return v.combine(call("count", arguments[0], True), "long", arguments, nullable=False)
    row = ", ".join(argument.sql for argument in arguments)
    return v.combine(
        f"count(DISTINCT CASE WHEN {known} THEN row({row}) END)", "long", arguments, nullable=False
    )


def _extreme(function: str) -> Build:
    def build(arguments: Sequence[Value], distinct: bool, zone: Zone) -> Value:
        (value,) = arguments
        if not is_sortable(value.type) and value.type != "void":
            raise v.unsupported(f"aggregate function {function}", value.type)
        if distinct:
            value = normalized(value)
        if not isinstance(value.type, str):
            sql = f"arg_{function}({value.sql}, {sort_key(value.sql, value.type)})"
            return v.combine(
                f"CAST({sql} AS {v.duckdb_type(value.type)})", value.type, [value], nullable=True
            )
        return v.combine(f"{function}({value.sql})", value.type, [value], nullable=True)

    return build


def of_one_row(name: str, arguments: Sequence[Value], condition: Value | None = None) -> Value:
    """Returns first or last: the value of the first or last row, in the order in which rows arrive. A true
    second argument ignores nulls.
    `condition`: the condition of FILTER."""
    value, function = arguments[0], "last" if name.startswith("last") else "first"
    # DuckDB turns the negative zeros inside into positive ones
    if not isinstance(value.type, str) and v.holds_fraction(value.type):
        raise v.unsupported(f"aggregate function {name}", value.type)
    conditions = [] if condition is None else [condition.sql]
    if len(arguments) > 1:
        if not isinstance(arguments[1].constant, bool):
            raise v.unsupported(f"{name} with a second argument that is no literal boolean")
        conditions += [f"{value.sql} IS NOT NULL"] if arguments[1].constant else []
    kept = f" FILTER (WHERE {' AND '.join(conditions)})" if conditions else ""
    return v.combine(f"{function}({value.sql}){kept}", value.type, arguments, nullable=True).not_foldable(
        arguments
    )


def _any(name: str) -> Build:
    def build(arguments: Sequence[Value], distinct: bool, zone: Zone) -> Value:
        if distinct:  # which of several distinct values is the first depends on Spark's hashes
            raise v.unsupported(f"aggregate function {name} of DISTINCT", arguments[0].type)
        return of_one_row(name, arguments)

    return build


def all_of(values: Sequence[Value]) -> Value:
    """Returns an array of aggregates over the same rows; the array is null if they are null."""
    kind = Array(values[0].type, False)
    items = ", ".join(value.sql for value in values)
    sql = f"(CASE WHEN {values[0].sql} IS NOT NULL THEN CAST([{items}] AS {v.duckdb_type(kind)}) END)"
    return v.combine(sql, kind, values, nullable=True).not_foldable(values)


def _logical(function: str) -> Build:
    def build(arguments: Sequence[Value], distinct: bool, zone: Zone) -> Value:
        value = operators.boolean(arguments[0], zone, function)
        return v.combine(f"{function}({value.sql})", "boolean", [value], nullable=True).not_foldable([value])

    return build


def _count_if(arguments: Sequence[Value], distinct: bool, zone: Zone) -> Value:
    value = operators.boolean(arguments[0], zone, "count_if")
    found = f"count({'DISTINCT ' if distinct else ''}CASE WHEN {value.sql} THEN 1 END)"
    return v.combine(found, "long", [value], nullable=False).not_foldable([value])


def _collect(arguments: Sequence[Value], distinct: bool, zone: Zone) -> Value:
    v.check_storable("an array of", arguments)
    value = normalized(arguments[0]) if distinct else arguments[0]
    data_type = Array(value.type, False)
    found = f"list({'DISTINCT ' if distinct else ''}{value.sql}) FILTER (WHERE {value.sql} IS NOT NULL)"
    return v.combine(
        f"coalesce({found}, CAST([] AS {v.duckdb_type(data_type)}))", data_type, [value], nullable=False
    )


def _by(function: str) -> Build:
    """Builds max_by or min_by: the first argument of the row whose second argument is greatest or least. Rows
    whose second argument is null are ignored. With a third argument n, an array of the values of n rows."""

    def build(arguments: Sequence[Value], distinct: bool, zone: Zone) -> Value:
        value, order = arguments[:2]
        if distinct or not (is_sortable(order.type) or order.type == "void"):
            raise v.unsupported(f"aggregate function {function}", value.type, order.type)
        kind = v.duckdb_type(value.type)
        if len(arguments) > 2:
            return _rows_by(function, value, order, arguments[2])
        return v.combine(
            f"CAST({function}({value.sql}, {sort_key(order.sql, order.type)}) AS {kind})",
            value.type,
            arguments,
            nullable=True,
        )

    return build


def _rows_by(function: str, value: Value, order: Value, count: Value) -> Value:
    rows = count.constant
    if not isinstance(rows, int) or isinstance(rows, bool) or not 1 <= rows <= 100_000:
        raise InvalidArgumentError(
            "[DATATYPE_MISMATCH.VALUE_OUT_OF_RANGE] a number of rows is a literal", expected="1 to 100000"
        )
    v.check_storable("an array of", [value])
    direction = "DESC" if "max" in function else "ASC"
    listed = (
        f"list({value.sql} ORDER BY {sort_key(order.sql, order.type)} {direction}) FILTER (WHERE {order.sql}"
        " IS NOT NULL)"
    )
    return v.combine(f"({listed})[1:{rows}]", Array(value.type, True), [value, order], nullable=True)


def _bits(function: str) -> Build:
    def build(arguments: Sequence[Value], distinct: bool, zone: Zone) -> Value:
        (value,) = arguments
        if value.type not in v.INTEGRAL:
            raise v.mismatch(function, value.type)
        kind = v.duckdb_type(value.type)
        return v.combine(
            f"CAST({call(function, value, distinct)} AS {kind})", value.type, [value], nullable=True
        )

    return build


BITMAP_BYTES = 4096
"""Number of bytes of a bitmap of `bitmap_construct_agg`: 32768 bits; the first bit of a byte is its
lowest."""


def _bitmap(arguments: Sequence[Value], distinct: bool, zone: Zone) -> Value:
    """Builds bitmap_construct_agg: a bitmap with the bits at the given positions set."""
    place = cast(arguments[0], "long", zone)
    bits = 8 * BITMAP_BYTES
    error = v.failure(
        "INVALID_BITMAP_POSITION", f"'The bitmap position ' || {place.sql} || ' is out of bounds.'"
    )
    outside = f"CASE WHEN {place.sql} NOT BETWEEN 0 AND {bits - 1} THEN {error}"
    # in DuckDB, the first bit of a byte is its highest
    turned = f"{outside} ELSE ({place.sql} // 8) * 8 + 7 - {place.sql} % 8 END"
    sql = f"coalesce(CAST(bitstring_agg({turned}, 0, {bits - 1}) AS BLOB), {_EMPTY_BITMAP})"
    return v.combine(sql, "binary", [place], nullable=False, raises=True)


_SHORT_BITMAP_BYTES = 64
"""Maximum bytes of a bitmap that is merged without filling it up to 4096 bytes first."""
_EMPTY_BITMAP = f"repeat(unhex('00'), {BITMAP_BYTES})"


def _filled(sql: str, size: int) -> str:
    """Returns SQL of a bitmap, filled up with zeros or cut to this number of bytes."""
    return f"({sql} || repeat(unhex('00'), {size}))[1:{size}]"


def _merged_bitmap(function: str) -> Build:
    """Builds bitmap_or_agg or bitmap_and_agg: the OR or the AND of all bitmaps; shorter bitmaps are filled up
    with zeros."""

    def build(arguments: Sequence[Value], distinct: bool, zone: Zone) -> Value:
        (value,) = arguments
        if value.type != "binary":
            raise v.mismatch(f"bitmap_{function.removeprefix('bit_')}_agg", value.type)
        none = _EMPTY_BITMAP if function == "bit_or" else f"repeat(unhex('FF'), {BITMAP_BYTES})"
        size = f"octet_length({value.sql})"
        # Short bitmaps are merged by themselves: filled up to 4096 bytes each, they would take most of the
        # time.
        short = _filled(value.sql, _SHORT_BITMAP_BYTES)
        whole = (
            f"CASE WHEN {size} = {BITMAP_BYTES} THEN {value.sql} ELSE {_filled(value.sql, BITMAP_BYTES)} END"
        )
        few = f"{function}(CASE WHEN {size} <= {_SHORT_BITMAP_BYTES} THEN CAST({short} AS BIT) END)"
        many = f"{function}(CASE WHEN {size} > {_SHORT_BITMAP_BYTES} THEN CAST({whole} AS BIT) END)"
        sides = [f"CAST({_filled(f'CAST({few} AS BLOB)', BITMAP_BYTES)} AS BIT)", many]
        sides = [f"coalesce({side}, CAST({none} AS BIT))" for side in sides]
        sql = f"CAST({sides[0]} {'|' if function == 'bit_or' else '&'} {sides[1]} AS BLOB)"
        return v.combine(sql, "binary", [value], nullable=False)

    return build


def _collect_union(arguments: Sequence[Value], distinct: bool, zone: Zone) -> Value:
    """Builds collect_union: the distinct elements of all arrays, without nulls."""
    (value,) = arguments
    if distinct or not isinstance(value.type, Array) or not v.is_comparable(value.type.element):
        raise v.unsupported("aggregate function collect_union", value.type)
    value = normalized(value)
    items = f"flatten(list({value.sql}) FILTER (WHERE {value.sql} IS NOT NULL))"
    sql = f"CAST(coalesce(list_distinct({items}), []) AS {v.duckdb_type(value.type)})"
    return v.combine(sql, value.type, [value], nullable=False)


def _approx_count_distinct(arguments: Sequence[Value], distinct: bool, zone: Zone) -> Value:
    """Builds approx_count_distinct as an exact count, which is within any deviation that the second argument
    allows."""
    if len(arguments) > 1 and arguments[1].type == "void":
        raise v.mismatch("approx_count_distinct", arguments[1].type)
    return _count(arguments[:1], True, zone)


def _listed(arguments: Sequence[Value], distinct: bool, zone: Zone, order: str = "") -> Value:
    """Builds listagg: all texts joined with a separator, without nulls."""
    value = cast(arguments[0], "string", zone)
    separator = "" if len(arguments) == 1 or arguments[1].constant is None else arguments[1].constant
    if not (arguments[0].type == "string" or arguments[0].type in v.INTEGRAL) or not isinstance(
        separator, str
    ):
        raise v.unsupported("aggregate function listagg", *(argument.type for argument in arguments))
    keys = f" ORDER BY {order}" if order else ""
    if distinct and order and not order.startswith(f"{value.sql} "):
        raise InvalidArgumentError(
            "[INVALID_WITHIN_GROUP_EXPRESSION.MISMATCH_WITH_DISTINCT_INPUT] listagg(DISTINCT x) lists its"
            " texts in their own order",
            expected="WITHIN GROUP (ORDER BY x), with the same x",
        )
    sql = f"string_agg({'DISTINCT ' if distinct else ''}{value.sql}, {v.text(separator)}{keys})"
    return v.combine(sql, "string", [value], nullable=True)


def _schema_of_variants(arguments: Sequence[Value], distinct: bool, zone: Zone) -> Value:
    if arguments[0].type != "variant":
        raise v.mismatch("schema_of_variant_agg", arguments[0].type)
    return v.combine(
        kernel_sql("variant_common_schema", "string", f"list({arguments[0].sql})"),
        "string",
        arguments,
        nullable=False,
    )


_AGGREGATES: dict[str, Build] = {
    "schema_of_variant_agg": _schema_of_variants,
    "count": _count,
    "sum": sum_of,
    "avg": average,
    "mean": average,
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
    "stddev": moment("stddev_samp"),
    "std": moment("stddev_samp"),
    "stddev_samp": moment("stddev_samp"),
    "stddev_pop": moment("stddev_pop"),
    "variance": moment("var_samp"),
    "var_samp": moment("var_samp"),
    "var_pop": moment("var_pop"),
    "collect_list": _collect,
    "array_agg": _collect,
    "collect_set": lambda arguments, distinct, zone: _collect(arguments, True, zone),
    "max_by": _by("arg_max_null"),
    "min_by": _by("arg_min_null"),
    "bit_and": _bits("bit_and"),
    "bit_or": _bits("bit_or"),
    "bit_xor": _bits("bit_xor"),
    "bitmap_construct_agg": _bitmap,
    "bitmap_or_agg": _merged_bitmap("bit_or"),
    "bitmap_and_agg": _merged_bitmap("bit_and"),
    "corr": pair("corr", 2, "xy"),
    "covar_pop": pair("covar_pop", 1),
    "covar_samp": pair("covar_samp", 2),
    "regr_count": pair_count,
    "regr_avgx": pair_average(1),
    "regr_avgy": pair_average(0),
    "regr_r2": pair("regr_r2", 1, "x"),
    "regr_slope": pair("regr_slope", 2, "x"),
    "regr_intercept": pair("regr_intercept", 2, "x"),
    "regr_sxx": pair("regr_sxx", 1),
    "regr_sxy": pair("regr_sxy", 1),
    "regr_syy": pair("regr_syy", 1),
    "skewness": shape("skewness"),
    "kurtosis": shape("kurtosis"),
    "percentile": percentile("percentile"),
    "median": percentile("median"),
    "percentile_approx": percentile("percentile_approx"),
    "approx_percentile": percentile("percentile_approx"),
    "percentile_cont": percentile("percentile_cont"),
    "percentile_disc": percentile("percentile_disc"),
    "histogram_numeric": histogram,
    "mode": mode,
    "mode_sorted": sorted_mode,
    "approx_top_k": approx_top_k,
    "collect_union": _collect_union,
    "approx_count_distinct": _approx_count_distinct,
    "try_sum": try_sum,
    "try_avg": try_average,
    "listagg": _listed,
    "string_agg": _listed,
}
_COUNTS = {
    **dict.fromkeys(
        (
            "first",
            "first_value",
            "any_value",
            "last",
            "last_value",
            "approx_count_distinct",
            "listagg",
            "string_agg",
        ),
        (1, 2),
    ),
    **dict.fromkeys(("corr", "covar_pop", "covar_samp", "mode_sorted"), (2, 2)),
    **dict.fromkeys(("max_by", "min_by"), (2, 3)),
    **dict.fromkeys(("percentile_cont", "percentile_disc"), (3, 3)),
    "mode": (1, 2),
    "histogram_numeric": (2, 2),
    "approx_top_k": (1, 3),
    **dict.fromkeys(
        (
            f"regr_{part}"
            for part in ("count", "avgx", "avgy", "r2", "slope", "intercept", "sxx", "sxy", "syy")
        ),
        (2, 2),
    ),
    "percentile": (2, 3),
    "percentile_approx": (2, 3),
    "approx_percentile": (2, 3),
}
"""Function -> its least and greatest number of arguments. Every other function takes one argument."""
OF_ONE_ROW = frozenset(("first", "first_value", "any_value", "last", "last_value"))
NAMES = frozenset(_AGGREGATES) - {"mode_sorted"}
"""Names of all aggregate functions here. Whether a call is supported depends on the types of its arguments
too."""
