"""Assigns row ids to the files that a commit adds (PROTOCOL.md: Row Tracking, writer requirements)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deltaic import _core
from deltaic.errors import InvalidArgumentError


def assigned(adds: pa.Table, version: int, mark: int) -> tuple[pa.Table, int]:
    """Sets `baseRowId` and `defaultRowCommitVersion` of files that have none. Returns the files and the new
    high-water mark. With the mark 9, new files of 5 and 3 rows get the base row ids 10 and 15, and the new
    mark is 17.

    `mark`: the highest assigned row id, -1 for none; it never decreases. A file that is added again keeps its
    ids. A new file without the number of rows in its statistics is an InvalidArgumentError.
    """
    if not adds.num_rows:
        return adds, mark
    adds = _core.adds_again(adds)
    counts = _core.physical_rows(adds)
    base = adds["baseRowId"].combine_chunks()
    new = pc.is_null(base)
    unknown = pc.and_(new, pc.is_null(counts))
    if pc.any(unknown).as_py():
        raise InvalidArgumentError(
            "row tracking needs the number of rows of every file",
            where=adds["path"].filter(unknown)[0].as_py(),
            expected="statistics with numRecords",
        )
    rows = np.asarray(pc.fill_null(counts, 0).to_numpy(zero_copy_only=False), dtype=np.int64)
    new_rows = np.where(np.asarray(new.to_numpy(zero_copy_only=False), dtype=np.bool_), rows, 0)
    firsts = pa.array(mark + 1 + np.cumsum(new_rows) - new_rows)
    base = pc.if_else(new, firsts, base)
    highest = int(np.max(np.asarray(base.to_numpy(zero_copy_only=False), dtype=np.int64) + rows)) - 1
    versions = pc.fill_null(adds["defaultRowCommitVersion"], version)
    adds = adds.set_column(adds.schema.get_field_index("baseRowId"), adds.schema.field("baseRowId"), base)
    place = adds.schema.get_field_index("defaultRowCommitVersion")
    return adds.set_column(place, adds.schema.field("defaultRowCommitVersion"), versions), max(mark, highest)
