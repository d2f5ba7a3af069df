"""Which way a session is served: through Spark's own driver interfaces by py4j, or by public ones alone.

The first is tried where it is there. An answer that is not what it was in the versions that are known leads to the second, for the rest of
the session: the rows are the same. Only what plans may be tried so: nothing here is around a job whose rows somebody gets.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any, Literal, TypeVar

from deltaic.errors import DeltaError

Native = Literal["auto", "never"]
T = TypeVar("T")
log = logging.getLogger("deltaic.spark")


class Ways:
    """The way of one session. `is_native`: by py4j; `reason`: why not, None where it is, or where nobody wants it."""

    def __init__(self, spark: Any, native: Native) -> None:
        self.is_native = native == "auto" and hasattr(spark, "_jsparkSession")
        self.reason: str | None = None
        self._lock = threading.Lock()
        if native == "auto" and not self.is_native:
            self.reason = "the session has no JVM to talk to (Spark Connect)"
            log.info("Spark is used by its public interfaces alone: %s", self.reason)

    def planned(self, what: str, native: Callable[[], T], public: Callable[[], T]) -> T:
        """The answer of `native`, or of `public` where the first is not to be had. `what`: for the log, what was asked."""
        if self.is_native:
            try:
                return native()
            except DeltaError:
                raise  # of the table or the arguments: the same by either way
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
        log.warning("Spark's interfaces in the JVM did not answer as expected, its public ones are used from now on: %s", self.reason)
        log.debug("what the JVM answered", exc_info=error)


_USUAL = ("java.lang.OutOfMemoryError", "java.lang.StackOverflowError", "java.lang.InterruptedException")
"""Of Java's own errors those that say nothing of its interfaces."""


def is_unexpected(error: Exception) -> bool:
    """Whether an error says that the JVM is not as we know it: a class, method or field that is not there, or has another form. What Spark
    has a name for (a query that fails), a JVM that is gone, and an error of ours that comes back through it are something else."""
    if isinstance(error, (AttributeError, TypeError)):
        return True
    if (kind := _java_class(error)) is not None:
        own = kind.startswith("py4j.") and "deltaic.errors." in str(error)
        return kind.startswith(("java.lang.", "scala.", "py4j.")) and kind not in _USUAL and not own
    from pyspark.errors import PySparkException

    if isinstance(error, PySparkException):
        condition = error.getCondition()
        return condition is None or condition.startswith("INTERNAL_ERROR")
    return any(each.__name__ == "Py4JError" for each in type(error).__mro__) and type(error).__name__ != "Py4JNetworkError"


def _java_class(error: Exception) -> str | None:
    """The class of what Java raised; None where it raised nothing, or PySpark has read it already."""
    raised = getattr(error, "java_exception", None)
    return None if raised is None else str(raised.getClass().getName())
