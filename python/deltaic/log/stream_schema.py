"""Checks whether the rows of a version of a table can have the schema of a stream. The rules and the names of
errors are those of delta-spark's DeltaSource."""

from __future__ import annotations

from dataclasses import dataclass

from deltaic.errors import InvalidArgumentError, SchemaMismatchError
from deltaic.log.schema_log import DROP, RENAME, TYPE, non_additive
from deltaic.log.snapshot import Snapshot
from deltaic.log.stream_options import StreamOptions
from deltaic.protocol import change_feed
from deltaic.protocol.actions import Metadata
from deltaic.protocol.column_mapping import MODE
from deltaic.protocol.schema import Schema


@dataclass(frozen=True)
class StreamSchema:
    """The schema that all rows of a stream have. `snapshot`: the snapshot that the schema is from."""

    snapshot: Snapshot
    options: StreamOptions

    def check(self, metadata: Metadata, version: int) -> None:
        """Raises SchemaMismatchError if rows of a version with this metadata cannot have the schema, and
        InvalidArgumentError if the metadata is of another table."""
        own = self.snapshot.metadata
        if metadata.id != own.id:
            raise InvalidArgumentError(
                f"[DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE] another table replaced this one at version"
                f" {version}; a stream of the new table needs a checkpoint of its own",
                where=self.snapshot.location,
                found=f"table id {metadata.id}",
                expected=f"table id {own.id}",
            )
        if self.options.changes and not change_feed.is_enabled(metadata.configuration):
            raise InvalidArgumentError(
                f"[DELTA_MISSING_CHANGE_DATA] the change data feed was not on at version {version}, so its"
                " changes are not recorded",
                where=self.snapshot.location,
            )
        schema = Schema.from_json(metadata.schema_string)
        self._check_names(metadata, schema, version)
        if metadata.partition_columns != own.partition_columns:
            found, expected = (", ".join(each.partition_columns) or "none" for each in (metadata, own))
            raise self._changed(version, "partition columns", found, expected)
        if (
            metadata.schema_string != own.schema_string
            and (problem := change_feed.difference(schema, self.snapshot.schema, drops=self._drops(version)))
            is not None
        ):
            place, found, expected = problem
            raise self._changed(version, place, expected, found)

    def _drops(self, version: int) -> bool:
        """True if rows of a version may have columns that the stream's schema drops or renames."""
        is_mapped = self.snapshot.metadata.configuration.get(MODE, "none") != "none"
        return self.options.allow_dropped_columns and is_mapped and version < self.snapshot.version

    def _check_names(self, metadata: Metadata, schema: Schema, version: int) -> None:
        """Raises SchemaMismatchError if columns are renamed or dropped between a version with this metadata
        and the stream's own version, or get wider types, as the options say."""
        before, after = (metadata, schema), (self.snapshot.metadata, self.snapshot.schema)
        if version > self.snapshot.version:
            before, after = after, before
        is_mapped = after[0].configuration.get(MODE, "none") != "none"
        kinds = {DROP, RENAME} if is_mapped and not self.options.allow_dropped_columns else set()
        kinds |= {TYPE} if self.options.refuse_wider_types else set()
        texts = [text for kind, text in non_additive(before[1], after[1]) if kind in kinds]
        if texts:
            raise SchemaMismatchError(
                "[DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG] columns were renamed, dropped or"
                f" changed between version {version} and the stream's version {self.snapshot.version}; on"
                " Spark, a stream with the option schemaTrackingLocation continues after such a change",
                where=self.snapshot.location,
                found="; ".join(texts),
            )

    def _changed(self, version: int, what: str, found: str, expected: str) -> SchemaMismatchError:
        condition = "DELTA_SCHEMA_CHANGED_WITH_VERSION"
        if self.options.start not in ("earliest", "latest"):
            condition = "DELTA_SCHEMA_CHANGED_WITH_STARTING_OPTIONS"
        return SchemaMismatchError(
            f"[{condition}] the schema of the table changed at version {version}; a stream that is started"
            " again continues with the new schema if it can hold the remaining rows",
            where=f"{self.snapshot.location}, {what}",
            found=found,
            expected=expected,
        )
