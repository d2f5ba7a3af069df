"""DuckDB connections: one for each process and configuration, a cursor for each result, interruptible work.

DuckDB's settings hold for a whole database, so a configuration that differs gets a database of its own. After a fork the child never
touches what its parent made: threads do not survive a fork, and closing such a database would wait for them for ever.
"""

from __future__ import annotations

import atexit
import ctypes
import importlib
import os
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from deltaic import _core, configuration


def _load(module: str) -> None:
    """Imports it on a thread, which no signal meets: a Ctrl-C during the start of DuckDB's compiled part is lost or ends the process."""
    done = threading.Event()

    def load() -> None:
        with suppress(Exception):  # said by the import statement that follows
            importlib.import_module(module)
        done.set()

    threading.Thread(target=load, name="deltaic-import", daemon=True).start()
    done.wait()


_load("duckdb")
import duckdb  # noqa: E402

T = TypeVar("T")

# How long an interrupted caller waits for its work to end (seconds); a source of rows that never answers must not hold it for ever.
_PATIENCE = 5.0
_lock = threading.Lock()
_databases: dict[tuple[Any, ...], duckdb.DuckDBPyConnection] = {}


def database(*, planned: bool) -> duckdb.DuckDBPyConnection:
    """The database of this process for the current configuration; take a cursor of it for each result.

    `planned`: joins are run in the order in which they are written, right side built. DuckDB guesses one row for any Arrow source, so its
    own choice is to build its hash table from the big side.
    """
    current = configuration.current()
    key = (os.getpid(), planned, current.memory_limit, current.temp_directory, current.temp_limit, current.threads)
    with _lock:
        if key not in _databases:
            _databases[key] = _open(current, planned)
        return _databases[key]


def _open(current: Any, planned: bool) -> duckdb.DuckDBPyConnection:
    settings: dict[str, Any] = {}
    if current.memory_limit is not None:
        settings["memory_limit"] = f"{current.memory_limit}B"
    if current.temp_limit is not None:
        settings["max_temp_directory_size"] = f"{current.temp_limit}B"
    if current.threads is not None:
        settings["threads"] = current.threads
    if current.temp_directory is not None:
        settings["temp_directory"] = current.temp_directory
    else:
        settings["temp_directory"] = os.path.join(tempfile.gettempdir(), f"deltaic-{os.getpid()}-{len(_databases)}")
    connection = duckdb.connect(":memory:", config=settings)
    # Instants are instants: what a clock in another zone shows is part of the translated SQL.
    connection.execute("SET GLOBAL TimeZone = 'UTC'")
    # Nothing is looked up in Python's variables or fetched from the network behind the caller's back.
    connection.execute("SET GLOBAL python_enable_replacements = false")
    connection.execute("SET GLOBAL autoinstall_known_extensions = false")
    if planned:
        connection.execute("SET GLOBAL disabled_optimizers = 'join_order,build_side_probe_side'")
    return connection


def _close_all() -> None:
    for key in [key for key in _databases if key[0] == os.getpid()]:
        _databases.pop(key).close()


def _after_fork() -> None:
    """Keeps the parent's databases from ever being closed in the child."""
    global _lock
    _lock = threading.Lock()
    for connection in _databases.values():
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))
    _databases.clear()


atexit.register(_close_all)
os.register_at_fork(after_in_child=_after_fork)


@dataclass(eq=False)
class Work:
    """One piece of running work: what to stop when the user interrupts, and where the first error of a source is kept: in its stream, or
    in `failure` for what Python reads, as an error that passes through Arrow's C stream is left as text."""

    streams: list[Any] = field(default_factory=list)
    failure: Exception | None = None
    _cursors: list[duckdb.DuckDBPyConnection] = field(default_factory=list)

    def cursor(self, *, planned: bool = True) -> duckdb.DuckDBPyConnection:
        """A cursor of its own for one query, closed with the work."""
        cursor = database(planned=planned).cursor()
        self._cursors.append(cursor)
        return cursor

    def cancel(self) -> None:
        for stream in self.streams:
            stream.cancel()
        for cursor in self._cursors:
            cursor.interrupt()

    def close(self) -> None:
        while self._cursors:
            # A cursor that was interrupted and has not come to its next check yet refuses; it goes with the thread that uses it.
            with suppress(duckdb.Error):
                self._cursors.pop().close()
        self.streams.clear()

    def call(self, function: Callable[[], T], undo: Callable[[T], object] | None = None) -> T:
        """Runs `function` so that Ctrl-C in the main thread cancels the work within moments; `undo` takes back what it did when it
        ended well all the same, as nobody learns of its answer any more."""
        if threading.current_thread() is not threading.main_thread():
            return function()
        outcome: list[T] = []
        failure: list[BaseException] = []
        interrupt = _core.Interrupt()
        # Not `join`: a thread whose join was interrupted counts as ended in Python 3.11, though it runs on.
        finished = threading.Event()

        def run() -> None:
            interrupt.watch()
            try:
                outcome.append(function())
            except BaseException as error:
                failure.append(error)
            finally:
                finished.set()

        worker = threading.Thread(target=run, name="deltaic-engine", daemon=True)
        try:
            worker.start()
            finished.wait()
        except BaseException:
            interrupt.stop()
            self._await_end(worker, finished)
            if outcome and undo is not None:
                undo(outcome[0])
            raise
        if failure:
            raise failure[0]
        return outcome[0]

    def _await_end(self, worker: threading.Thread, finished: threading.Event) -> None:
        """Gives cancelled work the time to take its files away: a query or stream that begins meanwhile is cancelled too."""
        if worker.ident is None:
            return
        until = time.monotonic() + _PATIENCE
        self.cancel()
        while not finished.wait(0.05) and time.monotonic() < until:
            self.cancel()
