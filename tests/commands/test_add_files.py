"""add_files: Parquet files of another engine become part of the table as they are."""

from __future__ import annotations

import json
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deltaic
from deltaic import AddFile, CommitOptions, DeltaTable
from deltaic.errors import InvalidArgumentError, SchemaMismatchError


def foreign(folder: Path, name: str, *values: int, **columns: Any) -> str:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"id": pa.array(values, pa.int64()), **columns}), folder / name)
    return name


def ids(table: DeltaTable) -> list[int]:
    return sorted(table.scan(["id"]).to_arrow()["id"].to_pylist())


def test_a_path_alone(tmp_path: Path) -> None:
    table = DeltaTable.create(tmp_path, "id bigint")
    metrics = table.add_files(
        [foreign(tmp_path, "a.parquet", 1, 2), foreign(tmp_path, "sub/b c%20.parquet", 3)]
    )
    assert metrics["num_files"] == 2
    assert (table.version, ids(table)) == (1, [1, 2, 3])
    listed = table.files().to_arrow().to_pylist()
    assert [(row["path"], row["num_records"]) for row in listed] == [
        ("a.parquet", 2),
        ("sub/b c%20.parquet", 1),
    ]
    assert listed[0]["size"] == (tmp_path / "a.parquet").stat().st_size
    assert (listed[0]["min_values"], listed[0]["max_values"], listed[0]["null_count"]) == (
        {"id": 1},
        {"id": 2},
        {"id": 0},
    )
    assert table.history()[0]["operation"] == "WRITE"
    assert ids(DeltaTable(tmp_path)) == [1, 2, 3]


def test_partition_values_from_folders_and_from_the_caller(tmp_path: Path) -> None:
    table = DeltaTable.create(tmp_path, "id bigint, day date, city string", partition_by=["day", "city"])
    table.add_files(
        [
            foreign(tmp_path, "day=2024-01-02/city=New%20York/a.parquet", 1),
            foreign(tmp_path, "day=__HIVE_DEFAULT_PARTITION__/city=x/b.parquet", 2),
        ]
    )
    plain = foreign(tmp_path, "plain.parquet", 3)
    size = (tmp_path / plain).stat().st_size
    table.add_files([AddFile(plain, size=size, partition_values={"DAY": date(2024, 5, 6), "city": None})])
    assert sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"]) == [
        {"id": 1, "day": date(2024, 1, 2), "city": "New York"},
        {"id": 2, "day": None, "city": "x"},
        {"id": 3, "day": date(2024, 5, 6), "city": None},
    ]


def test_partition_values_of_early_years_and_powers_of_ten(tmp_path: Path) -> None:
    table = DeltaTable.create(
        tmp_path, "id bigint, at timestamp_ntz, price decimal(5,0)", partition_by=["at", "price"]
    )
    plain = foreign(tmp_path, "plain.parquet", 1)
    values = {"at": datetime(5, 6, 7), "price": Decimal("1E+2")}
    table.add_files([AddFile(plain, size=(tmp_path / plain).stat().st_size, partition_values=values)])
    assert table.scan(where="at < '0005-06-08 00:00:00'").to_pylist() == [{"id": 1, **values}]


def test_given_statistics_are_taken_as_they_are(tmp_path: Path) -> None:
    table = DeltaTable.create(tmp_path, "id bigint")
    name = foreign(tmp_path, "a.parquet", 1, 2)
    stats = {"numRecords": 2, "minValues": {"id": 0}, "maxValues": {"id": 9}, "nullCount": {"id": 0}}
    table.add_files([AddFile(name, size=(tmp_path / name).stat().st_size, modification_time=5, stats=stats)])
    (row,) = table.files().to_arrow().to_pylist()
    assert (row["min_values"], row["max_values"], row["num_records"]) == ({"id": 0}, {"id": 9}, 2)
    added = [json.loads(line) for line in (tmp_path / f"_delta_log/{1:020}.json").read_text().splitlines()][
        -1
    ]["add"]
    assert added["modificationTime"] == 5


def test_overwrite_and_remove(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path, pa.table({"id": pa.array([1], pa.int64())}))
    table.add_files([foreign(tmp_path, "a.parquet", 2)])
    metrics = table.add_files([foreign(tmp_path, "b.parquet", 3)], remove=["a.parquet"])
    assert (ids(table), metrics["num_removed_files"]) == ([1, 3], 1)
    metrics = table.add_files([foreign(tmp_path, "c.parquet", 4)], mode="overwrite")
    assert (ids(table), metrics["num_removed_files"]) == ([4], 2)
    table.add_files([foreign(tmp_path, "d.parquet", 50, 60)])
    table.add_files([foreign(tmp_path, "e.parquet", 51)], mode="overwrite", where="id >= 50")
    assert ids(table) == [4, 51]


def test_nothing_to_do_is_no_commit(tmp_path: Path) -> None:
    table = DeltaTable.create(tmp_path, "id bigint")
    table.add_files([])
    assert table.version == 0


def test_transactions_skip(tmp_path: Path) -> None:
    table = DeltaTable.create(tmp_path, "id bigint")
    name = foreign(tmp_path, "a.parquet", 1)
    for _ in range(2):
        table.add_files([name], commit=CommitOptions(transactions={"job": 1}))
    assert table.version == 1


@pytest.mark.parametrize(
    ("files", "error", "message"),
    [
        (["missing.parquet"], InvalidArgumentError, r"missing\.parquet"),
        (["a.parquet", "a.parquet"], InvalidArgumentError, "twice"),
        ([AddFile("../outside.parquet", size=1)], InvalidArgumentError, "table's folder"),
        ([AddFile("/etc/passwd", size=1)], InvalidArgumentError, "table's folder"),
        ([AddFile("a.parquet", size=1, partition_values={"month": 1})], InvalidArgumentError, "month"),
        (["wrong.parquet"], SchemaMismatchError, "id"),
    ],
)
def test_refused(tmp_path: Path, files: list[Any], error: type[Exception], message: str) -> None:
    table = DeltaTable.create(tmp_path, "id bigint")
    foreign(tmp_path, "a.parquet", 1)
    pq.write_table(pa.table({"id": ["text"]}), tmp_path / "wrong.parquet")
    with pytest.raises(error, match=message):
        table.add_files(files)
    assert DeltaTable(tmp_path).version == 0


def test_arguments_that_contradict(tmp_path: Path) -> None:
    table = DeltaTable.create(tmp_path, "id bigint, month string", partition_by="month")
    name = foreign(tmp_path, "a.parquet", 1)
    with pytest.raises(InvalidArgumentError, match="partition value is missing"):
        table.add_files([name])
    with pytest.raises(InvalidArgumentError, match="where="):
        table.add_files([name], where="id = 1")
    with pytest.raises(InvalidArgumentError, match="not a live file"):
        table.add_files([], remove=["nowhere.parquet"])
