"""Measures the log of a table of many files beside deltalake: `python benches/peers/log.py [--files N]
[--pairs N] [--record FILE]`.

Each run is a fresh process. Its imports count, and its peak of memory is read when it ends. The systems take
turns, and the minimum of each counts. Both use the same log, without checksum files. The data files need not
exist, because no run reads data. Processor seconds are recorded beside those of the clock: on a machine that
does other work, several threads take as long as one.

open: count, bytes and schema, from a classic checkpoint and from ten commits. plan: the files of a range of
one column, of which there are ten, and the files of one partition. refresh: after a commit of one file;
append: of one file, on a table of N files beside one of 1,000, in one process. checkpoint: a classic one,
beside deltalake's; a V2 checkpoint after a hundred small commits, with the bytes that it writes beside those
that existed.
"""

from __future__ import annotations

import time

BEGAN = time.perf_counter()

import argparse  # noqa: E402  the clock runs
import json  # noqa: E402
import os  # noqa: E402
import shutil  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402
import tempfile  # noqa: E402
from collections.abc import Callable, Mapping  # noqa: E402
from dataclasses import dataclass  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

COMMITS = 10
SMALL = 1_000
MANY = 1_000_000
BYTES = 123_456
PARTITIONED = (1_000, 100_000, 1_000_000)
RANGE = "id >= 500000 and id <= 509999"
FIELDS = (("id", "long"), ("x", "double"), ("s", "string"), ("p", "integer"))


@dataclass(frozen=True, kw_only=True)
class Job:
    """`seconds`, `memory`: maximum ratio of ours to the rival's; None if they are only recorded."""

    name: str
    seconds: float | None = None
    memory: float | None = None


# --- logs


def header(partitioned: bool, properties: Mapping[str, str]) -> str:
    fields = [{"name": name, "type": of, "nullable": True, "metadata": {}} for name, of in FIELDS]
    metadata = {
        "id": "bench",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": ["p"] if partitioned else [],
        "configuration": dict(properties),
        "createdTime": 1,
    }
    protocol: dict[str, Any] = {"minReaderVersion": 1, "minWriterVersion": 2}
    if "delta.checkpointPolicy" in properties:
        protocol = {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": ["v2Checkpoint"],
            "writerFeatures": ["v2Checkpoint"],
        }
    return f"{json.dumps({'protocol': protocol})}\n{json.dumps({'metaData': metadata})}\n"


def add(number: int, partitioned: bool) -> str:
    """Returns the add of a file of 1,000 rows; ids ascend."""
    low, high = number * 1000, number * 1000 + 999
    least = f'{{"id":{low},"x":0.5,"s":"a{number}"}}'
    most = f'{{"id":{high},"x":99.5,"s":"z{number}"}}'
    nulls = '{"id":0,"x":0,"s":0}'
    stats = f'{{"numRecords":1000,"minValues":{least},"maxValues":{most},"nullCount":{nulls}}}'
    stats = stats.replace('"', '\\"')
    values, folder = (f'{{"p":"{number}"}}', f"p={number}/") if partitioned else ("{}", "")
    path = f"{folder}part-{number:05}-{number * 2654435761 % 2**64:016x}-c000.snappy.parquet"
    fixed = f'"size":{BYTES},"modificationTime":1700000000000,"dataChange":true'
    return f'{{"add":{{"path":"{path}","partitionValues":{values},{fixed},"stats":"{stats}"}}}}\n'


def write_log(
    root: Path, files: int, *, partitioned: bool = False, commits: int = COMMITS, **properties: str
) -> None:
    (root / "_delta_log").mkdir(parents=True)
    for version in range(commits):
        with (root / "_delta_log" / f"{version:020}.json").open("w") as stream:
            moment = 1_700_000_000_000 + version
            info = f'{{"timestamp":{moment},"operation":"WRITE","operationParameters":{{}}}}'
            stream.write(f'{{"commitInfo":{info}}}\n')
            if version == 0:
                stream.write(
                    header(partitioned, {name.replace("_", "."): value for name, value in properties.items()})
                )
            stream.writelines(
                add(number, partitioned)
                for number in range(files * version // commits, files * (version + 1) // commits)
            )


def checkpointed(root: Path) -> None:
    subprocess.run(
        [sys.executable, "-c", f"import deltaic; deltaic.DeltaTable({str(root)!r}).checkpoint()"], check=True
    )
    for path in root.glob("_delta_log/*.crc"):
        path.unlink()


def copied(source: Path, target: Path) -> Path:
    """Copies a log to a folder of its own; its files are shared, because none is ever changed."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target, copy_function=os.link)
    return target


# --- runs: each gives a check of its answer, and seconds where not the whole process counts


def opened(system: str, root: Path) -> dict[str, Any]:
    if system == "deltaic":
        import deltaic

        table = deltaic.DeltaTable(str(root))
        detail = table.detail()
        assert detail.size_in_bytes == detail.num_files * BYTES
        return {"check": [detail.num_files, len(table.schema.names)]}
    import deltalake

    rival = deltalake.DeltaTable(str(root))
    # The sum of its sizes is left out: that needs pyarrow, whose import is none of its work.
    return {"check": [rival.get_add_actions().num_rows, len(rival.schema().fields)]}


def planned(system: str, root: Path, where: str, *, as_arrow: bool = False) -> dict[str, Any]:
    if system == "deltaic":
        import deltaic

        rows = deltaic.DeltaTable(str(root)).files(where)
        return {"check": rows.to_arrow().num_rows if as_arrow else rows.count()}
    import deltalake

    return {"check": len(deltalake.DeltaTable(str(root)).file_uris(file_pruning_predicate=where))}


def committed(root: Path, version: int) -> None:
    line = f'{{"commitInfo":{{"operation":"WRITE"}}}}\n{add(10_000_000 + version, False)}'
    (root / "_delta_log" / f"{version:020}.json").write_text(line)


def refreshed(system: str, root: Path) -> dict[str, Any]:
    """Measures the first refresh after one commit, which a reader that stays open waits for."""
    target = copied(root, root.with_name(f"{root.name}-refresh"))
    version = COMMITS
    if system == "deltaic":
        import deltaic

        table = deltaic.DeltaTable(str(target))
        files = table.detail().num_files
        refresh: Callable[[], object] = table.refresh
    else:
        import deltalake

        rival = deltalake.DeltaTable(str(target))
        files = rival.get_add_actions().num_rows
        refresh = rival.update_incremental
    committed(target, version)
    began = time.perf_counter()
    refresh()
    seconds = time.perf_counter() - began
    after = table.detail().num_files if system == "deltaic" else rival.get_add_actions().num_rows
    return {"check": after - files, "seconds": seconds}


def appended(system: str, root: Path) -> dict[str, Any]:
    """Measures the append of one file, the best of twenty; no checkpoint is due."""
    import pyarrow as pa

    target = copied(root, root.with_name(f"{root.name}-append"))
    data = pa.table({"id": [1], "x": [0.5], "s": ["a"], "p": pa.array([1], pa.int32())})
    if system == "deltaic":
        import deltaic

        table = deltaic.DeltaTable(str(target))
        quiet = deltaic.CommitOptions(checkpoint=False)

        def append() -> None:
            deltaic.write(table, data, mode="append", commit=quiet)

    else:
        import deltalake

        rival = deltalake.DeltaTable(str(target))
        hooks = deltalake.PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)

        def append() -> None:
            deltalake.write_deltalake(rival, data, mode="append", post_commithook_properties=hooks)

    best = float("inf")
    for _ in range(20 if system == "deltaic" else 3):
        began = time.perf_counter()
        append()
        best = min(best, time.perf_counter() - began)
    return {"check": 1, "seconds": best}


def checkpoint_written(system: str, root: Path) -> dict[str, Any]:
    target = copied(root, root.with_name(f"{root.name}-checkpoint"))
    if system == "deltaic":
        import deltaic

        deltaic.DeltaTable(str(target)).checkpoint()
    else:
        import deltalake

        deltalake.DeltaTable(str(target)).create_checkpoint()
    return {"check": sum(1 for _ in target.glob("_delta_log/*.checkpoint.parquet"))}


def checkpoint_of_the_second_form(system: str, root: Path) -> dict[str, Any]:
    """Writes a second V2 checkpoint, a hundred commits after the first, and returns the bytes of its new
    sidecars. deltalake writes the classic form, for this table too."""
    target = copied(root, root.with_name(f"{root.name}-second"))
    folder = target / "_delta_log" / "_sidecars"
    for version in range(COMMITS, COMMITS + 100):
        committed(target, version)
    before = {path.name: path.stat().st_size for path in folder.iterdir()}
    if system == "deltaic":
        import deltaic

        deltaic.DeltaTable(str(target)).checkpoint()
    else:
        import deltalake

        deltalake.DeltaTable(str(target)).create_checkpoint()
    new = sum(path.stat().st_size for path in folder.iterdir() if path.name not in before)
    written = list(target.glob(f"_delta_log/{COMMITS + 99:020}.checkpoint.*"))
    return {"check": len(written), "new_bytes": new, "bytes_before": sum(before.values())}


RUNS: dict[str, Callable[[str, Path], dict[str, Any]]] = {
    "open checkpoint": lambda system, root: opened(system, root / "checkpoint"),
    "open commits": lambda system, root: opened(system, root / "commits"),
    "plan range": lambda system, root: planned(system, root / "checkpoint", RANGE),
    "plan range as arrow": lambda system, root: planned(system, root / "checkpoint", RANGE, as_arrow=True),
    **{
        f"plan 1 of {count} partitions": lambda system, root, count=count: planned(
            system, root / f"partitions-{count}", "p = 321"
        )
        for count in PARTITIONED
    },
    "refresh": lambda system, root: refreshed(system, root / "checkpoint"),
    "refresh small": lambda system, root: refreshed(system, root / "small"),
    "append": lambda system, root: appended(system, root / "checkpoint"),
    "append small": lambda system, root: appended(system, root / "small"),
    "checkpoint": lambda system, root: checkpoint_written(system, root / "commits"),
    "checkpoint second form": lambda system, root: checkpoint_of_the_second_form(system, root / "second"),
}
JOBS = (
    Job(name="open checkpoint", seconds=1 / 5, memory=1 / 3),
    Job(name="open commits", seconds=1 / 5, memory=1 / 3),
    Job(name="plan range", seconds=1 / 10, memory=1 / 2),
    # Most of it is the import of pyarrow, which deltalake's list of the files goes without.
    Job(name="plan range as arrow", memory=1 / 2),
    *(Job(name=f"plan 1 of {count} partitions") for count in PARTITIONED[:-1]),
    Job(name=f"plan 1 of {PARTITIONED[-1]} partitions", seconds=1 / 10, memory=1 / 2),
    Job(name="refresh"),
    Job(name="refresh small"),
    Job(name="append"),
    Job(name="append small"),
    Job(name="checkpoint", memory=1 / 2),
    Job(name="checkpoint second form", memory=1 / 2),
)
# Quantities that are measured of a whole process, imports included, by name, and the unit in which each is
# shown: seconds of the clock, seconds on a processor, and the peak of memory in MiB.
MEASURED = {"seconds": 1, "processor": 1, "memory": 1 << 20}
MOST_REFRESH_SECONDS = 0.020
MOST_REFRESH, MOST_APPEND, MOST_NEW = 2.0, 1.2, 0.1
# Less than the clock, the disk and the other processes of a machine make of the same work.
SLACK = 0.001


# --- the processes


def peak() -> int:
    """Returns the maximum bytes that this process had in memory at once."""
    for line in Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise SystemExit("this system does not tell a process's peak of memory")


def one(job: str, system: str, root: str) -> None:
    found = RUNS[job](system, Path(root))
    whole = {"seconds": time.perf_counter() - BEGAN, "processor": time.process_time(), "memory": peak()}
    print(json.dumps({**whole, **found}))


def in_a_process(job: str, system: str, root: Path) -> dict[str, Any]:
    from _pairs import environment

    command = [sys.executable, __file__, "--child", job, system, str(root)]
    finished = subprocess.run(command, capture_output=True, text=True, env=environment())
    if finished.returncode:
        raise SystemExit(f"{system} {job} failed:\n{finished.stderr}")
    found: dict[str, Any] = json.loads(finished.stdout.strip().splitlines()[-1])
    return found


def least(job: str, systems: tuple[str, ...], root: Path, pairs: int) -> dict[str, dict[str, Any]]:
    best: dict[str, dict[str, Any]] = {}
    for _ in range(pairs):
        for system in systems:
            found = in_a_process(job, system, root)
            known = best.setdefault(system, found)
            if found["check"] != best[systems[0]]["check"]:
                raise SystemExit(
                    f"{job}: {systems[0]} says {best[systems[0]]['check']}, {system} {found['check']}"
                )
            best[system] = {**found, **{name: min(known[name], found[name]) for name in MEASURED}}
    return best


def compare(job: Job, root: Path, pairs: int) -> dict[str, Any]:
    # each process has one first refresh, of a few milliseconds
    often = 3 * pairs if job.name.startswith("refresh") else pairs
    best = least(job.name, ("deltaic", "deltalake"), root, often)
    ratios = {name: best["deltaic"][name] / best["deltalake"][name] for name in MEASURED}
    limits = {"seconds": job.seconds, "processor": None, "memory": job.memory}
    missed = [name for name, limit in limits.items() if limit is not None and ratios[name] > limit]
    for name, unit in MEASURED.items():
        ours, theirs, limit = best["deltaic"][name] / unit, best["deltalake"][name] / unit, limits[name]
        verdict = "recorded" if limit is None else f"<= {limit:.2f} {'MISSED' if name in missed else 'met'}"
        print(
            f"{job.name:32} {name:8} {ours:10.4f} | deltalake {theirs:10.4f} | {ratios[name]:6.3f} x"
            f" {verdict}",
            flush=True,
        )
    return {"job": job.name, **best, "ratios": ratios, "limits": limits, "missed": missed}


def own_targets(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Checks the bounds that compare deltaic with itself: a large table with a small one, and the bytes of a
    second checkpoint with those of the first."""
    ours = {row["job"]: row["deltaic"] for row in results}
    targets: list[tuple[str, float, float]] = []
    for name, most in (("refresh", MOST_REFRESH), ("append", MOST_APPEND)):
        if name in ours and f"{name} small" in ours:
            large, small = ours[name]["seconds"], ours[f"{name} small"]["seconds"]
            targets.append((f"{name} of many / of {SMALL}", (large - SLACK) / small, most))
    if "refresh" in ours:
        targets.append(("refresh of many, seconds", ours["refresh"]["seconds"], MOST_REFRESH_SECONDS))
    if second := ours.get("checkpoint second form"):
        targets.append(
            (
                "second form, written anew / there before",
                second["new_bytes"] / second["bytes_before"],
                MOST_NEW,
            )
        )
    for name, found, most in targets:
        print(f"{name:44} {found:8.4f} <= {most:g} {'met' if found <= most else 'MISSED'}", flush=True)
    return [
        {"target": name, "found": found, "limit": most, "met": found <= most} for name, found, most in targets
    ]


def prepare(root: Path, files: int) -> None:
    write_log(root / "commits", files)
    checkpointed(copied(root / "commits", root / "checkpoint"))
    write_log(root / "small", SMALL)
    checkpointed(root / "small")
    write_log(root / "second", files, **{"delta_checkpointPolicy": "v2"})
    checkpointed(root / "second")
    for count in PARTITIONED:
        write_log(root / f"partitions-{count}", min(count, files), partitioned=True)
        checkpointed(root / f"partitions-{count}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--files", type=int, default=MANY)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--jobs", default=",".join(job.name for job in JOBS), help="comma-separated")
    parser.add_argument("--record", type=Path, help="file for the results as JSON")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        one(*options.child)
        return
    wanted = options.jobs.split(",")
    with tempfile.TemporaryDirectory(prefix="deltaic-bench-") as directory:
        root = Path(directory)
        prepare(root, options.files)
        # Of fewer files the imports are most of the work.
        jobs = [job if options.files >= MANY else Job(name=job.name) for job in JOBS if job.name in wanted]
        results = [compare(job, root, options.pairs) for job in jobs]
        own = own_targets(results)
    if options.record:
        write_record(options.record, options.files, options.pairs, results, own)
    if any(row["missed"] for row in results) or not all(row["met"] for row in own):
        raise SystemExit("a target was missed")


def write_record(
    path: Path, files: int, pairs: int, results: list[dict[str, Any]], own: list[dict[str, Any]]
) -> None:
    from _pairs import record

    record(path, files, pairs, results)
    document = json.loads(path.read_text())
    document["files"] = document.pop("rows")
    path.write_text(json.dumps({**document, "own": own}, indent=1) + "\n")


if __name__ == "__main__":
    main()
