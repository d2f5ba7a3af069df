"""A process that commits over three tables is killed by `kill -9` repeatedly: after each time, all of a
transaction is there, or nothing. `DELTAIC_KILLED_TRANSACTIONS=500` makes a longer run."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

import deltaic

KILLS = int(os.environ.get("DELTAIC_KILLED_TRANSACTIONS", "24"))

# Adds the same ids to a, b and c, by an append, a MERGE and an UPDATE that counts, and prints each one that
# is committed.
WRITER = """
import sys
import deltaic
from deltaic.log import intents

intents.WAITS = (0.01,) * 5
root, number = sys.argv[1], int(sys.argv[2])
print("begun", flush=True)
while True:
    number += 1
    a, b, c = (deltaic.DeltaTable(f"{root}/{name}") for name in "abc")
    with deltaic.transaction(a, b, c) as t:
        t.write(a, {"id": [number], "n": [0]})
        t.merge(b, {"id": [number], "n": [0]}, "s.id = t.id").when_not_matched_insert_all().execute()
        t.update(c, {"n": "n + 1"}, "id = 0")
    print(number, flush=True)
"""


def _found(root: Path, order: str) -> dict[str, list[int]]:
    """Ids of a and b, and as many as c has counted."""
    found: dict[str, list[int]] = {}
    for name in order:
        rows = deltaic.DeltaTable(root / name).scan().to_arrow()
        found[name] = sorted(rows["id"].to_pylist()) if name != "c" else list(range(rows["n"].to_pylist()[0]))
    return found


@pytest.mark.timeout(300 + 3 * KILLS)
def test_a_killed_process_leaves_all_of_a_transaction_or_nothing(tmp_path: Path) -> None:
    for name in "abc":
        deltaic.write(tmp_path / name, {"id": [0], "n": [0]})
    chance = random.Random(1)
    said: list[int] = []
    with (tmp_path / "errors").open("wb") as errors:
        for kill in range(KILLS):
            writer = subprocess.Popen(
                [sys.executable, "-c", WRITER, str(tmp_path), str(1000 * (kill + 1))],
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
            assert writer.stdout is not None
            assert writer.stdout.readline() == "begun\n", (tmp_path / "errors").read_text()
            for _ in range(chance.randrange(3)):
                line = writer.stdout.readline()
                assert line, (tmp_path / "errors").read_text()
                said.append(int(line))
            try:
                writer.wait(chance.random() * 0.2)
            except subprocess.TimeoutExpired:
                writer.kill()
            said += map(int, writer.stdout.read().split())
            writer.wait()
            writer.stdout.close()
            found = _found(tmp_path, chance.choice(["abc", "cba", "bca"]))
            assert found["a"] == found["b"]
            assert len(found["c"]) == len(found["a"]) - 1
            assert set(said) <= set(found["a"])
    assert [
        line for line in (tmp_path / "errors").read_text().splitlines() if "was left undecided" not in line
    ] == []
    assert len(said) > KILLS / 2
