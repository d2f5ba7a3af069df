"""When each version was made, and what its commit says of itself (PROTOCOL.md: Commit Provenance Information)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import date, datetime, timedelta, timezone
from typing import Any

from deltaic import _core
from deltaic.errors import InvalidArgumentError, InvalidTypeError, TableNotFoundError, VersionNotFoundError
from deltaic.log.segment import LOG, Listing, commit_path, list_log, reconstructible

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def milliseconds(timestamp: datetime | str) -> int:
    """A point in time as ms since 1970. Text is ISO 8601 (a date alone is its midnight); what has no zone is UTC."""
    if isinstance(timestamp, str):
        text = timestamp.strip()
        # Python 3.10 reads neither a final Z, nor a zone of hours alone or without a colon, nor fractions of another length than 3 or 6
        # digits.
        text = re.sub(r"[zZ]$", "+00:00", text)
        if ":" in text:
            text = re.sub(r"([+-]\d\d)$", r"\1:00", text)
            text = re.sub(r"([+-]\d\d)(\d\d)$", r"\1:\2", text)
        text = re.sub(r"\.(\d{1,9})", lambda match: "." + match[1][:6].ljust(6, "0"), text)
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            raise InvalidArgumentError("not a timestamp", found=repr(timestamp), expected="ISO 8601, like '2026-01-31T12:00:00Z'") from None
    elif isinstance(timestamp, datetime):
        moment = timestamp
    elif isinstance(timestamp, date):
        moment = datetime(timestamp.year, timestamp.month, timestamp.day)
    else:
        raise InvalidTypeError("timestamp", found=type(timestamp).__name__, expected="datetime or text in ISO 8601")
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=timezone.utc)
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def moment(ms: int) -> datetime:
    """Milliseconds since 1970 as a datetime in UTC."""
    return _EPOCH + timedelta(milliseconds=ms)


def commit_times(listing: Listing) -> dict[int, int]:
    """Version -> ms, ascending: modification times of the commit files, each at least 1 ms after the one before."""
    times: dict[int, int] = {}
    last: int | None = None
    for version in sorted(listing.commits):
        time = listing.commits[version]
        last = time if last is None or time > last else last + 1
        times[version] = last
    return times


def in_commit_times(store: _core.Store, times: Mapping[int, int], configuration: Mapping[str, str]) -> dict[int, int]:
    """`times` with inCommitTimestamp from the version on where the table began to write it (none: unchanged)."""
    if configuration.get("delta.enableInCommitTimestamps", "false").lower() != "true":
        return dict(times)
    since = int(configuration.get("delta.inCommitTimestampEnablementVersion", "0"))
    result = dict(times)
    for version in times:
        if version >= since:
            written = commit_info(store, version).get("inCommitTimestamp")
            if isinstance(written, int):
                result[version] = written
    return result


def version_at(store: _core.Store, timestamp: datetime | str, version: int | None = None) -> int:
    """The newest version made at `timestamp` or before; the last one for a time after it.

    VersionNotFoundError for a time before the first version that can still be read.
    """
    if version is not None:
        raise InvalidArgumentError("version and timestamp exclude each other", found=f"version={version}, timestamp={timestamp!r}")
    wanted = milliseconds(timestamp)
    listing = list_log(store)
    if listing.is_empty:
        raise TableNotFoundError("no Delta table here: the log is empty or missing", where=f"{store.location}/{LOG}")
    usable = set(reconstructible(listing))
    times = {each: time for each, time in _times(store, listing).items() if each in usable}
    found = max((each for each, time in times.items() if time <= wanted), default=None)
    if found is None:
        first = min(times, default=None)
        raise VersionNotFoundError(
            "the time is before the first version",
            where=store.location,
            found=moment(wanted).isoformat(),
            expected=f"{moment(times[first]).isoformat()} (version {first}) or later" if first is not None else None,
        )
    return found


def _times(store: _core.Store, listing: Listing) -> dict[int, int]:
    times = commit_times(listing)
    newest = max(times, default=None)
    if newest is None or "inCommitTimestamp" not in commit_info(store, newest):
        return times
    from deltaic.log.snapshot import Snapshot  # the table's properties say since when; a snapshot needs this module

    return in_commit_times(store, times, Snapshot.load(store).metadata.configuration)


def commit_info(store: _core.Store, version: int) -> dict[str, Any]:
    """commitInfo of a version, empty where the commit has none."""
    return parse_commit_info(_core.read_commit_info(store, commit_path(version)))


def parse_commit_info(text: str | None) -> dict[str, Any]:
    """commitInfo's JSON as a dict, empty where there is none."""
    value = json.loads(text) if text else {}
    value = value.get("commitInfo", value) if isinstance(value, dict) else {}
    return value if isinstance(value, dict) else {}


def entries(store: _core.Store, newest: int, limit: int | None = None) -> Iterator[dict[str, Any]]:
    """commitInfo of each version up to `newest`, newest first, with `version` and `timestamp` (datetime, UTC)."""
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 0):
        raise InvalidArgumentError("limit", found=repr(limit), expected="a number >= 0, or None")
    times = commit_times(list_log(store))
    versions = sorted((each for each in times if each <= newest), reverse=True)
    for version in versions[:limit]:
        info = commit_info(store, version)
        stamped = info.get("inCommitTimestamp")
        yield {**info, "version": version, "timestamp": moment(stamped if isinstance(stamped, int) else times[version])}
