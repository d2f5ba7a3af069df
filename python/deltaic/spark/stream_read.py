"""`spark.readStream.format("delta")`: a table as a streaming DataFrame."""

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
    """The options that let changes of columns pass, where settings of the session do so for all its streams."""
    both = said(spark, f"{SETTINGS}allowSourceColumnRenameAndDrop") == "always"
    names = (RENAME, DROP, TYPE)
    return {name: "always" for name in names if said(spark, SETTINGS + name) == "always" or (both and name != TYPE)}


def read_stream(spark: Any, wanted: StreamReadOptions) -> Any:
    """A streaming DataFrame with the columns that the table has now. Errors of a table that is no table are raised here, others end a
    query."""
    engine, options = engine_of(spark), wanted.stream
    if wanted.starting_timestamp is not None:
        options = replace(options, start=moment_of(spark, lit(wanted.starting_timestamp)))
    snapshot = engine.last_snapshot.open(spark, wanted.path, dict(wanted.storage_options))
    with opening(spark):
        log = schema_log(wanted, snapshot.metadata.id)
    if log is not None and log.current is not None and log.current.differs_in_columns(snapshot.metadata):
        snapshot = engine.last_snapshot.open(spark, wanted.path, dict(wanted.storage_options), log.current.version)
    stream = TableStream(snapshot, options, log)
    schema = change_feed.with_changes(snapshot.schema) if options.changes else snapshot.schema

    def frame_of(files: StreamFiles) -> Any:
        return engine.run(stream_rows(files, engine).plan).frame

    return engine.stream(stream, schema, frame_of)
