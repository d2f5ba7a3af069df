"""CLONE: another table with the rows and the definition of a version, by reference (shallow) or with copies of its files (deep).

The source may also be Parquet files or an Iceberg table (`convert.clone_source`, `convert_iceberg.clone_source`), which stay as they are.
"""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from deltaic import _core
from deltaic.commands.create import existing, set_clustering
from deltaic.commands.marking import staging, total_size
from deltaic.errors import InvalidArgumentError, TableAlreadyExistsError
from deltaic.log import references
from deltaic.log.snapshot import Snapshot
from deltaic.options import CommitOptions
from deltaic.protocol import clustering, definition, features, row_tracking
from deltaic.protocol.actions import Metadata, Protocol
from deltaic.protocol.column_mapping import MAX_ID
from deltaic.protocol.features import supported
from deltaic.protocol.properties import OF_THE_LOG
from deltaic.protocol.versions import upgrade, without_features
from deltaic.transaction import giving_way
from deltaic.transaction.transaction import Transaction, already_committed, now_ms

_OF_ONE_LOG = ("checkpointProtection", features.MANAGED)
"""Features about the history of a table and who manages it, which a clone does not take over."""
_OF_ONE_TABLE = (*OF_THE_LOG[1:], row_tracking.ROW_ID_COLUMN, row_tracking.VERSION_COLUMN)
"""Properties that another table has values of its own for."""


@dataclass(frozen=True, kw_only=True)
class CloneSource:
    """The files and the definition that a clone takes over. `version`: -1 for a source without a Delta log. `mark`: gives the add actions
    of the clone the deletion vectors of rows that the source has deleted without one."""

    name: str
    store: _core.Store
    protocol: Protocol
    metadata: Metadata
    adds: pa.Table
    version: int = -1
    domains: Mapping[str, str] = field(default_factory=dict)
    transactions: Mapping[str, int] = field(default_factory=dict)
    mark: Callable[[Transaction, pa.Table], pa.Table] | None = None

    @staticmethod
    def of(snapshot: Snapshot) -> CloneSource:
        """The version of a Delta table."""
        return CloneSource(
            name=f"delta.`{snapshot.location}`",
            store=snapshot.store,
            protocol=snapshot.protocol,
            metadata=snapshot.metadata,
            adds=snapshot.files().adds,
            version=snapshot.version,
            domains=snapshot.domains,
            transactions={app_id: version for app_id, (version, _) in snapshot.core.transactions.items()},
        )


def clone(
    source: CloneSource,
    store: _core.Store,
    *,
    shallow: bool = False,
    replace: bool = False,
    properties: Mapping[str, Any] | None = None,
    commit: CommitOptions | None = None,
) -> tuple[Snapshot, dict[str, int]]:
    """-> the new version of the table at `store`, and delta-spark's metrics. A deep clone that replaces an earlier one copies only the
    files that this one has not. `replace`: a table that is there gets the rows and the definition of the source; without it, it is a
    TableAlreadyExistsError.

    Raises InvalidArgumentError where source and target are one table, and the errors of files that cannot be read or written.
    """
    if store.location == source.store.location:
        raise InvalidArgumentError("a table cannot be cloned onto itself", found=store.location, expected="another location")
    target = existing(store)
    if target is not None and not replace:
        raise TableAlreadyExistsError("a table is there already", where=store.location, expected="replace=True, or another location")
    with nullcontext(target) if target is None else giving_way.command(target) as target:
        return _cloned(source, target, store, shallow, properties, commit)


def _cloned(
    source: CloneSource,
    target: Snapshot | None,
    store: _core.Store,
    shallow: bool,
    properties: Mapping[str, Any] | None,
    commit: CommitOptions | None,
) -> tuple[Snapshot, dict[str, int]]:
    """The clone as the next version after `target`, None for a new table."""
    if already_committed(target, commit):
        assert target is not None
        return target, {}
    adds, location = source.adds, source.store.location
    live = target.files().adds if target is not None else adds.slice(0, 0)
    protocol, metadata = _definition(source, target, properties)
    parameters = {"source": source.name, "sourceVersion": source.version, "isShallow": shallow}
    transaction = Transaction(target, "CLONE", parameters, _with_transactions(source, shallow, commit), store=store)
    with staging(transaction):
        if target is not None:
            transaction.read()
        if target is None or protocol != target.protocol:
            transaction.set_protocol(protocol)
        changed = target is None or metadata != target.metadata
        if changed:
            transaction.set_metadata(metadata)
        set_clustering(transaction, source.domains.get(clustering.DOMAIN))
        copied, copied_bytes = 0, 0
        if shallow:
            wanted = _core.absolute_adds(adds, location)
        else:
            taken = store.list_from("", recursive=True)["path"]
            wanted, copies = _core.relocated_adds(adds, location, live, taken)
            transaction.written(references.encoded(copies["to"].filter(copies["fresh"]).combine_chunks()).to_pylist())
            copied_bytes = store.copy_from(source.store, copies["from"], copies["to"])
            copied = copies.num_rows
        if source.mark is not None:
            wanted = source.mark(transaction, wanted)
        new, gone = (wanted, live) if not live.num_rows else (references.without(wanted, live), references.without(live, wanted))
        if source.version < 0 and target is not None and _columns(metadata) != _columns(target.metadata):
            new = wanted  # statistics and partition values of all files go by the new physical names and partition columns
        metrics = {
            "source_table_size": total_size(adds),
            "source_num_of_files": adds.num_rows,
            "num_removed_files": gone.num_rows,
            "num_copied_files": copied,
            "removed_files_size": total_size(gone),
            "copied_files_size": copied_bytes,
        }
        if target is not None and not (changed or new.num_rows or gone.num_rows or transaction.protocol or transaction.domains):
            return target, metrics
        transaction.remove(_core.removes_of(gone, transaction.clock()))
        transaction.add(new)
    return transaction.commit(metrics), metrics


def _columns(metadata: Metadata) -> tuple[str, tuple[str, ...]]:
    return metadata.schema_string, tuple(metadata.partition_columns)


def _definition(source: CloneSource, target: Snapshot | None, properties: Mapping[str, Any] | None) -> tuple[Protocol, Metadata]:
    """The source's with `properties`. A table that is there keeps its id, the features that it has, and what its log needs."""
    configuration = {key: text for key, text in source.metadata.configuration.items() if key not in _OF_ONE_TABLE}
    protocol = source.protocol
    if supported(protocol) & set(_OF_ONE_LOG):
        protocol = without_features(protocol, _OF_ONE_LOG)
    identity, created = str(uuid.uuid4()), now_ms()
    if target is not None:
        before = target.metadata
        identity, created = before.id, before.created_time or created
        protocol = upgrade(
            target.protocol,
            supported(protocol),
            min_reader_version=protocol.min_reader_version,
            min_writer_version=protocol.min_writer_version,
        )
        configuration = {key: text for key, text in configuration.items() if key not in OF_THE_LOG}
        kept = (*OF_THE_LOG, row_tracking.ROW_ID_COLUMN, row_tracking.VERSION_COLUMN)
        configuration |= {key: before.configuration[key] for key in kept if key in before.configuration}
        marks = [int(each[MAX_ID]) for each in (before.configuration, configuration) if MAX_ID in each]
        if MAX_ID in configuration:  # ids of columns are never given twice
            configuration[MAX_ID] = str(max(marks))
    metadata = dataclasses.replace(source.metadata, id=identity, created_time=created, configuration=configuration)
    return definition.evolve(protocol, metadata, properties=properties)


def _with_transactions(source: CloneSource, shallow: bool, commit: CommitOptions | None) -> CommitOptions | None:
    """A deep clone takes over which versions applications have written, so that they can go on with it."""
    written = {} if shallow else dict(source.transactions)
    if not written:
        return commit
    commit = commit or CommitOptions()
    return dataclasses.replace(commit, transactions={**written, **commit.transactions})
