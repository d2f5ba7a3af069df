"""The clauses of a merge: what users wrote, and each one with its columns resolved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from deltaic.commands.assignment import Assignments
from deltaic.commands.store_assignment import Casting, same_type
from deltaic.errors import InvalidArgumentError, SchemaMismatchError
from deltaic.protocol.evolution import can_store, merge_schemas
from deltaic.protocol.schema import DataType, Field, Schema, Struct, path_text, split_path, type_name
from deltaic.relation.literal import col
from deltaic.scan.columns import narrowed

if TYPE_CHECKING:
    from deltaic.engine.engine import Engine

Kind: TypeAlias = Literal["matched", "not_matched", "not_matched_by_source"]
Action: TypeAlias = Literal["update", "delete", "insert"]


@dataclass(frozen=True, eq=False)
class Clause:
    """`values` None on an update or insert: all columns of the source but `exclude`."""

    kind: Kind
    action: Action
    where: str | None = None
    values: Mapping[str, Any] | None = None
    exclude: tuple[str, ...] = ()

    @property
    def is_star(self) -> bool:
        return self.values is None and self.action != "delete"

    def described(self) -> dict[str, str]:
        """As delta-spark writes it in operationParameters."""
        shown: dict[str, str] = {"actionType": self.action}
        return shown if self.where is None else {"predicate": self.where, **shown}


@dataclass(frozen=True, eq=False)
class Bound:
    """A clause with its number (1, 2, ... over all clauses) and its assignments against the (evolved) target."""

    number: int
    clause: Clause
    assignments: Assignments | None


def evolved_schema(
    target: Schema, source: Schema, clauses: tuple[Clause, ...], schema_mode: str | None, target_alias: str, *, widen: bool = False
) -> Schema:
    """The target's schema with what the clauses bring, where schema_mode="merge": star clauses every column of the source (with `widen` its
    wider types, too), others the columns and fields that they assign and only the source has."""
    if schema_mode != "merge":
        return target
    wanted: dict[str, Any] = {}
    for clause in clauses:
        if clause.is_star:
            excluded = _excluded(clause, source)
            wanted |= {item.name: item for item in source if item.name.lower() not in excluded}
    schema = merge_schemas(target, Schema(item for item in source if item.name in wanted), widen=widen)
    for clause in clauses:
        for key in clause.values or ():
            if (brought := _brought(key, schema, source, target_alias)) is not None:
                schema = merge_schemas(schema, Schema([brought]))
    return schema


def _brought(key: str, schema: Schema, source: Schema, target_alias: str) -> Field | None:
    """The source's column, with one branch for a nested key, that an assignment names and the table does not have."""
    if not isinstance(key, str):
        return None
    paths = [split_path(key)]
    if paths[0][0].lower() == target_alias.lower() and len(paths[0]) > 1:
        paths.append(paths[0][1:])
    if schema.get(key) is not None or any(_has(schema, path) for path in paths):
        return None
    return next((narrowed(source, path_text(path)) for path in paths if _has(source, path)), None)


def _has(schema: Schema, path: Sequence[str]) -> bool:
    inside: DataType = Struct(schema.fields)
    for part in path:
        found = [item for item in inside.fields if item.name.lower() == part.lower()] if isinstance(inside, Struct) else []
        if not found:
            return False
        inside = found[0].type
    return True


def bind(clause: Clause, number: int, target: Schema, source: Schema, source_alias: str, target_alias: str, casting: Casting) -> Bound:
    """InvalidArgumentError for unknown columns, SchemaMismatchError for types that never fit."""
    if clause.action == "delete":
        return Bound(number, clause, None)
    values = clause.values if clause.values is not None else _star(clause, target, source, source_alias, casting)
    return Bound(number, clause, Assignments(target, values, target_alias))


def _star(clause: Clause, target: Schema, source: Schema, source_alias: str, casting: Casting) -> dict[str, str]:
    excluded = _excluded(clause, source)
    values: dict[str, str] = {}
    for item in source:
        column = target.get(item.name)
        if item.name.lower() in excluded or column is None:
            continue
        if casting == "strict" and not can_store(item.type, column.type):
            raise SchemaMismatchError(
                "the source's type does not fit the column's",
                where=f"column {column.name}",
                found=type_name(item.type),
                expected=type_name(column.type),
            )
        _expand(values, (column.name,), column.type, item.type, f"{col(source_alias)}.{col(item.name)}", clause.action)
    if not values:
        raise InvalidArgumentError("the source has no column of the target", found=", ".join(source.names))
    return values


def _expand(values: dict[str, str], path: tuple[str, ...], target: DataType, source: DataType, text: str, action: Action) -> None:
    """An update sets just the fields that the source has of a struct: the others keep their value."""
    if action == "update" and isinstance(target, Struct) and isinstance(source, Struct) and not same_type(source, target):
        by_name = {item.name.lower(): item for item in target.fields}
        for item in source.fields:
            field = by_name[item.name.lower()]
            _expand(values, (*path, field.name), field.type, item.type, f"{text}.{col(item.name)}", action)
        return
    values[path_text(path) if len(path) > 1 else path[0]] = text


def _excluded(clause: Clause, source: Schema) -> set[str]:
    return {source.field(name).name.lower() for name in clause.exclude}


def conditions(clauses: list[Bound]) -> list[str]:
    return [bound.clause.where for bound in clauses if bound.clause.where is not None]


def chosen(clauses: list[Bound]) -> str:
    """SQL: the number of the first clause that applies, else null. A condition that is null does not hold."""
    text = "CASE"
    for bound in clauses:
        if bound.clause.where is None:
            return f"{text} ELSE {bound.number} END" if text != "CASE" else str(bound.number)
        text += f" WHEN ({bound.clause.where}\n) THEN {bound.number}"
    return f"{text} END" if clauses else "CAST(NULL AS INT)"


def check_conditions(engine: Engine, clauses: list[Bound], scope: Mapping[str, Schema]) -> None:
    """Conditions must be booleans over what their clause sees."""
    for text in conditions(clauses):
        resolved = engine.resolve(text, scope)
        if resolved.type not in ("boolean", "void"):
            raise SchemaMismatchError("a condition must be a boolean", where=repr(text), found=type_name(resolved.type))
