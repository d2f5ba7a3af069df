"""The change data feed (PROTOCOL.md: "Change Data Files"): its columns, which tables have it, and which
changes of a schema allow rows of several versions to be read together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from deltaic.errors import SchemaMismatchError
from deltaic.protocol.column_mapping import physical_name
from deltaic.protocol.schema import Array, DataType, Field, Map, Schema, Struct, type_name
from deltaic.protocol.values import parse_boolean
from deltaic.protocol.widening import is_widening

if TYPE_CHECKING:
    from collections.abc import Sequence

FEATURE = "changeDataFeed"
PROPERTY = "delta.enableChangeDataFeed"
CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP = "_change_type", "_commit_version", "_commit_timestamp"
INSERT, DELETE, BEFORE, AFTER = "insert", "delete", "update_preimage", "update_postimage"
COLUMNS = (Field(CHANGE_TYPE, "string"), Field(COMMIT_VERSION, "long"), Field(COMMIT_TIMESTAMP, "timestamp"))
"""The feed's own columns, which come after the table's columns."""
_UNMAPPED = "__deltaic_unmapped"
"""Key of a column's metadata: the column has no physical name, although the table has column mapping. Files
have it by its logical name (rust/src/schema/types.rs)."""


def is_enabled(configuration: Mapping[str, str]) -> bool:
    """True if the properties of a table turn the feed on."""
    return parse_boolean(configuration.get(PROPERTY, "false"))


def with_changes(schema: Schema, columns: Sequence[Field] = COLUMNS, *, mapped: bool = False) -> Schema:
    """Adds the columns of the feed to a table's schema. `mapped`: True if the table has column mapping."""
    metadata = {_UNMAPPED: True} if mapped else {}
    return Schema([*schema, *(item.with_(metadata=metadata) for item in columns)])


def check_names(schema: Schema, *, is_turned_on: bool) -> None:
    """Raises SchemaMismatchError if the table has a column with a name of the feed, such as `_change_type`.
    `is_turned_on`: True if a table gets the feed by a property that is given for it; False if a table that
    has the feed, or has it by a default of the session, gets the column."""
    reserved = {item.name for item in COLUMNS}
    if taken := [item.name for item in schema if item.name.lower() in reserved]:
        raise SchemaMismatchError(
            "a table with the change data feed has no column of the feed's own names"
            if is_turned_on
            else "a new column of a table with the change data feed has one of the feed's own names",
            where=f"column {taken[0]}",
            expected=f"a name other than {', '.join(sorted(reserved))}",
        ).with_values(taken=f"[{','.join(taken)}]")


def check_compatible(before: Schema, after: Schema, version: int, first: int, last: int) -> None:
    """Raises SchemaMismatchError if rows with the schema `before` cannot be read as rows with the schema
    `after`.

    `before` is the schema of `version`, `after` of the `last` version of the range, which begins at `first`.
    As in delta-spark, columns may only be added or widened in between."""
    if (problem := difference(before, after)) is None:
        return
    place = f"the first version, {version}," if version == first else f"version {version}"
    error = SchemaMismatchError(
        f"the schema changed between {place} and {last}, so their changes cannot be read together; "
        "read the versions before and after the change apart",
        where=problem[0],
        found=problem[1],
        expected=problem[2],
    )
    raise error.with_values(version=version, first=first, last=last, read_schema=after.to_json())


def difference(before: Schema, after: Schema, *, drops: bool = False) -> tuple[str, str, str] | None:
    """Returns (place, found, expected) of the first change by which rows with the schema `before` cannot be
    read as rows with the schema `after`; None if there is none. `drops`: True to accept dropped and renamed
    columns."""
    return _difference(Struct(tuple(before)), Struct(tuple(after)), "", drops)


def _difference(before: DataType, after: DataType, place: str, drops: bool) -> tuple[str, str, str] | None:
    if isinstance(before, Struct) and isinstance(after, Struct):
        known = {item.name.lower(): item for item in after.fields}
        for item in before.fields:
            path = f"{place}.{item.name}" if place else item.name
            other = known.get(item.name.lower())
            if other is None or physical_name(other) != physical_name(item):
                if drops:
                    continue
                return f"column {path}", "dropped or renamed", "a column that stays"
            if item.nullable and not other.nullable:
                return f"column {path}", "NOT NULL", "a column that still takes null"
            if (problem := _difference(item.type, other.type, path, drops)) is not None:
                return problem
        return None
    if isinstance(before, Array) and isinstance(after, Array):
        return _difference(before.element, after.element, f"{place}.element", drops)
    if isinstance(before, Map) and isinstance(after, Map):
        return _difference(before.key, after.key, f"{place}.key", drops) or _difference(
            before.value, after.value, f"{place}.value", drops
        )
    wider = is_widening(before, after)
    return None if before == after or wider else (f"column {place}", type_name(after), type_name(before))
