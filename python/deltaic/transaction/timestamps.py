"""In-commit timestamps: the time that a commit says of itself, greater than that of the commit before it.

Source: PROTOCOL.md, "In-Commit Timestamps".
"""

from __future__ import annotations

from dataclasses import replace

from deltaic import _core
from deltaic.log import history
from deltaic.log.segment import commit_path
from deltaic.protocol.actions import Metadata, Protocol
from deltaic.protocol.features import supported
from deltaic.protocol.properties import TableProperties

ENABLED = "delta.enableInCommitTimestamps"
SINCE_VERSION = "delta.inCommitTimestampEnablementVersion"
SINCE_TIME = "delta.inCommitTimestampEnablementTimestamp"


def enabled(protocol: Protocol | None, metadata: Metadata | None) -> bool:
    """True if commits of the table carry their own time; None: there is no table yet."""
    if protocol is None or metadata is None or "inCommitTimestamp" not in supported(protocol):
        return False
    return TableProperties(metadata.configuration).in_commit_timestamps


def next_time(store: _core.Store, version: int, now: int, *, was_enabled: bool) -> int:
    """The time of the commit of `version`: `now` (ms), or just after the commit before it.

    `was_enabled`: that one has a time of its own; else its file's modification time counts. ProtocolError where it should have one and has
    none: nothing would be known of the order of times.
    """
    if version == 0:
        return now
    if not was_enabled:
        found = store.head(commit_path(version - 1))
        return now if found is None else max(now, found[1] + 1)
    return max(now, history.in_commit_time(store, version - 1) + 1)


def tracked(metadata: Metadata, before: Metadata | None, *, version: int, time: int | None, was_enabled: bool) -> Metadata:
    """The metadata with the version and time from which on commits have a time of their own: those of this commit (`version`, `time`) where
    it is the first, those of `before` where there were some, none where it has no time, or where the whole history has."""
    kept = {key: text for key, text in metadata.configuration.items() if key not in (SINCE_VERSION, SINCE_TIME)}
    if time is not None and was_enabled and before is not None:
        kept |= {key: text for key, text in before.configuration.items() if key in (SINCE_VERSION, SINCE_TIME)}
    elif time is not None and version > 0:
        kept |= {SINCE_VERSION: str(version), SINCE_TIME: str(time)}
    return metadata if kept == metadata.configuration else replace(metadata, configuration=kept)
