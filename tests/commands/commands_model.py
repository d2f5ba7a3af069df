"""Reads the rows of a table, and computes by DuckDB alone the rows that it must have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duckdb
import pyarrow as pa

from deltaic import DeltaTable

Make = Callable[..., DeltaTable]
"""`make(data, files=1, properties=None, **options of deltaic.write)` of conftest.py."""


def rows(data: Any) -> list[tuple[Any, ...]]:
    """Returns all rows as a sorted list of tuples, columns in order: a multiset that can be compared."""
    table = data.scan().to_arrow() if isinstance(data, DeltaTable) else data
    return sorted(
        (tuple(_equal_to_itself(value) for value in row.values()) for row in table.to_pylist()), key=repr
    )


def _equal_to_itself(value: Any) -> Any:
    return "NaN" if isinstance(value, float) and value != value else value


def asked(sql: str, **tables: pa.Table) -> list[tuple[Any, ...]]:
    """Returns the result of DuckDB alone, as `rows` does."""
    with duckdb.connect() as connection:
        for name, table in tables.items():
            connection.register(name, table)
        return sorted((tuple(row) for row in connection.execute(sql).fetchall()), key=repr)
