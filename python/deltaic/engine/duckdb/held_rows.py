"""Held rows that are few: they stay in memory as Arrow, for `few_rows` to compute what commands ask of them next."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa
else:
    from deltaic.deferred import pyarrow as pa

HELD_BYTES = 1 << 20
"""Maximum bytes of held rows that stay in memory as Arrow; more go to a table of DuckDB, which can spill. Below 0 all of them go there."""


class HeldRows:
    """Rows in memory, until `release`."""

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
    """An Arrow stream of batches whose schema DuckDB sees without opening it, and into which it pushes nothing."""

    def __init__(self, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> None:
        self._schema, self._batches = schema, batches

    def __arrow_c_schema__(self) -> object:
        return self._schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return pa.RecordBatchReader.from_batches(self._schema, self._batches).__arrow_c_stream__(requested_schema)


def read_few(stream: Any, most: int | None = None) -> tuple[pa.Schema, list[pa.RecordBatch], Iterator[pa.RecordBatch] | None]:
    """The rows of a stream -> its schema, all of its batches and None where these have at most `most` bytes (None: HELD_BYTES); else its
    first batches and the others, still to be read."""
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
