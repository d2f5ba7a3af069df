"""Operators: arithmetic, comparison, boolean logic, with Spark's coercions and ANSI errors.

Integer and decimal arithmetic uses the engine's functions `add`, `subtract`, `multiply`: they are its operators under names that its
optimizer leaves alone. It turns `x + 5 > 3` into `x > -2`, which forgets that `x + 5` may overflow.
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
DIVIDE_BY_ZERO = v.failure("DIVIDE_BY_ZERO", "'Division by zero. Use `try_divide` to tolerate divisor being 0 and return NULL instead.'")
REMAINDER_BY_ZERO = v.failure(
    "REMAINDER_BY_ZERO", "'Remainder by zero. Use `try_mod` to tolerate divisor being 0 and return NULL instead.'"
)


# --- comparison


def compare(operator: str, left: Value, right: Value, zone: Zone, *, joins: bool = False) -> Value:
    """`=`, `<>`, `<`, `<=`, `>`, `>=` and `<=>` on the common type of both sides.

    `joins`: it may stand between two tables, whose keys are computed each by itself, there as in Spark: a null on one side keeps nothing
    from failing on the other.
    """
    left, right = comparable(left, right, zone, f"the operator {operator}")
    if operator not in ("=", "<>", "<=>") and not isinstance(left.type, str):
        keys = [sort_key(side.sql, side.type) for side in (left, right)]
        known = f"{left.sql} IS NOT NULL AND {right.sql} IS NOT NULL"
        return v.combine(f"(CASE WHEN {known} THEN {keys[0]} {operator} {keys[1]} END)", "boolean", (left, right))
    if operator == "<=>":
        return v.combine(f"({left.sql} IS NOT DISTINCT FROM {right.sql})", "boolean", (left, right), nullable=False)
    result = v.combine(f"({left.sql} {operator} {right.sql})", "boolean", (left, right))
    return result if joins else v.in_order((left, right), result)


def comparable(left: Value, right: Value, zone: Zone, what: str) -> tuple[Value, Value]:
    """Both sides in one type. A literal number that fits the other side's type takes it, so that the column is compared as it is stored."""
    for one, other, swapped in ((left, right, False), (right, left, True)):
        if one.is_constant and one.type in v.INTEGRAL and other.type in v.INTEGRAL and one.constant is not None:
            folded = cast(one, other.type, zone)
            if folded.is_constant:
                return (other, folded) if swapped else (folded, other)
        if one.is_constant and other.type != one.type and (v.decimal_of(one.type) or one.type in v.INTEGRAL) and (v.decimal_of(other.type)):
            folded = cast(one, other.type, zone)
            if folded.is_constant:
                return (other, folded) if swapped else (folded, other)
    common = _common(left, right, what)
    return cast(left, common, zone), cast(right, common, zone)


def _common(left: Value, right: Value, what: str) -> DataType:
    if v.is_numeric(left.type) and v.is_numeric(right.type) and (v.decimal_of(left.type) or v.decimal_of(right.type)):
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
    """`value IN (items)`, on the common type of all."""
    common = v.common_of([value, *items], "IN")
    if not v.is_comparable(common):
        raise v.unsupported("IN", common)
    if value.type in v.INTEGRAL and all(item.type in v.INTEGRAL and item.is_constant for item in items):
        narrow = [cast(item, value.type, zone) for item in items]
        if all(item.is_constant for item in narrow):
            return v.combine(f"({value.sql} IN ({', '.join(item.sql for item in narrow)}))", "boolean", (value, *narrow))
    value, items = cast(value, common, zone), [cast(item, common, zone) for item in items]
    if value.is_constant and value.constant is None:  # as Spark's optimizer: no item is evaluated
        return literal(None, "boolean")
    if any(item.raises and not item.foldable for item in items):
        # One after the other, up to the first that is equal.
        found = connect("OR", [v.combine(f"({value.sql} = {item.sql})", "boolean", (value, item)) for item in items])
        return v.in_order((value, found), found)
    return v.combine(f"({value.sql} IN ({', '.join(item.sql for item in items)}))", "boolean", (value, *items))


# --- boolean logic


def condition(value: Value, zone: Zone, what: str) -> Value:
    """A condition of CASE, WHERE, filter: boolean, and no text."""
    if value.type not in ("boolean", "void"):
        raise v.mismatch(what, value.type)
    return cast(value, "boolean", zone)


def boolean(value: Value, zone: Zone, what: str) -> Value:
    """An operand of AND, OR, NOT: boolean, or text that says so."""
    if value.type not in ("boolean", "void", "string"):
        raise v.mismatch(what, value.type)
    return cast(value, "boolean", zone)


def booleans(values: Sequence[Value], zone: Zone, operator: str) -> list[Value]:
    """All operands of AND or OR; of the first two, one must be no text."""
    if all(value.type in ("string", "void") for value in values[:2]) and "string" in (values[0].type, values[1].type):
        raise v.mismatch(f"the operator {operator}", values[0].type, values[1].type)
    return [boolean(value, zone, operator) for value in values]


def negate(value: Value) -> Value:
    return value.like(f"(NOT {value.sql})", "boolean")


def connect(operator: str, parts: Sequence[Value]) -> Value:
    """AND or OR over many, left to right: what may fail on a row is evaluated only where all before it did not decide already.

    Parts that cannot fail stay operands of the whole, so that the engine can push them down and join by them: `a = b AND f(c)` becomes
    `(a = b) AND (CASE WHEN NOT (a = b) THEN false ELSE f(c) END)`."""
    if len(parts) == 1:
        return parts[0]
    failing = [index for index, part in enumerate(parts) if part.raises]
    if not failing or not failing[-1]:
        return v.combine(f"({f' {operator} '.join(part.sql for part in parts)})", "boolean", parts)
    plain = [part.sql for part in parts if _is_plain(part)]
    # In one CASE, however many there are: the engine bounds how deep an expression may be.
    decided = "NOT {} THEN false" if operator == "AND" else "{} THEN true"
    whens = " WHEN ".join(decided.format(part.sql) for part in parts[: failing[-1]])
    open_ones = [part.sql for part in parts[: failing[-1]] if not _is_plain(part) and part.nullable]
    later = [part.sql for part in parts[failing[-1] :] if not _is_plain(part)]
    guarded = f"(CASE WHEN {whens} ELSE ({f' {operator} '.join([*open_ones, *later])}) END)"
    return v.combine(f"({f' {operator} '.join([*plain, guarded])})", "boolean", parts)


def filtered(parts: Sequence[tuple[Value, frozenset[str], bool]]) -> Value:
    """The AND of a WHERE or an inner join's ON, for which null is false. Each part comes with the aliases of the tables that it reads, and
    whether a join has it as its key.

    What may fail is guarded by what stands before it over the same tables, as Spark moves a part below the join of other tables: then the
    engine can push it down, too. A key has no guard, as in Spark: `a.week = b.week - 52` is computed of each row that comes to the join."""
    texts = [part.sql for part, _, is_key in parts if is_key or _is_plain(part)]
    for tables in dict.fromkeys(tables for part, tables, is_key in parts if not is_key and not _is_plain(part)):
        # rand() has another value wherever it is written, so that it guards only what has no other place.
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
    """True if a part of a conjunction may be evaluated on any row, and more than once."""
    return part.deterministic and not part.raises


def is_null(value: Value) -> Value:
    return value.like(f"({value.sql} IS NULL)", "boolean", nullable=False)


# --- arithmetic


def arithmetic(operator: str, left: Value, right: Value, zone: Zone) -> Value:
    """`+ - * / % div` on numbers, and text taken as a number."""
    left, right = _numbers(operator, left, right, zone)
    order = (right, left) if operator in ("/", "%", "div") else (left, right)  # Spark looks at the divisor first
    return computed(operator, left, right, v.in_order(order, _calculated(operator, left, right, zone)), zone.name)


def _calculated(operator: str, left: Value, right: Value, zone: Zone) -> Value:
    if operator == "div":
        return _integer_division(left, right, zone)
    decimals = (v.decimal_of(left.type) or v.decimal_of(right.type)) and left.type not in v.FRACTIONAL and right.type not in v.FRACTIONAL
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
    limits, most = _limits(operator, v.limits_of(left), v.limits_of(right)), 1 << (v.BITS[str(common)] - 1)
    if -most <= limits.least and limits.greatest < most:
        return replace(v.combine(result.sql, common, (left, right)), limits=limits)
    return result


def _numbers(operator: str, left: Value, right: Value, zone: Zone) -> tuple[Value, Value]:
    if operator == "/" and left.type == "void" and v.is_numeric(right.type):
        return cast(left, "double", zone), cast(right, "double", zone)  # NULL has no type that Spark could keep a decimal by
    sides = []
    for one, other in ((left, right), (right, left)):
        if one.type == "string" and v.is_numeric(other.type):
            one = cast(one, "long" if other.type in v.INTEGRAL else "double", zone)
        elif one.type == "void":
            one = cast(one, other.type if v.is_numeric(other.type) else "double", zone)
        if not v.is_numeric(one.type):
            raise v.mismatch(f"the operator {operator}", left.type, right.type)
        sides.append(one)
    return sides[0], sides[1]


def unguarded(operator: str, left: Value, right: Value, zone: Zone) -> Value:
    """`/` or `%` by what is null in place of zero: null, not an error."""
    result = arithmetic(operator, left, right, zone)
    return result.like(result.sql, result.type, nullable=True, raises=left.raises or right.raises)


def _guarded(sql: str, data_type: DataType, left: Value, right: Value, error: str) -> Value:
    """`sql` unless the divisor is zero. A literal divisor that is not zero needs no guard."""
    if right.is_constant and right.constant:
        return v.combine(sql, data_type, (left, right))
    condition = f"{right.sql} = 0 AND {left.sql} IS NOT NULL" if left.nullable else f"{right.sql} = 0"
    return v.combine(f"(CASE WHEN {condition} THEN {error} ELSE {sql} END)", data_type, (left, right), raises=True)


def _remainder(left: Value, right: Value, data_type: DataType) -> Value:
    sql = f"({left.sql} % {right.sql})"
    if data_type in v.INTEGRAL and not (right.is_constant and right.constant not in (0, -1)):
        # The engine overflows on MIN % -1, which is 0.
        sql = f"(CASE WHEN {right.sql} = -1 THEN {left.sql} % CAST(1 AS {v.duckdb_type(data_type)}) ELSE {sql} END)"
    return _guarded(sql, data_type, left, right, REMAINDER_BY_ZERO)


def _integer_division(left: Value, right: Value, zone: Zone) -> Value:
    if left.type in v.FRACTIONAL or right.type in v.FRACTIONAL:
        raise v.mismatch("the operator div", left.type, right.type)
    if v.decimal_of(left.type) or v.decimal_of(right.type):
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
    return result if right.is_constant and right.constant not in (0, -1) else result.like(result.sql, "long", raises=True)


def adjusted(precision: int, scale: int) -> tuple[int, int]:
    """Spark's DecimalType.adjustPrecisionScale: at most 38 digits, giving up scale beyond 6 first."""
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
        sql = f"multiply({_wide(left, p1 + p2)}, {_as(right, p2, s2)})"  # beyond 38 digits the engine looks for an overflow itself
        return v.combine(f"CAST({sql} AS {v.duckdb_type(kind)})", kind, (left, right), raises=p1 + p2 + 1 > 38)
    if operator == "%":
        scale = max(s1, s2)
        kind = v.decimal(min(p1 - s1, p2 - s2) + scale, scale)
        if max(p1 - s1, p2 - s2) + scale > 38:
            return _slow_decimal(operator, left, right, kind)
        a, b = _aligned(left, scale), _aligned(right, scale)
        return _guarded(scaled(f"{a} % {b}", scale, kind), kind, left, right, REMAINDER_BY_ZERO)
    precision, scale = adjusted(p1 - s1 + s2 + max(6, s1 + p2 + 1), max(6, s1 + p2 + 1))
    kind, shift = v.decimal(precision, scale), scale + s2 - s1
    if p1 + shift > 38 or shift < 0:
        return _slow_decimal(operator, left, right, kind)
    # Division in 64 bits takes a tenth of the time.
    short = max(p1 + shift, p1 + s1 + 1, p2 + s2 + 1) <= 18
    dividend, divisor = unscaled(_as(left, p1, s1), s1, p1, short=short), unscaled(_as(right, p2, s2), s2, p2, short=short)
    quotient = f"deltaic_divide({dividend} * CAST({10**shift} AS {'BIGINT' if short else 'HUGEINT'}), {divisor})"
    return _guarded(scaled(quotient, scale, kind), kind, left, right, DIVIDE_BY_ZERO)


def _narrow(operator: str, left: Value, right: Value, kind: str) -> Value | None:
    """A sum or product that its operands' limits keep within 18 digits, in 64 bits: of prices up to 104,949.50 and discounts up to 0.10,
    `price * (1 - discount)` has nine digits, where its type has 32. None where that is not known."""
    (_, s1), (_, s2) = v.as_decimal(left), v.as_decimal(right)
    scale = s1 + s2 if operator == "*" else max(s1, s2)
    shifts = (0, 0) if operator == "*" else (scale - s1, scale - s2)
    given = [Limits(*(limit * 10**shift for limit in v.limits_of(side))) for side, shift in zip((left, right), shifts, strict=True)]
    found = _limits(operator, given[0], given[1])
    sides = [v.short(left), v.short(right)]
    if scale > 18 or None in sides or max(abs(limit) for each in (*given, found) for limit in each) >= 10**18:
        return None
    narrow = f"{FUNCTIONS[operator]}({sides[0]}, {sides[1]})"
    result = v.combine(f"CAST({narrow} AS {v.duckdb_type(kind)})", kind, (left, right))
    return replace(result, limits=found, narrow=narrow)


def _limits(operator: str, left: Limits, right: Limits) -> Limits:
    """The limits of the outcome of `+`, `-` or `*`."""
    if operator == "*":
        products = [one * other for one in left for other in right]
        return Limits(min(products), max(products))
    if operator == "+":
        return Limits(left.least + right.least, left.greatest + right.greatest)
    return Limits(left.least - right.greatest, left.greatest - right.least)


def _slow_decimal(operator: str, left: Value, right: Value, kind: str) -> Value:
    """SQL of a decimal operation. A kernel computes the digits if a result on the way exceeds the engine's 128 bits."""
    parts = v.decimal_of(kind)
    assert parts is not None
    sides = [_as(side, *v.as_decimal(side)) for side in (left, right)]
    digits = kernel_sql("decimal", "decimal(38,0)", f"'{operator}'", *sides, str(parts[1]))
    sql = scaled(digits, parts[1], kind)
    if operator in ("/", "%"):
        result = _guarded(sql, kind, left, right, DIVIDE_BY_ZERO if operator == "/" else REMAINDER_BY_ZERO)
        return result.like(result.sql, kind, raises=True)
    return v.combine(sql, kind, (left, right), raises=True)


def _wide(value: Value, precision: int) -> str:
    """A first operand that keeps the engine from capping a result of more than 18 digits at 18."""
    p, s = v.as_decimal(value)
    return _as(value, p, s) if precision <= 18 or p > 18 else f"CAST({value.sql} AS DECIMAL(19, {s}))"


def _aligned(value: Value, scale: int) -> str:
    """The digits at a larger scale, as HUGEINT."""
    p, s = v.as_decimal(value)
    digits = unscaled(_as(value, p, s), s, p)
    return digits if s == scale else f"({digits} * CAST({10 ** (scale - s)} AS HUGEINT))"


def _as(value: Value, precision: int, scale: int) -> str:
    return value.sql if v.decimal_of(value.type) else f"CAST({value.sql} AS DECIMAL({precision}, {scale}))"


def unscaled(sql: str, scale: int, precision: int, *, short: bool = False) -> str:
    """A decimal's digits as HUGEINT. `short`: as BIGINT, where `precision` and `scale` are less than 18 together."""
    if short:
        return f"CAST({sql if scale == 0 else f'multiply({sql}, CAST({10**scale} AS DECIMAL({scale + 1}, 0)))'} AS BIGINT)"
    if scale == 0:
        return f"CAST({sql} AS HUGEINT)"
    if max(precision, 19) + scale + 1 <= 38:
        if precision <= 18:
            sql = f"CAST({sql} AS DECIMAL(19, {scale}))"  # or the engine caps the product at 18 digits
        return f"CAST(multiply({sql}, CAST({10**scale} AS DECIMAL({scale + 1}, 0))) AS HUGEINT)"
    return f"CAST(replace(CAST({sql} AS VARCHAR), '.', '') AS HUGEINT)"


def scaled(sql: str, scale: int, data_type: str) -> str:
    """The inverse of `_unscaled`."""
    if scale == 0:
        return f"CAST({sql} AS {v.duckdb_type(data_type)})"
    one = "0." + "0" * (scale - 1) + "1"
    return f"CAST(multiply(CAST({sql} AS DECIMAL(38, 0)), CAST('{one}' AS DECIMAL({scale}, {scale}))) AS {v.duckdb_type(data_type)})"


def _negated(value: Value) -> str:
    """Not the engine's own minus on whole numbers: its optimizer turns `-x = 1` into `x = -1`, which forgets the overflow."""
    if value.type in ("integer", "long"):
        return f"subtract(CAST(0 AS {v.duckdb_type(value.type)}), {value.sql})"
    if value.type in v.INTEGRAL:
        overflow = v.failure("ARITHMETIC_OVERFLOW", "'overflow of a negative number'")
        return f"(CASE WHEN {value.sql} = {-(1 << (v.BITS[str(value.type)] - 1))} THEN {overflow} ELSE - {value.sql} END)"
    return f"(- {value.sql})"


def negative(value: Value, zone: Zone) -> Value:
    """Unary minus; the least integer overflows."""
    if value.type == "string":
        value = cast(value, "double", zone)
    if value.type == "void":
        value = cast(value, "double", zone)
    if not v.is_numeric(value.type):
        raise v.mismatch("the operator -", value.type)
    sql, decimal = _negated(value), v.decimal_of(value.type)
    if decimal and decimal[0] > 34:  # Spark rounds these to 34 digits
        least = f"CAST('1{'0' * (34 - decimal[1])}' AS DECIMAL(38, {decimal[1]}))" if decimal[1] <= 34 else "0"
        long = v.failure("UNSUPPORTED_NEGATIVE", "'the negative of a decimal of more than 34 digits'")
        sql = f"CASE WHEN abs({value.sql}) >= {least} AND {value.sql} <> 0 THEN {long} ELSE {sql} END"
    raises = value.raises or value.type in v.INTEGRAL or bool(decimal and decimal[0] > 34)
    return value.like(f"CAST(({sql}) AS {v.duckdb_type(value.type)})", value.type, raises=raises)
