"""Registers Arrow sources under names for DuckDB's SQL, with their number of rows if it is known.

Without that number DuckDB assumes one row for any source that is not an Arrow table, and builds its hash
tables of the larger side of a join."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deltaic.planning import opening

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

    from deltaic import _core
    from deltaic.engine.duckdb.sources import ScanSource
    from deltaic.plan.nodes import Scan

SAMPLED_FILES = 100
"""Maximum number of files whose statistics are read to estimate a table's rows. For more files, the rows of
the others are estimated from their bytes."""
_ROWS = re.compile(r'"numRecords"\s*:\s*(\d+)')

Keep = Callable[[Hashable, Callable[[], Any]], Any]
"""`Snapshot.keep`: returns the cached result of a function for a key, computed on the first call."""


def compute(key: Hashable, what: Callable[[], Any]) -> Any:
    """A `Keep` without a cache."""
    return what()


@dataclass(frozen=True)
class TableRows:
    """The rows of `scan`, a scan of a table: DuckDB's columns and filters are pushed into it.

    `read` opens it; `observe` is called with each stream that was opened. `retyped` gives the schema that a
    stream of this schema is read under, of the same layout. `keep`: as `Snapshot.keep`, where the scan is of
    all rows of a snapshot."""

    scan: Scan
    read: Callable[[Callable[[], _core.ReadStream]], _core.ReadStream]
    observe: Callable[[_core.ReadStream], None]
    retyped: Callable[[pa.Schema], pa.Schema] | None = None
    keep: Keep = compute

    def open(self, scan: Scan, encoding: opening.Encoding = opening.PLAIN) -> _core.ReadStream:
        stream = self.read(lambda: opening.open_scan(scan, encoding=encoding))
        self.observe(stream)
        return stream


def register(
    cursor: duckdb.DuckDBPyConnection, name: str, source: Any, rows: int | None
) -> ScanSource | None:
    """Makes `source` the view `name` of this cursor. `rows`: the estimated number of rows; None if unknown.
    Returns the source that DuckDB reads `TableRows` by, None for any other source."""
    if isinstance(source, TableRows):
        if _knows_sources(cursor):
            from deltaic.engine.duckdb.sources import ScanSource

            pushed = ScanSource(source.scan, source.open, source.retyped, rows=rows, keep=source.keep)
            cursor._register_arrow_source(name, pushed)
            return pushed
        from deltaic.engine.dataset import ScanDataset

        cursor.register(name, ScanDataset(source.scan, read=source.open, retyped=source.retyped))
        return None
    if rows is None or not _knows_sources(cursor):
        cursor.register(name, source)
        return None
    from duckdb._sources import adapt  # DuckDB's own module, not public: without it joins are only slower

    adapted = adapt(source)
    adapted.rows = lambda: rows  # type: ignore[method-assign]
    cursor._register_arrow_source(name, adapted)
    return None


def _knows_sources(cursor: duckdb.DuckDBPyConnection) -> bool:
    """True if this DuckDB has the interface of `duckdb._sources`, which is not public."""
    return hasattr(cursor, "_register_arrow_source")


def rows_of(files: pa.Table) -> int | None:
    """Estimates how many rows these files (rows of `add`) have; None if their statistics lack the number."""
    if not files.num_rows:
        return 0
    sample = files.select(["size", "stats"]).slice(0, SAMPLED_FILES).to_pylist()
    found = [
        (int(match[1]), add["size"] or 0) for add in sample if (match := _ROWS.search(add["stats"] or ""))
    ]
    rows, size = sum(number for number, _ in found), sum(number for _, number in found)
    if not found or (size == 0 and len(found) < files.num_rows):
        return None
    if len(found) == files.num_rows:
        return rows
    # Importing `pyarrow.compute` for the sum would take a tenth of a process's first query.
    return int(rows * sum(each or 0 for each in files["size"].to_pylist()) / size)
