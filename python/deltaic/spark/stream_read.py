"""`spark.readStream.format("delta")` on the native path: a table as a streaming DataFrame."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from deltaic.engine.spark.engine import engine_of
from deltaic.engine.spark.settings import said
from deltaic.engine.spark.stores import opening
from deltaic.log.schema_log import DROP, RENAME, SETTINGS, TYPE
from deltaic.log.stream import StreamFiles, TableStream
from deltaic.plan.literal import lit
from deltaic.protocol import change_feed
from deltaic.rows.tail import stream_rows
from deltaic.spark.options import StreamReadOptions, schema_log
from deltaic.spark.session_tables import moment_of


def allowed_by_settings(spark: Any) -> dict[str, str]:
    """Returns the options that let a stream go on after a change of columns, if the session's settings allow
    this for all its streams."""
    both = said(spark, f"{SETTINGS}allowSourceColumnRenameAndDrop") == "always"
    names = (RENAME, DROP, TYPE)
    return {name: "always" for name in names if said(spark, SETTINGS + name) == "always" or (both and name != TYPE)}


def read_stream(spark: Any, read_options: StreamReadOptions) -> Any:
    """Returns a streaming DataFrame with the table's present columns, or those of its schema log. Raises
    TableNotFoundError if there is no table; later errors end the query."""
    engine, options = engine_of(spark), read_options.stream
    if read_options.starting_timestamp is not None:
        options = replace(options, start=moment_of(spark, lit(read_options.starting_timestamp)))
    snapshot = engine.recent_snapshots.open(spark, read_options.path, dict(read_options.storage_options))
    with opening(spark):
        log = schema_log(read_options, snapshot.metadata.id)
    if log is not None and log.current is not None and log.current.differs_in_columns(snapshot.metadata):
        snapshot = engine.recent_snapshots.open(spark, read_options.path, dict(read_options.storage_options), log.current.version)
    stream = TableStream(snapshot, options, log)
    schema = change_feed.with_changes(snapshot.schema) if options.changes else snapshot.schema

    def frame_of(files: StreamFiles) -> Any:
        return engine.run(stream_rows(files, engine).plan).frame

    return engine.stream(stream, schema, frame_of)
