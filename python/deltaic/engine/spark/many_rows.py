"""Converts row ids to bitmaps in tasks, if there are too many to collect each of them on the driver. Each
task makes a bitmap for each file of which it has rows. After a shuffle, a task merges the bitmaps of one
file.

The driver gets one bitmap for each file. Tasks write nothing, so they may run several times.
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
"""Setting: maximum number of row ids that are collected on the driver one by one. If there are more, tasks
convert them to bitmaps."""
MOST_PAIRS = 20_000_000
"""Default of SETTING."""
_PAIR_BYTES = 16
"""Bytes of a row id (file ordinal and row index) in Spark's estimates."""
_BITMAPS = f"{FILE_COLUMN} int, __deltaic_bitmap binary, __deltaic_count bigint"


def are_few(session: EngineSession, relation: SparkRelation) -> bool:
    """True if the number of row ids, known or estimated, is at most that of SETTING."""
    most = int(session.spark.conf.get(SETTING, str(MOST_PAIRS)))
    if relation.rows is not None:
        return relation.rows <= most
    size = session.size_of(relation.frame)
    return size is not None and size <= most * _PAIR_BYTES


def bitmaps(pairs: Any) -> pa.Table:
    """Returns a row for each file: its ordinal, the bitmap of its row indexes and their count, as
    `_core.RowIds.of_bitmaps` takes them. `pairs`: a DataFrame of row ids."""
    task_bitmaps = pairs.select(FILE_COLUMN, ROW_COLUMN).mapInArrow(_of_task, _BITMAPS)
    table: pa.Table = task_bitmaps.groupBy(FILE_COLUMN).applyInArrow(_of_file, _BITMAPS).toArrow()
    return table


def _of_task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    schema = pa.schema([(FILE_COLUMN, pa.int32()), (ROW_COLUMN, pa.int64())])
    rows = _core.RowIds.collect(
        pa.RecordBatchReader.from_batches(schema, (_plain(batch, schema) for batch in batches))
    )
    yield from rows.bitmaps().to_batches(1)


def _of_file(task_bitmaps: pa.Table) -> pa.Table:
    return _core.RowIds.of_bitmaps(task_bitmaps).bitmaps()


def _plain(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Returns the batch under `schema`. Spark's schema differs in nullability, and a RecordBatchReader does
    not accept it."""
    return pa.RecordBatch.from_arrays(batch.columns, schema=schema)
