"""Iceberg metadata of a version: what Iceberg's readers open a Delta table by, written after its commit.

    metadata/v7.metadata.json           the table as of version 7 of the Delta table
    metadata/snap-<id>-<uuid>.avro      the manifests of a snapshot
    metadata/<uuid>-m0.avro             a manifest: data files, or deletion vectors
    metadata/version-hint.text          the newest version, a number

The file of version 7 is put if absent, on top of that of version 6, or of the newest one before it: a commit adds a manifest of its new
files, and writes again those manifests whose files it removed. Versions without a file of their own (their writer stopped, or the store
failed) are in the next one. Data files and deletion vectors are referred to, never copied: a vector's frame (length, magic number, bitmap,
checksum) is the same in both formats.

Source: the Apache Iceberg table specification, versions 2 and 3; delta-spark's UniForm for `delta-version` and `delta-timestamp`.
"""

from __future__ import annotations

import json
import logging
import os
import re
import threading
import uuid
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import pyarrow as pa
import pyarrow.compute as pc

from deltaic import _core, configuration
from deltaic.errors import DeltaError, ProtocolError, UnsupportedFeatureError
from deltaic.log import background, catalog
from deltaic.log.iceberg_manifests import DATA, DELETES, FOLDER, Changes, ManifestWriter, live
from deltaic.protocol import iceberg, row_tracking
from deltaic.protocol.iceberg_schema import name_mapping, schema_json

if TYPE_CHECKING:
    from deltaic.log.snapshot import Snapshot

log = logging.getLogger("deltaic.log")

HINT = f"{FOLDER}/version-hint.text"
VERSION, TIMESTAMP, TABLE = "delta-version", "delta-timestamp", "delta-table-id"
_OURS = re.compile(r"v([0-9]+)\.metadata\.json")
_MOST_FORMER = 100
"""Former metadata files that are kept."""
_MOST_KEPT = 16
"""Tables whose newest metadata this process keeps in memory, so that their next commit does not read and parse it again."""


class _Tables:
    """What this process knows of tables, by their places: one thread writes the Iceberg metadata of a table at a time, and the newest that
    was written is kept. A forked child starts with nothing."""

    def __init__(self) -> None:
        self.reset()
        os.register_at_fork(after_in_child=self.reset)

    def reset(self) -> None:
        self._lock = threading.Lock()
        self._locks: WeakValueDictionary[str, _Lock] = WeakValueDictionary()
        self._kept: OrderedDict[str, _Base] = OrderedDict()

    def lock(self, location: str) -> _Lock:
        with self._lock:
            return self._locks.setdefault(location, _Lock())

    def newest(self, location: str) -> _Base | None:
        with self._lock:
            return self._kept.get(location)

    def keep(self, location: str, base: _Base) -> None:
        with self._lock:
            self._kept[location] = base
            self._kept.move_to_end(location)
            while len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)


class _Lock:
    """A lock that is there as long as somebody has it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()


@dataclass(frozen=True)
class _Base:
    """Iceberg metadata of a version of the table. `texts`: its snapshots as JSON, by their ids."""

    version: int
    document: dict[str, Any]
    texts: dict[int, str] = field(default_factory=dict)

    def to_json(self) -> bytes:
        """The document, whose snapshots are written once: a thousand of them take 30 ms."""
        for each in self.document["snapshots"]:
            if each["snapshot-id"] not in self.texts:
                self.texts[each["snapshot-id"]] = json.dumps(each, separators=(",", ":"))
        rest = json.dumps({name: value for name, value in self.document.items() if name != "snapshots"}, separators=(",", ":"))
        snapshots = ",".join(self.texts[each["snapshot-id"]] for each in self.document["snapshots"])
        return f'{rest[:-1]},"snapshots":[{snapshots}]}}'.encode()


_TABLES = _Tables()


def after_commit(snapshot: Snapshot) -> None:
    """Writes the Iceberg metadata of a version that was just committed, where its table asks for it; now or after the commit's answer, as
    `configure(background_checkpoints=)` says. What goes wrong is logged: the commit stands, and a later one catches up."""
    if not iceberg.is_described(snapshot.protocol, snapshot.metadata):
        return
    if configuration.current().background_checkpoints:
        background.submit(f"{snapshot.location}, Iceberg metadata", partial(_write, snapshot))
    else:
        _write(snapshot)


def _write(snapshot: Snapshot) -> None:
    try:
        write(snapshot)
    except Exception as error:  # whatever it is: the commit is there, and nobody may take it for failed
        log.warning("%s: the Iceberg metadata of version %d could not be written: %s", snapshot.location, snapshot.version, error)


def write(snapshot: Snapshot) -> None:
    """Writes the Iceberg metadata of a version, unless it or that of a later version is there."""
    held = _TABLES.lock(snapshot.location)  # it is forgotten when nobody refers to it
    with held.lock:
        version = snapshot.version
        known = _hinted(snapshot.store)
        if known is not None and known >= version and _read(snapshot, known) is not None:
            return  # a later commit was faster, and its metadata has this one's files
        if (base := _base(snapshot)) is None or base.version < version:
            _Writing(snapshot, base).run()
        _point(snapshot.store, version)


def check_added(version: int, adds: pa.Table) -> None:
    """UnsupportedFeatureError where add actions name files that Iceberg metadata of this version cannot describe."""
    if not adds.num_rows:
        return
    silent = pc.is_null(_core.physical_rows(adds))
    if pc.any(silent).as_py():
        raise UnsupportedFeatureError(
            "Iceberg compatibility needs the number of rows in the statistics of each file",
            where=str(adds["path"].filter(silent)[0].as_py()),
            expected="numRecords",
        )
    vectors = adds["deletionVector"]
    marked = pc.is_valid(vectors)
    if version < 3 and pc.any(marked).as_py():
        raise UnsupportedFeatureError(
            f"Iceberg compatibility version {version} does not allow deletion vectors", where=str(adds["path"].filter(marked)[0].as_py())
        )
    if version == 3 and pc.any(pc.equal(pc.struct_field(vectors, "storageType"), "i")).as_py():
        raise UnsupportedFeatureError("Iceberg metadata cannot refer to deletion vectors in the log", found="an inline deletion vector")


def metadata_path(version: int) -> str:
    """Where the Iceberg metadata of a version is."""
    return f"{FOLDER}/v{version}.metadata.json"


def _base(snapshot: Snapshot) -> _Base | None:
    """The metadata to go on from: that of the version before, else the newest there is. That of another table, which was at the same place
    before, is deleted."""
    if (base := _read(snapshot, snapshot.version - 1)) is not None:
        return base
    there = [path for path, _, _ in snapshot.store.entries(FOLDER) if _OURS.fullmatch(path.rpartition("/")[2])]
    versions = sorted((int(found[1]) for path in there if (found := _OURS.fullmatch(path.rpartition("/")[2]))), reverse=True)
    for version in versions:
        if (base := _read(snapshot, version)) is not None:
            return base
        snapshot.store.delete([metadata_path(version), HINT])
    return None


def _read(snapshot: Snapshot, version: int) -> _Base | None:
    """None where there is none, or it is another Delta table's. ProtocolError where another program wrote it."""
    path = metadata_path(version)
    kept = _TABLES.newest(snapshot.location)
    if kept is not None and kept.version == version and snapshot.store.head(path) is not None:
        return kept if kept.document["properties"][TABLE] == snapshot.metadata.id else None
    try:
        document = json.loads(snapshot.store.get(path))
    except FileNotFoundError:
        return None
    properties = document.get("properties", {}) if isinstance(document, dict) else {}
    if TABLE not in properties:
        raise ProtocolError("another program wrote Iceberg metadata in the table's folder", where=f"{snapshot.location}/{path}")
    return _Base(version, document) if properties[TABLE] == snapshot.metadata.id else None


def _hinted(store: _core.Store) -> int | None:
    """The version that the hint names."""
    try:
        return int(store.get(HINT))
    except (FileNotFoundError, ValueError):
        return None


def _point(store: _core.Store, version: int) -> None:
    """Lets the hint name this version, or a later one: it never goes back, whichever writer comes last."""
    while True:
        if (known := _hinted(store)) is not None and known >= version:
            return
        store.put(HINT, str(version).encode())
        later, at = version, version + 1
        while store.head(catalog.commit_file(store, at)) is not None:
            later = at if store.head(metadata_path(at)) is not None else later
            at += 1
        if later == version:
            return
        version = later


class _Outdated(Exception):
    """The metadata so far cannot be gone on from: all of it is written anew."""


class _Writing(ManifestWriter):
    """Of the metadata of one version."""

    def __init__(self, snapshot: Snapshot, base: _Base | None) -> None:
        super().__init__(snapshot, int(base.document.get("next-row-id", 0)) if base is not None else 0)
        self.base = base
        self.timestamp = 0

    def run(self) -> None:
        try:
            document, gone = self._document()
            kept = {each["snapshot-id"] for each in document["snapshots"]}
            texts = {number: text for number, text in self.base.texts.items() if number in kept} if self.base is not None else {}
            new = _Base(self.version, document, texts)
            answer = self.store.put_if_absent(metadata_path(self.version), new.to_json(), durable=False)
        except BaseException:
            self.store.delete(self.written)
            raise
        if answer == "exists":
            self.store.delete(self.written)
        elif answer == "created":
            _TABLES.keep(self.snapshot.location, new)
            self.store.delete(gone)

    # --- the metadata file

    def _document(self) -> tuple[dict[str, Any], list[str]]:
        """The metadata, and the files that nothing refers to any longer."""
        base = self.base.document if self.base is not None else {}
        last = _core.read_commit(self.store, self.version, catalog.commit_file(self.store, self.version))
        self.timestamp = max(_time_of(last) or self.snapshot.modified or 0, int(base.get("last-updated-ms", 0)))
        schemas, schema_id = _with(base.get("schemas", []), "schema-id", lambda number: schema_json(self.snapshot.schema, number))
        specs, self.spec_id = _with(base.get("partition-specs", []), "spec-id", lambda number: {"spec-id": number, "fields": self.spec})
        self.schema = next(each for each in schemas if each["schema-id"] == schema_id)
        snapshots = list(base.get("snapshots", []))
        current = base.get("current-snapshot-id")
        parent = next((each for each in snapshots if each["snapshot-id"] == current), None)
        new = self._snapshot(parent, last, schema_id)
        snapshot_log = list(base.get("snapshot-log", []))
        if new is not None:
            snapshots.append(new)
            snapshot_log.append({"snapshot-id": new["snapshot-id"], "timestamp-ms": self.timestamp})
            current = new["snapshot-id"]
        snapshots, gone = self._expired(snapshots, current)
        kept = {each["snapshot-id"] for each in snapshots}
        former = list(base.get("metadata-log", []))
        if self.base is not None:
            entry = {"timestamp-ms": base["last-updated-ms"], "metadata-file": f"{self.location}/{metadata_path(self.base.version)}"}
            former.append(entry)
        gone += [self.relative(each["metadata-file"]) for each in former[:-_MOST_FORMER]]
        metadata = self.snapshot.metadata
        document: dict[str, Any] = {
            "format-version": self.format,
            "table-uuid": _uuid(metadata.id),
            "location": self.location,
            "last-sequence-number": self.version,
            "last-updated-ms": self.timestamp,
            "last-column-id": self.snapshot.properties.max_column_id,
            "current-schema-id": schema_id,
            "schemas": schemas,
            "default-spec-id": self.spec_id,
            "partition-specs": specs,
            "last-partition-id": max([999, *(each["field-id"] for spec in specs for each in spec["fields"])]),
            "default-sort-order-id": 0,
            "sort-orders": [{"order-id": 0, "fields": []}],
            "properties": {
                **{name: text for name, text in metadata.configuration.items() if not name.startswith(("delta.", "deltaic."))},
                "schema.name-mapping.default": name_mapping(self.snapshot.schema),
                VERSION: str(self.version),
                TIMESTAMP: str(self.timestamp),
                TABLE: metadata.id,
            },
            "snapshots": snapshots,
            "snapshot-log": [each for each in snapshot_log if each["snapshot-id"] in kept],
            "metadata-log": former[-_MOST_FORMER:],
            "statistics": [],
            "partition-statistics": [],
        }
        if current is not None:
            document |= {"current-snapshot-id": current, "refs": {"main": {"snapshot-id": current, "type": "branch"}}}
        if self.format == 3:
            document["next-row-id"] = self._next_row_id()
        return document, gone

    def _next_row_id(self) -> int:
        mark = row_tracking.high_water_mark(self.snapshot.domains.get(row_tracking.DOMAIN))
        return max(mark + 1, self.first_row_id)

    def _expired(self, snapshots: list[dict[str, Any]], current: Any) -> tuple[list[dict[str, Any]], list[str]]:
        """Without snapshots older than the log's retention, once a tenth of all is: and the manifest lists and manifests of these alone."""
        oldest = self.timestamp - self.snapshot.properties.log_retention.total_seconds() * 1000
        old = [each for each in snapshots if each["timestamp-ms"] < oldest and each["snapshot-id"] != current]
        if not old or len(old) * 10 < len(snapshots):
            return snapshots, []
        kept = [each for each in snapshots if each not in old]
        lists = {each["manifest-list"] for each in kept}
        used = {each["manifest_path"] for place in lists for each in self.read_list(place)} if kept else set()
        gone = {each["manifest_path"] for item in old for each in self.read_list(item["manifest-list"], missing=True)} - used
        return kept, [self.relative(path) for path in sorted(gone | {each["manifest-list"] for each in old})]

    # --- snapshots

    def _snapshot(self, parent: dict[str, Any] | None, last: _core.Commit, schema_id: int) -> dict[str, Any] | None:
        """The snapshot of the version; None where no file came or went since the last one."""
        before = self.read_list(parent["manifest-list"]) if parent is not None else []
        try:
            result = self._changed(before, last)
        except (_Outdated, DeltaError, OSError) as error:
            if isinstance(error, OSError) and not isinstance(error, FileNotFoundError):
                raise
            self.counts.clear()
            result = self._anew(before)
        if result is None or (parent is None and not result[0]):
            return None
        manifests, operation = result
        place = f"{FOLDER}/snap-{self.snapshot_id}-{uuid.uuid4()}.avro"
        header = {
            "format-version": str(self.format),
            "snapshot-id": str(self.snapshot_id),
            "parent-snapshot-id": str(parent["snapshot-id"]) if parent else "null",
            "sequence-number": str(self.version),
        }
        self.put(place, _core.iceberg_manifest_list(json.dumps(manifests), json.dumps(header), self.format))
        snapshot = {
            "snapshot-id": self.snapshot_id,
            "sequence-number": self.version,
            "timestamp-ms": self.timestamp,
            "manifest-list": f"{self.location}/{place}",
            "summary": self._summary(operation, manifests),
            "schema-id": schema_id,
        }
        if parent is not None:
            snapshot["parent-snapshot-id"] = parent["snapshot-id"]
        if self.format == 3:
            snapshot |= {"first-row-id": self.first_row_id, "added-rows": self._next_row_id() - self.first_row_id}
        return snapshot

    def _summary(self, operation: str, manifests: Sequence[dict[str, Any]]) -> dict[str, str]:
        data = [each for each in manifests if each["content"] == DATA]
        vectors = [each for each in manifests if each["content"] == DELETES]
        of_data = [each for each in self.counts if each["content"] == DATA]
        numbers = {
            "added-data-files": sum(each["added_files_count"] for each in of_data),
            "deleted-data-files": sum(each["deleted_files_count"] for each in of_data),
            "added-records": sum(each["added_rows_count"] for each in of_data),
            "deleted-records": sum(each["deleted_rows_count"] for each in of_data),
            "total-data-files": live(data),
            "total-delete-files": live(vectors),
            "total-records": sum(each["added_rows_count"] + each["existing_rows_count"] for each in data),
            "total-files-size": self.snapshot.core.size_in_bytes,
            "total-position-deletes": sum(each["added_rows_count"] + each["existing_rows_count"] for each in vectors),
            "total-equality-deletes": 0,
        }
        return {"operation": operation, **{name: str(number) for name, number in numbers.items()}, VERSION: str(self.version)}

    def _changed(self, before: list[dict[str, Any]], last: _core.Commit) -> tuple[list[dict[str, Any]], str] | None:
        """The manifests after the commits since the base, and the operation; None where these changed no file."""
        if self.base is None:
            raise _Outdated
        self._check_base(self.base.document)
        changes = Changes()
        try:
            for version in range(self.base.version + 1, self.version):
                changes.take(_core.read_commit(self.store, version, catalog.commit_file(self.store, version)), self.snapshot.location)
        except FileNotFoundError:
            raise _Outdated from None  # the log has been cleaned
        changes.take(last, self.snapshot.location)
        if not changes.gone and not changes.added:
            return None
        data = [each for each in before if each["content"] == DATA]
        deletes = [each for each in before if each["content"] == DELETES]
        fresh = changes.adds_of(path for path in changes.added if path not in changes.gone)
        gone = changes.gone - changes.added.keys()
        data = self.next(DATA, data, fresh, gone)
        marked = changes.adds_of(changes.added)
        marked = marked.filter(pc.is_valid(marked["deletionVector"]))
        self._check_vectors(marked)
        if self.format == 3:
            deletes = self.next(DELETES, deletes, marked, changes.gone | changes.added.keys())
        self._check_complete(data, deletes)
        operation = "append" if not gone else "overwrite" if fresh.num_rows else "delete"
        if changes.gone & changes.added.keys() and operation == "append":
            operation = "overwrite"
        return [*data, *deletes], operation if changes.data_changes else "replace"

    def _anew(self, before: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], str]:
        """Manifests of all files of the version."""
        adds = self.snapshot.files().adds
        data = self.next(DATA, [], adds, set())
        marked = adds.filter(pc.is_valid(adds["deletionVector"]))
        self._check_vectors(marked)
        deletes = self.next(DELETES, [], marked, set()) if self.format == 3 else []
        self._check_complete(data, deletes)
        return [*data, *deletes], "overwrite" if before else "append"

    def _check_base(self, base: dict[str, Any]) -> None:
        """_Outdated where older manifests cannot be used: their partition records or bounds have other types, or they are of another
        version of the format."""
        types = [json.loads(text) for text in (_types(each) for each in base["schemas"] if each["schema-id"] == base["current-schema-id"])]
        now = json.loads(_types(self.schema))
        widened = any(now.get(number, kind) != kind for each in types for number, kind in each.items())
        if widened or base["format-version"] != self.format or base["default-spec-id"] != self.spec_id:
            raise _Outdated

    def _check_vectors(self, marked: pa.Table) -> None:
        """ProtocolError where another writer marked rows that readers of version 2 would see."""
        if self.format < 3 and marked.num_rows:
            raise ProtocolError(
                "a file has a deletion vector, which this version of Iceberg compatibility does not allow",
                where=f"{self.location}/{marked['path'][0].as_py()}",
            )

    def _check_complete(self, data: Sequence[dict[str, Any]], deletes: Sequence[dict[str, Any]]) -> None:
        """The manifests name as many files as the version has, and as many vectors: else a commit added a file again, for instance with
        other statistics."""
        core = self.snapshot.core
        if live(data) != core.file_count or (self.format == 3 and live(deletes) != core.with_vectors[0]):
            raise _Outdated


def _time_of(commit: _core.Commit) -> int | None:
    info = json.loads(commit.commit_info or "{}")
    info = info.get("commitInfo", info)
    stated = info.get("inCommitTimestamp", info.get("timestamp"))
    return stated if isinstance(stated, int) else None


def _with(known: list[dict[str, Any]], name: str, make: Any) -> tuple[list[dict[str, Any]], int]:
    """The schemas, or partition specs, with the present one, and its number."""
    for each in known:
        if each == make(each[name]):
            return known, each[name]
    number = max([-1, *(each[name] for each in known)]) + 1
    return [*known, make(number)], number


def _types(schema: dict[str, Any]) -> str:
    """The primitive types of a schema by id, as JSON."""
    found: dict[str, str] = {}

    def look(number: int, kind: Any) -> None:
        if isinstance(kind, str):
            found[str(number)] = kind
        elif kind["type"] == "struct":
            for item in kind["fields"]:
                look(item["id"], item["type"])
        elif kind["type"] == "list":
            look(kind["element-id"], kind["element"])
        else:
            look(kind["key-id"], kind["key"])
            look(kind["value-id"], kind["value"])

    look(0, schema)
    return json.dumps(found)


def _uuid(text: str) -> str:
    try:
        return str(uuid.UUID(text))
    except ValueError:
        return str(uuid.uuid5(uuid.NAMESPACE_URL, text))
