"""Prepares the existing files of a table for a feature that requires row ids or statistics of every file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from deltaic import _core
from deltaic.errors import InvalidArgumentError
from deltaic.protocol import row_tracking

if TYPE_CHECKING:
    from deltaic.log.snapshot import Snapshot
    from deltaic.transaction.transaction import Transaction


def stage_row_ids(transaction: Transaction, snapshot: Snapshot) -> None:
    """Adds files without row ids again, in the transaction that turns row tracking on. The commit assigns the
    ids.

    If the statistics of a file lack the number of rows, it is read from the footer. If writers did not have
    to assign ids before, files that are added meanwhile must be a conflict, so the transaction reads the
    whole table.
    """
    if not row_tracking.gives_ids(snapshot.protocol, snapshot.metadata):
        transaction.read()
    files = snapshot.files().adds
    missing = files.filter(
        pc.or_(pc.is_null(files["baseRowId"]), pc.is_null(files["defaultRowCommitVersion"]))
    )
    if not missing.num_rows:
        return
    counted = pc.is_valid(_core.physical_rows(missing))
    if not pc.all(counted).as_py():
        uncounted = missing.filter(pc.invert(counted))
        measured = _core.file_statistics(snapshot.store, snapshot.table_schema, uncounted)
        missing = pa.concat_tables([missing.filter(counted), measured], promote_options="permissive")
    transaction.add(_core.adds_again(missing, data_change=False))


def check_statistics(snapshot: Snapshot, columns: Sequence[str]) -> None:
    """Raises InvalidArgumentError if a live file has no statistics of one of the columns (names with
    dots)."""
    if not columns:
        return
    listing = snapshot.core.listing(snapshot.table_schema, None, statistics_columns=list(columns)).to_table()
    for name in columns:
        counts = listing["null_count"]
        for part in snapshot.schema.find(name)[0]:
            counts = pc.struct_field(counts, part)
        if counts.null_count:
            raise InvalidArgumentError(
                f"{counts.null_count} files have no statistics of a clustering column",
                where=f"column {name}",
                found=listing["path"].filter(pc.is_null(counts))[0].as_py(),
                expected=f"optimize.statistics([{name!r}]) first",
            )
