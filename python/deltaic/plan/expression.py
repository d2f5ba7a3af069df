"""An expression as a value: resolved once by an engine, then carried by plans, so that no later step reads its text again.

`Engine.resolve` makes one of a user's text and `Engine.compose` one of several others; columns and nulls, which mean the same to
every engine, are made here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from deltaic.plan.literal import col, enclosed
from deltaic.protocol.ddl import format_type
from deltaic.protocol.schema import DataType, Field

if TYPE_CHECKING:
    from sqlglot import exp

    from deltaic.plan.nodes import Data, Scan

ColumnPath: TypeAlias = tuple[str, tuple[str, ...]]
"""(alias, names): a column, and the fields of structs below it, in the case of the schema."""


@dataclass(frozen=True)
class Expression:
    """A scalar expression over aliased columns. Two of them are equal where they have one text, one type and the same columns.

    `text`: as the user wrote it, in Spark's SQL; for errors, for the history, and for Spark, which reads it itself.
    `columns`: what it reads. `time_zone`: of timestamps that it names without one.
    `path`: the column that it is; None where it computes something.
    `tree`: the parsed text; None where only Spark's own parser can read it. `parts`: what placeholders of the tree stand for, by name.
    `handle`: the translated expression of the embedded engine; None on Spark.
    `operands`: what its AND connects; () where it is no conjunction.
    `sources`: the rows of tables that subqueries in it read, by their names in the handle.
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
        """The expressions whose AND it is: itself where it is no conjunction."""
        return self.operands or (self,)

    @property
    def enclosed(self) -> str:
        """Returns the SQL text in brackets, for use inside a longer expression."""
        return enclosed(self.text)

    def field(self, item: Field) -> Expression:
        """A field of the struct that this column is."""
        if self.path is None:
            raise ValueError(f"not a column: {self.text}")
        alias, names = self.path
        return column_at(alias, (*names, item.name), item.type)


Pieces: TypeAlias = "tuple[str | Expression, ...]"
"""SQL text of ours with expressions in it: `("coalesce(", x, ", 0)")`."""


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
    """The column of a leaf, a projection or another plan that is known as `alias`."""
    path = (alias, (item.name,))
    return Expression(f"{col(alias)}.{col(item.name)}", item.type, item.nullable, frozenset([path]), path=path)


def column_at(alias: str, path: tuple[str, ...], data_type: DataType) -> Expression:
    """A column, or a field of structs below it, of this type."""
    return Expression(".".join(map(col, (alias, *path))), data_type, columns=frozenset([(alias, path)]), path=(alias, path))


def columns_of(alias: str, fields: Iterable[Field]) -> tuple[tuple[str, Expression], ...]:
    """Columns under their own names, as a projection takes them."""
    return tuple((item.name, column(alias, item)) for item in fields)


def null(data_type: DataType) -> Expression:
    """The null of a type."""
    return Expression(f"CAST(NULL AS {format_type(data_type)})", data_type)


def composed(pieces: Pieces, data_type: DataType, time_zone: str) -> Expression:
    """The expression of this type whose text the pieces are, as far as it means the same to every engine."""
    inner = [piece for piece in pieces if isinstance(piece, Expression)]
    return Expression(
        "".join(piece if isinstance(piece, str) else piece.enclosed for piece in pieces),
        data_type,
        columns=frozenset().union(*(piece.columns for piece in inner)),
        deterministic=all(piece.deterministic for piece in inner),
        time_zone=time_zone,
        sources={name: leaf for piece in inner for name, leaf in piece.sources.items()},
    )
