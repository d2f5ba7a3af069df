"""Measures TPC-H by `deltaic.sql` and by DuckDB on the bare files, both on the same files.

    python benches/peers/tpch.py [--rows 6000000] [--pairs 5] [--jobs q1,q6,...] [--record
        benches/records/tpch_embedded.json]

`--rows`: of lineitem; 6,000,000 are scale 1. `tpchgen-cli` (PyPI; on the path, or named by TPCHGEN) makes
the data. The clock starts when the tables are open; the best of the times in a process counts. Rows must
be equal, numbers to two places: DuckDB computes averages and quotients in floating point. The last line is
the geometric mean of the ratios.
"""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from _pairs import Job, Run, main

TABLES = ("customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier")
LIMIT, MEAN_LIMIT = 1.5, 1.1
TIMES = 3
THREADS = 2


def queries() -> dict[str, str]:
    text = (Path(__file__).resolve().parent.parent / "spark" / "tpch.sql").read_text()
    parts = re.split(r"^-- (q\d+)$", text, flags=re.MULTILINE)[1:]
    return {name: body.strip().rstrip(";") for name, body in zip(parts[::2], parts[1::2], strict=True)}


JOBS = tuple(Job(name=name, limits={"duckdb": LIMIT}) for name in queries())


def prepare(root: Path, rows: int) -> None:
    import pyarrow.dataset as ds

    import deltaic

    data = root / "generated"
    program = os.environ.get("TPCHGEN", "tpchgen-cli")
    subprocess.run(
        [program, "parquet", "-s", f"{rows / 6_000_000:g}", f"--output-dir={data}"],
        check=True,
        stderr=subprocess.DEVNULL,
    )
    for name in TABLES:
        file = data / f"{name}.parquet"
        deltaic.write(root / name, ds.dataset(file), properties={"delta.enableDeletionVectors": False})
        file.unlink()


def run(system: str, job: str, root: Path) -> Run:
    return answered(system, queries()[job], root, TABLES)


def answered(system: str, query: str, root: Path, names: Sequence[str]) -> Run:
    """Runs a query over the tables of these names below `root`."""
    if system == "duckdb":
        import duckdb

        connection = duckdb.connect(config={"threads": THREADS})
        for name in names:
            connection.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet('{root / name}/*.parquet')")
        return lambda: connection.sql(query).to_arrow_table(), TIMES, check
    import deltaic

    deltaic.configure(threads=THREADS)
    tables = {name: deltaic.DeltaTable(root / name) for name in names}
    return lambda: deltaic.sql(query, tables=tables).to_arrow(), TIMES, check


def check(found: Any) -> object:
    def shown(value: Any) -> Any:
        return round(float(value), 2) if isinstance(value, (int, float, Decimal)) else value

    return [[str(shown(value)) for value in row.values()] for row in found.to_pylist()]


def mean(path: Path, limit: float) -> None:
    """Adds the geometric mean of the ratios to a record and prints it beside its limit."""
    document = json.loads(path.read_text())
    ratios = [row["rivals"]["duckdb"]["ratio"] for row in document["results"]]
    document["mean"] = math.exp(sum(map(math.log, ratios)) / len(ratios))
    path.write_text(json.dumps(document, indent=1) + "\n")
    print(f"geometric mean {document['mean']:.3f} x (<= {limit:g})")


if __name__ == "__main__":
    try:
        main(__file__, __doc__, JOBS, prepare, run, rows=6_000_000)
    finally:
        recorded = Path(sys.argv[sys.argv.index("--record") + 1]) if "--record" in sys.argv else None
        if recorded is not None and recorded.exists():
            mean(recorded, MEAN_LIMIT)
