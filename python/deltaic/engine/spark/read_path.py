"""The read path of a session: native (Spark's driver interfaces by py4j) or public (PySpark's public
interfaces alone). Both return the same rows.

The native path is tried first. If the JVM does not answer as the supported versions of Spark do, the session
uses the public path from then on. Only planning is tried so. A job that returns rows to the user is never run
twice.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any, Literal, TypeVar

from deltaic.engine.spark.native.session import has_jvm
from deltaic.errors import DeltaError

Native = Literal["auto", "never"]
T = TypeVar("T")
log = logging.getLogger("deltaic.spark")


class ReadPath:
    """The read path of one session. `is_native`: True for the native path. `reason`: why the public path is
    used; None on the native path, and if the argument `native` is "never"."""

    def __init__(self, spark: Any, native: Native) -> None:
        self.is_native = native == "auto" and has_jvm(spark)
        self.reason: str | None = None
        self._lock = threading.Lock()
        if native == "auto" and not self.is_native:
            self.reason = "the session has no JVM to talk to (Spark Connect)"
            log.info("Spark is used by its public interfaces alone: %s", self.reason)

    def planned(self, what: str, native: Callable[[], T], public: Callable[[], T]) -> T:
        """Returns the result of `native`, or on the public path that of `public`. If `native` shows that the
        JVM does not answer as expected, the session leaves the native path. `what`: name of the step in the
        log."""
        if self.is_native:
            try:
                return native()
            except DeltaError:
                raise  # the table or an argument is wrong: the public path would raise the same error
            except Exception as error:
                if not is_unexpected(error):
                    raise
                self._leave(what, error)
        return public()

    def _leave(self, what: str, error: Exception) -> None:
        with self._lock:
            if not self.is_native:
                return
            self.is_native = False
            first = str(error).strip().split("\n")[0][:300]
            self.reason = f"{what}: {type(error).__name__}: {first}"
        log.warning(
            "Spark's interfaces in the JVM did not answer as expected, its public ones are used from now"
            " on: %s",
            self.reason,
        )
        log.debug("what the JVM answered", exc_info=error)


_USUAL = ("java.lang.OutOfMemoryError", "java.lang.StackOverflowError", "java.lang.InterruptedException")
"""Java errors that do not mean that a class or method of Spark has changed."""


def is_unexpected(error: Exception) -> bool:
    """True if an error shows that the JVM's interfaces differ from the supported ones: a class, method or
    field is missing or has another form. False for an error with a condition of Spark (a failed query), for a
    JVM that has ended, and for an error of deltaic that was raised in a call from the JVM."""
    if isinstance(error, (AttributeError, TypeError)):
        return True
    if (kind := _java_class(error)) is not None:
        of_deltaic = kind.startswith("py4j.") and "deltaic.errors." in str(error)
        return kind.startswith(("java.lang.", "scala.", "py4j.")) and kind not in _USUAL and not of_deltaic
    from pyspark.errors import PySparkException

    if isinstance(error, PySparkException):
        condition = error.getCondition()
        return condition is None or condition.startswith("INTERNAL_ERROR")
    return (
        any(each.__name__ == "Py4JError" for each in type(error).__mro__)
        and type(error).__name__ != "Py4JNetworkError"
    )


def _java_class(error: Exception) -> str | None:
    """Returns the name of the Java exception's class; None if the error has no Java exception, or PySpark has
    converted it already."""
    exception = getattr(error, "java_exception", None)
    return None if exception is None else str(exception.getClass().getName())
