"""DataFrames of the change data feed of a table."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from deltaic.engine.spark.engine import engine_of
from deltaic.engine.spark.errors import named_errors
from deltaic.engine.spark.settings import OUT_OF_RANGE, is_on
from deltaic.errors import InvalidArgumentError
from deltaic.log.changes import Range
from deltaic.log.snapshot import Snapshot
from deltaic.plan.literal import lit
from deltaic.protocol import change_feed
from deltaic.protocol.features import column_mapping_mode
from deltaic.rows.changes import changes as change_rows
from deltaic.spark.frames import newest, newest_snapshot, place_of
from deltaic.spark.options import ChangeOptions, ReadOptions
from deltaic.spark.session_tables import timestamp_of
from deltaic.sql_text import quote_name


def read_changes(spark: Any, read_options: ReadOptions, changes: ChangeOptions) -> Any:
    """Returns the rows of a change feed. As in delta-spark, a range that ends after the newest version ends
    with the newest version. The DataFrame of such a range, or of one without an end, follows the table: each
    query over it reads up to the version that is the newest when the query is planned. On the public path the
    range ends with the version that is the newest now."""
    start, end = (
        None if text is None else timestamp_of(spark, lit(text))
        for text in (changes.starting_timestamp, changes.ending_timestamp)
    )
    options, columns = dict(read_options.storage_options), read_options.columns
    allowed = is_on(spark, OUT_OF_RANGE)

    def frame_of(snapshot: Snapshot) -> Any:
        first, last = changes.starting_version, changes.ending_version
        last = None if last is None else min(last, snapshot.version)
        if last is not None and first is not None and first > snapshot.version:
            last = None  # so that the error names the start and not the end
        versions = Range(first, last, start, end)
        frame = change_rows(
            snapshot, engine_of(spark), versions, columns=columns, allow_out_of_range=allowed
        ).to_spark()
        return frame if columns is not None else _with_later_columns(spark, frame, snapshot, options)

    snapshot = newest_snapshot(spark, read_options.path, options)
    frame = frame_of(snapshot)
    last = changes.ending_version
    if end is not None or (last is not None and last <= snapshot.version):
        return frame
    from deltaic.engine.spark.native.tables import TableRows, table_relation

    names = [quote_name(name) for name in frame.columns]

    def followed(version: Snapshot, metadata: str | None) -> Any:
        if metadata is not None:
            raise InvalidArgumentError(
                "[UNRESOLVED_COLUMN.WITHOUT_SUGGESTION] a change feed has no column _metadata",
                where=snapshot.location,
            )
        return frame_of(version).select(*names)

    engine = engine_of(spark)

    def native() -> Any:
        rows = TableRows(
            snapshot,
            tuple(frame.columns),
            lambda last: newest_snapshot(spark, read_options.path, options, last),
            place_of(snapshot, options),
            followed,
            f"changes from {changes.starting_version if start is None else start} to {last}",
        )
        return table_relation(engine.jvm, rows, frame.schema, frame).frame()

    with named_errors():
        return engine.read_path.planned("a change feed in a plan", native, lambda: frame)


def versions_first(changes: ChangeOptions) -> ChangeOptions:
    """Returns the range without a timestamp beside a version, which decides."""
    return replace(
        changes,
        starting_timestamp=changes.starting_timestamp if changes.starting_version is None else None,
        ending_timestamp=changes.ending_timestamp if changes.ending_version is None else None,
    )


def _with_later_columns(spark: Any, changes: Any, snapshot: Snapshot, options: dict[str, str]) -> Any:
    """Adds the columns that a table without column mapping got after the range of a change feed, with nulls:
    as in delta-spark, the rows have the columns of the newest version."""
    from pyspark.sql import functions as F

    feed, there = [item.name for item in change_feed.COLUMNS], set(changes.columns)
    later = [name for name in snapshot.schema.names if name not in there]
    is_mapped = column_mapping_mode(snapshot.protocol, snapshot.metadata) != "none"
    if not later or is_mapped or len(there) + len(later) != len(snapshot.schema) + len(feed):
        return changes
    fields = newest(spark, snapshot.location, None, options).schema.fields
    columns = [
        F.lit(None).cast(item.dataType).alias(item.name, metadata=item.metadata)
        if item.name in later
        else changes[quote_name(item.name)]
        for item in fields
    ]
    return changes.select(*columns, *feed)
