"""In-commit timestamps: the first field of commitInfo, strictly increasing, from the version that
enables them on; history and time travel use them.

Source: PROTOCOL.md, "In-Commit Timestamps".
"""

from __future__ import annotations

import os
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltaic
from deltaic import DeltaTable
from deltaic.errors import MetadataChangedException, ProtocolError, VersionNotFoundError
from deltaic.log import checkpoint, history
from deltaic.log.segment import commit_path
from deltaic.log.snapshot import Snapshot
from deltaic.protocol.definition import evolve
from deltaic.transaction.transaction import Transaction
from log_actions import adds, commit_lines, create, memory_store

ON = {"delta.enableInCommitTimestamps": "true"}
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def at(ms: int) -> datetime:
    return EPOCH + timedelta(milliseconds=ms)


def commit(
    snapshot: Snapshot, clock: int, name: str = "a.parquet", properties: dict[str, Any] | None = None
) -> Snapshot:
    transaction = Transaction(snapshot, "WRITE", {}, clock=lambda: clock, sleep=lambda _: None)
    if properties is None:
        transaction.add(adds(name))
    else:
        protocol, metadata = evolve(snapshot.protocol, snapshot.metadata, properties=properties)
        if protocol != snapshot.protocol:
            transaction.set_protocol(protocol)
        transaction.set_metadata(metadata)
    return transaction.commit()


def own_time(snapshot: Snapshot) -> Any:
    name, info = next(iter(commit_lines(snapshot.store, snapshot.version)[0].items()))
    assert name == "commitInfo"
    return info.get("inCommitTimestamp")


def test_times_increase_strictly_whatever_the_clock_says() -> None:
    snapshot = create(memory_store(), properties=ON)
    first = own_time(snapshot)
    assert "inCommitTimestamp" in (snapshot.protocol.writer_features or ())
    assert "delta.inCommitTimestampEnablementVersion" not in snapshot.metadata.configuration
    snapshot = commit(snapshot, first + 1000, "a")
    assert own_time(snapshot) == first + 1000
    snapshot = commit(snapshot, 5, "b")
    assert own_time(snapshot) == first + 1001
    snapshot = commit(snapshot, first + 1001, "c")
    assert own_time(snapshot) == first + 1002


def test_without_the_feature_no_time_is_written() -> None:
    snapshot = create(memory_store())
    assert own_time(snapshot) is None


def test_turned_on_later_the_properties_say_since_when(tmp_path: Path) -> None:
    snapshot = create(deltaic._core.Store(str(tmp_path / "t")))
    snapshot = commit(snapshot, 1, "a")
    late = 4_000_000_000
    os.utime(tmp_path / "t" / commit_path(1), (late, late))
    snapshot = commit(snapshot, 7, properties=ON)
    assert own_time(snapshot) == late * 1000 + 1, "after the modification time of the commit before"
    configuration = snapshot.metadata.configuration
    assert configuration["delta.inCommitTimestampEnablementVersion"] == "2"
    assert configuration["delta.inCommitTimestampEnablementTimestamp"] == str(late * 1000 + 1)
    snapshot = commit(snapshot, 7, "b")
    assert own_time(snapshot) == late * 1000 + 2
    changed = commit(snapshot, 8, properties={"delta.appendOnly": "true"})
    assert changed.metadata.configuration["delta.inCommitTimestampEnablementVersion"] == "2"
    off = commit(changed, 9, properties={"delta.enableInCommitTimestamps": "false"})
    assert own_time(off) is None
    assert not [name for name in off.metadata.configuration if "Enablement" in name]
    again = commit(off, 9, properties=ON)
    assert again.metadata.configuration["delta.inCommitTimestampEnablementVersion"] == str(again.version)


def test_a_retry_takes_the_winners_time_into_account() -> None:
    snapshot = create(memory_store(), properties=ON)
    first = own_time(snapshot)
    winner = commit(snapshot, first + 50_000, "w")
    ours = commit(snapshot, first + 10, "o")
    assert (ours.version, own_time(winner), own_time(ours)) == (2, first + 50_000, first + 50_001)


def test_a_winner_that_turns_them_on_disturbs_nobody_and_is_followed() -> None:
    snapshot = create(memory_store())
    winner = commit(snapshot, 10**13, properties=ON)
    ours = commit(snapshot, 5, "o")
    assert own_time(ours) == own_time(winner) + 1
    assert ours.metadata == winner.metadata


def test_two_changes_of_the_metadata_never_undo_one_another() -> None:
    snapshot = create(memory_store())
    commit(snapshot, 10**13, properties=ON)
    with pytest.raises(MetadataChangedException):
        commit(snapshot, 5, properties={"delta.appendOnly": "true"})


def test_a_commit_that_should_have_a_time_and_has_none_is_named() -> None:
    snapshot = create(memory_store(), properties=ON)
    body = b'{"commitInfo":{"operation":"WRITE"}}\n'
    assert snapshot.store.put_if_absent(commit_path(1), body) == "created"
    with pytest.raises(ProtocolError, match="in-commit timestamps") as caught:
        commit(snapshot.refresh(), 5, "o")
    assert commit_path(1) in str(caught.value)


def test_a_commit_that_is_gone_is_named() -> None:
    snapshot = create(memory_store(), properties=ON)
    checkpoint.write(snapshot, now=1)
    snapshot.store.delete([commit_path(0)])
    with pytest.raises(ProtocolError, match="timestamp is needed is missing") as caught:
        commit(Snapshot.load(snapshot.store), 5, "o")
    assert commit_path(0) in str(caught.value)


def history_table(tmp_path: Path) -> tuple[DeltaTable, list[int]]:
    """Versions 0 and 1 by their files' times (1000 s, 2000 s), 2 to 4 by their own."""
    store = deltaic._core.Store(str(tmp_path / "t"))
    snapshot = create(store)
    snapshot = commit(snapshot, 0, "a")
    for version in (0, 1):
        seconds = 1000 * (version + 1)
        os.utime(tmp_path / "t" / commit_path(version), (seconds, seconds))
    snapshot = commit(snapshot, 3_000_000, properties=ON)
    snapshot = commit(snapshot, 4_000_000, "b")
    snapshot = commit(snapshot, 5_000_000, "c")
    return DeltaTable(tmp_path / "t"), [1_000_000, 2_000_000, 3_000_000, 4_000_000, 5_000_000]


def test_history_and_detail_show_the_commits_own_times(tmp_path: Path) -> None:
    table, times = history_table(tmp_path)
    assert [entry["timestamp"] for entry in table.history()] == [at(time) for time in reversed(times)]
    assert [entry["timestamp"] for entry in table.history(1)] == [at(times[-1])]
    assert table.detail().last_modified == at(times[-1])


def test_time_travel_follows_the_commits_own_times(tmp_path: Path) -> None:
    table, times = history_table(tmp_path)
    for version, time in enumerate(times):
        assert table.at(timestamp=at(time)).version == version
        assert table.at(timestamp=at(time + 500)).version == version
        if version:
            assert table.at(timestamp=at(time - 1)).version == version - 1
    assert table.at(timestamp=at(times[-1] + 10**9)).version == 4
    with pytest.raises(VersionNotFoundError, match="before the first"):
        table.at(timestamp=at(times[0] - 1))


def test_time_travel_reads_few_commits_of_a_long_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = create(memory_store(), properties=ON)
    first = own_time(snapshot)
    for version in range(1, 65):
        snapshot = commit(snapshot, first + 1000 * version, str(version))
    read: list[int] = []
    real = history.commit_info
    monkeypatch.setattr(
        history, "commit_info", lambda store, version: read.append(version) or real(store, version)
    )
    for version in (0, 1, 33, 63, 64):
        read.clear()
        assert history.version_at(snapshot.store, at(first + 1000 * version + 1)) == version
        assert len(read) <= 9


def test_a_number_that_is_none_is_named(tmp_path: Path) -> None:
    configuration = {**ON, "delta.inCommitTimestampEnablementVersion": "two"}
    with pytest.raises(ProtocolError, match="EnablementVersion"):
        history.Era.of(configuration)


def test_a_time_that_no_datetime_can_have_is_named() -> None:
    create(store := memory_store(), properties=ON)
    commit(Snapshot.load(store), 2**62)
    table = DeltaTable._of(Snapshot.load(store), {})
    for shown in (table.history, table.detail):
        with pytest.raises(ProtocolError, match=f"found {2**62} ms since 1970; expected the years 1 to 9999"):
            shown()


def test_restore_ends_and_begins_them_as_in_the_restored_version(tmp_path: Path) -> None:
    """As in delta-spark: with them, commits have them from the version of the RESTORE on."""
    table = deltaic.write(tmp_path / "t", pa.table({"a": [1]}))
    table.alter.set_properties(ON)
    table.restore(0)
    assert not [name for name in table.metadata.configuration if "nCommitTimestamp" in name]
    deltaic.write(table, pa.table({"a": [2]}), mode="append")
    table.restore(1)
    deltaic.write(table, pa.table({"a": [3]}), mode="append")
    assert table.metadata.configuration["delta.inCommitTimestampEnablementVersion"] == "4"
    have = ["inCommitTimestamp" in entry for entry in reversed(table.history())]
    assert have == [False, True, False, False, True, True]


def test_restore_with_an_older_protocol_ends_them(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path / "t", pa.table({"a": [1]}))
    table.alter.set_properties(ON)
    table.restore(0, allow_protocol_downgrade=True)
    assert "inCommitTimestamp" not in (table.protocol.writer_features or ())
    assert not [name for name in table.metadata.configuration if "nCommitTimestamp" in name]
    assert table.detail().last_modified is not None


def test_deltalake_reads_and_follows(tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake")
    deltaic.write(tmp_path / "t", pa.table({"a": [1]}), properties=ON)
    deltaic.write(tmp_path / "t", pa.table({"a": [2]}), mode="append")
    theirs = deltalake.DeltaTable(str(tmp_path / "t"))
    assert theirs.version() == 1
    assert sorted(
        pa.table(deltalake.QueryBuilder().register("t", theirs).execute("select a from t").read_all())[
            "a"
        ].to_pylist()
    ) == [1, 2]
