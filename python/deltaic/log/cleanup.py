"""Removing the log's expired files (PROTOCOL.md: Metadata Cleanup)."""

from __future__ import annotations

import logging
import re
from datetime import timedelta
from typing import TYPE_CHECKING

import pyarrow as pa

from deltaic.log.history import commit_times
from deltaic.log.segment import LOG, Listing, parse_listing

if TYPE_CHECKING:
    from deltaic.log.snapshot import Snapshot

log = logging.getLogger("deltaic.log")

_DAY_MS = 86_400_000
# Files of the log that belong to a version: commits, their checksums, compacted ranges, checkpoints of every kind.
_OF_A_VERSION = re.compile(r"(\d{20})\.(?:json|crc|(\d{20})\.compacted\.json|checkpoint\.[0-9A-Za-z.-]+)")


def milliseconds(duration: timedelta) -> int:
    """A duration in whole ms."""
    return duration // timedelta(milliseconds=1)


def clean(snapshot: Snapshot, *, now: int, retention: timedelta | None = None) -> int:
    """Deletes what no unexpired version and not this snapshot needs; -> how many files.

    A version is expired when it is older than `delta.logRetentionDuration`, counted from the midnight (UTC) before `now` (ms). Kept is
    all from the newest checkpoint on that the oldest unexpired version can be built from; without such a checkpoint, everything.
    """
    cutoff = (now - milliseconds(snapshot.properties.log_retention)) // _DAY_MS * _DAY_MS
    if retention is not None:
        cutoff = now - milliseconds(retention)
    entries = snapshot.store.list_from(LOG, None)
    paths: list[str] = entries.column("path").to_pylist()
    listing = parse_listing(
        list(zip(paths, entries.column("size").to_pylist(), entries.column("modification_time").to_pylist(), strict=True))
    )
    first_kept = _first_kept(snapshot, listing, cutoff)
    if first_kept is None:
        return 0
    expired = [path for path in paths if _last_version(path) < first_kept]
    if not expired:
        return 0
    count = snapshot.store.delete(pa.array(expired, pa.string()))
    log.info("%s: %d expired files of the log are gone; it begins with version %d", snapshot.location, count, first_kept)
    return count


def _first_kept(snapshot: Snapshot, listing: Listing, cutoff: int) -> int | None:
    times = commit_times(listing)
    # The newest version never expires.
    needed = min((version for version, time in times.items() if time >= cutoff), default=snapshot.version)
    needed = min(needed, snapshot.version)
    base = next((checkpoint.version for checkpoint in listing.checkpoints if checkpoint.version <= needed), None)
    if base is None or base < snapshot.properties.checkpoint_protection_before_version:
        return None
    return base


def _last_version(path: str) -> int:
    """The newest version that a file of the log is for; a huge one for files that belong to none."""
    match = _OF_A_VERSION.fullmatch(path.rsplit("/", 1)[-1])
    return int(match[2] or match[1]) if match else 2**64
