"""Measures TPC-DS by `deltaic.sql` and by DuckDB on the bare files, both on the same files.

    TPCDS_QUERIES=folder python benches/peers/tpcds.py [--rows 2880404] [--pairs 5] [--jobs q01,q03]
        [--record benches/records/tpcds.json]

`--rows`: of store_sales; 2,880,404 are scale 1. `tpcgen-cli` (PyPI; on the path, or named by TPCGEN) makes
the data. The folder has a file for each query, `q01.sql` and so on, as DuckDB's tpcds extension holds
them. The clock is that of `tpch.py`; rows may come in any order, as those of equal keys do.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from _pairs import Job, Run, main
from tpch import answered, check, mean

MEAN_LIMIT = 1.2
SCALE_1 = 2_880_404
FOLDER = Path(os.environ.get("TPCDS_QUERIES", "tpcds"))
JOBS = tuple(Job(name=file.stem, limits={"duckdb": None}) for file in sorted(FOLDER.glob("q*.sql")))


def prepare(root: Path, rows: int) -> None:
    import pyarrow.dataset as ds

    import deltaic

    data = root / "generated"
    program = os.environ.get("TPCGEN", "tpcgen-cli")
    command = [program, "tpcds", "parquet", "-s", f"{rows / SCALE_1:g}", f"--output-dir={data}"]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    for file in data.glob("*.parquet"):
        deltaic.write(root / file.stem, ds.dataset(file), properties={"delta.enableDeletionVectors": False})
        file.unlink()


def run(system: str, job: str, root: Path) -> Run:
    names = sorted(log.parent.name for log in root.glob("*/_delta_log"))
    work, times, _ = answered(system, (FOLDER / f"{job}.sql").read_text().strip().rstrip(";"), root, names)
    return work, times, sorted_rows


def sorted_rows(found: Any) -> object:
    rows: Any = check(found)
    return sorted(rows)


if __name__ == "__main__":
    try:
        main(__file__, __doc__, JOBS, prepare, run, rows=SCALE_1)
    finally:
        recorded = Path(sys.argv[sys.argv.index("--record") + 1]) if "--record" in sys.argv else None
        if recorded is not None and recorded.exists():
            mean(recorded, MEAN_LIMIT)
