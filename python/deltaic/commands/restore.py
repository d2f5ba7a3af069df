"""RESTORE: commits the state of an older version as a new version (delta-spark: RESTORE TABLE)."""

from __future__ import annotations

from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from deltaic import _core
from deltaic.commands import identity
from deltaic.commands.create import set_clustering
from deltaic.commands.marking import total_size
from deltaic.errors import InvalidArgumentError, ProtocolError
from deltaic.log import references
from deltaic.log.snapshot import Snapshot
from deltaic.options import CommitOptions
from deltaic.protocol import clustering, features, row_tracking
from deltaic.protocol.actions import Metadata, Protocol
from deltaic.protocol.column_mapping import MAX_ID
from deltaic.protocol.properties import OF_THE_LOG, REGISTRY
from deltaic.protocol.versions import upgrade
from deltaic.transaction import timestamps
from deltaic.transaction.transaction import Transaction, already_committed

# Properties of the log that keep their present values. Whether commits have in-commit timestamps is restored.
_KEPT = tuple(name for name in OF_THE_LOG if name != timestamps.ENABLED)


def restore(
    snapshot: Snapshot,
    version: int | None = None,
    *,
    timestamp: datetime | str | None = None,
    ignore_missing_files: bool = False,
    allow_protocol_downgrade: bool = False,
    ignore_append_only: bool = False,
    commit: CommitOptions | None = None,
) -> tuple[Snapshot, dict[str, int]]:
    """Restores files and metadata of an older version. The protocol is kept or upgraded; with
    `allow_protocol_downgrade`, it becomes that of the older version. `ignore_append_only`: True restores an
    append-only table, too.

    Raises VersionNotFoundError, and for a missing file ProtocolError; with `ignore_missing_files`, missing
    data files are left out.
    """
    if (version is None) == (timestamp is None):
        raise InvalidArgumentError(
            "restore takes either a version or a timestamp",
            found=f"version={version!r}, timestamp={timestamp!r}",
        )
    snapshot = snapshot.refresh()  # files of commits after `snapshot` must be removed, too
    before = snapshot.files().adds
    if already_committed(snapshot, commit):
        return snapshot, _metrics(before, before.slice(0, 0), before.slice(0, 0))
    past = snapshot.at(version, timestamp=timestamp)
    transaction = Transaction(
        snapshot, "RESTORE", {"version": version, "timestamp": _shown(timestamp)}, commit
    )
    transaction.ignores_append_only = ignore_append_only
    transaction.read()
    after = past.files().adds
    missing = references.without(after, before)
    restored = _present(past, missing, ignore_missing_files)
    removed = references.without(before, after)
    protocol = past.protocol if allow_protocol_downgrade else _not_lower(snapshot.protocol, past.protocol)
    metadata = _metadata(snapshot, past, protocol)
    metrics = _metrics(after, restored, removed)
    metrics["num_of_files_after_restore"] -= missing.num_rows - restored.num_rows
    metrics["table_size_after_restore"] -= total_size(missing) - total_size(restored)
    same = (
        protocol == snapshot.protocol and metadata == snapshot.metadata and _clustered_alike(snapshot, past)
    )
    if same and not restored.num_rows and not removed.num_rows:
        return snapshot, metrics
    if protocol != snapshot.protocol:
        transaction.set_protocol(protocol)
    if metadata != snapshot.metadata:
        transaction.set_metadata(metadata)
    set_clustering(transaction, past.domains.get(clustering.DOMAIN))
    transaction.add(_core.adds_again(restored, data_change=True))
    transaction.remove(_core.removes_of(removed, transaction.clock()))
    return transaction.commit(metrics), metrics


def _clustered_alike(snapshot: Snapshot, past: Snapshot) -> bool:
    return snapshot.domains.get(clustering.DOMAIN) == past.domains.get(clustering.DOMAIN)


def _shown(timestamp: datetime | str | None) -> str | None:
    return timestamp.isoformat(" ") if isinstance(timestamp, datetime) else timestamp


def _present(past: Snapshot, restored: pa.Table, ignore_missing: bool) -> pa.Table:
    """Returns the files to restore that exist, and checks that their deletion vectors exist, too."""
    if not restored.num_rows:
        return restored
    names = references.data_files(restored, past.location)
    listing = past.store.list_from("", None, recursive=True)["path"].combine_chunks()
    missing_vectors = references.inside(references.vector_files(restored, past.location))
    missing_vectors = missing_vectors.filter(pc.invert(pc.is_in(missing_vectors, value_set=listing)))
    if len(missing_vectors):  # without the vector, the deleted rows of the file would be restored
        raise ProtocolError(
            "a file of deletion vectors of the version is missing",
            where=f"{past.location}/{missing_vectors[0].as_py()}",
        )
    relative = pc.is_in(names, value_set=references.inside(names))
    missing = pc.and_(relative, pc.invert(pc.is_in(names, value_set=listing)))
    if not pc.any(missing).as_py():
        return restored
    if not ignore_missing:
        first = names.filter(missing)[0].as_py()
        raise ProtocolError(
            f"{pc.sum(missing).as_py()} files of version {past.version} are missing, probably because of a"
            " VACUUM; ignore_missing_files=True restores the others, on Spark the setting"
            " spark.sql.files.ignoreMissingFiles",
            where=f"{past.location}/{first}",
        )
    return restored.filter(pc.invert(missing))


def _not_lower(now: Protocol, then: Protocol) -> Protocol:
    """Returns the current protocol, upgraded by what the past one has in addition."""
    return upgrade(
        now,
        features.supported(then),
        min_reader_version=then.min_reader_version,
        min_writer_version=then.min_writer_version,
    )


def _metadata(snapshot: Snapshot, past: Snapshot, protocol: Protocol) -> Metadata:
    """Returns the past metadata with the current properties of the log, and with the largest column id of
    both, as no id is ever used again. In-commit timestamps are enabled if they were, as in delta-spark; the
    transaction sets the version and timestamp from which on commits have them."""
    marks = [
        text
        for text in (snapshot.metadata.configuration.get(MAX_ID), past.metadata.configuration.get(MAX_ID))
        if text
    ]
    now = snapshot.metadata.configuration
    configuration = {key: text for key, text in past.metadata.configuration.items() if key not in _KEPT}
    supported = features.supported(protocol)
    configuration |= {key: now[key] for key in _KEPT if key in now and REGISTRY[key].feature in supported}
    for key in (row_tracking.ROW_ID_COLUMN, row_tracking.VERSION_COLUMN):
        if key in now:  # files may have these hidden columns, so their names never change
            configuration.setdefault(key, now[key])
    if marks:
        configuration[MAX_ID] = str(max(int(text) for text in marks))
    then = past.metadata
    return Metadata(
        id=then.id,
        name=then.name,
        description=then.description,
        schema_string=identity.with_marks(snapshot.schema, past.schema, then.schema_string),
        partition_columns=then.partition_columns,
        configuration=configuration,
        created_time=then.created_time,
        format=then.format,
    )


def _metrics(after: pa.Table, restored: pa.Table, removed: pa.Table) -> dict[str, int]:
    return {
        "table_size_after_restore": total_size(after),
        "num_of_files_after_restore": after.num_rows,
        "num_removed_files": removed.num_rows,
        "num_restored_files": restored.num_rows,
        "removed_files_size": total_size(removed),
        "restored_files_size": total_size(restored),
    }
