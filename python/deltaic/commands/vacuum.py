"""VACUUM: deletes the files that no version within the retention needs (PROTOCOL.md: Vacuum Protocol Check;
delta-spark: VACUUM).

VACUUM keeps:
- data files and vector files of the newest version, of `keep_versions`, and of tombstones that have not
  expired,
- files that are newer than the retention, by the store's clock,
- hidden files (names that begin with `_` or `.`), except temporary files of killed writers (those of the log
  after a day),
- everything behind a symbolic link.

Hadoop writes a checksum `.X.crc` beside each file X in a local folder. It is deleted together with X, and not
counted.
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
from deltaic.commands.marking import total_size
from deltaic.errors import CommitError, InvalidArgumentError, InvalidTypeError, items_of
from deltaic.log import references, vacuum_info
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
# Maximum number of files in one call of `Store.delete`
_DELETED_AT_ONCE = 10_000
_FULL = (errno.ENOSPC, errno.EDQUOT)
# Folders of delta-spark with data, which are not hidden although their names begin with an underscore.
_DATA_FOLDERS = ("_delta_index", "_change_data")
# Files that killed writers leave behind: temporary files (rust/src/store/local.rs), and attempts of Spark's
# tasks in the folder of a write (engine/spark/write.py).
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
    logged: bool = True,
    needs_log: bool = False,
    commit: CommitOptions | None = None,
    clock: Clock = now_ms,
) -> tuple[Snapshot, pa.Table]:
    """Deletes files. Returns the newest snapshot and the deleted files (with `dry_run` those that would be):
    path, size (bytes), modification_time (UTC). If there is no file to delete, nothing is committed.

    `retention`: None: `delta.deletedFileRetentionDuration`; a shorter one requires `enforce_retention=False`.
    `mode`: "lite" deletes only files that the log has as removed, "full" also files that are not in the log.
    `keep_versions`: versions whose files are kept.
    `inventory`: a list of the files, instead of a listing of the table (`inventory.py`).
    `logged`: False to commit nothing.
    `needs_log`: True to refuse "lite" if the log has lost commits since the last VACUUM, as delta-spark does.
    """
    if mode not in ("full", "lite"):
        raise InvalidArgumentError("unknown mode of vacuum", found=repr(mode), expected="'full' or 'lite'")
    if needs_log and mode == "lite" and inventory is None:
        vacuum_info.check_log(snapshot.store)
    features.check_maintained(snapshot.protocol, "VACUUM")
    features.check_writable(snapshot.protocol, snapshot.metadata, domains=snapshot.domains)
    retained = _retention(snapshot, retention, enforce_retention and not dry_run)
    kept = _versions(snapshot, keep_versions)
    now = clock()
    cutoff = now - milliseconds(retained)
    newest = snapshot
    with nullcontext() if inventory is None else inventories.freeing_memory():
        found: _Listed | _Inventoried = (
            _Listed(snapshot, kept, cutoff, now)
            if inventory is None
            else _Inventoried(snapshot, kept, cutoff, now, inventory)
        )
        doomed = found.doomed if mode == "full" else _in_log(found.doomed, snapshot)
        if doomed.num_rows and not dry_run:
            start = _start(snapshot, retention, enforce_retention, commit, clock)
            newest, doomed = _delete(snapshot, found, doomed, start, _at_end(commit), logged=logged)
    if needs_log and inventory is None and not (dry_run or keep_versions):
        vacuum_info.write_version(snapshot, cutoff)
    return newest, _answer(doomed)


class _Listed:
    """The files that a listing of the table's folder has. `doomed`: those that no version needs."""

    def __init__(self, snapshot: Snapshot, kept: Sequence[Snapshot], cutoff: int, now: int) -> None:
        self._kept, self._cutoff = kept, cutoff
        candidates, self._checksums = _candidates(snapshot, cutoff, now)
        self.doomed = self.unprotected(candidates, snapshot)

    def unprotected(self, files: pa.Table, snapshot: Snapshot) -> pa.Table:
        """Returns the files that neither the snapshot nor a version to keep needs."""
        return _unprotected(files, snapshot, self._kept, self._cutoff)

    def delete(self, files: pa.Table, store: _core.Store) -> tuple[int, int]:
        """Deletes files and their checksums. Returns the numbers of deleted files and of removed folders."""
        if not files.num_rows:
            return 0, 0
        deleted = store.delete(files["path"].combine_chunks())
        # Checksums are deleted after their files. If that is interrupted, the next VACUUM deletes the
        # checksums without files.
        of = self._checksums["of"]
        idle = pc.or_(pc.is_null(of), pc.is_in(of, value_set=files["path"]))
        store.delete(self._checksums["path"].filter(idle).combine_chunks())
        nested = pc.any(pc.match_substring(files["path"], "/")).as_py()
        return deleted, store.remove_empty_directories() if nested else 0


class _Inventoried:
    """The files that an inventory has, as `_Listed`."""

    def __init__(
        self, snapshot: Snapshot, kept: Sequence[Snapshot], cutoff: int, now: int, inventory: Any
    ) -> None:
        self._kept, self._cutoff = kept, cutoff
        listed = inventories.deletable_files(
            snapshot,
            inventory,
            kept=kept,
            removed=_removed_by_commits(snapshot, cutoff),
            cutoff=cutoff,
            is_shown=lambda files: _is_shown(files, snapshot, now),
        )
        self.doomed, self._folders = _not_linked(listed.files, snapshot.location), listed.folders

    def unprotected(self, files: pa.Table, snapshot: Snapshot) -> pa.Table:
        """Returns the files that neither the snapshot nor a version to keep needs."""
        removed = _removed_by_commits(snapshot, self._cutoff)
        return inventories.unprotected(files, snapshot, self._kept, removed, self._cutoff)

    def delete(self, files: pa.Table, store: _core.Store) -> tuple[int, int]:
        """Deletes files, and on a local disk their checksums. Returns the numbers of deleted files and of
        removed folders."""
        return _delete_listed(store, files), _remove_folders(store.location, self._folders)


def _delete(
    snapshot: Snapshot,
    found: _Listed | _Inventoried,
    doomed: pa.Table,
    start: Transaction,
    at_end: CommitOptions | None,
    *,
    logged: bool,
) -> tuple[Snapshot, pa.Table]:
    """Deletes files between the commits `start` and VACUUM END. Returns the newest snapshot and the deleted
    files: `doomed` without files that commits in between have added again."""
    planned = {"num_files_to_delete": doomed.num_rows, "size_of_data_to_delete": total_size(doomed)}
    started = (logged and _commit_if_room(start, planned)) or snapshot.refresh()
    if started.version > snapshot.version + (start.committed is not None):
        doomed = found.unprotected(doomed, started)
    deleted, folders = found.delete(doomed, snapshot.store)
    if not logged:
        return started, doomed
    end = Transaction(started, "VACUUM END", {"status": "COMPLETED"}, at_end, clock=start.clock)
    ended = _commit_if_room(end, {"num_deleted_files": deleted, "num_vacuumed_directories": folders})
    return ended or started, doomed


def _at_end(commit: CommitOptions | None) -> CommitOptions | None:
    """Returns the options of VACUUM END. Only the first commit has the application transactions; with them,
    the second one would count as done already."""
    return CommitOptions(user_metadata=commit.user_metadata, info=commit.info) if commit else None


def _in_log(files: pa.Table, snapshot: Snapshot) -> pa.Table:
    """Returns the files that the log has as removed, or as change files: "lite" deletes no others."""
    named = pa.concat_arrays([_removed(snapshot, 0), _change_files(snapshot)])
    return files.filter(_named(files["path"], named))


def _start(
    snapshot: Snapshot,
    retention: timedelta | None,
    enforce_retention: bool,
    commit: CommitOptions | None,
    clock: Clock,
) -> Transaction:
    """Returns the transaction of VACUUM START, with delta-spark's parameters."""
    parameters: dict[str, object] = {
        "retentionCheckEnabled": enforce_retention,
        "defaultRetentionMillis": milliseconds(snapshot.properties.deleted_file_retention),
    }
    if retention is not None:
        parameters["specifiedRetentionMillis"] = milliseconds(retention)
    return Transaction(snapshot, "VACUUM START", parameters, commit, clock=clock)


def _commit_if_room(transaction: Transaction, metrics: dict[str, int]) -> Snapshot | None:
    """Commits and returns the new version; None if the disk is full. VACUUM then continues without the
    commit, as it frees space."""
    try:
        return transaction.commit(metrics)
    except CommitError as error:
        if not isinstance(error.__cause__, OSError) or error.__cause__.errno not in _FULL:
            raise
        log.warning(
            "%s: no %s in the history, as the disk is full", transaction.store.location, transaction.operation
        )
        return None


def hours(number: float) -> timedelta:
    """Returns a retention of a number of hours. Raises InvalidArgumentError for NaN, and for more hours than
    a timedelta holds."""
    try:
        return timedelta(hours=number)
    except (OverflowError, ValueError):
        raise InvalidArgumentError(
            "retention is out of range", found=f"{number} hours", expected="less than 24000000000 hours"
        ) from None


def _retention(snapshot: Snapshot, retention: timedelta | None, enforce: bool) -> timedelta:
    table = snapshot.properties.deleted_file_retention
    if retention is None:
        return table
    if not isinstance(retention, timedelta):
        raise InvalidTypeError(
            "retention has the wrong type", found=type(retention).__name__, expected="datetime.timedelta"
        )
    if retention < timedelta(0):
        raise InvalidArgumentError("retention is negative", found=retention, expected="0 hours at least")
    if enforce and retention < table:
        error = InvalidArgumentError(
            "retention is shorter than the table's delta.deletedFileRetentionDuration: running readers and"
            " writers may still need the files; enforce_retention=False deletes them anyway",
            found=retention,
            expected=f"at least {table}",
        )
        raise error.with_values(hours=table // timedelta(hours=1))
    return retention


def _versions(snapshot: Snapshot, versions: Iterable[int]) -> list[Snapshot]:
    numbers = items_of(versions, "keep_versions")
    for version in numbers:
        if isinstance(version, bool) or not isinstance(version, int):
            raise InvalidTypeError("invalid keep_versions", found=repr(version), expected="version numbers")
    return [snapshot.at(version) for version in numbers]


def _candidates(snapshot: Snapshot, cutoff: int, now: int) -> tuple[pa.Table, pa.Table]:
    """Lists the table's folder. Returns the files that are older than `cutoff`, not hidden and no links, and
    Hadoop's checksums: `path`, and the path of the file (`of`), null for an old checksum whose file is
    missing."""
    listing = snapshot.store.list_from("", None, recursive=True)
    old = pc.less(listing["modification_time"], cutoff)
    visible = _is_shown(listing, snapshot, now)
    files = pc.invert(listing["symlink"])
    checksums = listing.filter(pc.and_(files, pc.match_substring_regex(listing["path"], _CHECKSUM)))
    of = pc.replace_substring_regex(checksums["path"], _CHECKSUM, r"\1\2")
    alone = pc.and_(
        pc.less(checksums["modification_time"], cutoff), pc.invert(pc.is_in(of, value_set=listing["path"]))
    )
    of = pc.if_else(alone, pa.scalar(None, pa.string()), of)
    return listing.filter(pc.and_(pc.and_(old, visible), files)), pa.table(
        {"path": checksums["path"], "of": of}
    )


def _is_shown(listing: pa.Table, snapshot: Snapshot, now: int) -> pa.Array:
    """Returns a mask of files that are not hidden, or are old temporary files of the log."""
    hidden = _hidden(listing["path"], _partition_folders(snapshot))
    # readers of Iceberg need the folder with its metadata
    if iceberg.is_described(snapshot.protocol, snapshot.metadata):
        hidden = pc.or_(hidden, pc.starts_with(listing["path"], f"{ICEBERG_FOLDER}/"))
    return pc.or_(pc.invert(hidden), stale_staged(listing, now))


def _partition_folders(snapshot: Snapshot) -> list[str]:
    names = {
        name
        for column in snapshot.metadata.partition_columns
        for name in (column, physical_name(snapshot.schema.field(column)))
    }
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
    # A checkpoint omits tombstones older than the table's retention. If `retention` is longer, they are read
    # from the commits.
    protected.append(_removed(snapshot, cutoff))
    return candidates.filter(pc.invert(_named(candidates["path"], pa.concat_arrays(protected))))


def _named(paths: pa.ChunkedArray, named: pa.Array) -> pa.ChunkedArray:
    """Returns a mask of the paths of a listing that the log names."""
    return pc.is_in(references.folded(paths), value_set=references.folded(named))


def _removed(snapshot: Snapshot, since: int) -> pa.Array:
    """Returns the files that commits written at `since` (ms) or later removed; for `since` 0 with those of
    all tombstones."""
    paths = list(_removed_by_commits(snapshot, since))
    if since == 0 and (tombstones := snapshot.core.tombstones()).num_rows:
        paths.append(references.referenced(tombstones, snapshot.location))
    return pa.concat_arrays(paths) if paths else pa.array([], pa.string())


def _removed_by_commits(snapshot: Snapshot, since: int) -> Iterator[pa.Array]:
    """Yields the files that each commit written at `since` (ms) or later removed."""
    for version, modified in sorted(list_log(snapshot.store).commits.items()):
        if modified >= since and version <= snapshot.version:
            removes = _core.read_commit(snapshot.store, version, commit_path(version)).removes
            if removes.num_rows:
                yield references.referenced(removes, snapshot.location)


def _change_files(snapshot: Snapshot) -> pa.Array:
    """Returns the change files in the commits of the log; "lite" deletes them when they are old enough."""
    versions = [
        version for version in sorted(list_log(snapshot.store).commits) if version <= snapshot.version
    ]
    read = (_core.read_commit(snapshot.store, version, commit_path(version)) for version in versions)
    paths = [str(parse_json(text)["path"]) for commit in read for text in commit.change_files]
    return references.data_files(pa.table({"path": pa.array(paths, pa.string())}), snapshot.location)


def _not_linked(files: pa.Table, location: str) -> pa.Table:
    """Returns the files of an inventory that are no symbolic links and not below one. Unlike a listing, an
    inventory does not show which files are links."""
    if "://" in location or not files.num_rows:
        return files
    root, folders = os.path.realpath(location), dict[str, bool]()

    def is_plain(path: str) -> bool:
        folder, _, name = path.rpartition("/")
        if folder not in folders:
            folders[folder] = os.path.realpath(os.path.join(root, folder)) == os.path.normpath(
                os.path.join(root, folder)
            )
        return folders[folder] and not os.path.islink(os.path.join(root, folder, name))

    plain = np.fromiter((is_plain(path.as_py()) for path in files["path"]), bool, files.num_rows)
    return files if plain.all() else files.filter(pa.array(plain))


def _delete_listed(store: _core.Store, files: pa.Table) -> int:
    """Deletes files of an inventory in batches, and on a local disk their Hadoop checksums, if there are
    any."""
    deleted = 0
    for start in range(0, files.num_rows, _DELETED_AT_ONCE):
        paths = files["path"].slice(start, _DELETED_AT_ONCE).combine_chunks()
        deleted += store.delete(paths)
        if "://" not in store.location:
            store.delete(pc.replace_substring_regex(paths, r"([^/]+)$", r".\1.crc"))
    return deleted


def _remove_folders(location: str, folders: Sequence[str]) -> int:
    """Removes empty folders, the innermost first. Returns their number."""
    root, count = os.path.realpath(location), 0
    for folder in folders:
        path = os.path.normpath(os.path.join(root, folder))
        if os.path.realpath(path) == path:  # the path contains no link
            with suppress(OSError):  # the folder is not empty, or does not exist
                os.rmdir(path)
                count += 1
    return count


def _answer(doomed: pa.Table) -> pa.Table:
    times = doomed["modification_time"].cast(pa.timestamp("ms", tz="UTC")).cast(pa.timestamp("us", tz="UTC"))
    return pa.table({"path": doomed["path"], "size": doomed["size"], "modification_time": times})
