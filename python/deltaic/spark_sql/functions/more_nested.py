"""Further functions on arrays and maps: array_insert, and functions that need column names or a lambda
function of two parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deltaic.errors import InvalidArgumentError
from deltaic.protocol.schema import Array, Field, Map, Struct
from deltaic.spark_sql import values as v
from deltaic.spark_sql.casts import Zone, cast
from deltaic.spark_sql.functions import nested
from deltaic.spark_sql.functions.registry import call, register, takes_no_untyped_null
from deltaic.spark_sql.values import Value

if TYPE_CHECKING:
    from deltaic.spark_sql.translation import Translator


def _array_insert(arguments: list[Value], zone: Zone) -> Value:
    """Builds array_insert. Positions count from 1, or backwards from -1 at the end. For a position beyond the
    end, nulls fill the gap."""
    value, place, item = arguments
    if not isinstance(value.type, Array):
        raise v.mismatch("array_insert", value.type)
    element = v.sought("array_insert", value.type.element, item.type)
    kind = Array(element, True)
    value, item, place = cast(value, kind, zone), cast(item, element, zone), cast(place, "integer", zone)
    size, at = f"CAST(len({value.sql}) AS BIGINT)", f"CAST({place.sql} AS BIGINT)"
    one, sql = f"[{item.sql}]", value.sql
    nulls = f"list_transform(range(1, {{}} + 1), lambda deltaic_i: CAST(NULL AS {v.duckdb_type(element)}))"
    far_right = f"{sql} || {nulls.format(f'({at} - {size} - 1)')} || {one}"
    far_left = f"{one} || {nulls.format(f'(-({size} + {at} + 1))')} || {sql}"
    zero = v.failure("INVALID_INDEX_OF_ZERO", "'The index 0 is invalid.'")
    inserted = (
        f"CASE WHEN {sql} IS NULL OR {place.sql} IS NULL THEN NULL WHEN {place.sql} = 0 THEN {zero} WHEN {at}"
        f" > {size} + 1 THEN {far_right} WHEN {at} > 0 THEN {sql}[:{at} - 1] || {one} || {sql}[{at}:] WHEN"
        f" {size} + {at} + 1 < 0 THEN {far_left} ELSE {sql}[:{size} + {at} + 1] || {one} || {sql}[{size} +"
        f" {at} + 2:] END"
    )
    return v.combine(
        f"CAST({inserted} AS {v.duckdb_type(kind)})",
        kind,
        (value, place, item),
        nullable=value.nullable or place.nullable,
        raises=True,
    )


takes_no_untyped_null("array_insert", "any, =void, any")
register("array_insert", "any, integer, any", "T", _array_insert)


def _arrays_zip(translator: Translator, node: Any) -> Value:
    """Builds arrays_zip: an array of structs of the items at the same position, null where an array is
    shorter. A field is named after the column of its array, or by its number."""
    parts = [translator.value(argument) for argument in node.expressions]
    if not parts:
        raise v.unsupported("arrays_zip of nothing")
    parts = [cast(part, Array("void"), translator.zone) if part.type == "void" else part for part in parts]
    kinds = [part.type for part in parts]
    if not all(isinstance(kind, Array) for kind in kinds):
        raise v.mismatch("arrays_zip", *kinds)
    names = [nested.column_name(argument) or str(number) for number, argument in enumerate(node.expressions)]
    fields = [
        Field(name, kind.element, True)
        for name, kind in zip(names, kinds, strict=True)
        if isinstance(kind, Array)
    ]
    result = Array(Struct(fields), False)
    zipped = f"list_zip({', '.join(part.sql for part in parts)})"
    packed = ", ".join(
        f"{v.name(name)} := struct_extract(deltaic_z, {place})" for place, name in enumerate(names, 1)
    )
    known = " AND ".join(f"{part.sql} IS NOT NULL" for part in parts)
    sql = f"(CASE WHEN {known} THEN list_transform({zipped}, lambda deltaic_z: struct_pack({packed})) END)"
    return v.combine(f"CAST({sql} AS {v.duckdb_type(result)})", result, parts)


def _array_sort(translator: Translator, node: Any) -> Value:
    """Builds array_sort(array, (a, b) -> …). The new position of an item is the number of items before it:
    the items that the function orders before it, and of equal items those that are before it in the array."""
    if len(node.expressions) < 2:
        return call(
            "array_sort", [translator.value(argument) for argument in node.expressions], translator.zone
        )
    if len(node.expressions) != 2:
        raise InvalidArgumentError(
            "[WRONG_NUM_ARGS] array_sort takes 1 or 2 arguments", found=len(node.expressions)
        )
    value = translator.value(node.expressions[0])
    if not isinstance(value.type, Array):
        raise v.mismatch("array_sort", value.type)
    mine, place, other, there = (translator.scope.fresh() for _ in range(4))
    body = nested.body_of(
        translator, node.expressions[1], [(other, value.type.element), (mine, value.type.element)]
    )
    if body.type not in v.INTEGRAL and body.type != "void":
        raise v.mismatch("the function of array_sort", body.type)
    null = v.failure("COMPARATOR_RETURNS_NULL", "'The comparator has returned a NULL for a comparison.'")
    before = (
        f"CASE WHEN {place} = {there} THEN 0 WHEN ({body.sql}) IS NULL THEN {null} WHEN ({body.sql}) < 0"
        " THEN 1"
    )
    before += f" WHEN ({body.sql}) = 0 AND {there} < {place} THEN 1 ELSE 0 END"
    rank = f"list_sum(list_transform({value.sql}, lambda {other}, {there}: {before}))"
    pairs = f"list_transform({value.sql}, lambda {mine}, {place}: struct_pack(r := {rank}, s := {mine}))"
    sql = f"list_transform(list_sort({pairs}), lambda deltaic_p: deltaic_p.s)"
    return v.combine(sql, value.type, (value, body), nullable=value.nullable, raises=True)


def _transform_keys(translator: Translator, node: Any) -> Value:
    value, kind, entry, body = nested.map_lambda(translator, node, "transform_keys")
    v.check_storable("a map of", [body])
    keys = v.combine(
        f"CAST(list_transform(map_entries({value.sql}), lambda {entry}: {body.sql}) AS"
        f" {v.duckdb_type(Array(body.type))})",
        Array(body.type, body.nullable),
        (value, body),
        nullable=value.nullable,
    )
    items = value.like(f"map_values({value.sql})", Array(kind.value, kind.value_contains_null))
    return nested.map_of(keys, items, paired=True)


def _map_zip_with(translator: Translator, node: Any) -> Value:
    """Builds map_zip_with: over the keys of both maps, first those of the first map, then those that only the
    second map has."""
    if len(node.expressions) != 3:
        raise InvalidArgumentError(
            "[WRONG_NUM_ARGS] map_zip_with takes 3 arguments", found=len(node.expressions)
        )
    left, right = (translator.value(argument) for argument in node.expressions[:2])
    if not isinstance(left.type, Map) or not isinstance(right.type, Map):
        raise v.mismatch("map_zip_with", left.type, right.type)
    if left.type.key != right.type.key or left.type.key in v.FRACTIONAL or not isinstance(left.type.key, str):
        raise v.unsupported("function map_zip_with", left.type, right.type)
    key = translator.scope.fresh()
    sides = [
        (f"map_extract({side.sql}, {key})[1]", side.type.value)
        for side in (left, right)
        if isinstance(side.type, Map)
    ]
    body = nested.body_of(translator, node.expressions[2], [(key, left.type.key), *sides])
    v.check_storable("a map of", [body])
    new = (
        f"list_filter(map_keys({right.sql}), lambda deltaic_k: NOT list_contains(map_keys({left.sql}),"
        " deltaic_k))"
    )
    keys = f"(map_keys({left.sql}) || {new})"
    result = Map(left.type.key, body.type, body.nullable)
    made = f"map({keys}, list_transform({keys}, lambda {key}: {body.sql}))"
    sql = f"(CASE WHEN {left.sql} IS NOT NULL AND {right.sql} IS NOT NULL THEN {made} END)"
    nullable = left.nullable or right.nullable
    return v.combine(
        f"CAST({sql} AS {v.duckdb_type(result)})", result, (left, right, body), nullable=nullable
    )


nested.SPECIAL |= {
    "array_sort": _array_sort,
    "arrays_zip": _arrays_zip,
    "transform_keys": _transform_keys,
    "map_zip_with": _map_zip_with,
}
