"""Writes Iceberg metadata after each commit, so that Iceberg's readers can open the Delta table.

    metadata/v7.metadata.json           the table as of version 7 of the Delta table
    metadata/snap-<id>-<uuid>.avro      the manifests of a snapshot
    metadata/<uuid>-m0.avro             a manifest: data files, or deletion vectors
    metadata/version-hint.text          the newest version, a number

The file of version 7 is derived from that of version 6, or from the newest one before it, and is never
overwritten: a commit adds a manifest of its new files, and writes again those manifests whose files it
removed. If a version has no file (its writer stopped, or the store failed), the next file includes its
changes. `iceberg_document.py` makes the metadata file and `iceberg_manifests.py` the manifests; this module
decides when and where they are written. Data files and deletion vectors are referred to, never copied: the
bytes of a deletion vector (length, magic number, bitmap, checksum) are equal in both formats.

Source: the Apache Iceberg table specification, versions 2 and 3; delta-spark's UniForm for `delta-version`
and `delta-timestamp`.
"""

from __future__ import annotations

import json
import logging
import re
import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import pyarrow as pa
import pyarrow.compute as pc

from deltaic import _core, configuration
from deltaic.errors import DeltaError, ProtocolError, UnsupportedFeatureError
from deltaic.log import background, catalog
from deltaic.log.iceberg_document import TABLE, DocumentWriter, metadata_path
from deltaic.log.iceberg_manifests import FOLDER
from deltaic.process_state import ProcessState
from deltaic.protocol import iceberg

if TYPE_CHECKING:
    from deltaic.log.snapshot import Snapshot

log = logging.getLogger("deltaic.log")

HINT = f"{FOLDER}/version-hint.text"
_OURS = re.compile(r"v([0-9]+)\.metadata\.json")
_MOST_KEPT = 16
"""Maximum number of tables whose newest metadata this process keeps in memory, so that their next commit need
not read and parse it."""


class _Tables(ProcessState):
    """Locks and cached metadata of tables in this process, by location. One thread at a time writes the
    Iceberg metadata of a table, and the metadata that it wrote last stays in memory. A forked child starts
    with nothing."""

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
    """A lock that a weak reference can refer to, so that it is dropped when no thread uses it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()


@dataclass(frozen=True)
class _Base:
    """Iceberg metadata of a version of the table. `texts`: the JSON of its snapshots, by snapshot id."""

    version: int
    document: dict[str, Any]
    texts: dict[int, str] = field(default_factory=dict)

    def to_json(self) -> bytes:
        """Serializes the document. The JSON of each snapshot is cached, as a thousand of them take 30 ms."""
        for each in self.document["snapshots"]:
            if each["snapshot-id"] not in self.texts:
                self.texts[each["snapshot-id"]] = json.dumps(each, separators=(",", ":"))
        rest = json.dumps(
            {name: value for name, value in self.document.items() if name != "snapshots"},
            separators=(",", ":"),
        )
        snapshots = ",".join(self.texts[each["snapshot-id"]] for each in self.document["snapshots"])
        return f'{rest[:-1]},"snapshots":[{snapshots}]}}'.encode()


_TABLES = _Tables()


def after_commit(snapshot: Snapshot) -> None:
    """Writes the Iceberg metadata of a version that was just committed, if the table requires it; in the
    background if `configure(background_checkpoints=)` is True. Errors are logged and not raised: the commit
    is valid, and the metadata of the next version includes its changes."""
    if not iceberg.is_described(snapshot.protocol, snapshot.metadata):
        return
    if configuration.current().background_checkpoints:
        background.submit(f"{snapshot.location}, Iceberg metadata", partial(_write, snapshot))
    else:
        _write(snapshot)


def _write(snapshot: Snapshot) -> None:
    try:
        write(snapshot)
    except Exception as error:  # the commit is in the log, so no error may make it look failed
        log.warning(
            "%s: the Iceberg metadata of version %d could not be written: %s",
            snapshot.location,
            snapshot.version,
            error,
        )


def write(snapshot: Snapshot) -> None:
    """Writes the Iceberg metadata of a version, unless it or that of a later version exists."""
    held = _TABLES.lock(snapshot.location)  # the variable keeps the weakly referenced lock alive
    with held.lock:
        version = snapshot.version
        known = _hinted(snapshot.store)
        if known is not None and known >= version and _read(snapshot, known) is not None:
            return  # a later commit was faster, and its metadata includes this version
        if (base := _base(snapshot)) is None or base.version < version:
            _write_on(base, snapshot)
        _point(snapshot.store, version)


def _write_on(base: _Base | None, snapshot: Snapshot) -> None:
    """Writes the metadata of a version, derived from that of an earlier one. If that fails, or another writer
    was first, the new files are deleted."""
    writer = DocumentWriter(snapshot, base.document if base is not None else None)
    try:
        document, gone = writer.document()
        kept = {each["snapshot-id"] for each in document["snapshots"]}
        texts = (
            {number: text for number, text in base.texts.items() if number in kept}
            if base is not None
            else {}
        )
        new = _Base(snapshot.version, document, texts)
        answer = writer.store.put_if_absent(metadata_path(snapshot.version), new.to_json(), durable=False)
    except BaseException:
        writer.store.delete(writer.written)
        raise
    if answer == "exists":
        writer.store.delete(writer.written)
    elif answer == "created":
        _TABLES.keep(snapshot.location, new)
        writer.store.delete(gone)


def check_added(version: int, adds: pa.Table) -> None:
    """Raises UnsupportedFeatureError for add actions that Iceberg metadata of this version cannot
    describe."""
    if not adds.num_rows:
        return
    uncounted = pc.is_null(_core.physical_rows(adds))
    if pc.any(uncounted).as_py():
        raise UnsupportedFeatureError(
            "Iceberg compatibility needs the number of rows in the statistics of each file",
            where=str(adds["path"].filter(uncounted)[0].as_py()),
            expected="numRecords",
        )
    vectors = adds["deletionVector"]
    marked = pc.is_valid(vectors)
    if version < 3 and pc.any(marked).as_py():
        raise UnsupportedFeatureError(
            f"Iceberg compatibility version {version} does not allow deletion vectors",
            where=str(adds["path"].filter(marked)[0].as_py()),
        )
    if version == 3 and pc.any(pc.equal(pc.struct_field(vectors, "storageType"), "i")).as_py():
        raise UnsupportedFeatureError(
            "Iceberg metadata cannot refer to deletion vectors in the log", found="an inline deletion vector"
        )


def _base(snapshot: Snapshot) -> _Base | None:
    """Reads the metadata from which that of the snapshot's version is derived: that of the version before,
    else the newest. Incomplete metadata, and that of a former table at the same location, is deleted."""
    if (base := _read(snapshot, snapshot.version - 1)) is not None:
        return base
    names = [_OURS.fullmatch(path.rpartition("/")[2]) for path, _, _ in snapshot.store.entries(FOLDER)]
    for version in sorted((int(name[1]) for name in names if name), reverse=True):
        if (base := _read(snapshot, version)) is not None:
            return base
        snapshot.store.delete([metadata_path(version), HINT])
    return None


def _read(snapshot: Snapshot, version: int) -> _Base | None:
    """Reads the metadata of a version; None if there is none, if it is incomplete, or if it belongs to
    another Delta table, which was at the same location. Metadata that another program wrote is a
    ProtocolError."""
    path = metadata_path(version)
    kept = _TABLES.newest(snapshot.location)
    is_known = kept is not None and (kept.version, kept.document["properties"][TABLE]) == (
        version,
        snapshot.metadata.id,
    )
    if is_known and snapshot.store.head(path) is not None:
        return kept
    try:
        document = json.loads(snapshot.store.get(path))
    except FileNotFoundError:
        return None
    except ValueError:  # the computer lost power before the system had written the file to the disk
        log.warning("%s/%s is incomplete and is passed over", snapshot.location, path)
        return None
    properties = document.get("properties", {}) if isinstance(document, dict) else {}
    if TABLE not in properties:
        raise ProtocolError(
            "another program wrote Iceberg metadata in the table's folder",
            where=f"{snapshot.location}/{path}",
        )
    return _Base(version, document) if _had_id(snapshot, version, properties[TABLE]) else None


def _had_id(snapshot: Snapshot, version: int, table_id: str) -> bool:
    """True if the table has this id, or had it at the version: REPLACE TABLE and RESTORE change the id."""
    if snapshot.metadata.id == table_id:
        return True
    try:
        return snapshot.at(version).metadata.id == table_id
    except DeltaError:
        return False


def _hinted(store: _core.Store) -> int | None:
    """Reads the version in version-hint.text; None if there is none."""
    try:
        return int(store.get(HINT))
    except (FileNotFoundError, ValueError):
        return None


def _point(store: _core.Store, version: int) -> None:
    """Writes a version to version-hint.text, or a later one that has metadata. The version in the file never
    decreases, even if writers overtake each other."""
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
