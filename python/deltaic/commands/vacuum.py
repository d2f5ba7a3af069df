"""VACUUM: deletes the files that no version within the retention needs (PROTOCOL.md: Vacuum Protocol Check; delta-spark: VACUUM).

Kept are the files and the vector files of the newest version, of tombstones that have not expired and of `keep_versions`, all that is
newer than the retention by the store's clock, all that is hidden (names that begin with `_` or `.`) but files that a killed writer left
half written (those of the log after a day), and whatever lies behind a symbolic link.

Hadoop keeps a checksum beside each file that it writes to a local folder, `.X.crc` for X. It is no file of its own: it goes with X,
uncounted.
"""

from __future__ import annotations

import errno
import logging
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext, suppress
from datetime import timedelta
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deltaic import _core
from deltaic.commands import inventory as inventories
from deltaic.errors import CommitError, InvalidArgumentError, InvalidTypeError, items_of
from deltaic.log import references
from deltaic.log.cleanup import milliseconds, stale_staged
from deltaic.log.iceberg_manifests import FOLDER as ICEBERG_FOLDER
from deltaic.log.segment import commit_path, list_log
from deltaic.log.snapshot import Snapshot
from deltaic.options import CommitOptions
from deltaic.protocol import features, iceberg
from deltaic.protocol.bounded_json import parse_json
from deltaic.protocol.column_mapping import physical_name
from deltaic.transaction.transaction import Clock, Transaction, now_ms

log = logging.getLogger("deltaic.commands")

Mode = Literal["full", "lite"]
_DELETED_AT_ONCE = 10_000
_FULL = (errno.ENOSPC, errno.EDQUOT)
# Folders that other writers keep data in although their names begin with an underscore.
_DATA_FOLDERS = ("_delta_index", "_change_data")
# What a writer that was killed leaves behind: files on their way to their name (rust/src/store/local.rs), and attempts of Spark's tasks in
# a folder of one write (engine/spark/write.py).
_STAGED = r"(^|/)\.[^/]{1,40}\.[0-9a-f]{32}\.tmp$"
_ATTEMPTS = r"^((?:shown/)?[0-9a-f]{32})/_temporary/(?:.*/)?([^/]*)$"
_CHECKSUM = r"(^|/)\.([^/]+\.(?:parquet|bin))\.crc$"


def vacuum(
    snapshot: Snapshot,
    *,
    retention: timedelta | None = None,
    mode: Mode = "full",
    dry_run: bool = False,
    enforce_retention: bool = True,
    keep_versions: Iterable[int] = (),
    inventory: Any = None,
    commit: CommitOptions | None = None,
    clock: Clock = now_ms,
) -> tuple[Snapshot, pa.Table]:
    """-> the newest snapshot, and what went (or would): path, size (bytes), modification_time (UTC).

    `retention`: None is `delta.deletedFileRetentionDuration`; a shorter one needs `enforce_retention=False`. "lite" deletes only what
    the log names as removed, "full" everything unknown too. A table where nothing is to be deleted gets no commit.
    `inventory`: the files that are there, instead of a listing (`inventory.py`).
    """
    if mode not in ("full", "lite"):
        raise InvalidArgumentError("unknown mode of vacuum", found=repr(mode), expected="'full' or 'lite'")
    with nullcontext() if inventory is None else inventories.freeing_memory():
        return _vacuumed(snapshot, retention, mode, dry_run, enforce_retention, keep_versions, inventory, commit, clock)


def _vacuumed(
    snapshot: Snapshot,
    retention: timedelta | None,
    mode: Mode,
    dry_run: bool,
    enforce_retention: bool,
    keep_versions: Iterable[int],
    inventory: Any,
    commit: CommitOptions | None,
    clock: Clock,
) -> tuple[Snapshot, pa.Table]:
    features.check_maintained(snapshot.protocol, "VACUUM")
    features.check_writable(snapshot.protocol, snapshot.metadata, domains=snapshot.domains)
    retained = _retention(snapshot, retention, enforce_retention and not dry_run)
    kept = _versions(snapshot, keep_versions)
    now = clock()
    cutoff = now - milliseconds(retained)
    folders: list[str] = []
    if inventory is None:
        candidates, checksums = _candidates(snapshot, cutoff, now)
        doomed = _unprotected(candidates, snapshot, kept, cutoff)
    else:
        found = inventories.may_go(
            snapshot,
            inventory,
            kept=kept,
            removed=_removed_by_commits(snapshot, cutoff),
            cutoff=cutoff,
            is_shown=lambda files: _is_shown(files, snapshot, now),
        )
        doomed, folders = _not_linked(found.files, snapshot.location), found.folders
    if mode == "lite":
        named = pa.concat_arrays([_removed(snapshot, 0), _change_files(snapshot)])
        doomed = doomed.filter(pc.is_in(doomed["path"], value_set=named))
    if dry_run or not doomed.num_rows:
        return snapshot, _answer(doomed)
    parameters: dict[str, object] = {
        "retentionCheckEnabled": enforce_retention,
        "defaultRetentionMillis": milliseconds(snapshot.properties.deleted_file_retention),
    }
    if retention is not None:
        parameters["specifiedRetentionMillis"] = milliseconds(retention)
    start = Transaction(snapshot, "VACUUM START", parameters, commit, clock=clock)
    planned = {"num_files_to_delete": doomed.num_rows, "size_of_data_to_delete": int(pc.sum(doomed["size"]).as_py() or 0)}
    started = _commit_if_room(start, planned) or snapshot.refresh()
    if started.version > snapshot.version + (start.committed is not None):  # what came in between may have brought files back
        if inventory is None:
            doomed = _unprotected(doomed, started, kept, cutoff)
        else:
            doomed = inventories.unprotected(doomed, started, kept, _removed_by_commits(started, cutoff), cutoff)
    if inventory is None:
        deleted, directories = _delete(snapshot.store, doomed, checksums)
    else:
        deleted = _delete_listed(snapshot.store, doomed)
        directories = _remove_folders(snapshot.location, folders)
    # Application transactions are of the first commit; the second one would meet them as done.
    after = CommitOptions(user_metadata=commit.user_metadata, info=commit.info) if commit else None
    end = Transaction(started, "VACUUM END", {"status": "COMPLETED"}, after, clock=clock)
    ended = _commit_if_room(end, {"num_deleted_files": deleted, "num_vacuumed_directories": directories})
    return ended or started, _answer(doomed)


def _commit_if_room(transaction: Transaction, metrics: dict[str, int]) -> Snapshot | None:
    """The version with the commit; None where the disk is full: vacuum is what makes room then, and it goes on without its record."""
    try:
        return transaction.commit(metrics)
    except CommitError as error:
        if not isinstance(error.__cause__, OSError) or error.__cause__.errno not in _FULL:
            raise
        log.warning("%s: no %s in the history, as the disk is full", transaction.store.location, transaction.operation)
        return None


def _retention(snapshot: Snapshot, retention: timedelta | None, enforce: bool) -> timedelta:
    table = snapshot.properties.deleted_file_retention
    if retention is None:
        return table
    if not isinstance(retention, timedelta):
        raise InvalidTypeError("retention", found=type(retention).__name__, expected="datetime.timedelta")
    if retention < timedelta(0):
        raise InvalidArgumentError("retention is negative", found=retention, expected="0 hours at least")
    if enforce and retention < table:
        raise InvalidArgumentError(
            "retention is shorter than the table's delta.deletedFileRetentionDuration: readers and writers at work may still need "
            "the files; enforce_retention=False deletes them all the same",
            found=retention,
            expected=f"at least {table}",
        )
    return retention


def _versions(snapshot: Snapshot, versions: Iterable[int]) -> list[Snapshot]:
    wanted = items_of(versions, "keep_versions")
    for version in wanted:
        if isinstance(version, bool) or not isinstance(version, int):
            raise InvalidTypeError("keep_versions", found=repr(version), expected="version numbers")
    return [snapshot.at(version) for version in wanted]


def _candidates(snapshot: Snapshot, cutoff: int, now: int) -> tuple[pa.Table, pa.Table]:
    """Files in the table's folder that are old enough, not hidden and no links; and Hadoop's checksums (`path`), each with the path of its
    file (`of`), null where it is old enough and its file has gone."""
    listing = snapshot.store.list_from("", None, recursive=True)
    old = pc.less(listing["modification_time"], cutoff)
    visible = _is_shown(listing, snapshot, now)
    files = pc.invert(listing["symlink"])
    checksums = listing.filter(pc.and_(files, pc.match_substring_regex(listing["path"], _CHECKSUM)))
    of = pc.replace_substring_regex(checksums["path"], _CHECKSUM, r"\1\2")
    alone = pc.and_(pc.less(checksums["modification_time"], cutoff), pc.invert(pc.is_in(of, value_set=listing["path"])))
    of = pc.if_else(alone, pa.scalar(None, pa.string()), of)
    return listing.filter(pc.and_(pc.and_(old, visible), files)), pa.table({"path": checksums["path"], "of": of})


def _is_shown(listing: pa.Table, snapshot: Snapshot, now: int) -> pa.Array:
    """Which files have no hidden name, or were left half written by a writer of the log."""
    hidden = _hidden(listing["path"], _partition_folders(snapshot))
    if iceberg.is_described(snapshot.protocol, snapshot.metadata):  # what Iceberg's readers open the table by
        hidden = pc.or_(hidden, pc.starts_with(listing["path"], f"{ICEBERG_FOLDER}/"))
    return pc.or_(pc.invert(hidden), stale_staged(listing, now))


def _partition_folders(snapshot: Snapshot) -> list[str]:
    names = {name for column in snapshot.metadata.partition_columns for name in (column, physical_name(snapshot.schema.field(column)))}
    return [f"{name}=" for name in sorted(names) if name.startswith(("_", "."))]


def _hidden(paths: pa.ChunkedArray, partition_folders: Sequence[str]) -> pa.ChunkedArray:
    exceptions = "|".join(re.escape(name) for name in (*_DATA_FOLDERS, *partition_folders))
    shown = pc.replace_substring_regex(paths, rf"(^|/)(?:{exceptions})", r"\1shown")
    shown = pc.replace_substring_regex(shown, _STAGED, r"\1shown")
    shown = pc.replace_substring_regex(shown, _ATTEMPTS, r"\1/\2")
    return pc.match_substring_regex(shown, r"(^|/)[_.]")


def _unprotected(candidates: pa.Table, snapshot: Snapshot, kept: Sequence[Snapshot], cutoff: int) -> pa.Table:
    if not candidates.num_rows:
        return candidates
    location = snapshot.location
    tables = [each.core.files(each.table_schema).adds for each in (snapshot, *kept)]
    protected = [references.referenced(table, location) for table in tables]
    protected.append(references.referenced(snapshot.core.tombstones(cutoff), location))
    # A checkpoint drops tombstones by the table's own retention: for a longer one, the commits since then still know them.
    protected.append(_removed(snapshot, cutoff))
    return candidates.filter(pc.invert(pc.is_in(candidates["path"], value_set=pa.concat_arrays(protected))))


def _removed(snapshot: Snapshot, since: int) -> pa.Array:
    """Files that a tombstone of the snapshot (`since` 0) or a commit written at `since` (ms) or later removed."""
    found = list(_removed_by_commits(snapshot, since))
    if since == 0 and (tombstones := snapshot.core.tombstones()).num_rows:
        found.append(references.referenced(tombstones, snapshot.location))
    return pa.concat_arrays(found) if found else pa.array([], pa.string())


def _removed_by_commits(snapshot: Snapshot, since: int) -> Iterator[pa.Array]:
    """Files that commits written at `since` (ms) or later removed, of each commit."""
    for version, modified in sorted(list_log(snapshot.store).commits.items()):
        if modified >= since and version <= snapshot.version:
            removes = _core.read_commit(snapshot.store, version, commit_path(version)).removes
            if removes.num_rows:
                yield references.referenced(removes, snapshot.location)


def _change_files(snapshot: Snapshot) -> pa.Array:
    """Files of changes that the log still names; those that are old enough go."""
    versions = [version for version in sorted(list_log(snapshot.store).commits) if version <= snapshot.version]
    read = (_core.read_commit(snapshot.store, version, commit_path(version)) for version in versions)
    paths = [str(parse_json(text)["path"]) for commit in read for text in commit.change_files]
    return references.data_files(pa.table({"path": pa.array(paths, pa.string())}), snapshot.location)


def _not_linked(files: pa.Table, location: str) -> pa.Table:
    """Returns the files of an inventory that neither are symbolic links nor lie below one. A listing says which files are links, an
    inventory does not."""
    if "://" in location or not files.num_rows:
        return files
    root, folders = os.path.realpath(location), dict[str, bool]()

    def is_plain(path: str) -> bool:
        folder, _, name = path.rpartition("/")
        if folder not in folders:
            folders[folder] = os.path.realpath(os.path.join(root, folder)) == os.path.join(root, folder).rstrip("/")
        return folders[folder] and not os.path.islink(os.path.join(root, folder, name))

    plain = np.fromiter((is_plain(path.as_py()) for path in files["path"]), bool, files.num_rows)
    return files if plain.all() else files.filter(pa.array(plain))


def _delete_listed(store: _core.Store, files: pa.Table) -> int:
    """Deletes files of an inventory, some at a time, and on a local disk what Hadoop keeps as their checksums, which need not be there."""
    deleted = 0
    for start in range(0, files.num_rows, _DELETED_AT_ONCE):
        paths = files["path"].slice(start, _DELETED_AT_ONCE).combine_chunks()
        deleted += store.delete(paths)
        if "://" not in store.location:
            store.delete(pc.replace_substring_regex(paths, r"([^/]+)$", r".\1.crc"))
    return deleted


def _remove_folders(location: str, folders: Sequence[str]) -> int:
    """Removes those of the folders that are empty, the innermost first; -> how many."""
    root, count = os.path.realpath(location), 0
    for folder in folders:
        path = os.path.join(root, folder)
        if os.path.realpath(path) == path:  # no link leads there
            with suppress(OSError):  # it is not empty, or gone
                os.rmdir(path)
                count += 1
    return count


def _delete(store: _core.Store, doomed: pa.Table, checksums: pa.Table) -> tuple[int, int]:
    if not doomed.num_rows:
        return 0, 0
    deleted = store.delete(doomed["path"].combine_chunks())
    # After their files: a checksum without its file is known as such by the next vacuum, a file without its checksum is as good as with it.
    idle = pc.or_(pc.is_null(checksums["of"]), pc.is_in(checksums["of"], value_set=doomed["path"]))
    store.delete(checksums["path"].filter(idle).combine_chunks())
    nested = pc.any(pc.match_substring(doomed["path"], "/")).as_py()
    return deleted, store.remove_empty_directories() if nested else 0


def _answer(doomed: pa.Table) -> pa.Table:
    times = doomed["modification_time"].cast(pa.timestamp("ms", tz="UTC")).cast(pa.timestamp("us", tz="UTC"))
    return pa.table({"path": doomed["path"], "size": doomed["size"], "modification_time": times})
