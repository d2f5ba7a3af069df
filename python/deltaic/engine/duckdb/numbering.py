"""Fills columns of a stream with consecutive numbers, batch by batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from deltaic.engine.exporters import Failure
from deltaic.errors import InvalidArgumentError


class NumberedRows:
    """An Arrow stream whose columns of `series` have the values first, first + step, ... in the order of the
    rows. `failure`: gets the error of a series that ends."""

    def __init__(self, stream: Any, series: Mapping[str, tuple[int, int]], failure: Failure) -> None:
        self._stream, self._next, self._steps = (
            stream,
            {name: first for name, (first, _) in series.items()},
            series,
        )
        self._failure = failure

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        reader = pa.RecordBatchReader.from_stream(self._stream)
        return pa.RecordBatchReader.from_batches(reader.schema, self._batches(reader)).__arrow_c_stream__(
            requested_schema
        )

    def _batches(self, reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        for batch in reader:
            columns = {name: self._numbers(name, batch.num_rows) for name in self._steps}
            arrays = [
                columns.get(name, array)
                for name, array in zip(batch.schema.names, batch.columns, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=batch.schema)

    def _numbers(self, name: str, count: int) -> pa.Array:
        first, step = self._next[name], self._steps[name][1]
        after = first + step * count
        if not -(2**63) <= after - step < 2**63:
            message, missing = "an identity column has too few numbers left", f"numbers up to {after - step}"
            self._failure.error = InvalidArgumentError(
                message, where=name, found=missing, expected="numbers of a bigint"
            )
            raise self._failure.error
        self._next[name] = after
        if not count:
            return pa.array([], pa.int64())
        return pc.cumulative_sum(
            pa.concat_arrays(
                [pa.array([first], pa.int64()), pa.repeat(pa.scalar(step, pa.int64()), count - 1)]
            )
        )
