"""Expressions as values: an engine resolves the text once, and plans carry the result, so that no later step
parses the text again.

`Engine.resolve` makes an expression from a user's text, `Engine.compose` from other expressions. Columns and
nulls mean the same to every engine; functions of this module make them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from deltaic.plan.literal import col, enclosed
from deltaic.protocol.ddl import cast_type
from deltaic.protocol.schema import DataType, Field

if TYPE_CHECKING:
    from sqlglot import exp

    from deltaic.plan.nodes import Data, Scan

ColumnPath: TypeAlias = tuple[str, tuple[str, ...]]
"""(alias, names): a column and the fields of structs below it, spelled as in the schema: `t.address.city` is
`("t", ("address", "city"))`."""


@dataclass(frozen=True)
class Expression:
    """A scalar expression over aliased columns. Two expressions are equal if text, type and columns are
    equal.

    `text`: Spark's SQL as the user wrote it; for errors, for the history, and for Spark, which parses it
    itself.
    `columns`: the columns that the expression reads.
    `time_zone`: the zone of timestamps that are written without one.
    `path`: the column, if the expression is a plain column; else None.
    `tree`: the parsed text; None if only Spark's own parser can read it.
    `parts`: the expressions that placeholders of `tree` stand for, by name of the placeholder.
    `handle`: the expression as the embedded engine translated it; None on Spark.
    `operands`: the operands of its AND; () if the expression is no conjunction.
    `sources`: the rows of tables that its subqueries read, by their names in `handle`.
    """

    text: str
    type: DataType
    nullable: bool = field(default=True, compare=False)
    columns: frozenset[ColumnPath] = frozenset()
    deterministic: bool = True
    time_zone: str = "UTC"
    path: ColumnPath | None = field(default=None, compare=False)
    tree: exp.Expr | None = field(default=None, compare=False, repr=False)
    parts: Mapping[str, Expression] = field(default_factory=dict, compare=False, repr=False)
    handle: Any = field(default=None, compare=False, repr=False)
    operands: tuple[Expression, ...] = field(default=(), compare=False, repr=False)
    sources: Mapping[str, Scan | Data] = field(default_factory=dict, compare=False, repr=False)

    @property
    def conjuncts(self) -> tuple[Expression, ...]:
        """The operands of its AND; for any other expression, only the expression itself."""
        return self.operands or (self,)

    @property
    def enclosed(self) -> str:
        """Returns the SQL text in brackets, for use inside a longer expression."""
        return enclosed(self.text)

    def field(self, item: Field) -> Expression:
        """Returns a field of this column, which is a struct."""
        if self.path is None:
            raise ValueError(f"not a column: {self.text}")
        alias, names = self.path
        return column_at(alias, (*names, item.name), item.type)


Pieces: TypeAlias = "tuple[str | Expression, ...]"
"""SQL text with expressions between its parts: `("coalesce(", x, ", 0)")`."""


@dataclass(frozen=True)
class GroupAggregate:
    """An aggregate over the rows of a group. `argument` None: `count(*)`."""

    function: Literal["count", "min", "max"]
    argument: Expression | None = None

    @property
    def text(self) -> str:
        return "count(*)" if self.argument is None else f"{self.function}({self.argument.text}\n)"


COUNT = GroupAggregate("count")


def column(alias: str, item: Field) -> Expression:
    """Returns the column `item` of the plan with the alias `alias`."""
    path = (alias, (item.name,))
    return Expression(
        f"{col(alias)}.{col(item.name)}", item.type, item.nullable, frozenset([path]), path=path
    )


def column_at(alias: str, path: tuple[str, ...], data_type: DataType) -> Expression:
    """Returns a column, or a field of structs below it: `column_at("t", ("address", "city"), "string")`."""
    return Expression(
        ".".join(map(col, (alias, *path))), data_type, columns=frozenset([(alias, path)]), path=(alias, path)
    )


def columns_of(alias: str, fields: Iterable[Field]) -> tuple[tuple[str, Expression], ...]:
    """Returns (name, column) of each field, in the form of `Project.columns`."""
    return tuple((item.name, column(alias, item)) for item in fields)


def null(data_type: DataType) -> Expression:
    """Returns the null of a type, such as `CAST(NULL AS INT)`. No cast to VOID is allowed."""
    text = "NULL" if data_type == "void" else f"CAST(NULL AS {cast_type(data_type)})"
    return Expression(text, data_type)


def composed(pieces: Pieces, data_type: DataType, time_zone: str) -> Expression:
    """Joins pieces of text to an expression of type `data_type`. The caller adds what differs between engines
    (`tree`, `handle`)."""
    inner = [piece for piece in pieces if isinstance(piece, Expression)]
    return Expression(
        "".join(piece if isinstance(piece, str) else piece.enclosed for piece in pieces),
        data_type,
        columns=frozenset().union(*(piece.columns for piece in inner)),
        deterministic=all(piece.deterministic for piece in inner),
        time_zone=time_zone,
        sources={name: leaf for piece in inner for name, leaf in piece.sources.items()},
    )
