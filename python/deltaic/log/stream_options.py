"""Declares the options of a stream. Both engines use this module."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Literal, TypeAlias

from deltaic.errors import InvalidArgumentError, InvalidTypeError
from deltaic.log.stream_limits import Limits

if TYPE_CHECKING:
    import pyarrow as pa
else:
    from deltaic.deferred import pyarrow as pa

Start: TypeAlias = Literal["latest", "earliest"] | int | datetime


@dataclass(frozen=True, kw_only=True)
class StreamOptions:
    """Options of a stream.

    `start`: "earliest" to begin with the rows of the snapshot, "latest" to begin with the commits after it,
        or the first version (int) or time (datetime) whose commits are read.
    `changes`: True to read the change data feed.
    `max_files`, `max_bytes`: limits of a batch, which has at least one file.
    `with_event_time_order`: True to read the initial snapshot in one batch, whatever the limits are. No row
        of it is late for a watermark then, because a watermark moves only between batches.
    `ignore_deletes`: True to skip commits that only remove files.
    `ignore_changes`: True to return all rows of added files for commits that also remove files.
    `skip_change_commits`: True to skip commits that remove files.
    `exclude_regex`: files whose path contains a match are skipped.
    `fail_on_data_loss`: True to fail if commits are missing in the log.
    `allow_dropped_columns`: True to continue without a schema log after a column was dropped or
        renamed.
    `refuse_wider_types`: True to fail without a schema log after a column got a wider type.
    `allow_out_of_range`: True to allow a stream of changes to start with a version or time after the newest
        commit."""

    start: Start = "earliest"
    changes: bool = False
    max_files: int | None = None
    max_bytes: int | None = None
    with_event_time_order: bool = False
    ignore_deletes: bool = False
    ignore_changes: bool = False
    skip_change_commits: bool = False
    exclude_regex: str | None = None
    fail_on_data_loss: bool = True
    allow_dropped_columns: bool = False
    refuse_wider_types: bool = False
    allow_out_of_range: bool = False

    def __post_init__(self) -> None:
        is_number = isinstance(self.start, int) and not isinstance(self.start, bool)
        if (
            not is_number
            and not isinstance(self.start, datetime)
            and self.start not in ("latest", "earliest")
        ):
            expected = "'latest', 'earliest', the number of a version, or a datetime"
            raise InvalidArgumentError("invalid start", found=repr(self.start), expected=expected)
        for name in ("max_files", "max_bytes"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
                raise InvalidTypeError(
                    f"{name} has the wrong type", found=repr(value), expected="a whole number, or None"
                )
            if value is not None and value < 1:
                raise InvalidArgumentError(f"invalid {name}", found=value, expected="at least 1")
        if self.exclude_regex is not None:
            try:
                re.compile(self.exclude_regex)
            except re.error as error:
                raise InvalidArgumentError(
                    "exclude_regex is not a valid pattern",
                    found=repr(self.exclude_regex),
                    expected=f"a pattern: {error}",
                ) from None

    @property
    def limits(self) -> Limits:
        return Limits(self.max_files, self.max_bytes)

    def without_excluded(self, files: pa.Table) -> pa.Table:
        """Returns the files, a table with a column `path`, that `exclude_regex` does not skip."""
        if self.exclude_regex is None:
            return files
        pattern = re.compile(self.exclude_regex)
        return files.filter(
            pa.array([pattern.search(path) is None for path in files["path"].to_pylist()], pa.bool_())
        )
