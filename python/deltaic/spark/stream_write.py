"""Implements `df.writeStream.format("delta")`: each batch of a query is one commit. The commit has the
query's id and the batch's number as an application transaction, so a batch that runs again after a crash is
not written twice."""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from deltaic.commands.create import existing
from deltaic.commands.write_job import Mode
from deltaic.engine.spark.native.session import has_jvm, locations_of
from deltaic.engine.spark.settings import table_properties
from deltaic.engine.spark.stores import opening
from deltaic.errors import InvalidArgumentError, SchemaMismatchError
from deltaic.log import recent
from deltaic.log.store import locate, open_store
from deltaic.plan.nodes import TableRead
from deltaic.protocol.partitioning import partition_columns
from deltaic.spark.builders import BuilderState
from deltaic.spark.frame_writes import options_of, write_frame
from deltaic.spark.named_tables import entering
from deltaic.spark.portable.arrow_values import written_schema
from deltaic.spark.raising import raises_as_spark
from deltaic.table import DeltaTable
from deltaic.transaction.transaction import already_committed

log = logging.getLogger("deltaic.spark")
_QUERY_ID = "sql.streaming.queryId"
"""Local property of the thread that runs a batch: the id of its query."""
_METADATA_BYTES = 1 << 16
"""Maximum bytes of a checkpoint's file `metadata`, which has only the query's id; a larger file is an
error."""
_CHECKPOINT, _CHECKPOINTS = "checkpointLocation", "spark.sql.streaming.checkpointLocation"
_MODES: dict[str, Mode] = {"append": "append", "complete": "overwrite"}
"""Output mode of a query -> save mode of the writes of its batches."""
_CONDITIONS = {
    f"DATATYPE_MISMATCH.CAST_{hint}": "DELTA_FAILED_TO_MERGE_FIELDS"
    for hint in ("WITH_FUNC_SUGGESTION", "WITHOUT_SUGGESTION")
}
"""Condition of INSERT -> condition of a stream for the same mistake: a type that no cast converts."""


@raises_as_spark(instead={"DELTA_PARTITION_COLUMN_NOT_FOUND": "_LEGACY_ERROR_TEMP_1196"})
def batch_writer(
    frame: Any, state: BuilderState, name: str | None
) -> tuple[Callable[[Any, int], None], dict[str, str]]:
    """Returns the function that writes a batch of `frame`, a streaming DataFrame, and the option of the
    query's checkpoint. `name`: the query's name, or None.

    Raises InvalidArgumentError for an output mode other than append and complete, for a query without a
    checkpoint or a path, and for a wrong option or an unknown partition column."""
    spark = frame.sparkSession
    output = (state.mode or "append").lower()
    if output not in _MODES:
        raise InvalidArgumentError(
            "the output mode of a stream into a Delta table", found=state.mode, expected="append or complete"
        ).with_values(mode=output.capitalize())
    checkpoint = {name: text for name, text in state.options.items() if name.lower() == _CHECKPOINT.lower()}
    place = checkpoint_of(spark, state, name)
    if place is None:
        raise InvalidArgumentError(
            "a stream into a Delta table needs a checkpoint: it says which batches are done",
            found="no checkpointLocation",
            expected=f'option("{_CHECKPOINT}", path), or the setting {_CHECKPOINTS}',
        )
    batch_state = BuilderState()
    batch_state.put({name: value for name, value in state.options.items() if name not in checkpoint})
    batch_state.put({"dataChange": None})  # delta-spark's sink does not read it
    batch_state.partition_by, batch_state.cluster_by = state.partition_by, state.cluster_by
    if not batch_state.has("path"):
        raise InvalidArgumentError("a Delta table has exactly one path", found="none", expected="start(path)")
    # On Spark Connect, and after a change of the current folder, a relative path would be another place.
    batch_state.put({"path": locate(batch_state.get("path") or "")})
    options_of(spark, batch_state, _MODES[output])
    if state.partition_by:
        partition_columns(written_schema(frame.schema), state.partition_by)  # raises its errors
    if has_jvm(spark):
        # The plan of a batch does not name its tables, so they are those of the query's plan.
        batch_state.reads = tuple(map(TableRead, locations_of(frame)))
        return BatchWriter(batch_state, output), checkpoint
    return BatchWriter(batch_state, output, place), {_CHECKPOINT: place}


def checkpoint_of(spark: Any, state: BuilderState, name: str | None) -> str | None:
    """Returns the location of a query's checkpoint, which the option checkpointLocation names, or a setting
    for all queries; None without either of them. `name`: the query's name, or None."""
    if (place := state.get(_CHECKPOINT)) is not None:
        return locate(place)
    folder = spark.conf.get(_CHECKPOINTS, None)
    return None if folder is None else locate(f"{folder}/{name or uuid.uuid4()}")


@dataclass
class BatchWriter:
    """Writes the batches of one query. `output`: append or complete. `checkpoint`: location of the query's
    checkpoint, from which the query's id is read on Spark Connect; None if the thread's local property has
    the id. `is_first`: True before the first batch, the only one that a former run may have written."""

    state: BuilderState
    output: str
    checkpoint: str | None = None
    is_first: bool = True

    @raises_as_spark(instead=_CONDITIONS)
    def __call__(self, batch: Any, number: int) -> None:
        query = self._query(batch)
        _check_types(batch.schema)
        job = BuilderState()
        job.put({**self.state.options, "txnAppId": query, "txnVersion": number})
        if self.output == "complete":
            job.put({"partitionOverwriteMode": "static", "replaceWhere": None})
        job.partition_by, job.cluster_by = self.state.partition_by, self.state.cluster_by
        job.reads = self.state.reads
        job.streaming = {"outputMode": self.output.capitalize(), "queryId": query, "epochId": str(number)}
        is_written = self.is_first and _is_written(batch.sparkSession, job, _MODES[self.output])
        self.is_first = False
        if is_written:
            _run(batch)
        else:
            write_frame(batch, job, _MODES[self.output], casts=True)

    def _query(self, batch: Any) -> str:
        """Returns the query's id."""
        if self.checkpoint is None:
            query = batch.sparkSession.sparkContext.getLocalProperty(_QUERY_ID)
            if query is None:
                raise InvalidArgumentError(
                    "the batch's thread does not know its query", expected="PYSPARK_PIN_THREAD=true"
                )
            return str(query)
        with opening(batch.sparkSession):
            data = open_store(self.checkpoint).get("metadata", most=_METADATA_BYTES)
        return str(json.loads(data)["id"])


def _is_written(spark: Any, job: BuilderState, mode: Mode) -> bool:
    """True if the table has the batch already: the query has ended between the commit and the end of the
    batch."""
    options, _ = options_of(spark, job, mode)
    with opening(spark):
        store = open_store(locate(options.path), dict(options.storage_options) or None)
    return already_committed(recent.newest(store) or existing(store), options.job.commit)


def _run(batch: Any) -> None:
    """Computes the rows of a batch that is not written. Spark ends a query with state (an aggregation, a
    join, ...) if a batch does not commit the state of all partitions. Without state an error, for example
    because the files of the batch are gone, has no effect."""
    try:
        batch.write.format("noop").mode("overwrite").save()
    except Exception as error:
        log.warning("a batch that the table has already could not be computed again: %s", error)


def create_table(df: Any, state: BuilderState) -> None:
    """Creates the table `state.new` with the columns of the stream, unless it exists."""
    spark, new = df.sparkSession, state.new
    with opening(spark), entering(spark, new):
        if not DeltaTable.exists(new.path):
            properties = table_properties(spark, None)
            DeltaTable.create(
                new.path,
                written_schema(df.schema),
                partition_by=state.partition_by,
                cluster_by=state.cluster_by,
                properties=properties,
            )


def _check_types(schema: Any) -> None:
    if '"void"' in schema.json():
        raise SchemaMismatchError(
            "[DELTA_NULL_SCHEMA_IN_STREAMING_WRITE] a column of the type void cannot be written by a stream",
            found=schema.simpleString(),
        )
