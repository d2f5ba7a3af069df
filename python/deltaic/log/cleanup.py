"""Deletes expired files of the log (PROTOCOL.md: Metadata Cleanup, Checkpoint Protection)."""

from __future__ import annotations

import logging
import re
import threading
from collections import OrderedDict
from datetime import timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from deltaic import _core
from deltaic.errors import DeltaError
from deltaic.log import intents
from deltaic.log.history import commit_times
from deltaic.log.segment import (
    LOG,
    Checkpoint,
    Listing,
    checkpoint_path,
    commit_path,
    list_log,
    parse_listing,
)
from deltaic.process_state import ProcessState
from deltaic.protocol import features
from deltaic.protocol.actions import Protocol

if TYPE_CHECKING:
    from deltaic.log.snapshot import Snapshot

log = logging.getLogger("deltaic.log")

SIDECARS = f"{LOG}/_sidecars"
_DAY_MS = 86_400_000
# Temporary files of the log, which are renamed when they are complete (rust/src/store/local.rs). A writer at
# work writes such a file at once, so it is young.
STAGED = rf"^{LOG}/(?:_sidecars/)?\.[^/]{{1,40}}\.[0-9a-f]{{32}}\.tmp$"
STAGED_AGE = _DAY_MS
"""Age (ms) from which a temporary file of the log counts as left behind by a writer that was killed."""
# Number of files of a log for each commit after which it is cleaned again, the least number of commits, and
# the ms after which it is cleaned again in any case. A log of 20,000 files is cleaned at the first checkpoint
# after 500 more commits.
_NAMES_PER_COMMIT = 40
_LEAST_COMMITS = 100
_PAUSE = 3_600_000
# Maximum number of tables; above it, the least recently cleaned one is cleaned at its next checkpoint.
_MOST_TABLES = 1000
# Files of the log that belong to a version: commits, their checksums, checkpoints of every kind.
_OF_A_VERSION = re.compile(r"(\d{20})\.(?:json|crc|checkpoint\.[0-9A-Za-z.-]+)")
_COMPACTED = re.compile(r"(\d{20})\.\d{20}\.compacted\.json")


def milliseconds(duration: timedelta) -> int:
    """Converts a duration to whole ms."""
    return duration // timedelta(milliseconds=1)


class _Cleanings(ProcessState):
    """The last automatic cleanup of each log by this process. A forked child starts with none."""

    def reset(self) -> None:
        self._lock = threading.Lock()
        self._next: OrderedDict[tuple[str, str, timedelta], tuple[int, int]] = OrderedDict()

    def is_due(self, snapshot: Snapshot, now: int) -> bool:
        with self._lock:
            version, time = self._next.get(self._key(snapshot), (-1, now))
        return not (snapshot.version < version and time - _PAUSE <= now < time)

    def done(self, snapshot: Snapshot, now: int, names: int) -> None:
        """`names`: number of files in the log's folder."""
        with self._lock:
            self._next.pop(self._key(snapshot), None)
            self._next[self._key(snapshot)] = (
                snapshot.version + max(names // _NAMES_PER_COMMIT, _LEAST_COMMITS),
                now + _PAUSE,
            )
            while len(self._next) > _MOST_TABLES:
                self._next.popitem(last=False)

    def _key(self, snapshot: Snapshot) -> tuple[str, str, timedelta]:
        return snapshot.location, snapshot.metadata.id, snapshot.properties.log_retention


_CLEANINGS = _Cleanings()


def clean_if_due(snapshot: Snapshot, *, now: int) -> int:
    """Like `clean`, but does nothing if this process cleaned the log a short time ago and the log has hardly
    grown since then: listing a long log takes much longer than a commit."""
    return clean(snapshot, now=now) if _CLEANINGS.is_due(snapshot, now) else 0


def clean(snapshot: Snapshot, *, now: int, retention: timedelta | None = None) -> int:
    """Deletes the files of the log that neither an unexpired version nor this snapshot needs. Returns their
    number.

    A version is expired if it is older than the midnight (UTC) before `now` (ms) minus
    `delta.logRetentionDuration`: with 36 hours, at noon of the third of a month, versions of the first are
    expired. The log is kept from the newest readable checkpoint on that all unexpired versions can be read
    from; without such a checkpoint nothing is deleted. Also deleted are:

    - checkpoints between that one and the newest that are older than `delta.checkpointRetentionDuration`, if
      it is set,
    - sidecars that no checkpoint names and that are older than yesterday's midnight,
    - records of the same age, of transactions over several tables that have ended in all tables,
    - temporary files of killed writers, after a day.

    `retention`: used instead of `delta.logRetentionDuration`, and counted from `now` itself.
    """
    features.check_maintained(snapshot.protocol, "cleaning the log")
    midnight = now // _DAY_MS * _DAY_MS
    cutoff = (
        (now - milliseconds(snapshot.properties.log_retention)) // _DAY_MS * _DAY_MS
        if retention is None
        else now - milliseconds(retention)
    )
    entries = snapshot.store.list_from(LOG, None)
    _CLEANINGS.done(snapshot, now, entries.num_rows)
    paths: list[str] = entries.column("path").to_pylist()
    listing = parse_listing(
        list(
            zip(
                paths,
                entries.column("size").to_pylist(),
                entries.column("modification_time").to_pylist(),
                strict=True,
            )
        )
    )
    staged = _clean_staged(snapshot.store, entries, now) + _clean_transactions(
        snapshot.store, listing, now, midnight - _DAY_MS
    )
    base = _base(snapshot, listing, cutoff)
    if base is None:
        return staged
    expired = [path for path in paths if _is_expired(path, base.version)]
    expired += _between(snapshot, listing, base, midnight)
    count = 0
    if expired:
        if not _may_go(snapshot, listing, base):
            return staged
        _keep_known_by_old_readers(snapshot, listing, base, now)
        count = snapshot.store.delete(pa.array(expired, pa.string()))
        log.info(
            "%s: %d expired files of the log are gone; it begins with version %d",
            snapshot.location,
            count,
            base.version,
        )
    return staged + count + _clean_sidecars(snapshot.store, midnight - _DAY_MS)


def _base(snapshot: Snapshot, listing: Listing, cutoff: int) -> Checkpoint | None:
    """Returns the checkpoint with which the log will begin; None to keep all of it."""
    old = [version for version, time in commit_times(listing).items() if time <= cutoff]
    needed = min(max(old, default=-1), snapshot.version)
    for checkpoint in listing.checkpoints:
        if checkpoint.version > needed or checkpoint.version not in listing.commits:
            continue  # the commit of its version must exist, too: only a commit has commitInfo
        try:
            _core.checkpoint_sidecars(snapshot.store, checkpoint.parts)
        except (DeltaError, OSError) as error:
            log.warning(
                "%s: the checkpoint of version %d is of no use: %s",
                snapshot.location,
                checkpoint.version,
                error,
            )
            continue
        return checkpoint
    return None


def _between(snapshot: Snapshot, listing: Listing, base: Checkpoint, midnight: int) -> list[str]:
    """Returns the files of old checkpoints that no version needs: each version can be read from the
    checkpoint `base` and the commits after it."""
    retention = snapshot.properties.checkpoint_retention
    if retention is None:
        return []
    kept = {base.version, max(checkpoint.version for checkpoint in listing.checkpoints)}
    protected = snapshot.properties.checkpoint_protection_before_version
    old = (
        each
        for each in listing.checkpoints
        if each.version > base.version and each.version >= protected and each.version not in kept
    )
    before = midnight - milliseconds(retention)
    return [part for each in old for part in each.parts if listing.times.get(part, midnight) < before]


def _is_expired(path: str, base: int) -> bool:
    name = path.rsplit("/", 1)[-1]
    if match := _OF_A_VERSION.fullmatch(name):
        return int(match[1]) < base
    # A compacted range that begins at the base or before it contains only commits that are deleted or in the
    # checkpoint.
    match = _COMPACTED.fullmatch(name)
    return match is not None and int(match[1]) <= base


def _may_go(snapshot: Snapshot, listing: Listing, base: Checkpoint) -> bool:
    """True if PROTOCOL.md (checkpointProtection) allows the deletion: all protected versions are deleted at
    once, or this release supports the protocol of every version that is deleted."""
    if base.version >= snapshot.properties.checkpoint_protection_before_version:
        return True
    for version in sorted(version for version in listing.commits if version <= base.version):
        protocol = _core.read_commit(snapshot.store, version, commit_path(version)).protocol
        try:
            if protocol is not None:
                features.check_writable(Protocol.from_json(protocol), snapshot.metadata)
        except DeltaError as error:
            log.info(
                "%s: the log is left as it is, as its checkpoints are protected: %s", snapshot.location, error
            )
            return False
    # If the first commits are missing, a checkpoint has their protocol, which was not checked above.
    return 0 in listing.commits


def _keep_known_by_old_readers(snapshot: Snapshot, listing: Listing, base: Checkpoint, now: int) -> None:
    """Writes a classic checkpoint beside a V2 checkpoint at the beginning of the log, so that readers that do
    not know V2 checkpoints find the protocol and refuse the table."""
    from deltaic.log import checkpoint as checkpoints
    from deltaic.log.snapshot import Snapshot as Snapshots

    classic = checkpoint_path(base.version)
    if checkpoints.has_second_form(snapshot) and not any(
        classic in each.parts for each in listing.checkpoints
    ):
        at_base = Snapshots.load(snapshot.store, version=base.version)
        if checkpoints.has_second_form(at_base):
            checkpoints.write(at_base, now=now, path=classic)


def stale_staged(entries: pa.Table, now: int) -> pa.ChunkedArray:
    """Returns a mask of the listed files: True for temporary files of the log that a killed writer left
    behind."""
    old = pc.less(entries.column("modification_time"), now - STAGED_AGE)
    return pc.and_(old, pc.match_substring_regex(entries.column("path"), STAGED))


def _clean_staged(store: _core.Store, entries: pa.Table, now: int) -> int:
    stale = entries.filter(stale_staged(entries, now)).column("path").combine_chunks()
    return store.delete(stale) if len(stale) else 0


def _clean_transactions(store: _core.Store, listing: Listing, now: int, before: int) -> int:
    """Deletes intents of this table whose transactions over several tables have ended, and records that no
    table needs. Returns the number of records."""
    try:
        intents.resolve(store, listing.intents, listing.latest, now)
        return intents.clean_records(store, before)
    except (DeltaError, OSError) as error:
        log.warning("%s: intents and records of transactions are kept: %s", store.location, error)
        return 0


def _clean_sidecars(store: _core.Store, before: int) -> int:
    entries = store.list_from(SIDECARS, None)
    if not entries.num_rows:
        return 0
    named: set[str] = set()
    try:
        for checkpoint in list_log(store).checkpoints:
            named.update(_core.checkpoint_sidecars(store, checkpoint.parts))
    except (DeltaError, OSError) as error:
        log.warning("%s: no sidecar is deleted, as a checkpoint cannot be read: %s", store.location, error)
        return 0
    old = entries.filter(pc.less(entries.column("modification_time"), before)).column("path").to_pylist()
    unnamed = [path for path in old if path.rsplit("/", 1)[-1] not in named]
    return store.delete(pa.array(unnamed, pa.string())) if unnamed else 0
