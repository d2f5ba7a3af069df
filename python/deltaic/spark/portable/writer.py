"""Writes of the Python data source: tasks write data files with `_core`, and the driver commits them as one
version.

`commands.write` determines the table's definition before the tasks run, and commits their files afterwards.
A task that fails or runs twice, and a commit that fails, leave files that no version refers to; VACUUM
deletes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from deltaic import _core
from deltaic.commands.create import existing
from deltaic.commands.data_files import write_target
from deltaic.commands.write import TaskFiles, checked_rows, prepared, write
from deltaic.commands.write_job import Write
from deltaic.engine.duckdb.engine import LocalEngine, LocalRelation, arrow_schema
from deltaic.engine.spark.batches import of_bytes, relabelled, to_bytes
from deltaic.log.snapshot import Snapshot
from deltaic.log.store import locate, open_store
from deltaic.plan.nodes import Data
from deltaic.protocol.actions import Metadata, Protocol
from deltaic.protocol.schema import Schema
from deltaic.spark.options import WriteOptions
from deltaic.spark.portable.arrow_values import written_schema
from deltaic.spark.portable.shipping import WorkerObject

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


# PySpark's classes are unknown to the type checker
class TaskResult(WorkerObject, WriterCommitMessage):  # type: ignore[misc]
    """The result of one task. `adds`: the add actions of its files as an Arrow stream, None without files."""

    def __init__(self, adds: bytes | None) -> None:
        self.adds = adds


class DeltaWriter(WorkerObject, DataSourceArrowWriter):  # type: ignore[misc]
    """One write. `version`: the newest version when the write was planned, on which the commit is based; None
    if there was no table. `definition`: protocol and metadata of the new version, None if nothing is to be
    written (mode `ignore`)."""

    version: int | None
    definition: tuple[Protocol, Metadata] | None

    @staticmethod
    def of(options: Mapping[str, str], schema: StructType, overwrite: bool) -> DeltaWriter:
        """Plans a write on the driver, and raises the errors that do not depend on rows."""
        writer = DeltaWriter()
        writer.write_options = WriteOptions.of(options, "overwrite" if overwrite else "append")
        writer.schema = written_schema(schema)
        writer.location = locate(writer.write_options.path)
        snapshot = existing(writer._store())
        writer.write_options = writer.write_options.into(None if snapshot is None else snapshot.metadata)
        writer.version = None if snapshot is None else snapshot.version
        writer.definition = prepared(snapshot, writer.schema, writer.write_options.job)
        return writer

    write_options: WriteOptions
    schema: Schema
    location: str

    def _store(self) -> _core.Store:
        return open_store(self.location, self.write_options.storage_options)

    @property
    def _job(self) -> Write:
        return self.write_options.job

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskResult:
        """Writes the rows of a task to data files. If there is an error, `_core` deletes the files."""
        if self.definition is None:
            return TaskResult(None)
        protocol, metadata = self.definition
        engine = LocalEngine()
        rows = checked_rows(engine, self._source(iterator), protocol, metadata, self._job)
        target = write_target(
            self._store(),
            metadata,
            protocol,
            self._job.parquet,
            target_file_size=self._job.target_file_size,
            threads=1,
            synced_by_commit=False,
            **self.write_options.more,
        )
        adds = engine.write(engine.run(rows), target)
        return TaskResult(to_bytes(adds) if adds.num_rows else None)

    def _source(self, batches: Iterator[pa.RecordBatch]) -> Data:
        """Returns the leaf of a plan with Spark's batches. The schema is passed because the batches do not
        distinguish variants from structs."""
        table_schema = _core.TableSchema(self.schema.to_json())
        declared = arrow_schema(self.schema)
        reader = pa.RecordBatchReader.from_batches(declared, relabelled(batches, declared))

        def opened(work: Any) -> _core.ReadStream:
            stream = _core.conform(reader, table_schema)
            work.streams.append(stream)
            return stream

        return Data(handle=LocalRelation(self.schema, opened), schema=self.schema, alias="s")

    def commit(self, messages: list[Any]) -> None:
        """Commits the files of all tasks as one version."""
        if self.definition is None:
            return
        store = self._store()
        protocol, metadata = self.definition
        parts = [
            of_bytes(message.adds) for message in messages if message is not None and message.adds is not None
        ]
        adds = pa.concat_tables(parts) if parts else _core.empty_adds()
        snapshot = None if self.version is None else Snapshot.load(store, version=self.version)
        write(store, snapshot, LocalEngine(), TaskFiles(protocol, metadata, adds), self._job)

    def abort(self, messages: list[Any]) -> None:
        """Deletes nothing: Spark also calls this method after a commit whose outcome is unknown, so that a
        version may refer to the files. VACUUM deletes them if none does."""
