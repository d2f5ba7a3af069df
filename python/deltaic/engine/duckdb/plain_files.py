"""Selects the tables whose Parquet files DuckDB's own reader may read, in place of `_core`.

DuckDB learns the bounds of columns from Parquet files, and nothing from Arrow sources. With bounds it finds
better orders of joins and uses arrays in place of hash tables: TPC-DS takes 1.34 times DuckDB's time through
Arrow sources, and 1.05 times through its own reader (docs/decisions/plain-files-by-duckdb.md).

Only files from which both readers give the same rows are read so (`_core.plain_files`), and only after the
checksums of their pages were compared, which DuckDB does not do. All others are read by `_core`.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deltaic import _core
from deltaic.errors import ProtocolError
from deltaic.sql_text import duckdb_name, duckdb_text

if TYPE_CHECKING:
    from deltaic.engine.duckdb.registering import TableRows
    from deltaic.plan.nodes import Scan

MOST_FILES = 32
"""Maximum number of files of a table that DuckDB reads. It opens each file to prune it, while `_core` prunes
by the log."""
VERIFIED_AT_ONCE = 32 << 20
"""Maximum bytes of columns whose checksums are compared for the first query of these files in a process."""
VERIFIED_LATER = 1 << 30
"""Maximum bytes of columns whose checksums are compared for a later query."""


@dataclass(frozen=True)
class PlainFiles:
    """Files that both readers read alike, and whose checksums were compared. `names`: the names of the scan's
    columns in the files."""

    paths: list[str]
    names: list[str]


@dataclass(frozen=True)
class PlainTable:
    """A table that DuckDB reads. `rows`: its rows as `_core` would read them."""

    rows: TableRows
    files: PlainFiles

    @property
    def select(self) -> str:
        """A SELECT of DuckDB with the columns of the scan."""
        scan, paths = self.rows.scan, list(map(duckdb_text, self.files.paths))
        columns = [
            f"{duckdb_name(stored)} AS {duckdb_name(name)}"
            for stored, name in zip(self.files.names, scan.columns, strict=True)
        ]
        # DuckDB takes 0.2 ms less for a single path without options than for a list with options.
        arguments = paths if len(paths) == 1 else [f"[{', '.join(paths)}]"]
        if any(scan.schema.field(name).type in ("float", "double") for name in scan.columns):
            arguments.append("can_have_nan = true")  # bounds leave out NaN
        if any("=" in path for path in paths):
            arguments.append("hive_partitioning = false")
        return f"SELECT {', '.join(columns) or 'NULL'} FROM read_parquet({', '.join(arguments)})"

    def check(self) -> None:
        """Reads the rows by `_core`, which raises an error that says what is wrong with a file."""
        stream = self.rows.open(self.rows.scan)
        with suppress(Exception):  # of Arrow; the stream keeps the error behind it
            for _ in stream.to_reader():
                pass
        stream.check()


def plain_files(rows: TableRows) -> PlainFiles | None:
    """Returns the files of a table if DuckDB may read them for a query."""
    scan = rows.scan
    if not 0 < scan.files.num_rows <= MOST_FILES:
        return None
    decided: list[PlainFiles | None] = rows.keep(("plain files", scan.columns), list)
    if not decided:
        try:
            decided += _decision(scan)
        except (ProtocolError, OSError):
            return None  # `_core` raises the error if the query meets it
    return decided[0] if decided else None


def _decision(scan: Scan) -> list[PlainFiles | None]:
    """Returns the files of a scan, or None if `_core` must read them. Returns nothing if the next query
    decides: comparing the checksums takes too long for one query."""
    given = scan.store, scan.table_schema, scan.files, scan.columns
    if (found := _core.plain_files(*given)) is None:
        return [None]
    paths, names, unverified_bytes, is_known = found
    if unverified_bytes > (VERIFIED_LATER if is_known else VERIFIED_AT_ONCE):
        return [None] if is_known else []
    _core.verify_pages(*given)
    return [PlainFiles(paths, names)]
