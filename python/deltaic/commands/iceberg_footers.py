"""The columns that an Iceberg table's data files have by their footers: names, and field ids.

Files that were not written by Iceberg, such as those of a migrated Hive table, have no field ids. The table
property `schema.name-mapping.default` then says which names in files belong to which column (Iceberg's
specification: "Column Projection").
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from deltaic import _core
from deltaic.commands.iceberg_files import DataFile
from deltaic.commands.iceberg_io import Paths, reading
from deltaic.errors import SchemaMismatchError, UnsupportedFeatureError
from deltaic.protocol.column_mapping import ID, NESTED_IDS, PHYSICAL_NAME, new_physical_name, physical_name
from deltaic.protocol.schema import Array, DataType, Field, Map, Schema, Struct, path_text

NAME_MAPPING = "schema.name-mapping.default"
_FIELD_ID = b"PARQUET:field_id"
# Iceberg's names of the elements of arrays and of the keys and values of maps. Parquet writers use other
# names.
_ELEMENT, _KEY, _VALUE = "element", "key", "value"


@dataclass(frozen=True)
class FileColumn:
    """A column of a data file, or a field, element, key or value below one. `field_id`: None if it is no
    column of the table."""

    field_id: int | None
    name: str
    children: tuple[FileColumn, ...]


@dataclass(frozen=True)
class FileColumns:
    """The columns of one data file, and of all others with the same columns. `has_ids`: True if the file
    itself has the field ids; otherwise they come from the name mapping."""

    path: str
    columns: tuple[FileColumn, ...]
    has_ids: bool


def file_columns(
    store: _core.Store, paths: Paths, files: Iterable[DataFile], name_mapping: str | None
) -> list[FileColumns]:
    """Returns the columns of these files, with one entry for all files with equal columns. Raises
    UnsupportedFeatureError for a file without field ids if there is no name mapping."""
    known = {paths.relative(file.path): file for file in files}
    mapped = _mapped_fields(name_mapping)
    schemas = _file_schemas(store, [(path, file.size) for path, file in known.items()])
    return [_columns_of(known[path].path, schema, mapped) for path, schema in schemas]


def _file_schemas(store: _core.Store, files: Iterable[tuple[str, int]]) -> Iterator[tuple[str, pa.Schema]]:
    """Yields each schema, with field ids, that the footers of files have, after the path of one such file.
    `files`: paths and sizes."""
    columns = {"path": pa.string(), "size": pa.int64(), "modification_time": pa.int64()}
    rows = [dict(zip(columns, (path, size, 0), strict=True)) for path, size in files]
    listing = pa.Table.from_pylist(rows, pa.schema(columns)).combine_chunks()
    for schema, path in _core.Survey(store, listing, hive=False).arrow_schemas:
        yield path, schema


def _mapped_fields(name_mapping: str | None) -> list[Any] | None:
    if name_mapping is None:
        return None
    from pyiceberg.table.name_mapping import parse_mapping_from_json

    with reading(f"table property {NAME_MAPPING}"):
        return list(parse_mapping_from_json(name_mapping))


def _columns_of(path: str, schema: pa.Schema, mapped: list[Any] | None) -> FileColumns:
    has_ids = any(_has_ids(item) for item in schema)
    if not has_ids and mapped is None:
        raise UnsupportedFeatureError(
            "a data file has no field ids, and the table has no name mapping that says which columns it has",
            where=path,
            expected=f"field ids in the file, or the table property {NAME_MAPPING}",
        )
    return FileColumns(
        path, tuple(_column(item.name, item, None if has_ids else mapped) for item in schema), has_ids
    )


def _has_ids(item: pa.Field) -> bool:
    return _FIELD_ID in (item.metadata or {}) or any(_has_ids(below) for _, below in _below(item.type))


def _below(data_type: pa.DataType) -> list[tuple[str, pa.Field]]:
    if pa.types.is_struct(data_type):
        return [(item.name, item) for item in data_type]
    if pa.types.is_map(data_type):
        return [(_KEY, data_type.key_field), (_VALUE, data_type.item_field)]
    if (
        pa.types.is_list(data_type)
        or pa.types.is_large_list(data_type)
        or pa.types.is_fixed_size_list(data_type)
    ):
        return [(_ELEMENT, data_type.value_field)]
    return []


def _column(name: str, item: pa.Field, mapped: list[Any] | None) -> FileColumn:
    """Returns a column with its own id if `mapped` is None, else with the id of the mapped field of its
    name."""
    if mapped is None:
        text = (item.metadata or {}).get(_FIELD_ID)
        return FileColumn(
            None if text is None else int(text),
            name,
            tuple(_column(*below, None) for below in _below(item.type)),
        )
    match = next((each for each in mapped if name in each.names), None)
    field_id, fields = (None, []) if match is None else (match.field_id, match.fields)
    return FileColumn(field_id, name, tuple(_column(*below, fields) for below in _below(item.type)))


# --- fields that a file lacks


def missing_fields(
    data_type: Any, columns: Sequence[FileColumn], above: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yields path and Iceberg field of each struct field that is missing from a file that has the struct.
    `data_type`: Iceberg's struct type."""
    for item in data_type.fields:
        column = next((each for each in columns if each.field_id == item.field_id), None)
        path = (*above, item.name)
        if column is None:
            yield path, item
        else:
            yield from _missing_below(item.field_type, column.children, path)


def _missing_below(
    data_type: Any, columns: Sequence[FileColumn], path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], Any]]:
    if data_type.is_struct:
        yield from missing_fields(data_type, columns, path)
    elif hasattr(data_type, "element_id") and len(columns) == 1:
        yield from _missing_below(data_type.element_type, columns[0].children, (*path, _ELEMENT))
    elif hasattr(data_type, "key_id") and len(columns) == 2:
        yield from _missing_below(data_type.key_type, columns[0].children, (*path, _KEY))
        yield from _missing_below(data_type.value_type, columns[1].children, (*path, _VALUE))


# --- names of columns in files

_Level = Sequence[tuple[str, Sequence[FileColumn]]]
"""For each file that has a struct: the file's path and the struct's fields."""


def with_names_of_files(schema: Schema, files: Sequence[FileColumns]) -> Schema:
    """Returns the schema with the names in the files as physical names, for column mapping in mode `name`.
    Raises UnsupportedFeatureError if a column has two names in these files, or if two columns have one
    name."""
    return Schema(_named(tuple(schema), [(file.path, file.columns) for file in files], ()))


def _named(fields: Sequence[Field], level: _Level, above: tuple[str, ...]) -> list[Field]:
    return [_named_field(item, level, (*above, item.name)) for item in fields]


def _named_field(item: Field, level: _Level, path: tuple[str, ...]) -> Field:
    field_id, names, below = item.metadata[ID], dict[str, str](), []
    for file, columns in level:
        for column in columns:
            if column.field_id == field_id:
                names.setdefault(column.name, file)
                below.append((file, column.children))
    if len(names) > 1:
        found = " and ".join(f"{name} in {file}" for name, file in names.items())
        raise _unfit(
            "a column has several names in data files, some of which have no field ids",
            path,
            found,
            "one name in all files",
        )
    name = next(iter(names), item.name)
    for file, columns in level:
        other = next(
            (each for each in columns if each.name.lower() == name.lower() and each.field_id != field_id),
            None,
        )
        if other is None:
            continue
        if names:
            message = (
                "the name of a column belongs to another column in some data files, and not all files have"
                " field ids"
            )
            raise _unfit(
                message, path, f"{other.name} in {file}, {name} in {names[name]}", "one column for each name"
            )
        name = new_physical_name()  # no file has the column: a name that none of them uses
    return item.with_(
        type=_named_type(item.type, below, path), metadata={**item.metadata, PHYSICAL_NAME: name}
    )


def _named_type(data_type: DataType, level: _Level, path: tuple[str, ...]) -> DataType:
    if isinstance(data_type, Struct):
        return Struct(_named(data_type.fields, level, path))
    if isinstance(data_type, Array):
        return Array(
            _named_type(data_type.element, _at(level, 0, 1), (*path, _ELEMENT)), data_type.contains_null
        )
    if isinstance(data_type, Map):
        key = _named_type(data_type.key, _at(level, 0, 2), (*path, _KEY))
        return Map(
            key,
            _named_type(data_type.value, _at(level, 1, 2), (*path, _VALUE)),
            data_type.value_contains_null,
        )
    return data_type


def _at(level: _Level, index: int, count: int) -> _Level:
    return [(file, columns[index].children) for file, columns in level if len(columns) == count]


def _unfit(message: str, path: tuple[str, ...], found: str, expected: str) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(message, where=f"column {path_text(path)}", found=found, expected=expected)


# --- ids of files that are added to a Delta table


def check_field_ids(store: _core.Store, schema: Schema, files: Iterable[tuple[str, int]]) -> None:
    """Raises SchemaMismatchError for a file whose field ids are not those of the table's columns, because
    Iceberg readers, which find columns by id, would read other columns than Delta readers. A file without any
    id is accepted, as its columns are found by name. `files`: paths and sizes."""
    for path, found in _file_schemas(store, files):
        if any(_has_ids(item) for item in found):
            _check_ids(tuple(schema), [_column(item.name, item, None) for item in found], path, ())


def _check_ids(
    fields: Sequence[Field], columns: Sequence[FileColumn], file: str, above: tuple[str, ...]
) -> None:
    by_name = {physical_name(item): item for item in fields}
    by_id = {item.metadata[ID]: item for item in fields}
    for column in columns:
        item, path = by_name.get(column.name), (*above, column.name)
        if item is not None:
            _check_id(column, item.metadata[ID], file, path)
            _check_ids_below(item.type, column, item.metadata.get(NESTED_IDS, {}), (column.name,), file, path)
        elif column.field_id in by_id:
            _check_id(column, None, file, path)


def _check_ids_below(
    data_type: DataType,
    column: FileColumn,
    ids: Mapping[str, int],
    prefix: tuple[str, ...],
    file: str,
    path: tuple[str, ...],
) -> None:
    """Checks the ids below a field. `ids`: those of elements, keys and values, by their paths from the field
    (`tags.element`), of which `prefix` is the first part."""
    if isinstance(data_type, Struct):
        _check_ids(data_type.fields, column.children, file, path)
        return
    parts = {_ELEMENT: data_type.element} if isinstance(data_type, Array) else {}
    if isinstance(data_type, Map):
        parts = {_KEY: data_type.key, _VALUE: data_type.value}
    for (name, part), child in zip(parts.items(), column.children, strict=False):
        _check_id(child, ids.get(".".join((*prefix, name))), file, (*path, name))
        _check_ids_below(part, child, ids, (*prefix, name), file, (*path, name))


def _check_id(column: FileColumn, expected: int | None, file: str, path: tuple[str, ...]) -> None:
    if column.field_id != expected:
        raise SchemaMismatchError(
            "a file has other field ids than the table, so Iceberg readers would read other columns",
            where=f"{file}, column {path_text(path)}",
            found=f"id {column.field_id}",
            expected=f"{f'id {expected}' if expected is not None else 'no id'}, or a file without field ids",
        )
