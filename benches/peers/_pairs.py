"""Runs rival systems side by side: each run is a fresh process, the systems take turns, and the minimum of
each counts.

A bench script passes its jobs to `main`. Called with `--child SYSTEM JOB ROOT`, the same script does one run:
it prepares, does the work a few times, and prints the best seconds and a check of the result. If the checks
of a job differ between the systems, the bench ends.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# What one run does: the work, how often (the best counts), and a check of what the last time gave.
Run = tuple[Callable[[], Any], int, Callable[[Any], object]]


@dataclass(frozen=True, kw_only=True)
class Job:
    """`limits`: maximum ratio of our seconds to the rival's, plus `slack` seconds; None if they are only
    recorded. `seconds`: maximum seconds of a job without a rival."""

    name: str
    limits: Mapping[str, float | None]
    slack: float = 0.0
    seconds: float | None = None


def data(rows: int) -> Any:
    """Returns the table that all benches use: id (ascending), key (1000 values), value, name (100,000
    values), at."""
    import numpy as np
    import pyarrow as pa

    rng = np.random.default_rng(7)
    return pa.table(
        {
            "id": np.arange(rows),
            "key": rng.integers(0, 1000, rows).astype(np.int32),
            "value": np.round(rng.random(rows) * 1000, 3),
            "name": (
                pa.array([f"customer {number:06}" for number in range(100_000)]).take(
                    pa.array(rng.integers(0, 100_000, rows))
                )
            ),
            "at": pa.array(
                rng.integers(1_600_000_000_000_000, 1_700_000_000_000_000, rows), pa.timestamp("us", "UTC")
            ),
        }
    )


SUMS = {
    "id": "sum(id)::varchar",
    "key": "sum(key)::varchar",
    "value": "sum(round(value * 1000)::hugeint)::varchar",
    "name": "sum(hash(name::varchar)::hugeint)::varchar",
    "at": 'sum(epoch_us("at")::hugeint)::varchar',
}


def sums(source: Any) -> list[Any]:
    """Returns count and sums of Arrow data, or of the Parquet files of a glob, by DuckDB: equal for the same
    rows in any order."""
    import duckdb

    with duckdb.connect() as connection:
        if isinstance(source, str):
            connection.execute(f"CREATE VIEW t AS SELECT * FROM read_parquet('{source}')")
        else:
            connection.register("t", source)
        columns = [row[0] for row in connection.execute("DESCRIBE t").fetchall()]
        asked = ", ".join(["count(*)::varchar", *(SUMS[column] for column in columns)])
        return list(connection.execute(f"SELECT {asked} FROM t").fetchone() or ())


def timed(run: Run) -> dict[str, Any]:
    work, times, check = run
    best, answer = float("inf"), None
    for _ in range(times):
        answer = None  # what the last time gave is freed outside the clock
        start = time.perf_counter()
        answer = work()
        best = min(best, time.perf_counter() - start)
    return {"seconds": best, "check": check(answer)}


def environment() -> dict[str, str]:
    """Returns the environment of a run, which may write byte code. Installed packages have their byte code;
    without this, each run would compile deltaic, which is here as source."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def in_a_process(script: str, system: str, job: str, root: Path) -> dict[str, Any]:
    command = [sys.executable, script, "--child", system, job, str(root)]
    finished = subprocess.run(command, capture_output=True, text=True, env=environment())
    if finished.returncode:
        raise SystemExit(f"{system} {job} failed:\n{finished.stderr}")
    found: dict[str, Any] = json.loads(finished.stdout.strip().splitlines()[-1])
    return found


def compare(script: str, job: Job, root: Path, pairs: int) -> dict[str, Any]:
    systems = ["deltaic", *job.limits]
    best: dict[str, dict[str, Any]] = {}
    for _ in range(pairs):
        for system in systems:
            found = in_a_process(script, system, job.name, root)
            if system not in best or found["seconds"] < best[system]["seconds"]:
                best[system] = found
            if found["check"] != best["deltaic"]["check"]:
                raise SystemExit(
                    f"{job.name}: deltaic and {system}"
                    f" disagree:\n{best['deltaic']['check']}\n{found['check']}"
                )
    ours = best["deltaic"]["seconds"]
    row: dict[str, Any] = {"job": job.name, "deltaic": ours, "rivals": {}}
    if job.seconds is not None:
        row |= {"limit_seconds": job.seconds, "met": ours <= job.seconds}
    for system, limit in job.limits.items():
        theirs = best[system]["seconds"]
        met = None if limit is None else ours <= theirs * limit + job.slack
        row["rivals"][system] = {"seconds": theirs, "ratio": ours / theirs, "limit": limit, "met": met}
    return row


def show(row: Mapping[str, Any]) -> None:
    words = {None: "recorded", True: "met", False: "MISSED"}
    if "limit_seconds" in row:
        print(
            f"{row['job']:24} {row['deltaic']:8.4f} s (<= {row['limit_seconds']:g}) {words[row['met']]}",
            flush=True,
        )
    for system, rival in row["rivals"].items():
        limit = "" if rival["limit"] is None else f" (<= {rival['limit']:g})"
        print(
            f"{row['job']:24} {row['deltaic']:8.4f} s | {system:18} {rival['seconds']:8.4f} s | "
            f"{rival['ratio']:6.3f} x{limit} {words[rival['met']]}",
            flush=True,
        )


def versions() -> dict[str, str]:
    from importlib.metadata import distributions

    import deltaic._core

    names = ("deltalake", "duckdb", "pyarrow")
    found = {each.name: each.version for each in distributions() if each.name in names}
    return found | {"deltaic": deltaic._core.__version__, "python": platform.python_version()}


def processor() -> str:
    """Returns the processor's name from the system."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")),
        platform.machine(),
    )


def record(path: Path, rows: int, pairs: int, results: Sequence[Mapping[str, Any]]) -> None:
    machine = {
        "processor": processor(),
        "cores": os.cpu_count(),
        "system": platform.platform(),
        "load": list(os.getloadavg()),
    }
    command = " ".join(["python", *sys.argv])
    document = {
        "command": command,
        "machine": machine,
        "versions": versions(),
        "rows": rows,
        "pairs": pairs,
        "results": list(results),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=1) + "\n")


def main(
    script: str,
    doc: str | None,
    jobs: Sequence[Job],
    prepare: Callable[[Path, int], None],
    run: Callable[[str, str, Path], Run],
    *,
    rows: int = 4_000_000,
) -> None:
    """Runs the command line of a bench. `prepare(root, rows)` makes the data of all runs; `run(system, job,
    root)` is one run."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=rows)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--jobs", default=",".join(job.name for job in jobs), help="comma-separated")
    parser.add_argument("--record", type=Path, help="file for the results as JSON")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        system, job, root = options.child
        print(json.dumps(timed(run(system, job, Path(root)))), flush=True)
        # deltalake ends with "terminate called" where its threads are still there when the interpreter ends
        os._exit(0)
    wanted = options.jobs.split(",")
    results = []
    with tempfile.TemporaryDirectory(prefix="deltaic-bench-") as directory:
        root = Path(directory)
        prepare(root, options.rows)
        for job in jobs:
            if job.name in wanted:
                results.append(compare(script, job, root, options.pairs))
                show(results[-1])
        if options.record:
            record(options.record, options.rows, options.pairs, results)
    if any(each.get("met") is False for row in results for each in (row, *row["rivals"].values())):
        raise SystemExit("a target was missed")
