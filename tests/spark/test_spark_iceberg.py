"""Converted Iceberg tables on Spark: columns by ids, deleted rows, generated partitions."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyiceberg")

from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import DayTransform
from pyiceberg.types import IntegerType, LongType, NestedField, StringType, StructType, TimestamptzType

from deltaic.spark import sql
from deltaic.spark.tables import DeltaTable
from iceberg_tables import Delete, catalog, folder_of, rows, with_deletes, with_foreign_file


def test_converted_tables(spark: Any, tmp_path: Path) -> None:
    fields = [
        NestedField(1, "id", IntegerType()),
        NestedField(2, "ts", TimestamptzType()),
        NestedField(3, "old", StringType()),
        NestedField(4, "gone", StringType()),
    ]
    spec = PartitionSpec(PartitionField(2, 1000, DayTransform(), "day"))
    table = catalog(tmp_path).create_table("n.t", Schema(*fields), partition_spec=spec)
    moments = [datetime(2026, 1, 1 + at % 2, 3, tzinfo=timezone.utc) for at in range(10)]
    kinds = pa.schema(
        [("id", pa.int32()), ("ts", pa.timestamp("us", "UTC")), ("old", pa.string()), ("gone", pa.string())]
    )
    data = {"id": range(10), "ts": moments, "old": [f"t{at}" for at in range(10)], "gone": ["x"] * 10}
    table.append(pa.table(data, kinds))
    with table.update_schema() as change:
        change.rename_column("old", "new").delete_column("gone").update_column("id", LongType())
    with table.update_schema() as change:
        change.add_column("gone", LongType())
    first = next(
        each["file_path"]
        for each in table.inspect.data_files().to_pylist()
        if "2026-01-01" in each["file_path"]
    )
    deleted = with_deletes(table, [Delete({first: [0, 2]})])
    sql(spark, f"CONVERT TO DELTA iceberg.`{folder_of(table)}`")
    converted = DeltaTable.convertToDelta(spark, f"iceberg.`{folder_of(table)}`")  # it is one already
    wanted = sorted((each["id"], each["new"], each["gone"]) for each in rows(deleted))
    frame = converted.toDF()
    assert (
        sorted((row["id"], row["new"], row["gone"]) for row in frame.select("id", "new", "gone").collect())
        == wanted
    )
    assert frame.where("day = DATE '2026-01-02'").count() == 5
    converted.delete("id = 1")
    spark.sql(
        "SELECT 2L * 1099511627776 AS id, TIMESTAMP '2026-01-02T05:00:00Z' AS ts, 'n' AS new, 7L AS gone"
    ).write.format("delta").mode("append").save(str(folder_of(table)))
    after = converted.toDF().where("day = DATE '2026-01-02'").select("id", "new", "gone").collect()
    assert sorted(row["id"] for row in after) == [3, 5, 7, 9, 2 * 2**40]


def test_files_without_field_ids(spark: Any, tmp_path: Path) -> None:
    item = StructType(NestedField(3, "x", LongType()))
    fields = [
        NestedField(1, "id", LongType()),
        NestedField(2, "old", StringType()),
        NestedField(4, "s", item),
    ]
    table = catalog(tmp_path).create_table("n.t", Schema(*fields))
    with_foreign_file(table, [{"id": 1, "old": "a", "s": {"x": 7}}])
    with table.update_schema() as change:
        change.rename_column("old", "new").rename_column("s.x", "y")
    frame = DeltaTable.convertToDelta(spark, f"iceberg.`{folder_of(table)}`").toDF()
    assert [(row["id"], row["new"], row["s"]["y"]) for row in frame.collect()] == [(1, "a", 7)]
    assert frame.where("new = 'a' AND s.y = 7").count() == 1
    sql(spark, f"CREATE TABLE delta.`{tmp_path}/copy` CLONE iceberg.`{folder_of(table)}`")
    assert DeltaTable.forPath(spark, f"{tmp_path}/copy").toDF().collect() == frame.collect()
