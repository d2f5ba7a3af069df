"""The relational plan that commands build and an engine runs: frozen dataclasses that hold resolved expressions.

A plan exposes columns under *aliases*: a leaf and a projection have one each, a join shows those of both sides. A plan never
holds rows; `Scan` holds the file actions of its table as Arrow.

Every join names the side that should be built in memory by its place: the right one.
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
"""int32: ordinal of a data file, its position in the scan's `files` (or the value of that column there)."""

ROW_COLUMN = "__deltaic_row"
"""int64: index of a row in its data file, counted from the file's first row whatever was pruned."""

JoinKind: TypeAlias = Literal["inner", "left", "right", "full", "left_semi", "left_anti"]


class DeferredFiles(Protocol):
    """The files of a snapshot, selected when the engine plans the query."""

    @property
    def key(self) -> str:
        """A key that two scans share just where they read the same files of the same version."""

    @property
    def plain(self) -> tuple[int, int]:
        """Number of files without a deletion vector, and their bytes."""

    @property
    def marked(self) -> tuple[int, int]:
        """Number of files with a deletion vector, and their bytes."""

    def files(self, predicate: _core.Predicate | None) -> pa.Table:
        """Rows of `add`: those that may hold a match."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Scan:
    """Rows of data files of one table: the one leaf for reads, changes and upkeep.

    `files`: rows of `add` (with `selection`, `keep_selected` and `__deltaic_file` where only some rows are wanted).
    `columns`: logical names in output order. `where`: what the engine must evaluate; a row for which one is not true is left out.
    `row_ids`: adds FILE_COLUMN and ROW_COLUMN. `constants`: columns of `files` that every row of the file carries.
    `row_tracking`: the hidden columns with row ids and row commit versions, which come after `columns`, complete.
    `predicate`: what planning has decided that the reader of files evaluates, exact; applied besides `where`.
    `limit`: the first so many rows are enough for whoever reads them (the embedded engine alone makes use of it).
    `as_stored`: its rows are only copied, so that an engine which reads CHAR(n) padded leaves them as they are.
    `later`: where it is set, `files` is empty: an engine that can chooses them when it plans a query over the scan's rows.
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


@dataclass(frozen=True, eq=False, kw_only=True)
class Data:
    """Rows that an engine already has or was handed: `handle` is the engine's own."""

    handle: Any
    schema: Schema
    alias: str
    release: Callable[[], None] | None = field(default=None, repr=False)


UNKNOWN = Data(handle=None, schema=Schema(()), alias="unknown")
"""Stands for the tables that a subquery reads if the engine does not say which: any table may be one of them."""


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
    """`condition` over the aliases of both sides. The right side is the one to build in memory."""

    left: Plan
    right: Plan
    condition: Expression
    kind: JoinKind = "inner"


@dataclass(frozen=True, eq=False)
class Union:
    """All rows of the inputs, in their order, columns by position."""

    inputs: tuple[Plan, ...]
    alias: str = "u"


@dataclass(frozen=True, eq=False)
class Aggregate:
    """One row for each combination of `keys` (one row in all without keys), `columns` computed over its rows."""

    input: Plan
    keys: tuple[tuple[str, Expression], ...]
    columns: tuple[tuple[str, GroupAggregate], ...]
    alias: str = "a"


Plan: TypeAlias = Scan | Data | Filter | Project | Join | Union | Aggregate
