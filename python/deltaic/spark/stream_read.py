"""`spark.readStream.format("delta")`: a table as a streaming DataFrame."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from deltaic.engine.spark.engine import engine_of
from deltaic.engine.spark.settings import said
from deltaic.engine.spark.stores import opening
from deltaic.log.schema_log import DROP, RENAME, SETTINGS, TYPE, SchemaLog
from deltaic.log.snapshot import Snapshot
from deltaic.log.store import open_store
from deltaic.log.stream import StreamFiles, TableStream
from deltaic.plan.literal import lit
from deltaic.protocol import change_feed
from deltaic.rows.tail import stream_rows
from deltaic.spark.options import StreamReadOptions
from deltaic.spark.session_tables import moment_of


def _schema_log(spark: Any, wanted: StreamReadOptions, snapshot: Snapshot) -> SchemaLog | None:
    """The log of schemas of this source, None where none is asked for."""
    if wanted.schema_location is None:
        return None
    table_id = snapshot.metadata.id
    folder = f"_schema_log_{table_id}" + ("" if wanted.tracking_id is None else f"_{wanted.tracking_id}")
    with opening(spark):
        store = open_store(f"{wanted.schema_location.rstrip('/')}/{folder}", dict(wanted.storage_options) or None)
    log = SchemaLog(store, table_id)
    version = None if log.current is None else str(log.current.version)
    both = said(spark, f"{SETTINGS}allowSourceColumnRenameAndDrop") == "always"
    log.allowed = frozenset(
        name
        for name in (RENAME, DROP, TYPE)
        if wanted.allowed_changes.get(name) in ("always", version) or said(spark, SETTINGS + name) == "always" or (both and name != TYPE)
    )
    return log


def read_stream(spark: Any, wanted: StreamReadOptions) -> Any:
    """A streaming DataFrame with the columns that the table has now. Errors of a table that is no table are raised here, others end a
    query."""
    engine, options = engine_of(spark), wanted.stream
    if wanted.starting_timestamp is not None:
        options = replace(options, start=moment_of(spark, lit(wanted.starting_timestamp)))
    snapshot = engine.last_snapshot.open(spark, wanted.path, dict(wanted.storage_options))
    log = _schema_log(spark, wanted, snapshot)
    if log is not None and log.current is not None and log.current.differs_in_columns(snapshot.metadata):
        snapshot = engine.last_snapshot.open(spark, wanted.path, dict(wanted.storage_options), log.current.version)
    stream = TableStream(snapshot, options, log)
    schema = change_feed.with_changes(snapshot.schema) if options.changes else snapshot.schema

    def frame_of(files: StreamFiles) -> Any:
        return engine.run(stream_rows(files, engine).plan).frame

    return engine.stream(stream, schema, frame_of)
