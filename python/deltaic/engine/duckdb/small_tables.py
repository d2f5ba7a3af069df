"""Copies small Delta tables into tables of DuckDB, and drops copies that were not used for long.

A query over ten rows takes DuckDB less time than registering an Arrow source for it, so a small table is
copied into DuckDB, and each later query of the same snapshot and columns reads the copy. The first query is
answered without a copy where DuckDB can read the files itself (`plain_files`).
"""

from __future__ import annotations

import itertools
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

MOST_COPIES = 100
"""Maximum number of copies in a database. Above it, the copies that were read least recently are dropped."""
_numbers = itertools.count()


@dataclass(eq=False)
class Copy:
    """A table of DuckDB with a copy of `rows`. `readers`: number of running queries that read it."""

    name: str
    rows: pa.Table
    readers: int = 0

    def release(self) -> None:
        self.readers -= 1


class SmallTables:
    """The copies in one database of DuckDB. Threads may share it."""

    def __init__(self) -> None:
        self._copies: dict[int, Copy] = {}  # by the rows' id; that read last comes last
        self._lock = threading.Lock()

    def copy(self, cursor: duckdb.DuckDBPyConnection, rows: pa.Table) -> Copy:
        """Returns the copy of these rows for one more reader, who must release it."""
        with self._lock:
            if (copy := self._copies.pop(id(rows), None)) is None:
                copy = Copy(f"__deltaic_small_{next(_numbers)}", rows)
                source = f"{copy.name}_rows"
                cursor.register(source, rows)
                cursor.execute(f'CREATE TABLE "{copy.name}" AS SELECT * FROM "{source}"')
                cursor.unregister(source)
                self._drop_unused(cursor)
            self._copies[id(rows)] = copy
            copy.readers += 1
            return copy

    def _drop_unused(self, cursor: duckdb.DuckDBPyConnection) -> None:
        unused = [key for key, copy in self._copies.items() if not copy.readers]
        for key in unused[: max(0, len(self._copies) + 1 - MOST_COPIES)]:
            cursor.execute(f'DROP TABLE "{self._copies.pop(key).name}"')
