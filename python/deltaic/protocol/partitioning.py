"""Partition columns: which may be, and what folders say of their values.

The text form that the log stores (PROTOCOL.md, "Partition Value Serialization") is made and parsed in Rust.
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import unquote

from deltaic.errors import InvalidArgumentError
from deltaic.protocol.schema import Schema, is_shape, type_name

_NOT_PARTITIONS = frozenset({"variant", "void"})


def partition_columns(schema: Schema, names: str | Iterable[str] | None) -> tuple[str, ...]:
    """The names of partition columns (one or several) in the schema's own case.

    InvalidArgumentError: an unknown column, one named twice, a nested or nested-typed one, all columns of the schema.
    """
    given = (names,) if isinstance(names, str) else tuple(names or ())
    found: list[str] = []
    for name in given:
        try:
            field = schema.field(name)
        except InvalidArgumentError as error:
            raise InvalidArgumentError("no such partition column", found=error.found, expected=error.expected) from None
        if not isinstance(field.type, str) or field.type in _NOT_PARTITIONS or is_shape(field.type):
            raise InvalidArgumentError(
                "a table cannot be partitioned by this column", where=field.name, found=f"its type is {type_name(field.type)}"
            )
        if field.name in found:
            raise InvalidArgumentError("a partition column is named twice", found=repr(field.name))
        found.append(field.name)
    if found and len(found) == len(schema):
        raise InvalidArgumentError(
            "not every column can be a partition column", found=", ".join(found), expected="one column at least in the files"
        )
    return tuple(found)


def from_directory(path: str) -> dict[str, str | None]:
    """Parses partition values from the folders of a path: `month=1/city=New%20York/x.parquet` -> month 1, city New York; Hive's name of
    null is None.

    For files that are no part of a table yet, and for display: of a table's files the log decides.
    """
    pairs = (part.partition("=") for part in path.split("/")[:-1] if "=" in part)
    return {unquote(name): None if value == "__HIVE_DEFAULT_PARTITION__" else unquote(value) for name, _, value in pairs}
