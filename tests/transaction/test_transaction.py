"""The commit loop: the contents of a commit, its three outcomes, races, and the files of a failed commit."""

from __future__ import annotations

import json
import logging
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from deltaic import CommitOptions
from deltaic._core import Store, __version__
from deltaic.errors import (
    AppendOnlyError,
    CommitError,
    CommitUnknownError,
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentTransactionException,
    ConcurrentWriteException,
    MetadataChangedException,
    ProtocolChangedException,
    ProtocolError,
    TableAlreadyExistsError,
    UnsupportedFeatureError,
)
from deltaic.log import checkpoint
from deltaic.log.segment import LAST_CHECKPOINT, checkpoint_path, commit_path
from deltaic.log.snapshot import Snapshot
from deltaic.protocol.definition import evolve, new_table
from deltaic.transaction.transaction import Transaction, already_committed
from fault_store import FaultStore
from log_actions import adds, append, commit_lines, create, id_below, memory_store, month_is, paths, remove


def fault_table() -> tuple[FaultStore, Snapshot]:
    faults = FaultStore()
    return faults, create(Store.from_python(faults, "fault://table"))


def staged(
    snapshot: Snapshot, *names: str, options: CommitOptions | None = None, operation: str = "WRITE"
) -> Transaction:
    transaction = Transaction(
        snapshot, operation, {"mode": "Append", "partitionBy": []}, options, sleep=lambda _: None
    )
    transaction.add(adds(*names))
    return transaction


# --- the contents of a commit


def test_commit_info_comes_first_and_says_what_delta_spark_says() -> None:
    snapshot = create(memory_store(), partitioned=True)
    options = CommitOptions(user_metadata="nightly", info={"userName": "ada"}, transactions={"app": 3})
    transaction = Transaction(
        snapshot,
        "WRITE",
        {
            "mode": "Append",
            "partitionBy": ["month"],
            "predicate": None,
            "flag": True,
            "count": 3,
            "map": {"a": "b"},
        },
        options,
        clock=lambda: 1_234,
        new_id=lambda: "the-id",
    )
    transaction.add(adds("a.parquet", month="1"))
    committed = transaction.commit({"num_files": 1, "num_output_rows": 10, "p25_file_size": 5})
    first, *others = commit_lines(snapshot.store, 1)
    assert first == {
        "commitInfo": {
            "timestamp": 1_234,
            "userName": "ada",
            "operation": "WRITE",
            "operationParameters": {
                "mode": "Append",
                "partitionBy": '["month"]',
                "predicate": None,
                "flag": True,
                "count": 3,
                "map": '{"a":"b"}',
            },
            "readVersion": 0,
            "isolationLevel": "Serializable",
            "isBlindAppend": True,
            "operationMetrics": {"numFiles": "1", "numOutputRows": "10", "p25FileSize": "5"},
            "userMetadata": "nightly",
            "engineInfo": f"deltaic/{__version__}",
            "txnId": "the-id",
        }
    }
    assert {"txn": {"appId": "app", "version": 3, "lastUpdated": 1_234}} in others
    assert committed.version == 1
    assert committed.core.transactions["app"] == (3, 1_234)


def test_the_first_commit_has_no_read_version() -> None:
    store = memory_store()
    create(store)
    names = [next(iter(line)) for line in commit_lines(store, 0)]
    assert names == ["commitInfo", "protocol", "metaData"]
    assert "readVersion" not in commit_lines(store, 0)[0]["commitInfo"]


def test_a_snapshot_after_a_commit_is_the_commits_own_version() -> None:
    snapshot = create(memory_store())
    append(snapshot, "other.parquet")
    committed = append(snapshot, "mine.parquet")
    append(committed, "later.parquet")
    assert committed.version == 2
    assert paths(committed) == ["mine.parquet", "other.parquet"]


def test_ids_are_fresh() -> None:
    snapshot = create(memory_store())
    for version in range(1, 4):
        snapshot = append(snapshot, f"{version}.parquet")
    seen = {commit_lines(snapshot.store, version)[0]["commitInfo"]["txnId"] for version in range(4)}
    assert len(seen) == 4
    assert all(uuid.UUID(text) for text in seen)


def test_one_path_twice_is_refused() -> None:
    snapshot = create(memory_store())
    transaction = staged(snapshot, "a.parquet")
    transaction.add(adds("a.parquet"))
    with pytest.raises(ProtocolError, match=r"a\.parquet"):
        transaction.commit()
    assert snapshot.refresh().version == 0


@pytest.mark.parametrize(("data_change", "isolation"), [(True, "Serializable"), (False, "SnapshotIsolation")])
def test_rearrangement_needs_only_snapshot_isolation(data_change: bool, isolation: str) -> None:
    snapshot = append(create(memory_store()), "a.parquet", "b.parquet")
    transaction = Transaction(snapshot, "OPTIMIZE")
    transaction.read()
    remove(transaction, snapshot, "a.parquet", "b.parquet", data_change=data_change)
    transaction.add(adds("c.parquet", data_change=data_change))
    transaction.commit()
    info = commit_lines(snapshot.store, 2)[0]["commitInfo"]
    assert (info["isolationLevel"], info["isBlindAppend"]) == (isolation, False)


# --- three outcomes


@pytest.mark.parametrize("fault", ["lost", "timeout", "own"])
def test_a_commit_whose_answer_was_lost_is_recognised(fault: str) -> None:
    faults, snapshot = fault_table()
    faults.script = [fault]
    committed = staged(snapshot, "a.parquet").commit()
    assert committed.version == 1
    assert faults.commits == [commit_path(0), commit_path(1)]
    assert paths(Snapshot.load(snapshot.store)) == ["a.parquet"]


@pytest.mark.parametrize(
    "script", [["dropped"], ["phantom"], ["dropped", "phantom", "lost"], ["phantom", "dropped", "own"]]
)
def test_a_put_that_did_not_happen_is_done_again_at_the_same_version_with_the_same_bytes(
    script: list[str],
) -> None:
    faults, snapshot = fault_table()
    faults.puts.clear()
    faults.script = list(script)
    committed = staged(snapshot, "a.parquet").commit()
    assert committed.version == 1
    assert len(set(faults.puts)) == 1
    assert faults.commits == [commit_path(0), commit_path(1)]


def test_an_unknown_put_that_another_writer_beat_goes_on_to_the_next_version() -> None:
    faults, snapshot = fault_table()
    faults.script = ["dropped"]

    def rival(path: str) -> None:
        if len(faults.puts) == 2 and path == commit_path(1):
            faults.before_put = None
            append(snapshot, "rival.parquet")

    faults.before_put = rival
    committed = staged(snapshot, "a.parquet").commit()
    assert committed.version == 2
    assert paths(committed) == ["a.parquet", "rival.parquet"]


def test_where_nobody_can_tell_the_files_are_kept_and_nothing_more_is_written() -> None:
    faults, snapshot = fault_table()
    snapshot.store.put("a.parquet", b"rows")
    faults.script = ["lost"]
    faults.unreadable.add(commit_path(1))
    transaction = staged(snapshot, "a.parquet")
    transaction.written(["a.parquet"])
    with pytest.raises(
        CommitUnknownError, match="did not say whether WRITE was committed as version 1"
    ) as raised:
        transaction.commit()
    assert not isinstance(raised.value, CommitError)
    assert "a.parquet" in faults.objects
    assert faults.commits == [commit_path(0), commit_path(1)]


def test_a_store_that_always_says_exists_and_shows_nothing_is_unknown() -> None:
    faults, snapshot = fault_table()
    faults.script = ["phantom"] * 50
    waits: list[float] = []
    transaction = Transaction(snapshot, "WRITE", sleep=waits.append)
    transaction.add(adds("a.parquet"))
    with pytest.raises(CommitUnknownError):
        transaction.commit()
    assert 0 < sum(waits) < 5


def test_a_definite_failure_takes_the_files_away() -> None:
    faults, snapshot = fault_table()
    for name in ("a%20b.parquet", "a b.parquet", "kept.parquet"):
        snapshot.store.put(name, b"rows")
    faults.script = ["refused"]
    transaction = staged(snapshot, "a%20b.parquet")
    transaction.written(["a%20b.parquet"])
    with pytest.raises(CommitError, match="not allowed to write"):
        transaction.commit()
    assert sorted(path for path in faults.objects if not path.startswith("_")) == [
        "a%20b.parquet",
        "kept.parquet",
    ]


def test_a_failure_after_an_unknown_answer_is_unknown() -> None:
    faults, snapshot = fault_table()
    snapshot.store.put("a.parquet", b"rows")
    faults.script = ["dropped", "refused"]
    transaction = staged(snapshot, "a.parquet")
    transaction.written(["a.parquet"])
    with pytest.raises(CommitUnknownError):
        transaction.commit()
    assert "a.parquet" in faults.objects


@pytest.mark.parametrize(("fault", "kept"), [("stopped", False), ("stopped late", True)])
def test_an_interrupted_commit_keeps_its_files_only_where_it_is_there(fault: str, kept: bool) -> None:
    faults, snapshot = fault_table()
    snapshot.store.put("a.parquet", b"rows")
    faults.script = [fault]
    transaction = staged(snapshot, "a.parquet")
    transaction.written(["a.parquet"])
    with pytest.raises(KeyboardInterrupt):
        transaction.commit()
    assert ("a.parquet" in faults.objects, len(faults.commits) == 2) == (kept, kept)


def test_an_interrupt_before_the_put_takes_the_files_away() -> None:
    faults, snapshot = fault_table()
    snapshot.store.put("a.parquet", b"rows")
    transaction = staged(snapshot, "a.parquet")
    transaction.written(["a.parquet"])

    def stop() -> str:
        raise KeyboardInterrupt

    transaction.new_id = stop
    with pytest.raises(KeyboardInterrupt):
        transaction.commit()
    assert "a.parquet" not in faults.objects
    assert len(faults.commits) == 1


def test_bytes_that_are_equal_do_not_make_a_commit_ours() -> None:
    """Two writers with the same rows, clock and operation: only the id distinguishes them (delta
    #4132011)."""
    faults, snapshot = fault_table()
    one, two = staged(snapshot, "a.parquet"), staged(snapshot, "b.parquet")
    one.clock = two.clock = lambda: 5
    one.commit()
    faults.script = ["lost"]
    assert two.commit().version == 2


# --- conflicts, with real commits


def conflict_table(**properties: Any) -> Snapshot:
    snapshot = create(memory_store(), partitioned=True, properties=properties or None)
    snapshot = append(snapshot, "jan.parquet", month="1", ids=(0, 9))
    return append(snapshot, "feb.parquet", month="2", ids=(100, 109))


def test_appends_do_not_conflict() -> None:
    snapshot = conflict_table()
    assert append(snapshot, "x.parquet", month="1").version == 3
    assert append(snapshot, "y.parquet", month="1").version == 4


@pytest.mark.parametrize(
    ("month", "isolation", "conflicts"),
    [
        ("1", None, True),
        ("2", None, False),
        ("1", "write_serializable", False),
        ("2", "write_serializable", False),
    ],
)
def test_a_blind_append_into_what_was_read(month: str, isolation: Any, conflicts: bool) -> None:
    snapshot = conflict_table()
    append(snapshot, "new.parquet", month=month)
    transaction = Transaction(snapshot, "DELETE", {}, CommitOptions(isolation=isolation))
    transaction.read(month_is(snapshot, "1"))
    remove(transaction, snapshot, "jan.parquet")
    if conflicts:
        with pytest.raises(ConcurrentAppendException, match="version 3") as raised:
            transaction.commit()
        assert (raised.value.winner, raised.value.where) == (3, "new.parquet")
    else:
        assert transaction.commit().version == 4


def test_the_tables_own_isolation_level_counts() -> None:
    snapshot = conflict_table(**{"delta.isolationLevel": "WriteSerializable"})
    append(snapshot, "new.parquet", month="1")
    transaction = Transaction(snapshot, "DELETE")
    transaction.read()
    remove(transaction, snapshot, "jan.parquet")
    assert transaction.commit().version == 4


def test_statistics_tell_that_an_appended_file_was_not_read() -> None:
    snapshot = conflict_table()
    append(snapshot, "high.parquet", month="3", ids=(500, 600))
    transaction = Transaction(snapshot, "UPDATE")
    transaction.read(id_below(snapshot, 50))
    remove(transaction, snapshot, "jan.parquet")
    assert transaction.commit().version == 4


def test_several_reads_add_up() -> None:
    snapshot = conflict_table()
    append(snapshot, "new.parquet", month="2")
    transaction = Transaction(snapshot, "UPDATE")
    transaction.read(month_is(snapshot, "1"))
    transaction.read(month_is(snapshot, "2"))
    remove(transaction, snapshot, "jan.parquet")
    with pytest.raises(ConcurrentAppendException):
        transaction.commit()


def test_a_file_that_was_read_and_removed() -> None:
    snapshot = conflict_table()
    winner = Transaction(snapshot, "DELETE")
    winner.read(month_is(snapshot, "1"))
    remove(winner, snapshot, "jan.parquet")
    winner.commit()
    for reads, expected in (
        (month_is(snapshot, "1"), ConcurrentDeleteReadException),
        (None, ConcurrentDeleteReadException),
    ):
        loser = Transaction(snapshot, "UPDATE")
        loser.read(reads)
        remove(loser, snapshot, "feb.parquet")
        with pytest.raises(expected) as raised:
            loser.commit()
        assert (raised.value.winner, raised.value.where) == (3, "jan.parquet")
    other = Transaction(snapshot, "UPDATE")
    other.read(month_is(snapshot, "2"))
    remove(other, snapshot, "feb.parquet")
    assert other.commit().version == 4


def test_one_file_removed_twice() -> None:
    snapshot = conflict_table()
    for _ in range(2):
        transaction = Transaction(snapshot, "OPTIMIZE")
        remove(transaction, snapshot, "jan.parquet", data_change=False)
        transaction.add(adds(f"{uuid.uuid4()}.parquet", month="1", data_change=False))
        if snapshot.refresh().version == 2:
            transaction.commit()
        else:
            with pytest.raises(ConcurrentDeleteDeleteException, match=r"jan\.parquet"):
                transaction.commit()


def test_rearrangement_beside_appends() -> None:
    snapshot = conflict_table()
    append(snapshot, "new.parquet", month="1")
    transaction = Transaction(snapshot, "OPTIMIZE")
    transaction.read()
    remove(transaction, snapshot, "jan.parquet", data_change=False)
    transaction.add(adds("packed.parquet", month="1", data_change=False))
    assert transaction.commit().version == 4


def test_every_winner_is_asked() -> None:
    snapshot = conflict_table()
    append(snapshot, "a.parquet", month="2")
    append(snapshot, "b.parquet", month="1")
    append(snapshot, "c.parquet", month="2")
    transaction = Transaction(snapshot, "DELETE")
    transaction.read(month_is(snapshot, "1"))
    remove(transaction, snapshot, "jan.parquet")
    with pytest.raises(ConcurrentAppendException) as raised:
        transaction.commit()
    assert raised.value.winner == 4


def change_metadata(snapshot: Snapshot, **properties: Any) -> Transaction:
    protocol, metadata = evolve(snapshot.protocol, snapshot.metadata, properties=properties)
    transaction = Transaction(snapshot, "SET TBLPROPERTIES")
    if protocol != snapshot.protocol:
        transaction.set_protocol(protocol)
    transaction.set_metadata(metadata)
    return transaction


def test_a_change_of_metadata_stops_everybody() -> None:
    snapshot = conflict_table()
    change_metadata(snapshot, **{"delta.checkpointInterval": 5}).commit()
    with pytest.raises(MetadataChangedException, match=r"delta\.checkpointInterval"):
        append(snapshot, "x.parquet", month="1")
    with pytest.raises(MetadataChangedException):
        change_metadata(snapshot, **{"delta.targetFileSize": "1mb"}).commit()


def test_turning_on_vectors_stops_no_append() -> None:
    snapshot = conflict_table()
    change_metadata(snapshot, **{"delta.enableDeletionVectors": "true"}).commit()
    assert append(snapshot, "x.parquet", month="1").version == 4


def test_two_upgrades_of_the_protocol() -> None:
    snapshot = conflict_table()
    change_metadata(snapshot, **{"delta.enableDeletionVectors": "true"}).commit()
    with pytest.raises(ProtocolChangedException):
        change_metadata(snapshot, **{"delta.columnMapping.mode": "name"}).commit()


def test_a_winners_unknown_feature_stops_everybody() -> None:
    snapshot = conflict_table()
    line = {
        "protocol": {
            "minReaderVersion": 1,
            "minWriterVersion": 7,
            "writerFeatures": ["timeTravelToTheFuture"],
        }
    }
    snapshot.store.put(commit_path(3), json.dumps(line).encode())
    with pytest.raises(ProtocolChangedException, match="timeTravelToTheFuture"):
        append(snapshot, "x.parquet", month="1")
    with pytest.raises(UnsupportedFeatureError, match="timeTravelToTheFuture"):
        append(snapshot.refresh(), "x.parquet", month="1")


def test_domains() -> None:
    snapshot = conflict_table(**{"delta.feature.domainMetadata": "supported"})
    one = Transaction(snapshot, "ANALYZE")
    one.set_domain("mine", "{}")
    committed = one.commit()
    assert dict(committed.domains) == {"mine": "{}"}
    two = Transaction(snapshot, "ANALYZE")
    two.set_domain("mine", "[]")
    with pytest.raises(ConcurrentTransactionException, match="domain 'mine'"):
        two.commit()
    gone = Transaction(committed, "ANALYZE")
    gone.set_domain("mine", "", removed=True)
    assert dict(gone.commit().domains) == {}


# --- application transactions


def test_application_transactions() -> None:
    snapshot = conflict_table()
    options = CommitOptions(transactions={"stream": 5})
    assert not already_committed(snapshot, options)
    committed = append(snapshot, "x.parquet", month="1", options=options)
    assert already_committed(committed, options)
    assert already_committed(committed, CommitOptions(transactions={"stream": 4}))
    assert not already_committed(committed, CommitOptions(transactions={"stream": 6}))
    assert not already_committed(committed, CommitOptions(transactions={"stream": 5, "other": 1}))
    assert not already_committed(committed, None)
    with pytest.raises(ConcurrentTransactionException, match="'stream'"):
        append(snapshot, "again.parquet", month="1", options=options)


def test_an_identifier_may_go_back() -> None:
    """Early protocol: transaction identifiers may decrease."""
    snapshot = append(conflict_table(), "x.parquet", month="1", options=CommitOptions(transactions={"a": 5}))
    later = Transaction(snapshot, "WRITE", {}, CommitOptions(transactions={"a": 3}))
    assert later.commit().core.transactions["a"][0] == 3


# --- refusals, retries


def test_an_append_only_table_refuses_removes_that_change_data() -> None:
    snapshot = append(
        create(memory_store(), properties={"delta.appendOnly": "true"}), "a.parquet", "b.parquet"
    )
    transaction = Transaction(snapshot, "DELETE")
    with pytest.raises(AppendOnlyError, match="DELETE would remove rows"):
        remove(transaction, snapshot, "a.parquet")
    rearrange = Transaction(snapshot, "OPTIMIZE")
    remove(rearrange, snapshot, "a.parquet", "b.parquet", data_change=False)
    rearrange.add(adds("ab.parquet", data_change=False))
    assert rearrange.commit().version == 2


def test_max_retries() -> None:
    snapshot = create(memory_store())
    append(snapshot, "a.parquet")
    with pytest.raises(ConcurrentWriteException, match="max_retries=0") as raised:
        append(snapshot, "b.parquet", options=CommitOptions(max_retries=0))
    assert raised.value.winner == 1
    assert append(snapshot, "b.parquet", options=CommitOptions(max_retries=1)).version == 2


def test_the_body_is_built_anew_for_the_next_version() -> None:
    faults, snapshot = fault_table()
    append(snapshot, "first.parquet")
    faults.puts.clear()
    ticks = iter(range(100, 200))
    transaction = staged(snapshot, "second.parquet")
    transaction.clock = lambda: next(ticks)
    transaction.commit()
    infos = [json.loads(body.splitlines()[0])["commitInfo"] for _, body in faults.puts]
    assert [path for path, _ in faults.puts] == [commit_path(1), commit_path(2)]
    assert infos[0]["timestamp"] < infos[1]["timestamp"]
    assert infos[0]["txnId"] != infos[1]["txnId"]


def test_no_commit_goes_into_the_past_where_the_log_was_cleaned() -> None:
    old = create(memory_store())
    newest = append(append(append(old, "1.parquet"), "2.parquet"), "3.parquet")
    checkpoint.write(newest, now=0)
    old.store.delete([commit_path(version) for version in range(3)])
    with pytest.raises(ConcurrentWriteException, match="the log was cleaned") as raised:
        append(old, "late.parquet")
    assert raised.value.winner == 1
    assert old.store.head(commit_path(1)) is None
    old.store.delete([commit_path(3)])  # the checkpoint alone is left
    assert append(newest, "4.parquet").version == 4


# --- races


def test_the_second_of_two_creates_loses_and_changes_nothing() -> None:
    store = memory_store()
    first = create(store)
    with pytest.raises(TableAlreadyExistsError):
        create(store)
    assert Snapshot.load(store).metadata.id == first.metadata.id
    assert Snapshot.load(store).version == 0


@pytest.mark.parametrize("kind", ["memory", "local"])
def test_eight_threads_append_and_none_is_lost(kind: str, tmp_path: Path) -> None:
    store = memory_store() if kind == "memory" else Store(str(tmp_path / "table"), durable=False)
    snapshot = create(store)
    start = threading.Barrier(8)

    def work(writer: int) -> None:
        mine = snapshot
        start.wait()
        for number in range(50):
            mine = append(mine, f"{writer}-{number}.parquet")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    newest = Snapshot.load(store)
    assert newest.version == 400
    assert paths(newest) == sorted(
        f"{writer}-{number}.parquet" for writer in range(8) for number in range(50)
    )
    for version in range(1, 401):
        assert len(commit_lines(store, version)) == 2


@pytest.mark.parametrize("kind", ["memory", "local"])
def test_many_creates_at_once_make_one_table(kind: str, tmp_path: Path) -> None:
    store = memory_store() if kind == "memory" else Store(str(tmp_path / "table"))
    start = threading.Barrier(8)

    def work(_: int) -> bool:
        start.wait()
        try:
            create(store)
        except TableAlreadyExistsError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(work, range(8))) == 1
    assert Snapshot.load(store).version == 0


# --- checkpoints after commits


def test_a_checkpoint_is_written_when_it_is_due() -> None:
    snapshot = create(memory_store(), properties={"delta.checkpointInterval": 3})
    for number in range(1, 8):
        snapshot = append(snapshot, f"{number}.parquet")
    there = [version for version in range(8) if snapshot.store.head(checkpoint_path(version))]
    assert there == [3, 6]
    hint = json.loads(snapshot.store.get(LAST_CHECKPOINT))
    size = snapshot.store.head(checkpoint_path(6))
    assert size is not None
    assert {"version": 6, "size": 8, "sizeInBytes": size[0], "numOfAddFiles": 6}.items() <= hint.items()
    assert paths(Snapshot.load(snapshot.store)) == paths(snapshot)


def test_no_checkpoint_where_the_user_wants_none() -> None:
    snapshot = create(memory_store(), properties={"delta.checkpointInterval": 1})
    snapshot = append(snapshot, "a.parquet", options=CommitOptions(checkpoint=False))
    assert snapshot.store.head(checkpoint_path(1)) is None


def test_a_checkpoint_that_fails_is_logged_and_the_commit_stands(caplog: pytest.LogCaptureFixture) -> None:
    faults, _ = fault_table()
    snapshot = Snapshot.load(Store.from_python(faults, "fault://table"))
    snapshot = change_metadata(snapshot, **{"delta.checkpointInterval": 2}).commit()

    def fail(path: str, data: bytes) -> None:
        raise PermissionError(path)

    faults.write = fail  # type: ignore[method-assign]
    with caplog.at_level(logging.WARNING, "deltaic.log"):
        committed = append(snapshot, "a.parquet")
    assert committed.version == 2
    assert "the checkpoint of version 2 failed" in caplog.text


def test_new_table_definitions_differ() -> None:
    (_, one), (_, two) = new_table("id bigint"), new_table("id bigint")
    assert one.id != two.id
