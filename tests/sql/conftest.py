"""A small table that each test may change."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import deltaic


@pytest.fixture
def table(tmp_path: Path) -> deltaic.DeltaTable:
    data = pa.table(
        {
            "id": pa.array([1, 2, 3, 4], pa.int64()),
            "part": pa.array(["a", "a", "b", None]),
            "amount": pa.array([1.5, None, -2.0, 40.0]),
        }
    )
    return deltaic.write(
        tmp_path / "some table", data, partition_by="part", properties={"delta.enableDeletionVectors": True}
    )
