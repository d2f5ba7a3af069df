"""Adds to a table what its Spark session sets: the engine, stores, options of commits, default properties.
Without a session (None), the embedded engine does the work and nothing is added."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deltaic.commands.create import TableOptions
    from deltaic.engine.engine import Engine
    from deltaic.log.snapshot import Snapshot
    from deltaic.options import CommitOptions
    from deltaic.spark_sql.expression import TablesOf


def engine_of(spark: Any | None, tables: TablesOf | None = None) -> Engine:
    """`tables`: opens those that subqueries in expressions name, for the embedded engine; Spark's does
    without subqueries."""
    if spark is not None:
        from deltaic.engine.spark.engine import engine_of as engine_on_spark

        return engine_on_spark(spark)
    from deltaic.engine.duckdb.engine import LocalEngine

    return LocalEngine(tables=tables)


def session_of(data: Any) -> Any | None:
    """The session of a Spark DataFrame, None for any other data."""
    return data.sparkSession if type(data).__module__.startswith("pyspark.sql.") and hasattr(data, "sparkSession") else None


def stores_of(spark: Any | None) -> AbstractContextManager[None]:
    """While it is entered, tables are reached as the session's settings say."""
    if spark is None:
        return nullcontext()
    from deltaic.engine.spark.stores import opening

    return opening(spark)


def commit_of(spark: Any | None, given: CommitOptions | None) -> CommitOptions | None:
    """The options of a commit, with the metadata that the session sets for all commits."""
    if spark is None:
        return given
    from deltaic.engine.spark.settings import commit_options

    return commit_options(spark, given)


def committing(spark: Any | None, given: CommitOptions | None) -> AbstractContextManager[CommitOptions | None]:
    """The options of a command that writes or changes rows, with those of its session, for as long as it
    runs."""
    if spark is None:
        return nullcontext(given)
    from deltaic.engine.spark.settings import committing as committing_on_spark

    return committing_on_spark(spark, given)


def with_default_properties(spark: Any | None, wanted: TableOptions) -> TableOptions:
    """The definition of a new table, with the session's default properties."""
    if spark is None:
        return wanted
    from deltaic.engine.spark.settings import table_properties

    return replace(wanted, properties=table_properties(spark, wanted.properties))


def refresh_cached(spark: Any | None, snapshot: Snapshot) -> None:
    """Lets what the session has cached of the table be read anew, after a commit."""
    if spark is not None:
        from deltaic.engine.spark.cached_rows import refresh_cached as refresh_on_spark

        refresh_on_spark(spark, snapshot.location)
