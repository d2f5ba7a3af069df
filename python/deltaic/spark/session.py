"""Sessions that know the formats "delta" and "deltaic"."""

from __future__ import annotations

from typing import Any, Literal

from deltaic.engine.spark.engine import enabled_as, note_disabled
from deltaic.errors import InvalidArgumentError, InvalidTypeError
from deltaic.spark import formats, functions, patches, statements

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
"""Setting that gives Python data sources the filters of a query: off in Spark up to 4.3, which tells ours nothing then."""
_PUSHDOWN_BEFORE = "_deltaic_pushdown_before"
"""Attribute of an enabled session: the text of that setting before `enable`, None where it was not set."""


def enable(spark: Any, *, sql: bool = True, native: Literal["auto", "never"] = "auto") -> None:
    """Gives a session the formats "delta" and "deltaic" for `spark.read` and `df.write`, with all that DataFrameReader and
    DataFrameWriter can say, and the functions of `deltaic.spark.functions` in SQL. Called again, it changes the settings.

    `sql`: `spark.sql` knows delta.`path` too, and temporary views of tables: it is then `deltaic.spark.sql`.
    `native`: "never" reads by public interfaces alone, "auto" through Spark's own where they are there.
    """
    if not hasattr(spark, "createDataFrame"):
        raise InvalidTypeError("a SparkSession is expected", found=type(spark).__name__)
    if native not in ("auto", "never"):
        raise InvalidArgumentError("native", found=repr(native), expected="'auto' or 'never'")
    formats.enable(spark, native)
    functions.register(spark)
    spark.__dict__.setdefault(_PUSHDOWN_BEFORE, spark.conf.getAll.get(PUSHDOWN))
    spark.conf.set(PUSHDOWN, "true")
    if sql:
        statements.install(spark)
    else:
        statements.uninstall(spark)


def disable(spark: Any) -> None:
    """Undoes `enable`: the session is again as plain PySpark makes it.

    The formats "delta" and "deltaic" are then those of Spark's data sources, `spark.sql` knows no delta.`path`, the functions of
    `deltaic.spark.functions` are taken out of SQL, and the setting `spark.sql.python.filterPushdown.enabled` is what it was before.
    PySpark's classes, which all sessions of a process share, get their own methods back when no enabled session is left. DataFrames that
    were made before stay readable. `deltaic.spark.read`, `write` and `sql`, and `deltaic.spark.tables` need no enabling and go on.
    A session that is not enabled stays as it is.

    Raises InvalidTypeError for what is no SparkSession.

    >>> deltaic.spark.enable(spark)
    >>> deltaic.spark.disable(spark)
    """
    if not hasattr(spark, "createDataFrame"):
        raise InvalidTypeError("a SparkSession is expected", found=type(spark).__name__)
    if enabled_as(spark) is None:
        return
    statements.forget(spark)
    is_last = note_disabled(spark)
    if _PUSHDOWN_BEFORE in spark.__dict__:
        before = spark.__dict__.pop(_PUSHDOWN_BEFORE)
        if str(spark.conf.get(PUSHDOWN, "")).lower() == "true":
            if before is None:
                spark.conf.unset(PUSHDOWN)
            else:
                spark.conf.set(PUSHDOWN, before)
        functions.unregister(spark)
    if is_last:
        statements.uninstall(spark)
        patches.restore()


def enable_clone(spark: Any, native: Literal["auto", "never"], *, sql: bool) -> None:
    """Enables a session that has the settings and functions of an enabled one already."""
    formats.enable(spark, native)
    if sql:
        statements.install(spark)


def session(**conf: Any) -> Any:
    """A local SparkSession, enabled: as many threads as there are processors, and no web interface unless `conf` says so.

    `conf`: Spark's settings with underscores for dots, or as `**{"spark.sql.shuffle.partitions": 2}`.
    """
    from pyspark.sql import SparkSession

    builder = SparkSession.builder
    settings = {"spark.master": "local[*]", "spark.ui.enabled": "false", **{_setting(name): value for name, value in conf.items()}}
    for name, value in settings.items():
        builder = builder.config(name, value)
    made = builder.getOrCreate()
    enable(made)
    return made


def _setting(name: str) -> str:
    return name if "." in name else name.replace("_", ".")
