"""Rows that a transaction marks as deleted by deletion vectors, and how they are marked again after another
commit.

If two commands mark different rows of one file, both succeed: the second one adds its rows to the first one's
vectors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from deltaic import _core

Mark = Callable[[pa.Table, _core.RowIds], _core.MarkedFiles]


@dataclass
class MarkedRows:
    """Rows to mark as deleted. `files`: add actions with file ordinals. `rows`: row ids in these files."""

    files: pa.Table
    rows: _core.RowIds


@dataclass
class Marks(MarkedRows):
    """Marked rows with their deletion vectors. `mark`: writes the vectors. `changed`: called with the result
    each time that they are written."""

    mark: Mark
    changed: Callable[[_core.MarkedFiles], None]

    def __post_init__(self) -> None:
        self.marked = self.mark(self.files, self.rows)
        self.changed(self.marked)

    def move(self, rebased: _core.RebasedRows) -> list[str]:
        """Marks the rows again in the files as another commit left them. Returns the files of the former
        vectors, which are no longer needed."""
        self.files, self.rows, former = rebased.files, rebased.rows, self.marked.written
        self.marked = self.mark(self.files, self.rows)
        self.changed(self.marked)
        return former
