"""Batch reads of the Python data source: the driver selects files and divides them among tasks, and `_core`
reads them on the executors."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition

from deltaic import _core
from deltaic.engine.spark.batches import as_schema, of_bytes, spark_arrow_schema, to_bytes
from deltaic.errors import InvalidArgumentError, UnsupportedFeatureError
from deltaic.log import history
from deltaic.log.snapshot import Snapshot
from deltaic.log.store import open_store
from deltaic.plan.nodes import Scan
from deltaic.planning.columns import narrowed, resolve_columns
from deltaic.planning.planned import ScanPlan
from deltaic.protocol.schema import Schema
from deltaic.spark.options import ReadOptions
from deltaic.spark.portable.arrow_values import spark_schema
from deltaic.spark.portable.filters import predicate_of
from deltaic.spark.portable.shipping import WorkerObject

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

TASK_BYTES = 128 * 1024**2
"""Maximum bytes of files that one task reads; a single larger file is still allowed. Spark's own default."""
OPEN_BYTES = 4 * 1024**2
"""Estimated cost of opening a file, in bytes that could be read in that time. Spark's own default."""
_TASK_COLUMNS = ("path", "size", "partitionValues", "deletionVector", "selection", "keep_selected")
"""Columns of the table of files that a task needs: fields of `add` actions, and the selected rows."""


def opened(options: Mapping[str, str], version: int | None = None) -> tuple[Snapshot, ReadOptions]:
    """Opens the version that the options name, and returns it with the parsed options. `version`: the version
    if it is known already."""
    read = ReadOptions.of(options)
    if read.changes is not None:
        raise UnsupportedFeatureError(
            "the change data feed through the data source is not supported",
            expected="deltaic.spark.enable, or DeltaTable.changes()",
        )
    store = open_store(read.path, read.storage_options)
    if version is not None:
        return Snapshot.load(store, version=version), read
    version = read.version
    if read.timestamp is not None:
        version = history.version_at(store, read.timestamp, version, after_last=False)
    return Snapshot.load(store, version=version), read


def _columns(snapshot: Snapshot, read: ReadOptions) -> tuple[str, ...]:
    return resolve_columns(snapshot.schema, read.columns)


def frame_schema(snapshot: Snapshot, read: ReadOptions) -> StructType:
    """Returns the schema of the DataFrame."""
    return spark_schema(Schema([narrowed(snapshot.schema, name) for name in _columns(snapshot, read)]))


class _PushFilters:
    """The method `pushFilters` of one reader, as an object that PySpark does not take for an override:
    PySpark compares `__func__`. While pushdown is off, which is the default, PySpark refuses a reader that
    overrides the method. If pushdown is on, it calls this object."""

    __func__ = staticmethod(DataSourceReader.pushFilters)

    def __init__(self, reader: DeltaReader) -> None:
        self._reader = reader

    def __call__(self, filters: list[Filter]) -> list[Filter]:
        """Pushes the filters into the scan, and returns all of them, so that Spark applies them to the rows
        again."""
        self._reader.push(filters)
        return filters


@dataclass(frozen=True, kw_only=True)
class TaskRead:
    """The arguments with which a task reads its files. All can be pickled.

    `table`: schema as JSON, partition columns, mode of column mapping. `columns`: names of the columns.
    `arrow`: schema of the batches that PySpark expects. `predicate`: JSON of a `_core.Predicate`.
    `constants`: names of columns of the table of files; each row of a file gets the file's values, after
    `columns`."""

    location: str
    storage_options: Mapping[str, str]
    table: tuple[str, Sequence[str], str]
    columns: tuple[str, ...]
    arrow: pa.Schema
    predicate: str | None = None
    constants: tuple[str, ...] = ()

    @staticmethod
    def of(scan: Scan, storage_options: Mapping[str, str], schema: StructType) -> TaskRead:
        """Returns the arguments for a scan. `schema`: the scan's columns in Spark's types."""
        definition = scan.table_schema
        return TaskRead(
            location=scan.store.location,
            storage_options=dict(storage_options),
            table=(definition.json, list(definition.partition_columns), definition.column_mapping),
            columns=scan.columns,
            arrow=spark_arrow_schema(schema),
            constants=tuple(item.name for item in scan.constants),
        )

    def batches(self, files: pa.Table) -> Iterator[pa.RecordBatch]:
        """Reads files, and yields their rows in Spark's types."""
        table_schema = _core.TableSchema(*self.table)
        predicate = (
            None if self.predicate is None else _core.Predicate.from_json(self.predicate, table_schema)
        )
        store = open_store(self.location, self.storage_options)
        stream = _core.read(
            store, table_schema, files, self.columns, predicate, constants=list(self.constants), threads=1
        )
        for batch in stream.to_reader():
            yield as_schema(batch, self.arrow)


# PySpark's classes are unknown to the type checker
class DeltaReader(WorkerObject, DataSourceReader):  # type: ignore[misc]
    """One batch read. The snapshot stays on the driver; only `task` is sent to the executors."""

    def __init__(self, snapshot: Snapshot, read: ReadOptions, schema: StructType) -> None:
        self.task = TaskRead.of(
            ScanPlan(snapshot).scan(_columns(snapshot, read)), read.storage_options, schema
        )
        self._plan, self._task_count = ScanPlan(snapshot), read.partitions
        self.pushFilters = _PushFilters(self)

    @staticmethod
    def of(options: Mapping[str, str], version: int | None, schema: StructType) -> DeltaReader:
        """Returns the reader of a DataFrame. Raises InvalidArgumentError if the user has set a schema that
        differs from the table's."""
        snapshot, read = opened(options, version)
        expected = frame_schema(snapshot, read)
        if _shape(expected) != _shape(schema):
            message = "a Delta table has its own schema: none can be given to read it"
            raise InvalidArgumentError(message, found=schema.simpleString(), expected=expected.simpleString())
        return DeltaReader(snapshot, read, schema)

    def push(self, filters: Iterable[Filter]) -> None:
        """Pushes those filters into the scan that can be converted."""
        snapshot = self._plan.snapshot
        predicate = predicate_of(filters, snapshot.table_schema)
        self._plan = ScanPlan(snapshot, predicate)
        self.task = replace(self.task, predicate=None if predicate is None else predicate.json)

    def partitions(self) -> list[InputPartition]:
        return [FilesOfTask(to_bytes(part)) for part in packed(self._plan.selection.adds, self._task_count)]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        if isinstance(partition, FilesOfTask):  # for a scan without files, PySpark passes another partition
            yield from self.task.batches(of_bytes(partition.files))

    def __reduce__(self) -> tuple[Any, ...]:
        copy = DeltaReader.__new__(DeltaReader)
        copy.task = self.task
        return WorkerObject.__reduce__(copy)


class FilesOfTask(WorkerObject, InputPartition):  # type: ignore[misc]
    """The files that one task reads. `files`: their add actions as an Arrow stream. `kind`: for a stream, the
    index in `DeltaStreamReader.tasks` of the `TaskRead` with which they are read."""

    def __init__(self, files: bytes, kind: int = 0) -> None:
        self.files, self.kind = files, kind

    def __repr__(self) -> str:
        return f"FilesOfTask({len(self.files)} bytes)"


def packed(files: pa.Table, task_count: int | None = None, constants: Sequence[str] = ()) -> list[pa.Table]:
    """Divides files among tasks; neighbouring files stay together. A task gets about TASK_BYTES, or less if
    there would be fewer tasks than cores. `task_count`: number of tasks, None for the rule above.
    `constants`: names of further columns that the tasks need."""
    if not files.num_rows:
        return []
    cost = files["size"].to_numpy().astype(np.float64) + OPEN_BYTES
    total = float(cost.sum())
    share = (
        total / task_count if task_count else min(TASK_BYTES, max(OPEN_BYTES, total / (os.cpu_count() or 1)))
    )
    # A file belongs to the task in whose share it ends, so a task is at most a share and one file.
    task = np.ceil(np.cumsum(cost) / share - 1e-9).astype(np.int64)
    starts = np.flatnonzero(np.diff(task, prepend=-1))
    ends = np.append(starts[1:], files.num_rows)
    needed = files.select([name for name in files.column_names if name in {*_TASK_COLUMNS, *constants}])
    return [
        needed.slice(start, end - start) for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
    ]


def _shape(schema: StructType) -> list[tuple[str, str]]:
    """Returns names and types of a schema, without nullability, because Spark may make a column nullable."""
    return [(item.name.lower(), item.dataType.simpleString().lower()) for item in schema.fields]
