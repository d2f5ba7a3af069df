"""`Tail` and `TailBatch`, which `DeltaTable.tail` returns: batches of the rows that commits add to a table.
`log/stream.py` selects the files of a batch."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from deltaic import _core
from deltaic.errors import InvalidArgumentError
from deltaic.log.stream import TableStream
from deltaic.log.stream_files import StreamFiles
from deltaic.log.stream_options import StreamOptions
from deltaic.plan.nodes import Scan
from deltaic.protocol import change_feed
from deltaic.protocol.schema import Schema
from deltaic.rows.changes import change_scans
from deltaic.rows.files import FileRows
from deltaic.rows.rows import Rows

if TYPE_CHECKING:
    import pyarrow as pa

    from deltaic.engine.engine import Engine
    from deltaic.log.snapshot import Snapshot
else:
    from deltaic.deferred import pyarrow as pa


@dataclass(frozen=True)
class TailBatch:
    """A batch of rows of a table that is followed. `rows`: lazy `Rows`, like the result of `scan`. `offset`:
    the start of the next batch, as JSON. A program that stores the offset atomically with its result of the
    rows, and passes it to `tail(offset=)`, processes each row exactly once."""

    rows: Rows
    offset: str


class Tail(Iterator[TailBatch]):
    """The iterator that `DeltaTable.tail` returns: each step gives a `TailBatch`. `offset`: the start of the
    next batch, as JSON."""

    def __init__(
        self,
        snapshot: Snapshot,
        engine: Engine,
        options: StreamOptions,
        poll: float | None,
        offset: str | None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        is_number = isinstance(poll, (int, float)) and not isinstance(poll, bool)
        if poll is not None and not (is_number and math.isfinite(poll) and poll >= 0):
            raise InvalidArgumentError(
                "invalid poll", found=repr(poll), expected="seconds, or None: end where there is nothing new"
            )
        self._stream, self._engine, self._poll, self._sleep = (
            TableStream(snapshot, options),
            engine,
            poll,
            sleep,
        )
        self._at = self._stream.start() if offset is None else self._stream.parse(offset)

    @property
    def offset(self) -> str:
        return self._at.json()

    def __next__(self) -> TailBatch:
        while True:
            start, end = self._at, self._stream.next(self._at, self._stream.options.limits)
            if end != start:
                files = self._stream.batch(start, end)
                self._at = end
                if _is_empty(files):
                    continue
                return TailBatch(stream_rows(files, self._engine), end.json())
            if self._poll is None:
                raise StopIteration
            self._sleep(self._poll)


def _is_empty(files: StreamFiles) -> bool:
    return not any(
        table is not None and table.num_rows for table in (files.added, files.derived, files.recorded)
    )


def stream_rows(files: StreamFiles, engine: Engine) -> FileRows:
    """Returns the rows of a batch; for changes with the columns of the change data feed."""
    scans = stream_scans(files)
    return FileRows(scans if files.added.num_rows or len(scans) == 1 else scans[1:], engine)


def stream_scans(files: StreamFiles) -> list[Scan]:
    """Returns the scan of a batch. For changes these are three: of the initial snapshot, of changes derived
    from data files, and of change files."""
    snapshot = files.snapshot
    added = Scan(
        store=snapshot.store,
        schema=snapshot.schema,
        table_schema=snapshot.table_schema,
        files=files.added,
        columns=tuple(snapshot.schema.names),
    )
    if not files.are_changes:
        return [added]
    return [
        _inserted(added, files),
        *change_scans(snapshot, snapshot.schema, None, files.derived, files.recorded),
    ]


def _inserted(scan: Scan, files: StreamFiles) -> Scan:
    """Adds the columns of the change data feed to a scan, with the same values in each row."""
    constants = _core.TableSchema(Schema(change_feed.COLUMNS).to_json()).to_arrow()
    whole = scan.files
    for field, value in zip(constants, (change_feed.INSERT, files.version, files.time), strict=True):
        whole = whole.append_column(field, pa.repeat(pa.scalar(value, field.type), whole.num_rows))
    return replace(scan, files=whole, constants=change_feed.COLUMNS)
