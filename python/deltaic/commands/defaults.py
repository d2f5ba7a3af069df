"""Column defaults: the value of a column that the writer of a row does not name (PROTOCOL.md, "Default
Columns": CURRENT_DEFAULT)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa

from deltaic.commands.store_assignment import Casting, assigned
from deltaic.errors import DeltaError, InvalidArgumentError, SchemaMismatchError
from deltaic.plan.expression import Expression, columns_of, null
from deltaic.plan.nodes import Data, Plan, Project
from deltaic.protocol.schema import type_name

if TYPE_CHECKING:
    from deltaic.engine.engine import Engine
    from deltaic.protocol.schema import Field, Schema

KEY = "CURRENT_DEFAULT"


def value_of(engine: Engine, column: Field, casting: Casting = "strict") -> Expression | None:
    """Returns the default as an expression of the column's type; None if there is none. A default that names
    a column is an InvalidArgumentError, one whose type never fits a SchemaMismatchError."""
    text = column.metadata.get(KEY)
    return None if text is None else assigned(engine, str(text), column.type, (column.name,), {}, casting)


def check(engine: Engine, schema: Iterable[Field]) -> None:
    """Computes every default of these columns once, so that its errors are raised when it is set, not when
    rows are written. Such an error has `where="default of column x"`."""
    for column in schema:
        with _of_default(column):
            _check_kind(engine, column)
            if (value := value_of(engine, column)) is not None:
                one = engine.source(pa.table({"__deltaic_one": [1]}), "d")
                engine.to_table(engine.run(Project(one, ((column.name, value),), "d")))


def _check_kind(engine: Engine, column: Field) -> None:
    """Raises InvalidArgumentError for a default that is not deterministic, and SchemaMismatchError if the
    default or the column is boolean and the other is not: as in Spark, `true` is no default of a number, and
    1 none of a boolean column. Any default can become a string."""
    if (text := column.metadata.get(KEY)) is None:
        return
    resolved = engine.resolve(str(text), {})
    if not resolved.deterministic:
        raise InvalidArgumentError(
            "the default is not deterministic", where=f"column {column.name}", found=str(text)
        )
    if column.type == "string" or resolved.type == "void":
        return
    if (resolved.type == "boolean") != (column.type == "boolean"):
        raise SchemaMismatchError(
            "the default has another type than the column",
            where=f"column {column.name}",
            found=type_name(resolved.type),
            expected=type_name(column.type),
        ).with_values(text=str(text))


@contextmanager
def _of_default(column: Field) -> Iterator[None]:
    try:
        yield
    except DeltaError as error:
        place = "default" if error.where == f"column {column.name}" else f"default of column {column.name}"
        raise error.within(place) from error.__cause__


def filled(source: Data, schema: Schema, engine: Engine) -> Plan:
    """Adds the columns with a default that the source lacks."""
    missing = [
        column for column in schema if KEY in column.metadata and source.schema.get(column.name) is None
    ]
    if not missing:
        return source
    values = [(column.name, value_of(engine, column) or null(column.type)) for column in missing]
    return Project(source, (*columns_of(source.alias, source.schema), *values), source.alias)
