"""Opens a fresh Arrow stream of the rows that users pass: `Rows`, Arrow data, DataFrames, iterators.

Types become Delta's in `_core.conform`. Rows that can be read only once are kept when they are read
(`BufferedSource`) if a statement or a command may read them again.
"""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, BinaryIO

import pyarrow as pa

from deltaic import _core, configuration
from deltaic.engine.exporters import (
    Failure,
    UnslicedStream,
    check_unread,
    exporter_of,
    has_deep_struct,
    is_duckdb_relation,
    is_replayable,
    started,
)
from deltaic.engine.limits import CheckedValues, check_columns, value_checks
from deltaic.errors import InvalidArgumentError
from deltaic.plan.nodes import TableRead
from deltaic.protocol.schema import Schema, primitive_types

MAX_BUFFERED_BYTES = 32 * 2**20
"""Maximum bytes of one source that a `BufferedSource` keeps in memory; further batches go to a temporary
file."""


@dataclass(frozen=True)
class Source:
    """`open` gives a new stream of all rows, in Delta's types. `failure`: the error that the user's code
    raised. `reads`: the tables from which `Rows` come."""

    schema: Schema
    open: Callable[[], Any]
    failure: Failure = field(default_factory=Failure)
    reads: tuple[TableRead, ...] = ()


def table_reads(rows: Any) -> tuple[TableRead, ...]:
    """Returns the tables from which `Rows` come; none for other data. A DataFrame gives a column for every
    name."""
    reads = getattr(rows, "_reads", ())
    return reads if isinstance(reads, tuple) else ()


def read_source(data: Any, *, rounding: bool = False) -> Source:
    """`rounding`: timestamps may lose the digits below a microsecond, which is an error otherwise.

    Columns that differ only in case are refused, as are things that hold no rows (InvalidTypeError) and rows
    that can be read only once and have been read already (InvalidArgumentError)."""
    if isinstance(data, BufferedSource):
        return data.source()
    failure = Failure()
    check_unread(data)
    exporter, arrow_schema = exporter_of(data, failure)
    reads = table_reads(exporter)
    _refuse_twins(arrow_schema.names)
    check_columns(arrow_schema)
    schema = _with_variants(Schema.from_arrow(arrow_schema), getattr(exporter, "schema", None))
    table_schema = _core.TableSchema(schema.to_json())
    if any(has_deep_struct(item.type) for item in arrow_schema):
        exporter = UnslicedStream(exporter)
    if checks := value_checks(arrow_schema, rounding):
        exporter = CheckedValues(exporter, checks, failure)

    def opened() -> _core.ReadStream:
        started(data)
        return _core.conform(exporter, table_schema, unique_keys=True)

    return Source(schema, opened, failure, reads)


def _with_variants(schema: Schema, of_rows: Any) -> Schema:
    """Returns the schema of an Arrow stream with the variants of `of_rows`, which is the schema of `Rows`:
    the stream has a struct of `metadata` and `value` in their place. Other data have no such schema."""
    if not isinstance(of_rows, Schema):
        return schema
    return Schema(
        replace(column, type=own.type) if "variant" in primitive_types(own.type) else column
        for column, own in zip(schema, of_rows, strict=True)
    )


def buffered(data: Any) -> Any:
    """Returns data that can be read more than once: `data` itself if it can be, else a `BufferedSource` of
    it."""
    return data if is_replayable(data) else BufferedSource(data)


class BufferedSource:
    """Rows that can be read only once, made readable several times and by several readers at the same time.
    Each batch is kept when it is first read: up to MAX_BUFFERED_BYTES in memory, the others in a temporary
    file, which is deleted with this object."""

    def __init__(self, data: Any) -> None:
        # A DuckDB connection runs no other query while one of its results is open.
        self._data, self._at_once = data, is_duckdb_relation(data)
        self._lock = threading.RLock()
        self._source: Source | None = None
        self._stream: Any = None
        self._reader: pa.RecordBatchReader | None = None
        self._batches: list[pa.RecordBatch | tuple[int, int]] = []
        """The batches in order; for a batch in the temporary file, its offset and size."""
        self._bytes = 0
        self._file: BinaryIO | None = None
        self._is_whole = False
        self._error: BaseException | None = None

    def source(self) -> Source:
        original = self._original()
        return Source(original.schema, lambda: _Replay(self), original.failure)

    def _original(self) -> Source:
        with self._lock:
            if self._source is None:
                self._source = read_source(self._data)
            return self._source

    def check(self) -> None:
        """Raises the error that ended the only reading of the data, because the rows after it are lost for
        every reader."""
        if isinstance(self._error, Exception):
            raise self._error
        if self._error is not None:
            raise InvalidArgumentError(
                "rows that can be read only once were read only in part, because the first reading was"
                " interrupted",
                expected="a new reader or iterator",
            )

    def reader(self) -> pa.RecordBatchReader:
        """Returns a reader of all rows."""
        with self._lock:
            self.check()
            if self._reader is None and not self._is_whole:
                self._stream = self._original().open()
                self._reader = pa.RecordBatchReader.from_stream(self._stream)
                self._schema = self._reader.schema
        return pa.RecordBatchReader.from_batches(self._schema, self._replayed())

    def _replayed(self) -> Iterator[pa.RecordBatch]:
        position = 0
        while (batch := self._batch(position)) is not None:
            yield batch
            position += 1

    def _batch(self, position: int) -> pa.RecordBatch | None:
        if position >= len(self._batches):
            with self._lock:
                while not self._is_whole and (self._at_once or position >= len(self._batches)):
                    self._read_next()
            if position >= len(self._batches):
                return None
        kept = self._batches[position]
        if isinstance(kept, pa.RecordBatch):
            return kept
        return pa.ipc.read_record_batch(pa.py_buffer(self._read_back(*kept)), self._schema)

    def _read_back(self, offset: int, size: int) -> bytes:
        """Returns bytes of the temporary file, to which another thread may be writing."""
        assert self._file is not None
        if hasattr(os, "pread"):
            return os.pread(self._file.fileno(), size, offset)
        with self._lock:  # Windows, where a file has one position for reads and writes
            self._file.seek(offset)
            message = self._file.read(size)
            self._file.seek(self._bytes)
            return message

    def _read_next(self) -> None:
        self.check()
        assert self._reader is not None
        try:
            batch = next(self._reader, None)
            if batch is not None:
                self._keep(batch)
                return
        except BaseException as error:
            self._error = self._first_error(error)
            raise self._error from None
        # Frees the memory of the data, and its DuckDB connection for other queries.
        self._is_whole, self._reader, self._stream, self._data = True, None, None, None

    def _first_error(self, error: BaseException) -> BaseException:
        """Returns the error of the user's code or of our own stream; Arrow keeps only its text."""
        try:
            self._original().failure.check()
            self._stream.check()
        except BaseException as first:
            return first
        return error

    def _keep(self, batch: pa.RecordBatch) -> None:
        if self._file is None and self._bytes + batch.nbytes <= MAX_BUFFERED_BYTES:
            self._bytes += batch.nbytes
            self._batches.append(batch)
            return
        settings = configuration.current()
        if self._file is None:
            if settings.temp_directory is not None:
                os.makedirs(settings.temp_directory, exist_ok=True)
            # open as long as this object
            self._file = tempfile.TemporaryFile(dir=settings.temp_directory, buffering=0)  # noqa: SIM115
            self._bytes = 0
        message = batch.serialize()
        if settings.temp_limit is not None and self._bytes + message.size > settings.temp_limit:
            raise MemoryError("rows that can be read only once take more than configure(temp_limit=) allows")
        left = memoryview(message)
        while left:
            left = left[self._file.write(left) :]
        self._batches.append((self._bytes, message.size))
        self._bytes += message.size


class _Replay:
    """One reading of a `BufferedSource`, in the form of a stream of `_core`."""

    def __init__(self, source: BufferedSource) -> None:
        self._source = source

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._source.reader().__arrow_c_stream__(requested_schema)

    def check(self) -> None:
        self._source.check()

    def cancel(self) -> None:
        """Ends this reading; other readings continue."""


def _refuse_twins(names: list[str]) -> None:
    seen: dict[str, str] = {}
    for name in names:
        other = seen.get(name.lower())
        if other is not None:
            raise InvalidArgumentError(
                (
                    "two columns of the data differ only in case"
                    if other != name
                    else "a column of the data comes twice"
                ),
                found=f"{other!r} and {name!r}",
                expected="names that are unique without regard to case",
            )
        seen[name.lower()] = name
