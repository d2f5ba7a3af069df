"""CASE, IF, coalesce and similar functions: all branches are cast to a common type, and a branch is evaluated
only for the rows that choose it, as DuckDB's CASE and COALESCE do."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

from deltaic.protocol.schema import DataType
from deltaic.spark_sql import operators
from deltaic.spark_sql import values as v
from deltaic.spark_sql.casts import Zone, cast, literal
from deltaic.spark_sql.functions.registry import Build, form, register
from deltaic.spark_sql.values import Value


def case(branches: Sequence[tuple[Value, Value]], default: Value | None, zone: Zone) -> Value:
    """Returns CASE WHEN condition THEN result … ELSE default END. `branches`: pairs of a condition and a
    result."""
    default = default if default is not None else literal(None, "void")
    results = [result for _, result in branches] + [default]
    common = _common(results, "CASE")
    parts, used = [], []
    for condition, result in branches:
        condition, result = operators.condition(condition, zone, "CASE WHEN"), cast(result, common, zone)
        parts.append(f"WHEN {condition.sql} THEN {result.sql}")
        used += [condition, result]
    default = cast(default, common, zone)
    nullable = default.nullable or any(result.nullable for result in used[1::2])
    whole = v.combine(
        f"(CASE {' '.join(parts)} ELSE {default.sql} END)", common, [*used, default], nullable=nullable
    ).by_choice()
    return _narrowed(whole, used[::2], [*used[1::2], default])


def _narrowed(whole: Value, conditions: Sequence[Value], results: Sequence[Value]) -> Value:
    """Returns the CASE with a second form whose results are decimals of at most 18 digits, if all its results
    have such a form: DuckDB computes it faster."""
    decimal = v.decimal_parts(whole.type)
    if decimal is None or decimal[0] <= 18 or all(result.is_constant for result in results):
        return whole
    short = [v.short(result) for result in results]
    if None in short:
        return whole
    kind = f"DECIMAL(18, {decimal[1]})"
    parts = [
        f"WHEN {condition.sql} THEN CAST({sql} AS {kind})"
        for condition, sql in zip(conditions, short, strict=False)
    ]
    limits = [
        v.limits_of(result) for result in results if not result.is_constant or result.constant is not None
    ]
    bounds = v.Limits(min(limit.least for limit in limits), max(limit.greatest for limit in limits))
    return replace(
        whole, limits=bounds, narrow=f"(CASE {' '.join(parts)} ELSE CAST({short[-1]} AS {kind}) END)"
    )


def _common(values: Sequence[Value], what: str) -> DataType:
    return v.common_of(values, what)


def coalesce(arguments: list[Value], zone: Zone) -> Value:
    common = _common(arguments, "coalesce")
    parts = [cast(argument, common, zone) for argument in arguments]
    if len(parts) == 1:
        return parts[0]
    nullable = all(part.nullable for part in parts)
    return v.combine(
        f"coalesce({', '.join(part.sql for part in parts)})", common, parts, nullable=nullable
    ).by_choice()


def _decode(arguments: list[Value], zone: Zone) -> Value:
    """Returns decode(value, search, result, … [, default]): the result after the first `search` that equals
    `value`. Two nulls are equal."""
    value, *rest = arguments
    default = (
        rest.pop() if len(rest) % 2 else literal(None, "string")
    )  # Spark's missing default is a null of type string; beside whole numbers, the common type is bigint
    branches = [
        (operators.compare("<=>", value, one, zone), result)
        for one, result in zip(rest[::2], rest[1::2], strict=True)
    ]
    return case(branches, default, zone)


def _if(arguments: list[Value], zone: Zone) -> Value:
    return case([(arguments[0], arguments[1])], arguments[2], zone)


def _nvl2(arguments: list[Value], zone: Zone) -> Value:
    return case([(operators.negate(operators.is_null(arguments[0])), arguments[1])], arguments[2], zone)


def _nullif(arguments: list[Value], zone: Zone) -> Value:
    equal = operators.compare("=", arguments[0], arguments[1], zone)
    return case([(equal, literal(None, "void"))], arguments[0], zone)


def _nanvl(arguments: list[Value], zone: Zone) -> Value:
    number, other = arguments
    return v.combine(
        f"(CASE WHEN isnan({number.sql}) THEN {other.sql} ELSE {number.sql} END)", number.type, arguments
    ).by_choice()


def _extreme(operator: str) -> Build:
    def build(arguments: list[Value], zone: Zone) -> Value:
        if any(
            v.common_without_text(one.type, other.type) is None
            for one, other in itertools.combinations(arguments, 2)
        ):
            raise v.mismatch(operator, *(argument.type for argument in arguments))
        common = _common(arguments, operator)
        if not v.is_orderable(common):
            raise v.unsupported(f"function {operator}", *(argument.type for argument in arguments))
        parts = [cast(argument, common, zone) for argument in arguments]
        nullable = all(part.nullable for part in parts)
        sql = f"CAST({operator}({', '.join(part.sql for part in parts)}) AS {v.duckdb_type(common)})"
        return v.combine(sql, common, parts, nullable=nullable)

    return build


register("decode", "any, any, any, any...", "T", _decode)
register("coalesce", "any, any...", "T", coalesce)
register("nvl ifnull", "any, any", "T", coalesce)
register("if", "any, any, any", "T", _if)
register("nvl2", "any, any, any", "T", _nvl2)
register("nullif", "any, any", "T", _nullif)
register("greatest", "any, any, any...", "T", _extreme("greatest"))
register("least", "any, any, any...", "T", _extreme("least"))
register("isnull", "any", "boolean", lambda arguments, zone: operators.is_null(arguments[0]))
register(
    "isnotnull", "any", "boolean", lambda arguments, zone: operators.negate(operators.is_null(arguments[0]))
)
register(
    "equal_null",
    "any, any",
    "boolean",
    lambda arguments, zone: operators.compare("<=>", arguments[0], arguments[1], zone),
)
register(
    "zeroifnull",
    "numeric",
    "T",
    lambda arguments, zone: coalesce([arguments[0], literal(0, "integer")], zone),
)
register("zeroifnull", "=void", "integer", lambda arguments, zone: literal(0, "integer"))
register("nullifzero", "=void", "void", lambda arguments, zone: arguments[0])
register(
    "nullifzero", "numeric", "T", lambda arguments, zone: _nullif([arguments[0], literal(0, "integer")], zone)
)
form("isnan", "float", "boolean", "coalesce(isnan({0}), false)", nullable=False)
form("isnan", "double", "boolean", "coalesce(isnan({0}), false)", nullable=False)
register("nanvl", "double, double", "double", _nanvl)
register("nanvl", "float, float", "float", _nanvl)
form(
    "raise_error",
    "string",
    "void",
    "error('[USER_RAISED_EXCEPTION] ' || coalesce({0}, 'null'))",
    raises=True,
    nullable=True,
    foldable=False,
)
form(
    "assert_true",
    "=boolean",
    "void",
    "CASE WHEN {0} THEN NULL ELSE error('[USER_RAISED_EXCEPTION] assert_true failed') END",
    raises=True,
    nullable=True,
    foldable=False,
)
form(
    "assert_true",
    "=boolean, string",
    "void",
    "CASE WHEN {0} THEN NULL ELSE error('[USER_RAISED_EXCEPTION] ' || coalesce({1}, 'null')) END",
    raises=True,
    nullable=True,
    foldable=False,
)
