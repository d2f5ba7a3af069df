"""Columns and fields of the type void, which have had nothing but nulls.

A column of the table, and a field of a struct at any depth of structs, may be void. No data file has it, so
it reads as null. Arrays and maps have no void in them.

Source: delta-spark 4.4, SchemaUtils.dropNullTypeColumns and the checks of SchemaUtils for writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from deltaic.errors import InvalidArgumentError
from deltaic.protocol.schema import (
    Array,
    DataType,
    Field,
    Map,
    Schema,
    Struct,
    path_text,
    primitive_types,
    type_name,
    walk,
)


def in_data_files(data_type: DataType) -> DataType:
    """Returns the type as data files have it, without the void fields of structs: `struct<a: int, b: void>`
    becomes `struct<a: int>`. A struct that has only void fields becomes void, as no file has a column for it.
    """
    if not isinstance(data_type, Struct) or not has_void_field(data_type):
        return data_type
    fields = [item.with_(type=in_data_files(item.type)) for item in data_type.fields]
    typed = [item for item in fields if item.type != "void"]
    return Struct(typed) if typed else "void"


def has_void_field(data_type: DataType) -> bool:
    """True if the type is a struct with a void field, at any depth of structs."""
    return any(True for _ in void_fields(data_type))


def void_fields(data_type: DataType) -> Iterator[tuple[str, ...]]:
    """Yields the paths of the void fields of a struct, at any depth of structs."""
    for item in data_type.fields if isinstance(data_type, Struct) else ():
        if item.type == "void":
            yield (item.name,)
        yield from ((item.name, *path) for path in void_fields(item.type))


def check_void(schema: Schema, known: Schema | None = None) -> None:
    """Raises InvalidArgumentError for a table without any column that data files have, for a struct without
    any such field, and for void in an array or a map. `known`: the schema of an existing table, whose own
    columns are not checked."""
    current = {path: item.type for path, item in walk(known or ())}
    if len(schema) and all(item.type == "void" and (item.name,) not in current for item in schema):
        raise InvalidArgumentError(
            "every column holds nothing but nulls, so no type is known", found=", ".join(schema.names)
        )
    for path, item in walk(schema):
        before = current.get(path, "void")
        is_new = before == "void" or "void" not in primitive_types(before)
        if is_new and isinstance(item.type, (Array, Map)) and "void" in primitive_types(item.type):
            raise InvalidArgumentError(
                "the column has no type, because the data has only nulls",
                where=path_text(path),
                found=type_name(item.type),
            )
    _check_structs(schema, current)


def check_written(schema: Schema) -> None:
    """Raises InvalidArgumentError if the rows of a table cannot be written, because a struct has only void
    fields. Data files would not tell which of these structs are null."""
    _check_structs(schema, {})


def _check_structs(schema: Iterable[Field], known: Mapping[tuple[str, ...], DataType]) -> None:
    for path, item in _void_structs(schema):
        if known.get(path) != item.type:
            raise InvalidArgumentError(
                "every field of the struct holds nothing but nulls, so no type is known",
                where=path_text(path),
                found=type_name(item.type),
            )


def _void_structs(schema: Iterable[Field]) -> Iterator[tuple[tuple[str, ...], Field]]:
    for path, item in walk(schema):
        fields = item.type.fields if isinstance(item.type, Struct) else ()
        if fields and all(field.type == "void" for field in fields):
            yield path, item
