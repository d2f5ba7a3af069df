"""The golden tables through the Python data source: it reads the same rows as the embedded engine."""

from __future__ import annotations

import contextlib
import itertools
import pickle
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from deltaic import DeltaTable
from deltaic.errors import DeltaError
from golden import GOLDEN, needs_golden

cloudpickle = pytest.importorskip("pyspark.cloudpickle")


def plain(value: Any) -> Any:
    """Returns values that can be compared: fields of structs in any order, NaN equal to itself."""
    if isinstance(value, dict):
        return {name: plain(item) for name, item in sorted(value.items())}
    return [plain(item) for item in value] if isinstance(value, (list, tuple)) else repr(value)


def rows(table: Any) -> list[str]:
    return sorted(repr(plain(row)) for row in table.to_pylist())


def readable() -> Iterator[tuple[str, Any]]:
    """Yields path and rows of each table that is not refused."""
    for log in sorted(GOLDEN.rglob("_delta_log")):
        with contextlib.suppress(DeltaError):
            yield str(log.parent), DeltaTable(log.parent).scan().to_arrow()


@needs_golden
def test_batches_are_as_spark_wants_them() -> None:
    """What its workers would do, done here: a session is not needed to see every table."""
    from deltaic.engine.spark.batches import spark_arrow_schema
    from deltaic.spark.portable.data_source import DeltaicSource

    compared, wrong = 0, []
    for path, expected in readable():
        source = DeltaicSource({"path": path})
        schema = source.schema()
        reader = pickle.loads(cloudpickle.dumps(source.reader(schema)))
        parts = source.reader(schema).partitions()
        wanted = spark_arrow_schema(schema)
        batches = [batch for part in parts for batch in reader.read(pickle.loads(cloudpickle.dumps(part)))]
        found = pa.Table.from_batches(batches, wanted)  # raises where a batch has another schema
        compared += 1
        if rows(found) != rows(expected):
            wrong.append(path)
    assert wrong == []
    assert compared > 50


@needs_golden
def test_rows_of_some(spark: Any) -> None:
    for path, expected in itertools.islice(readable(), 0, None, 10):
        found = spark.read.format("deltaic").load(path).toArrow()
        assert found.column_names == expected.column_names, path
        assert rows(found) == rows(expected), path
