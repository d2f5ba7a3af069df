"""The lazy result of a scan, of SQL and of some commands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deltaic import _core
from deltaic.errors import UnsupportedFeatureError
from deltaic.protocol.schema import Schema

if TYPE_CHECKING:
    import duckdb
    import pandas
    import polars
    import pyarrow as pa


@dataclass(frozen=True, kw_only=True)
class ScanReport:
    """What a scan reads and what it does not. Sizes in bytes. `pushed`: the predicate that files and rows are chosen by, as JSON.
    `evaluated`: conjuncts left to the engine. `row_groups`: of the files read."""

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
            f"pushed      {self.pushed or '(nothing)'}",
            f"evaluated   {' and '.join(self.evaluated) or '(nothing)'}",
            f"files       {self.files} in the table, {self.files_skipped_by_partition} skipped by partition, "
            f"{self.files_skipped_by_statistics} by statistics, {self.files_read} read",
            f"row groups  {self.row_groups} in the files read, {self.row_groups_read} read",
            f"bytes       {self.bytes:,} in the table, {self.bytes_of_files:,} in the files read, {self.bytes_read:,} read",
            f"rows        {self.rows:,} from the files",
        ]
        return "\n".join(lines)


class Rows:
    """Rows that are computed when asked, each time anew, and of one version of the table whatever happens to it.

    Any Arrow library takes a `Rows` as it is (`__arrow_c_stream__`): `polars.DataFrame(rows)`, `pyarrow.table(rows)`.
    """

    def __init__(self, schema: Schema, open: Callable[[], pa.RecordBatchReader], collect: Callable[[], pa.Table] | None = None) -> None:
        """`collect`: gives all rows at once, where that is cheaper than batch by batch."""
        self._schema = schema
        self._open_reader = open
        self._collect = collect or (lambda: open().read_all())

    @staticmethod
    def of(table: pa.Table) -> Rows:
        """Rows in memory."""
        return Rows.computed(lambda: table, table.schema)

    @staticmethod
    def computed(compute: Callable[[], pa.Table | _core.Batches], schema: pa.Schema | None = None) -> Rows:
        """Rows that `compute` gives; once it has been asked, the answer is kept."""
        return _Computed(compute, schema)

    @property
    def schema(self) -> Schema:
        """The columns, with Delta's types."""
        return self._schema

    def to_reader(self) -> pa.RecordBatchReader:
        """Batch by batch, in bounded memory. Closing the reader ends the work."""
        return self._open_reader()

    def to_arrow(self) -> pa.Table:
        return self._collect()

    def to_pandas(self, **options: Any) -> pandas.DataFrame:
        """`options`: those of `pyarrow.Table.to_pandas`."""
        return self.to_arrow().to_pandas(**options)

    def to_polars(self, lazy: bool = False) -> polars.DataFrame | polars.LazyFrame:
        """A DataFrame; with `lazy` a LazyFrame whose columns and filters are pushed into the scan."""
        import polars

        if lazy:
            return polars.scan_pyarrow_dataset(self.to_dataset())
        frame = polars.from_arrow(self.to_arrow())
        assert isinstance(frame, polars.DataFrame)
        return frame

    def to_duckdb(self, connection: duckdb.DuckDBPyConnection | None = None) -> duckdb.DuckDBPyRelation:
        """A relation of `connection` (DuckDB's default one when None) whose columns and filters are pushed into the scan."""
        import duckdb

        source = self.to_dataset()
        return duckdb.from_arrow(source) if connection is None else connection.from_arrow(source)

    def to_dataset(self) -> pa.dataset.Dataset:
        """A dataset whose columns and filters are pushed into the scan; it has no file fragments."""
        import pyarrow.dataset

        return pyarrow.dataset.dataset(self.to_arrow())

    def to_spark(self) -> Any:
        """A DataFrame of the session that the table was opened with; nothing is brought to the driver."""
        raise UnsupportedFeatureError("to_spark() needs a table opened with spark=")

    def count(self) -> int:
        """How many rows; from metadata where that is exact."""
        return sum(batch.num_rows for batch in self.to_reader())

    def explain(self) -> ScanReport:
        """Runs the scan and says what of the table it read; zeros where the rows come from no table."""
        return ScanReport(columns=tuple(self.schema.names), rows=self.count())

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self.schema.__arrow_c_schema__()

    def __repr__(self) -> str:
        return f"Rows({', '.join(self.schema.names)})"


class _Computed(Rows):
    """Rows that come as a whole table, computed at the first question."""

    def __init__(self, compute: Callable[[], pa.Table | _core.Batches], schema: pa.Schema | None) -> None:
        self._compute, self._known = compute, schema
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
