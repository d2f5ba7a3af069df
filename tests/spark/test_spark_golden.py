"""The golden tables, read by native and public interfaces: Spark reads the same rows as the embedded
engine."""

from __future__ import annotations

from typing import Any

import pytest

from deltaic import DeltaTable
from deltaic.engine.spark.engine import SETTING
from deltaic.errors import DeltaError
from golden import GOLDEN, needs_golden


def tables() -> list[str]:
    if not GOLDEN.is_dir():
        return []
    logs = sorted(GOLDEN.rglob("_delta_log"))
    return [str(log.parent.relative_to(GOLDEN)) for log in logs]


@needs_golden
@pytest.mark.parametrize("native", ["auto", "never"], ids=["native", "portable"])
def test_rows(spark: Any, native: str) -> None:
    """One test for all: a session of its own for each would be the slower way."""
    compared, wrong = 0, []
    setattr(spark, SETTING, native)
    spark.conf.set("spark.sql.geospatial.enabled", "true")  # false by default on Spark 4.1
    try:
        for name in tables():
            try:
                expected = DeltaTable(GOLDEN / name).scan().to_arrow()
            except DeltaError:
                continue  # what one engine refuses, the other need not read
            found = DeltaTable(GOLDEN / name, spark=spark).scan().to_arrow()
            compared += 1
            if (
                sorted(map(repr, found.to_pylist())) != sorted(map(repr, expected.to_pylist()))
                or found.schema != expected.schema
            ):
                wrong.append(name)
    finally:
        delattr(spark, SETTING)
        spark.conf.unset("spark.sql.geospatial.enabled")
    assert wrong == []
    assert compared > 50
