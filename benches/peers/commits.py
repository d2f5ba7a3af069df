"""Measures commits beside deltalake: `python benches/peers/commits.py [--commits N] [--late N] [--record
FILE]`.

rate: blind appends of ten rows to a local table by 8 threads, and by 8 processes, until all are committed.
deltaic's commits are durable; deltalake syncs nothing. A writer whose append fails continues, and the failure
is counted. Checkpoints and checksums are written in the background. late: the median time of 50 appends,
openings and refreshes from version 100 on, and from version N on, in one process. The times are seconds of
the clock and of the processors.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
from _pairs import environment

import deltaic

WRITERS = 8
SAMPLES = 50
ROWS = pa.table({"id": pa.array(range(10), pa.int64()), "x": pa.array([1.5] * 10)})


def ours(folder: str) -> None:
    deltaic.write(folder, ROWS, mode="append")


def theirs(folder: str) -> None:
    deltalake.write_deltalake(folder, ROWS, mode="append")


SYSTEMS: dict[str, Callable[[str], None]] = {"deltaic": ours, "deltalake": theirs}


def write(system: str, folder: str, commits: int) -> int:
    """Appends, and returns the number of appends that failed."""
    failed = 0
    for _ in range(commits):
        try:
            SYSTEMS[system](folder)
        except Exception:
            failed += 1
    return failed


@dataclass(frozen=True)
class Appends:
    """Appends of all writers: how many failed, and seconds of the clock and of the processors from the first
    on."""

    failed: int
    seconds: float
    processors: float


def by_threads(system: str, folder: str, commits: int) -> Appends:
    failures: list[int] = []
    threads = [
        threading.Thread(target=lambda: failures.append(write(system, folder, commits)))
        for _ in range(WRITERS)
    ]
    began, processors = time.perf_counter(), time.process_time()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return Appends(sum(failures), time.perf_counter() - began, time.process_time() - processors)


def by_processes(system: str, folder: str, commits: int) -> Appends:
    """Appends by processes that begin at the same time. Before, each makes an append to a table of its own,
    which imports the modules that it needs."""
    command = [sys.executable, __file__, "--writer", system, folder, str(commits)]
    writers = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment())
        for _ in range(WRITERS)
    ]
    for writer in writers:
        assert writer.stdout is not None
        writer.stdout.readline()
    began = time.perf_counter()
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("\n")
        writer.stdin.flush()
    answers = [json.loads(writer.communicate()[0]) for writer in writers]
    return Appends(
        sum(failed for failed, _ in answers),
        time.perf_counter() - began,
        sum(processors for _, processors in answers),
    )


def writer(system: str, folder: str, commits: int) -> None:
    """Runs one of the processes."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as own:
        SYSTEMS[system](own)
        print("ready", flush=True)
        sys.stdin.readline()
        processors = time.process_time()
        failed = write(system, folder, commits)
        print(json.dumps([failed, time.process_time() - processors]))


def rate(system: str, way: Callable[[str, str, int], Appends], commits: int) -> dict[str, Any]:
    # a checkpoint may be written meanwhile
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        SYSTEMS[system](folder)
        appends = way(system, folder, commits)
        done = deltaic.DeltaTable(folder).version
        assert done == WRITERS * commits - appends.failed
    milliseconds = round(appends.processors / done * 1e3, 2)
    return {
        "commits_per_second": round(done / appends.seconds, 1),
        "failed": appends.failed,
        "processor_ms_per_commit": milliseconds,
    }


def medians(folder: str) -> dict[str, float]:
    """Returns the milliseconds of the processors, and of the clock, of the appends and reads at the table's
    present version."""
    jobs: dict[str, Callable[[], object]] = {}
    table = deltaic.DeltaTable(folder)
    reader = deltaic.DeltaTable(folder)
    jobs["append"] = lambda: deltaic.write(table, ROWS, mode="append")
    jobs["refresh"] = reader.refresh
    jobs["open"] = lambda: deltaic.DeltaTable(folder).version
    found: dict[str, list[float]] = {}
    for _ in range(SAMPLES):
        for name, job in jobs.items():
            processors, began = time.process_time(), time.perf_counter()
            job()
            found.setdefault(name, []).append((time.perf_counter() - began) * 1e3)
            found.setdefault(f"{name}, processors", []).append((time.process_time() - processors) * 1e3)
    return {name: round(statistics.median(values), 3) for name, values in found.items()}


def late(version: int) -> dict[str, Any]:
    # a checkpoint may be written meanwhile
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        table = deltaic.write(folder, ROWS)
        measured = {}
        for wanted in (100, version):
            while table.version < wanted:
                table = deltaic.write(table, ROWS, mode="append")
            measured[str(wanted)] = medians(folder)
            table.refresh()
    early, now = measured["100"], measured[str(version)]
    return {**measured, "times": {name: round(now[name] / early[name], 2) for name in early}}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--commits", type=int, default=50, help="of each writer")
    parser.add_argument("--late", type=int, default=10_000)
    parser.add_argument("--record", type=Path)
    parser.add_argument("--writer", nargs=3)
    arguments = parser.parse_args()
    deltaic.configure(background_checkpoints=True)
    if arguments.writer:
        system, folder, commits = arguments.writer
        writer(system, folder, int(commits))
        return
    result: dict[str, Any] = {
        "machine": f"{platform.machine()}, {platform.system()}",
        "processors": os.cpu_count(),
    }
    result["versions"] = {
        "deltaic": deltaic.__version__,
        "deltalake": deltalake.__version__,
        "python": platform.python_version(),
    }
    for name, way in (("8 threads", by_threads), ("8 processes", by_processes)):
        result[name] = {system: rate(system, way, arguments.commits) for system in SYSTEMS}
        result[name]["times"] = round(
            result[name]["deltaic"]["commits_per_second"] / result[name]["deltalake"]["commits_per_second"], 1
        )
        print(name, result[name], flush=True)
    if arguments.late:
        result["late"] = late(arguments.late)
        print(result["late"])
    if arguments.record:
        arguments.record.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
