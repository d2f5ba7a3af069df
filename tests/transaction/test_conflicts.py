"""The rules of conflicts as pure functions: delta-spark's OptimisticTransactionSuite and ConflictChecker,
case by case."""

from __future__ import annotations

import dataclasses

import pytest

from deltaic.errors import (
    CommitError,
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentTransactionException,
    DeltaConcurrentModificationException,
    MetadataChangedException,
    ProtocolChangedException,
)
from deltaic.protocol.actions import Metadata
from deltaic.transaction.conflicts import (
    Current,
    Isolation,
    Overlap,
    Winner,
    check,
    metadata_changes,
    must_see_adds,
)

SERIALIZABLE, WRITE_SERIALIZABLE, SNAPSHOT = (
    Isolation.SERIALIZABLE,
    Isolation.WRITE_SERIALIZABLE,
    Isolation.SNAPSHOT,
)


def current(isolation: Isolation = SERIALIZABLE, **changes: object) -> Current:
    return dataclasses.replace(Current(operation="UPDATE", isolation=isolation), **changes)


BLIND_INSERT = Winner(version=7, operation="WRITE", adds=1, is_blind_append=True)
INSERT_SELECT = Winner(version=7, operation="WRITE", adds=1)
DELETE = Winner(version=7, operation="DELETE", adds=1, removes=1)
OPTIMIZE = Winner(version=7, operation="OPTIMIZE", adds=1, removes=2)
ALTER = Winner(version=7, operation="SET TBLPROPERTIES", metadata_changes=("delta.appendOnly",))
UPGRADE = Winner(version=7, operation="UPGRADE PROTOCOL", changes_protocol=True)
VACUUM = Winner(version=7, operation="VACUUM START", is_blind_append=True)

APPEND = {"is_blind_append": True}
READ_WRITE = {"reads_files": True, "removes_files": True}
WHOLE = {"reads_files": True, "reads_whole_table": True, "removes_files": True}

HIT = Overlap(added=("new.parquet",), removed_read=("old.parquet",), removed_both=("old.parquet",))
MISS = Overlap()
ADDED = Overlap(added=("new.parquet",))
READ = Overlap(removed_read=("old.parquet",))
BOTH = Overlap(removed_both=("old.parquet",))

# reliability matrix: winner, what the loser is, overlap, isolation -> exception or None
MATRIX = [
    # a blind append never conflicts over files
    (BLIND_INSERT, APPEND, HIT, SERIALIZABLE, None),
    (DELETE, APPEND, HIT, SERIALIZABLE, None),
    (OPTIMIZE, APPEND, HIT, SERIALIZABLE, None),
    # a blind insert came first: seen by Serializable, not by WriteSerializable
    (BLIND_INSERT, READ_WRITE, ADDED, SERIALIZABLE, ConcurrentAppendException),
    (BLIND_INSERT, READ_WRITE, ADDED, WRITE_SERIALIZABLE, None),
    (BLIND_INSERT, READ_WRITE, MISS, SERIALIZABLE, None),
    (BLIND_INSERT, WHOLE, ADDED, SERIALIZABLE, ConcurrentAppendException),
    (BLIND_INSERT, WHOLE, ADDED, WRITE_SERIALIZABLE, None),
    # an insert that read came first: both see it
    (INSERT_SELECT, READ_WRITE, ADDED, SERIALIZABLE, ConcurrentAppendException),
    (INSERT_SELECT, READ_WRITE, ADDED, WRITE_SERIALIZABLE, ConcurrentAppendException),
    # a change of rows came first
    (DELETE, READ_WRITE, ADDED, WRITE_SERIALIZABLE, ConcurrentAppendException),
    (DELETE, READ_WRITE, READ, SERIALIZABLE, ConcurrentDeleteReadException),
    (DELETE, READ_WRITE, READ, WRITE_SERIALIZABLE, ConcurrentDeleteReadException),
    (DELETE, READ_WRITE, BOTH, SERIALIZABLE, ConcurrentDeleteDeleteException),
    (DELETE, READ_WRITE, MISS, SERIALIZABLE, None),
    (DELETE, {"reads_files": True}, READ, SERIALIZABLE, ConcurrentDeleteReadException),
    # the rules come in order: appended before removed-and-read before removed twice
    (DELETE, READ_WRITE, HIT, SERIALIZABLE, ConcurrentAppendException),
    (DELETE, READ_WRITE, dataclasses.replace(HIT, added=()), SERIALIZABLE, ConcurrentDeleteReadException),
    # rearrangement under snapshot isolation: only files count that both touch
    (BLIND_INSERT, READ_WRITE, ADDED, SNAPSHOT, None),
    (INSERT_SELECT, WHOLE, ADDED, SNAPSHOT, None),
    (
        OPTIMIZE,
        READ_WRITE,
        dataclasses.replace(HIT, removed_read=()),
        SNAPSHOT,
        ConcurrentDeleteDeleteException,
    ),
    (DELETE, READ_WRITE, READ, SNAPSHOT, ConcurrentDeleteReadException),
    # rearrangement came first: its files count as read by others
    (OPTIMIZE, READ_WRITE, ADDED, SERIALIZABLE, ConcurrentAppendException),
    (OPTIMIZE, READ_WRITE, READ, SERIALIZABLE, ConcurrentDeleteReadException),
    # a change of the definition
    (ALTER, APPEND, MISS, SERIALIZABLE, MetadataChangedException),
    (ALTER, READ_WRITE, MISS, WRITE_SERIALIZABLE, MetadataChangedException),
    (ALTER, {"changes_metadata": True}, MISS, SERIALIZABLE, MetadataChangedException),
    (BLIND_INSERT, {"changes_metadata": True}, ADDED, SERIALIZABLE, None),
    (
        BLIND_INSERT,
        {"changes_metadata": True, "reads_files": True},
        ADDED,
        WRITE_SERIALIZABLE,
        ConcurrentAppendException,
    ),
    (UPGRADE, APPEND, MISS, SERIALIZABLE, None),
    (UPGRADE, {"changes_protocol": True}, MISS, SERIALIZABLE, ProtocolChangedException),
    (
        dataclasses.replace(UPGRADE, protocol_refusal="the table has a feature"),
        APPEND,
        MISS,
        SERIALIZABLE,
        ProtocolChangedException,
    ),
    (
        dataclasses.replace(UPGRADE, dropped_features=("columnMapping",)),
        APPEND,
        MISS,
        SERIALIZABLE,
        ProtocolChangedException,
    ),
    # upkeep
    (VACUUM, WHOLE, MISS, SERIALIZABLE, None),
    (VACUUM, APPEND, MISS, SERIALIZABLE, None),
]


@pytest.mark.parametrize(("winner", "changes", "overlap", "isolation", "expected"), MATRIX)
def test_matrix(
    winner: Winner,
    changes: dict[str, bool],
    overlap: Overlap,
    isolation: Isolation,
    expected: type[DeltaConcurrentModificationException] | None,
) -> None:
    mine = current(isolation, **changes)
    if expected is None:
        check(mine, winner, overlap)
        return
    with pytest.raises(expected) as raised:
        check(mine, winner, overlap)
    assert type(raised.value) is expected
    assert isinstance(raised.value, CommitError)
    assert raised.value.winner == 7


def test_domains_and_application_transactions() -> None:
    winner = Winner(version=3, domains=frozenset({"delta.clustering"}), app_ids=frozenset({"stream"}))
    check(current(domains=frozenset({"other"}), app_ids=frozenset({"batch"})), winner, MISS)
    with pytest.raises(ConcurrentTransactionException, match=r"domain 'delta\.clustering'"):
        check(current(domains=frozenset({"delta.clustering"})), winner, MISS)
    with pytest.raises(ConcurrentTransactionException, match="transaction id 'stream'"):
        check(current(app_ids=frozenset({"stream"})), winner, MISS)


def test_protocol_comes_before_metadata_before_transactions_before_files() -> None:
    winner = Winner(
        version=2,
        adds=1,
        removes=1,
        changes_protocol=True,
        metadata_changes=("schema",),
        domains=frozenset({"d"}),
        app_ids=frozenset({"a"}),
    )
    mine = current(
        changes_protocol=True,
        reads_files=True,
        removes_files=True,
        domains=frozenset({"d"}),
        app_ids=frozenset({"a"}),
    )
    order = []
    while True:
        try:
            check(mine, winner, HIT)
            break
        except DeltaConcurrentModificationException as error:
            order.append(type(error).__name__)
            if isinstance(error, ProtocolChangedException):
                winner = dataclasses.replace(winner, changes_protocol=False)
            elif isinstance(error, MetadataChangedException):
                winner = dataclasses.replace(winner, metadata_changes=())
            elif isinstance(error, ConcurrentTransactionException):
                winner = dataclasses.replace(winner, domains=frozenset(), app_ids=frozenset())
            else:
                break
    assert order == [
        "ProtocolChangedException",
        "MetadataChangedException",
        "ConcurrentTransactionException",
        "ConcurrentAppendException",
    ]


def test_the_message_names_version_operation_and_file() -> None:
    with pytest.raises(
        ConcurrentDeleteDeleteException,
        match=r"^old\.parquet: UPDATE was not committed: version 7 \(DELETE\) came first",
    ) as raised:
        check(current(removes_files=True), DELETE, BOTH)
    assert raised.value.where == "old.parquet"


def test_adds_are_looked_at_only_where_they_can_matter() -> None:
    assert not must_see_adds(current(is_blind_append=True), INSERT_SELECT)
    assert not must_see_adds(current(SNAPSHOT, reads_files=True), INSERT_SELECT)
    assert not must_see_adds(current(reads_files=True), VACUUM)
    assert must_see_adds(current(reads_files=True), BLIND_INSERT)
    assert not must_see_adds(current(WRITE_SERIALIZABLE, reads_files=True), BLIND_INSERT)


BASE = Metadata("id", configuration={"delta.appendOnly": "false"})


@pytest.mark.parametrize(
    ("after", "changes"),
    [
        (BASE, ()),
        (dataclasses.replace(BASE, name="n"), ("name",)),
        (dataclasses.replace(BASE, id="other"), ("id",)),
        (dataclasses.replace(BASE, schema_string="{}"), ("schema",)),
        (dataclasses.replace(BASE, configuration={"delta.appendOnly": "true"}), ("delta.appendOnly",)),
        (dataclasses.replace(BASE, configuration={}), ("delta.appendOnly",)),
        (
            dataclasses.replace(
                BASE, configuration={**BASE.configuration, "delta.enableDeletionVectors": "true"}
            ),
            (),
        ),
        (
            dataclasses.replace(
                BASE, configuration={**BASE.configuration, "delta.enableDeletionVectors": "false"}
            ),
            ("delta.enableDeletionVectors",),
        ),
    ],
)
def test_only_turning_on_what_disturbs_nobody_is_harmless(after: Metadata, changes: tuple[str, ...]) -> None:
    assert metadata_changes(BASE, after) == changes


def test_turning_off_vectors_is_not_harmless() -> None:
    on = dataclasses.replace(BASE, configuration={"delta.enableDeletionVectors": "true"})
    off = dataclasses.replace(BASE, configuration={})
    assert metadata_changes(on, off) == ("delta.enableDeletionVectors",)
