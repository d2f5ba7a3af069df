"""A fault at every call that a command makes to its store (SQLite's anomaly tests): the table is unchanged,
or has the commit once."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest

import deltaic
from deltaic import CommitOptions, DeltaTable
from deltaic.errors import CommitUnknownError, DeltaError, TableNotFoundError
from numbered_store import Fault, NumberedStore

_names = itertools.count()
_stores: dict[str, NumberedStore] = {}
Command = Callable[[DeltaTable], object]


@pytest.fixture(autouse=True)
def scheme(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Tables at faults://<name> are in the store of that name; these tests never wait."""
    monkeypatch.setattr("deltaic.transaction.attempts.PUT_WAITS", (0.0, 0.0))
    monkeypatch.setattr("deltaic.transaction.transaction.READ_WAITS", (0.0, 0.0))
    with deltaic.configure(log_stores={"faults": lambda location, options: _stores[location]}):
        yield
    _stores.clear()


def place(store: NumberedStore) -> str:
    location = f"faults://{next(_names)}"
    _stores[location] = store
    return location


def rows(*ids: int, word: str = "old") -> pa.Table:
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "month": [str(number % 2) for number in ids],
            "word": [word] * len(ids),
        }
    )


def start(vectors: str, interval: str = "100") -> NumberedStore:
    """Makes a table with two files in each of two partitions; one row is deleted."""
    store = NumberedStore()
    properties = {"delta.enableDeletionVectors": vectors, "delta.checkpointInterval": interval}
    table = deltaic.write(place(store), rows(0, 1, 2, 3), partition_by="month", properties=properties)
    deltaic.write(table, rows(4, 5, 6, 7), mode="append")
    table.delete("id = 3")
    return store


def content(location: str) -> tuple[list[dict[str, Any]], list[str]]:
    table = DeltaTable(location)
    found = table.scan().to_arrow().to_pylist()
    return sorted(found, key=lambda row: row["id"]), table.schema.names


def merge(table: DeltaTable) -> None:
    source = rows(5, 6, 100, word="new")
    table.merge(source, "t.id = s.id").when_matched_update_all().when_not_matched_insert_all().execute()


COMMANDS: dict[str, Command] = {
    "append": lambda table: deltaic.write(table, rows(8, 9), mode="append"),
    "overwrite": lambda table: deltaic.write(table, rows(8, 9), mode="overwrite"),
    "overwrite where": lambda table: deltaic.write(
        table, rows(1, 9), mode="overwrite", where="month = '1' AND id < 10"
    ),
    "overwrite partitions": lambda table: deltaic.write(table, rows(8), mode="overwrite_partitions"),
    "new column": lambda table: deltaic.write(
        table, rows(8).append_column("n", pa.array([1])), mode="append", schema_mode="merge"
    ),
    "delete": lambda table: table.delete("id IN (1, 4, 6)"),
    "update": lambda table: table.update({"word": "'new'"}, "id < 5"),
    "merge": merge,
    "compact": lambda table: table.optimize.compact(),
    "z-order": lambda table: table.optimize.z_order(["id"]),
    "purge": lambda table: table.optimize.purge(),
    "restore": lambda table: table.restore(0),
    "alter": lambda table: table.alter.add_columns("n int"),
    "application transaction": lambda table: deltaic.write(
        table, rows(8), mode="append", commit=CommitOptions(transactions={"job": 1}, user_metadata="x")
    ),
}


def run(
    command: Command, store: NumberedStore, fail_at: int | None, fault: Fault, *, lasting: bool = False
) -> BaseException | None:
    """Runs the command on the table as it is when the faults begin, and returns the error that it raised."""
    location = place(store)
    table = DeltaTable(location)
    store.reset(fail_at, fault, lasting=lasting)
    try:
        command(table)
    except (DeltaError, OSError) as error:
        return error
    finally:
        store.reset()
    return None


def commits(store: NumberedStore) -> list[str]:
    return sorted(path for path in store.objects if path.startswith("_delta_log/") and path.endswith(".json"))


def data_files(store: NumberedStore) -> set[str]:
    return {path for path in store.objects if not path.startswith("_delta_log/")}


def one_fault_at_every_call(
    command: Command, vectors: str, fault: Fault, *, interval: str = "100", lasting: bool = False
) -> None:
    before = start(vectors, interval)
    origin = content(place(before))
    done = NumberedStore(before.objects)
    table = DeltaTable(place(done))
    done.reset()
    command(table)
    calls = list(done.calls)
    done.reset()
    result, new_commits = content(place(done)), len(commits(done)) - len(commits(before))
    assert result != origin or command in (COMMANDS["compact"], COMMANDS["z-order"], COMMANDS["purge"])
    for number, call in enumerate(calls, start=1):
        store = NumberedStore(before.objects)
        error = run(command, store, number, fault, lasting=lasting)
        where = (number, call, error)
        found, there = content(place(store)), len(commits(store)) - len(commits(before))
        if error is None:
            assert (found, there) == (result, new_commits), where
        elif isinstance(error, CommitUnknownError):
            assert (found, there) in [(origin, 0), (result, new_commits)], where
        else:
            assert (found, there) == (origin, 0), where
        if there == 0 and fault == "before" and not lasting and not isinstance(error, CommitUnknownError):
            assert data_files(store) <= data_files(before), where
        if there == 0:
            assert run(command, store, None, fault) is None, where
            assert content(place(store)) == result, where


@pytest.mark.parametrize("fault", ["before", "after", "lost"])
@pytest.mark.parametrize("name", list(COMMANDS))
def test_one_fault_at_every_call(name: str, fault: Fault) -> None:
    one_fault_at_every_call(COMMANDS[name], "true", fault)


@pytest.mark.parametrize("fault", ["before", "lost"])
@pytest.mark.parametrize("name", ["overwrite where", "delete", "update", "merge"])
def test_one_fault_at_every_call_where_files_are_rewritten(name: str, fault: Fault) -> None:
    one_fault_at_every_call(COMMANDS[name], "false", fault)


@pytest.mark.parametrize("name", ["append", "delete", "merge"])
def test_a_store_that_fails_for_good_from_every_call_on(name: str) -> None:
    one_fault_at_every_call(COMMANDS[name], "true", "before", lasting=True)


@pytest.mark.parametrize("fault", ["before", "after", "lost"])
def test_one_fault_at_every_call_of_a_write_with_a_checkpoint(fault: Fault) -> None:
    """Also the checkpoint, and the cleaning after it: what fails there never fails the commit."""
    one_fault_at_every_call(COMMANDS["append"], "true", fault, interval="3")


@pytest.mark.parametrize("fault", ["before", "after", "lost"])
def test_one_fault_at_every_call_of_a_first_write(fault: Fault) -> None:
    done = NumberedStore()
    deltaic.write(place(done), rows(1, 2))
    total = len(done.calls)
    assert total > 3
    for number in range(1, total + 1):
        store = NumberedStore()
        location = place(store)
        store.reset(number, fault)
        try:
            deltaic.write(location, rows(1, 2))
            error: BaseException | None = None
        except (DeltaError, OSError) as raised:
            error = raised
        store.reset()
        where = (number, done.calls[number - 1], error)
        if error is None:
            assert [row["id"] for row in content(location)[0]] == [1, 2], where
            assert len(commits(store)) == 1, where
        elif isinstance(error, CommitUnknownError):
            assert len(commits(store)) <= 1, where
        else:
            with pytest.raises(TableNotFoundError):
                DeltaTable(location)
            assert deltaic.write(location, rows(1, 2)).version == 0, where


@pytest.mark.parametrize("fault", ["before", "after", "lost"])
def test_one_fault_at_every_call_of_a_vacuum(fault: Fault) -> None:
    """After any failure the newest version is whole, and a second vacuum leaves the same files as one without
    faults."""

    def vacuum(table: DeltaTable) -> None:
        table.vacuum(retention=timedelta(0), enforce_retention=False)

    before = start("true")
    table = DeltaTable(place(before))
    deltaic.write(table, rows(8), mode="overwrite_partitions")
    table.delete("id = 5")
    before.objects = {path: (data, 1_000) for path, (data, _) in before.objects.items()}
    origin = content(table.location)
    done = NumberedStore(before.objects)
    vacuum(DeltaTable(place(done)))
    kept = data_files(done)
    assert kept < data_files(before)
    total = len(done.calls)
    for number in range(1, total + 1):
        store = NumberedStore(before.objects)
        error = run(vacuum, store, number, fault)
        assert content(place(store)) == origin, (number, error)
        assert kept <= data_files(store), (number, error)
        assert run(vacuum, store, None, fault) is None
        assert (content(place(store)), data_files(store)) == (origin, kept), (number, error)
