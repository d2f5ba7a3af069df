"""Checkpoints that are written after a commit has returned: none is lost, and one table has only one at a
time."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import deltaic
from deltaic.log import background, checkpoint
from deltaic.log.background import Queue
from deltaic.log.checksum import checksum_path
from deltaic.log.compaction import compacted_path
from deltaic.log.segment import checkpoint_path, commit_path
from deltaic.log.snapshot import Snapshot
from log_actions import append, create, memory_store, paths


@pytest.fixture
def later() -> Iterator[None]:
    with deltaic.configure(background_checkpoints=True):
        yield
    assert background.wait(10)


def waiting_checkpoints(monkeypatch: pytest.MonkeyPatch) -> tuple[threading.Event, threading.Event]:
    """Lets checkpoints wait. Returns the events that one has begun, and that they may be written."""
    begun, release, real = threading.Event(), threading.Event(), checkpoint.write

    def slow(snapshot: Snapshot, *, now: int) -> dict[str, object]:
        begun.set()
        assert release.wait(10)
        return real(snapshot, now=now)

    monkeypatch.setattr(checkpoint, "write", slow)
    return begun, release


def test_the_commit_answers_first(later: None, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, release = waiting_checkpoints(monkeypatch)
    snapshot = append(create(memory_store(), properties={"delta.checkpointInterval": "1"}), "1.parquet")
    assert begun.wait(10)
    for number in (2, 3, 4):
        snapshot = append(snapshot, f"{number}.parquet")
    assert all(snapshot.store.head(checkpoint_path(version)) is None for version in range(5))
    release.set()
    assert background.wait(10)
    # The first was running, and the newest waited for it; the newest contains the commits between them.
    there = [version for version in range(5) if snapshot.store.head(checkpoint_path(version)) is not None]
    assert there == [1, 4]
    assert paths(Snapshot.load(snapshot.store)) == [f"{number}.parquet" for number in range(1, 5)]


def test_a_compacted_range_takes_no_checkpoints_place(later: None, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, release = waiting_checkpoints(monkeypatch)
    snapshot = create(memory_store(), properties={"delta.checkpointInterval": "2"})
    with deltaic.configure(log_compaction_interval=3):
        for number in (1, 2, 3, 4, 5):
            snapshot = append(snapshot, f"{number}.parquet")
            assert number != 2 or begun.wait(10)
    release.set()
    assert background.wait(10)
    assert snapshot.store.head(checkpoint_path(4)) is not None
    assert snapshot.store.head(compacted_path(3, 5)) is not None


@pytest.mark.parametrize("is_superseded", [False, True])
def test_a_version_has_no_checksum_if_another_process_has_committed_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_superseded: bool
) -> None:
    works: list[background.Work] = []
    deltaic.write(tmp_path, {"id": [0]})
    with monkeypatch.context() as patch, deltaic.configure(background_checkpoints=True):
        patch.setattr(background, "submit", lambda table, work: works.append(work))
        deltaic.write(tmp_path, {"id": [1]}, mode="append")
    if is_superseded:
        shutil.copy(tmp_path / commit_path(1), tmp_path / commit_path(2))
    for work in works:
        work()
    assert (tmp_path / checksum_path(1)).exists() is not is_superseded


def test_what_fails_is_told(
    later: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(snapshot: Snapshot, *, now: int) -> dict[str, object]:
        raise OSError("no room")

    monkeypatch.setattr(checkpoint, "write", fail)
    snapshot = append(create(memory_store(), properties={"delta.checkpointInterval": "1"}), "1.parquet")
    assert background.wait(10)
    assert snapshot.version == 1
    assert "the checkpoint of version 1 failed: no room" in caplog.text


def test_a_thread_pauses_between_two_works(monkeypatch: pytest.MonkeyPatch) -> None:
    """Versions that come in the pause need one work; whoever waits for the end ends the pause."""
    monkeypatch.setattr(background, "_PAUSE", 60)
    queue, begun, done = Queue(), threading.Event(), []

    def work(number: int) -> None:
        done.append(number)
        begun.set()

    queue.submit("a", lambda: work(0))
    assert begun.wait(10)
    for number in (1, 2, 3):
        queue.submit("a", lambda number=number: work(number))
    assert queue.wait(10)
    assert done[0] == 0
    assert done[-1] == 3
    assert len(done) == 2


def test_tables_do_not_wait_for_each_other() -> None:
    queue, release, done = Queue(), threading.Event(), threading.Event()
    queue.submit("a", lambda: release.wait(10) and None)
    queue.submit("b", done.set)
    assert done.wait(10)
    assert not queue.wait(0.01)
    release.set()
    assert queue.wait(10)


def test_the_process_ends_when_all_is_written(tmp_path: Path) -> None:
    script = f"""
import pyarrow as pa, deltaic
deltaic.configure(background_checkpoints=True)
properties = {{"delta.checkpointInterval": 1}}
table = deltaic.write({str(tmp_path)!r}, pa.table({{"id": [0]}}), properties=properties)
deltaic.write(table, pa.table({{"id": [1]}}), mode="append")
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
    assert (tmp_path / checkpoint_path(1)).exists()
    assert (tmp_path / "_delta_log/_last_checkpoint").exists()


def test_a_flag(later: None) -> None:
    assert deltaic.configure().__enter__().background_checkpoints
    with pytest.raises(deltaic.errors.InvalidArgumentError):
        deltaic.configure(background_checkpoints=1)  # type: ignore[arg-type]
