"""What a query works out of a snapshot stays with it: the filters of joins, the columns of a scan."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import deltaic
from deltaic.engine.duckdb import join_filters
from deltaic.engine.duckdb.sources import ScanSource
from deltaic.log.snapshot import Snapshot

DAYS, SALES = 1000, 100_000
TEXT = "SELECT count(*) AS n, sum(s.amount) AS total FROM sales s JOIN days d ON s.day = d.day WHERE d.year = 2001"


@pytest.fixture
def tables(tmp_path: Path) -> dict[str, deltaic.DeltaTable]:
    days = pa.table({"day": range(DAYS), "year": [1999 + day // 365 for day in range(DAYS)]})
    sales = pa.table({"day": [row % DAYS for row in range(SALES)], "amount": range(SALES)})
    return {"days": deltaic.write(tmp_path / "days", days), "sales": deltaic.write(tmp_path / "sales", sales)}


def expected(first: int) -> list[dict[str, int]]:
    amounts = [row for row in range(SALES) if 730 + first <= row % DAYS]
    return [{"n": len(amounts), "total": sum(amounts)}]


def test_keys_of_a_join_are_read_once(tables: dict[str, deltaic.DeltaTable], monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_rows_are_the_same_where_nothing_is_kept(tables: dict[str, deltaic.DeltaTable], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Snapshot, "keep", lambda self, key, compute: compute())
    for _ in range(2):
        assert deltaic.sql(TEXT, tables=tables).to_arrow().to_pylist() == expected(0)


def test_a_snapshot_keeps_a_hundred_things(tables: dict[str, deltaic.DeltaTable]) -> None:
    snapshot = tables["days"]._snapshot
    found = [snapshot.keep(number, object) for number in range(250)]
    assert snapshot.keep(249, object) is found[249]
    assert len(snapshot._kept) <= 100
    assert snapshot.keep(0, object) is not found[0]


def test_the_columns_of_a_scan_are_described_once(tables: dict[str, deltaic.DeltaTable], monkeypatch: pytest.MonkeyPatch) -> None:
    described = []
    made = ScanSource.__init__

    def noted(self: ScanSource, *args: object, **named: object) -> None:
        made(self, *args, **named)
        described.append(self._encoding)

    monkeypatch.setattr(ScanSource, "__init__", noted)
    for _ in range(2):
        deltaic.sql("SELECT max(year) AS y FROM days", tables=tables).to_arrow()
    assert described[0] is described[1]
