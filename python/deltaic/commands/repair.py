"""FSCK: takes files out of the log that the store no longer has."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from deltaic import _core
from deltaic.log import references
from deltaic.log.snapshot import Snapshot
from deltaic.options import CommitOptions
from deltaic.transaction.transaction import Transaction


def repair(snapshot: Snapshot, *, dry_run: bool = False, commit: CommitOptions | None = None) -> tuple[Snapshot, pa.Table]:
    """-> the snapshot with the commit, and the paths (decoded) of the files that were missing. Only files in the table are looked at;
    without a missing one there is no commit."""
    adds = snapshot.files().adds
    names = references.data_files(adds, snapshot.location)
    listing = snapshot.store.list_from("", None, recursive=True)["path"].combine_chunks()
    inside = pc.is_in(names, value_set=references.inside(names))
    missing = pc.and_(inside, pc.invert(pc.is_in(names, value_set=listing)))
    answer = pa.table({"path": names.filter(missing)})
    if dry_run or not answer.num_rows:
        return snapshot, answer
    transaction = Transaction(snapshot, "FSCK", {"numFiles": answer.num_rows}, commit)
    transaction.read()
    gone = adds.filter(missing)
    transaction.remove(_core.removes_of(gone, transaction.clock()))
    return transaction.commit({"num_removed_files": gone.num_rows}), answer
