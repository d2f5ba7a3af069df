"""Version checksums: PROTOCOL.md, Version Checksum File."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest

from deltaic._core import Store
from deltaic.errors import ProtocolError, UnsupportedFeatureError
from deltaic.log import checkpoint, checksum
from deltaic.log import snapshot as snapshots
from deltaic.log.checksum import checksum_path
from deltaic.log.segment import checkpoint_path, commit_path, list_log
from deltaic.log.snapshot import Snapshot
from deltaic.options import CommitOptions
from deltaic.transaction.transaction import Transaction
from golden import GOLDEN, needs_golden
from log_actions import adds, append, commit_lines, create, memory_store, paths, remove
from numbered_store import Fault, NumberedStore


def said(snapshot: Snapshot, version: int) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(snapshot.store.get(checksum_path(version)))
    return found


def change(snapshot: Snapshot, version: int, **fields: Any) -> None:
    snapshot.store.put(checksum_path(version), json.dumps({**said(snapshot, version), **fields}).encode())


def table(versions: int, **properties: str) -> Snapshot:
    snapshot = create(memory_store(), properties={"delta.checkpointInterval": "1000", **properties})
    for version in range(1, versions + 1):
        snapshot = append(snapshot, f"{version}.parquet")
    return snapshot


def test_every_commit_has_one() -> None:
    snapshot = append(table(2), "3.parquet", options=CommitOptions(transactions={"app": 7}))
    transaction = Transaction(snapshot, "DELETE")
    remove(transaction, snapshot, "1.parquet")
    transaction.commit()
    for version, (files, size) in enumerate([(0, 0), (1, 100), (2, 200), (3, 300), (2, 200)]):
        found = said(snapshot, version)
        lines = commit_lines(snapshot.store, version)
        assert (found["numFiles"], found["tableSizeBytes"]) == (files, size)
        assert (found["numMetadata"], found["numProtocol"]) == (1, 1)
        assert found["txnId"] == lines[0]["commitInfo"]["txnId"]
        assert found["domainMetadata"] == []
        assert [(each["appId"], each["version"]) for each in found["setTransactions"]] == (
            [("app", 7)] if version >= 3 else []
        )
        assert "inCommitTimestampOpt" not in found
    first = commit_lines(snapshot.store, 0)
    assert found["protocol"] == next(each["protocol"] for each in first if "protocol" in each)
    assert found["metadata"] == next(each["metaData"] for each in first if "metaData" in each)


def test_one_is_read_back() -> None:
    snapshot = table(1)
    found = checksum.read(snapshot.store, 1)
    assert found is not None
    assert found == checksum.Checksum(1, snapshot.protocol, snapshot.metadata, 1, 100)
    assert checksum.read(snapshot.store, 2) is None


def test_sizes_are_said_of_versions_that_get_a_checkpoint() -> None:
    """The distribution of sizes is most of a checksum's bytes: a log of many small commits has it once for
    each checkpoint."""
    snapshot = create(memory_store(), properties={"delta.checkpointInterval": "3"})
    for version in range(1, 8):
        snapshot = append(snapshot, f"{version}.parquet")
    histograms = {version: said(snapshot, version).get("fileSizeHistogram") for version in range(8)}
    assert [version for version, histogram in histograms.items() if histogram is not None] == [0, 3, 6]
    assert sum(histograms[6]["fileCounts"]) == 6
    assert len((Snapshot.load(snapshot.store).store).get(checksum_path(7))) < 1_000


def test_one_that_is_there_is_not_replaced() -> None:
    snapshot = table(1)
    snapshot.store.put(checksum_path(2), b"mine")
    append(snapshot, "2.parquet")
    assert snapshot.store.get(checksum_path(2)) == b"mine"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"malformed",
        b"[]",
        b"{}",
        b"\xff",
        b"[" * 100_000,
        b'{"numFiles":1,"tableSizeBytes":1,"numMetadata":1,"numProtocol":1}',
    ],
)
def test_a_malformed_one_counts_for_nothing(data: bytes) -> None:
    snapshot = table(2)
    snapshot.store.put(checksum_path(2), data)
    assert paths(Snapshot.load(snapshot.store)) == ["1.parquet", "2.parquet"]


@pytest.mark.parametrize(
    "fields",
    [
        {"numFiles": -1},
        {"numFiles": True},
        {"numFiles": "2"},
        {"numFiles": None},
        {"tableSizeBytes": 1.5},
        {"numMetadata": 2},
        {"numProtocol": 0},
        {"metadata": None},
        {"metadata": {"id": 3}},
        {"protocol": []},
        {"protocol": {"minReaderVersion": "1"}},
    ],
)
def test_one_with_a_malformed_field_counts_for_nothing(fields: dict[str, Any]) -> None:
    snapshot = table(2)
    change(snapshot, 2, **fields)
    assert paths(Snapshot.load(snapshot.store)) == ["1.parquet", "2.parquet"]


METADATA = {
    "id": "x",
    "format": {"provider": "parquet"},
    "schemaString": "{}",
    "partitionColumns": [],
    "configuration": {},
}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"numFiles": 3}, "numFiles of its checksum.*found 2; expected 3"),
        ({"tableSizeBytes": 100}, "tableSizeBytes of its checksum.*found 200; expected 100"),
        ({"protocol": {"minReaderVersion": 1, "minWriterVersion": 1}}, "protocol of its checksum"),
        ({"metadata": METADATA}, "metadata of its checksum"),
    ],
)
@pytest.mark.parametrize("with_checkpoint", [False, True])
def test_a_state_that_differs_is_an_error_by_name(
    fields: dict[str, Any], message: str, with_checkpoint: bool
) -> None:
    snapshot = table(2)
    change(snapshot, 2, **fields)
    if with_checkpoint:
        checkpoint.write(snapshot, now=0)
    with pytest.raises(ProtocolError, match=rf"{2:020}\.crc.*{message}"):
        paths(Snapshot.load(snapshot.store))
    assert paths(Snapshot.load(snapshot.store, version=1)) == ["1.parquet"]


def test_a_changed_commit_is_found() -> None:
    snapshot = table(2)
    body = snapshot.store.get(commit_path(1))
    snapshot.store.put(commit_path(1), body.replace(b'"size":100', b'"size":101'))
    again = Snapshot.load(snapshot.store)
    assert again.metadata == snapshot.metadata
    for _ in range(2):
        with pytest.raises(ProtocolError, match="tableSizeBytes"):
            paths(again)


def test_what_cannot_be_read_is_told_before_what_was_changed() -> None:
    snapshot = table(1)
    body = snapshot.store.get(commit_path(0)).replace(b'"minReaderVersion":1', b'"minReaderVersion":9')
    snapshot.store.put(commit_path(0), body)
    with pytest.raises(UnsupportedFeatureError):
        Snapshot.load(snapshot.store)


def calls(store: NumberedStore, name: str) -> list[str]:
    return [path for method, path in store.calls if method == name]


def test_an_append_lists_nothing_and_reads_its_own_commit_alone() -> None:
    counted = NumberedStore()
    store = Store.from_python(counted, "counted://table")
    snapshot = append(create(store, properties={"delta.checkpointInterval": "1000"}), "1.parquet")
    counted.reset()
    append(snapshot, "2.parquet")
    assert calls(counted, "list") == []
    assert calls(counted, "commit") == [commit_path(2), checksum_path(2)]
    assert calls(counted, "read") == [commit_path(2)]


def test_the_definition_of_a_large_table_is_known_without_its_files(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = NumberedStore()
    store = Store.from_python(counted, "counted://table")
    snapshot = append(create(store, properties={"delta.checkpointInterval": "1000"}), "1.parquet")
    monkeypatch.setattr(snapshots, "READ_AT_ONCE", 0)
    monkeypatch.setattr(snapshots, "OPENED_AT_ONCE", 0)
    counted.reset()
    again = Snapshot.load(store)
    assert (again.version, again.protocol, again.metadata) == (1, snapshot.protocol, snapshot.metadata)
    assert again.schema.names == ["id", "month"]
    assert [path for path in calls(counted, "read") if path.endswith((".json", ".parquet"))] == []
    assert paths(again) == ["1.parquet"]
    assert sorted(set(calls(counted, "read"))) == sorted(
        ["_delta_log/_last_checkpoint", checksum_path(1), commit_path(0), commit_path(1)]
    )
    assert again.version == 1
    assert again.core is again.core


def test_without_a_checksum_the_definition_comes_from_the_checkpoint_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counted = NumberedStore()
    store = Store.from_python(counted, "counted://table")
    for policy in ("classic", "v2"):
        store.delete(list(counted.objects))
        snapshot = create(
            store, properties={"delta.checkpointInterval": "1000", "delta.checkpointPolicy": policy}
        )
        snapshot = append(snapshot, *(f"{number}.parquet" for number in range(500)))
        checkpoint.write(snapshot, now=0)
        snapshot = append(snapshot, "x.parquet")
        store.delete([checksum_path(version) for version in range(3)])
        monkeypatch.setattr(snapshots, "READ_AT_ONCE", 2_000)
        monkeypatch.setattr(snapshots, "OPENED_AT_ONCE", 2_000)
        counted.reset()
        again = Snapshot.load(store)
        assert (again.version, again.protocol, again.metadata) == (2, snapshot.protocol, snapshot.metadata)
        read = {path for path in calls(counted, "read") if path.endswith((".json", ".parquet"))}
        assert read == {commit_path(2), *list_log(store).checkpoints[0].parts}
        assert paths(again) == paths(snapshot)
        monkeypatch.undo()


def test_what_is_broken_is_told_when_the_files_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    store = memory_store()
    snapshot = append(create(store, properties={"delta.checkpointInterval": "1000"}), "1.parquet")
    checkpoint.write(snapshot, now=0)
    store.delete([checksum_path(0), checksum_path(1), commit_path(0)])
    monkeypatch.setattr(snapshots, "READ_AT_ONCE", 0)
    monkeypatch.setattr(snapshots, "OPENED_AT_ONCE", 0)
    store.put(checkpoint_path(1), b"no checkpoint")
    with pytest.raises(ProtocolError, match="checkpoint"):
        Snapshot.load(store)


def test_the_files_of_a_large_table_are_held_against_its_checksum(monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = table(2)
    change(snapshot, 2, numFiles=5)
    monkeypatch.setattr(snapshots, "READ_AT_ONCE", 0)
    monkeypatch.setattr(snapshots, "OPENED_AT_ONCE", 0)
    again = Snapshot.load(snapshot.store)
    for _ in range(2):
        with pytest.raises(ProtocolError, match="numFiles of its checksum"):
            paths(again)
    with pytest.raises(AttributeError, match="no attribute 'cores'"):
        again.cores  # noqa: B018


@pytest.mark.parametrize("fault", ["before", "after", "lost"])
def test_a_commit_stands_whatever_becomes_of_its_checksum(
    fault: Fault, caplog: pytest.LogCaptureFixture
) -> None:
    store = NumberedStore()
    snapshot = append(create(Store.from_python(store, "counted://table")), "1.parquet")
    store.reset()
    snapshot = append(snapshot, "2.parquet")
    number = store.calls.index(("commit", checksum_path(2))) + 1
    store.reset(fail_at=number, fault=fault)
    written = append(snapshot, "3.parquet")
    assert store.calls[number - 1] == ("commit", checksum_path(3))
    store.reset()
    assert paths(written) == paths(Snapshot.load(written.store)) == ["1.parquet", "2.parquet", "3.parquet"]
    assert (checksum.read(written.store, 3) is None) == (fault == "before")
    assert ("could not be written" in caplog.text) == (fault == "before")


def test_many_transactions_are_left_out() -> None:
    snapshot = append(
        table(0),
        "1.parquet",
        options=CommitOptions(transactions={f"app {number}": number for number in range(101)}),
    )
    assert "setTransactions" not in said(snapshot, 1)
    assert Snapshot.load(snapshot.store).core.transactions["app 100"][0] == 100


@needs_golden
@pytest.mark.parametrize(
    "name",
    [
        "v2-json-sidecars-struct-stats-only",
        "v2-classic-parquet-struct-stats-only",
        "v2-checkpoints-json-without-sidecars",
    ],
)
def test_the_checksums_of_others_are_held_against_every_version(name: str) -> None:
    root = GOLDEN / name
    store = Store(str(root))
    for path in sorted((root / "_delta_log").glob("0*.crc")):
        version = int(path.stem)
        assert checksum.read(store, version) is not None
        loaded = Snapshot.load(store, version=version)
        assert loaded.core.file_count == json.loads(path.read_bytes())["numFiles"]


# --- distributions


def bins(histogram: Mapping[str, list[int]]) -> dict[int, tuple[int, int]]:
    rows = zip(
        histogram["sortedBinBoundaries"], histogram["fileCounts"], histogram["totalBytes"], strict=True
    )
    return {bound: (files, size) for bound, files, size in rows if files}


@needs_golden
def test_sizes_are_in_the_bins_of_delta_spark() -> None:
    theirs = json.loads((GOLDEN / "crc-full" / checksum_path(0)).read_bytes())
    ours = said(table(0), 0)
    assert (
        ours["fileSizeHistogram"]["sortedBinBoundaries"] == theirs["fileSizeHistogram"]["sortedBinBoundaries"]
    )


@needs_golden
@pytest.mark.parametrize(
    "name", ["v2-json-sidecars-struct-stats-only", "v2-classic-parquet-struct-stats-only"]
)
def test_what_is_said_of_a_version_is_what_delta_spark_said(name: str) -> None:
    root = GOLDEN / name
    for path in sorted((root / "_delta_log").glob("0*.crc")):
        theirs = json.loads(path.read_bytes())
        theirs["fileSizeHistogram"] = theirs.pop("histogramOpt")
        del theirs["allFiles"]
        ours = checksum.document(
            Snapshot.load(Store(str(root)), version=int(path.stem)), {"txnId": theirs["txnId"]}, sizes=True
        )
        for name in ("metadata", "protocol"):
            assert set(ours.pop(name)) <= set(theirs.pop(name))
        assert ours == theirs


def test_distributions_follow_commits_as_a_fresh_count_does(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(3)
    monkeypatch.setattr(snapshots, "READ_AT_ONCE", 0)
    monkeypatch.setattr(snapshots, "OPENED_AT_ONCE", 0)
    snapshot = create(
        memory_store(), properties={"delta.checkpointInterval": "1000", "delta.enableDeletionVectors": "true"}
    )
    live: dict[str, tuple[int, int | None]] = {}
    for version in range(1, 25):
        transaction = Transaction(snapshot, "WRITE")
        gone = chance.sample(sorted(live), min(len(live), chance.randrange(3)))
        if gone:
            remove(transaction, snapshot, *gone)
        new = {
            f"{version}-{number}.parquet": (
                chance.choice([0, 1, 8191, 8192, 10**7, 2**40]),
                chance.choice([None, 0, 7, 10**6]),
            )
            for number in range(2)
        }
        transaction.add(sized(new))
        snapshot = transaction.commit()
        live = {**{name: file for name, file in live.items() if name not in gone}, **new}
        found = checksum.document(snapshot, {}, sizes=True)
        assert {name: value for name, value in said(snapshot, version).items() if name != "txnId"} == {
            name: value for name, value in found.items() if name != "fileSizeHistogram"
        }
        fresh = Snapshot.load(snapshot.store).core
        assert bins(found["fileSizeHistogram"]) == {
            low: (len(sizes), sum(sizes))
            for low, high in ((0, 8192), (8192, 16384), (8 << 20, 12 << 20), (256 << 30, 1 << 60))
            if (sizes := [size for size, _ in live.values() if low <= size < high])
        }
        assert tuple(found["fileSizeHistogram"].values()) == fresh.size_histogram()
        deleted = [rows for _, rows in live.values() if rows is not None]
        histogram = found["deletedRecordCountsHistogramOpt"]["deletedRecordCounts"]
        assert (found["numDeletedRecordsOpt"], found["numDeletionVectorsOpt"]) == (sum(deleted), len(deleted))
        assert histogram == [
            len(live) - sum(map(bool, deleted)),
            deleted.count(7),
            0,
            0,
            0,
            0,
            0,
            deleted.count(10**6),
            0,
            0,
        ]
        assert fresh.deleted_records == (sum(deleted), len(deleted), histogram)
        if version % 8 == 0:
            checkpoint.write(snapshot, now=0)
            snapshot = Snapshot.load(snapshot.store)  # from here on, the files before are in the checkpoint


def sized(files: Mapping[str, tuple[int, int | None]]) -> pa.Table:
    """`add` actions: path -> size, rows that a vector deletes."""
    table = adds(*files)
    columns = {name: table[name] for name in table.column_names}
    columns["size"] = pa.array([size for size, _ in files.values()], pa.int64())
    vector = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "offset": 1, "sizeInBytes": 40}
    vectors = [None if rows is None else {**vector, "cardinality": rows} for _, rows in files.values()]
    columns["deletionVector"] = pa.array(vectors, table.schema.field("deletionVector").type)
    return pa.table(columns, table.schema)


HISTOGRAM = {"sortedBinBoundaries": [0, 100, 200], "fileCounts": [0, 2, 0], "totalBytes": [0, 200, 0]}


def test_sizes_in_the_bins_of_others() -> None:
    snapshot = table(2)
    change(snapshot, 2, fileSizeHistogram=HISTOGRAM)
    assert paths(Snapshot.load(snapshot.store)) == ["1.parquet", "2.parquet"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"fileSizeHistogram": {**HISTOGRAM, "fileCounts": [1, 1, 0]}},
            "fileSizeHistogram of its checksum.*found .0: .0, 0|100: .2, 200",
        ),
        (
            {"fileSizeHistogram": {**HISTOGRAM, "totalBytes": [0, 201, 0]}},
            "fileSizeHistogram of its checksum",
        ),
        (
            {"fileSizeHistogram": ..., "histogramOpt": {**HISTOGRAM, "fileCounts": [0, 0, 2]}},
            "fileSizeHistogram of its checksum",
        ),
        ({"numDeletedRecordsOpt": 1}, "numDeletedRecordsOpt of its checksum.*found 0; expected 1"),
        ({"numDeletionVectorsOpt": 1}, "numDeletionVectorsOpt of its checksum.*found 0; expected 1"),
        (
            {"deletedRecordCountsHistogramOpt": {"deletedRecordCounts": [1, 1, *[0] * 8]}},
            "deletedRecordCountsHistogramOpt of its checksum.*found .2, 0,.*expected .1, 1,",
        ),
    ],
)
def test_a_distribution_that_differs_is_an_error_by_name(fields: dict[str, Any], message: str) -> None:
    snapshot = table(2)
    document = {**said(snapshot, 2), **fields}
    snapshot.store.put(
        checksum_path(2),
        json.dumps({name: value for name, value in document.items() if value is not ...}).encode(),
    )
    with pytest.raises(ProtocolError, match=rf"{2:020}\.crc.*{message}"):
        paths(Snapshot.load(snapshot.store))


@pytest.mark.parametrize(
    "fields",
    [
        {"fileSizeHistogram": value}
        for value in (
            None,
            5,
            [],
            {},
            {**HISTOGRAM, "sortedBinBoundaries": [0, 200, 100]},
            {**HISTOGRAM, "sortedBinBoundaries": [1, 100, 200]},
            {**HISTOGRAM, "sortedBinBoundaries": []},
            {**HISTOGRAM, "fileCounts": [9]},
            {**HISTOGRAM, "fileCounts": [0, -2, 0]},
            {**HISTOGRAM, "fileCounts": [0, True, 0]},
            {**HISTOGRAM, "totalBytes": [0, 1 << 63, 0]},
            {**HISTOGRAM, "totalBytes": "x"},
        )
    ]
    + [
        {"numDeletedRecordsOpt": "x"},
        {"numDeletionVectorsOpt": -1},
        {"deletedRecordCountsHistogramOpt": {"deletedRecordCounts": [9]}},
        {"deletedRecordCountsHistogramOpt": [9]},
        {"allFiles": "x"},
        {"allFiles": [{"path": "another.parquet"}]},
    ],
)
def test_an_optional_field_that_is_malformed_is_left_out_alone(fields: dict[str, Any]) -> None:
    snapshot = table(2)
    change(snapshot, 2, **{"fileSizeHistogram": HISTOGRAM, **fields})
    found = checksum.read(snapshot.store, 2)
    assert found is not None
    assert found.deleted_records == (None, None, None)
    assert (found.file_sizes is None) == ("fileSizeHistogram" in fields)
    assert paths(Snapshot.load(snapshot.store)) == ["1.parquet", "2.parquet"]


@needs_golden
def test_the_malformed_golden_one() -> None:
    assert checksum.read(Store(str(GOLDEN / "crc-malformed")), 0) is None
    found = checksum.read(Store(str(GOLDEN / "crc-full")), 0)
    assert found is not None
    assert (found.num_files, found.table_size_bytes) == (10, 5259)
