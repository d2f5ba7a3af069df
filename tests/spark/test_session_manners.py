"""`deltaic.spark.disable` restores the session, and Spark's web interface shows the jobs of a command."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltaic
import deltaic.spark
from deltaic.engine.spark import engine as engines
from deltaic.engine.spark.settings import LAST_COMMIT
from deltaic.errors import InvalidTypeError
from deltaic.spark import patches
from deltaic.spark.sessions import PUSHDOWN
from deltaic.spark.tables import DeltaTable
from spark_session import other_session

FUNCTIONS = ("range_partition_id", "z85_encode")


@pytest.fixture
def session(spark: Any) -> Iterator[Any]:
    """A session whose application has no enabled one but those that the test enables; the others are enabled
    again afterwards."""
    others = {
        each: vars(each)[engines.SETTING]
        for each in engines._enabled
        if vars(each).get(engines.SETTING, "off") != "off"
    }
    for each in others:
        deltaic.spark.disable(each)
    patches.restore()  # sessions that are gone may have been enabled
    own = other_session(spark)
    yield own
    deltaic.spark.disable(own)
    for each, native in others.items():
        deltaic.spark.enable(each, native=native)


@pytest.fixture
def path(tmp_path: Path) -> str:
    deltaic.write(tmp_path / "t", pa.table({"id": range(4)}))
    return str(tmp_path / "t")


def classes(session: Any) -> list[type]:
    frame = session.range(1)
    streams = sys.modules[type(session.readStream).__module__]
    kinds = [
        type(each)
        for each in (session, frame, frame.write, session.read, session.catalog, session.readStream)
    ]
    return [*kinds, streams.DataStreamWriter]


def attributes(session: Any) -> dict[tuple[str, str], Any]:
    """Returns the attributes of a session's classes, without marks of deltaic: on Spark Connect the class
    represents the application."""
    found = {(kind.__name__, name): value for kind in classes(session) for name, value in vars(kind).items()}
    return {key: value for key, value in found.items() if not key[1].startswith("_deltaic")}


def test_disable_undoes_all_that_enable_did(session: Any, path: str) -> None:
    before, settings = attributes(session), dict(session.conf.getAll)
    own = {name for name in ("sql", "table") if name in vars(session)}
    deltaic.spark.enable(session)
    changed = {name for name, value in attributes(session).items() if value is not before.get(name)}
    assert {
        ("SparkSession", "sql"),
        ("DataFrameReader", "load"),
        ("DataFrame", "write"),
        ("DataStreamWriter", "start"),
    } <= changed
    assert session.sql(f"SELECT count(*) AS n FROM delta.`{path}`").first().n == 4
    assert all(session.catalog.functionExists(name) for name in FUNCTIONS)
    frame = session.read.format("delta").load(path)

    deltaic.spark.disable(session)
    after = attributes(session)
    assert {name for name, value in after.items() if value is not before.get(name)} == set()
    assert before.keys() == after.keys()
    assert dict(session.conf.getAll) == settings
    assert {name for name in ("sql", "table") if name in vars(session)} == own
    assert not any(session.catalog.functionExists(name) for name in FUNCTIONS)
    with pytest.raises(Exception, match=r"DELETE|delta"):
        session.sql(f"DELETE FROM delta.`{path}` WHERE id = 1").collect()
    assert frame.count() == 4
    assert deltaic.spark.read(session, path).count() == 4
    DeltaTable.forPath(session, path).delete("id = 1")
    assert deltaic.DeltaTable(path).scan().to_arrow().num_rows == 3


def test_the_last_commit_before_comes_back(session: Any, path: str) -> None:
    """A write of a session that is not enabled sets it, too."""
    DeltaTable.forPath(session, path).delete("id = 0")
    before = session.conf.get(LAST_COMMIT)
    deltaic.spark.enable(session)
    session.sql(f"DELETE FROM delta.`{path}` WHERE id = 1")
    assert (before, session.conf.get(LAST_COMMIT)) == ("1", "2")
    deltaic.spark.disable(session)
    assert session.conf.get(LAST_COMMIT) == before


def test_the_setting_that_was_there_comes_back(session: Any) -> None:
    for text in ("false", "true"):
        session.conf.set(PUSHDOWN, text)
        deltaic.spark.enable(session)
        deltaic.spark.enable(session, sql=False)
        assert session.conf.get(PUSHDOWN) == "true"
        deltaic.spark.disable(session)
        assert session.conf.get(PUSHDOWN) == text
    deltaic.spark.enable(session)
    session.conf.set(PUSHDOWN, "false")  # the user has changed it since
    deltaic.spark.disable(session)
    assert session.conf.get(PUSHDOWN) == "false"


def test_other_sessions_stay_enabled(session: Any, path: str) -> None:
    other = other_session(session)
    for each in (session, other):
        deltaic.spark.enable(each)
    deltaic.spark.disable(other)
    deltaic.spark.disable(other)
    assert session.sql(f"SELECT * FROM delta.`{path}`").count() == 4
    assert other_session(session).read.format("delta").load(path).count() == 4
    with pytest.raises(Exception, match=r"DELETE|delta"):
        other.sql(f"DELETE FROM delta.`{path}` WHERE id = 1").collect()
    deltaic.spark.enable(other)
    assert other.sql(f"SELECT * FROM delta.`{path}`").count() == 4
    deltaic.spark.disable(other)


def test_only_a_session_can_be_disabled() -> None:
    with pytest.raises(InvalidTypeError):
        deltaic.spark.disable("session")


def descriptions(session: Any, path: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Returns the descriptions of the jobs of a DELETE by SQL, in the order in which they were set."""
    context, noted = session.sparkContext, []
    own = type(context).setLocalProperty

    def noting(self: Any, name: str, value: Any) -> None:
        if name == "spark.job.description":
            noted.append(value)
        own(self, name, value)

    monkeypatch.setattr(type(context), "setLocalProperty", noting)
    session.sql(f"DELETE FROM delta.`{path}` WHERE id = 1")
    return noted


def test_jobs_say_the_command_and_the_table(session: Any, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if not hasattr(session, "_jsparkSession"):
        # Connect has no descriptions.
        assert deltaic.DeltaTable(path, spark=session).delete("id = 1")["num_deleted_rows"] == 1
        return
    deltaic.spark.enable(session)
    context = session.sparkContext
    assert context.getLocalProperty("spark.job.description") is None
    assert descriptions(session, path, monkeypatch) == [f"Delta: DELETE on {path}", None]
    assert context.getLocalProperty("spark.job.description") is None
    monkeypatch.undo()
    context.setJobDescription("nightly")
    try:
        assert descriptions(session, path, monkeypatch) == [f"Delta: nightly: DELETE on {path}", "nightly"]
    finally:
        monkeypatch.undo()
        context.setJobDescription(None)


def test_a_job_has_the_description_while_it_runs(session: Any, path: str) -> None:
    if not hasattr(session, "_jsparkSession"):
        return
    deltaic.spark.enable(session)
    seen = []

    def read(batches: Any) -> Any:
        yield from batches

    frame = session.range(3).mapInArrow(read, "id long")
    context = session.sparkContext
    before = {job.jobId() for job in jobs(context)}
    frame.write.format("delta").mode("append").save(path)
    seen = [
        job.description().get()
        for job in jobs(context)
        if job.jobId() not in before and job.description().isDefined()
    ]
    assert seen
    assert set(seen) == {f"Delta: WRITE on {path}"}


def jobs(context: Any) -> list[Any]:
    """Returns the jobs in Spark's own store of its web interface."""
    context._jsc.sc().listenerBus().waitUntilEmpty()
    found = context._jsc.sc().statusStore().jobsList(None)
    return [found.apply(number) for number in range(found.size())]


def test_session_takes_the_running_one(session: Any) -> None:
    """No setting of a new session is set in it."""
    before = session.conf.getAll
    own = deltaic.spark.session(spark_sql_shuffle_partitions=session.conf.get("spark.sql.shuffle.partitions"))
    try:
        assert own.conf.get("spark.master", None) == session.conf.get("spark.master", None)
        assert session.conf.getAll == before
    finally:
        deltaic.spark.disable(own)


def test_a_second_enable_registers_no_function_again(session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark warns of each function that is registered again."""
    registered: list[Any] = []
    monkeypatch.setattr("deltaic.spark.functions.register", registered.append)
    deltaic.spark.enable(session)
    deltaic.spark.enable(session, native="never")
    assert registered == [session]
