"""PySpark notes with each expression which line of Python made it, for its messages: eight calls of the JVM beside the two that make it.
Of the expressions that are made here that line is of no use."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_FLAG = "_enable_debugging_cache"
"""Name in `pyspark.errors.utils` of the cached setting spark.python.sql.dataFrameDebugging.enabled; its value is None before the first
use."""

_lock = threading.Lock()
_inside = 0
_before: Any = None


@contextmanager
def unnoted() -> Iterator[None]:
    """While it lasts, nothing is noted in any thread, as PySpark has one flag for all. Where it has none, all is noted as ever."""
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
