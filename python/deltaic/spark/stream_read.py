"""Implements `spark.readStream.format("delta")` on the native path: makes a streaming DataFrame of a
table."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from deltaic.engine.spark.engine import engine_of
from deltaic.engine.spark.settings import setting_text
from deltaic.engine.spark.stores import opening
from deltaic.log.schema_log import DROP, RENAME, SETTINGS, TYPE
from deltaic.log.stream import StreamFiles, TableStream
from deltaic.plan.literal import lit
from deltaic.protocol import change_feed
from deltaic.rows.tail import stream_rows
from deltaic.spark.options import StreamReadOptions, schema_log
from deltaic.spark.session_tables import timestamp_of


def allowed_by_settings(spark: Any) -> dict[str, str]:
    """Returns the options by which a stream continues after a change of columns, if the session's settings
    allow this for all streams."""
    both = setting_text(spark, f"{SETTINGS}allowSourceColumnRenameAndDrop") == "always"
    names = (RENAME, DROP, TYPE)
    return {
        name: "always"
        for name in names
        if setting_text(spark, SETTINGS + name) == "always" or (both and name != TYPE)
    }


def read_stream(spark: Any, read_options: StreamReadOptions) -> Any:
    """Returns a streaming DataFrame with the columns of the newest version, or of the version that the
    stream's schema log names. Raises TableNotFoundError if there is no table. Errors of later reads end the
    query."""
    engine, options = engine_of(spark), read_options.stream
    if read_options.starting_timestamp is not None:
        options = replace(options, start=timestamp_of(spark, lit(read_options.starting_timestamp)))
    snapshot = engine.recent_snapshots.open(spark, read_options.path, dict(read_options.storage_options))
    with opening(spark):
        log = schema_log(read_options, snapshot.metadata.id)
    if log is not None and log.current is not None and log.current.differs_in_columns(snapshot.metadata):
        snapshot = engine.recent_snapshots.open(
            spark, read_options.path, dict(read_options.storage_options), log.current.version
        )
    stream = TableStream(snapshot, options, log)
    schema = change_feed.with_changes(snapshot.schema) if options.changes else snapshot.schema

    def frame_of(files: StreamFiles) -> Any:
        return engine.run(stream_rows(files, engine).plan).frame

    return engine.stream(stream, schema, frame_of)
