"""Measures if memory stays constant during 10,000 appends and refreshes in one process: `python
benches/peers/appends.py [--commits N] [--record FILE]`.

Each round appends one row to a local table and refreshes a second object of it; every hundredth round reads a
few rows. Checkpoints are written at the table's interval (every 10 commits). The bench prints, and records as
JSON, the resident memory after each tenth of the rounds, before and after the allocators return their free
pages, and the seconds. The table gets a file with each commit, so that its two snapshots grow by what they
hold for a file; the memory that stays when they are freed is printed at the end.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import platform
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow as pa

import deltaic

# Two snapshots hold an add action of each file: path, statistics as JSON, and a score of columns that are
# null.
MOST_BYTES_PER_COMMIT = 2_500


def resident() -> int:
    """Returns the bytes of this process in memory."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize()


def trimmed() -> int:
    """`resident` after the allocators gave back what they only kept for later."""
    gc.collect()
    pa.default_memory_pool().release_unused()
    if sys.platform == "linux":
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    return resident()


def run(folder: str, commits: int, compact_every: int) -> dict[str, Any]:
    properties = {"delta.deletedFileRetentionDuration": "interval 0 hours"} if compact_every else None
    table = deltaic.write(folder, pa.table({"id": pa.array([0], pa.int64())}), properties=properties)
    reader = deltaic.DeltaTable(folder)
    samples = []
    step = max(commits // 10, 1)
    began = time.perf_counter()
    for number in range(1, commits + 1):
        deltaic.write(table, pa.table({"id": pa.array([number], pa.int64())}), mode="append")
        reader.refresh()
        if number % 100 == 0:
            assert reader.scan(["id"], f"id = {number}").count() == 1
        if compact_every and number % compact_every == 0:
            table.optimize.compact()
        if number % step == 0:
            files = len(reader.files().to_arrow())
            seconds = round(time.perf_counter() - began, 2)
            samples.append(
                {
                    "commits": number,
                    "files": files,
                    "resident": resident(),
                    "trimmed": trimmed(),
                    "seconds": seconds,
                }
            )
            megabytes = [samples[-1][name] / 1e6 for name in ("resident", "trimmed")]
            print(
                f"{number:>7} commits {files:>7} files {megabytes[0]:8.1f} MB, trimmed {megabytes[1]:8.1f} MB"
                f" {seconds:8.1f} s",
                flush=True,
            )
            began = time.perf_counter()
    assert reader.scan().count() == commits + 1
    del table, reader
    return {"samples": samples, "trimmed_without_tables": trimmed()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--commits", type=int, default=10_000)
    parser.add_argument(
        "--compact-every", type=int, default=0, help="0: never, so that the table has a file for each commit"
    )
    parser.add_argument("--record", type=Path, help="where to write the numbers as JSON")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, deltaic.configure(durable=False):
        found = run(f"{folder}/table", arguments.commits, arguments.compact_every)
    first, last = found["samples"][0], found["samples"][-1]
    commits = max(last["commits"] - first["commits"], 1)
    for name in ("resident", "trimmed"):
        found[f"{name}_bytes_per_commit"] = round((last[name] - first[name]) / commits, 1)
        print(f"{name}: {found[f'{name}_bytes_per_commit']} bytes a commit")
    print(f"without the tables {found['trimmed_without_tables'] / 1e6:.1f} MB")
    if arguments.record:
        about = {
            "machine": f"{platform.machine()}, {platform.system()}",
            "python": platform.python_version(),
            "deltaic": deltaic.__version__,
            "pyarrow": pa.__version__,
            "command": " ".join(["python", "benches/peers/appends.py", *sys.argv[1:]]),
        }
        arguments.record.write_text(json.dumps({**about, **found}, indent=1) + "\n", encoding="utf-8")
    if found["trimmed_bytes_per_commit"] > MOST_BYTES_PER_COMMIT:
        sys.exit(f"memory is not flat: more than {MOST_BYTES_PER_COMMIT} bytes a commit")


if __name__ == "__main__":
    main()
