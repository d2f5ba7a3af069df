"""SQL functions on numbers: abs, log, width_bucket, try_add, ..."""

from __future__ import annotations

from collections.abc import Callable

from deltaic.spark_sql import intervals, operators
from deltaic.spark_sql import values as v
from deltaic.spark_sql.casts import Zone, cast, literal, or_fail
from deltaic.spark_sql.functions.registry import Build, constant_int, form, refuse, register
from deltaic.spark_sql.values import Value

_MASKS = {
    "integer": (32, "4294967295", "2147483648", "4294967296"),
    "long": (64, "18446744073709551615", "9223372036854775808", "18446744073709551616"),
}


def _abs(arguments: list[Value], zone: Zone) -> Value:
    value = arguments[0]
    return value.like(
        f"CAST(abs({value.sql}) AS {v.duckdb_type(value.type)})",
        value.type,
        raises=value.raises or value.type in v.INTEGRAL,
    )


def _operator(operator: str) -> Callable[[list[Value], Zone], Value]:
    return lambda arguments, zone: operators.arithmetic(operator, arguments[0], arguments[1], zone)


def _try(operator: str) -> Callable[[list[Value], Zone], Value]:
    """Builds try_add, try_divide and the like: null in place of an overflow or a division by zero."""

    def build(arguments: list[Value], zone: Zone) -> Value:
        left, right = arguments
        if not (v.is_numeric(left.type) and v.is_numeric(right.type)):
            raise v.unsupported(f"function try of {operator}", left.type, right.type)
        if operator in ("/", "%"):
            nonzero = right.like(f"nullif({right.sql}, 0)", right.type, nullable=True)
            if right.is_constant:
                nonzero = (
                    right
                    if right.constant
                    else Value(f"CAST(NULL AS {v.duckdb_type(right.type)})", right.type)
                )
            return operators.unguarded(operator, left, nonzero, zone)
        common = v.common_type(left.type, right.type)
        if common not in v.INTEGRAL:
            result = operators.arithmetic(operator, left, right, zone)
            if result.raises and not (left.raises or right.raises):
                raise v.unsupported(f"function try of {operator}", left.type, right.type)
            return result
        sides = [f"CAST({side.sql} AS HUGEINT)" for side in (left, right)]
        sql = f"TRY_CAST({operators.FUNCTIONS[operator]}({sides[0]}, {sides[1]}) AS {v.duckdb_type(common)})"
        return v.combine(sql, common, arguments, nullable=True)

    return build


def _pmod(arguments: list[Value], zone: Zone) -> Value:
    left, right = arguments
    rest = operators.arithmetic("%", left, right, zone)
    if any(side.is_constant and side.constant is None for side in (left, right)):
        return rest
    if v.decimal_parts(rest.type) or rest.type not in (*v.INTEGRAL, *v.FRACTIONAL):
        raise v.unsupported("function pmod", left.type, right.type)
    wide = "HUGEINT" if rest.type in v.INTEGRAL else "DOUBLE"
    divisor = f"CAST({right.sql} AS {wide})"
    total = f"(CAST({rest.sql} AS {wide}) + {divisor})"
    if rest.type in _MASKS:  # Java's addition wraps around on overflow
        total = f"CAST({_wrapped(total, str(rest.type))} AS HUGEINT)"
    shifted = f"{total} % {divisor}"
    return v.combine(
        f"CAST((CASE WHEN {rest.sql} < 0 THEN {shifted} ELSE {rest.sql} END) AS {v.duckdb_type(rest.type)})",
        rest.type,
        (rest, left, right),
    )


# --- rounding


def _round(arguments: list[Value], zone: Zone) -> Value:
    """Builds round: a half is rounded away from zero. A double is rounded by the decimal digits of its text,
    as Spark's BigDecimal of Double.toString."""
    value = arguments[0]
    places = constant_int(arguments[1], "the places of round") if len(arguments) > 1 else 0
    if decimal := v.decimal_parts(value.type):
        return _round_decimal(value, decimal, places)
    if value.type in v.INTEGRAL:
        if places >= 0:
            return value
        if places < -18:
            raise v.unsupported("round with so many places", value.type)
        unit = 10**-places
        wide = f"CAST({value.sql} AS HUGEINT)"
        sql = (
            f"TRY_CAST((({wide} + sign({wide}) * {unit // 2}) // {unit}) * {unit} AS"
            f" {v.duckdb_type(value.type)})"
        )
        return or_fail(sql, value, v.failure("ARITHMETIC_OVERFLOW", "'Overflow'"), value.type)
    if not -17 <= places <= 20:
        raise v.unsupported("round with so many places", value.type)
    if places < 0:
        return _by_digits(value, lambda digits: _round_decimal(digits, (38, 20), places))
    kind = v.duckdb_type(value.type)
    # a half is itself a double, so no shorter text of another number shows it; the sum makes 0 of -0
    if places == 0:
        return value.like(f"(round({value.sql}) + CAST(0 AS {kind}))", value.type)
    shown = f"CAST(CAST(CASE WHEN abs({value.sql}) < 1e17 THEN {value.sql} END AS DOUBLE) AS VARCHAR)"
    digits = f"CAST(CAST(CAST({shown} AS DECIMAL(38, {places})) AS VARCHAR) AS {kind})"
    return value.like(f"(CASE WHEN abs({value.sql}) < 1e17 THEN {digits} ELSE {value.sql} END)", value.type)


def _at_places(build: Build) -> Build:
    """Builds round or bround with places. NULL places give NULL, of the type that 0 places give."""

    def built(arguments: list[Value], zone: Zone) -> Value:
        if arguments[1].constant is not None:
            return build(arguments, zone)
        kind = build([arguments[0], literal(0, "integer")], zone).type
        return v.combine(f"CAST(NULL AS {v.duckdb_type(kind)})", kind, arguments, nullable=True)

    return built


def _round_type(decimal: tuple[int, int], places: int) -> tuple[int, int]:
    whole = decimal[0] - decimal[1] + 1
    if places < 0:
        return min(max(whole, -places + 1), 38), 0
    scale = min(decimal[1], places)
    return min(whole + scale, 38), scale


def _round_decimal(value: Value, decimal: tuple[int, int], places: int) -> Value:
    precision, scale = _round_type(decimal, places)
    kind = v.decimal(precision, scale)
    if places < 0:
        digits = decimal[1] - places
        if digits > 37:
            raise v.unsupported("round with so many places", value.type)
        whole = operators.unscaled(value.sql, decimal[1], decimal[0])
        quotient = (
            f"((abs({whole}) + {10**digits // 2}::HUGEINT) // {10**digits}::HUGEINT) * {10**-places}::HUGEINT"
            f" * sign({whole})"
        )
        return value.like(
            operators.scaled(f"({quotient})", 0, kind), kind, raises=value.raises or precision == 38
        )
    return value.like(
        f"CAST({value.sql} AS {v.duckdb_type(kind)})", kind, raises=value.raises or precision == 38
    )


def _bround(arguments: list[Value], zone: Zone) -> Value:
    """Builds bround: a half is rounded to the even neighbour."""
    value = arguments[0]
    places = constant_int(arguments[1], "the places of bround") if len(arguments) > 1 else 0
    decimal = v.decimal_parts(value.type)
    if value.type in v.INTEGRAL and places >= 0:
        return value
    if value.type == "double" and places == 0:
        return value.like(f"(round_even({value.sql}, 0) + CAST(0 AS DOUBLE))", "double")
    if not -17 <= places <= 15:
        raise v.unsupported("bround with so many places", value.type)
    if value.type in v.INTEGRAL:
        whole = f"{_half_even(f'CAST({value.sql} AS HUGEINT)', 10**-places)} * {10**-places}"
        sql = f"TRY_CAST(({whole}) AS {v.duckdb_type(value.type)})"
        return or_fail(sql, value, v.failure("ARITHMETIC_OVERFLOW", "'Overflow'"), value.type)
    if decimal is None:
        return _by_digits(value, lambda digits: _bround_decimal(digits, (38, 20), places))
    return _bround_decimal(value, decimal, places)


def _bround_decimal(value: Value, decimal: tuple[int, int], places: int) -> Value:
    precision, scale = _round_type(decimal, places)
    kind = v.decimal(precision, scale)
    digits, unit = (
        operators.unscaled(value.sql, decimal[1], decimal[0]),
        10 ** (decimal[1] - min(scale, places)),
    )
    if unit == 1:
        return value.like(v.cast_sql(value, kind), kind)
    if unit >= 10**38:
        raise v.unsupported("bround with so many places", value.type)
    whole = _half_even(digits, unit)
    return value.like(
        operators.scaled(whole if places >= 0 else f"({whole} * {10**-places})", scale, kind), kind
    )


def _half_even(digits: str, unit: int) -> str:
    """Returns SQL of a whole number divided by `unit`, rounded; half a unit is rounded to the even number."""
    up = (
        f"2 * abs({digits} % {unit}) > {unit} OR (2 * abs({digits} % {unit}) = {unit} AND ({digits} //"
        f" {unit}) % 2 <> 0)"
    )
    return f"(CASE WHEN {up} THEN {digits} // {unit} + sign({digits}) ELSE {digits} // {unit} END)"


def _by_digits(value: Value, rounded: Callable[[Value], Value]) -> Value:
    """Rounds a float or double by its decimal digits, as Java's BigDecimal does: converts it to a
    decimal(38,20), applies `rounded`, and converts the result back."""
    kind = v.duckdb_type(value.type)
    shown = f"CAST(CAST(CASE WHEN abs({value.sql}) < 1e17 THEN {value.sql} END AS DOUBLE) AS VARCHAR)"
    result = rounded(Value(f"CAST({shown} AS DECIMAL(38, 20))", "decimal(38,20)"))
    far = v.failure("UNSUPPORTED_ROUNDING", f"'rounding of a {value.type} of more than 17 digits'")
    back = f"CAST(CAST({result.sql} AS VARCHAR) AS {kind})"
    odd = f"CASE WHEN isfinite({value.sql}) THEN {far} ELSE {value.sql} END"
    return value.like(
        f"(CASE WHEN abs({value.sql}) < 1e17 THEN {back} ELSE {odd} END)", value.type, raises=True
    )


def _whole(function: str) -> Callable[[list[Value], Zone], Value]:
    """Builds ceil or floor with one argument: a decimal of scale 0 for a decimal, a bigint for any other
    number (0 for NaN)."""

    def build(arguments: list[Value], zone: Zone) -> Value:
        value = arguments[0]
        if decimal := v.decimal_parts(value.type):
            if decimal[1] == 0:
                return value
            kind = v.decimal(decimal[0] - decimal[1] + 1, 0)
            return value.like(f"CAST({function}({value.sql}) AS {v.duckdb_type(kind)})", kind)
        if value.type in v.INTEGRAL:
            return cast(value, "long", zone)
        value = cast(value, "double", zone)
        overflow = v.failure("ARITHMETIC_OVERFLOW", "'Overflow'")
        low, high = f"{value.sql} >= -9223372036854775808", f"{value.sql} < 9223372036854775808"
        sql = (
            f"CASE WHEN isnan({value.sql}) THEN 0 WHEN {low} AND {high} THEN CAST({function}({value.sql}) AS"
            f" BIGINT) WHEN {value.sql} IS NOT NULL THEN {overflow} END"
        )
        return value.like(f"CAST({sql} AS BIGINT)", "long", raises=True)

    return build


def _whole_at(function: str) -> Callable[[list[Value], Zone], Value]:
    """Builds ceil or floor with a number of decimal places: negative places are left of the point. The result
    is a decimal; a double is cast to decimal(30,15) first."""

    def build(arguments: list[Value], zone: Zone) -> Value:
        places = constant_int(arguments[1], f"the places of {function}")
        value = arguments[0]
        if value.type in v.FRACTIONAL:
            value = cast(value, v.decimal(30, 15) if value.type == "double" else v.decimal(14, 7), zone)
        decimal = v.as_decimal(value.type)
        if not v.decimal_parts(value.type):
            value = cast(value, v.decimal(*decimal), zone)
        precision, scale = _round_type(decimal, places)
        kind = v.decimal(precision, scale)
        if places >= decimal[1]:
            return value.like(v.cast_sql(value, kind), kind)
        if places < -37:
            raise v.unsupported(f"{function} at {places} places", arguments[0].type)
        unit = f"CAST({10 ** (decimal[1] - places)} AS HUGEINT)"
        digits = operators.unscaled(value.sql, decimal[1], decimal[0])
        off, step = (">", "+") if function == "ceil" else ("<", "-")
        whole = (
            f"(CASE WHEN {digits} % {unit} {off} 0 THEN {digits} // {unit} {step} 1 ELSE {digits} // {unit}"
            " END)"
        )
        if places < 0:
            whole = f"({whole} * CAST({10**-places} AS HUGEINT))"
        return value.like(operators.scaled(whole, scale, kind), kind, raises=value.raises or precision == 38)

    return build


def _of_untyped(build: Build) -> Build:
    """Builds ceil or floor of a NULL without a type, which Spark casts to its widest decimal."""
    return lambda arguments, zone: build([cast(arguments[0], "decimal(38,18)", zone), *arguments[1:]], zone)


# --- bits


def _wrapped(sql: str, kind: str) -> str:
    """Returns SQL of the low bits of a HUGEINT as a signed number of type `kind`, as Java computes after an
    overflow."""
    _, mask, half, whole = _MASKS[kind]
    low = f"(({sql}) & CAST({mask} AS HUGEINT))"
    return (
        f"CAST((CASE WHEN {low} >= CAST({half} AS HUGEINT) THEN {low} - CAST({whole} AS HUGEINT) ELSE {low}"
        f" END) AS {v.duckdb_type(kind)})"
    )


def _shift(name: str) -> Callable[[list[Value], Zone], Value]:
    def build(arguments: list[Value], zone: Zone) -> Value:
        value = arguments[0] if arguments[0].type == "long" else cast(arguments[0], "integer", zone)
        kind = str(value.type)
        bits, mask, _, _ = _MASKS[kind]
        count = cast(arguments[1], "integer", zone)
        unit = f"(CAST(1 AS HUGEINT) << CAST({count.sql} & {bits - 1} AS HUGEINT))"
        if isinstance(count.constant, int):
            unit = f"CAST({1 << (count.constant % bits)} AS HUGEINT)"
        wide = f"CAST({value.sql} AS HUGEINT)"
        if name == "shiftleft":
            sql = _wrapped(f"{wide} * {unit}", kind)
        elif name == "shiftrightunsigned":
            sql = _wrapped(f"({wide} & CAST({mask} AS HUGEINT)) // {unit}", kind)
        else:  # Java's shift rounds down, DuckDB's division towards zero
            floored = (
                f"(CASE WHEN {wide} < 0 THEN -((-{wide} + {unit} - 1) // {unit}) ELSE {wide} // {unit} END)"
            )
            sql = f"CAST({floored} AS {v.duckdb_type(kind)})"
        return v.combine(sql, kind, (value, count))

    return build


register("abs", "number", "T", _abs)
register("positive", "number", "T", lambda arguments, zone: arguments[0])
register("mod", "any, any", "T", _operator("%"))
register("negative", "any", "T", lambda arguments, zone: intervals.negative(arguments[0], zone))
register("pmod", "numeric, numeric", "T", _pmod)
for _name, _symbol in {
    "try_add": "+",
    "try_subtract": "-",
    "try_multiply": "*",
    "try_divide": "/",
    "try_mod": "%",
}.items():
    register(_name, "numeric, numeric", "T", _try(_symbol))
for _name, _build in {"round": _round, "bround": _bround}.items():
    register(_name, "number", "T", _build)
    register(_name, "number, integer", "T", _at_places(_build))
for _name, _function in {"ceil ceiling": "ceil", "floor": "floor"}.items():
    register(_name, "number", "bigint or decimal", _whole(_function))
    register(_name, "number, integer", "bigint or decimal", _whole_at(_function))
    register(_name, "=void, integer", "bigint or decimal", _of_untyped(_whole_at(_function)))
for _name in ("shiftleft", "shiftright", "shiftrightunsigned"):
    register(_name, "integral, integer", "int or bigint", _shift(_name))
    register(_name, "integral, numeric", "int or bigint", _shift(_name))
    register(_name, "integer, integer", "int or bigint", _shift(_name))
for _type in v.INTEGRAL:
    form("&", f"{_type}, {_type}", _type, "({0} & {1})")
    form("|", f"{_type}, {_type}", _type, "({0} | {1})")
    form("^", f"{_type}, {_type}", _type, "xor({0}, {1})")

register(
    "~",
    "integral",
    "T",
    lambda arguments, zone: arguments[0].like(f"(~ {arguments[0].sql})", arguments[0].type),
)

form(
    "sign signum",
    "double",
    "double",
    "CASE WHEN isnan({0}) OR {0} = 0 THEN {0} WHEN {0} > 0 THEN 1 WHEN {0} < 0 THEN -1 END",
)
form("rint", "double", "double", "round_even({0}, 0)")
form("sqrt", "double", "double", "sqrt({0})")
# DuckDB's cbrt(27) is not 3.
form(
    "cbrt",
    "double",
    "double",
    "CASE WHEN round(cbrt({0})) * round(cbrt({0})) * round(cbrt({0})) = {0} THEN round(cbrt({0}))"
    " ELSE cbrt({0}) END",
)
form("exp", "double", "double", "exp({0})")
form(
    "expm1",
    "double",
    "double",
    "CASE WHEN abs({0}) < 1e-5 THEN {0} + {0} * {0} / 2 + {0} * {0} * {0} / 6 ELSE exp({0}) - 1 END",
)
form("ln log", "double", "double", "CASE WHEN {0} > 0 THEN ln({0}) END", nullable=True)
form("log10", "double", "double", "CASE WHEN {0} > 0 THEN log10({0}) END", nullable=True)
form("log2", "double", "double", "CASE WHEN {0} > 0 THEN log2({0}) END", nullable=True)
form("log1p", "double", "double", "CASE WHEN {0} > -1 THEN deltaic_log1p({0}) END", nullable=True)
form(
    "log",
    "double, double",
    "double",
    "CASE WHEN {0} IS NULL OR {1} IS NULL THEN NULL WHEN {0} > 0 AND {1} > 0 THEN ln({1}) / ln({0}) END",
    nullable=True,
)
form("power pow", "double, double", "double", "deltaic_power({0}, {1})")
for _name in ("sin", "cos", "tan", "cot"):
    _text = (
        "CASE WHEN isfinite({0}) THEN "
        + f"{_name}({{0}})"
        + " WHEN {0} IS NOT NULL THEN CAST('nan' AS DOUBLE) END"
    )
    form(_name, "double", "double", _text)
for _name in ("asin", "acos"):
    form(
        _name,
        "double",
        "double",
        "CASE WHEN {0} BETWEEN -1 AND 1 THEN "
        + f"{_name}({{0}})"
        + " WHEN {0} IS NOT NULL THEN CAST('nan' AS DOUBLE) END",
    )
for _name in ("atan", "sinh", "cosh", "tanh", "degrees", "radians"):
    form(_name, "double", "double", f"{_name}({{0}})")
form("atan2", "double, double", "double", "atan2({0} + CAST(0 AS DOUBLE), {1} + CAST(0 AS DOUBLE))")
form("e", "", "double", "exp(1)")
form("pi", "", "double", "pi()")
form("factorial", "integer", "long", "CASE WHEN {0} BETWEEN 0 AND 20 THEN factorial({0}) END", nullable=True)
form("bit_count", "integral", "integer", "bit_count(CAST({0} AS BIGINT))")
form("bit_count", "=boolean", "integer", "CAST({0} AS INTEGER)")
form("hex", "long", "string", "hex({0})")
form("bin", "long", "string", "bin({0})")
for _type in ("decimal", "float", "double"):  # Spark truncates these to bigint; hex of a text is another form
    refuse("hex", _type)
form("hypot", "double, double", "double", kernel="hypot")
form(
    "asinh",
    "double",
    "double",
    "CASE WHEN isinf({0}) THEN {0} WHEN abs({0}) > 1e150 THEN sign({0}) * (ln(abs({0})) + ln(2)) "
    "WHEN {0} = 0 OR isnan({0}) THEN {0} ELSE sign({0}) * ln(abs({0}) + sqrt({0} * {0} + 1)) END",
)
form(
    "acosh",
    "double",
    "double",
    "CASE WHEN {0} >= 1 THEN ln({0} + sqrt({0} * {0} - 1)) WHEN {0} IS NOT NULL THEN CAST('nan' AS"
    " DOUBLE) END",
)
form(
    "atanh",
    "double",
    "double",
    "CASE WHEN {0} = 1 THEN CAST('inf' AS DOUBLE) WHEN {0} = -1 THEN CAST('-inf' AS DOUBLE) WHEN {0} > -1 AND"
    " {0} < 1 THEN atanh({0}) WHEN {0} IS NOT NULL THEN CAST('nan' AS DOUBLE) END",
)
for _name, _of in {"sec": "cos", "csc": "sin"}.items():
    form(
        _name,
        "double",
        "double",
        "CASE WHEN NOT isfinite({0}) THEN CAST('nan' AS DOUBLE) WHEN {0} = 0 AND '"
        + _of
        + "' = 'sin' THEN CASE WHEN starts_with(CAST({0} AS VARCHAR), '-') THEN CAST('-inf' AS DOUBLE) ELSE"
        " CAST('inf' AS DOUBLE) END ELSE 1 / " + f"{_of}({{0}}) END",
    )
form(
    "width_bucket",
    "double, double, double, long",
    "long",
    "CASE WHEN {0} IS NULL OR {1} IS NULL OR {2} IS NULL OR {3} IS NULL OR {3} <= 0 OR {3} ="
    " 9223372036854775807 OR isnan({0}) OR NOT isfinite({1}) OR NOT isfinite({2}) OR {1} = {2} THEN NULL WHEN"
    " {1} < {2} THEN CASE WHEN {0} < {1} THEN 0 WHEN {0} >= {2} THEN {3} + 1 ELSE CAST(trunc({3} * ({0} -"
    " {1}) / ({2} - {1})) AS BIGINT) + 1 END ELSE CASE WHEN {0} > {1} THEN 0 WHEN {0} <= {2} THEN {3} + 1"
    " ELSE CAST(trunc({3} * ({1} - {0}) / ({1} - {2})) AS BIGINT) + 1 END END",
    nullable=True,
)


def _bit(arguments: list[Value], zone: Zone) -> Value:
    """Builds bit_get: one bit of a whole number; bit 0 is the lowest."""
    value, place = arguments
    bits = v.INTEGER_BITS[str(value.type)]
    wrong = v.failure(
        "INVALID_PARAMETER_VALUE.BIT_POSITION_RANGE", f"'the position of a bit is 0 to {bits - 1}'"
    )
    inside = f"{place.sql} BETWEEN 0 AND {bits - 1}"
    bit = (
        f"CAST((CAST({value.sql} AS HUGEINT) >> CAST({place.sql} AS HUGEINT)) & CAST(1 AS HUGEINT) AS"
        " TINYINT)"
    )
    sql = (
        f"(CASE WHEN {value.sql} IS NULL OR {place.sql} IS NULL THEN NULL WHEN {inside} THEN {bit} ELSE"
        f" {wrong} END)"
    )
    return v.combine(sql, "byte", arguments, raises=True)


register("bit_get getbit", "integral, integer", "tinyint", _bit)
