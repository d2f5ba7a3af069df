"""Aggregate functions of Spark for DuckDB: the allow-list, with Spark's result types, for GROUP BY queries.

Source of the meaning: Spark's expressions/aggregate, ANSI on. Sums of whole numbers that leave `bigint` are Spark's ARITHMETIC_OVERFLOW, of
decimals NUMERIC_VALUE_OUT_OF_RANGE; nulls are left out; a sum of floats depends on the order of rows, in Spark as here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal

from deltaic.errors import InvalidArgumentError
from deltaic.protocol.schema import Array, Field, Struct
from deltaic.spark_sql import operators
from deltaic.spark_sql import values as v
from deltaic.spark_sql.casts import Zone, cast, literal
from deltaic.spark_sql.functions.kernels import kernel_sql
from deltaic.spark_sql.nested_values import is_sortable, sort_key, with_one_zero
from deltaic.spark_sql.values import Value

Build = Callable[[Sequence[Value], bool, Zone], Value]
ROWS_DIGITS = 19
"""Digits that a sum has at most more than its values: there are fewer than 10^19 rows."""


def aggregate(name: str, arguments: Sequence[Value], distinct: bool, zone: Zone, *, order: str = "") -> Value:
    """The aggregate `name` over `arguments`; UnsupportedFeatureError where it is not on the list. `order`: the engine's keys of the order
    in which listagg puts its texts."""
    build = _AGGREGATES.get(name)
    if order:
        return _listed(arguments, distinct, zone, order).not_foldable(arguments)
    if build is None:
        raise v.unsupported(f"aggregate function {name}", *(argument.type for argument in arguments))
    least, most = _COUNTS.get(name, (1, 1))
    if name != "count" and not least <= len(arguments) <= most:
        takes = f"{least} argument{'s' if least > 1 else ''}" if least == most else f"{least} to {most} arguments"
        raise InvalidArgumentError(f"[WRONG_NUM_ARGS] {name} takes {takes}", found=len(arguments))
    return build(arguments, distinct, zone).not_foldable(arguments)


def count_rows() -> Value:
    """count(*)"""
    return Value("count(*)", "long", nullable=False)


def normalized(value: Value) -> Value:
    """As Spark keeps a value that it groups by: one zero and one NaN."""
    if not v.is_comparable(value.type):
        raise v.unsupported("grouping", value.type)
    return value.like(with_one_zero(value.sql, value.type), value.type) if v.holds_fraction(value.type) else value


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
        total = f"sum({'DISTINCT ' if distinct else ''}{value.narrow or value.sql})"
        return v.combine(f"CAST({total} AS {v.duckdb_type(data_type)})", data_type, [value], nullable=True, raises=True)
    raise v.unsupported("aggregate function sum", value.type)


def _average(arguments: Sequence[Value], distinct: bool, zone: Zone) -> Value:
    (value,) = arguments
    if distinct:
        value = normalized(value)
    if value.type in v.INTEGRAL or value.type in v.FRACTIONAL:
        wide = cast(value, "double", zone)
        return v.combine(_call("avg", wide, distinct), "double", [wide], nullable=True)
    parts = v.decimal_of(value.type)
    if parts is None:
        raise v.unsupported("aggregate function avg", value.type)
    if parts[0] > 24:  # the exact quotient does not fit 38 digits
        return _wide_average(value, distinct, parts)
    precision, scale = parts[0] + 4, parts[1] + 4
    digits = min(parts[0] + ROWS_DIGITS, 38)
    total = operators.unscaled(
        f"CAST(sum({'DISTINCT ' if distinct else ''}{value.sql}) AS DECIMAL({digits}, {parts[1]}))", parts[1], digits
    )
    rows = f"CAST({_call('count', value, distinct)} AS HUGEINT)"
    # Halves go away from zero, as in Spark's decimal division.
    doubled = f"(abs({total}) * 20000 + {rows})"
    quotient = f"(CASE WHEN {total} < 0 THEN -({doubled} // (2 * {rows})) ELSE {doubled} // (2 * {rows}) END)"
    data_type = v.decimal(precision, scale)
    sql = f"(CASE WHEN {rows} = 0 THEN NULL ELSE {operators.scaled(quotient, scale, data_type)} END)"
    return v.combine(sql, data_type, [value], nullable=True)


def _wide_average(value: Value, distinct: bool, parts: tuple[int, int]) -> Value:
    """The average of decimals of more than 24 digits, divided by a kernel."""
    precision, scale = min(parts[0] + 4, 38), min(parts[1] + 4, 38)
    kind = v.decimal(precision, scale)
    total = f"CAST(sum({'DISTINCT ' if distinct else ''}{value.sql}) AS DECIMAL(38, {parts[1]}))"
    rows = f"CAST({_call('count', value, distinct)} AS DECIMAL(20, 0))"
    digits = kernel_sql("decimal", "decimal(38,0)", "'/'", total, rows, str(scale))
    sql = f"(CASE WHEN {rows} = 0 THEN NULL ELSE {operators.scaled(digits, scale, kind)} END)"
    return v.combine(sql, kind, [value], nullable=True, raises=True)


def _extreme(function: str) -> Build:
    def build(arguments: Sequence[Value], distinct: bool, zone: Zone) -> Value:
        (value,) = arguments
        if not is_sortable(value.type):
            raise v.unsupported(f"aggregate function {function}", value.type)
        if distinct:
            value = normalized(value)
        if not isinstance(value.type, str):
            sql = f"arg_{function}({value.sql}, {sort_key(value.sql, value.type)})"
            return v.combine(f"CAST({sql} AS {v.duckdb_type(value.type)})", value.type, [value], nullable=True)
        return v.combine(f"{function}({value.sql})", value.type, [value], nullable=True)

    return build


def of_one_row(name: str, arguments: Sequence[Value], condition: Value | None = None) -> Value:
    """first, last: of the order in which rows come, nulls among them unless a second argument says otherwise. `condition`: of FILTER."""
    value, function = arguments[0], "last" if name.startswith("last") else "first"
    if not isinstance(value.type, str) and v.holds_fraction(value.type):  # the engine keeps them in a form that has no negative zero
        raise v.unsupported(f"aggregate function {name}", value.type)
    conditions = [] if condition is None else [condition.sql]
    if len(arguments) > 1:
        if not isinstance(arguments[1].constant, bool):
            raise v.unsupported(f"{name} with a second argument that is no literal boolean")
        conditions += [f"{value.sql} IS NOT NULL"] if arguments[1].constant else []
    kept = f" FILTER (WHERE {' AND '.join(conditions)})" if conditions else ""
    return v.combine(f"{function}({value.sql}){kept}", value.type, arguments, nullable=True).not_foldable(arguments)


def _any(name: str) -> Build:
    def build(arguments: Sequence[Value], distinct: bool, zone: Zone) -> Value:
        if distinct:
            raise v.unsupported(f"aggregate function {name} of DISTINCT", arguments[0].type)
        return of_one_row(name, arguments)

    return build


def all_of(values: Sequence[Value]) -> Value:
    """An array of aggregates of the same rows; null where they are."""
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


def _by(function: str) -> Build:
    """max_by, min_by: the first argument of the row whose second is the greatest or least, rows with a null there left out; of as many
    rows as a third argument says."""

    def build(arguments: Sequence[Value], distinct: bool, zone: Zone) -> Value:
        value, order = arguments[:2]
        if distinct or not is_sortable(order.type):
            raise v.unsupported(f"aggregate function {function}", value.type, order.type)
        kind = v.duckdb_type(value.type)
        if len(arguments) > 2:
            return _rows_by(function, value, order, arguments[2])
        return v.combine(
            f"CAST({function}({value.sql}, {sort_key(order.sql, order.type)}) AS {kind})", value.type, arguments, nullable=True
        )

    return build


def _rows_by(function: str, value: Value, order: Value, count: Value) -> Value:
    rows = count.constant
    if not isinstance(rows, int) or isinstance(rows, bool) or not 1 <= rows <= 100_000:
        raise InvalidArgumentError("[DATATYPE_MISMATCH.VALUE_OUT_OF_RANGE] a number of rows is a literal", expected="1 to 100000")
    v.check_storable("an array of", [value])
    direction = "DESC" if "max" in function else "ASC"
    listed = f"list({value.sql} ORDER BY {sort_key(order.sql, order.type)} {direction}) FILTER (WHERE {order.sql} IS NOT NULL)"
    return v.combine(f"({listed})[1:{rows}]", Array(value.type, True), [value, order], nullable=True)


def _bits(function: str) -> Build:
    def build(arguments: Sequence[Value], distinct: bool, zone: Zone) -> Value:
        (value,) = arguments
        if value.type not in v.INTEGRAL:
            raise v.mismatch(function, value.type)
        kind = v.duckdb_type(value.type)
        return v.combine(f"CAST({_call(function, value, distinct)} AS {kind})", value.type, [value], nullable=True)

    return build


BITMAP_BYTES = 4096
"""Bytes of a bitmap of `bitmap_construct_agg`: 32768 bits, the first of a byte is its lowest."""


def _bitmap(arguments: Sequence[Value], distinct: bool, zone: Zone) -> Value:
    """bitmap_construct_agg: the bits at the given places."""
    place = cast(arguments[0], "long", zone)
    bits = 8 * BITMAP_BYTES
    error = v.failure("INVALID_BITMAP_POSITION", f"'The bitmap position ' || {place.sql} || ' is out of bounds.'")
    outside = f"CASE WHEN {place.sql} NOT BETWEEN 0 AND {bits - 1} THEN {error}"
    turned = f"{outside} ELSE ({place.sql} // 8) * 8 + 7 - {place.sql} % 8 END"  # the engine's first bit of a byte is the highest
    sql = f"coalesce(CAST(bitstring_agg({turned}, 0, {bits - 1}) AS BLOB), {_EMPTY_BITMAP})"
    return v.combine(sql, "binary", [place], nullable=False, raises=True)


_EMPTY_BITMAP = f"repeat(unhex('00'), {BITMAP_BYTES})"


def _merged_bitmap(function: str) -> Build:
    """bitmap_or_agg, bitmap_and_agg: bitmaps put together, shorter ones filled with zeros."""

    def build(arguments: Sequence[Value], distinct: bool, zone: Zone) -> Value:
        (value,) = arguments
        if value.type != "binary":
            raise v.mismatch(f"bitmap_{function.removeprefix('bit_')}_agg", value.type)
        filled = f"CASE WHEN octet_length({value.sql}) <> {BITMAP_BYTES} THEN ({value.sql} || {_EMPTY_BITMAP})[1:{BITMAP_BYTES}]"
        filled = f"CAST({filled} ELSE {value.sql} END AS BIT)"
        none = _EMPTY_BITMAP if function == "bit_or" else f"repeat(unhex('FF'), {BITMAP_BYTES})"
        return v.combine(f"coalesce(CAST({function}({filled}) AS BLOB), {none})", "binary", [value], nullable=False)

    return build


def _doubles(name: str, arguments: Sequence[Value], distinct: bool, zone: Zone) -> list[Value]:
    if distinct or not all(v.is_numeric(argument.type) for argument in arguments):
        raise v.unsupported(f"aggregate function {name}", *(argument.type for argument in arguments))
    return [cast(argument, "double", zone) for argument in arguments]


def _pair(name: str, few: int, flat: str = "") -> Build:
    """Statistics of two columns, y and x, over rows where both are known. Null for fewer rows than `few`, and where a column of `flat` is
    constant; NaN where a number is not finite, as the engine refuses these."""

    def build(arguments: Sequence[Value], distinct: bool, zone: Zone) -> Value:
        y, x = _doubles(name, arguments, distinct, zone)
        known = f"{y.sql} IS NOT NULL AND {x.sql} IS NOT NULL"
        used = {"regr_syy": "y", "regr_sxx": "x"}.get(name, "yx")  # what is not used counts, whatever it is
        finite = " AND ".join(f"isfinite({side.sql})" for side, letter in ((y, "y"), (x, "x")) if letter in used)
        sides = {
            letter: f"CASE WHEN {known} AND {finite} THEN {side.sql if letter in used else 'CAST(0 AS DOUBLE)'} END"
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
            f"(CASE WHEN count(CASE WHEN {known} THEN 1 END) < {few} THEN NULL {constant}WHEN {odd} THEN CAST('nan' AS DOUBLE) "
            f"ELSE {name}({sides['y']}, {sides['x']}) END)"
        )
        return v.combine(sql, "double", (y, x), nullable=True)

    return build


def _pair_average(place: int) -> Build:
    """The average of one of two columns over rows where both are known."""

    def build(arguments: Sequence[Value], distinct: bool, zone: Zone) -> Value:
        _doubles("regr_avgx", arguments, distinct, zone)
        known = " AND ".join(f"{argument.sql} IS NOT NULL" for argument in arguments)
        value = arguments[place]
        kept = v.combine(f"(CASE WHEN {known} THEN {value.sql} END)", value.type, arguments, nullable=True)
        return _average([kept], distinct, zone)

    return build


def _pair_count(arguments: Sequence[Value], distinct: bool, zone: Zone) -> Value:
    first, second = _doubles("regr_count", arguments, distinct, zone)
    known = f"{first.sql} IS NOT NULL AND {second.sql} IS NOT NULL"
    return v.combine(f"count(CASE WHEN {known} THEN 1 END)", "long", (first, second), nullable=False)


def _shape(name: str) -> Build:
    """skewness and kurtosis of the rows themselves, where the engine's own are estimates for what they are a sample of."""

    def build(arguments: Sequence[Value], distinct: bool, zone: Zone) -> Value:
        (value,) = _doubles(name, arguments, distinct, zone)
        finite = f"CASE WHEN isfinite({value.sql}) THEN {value.sql} END"
        items = f"(list({finite}) FILTER (WHERE {value.sql} IS NOT NULL))"
        # The mean is the element of a list of one, so that it is computed once and not for each element of the other list.
        moment = "list_sum(list_transform({items}, lambda deltaic_e: pow(deltaic_e - deltaic_mean, {power})))"
        m2, m3, m4 = (moment.format(items=items, power=power) for power in (2, 3, 4))
        rows = f"CAST(count({value.sql}) AS DOUBLE)"
        shape = f"sqrt({rows}) * {m3} / sqrt(pow({m2}, 3))" if name == "skewness" else f"{rows} * {m4} / pow({m2}, 2) - 3.0"
        shape = f"list_transform([list_avg({items})], lambda deltaic_mean: {shape})[1]"
        odd = f"bool_or(NOT isfinite({value.sql}))"
        sql = f"(CASE WHEN {odd} THEN CAST('nan' AS DOUBLE) WHEN min({finite}) = max({finite}) THEN NULL ELSE {shape} END)"
        return v.combine(sql, "double", [value], nullable=True)

    return build


def _percentile(name: str) -> Build:
    """percentile, with interpolation between two rows; percentile_approx, the value of a row: exact here. percentile_cont and
    percentile_disc come with whether their order falls: then they are those of the negated values."""
    sorted_name = name in ("percentile_cont", "percentile_disc")

    def build(arguments: Sequence[Value], distinct: bool, zone: Zone) -> Value:
        value, *rest = arguments
        falling = sorted_name and bool(rest.pop().constant)
        if distinct or not v.is_numeric(value.type):
            raise v.unsupported(f"aggregate function {name}", value.type)
        place = rest[0].constant if rest else 0.5
        if isinstance(place, bool) or not isinstance(place, (int, float, Decimal)):
            raise v.unsupported(f"{name} with a percentage that is no literal number")
        if not 0 <= place <= 1:
            raise InvalidArgumentError(
                "[DATATYPE_MISMATCH.VALUE_OUT_OF_RANGE] the percentage is out of range", found=place, expected="0 to 1"
            )
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


def _weighted_percentile(value: Value, place: float, frequency: Value) -> Value:
    """percentile of values that each count as often as `frequency` says: the value that covers a position, or between two of them."""
    if frequency.type not in v.INTEGRAL:
        raise v.mismatch("percentile", frequency.type)
    known = f"{value.sql} IS NOT NULL AND {frequency.sql} > 0"
    negative = v.failure("NEGATIVE_VALUES_IN_FREQUENCY_EXPRESSION", "'a frequency of percentile is negative'")
    lists = (f"list({part} ORDER BY {value.sql}) FILTER (WHERE {known})" for part in (value.sql, frequency.sql))
    found = kernel_sql("weighted_percentile", "double", *lists, f"CAST('{place!r}' AS DOUBLE)")
    sql = f"(CASE WHEN min({frequency.sql}) < 0 THEN {negative} ELSE {found} END)"
    return v.combine(sql, "double", [value, frequency], nullable=True, raises=True)


def _histogram(arguments: Sequence[Value], distinct: bool, zone: Zone) -> Value:
    """histogram_numeric: centres, of the values' type, and heights of bins, in the order of rows."""
    value, bins = arguments
    if distinct or not v.is_numeric(value.type) or not isinstance(bins.constant, int):
        raise v.unsupported("aggregate function histogram_numeric", value.type, bins.type)
    if bins.constant < 2:
        raise InvalidArgumentError("[DATATYPE_MISMATCH.VALUE_OUT_OF_RANGE] a histogram has at least 2 bins", found=bins.constant)
    kind = Array(Struct([Field("x", value.type, True), Field("y", "double", True)]), True)
    listed = f"list({cast(value, 'double', zone).sql}) FILTER (WHERE {value.sql} IS NOT NULL)"
    flat = kernel_sql("histogram", "array<double>", listed, str(bins.constant))
    middle = f"{flat}[2 * deltaic_b + 1]"
    whole = f"CAST(trunc({middle}) AS {v.duckdb_type(value.type)})" if value.type in v.INTEGRAL else middle
    pair = f"struct_pack(x := {whole}, y := {flat}[2 * deltaic_b + 2])"
    pairs = f"list_transform(range(0, len({flat}) // 2), lambda deltaic_b: {pair})"
    return v.combine(f"CAST({pairs} AS {v.duckdb_type(kind)})", kind, [value], nullable=True)


def _counted(value: Value) -> str:
    """A list of the values and how often each comes."""
    pair = "struct_pack(c := struct_extract(deltaic_m, 'value'), k := struct_extract(deltaic_m, 'key'))"
    return f"list_transform(map_entries(histogram({value.sql})), lambda deltaic_m: {pair})"


def _sorted_mode(arguments: Sequence[Value], distinct: bool, zone: Zone) -> Value:
    """The most frequent value; of several the least, or the greatest where the order falls."""
    value, falling = arguments
    if distinct or not isinstance(value.type, str) or value.type == "void":
        raise v.unsupported("aggregate function mode", value.type)
    value = normalized(value)
    pairs = _counted(value)
    if not falling.constant:
        pairs = f"list_transform({pairs}, lambda deltaic_n: struct_pack(c := -CAST(deltaic_n.c AS BIGINT), k := deltaic_n.k))"
    sql = f"list_sort({pairs}, '{'DESC' if falling.constant else 'ASC'}')[1].k"
    return v.combine(f"CAST({sql} AS {v.duckdb_type(value.type)})", value.type, [value], nullable=True)


def _approx_top_k(arguments: Sequence[Value], distinct: bool, zone: Zone) -> Value:
    """The most frequent values with how often they come, counted exactly."""
    value = arguments[0]
    rows = arguments[1].constant if len(arguments) > 1 else 5
    if distinct or not isinstance(value.type, str) or value.type in ("void", "binary") or not isinstance(rows, int) or rows < 1:
        raise v.unsupported("aggregate function approx_top_k", *(argument.type for argument in arguments))
    value = normalized(value)
    kind = Array(Struct([Field("item", value.type, False), Field("count", "long", False)]), False)
    turned = "struct_pack(item := deltaic_t.k, count := CAST(deltaic_t.c AS BIGINT))"
    listed = f"list_transform(list_sort({_counted(value)}, 'DESC')[1:{rows}], lambda deltaic_t: {turned})"
    sql = f"CAST(coalesce({listed}, []) AS {v.duckdb_type(kind)})"
    return v.combine(sql, kind, [value], nullable=False)


def _collect_union(arguments: Sequence[Value], distinct: bool, zone: Zone) -> Value:
    """The different elements of all arrays, nulls left out."""
    (value,) = arguments
    if distinct or not isinstance(value.type, Array) or not v.is_comparable(value.type.element):
        raise v.unsupported("aggregate function collect_union", value.type)
    value = normalized(value)
    items = f"flatten(list({value.sql}) FILTER (WHERE {value.sql} IS NOT NULL))"
    sql = f"CAST(coalesce(list_distinct({items}), []) AS {v.duckdb_type(value.type)})"
    return v.combine(sql, value.type, [value], nullable=False)


def _mode(arguments: Sequence[Value], distinct: bool, zone: Zone) -> Value:
    value = arguments[0]
    if len(arguments) > 1:
        if not isinstance(arguments[1].constant, bool):
            raise v.unsupported("mode with a second argument that is no literal boolean")
        if arguments[1].constant:
            return _sorted_mode([value, literal(False, "boolean")], distinct, zone)
    if distinct or not isinstance(value.type, str) or value.type == "void":
        raise v.unsupported("aggregate function mode", value.type)
    return v.combine(f"mode({value.sql})", value.type, [value], nullable=True)


def _approx_count_distinct(arguments: Sequence[Value], distinct: bool, zone: Zone) -> Value:
    """Counted exactly, which is within any deviation that is allowed."""
    return _count(arguments[:1], True, zone)


def _try_sum(arguments: Sequence[Value], distinct: bool, zone: Zone) -> Value:
    (value,) = arguments
    if value.type not in v.INTEGRAL:
        if value.type in v.FRACTIONAL or _fits(value):
            return _sum(arguments, distinct, zone)
        raise v.unsupported("aggregate function try_sum", value.type)
    return v.combine(f"TRY_CAST({_call('sum', value, distinct)} AS BIGINT)", "long", [value], nullable=True)


def _fits(value: Value) -> bool:
    """Whether a sum of as many decimals as there can be rows fits 38 digits."""
    parts = v.decimal_of(value.type)
    return parts is not None and parts[0] <= 24


def _try_average(arguments: Sequence[Value], distinct: bool, zone: Zone) -> Value:
    if v.decimal_of(arguments[0].type) and not _fits(arguments[0]):  # the sum of decimals may overflow on the way
        raise v.unsupported("aggregate function try_avg", arguments[0].type)
    return _average(arguments, distinct, zone)


def _listed(arguments: Sequence[Value], distinct: bool, zone: Zone, order: str = "") -> Value:
    """listagg: texts one after the other, nulls left out."""
    value = cast(arguments[0], "string", zone)
    separator = arguments[1].constant if len(arguments) > 1 else ""
    if not (arguments[0].type == "string" or arguments[0].type in v.INTEGRAL) or not isinstance(separator, str):
        raise v.unsupported("aggregate function listagg", *(argument.type for argument in arguments))
    keys = f" ORDER BY {order}" if order else ""
    if distinct and order and not order.startswith(f"{value.sql} "):
        raise InvalidArgumentError(
            "[INVALID_WITHIN_GROUP_EXPRESSION.MISMATCH_WITH_DISTINCT_INPUT] DISTINCT takes the order of what it lists", found=order
        )
    sql = f"string_agg({'DISTINCT ' if distinct else ''}{value.sql}, {v.text(separator)}{keys})"
    return v.combine(sql, "string", [value], nullable=True)


def _schema_of_variants(arguments: Sequence[Value], distinct: bool, zone: Zone) -> Value:
    if arguments[0].type != "variant":
        raise v.mismatch("schema_of_variant_agg", arguments[0].type)
    return v.combine(kernel_sql("variant_common_schema", "string", f"list({arguments[0].sql})"), "string", arguments, nullable=False)


_AGGREGATES: dict[str, Build] = {
    "schema_of_variant_agg": _schema_of_variants,
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
    "max_by": _by("arg_max_null"),
    "min_by": _by("arg_min_null"),
    "bit_and": _bits("bit_and"),
    "bit_or": _bits("bit_or"),
    "bit_xor": _bits("bit_xor"),
    "bitmap_construct_agg": _bitmap,
    "bitmap_or_agg": _merged_bitmap("bit_or"),
    "bitmap_and_agg": _merged_bitmap("bit_and"),
    "corr": _pair("corr", 2, "xy"),
    "covar_pop": _pair("covar_pop", 1),
    "covar_samp": _pair("covar_samp", 2),
    "regr_count": _pair_count,
    "regr_avgx": _pair_average(1),
    "regr_avgy": _pair_average(0),
    "regr_r2": _pair("regr_r2", 1, "x"),
    "regr_slope": _pair("regr_slope", 2, "x"),
    "regr_intercept": _pair("regr_intercept", 2, "x"),
    "regr_sxx": _pair("regr_sxx", 1),
    "regr_sxy": _pair("regr_sxy", 1),
    "regr_syy": _pair("regr_syy", 1),
    "skewness": _shape("skewness"),
    "kurtosis": _shape("kurtosis"),
    "percentile": _percentile("percentile"),
    "median": _percentile("median"),
    "percentile_approx": _percentile("percentile_approx"),
    "approx_percentile": _percentile("percentile_approx"),
    "percentile_cont": _percentile("percentile_cont"),
    "percentile_disc": _percentile("percentile_disc"),
    "histogram_numeric": _histogram,
    "mode": _mode,
    "mode_sorted": _sorted_mode,
    "approx_top_k": _approx_top_k,
    "collect_union": _collect_union,
    "approx_count_distinct": _approx_count_distinct,
    "try_sum": _try_sum,
    "try_avg": _try_average,
    "listagg": _listed,
    "string_agg": _listed,
}
_COUNTS = {
    **dict.fromkeys(("first", "first_value", "any_value", "last", "last_value", "approx_count_distinct", "listagg", "string_agg"), (1, 2)),
    **dict.fromkeys(("corr", "covar_pop", "covar_samp", "mode_sorted"), (2, 2)),
    **dict.fromkeys(("max_by", "min_by"), (2, 3)),
    **dict.fromkeys(("percentile_cont", "percentile_disc"), (3, 3)),
    "mode": (1, 2),
    "histogram_numeric": (2, 2),
    "approx_top_k": (1, 3),
    **dict.fromkeys((f"regr_{part}" for part in ("count", "avgx", "avgy", "r2", "slope", "intercept", "sxx", "sxy", "syy")), (2, 2)),
    "percentile": (2, 3),
    "percentile_approx": (2, 3),
    "approx_percentile": (2, 3),
}
"""The least and the greatest number of arguments, where it is not one."""
OF_ONE_ROW = frozenset(("first", "first_value", "any_value", "last", "last_value"))
NAMES = frozenset(_AGGREGATES) - {"mode_sorted"}
"""The aggregate functions that may be on the list, by their arguments' types."""
