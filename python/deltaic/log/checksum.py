"""Version checksums: `N.crc` beside the commit of version N says what the table then holds (PROTOCOL.md: Version Checksum File).

Written after each commit, from the state that the commit led to. Read when a version is loaded: the definition of a table is known from it
without a look at the files, and a state that differs from it is an error, as somebody changed the log. A malformed one counts for nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from deltaic import _core
from deltaic.errors import DeltaError, ProtocolError
from deltaic.log.segment import LOG
from deltaic.protocol.actions import Metadata, Protocol, line
from deltaic.protocol.bounded_json import parse_json

if TYPE_CHECKING:
    from logging import Logger

    from deltaic.log.snapshot import Snapshot

# As delta-spark: more than so many transactions or domains are left out, whole, so that a checksum stays small.
_MOST_TRANSACTIONS = 100
_MOST_DOMAINS = 100
# A longer file is no checksum of a careful writer; it may list all files, which nobody needs.
_MOST_BYTES = 16 << 20


def checksum_path(version: int) -> str:
    """Path of a version's checksum below the table's root."""
    return f"{LOG}/{version:020}.crc"


@dataclass(frozen=True)
class Checksum:
    """What a checksum file says; its optional fields are not kept."""

    version: int
    protocol: Protocol
    metadata: Metadata
    num_files: int
    table_size_bytes: int


def read(store: _core.Store, version: int) -> Checksum | None:
    """The checksum of a version; None where it is missing or malformed."""
    path = checksum_path(version)
    try:
        return _parse(version, store.get(path, most=_MOST_BYTES))
    except (OSError, ValueError, RecursionError, DeltaError) as error:
        _log().info("%s/%s is left alone: %s", store.location, path, error)
        return None


def _parse(version: int, data: bytes) -> Checksum:
    document = parse_json(data)
    if not isinstance(document, dict):
        raise ValueError("no JSON object")
    numbers = {name: document.get(name) for name in ("numFiles", "tableSizeBytes", "numMetadata", "numProtocol")}
    for name, value in numbers.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise ValueError(f"{name} is {value!r}")
    if (numbers["numMetadata"], numbers["numProtocol"]) != (1, 1):
        raise ValueError("numMetadata and numProtocol are not 1")
    for name in ("protocol", "metadata"):
        if not isinstance(document.get(name), dict):
            raise ValueError(f"{name} is no object")
    return Checksum(
        version,
        Protocol.from_json(json.dumps({"protocol": document["protocol"]})),
        Metadata.from_json(json.dumps({"metaData": document["metadata"]})),
        document["numFiles"],
        document["tableSizeBytes"],
    )


def verify_definition(checksum: Checksum, snapshot: Snapshot) -> None:
    """ProtocolError where the log leads to another protocol or metadata than its checksum says: it was changed after it was written."""
    _same(checksum, snapshot.location, "protocol", checksum.protocol, snapshot.protocol)
    # The format says nothing but parquet, in more than one spelling.
    said, found = (replace(metadata, format={}) for metadata in (checksum.metadata, snapshot.metadata))
    _same(checksum, snapshot.location, "metadata", said, found)


def verify_files(checksum: Checksum, core: _core.Snapshot, location: str) -> None:
    """The same for the number of the files and their size."""
    _same(checksum, location, "numFiles", checksum.num_files, core.file_count)
    _same(checksum, location, "tableSizeBytes", checksum.table_size_bytes, core.size_in_bytes)


def _same(checksum: Checksum, location: str, name: str, said: object, found: object) -> None:
    if said != found:
        raise ProtocolError(
            f"the log of version {checksum.version} does not lead to the {name} of its checksum: one of the two was changed",
            where=f"{location}/{checksum_path(checksum.version)}",
            found=_short(found),
            expected=_short(said),
        )


def _short(value: object) -> str:
    text = value.to_json() if isinstance(value, (Protocol, Metadata)) else str(value)
    return text if len(text) <= 500 else f"{text[:500]}..."


def write(snapshot: Snapshot, commit_info: Mapping[str, Any]) -> None:
    """Writes the checksum of a version that was just committed. `commit_info`: of its commit.

    Lists and reads nothing. One that is there is never replaced. What goes wrong is logged: the commit stands, a checksum may be missing.
    """
    try:
        text = line(document(snapshot, commit_info))
        if snapshot.store.put_if_absent(checksum_path(snapshot.version), text.encode(), durable=False) == "exists":
            _log().info("%s: version %d has a checksum already", snapshot.location, snapshot.version)
    except Exception as error:  # whatever it is: the commit is there, and nobody may take it for failed
        _log().warning("%s: the checksum of version %d could not be written: %s", snapshot.location, snapshot.version, error)


def document(snapshot: Snapshot, commit_info: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a checksum, as PROTOCOL.md names them."""
    core = snapshot.core
    fields: dict[str, Any] = {"tableSizeBytes": core.size_in_bytes, "numFiles": core.file_count}
    if "txnId" in commit_info:
        fields = {"txnId": commit_info["txnId"], **fields}
    fields |= {"numMetadata": 1, "numProtocol": 1}
    if snapshot.properties.in_commit_timestamps and "inCommitTimestamp" in commit_info:
        fields["inCommitTimestampOpt"] = commit_info["inCommitTimestamp"]
    transactions = core.transactions
    if len(transactions) <= _MOST_TRANSACTIONS:
        fields["setTransactions"] = [_transaction(app_id, *entry) for app_id, entry in transactions.items()]
    if len(core.domains) <= _MOST_DOMAINS:
        fields["domainMetadata"] = [_action(text, "domainMetadata") for text in core.domains.values()]
    fields["metadata"] = json.loads(snapshot.metadata.to_json())["metaData"]
    fields["protocol"] = json.loads(snapshot.protocol.to_json())["protocol"]
    return fields


def _transaction(app_id: str, version: int, last_updated: int | None) -> dict[str, Any]:
    action: dict[str, Any] = {"appId": app_id, "version": version}
    return action if last_updated is None else {**action, "lastUpdated": last_updated}


def _action(text: str, name: str) -> Any:
    action = json.loads(text)
    return action.get(name, action)


def _log() -> Logger:
    import logging  # when there is something to say: it takes some milliseconds

    return logging.getLogger("deltaic.log")
