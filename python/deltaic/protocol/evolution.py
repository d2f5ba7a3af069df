"""Schema evolution: adds columns of new data to a table's schema, and decides which types can be stored in
which.

Sources: Spark's ANSI store assignment (`Cast.canANSIStoreAssign`), delta-spark's schema merging. Only types
are compared here; values are converted and checked when they are written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from deltaic.errors import SchemaMismatchError
from deltaic.protocol.column_mapping import strip
from deltaic.protocol.schema import (
    Array,
    DataType,
    Field,
    Map,
    Schema,
    Struct,
    decimal_parts,
    is_shape,
    path_text,
    type_name,
    user_types_of,
    walk,
)

_DEFAULT = "CURRENT_DEFAULT"
_COMPUTED = ("delta.generationExpression", "delta.identity.start")
_VARIANT = {"metadata": "binary", "value": "binary"}
_NUMBERS = frozenset({"byte", "short", "integer", "long", "float", "double"})
_TIMES = frozenset({"date", "timestamp", "timestamp_ntz"})
_AS_TEXT = _NUMBERS | _TIMES | {"boolean", "binary"}


def is_number(data_type: DataType) -> bool:
    """True for integers, floats and decimals."""
    return data_type in _NUMBERS or decimal_parts(data_type) is not None


def can_store(source: DataType, target: DataType) -> bool:
    """True if values of type `source` may be written to a column of type `target` under ANSI store
    assignment. A value out of range is an error when it is written.

    Fields of structs match by name, without case. If elements of `source` may be null, those of `target` must
    be nullable."""
    if source == target or source == "void":
        return True
    if is_shape(source) or is_shape(target):
        return source == "binary"
    if isinstance(source, str) and isinstance(target, str):
        if is_number(source) and is_number(target):
            return True
        if target == "string":
            return source in _AS_TEXT or decimal_parts(source) is not None
        return source in _TIMES and target in _TIMES
    if target == "variant":  # in Arrow, a variant is a struct of its two parts
        return (
            isinstance(source, Struct)
            and {item.name.lower(): item.type for item in source.fields} == _VARIANT
        )
    if isinstance(source, Array) and isinstance(target, Array):
        return can_store(source.element, target.element) and (
            target.contains_null or not source.contains_null
        )
    if isinstance(source, Map) and isinstance(target, Map):
        sides = can_store(source.key, target.key) and can_store(source.value, target.value)
        return sides and (target.value_contains_null or not source.value_contains_null)
    if isinstance(source, Struct) and isinstance(target, Struct):
        known = {item.name.lower(): item for item in target.fields}
        return all(
            item.name.lower() in known and can_store(item.type, known[item.name.lower()].type)
            for item in source.fields
        )
    return False


def _lower_name(item: Field) -> str:
    return item.name.lower()


def retyped(
    source: DataType,
    target: DataType,
    replaces: Callable[[DataType, DataType], bool],
    *,
    key: Callable[[Field], str] = _lower_name,
) -> DataType:
    """Replaces parts of the type `source` by those of `target` wherever `replaces` is true for both. Fields
    match by `key`, their name without case by default."""
    if replaces(source, target):
        return target
    if isinstance(source, Struct) and isinstance(target, Struct):
        known = {key(item): item for item in target.fields}
        inner = ((item, known.get(key(item))) for item in source.fields)
        return Struct(
            [
                item if other is None else item.with_(type=retyped(item.type, other.type, replaces, key=key))
                for item, other in inner
            ]
        )
    if isinstance(source, Array) and isinstance(target, Array):
        return Array(retyped(source.element, target.element, replaces, key=key), source.contains_null)
    if isinstance(source, Map) and isinstance(target, Map):
        map_key = retyped(source.key, target.key, replaces, key=key)
        return Map(
            map_key, retyped(source.value, target.value, replaces, key=key), source.value_contains_null
        )
    return source


Widening = Callable[[DataType, DataType], bool]
"""True if a column of the first type becomes one of the second type, if the data has that type."""


def merge_schemas(table: Schema, data: Schema, *, widen: Widening | None = None) -> Schema:
    """Adds the new columns of `data` to a table's schema: columns at the end, fields at the end of their
    struct, all of them nullable at every level.

    The table's fields keep name, type, order, nullability and metadata, with two exceptions: a column of type
    void gets the data's type, and a column gets the data's wider type if `widen` (`widening.is_widening` or
    `is_upcast`) allows it. New fields keep their comments, but not ids and physical names, which
    `column_mapping.assign` sets. A type that cannot be stored is a SchemaMismatchError.
    """
    return Schema(_merge_fields(table, data, (), widen))


def check_fits(table: Schema, data: Schema, *, replaces_all: bool = False) -> None:
    """Checks data for a table whose schema does not change. A column or field that the table lacks, and a
    type that cannot be stored, are a SchemaMismatchError. `replaces_all`: True if the data replaces all rows,
    so that it could replace the columns, too."""
    merged = merge_schemas(table, data)
    if (extra := _first_new(table, merged, ())) is not None:
        more = ", or 'overwrite' to replace the columns" if replaces_all else ""
        raise SchemaMismatchError(
            "the data has a column that the table lacks",
            where=path_text(extra),
            expected=f"the table's columns, or schema_mode='merge' to add it{more}",
        )
    before = {path: item.type for path, item in walk(table)}
    for path, item in walk(merged):
        if before.get(path) == "void" != item.type:
            raise SchemaMismatchError(
                "the column has no type yet, because it has had only nulls",
                where=path_text(path),
                found=type_name(item.type),
                expected="nulls, or schema_mode='merge' to give it the data's type",
            )


def replaced_schema(data: Schema) -> Schema:
    """Returns the schema of a table that is overwritten with `schema_mode="overwrite"`: that of the data,
    without another table's column mapping."""
    return strip(data)


def nullable_field(item: Field) -> Field:
    """Returns a field that is nullable at every level."""
    return item.with_(nullable=True, type=nullable_everywhere(item.type))


def nullable_everywhere(data_type: DataType) -> DataType:
    """Makes a type nullable at every level, as required for a field that older files do not have."""
    if isinstance(data_type, Struct):
        return Struct(map(nullable_field, data_type.fields))
    if isinstance(data_type, Array):
        return Array(nullable_everywhere(data_type.element), True)
    if isinstance(data_type, Map):
        return Map(nullable_everywhere(data_type.key), nullable_everywhere(data_type.value), True)
    return data_type


def new_field(item: Field) -> Field:
    """Prepares a field for a table that has files: it becomes nullable and loses another table's column
    mapping. A column or field of type void gets a type from later data."""
    (clean,) = strip(Schema([item]))
    metadata = {
        key: value
        for key, value in clean.metadata.items()
        if key not in (_DEFAULT, *_COMPUTED) and not key.startswith("delta.identity.")
    }  # older rows would not have it
    return nullable_field(clean).with_(metadata=metadata)


def _merge_fields(
    table: Iterable[Field], data: Iterable[Field], path: tuple[str, ...], widen: Widening | None
) -> list[Field]:
    incoming = {item.name.lower(): item for item in data}
    result = []
    for item in table:
        other = incoming.pop(item.name.lower(), None)
        here = (*path, item.name)
        if item.type == "void" and other is not None and other.type != "void":
            result.append(
                new_field(other).with_(name=item.name, metadata={**other.metadata, **item.metadata})
            )
            continue
        merged = item.type if other is None else _merge_types(item.type, other.type, here, widen)
        if other is not None and user_types_of(item) and merged != item.type:
            raise _unfit(other.type, item.type, here)  # Spark alone changes the fields of its type
        result.append(item.with_(type=merged))
    return result + [new_field(item) for item in incoming.values()]


def _merge_types(table: DataType, data: DataType, path: tuple[str, ...], widen: Widening | None) -> DataType:
    if isinstance(table, Struct) and isinstance(data, Struct):
        return Struct(_merge_fields(table.fields, data.fields, path, widen))
    if isinstance(table, Array) and isinstance(data, Array):
        return Array(
            _merge_types(table.element, data.element, (*path, "element"), widen), table.contains_null
        )
    if isinstance(table, Map) and isinstance(data, Map):
        key = _merge_types(table.key, data.key, (*path, "key"), widen)
        return Map(
            key, _merge_types(table.value, data.value, (*path, "value"), widen), table.value_contains_null
        )
    if widen is not None and widen(table, data):
        return data
    if not can_store(data, table):
        raise _unfit(data, table, path)
    return table


def _unfit(data: DataType, table: DataType, path: tuple[str, ...]) -> SchemaMismatchError:
    return SchemaMismatchError(
        "the data's type does not fit the column's",
        where=path_text(path),
        found=type_name(data),
        expected=type_name(table),
    )


def _first_new(
    table: Iterable[Field], merged: Iterable[Field], path: tuple[str, ...]
) -> tuple[str, ...] | None:
    known = {item.name: item for item in table}
    for item in merged:
        here = (*path, item.name)
        if item.name not in known:
            return here
        if (found := _first_new_in(known[item.name].type, item.type, here)) is not None:
            return found
    return None


def _first_new_in(table: DataType, merged: DataType, path: tuple[str, ...]) -> tuple[str, ...] | None:
    if isinstance(table, Struct) and isinstance(merged, Struct):
        return _first_new(table.fields, merged.fields, path)
    if isinstance(table, Array) and isinstance(merged, Array):
        return _first_new_in(table.element, merged.element, (*path, "element"))
    if isinstance(table, Map) and isinstance(merged, Map):
        found = _first_new_in(table.key, merged.key, (*path, "key"))
        return found if found is not None else _first_new_in(table.value, merged.value, (*path, "value"))
    return None


def check_nullability(table: Schema, data: Schema) -> None:
    """Raises SchemaMismatchError if the data lacks a NOT NULL column that has no default and is not computed.
    Null values are checked when they are written."""
    if (missing := left_out(table, data.names)) is not None:
        raise SchemaMismatchError(
            "the data has no such column, and the table does not take null", where=missing
        )


def left_out(table: Schema, given: Iterable[str], *, nullable: bool = False) -> str | None:
    """Returns the first NOT NULL column of the table that has no default, is not computed, and is not among
    the columns `given`; None if there is none. `nullable`: True for the first such column of any kind."""
    names = {name.lower() for name in given}
    needed = (
        item
        for item in table
        if (nullable or not item.nullable) and not any(key in item.metadata for key in (_DEFAULT, *_COMPUTED))
    )
    return next((item.name for item in needed if item.name.lower() not in names), None)


def check_partitions(table: Schema, partition_columns: Iterable[str], data: Schema) -> None:
    """Raises SchemaMismatchError if the data lacks a partition column for which the table has no value. Nulls
    would be a partition that nobody meant."""
    for name in partition_columns:
        if data.get(name) is None and not any(
            key in table.field(name).metadata for key in (_DEFAULT, *_COMPUTED)
        ):
            raise SchemaMismatchError(
                "the data lacks a partition column", found=", ".join(data.names), expected=name
            )


def check_stored_columns(partition_columns: Iterable[str], data: Schema, *, casts: bool = False) -> None:
    """Raises SchemaMismatchError for data that has partition columns only, or void columns beside them: no
    column of it would be in the files. `casts`: True if void columns get the types of the table's columns."""
    partitioned = {name.lower() for name in partition_columns}
    stored = [
        item for item in data if (casts or item.type != "void") and item.name.lower() not in partitioned
    ]
    if partitioned and not stored:
        raise SchemaMismatchError(
            "the data has partition columns only",
            found=", ".join(data.names),
            expected="one column at least that is in the files",
        )
