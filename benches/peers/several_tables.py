"""Measures a transaction over three tables beside three single commits: `python
benches/peers/several_tables.py [--rounds N] [--record FILE]`.

appends: a row to each of three local tables. changes: an append, an UPDATE and a DELETE. Each job runs with
and without syncs to the disk. The two systems take turns in one process on tables of their own, which must
hold the same rows at the end. The median of the rounds counts.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import deltaic

LIMIT = 2.0
"""Maximum ratio of a transaction's time to that of the three single commits."""
NAMES = ("a", "b", "c")
FIRST = {"id": list(range(1000)), "n": [0] * 1000}
Tables = list[deltaic.DeltaTable]


def appends_together(tables: Tables, number: int) -> None:
    with deltaic.transaction(*tables) as t:
        for table in tables:
            t.write(table, {"id": [number], "n": [1]})


def appends_alone(tables: Tables, number: int) -> None:
    for table in tables:
        deltaic.write(table, {"id": [number], "n": [1]}, mode="append")


def changes_together(tables: Tables, number: int) -> None:
    a, b, c = tables
    with deltaic.transaction(a, b, c) as t:
        t.write(a, {"id": [number], "n": [1]})
        t.update(b, {"n": "n + 1"}, f"id = {number % 1000}")
        t.delete(c, f"id = {number % 1000}")


def changes_alone(tables: Tables, number: int) -> None:
    a, b, c = tables
    deltaic.write(a, {"id": [number], "n": [1]}, mode="append")
    b.update({"n": "n + 1"}, f"id = {number % 1000}")
    c.delete(f"id = {number % 1000}")


JOBS: dict[str, tuple[Callable[[Tables, int], None], Callable[[Tables, int], None]]] = {
    "appends": (appends_together, appends_alone),
    "changes": (changes_together, changes_alone),
}


def run(job: str, rounds: int) -> dict[str, Any]:
    """Returns the median seconds of both, and the ratio of the transaction's to that of the single
    commits."""
    ways = dict(zip(("transaction", "single commits"), JOBS[job], strict=True))
    found: dict[str, list[float]] = {way: [] for way in ways}
    with tempfile.TemporaryDirectory(prefix="deltaic-bench-") as folder:
        tables = {way: [deltaic.write(f"{folder}/{way}/{name}", FIRST) for name in NAMES] for way in ways}
        for number in range(2000, 2000 + rounds + 3):
            for way, work in ways.items():
                began = time.perf_counter()
                work(tables[way], number)
                found[way].append(time.perf_counter() - began)
        rows = [
            [sorted((row["id"], row["n"]) for row in table.scan()) for table in each]
            for each in tables.values()
        ]
        assert rows[0] == rows[1]
        again = [
            sorted((row["id"], row["n"]) for row in deltaic.DeltaTable(table.location).scan())
            for table in tables["transaction"]
        ]
        assert again == rows[0]
    medians = {way: statistics.median(times[3:]) for way, times in found.items()}
    seconds = {way: round(value, 5) for way, value in medians.items()}
    return {
        "seconds": seconds,
        "times": round(medians["transaction"] / medians["single commits"], 2),
        "limit": LIMIT,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--record", type=Path, help="where to write the numbers as JSON")
    options = parser.parse_args()
    result: dict[str, Any] = {
        "command": " ".join(["python", "benches/peers/several_tables.py", *sys.argv[1:]])
    }
    result["machine"] = {
        "cores": os.cpu_count(),
        "system": platform.platform(),
        "load": list(os.getloadavg()),
    }
    result["versions"] = {"deltaic": deltaic.__version__, "python": platform.python_version()}
    jobs: dict[str, Any] = {}
    for job in JOBS:
        for durable in (True, False):
            with nullcontext() if durable else deltaic.configure(durable=False):
                found = run(job, options.rounds)
            jobs[f"{job}, synced" if durable else job] = found
            print(f"{job:8} durable={durable!s:5} {found}", flush=True)
    result["jobs"] = jobs
    if options.record:
        options.record.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    if any(found["times"] > LIMIT for found in jobs.values()):
        raise SystemExit("a target was missed")


if __name__ == "__main__":
    main()
