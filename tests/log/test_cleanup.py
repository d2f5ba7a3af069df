"""Cleanup of the log: each version that should be readable stays readable (delta-rs #2174, #2016, #2044)."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaic import CommitOptions
from deltaic._core import Store
from deltaic.log import checkpoint, cleanup, compaction
from deltaic.log.segment import checkpoint_path, commit_path, list_log
from deltaic.log.snapshot import Snapshot
from log_actions import append, create, paths

DAY = 86_400
NOW = 20_000 * DAY + DAY // 2


def aged(folder: Path, days: Sequence[float], checkpoints: set[int], **properties: str) -> Snapshot:
    """Commit n was written `days[n]` days before NOW."""
    defaults = {"delta.checkpointInterval": "1000", "delta.logRetentionDuration": "interval 30 days"}
    snapshot = create(Store(str(folder), durable=False), properties={**defaults, **properties})
    for version in range(1, len(days)):
        snapshot = append(snapshot, f"{version}.parquet")
    for version in checkpoints:
        checkpoint.write(snapshot.at(version), now=NOW * 1000)
    for version, age in enumerate(days):
        os.utime(folder / commit_path(version), (NOW - age * DAY, NOW - age * DAY))
    return snapshot


def versions(snapshot: Snapshot) -> list[int]:
    return sorted(list_log(snapshot.store).commits)


def test_what_is_older_than_the_last_checkpoint_below_the_first_unexpired_version_goes(
    tmp_path: Path,
) -> None:
    snapshot = aged(tmp_path, [100, 90, 80, 70, 10, 5], {2, 3, 5})
    snapshot.store.put("_delta_log/00000000000000000000.00000000000000000002.compacted.json", b"{}")
    snapshot.store.put("_delta_log/notes.txt", b"mine")
    # The first unexpired version is 4: it is built from checkpoint 3. Three commits and checksums, a
    # checkpoint, a compacted range go.
    assert cleanup.clean(snapshot, now=NOW * 1000) == 8
    assert versions(snapshot) == [3, 4, 5]
    assert snapshot.store.head(checkpoint_path(2)) is None
    assert snapshot.store.head("_delta_log/notes.txt") is not None
    for version in (3, 4, 5):
        assert len(paths(Snapshot.load(snapshot.store, version=version))) == version


def test_nothing_goes_without_a_checkpoint_below_the_first_unexpired_version(tmp_path: Path) -> None:
    snapshot = aged(tmp_path, [100, 90, 10, 5], {3})
    assert cleanup.clean(snapshot, now=NOW * 1000) == 0
    assert versions(snapshot) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("retention", "left"),
    [
        (None, {3, 5, 6, 7}),
        ("interval 9 days", {3, 6, 7}),
        ("interval 2 days", {3, 7}),
        ("interval 90 days", {3, 5, 6, 7}),
    ],
)
def test_checkpoints_that_no_version_needs_go_by_their_own_retention(
    tmp_path: Path, retention: str | None, left: set[int]
) -> None:
    ages = [100, 90, 80, 70, 40, 10, 9, 8]
    properties = {"delta.checkpointRetentionDuration": retention} if retention else {}
    snapshot = aged(tmp_path, ages, {2, 3, 5, 6, 7}, **properties)
    for version in (2, 3, 5, 6, 7):
        os.utime(tmp_path / checkpoint_path(version), (NOW - ages[version] * DAY, NOW - ages[version] * DAY))
    cleanup.clean(snapshot, now=NOW * 1000)
    assert {each.version for each in list_log(snapshot.store).checkpoints} == left
    assert versions(snapshot) == [3, 4, 5, 6, 7]
    for version in versions(snapshot):
        assert len(paths(Snapshot.load(snapshot.store, version=version))) == version


def test_a_log_that_has_hardly_grown_is_not_listed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = aged(tmp_path, [5, 4, 3, 2], {2})
    cleaned: list[int] = []
    monkeypatch.setattr(cleanup, "_CLEANINGS", cleanup._Cleanings())
    monkeypatch.setattr(cleanup, "_clean_staged", lambda *_: cleaned.append(1) or 0)
    monkeypatch.setattr(cleanup, "_NAMES_PER_COMMIT", 4)
    monkeypatch.setattr(cleanup, "_LEAST_COMMITS", 0)
    names = len(os.listdir(tmp_path / "_delta_log"))
    assert 8 <= names < 12
    for number in range(4, 10):
        cleanup.clean_if_due(snapshot, now=NOW * 1000)
        snapshot = append(snapshot, f"{number}.parquet", options=CommitOptions(checkpoint=False))
    assert len(cleaned) == 3  # at versions 3, 5 and 8
    monkeypatch.setattr(cleanup, "_LEAST_COMMITS", 100)
    cleanup.clean(snapshot, now=NOW * 1000)
    cleanup.clean_if_due(snapshot, now=NOW * 1000 + 3_599_000)
    assert len(cleaned) == 4
    cleanup.clean_if_due(snapshot, now=NOW * 1000 + 3_600_000)
    cleanup.clean_if_due(snapshot, now=NOW * 1000 - DAY * 1000)  # the clock was set back
    assert len(cleaned) == 6


def test_the_newest_version_never_expires(tmp_path: Path) -> None:
    snapshot = aged(tmp_path, [100, 90, 80], {1, 2})
    assert cleanup.clean(snapshot, now=NOW * 1000) > 0
    assert paths(Snapshot.load(snapshot.store)) == ["1.parquet", "2.parquet"]


def test_the_version_of_the_cutoff_stays(tmp_path: Path) -> None:
    """PROTOCOL.md: the state of the table at the midnight that begins the retention can still be read."""
    snapshot = aged(tmp_path, [40, 35, 30, 5], {1, 2})
    # Commit 2 is 30 days old at noon: at the midnight before, the table was at version 1.
    cleanup.clean(snapshot, now=NOW * 1000)
    assert versions(snapshot) == [1, 2, 3]
    # Half a day later the midnight is another: version 2 is what the table was then.
    cleanup.clean(snapshot, now=(NOW + DAY // 2) * 1000)
    assert versions(snapshot) == [2, 3]


def test_a_retention_of_hours_begins_at_a_midnight(tmp_path: Path) -> None:
    """As in delta-spark: now - retention is rounded down to a day, rather than now."""
    # The cutoff is yesterday's midnight, 36 hours ago: at that time, the table was at version 1.
    retention = {"delta.logRetentionDuration": "interval 18 hours"}
    snapshot = aged(tmp_path, [10, 1.8, 1.4, 0], {1, 2}, **retention)
    cleanup.clean(snapshot, now=NOW * 1000)
    assert versions(snapshot) == [1, 2, 3]


def test_a_broken_checkpoint_is_nothing_to_begin_with(tmp_path: Path) -> None:
    snapshot = aged(tmp_path, [100, 90, 80, 70, 5], {1, 3})
    snapshot.store.put(checkpoint_path(3), b"PAR1 and then nothing")
    cleanup.clean(snapshot, now=NOW * 1000)
    assert versions(snapshot) == [1, 2, 3, 4]
    assert paths(Snapshot.load(snapshot.store)) == paths(snapshot)


def test_ranges_that_begin_with_the_checkpoint_or_before_go(tmp_path: Path) -> None:
    snapshot = aged(tmp_path, [100, 90, 80, 70, 60, 5], {2})
    ranges = [compaction.compact(snapshot, first, last) for first, last in ((0, 1), (1, 3), (2, 4), (3, 4))]
    cleanup.clean(snapshot, now=NOW * 1000)
    assert [snapshot.store.head(path) is not None for path in ranges] == [False, False, False, True]
    assert paths(Snapshot.load(snapshot.store)) == paths(snapshot)


@pytest.mark.parametrize(("before", "cleaned"), [(0, True), (3, True), (4, True), (5, False)])
def test_protected_checkpoints_go_at_once_or_not_at_all(tmp_path: Path, before: int, cleaned: bool) -> None:
    """Version 1 upgrades to a protocol that no reader supports; the log would begin with version 4."""
    snapshot = aged(tmp_path, [100, 90, 80, 70, 60, 5], {2, 4})
    first = tmp_path / commit_path(1)
    unheard = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["unheardOf"]}}
    first.write_text(first.read_text() + json.dumps(unheard) + "\n")
    os.utime(first, (NOW - 90 * DAY, NOW - 90 * DAY))
    snapshot.properties._values["delta.requireCheckpointProtectionBeforeVersion"] = before
    cleanup.clean(snapshot, now=NOW * 1000)
    assert versions(snapshot) == ([4, 5] if cleaned else [0, 1, 2, 3, 4, 5])


def test_protected_checkpoints_of_known_protocols_may_go(tmp_path: Path) -> None:
    snapshot = aged(tmp_path, [100, 90, 80, 70, 60, 5], {2, 4})
    snapshot.properties._values["delta.requireCheckpointProtectionBeforeVersion"] = 5
    cleanup.clean(snapshot, now=NOW * 1000)
    assert versions(snapshot) == [4, 5]


def test_an_older_snapshot_keeps_what_it_needs(tmp_path: Path) -> None:
    snapshot = aged(tmp_path, [100, 90, 80, 70], {1, 3})
    cleanup.clean(snapshot.at(2), now=NOW * 1000)
    assert versions(snapshot) == [1, 2, 3]


@pytest.mark.parametrize(("option", "cleaned"), [(None, True), (True, True), (False, False)])
def test_a_commit_that_writes_a_checkpoint_cleans(tmp_path: Path, option: bool | None, cleaned: bool) -> None:
    snapshot = aged(tmp_path, [100, 90, 80], {1}, **{"delta.checkpointInterval": "3"})
    os.utime(tmp_path / commit_path(2), (1, 1))
    append(snapshot, "3.parquet", options=CommitOptions(clean_log=option))
    assert (snapshot.store.head(commit_path(0)) is None) == cleaned


def test_the_table_may_forbid_cleaning(tmp_path: Path) -> None:
    properties = {"delta.checkpointInterval": "3", "delta.enableExpiredLogCleanup": "false"}
    snapshot = aged(tmp_path, [100, 90, 80], {1}, **properties)
    append(snapshot, "3.parquet")
    assert snapshot.store.head(commit_path(0)) is not None


@given(
    ages=st.lists(st.integers(0, 60), min_size=1, max_size=8),
    checkpoints=st.sets(st.integers(1, 7), max_size=4),
)
def test_every_unexpired_version_stays_readable(
    ages: list[int], checkpoints: set[int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    ages = sorted(ages, reverse=True)
    snapshot = aged(
        tmp_path_factory.mktemp("table"), ages, {version for version in checkpoints if version < len(ages)}
    )
    cleanup.clean(snapshot, now=NOW * 1000)
    for version, age in enumerate(ages):
        if age <= 30 or version == len(ages) - 1:
            assert len(paths(Snapshot.load(snapshot.store, version=version))) == version
