"""Threads that run one work after another."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltaic
from deltaic import worker
from deltaic._core import Store
from deltaic.log.snapshot import Snapshot
from deltaic.worker import Worker


@pytest.fixture(autouse=True)
def threads(monkeypatch: pytest.MonkeyPatch) -> worker._Threads:
    """Threads of this test alone."""
    own = worker._Threads()
    monkeypatch.setattr(worker, "_THREADS", own)
    return own


def wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.005)


def ident(_: Worker[int]) -> int:
    return threading.get_ident()


def test_one_thread_runs_one_work_after_another(threads: worker._Threads) -> None:
    first = Worker(ident).result()
    wait_for(lambda: len(threads._idle) == 1)
    assert Worker(ident).result() == first
    wait_for(lambda: len(threads._idle) == 1)
    outer: Worker[tuple[int, int]] = Worker(lambda _: (threading.get_ident(), Worker(ident).result()))
    one, two = outer.result()
    assert one == first
    assert two != first  # it waits for the inner work
    wait_for(lambda: len(threads._idle) == 2)


def test_a_work_that_raises_leaves_its_thread_to_the_next(threads: worker._Threads) -> None:
    def fail(_: Worker[int]) -> int:
        raise ValueError(str(threading.get_ident()))

    with pytest.raises(ValueError, match=r"^\d+$") as raised:
        Worker(fail).result()
    wait_for(lambda: len(threads._idle) == 1)
    assert Worker(ident).result() == int(str(raised.value))


def test_an_interrupted_work_does_not_stop_the_next_one(tmp_path: Path, threads: worker._Threads) -> None:
    deltaic.write(tmp_path, pa.table({"id": [1]}))
    threads.reset()
    idents = []

    def endless(own: Worker[Any]) -> None:
        idents.append(threading.get_ident())
        own.watch()
        while not own.stopping:
            time.sleep(0.01)
        wait_for(lambda: _is_stopped(tmp_path))

    def stop() -> None:
        if idents:
            raise RuntimeError("stopped")

    with pytest.raises(RuntimeError, match="stopped"):
        Worker(endless, check=stop).result()
    wait_for(lambda: len(threads._idle) == 1)
    ident, version = Worker[Any](
        lambda _: (threading.get_ident(), Snapshot.load(Store(str(tmp_path))).core.version)
    ).result()
    assert (ident, version) == (idents[0], 0)


def _is_stopped(path: Path) -> bool:
    """True if calls of `_core` end on this thread, as its caller was interrupted."""
    try:
        Snapshot.load(Store(str(path)))
    except KeyboardInterrupt:
        return True
    return False


def test_threads_end_when_there_is_no_work(threads: worker._Threads, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "_IDLE", 0.02)
    before = threading.active_count()
    for _ in range(5):
        Worker(ident).result()
    wait_for(lambda: not threads._idle and threading.active_count() <= before)
    assert Worker(ident).result()


def test_not_too_many_threads_wait(threads: worker._Threads, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "_MOST_IDLE", 0)
    Worker(ident).result()
    time.sleep(0.05)
    assert threads._idle == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a system without fork")
def test_a_forked_child_has_none() -> None:
    code = """
        import os, time
        from deltaic import worker
        worker.Worker(lambda _: 1).result()
        while not worker._THREADS._idle:
            time.sleep(0.01)
        child = os.fork()
        if child == 0:
            os._exit(worker.Worker(lambda _: 7).result())
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], check=True, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.strip() == "7"


def held_places(places: worker._Places, threads: int, wanted: int) -> tuple[list[int], Callable[[], None]]:
    """Starts threads that stay in their places. Returns the threads that got one, once `wanted` of them have
    one, and a function that releases all and waits for them."""
    inside: list[int] = []
    go = threading.Event()

    def work() -> None:
        with places.place(), places.place():  # a thread has one place, however often it enters
            inside.append(threading.get_ident())
            go.wait(10)

    all_threads = [threading.Thread(target=work) for _ in range(threads)]
    for thread in all_threads:
        thread.start()

    def release() -> None:
        go.set()
        for thread in all_threads:
            thread.join(10)

    wait_for(lambda: len(inside) >= wanted)
    return inside, release


def test_few_threads_do_short_work_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "_PLACES", 2)
    monkeypatch.setattr(worker, "_SHORT", 10.0)
    places = worker._Places()
    inside, release = held_places(places, threads=5, wanted=2)
    wait_for(lambda: len(places._waiting) == 3)
    assert len(inside) == 2
    release()
    assert len(set(inside)) == 5
    assert (places._began, list(places._waiting)) == ({}, [])


def test_long_work_keeps_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "_PLACES", 2)
    monkeypatch.setattr(worker, "_SHORT", 0.01)
    places = worker._Places()
    inside, release = held_places(places, threads=5, wanted=5)
    assert len(set(inside)) == 5
    release()
    assert (places._began, list(places._waiting)) == ({}, [])


@pytest.mark.parametrize("places", [1, 1000])
def test_appends_with_few_and_with_many_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, places: int
) -> None:
    monkeypatch.setattr(worker, "_PLACES", places)
    deltaic.write(tmp_path, pa.table({"id": pa.array([], pa.int64())}))

    def work(first: int) -> None:
        for number in range(first, first + 10):
            deltaic.write(tmp_path, pa.table({"id": [number]}), mode="append")

    threads = [threading.Thread(target=work, args=(10 * at,)) for at in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    table = deltaic.DeltaTable(tmp_path)
    assert (table.version, sorted(table.scan().to_arrow()["id"].to_pylist())) == (80, list(range(80)))
