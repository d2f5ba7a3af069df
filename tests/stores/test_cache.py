"""Local copies of immutable objects of object stores: `configure(cache_directory=)`."""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from test_http import Files

import deltaic
from deltaic import DeltaTable
from deltaic.errors import InvalidArgumentError
from deltaic.log import background
from store_servers import KEY, S3, SECRET, Place, Request, Server, google, google_place

LARGE = 60_000


def rows(start: int, count: int) -> pa.Table:
    numbers = range(start, start + count)
    return pa.table(
        {"id": pa.array(numbers, pa.int64()), "text": [f"t{at * 7919 % 10_007}" for at in numbers]}
    )


def made(place: Place) -> str:
    """Returns a table with vectors, a checkpoint, changes, small files and one that is not fetched at
    once."""
    path, options = place.at(), place.options
    properties = {"delta.enableChangeDataFeed": True, "delta.checkpointInterval": 4}
    table = deltaic.write(path, rows(0, LARGE), properties=properties, storage_options=options)
    for start in range(4):
        deltaic.write(table, rows(LARGE + start * 10, 10), mode="append")
    table.delete("id % 5 = 1")
    table.update({"text": "'changed'"}, where="id = 20")
    return path


READS: dict[str, Callable[[DeltaTable], Any]] = {
    "all": lambda table: table.scan().to_arrow().sort_by("id").to_pylist(),
    "column": lambda table: sorted(table.scan(columns=["text"]).to_arrow()["text"].to_pylist()),
    "where": lambda table: (
        table.scan(where="id > 59990 AND text <> 't5'").to_arrow().sort_by("id").to_pylist()
    ),
    "few": lambda table: table.scan(where="id = 30000").to_arrow().to_pylist(),
    "before": lambda table: table.at(3).scan().to_arrow().sort_by("id").to_pylist(),
    "changes": lambda table: sorted(map(str, table.changes(5, 6).to_arrow().to_pylist())),
    "history": lambda table: [str(entry) for entry in table.history()],
    "files": lambda table: str(table.files(deleted_rows=True).to_arrow().to_pylist()),
    "properties": lambda table: str(table.metadata),
}


def answers(path: str, options: dict[str, str]) -> dict[str, Any]:
    return {name: read(DeltaTable(path, storage_options=options)) for name, read in READS.items()}


def copies(cache: Path) -> list[Path]:
    return sorted(path for path in cache.rglob("*") if path.is_file() and path.name != ".usage")


def used(cache: Path) -> int:
    return sum(path.stat().st_size for path in cache.rglob("*") if path.is_file() and path.name != ".usage")


@contextmanager
def fetched(place: Place) -> Iterator[list[Request]]:
    """The requests for objects that are immutable: all but the hint and listings."""
    assert place.server is not None
    found: list[Request] = []
    with place.server.recorded() as requests:
        yield found
    found.extend(
        each for each in requests if not each.is_listing and not each.path.endswith("/_last_checkpoint")
    )


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def s3_place(s3: S3) -> Place:
    return s3.place()


def test_reads_give_the_rows_of_reads_without_it(place: Place, cache: Path) -> None:
    path = made(place)
    expected = answers(path, place.options)
    with deltaic.configure(cache_directory=cache):
        assert answers(path, place.options) == expected
        assert answers(path, place.options) == expected
        table = DeltaTable(path, storage_options=place.options)
        table.delete("id = 7")
        deltaic.write(table, rows(-3, 3), mode="append")
        table.optimize.compact()
        cached = answers(path, place.options)
    assert cached == answers(path, place.options) != expected
    assert bool(copies(cache)) == bool(place.options)  # local tables and those in memory need none


def test_a_second_read_fetches_nothing(s3_place: Place, cache: Path) -> None:
    path = made(s3_place)
    with deltaic.configure(cache_directory=cache):
        answers(path, s3_place.options)
        with fetched(s3_place) as found:
            answers(path, s3_place.options)
        assert found == []
        assert s3_place.server is not None
        with s3_place.server.recorded() as all_requests:
            table = DeltaTable(path, storage_options=s3_place.options)
            table.scan().to_arrow()
        # The listing and perhaps the hint show the present files.
        assert [each.is_listing for each in all_requests if not each.path.endswith("/_last_checkpoint")] == [
            True
        ]
        with s3_place.server.recorded() as again:
            table.scan().to_arrow()
        assert again == []


def test_a_shallow_clone_reads_the_files_of_its_source_through_it(s3_place: Place, cache: Path) -> None:
    path = made(s3_place)
    with deltaic.configure(cache_directory=cache, allowed_roots=[path]):
        clone = DeltaTable(path, storage_options=s3_place.options).clone(s3_place.at("clone"), shallow=True)
        expected = READS["all"](clone)
        with fetched(s3_place) as found:
            assert READS["all"](clone) == expected
        assert found == []


def test_what_a_writer_asks_for_stays(s3_place: Place, cache: Path) -> None:
    deltaic.write(s3_place.at(), rows(0, 1), storage_options=s3_place.options)
    with deltaic.configure(cache_directory=cache):
        table = DeltaTable(s3_place.at(), storage_options=s3_place.options)
        table.scan().to_arrow()
        assert s3_place.server is not None
        assert background.wait(10)
        with s3_place.server.recorded() as found:
            deltaic.write(table, rows(0, 1), mode="append")
            assert background.wait(10)
    assert [each.method for each in found] == ["PUT", "PUT", "PUT"]


def cut(data: bytes, other: bytes) -> bytes:
    return data[:-1]


def emptied(data: bytes, other: bytes) -> bytes:
    return b""


def longer(data: bytes, other: bytes) -> bytes:
    return data + b"\0"


def changed_at_its_end(data: bytes, other: bytes) -> bytes:
    return data[:-1] + bytes([data[-1] ^ 1])


def changed_in_its_header(data: bytes, other: bytes) -> bytes:
    at = random.Random(len(data)).randrange(96)
    return data[:at] + bytes([data[at] ^ 16]) + data[at + 1 :]


def of_another(data: bytes, other: bytes) -> bytes:
    return other


def zeroed(data: bytes, other: bytes) -> bytes:
    return bytes(len(data))


@pytest.mark.parametrize(
    "damage", [cut, emptied, longer, changed_at_its_end, changed_in_its_header, of_another, zeroed]
)
def test_a_damaged_copy_is_fetched_again(
    s3_place: Place, cache: Path, damage: Callable[[bytes, bytes], bytes]
) -> None:
    path = made(s3_place)
    expected = answers(path, s3_place.options)
    with deltaic.configure(cache_directory=cache):
        answers(path, s3_place.options)
        found = copies(cache)
        whole = {each: each.read_bytes() for each in found}
        for each, other in zip(found, [*found[1:], found[0]], strict=True):
            each.write_bytes(damage(whole[each], whole[other]))
        assert answers(path, s3_place.options) == expected
        with fetched(s3_place) as requests:
            assert answers(path, s3_place.options) == expected
        assert requests == []
    # The test does not depend on which ranges are requested again.
    assert {each: each.read_bytes() for each in copies(cache)}.items() <= whole.items()


def test_a_copy_of_the_same_piece_of_another_object_is_not_taken(s3_place: Place, cache: Path) -> None:
    """The copy has the same range and length as the right one, so that only its key differs."""
    tables = [Place(s3_place.root + name, s3_place.options, s3_place.server).at() for name in "ab"]
    for at, path in enumerate(tables):
        deltaic.write(
            path, pa.table({"id": pa.array([at] * 10, pa.int64())}), storage_options=s3_place.options
        )
    with deltaic.configure(cache_directory=cache):
        for path in tables:
            DeltaTable(path, storage_options=s3_place.options).scan().to_arrow()
        data = [each for each in copies(cache) if b"PAR1" in each.read_bytes()]
        assert len(data) == 2
        assert data[0].name == data[1].name
        data[0].write_bytes(data[1].read_bytes())
        found = [
            DeltaTable(path, storage_options=s3_place.options).scan().to_arrow()["id"].to_pylist()
            for path in tables
        ]
    assert found == [[0] * 10, [1] * 10]


def remove_table(path: str, options: dict[str, str]) -> None:
    store = DeltaTable(path, storage_options=options)._snapshot.store
    store.delete(store.list_from("", recursive=True)["path"])


def test_a_table_made_anew_in_the_same_place_is_never_the_old_one(place: Place, cache: Path) -> None:
    path, options = place.at(), place.options
    properties = {"delta.checkpointInterval": 2}
    with deltaic.configure(cache_directory=cache):
        opened = []
        for attempt in range(3):
            for number in range(4):  # names and sizes of all log files are those of the attempt before
                deltaic.write(
                    path,
                    rows(attempt * 1000 + number, 1),
                    mode="append",
                    properties=properties,
                    storage_options=options,
                )
            wanted = [attempt * 1000 + number for number in range(4)]
            for _ in range(2):
                table = DeltaTable(path, storage_options=options)
                assert sorted(table.scan().to_arrow()["id"].to_pylist()) == wanted
                assert sorted(table.at(1).scan().to_arrow()["id"].to_pylist()) == wanted[:2]
                assert len(table.history()) == 4
            opened.append(table)
            remove_table(path, options)


def test_a_data_file_without_a_unique_name_made_anew(s3_place: Place, cache: Path, tmp_path: Path) -> None:
    path, options = s3_place.at(), s3_place.options
    with deltaic.configure(cache_directory=cache):
        for attempt in range(3):
            pq.write_table(
                pa.table({"id": [attempt] * 9}),
                tmp_path / "x.parquet",
                use_dictionary=False,
                compression=None,
            )
            store = deltaic.log.store.open_store(path, options)
            store.put("data.parquet", (tmp_path / "x.parquet").read_bytes())
            table = DeltaTable.convert(path, storage_options=options)
            for _ in range(2):
                assert table.scan().to_arrow()["id"].to_pylist() == [attempt] * 9
                table = DeltaTable(path, storage_options=options)
            with fetched(s3_place) as requests:
                assert table.scan(where="id >= 0").to_arrow()["id"].to_pylist() == [attempt] * 9
            assert {each.method for each in requests} <= {"HEAD"}  # which object it is
            remove_table(path, options)


@pytest.mark.parametrize("by", ["this object", "another one"])
def test_a_data_file_without_a_unique_name_replaced_under_an_opened_table(
    s3_place: Place, cache: Path, tmp_path: Path, by: str
) -> None:
    """As tools do that write `daily.parquet` each day; the sizes are equal, and only entity tag and time
    differ."""
    path, options = s3_place.at(), s3_place.options
    store = deltaic.log.store.open_store(path, options)

    def replace(value: int) -> None:
        pq.write_table(
            pa.table({"id": [value] * 9}), tmp_path / "x.parquet", use_dictionary=False, compression=None
        )
        store.put("daily.parquet", (tmp_path / "x.parquet").read_bytes())

    replace(0)
    with deltaic.configure(cache_directory=cache):
        table = DeltaTable.convert(path, storage_options=options)
        assert table.scan().to_arrow()["id"].to_pylist() == [0] * 9
        for value in (1, 2):
            replace(value)
            writer = table if by == "this object" else DeltaTable(path, storage_options=options)
            writer.add_files(["daily.parquet"])
            table.refresh()
            assert table.scan().to_arrow()["id"].to_pylist() == [value] * 9
            assert table.scan(where=f"id = {value}").to_arrow().num_rows == 9


def test_two_servers_with_buckets_of_one_name_share_no_copies(cache: Path) -> None:
    name = "part-0e8e89a9-f4a5-43d2-b12b-42b0a0a0506e.parquet"
    with google() as one, google() as other, deltaic.configure(cache_directory=cache):
        for server, data in ((one, b"one"), (other, b"other")):
            store = deltaic.log.store.open_store("gs://tables/t", google_place(server).options)
            store.put(name, data)
            assert store.get(name) == data
    assert len(copies(cache)) == 2


def test_a_server_that_sends_empty_tags(
    s3_place: Place, s3: S3, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And one time for all: of a table made anew in the same second, log files have the sizes of those
    before."""
    real, now = s3.server.application, datetime.now(timezone.utc)

    def without_tags(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        begun: list[Any] = []
        body = b"".join(real(environ, lambda *status: begun.append(status)))
        if b"<ListBucketResult" in body:
            body = re.sub(rb"<ETag>[^<]*</ETag>", b'<ETag>""</ETag>', body)
            body = re.sub(
                rb"<LastModified>[^<]*<", f"<LastModified>{now:%Y-%m-%dT%H:%M:%S.000Z}<".encode(), body
            )
        fixed = {
            "etag": '""',
            "last-modified": format_datetime(now, usegmt=True),
            "content-length": str(len(body)),
        }
        if environ["REQUEST_METHOD"] == "HEAD":
            del fixed["content-length"]
        start_response(begun[0][0], [(name, fixed.get(name.lower(), value)) for name, value in begun[0][1]])
        return [body]

    monkeypatch.setattr(s3.server, "application", without_tags)
    test_a_table_made_anew_in_the_same_place_is_never_the_old_one(s3_place, cache)


def test_a_table_behind_http_made_anew_in_the_same_second(cache: Path, tmp_path: Path) -> None:
    """Its server makes entity tags of time and size, which are those of the file before."""
    with Server(Files(tmp_path, "404 Not Found")) as server, deltaic.configure(cache_directory=cache):
        for attempt in range(2):
            path = tmp_path / "t"
            shutil.rmtree(path, ignore_errors=True)
            deltaic.write(path, pa.table({"id": pa.array([attempt] * 9, pa.int64())}))
            for each in path.rglob("*"):
                os.utime(each, (1_700_000_000, 1_700_000_000))
            table = DeltaTable(f"{server.url}/t", storage_options={"allow_http": "true"})
            assert table.scan().to_arrow()["id"].to_pylist() == [attempt] * 9
            with server.recorded() as found:
                assert table.scan().to_arrow()["id"].to_pylist() == [attempt] * 9
            assert found == []


def test_a_checksum_that_is_written_again_is_read_again(s3_place: Place, cache: Path) -> None:
    path = made(s3_place)
    with deltaic.configure(cache_directory=cache):
        table = DeltaTable(path, storage_options=s3_place.options)
        name = f"_delta_log/{table.version:020}.crc"
        store = table._snapshot.store
        first = store.get(name)
        other = first.replace(b'"numFiles"', b'"numFilez"')
        deltaic.log.store.open_store(path, s3_place.options).put(name, other)
        assert DeltaTable(path, storage_options=s3_place.options)._snapshot.store.get(name) == other


def test_the_limit_holds_and_what_was_used_least_recently_goes(s3_place: Place, cache: Path) -> None:
    paths = [Place(f"{s3_place.root}{at}", s3_place.options, s3_place.server).at() for at in range(4)]
    for at, path in enumerate(paths):
        deltaic.write(path, rows(at * LARGE, LARGE), storage_options=s3_place.options)
    with deltaic.configure(cache_directory=cache):
        DeltaTable(paths[0], storage_options=s3_place.options).scan().to_arrow()
    each = used(cache)
    shutil.rmtree(cache)

    def read(path: str) -> int:
        """Returns the number of requests for data that the read made."""
        with fetched(s3_place) as found:
            assert DeltaTable(path, storage_options=s3_place.options).scan().to_arrow().num_rows == LARGE
        assert used(cache) <= limit
        return len(found)

    limit = each * 5  # more than four, as one piece takes at most a quarter of it
    with deltaic.configure(cache_directory=cache, cache_limit=limit):
        for at, path in enumerate(paths):
            assert read(path) > 0
            assert read(path) == 0
            for copy in copies(cache):  # each table was used a minute after the one before
                if copy.stat().st_mtime > time.time() - 30:
                    os.utime(copy, (time.time() - 600 + at * 60,) * 2)
        assert read(paths[0]) == 0  # used now, so the second is the oldest
        more = Place(f"{s3_place.root}more", s3_place.options, s3_place.server).at()
        deltaic.write(more, rows(0, LARGE), storage_options=s3_place.options)
        assert read(more) > 0
        another = Place(f"{s3_place.root}another", s3_place.options, s3_place.server).at()
        deltaic.write(another, rows(0, LARGE), storage_options=s3_place.options)
        assert read(another) > 0
        assert read(paths[0]) == 0
        assert read(more) == 0
        assert read(paths[1]) > 0
    tiny = cache.parent / "tiny"
    limit = 1000
    with deltaic.configure(cache_directory=tiny, cache_limit=limit):
        assert DeltaTable(paths[0], storage_options=s3_place.options).scan().to_arrow().num_rows == LARGE
    assert used(tiny) <= 1000


_READER = """
import sys, deltaic
path, cache, limit, times, *options = sys.argv[1:]
options = dict(each.split("=", 1) for each in options)
with deltaic.configure(cache_directory=cache, cache_limit=int(limit)):
    for _ in range(int(times)):
        table = deltaic.DeltaTable(path, storage_options=options).scan().to_arrow()
        print(table.num_rows, sum(table["id"].to_pylist()), flush=True)
"""


def test_processes_share_it(s3_place: Place, cache: Path) -> None:
    path = made(s3_place)
    table = DeltaTable(path, storage_options=s3_place.options).scan().to_arrow()
    expected = f"{table.num_rows} {sum(table['id'].to_pylist())}"
    with deltaic.configure(cache_directory=cache):
        DeltaTable(path, storage_options=s3_place.options).scan().to_arrow()
        with fetched(s3_place) as found:
            options = [f"{name}={value}" for name, value in s3_place.options.items()]
            command = [sys.executable, "-c", _READER, path, str(cache), str(10**9), "1", *options]
            assert (
                subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\n")[0]
                == expected
            )
        assert found == []
    limit = used(cache) * 2 // 3  # so that they also take each other's copies away
    shutil.rmtree(cache)
    command = [sys.executable, "-c", _READER, path, str(cache), str(limit), "8", *options]
    readers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    for reader in readers:
        assert reader.communicate()[0].split() == expected.split() * 8
        assert reader.returncode == 0
    assert used(cache) <= limit


def test_the_folder_may_be_deleted_at_any_time(s3_place: Place, cache: Path) -> None:
    path = made(s3_place)
    expected = READS["all"](DeltaTable(path, storage_options=s3_place.options))
    stop = threading.Event()

    def delete() -> None:
        while not stop.is_set():
            shutil.rmtree(cache, ignore_errors=True)

    deleting = threading.Thread(target=delete)
    deleting.start()
    try:
        with deltaic.configure(cache_directory=cache):
            for _ in range(8):
                assert READS["all"](DeltaTable(path, storage_options=s3_place.options)) == expected
    finally:
        stop.set()
        deleting.join()
    with deltaic.configure(cache_directory=cache):
        table = DeltaTable(path, storage_options=s3_place.options)
        time.sleep(1.1)  # after a failed write it rests for a second
        assert READS["all"](table) == expected
        assert copies(cache)


def test_a_folder_that_cannot_be_written_is_a_miss(s3_place: Place, tmp_path: Path) -> None:
    path = made(s3_place)
    expected = READS["all"](DeltaTable(path, storage_options=s3_place.options))
    (tmp_path / "file").write_text("")
    full = Path("/dev/full") / "cache"
    for place in (tmp_path / "file" / "cache", full):
        with deltaic.configure(cache_directory=place):
            assert READS["all"](DeltaTable(path, storage_options=s3_place.options)) == expected


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")
def test_a_full_disk_is_a_miss(s3_place: Place, tmp_path: Path) -> None:
    path = made(s3_place)
    expected = READS["all"](DeltaTable(path, storage_options=s3_place.options))
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=128k,mode=700", "tmpfs", str(small)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip("no tmpfs can be mounted here")
    try:
        with deltaic.configure(cache_directory=small):
            for _ in range(2):
                assert READS["all"](DeltaTable(path, storage_options=s3_place.options)) == expected
        assert not list(small.rglob(".tmp-*"))
    finally:
        subprocess.run(["umount", str(small)], check=True)


def test_only_its_user_can_read_it(s3_place: Place, cache: Path) -> None:
    path = made(s3_place)
    with deltaic.configure(cache_directory=cache):
        DeltaTable(path, storage_options=s3_place.options).scan().to_arrow()
        assert cache.stat().st_mode & 0o777 == 0o700
        assert all(each.stat().st_mode & 0o077 == 0 for each in cache.rglob("*"))
        for each in copies(cache):
            assert set(str(each.relative_to(cache))) <= set("0123456789abcdef-/")
            data = each.read_bytes()
            assert KEY.encode() not in data
            assert SECRET.encode() not in data
        cache.chmod(0o755)  # others may have put something there
        with fetched(s3_place) as found:
            DeltaTable(path, storage_options=s3_place.options).scan().to_arrow()
        assert found
    with pytest.raises(InvalidArgumentError, match="others may use the folder of the cache"):
        deltaic.configure(cache_directory=cache)
    (cache.parent / "file").write_text("")
    with pytest.raises(InvalidArgumentError, match="found a file"):
        deltaic.configure(cache_directory=cache.parent / "file")
    with pytest.raises(InvalidArgumentError, match="cache_limit"):
        deltaic.configure(cache_limit="much")


def test_what_a_process_left_is_counted_and_goes(s3_place: Place, cache: Path) -> None:
    path = made(s3_place)
    with deltaic.configure(cache_directory=cache):
        DeltaTable(path, storage_options=s3_place.options).scan().to_arrow()
    full = used(cache)
    left = copies(cache)[0].parent / ".tmp-left"
    left.write_bytes(bytes(full * 2))
    os.utime(left, (0, 0))
    (cache / "mine.txt").write_text("a user's own file")
    (cache / ".usage").unlink()
    other = Place(f"{s3_place.root}other", s3_place.options, s3_place.server).at()
    deltaic.write(other, rows(0, 5), storage_options=s3_place.options)
    with deltaic.configure(cache_directory=cache, cache_limit=full * 2):
        DeltaTable(other, storage_options=s3_place.options).scan().to_arrow()
    assert not left.exists()
    assert (cache / "mine.txt").exists()
    assert len(copies(cache)) > 3
