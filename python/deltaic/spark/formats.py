"""Implements `spark.read.format("delta")` and `df.write.format("delta")` in an enabled session.

`enable` replaces methods of PySpark's reader and writer classes. In enabled sessions, the replacements read
and write the formats "delta" and "deltaic" with deltaic, and call Spark's own methods for other formats.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from deltaic.engine.spark.engine import enabled_as, note_enabled, session_of
from deltaic.engine.spark.stores import opening
from deltaic.errors import DeltaError, InvalidArgumentError, TableAlreadyExistsError, UnsupportedFeatureError
from deltaic.plan.literal import lit
from deltaic.spark import catalog, merge_into, patches, streams
from deltaic.spark.builders import (
    FORMATS,
    BuilderState,
    frame_of_writer,
    is_delta,
    names_of,
    record_calls,
    record_frames,
    state_of,
)
from deltaic.spark.change_frames import read_changes, versions_first
from deltaic.spark.frame_writes import write_frame
from deltaic.spark.frames import newest, version_at
from deltaic.spark.named_tables import naming, parsed, path_in_catalog, refuse_relative
from deltaic.spark.options import ReadOptions
from deltaic.spark.partition_paths import partition_of
from deltaic.spark.raising import UNPARSED, raises_as_spark
from deltaic.spark.references import view_over_delta
from deltaic.spark.session_tables import timestamp_of
from deltaic.spark.views import lost_table, named_frame, path_or_named
from deltaic.spark.writers import NamedWriter, PathWriter, insert_into, save_as
from deltaic.table import DeltaTable

_TIMES_OF_OPTIONS = {
    "DELTA_ONEOF_IN_TIMETRAVEL": "INVALID_TIME_TRAVEL_SPEC",
    "DELTA_TIMESTAMP_INVALID": "INVALID_TIME_TRAVEL_TIMESTAMP_EXPR.OPTION",
}
"""Condition of delta-spark for a wrong version or time in an option of `table` -> Spark's condition."""


_OF_SAVED_TYPES = {
    "DELTA_UNSUPPORTED_DATA_TYPES": "UNSUPPORTED_DATA_TYPE_FOR_DATASOURCE",
    "UNSUPPORTED_TIME_TYPE": "UNSUPPORTED_DATA_TYPE_FOR_DATASOURCE",
}
"""Condition of a type that no table has -> Spark's condition for `save` with such a column."""


def enable(spark: Any, native: Literal["auto", "never"]) -> None:
    """Replaces the reader, writer, catalog and stream methods of the session's PySpark classes. All classic
    sessions of a process share these classes, and all sessions of Spark Connect share others. A second call
    changes nothing."""
    note_enabled(spark, native)
    frame = spark.range(1)
    frames, readers, writers = type(frame), type(spark.read), type(frame.write)
    record_frames(frames, "write")
    record_calls(readers, "format", "option", "options", "schema")
    record_calls(writers, "format", "option", "options", "mode")
    record_calls(writers, "partitionBy", "clusterBy", "bucketBy", "sortBy")
    patches.replace(readers, "load", _load)
    patches.replace(readers, "table", _table, raises_as_spark(instead=_TIMES_OF_OPTIONS))
    patches.replace(
        writers,
        "save",
        _save,
        raises_as_spark(
            {TableAlreadyExistsError: "DELTA_PATH_EXISTS"},
            _OF_SAVED_TYPES,
            of_predicates=UNPARSED,
        ),
    )
    patches.replace(writers, "saveAsTable", _save_as_table)
    patches.replace(writers, "insertInto", _insert_into)
    patches.replace(frames, "writeTo", _write_to)
    patches.replace(frames, "mergeInto", merge_into.merge_frame)
    catalog.wrap(type(spark.catalog))
    streams.wrap(frames, type(spark.readStream))


def _load(
    load: Any, self: Any, /, path: Any = None, format: str | None = None, schema: Any = None, **options: Any
) -> Any:
    if not is_delta(self, format):
        return load(self, path, format, schema, **options)
    state = state_of(self)
    state.put({**options, **({} if path is None else {"path": _path(path)})})
    if schema is not None:
        state.schema = schema
    return _rows_of(session_of(self), state, by_path=True)


def _table(table: Any, self: Any, tableName: str) -> Any:
    spark = session_of(self)
    path = path_or_named(spark, tableName) if enabled_as(spark) is not None else None
    state = state_of(self)
    if path is None:
        rows = _rows_of_view(spark, tableName, state) if enabled_as(spark) is not None else None
        return table(self, tableName) if rows is None else named_frame(spark, rows, tableName)
    state.put({"path": path})
    name = parsed(tableName)
    with lost_table(spark, () if name is None else name.parts):
        return named_frame(spark, _rows_of(spark, state), tableName, path)


def _rows_of_view(spark: Any, identifier: str, state: BuilderState) -> Any:
    """Returns the rows of a permanent view over Delta tables; None for another name, and for a reader with a
    schema, which Spark refuses."""
    from deltaic.spark.statements import rows_of_view

    name = parsed(identifier)
    view = None if name is None or state.schema is not None else view_over_delta(spark, name.parts)
    if view is None:
        return None
    if times := {key.lower() for key in state.options} & {"versionasof", "timestampasof"}:
        raise UnsupportedFeatureError(
            "[UNSUPPORTED_FEATURE.TIME_TRAVEL] a view has no versions",
            where=naming(spark, view.parts)["quoted_table"],
            found=next(iter(times)),
            expected="a table",
        )
    return rows_of_view(spark, view)


def rows_with_options(spark: Any, options: Mapping[str, str]) -> Any:
    """Returns the rows of a table that a query names. `options`: those in the query, and its `path`."""
    state = BuilderState()
    state.put(options)
    return _rows_of(spark, state)


def _rows_of(spark: Any, state: BuilderState, *, by_path: bool = False) -> Any:
    """Returns the rows of the table that a reader's options name. `by_path`: True for `load`, in which a
    version decides where a range of changes also has a timestamp, as in delta-spark."""
    if state.schema is not None:
        raise InvalidArgumentError(
            "a Delta table has its own schema", found="schema()", expected="select() or the option columns"
        )
    with opening(spark):
        read_options = ReadOptions.of(state.options)
    if by_path and read_options.changes is not None:
        read_options = replace(read_options, changes=versions_first(read_options.changes))
    return _read(spark, read_options)


def _read(spark: Any, read_options: ReadOptions) -> Any:
    options = dict(read_options.storage_options)
    if read_options.changes is not None:
        return read_changes(spark, read_options, read_options.changes)
    path, partition = partition_of(spark, read_options.path, options)
    if partition is not None:
        rows = _read(spark, replace(read_options, path=path, columns=None)).where(partition)
        return rows if read_options.columns is None else rows.select(*read_options.columns)
    if read_options.version is None and read_options.timestamp is None:
        return newest(spark, read_options.path, read_options.columns, options)
    if read_options.version is not None and read_options.timestamp is not None:
        raise InvalidArgumentError(
            "versionAsOf and timestampAsOf exclude each other",
            found=f"{read_options.version} and {read_options.timestamp}",
        )
    version = read_options.version
    if read_options.timestamp is not None:
        version = version_at(
            spark, read_options.path, timestamp_of(spark, lit(read_options.timestamp)), options
        )
    table = DeltaTable(read_options.path, version=version, storage_options=options, spark=spark)
    return table.scan(read_options.columns).to_spark()


def _path(path: Any) -> str:
    if isinstance(path, list) and len(path) == 1:
        path = path[0]
    if not isinstance(path, (str, os.PathLike)):
        raise InvalidArgumentError("a Delta table has exactly one path", found=repr(path)[:80])
    return os.fspath(path)


def _save(
    save: Any,
    self: Any,
    /,
    path: str | None = None,
    format: str | None = None,
    mode: str | None = None,
    partitionBy: Any = None,
    **options: Any,
) -> None:
    if not is_delta(self, format):
        save(self, path, format, mode, partitionBy, **options)
        return
    state = state_of(self)
    state.put({**options, **({} if path is None else {"path": _path(path)})})
    if partitionBy is not None:
        state.partition_by = names_of((partitionBy,))
    write_frame(frame_of_writer(self), state, mode or state.mode)


def _save_as_table(
    save_as_table: Any,
    self: Any,
    /,
    name: str,
    format: str | None = None,
    mode: str | None = None,
    partitionBy: Any = None,
    **options: Any,
) -> None:
    format_name, spark = format or state_of(self).format or "delta", session_of(self)
    if (
        enabled_as(spark) is not None
        and format_name.lower() in FORMATS
        and (target := parsed(name)) is not None
    ):
        if target.path is not None:
            refuse_relative(spark, target)
            self.save(target.path, format_name, mode, partitionBy, **options)
            return
        if is_delta(self, format) or path_in_catalog(spark, target.parts) is not None:
            state = state_of(self)
            state.put(options)
            if partitionBy is not None:
                state.partition_by = names_of((partitionBy,))
            save_as(frame_of_writer(self), state, target, mode or state.mode)
            return
    save_as_table(self, name, format, mode, partitionBy, **options)


def _insert_into(insert: Any, self: Any, tableName: str, overwrite: bool | None = None) -> None:
    spark = session_of(self)
    path = path_or_named(spark, tableName) if enabled_as(spark) is not None else None
    if path is None:
        insert(self, tableName, overwrite)
        return
    if overwrite is not None:
        self.mode("overwrite" if overwrite else "append")
    name = parsed(tableName)
    try:
        with lost_table(spark, () if name is None else name.parts):
            insert_into(frame_of_writer(self), state_of(self), path)
    except DeltaError as error:
        if name is not None:
            error.with_values(**{**naming(spark, name.parts), **error.values})
        raise


def _write_to(write_to: Any, self: Any, table: str) -> Any:
    name = parsed(table) if enabled_as(self.sparkSession) is not None else None
    if name is None:
        return write_to(self, table)
    return (
        NamedWriter(self, write_to(self, table), name) if name.path is None else PathWriter(self, name.path)
    )
