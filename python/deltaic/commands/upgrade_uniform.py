"""REORG ... APPLY (UPGRADE UNIFORM): Iceberg compatibility for a table whose files must be written again for it."""

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


def upgrade_uniform(snapshot: Snapshot, engine: Engine, version: int, commit: CommitOptions | None = None) -> Snapshot:
    """Writes all files again, with ids for elements, keys and values, partition columns, and without deleted rows, in the commit that turns
    this version of Iceberg compatibility on, and Iceberg metadata with it. The table's columns must be mapped already, and its rows
    tracked for version 3. Nothing where the table has the version already."""
    if iceberg.active_version(snapshot.protocol, snapshot.metadata) == version and iceberg.is_described(
        snapshot.protocol, snapshot.metadata
    ):
        return snapshot
    configuration = snapshot.metadata.configuration
    others = [name for each in (1, 2, 3) if each != version and (name := iceberg.enabling(each)) in configuration]
    properties: dict[str, Any] = {**dict.fromkeys(others, False), iceberg.enabling(version): True, iceberg.FORMATS: "iceberg"}
    protocol, metadata = evolve(snapshot.protocol, snapshot.metadata, properties=properties)
    return rewrite.all_files(snapshot, engine, "REORG", metadata, commit, protocol=protocol)


def needed_before(snapshot: Snapshot, version: int) -> dict[str, Any]:
    """Properties that the table lacks for this version of Iceberg compatibility, to be set in a commit before."""
    if isinstance(version, bool) or version not in (1, 2, 3):
        raise InvalidArgumentError("no such version of Iceberg compatibility", found=repr(version), expected="1, 2 or 3")
    found: dict[str, Any] = {}
    if snapshot.properties.column_mapping_mode == "none":
        found["delta.columnMapping.mode"] = "name"
    if version < 3 and snapshot.properties.deletion_vectors:
        found["delta.enableDeletionVectors"] = False
    if version == 3 and not snapshot.properties.row_tracking:
        found["delta.enableRowTracking"] = True
    return found
