"""Reads 4 M rows of 5 columns into Arrow memory: deltaic, deltalake and DuckDB on the bare files, all on the
same files.

    python benches/peers/read.py [--rows 4000000] [--pairs 5] [--jobs all,two,selective,...] [--record
        benches/records/read.json]

`all`, `two`, `selective`: every column; two columns; 500 rows by a range of the clustered column. deltalake
reads in its two ways: by its pyarrow dataset (`deltalake`) and by its query engine (`deltalake_query`).
`deleted_*`: rows are deleted by vectors, 10 % at random or 1 in 100,000, and the rival is deltaic on the same
files without vectors (`without_vectors`, version 0 of the same table). `sum`, `selective_sum`, `group_by`:
DuckDB through deltaic against DuckDB on the bare files. The clock starts when the table is open; the best of
the times in a process counts.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from _pairs import Job, Run, data, main, sums

TO_ARROW = {"deltalake": 1.0, "deltalake_query": 1.0, "duckdb": 1.2}
JOBS = (
    Job(name="all", limits=TO_ARROW),
    Job(name="two", limits=TO_ARROW),
    Job(name="selective", limits={"deltalake": 1.2, "deltalake_query": 1.2, "duckdb": 1.2}, slack=0.005),
    Job(name="deleted_10pct_all", limits={"without_vectors": 1.1}),
    Job(name="deleted_10pct_two", limits={"without_vectors": 1.3}),
    Job(name="deleted_1_in_100000_all", limits={"without_vectors": 1.02}),
    Job(name="deleted_1_in_100000_two", limits={"without_vectors": 1.02}),
    Job(name="sum", limits={"duckdb": 1.1}),
    Job(name="selective_sum", limits={"duckdb": 1.0}),
    Job(name="group_by", limits={"duckdb": 1.4}),
)
TWO = ["id", "value"]
RANGE = "id BETWEEN 2000000 AND 2000499"
QUERIES = {
    "sum": "SELECT sum(value) FROM t",
    "selective_sum": f"SELECT sum(value) FROM t WHERE {RANGE}",
    "group_by": "SELECT key, count(*), sum(value) FROM t GROUP BY key ORDER BY key",
}
TIMES = 7


def prepare(root: Path, rows: int) -> None:
    import numpy as np

    import deltaic

    table = data(rows)
    deltaic.write(root / "plain", table, properties={"delta.enableDeletionVectors": False})
    deltaic.write(root / "deleted_10pct", table).delete("value < 100")
    few = np.random.default_rng(3).choice(rows, max(rows // 100_000, 1), replace=False)
    deltaic.write(root / "deleted_1_in_100000", table).delete(f"id IN ({', '.join(map(str, sorted(few)))})")


def run(system: str, job: str, root: Path) -> Run:
    if job in QUERIES:
        return query(system, job, root / "plain")
    if job.startswith("deleted_"):
        return through_vectors(system, job, root)
    columns = None if job == "all" else TWO if job == "two" else ["id", "name", "value"]
    work = READERS[system](str(root / "plain"), columns, RANGE if job == "selective" else None)
    return work, TIMES, sums


def through_vectors(system: str, job: str, root: Path) -> Run:
    """The check that both must pass: the number of rows of the files, less those that the vectors delete."""
    import deltaic

    name, _, columns = job.rpartition("_")
    here, plain = deltaic.DeltaTable(root / name), deltaic.DeltaTable(root / name, version=0)
    asked = None if columns == "all" else TWO
    table = here if system == "deltaic" else plain
    live, physical = here.scan().count(), plain.scan().count()
    if not live < physical:
        raise SystemExit(f"{job}: no row is deleted")
    expected = live if system == "deltaic" else physical

    def check(found: Any) -> object:
        if found.num_rows != expected or (
            system == "deltaic" and name == "deleted_10pct" and lowest(found) < 100
        ):
            raise SystemExit(f"{job}: {found.num_rows} rows of {system}, expected {expected}")
        return [live, physical]

    return lambda: table.scan(asked).to_arrow(), TIMES, check


def lowest(found: Any) -> float:
    import pyarrow.compute as compute

    value: float = compute.min(found["value"]).as_py()
    return value


def by_deltaic(path: str, columns: list[str] | None, where: str | None) -> Callable[[], Any]:
    import deltaic

    table = deltaic.DeltaTable(path)
    return lambda: table.scan(columns, where=where).to_arrow()


def by_deltalake(path: str, columns: list[str] | None, where: str | None) -> Callable[[], Any]:
    import deltalake
    import pyarrow.dataset as dataset

    table = deltalake.DeltaTable(path)
    rows = None if where is None else (dataset.field("id") >= 2_000_000) & (dataset.field("id") <= 2_000_499)
    return lambda: table.to_pyarrow_dataset().to_table(columns=columns, filter=rows)


def by_deltalake_query(path: str, columns: list[str] | None, where: str | None) -> Callable[[], Any]:
    import deltalake
    import pyarrow as pa

    table = deltalake.DeltaTable(path)
    text = select(columns, where)
    return lambda: pa.table(deltalake.QueryBuilder().register("t", table).execute(text).read_all())


def by_duckdb(path: str, columns: list[str] | None, where: str | None) -> Callable[[], Any]:
    import duckdb

    connection = duckdb.connect()
    connection.execute(f"CREATE VIEW t AS SELECT * FROM read_parquet('{path}/*.parquet')")
    text = select(columns, where)
    return lambda: connection.sql(text).to_arrow_table()


def select(columns: list[str] | None, where: str | None) -> str:
    return f"SELECT {', '.join(columns or ['*'])} FROM t" + (f" WHERE {where}" if where else "")


READERS = {
    "deltaic": by_deltaic,
    "deltalake": by_deltalake,
    "deltalake_query": by_deltalake_query,
    "duckdb": by_duckdb,
}


def query(system: str, job: str, path: Path) -> Run:
    import duckdb

    connection = duckdb.connect()
    if system == "duckdb":
        connection.execute(f"CREATE VIEW t AS SELECT * FROM read_parquet('{path}/*.parquet')")
        return lambda: connection.execute(QUERIES[job]).fetchall(), TIMES, rounded
    import deltaic

    table = deltaic.DeltaTable(path)

    def through() -> list[Any]:
        connection.register("t", table.scan().to_dataset())
        return connection.execute(QUERIES[job]).fetchall()

    return through, TIMES, rounded


def rounded(found: list[Any]) -> object:
    """Sums of floats differ in their last digits with the order of the rows."""
    return [[round(value, 3) if isinstance(value, float) else value for value in row] for row in found]


if __name__ == "__main__":
    main(__file__, __doc__, JOBS, prepare, run)
