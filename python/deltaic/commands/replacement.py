"""An overwrite that replaces the rows of a table that match a new row (delta-spark: the options replaceUsing
and replaceOn; SQL: INSERT ... REPLACE USING and REPLACE ON).

Only rows of the table are compared: a new row without a match is appended, and one that matches several rows
replaces all of them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deltaic.commands import delete
from deltaic.commands.merge_planning import plan_target
from deltaic.errors import InvalidArgumentError, SchemaMismatchError
from deltaic.plan.nodes import Data, Join
from deltaic.planning.planned import column_names
from deltaic.protocol.schema import Schema, type_name
from deltaic.sql_text import quote_name

if TYPE_CHECKING:
    from deltaic.engine.engine import Engine
    from deltaic.log.snapshot import Snapshot
    from deltaic.options import ParquetOptions
    from deltaic.plan.expression import Expression
    from deltaic.transaction.transaction import Transaction

TARGET, SOURCE = "__deltaic_table", "__deltaic_query"
"""Aliases of the table and of the new rows in conditions that name neither."""
_AMBIGUOUS = re.compile(r"\[AMBIGUOUS_REFERENCE\] (?:Reference|column) (\S+) is ambiguous")


@dataclass(frozen=True, kw_only=True)
class Replacement:
    """Which rows of the table are replaced: those that match at least one new row.

    `columns`: top-level columns that are equal in rows that match; a null equals nothing.
    `on`: instead of `columns`, a condition over the table, under the alias `target`, and the new rows, under
        the alias `source`.
    `text`: the columns or the condition as the user wrote them, which the history shows.
    """

    columns: tuple[str, ...] = ()
    on: str | None = None
    text: str = ""
    target: str = TARGET
    source: str = SOURCE

    @property
    def parameters(self) -> dict[str, str]:
        """The operationParameters in commitInfo, like delta-spark."""
        return {"replaceUsingCols": f"({self.text})"} if self.on is None else {"replaceOnCond": self.text}

    def condition(self, engine: Engine, table: Schema, rows: Schema) -> Expression:
        """Returns the resolved condition. Raises InvalidArgumentError for a column that the table or the rows
        lack, and for a name in `on` that both have."""
        scope = {self.target: table, self.source: rows}
        if self.on is None:
            for name in self.columns:
                check_known(name, "table", table.names)
                check_known(name, "query", rows.names)
            target, source = quote_name(self.target), quote_name(self.source)
            texts = [f"{target}.{quote_name(name)} = {source}.{quote_name(name)}" for name in self.columns]
            return engine.resolve(" AND ".join(texts), scope)
        try:
            condition = engine.resolve(self.on, scope)
        except InvalidArgumentError as error:
            if (refused := _of_condition(error)) is error:
                raise
            raise refused from None
        if condition.type not in ("boolean", "void"):
            raise SchemaMismatchError(
                "the condition of replaceOn must be a boolean",
                where=repr(self.on),
                found=type_name(condition.type),
            )
        return condition


def check_known(name: str, relation: str, columns: Sequence[str]) -> None:
    """Raises InvalidArgumentError if `columns`, those of the table or the query, lack one of replaceUsing."""
    if name.lower() in map(str.lower, columns):
        return
    raise InvalidArgumentError(
        f"[UNRESOLVED_INSERT_REPLACE_USING_COLUMN] the {relation} lacks a column of replaceUsing",
        found=name,
        expected=", ".join(columns),
    ).with_values(column=name, relation=relation, columns=tuple(map(quote_name, sorted(columns))))


def check_positions(columns: Sequence[str], table: Sequence[str], query: Sequence[str]) -> None:
    """Raises InvalidArgumentError if one of `columns`, those of replaceUsing, has another position in the
    query than in the table, or is missing there."""
    for name in columns:
        check_known(name, "table", table)
        check_known(name, "query", query)
    of_table, of_query = [[name.lower() for name in names] for names in (table, query)]
    moved = tuple(name for name in columns if of_table.index(name.lower()) != of_query.index(name.lower()))
    if moved:
        raise InvalidArgumentError(
            "[INSERT_REPLACE_USING_DISALLOW_MISALIGNED_COLUMNS] a column of replaceUsing has another position"
            " in the data than in the table",
            found=", ".join(moved),
            expected="the same position, or save, saveAsTable or INSERT BY NAME, which match by name",
        ).with_values(columns=moved)


def _of_condition(error: InvalidArgumentError) -> InvalidArgumentError:
    """Returns the error of replaceOn for a column that its condition cannot have; other errors stay."""
    text = f"{error} {error.__cause__}"
    if "unresolved" in error.values:
        kind, message = "UNRESOLVED", "neither the table nor the new rows have a column of replaceOn"
        column = error.values["unresolved"]
    elif (ambiguous := _AMBIGUOUS.search(text)) is not None:
        kind, message = "AMBIGUOUS", "both the table and the new rows have a column of replaceOn"
        column = ambiguous[1]
    else:
        return error
    tag = f"DELTA_INSERT_REPLACE_ON_{kind}_COLUMNS_IN_CONDITION"
    expected = (
        "an alias of the DataFrame or the query, an alias of the table (the option targetAlias, AS in SQL),"
        " or another column"
    )
    return InvalidArgumentError(f"[{tag}] {message}", found=column, expected=expected)


def stage(
    transaction: Transaction,
    snapshot: Snapshot,
    engine: Engine,
    replacement: Replacement,
    rows: Data,
    parquet: ParquetOptions | None,
) -> delete.Metrics:
    """Stages the deletion of the rows that match one of the new `rows`, whose alias is `replacement.source`.
    Returns the metrics that a write shows."""
    on = replacement.condition(engine, snapshot.schema, rows.schema)
    planned = plan_target(snapshot, engine, on, rows, replacement.source, replacement.target)
    transaction.read(planned.predicate, rows_only=True)
    columns = column_names([on], snapshot.schema, replacement.target)
    scan = planned.scan(columns, alias=replacement.target, row_ids=True)
    matches = Join(scan, rows, on, "left_semi")
    return delete.of_write(delete.drop_rows(transaction, snapshot, engine, scan, matches, parquet))
