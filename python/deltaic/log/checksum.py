"""Version checksums: `N.crc` beside the commit of version N says what the table then holds (PROTOCOL.md: Version Checksum File).

Written after each commit, from the state that the commit led to. Read when a version is loaded: the definition of a table is known from it
without a look at the files, and a state that differs from it is an error, as somebody changed the log. A malformed one counts for nothing.
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
_HISTOGRAM = ("sortedBinBoundaries", "fileCounts", "totalBytes")
_OLD_HISTOGRAM = "histogramOpt"  # its name in what delta-spark wrote before version 4
_MOST_BINS = 10_000
# Said where the table may have vectors.
_VECTORS = "deletionVectors"
_DELETED = ("numDeletedRecordsOpt", "numDeletionVectorsOpt", "deletedRecordCountsHistogramOpt")
_DELETED_BINS = 10


def checksum_path(version: int) -> str:
    """Path of a version's checksum below the table's root."""
    return f"{LOG}/{version:020}.crc"


Histogram = tuple[list[int], list[int], list[int]]
"""Lower bounds of the bins in bytes, the number of files of each bin, and their bytes: ([0, 8192], [3, 1], [900, 9000])."""


@dataclass(frozen=True)
class Checksum:
    """Contents of a version's checksum file. Optional fields: the histogram of file sizes (`file_sizes`), and of rows that vectors delete
    (`deleted_records`: how many, in how many files, files by how many). None: absent or malformed. Its list of all files is left alone:
    the state is read from the log, and their number, bytes and sizes say whether it is the same."""

    version: int
    protocol: Protocol
    metadata: Metadata
    num_files: int
    table_size_bytes: int
    file_sizes: Histogram | None = None
    deleted_records: tuple[int | None, int | None, list[int] | None] = (None, None, None)


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
        _histogram(document.get("fileSizeHistogram", document.get(_OLD_HISTOGRAM))),
        _deleted(document),
    )


def _histogram(said: Any) -> Histogram | None:
    if not isinstance(said, dict):
        return None
    bounds, files, sizes = (_counts(said.get(name)) for name in _HISTOGRAM)
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


def _counts(said: Any) -> list[int] | None:
    """A list of counts as it was said; None where it is none."""
    if not isinstance(said, list) or len(said) > _MOST_BINS:
        return None
    return said if all(type(each) is int and 0 <= each < 1 << 63 for each in said) else None


def verify_definition(checksum: Checksum, snapshot: Snapshot) -> None:
    """ProtocolError where the log leads to another protocol or metadata than its checksum says: it was changed after it was written."""
    _same(checksum, snapshot.location, "protocol", checksum.protocol, snapshot.protocol)
    # The format says nothing but parquet, in more than one spelling.
    said, found = (replace(metadata, format={}) for metadata in (checksum.metadata, snapshot.metadata))
    _same(checksum, snapshot.location, "metadata", said, found)


def verify_files(checksum: Checksum, core: _core.Snapshot, location: str) -> None:
    """Compares the number of the files, their sizes, and the rows that vectors delete."""
    _same(checksum, location, "numFiles", checksum.num_files, core.file_count)
    _same(checksum, location, "tableSizeBytes", checksum.table_size_bytes, core.size_in_bytes)
    if checksum.file_sizes is not None:
        found = core.size_histogram()
        if found[0] != checksum.file_sizes[0]:
            found = core.size_histogram(checksum.file_sizes[0])
        _same(checksum, location, "fileSizeHistogram", _bins(checksum.file_sizes), _bins(found))
    if any(said is not None for said in checksum.deleted_records):
        for name, said, counted in zip(_DELETED, checksum.deleted_records, core.deleted_records, strict=True):
            if said is not None:
                _same(checksum, location, name, said, counted)


def _bins(histogram: Histogram) -> dict[int, tuple[int, int]]:
    """The bins that have files: files and bytes by where each begins."""
    return {bound: (files, size) for bound, files, size in zip(*histogram, strict=True) if files or size}


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


def after_commit(snapshot: Snapshot, commit_info: str) -> None:
    """Writes the checksum of a version that was just committed: after the commit's answer over a network and where
    `configure(background_checkpoints=)` says so, and then versions that are committed meanwhile may be left without one; else now.
    `commit_info`: the first line of the commit."""
    info = history.parse_commit_info(commit_info)
    if snapshot.store.is_remote or configuration.current().background_checkpoints:
        background.submit(f"{snapshot.location}, checksums", lambda: write(snapshot, info))
    else:
        write(snapshot, info)


def write(snapshot: Snapshot, commit_info: Mapping[str, Any]) -> None:
    """Writes the checksum of a version that was just committed. `commit_info`: of its commit.

    Lists and reads nothing. One that is there is never replaced, unless it is of a table that was here before. What goes wrong is logged:
    the commit stands, a checksum may be missing.
    """
    try:
        has_checkpoint = snapshot.version % snapshot.properties.checkpoint_interval == 0
        path, data = checksum_path(snapshot.version), line(document(snapshot, commit_info, sizes=has_checkpoint)).encode()
        if snapshot.store.put_if_absent(path, data, durable=False) == "exists":
            _log().info("%s: version %d has a checksum already", snapshot.location, snapshot.version)
            if _is_of_another(snapshot, commit_info):
                snapshot.store.put(path, data)
    except Exception as error:  # whatever it is: the commit is there, and nobody may take it for failed
        _log().warning("%s: the checksum of version %d could not be written: %s", snapshot.location, snapshot.version, error)


def _is_of_another(snapshot: Snapshot, commit_info: Mapping[str, Any]) -> bool:
    """True if the checksum that is there names another commit than the one of its version: a table was deleted and made anew here while
    the checksum of the former one was on its way."""
    found, own = parse_json(snapshot.store.get(checksum_path(snapshot.version), most=_MOST_BYTES)), commit_info.get("txnId")
    is_other = isinstance(found, dict) and found.get("txnId") not in (None, own)
    return is_other and history.commit_info(snapshot.store, snapshot.version).get("txnId") == own


def document(snapshot: Snapshot, commit_info: Mapping[str, Any], *, sizes: bool = False) -> dict[str, Any]:
    """The fields of a checksum, as PROTOCOL.md names them. `sizes`: with the optional distribution of file sizes, which takes 1.3 KB; it is
    written for versions that get a checkpoint, so that a log of many small commits is half as large."""
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
    fields["metadata"] = json.loads(snapshot.metadata.to_json())["metaData"]
    fields["protocol"] = json.loads(snapshot.protocol.to_json())["protocol"]
    if sizes:
        fields["fileSizeHistogram"] = dict(zip(_HISTOGRAM, core.size_histogram(), strict=True))
    if _VECTORS in (snapshot.protocol.reader_features or ()):
        fields[_DELETED[2]] = {"deletedRecordCounts": core.deleted_records[2]}
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
