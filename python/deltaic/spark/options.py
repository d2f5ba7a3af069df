"""Parses the options of Spark's readers and writers, which have delta-spark's names, into arguments of
deltaic's calls.

Spark passes options as text. Their names are case-insensitive. An unknown option has no effect, as in
delta-spark, but a warning is logged. A wrong value of a known option raises InvalidArgumentError.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from deltaic.commands.create import TableOptions
from deltaic.commands.write_job import Mode, SchemaMode, Write
from deltaic.errors import InvalidArgumentError, UnsupportedFeatureError
from deltaic.log.schema_log import DROP, RENAME, TYPE, SchemaLog
from deltaic.log.snapshot import Snapshot
from deltaic.log.store import open_store
from deltaic.log.stream_options import StreamOptions
from deltaic.options import CommitOptions, ParquetOptions
from deltaic.protocol.actions import Metadata
from deltaic.protocol.properties import REGISTRY
from deltaic.protocol.schema import path_text
from deltaic.protocol.values import INT64_MAX
from deltaic.spark.replacements import replacement_of
from deltaic.sql.pinned_paths import travelled
from deltaic.sql.tokens import Reader
from deltaic.sql_text import name_of

# Matches the names of options that go to the table's store.
_STORE_OPTION = re.compile(
    r"(aws|azure|google|gcs|s3)_\w+|allow_http|allow_invalid_certificates"
    r"|(connect_)?timeout|proxy_\w+|user_agent"
)
_STREAM_OPTIONS = (
    "checkpointlocation",
    "excluderegex",
    "failondataloss",
    "ignorechanges",
    "ignoredeletes",
    "ignorefiledeletion",
    "maxbytespertrigger",
    "maxfilespertrigger",
    "queryname",
    "schemalocation",
    "schematrackinglocation",
    "skipchangecommits",
    "streamingsourcetrackingid",
    "allowsourcecolumndrop",
    "allowsourcecolumnrename",
    "allowsourcecolumntypechange",
    "witheventtimeorder",
)
"""Options of streams. They have no effect on a batch read or write."""
# Options that raise UnsupportedFeatureError, in lower case, and their names in the message.
_UNSUPPORTED = {
    "writepartitioncolumns": "writePartitionColumns",
}
# Options that raise UnsupportedFeatureError if they are true.
_UNSUPPORTED_FLAGS = {
    "ignorecorruptfiles": "ignoreCorruptFiles: reading less than the rows of a table",
    "ignoremissingfiles": "ignoreMissingFiles: reading less than the rows of a table",
}
_SCHEMA_LOCATIONS = ("schemaTrackingLocation", "schemaLocation")
# Argument of `StreamOptions` -> option of delta-spark.
_STREAM_FLAGS = {
    "ignore_deletes": "ignoreDeletes",
    "ignore_changes": "ignoreChanges",
    "skip_change_commits": "skipChangeCommits",
    "with_event_time_order": "withEventTimeOrder",
}
_SIZE = re.compile(r"\s*(\d+)\s*([kmgtp]?)i?b?\s*", re.IGNORECASE)
_INT32_MAX = 2**31 - 1
"""Maximum of the options that delta-spark reads as 32-bit numbers; a larger value is an error."""
log = logging.getLogger("deltaic.spark")
_WRITER_OPTIONS = ("mergeSchema", "overwriteSchema")
"""Options of writers that jobs also set on readers. They have no effect on reads, as in delta-spark."""
_NAME = re.compile(r"\s*(?:(`(?:[^`]|``)+`)\s*(?:,|$)|([^,]+)(?:,|$))")


@dataclass(frozen=True, kw_only=True)
class ChangeOptions:
    """The range of versions of a change feed (option readChangeFeed). Timestamps are text in the session's
    time zone."""

    starting_version: int | None = None
    starting_timestamp: str | None = None
    ending_version: int | None = None
    ending_timestamp: str | None = None

    @staticmethod
    def of(reader: _OptionReader) -> ChangeOptions | None:
        """Reads the options of a change feed. If neither readChangeFeed nor readChangeData is true, the
        options of the range have no effect, and None is returned."""
        flags = [reader.flag(name) for name in ("readChangeFeed", "readChangeData")]
        if not any(flags):
            for name in ("startingVersion", "startingTimestamp", "endingVersion", "endingTimestamp"):
                reader.text(name)
            return None
        return ChangeOptions(
            starting_version=reader.whole("startingVersion"),
            starting_timestamp=reader.text("startingTimestamp"),
            ending_version=reader.whole("endingVersion"),
            ending_timestamp=reader.text("endingTimestamp"),
        )


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """Options of a batch reader. `timestamp`: text in the session's time zone, or in UTC for the Python data
    source. `columns`: names, with dots for nested columns; None is all. `partitions`: number of tasks, None
    to derive it from the size of the files."""

    path: str
    version: int | None = None
    timestamp: str | None = None
    columns: tuple[str, ...] | None = None
    partitions: int | None = None
    changes: ChangeOptions | None = None
    storage_options: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def of(options: Mapping[str, Any]) -> ReadOptions:
        """Parses the options. Raises InvalidArgumentError for a wrong value, and UnsupportedFeatureError for
        an unsupported option."""
        reader = _OptionReader(options)
        path = reader.path()
        version, timestamp = reader.whole("versionAsOf"), reader.text("timestampAsOf")
        if version is not None and timestamp is not None:
            raise InvalidArgumentError(
                "versionAsOf and timestampAsOf exclude each other", found=f"{version} and {timestamp}"
            )
        columns, partitions = reader.names("columns"), reader.whole("partitions", least=1)
        changes = ChangeOptions.of(reader)
        for name in _WRITER_OPTIONS:
            reader.flag(name)
        storage_options = reader.rest()
        if version is None and timestamp is None:
            path, version, timestamp = travelled(path, storage_options)
        elif travelled(path, storage_options)[1:] != (None, None):
            raise InvalidArgumentError(
                "time travel is given both in the path and as an option", found=path, expected="one of them"
            )
        if changes is not None and (version is not None or timestamp is not None):
            raise InvalidArgumentError(
                "a change data feed and time travel exclude each other",
                found=f"version {version}" if timestamp is None else timestamp,
                expected="endingVersion",
            )
        return ReadOptions(
            path=path,
            version=version,
            timestamp=timestamp,
            columns=columns,
            partitions=partitions,
            changes=changes,
            storage_options=storage_options,
        )


@dataclass(frozen=True, kw_only=True)
class StreamReadOptions:
    """Options of a streaming reader.

    `starting_timestamp`: text in the session's time zone, or in UTC for the Python data source; replaces
    `stream.start`.
    `schema_location`: folder of schema logs (option schemaTrackingLocation).
    `tracking_id`: distinguishes the schema logs of a query that reads one table several times.
    `allowed_changes`: options by which the stream continues after a change of columns, such as
    allowSourceColumnDrop, with their values.
    """

    path: str
    stream: StreamOptions
    starting_timestamp: str | None = None
    schema_location: str | None = None
    tracking_id: str | None = None
    allowed_changes: Mapping[str, str] = field(default_factory=dict)
    storage_options: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def of(options: Mapping[str, Any]) -> StreamReadOptions:
        """Parses the options. Raises InvalidArgumentError for a wrong value, and UnsupportedFeatureError for
        an unsupported option."""
        reader = _OptionReader(options)
        path = reader.path()
        pinned = [name for name in ("versionAsOf", "timestampAsOf") if reader.text(name) is not None]
        locations = [reader.text(name) for name in _SCHEMA_LOCATIONS]
        tracking_id = reader.text("streamingSourceTrackingId")
        allowed = {name: text for name in (RENAME, DROP, TYPE) if (text := reader.text(name)) is not None}
        start, timestamp = _start(reader), reader.text("startingTimestamp")
        if start is not None and timestamp is not None:
            raise InvalidArgumentError(
                "[DELTA_STARTING_VERSION_AND_TIMESTAMP_BOTH_SET] startingVersion and startingTimestamp: one"
                " of them",
                found=f"{start} and {timestamp}",
            )
        flags = {ours: reader.flag(theirs) or False for ours, theirs in _STREAM_FLAGS.items()}
        deletes_files, loses = (
            reader.flag("ignoreFileDeletion") or False,
            reader.flag("failOnDataLoss") is False,
        )
        changes = [reader.flag(name) for name in ("readChangeFeed", "readChangeData")]
        stream = StreamOptions(
            start="earliest" if start is None else start,
            changes=any(changes),
            max_files=reader.whole("maxFilesPerTrigger", least=1, most=_INT32_MAX),
            max_bytes=reader.size("maxBytesPerTrigger"),
            exclude_regex=reader.pattern("excludeRegex"),
            fail_on_data_loss=not loses,
            **{**flags, "ignore_changes": flags["ignore_changes"] or deletes_files},
        )
        storage_options = reader.rest()
        if pinned or travelled(path, storage_options)[1:] != (None, None):
            raise InvalidArgumentError(
                "[DELTA_UNSUPPORTED_TIME_TRAVEL_VIEWS] a stream follows a table, not a version of it",
                found=", ".join(pinned) or path,
                expected="startingVersion",
            )
        return StreamReadOptions(
            path=path,
            stream=stream,
            starting_timestamp=timestamp,
            schema_location=next((each for each in locations if each is not None), None),
            tracking_id=tracking_id,
            allowed_changes=allowed,
            storage_options=storage_options,
        )


def schema_log(options: StreamReadOptions, snapshot: Snapshot, *, merging: bool) -> SchemaLog | None:
    """Opens the schema log of a streaming source of the table `snapshot`. Returns None without the option
    schemaTrackingLocation. `merging`: True for a new DataFrame, which passes consecutive changes at once;
    a query has the columns of its DataFrame."""
    if options.schema_location is None:
        return None
    table_id, own = snapshot.metadata.id, options.tracking_id
    folder = f"_schema_log_{table_id}" + ("" if own is None else f"_{own}")
    place = f"{options.schema_location.rstrip('/')}/{folder}"
    log = SchemaLog(open_store(place, dict(options.storage_options) or None), table_id)
    if merging:
        log.merge_changes(snapshot.store)
    log.allow(options.allowed_changes)
    return log


def is_of_stream(options: Mapping[str, Any]) -> bool:
    """True if the options name a change feed or a schema log, which the Python data source supports for
    streams only."""
    reader = _OptionReader(options)
    flags = [reader.flag(name) for name in ("readChangeFeed", "readChangeData")]
    return any(flags) or any(reader.text(name) is not None for name in _SCHEMA_LOCATIONS)


def without_stream_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the options without those of streams."""
    return {name: value for name, value in options.items() if name.lower() not in _STREAM_OPTIONS}


def _start(reader: _OptionReader) -> Literal["latest"] | int | None:
    text = reader.text("startingVersion")
    if text is None:
        return None
    if text == "latest":
        return "latest"
    if not text.isdecimal() or int(text) > INT64_MAX:
        raise InvalidArgumentError(
            "the option startingVersion is invalid",
            found=repr(text),
            expected="a whole number, at least 0, or latest",
        )
    return int(text)


@dataclass(frozen=True, kw_only=True)
class WriteOptions:
    """Target and command of a DataFrame writer. `by_partition`: True if an overwrite replaces only the
    partitions that get new rows. `more`: further arguments of `_core.write`."""

    path: str
    job: Write
    by_partition: bool = False
    more: Mapping[str, Any] = field(default_factory=dict)
    storage_options: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def of(options: Mapping[str, Any], mode: Mode) -> WriteOptions:
        """Parses a writer's options. `mode`: the save mode. Raises InvalidArgumentError for a wrong value,
        and UnsupportedFeatureError for an option that deltaic does not support."""
        reader = _OptionReader(options)
        path = reader.path()
        dynamic = reader.one_of("partitionOverwriteMode", ("static", "dynamic")) == "dynamic"
        where, replacement = reader.text("replaceWhere"), replacement_of(options, mode, reader.text)
        if where is not None and not where.strip():
            raise InvalidArgumentError(
                "[DELTA_FAILED_RECOGNIZE_PREDICATE] replaceWhere is empty", found=repr(where)
            ).with_values(predicate=where)
        merges, overwrites = reader.flag("mergeSchema"), reader.flag("overwriteSchema")
        shown_where = None
        if mode != "overwrite":  # as in delta-spark
            for name, is_given in (("replaceWhere", where is not None), ("overwriteSchema", overwrites)):
                if is_given:
                    log.warning(
                        "the option %s has no effect on a Delta table: it goes with mode overwrite", name
                    )
            shown_where, where, overwrites = where, None, False
        elif overwrites and where is not None:
            log.warning(
                "the option overwriteSchema has no effect beside replaceWhere, which keeps the other rows"
            )
            overwrites = False
        schema_mode: SchemaMode | None = "overwrite" if overwrites else "merge" if merges else None
        partition_by, cluster_by = reader.top_level("partitionBy"), reader.names("clusterBy")
        if schema_mode == "overwrite":
            # the new definition has only the partitions that the writer names, as in delta-spark
            partition_by = partition_by or ()
        if reader.flag("optimizeWrite"):
            raise UnsupportedFeatureError(
                "optimizeWrite through the data source, which cannot request a shuffle, is not supported",
                expected="deltaic.spark.enable, or repartition",
            )
        compression, size = reader.text("compression"), reader.most("maxRecordsPerFile")
        job = Write(
            mode=mode,
            where=where,
            shown_where=shown_where,
            replacement=replacement,
            schema_mode=schema_mode,
            data_change=reader.flag("dataChange") is not False,
            wanted=TableOptions.of(
                partition_by, cluster_by, None, reader.text("description"), reader.properties()
            ),
            properties_of_new=True,
            target_file_size=reader.whole("targetFileSize", least=1),
            parquet=None if compression is None else ParquetOptions(compression=_codec(compression)),
            commit=reader.commit(),
        )
        more = {} if size is None else {"max_records_per_file": size}
        by_partition = dynamic and mode == "overwrite"
        return WriteOptions(
            path=path, job=job, by_partition=by_partition, more=more, storage_options=reader.rest()
        )

    def partitions(self, metadata: Metadata | None) -> Sequence[str]:
        """Returns the partition columns of the table after the write. `metadata`: that of an existing table,
        or None."""
        if metadata is None or self.job.replaces_definition:
            return self.job.wanted.partition_by or ()
        return metadata.partition_columns

    def into(self, metadata: Metadata | None) -> WriteOptions:
        """Returns the options for an existing table with this metadata (None: no table). A dynamic overwrite
        of a table without partition columns replaces all rows, or those of replaceWhere, because the table is
        a single partition. With overwriteSchema, the partition columns are those of the new definition.
        Raises InvalidArgumentError for replaceWhere or overwriteSchema if there are partition columns."""
        if not self.by_partition or not self.partitions(metadata):
            return self
        if self.job.where is not None:
            raise InvalidArgumentError(
                "replaceWhere and partitionOverwriteMode=dynamic exclude each other", found=self.job.where
            )
        if metadata is None and not self.job.replaces_definition:
            return self
        return replace(self, job=replace(self.job, mode="overwrite_partitions"))


def _codec(name: str) -> str:
    """Returns deltaic's name of a codec of Spark: `none` is `uncompressed`."""
    return {"none": "uncompressed", "lz4raw": "lz4_raw", "lz4": "lz4_raw"}.get(name.lower(), name.lower())


class _OptionReader:
    """Reads the options of a reader or writer by name, each once. At the end, `rest` returns the options of
    the store, and logs a warning for each other option that was not read."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._unread = {name.lower(): str(value) for name, value in options.items()}

    def text(self, name: str) -> str | None:
        return self._unread.pop(name.lower(), None)

    def path(self) -> str:
        path = self.text("path")
        if self.text("paths") is not None or not path:
            raise InvalidArgumentError(
                "a Delta table has exactly one path",
                found=repr(path),
                expected="load(path), save(path), or deltaic.spark.enable(spark) for tables by name",
            )
        return path

    def flag(self, name: str) -> bool | None:
        value = self.one_of(name, ("true", "false"))
        return None if value is None else value == "true"

    def one_of(self, name: str, allowed: tuple[str, ...]) -> str | None:
        value = self.text(name)
        if value is not None and value.lower() not in allowed:
            error = InvalidArgumentError(
                f"the option {name} has an invalid value", found=repr(value), expected=" or ".join(allowed)
            )
            shown = allowed if "true" in allowed else tuple(each.upper() for each in allowed)
            raise error.with_values(explain=f"must be {' or '.join(map(repr, shown))}")
        return None if value is None else value.lower()

    def whole(self, name: str, *, least: int = 0, most: int = INT64_MAX) -> int | None:
        value = self.text(name)
        if value is not None and not (value.strip().isdecimal() and least <= int(value) <= most):
            raise InvalidArgumentError(
                f"the option {name} has an invalid value",
                found=repr(value),
                expected=f"a whole number, at least {least}"
                + (f", at most {most}" if most < INT64_MAX else ""),
            )
        return None if value is None else int(value)

    def size(self, name: str) -> int | None:
        """Reads a number of bytes as Spark does: `1g` is 1,073,741,824."""
        value = self.text(name)
        match = None if value is None else _SIZE.fullmatch(value)
        size = 0 if match is None else int(match[1]) << 10 * " kmgtp".index(match[2].lower() or " ")
        if value is not None and not 1 <= size <= INT64_MAX:
            raise InvalidArgumentError(
                f"the option {name} has an invalid value",
                found=repr(value),
                expected="a number of bytes, at least 1, such as 10m",
            )
        return None if value is None else size

    def pattern(self, name: str) -> str | None:
        """Reads a regular expression."""
        value = self.text(name)
        try:
            re.compile(value or "")
        except re.error as error:
            message, expected = f"the option {name} is not a valid pattern", f"a pattern: {error}"
            raise InvalidArgumentError(message, found=repr(value), expected=expected) from None
        return value

    def most(self, name: str) -> int | None:
        """Reads a maximum: a whole number. Returns None (no limit) for 0 and less."""
        value = self.text(name)
        try:
            return None if value is None or int(value) < 1 else int(value)
        except ValueError:
            raise InvalidArgumentError(
                f"the option {name} has an invalid value", found=repr(value), expected="a whole number"
            ) from None

    def names(self, name: str) -> tuple[str, ...] | None:
        """Reads column names, separated by commas. A nested column has dots in its name, and backticks quote
        a name."""
        value = self.text(name)
        if value is None:
            return None
        reader = Reader(value)
        paths = reader.listed(reader.dotted)
        reader.end()
        return tuple(
            path[0] if len(path) == 1 and path[0].isidentifier() else path_text(path) for path in paths
        )

    def top_level(self, name: str) -> tuple[str, ...] | None:
        """Reads names of top-level columns, separated by commas. A name with a comma needs backticks."""
        value = self.text(name)
        if value is None:
            return None
        matches = _NAME.findall(value)
        return tuple(name_of(quoted) if quoted else plain.strip() for quoted, plain in matches)

    def properties(self) -> dict[str, str] | None:
        """Reads the options that begin with `delta.`, which are properties of the table that the write
        creates. Their names are spelled as in the registry."""
        known = {name.lower(): name for name in REGISTRY}
        names = [name for name in self._unread if name.startswith("delta.")]
        return {known.get(name, name): self._unread.pop(name) for name in names} or None

    def commit(self) -> CommitOptions:
        app_id, version = self.text("txnAppId"), self.whole("txnVersion")
        if (app_id is None) != (version is None):
            raise InvalidArgumentError(
                "txnAppId and txnVersion go together", found=f"{app_id!r} and {version}"
            )
        transactions = {} if app_id is None or version is None else {app_id: version}
        return CommitOptions(user_metadata=self.text("userMetadata"), transactions=transactions)

    def rest(self) -> dict[str, str]:
        """Returns the options of the store. Logs a warning for each other option that was not read. Raises
        UnsupportedFeatureError for the options of _UNSUPPORTED and _UNSUPPORTED_FLAGS, and for settings of
        Hadoop."""
        for name, what in _UNSUPPORTED_FLAGS.items():
            if self.flag(name):
                raise UnsupportedFeatureError(what, found=f"the option {name}")
        for name in self._unread:
            if name in _UNSUPPORTED:
                raise UnsupportedFeatureError(_UNSUPPORTED[name], found=f"the option {name}")
            if name.startswith(("fs.", "dfs.")):
                raise UnsupportedFeatureError(
                    "Hadoop's settings for one table are not supported",
                    found=name,
                    expected="settings of the Spark session",
                )
        unknown = sorted(name for name in self._unread if not _STORE_OPTION.fullmatch(name))
        for name in unknown:
            reason = "it is one of streams" if name in _STREAM_OPTIONS else "no such option is known"
            log.warning("the option %s has no effect on a Delta table: %s", name, reason)
        return {name: value for name, value in self._unread.items() if name not in unknown}
