"""DataFrames of tables, and tables of DataFrames."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from deltaic import table
from deltaic.engine.spark.stores import opening
from deltaic.errors import InvalidArgumentError, InvalidTypeError
from deltaic.relation.literal import lit
from deltaic.spark.options import travelled
from deltaic.spark.session_tables import moment_of
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

    `path` may say the version or time itself, as `path@v3` or `path@yyyyMMddHHmmssSSS` (in the time zone of the session).

    `columns`: names, nested ones dotted. `where`: a condition in Spark's SQL. Raises as `deltaic.DeltaTable` and its `scan`.
    """
    path, version, timestamp = _pinned(spark, path, version, timestamp, storage_options or {})
    opened = table.DeltaTable(path, version=version, timestamp=timestamp, storage_options=storage_options, spark=spark)
    frame = opened.scan(columns, where).to_spark()
    whole = version is None and timestamp is None and columns is None and where is None
    return watched(spark, frame, opened.location) if whole else frame


def _pinned(
    spark: Any, path: Path, version: int | None, timestamp: datetime | str | None, storage_options: Mapping[str, str]
) -> tuple[Path, int | None, datetime | str | None]:
    """The path without the moment that it says, and the moment."""
    if not isinstance(path, (str, os.PathLike)) or "@" not in (text := os.fspath(path)):
        return path, version, timestamp
    with opening(spark):
        inner, its_version, its_time = travelled(text, storage_options)
    if its_version is None and its_time is None:
        return path, version, timestamp
    if version is not None or timestamp is not None:
        raise InvalidArgumentError("a moment in the path and another one", found=text, expected="one of them")
    return inner, its_version, None if its_time is None else moment_of(spark, lit(its_time))


def write(df: Any, path: Path | table.DeltaTable, **options: Any) -> None:
    """Writes a DataFrame by its session, as one commit. `options`: those of `deltaic.write`."""
    if not hasattr(df, "sparkSession"):
        raise InvalidTypeError("a DataFrame of Spark is expected", found=type(df).__name__)
    table.write(path, df, **options)
