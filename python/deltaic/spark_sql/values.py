"""The translated expression (`Value`), and Spark's rules for types: common types, precision and scale of
decimals, types that fit.

Types are those of `deltaic.protocol.schema`, and the intervals of `interval_types`, which no column of a
Delta table can have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, NamedTuple

from deltaic.errors import InvalidArgumentError, UnsupportedFeatureError
from deltaic.protocol.ddl import TO_DDL
from deltaic.protocol.schema import (
    INTEGER_BITS,
    INTEGER_DIGITS,
    Array,
    DataType,
    Field,
    Map,
    Struct,
    decimal_parts,
    is_shape,
)
from deltaic.spark_sql.interval_types import (
    CALENDAR,
    DAY_TIME,
    DAYS,
    YEAR_MONTH,
    common_interval,
    is_day_time,
    is_interval,
    is_year_month,
)
from deltaic.spark_sql.interval_types import DUCKDB_TYPES as _INTERVALS
from deltaic.sql_text import duckdb_name, duckdb_text

__all__ = [
    "CALENDAR",
    "DAYS",
    "DAY_TIME",
    "INTEGER_BITS",
    "YEAR_MONTH",
    "decimal_parts",
    "is_day_time",
    "is_interval",
    "is_year_month",
]

INTEGRAL = tuple(INTEGER_BITS)
FRACTIONAL = ("float", "double")
TEMPORAL = ("date", "timestamp", "timestamp_ntz")
_PRIMITIVE_SQL = {
    "byte": "TINYINT",
    "short": "SMALLINT",
    "integer": "INTEGER",
    "long": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "string": "VARCHAR",
    "binary": "BLOB",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "timestamp": "TIMESTAMP WITH TIME ZONE",
    "timestamp_ntz": "TIMESTAMP",
    "variant": 'STRUCT("metadata" BLOB, "value" BLOB)',
    "void": "INTEGER",
    **_INTERVALS,
}


class _NoConstant:
    """The `constant` of a value that is no literal. None is the constant of the literal NULL."""


MISSING = _NoConstant()


class Limits(NamedTuple):
    """The least and the greatest value of a number, without its decimal point: 1.50 is 150."""

    least: int
    greatest: int


@dataclass(frozen=True)
class Value:
    """An expression in DuckDB's SQL whose type in DuckDB is exactly `duckdb_type(type)`.

    - `sql`: can be an operand without further parentheses: a name, a call, or an expression in parentheses.
    - `raises`: the expression may fail on a row, so it must not be evaluated for rows where Spark does not
      evaluate it.
    - `constant`: the Python value of a literal (str, int, float, Decimal, bool, bytes, None); `MISSING` for
      any other expression.
    - `computed`: `constant` is the result of arithmetic on literals. Spark uses its type then, not the number
      of its digits.
    - `limits`: the least and greatest value of a number, if narrower than those of its type.
    - `narrow`: SQL of the same number as a decimal of at most 18 digits, if the type has more: DuckDB
      computes it in 64 bits.
    - `collation`: of a column that is text, or contains text, which is not compared by its bytes.
    - `foldable`: the expression consists of literals alone.
    - `constants`: SQL of the largest parts that consist of literals alone and may fail. Spark computes them
      while it plans (ConstantFolding), even if there are no rows.
    """

    sql: str
    type: DataType
    nullable: bool = True
    raises: bool = False
    constant: Any = MISSING
    deterministic: bool = True
    foldable: bool = False
    constants: tuple[str, ...] = ()
    computed: bool = False
    limits: Limits | None = None
    narrow: str | None = None
    collation: str | None = None

    @property
    def is_constant(self) -> bool:
        return self.constant is not MISSING

    def like(
        self, sql: str, data_type: DataType, *, nullable: bool | None = None, raises: bool | None = None
    ) -> Value:
        """Returns a value with other SQL and another type, computed from this value. `nullable` and `raises`
        stay the same unless given."""
        foldable = self.foldable or self.is_constant
        result = replace(
            self, sql=sql, type=data_type, constant=MISSING, foldable=foldable, limits=None, narrow=None
        )
        if nullable is not None:
            result = replace(result, nullable=nullable)
        if raises is not None:
            result = replace(result, raises=raises)
        return result._largest(self.constants)

    def _largest(self, inner: Iterable[str]) -> Value:
        """Returns the value with its `constants`: its own SQL if it is a constant as a whole, else those of
        its parts, `inner`."""
        if self.foldable and self.deterministic:
            return replace(self, constants=(self.sql,) if self.raises else ())
        return replace(self, constants=tuple(dict.fromkeys(inner)))

    def not_foldable(self, parts: Iterable[Value]) -> Value:
        """Returns the value of a form that Spark does not fold at planning time, even if all `parts` are
        constants."""
        mine = () if self.foldable else self.constants
        return replace(self, foldable=False)._largest(
            [*mine, *(constant for part in parts for constant in part.constants)]
        )

    def by_choice(self) -> Value:
        """Returns the value of a CASE or coalesce. Spark evaluates their branches lazily, so constants within
        them must not be computed, and fail, before the rows: `constants` becomes empty, unless the value is
        foldable as a whole."""
        return self if self.foldable else replace(self, constants=())


def combine(
    sql: str,
    data_type: DataType,
    parts: Iterable[Value],
    *,
    nullable: bool | None = None,
    raises: bool = False,
) -> Value:
    """Returns a value computed from `parts`. The value may be null if any part may, unless `nullable` is
    given; it may fail on a row if any part may, or if `raises` is true."""
    parts = list(parts)
    null = any(part.nullable for part in parts) if nullable is None else nullable
    result = Value(
        sql,
        data_type,
        null,
        raises or any(part.raises for part in parts),
        MISSING,
        all(part.deterministic for part in parts),
        all(part.foldable or part.is_constant for part in parts),
    )
    return result._largest(constant for part in parts for constant in part.constants)


def in_order(parts: Sequence[Value], result: Value) -> Value:
    """Returns `result`, whose operands Spark evaluates in the order of `parts` up to the first null, so that
    operands after a null do not fail."""
    # Spark's optimizer replaces it by null, and evaluates nothing
    if any(part.is_constant and part.constant is None for part in parts):
        if not result.raises:
            return result
        return replace(
            result.like(
                f"CAST(NULL AS {duckdb_type(result.type)})", result.type, nullable=True, raises=False
            ),
            constants=(),
        )
    failing = [index for index, part in enumerate(parts) if part.raises and not part.foldable]
    before = (
        [part for part in parts[: failing[-1]] if part.nullable and not part.is_constant] if failing else []
    )
    if not before:
        return result
    nulls = " ".join(f"WHEN {part.sql} IS NULL THEN NULL" for part in before)
    return result.like(f"(CASE {nulls} ELSE {result.sql} END)", result.type, nullable=True)


text, name = duckdb_text, duckdb_name
"""The translator writes these two in most lines."""


def computed_once(value: Value, build: Callable[[Value], Value]) -> Value:
    """Returns what `build` makes of a value that is computed before it, once. The value may stand within TRY
    then, where DuckDB allows nothing that raises an error; its own error stays an error."""
    made = build(Value("deltaic_once", value.type, value.nullable))
    sql = f"list_extract(list_transform([{value.sql}], lambda deltaic_once: {made.sql}), 1)"
    return combine(sql, made.type, [value], nullable=made.nullable, raises=made.raises)


def decimal(precision: int, scale: int) -> str:
    return f"decimal({precision},{scale})"


def is_numeric(data_type: DataType) -> bool:
    return data_type in INTEGRAL or data_type in FRACTIONAL or decimal_parts(data_type) is not None


def is_primitive(name: str) -> bool:
    """True if a text is the name of a type without parts, such as `long`."""
    return name in _PRIMITIVE_SQL or decimal_parts(name) is not None


def duckdb_type(data_type: DataType) -> str:
    """Returns the name of a type in DuckDB's SQL."""
    if isinstance(data_type, str):
        if known := _PRIMITIVE_SQL.get(data_type):
            return known
        if parts := decimal_parts(data_type):
            return f"DECIMAL({parts[0]}, {parts[1]})"
        if is_shape(data_type):
            return "BLOB"
        raise UnsupportedFeatureError(f"type {data_type} in an expression")
    if isinstance(data_type, Array):
        return duckdb_type(data_type.element) + "[]"
    if isinstance(data_type, Map):
        return f"MAP({duckdb_type(data_type.key)}, {duckdb_type(data_type.value)})"
    if not data_type.fields:
        raise UnsupportedFeatureError("a struct without fields is not supported in an expression")
    return (
        "STRUCT("
        + ", ".join(f"{name(field.name)} {duckdb_type(field.type)}" for field in data_type.fields)
        + ")"
    )


def type_text(data_type: DataType) -> str:
    """Returns a type as Spark's DDL names it, for error messages and the list of forms in docs/sql.md."""
    if isinstance(data_type, str):
        return TO_DDL.get(data_type, data_type)
    if isinstance(data_type, Array):
        return f"array<{type_text(data_type.element)}>"
    if isinstance(data_type, Map):
        return f"map<{type_text(data_type.key)},{type_text(data_type.value)}>"
    return "struct<" + ",".join(f"{field.name}:{type_text(field.type)}" for field in data_type.fields) + ">"


def cast_sql(value: Value, data_type: DataType) -> str:
    """Returns DuckDB's own cast, for types where it equals Spark's."""
    return f"CAST({value.sql} AS {duckdb_type(data_type)})"


# --- common types (AnsiTypeCoercion)


def as_decimal(value: Value | DataType) -> tuple[int, int]:
    """Returns (precision, scale) of the decimal that holds every value of an integral or decimal type. For an
    integer literal, returns the narrowest decimal that holds the literal."""
    if isinstance(value, Value):
        written = isinstance(value.constant, int) and not value.computed
        # Spark's fromLiteral has no case for bytes
        if value.type in INTEGRAL and value.type != "byte" and written:
            return len(str(abs(value.constant))), 0
        value = value.type
    if found := decimal_parts(value):
        return found
    return INTEGER_DIGITS[str(value)], 0


def wider_decimal(left: tuple[int, int], right: tuple[int, int]) -> str:
    """Returns the decimal type that holds values of both types. If it needs more than 38 digits, the digits
    before the point are kept and the scale is reduced (DecimalType.boundedPreferIntegralDigits)."""
    whole = max(left[0] - left[1], right[0] - right[1])
    scale = min(max(left[1], right[1]), 38 - whole)
    return decimal(whole + scale, scale)


def limits_of(value: Value) -> Limits:
    """Returns the limits of a whole number or decimal: its own if known, else those of its type."""
    precision, scale = as_decimal(value)
    if isinstance(value.constant, Decimal):
        sign, digits, exponent = value.constant.as_tuple()
        number = (-1 if sign else 1) * int("".join(map(str, digits))) * 10 ** (int(exponent) + scale)
        return Limits(number, number)
    if isinstance(value.constant, int):
        return Limits(value.constant, value.constant)
    if value.limits is not None:
        return value.limits
    most = 1 << (INTEGER_BITS[str(value.type)] - 1) if value.type in INTEGRAL else 10**precision
    return Limits(-most if value.type in INTEGRAL else 1 - most, most - 1)


def short(value: Value) -> str | None:
    """Returns SQL of a whole number or decimal as a decimal of the same scale with at most 18 digits, or None
    if the number may have more."""
    precision, scale = as_decimal(value)
    if precision <= 18:
        return value.sql if decimal_parts(value.type) else f"CAST({value.sql} AS DECIMAL({precision}, 0))"
    if value.narrow is not None:
        return value.narrow
    if value.is_constant and value.constant is None:
        return f"CAST(NULL AS DECIMAL(18, {min(scale, 18)}))"
    limits = limits_of(value)
    if (
        scale > 18
        or not (value.type in INTEGRAL or value.is_constant)
        or max(-limits.least, limits.greatest) >= 10**18
    ):
        return None
    return f"CAST({value.sql} AS DECIMAL(18, {scale}))"


def common_type(left: DataType, right: DataType) -> DataType | None:
    """Returns the type that both sides are cast to in comparisons, CASE, coalesce and arrays, or None if
    Spark refuses these types."""
    if left == right:
        return left
    if left == "void":
        return right
    if right == "void":
        return left
    if is_numeric(left) and is_numeric(right):
        return _common_number(left, right)
    if "string" in (left, right):
        return _common_with_string(right if left == "string" else left)
    if left in TEMPORAL and right in TEMPORAL:
        return "timestamp" if "timestamp" in (left, right) else "timestamp_ntz"
    if is_interval(left) and is_interval(right):
        return common_interval(str(left), str(right))
    return _common_nested(left, right)


def _common_number(left: DataType, right: DataType) -> str:
    if left in INTEGRAL and right in INTEGRAL:
        return max((str(left), str(right)), key=INTEGRAL.index)
    if left in FRACTIONAL or right in FRACTIONAL:
        return "double"  # as a double, no digits are lost
    return wider_decimal(as_decimal(left), as_decimal(right))


def _common_with_string(other: DataType) -> DataType | None:
    if other in INTEGRAL:
        return "long"
    if other in FRACTIONAL or decimal_parts(other):
        return "double"
    return other if isinstance(other, str) else None


def _common_nested(left: DataType, right: DataType) -> DataType | None:
    if isinstance(left, Array) and isinstance(right, Array):
        element = common_type(left.element, right.element)
        return None if element is None else Array(element, left.contains_null or right.contains_null)
    if isinstance(left, Map) and isinstance(right, Map):
        key, value = common_without_text(left.key, right.key), common_type(left.value, right.value)
        return (
            None
            if key is None or value is None
            else Map(key, value, left.value_contains_null or right.value_contains_null)
        )
    if isinstance(left, Struct) and isinstance(right, Struct):
        if len(left.fields) != len(right.fields) or any(
            a.name.lower() != b.name.lower() for a, b in zip(left.fields, right.fields, strict=True)
        ):
            return None
        kinds = [common_type(a.type, b.type) for a, b in zip(left.fields, right.fields, strict=True)]
        if any(kind is None for kind in kinds):
            return None
        pairs = zip(left.fields, right.fields, kinds, strict=True)
        return Struct(
            Field(a.name, kind, a.nullable or b.nullable) for a, b, kind in pairs if kind is not None
        )
    return None


def common_without_text(left: DataType, right: DataType) -> DataType | None:
    """Returns the common type of items of arrays, keys of maps and arguments of greatest, where Spark does
    not cast between text and other types. Returns None if there is none."""
    return None if _text_meets_other(left, right) else common_type(left, right)


def _text_meets_other(left: DataType, right: DataType) -> bool:
    if isinstance(left, Array) and isinstance(right, Array):
        return _text_meets_other(left.element, right.element)
    if isinstance(left, Map) and isinstance(right, Map):
        return _text_meets_other(left.key, right.key) or _text_meets_other(left.value, right.value)
    if isinstance(left, Struct) and isinstance(right, Struct):
        return any(_text_meets_other(a.type, b.type) for a, b in zip(left.fields, right.fields, strict=False))
    return "void" not in (left, right) and (left == "string") != (right == "string")


def integral_meets_float(left: DataType, right: DataType) -> bool:
    """True if one type has a whole number where the other has a float, at any depth. Functions that search in
    arrays compare these as floats, everything else as doubles."""
    if isinstance(left, Array) and isinstance(right, Array):
        return integral_meets_float(left.element, right.element)
    if isinstance(left, Struct) and isinstance(right, Struct):
        return any(
            integral_meets_float(a.type, b.type) for a, b in zip(left.fields, right.fields, strict=False)
        )
    return (left in INTEGRAL and right == "float") or (left == "float" and right in INTEGRAL)


def tightest(left: DataType, right: DataType) -> DataType | None:
    """Returns the common type in which nested values are compared and searched for, or None. Unlike in
    `common_type`, text is not cast to a number, and decimals of different types have none."""
    if isinstance(left, Array) and isinstance(right, Array):
        element = tightest(left.element, right.element)
        return None if element is None else Array(element, left.contains_null or right.contains_null)
    if isinstance(left, Struct) and isinstance(right, Struct):
        common = _common_nested(left, right)
        inner = [tightest(a.type, b.type) for a, b in zip(left.fields, right.fields, strict=False)]
        return None if None in inner else common
    if decimal_parts(left) and decimal_parts(right) and left != right:
        return None
    if (decimal_parts(left) or decimal_parts(right)) and (left in FRACTIONAL or right in FRACTIONAL):
        return None
    if isinstance(left, Map) or isinstance(right, Map) or _text_meets_other(left, right):
        return None
    common = common_type(left, right)
    return None if any(decimal_parts(side) and common != side for side in (left, right)) else common


def holds(data_type: DataType, is_wanted: Callable[[DataType], bool]) -> bool:
    """True if `is_wanted` is true for a type, or for a type that it contains at any depth."""
    if isinstance(data_type, Array):
        return holds(data_type.element, is_wanted)
    if isinstance(data_type, Map):
        return holds(data_type.key, is_wanted) or holds(data_type.value, is_wanted)
    if isinstance(data_type, Struct):
        return any(holds(field.type, is_wanted) for field in data_type.fields)
    return is_wanted(data_type)


def holds_fraction(data_type: DataType) -> bool:
    """True if a type is, or contains at any depth, a float or double."""
    return holds(data_type, lambda kind: kind in FRACTIONAL)


def sought(what: str, left: DataType, right: DataType) -> DataType:
    """Returns `tightest` of two types. Raises UnsupportedFeatureError if only a wider type is common to both,
    and InvalidArgumentError if no type is."""
    found = None if integral_meets_float(left, right) else tightest(left, right)
    if found is None and common_without_text(left, right) is not None:
        raise unsupported(f"function {what}", left, right)
    if found is None:
        raise mismatch(what, left, right)
    return found


def common_of(values: Iterable[Value], what: str) -> DataType:
    """Returns the common type of several values. Raises InvalidArgumentError, with the two types, if there is
    none."""
    result: DataType = "void"
    for value in values:
        found = common_type(result, value.type)
        if found is None:
            raise mismatch(what, result, value.type)
        result = found
    return result


def same_but_nulls(left: DataType, right: DataType) -> bool:
    """True if two types are equal except for whether nested values may be null: then no cast is needed."""
    if isinstance(left, Array) and isinstance(right, Array):
        return same_but_nulls(left.element, right.element)
    if isinstance(left, Map) and isinstance(right, Map):
        return same_but_nulls(left.key, right.key) and same_but_nulls(left.value, right.value)
    if isinstance(left, Struct) and isinstance(right, Struct):
        return len(left.fields) == len(right.fields) and all(
            a.name == b.name and same_but_nulls(a.type, b.type)
            for a, b in zip(left.fields, right.fields, strict=True)
        )
    return left == right


def same_structure(left: DataType, right: DataType) -> bool:
    """True if two types are equal except for field names and for whether nested values may be null: such
    values can be compared."""
    if isinstance(left, Array) and isinstance(right, Array):
        return same_structure(left.element, right.element)
    if isinstance(left, Struct) and isinstance(right, Struct):
        return len(left.fields) == len(right.fields) and all(
            same_structure(a.type, b.type) for a, b in zip(left.fields, right.fields, strict=True)
        )
    return left == right


def field_names(data_type: DataType) -> list[str]:
    """Names of a struct's fields in lower case; none of any other type."""
    return [field.name.lower() for field in data_type.fields] if isinstance(data_type, Struct) else []


def is_comparable(data_type: DataType) -> bool:
    """True if values can be compared by `=`: all types except those with a map, a variant or a geographic
    type at any depth."""
    if isinstance(data_type, Array):
        return is_comparable(data_type.element)
    if isinstance(data_type, Struct):
        return all(is_comparable(field.type) for field in data_type.fields)
    return isinstance(data_type, str) and data_type not in ("variant", CALENDAR) and not is_shape(data_type)


def is_orderable(data_type: DataType) -> bool:
    """True if DuckDB orders values of this type as Spark does. For arrays and structs it does not, as it
    sorts nulls inside them last."""
    return isinstance(data_type, str) and data_type not in ("variant", CALENDAR) and not is_shape(data_type)


def check_storable(what: str, parts: Iterable[Value]) -> None:
    """Raises UnsupportedFeatureError if a part of an array, map or struct is an interval of months and
    days."""
    for part in parts:
        if part.type == CALENDAR:
            raise unsupported(what, part.type)


def mismatch(what: str, *types: DataType) -> InvalidArgumentError:
    """Returns the error DATATYPE_MISMATCH: `what` does not accept values of these types."""
    return InvalidArgumentError(
        f"[DATATYPE_MISMATCH] {what} does not take {' and '.join(type_text(kind) for kind in types)}"
    )


def unsupported(form: str, *types: DataType, expected: str | None = None) -> UnsupportedFeatureError:
    """Returns the error for a form that is not supported, at all or for these types. `expected`: similar
    forms that are supported."""
    arguments = f"({', '.join(type_text(kind) for kind in types)})" if types else ""
    return UnsupportedFeatureError(
        f"{form}{arguments} is not supported by the embedded engine, which answers only what it answers"
        " exactly as Spark does",
        expected=expected,
    )


def failure(condition: str, message: str) -> str:
    """Returns SQL that raises an error with Spark's error condition. `message`: SQL of its text."""
    return f"error('[{condition}] ' || {message})"
