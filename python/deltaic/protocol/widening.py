"""Type widening (PROTOCOL.md, "Type Widening"): which changes of a column's type are allowed, and how they
are recorded in a schema."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from deltaic.errors import InvalidArgumentError
from deltaic.protocol.column_mapping import physical_name, without_keys
from deltaic.protocol.evolution import retyped
from deltaic.protocol.schema import (
    INTEGER_BITS,
    Array,
    DataType,
    Field,
    Map,
    Schema,
    Struct,
    decimal_parts,
    path_text,
    type_name,
)

FEATURES = ("typeWidening", "typeWidening-preview")
ENABLED = "delta.enableTypeWidening"
CHANGES = "delta.typeChanges"

_DIGITS = {"byte": 10, "short": 10, "integer": 10, "long": 20}
_TO_DOUBLE = frozenset({"byte", "short", "integer", "float"})


def is_widening(before: DataType, after: DataType) -> bool:
    """True if a column of the primitive type `before` may become `after`, by ALTER TABLE or by data of that
    type that is written with schema evolution (delta-spark 4.4.0 makes the same changes by both)."""
    if not isinstance(before, str) or not isinstance(after, str):
        return False
    if before in INTEGER_BITS and after in INTEGER_BITS:
        return INTEGER_BITS[before] < INTEGER_BITS[after]
    if after == "double":
        return before in _TO_DOUBLE
    if (before, after) == ("date", "timestamp_ntz"):
        return True
    wide = decimal_parts(after)
    if wide is None:
        return False
    narrow = decimal_parts(before)
    if narrow is None:
        # A whole number as a decimal: all its digits before the point must fit.
        return before in _DIGITS and wide[0] - wide[1] >= _DIGITS[before]
    more_digits, more_scale = wide[0] - narrow[0], wide[1] - narrow[1]
    return more_digits >= more_scale >= 0 and more_digits > 0


def is_upcast(before: DataType, after: DataType) -> bool:
    """True if both types are whole numbers that Parquet stores as int32, and `after` is the wider one. Writes
    of delta-spark that evolve the schema make such a change also in a table without type widening."""
    return is_widening(before, after) and {before, after} <= {"byte", "short", "integer"}


def with_wider_types(schema: Schema, other: Schema) -> Schema:
    """Returns `schema`, in which each column and field has its type of the schema `other` where that type is
    wider.

    Example: RESTORE made a BIGINT column INT again. The files that it removed may have BIGINT values, so that
    the changes of that version have a BIGINT column."""
    widened = retyped(Struct(tuple(schema)), Struct(tuple(other)), is_widening, key=physical_name)
    assert isinstance(widened, Struct)
    return Schema(widened.fields)


def forgotten(schema: Schema) -> Schema:
    """Removes the recorded type changes from a schema."""
    return without_keys(schema, (CHANGES,))


def recorded(before: Schema, after: Schema) -> Schema:
    """Adds each change of a type from `before` to `after` to the metadata of its field in `after`. A change
    that is no widening is an InvalidArgumentError.

    Fields match by name; a field that only one of the schemas has is ignored.
    """
    return Schema(_recorded_fields(before, after, ()))


def _recorded_fields(before: Iterable[Field], after: Iterable[Field], path: tuple[str, ...]) -> list[Field]:
    known = {item.name.lower(): item for item in before}
    result = []
    for item in after:
        old = known.get(item.name.lower())
        if old is None or old.type in (item.type, "void"):  # void: no file has values of it
            result.append(item)
            continue
        changes: list[dict[str, str]] = []
        data_type = _recorded_type(old.type, item.type, (*path, item.name), (), changes)
        metadata = (
            {**item.metadata, CHANGES: [*item.metadata.get(CHANGES, []), *changes]}
            if changes
            else item.metadata
        )
        result.append(item.with_(type=data_type, metadata=metadata))
    return result


def _recorded_type(
    before: DataType,
    after: DataType,
    path: tuple[str, ...],
    inside: tuple[str, ...],
    changes: list[dict[str, str]],
) -> DataType:
    """Returns the type `after`, with changes recorded in its struct fields. A change of an element, key or
    value is added to `changes` for the field that contains it: `{"fromType": "integer", "toType": "long",
    "fieldPath": "element"}`."""
    if isinstance(before, Struct) and isinstance(after, Struct):
        return Struct(_recorded_fields(before.fields, after.fields, (*path, *inside)))
    if isinstance(before, Array) and isinstance(after, Array):
        return Array(
            _recorded_type(before.element, after.element, path, (*inside, "element"), changes),
            after.contains_null,
        )
    if isinstance(before, Map) and isinstance(after, Map):
        key = _recorded_type(before.key, after.key, path, (*inside, "key"), changes)
        return Map(
            key,
            _recorded_type(before.value, after.value, path, (*inside, "value"), changes),
            after.value_contains_null,
        )
    if before == after:
        return after
    if not isinstance(before, str) or not isinstance(after, str) or not is_widening(before, after):
        error = InvalidArgumentError(
            "a column's type can only become a wider one",
            where=path_text((*path, *inside)),
            found=f"{type_name(before)} to {type_name(after)}",
        )
        raise error.with_values(before=type_name(before), after=type_name(after))
    place = {"fieldPath": ".".join(inside)} if inside else {}
    changes.append({"fromType": before, "toType": after, **place})
    return after


def unsupported_type_change(changes: Any) -> str | None:
    """Returns the first entry of a field's `delta.typeChanges` that is no widening, as text; None if all are
    widenings."""
    if not isinstance(changes, list):
        return repr(changes)[:200]
    for change in changes:
        before, after = (
            (change.get("fromType"), change.get("toType")) if isinstance(change, dict) else (None, None)
        )
        if not isinstance(before, str) or not isinstance(after, str) or not is_widening(before, after):
            return f"{before} to {after}"
    return None
