"""Measures queries by `deltaic.sql`, by deltalake's query engine and by DuckDB on the bare files, all on the
same files.

    python benches/peers/sql.py [--rows 4000000] [--pairs 5] [--jobs like,length,top,...] [--record
        benches/records/sql.json]

`like`, `length`, `group`: over a column of text. `top`, `top_text`: the ten first rows of an order. `wide`:
five rows of 1,000 columns. The clock starts when the table is open; the best of the times in a process
counts.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from _pairs import Job, Run, data, main

PEERS = {"deltalake": 1.2, "duckdb": 1.2}
QUERIES = {
    "like": "SELECT count(*) AS n FROM t WHERE name LIKE '%7'",
    "length": "SELECT sum(length(name)) AS n FROM t",
    "group": "SELECT name, count(*) AS n FROM t GROUP BY name",
    "top": "SELECT * FROM t ORDER BY value, id LIMIT 10",
    "top_text": "SELECT * FROM t ORDER BY name, id LIMIT 10",
    "wide": "SELECT * FROM t LIMIT 5",
}
JOBS = tuple(Job(name=name, limits=PEERS, slack=0.005) for name in QUERIES)
TIMES = 7
WIDE_ROWS, WIDE_COLUMNS = 20_000, 1000


def prepare(root: Path, rows: int) -> None:
    import numpy as np
    import pyarrow as pa

    import deltaic

    plain = {"delta.enableDeletionVectors": False}
    deltaic.write(root / "plain", data(rows), properties=plain)
    random = np.random.default_rng(11)
    columns = {
        f"column_{number}": random.random(WIDE_ROWS) if number % 3 else np.arange(WIDE_ROWS)
        for number in range(WIDE_COLUMNS)
    }
    deltaic.write(root / "wide", pa.table(columns), properties=plain)


def run(system: str, job: str, root: Path) -> Run:
    path, query = str(root / ("wide" if job == "wide" else "plain")), QUERIES[job]
    if system == "duckdb":
        import duckdb

        connection = duckdb.connect()
        connection.execute(f"CREATE VIEW t AS SELECT * FROM read_parquet('{path}/*.parquet')")
        return lambda: connection.sql(query).to_arrow_table(), TIMES, check
    if system == "deltalake":
        import deltalake
        import pyarrow as pa

        peer = deltalake.DeltaTable(path)
        return (
            lambda: pa.table(deltalake.QueryBuilder().register("t", peer).execute(query).read_all()),
            TIMES,
            check,
        )
    import deltaic

    table = deltaic.DeltaTable(path)
    return lambda: deltaic.sql(query, tables={"t": table}).to_arrow(), TIMES, check


def check(found: Any) -> object:
    """Returns the rows if all systems must have the same ones: not those of a LIMIT without an order."""
    if found.num_columns > 100:
        return [found.num_rows, found.num_columns]
    if found.num_rows > 1000:
        return [found.num_rows, sum(found["n"].to_pylist())]
    return [
        [str(value) for value in row.values()]
        for row in found.select([c for c in found.column_names if c != "at"]).to_pylist()
    ]


if __name__ == "__main__":
    main(__file__, __doc__, JOBS, prepare, run)
