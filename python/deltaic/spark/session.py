"""Sessions that know the formats "delta" and "deltaic"."""

from __future__ import annotations

from typing import Any, Literal

from deltaic.errors import InvalidArgumentError, InvalidTypeError
from deltaic.spark import formats, functions, statements

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
"""Whether Python data sources are told of filters: off in Spark up to 4.3, which tells ours nothing then."""


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
    spark.conf.set(PUSHDOWN, "true")
    if sql:
        statements.install(spark)
    else:
        statements.uninstall(spark)


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
