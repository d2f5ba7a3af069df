"""The interface between the commands and whoever does the relational work.

A command builds a `plan.nodes.Plan`, an engine lowers it. A `Relation` is the engine's own lazy result (nothing has run yet) and never
leaves it except through the methods here. Written for one machine and for a cluster alike: no method hands over rows one by one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from deltaic.errors import UnsupportedFeatureError

if TYPE_CHECKING:
    import pyarrow as pa

    from deltaic import _core
    from deltaic.plan.expression import Expression, Pieces
    from deltaic.plan.nodes import Data, Plan, Scan
    from deltaic.planning.planned import ScanPlan
    from deltaic.protocol.schema import DataType, Schema

Curve: TypeAlias = Literal["zorder", "hilbert"]
Relation: TypeAlias = Any
"""An engine's own: LocalRelation here, a DataFrame on Spark."""


@dataclass(frozen=True, eq=False)
class WriteTarget:
    """Folder and form of new data files. `options` are those of `_core.write`. `row_tracking`: hidden columns (row ids, row commit
    versions) that the rows written there have after the table's own; `schema` has them too. `optimize`: a parallel engine shuffles new
    rows first, so that few files of about one size come of them. `hidden_ids`: ids that the hidden columns have in files, where they must
    have some."""

    store: _core.Store
    schema: _core.TableSchema
    options: Mapping[str, Any] = field(default_factory=dict)
    row_tracking: tuple[str, str] | None = None
    optimize: bool = False
    hidden_ids: tuple[int, ...] = ()

    @property
    def options_json(self) -> str:
        return json.dumps(dict(self.options))


class Replayable:
    """Rows that can be read again and again, each time from the first: `deltaic.Rows` are, which stand above the engines."""

    def to_spark(self) -> Any:
        """A DataFrame of the session that the table was opened with; nothing is brought to the driver."""
        raise UnsupportedFeatureError("to_spark() needs a table opened with spark=")


class Engine(Protocol):
    """Interface of an engine as commands use it. An engine raises errors of `deltaic.errors` only, whatever its host raises."""

    @property
    def time_zone(self) -> str:
        """Time zone of timestamps that an expression writes without one."""

    def pinned(self) -> Engine:
        """An engine for rows that are computed later: the time zone of its expressions stays what it is now."""

    def working_on(self, operation: str, location: str) -> AbstractContextManager[None]:
        """While it is entered, the host shows its work as that of a command ("DELETE", "OPTIMIZE", ...) on a table."""

    @property
    def is_embedded(self) -> bool:
        """True if the engine works in this process, and so also on a thread beside the caller's: jobs on a cluster take it from the
        caller's."""

    @property
    def plain_sql(self) -> bool:
        """True if expressions have the meaning of `deltaic.spark_sql`, so that a simple one needs no `resolve`."""

    @property
    def pads_char(self) -> bool:
        """True if a CHAR(n) column is compared as text that spaces fill up to n characters, and not as the text that is stored."""

    @property
    def takes_repeated_files(self) -> bool:
        """True if a scan may name a file several times, each time with other rows. False on Spark, which identifies a file by its path."""

    def resolve(self, text: str, schemas: Mapping[str, Schema], *, queries: bool = False) -> Expression:
        """A user's expression over aliased schemas: parsed, typed and translated once. `queries`: subqueries may stand in it, where the
        engine knows tables."""

    def compose(self, pieces: Pieces, data_type: DataType) -> Expression:
        """The expression of this type that SQL of ours makes of others, which are not resolved again."""

    def run(self, plan: Plan) -> Relation:
        """Lowers a plan; errors of analysis are raised here, errors of rows when it is consumed."""

    def frame(self, planned: ScanPlan, columns: Sequence[str]) -> Any | None:
        """The rows of a planned scan as a DataFrame of Spark, of one version; None where the engine has none."""

    def source(self, data: Any, alias: str, *, rounding: bool = False) -> Data:
        """Rows that a user hands over, as a leaf: anything with the Arrow PyCapsule interface, pandas, Polars (eager and lazy), a DuckDB
        relation, a DeltaTable or Rows, an iterable of record batches. Columns that differ only in case are refused, and so are values that
        no type of Delta has; `rounding`: timestamps may lose the digits below a microsecond."""

    def conform(self, data: Plan, schema: Schema) -> Data:
        """A source's rows as a table's columns: matched by name without case, in the table's order, cast where no value changes; a missing
        column is null. SchemaMismatchError, when it is read, names column, value and types."""

    def numbered(self, data: Plan, series: Mapping[str, tuple[int, int]]) -> Data:
        """The rows with numbers in these columns of type bigint: (first, step), each number of first, first + step, ... once. A parallel
        engine leaves gaps."""

    def hold(self, relation: Relation, alias: str) -> AbstractContextManager[Data]:
        """Computes once what is then read several times; spills beyond the memory limit; gone at the end of the `with`."""

    def driver_bytes(self, store: _core.Store) -> int:
        """Maximum bytes of data files that a command reads in this process instead of on the cluster. 0 in the embedded engine itself."""

    def rows_here(self, data: Data) -> pa.Table | None:
        """The rows of a held leaf if they are few and the embedded engine may go on with them: the session's settings leave its operators
        their meaning. None for many rows, and in the embedded engine itself."""

    def to_arrow(self, relation: Relation, *, limit: int | None = None) -> pa.RecordBatchReader:
        """The rows (at most `limit`), in Delta's Arrow types. Closing the reader ends the work."""

    def to_table(self, relation: Relation) -> pa.Table:
        """All rows in memory."""

    def count(self, relation: Relation) -> int:
        """Number of rows."""

    def is_cheap(self, relation: Relation) -> bool:
        """True if the rows may be computed once more to say more in an error: on a cluster only few of them."""

    def write(self, relation: Relation, target: WriteTarget) -> pa.Table:
        """New data files -> their `add` actions. On an error nothing is left behind."""

    def row_ids(self, relation: Relation, *, unique: bool = False) -> _core.RowIds:
        """Rows of (FILE_COLUMN, ROW_COLUMN) gathered per file. `unique`: MergeCardinalityError where one comes twice."""

    def mark_deleted(
        self, rows: _core.RowIds, scan: Scan, *, deletion_timestamp: int, inline: bool, prefix_length: int
    ) -> _core.MarkedFiles:
        """Adds and removes of the scan's files with these rows in merged, packed vectors."""

    def cluster(self, plan: Scan, columns: Sequence[str], curve: Curve, files: int) -> Relation:
        """The scan's rows sorted along a space-filling curve over `columns`. A parallel engine makes about `files` files."""
