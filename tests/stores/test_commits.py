"""Commits to an object store that loses responses, fails, or ignores put-if-absent."""

from __future__ import annotations

import threading
import uuid
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

import deltaic
from deltaic import DeltaTable
from deltaic.errors import CommitError, CommitUnknownError, TableAlreadyExistsError, UnsafeStoreError
from deltaic.log import background
from store_servers import S3, Place, Request

ROWS = pa.table({"id": pa.array(range(3), pa.int64())})


@pytest.fixture
def place(s3: S3) -> Place:
    return s3.place()


def commits(request: Request) -> bool:
    return request.method == "PUT" and request.path.endswith(".json")


def append(place: Place, **options: str) -> DeltaTable:
    return deltaic.write(place.at(), ROWS, mode="append", storage_options={**place.options, **options})


def stored(place: Place) -> list[str]:
    """Returns the names of all objects of the table."""
    table = DeltaTable(place.at(), storage_options=place.options)
    return sorted(table._snapshot.store.list_from("", recursive=True)["path"].to_pylist())


@pytest.mark.parametrize("fault", ["lost", "error after", "dropped", "error", "busy", "conflict", "slow"])
def test_an_append_is_there_once_whatever_happens_to_its_answer(place: Place, fault: str) -> None:
    append(place)
    assert place.server is not None
    with place.server.fault(fault, commits) as happened:
        table = append(place)
    assert happened.hits == 1
    assert table.version == 1
    assert DeltaTable(place.at(), storage_options=place.options).scan().count() == 6
    assert len([name for name in stored(place) if name.endswith(".json")]) == 2


def test_two_lost_answers_one_after_the_other(place: Place) -> None:
    append(place)
    assert place.server is not None
    with place.server.fault("dropped", commits, times=2), place.server.fault("lost", commits):
        assert append(place).version == 1
    assert DeltaTable(place.at(), storage_options=place.options).scan().count() == 6


def test_a_commit_that_nobody_can_ask_about_keeps_its_files(place: Place) -> None:
    append(place)
    assert place.server is not None

    def reads_it(request: Request) -> bool:
        return request.method == "GET" and request.path.endswith("1.json")

    with (
        place.server.fault("lost", commits, times=9),
        place.server.fault("error", reads_it, times=99),
        pytest.raises(CommitUnknownError, match=r"txnId [0-9a-f-]{36}"),
    ):
        append(place, max_retries="1")
    # It was there, with its files.
    assert DeltaTable(place.at(), storage_options=place.options).scan().count() == 6


def test_a_refused_commit_leaves_the_table_and_no_file(place: Place) -> None:
    append(place)
    before = stored(place)
    assert place.server is not None
    with (
        place.server.fault("denied", commits, times=9),
        pytest.raises(CommitError, match="could not be written") as info,
    ):
        append(place)
    assert isinstance(info.value.__cause__, PermissionError)
    assert stored(place) == before


def test_of_two_creators_one_wins(place: Place) -> None:
    both = threading.Barrier(2)

    def create() -> str:
        both.wait()
        try:
            deltaic.write(place.at(), ROWS, storage_options=place.options)
            return "made"
        except TableAlreadyExistsError:
            return "exists"

    with ThreadPoolExecutor(2) as pool:
        found = [pool.submit(create) for _ in range(2)]
        assert sorted(each.result() for each in found) == ["exists", "made"]
    assert DeltaTable(place.at(), storage_options=place.options).scan().count() == 3


def test_writers_that_meet_all_succeed_while_answers_are_lost(place: Place) -> None:
    append(place)
    assert place.server is not None
    with place.server.fault("lost", commits, times=3), ThreadPoolExecutor(4) as pool:
        done = [pool.submit(append, place) for _ in range(8)]
        versions = sorted(each.result().version for each in done)
    assert versions == list(range(1, 9))
    assert DeltaTable(place.at(), storage_options=place.options).scan().count() == 27


def test_a_store_that_replaces_is_refused_before_the_first_commit(place: Place) -> None:
    assert place.server is not None
    # Other options are another store, not yet proven.
    options = {**place.options, "user_agent": str(uuid.uuid4())}
    with (
        place.server.fault("blind", lambda request: request.method == "PUT", times=99),
        pytest.raises(UnsafeStoreError, match="If-None-Match"),
    ):
        deltaic.write(place.at(), ROWS, storage_options=options)
    with place.server.recorded() as found:
        assert not DeltaTable.exists(place.at(), storage_options=place.options)
    assert found
    # Nothing is remembered of the refusal.
    assert deltaic.write(place.at(), ROWS, storage_options=options).version == 0


def test_a_probe_whose_answer_is_lost_is_repeated(place: Place) -> None:
    assert place.server is not None
    options = {**place.options, "user_agent": str(uuid.uuid4())}
    with place.server.fault("lost", lambda request: ".probe-" in request.path) as happened:
        deltaic.write(place.at(), ROWS, storage_options=options)
    assert happened.hits == 1
    assert not [name for name in stored(place) if ".probe" in name]


def test_the_probe_takes_its_three_requests_once_and_is_over_with_the_commit(place: Place) -> None:
    """The check runs beside the upload; the requests of the next call are not mixed with it."""
    assert place.server is not None
    options = {**place.options, "user_agent": str(uuid.uuid4())}
    with place.server.recorded() as found:
        table = deltaic.write(place.at(), ROWS, storage_options=options)
        assert background.wait(10)  # for the checksum, which is put after the answer
    probes = [at for at, request in enumerate(found) if ".probe-" in request.path]
    commit = next(
        at for at, request in enumerate(found) if request.path.endswith("0.json") and request.method == "PUT"
    )
    assert [found[at].method for at in probes] == ["PUT", "PUT"]
    assert max(probes) < commit
    assert [request.query for request in found if request.method == "POST"] == ["delete"]
    with place.server.recorded() as found:
        deltaic.write(table, ROWS, mode="append")
        assert background.wait(10)
    assert len(found) == 3


def test_uploads_are_tried_again_and_leave_nothing_when_they_fail(place: Place) -> None:
    assert place.server is not None

    def is_part(request: Request) -> bool:
        return "partNumber" in request.query

    large = pa.table({"id": pa.array([at * 2_654_435_761 % 2**61 for at in range(2_500_000)], pa.int64())})
    plain = deltaic.ParquetOptions(compression="uncompressed")
    with place.server.fault("busy", is_part, times=2) as happened:
        deltaic.write(place.at(), large, storage_options=place.options, parquet=plain)
    assert happened.hits == 2
    table = DeltaTable(place.at(), storage_options=place.options)
    assert table.scan().to_arrow()["id"].to_pylist() == large["id"].to_pylist()
    options = {**place.options, "max_retries": "0"}
    with place.server.fault("busy", is_part, times=99), pytest.raises(OSError, match="found SlowDown"):
        deltaic.write(place.at(), large, mode="append", storage_options=options, parquet=plain)
    assert len([name for name in stored(place) if name.endswith(".parquet")]) == len(table.files().to_arrow())
