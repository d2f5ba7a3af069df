"""Streams of tables whose batches a test collects, and commits that are written by hand."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from deltaic import DeltaTable

CONTINUOUS = {"processingTime": "0 seconds"}
"""Trigger of a query that runs until it is stopped."""


def commit_file(table: Path, version: int) -> Path:
    return table / "_delta_log" / f"{version:020}.json"


def commit(table: Path, *actions: dict[str, Any]) -> None:
    """Writes the next commit by hand."""
    version = DeltaTable(table).version + 1
    info = {"commitInfo": {"timestamp": 1_700_000_000_000, "operation": "Manual Update"}}
    commit_file(table, version).write_text("".join(json.dumps(action) + "\n" for action in (info, *actions)))


class Collector:
    """The rows of each batch that has rows. `run` starts a query and waits for its end.

    `columns`: the columns to collect. The rows of one column are its values, those of several are tuples."""

    def __init__(self, session: Any, place: Path, *columns: str) -> None:
        self.session, self.place, self.columns = session, place, columns or ("id",)
        self.batches: list[list[Any]] = []
        self.progress: list[Any] = []

    def frame(self, table: Path, **options: Any) -> Any:
        return self.session.readStream.format("delta").options(**options).load(str(table))

    def run(
        self, table: Path, shape: Callable[[Any], Any] = lambda frame: frame, **options: Any
    ) -> list[list[Any]]:
        """Returns the batches of this run."""
        return self.run_frame(shape(self.frame(table, **options)))

    def run_frame(self, frame: Any, trigger: dict[str, Any] | None = None) -> list[list[Any]]:
        before = len(self.batches)
        query = self.start(frame, trigger)
        assert query.awaitTermination(60)
        self.progress = query.recentProgress
        return self.batches[before:]

    @contextmanager
    def running(self, frame: Any) -> Iterator[Callable[[], list[list[Any]]]]:
        """Starts a query that runs until the block ends. The function waits until the query has read all
        commits, and returns the batches since its last call."""
        query = self.start(frame, CONTINUOUS)
        seen = len(self.batches)

        def more() -> list[list[Any]]:
            nonlocal seen
            query.processAllAvailable()
            before, seen = seen, len(self.batches)
            self.progress = query.recentProgress
            return self.batches[before:]

        try:
            yield more
        finally:
            query.stop()

    def start(self, frame: Any, trigger: dict[str, Any] | None = None) -> Any:
        def collect(batch: Any, number: int) -> None:
            found = [tuple(row) for row in batch.select(*self.columns).collect()]
            if found:
                values = sorted(found, key=lambda row: [(value is not None, value) for value in row])
                self.batches.append([row[0] for row in values] if len(self.columns) == 1 else values)

        writer = frame.writeStream.foreachBatch(collect).option(
            "checkpointLocation", str(self.place / "checkpoint")
        )
        return writer.trigger(**(trigger or {"availableNow": True})).start()

    @property
    def ends(self) -> list[tuple[int, int, bool]]:
        """Version, index and `isStartingVersion` of the offset at the end of each batch of the last run."""
        offsets = list(map(end_offset, self.progress))
        return [
            (offset["reservoirVersion"], offset["index"], offset["isStartingVersion"]) for offset in offsets
        ]


def end_offset(progress: Any) -> dict[str, Any]:
    """Returns the offset of the only source at the end of a batch."""
    text = progress["sources"][0]["endOffset"]
    # PySpark 4.1 gives the text of a dict instead of JSON
    offset: dict[str, Any] = json.loads(text) if '"' in text else ast.literal_eval(text)
    return offset


def failure(call: Callable[[], Any]) -> Any:
    """Returns the exception that ends the query for which `call` waits."""
    from pyspark.errors import StreamingQueryException

    with pytest.raises(StreamingQueryException) as raised:
        call()
    cause: Any = raised.value._cause
    return cause


def last_offset(place: Path) -> dict[str, Any]:
    newest = max((place / "checkpoint" / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))
    found: dict[str, Any] = json.loads(newest.read_text().splitlines()[-1])
    return found
