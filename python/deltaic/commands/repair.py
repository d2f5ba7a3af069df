"""FSCK: removes files from the log that are missing in the store, or whose deletion vectors are missing."""

from __future__ import annotations

import os

import pyarrow as pa
import pyarrow.compute as pc

from deltaic import _core, configuration
from deltaic.log import references
from deltaic.log.snapshot import Snapshot
from deltaic.log.store import locate, open_beside
from deltaic.options import CommitOptions
from deltaic.transaction.transaction import Transaction

_FILE = "file:///" if os.name == "nt" else "file://"
"""What stands before a local path in a URL: `/data/t` or `C:/data/t`."""


def repair(
    snapshot: Snapshot, *, dry_run: bool = False, commit: CommitOptions | None = None
) -> tuple[Snapshot, pa.Table]:
    """Removes missing files from the log. Returns the new snapshot and the removed files: path (decoded),
    data_file_missing (bool), deletion_vector (path of its file, or null), deletion_vector_missing (bool).
    Files in the table's folder are checked, and those in a place of `configure(allowed_roots=)`, as a shallow
    clone has them; other files outside the table are kept. If no file is missing, nothing is committed.

    A file whose deletion vector is missing is removed with all its rows, as its deleted rows are unknown.
    """
    adds = snapshot.files().adds
    names = references.data_files(adds, snapshot.location)
    vectors = references.vector_of_each(adds, snapshot.location)
    known = pa.concat_arrays(
        [_listed(snapshot.store, ""), _known_outside(snapshot.store, pa.concat_arrays([names, vectors]))]
    )
    known = references.folded(known)
    missing = pc.invert(pc.is_in(references.folded(names), value_set=known))
    unreadable = pc.and_(
        pc.is_valid(vectors), pc.invert(pc.is_in(references.folded(vectors), value_set=known))
    )
    gone = pc.or_(missing, unreadable)
    columns = {
        "path": names,
        "data_file_missing": missing,
        "deletion_vector": vectors,
        "deletion_vector_missing": unreadable,
    }
    answer = pa.table(columns).filter(gone)
    if dry_run or not answer.num_rows:
        return snapshot, answer
    transaction = Transaction(snapshot, "FSCK", {"numFiles": answer.num_rows}, commit)
    transaction.read()
    transaction.remove(_core.removes_of(adds.filter(gone), transaction.clock()))
    return transaction.commit({"num_removed_files": answer.num_rows}), answer


def _listed(store: _core.Store, prefix: str) -> pa.Array:
    """Returns the paths of the files in a folder of the store and below it, each after `prefix`."""
    paths = store.list_from("", None, recursive=True)["path"].combine_chunks()
    return pc.binary_join_element_wise(prefix, paths, "") if prefix else paths


def _known_outside(store: _core.Store, paths: pa.Array) -> pa.Array:
    """Returns those of the paths outside the table that exist, or that cannot be checked as they are in no
    place of `configure(allowed_roots=)`."""
    paths = pc.unique(
        paths.filter(pc.invert(pc.is_in(paths, value_set=references.inside(paths))))
    ).drop_null()
    known = [paths.slice(0, 0)]
    roots = (_without_scheme(locate(root)).rstrip("/") for root in configuration.current().allowed_roots)
    for root in sorted(roots, key=len, reverse=True):  # the innermost root decides
        places = pc.replace_substring_regex(paths, f"^{_FILE}", "")
        is_here = pc.starts_with(places, f"{root}/")
        here, places, paths = paths.filter(is_here), places.filter(is_here), paths.filter(pc.invert(is_here))
        if len(here):
            folder = _common_folder(places, root)
            known.append(
                here.filter(pc.is_in(places, value_set=_listed(open_beside(store, folder), f"{folder}/")))
            )
    return pa.concat_arrays([*known, paths])


def _common_folder(places: pa.Array, root: str) -> str:
    """Returns the innermost folder below `root` that has all these places, so that no other table is
    listed."""
    ends = pc.min_max(places).as_py()  # folders that the first and the last path share, all paths share
    folders = [ends[end][len(root) + 1 :].rpartition("/")[0] for end in ("min", "max")]
    return f"{root}/{os.path.commonpath(folders)}".rstrip("/")


def _without_scheme(location: str) -> str:
    """Returns a local path for its URL, and any other location as it is."""
    return location.removeprefix(_FILE)
