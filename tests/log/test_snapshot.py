"""Snapshots: loading, time travel, refreshing, and the errors of a broken log."""

from __future__ import annotations

import json
import os
import pickle
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from deltaic._core import Store
from deltaic.errors import (
    InvalidArgumentError,
    InvalidTypeError,
    ProtocolError,
    TableNotFoundError,
    UnsupportedFeatureError,
    VersionNotFoundError,
)
from deltaic.log import checkpoint, history
from deltaic.log.segment import checkpoint_path, commit_path
from deltaic.log.snapshot import Snapshot
from deltaic.transaction.transaction import Transaction
from log_actions import append, create, memory_store, paths
from numbered_store import NumberedStore


def table(versions: int) -> Snapshot:
    """Version n has the files 1.parquet ... n.parquet."""
    snapshot = create(memory_store(), properties={"delta.checkpointInterval": 1000})
    for version in range(1, versions + 1):
        snapshot = append(snapshot, f"{version}.parquet")
    return snapshot


def names(version: int) -> list[str]:
    return [f"{number}.parquet" for number in range(1, version + 1)]


def test_every_version_with_and_without_checkpoints() -> None:
    newest = table(6)
    for version in range(7):
        assert paths(Snapshot.load(newest.store, version=version)) == names(version)
    for version in (2, 5):
        checkpoint.write(newest.at(version), now=0)
    for version in range(7):
        assert paths(Snapshot.load(newest.store, version=version)) == names(version)


def test_definition() -> None:
    snapshot = create(memory_store(), partitioned=True, properties={"delta.appendOnly": "true"})
    assert snapshot.schema.names == ["id", "month"]
    assert snapshot.metadata.partition_columns == ("month",)
    assert snapshot.properties.append_only
    assert snapshot.table_schema.partition_columns == ["month"]
    assert (snapshot.protocol.min_reader_version, snapshot.protocol.min_writer_version) == (1, 2)
    assert snapshot.domains == {}


def test_refresh_reads_only_what_is_new() -> None:
    old = table(3)
    assert old.refresh() is old
    newer = append(append(old, "4.parquet"), "5.parquet")
    for version in range(4):  # a refresh has no need of them
        old.store.delete([commit_path(version)])
    fresh = old.refresh()
    assert fresh.version == newer.version == 5
    assert paths(fresh) == names(5)
    assert paths(old) == names(3)


@pytest.mark.parametrize("new", [1, 5])
def test_the_calls_of_a_refresh(new: int) -> None:
    """One listing from the new commits on, and each of them once: nothing that grows with the table."""
    counted = NumberedStore()
    store = Store.from_python(counted, "counted://table")
    old = create(store, properties={"delta.checkpointInterval": 3})
    for number in range(1, 5):
        old = append(old, f"{number}.parquet")
    newest = old
    for number in range(new):
        newest = append(newest, f"new {number}.parquet")
    counted.reset()
    fresh = old.refresh()
    assert counted.calls[0] == ("list", "_delta_log")
    assert sorted(counted.calls[1:]) == [("read", commit_path(version)) for version in range(5, 5 + new)]
    assert paths(fresh) == paths(newest)
    counted.reset()
    assert fresh.refresh() is fresh
    assert counted.calls == [("list", "_delta_log")]


def test_time_travel_takes_the_nearest_checkpoint_below() -> None:
    counted = NumberedStore()
    store = Store.from_python(counted, "counted://table")
    newest = create(store, properties={"delta.checkpointInterval": 3})
    for number in range(1, 12):
        newest = append(newest, f"{number}.parquet")
    for version in range(12):
        counted.reset()
        assert paths(newest.at(version)) == sorted(names(version)) or version == newest.version
        read = {
            path
            for method, path in counted.calls
            if method == "read" and path.endswith((".json", ".parquet"))
        }
        base = version // 3 * 3
        commits = {commit_path(each) for each in range(base + 1 if base else 0, version + 1)}
        assert version == newest.version or read == commits | ({checkpoint_path(base)} if base else set())


def test_refresh_over_a_log_that_was_cleaned_loads_anew() -> None:
    old = table(1)
    newest = append(append(append(old, "2.parquet"), "3.parquet"), "4.parquet")
    checkpoint.write(newest, now=0)
    for version in range(4):
        old.store.delete([commit_path(version)])
    assert paths(old.refresh()) == names(4)


@pytest.mark.parametrize("damage", [b"garbage", b"PAR1", b""])
def test_a_broken_checkpoint_gives_way_to_an_older_one(damage: bytes) -> None:
    newest = table(5)
    checkpoint.write(newest.at(2), now=0)
    checkpoint.write(newest.at(4), now=0)
    newest.store.put(checkpoint_path(4), damage)
    assert paths(Snapshot.load(newest.store)) == names(5)
    newest.store.put(checkpoint_path(2), damage)
    assert paths(Snapshot.load(newest.store)) == names(5)


def test_a_broken_checkpoint_that_nothing_replaces_is_an_error_by_its_name() -> None:
    newest = table(3)
    checkpoint.write(newest, now=0)
    newest.store.put(checkpoint_path(3), b"garbage that is no Parquet")
    newest.store.delete([commit_path(0)])
    with pytest.raises(ProtocolError, match=r"0003\.checkpoint\.parquet"):
        Snapshot.load(newest.store)


def line(action: dict[str, Any]) -> bytes:
    return json.dumps(action).encode() + b"\n"


PROTOCOL = line({"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}})
METADATA = line(
    {
        "metaData": {
            "id": "i",
            "format": {"provider": "parquet"},
            "schemaString": '{"type":"struct","fields":[]}',
            "partitionColumns": [],
            "configuration": {},
        }
    }
)


@pytest.mark.parametrize(
    ("body", "error", "message"),
    [
        (METADATA, ProtocolError, "no protocol action"),
        (PROTOCOL, ProtocolError, "no metaData action"),
        (
            line({"protocol": {"minReaderVersion": 9, "minWriterVersion": 9}}) + METADATA,
            UnsupportedFeatureError,
            "newer reader",
        ),
        (
            line(
                {
                    "protocol": {
                        "minReaderVersion": 3,
                        "minWriterVersion": 7,
                        "readerFeatures": ["warp"],
                        "writerFeatures": ["warp"],
                    }
                }
            )
            + METADATA,
            UnsupportedFeatureError,
            "warp",
        ),
        (b"{not json", ProtocolError, "00000000000000000000.json"),
        (PROTOCOL + b'{"metaData":{"id":"i"', ProtocolError, "00000000000000000000.json"),
    ],
)
def test_a_log_that_defines_no_table_we_can_read(body: bytes, error: type[Exception], message: str) -> None:
    store = memory_store()
    store.put(commit_path(0), body)
    with pytest.raises(error, match=message):
        Snapshot.load(store)


def test_unknown_actions_and_fields_are_ignored() -> None:
    store = memory_store()
    future = line({"future": {"x": 1}}) + line({"commitInfo": {"operation": "X", "future": [1]}})
    store.put(commit_path(0), future + PROTOCOL + METADATA)
    assert Snapshot.load(store).version == 0


def test_no_table() -> None:
    with pytest.raises(TableNotFoundError):
        Snapshot.load(memory_store())


# --- travelling by time


def aged(tmp_path: Path, ages: list[int]) -> Snapshot:
    """Returns a table on disk; commit n was written `ages[n]` seconds after 2024-01-01 by the clock of the
    store."""
    snapshot = create(Store(str(tmp_path / "table")), properties={"delta.checkpointInterval": 1000})
    for version in range(1, len(ages)):
        snapshot = append(snapshot, f"{version}.parquet")
    for version, age in enumerate(ages):
        os.utime(tmp_path / "table" / commit_path(version), (EPOCH + age, EPOCH + age))
    return snapshot


EPOCH = int(datetime(2024, 1, 1, tzinfo=timezone.utc).timestamp())


def at(seconds: float) -> datetime:
    return datetime(2024, 1, 1, tzinfo=timezone.utc) + timedelta(seconds=seconds)


def test_a_time_finds_the_newest_version_before_it(tmp_path: Path) -> None:
    snapshot = aged(tmp_path, [0, 10, 20])
    found = {
        seconds: snapshot.at(timestamp=at(seconds)).version for seconds in (0, 9.999, 10, 15, 20, 10_000)
    }
    assert found == {0: 0, 9.999: 0, 10: 1, 15: 1, 20: 2, 10_000: 2}


def test_a_time_before_the_first_version(tmp_path: Path) -> None:
    snapshot = aged(tmp_path, [0, 10])
    with pytest.raises(VersionNotFoundError, match=r"2024-01-01T00:00:00\+00:00 \(version 0\) or later"):
        snapshot.at(timestamp=at(-1))


def test_clocks_that_go_back_are_straightened(tmp_path: Path) -> None:
    snapshot = aged(tmp_path, [0, 10, 5, 5, 20])
    assert [snapshot.at(timestamp=at(10 + ms / 1000)).version for ms in (0, 1, 2, 3)] == [1, 2, 3, 3]
    assert snapshot.at(timestamp=at(7)).version == 0


def test_versions_that_were_cleaned_away_cannot_be_reached_by_time(tmp_path: Path) -> None:
    snapshot = aged(tmp_path, [0, 10, 20, 30])
    checkpoint.write(snapshot.at(2), now=0)
    snapshot.store.delete([commit_path(0), commit_path(1)])
    assert snapshot.at(timestamp=at(25)).version == 2
    with pytest.raises(VersionNotFoundError, match="version 2"):
        snapshot.at(timestamp=at(15))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2024-01-01", 0.0),
        ("2024-01-01T00:00:10", 10.0),
        ("2024-01-01 00:00:10.5", 10.5),
        ("2024-01-01T00:00:10Z", 10.0),
        ("2024-01-01T00:00:10.123456789Z", 10.123),
        ("2024-01-01T01:00:10+01:00", 10.0),
        ("2024-01-01T01:00:10+01", 10.0),
        ("2023-12-31T23:00:10-0100", 10.0),
    ],
)
def test_text_as_time(text: str, seconds: float) -> None:
    assert history.milliseconds(text) == EPOCH * 1000 + int(seconds * 1000)


def test_a_datetime_without_a_zone_is_utc() -> None:
    assert history.milliseconds(datetime(2024, 1, 1)) == EPOCH * 1000
    assert history.milliseconds(datetime(2024, 1, 1, 1, tzinfo=timezone(timedelta(hours=1)))) == EPOCH * 1000


def test_not_a_time() -> None:
    with pytest.raises(InvalidArgumentError, match="ISO 8601"):
        history.milliseconds("yesterday")
    with pytest.raises(InvalidTypeError):
        history.milliseconds(5)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="exclude each other"):
        table(0).at(0, timestamp="2024-01-01")


def test_history(tmp_path: Path) -> None:
    snapshot = aged(tmp_path, [0, 10, 5])
    entries = list(history.entries(snapshot.store, snapshot.version))
    assert [entry["version"] for entry in entries] == [2, 1, 0]
    assert [entry["timestamp"] for entry in entries] == [at(10.001), at(10), at(0)]
    assert [entry["operation"] for entry in entries] == ["WRITE", "WRITE", "CREATE TABLE"]
    assert [entry["version"] for entry in history.entries(snapshot.store, 1)] == [1, 0]
    assert [entry["version"] for entry in history.entries(snapshot.store, 2, 1)] == [2]
    with pytest.raises(InvalidArgumentError):
        list(history.entries(snapshot.store, 2, -1))


def test_in_commit_timestamps_count_from_where_they_begin(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "table"))
    configuration = {
        "delta.enableInCommitTimestamps": "true",
        "delta.inCommitTimestampEnablementVersion": "1",
    }
    metadata = json.loads(METADATA)
    store.put(commit_path(0), line({"commitInfo": {"operation": "A"}}) + PROTOCOL + METADATA)
    metadata["metaData"]["configuration"] = configuration
    protocol = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["inCommitTimestamp"]}
    stamp = (EPOCH + 1000) * 1000
    store.put(
        commit_path(1),
        line({"commitInfo": {"inCommitTimestamp": stamp, "operation": "B"}})
        + line({"protocol": protocol})
        + line(metadata),
    )
    for version in (0, 1):
        os.utime(tmp_path / "table" / commit_path(version), (EPOCH + version, EPOCH + version))
    assert history.version_at(store, at(500)) == 0
    assert history.version_at(store, at(1000)) == 1
    assert next(history.entries(store, 1, era=history.Era.of(configuration)))["timestamp"] == at(1000)


def test_a_store_pickles_so_that_a_snapshot_can_be_loaded_elsewhere(tmp_path: Path) -> None:
    snapshot = create(Store(str(tmp_path / "table")))
    again = pickle.loads(pickle.dumps(snapshot.store))
    assert Snapshot.load(again).metadata == snapshot.metadata


def test_what_follows_from_the_definition_is_kept_until_it_changes() -> None:
    first = table(1)
    parts = ("protocol", "metadata", "schema", "properties", "table_schema")
    before = [getattr(first, name) for name in parts]
    second = append(first, "2.parquet")
    assert [getattr(second, name) for name in parts] == before
    assert all(getattr(second, name) is part for name, part in zip(parts, before, strict=True))
    transaction = Transaction(second, "SET TBLPROPERTIES")
    transaction.set_metadata(replace(second.metadata, configuration={"delta.checkpointInterval": "7"}))
    third = transaction.commit()
    fresh = Snapshot.load(third.store)
    assert third.properties.checkpoint_interval == fresh.properties.checkpoint_interval == 7
    assert (third.metadata, third.protocol, third.schema) == (fresh.metadata, fresh.protocol, fresh.schema)
    assert second.properties.checkpoint_interval == 1000


def test_the_history_of_many_commits_is_that_of_each() -> None:
    """Commits are read in parallel, a few first: the result is that of reading them one after the other, at
    every length and limit."""
    snapshot = table(40)
    each = [history.commit_info(snapshot.store, version) for version in range(41)]
    for limit in (None, 0, 1, 16, 17, 41, 100):
        found = list(history.entries(snapshot.store, 40, limit))
        assert [entry["version"] for entry in found] == list(range(40, -1, -1))[:limit]
        assert all(entry["txnId"] == each[entry["version"]]["txnId"] for entry in found)
    snapshot.store.put(commit_path(20), b'{"commitInfo": 1')
    found = []
    with pytest.raises(ProtocolError, match=rf"{20:020}\.json"):
        found.extend(history.entries(snapshot.store, 40))
