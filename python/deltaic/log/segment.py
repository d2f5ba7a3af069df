"""Lists `_delta_log`, and finds the files of which a version is built (PROTOCOL.md: Delta Log Entries,
Checkpoints, Last Checkpoint File)."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice

from deltaic._core import Store
from deltaic.errors import CommitError, ProtocolError, TableNotFoundError, VersionNotFoundError
from deltaic.log import catalog, intents, lookup
from deltaic.log import hint as last_checkpoint
from deltaic.log.hint import LAST_CHECKPOINT as LAST_CHECKPOINT
from deltaic.log.hint import Hint
from deltaic.log.intents import Intent

LOG = "_delta_log"
# Descriptions of local paths at which no table can be created.
A_FILE = "a file"
NO_FOLDER = "no such folder"
A_LOG = "the folder of a log"
NO_PLACE = (A_FILE, A_LOG)
# Maximum number of names in a folder without a log that an error message checks for Parquet files. In a
# larger folder it may not notice them.
MOST_LOOKED_AT = 1000
MAX_VERSION = 2**63 - 1

_COMMIT = re.compile(r"([0-9]{20})\.json")
_CHECKPOINT = re.compile(r"([0-9]{20})\.checkpoint\.parquet")
_PART = re.compile(r"([0-9]{20})\.checkpoint\.([0-9]{10})\.([0-9]{10})\.parquet")
_V2_CHECKPOINT = re.compile(r"([0-9]{20})\.checkpoint\.([0-9A-Za-z-]+)\.(json|parquet)")
_COMPACTED = re.compile(r"([0-9]{20})\.([0-9]{20})\.compacted\.json")
_CHECKSUM = re.compile(r"([0-9]{20})\.crc")
_INTENT = re.compile(intents.INTENT)

# Seconds to wait, one after the other, for a missing commit: a store may list a commit before the earlier
# one.
GAP_WAITS = (0.05, 0.1, 0.2, 0.4, 0.8)

Sleep = Callable[[float], None]


def commit_path(version: int) -> str:
    """Returns the path of a published commit, relative to the table."""
    return f"{LOG}/{version:020}.json"


def checkpoint_path(version: int) -> str:
    """Returns the path of a classic checkpoint in one file, relative to the table."""
    return f"{LOG}/{version:020}.checkpoint.parquet"


@dataclass(frozen=True)
class Checkpoint:
    """A complete checkpoint. `parts`: the paths of its file or of all its parts, in order, without
    sidecars."""

    version: int
    parts: tuple[str, ...]


@dataclass(frozen=True)
class Compaction:
    """A file with the reconciled actions of the commits `first` to `last` (PROTOCOL.md: Log Compaction
    Files)."""

    first: int
    last: int
    path: str


@dataclass(frozen=True)
class Listing:
    """The files of the log in one listing, by kind.

    `commits`: version -> modification time in ms.
    `checkpoints`: complete ones, newest first; a version may have several.
    `incomplete`: versions with a multi-part checkpoint of which parts are missing.
    `start`: the version from which on files were listed.
    `compactions`: compacted ranges by their first version, the longest first.
    `checksums`: versions with a checksum.
    `sizes`: path -> bytes. `times`: path -> modification time in ms.
    `hint`: the parsed `_last_checkpoint`, if it was read.
    `staged`: version -> path of its commit, for commits that are not at their usual path: those that a
        catalog has staged, and `unwritten`.
    `intents`: id of a transaction over several tables -> modification time of its intent in ms.
    `unwritten`: a version whose commit is only in an intent, as this process cannot write it to the log.
    """

    commits: dict[int, int] = field(default_factory=dict)
    checkpoints: tuple[Checkpoint, ...] = ()
    incomplete: frozenset[int] = frozenset()
    start: int = 0
    compactions: Mapping[int, Sequence[Compaction]] = field(default_factory=dict)
    checksums: frozenset[int] = frozenset()
    sizes: Mapping[str, int] = field(default_factory=dict)
    times: Mapping[str, int] = field(default_factory=dict)
    hint: Hint | None = None
    staged: Mapping[int, str] = field(default_factory=dict)
    intents: Mapping[str, int] = field(default_factory=dict)
    unwritten: int | None = None

    def commit_path(self, version: int) -> str:
        """Returns the path of a commit, relative to the table: the staged file if there is one."""
        return self.staged.get(version) or commit_path(version)

    @property
    def is_empty(self) -> bool:
        return not (self.commits or self.checkpoints or self.incomplete)

    @property
    def latest(self) -> int:
        """The newest version in the listing; -1 if there is none."""
        return max(max(self.commits, default=-1), self.checkpoints[0].version if self.checkpoints else -1)


@dataclass(frozen=True)
class Segment:
    """The files of which one version is built: a checkpoint or none, and the commits after it, without a gap.

    `commits`: (version, path); a compacted range has its last version.
    `has_checksum`: True if the version has a checksum file.
    `size`: bytes of all files, as far as the listing and `_last_checkpoint` have them. `commits_size`: of the
        commits.
    `times`: modification times of the files in ms. Segments that are equal have the same files.
    `modified`: modification time of the version's own commit in ms; None if the commit was deleted.
    `pending`: ids of transactions over several tables that may not be in the log yet.
    `is_unwritten`: True if the version's commit is only in an intent (`Listing.unwritten`).
    """

    version: int
    checkpoint: Checkpoint | None
    commits: tuple[tuple[int, str], ...]
    has_checksum: bool = False
    size: int = 0
    commits_size: int = 0
    times: tuple[int, ...] = ()
    modified: int | None = None
    pending: tuple[str, ...] = ()
    is_unwritten: bool = False

    @property
    def is_one_file(self) -> bool:
        """True if one request reads the whole segment."""
        return len(self.checkpoint_parts) + len(self.commits) == 1

    @property
    def checkpoint_parts(self) -> tuple[str, ...]:
        return self.checkpoint.parts if self.checkpoint else ()


def list_log(store: Store, start: int = 0) -> Listing:
    """Lists the files of the log from version `start` on. A missing log is an empty listing. If a catalog
    manages the table, the commits are those that the catalog has ratified."""
    # before the listing, so that a commit that is published meanwhile is in both
    ratified = catalog.ratified(store, start)
    listing = parse_listing(store.entries(LOG, f"{start:020}" if start else None), start)
    return listing if ratified is None else _of_catalog(listing, ratified)


def list_after(store: Store, version: int) -> Listing:
    """Lists the log after a version that was read, for the newest version: like `newest`, but a local folder
    is not listed if lookups of the following names are enough."""
    entries = lookup.following(store, version)
    if entries is None:
        return newest(store, lambda: list_log(store, version + 1))
    return parse_listing(entries, version + 1)


def _of_catalog(listing: Listing, ratified: catalog.RatifiedCommits) -> Listing:
    """Adds the commits that the catalog has staged, and removes all files of versions that it has not
    ratified."""
    last = ratified.latest
    modified = max(listing.commits.values(), default=0)
    commits = {version: time for version, time in listing.commits.items() if version <= last}
    commits |= {version: listing.commits.get(version, modified) for version in ratified.staged}
    compactions = {
        first: [each for each in ranges if each.last <= last] for first, ranges in listing.compactions.items()
    }
    return replace(
        listing,
        commits=dict(sorted(commits.items())),
        checkpoints=tuple(each for each in listing.checkpoints if each.version <= last),
        incomplete=frozenset(each for each in listing.incomplete if each <= last),
        compactions=compactions,
        checksums=frozenset(each for each in listing.checksums if each <= last),
        staged=ratified.staged,
    )


def newest(store: Store, listing: Callable[[], Listing]) -> Listing:
    """Lists the log for the newest version, with the commits of transactions over several tables. `listing`:
    lists the log; it is called again if such a transaction was rolled forward."""
    current = listing()
    if not current.intents:
        return current
    latest = max(current.latest, current.start - 1)
    is_new, unwritten = intents.resolve(store, current.intents, latest, time.time_ns() // 1_000_000)
    current = listing() if is_new else current
    for intent in unwritten:
        current = _on_top(store, current, intent)
    return current


def _on_top(store: Store, listing: Listing, intent: Intent) -> Listing:
    """Adds the commit of a committed transaction that this process may not write to the log."""
    version, path = intent.base + 1, intents.intent_path(intent.transaction)
    if max(listing.latest, listing.start - 1) != intent.base:
        raise CommitError(
            f"transaction {intent.transaction} over several tables is committed, but other commits came"
            " before its own and it may not be written here; a writer of deltaic that opens the table puts"
            " it into the log",
            where=store.location,
            found=f"version {listing.latest}",
            expected=f"version {intent.base}",
        )
    commits = {**listing.commits, version: listing.intents.get(intent.transaction, 0)}
    return replace(listing, commits=commits, staged={**listing.staged, version: path}, unwritten=version)


def parse_listing(
    entries: Iterator[tuple[str, int, int]] | Sequence[tuple[str, int, int]], start: int = 0
) -> Listing:
    """Sorts (path, size, modification time) by kind of file. Unknown names are ignored.

    A file of 0 bytes other than a commit counts as missing, as its writer died.
    """
    commits: dict[int, int] = {}
    complete: list[Checkpoint] = []
    parts: dict[tuple[int, int], dict[int, str]] = {}
    compactions: dict[int, list[Compaction]] = {}
    checksums: set[int] = set()
    sizes: dict[str, int] = {}
    times: dict[str, int] = {}
    pending: dict[str, int] = {}
    for path, size, modified in entries:
        name = path.rsplit("/", 1)[-1]
        sizes[path], times[path] = size, modified
        if match := _COMMIT.fullmatch(name):
            commits[int(match[1])] = modified
        elif size == 0:
            continue
        elif match := _CHECKSUM.fullmatch(name):
            checksums.add(int(match[1]))
        elif match := _COMPACTED.fullmatch(name):
            if start <= int(match[1]) < int(match[2]) <= MAX_VERSION:
                compactions.setdefault(int(match[1]), []).append(
                    Compaction(int(match[1]), int(match[2]), path)
                )
        elif match := _INTENT.fullmatch(name):
            pending[match[1]] = modified
        elif ".checkpoint." not in name:
            continue
        elif match := _CHECKPOINT.fullmatch(name) or _V2_CHECKPOINT.fullmatch(name):
            complete.append(Checkpoint(int(match[1]), (path,)))
        elif match := _PART.fullmatch(name):
            parts.setdefault((int(match[1]), int(match[3])), {})[int(match[2])] = path
    for (version, count), paths in parts.items():
        if count > 0 and all(part in paths for part in range(1, count + 1)):
            complete.append(Checkpoint(version, tuple(paths[part] for part in range(1, count + 1))))
    usable = sorted(
        (each for each in complete if start <= each.version <= MAX_VERSION), key=lambda each: -each.version
    )
    incomplete = {version for version, _ in parts} - {each.version for each in usable}
    kept = {version: modified for version, modified in commits.items() if start <= version <= MAX_VERSION}
    for ranges in compactions.values():
        ranges.sort(key=lambda each: -each.last)
    return Listing(
        kept,
        tuple(usable),
        frozenset(incomplete),
        start,
        compactions,
        frozenset(checksums),
        sizes,
        times,
        intents=pending,
    )


def read_hint(store: Store) -> int | None:
    """Returns the version in `_last_checkpoint`; None if the file is missing or invalid."""
    hint = last_checkpoint.read(store)
    return None if hint is None else hint.version


def segments(
    store: Store, version: int | None = None, *, sleep: Sleep = time.sleep, waits: Sequence[float] = GAP_WAITS
) -> Iterator[Segment]:
    """Yields the segments of which a version can be built, best first: from each complete checkpoint, newest
    first, and then from commits only. `version`: None for the newest.

    If a commit is missing, the log is listed again after each of `waits` (seconds). Then TableNotFoundError,
    VersionNotFoundError, or ProtocolError with the missing version is raised.
    """
    listing = (
        newest(store, lambda: _first_listing(store, None))
        if version is None
        else _first_listing(store, version)
    )
    pending = list(waits)
    seen: set[tuple[str, ...]] = set()
    while True:
        is_possible = False
        target = listing.latest if version is None else version
        if 0 <= target <= listing.latest:
            for segment in _from_listing(listing, target):
                is_possible = True
                key = (*segment.checkpoint_parts, *(path for _, path in segment.commits))
                if key not in seen:
                    seen.add(key)
                    yield segment
        if listing.start > 0:
            # the caller could not use the segments from the checkpoint in `_last_checkpoint` on
            listing = list_log(store)
        elif is_possible:
            return
        elif pending and _may_be_late(listing, target):
            sleep(pending.pop(0))
            listing = list_log(store)
        else:
            raise cannot_build(store, listing, target, newest=version is None)


def load_first(store: Store, version: int | None = None, *, sleep: Sleep = time.sleep) -> Segment:
    """Returns the best segment of a version."""
    return next(segments(store, version, sleep=sleep))


def reconstructible(listing: Listing) -> list[int]:
    """Returns the versions that can be built from a complete listing, ascending: from version 0 or a
    checkpoint on, up to the next missing commit."""
    versions: set[int] = set()
    bases = [checkpoint.version for checkpoint in listing.checkpoints] + ([0] if 0 in listing.commits else [])
    for base in sorted(bases):
        if base in versions:
            continue
        versions.add(base)
        following = base + 1
        while following in listing.commits and following not in versions:
            versions.add(following)
            following += 1
    return sorted(versions)


def _first_listing(store: Store, version: int | None) -> Listing:
    hint, listing = _look(store)
    if listing is None and hint is not None and (version is None or hint.version <= version):
        entries = lookup.from_hint(store, hint) if version is None else None
        listing = list_log(store, hint.version) if entries is None else parse_listing(entries, hint.version)
        if any(checkpoint.version >= hint.version for checkpoint in listing.checkpoints):
            return replace(listing, hint=hint)
        listing = None
    listing = listing or list_log(store)
    if listing.is_empty:
        raise nothing_here(store)
    return replace(listing, hint=hint)


def _look(store: Store) -> tuple[Hint | None, Listing | None]:
    """Reads `_last_checkpoint`. On a remote store, it lists the log at the same time: the listing of a log
    with few files needs no hint, which is None then, and the listing of a log with many files is None. For a
    table that a catalog manages, the listing is None, too: the catalog must be called before it."""
    look = (
        None
        if catalog.has_coordinator(store)
        else store.first_look(LAST_CHECKPOINT, LOG, last_checkpoint.MOST_BYTES)
    )
    if look is None:
        return last_checkpoint.read(store), None
    file, entries = look
    return last_checkpoint.parse(file), None if entries is None else parse_listing(entries)


def nothing_here(store: Store) -> TableNotFoundError:
    """Returns the error for a location whose log has neither a commit nor a checkpoint. For a local path, the
    error names what is there instead."""
    if "://" not in store.location and (instead := _instead_of_table(store.location)) is not None:
        found, expected = instead
        return TableNotFoundError(
            "the path is not a Delta table", where=store.location, found=found, expected=expected
        )
    return TableNotFoundError(
        "the path is not a Delta table: the log is empty or missing",
        where=f"{store.location}/{LOG}",
        found="no commit and no checkpoint",
        expected="a commit or a checkpoint",
    )


def _instead_of_table(path: str) -> tuple[str, str] | None:
    """Returns (found, expected) for the error about a local path without a log; None if there is a log or an
    empty folder."""
    folder, name = os.path.split(path.rstrip("/"))
    if os.path.isfile(path):
        return A_FILE, "the folder of a table"
    if not os.path.isdir(path):
        tilde = "~" in path.split("/")
        return (
            NO_FOLDER,
            "a path without '~': os.path.expanduser() replaces it" if tilde else "the folder of a table",
        )
    if name == LOG:
        return A_LOG, f"the folder of its table, {folder}"
    with suppress(OSError), os.scandir(path) as entries:
        if not os.path.isdir(os.path.join(path, LOG)) and any(
            each.name.endswith(".parquet") for each in islice(entries, MOST_LOOKED_AT)
        ):
            return (
                "Parquet files without a log",
                "a Delta table; DeltaTable.convert(path) makes one of Parquet files",
            )
    return None


def _from_listing(listing: Listing, target: int) -> Iterator[Segment]:
    for checkpoint in (*(each for each in listing.checkpoints if each.version <= target), None):
        first = checkpoint.version + 1 if checkpoint else 0
        if first < listing.start:
            return
        if all(each in listing.commits for each in range(first, target + 1)):
            shortest = cover(listing, first, target)
            yield _segment(listing, target, checkpoint, shortest)
            commits = tuple((each, listing.commit_path(each)) for each in range(first, target + 1))
            if shortest != commits:
                yield _segment(listing, target, checkpoint, commits)


def cover(listing: Listing, first: int, last: int) -> tuple[tuple[int, str], ...]:
    """Returns (version, path) of files with the actions of the commits `first` to `last`, which all exist.
    Each compacted range that fits replaces its commits, the longest first: commits 3 to 7 may be the range 3
    to 6 and commit 7."""
    files: list[tuple[int, str]] = []
    while first <= last:
        fitting = next((each for each in listing.compactions.get(first, ()) if each.last <= last), None)
        end = fitting.last if fitting else first
        files.append((end, fitting.path if fitting else listing.commit_path(first)))
        first = end + 1
    return tuple(files)


def _segment(
    listing: Listing, target: int, checkpoint: Checkpoint | None, commits: tuple[tuple[int, str], ...]
) -> Segment:
    parts = checkpoint.parts if checkpoint is not None else ()
    commits_size = sum(listing.sizes.get(path, 0) for _, path in commits)
    size = commits_size + sum(listing.sizes.get(path, 0) for path in parts)
    if checkpoint is not None and listing.hint is not None and listing.hint.version == checkpoint.version:
        size += listing.hint.size_in_bytes  # includes the sidecars
    times = tuple(listing.times.get(path, 0) for path in (*parts, *(path for _, path in commits)))
    modified = listing.commits.get(target)
    has_checksum, pending = target in listing.checksums, tuple(listing.intents)
    return Segment(
        target,
        checkpoint,
        commits,
        has_checksum,
        size,
        commits_size,
        times,
        modified,
        pending,
        target == listing.unwritten,
    )


def _missing(listing: Listing, target: int) -> int:
    """Returns the newest version without a commit between the newest checkpoint and `target`."""
    base = max((each.version for each in listing.checkpoints if each.version <= target), default=-1)
    return next((each for each in range(target, base, -1) if each not in listing.commits), -1)


def _may_be_late(listing: Listing, target: int) -> bool:
    # A log that begins after version 0 and has no checkpoint was truncated, so waiting for commits is
    # useless.
    first = min(listing.commits, default=target)
    bases = [each.version for each in listing.checkpoints if each.version <= target]
    return 0 <= target <= listing.latest and (first == 0 or bool(bases))


def cannot_build(store: Store, listing: Listing, target: int, *, newest: bool) -> Exception:
    """Returns the error for a version that cannot be built from the files of the log. `newest`: True if the
    newest version is wanted, whichever it is."""
    where = f"{store.location}/{LOG}"
    usable = reconstructible(listing)
    if not newest and not 0 <= target <= listing.latest:
        return VersionNotFoundError(
            "no such version",
            where=where,
            found=target,
            expected=f"{usable[0] if usable else 0} to {listing.latest}",
        )
    if not newest and usable and target < usable[0]:
        return VersionNotFoundError(
            "this version was removed from the log",
            where=where,
            found=target,
            expected=f"{usable[0]} to {listing.latest}",
        )
    if 0 not in listing.commits and not any(each.version <= target for each in listing.checkpoints):
        if (named := read_hint(store)) in listing.incomplete:
            return ProtocolError(
                f"parts of the checkpoint of version {named} are missing, and the commits before it are gone",
                where=where,
                found="a multi-part checkpoint, but not all of its parts",
                expected="version 0, or a complete checkpoint",
            )
        begins = f"it begins with version {min(listing.commits)}" if listing.commits else "it has no commit"
        return ProtocolError(
            f"the log is truncated: {begins} and has no complete checkpoint",
            where=where,
            found=(
                "a multi-part checkpoint, but not all of its parts" if listing.incomplete else "no checkpoint"
            ),
            expected="version 0, or a complete checkpoint",
        ).with_values(path=f"{store.location}/{commit_path(0)}", version=target)
    missing = _missing(listing, target)
    found, named = "no such file", read_hint(store)
    if named is not None and missing <= named <= target:
        found = f"neither this file nor the checkpoint of version {named}, which _last_checkpoint names"
    return ProtocolError(
        f"versions are not contiguous: commit {missing} is missing",
        where=f"{store.location}/{commit_path(missing)}",
        found=found,
        expected=f"version {missing}",
    ).with_values(is_lost=True)
