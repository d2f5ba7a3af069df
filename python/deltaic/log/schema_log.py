"""The schema log of a stream that follows a table, in files 0, 1, ... of a folder (delta-spark's
`schemaTrackingLocation`).

Each entry has the definition of the table with which rows from one version on are read. At a version that
changes the definition, a stream writes the new definition to the log and fails. When it is started again, it
reads on with the new definition. So columns can be renamed, dropped and widened while a stream follows the
table.

Source: delta-io/delta, DeltaSourceMetadataTrackingLog.scala and SchemaTrackingLog.scala, for the files.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count, takewhile
from typing import Any
from urllib.parse import urlsplit

from deltaic import _core
from deltaic.errors import DeltaError, InvalidArgumentError, ProtocolError, SchemaMismatchError
from deltaic.log import catalog
from deltaic.log.segment import list_log
from deltaic.log.snapshot import Snapshot
from deltaic.protocol.actions import Metadata, Protocol
from deltaic.protocol.bounded_json import parse_json
from deltaic.protocol.column_mapping import physical_name
from deltaic.protocol.schema import Array, DataType, Map, Schema, Struct, type_name

_HEAD = b"v1\n"
_MOST_BYTES = 64 << 20
"""Maximum bytes of an entry; a larger file is an error."""
RENAME, DROP, TYPE = "allowSourceColumnRename", "allowSourceColumnDrop", "allowSourceColumnTypeChange"


@dataclass(frozen=True)
class TrackedSchema:
    """An entry: the definition of a table from `version` on.

    `protocol`: None if the entry has none. `source`: the path of the source's metadata in the stream's
    checkpoint, as delta-spark writes it; empty if unknown. `previous`: number of the entry whose columns the
    stream had before, -1 if it had none; None for the entry before this one."""

    table_id: str
    version: int
    schema: Schema
    partition_columns: tuple[str, ...]
    configuration: Mapping[str, str] = field(default_factory=dict)
    protocol: Protocol | None = None
    source: str = ""
    previous: int | None = None

    @staticmethod
    def of(
        version: int, table_id: str, metadata: Metadata, protocol: Protocol | None, source: str = ""
    ) -> TrackedSchema:
        schema = Schema.from_json(metadata.schema_string)
        return TrackedSchema(
            table_id,
            version,
            schema,
            metadata.partition_columns,
            dict(metadata.configuration),
            protocol,
            source,
        )

    def differs(self, metadata: Metadata | None, protocol: Protocol | None) -> bool:
        """True if the actions of a commit change the definition."""
        if protocol is not None and self.protocol is not None and protocol != self.protocol:
            return True
        return metadata is not None and (
            self.differs_in_columns(metadata)
            or _of_delta(metadata.configuration) != _of_delta(self.configuration)
        )

    def differs_in_columns(self, metadata: Metadata) -> bool:
        """True if schema or partition columns differ from those of this entry."""
        same = tuple(metadata.partition_columns) == tuple(self.partition_columns)
        return not same or Schema.from_json(metadata.schema_string) != self.schema

    def after(self, version: int, metadata: Metadata | None, protocol: Protocol | None) -> TrackedSchema:
        """Returns the next entry, for a commit with these actions."""
        if metadata is None:
            return TrackedSchema(
                self.table_id,
                version,
                self.schema,
                self.partition_columns,
                self.configuration,
                protocol or self.protocol,
                self.source,
            )
        return TrackedSchema.of(version, self.table_id, metadata, protocol or self.protocol, self.source)

    def to_bytes(self) -> bytes:
        """Serializes the entry."""
        partitions = Schema(self.schema.find((name,))[1] for name in self.partition_columns)
        values = {
            "tableId": self.table_id,
            "deltaCommitVersion": self.version,
            "dataSchemaJson": self.schema.to_json(),
            "partitionSchemaJson": partitions.to_json(),
            "sourceMetadataPath": self.source,
            "tableConfigurations": dict(self.configuration),
        }
        if self.protocol is not None:
            values["protocolJson"] = self.protocol.to_json()
        if self.previous is not None:
            values["previousMetadataSeqNum"] = self.previous
        return _HEAD + json.dumps(values, separators=(",", ":")).encode()

    @staticmethod
    def from_bytes(data: bytes, where: str) -> TrackedSchema:
        """Parses an entry. A file that is no entry is a ProtocolError."""
        try:
            head, _, body = data.partition(b"\n")
            values = parse_json(body.decode())
            if head != b"v1":
                raise ValueError("the first line is not v1")
            texts = [str(values[name]) for name in ("dataSchemaJson", "partitionSchemaJson")]
            protocol, previous = values.get("protocolJson"), values.get("previousMetadataSeqNum")
            fields: dict[str, Any] = {
                "table_id": str(values["tableId"]),
                "version": int(values["deltaCommitVersion"]),
                "configuration": dict(values.get("tableConfigurations") or {}),
                "protocol": None if protocol is None else Protocol.from_json(protocol),
                "source": str(values.get("sourceMetadataPath") or ""),
                "previous": None if previous is None else int(previous),
            }
        except (ValueError, KeyError, TypeError, AttributeError, DeltaError) as error:
            raise ProtocolError(
                "[DELTA_STREAMING_SCHEMA_LOG_DESERIALIZE_FAILED] an entry of the log of schemas cannot be"
                " read",
                where=where,
                found=str(error),
            ) from error
        try:
            schema, partitions = map(Schema.from_json, texts)
        except (ValueError, KeyError, TypeError, AttributeError, DeltaError) as error:
            raise ProtocolError(
                "[DELTA_STREAMING_SCHEMA_LOG_PARSE_SCHEMA_FAILED] a schema in an entry of the log of schemas"
                " cannot be read; start a new stream with a new schemaTrackingLocation",
                where=where,
                found=str(error),
            ) from error
        return TrackedSchema(schema=schema, partition_columns=tuple(partitions.names), **fields)


class SchemaLog:
    """The entries in `store`, the folder of one source.

    `current`: the newest entry, or None. `previous`: the one whose columns the stream had before, or None.
    `allowed`: the kinds of changes (RENAME, DROP, TYPE) that the user allows. `source`: the path of the
    source's metadata in the stream's checkpoint, empty if unknown."""

    def __init__(self, store: _core.Store, table_id: str) -> None:
        self._store, self.table_id = store, table_id
        self.allowed: frozenset[str] = frozenset()
        self.source = ""
        numbers = [int(path) for path, _, _ in store.entries("") if path.isdecimal()]
        self._count = max(numbers, default=-1) + 1
        self.current = self._entry(self._count - 1)
        self.previous = None if self.current is None else self._entry(self._number_before(self.current))
        if self.current is not None and self.current.table_id != table_id:
            raise InvalidArgumentError(
                "[DELTA_STREAMING_SCHEMA_LOG_INCOMPATIBLE_DELTA_TABLE_ID] the log of schemas is of another"
                " table",
                where=store.location,
                found=f"table id {self.current.table_id}",
                expected=f"table id {table_id}",
            ).with_values(persisted=self.current.table_id, table_id=table_id)

    @property
    def location(self) -> str:
        """The folder of the log."""
        return self._store.location

    def allow(self, values: Mapping[str, str]) -> None:
        """Allows kinds of changes. `values`: kind -> `always`, or the version of the newest entry as text;
        another version allows nothing."""
        version = None if self.current is None else str(self.current.version)
        self.allowed |= {kind for kind, value in values.items() if value in ("always", version)}

    def check_below(self, checkpoint: str) -> None:
        """Raises InvalidArgumentError if the log is not in a folder below the root of the checkpoint."""
        log, root = (urlsplit(place) for place in (self._store.location, checkpoint))
        is_elsewhere = log.netloc and root.netloc and log.netloc != root.netloc
        if is_elsewhere or not log.path.startswith(f"{root.path.rstrip('/')}/"):
            raise InvalidArgumentError(
                "[DELTA_STREAMING_SCHEMA_LOCATION_NOT_UNDER_CHECKPOINT] a log of schemas belongs to one"
                " query, so it is in a folder below the query's checkpoint",
                where="option schemaTrackingLocation",
                found=self._store.location,
                expected=f"a folder below {checkpoint}",
            ).with_values(location=self._store.location, checkpoint=checkpoint)

    def check_source(self) -> None:
        """Raises InvalidArgumentError if another source of a stream has written the newest entry."""
        if self.current is not None and self.current.source not in ("", self.source):
            raise InvalidArgumentError(
                "another source of a stream uses this log of schemas; set another schemaTrackingLocation, or"
                " a streamingSourceTrackingId for each source of the query",
                where=self._store.location,
                found=f"sourceMetadataPath = {self.current.source}",
                expected=self.source,
            )

    def _number_before(self, newest: TrackedSchema) -> int:
        return self._count - 2 if newest.previous is None else newest.previous

    def _entry(self, number: int) -> TrackedSchema | None:
        if number < 0:
            return None
        try:
            return TrackedSchema.from_bytes(
                self._store.get(str(number), most=_MOST_BYTES), f"{self._store.location}/{number}"
            )
        except FileNotFoundError:
            return None

    def append(self, entry: TrackedSchema, *, replace_newest: bool = False) -> None:
        """Writes the next entry. `replace_newest`: True if no batch was read with the newest entry, so that
        `previous` stays as it is. If another stream has written the entry, InvalidArgumentError is raised."""
        if replace_newest and self.current is not None:
            entry = replace(entry, previous=self._number_before(self.current))
        entry = entry if entry.source else replace(entry, source=self.source)
        if self._store.put_if_absent(str(self._count), entry.to_bytes()) != "created":
            raise _conflict(self._store.location, entry.table_id)
        self._count += 1
        self.previous = self.previous if replace_newest else self.current
        self.current = entry

    def merge_changes(self, table: _core.Store) -> None:
        """Adds the definition after the commits that directly follow the newest entry and change nothing but
        the definition, so that a stream which is started again passes them at once. Example: the newest entry
        is of version 6, which renames a column, version 7 drops one, and version 8 adds rows: the new entry
        is of version 7. `table`: the store of the table that the stream follows."""
        if (newest := self.current) is None:
            return
        entry, commits = newest, list_log(table, newest.version).commits
        for version in takewhile(commits.__contains__, count(newest.version)):
            commit = _core.read_commit(table, version, catalog.commit_file(table, version))
            if any(commit.file_counts) or commit.has_cdc or not (commit.metadata or commit.protocol):
                break
            if version > newest.version:
                entry = entry.after(
                    version,
                    None if commit.metadata is None else Metadata.from_json(commit.metadata),
                    None if commit.protocol is None else Protocol.from_json(commit.protocol),
                )
        if entry is not newest:
            self.append(entry, replace_newest=True)

    def check_allowed(self) -> None:
        """Raises SchemaMismatchError if the newest entry renames, drops or changes columns and the user has
        not allowed that."""
        if self.previous is None or self.current is None:
            return
        changes: dict[str, list[str]] = {}
        for name, text in non_additive(self.previous.schema, self.current.schema):
            changes.setdefault(name, []).append(text)
        if missing := sorted(changes.keys() - self.allowed):
            names = " and ".join(
                f"the option {name}, or the setting {SETTINGS}{name}, = always" for name in missing
            )
            raise SchemaMismatchError(
                "[DELTA_STREAMING_CANNOT_CONTINUE_PROCESSING_POST_SCHEMA_EVOLUTION] columns were renamed,"
                f" dropped or changed between versions {self.previous.version} and {self.current.version}:"
                " change the sink accordingly, then allow the change",
                where=self._store.location,
                found="; ".join(text for name in missing for text in changes[name]),
                expected=names,
            )


def check_distinct(logs: Iterable[tuple[SchemaLog, str]]) -> None:
    """Raises InvalidArgumentError if two sources of a query have the same schema log. `logs`: the log of each
    source, and the location of its table."""
    known: set[str] = set()
    for log, table in logs:
        if log.location in known:
            raise _conflict(log.location, table)
        known.add(log.location)


def _conflict(location: str, table: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        "[DELTA_STREAMING_SCHEMA_LOCATION_CONFLICT] another stream writes this log of schemas",
        where=location,
        expected="a schemaTrackingLocation, or a streamingSourceTrackingId, for each source",
    ).with_values(table=table)


SETTINGS = "spark.databricks.delta.streaming."
"""Prefix of the settings that allow changes for all streams of a session."""


def non_additive(before: Schema, after: Schema) -> Iterator[tuple[str, str]]:
    """Yields (RENAME, DROP or TYPE, description) of each change that is no addition. Fields match by their
    physical names."""
    known = dict(_fields(Struct(tuple(after)), ()))
    for place, (name, kind) in _fields(Struct(tuple(before)), ()):
        if place not in known:
            if place[:-1] in known or len(place) == 1:
                yield DROP, f"column {name} is dropped"
        elif known[place][0].rpartition(".")[2] != name.rpartition(".")[2]:
            yield RENAME, f"column {name} is now {known[place][0]}"
        elif known[place][1] != kind:
            yield TYPE, f"column {name} was {kind} and is now {known[place][1]}"


def check_one_schema(first: Snapshot, later: Sequence[Metadata], last: int) -> None:
    """Raises SchemaMismatchError if the last schema cannot read the rows of all versions from `first` to
    `last`, which one batch has. `later`: the definitions of the versions after `first`."""
    schemas = [first.schema, *(Schema.from_json(each.schema_string) for each in later)]
    texts = [text for schema in schemas[:-1] for _, text in non_additive(schema, schemas[-1])]
    if texts:
        raise SchemaMismatchError(
            "[DELTA_STREAMING_SCHEMA_LOG_INIT_FAILED_INCOMPATIBLE_METADATA] columns were renamed, dropped or"
            f" changed between versions {first.version} and {last}, whose rows the query reads in one batch;"
            " start a new stream with a new checkpoint",
            where=first.location,
            found="; ".join(dict.fromkeys(texts)),
        )


def _fields(
    kind: DataType, place: tuple[str, ...], name: str = ""
) -> Iterator[tuple[tuple[str, ...], tuple[str, str]]]:
    """Yields (physical path, (logical path, type)) of every field, element, key and value."""
    if isinstance(kind, Struct):
        for item in kind.fields:
            inner, path = (*place, physical_name(item)), f"{name}.{item.name}" if name else item.name
            yield (
                inner,
                (
                    path,
                    type_name(item.type) if isinstance(item.type, str) else type(item.type).__name__.lower(),
                ),
            )
            yield from _fields(item.type, inner, path)
        return
    parts: dict[str, DataType] = {}
    if isinstance(kind, Array):
        parts = {"element": kind.element}
    elif isinstance(kind, Map):
        parts = {"key": kind.key, "value": kind.value}
    for part, inner_kind in parts.items():
        shown = type_name(inner_kind) if isinstance(inner_kind, str) else type(inner_kind).__name__.lower()
        yield (*place, part), (f"{name}.{part}", shown)
        yield from _fields(inner_kind, (*place, part), f"{name}.{part}")


def _of_delta(configuration: Mapping[str, str]) -> dict[str, str]:
    return {name: text for name, text in configuration.items() if name.startswith("delta.")}
