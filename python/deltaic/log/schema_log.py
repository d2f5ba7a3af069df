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
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from deltaic import _core
from deltaic.errors import DeltaError, InvalidArgumentError, ProtocolError, SchemaMismatchError
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
    checkpoint, as delta-spark writes it; empty if unknown."""

    table_id: str
    version: int
    schema: Schema
    partition_columns: tuple[str, ...]
    configuration: Mapping[str, str] = field(default_factory=dict)
    protocol: Protocol | None = None
    source: str = ""

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
        return _HEAD + json.dumps(values, separators=(",", ":")).encode()

    @staticmethod
    def from_bytes(data: bytes, where: str) -> TrackedSchema:
        """Parses an entry. A file that is no entry is a ProtocolError."""
        try:
            head, _, body = data.partition(b"\n")
            values = parse_json(body.decode())
            if head != b"v1":
                raise ValueError("the first line is not v1")
            protocol = values.get("protocolJson")
            return TrackedSchema(
                table_id=str(values["tableId"]),
                version=int(values["deltaCommitVersion"]),
                schema=Schema.from_json(values["dataSchemaJson"]),
                partition_columns=tuple(Schema.from_json(values["partitionSchemaJson"]).names),
                configuration=dict(values.get("tableConfigurations") or {}),
                protocol=None if protocol is None else Protocol.from_json(protocol),
                source=str(values.get("sourceMetadataPath") or ""),
            )
        except (ValueError, KeyError, TypeError, AttributeError, DeltaError) as error:
            raise ProtocolError(
                "[DELTA_STREAMING_SCHEMA_LOG_DESERIALIZE_FAILED] an entry of the log of schemas cannot be"
                " read",
                where=where,
                found=str(error),
            ) from error


class SchemaLog:
    """The entries in `store`, the folder of one source.

    `current`: the newest entry, or None. `previous`: the one before it, or None.
    `allowed`: the kinds of changes (RENAME, DROP, TYPE) that the user allows."""

    def __init__(self, store: _core.Store, table_id: str) -> None:
        self._store, self.table_id = store, table_id
        self.allowed: Collection[str] = frozenset()
        numbers = [int(path) for path, _, _ in store.entries("") if path.isdecimal()]
        self._count = max(numbers, default=-1) + 1
        self.current = self._entry(self._count - 1)
        self.previous = self._entry(self._count - 2)
        if self.current is not None and self.current.table_id != table_id:
            raise InvalidArgumentError(
                "[DELTA_STREAMING_SCHEMA_LOG_INCOMPATIBLE_DELTA_TABLE_ID] the log of schemas is of another"
                " table",
                where=store.location,
                found=f"table id {self.current.table_id}",
                expected=f"table id {table_id}",
            )

    def _entry(self, number: int) -> TrackedSchema | None:
        if number < 0:
            return None
        try:
            return TrackedSchema.from_bytes(
                self._store.get(str(number), most=_MOST_BYTES), f"{self._store.location}/{number}"
            )
        except FileNotFoundError:
            return None

    def append(self, entry: TrackedSchema) -> None:
        """Writes the next entry. If another stream has written it, InvalidArgumentError is raised."""
        if self._store.put_if_absent(str(self._count), entry.to_bytes()) != "created":
            raise InvalidArgumentError(
                "[DELTA_STREAMING_SCHEMA_LOCATION_CONFLICT] another stream writes this log of schemas",
                where=self._store.location,
                expected="a schemaTrackingLocation, or a streamingSourceTrackingId, for each source",
            )
        self._count += 1
        self.previous, self.current = self.current, entry

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
