"""Finds the newest files of a log on a local disk by their names. A listing of the folder takes time in
proportion to all files of the log; the lookups take time in proportion to the files after the checkpoint.

The versions of a log follow each other without a gap. So the first commit that is missing after a known
version is the next one to be written, unless the log is broken or is being cleaned. Lookups further ahead
notice that: each function then returns None, as it does wherever names cannot be known, and the caller lists
the folder.

Compacted ranges, and checkpoints that `_last_checkpoint` does not name, are not found. A version is built
without them from the same commits. (A checkpoint whose commit and all commits before it up to the known
version are missing is found only by a listing. A cleanup that leaves such a log also updates
`_last_checkpoint`.)
"""

from __future__ import annotations

from collections.abc import Sequence

from deltaic._core import Store
from deltaic.log import catalog, intents
from deltaic.log import hint as last_checkpoint
from deltaic.log.hint import Hint

Entry = tuple[str, int, int]
"""Path, size in bytes and modification time in ms of a file."""

MOST_FOLLOWING = 100
"""Maximum number of commits after the known version. If there are more, the folder is listed, as it may have
newer checkpoints or compacted ranges."""
_AT_ONCE = 12
"""Number of names of the first lookup: the usual commits after a checkpoint."""
# Distances from the newest version at which no commit may exist. Together they notice every gap of at most 63
# versions, and a longer one if it has no more versions than follow it.
_NEAR = tuple(range(2, 65))
_FAR = tuple(1 << exponent for exponent in range(7, 31))
_LOG = "_delta_log"
_MAX_VERSION = 2**63 - 1


def from_hint(store: Store, hint: Hint) -> list[Entry] | None:
    """Returns the files of the log from the checkpoint of `_last_checkpoint` on: the checkpoint, the commits,
    and the checksum of the newest version. None if the folder must be listed."""
    names = hint.names
    checkpoint = _look_up(store, names)
    if not names or checkpoint is None or any(file is None for file in checkpoint):
        return None
    commits = _commits(store, hint.version)
    if commits is None:
        return None
    latest = max(commits, default=hint.version)
    checksum = [f"{latest:020}.crc"]
    checksums = _look_up(store, checksum)
    if checksums is None or not _is_newest(store, latest, hint):
        return None
    files = zip(
        (*names, *map(_commit, commits), *checksum), (*checkpoint, *commits.values(), *checksums), strict=True
    )
    return [(f"{_LOG}/{name}", *file) for name, file in files if file is not None]


def following(store: Store, version: int) -> list[Entry] | None:
    """Returns the commits after a version whose commit exists. None if the folder must be listed."""
    commits = _commits(store, version)
    if commits is None or version not in commits or not _is_newest(store, max(commits), None):
        return None
    return [(f"{_LOG}/{_commit(each)}", *file) for each, file in commits.items() if each > version]


def last_of(store: Store, first: int) -> int | None:
    """Returns the last of the contiguous versions from `first` on, whose commit exists. None if the folder
    must be listed."""
    commits = _commits(store, first)
    return None if commits is None or first not in commits else max(commits)


def _commit(version: int) -> str:
    return f"{version:020}.json"


def _look_up(store: Store, names: Sequence[str]) -> list[tuple[int, int] | None] | None:
    return store.look_up(_LOG, names) if names else []


def _commits(store: Store, first: int) -> dict[int, tuple[int, int]] | None:
    """Returns size and modification time of the contiguous commits from `first` on, or from the version after
    it if the commit of `first` is missing. None if there are too many, a commit follows the first one that is
    missing, or the store or a catalog does not allow lookups."""
    if (
        MOST_FOLLOWING <= 0
        or first > _MAX_VERSION - _AT_ONCE - MOST_FOLLOWING
        or catalog.has_coordinator(store)
    ):
        return None
    commits: dict[int, tuple[int, int]] = {}
    start = first
    while len(commits) <= MOST_FOLLOWING:
        files = store.look_up(_LOG, [_commit(version) for version in range(start, start + _AT_ONCE)])
        if files is None:
            return None
        commits.update((version, file) for version, file in enumerate(files, start) if file is not None)
        if files[-1] is None:
            is_gapless = all(
                version in commits for version in range(first + 1, max(commits, default=first) + 1)
            )
            return commits if is_gapless else None
        start += _AT_ONCE
    return None


def _is_newest(store: Store, version: int, hint: Hint | None) -> bool:
    """True if no sign of a version after this one is found.

    A cleanup in another process deletes commits after it has written `_last_checkpoint` with a newer version.
    The mark of transactions over several tables is looked up last: a transaction makes it before its first
    commit."""
    distances = [each for each in (*_NEAR, *_FAR) if version + each <= _MAX_VERSION]
    ahead = store.look_up(
        _LOG, [*(_commit(version + each) for each in distances), _commit(version), intents.MARK]
    )
    if ahead is None or any(file is not None for file in (*ahead[:-2], ahead[-1])):
        return False
    if ahead[-2] is None and (hint is None or hint.version != version):
        return False  # the commit was deleted meanwhile
    if hint is not None:
        return last_checkpoint.read(store) == hint
    named = last_checkpoint.read_version(store)
    return named is None or named <= version
