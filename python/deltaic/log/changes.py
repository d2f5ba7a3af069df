"""The change data feed of a range of versions: which files have its rows (PROTOCOL.md: "Change Data
Files")."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from deltaic import _core
from deltaic.errors import InvalidArgumentError, VersionNotFoundError
from deltaic.log import history
from deltaic.log.history import Era
from deltaic.log.segment import Listing, list_log
from deltaic.log.snapshot import Snapshot
from deltaic.protocol import change_feed, widening
from deltaic.protocol.actions import Metadata
from deltaic.protocol.column_mapping import physical_names
from deltaic.protocol.schema import Schema

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, eq=False)
class Feed:
    """The changes of a range of versions.

    `snapshot`: the last version of the range.
    `schema`: the table's columns in the rows: the schema of `snapshot`. A column whose type was wider before
        the range has that wider type, as rows that the first version removed may need it.
    `derived`, `recorded`: the two tables of files of `_core.read_changes`; None if the range is empty."""

    snapshot: Snapshot
    schema: Schema
    derived: pa.Table | None = None
    recorded: pa.Table | None = None


@dataclass(frozen=True)
class Range:
    """The first and the last version of a range, each as a version or a timestamp."""

    starting_version: int | None = None
    ending_version: int | None = None
    starting_timestamp: datetime | str | None = None
    ending_timestamp: datetime | str | None = None

    def __post_init__(self) -> None:
        for name in ("starting", "ending"):
            version, time = getattr(self, f"{name}_version"), getattr(self, f"{name}_timestamp")
            if version is not None and time is not None:
                raise InvalidArgumentError(
                    f"{name}_version and {name}_timestamp exclude each other", found=f"{version!r}, {time!r}"
                )
            if version is not None and (
                isinstance(version, bool) or not isinstance(version, int) or version < 0
            ):
                raise InvalidArgumentError(
                    f"invalid {name}_version",
                    found=repr(version),
                    expected="the number of a version, 0 or more",
                )
        if self.starting_version is None and self.starting_timestamp is None:
            raise InvalidArgumentError(
                "changes() needs a first version or timestamp",
                found="no start",
                expected="starting_version or starting_timestamp",
            )


def feed(snapshot: Snapshot, versions: Range, *, allow_out_of_range: bool = False) -> Feed:
    """Returns the changes of the versions in a range, both ends inclusive; without an end, up to the version
    of `snapshot`.

    `allow_out_of_range`: True to end the range with the log; a range that begins after the log is empty.
        Otherwise an end that is not in the log is a VersionNotFoundError.
    InvalidArgumentError is raised if the range ends before it begins, or if a version in it has no change
    data feed; SchemaMismatchError if the schemas of the range cannot be read together.
    """
    listing = list_log(snapshot.store)
    ends = _Ends(snapshot, listing, allow_out_of_range)
    first, last = ends.first(versions), ends.last(versions)
    if first is None or last is None:
        return Feed(snapshot, snapshot.schema)
    if last < first:
        if (
            versions.starting_timestamp is not None
            and versions.ending_timestamp is not None
            and last == first - 1
        ):
            start, end = (
                history.milliseconds(versions.starting_timestamp),
                history.milliseconds(versions.ending_timestamp),
            )
            if start <= end:  # there is no version between the two timestamps
                return Feed(snapshot, snapshot.schema)
        error = InvalidArgumentError(
            "the range ends before it begins", found=f"version {last}", expected=f"version {first} or later"
        )
        raise error.with_values(first=first, last=last)
    missing = next((version for version in range(first, last + 1) if version not in listing.commits), None)
    if missing is not None:
        raise _not_there(snapshot, missing, listing)
    newest = snapshot.at(last)
    times = history.commit_times(listing)
    era = Era.of(newest.metadata.configuration)
    commits = [
        (each, listing.commit_path(each), None if era and each >= era.version else times[each])
        for each in range(first, last + 1)
    ]
    names = physical_names(newest.schema, newest.metadata.partition_columns)
    metadata, derived, recorded = _core.read_changes(snapshot.store, commits, names)
    changed = {first + at: Metadata.from_json(text) for at, text in enumerate(metadata) if text is not None}
    schema = _with_types_before(newest, first) if first in changed else newest.schema
    _check(newest, first, changed)
    return Feed(newest, schema, derived, recorded)


def _with_types_before(last: Snapshot, first: int) -> Schema:
    """Returns the schema of the last version, with the wider types of the version before the first one."""
    if first == 0:
        return last.schema
    try:
        before = last.at(first - 1)
    except VersionNotFoundError:  # the log does not reach back so far
        return last.schema
    return widening.with_wider_types(last.schema, before.schema)


def _check(last: Snapshot, first: int, changed: dict[int, Metadata]) -> None:
    """Checks that each version of the range has the feed, and a schema that can be read with the last one.

    `changed`: the metadata actions of the range, by version."""
    if first not in changed:
        changed[first] = last.metadata if not changed else last.at(first).metadata
    for version, metadata in sorted(changed.items()):
        if not change_feed.is_enabled(metadata.configuration):
            error = InvalidArgumentError(
                f"the change data feed was not on at version {version}, so its changes are not recorded",
                where=last.location,
                found=f"{change_feed.PROPERTY} = {metadata.configuration.get(change_feed.PROPERTY, 'false')}",
                expected="a range of versions that all have it",
            )
            raise error.with_values(first=first, last=last.version)
        if metadata.schema_string != last.metadata.schema_string:
            change_feed.check_compatible(
                Schema.from_json(metadata.schema_string), last.schema, version, first, last.version
            )
        if metadata.partition_columns != last.metadata.partition_columns:
            raise InvalidArgumentError(
                f"the partition columns changed between version {version} and {last.version}, so their"
                " changes cannot be read together",
                where=last.location,
                found=", ".join(last.metadata.partition_columns) or "none",
                expected=", ".join(metadata.partition_columns) or "none",
            )


def _not_there(snapshot: Snapshot, version: int, listing: Listing) -> VersionNotFoundError:
    there = f"{min(listing.commits)} to {max(listing.commits)}" if listing.commits else "none"
    return VersionNotFoundError(
        "the log does not have the version", where=snapshot.location, found=version, expected=there
    )


class _Ends:
    """Finds the ends of a range as versions; None for an end outside of the log, if that is allowed."""

    def __init__(self, snapshot: Snapshot, listing: Listing, allow_out_of_range: bool) -> None:
        self._snapshot, self._listing, self._allowed = snapshot, listing, allow_out_of_range

    def first(self, versions: Range) -> int | None:
        version = versions.starting_version
        if version is None:
            assert versions.starting_timestamp is not None
            version = first_version_at(
                self._snapshot, self._listing, versions.starting_timestamp, after_last=self._allowed
            )
        if version > self._listing.latest and self._allowed:
            return None
        if version > self._listing.latest:
            message = "the changes begin after the last version"
            raise VersionNotFoundError(
                message, where=self._snapshot.location, found=version, expected=self._listing.latest
            )
        if version not in self._listing.commits:
            raise _not_there(self._snapshot, version, self._listing)
        return version

    def last(self, versions: Range) -> int | None:
        if versions.ending_timestamp is not None:
            return history.version_at(
                self._snapshot.store, versions.ending_timestamp, after_last=self._allowed
            )
        version = versions.ending_version
        if version is None:
            return self._snapshot.version
        if version > self._listing.latest:
            if not self._allowed:
                raise _not_there(self._snapshot, version, self._listing)
            return self._listing.latest
        return version


def first_version_at(
    snapshot: Snapshot, listing: Listing, timestamp: datetime | str, *, after_last: bool = False
) -> int:
    """Returns the first version with this timestamp or a later one. If there is none, VersionNotFoundError is
    raised, or with `after_last` the next version is returned."""
    time = history.milliseconds(timestamp)
    times = history.commit_times(listing)
    versions = list(times)
    era = Era.of(snapshot.metadata.configuration)
    if era is not None:
        own = [each for each in versions if each >= era.version]
        if era.holds(snapshot.store, time) or not [each for each in versions if each < era.version]:
            at = bisect_left(own, time, key=lambda each: history.in_commit_time(snapshot.store, each))
            found = own[at] if at < len(own) else None
        else:
            older = (each for each in versions if each < era.version and times[each] >= time)
            found = next(older, own[0] if own else None)
    else:
        found = next((each for each in versions if times[each] >= time), None)
    if found is not None:
        return found
    if after_last:
        return listing.latest + 1
    last = history.moment(times[versions[-1]]) if versions else None
    error = VersionNotFoundError(
        history.AFTER_LAST,
        where=snapshot.location,
        found=history.moment(time).isoformat(),
        expected=None if last is None else f"{last.isoformat()} or earlier",
    )
    raise error.with_values(time=history.moment(time), bound=last)
