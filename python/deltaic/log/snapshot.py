"""Snapshot: one version of a table, immutable. Rust has the file actions; protocol and metadata are parsed
here on first access."""

from __future__ import annotations

import json
import logging
import re
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, partial
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar, cast

from deltaic import _core
from deltaic.errors import DeltaError, ProtocolError, placed
from deltaic.log import catalog, history
from deltaic.log import checksum as checksums
from deltaic.log.checksum import Checksum
from deltaic.log.segment import LOG, Segment, Sleep, commit_path, cover, list_after, segments
from deltaic.log.store import OneObject
from deltaic.protocol import features
from deltaic.protocol.actions import Metadata, Protocol
from deltaic.protocol.properties import TableProperties
from deltaic.protocol.schema import Schema

if TYPE_CHECKING:
    import pyarrow as pa

# Bytes of a log up to which it is read completely when a version is opened, so that errors in it are raised
# then. A larger log is read when its file actions are first needed, so that it is opened in the same time.
OPENED_AT_ONCE = 64 * 1024
# Bytes of a checkpoint or commit up to which it is read completely when its file actions are needed; of a
# larger one, only the needed part is read.
READ_AT_ONCE = 4 * 1024**2
# Cached properties of a snapshot that follow from its protocol and metadata.
_OF_THE_DEFINITION = ("protocol", "metadata", "schema", "properties", "table_schema", "_of_definition")
# Maximum number of commits that `Snapshot.with_appends` leaves unread
_MOST_UNREAD = 100
log = logging.getLogger("deltaic.log")
T = TypeVar("T")
_MOST_KEPT = 100
"""Maximum number of results in the cache of `Snapshot.keep`; a full cache is emptied."""
_NOTHING = object()


@dataclass
class _SharedActions:
    """File actions that a version shares with the versions that `Snapshot.with_appends` made from it, so that
    each commit is read once. `newest`: the file actions of the newest of these versions that has been
    read."""

    newest: _core.Snapshot


class Snapshot:
    """A version of a table. Threads may share it, as only its caches change.

    The file actions of a large log are read on first access.
    """

    core: _core.Snapshot
    """File actions, transactions and domains."""

    def __init__(
        self,
        store: _core.Store,
        core: _core.Snapshot | None,
        *,
        checksum: Checksum | None = None,
        definition: Definition | None = None,
        segment: Segment | None = None,
        before: Snapshot | None = None,
        modified: int | None = None,
        pending: tuple[str, ...] | None = None,
    ) -> None:
        """`core`: None to read it from `segment` on first access; `definition` is required then.
        `segment`: the files of the log from which the version was read, or will be.
        `before`: an earlier version, whose parsed protocol and metadata are reused if they are equal.
        `modified`: time (ms) at which the version's commit was written.
        `pending`: ids of transactions over several tables that may not be in the log; None if the log was not
        listed."""
        self.store = store
        self._loaded, self._checksum, self._definition, self._lock = (
            core,
            checksum,
            definition,
            threading.Lock(),
        )
        self._segment = segment
        self.modified = segment.modified if segment is not None else modified
        self.pending = segment.pending if segment is not None else pending
        self.is_unwritten = segment is not None and segment.is_unwritten
        self.is_staged = False
        self._unread: tuple[_core.Snapshot, tuple[tuple[int, str], ...]] | None = None
        self._appended: _SharedActions | None = None
        if core is not None:
            self._check(core)
            if before is not None and before._defined_as(core):
                self.__dict__.update(
                    {name: before.__dict__[name] for name in _OF_THE_DEFINITION if name in before.__dict__}
                )
        with self._placed():
            features.check_readable(
                self.protocol, self.metadata, catalog=partial(catalog.has_coordinator, store)
            )
        if core is not None and checksum is not None:
            checksums.verify_definition(checksum, self)

    def _check(self, core: _core.Snapshot) -> None:
        if core.protocol is None:
            raise self._lacks("protocol")
        if core.metadata is None:
            with self._placed():
                features.check_readable(self.protocol, catalog=partial(catalog.has_coordinator, self.store))
            raise self._lacks("metaData")

    @staticmethod
    def load(
        store: _core.Store,
        *,
        version: int | None = None,
        timestamp: datetime | str | None = None,
        sleep: Sleep = time.sleep,
        known: Snapshot | None = None,
    ) -> Snapshot:
        """Loads a version; by default the newest. If a checkpoint cannot be read, an older one or the commits
        are used.

        `timestamp`: loads the newest version with this timestamp or an earlier one.
        `known`: a snapshot that was opened before at the same location with the same permissions. It is
            returned if the log still has the same files.

        Raises TableNotFoundError, VersionNotFoundError, ProtocolError, UnsupportedFeatureError.
        """
        if timestamp is not None:
            version = history.version_at(store, timestamp, version)
        candidates = segments(store, version, sleep=sleep)
        best = next(candidates)
        if known is not None and known._segment == best:
            return known
        is_small = best.size <= OPENED_AT_ONCE
        # On a remote store, a log of several files is not read until its file actions are needed: the
        # checksum, which is one file, has the definition. A log of one file is read directly.
        reads_checksum = best.has_checksum and not (store.is_remote and is_small and best.is_one_file)
        checksum = checksums.read(store, best.version) if reads_checksum else None
        is_deferred = not is_small or (store.is_remote and checksum is not None)
        if is_deferred and (definition := _define(store, best, checksum)) is not None:
            return Snapshot(store, None, checksum=checksum, definition=definition, segment=best)
        core = _build(store, chain((best,), candidates), partial(segments, store, version, sleep=sleep))
        is_best = core.version == best.version
        return Snapshot(
            store,
            core,
            checksum=checksum if is_best else None,
            segment=best if is_best else None,
            pending=best.pending,
        )

    def __getattr__(self, name: str) -> Any:
        """Reads `core` on first access, and compares it with the checksum."""
        if name != "core":
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        with self._lock:
            base, commits = self._read_files()
            if self._loaded is None and base is not None:
                with suppress(ProtocolError, FileNotFoundError):  # the log may have been cleaned up to here
                    self._loaded = base.refresh(self.store, commits)
                    if self._appended is not None and self._appended.newest.version < self._loaded.version:
                        self._appended.newest = self._loaded
            if self._loaded is None:
                again = partial(segments, self.store, self.version)
                candidates = chain((self._segment,) if self._segment is not None else (), again())
                self._loaded = Snapshot(
                    self.store, _build(self.store, candidates, again), checksum=self._checksum
                )._loaded
            assert self._loaded is not None
            if self._checksum is not None:
                checksums.verify_files(self._checksum, self._loaded, self.location)
            self.core = self._loaded
        return self.core

    def refresh(self, *, sleep: Sleep = time.sleep) -> Snapshot:
        """Returns the newest version: this object if there is no new commit. If the new commits follow
        without a gap, only they are read."""
        if self.is_unwritten:  # another commit may get this version in the log
            return Snapshot.load(self.store, sleep=sleep)
        listing = list_after(self.store, self.version)
        if listing.unwritten is not None:
            return Snapshot.load(self.store, sleep=sleep)
        if listing.latest <= self.version:
            return self
        if not all(version in listing.commits for version in range(self.version + 1, listing.latest + 1)):
            return Snapshot.load(self.store, sleep=sleep)
        commits = cover(listing, self.version + 1, listing.latest)
        try:
            return self._advance(commits, listing.commits[listing.latest], tuple(listing.intents))
        except (ProtocolError, FileNotFoundError):
            if all(path == listing.commit_path(each) for each, path in commits):
                raise
            return self.advance(listing.latest)  # a compacted range cannot be read, so its commits are

    def advance(self, version: int, modified: int | None = None) -> Snapshot:
        """Returns a later version whose commits are known to exist; does not list the log. `modified`: time
        (ms) at which the last of the commits was written."""
        if version == self.version:
            return self
        versions = range(self.version + 1, version + 1)
        return self._advance(
            list(zip(versions, catalog.commit_files(self.store, versions), strict=True)), modified
        )

    def with_appends(self, version: int, modified: int) -> Snapshot:
        """Returns a later version whose commits are known to exist and to only add files. They are read when
        the file actions are first needed. `modified`: time (ms) at which the last of the commits was
        written."""
        core, unread = self._read_files()
        commits = (*unread, *((each, commit_path(each)) for each in range(self.version + 1, version + 1)))
        if core is None or len(commits) > _MOST_UNREAD:
            return self.advance(version, modified)
        later = self.through(self.store)
        for name in ("core", "_kept"):
            later.__dict__.pop(name, None)
        later._loaded = later._checksum = later._segment = later.pending = None
        later._definition, later._unread, later.modified = (
            Definition(version, self.protocol, self.metadata),
            (core, commits),
            modified,
        )
        later._lock, later.is_unwritten = threading.Lock(), False
        later._appended = self._appended if self._appended is not None and unread else _SharedActions(core)
        return later

    def through(self, store: _core.Store) -> Snapshot:
        """Returns the same version, of which `store` reads what is not read yet."""
        twin = object.__new__(Snapshot)
        twin.__dict__.update(self.__dict__)
        twin.store = store
        return twin

    @property
    def log_times(self) -> tuple[int, ...]:
        """Modification times (ms) of the files of the log that this version was loaded from; empty if it was
        made from an earlier version and a commit."""
        return () if self._segment is None else self._segment.times

    @property
    def log_size(self) -> int:
        """Bytes of the files of `log_times`."""
        return 0 if self._segment is None else self._segment.size

    @property
    def file_count_if_read(self) -> int | None:
        """Number of files, without those of commits that are not read yet; None if no file actions were
        read."""
        core, _ = self._read_files()
        return None if core is None else core.file_count

    def _read_files(self) -> tuple[_core.Snapshot | None, tuple[tuple[int, str], ...]]:
        """Returns the file actions that were read of this version or an earlier one, and the commits after
        them."""
        if self._loaded is not None or self._unread is None:
            return self._loaded, ()
        base, commits = self._unread
        newest = base if self._appended is None else self._appended.newest
        if not base.version < newest.version <= self.version:
            return base, commits
        return newest, tuple(commit for commit in commits if commit[0] > newest.version)

    def _advance(
        self, commits: Sequence[tuple[int, str]], modified: int | None, pending: tuple[str, ...] | None = None
    ) -> Snapshot:
        return Snapshot(
            self.store,
            self.core.refresh(self.store, commits),
            before=self,
            modified=modified,
            pending=pending,
        )

    def with_staged(self, lines: bytes) -> Snapshot:
        """Returns the snapshot with a staged commit applied, which is not in the log. The next change of a
        transaction starts from it."""
        source, version = (
            _core.Store.from_python(cast("Any", OneObject(lines)), self.location),
            self.version + 1,
        )
        staged = Snapshot(
            self.store, self.core.refresh(source, [(version, commit_path(version))]), before=self
        )
        staged.is_staged = True
        return staged

    @staticmethod
    def created(store: _core.Store, lines: Sequence[str], adds: pa.Table, modified: int) -> Snapshot:
        """Returns version 0 after its commit, without reading it. `lines`: the lines of the commit that are
        no file actions. `adds`: its add actions. `modified`: time (ms) at which the commit was written."""
        return Snapshot(
            store, _core.Snapshot.first(store, lines, adds, eager_limit=READ_AT_ONCE), modified=modified
        )

    def _defined_as(self, core: _core.Snapshot) -> bool:
        own = self._loaded
        return own is not None and own.protocol == core.protocol and own.metadata == core.metadata

    def at(self, version: int | None = None, *, timestamp: datetime | str | None = None) -> Snapshot:
        """Returns another version of the same table; by default the newest."""
        if version == self.version and timestamp is None:
            return self
        return Snapshot.load(self.store, version=version, timestamp=timestamp)

    @property
    def _files(self) -> _core.Snapshot:
        return self.core if self._loaded is None else self._loaded

    @property
    def version(self) -> int:
        return self._definition.version if self._definition is not None else self._files.version

    @property
    def location(self) -> str:
        return self.store.location

    @cached_property
    def protocol(self) -> Protocol:
        if self._definition is not None:
            return self._definition.protocol
        text = self._files.protocol
        assert text is not None  # checked when made
        with self._placed():
            return Protocol.from_json(text)

    @cached_property
    def metadata(self) -> Metadata:
        if self._definition is not None:
            return self._definition.metadata
        text = self._files.metadata
        assert text is not None  # checked when made
        with self._placed():
            return Metadata.from_json(text)

    @cached_property
    def schema(self) -> Schema:
        with self._placed():
            return Schema.from_json(self.metadata.schema_string)

    def keep(self, key: Hashable, compute: Callable[[], T]) -> T:
        """Returns the cached result of `compute()` for `key`, computed on the first call. The cache is
        emptied after a hundred results."""
        return _keep(self._kept, key, compute)

    def keep_of_definition(self, key: Hashable, compute: Callable[[], T]) -> T:
        """Like `keep`, but for results that follow from protocol and metadata only. Later versions with the
        same definition have them, too."""
        return _keep(self._of_definition, key, compute)

    @cached_property
    def _of_definition(self) -> dict[Hashable, Any]:
        return {}

    @cached_property
    def _kept(self) -> dict[Hashable, Any]:
        return {}

    @cached_property
    def properties(self) -> TableProperties:
        return TableProperties(self.metadata.configuration)

    @cached_property
    def table_schema(self) -> _core.TableSchema:
        """The schema for Rust, with partition columns and column mapping."""
        with self._placed():
            return table_schema(self.protocol, self.metadata)

    @cached_property
    def domains(self) -> Mapping[str, str]:
        """Metadata domains: name -> configuration."""
        actions = ((name, json.loads(text)) for name, text in self.core.domains.items())
        parsed = ((name, action.get("domainMetadata", action)) for name, action in actions)
        return {
            name: str(action.get("configuration", "")) for name, action in parsed if not action.get("removed")
        }

    def files(
        self, predicate: _core.Predicate | None = None, *, skipping: bool = True
    ) -> _core.FileSelection:
        """Returns the live files that may contain a matching row, and the number of skipped ones."""
        return self.core.files(self.table_schema, predicate, skipping=skipping)

    def _lacks(self, name: str) -> ProtocolError:
        return ProtocolError(
            f"the log has no {name} action",
            where=f"{self.store.location} version {self.version}",
            found=f"no {name} action",
            expected="one in the first commit or the checkpoint",
        )

    def _placed(self) -> AbstractContextManager[None]:
        """Adds the line of the log to errors about protocol and metadata that are raised inside."""

        def place(error: DeltaError) -> str | None:
            if self._loaded is None:
                return f"{self.location} version {self.version}"
            of_protocol = (error.where or "").startswith("protocol")
            return self._loaded.protocol_place if of_protocol else self._loaded.metadata_place

        return placed(place)

    def __repr__(self) -> str:
        return f"Snapshot({self.location!r}, version={self.version})"


def _keep(kept: dict[Hashable, Any], key: Hashable, compute: Callable[[], T]) -> T:
    value: T | object = kept.get(key, _NOTHING)
    if value is _NOTHING:
        value = compute()
        if len(kept) >= _MOST_KEPT:  # another thread may do the same
            kept.clear()
        kept[key] = value
    return cast("T", value)


@dataclass(frozen=True)
class Definition:
    """Protocol and metadata of a version."""

    version: int
    protocol: Protocol
    metadata: Metadata


def _define(store: _core.Store, segment: Segment, checksum: Checksum | None) -> Definition | None:
    """Returns the definition of a version from its checksum, or from the log if no file actions need be read
    for it; else None."""
    if checksum is not None:
        return Definition(checksum.version, checksum.protocol, checksum.metadata)
    if segment.checkpoint is None or segment.commits_size > READ_AT_ONCE:
        return None
    try:
        protocol, metadata = _core.read_definition(store, segment.checkpoint_parts, segment.commits)
        if protocol is None or metadata is None:
            return None
        return Definition(segment.version, Protocol.from_json(protocol), Metadata.from_json(metadata))
    except (ProtocolError, FileNotFoundError):
        return None  # reading the whole log may succeed, or raise a better error


def _build(
    store: _core.Store, candidates: Iterable[Segment], again: Callable[[], Iterable[Segment]] | None
) -> _core.Snapshot:
    """Builds a version from the first segment that can be read. `again`: lists segments for a second attempt,
    if files were deleted meanwhile."""
    first_error: Exception | None = None
    passed_over: list[tuple[Segment, Exception]] = []
    for segment in candidates:
        try:
            parts, commits = segment.checkpoint_parts, segment.commits
            built = _core.Snapshot.load(
                store,
                segment.version,
                parts,
                commits,
                eager_limit=READ_AT_ONCE,
                again=partial(_build_again, store, segment),
            )
            for failed, why in passed_over:
                if failed.checkpoint is not None and failed.checkpoint != segment.checkpoint:
                    of = failed.checkpoint.version
                    log.warning(
                        "%s: the checkpoint of version %d cannot be read and is passed over: %s",
                        store.location,
                        of,
                        why,
                    )
            return built
        except (ProtocolError, FileNotFoundError) as error:
            first_error = first_error or error
            passed_over.append((segment, error))
            if isinstance(error, ProtocolError) and _needed_by_all(segment, error):
                break
    if first_error is None:
        raise ProtocolError("no segment to build the version from", where=store.location)
    # a cleanup deleted files after the listing
    if isinstance(first_error, FileNotFoundError) and again is not None:
        return _build(store, again(), None)
    if isinstance(first_error, FileNotFoundError):
        where, _, message = str(first_error).partition(": ")
        message = message or "a file that the version needs is missing"
        lost = ProtocolError(message, where=where, found="no such file", expected="a file of the log")
        raise lost.with_values(is_lost=True) from first_error
    raise first_error


def _build_again(store: _core.Store, former: Segment, version: int, damaged: bool) -> _core.Snapshot:
    """Builds a version again from a new listing, after another process's log cleanup deleted a file that had
    not been read yet. `damaged`: True if the checkpoint of the former segment exists but cannot be read."""
    candidates = segments(store, version)
    return _build(
        store,
        (each for each in candidates if each.checkpoint != former.checkpoint) if damaged else candidates,
        None,
    )


def _needed_by_all(segment: Segment, error: ProtocolError) -> bool:
    """True if the error is about a commit, which every other segment of the version needs, too."""
    named = re.search(rf"{LOG}/\d{{20}}\.json", str(error))
    return named is not None and any(path == named[0] for _, path in segment.commits)


def table_schema(protocol: Protocol, metadata: Metadata) -> _core.TableSchema:
    """Makes the `_core.TableSchema` of a table's definition."""
    mode = features.column_mapping_mode(protocol, metadata)
    return _core.TableSchema(metadata.schema_string, metadata.partition_columns, mode)
