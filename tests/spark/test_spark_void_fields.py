"""Fields of structs that have had nothing but nulls, as of JSON, in SQL on Spark.

The expectations were recorded from delta-spark 4.4 for the same statements.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import deltaic.spark
from deltaic.engine.spark.engine import SETTING

STRUCT = "named_struct('b', NULL, 'a', {a}, 't', named_struct('x', {a} * 2, 'n', NULL))"
WITH_STRUCT = "struct<b:void,a:int,t:struct<x:int,n:void>>"


@pytest.fixture(params=["auto", "never"])
def spark_session(request: pytest.FixtureRequest, spark: Any) -> Iterator[Any]:
    deltaic.spark.enable(spark, native=request.param)
    yield spark
    delattr(spark, SETTING)
    for name in ("sql", "table"):
        spark.__dict__.pop(name, None)


@pytest.fixture
def name(spark_session: Any, tmp_path: Path) -> str:
    """A table of three rows by a job of several tasks; the struct of the third one is null."""
    rows = spark_session.sql(
        f"SELECT id, {STRUCT.format(a='CAST(id AS INT)')} AS s FROM range(1, 3) UNION ALL SELECT 3, NULL"
    )
    rows.repartition(2).write.format("delta").save(str(tmp_path / "t"))
    return f"delta.`{tmp_path}/t`"


def struct(a: int | None) -> dict[str, Any]:
    return {"b": None, "a": a, "t": {"x": None if a is None else a * 2, "n": None}}


def rows(session: Any, name: str) -> dict[int, Any]:
    return {row.id: row.asDict(True)["s"] for row in session.sql(f"SELECT * FROM {name}").collect()}


def test_rows_and_files(spark_session: Any, name: str, tmp_path: Path) -> None:
    frame = spark_session.read.format("delta").load(str(tmp_path / "t"))
    assert dict(frame.dtypes)["s"] == WITH_STRUCT
    assert rows(spark_session, name) == {1: struct(1), 2: struct(2), 3: None}
    for file in (tmp_path / "t").rglob("*.parquet"):
        kinds = [str(field.type) for field in pq.read_schema(file)]
        assert kinds == ["int64", "struct<a: int32, t: struct<x: int32>>"]
    for condition, ids in {
        "s.b IS NULL": {1, 2, 3},
        "s.t.n IS NOT NULL": set(),
        "s IS NULL": {3},
        "s.t IS NULL AND s.b IS NULL": {3},
        "s.a = 2": {2},
    }.items():
        assert {row.id for row in frame.where(condition).collect()} == ids, condition
    found = {row.id: (row.n, row.x, row.t) for row in frame.select("id", "s.t.n", "s.t.x", "s.t").collect()}
    assert (found[1], found[3]) == ((None, 2, (2, None)), (None, None, None))


def test_statements(spark_session: Any, name: str) -> None:
    sql = spark_session.sql
    sql(f"INSERT INTO {name} VALUES (4, {STRUCT.format(a=4)})")
    sql(f"INSERT INTO {name} BY NAME SELECT {STRUCT.format(a=5)} AS s, 5 AS id")
    sql(f"UPDATE {name} SET s.a = 10 WHERE id = 1")
    sql(f"UPDATE {name} SET s = NULL WHERE id = 2")
    sql(f"DELETE FROM {name} WHERE id = 5 AND s.b IS NULL")
    assert rows(spark_session, name) == {1: struct(1) | {"a": 10}, 2: None, 3: None, 4: struct(4)}
    merge = "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    sql(
        f"MERGE INTO {name} t USING (SELECT EXPLODE(ARRAY(1, 6)) AS id, {STRUCT.format(a=7)} AS s) s"
        f" ON t.id = s.id {merge}"
    )
    sql(f"OPTIMIZE {name}")
    assert rows(spark_session, name) == {1: struct(7), 2: None, 3: None, 4: struct(4), 6: struct(7)}
    typed = "named_struct('b', 'text', 'a', 8, 't', named_struct('x', 16, 'n', ARRAY(1)))"
    source = f"(SELECT 1 AS id, {typed} AS s)"
    sql(f"MERGE WITH SCHEMA EVOLUTION INTO {name} t USING {source} s ON t.id = s.id {merge}")
    found = rows(spark_session, name)
    assert found[1] == {"b": "text", "a": 8, "t": {"x": 16, "n": [1]}}
    assert (found[4], found[2]) == (struct(4), None)


def test_conditions(spark_session: Any, name: str) -> None:
    from pyspark.errors import AnalysisException

    typed = STRUCT.format(a=1).replace("NULL", "1", 1)
    for statement, condition in {
        f"INSERT INTO {name} SELECT 1, {typed}": "DELTA_METADATA_MISMATCH",
        f"UPDATE {name} SET s.b = 'x'": "DATATYPE_MISMATCH.CAST_WITHOUT_SUGGESTION",
    }.items():
        with pytest.raises(AnalysisException) as caught:
            spark_session.sql(statement)
        assert caught.value.getCondition() == condition
    assert rows(spark_session, name) == {1: struct(1), 2: struct(2), 3: None}


def test_tables_by_statements(spark_session: Any, tmp_path: Path) -> None:
    sql, name = spark_session.sql, f"delta.`{tmp_path}/c`"
    sql(
        f"CREATE TABLE {name} (id BIGINT, s STRUCT<a: INT, b: VOID>) USING delta TBLPROPERTIES"
        " ('delta.columnMapping.mode' = 'name', 'delta.enableChangeDataFeed' = 'true',"
        " 'delta.enableDeletionVectors' = 'true')"
    )
    sql(f"INSERT INTO {name} VALUES (1, named_struct('a', 1, 'b', NULL)), (2, NULL), (3, NULL)")
    sql(f"ALTER TABLE {name} RENAME COLUMN s.b TO c")
    sql(f"ALTER TABLE {name} ADD COLUMN s.d VOID")
    sql(f"UPDATE {name} SET s.a = 2 WHERE id = 1")
    sql(f"DELETE FROM {name} WHERE id = 3")
    assert rows(spark_session, name) == {1: {"a": 2, "c": None, "d": None}, 2: None}
    changes = spark_session.read.option("readChangeFeed", "true").option("startingVersion", 4)
    found = changes.format("delta").load(f"{tmp_path}/c").select("_change_type", "s").collect()
    assert sorted((kind, s and s.asDict()) for kind, s in found) == [
        ("delete", None),
        ("update_postimage", {"a": 2, "c": None, "d": None}),
        ("update_preimage", {"a": 1, "c": None, "d": None}),
    ]
    sql(f"ALTER TABLE {name} ALTER COLUMN s.c TYPE STRING")
    sql(f"INSERT INTO {name} VALUES (4, named_struct('a', 4, 'c', 'x', 'd', NULL))")
    sql(f"ALTER TABLE {name} DROP COLUMN s.d")
    assert rows(spark_session, name) == {1: {"a": 2, "c": None}, 2: None, 4: {"a": 4, "c": "x"}}


def test_only_the_fields_that_a_query_needs_are_read(session: Any, tmp_path: Path) -> None:
    """Also where void fields come before and between the others."""
    made = session.range(10).selectExpr("id", "named_struct('b', NULL, 'a', id, 'n', NULL, 'c', 'x') AS s")
    made.write.format("delta").save(str(tmp_path / "t"))
    frame = session.read.format("delta").load(str(tmp_path / "t")).where("s.a = 7").select("s.a", "s.n")
    assert [tuple(row) for row in frame.collect()] == [(7, None)]
    if hasattr(frame, "_jdf"):
        plan = frame._jdf.queryExecution().executedPlan().toString()
        assert "ReadSchema: struct<s:struct<a:bigint>>" in plan
        assert "EqualTo(s.a,7)" in plan
