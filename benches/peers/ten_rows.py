"""Measures queries over a table of ten rows by `deltaic.sql`, beside DuckDB's `read_parquet` of its one file.

    python benches/peers/ten_rows.py [--pairs 5] [--jobs all,where,...] [--record
        benches/records/ten_rows.json]

The bench measures the overhead of a query. Each query runs many times in a warm process, and the best time of
each process counts. `deltaic` opens the table by its path for each query. Two jobs have no rival: `plan`,
which is `scan(where=)` with one condition that files cannot decide, and `merge`, of ten rows into a table of
400 columns.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from _pairs import Job, Run, main

QUERIES = {
    "all": "SELECT * FROM {t}",
    "count": "SELECT count(*) AS n FROM {t}",
    "where": "SELECT id, name FROM {t} WHERE value > 3 AND name LIKE 'n%' ORDER BY id",
    "groups": "SELECT key, sum(value) AS s, count(*) AS n FROM {t} GROUP BY key ORDER BY key",
    "top": "SELECT * FROM {t} ORDER BY value DESC, id LIMIT 3",
    "join": "SELECT a.id, b.name FROM {t} a JOIN {t} b ON a.id = b.key ORDER BY a.id, b.name",
    "window": "SELECT id, sum(value) OVER (PARTITION BY key ORDER BY id) AS s FROM {t} ORDER BY id",
}
SECONDS = {"plan": 0.001, "merge": 1.3 / 4}
JOBS = (
    *(Job(name=name, limits={"duckdb": 2.0}) for name in QUERIES),
    *(Job(name=name, limits={}, seconds=most) for name, most in SECONDS.items()),
)
TIMES, COLUMNS = 300, 400


def prepare(root: Path, rows: int) -> None:
    import pyarrow as pa

    import deltaic

    ten = pa.table(
        {
            "id": range(10),
            "key": [number % 3 for number in range(10)],
            "value": [float(number) for number in range(10)],
            "name": [f"n{number}" for number in range(10)],
        }
    )
    deltaic.write(root / "ten", ten)
    deltaic.write(root / "wide", wide(0))
    time.sleep(6)  # a log that was changed in the last five seconds is read for each query


def wide(first: int) -> Any:
    """Returns ten rows of `COLUMNS` columns, with `id` from `first` on."""
    import pyarrow as pa

    return pa.table(
        {"id": range(first, first + 10), **{f"c{number}": range(10) for number in range(COLUMNS - 1)}}
    )


def run(system: str, job: str, root: Path) -> Run:
    ten = root / "ten"
    if system == "duckdb":
        import duckdb

        connection = duckdb.connect()
        query = QUERIES[job].format(t=f"read_parquet('{ten}/*.parquet')")
        return lambda: connection.sql(query).to_arrow_table(), TIMES, lambda found: found.to_pylist()
    import deltaic

    if job == "merge":
        table, source = deltaic.DeltaTable(root / "wide"), wide(5)
        return (
            lambda: (
                table.merge(source, "t.id = s.id")
                .when_matched_update_all()
                .when_not_matched_insert_all()
                .execute()
            ),
            5,
            lambda _: table.scan().count(),
        )
    if job == "plan":
        table = deltaic.DeltaTable(ten)
        return lambda: table.scan(where="length(name) = 2"), TIMES, lambda found: found.count()
    query = QUERIES[job].format(t=f"delta.`{ten}`")
    return lambda: deltaic.sql(query).to_arrow(), TIMES, lambda found: found.to_pylist()


if __name__ == "__main__":
    main(__file__, __doc__, JOBS, prepare, run)
