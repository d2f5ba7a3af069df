"""Writes compacted ranges of the log: one file for several commits (PROTOCOL.md: Log Compaction Files)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from deltaic import _core
from deltaic.errors import InvalidArgumentError, InvalidTypeError, VersionNotFoundError
from deltaic.log.segment import LOG, commit_path, list_log

if TYPE_CHECKING:
    from deltaic.log.snapshot import Snapshot

log = logging.getLogger("deltaic.log")


def compacted_path(first: int, last: int) -> str:
    """Returns the path of a compacted range, relative to the table."""
    return f"{LOG}/{first:020}.{last:020}.compacted.json"


def compact(snapshot: Snapshot, first: int, last: int) -> str:
    """Writes one file with the actions of the commits `first` to `last`, both inclusive. Returns its path.

    An existing file is kept. An empty or invalid range is an InvalidArgumentError; a commit that is not in
    the log is a VersionNotFoundError.
    """
    for name, value in (("starting_version", first), ("ending_version", last)):
        if isinstance(value, bool) or not isinstance(value, int):
            raise InvalidTypeError(f"{name} has the wrong type", found=repr(value), expected="a version")
    if not 0 <= first < last:
        raise InvalidArgumentError(
            "a range of the log must have at least two commits",
            found=f"{first} to {last}",
            expected="0 <= start < end",
        )
    listing = list_log(snapshot.store, first)
    commits = listing.commits
    if unpublished := [
        version
        for version in listing.staged
        if version <= last and snapshot.store.head(commit_path(version)) is None
    ]:
        raise InvalidArgumentError(
            "only published commits can be compacted",
            where=snapshot.location,
            found=f"version {unpublished[0]}, which is staged",
        )
    missing = next(
        (version for version in range(first, min(last, snapshot.version) + 1) if version not in commits), None
    )
    if missing is not None or last > snapshot.version:
        raise VersionNotFoundError(
            "no such commit to compact",
            where=snapshot.location,
            found=last if missing is None else missing,
            expected=f"commits up to version {snapshot.version} that the log still has",
        )
    data = _core.compact_commits(
        snapshot.store, [(version, commit_path(version)) for version in range(first, last + 1)]
    )
    path = compacted_path(first, last)
    if snapshot.store.put_if_absent(path, data) == "exists":
        log.info("%s: %s is there already", snapshot.location, path)
    return path
