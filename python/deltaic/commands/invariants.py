"""Conditions that every new row must satisfy: CHECK constraints, column invariants, the lengths of CHAR and
VARCHAR, and the condition of an overwrite. The writer of files checks NOT NULL, except in the
fields of null structs.

Sources: PROTOCOL.md, "CHECK Constraints": `delta.constraints.<name>` in the table's configuration; "Column
Invariants": `delta.invariants` in a column's metadata, `{"expression": {"expression": "x > 3"}}`. As in
delta-spark (CheckDeltaInvariant), a row for which a condition is null violates it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from deltaic.commands import defaults
from deltaic.commands.data_files import hidden_field
from deltaic.errors import (
    ConstraintViolationError,
    DeltaError,
    InvalidArgumentError,
    ProtocolError,
    SchemaMismatchError,
)
from deltaic.plan.expression import COUNT, Expression, Pieces, column_at, columns_of
from deltaic.plan.failures import failing_with
from deltaic.plan.nodes import STORED_ALIAS, Aggregate, Data, Filter, Plan, Project, Scan
from deltaic.protocol.column_mapping import physical_name
from deltaic.protocol.properties import CONSTRAINT_PREFIX, constraint_names
from deltaic.protocol.schema import (
    CHAR_TYPES,
    Array,
    DataType,
    Field,
    Map,
    Schema,
    Struct,
    is_shape,
    path_text,
    type_name,
    user_types_of,
    walk,
)
from deltaic.spark_sql.char_types import length_conditions

if TYPE_CHECKING:
    from deltaic.commands.write_job import Write
    from deltaic.engine.engine import Engine
    from deltaic.log.snapshot import Snapshot
    from deltaic.protocol.actions import Metadata

KEY = "delta.invariants"
SHOWN_CHARACTERS = 100
"""Maximum characters of each value of a row in an error message; a longer value is cut."""
_NESTED = ("string", "boolean", "byte", "short", "integer", "long")
"""Types whose values an error shows also within arrays, maps and structs; both engines cast these to the same
text."""


@dataclass(frozen=True)
class Rule:
    """A SQL condition that must be true for every new row. `message`, `expected`: of the error for a row that
    violates it. `types`: the types that the condition may have."""

    message: str
    condition: str
    expected: str
    types: tuple[str, ...] = ("boolean", "void")


def rules_of(metadata: Metadata, schema: Schema, engine: Engine) -> list[Rule]:
    """Returns the rules of a table: constraints sorted by name, then invariants and lengths in the order of
    the columns. On Spark, a struct with a NOT NULL field is not null either, as in delta-spark; the embedded
    engine takes Arrow's null structs, whose fields have no values."""
    rules = [*_constraints(metadata.configuration), *_column_rules(schema)]
    return rules if engine.is_embedded else [*rules, *_struct_rules(schema)]


def rules_of_where(job: Write, schema: Schema, engine: Engine) -> list[Rule]:
    """Returns the rule that new rows of an overwrite match its condition. On Spark the rule leaves out
    operands of AND that read no column, as in delta-spark: FALSE replaces no row and accepts every new
    one."""
    where = job.where if job.checks_where else None
    if where is None:
        return []
    condition = where
    if not engine.is_embedded and not job.where_of_partitions:
        operands = engine.resolve(where, {STORED_ALIAS: schema}).conjuncts
        condition = " AND ".join(operand.enclosed for operand in operands if operand.columns)
    types = ("boolean",) if job.same_types else ("boolean", "void")
    rule = Rule("a new row does not match the where of the overwrite", condition, where, types)
    return [rule] if condition else []


def check_nested_not_null(schema: Schema, engine: Engine) -> None:
    """Raises InvalidArgumentError for a NOT NULL field within an array or map, unless the engine takes it."""
    nested = None if engine.takes_nested_not_null else next(_with_not_null(schema), None)
    if nested is not None:
        path, part = nested
        raise InvalidArgumentError(
            "[DELTA_NESTED_NOT_NULL_CONSTRAINT] a field within an array or map cannot be NOT NULL on Spark",
            where=path_text(path),
            found=f"NOT NULL in the type of its {part}",
            expected="no NOT NULL there",
        ).with_values(parent=".".join(path), part=part)


def _with_not_null(
    fields: Iterable[Field], above: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yields the path of each array and map that has a NOT NULL field, and the part of it that has the field:
    "element", "key" or "value". `above`: the path of the struct with these fields."""
    for item in fields:
        path, kind = (*above, item.name), item.type
        if user_types_of(item):
            continue
        if isinstance(kind, Struct):
            yield from _with_not_null(kind.fields, path)
        elif isinstance(kind, (Array, Map)):
            parts = ("element",) if isinstance(kind, Array) else ("key", "value")
            for part in parts:
                fields_in = walk([Field("", getattr(kind, part))])
                if any(not each.nullable for _, each in fields_in):
                    yield path, part


def _struct_rules(
    fields: Iterable[Field], above: tuple[str, ...] = (), may_be_null: bool = False
) -> Iterator[Rule]:
    """Yields the rules of NOT NULL fields in structs that may be null. `above`: the path of the struct with
    these fields. `may_be_null`: True if this struct, or one around it, may be null."""
    for item in fields:
        path = (*above, item.name)
        if may_be_null and not item.nullable:
            message = f"column {'.'.join(path)} is NOT NULL and a row has a null there"
            yield Rule(message, f"{path_text(path)} IS NOT NULL", "a value")
        if isinstance(item.type, Struct) and not user_types_of(item):
            yield from _struct_rules(item.type.fields, path, may_be_null or item.nullable)


def _constraints(configuration: Mapping[str, str]) -> Iterator[Rule]:
    for name in constraint_names(configuration):
        condition = configuration[CONSTRAINT_PREFIX + name]
        yield Rule(f"a row breaks the CHECK constraint {name}", condition, condition)


def _column_rules(schema: Schema) -> Iterator[Rule]:
    for name, condition in conditions(schema):
        yield Rule(f"a row breaks the invariant of column {name}", condition, condition)
    for field in schema:
        for where, kind, condition in length_conditions(field):
            yield Rule(f"column {where} has a value that is longer than its type takes", condition, kind)


def conditions(schema: Schema) -> Iterator[tuple[str, str]]:
    """Yields (column, SQL condition) of each invariant."""
    for path, item in walk(schema):
        text = item.metadata.get(KEY)
        if text is None:
            continue
        name = ".".join(path)
        try:
            condition = json.loads(text)["expression"]["expression"]
        except (TypeError, ValueError, KeyError) as error:
            raise ProtocolError(
                "an invariant is not as PROTOCOL.md says", where=f"column {name}", found=repr(text)[:80]
            ) from error
        if not isinstance(condition, str):
            raise ProtocolError(
                "an invariant's expression is not text", where=f"column {name}", found=repr(text)[:80]
            )
        yield name, condition


def has_checks(field: Field) -> bool:
    """True if the values of a top-level column are checked, other than by NOT NULL and CHECK constraints."""
    keys = (CHAR_TYPES, "delta.generationExpression", "delta.identity.start")
    return bool(field.metadata.get(KEY)) or any(key in field.metadata for key in keys)


def is_computed(field: Field) -> bool:
    """True for generated and identity columns."""
    return "delta.generationExpression" in field.metadata or "delta.identity.start" in field.metadata


def checked(
    plan: Plan,
    schema: Schema,
    rules: Sequence[Rule],
    engine: Engine,
    alias: str = "checked",
    *,
    hidden: Sequence[str] = (),
) -> Plan:
    """Adds the check of rules to the rows of `plan`, which has the columns of `schema` and then `hidden`. The
    first row that violates a rule raises ConstraintViolationError, with the values that the rule reads. The
    check is part of a column that is written, so no engine can skip it: `CASE WHEN NOT coalesce(id > 0,
    false) THEN raise_error(...) ELSE id END`."""
    if not rules:
        return plan
    fields = (*schema, *(hidden_field(name) for name in hidden))
    # The check is added to a column of a primitive type if there is one, as nested values are faster if they
    # are only copied. Columns of type void are not written, so they are not used.
    typed = [number for number, field in enumerate(schema) if field.type != "void"]
    place = next(
        (number for number in typed if isinstance(schema[number].type, str)), typed[0] if typed else 0
    )
    whens: list[str | Expression] = []
    for rule in rules:
        resolved = engine.resolve(rule.condition, {STORED_ALIAS: schema})
        if resolved.type not in rule.types:
            raise SchemaMismatchError(
                "a condition must be a boolean", where=repr(rule.condition), found=type_name(resolved.type)
            )
        shown = _shown(sorted(path for _, path in resolved.columns), schema)
        failure = failing_with(shown, ConstraintViolationError, rule.message, expected=rule.expected)
        whens += [" WHEN ", *_broken(resolved), " THEN ", *failure]
    columns = list(columns_of(STORED_ALIAS, fields))
    name, value = columns[place]
    # The value must be part of the expression: an optimizer could replace a column that is always null, and
    # skip the check.
    columns[place] = (name, engine.compose(("CASE", *whens, " ELSE ", value, " END"), value.type))
    return Project(under_stored_alias(plan, fields), tuple(columns), alias)


def as_stored(
    plan: Plan,
    schema: Schema,
    rules: Sequence[Rule],
    engine: Engine,
    partition_columns: Sequence[str],
    *,
    hidden: Sequence[str] = (),
) -> Plan:
    """Returns the rows of `plan`, as `checked` takes them, with null for empty texts in partition columns:
    the log stores both alike. Without rules, only NOT NULL columns need it."""
    emptied = {
        item.name
        for item in schema
        if item.name in partition_columns and item.type == "string" and (rules or not item.nullable)
    }
    if not emptied:
        return plan
    fields = (*schema, *(hidden_field(name) for name in hidden))
    columns = [
        (name, engine.compose(("nullif(", value, ", '')"), "string") if name in emptied else value)
        for name, value in columns_of(STORED_ALIAS, fields)
    ]
    return Project(under_stored_alias(plan, fields), tuple(columns), STORED_ALIAS)


def under_stored_alias(plan: Plan, fields: Iterable[Field]) -> Plan:
    """Returns the rows of `plan`, which has the columns `fields`, under the alias STORED_ALIAS."""
    if isinstance(plan, (Data, Project)):
        return replace(plan, alias=STORED_ALIAS)
    return Project(plan, columns_of(getattr(plan, "alias", "u"), fields), STORED_ALIAS)


def _broken(condition: Expression) -> Pieces:
    """Returns the condition that a row violates the rule with this condition."""
    return ("NOT coalesce(", condition, ", false)")


def _shown(paths: Sequence[tuple[str, ...]], schema: Schema) -> list[tuple[str, Pieces]]:
    """Returns (name, SQL text) of the values that an error shows: those of primitive types, and arrays, maps
    and structs of texts and whole numbers, for example `a = [x, too long]`."""
    shown: list[tuple[str, Pieces]] = []
    for path in paths:
        data_type = schema.find(path)[1].type
        if not _is_shown(data_type):
            continue
        value = column_at(STORED_ALIAS, path, data_type)
        text: Pieces = ("hex(", value, ")") if data_type == "binary" else ("CAST(", value, " AS STRING)")
        shown.append((path_text(path), ("substring(", *text, f", 1, {SHOWN_CHARACTERS})")))
    return shown


def _is_shown(data_type: DataType, *, nested: bool = False) -> bool:
    """True if an error shows values of this type as text. `nested`: the type is a part of another one."""
    if isinstance(data_type, Array):
        return _is_shown(data_type.element, nested=True)
    if isinstance(data_type, Map):
        return _is_shown(data_type.key, nested=True) and _is_shown(data_type.value, nested=True)
    if isinstance(data_type, Struct):
        return all(_is_shown(item.type, nested=True) for item in data_type.fields)
    return (
        data_type in _NESTED if nested else data_type not in ("variant", "void") and not is_shape(data_type)
    )


@contextmanager
def counting(engine: Engine, plans: Sequence[Plan], schema: Schema, rules: Sequence[Rule]) -> Iterator[None]:
    """Adds the number of rows that violate the rule to a ConstraintViolationError that is raised in the
    block. `plans`: the rows before `checked`, which are computed again."""
    try:
        yield
    except ConstraintViolationError as error:
        rule = next((rule for rule in rules if rule.message == error.message), None)
        if rule is None or not all(engine.is_cheap(engine.run(plan)) for plan in plans):
            raise
        try:
            count = 0
            for plan in plans:
                condition = engine.resolve(rule.condition, {STORED_ALIAS: schema})
                count += broken_rows(engine, under_stored_alias(plan, schema), [condition])[0]
        except DeltaError:
            # counting failed because of another row, so the first error is raised without the number
            raise error from None
        found = found_text(count, None if error.found is None else str(error.found))
        raise ConstraintViolationError(
            error.message, where=error.where, found=found, expected=error.expected
        ) from None


def found_text(count: int, example: str | None) -> str:
    """Returns what an error has found, for example `2 rows, one with id = 5`. `example`: values of a row."""
    rows = f"{count} row{'' if count == 1 else 's'}"
    return f"{rows}, {'' if count == 1 else 'one '}with {example}" if example else rows


def broken_example(engine: Engine, scan: Scan, condition: Expression) -> str | None:
    """Returns the values that the condition reads in a row of `scan` that violates it, for example
    `id = 5, name = a`; None if it reads no values that can be shown."""
    shown = _shown(sorted(path for _, path in condition.columns), scan.schema)
    if not shown:
        return None
    columns = [(f"value{number}", engine.compose(text, "string")) for number, (_, text) in enumerate(shown)]
    broken = Filter(scan, engine.compose(_broken(condition), "boolean"))
    rows = (
        engine.to_arrow(engine.run(Project(broken, tuple(columns), "example")), limit=1)
        .read_all()
        .to_pylist()
    )
    if not rows:
        return None
    values = ("null" if value is None else value for value in rows[0].values())
    return ", ".join(f"{name} = {value}" for (name, _), value in zip(shown, values, strict=True))


def broken_rows(engine: Engine, plan: Plan, conditions: Sequence[Expression]) -> list[int]:
    """Returns the number of rows of `plan` that violate each of the conditions."""
    flags = tuple(
        (f"broken{number}", engine.compose(_broken(each), "boolean"))
        for number, each in enumerate(conditions)
    )
    groups = engine.to_table(engine.run(Aggregate(plan, flags, (("rows", COUNT),)))).to_pylist()
    return [sum(group["rows"] for group in groups if group[name]) for name, _ in flags]


def check_same_files(winner: Snapshot, ours: Metadata) -> None:
    """Raises SchemaMismatchError if files written for our definition cannot be read with the winner's:
    columns, physical names, partitioning and constraints must be the same."""
    schema = Schema.from_json(ours.schema_string)
    problem = None
    if winner.metadata.partition_columns != ours.partition_columns:
        problem = f"partitioned by {list(winner.metadata.partition_columns)}"
    for other in winner.schema:
        mine = schema.get(other.name)
        if mine is None and other.nullable and defaults.KEY not in other.metadata and not has_checks(other):
            continue
        if (
            mine is None
            or mine.name != other.name
            or mine.type != other.type
            or (mine.nullable and not other.nullable)
        ):
            problem = f"column {other.name} of type {type_name(other.type)}"
        elif physical_name(other) != other.name or has_checks(other):
            problem = f"column {other.name} with metadata {dict(other.metadata)}"
    if constraint_names(winner.metadata.configuration) != constraint_names(ours.configuration):
        problem = "CHECK constraints, against which the rows were not checked"
    if extra := [item.name for item in schema if winner.schema.get(item.name) is None]:
        problem = f"no column {extra[0]}"
    if problem is not None:
        raise SchemaMismatchError(
            "another writer created the table first, and the data does not fit it",
            where=winner.location,
            found=problem,
            expected=repr(schema),
        )
