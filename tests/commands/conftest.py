"""Tables for the tests of commands, and what their rows must be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from commands_model import Make

import deltaic
from deltaic import DeltaTable


@pytest.fixture(params=[True, False], ids=["vectors", "copy-on-write"])
def vectors(request: pytest.FixtureRequest) -> bool:
    """Whether the table marks rows or rewrites files."""
    return bool(request.param)


@pytest.fixture
def make(tmp_path: Path, vectors: bool) -> Make:
    """Makes a table of the data in about `files` files."""

    def make_table(
        data: pa.Table, *, files: int = 1, name: str = "table", properties: dict[str, Any] | None = None, **options: Any
    ) -> DeltaTable:
        wanted = {"delta.enableDeletionVectors": vectors, **(properties or {})}
        path = tmp_path / name
        step = -(-max(data.num_rows, 1) // files)
        table = deltaic.write(path, data.slice(0, step), properties=wanted, **options)
        for start in range(step, data.num_rows, step):
            table = deltaic.write(table, data.slice(start, step), mode="append")
        return table

    return make_table


@pytest.fixture
def sample() -> pa.Table:
    """100 rows with nulls, floats and three groups."""
    return pa.table(
        {
            "id": pa.array(range(100), pa.int64()),
            "grp": pa.array([i % 3 for i in range(100)], pa.int32()),
            "name": pa.array([None if i % 11 == 0 else f"n{i % 7}" for i in range(100)]),
            "x": pa.array([i / 4 for i in range(100)]),
        }
    )
