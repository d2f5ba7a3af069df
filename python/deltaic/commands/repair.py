"""FSCK: takes files out of the log that the store no longer has, or whose deletion vectors it no longer has."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from deltaic import _core
from deltaic.log import references
from deltaic.log.snapshot import Snapshot
from deltaic.options import CommitOptions
from deltaic.transaction.transaction import Transaction


def repair(snapshot: Snapshot, *, dry_run: bool = False, commit: CommitOptions | None = None) -> tuple[Snapshot, pa.Table]:
    """-> the snapshot with the commit, and the files that leave the log: path (decoded), data_file_missing (bool), deletion_vector (path
    of the file that it is in, or null), deletion_vector_missing (bool). Only what lies in the table is looked at; where nothing is
    missing there is no commit.

    A file whose vector is gone leaves with all its rows: nobody knows any more which of them were deleted.
    """
    adds = snapshot.files().adds
    names = references.data_files(adds, snapshot.location)
    listing = snapshot.store.list_from("", None, recursive=True)["path"].combine_chunks()
    missing = pc.invert(pc.is_in(names, value_set=listing))
    missing = pc.and_(missing, pc.is_in(names, value_set=references.inside(names)))
    vectors = references.vector_of_each(adds, snapshot.location)
    known = pa.concat_arrays([listing, vectors.filter(pc.invert(pc.is_in(vectors, value_set=references.inside(vectors))))])
    unreadable = pc.and_(pc.is_valid(vectors), pc.invert(pc.is_in(vectors, value_set=known)))
    gone = pc.or_(missing, unreadable)
    columns = {"path": names, "data_file_missing": missing, "deletion_vector": vectors, "deletion_vector_missing": unreadable}
    answer = pa.table(columns).filter(gone)
    if dry_run or not answer.num_rows:
        return snapshot, answer
    transaction = Transaction(snapshot, "FSCK", {"numFiles": answer.num_rows}, commit)
    transaction.read()
    transaction.remove(_core.removes_of(adds.filter(gone), transaction.clock()))
    return transaction.commit({"num_removed_files": answer.num_rows}), answer
