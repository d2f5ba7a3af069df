"""FSCK: removes files from the log that are missing in the store, or whose deletion vectors are missing."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from deltaic import _core
from deltaic.log import references
from deltaic.log.snapshot import Snapshot
from deltaic.options import CommitOptions
from deltaic.transaction.transaction import Transaction


def repair(snapshot: Snapshot, *, dry_run: bool = False, commit: CommitOptions | None = None) -> tuple[Snapshot, pa.Table]:
    """Removes missing files from the log. Returns the new snapshot and the removed files: path (decoded),
    data_file_missing (bool), deletion_vector (path of its file, or null), deletion_vector_missing (bool).
    Only files in the table's folder are checked. If no file is missing, nothing is committed.

    A file whose deletion vector is missing is removed with all its rows, as its deleted rows are unknown.
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
