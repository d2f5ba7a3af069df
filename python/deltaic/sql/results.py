"""Results of statements: a few rows in memory."""

from __future__ import annotations

import pyarrow as pa

from deltaic.rows.rows import Rows


def rows_of(table: pa.Table) -> Rows:
    """Returns the rows of an Arrow table."""
    return Rows.of(table)


def counts(**values: int) -> Rows:
    """Returns one row of longs."""
    return Rows.of(pa.table({name: pa.array([value], pa.int64()) for name, value in values.items()}))


def nothing() -> Rows:
    """Returns no columns and no rows, like delta-spark for statements without a result."""
    return Rows.of(pa.table({}))
