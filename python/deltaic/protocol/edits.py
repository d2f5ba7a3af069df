"""Edits of a schema: add, rename, drop, move and change columns and nested fields. Each function takes a
schema and returns the new one.

`Schema.find` returns the paths that these functions take. `definition.evolve` takes their result and decides
on ids, physical names and the protocol.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from deltaic.errors import InvalidArgumentError
from deltaic.protocol.actions import Metadata
from deltaic.protocol.column_mapping import strip
from deltaic.protocol.evolution import Widening
from deltaic.protocol.properties import TableProperties
from deltaic.protocol.schema import (
    Array,
    DataType,
    Field,
    Map,
    Schema,
    Struct,
    path_text,
    split_path,
    type_name,
    user_types_of,
    walk,
)

UNCHANGED = Struct([])
"""The key or value type of a map in the new columns of `add_columns`, if it gets no new fields."""
STATS_COLUMNS = "delta.dataSkippingStatsColumns"


def add_columns(schema: Schema, new: Schema) -> Schema:
    """Adds the columns of `new` at the end of a schema. For an existing struct, also inside arrays and maps,
    its new fields are added to the struct.

    InvalidArgumentError is raised for an existing column or field, one that is NOT NULL (older rows have no
    value), and if there is nothing to add.
    """
    if not new:
        raise InvalidArgumentError("no columns to add")
    try:
        return Schema(_add(schema, new, ()))
    except InvalidArgumentError as error:
        error.with_values(struct=type_name(Struct(schema)))
        raise


def new_fields(
    fields: Iterable[Field], new: Iterable[Field], path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Field]]:
    """Yields what `add_columns` adds: the path and the field of each new column, and of each new field of an
    existing struct."""
    known = {item.name.lower(): item.type for item in fields}
    for item in new:
        here = (*path, item.name)
        if item.name.lower() in known:
            yield from _new_in(known[item.name.lower()], item.type, here)
        else:
            yield here, item


def _new_in(old: DataType, new: DataType, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Field]]:
    if isinstance(old, Struct) and isinstance(new, Struct):
        yield from new_fields(old.fields, new.fields, path)
    elif isinstance(old, Array) and isinstance(new, Array):
        yield from _new_in(old.element, new.element, (*path, "element"))
    elif isinstance(old, Map) and isinstance(new, Map):
        yield from _new_in(old.key, new.key, (*path, "key"))
        yield from _new_in(old.value, new.value, (*path, "value"))


def _add(fields: Iterable[Field], new: Iterable[Field], path: tuple[str, ...]) -> list[Field]:
    result = list(fields)
    places = {item.name.lower(): index for index, item in enumerate(result)}
    for item in new:
        here = (*path, item.name)
        index = places.get(item.name.lower())
        if index is None:
            if "CURRENT_DEFAULT" in item.metadata:
                raise InvalidArgumentError(
                    "a new column has no default yet, because older rows would not have it",
                    where=path_text(here),
                    expected="add_columns, then change_column(default=)",
                )
            if computed := sorted(
                {"delta.generationExpression", "delta.identity.start"} & item.metadata.keys()
            ):
                raise InvalidArgumentError(
                    "a generated or identity column can only be created with the table, because older rows"
                    " would not have its value",
                    where=path_text(here),
                    found=computed[0],
                )
            if required := next((at for at, each in walk([item], path) if not each.nullable), None):
                raise InvalidArgumentError(
                    "a new column must take null, because older rows have no value for it",
                    where=path_text(required),
                )
            result.extend(strip(Schema([item])))
        else:
            _check_struct(result[index], here, here)
            result[index] = result[index].with_(type=_add_to(result[index].type, item.type, here))
    return result


def _check_struct(field: Field, path: Sequence[str], changed: Sequence[str]) -> None:
    """Raises InvalidArgumentError if the field at `path`, in which the field `changed` is changed, has a
    user-defined type, whose fields are Spark's."""
    if user_types_of(field):
        error = InvalidArgumentError(
            "only a struct gets new fields or loses fields",
            where=path_text(changed),
            found=f"{path_text(path)} of a user-defined type",
            expected="a column of the type struct",
        )
        raise error.with_values(path=tuple(changed), above=tuple(path))


def _add_to(old: DataType, new: DataType, path: tuple[str, ...]) -> DataType:
    if isinstance(old, Struct) and isinstance(new, Struct):
        return Struct(_add(old.fields, new.fields, path))
    if isinstance(old, Array) and isinstance(new, Array):
        return Array(_add_to(old.element, new.element, (*path, "element")), old.contains_null)
    if isinstance(old, Map) and isinstance(new, Map):
        if UNCHANGED in (old.key, old.value, new.key, new.value):
            key = _add_to_side(old.key, new.key, (*path, "key"))
            return Map(key, _add_to_side(old.value, new.value, (*path, "value")), old.value_contains_null)
        key = old.key if old.key == new.key else _add_to(old.key, new.key, (*path, "key"))
        value = (
            old.value
            if old.value == new.value and old.key != new.key
            else _add_to(old.value, new.value, (*path, "value"))
        )
        return Map(key, value, old.value_contains_null)
    raise InvalidArgumentError("the column exists already", where=path_text(path)).with_values(
        op="add", path=path
    )


def _add_to_side(old: DataType, new: DataType, path: tuple[str, ...]) -> DataType:
    if new == UNCHANGED:
        return old
    return new if old == UNCHANGED else _add_to(old, new, path)


def replace_columns(schema: Schema, new: Schema, *, widen: Widening | None = None) -> Schema:
    """Returns the columns and fields of `new`, in their order and with their comments. Existing columns keep
    their other metadata, and the comment that `new` does not have. `widen`: which wider types they may get.

    InvalidArgumentError is raised if `new` lacks a column or field, changes another type, a default or an
    expression, or makes a nullable column NOT NULL.
    """
    return Schema(_replaced(schema, new, (), widen))


def dropped_fields(schema: Schema, new: Schema) -> list[tuple[str, ...]]:
    """Returns the paths of the columns and fields that `new` lacks. Raises InvalidArgumentError if `new` has
    another column or field in their place."""

    def place(path: tuple[str, ...]) -> str:
        return path_text(path[:-1]).lower()

    added = {place(path): path for path, _ in new_fields(schema, new)}
    dropped = [path for path, _ in new_fields(new, schema)]
    if path := next((path for path in dropped if place(path) in added), None):
        raise InvalidArgumentError(
            "replacing columns adds a column and drops another one, which may be the same with a new name",
            found=f"{path_text(added[place(path)])} instead of {path_text(path)}",
            expected="the same columns, or rename_column before",
        )
    return dropped


def _replaced(
    fields: Iterable[Field], new: Iterable[Field], path: tuple[str, ...], widen: Widening | None
) -> list[Field]:
    known = {item.name.lower(): item for item in fields}
    result = []
    for item in new:
        here = (*path, item.name)
        old = known.pop(item.name.lower(), None)
        if old is None:
            result += _add((), [item], path)
            continue
        if old.nullable and not item.nullable:
            raise InvalidArgumentError(
                "NOT NULL cannot be set on a column that takes null", where=path_text(here)
            )
        if changed := {
            key for key, value in item.metadata.items() if key != "comment" and old.metadata.get(key) != value
        }:
            raise InvalidArgumentError(
                "replacing columns changes only their order and comments",
                where=path_text(here),
                found=sorted(changed),
            )
        result.append(
            old.with_(
                type=_replaced_type(old.type, item.type, here, widen),
                nullable=item.nullable,
                metadata={**old.metadata, **item.metadata},
            )
        )
    if known:
        raise InvalidArgumentError(
            "replacing columns drops none of the table's columns",
            found="without " + ", ".join(path_text((*path, item.name)) for item in known.values()),
        )
    return result


def _replaced_type(old: DataType, new: DataType, path: tuple[str, ...], widen: Widening | None) -> DataType:
    if isinstance(old, Struct) and isinstance(new, Struct):
        return Struct(_replaced(old.fields, new.fields, path, widen))
    if isinstance(old, Array) and isinstance(new, Array):
        element = _replaced_type(old.element, new.element, (*path, "element"), widen)
        return Array(element, old.contains_null)
    if isinstance(old, Map) and isinstance(new, Map):
        key = _replaced_type(old.key, new.key, (*path, "key"), widen)
        value = _replaced_type(old.value, new.value, (*path, "value"), widen)
        return Map(key, value, old.value_contains_null)
    if widen is not None and widen(old, new):
        return new
    if old != new:
        raise InvalidArgumentError(
            "replacing columns changes no type",
            where=path_text(path),
            found=type_name(new),
            expected=type_name(old),
        )
    return old


def move_field(schema: Schema, path: Sequence[str], after: str | None) -> Schema:
    """Moves a field behind the field `after` of the same struct; None: to the first place."""
    above = tuple(path[:-1])
    _check_above(schema, path)
    if not above:
        return Schema(_moved(tuple(schema), path, after))
    if not is_field(schema, path):
        raise InvalidArgumentError(
            "an array's element and a map's key and value cannot be moved", where=path_text(path)
        )
    end = next(end for end in range(len(above), 0, -1) if is_field(schema, above[:end]))
    return edit_field(
        schema, above[:end], lambda item: item.with_(type=_moved_in(item.type, above[end:], path, after))
    )


def _moved_in(
    data_type: DataType, steps: tuple[str, ...], path: Sequence[str], after: str | None
) -> DataType:
    """Moves a field inside a type. `steps`: the path of elements, keys and values from the type to the
    struct."""
    if isinstance(data_type, Array):
        return Array(_moved_in(data_type.element, steps[1:], path, after), data_type.contains_null)
    if isinstance(data_type, Map):
        key, value = (
            _moved_in(side, steps[1:], path, after) if steps[0] == name else side
            for name, side in (("key", data_type.key), ("value", data_type.value))
        )
        return Map(key, value, data_type.value_contains_null)
    assert isinstance(data_type, Struct)  # Schema.find followed the path
    return Struct(_moved(data_type.fields, path, after))


def _moved(fields: Sequence[Field], path: Sequence[str], after: str | None) -> list[Field]:
    moved = next(item for item in fields if item.name == path[-1])
    result = [item for item in fields if item is not moved]
    places = [
        index
        for index, item in enumerate(result, 1)
        if after is not None and item.name.lower() == after.lower()
    ]
    if after is not None and not places:
        error = InvalidArgumentError(
            "no such field to place the column after",
            where=path_text(path),
            found=after,
            expected=", ".join(item.name for item in result),
        )
        raise error.with_values(field=path[-1])
    result.insert(places[0] if places else 0, moved)
    return result


def edit_field(schema: Schema, path: Sequence[str], change: Callable[[Field], Field | None]) -> Schema:
    """Replaces a field by `change(field)`, or drops it if that is None.

    InvalidArgumentError is raised if the path ends in an array's element or a map's key or value, which are
    no fields.
    """
    _check_above(schema, path)
    return Schema(_edit(tuple(schema), tuple(path), change, ()))


def _check_above(schema: Schema, path: Sequence[str]) -> None:
    for end in range(1, len(path)):
        _check_struct(schema.find(path[:end])[1], path[:end], path)


def _edit(
    fields: Sequence[Field],
    path: tuple[str, ...],
    change: Callable[[Field], Field | None],
    above: tuple[str, ...],
) -> list[Field]:
    result = []
    for item in fields:
        if item.name != path[0]:
            result.append(item)
        elif len(path) > 1:
            result.append(item.with_(type=_edit_type(item.type, path[1:], change, (*above, item.name))))
        elif (changed := change(item)) is not None:
            result.append(changed)
    if not result:
        raise InvalidArgumentError(
            "the last column cannot be dropped", where=path_text((*above, *path))
        ).with_values(schema=Schema(fields))
    return result


def _edit_type(
    data_type: DataType,
    path: tuple[str, ...],
    change: Callable[[Field], Field | None],
    above: tuple[str, ...],
) -> DataType:
    if isinstance(data_type, Struct):
        return Struct(_edit(data_type.fields, path, change, above))
    if len(path) == 1:
        raise InvalidArgumentError(
            "an array's element and a map's key and value cannot be renamed or dropped",
            where=path_text((*above, *path)),
        )
    here = (*above, path[0])
    if isinstance(data_type, Array):
        return Array(_edit_type(data_type.element, path[1:], change, here), data_type.contains_null)
    assert isinstance(data_type, Map)  # Schema.find followed the path
    if path[0] == "key":
        return Map(
            _edit_type(data_type.key, path[1:], change, here), data_type.value, data_type.value_contains_null
        )
    return Map(
        data_type.key, _edit_type(data_type.value, path[1:], change, here), data_type.value_contains_null
    )


def change_type(schema: Schema, path: Sequence[str], new: DataType) -> Schema:
    """Changes the type at a path, which may end in an array's element or a map's key or value. Nullability
    and metadata of the old type stay."""
    end = next(end for end in range(len(path), 0, -1) if is_field(schema, path[:end]))
    return edit_field(
        schema, path[:end], lambda item: item.with_(type=_with_type(item.type, tuple(path[end:]), new))
    )


def is_field(schema: Schema, path: Sequence[str]) -> bool:
    """True for the path of a column or of a struct's field, False for an element, a key or a value."""
    return any(each == tuple(path) for each, _ in walk(schema))


def _with_type(old: DataType, path: tuple[str, ...], new: DataType) -> DataType:
    if isinstance(old, Array) and path:
        return Array(_with_type(old.element, path[1:], new), old.contains_null)
    if isinstance(old, Map) and path:
        key, value = (
            _with_type(side, path[1:], new) if path[0] == name else side
            for name, side in (("key", old.key), ("value", old.value))
        )
        return Map(key, value, old.value_contains_null)
    if isinstance(old, Array) and isinstance(new, Array):
        return Array(_with_type(old.element, (), new.element), old.contains_null)
    if isinstance(old, Map) and isinstance(new, Map):
        return Map(
            _with_type(old.key, (), new.key), _with_type(old.value, (), new.value), old.value_contains_null
        )
    if isinstance(old, Struct) and isinstance(new, Struct):
        types = {item.name.lower(): item.type for item in new.fields}
        if sorted(types) != sorted(item.name.lower() for item in old.fields):
            raise InvalidArgumentError(
                "the type of a struct cannot be changed as a whole: add and drop its fields by their names",
                found=str(sorted(types)),
            )
        return Struct(
            item.with_(type=_with_type(item.type, (), types[item.name.lower()])) for item in old.fields
        )
    return new


def rename_column(schema: Schema, path: Sequence[str], name: str) -> Schema:
    """Renames a field to `name`, which is a plain name and no path. The physical name stays."""
    if not name:
        raise InvalidArgumentError("a column name must not be empty")
    _check_above(schema, path)
    if not is_field(schema, path):
        raise InvalidArgumentError(
            "only a struct has fields with names that can change", where=path_text(path)
        ).with_values(path=(*path[:-1], name), above=tuple(path[:-1]))
    _check_new(schema, path, name)
    return edit_field(schema, path, lambda item: item.with_(name=name))


def _check_new(schema: Schema, path: Sequence[str], name: str) -> None:
    """Raises InvalidArgumentError if another field of the same struct has the name."""
    try:
        other, _ = schema.find((*path[:-1], name))
    except InvalidArgumentError:
        return
    if other[-1].lower() != path[-1].lower():
        error = InvalidArgumentError("the column exists already", where=path_text(other))
        raise error.with_values(op="rename", path=other, struct=type_name(Struct(schema)))


def drop_columns(schema: Schema, paths: Iterable[Sequence[str]]) -> Schema:
    """Drops fields. The last field of a table or of a struct is an InvalidArgumentError."""
    for path in paths:
        _check_above(schema, path)
        if not is_field(schema, path):
            raise InvalidArgumentError(
                "an array's element and a map's key and value cannot be dropped", where=path_text(path)
            ).with_values(type=schema.find(path)[1].type)
        schema = edit_field(schema, path, lambda _: None)
    return schema


def set_metadata(schema: Schema, path: Sequence[str], metadata: Mapping[str, Any]) -> Schema:
    """Sets keys of a field's metadata; None removes a key. Values must be JSON. Keys that belong to a
    feature, such as those that begin with `delta.`, are an InvalidArgumentError."""
    for key, value in metadata.items():
        if (
            not isinstance(key, str)
            or key.startswith(("delta.", "parquet.field.", "__"))
            or key in ("CURRENT_DEFAULT", "EXISTS_DEFAULT")
        ):
            raise InvalidArgumentError(
                "this key of a column's metadata belongs to a feature", found=repr(key)
            )
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError):
            raise InvalidArgumentError(
                "a value of a column's metadata is not JSON", where=key, found=repr(value)[:80]
            ) from None

    def change(item: Field) -> Field:
        merged = {**item.metadata, **metadata}
        return item.with_(metadata={key: value for key, value in merged.items() if value is not None})

    return edit_field(schema, path, change)


def stats_columns(
    metadata: Metadata, renamed: Mapping[tuple[str, ...], tuple[str, ...] | None]
) -> dict[str, object]:
    """Returns the property `delta.dataSkippingStatsColumns` after renames and drops; empty if it does not
    change.

    `renamed`: old path -> new path, or None for a dropped column. If no column of the property is left, the
    property becomes an empty text, as in delta-spark: without it, other columns would get statistics."""
    columns = TableProperties(metadata.configuration).data_skipping_stats_columns
    if columns is None:
        return {}
    moved = {tuple(part.lower() for part in old): new for old, new in renamed.items()}
    result: list[str] = []
    for column in columns:
        parts = split_path(column)
        for end in range(1, len(parts) + 1):
            key = tuple(part.lower() for part in parts[:end])
            if key in moved:
                new = moved[key]
                if new is not None:
                    result.append(path_text((*new, *parts[end:])))
                break
        else:
            result.append(column)
    return {STATS_COLUMNS: ",".join(result)} if tuple(result) != columns else {}
