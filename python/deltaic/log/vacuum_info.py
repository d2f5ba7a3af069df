"""The file `_last_vacuum_info`, in which delta-spark keeps the last commit whose removed files a VACUUM has
deleted. On Spark, VACUUM LITE needs it when the first commits of the log do not exist any more."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING

from deltaic.errors import DeltaError, InvalidArgumentError
from deltaic.log.segment import list_log
from deltaic.protocol.bounded_json import parse_json

if TYPE_CHECKING:
    from deltaic import _core
    from deltaic.log.snapshot import Snapshot

log = logging.getLogger("deltaic.log")

LAST_VACUUM = "_delta_log/_last_vacuum_info"
_VERSION = "latestCommitVersionOutsideOfRetentionWindow"
_MOST_BYTES = 1 << 16
"""Maximum bytes of the file; a larger one is ignored."""


def read_version(store: _core.Store) -> int | None:
    """Reads the version in the file; None if there is none, as after a VACUUM FULL of delta-spark."""
    try:
        document = parse_json(store.get(LAST_VACUUM, most=_MOST_BYTES))
    except (OSError, DeltaError, ValueError, RecursionError):
        return None
    version = document.get(_VERSION) if isinstance(document, dict) else None
    return version if isinstance(version, int) and not isinstance(version, bool) else None


def check_log(store: _core.Store) -> None:
    """Raises InvalidArgumentError if a VACUUM LITE could not find all files, because commits after the last
    VACUUM do not exist any more."""
    first = min(list_log(store).commits, default=0)
    version = read_version(store) if first else None
    if first and (version is None or version < first):
        raise InvalidArgumentError(
            "[DELTA_CANNOT_VACUUM_LITE] VACUUM LITE cannot find all files to delete, because the log has lost"
            " commits since the last VACUUM",
            where=store.location,
            found=f"first commit {first}, last VACUUM up to {'none' if version is None else version}",
            expected="VACUUM FULL",
        )


def write_version(snapshot: Snapshot, cutoff: int) -> None:
    """Writes the last commit that is not newer than `cutoff` (ms), if there is one. A failure is only logged:
    the file saves a VACUUM FULL and nothing else."""
    commits = list_log(snapshot.store).commits
    old = [version for version, time in commits.items() if time <= cutoff and version <= snapshot.version]
    if not old:
        return
    try:
        snapshot.store.put(LAST_VACUUM, json.dumps({_VERSION: max(old)}, separators=(",", ":")).encode())
    except (DeltaError, OSError) as error:
        log.warning("%s: %s could not be written: %s", snapshot.location, LAST_VACUUM, error)
