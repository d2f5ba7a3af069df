"""The store: atomic and durable puts, sorted listings, and paths that never leave the root, for each kind of
store."""

from __future__ import annotations

import errno
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

import deltaic
from deltaic import _core
from deltaic.errors import CommitError, InvalidArgumentError, PathOutsideTableError
from deltaic.log.store import locate


class DictStore:
    """A LogStore over a dict: unsorted listings, whole folders, as a careless author would write it."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.fail: BaseException | None = None
        self.after: BaseException | None = None

    def list_from(self, prefix: str, start_after: str | None, recursive: bool) -> list[tuple[str, int, int]]:
        return [(path, len(data), 5) for path, data in sorted(self.objects.items(), reverse=True)]

    def head(self, path: str) -> tuple[int, int] | None:
        return (len(self.objects[path]), 5) if path in self.objects else None

    def read(self, path: str, start: int = 0, end: int | None = None) -> bytes:
        if path not in self.objects:
            raise FileNotFoundError(path)
        return self.objects[path][start:end]

    def write_if_absent(self, path: str, data: bytes) -> bool | None:
        if self.fail:
            raise self.fail
        if path in self.objects:
            return False
        self.objects[path] = data
        if self.after:
            raise self.after
        return True

    def write(self, path: str, data: bytes) -> None:
        self.objects[path] = data

    def delete(self, path: str) -> bool:
        return self.objects.pop(path, None) is not None


@pytest.fixture(params=["local", "portable", "memory", "python"])
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> _core.Store:
    if request.param == "portable":  # the local store with the calls that Windows uses
        monkeypatch.setenv("DELTAIC_LOCAL_STORE", "portable")
    if request.param in ("local", "portable"):
        return _core.Store(str(tmp_path / "table"))
    if request.param == "memory":
        return _core.Store(f"memory://{uuid.uuid4()}/table")
    return _core.Store.from_python(DictStore(), "dict://table")


def paths(listing: object) -> list[str]:
    return listing["path"].to_pylist()  # type: ignore[index]


def test_put_get_head_delete(store: _core.Store) -> None:
    assert store.head("a/b") is None
    with pytest.raises(FileNotFoundError, match="a/b"):
        store.get("a/b")
    assert store.put_if_absent("a/b", b"one") == "created"
    assert store.put_if_absent("a/b", b"two") == "exists"
    assert store.get("a/b") == b"one"
    store.put("a/b", b"three")
    assert store.get("a/b") == b"three"
    head = store.head("a/b")
    assert head is not None
    assert head[0] == 5
    assert store.delete(["a/b", "a/c"]) == 1
    assert store.head("a/b") is None
    assert store.put_if_absent("empty", b"") == "created"
    assert store.get("empty") == b""


def test_listing_is_sorted_and_begins_after(store: _core.Store) -> None:
    names = [
        "_delta_log/00000000000000000010.json",
        "_delta_log/00000000000000000002.json",
        "_delta_log/_last_checkpoint",
        "_delta_log/x/y",
        "z",
        "a%20b",
    ]
    for name in names:
        store.put(name, b"12")
    assert paths(store.list_from("_delta_log")) == sorted(n for n in names if n.count("/") == 1)
    assert paths(store.list_from("_delta_log/", "00000000000000000002.json")) == [names[0], names[2]]
    assert paths(store.list_from("_delta_log", "00000000000000000003")) == [names[0], names[2]]
    assert paths(store.list_from("", recursive=True)) == sorted(names)
    assert paths(store.list_from("")) == ["a%20b", "z"]
    assert store.list_from("nowhere").num_rows == 0
    assert store.list_from("_delta_log").schema.names == ["path", "size", "modification_time", "symlink"]
    assert set(store.list_from("_delta_log")["size"].to_pylist()) == {2}


@pytest.mark.parametrize(
    "path", ["../x", "a/../../x", "/etc/passwd", "", "a//b", "a\0b", "a/./b", "a/", "..", "a\\..\\b"]
)
def test_no_path_leaves_the_root(store: _core.Store, path: str) -> None:
    for use in (
        store.get,
        store.head,
        lambda p: store.put(p, b""),
        lambda p: store.put_if_absent(p, b""),
        lambda p: store.delete([p]),
    ):
        with pytest.raises(PathOutsideTableError):
            use(path)


def test_unknown_kind_of_location_is_named() -> None:
    with pytest.raises(InvalidArgumentError, match=r"ftp://host/x.*found ftp") as info:
        _core.Store("ftp://host/x?signature=secret")
    assert "secret" not in str(info.value)
    assert info.value.found == "ftp"
    with pytest.raises(InvalidArgumentError, match="memory://name"):
        _core.Store("memory://")
    with pytest.raises(PathOutsideTableError):
        _core.Store("file://host/x")


def test_location_is_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert _core.Store("a/../b").location == str(tmp_path / "b")
    assert _core.Store(f"file://{tmp_path}/with%20space").location == str(tmp_path / "with space")
    assert _core.Store("memory://m/t/").location == "memory://m/t"
    assert not (tmp_path / "b").exists()


def test_memory_is_shared_by_name_within_the_process() -> None:
    name = uuid.uuid4()
    _core.Store(f"memory://{name}/a").put("x", b"1")
    assert _core.Store(f"memory://{name}/a").get("x") == b"1"
    assert _core.Store(f"memory://{name}").get("a/x") == b"1"
    assert _core.Store(f"memory://{name}/b").head("x") is None


def test_put_if_absent_race_has_one_winner(store: _core.Store) -> None:
    for turn in range(20):
        barrier = threading.Barrier(16)

        def put(writer: int, turn: int = turn, barrier: threading.Barrier = barrier) -> str:
            barrier.wait()
            return store.put_if_absent(f"log/{turn:020}.json", b"%d" % writer)

        with ThreadPoolExecutor(16) as pool:
            outcomes = list(pool.map(put, range(16)))
        assert sorted(outcomes) == ["created"] + ["exists"] * 15
        assert store.get(f"log/{turn:020}.json") == b"%d" % outcomes.index("created")
    assert store.list_from("log").num_rows == 20, "staged files are left"


def test_nothing_is_left_when_a_put_fails(tmp_path: Path) -> None:
    store = _core.Store(str(tmp_path))
    (tmp_path / "file").write_bytes(b"")
    for put in (store.put, store.put_if_absent):
        with pytest.raises(OSError, match="file/x"):
            put("file/x", b"1")
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder"):
        store.put("folder", b"1")
    assert sorted(os.listdir(tmp_path)) == ["file", "folder"]


def test_delete_follows_no_link(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_bytes(b"1")
    root = tmp_path / "table"
    root.mkdir()
    (root / "folder").symlink_to(outside)
    (root / "file").symlink_to(outside / "precious")
    store = _core.Store(str(root))
    with pytest.raises(OSError, match="nothing behind it is deleted"):
        store.delete(["folder/precious"])
    assert (outside / "precious").exists()
    listed = store.list_from("", recursive=True)
    assert listed.select(["path", "symlink"]).to_pylist() == [
        {"path": "file", "symlink": True},
        {"path": "folder", "symlink": True},
    ]
    assert store.delete(["file"]) == 1
    assert (outside / "precious").exists()
    assert not (root / "file").is_symlink()
    assert store.remove_empty_directories() == 0
    assert (root / "folder").is_symlink()


def test_empty_folders_go_and_others_stay(tmp_path: Path) -> None:
    store = _core.Store(str(tmp_path))
    store.put("a/b/c", b"")
    (tmp_path / "x/y/z").mkdir(parents=True)
    assert store.remove_empty_directories() == 3
    assert sorted(os.listdir(tmp_path)) == ["a"]
    store.delete(["a/b/c"])
    assert store.remove_empty_directories("a") == 1
    assert sorted(os.listdir(tmp_path)) == ["a"]


def test_a_user_store_says_unknown_and_keeps_its_exceptions() -> None:
    made = DictStore()
    store = _core.Store.from_python(made, "dict://t")
    made.after = TimeoutError("lost")
    assert store.put_if_absent("a", b"1") == "unknown"
    assert store.get("a") == b"1"
    made.after, made.fail = None, ConnectionResetError("lost")
    assert store.put_if_absent("b", b"1") == "unknown"
    assert store.head("b") is None
    made.fail = FileExistsError("there")
    assert store.put_if_absent("b", b"1") == "exists"
    made.fail = ZeroDivisionError("theirs")
    with pytest.raises(ZeroDivisionError, match="theirs") as info:
        store.put_if_absent("c", b"1")
    assert info.value is made.fail


def test_stores_pickle_without_secrets(tmp_path: Path) -> None:
    store = _core.Store(
        str(tmp_path),
        {"region": "x", "aws_secret_access_key": "canary"},
        durable=False,
        allowed_roots=["/data"],
    )
    data = pickle.dumps(store)
    assert b"canary" not in data
    assert b"region" in data
    again = pickle.loads(data)
    assert again.location == store.location
    again.put("x", b"1")
    assert store.get("x") == b"1"
    assert "canary" not in repr(store)


def test_durable_puts_reach_the_disk_in_order(tmp_path: Path) -> None:
    """fsync of the file, then the link, then fsync of the folder: seen from outside."""
    trace = tmp_path / "trace"
    script = (
        f"from deltaic import _core; _core.Store({str(tmp_path / 't')!r}).put_if_absent('log/0.json', b'1')"
    )
    try:
        subprocess.run(
            [
                "strace",
                "-f",
                "-e",
                "trace=fsync,fdatasync,link,linkat,mkdir",
                "-o",
                str(trace),
                sys.executable,
                "-c",
                script,
            ],
            check=True,
        )
    except FileNotFoundError:
        pytest.skip("no strace here")
    calls = [line.split(None, 1)[1].split("(")[0] for line in trace.read_text().splitlines() if "(" in line]
    # Two folders are made, each durable in its parent; then the commit.
    assert calls == ["mkdir", "fsync", "mkdir", "fsync", "fsync", "linkat", "fsync"]


PARTITIONED_WRITE = """
import deltaic, pyarrow as pa
with deltaic.configure(durable={durable}):
    data = pa.table({{"p": pa.array(range(40)), "v": pa.array(range(40))}})
    deltaic.write({path!r}, data, partition_by=["p"])
"""


@pytest.mark.parametrize("durable", [True, False])
def test_new_files_are_durable_before_their_commit_is_visible(tmp_path: Path, durable: bool) -> None:
    """40 files, their folders, the table's and its parent are synced before the link, on several threads;
    nothing is without `durable`."""
    trace, script = tmp_path / "trace", PARTITIONED_WRITE.format(durable=durable, path=str(tmp_path / "t"))
    try:
        subprocess.run(
            [
                "strace",
                "-f",
                "-y",
                "-e",
                "trace=fsync,fdatasync,link,linkat",
                "-o",
                str(trace),
                sys.executable,
                "-c",
                script,
            ],
            check=True,
        )
    except FileNotFoundError:
        pytest.skip("no strace here")
    lines = [
        line.split(None, 1)
        for line in trace.read_text().splitlines()
        if "sync(" in line or "00000.json" in line
    ]
    committed = next(
        number for number, (_, call) in enumerate(lines) if "00000.json" in call and call.startswith("link")
    )
    synced = [(thread, call.partition("<")[2].partition(">")[0]) for thread, call in lines[:committed]]
    names = {path for _, path in synced}
    if not durable:
        assert not any("sync(" in call for _, call in lines)
        return
    assert {str(tmp_path / "t" / f"p={number}") for number in range(40)} | {
        str(tmp_path / "t"),
        str(tmp_path),
    } <= names
    assert sum(path.endswith(".parquet") for path in names) == 40
    assert any("00000.json" in path for path in names)
    assert len({thread for thread, _ in synced}) > 1


def test_a_commit_whose_files_cannot_be_made_durable_is_not_there(tmp_path: Path) -> None:
    store = _core.Store(str(tmp_path))
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(OSError, match=r"loop|commit|store"):
        store.put_if_absent("commit", b"1", after=["loop"])
    assert store.head("commit") is None
    assert [path.name for path in tmp_path.iterdir()] == ["loop"]
    with pytest.raises(PathOutsideTableError):
        store.put_if_absent("commit", b"1", after=["../x"])


def test_files_of_a_commit_that_are_gone_do_not_hold_it_up(store: _core.Store) -> None:
    store.put("a/b", b"1")
    assert store.put_if_absent("commit", b"1", after=["a/b", "a/gone", "nowhere/gone"]) == "created"
    assert store.put_if_absent("commit", b"1", after=["a/b"]) == "exists"


def test_links_below_the_root_are_read_and_those_that_lead_out_are_not(tmp_path: Path) -> None:
    root = tmp_path / "t"
    root.mkdir()
    store = _core.Store(str(root))
    store.put("d/file", b"inside")
    (tmp_path / "secret").write_bytes(b"outside")
    (root / "relative").symlink_to("d/file")
    (root / "absolute").symlink_to(root / "d" / "file")
    (root / "folder").symlink_to("d")
    (root / "out").symlink_to(tmp_path / "secret")
    (root / "up").symlink_to("..")
    for path in ("relative", "absolute", "folder/file", "d/file"):
        assert store.get(path) == b"inside"
    for path in ("out", "up/secret"):
        with pytest.raises(PathOutsideTableError):
            store.get(path)
    (tmp_path / "other").symlink_to(root)
    assert _core.Store(str(tmp_path / "other")).get("relative") == b"inside"
    assert _core.Store(str(root), allowed_roots=[str(tmp_path)]).get("out") == b"outside"


def test_it_works_after_fork() -> None:
    store = _core.Store(f"memory://{uuid.uuid4()}")
    store.put("a", b"1")
    child = os.fork()
    if child == 0:
        status = 1
        try:
            store.put("b", b"2")
            status = 0 if store.get("a") + store.get("b") == b"12" else 2
        finally:
            os._exit(status)
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            assert status == 0
            return
        time.sleep(0.05)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    pytest.fail("the child hangs")


def test_hadoops_form_of_a_local_path(tmp_path: Path) -> None:
    assert locate(f"file:{tmp_path}/a b") == f"{tmp_path}/a b"
    assert locate(f"file://{tmp_path}") == f"file://{tmp_path}"


@pytest.mark.skipif(
    os.name == "nt" or os.geteuid() != 0, reason="becomes another user to whom files are closed"
)
def test_what_the_system_refuses_is_its_own_error_with_the_whole_path(tmp_path: Path) -> None:
    # Pytest's own is closed to others, and what cannot be seen is not there.
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    try:
        table = deltaic.write(folder / "t", pa.table({"a": [1]}))
        data = folder / "t" / table.files().to_arrow()["path"][0].as_py()
        data.chmod(0)
        read, other = deltaic.DeltaTable(folder / "t"), folder / "new"
        os.seteuid(65534)
        try:
            with pytest.raises(PermissionError) as reading:
                read.scan().to_arrow()
            with pytest.raises(PermissionError) as writing:
                deltaic.write(table, pa.table({"a": [2]}), mode="append")
            with pytest.raises(PermissionError) as making:
                deltaic.write(other, pa.table({"a": [2]}))
            with pytest.raises(PermissionError) as checkpointing:
                table.checkpoint()
            with pytest.raises(CommitError, match="could not be written: Permission denied") as committing:
                table.alter.set_properties({"delta.appendOnly": True})
        finally:
            os.seteuid(0)
    finally:
        shutil.rmtree(folder)
    assert (reading.value.errno, reading.value.filename) == (errno.EACCES, str(data))
    assert str(reading.value) == f"[Errno 13] Permission denied: '{data}'"
    for error, place in ((writing, folder / "t"), (making, other), (checkpointing, folder / "t/_delta_log")):
        assert error.value.errno == errno.EACCES
        assert Path(error.value.filename).parent == place
    assert isinstance(committing.value.__cause__, PermissionError)


@pytest.mark.skipif(sys.platform == "win32", reason="a system without limits of a file's size")
def test_a_file_that_does_not_fit_is_the_systems_error(tmp_path: Path) -> None:
    import resource

    table = deltaic.write(tmp_path, pa.table({"a": [1]}))
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (200, limits[1]))
        with pytest.raises(OSError, match="File too large") as raised:
            deltaic.write(table, pa.table({"a": range(10_000)}), mode="append")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)
    assert raised.value.errno == errno.EFBIG
    assert Path(raised.value.filename).parent == tmp_path
