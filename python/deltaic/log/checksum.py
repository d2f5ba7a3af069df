"""Version checksums: `N.crc` beside the commit of version N describes the state of the table at that version
(PROTOCOL.md: Version Checksum File).

A checksum is written after each commit, from the state of the table after it. Loading a version reads it: it
has the definition of the table, so that file actions need not be read for that. A state that differs from the
checksum is an error, as the log was changed. A malformed checksum is ignored.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from deltaic import _core, configuration
from deltaic.errors import DeltaError, ProtocolError
from deltaic.log import background, history
from deltaic.log.segment import LOG, commit_path
from deltaic.protocol.actions import Metadata, Protocol, line
from deltaic.protocol.bounded_json import parse_json

if TYPE_CHECKING:
    from logging import Logger

    from deltaic.log.snapshot import Snapshot

# Maximum number of transactions and of domains in a checksum, as in delta-spark. If there are more, none of
# them is written, so that the checksum stays small.
_MOST_TRANSACTIONS = 100
_MOST_DOMAINS = 100
# Maximum bytes of a checksum that is read; a larger one, which may list all files of the table, is ignored.
_MOST_BYTES = 16 << 20
_HISTOGRAM = ("sortedBinBoundaries", "fileCounts", "totalBytes")
_OLD_HISTOGRAM = "histogramOpt"  # the name that delta-spark wrote before version 4
_MOST_BINS = 10_000
# The feature with which a checksum has the fields of _DELETED
_VECTORS = "deletionVectors"
_DELETED = ("numDeletedRecordsOpt", "numDeletionVectorsOpt", "deletedRecordCountsHistogramOpt")
_DELETED_BINS = 10


def checksum_path(version: int) -> str:
    """Path of a version's checksum below the table's root."""
    return f"{LOG}/{version:020}.crc"


Histogram = tuple[list[int], list[int], list[int]]
"""Lower bounds of the bins in bytes, the number of files of each bin, and their bytes: ([0, 8192], [3, 1],
[900, 9000])."""


@dataclass(frozen=True)
class Checksum:
    """Contents of a version's checksum file.

    `file_sizes`: histogram of file sizes; None if it is absent or malformed.
    `deleted_records`: number of rows that deletion vectors delete, number of such files, and number of files
        by the magnitude of deleted rows; each None if it is absent or malformed.
    A list of all files in the checksum is ignored: their number, bytes and sizes are enough to compare with
    the log."""

    version: int
    protocol: Protocol
    metadata: Metadata
    num_files: int
    table_size_bytes: int
    file_sizes: Histogram | None = None
    deleted_records: tuple[int | None, int | None, list[int] | None] = (None, None, None)


def read(store: _core.Store, version: int) -> Checksum | None:
    """Reads the checksum of a version; None if it is missing or malformed."""
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
    numbers = {
        name: document.get(name) for name in ("numFiles", "tableSizeBytes", "numMetadata", "numProtocol")
    }
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
        _histogram(document.get("fileSizeHistogram", document.get(_OLD_HISTOGRAM))),
        _deleted(document),
    )


def _histogram(value: Any) -> Histogram | None:
    if not isinstance(value, dict):
        return None
    bounds, files, sizes = (_counts(value.get(name)) for name in _HISTOGRAM)
    if not bounds or files is None or sizes is None or not len(bounds) == len(files) == len(sizes):
        return None
    if bounds[0] != 0 or any(low >= high for low, high in pairwise(bounds)):
        return None
    return bounds, files, sizes


def _deleted(document: Mapping[str, Any]) -> tuple[int | None, int | None, list[int] | None]:
    rows, vectors = (_counts([document.get(name)]) for name in _DELETED[:2])
    histogram = document.get(_DELETED[2])
    files = _counts(histogram.get("deletedRecordCounts")) if isinstance(histogram, dict) else None
    if files is not None and len(files) != _DELETED_BINS:
        files = None
    return rows[0] if rows else None, vectors[0] if vectors else None, files


def _counts(value: Any) -> list[int] | None:
    """Returns `value` if it is a list of counts, else None."""
    if not isinstance(value, list) or len(value) > _MOST_BINS:
        return None
    return value if all(type(each) is int and 0 <= each < 1 << 63 for each in value) else None


def verify_definition(checksum: Checksum, snapshot: Snapshot) -> None:
    """Raises ProtocolError if the protocol or metadata of a snapshot differs from its checksum, because the
    log was changed afterwards."""
    _same(checksum, snapshot.location, "protocol", checksum.protocol, snapshot.protocol)
    # The format is always parquet, but writers spell its options in several ways.
    expected, metadata = (replace(metadata, format={}) for metadata in (checksum.metadata, snapshot.metadata))
    _same(checksum, snapshot.location, "metadata", expected, metadata)


def verify_files(checksum: Checksum, core: _core.Snapshot, location: str) -> None:
    """Raises ProtocolError if the number of files, their sizes or their deleted rows differ from the
    checksum."""
    _same(checksum, location, "numFiles", checksum.num_files, core.file_count)
    _same(checksum, location, "tableSizeBytes", checksum.table_size_bytes, core.size_in_bytes)
    if checksum.file_sizes is not None:
        histogram = core.size_histogram()
        if histogram[0] != checksum.file_sizes[0]:
            histogram = core.size_histogram(checksum.file_sizes[0])
        _same(checksum, location, "fileSizeHistogram", _bins(checksum.file_sizes), _bins(histogram))
    if any(expected is not None for expected in checksum.deleted_records):
        for name, expected, counted in zip(
            _DELETED, checksum.deleted_records, core.deleted_records, strict=True
        ):
            if expected is not None:
                _same(checksum, location, name, expected, counted)


def _bins(histogram: Histogram) -> dict[int, tuple[int, int]]:
    """Returns the non-empty bins of a histogram: lower bound -> (files, bytes)."""
    return {bound: (files, size) for bound, files, size in zip(*histogram, strict=True) if files or size}


def _same(checksum: Checksum, location: str, name: str, expected: object, found: object) -> None:
    if expected != found:
        raise ProtocolError(
            f"the log of version {checksum.version} does not lead to the {name} of its checksum: one of the"
            " two was changed",
            where=f"{location}/{checksum_path(checksum.version)}",
            found=_short(found),
            expected=_short(expected),
        ).with_values(version=checksum.version)


def _short(value: object) -> str:
    text = value.to_json() if isinstance(value, (Protocol, Metadata)) else str(value)
    return text if len(text) <= 500 else f"{text[:500]}..."


def after_commit(snapshot: Snapshot, commit_info: str) -> None:
    """Writes the checksum of a version that was just committed; in the background if the store is remote or
    `configure(background_checkpoints=)` is True. On a local disk, a version that another commit follows by
    then gets no checksum. `commit_info`: the first line of the commit."""
    is_remote = snapshot.store.is_remote

    def work() -> None:
        write(snapshot, history.parse_commit_info(commit_info), unless_superseded=not is_remote)

    if is_remote or configuration.current().background_checkpoints:
        background.submit(f"{snapshot.location}, checksums", work)
    else:
        work()


def write(snapshot: Snapshot, commit_info: Mapping[str, Any], *, unless_superseded: bool = False) -> None:
    """Writes the checksum of a version that was just committed. `commit_info`: that of the commit.
    `unless_superseded`: True to write none if a later commit exists, whose writer writes its checksum.

    No file is listed or read for it. An existing checksum is replaced only if it belongs to an earlier table
    at the same location. Errors are logged and not raised, as the commit is valid and a checksum may be
    missing.
    """
    try:
        # Each of many processes that write to a table would read the commits of all others for the checksums
        # of its own versions.
        if unless_superseded and snapshot.store.head(commit_path(snapshot.version + 1)) is not None:
            return
        has_checkpoint = snapshot.version % snapshot.properties.checkpoint_interval == 0
        path, data = (
            checksum_path(snapshot.version),
            line(document(snapshot, commit_info, sizes=has_checkpoint)).encode(),
        )
        if snapshot.store.put_if_absent(path, data, durable=False) == "exists":
            _log().info("%s: version %d has a checksum already", snapshot.location, snapshot.version)
            if _is_of_another(snapshot, commit_info):
                snapshot.store.put(path, data)
    except Exception as error:  # the commit is in the log, so no error may make it look failed
        _log().warning(
            "%s: the checksum of version %d could not be written: %s",
            snapshot.location,
            snapshot.version,
            error,
        )


def _is_of_another(snapshot: Snapshot, commit_info: Mapping[str, Any]) -> bool:
    """True if the existing checksum names another commit than that of its version: the table was deleted and
    created again while the checksum of the former table was being written."""
    existing, own = (
        parse_json(snapshot.store.get(checksum_path(snapshot.version), most=_MOST_BYTES)),
        commit_info.get("txnId"),
    )
    is_other = isinstance(existing, dict) and existing.get("txnId") not in (None, own)
    return is_other and history.commit_info(snapshot.store, snapshot.version).get("txnId") == own


def document(snapshot: Snapshot, commit_info: Mapping[str, Any], *, sizes: bool = False) -> dict[str, Any]:
    """Returns the fields of a checksum, as PROTOCOL.md names them.

    `sizes`: True to add the optional histogram of file sizes, which takes 1.3 KB. Only versions with a
        checkpoint get it, so that a log of many small commits is half as large."""
    core = snapshot.core
    fields: dict[str, Any] = {"tableSizeBytes": core.size_in_bytes, "numFiles": core.file_count}
    if "txnId" in commit_info:
        fields = {"txnId": commit_info["txnId"], **fields}
    if _VECTORS in (snapshot.protocol.reader_features or ()):
        fields |= zip(_DELETED[:2], core.deleted_records[:2], strict=True)
    fields |= {"numMetadata": 1, "numProtocol": 1}
    if snapshot.properties.in_commit_timestamps and "inCommitTimestamp" in commit_info:
        fields["inCommitTimestampOpt"] = commit_info["inCommitTimestamp"]
    transactions = core.transactions
    if len(transactions) <= _MOST_TRANSACTIONS:
        fields["setTransactions"] = [_transaction(app_id, *entry) for app_id, entry in transactions.items()]
    if len(core.domains) <= _MOST_DOMAINS:
        fields["domainMetadata"] = [_action(text, "domainMetadata") for text in core.domains.values()]
    fields |= snapshot.keep_of_definition("checksum", lambda: _definition(snapshot))
    if sizes:
        fields["fileSizeHistogram"] = dict(zip(_HISTOGRAM, core.size_histogram(), strict=True))
    if _VECTORS in (snapshot.protocol.reader_features or ()):
        fields[_DELETED[2]] = {"deletedRecordCounts": core.deleted_records[2]}
    return fields


def _definition(snapshot: Snapshot) -> dict[str, Any]:
    metadata, protocol = json.loads(snapshot.metadata.to_json()), json.loads(snapshot.protocol.to_json())
    return {"metadata": metadata["metaData"], "protocol": protocol["protocol"]}


def _transaction(app_id: str, version: int, last_updated: int | None) -> dict[str, Any]:
    action: dict[str, Any] = {"appId": app_id, "version": version}
    return action if last_updated is None else {**action, "lastUpdated": last_updated}


def _action(text: str, name: str) -> Any:
    action = json.loads(text)
    return action.get(name, action)


def _log() -> Logger:
    import logging  # imported only for a message, as the import takes some milliseconds

    return logging.getLogger("deltaic.log")
