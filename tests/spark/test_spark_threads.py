"""Eight threads that run commands at the same time, each on its own table, all tables with one schema: every
command, on either engine."""

from __future__ import annotations

import threading
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltaic

pytest.importorskip("pyspark")

THREADS = 8
ROWS = pa.table(
    {
        "id": list(range(20)),
        "p": [number % 2 for number in range(20)],
        "s": [f"s{number}" for number in range(20)],
    }
)


def _work(path: Path, spark: Any) -> list[tuple[Any, ...]]:
    """Runs every command in turn, and returns the rows that are left."""
    deltaic.write(path, ROWS, partition_by="p", properties={"delta.enableDeletionVectors": True})
    table = deltaic.DeltaTable(path, spark=spark)
    table.delete("id % 5 = 0 AND s LIKE 's%'")
    table.update({"s": "concat(s, '!')", "id": "id + 100"}, "id % 3 = 1")
    source = pa.table({"id": [2, 101, 500], "p": [0, 1, 1], "s": ["two", "one", "new"]})
    merge = table.merge(source, "t.id = s.id AND length(t.s) > 0").when_matched_update(
        {"s": "upper(s.s)"}, "s.id < 200"
    )
    merge.when_not_matched_insert_all().when_not_matched_by_source_delete("t.id = 3").execute()
    deltaic.write(
        table,
        pa.table({"id": [9000], "p": [1], "s": ["new"]}),
        mode="overwrite",
        where="p = 1 AND length(s) = 3",
    )
    table.optimize.compact("p = 0")
    run: Any = deltaic.sql
    if spark is not None:
        from deltaic.spark import sql

        run = partial(sql, spark)
    run(f"UPDATE delta.`{path}` SET s = trim(s) WHERE length(s) > 1 AND id < 100")
    return sorted(
        tuple(row.values())
        for row in deltaic.DeltaTable(path).scan(where="upper(s) IS NOT NULL").to_arrow().to_pylist()
    )


@pytest.mark.parametrize("engine", ["spark", "embedded"])
def test_threads(spark: Any, tmp_path: Path, engine: str) -> None:
    from deltaic.engine.spark.engine import engine_of

    host = spark if engine == "spark" else None
    if host is not None:
        spark.__dict__.get("_deltaic_engines", {}).clear()  # what the threads share is made by them
    found: dict[int, Any] = {}
    begin = threading.Barrier(THREADS)

    def one(number: int) -> None:
        begin.wait()
        try:
            found[number] = _work(tmp_path / str(number), host)
        except Exception as error:
            found[number] = error

    threads = [threading.Thread(target=one, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = _work(tmp_path / "alone", None)
    assert [found[number] for number in range(THREADS)] == [expected] * THREADS
    if host is not None:
        assert engine_of(spark).read_path.reason is None
