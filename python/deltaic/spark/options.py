"""The options of Spark's DataFrameReader and DataFrameWriter, as delta-spark names them, to what deltaic's own calls take.

Spark hands options over as text, with names in lower case; they match without regard to case. An option that nothing here knows is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from deltaic.commands.create import Wanted
from deltaic.commands.write import Mode, SchemaMode, Write
from deltaic.errors import InvalidArgumentError, UnsupportedFeatureError
from deltaic.options import CommitOptions, ParquetOptions
from deltaic.protocol.actions import Metadata
from deltaic.protocol.properties import REGISTRY
from deltaic.protocol.schema import path_text
from deltaic.sql.tokens import Reader
from deltaic.table import DeltaTable

_OF_A_STORE = re.compile(r"(aws|azure|google|gcs|s3)_\w+|allow_http|allow_invalid_certificates|(connect_)?timeout|proxy_\w+|user_agent")
_CHANGES = ("readchangefeed", "readchangedata", "startingversion", "startingtimestamp", "endingversion", "endingtimestamp")
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
)
_LATER = {
    **dict.fromkeys(_CHANGES, "the change data feed"),
    **dict.fromkeys(_STREAMS, "structured streaming"),
    "replaceon": "replaceOn",
    "replaceusing": "replaceUsing",
    "writepartitioncolumns": "writePartitionColumns",
    "ignorecorruptfiles": "ignoreCorruptFiles: reading less than the rows of a table",
    "ignoremissingfiles": "ignoreMissingFiles: reading less than the rows of a table",
}
_OF_WRITERS = ("mergeSchema", "overwriteSchema")
"""What jobs say of reading too, where it has no meaning: delta-spark takes no notice of it."""
_TRAVEL = re.compile(r"(?P<path>.+)@([vV](?P<version>\d+)|(?P<moment>\d{17}))")


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """What a reader asks for. `columns`: names, nested ones dotted; None for all. `partitions`: how many tasks, None for as many as the
    size of the files suggests."""

    path: str
    version: int | None = None
    timestamp: str | None = None
    columns: tuple[str, ...] | None = None
    partitions: int | None = None
    storage_options: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def of(options: Mapping[str, Any]) -> ReadOptions:
        """InvalidArgumentError names an option that is unknown or wrong, UnsupportedFeatureError one that comes later."""
        taken = _Taken(options)
        path = taken.path()
        version, timestamp = taken.whole("versionAsOf"), taken.text("timestampAsOf")
        if version is not None and timestamp is not None:
            raise InvalidArgumentError("versionAsOf and timestampAsOf: one of them", found=f"{version} and {timestamp}")
        columns, partitions = taken.names("columns"), taken.whole("partitions", least=1)
        for name in _OF_WRITERS:
            taken.flag(name)
        storage_options = taken.rest()
        if version is None and timestamp is None:
            path, version, timestamp = travelled(path, storage_options)
        elif travelled(path, storage_options)[1:] != (None, None):
            raise InvalidArgumentError("a moment in the path and one in the options", found=path, expected="one of them")
        return ReadOptions(
            path=path, version=version, timestamp=timestamp, columns=columns, partitions=partitions, storage_options=storage_options
        )


@dataclass(frozen=True, kw_only=True)
class WriteOptions:
    """Where a writer writes, as which command. `more`: options of `_core.write` besides the table's."""

    path: str
    job: Write
    more: Mapping[str, Any] = field(default_factory=dict)
    storage_options: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def of(options: Mapping[str, Any], mode: Mode) -> WriteOptions:
        """`mode`: Spark's save mode; with partitionOverwriteMode=dynamic an overwrite is one of partitions."""
        taken = _Taken(options)
        path = taken.path()
        dynamic = taken.one_of("partitionOverwriteMode", ("static", "dynamic")) == "dynamic"
        where = taken.text("replaceWhere")
        if dynamic and where is not None:
            raise InvalidArgumentError("replaceWhere and partitionOverwriteMode=dynamic: one of them", found=where)
        if mode == "overwrite" and dynamic:
            mode = "overwrite_partitions"
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
            schema_mode=taken.schema_mode(),
            wanted=Wanted.of(taken.names("partitionBy"), taken.names("clusterBy"), None, taken.text("description"), taken.properties()),
            target_file_size=taken.whole("targetFileSize", least=1),
            parquet=None if compression is None else ParquetOptions(compression=_codec(compression)),
            commit=taken.commit(),
        )
        more = {} if size is None else {"max_records_per_file": size}
        return WriteOptions(path=path, job=job, more=more, storage_options=taken.rest())

    def into(self, metadata: Metadata | None) -> WriteOptions:
        """For the table that is there, None for none: one without partition columns is a single partition, to be overwritten as a whole."""
        if metadata is None or metadata.partition_columns or self.job.mode != "overwrite_partitions":
            return self
        return replace(self, job=replace(self.job, mode="overwrite"))


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


class _Taken:
    """Options that are taken one by one; `rest` refuses what is left."""

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
        """What is left is the store's."""
        for name in self._left:
            if name in _LATER:
                raise UnsupportedFeatureError(_LATER[name], found=f"the option {name}")
            if name.startswith(("fs.", "dfs.")):
                raise UnsupportedFeatureError("Hadoop's settings of one table", found=name, expected="settings of the Spark session")
            if not _OF_A_STORE.fullmatch(name):
                raise InvalidArgumentError("an unknown option", found=name, expected="delta-spark's options, columns, or those of a store")
        return self._left
