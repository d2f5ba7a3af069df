"""May a transaction still commit after another one came first? Pure rules, in delta-spark's order, on what both did.

Files are compared by path alone, whatever their vectors: two deletes in one file conflict.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

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


class Isolation(Enum):
    """What a transaction may not miss; the value is commitInfo's text."""

    SERIALIZABLE = "Serializable"
    WRITE_SERIALIZABLE = "WriteSerializable"
    SNAPSHOT = "SnapshotIsolation"


# Turning these on leaves what a concurrent transaction has written valid.
_IN_COMMIT_TIMESTAMPS = "delta.enableInCommitTimestamps"
_HARMLESS_PROPERTIES = {"delta.enableDeletionVectors": ("true",), "delta.checkpointPolicy": ("v2",), _IN_COMMIT_TIMESTAMPS: ("true",)}
_ENABLEMENT = ("delta.inCommitTimestampEnablementVersion", "delta.inCommitTimestampEnablementTimestamp")


@dataclass(frozen=True)
class Current:
    """What the transaction that has not committed yet read and wants to write. `removes_files`: has removes of its own."""

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


@dataclass(frozen=True)
class Winner:
    """What a commit that came first did. `protocol_refusal`: why this client cannot write under the winner's protocol;
    `dropped_features`: names that the winner took out of the protocol; `changes_metadata`: in any way; `metadata_changes`: what of it is
    not harmless."""

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


@dataclass(frozen=True)
class Overlap:
    """Some of the paths (at most a few of each) that both transactions concern: the winner's new files that the current one should
    have read, the files that the winner removed and the current one read, or removes too."""

    added: tuple[str, ...] = ()
    removed_read: tuple[str, ...] = ()
    removed_both: tuple[str, ...] = ()


def check(current: Current, winner: Winner, overlap: Overlap) -> None:
    """Raises the exception of the first rule that the pair breaks."""
    check_definition(current, winner)
    check_files(current, winner, overlap)


def check_definition(current: Current, winner: Winner) -> None:
    """Protocol, metadata, domains, application transactions."""
    if winner.changes_protocol:
        if winner.protocol_refusal is not None:
            raise _conflict(ProtocolChangedException, current, winner, f"changed the protocol, and {winner.protocol_refusal}")
        if winner.dropped_features:
            raise _conflict(ProtocolChangedException, current, winner, f"dropped the feature {', '.join(winner.dropped_features)}")
        if current.changes_protocol:
            raise _conflict(ProtocolChangedException, current, winner, "changed the protocol, as this transaction does")
    if winner.metadata_changes:
        raise _conflict(MetadataChangedException, current, winner, f"changed the table's metadata ({', '.join(winner.metadata_changes)})")
    if winner.changes_metadata and current.changes_metadata:  # ours would undo it
        raise _conflict(MetadataChangedException, current, winner, "changed the table's metadata, as this transaction does")
    if shared := sorted(current.domains & winner.domains):
        raise _conflict(ConcurrentTransactionException, current, winner, f"wrote the same metadata domain {shared[0]!r}")
    if shared := sorted(current.app_ids & winner.app_ids):
        raise _conflict(ConcurrentTransactionException, current, winner, f"wrote the application transaction id {shared[0]!r}")


def must_see_adds(current: Current, winner: Winner) -> bool:
    """Whether the winner's new files count: they do not for a blind append, under snapshot isolation, or, under
    WriteSerializable, when the winner appended blindly and the current transaction leaves the metadata alone."""
    if not winner.adds or not current.reads_files or current.isolation is Isolation.SNAPSHOT:
        return False
    if current.isolation is Isolation.WRITE_SERIALIZABLE:
        return not winner.is_blind_append or current.changes_metadata
    return True


def check_files(current: Current, winner: Winner, overlap: Overlap) -> None:
    """Files appended, files removed that were read, files removed twice."""
    if overlap.added and must_see_adds(current, winner):
        raise _conflict(ConcurrentAppendException, current, winner, "added files that this transaction should have read", overlap.added[0])
    if overlap.removed_read and winner.removes and current.reads_files:
        raise _conflict(
            ConcurrentDeleteReadException, current, winner, "removed or changed a file that this transaction read", overlap.removed_read[0]
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
    """What differs between two metadata actions, without what is known to disturb nobody."""
    changes = []
    if before.id != after.id:
        changes.append("id")
    for name in ("name", "description", "partition_columns", "format"):
        if getattr(before, name) != getattr(after, name):
            changes.append(name)
    if before.schema_string != after.schema_string:
        changes.append("schema")
    old, new = before.configuration, after.configuration
    changes += [key for key in sorted({*old, *new}) if old.get(key) != new.get(key) and not _is_harmless(key, new)]
    return tuple(changes)


def _is_harmless(key: str, configuration: Mapping[str, str]) -> bool:
    if key in _ENABLEMENT:
        return key in configuration and _is_harmless(_IN_COMMIT_TIMESTAMPS, configuration)
    return configuration.get(key, "").lower() in _HARMLESS_PROPERTIES.get(key, ())


def _conflict(
    kind: type[DeltaConcurrentModificationException], current: Current, winner: Winner, what: str, path: str | None = None
) -> DeltaConcurrentModificationException:
    error = kind(
        f"{current.operation} was not committed: version {winner.version} ({winner.operation}) came first and {what}",
        where=path,
    )
    error.winner = winner.version
    return error
