"""Tables for the tests of commands, and the rows that they must have."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from commands_model import Make

import deltaic
from deltaic import DeltaTable
from deltaic.engine.spark.on_driver import BYTES_SETTING


@pytest.fixture(params=["vectors", "copy-on-write", "vectors on spark"])
def way(request: pytest.FixtureRequest) -> str:
    """How a table marks rows, and on which engine. Files rewritten on Spark:
    tests/spark/test_spark_commands.py."""
    return str(request.param)


@pytest.fixture
def vectors(way: str) -> bool:
    """Whether the table marks rows or rewrites files."""
    return way.startswith("vectors")


@pytest.fixture
def session(way: str, request: pytest.FixtureRequest) -> Iterator[Any]:
    """The Spark session that runs the commands, None where the embedded engine does. Its tasks do what the
    driver would do of few rows: tests/spark/test_merge_on_driver.py compares the two."""
    if not way.endswith("spark"):
        yield None
        return
    spark = request.getfixturevalue("spark")
    spark.conf.set(BYTES_SETTING, 0)
    yield spark
    spark.conf.unset(BYTES_SETTING)


@pytest.fixture
def make(tmp_path: Path, vectors: bool, session: Any) -> Make:
    """Makes a table of the data in about `files` files, opened on the engine of the test."""

    def make_table(
        data: pa.Table,
        *,
        files: int = 1,
        name: str = "table",
        properties: dict[str, Any] | None = None,
        **options: Any,
    ) -> DeltaTable:
        wanted = {"delta.enableDeletionVectors": vectors, **(properties or {})}
        path = tmp_path / name
        step = -(-max(data.num_rows, 1) // files)
        table = deltaic.write(path, data.slice(0, step), properties=wanted, **options)
        for start in range(step, data.num_rows, step):
            table = deltaic.write(table, data.slice(start, step), mode="append")
        return table if session is None else DeltaTable(path, spark=session)

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
