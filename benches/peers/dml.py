"""Changes data, side by side: deltaic and deltalake on the same 4 M rows of 5 columns, and deletion vectors
beside deltaic's own rewriting of files.

    python benches/peers/dml.py [--rows 4000000] [--pairs 5] [--jobs delete_one,merge_1pct] [--record
    benches/records/dml.json]

Each run is a fresh process on a fresh copy of the table; the systems take turns; the minimum of each counts.
The clock starts when the table is open and the modules that the job needs are loaded, and stops when the call
returns. Both systems write zstd, level 3. The result of each run is compared with that of the other system: a
difference ends the benchmark.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from _pairs import data, record

CHANGES = ("delete_one", "update_one", "delete_1pct", "merge_1pct", "z_order")
FRACTIONS = ("0.00001", "0.0001", "0.001", "0.01", "0.1", "0.5", "0.9")
TARGETS = {"delete_one": 10.0, "update_one": 10.0, "delete_1pct": 5.0, "merge_1pct": 5.0, "z_order": 3.0}
# Jobs that must also hold less memory than deltalake does.
LEAN = ("delete_1pct", "merge_1pct")
# Jobs that may write 1 KiB besides the log and new rows.
SLIGHT = ("delete_one", "update_one")
CHECK = """SELECT count(*), sum(id), sum(key), sum(hash(name)::hugeint), sum(round(value * 1000)::hugeint),
sum(epoch_us("at")::hugeint)
FROM t"""


def merge_source(rows: int) -> Any:
    """Returns 1 % of the rows: half of them exist, spread over all of the table, half are new."""
    import numpy as np
    import pyarrow as pa

    half = rows // 200
    ids = np.concatenate([np.linspace(0, rows - 1, half).astype(np.int64), np.arange(rows, rows + half)])
    table = data(rows).take(pa.array(ids % rows))
    return table.set_column(0, "id", pa.array(ids)).set_column(2, "value", pa.array(np.full(len(ids), 0.5)))


def prepare(root: Path, rows: int) -> None:
    """Writes one table by each system, and the same without vectors."""
    import deltalake
    import pyarrow.parquet as pq

    import deltaic

    table = data(rows)
    deltaic.write(root / "deltaic", table)
    deltaic.write(root / "rewriting", table, properties={"delta.enableDeletionVectors": False})
    properties = deltalake.WriterProperties(compression="ZSTD", compression_level=3)
    deltalake.write_deltalake(str(root / "deltalake"), table, writer_properties=properties)
    pq.write_table(merge_source(rows), root / "source.parquet")


# --- one run, in a process of its own


def run_deltaic(job: str, path: str, rows: int, source: Path) -> Callable[[], object]:
    import pyarrow.parquet as pq

    import deltaic
    import deltaic.commands.merge_run
    import deltaic.commands.optimize
    import deltaic.commands.update
    import deltaic.engine.dataset
    import deltaic.engine.duckdb.connection
    import deltaic.engine.duckdb.engine
    import deltaic.engine.duckdb.lowering
    import deltaic.planning.partition_functions
    import deltaic.planning.pushdown
    import deltaic.spark_sql.expression

    table = deltaic.DeltaTable(path)
    if job == "delete_one":
        return lambda: table.delete(f"id = {rows // 2 + 1}")
    if job == "update_one":
        return lambda: table.update({"value": "value + 1"}, f"id = {rows // 2 + 1}")
    if job == "delete_1pct":
        return lambda: table.delete("key < 10")
    if job.startswith("fraction:"):
        share = float(job.partition(":")[2])
        return lambda: table.delete(f"value < {1000 * share}")
    if job == "z_order":
        return lambda: table.optimize.z_order(["key", "at"])
    held = pq.read_table(source)
    return lambda: (
        table.merge(held, "t.id = s.id").when_matched_update_all().when_not_matched_insert_all().execute()
    )


def run_deltalake(job: str, path: str, rows: int, source: Path) -> Callable[[], object]:
    import deltalake
    import pyarrow.parquet as pq

    table = deltalake.DeltaTable(path)
    properties = deltalake.WriterProperties(compression="ZSTD", compression_level=3)
    if job == "delete_one":
        return lambda: table.delete(f"id = {rows // 2 + 1}", writer_properties=properties)
    if job == "update_one":
        return lambda: table.update(
            updates={"value": "value + 1"}, predicate=f"id = {rows // 2 + 1}", writer_properties=properties
        )
    if job == "delete_1pct":
        return lambda: table.delete("key < 10", writer_properties=properties)
    if job == "z_order":
        return lambda: table.optimize.z_order(["key", "at"], writer_properties=properties)
    held = pq.read_table(source)
    merging = table.merge(
        held, "t.id = s.id", source_alias="s", target_alias="t", writer_properties=properties
    )
    return lambda: merging.when_matched_update_all().when_not_matched_insert_all().execute()


def child(system: str, job: str, path: str, rows: int, source: Path) -> None:
    before = {item: item.stat().st_size for item in Path(path).rglob("*") if item.is_file()}
    work = (
        run_deltalake(job, path, rows, source)
        if system == "deltalake"
        else run_deltaic(job, path, rows, source)
    )
    base = peak_mib()
    start, started = time.perf_counter(), time.process_time()
    work()
    result: dict[str, Any] = {
        "seconds": time.perf_counter() - start,
        "cpu_seconds": time.process_time() - started,
        "base_mib": base,
    }
    result["peak_mib"] = peak_mib()
    new = {
        item: item.stat().st_size for item in Path(path).rglob("*") if item.is_file() and item not in before
    }
    result["written"] = sum(new.values())
    result["beside"] = sum(
        size for item, size in new.items() if item.suffix != ".parquet" and "_delta_log" not in item.parts
    )
    result["check"] = repr(check(system, path))
    print(json.dumps(result))


def peak_mib() -> float:
    """Returns the maximum memory that this process held at once. getrusage would count what its parent held
    when it forked."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def check(system: str, path: str) -> object:
    """Counts and sums of the table as it is now, read by its own system, computed by DuckDB."""
    import duckdb
    import pyarrow as pa

    if system == "deltalake":
        import deltalake

        rows = pa.RecordBatchReader.from_stream(
            deltalake.QueryBuilder().register("t", deltalake.DeltaTable(path)).execute("SELECT * FROM t")
        )
    else:
        import deltaic

        rows = deltaic.DeltaTable(path).scan().to_reader()
    with duckdb.connect() as connection:
        connection.register("t", rows)
        return connection.execute(CHECK).fetchall()


# --- pairs of runs


def measure(root: Path, system: str, job: str, rows: int) -> dict[str, Any]:
    """`system`: deltaic, rewriting (deltaic without vectors), deltalake."""
    place = root / "work"
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(root / system, place)
    command = [
        sys.executable,
        __file__,
        "--child",
        system,
        job,
        str(place),
        "--rows",
        str(rows),
        "--source",
        str(root / "source.parquet"),
    ]
    finished = subprocess.run(command, capture_output=True, text=True)
    if finished.returncode:
        raise SystemExit(f"{system} {job} failed:\n{finished.stderr}")
    result: dict[str, Any] = json.loads(finished.stdout.strip().splitlines()[-1])
    return result


def compare(root: Path, ours: str, theirs: str, job: str, rows: int, pairs: int) -> dict[str, Any]:
    runs: dict[str, list[dict[str, Any]]] = {ours: [], theirs: []}
    for _ in range(pairs):
        for system in (ours, theirs):
            runs[system].append(measure(root, system, job, rows))
        if runs[ours][-1]["check"] != runs[theirs][-1]["check"]:
            raise SystemExit(
                f"{job}: {ours} and {theirs}"
                f" disagree:\n{runs[ours][-1]['check']}\n{runs[theirs][-1]['check']}"
            )
    best = {system: min(runs[system], key=lambda run: run["seconds"]) for system in runs}
    return {
        "job": job,
        ours: {key: value for key, value in best[ours].items() if key != "check"},
        theirs: {key: value for key, value in best[theirs].items() if key != "check"},
        "ratio": best[theirs]["seconds"] / best[ours]["seconds"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--jobs", default=",".join((*CHANGES, "fractions")))
    parser.add_argument("--record", type=Path)
    parser.add_argument("--source", type=Path)
    parser.add_argument("--child", nargs=3)
    options = parser.parse_args()
    if options.child:
        child(*options.child, options.rows, options.source)
        return
    jobs = options.jobs.split(",")
    results: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="deltaic-bench-") as directory:
        root = Path(directory)
        prepare(root, options.rows)
        for job in jobs:
            if job in CHANGES:
                found = compare(root, "deltaic", "deltalake", job, options.rows, options.pairs)
                lean = job not in LEAN or found["deltaic"]["peak_mib"] < found["deltalake"]["peak_mib"]
                slight = job not in SLIGHT or found["deltaic"]["beside"] <= 1024
                found["met"] = found["ratio"] >= TARGETS[job] and lean and slight
                more = (", less memory" if job in LEAN else "") + (
                    ", 1 KB beside log and rows" if job in SLIGHT else ""
                )
                report(found, "deltaic", "deltalake", f">= {TARGETS[job]:g} x{more}")
                results.append(found)
                continue
            for fraction in FRACTIONS:
                found = compare(
                    root, "deltaic", "rewriting", f"fraction:{fraction}", options.rows, options.pairs
                )
                found["met"] = found["ratio"] >= 1
                report(found, "deltaic", "rewriting", ">= 1 x")
                results.append(found)
    if options.record:
        record(options.record, options.rows, options.pairs, results)
    if not all(found["met"] for found in results):
        raise SystemExit("a target was missed")


def report(found: dict[str, Any], ours: str, theirs: str, target: str) -> None:
    sides = []
    for system in (ours, theirs):
        run = found[system]
        memory = (
            f" ({run['cpu_seconds']:.3f} s cpu), {run['peak_mib']:.0f} MiB, {run['written']:,} bytes written"
            if "peak_mib" in run
            else ""
        )
        sides.append(f"{system} {run['seconds']:.4f} s{memory}")
    print(
        f"{found['job']:18} {sides[0]} | {sides[1]} | {found['ratio']:.2f} x (target {target}:"
        f" {'met' if found['met'] else 'MISSED'})",
        flush=True,
    )


if __name__ == "__main__":
    main()
