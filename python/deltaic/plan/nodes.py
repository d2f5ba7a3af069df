"""The relational plan that commands build and an engine runs: frozen dataclasses that hold resolved
expressions.

A plan exposes columns under *aliases*: a leaf and a projection have one alias each, a join has those of both
sides. A plan never holds rows; `Scan` holds the file actions of its table as Arrow.

The right side of a join is the one that the engine should build in memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from deltaic.protocol.schema import Schema

if TYPE_CHECKING:
    import pyarrow as pa

    from deltaic import _core
    from deltaic.plan.expression import Expression, GroupAggregate
    from deltaic.protocol.schema import Field

FILE_COLUMN = "__deltaic_file"
"""int32: ordinal of a data file, which is its position in the scan's `files`. If `files` has a column of this
name, its value is the ordinal."""

ROW_COLUMN = "__deltaic_row"
"""int64: index of a row in its data file, from 0. Rows that were deleted or pruned count, too."""

STORED_ALIAS = "__deltaic_rows"
"""Alias of rows over which expressions in a table's metadata are evaluated. No column has this name, so `s.v`
is always the field v of the column s; under the alias `s` it would be the column v."""

JoinKind: TypeAlias = Literal["inner", "left", "right", "full", "left_semi", "left_anti"]


class DeferredFiles(Protocol):
    """The files of a snapshot, selected when the engine plans the query."""

    @property
    def key(self) -> str:
        """A key that is equal for two scans exactly if they read the same files of the same version."""

    @property
    def plain(self) -> tuple[int, int]:
        """Number of files without a deletion vector, and their bytes."""

    @property
    def marked(self) -> tuple[int, int]:
        """Number of files with a deletion vector, and their bytes."""

    def files(self, predicate: _core.Predicate | None) -> pa.Table:
        """Returns the `add` actions of the files that may contain a row for which `predicate` is true."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Scan:
    """Rows of data files of one table: the only leaf that reads a table, for queries and commands alike.

    `files`: `add` actions. To read only some rows of a file, they also have the columns `selection`,
        `keep_selected` and `__deltaic_file`.
    `columns`: logical names in output order.
    `where`: the residual predicates, which the engine evaluates; a row is returned only if all are true.
    `predicate`: the pushed predicate, which the reader of files evaluates on each row, besides
        `where`.
    `row_ids`: True to add FILE_COLUMN and ROW_COLUMN.
    `constants`: columns of `files` whose value is added to every row of the file.
    `row_tracking`: names of the table's hidden columns with row ids and row commit versions. They come after
        `columns`; a null in them is replaced by the value that follows from the file's `add` action.
    `limit`: number of rows that the reader needs; only the embedded engine uses it, to read less.
    `as_stored`: True if rows are only copied, so that an engine that pads CHAR(n) values must not pad them.
    `later`: if set, `files` is empty, and the engine selects the files when it plans a query.
    """

    store: _core.Store
    schema: Schema
    table_schema: _core.TableSchema
    files: pa.Table
    columns: tuple[str, ...]
    where: tuple[Expression, ...] = ()
    alias: str = "t"
    row_ids: bool = False
    constants: tuple[Field, ...] = ()
    row_tracking: tuple[str, str] | None = None
    predicate: _core.Predicate | None = None
    later: DeferredFiles | None = None
    limit: int | None = None
    as_stored: bool = False


@dataclass(frozen=True, eq=False)
class TableRead:
    """The read of a table from which rows come.

    `version`: the version that is read; None for the newest one when the rows are computed.
    `predicate`: true for each row of the table on which the rows depend; None if they depend on all."""

    location: str
    version: int | None = None
    predicate: _core.Predicate | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Data:
    """Rows that an engine already has, or that a caller passed to it. `handle`: the engine's own object for
    them. `reads`: the tables from which they come, as far as the engine knows them."""

    handle: Any
    schema: Schema
    alias: str
    reads: tuple[TableRead, ...] = ()
    release: Callable[[], None] | None = field(default=None, repr=False)


UNKNOWN = Data(handle=None, schema=Schema(()), alias="unknown")
"""Stands for the tables that a subquery reads if the engine does not say which: any table may be one of
them."""


@dataclass(frozen=True, eq=False)
class Filter:
    """Rows of `input` for which `condition` is true."""

    input: Plan
    condition: Expression


@dataclass(frozen=True, eq=False)
class Project:
    """Named expressions over `input`, in order; the result is known as `alias`."""

    input: Plan
    columns: tuple[tuple[str, Expression], ...]
    alias: str


@dataclass(frozen=True, eq=False)
class Join:
    """A join of two plans. `condition` uses the aliases of both sides. The right side is built in memory."""

    left: Plan
    right: Plan
    condition: Expression
    kind: JoinKind = "inner"


@dataclass(frozen=True, eq=False)
class Union:
    """All rows of the inputs, as UNION ALL by position: first the rows of the first input."""

    inputs: tuple[Plan, ...]
    alias: str = "u"


@dataclass(frozen=True, eq=False)
class Aggregate:
    """One row for each combination of `keys`, with `columns` computed over its rows; without keys, one
    row."""

    input: Plan
    keys: tuple[tuple[str, Expression], ...]
    columns: tuple[tuple[str, GroupAggregate], ...]
    alias: str = "a"


Plan: TypeAlias = Scan | Data | Filter | Project | Join | Union | Aggregate
