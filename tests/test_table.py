"""`DeltaTable`: one snapshot, which its own commands move; its attributes, pickling, threads, fork."""

from __future__ import annotations

import gc
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
import weakref
from contextlib import nullcontext
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltaic
from deltaic import DeltaTable
from deltaic.errors import InvalidArgumentError, InvalidTypeError, TableNotFoundError, VersionNotFoundError


def batch(*values: int) -> pa.Table:
    return pa.table({"id": pa.array(values, pa.int64())})


def ids(table: DeltaTable) -> list[int]:
    return sorted(table.scan(["id"]).to_arrow()["id"].to_pylist())


def test_open(tmp_path: Path) -> None:
    deltaic.write(tmp_path / "my table", batch(1))
    deltaic.write(tmp_path / "my table", batch(2), mode="append")
    for path in (
        tmp_path / "my table",
        str(tmp_path / "my table"),
        str(tmp_path / "my table") + "/",
        (tmp_path / "my table").as_uri(),
    ):
        table = DeltaTable(path)
        assert (table.version, ids(table)) == (1, [1, 2])
        assert table.location == str(tmp_path / "my table")
    assert ids(DeltaTable(tmp_path / "my table", version=0)) == [1]
    assert repr(table) == f"DeltaTable({str(tmp_path / 'my table')!r}, version=1)"


def test_relative_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    table = deltaic.write("t", batch(1))
    assert table.location == str(tmp_path / "t")
    deltaic.write("~", batch(1))
    assert (tmp_path / "~").is_dir()


def test_exists_creates_nothing(tmp_path: Path) -> None:
    assert not DeltaTable.exists(tmp_path / "nothing")
    assert not (tmp_path / "nothing").exists()
    with pytest.raises(TableNotFoundError):
        DeltaTable(tmp_path / "nothing")
    assert not (tmp_path / "nothing").exists()
    deltaic.write(tmp_path / "t", batch(1))
    assert DeltaTable.exists(tmp_path / "t")


@pytest.mark.parametrize(
    ("path", "options", "error"),
    [
        ("", {}, InvalidArgumentError),
        (b"bytes", {}, InvalidTypeError),
        (5, {}, InvalidTypeError),
        ("t", {"version": "1"}, InvalidTypeError),
        ("t", {"version": True}, InvalidTypeError),
        ("t", {"version": 0, "timestamp": "2024-01-01"}, InvalidArgumentError),
        ("t", {"spark": object()}, InvalidTypeError),
        ("ftp://host/t", {}, InvalidArgumentError),
    ],
)
def test_bad_arguments(path: Any, options: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        DeltaTable(path, **options)


def test_versions_and_times(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path, batch(1))
    deltaic.write(table, batch(2), mode="append")
    when = [entry["timestamp"] for entry in reversed(table.history())]
    for version, age in enumerate((20, 10)):
        stamp = (datetime.now(timezone.utc) - timedelta(hours=age)).timestamp()
        os.utime(tmp_path / f"_delta_log/{version:020}.json", (stamp, stamp))
    when = [entry["timestamp"] for entry in reversed(table.history())]
    assert table.at(timestamp=when[0]).version == 0
    assert table.at(timestamp=when[1].isoformat()).version == 1
    assert table.at(timestamp=when[0].replace(tzinfo=None)).version == 0
    assert DeltaTable(tmp_path, timestamp="2999-01-01").version == 1
    assert table.at().version == 1
    with pytest.raises(VersionNotFoundError):
        table.at(timestamp=when[0] - timedelta(seconds=1))
    with pytest.raises(VersionNotFoundError, match="expected 0 to 1"):
        table.at(2)


def test_a_table_is_one_snapshot(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path, batch(1))
    rows = table.scan()
    deltaic.write(tmp_path, batch(2), mode="append")
    assert (table.version, ids(table)) == (0, [1])
    table.refresh()
    assert (table.version, ids(table)) == (1, [1, 2])
    assert rows.to_arrow().num_rows == 1
    older = table.at(0)
    assert (older.version, table.version) == (0, 1)


def test_a_command_on_an_old_version_commits_on_top_of_the_newest(tmp_path: Path) -> None:
    old = deltaic.write(tmp_path, batch(1))
    deltaic.write(tmp_path, batch(2), mode="append")
    deltaic.write(old, batch(3), mode="append")
    assert (old.version, ids(old)) == (2, [1, 2, 3])


def test_detail(tmp_path: Path) -> None:
    table = deltaic.write(
        tmp_path,
        pa.table({"id": [1], "p": ["x"]}),
        partition_by="p",
        name="n",
        description="d",
        properties={"mine": "1"},
    )
    detail = table.detail()
    size = sum(path.stat().st_size for path in tmp_path.rglob("*.parquet"))
    assert (detail.format, detail.id, detail.name, detail.description) == (
        "delta",
        table.metadata.id,
        "n",
        "d",
    )
    assert (detail.location, detail.partition_columns, detail.clustering_columns) == (
        str(tmp_path),
        ("p",),
        (),
    )
    assert (detail.num_files, detail.size_in_bytes) == (1, size)
    assert dict(detail.properties) == {"mine": "1", "delta.enableDeletionVectors": "true"}
    assert (detail.min_reader_version, detail.min_writer_version) == (3, 7)
    assert "deletionVectors" in detail.table_features
    assert detail.created_at is not None
    assert detail.last_modified is not None
    assert abs(datetime.now(timezone.utc) - detail.created_at) < timedelta(minutes=5)
    assert abs(datetime.now(timezone.utc) - detail.last_modified) < timedelta(minutes=5)


def test_history(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path, batch(1))
    deltaic.write(table, batch(2), mode="append")
    newest, first = table.history()
    assert (newest["version"], newest["readVersion"], first["version"]) == (1, 0, 0)
    assert newest["timestamp"].tzinfo is not None
    assert [entry["version"] for entry in table.history(1)] == [1]
    assert [entry["version"] for entry in table.at(0).history()] == [0]


def test_pickle_carries_path_and_version(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path, batch(1))
    deltaic.write(tmp_path, batch(2), mode="append")
    again = pickle.loads(pickle.dumps(table))
    assert (again.version, again.location, ids(again)) == (0, table.location, [1])


def test_pickle_leaves_secrets_behind(tmp_path: Path) -> None:
    deltaic.write(tmp_path, batch(1))
    options = {
        "aws_secret_access_key": "hush",
        "session_token": "hush",
        "sas": "hush",
        "password": "hush",
        "region": "eu",
    }
    table = DeltaTable(tmp_path, storage_options=options)
    assert table.storage_options == options
    text = pickle.dumps(table)
    assert b"hush" not in text
    assert pickle.loads(text).storage_options == {"region": "eu"}
    assert "hush" not in repr(table)
    with deltaic.configure(pickle_credentials=True):
        assert pickle.loads(pickle.dumps(table)).storage_options == options


def test_threads_share_a_table(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path, batch(0))
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for _ in range(5):
                deltaic.write(table, batch(number), mode="append")
                assert 0 in ids(table)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert ids(DeltaTable(tmp_path)) == sorted([0, *(number for number in range(1, 5) for _ in range(5))])


def _in_child(path: str, queue: Any) -> None:
    table = DeltaTable(path)
    deltaic.write(table, batch(2), mode="append")
    queue.put(ids(table))


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_after_a_fork(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path, batch(1))
    assert ids(table) == [1]
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_in_child, args=(str(tmp_path), queue))
    child.start()
    assert queue.get(timeout=60) == [1, 2]
    child.join(60)
    assert child.exitcode == 0
    table.refresh()
    assert ids(table) == [1, 2]


def test_a_users_own_store() -> None:
    from fault_store import FaultStore

    stores: dict[str, FaultStore] = {}

    def factory(location: str, options: Any) -> FaultStore:
        return stores.setdefault(location, FaultStore())

    with deltaic.configure(log_stores={"mine": factory}):
        table = deltaic.write("mine://bucket/t", batch(1))
        deltaic.write("mine://bucket/t", batch(2), mode="append")
        assert ids(DeltaTable("mine://bucket/t")) == [1, 2]
    assert table.location == "mine://bucket/t"
    assert len(stores["mine://bucket/t"].commits) == 2


@pytest.mark.parametrize("fails", [False, True])
def test_nothing_keeps_a_users_store_after_a_read(tmp_path: Path, fails: bool) -> None:
    """The error of a read leads to the frames of its caller, and they to the stream that keeps the error."""
    from fault_store import FaultStore

    objects: dict[str, tuple[bytes, int]] = {}
    made: list[weakref.ref[FaultStore]] = []

    def factory(location: str, options: Any) -> FaultStore:
        store = FaultStore()
        store.objects = objects
        store.unreadable = {path for path in objects if fails and path.endswith(".parquet")}
        made.append(weakref.ref(store))
        return store

    with deltaic.configure(log_stores={"mine": factory}):
        deltaic.write("mine://bucket/t", batch(1))
        for _ in range(3):
            table = DeltaTable("mine://bucket/t")
            with pytest.raises(ConnectionError, match="no answer for") if fails else nullcontext():
                table.scan().to_arrow()
            del table
    ids(deltaic.write(tmp_path, batch(1)))  # a call into the core frees what other threads have dropped
    gc.collect()
    ids(DeltaTable(tmp_path))
    assert [store() for store in made] == [None] * 4


def test_checkpoint_and_clean_log(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path, batch(1))
    deltaic.write(table, batch(2), mode="append")
    table.checkpoint()
    assert (tmp_path / f"_delta_log/{1:020}.checkpoint.parquet").exists()
    table.clean_log()
    assert ids(DeltaTable(tmp_path, version=0)) == [1]


def test_importing_the_front_door_loads_no_engine() -> None:
    heavy = ("duckdb", "sqlglot", "rich", "typer")
    code = (
        f"import deltaic, sys; deltaic.DeltaTable, deltaic.write; print([name for name in {heavy} if name in"
        " sys.modules])"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True
    )
    assert found.stdout.strip() == "[]"
