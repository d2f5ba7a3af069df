"""Translates casts of variants to other types, and of other types to variants.

The cast of a variant is TRY_CAST of the value in it (VariantGet.cast in Spark). The kernel `variant_parts`
returns the type of each row's value, and a CASE has a cast from each type. For a cast to text, the kernel
`variant_to_text` writes the text of values of all types. Both kernels take the path of `variant_get`, so that
the part at the path is cast directly, without a variant of its own.
"""

from __future__ import annotations

from deltaic.errors import UnsupportedFeatureError
from deltaic.protocol.schema import Array, DataType, Map, Struct
from deltaic.spark_sql import values as v
from deltaic.spark_sql.casts import Zone, cast
from deltaic.spark_sql.functions.kernels import kernel_sql
from deltaic.spark_sql.values import Value

_SCALARS: dict[str, tuple[str, DataType]] = {
    "boolean": ("({0}.whole <> 0)", "boolean"),
    "long": ("{0}.whole", "long"),
    "double": ("{0}.number", "double"),
    "float": ("CAST({0}.number AS FLOAT)", "float"),
    "string": ("{0}.text", "string"),
    "date": ("(DATE '1970-01-01' + CAST({0}.whole AS INTEGER))", "date"),
    "timestamp": ("make_timestamptz({0}.whole)", "timestamp"),
    "timestamp_ntz": ("make_timestamp({0}.whole)", "timestamp_ntz"),
    "binary": ("{0}.bytes", "binary"),
}
"""The kind of a scalar variant -> SQL that takes its value from the answer of `variant_parts`, and the
value's type."""


def from_variant(
    value: Value,
    target: DataType,
    zone: Zone,
    *,
    safe: bool,
    depth: int = 0,
    within: tuple[str, str] | None = None,
) -> Value:
    """Returns a variant cast to another type. A value that cannot be cast raises INVALID_VARIANT_CAST, or
    gives null with `safe`. `within`: SQL of an outer variant and of the path at which it holds `value`, if
    there is one."""
    whole, *path = within or (value.sql,)
    if target == "string":
        text = kernel_sql("variant_to_text", "string", whole, v.text(zone.name), *path)
        return value.like(text, "string", nullable=True, raises=True)
    part = f"deltaic_variant{depth}"
    inner = _attempt(value, target, part, zone, safe, depth)
    if not safe:
        shown = kernel_sql("variant_to_json", "string", value.sql, v.text(zone.name))
        message = (
            f"'The variant value `' || {shown} || '` cannot be cast into"
            f' `"{v.type_text(target).upper()}"`.\''
        )
        inner = (
            f"coalesce({inner}, CASE WHEN {part}.kind <> 'null' THEN"
            f" {v.failure('INVALID_VARIANT_CAST', message)} END)"
        )
    parts = kernel_sql("variant_parts", "variant parts", whole, v.text(zone.name), *path)
    sql = (
        f"CAST(list_extract(list_transform([{parts}], lambda {part}: {inner}), 1) AS {v.duckdb_type(target)})"
    )
    return value.like(sql, target, nullable=True, raises=True)


def _attempt(value: Value, target: DataType, part: str, zone: Zone, safe: bool, depth: int) -> str:
    """Returns SQL of a cast that is null where it fails. `part`: SQL of the answer of `variant_parts`."""
    items, item = kernel_sql("variant_items", "variant items", value.sql), f"deltaic_entry{depth}"
    each = Value(f"{item}.value", "variant")
    if isinstance(target, Array):
        element = (
            from_variant(each, target.element, zone, safe=safe, depth=depth + 1)
            if target.element != "variant"
            else each
        )
        return f"CASE {part}.kind WHEN 'array' THEN list_transform({items}, lambda {item}: {element.sql}) END"
    if isinstance(target, Map):
        if target.key != "string":
            raise v.unsupported("cast", "variant", target)
        entry = (
            from_variant(each, target.value, zone, safe=safe, depth=depth + 1)
            if target.value != "variant"
            else each
        )
        pairs = f"list_transform({items}, lambda {item}: {{'key': {item}.key, 'value': {entry.sql}}})"
        return f"CASE {part}.kind WHEN 'object' THEN map_from_entries({pairs}) END"
    if isinstance(target, Struct):
        fields = [
            f"{v.name(field.name)} := {_field(value, field.name, field.type, zone, safe, depth)}"
            for field in target.fields
        ]
        return f"CASE {part}.kind WHEN 'object' THEN struct_pack({', '.join(fields)}) END"
    branches = [
        f"WHEN '{kind}' THEN {_scalar(sql.format(part), source, target, zone)}"
        for kind, (sql, source) in _SCALARS.items()
    ]
    branches.append(f"WHEN 'decimal' THEN {_decimal(part, target, zone)}")
    return f"CASE {part}.kind {' '.join(branches)} END"


def _field(value: Value, name: str, kind: DataType, zone: Zone, safe: bool, depth: int) -> str:
    if '"' in name or "?" in name:
        raise v.unsupported(f"cast of a variant to a struct with the field {name}")
    path = v.text(f'$["{name}"]')
    found = Value(kernel_sql("variant_get", "variant", value.sql, path), "variant")
    return (
        found.sql
        if kind == "variant"
        else from_variant(found, kind, zone, safe=safe, depth=depth + 1, within=(value.sql, path)).sql
    )


def _scalar(sql: str, source: DataType, target: DataType, zone: Zone) -> str:
    """Returns SQL of TRY_CAST from the type of a scalar, or of null if Spark has no such cast."""
    null = f"CAST(NULL AS {v.duckdb_type(target)})"
    if v.is_numeric(source) and target == "timestamp":
        return _from_seconds(sql, "BIGINT" if source == "long" else "DOUBLE")
    try:
        return cast(Value(sql, source), target, zone, safe=True).sql
    except UnsupportedFeatureError:
        return null


def _from_seconds(sql: str, kind: str) -> str:
    """Returns SQL of the timestamp of a number of seconds since 1970, null if the number is outside the range
    of timestamps."""
    micros = f"CAST(trunc(CAST({sql} AS {kind}) * 1000000) AS BIGINT)"
    return f"(CASE WHEN {sql} BETWEEN -9223372036854 AND 9223372036854 THEN make_timestamptz({micros}) END)"


def _decimal(part: str, target: DataType, zone: Zone) -> str:
    """Returns SQL of TRY_CAST from a decimal of any precision and scale, from its text or from the number
    before its point."""
    if target in v.INTEGRAL:
        return cast(Value(f"{part}.whole", "long"), target, zone, safe=True).sql
    if target == "boolean":
        return f"({part}.text <> '0')"
    if target in v.FRACTIONAL or v.decimal_parts(target):
        return cast(Value(f"{part}.text", "string"), target, zone, safe=True).sql
    if target == "timestamp":
        return _from_seconds(f"TRY_CAST({part}.text AS DECIMAL(29, 9))", "DECIMAL(29, 9)")
    return f"CAST(NULL AS {v.duckdb_type(target)})"


def to_variant(value: Value, *, objects: bool = False) -> Value:
    """Returns a value as a variant. `objects`: also accepts structs and maps, as `to_variant_object` does and
    CAST does not."""
    if not _is_held(value.type, objects):
        raise v.mismatch("to_variant_object" if objects else "a cast to variant", value.type)
    return value.like(kernel_sql("to_variant", "variant", value.sql), "variant")


def _is_held(kind: DataType, objects: bool) -> bool:
    if isinstance(kind, Array):
        return _is_held(kind.element, objects)
    if isinstance(kind, Map):
        return objects and kind.key == "string" and _is_held(kind.value, objects)
    if isinstance(kind, Struct):
        return objects and all(_is_held(field.type, objects) for field in kind.fields)
    return kind != "variant" and not v.is_interval(kind)
