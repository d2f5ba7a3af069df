"""The clauses of a merge: what users wrote, and each one with its columns resolved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from deltaic.commands import invariants
from deltaic.commands.assignment import Assignments
from deltaic.commands.store_assignment import Casting, same_type
from deltaic.errors import InvalidArgumentError, SchemaMismatchError
from deltaic.plan.expression import Expression, column, null
from deltaic.planning.columns import narrowed
from deltaic.planning.planned import check_deterministic
from deltaic.protocol.evolution import can_store, merge_schemas
from deltaic.protocol.schema import DataType, Field, Schema, Struct, path_text, quote_name, split_path, type_name

if TYPE_CHECKING:
    from deltaic.commands.merge import MergeSpec
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

    def __str__(self) -> str:
        kind = self.kind.upper().replace("_", " ")
        return f"WHEN {kind}{'' if self.where is None else f' AND {self.where}'} THEN {self.action.upper()}"

    @property
    def is_star(self) -> bool:
        return self.values is None and self.action != "delete"

    def described(self) -> dict[str, str]:
        """The clause as delta-spark writes it in operationParameters."""
        shown: dict[str, str] = {"actionType": self.action}
        return shown if self.where is None else {"predicate": self.where, **shown}


@dataclass(frozen=True, eq=False)
class Bound:
    """A clause with its number (1, 2, ... over all clauses), its condition and its assignments over what it sees: `scope`, with the
    (evolved) target."""

    number: int
    clause: Clause
    where: Expression | None
    assignments: Assignments | None
    scope: Mapping[str, Schema]


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
            excluded = _excluded(clause, source, target)
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


def bind(engine: Engine, clause: Clause, number: int, target: Schema, source: Schema, spec: MergeSpec) -> Bound:
    """InvalidArgumentError for unknown columns, SchemaMismatchError for types that never fit, and for a column or field of the target that
    a source of "all columns" has not, unless the schema evolves: delta-spark takes such a source with schema evolution alone."""
    of_target, of_source = {spec.target_alias: target}, {spec.source_alias: source}
    scopes = {"matched": of_target | of_source, "not_matched": of_source, "not_matched_by_source": of_target}
    scope = scopes[clause.kind]
    where = None if clause.where is None else _condition(engine, clause.where, scope)
    if clause.action == "delete":
        return Bound(number, clause, where, None, scope)
    evolves = spec.schema_mode == "merge"
    values = clause.values if clause.values is not None else _star(clause, target, source, spec.source_alias, spec.casting, evolves)
    try:
        assignments = Assignments(target, values, spec.target_alias, fills=evolves)
    except InvalidArgumentError as error:
        if not error.message.startswith("no such column"):
            raise
        message = f"[DELTA_MERGE_UNRESOLVED_EXPRESSION] {error.message}"
        raise InvalidArgumentError(message, found=error.found, expected=error.expected) from None
    return Bound(number, clause, where, assignments, scope)


def _star(clause: Clause, target: Schema, source: Schema, source_alias: str, casting: Casting, evolves: bool) -> dict[str, Expression]:
    excluded = _excluded(clause, source, target)
    if not evolves:
        _check_complete(clause, target, source, excluded)
    values: dict[str, Expression] = {}
    for item in source:
        wanted = target.get(item.name)
        if item.name.lower() in excluded or wanted is None:
            continue
        if casting == "strict" and not can_store(item.type, wanted.type):
            raise SchemaMismatchError(
                "the source's type does not fit the column's",
                where=f"column {wanted.name}",
                found=type_name(item.type),
                expected=type_name(wanted.type),
            )
        value = column(source_alias, item)
        if evolves and clause.action == "update":
            _expand(values, (wanted.name,), wanted.type, value)
        else:
            values[quote_name(wanted.name)] = value
    if not values:
        raise InvalidArgumentError("the source has no column of the target", found=", ".join(source.names))
    return values


def _check_complete(clause: Clause, target: Schema, source: Schema, excluded: set[str]) -> None:
    wanted = [column for column in target if column.name.lower() not in excluded and not invariants.is_computed(column)]
    missing = [column.name for column in wanted if source.get(column.name) is None]
    if missing:
        raise SchemaMismatchError(
            f"[DELTA_MERGE_UNRESOLVED_EXPRESSION] {clause.action} of all columns needs each column of the table in the source",
            where=", ".join(missing),
            found=", ".join(source.names),
            expected="schema evolution, or a clause that names its columns",
        )


def _expand(values: dict[str, Expression], path: tuple[str, ...], target: DataType, value: Expression) -> None:
    """An update that evolves the schema sets just the fields that the source has of a struct: the others keep their value."""
    if isinstance(target, Struct) and isinstance(value.type, Struct) and not same_type(value.type, target):
        by_name = {item.name.lower(): item for item in target.fields}
        for item in value.type.fields:
            field = by_name[item.name.lower()]
            _expand(values, (*path, field.name), field.type, value.field(item))
        return
    values[path_text(path) if len(path) > 1 else path[0]] = value


def _excluded(clause: Clause, source: Schema, target: Schema) -> set[str]:
    """In lower case, of names that at least one of the two has."""
    return {(target if source.get(name) is None else source).field(name).name.lower() for name in clause.exclude}


def conditions(clauses: list[Bound]) -> list[Expression]:
    return [bound.where for bound in clauses if bound.where is not None]


def chosen(engine: Engine, clauses: list[Bound]) -> Expression:
    """The number of the first clause that applies, else null. A condition that is null does not hold."""
    whens: list[str | Expression] = []
    for bound in clauses:
        if bound.where is None:
            number = str(bound.number)
            return engine.compose(("CASE", *whens, f" ELSE {number} END") if whens else (number,), "integer")
        whens += [" WHEN ", bound.where, f" THEN {bound.number}"]
    return engine.compose(("CASE", *whens, " END"), "integer") if whens else null("integer")


def resolve_in_merge(engine: Engine, text: str, scope: Mapping[str, Schema], *, queries: bool = False) -> Expression:
    """A condition of MERGE: errors about an aggregate say so."""
    try:
        return engine.resolve(text, scope, queries=queries)
    except InvalidArgumentError as error:
        if not error.message.startswith("an aggregate cannot stand"):
            raise
        raise InvalidArgumentError("an aggregate cannot stand in a condition of MERGE", found=repr(text)) from None


def _condition(engine: Engine, text: str, scope: Mapping[str, Schema]) -> Expression:
    """A condition must be a boolean over what its clause sees."""
    resolved = resolve_in_merge(engine, text, scope, queries=True)
    if resolved.type not in ("boolean", "void"):
        raise SchemaMismatchError("a condition must be a boolean", where=repr(text), found=type_name(resolved.type))
    check_deterministic(resolved, "a condition of MERGE")
    return resolved
