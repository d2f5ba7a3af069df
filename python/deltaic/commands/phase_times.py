"""Times of the phases of a command that finds rows and then writes files, for the metrics of its commit
(delta-spark's names)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


class PhaseTimes:
    """Measures the phases of one command. The clock starts when the object is created."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._found: float | None = None
        self._source: float | None = None

    @contextmanager
    def materializing_source(self) -> Iterator[None]:
        """Measures the block, which makes the source rows of a MERGE readable several times."""
        started = time.monotonic()
        yield
        self._source = time.monotonic() - started

    def found_rows(self) -> None:
        """Notes that the changed rows are known, so that the rest of the command is writing."""
        self._found = time.monotonic()

    def metrics(self) -> dict[str, int]:
        """Returns milliseconds: of the whole command so far, until the rows were known, and of the rest; for
        a MERGE also those for its source."""
        now = time.monotonic()
        found = now if self._found is None else self._found
        phases = {} if self._source is None else {"materialize_source_time_ms": self._source}
        phases |= {
            "execution_time_ms": now - self._started,
            "scan_time_ms": found - self._started,
            "rewrite_time_ms": now - found,
        }
        return {name: int(seconds * 1000) for name, seconds in phases.items()}
