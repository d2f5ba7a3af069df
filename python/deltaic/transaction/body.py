"""Makes the lines of a commit. They depend on the version before the commit (in-commit timestamp, row ids),
so they are made again for each attempt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from deltaic import _core
from deltaic.protocol import row_tracking
from deltaic.protocol.actions import Metadata, Protocol, line
from deltaic.transaction import information, row_ids, timestamps

if TYPE_CHECKING:
    from deltaic.transaction.conflicts import Current
    from deltaic.transaction.transaction import Transaction


@dataclass(frozen=True)
class Base:
    """The version before a commit. `version` -1 and None in the other fields: there is no table yet."""

    version: int = -1
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    row_id_mark: int = row_tracking.NO_MARK
    """The highest assigned row id."""
    time: int | None = None
    """The in-commit timestamp of the version (ms); None to read it from the log."""


def commit_body(
    transaction: Transaction,
    base: Base,
    current: Current,
    txn_id: str,
    adds: pa.Table,
    removes: pa.Table,
    metrics: Mapping[str, int],
) -> tuple[bytes, list[str], pa.Table]:
    """Returns a commit: its bytes, its lines that are no file actions (first commitInfo), and its add
    actions."""
    now, version = transaction.clock(), base.version + 1
    protocol, metadata = transaction.protocol or base.protocol, transaction.metadata or base.metadata
    was_enabled = timestamps.enabled(base.protocol, base.metadata)
    time = None
    if timestamps.enabled(protocol, metadata) and base.time is not None:
        time = max(now, base.time + 1)
    elif timestamps.enabled(protocol, metadata):
        time = timestamps.next_time(transaction.store, version, now, was_enabled=was_enabled)
    staged = transaction.metadata
    if staged is not None:
        staged = timestamps.tracked(
            staged, base.metadata, version=version, time=time, was_enabled=was_enabled
        )
    domains, tags = dict(transaction.domains), {}
    if row_tracking.gives_ids(protocol, metadata):
        adds, mark = row_ids.assigned(adds, version, base.row_id_mark)
        if mark > base.row_id_mark:
            domains[row_tracking.DOMAIN] = (row_tracking.mark_configuration(mark), False)
        kept = row_tracking.is_enabled(protocol, metadata) or not (adds.num_rows and removes.num_rows)
        tags["delta.rowTracking.preserved"] = "true" if kept else "false"
    info = information.commit_info(
        timestamp=now,
        in_commit_timestamp=time,
        operation=transaction.operation,
        parameters=transaction.parameters,
        read_version=transaction.snapshot.version if transaction.snapshot else None,
        isolation=current.isolation.value,
        is_blind_append=current.is_blind_append,
        metrics=metrics,
        options=transaction.options,
        txn_id=txn_id,
        tags=tags,
    )
    actions = [line({"commitInfo": info})]
    actions += [action.to_json() for action in (transaction.protocol, staged) if action is not None]
    for app_id, number in transaction.options.transactions.items():
        actions.append(line({"txn": {"appId": app_id, "version": number, "lastUpdated": now}}))
    for domain, (configuration, removed) in domains.items():
        actions.append(
            line({"domainMetadata": {"domain": domain, "configuration": configuration, "removed": removed}})
        )
    return (
        _core.commit_body(actions, adds, removes if removes.num_rows else None, transaction.changes),
        actions,
        adds,
    )
