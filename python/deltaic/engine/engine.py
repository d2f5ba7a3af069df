"""The interface between the commands and the engine that does the relational work. A command builds a
`plan.nodes.Plan`, and an engine lowers it.

A `Relation` is the engine's own lazy result: nothing has run yet, and other code passes it only to the
methods here. The interface is the same for one machine and for a cluster, so no method returns rows one by
one."""

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
StoreAssignment: TypeAlias = Literal["ansi", "strict", "CAST", "try_cast"]
"""How a value is cast to the type of its column: by the ANSI rules of `commands.store_assignment`; only to a
type that is wider ("strict"); or without errors, by the SQL function CAST, or, where CAST fails for some
values, by try_cast and the low bits of numbers."""
Changing: TypeAlias = Literal["delete", "update", "merge"]
"""Name of a command that changes rows."""
Relation: TypeAlias = Any
"""The lazy result of an engine: a `LocalRelation` of the embedded engine, a `SparkRelation` on Spark."""


@dataclass(frozen=True)
class Compaction:
    """Limits that a host may set; None: the table's property, or the default. `target`: bytes of a new file
    of OPTIMIZE. `small`: bytes below which OPTIMIZE compacts a file. `auto_target`, `auto_small`: like
    `target` and `small`, for auto compaction. `auto_files`: minimum number of small files of a partition that
    auto compaction compacts. `checks_statistics`: False to Z-order by columns without statistics, too."""

    target: int | None = None
    small: int | None = None
    auto_target: int | None = None
    auto_small: int | None = None
    auto_files: int | None = None
    checks_statistics: bool = True


@dataclass(frozen=True)
class AssignmentRules:
    """How UPDATE and MERGE assign values, if a host sets rules that differ from those of deltaic. `casts`:
    how values are cast instead of by `Engine.store_assignment`. `by_position`: fields of structs match by
    position instead of by name. `expands_nulls`: a null struct that has other fields than its column becomes
    a struct of nulls. `star_by_fields`: UPDATE SET * of a MERGE that evolves the schema assigns each field of
    a struct alone, so that no struct is null afterwards."""

    casts: StoreAssignment | None = None
    by_position: bool = False
    expands_nulls: bool = False
    star_by_fields: bool = False


USUAL_RULES = AssignmentRules()


@dataclass(frozen=True, eq=False)
class WriteTarget:
    """Folder and format of new data files. `options` are those of `_core.write`. `row_tracking`: the hidden
    columns (row ids, row commit versions) of the rows to write, behind the table's own; `schema` has them
    too. `optimize`: a parallel engine shuffles new rows first, so that few files of about one size result.
    `hidden_ids`: field ids of the hidden columns in files, if they must have some."""

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
    """Rows that can be read several times, each time from the first row. `deltaic.Rows` implements it, in a
    layer above the engines."""

    def to_spark(self) -> Any:
        """Returns the rows as a DataFrame of the session with which the table was opened. No row is collected
        to the driver."""
        raise UnsupportedFeatureError("to_spark() needs a table opened with spark=")


class Engine(Protocol):
    """Interface of an engine as commands use it. An engine raises only errors of `deltaic.errors`, whatever
    DuckDB or Spark raises."""

    @property
    def time_zone(self) -> str:
        """Time zone of timestamps that an expression writes without one."""

    def pinned(self) -> Engine:
        """An engine for rows that are computed later: its time zone does not change when the configuration
        does."""

    def working_on(self, operation: str, location: str) -> AbstractContextManager[None]:
        """Inside the block, the host (a Spark session) shows its work as that of a command ("DELETE",
        "OPTIMIZE", ...) on a table. In the embedded engine, current_timestamp() has one value in all
        expressions of the command."""

    @property
    def is_embedded(self) -> bool:
        """True if the engine works in this process, so that it can also work on a background thread. False on
        Spark, whose jobs would take processors from the caller's jobs, and where rows follow delta-spark's
        rules."""

    @property
    def plain_sql(self) -> bool:
        """True if expressions have the meaning of `deltaic.spark_sql`, so that a simple one needs no
        `resolve`."""

    @property
    def pads_char(self) -> bool:
        """True if a CHAR(n) column is compared as text that spaces fill up to n characters, and not as the
        text that is stored."""

    @property
    def takes_nested_not_null(self) -> bool:
        """True if the definition of a table may have NOT NULL fields within arrays and maps."""

    @property
    def store_assignment(self) -> StoreAssignment:
        """How values are cast to the types of their columns."""

    @property
    def assignment_rules(self) -> AssignmentRules:
        """Further rules for the values that UPDATE and MERGE assign."""

    def marks_rows(self, command: Changing) -> bool:
        """True if the command marks rows in a table with deletion vectors; False if the host makes it rewrite
        files there, too."""

    @property
    def auto_compacts(self) -> bool | None:
        """True or False if the host sets whether a write compacts its table; None if the table's property
        does."""

    @property
    def compaction(self) -> Compaction:
        """Limits of OPTIMIZE and auto compaction that the host sets."""

    @property
    def takes_repeated_files(self) -> bool:
        """True if a scan may list a file several times, each time with other rows. False on Spark, which
        identifies a file by its path."""

    def resolve(self, text: str, schemas: Mapping[str, Schema], *, queries: bool = False) -> Expression:
        """Parses, types and translates a user's expression over aliased schemas. `queries`: subqueries are
        allowed, if the engine knows tables."""

    def shown_condition(self, condition: str | Expression, alias: str | None) -> str:
        """Returns the text of a condition for the history. On Spark this is Spark's SQL of the
        resolved condition: `((id = 5) AND (v > 1))`. The embedded engine returns the text as the user wrote
        it. `alias`: the table's alias, which Spark's form leaves out; None keeps all aliases."""

    def parsed_text(self, condition: str) -> str:
        """Returns the text of a condition of OPTIMIZE for the history. On Spark this is the text of the
        parsed condition, `('part = a)`, as delta-spark writes it. The embedded engine returns the text of
        `shown_condition`."""

    def compose(self, pieces: Pieces, data_type: DataType) -> Expression:
        """Builds an expression of this type from SQL text of ours and resolved expressions, which are not
        resolved again."""

    def run(self, plan: Plan) -> Relation:
        """Lowers a plan. Errors of analysis are raised here, errors of rows when the relation is consumed."""

    def frame(self, planned: ScanPlan, columns: Sequence[str]) -> Any | None:
        """Returns the rows of a planned scan, of one version, as a DataFrame of Spark; None if the engine has
        no DataFrames."""

    def source(self, data: Any, alias: str, *, rounding: bool = False) -> Data:
        """Returns rows that a user passes as a leaf of a plan. `data`: anything with the Arrow PyCapsule
        interface, pandas, Polars (eager and lazy), a DuckDB relation, a DeltaTable or Rows, an iterable of
        record batches. Columns that differ only in case are refused, and so are values that no type of Delta
        has; `rounding`: timestamps may lose the digits below a microsecond."""

    def conform(self, data: Plan, schema: Schema) -> Data:
        """Returns a source's rows with a table's columns: matched by name without case, in the table's order,
        cast if that changes no value; a missing column is null. When the rows are read, a value that does not
        fit raises a SchemaMismatchError with column, value and types."""

    def numbered(self, data: Plan, series: Mapping[str, tuple[int, int]]) -> Data:
        """Returns the rows with unique numbers in these columns of type bigint. `series`: column -> (first,
        step); the numbers are first, first + step, ... A parallel engine leaves gaps."""

    def hold(self, relation: Relation, alias: str) -> AbstractContextManager[Data]:
        """Computes once the rows that a command reads several times (held rows). Above the memory limit they
        spill to disk. They are dropped at the end of the `with` block."""

    def driver_bytes(self, store: _core.Store) -> int:
        """Maximum bytes of data files that a command reads in this process instead of on the cluster. 0 in
        the embedded engine itself."""

    def rows_here(self, data: Data) -> pa.Table | None:
        """Returns the rows of a held leaf if they are few and the session's settings let the embedded engine
        evaluate operators as Spark does. None for many rows, and in the embedded engine itself."""

    def to_arrow(self, relation: Relation, *, limit: int | None = None) -> pa.RecordBatchReader:
        """Returns a reader of the rows (at most `limit`), in Delta's Arrow types. Closing the reader ends the
        work."""

    def to_table(self, relation: Relation) -> pa.Table:
        """Returns all rows as one table in memory."""

    def count(self, relation: Relation) -> int:
        """Returns the number of rows."""

    def is_cheap(self, relation: Relation) -> bool:
        """True if the rows may be computed again to give an error more detail; on a cluster only a few rows
        may."""

    def write(self, relation: Relation, target: WriteTarget) -> pa.Table:
        """Writes new data files and returns their `add` actions. On an error no file is left."""

    def row_ids(self, relation: Relation, *, unique: bool = False) -> _core.RowIds:
        """Collects rows of (FILE_COLUMN, ROW_COLUMN) by file. `unique`: a repeated row id is a
        MergeCardinalityError."""

    def mark_deleted(
        self, rows: _core.RowIds, scan: Scan, *, deletion_timestamp: int, inline: bool, prefix_length: int
    ) -> _core.MarkedFiles:
        """Adds these rows to the deletion vectors of the scan's files. Returns the `add` and `remove`
        actions."""

    def cluster(self, plan: Scan, columns: Sequence[str], curve: Curve, files: int) -> Relation:
        """Returns the scan's rows, sorted along a space-filling curve over `columns`. A parallel engine makes
        about `files` files."""
