"""A translated expression (`Value`) and Spark's rules about types: widths, common types, decimal arithmetic.

Types are `deltaic.protocol.schema`'s, and the intervals of `interval_types.py`, which no Delta column can hold.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, NamedTuple

from deltaic.errors import InvalidArgumentError, UnsupportedFeatureError
from deltaic.protocol.schema import Array, DataType, Field, Map, Struct, is_shape
from deltaic.spark_sql.interval_types import CALENDAR, DAY_TIME, DAYS, YEAR_MONTH, common_interval, is_day_time, is_interval, is_year_month
from deltaic.spark_sql.interval_types import DUCKDB_TYPES as _INTERVALS

__all__ = ["CALENDAR", "DAYS", "DAY_TIME", "YEAR_MONTH", "is_day_time", "is_interval", "is_year_month"]

INTEGRAL = ("byte", "short", "integer", "long")
FRACTIONAL = ("float", "double")
TEMPORAL = ("date", "timestamp", "timestamp_ntz")
BITS = {"byte": 8, "short": 16, "integer": 32, "long": 64}
_INTEGRAL_DIGITS = {"byte": 3, "short": 5, "integer": 10, "long": 20}
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
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_DDL = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}


class _Missing:
    """The `constant` of a value that is none, as None is the constant NULL."""


MISSING = _Missing()


class Limits(NamedTuple):
    """The least and the greatest digits of a number: 150 of the decimal 1.50."""

    least: int
    greatest: int


@dataclass(frozen=True)
class Value:
    """An expression in the engine's SQL whose engine type is exactly `duckdb_type(type)`.

    `sql`: an operand as it stands (a name, a call, or in parentheses). `raises`: evaluating it may fail on a row, so it must not be
    evaluated
    where Spark would not. `constant`: the Python value of a literal (str, int, float, Decimal, bool, bytes, None), `MISSING` for all else.
    `computed`: the constant is the outcome of arithmetic on literals, which Spark types by its type and not by its digits.
    `limits`: of a number, where they are narrower than its type's. `narrow`: SQL of the same decimal with at most 18 digits, which the
    engine computes with in 64 bits, where the type has more.
    `collation`: of a column of text, or with text in it, that is not compared by its bytes.
    `foldable`: made of literals alone. `constants`: SQL of its largest parts that are, and that may fail: Spark computes them while it
    plans (ConstantFolding), whatever the rows.
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

    def like(self, sql: str, data_type: DataType, *, nullable: bool | None = None, raises: bool | None = None) -> Value:
        """Another SQL over this value: nullable, raises and deterministic stay unless given."""
        foldable = self.foldable or self.is_constant
        result = replace(self, sql=sql, type=data_type, constant=MISSING, foldable=foldable, limits=None, narrow=None)
        if nullable is not None:
            result = replace(result, nullable=nullable)
        if raises is not None:
            result = replace(result, raises=raises)
        return result._largest(self.constants)

    def _largest(self, inner: Iterable[str]) -> Value:
        """Returns the value with its `constants`: its own SQL if it is a constant as a whole, else those of its parts, `inner`."""
        if self.foldable and self.deterministic:
            return replace(self, constants=(self.sql,) if self.raises else ())
        return replace(self, constants=tuple(dict.fromkeys(inner)))

    def not_foldable(self, parts: Iterable[Value]) -> Value:
        """Returns the value of a form that Spark does not fold at planning time, even if all `parts` are constants."""
        mine = () if self.foldable else self.constants
        return replace(self, foldable=False)._largest([*mine, *(constant for part in parts for constant in part.constants)])

    def by_choice(self) -> Value:
        """For CASE and coalesce, whose branches are evaluated lazily: a constant in them must not be evaluated, and fail, when planned."""
        return self if self.foldable else replace(self, constants=())


def combine(sql: str, data_type: DataType, parts: Iterable[Value], *, nullable: bool | None = None, raises: bool = False) -> Value:
    """A value over several: null when any part may be unless `nullable` is given, raising when any part may or `raises`."""
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
    """`result`, of operands that Spark evaluates one after the other up to the first null: what stands behind that one does not fail."""
    if any(part.is_constant and part.constant is None for part in parts):  # as Spark's optimizer: nothing is evaluated
        if not result.raises:
            return result
        return replace(result.like(f"CAST(NULL AS {duckdb_type(result.type)})", result.type, nullable=True, raises=False), constants=())
    failing = [index for index, part in enumerate(parts) if part.raises and not part.foldable]
    before = [part for part in parts[: failing[-1]] if part.nullable and not part.is_constant] if failing else []
    if not before:
        return result
    nulls = " ".join(f"WHEN {part.sql} IS NULL THEN NULL" for part in before)
    return result.like(f"(CASE {nulls} ELSE {result.sql} END)", result.type, nullable=True)


def text(value: str) -> str:
    """A Python string as an SQL literal of the engine."""
    if "\0" in value:
        return "(" + " || chr(0) || ".join(f"'{part}'" for part in value.replace("'", "''").split("\0")) + ")"
    return "'" + value.replace("'", "''") + "'"


def name(identifier: str) -> str:
    """A quoted identifier of the engine."""
    return '"' + identifier.replace('"', '""') + '"'


def decimal_of(data_type: DataType) -> tuple[int, int] | None:
    """(precision, scale) of a decimal type, else None."""
    match = _DECIMAL.fullmatch(data_type) if isinstance(data_type, str) else None
    return (int(match[1]), int(match[2])) if match else None


def decimal(precision: int, scale: int) -> str:
    return f"decimal({precision},{scale})"


def is_numeric(data_type: DataType) -> bool:
    return data_type in INTEGRAL or data_type in FRACTIONAL or decimal_of(data_type) is not None


def duckdb_type(data_type: DataType) -> str:
    """The engine's name of a type."""
    if isinstance(data_type, str):
        if known := _PRIMITIVE_SQL.get(data_type):
            return known
        if parts := decimal_of(data_type):
            return f"DECIMAL({parts[0]}, {parts[1]})"
        if is_shape(data_type):
            return "BLOB"
        raise UnsupportedFeatureError(f"type {data_type} in an expression")
    if isinstance(data_type, Array):
        return duckdb_type(data_type.element) + "[]"
    if isinstance(data_type, Map):
        return f"MAP({duckdb_type(data_type.key)}, {duckdb_type(data_type.value)})"
    if not data_type.fields:
        raise UnsupportedFeatureError("a struct without fields in an expression")
    return "STRUCT(" + ", ".join(f"{name(field.name)} {duckdb_type(field.type)}" for field in data_type.fields) + ")"


def type_text(data_type: DataType) -> str:
    """A type as Spark's DDL names it, for messages and the list of forms."""
    if isinstance(data_type, str):
        return _DDL.get(data_type, data_type)
    if isinstance(data_type, Array):
        return f"array<{type_text(data_type.element)}>"
    if isinstance(data_type, Map):
        return f"map<{type_text(data_type.key)},{type_text(data_type.value)}>"
    return "struct<" + ",".join(f"{field.name}:{type_text(field.type)}" for field in data_type.fields) + ">"


def cast_sql(value: Value, data_type: DataType) -> str:
    """The engine's own cast, for types where its meaning is Spark's."""
    return f"CAST({value.sql} AS {duckdb_type(data_type)})"


# --- common types (AnsiTypeCoercion)


def as_decimal(value: Value | DataType) -> tuple[int, int]:
    """The decimal that holds every value of an integral or decimal type; for an integer literal the narrowest that holds it."""
    if isinstance(value, Value):
        written = isinstance(value.constant, int) and not value.computed
        if value.type in INTEGRAL and value.type != "byte" and written:  # Spark's fromLiteral forgets bytes
            return len(str(abs(value.constant))), 0
        value = value.type
    if found := decimal_of(value):
        return found
    return _INTEGRAL_DIGITS[str(value)], 0


def wider_decimal(left: tuple[int, int], right: tuple[int, int]) -> str:
    """The decimal that holds both; beyond 38 digits it keeps those before the point (DecimalType.boundedPreferIntegralDigits)."""
    whole = max(left[0] - left[1], right[0] - right[1])
    scale = min(max(left[1], right[1]), 38 - whole)
    return decimal(whole + scale, scale)


def limits_of(value: Value) -> Limits:
    """The limits of a whole number or decimal, at least those of its type."""
    precision, scale = as_decimal(value)
    if isinstance(value.constant, Decimal):
        sign, digits, exponent = value.constant.as_tuple()
        number = (-1 if sign else 1) * int("".join(map(str, digits))) * 10 ** (int(exponent) + scale)
        return Limits(number, number)
    if isinstance(value.constant, int):
        return Limits(value.constant, value.constant)
    if value.limits is not None:
        return value.limits
    most = 1 << (BITS[str(value.type)] - 1) if value.type in INTEGRAL else 10**precision
    return Limits(-most if value.type in INTEGRAL else 1 - most, most - 1)


def short(value: Value) -> str | None:
    """SQL of a whole number or decimal as a decimal of at most 18 digits and the same scale; None where it may have more."""
    precision, scale = as_decimal(value)
    if precision <= 18:
        return value.sql if decimal_of(value.type) else f"CAST({value.sql} AS DECIMAL({precision}, 0))"
    if value.narrow is not None:
        return value.narrow
    if value.is_constant and value.constant is None:
        return f"CAST(NULL AS DECIMAL(18, {min(scale, 18)}))"
    limits = limits_of(value)
    if scale > 18 or not (value.type in INTEGRAL or value.is_constant) or max(-limits.least, limits.greatest) >= 10**18:
        return None
    return f"CAST({value.sql} AS DECIMAL(18, {scale}))"


def common_type(left: DataType, right: DataType) -> DataType | None:
    """The type both sides are cast to in comparisons, CASE, coalesce, arrays; None where Spark refuses the pair."""
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
        return "double"  # a float meets anything else as double, so that no digits are lost
    return wider_decimal(as_decimal(left), as_decimal(right))


def _common_with_string(other: DataType) -> DataType | None:
    if other in INTEGRAL:
        return "long"
    if other in FRACTIONAL or decimal_of(other):
        return "double"
    return other if isinstance(other, str) else None


def _common_nested(left: DataType, right: DataType) -> DataType | None:
    if isinstance(left, Array) and isinstance(right, Array):
        element = common_type(left.element, right.element)
        return None if element is None else Array(element, left.contains_null or right.contains_null)
    if isinstance(left, Map) and isinstance(right, Map):
        key, value = common_without_text(left.key, right.key), common_type(left.value, right.value)
        return None if key is None or value is None else Map(key, value, left.value_contains_null or right.value_contains_null)
    if isinstance(left, Struct) and isinstance(right, Struct):
        if len(left.fields) != len(right.fields) or any(
            a.name.lower() != b.name.lower() for a, b in zip(left.fields, right.fields, strict=True)
        ):
            return None
        kinds = [common_type(a.type, b.type) for a, b in zip(left.fields, right.fields, strict=True)]
        if any(kind is None for kind in kinds):
            return None
        pairs = zip(left.fields, right.fields, kinds, strict=True)
        return Struct(Field(a.name, kind, a.nullable or b.nullable) for a, b, kind in pairs if kind is not None)
    return None


def common_without_text(left: DataType, right: DataType) -> DataType | None:
    """The common type where text does not turn into anything else: of arrays' items, keys of maps, arguments of greatest."""
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
    """True if a whole number and a float meet, at any depth: what looks into arrays takes them for floats there, all else for doubles."""
    if isinstance(left, Array) and isinstance(right, Array):
        return integral_meets_float(left.element, right.element)
    if isinstance(left, Struct) and isinstance(right, Struct):
        return any(integral_meets_float(a.type, b.type) for a, b in zip(left.fields, right.fields, strict=False))
    return (left in INTEGRAL and right == "float") or (left == "float" and right in INTEGRAL)


def tightest(left: DataType, right: DataType) -> DataType | None:
    """The type in which nested values are compared and looked for: no text becomes a number there, no decimal grows."""
    if isinstance(left, Array) and isinstance(right, Array):
        element = tightest(left.element, right.element)
        return None if element is None else Array(element, left.contains_null or right.contains_null)
    if isinstance(left, Struct) and isinstance(right, Struct):
        common = _common_nested(left, right)
        inner = [tightest(a.type, b.type) for a, b in zip(left.fields, right.fields, strict=False)]
        return None if None in inner else common
    if decimal_of(left) and decimal_of(right) and left != right:
        return None
    if (decimal_of(left) or decimal_of(right)) and (left in FRACTIONAL or right in FRACTIONAL):
        return None
    if isinstance(left, Map) or isinstance(right, Map) or _text_meets_other(left, right):
        return None
    common = common_type(left, right)
    return None if any(decimal_of(side) and common != side for side in (left, right)) else common


def holds_fraction(data_type: DataType) -> bool:
    """True if a type has a float or double, at any depth."""
    if isinstance(data_type, Array):
        return holds_fraction(data_type.element)
    if isinstance(data_type, Map):
        return holds_fraction(data_type.key) or holds_fraction(data_type.value)
    if isinstance(data_type, Struct):
        return any(holds_fraction(field.type) for field in data_type.fields)
    return data_type in FRACTIONAL


def sought(what: str, left: DataType, right: DataType) -> DataType:
    """`tightest`; UnsupportedFeatureError where only a wider type is common to both, InvalidArgumentError where none is."""
    found = None if integral_meets_float(left, right) else tightest(left, right)
    if found is None and common_without_text(left, right) is not None:
        raise unsupported(f"function {what}", left, right)
    if found is None:
        raise mismatch(what, left, right)
    return found


def common_of(values: Iterable[Value], what: str) -> DataType:
    """The common type of several values. InvalidArgumentError names the pair that has none."""
    result: DataType = "void"
    for value in values:
        found = common_type(result, value.type)
        if found is None:
            raise mismatch(what, result, value.type)
        result = found
    return result


def same_but_nulls(left: DataType, right: DataType) -> bool:
    """True if two types differ at most in what may be null: then no cast is needed."""
    if isinstance(left, Array) and isinstance(right, Array):
        return same_but_nulls(left.element, right.element)
    if isinstance(left, Map) and isinstance(right, Map):
        return same_but_nulls(left.key, right.key) and same_but_nulls(left.value, right.value)
    if isinstance(left, Struct) and isinstance(right, Struct):
        return len(left.fields) == len(right.fields) and all(
            a.name == b.name and same_but_nulls(a.type, b.type) for a, b in zip(left.fields, right.fields, strict=True)
        )
    return left == right


def same_structure(left: DataType, right: DataType) -> bool:
    """True if two types differ at most in what may be null and in the names of fields: such values can be compared."""
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
    """True if values can be equal: all but maps, variants and shapes, at any depth."""
    if isinstance(data_type, Array):
        return is_comparable(data_type.element)
    if isinstance(data_type, Struct):
        return all(is_comparable(field.type) for field in data_type.fields)
    return isinstance(data_type, str) and data_type not in ("variant", CALENDAR) and not is_shape(data_type)


def is_orderable(data_type: DataType) -> bool:
    """True if values have an order here. Arrays and structs have one in Spark, but the engine puts nulls inside them elsewhere."""
    return isinstance(data_type, str) and data_type not in ("variant", CALENDAR) and not is_shape(data_type)


def check_storable(what: str, parts: Iterable[Value]) -> None:
    """UnsupportedFeatureError for intervals inside arrays, maps and structs."""
    for part in parts:
        if is_interval(part.type):
            raise unsupported(what, part.type)


def mismatch(what: str, *types: DataType) -> InvalidArgumentError:
    """Spark's DATATYPE_MISMATCH: the types do not go together."""
    return InvalidArgumentError(f"[DATATYPE_MISMATCH] {what} does not take {' and '.join(type_text(kind) for kind in types)}")


def unsupported(form: str, *types: DataType, expected: str | None = None) -> UnsupportedFeatureError:
    """The error for a form that the allow-list does not have, for any types or for these; `expected`: forms near it that it has."""
    arguments = f"({', '.join(type_text(kind) for kind in types)})" if types else ""
    return UnsupportedFeatureError(
        f"{form}{arguments} is not supported by the embedded engine, which answers only what it answers exactly as Spark does",
        expected=expected,
    )


def failure(condition: str, message: str) -> str:
    """SQL that ends the query with Spark's error condition; `message` is SQL text that yields a string."""
    return f"error('[{condition}] ' || {message})"
