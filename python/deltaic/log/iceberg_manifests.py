"""Writes the manifests of Iceberg metadata after files were added and removed. See `iceberg.py`."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from deltaic import _core
from deltaic.log import references
from deltaic.protocol import iceberg
from deltaic.protocol.iceberg_schema import avro_name, partition_fields

if TYPE_CHECKING:
    from deltaic.log.snapshot import Snapshot

FOLDER = "metadata"
DATA, DELETES = 0, 1
"""The content of a manifest, as Iceberg numbers it: data files, or deletion vectors."""
_MOST_MANIFESTS = 100
"""Number of small manifests of one content in a snapshot from which on they are merged into one."""
_LARGE_MANIFEST = 8 << 20
"""Bytes from which on a manifest is not small, and not merged."""
_MOST_ENTRIES = 20_000
"""Maximum number of new entries in one manifest; more go to several manifests."""


@dataclass
class Changes:
    """Changes of the table's files by a range of commits.

    `added`: live files that a commit of the range added, by path: (index in `tables`, row).
    `tables`: the add actions of each commit.
    `gone`: paths that a commit of the range removed.
    `born`: paths that were added before any commit of the range removed them. Usually, these files are new.
    `data_changes`: True if an action has dataChange=true."""

    added: dict[str, tuple[int, int]] = field(default_factory=dict)
    tables: list[pa.Table] = field(default_factory=list)
    gone: set[str] = field(default_factory=set)
    born: set[str] = field(default_factory=set)
    data_changes: bool = False

    def take(self, commit: _core.Commit, location: str) -> None:
        for path in references.data_files(commit.removes, location).to_pylist():
            self.gone.add(path)
            self.added.pop(path, None)
        adds, number = commit.adds, len(self.tables)
        self.tables.append(adds)
        for row, path in enumerate(references.data_files(adds, location).to_pylist()):
            self.added[path] = (number, row)
            if path not in self.gone:
                self.born.add(path)
        for actions in (adds, commit.removes):
            self.data_changes |= bool(actions.num_rows) and pc.any(actions["dataChange"]).as_py() is not False

    def adds_of(self, paths: Iterable[str]) -> pa.Table:
        rows: dict[int, list[int]] = {}
        for path in paths:
            number, row = self.added[path]
            rows.setdefault(number, []).append(row)
        parts = [self.tables[number].take(chosen) for number, chosen in sorted(rows.items())]
        return pa.concat_tables(parts, promote_options="permissive") if parts else _core.empty_adds()


class ManifestWriter:
    """Writes the manifests of a version's snapshot.

    `schema`, `spec_id`: of the metadata file. `first_row_id`: of the rows that the snapshot adds. All three
    must be set before a manifest is written."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot, self.store, self.version = snapshot, snapshot.store, snapshot.version
        self.location = snapshot.location.rstrip("/")
        self.format = 3 if iceberg.active_version(snapshot.protocol, snapshot.metadata) == 3 else 2
        self.spec = partition_fields(snapshot.schema, snapshot.metadata.partition_columns)
        self.schema: dict[str, Any] = {}
        self.spec_id = 0
        self.snapshot_id = (uuid.uuid4().int >> 65) or 1
        self.first_row_id = 0
        self.written: list[str] = []
        self.counts: list[dict[str, Any]] = []

    def next(
        self, content: int, before: list[dict[str, Any]], adds: pa.Table, gone: set[str]
    ) -> list[dict[str, Any]]:
        """Returns the manifests of one content after files were added and removed. Manifests with removed
        files are written again; many small ones are merged into one."""
        former = [each for each in before if live([each])]
        small = [each for each in former if each["manifest_length"] < _LARGE_MANIFEST]
        places = references.addresses(pa.array(sorted(gone), pa.string()), self.location).to_pylist()
        merged: list[dict[str, Any]] = []
        if len(small) >= _MOST_MANIFESTS:
            former = [each for each in former if each not in small]
            merged = self._manifest(content, _core.empty_adds(), small, places)
            found = sum(each["deleted_files_count"] for each in merged)
        else:
            found = 0
        kept: list[dict[str, Any]] = []
        # recent files are removed more often than old ones
        for manifest in reversed(former) if places else ():
            written = (
                self._manifest(content, _core.empty_adds(), [manifest], places, if_gone=True)
                if found < len(places)
                else []
            )
            found += sum(each["deleted_files_count"] for each in written)
            kept = [*(written or [manifest]), *kept]
        kept = kept if places else former
        parts = [adds.slice(at, _MOST_ENTRIES) for at in range(0, adds.num_rows, _MOST_ENTRIES)]
        return [*merged, *kept, *(each for part in parts for each in self._manifest(content, part, [], []))]

    def _manifest(
        self,
        content: int,
        adds: pa.Table,
        former: list[dict[str, Any]],
        gone: list[str],
        *,
        if_gone: bool = False,
    ) -> list[dict[str, Any]]:
        """Writes a manifest with new entries and the entries of former manifests. `gone`: addresses of
        removed files.
        `if_gone`: True to write only if a former manifest has a removed file."""
        header = {
            "schema": json.dumps(self.schema, separators=(",", ":")),
            "schema-id": str(self.schema["schema-id"]),
            "partition-spec": json.dumps(self.spec, separators=(",", ":")),
            "partition-spec-id": str(self.spec_id),
            "format-version": str(self.format),
            "content": "deletes" if content == DELETES else "data",
        }
        options = {
            "version": self.format,
            "deletes": content == DELETES,
            "snapshot_id": self.snapshot_id,
            "sequence_number": self.version,
            "partition": [(avro_name(each["name"]), each["field-id"]) for each in self.spec],
            "header": header,
        }
        texts = [self.store.get(self.relative(each["manifest_path"])) for each in former]
        data, text = _core.iceberg_manifest(
            self._located(adds), self.snapshot.table_schema, json.dumps(options), texts, gone
        )
        counts = json.loads(text)
        if if_gone and not counts["deleted_files_count"]:
            return []
        place = f"{FOLDER}/{uuid.uuid4()}-m{content}.avro"
        self.put(place, data)
        least = counts.pop("min_sequence_number")
        manifest = {
            "manifest_path": f"{self.location}/{place}",
            "manifest_length": len(data),
            "partition_spec_id": self.spec_id,
            "content": content,
            "sequence_number": self.version,
            "min_sequence_number": self.version if least is None else least,
            "added_snapshot_id": self.snapshot_id,
            **{name: number for name, number in counts.items() if name.endswith("_count")},
            "first_row_id": self.first_row_id if self.format == 3 and content == DATA else None,
        }
        self.counts.append({**manifest, **counts})
        return [manifest]

    def _located(self, adds: pa.Table) -> pa.Table:
        """Adds columns with the absolute addresses of the data files and of their deletion vectors."""
        location = self.snapshot.location
        columns = {
            "location": references.data_files(adds, location),
            "vectorLocation": references.vector_of_each(adds, location),
        }
        for name, paths in columns.items():
            adds = adds.append_column(name, references.addresses(paths, location))
        return adds

    def read_list(self, place: str, *, missing: bool = False) -> list[dict[str, Any]]:
        """Reads the manifests that a manifest list names. `missing`: True to return an empty list if there is
        no such file."""
        try:
            data = self.store.get(self.relative(place))
        except FileNotFoundError:
            if missing:
                return []
            raise
        manifests = json.loads(_core.read_iceberg_manifest_list(data))
        assert isinstance(manifests, list)
        return manifests

    def put(self, path: str, data: bytes) -> None:
        self.written.append(path)
        self.store.put(path, data)

    def relative(self, path: str) -> str:
        return path[len(self.location) + 1 :]


def live(manifests: Iterable[dict[str, Any]]) -> int:
    return sum(each["added_files_count"] + each["existing_files_count"] for each in manifests)
