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
    """Returns the engine of a session. `tables`: opens the tables that subqueries in expressions name, for
    the embedded engine."""
    if spark is not None:
        from deltaic.engine.spark.engine import engine_of as engine_on_spark

        return engine_on_spark(spark)
    from deltaic.engine.duckdb.engine import LocalEngine

    return LocalEngine(tables=tables)


def session_of(data: Any) -> Any | None:
    """Returns the session of a Spark DataFrame; None for any other data."""
    return (
        data.sparkSession
        if type(data).__module__.startswith("pyspark.sql.") and hasattr(data, "sparkSession")
        else None
    )


def stores_of(spark: Any | None) -> AbstractContextManager[None]:
    """Opens stores with the session's settings inside the block."""
    if spark is None:
        return nullcontext()
    from deltaic.engine.spark.stores import opening

    return opening(spark)


def commit_of(spark: Any | None, given: CommitOptions | None) -> CommitOptions | None:
    """Returns the options of a commit, with the metadata that the session sets for all commits."""
    if spark is None:
        return given
    from deltaic.engine.spark.settings import commit_options

    return commit_options(spark, given)


def committing(
    spark: Any | None, given: CommitOptions | None
) -> AbstractContextManager[CommitOptions | None]:
    """Yields the options of the commit of a command that writes or changes rows, with those of its
    session."""
    if spark is None:
        return nullcontext(given)
    from deltaic.engine.spark.settings import committing as committing_on_spark

    return committing_on_spark(spark, given)


def with_default_properties(spark: Any | None, wanted: TableOptions) -> TableOptions:
    """Returns the definition of a new table, with the session's default properties."""
    if spark is None:
        return wanted
    from deltaic.engine.spark.settings import table_properties

    return replace(wanted, properties=table_properties(spark, wanted.properties))


def refresh_cached(spark: Any | None, snapshot: Snapshot) -> None:
    """Makes the session compute cached rows of the table again, after a commit."""
    if spark is not None:
        from deltaic.engine.spark.cached_rows import refresh_cached as refresh_on_spark

        refresh_on_spark(spark, snapshot.location)
