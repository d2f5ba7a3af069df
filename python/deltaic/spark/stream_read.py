"""Implements `spark.readStream.format("delta")` on the native path: makes a streaming DataFrame of a
table."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from deltaic.commands.store_assignment import same_type
from deltaic.engine.spark.engine import engine_of
from deltaic.engine.spark.settings import (
    ALLOWED_CHANGES,
    MERGE_SCHEMA_CHANGES,
    OUT_OF_RANGE,
    RENAME_AND_DROP,
    TRACKED_TYPES,
    UNSAFE_COLUMNS,
    is_off,
    is_on,
    setting_text,
)
from deltaic.engine.spark.stores import opening
from deltaic.errors import SchemaMismatchError
from deltaic.log.schema_log import TYPE
from deltaic.log.stream import TableStream
from deltaic.log.stream_files import StreamFiles
from deltaic.log.stream_options import StreamOptions
from deltaic.plan.literal import lit
from deltaic.protocol import change_feed, widening
from deltaic.protocol.schema import Struct
from deltaic.rows.tail import stream_rows
from deltaic.spark.options import StreamReadOptions, schema_log
from deltaic.spark.session_tables import timestamp_of


def allowed_by_settings(spark: Any) -> dict[str, str]:
    """Returns the options by which a stream continues after a change of columns, if the session's settings
    allow this for all streams."""
    both = setting_text(spark, RENAME_AND_DROP) == "always"
    return {
        name: "always"
        for name, setting in ALLOWED_CHANGES.items()
        if setting_text(spark, setting) == "always" or (both and name != TYPE)
    }


def read_stream(spark: Any, read_options: StreamReadOptions) -> Any:
    """Returns a streaming DataFrame with the columns of the newest version, or of the version that the
    stream's schema log names. Raises TableNotFoundError if there is no table. Errors of later reads end the
    query."""
    engine = engine_of(spark)
    options = replace(
        read_options.stream,
        allow_dropped_columns=is_on(spark, UNSAFE_COLUMNS),
        refuse_wider_types=is_on(spark, TRACKED_TYPES),
        allow_out_of_range=is_on(spark, OUT_OF_RANGE),
    )
    if read_options.starting_timestamp is not None:
        options = replace(options, start=timestamp_of(spark, lit(read_options.starting_timestamp)))
    stream = _opened(spark, read_options, options, merging=not is_off(spark, MERGE_SCHEMA_CHANGES))
    columns = stream.snapshot.schema

    def of_query() -> TableStream:
        """Opens the table for a query, which begins with the version that is the newest then. Spark replaces
        the types of the DataFrame's columns by those of each batch, which may be wider."""
        newest = _opened(spark, read_options, options)
        retyped = widening.with_wider_types(columns, newest.snapshot.schema)
        if not same_type(Struct(tuple(retyped)), Struct(tuple(newest.snapshot.schema))):
            raise SchemaMismatchError(
                "[DELTA_STREAMING_SCHEMA_MISMATCH_ON_RESTART] the table has other columns than the streaming"
                " DataFrame; create a new DataFrame",
                where=newest.snapshot.location,
                found=", ".join(newest.snapshot.schema.names),
                expected=", ".join(columns.names),
            )
        return newest

    def frame_of(files: StreamFiles) -> Any:
        return engine.run(stream_rows(files, engine).plan).frame

    schema = change_feed.with_changes(columns) if options.changes else columns
    return engine.stream(stream, schema, of_query, frame_of)


def _opened(
    spark: Any, read_options: StreamReadOptions, options: StreamOptions, *, merging: bool = False
) -> TableStream:
    """Opens the newest version, or the version that the stream's schema log names. `merging`: as for
    `schema_log`."""
    recent, storage_options = engine_of(spark).recent_snapshots, dict(read_options.storage_options)
    snapshot = recent.open(spark, read_options.path, storage_options)
    with opening(spark):
        log = schema_log(read_options, snapshot, merging=merging)
    if log is not None and log.current is not None and log.current.differs_in_columns(snapshot.metadata):
        snapshot = recent.open(spark, read_options.path, storage_options, log.current.version)
    # with the setting UNSAFE_COLUMNS, delta-spark keeps no log either
    return TableStream(snapshot, options, None if options.allow_dropped_columns else log)
