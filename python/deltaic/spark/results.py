"""Makes a DataFrame of a command's result, which is a few rows on the driver."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from deltaic.rows.rows import Rows


def frame_of(spark: Any, rows: Rows) -> DataFrame:
    """Returns the rows as a DataFrame of the same columns and types. A command without a result has no
    columns and no rows."""
    from deltaic.spark.portable.arrow_values import spark_schema

    table = rows.to_arrow()
    schema = spark_schema(rows.schema)
    if not table.num_rows:
        return spark.createDataFrame([], schema)
    return spark.createDataFrame(table, schema)
