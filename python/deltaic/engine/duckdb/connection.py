"""Opens DuckDB connections, one for each process and configuration, and runs queries on them so that Ctrl-C
and `Rows.cancel` stop them.

DuckDB's settings hold for a whole database, so a configuration that differs gets a database of its own. After
a fork the child never touches what its parent made: threads do not survive a fork, and closing such a
database would wait for them for ever.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from deltaic import cancellation, configuration
from deltaic.deferred import load
from deltaic.engine.duckdb.small_tables import SmallTables
from deltaic.errors import CancelledError
from deltaic.memory import Budget
from deltaic.process_state import call_after_fork
from deltaic.worker import Worker

if TYPE_CHECKING:
    import pyarrow as pa

    from deltaic.engine.duckdb.plain_files import PlainTable


load("duckdb")
import duckdb  # noqa: E402

T = TypeVar("T")

# Minimum bytes of memory of a database, however many databases share the limit.
_SMALLEST_SHARE = 32 << 20
# If the engine has fewer bytes than this, DuckDB collects one row group instead of five before it may spill a
# table that is being filled.
_SMALL_ENGINE = 1 << 30
# Reentrant: the garbage collector may close an abandoned reader's work while a database is being opened.
_lock = threading.RLock()


@dataclass(eq=False)
class _Database:
    """One DuckDB database of this process. `limit`: bytes of memory that the configuration allows.
    `applied`: bytes that DuckDB's setting allows now. `users`: number of running `Work`s and held tables.
    `has_functions`: whether the functions of translated SQL are installed, so that DuckDB is not asked to
    list its functions, which takes longer than a small query. `small_tables`: copies of the rows of small
    tables."""

    connection: duckdb.DuckDBPyConnection
    limit: int
    applied: int
    users: int = 0
    has_functions: bool = False
    small_tables: SmallTables = field(default_factory=SmallTables)


_databases: dict[tuple[Any, ...], _Database] = {}


def database(*, planned: bool) -> AbstractContextManager[duckdb.DuckDBPyConnection]:
    """The database of this process for the current configuration, for as long as it is used; take a cursor of
    it for each result.

    `planned`: joins are run in the order in which they are written, right side built. DuckDB guesses one
    row for any Arrow source, so its own choice is to build its hash table from the big side.
    """
    return _use(_enter(planned))


@contextmanager
def _use(used: _Database) -> Iterator[duckdb.DuckDBPyConnection]:
    try:
        yield used.connection
    finally:
        _leave(used)


def _enter(planned: bool) -> _Database:
    current, budget = configuration.current(), configuration.budget()
    key = (
        os.getpid(),
        planned,
        current.memory_limit,
        current.temp_directory,
        current.temp_limit,
        current.threads,
    )
    with _lock:
        if key not in _databases:
            _databases[key] = _Database(_open(current, budget, planned), budget.engine, budget.engine)
        used = _databases[key]
        used.users += 1
        _divide()
    return used


def _leave(used: _Database) -> None:
    """Ends one use of a database. Its memory goes to the other databases when one of them is entered next,
    not now: the caller may be the main thread, where DuckDB must never run."""
    with _lock:
        used.users -= 1


def _divide() -> None:
    """Gives each database in use an equal share of its limit. A MERGE whose source is a query uses two."""
    busy = [database for database in _databases.values() if database.users]
    # Databases whose share shrinks come first, so that together they never exceed one limit.
    for database in sorted(busy, key=lambda database: database.limit // len(busy) - database.applied):
        if (share := max(database.limit // len(busy), _SMALLEST_SHARE)) != database.applied:
            # A database that holds more than its new share keeps the old one.
            with suppress(duckdb.Error), database.connection.cursor() as cursor:
                cursor.execute(f"SET GLOBAL memory_limit = '{share}B'")
                database.applied = share


def _open(current: configuration.Configuration, budget: Budget, planned: bool) -> duckdb.DuckDBPyConnection:
    settings: dict[str, Any] = {"memory_limit": f"{budget.engine}B", "threads": budget.engine_threads}
    if current.temp_limit is not None:
        settings["max_temp_directory_size"] = f"{current.temp_limit}B"
    if current.temp_directory is not None:
        settings["temp_directory"] = current.temp_directory
    else:
        settings["temp_directory"] = os.path.join(
            tempfile.gettempdir(), f"deltaic-{os.getpid()}-{len(_databases)}"
        )
    if budget.engine < _SMALL_ENGINE:
        settings["write_buffer_row_group_count"] = 1
    connection = duckdb.connect(":memory:", config=settings)
    # DuckDB's own zone is always UTC: translated SQL contains the conversion to the time zone of the user.
    connection.execute("SET GLOBAL TimeZone = 'UTC'")
    # A query may not read Python variables by their names, and DuckDB may not download extensions.
    connection.execute("SET GLOBAL python_enable_replacements = false")
    connection.execute("SET GLOBAL autoinstall_known_extensions = false")
    if planned:
        connection.execute("SET GLOBAL disabled_optimizers = 'join_order,build_side_probe_side'")
    return connection


def _close_all() -> None:
    for key in [key for key in _databases if key[0] == os.getpid()]:
        _databases.pop(key).connection.close()


def _after_fork() -> None:
    """Keeps the parent's databases from ever being closed in the child."""
    global _lock
    _lock = threading.RLock()
    for database in _databases.values():
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(database.connection))
    _databases.clear()


atexit.register(_close_all)
call_after_fork(_after_fork)


@dataclass(eq=False)
class Work:
    """One piece of running work: what to stop when the user interrupts it, and the first error of a source.
    That error is in the source's stream, or in `failure` for rows that Python reads, as Arrow's C stream
    keeps only an error's text."""

    streams: list[Any] = field(default_factory=list)
    plain_tables: list[PlainTable] = field(default_factory=list)
    """Tables whose files DuckDB reads without a stream of `_core`."""
    failure: Exception | None = None
    stopped: bool = False
    context: Context = field(default_factory=copy_context)
    """Context of the thread that started the work, with the settings of `with deltaic.configure(...)`, which
    threads of DuckDB and `_core` do not see."""
    _cursors: list[duckdb.DuckDBPyConnection] = field(default_factory=list)
    _databases: ExitStack = field(default_factory=ExitStack)
    _database: _Database | None = None
    """The database of the last cursor."""

    def __post_init__(self) -> None:
        cancellation.register(self)

    def cursor(self, *, planned: bool = True, functions: bool = False) -> duckdb.DuckDBPyConnection:
        """A cursor for one query, closed with the work. `functions`: the query uses those of
        `spark_sql.duckdb.prepare`."""
        used = self.run(lambda: _enter(planned))
        self._databases.callback(_leave, used)
        self._database = used
        cursor = used.connection.cursor()
        self._cursors.append(cursor)
        if functions and not used.has_functions:
            from deltaic.spark_sql.duckdb import prepare

            prepare(cursor)
            used.has_functions = True
        return cursor

    def small_table(self, cursor: duckdb.DuckDBPyConnection, rows: pa.Table) -> str:
        """Returns the name of a table with these rows in the cursor's database, for as long as the work
        lasts."""
        assert self._database is not None
        copy = self._database.small_tables.copy(cursor, rows)
        self._databases.callback(copy.release)
        return copy.name

    def run(self, function: Callable[[], T]) -> T:
        """Calls `function` with the context variables of the thread that started the work, in whatever thread
        this is."""
        return self.context.copy().run(function)

    def cancel(self) -> None:
        for stream in list(self.streams):
            stream.cancel()
        for cursor in list(self._cursors):
            cursor.interrupt()

    def close(self) -> None:
        while self._cursors:
            # An interrupted cursor refuses queries until its next check; it ends with the thread that uses
            # it.
            with suppress(duckdb.Error):
                self._cursors.pop().close()
        self.streams.clear()
        self._databases.close()

    def call(self, function: Callable[[], T], undo: Callable[[T], object] | None = None) -> T:
        """Runs `function` on a worker thread, so that Ctrl-C, an exception set for this thread and `stop`
        cancel the work promptly. `undo` reverts the work if it was completed although it was cancelled, since
        its caller never gets the result."""

        def run(worker: Worker[T]) -> T:
            worker.watch()
            return self.run(function)

        return Worker(run, cancel=self.cancel, undo=undo, check=self.check).result()

    def stop(self) -> None:
        """Cancels the work from another thread; the thread that waits for the work gets a CancelledError."""
        self.stopped = True
        self.cancel()

    def check(self) -> None:
        """Raises CancelledError after `stop`."""
        if self.stopped:
            raise CancelledError("the query was cancelled")
