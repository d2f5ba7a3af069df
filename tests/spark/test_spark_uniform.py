"""Iceberg metadata of tables that Spark writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyiceberg")

from pyiceberg.table import StaticTable

from deltaic import DeltaTable
from deltaic.spark import sql


def iceberg_rows(path: str) -> list[str]:
    version = (Path(path) / "metadata" / "version-hint.text").read_text()
    table = StaticTable.from_metadata(f"{path}/metadata/v{version}.metadata.json")
    assert table.properties["delta-version"] == str(DeltaTable(path).version)
    return sorted(repr(row) for row in table.scan().to_arrow().to_pylist())


def rows(path: str) -> list[str]:
    return sorted(repr(row) for row in DeltaTable(path).scan().to_arrow().to_pylist())


@pytest.mark.parametrize("version", [2, 3])
def test_commands(spark: Any, tmp_path: Path, version: int) -> None:
    path = str(tmp_path / "t")
    sql(
        spark,
        f"CREATE TABLE delta.`{path}` (id BIGINT, tags ARRAY<STRING>, day DATE) USING delta PARTITIONED BY"
        f" (day) TBLPROPERTIES ('delta.enableIcebergCompatV{version}' = 'true',"
        " 'delta.universalFormat.enabledFormats' = 'iceberg', 'delta.enableDeletionVectors' = 'false')",
    )
    frame = spark.range(200, numPartitions=2).selectExpr(
        "id",
        "array(cast(id as string), null) AS tags",
        "date_add(DATE '2026-01-01', cast(id % 3 as int)) AS day",
    )
    frame.write.format("delta").mode("append").save(path)
    assert iceberg_rows(path) == rows(path)
    sql(spark, f"DELETE FROM delta.`{path}` WHERE id % 7 = 0")
    sql(spark, f"UPDATE delta.`{path}` SET tags = array('new') WHERE id % 5 = 0")
    assert iceberg_rows(path) == rows(path)
    frame.selectExpr("id + 190 AS id", "array('m') AS tags", "day").createOrReplaceTempView("source")
    sql(
        spark,
        f"MERGE INTO delta.`{path}` AS t USING source AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN"
        " NOT MATCHED THEN INSERT *",
    )
    sql(spark, f"OPTIMIZE delta.`{path}`")
    assert iceberg_rows(path) == rows(path)
    assert len(rows(path)) > 300


def test_upgrade(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    spark.range(100).selectExpr("id", "array(id) AS list").write.format("delta").mode("append").option(
        "delta.columnMapping.mode", "name"
    ).save(path)
    sql(spark, f"DELETE FROM delta.`{path}` WHERE id < 10")
    sql(spark, f"REORG TABLE delta.`{path}` APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = 2))")
    assert iceberg_rows(path) == rows(path)
    assert len(rows(path)) == 90
