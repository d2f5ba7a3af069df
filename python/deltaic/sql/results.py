"""Result of a statement that has run: a few rows in memory."""

from __future__ import annotations

import pyarrow as pa

from deltaic.rows.rows import Rows


def rows_of(table: pa.Table) -> Rows:
    """Returns the rows of an Arrow table."""
    return Rows.of(table)


def counts(**values: int) -> Rows:
    """One row of longs."""
    return Rows.of(pa.table({name: pa.array([value], pa.int64()) for name, value in values.items()}))


def nothing() -> Rows:
    """No columns and no rows: what delta-spark returns from statements that only do something."""
    return Rows.of(pa.table({}))
