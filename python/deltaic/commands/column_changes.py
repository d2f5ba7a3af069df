"""Changes of single columns, for `table.alter.change_column` and `change_columns`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from types import NoneType
from typing import TYPE_CHECKING, Any

from deltaic.commands import defaults, invariants
from deltaic.errors import InvalidArgumentError, check_instance
from deltaic.log.snapshot import Snapshot
from deltaic.protocol import dependents, edits
from deltaic.protocol.ddl import parse_column_type, parse_type
from deltaic.protocol.schema import CHAR_TYPES, DataType, Field, Schema, check_type, path_text, type_to_json
from deltaic.spark_sql.char_types import check_longer
from deltaic.sql_text import quote_name

if TYPE_CHECKING:
    from deltaic.engine.engine import Engine


@dataclass(frozen=True)
class ColumnChange:
    """The arguments of `change_column`."""

    type: DataType | None = None
    nullable: bool | None = None
    comment: str | None = None
    default: str | None = None
    first: bool = False
    after: str | None = None

    def __post_init__(self) -> None:
        check_instance(self.nullable, (bool, NoneType), "nullable", "True, False or None")
        check_instance(self.comment, (str, NoneType), "comment", "text")
        check_instance(self.default, (str, NoneType), "default", "SQL as text")
        check_instance(self.first, bool, "first", "True or False")
        check_instance(self.after, (str, NoneType), "after", "a column's name")
        if self.first and self.after is not None:
            raise InvalidArgumentError("first=True and after= cannot be combined", found=self.after)

    @staticmethod
    def of(name: str, arguments: Mapping[str, Any]) -> ColumnChange:
        check_instance(arguments, Mapping, f"the change of {name}", "a mapping of arguments")
        known = [field.name for field in fields(ColumnChange)]
        if unknown := sorted(set(arguments) - set(known)):
            raise InvalidArgumentError(
                "no such argument of change_column",
                where=name,
                found=repr(unknown[0]),
                expected=", ".join(known),
            )
        return ColumnChange(**arguments)


def changed(
    snapshot: Snapshot, schema: Schema, name: str, change: ColumnChange, engine: Callable[[], Engine]
) -> tuple[Schema, dict[str, Any]]:
    """Returns the schema after a change of the column or field `name`, and the operationParameters of
    CHANGE COLUMN: `{"column": {...}, "position": "FIRST"}`. `snapshot`: that of the table, whose expressions
    may use the column."""
    path, field = schema.find(name)
    table = schema
    if change.type is not None:
        table = _with_type(snapshot, table, path, field, change.type)
    if change.nullable is False and field.nullable:
        raise InvalidArgumentError(
            "NOT NULL cannot be set on a column that takes null, only dropped", where=path_text(path)
        )
    table = _with_texts(table, path, change)
    if change.default is not None:
        _check_default(table, path, field, engine)
    parameters: dict[str, Any] = {"column": field_json(table.find(path)[1], path)}
    if change.first or change.after is not None:
        after = None if change.after is None else table.find((*path[:-1], change.after))[0][-1]
        if after != path[-1]:
            table = edits.move_field(table, path, after)
        parameters |= position_of(after)
    return table, parameters


def _with_texts(schema: Schema, path: tuple[str, ...], change: ColumnChange) -> Schema:
    """Returns the schema with the comment, the default and the nullability of a change."""
    if change.comment is not None and not edits.is_field(schema, path):
        raise InvalidArgumentError(
            "only a column or a field of a struct has a comment", where=path_text(path)
        )
    texts = {
        key: text
        for key, text in (("comment", change.comment), (defaults.KEY, change.default))
        if text is not None
    }

    def edited(item: Field) -> Field:
        metadata = {
            key: text for key, text in {**item.metadata, **texts}.items() if key != defaults.KEY or text
        }
        return item.with_(nullable=item.nullable or change.nullable is True, metadata=metadata)

    if change.nullable is None and not texts:
        return schema
    return edits.edit_field(schema, path, edited)


def _check_default(schema: Schema, path: tuple[str, ...], field: Field, engine: Callable[[], Engine]) -> None:
    if len(path) > 1:
        raise InvalidArgumentError("only a top-level column can have a default", where=path_text(path))
    if invariants.is_computed(field):
        computed = "an identity" if "delta.identity.start" in field.metadata else "a generated"
        raise InvalidArgumentError(f"{computed} column cannot have a default", where=path_text(path))
    defaults.check(engine(), [schema.field(path[0])])


def _with_type(
    snapshot: Snapshot, schema: Schema, path: tuple[str, ...], field: Field, new_type: DataType
) -> Schema:
    """Returns the schema with another type, or another length of a CHAR or VARCHAR, of the column or
    field at `path`."""
    changed = _as_column(field, new_type, whole=len(path) == 1)
    check_longer(path_text(path), field, changed)
    if changed.type != field.type:
        if "delta.identity.start" in field.metadata:
            raise dependents.type_is_fixed("an identity", path, field.type, changed.type)
        dependents.check_unused(schema, snapshot.metadata, path)
        schema = edits.change_type(schema, path, changed.type)
    if (lengths := changed.metadata.get(CHAR_TYPES)) != field.metadata.get(CHAR_TYPES):
        schema = edits.edit_field(
            schema, path, lambda item: item.with_(metadata=_with(item.metadata, CHAR_TYPES, lengths))
        )
    return schema


def _with(metadata: Mapping[str, Any], key: str, value: object) -> dict[str, Any]:
    others = {name: known for name, known in metadata.items() if name != key}
    return others if value is None else {**others, key: value}


def position_of(after: str | None) -> dict[str, str]:
    """Returns the new position of a column for operationParameters, like delta-spark: "FIRST" or "AFTER
    b"."""
    return {"position": "FIRST" if after is None else f"AFTER {after}"}


def path_in_history(path: tuple[str, ...]) -> str:
    """Returns a path for operationParameters, like delta-spark: only parts with a dot are in backticks, as in
    ``new col.`b.c` ``."""
    return ".".join(quote_name(part) if "." in part else part for part in path)


def field_json(item: Field, path: tuple[str, ...]) -> dict[str, Any]:
    """Returns a column or field for operationParameters, like delta-spark: its name is the whole path, and
    its type has no elements: `array<struct<a: int>>` is "array"."""
    shown = type_to_json(item.type)
    return {
        "name": path_in_history(path),
        "type": shown if isinstance(shown, str) else shown["type"],
        "nullable": item.nullable,
        "metadata": dict(item.metadata),
    }


def _as_column(field: Field, new_type: DataType, *, whole: bool) -> Field:
    """Returns the field with another type: Delta's name, Struct, Array, Map, or Spark's DDL. `whole`: True
    for a column, which may be a CHAR or a VARCHAR."""
    if isinstance(new_type, str):
        try:
            return Field(field.name, check_type(new_type))
        except InvalidArgumentError:
            data_type, metadata = parse_column_type(new_type) if whole else (parse_type(new_type), {})
            return Field(field.name, data_type, metadata=metadata)
    return Field(field.name, check_type(new_type))
