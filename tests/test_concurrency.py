"""Writers that change one table at the same time, in threads and in processes: no acknowledged commit is
lost, and none is there twice."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltaic
from deltaic import DeltaTable
from deltaic.errors import (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentWriteException,
    DeltaConcurrentModificationException,
    MetadataChangedException,
)

COUNTER = -1
"""The row that every writer adds one to: each lost update shows in its value."""


def rows(*pairs: tuple[int, int]) -> pa.Table:
    return pa.table(
        {
            "id": pa.array([pair[0] for pair in pairs], pa.int64()),
            "n": pa.array([pair[1] for pair in pairs], pa.int64()),
        }
    )


def again(path: str, command: Any) -> int:
    """Does a command on the newest version until no other writer is in its way; -> how often one was."""
    conflicts = 0
    while True:
        try:
            command(DeltaTable(path))
            return conflicts
        except (ConcurrentAppendException, ConcurrentDeleteReadException, ConcurrentDeleteDeleteException):
            conflicts += 1


def work(path: str, writer: int, rounds: int) -> dict[str, Any]:
    """Runs one writer: appends, deletes, merges of its own ids, and steps of the common counter. Returns what
    was acknowledged."""
    chance = random.Random(writer)
    own: dict[int, int] = {}
    steps = conflicts = 0
    for number in range(rounds):
        first = writer * 10_000 + number * 10
        deltaic.write(path, rows(*((first + each, 0) for each in range(3))), mode="append")
        own.update({first + each: 0 for each in range(3)})
        conflicts += again(path, lambda table: table.update({"n": "n + 1"}, f"id = {COUNTER}"))
        steps += 1
        victim = chance.choice(sorted(own))
        conflicts += again(path, lambda table, victim=victim: table.delete(f"id = {victim}"))
        del own[victim]
        source = rows((first + 1, number), (first + 5, number))

        def merge(table: DeltaTable, source: pa.Table = source) -> None:
            table.merge(
                source, "t.id = s.id"
            ).when_matched_update_all().when_not_matched_insert_all().execute()

        conflicts += again(path, merge)
        own.update({first + 1: number, first + 5: number})
        if number % 3 == 2:
            conflicts += again(path, lambda table: table.optimize.compact())
    return {"own": [[key, own[key]] for key in sorted(own)], "steps": steps, "conflicts": conflicts}


def check(path: str, done: list[dict[str, Any]]) -> None:
    table = DeltaTable(path)
    found = table.scan().to_arrow()
    pairs = sorted(zip(found["id"].to_pylist(), found["n"].to_pylist(), strict=True))
    expected = [(COUNTER, sum(each["steps"] for each in done))]
    expected += [(key, value) for each in done for key, value in each["own"]]
    assert pairs == sorted(expected)
    ids = [entry["txnId"] for entry in table.history()]
    assert len(ids) == table.version + 1 == len(set(ids))
    # Every version can be read, and the counter never goes back.
    values = [
        table.at(version).scan(["n"], f"id = {COUNTER}").to_arrow()["n"].to_pylist()
        for version in range(0, table.version + 1, 7)
    ]
    assert all(len(each) == 1 for each in values)
    assert values == sorted(values)


@pytest.mark.parametrize("vectors", [True, False])
def test_threads_that_change_one_table(tmp_path: Path, vectors: bool) -> None:
    deltaic.write(
        tmp_path,
        rows((COUNTER, 0)),
        properties={"delta.enableDeletionVectors": vectors, "delta.checkpointInterval": 5},
    )
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda writer: work(str(tmp_path), writer, 3), range(1, 5)))
    check(str(tmp_path), done)


def test_processes_that_change_one_table(tmp_path: Path) -> None:
    path = tmp_path / "t"
    deltaic.write(path, rows((COUNTER, 0)), properties={"delta.checkpointInterval": 5})
    script = (
        "import json, sys; import test_concurrency as t; print(json.dumps(t.work(sys.argv[1],"
        " int(sys.argv[2]), 3)))"
    )
    here = str(Path(__file__).parent)
    arguments = [
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {here!r}); {script}", str(path), str(writer)]
        for writer in range(1, 5)
    ]
    processes = [subprocess.Popen(each, stdout=subprocess.PIPE, text=True) for each in arguments]
    answers = [process.communicate(timeout=300)[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * 4
    check(str(path), [json.loads(answer) for answer in answers])


def at_once(*commands: Any) -> list[BaseException | None]:
    """Runs all commands from the same version, each in a thread, and returns the error that each raised."""
    outcomes: list[BaseException | None] = [None] * len(commands)
    begin = threading.Barrier(len(commands))

    def one(number: int) -> None:
        begin.wait()
        try:
            commands[number]()
        except Exception as error:
            outcomes[number] = error

    threads = [threading.Thread(target=one, args=(number,)) for number in range(len(commands))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


def test_of_many_that_change_one_row_from_one_version_a_single_one_wins(tmp_path: Path) -> None:
    deltaic.write(tmp_path, rows((COUNTER, 0)))
    tables = [DeltaTable(tmp_path) for _ in range(6)]
    outcomes = at_once(
        *(lambda table=table: table.update({"n": "n + 1"}, f"id = {COUNTER}") for table in tables)
    )
    assert outcomes.count(None) == 1
    # The winner added a file with the row: delta-spark checks added files before removed ones.
    assert all(isinstance(each, ConcurrentAppendException) for each in outcomes if each is not None)
    newest = DeltaTable(tmp_path)
    assert (newest.version, newest.scan(["n"]).to_arrow()["n"].to_pylist()) == (1, [1])
    # The losers' files are gone.
    live = newest.files().to_arrow()["path"].to_pylist()
    old = newest.at(0).files().to_arrow()["path"].to_pylist()
    assert sorted(path.name for path in tmp_path.glob("*.parquet")) == sorted({*live, *old})


def test_partitions_that_do_not_meet_do_not_conflict(tmp_path: Path) -> None:
    months = range(4)
    data = pa.table({"id": pa.array(range(8), pa.int64()), "month": [str(number % 4) for number in range(8)]})
    deltaic.write(tmp_path, data, partition_by="month")
    tables = [DeltaTable(tmp_path) for _ in months]
    outcomes = at_once(
        *(lambda month=month: tables[month].delete(f"month = '{month}' AND id < 4") for month in months)
    )
    assert outcomes == [None] * 4
    assert sorted(DeltaTable(tmp_path).scan(["id"]).to_arrow()["id"].to_pylist()) == [4, 5, 6, 7]


def test_a_change_of_the_schema_stops_those_who_write_beside_it(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path, rows((1, 1)))
    others = [DeltaTable(tmp_path), DeltaTable(tmp_path)]
    table.alter.add_columns("word string")
    commands = (
        lambda each: each.delete("id = 1"),
        lambda each: deltaic.write(each, rows((2, 2)), mode="append"),
    )
    for other, command in zip(others, commands, strict=True):
        with pytest.raises(MetadataChangedException) as raised:
            command(other)
        assert isinstance(raised.value, DeltaConcurrentModificationException)
        assert raised.value.winner == 1
    assert DeltaTable(tmp_path).version == 1


def test_a_winner_whose_vector_was_vacuumed_is_a_conflict(tmp_path: Path) -> None:
    """VACUUM deletes the vector of version 1, which shows what the winner deleted, while the loser still
    reads version 0."""
    deltaic.write(tmp_path, rows(*((number, 0) for number in range(2000))))
    loser, winner = DeltaTable(tmp_path), DeltaTable(tmp_path)
    winner.delete("id % 5 = 0")
    winner.delete("id % 11 = 0")
    winner.vacuum(retention=timedelta(0), enforce_retention=False)
    with pytest.raises(
        ConcurrentWriteException, match="version 1 came first, and a file that shows what it changed"
    ) as raised:
        loser.delete("id = 3")
    assert raised.value.winner == 1
    assert DeltaTable(tmp_path).scan(where="id = 3").count() == 1
    loser.refresh()
    assert loser.delete("id = 3")["num_deleted_rows"] == 1
