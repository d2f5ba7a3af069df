"""What every new row must satisfy besides NOT NULL (which the writer checks): column invariants.

Source: PROTOCOL.md, "Column Invariants": `delta.invariants` in a column's metadata, `{"expression": {"expression": "x > 3"}}`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from deltaic.commands.store_assignment import enclosed
from deltaic.errors import ConstraintViolationError, ProtocolError
from deltaic.protocol.schema import Schema, walk
from deltaic.relation.failures import failing
from deltaic.relation.literal import col
from deltaic.relation.plan import Plan, Project

if TYPE_CHECKING:
    from deltaic.engine.engine import Engine

KEY = "delta.invariants"


def conditions(schema: Schema) -> Iterator[tuple[str, str]]:
    """(column, SQL condition) of each invariant."""
    for path, item in walk(schema):
        text = item.metadata.get(KEY)
        if text is None:
            continue
        name = ".".join(path)
        try:
            condition = json.loads(text)["expression"]["expression"]
        except (TypeError, ValueError, KeyError) as error:
            raise ProtocolError("an invariant is not as PROTOCOL.md says", where=f"column {name}", found=repr(text)[:80]) from error
        if not isinstance(condition, str):
            raise ProtocolError("an invariant's expression is not text", where=f"column {name}", found=repr(text)[:80])
        yield name, condition


def checked(
    plan: Plan,
    schema: Schema,
    engine: Engine,
    alias: str = "checked",
    *,
    also: Sequence[tuple[str, str]] = (),
    hidden: Sequence[str] = (),
) -> Plan:
    """The rows of `plan` (columns as in `schema`, then those of `hidden`), ending in ConstraintViolationError at the first that breaks an
    invariant.

    `also`: (message, condition) of what else every row must satisfy. The check is part of a written column, so that no engine can
    leave it out."""
    found = [(f"a row breaks the invariant of column {name}", condition) for name, condition in conditions(schema)]
    found += also
    if not found:
        return plan
    inner = getattr(plan, "alias", "u")
    # Of columns without a type no value is written, and none computed.
    place = next((number for number, field in enumerate(schema) if field.type != "void"), 0)
    whens = []
    for message, condition in found:
        engine.resolve(condition, {inner: schema})
        failure = failing(ConstraintViolationError, message, expected=condition)
        whens.append(f"WHEN NOT coalesce({enclosed(condition)}, false) THEN {failure}")
    columns = [(name, f"{inner}.{col(name)}") for name in (*schema.names, *hidden)]
    name, value = columns[place]
    # A value that is always null must not be all that there is of the column: an optimizer would leave out the conditions with it.
    columns[place] = (name, f"CASE {' '.join(whens)} ELSE {value} END")
    return Project(plan, tuple(columns), alias)
