"""Makes errors of deltaic instances of py4j's Py4JJavaError. Jobs of delta-spark catch an exception of the
JVM as a Py4JJavaError if PySpark has no class for it."""

from __future__ import annotations

from typing import Any, cast


class _JavaAttributes:
    """The attributes of a Py4JJavaError, whose constructor is not called for errors of deltaic."""

    cause = None

    @property
    def errmsg(self) -> str:
        return str(self)

    @property
    def java_exception(self) -> Any:
        """A RuntimeException of the JVM with the error's text."""
        from pyspark import SparkContext

        return cast(Any, SparkContext)._jvm.java.lang.RuntimeException(str(self))


def java_error_bases() -> tuple[type, ...]:
    """Returns the base classes that make a class a Py4JJavaError; none if the process has no JVM, as a client
    of Spark Connect."""
    try:
        from py4j.protocol import Py4JJavaError
        from pyspark import SparkContext
    except ImportError:  # pyspark-client
        return ()
    if cast(Any, SparkContext)._active_spark_context is None:
        return ()
    return _JavaAttributes, Py4JJavaError
