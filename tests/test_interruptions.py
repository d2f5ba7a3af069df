"""Exceptions in the middle of a command, from a signal handler or from another thread: no commit loses its
files.

The default is a short run; DELTAIC_INTERRUPTIONS=2000 makes a run of this many random points of each kind.
"""

from __future__ import annotations

import ctypes
import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltaic
from deltaic import DeltaTable
from fault_store import FaultStore
from numbered_store import Fault, NumberedStore

MOMENTS = int(os.environ.get("DELTAIC_INTERRUPTIONS", "120"))

pytestmark = pytest.mark.skipif(os.name == "nt", reason="timers that signal")


class Stop(BaseException):
    """One that is no Exception, of a user's own."""


ERRORS: list[type[BaseException]] = [RuntimeError, TimeoutError, Stop, MemoryError, KeyboardInterrupt]
Ids = list[tuple[int, int]]
KINDS = ["append", "append", "delete", "update", "merge", "compact", "overwrite", "vacuum"]


class Alarm:
    """Raises `error` once in the main thread, when a signal comes while it is set."""

    def __init__(self) -> None:
        self.error: BaseException | None = None

    def set(self, error: BaseException, after: float | None = None) -> None:
        """Sets the error to raise after `after` seconds, or when the process gets SIGALRM."""
        self.error = error
        if after is not None:
            signal.setitimer(signal.ITIMER_REAL, max(after, 1e-6))

    def off(self) -> None:
        self.error = None
        signal.setitimer(signal.ITIMER_REAL, 0)

    def __call__(self, number: int, frame: object) -> None:
        error, self.error = self.error, None
        if error is not None:
            raise error


@pytest.fixture
def alarm() -> Iterator[Alarm]:
    alarm = Alarm()
    before = signal.signal(signal.SIGALRM, alarm)
    yield alarm
    alarm.off()
    signal.signal(signal.SIGALRM, before)


def chain(error: BaseException | None) -> list[type[BaseException]]:
    """Returns the classes of the exception and of its causes: an interrupted tokenizer reports an error of
    the text."""
    return [] if error is None else [type(error), *chain(error.__cause__ or error.__context__)]


class Job:
    """A table of (id, n), and commands on it with the rows that they lead to."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.folder = folder
        self.rows: Ids = [(number, 0) for number in range(40)]
        self.next = 40
        properties = {
            "delta.enableDeletionVectors": True,
            "delta.checkpointInterval": 5,
            "delta.autoOptimize.autoCompact": True,
        }
        deltaic.write(folder, self.arrow(self.rows), properties=properties)
        # Other libraries are imported by now: one that is stopped in the middle of its import may be of no
        # use any more.
        for kind in sorted(set(KINDS)):
            _, command, after = self.command(kind)
            command(DeltaTable(folder))
            self.check(after, kind)

    @staticmethod
    def arrow(rows: Ids) -> pa.Table:
        return pa.table(
            {
                "id": pa.array([row[0] for row in rows], pa.int64()),
                "n": pa.array([row[1] for row in rows], pa.int64()),
            }
        )

    def command(self, kind: str | None = None) -> tuple[str, Callable[[DeltaTable], object], Ids]:
        """Returns a command, a random one if none is named, and the rows after it."""
        rows, low = self.rows, self.random.choice(self.rows)[0] if self.rows else 0
        kind = kind or self.random.choice(KINDS)
        if kind in ("append", "overwrite"):
            new = [(self.next + number, 0) for number in range(5 if kind == "append" else 40)]
            self.next += len(new)
            return (
                kind,
                lambda table: deltaic.write(table, self.arrow(new), mode=kind),  # type: ignore[arg-type]
                (rows if kind == "append" else []) + new,
            )
        if kind == "delete":
            return kind, lambda table: table.delete(f"id = {low}"), [row for row in rows if row[0] != low]
        if kind == "update":
            return (
                kind,
                lambda table: table.update({"n": "n + 1"}, f"id > {low}"),
                [(i, n + 1 if i > low else n) for i, n in rows],
            )
        if kind == "merge":
            new = [(low, 100), (self.next, 100)]
            self.next += 1

            def merge(table: DeltaTable) -> object:
                clauses = table.merge(self.arrow(new), "t.id = s.id")
                return clauses.when_matched_update_all().when_not_matched_insert_all().execute()

            return kind, merge, [row for row in rows if row[0] != low] + new
        if kind == "compact":
            return kind, lambda table: table.optimize.compact(), rows
        return kind, lambda table: table.vacuum(retention=timedelta(0), enforce_retention=False), rows

    def check(self, after: Ids, where: object) -> None:
        """The table is whole, and holds the rows before the command or after it."""
        table = DeltaTable(self.folder)
        names = table.files().to_arrow()["path"].to_pylist()
        assert all((self.folder / name).exists() for name in names), where
        found = table.scan().to_arrow()
        held = sorted(zip(found["id"].to_pylist(), found["n"].to_pylist(), strict=True))
        assert held in (sorted(self.rows), sorted(after)), where
        self.rows = held


def test_exceptions_of_a_signal_handler_at_random_moments(tmp_path: Path, alarm: Alarm) -> None:
    job, reached = Job(tmp_path, 1), 0
    durations: dict[str, float] = {}
    with deltaic.configure(durable=False):
        for moment in range(MOMENTS):
            kind, command, after = job.command()
            error = job.random.choice(ERRORS)
            table, started, raised = DeltaTable(tmp_path), time.monotonic(), None
            try:
                alarm.set(error("time is up"), job.random.uniform(0, durations.get(kind, 0.05)))
                command(table)
                alarm.off()
            except BaseException as caught:
                alarm.off()
                raised = caught
            if raised is None:
                durations[kind] = 1.1 * (time.monotonic() - started)
            else:
                assert error in chain(raised), (moment, kind, raised)
                reached += 1
            job.check(after, (moment, kind, raised))
    assert reached > MOMENTS // 4


def test_exceptions_set_from_another_thread_at_random_moments(tmp_path: Path) -> None:
    job, reached = Job(tmp_path, 2), 0
    durations: dict[str, float] = {}
    with deltaic.configure(durable=False):
        for moment in range(MOMENTS // 3):
            kind, command, after = job.command()
            error = job.random.choice(ERRORS)
            table, started, raised = DeltaTable(tmp_path), time.monotonic(), []

            def run(command: Any = command, table: Any = table, raised: list[BaseException] = raised) -> None:
                try:
                    command(table)
                except BaseException as caught:
                    raised.append(caught)

            thread = threading.Thread(target=run)
            thread.start()
            time.sleep(job.random.uniform(0, durations.get(kind, 0.05)))
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(thread.ident or 0), ctypes.py_object(error)
            )
            thread.join()
            if not raised:
                durations[kind] = 1.1 * (time.monotonic() - started)
            reached += any(error in chain(each) for each in raised)
            job.check(after, (moment, kind, raised))
    assert reached > MOMENTS // 24


# --- at known moments


class SignallingStore(FaultStore):
    """Sends SIGALRM to the main thread in the middle of a call on a path with this ending, and goes on
    when it has been handled."""

    ending = ""
    after = True
    alarm: Alarm | None = None

    def _meet(self, path: str, after: bool) -> None:
        if self.ending and path.endswith(self.ending) and after == self.after:
            self.ending = ""
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGALRM)
            until = time.monotonic() + 20
            while self.alarm is not None and self.alarm.error is not None and time.monotonic() < until:
                time.sleep(0.01)
            time.sleep(0.2)  # for whoever catches it

    def write_if_absent(self, path: str, data: bytes) -> bool | None:
        self._meet(path, False)
        answer = super().write_if_absent(path, data)
        self._meet(path, True)
        return answer

    def write(self, path: str, data: bytes) -> None:
        self._meet(path, False)
        super().write(path, data)
        self._meet(path, True)


@pytest.fixture
def place(alarm: Alarm) -> Iterator[SignallingStore]:
    store = SignallingStore()
    store.alarm = alarm
    with deltaic.configure(log_stores={"signals": lambda location, options: store}):
        deltaic.write("signals://t", rows(1), properties={"delta.checkpointInterval": "3"})
        yield store


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def ids() -> list[int]:
    return sorted(DeltaTable("signals://t").scan().to_arrow()["id"].to_pylist())


def data_files(store: FaultStore) -> int:
    return sum(path.endswith(".parquet") and not path.startswith("_delta_log/") for path in store.objects)


@pytest.mark.parametrize("after", [True, False])
@pytest.mark.parametrize("error", ERRORS)
def test_an_exception_while_a_commit_is_put(
    place: SignallingStore, alarm: Alarm, error: type[BaseException], after: bool
) -> None:
    table = DeltaTable("signals://t")
    place.ending, place.after = "1.json", after
    alarm.set(error("time is up"))
    with pytest.raises(error, match="time is up") as raised:
        deltaic.write(table, rows(2), mode="append")
    # A put that has begun is not undone: the error has a note that it was committed.
    assert ids() == [1, 2]
    assert raised.value.__notes__ == ["signals://t: WRITE is committed as version 1; do not do it again"]


@pytest.mark.parametrize("ending", [".crc", ".checkpoint.parquet", "_last_checkpoint"])
@pytest.mark.parametrize("error", [RuntimeError, TimeoutError, Stop])
def test_an_exception_after_the_commit_reaches_the_user(
    place: SignallingStore, alarm: Alarm, error: type[BaseException], ending: str
) -> None:
    table = DeltaTable("signals://t")
    deltaic.write(table, rows(2), mode="append")
    deltaic.write(table, rows(3), mode="append")
    place.ending = ending
    alarm.set(error("time is up"))
    with pytest.raises(error, match="time is up"):
        deltaic.write(table, rows(4), mode="append")
    assert ids() == [1, 2, 3, 4]


def test_an_exception_while_files_are_compacted_reaches_the_user(
    place: SignallingStore, alarm: Alarm
) -> None:
    table = DeltaTable("signals://t")
    table.alter.set_properties({"delta.autoOptimize.autoCompact": "true"})
    for number in range(2, 51):
        place.ending = "51.json" if number == 50 else ""
        alarm.set(TimeoutError("time is up"))
        if number < 50:
            deltaic.write(table, rows(number), mode="append")
    with pytest.raises(TimeoutError, match="time is up"):
        deltaic.write(table, rows(50), mode="append")
    assert (ids(), DeltaTable("signals://t").version) == (list(range(1, 51)), 51)
    assert data_files(place) == 51


def test_two_exceptions_in_a_row_keep_the_files(place: SignallingStore, alarm: Alarm) -> None:
    """The second one comes while the caller waits for the work that the first one stopped."""

    class Stubborn(Alarm):
        def __call__(self, number: int, frame: object) -> None:
            if self.error is not None:
                error, self.error = (
                    self.error,
                    KeyboardInterrupt("again") if isinstance(self.error, RuntimeError) else None,
                )
                signal.setitimer(signal.ITIMER_REAL, 0.05 if self.error is not None else 0)
                raise error

    stubborn = Stubborn()
    before = signal.signal(signal.SIGALRM, stubborn)
    try:
        place.ending, place.alarm = "1.json", None
        stubborn.set(RuntimeError("first"))
        with pytest.raises(KeyboardInterrupt, match="again"):
            deltaic.write("signals://t", rows(2), mode="append")
    finally:
        signal.signal(signal.SIGALRM, before)
    time.sleep(0.5)  # the put ends by itself
    assert ids() == [1, 2]
    assert data_files(place) == 2


@pytest.mark.parametrize("fault", ["before", "after"])
@pytest.mark.parametrize("error", [RuntimeError, MemoryError, Stop, PermissionError])
def test_whatever_a_store_raises_the_log_is_asked(error: type[BaseException], fault: Fault) -> None:
    """A store that breaks its promise: it raises after it has written."""
    origin = NumberedStore()
    stores = {"faults://origin": origin}
    with deltaic.configure(log_stores={"faults": lambda location, options: stores[location]}):
        deltaic.write("faults://origin", rows(1))
        before = dict(origin.objects)
        table = DeltaTable("faults://origin")
        origin.reset()
        deltaic.write(table, rows(2), mode="append")
        assert len(origin.calls) > 4
        for number, call in enumerate(origin.calls, start=1):
            store = stores["faults://one"] = NumberedStore(before)
            table, raised = DeltaTable("faults://one"), None
            store.reset(number, fault)
            store.error = error
            try:
                deltaic.write(table, rows(2), mode="append")
            except BaseException as caught:
                raised = caught
            store.reset()
            assert raised is None or isinstance(raised, (error, deltaic.errors.CommitError)), call
            there = "_delta_log/00000000000000000001.json" in store.objects
            found = sorted(DeltaTable("faults://one").scan().to_arrow()["id"].to_pylist())
            assert found == ([1, 2] if there else [1]), (call, raised)
            assert there or raised is not None, call
            if not there and fault == "before":
                assert set(store.objects) == set(before), (call, raised)


# --- stopping on purpose, from another thread


def endless(folder: Path) -> deltaic.Rows:
    """Returns a query over a table that runs practically without end."""
    table = deltaic.write(folder, pa.table({"k": range(200_000)}))
    return deltaic.sql(
        "select count(*) as n from t a join t b on a.k % 10 = b.k % 10 and a.k + b.k < 0", tables={"t": table}
    )


@pytest.mark.parametrize("name", ["to_arrow", "count", "to_pylist", "to_reader"])
@pytest.mark.parametrize("on_main", [True, False])
def test_a_query_is_cancelled_from_another_thread(tmp_path: Path, name: str, on_main: bool) -> None:
    rows = endless(tmp_path)
    found: list[BaseException] = []

    def run() -> None:
        try:
            answer = getattr(rows, name)()
            if name == "to_reader":
                answer.read_all()
        except BaseException as error:
            found.append(error)

    def stop() -> None:
        while not found:
            time.sleep(0.2)
            rows.cancel()

    threads = [threading.Thread(target=stop), *([] if on_main else [threading.Thread(target=run)])]
    for thread in threads:
        thread.start()
    if on_main:
        run()
    for thread in threads:
        thread.join()
    assert [type(error) for error in found] == [deltaic.errors.CancelledError]


def test_a_reader_is_cancelled_between_its_batches_and_the_rows_can_be_asked_again(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path, rows(*range(300_000)))
    for asked in (table.scan(), table.scan(where="id % 2 = 0 or cast(id as string) like '%1'")):
        total = asked.count()
        asked.cancel()  # nothing runs
        reader, again = asked.to_reader(), table.scan().to_reader()
        reader.read_next_batch()
        asked.cancel()
        with pytest.raises(deltaic.errors.CancelledError, match="the query was cancelled"):
            reader.read_all()
        assert again.read_all().num_rows == 300_000
        assert asked.to_arrow().num_rows == total


def test_an_exception_set_for_a_thread_ends_its_query_and_its_command(tmp_path: Path) -> None:
    """What libraries that limit time do: the thread waits in compiled code."""
    query = endless(tmp_path / "t")

    def batches() -> Iterator[pa.RecordBatch]:
        while True:
            time.sleep(0.01)
            yield pa.record_batch({"id": [1]})

    commands: list[Callable[[], object]] = [query.to_arrow, lambda: deltaic.write(tmp_path / "w", batches())]
    for command in commands:
        found: list[BaseException] = []

        def run(command: Callable[[], object] = command, found: list[BaseException] = found) -> None:
            try:
                command()
            except BaseException as caught:
                found.append(caught)

        thread = threading.Thread(target=run)
        thread.start()
        time.sleep(0.5)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(
            ctypes.c_ulong(thread.ident or 0), ctypes.py_object(TimeoutError)
        )
        thread.join(20)
        assert [type(error) for error in found] == [TimeoutError]
    assert not list((tmp_path / "w").rglob("*.parquet"))
    assert not DeltaTable.exists(tmp_path / "w")


MANY = """
    import random, signal, sys
    import pyarrow as pa
    import deltaic

    class Stopped(Exception):
        pass

    ready = False

    def stop(number, frame):
        global ready
        if ready:
            ready = False
            raise Stopped

    def came_from_it(error):
        # What other libraries call an error of their own: a tokenizer one of the text, Python one of a
        # module's import.
        return error is not None and (
            isinstance(error, Stopped) or came_from_it(error.__cause__ or error.__context__)
        )

    signal.signal(signal.SIGALRM, stop)
    table = deltaic.DeltaTable(sys.argv[1])
    chance, met = random.Random(7), 0
    commands = [
        lambda: table.scan(where="id % 3 = 0 and text like '%7'").to_arrow(),
        lambda: deltaic.sql(
            "select count(*), max(a.text) from t a join t b on a.id = b.id", tables={"t": table}
        ).to_arrow(),
        lambda: sum(batch.num_rows for batch in table.scan().to_reader()),
        lambda: list(table.scan(["id"]).to_reader()),
    ]
    for command in commands:
        command()
    while met < int(sys.argv[2]):
        signal.setitimer(signal.ITIMER_REAL, chance.uniform(0.0001, 0.01))
        try:
            ready = True
            chance.choice(commands)()
            ready = False
        except Stopped:
            met += 1
        except Exception as error:
            if not came_from_it(error):
                raise
            met += 1
    print("stopped", met)
"""


def test_one_process_outlives_many_interruptions(tmp_path: Path) -> None:
    ids = range(5_000)
    data = pa.table({"id": pa.array(ids, pa.int64()), "text": [f"row {number}" for number in ids]})
    deltaic.write(tmp_path, data, target_file_size=10_000)
    command = [sys.executable, "-c", textwrap.dedent(MANY), str(tmp_path), str(max(300, MOMENTS))]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert finished.stdout.startswith("stopped"), finished.stderr[-2000:]


FREED = """
    import gc, os, sys
    import pyarrow as pa
    import deltaic
    from deltaic import _core

    table = deltaic.DeltaTable(sys.argv[1])
    snapshot = table._snapshot
    adds = snapshot.files().adds
    os.remove(os.path.join(sys.argv[1], adds["path"][0].as_py()))
    for number in range(20):
        reader = pa.RecordBatchReader.from_stream(
            _core.read(snapshot.store, snapshot.table_schema, adds, ["id"])
        )
        try:
            reader.read_all()
        except pa.ArrowInvalid:
            pass
        circle = [reader]
        circle.append(circle)
        del reader, circle
        gc.set_threshold(1)
        snapshot.store.entries("_delta_log")  # makes tuples, and so calls the collector
        gc.set_threshold(700)
    print("alive")
"""


def test_an_error_kept_by_a_stream_may_be_freed_anywhere(tmp_path: Path) -> None:
    """pyarrow frees a stream without the interpreter's lock, which PyO3 does not see below a call into the
    core."""
    deltaic.write(tmp_path, rows(*range(10)))
    command = [sys.executable, "-c", textwrap.dedent(FREED), str(tmp_path)]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert finished.stdout == "alive\n", finished.stderr[-2000:]
