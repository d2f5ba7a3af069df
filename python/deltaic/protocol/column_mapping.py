"""Column mapping: ids and physical names of fields, and the checks of names without it. Source: PROTOCOL.md,
"Column Mapping".

Users see a field's name. Data files, statistics and partition values have its physical name. Id and physical
name are set once, when the field is created, and no other field ever gets them. Fields of structs inside
arrays and maps have them, too. Array elements, map keys and map values have ids only with Iceberg
compatibility.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from deltaic.errors import InvalidArgumentError, UnsupportedFeatureError
from deltaic.protocol.schema import (
    Array,
    DataType,
    Field,
    Map,
    Schema,
    Struct,
    path_text,
    user_types_of,
    walk,
)

ID = "delta.columnMapping.id"
PHYSICAL_NAME = "delta.columnMapping.physicalName"
MODE = "delta.columnMapping.mode"
MAX_ID = "delta.columnMapping.maxColumnId"
NESTED_IDS = "delta.columnMapping.nested.ids"
"""Ids of the elements, keys and values below a field, which Iceberg compatibility requires."""
# Keys of a field's metadata that describe the data files of one table, and are not copied to another table.
_OF_ONE_TABLE = frozenset({ID, PHYSICAL_NAME, NESTED_IDS, "parquet.field.nested.ids", "delta.typeChanges"})
_BAD_CHARACTERS = frozenset(" ,;{}()\n\t=")

NewName = Callable[[], str]


def new_physical_name() -> str:
    """Returns `col-` with a random UUID, as in delta-spark."""
    import uuid  # only writers need it

    return f"col-{uuid.uuid4()}"


def physical_name(field: Field) -> str:
    """Returns the field's name in data files: its physical name, or its own without column mapping."""
    return str(field.metadata.get(PHYSICAL_NAME, field.name))


def physical_names(schema: Schema, columns: Iterable[str]) -> list[str]:
    """Returns the physical names of top-level columns."""
    return [physical_name(schema.field(name)) for name in columns]


def map_fields(data_type: DataType, change: Callable[[Field], Field]) -> DataType:
    """Replaces every struct field of a type, at any depth, by `change(field)`; parents first. A user-defined
    type stays as it is, because Spark alone knows its fields."""
    if isinstance(data_type, Struct):
        changed = (change(item) for item in data_type.fields)
        return Struct(
            new if user_types_of(old) else new.with_(type=map_fields(new.type, change))
            for old, new in zip(data_type.fields, changed, strict=True)
        )
    if isinstance(data_type, Array):
        return Array(map_fields(data_type.element, change), data_type.contains_null)
    if isinstance(data_type, Map):
        return Map(
            map_fields(data_type.key, change),
            map_fields(data_type.value, change),
            data_type.value_contains_null,
        )
    return data_type


def _map_schema(schema: Schema, change: Callable[[Field], Field]) -> Schema:
    mapped = map_fields(Struct(schema), change)
    assert isinstance(mapped, Struct)
    return Schema(mapped.fields)


def strip(schema: Schema) -> Schema:
    """Removes ids, physical names and type changes, so that the schema of one table can be used for a new
    one."""
    return without_keys(schema, _OF_ONE_TABLE)


def unmapped(schema: Schema) -> Schema:
    """Removes ids and physical names, for a table whose files will have the logical names. Type changes
    stay."""
    return without_keys(schema, _OF_ONE_TABLE - {"delta.typeChanges"})


def without_keys(schema: Schema, keys: Collection[str]) -> Schema:
    """Removes these keys from the metadata of all fields, at any depth."""
    return _map_schema(
        schema, lambda item: item.with_(metadata={k: v for k, v in item.metadata.items() if k not in keys})
    )


def assign(schema: Schema, max_id: int = 0, *, new_name: NewName = new_physical_name) -> tuple[Schema, int]:
    """Adds an id and a physical name to every field without them. Fields without them must be new to the
    table.

    `max_id`: the table's `delta.columnMapping.maxColumnId`. New ids start after it, or after the largest id
    in the schema. Returns the schema and the new maximum.
    """
    return _number(schema, max_id, lambda _: new_name())


def with_ids_of(schema: Schema, before: Schema) -> Schema:
    """Copies ids and physical names of `before` to the columns that have the name and the type of one of its
    columns, so that the change data feed can be read across the replacement of a table, as in delta-spark."""
    known = {item.name: item for item in before}
    return Schema(
        [_carried(item, known[item.name]) or item if item.name in known else item for item in schema]
    )


def _carried(item: Field, before: Field) -> Field | None:
    """Returns a field with the ids and physical names of `before`; None if the types differ in more than
    nullability."""
    if (data_type := _carried_type(item.type, before.type)) is None:
        return None
    kept = {key: before.metadata[key] for key in (ID, PHYSICAL_NAME, NESTED_IDS) if key in before.metadata}
    return item.with_(type=data_type, metadata={**item.metadata, **kept})


def _carried_type(data_type: DataType, before: DataType) -> DataType | None:
    if isinstance(data_type, Struct) and isinstance(before, Struct):
        if [item.name for item in data_type.fields] != [item.name for item in before.fields]:
            return None
        fields = [_carried(*pair) for pair in zip(data_type.fields, before.fields, strict=True)]
        carried = [item for item in fields if item is not None]
        return Struct(carried) if len(carried) == len(fields) else None
    if isinstance(data_type, Array) and isinstance(before, Array):
        element = _carried_type(data_type.element, before.element)
        return None if element is None else Array(element, data_type.contains_null)
    if isinstance(data_type, Map) and isinstance(before, Map):
        key, value = (
            _carried_type(data_type.key, before.key),
            _carried_type(data_type.value, before.value),
        )
        return None if key is None or value is None else Map(key, value, data_type.value_contains_null)
    return data_type if data_type == before else None


def assign_existing(schema: Schema, max_id: int = 0) -> tuple[Schema, int]:
    """Like `assign`, but for a table that has data files: each physical name is the name that the files
    use."""
    return _number(schema, max_id, lambda item: item.name)


def _number(schema: Schema, max_id: int, name_of: Callable[[Field], str]) -> tuple[Schema, int]:
    last = max([max_id, *_ids(schema)])

    def change(item: Field) -> Field:
        nonlocal last
        if ID in item.metadata and PHYSICAL_NAME in item.metadata:
            return item
        metadata = dict(item.metadata)
        if ID not in metadata:
            last += 1
            metadata[ID] = last
        metadata.setdefault(PHYSICAL_NAME, name_of(item))
        return item.with_(metadata=metadata)

    return _map_schema(schema, change), last


def _ids(schema: Schema) -> Iterable[int]:
    return (item.metadata[ID] for _, item in walk(schema) if isinstance(item.metadata.get(ID), int))


def check_mode_change(before: str, after: str) -> None:
    """Raises UnsupportedFeatureError for a change of the mode other than from none to name. Other changes
    need new files; `Alter.set_properties` writes them for the change to none."""
    if before != after and (before, after) != ("none", "name"):
        raise UnsupportedFeatureError(
            "the mode of column mapping cannot be changed this way",
            where=MODE,
            found=f"{before!r} to {after!r}",
            expected="'none' to 'name'",
        )


def check_no_nul(place: str, name: str) -> None:
    """Raises InvalidArgumentError for a column's name with a NUL character."""
    if "\0" in name:
        raise InvalidArgumentError(
            "a column's name has a NUL character", where=repr(place), expected="another name"
        )


def check_names(
    schema: Schema, mode: str, known: Schema | None = None, *, partitions: Iterable[str] = ()
) -> None:
    """Raises InvalidArgumentError for a name that cannot be stored: an empty one, one with a NUL character,
    and without column mapping one with any of ``,;{}()=``, a space, a tab or a line break.

    `known`: the table's current schema; its names are not checked. `partitions`: names of partition
    columns, which the message names."""
    current = {path for path, _ in walk(known or ())}
    folders = {str(name).lower() for name in partitions}
    for path, item in walk(schema):
        if path in current:
            continue
        if not item.name:
            raise InvalidArgumentError("a column has an empty name", where=path_text(path[:-1]) or None)
        check_no_nul(path_text(path), item.name)
        if mode == "none" and (bad := sorted(_BAD_CHARACTERS & set(item.name))):
            kind = "partition column" if len(path) == 1 and item.name.lower() in folders else "column"
            error = InvalidArgumentError(
                f"a {kind}'s name has characters that need column mapping",
                where=path_text(path),
                found=" ".join(map(repr, bad)),
                expected=f"other characters, or the property {MODE} = 'name'",
            )
            raise error.with_values(column=item.name)


def check_unmapped_names(schema: Schema) -> None:
    """Raises InvalidArgumentError for names that need column mapping, in a table whose mapping ends."""
    if bad := [path_text(path) for path, item in walk(schema) if _BAD_CHARACTERS & set(item.name)]:
        raise InvalidArgumentError(
            "column mapping cannot be removed, because names of columns need it",
            found=", ".join(bad),
            expected="names without any of ,;{}()= and without spaces, tabs and line breaks",
        )


def check_unique(schema: Schema) -> None:
    """Raises InvalidArgumentError if two fields share an id, or two fields of one struct a physical name.
    Values of one field would then be read as the other."""
    seen: dict[object, str] = {}
    for path, item in walk(schema):
        name = path_text(path)
        keys = [(path[:-1], physical_name(item).lower())] + (
            [item.metadata[ID]] if ID in item.metadata else []
        )
        for key in keys:
            if (other := seen.setdefault(key, name)) != name:
                raise InvalidArgumentError(
                    "two columns share an id or a physical name", found=f"{other} and {name}"
                )
