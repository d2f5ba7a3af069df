"""The Spark session that all tests share; tests that need it are skipped if PySpark is not installed."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from java import java_home

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "1800m",
    # Each broadcast of a join takes a page of the heap: 64 MB by default, in each of eight threads at once.
    "spark.buffer.pageSize": "4m",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
}


# The warnings are PySpark's own: pandas 3 is newer than the versions that it supports, and sockets to its
# workers close with the process.
IGNORED = (
    "ignore::FutureWarning:pyspark",
    "ignore::ResourceWarning",
    "ignore::pytest.PytestUnraisableExceptionWarning",
)


REMOTE = "DELTAIC_TEST_REMOTE"
"""Environment variable: the address of a server of Spark Connect, or `local[n]` for one that is started, on
which the tests then run."""


def with_jvm(session: Any) -> Any:
    """Returns the session, unless it is one of Spark Connect: the test is skipped then."""
    if not hasattr(session, "_jsparkSession"):
        pytest.skip("a source of Spark's own interfaces needs a JVM")
    return session


@contextmanager
def setting(session: Any, name: str, value: str) -> Iterator[None]:
    """Sets a setting of a session for the time of a `with` block."""
    before = session.conf.get(name, None)
    session.conf.set(name, value)
    try:
        yield
    finally:
        session.conf.unset(name) if before is None else session.conf.set(name, before)


def other_session(spark: Any) -> Any:
    """PySpark 4.1 has no `newSession` on Connect."""
    return spark.newSession() if hasattr(type(spark), "newSession") else spark.cloneSession()


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A local session of two threads, as a user of plain PySpark makes it: nothing of deltaic is set up in
    it."""
    sql = pytest.importorskip("pyspark.sql")
    home = java_home(tmp_path_factory.mktemp("java"))
    if home is not None:
        os.environ["JAVA_HOME"] = home
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if (remote := os.environ.get(REMOTE)) is not None:
        yield from remote_session(sql.SparkSession, remote, str(tmp_path_factory.mktemp("warehouse")))
        return
    builder = sql.SparkSession.builder.master("local[2]").appName("deltaic-tests")
    for name, value in {
        **SETTINGS,
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
    }.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    engines = session.__dict__.get("_deltaic_engines", {})
    session.stop()
    # What is to be tested through Spark's own interfaces has not been tested by the public ones unnoticed.
    assert [engine.read_path.reason for engine in engines.values() if engine.read_path.reason] == []


def remote_session(sessions: Any, address: str, warehouse: str) -> Iterator[Any]:
    """A session of Spark Connect. It is not stopped: the first stop ends a local server, and any other then
    waits for that one's answer for minutes, so whoever runs these tests ends the process without its
    clean-up."""
    builder = sessions.builder.remote(address)
    for name, value in {**SETTINGS, "spark.sql.warehouse.dir": warehouse}.items():
        if address.startswith("local") or name.startswith("spark.sql."):
            builder = builder.config(name, value)
    with warnings.catch_warnings():
        # Settings of the server that it does not change any more.
        warnings.simplefilter("ignore", UserWarning)
        session = builder.getOrCreate()
    if session.version.startswith("4.1."):
        # PySpark 4.1 closes the client of a session that the garbage collector finds. If the collector runs
        # in a thread of gRPC, the closing waits for itself, and all sessions wait with it.
        del type(session).__del__
    yield session
