"""Partition columns: which columns can be, and values in the names of folders.

Rust writes and parses the text of partition values in the log (PROTOCOL.md, "Partition Value Serialization").
"""

from __future__ import annotations

from collections.abc import Iterable

from deltaic.errors import InvalidArgumentError
from deltaic.protocol.paths import NULL_FOLDER, unescaped_in_folder
from deltaic.protocol.schema import Schema, is_shape, type_name

_NOT_PARTITIONS = frozenset({"variant", "void"})


def partition_columns(schema: Schema, names: str | Iterable[str] | None) -> tuple[str, ...]:
    """Returns the names of partition columns as the schema spells them. `names`: one name or several.

    InvalidArgumentError is raised for an unknown or repeated column, a nested field, a column that is a
    struct, array or map, and if all columns of the schema are named.
    """
    columns: list[str] = []
    for name in (names,) if isinstance(names, str) else names or ():
        try:
            field = schema.field(name)
        except InvalidArgumentError as error:
            raise InvalidArgumentError(
                "no such partition column", found=error.found, expected=error.expected
            ) from None
        if not isinstance(field.type, str) or field.type in _NOT_PARTITIONS or is_shape(field.type):
            raise InvalidArgumentError(
                "a table cannot be partitioned by this column",
                where=field.name,
                found=f"its type is {type_name(field.type)}",
            ).with_values(type=type_name(field.type), column_type=field.type)
        if field.name in columns:
            raise InvalidArgumentError("a partition column is named twice", found=repr(field.name))
        columns.append(field.name)
    if columns and len(columns) == len(schema):
        raise InvalidArgumentError(
            "not every column can be a partition column",
            found=", ".join(columns),
            expected="one column at least in the files",
        )
    return tuple(columns)


def from_directory(path: str) -> dict[str, str | None]:
    """Parses partition values from the folders of a path: `month=1/city=New%20York/x.parquet` ->
    `{"month": "1", "city": "New York"}`. Hive's name of null becomes None.

    Use it only for files outside of a table and for display; the log has the partition values of a table's
    files.
    """
    pairs = (part.partition("=") for part in path.split("/")[:-1] if "=" in part)
    return {
        unescaped_in_folder(name): None if value == NULL_FOLDER else unescaped_in_folder(value)
        for name, _, value in pairs
    }
