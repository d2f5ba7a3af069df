"""Measures the sum of a column over 33 M rows in 1,000, 10,000 and 100,000 partitions of one file each:
deltaic beside DuckDB's read of the same files by their folders (`hive_partitioning`).

    python benches/peers/partitions.py [--rows 33000000] [--pairs 3] [--jobs ...] [--record
    benches/records/partitions.json]

The clock runs from the name of the table to the sum: the log is read, or the folders are listed, each time.
`one of`: the sum of a single partition, by a process that has not read the table, but has run a query of its
system, which imports libraries (small.py measures that); `another of`: by one that has read it. The files of
100,000 partitions are small: opening them is most of the work.
"""

from __future__ import annotations

import json
from pathlib import Path

from _pairs import Job, Run, main

COUNTS = (1_000, 10_000, 100_000)
JOBS = tuple(
    Job(name=f"{what} {count}", limits={"duckdb": 1.0})
    for count in COUNTS
    for what in ("sum of", "one of", "another of")
)
TIMES = 3


def prepare(root: Path, rows: int) -> None:
    (root / "rows").write_text(str(rows))


def write_table(root: Path, rows: int, count: int) -> None:
    """Writes a table of `count` partitions of `rows` rows, with a log of one commit and its checkpoint."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    import deltaic

    kinds = {"p": "integer", "id": "long", "value": "double"}
    fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in kinds.items()]
    schema = json.dumps({"type": "struct", "fields": fields})
    metadata = {
        "id": "bench",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": schema,
        "partitionColumns": ["p"],
    }
    (root / "_delta_log").mkdir(parents=True)
    rng = np.random.default_rng(7)
    with (root / "_delta_log" / f"{0:020}.json").open("w") as log:
        log.write('{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}\n')
        log.write(json.dumps({"metaData": {**metadata, "configuration": {}, "createdTime": 1}}) + "\n")
        for number in range(count):
            folder = root / f"p={number}"
            folder.mkdir()
            table = pa.table(
                {
                    "id": np.arange(number * rows, (number + 1) * rows),
                    "value": np.round(rng.random(rows) * 100),
                }
            )
            pq.write_table(table, folder / "part-0.parquet", store_schema=False)
            add = {
                "path": f"p={number}/part-0.parquet",
                "partitionValues": {"p": str(number)},
                "modificationTime": 1,
                "dataChange": True,
            }
            add |= {
                "size": (folder / "part-0.parquet").stat().st_size,
                "stats": json.dumps({"numRecords": rows}),
            }
            log.write(json.dumps({"add": add}) + "\n")
    deltaic.DeltaTable(root).checkpoint()


def run(system: str, job: str, root: Path) -> Run:
    what, _, count = job.rpartition(" ")
    where = "" if what == "sum of" else " WHERE p = 321"
    table = root / count
    if not table.exists():
        write_table(table, int((root / "rows").read_text()) // int(count), int(count))
    if system == "deltaic":
        import deltaic

        deltaic.sql("SELECT 1 AS one").to_arrow()

        def work() -> object:
            return (
                deltaic.sql(f"SELECT sum(value) AS s, count(*) AS c FROM delta.`{table}`{where}")
                .to_arrow()
                .to_pylist()
            )

    else:
        import duckdb

        with duckdb.connect() as connection:
            connection.sql("SELECT 1 AS one").to_arrow_table()

        def work() -> object:
            source = f"read_parquet('{table}/p=*/*.parquet', hive_partitioning=true)"
            with duckdb.connect() as connection:
                return (
                    connection.execute(f"SELECT sum(value) AS s, count(*) AS c FROM {source}{where}")
                    .to_arrow_table()
                    .to_pylist()
                )

    return (
        work,
        TIMES if what != "one of" and (what, count) != ("sum of", "100000") else 1,
        lambda found: found,
    )


if __name__ == "__main__":
    main(__file__, __doc__, JOBS, prepare, run, rows=33_000_000)
