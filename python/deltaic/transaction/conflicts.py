"""May a transaction still commit after another one came first? Pure rules, in delta-spark's order, on what both did.

Files are compared by path alone, whatever their vectors, except where the transaction knows which rows it read and takes out: then a commit
that deleted other rows of the same files is none of its business, and rows are compared.
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


class Isolation(Enum):
    """Isolation level: the winners' changes that a transaction may not miss; the value is commitInfo's text."""

    SERIALIZABLE = "Serializable"
    WRITE_SERIALIZABLE = "WriteSerializable"
    SNAPSHOT = "SnapshotIsolation"


# Turning these on leaves what a concurrent transaction has written valid.
_IN_COMMIT_TIMESTAMPS = "delta.enableInCommitTimestamps"
_HARMLESS_PROPERTIES = {"delta.enableDeletionVectors": ("true",), "delta.checkpointPolicy": ("v2",), _IN_COMMIT_TIMESTAMPS: ("true",)}
_ENABLEMENT = ("delta.inCommitTimestampEnablementVersion", "delta.inCommitTimestampEnablementTimestamp")


@dataclass(frozen=True)
class Current:
    """Reads and staged actions of the transaction that has not committed yet. `removes_files`: has removes of its own, besides those of
    files whose rows it marks. `reads_rows_only`: of the files that it read it depends on no row but those that it takes out; `marks_rows`:
    these are known one by one; `only_deletes`: and it writes no row. `predicate`: of its rows, as the user wrote it."""

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
    """Actions of a commit that came first. `protocol_refusal`: why this client cannot write under the winner's protocol;
    `dropped_features`: names that the winner took out of the protocol; `changes_metadata`: in any way; `metadata_changes`: what of it is
    not harmless. `rearranges`: its new files have just the rows of those that it removed."""

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
    """Some of the paths (at most a few of each) that both transactions concern: the winner's new files that the current one should
    have read, the files that the winner removed and the current one read, or removes too, and those of which the winner took out rows that
    the current one marks, which rows it only deleted (`deleted_both`), or changed or moved (`taken`)."""

    added: tuple[str, ...] = ()
    removed_read: tuple[str, ...] = ()
    removed_both: tuple[str, ...] = ()
    taken: tuple[str, ...] = ()
    deleted_both: tuple[str, ...] = ()


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


def leaves_rows(current: Current, winner: Winner) -> bool:
    """True if what the current transaction read is as it was, as it read rows, and the winner only put them into other files."""
    return winner.rearranges and current.reads_rows_only


def must_see_adds(current: Current, winner: Winner) -> bool:
    """True if the winner's new files count: they do not for a blind append, under snapshot isolation, where the winner only
    rearranged rows, or, under WriteSerializable, when the winner appended blindly and the current transaction leaves the metadata alone."""
    if not winner.adds or not current.reads_files or current.isolation is Isolation.SNAPSHOT or leaves_rows(current, winner):
        return False
    if current.isolation is Isolation.WRITE_SERIALIZABLE:
        return not winner.is_blind_append or current.changes_metadata
    return True


def must_see_removes(current: Current, winner: Winner) -> bool:
    """True if files that the winner removed count as read: not where only rows do, or all of them are still there."""
    knows_rows = current.reads_rows_only and current.marks_rows
    return current.reads_files and not knows_rows and not leaves_rows(current, winner)


def check_files(current: Current, winner: Winner, overlap: Overlap) -> None:
    """Files appended, files removed that were read, rows taken out twice, files removed twice."""
    if overlap.added and must_see_adds(current, winner):
        condition = "" if current.predicate is None else f" ({current.predicate})"
        what = f"added files that this transaction should have read{condition}"
        raise _conflict(ConcurrentAppendException, current, winner, what, overlap.added[0])
    if overlap.taken or (overlap.deleted_both and not current.only_deletes):
        what = "changed, moved or deleted rows that this transaction changes"
        raise _conflict(ConcurrentDeleteReadException, current, winner, what, (overlap.taken or overlap.deleted_both)[0])
    if overlap.removed_read and winner.removes and must_see_removes(current, winner):
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
    """Differences between two metadata actions, without those that disturb nobody."""
    changes = []
    if before.id != after.id:
        changes.append("id")
    for name in ("name", "description", "partition_columns", "format"):
        if getattr(before, name) != getattr(after, name):
            changes.append(name)
    if before.schema_string != after.schema_string and _without_marks(before) != _without_marks(after):
        changes.append("schema")
    old, new = before.configuration, after.configuration
    changes += [key for key in sorted({*old, *new}) if old.get(key) != new.get(key) and not _is_harmless(key, new)]
    return tuple(changes)


def _without_marks(metadata: Metadata) -> Any:
    """The schema without the high-water marks of identity columns: other commits do not depend on which numbers are given."""
    schema = json.loads(metadata.schema_string)
    for item in schema.get("fields", ()):
        item.get("metadata", {}).pop("delta.identity.highWaterMark", None)
    return schema


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
    error.winner, error.winner_operation = winner.version, winner.operation
    return error
