"""Implements structured streaming in an enabled session: replaces the methods of PySpark's stream readers and
writers, for streams of the formats "delta" and "deltaic". On Spark Connect, the function of `foreachBatch`
runs in the server's process; there its session is enabled, too."""

from __future__ import annotations

import functools
import os
import sys
from typing import Any

from deltaic.engine.spark.engine import enabled_as, engine_of, session_of
from deltaic.engine.spark.native.session import has_jvm
from deltaic.engine.spark.read_path import Native
from deltaic.errors import InvalidArgumentError, TableNotFoundError
from deltaic.spark import patches
from deltaic.spark.frame_writes import FORMATS, BuilderState
from deltaic.spark.named_tables import is_temporary_view, parsed, path_in_catalog, place_of
from deltaic.spark.options import StreamReadOptions
from deltaic.spark.portable.shipping import by_value
from deltaic.spark.raising import raises_as_spark
from deltaic.spark.stream_read import allowed_by_settings, read_stream
from deltaic.spark.views import named_frame, path_or_named

_WRAPPED = "_deltaic_wrapped"
_STATE = "_deltaic_stream"
_FRAME = "_deltaic_frame"
"""Attribute of a writer: the DataFrame that it writes."""
_CALLS = "_deltaic_calls"
"""Attribute of a writer: its calls of outputMode, queryName and trigger (name, positional and named
arguments), to be repeated on the writer that starts the query."""


def wrap(frames: Any, readers: Any) -> None:
    """Replaces the methods of the session's classes. `frames`, `readers`: the classes of DataFrames and of
    stream readers. A second call changes nothing."""
    writers = vars(sys.modules[readers.__module__])["DataStreamWriter"]
    _note(readers, "format", "option", "options", "schema")
    _note(writers, "format", "option", "options", "outputMode", "partitionBy", "clusterBy", "foreach")
    _keep_calls(writers, "outputMode", "queryName", "trigger")
    _note_frames(frames)
    _replace(readers, "load", _load)
    _replace(readers, "table", _table)
    _replace(writers, "start", _start)
    _replace(writers, "toTable", _to_table)
    _enable_batches(writers)


def _note_frames(frames: Any) -> None:
    """Sets the DataFrame of each stream writer as its attribute _FRAME, because a writer of Spark Connect has
    only the plan."""
    write = frames.writeStream
    if _WRAPPED in write.fget.__dict__:
        return

    @functools.wraps(write.fget)
    def noting(self: Any) -> Any:
        writer = write.fget(self)
        writer.__dict__[_FRAME] = self
        return writer

    noting.__dict__[_WRAPPED] = True
    patches.replace(frames, "writeStream", property(noting, doc=write.__doc__))


def _state_of(builder: Any) -> BuilderState:
    """Returns what was set on a stream reader or writer."""
    state: BuilderState = builder.__dict__.setdefault(_STATE, BuilderState())
    return state


def _note(kind: Any, *names: str) -> None:
    for name in names:
        if (method := getattr(kind, name, None)) is not None and _WRAPPED not in method.__dict__:
            patches.replace(kind, name, _noting(method, name))


def _noting(method: Any, name: str) -> Any:
    @functools.wraps(method)
    def noted(self: Any, *args: Any, **named: Any) -> Any:
        _NOTES[name](_state_of(self), *args, **named)
        return method(self, *args, **named)

    noted.__dict__[_WRAPPED] = True
    return noted


def _format(state: BuilderState, source: str) -> None:
    state.format = source


def _function(state: BuilderState, f: Any) -> None:
    """Sets a format that is not Delta's, because the user's function writes the rows, even if the session's
    default format is delta."""
    state.format = "foreach"


def _schema(state: BuilderState, schema: Any) -> None:
    state.schema = schema


def _option(state: BuilderState, key: str, value: Any) -> None:
    state.put({key: value})


def _options(state: BuilderState, **options: Any) -> None:
    state.put(options)


def _mode(state: BuilderState, outputMode: str) -> None:
    state.mode = outputMode


def _columns(columns: tuple[Any, ...]) -> tuple[str, ...]:
    return tuple(columns[0]) if len(columns) == 1 and isinstance(columns[0], (list, tuple)) else columns


def _partition_by(state: BuilderState, *columns: Any) -> None:
    state.partition_by = _columns(columns)


def _cluster_by(state: BuilderState, *columns: Any) -> None:
    state.cluster_by = _columns(columns)


_NOTES: dict[str, Any] = {
    "format": _format,
    "option": _option,
    "options": _options,
    "schema": _schema,
    "outputMode": _mode,
    "partitionBy": _partition_by,
    "clusterBy": _cluster_by,
    "foreach": _function,
}


def _keep_calls(kind: Any, *names: str) -> None:
    for name in names:
        if _CALLS not in (method := getattr(kind, name)).__dict__:
            patches.replace(kind, name, _keeping(method, name))


def _keeping(method: Any, name: str) -> Any:
    @functools.wraps(method)
    def kept(self: Any, *args: Any, **named: Any) -> Any:
        self.__dict__.setdefault(_CALLS, []).append((name, args, named))
        return method(self, *args, **named)

    kept.__dict__[_CALLS] = True
    return kept


def _replace(kind: Any, name: str, call: Any) -> None:
    method = getattr(kind, name)
    if _WRAPPED in method.__dict__:
        return

    @raises_as_spark()
    @functools.wraps(method)
    def called(self: Any, *args: Any, **named: Any) -> Any:
        return call(method, self, *args, **named)

    called.__dict__[_WRAPPED] = True
    patches.replace(kind, name, called)


def _is_delta(builder: Any, format: str | None) -> bool:
    spark = session_of(builder)
    name = format or _state_of(builder).format or spark.conf.get("spark.sql.sources.default", "parquet")
    return enabled_as(spark) is not None and str(name).lower() in FORMATS


def _load(
    load: Any, self: Any, path: Any = None, format: str | None = None, schema: Any = None, **options: Any
) -> Any:
    if not _is_delta(self, format):
        return load(self, path, format, schema, **options)
    state = _state_of(self)
    state.put({**options, **({} if path is None else {"path": os.fspath(path)})})
    state.put(allowed := allowed_by_settings(session_of(self)))
    if not engine_of(session_of(self)).is_native:
        StreamReadOptions.of(state.options)  # called for its errors, which the server would raise later
        return load(self, path, format, schema, **options, **allowed)
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
    path = path_or_named(session_of(self), tableName) if _is_delta(self, "delta") else None
    if path is None:
        return table(self, tableName)
    spark = session_of(self)
    if not engine_of(spark).is_native:
        return named_frame(spark, self.format("delta").load(path), tableName, path)
    _state_of(self).put({"path": path, **allowed_by_settings(spark)})
    return named_frame(spark, _read(spark, _state_of(self)), tableName, path)


@raises_as_spark({TableNotFoundError: "DELTA_SCHEMA_NOT_SET"})
def _read(spark: Any, state: BuilderState) -> Any:
    return read_stream(spark, StreamReadOptions.of(state.options))


def _start(
    start: Any,
    self: Any,
    path: Any = None,
    format: str | None = None,
    outputMode: str | None = None,
    partitionBy: Any = None,
    queryName: str | None = None,
    **options: Any,
) -> Any:
    if not _is_delta(self, format):
        return start(self, path, format, outputMode, partitionBy, queryName, **options)
    state = _state_of(self)
    state.put({**options, **({} if path is None else {"path": os.fspath(path)})})
    if partitionBy is not None:
        _partition_by(state, *([partitionBy] if isinstance(partitionBy, str) else partitionBy))
    if outputMode is not None:
        self.outputMode(outputMode)
    if queryName is not None:
        self.queryName(queryName)
    return _write(start, self, state)


def _to_table(
    to_table: Any,
    self: Any,
    tableName: str,
    format: str | None = None,
    outputMode: str | None = None,
    partitionBy: Any = None,
    queryName: str | None = None,
    **options: Any,
) -> Any:
    name = parsed(tableName) if _is_delta(self, "delta") else None
    path = None if name is None else name.path
    spark = session_of(self)
    is_named = (
        name is not None
        and path is None
        and (_is_delta(self, format) or path_in_catalog(spark, name.parts) is not None)
    )
    if name is not None and is_named and not is_temporary_view(spark, name.parts):  # Spark refuses a view
        location = options.pop("path", None) or _state_of(self).get("path")
        _state_of(self).new = new = place_of(spark, name, location)
        path = new.path
    if path is None:
        return to_table(self, tableName, format, outputMode, partitionBy, queryName, **options)
    return self.start(path, "delta", outputMode, partitionBy, queryName, **options)


def _write(start: Any, writer: Any, state: BuilderState) -> Any:
    """Starts a query that writes each batch by `foreachBatch`. The calls of _CALLS are repeated on a new
    writer, because Spark refuses foreachBatch on a writer with partition columns."""
    from deltaic.spark.stream_write import batch_writer, create_table

    calls = writer.__dict__.get(_CALLS, ())
    name = next(
        (args[0] if args else named.get("queryName") for call, args, named in calls if call == "queryName"),
        None,
    )
    frame = writer.__dict__[_FRAME]
    write_batch, checkpoint = batch_writer(frame, state, name)
    if state.new is not None:
        create_table(frame, state)
        state.new = None
    new_writer = frame.writeStream.options(**checkpoint)
    for call, args, named in calls:
        new_writer = getattr(new_writer, call)(*args, **named)
    return start(new_writer.foreachBatch(write_batch))


def _enable_batches(writers: Any) -> None:
    """Replaces `foreachBatch`. On Spark Connect the replacement enables the session in which the user's
    function runs: a clone of the session, in a Python process of the server."""
    method = writers.foreachBatch
    if _WRAPPED in method.__dict__:
        return

    @functools.wraps(method)
    def enabling(self: Any, func: Any) -> Any:
        _function(_state_of(self), func)
        spark = session_of(self)
        native = enabled_as(spark)
        if native is None or has_jvm(spark):
            return method(self, func)
        from deltaic.spark.statements import is_installed

        return method(self, functools.partial(by_value(_run_batch), func, native, is_installed(spark)))

    enabling.__dict__[_WRAPPED] = True
    patches.replace(writers, "foreachBatch", enabling)


def _run_batch(function: Any, native: Native, sql: bool, batch: Any, number: int) -> Any:
    """Enables the session of a batch and calls the user's function. This function is pickled by value and
    runs on the server, which may not have deltaic, so it must not use other names of this module."""
    try:
        from deltaic.spark.session import enable_clone
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "deltaic":
            raise
    else:
        enable_clone(batch.sparkSession, native, sql=sql)
    return function(batch, number)
