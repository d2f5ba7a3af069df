"""`spark.readStream.format("delta")`: a table as a streaming DataFrame."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from deltaic.engine.spark.engine import engine_of
from deltaic.log.stream import StreamFiles, TableStream
from deltaic.plan.literal import lit
from deltaic.protocol import change_feed
from deltaic.rows.tail import stream_rows
from deltaic.spark.options import StreamReadOptions
from deltaic.spark.session_tables import moment_of


def read_stream(spark: Any, wanted: StreamReadOptions) -> Any:
    """A streaming DataFrame with the columns that the table has now. Errors of a table that is no table are raised here, others end a
    query."""
    engine, options = engine_of(spark), wanted.stream
    if wanted.starting_timestamp is not None:
        options = replace(options, start=moment_of(spark, lit(wanted.starting_timestamp)))
    snapshot = engine.opened.open(spark, wanted.path, dict(wanted.storage_options))
    stream = TableStream(snapshot, options)
    schema = change_feed.with_changes(snapshot.schema) if options.changes else snapshot.schema

    def frame_of(files: StreamFiles) -> Any:
        return engine.run(stream_rows(files, engine).plan).frame

    return engine.stream(stream, schema, frame_of)
