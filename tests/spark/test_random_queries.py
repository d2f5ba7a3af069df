"""Random queries on Spark and on the embedded engine: the embedded engine gives the same result for each
query that Spark can run.

A short run has a few queries; `DELTAIC_QUERY_EXAMPLES=20000` makes a long run.
"""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("pyspark")
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "spark_sql"))

from query_answers import answer, difference, encoded
from query_walk import Walk, tables

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

EXAMPLES = int(os.environ.get("DELTAIC_QUERY_EXAMPLES", "10"))


@pytest.fixture(scope="module")
def rows(spark: SparkSession) -> dict[str, pa.Table]:
    found = tables()
    for name, table in found.items():
        spark.createDataFrame(table).createOrReplaceTempView(name)
    return found


@settings(
    max_examples=EXAMPLES, deadline=None, derandomize=EXAMPLES < 100, suppress_health_check=list(HealthCheck)
)
@given(draw=st.randoms(use_true_random=False))
def test_spark_answers_alike(draw: random.Random, spark: SparkSession, rows: dict[str, pa.Table]) -> None:
    text = Walk(draw).query()
    try:
        frame = spark.sql(text)
        asked = {
            "columns": [[field.name, field.dataType.simpleString()] for field in frame.schema],
            "rows": encoded(frame.toArrow()),
        }
    except Exception:  # what Spark refuses has nothing to be compared with
        return
    columns, found = answer(text, rows)
    assert difference(columns, found, asked, ordered=False) == "", text
