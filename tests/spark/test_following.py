"""DataFrames and views of a table's newest version follow the table, as with delta-spark: each query reads
the version that is the newest when it is planned. A DataFrame that names a version keeps it."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F

import deltaic
import deltaic.spark
from deltaic import DeltaTable
from deltaic.engine.spark.engine import engine_of
from deltaic.errors import VersionNotFoundError
from deltaic.spark import tables

VECTORS = {"delta.enableDeletionVectors": True}


@pytest.fixture
def place(session: Any, tmp_path: Path) -> str:
    """A table with the ids 0, 1, 2."""
    session.range(3).write.format("delta").save(str(tmp_path / "t"))
    return str(tmp_path / "t")


def load(session: Any, place: str, **options: Any) -> Any:
    return session.read.format("delta").options(**options).load(place)


def append(session: Any, place: str, *ids: int) -> None:
    session.createDataFrame([(each,) for each in ids], "id long").write.format("delta").mode("append").save(
        place
    )


def ids(frame: Any) -> list[int]:
    return sorted(row["id"] for row in frame.collect())


def readers(session: Any, place: str) -> dict[str, Any]:
    """Returns a DataFrame that follows the table for each way to get one, by name."""
    load(session, place).createOrReplaceTempView("following_view")
    session.sql(f"CREATE OR REPLACE TEMP VIEW following_sql AS SELECT * FROM delta.`{place}`")
    session.sql(f"CREATE OR REPLACE TEMP VIEW following_part AS SELECT id FROM delta.`{place}` WHERE id >= 0")
    return {
        "load": load(session, place),
        "path": session.read.format("delta").option("path", place).load(),
        "table": session.table(f"delta.`{place}`"),
        "toDF": tables.DeltaTable.forPath(session, place).toDF(),
        "sql": session.sql(f"SELECT * FROM delta.`{place}`"),
        "view": session.table("following_view"),
        "view by sql": session.sql("SELECT * FROM following_view"),
        "view of sql": session.table("following_sql"),
        "view of a query": session.table("following_part"),
        "columns": load(session, place, columns="id"),
    }


def test_a_query_sees_the_newest_version(session: Any, place: str) -> None:
    followed = readers(session, place)
    append(session, place, 100, 101)
    for name, frame in followed.items():
        assert ids(frame.filter("id >= 0")) == [0, 1, 2, 100, 101], name
    DeltaTable(place).delete("id = 1")
    for name, frame in followed.items():
        assert ids(frame.select("id")) == [0, 2, 100, 101], name
        assert frame.count() == 4, name
    assert engine_of(session).is_native


def test_a_write_over_a_frame_keeps_what_came_since(session: Any, place: str) -> None:
    frame = load(session, place)
    append(session, place, 100, 101, 102)
    frame.filter("id <> 1").write.format("delta").mode("overwrite").save(place)
    assert ids(load(session, place)) == [0, 2, 100, 101, 102]


def test_what_names_a_version_stays_at_it(session: Any, place: str) -> None:
    append(session, place, 5)
    session.sql(f"CREATE OR REPLACE TEMP VIEW pinned AS SELECT * FROM delta.`{place}` VERSION AS OF 1")
    pinned = {
        "version": load(session, place, versionAsOf=1),
        "path": load(session, f"{place}@v1"),
        "view": session.table("pinned"),
        "read": deltaic.spark.read(session, place),
        "to_spark": DeltaTable(place, spark=session).scan().to_spark(),
        "where": deltaic.spark.read(session, place, where="id >= 0"),
    }
    append(session, place, 6)
    for name, frame in pinned.items():
        assert ids(frame.select("id")) == [0, 1, 2, 5], name


def test_vectors_and_files_that_come_later(session: Any, tmp_path: Path) -> None:
    """The plan is made anew: a table without vectors gets some, one with files becomes empty, and vacuum
    takes the first files."""
    place = str(tmp_path / "t")
    session.range(10).write.format("delta").option("delta.enableDeletionVectors", "false").save(place)
    frame = load(session, place)
    assert frame.count() == 10
    table = DeltaTable(place)
    table.alter.set_properties(VECTORS)
    table.delete("id < 3")
    assert ids(frame.select("id")) == list(range(3, 10))
    table.optimize.purge()
    table.vacuum(retention=timedelta(0), enforce_retention=False)
    assert ids(frame.select("id")) == list(range(3, 10))
    table.delete()
    assert ids(frame.select("id")) == []


def test_one_version_within_a_query(session: Any, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit that comes while a query is planned is seen by all of it or by none, subqueries included."""
    from deltaic.engine.spark.stores import RecentSnapshots

    frame = load(session, place)
    frame.createOrReplaceTempView("one_version")
    opened = RecentSnapshots.open

    def committed_after(self: Any, *args: Any, **named: Any) -> Any:
        found = opened(self, *args, **named)
        deltaic.write(place, [{"id": found.version + 1000}], mode="append")
        return found

    monkeypatch.setattr(RecentSnapshots, "open", committed_after)
    joined = frame.alias("a").join(frame.alias("b"), "id").select("a.id")
    whole = session.sql(
        "SELECT (SELECT count(*) FROM one_version) AS a, (SELECT count(id) FROM one_version) AS b, count(*)"
        " AS c FROM one_version"
    )
    assert len(ids(joined)) in (3, 4, 5)
    (row,) = whole.collect()
    assert row.a == row.b == row.c
    other = load(session, place)
    both = frame.crossJoin(other.withColumnRenamed("id", "x")).count()
    assert int(both**0.5) ** 2 == both


def test_changes_of_the_columns(session: Any, place: str) -> None:
    """Added columns are no error; other changes of columns are."""
    from pyspark.errors import AnalysisException

    frame = load(session, place)
    session.range(1).selectExpr("7L AS id", "1 AS more").write.format("delta").mode("append").option(
        "mergeSchema", "true"
    ).save(place)
    assert (ids(frame.select("id")), frame.columns) == ([0, 1, 2, 7], ["id"])
    both = load(session, place)
    session.range(2).write.format("delta").option("overwriteSchema", "true").mode("overwrite").save(place)
    assert ids(frame.select("id")) == [0, 1]
    with pytest.raises(AnalysisException, match="more is missing") as caught:
        both.select("id").collect()
    assert caught.value.getCondition() == "DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS"
    texts = session.range(2).selectExpr("CAST(id AS string) AS id")
    texts.write.format("delta").option("overwriteSchema", "true").mode("overwrite").save(place)
    with pytest.raises(AnalysisException, match="id has another type"):
        frame.count()


def test_nested_columns_that_are_added(session: Any, tmp_path: Path) -> None:
    place = str(tmp_path / "t")
    session.sql("SELECT 1L AS id, named_struct('a', 1) AS s").write.format("delta").save(place)
    frame = load(session, place)
    wider = session.sql("SELECT 2L AS id, named_struct('a', 2, 'b', 'x') AS s")
    wider.write.format("delta").mode("append").option("mergeSchema", "true").save(place)
    assert [row.s.asDict() for row in frame.orderBy("id").collect()] == [{"a": 1}, {"a": 2}]
    assert [row.s.asDict() for row in load(session, place).orderBy("id").collect()] == [
        {"a": 1, "b": None},
        {"a": 2, "b": "x"},
    ]


def test_a_table_made_anew_at_the_same_place(session: Any, place: str) -> None:
    import shutil

    from pyspark.errors import AnalysisException

    frame = load(session, place)
    shutil.rmtree(place)
    with pytest.raises(AnalysisException) as raised:  # it is raised in the JVM
        frame.count()
    assert (raised.value.getCondition(), raised.value.getSqlState()) == ("PATH_NOT_FOUND", "42K03")
    for each in range(4):
        append(session, place, each)
    assert ids(frame.select("id")) == [0, 1, 2, 3]


@pytest.mark.parametrize("change", ["write", "delete", "sql"])
def test_cached_rows_are_computed_anew_after_a_commit(session: Any, place: str, change: str) -> None:
    cached, pinned = load(session, place).cache(), load(session, place, versionAsOf=0).cache()
    changes: dict[str, Callable[[], Any]] = {
        "write": lambda: append(session, place, 9),
        "delete": lambda: tables.DeltaTable.forPath(session, place).delete("id = 0"),
        "sql": lambda: session.sql(f"UPDATE delta.`{place}` SET id = id + 1"),
    }
    try:
        assert (cached.count(), pinned.count()) == (3, 3)
        changes[change]()
        assert ids(cached) == ids(DeltaTable(place, spark=session).scan().to_spark())
        assert cached.is_cached
        assert ids(pinned.select("id")) == [0, 1, 2]
    finally:
        cached.unpersist()
        pinned.unpersist()


def test_files_of_rows(session: Any, tmp_path: Path) -> None:
    """`_metadata` and `inputFiles`, whether files have vectors or not."""
    place = str(tmp_path / "a b")
    session.range(4).coalesce(1).write.format("delta").option("delta.enableDeletionVectors", "true").save(
        place
    )
    append(session, place, 10)
    frame = load(session, place)
    before = frame.select("id", "_metadata.file_name", "_metadata.row_index").collect()
    assert sorted((row.id, row.row_index) for row in before) == [(0, 0), (1, 1), (2, 2), (3, 3), (10, 0)]
    DeltaTable(place).delete("id in (0, 2)")
    after = {row.id: row for row in frame.select("id", "_metadata").collect()}
    assert {(row.id, row._metadata.row_index) for row in after.values()} == {(1, 1), (3, 3), (10, 0)}
    names = {row.id: row.file_name for row in before}
    for id, row in after.items():
        assert row._metadata.file_name == names[id]
        (file,) = Path(place).rglob(names[id])
        assert row._metadata.file_size == file.stat().st_size
        assert abs(row._metadata.file_modification_time.timestamp() - file.stat().st_mtime) < 10
        assert row._metadata.file_path.endswith(f"/a%20b/{file.relative_to(place)}")
    assert {Path(file).name for file in frame.inputFiles()} == set(names.values())
    assert ids(frame.where("_metadata.row_index = 3").select("id")) == [3]
    assert sorted(
        row.id for row in load(session, place, versionAsOf=0).where("_metadata.row_index < 2").collect()
    ) == [0, 1]


@pytest.mark.parametrize("mapping", ["none", "name"])
def test_input_files_are_those_that_the_conditions_leave(session: Any, tmp_path: Path, mapping: str) -> None:
    """Source: PreparedDeltaFileIndex.inputFiles of delta-spark."""
    place = str(tmp_path / "t")
    rows = (
        session.range(40)
        .selectExpr("id", "id % 2 AS part", "cast(id AS string) AS text")
        .repartitionByRange(4, "id")
    )
    rows.write.format("delta").option("delta.columnMapping.mode", mapping).partitionBy("part").save(place)
    frame = load(session, place)
    bounds = F.min("id").alias("low"), F.max("id").alias("high")
    found = frame.groupBy("_metadata.file_path", "part").agg(*bounds).collect()
    files = {row.file_path.split("/t/")[1]: (row.low, row.high, row.part) for row in found}
    assert len(files) == 8

    def named(frame: Any) -> set[str]:
        return {file.split("/t/")[1] for file in frame.inputFiles()}

    assert named(frame) == set(files)
    assert named(frame.where("part = 1")) == {name for name, (_, _, part) in files.items() if part == 1}
    assert named(frame.where("id < 10")) == {name for name, (low, _, _) in files.items() if low < 10}
    assert named(frame.where("id < 10 AND part = 0").select("text")) == {
        name for name, (low, _, part) in files.items() if low < 10 and part == 0
    }
    assert named(frame.where("rand() < 2 AND id > 35")) == {
        name for name, (_, high, _) in files.items() if high > 35
    }
    both = frame.where("id < 5").union(frame.where("id > 35"))
    assert named(both) == {name for name, (low, high, _) in files.items() if low < 5 or high > 35}
    for counted in (
        both,
        frame.where("id < 10 AND part = 0"),
        frame.where("id < 5").alias("a").join(frame.where("id >= 0"), "id"),
    ):
        assert len(counted.collect()) in (9, 5)


def test_files_of_rows_in_sql(session: Any, tmp_path: Path) -> None:
    place = str(tmp_path / "a b")
    session.range(4).coalesce(1).write.format("delta").option("delta.enableDeletionVectors", "true").save(
        place
    )
    append(session, place, 10)
    DeltaTable(place).delete("id in (0, 2)")
    table = f"delta.`{place}`"

    def rows(text: str) -> list[tuple[Any, ...]]:
        return sorted(tuple(row) for row in session.sql(text).collect())

    assert rows(f"SELECT id, _metadata.row_index FROM {table}") == [(1, 1), (3, 3), (10, 0)]
    assert rows(
        f"SELECT t._metadata.row_index, u.id FROM {table} t JOIN {table} AS u ON t.id = u.id WHERE u.id > 1"
    ) == [(0, 10), (3, 3)]
    assert rows(
        f"SELECT id FROM {table} WHERE _metadata.row_index = (SELECT max(_metadata.row_index) FROM {table})"
    ) == [(3,)]
    assert rows(f"SELECT {table}.id FROM {table} VERSION AS OF 0 WHERE _metadata.row_index < 2") == [
        (0,),
        (1,),
    ]
    assert rows(f"SELECT count(DISTINCT _metadata.file_name), count(*) FROM {table}") == [(2, 3)]
    assert rows(f"SELECT id, _metadata.row_index FROM {table} TABLESAMPLE (100 PERCENT)") == [
        (1, 1),
        (3, 3),
        (10, 0),
    ]
    sample = f"{table} VERSION AS OF 0 TABLESAMPLE (100 PERCENT) AS x"
    if not session.version.startswith("4.1."):  # which has no metadata columns of a sample with an alias
        assert rows(f"SELECT x.id, x._metadata.row_index FROM {sample} WHERE x.id > 2") == [(3, 3)]
    session.sql(
        "CREATE OR REPLACE TEMPORARY VIEW files_of_rows AS SELECT id, _metadata.file_name AS name FROM"
        f" {table}"
    )
    names = {Path(file).name for file in load(session, place).inputFiles()}
    assert {row.name for row in session.table("files_of_rows").collect()} == names
    frame = session.sql(f"SELECT id, _metadata.row_index FROM {table}")
    append(session, place, 11)
    assert sorted(row.id for row in frame.where("id > 5").collect()) == [10, 11]
    assert session.sql("SHOW FUNCTIONS LIKE '__deltaic_view*'").collect() == []


def test_threads_share_a_frame(session: Any, place: str) -> None:
    frame, counts = load(session, place), []

    def counted() -> None:
        for _ in range(3):
            counts.append(frame.where("id >= 0").count())

    threads = [threading.Thread(target=counted) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert counts == [3] * 12


def test_a_time_after_the_last_version_is_an_error(session: Any, place: str) -> None:
    """Another read at that time could give other rows."""
    last = "2026-05-01 12:00:00.5"
    commit = Path(place) / "_delta_log" / f"{0:020}.json"
    seconds = session.sql(f"SELECT CAST(timestamp'{last}' AS double)").first()[0]
    os.utime(commit, (seconds, seconds))
    ways: dict[str, Callable[[str], Any]] = {
        "option": lambda time: load(session, place, timestampAsOf=time),
        "sql": lambda time: session.sql(f"SELECT * FROM delta.`{place}` TIMESTAMP AS OF '{time}'"),
        "path": lambda time: load(session, f"{place}@{re.sub('[^0-9]', '', time).ljust(17, '0')}"),
        "restore sql": lambda time: session.sql(f"RESTORE TABLE delta.`{place}` TO TIMESTAMP AS OF '{time}'"),
        "restore": lambda time: tables.DeltaTable.forPath(session, place).restoreToTimestamp(time),
    }
    for name, way in ways.items():
        for time in ("2026-05-01 12:00:00.501", "2099-01-01 00:00:00"):
            with pytest.raises(VersionNotFoundError, match="after the last version"):
                way(time)
        if not name.startswith("restore"):
            assert ids(way(last)) == [0, 1, 2], name
    with pytest.raises(Exception, match="after the last version"):
        session.newSession().read.format("deltaic").option("timestampAsOf", "2099-01-01").load(
            place
        ).collect()


KNOWN = (
    "count(*)",
    "count(1)",
    "min(id)",
    "max(id)",
    "min(day)",
    "max(day)",
    "min(gap)",
    "max(nothing)",
    "min(small)",
)
TOTALS = (*KNOWN, "max(name)", "min(x)")


def test_totals_from_the_log(session: Any, tmp_path: Path) -> None:
    """Aggregates over a whole table need no job where statistics are exact, and are those of its rows in any
    case."""
    from pyspark.sql import functions as F

    place = str(tmp_path / "t")
    source = session.range(50).selectExpr(
        "id",
        "date_add(date'1960-03-01', CAST(id * 300 AS int)) AS day",
        "IF(id % 3 = 0, NULL, CAST(id AS int)) AS gap",
        "CAST(NULL AS bigint) AS nothing",
        "CAST(id - 20 AS tinyint) AS small",
        "concat('n', id) AS name",
        "id / 4 AS x",
        "CAST(id % 2 AS int) AS part",
    )
    source.repartition(3).write.format("delta").option("delta.columnMapping.mode", "name").partitionBy(
        "part"
    ).save(place)

    def is_local(frame: Any) -> bool:
        return str(frame._jdf.queryExecution().optimizedPlan().getClass().getSimpleName()) == "LocalRelation"

    def check(*known: str) -> None:
        frame, rows = load(session, place), session.createDataFrame(DeltaTable(place).scan().to_arrow())
        for text in TOTALS:
            found = frame.agg(F.expr(text))
            assert found.collect() == rows.agg(F.expr(text)).collect(), text
            assert is_local(found) == (text in known), text
        assert frame.groupBy().count().collect() == rows.groupBy().count().collect()
        assert is_local(session.sql(f"SELECT count(*) AS n, min(id), max(id) FROM delta.`{place}`")) == (
            "min(id)" in known
        )
        assert frame.where("id > 5").count() == rows.where("id > 5").count()
        for text in (
            "count(gap)",
            "count(DISTINCT part)",
            "sum(id)",
            "min(part)",
            "count(*) FILTER (WHERE id > 3)",
            "max(id + 1)",
        ):
            assert frame.agg(F.expr(text)).collect() == rows.agg(F.expr(text)).collect(), text
            assert not is_local(frame.agg(F.expr(text))), text

    check(*KNOWN)
    frame = load(session, place)
    table = DeltaTable(place)
    table.alter.rename_column("id", "other")
    table.alter.rename_column("other", "id")
    table.delete("id in (0, 49)")
    check("count(*)", "count(1)")
    table.optimize.purge()
    check(*KNOWN)
    assert frame.agg(F.max("id"), F.count("*")).first() == (48, 48)
    table.delete()
    check(*KNOWN)


OF_PARTITIONS = (
    "part = 1",
    "part <> 1 AND name IS NOT NULL",
    "part IN (0, 5) OR name = 'b'",
    "NOT (part = 1 OR name IS NULL)",
    "part > 1 AND part < 1",
    "name IS NULL",
)
OF_ROWS = ("id > 5", "part = 1 AND id > 5", "part + 1 = 2", "name LIKE 'a%'", "rand() < 2")


def test_totals_of_partitions_from_the_log(session: Any, tmp_path: Path) -> None:
    """Under conditions on partition columns no job is run either, and the rows are the same; any other
    condition reads files."""
    from pyspark.sql import functions as F

    place = str(tmp_path / "t")
    made = session.range(40).selectExpr(
        "id", "CAST(id % 3 AS int) AS part", "IF(id % 4 = 0, NULL, IF(id % 2 = 0, 'a', 'b')) AS name"
    )
    vectors = {"delta.enableDeletionVectors": "true", "delta.columnMapping.mode": "name"}
    made.write.format("delta").options(**vectors).partitionBy("part", "name").save(place)

    def check(text: str, *totals: str) -> bool:
        asked = [F.expr(each) for each in totals]
        found = load(session, place).where(text).agg(*asked)
        assert found.collect() == rows.where(text).agg(*asked).collect()
        return str(found._jdf.queryExecution().optimizedPlan().getClass().getSimpleName()) == "LocalRelation"

    rows = session.createDataFrame(DeltaTable(place).scan().to_arrow())
    for text in OF_PARTITIONS:
        assert check(text, "count(*)", "min(id)", "max(id)"), text
    for text in OF_ROWS:
        assert not check(text, "count(*)"), text
    # A vector in part 1, name b, and one in part 2, name a.
    session.sql(f"DELETE FROM delta.`{place}` WHERE id IN (1, 2)")
    rows = session.createDataFrame(DeltaTable(place).scan().to_arrow())
    for text in ("part = 1", "part <> 1 AND name IS NOT NULL"):
        assert check(text, "count(*)"), text
        assert not check(text, "min(id)"), text
    assert check("part = 0", "min(id)")  # its files have no vector


def test_totals_of_files_that_do_not_say(session: Any, tmp_path: Path) -> None:
    from pyspark.sql import functions as F

    place = str(tmp_path / "t")
    session.range(5).write.format("delta").option("delta.dataSkippingNumIndexedCols", "0").save(place)
    assert load(session, place).agg(F.max("id"), F.count("*")).first() == (4, 5)


def test_many_files_are_sent_when_a_query_needs_them(
    session: Any, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(session, place, 7)
    load(session, place).collect()  # the session has been seen to plan tables
    monkeypatch.setattr("deltaic.engine.spark.engine.MOST_FILES_AT_ONCE", 0)
    few = load(session, place)
    assert ids(few) == [0, 1, 2, 7]
    assert few.schema == DeltaTable(place, spark=session).scan(where="true").to_spark().schema
    append(session, place, 8)
    assert ids(few.select("id")) == [0, 1, 2, 7, 8]
    assert few.alias("a").join(few.alias("b"), "id").count() == 5
