"""Small tables that are copied into DuckDB: the rows of a query are those of the snapshot, and old copies are
deleted."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltaic
from deltaic.engine.duckdb import connection, native_tables, small_tables

ROWS = pa.table({
    "id": range(100),
    "p": [f"p{row % 3}" for row in range(100)],
    "x": [None if row % 7 == 0 else row / 4 for row in range(100)],
    "s": [{"a": row, "l": [row, None]} for row in range(100)],
})  # fmt: skip
QUERIES = [
    "SELECT * FROM t ORDER BY id",
    "SELECT p, count(*), sum(x) FROM t GROUP BY p ORDER BY p",
    "SELECT count(*) FROM t",
    "SELECT a.id, b.s.l[0] FROM t a JOIN t b ON a.id = b.s.a WHERE b.x > 3 ORDER BY 1",
    "SELECT id FROM t WHERE p = 'p1' AND x IS NULL",
    (
        "SELECT id, ' FROM \"__deltaic_table_0\" ' AS a, 1 AS __deltaic_table_0, 'it''s' AS `FROM"
        ' "__deltaic_table_0"` FROM t'
    ),
    (
        "SELECT a.id FROM (t a CROSS JOIN (t b JOIN t c ON b.id = c.id + 1)) LEFT SEMI JOIN t d ON d.id ="
        " a.id WHERE c.id < 3 ORDER BY ALL"
    ),
    "SELECT * FROM t PIVOT (sum(x) FOR p IN ('p0', 'p1')) ORDER BY id",
    (
        "FROM t |> WHERE id IN (SELECT b.id FROM t b, t c WHERE b.id = 2 * c.id) |> AGGREGATE count(*) AS n"
        " GROUP BY p |> ORDER BY p"
    ),
]


def copies() -> list[str]:
    """Returns the names of all copies in the databases of this process."""
    found: list[str] = []
    for database in connection._databases.values():
        with database.connection.cursor() as cursor:
            rows = cursor.execute(
                "SELECT table_name FROM duckdb_tables() WHERE table_name LIKE '\\_\\_deltaic\\_small%' ESCAPE"
                " '\\'"
            ).fetchall()
            found += [row[0] for row in rows]
    return found


@pytest.fixture
def table(tmp_path: Path) -> deltaic.DeltaTable:
    table = deltaic.write(tmp_path / "t", ROWS, partition_by=["p"])
    table.delete("id % 10 = 3")
    return table


@pytest.mark.parametrize("query", QUERIES)
def test_rows_are_those_without_a_copy(
    table: deltaic.DeltaTable, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    found = [deltaic.sql(query, tables={"t": table}).to_arrow() for _ in range(3)]
    monkeypatch.setattr(native_tables, "SMALL_ROWS", -1)
    expected = deltaic.sql(query, tables={"t": table}).to_arrow()
    assert found == [expected] * 3


def test_a_snapshot_is_copied_once(table: deltaic.DeltaTable) -> None:
    before = set(copies())
    for number in (1, 2, 3):
        assert deltaic.sql(f"SELECT count(*) + {number} AS n FROM t", tables={"t": table}).to_pylist() == [
            {"n": 90 + number}
        ]
    assert len(set(copies()) - before) == 1
    table.delete("id = 4")
    assert deltaic.sql("SELECT count(*) AS n FROM t", tables={"t": table}).to_pylist() == [{"n": 89}]
    assert deltaic.sql("SELECT count(*) AS n FROM t", tables={"t": table.at(1)}).to_pylist() == [{"n": 90}]


def test_copies_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small_tables, "MOST_COPIES", 4)
    tables = [deltaic.write(tmp_path / str(number), {"n": [number]}) for number in range(12)]
    for _ in range(2):
        for number, table in enumerate(tables):
            assert deltaic.sql("SELECT n FROM t WHERE n >= 0", tables={"t": table}).to_pylist() == [
                {"n": number}
            ]
    many = {f"t{number}": table for number, table in enumerate(tables)}
    union = " UNION ALL ".join(f"SELECT n FROM {name}" for name in many)
    assert deltaic.sql(f"SELECT sum(n) AS n FROM ({union})", tables=many).to_pylist() == [{"n": 66}]
    last = deltaic.write(tmp_path / "last", {"n": [1]})
    for _ in range(2):
        deltaic.sql("SELECT n FROM t WHERE n > 5", tables={"t": last}).to_arrow()
    assert len(copies()) <= 4


def test_a_copy_outlives_its_eviction_for_readers(
    table: deltaic.DeltaTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(small_tables, "MOST_COPIES", 1)
    asked = deltaic.sql("SELECT id FROM t WHERE id >= 0", tables={"t": table})
    assert len(asked.to_pylist()) == 90
    reader = asked.to_reader()
    first = next(reader)
    for number in range(3):
        other = deltaic.write(tmp_path / str(number), {"n": [number]})
        for _ in range(2):
            assert deltaic.sql("SELECT n FROM t WHERE n >= 0", tables={"t": other}).to_pylist() == [
                {"n": number}
            ]
    assert first.num_rows + sum(batch.num_rows for batch in reader) == 90


def test_threads_share_copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small_tables, "MOST_COPIES", 2)
    tables = [deltaic.write(tmp_path / str(number), {"n": range(number, number + 10)}) for number in range(4)]
    failures: list[Any] = []

    def ask(first: int) -> None:
        for step in range(25):
            number = (first + step) % 4
            rows = deltaic.sql(
                "SELECT min(n) AS n, count(*) AS c FROM t", tables={"t": tables[number]}
            ).to_pylist()
            if rows != [{"n": number, "c": 10}]:
                failures.append(rows)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_rows_that_unpack_to_many_bytes_are_not_copied(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path / "t", {"s": ["x" * 100_000] * 100})
    before = copies()
    for _ in range(2):
        assert deltaic.sql("SELECT sum(length(s)) AS n FROM t", tables={"t": table}).to_pylist() == [
            {"n": 10_000_000}
        ]
    assert copies() == before


def test_maps_are_not_copied(tmp_path: Path) -> None:
    table = deltaic.write(
        tmp_path / "t", pa.table({"m": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int32())), "n": [1]})
    )
    before = copies()
    for _ in range(2):
        assert deltaic.sql("SELECT m['a'] AS a FROM t", tables={"t": table}).to_pylist() == [{"a": 1}]
    assert copies() == before
