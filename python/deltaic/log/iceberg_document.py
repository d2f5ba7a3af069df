"""Makes the metadata document of Iceberg for one version of the table: schemas, partition specs and
snapshots. See `iceberg.py`."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from deltaic import _core
from deltaic.errors import DeltaError, ProtocolError
from deltaic.log import catalog
from deltaic.log.iceberg_manifests import DATA, DELETES, FOLDER, Changes, ManifestWriter, live
from deltaic.protocol import row_tracking
from deltaic.protocol.iceberg_schema import name_mapping, schema_json

if TYPE_CHECKING:
    from deltaic.log.snapshot import Snapshot

VERSION, TIMESTAMP, TABLE = "delta-version", "delta-timestamp", "delta-table-id"
"""Properties of the document: version and timestamp of the Delta table that it describes, and the id of that
table."""
_MOST_FORMER = 100
"""Maximum number of former metadata files in the metadata log; older ones are deleted."""


def metadata_path(version: int) -> str:
    """Returns the path of the Iceberg metadata of a version, relative to the table."""
    return f"{FOLDER}/v{version}.metadata.json"


class _OutdatedManifests(Exception):
    """Raised if manifests of earlier versions cannot be reused, so that all manifests must be written
    again."""


class DocumentWriter(ManifestWriter):
    """Makes the document of a version from that of an earlier one, `base`, and writes the manifests that it
    refers to.

    In two cases the base is ignored, and the history starts again. If the base has another location, the
    table was moved or copied, and the base has the old paths. If the base has a later version of the format,
    it may name deletion vectors of version 3, which readers of version 2 do not know."""

    def __init__(self, snapshot: Snapshot, base: dict[str, Any] | None) -> None:
        super().__init__(snapshot)
        if base is not None and (base["location"] != self.location or base["format-version"] > self.format):
            base = None
        self.base = base or {}
        self.base_version = int(base["properties"][VERSION]) if base is not None else None
        self.first_row_id = int(self.base.get("next-row-id", 0))
        self.timestamp = 0

    def document(self) -> tuple[dict[str, Any], list[str]]:
        """Returns the document, and the paths of files that it no longer refers to."""
        base = self.base
        last = _core.read_commit(self.store, self.version, catalog.commit_file(self.store, self.version))
        self.timestamp = max(
            _time_of(last) or self.snapshot.modified or 0, int(base.get("last-updated-ms", 0))
        )
        schemas, schema_id = _with(
            base.get("schemas", []), "schema-id", lambda number: schema_json(self.snapshot.schema, number)
        )
        specs, self.spec_id = _with(
            base.get("partition-specs", []),
            "spec-id",
            lambda number: {"spec-id": number, "fields": self.spec},
        )
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
        former = self._metadata_log()
        gone += [self.relative(each["metadata-file"]) for each in former[:-_MOST_FORMER]]
        document: dict[str, Any] = {
            "format-version": self.format,
            "table-uuid": base.get("table-uuid") or _uuid(self.snapshot.metadata.id),
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
            "properties": self._properties(),
            "snapshots": snapshots,
            "snapshot-log": [each for each in snapshot_log if each["snapshot-id"] in kept],
            "metadata-log": former[-_MOST_FORMER:],
            "statistics": [],
            "partition-statistics": [],
        }
        if current is not None:
            document |= {
                "current-snapshot-id": current,
                "refs": {"main": {"snapshot-id": current, "type": "branch"}},
            }
        if self.format == 3:
            document["next-row-id"] = self._next_row_id()
        return document, gone

    def _metadata_log(self) -> list[dict[str, Any]]:
        """Returns the entries of all former metadata files, that of the base last."""
        former = list(self.base.get("metadata-log", []))
        if self.base_version is not None:
            place = f"{self.location}/{metadata_path(self.base_version)}"
            former.append({"timestamp-ms": self.base["last-updated-ms"], "metadata-file": place})
        return former

    def _properties(self) -> dict[str, str]:
        """Returns the user's properties of the table, and those of the document."""
        metadata = self.snapshot.metadata
        return {
            **{
                name: text
                for name, text in metadata.configuration.items()
                if not name.startswith(("delta.", "deltaic."))
            },
            "schema.name-mapping.default": name_mapping(self.snapshot.schema),
            VERSION: str(self.version),
            TIMESTAMP: str(self.timestamp),
            TABLE: metadata.id,
        }

    def _next_row_id(self) -> int:
        mark = row_tracking.high_water_mark(self.snapshot.domains.get(row_tracking.DOMAIN))
        return max(mark + 1, self.first_row_id)

    def _expired(
        self, snapshots: list[dict[str, Any]], current: Any
    ) -> tuple[list[dict[str, Any]], list[str]]:
        """Returns the snapshots to keep, and the paths of files that only expired ones refer to. Snapshots
        older than the log's retention are removed as soon as they are a tenth of all."""
        oldest = self.timestamp - self.snapshot.properties.log_retention.total_seconds() * 1000
        old = [each for each in snapshots if each["timestamp-ms"] < oldest and each["snapshot-id"] != current]
        if not old or len(old) * 10 < len(snapshots):
            return snapshots, []
        numbers = {each["snapshot-id"] for each in old}
        kept = [each for each in snapshots if each["snapshot-id"] not in numbers]
        # A manifest that one snapshot lacks is in no later one, so only the first kept snapshot shares
        # manifests with expired ones.
        used = {each["manifest_path"] for item in kept[:1] for each in self.read_list(item["manifest-list"])}
        gone = {
            each["manifest_path"]
            for item in old
            for each in self.read_list(item["manifest-list"], missing=True)
        } - used
        return kept, [self.relative(path) for path in sorted(gone | {each["manifest-list"] for each in old})]

    # --- snapshots

    def _snapshot(
        self, parent: dict[str, Any] | None, last: _core.Commit, schema_id: int
    ) -> dict[str, Any] | None:
        """Makes the Iceberg snapshot of the version; None if no file was added or removed since the last
        one."""
        before = self.read_list(parent["manifest-list"]) if parent is not None else []
        replaced: dict[str, str] = {}
        try:
            result = self._changed(before, last)
        except (_OutdatedManifests, DeltaError, OSError) as error:
            if isinstance(error, OSError) and not isinstance(error, FileNotFoundError):
                raise
            self.store.delete(self.written)
            self.written.clear()
            self.counts.clear()
            replaced = parent["summary"] if parent is not None else {}
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
            "summary": self._summary(operation, manifests, replaced),
            "schema-id": schema_id,
        }
        if parent is not None:
            snapshot["parent-snapshot-id"] = parent["snapshot-id"]
        if self.format == 3:
            snapshot |= {
                "first-row-id": self.first_row_id,
                "added-rows": self._next_row_id() - self.first_row_id,
            }
        return snapshot

    def _summary(
        self, operation: str, manifests: Sequence[dict[str, Any]], replaced: dict[str, str]
    ) -> dict[str, str]:
        """Makes the summary of a snapshot. `replaced`: the summary of the snapshot before if none of its
        manifests is reused, else empty."""
        data = [each for each in manifests if each["content"] == DATA]
        vectors = [each for each in manifests if each["content"] == DELETES]
        of_data = [each for each in self.counts if each["content"] == DATA]
        numbers = {
            "added-data-files": sum(each["added_files_count"] for each in of_data),
            "deleted-data-files": int(replaced.get("total-data-files", 0))
            + sum(each["deleted_files_count"] for each in of_data),
            "added-records": sum(each["added_rows_count"] for each in of_data),
            "deleted-records": int(replaced.get("total-records", 0))
            + sum(each["deleted_rows_count"] for each in of_data),
            "added-files-size": sum(each["added_bytes"] for each in of_data),
            "removed-files-size": int(replaced.get("total-files-size", 0))
            + sum(each["deleted_bytes"] for each in of_data),
            "total-data-files": live(data),
            "total-delete-files": live(vectors),
            "total-records": sum(each["added_rows_count"] + each["existing_rows_count"] for each in data),
            "total-files-size": self.snapshot.core.size_in_bytes,
            "total-position-deletes": sum(
                each["added_rows_count"] + each["existing_rows_count"] for each in vectors
            ),
            "total-equality-deletes": 0,
        }
        return {
            "operation": operation,
            **{name: str(number) for name, number in numbers.items()},
            VERSION: str(self.version),
        }

    def _changed(
        self, before: list[dict[str, Any]], last: _core.Commit
    ) -> tuple[list[dict[str, Any]], str] | None:
        """Returns the manifests after the commits since the base, and the operation; None if these changed no
        file."""
        if self.base_version is None:
            raise _OutdatedManifests
        self._check_base()
        changes = Changes()
        try:
            for version in range(self.base_version + 1, self.version):
                changes.take(
                    _core.read_commit(self.store, version, catalog.commit_file(self.store, version)),
                    self.snapshot.location,
                )
        except FileNotFoundError:
            raise _OutdatedManifests from None  # a commit was deleted from the log
        changes.take(last, self.snapshot.location)
        if not changes.gone and not changes.added:
            return None
        data = [each for each in before if each["content"] == DATA]
        deletes = [each for each in before if each["content"] == DELETES]
        # A file that was added, removed and added again since the base is in no earlier manifest, so it
        # counts as new. It must not be missing: `_check_complete` compares numbers of entries, and a missing
        # one would hide a file that is listed twice.
        fresh = changes.adds_of(path for path in changes.added if path in changes.born)
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
        """Writes manifests of all files of the version."""
        adds = self.snapshot.files().adds
        data = self.next(DATA, [], adds, set())
        marked = adds.filter(pc.is_valid(adds["deletionVector"]))
        self._check_vectors(marked)
        deletes = self.next(DELETES, [], marked, set()) if self.format == 3 else []
        self._check_complete(data, deletes)
        return [*data, *deletes], "overwrite" if before else "append"

    def _check_base(self) -> None:
        """Raises _OutdatedManifests if manifests of the base have other types in their partition records or
        bounds, or another version of the format."""
        base = self.base
        before = _types(
            next(each for each in base["schemas"] if each["schema-id"] == base["current-schema-id"])
        )
        now = _types(self.schema)
        widened = any(now.get(number, kind) != kind for number, kind in before.items())
        if widened or base["format-version"] != self.format or base["default-spec-id"] != self.spec_id:
            raise _OutdatedManifests

    def _check_vectors(self, marked: pa.Table) -> None:
        """Raises ProtocolError if another writer added a deletion vector, which readers of version 2 would
        not apply."""
        if self.format < 3 and marked.num_rows:
            raise ProtocolError(
                "a file has a deletion vector, which this version of Iceberg compatibility does not allow",
                where=f"{self.location}/{marked['path'][0].as_py()}",
            )

    def _check_complete(self, data: Sequence[dict[str, Any]], deletes: Sequence[dict[str, Any]]) -> None:
        """Raises _OutdatedManifests if the manifests name more or fewer files, or deletion vectors, than the
        version has. A commit may have added a file again, for instance with other statistics."""
        core = self.snapshot.core
        if live(data) != core.file_count or (self.format == 3 and live(deletes) != core.with_vectors[0]):
            raise _OutdatedManifests


def _time_of(commit: _core.Commit) -> int | None:
    info = json.loads(commit.commit_info or "{}")
    info = info.get("commitInfo", info)
    timestamp = info.get("inCommitTimestamp", info.get("timestamp"))
    return timestamp if isinstance(timestamp, int) else None


def _with(known: list[dict[str, Any]], name: str, make: Any) -> tuple[list[dict[str, Any]], int]:
    """Returns the known schemas (or partition specs) with the current one added if it is new, and its id.
    `make`: makes the current one with an id; `name`: the key of the id."""
    for each in known:
        if each == make(each[name]):
            return known, each[name]
    number = max([-1, *(each[name] for each in known)]) + 1
    return [*known, make(number)], number


def _types(schema: dict[str, Any]) -> dict[int, str]:
    """Returns the primitive types of a schema by field id."""
    types: dict[int, str] = {}

    def look(number: int, kind: Any) -> None:
        if isinstance(kind, str):
            types[number] = kind
        elif kind["type"] == "struct":
            for item in kind["fields"]:
                look(item["id"], item["type"])
        elif kind["type"] == "list":
            look(kind["element-id"], kind["element"])
        else:
            look(kind["key-id"], kind["key"])
            look(kind["value-id"], kind["value"])

    look(0, schema)
    return types


def _uuid(text: str) -> str:
    try:
        return str(uuid.UUID(text))
    except ValueError:
        return str(uuid.uuid5(uuid.NAMESPACE_URL, text))
