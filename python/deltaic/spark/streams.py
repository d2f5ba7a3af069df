"""Implements structured streaming in an enabled session: replaces the methods of PySpark's stream readers and
writers, for streams of the formats "delta" and "deltaic". On Spark Connect, the function of `foreachBatch`
runs in the server's process; there its session is enabled, too."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Mapping
from typing import Any

from deltaic.engine.spark.engine import enabled_as, engine_of, session_of
from deltaic.engine.spark.native.session import has_jvm
from deltaic.engine.spark.native.stream import schema_logs, write_batches
from deltaic.engine.spark.read_path import Native
from deltaic.engine.spark.settings import SCHEMA_LOG_ANYWHERE, is_on
from deltaic.errors import InvalidArgumentError, SchemaMismatchError, TableNotFoundError
from deltaic.log.schema_log import check_distinct
from deltaic.log.store import locate
from deltaic.spark import patches
from deltaic.spark.builders import (
    BuilderState,
    frame_of_writer,
    is_delta,
    names_of,
    note_function,
    record_calls,
    record_frames,
    state_of,
)
from deltaic.spark.named_tables import is_temporary_view, parsed, path_in_catalog, place_of
from deltaic.spark.options import StreamReadOptions
from deltaic.spark.portable.shipping import by_value
from deltaic.spark.raising import raises_as_spark
from deltaic.spark.stream_read import allowed_by_settings, read_stream
from deltaic.spark.views import named_frame, path_or_named


def wrap(frames: Any, readers: Any) -> None:
    """Replaces the methods of the session's classes. `frames`, `readers`: the classes of DataFrames and of
    stream readers. A second call changes nothing."""
    writers = vars(sys.modules[readers.__module__])["DataStreamWriter"]
    record_frames(frames, "writeStream")
    record_calls(readers, "format", "option", "options", "schema")
    record_calls(writers, "format", "option", "options", "outputMode", "partitionBy", "clusterBy", "foreach")
    record_calls(writers, "queryName", "trigger")
    patches.replace(readers, "load", _load)
    patches.replace(readers, "table", _table)
    patches.replace(writers, "start", _start)
    patches.replace(writers, "toTable", _to_table)
    patches.wrap(writers, "foreachBatch", _enabling)


def _load(
    load: Any, self: Any, /, path: Any = None, format: str | None = None, schema: Any = None, **options: Any
) -> Any:
    if not is_delta(self, format):
        return load(self, path, format, schema, **options)
    state = state_of(self)
    state.put({**options, **({} if path is None else {"path": os.fspath(path)})})
    state.put(allowed := allowed_by_settings(session_of(self)))
    if not engine_of(session_of(self)).is_native:
        read = StreamReadOptions.of(state.options)  # raises errors that the server would raise later
        self.option("path", locate(read.path))  # a relative path would be another place on the server
        return load(self, None, format, schema, **options, **allowed)
    frame = _read(session_of(self), state)
    _check_schema(frame, state.schema if schema is None else schema)
    return frame


def _check_schema(frame: Any, reader_schema: Any) -> None:
    """Raises InvalidArgumentError if the schema that was set on a reader differs from the table's in more
    than nullability."""
    if reader_schema is None:
        return
    from pyspark.sql.types import StructType

    schema = StructType.fromDDL(reader_schema) if isinstance(reader_schema, str) else reader_schema
    if schema.simpleString().lower() != frame.schema.simpleString().lower():
        raise InvalidArgumentError(
            "[DELTA_READ_SOURCE_SCHEMA_CONFLICT] a Delta table has its own schema",
            found=schema.simpleString(),
            expected=f"{frame.schema.simpleString()}, or no schema()",
        )


def _table(table: Any, self: Any, tableName: str) -> Any:
    path = path_or_named(session_of(self), tableName) if is_delta(self, "delta") else None
    if path is None:
        return table(self, tableName)
    spark = session_of(self)
    if not engine_of(spark).is_native:
        return named_frame(spark, self.format("delta").load(path), tableName, path)
    state_of(self).put({"path": path, **allowed_by_settings(spark)})
    return named_frame(spark, _read(spark, state_of(self)), tableName, path)


@raises_as_spark({TableNotFoundError: "DELTA_SCHEMA_NOT_SET"})
def _read(spark: Any, state: BuilderState) -> Any:
    options = StreamReadOptions.of(state.options)
    frame = read_stream(spark, options)
    if not frame.columns:
        raise SchemaMismatchError(
            "[DELTA_SCHEMA_NOT_SET] the table has no columns yet",
            where=options.path,
            expected="a write that merges schemas, or ADD COLUMN",
        )
    return frame


def _start(
    start: Any,
    self: Any,
    /,
    path: Any = None,
    format: str | None = None,
    outputMode: str | None = None,
    partitionBy: Any = None,
    queryName: str | None = None,
    **options: Any,
) -> Any:
    state = state_of(self)
    _check_schema_logs(self, {**state.options, **options}, queryName or _query_name(state))
    if not is_delta(self, format):
        return start(self, path, format, outputMode, partitionBy, queryName, **options)
    state.put({**options, **({} if path is None else {"path": os.fspath(path)})})
    if partitionBy is not None:
        state.partition_by = names_of((partitionBy,))
    if outputMode is not None:
        self.outputMode(outputMode)
    if queryName is not None:
        self.queryName(queryName)
    return _write(start, self, state)


def _to_table(
    to_table: Any,
    self: Any,
    /,
    tableName: str,
    format: str | None = None,
    outputMode: str | None = None,
    partitionBy: Any = None,
    queryName: str | None = None,
    **options: Any,
) -> Any:
    name = parsed(tableName) if is_delta(self, "delta") else None
    path = None if name is None else name.path
    spark = session_of(self)
    is_named = (
        name is not None
        and path is None
        and (is_delta(self, format) or path_in_catalog(spark, name.parts) is not None)
    )
    if name is not None and is_named and not is_temporary_view(spark, name.parts):  # Spark refuses a view
        location = options.pop("path", None) or state_of(self).get("path")
        state_of(self).new = new = place_of(spark, name, location)
        path = new.path
    if path is None:
        state = state_of(self)
        _check_schema_logs(self, {**state.options, **options}, queryName or _query_name(state))
        return to_table(self, tableName, format, outputMode, partitionBy, queryName, **options)
    return self.start(path, "delta", outputMode, partitionBy, queryName, **options)


def _write(start: Any, writer: Any, state: BuilderState) -> Any:
    """Starts a query that writes each batch by `foreachBatch`. The calls of outputMode, queryName and trigger
    are repeated on a new writer, because Spark refuses foreachBatch on a writer with partition columns."""
    from deltaic.spark.stream_write import batch_writer, create_table

    frame = frame_of_writer(writer)
    write_batch, checkpoint = batch_writer(frame, state, _query_name(state))
    if state.new is not None:
        create_table(frame, state)
        state.new = None
    new_writer = frame.writeStream.options(**checkpoint)
    for call, args, named in state.calls:
        new_writer = getattr(new_writer, call)(*args, **named)
    engine = engine_of(frame.sparkSession)
    return start(
        engine.read_path.planned(
            "a stream into a table",
            lambda: write_batches(engine.jvm, new_writer, write_batch),
            lambda: new_writer.foreachBatch(write_batch),
        )
    )


def _query_name(state: BuilderState) -> str | None:
    """Returns the name that was set on a writer for its query, or None."""
    names = (
        args[0] if args else named.get("queryName")
        for call, args, named in reversed(state.calls)
        if call == "queryName"
    )
    return next(names, None)


def _check_schema_logs(writer: Any, options: Mapping[str, Any], name: str | None) -> None:
    """Raises InvalidArgumentError if two sources of the query have one schema log, or if a schema log is not
    below the query's checkpoint. Without Spark's driver interfaces, the query itself checks that later, and
    so does a query with a temporary checkpoint.

    `options`: the options of the writer. `name`: the query's name, or None."""
    from deltaic.spark.stream_write import checkpoint_of

    spark = session_of(writer)
    if enabled_as(spark) is None or not engine_of(spark).is_native:
        return
    logs = schema_logs(engine_of(spark).jvm, frame_of_writer(writer))
    state = BuilderState()
    state.put(options)
    place = checkpoint_of(spark, state, name) if logs else None
    if place is not None and not is_on(spark, SCHEMA_LOG_ANYWHERE):
        for log, _ in logs:
            log.check_below(place)
    check_distinct(logs)


def _enabling(method: Any) -> Any:
    """Returns the replacement of `foreachBatch`. On Spark Connect it enables the session in which the user's
    function runs: a clone of the session, in a Python process of the server."""

    @functools.wraps(method)
    def enabling(self: Any, func: Any) -> Any:
        note_function(state_of(self))
        spark = session_of(self)
        native = enabled_as(spark)
        if native is None or has_jvm(spark):
            return method(self, func)
        from deltaic.spark.statements import is_installed

        return method(self, functools.partial(by_value(_run_batch), func, native, is_installed(spark)))

    return enabling


def _run_batch(function: Any, native: Native, sql: bool, batch: Any, number: int) -> Any:
    """Enables the session of a batch and calls the user's function. This function is pickled by value and
    runs on the server, which may not have deltaic, so it must not use other names of this module."""
    try:
        from deltaic.spark.sessions import enable_clone
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "deltaic":
            raise
    else:
        enable_clone(batch.sparkSession, native, sql=sql)
    return function(batch, number)
