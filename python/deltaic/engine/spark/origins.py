"""Switches off PySpark's record of the line of Python that created each expression. PySpark shows the line
in error messages, and makes eight calls to the JVM for it besides the two that create the expression. For
expressions that deltaic creates, the line does not help the user."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_FLAG = "_enable_debugging_cache"
"""Name in `pyspark.errors.utils` of the cached setting spark.python.sql.dataFrameDebugging.enabled; its
value is None before the first use."""

_lock = threading.Lock()
_inside = 0
"""Number of contexts that are entered, in all threads."""
_before: Any = None
"""Value of the flag before the first of them was entered."""


@contextmanager
def unnoted() -> Iterator[None]:
    """While the context is entered, PySpark records no lines in any thread, because it has one flag for all
    threads. With a version of PySpark without the flag, nothing changes."""
    from pyspark.errors import utils

    global _inside, _before
    if not hasattr(utils, _FLAG):
        yield
        return
    with _lock:
        if _inside == 0:
            _before = getattr(utils, _FLAG)
            setattr(utils, _FLAG, False)
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                setattr(utils, _FLAG, _before)
