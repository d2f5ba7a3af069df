"""Row ids that are too many to come to the driver one by one: tasks make bitmaps of theirs, other tasks one of each file's.

The driver gets one bitmap for each file, and merges and packs these. A task that runs again answers the same: nothing is written by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from deltaic import _core
from deltaic.plan.nodes import FILE_COLUMN, ROW_COLUMN

if TYPE_CHECKING:
    from deltaic.engine.spark.engine import SparkEngine, SparkRelation

SETTING = "spark.deltaic.driverRowIds"
"""Row ids of at most so many rows come to the driver one by one."""
MOST_PAIRS = 20_000_000
_PAIR_BYTES = 16
_LINES = f"{FILE_COLUMN} int, __deltaic_bitmap binary, __deltaic_count bigint"


def are_few(engine: SparkEngine, relation: SparkRelation) -> bool:
    """True if the number of row ids, known or estimated, is small enough to collect them one by one."""
    most = int(engine.spark.conf.get(SETTING, str(MOST_PAIRS)))
    if relation.rows is not None:
        return relation.rows <= most
    size = engine.size_of(relation.frame)
    return size is not None and size <= most * _PAIR_BYTES


def bitmaps(pairs: Any) -> pa.Table:
    """-> a line for each file, as `_core.RowIds.of_bitmaps` takes them."""
    of_tasks = pairs.select(FILE_COLUMN, ROW_COLUMN).mapInArrow(_of_task, _LINES)
    table: pa.Table = of_tasks.groupBy(FILE_COLUMN).applyInArrow(_of_file, _LINES).toArrow()
    return table


def _of_task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    schema = pa.schema([(FILE_COLUMN, pa.int32()), (ROW_COLUMN, pa.int64())])
    rows = _core.RowIds.collect(pa.RecordBatchReader.from_batches(schema, (_plain(batch, schema) for batch in batches)))
    yield from rows.bitmaps().to_batches(1)


def _of_file(lines: pa.Table) -> pa.Table:
    return _core.RowIds.of_bitmaps(lines).bitmaps()


def _plain(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Without what Spark says of nulls."""
    return pa.RecordBatch.from_arrays(batch.columns, schema=schema)
