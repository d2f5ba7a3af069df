"""Keeps the rows that a command reads several times (held rows) in memory as Arrow, if they have at most
HELD_BYTES, so that `few_rows` can compute the next steps of the command from them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa
else:
    from deltaic.deferred import pyarrow as pa

HELD_BYTES = 16 << 20
"""Maximum bytes of held rows that stay in memory as Arrow; more go to a table of DuckDB, which can spill.
Below 0 all of them go there."""


class HeldRows:
    """Rows in memory until `release`."""

    def __init__(self, table: pa.Table) -> None:
        self._table: pa.Table | None = table

    @property
    def table(self) -> pa.Table:
        if self._table is None:
            raise ValueError("the held rows have been released")
        return self._table

    def release(self) -> None:
        self._table = None


class BatchStream:
    """An Arrow stream of batches. DuckDB reads its schema without opening it, and pushes nothing into it."""

    def __init__(self, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> None:
        self._schema, self._batches = schema, batches

    def __arrow_c_schema__(self) -> object:
        return self._schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return pa.RecordBatchReader.from_batches(self._schema, self._batches).__arrow_c_stream__(
            requested_schema
        )


def read_few(
    stream: Any, most: int | None = None
) -> tuple[pa.Schema, list[pa.RecordBatch], Iterator[pa.RecordBatch] | None]:
    """Reads up to `most` bytes of a stream (None: HELD_BYTES). Returns its schema, the batches, and an
    iterator of the batches that are still to be read; None in place of the iterator if all are read."""
    reader = pa.RecordBatchReader.from_stream(stream)
    batches: list[pa.RecordBatch] = []
    left = HELD_BYTES if most is None else most
    while left >= 0:
        batch = next(reader, None)
        if batch is None:
            return reader.schema, batches, None
        batches.append(batch)
        left -= batch.nbytes
    return reader.schema, batches, iter(reader)
