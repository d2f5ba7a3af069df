"""Appends and merges of rows that come from the table itself: they depend on these rows, so they are no blind
appends, and concurrent changes of the rows are conflicts."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import deltaic
from deltaic import DeltaTable
from deltaic.errors import ConcurrentAppendException

OWN: dict[str, Callable[[DeltaTable], Any]] = {
    "scan": lambda table: deltaic.write(table, table.scan(["id"]), mode="append"),
    "fields": lambda table: deltaic.write(table, table.scan(["s.x", "s.y", "id"]), mode="append"),
    "table": lambda table: deltaic.write(table, table, mode="append"),
    "query": lambda table: deltaic.sql("INSERT INTO t SELECT max(id) + 1, null FROM t", tables={"t": table}),
    "count": lambda table: deltaic.sql("INSERT INTO t (id) SELECT count(*) FROM t", tables={"t": table}),
    "rows": lambda table: deltaic.sql(
        "INSERT INTO t SELECT id, s FROM r", tables={"t": table, "r": table.scan()}
    ),
    "merge": lambda table: (
        table.merge(table.scan(where="id = 1"), "t.id = s.id + 100").when_not_matched_insert_all().execute()
    ),
}
OTHER: dict[str, Callable[[DeltaTable], Any]] = {
    "values": lambda table: deltaic.sql("INSERT INTO t VALUES (5, null)", tables={"t": table}),
    "collected": lambda table: deltaic.write(table, table.scan().to_arrow(), mode="append"),
    "former version": lambda table: deltaic.write(table, table.at(0).scan(), mode="append"),
    "version of a query": lambda table: deltaic.sql(
        "INSERT INTO t SELECT * FROM t VERSION AS OF 0", tables={"t": table}
    ),
}


@pytest.fixture
def table(tmp_path: Path) -> DeltaTable:
    deltaic.write(tmp_path / "t", {"id": [1], "s": [{"x": 1, "y": 2, "z": 3}]})
    return deltaic.write(tmp_path / "t", {"id": [2]}, mode="append")


@pytest.mark.parametrize("name", [*OWN, *OTHER])
def test_only_rows_of_others_are_blind_appends(table: DeltaTable, name: str) -> None:
    {**OWN, **OTHER}[name](table)
    entry = DeltaTable(table.location).history(1)[0]
    assert (entry["version"], entry["isBlindAppend"]) == (2, name in OTHER)


@pytest.mark.parametrize("name", [*OWN, *OTHER])
def test_a_concurrent_append_is_a_conflict_for_own_rows(table: DeltaTable, name: str) -> None:
    deltaic.write(table.location, {"id": [1]}, mode="append")
    if name in OTHER:
        OTHER[name](table)
        assert DeltaTable(table.location).version == 3
        return
    with pytest.raises(ConcurrentAppendException):
        OWN[name](table)
    assert DeltaTable(table.location).version == 2


def test_a_scan_depends_on_the_rows_of_its_condition(table: DeltaTable) -> None:
    deltaic.write(table.location, {"id": [7]}, mode="append")
    deltaic.write(table, table.scan(where="id = 1"), mode="append")
    assert sorted(DeltaTable(table.location).scan(["id"]).to_arrow()["id"].to_pylist()) == [1, 1, 2, 7]


def test_writers_that_count_on_do_not_take_one_number_twice(table: DeltaTable) -> None:
    def insert(_: int) -> None:
        while True:
            try:
                OWN["query"](DeltaTable(table.location))
                return
            except ConcurrentAppendException:
                continue

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(insert, range(8)))
    assert sorted(DeltaTable(table.location).scan(["id"]).to_arrow()["id"].to_pylist()) == list(range(1, 11))
