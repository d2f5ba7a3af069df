"""Column names as callers write them (`id`, `address.city`), resolved against a table's schema."""

from __future__ import annotations

from collections.abc import Sequence

from deltaic.errors import InvalidArgumentError, InvalidTypeError, SchemaMismatchError, items_of
from deltaic.protocol.schema import Field, Schema, Struct, path_text


def check_has_columns(schema: Schema, location: str) -> None:
    """Raises SchemaMismatchError for a table that was made without columns and has none yet."""
    if not schema.names:
        raise SchemaMismatchError(
            "the table has no columns yet",
            where=location,
            expected="a write that merges schemas, or ADD COLUMN",
        )


def resolve_columns(
    schema: Schema, columns: Sequence[str] | None, *, branches: bool = False
) -> tuple[str, ...]:
    """Returns the names as the schema spells them; all columns if `columns` is None.

    Unknown and repeated names are an InvalidArgumentError, and so are several fields of one struct unless
    `branches` is True."""
    if columns is None:
        return tuple(schema.names)
    columns = columns if isinstance(columns, (str, bytes)) else items_of(columns, "columns")
    if isinstance(columns, (str, bytes)) or not all(isinstance(name, str) for name in columns):
        raise InvalidTypeError("columns must be a sequence of names", found=repr(columns)[:80])
    names = [_resolve(schema, name) for name in columns]
    roots: dict[str, str] = {}
    for name in names:
        root = narrowed(schema, name).name.lower()
        if root in roots and not (branches and not _overlap(schema, name, names)):
            raise InvalidArgumentError(
                "two of the columns would have one name", found=f"{roots[root]!r} and {name!r}"
            )
        roots[root] = name
    return tuple(names)


def _overlap(schema: Schema, name: str, names: Sequence[str]) -> bool:
    """True if another of the names is `name` itself, a struct that contains it, or a field below it."""
    path = schema.find(name)[0]
    others = [schema.find(other)[0] for other in names]
    return sum(other == path[: len(other)] or path == other[: len(path)] for other in others) > 1


def united(schema: Schema, names: Sequence[str]) -> Schema:
    """Returns the schema of these columns. Fields of one struct are united: `a.x` and `a.y` become `a` with
    the fields `x` and `y`, in the order of `names`."""
    fields: dict[str, Field] = {}
    for name in names:
        item = narrowed(schema, name)
        fields[item.name] = _united(fields[item.name], item) if item.name in fields else item
    return Schema(fields.values())


def _united(left: Field, right: Field) -> Field:
    if not isinstance(left.type, Struct) or not isinstance(right.type, Struct):
        return left
    inside = {item.name: item for item in left.type.fields}
    for item in right.type.fields:
        inside[item.name] = _united(inside[item.name], item) if item.name in inside else item
    return left.with_(type=Struct(inside.values()))


def _resolve(schema: Schema, name: str) -> str:
    path, _ = schema.find(name)
    return path[0] if len(path) == 1 else path_text(path)


def narrowed(schema: Schema, name: str) -> Field:
    """Returns the top-level field that a name reads: the field itself, or for `a.b.c` the struct `a` with
    only that branch."""
    if (top := schema.get(name)) is not None:
        return top
    path, leaf = schema.find(name)
    parents = [schema.field(path[0])]
    for part in path[1:]:
        inside = parents[-1].type
        if not isinstance(inside, Struct):
            raise _not_a_struct(name, parents[-1])
        parents.append(next(item for item in inside.fields if item.name == part))
    narrow = leaf
    for outer in reversed(parents[:-1]):
        narrow = outer.with_(type=Struct([narrow]))
    return narrow


def _not_a_struct(name: str, parent: Field) -> InvalidArgumentError:
    return InvalidArgumentError(f"{parent.name!r} is not a struct, so it has no fields", found=repr(name))
