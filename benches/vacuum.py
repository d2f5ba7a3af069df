"""Measures the time and memory of VACUUM with an inventory: `python benches/vacuum.py [--files N] [--gone N]
[--record FILE]`.

A log names N files (1,000,000), which do not exist; the inventory, a Parquet file, names them and M others
(100,000), which do. Each run is a fresh process. It measures the peak of memory (VmHWM, libraries included)
and the seconds from the first import to the end, for a dry run and a real one. The last run has an inventory
without any file of the log: N files to delete, by a dry run.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

LIMIT = 300
"""Megabytes that a vacuum of a million files may take."""

RUN = """
import json, sys, time
began = time.perf_counter()
import deltaic
table = deltaic.DeltaTable(sys.argv[1])
gone = table.vacuum(inventory=sys.argv[2], dry_run=sys.argv[3] == "dry").count()
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
peak = int(status["VmHWM"].split()[0]) * 1024 // 1_000_000
print(json.dumps({"gone": gone, "seconds": round(time.perf_counter() - began, 2), "megabytes": peak}))
"""


def write_table(root: Path, files: int) -> list[str]:
    """Writes a log with a checkpoint, and a commit of deltaic after it, which adds the checksum of the
    version. Returns the paths of its files."""
    import deltaic
    from log import add, write_log

    write_log(root, files, partitioned=True)
    table = deltaic.DeltaTable(root)
    table.checkpoint()
    table.alter.set_description("of a million files")
    return [str(json.loads(add(number, True))["add"]["path"]) for number in range(files)]


def write_inventory(place: Path, root: Path, paths: list[str]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    count = len(paths)
    columns = {
        "path": pa.array([f"file:{root}/{path}" for path in paths]),
        "length": pa.array([123_456] * count, pa.int64()),
        "isDir": pa.array([False] * count),
        "modificationTime": pa.array([1_700_000_000_000] * count, pa.int64()),
    }
    pq.write_table(pa.table(columns), place)


def measured(root: Path, inventory: Path, how: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(root), str(inventory), how],
        check=True,
        capture_output=True,
        text=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=1_000_000)
    parser.add_argument("--gone", type=int, default=100_000)
    parser.add_argument("--record", type=Path)
    options = parser.parse_args()
    sys.path.insert(0, str(Path(__file__).parent / "peers"))
    with tempfile.TemporaryDirectory() as folder:
        root, inventory = Path(folder, "table"), Path(folder, "inventory.parquet")
        live = write_table(root, options.files)
        lost = [f"p={number % 50}/lost-{number:08}-c000.snappy.parquet" for number in range(options.gone)]
        for path in lost:
            os.makedirs(root / os.path.dirname(path), exist_ok=True)
            (root / path).touch()
            os.utime(root / path, (1.7e9, 1.7e9))
        write_inventory(inventory, root, [*live, *lost])
        results = {how: measured(root, inventory, how) for how in ("dry", "real")}
        assert [each["gone"] for each in results.values()] == [options.gone] * 2
        assert not any(path.name.startswith("lost-") for path in root.rglob("*.parquet"))
        small = Path(folder, "small")
        write_table(small, 1_000)
        write_inventory(
            inventory,
            small,
            [f"p={number % 50}/lost-{number:08}-c000.snappy.parquet" for number in range(options.files)],
        )
        results["all of them go, dry"] = measured(small, inventory, "dry")
        assert results["all of them go, dry"]["gone"] == options.files
    record = {"files": options.files, "gone": options.gone, "limit_megabytes": LIMIT, "runs": results}
    print(json.dumps(record, indent=2))
    if options.record:
        options.record.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    missed = [how for how, each in results.items() if each["megabytes"] > LIMIT]
    sys.exit(f"over {LIMIT} MB: {', '.join(missed)}" if missed else 0)


if __name__ == "__main__":
    main()
