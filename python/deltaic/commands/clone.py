"""CLONE: makes a table with the rows and the definition of a version, which refers to its files (shallow) or
copies them (deep).

The source may also be Parquet files or an Iceberg table (`convert.clone_source`,
`convert_iceberg.clone_source`); neither is changed.
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
from deltaic.protocol.features import in_use, supported
from deltaic.protocol.properties import OF_THE_LOG
from deltaic.protocol.versions import check_addable, upgrade, without_features
from deltaic.sql_text import spark_name
from deltaic.transaction import giving_way
from deltaic.transaction.transaction import Transaction, already_committed

_OF_ONE_LOG = ("checkpointProtection", features.MANAGED)
"""Features of the history and the management of a table, which a clone does not copy."""
_OF_ONE_TABLE = (*OF_THE_LOG[1:], row_tracking.ROW_ID_COLUMN, row_tracking.VERSION_COLUMN)
"""Properties whose values a clone does not copy, as each table has its own."""


@dataclass(frozen=True, kw_only=True)
class CloneSource:
    """The files and the definition that a clone takes over. `version`: -1 for a source without a Delta log.
    `mark`: gives the add actions of the clone the deletion vectors of rows that the source has deleted
    without one."""

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
    def of(snapshot: Snapshot, name: str | None = None) -> CloneSource:
        """Returns a version of a Delta table as the source of a clone. `name`: that of the table in the
        history of the clone; None: delta.`path`."""
        return CloneSource(
            name=name or f"delta.{spark_name(snapshot.location)}",
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
    """Clones a version to the table at `store`. Returns the new version of that table, and delta-spark's
    metrics.

    `replace`: True to replace an existing table; else it is a TableAlreadyExistsError. A deep clone that
        replaces an earlier one copies only files that it lacks.
    Cloning a table onto itself is an InvalidArgumentError.
    """
    if store.location == source.store.location:
        raise InvalidArgumentError(
            "a table cannot be cloned onto itself", found=store.location, expected="another location"
        )
    target = existing(store)
    if target is not None and not replace:
        raise TableAlreadyExistsError(
            "a table already exists here", where=store.location, expected="replace=True, or another location"
        )
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
    """Commits the clone as the next version after `target`; None: as a new table."""
    if already_committed(target, commit):
        assert target is not None
        return target, {}
    adds = source.adds
    live = target.files().adds if target is not None else adds.slice(0, 0)
    protocol, metadata = _definition(source, target, properties)
    parameters = {"source": source.name, "sourceVersion": source.version, "isShallow": shallow}
    transaction = Transaction(
        target, "CLONE", parameters, _with_transactions(source, shallow, commit), store=store
    )
    with staging(transaction):
        transaction.read()  # no blind append: it has the source's files
        if target is None or protocol != target.protocol:
            transaction.set_protocol(protocol)
        changed = target is None or metadata != target.metadata
        if changed:
            transaction.set_metadata(metadata)
        set_clustering(transaction, source.domains.get(clustering.DOMAIN))
        if shallow:
            files, copied, copied_bytes = _core.absolute_adds(adds, source.store.location), 0, 0
        else:
            files, copied, copied_bytes = _copied(transaction, source, store, live)
        if source.mark is not None:
            files = source.mark(transaction, files)
        new, gone = (
            (files, live)
            if not live.num_rows
            else (references.without(files, live), references.without(live, files))
        )
        if source.version < 0 and target is not None and _columns(metadata) != _columns(target.metadata):
            # statistics and partition values of all files go by the new physical names and partition columns
            new = files
        metrics = {
            "source_table_size": total_size(adds),
            "source_num_of_files": adds.num_rows,
            "num_removed_files": gone.num_rows,
            "num_copied_files": copied,
            "removed_files_size": total_size(gone),
            "copied_files_size": copied_bytes,
        }
        if target is not None and not (
            changed or new.num_rows or gone.num_rows or transaction.protocol or transaction.domains
        ):
            return target, metrics
        transaction.remove(_core.removes_of(gone, transaction.clock()))
        transaction.add(new)
    return transaction.commit(metrics), metrics


def _copied(
    transaction: Transaction, source: CloneSource, store: _core.Store, live: pa.Table
) -> tuple[pa.Table, int, int]:
    """Copies the source's files to the table at `store`, except those that are there already. Returns the
    `add` actions of all files, the number of copied files and their bytes. `live`: `add` actions of the table
    that the clone replaces."""
    existing_paths = store.list_from("", recursive=True)["path"]
    files, copies = _core.relocated_adds(source.adds, source.store.location, live, existing_paths)
    fresh = copies["to"].filter(copies["fresh"]).combine_chunks()
    transaction.written(references.encoded(fresh).to_pylist())
    return files, copies.num_rows, store.copy_from(source.store, copies["from"], copies["to"])


def _columns(metadata: Metadata) -> tuple[str, tuple[str, ...]]:
    return metadata.schema_string, tuple(metadata.partition_columns)


def _definition(
    source: CloneSource, target: Snapshot | None, properties: Mapping[str, Any] | None
) -> tuple[Protocol, Metadata]:
    """Returns the definition of the source with `properties`, without its name and description. An existing
    table keeps its id, its features, and the properties of its log. The time of creation is the source's.
    delta-spark does the same."""
    configuration = {
        key: text for key, text in source.metadata.configuration.items() if key not in _OF_ONE_TABLE
    }
    protocol = source.protocol
    if supported(protocol) & set(_OF_ONE_LOG):
        protocol = without_features(protocol, _OF_ONE_LOG)
    identity = str(uuid.uuid4())
    if target is not None:
        before = target.metadata
        identity = before.id
        check_addable(target.protocol, in_use(source.metadata), ())
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
        if MAX_ID in configuration:  # no id of a column is ever used again
            configuration[MAX_ID] = str(max(marks))
    metadata = dataclasses.replace(
        source.metadata, id=identity, name=None, description=None, configuration=configuration
    )
    return definition.evolve(protocol, metadata, properties=properties)


def _with_transactions(
    source: CloneSource, shallow: bool, commit: CommitOptions | None
) -> CommitOptions | None:
    """Adds the application transactions of the source to the commit of a deep clone, so that applications can
    write to the clone instead."""
    written = {} if shallow else dict(source.transactions)
    if not written:
        return commit
    commit = commit or CommitOptions()
    return dataclasses.replace(commit, transactions={**written, **commit.transactions})
