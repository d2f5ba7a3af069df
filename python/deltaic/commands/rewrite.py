"""Rewrites every file of a table for another definition, in one commit. The rows stay the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from deltaic import _core
from deltaic.commands.data_files import write_target
from deltaic.commands.marking import rows_of, staging, total_size
from deltaic.plan.nodes import Scan
from deltaic.protocol.features import Change
from deltaic.transaction.transaction import Transaction

if TYPE_CHECKING:
    from deltaic.engine.engine import Engine
    from deltaic.log.snapshot import Snapshot
    from deltaic.options import CommitOptions
    from deltaic.protocol.actions import Metadata, Protocol


def all_files(
    snapshot: Snapshot,
    engine: Engine,
    operation: str,
    metadata: Metadata,
    commit: CommitOptions | None = None,
    *,
    domains: Mapping[str, str] | None = None,
    protocol: Protocol | None = None,
) -> Snapshot:
    """Rewrites all files and returns the version with the new definition. Its columns must have the old names
    and order. `domains`: metadata domains to set. `protocol`: the new protocol; None: unchanged."""
    transaction = Transaction(snapshot, operation, {}, commit)
    transaction.set_metadata(metadata)
    if protocol is not None and protocol != snapshot.protocol:
        transaction.set_protocol(protocol)
    for domain, configuration in (domains or {}).items():
        transaction.set_domain(domain, configuration)
    transaction.expect(Change.REARRANGE)
    transaction.read()
    target = write_target(
        snapshot.store, metadata, protocol or snapshot.protocol, copies=True, data_change=False
    )
    files = snapshot.files().adds
    metrics = {"num_rewritten_files": files.num_rows, "num_removed_bytes": total_size(files)}
    with staging(transaction):
        if files.num_rows:
            scan = Scan(
                store=snapshot.store,
                schema=snapshot.schema,
                table_schema=snapshot.table_schema,
                files=files,
                columns=tuple(snapshot.schema.names),
                row_tracking=target.row_tracking,
                as_stored=True,
            )
            adds = engine.write(engine.run(scan), target)
            transaction.written(adds["path"].to_pylist())
            transaction.add(adds)
            transaction.remove(_core.removes_of(files, transaction.clock(), data_change=False))
            metrics |= {"num_output_bytes": total_size(adds), "num_copied_rows": rows_of(adds)}
    return transaction.commit(metrics)
