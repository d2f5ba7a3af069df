"""Rows of a DataFrame that reach the driver a few partitions at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from deltaic import _core
from deltaic.engine.spark.batches import declared, of_bytes, to_bytes
from deltaic.engine.spark.errors import named_errors
from deltaic.protocol.schema import Schema

COLLECTED_BYTES = 64 * 1024**2
"""Maximum bytes, as Spark estimates them, of rows that a reader collects at once. Larger ones are streamed,
which takes a Spark job for each partition."""


def reader(frame: Any, schema: Schema) -> pa.RecordBatchReader:
    """Returns a reader of a frame's rows with the types of `schema`, in the order of the partitions. The
    driver holds the rows of two partitions: one that is read, and the next one."""

    def batches() -> Iterator[pa.RecordBatch]:
        with named_errors():
            for part in _parts(frame):
                yield from declared(part, schema).to_batches()

    return pa.RecordBatchReader.from_batches(_core.TableSchema(schema.to_json()).to_arrow(), batches())


def _parts(frame: Any) -> Iterator[pa.Table]:
    names = frame.columns
    # PySpark's mapInArrow does not quote names
    plain = frame.toDF(*(f"c{number}" for number in range(len(names))))
    for row in plain.mapInArrow(_packed, "rows binary").toLocalIterator(prefetchPartitions=True):
        yield of_bytes(bytes(row.rows)).rename_columns(names)


def _packed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Packs each batch of a partition into one value, the bytes of an Arrow stream."""
    for batch in batches:
        yield pa.record_batch([pa.array([to_bytes(pa.Table.from_batches([batch]))], pa.binary())], ["rows"])
