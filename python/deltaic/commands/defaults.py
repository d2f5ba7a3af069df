"""Column defaults: what a row gets for a column that its writer does not name (PROTOCOL.md, "Default Columns": CURRENT_DEFAULT)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pyarrow as pa

from deltaic.commands.store_assignment import Casting, assigned
from deltaic.plan.expression import Expression, columns_of, null
from deltaic.plan.nodes import Data, Plan, Project

if TYPE_CHECKING:
    from deltaic.engine.engine import Engine
    from deltaic.protocol.schema import Field, Schema

KEY = "CURRENT_DEFAULT"


def value_of(engine: Engine, column: Field, casting: Casting = "strict") -> Expression | None:
    """The default as an expression of the column's type; None where it has none. InvalidArgumentError where it names a column,
    SchemaMismatchError where its type never fits."""
    text = column.metadata.get(KEY)
    return None if text is None else assigned(engine, str(text), column.type, (column.name,), {}, casting)


def check(engine: Engine, schema: Iterable[Field]) -> None:
    """Computes every default of these columns once: an error of it comes when it is set, not when rows are written."""
    found = [(column.name, value) for column in schema if (value := value_of(engine, column)) is not None]
    if found:
        one = engine.source(pa.table({"__deltaic_one": [1]}), "d")
        engine.to_arrow(engine.run(Project(one, tuple(found), "d"))).read_all()


def filled(source: Data, schema: Schema, engine: Engine) -> Plan:
    """The source's rows with the defaults of the columns that it has not."""
    missing = [column for column in schema if KEY in column.metadata and source.schema.get(column.name) is None]
    if not missing:
        return source
    found = [(column.name, value_of(engine, column) or null(column.type)) for column in missing]
    return Project(source, (*columns_of(source.alias, source.schema), *found), source.alias)
