"""Converts row ids to bitmaps in tasks, if they are too many to collect them on the driver one by one. Each
task makes a bitmap for each file of which it has rows; after a shuffle, a task merges the bitmaps of one
file.

The driver gets one bitmap for each file. Tasks write nothing, so a task that runs again does no harm.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from deltaic import _core
from deltaic.plan.nodes import FILE_COLUMN, ROW_COLUMN

if TYPE_CHECKING:
    from deltaic.engine.spark.engine_session import EngineSession
    from deltaic.engine.spark.relation import SparkRelation

SETTING = "spark.deltaic.driverRowIds"
"""Setting: maximum number of row ids that are collected on the driver one by one; more become bitmaps in
tasks."""
MOST_PAIRS = 20_000_000
"""Default of SETTING."""
_PAIR_BYTES = 16
"""Bytes of a row id (file and row index), as Spark estimates the size of rows."""
_LINES = f"{FILE_COLUMN} int, __deltaic_bitmap binary, __deltaic_count bigint"


def are_few(session: EngineSession, relation: SparkRelation) -> bool:
    """True if the number of row ids, known or estimated, is small enough to collect them one by one."""
    most = int(session.spark.conf.get(SETTING, str(MOST_PAIRS)))
    if relation.rows is not None:
        return relation.rows <= most
    size = session.size_of(relation.frame)
    return size is not None and size <= most * _PAIR_BYTES


def bitmaps(pairs: Any) -> pa.Table:
    """A row for each file: its number, the bitmap of its row indexes and their count, as
    `_core.RowIds.of_bitmaps` takes them. `pairs`: a DataFrame of row ids."""
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
    """The batch under `schema`. Spark's differs in the nullability of columns, and a RecordBatchReader would
    refuse it."""
    return pa.RecordBatch.from_arrays(batch.columns, schema=schema)
