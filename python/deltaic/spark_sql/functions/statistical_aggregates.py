"""Statistical aggregate functions: moments, statistics of two columns, percentiles, the most frequent values.

Each function here takes the arguments of a call and returns its value: DuckDB's SQL with Spark's type.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal

from deltaic.errors import InvalidArgumentError
from deltaic.protocol.schema import Array, Field, Struct
from deltaic.spark_sql import values as v
from deltaic.spark_sql.casts import Zone, cast, literal
from deltaic.spark_sql.functions.kernels import kernel_sql
from deltaic.spark_sql.nested_values import normalized
from deltaic.spark_sql.values import Value

Build = Callable[[Sequence[Value], bool, Zone], Value]


def moment(function: str) -> Build:
    def build(arguments: Sequence[Value], distinct: bool, zone: Zone) -> Value:
        if not v.is_numeric(arguments[0].type) or distinct:
            raise v.unsupported(f"aggregate function {function}", arguments[0].type)
        wide = cast(arguments[0], "double", zone)
        if arguments[0].type not in v.FRACTIONAL:
            return v.combine(f"{function}({wide.sql})", "double", [wide], nullable=True)
        # a sample of one row has no deviation (null), even if its value is infinite
        few = 1 if function.endswith("_samp") else 0
        nan = f"CASE WHEN count({wide.sql}) > {few} THEN CAST('nan' AS DOUBLE) END"
        finite = f"{function}(CASE WHEN isfinite({wide.sql}) THEN {wide.sql} END)"
        return v.combine(
            f"(CASE WHEN bool_or(NOT isfinite({wide.sql})) THEN {nan} ELSE {finite} END)",
            "double",
            [wide],
            nullable=True,
        )

    return build


def doubles(name: str, arguments: Sequence[Value], distinct: bool, zone: Zone) -> list[Value]:
    if distinct or not all(v.is_numeric(argument.type) for argument in arguments):
        raise v.unsupported(f"aggregate function {name}", *(argument.type for argument in arguments))
    return [cast(argument, "double", zone) for argument in arguments]


def pair(name: str, few: int, flat: str = "") -> Build:
    """Builds a function of two columns, y and x, over the rows where neither is null: `corr`, `covar_pop`,
    `regr_slope` and the like.

    The result is null for fewer rows than `few`, and if a column that `flat` names is constant. It is NaN if
    a number is not finite, for which DuckDB raises an error."""

    def build(arguments: Sequence[Value], distinct: bool, zone: Zone) -> Value:
        y, x = doubles(name, arguments, distinct, zone)
        known = f"{y.sql} IS NOT NULL AND {x.sql} IS NOT NULL"
        used = {"regr_syy": "y", "regr_sxx": "x"}.get(name, "yx")  # the other column may hold NaN or infinity
        finite = " AND ".join(
            f"isfinite({side.sql})" for side, letter in ((y, "y"), (x, "x")) if letter in used
        )
        sides = {
            letter: (
                f"CASE WHEN {known} AND {finite} THEN"
                f" {side.sql if letter in used else 'CAST(0 AS DOUBLE)'} END"
            )
            for letter, side in (("y", y), ("x", x))
        }
        odd = f"bool_or(CASE WHEN {known} THEN NOT ({finite}) END)"
        same = {
            letter: f"min(CASE WHEN {known} THEN {side.sql} END) = max(CASE WHEN {known} THEN {side.sql} END)"
            for letter, side in (("y", y), ("x", x))
        }
        constant = "".join(f"WHEN {same[letter]} THEN NULL " for letter in flat)
        if name == "regr_r2":
            constant += f"WHEN {same['y']} THEN CAST(1 AS DOUBLE) "
        sql = (
            f"(CASE WHEN count(CASE WHEN {known} THEN 1 END) < {few} THEN NULL {constant}WHEN {odd} THEN"
            f" CAST('nan' AS DOUBLE) ELSE {name}({sides['y']}, {sides['x']}) END)"
        )
        return v.combine(sql, "double", (y, x), nullable=True)

    return build


def pair_count(arguments: Sequence[Value], distinct: bool, zone: Zone) -> Value:
    first, second = doubles("regr_count", arguments, distinct, zone)
    known = f"{first.sql} IS NOT NULL AND {second.sql} IS NOT NULL"
    return v.combine(f"count(CASE WHEN {known} THEN 1 END)", "long", (first, second), nullable=False)


def shape(name: str) -> Build:
    """Builds skewness or kurtosis of the rows themselves, as in Spark. DuckDB's own functions estimate them
    for the population that the rows are a sample of."""

    def build(arguments: Sequence[Value], distinct: bool, zone: Zone) -> Value:
        (value,) = doubles(name, arguments, distinct, zone)
        finite = f"CASE WHEN isfinite({value.sql}) THEN {value.sql} END"
        items = f"(list({finite}) FILTER (WHERE {value.sql} IS NOT NULL))"
        # The mean is bound by a lambda over a list of one element, so that it is computed once and not for
        # each element of `items`.
        moment = "list_sum(list_transform({items}, lambda deltaic_e: pow(deltaic_e - deltaic_mean, {power})))"
        m2, m3, m4 = (moment.format(items=items, power=power) for power in (2, 3, 4))
        rows = f"CAST(count({value.sql}) AS DOUBLE)"
        shape = (
            f"sqrt({rows}) * {m3} / sqrt(pow({m2}, 3))"
            if name == "skewness"
            else f"{rows} * {m4} / pow({m2}, 2) - 3.0"
        )
        shape = f"list_transform([list_avg({items})], lambda deltaic_mean: {shape})[1]"
        odd = f"bool_or(NOT isfinite({value.sql}))"
        sql = (
            f"(CASE WHEN {odd} THEN CAST('nan' AS DOUBLE) WHEN min({finite}) = max({finite}) THEN NULL ELSE"
            f" {shape} END)"
        )
        return v.combine(sql, "double", [value], nullable=True)

    return build


def percentile(name: str) -> Build:
    """Builds percentile (interpolates between two rows), percentile_approx (the value of a row, exact here),
    percentile_cont or percentile_disc. The last two have a further argument: true if their order is
    descending. They are computed of the negated values then."""
    sorted_name = name in ("percentile_cont", "percentile_disc")

    def build(arguments: Sequence[Value], distinct: bool, zone: Zone) -> Value:
        value, *rest = arguments
        falling = sorted_name and bool(rest.pop().constant)
        if distinct or not (
            v.is_numeric(value.type)
            or (
                name in ("percentile", "median")
                and (v.is_day_time(value.type) or v.is_year_month(value.type))
            )
        ):
            raise v.unsupported(f"aggregate function {name}", value.type)
        place = rest[0].constant if rest else 0.5
        if isinstance(place, bool) or not isinstance(place, (int, float, Decimal)):
            raise v.unsupported(f"{name} with a percentage that is no literal number")
        if not 0 <= place <= 1:
            raise InvalidArgumentError(
                "[DATATYPE_MISMATCH.VALUE_OUT_OF_RANGE] the percentage is out of range",
                found=place,
                expected="0 to 1",
            )
        if len(rest) > 1 and rest[1].constant is None:
            if name != "percentile":
                raise v.mismatch(f"the accuracy of {name}", "void")
            return v.combine("max(CAST(NULL AS DOUBLE))", "double", [value], nullable=True)
        if v.is_interval(value.type):
            return _percentile_of_intervals(value, float(place))
        kind = value.type if name == "percentile_approx" else "double"
        value = cast(value, kind, zone)
        if name == "percentile" and len(rest) > 1 and rest[1].constant != 1:
            return _weighted_percentile(value, float(place), rest[1])
        function = "quantile_disc" if name in ("percentile_approx", "percentile_disc") else "quantile_cont"
        given = f"-({value.sql})" if falling else value.sql
        sql = f"CAST({function}({given}, CAST('{float(place)!r}' AS DOUBLE)) AS {v.duckdb_type(kind)})"
        sql = f"(0 - {sql})" if falling else sql
        if kind == "double" and arguments[0].type in v.FRACTIONAL:
            far = v.failure("UNSUPPORTED_PERCENTILE", f"'{name} of numbers that are not finite'")
            sql = f"(CASE WHEN bool_or(NOT isfinite({value.sql})) THEN {far} ELSE {sql} END)"
            return v.combine(sql, kind, [value], nullable=True, raises=True)
        return v.combine(sql, kind, [value], nullable=True)

    return build


def _percentile_of_intervals(value: Value, place: float) -> Value:
    kind = v.DAY_TIME if v.is_day_time(value.type) else v.YEAR_MONTH
    between = f"quantile_cont(CAST({value.sql} AS DOUBLE), CAST('{place!r}' AS DOUBLE))"
    return v.combine(f"CAST(trunc({between}) AS {v.duckdb_type(kind)})", kind, [value], nullable=True)


def _weighted_percentile(value: Value, place: float, frequency: Value) -> Value:
    """Returns percentile of values that each count `frequency` times: the value at the position, or
    interpolated between two values."""
    if frequency.type not in v.INTEGRAL:
        raise v.mismatch("percentile", frequency.type)
    known = f"{value.sql} IS NOT NULL AND {frequency.sql} > 0"
    negative = v.failure("NEGATIVE_VALUES_IN_FREQUENCY_EXPRESSION", "'a frequency of percentile is negative'")
    lists = (
        f"list({part} ORDER BY {value.sql}) FILTER (WHERE {known})" for part in (value.sql, frequency.sql)
    )
    found = kernel_sql("weighted_percentile", "double", *lists, f"CAST('{place!r}' AS DOUBLE)")
    sql = f"(CASE WHEN min({frequency.sql}) < 0 THEN {negative} ELSE {found} END)"
    return v.combine(sql, "double", [value, frequency], nullable=True, raises=True)


def histogram(arguments: Sequence[Value], distinct: bool, zone: Zone) -> Value:
    """Builds histogram_numeric: centre and height of each bin, computed in the order of rows. A centre has
    the type of the values."""
    value, bins = arguments
    if distinct or not v.is_numeric(value.type) or not isinstance(bins.constant, int):
        raise v.unsupported("aggregate function histogram_numeric", value.type, bins.type)
    if bins.constant < 2:
        raise InvalidArgumentError(
            "[DATATYPE_MISMATCH.VALUE_OUT_OF_RANGE] a histogram has at least 2 bins", found=bins.constant
        )
    kind = Array(Struct([Field("x", value.type, True), Field("y", "double", True)]), True)
    listed = f"list({cast(value, 'double', zone).sql}) FILTER (WHERE {value.sql} IS NOT NULL)"
    flat = kernel_sql("histogram", "array<double>", listed, str(bins.constant))
    middle = "deltaic_flat[2 * deltaic_b + 1]"
    whole = f"CAST(trunc({middle}) AS {v.duckdb_type(value.type)})" if value.type in v.INTEGRAL else middle
    pair = f"struct_pack(x := {whole}, y := deltaic_flat[2 * deltaic_b + 2])"
    pairs = f"list_transform(range(0, len(deltaic_flat) // 2), lambda deltaic_b: {pair})"
    pairs = f"list_transform([{flat}], lambda deltaic_flat: {pairs})[1]"  # the kernel runs once for a group
    return v.combine(f"CAST({pairs} AS {v.duckdb_type(kind)})", kind, [value], nullable=True)


def _counted(value: Value) -> str:
    """Returns SQL of a list of the distinct values but null, and the number of times that each occurs."""
    pair = "struct_pack(c := struct_extract(deltaic_m, 'value'), k := struct_extract(deltaic_m, 'key'))"
    return f"list_transform(map_entries(histogram({value.sql})), lambda deltaic_m: {pair})"


def sorted_mode(arguments: Sequence[Value], distinct: bool, zone: Zone) -> Value:
    """Builds mode with an order: the most frequent value. Of several, the least, or the greatest if the order
    is descending."""
    value, falling = arguments
    if distinct or not isinstance(value.type, str):
        raise v.unsupported("aggregate function mode", value.type)
    value = normalized(value)
    pairs = _counted(value)
    if not falling.constant:
        pairs = (
            f"list_transform({pairs}, lambda deltaic_n: struct_pack(c := -CAST(deltaic_n.c AS BIGINT), k :="
            " deltaic_n.k))"
        )
    sql = f"list_sort({pairs}, '{'DESC' if falling.constant else 'ASC'}')[1].k"
    return v.combine(f"CAST({sql} AS {v.duckdb_type(value.type)})", value.type, [value], nullable=True)


def approx_top_k(
    arguments: Sequence[Value], distinct: bool, zone: Zone, condition: Value | None = None
) -> Value:
    """Builds approx_top_k: the most frequent values and the number of times that each occurs, counted
    exactly. `condition`: the condition of FILTER."""
    value = arguments[0]
    rows = arguments[1].constant if len(arguments) > 1 else 5
    if (
        distinct
        or not isinstance(value.type, str)
        or value.type in ("void", "binary")
        or not isinstance(rows, int)
        or rows < 1
    ):
        raise v.unsupported("aggregate function approx_top_k", *(argument.type for argument in arguments))
    value = normalized(value)
    nulls = f"count(*) FILTER (WHERE {value.sql} IS NULL)"
    if condition is not None:
        nulls = f"count(*) FILTER (WHERE {value.sql} IS NULL AND {condition.sql})"
        value = v.combine(
            f"(CASE WHEN {condition.sql} THEN {value.sql} END)", value.type, (value, condition), nullable=True
        )
    kind = Array(Struct([Field("item", value.type, True), Field("count", "long", False)]), False)
    # of equally many, NULL is the last
    pair = f"STRUCT(c BIGINT, known BOOLEAN, k {v.duckdb_type(value.type)})"
    counted = (
        f"list_transform({_counted(value)}, lambda deltaic_n: struct_pack(c := deltaic_n.c, known := true, k"
        " := deltaic_n.k))"
    )
    null = (
        f"CASE WHEN {nulls} > 0 THEN [CAST(struct_pack(c := {nulls}, known := false, k := NULL) AS {pair})]"
        " ELSE [] END"
    )
    turned = "struct_pack(item := deltaic_t.k, count := deltaic_t.c)"
    pairs = f"CAST(coalesce({counted}, []) AS {pair}[]) || {null}"
    listed = f"list_transform(list_sort({pairs}, 'DESC')[1:{rows}], lambda deltaic_t: {turned})"
    sql = f"CAST({listed} AS {v.duckdb_type(kind)})"
    return v.combine(sql, kind, [value], nullable=False)


def mode(arguments: Sequence[Value], distinct: bool, zone: Zone) -> Value:
    value = arguments[0]
    if len(arguments) > 1:
        if not isinstance(arguments[1].constant, bool):
            raise v.unsupported("mode with a second argument that is no literal boolean")
        if arguments[1].constant:
            return sorted_mode([value, literal(False, "boolean")], distinct, zone)
    if distinct or not isinstance(value.type, str):
        raise v.unsupported("aggregate function mode", value.type)
    return v.combine(f"mode({value.sql})", value.type, [value], nullable=True)
