"""`df.writeStream.format("delta")`: each batch of a query is one commit, which carries the query's id and the batch's number as an
application transaction, so that a batch that runs again after a crash is passed over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from deltaic.engine.spark.settings import table_properties
from deltaic.engine.spark.stores import opening
from deltaic.errors import InvalidArgumentError, SchemaMismatchError
from deltaic.spark.frame_writes import Asked, write_frame
from deltaic.spark.named_tables import enter, place_of
from deltaic.spark.portable.arrow_values import written_schema
from deltaic.sql.names import Name
from deltaic.table import DeltaTable

_QUERY_ID = "sql.streaming.queryId"
"""Local property of the thread that runs a batch."""
_CHECKPOINTS = "spark.sql.streaming.checkpointLocation"
_MODES = {"append": "append", "complete": "overwrite"}


def batch_writer(spark: Any, asked: Asked) -> tuple[Callable[[Any, int], None], dict[str, str]]:
    """The function that writes a batch, and the options of the query's own. InvalidArgumentError for an output mode, or options, that a
    table does not take, and for a query without a checkpoint."""
    output = (asked.mode or "append").lower()
    if output not in _MODES:
        raise InvalidArgumentError("the output mode of a stream into a Delta table", found=asked.mode, expected="append or complete")
    kept = {name: str(value) for name, value in asked.options.items() if name.lower() == "checkpointlocation"}
    if not kept and spark.conf.get(_CHECKPOINTS, None) is None:
        raise InvalidArgumentError(
            "a stream into a Delta table needs a checkpoint: it says which batches are done",
            found="no checkpointLocation",
            expected=f'option("checkpointLocation", path), or the setting {_CHECKPOINTS}',
        )
    told = Asked()
    told.put({name: value for name, value in asked.options.items() if name not in kept})
    told.partition_by, told.cluster_by = asked.partition_by, asked.cluster_by
    if not told.has("path"):
        raise InvalidArgumentError("a Delta table is one path", found="none", expected="start(path)")

    def write_batch(batch: Any, number: int) -> None:
        query = batch.sparkSession.sparkContext.getLocalProperty(_QUERY_ID)
        _check_types(batch.schema)
        job = Asked()
        job.put({**told.options, "txnAppId": query, "txnVersion": number})
        if output == "complete":
            job.put({"partitionOverwriteMode": "static"})
        job.partition_by, job.cluster_by = told.partition_by, told.cluster_by
        job.streaming = {"outputMode": output.capitalize(), "queryId": query, "epochId": str(number)}
        write_frame(batch, job, _MODES[output])

    return write_batch, kept


def named_place(df: Any, name: Name, location: str | None, partition_by: tuple[str, ...]) -> str:
    """The path of the table of a name, which is made, with the columns of the stream, where it is not there yet."""
    spark = df.sparkSession
    new = place_of(spark, name, location)
    with opening(spark):
        if not DeltaTable.exists(new.path):
            properties = table_properties(spark, None)
            DeltaTable.create(new.path, written_schema(df.schema), partition_by=partition_by, properties=properties)
    enter(spark, new)
    return new.path


def _check_types(schema: Any) -> None:
    if '"void"' in schema.json():
        raise SchemaMismatchError(
            "[DELTA_NULL_SCHEMA_IN_STREAMING_WRITE] a column of the type void cannot be written by a stream", found=schema.simpleString()
        )
