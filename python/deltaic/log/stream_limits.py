"""Limits of the batches of a reader that follows a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

MAX_FILES = 1000
"""Maximum number of files in a batch if neither `max_files` nor `max_bytes` is set."""


@dataclass(frozen=True)
class Limits:
    """Maximum files and bytes of a batch; None for both: MAX_FILES files."""

    files: int | None = None
    bytes: int | None = None


class BatchRoom:
    """Remaining files and bytes of a batch. A file is taken while anything remains, so that a file larger
    than the limit is read, too."""

    def __init__(self, limits: Limits | None) -> None:
        self._files = None if limits is None else limits.files
        self._bytes = None if limits is None else limits.bytes
        if limits is not None and limits.files is None and limits.bytes is None:
            self._files = MAX_FILES
        self._is_empty = True

    @property
    def is_full(self) -> bool:
        return any(left is not None and left <= 0 for left in (self._files, self._bytes))

    def take(self, files: pa.Table) -> int:
        """Takes as many of the files as fit, from the first one on. Returns their number."""
        import numpy as np

        if self.is_full:
            return 0
        sizes = files["size"].fill_null(0).to_numpy()
        before = np.concatenate(([0], np.cumsum(sizes)))
        count = len(sizes) if self._files is None else min(len(sizes), self._files)
        if self._bytes is not None:
            count = min(count, int(np.searchsorted(before[:-1], self._bytes, side="left")))
        self._use(count, int(before[count]))
        return count

    def take_all(self, count: int, size: int) -> bool:
        """Takes all of the files or none; True if they fit. They always fit into an empty batch."""
        fits = (self._files is None or count <= self._files) and (self._bytes is None or size <= self._bytes)
        if not fits and not self._is_empty:
            return False
        self._use(count, size)
        return True

    def _use(self, count: int, size: int) -> None:
        self._is_empty = self._is_empty and not count
        self._files = None if self._files is None else self._files - count
        self._bytes = None if self._bytes is None else self._bytes - size
