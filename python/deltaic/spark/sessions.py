"""`enable`, `disable` and `session`, which add the formats "delta" and "deltaic" to a Spark session, and
remove them."""

from __future__ import annotations

import logging
from typing import Any, Literal

from deltaic.engine.spark.engine import enabled_as, note_disabled
from deltaic.engine.spark.native.session import can_load, has_jvm
from deltaic.engine.spark.settings import LAST_COMMIT, without_effect
from deltaic.errors import InvalidArgumentError, InvalidTypeError
from deltaic.spark import formats, frame_subqueries, functions, patches, statements

log = logging.getLogger("deltaic.spark")

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
"""Setting by which Spark passes a query's filters to Python data sources. It is off by default up to Spark
4.3."""
_CATALOG = "spark.sql.catalog.spark_catalog"
_BEFORE = "_deltaic_settings_before"
"""Attribute of an enabled session: the values of PUSHDOWN and LAST_COMMIT before `enable`, None for each that
was not set."""


def enable(spark: Any, *, sql: bool = True, native: Literal["auto", "never"] = "auto") -> None:
    """Adds the formats "delta" and "deltaic" to a Spark session, without a jar: to `spark.read`, `df.write`,
    `readStream`, `writeStream`, `df.writeTo`, `df.mergeInto` and `spark.catalog`. The functions of
    `deltaic.spark.functions` are added to SQL. A second call replaces the arguments of the first.

    `sql`: True (the default) replaces `spark.sql` by `deltaic.spark.sql`, which also runs statements on
    delta.`path` and on Delta tables by name.
    `native`: "auto" (the default) reads through Spark's internal Parquet reader if the session has a JVM of
    a supported version, else through public interfaces of PySpark. "never" always uses the public
    interfaces, for which executors need the deltaic wheel.

    The logger `deltaic.spark` warns of settings `spark.databricks.delta.…` that have no effect.

    Raises InvalidTypeError if `spark` is no SparkSession, InvalidArgumentError for another value of
    `native`, and for a session whose setting `spark.sql.catalog.spark_catalog` names a class that it cannot
    load, such as the catalog of delta-spark without its jar: every query of the session would fail.

    >>> deltaic.spark.enable(spark)
    >>> spark.read.format("delta").load("/data/flights").count()
    4
    """
    if not hasattr(spark, "createDataFrame"):
        raise InvalidTypeError("a SparkSession is expected", found=type(spark).__name__)
    if native not in ("auto", "never"):
        raise InvalidArgumentError("native", found=repr(native), expected="'auto' or 'never'")
    if has_jvm(spark) and (catalog := spark.conf.get(_CATALOG, "builtin")) != "builtin":
        _check_loadable(spark, catalog)
    formats.enable(spark, native)
    if _BEFORE not in spark.__dict__:  # Spark warns of a function that is registered again
        functions.register(spark)
    settings = spark.conf.getAll
    spark.__dict__.setdefault(_BEFORE, {name: settings.get(name) for name in (PUSHDOWN, LAST_COMMIT)})
    if names := without_effect(settings):
        log.warning("these settings of delta-spark have no effect on deltaic: %s", ", ".join(names))
    spark.conf.set(PUSHDOWN, "true")
    if sql:
        statements.install(spark)
        frame_subqueries.wrap(type(spark.range(1)))
    else:
        statements.uninstall(spark)


def _check_loadable(spark: Any, catalog: str) -> None:
    if not can_load(spark, catalog):
        raise InvalidArgumentError(
            "Spark cannot load the class of its session catalog",
            where=_CATALOG,
            found=catalog,
            expected="a session without this setting, as deltaic needs none of delta-spark's settings",
        )


def disable(spark: Any) -> None:
    """Undoes `enable`. A session that is not enabled is not changed.

    The formats "delta" and "deltaic" are then those of the Python data source, `spark.sql` does not know
    delta.`path`, the functions of `deltaic.spark.functions` are removed from SQL, and the settings
    `spark.sql.python.filterPushdown.enabled` and `spark.databricks.delta.lastCommitVersionInSession` get
    their former values. When no enabled session is left in the process, PySpark's classes get their own
    methods back. Existing DataFrames stay readable. `deltaic.spark.read`, `write`, `sql` and
    `deltaic.spark.tables` still work.

    Raises InvalidTypeError if `spark` is no SparkSession.

    >>> deltaic.spark.enable(spark)
    >>> deltaic.spark.disable(spark)
    """
    if not hasattr(spark, "createDataFrame"):
        raise InvalidTypeError("a SparkSession is expected", found=type(spark).__name__)
    if enabled_as(spark) is None:
        return
    statements.forget(spark)
    is_last = note_disabled(spark)
    if _BEFORE in spark.__dict__:
        for name, before in spark.__dict__.pop(_BEFORE).items():
            if name == PUSHDOWN and str(spark.conf.get(PUSHDOWN, "")).lower() != "true":
                continue  # the user has changed it since
            if before is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, before)
        functions.unregister(spark)
    if is_last:
        statements.uninstall(spark)
        patches.restore()


def enable_clone(spark: Any, native: Literal["auto", "never"], *, sql: bool) -> None:
    """Enables a clone of an enabled session, which already has its settings and functions."""
    formats.enable(spark, native)
    if sql:
        statements.install(spark)


def session(**conf: Any) -> Any:
    """Starts a local SparkSession, or takes the running one, enables it and returns it. A new session has one
    thread for each processor and no web interface. A running one gets the settings `conf` alone.

    `conf`: settings of Spark, with underscores in place of dots (`spark_master="local[2]"`), or with dots as
    `**{"spark.sql.shuffle.partitions": 2}`. Raises ModuleNotFoundError if PySpark is not installed, and
    InvalidArgumentError as `enable` does.

    >>> spark = deltaic.spark.session(spark_sql_shuffle_partitions=2)
    """
    try:
        from pyspark.sql import SparkSession
    except ModuleNotFoundError:
        message = "a Spark session needs PySpark, which is not installed: pip install 'deltaic[spark]'"
        raise ModuleNotFoundError(message, name="pyspark") from None

    builder = SparkSession.builder
    settings = {_setting(name): value for name, value in conf.items()}
    if SparkSession.getActiveSession() is None:
        settings = {"spark.master": "local[*]", "spark.ui.enabled": "false", **settings}
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    enable(spark)
    return spark


def _setting(name: str) -> str:
    return name if "." in name else name.replace("_", ".")
