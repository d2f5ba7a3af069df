"""Assignments: what SET and INSERT put into each column, as one Spark SQL expression for each, with Spark's store assignment.

Source: Spark's ANSI store assignment as delta-spark applies it in UPDATE and MERGE: a value becomes the column's type by a cast that fails
where it does not fit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from deltaic.errors import InvalidArgumentError, InvalidTypeError, SchemaMismatchError
from deltaic.protocol.ddl import format_type
from deltaic.protocol.schema import Array, DataType, Field, Map, Schema, Struct, decimal_parts, split_path, type_name
from deltaic.relation.failures import failing
from deltaic.relation.literal import col, lit

if TYPE_CHECKING:
    from deltaic.engine.engine import Engine

Casting: TypeAlias = Literal["strict", "try"]

_WIDER = {
    "byte": {"short", "integer", "long", "float", "double"},
    "short": {"integer", "long", "float", "double"},
    "integer": {"long", "double"},
    "long": set[str](),
    "float": {"double"},
}
_DIGITS = {"byte": 3, "short": 5, "integer": 10, "long": 20}


@dataclass
class _Node:
    """The assignments to a column or field: its own `value`, or those of its fields."""

    value: str | None = None
    fields: dict[str, _Node] = field(default_factory=dict)


def check_casting(casting: str) -> None:
    if casting not in ("strict", "try"):
        raise InvalidArgumentError("casting", found=repr(casting), expected="'strict' or 'try'")


def as_sql(value: Any) -> str:
    """A value of `set=`: text is SQL, anything else a literal."""
    if isinstance(value, str):
        if not value.strip():
            raise InvalidArgumentError("an empty expression", found=repr(value))
        return value
    return lit(value)


class Assignments:
    """`set=` of UPDATE and MERGE, or `values=` of an insert, checked against the table's schema.

    Keys: column, `` `column` ``, struct.field, with the target's alias in front or not. InvalidArgumentError for unknown columns and for
    two assignments to one.
    """

    def __init__(self, schema: Schema, values: Mapping[str, Any], alias: str) -> None:
        if not isinstance(values, Mapping):
            raise InvalidTypeError("assignments are a mapping of columns to expressions", found=type(values).__name__)
        if not values:
            raise InvalidArgumentError("nothing is assigned", expected="at least one column")
        self._schema, self._alias = schema, alias
        self._roots: dict[str, _Node] = {}
        for key, value in values.items():
            self._put(key, as_sql(value))

    def _put(self, key: str, value: str) -> None:
        if not isinstance(key, str):
            raise InvalidTypeError("a column's name is text", found=repr(key))
        path = self._path(key)
        node = self._roots.setdefault(path[0], _Node())
        for part in path[1:]:
            if node.value is not None:
                raise _twice(key)
            node = node.fields.setdefault(part, _Node())
        if node.value is not None or node.fields:
            raise _twice(key)
        node.value = value

    def _path(self, key: str) -> tuple[str, ...]:
        if self._schema.get(key) is not None:
            return (self._schema.field(key).name,)
        parts = split_path(key)
        if len(parts) > 1 and parts[0].lower() == self._alias.lower() and self._schema.get(parts[0]) is None:
            parts = parts[1:]
        path, _ = self._schema.find(parts)
        data_type: DataType = Struct(self._schema.fields)
        for part in path:
            if not isinstance(data_type, Struct):
                raise InvalidArgumentError("only fields of structs can be assigned alone", found=repr(key))
            data_type = next(item.type for item in data_type.fields if item.name == part)
        return path

    @property
    def columns(self) -> frozenset[str]:
        """Top-level columns that are assigned."""
        return frozenset(self._roots)

    def texts(self) -> list[str]:
        """The users' expressions, for checking and for the columns they read."""
        found: list[str] = []
        waiting = list(self._roots.values())
        while waiting:
            node = waiting.pop()
            found += [node.value] if node.value is not None else []
            waiting += node.fields.values()
        return found

    def expression(self, engine: Engine, column: Field, scope: Mapping[str, Schema], casting: Casting, kept: str | None) -> str:
        """The column's new value. `kept`: SQL of its value where nothing is assigned (None: null)."""
        node = self._roots.get(column.name)
        if node is None:
            return kept if kept is not None else null_of(column)
        return self._value(engine, node, column.type, (column.name,), scope, casting, kept)

    def _value(
        self,
        engine: Engine,
        node: _Node,
        data_type: DataType,
        path: tuple[str, ...],
        scope: Mapping[str, Schema],
        casting: Casting,
        kept: str | None,
    ) -> str:
        if node.value is not None:
            return assigned(engine, node.value, data_type, path, scope, casting)
        assert isinstance(data_type, Struct)
        parts = []
        for item in data_type.fields:
            inner = None if kept is None else f"{kept}.{col(item.name)}"
            child = node.fields.get(item.name)
            if child is not None:
                value = self._value(engine, child, item.type, (*path, item.name), scope, casting, inner)
            else:
                value = inner if inner is not None else null_of(item)
            parts.append(f"{lit(item.name)}, {value}")
        return f"named_struct({', '.join(parts)})"


def _twice(key: str) -> InvalidArgumentError:
    return InvalidArgumentError("a column is assigned twice, or as a whole and in part", found=repr(key))


def null_of(column: Field) -> str:
    return f"CAST(NULL AS {format_type(column.type)})"


def enclosed(text: str) -> str:
    """A user's expression within a longer text; the line break ends a comment."""
    return f"({text}\n)"


def assigned(engine: Engine, text: str, target: DataType, path: tuple[str, ...], scope: Mapping[str, Schema], casting: Casting) -> str:
    """The expression as the type of the column that it goes to. Spark's rules; SchemaMismatchError where the types never fit."""
    resolved = engine.resolve(text, scope)
    where = f"column {'.'.join(path)}"
    if same_type(resolved.type, target):
        return enclosed(text)
    if isinstance(resolved.type, Struct) and isinstance(target, Struct) and resolved.deterministic:
        return _struct(text, resolved.type, target, where)
    if isinstance(resolved.type, (Struct, Array, Map)) != isinstance(target, (Struct, Array, Map)) and resolved.type != "void":
        raise SchemaMismatchError(
            "a value does not fit its column", where=where, found=type_name(resolved.type), expected=type_name(target)
        )
    sql_type = format_type(target)
    plain = f"CAST({enclosed(text)} AS {sql_type})"
    if resolved.type == "void" or _always_fits(resolved.type, target) or not resolved.deterministic:
        return plain
    attempt = f"try_cast({enclosed(text)} AS {sql_type})"
    if casting == "try":
        return attempt
    failure = failing(SchemaMismatchError, f"{where}: a value of type {type_name(resolved.type)} does not fit", expected=type_name(target))
    return f"coalesce({attempt}, CASE WHEN {enclosed(text)} IS NOT NULL THEN CAST({failure} AS {sql_type}) END)"


def _struct(text: str, source: Struct, target: Struct, where: str) -> str:
    """By name, as Spark assigns structs; a field that the source lacks is null, one that the target lacks is an error."""
    by_name = {item.name.lower(): item for item in source.fields}
    if extra := [item.name for item in source.fields if item.name.lower() not in {each.name.lower() for each in target.fields}]:
        raise SchemaMismatchError(
            "a struct has fields that its column lacks", where=where, found=", ".join(extra), expected=type_name(target)
        )
    parts = []
    for item in target.fields:
        found = by_name.get(item.name.lower())
        value = null_of(item) if found is None else f"CAST({enclosed(text)}.{col(found.name)} AS {format_type(item.type)})"
        parts.append(f"{lit(item.name)}, {value}")
    return f"CASE WHEN {enclosed(text)} IS NOT NULL THEN named_struct({', '.join(parts)}) END"


def same_type(left: DataType, right: DataType) -> bool:
    """Equal but for what may be null."""
    if isinstance(left, Struct) and isinstance(right, Struct):
        return len(left.fields) == len(right.fields) and all(
            a.name == b.name and same_type(a.type, b.type) for a, b in zip(left.fields, right.fields, strict=True)
        )
    if isinstance(left, Array) and isinstance(right, Array):
        return same_type(left.element, right.element)
    if isinstance(left, Map) and isinstance(right, Map):
        return same_type(left.key, right.key) and same_type(left.value, right.value)
    return left == right


def _always_fits(source: DataType, target: DataType) -> bool:
    """No value of `source` fails as `target`."""
    if not isinstance(source, str) or not isinstance(target, str):
        return False
    if target in _WIDER.get(source, ()) or target == "string":
        return True
    wanted = decimal_parts(target)
    if wanted is None:
        return (source, target) in {("date", "timestamp"), ("date", "timestamp_ntz"), ("timestamp", "date"), ("timestamp_ntz", "date")}
    have = decimal_parts(source) or ((_DIGITS[source], 0) if source in _DIGITS else None)
    return have is not None and wanted[1] >= have[1] and wanted[0] - wanted[1] >= have[0] - have[1]
