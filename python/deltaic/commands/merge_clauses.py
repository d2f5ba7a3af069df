"""The clauses of a merge: as the user wrote them (`Clause`), and with resolved columns (`BoundClause`)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from sqlglot import exp

from deltaic.commands import invariants
from deltaic.commands.assignment import Assignments
from deltaic.commands.store_assignment import as_cast, as_implicit_cast
from deltaic.errors import DeltaError, InvalidArgumentError, SchemaMismatchError, UnsupportedFeatureError
from deltaic.plan.expression import Expression, column, null
from deltaic.planning.columns import narrowed
from deltaic.protocol.evolution import merge_schemas, retyped
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
)
from deltaic.protocol.widening import is_widening
from deltaic.spark_sql.expression import conjuncts_of
from deltaic.sql_text import MAY_HOLD_QUERY, opens_query, quote_name, tokens

if TYPE_CHECKING:
    from deltaic.commands.merge import MergeSpec
    from deltaic.engine.engine import Engine

Kind: TypeAlias = Literal["matched", "not_matched", "not_matched_by_source"]
Action: TypeAlias = Literal["update", "delete", "insert"]

_OF_AGGREGATE = re.compile(r"(an aggregate|the aggregate function \w+) cannot stand")
"""Matches the errors of both engines about an aggregate in an expression on rows."""
_HIDDEN_ALIAS = re.compile(r"`?\b__deltaic_\w+`?\.")
"""Matches the qualifier of a relation to which the user gave no alias."""


@dataclass(frozen=True, eq=False)
class Clause:
    """A clause. `values`: None in an update or insert of all columns of the source except those in
    `exclude`."""

    kind: Kind
    action: Action
    where: str | None = None
    values: Mapping[str, Any] | None = None
    exclude: tuple[str, ...] = ()

    def __str__(self) -> str:
        kind = self.kind.upper().replace("_", " ")
        return f"WHEN {kind}{'' if self.where is None else f' AND {self.where}'} THEN {self.action.upper()}"

    @property
    def place(self) -> str:
        """What errors about the clause's columns and values name, such as `UPDATE clause`."""
        return f"{self.action.upper()} clause"

    @property
    def is_star(self) -> bool:
        return self.values is None and self.action != "delete"


@dataclass(frozen=True, eq=False)
class BoundClause:
    """A clause whose condition and assignments are resolved. `number`: 1, 2, ... over all clauses. `scope`:
    the relations that the clause can use, by alias; the target has its evolved schema."""

    number: int
    clause: Clause
    where: Expression | None
    assignments: Assignments | None
    scope: Mapping[str, Schema]

    def described(self, engine: Engine) -> dict[str, str]:
        """Describes the clause for operationParameters, like delta-spark."""
        action: dict[str, str] = {"actionType": self.clause.action}
        return action if self.where is None else {"predicate": shown(engine, self.where), **action}


def shown(engine: Engine, condition: Expression) -> str:
    """Returns the text of a condition for operationParameters, without aliases that the user did not give."""
    return _HIDDEN_ALIAS.sub("", engine.shown_condition(condition, None))


def evolved_schema(
    target: Schema,
    source: Schema,
    clauses: tuple[Clause, ...],
    schema_mode: str | None,
    target_alias: str,
    *,
    widen: bool = False,
) -> Schema:
    """Returns the target's schema after schema evolution by the clauses, if schema_mode="merge". A clause
    with all columns adds every column of the source (with `widen` also its wider types). Any other clause
    adds the columns and fields that it assigns, with the fields inside, as far as the source has columns of
    the same names. With `widen`, a column that it assigns gets the wider type of the source's column. As in
    delta-spark, the assigned value does not matter: `info = null` adds the field `info.level` of the source.
    """
    if schema_mode != "merge":
        return target
    added: dict[str, Any] = {}
    for clause in clauses:
        if clause.is_star:
            excluded = _excluded(clause, source, target)
            added |= {item.name: item for item in source if item.name.lower() not in excluded}
    data = as_implicit_cast(Schema(item for item in source if item.name in added), target)
    schema = merge_schemas(target, data, widen=is_widening if widen else None)
    for clause in clauses:
        if clause.kind == "not_matched_by_source":
            continue  # such a clause cannot use the source's columns
        for key in clause.values or ():
            if (field := _assigned_field(key, schema, source, target_alias)) is not None:
                schema = merge_schemas(schema, Schema([field]))
            if widen and (wider := _wider_field(key, schema, source, target_alias)) is not None:
                schema = merge_schemas(schema, wider, widen=is_widening)
    return Schema(_in_order_of(source, schema, target)) if schema != target else target


def _in_order_of(source: Iterable[Field], fields: Iterable[Field], target: Iterable[Field]) -> list[Field]:
    """Returns the fields of `target` first, then the new ones in the order of the source, as delta-spark adds
    them; also within structs. An assignment of `z`, then of `a`, adds `a, z` if the source has them so."""
    of_source = {item.name.lower(): item.type for item in source}
    known = {item.name.lower(): item.type for item in target}

    def ordered(item: Field) -> Field:
        name = item.name.lower()
        inside, other, before = item.type, of_source.get(name), known.get(name)
        if not isinstance(inside, Struct) or not isinstance(other, Struct):
            return item
        kept = before.fields if isinstance(before, Struct) else ()
        return item.with_(type=Struct(_in_order_of(other.fields, inside.fields, kept)))

    places = {name: place for place, name in enumerate(of_source)}
    every = [ordered(item) for item in fields]
    added = [item for item in every if item.name.lower() not in known]
    added.sort(key=lambda item: places.get(item.name.lower(), len(places)))
    return [item for item in every if item.name.lower() in known] + added


def of_source(text: str, added: Set[str], spec: MergeSpec) -> str:
    """Returns a text of the user with the source's alias before the columns that schema evolution adds to the
    target: of the new column `extra`, `extra > 1` means the source's column, as it did before the table had
    one. `added`: the names of the new columns in lower case."""
    aliases = (spec.source_alias.lower(), spec.target_alias.lower())
    try:
        tree, _ = conjuncts_of(text)
    except DeltaError:  # only Spark can parse it
        return text
    starts = []
    for node in tree.find_all(exp.Column):
        first, *rest = node.parts
        is_qualified = bool(rest) and first.name.lower() in aliases
        if first.name.lower() in added and not is_qualified and node.find_ancestor(exp.Query) is None:
            starts.append(first.meta.get("start", 0))
    for start in sorted(starts, reverse=True):
        text = f"{text[:start]}{quote_name(spec.source_alias)}.{text[start:]}"
    return text


def with_source_columns(clause: Clause, added: Set[str], spec: MergeSpec) -> Clause:
    """Returns a clause for matched rows with `of_source` of its condition and values."""
    if clause.kind != "matched" or not added:
        return clause
    where = None if clause.where is None else of_source(clause.where, added, spec)
    values = clause.values and {
        key: of_source(value, added, spec) if isinstance(value, str) else value
        for key, value in clause.values.items()
    }
    return replace(clause, where=where, values=values)


def _wider_field(key: Any, schema: Schema, source: Schema, target_alias: str) -> Schema | None:
    """Returns a schema of an assigned column with the types that the source's column of the same name has.
    None if one of the two has no such column, or if no cast converts its type."""
    for path in _paths_of(key, target_alias):
        if _has(schema, path) and _has(source, path):
            data = narrowed(source, path_text(path))
            known = schema.field(data.name)
            with suppress(SchemaMismatchError):
                return as_cast(Schema([known.with_(type=retyped(known.type, data.type, _are_plain))]), schema)
    return None


def _are_plain(*types: DataType) -> bool:
    return not any(isinstance(each, Struct | Array | Map) for each in types)


def _assigned_field(key: Any, schema: Schema, source: Schema, target_alias: str) -> Field | None:
    """Returns the source's column whose fields an assignment adds to the table; None if the source has no
    column of that name. For a nested key, it is a struct with only that field."""
    path = next((path for path in _paths_of(key, target_alias) if _has(source, path)), None)
    if path is None:
        return None
    field = narrowed(source, path_text(path))
    known = schema.get(field.name)
    return field if known is None else field.with_(type=retyped(field.type, known.type, _keeps_type))


def _paths_of(key: Any, target_alias: str) -> list[Sequence[str]]:
    """Returns the columns that the key of an assignment may mean, the likelier one first: `t.a` is column `a`
    of the table with the alias `t`, or field `a` of column `t`. Empty for a key that is no text."""
    if not isinstance(key, str):
        return []
    parts = split_path(key)
    is_qualified = parts[0].lower() == target_alias.lower() and len(parts) > 1
    return [parts[1:], parts] if is_qualified else [parts]


def _keeps_type(source: DataType, target: DataType) -> bool:
    """True if the table's type stays as it is: values of `source` are cast to it. False for void, and for
    types whose fields decide."""
    nested = isinstance(target, Struct | Array | Map) and type(source) is type(target)
    return target != "void" and not nested


def _has(schema: Schema, path: Sequence[str]) -> bool:
    inside: DataType = Struct(schema.fields)
    for part in path:
        fields = (
            [item for item in inside.fields if item.name.lower() == part.lower()]
            if isinstance(inside, Struct)
            else []
        )
        if not fields:
            return False
        inside = fields[0].type
    return True


def bind(
    engine: Engine, clause: Clause, number: int, target: Schema, source: Schema, spec: MergeSpec
) -> BoundClause:
    """Resolves a clause. Unknown columns are an InvalidArgumentError, and types that never fit a
    SchemaMismatchError. So is, in a clause with all columns and without schema evolution, a column or field
    of the target that the source lacks, as in delta-spark."""
    of_target, of_source = {spec.target_alias: target}, {spec.source_alias: source}
    scopes = {"matched": of_target | of_source, "not_matched": of_source, "not_matched_by_source": of_target}
    scope = scopes[clause.kind]
    where = None if clause.where is None else _condition(engine, clause, clause.where, scope)
    if clause.action == "delete":
        return BoundClause(number, clause, where, None, scope)
    evolves = spec.schema_mode == "merge"
    values = (
        clause.values
        if clause.values is not None
        else _star(engine, clause, target, source, spec.source_alias, evolves)
    )
    keeps = clause.is_star and clause.action == "update"
    try:
        assignments = Assignments(target, values, spec.target_alias, fills=evolves, keeps=keeps)
    except InvalidArgumentError as error:
        if not error.message.startswith("no such column"):
            raise
        raise _unresolved(error, clause.place, of_target) from None
    if clause.action == "insert" and (nested := assignments.nested) is not None:
        raise UnsupportedFeatureError(
            "[DELTA_UNSUPPORTED_NESTED_FIELD_IN_OPERATION] an insert sets no single field of a struct",
            found=path_text(nested),
            expected="named_struct(...) as the value of the whole column",
        ).with_values(path=nested, operation=f"{clause.place} of MERGE operation")
    return BoundClause(number, clause, where, assignments, scope)


def _star(
    engine: Engine, clause: Clause, target: Schema, source: Schema, source_alias: str, evolves: bool
) -> dict[str, Expression]:
    excluded = _excluded(clause, source, target)
    if not evolves:
        required = [item for item in target if item.name.lower() not in excluded]
        if engine.is_embedded:  # the table computes these; delta-spark requires them like any other column
            required = [item for item in required if not invariants.is_computed(item)]
        _check_complete(clause, required, source, source_alias)
    values: dict[str, Expression] = {}
    for item in source:
        field = target.get(item.name)
        if item.name.lower() in excluded or field is None:
            continue
        values[quote_name(field.name)] = column(source_alias, item)
    if evolves and clause.action == "update":
        values = _by_fields(engine, values)
    if not values:
        condition = "" if len(target) else "[DELTA_MERGE_INTO_EMPTY_SCHEMA_TARGET] "
        raise InvalidArgumentError(
            f"{condition}the source has no column of the target", found=", ".join(source.names)
        )
    return values


def _by_fields(engine: Engine, values: dict[str, Expression]) -> dict[str, Expression]:
    """Returns the assignments, with those to structs replaced by assignments to their fields if the engine's
    rules demand it: `v` becomes `v.a` and `v.b`."""
    has_structs = any(isinstance(value.type, Struct) for value in values.values())
    if not has_structs or not engine.assignment_rules.star_by_fields:
        return values
    fields: dict[str, Expression] = {}
    for name, value in values.items():
        inside = value.type.fields if isinstance(value.type, Struct) else None
        if inside is None:
            fields[name] = value
        else:
            within = {f"{name}.{quote_name(item.name)}": value.field(item) for item in inside}
            fields |= _by_fields(engine, within)
    return fields


def _check_complete(clause: Clause, required: Iterable[Field], source: Schema, source_alias: str) -> None:
    missing = [column.name for column in required if source.get(column.name) is None]
    if missing:
        error = SchemaMismatchError(
            f"[DELTA_MERGE_UNRESOLVED_EXPRESSION] {clause.action} of all columns needs each column of the"
            " table in the source",
            where=", ".join(missing),
            found=", ".join(source.names),
            expected="schema evolution, or a clause that names its columns",
        )
        raise error.with_values(
            column=quote_name(missing[0]), clause=clause.place, columns=_qualified({source_alias: source})
        )


def _excluded(clause: Clause, source: Schema, target: Schema) -> set[str]:
    """Returns the excluded names in lower case. A name that neither the source nor the target has is an
    error."""
    return {
        (target if source.get(name) is None else source).field(name).name.lower() for name in clause.exclude
    }


def conditions(clauses: list[BoundClause]) -> list[Expression]:
    return [bound.where for bound in clauses if bound.where is not None]


def chosen(engine: Engine, clauses: list[BoundClause]) -> Expression:
    """Returns an expression for the number of the first clause that applies to a row; null if there is none.
    A clause whose condition is null does not apply."""
    whens: list[str | Expression] = []
    for bound in clauses:
        if bound.where is None:
            number = str(bound.number)
            return engine.compose(("CASE", *whens, f" ELSE {number} END") if whens else (number,), "integer")
        whens += [" WHEN ", bound.where, f" THEN {bound.number}"]
    return engine.compose(("CASE", *whens, " END"), "integer") if whens else null("integer")


def resolve_in_merge(
    engine: Engine, text: str, scope: Mapping[str, Schema], place: str, *, queries: bool = False
) -> Expression:
    """Resolves a condition of MERGE, which must be deterministic. `place`: the name of the condition in
    errors, such as `UPDATE condition`."""
    operation = f"{place} of MERGE operation"
    if not queries and _holds_query(text):
        raise UnsupportedFeatureError(
            "a subquery cannot stand in this condition of MERGE", where=place, found=repr(text[:200])
        ).with_values(operation=operation, condition=f"({text})")
    with errors_of(place, scope):
        try:
            resolved = engine.resolve(text, scope, queries=queries)
        except InvalidArgumentError as error:
            if _OF_AGGREGATE.search(error.message) is None:
                raise
            refused = InvalidArgumentError(
                "an aggregate cannot stand in a condition of MERGE", found=repr(text)
            )
            raise refused.with_values(operation=operation, predicate=f"(condition = ({text}))") from None
    if not resolved.deterministic:
        refused = InvalidArgumentError("a condition of MERGE must be deterministic", found=repr(text[:200]))
        raise refused.with_values(operation=operation, predicate=f"(condition = ({text})).")
    return resolved


def _holds_query(text: str) -> bool:
    """True if an expression contains a subquery."""
    if not isinstance(text, str) or MAY_HOLD_QUERY.search(text) is None:
        return False
    found = [token for token in tokens(text) if token.kind != "comment"]
    return any(opens_query(found, index) for index in range(len(found)))


def _condition(engine: Engine, clause: Clause, text: str, scope: Mapping[str, Schema]) -> Expression:
    """Resolves the condition of a clause, and checks that it is a boolean. On Spark it holds no subquery:
    Spark does not find the columns of a correlated one between the steps of a merge."""
    place = f"{clause.action.upper()} condition"
    resolved = resolve_in_merge(engine, text, scope, place, queries=engine.is_embedded)
    if resolved.type not in ("boolean", "void"):
        raise SchemaMismatchError(
            "a condition must be a boolean", where=repr(text), found=type_name(resolved.type)
        )
    return resolved


@contextmanager
def errors_of(place: str, scope: Mapping[str, Schema]) -> Iterator[None]:
    """Adds the place, such as `UPDATE clause`, and the columns of `scope` to errors about unknown columns."""
    try:
        yield
    except InvalidArgumentError as error:
        if "unresolved" not in error.values:
            raise
        raise _unresolved(error, place, scope) from None


def _unresolved(error: InvalidArgumentError, place: str, scope: Mapping[str, Schema]) -> InvalidArgumentError:
    path = error.values.get("path")
    column = ".".join(map(quote_name, path)) if isinstance(path, tuple) else error.values.get("unresolved")
    message = f"[DELTA_MERGE_UNRESOLVED_EXPRESSION] {error.message.removeprefix('[UNRESOLVED_COLUMN] ')}"
    unresolved = InvalidArgumentError(message, where=error.where, found=error.found, expected=error.expected)
    return unresolved.with_values(
        **{**error.values, "column": column, "clause": place, "columns": _qualified(scope)}
    )


def _qualified(scope: Mapping[str, Schema]) -> tuple[str, ...]:
    """Returns the columns of relations with their aliases, but not with an alias that the user did not
    write."""
    return tuple(
        quote_name(name) if alias.startswith("__deltaic_") else f"{quote_name(alias)}.{quote_name(name)}"
        for alias, schema in scope.items()
        for name in schema.names
    )
