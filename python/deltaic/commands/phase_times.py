"""Times of the phases of a command that finds rows and then writes files, for the metrics of its commit
(delta-spark's names)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


class PhaseTimes:
    """Clock of one command, from when it is made."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._found: float | None = None
        self._source: float | None = None

    @contextmanager
    def materializing_source(self) -> Iterator[None]:
        """Around the work that makes the source of a MERGE rows that can be read again."""
        started = time.monotonic()
        yield
        self._source = time.monotonic() - started

    def found_rows(self) -> None:
        """The rows that change are known: what follows is writing."""
        self._found = time.monotonic()

    def metrics(self) -> dict[str, int]:
        """Milliseconds until now: of all, until the rows were known, and of the rest; of MERGE those for its
        source, too."""
        now = time.monotonic()
        found = now if self._found is None else self._found
        phases = {} if self._source is None else {"materialize_source_time_ms": self._source}
        phases |= {"execution_time_ms": now - self._started, "scan_time_ms": found - self._started, "rewrite_time_ms": now - found}
        return {name: int(seconds * 1000) for name, seconds in phases.items()}
