"""The options of Spark's DataFrameReader and DataFrameWriter, as delta-spark names them, to what deltaic's own calls take.

Spark hands options over as text, with names in lower case; they match without regard to case. An option that nothing here knows has no
effect but a warning in the log, as in delta-spark; a wrong value of a known one is an error.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from deltaic.commands.create import TableOptions
from deltaic.commands.write import Mode, SchemaMode, Write
from deltaic.errors import InvalidArgumentError, UnsupportedFeatureError
from deltaic.log.schema_log import DROP, RENAME, TYPE, SchemaLog
from deltaic.log.store import open_store
from deltaic.log.stream import StreamOptions
from deltaic.options import CommitOptions, ParquetOptions
from deltaic.protocol.actions import Metadata
from deltaic.protocol.properties import REGISTRY
from deltaic.protocol.schema import path_text
from deltaic.sql.tokens import Reader
from deltaic.table import DeltaTable

_OF_A_STORE = re.compile(r"(aws|azure|google|gcs|s3)_\w+|allow_http|allow_invalid_certificates|(connect_)?timeout|proxy_\w+|user_agent")
_STREAMS = (
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
"""Options of streams, which mean nothing where none is read."""
_LATER = {
    "replaceon": "replaceOn",
    "replaceusing": "replaceUsing",
    "writepartitioncolumns": "writePartitionColumns",
}
_LATER_FLAGS = {
    "ignorecorruptfiles": "ignoreCorruptFiles: reading less than the rows of a table",
    "ignoremissingfiles": "ignoreMissingFiles: reading less than the rows of a table",
}
_SCHEMA_LOCATIONS = ("schemaTrackingLocation", "schemaLocation")
_STREAM_FLAGS = {"ignore_deletes": "ignoreDeletes", "ignore_changes": "ignoreChanges", "skip_change_commits": "skipChangeCommits"}
_NO_MATTER = ("withEventTimeOrder",)
"""Options of streams without a meaning here: delta-spark's open source has none for it."""
_SIZE = re.compile(r"\s*(\d+)\s*([kmgtp]?)i?b?\s*", re.IGNORECASE)
log = logging.getLogger("deltaic.spark")
_OF_WRITERS = ("mergeSchema", "overwriteSchema")
"""Options of writers that jobs also set on readers. They have no effect there, as in delta-spark."""
_NAME = re.compile(r"\s*(?:`((?:[^`]|``)+)`\s*(?:,|$)|([^,]+)(?:,|$))")
_TRAVEL = re.compile(r"(?P<path>.+)@([vV](?P<version>\d+)|(?P<moment>\d{17}))")


@dataclass(frozen=True, kw_only=True)
class ChangeOptions:
    """The range of versions whose changes a reader asks for (readChangeFeed); times are text, in the session's zone."""

    starting_version: int | None = None
    starting_timestamp: str | None = None
    ending_version: int | None = None
    ending_timestamp: str | None = None

    @staticmethod
    def of(taken: _OptionReader) -> ChangeOptions | None:
        """None where a table is asked for: the ends of a range mean nothing then."""
        wanted = [taken.flag(name) for name in ("readChangeFeed", "readChangeData")]
        if not any(wanted):
            for name in ("startingVersion", "startingTimestamp", "endingVersion", "endingTimestamp"):
                taken.text(name)
            return None
        return ChangeOptions(
            starting_version=taken.whole("startingVersion"),
            starting_timestamp=taken.text("startingTimestamp"),
            ending_version=taken.whole("endingVersion"),
            ending_timestamp=taken.text("endingTimestamp"),
        )


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """Options of a batch reader. `columns`: names, nested ones dotted; None for all. `partitions`: how many tasks, None for as many as the
    size of the files suggests."""

    path: str
    version: int | None = None
    timestamp: str | None = None
    columns: tuple[str, ...] | None = None
    partitions: int | None = None
    changes: ChangeOptions | None = None
    storage_options: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def of(options: Mapping[str, Any]) -> ReadOptions:
        """InvalidArgumentError names an option whose value is wrong, UnsupportedFeatureError one that comes later."""
        taken = _OptionReader(options)
        path = taken.path()
        version, timestamp = taken.whole("versionAsOf"), taken.text("timestampAsOf")
        if version is not None and timestamp is not None:
            raise InvalidArgumentError("versionAsOf and timestampAsOf: one of them", found=f"{version} and {timestamp}")
        columns, partitions = taken.names("columns"), taken.whole("partitions", least=1)
        changes = ChangeOptions.of(taken)
        if changes is not None and (version is not None or timestamp is not None):
            raise InvalidArgumentError(
                "the change data feed of a version in the past", found="versionAsOf or timestampAsOf", expected="endingVersion"
            )
        for name in _OF_WRITERS:
            taken.flag(name)
        storage_options = taken.rest()
        if version is None and timestamp is None:
            path, version, timestamp = travelled(path, storage_options)
        elif travelled(path, storage_options)[1:] != (None, None):
            raise InvalidArgumentError("time travel is given both in the path and as an option", found=path, expected="one of them")
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
    """Options of a streaming reader. `starting_timestamp`: text, in the session's zone, in the place of `stream.start`.
    `schema_location`: the folder of logs of schemas, `tracking_id`: of this source among several, `allowed_changes`: the options that let
    changes of columns pass."""

    path: str
    stream: StreamOptions
    starting_timestamp: str | None = None
    schema_location: str | None = None
    tracking_id: str | None = None
    allowed_changes: Mapping[str, str] = field(default_factory=dict)
    storage_options: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def of(options: Mapping[str, Any]) -> StreamReadOptions:
        """InvalidArgumentError names an option whose value is wrong, UnsupportedFeatureError one that comes later."""
        taken = _OptionReader(options)
        path = taken.path()
        for name in ("versionAsOf", "timestampAsOf"):
            if taken.text(name) is not None:
                message = "[DELTA_UNSUPPORTED_TIME_TRAVEL_VIEWS] a stream follows a table, not a version of it"
                raise InvalidArgumentError(message, found=name, expected="startingVersion")
        locations = [taken.text(name) for name in _SCHEMA_LOCATIONS]
        tracking_id = taken.text("streamingSourceTrackingId")
        allowed = {name: text for name in (RENAME, DROP, TYPE) if (text := taken.text(name)) is not None}
        start, timestamp = _start(taken), taken.text("startingTimestamp")
        if start is not None and timestamp is not None:
            raise InvalidArgumentError(
                "[DELTA_STARTING_VERSION_AND_TIMESTAMP_BOTH_SET] startingVersion and startingTimestamp: one of them",
                found=f"{start} and {timestamp}",
            )
        flags = {ours: taken.flag(theirs) or False for ours, theirs in _STREAM_FLAGS.items()}
        deletes_files, loses = taken.flag("ignoreFileDeletion") or False, taken.flag("failOnDataLoss") is False
        changes = [taken.flag(name) for name in ("readChangeFeed", "readChangeData")]
        for name in _NO_MATTER:
            taken.text(name)
        stream = StreamOptions(
            start="earliest" if start is None else start,
            changes=any(changes),
            max_files=taken.whole("maxFilesPerTrigger", least=1),
            max_bytes=taken.size("maxBytesPerTrigger"),
            exclude_regex=taken.text("excludeRegex"),
            fail_on_data_loss=not loses,
            **{**flags, "ignore_changes": flags["ignore_changes"] or deletes_files},
        )
        return StreamReadOptions(
            path=path,
            stream=stream,
            starting_timestamp=timestamp,
            schema_location=next((each for each in locations if each is not None), None),
            tracking_id=tracking_id,
            allowed_changes=allowed,
            storage_options=taken.rest(),
        )


def schema_log(wanted: StreamReadOptions, table_id: str) -> SchemaLog | None:
    """The log of schemas of a source, None where none is asked for."""
    if wanted.schema_location is None:
        return None
    folder = f"_schema_log_{table_id}" + ("" if wanted.tracking_id is None else f"_{wanted.tracking_id}")
    log = SchemaLog(open_store(f"{wanted.schema_location.rstrip('/')}/{folder}", dict(wanted.storage_options) or None), table_id)
    version = None if log.current is None else str(log.current.version)
    log.allowed = frozenset(name for name, text in wanted.allowed_changes.items() if text in ("always", version))
    return log


def is_of_stream(options: Mapping[str, Any]) -> bool:
    """True if the options ask for what Spark's data source has as a stream alone: changes, or a log of schemas."""
    taken = _OptionReader(options)
    flags = [taken.flag(name) for name in ("readChangeFeed", "readChangeData")]
    return any(flags) or any(taken.text(name) is not None for name in _SCHEMA_LOCATIONS)


def _start(taken: _OptionReader) -> Literal["latest"] | int | None:
    text = taken.text("startingVersion")
    if text is None:
        return None
    if text.strip().lower() == "latest":
        return "latest"
    if not text.strip().isdecimal():
        raise InvalidArgumentError("the option startingVersion", found=repr(text), expected="a whole number, at least 0, or latest")
    return int(text)


@dataclass(frozen=True, kw_only=True)
class WriteOptions:
    """Target and command of a DataFrame writer. `more`: options of `_core.write` besides the table's. `by_partition`: an overwrite replaces
    the partitions that get new rows, if the table has partitions."""

    path: str
    job: Write
    by_partition: bool = False
    more: Mapping[str, Any] = field(default_factory=dict)
    storage_options: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def of(options: Mapping[str, Any], mode: Mode) -> WriteOptions:
        """`mode`: Spark's save mode."""
        taken = _OptionReader(options)
        path = taken.path()
        dynamic = taken.one_of("partitionOverwriteMode", ("static", "dynamic")) == "dynamic"
        where = taken.text("replaceWhere")
        if dynamic and where is not None:
            raise InvalidArgumentError("replaceWhere and partitionOverwriteMode=dynamic: one of them", found=where)
        schema_mode = taken.schema_mode()
        if mode != "overwrite":  # as in delta-spark
            for name, is_given in (("replaceWhere", where is not None), ("overwriteSchema", schema_mode == "overwrite")):
                if is_given:
                    log.warning("the option %s has no effect on a Delta table: it goes with mode overwrite", name)
            where, schema_mode = None, None if schema_mode == "overwrite" else schema_mode
        partition_by, cluster_by = taken.top_level("partitionBy"), taken.names("clusterBy")
        if schema_mode == "overwrite" and cluster_by is None:
            partition_by = partition_by or ()  # the new definition has the partitions that the writer names, as in delta-spark
        if taken.flag("dataChange") is False:
            raise UnsupportedFeatureError("dataChange=false of a write", expected="optimize")
        if taken.flag("optimizeWrite"):
            raise UnsupportedFeatureError(
                "optimizeWrite through the data source, which cannot ask for a shuffle", expected="deltaic.spark.enable, or repartition"
            )
        compression, size = taken.text("compression"), taken.most("maxRecordsPerFile")
        job = Write(
            mode=mode,
            where=where,
            schema_mode=schema_mode,
            wanted=TableOptions.of(partition_by, cluster_by, None, taken.text("description"), taken.properties()),
            target_file_size=taken.whole("targetFileSize", least=1),
            parquet=None if compression is None else ParquetOptions(compression=_codec(compression)),
            commit=taken.commit(),
        )
        more = {} if size is None else {"max_records_per_file": size}
        by_partition = dynamic and mode == "overwrite"
        return WriteOptions(path=path, job=job, by_partition=by_partition, more=more, storage_options=taken.rest())

    def into(self, metadata: Metadata | None) -> WriteOptions:
        """For the table that is there, None for none: one without partition columns is a single partition, to be overwritten as a whole."""
        if not self.by_partition or metadata is None or not metadata.partition_columns:
            return self
        return replace(self, job=replace(self.job, mode="overwrite_partitions"))


def travelled(path: str, storage_options: Mapping[str, str]) -> tuple[str, int | None, str | None]:
    """`path@v3` and `path@yyyyMMddHHmmssSSS` -> path, version, timestamp; a table whose own path looks so is itself."""
    match = _TRAVEL.fullmatch(path)
    if match is None or DeltaTable.exists(path, storage_options=storage_options):
        return path, None, None
    if match["version"] is not None:
        return match["path"], int(match["version"]), None
    digits = match["moment"]
    day, time = f"{digits[:4]}-{digits[4:6]}-{digits[6:8]}", f"{digits[8:10]}:{digits[10:12]}:{digits[12:14]}.{digits[14:]}"
    return match["path"], None, f"{day}T{time}"


def _codec(name: str) -> str:
    """Spark's name of a codec -> deltaic's."""
    return {"none": "uncompressed", "lz4raw": "lz4_raw", "lz4": "lz4_raw"}.get(name.lower(), name.lower())


class _OptionReader:
    """Reads the options of a DataFrame reader or writer by name; `rest` refuses those that nothing has read."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._left = {name.lower(): str(value) for name, value in options.items()}

    def text(self, name: str) -> str | None:
        return self._left.pop(name.lower(), None)

    def path(self) -> str:
        path = self.text("path")
        if self.text("paths") is not None or not path:
            raise InvalidArgumentError("a Delta table is one path", found=repr(path), expected="load(path), or save(path)")
        return path

    def flag(self, name: str) -> bool | None:
        value = self.one_of(name, ("true", "false"))
        return None if value is None else value == "true"

    def one_of(self, name: str, allowed: tuple[str, ...]) -> str | None:
        value = self.text(name)
        if value is not None and value.lower() not in allowed:
            raise InvalidArgumentError(f"the option {name}", found=repr(value), expected=" or ".join(allowed))
        return None if value is None else value.lower()

    def whole(self, name: str, *, least: int = 0) -> int | None:
        value = self.text(name)
        if value is not None and (not value.strip().isdecimal() or int(value) < least):
            raise InvalidArgumentError(f"the option {name}", found=repr(value), expected=f"a whole number, at least {least}")
        return None if value is None else int(value)

    def size(self, name: str) -> int | None:
        """Bytes, as Spark reads them: `1g` is 1,073,741,824."""
        value = self.text(name)
        match = None if value is None else _SIZE.fullmatch(value)
        if value is not None and (match is None or int(match[1]) < 1):
            raise InvalidArgumentError(f"the option {name}", found=repr(value), expected="a number of bytes, at least 1, such as 10m")
        return None if match is None else int(match[1]) << 10 * " kmgtp".index(match[2].lower() or " ")

    def most(self, name: str) -> int | None:
        """A whole number; none where it is not above 0."""
        value = self.text(name)
        try:
            return None if value is None or int(value) < 1 else int(value)
        except ValueError:
            raise InvalidArgumentError(f"the option {name}", found=repr(value), expected="a whole number") from None

    def names(self, name: str) -> tuple[str, ...] | None:
        """Names divided by commas, in backticks where they need them."""
        value = self.text(name)
        if value is None:
            return None
        reader = Reader(value)
        found = reader.listed(reader.dotted)
        reader.end()
        return tuple(path[0] if len(path) == 1 and path[0].isidentifier() else path_text(path) for path in found)

    def top_level(self, name: str) -> tuple[str, ...] | None:
        """Names of top-level columns divided by commas, as they are or, where they have a comma, in backticks."""
        value = self.text(name)
        if value is None:
            return None
        found = _NAME.findall(value)
        return tuple(quoted.replace("``", "`") if quoted else plain.strip() for quoted, plain in found)

    def schema_mode(self) -> SchemaMode | None:
        merge, overwrite = self.flag("mergeSchema"), self.flag("overwriteSchema")
        if merge and overwrite:
            raise InvalidArgumentError("mergeSchema and overwriteSchema: one of them")
        return "overwrite" if overwrite else "merge" if merge else None

    def properties(self) -> dict[str, str] | None:
        """Options that begin with `delta.`: properties of a table that the write makes, in the case in which they are known."""
        known = {name.lower(): name for name in REGISTRY}
        names = [name for name in self._left if name.startswith("delta.")]
        return {known.get(name, name): self._left.pop(name) for name in names} or None

    def commit(self) -> CommitOptions:
        app_id, version = self.text("txnAppId"), self.whole("txnVersion")
        if (app_id is None) != (version is None):
            raise InvalidArgumentError("txnAppId and txnVersion go together", found=f"{app_id!r} and {version}")
        transactions = {} if app_id is None or version is None else {app_id: version}
        return CommitOptions(user_metadata=self.text("userMetadata"), transactions=transactions)

    def rest(self) -> dict[str, str]:
        """The options of a store that are left. Any others have no effect: the log says so."""
        for name, what in _LATER_FLAGS.items():
            if self.flag(name):
                raise UnsupportedFeatureError(what, found=f"the option {name}")
        for name in self._left:
            if name in _LATER:
                raise UnsupportedFeatureError(_LATER[name], found=f"the option {name}")
            if name.startswith(("fs.", "dfs.")):
                raise UnsupportedFeatureError("Hadoop's settings of one table", found=name, expected="settings of the Spark session")
        unknown = sorted(name for name in self._left if not _OF_A_STORE.fullmatch(name))
        for name in unknown:
            reason = "it is one of streams" if name in _STREAMS else "no such option is known"
            log.warning("the option %s has no effect on a Delta table: %s", name, reason)
        return {name: value for name, value in self._left.items() if name not in unknown}
