"""Compacted ranges of the log: PROTOCOL.md, Log Compaction Files."""

from __future__ import annotations

import json
from typing import Any

import pytest

import deltaic
from deltaic._core import Store
from deltaic.errors import InvalidArgumentError, ProtocolError, VersionNotFoundError
from deltaic.log import compaction
from deltaic.log.compaction import compacted_path
from deltaic.log.segment import commit_path
from deltaic.log.snapshot import Snapshot
from deltaic.options import CommitOptions
from deltaic.transaction.transaction import Transaction
from log_actions import append, create, memory_store, paths, remove
from numbered_store import NumberedStore


def lines(store: Store, path: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in store.get(path).splitlines()]


def table(versions: int, store: Store | None = None) -> Snapshot:
    snapshot = create(store or memory_store(), properties={"delta.checkpointInterval": "1000"})
    for version in range(1, versions + 1):
        snapshot = append(snapshot, f"{version}.parquet")
    return snapshot


def test_the_protocols_example() -> None:
    """PROTOCOL.md: commits 4 to 6 of its example."""
    store = memory_store()
    definition = [
        line for line in lines(create(memory_store()).store, commit_path(0)) if "commitInfo" not in line
    ]

    def file(path: str) -> dict[str, Any]:
        return {"path": path, "partitionValues": {}, "size": 1, "modificationTime": 1, "dataChange": True}

    def gone(path: str) -> dict[str, Any]:
        return {"path": path, "deletionTimestamp": 2, "dataChange": True}

    def txn(version: int) -> dict[str, Any]:
        return {"txn": {"appId": "3ae45b72", "version": version}}

    commits = [
        [*definition, {"add": file("f1")}],
        *[[{"commitInfo": {}}]] * 3,
        [{"commitInfo": {}}, {"add": file("f2")}, {"remove": gone("f1")}],
        [{"commitInfo": {}}, {"add": file("f3")}, {"add": file("f4")}, txn(4389)],
        [{"commitInfo": {}}, {"remove": gone("f3")}, txn(4390)],
    ]
    for version, actions in enumerate(commits):
        store.put(commit_path(version), "".join(json.dumps(action) + "\n" for action in actions).encode())
    path = compaction.compact(Snapshot.load(store), 4, 6)
    assert path == "_delta_log/00000000000000000004.00000000000000000006.compacted.json"
    found = lines(store, path)
    assert [line["add"] for line in found if "add" in line] == [file("f2"), file("f4")]
    assert [line["remove"] for line in found if "remove" in line] == [gone("f1"), gone("f3")]
    assert [line for line in found if "txn" in line] == [txn(4390)]
    assert len(found) == 5
    assert paths(Snapshot.load(store)) == ["f2", "f4"]


def test_it_is_read_instead_of_its_commits() -> None:
    counted = NumberedStore()
    snapshot = table(6, Store.from_python(counted, "counted://table"))
    compaction.compact(snapshot, 1, 5)
    counted.reset()
    again = Snapshot.load(snapshot.store)
    assert paths(again) == [f"{number}.parquet" for number in range(1, 7)]
    read = {path for method, path in counted.calls if method == "read" and path.endswith("json")}
    assert read == {commit_path(0), compacted_path(1, 5), commit_path(6)}


def test_a_refresh_reads_it_too() -> None:
    counted = NumberedStore()
    store = Store.from_python(counted, "counted://table")
    old = table(1, store)
    newest = append(append(append(old, "2.parquet"), "3.parquet"), "4.parquet")
    compaction.compact(newest, 2, 4)
    compaction.compact(newest, 1, 4)
    counted.reset()
    assert paths(old.refresh()) == paths(newest)
    assert [path for method, path in counted.calls if method == "read"] == [compacted_path(2, 4)]
    assert [method for method, _ in counted.calls] == ["list", "read"]


@pytest.mark.parametrize(
    "damage",
    [b"", b"{", b"not json\n", b"\xff", b'{"add":{"path":""}}\n'],
    ids=["empty", "cut", "text", "bytes", "no path"],
)
def test_a_broken_one_is_replaced_by_its_commits(damage: bytes) -> None:
    old = table(1)
    newest = append(append(old, "2.parquet"), "3.parquet")
    for first in (0, 2):
        newest.store.put(compacted_path(first, 3), damage)
    assert paths(Snapshot.load(newest.store)) == paths(newest)
    assert paths(old.refresh()) == paths(newest)


def test_one_with_a_file_twice_is_broken() -> None:
    old = table(1)
    newest = append(append(old, "2.parquet"), "3.parquet")
    path = compaction.compact(newest, 2, 3)
    body = newest.store.get(path)
    newest.store.put(path, body + b'{"remove":{"path":"3.parquet","dataChange":true}}\n')
    with pytest.raises(ProtocolError, match=r"a file twice in one compacted range; found 3\.parquet"):
        old.core.refresh(old.store, [(3, path)])
    assert paths(Snapshot.load(newest.store)) == paths(newest)


def test_a_commit_at_fault_is_named_once() -> None:
    counted = NumberedStore()
    newest = table(6, Store.from_python(counted, "counted://table"))
    compaction.compact(newest, 1, 3)
    newest.store.put(commit_path(5), b'{"add":\n')
    counted.reset()
    with pytest.raises(ProtocolError, match=rf"{5:020}\.json:1"):
        Snapshot.load(newest.store)
    assert [path for _, path in counted.calls].count(commit_path(5)) == 1


def test_what_ended_in_the_range_ends_what_came_before() -> None:
    store = memory_store()
    snapshot = create(store, properties={"delta.feature.domainMetadata": "supported"})
    for configuration, removed in (("1", False), ("1", True), ("2", False), ("2", True)):
        transaction = Transaction(snapshot, "SET", {})
        transaction.set_domain("mine", configuration, removed=removed)
        snapshot = transaction.commit()
    path = compaction.compact(snapshot, 2, 4)
    assert [line["domainMetadata"]["removed"] for line in lines(store, path)] == [True]
    assert Snapshot.load(store).domains == {}
    assert Snapshot.load(store, version=1).domains == {"mine": "1"}


def test_files_that_came_and_went_leave_a_tombstone() -> None:
    snapshot = append(table(1), "x.parquet", options=CommitOptions(transactions={"a": 1}))
    transaction = Transaction(snapshot, "DELETE")
    remove(transaction, snapshot, "x.parquet")
    snapshot = append(transaction.commit(), "y.parquet", options=CommitOptions(transactions={"a": 2}))
    found = lines(snapshot.store, compaction.compact(snapshot, 2, 4))
    assert [next(iter(line)) for line in found] == ["txn", "remove", "add"]
    assert found[0]["txn"]["version"] == 2
    assert [found[1]["remove"]["path"], found[2]["add"]["path"]] == ["x.parquet", "y.parquet"]


def test_one_that_is_there_stays() -> None:
    snapshot = table(3)
    snapshot.store.put(compacted_path(1, 2), b"mine")
    compaction.compact(snapshot, 1, 2)
    assert snapshot.store.get(compacted_path(1, 2)) == b"mine"


@pytest.mark.parametrize(
    ("first", "last", "error"),
    [
        (1, 1, InvalidArgumentError),
        (2, 1, InvalidArgumentError),
        (-1, 2, InvalidArgumentError),
        (True, 2, InvalidArgumentError),
        (0, "2", InvalidArgumentError),
        (0, 4, VersionNotFoundError),
        (5, 9, VersionNotFoundError),
    ],
)
def test_no_such_range(first: Any, last: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        compaction.compact(table(3), first, last)


def test_a_commit_that_is_gone() -> None:
    snapshot = table(3)
    snapshot.store.delete([commit_path(1)])
    with pytest.raises(VersionNotFoundError, match="no such commit to compact; found 1"):
        compaction.compact(snapshot, 0, 2)


def test_every_so_many_commits_where_the_user_asks_for_it() -> None:
    with deltaic.configure(log_compaction_interval=3):
        snapshot = table(7)
    there = {
        path
        for path in snapshot.store.list_from("_delta_log").column("path").to_pylist()
        if "compacted" in path
    }
    assert there == {compacted_path(0, 2), compacted_path(3, 5)}
    snapshot = append(snapshot, "8.parquet")
    assert snapshot.store.head(compacted_path(6, 8)) is None
    with pytest.raises(InvalidArgumentError):
        deltaic.configure(log_compaction_interval=1)


def test_by_the_front_door(tmp_path: Any) -> None:
    import pyarrow as pa

    table = deltaic.write(tmp_path, pa.table({"id": [1]}))
    for number in (2, 3):
        table = deltaic.write(table, pa.table({"id": [number]}), mode="append")
    table.compact_log(0, 2)
    assert (tmp_path / compacted_path(0, 2)).exists()
    assert sorted(deltaic.DeltaTable(tmp_path).scan().to_arrow()["id"].to_pylist()) == [1, 2, 3]
    deltalake = pytest.importorskip("deltalake")
    assert len(deltalake.DeltaTable(str(tmp_path)).file_uris()) == 3
