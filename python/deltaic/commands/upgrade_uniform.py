"""REORG ... APPLY (UPGRADE UNIFORM): turns on Iceberg compatibility for a table whose files must be rewritten
for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deltaic.commands import rewrite
from deltaic.errors import InvalidArgumentError
from deltaic.protocol import iceberg
from deltaic.protocol.definition import evolve

if TYPE_CHECKING:
    from deltaic.engine.engine import Engine
    from deltaic.log.snapshot import Snapshot
    from deltaic.options import CommitOptions


def upgrade_uniform(
    snapshot: Snapshot, engine: Engine, version: int, commit: CommitOptions | None = None
) -> Snapshot:
    """Turns on a version of Iceberg compatibility and Iceberg metadata, and rewrites all files in the same
    commit: with ids for elements, keys and values, with partition columns, and without deleted rows. The
    table must have column mapping already, and for version 3 row tracking. Does nothing if the table has the
    version."""
    if iceberg.active_version(snapshot.protocol, snapshot.metadata) == version and iceberg.is_described(
        snapshot.protocol, snapshot.metadata
    ):
        return snapshot
    configuration = snapshot.metadata.configuration
    others = [
        name for each in (1, 2, 3) if each != version and (name := iceberg.enabling(each)) in configuration
    ]
    properties: dict[str, Any] = {
        **dict.fromkeys(others, False),
        iceberg.enabling(version): True,
        iceberg.FORMATS: "iceberg",
    }
    protocol, metadata = evolve(snapshot.protocol, snapshot.metadata, properties=properties)
    return rewrite.all_files(snapshot, engine, "REORG", metadata, commit, protocol=protocol)


def needed_before(snapshot: Snapshot, version: int) -> dict[str, Any]:
    """Returns the properties that must be set before, because this version of Iceberg compatibility requires
    them."""
    if isinstance(version, bool) or version not in (1, 2, 3):
        raise InvalidArgumentError(
            "no such version of Iceberg compatibility", found=repr(version), expected="1, 2 or 3"
        )
    properties: dict[str, Any] = {}
    if snapshot.properties.column_mapping_mode == "none":
        properties["delta.columnMapping.mode"] = "name"
    if version < 3 and snapshot.properties.deletion_vectors:
        properties["delta.enableDeletionVectors"] = False
    if version == 3 and not snapshot.properties.row_tracking:
        properties["delta.enableRowTracking"] = True
    return properties
