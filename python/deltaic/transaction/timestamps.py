"""In-commit timestamps: the timestamp in commitInfo, which is greater than that of the commit before.

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
    """True if commits of the table have in-commit timestamps. None: there is no table yet."""
    if protocol is None or metadata is None or "inCommitTimestamp" not in supported(protocol):
        return False
    return TableProperties(metadata.configuration).in_commit_timestamps


def next_time(store: _core.Store, version: int, now: int, *, was_enabled: bool) -> int:
    """Returns the in-commit timestamp of `version`: `now` (ms), or the timestamp of the commit before + 1 ms
    if that is later.

    `was_enabled`: True if the commit before has an in-commit timestamp; else the modification time of its
    file is used. If it should have one and has none, ProtocolError is raised, as timestamps might not
    increase.
    """
    if version == 0:
        return now
    if not was_enabled:
        former = store.head(commit_path(version - 1))
        return now if former is None else max(now, former[1] + 1)
    return max(now, history.in_commit_time(store, version - 1) + 1)


def tracked(
    metadata: Metadata, before: Metadata | None, *, version: int, time: int | None, was_enabled: bool
) -> Metadata:
    """Sets the properties with the version and timestamp from which on commits have in-commit timestamps.

    They are those of this commit (`version`, `time`) if it is the first with an in-commit timestamp, or those
    of `before` if there were earlier ones. They are removed if this commit has no in-commit timestamp, or if
    all commits have one."""
    kept = {
        key: text for key, text in metadata.configuration.items() if key not in (SINCE_VERSION, SINCE_TIME)
    }
    if time is not None and was_enabled and before is not None:
        kept |= {
            key: text for key, text in before.configuration.items() if key in (SINCE_VERSION, SINCE_TIME)
        }
    elif time is not None and version > 0:
        kept |= {SINCE_VERSION: str(version), SINCE_TIME: str(time)}
    return metadata if kept == metadata.configuration else replace(metadata, configuration=kept)
