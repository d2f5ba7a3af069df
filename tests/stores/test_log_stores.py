"""The LogStores that come with deltaic: the usual work with tables succeeds in them, and each lets only one
writer commit a version."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from test_behaviours import (
    test_a_file_of_several_parts,
    test_a_table_is_made_changed_and_read,
    test_a_table_without_its_log_is_none,
    test_maintenance,
    test_many_versions_are_read_from_a_checkpoint,
    test_partitions_with_any_text,
    test_sql_and_pickles,
)

import deltaic
from deltaic import DeltaTable, DynamoDBLogStores, FileLocks, LockedLogStores, _core
from deltaic.errors import CommitError, InvalidArgumentError, InvalidTypeError, UnsupportedFeatureError
from deltaic.log.store import open_store
from store_servers import S3, SECRET, Place
from test_store import test_listing_is_sorted_and_begins_after, test_no_path_leaves_the_root

__all__ = [
    "test_a_file_of_several_parts",
    "test_a_table_is_made_changed_and_read",
    "test_a_table_without_its_log_is_none",
    "test_listing_is_sorted_and_begins_after",
    "test_maintenance",
    "test_many_versions_are_read_from_a_checkpoint",
    "test_no_path_leaves_the_root",
    "test_partitions_with_any_text",
    "test_sql_and_pickles",
]

ROW = pa.table({"id": pa.array([1], pa.int64())})


@contextmanager
def log_stores(**stores: object) -> Iterator[None]:
    """The process's LogStores, threads included."""
    deltaic.configure(log_stores=stores)  # type: ignore[arg-type]
    try:
        yield
    finally:
        deltaic.configure(log_stores={})


def without_put_if_absent(s3: S3) -> AbstractContextManager[object]:
    """Makes the server replace an existing object, even if the request forbids it."""
    return s3.server.fault("blind", lambda request: request.method == "PUT", times=1 << 30)


@pytest.fixture(
    params=["local, file locks", "s3, file locks", "s3, DynamoDB", "s3 without put-if-absent, DynamoDB"]
)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    if request.param.startswith("local"):
        with log_stores(file=LockedLogStores()):
            yield Place(str(tmp_path), {})
        return
    s3: S3 = request.getfixturevalue("s3")
    by_lock = request.param.endswith("locks")
    stores = (
        LockedLogStores(FileLocks(tmp_path)) if by_lock else DynamoDBLogStores(endpoint_url=s3.server.url)
    )
    blind = without_put_if_absent(s3) if by_lock or "without" in request.param else nullcontext()
    with log_stores(s3=stores, s3a=stores), blind:
        place = s3.place()
        # Other options are another store, for which this process has no proof of put-if-absent yet.
        yield replace(place, options={**place.options, "user_agent": uuid.uuid4().hex})


@pytest.fixture
def store(place: Place) -> _core.Store:
    return open_store(place.at(), place.options)


def test_ranges_of_objects(store: _core.Store, place: Place) -> None:
    made, arguments = store.__reduce__()[:2]  # type: ignore[misc]
    assert made is _core.Store.from_python
    own = arguments[0]
    assert [own.write_if_absent("a b/ü", data) for data in (b"first", b"second")] == [True, False]
    assert own.read("a b/ü") == b"first"
    own.write("a b/ü", b"0123456789")
    assert [own.read("a b/ü", *ends) for ends in ((), (3,), (3, 5), (0, 4), (8, 99), (5, 5))] == [
        b"0123456789",
        b"3456789",
        b"34",
        b"0123",
        b"89",
        b"",
    ]
    assert own.read("a b/ü", 20, 30) == b""
    with pytest.raises(FileNotFoundError):
        own.read("a b/none", 1, 2)
    assert (own.delete("a b/ü"), own.head("a b/ü")) == (True, None)


def test_of_writers_of_one_version_one_wins(place: Place) -> None:
    deltaic.write(place.at(), ROW, storage_options=place.options)

    def write(number: int) -> bool | None:
        own = open_store(place.at(), place.options).__reduce__()[1][0]  # type: ignore[index]
        return own.write_if_absent(f"_delta_log/{1:020}.json", b"%d" % number)

    with ThreadPoolExecutor(6) as pool:
        outcomes = list(pool.map(write, range(6)))
    assert sorted(outcomes, key=str) == [False] * 5 + [True]
    assert open_store(place.at(), place.options).get(f"_delta_log/{1:020}.json") == b"%d" % outcomes.index(
        True
    )


def test_writers_that_meet_lose_nothing(place: Place) -> None:
    deltaic.write(place.at(), ROW, storage_options=place.options)
    start = threading.Barrier(4)

    def append(number: int) -> None:
        start.wait()
        for each in range(3):
            row = pa.table({"id": pa.array([number * 10 + each], pa.int64())})
            deltaic.write(place.at(), row, mode="append", storage_options=place.options)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(append, range(1, 5)))
    table = DeltaTable(place.at(), storage_options=place.options)
    assert table.version == 12
    expected = [1, *(number * 10 + each for number in range(1, 5) for each in range(3))]
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == sorted(expected)


def test_stores_pickle_without_secrets(place: Place) -> None:
    deltaic.write(place.at(), ROW, storage_options=place.options)
    data = pickle.dumps(open_store(place.at(), place.options))
    assert SECRET.encode() not in data
    if not place.options:
        assert pickle.loads(data).get(f"_delta_log/{0:020}.json")


# --- locks


def test_every_commit_is_put_inside_of_the_lock(tmp_path: Path) -> None:
    inside: list[str] = []
    entered: list[str] = []
    held = threading.Lock()

    @contextmanager
    def lock(location: str) -> Iterator[None]:
        with held:
            entered.append(location)
            inside.append(location)
            yield
            inside.clear()

    with log_stores(file=LockedLogStores(lock)):
        deltaic.write(tmp_path, ROW)
        deltaic.write(tmp_path, ROW, mode="append")
    assert set(entered) == {tmp_path.as_posix()}
    assert len(entered) >= 2
    assert not inside


def test_a_lock_that_is_not_had_leaves_the_table(tmp_path: Path) -> None:
    deltaic.write(tmp_path, ROW)
    before = sorted(tmp_path.rglob("*"))

    def lock(location: str) -> AbstractContextManager[None]:
        raise ConnectionRefusedError("the lock's server is down")

    with log_stores(file=LockedLogStores(lock)), pytest.raises(deltaic.errors.DeltaError):
        deltaic.write(tmp_path, ROW, mode="append")
    assert DeltaTable(tmp_path).version == 0
    assert sorted(path for path in tmp_path.rglob("*") if path.suffix == ".json") == [
        path for path in before if path.suffix == ".json"
    ]


def test_a_commit_whose_lock_fails_at_its_end_is_there_once(tmp_path: Path) -> None:
    deltaic.write(tmp_path, ROW)

    @contextmanager
    def lock(location: str) -> Iterator[None]:
        yield
        raise OSError("the lock expired")

    with log_stores(file=LockedLogStores(lock)):
        assert deltaic.write(tmp_path, ROW, mode="append").version == 1
    assert DeltaTable(tmp_path).scan().count() == 2


HOLD = """
import sys, time
from deltaic import FileLocks
with FileLocks()(sys.argv[1]):
    print("held", flush=True)
    time.sleep(float(sys.argv[2]))
"""


@contextmanager
def held_elsewhere(folder: Path, seconds: float) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder), str(seconds)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_a_file_lock_is_waited_for_and_goes_with_its_process(tmp_path: Path) -> None:
    deltaic.write(tmp_path, ROW)
    with held_elsewhere(tmp_path, 600) as process:
        with (
            log_stores(file=LockedLogStores(FileLocks(timeout=0.2))),
            pytest.raises(CommitError, match=r"no lock within 0\.2 s.*\.lock"),
        ):
            deltaic.write(tmp_path, ROW, mode="append")
        assert DeltaTable(tmp_path).version == 0
        threading.Timer(0.3, process.kill).start()
        with log_stores(file=LockedLogStores()):
            start = time.monotonic()
            assert deltaic.write(tmp_path, ROW, mode="append").version == 1
        assert time.monotonic() - start > 0.2


def test_threads_wait_for_a_file_lock_too(tmp_path: Path) -> None:
    (tmp_path / "_delta_log").mkdir()
    with (
        FileLocks()(str(tmp_path)),
        ThreadPoolExecutor(1) as pool,
        pytest.raises(CommitError, match="no lock"),
    ):
        pool.submit(lambda: FileLocks(timeout=0.05)(str(tmp_path)).__enter__()).result()
    for timeout in (0, float("inf")):
        with FileLocks(timeout=timeout)(str(tmp_path)):
            pass


@pytest.mark.skipif(sys.platform == "win32", reason="a system without fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_child_does_not_hold_its_parents_locks(tmp_path: Path) -> None:
    with FileLocks()(str(tmp_path)):
        child = os.fork()
        if child == 0:
            try:
                with FileLocks(timeout=0.05)(str(tmp_path)):
                    os._exit(1)
            except CommitError:
                os._exit(0)
            finally:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    child = os.fork()
    if child == 0:
        try:
            with FileLocks(timeout=5)(str(tmp_path)):
                os._exit(0)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


PROCESS = """
import sys
import pyarrow as pa, deltaic
with deltaic.configure(log_stores={"file": deltaic.LockedLogStores()}):
    for each in range(5):
        rows = pa.table({"id": pa.array([int(sys.argv[2]) * 10 + each], pa.int64())})
        deltaic.write(sys.argv[1], rows, mode="append")
"""


def test_processes_lose_nothing_by_file_locks(tmp_path: Path) -> None:
    deltaic.write(tmp_path, ROW)
    processes = [
        subprocess.Popen([sys.executable, "-c", PROCESS, str(tmp_path), str(number)]) for number in (1, 2, 3)
    ]
    assert [process.wait() for process in processes] == [0, 0, 0]
    table = DeltaTable(tmp_path)
    assert (table.version, len(set(table.scan().to_arrow()["id"].to_pylist()))) == (15, 16)


def test_links_that_lead_out_are_not_read(tmp_path: Path) -> None:
    root = tmp_path / "t"
    root.mkdir()
    (tmp_path / "secret").write_bytes(b"outside")
    (root / "out").symlink_to(tmp_path / "secret")
    (root / "file").write_bytes(b"inside")
    (root / "in").symlink_to("file")
    store = LockedLogStores()(str(root), {})
    assert store.read("in", 1, 3) == b"ns"
    for ends in ((), (1, 3)):
        with pytest.raises(deltaic.errors.PathOutsideTableError):
            store.read("out", *ends)
    assert [path for path, _, _ in store.list_from("", None, True)] == ["file"]


def test_what_makes_no_sense_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidTypeError, match="lock is not a function"):
        LockedLogStores("lock")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="timeout"):
        FileLocks(timeout=-1)
    with pytest.raises(InvalidArgumentError, match="a folder that all writers share"):
        FileLocks()("s3://bucket/table")
    with pytest.raises(UnsupportedFeatureError, match="put-if-absent of its own"):
        LockedLogStores()("gs://bucket/table", {})
    with pytest.raises(UnsupportedFeatureError, match="only be used for tables in S3"):
        DynamoDBLogStores()(str(tmp_path), {})
    with pytest.raises(InvalidArgumentError, match="scheme"):
        DynamoDBLogStores(scheme="gs")
    with pytest.raises(InvalidTypeError, match="table"):
        DynamoDBLogStores(table="")
