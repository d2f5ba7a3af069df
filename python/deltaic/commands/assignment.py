"""Assignments: what SET and INSERT put into each column, as one Spark SQL expression for each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from deltaic.commands.store_assignment import Casting, assigned, null_of
from deltaic.errors import InvalidArgumentError, InvalidTypeError
from deltaic.protocol.schema import DataType, Field, Schema, Struct, split_path
from deltaic.relation.literal import col, lit

if TYPE_CHECKING:
    from deltaic.engine.engine import Engine


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
