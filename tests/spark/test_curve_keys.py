"""Keys of the Z-order curve that Spark computes equal those of the library's own function; partitions are
balanced and in order."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import deltaic
from deltaic import DeltaTable, _core
from deltaic.engine.spark.cluster import NATIVE_SETTING, SMALLEST_SETTING
from deltaic.engine.spark.engine import engine_of
from deltaic.engine.spark.native import curve

ROWS = 5000
COLUMNS = {
    "whole": "CAST(id % 97 AS INT)",
    "holes": "if(id % 13 = 0, NULL, CAST(id * 7919 % 1000003 AS DOUBLE) / 3)",
    "odd": "if(id % 5 = 0, -0.0D, if(id % 7 = 0, double('NaN'), if(id % 11 = 0, 0.0D, (id - 2000) * 1.5D)))",
    "narrow": "CAST(-id % 100 AS FLOAT)",
    "moment": "timestamp_micros(id * 123456789 % 1000000007 - 500000000)",
    "day": "date_add(DATE'1960-01-01', CAST(id * 31 % 20000 AS INT))",
    "same": "7L",
    "none": "CAST(NULL AS BIGINT)",
    "text": "CAST(id AS STRING)",
}


def frame(spark: Any) -> Any:
    return spark.range(ROWS).selectExpr(*(f"{text} AS {name}" for name, text in COLUMNS.items()))


@pytest.mark.parametrize("generated", ["true", "false"])
@pytest.mark.parametrize(
    "columns", [["whole", "moment"], ["holes", "odd", "narrow"], ["day", "same", "none", "holes", "whole"]]
)
def test_keys_are_those_of_the_library(spark: Any, columns: list[str], generated: str) -> None:
    rows = frame(spark).select(*columns)
    table = rows.toArrow()
    bounds = _core.RangeBounds.sample(table.to_reader(), columns, ranges=300, sample_size=2000)
    expected = _core.curve_keys(table.to_reader(), bounds, "zorder").read_all()["__deltaic_key"]
    found = curve.key_column(engine_of(spark).jvm, columns, bounds.boundaries)
    assert found is not None
    spark.conf.set("spark.sql.codegen.wholeStage", generated)
    try:
        assert rows.select(found[0].alias("key")).toArrow()["key"].to_pylist() == expected.to_pylist()
    finally:
        spark.conf.unset("spark.sql.codegen.wholeStage")
    assert expected.to_numpy().max() < 1 << found[1]


def test_types_that_java_orders_in_its_own_way_have_no_such_key(spark: Any) -> None:
    bounds = [pa.array(["a", "b"]), pa.array([1, 2], pa.int64())]
    assert curve.key_column(engine_of(spark).jvm, ["text", "same"], bounds) is None


@pytest.mark.parametrize("noise", [True, False])
def test_partitions_are_ranges_of_about_equal_size(spark: Any, noise: bool) -> None:
    from pyspark.sql import functions as F

    keyed = spark.range(8000).select(
        F.when(F.col("id") % 10 == 0, F.col("id")).otherwise(F.lit(5)).cast("long").alias("key")
    )
    keys = keyed.toArrow()["key"].to_numpy()
    spread = curve.spread(engine_of(spark).jvm, keyed, "key", 20, keys, 4, noise=noise)
    groups = spread.groupBy(F.spark_partition_id().alias("part")).agg(
        F.count("key"), F.min("key"), F.max("key")
    )
    found = sorted(tuple(row) for row in groups.collect())
    assert sum(count for _, count, _, _ in found) == 8000
    assert all(before[3] <= after[2] for before, after in itertools.pairwise(found))
    if noise:
        assert len(found) == 4
        assert max(count for _, count, _, _ in found) <= 1.2 * min(count for _, count, _, _ in found)


@pytest.mark.parametrize("native", ["true", "false"])
def test_a_table_along_the_curve_in_several_files(tmp_path: Path, spark: Any, native: str) -> None:
    rng = np.random.default_rng(3)
    data = pa.table({"id": np.arange(20_000), "x": rng.integers(0, 1000, 20_000), "y": rng.random(20_000)})
    deltaic.write(tmp_path / "t", data)
    table = DeltaTable(tmp_path / "t", spark=spark)
    spark.conf.set(SMALLEST_SETTING, 1000)
    spark.conf.set(NATIVE_SETTING, native)
    try:
        metrics = table.optimize.z_order(["x", "y"])
    finally:
        spark.conf.unset(SMALLEST_SETTING)
        spark.conf.unset(NATIVE_SETTING)
    assert metrics["num_files_added"] == spark.sparkContext.defaultParallelism
    assert table.scan().to_arrow().sort_by("id").equals(data)
    counts = table.files().to_arrow()["num_records"].to_pylist()
    assert max(counts) <= 2 * min(counts)
    # The first column leads: each file has its own half of it.
    selected = table.files(where="x < 10").to_arrow().num_rows
    assert selected < len(counts)
