"""The number and the kind of requests that the usual jobs make to an object store."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest

import deltaic
from deltaic import DeltaTable
from deltaic.log import background, checksum
from deltaic.log.snapshot import Snapshot
from deltaic.log.store import open_store
from store_servers import S3, Place, Request

ROWS = pa.table({"id": pa.array(range(10), pa.int64()), "name": [f"n{i}" for i in range(10)]})


@pytest.fixture
def place(s3: S3) -> Place:
    return s3.place()


def append(place: Place, times: int = 1, **options: Any) -> DeltaTable:
    for _ in range(times):
        table = deltaic.write(place.at(), ROWS, mode="append", storage_options=place.options, **options)
    return table


def requests_of(place: Place, job: Callable[[], object]) -> list[str]:
    """Method and name of each request: the object's, or "list" and "delete many"; with those that follow the
    answer."""
    assert place.server is not None
    assert background.wait(10)
    with place.server.recorded() as found:
        job()
        assert background.wait(10)
    return [shown(request) for request in found]


def shown(request: Request) -> str:
    if request.is_listing:
        return "list" if "delimiter" in request.query else "list all"
    if request.method == "POST" and request.query.startswith("delete"):
        return "delete many"
    name = request.path.rsplit("/", 1)[-1]
    kind = (
        "data"
        if name.startswith("part-")
        else "vector"
        if name.startswith("deletion_vector")
        else name.lstrip("0") or "0"
    )
    return f"{request.method} {kind}"


def opened(place: Place) -> DeltaTable:
    return DeltaTable(place.at(), storage_options=place.options)


HINT = "GET _last_checkpoint"


def without_hint(found: list[str]) -> list[str]:
    """Returns the requests without that for the hint: a short log is opened without it if the listing comes
    soon."""
    assert found.count(HINT) <= 1
    return [request for request in found if request != HINT]


def test_opening_takes_three(place: Place) -> None:
    append(place)
    for last in ("GET .json", "GET 3.crc", "GET 3.checkpoint.parquet"):
        found = requests_of(place, lambda: opened(place))
        assert without_hint(found) == ["list", last]
        if last == "GET .json":
            append(place, 3)
        else:
            opened(place).checkpoint()
    table = opened(place)
    assert requests_of(place, table.refresh) == ["list"]


def test_a_long_log_is_listed_from_the_hint_on(place: Place) -> None:
    """The log has more files than the first listing: those before the checkpoint are not listed."""
    table = append(place)
    for _ in range(3):
        table = append(place)
    assert background.wait(10)
    table.checkpoint()
    store = open_store(place.at(), place.options)
    for number in range(250):
        store.put(f"_delta_log/{0:020}.{number}.left-behind", b"x")
    found = requests_of(place, lambda: opened(place))
    assert (set(found[:2]), found[2:]) == ({HINT, "list"}, ["list", "GET 3.checkpoint.parquet"])
    assert opened(place).scan().count() == 40
    assert DeltaTable(place.at(), version=2, storage_options=place.options).scan().count() == 30
    store.delete(["_delta_log/_last_checkpoint"])
    assert opened(place).version == 3


def test_the_first_look_is_what_two_requests_show(place: Place) -> None:
    append(place, 3)
    assert background.wait(10)
    store, hint = open_store(place.at(), place.options), "_delta_log/_last_checkpoint"
    opened(place).checkpoint()
    assert store.first_look(hint, "_delta_log", 1 << 20) == (None, store.entries("_delta_log"))
    assert store.first_look(hint, "_nothing", 1 << 20) == (None, [])
    for number in range(250):
        store.put(f"_delta_log/{0:020}.{number}.left-behind", b"x")
    assert store.first_look(hint, "_delta_log", 1 << 20) == (store.get(hint), None)
    assert store.first_look(hint, "_delta_log", 1) == (None, None)
    assert store.first_look("_delta_log/nothing", "_delta_log", 1 << 20) == (None, None)
    assert open_store("memory://first-look/t").first_look(hint, "_delta_log", 1) is None


@pytest.mark.parametrize("delay", [0.0, 0.02])
def test_a_near_store_is_not_asked_for_the_hint_of_a_short_log(place: Place, delay: float) -> None:
    append(place, 3)
    assert place.server is not None
    place.server.delay = delay
    try:
        found = requests_of(place, lambda: opened(place))
    finally:
        place.server.delay = 0.0
    assert without_hint(found) == ["list", "GET 2.crc"]
    assert HINT in found or not delay


def test_appending_takes_six_and_three(place: Place) -> None:
    append(place)
    found = requests_of(place, lambda: append(place))
    assert without_hint(found) == ["list", "GET .json", "PUT data", "PUT 1.json", "PUT 1.crc"]
    table = opened(place)
    assert table.scan().count() == 20
    again = requests_of(place, lambda: deltaic.write(table, ROWS, mode="append"))
    assert again == ["PUT data", "PUT 2.json", "PUT 2.crc"]


def test_a_new_table_lists_once(place: Place) -> None:
    append(Place(place.root + "x", place.options, place.server))  # the first commit to an endpoint proves it
    found = requests_of(place, lambda: append(place))
    assert without_hint(found) == ["list", "PUT data", "PUT .json", "PUT .crc"]


def test_a_commit_answers_before_its_checksum_is_there(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    release, real = threading.Event(), checksum.write

    def slow(snapshot: Snapshot, commit_info: Any, **options: bool) -> None:
        assert release.wait(10)
        real(snapshot, commit_info, **options)

    monkeypatch.setattr(checksum, "write", slow)
    table = append(place, 2)
    assert table.scan().count() == 20
    assert opened(place).version == 1
    release.set()
    assert background.wait(10)
    assert table._snapshot.store.head(checksum.checksum_path(1)) is not None


def test_a_checksum_of_a_table_that_was_here_before_is_replaced(place: Place) -> None:
    append(place)
    assert background.wait(10)
    store = open_store(place.at(), place.options)
    late = store.get(checksum.checksum_path(0))
    store.delete([path for path, _, _ in store.entries("_delta_log")])
    store.put(checksum.checksum_path(0), late)
    table = deltaic.write(place.at(), pa.table({"other": ["x"]}), storage_options=place.options)
    assert background.wait(10)
    assert opened(place).schema == table.schema
    checksum.verify_definition(
        checksum._parse(0, store.get(checksum.checksum_path(0))), opened(place)._snapshot
    )
    # The writer of the former table, which comes late: it leaves the checksum of the new one.
    now = store.get(checksum.checksum_path(0))
    checksum.write(table._snapshot, {"txnId": "the former"})
    assert store.get(checksum.checksum_path(0)) == now


def test_small_files_are_fetched_at_once_and_large_ones_by_their_columns(place: Place) -> None:
    table = append(place, 3)
    assert requests_of(place, lambda: table.scan().to_arrow()) == ["GET data"] * 3
    assert requests_of(place, lambda: table.scan().count()) == []
    wide = pa.table(
        {"a": pa.array(range(200_000)), "b": [f"{at * 7919 % 1_000_003}" for at in range(200_000)]}
    )
    large = Place(place.root + "large", place.options, place.server)
    table = deltaic.write(large.at(), wide, storage_options=large.options)
    assert place.server is not None
    assert background.wait(10)
    with place.server.recorded() as found:
        assert table.scan(columns=["b"]).to_arrow()["b"].to_pylist() == wide["b"].to_pylist()
    assert [request.method for request in found] == ["GET", "GET"]  # the footer, the column
    assert all(request.range is not None for request in found)


def test_changes_make_no_request_before_a_read(place: Place) -> None:
    table = append(place, 2)
    found = requests_of(place, lambda: table.delete("id = 3"))
    assert [each for each in found if each != "GET data"] == ["PUT vector", "PUT 2.json", "PUT 2.crc"]
    assert len(found) <= 5
    assert not [each for each in found if each.startswith(("HEAD", "list"))]


MERGED = pa.table({"id": [5], "name": ["merged"]})
CHANGES: dict[str, Callable[[DeltaTable], object]] = {
    "delete": lambda table: table.delete("id = 3"),
    "delete by an expression": lambda table: table.delete("upper(name) = 'N3'"),
    "update": lambda table: table.update({"name": "'new'"}, "id = 4"),
    "merge": lambda table: (
        table.merge(MERGED, "t.id = s.id").when_matched_update_all().when_not_matched_insert_all().execute()
    ),
}


@pytest.mark.parametrize("vectors", [True, False])
@pytest.mark.parametrize("name", CHANGES)
def test_a_change_reads_each_file_once(place: Place, name: str, vectors: bool) -> None:
    append(place, properties={"delta.enableDeletionVectors": vectors})
    table = append(place)
    table.delete("id = 1")
    found = requests_of(place, lambda: CHANGES[name](opened(place)))
    before = {"GET data": 2, "GET vector": 2} if vectors else {"GET data": 1}
    fetched = {kind: found.count(kind) for kind in ("GET data", "GET vector") if kind in found}
    assert fetched == before
    rows = opened(place).scan().to_arrow()
    gone = {1, 3} if name.startswith("delete") else {1}
    names = {"update": (4, "new"), "merge": (5, "merged")}
    number, text = names.get(name, (0, "n0"))
    expected = sorted(2 * [(at, text if at == number else f"n{at}") for at in range(10) if at not in gone])
    assert sorted(zip(rows["id"].to_pylist(), rows["name"].to_pylist(), strict=True)) == expected


def test_vacuum_lists_the_table_once_and_deletes_many_at_once(place: Place) -> None:
    table = append(place, 6)
    table.optimize.compact()
    time.sleep(1.1)  # the server keeps whole seconds
    found = requests_of(place, lambda: table.vacuum(retention=timedelta(0), enforce_retention=False))
    assert found.count("list all") == 1
    assert found.count("delete many") == 1
    assert not [each for each in found if each.startswith(("HEAD", "DELETE"))]


def test_a_log_is_listed_without_the_data_beside_it(place: Place) -> None:
    append(place, partition_by="name")
    assert place.server is not None
    with place.server.recorded() as found:
        opened(place)
        append(place)
    listings = [request for request in found if request.is_listing]
    assert listings
    assert all("_delta_log" in request.query and "delimiter" in request.query for request in listings)


def test_reading_by_requests_gives_the_rows_of_reading_whole_files(place: Place) -> None:
    """Scans have the same rows with the fast paths of remote stores and, in memory, without them."""
    rows = pa.table(
        {"id": pa.array(range(50_000), pa.int64()), "text": [f"{at * 31 % 997}" for at in range(50_000)]}
    )
    tables = []
    for path, options in ((place.at(), place.options), (f"memory://{place.root.rsplit('/', 1)[-1]}/t", {})):
        for start in range(0, 50_000, 12_500):
            deltaic.write(path, rows.slice(start, 12_500), mode="append", storage_options=options)
        table = DeltaTable(path, storage_options=options)
        table.delete("id % 7 = 3")
        table.checkpoint()
        tables.append(DeltaTable(path, storage_options=options))
    for where in (None, "id > 20000", "text = '5'", "id < 100 AND text <> '1'"):
        one, other = (table.scan(where=where).to_arrow().sort_by("id") for table in tables)
        assert one.equals(other)


@pytest.mark.parametrize("change", ["put", "delete"])
def test_a_created_object_that_was_not_read_yet_is_forgotten_when_it_changes(s3: S3, change: str) -> None:
    """The last one that was created stays in memory until it is read."""
    place = s3.place()
    store = open_store(place.at(), place.options)
    assert store.put_if_absent("a.json", b"one") == "created"
    if change == "put":
        store.put("a.json", b"two")
        assert store.get("a.json", most=100) == b"two"
    else:
        store.delete(["a.json"])
        with pytest.raises(FileNotFoundError):
            store.get("a.json", most=100)
