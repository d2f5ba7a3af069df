"""CHECK constraints that a user adds to a table: checks their names and conditions, and the existing rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from deltaic.commands import generated
from deltaic.commands.invariants import Rule, broken_example, broken_rows, found_text, rules_of
from deltaic.errors import ConstraintViolationError, InvalidArgumentError, SchemaMismatchError, check_instance
from deltaic.log.snapshot import table_schema
from deltaic.plan.nodes import STORED_ALIAS, Scan
from deltaic.planning.planned import ScanPlan, column_names, resolve_condition
from deltaic.protocol.evolution import nullable_field
from deltaic.protocol.properties import CONSTRAINT_PREFIX, constraint_names
from deltaic.protocol.schema import Schema
from deltaic.spark_sql.null_conditions import null_conditions

if TYPE_CHECKING:
    import pyarrow as pa

    from deltaic.engine.engine import Engine
    from deltaic.log.snapshot import Snapshot

_OF_CHARS = "__CHAR_VARCHAR_STRING_LENGTH_CHECK__"
"""Name of delta-spark's own check of CHAR and VARCHAR columns."""


def new_constraints(snapshot: Snapshot, engine: Engine, constraints: Mapping[str, str]) -> dict[str, str]:
    """Checks constraints and returns them by their stored names, which are in lower case, as in delta-spark.

    InvalidArgumentError is raised for an existing name and for a condition that does not parse or has an
    unknown column, SchemaMismatchError for one that is no boolean, ConstraintViolationError for rows that
    violate it."""
    check_instance(constraints, Mapping, "constraints", "a mapping of names to conditions")
    if not constraints:
        raise InvalidArgumentError("no constraints to add")
    added = named(constraints, engine, snapshot.schema)
    configuration = snapshot.metadata.configuration
    taken = {
        name.lower(): configuration[CONSTRAINT_PREFIX + name] for name in constraint_names(configuration)
    }
    for name in constraints:
        if name.lower() in taken:
            error = InvalidArgumentError(
                "a constraint of this name is there already",
                found=repr(name),
                expected="drop_constraint first",
            )
            raise error.with_values(before=taken[name.lower()])
    _check_rows(snapshot, engine, added)
    return added


def named(constraints: Mapping[str, str], engine: Engine, schema: Schema) -> dict[str, str]:
    """Returns constraints by their names in lower case, after resolving each condition against the table's
    columns."""
    added: dict[str, str] = {}
    for name, condition in constraints.items():
        check_instance(name, str, "a constraint name", "text")
        if not name.strip() or name.lower() in added:
            raise InvalidArgumentError(
                "invalid constraint name", found=repr(name), expected="a non-empty string, each name once"
            )
        if name.upper() == _OF_CHARS:
            raise InvalidArgumentError(
                "[DELTA_INVALID_CONSTRAINT_NAME] the name of a CHECK constraint is reserved", found=repr(name)
            )
        try:
            is_null = resolve_condition(engine, condition, schema, STORED_ALIAS).type == "void"
        except SchemaMismatchError as error:
            raise SchemaMismatchError(
                f"the CHECK constraint {name} must be a boolean", where=error.where, found=error.found
            ) from None
        if is_null:
            raise SchemaMismatchError(
                f"the CHECK constraint {name} must be a boolean", where=repr(condition), found="void"
            )
        added[name.lower()] = condition
    return added


def _check_rows(snapshot: Snapshot, engine: Engine, constraints: Mapping[str, str]) -> None:
    rules = [Rule(name, condition, condition) for name, condition in constraints.items()]
    for rule, found in _broken(
        ScanPlan(snapshot).scan(snapshot.schema.names, alias=STORED_ALIAS), engine, rules
    ):
        raise ConstraintViolationError(
            f"the table has rows that break the new CHECK constraint {rule.message}",
            where=snapshot.location,
            found=found,
            expected=rule.condition,
        )


def check_files(snapshot: Snapshot, engine: Engine, adds: pa.Table) -> None:
    """Raises ConstraintViolationError if rows of these files, which are not in the table yet, violate a
    constraint of the table, NOT NULL included."""
    rules = generated.rules_of(generated.columns_of(snapshot.protocol, snapshot.schema))
    rules += rules_of(snapshot.metadata, snapshot.schema, engine)
    for field in snapshot.schema:
        for condition, place in null_conditions(field):
            rules.append(
                Rule(f"column {place} is NOT NULL and a row has a null there", f"NOT {condition}", "a value")
            )
    if not rules:
        return
    # All columns are nullable here: a scan would fail at the first null in a NOT NULL column, without the
    # number of rows.
    nullable = Schema(map(nullable_field, snapshot.schema))
    metadata = replace(snapshot.metadata, schema_string=nullable.to_json())
    scan = Scan(
        store=snapshot.store,
        schema=nullable,
        table_schema=table_schema(snapshot.protocol, metadata),
        files=adds,
        columns=(),
        alias=STORED_ALIAS,
    )
    for rule, found in _broken(scan, engine, rules):
        raise ConstraintViolationError(
            rule.message, where=snapshot.location, found=found, expected=rule.expected
        )


def _broken(scan: Scan, engine: Engine, rules: Sequence[Rule]) -> Iterator[tuple[Rule, str]]:
    """Yields the violated rules, each with the number of rows and the values of one of them, as text."""
    if scan.files.num_rows:
        conditions = [engine.resolve(rule.condition, {scan.alias: scan.schema}) for rule in rules]
        narrow = replace(
            scan, columns=column_names(conditions, scan.schema, scan.alias) or (scan.schema.names[0],)
        )
        counts = broken_rows(engine, narrow, conditions)
        for rule, condition, count in zip(rules, conditions, counts, strict=True):
            if count:
                yield rule, found_text(count, broken_example(engine, narrow, condition))
