"""Plans the batches of a reader that follows a table: the files between two offsets. Both engines use this
module.

A reader begins with all files of a version (the initial snapshot), ordered by modification time and path, or
with the commits from one version on. Then it reads the files that each commit adds, in the commit's order.
The rules and the names of errors are those of delta-spark's DeltaSource.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from deltaic import _core
from deltaic.errors import (
    InvalidArgumentError,
    ProtocolError,
    SchemaMismatchError,
    UnsupportedFeatureError,
    VersionNotFoundError,
)
from deltaic.log import catalog, changes, history
from deltaic.log.schema_log import (
    SchemaLog,
    TrackedSchema,
    check_one_schema,
)
from deltaic.log.segment import Listing, list_log
from deltaic.log.segment import newest as newest_listing
from deltaic.log.snapshot import Snapshot
from deltaic.log.stream_files import CommitFiles, StreamFiles
from deltaic.log.stream_limits import BatchRoom, Limits
from deltaic.log.stream_offset import AFTER_METADATA_CHANGE, BASE, METADATA_CHANGE, StreamOffset
from deltaic.log.stream_options import StreamOptions
from deltaic.log.stream_schema import StreamSchema
from deltaic.protocol import change_feed, features
from deltaic.protocol.actions import Metadata, Protocol
from deltaic.protocol.column_mapping import physical_names

if TYPE_CHECKING:
    import pyarrow as pa
else:
    from deltaic.deferred import pyarrow as pa

KEPT_FILES = 100_000
"""Maximum number of files of parsed commits that are cached between planning a batch and reading it. Commits
beyond it are read again."""
_COLUMNS = (
    "path",
    "partitionValues",
    "size",
    "modificationTime",
    "stats",
    "deletionVector",
    "baseRowId",
    "defaultRowCommitVersion",
)


class TableStream:
    """A table as a stream of files.

    `snapshot`: all rows have its schema; it is also the initial snapshot.
    `schema_log`: if set, the stream stops at each version that changes the definition, and adds it to this
    log."""

    def __init__(
        self, snapshot: Snapshot, options: StreamOptions, schema_log: SchemaLog | None = None
    ) -> None:
        if options.changes and not change_feed.is_enabled(snapshot.metadata.configuration):
            raise InvalidArgumentError(
                "[DELTA_MISSING_CHANGE_DATA] the change data feed of the table is off",
                where=snapshot.location,
                found=f"{change_feed.PROPERTY} = false",
                expected="true",
            )
        self.snapshot, self.options = snapshot, options
        self.table_id = snapshot.metadata.id
        self._initial: tuple[int, pa.Table] | None = None
        self._commits: OrderedDict[int, CommitFiles] = OrderedDict()
        self._kept = 0
        self._is_checked = False
        self._definitions: dict[int, tuple[Metadata | None, Protocol | None]] = {}
        self.schema_log = schema_log
        self._schema = StreamSchema(snapshot, options)

    def parse(self, text: str) -> StreamOffset:
        """Parses an offset. Text that is no offset of this table is an InvalidArgumentError."""
        return StreamOffset.parse(text, self.table_id)

    def start(self) -> StreamOffset:
        """Returns the first offset of a reader. A version that the log does not have, and a time after the
        last commit, are a VersionNotFoundError, unless the options allow a start after the last commit."""
        allowed = self.options.changes and self.options.allow_out_of_range
        start, snapshot = self.options.start, self.snapshot
        if start == "earliest":
            return StreamOffset(self.table_id, snapshot.version, initial=True)
        if start == "latest":
            return StreamOffset(self.table_id, snapshot.version + 1)
        listing = list_log(snapshot.store)
        if isinstance(start, datetime):
            version = changes.first_version_at(snapshot, listing, start, after_last=allowed)
            return StreamOffset(self.table_id, version)
        first, last = min(listing.commits, default=0), max(listing.commits, default=-1)
        if not first <= start <= last and not (allowed and start > last):
            there = f"{first} to {last}" if listing.commits else "none"
            message = "[DELTA_VERSION_NOT_FOUND] the log does not have the version"
            raise VersionNotFoundError(message, where=snapshot.location, found=start, expected=there)
        return StreamOffset(self.table_id, int(start))

    def first(self, end: StreamOffset) -> StreamOffset:
        """Returns the start of a reader's first batch for its end. Spark's checkpoint of a stream has only
        the end."""
        if self.options.start == "earliest":
            return StreamOffset(
                end.table_id, end.version if end.initial else max(end.version - 1, 0), initial=True
            )
        start = self.start()
        return start if (start.version, start.index) < (end.version, end.index) else end

    def end(self, at: StreamOffset) -> StreamOffset:
        """Returns the offset after the newest commit. `at`: the offset of the reader."""
        newest = max(self._listed(at.version).commits, default=at.version if at.initial else at.version - 1)
        return StreamOffset(self.table_id, newest + 1)

    def next(
        self, at: StreamOffset, limits: Limits | None, until: StreamOffset | None = None
    ) -> StreamOffset:
        """Returns the end of the batch that begins at an offset; the offset itself if there is nothing new.
        `limits`: None for no limit. `until`: a result of `end` that the batch must not exceed."""
        if self.schema_log is not None:
            self._note_first(self.schema_log, at)
        self._check_start(at)
        if self.schema_log is not None:
            if at.index == METADATA_CHANGE:
                return replace(at, index=AFTER_METADATA_CHANGE)
            if at.index == AFTER_METADATA_CHANGE:
                self.commit(at)  # the query may have died before it did this
        if at.initial and self.options.with_event_time_order:
            return StreamOffset(self.table_id, at.version + 1)
        room = BatchRoom(limits)
        if at.initial:
            files = self._initial_files(at.version)
            first = max(at.index, BASE) + 1
            taken = room.take(files.slice(first))
            if first + taken < files.num_rows:
                return replace(at, index=first + taken - 1) if taken else at
            at = StreamOffset(self.table_id, at.version + 1)
        for version in self._versions(at.version, until):
            if room.is_full:
                break
            if self.schema_log is not None and self._changes_definition(version):
                return StreamOffset(self.table_id, version, METADATA_CHANGE)
            first = max(at.index, BASE) + 1 if version == at.version else 0
            commit = self._commit(version)
            if self._is_whole(commit):
                self._check_end(commit, version, first)
                if not first and not room.take_all(commit.count, commit.size):
                    break
            elif (taken := room.take(self._split(commit).slice(first))) + first < self._split(
                commit
            ).num_rows:
                return (
                    StreamOffset(self.table_id, version, first + taken - 1)
                    if taken or first
                    else StreamOffset(self.table_id, version)
                )
            at = StreamOffset(self.table_id, version + 1)
        return at

    def resume(self, at: StreamOffset) -> None:
        """Checks that the stream's schema can read the rows before an offset at which a query is started
        again, because its sink has these rows. Example: the column that the next commit renames."""
        if self.schema_log is None and not at.initial and at.index == BASE and at.version > 0:
            self._check_start(replace(at, version=at.version - 1))

    def commit(self, end: StreamOffset) -> None:
        """Ends a batch at an offset. If the definition of the table changes there, it is added to the schema
        log, so that the query goes on with it when it is started again, and SchemaMismatchError is raised."""
        if self.schema_log is None or end.index not in (METADATA_CHANGE, AFTER_METADATA_CHANGE):
            return
        tracked = self.schema_log.current
        if tracked is not None and self._changes_definition(end.version):
            self.schema_log.append(tracked.after(end.version, *self._definition_at(end.version)))
            raise self._evolved(end.version)

    def batch(self, start: StreamOffset, end: StreamOffset) -> StreamFiles:
        """Returns the files from one offset to another. The offsets come from `next` or from delta-spark."""
        if self.schema_log is not None:
            self._note_first(self.schema_log, start, end)
        self._check_start(start)
        added: list[pa.Table] = []
        derived, recorded = [], []
        first = max(start.index, BASE) + 1
        time = None
        version = start.version
        if start.initial:
            files = self._initial_files(version)
            last = max(end.index, BASE) + 1 if end.initial else files.num_rows
            added.append(files.slice(first, max(last - first, 0)))
            version, first = version + 1, 0
            if self.options.changes:
                time = self._time_of(start.version)
        last_version = end.version if end.index > BASE and not end.initial else end.version - 1
        for each in range(version, last_version + 1):
            commit = self._commit_or_none(each)
            if commit is None:
                continue
            since = first if each == version else 0
            count = max(end.index, BASE) + 1 - since if each == end.version else None
            if commit.derived is None or commit.recorded is None:
                added.append(commit.added.slice(since, count))
            elif self._is_whole(commit):
                self._check_end(commit, each, since or count or 0)
                if not since:
                    derived.append(commit.derived)
                    recorded.append(commit.recorded)
            else:
                derived.append(commit.derived.slice(since, count))
        for done in [known for known in self._commits if known < start.version]:
            self._forget(done)
        for older in [known for known in self._definitions if known < start.version]:
            del self._definitions[older]
        files = self.options.without_excluded(_together(added))
        if not self.options.changes:
            return StreamFiles(self.snapshot, files)
        one, other = (
            self.options.without_excluded(pa.concat_tables(tables)) if tables else None
            for tables in (derived, recorded)
        )
        return StreamFiles(self.snapshot, files, one, other, True, start.version, time)

    # --- files

    def _initial_files(self, version: int) -> pa.Table:
        if self._initial is None or self._initial[0] != version:
            snapshot = self.snapshot
            if version != snapshot.version:
                snapshot = self._load_initial(version)
                self._schema.check(snapshot.metadata, version)
            files = snapshot.files().adds
            files = files.select([name for name in _COLUMNS if name in files.column_names])
            self._initial = version, files.sort_by([("modificationTime", "ascending"), ("path", "ascending")])
        return self._initial[1]

    def _load_initial(self, version: int) -> Snapshot:
        """Loads the initial snapshot of a reader that began with an older version than that of this object. A
        version that cannot be loaded any more is a VersionNotFoundError."""
        try:
            return Snapshot.load(self.snapshot.store, version=version)
        except (VersionNotFoundError, FileNotFoundError):
            raise VersionNotFoundError(
                "[DELTA_LOG_FILE_NOT_FOUND_FOR_STREAMING_SOURCE] the version whose rows the stream reads"
                " first was deleted from the log, probably because of its retention; start a new stream with"
                " a new checkpoint",
                where=self.snapshot.location,
                found="no such version",
                expected=f"version {version}",
            ) from None

    def _listed(self, first: int) -> Listing:
        """Lists the log from a version on, with the commits of transactions over several tables."""
        listing = newest_listing(self.snapshot.store, partial(list_log, self.snapshot.store, first))
        if listing.unwritten is None:
            return listing
        # the commit is read when another process has written it to the log
        return list_log(self.snapshot.store, first)

    def _versions(self, first: int, until: StreamOffset | None) -> Iterator[int]:
        """Yields the versions of the log from `first` on. A gap is an error with `fail_on_data_loss`."""
        commits = self._listed(first).commits
        expected = first
        for version in sorted(commits):
            if until is not None and version >= until.version:
                return
            if version != expected and self.options.fail_on_data_loss:
                raise self._lost(expected, version)
            expected = version + 1
            yield version

    def _lost(self, version: int, there: int | None = None) -> VersionNotFoundError:
        return VersionNotFoundError(
            "[DELTA_MISSING_FILES_UNEXPECTED_VERSION] commits that the stream has not read yet were deleted"
            " from the log, probably because of its retention; start a new stream, or set"
            " failOnDataLoss=false to continue without these commits",
            where=self.snapshot.location,
            found=None if there is None else f"version {there}",
            expected=f"version {version}",
        )

    def _commit_or_none(self, version: int) -> CommitFiles | None:
        try:
            return self._commit(version)
        except VersionNotFoundError:
            if self.options.fail_on_data_loss:
                raise
            return None

    def _commit(self, version: int) -> CommitFiles:
        if (known := self._commits.get(version)) is not None:
            return known
        try:
            commit = self._changes_of(version) if self.options.changes else self._added_by(version)
        except FileNotFoundError:
            raise self._lost(version) from None
        self._commits[version] = commit
        self._kept += commit.count
        while len(self._commits) > 1 and self._kept > KEPT_FILES:
            self._forget(next(iter(self._commits)))
        return commit

    def _forget(self, version: int) -> None:
        self._kept -= self._commits.pop(version).count

    def _added_by(self, version: int) -> CommitFiles:
        commit = _core.read_commit(
            self.snapshot.store, version, catalog.commit_file(self.snapshot.store, version)
        )
        self._check_definition(version, commit.protocol, commit.metadata)
        added = commit.adds.filter(commit.adds["dataChange"])
        removed = commit.removes.filter(commit.removes["dataChange"])
        if removed.num_rows and self._skips(version, removed["path"][0].as_py(), adds=bool(added.num_rows)):
            added = added.slice(0, 0)
        return CommitFiles(added.select(_COLUMNS))

    def _skips(self, version: int, path: str, *, adds: bool) -> bool:
        """True if the options skip a commit that removes files. InvalidArgumentError is raised if no option
        covers it."""
        options = self.options
        if options.skip_change_commits:
            return True
        if adds and not options.ignore_changes:
            raise InvalidArgumentError(
                f"[DELTA_SOURCE_TABLE_IGNORE_CHANGES] version {version} updates rows of the table, which a"
                " stream of rows cannot express; skipChangeCommits skips such commits, ignoreChanges returns"
                " all rows of their new files, and readChangeFeed returns the changes",
                where=self.snapshot.location,
                found=f"the file {path} is removed, and others are added",
            )
        if not adds and not (options.ignore_deletes or options.ignore_changes):
            raise InvalidArgumentError(
                f"[DELTA_SOURCE_IGNORE_DELETE] version {version} deletes rows of the table, which a stream of"
                " rows cannot express; ignoreDeletes skips such commits",
                where=self.snapshot.location,
                found=f"the file {path} is removed",
            )
        return False

    def _changes_of(self, version: int) -> CommitFiles:
        store = self.snapshot.store
        path = catalog.commit_file(store, version)
        commit = _core.read_commit(store, version, path)
        self._check_definition(version, commit.protocol, commit.metadata)
        era = history.Era.of(self.snapshot.metadata.configuration)
        own = era is not None and version >= era.version
        time = None if own else history.commit_times(list_log(store, max(version - 1, 0)))[version]
        names = physical_names(self.snapshot.schema, self.snapshot.metadata.partition_columns)
        _, derived, recorded = _core.read_changes(store, [(version, path, time)], names)
        plain = (
            not commit.removes.num_rows
            and not recorded.num_rows
            and not derived["selection"].is_valid().to_numpy().any()
        )
        added = commit.adds.filter(commit.adds["dataChange"]).select(_COLUMNS)
        return CommitFiles(added if plain else added.slice(0, 0), derived, recorded)

    @staticmethod
    def _is_whole(commit: CommitFiles) -> bool:
        """True if a batch must have all of the commit's files or none, because a row before an update and the
        row after it must be in one batch."""
        return commit.derived is not None and not commit.added.num_rows

    def _check_end(self, commit: CommitFiles, version: int, count: int) -> None:
        """Raises InvalidArgumentError for an offset within a commit of changes, behind `count` of its files.
        An offset behind all of them is after the commit: delta-spark ends a batch with the number of the
        commit's last file, and counts both the file that an UPDATE removes and the one that it adds."""
        if 0 < count < commit.count:
            raise InvalidArgumentError(
                "the offset is within a commit whose changes must be in one batch",
                where=self.snapshot.location,
                found=f"file {count} of {commit.count} of version {version}",
                expected="an offset before or after the commit",
            )

    @staticmethod
    def _split(commit: CommitFiles) -> pa.Table:
        return commit.added if commit.derived is None else commit.derived

    def _time_of(self, version: int) -> datetime:
        store, era = self.snapshot.store, history.Era.of(self.snapshot.metadata.configuration)
        if era is not None and version >= era.version:
            return history.moment(history.in_commit_time(store, version))
        times = history.commit_times(list_log(store))
        return history.moment(times.get(version, self.snapshot.modified or 0))

    # --- definitions

    def _check_start(self, at: StreamOffset) -> None:
        """Checks once that the stream's schema can read rows from the start on, if it is an older version."""
        if self._is_checked:
            return
        self._is_checked = True
        if self.schema_log is not None:
            self.schema_log.check_allowed()
            if self.schema_log.current is not None:
                return
        if not at.initial and at.version < self.snapshot.version:
            try:
                metadata = Snapshot.load(self.snapshot.store, version=at.version).metadata
            except UnsupportedFeatureError:
                raise
            except (VersionNotFoundError, ProtocolError, FileNotFoundError):
                return  # the version cannot be loaded, but each commit is checked when it is read
            self._schema.check(metadata, at.version)

    def _check_definition(self, version: int, protocol: str | None, metadata: str | None) -> None:
        if metadata is not None and self.schema_log is None:
            self._schema.check(Metadata.from_json(metadata), version)
        if protocol is not None:
            features.check_readable(
                Protocol.from_json(protocol), catalog=partial(catalog.has_coordinator, self.snapshot.store)
            )

    def _note_first(self, log: SchemaLog, at: StreamOffset, end: StreamOffset | None = None) -> None:
        """Adds the definition at the start of the stream as the first entry of an empty schema log. If its
        columns differ from the stream's schema, SchemaMismatchError is raised; a query that is started again
        has the schema of the entry. `end`: the end of a batch that the query planned without a schema log;
        the entry is then the last definition of the batch."""
        if log.current is not None:
            return
        version = min(at.version, self.snapshot.version)
        snapshot = self._at_version(version)
        last = version if end is None else end.version - (end.index <= BASE)
        if last > version:
            known = [self._definition_at(each)[0] for each in range(version + 1, last + 1)]
            check_one_schema(snapshot, [each for each in known if each is not None], last)
            version, snapshot = last, self._at_version(last)
        first = TrackedSchema.of(version, self.table_id, snapshot.metadata, snapshot.protocol)
        log.append(first)
        if first.differs_in_columns(self.snapshot.metadata):
            raise self._evolved(version)

    def _at_version(self, version: int) -> Snapshot:
        if version == self.snapshot.version:
            return self.snapshot
        return Snapshot.load(self.snapshot.store, version=version)

    def _definition_at(self, version: int) -> tuple[Metadata | None, Protocol | None]:
        """Returns the metadata and the protocol in a commit; None for each that it does not have."""
        if version not in self._definitions:
            commit = _core.read_commit(
                self.snapshot.store, version, catalog.commit_file(self.snapshot.store, version)
            )
            metadata = None if commit.metadata is None else Metadata.from_json(commit.metadata)
            self._definitions[version] = (
                metadata,
                None if commit.protocol is None else Protocol.from_json(commit.protocol),
            )
        return self._definitions[version]

    def _changes_definition(self, version: int) -> bool:
        tracked = None if self.schema_log is None else self.schema_log.current
        if tracked is None or version <= tracked.version:
            return False
        try:
            return tracked.differs(*self._definition_at(version))
        except FileNotFoundError:
            raise self._lost(version) from None

    def _evolved(self, version: int) -> SchemaMismatchError:
        return SchemaMismatchError(
            f"[DELTA_STREAMING_METADATA_EVOLUTION] the definition of the table changed at version {version};"
            " the log of schemas has the new one: start the query again to continue with it",
            where=self.snapshot.location,
        )


def _together(tables: list[pa.Table]) -> pa.Table:
    return (
        pa.concat_tables(tables, promote_options="default") if tables else _core.empty_adds().select(_COLUMNS)
    )
