"""Measures requests and seconds on an object store beside deltalake: `python benches/peers/stores.py [--delay
S] [--pairs N] [--jobs JOB ...] [--record FILE]`.

The server is moto, with `--delay` seconds added to each request; it counts the requests of the systems. Each
job runs in a fresh process on a table of its own, of 100 files of 2,000 rows in one commit, without deletion
vectors, because deltalake does not read them. The systems take turns, and the minimum of each one's seconds
counts. Imports do not count, so each process has done the job on a local table before.

The seconds end when the call returns; the requests are those of the whole process from the beginning of the
call on.

The job "commits" is the number of blind appends per second by the threads of one process, without delay.

The job "cached" is the second read of an opened table through `configure(cache_directory=)`, beside the same
read of the same table on the local disk: the local read takes the place of deltalake, and has no requests.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from _pairs import environment

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
FILES, ROWS = 100, 2_000
# Upper bound of the seconds of a second read through the cache, as a share of the same read of local files.
CACHED = 1.1
READS = 5
# Upper bounds for each job, as shares of deltalake's seconds and of its requests.
LIMITS = {"open": (0.5, 1.0), "scan": (0.5, 1.0), "delete": (0.5, 1.0), "append": (0.5, 1.0)}
JOBS = (*LIMITS, "commits", "cached")
# Lower bound of the commits per second of THREADS threads, as a multiple of deltalake's.
COMMITS = 3.0
THREADS, APPENDS = 8, 15


def data(count: int) -> Any:
    import pyarrow as pa

    numbers = list(range(count))
    return pa.table(
        {
            "p": [at // ROWS for at in numbers],
            "id": numbers,
            "x": [at / 7 for at in numbers],
            "s": [f"text {at}" for at in numbers],
        }
    )


def ours(job: str, url: str, options: dict[str, str]) -> Any:
    import deltaic

    few = data(10)
    table = None if job in ("open", "append", "commits") else deltaic.DeltaTable(url, storage_options=options)
    return {
        "open": lambda: deltaic.DeltaTable(url, storage_options=options),
        "scan": lambda: table.scan(columns=["id", "x"]).to_arrow(),
        "delete": lambda: table.delete("id = 777"),
        "append": lambda: deltaic.write(url, few, mode="append", storage_options=options),
        "commits": lambda: by_threads(
            lambda: deltaic.write(url, few, mode="append", storage_options=options)
        ),
    }[job]


def deltalake(job: str, url: str, options: dict[str, str]) -> Any:
    import deltalake as peer

    few = data(10)
    table = None if job in ("open", "append", "commits") else peer.DeltaTable(url, storage_options=options)
    return {
        "open": lambda: peer.DeltaTable(url, storage_options=options),
        "scan": lambda: table.to_pyarrow_table(columns=["id", "x"]),
        "delete": lambda: table.delete("id = 777"),
        "append": lambda: peer.write_deltalake(url, few, mode="append", storage_options=options),
        "commits": lambda: by_threads(
            lambda: peer.write_deltalake(url, few, mode="append", storage_options=options)
        ),
    }[job]


def by_threads(append: Callable[[], object]) -> None:
    """Appends by threads. Each continues after an append that failed: `rate` counts the rows of the table."""

    def work() -> None:
        for _ in range(APPENDS):
            with suppress(Exception):
                append()

    threads = [threading.Thread(target=work) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def child(system: str, job: str, url: str, options: dict[str, str], local: str) -> None:
    """Runs a job when a line comes in, and prints its seconds. `local`: a table on which it is done
    before."""
    make = ours if system == "deltaic" else deltalake
    make(job, local, {})()
    call = make(job, url, options)
    print("ready", flush=True)
    sys.stdin.readline()
    began = time.perf_counter()
    call()
    print(time.perf_counter() - began, flush=True)


def measured(s3: Any, system: str, job: str, delay: float, folder: Path) -> tuple[float, dict[str, int], str]:
    import deltaic

    local = str(folder / uuid.uuid4().hex[:8])
    url = f"s3://{s3.bucket}/{uuid.uuid4().hex[:8]}"
    s3.server.delay = 0.0
    properties = {"delta.enableDeletionVectors": False}
    for path, options in ((url, s3.options), (local, None)):
        deltaic.write(
            path, data(FILES * ROWS), partition_by="p", properties=properties, storage_options=options
        )
    command = [sys.executable, __file__, "--child", json.dumps([system, job, url, s3.options, local])]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment()
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        s3.server.delay = delay
        with s3.server.recorded() as requests:
            process.stdin.write("go\n")
            process.stdin.flush()
            seconds = float(process.stdout.readline())
            process.wait()  # what follows the answer is counted, too
        # deltalake sometimes aborts while its process ends, after the answer.
        assert system == "deltalake" or not process.returncode, (system, job, process.returncode)
    counts: dict[str, int] = {}
    for request in requests:
        kind = "LIST" if request.is_listing else request.method
        counts[kind] = counts.get(kind, 0) + 1
    return seconds, {**counts, "all": len(requests)}, url


def rate(s3: Any, system: str, folder: Path) -> dict[str, float]:
    """Returns commits per second, the number of appends that failed, and requests per commit."""
    import deltaic

    seconds, requests, url = measured(s3, system, "commits", 0.0, folder)
    done = deltaic.DeltaTable(url, storage_options=s3.options).version
    assert system == "deltalake" or done == THREADS * APPENDS
    return {
        "per_second": done / seconds,
        "failed": THREADS * APPENDS - done,
        "requests": requests["all"] / done,
    }


def second_read(s3: Any, pairs: int, folder: Path) -> dict[str, Any]:
    """Seconds of reads in turns, the first of each apart; and the requests of those through the cache but the
    first."""
    import deltaic

    url, local = f"s3://{s3.bucket}/{uuid.uuid4().hex[:8]}", str(folder / "local")
    s3.server.delay = 0.0
    for path, options in ((url, s3.options), (local, None)):
        deltaic.write(path, data(FILES * ROWS), partition_by="p", storage_options=options)
    with deltaic.configure(cache_directory=folder / "cache"):
        tables = {
            "cached": deltaic.DeltaTable(url, storage_options=s3.options),
            "local": deltaic.DeltaTable(local),
        }
    for table in tables.values():
        table.scan(columns=["id", "x"]).to_arrow()
    best = dict.fromkeys(tables, float("inf"))
    with s3.server.recorded() as requests:
        for _ in range(pairs * READS):
            for name, table in tables.items():
                began = time.perf_counter()
                table.scan(columns=["id", "x"]).to_arrow()
                best[name] = min(best[name], time.perf_counter() - began)
    return {**best, "requests": len(requests)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--delay", type=float, default=0.02)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--jobs", nargs="+", choices=JOBS, default=JOBS)
    parser.add_argument("--record", type=Path, help="the results of the other jobs stay in it")
    parser.add_argument("--child")
    arguments = parser.parse_args()
    if arguments.child:
        child(*json.loads(arguments.child))
        return 0
    from store_servers import moto_s3

    results: dict[str, Any] = {}
    missed = 0
    with moto_s3() as s3, tempfile.TemporaryDirectory() as folder:
        for job, limits in LIMITS.items():
            if job not in arguments.jobs:
                continue
            best: dict[str, tuple[float, dict[str, int]]] = {}
            for _ in range(arguments.pairs):
                for system in ("deltaic", "deltalake"):
                    found = measured(s3, system, job, arguments.delay, Path(folder))[:2]
                    best[system] = min(best.get(system, found), found, key=lambda each: each[0])
            (seconds, requests), (rival, theirs) = best["deltaic"], best["deltalake"]
            kept = seconds <= limits[0] * rival and requests["all"] <= limits[1] * theirs["all"]
            missed += not kept
            results[job] = {
                "deltaic": {"seconds": seconds, "requests": requests},
                "deltalake": {"seconds": rival, "requests": theirs},
            }
            rivals = f"deltalake {rival:7.3f} s {theirs['all']:4}{'' if kept else '  MISSED'}"
            print(f"{job:8} {seconds:7.3f} s {requests['all']:4} requests; {rivals}", flush=True)
        if "commits" in arguments.jobs:
            rates: dict[str, dict[str, float]] = {}
            for _ in range(arguments.pairs):
                for system in ("deltaic", "deltalake"):
                    once = rate(s3, system, Path(folder))
                    rates[system] = max(rates.get(system, once), once, key=lambda each: each["per_second"])
            results["commits"] = rates
            many, few = rates["deltaic"], rates["deltalake"]
            kept = many["per_second"] >= COMMITS * few["per_second"] and not many["failed"]
            missed += not kept
            rivals = f"deltalake {few['per_second']:7.1f}, {few['failed']} failed{'' if kept else '  MISSED'}"
            print(
                f"{'commits':8} {many['per_second']:7.1f} per second, {many['failed']} failed; {rivals}",
                flush=True,
            )
        if "cached" in arguments.jobs:
            results["cached"] = found = second_read(s3, arguments.pairs, Path(folder))
            kept = found["cached"] <= CACHED * found["local"] and not found["requests"]
            missed += not kept
            seconds, rivals = (
                found["cached"],
                f"local files {found['local']:7.4f} s{'' if kept else '  MISSED'}",
            )
            print(f"{'cached':8} {seconds:7.4f} s {found['requests']:4} requests; {rivals}", flush=True)
    if arguments.record:
        known = json.loads(arguments.record.read_text())["jobs"] if arguments.record.exists() else {}
        arguments.record.write_text(
            json.dumps({"delay": arguments.delay, "jobs": {**known, **results}}, indent=1) + "\n"
        )
    return missed


if __name__ == "__main__":
    sys.exit(main())
