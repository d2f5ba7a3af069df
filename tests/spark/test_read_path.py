"""If Spark's driver interfaces do not behave as expected, its public ones give the same rows, and one warning
is logged."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltaic
from deltaic import DeltaTable
from deltaic.engine.spark import write as writing
from deltaic.engine.spark.engine import engine_of
from deltaic.engine.spark.engine_session import ROWS_SETTING as DRIVER_ROWS
from deltaic.engine.spark.expressions import Analyser
from deltaic.engine.spark.native import deleted_rows
from deltaic.engine.spark.native import scan as scanning
from deltaic.engine.spark.native.jvm import Jvm
from deltaic.engine.spark.read_path import is_unexpected

VECTORS = {"delta.enableDeletionVectors": True}
Raise = Callable[..., Any]


@pytest.fixture
def session(spark: Any) -> Any:
    """A session of its own: the read path that it chooses ends with it."""
    return spark.newSession()


def no_class(*args: Any, **named: Any) -> Any:
    raise TypeError("'JavaPackage' object is not callable")


def no_method(self: Any, *args: Any, **named: Any) -> Any:
    """Raises the error of py4j for a missing method."""
    return self.root.java.lang.Integer.valueOf(1).atAllEvents(2)


def no_field(self: Any, *args: Any, **named: Any) -> Any:
    return self.root.java.lang.Class.forName("org.apache.spark.sql.NoSuchThing")


def another_form(self: Any, *args: Any, **named: Any) -> Any:
    return self.seq()


FAILURES: dict[str, tuple[Any, str, Raise]] = {
    "no gateway": (Jvm, "__init__", no_class),
    "no such method": (Jvm, "file_statuses", no_method),
    "no such class": (Jvm, "rows", no_field),
    "another form of directories": (Jvm, "partition_directories", another_form),
    "no listing of files": (Jvm, "partition_directories", no_method),
    "no filters": (scanning, "relation_frame", no_class),
    "no sets of rows": (deleted_rows, "_in_bits", no_class),
    "no trees": (Analyser, "_by_tree", no_class),
    "no session of its own": (writing, "in_own_session", no_class),
}


def data(start: int, stop: int) -> pa.Table:
    return pa.table(
        {
            "id": range(start, stop),
            "part": [i % 2 for i in range(start, stop)],
            "x": [i / 2 for i in range(start, stop)],
        }
    )


def rows(table: DeltaTable) -> list[str]:
    return sorted(map(repr, table.scan().to_arrow().to_pylist()))


def check_log(session: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Checks that one log line has the reason."""
    assert not engine_of(session).is_native
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    reason = engine_of(session).read_path.reason
    assert reason is not None
    assert reason in caplog.records[0].getMessage()


@pytest.mark.parametrize("what", FAILURES)
def test_the_same_rows(
    tmp_path: Path, session: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, what: str
) -> None:
    made = deltaic.write(tmp_path / "t", data(0, 3000), partition_by=["part"], properties=VECTORS)
    made.delete("id % 5 = 0")
    table = DeltaTable(tmp_path / "t", spark=session)
    monkeypatch.setattr(*FAILURES[what])
    session.conf.set(DRIVER_ROWS, 0)  # the driver writes no rows then: it would need no session
    with caplog.at_level(logging.INFO, "deltaic.spark"):
        found = table.scan(where="id < 1000 and part = 1").to_spark()
        if what == "no session of its own":
            deltaic.write(
                table,
                session.range(1, 1000, 2).selectExpr("id", "1L AS part", "id / 2 AS x").where("id % 5 > 0"),
                mode="append",
            )
        assert sorted(row["id"] for row in found.collect()) == [i for i in range(1000) if i % 5 and i % 2]
    assert table.scan(where="id < 1000 and part = 1").count() == (
        800 if what == "no session of its own" else 400
    )
    check_log(session, caplog)


def test_every_command_goes_on(
    tmp_path: Path, session: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("local", "spark"):
        made = deltaic.write(tmp_path / name, data(0, 3000), partition_by=["part"], properties=VECTORS)
        made.delete("id % 5 = 0")
    local, table = DeltaTable(tmp_path / "local"), DeltaTable(tmp_path / "spark", spark=session)
    source = pa.table({"id": [1, 2, 9000], "part": [1, 0, 0], "x": [None, 0.5, 1.5]})
    with caplog.at_level(logging.INFO, "deltaic.spark"):
        for each in (local, table):
            each.delete("id between 100 and 200 or x = 1000.5")
            if each is table:  # from here on
                assert engine_of(session).is_native
                monkeypatch.setattr(Jvm, "rows", no_class)
            each.update({"x": "x + 1"}, "part = 1 and id > 2500")
            each.merge(
                source, "t.id = s.id"
            ).when_matched_update_all().when_not_matched_insert_all().execute()
            deltaic.write(each, data(5000, 5005), mode="append")
    assert rows(table) == rows(local) == rows(DeltaTable(tmp_path / "spark"))
    assert table.version == local.version
    check_log(session, caplog)


def test_hints_that_cannot_be_had_leave_no_file_out(
    tmp_path: Path, session: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = deltaic.write(tmp_path / "t", data(0, 10))
    deltaic.write(table, data(10, 20), mode="append")
    frame = DeltaTable(tmp_path / "t", spark=session).scan().to_spark()
    monkeypatch.setattr("deltaic.engine.spark.native.file_index.skipping_predicate", no_class)
    assert frame.where("id > 14").count() == 5
    assert engine_of(session).is_native


def test_an_error_of_the_query_is_no_reason(tmp_path: Path, session: Any) -> None:
    """Spark computes constants when it plans."""
    DeltaTable.create(tmp_path / "t", "id double")
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        deltaic.write(tmp_path / "t", session.range(3).selectExpr("1D / 0D AS id"), mode="append")
    assert DeltaTable(tmp_path / "t").version == 0
    assert engine_of(session).is_native


def test_a_job_that_failed_is_not_run_again(
    tmp_path: Path, session: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from py4j.protocol import Py4JError
    from pyspark.sql.readwriter import DataFrameWriter

    deltaic.write(tmp_path / "t", data(0, 10))
    table = DeltaTable(tmp_path / "t", spark=session)
    parquet, jobs = DataFrameWriter.parquet, []

    def lost(self: Any, path: str, *args: Any, **named: Any) -> None:
        parquet(self, path, *args, **named)
        jobs.append(path)
        raise Py4JError("an answer that nobody expected")

    monkeypatch.setattr(DataFrameWriter, "parquet", lost)
    session.conf.set(DRIVER_ROWS, 0)
    with pytest.raises(Py4JError):
        deltaic.write(table, session.range(5).selectExpr("id", "id AS part", "0D AS x"), mode="append")
    assert len(jobs) == 1
    assert DeltaTable(tmp_path / "t").version == 0
    assert rows(DeltaTable(tmp_path / "t")) == sorted(map(repr, data(0, 10).to_pylist()))
    assert len(list((tmp_path / "t").rglob("*.parquet"))) == 1  # nothing of the job is left


def test_which_errors_say_something_of_the_jvm(session: Any) -> None:
    from py4j.protocol import Py4JNetworkError

    def raised(function: Callable[[], Any]) -> Exception:
        with pytest.raises(Exception, match=r".") as caught:
            function()
        return caught.value

    jvm = session._jvm
    assert is_unexpected(raised(lambda: jvm.java.lang.Class.forName("no.such.thing")))
    assert is_unexpected(raised(lambda: jvm.no.such.thing()))
    assert is_unexpected(raised(lambda: jvm.java.lang.Integer.valueOf(1).nothing()))
    assert not is_unexpected(raised(lambda: session.sql("SELECT nope")))
    assert not is_unexpected(raised(lambda: session.sql("SELECT raise_error('no')").collect()))
    assert not is_unexpected(Py4JNetworkError("gone"))
    assert not is_unexpected(OSError("the table's store"))
