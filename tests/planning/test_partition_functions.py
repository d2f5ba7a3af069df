"""Functions of partition columns: the engine evaluates each once for each partition, files without a match
are not read, and the rows are the same."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltaic
from deltaic.engine.duckdb.engine import LocalEngine
from deltaic.errors import ConcurrentAppendException, DeltaError
from deltaic.planning import partition_functions
from deltaic.rows.scan import scan

DAYS = [dt.date(2023, 12, 31), dt.date(2024, 1, 1), dt.date(2024, 2, 29), dt.date(1, 1, 1), None]
ZONE = dt.timezone.utc
ROWS: list[dict[str, Any]] = [
    {"day": day, "at": at, "text": text, "cost": cost, "n": index}
    for index, (day, at, text, cost) in enumerate(
        [
            (DAYS[0], dt.datetime(2023, 12, 31, 23, 30, tzinfo=ZONE), "a/b c", Decimal("1.50")),
            (DAYS[1], dt.datetime(2024, 1, 1, tzinfo=ZONE), "O'Neil", Decimal("-0.01")),
            (DAYS[2], dt.datetime(2024, 2, 29, 12, 0, 0, 1, tzinfo=ZONE), "ü%", Decimal("99.99")),
            (DAYS[3], None, None, None),
            (None, dt.datetime(1970, 1, 1, tzinfo=ZONE), "a", Decimal("0")),
            (DAYS[2], dt.datetime(2024, 2, 29, 12, 0, 0, 1, tzinfo=ZONE), "ü%", Decimal("99.99")),
        ]
    )
]
SCHEMA = pa.schema(
    {
        "day": pa.date32(),
        "at": pa.timestamp("us", "UTC"),
        "text": pa.string(),
        "cost": pa.decimal128(4, 2),
        "n": pa.int64(),
    }
)


@pytest.fixture
def table(tmp_path: Path) -> deltaic.DeltaTable:
    return deltaic.write(
        tmp_path / "t", pa.Table.from_pylist(ROWS, SCHEMA), partition_by=["day", "at", "text", "cost"]
    )


@pytest.mark.parametrize(
    ("where", "files"),
    [
        ("year(day) = 2024", 2),
        ("month(day) = 12 and n < 5", 1),
        ("day + interval 1 day = '2024-03-01'", 1),
        ("coalesce(day, date'2000-01-01') = '2000-01-01'", 1),
        ("upper(text) = 'A'", 1),
        ("length(text) > 2 or cost * 2 > 100", 3),
        ("hour(at) = 12", 1),
        ("cost + 1 = 0.99", 1),
        ("year(day) = 1999", 0),
        ("year(day) is null", 1),
        ("n % 2 = 0 and text like '%b_c'", 1),
    ],
)
def test_only_their_partitions_are_read(table: deltaic.DeltaTable, where: str, files: int) -> None:
    whole, narrow = (
        scan(table._snapshot, LocalEngine(), ["n"], where, skipping=skipping) for skipping in (False, True)
    )
    assert sorted(narrow.to_arrow()["n"].to_pylist()) == sorted(whole.to_arrow()["n"].to_pylist())
    assert narrow.explain().files_read == files


def test_a_delete_of_whole_partitions_reads_no_rows(table: deltaic.DeltaTable) -> None:
    metrics = table.delete("year(day) = 2024")
    assert (metrics["num_removed_files"], metrics["num_added_files"]) == (2, 0)
    assert sorted(table.scan(["n"]).to_arrow()["n"].to_pylist()) == [0, 3, 4]


def test_a_partition_that_comes_meanwhile_is_a_conflict(tmp_path: Path) -> None:
    properties = {"delta.isolationLevel": "Serializable"}
    stale = deltaic.write(
        tmp_path / "t", pa.Table.from_pylist(ROWS, SCHEMA), partition_by="day", properties=properties
    )
    later = [{**ROWS[0], "day": dt.date(2024, 12, 24), "n": 9}]
    deltaic.write(tmp_path / "t", pa.Table.from_pylist(later, SCHEMA), mode="append")
    with pytest.raises(ConcurrentAppendException):
        stale.delete("year(day) = 2024")
    stale.refresh()
    stale.delete("year(day) = 2024")
    assert sorted(stale.scan(["n"]).to_arrow()["n"].to_pylist()) == [0, 3, 4]


def test_what_fails_is_left_to_the_rows(table: deltaic.DeltaTable) -> None:
    with pytest.raises(DeltaError, match=r"[Dd]ivision by zero|DIVIDE_BY_ZERO"):
        table.scan(["n"], "1 / cost > 0").to_arrow()


def test_a_date_after_the_years_of_python_is_left_to_the_rows(tmp_path: Path) -> None:
    days = pa.array([0, 4_000_000], pa.int32()).cast(pa.date32())
    table = deltaic.write(tmp_path, pa.table({"day": days, "n": [1, 2]}), partition_by="day")
    rows = table.scan(["n"], "year(day) > 9999")
    assert rows.to_arrow()["n"].to_pylist() == [2]


def test_many_partitions_are_left_to_the_rows(
    table: deltaic.DeltaTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    for limit in ("MOST_EVALUATED", "MOST_IN_PREDICATE"):
        with monkeypatch.context() as patched:
            patched.setattr(partition_functions, limit, 1)
            rows = scan(table._snapshot, LocalEngine(), ["n"], "year(day) = 2024")
            assert sorted(rows.to_arrow()["n"].to_pylist()) == [1, 2, 5]
            assert rows.explain().evaluated == ("year(day) = 2024",)
