"""Store assignment: casts an expression to the type of the column to which it is assigned, by Spark's ANSI
rules.

Source: Spark's ANSI store assignment as delta-spark applies it in UPDATE and MERGE
(UpdateExpressionsSupport.castIfNeeded). The cast fails for a value that does not fit the column's type.
Fields of structs, also inside arrays and maps, match by name, and must be the same unless the command evolves
the table's schema.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from deltaic.engine.engine import USUAL_RULES
from deltaic.errors import SchemaMismatchError, placed
from deltaic.plan.expression import Expression, Pieces, null
from deltaic.plan.failures import failing, failing_on
from deltaic.plan.literal import col, lit
from deltaic.protocol import evolution
from deltaic.protocol.ddl import cast_type
from deltaic.protocol.schema import (
    INTEGER_BITS,
    INTEGER_DIGITS,
    Array,
    DataType,
    Field,
    Map,
    Schema,
    Struct,
    decimal_parts,
    is_shape,
    type_name,
)
from deltaic.protocol.widening import is_upcast

if TYPE_CHECKING:
    from deltaic.engine.engine import AssignmentRules, Engine, StoreAssignment

Casting: TypeAlias = Literal["strict", "try"]

_WIDER = {
    "byte": {"short", "integer", "long", "float", "double"},
    "short": {"integer", "long", "float", "double"},
    "integer": {"long", "double"},
    "long": set[str](),
    "float": {"double"},
}
_NUMBERS = ("byte", "short", "integer", "long", "float", "double")
_ZONED = {("date", "timestamp"), ("timestamp_ntz", "timestamp"), ("timestamp", "timestamp_ntz")}
"""Conversions of types, from and to, that depend on the time zone."""
_UP_CASTS = {
    ("date", "timestamp"),
    ("date", "timestamp_ntz"),
    ("timestamp", "timestamp_ntz"),
    ("timestamp_ntz", "timestamp"),
    ("timestamp", "long"),
    ("long", "timestamp"),
}


def assigned(
    engine: Engine,
    value: str | Expression,
    target: DataType,
    path: tuple[str, ...],
    scope: Mapping[str, Schema],
    casting: Casting,
    *,
    fills: bool = False,
    kept: Expression | None = None,
    what: str = "a",
    rules: Callable[[], AssignmentRules] = lambda: USUAL_RULES,
) -> Expression:
    """Casts a value to the type of a column. `value`: an expression, or SQL text over `scope`. `casting`:
    "try" to make values that do not fit null. `fills`: True to set fields that its structs lack to null.
    `kept`: a column of the type `target`; with `fills`, such fields get its values instead, except in arrays
    and maps. `what`: the words before "value" and "struct" in errors. `rules`: returns further rules, which
    only a value of another type needs.

    Types that never fit are a SchemaMismatchError here; a value that does not fit is one when its row is
    computed."""
    resolved = value if isinstance(value, Expression) else engine.resolve(value, scope)
    if same_type(resolved.type, target):
        return resolved
    further = rules()
    fit = _Fit(
        f"column {'.'.join(path)}",
        casting,
        fills,
        what=what,
        policy=further.casts or engine.store_assignment,
        kept=kept,
        rules=further,
    )
    if resolved.deterministic:
        return engine.compose(fit.value((resolved,), resolved.type, target), target)
    # A non-deterministic value must be evaluated once, but the cast uses it several times: it becomes the
    # parameter of a lambda.
    once = f"__deltaic_value{fit.depth}"
    converted = replace(fit, depth=fit.depth + 1).value((once,), resolved.type, target)
    return engine.compose(
        ("element_at(transform(array(", resolved, f"), {once} -> ", *converted, "), 1)"), target
    )


@dataclass(frozen=True)
class _Fit:
    """One store assignment. `where`: the column or field, for errors. `fills`: True to set missing struct
    fields to null. `depth`: number of lambdas around the value, which makes the names of their parameters
    unique. `policy`: the engine's `store_assignment`. `kept`: a column with the values of missing fields."""

    where: str
    casting: Casting
    fills: bool = False
    depth: int = 0
    what: str = "a"
    policy: StoreAssignment = "ansi"
    kept: Expression | None = None
    rules: AssignmentRules = USUAL_RULES

    def value(self, value: Pieces, source: DataType, target: DataType) -> Pieces:
        """Casts `value` from the type `source` to `target`."""
        if same_type(source, target):
            return value
        if source == "void":
            return _cast(value, target)
        if isinstance(source, Struct) and isinstance(target, Struct):
            return self._struct(value, source, target)
        if isinstance(source, Array) and isinstance(target, Array):
            item, inner = self._inner()
            return (
                "transform(",
                *value,
                f", {item} -> ",
                *inner.value((item,), source.element, target.element),
                ")",
            )
        if isinstance(source, Map) and isinstance(target, Map):
            item, inner = self._inner()
            key = inner.value((f"{item}.key",), source.key, target.key)
            of_key = inner.value((f"{item}.value",), source.value, target.value)
            entry = ("named_struct('key', ", *key, ", 'value', ", *of_key, ")")
            return ("map_from_entries(transform(map_entries(", *value, f"), {item} -> ", *entry, "))")
        is_primitive = isinstance(source, str) and isinstance(target, str)
        if target == "variant" and _becomes_variant(source):
            return _cast(value, target)
        if self.policy == "strict" and not is_primitive:
            raise _no_wider(self.what, self.where, source, target)
        if target == "string" and not isinstance(source, str):
            return _cast(value, target)
        if not isinstance(source, str) or not isinstance(target, str):
            raise SchemaMismatchError(
                "a value does not fit its column",
                where=self.where,
                found=type_name(source),
                expected=type_name(target),
            )
        return self._primitive(value, source, target)

    def _inner(self) -> tuple[str, _Fit]:
        return f"__deltaic_item{self.depth}", replace(self, depth=self.depth + 1, kept=None)

    def _struct(self, value: Pieces, source: Struct, target: Struct) -> Pieces:
        """Casts the fields of a struct. A null struct stays null, unless values of `kept` would be lost or
        the rules make it a struct of nulls."""
        matched = self._matched(source, target)
        parts: list[str | Expression] = []
        for item in target.fields:
            field = matched.get(item.name.lower())
            kept = None if self.kept is None else self.kept.field(item)
            inner = replace(self, where=f"{self.where}.{item.name}", kept=kept)
            part: Pieces = (null(item.type) if kept is None else kept,)
            if field is not None:
                part = inner.value((*value, f".{col(field.name)}"), field.type, item.type)
            parts += [", " if parts else "", f"{lit(item.name)}, ", *part]
        if (
            self.rules.expands_nulls
            and not self.rules.by_position
            and not same_type(source, target, ignores_case=True)
        ):
            return ("named_struct(", *parts, ")")
        is_set: Pieces = (*value, " IS NOT NULL")
        if self.kept is not None and _has_more_fields(target, source):
            is_set = (*is_set, " OR ", self.kept, " IS NOT NULL")
        return ("CASE WHEN ", *is_set, " THEN named_struct(", *parts, ") END")

    def _matched(self, source: Struct, target: Struct) -> dict[str, Field]:
        """Returns name of a field of `target`, in lower case -> the field of `source` for it. Both must have
        the same fields; with `fills` the target may have more."""
        if self.rules.by_position:
            if len(source.fields) != len(target.fields):
                raise SchemaMismatchError(
                    "a value does not fit its column, which has another number of fields",
                    where=self.where,
                    found=type_name(source),
                    expected=type_name(target),
                )
            names = [item.name.lower() for item in target.fields]
            return dict(zip(names, source.fields, strict=True))
        by_name = {item.name.lower(): item for item in source.fields}
        if extra := sorted(by_name.keys() - {item.name.lower() for item in target.fields}):
            raise SchemaMismatchError(
                f"{self.what} struct has fields that its column lacks",
                where=self.where,
                found=", ".join(extra),
                expected=type_name(target),
            ).with_values(given_type=source, column_type=target)
        missing = [item.name for item in target.fields if item.name.lower() not in by_name]
        if missing and not self.fills:
            error = SchemaMismatchError(
                f"{self.what} struct lacks fields of its column",
                where=self.where,
                found=f"{type_name(source)}, without {', '.join(missing)}",
                expected=f"{type_name(target)}, or a merge that evolves the schema",
            )
            raise error.with_values(
                given_type=source,
                column_type=target,
                shortage=f"not enough nested fields in {self.where.removeprefix('column ')}",
                value_count=len(source.fields),
                column_count=len(target.fields),
            )
        return by_name

    def _primitive(self, value: Pieces, source: str, target: str) -> Pieces:
        if is_shape(target) and source == "binary":
            return _cast(value, target)
        if is_shape(source) or is_shape(target):
            raise SchemaMismatchError(
                "a value does not fit its column", where=self.where, found=source, expected=target
            )
        if self.policy == "strict" and not _is_wider(source, target):
            raise _no_wider(self.what, self.where, source, target)
        if _always_fits(source, target):
            return _cast(value, target)
        if self.policy == "ansi" and not _has_cast(source, target):
            raise SchemaMismatchError(
                "a value does not fit its column",
                where=self.where,
                found=type_name(source),
                expected=type_name(target),
            )
        if (
            self.policy == "try_cast"
            and target in INTEGER_BITS
            and (source in _NUMBERS or decimal_parts(source))
        ):
            return _low_bits(value, source, target)
        if self.policy in ("CAST", "try_cast"):
            return (f"{self.policy}(", *value, f" AS {cast_type(target)})")
        attempt: Pieces = ("try_cast(", *value, f" AS {cast_type(target)})")
        if self.casting == "try":
            return attempt
        message = f"{self.where}: {self.what} value of type {type_name(source)} does not fit"
        failure: Pieces = (failing(SchemaMismatchError, message, expected=type_name(target)),)
        if source == "string":
            failure = failing_on(value, SchemaMismatchError, message, expected=type_name(target))
        otherwise: Pieces = (
            "CASE WHEN ",
            *value,
            " IS NOT NULL THEN CAST(",
            *failure,
            f" AS {cast_type(target)}) END",
        )
        return ("coalesce(", *attempt, ", ", *otherwise, ")")


def _no_wider(what: str, where: str | None, source: DataType, target: DataType) -> SchemaMismatchError:
    """Returns the error of the store assignment policy STRICT."""
    message = f"{what} value needs a cast, because its column has no wider type"
    return SchemaMismatchError(message, where=where, found=type_name(source), expected=type_name(target))


def _becomes_variant(source: DataType) -> bool:
    """True if Spark's ANSI cast converts every value of the type to a variant: primitive types and arrays of
    them, not structs and maps (VariantGet.checkDataType)."""
    if isinstance(source, Array):
        return _becomes_variant(source.element)
    return isinstance(source, str) and source not in ("void", "variant") and not is_shape(source)


def _low_bits(value: Pieces, source: str, target: str) -> Pieces:
    """Casts a number to a whole number as Spark does without ANSI mode, in ANSI mode, too: the low bits count
    (300 becomes 44 as a tinyint). A float or double first becomes the nearest integer, or bigint if that is
    the target, and not-a-number 0. A decimal above bigint becomes null."""
    whole: Pieces = ("try_cast(", *value, " AS BIGINT)")
    if source in ("float", "double"):
        most = 2 ** (63 if target == "long" else 31) - 1
        ends = f" >= {most}D THEN {most} WHEN ", f" <= -{most}D THEN -{most} - 1"
        whole = ("CASE WHEN isnan(", *value, ") THEN 0 WHEN ", *value, ends[0], *value, ends[1])
        whole = (*whole, " ELSE CAST(", *value, " AS BIGINT) END")
    if target == "long":
        return whole
    sign = 1 << (INTEGER_BITS[target] - 1)
    return ("CAST(((", *whole, f") & {2 * sign - 1} ^ {sign}) - {sign} AS {cast_type(target)})")


def _cast(value: Pieces, target: DataType) -> Pieces:
    return ("CAST(", *value, f" AS {cast_type(target)})")


def same_type(left: DataType, right: DataType, *, ignores_case: bool = False) -> bool:
    """True if two types are equal, apart from nullability. `ignores_case`: and from the case of names."""

    def same(one: DataType, other: DataType) -> bool:
        return same_type(one, other, ignores_case=ignores_case)

    def same_name(one: str, other: str) -> bool:
        return one == other or (ignores_case and one.lower() == other.lower())

    if isinstance(left, Struct) and isinstance(right, Struct):
        return len(left.fields) == len(right.fields) and all(
            same_name(a.name, b.name) and same(a.type, b.type)
            for a, b in zip(left.fields, right.fields, strict=True)
        )
    if isinstance(left, Array) and isinstance(right, Array):
        return same(left.element, right.element)
    if isinstance(left, Map) and isinstance(right, Map):
        return same(left.key, right.key) and same(left.value, right.value)
    return left == right


def _has_more_fields(target: Struct, source: Struct) -> bool:
    """True if a struct, or a struct in it, has a field that the other one lacks; not if it is in an array or
    map."""
    by_name = {item.name.lower(): item.type for item in source.fields}
    for item in target.fields:
        other = by_name.get(item.name.lower())
        if other is None:
            return True
        if isinstance(item.type, Struct) and isinstance(other, Struct) and _has_more_fields(item.type, other):
            return True
    return False


def _always_fits(source: DataType, target: DataType) -> bool:
    """True if a cast from `source` to `target` fails for no value."""
    if not isinstance(source, str) or not isinstance(target, str):
        return False
    if target in _WIDER.get(source, ()) or target == "string":
        return True
    decimal = decimal_parts(target)
    if decimal is None:
        return (source, target) in {
            ("date", "timestamp"),
            ("date", "timestamp_ntz"),
            ("timestamp", "date"),
            ("timestamp_ntz", "date"),
        }
    have = _as_decimal(source)
    return have is not None and _holds(have, decimal)


def _has_cast(source: str, target: str) -> bool:
    """True if Spark's ANSI mode casts a type without parts to another one (Cast.canAnsiCast): a date to a
    timestamp, for example, but not to an integer."""
    if target == "void":
        return False
    groups = {_group_of(source), _group_of(target)}
    return len(groups) == 1 or "string" in groups or _are_time_and_number(source, target)


def _are_time_and_number(source: DataType, target: DataType) -> bool:
    """True if one of the types is timestamp and the other one a number: the seconds since 1970."""
    others = [each for each in (source, target) if each != "timestamp"]
    return len(others) == 1 and evolution.is_number(others[0])


def _group_of(data_type: str) -> str:
    if data_type == "boolean" or evolution.is_number(data_type):
        return "number"
    return "time" if data_type in ("date", "timestamp", "timestamp_ntz") else data_type


def _is_wider(source: str, target: str) -> bool:
    """True if Spark's store assignment policy STRICT allows the cast (Cast.canUpCast). It counts whole
    numbers as decimals without a scale: a decimal(3,0) fits a byte, but a decimal(3,1) fits neither long nor
    double."""
    if target == "string" or (source, target) in _UP_CASTS:
        return True
    if source in _NUMBERS and target in _NUMBERS:
        return _NUMBERS.index(source) <= _NUMBERS.index(target)
    have, want = _as_decimal(source), _as_decimal(target)
    return have is not None and want is not None and _holds(have, want)


def _as_decimal(name: str) -> tuple[int, int] | None:
    """Returns precision and scale of a decimal or whole number, None for any other type."""
    return decimal_parts(name) or ((INTEGER_DIGITS[name], 0) if name in INTEGER_DIGITS else None)


def _holds(digits: tuple[int, int], others: tuple[int, int]) -> bool:
    """True if a decimal of the precision and scale `others` holds each one of `digits`."""
    return others[1] >= digits[1] and others[0] - others[1] >= digits[0] - digits[1]


def stored_type(source: DataType, target: DataType, casting: Casting | None) -> DataType:
    """Returns the type to which a written column of the type `source` is cast for a column of the type
    `target`. Without `casting`, only those of its dates and timestamps change whose conversion depends on the
    time zone. Void columns, and variants in Arrow, which are structs of two parts, are stored without a
    cast."""
    if target == "void" or (target == "variant" and isinstance(source, Struct)):
        return source
    if casting is not None:
        return target
    return evolution.retyped(source, target, lambda before, after: (before, after) in _ZONED)


def as_cast(data: Schema, table: Schema, policy: StoreAssignment = "ansi") -> Schema:
    """Returns the schema of the data after store assignment: types that the table cannot store, but a cast
    can convert, become those of the table. A type that no cast converts is a SchemaMismatchError. `policy`:
    as for `Engine.store_assignment`; CAST and try_cast refuse types themselves."""
    known = ((item, table.get(item.name)) for item in data)
    is_cast = {"ansi": _is_cast, "strict": _is_strict_cast}.get(policy, _is_cast_by_function)
    return Schema([item if other is None else _as_cast_to(item, other, is_cast) for item, other in known])


def as_implicit_cast(data: Schema, table: Schema) -> Schema:
    """Like `as_cast`, but by Spark's implicit casts (TypeCoercion.implicitCast), which convert booleans only
    to strings, and no struct, array or map to a string. A type that none of them converts stays as it is."""

    def is_cast(source: DataType, target: DataType) -> bool:
        if target == "string" and not isinstance(source, str):
            return False
        try:
            return _is_cast(source, target) and (
                target == "string"
                or ("boolean" not in (source, target) and not _are_time_and_number(source, target))
            )
        except SchemaMismatchError:
            return False

    known = ((item, table.get(item.name)) for item in data)
    return Schema([item if other is None else _as_cast_to(item, other, is_cast) for item, other in known])


def check_types(table: Schema, data: Schema, *, widen: evolution.Widening | None) -> None:
    """Raises SchemaMismatchError if the data has another type than a column of its name. Types that Parquet
    stores alike may be narrower: a byte or a short for an integer. `widen`: which wider types are allowed."""

    def is_checked(source: DataType, target: DataType) -> bool:
        if not isinstance(source, str) and type(source) is type(target):
            return False  # the types within them decide
        if not (
            source in (target, "void")
            or target == "void"
            or is_upcast(source, target)
            or (widen is not None and widen(target, source))
        ):
            raise SchemaMismatchError(
                "the data has a type that the column cannot take",
                found=type_name(source),
                expected=f"{type_name(target)}; INSERT, insertInto and writeTo cast",
            )
        return True

    for item in data:
        if (other := table.get(item.name)) is not None:
            _as_cast_to(item, other, is_checked)


def _as_cast_to(source: Field, target: Field, is_cast: Callable[[DataType, DataType], bool]) -> Field:
    with placed(lambda error: f"column {target.name}"):
        return source.with_(type=evolution.retyped(source.type, target.type, is_cast))


def _is_cast_by_function(source: DataType, target: DataType) -> bool:
    """Like `_is_cast`, but True for all pairs of types without parts that `target` cannot store."""
    is_pair = isinstance(source, str) and isinstance(target, str) and not evolution.can_store(source, target)
    return is_pair or _is_cast(source, target)


def _is_strict_cast(source: DataType, target: DataType) -> bool:
    """Like `_is_cast`, with the error of the policy STRICT."""
    try:
        return _is_cast(source, target)
    except SchemaMismatchError as error:
        raise _no_wider("a", None, source, target) from error


def _is_cast(source: DataType, target: DataType) -> bool:
    """True if `target` cannot store `source`, but a cast can convert it: from or to a string, between numbers
    and booleans, between numbers and timestamps, or to a variant. False if `target` can store it; a type that
    no cast converts is a SchemaMismatchError."""
    if target == "variant" and _becomes_variant(source):
        return True
    if source == "variant" or target in ("variant", "void") or evolution.can_store(source, target):
        return False
    if isinstance(target, str):
        numbers = all(item == "boolean" or evolution.is_number(item) for item in (source, target))
        if source == "string" or target == "string" or numbers or _are_time_and_number(source, target):
            return True
    elif type(source) is type(target):  # the types within them decide
        return False
    raise SchemaMismatchError(
        "a value does not fit its column", found=type_name(source), expected=type_name(target)
    )
