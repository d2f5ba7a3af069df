"""Converts the result of a command, a few rows on the driver, to a DataFrame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from deltaic.rows.rows import Rows


def frame_of(spark: Any, rows: Rows) -> DataFrame:
    """Returns the rows as a DataFrame with the same columns and types. The result of a command that returns
    nothing has neither columns nor rows."""
    from deltaic.spark.portable.arrow_values import spark_schema

    table = rows.to_arrow()
    schema = spark_schema(rows.schema)
    if not table.num_rows:
        return spark.createDataFrame([], schema)
    return spark.createDataFrame(table, schema)
