"""Translates the operators of arithmetic, comparison and boolean logic, with Spark's implicit casts and ANSI
errors.

Integer and decimal arithmetic calls DuckDB's functions `add`, `subtract` and `multiply` instead of its
operators. They compute the same, but DuckDB's optimizer does not rewrite them. It rewrites `x + 5 > 3` to `x
> -2`, which loses the error if `x + 5` overflows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from deltaic.protocol.schema import DataType
from deltaic.spark_sql import values as v
from deltaic.spark_sql.casts import Zone, cast, literal
from deltaic.spark_sql.constants import computed
from deltaic.spark_sql.functions.kernels import kernel_sql
from deltaic.spark_sql.nested_values import sort_key
from deltaic.spark_sql.values import Limits, Value

FUNCTIONS = {"+": "add", "-": "subtract", "*": "multiply"}
DIVIDE_BY_ZERO = v.failure(
    "DIVIDE_BY_ZERO",
    "'Division by zero. Use `try_divide` to tolerate divisor being 0 and return NULL instead.'",
)
REMAINDER_BY_ZERO = v.failure(
    "REMAINDER_BY_ZERO",
    "'Remainder by zero. Use `try_mod` to tolerate divisor being 0 and return NULL instead.'",
)


# --- comparison


def compare(operator: str, left: Value, right: Value, zone: Zone, *, joins: bool = False) -> Value:
    """Returns a comparison by `=`, `<>`, `<`, `<=`, `>`, `>=` or `<=>`; both sides are cast to their common
    type.

    `joins`: the two sides may be keys of two tables. Each key is then computed by itself, as in Spark, so
    that one side may fail even if the other side is null.
    """
    left, right = comparable(left, right, zone, f"the operator {operator}")
    if operator not in ("=", "<>", "<=>") and not isinstance(left.type, str):
        keys = [sort_key(side.sql, side.type) for side in (left, right)]
        known = f"{left.sql} IS NOT NULL AND {right.sql} IS NOT NULL"
        return v.combine(
            f"(CASE WHEN {known} THEN {keys[0]} {operator} {keys[1]} END)", "boolean", (left, right)
        )
    if operator == "<=>":
        return v.combine(
            f"({left.sql} IS NOT DISTINCT FROM {right.sql})", "boolean", (left, right), nullable=False
        )
    result = v.combine(f"({left.sql} {operator} {right.sql})", "boolean", (left, right))
    return result if joins else v.in_order((left, right), result)


def comparable(left: Value, right: Value, zone: Zone, what: str) -> tuple[Value, Value]:
    """Returns both sides, cast to their common type. A literal number that fits the other side's type is cast
    to that type instead, so that a column is compared without a cast."""
    for one, other, swapped in ((left, right, False), (right, left, True)):
        if (
            one.is_constant
            and one.type in v.INTEGRAL
            and other.type in v.INTEGRAL
            and one.constant is not None
        ):
            folded = cast(one, other.type, zone)
            if folded.is_constant:
                return (other, folded) if swapped else (folded, other)
        if (
            one.is_constant
            and other.type != one.type
            and (v.decimal_parts(one.type) or one.type in v.INTEGRAL)
            and (v.decimal_parts(other.type))
        ):
            folded = cast(one, other.type, zone)
            if folded.is_constant:
                return (other, folded) if swapped else (folded, other)
    common = _common(left, right, what)
    return cast(left, common, zone), cast(right, common, zone)


def _common(left: Value, right: Value, what: str) -> DataType:
    if (
        v.is_numeric(left.type)
        and v.is_numeric(right.type)
        and (v.decimal_parts(left.type) or v.decimal_parts(right.type))
    ):
        common: DataType | None = _decimal_pair(left, right)
    elif isinstance(left.type, str) or isinstance(right.type, str):
        common = v.common_type(left.type, right.type)
    elif v.same_structure(left.type, right.type):
        common = left.type
    else:
        common = v.tightest(left.type, right.type)
    if common is None:
        raise v.mismatch(what, left.type, right.type)
    if not v.is_comparable(common):
        raise v.unsupported(what, left.type, right.type)
    return common


def _decimal_pair(left: Value, right: Value) -> str:
    if left.type in v.FRACTIONAL or right.type in v.FRACTIONAL:
        return "double"
    return v.wider_decimal(v.as_decimal(left), v.as_decimal(right))


def contained(value: Value, items: Sequence[Value], zone: Zone) -> Value:
    """Returns `value IN (items)`; all are cast to their common type."""
    common = v.common_of([value, *items], "IN")
    if not v.is_comparable(common):
        raise v.unsupported("IN", common)
    if value.type in v.INTEGRAL and all(item.type in v.INTEGRAL and item.is_constant for item in items):
        narrow = [cast(item, value.type, zone) for item in items]
        if all(item.is_constant for item in narrow):
            return v.combine(
                f"({value.sql} IN ({', '.join(item.sql for item in narrow)}))", "boolean", (value, *narrow)
            )
    value, items = cast(value, common, zone), [cast(item, common, zone) for item in items]
    # Spark's optimizer replaces it by null, and evaluates no item
    if value.is_constant and value.constant is None:
        return literal(None, "boolean")
    if any(item.raises and not item.foldable for item in items):
        # Items are evaluated one after the other, up to the first equal one.
        any_equal = connect(
            "OR", [v.combine(f"({value.sql} = {item.sql})", "boolean", (value, item)) for item in items]
        )
        return v.in_order((value, any_equal), any_equal)
    return v.combine(
        f"({value.sql} IN ({', '.join(item.sql for item in items)}))", "boolean", (value, *items)
    )


# --- boolean logic


def condition(value: Value, zone: Zone, what: str) -> Value:
    """Returns the condition of a CASE, WHERE or filter as a boolean. Raises InvalidArgumentError for any
    other type, also for text."""
    if value.type not in ("boolean", "void"):
        raise v.mismatch(what, value.type)
    return cast(value, "boolean", zone)


def boolean(value: Value, zone: Zone, what: str) -> Value:
    """Returns an operand of AND, OR or NOT as a boolean. Text is cast; any other type raises
    InvalidArgumentError."""
    if value.type not in ("boolean", "void", "string"):
        raise v.mismatch(what, value.type)
    return cast(value, "boolean", zone)


def booleans(values: Sequence[Value], zone: Zone, operator: str) -> list[Value]:
    """Returns all operands of AND or OR as booleans. As in Spark, one of the first two must not be text."""
    if all(value.type in ("string", "void") for value in values[:2]) and "string" in (
        values[0].type,
        values[1].type,
    ):
        raise v.mismatch(f"the operator {operator}", values[0].type, values[1].type)
    return [boolean(value, zone, operator) for value in values]


def negate(value: Value) -> Value:
    return value.like(f"(NOT {value.sql})", "boolean")


def connect(operator: str, parts: Sequence[Value]) -> Value:
    """Joins conditions with AND or OR. A condition that may fail on a row is evaluated only if no condition
    before it decides the result.

    Conditions that cannot fail stay plain operands, so that DuckDB can push them down and join by them. If
    `f(c)` may fail, `a = b AND f(c)` becomes `(a = b) AND (CASE WHEN NOT (a = b) THEN false ELSE f(c)
    END)`."""
    if len(parts) == 1:
        return parts[0]
    failing = [index for index, part in enumerate(parts) if part.raises]
    if not failing or not failing[-1]:
        return v.combine(f"({f' {operator} '.join(part.sql for part in parts)})", "boolean", parts)
    plain = [part.sql for part in parts if _is_plain(part)]
    # All are in one CASE instead of nested ones, as DuckDB limits the depth of an expression.
    decided = "NOT {} THEN false" if operator == "AND" else "{} THEN true"
    whens = " WHEN ".join(decided.format(part.sql) for part in parts[: failing[-1]])
    open_ones = [part.sql for part in parts[: failing[-1]] if not _is_plain(part) and part.nullable]
    later = [part.sql for part in parts[failing[-1] :] if not _is_plain(part)]
    guarded = f"(CASE WHEN {whens} ELSE ({f' {operator} '.join([*open_ones, *later])}) END)"
    return v.combine(f"({f' {operator} '.join([*plain, guarded])})", "boolean", parts)


def filtered(parts: Sequence[tuple[Value, frozenset[str], bool]]) -> Value:
    """Joins the conditions of WHERE or of an inner join with AND, where null means false. `parts`: each
    condition, the aliases of the tables that it reads, and whether it is the key of a join.

    A condition that may fail is evaluated only if the conditions before it that read the same tables are
    true. Conditions on other tables do not guard it, as Spark moves it below the join with those tables; so
    DuckDB can push it down too. The key of a join is not guarded, as in Spark: `a.week = b.week - 52` is
    computed for each row that reaches the join."""
    texts = [part.sql for part, _, is_key in parts if is_key or _is_plain(part)]
    for tables in dict.fromkeys(
        tables for part, tables, is_key in parts if not is_key and not _is_plain(part)
    ):
        # rand() written twice has two values, so it guards a condition only if it is not written elsewhere as
        # well.
        before = [
            (part, others == tables and not is_key)
            for part, others, is_key in parts
            if others == tables or (others < tables and part.deterministic)
        ]
        failing = [index for index, (part, mine) in enumerate(before) if mine and part.raises]
        last = failing[-1] if failing else 0
        rest = " AND ".join(part.sql for part, mine in before[last:] if mine and not _is_plain(part))
        guards = " WHEN ".join(f"{part.sql} IS NOT TRUE THEN false" for part, _ in before[:last])
        texts.append(f"(CASE WHEN {guards} ELSE ({rest}) END)" if guards else rest)
    return v.combine(f"({' AND '.join(texts)})", "boolean", [part for part, *_ in parts])


def _is_plain(part: Value) -> bool:
    """True if a condition may be evaluated on any row, and more than once: it cannot fail, and gives the same
    value each time."""
    return part.deterministic and not part.raises


def is_null(value: Value) -> Value:
    return value.like(f"({value.sql} IS NULL)", "boolean", nullable=False)


# --- arithmetic


def arithmetic(operator: str, left: Value, right: Value, zone: Zone) -> Value:
    """Returns `left operator right` for an operator of `+ - * / % div`, on numbers or on text that is cast to
    a number."""
    left, right = _numbers(operator, left, right, zone)
    # Spark evaluates the divisor first
    order = (right, left) if operator in ("/", "%", "div") else (left, right)
    return computed(
        operator, left, right, v.in_order(order, _calculated(operator, left, right, zone)), zone.name
    )


def _calculated(operator: str, left: Value, right: Value, zone: Zone) -> Value:
    if operator == "div":
        return _integer_division(left, right, zone)
    decimals = (
        (v.decimal_parts(left.type) or v.decimal_parts(right.type))
        and left.type not in v.FRACTIONAL
        and right.type not in v.FRACTIONAL
    )
    if decimals:
        return _decimal(operator, left, right)
    if operator == "/":
        left, right = cast(left, "double", zone), cast(right, "double", zone)
        return _guarded(f"({left.sql} / {right.sql})", "double", left, right, DIVIDE_BY_ZERO)
    common = v.common_type(left.type, right.type)
    assert common is not None
    left, right = cast(left, common, zone), cast(right, common, zone)
    if operator == "%":
        return _remainder(left, right, common)
    if common in v.FRACTIONAL:
        return v.combine(f"({left.sql} {operator} {right.sql})", common, (left, right))
    result = v.combine(f"{FUNCTIONS[operator]}({left.sql}, {right.sql})", common, (left, right), raises=True)
    limits, most = (
        _limits(operator, v.limits_of(left), v.limits_of(right)),
        1 << (v.INTEGER_BITS[str(common)] - 1),
    )
    if -most <= limits.least and limits.greatest < most:
        return replace(v.combine(result.sql, common, (left, right)), limits=limits)
    return result


def _numbers(operator: str, left: Value, right: Value, zone: Zone) -> tuple[Value, Value]:
    if operator == "/" and left.type == "void" and v.is_numeric(right.type):
        # for NULL / decimal too, Spark's result is a double
        return cast(left, "double", zone), cast(right, "double", zone)
    untyped = "long" if operator == "div" else "double"
    sides = []
    for one, other in ((left, right), (right, left)):
        if one.type == "string" and v.is_numeric(other.type):
            one = cast(one, "long" if other.type in v.INTEGRAL else "double", zone)
        elif one.type == "void":
            one = cast(one, other.type if v.is_numeric(other.type) else untyped, zone)
        if not v.is_numeric(one.type):
            raise v.mismatch(f"the operator {operator}", left.type, right.type)
        sides.append(one)
    return sides[0], sides[1]


def unguarded(operator: str, left: Value, right: Value, zone: Zone) -> Value:
    """Returns `/` or `%` by a divisor that is null instead of zero, so that the division cannot fail."""
    result = arithmetic(operator, left, right, zone)
    return result.like(result.sql, result.type, nullable=True, raises=left.raises or right.raises)


def _guarded(sql: str, data_type: DataType, left: Value, right: Value, error: str) -> Value:
    """Returns the division `sql`, but raises `error` if the divisor `right` is zero. For a literal divisor
    other than zero, no check is added."""
    if right.is_constant and right.constant:
        return v.combine(sql, data_type, (left, right))
    condition = f"{right.sql} = 0 AND {left.sql} IS NOT NULL" if left.nullable else f"{right.sql} = 0"
    return v.combine(
        f"(CASE WHEN {condition} THEN {error} ELSE {sql} END)", data_type, (left, right), raises=True
    )


def _remainder(left: Value, right: Value, data_type: DataType) -> Value:
    sql = f"({left.sql} % {right.sql})"
    if data_type in v.INTEGRAL and not (right.is_constant and right.constant not in (0, -1)):
        # DuckDB overflows on MIN % -1; the result is 0.
        sql = (
            f"(CASE WHEN {right.sql} = -1 THEN {left.sql} % CAST(1 AS {v.duckdb_type(data_type)}) ELSE {sql}"
            " END)"
        )
    return _guarded(sql, data_type, left, right, REMAINDER_BY_ZERO)


def _integer_division(left: Value, right: Value, zone: Zone) -> Value:
    if left.type in v.FRACTIONAL or right.type in v.FRACTIONAL:
        raise v.mismatch("the operator div", left.type, right.type)
    if v.decimal_parts(left.type) or v.decimal_parts(right.type):
        (p1, s1), (p2, s2) = v.as_decimal(left), v.as_decimal(right)
        scale = max(s1, s2)
        if max(p1 - s1, p2 - s2) + scale > 38:
            raise v.unsupported("the operator div", left.type, right.type)
        whole = f"({_aligned(left, scale)} // {_aligned(right, scale)})"
        far = v.failure("UNSUPPORTED_DIVISION", "'a quotient of div that is no bigint'")
        limits = f"{whole} BETWEEN -9223372036854775808 AND 9223372036854775807"
        quotient = f"CAST(CASE WHEN {limits} THEN {whole} ELSE {far} END AS BIGINT)"
        if p1 - s1 + s2 <= 18:
            quotient = f"CAST({whole} AS BIGINT)"
        return _guarded(quotient, "long", left, right, DIVIDE_BY_ZERO).like(
            _guarded(quotient, "long", left, right, DIVIDE_BY_ZERO).sql, "long", raises=True
        )
    left, right = cast(left, "long", zone), cast(right, "long", zone)
    result = _guarded(f"({left.sql} // {right.sql})", "long", left, right, DIVIDE_BY_ZERO)
    return (
        result
        if right.is_constant and right.constant not in (0, -1)
        else result.like(result.sql, "long", raises=True)
    )


def adjusted(precision: int, scale: int) -> tuple[int, int]:
    """Returns precision and scale limited to 38 digits, as Spark's DecimalType.adjustPrecisionScale: of the
    scale, at least 6 digits are kept (if it has as many)."""
    if precision <= 38:
        return precision, scale
    return 38, max(38 - (precision - scale), min(scale, 6))


def _decimal(operator: str, left: Value, right: Value) -> Value:
    (p1, s1), (p2, s2) = v.as_decimal(left), v.as_decimal(right)
    if operator in ("+", "-"):
        scale = max(s1, s2)
        precision = max(p1 - s1, p2 - s2) + scale + 1
        kind = v.decimal(*adjusted(precision, scale))
        if adjusted(precision, scale)[1] != scale:
            return _slow_decimal(operator, left, right, kind)
        if (narrow := _narrow(operator, left, right, kind)) is not None:
            return narrow
        sql = f"{FUNCTIONS[operator]}({_wide(left, precision)}, {_as(right, p2, s2)})"
        return v.combine(f"CAST({sql} AS {v.duckdb_type(kind)})", kind, (left, right), raises=precision > 38)
    if operator == "*":
        kind = v.decimal(*adjusted(p1 + p2 + 1, s1 + s2))
        if adjusted(p1 + p2 + 1, s1 + s2)[1] != s1 + s2:
            return _slow_decimal(operator, left, right, kind)
        if (narrow := _narrow(operator, left, right, kind)) is not None:
            return narrow
        # for more than 38 digits, DuckDB raises the overflow itself
        sql = f"multiply({_wide(left, p1 + p2)}, {_as(right, p2, s2)})"
        return v.combine(
            f"CAST({sql} AS {v.duckdb_type(kind)})", kind, (left, right), raises=p1 + p2 + 1 > 38
        )
    if operator == "%":
        scale = max(s1, s2)
        kind = v.decimal(min(p1 - s1, p2 - s2) + scale, scale)
        if max(p1 - s1, p2 - s2) + scale > 38:
            return _slow_decimal(operator, left, right, kind)
        a, b = _aligned(left, scale), _aligned(right, scale)
        return _guarded(scaled(f"{a} % {b}", scale, kind), kind, left, right, REMAINDER_BY_ZERO)
    precision, scale = adjusted(p1 - s1 + s2 + max(6, s1 + p2 + 1), max(6, s1 + p2 + 1))
    kind, shift = v.decimal(precision, scale), scale + s2 - s1
    # DuckDB divides in 64 bits. In 128 bits its division takes four times as long as a kernel.
    if shift < 0 or max(p1 + shift, p1 + s1 + 1, p2 + s2 + 1) > 18:
        return _slow_decimal(operator, left, right, kind, fits=0 <= shift <= 38 - p1)
    dividend, divisor = (
        unscaled(_as(left, p1, s1), s1, p1, short=True),
        unscaled(_as(right, p2, s2), s2, p2, short=True),
    )
    quotient = f"deltaic_divide({dividend} * CAST({10**shift} AS BIGINT), {divisor})"
    return _guarded(scaled(quotient, scale, kind), kind, left, right, DIVIDE_BY_ZERO)


def _narrow(operator: str, left: Value, right: Value, kind: str) -> Value | None:
    """Returns a sum or product computed in 64 bits, or None if it may have more than 18 digits by the limits
    of its operands.

    Example: with prices up to 104,949.50 and discounts up to 0.10, `price * (1 - discount)` has at most nine
    digits, although its type has 32."""
    (_, s1), (_, s2) = v.as_decimal(left), v.as_decimal(right)
    scale = s1 + s2 if operator == "*" else max(s1, s2)
    shifts = (0, 0) if operator == "*" else (scale - s1, scale - s2)
    given = [
        Limits(*(limit * 10**shift for limit in v.limits_of(side)))
        for side, shift in zip((left, right), shifts, strict=True)
    ]
    found = _limits(operator, given[0], given[1])
    sides = [v.short(left), v.short(right)]
    if scale > 18 or None in sides or max(abs(limit) for each in (*given, found) for limit in each) >= 10**18:
        return None
    narrow = f"{FUNCTIONS[operator]}({sides[0]}, {sides[1]})"
    result = v.combine(f"CAST({narrow} AS {v.duckdb_type(kind)})", kind, (left, right))
    return replace(result, limits=found, narrow=narrow)


def _limits(operator: str, left: Limits, right: Limits) -> Limits:
    """Returns the limits of the result of `+`, `-` or `*`."""
    if operator == "*":
        products = [one * other for one in left for other in right]
        return Limits(min(products), max(products))
    if operator == "+":
        return Limits(left.least + right.least, left.greatest + right.greatest)
    return Limits(left.least - right.greatest, left.greatest - right.least)


def _slow_decimal(operator: str, left: Value, right: Value, kind: str, *, fits: bool = False) -> Value:
    """Returns a decimal operation that a kernel computes, as an intermediate result may exceed DuckDB's 128
    bits. `fits`: no result has more digits than its type."""
    parts = v.decimal_parts(kind)
    assert parts is not None
    sides = [_as(side, *v.as_decimal(side)) for side in (left, right)]
    digits = kernel_sql("decimal", "decimal(38,0)", f"'{operator}'", *sides, str(parts[1]))
    sql = scaled(digits, parts[1], kind)
    if operator in ("/", "%"):
        result = _guarded(sql, kind, left, right, DIVIDE_BY_ZERO if operator == "/" else REMAINDER_BY_ZERO)
        return result if fits else result.like(result.sql, kind, raises=True)
    return v.combine(sql, kind, (left, right), raises=True)


def _wide(value: Value, precision: int) -> str:
    """Returns SQL of the first operand, cast to a decimal of 19 digits if the result has more than 18 digits:
    for shorter operands, DuckDB limits the result to 18 digits."""
    p, s = v.as_decimal(value)
    return _as(value, p, s) if precision <= 18 or p > 18 else f"CAST({value.sql} AS DECIMAL(19, {s}))"


def _aligned(value: Value, scale: int) -> str:
    """Returns SQL of a number's digits at a larger scale, as HUGEINT: 1.5 at scale 3 is 1500."""
    p, s = v.as_decimal(value)
    digits = unscaled(_as(value, p, s), s, p)
    return digits if s == scale else f"({digits} * CAST({10 ** (scale - s)} AS HUGEINT))"


def _as(value: Value, precision: int, scale: int) -> str:
    return value.sql if v.decimal_parts(value.type) else f"CAST({value.sql} AS DECIMAL({precision}, {scale}))"


def unscaled(sql: str, scale: int, precision: int, *, short: bool = False) -> str:
    """Returns SQL of a decimal's digits as HUGEINT: 1.50 is 150. `short`: as BIGINT; `precision` and `scale`
    must then be less than 18 together."""
    if short:
        return (
            f"CAST({sql if scale == 0 else f'multiply({sql}, CAST({10**scale} AS DECIMAL({scale + 1}, 0)))'}"
            " AS BIGINT)"
        )
    if scale == 0:
        return f"CAST({sql} AS HUGEINT)"
    if max(precision, 19) + scale + 1 <= 38:
        if precision <= 18:
            sql = f"CAST({sql} AS DECIMAL(19, {scale}))"  # otherwise DuckDB limits the product to 18 digits
        return f"CAST(multiply({sql}, CAST({10**scale} AS DECIMAL({scale + 1}, 0))) AS HUGEINT)"
    return f"CAST(replace(CAST({sql} AS VARCHAR), '.', '') AS HUGEINT)"


def scaled(sql: str, scale: int, data_type: str) -> str:
    """Returns SQL of the decimal with these digits, the inverse of `unscaled`: 150 at scale 2 is 1.50."""
    if scale == 0:
        return f"CAST({sql} AS {v.duckdb_type(data_type)})"
    one = "0." + "0" * (scale - 1) + "1"
    return (
        f"CAST(multiply(CAST({sql} AS DECIMAL(38, 0)), CAST('{one}' AS DECIMAL({scale}, {scale}))) AS"
        f" {v.duckdb_type(data_type)})"
    )


def _negated(value: Value) -> str:
    """Returns SQL of the negative of a number. Whole numbers are subtracted from 0 instead of negated:
    DuckDB's optimizer rewrites `-x = 1` to `x = -1`, which loses the error if `-x` overflows."""
    if value.type in ("integer", "long"):
        return f"subtract(CAST(0 AS {v.duckdb_type(value.type)}), {value.sql})"
    if value.type in v.INTEGRAL:
        overflow = v.failure("ARITHMETIC_OVERFLOW", "'overflow of a negative number'")
        return (
            f"(CASE WHEN {value.sql} = {-(1 << (v.INTEGER_BITS[str(value.type)] - 1))} THEN {overflow} ELSE -"
            f" {value.sql} END)"
        )
    return f"(- {value.sql})"


def negative(value: Value, zone: Zone) -> Value:
    """Returns the negative of a number. The negative of the least integer raises an overflow."""
    if value.type == "string":
        value = cast(value, "double", zone)
    if value.type == "void":
        value = cast(value, "double", zone)
    if not v.is_numeric(value.type):
        raise v.mismatch("the operator -", value.type)
    sql, decimal = _negated(value), v.decimal_parts(value.type)
    if decimal and decimal[0] > 34:  # Spark rounds these to 34 digits
        least = (
            f"CAST('1{'0' * (34 - decimal[1])}' AS DECIMAL(38, {decimal[1]}))" if decimal[1] <= 34 else "0"
        )
        long = v.failure("UNSUPPORTED_NEGATIVE", "'the negative of a decimal of more than 34 digits'")
        sql = f"CASE WHEN abs({value.sql}) >= {least} AND {value.sql} <> 0 THEN {long} ELSE {sql} END"
    raises = value.raises or value.type in v.INTEGRAL or bool(decimal and decimal[0] > 34)
    return value.like(f"CAST(({sql}) AS {v.duckdb_type(value.type)})", value.type, raises=raises)
