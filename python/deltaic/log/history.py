"""The timestamp and the commitInfo of each version (PROTOCOL.md: Commit Provenance Information)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from typing import Any

from deltaic import _core
from deltaic.errors import InvalidArgumentError, InvalidTypeError, ProtocolError, VersionNotFoundError, placed
from deltaic.log import catalog
from deltaic.log.segment import Listing, cannot_build, commit_path, list_log, nothing_here, reconstructible
from deltaic.protocol.bounded_json import parse_json

# Number of commits that the history reads at once: few at first, as a caller may stop early, then twice as
# many each time up to the maximum.
_FIRST_READ = 16
_MOST_READ = 1024

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


AFTER_LAST = "the time is after the last version"
"""Message of the VersionNotFoundError about a time to come."""


def milliseconds(timestamp: datetime | str) -> int:
    """Converts a timestamp to ms since 1970. Text is ISO 8601; a date is its midnight; without a zone it is
    in UTC."""
    if isinstance(timestamp, str):
        try:
            moment = datetime.fromisoformat(timestamp.strip().upper())  # Python reads no `z`
        except ValueError:
            raise InvalidArgumentError(
                "not a timestamp", found=repr(timestamp), expected="ISO 8601, like '2026-01-31T12:00:00Z'"
            ) from None
    elif isinstance(timestamp, datetime):
        moment = timestamp
    elif isinstance(timestamp, date):
        moment = datetime(timestamp.year, timestamp.month, timestamp.day)
    else:
        raise InvalidTypeError(
            "timestamp has the wrong type",
            found=type(timestamp).__name__,
            expected="datetime or text in ISO 8601",
        )
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=timezone.utc)
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def moment(ms: int) -> datetime:
    """Converts a time of the log, in ms since 1970, to a datetime in UTC. A time outside the years 1 to 9999
    is a ProtocolError."""
    try:
        return _EPOCH + timedelta(milliseconds=ms)
    except OverflowError:
        raise ProtocolError(
            "a time in the log is out of range", found=f"{ms} ms since 1970", expected="the years 1 to 9999"
        ) from None


def travel_time(micros: int | None, text: str) -> datetime:
    """Returns the timestamp of time travel as a datetime in UTC. `micros`: the value of its SQL expression
    `text`, in microseconds since 1970; null is an InvalidArgumentError. A time before the year 1 or after
    9999 becomes the first or the last time that a datetime can have: no commit is older or newer."""
    if micros is None:
        raise InvalidArgumentError(
            f"The provided timestamp ({text}) cannot be converted to a valid timestamp", found=text
        )
    least, most = (
        (time.replace(tzinfo=timezone.utc) - _EPOCH) // timedelta(microseconds=1)
        for time in (datetime.min, datetime.max)
    )
    return _EPOCH + timedelta(microseconds=min(max(micros, least), most))


def commit_times(listing: Listing) -> dict[int, int]:
    """Returns version -> ms, ascending: the modification times of the commit files. A time that is not after
    the one of the version before becomes that time + 1 ms."""
    times: dict[int, int] = {}
    last: int | None = None
    for version in sorted(listing.commits):
        time = listing.commits[version]
        last = time if last is None or time > last else last + 1
        times[version] = last
    return times


@dataclass(frozen=True)
class Era:
    """The first version with in-commit timestamps, and its time (ms). `time`: None if the properties do not
    have it, or if all versions have in-commit timestamps."""

    version: int = 0
    time: int | None = None

    def holds(self, store: _core.Store, wanted: int) -> bool:
        """True if a time (ms) is not before the one of the first version with in-commit timestamps."""
        if self.version == 0:
            return True
        return wanted >= (in_commit_time(store, self.version) if self.time is None else self.time)

    @staticmethod
    def of(configuration: Mapping[str, str]) -> Era | None:
        """Parses the properties of the newest version; None if the table has no in-commit timestamps. A value
        that is no number is a ProtocolError."""
        if configuration.get("delta.enableInCommitTimestamps", "false").strip().lower() != "true":
            return None
        since, time = (
            _number(configuration, f"delta.inCommitTimestampEnablement{what}")
            for what in ("Version", "Timestamp")
        )
        return Era() if since is None else Era(since, time)


def _number(configuration: Mapping[str, str], name: str) -> int | None:
    text = configuration.get(name)
    if text is not None and not text.strip().isdecimal():
        raise ProtocolError(
            "not a valid value", where=f"table property {name}", found=repr(text), expected="a whole number"
        )
    return None if text is None else int(text)


def in_commit_time(store: _core.Store, version: int) -> int:
    """Returns the in-commit timestamp (ms) of a version. A commit that has none or was deleted is a
    ProtocolError."""
    try:
        info = commit_info(store, version)
    except FileNotFoundError as error:
        raise ProtocolError(
            "the table has in-commit timestamps, and a commit whose timestamp is needed is missing",
            where=f"{store.location}/{commit_path(version)}",
        ) from error
    written = info.get("inCommitTimestamp")
    if not isinstance(written, int) or isinstance(written, bool):
        missing = "TIMESTAMP" if info else "INFO"
        raise ProtocolError(
            f"[DELTA_MISSING_COMMIT_{missing}] the table has in-commit timestamps, and a commit has none",
            where=f"{store.location}/{commit_path(version)}",
            found=repr(written),
            expected="commitInfo.inCommitTimestamp",
        ).with_values(version=version)
    return written


def version_at(
    store: _core.Store, timestamp: datetime | str, version: int | None = None, *, after_last: bool = True
) -> int:
    """Returns the newest version with a timestamp at or before `timestamp`.

    `version`: must be None; callers pass the user's argument. `after_last`: False to raise
    VersionNotFoundError for a time after the last version. A time before the first version that can be read
    is a VersionNotFoundError.
    """
    if version is not None:
        raise InvalidArgumentError(
            "version and timestamp exclude each other", found=f"version={version}, timestamp={timestamp!r}"
        )
    wanted = milliseconds(timestamp)
    listing = list_log(store)
    if listing.is_empty:
        raise nothing_here(store)
    usable = set(reconstructible(listing))
    if not usable:
        raise cannot_build(store, listing, listing.latest, newest=True)
    times = {each: time for each, time in commit_times(listing).items() if each in usable}
    era = _era(store, listing)
    if era is not None and era.holds(store, wanted):
        own = [each for each in times if each >= era.version]  # ascending, and so are their times
        count = bisect_right(own, wanted, key=lambda each: in_commit_time(store, each))
        found = own[count - 1] if count else None
        first = None if not own or found is not None else (own[0], in_commit_time(store, own[0]))
    else:
        older = {each: time for each, time in times.items() if era is None or each < era.version}
        found = max((each for each, time in older.items() if time <= wanted), default=None)
        first = next(iter(older.items()), None)
    if found is None:
        error = VersionNotFoundError(
            "the time is before the first version",
            where=store.location,
            found=moment(wanted).isoformat(),
            expected=f"{moment(first[1]).isoformat()} (version {first[0]}) or later"
            if first is not None
            else None,
        )
        raise error.with_values(time=moment(wanted), bound=None if first is None else moment(first[1]))
    if not after_last and found == max(usable):
        last = in_commit_time(store, found) if era is not None and found >= era.version else times[found]
        if wanted > last:
            error = VersionNotFoundError(
                AFTER_LAST,
                where=store.location,
                found=moment(wanted).isoformat(),
                expected=f"{moment(last).isoformat()} (version {found}) or earlier",
            )
            raise error.with_values(time=moment(wanted), bound=moment(last))
    return found


def _era(store: _core.Store, listing: Listing) -> Era | None:
    newest = max(listing.commits, default=None)
    if newest is None or "inCommitTimestamp" not in commit_info(store, newest):
        return None
    from deltaic.log.snapshot import Snapshot  # imported here, as `snapshot` imports this module

    return Era.of(Snapshot.load(store).metadata.configuration)


def commit_info(store: _core.Store, version: int) -> dict[str, Any]:
    """Reads the commitInfo of a version; empty if the commit has none."""
    path = catalog.commit_file(store, version)
    with placed(lambda error: path):
        return parse_commit_info(_core.read_commit_info(store, path))


def parse_commit_info(text: str | None) -> dict[str, Any]:
    """Parses the JSON of commitInfo; empty for None. JSON that Python cannot hold is a ProtocolError."""
    try:
        value = parse_json(text) if text else {}
    except ValueError as error:  # a number of thousands of digits
        raise ProtocolError(
            "the information on the commit cannot be read",
            where="commitInfo",
            found=str(error),
            expected="JSON",
        ) from None
    value = value.get("commitInfo", value) if isinstance(value, dict) else {}
    return value if isinstance(value, dict) else {}


def entries(
    store: _core.Store, newest: int, limit: int | None = None, *, era: Era | None = None
) -> Iterator[dict[str, Any]]:
    """Yields the commitInfo of each version up to `newest`, newest first, with the keys `version` and
    `timestamp` (datetime, UTC). The timestamp is the in-commit timestamp for versions in `era`, else that of
    the commit's file."""
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 0):
        raise InvalidArgumentError("invalid limit", found=repr(limit), expected="a number >= 0, or None")
    times = commit_times(list_log(store))
    versions = sorted((each for each in times if each <= newest), reverse=True)[:limit]
    first, count = 0, _FIRST_READ
    while first < len(versions):
        for version, info in _commit_infos(store, versions[first : first + count]):
            own = info.get("inCommitTimestamp") if era is not None and version >= era.version else None
            yield {
                **info,
                "version": version,
                "timestamp": moment(own if isinstance(own, int) else times[version]),
            }
        first, count = first + count, min(2 * count, _MOST_READ)


def _commit_infos(store: _core.Store, versions: list[int]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yields (version, commitInfo) of each version, in order."""
    if len(versions) == 1:
        yield versions[0], commit_info(store, versions[0])
        return
    paths = catalog.commit_files(store, versions)
    for version, path, text in zip(versions, paths, _core.read_commit_infos(store, paths), strict=True):
        with placed(lambda error, path=path: path):  # type: ignore[misc]
            info = parse_commit_info(text)
        yield version, info
