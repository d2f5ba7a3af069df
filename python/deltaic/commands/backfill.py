"""Prepares the existing files of a table for a feature that needs something of every file: row ids, or statistics."""

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
    """Adds the files without row ids again, in the transaction that turns row tracking on; the commit gives them their ids.

    The number of rows of a file that does not say it is read from its footer. Where writers did not have to give ids so far, no file may
    come in meanwhile.
    """
    if not row_tracking.gives_ids(snapshot.protocol, snapshot.metadata):
        transaction.read()
    files = snapshot.files().adds
    missing = files.filter(pc.or_(pc.is_null(files["baseRowId"]), pc.is_null(files["defaultRowCommitVersion"])))
    if not missing.num_rows:
        return
    counted = pc.is_valid(_core.physical_rows(missing))
    if not pc.all(counted).as_py():
        silent = missing.filter(pc.invert(counted))
        measured = _core.file_statistics(snapshot.store, snapshot.table_schema, silent)
        missing = pa.concat_tables([missing.filter(counted), measured], promote_options="permissive")
    transaction.add(_core.adds_again(missing, data_change=False))


def check_statistics(snapshot: Snapshot, columns: Sequence[str]) -> None:
    """InvalidArgumentError where a live file has no statistics of one of the columns (dotted names)."""
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
