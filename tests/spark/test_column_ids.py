"""Column mapping by ids: nested columns keep their values through every command in which Spark writes files,
on both ways of reading."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deltaic
from deltaic import DeltaTable
from deltaic.engine.spark.engine import SETTING
from deltaic.engine.spark.engine_session import ROWS_SETTING as DRIVER_ROWS
from deltaic.engine.spark.many_rows import SETTING as DRIVER_ROW_IDS

DDL = """id bigint, p int, st struct<a: bigint, in: struct<b: string, c: array<int>>>,
ls array<struct<x: bigint, y: string>>,
mp map<string, struct<v: bigint>>, mk map<struct<k: int>, string>"""


def data(start: int, stop: int) -> pa.Table:
    numbers = range(start, stop)
    inner = pa.struct([("b", pa.string()), ("c", pa.list_(pa.int32()))])
    items = pa.list_(pa.struct([("x", pa.int64()), ("y", pa.string())]))
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "p": pa.array([i % 2 for i in numbers], pa.int32()),
            "st": pa.array(
                [None if i % 13 == 0 else {"a": i, "in": {"b": f"b{i}", "c": [i, None]}} for i in numbers],
                pa.struct([("a", pa.int64()), ("in", inner)]),
            ),
            "ls": pa.array([[{"x": i, "y": "y"}, None] if i % 5 else None for i in numbers], items),
            "mp": pa.array(
                [[(f"k{i}", {"v": i})] for i in numbers], pa.map_(pa.string(), pa.struct([("v", pa.int64())]))
            ),
            "mk": pa.array(
                [[({"k": i}, "z")] for i in numbers], pa.map_(pa.struct([("k", pa.int32())]), pa.string())
            ),
        }
    )


def merged(table: DeltaTable) -> None:
    source = data(90, 110)
    table.merge(source, "t.id = s.id").when_matched_update(
        {"st": "s.st", "p": "7"}, "s.id % 2 = 0"
    ).when_not_matched_insert_all().execute()


STEPS: dict[str, Callable[[DeltaTable], Any]] = {
    "append": lambda table: deltaic.write(table, data(1000, 1040), mode="append"),
    "delete": lambda table: table.delete("id % 10 = 3 and st.a > 10"),
    "update": lambda table: table.update({"p": "p + 2"}, "ls[0].x % 10 = 4"),
    "merge": merged,
    "replace where": lambda table: deltaic.write(
        table, data(20, 30), mode="overwrite", where="id >= 20 and id < 30"
    ),
    "zorder": lambda table: table.optimize.z_order(["id", "st.a"]),
    "delete more": lambda table: table.delete("st.in.b = 'b7'"),
    "purge": lambda table: table.optimize.purge(),
    "compact": lambda table: table.optimize.compact(),
}


@pytest.mark.parametrize(("native", "vectors"), [("auto", True), ("auto", False), ("never", True)])
def test_every_command_keeps_nested_values(tmp_path: Path, spark: Any, native: str, vectors: bool) -> None:
    # The driver writes no rows and collects no row ids: tasks do, for any number of rows.
    tasks = spark.newSession()
    setattr(tasks, SETTING, native)
    for setting, value in ((DRIVER_ROWS, 0), (DRIVER_ROW_IDS, 0), ("spark.sql.shuffle.partitions", 1)):
        tasks.conf.set(setting, value)
    properties = {"delta.columnMapping.mode": "id", "delta.enableDeletionVectors": vectors}
    for name, mapping in (
        ("spark", properties),
        ("oracle", {**properties, "delta.columnMapping.mode": "none"}),
    ):
        DeltaTable.create(tmp_path / name, DDL, partition_by=["p"], properties=mapping)
    table, oracle = DeltaTable(tmp_path / "spark", spark=tasks), DeltaTable(tmp_path / "oracle")
    for each in (table, oracle):
        deltaic.write(each, data(0, 100), mode="append")
    for name, step in STEPS.items():
        step(table), step(oracle)
        expected = rows(oracle.scan().to_arrow())
        assert rows(DeltaTable(tmp_path / "spark").scan().to_arrow()) == expected, name
    assert rows(table.scan().to_arrow()) == expected
    frame = table.scan().to_spark()
    assert frame.where("st.in.b = 'b8'").count() == oracle.scan(where="st.in.b = 'b8'").count() == 1
    for location in table.files().to_arrow()["location"].to_pylist():
        assert missing_ids(pq.ParquetFile(location).schema_arrow) == [], location


def rows(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


def missing_ids(fields: Any, place: str = "") -> list[str]:
    """Returns the columns and fields of structs, however deep, that have no id in a Parquet file."""
    found = []
    for field in fields:
        name = f"{place}.{field.name}"
        if b"PARQUET:field_id" not in (field.metadata or {}):
            found.append(name)
        found += missing_inside(field.type, name)
    return found


def missing_inside(data_type: Any, place: str) -> list[str]:
    if pa.types.is_struct(data_type):
        return missing_ids(data_type, place)
    if pa.types.is_map(data_type):
        return missing_inside(data_type.key_type, place) + missing_inside(data_type.item_type, place)
    return missing_inside(data_type.value_type, place) if pa.types.is_list(data_type) else []
