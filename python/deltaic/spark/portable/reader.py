"""Reading through the Python data source: files are chosen on the driver, packed into tasks, and read by `_core` on the executors."""

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
"""Estimated cost of opening a file, in bytes that could be read meanwhile. Spark's own default."""
_READ = ("path", "size", "partitionValues", "deletionVector", "selection", "keep_selected")
"""Fields of `add` actions that a task needs, and the rows that are chosen."""


def opened(options: Mapping[str, str], version: int | None = None) -> tuple[Snapshot, ReadOptions]:
    """The version that the options name; `version`: the one that was found for them before."""
    read = ReadOptions.of(options)
    if read.changes is not None:
        raise UnsupportedFeatureError(
            "the change data feed through the data source", expected="deltaic.spark.enable, or DeltaTable.changes()"
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


def shown_schema(snapshot: Snapshot, read: ReadOptions) -> StructType:
    """The columns of the DataFrame."""
    return spark_schema(Schema([narrowed(snapshot.schema, name) for name in _columns(snapshot, read)]))


class _PushFilters:
    """`pushFilters` of one reader. PySpark refuses an overridden one while pushdown is off, which it is by default; with `__func__` it
    takes this one for its own, and calls it where pushdown is on."""

    __func__ = staticmethod(DataSourceReader.pushFilters)

    def __init__(self, reader: DeltaReader) -> None:
        self._reader = reader

    def __call__(self, filters: list[Filter]) -> list[Filter]:
        """Files, row groups and rows are left out by what can be said exactly; Spark applies every filter again."""
        self._reader.push(filters)
        return filters


@dataclass(frozen=True, kw_only=True)
class TaskRead:
    """Arguments with which a task reads its files, plain to pickle. `table`: schema, partition columns, column mapping. `predicate`:
    JSON. `constants`: columns of the files' actions that every row of a file has, after `columns`."""

    location: str
    storage_options: Mapping[str, str]
    table: tuple[str, Sequence[str], str]
    columns: tuple[str, ...]
    arrow: pa.Schema
    predicate: str | None = None
    constants: tuple[str, ...] = ()

    @staticmethod
    def of(scan: Scan, storage_options: Mapping[str, str], schema: StructType) -> TaskRead:
        """`schema`: the columns of the scan as Spark has them."""
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
        """The rows of files, as Spark wants them."""
        table_schema = _core.TableSchema(*self.table)
        predicate = None if self.predicate is None else _core.Predicate.from_json(self.predicate, table_schema)
        store = open_store(self.location, self.storage_options)
        stream = _core.read(store, table_schema, files, self.columns, predicate, constants=list(self.constants), threads=1)
        for batch in stream.to_reader():
            yield as_schema(batch, self.arrow)


class DeltaReader(WorkerObject, DataSourceReader):  # type: ignore[misc]  # PySpark's classes are unknown to the type checker
    """One scan: the snapshot stays on the driver, `task` travels."""

    def __init__(self, snapshot: Snapshot, read: ReadOptions, schema: StructType) -> None:
        self.task = TaskRead.of(ScanPlan(snapshot).scan(_columns(snapshot, read)), read.storage_options, schema)
        self._planned, self._wanted = ScanPlan(snapshot), read.partitions
        self.pushFilters = _PushFilters(self)

    @staticmethod
    def of(options: Mapping[str, str], version: int | None, schema: StructType) -> DeltaReader:
        """InvalidArgumentError for a schema that is not the table's: Spark lets users give one."""
        snapshot, read = opened(options, version)
        expected = shown_schema(snapshot, read)
        if _shape(expected) != _shape(schema):
            message = "a Delta table has its own schema: none can be given to read it"
            raise InvalidArgumentError(message, found=schema.simpleString(), expected=expected.simpleString())
        return DeltaReader(snapshot, read, schema)

    def push(self, filters: Iterable[Filter]) -> None:
        """Takes what can be said of these filters into the scan."""
        snapshot = self._planned.snapshot
        predicate = predicate_of(filters, snapshot.table_schema)
        self._planned = ScanPlan(snapshot, predicate)
        self.task = replace(self.task, predicate=None if predicate is None else predicate.json)

    def partitions(self) -> list[InputPartition]:
        return [FilesOfTask(to_bytes(part)) for part in packed(self._planned.selection.adds, self._wanted)]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        if isinstance(partition, FilesOfTask):  # else PySpark's own, for a scan without a partition
            yield from self.task.batches(of_bytes(partition.files))

    def __reduce__(self) -> tuple[Any, ...]:
        light = DeltaReader.__new__(DeltaReader)
        light.task = self.task
        return WorkerObject.__reduce__(light)


class FilesOfTask(WorkerObject, InputPartition):  # type: ignore[misc]
    """Files that one task reads: an Arrow stream of add actions. `kind`: which of the reader's ways of reading is theirs."""

    def __init__(self, files: bytes, kind: int = 0) -> None:
        self.files, self.kind = files, kind

    def __repr__(self) -> str:
        return f"FilesOfTask({len(self.files)} bytes)"


def packed(files: pa.Table, wanted: int | None = None, constants: Sequence[str] = ()) -> list[pa.Table]:
    """Neighbouring files together: tasks of at most TASK_BYTES, and no fewer than there are cores where there is enough to read."""
    if not files.num_rows:
        return []
    cost = files["size"].to_numpy().astype(np.float64) + OPEN_BYTES
    total = float(cost.sum())
    share = total / wanted if wanted else min(TASK_BYTES, max(OPEN_BYTES, total / (os.cpu_count() or 1)))
    # Where a file ends decides: a task is never more than a share and the file it ended with.
    task = np.ceil(np.cumsum(cost) / share - 1e-9).astype(np.int64)
    starts = np.flatnonzero(np.diff(task, prepend=-1))
    ends = np.append(starts[1:], files.num_rows)
    needed = files.select([name for name in files.column_names if name in {*_READ, *constants}])
    return [needed.slice(start, end - start) for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]


def _shape(schema: StructType) -> list[tuple[str, str]]:
    """Names and types without regard to nullability, which Spark may widen."""
    return [(item.name.lower(), item.dataType.simpleString().lower()) for item in schema.fields]
