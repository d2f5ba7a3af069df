"""Assignments of SET and INSERT: one expression for the new value of each column."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from deltaic.commands import defaults
from deltaic.commands.store_assignment import Casting, assigned, same_type, stored_type
from deltaic.errors import InvalidArgumentError, InvalidTypeError, SchemaMismatchError, most_similar, shown
from deltaic.plan.expression import Expression, column, null
from deltaic.plan.literal import lit
from deltaic.plan.nodes import Data, Plan, Project
from deltaic.planning.literals import is_utc
from deltaic.protocol.schema import DataType, Field, Schema, Struct, path_text, split_path

if TYPE_CHECKING:
    from deltaic.engine.engine import AssignmentRules, Engine


_NOT_ALONE = "only fields of structs can be assigned alone"


@dataclass
class _Node:
    """The assignment to a column or field: `value`, or those of its fields."""

    value: str | Expression | None = None
    fields: dict[str, _Node] = field(default_factory=dict)

    def first_path(self, path: tuple[str, ...]) -> tuple[str, ...]:
        """Returns the path of the first assignment in the node at `path`."""
        node = self
        while node.value is None:
            name, node = next(iter(node.fields.items()))
            path = (*path, name)
        return path


def check_casting(casting: str) -> None:
    if casting not in ("strict", "try"):
        raise InvalidArgumentError("unknown casting", found=repr(casting), expected="'strict' or 'try'")


def as_sql(value: Any) -> str | Expression:
    """Converts a value of `set=`: text is SQL, an Expression stays, anything else becomes a literal."""
    if isinstance(value, Expression):
        return value
    if isinstance(value, str):
        if not value.strip():
            raise InvalidArgumentError("the expression is empty", found=repr(value))
        return value
    return lit(value)


def check_assignments(values: object) -> None:
    """Raises InvalidTypeError for anything but a mapping."""
    if not isinstance(values, Mapping):
        raise InvalidTypeError(
            "assignments must be a mapping of columns to expressions",
            found=shown(values),
            expected="{'column': 'SQL'}",
        )


class Assignments:
    """`set=` of UPDATE and MERGE, or `values=` of an insert, checked against the table's schema.

    Keys are `column`, `` `column` `` or `struct.field`, with or without the target's alias before it. Unknown
    columns and two assignments to one column are an InvalidArgumentError.
    `fills`: True to set fields that an assigned struct lacks to null, as with schema evolution; else they are
    an error. `keeps`: True to let such fields keep their values instead, as UPDATE SET * does.
    """

    def __init__(
        self,
        schema: Schema,
        values: Mapping[str, Any],
        alias: str,
        *,
        fills: bool = False,
        keeps: bool = False,
    ) -> None:
        self._schema, self._alias, self._fills, self._keeps = schema, alias, fills, keeps
        self._roots: dict[str, _Node] = {}
        self._resolved: dict[str, Expression] = {}
        self._rules: AssignmentRules | None = None
        for key, value in values.items():
            self._put(key, as_sql(value))

    def _put(self, key: str, value: str | Expression) -> None:
        if not isinstance(key, str):
            raise InvalidTypeError("a column name must be a string", found=repr(key))
        path = self._path(key)
        node = self._roots.setdefault(path[0], _Node())
        for depth, part in enumerate(path[1:], start=1):
            if node.value is not None:
                raise _twice(key, path[:depth], path)
            node = node.fields.setdefault(part, _Node())
        if node.value is not None or node.fields:
            raise _twice(key, node.first_path(path), path)
        node.value = value

    def _path(self, key: str) -> tuple[str, ...]:
        if self._schema.get(key) is not None:
            return (self._schema.field(key).name,)
        parts = unqualified(split_path(key), self._schema, self._alias)
        try:
            path, _ = self._schema.find(parts)
        except InvalidArgumentError as error:
            if self._schema.get(parts[0]) is None:
                raise error.with_values(
                    path=tuple(split_path(key)), columns=most_similar(parts[-1], self._schema.names)
                ) from None
            parent = error.values.get("parent")
            if parent is not None and str(parent).startswith(("array<", "map<")):
                raise InvalidArgumentError(_NOT_ALONE, found=repr(key)) from None
            if parent is not None:
                raise
            unknown = InvalidArgumentError(
                "no such field", found=repr(path_text(parts)), expected=error.expected
            )
            raise unknown.with_values(**error.values) from None
        data_type: DataType = Struct(self._schema.fields)
        for part in path:
            if not isinstance(data_type, Struct):
                raise InvalidArgumentError(_NOT_ALONE, found=repr(key))
            data_type = next(item.type for item in data_type.fields if item.name == part)
        return path

    @property
    def columns(self) -> frozenset[str]:
        """The top-level columns with an assignment, also to one of their fields."""
        return frozenset(self._roots)

    @property
    def nested(self) -> tuple[str, ...] | None:
        """The path of the first assignment to a field of a struct; None if there is none."""
        paths = (node.first_path((name,)) for name, node in self._roots.items() if node.value is None)
        return next(paths, None)

    def values(self, engine: Engine, scope: Mapping[str, Schema]) -> list[Expression]:
        """Returns the user's expressions, for checks."""
        return [value for _, value in self.assigned(engine, scope)]

    def assigned(self, engine: Engine, scope: Mapping[str, Schema]) -> list[tuple[DataType, Expression]]:
        """Returns the type of each assigned column or field, with the user's expression for it."""
        values: list[tuple[DataType, Expression]] = []
        pending: list[tuple[DataType, _Node]] = [
            (self._schema.field(name).type, node) for name, node in self._roots.items()
        ]
        while pending:
            data_type, node = pending.pop()
            if node.value is not None:
                values.append((data_type, self._expression(engine, node.value, scope)))
            elif isinstance(data_type, Struct):
                pending += [
                    (item.type, node.fields[item.name])
                    for item in data_type.fields
                    if item.name in node.fields
                ]
        return values

    def _expression(self, engine: Engine, value: str | Expression, scope: Mapping[str, Schema]) -> Expression:
        """Resolves a user's text; the result is cached, as `scope` is the same in each call."""
        if isinstance(value, Expression):
            return value
        if value not in self._resolved:
            self._resolved[value] = engine.resolve(value, scope, queries=True)
        return self._resolved[value]

    def _rules_of(self, engine: Engine) -> AssignmentRules:
        """Returns the engine's rules. They are cached, as on Spark each of them is a call of the JVM."""
        if self._rules is None:
            self._rules = engine.assignment_rules
        return self._rules

    def expression(
        self,
        engine: Engine,
        item: Field,
        scope: Mapping[str, Schema],
        casting: Casting,
        kept: Expression | None,
    ) -> Expression:
        """Returns the column's new value. `kept`: the value of a column without an assignment; None: null."""
        node = self._roots.get(item.name)
        if node is None:
            return kept if kept is not None else null(item.type)
        return self._value(engine, node, item.type, (item.name,), scope, casting, kept)

    def _value(
        self,
        engine: Engine,
        node: _Node,
        data_type: DataType,
        path: tuple[str, ...],
        scope: Mapping[str, Schema],
        casting: Casting,
        kept: Expression | None,
    ) -> Expression:
        if node.value is not None:
            value = self._expression(engine, node.value, scope)
            try:
                return assigned(
                    engine,
                    value,
                    data_type,
                    path,
                    scope,
                    casting,
                    fills=self._fills,
                    kept=kept if self._keeps else None,
                    what="an assigned",
                    rules=lambda: self._rules_of(engine),
                )
            except SchemaMismatchError as error:
                error.with_values(expression=node.value if isinstance(node.value, str) else value.text)
                raise
        assert isinstance(data_type, Struct)
        parts: list[str | Expression] = []
        for item in data_type.fields:
            inner = None if kept is None else kept.field(item)
            child = node.fields.get(item.name)
            if child is not None:
                value = self._value(engine, child, item.type, (*path, item.name), scope, casting, inner)
            else:
                value = inner if inner is not None else null(item.type)
            parts += [", " if parts else "", f"{lit(item.name)}, ", value]
        return engine.compose(("named_struct(", *parts, ")"), data_type)


def unqualified(parts: tuple[str, ...], schema: Schema, alias: str) -> tuple[str, ...]:
    """Returns the path of an assigned column without the alias of its table. As in Spark, `t.a` is column `a`
    of the table `t`, and only if the table has no such column, field `a` of its column `t`."""
    if len(parts) == 1 or parts[0].lower() != alias.lower():
        return parts
    is_field = schema.get(parts[1]) is None and schema.get(parts[0]) is not None
    return parts if is_field else parts[1:]


def _twice(key: str, before: tuple[str, ...], path: tuple[str, ...]) -> InvalidArgumentError:
    error = InvalidArgumentError("a column is assigned twice, or as a whole and in part", found=repr(key))
    return error.with_values(columns=(".".join(before), ".".join(path)))


def cast_columns(
    rows: Plan, source: Data, schema: Schema, engine: Engine, casting: Casting | None, fills: bool
) -> Plan:
    """Casts the source's columns to the table's types by store assignment, like UPDATE and MERGE. Without
    `casting`, only casts are made that depend on the time zone, such as a timestamp without a zone in a
    column with one."""
    if casting is None and is_utc(engine.time_zone):  # Rust makes these conversions in UTC, without a query
        return rows
    columns, scope, is_cast = [], {source.alias: source.schema}, False
    defaulted = [
        item.name for item in schema if source.schema.get(item.name) is None and defaults.KEY in item.metadata
    ]
    for name in (*source.schema.names, *defaulted):
        of_table, of_source = schema.get(name), source.schema.get(name)
        value = column(source.alias, of_source or schema.field(name))
        if of_table is not None and of_source is not None:
            target = stored_type(of_source.type, of_table.type, casting)
            if not same_type(of_source.type, target):
                value, is_cast = (
                    assigned(
                        engine, value, target, (of_table.name,), scope, casting or "strict", fills=fills
                    ),
                    True,
                )
        columns.append((name, value))
    return Project(rows, tuple(columns), source.alias) if is_cast else rows
