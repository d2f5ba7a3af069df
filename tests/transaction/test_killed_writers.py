"""A process that changes one table is killed by `kill -9` repeatedly: each commit that it acknowledged is
there once, and the rows are those of the commits of the history, one after the other.
`DELTAIC_KILLED_WRITERS=500` makes a longer run."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

import deltaic

KILLS = int(os.environ.get("DELTAIC_KILLED_WRITERS", "16"))

# Prints each change that is committed. The change is also in the commit: the numbers identify it.
WRITER = """
import sys
from datetime import timedelta
import deltaic

path, number = sys.argv[1], int(sys.argv[2])
print("begun", flush=True)
while True:
    for change in ("append", "update", "append", "delete", "merge", "compact", "vacuum"):
        number += 1
        options = deltaic.CommitOptions(user_metadata=f"{change} {number}")
        table = deltaic.DeltaTable(path)
        version = table.version
        if change == "append":
            rows = {"id": [number, number + 500_000], "n": [0, 0]}
            table = deltaic.write(table, rows, mode="append", commit=options)
        elif change == "update":
            table.update({"n": "n + 1"}, "id = 0", commit=options)
        elif change == "delete":
            table.delete(f"id % 7 = {number % 7} AND id > 0", commit=options)
        elif change == "merge":
            merge = table.merge({"id": [0, number], "n": [0, 0]}, "s.id = t.id", commit=options)
            merge.when_matched_update({"n": "t.n + 1"}).when_not_matched_insert_all().execute()
        elif change == "compact":
            table.optimize.compact(commit=options)
        else:
            table.vacuum(retention=timedelta(0), enforce_retention=False)
            continue
        if table.version > version:  # a command that changes nothing makes no commit
            print(f"{change} {number}", flush=True)
"""


def replayed(changes: list[str]) -> list[tuple[int, int]]:
    """Returns the rows after these changes."""
    rows, counter = set[int](), 0
    for text in changes:
        change, _, digits = text.partition(" ")
        number = int(digits)
        if change == "append":
            rows |= {number, number + 500_000}
        elif change == "delete":
            rows = {row for row in rows if row % 7 != number % 7}
        elif change == "merge":
            rows.add(number)
        counter += change in ("update", "merge")
    return [(0, counter), *((row, 0) for row in sorted(rows))]


@pytest.mark.timeout(300 + 3 * KILLS)
@pytest.mark.parametrize("vectors", [True, False])
def test_a_killed_writer_leaves_whole_commits(tmp_path: Path, vectors: bool) -> None:
    path = tmp_path / "table"
    properties = {"delta.enableDeletionVectors": vectors, "delta.checkpointInterval": 5}
    deltaic.write(path, {"id": [0], "n": [0]}, properties=properties)
    chance = random.Random(vectors)
    said: list[str] = []
    with (tmp_path / "errors").open("wb") as errors:
        for kill in range(-(-KILLS // 2)):
            command = [sys.executable, "-c", WRITER, str(path), str(1000 * (kill + 1))]
            with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as writer:
                assert writer.stdout is not None
                assert writer.stdout.readline() == "begun\n", (tmp_path / "errors").read_text()
                for _ in range(chance.randrange(8)):
                    line = writer.stdout.readline()
                    assert line, (tmp_path / "errors").read_text()
                    said.append(line.strip())
                try:
                    writer.wait(chance.random() * 0.1)
                except subprocess.TimeoutExpired:
                    writer.kill()
                said += map(str.strip, writer.stdout)
            table = deltaic.DeltaTable(path)
            commits = [
                str(entry["userMetadata"]) for entry in reversed(table.history()) if entry.get("userMetadata")
            ]
            assert len(set(commits)) == len(commits)
            assert set(said) <= set(commits)
            found = table.scan().to_arrow()
            assert sorted(zip(found["id"].to_pylist(), found["n"].to_pylist(), strict=True)) == replayed(
                commits
            )
    assert (tmp_path / "errors").read_text() == ""
    assert len(said) > KILLS / 2
    deltaic.DeltaTable(path).vacuum()
