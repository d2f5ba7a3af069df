"""Measures small operations, many partitions and the start of a process: deltaic beside deltalake, with and
without waiting for the disk.

    python benches/peers/small.py [--pairs 4] [--jobs ...] [--record benches/records/small.json]

Every run is a fresh process, the systems take turns, and the minimum of each counts. `durable` jobs sync to
the disk as `configure(durable=True)` does, which deltalake never does; all others have `durable=False`. The
results are compared by count and sums. The jobs that start a process count processor time (user and system)
instead of seconds, and have a limit in seconds instead of a rival.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from _pairs import Job, Run, data, environment, main, sums

REPEATS = {"append": 40, "delete": 20, "update": 20, "merge": 20, "open": 40, "history": 5}
COMMITS = 1_000
SMALL_JOBS = ("append", "delete", "update", "merge")
WIDTHS = (3_000, 10_000)
COLUMNS = 400
SECONDS = {"first query": 0.5, "show": 0.25}
"""Processor seconds that the start of a process may take."""

JOBS = (
    *(Job(name=name, limits={"deltalake": 1.0}) for name in (*SMALL_JOBS, "open", "history")),
    *(Job(name=f"{name} durable", limits={"deltalake": 2.5}) for name in SMALL_JOBS),
    Job(name=f"merge {COLUMNS} columns", limits={"deltalake": 1.0}),
    Job(name="50 appends", limits={"deltalake": 0.8}),
    *(Job(name=f"partitions {width}", limits={"deltalake": 1.0}) for width in WIDTHS),
    *(Job(name=f"partitions {width} durable", limits={"deltalake": 3.0}) for width in WIDTHS),
    Job(name="write", limits={"deltalake": 1.0}),
    Job(name="read", limits={"deltalake": 1.0}),
    Job(name="write snappy", limits={"deltalake": 0.7}),
    Job(name="read snappy", limits={"deltalake": 0.7}),
)


def three_rows() -> Any:
    import pyarrow as pa

    return pa.table(
        {"id": pa.array([1, 2, 3], pa.int64()), "name": ["a", "b", "c"], "value": [1.0, 2.0, 3.0]}
    )


def wide_rows() -> Any:
    """Returns ten rows of many columns; half of their ids are in a table of the first five."""
    import pyarrow as pa

    return pa.table(
        {
            "id": pa.array(range(10), pa.int64()),
            **{f"c{column}": [column] * 10 for column in range(COLUMNS - 1)},
        }
    )


def partitioned(width: int) -> Any:
    import numpy as np
    import pyarrow as pa

    rng = np.random.default_rng(7)
    rows = 30 * width
    part = np.concatenate([np.arange(width), rng.integers(0, width, rows - width)])
    return pa.table(
        {"id": np.arange(rows), "p": part.astype(np.int32), "value": np.round(rng.random(rows) * 1000, 3)}
    )


class Deltaic:
    """Our side of each operation; `Deltalake` has the same methods."""

    def __init__(self, root: Path, durable: bool, codec: str | None) -> None:
        import deltaic

        deltaic.configure(durable=durable)
        self.library, self.path = deltaic, str(root)
        self.parquet = None if codec is None else deltaic.ParquetOptions(compression=codec)

    def write(self, rows: Any, mode: str, partition_by: list[str] | None = None) -> None:
        self.table = self.library.write(
            self.path, rows, mode=mode, partition_by=partition_by, parquet=self.parquet
        )

    def append(self, rows: Any) -> None:
        self.table = self.library.write(self.table, rows, mode="append", parquet=self.parquet)

    def open(self) -> Any:
        self.table = self.library.DeltaTable(self.path)
        return self.table.version

    def delete(self) -> None:
        self.table.delete("id = 2")

    def update(self) -> None:
        self.table.update({"value": "value + 1"}, "id = 2")

    def merge(self, rows: Any) -> None:
        merge = self.table.merge(rows, "t.id = s.id")
        merge.when_matched_update_all().when_not_matched_insert_all().execute()

    def history(self) -> list[Any]:
        return self.table.history()

    def read(self) -> Any:
        self.open()
        return self.table.scan().to_arrow()


class Deltalake:
    """The rival's side."""

    def __init__(self, root: Path, durable: bool, codec: str | None) -> None:
        import deltalake

        self.library, self.path = deltalake, str(root)
        self.properties = None if codec is None else deltalake.WriterProperties(compression=codec.upper())

    def write(self, rows: Any, mode: str, partition_by: list[str] | None = None) -> None:
        self.library.write_deltalake(
            self.path, rows, mode=mode, partition_by=partition_by, writer_properties=self.properties
        )
        self.open()

    def append(self, rows: Any) -> None:
        self.library.write_deltalake(self.table, rows, mode="append", writer_properties=self.properties)

    def open(self) -> Any:
        self.table = self.library.DeltaTable(self.path)
        return self.table.version()

    def delete(self) -> None:
        self.table.delete("id = 2")

    def update(self) -> None:
        self.table.update(updates={"value": "value + 1"}, predicate="id = 2")

    def merge(self, rows: Any) -> None:
        clauses = self.table.merge(rows, "t.id = s.id", source_alias="s", target_alias="t")
        clauses.when_matched_update_all().when_not_matched_insert_all().execute()

    def history(self) -> list[Any]:
        return self.table.history()

    def read(self) -> Any:
        import pyarrow as pa

        self.open()
        return pa.table(self.table.to_pyarrow_table())


SYSTEMS: dict[str, Callable[[Path, bool, str | None], Any]] = {"deltaic": Deltaic, "deltalake": Deltalake}


def prepare(root: Path, rows: int) -> None:
    """Tables that are only read, and the rows that are written: made once, by each system for itself."""
    import pyarrow.parquet as pq

    pq.write_table(data(rows), root / "rows.parquet")
    for name in SYSTEMS:
        SYSTEMS[name](root / f"{name}-read", False, None).write(data(rows), "overwrite")
        SYSTEMS[name](root / f"{name}-read snappy", False, "snappy").write(data(rows), "overwrite")
        subprocess.run([sys.executable, __file__, "--history", name, str(root)], check=True)


def write_history(name: str, root: Path) -> None:
    """Writes a table of `COMMITS` commits of three rows."""
    system = SYSTEMS[name](root / f"{name}-history", False, None)
    system.write(three_rows(), "overwrite")
    for _ in range(COMMITS - 1):
        system.append(three_rows())


def run(name: str, job: str, root: Path) -> Run:
    what = job.removesuffix(" durable")
    codec = "snappy" if what.endswith("snappy") else None
    place = (
        root / f"{name}-{what}"
        if what in ("history", "read", "read snappy")
        else Path(tempfile.mkdtemp(dir=root)) / "table"
    )
    system = SYSTEMS[name](place, job.endswith(" durable"), codec)
    if what in ("history", "open"):
        if what == "open":
            system.write(three_rows(), "overwrite")
        else:
            system.open()
        work = system.open if what == "open" else system.history
        return work, REPEATS[what], lambda answer: answer if what == "open" else len(answer)
    if what == "append":
        system.write(three_rows(), "overwrite")
        return lambda: system.append(three_rows()), REPEATS[what], lambda _: None
    if what in SMALL_JOBS:
        return changes(system, what, three_rows(), three_rows().slice(1, 1))
    if what == f"merge {COLUMNS} columns":
        return changes(system, "merge", wide_rows().slice(0, 5), wide_rows())
    if what == "50 appends":
        import pyarrow.parquet as pq

        rows = pq.read_table(root / "rows.parquet")
        system.write(rows, "overwrite")
        return (
            lambda: [system.append(rows.slice(100 * turn, 100)) for turn in range(50)],
            1,
            lambda _: sums(system.read()),
        )
    if what.startswith("partitions"):
        rows = partitioned(int(what.split()[1]))
        return lambda: system.write(rows, "overwrite", ["p"]), 1, lambda _: partition_sums(place, system)
    if what.startswith("read"):
        return system.read, 3, sums
    import pyarrow.parquet as pq

    rows = pq.read_table(root / "rows.parquet")
    return lambda: system.write(rows, "overwrite"), 2, lambda _: sums(system.read())


def changes(system: Any, what: str, target: Any, source: Any) -> Run:
    """Measures many changes of a table, and returns the seconds of the best. The table is made anew before
    each, outside of the clock. `source`: the rows of a MERGE's source."""

    def once() -> float:
        system.write(target, "overwrite")
        began = time.perf_counter()
        getattr(system, what)(*([source] if what == "merge" else []))
        return time.perf_counter() - began

    best = min(once() for _ in range(REPEATS[what]))
    # The clock of `_pairs` sees a wait of just these seconds.
    return lambda: time.sleep(best), 1, lambda _: sorted(map(str, system.read().to_pylist()))


def partition_sums(place: Path, system: Any) -> Any:
    import pyarrow.compute as pc

    table = system.read()
    answer = [table.num_rows, *(pc.sum(table[name]).as_py() for name in ("id", "p"))]
    shutil.rmtree(place)
    return answer


FIRST_QUERY = """
import os, deltaic
query = "SELECT count(*) AS n, sum(id) AS ids FROM delta.`{path}` WHERE id > 1"
rows = deltaic.sql(query).to_arrow().to_pylist()
times = os.times()
print([[row["n"], row["ids"]] for row in rows], times.user + times.system)
"""
SHOW = "import sys; from deltaic.cli import main; sys.argv = ['deltaic', 'show', {path!r}]; main()"


def starts(pairs: int) -> list[dict[str, Any]]:
    """Measures the processor seconds of a process, from its start to the rows of its first query, and of
    `deltaic show`: the best of some."""
    results = []
    with tempfile.TemporaryDirectory(prefix="deltaic-bench-") as folder:
        Deltaic(Path(folder) / "t", False, None).write(three_rows(), "overwrite")
        path = f"{folder}/t"
        for name, limit in SECONDS.items():
            best = float("inf")
            for _ in range(pairs):
                script = (FIRST_QUERY if name == "first query" else SHOW).format(path=path)
                before = os.times()
                found = subprocess.run(
                    [sys.executable, "-c", script],
                    capture_output=True,
                    text=True,
                    check=True,
                    env=environment(),
                )
                after = os.times()
                if name == "first query" and not found.stdout.startswith("[[2, 5]]"):
                    raise SystemExit(f"another answer: {found.stdout}")
                if name == "show" and "value" not in found.stdout:
                    raise SystemExit(f"another answer: {found.stdout}")
                used = (
                    after.children_user
                    + after.children_system
                    - before.children_user
                    - before.children_system
                )
                best = min(best, used)
            results.append({"job": name, "deltaic": best, "limit_seconds": limit, "met": best <= limit})
            print(
                f"{name:24} {best:8.4f} s of processor time (<= {limit:g})"
                f" {'met' if best <= limit else 'MISSED'}",
                flush=True,
            )
    return results


if __name__ == "__main__":
    if sys.argv[1:2] == ["--history"]:
        write_history(sys.argv[2], Path(sys.argv[3]))
    elif "--child" in sys.argv:
        main(__file__, __doc__, JOBS, prepare, run)
    else:
        processes = starts(5)
        missed = [row["job"] for row in processes if not row["met"]]
        try:
            main(__file__, __doc__, JOBS, prepare, run)
        finally:
            if "--record" in sys.argv:
                place = Path(sys.argv[sys.argv.index("--record") + 1])
                if place.exists():
                    document = json.loads(place.read_text())
                    place.write_text(json.dumps({**document, "processes": processes}, indent=1) + "\n")
        if missed:
            raise SystemExit(f"a target was missed: {', '.join(missed)}")
