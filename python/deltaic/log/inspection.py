"""Reads a log for display: the actions of a commit, and the state of protocol, features, checkpoint and
sizes.

Each function reads only what it shows, so that tables can be inspected that are broken or that this release
cannot read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from deltaic import _core
from deltaic.errors import DeltaError, InvalidArgumentError, VersionNotFoundError
from deltaic.log import catalog, history
from deltaic.log.segment import LOG, Checkpoint, Listing, list_log, nothing_here, read_hint, reconstructible
from deltaic.log.snapshot import Snapshot
from deltaic.protocol import features
from deltaic.protocol.bounded_json import parse_json

# Kinds of files of a log -> patterns of their paths, relative to the table.
_KINDS = {
    "commits": rf"^{LOG}/[0-9]{{20}}\.json$",
    "checkpoints": rf"^{LOG}/[0-9]{{20}}\.checkpoint\.",
    "sidecars": rf"^{LOG}/_sidecars/",
    "compacted": rf"^{LOG}/[0-9]{{20}}\.[0-9]{{20}}\.compacted\.json$",
    "checksums": rf"^{LOG}/[0-9]{{20}}\.crc$",
}


# --- commits


@dataclass(frozen=True, kw_only=True)
class Commit:
    """The actions of one commit; None or empty for actions that it does not have.

    `timestamp`: ms since 1970, the in-commit timestamp or that of the file.
    `information`, `protocol`, `metadata`: the fields of `commitInfo`, `protocol` and `metaData`.
    `transactions`: application id -> version. `domains`: domain -> configuration, or None for a removed
    domain.
    `adds`, `removes`: Arrow tables with the names of PROTOCOL.md.
    `has_change_files`: True if the commit has `cdc` actions.
    """

    version: int
    timestamp: int
    information: Mapping[str, Any] | None
    protocol: Mapping[str, Any] | None
    metadata: Mapping[str, Any] | None
    transactions: Mapping[str, int]
    domains: Mapping[str, str | None]
    adds: pa.Table
    removes: pa.Table
    has_change_files: bool


def commits(store: _core.Store, versions: str | None = None) -> Iterator[Commit]:
    """Yields the commits of a range, oldest first. `versions`: "5", "3..7" (both ends inclusive), "3..",
    "..7"; None: the newest.

    A commit that is not in the log is a VersionNotFoundError; an invalid one is a ProtocolError with file and
    line. If there is no table, TableNotFoundError is raised.
    """
    listing = _whole(store)
    if not listing.commits:
        raise VersionNotFoundError(
            "the log has no commit", where=f"{store.location}/{LOG}", found="none", expected="a commit"
        )
    first, last = _range(versions, listing, f"{store.location}/{LOG}")
    times = history.commit_times(listing)
    for version in range(first, last + 1):
        yield _read(store, version, times[version])


def _read(store: _core.Store, version: int, timestamp: int) -> Commit:
    read = _core.read_commit(store, version, catalog.commit_file(store, version))
    information = _action(read.commit_info, "commitInfo")
    domains = {name: _action(text, "domainMetadata") or {} for name, text in read.domains.items()}
    stamped = (information or {}).get("inCommitTimestamp")
    return Commit(
        version=version,
        timestamp=stamped if isinstance(stamped, int) else timestamp,
        information=information,
        protocol=_action(read.protocol, "protocol"),
        metadata=_action(read.metadata, "metaData"),
        transactions={name: number for name, (number, _) in read.transactions.items()},
        domains={
            name: None if action.get("removed") else action.get("configuration")
            for name, action in domains.items()
        },
        adds=read.adds,
        removes=read.removes,
        has_change_files=read.has_cdc,
    )


def _action(text: str | None, name: str) -> dict[str, Any] | None:
    if text is None:
        return None
    value = parse_json(text)
    return dict(value.get(name, value))


def _whole(store: _core.Store) -> Listing:
    listing = list_log(store)
    if listing.is_empty:
        raise nothing_here(store)
    return listing


def _range(text: str | None, listing: Listing, where: str) -> tuple[int, int]:
    oldest, newest = min(listing.commits), max(listing.commits)
    if text is None:
        return newest, newest
    first, dots, last = text.partition("..")
    if not (first or last) or any(
        part and not (part.isascii() and part.isdecimal() and len(part) <= 19) for part in (first, last)
    ):
        raise InvalidArgumentError(
            "not a range of versions", found=repr(text)[:80], expected="5, 3..7, 3.. or ..7"
        )
    low = int(first) if first else oldest
    high = (int(last) if last else newest) if dots else low
    if low > high:
        raise InvalidArgumentError(
            "not a range of versions", found=text, expected=f"the lower one first, {oldest} to {newest}"
        )
    outside = next((version for version in (low, high) if not oldest <= version <= newest), None)
    missing = (
        outside
        if outside is not None
        else next((each for each in range(low, high + 1) if each not in listing.commits), None)
    )
    if missing is not None:
        raise VersionNotFoundError(
            "no such version in the log", where=where, found=missing, expected=f"{oldest} to {newest}"
        )
    return low, high


# --- the state of the whole


@dataclass(frozen=True, kw_only=True)
class Inspection:
    """The newest version and its log. Fields are None if the version cannot be read.

    `problem`: the reason why the version cannot be read; None if it can.
    `versions`: the oldest and the newest version that can be read from the files of the log.
    `features`: see `_feature`.
    `checkpoint`: the newest complete one: `version`, `kind`, `files`, `bytes` (without sidecars),
    `commits_since`.
    `hint`: the version in `_last_checkpoint`.
    `log`: kind of file -> number of files and their bytes.
    `rows`: rows without deleted ones; None also if the statistics of a file lack the number of rows.
    `size_in_bytes`: of the live data files.
    """

    location: str
    version: int
    problem: str | None
    versions: tuple[int, int] | None
    reader_version: int | None = None
    writer_version: int | None = None
    features: tuple[Mapping[str, Any], ...] = ()
    checkpoint: Mapping[str, Any] | None
    hint: int | None
    log: Mapping[str, Mapping[str, int]]
    files: int | None = None
    size_in_bytes: int | None = None
    rows: int | None = None
    deletion_vectors: int | None = None
    tombstones: int | None = None


def inspect(store: _core.Store) -> Inspection:
    """Inspects the newest version and its log. Errors become `problem`; only a missing table raises
    TableNotFoundError."""
    listing = _whole(store)
    usable = reconstructible(listing)
    facts: dict[str, Any] = {
        "location": store.location,
        "version": listing.latest,
        "versions": (usable[0], usable[-1]) if usable else None,
        "checkpoint": _checkpoint(store, listing),
        "hint": read_hint(store),
        "log": _sizes(store),
    }
    try:
        snapshot = Snapshot.load(store)
    except (DeltaError, OSError) as error:
        return Inspection(problem=str(error), **facts)
    facts |= {
        "reader_version": snapshot.protocol.min_reader_version,
        "writer_version": snapshot.protocol.min_writer_version,
    }
    try:
        return Inspection(problem=None, **facts, **_state(snapshot))
    except (DeltaError, OSError) as error:
        return Inspection(problem=str(error), **facts)


def _state(snapshot: Snapshot) -> dict[str, Any]:
    definition = features.Definition(snapshot.metadata, schema=snapshot.schema)
    listed = features.supported(snapshot.protocol) | features.reader_features(snapshot.protocol)
    core = snapshot.core
    return {
        "features": tuple(_feature(name, definition) for name in sorted(listed)),
        "files": core.file_count,
        "size_in_bytes": core.size_in_bytes,
        "rows": core.num_records,
        "deletion_vectors": core.file_count - snapshot.files().adds["deletionVector"].null_count,
        "tombstones": core.tombstones().num_rows,
    }


def _feature(name: str, definition: features.Definition) -> dict[str, Any]:
    """Describes a feature. `used`: True if the table uses it. `writes`: True if this release can make every
    kind of commit on the table as it is."""
    known = features.FEATURES.get(name)
    used = known is None or known.used(definition)
    return {"name": name, "used": used, "writes": known is not None and not (used and known.refused)}


def _checkpoint(store: _core.Store, listing: Listing) -> dict[str, Any] | None:
    if not listing.checkpoints:
        return None
    newest: Checkpoint = listing.checkpoints[0]
    sizes = [entry[0] if (entry := store.head(path)) else 0 for path in newest.parts]
    name = newest.parts[0].rsplit("/", 1)[-1]
    kind = (
        "multi-part"
        if len(newest.parts) > 1
        else "classic"
        if name.count(".") == 2
        else f"V2, {name.rsplit('.', 1)[-1]}"
    )
    since = sum(version > newest.version for version in listing.commits)
    return {
        "version": newest.version,
        "kind": kind,
        "files": len(newest.parts),
        "bytes": sum(sizes),
        "commits_since": since,
    }


def _sizes(store: _core.Store) -> dict[str, dict[str, int]]:
    entries = store.list_from(LOG, recursive=True)
    paths, sizes = entries["path"], entries["size"]
    counts, other = {}, pa.array([True] * entries.num_rows, pa.bool_())
    for kind, pattern in _KINDS.items():
        mask = pc.match_substring_regex(paths, pattern)
        other = pc.and_not(other, mask)
        counts[kind] = _count(sizes.filter(mask))
    return {**counts, "others": _count(sizes.filter(other))}


def _count(sizes: pa.ChunkedArray) -> dict[str, int]:
    return {"files": len(sizes), "bytes": pc.sum(sizes).as_py() or 0}
