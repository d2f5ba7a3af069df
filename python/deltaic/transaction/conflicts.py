"""Decides if a transaction may commit after another one (the winner) has committed first. The rules are pure
functions of the actions and reads of both, in delta-spark's order.

Files are compared by path, without their deletion vectors. The exception is a transaction that marks rows as
deleted and depends only on these rows: then rows are compared, and a winner that deleted other rows of the
same files is no conflict.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from deltaic.errors import (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentTransactionException,
    DeltaConcurrentModificationException,
    MetadataChangedException,
    ProtocolChangedException,
)
from deltaic.protocol.actions import Metadata
from deltaic.transaction import timestamps


class Isolation(Enum):
    """Isolation level: which changes of winners are conflicts. The values are those of commitInfo."""

    SERIALIZABLE = "Serializable"
    WRITE_SERIALIZABLE = "WriteSerializable"
    SNAPSHOT = "SnapshotIsolation"


# Setting these properties to these values keeps the actions of a concurrent transaction valid, so it is no
# conflict.
_HARMLESS_PROPERTIES = {
    "delta.enableDeletionVectors": ("true",),
    "delta.checkpointPolicy": ("v2",),
    timestamps.ENABLED: ("true",),
}


@dataclass(frozen=True)
class Current:
    """Reads and staged actions of the transaction that has not committed yet.

    `removes_files`: True if it has `remove` actions other than those of files in which it marks rows.
    `reads_rows_only`: True if it depends only on the rows that it deletes or changes, not on other rows of
    these files.
    `marks_rows`: True if these rows are marked by deletion vectors, so that they are known individually.
    `only_deletes`: True if it marks rows and writes none.
    `predicate`: the condition as the user wrote it."""

    operation: str
    isolation: Isolation
    reads_files: bool = False
    reads_whole_table: bool = False
    removes_files: bool = False
    is_blind_append: bool = False
    changes_protocol: bool = False
    changes_metadata: bool = False
    domains: frozenset[str] = frozenset()
    app_ids: frozenset[str] = frozenset()
    reads_rows_only: bool = False
    marks_rows: bool = False
    only_deletes: bool = False
    predicate: str | None = None


@dataclass(frozen=True)
class Winner:
    """Actions of a commit that came first.

    `protocol_refusal`: why this release cannot write a table with the winner's protocol; None if it can.
    `dropped_features`: features that the winner removed from the protocol.
    `changes_metadata`: True for any `metaData` action. `metadata_changes`: its changes that are conflicts.
    `rearranges`: True if its new files have exactly the rows of the files that it removed."""

    version: int
    operation: str = "UNKNOWN"
    adds: int = 0
    removes: int = 0
    is_blind_append: bool = False
    changes_protocol: bool = False
    protocol_refusal: str | None = None
    dropped_features: tuple[str, ...] = ()
    changes_metadata: bool = False
    metadata_changes: tuple[str, ...] = ()
    domains: frozenset[str] = frozenset()
    app_ids: frozenset[str] = frozenset()
    rearranges: bool = False


@dataclass(frozen=True)
class Overlap:
    """Paths of files that both transactions concern; at most a few of each kind.

    `added`: files that the winner added and the current transaction should have read.
    `removed_read`: files that the winner removed and the current transaction read.
    `removed_both`: files that both remove.
    `taken`: files with rows that the current transaction marks and the winner changed or moved.
    `deleted_both`: files with rows that the current transaction marks and the winner only deleted."""

    added: tuple[str, ...] = ()
    removed_read: tuple[str, ...] = ()
    removed_both: tuple[str, ...] = ()
    taken: tuple[str, ...] = ()
    deleted_both: tuple[str, ...] = ()


def check(current: Current, winner: Winner, overlap: Overlap) -> None:
    """Raises the exception of the first rule that the two transactions violate."""
    check_definition(current, winner)
    check_files(current, winner, overlap)


def check_definition(current: Current, winner: Winner) -> None:
    """Raises an exception for conflicts of protocol, metadata, domains and application transactions."""
    if winner.changes_protocol:
        if winner.protocol_refusal is not None:
            raise _conflict(
                ProtocolChangedException,
                current,
                winner,
                f"changed the protocol, and {winner.protocol_refusal}",
            )
        if winner.dropped_features:
            raise _conflict(
                ProtocolChangedException,
                current,
                winner,
                f"dropped the feature {', '.join(winner.dropped_features)}",
            )
        if current.changes_protocol:
            raise _conflict(
                ProtocolChangedException, current, winner, "changed the protocol, as this transaction does"
            )
    if winner.metadata_changes:
        raise _conflict(
            MetadataChangedException,
            current,
            winner,
            f"changed the table's metadata ({', '.join(winner.metadata_changes)})",
        )
    if winner.changes_metadata and current.changes_metadata:  # the current one would overwrite it
        raise _conflict(
            MetadataChangedException,
            current,
            winner,
            "changed the table's metadata, as this transaction does",
        )
    if shared := sorted(current.domains & winner.domains):
        raise _conflict(
            ConcurrentTransactionException, current, winner, f"wrote the same metadata domain {shared[0]!r}"
        )
    if shared := sorted(current.app_ids & winner.app_ids):
        raise _conflict(
            ConcurrentTransactionException,
            current,
            winner,
            f"wrote the application transaction id {shared[0]!r}",
        )


def leaves_rows(current: Current, winner: Winner) -> bool:
    """True if the winner only moved rows to other files, and the current transaction depends only on rows."""
    return winner.rearranges and current.reads_rows_only


def must_see_adds(current: Current, winner: Winner) -> bool:
    """True if the winner's new files can be a conflict. They are none if the current transaction read no
    files, with SnapshotIsolation, if the winner only moved rows, and with WriteSerializable if the winner is
    a blind append and the current transaction does not change the metadata."""
    if (
        not winner.adds
        or not current.reads_files
        or current.isolation is Isolation.SNAPSHOT
        or leaves_rows(current, winner)
    ):
        return False
    if current.isolation is Isolation.WRITE_SERIALIZABLE:
        return not winner.is_blind_append or current.changes_metadata
    return True


def must_see_removes(current: Current, winner: Winner) -> bool:
    """True if files that the winner removed can be a conflict with reads. They are none if the current
    transaction depends only on marked rows, which are compared individually, or if the winner only moved
    rows."""
    knows_rows = current.reads_rows_only and current.marks_rows
    return current.reads_files and not knows_rows and not leaves_rows(current, winner)


def check_files(current: Current, winner: Winner, overlap: Overlap) -> None:
    """Raises an exception for conflicts of files and rows: files that were added and should have been read,
    rows that both change, files that were read and removed, files that both remove."""
    if overlap.added and must_see_adds(current, winner):
        condition = "" if current.predicate is None else f" ({current.predicate})"
        what = f"added files that this transaction should have read{condition}"
        raise _conflict(ConcurrentAppendException, current, winner, what, overlap.added[0])
    if overlap.taken or (overlap.deleted_both and not current.only_deletes):
        what = "changed, moved or deleted rows that this transaction changes"
        raise _conflict(
            ConcurrentDeleteReadException, current, winner, what, (overlap.taken or overlap.deleted_both)[0]
        )
    if overlap.removed_read and winner.removes and must_see_removes(current, winner):
        raise _conflict(
            ConcurrentDeleteReadException,
            current,
            winner,
            "removed or changed a file that this transaction read",
            overlap.removed_read[0],
        )
    if overlap.removed_both and winner.removes and current.removes_files:
        raise _conflict(
            ConcurrentDeleteDeleteException,
            current,
            winner,
            "removed or changed a file that this transaction removes or changes too",
            overlap.removed_both[0],
        )


def metadata_changes(before: Metadata, after: Metadata) -> tuple[str, ...]:
    """Returns the names of the differences between two metadata actions that are conflicts."""
    changes = []
    if before.id != after.id:
        changes.append("id")
    for name in ("name", "description", "partition_columns", "format"):
        if getattr(before, name) != getattr(after, name):
            changes.append(name)
    if before.schema_string != after.schema_string and _without_marks(before) != _without_marks(after):
        changes.append("schema")
    old, new = before.configuration, after.configuration
    changes += [
        key for key in sorted({*old, *new}) if old.get(key) != new.get(key) and not _is_harmless(key, new)
    ]
    return tuple(changes)


def _without_marks(metadata: Metadata) -> Any:
    """Returns the JSON of the schema without the high-water marks of identity columns, which are no
    conflict."""
    schema = json.loads(metadata.schema_string)
    for item in schema.get("fields", ()):
        item.get("metadata", {}).pop("delta.identity.highWaterMark", None)
    return schema


def _is_harmless(key: str, configuration: Mapping[str, str]) -> bool:
    if key in (timestamps.SINCE_VERSION, timestamps.SINCE_TIME):
        return key in configuration and _is_harmless(timestamps.ENABLED, configuration)
    return configuration.get(key, "").lower() in _HARMLESS_PROPERTIES.get(key, ())


def _conflict(
    kind: type[DeltaConcurrentModificationException],
    current: Current,
    winner: Winner,
    what: str,
    path: str | None = None,
) -> DeltaConcurrentModificationException:
    error = kind(
        f"{current.operation} was not committed: version {winner.version} ({winner.operation}) came first and"
        f" {what}",
        where=path,
    )
    error.winner, error.winner_operation = winner.version, winner.operation
    return error
