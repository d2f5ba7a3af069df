"""Checks of a transaction before its commit: whether the table's features, properties and definition allow
the staged actions."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from deltaic.errors import AppendOnlyError, UnsupportedFeatureError
from deltaic.log import catalog, manifests
from deltaic.log import iceberg as iceberg_metadata
from deltaic.protocol import clustering, features, iceberg
from deltaic.protocol.actions import Metadata, Protocol
from deltaic.protocol.column_mapping import physical_name
from deltaic.protocol.features import Change
from deltaic.protocol.properties import TableProperties
from deltaic.protocol.schema import Schema

if TYPE_CHECKING:
    from deltaic.transaction.transaction import Transaction


def check_change(transaction: Transaction, change: Change) -> None:
    """Raises an exception if the table, with its staged definition, does not allow a kind of change."""
    snapshot = transaction.snapshot
    if change in (Change.REMOVE, Change.REPLACE):
        check_append_only(transaction)
    before = snapshot.domains if snapshot else {}
    staged = transaction.domains
    domains = {name: configuration for name, configuration in before.items() if name not in staged}
    domains |= {name: configuration for name, (configuration, removed) in staged.items() if not removed}
    protocol = transaction.new_protocol
    if snapshot is not None and features.is_managed(snapshot.protocol) and not features.is_managed(protocol):
        raise UnsupportedFeatureError(
            "a table that a catalog manages leaves it by the catalog alone",
            where=f"{transaction.store.location}, {transaction.operation}",
            found=f"a protocol without {features.MANAGED}",
        )
    check_definition(transaction, protocol, transaction.new_metadata, change, domains)


def check_definition(
    transaction: Transaction,
    protocol: Protocol,
    metadata: Metadata,
    change: Change,
    domains: Mapping[str, str],
) -> None:
    """Raises an exception if a table with this definition does not allow a change. A table's own definition
    is checked once for each kind of change, unless a catalog decides."""
    snapshot = transaction.snapshot
    managed = partial(catalog.has_coordinator, transaction.store) if snapshot else None
    check = partial(features.check_writable, protocol, metadata, change, domains=domains, catalog=managed)
    if (
        snapshot is None
        or protocol is not snapshot.protocol
        or metadata is not snapshot.metadata
        or features.is_managed(protocol)
    ):
        check()
    else:
        snapshot.keep_of_definition(("writable", change, domains.get(clustering.DOMAIN)), check)


def check_append_only(transaction: Transaction) -> None:
    """Raises AppendOnlyError if the table is append-only, unless the transaction ignores it."""
    snapshot = transaction.snapshot
    if transaction.ignores_append_only:
        return
    if snapshot is not None and snapshot.properties.append_only:
        raise AppendOnlyError(
            f"{transaction.operation} would remove rows of a table that only takes new ones",
            where=snapshot.location,
            found="delta.appendOnly = true",
        )


def check_mapped_feed(transaction: Transaction, *, is_on_spark: bool) -> None:
    """Raises UnsupportedFeatureError if a commit of Spark that changes files of a table with the change data
    feed also drops, renames or newly maps columns, as in delta-spark."""
    snapshot, metadata = transaction.snapshot, transaction.metadata
    changes_files = bool(transaction.adds) or transaction.removes_files
    if not is_on_spark or snapshot is None or metadata is None or not changes_files:
        return
    properties = TableProperties(metadata.configuration)
    if not properties.change_data_feed or properties.column_mapping_mode == "none":
        return
    kept = {physical_name(item) for item in Schema.from_json(metadata.schema_string)}
    gone = [item.name for item in snapshot.schema if physical_name(item) not in kept]
    if gone or snapshot.properties.column_mapping_mode == "none":
        error = UnsupportedFeatureError(
            "[DELTA_BLOCK_COLUMN_MAPPING_AND_CDC_OPERATION] rows of a table with the change data feed are not"
            " replaced together with mapped columns",
            where=transaction.store.location,
            found=f"dropped, renamed or of another type: {', '.join(gone)}" if gone else "new column mapping",
            expected="the same columns, or delta.enableChangeDataFeed = false",
        )
        raise error.with_values(operation=transaction.operation)


def check_staged(transaction: Transaction) -> None:
    """Raises an exception if the table's features or properties forbid the staged actions."""
    snapshot, metadata = transaction.snapshot, transaction.metadata
    adds, removes = transaction.actions()
    staged = Change.of(
        adds=adds.num_rows > 0,
        removes=removes.num_rows > 0,
        data_change=changes_data(adds) or changes_data(removes),
    )
    transaction.expect(transaction.change or staged)
    if manifests.are_kept(transaction.new_metadata):
        vectors = adds.num_rows - adds["deletionVector"].null_count
        if snapshot is not None and not manifests.are_kept(snapshot.metadata) and not removes.num_rows:
            vectors += snapshot.core.with_vectors[0]
        manifests.check(transaction.new_protocol, transaction.new_metadata, vectors, by_each_commit=True)
    _check_iceberg(transaction, adds, removes)
    if metadata is not None:
        former = snapshot.domains.get(clustering.DOMAIN) if snapshot else None
        configuration, removed = transaction.domains.get(clustering.DOMAIN, (former, False))
        before = features.Definition(snapshot.metadata) if snapshot else None
        clustering.check_kept(
            before, former, features.Definition(metadata), None if removed else configuration
        )


def _check_iceberg(transaction: Transaction, adds: pa.Table, removes: pa.Table) -> None:
    """Raises an exception if the table's Iceberg compatibility forbids its new definition, its existing files
    or the added files."""
    snapshot = transaction.snapshot
    protocol, definition = transaction.new_protocol, features.Definition(transaction.new_metadata)
    version = iceberg.active_version(protocol, definition)
    before = None
    if snapshot is not None:
        before = snapshot.protocol, features.Definition(snapshot.metadata)
    if version is None and not definition.properties.universal_formats[0]:
        return
    iceberg.check(protocol, definition, before[1] if before is not None else None)
    if version is not None:
        iceberg_metadata.check_added(version, adds)
    if before is not None and snapshot is not None and iceberg.active_version(*before) != version:
        core = snapshot.core
        files = 0 if removes.num_rows >= core.file_count else core.file_count
        counted = core.num_records is not None
        iceberg.check_files(
            protocol, definition, before, files=files, with_vectors=core.with_vectors[0], counted=counted
        )


def unchanging(actions: pa.Table) -> pa.Table:
    """Returns the `add` or `remove` actions with dataChange=false."""
    at = actions.column_names.index("dataChange")
    return actions.set_column(at, actions.schema.field(at), pa.array([False] * actions.num_rows))


def changes_data(actions: pa.Table) -> bool:
    """True if any of the `add` or `remove` actions has dataChange=true."""
    return bool(actions.num_rows) and pc.any(actions.column("dataChange")).as_py() is True
