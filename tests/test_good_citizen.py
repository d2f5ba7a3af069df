"""deltaic in the process of another program: threads, fork, the interpreter lock, Ctrl-C, logging."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

import deltaic
from deltaic.errors import InvalidArgumentError


@pytest.fixture
def table(tmp_path: Path) -> deltaic.DeltaTable:
    data = pa.table(
        {
            "id": pa.array(range(100_000), pa.int64()),
            "text": pa.array([f"row {number}" for number in range(100_000)]),
        }
    )
    return deltaic.write(
        tmp_path / "t", data, target_file_size=100_000, properties={"delta.enableDeletionVectors": True}
    )


def test_threads_share_a_table(table: deltaic.DeltaTable) -> None:
    def look(number: int) -> tuple[int, int]:
        return table.scan(["id"], f"id % 7 = {number % 7}").count(), len(table.files().to_arrow())

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(look, range(28)))
    assert sum(count for count, _ in answers) == 4 * 100_000
    assert len({files for _, files in answers}) == 1


def test_threads_append_to_one_table(table: deltaic.DeltaTable) -> None:
    def append(number: int) -> None:
        deltaic.write(table.location, pa.table({"id": [number], "text": ["new"]}), mode="append")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(append, range(24)))
    table.refresh()
    assert table.version == 24
    assert sorted(table.scan(["id"], "text = 'new'").to_arrow()["id"].to_pylist()) == list(range(24))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_after_fork(table: deltaic.DeltaTable) -> None:
    # A process of its own: pytest's has threads, of which Python warns at a fork.
    script = f"""
        import os, sys, warnings
        warnings.simplefilter("ignore", DeprecationWarning)
        import pyarrow as pa, deltaic
        table = deltaic.DeltaTable({table.location!r})
        query = "SELECT count(*) AS n FROM t WHERE text LIKE '%9'"
        found = deltaic.sql(query, tables={{"t": table}}).to_arrow()
        assert found["n"].to_pylist() == [10_000]
        children = []
        for number in range(3):
            child = os.fork()
            if child == 0:
                try:
                    assert table.scan(where="id % 2 = 0").count() == 50_000
                    new = pa.table({{"id": [-number], "text": ["child"]}})
                    deltaic.write({table.location!r}, new, mode="append")
                    found = deltaic.sql("SELECT max(id) AS n FROM t", tables={{"t": table}}).to_arrow()
                    assert found["n"].to_pylist() == [99_999]
                    os._exit(0)
                except BaseException:
                    import traceback
                    traceback.print_exc()
                    os._exit(1)
            children.append(child)
        assert [os.waitpid(child, 0)[1] for child in children] == [0, 0, 0]
        table.refresh()
        assert table.scan(where="text = 'child'").count() == 3
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=True, timeout=120)


def _ticks_during(work: object) -> tuple[int, float]:
    """Returns how often another thread ran while `work` ran, and the seconds of `work`."""
    count, stop = 0, threading.Event()

    def tick() -> None:
        nonlocal count
        while not stop.wait(0.005):
            count += 1

    ticker = threading.Thread(target=tick)
    ticker.start()
    began = time.perf_counter()
    try:
        work()  # type: ignore[operator]
    finally:
        seconds = time.perf_counter() - began
        stop.set()
        ticker.join()
    return count, seconds


def test_long_calls_release_the_interpreter_lock(tmp_path: Path) -> None:
    numbers = pa.array(range(3_000_000), pa.int64())
    data = pa.table(dict.fromkeys("abc", numbers))

    def work() -> None:
        table = deltaic.write(tmp_path / "big", data)
        table.scan().to_arrow()
        table.delete("a % 100 = 3")

    ticks, seconds = _ticks_during(work)
    # 200 a second at best. A held lock would leave next to none; a machine that is busy leaves some.
    assert ticks >= 20 * seconds, f"{ticks} ticks in {seconds:.2f} s"


ENDLESS_WRITE = """
    import itertools, sys
    import pyarrow as pa
    import deltaic

    def batches():
        for number in itertools.count():
            if number == 3:
                print("running", flush=True)
            yield pa.record_batch({
                "id": pa.array(range(200_000), pa.int64()), "text": pa.array([str(number)] * 200_000)
            })

    deltaic.write(sys.argv[1], batches(), mode="append")
"""

LONG_SCAN = """
    import sys
    import deltaic
    table = deltaic.DeltaTable(sys.argv[1])
    print("running", flush=True)
    while True:
        for _ in range(1000):
            table.scan().to_arrow()
"""

LONG_QUERY = """
    import sys
    import deltaic
    table = deltaic.DeltaTable(sys.argv[1])
    print("running", flush=True)
    query = "SELECT sum(a.id * b.id % 7) AS n FROM t AS a CROSS JOIN t AS b WHERE a.id + b.id > 3"
    deltaic.sql(query, tables={"t": table}).to_arrow()
"""


@pytest.mark.skipif(os.name == "nt", reason="SIGINT of another process")
@pytest.mark.parametrize("script", [ENDLESS_WRITE, LONG_SCAN, LONG_QUERY], ids=["write", "scan", "query"])
def test_interrupt_stops_the_work_and_leaves_no_commit(table: deltaic.DeltaTable, script: str) -> None:
    folder = Path(table.location)
    before = {path.name for path in folder.rglob("*") if path.is_file()}
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script), table.location],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "running\n"
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=20)  # benches/peers/interrupt.py measures how long it takes
    finally:
        process.kill()
        process.wait()
    assert "KeyboardInterrupt" in errors
    assert {path.name for path in folder.rglob("*") if path.is_file()} == before
    table.refresh()
    assert table.version == 0


def test_modules_are_loaded_where_no_signal_arrives(table: deltaic.DeltaTable) -> None:
    # Ctrl-C in the middle of an import may be lost, or abort the process.
    script = f"""
        import sys, threading
        class Seen:
            modules, of_main = set(), set()
            def find_spec(self, name, path=None, target=None):
                if name in ("duckdb", "_duckdb", "pyarrow", "sqlglot"):
                    self.modules.add(name)
                    if threading.current_thread() is threading.main_thread():
                        self.of_main.add(name)
        sys.meta_path.insert(0, Seen())
        import deltaic
        table = deltaic.DeltaTable({table.location!r})
        rows = deltaic.sql("SELECT count(*) AS n FROM t", tables={{"t": table}})
        assert rows.to_pylist() == [{{"n": 100_000}}]
        assert Seen.modules == {{"duckdb", "_duckdb", "pyarrow", "sqlglot"}}, Seen.modules
        assert not Seen.of_main, Seen.of_main
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=True)


def test_pandas_is_not_imported_behind_the_users_back(table: deltaic.DeltaTable) -> None:
    script = f"""
        import sys, deltaic
        table = deltaic.DeltaTable({table.location!r})
        assert table.scan(["id"], "id < 5").to_arrow().num_rows == 5
        table.delete("id = 3")
        assert table.scan().count() == 99_999
        assert deltaic.sql("SELECT id + 1 AS n FROM t LIMIT 2", tables={{"t": table}}).to_arrow()["n"]
        query = "SELECT text, sum(id * 2) AS n FROM t WHERE id BETWEEN 7 AND 9 GROUP BY text ORDER BY text"
        rows = deltaic.sql(query, tables={{"t": table}}).to_arrow()
        assert rows["n"].to_pylist() == [14, 16, 18]
        assert "pandas" not in sys.modules
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=True)


def test_commits_are_logged(table: deltaic.DeltaTable, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="deltaic"):
        table.delete("id = 1")
    ours = [record for record in caplog.records if record.name.split(".")[0] == "deltaic"]
    assert any("1" in record.getMessage() for record in ours)
    assert all(record.levelno < logging.WARNING for record in ours)


def test_a_panic_that_is_caught_is_not_printed(capfd: pytest.CaptureFixture[str]) -> None:
    """arrow-rs panics on such a slice; the error has its message, and nothing is printed."""
    nested = pa.record_batch({"s": [{"a": {"b": row}} for row in range(10)]}).slice(3, 5)
    with pytest.raises(InvalidArgumentError, match="cannot be imported"):
        deltaic.DeletionVector.from_rows([1]).filter(nested)
    assert capfd.readouterr() == ("", "")


def test_nothing_is_printed(table: deltaic.DeltaTable, capfd: pytest.CaptureFixture[str]) -> None:
    table.delete("id = 1")
    table.optimize.compact()
    table.scan().count()
    assert capfd.readouterr() == ("", "")
