"""Makes a DataFrame of a command's result, a few rows on the driver."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from deltaic.rows.rows import Rows


def frame_of(spark: Any, rows: Rows) -> DataFrame:
    """The rows, with their own columns and types; without columns an empty DataFrame, as from what only does something."""
    from deltaic.spark.portable.arrow_values import spark_schema

    table = rows.to_arrow()
    schema = spark_schema(rows.schema)
    if not table.num_rows:
        return spark.createDataFrame([], schema)
    return spark.createDataFrame(table, schema)
