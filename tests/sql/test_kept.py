"""Results that a query derives from a snapshot are kept with it: the filters of joins, the columns of a scan,
the rows of a small table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltaic
from deltaic.engine.duckdb import join_filters, native_tables
from deltaic.engine.duckdb.sources import ScanSource
from deltaic.log.snapshot import Snapshot
from deltaic.planning import opening

DAYS, SALES = 1000, 100_000
TEXT = (
    "SELECT count(*) AS n, sum(s.amount) AS total FROM sales s JOIN days d ON s.day = d.day WHERE d.year ="
    " 2001"
)


@pytest.fixture
def tables(tmp_path: Path) -> dict[str, deltaic.DeltaTable]:
    days = pa.table({"day": range(DAYS), "year": [1999 + day // 365 for day in range(DAYS)]})
    sales = pa.table({"day": [row % DAYS for row in range(SALES)], "amount": range(SALES)})
    return {"days": deltaic.write(tmp_path / "days", days), "sales": deltaic.write(tmp_path / "sales", sales)}


def expected(first: int) -> list[dict[str, int]]:
    amounts = [row for row in range(SALES) if 730 + first <= row % DAYS]
    return [{"n": len(amounts), "total": sum(amounts)}]


@pytest.mark.usefixtures("arrow_sources")
def test_keys_of_a_join_are_read_once(
    tables: dict[str, deltaic.DeltaTable], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    among = join_filters._filter
    monkeypatch.setattr(join_filters, "_filter", lambda *args: made.append(among(*args)) or made[-1])
    for _ in range(3):
        assert deltaic.sql(TEXT, tables=tables).to_arrow().to_pylist() == expected(0)
    assert len(made) == 3
    assert made[1] is made[2] is not None


def test_a_new_version_has_its_own(tables: dict[str, deltaic.DeltaTable]) -> None:
    for _ in range(2):
        assert deltaic.sql(TEXT, tables=tables).to_arrow().to_pylist() == expected(0)
    tables["days"].delete("day < 740")
    for _ in range(2):
        assert deltaic.sql(TEXT, tables=tables).to_arrow().to_pylist() == expected(10)


def test_rows_are_the_same_where_nothing_is_kept(
    tables: dict[str, deltaic.DeltaTable], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Snapshot, "keep", lambda self, key, compute: compute())
    for _ in range(2):
        assert deltaic.sql(TEXT, tables=tables).to_arrow().to_pylist() == expected(0)


def test_a_snapshot_keeps_a_hundred_things(tables: dict[str, deltaic.DeltaTable]) -> None:
    snapshot = tables["days"]._snapshot
    found = [snapshot.keep(number, object) for number in range(250)]
    assert snapshot.keep(249, object) is found[249]
    assert len(snapshot._kept) <= 100
    assert snapshot.keep(0, object) is not found[0]


@pytest.mark.usefixtures("arrow_sources")
def test_the_columns_of_a_scan_are_described_once(
    tables: dict[str, deltaic.DeltaTable], monkeypatch: pytest.MonkeyPatch
) -> None:
    described = []
    made = ScanSource.__init__

    def noted(self: ScanSource, *args: object, **named: object) -> None:
        made(self, *args, **named)
        described.append(self._encoding)

    monkeypatch.setattr(ScanSource, "__init__", noted)
    for _ in range(2):
        deltaic.sql("SELECT max(year) AS y FROM days", tables=tables).to_arrow()
    assert described[0] is described[1]


SMALL = [
    "SELECT * FROM t WHERE id > 3",
    "SELECT count(*) AS n, sum(price) AS total FROM t",
    "SELECT name, id FROM t WHERE name LIKE 'name 1%' AND price > 2.5 ORDER BY id DESC LIMIT 3",
    "SELECT a.id, b.name FROM t a JOIN t b ON a.id = b.id + 1 WHERE b.id IN (3, 5, 7)",
    (
        "SELECT t.name, count(*) AS n FROM large l JOIN t ON l.id % 10 = t.id WHERE t.price < 7 GROUP BY ALL"
        " ORDER BY ALL"
    ),
    "SELECT name FROM t WHERE EXISTS (SELECT 1 FROM large l WHERE l.id = t.id AND l.id > 14)",
]


@pytest.fixture
def small(tmp_path: Path) -> dict[str, deltaic.DeltaTable]:
    ids = range(20)
    prices = pa.array([None if number % 7 == 0 else number / 2 for number in ids]).cast(pa.decimal128(9, 2))
    rows = pa.table({"id": ids, "name": [f"name {number}" for number in ids], "price": prices})
    table = deltaic.write(tmp_path / "t", rows)
    table.delete("id = 5")
    return {"t": table, "large": deltaic.write(tmp_path / "large", pa.table({"id": range(200_000)}))}


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tables of the scans that were opened."""
    found: list[str] = []
    real: Callable[..., Any] = opening.open_scan

    def noted(scan: Any, **named: Any) -> Any:
        found.append(Path(scan.store.location).name)
        return real(scan, **named)

    monkeypatch.setattr(opening, "open_scan", noted)
    return found


@pytest.mark.parametrize("text", SMALL)
def test_a_small_table_is_read_once(
    small: dict[str, deltaic.DeltaTable], text: str, opened: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [deltaic.sql(text, tables=small).to_arrow() for _ in range(3)]
    assert opened.count("t") <= 2  # each mention of a table reads its own columns
    monkeypatch.setattr(native_tables, "SMALL_ROWS", -1)
    opened.clear()
    expected = deltaic.sql(text, tables=small).to_arrow()
    assert opened.count("t") >= 1
    for each in found:
        assert each.schema == expected.schema
        assert sorted(map(repr, each.to_pylist())) == sorted(map(repr, expected.to_pylist()))


def test_rows_that_change_are_read_again(small: dict[str, deltaic.DeltaTable]) -> None:
    text = "SELECT count(*) AS n FROM t WHERE id > 3"
    for gone, left in ((6, 14), (7, 13)):
        small["t"].delete(f"id = {gone}")
        assert [deltaic.sql(text, tables=small).to_arrow().to_pylist() for _ in range(2)] == [
            [{"n": left}]
        ] * 2


def test_a_report_reads_the_files(small: dict[str, deltaic.DeltaTable]) -> None:
    rows = [deltaic.sql("SELECT * FROM t WHERE id > 3", tables=small) for _ in range(2)]
    rows[0].to_arrow()
    assert rows[1].explain().scans["t"].files_read == 1
