"""Streaming reads of the Python data source: the driver plans batches, and `_core` reads their files on the
executors."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from deltaic import _core
from deltaic.engine.spark.batches import of_bytes, to_bytes
from deltaic.errors import UnsupportedFeatureError
from deltaic.log import history
from deltaic.log.snapshot import Snapshot
from deltaic.log.store import open_store
from deltaic.log.stream import TableStream
from deltaic.log.stream_files import StreamFiles
from deltaic.log.stream_offset import BASE, StreamOffset
from deltaic.protocol import change_feed
from deltaic.rows.tail import stream_scans
from deltaic.spark.options import StreamReadOptions, schema_log
from deltaic.spark.portable.arrow_values import spark_schema
from deltaic.spark.portable.reader import FilesOfTask, TaskRead, packed
from deltaic.spark.portable.shipping import WorkerObject

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

try:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxFiles, SupportsTriggerAvailableNow
except ImportError:  # Spark 4.1 has no limits of batches for Python data sources
    ReadAllAvailable = ReadMaxFiles = None

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """Empty base class for Spark 4.1."""


class DeltaStreamReader(
    WorkerObject,
    DataSourceStreamReader,  # type: ignore[misc]
    SupportsTriggerAvailableNow,  # type: ignore[misc]
):
    """One streaming read. `tasks`: the arguments with which tasks read files, one for each scan of a batch.
    Only they are sent to the executors; the `TableStream` stays on the driver."""

    def __init__(self, stream: TableStream, tasks: tuple[TaskRead, ...]) -> None:
        self.tasks, self._stream = tasks, stream
        self._is_bounded, self._is_resumed = False, True
        self._until: StreamOffset | None = None

    @staticmethod
    def of(options: Mapping[str, str], version: int | None, schema: StructType) -> DeltaStreamReader:
        """Returns the reader of a query over a streaming DataFrame, which begins with the newest version.
        `version`: the version of the DataFrame, whose columns the query reads if the table has others now.
        Raises InvalidArgumentError for a wrong value of an option."""
        read_options = StreamReadOptions.of(options)
        options_of_stream = read_options.stream
        if read_options.starting_timestamp is not None:
            options_of_stream = replace(
                options_of_stream, start=history.moment(history.milliseconds(read_options.starting_timestamp))
            )
        snapshot, newest_schema = stream_source(options, merging=False)
        if newest_schema != schema:
            snapshot = Snapshot.load(snapshot.store, version=version)
        stream = TableStream(snapshot, options_of_stream, schema_log(read_options, snapshot, merging=False))
        no_files = StreamFiles(snapshot, _core.empty_adds(), are_changes=options_of_stream.changes)
        return DeltaStreamReader(
            stream,
            tuple(TaskRead.of(scan, read_options.storage_options, schema) for scan in stream_scans(no_files)),
        )

    def initialOffset(self) -> dict[str, Any]:
        self._is_resumed = False
        return _fields(self._stream.start())

    def latestOffset(self, start: dict[str, Any] | None = None, limit: Any = None) -> dict[str, Any]:
        """Returns the end of the next batch. Spark 4.1 calls the method without arguments, and gets the end
        of the newest version."""
        stream = self._stream
        at = stream.start() if start is None else stream.parse(json.dumps(start))
        if self._is_resumed and start is not None:
            stream.resume(at)
        self._is_resumed = False
        if self._is_bounded and self._until is None:
            self._until = stream.end(at)
        is_all = start is None or (ReadAllAvailable is not None and isinstance(limit, ReadAllAvailable))
        return _fields(stream.next(at, None if is_all else stream.options.limits, self._until))

    def getDefaultReadLimit(self) -> Any:
        """Returns a limit that Spark only shows. `latestOffset` uses the limits of the options."""
        return ReadMaxFiles(self._stream.options.max_files or 1)

    def prepareForTriggerAvailableNow(self) -> None:
        self._is_bounded, self._until = True, None

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        first, last = (self._stream.parse(json.dumps(each)) for each in (start, end))
        if (first.version, max(first.index, BASE)) > (last.version, max(last.index, BASE)) or (
            first.initial and first.version == last.version > 0 and not last.initial
        ):
            first = self._stream.first(last)  # the first batch runs again, after commits of newer versions
        scans = enumerate(stream_scans(self._stream.batch(first, last)))
        return [
            FilesOfTask(to_bytes(part), kind)
            for kind, scan in scans
            for part in packed(scan.files, constants=[item.name for item in scan.constants])
        ]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        if isinstance(partition, FilesOfTask):
            yield from self.tasks[partition.kind].batches(of_bytes(partition.files))

    def commit(self, end: dict[str, Any]) -> None:
        """Records that the batch that ends at the offset `end` is complete. Raises SchemaMismatchError if the
        stream has a schema log and the table's definition changes at this offset."""
        self._stream.commit(self._stream.parse(json.dumps(end)))

    def __reduce__(self) -> tuple[Any, ...]:
        copy = DeltaStreamReader.__new__(DeltaStreamReader)
        copy.tasks = self.tasks
        return WorkerObject.__reduce__(copy)


def stream_source(options: Mapping[str, str], *, merging: bool) -> tuple[Snapshot, StructType]:
    """Returns the version whose columns a stream has, and the stream's schema. It is the newest version, or
    the current version of the stream's schema log. `merging`: as for `schema_log`. Raises
    UnsupportedFeatureError for a schema log on Spark 4.1, whose streams of Python data sources do not say
    where the next batch begins."""
    read_options = StreamReadOptions.of(options)
    if read_options.schema_location is not None and ReadMaxFiles is None:
        raise UnsupportedFeatureError(
            "a stream of a Python data source cannot keep a schema log on Spark 4.1",
            where=read_options.path,
            found=f"schemaTrackingLocation = {read_options.schema_location}",
            expected="Spark 4.2 or newer, or a classic session after deltaic.spark.enable",
        )
    snapshot = Snapshot.load(open_store(read_options.path, read_options.storage_options))
    log = schema_log(read_options, snapshot, merging=merging)
    if log is not None and log.current is not None and log.current.differs_in_columns(snapshot.metadata):
        snapshot = Snapshot.load(snapshot.store, version=log.current.version)
    return snapshot, spark_schema(
        change_feed.with_changes(snapshot.schema) if read_options.stream.changes else snapshot.schema
    )


def _fields(offset: StreamOffset) -> dict[str, Any]:
    fields: dict[str, Any] = json.loads(offset.json())
    return fields
