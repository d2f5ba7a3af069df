"""Measures the memory of large jobs: each runs in a process of its own, in a container of 1.5 GB with default
settings if this machine allows one.

    python benches/memory.py [--rows 16000000] [--container 1500000000] [--limit 600MB] [--jobs sort,join]
                             [--tables FOLDER] [--record benches/records/memory.json]

`sort`: `SELECT * FROM t ORDER BY s`, read batch by batch. `z_order`: Z-order by two columns. `purge`: purges
a table that lost 5 % of its rows to deletion vectors. `merge`: merges as many rows as the table has from a
reader, half of them changed and half new. `join`: joins the table with itself by the text. `window`: `lag(s)`
in the order of each key. The table has 190 bytes a row, 3 GB in total. A job meets its target if it ends with
the right rows, and its peak of resident memory (VmHWM) is below 80 % of the container, or, with `--limit`
(which is `configure(memory_limit=)`), below 120 % of this limit. The container is a control group below that
of this process (Linux, root); without one, half of its size is the limit.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

JOBS = ("sort", "z_order", "purge", "merge", "join", "window")
CHUNK = 100_000


def batches(rows: int, first: int = 0) -> Iterator[Any]:
    """Yields batches of id (ascending from `first`), key (1000 values), value, other (random), s (150
    letters, random, all different)."""
    import numpy as np
    import pyarrow as pa

    for at in range(first, first + rows, CHUNK):
        count = min(CHUNK, first + rows - at)
        random = np.random.default_rng(at)
        letters = random.integers(48, 112, count * 150, dtype=np.uint8)
        offsets = np.arange(0, (count + 1) * 150, 150, dtype=np.int32)
        yield pa.record_batch(
            {
                "id": np.arange(at, at + count),
                "key": random.integers(0, 1000, count).astype(np.int32),
                "value": random.random(count),
                "other": random.integers(0, 2**62, count),
                "s": pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(letters)),
            }
        )


def reader(rows: int, first: int = 0) -> Any:
    import pyarrow as pa

    return pa.RecordBatchReader.from_batches(next(batches(1)).schema, batches(rows, first))


def prepare(root: Path, rows: int) -> None:
    import deltaic

    table = deltaic.write(root / "plain", reader(rows))
    shutil.copytree(root / "plain", root / "deleted")
    assert deltaic.DeltaTable(root / "deleted").delete("key < 50")["num_deleted_rows"] > 0
    assert table.scan(["id"]).count() == rows


def work(job: str, table: Any) -> None:
    """Does a job and checks its rows."""
    import deltaic

    rows = table.scan(["id"]).count()
    if job == "sort":
        found, last = 0, ""
        for batch in deltaic.sql("SELECT * FROM t ORDER BY s", tables={"t": table}).to_reader():
            texts = batch.column("s")
            assert last <= texts[0].as_py() <= texts[-1].as_py()
            found, last = found + batch.num_rows, texts[-1].as_py()
        assert found == rows, found
    elif job == "join":
        text = (
            "SELECT count(*) AS n, sum(length(a.s) + length(b.s)) AS letters FROM t a JOIN t b ON a.s = b.s"
        )
        assert deltaic.sql(text, tables={"t": table}).to_arrow().to_pylist() == [
            {"n": rows, "letters": 300 * rows}
        ]
    elif job == "window":
        previous = "SELECT key, lag(s) OVER (PARTITION BY key ORDER BY other) AS p FROM t"
        text = f"SELECT sum(length(p)) AS letters, count(DISTINCT key) AS keys FROM ({previous})"
        ((letters, keys),) = [
            row.values() for row in deltaic.sql(text, tables={"t": table}).to_arrow().to_pylist()
        ]
        assert letters == 150 * (rows - keys)
    elif job == "z_order":
        before = checksum(table)
        table.optimize.z_order(["key", "value"])
        assert checksum(table) == before
    elif job == "purge":
        before = checksum(table)
        assert table.optimize.purge()["num_deletion_vectors_removed"] > 0
        assert checksum(table) == before
    else:
        merge = (
            table.merge(reader(rows, rows // 2), "t.id = s.id")
            .when_matched_update_all()
            .when_not_matched_insert_all()
        )
        done = merge.execute()
        assert (done["num_target_rows_updated"], done["num_target_rows_inserted"]) == (
            rows - rows // 2,
            rows // 2,
        ), done
        assert table.scan(["id"]).count() == rows + rows // 2


def checksum(table: Any) -> tuple[int, int, int]:
    """Returns the number of rows, the sum of their ids and that of the column `other`."""
    import pyarrow.compute as compute

    count, ids, others = 0, 0, 0
    for batch in table.scan(["id", "other"]).to_reader():
        count += batch.num_rows
        ids += compute.sum(batch.column("id")).as_py()
        others += compute.sum(compute.bit_wise_and(batch.column("other"), 0xFFFFFFFF)).as_py()
    return count, ids, others


def child(job: str, path: str, limit: str) -> None:
    """Runs one job in this process; prints its seconds and the peak of its memory."""
    import deltaic
    from deltaic import configuration

    settings: dict[str, Any] = {} if limit == "-" else {"memory_limit": limit}
    deltaic.configure(durable=False, temp_directory=Path(path).parent / "spilled", **settings)
    start = time.perf_counter()
    work(job, deltaic.DeltaTable(path))
    seconds = time.perf_counter() - start
    print(json.dumps({"seconds": seconds, "peak": peak(), "limit": configuration.budget().limit}))


def peak() -> int:
    """Returns the maximum resident memory that this process has had, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


@contextmanager
def container(size: int) -> Iterator[Path | None]:
    """Makes a control group with this limit in bytes below that of this process; None if it cannot be
    made."""
    group = None
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
        own = next(line.split(":", 2)[2] for line in lines if "memory" in line.split(":", 2)[1].split(","))
        folder = Path("/sys/fs/cgroup/memory" + own) / f"deltaic-{os.getpid()}"
        folder.mkdir()
        group = folder
        (folder / "memory.limit_in_bytes").write_text(str(size))
    except (OSError, StopIteration):
        if group is not None:
            group.rmdir()
        group = None
    try:
        yield group
    finally:
        if group is not None:
            group.rmdir()


def in_a_process(job: str, path: Path, limit: str, group: Path | None) -> dict[str, Any]:
    command = [sys.executable, __file__, "--child", job, str(path), limit]
    if group is not None:
        command = ["sh", "-c", 'echo $$ > "$0/cgroup.procs"; exec "$@"', str(group), *command]
    finished = subprocess.run(command, capture_output=True, text=True)
    if finished.returncode:
        end = "killed" if finished.returncode in (-9, 137) else finished.stderr[-2000:]
        return {"job": job, "met": False, "failed": end}
    found: dict[str, Any] = {"job": job, **json.loads(finished.stdout.strip().splitlines()[-1])}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=16_000_000)
    parser.add_argument("--container", type=int, default=1_500_000_000)
    parser.add_argument(
        "--limit", default="-", help="configure(memory_limit=); none: the default in the container"
    )
    parser.add_argument("--jobs", default=",".join(JOBS), help="comma-separated")
    parser.add_argument(
        "--tables", type=Path, help="folder of the tables; kept, and used again where it has them"
    )
    parser.add_argument("--record", type=Path, help="file for the results as JSON")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(*options.child)
        return
    results = []
    with tempfile.TemporaryDirectory(prefix="deltaic-bench-") as directory:
        root = Path(directory)
        tables = options.tables or root / "tables"
        if not (tables / "deleted").exists():
            prepare(tables, options.rows)
        for job in options.jobs.split(","):
            shutil.copytree(tables / ("deleted" if job == "purge" else "plain"), root / job)
            with container(options.container) as group:
                limit = (
                    options.limit
                    if group is not None or options.limit != "-"
                    else str(options.container // 2)
                )
                row = in_a_process(job, root / job, limit, group)
            shutil.rmtree(root / job)
            row["container"] = options.container if group is not None else None
            if "peak" in row:
                row["most"] = int(options.container * 0.8 if limit == "-" else row["limit"] * 1.2)
                row["met"] = row["peak"] <= row["most"]
            results.append(row)
            print(json.dumps(row), flush=True)
    if options.record:
        machine = {"cores": os.cpu_count(), "system": platform.platform(), "load": list(os.getloadavg())}
        document = {
            "command": " ".join(["python", *sys.argv]),
            "machine": machine,
            "rows": options.rows,
            "results": results,
        }
        options.record.write_text(json.dumps(document, indent=1) + "\n")
    if not all(row["met"] for row in results):
        raise SystemExit("a target was missed")


if __name__ == "__main__":
    main()
