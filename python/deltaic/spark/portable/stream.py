"""A table as a stream through the Python data source: batches are planned on the driver, and read by `_core` on the executors."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from deltaic.engine.spark.batches import of_bytes, spark_arrow_schema, to_bytes
from deltaic.errors import UnsupportedFeatureError
from deltaic.log import history
from deltaic.log.snapshot import Snapshot
from deltaic.log.store import open_store
from deltaic.log.stream import TableStream
from deltaic.log.stream_offset import StreamOffset
from deltaic.spark.options import StreamReadOptions
from deltaic.spark.portable.reader import FilesOfTask, TaskRead, packed
from deltaic.spark.portable.shipping import WorkerObject

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

try:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxFiles, SupportsTriggerAvailableNow
except ImportError:  # Spark 4.1 has no limits of batches for Python data sources
    ReadAllAvailable = ReadMaxFiles = None

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """Nothing."""


class DeltaStreamReader(WorkerObject, DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """One stream: `TableStream` stays on the driver, `task` travels."""

    def __init__(self, stream: TableStream, task: TaskRead) -> None:
        self.task, self._stream = task, stream
        self._is_bounded = False
        self._until: StreamOffset | None = None

    @staticmethod
    def of(options: Mapping[str, str], version: int | None, schema: StructType) -> DeltaStreamReader:
        """InvalidArgumentError for options that a stream does not take. `version`: whose columns the stream has."""
        wanted = StreamReadOptions.of(options)
        if wanted.stream.changes:
            raise UnsupportedFeatureError("the change data feed through the data source", expected="deltaic.spark.enable")
        if wanted.schema_location is not None:
            raise UnsupportedFeatureError("a log of schemas through the data source", expected="deltaic.spark.enable")
        stream = wanted.stream
        if wanted.starting_timestamp is not None:
            stream = replace(stream, start=history.moment(history.milliseconds(wanted.starting_timestamp)))
        snapshot = Snapshot.load(open_store(wanted.path, wanted.storage_options), version=version)
        metadata = snapshot.metadata
        task = TaskRead(
            location=snapshot.location,
            storage_options=dict(wanted.storage_options),
            table=(metadata.schema_string, list(metadata.partition_columns), snapshot.properties.column_mapping_mode),
            columns=tuple(snapshot.schema.names),
            arrow=spark_arrow_schema(schema),
        )
        return DeltaStreamReader(TableStream(snapshot, stream), task)

    def initialOffset(self) -> dict[str, Any]:
        return _fields(self._stream.start())

    def latestOffset(self, start: dict[str, Any] | None = None, limit: Any = None) -> dict[str, Any]:
        """Without arguments, as Spark 4.1 asks, the end of all there is."""
        stream = self._stream
        at = stream.start() if start is None else stream.parse(json.dumps(start))
        if self._is_bounded and self._until is None:
            self._until = stream.end(at)
        is_all = start is None or (ReadAllAvailable is not None and isinstance(limit, ReadAllAvailable))
        return _fields(stream.next(at, None if is_all else stream.options.limits, self._until))

    def getDefaultReadLimit(self) -> Any:
        """Shown by Spark; `latestOffset` goes by the options."""
        return ReadMaxFiles(self._stream.options.max_files or 1)

    def prepareForTriggerAvailableNow(self) -> None:
        self._is_bounded, self._until = True, None

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        first, last = (self._stream.parse(json.dumps(each)) for each in (start, end))
        if (first.version, first.index) > (last.version, last.index) or (
            first.initial and first.version == last.version > 0 and not last.initial
        ):
            first = self._stream.first(last)  # a first batch that is run again, when the table has newer versions
        return [FilesOfTask(to_bytes(part)) for part in packed(self._stream.batch(first, last).added)]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        if isinstance(partition, FilesOfTask):
            yield from self.task.batches(of_bytes(partition.files))

    def __reduce__(self) -> tuple[Any, ...]:
        light = DeltaStreamReader.__new__(DeltaStreamReader)
        light.task = self.task
        return WorkerObject.__reduce__(light)


def _fields(offset: StreamOffset) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(offset.json())
    return found
