"""Rows of DataFrames that a session has cached. Those of a table are dropped after a commit to it, as Spark
does for its own tables."""

from __future__ import annotations

from typing import Any

from deltaic.engine.spark.native.session import caches_rows, has_jvm
from deltaic.engine.spark.read_path import log


def refresh_cached(spark: Any, location: str) -> None:
    """Drops the cached rows of DataFrames that follow the table at a location. The next query over them
    caches them again. An error is only logged, because the commit has succeeded."""
    if not has_jvm(spark):
        return
    try:
        if caches_rows(spark):
            spark.catalog.refreshByPath(location)
    except Exception as error:
        log.warning(
            "cached rows of %s may be those of an older version: %s", location, str(error).split("\n")[0]
        )


def forget_cached(spark: Any, name: str) -> None:
    """Drops the cached rows of a table that is dropped, as Spark does: a new table of its name would be read
    from them. An error is only logged, because a table that cannot be read can be dropped, too."""
    if not has_jvm(spark) or not caches_rows(spark):
        return
    try:
        spark.catalog.uncacheTable(name)
    except Exception as error:
        log.debug("cached rows of %s were not looked up: %s", name, str(error).split("\n")[0])


def is_cached(frame: Any) -> bool:
    """True if the user has cached the rows of a DataFrame."""
    level = frame.storageLevel
    return bool(level.useMemory or level.useDisk or level.useOffHeap)
