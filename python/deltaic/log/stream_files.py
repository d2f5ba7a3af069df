"""The files of a commit, and of a batch, of a reader that follows a table."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from deltaic.log.snapshot import Snapshot

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, eq=False)
class CommitFiles:
    """The files of a commit. `added`: files whose rows the commit adds. `derived`, `recorded`: the files of
    its changes, as `_core.read_changes` returns them."""

    added: pa.Table
    derived: pa.Table | None = None
    recorded: pa.Table | None = None

    @property
    def count(self) -> int:
        return sum(int(table.num_rows) for table in self._tables)

    @property
    def size(self) -> int:
        import pyarrow.compute as pc

        return sum(int(pc.sum(table["size"]).as_py() or 0) for table in self._tables)

    @property
    def _tables(self) -> list[pa.Table]:
        return (
            [self.added] if self.derived is None or self.recorded is None else [self.derived, self.recorded]
        )


@dataclass(frozen=True, eq=False)
class StreamFiles:
    """The files of a batch.

    `added`: `add` actions of the files to read. In a stream of changes these are files of the initial
        snapshot, whose rows count as inserted at `version` and `time`.
    `derived`, `recorded`: the files of changes, as `_core.read_changes` returns them, or None."""

    snapshot: Snapshot
    added: pa.Table
    derived: pa.Table | None = None
    recorded: pa.Table | None = None
    are_changes: bool = False
    version: int | None = None
    time: datetime | None = None
