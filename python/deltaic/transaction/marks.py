"""Rows that a transaction takes out of files by deletion vectors, and how they stay taken out when another commit came first.

Two commands that change different rows of one file both succeed: the loser's rows are marked again, on top of the winner's vectors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from deltaic import _core

Mark = Callable[[pa.Table, _core.RowIds], _core.MarkedFiles]


@dataclass
class MarkedRows:
    """`rows` of `files` (add rows with their ordinals) are taken out."""

    files: pa.Table
    rows: _core.RowIds


@dataclass
class Marks(MarkedRows):
    """`mark` writes the vectors; `changed` learns what came of it, each time that they are written."""

    mark: Mark
    changed: Callable[[_core.MarkedFiles], None]

    def __post_init__(self) -> None:
        self.marked = self.mark(self.files, self.rows)
        self.changed(self.marked)

    def move(self, rebased: _core.RebasedRows) -> list[str]:
        """Onto the files as another commit left them; -> files of vectors that are not needed any more."""
        self.files, self.rows, former = rebased.files, rebased.rows, self.marked.written
        self.marked = self.mark(self.files, self.rows)
        self.changed(self.marked)
        return former
