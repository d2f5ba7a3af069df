"""Processes that commit to one table as fast as they can: no acknowledged commit is lost, and none is there
twice.

`DELTAIC_LOAD=16x500` makes 16 processes commit 500 times each; the default is a few commits of a few
processes.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import deltaic
from deltaic import DeltaTable
from store_servers import S3, Place, Request

PROCESSES, COMMITS = (int(each) for each in os.environ.get("DELTAIC_LOAD", "3x4").split("x"))
DELETERS = max(PROCESSES, 8)

APPEND = """
import json, sys
import pyarrow as pa, deltaic
from deltaic.errors import CommitUnknownError
location, options, writer, commits = sys.argv[1], json.loads(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
table, told, unknown = deltaic.DeltaTable(location, storage_options=options), [], []
for number in range(commits):
    row = writer * 1_000_000 + number
    try:
        table = deltaic.write(table, pa.table({"id": pa.array([row], pa.int64())}), mode="append")
        told.append(row)
    except CommitUnknownError:
        unknown.append(row)
print(json.dumps([told, unknown]))
"""

DELETE = """
import json, sys
import deltaic
location, options, writer, commits = sys.argv[1], json.loads(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
rows = [writer * 1_000_000 + number for number in range(commits)]
for row in rows:
    table = deltaic.DeltaTable(location, storage_options=options)
    assert table.delete(f"id = {row}")["num_deleted_rows"] == 1
print(json.dumps([rows, []]))
"""


def at_once(script: str, place: Place, processes: int = PROCESSES) -> list[tuple[list[int], list[int]]]:
    """Returns the rows of each process that were acknowledged, and those whose outcome is unknown."""
    options = json.dumps(place.options)
    arguments = [
        [sys.executable, "-c", script, place.at(), options, str(writer), str(COMMITS)]
        for writer in range(1, processes + 1)
    ]
    started = [subprocess.Popen(each, stdout=subprocess.PIPE, text=True) for each in arguments]
    answers = [process.communicate()[0] for process in started]
    assert [process.returncode for process in started] == [0] * processes
    return [tuple(json.loads(answer)) for answer in answers]  # type: ignore[misc]


def check_appends(place: Place) -> None:
    deltaic.write(place.at(), pa.table({"id": pa.array([0], pa.int64())}), storage_options=place.options)
    answers = at_once(APPEND, place)
    table = DeltaTable(place.at(), storage_options=place.options)
    found = table.scan().to_arrow()["id"].to_pylist()
    assert len(found) == len(set(found)) == table.version + 1
    told = {row for done, _ in answers for row in done}
    unknown = {row for _, doubtful in answers for row in doubtful}
    assert told <= set(found) <= told | unknown | {0}
    assert len(told) + len(unknown) == PROCESSES * COMMITS


@pytest.mark.timeout(24 * 3600)
def test_appends_to_a_local_table(tmp_path: Path) -> None:
    check_appends(Place(str(tmp_path), {}))


@pytest.mark.timeout(24 * 3600)
def test_appends_to_a_bucket_that_loses_one_answer_of_twenty(s3: S3) -> None:
    place, chance = s3.place(), random.Random(1)
    assert place.server is not None

    def is_chosen(request: Request) -> bool:
        return request.path.startswith(f"/{s3.bucket}/") and chance.random() < 0.05

    with place.server.fault("lost", is_chosen, times=1 << 30):
        check_appends(place)


@pytest.mark.timeout(24 * 3600)
def test_deleters_of_different_rows_of_one_file_all_succeed(tmp_path: Path) -> None:
    place = Place(str(tmp_path), {})
    rows = [writer * 1_000_000 + number for writer in range(DELETERS + 1) for number in range(COMMITS)]
    deltaic.write(place.at(), pa.table({"id": pa.array(rows, pa.int64())}))
    at_once(DELETE, place, DELETERS)
    table = DeltaTable(place.at())
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == list(range(COMMITS))
    assert (table.version, table.files().to_arrow().num_rows) == (DELETERS * COMMITS, 1)
