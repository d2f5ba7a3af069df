"""Conditions of thousands of ORs and ANDs in commands on Spark; `tests/sql/test_long_conditions.py` has the
same for the embedded engine."""

from __future__ import annotations

from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltaic
import deltaic.spark
from deltaic.engine.spark.engine import SETTING
from deltaic.errors import InvalidArgumentError
from deltaic.spark.tables import DeltaTable

pytest.importorskip("pyspark")

NUMBERS = range(10, 3010)
ROWS = pa.table({"id": [1, 2, 3, 4], "p": pa.array([1, 1, 2, 2], pa.int32()), "s": ["a", "b", "c", "d"]})


def either(column: str) -> str:
    return " OR ".join(f"{column} = {number}" for number in NUMBERS)


EVERY = " AND ".join(f"id <> {number}" for number in NUMBERS)


@pytest.fixture(params=["auto", "never"])
def session(spark: Any, request: pytest.FixtureRequest) -> Any:
    """One that reads through Spark's own interfaces, and one that reads by public ones alone."""
    own = spark.newSession()
    setattr(own, SETTING, request.param)
    return own


def test_long_conditions(session: Any, tmp_path: Path) -> None:
    made = deltaic.write(
        tmp_path / "t", ROWS, partition_by="p", properties={"delta.enableDeletionVectors": True}
    )
    table = deltaic.DeltaTable(made.location, spark=session)
    assert table.delete(f"{either('id')} OR id = 2")["num_deleted_rows"] == 1
    assert table.update({"s": "'y'"}, f"{EVERY} AND id = 4")["num_updated_rows"] == 1
    table.optimize.compact(where=f"{either('p')} OR p = 1")
    new = session.createDataFrame([(10, 1, "new")], "id long, p int, s string")
    deltaic.spark.write(new, made.location, mode="overwrite", where=f"{either('id')} OR id = 1")
    rows = deltaic.DeltaTable(made.location).scan().to_arrow().sort_by("id").to_pylist()
    assert [(row["id"], row["s"]) for row in rows] == [(3, "c"), (4, "y"), (10, "new")]


def test_long_conditions_of_merge(session: Any, tmp_path: Path) -> None:
    made = deltaic.write(tmp_path / "t", ROWS)
    merge = deltaic.DeltaTable(made.location, spark=session).merge(
        ROWS, f"t.id = s.id AND ({either('t.id')} OR t.p = 1)"
    )
    done = merge.when_matched_delete("t.id = 2").when_matched_update({"s": "'m'"}).execute()
    assert (done["num_target_rows_deleted"], done["num_target_rows_updated"]) == (1, 1)


def test_long_chains_of_columns(spark: Any, tmp_path: Path) -> None:
    """Python makes `a | b | c | …` a tree as deep as it is long, in which Spark's own recursions end at some
    hundred levels."""
    from pyspark.sql import functions as F

    made = deltaic.write(tmp_path / "t", ROWS)
    table = DeltaTable.forPath(spark, made.location)
    chain = reduce(
        lambda left, right: left | right, [F.col("id") == number for number in (2, *NUMBERS[:200])]
    )
    table.delete(chain & (F.col("s") == "b"))
    chain = reduce(lambda left, right: left & right, [F.col("id") != number for number in NUMBERS[:200]])
    table.update(chain & (F.col("id") == 3), {"s": "'y'"})
    rows = deltaic.DeltaTable(made.location).scan().to_arrow().sort_by("id").to_pylist()
    assert [(row["id"], row["s"]) for row in rows] == [(1, "a"), (3, "y"), (4, "d")]


def test_an_expression_too_deep_for_spark_is_named(spark: Any, tmp_path: Path) -> None:
    made = deltaic.write(tmp_path / "t", ROWS)
    table = deltaic.DeltaTable(made.location, spark=spark)
    deep = "id = 1"
    for number in range(1_000):
        deep = f"({deep} {'AND' if number % 2 else 'OR'} id <> {number})"
    with pytest.raises(InvalidArgumentError, match=r"nested too deeply|too complex"):
        table.delete(deep)
    assert deltaic.DeltaTable(made.location).scan().count() == 4
