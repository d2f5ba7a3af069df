"""Structured streaming in an enabled session: what starts streams of the formats "delta" and "deltaic", or of tables by path. What
`foreachBatch` runs elsewhere, as Spark Connect does, finds an enabled session there."""

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
from deltaic.spark.named_tables import parsed, path_in_catalog
from deltaic.spark.options import StreamReadOptions
from deltaic.spark.portable.shipping import by_value
from deltaic.spark.raising import raises_as_spark
from deltaic.spark.stream_read import allowed_by_settings, read_stream
from deltaic.spark.views import path_or_named

_WRAPPED = "_deltaic_wrapped"
_ASKED = "_deltaic_stream"
_FRAME = "_deltaic_frame"
"""Attribute of a writer: the DataFrame that it writes."""
_CALLS = "_deltaic_calls"
"""Attribute of a writer: the calls (name, arguments by position and by name) that hold for the query, whoever writes its rows."""


def wrap(frames: Any, readers: Any) -> None:
    """Idempotent. `frames`, `readers`: the session's classes of DataFrames and of stream readers."""
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
    """A writer knows whose rows it writes; Spark Connect's has their plan alone."""
    write = frames.writeStream
    if _WRAPPED in write.fget.__dict__:
        return

    @functools.wraps(write.fget)
    def noting(self: Any) -> Any:
        made = write.fget(self)
        made.__dict__[_FRAME] = self
        return made

    noting.__dict__[_WRAPPED] = True
    patches.replace(frames, "writeStream", property(noting, doc=write.__doc__))


def _asked(of: Any) -> BuilderState:
    asked: BuilderState = of.__dict__.setdefault(_ASKED, BuilderState())
    return asked


def _note(kind: Any, *names: str) -> None:
    for name in names:
        if (method := getattr(kind, name, None)) is not None and _WRAPPED not in method.__dict__:
            patches.replace(kind, name, _noting(method, name))


def _noting(method: Any, name: str) -> Any:
    @functools.wraps(method)
    def noted(self: Any, *args: Any, **named: Any) -> Any:
        _NOTES[name](_asked(self), *args, **named)
        return method(self, *args, **named)

    noted.__dict__[_WRAPPED] = True
    return noted


def _format(asked: BuilderState, source: str) -> None:
    asked.format = source


def _function(asked: BuilderState, f: Any) -> None:
    """The rows go to a function of the user's, whatever the session's default format is."""
    asked.format = "foreach"


def _schema(asked: BuilderState, schema: Any) -> None:
    asked.schema = schema


def _option(asked: BuilderState, key: str, value: Any) -> None:
    asked.put({key: value})


def _options(asked: BuilderState, **options: Any) -> None:
    asked.put(options)


def _mode(asked: BuilderState, outputMode: str) -> None:
    asked.mode = outputMode


def _columns(columns: tuple[Any, ...]) -> tuple[str, ...]:
    return tuple(columns[0]) if len(columns) == 1 and isinstance(columns[0], (list, tuple)) else columns


def _partition_by(asked: BuilderState, *columns: Any) -> None:
    asked.partition_by = _columns(columns)


def _cluster_by(asked: BuilderState, *columns: Any) -> None:
    asked.cluster_by = _columns(columns)


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


def _is_ours(of: Any, format: str | None) -> bool:
    spark = session_of(of)
    name = format or _asked(of).format or spark.conf.get("spark.sql.sources.default", "parquet")
    return enabled_as(spark) is not None and str(name).lower() in FORMATS


def _load(load: Any, self: Any, path: Any = None, format: str | None = None, schema: Any = None, **options: Any) -> Any:
    if not _is_ours(self, format):
        return load(self, path, format, schema, **options)
    asked = _asked(self)
    asked.put({**options, **({} if path is None else {"path": os.fspath(path)})})
    asked.put(allowed := allowed_by_settings(session_of(self)))
    if not engine_of(session_of(self)).is_native:
        StreamReadOptions.of(asked.options)  # wrong ones are refused here, and not by a server
        return load(self, path, format, schema, **options, **allowed)
    frame = _read(session_of(self), asked)
    _check_schema(frame, asked.schema if schema is None else schema)
    return frame


def _check_schema(frame: Any, given: Any) -> None:
    """InvalidArgumentError where a reader's schema() is not the table's own; what may be null does not count."""
    if given is None:
        return
    from pyspark.sql.types import StructType

    wanted = StructType.fromDDL(given) if isinstance(given, str) else given
    if wanted.simpleString().lower() != frame.schema.simpleString().lower():
        raise InvalidArgumentError(
            "[DELTA_READ_SOURCE_SCHEMA_CONFLICT] a Delta table has its own schema",
            found=wanted.simpleString(),
            expected=f"{frame.schema.simpleString()}, or no schema()",
        )


def _table(table: Any, self: Any, tableName: str) -> Any:
    path = path_or_named(session_of(self), tableName) if _is_ours(self, "delta") else None
    if path is None:
        return table(self, tableName)
    if not engine_of(session_of(self)).is_native:
        return self.format("delta").load(path)
    _asked(self).put({"path": path, **allowed_by_settings(session_of(self))})
    return _read(session_of(self), _asked(self))


@raises_as_spark({TableNotFoundError: "DELTA_SCHEMA_NOT_SET"})
def _read(spark: Any, asked: BuilderState) -> Any:
    return read_stream(spark, StreamReadOptions.of(asked.options))


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
    if not _is_ours(self, format):
        return start(self, path, format, outputMode, partitionBy, queryName, **options)
    asked = _asked(self)
    asked.put({**options, **({} if path is None else {"path": os.fspath(path)})})
    if partitionBy is not None:
        _partition_by(asked, *([partitionBy] if isinstance(partitionBy, str) else partitionBy))
    if outputMode is not None:
        self.outputMode(outputMode)
    if queryName is not None:
        self.queryName(queryName)
    return _write(start, self, asked)


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
    name = parsed(tableName) if _is_ours(self, "delta") else None
    path = None if name is None else name.path
    if name is not None and path is None and (_is_ours(self, format) or path_in_catalog(session_of(self), name.parts) is not None):
        from deltaic.spark.stream_write import named_place

        columns = (partitionBy,) if isinstance(partitionBy, str) else tuple(partitionBy or ()) or _asked(self).partition_by
        path = named_place(self.__dict__[_FRAME], name, options.pop("path", None), columns)
    if path is None:
        return to_table(self, tableName, format, outputMode, partitionBy, queryName, **options)
    return self.start(path, "delta", outputMode, partitionBy, queryName, **options)


def _write(start: Any, writer: Any, asked: BuilderState) -> Any:
    """By a function for each batch. A new writer gets what Spark itself has to know: it takes no partition columns with such a function."""
    from deltaic.spark.stream_write import batch_writer

    calls = writer.__dict__.get(_CALLS, ())
    name = next((args[0] if args else named.get("queryName") for call, args, named in calls if call == "queryName"), None)
    write_batch, checkpoint = batch_writer(session_of(writer), asked, name)
    fresh = writer.__dict__[_FRAME].writeStream.options(**checkpoint)
    for call, args, named in calls:
        fresh = getattr(fresh, call)(*args, **named)
    return start(fresh.foreachBatch(write_batch))


def _enable_batches(writers: Any) -> None:
    """Connect runs the function of `foreachBatch` in a Python process of the server, with a clone of the session."""
    method = writers.foreachBatch
    if _WRAPPED in method.__dict__:
        return

    @functools.wraps(method)
    def enabling(self: Any, func: Any) -> Any:
        _function(_asked(self), func)
        spark = session_of(self)
        native = enabled_as(spark)
        if native is None or has_jvm(spark):
            return method(self, func)
        from deltaic.spark.statements import is_installed

        return method(self, functools.partial(by_value(_run_batch), func, native, is_installed(spark)))

    enabling.__dict__[_WRAPPED] = True
    patches.replace(writers, "foreachBatch", enabling)


def _run_batch(function: Any, native: Native, sql: bool, batch: Any, number: int) -> Any:
    """Runs on the server, where deltaic may not be: it must not use a name of this module."""
    try:
        from deltaic.spark.session import enable_clone
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "deltaic":
            raise
    else:
        enable_clone(batch.sparkSession, native, sql=sql)
    return function(batch, number)
