"""DataFrames of tables, and tables of DataFrames."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from deltaic import table
from deltaic.errors import InvalidTypeError
from deltaic.spark.views import watched

Path = str | os.PathLike[str]


def read(
    spark: Any,
    path: Path,
    *,
    version: int | None = None,
    timestamp: datetime | str | None = None,
    columns: Sequence[str] | None = None,
    where: str | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Any:
    """A lazy DataFrame of the table as it is now, or was at a version or time: later commits do not change it. A temporary
    view of a whole table, at its newest version, stands for the table: statements may change it by that name.

    `columns`: names, nested ones dotted. `where`: a condition in Spark's SQL. Raises as `deltaic.DeltaTable` and its `scan`.
    """
    opened = table.DeltaTable(path, version=version, timestamp=timestamp, storage_options=storage_options, spark=spark)
    frame = opened.scan(columns, where).to_spark()
    whole = version is None and timestamp is None and columns is None and where is None
    return watched(spark, frame, opened.location) if whole else frame


def write(df: Any, path: Path | table.DeltaTable, **options: Any) -> None:
    """Writes a DataFrame by its session, as one commit. `options`: those of `deltaic.write`."""
    if not hasattr(df, "sparkSession"):
        raise InvalidTypeError("a DataFrame of Spark is expected", found=type(df).__name__)
    table.write(path, df, **options)
