"""`Rows`, the lazy result of a scan, of SQL and of some commands, and `ScanReport`, the result of its
`explain`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, overload

from deltaic import _core
from deltaic.cancellation import Cancellation
from deltaic.deltalake_names import ROWS, unknown
from deltaic.engine.engine import Replayable
from deltaic.errors import InvalidArgumentError, InvalidTypeError
from deltaic.html_tables import html_facts, html_table
from deltaic.protocol.schema import Schema
from deltaic.rows.shown_predicates import shown_predicate

if TYPE_CHECKING:
    import duckdb
    import pandas
    import polars
    import pyarrow as pa

    from deltaic.plan.nodes import TableRead
else:
    from deltaic.deferred import pyarrow as pa


SHOWN = 10
"""Maximum number of rows that a notebook shows."""


@dataclass(frozen=True, kw_only=True)
class ScanReport:
    """Report on a scan: numbers of files, row groups and rows that were read and skipped.

    `columns`: names of the columns that were read.
    `pushed`: the part of the condition that was evaluated on files and while decoding, as JSON; None without
        one. `evaluated`: the other conjuncts (conditions joined by AND), which the engine evaluated on rows.
    `files`: files of the table, of which `files_skipped_by_partition` and `files_skipped_by_statistics` were
        skipped and `files_read` were read.
    `row_groups`, `row_groups_read`: row groups in the files that were read, and those that were read.
    `bytes`, `bytes_of_files`, `bytes_read`: sizes in bytes of all files of the table, of the files that were
        read, and of the parts of them that were read. Bytes that are read twice count twice: the end of a
        file is read for its footer, and again for the pages that it has.
    `rows`: rows that came from the files, before the engine evaluated its part."""

    columns: tuple[str, ...] = ()
    pushed: str | None = None
    evaluated: tuple[str, ...] = ()
    files: int = 0
    files_skipped_by_partition: int = 0
    files_skipped_by_statistics: int = 0
    files_read: int = 0
    row_groups: int = 0
    row_groups_read: int = 0
    bytes: int = 0
    bytes_of_files: int = 0
    bytes_read: int = 0
    rows: int = 0

    def __str__(self) -> str:
        lines = [
            f"columns     {', '.join(self.columns) or '(none)'}",
            f"pushed      {shown_predicate(self.pushed) or '(nothing)'}",
            f"evaluated   {' and '.join(self.evaluated) or '(nothing)'}",
            (
                f"files       {self.files} in the table, {self.files_skipped_by_partition} skipped by"
                f" partition, {self.files_skipped_by_statistics} by statistics, {self.files_read} read"
            ),
            f"row groups  {self.row_groups} in the files read, {self.row_groups_read} read",
            (
                f"bytes       {self.bytes:,} in the table, {self.bytes_of_files:,} in the files read,"
                f" {self.bytes_read:,} read"
            ),
            f"rows        {self.rows:,} from the files",
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return html_facts({line[:12].strip(): line[12:] for line in str(self).split("\n")})


class Rows(Replayable):
    """Lazy rows of one version of a table: each conversion computes them again, and later commits do not
    change them. A scan, a query (`deltaic.sql`), `files()`, `changes()` and others return it.

    Any Arrow library accepts a `Rows` (`__arrow_c_stream__`): `polars.DataFrame(rows)`,
    `pyarrow.table(rows)`. Conversions raise ProtocolError (a file that is damaged or was deleted),
    InvalidArgumentError (SQL that fails on a row; its `condition` is Spark's, such as DIVIDE_BY_ZERO) and
    CancelledError.

    >>> rows = table.scan(["id"])
    >>> sorted(row["id"] for row in rows)
    [1, 2, 3, 4]
    """

    def __init__(
        self,
        schema: Schema,
        open: Callable[[], pa.RecordBatchReader],
        collect: Callable[[], pa.Table] | None = None,
        reads: tuple[TableRead, ...] = (),
    ) -> None:
        """`open`: opens a reader of the rows. `collect`: returns all rows at once, if that is cheaper than
        batch by batch. `reads`: the tables from which the rows come; a write to one of them depends on
        it."""
        self._schema, self._reads = schema, reads
        self._cancellation = Cancellation()
        self._open_reader = self._cancellation.started_by(open)
        self._collect = self._cancellation.started_by(collect or (lambda: open().read_all()))

    @staticmethod
    def of(table: pa.Table) -> Rows:
        """Returns the `Rows` of a table in memory."""
        return Rows.computed(lambda: table, table.schema)

    @staticmethod
    def computed(compute: Callable[[], pa.Table | _core.Batches], schema: pa.Schema | None = None) -> Rows:
        """Returns the `Rows` that `compute` returns. It is called once, on the first access."""
        return _ComputedRows(compute, schema)

    @property
    def schema(self) -> Schema:
        """The columns, with Delta's types."""
        return self._schema

    def to_reader(self) -> pa.RecordBatchReader:
        """Returns a `pyarrow.RecordBatchReader` of the rows, in bounded memory. Closing the reader ends the
        work.

        On Spark, rows of more than 64 MB reach the driver partition by partition, each by a Spark job of its
        own; `to_arrow` reads all partitions by one job.

        Raises ProtocolError, InvalidArgumentError or CancelledError: see `Rows`.

        >>> sum(batch.num_rows for batch in table.scan().to_reader())
        4
        """
        return self._open_reader()

    def to_arrow(self) -> pa.Table:
        """Returns all rows as one `pyarrow.Table` in memory.

        Raises ProtocolError, InvalidArgumentError or CancelledError: see `Rows`.

        >>> table.scan(["id"]).to_arrow().num_rows
        4
        """
        return self._collect()

    def to_pylist(self) -> list[dict[str, Any]]:
        """Returns a dict of Python values for each row, by column name, like `pyarrow.Table.to_pylist`.

        Raises ProtocolError, InvalidArgumentError or CancelledError: see `Rows`.

        >>> table.scan(["id"], where="id = 1").to_pylist()
        [{'id': 1}]
        """
        return _dicts(self.to_arrow())

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yields each row as a dict; reads batch by batch, in bounded memory."""
        for batch in self.to_reader():
            yield from _dicts(batch)

    def to_pandas(self, **options: Any) -> pandas.DataFrame:
        """Returns all rows as a pandas DataFrame. `options`: those of `pyarrow.Table.to_pandas`. Raises
        ImportError if pandas is not installed.

        Raises ProtocolError, InvalidArgumentError or CancelledError: see `Rows`.

        >>> frame = table.scan().to_pandas(types_mapper=None)
        """
        rows = self.to_arrow()
        with _refusing_far_dates("to_pandas(date_as_object=False)"):
            return rows.to_pandas(**options)

    @overload
    def to_polars(self, lazy: Literal[False] = False) -> polars.DataFrame: ...

    @overload
    def to_polars(self, lazy: Literal[True]) -> polars.LazyFrame: ...

    @overload
    def to_polars(self, lazy: bool) -> polars.DataFrame | polars.LazyFrame: ...

    def to_polars(self, lazy: bool = False) -> polars.DataFrame | polars.LazyFrame:
        """Returns a Polars DataFrame; with `lazy=True` a LazyFrame whose columns and filters are pushed into
        the scan. Raises ImportError if Polars is not installed.

        Raises ProtocolError, InvalidArgumentError or CancelledError: see `Rows`.

        >>> table.scan().to_polars(lazy=True).select("id").collect().height
        4
        """
        import polars

        if lazy:
            from deltaic.engine.duckdb.engine import arrow_schema
            from deltaic.rows.lazy_frame import lazy_frame

            return lazy_frame(self.schema, arrow_schema(self.schema), self._open_narrow)
        frame = polars.from_arrow(self.to_arrow())
        assert isinstance(frame, polars.DataFrame)
        return frame

    def _open_narrow(
        self, columns: Sequence[str], nodes: Sequence[Mapping[str, Any]]
    ) -> pa.RecordBatchReader:
        """Opens a reader of the rows with at least these columns. `nodes`: conditions; rows for which one is
        not true may be missing."""
        return self.to_reader()

    def to_duckdb(self, connection: duckdb.DuckDBPyConnection | None = None) -> duckdb.DuckDBPyRelation:
        """Returns a relation of `connection` (None: DuckDB's default connection) whose columns and filters
        are pushed into the scan.

        Raises ProtocolError, InvalidArgumentError or CancelledError: see `Rows`.

        >>> table.scan().to_duckdb().filter("delay > 60").count("*").fetchall()
        [(1,)]
        """
        import duckdb

        if not self.schema.names:
            raise InvalidArgumentError("DuckDB has no relation without columns", expected="a scan of columns")
        source = self.to_dataset()
        return duckdb.from_arrow(source) if connection is None else connection.from_arrow(source)

    def to_dataset(self) -> pa.dataset.Dataset:
        """Returns a `pyarrow.dataset.Dataset` whose columns and filters are pushed into the scan. It has no
        file fragments.

        Raises ProtocolError, InvalidArgumentError or CancelledError: see `Rows`.

        >>> table.scan().to_dataset().to_table(columns=["id"]).num_rows
        4
        """
        import pyarrow.dataset

        return pyarrow.dataset.dataset(self.to_arrow())

    def count(self) -> int:
        """Returns the number of rows (int), from the log without reading a file if the log has it exactly.

        Raises ProtocolError, InvalidArgumentError or CancelledError: see `Rows`.

        >>> table.scan().count()
        4
        """
        return sum(batch.num_rows for batch in self.to_reader())

    def cancel(self) -> None:
        """Cancels the running work of these rows, from any thread: `to_arrow`, `count`, open readers and the
        like promptly raise CancelledError. A later call computes the rows again. Spark jobs are not
        cancelled; use Spark's own functions for them.

        >>> import threading
        >>> timer = threading.Timer(60, rows.cancel)  # timer.start(): at most a minute
        """
        self._cancellation.cancel()

    def explain(self) -> ScanReport:
        """Runs the scan or query and reports what it read. Returns a `ScanReport` for a scan, and for a query
        a `QueryReport` with the engine's steps and a line for each table. The numbers are 0 if the rows come
        from no table. Both print as a table, in a notebook as HTML.

        Raises ProtocolError, InvalidArgumentError or CancelledError: see `Rows`.

        >>> print(table.scan(where="id > 100").explain().files_skipped_by_statistics)
        2
        """
        return ScanReport(columns=tuple(self.schema.names), rows=self.count())

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def __getattr__(self, name: str) -> Any:
        raise unknown(name, "Rows", {}, ROWS)

    def __reduce__(self) -> str:
        raise InvalidTypeError(
            "rows that have not been read cannot be pickled", expected="the DeltaTable, or rows.to_arrow()"
        )

    def __arrow_c_schema__(self) -> object:
        return self.schema.__arrow_c_schema__()

    def __repr__(self) -> str:
        return f"Rows({', '.join(self.schema.names)})"

    def _repr_html_(self) -> str:
        """Shows the first ten rows in a notebook. The scan or query runs only as far as needed."""
        first = self._first(SHOWN + 1)
        count = first.num_rows
        note = f"The first {SHOWN} rows." if count > SHOWN else f"{count} rows." if count != 1 else "1 row."
        columns = [_values(column.slice(0, SHOWN)) for column in first.columns]
        return html_table(self.schema.names, list(zip(*columns, strict=True)), note)

    def _first(self, count: int) -> pa.Table:
        """Returns at most `count` rows, if possible without reading later ones."""
        batches: list[pa.RecordBatch] = []
        with self.to_reader() as reader:
            for batch in reader:
                batches.append(batch.slice(0, count))
                count -= batches[-1].num_rows
                if not count:
                    break
            return pa.Table.from_batches(batches, schema=reader.schema)


def _dicts(rows: pa.Table | pa.RecordBatch) -> list[dict[str, Any]]:
    with _refusing_far_dates("to_arrow()"):
        return list(rows.to_pylist())


@contextmanager
def _refusing_far_dates(instead: str) -> Iterator[None]:
    """Raises InvalidArgumentError where Python has no date or datetime for a value."""
    try:
        yield
    except (OverflowError, ValueError) as error:
        if "out of range" not in str(error):
            raise
        raise InvalidArgumentError(
            "Python has no date or datetime for a value of these rows",
            found=error,
            expected=f"the years 1 to 9999; or call {instead}, which returns all dates",
        ) from error


def _values(column: pa.ChunkedArray) -> list[Any]:
    """Returns Python values; text if Python has no value for one of them, such as a date after the year
    9999."""
    try:
        return list(column.to_pylist())
    except (OverflowError, ValueError):
        return [str(value) for value in column.cast(pa.string()).to_pylist()]


class _ComputedRows(Rows):
    """Rows that are computed as one whole Arrow table, on the first access."""

    def __init__(self, compute: Callable[[], pa.Table | _core.Batches], schema: pa.Schema | None) -> None:
        self._cancellation = Cancellation()
        self._compute, self._known = self._cancellation.started_by(compute), schema
        self._rows: pa.Table | _core.Batches | None = None
        self._table: pa.Table | None = None

    def _whole(self) -> pa.Table | _core.Batches:
        if self._rows is None:
            self._rows = self._compute()
        return self._rows

    @property
    def schema(self) -> Schema:
        return Schema.from_arrow(self._known if self._known is not None else self.to_arrow().schema)

    def to_reader(self) -> pa.RecordBatchReader:
        return self.to_arrow().to_reader()

    def to_arrow(self) -> pa.Table:
        if self._table is None:
            whole = self._whole()
            self._table = whole.to_table() if isinstance(whole, _core.Batches) else whole
        return self._table

    def count(self) -> int:
        return int(self._whole().num_rows)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._whole().__arrow_c_stream__(requested_schema)
