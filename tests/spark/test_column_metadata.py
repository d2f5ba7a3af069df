"""Comments and other metadata of columns, including nested ones: written from a DataFrame to a table, and
read from a table into a DataFrame."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import deltaic
import deltaic.spark
from deltaic import DeltaTable
from deltaic.engine.spark.engine import engine_of
from deltaic.engine.spark.engine_session import ROWS_SETTING as DRIVER_ROWS
from deltaic.errors import ConstraintViolationError
from deltaic.protocol.schema import CHAR_TYPES as KEY
from deltaic.protocol.schema import Field, Schema

INNER = "struct<a: int comment 'inner', b: array<struct<c: string comment 'deep'>>>"
EXPECTED = {
    "id": {"comment": "the key", "owner": {"team": [1, 2]}},
    "x": {"comment": "a float"},
    "p": {"comment": "a partition"},
    "st": {},
}


@pytest.fixture(params=["auto", "never"])
def session(request: pytest.FixtureRequest, spark: Any) -> Any:
    own = spark.newSession()
    deltaic.spark.enable(own, native=request.param)
    return own


def frame_of(session: Any) -> Any:
    from pyspark.sql import functions as F

    frame = session.sql(
        f"SELECT 1L AS id, 0.5D AS x, 7 AS p, CAST(named_struct('a', 1, 'b', NULL) AS {plain(INNER)}) AS st"
    )
    with_comments = session.createDataFrame([], f"st {INNER}").schema["st"].dataType
    hidden = {
        "CURRENT_DEFAULT": "5",
        "delta.invariants": "{}",
        "delta.columnMapping.id": 77,
        "__x": "y",
        "parquet.field.id": 9,
    }
    more = {"st": hidden}
    return frame.select(
        *(
            F.col(name).alias(name, metadata={**EXPECTED[name], **more.get(name, {})})
            for name in ("id", "x", "p")
        ),
        F.col("st").cast(with_comments).alias("st", metadata=hidden),
    )


def plain(ddl: str) -> str:
    return ddl.replace(" comment 'inner'", "").replace(" comment 'deep'", "")


def comments(schema: Any) -> tuple[dict[str, Any], str | None, str | None]:
    inner = schema["st"].dataType
    return (
        {field.name: field.metadata for field in schema},
        comment(inner["a"]),
        comment(inner["b"].dataType.elementType["c"]),
    )


def comment(field: Any) -> str | None:
    return field.metadata.get("comment") if set(field.metadata) <= {"comment"} else str(field.metadata)


@pytest.mark.parametrize("mapping", ["none", "name", "id"])
def test_metadata_of_columns_goes_in_and_out(tmp_path: Path, session: Any, mapping: str) -> None:
    path, copy = str(tmp_path / "t"), str(tmp_path / "copy")
    rows, expected = frame_of(session), (EXPECTED, "inner", "deep")
    rows.write.format("delta").partitionBy("p").option("delta.columnMapping.mode", mapping).save(path)
    session.conf.set(DRIVER_ROWS, 0)
    rows.write.format("delta").mode("append").save(path)
    assert comments(session.read.format("delta").load(path).schema) == expected
    assert comments(session.sql(f"SELECT * FROM delta.`{path}`").schema) == expected
    session.sql(f"DELETE FROM delta.`{path}` WHERE st.a = 2")
    session.sql(f"UPDATE delta.`{path}` SET x = 1.5 WHERE st.a = 1")
    session.read.format("delta").load(path).write.format("delta").save(copy)
    found = DeltaTable(copy)
    assert {field.name: dict(field.metadata) for field in found.schema} == EXPECTED
    assert found.scan().to_arrow().to_pylist() == [{"id": 1, "x": 1.5, "p": 7, "st": {"a": 1, "b": None}}] * 2
    assert comments(session.read.format("delta").load(copy).schema) == expected


def test_whose_metadata_holds(tmp_path: Path, session: Any) -> None:
    from pyspark.sql import functions as F

    path = str(tmp_path / "t")
    frame_of(session).write.format("delta").save(path)
    other = session.range(1).select(
        F.col("id").alias("id", metadata={"comment": "other"}),
        F.lit(1).alias("n", metadata={"comment": "new"}),
    )
    other.select("id").write.format("delta").mode("append").save(path)
    other.write.format("delta").mode("append").option("mergeSchema", "true").save(path)
    source = other.selectExpr("id + 50 AS id").withColumn(
        "m", F.lit(2).alias("m", metadata={"comment": "merged"})
    )
    table = DeltaTable(path, spark=session)
    table.merge(source, "t.id = s.id", schema_mode="merge").when_not_matched_insert_all().execute()
    found = {field.name: field.metadata.get("comment") for field in DeltaTable(path).schema}
    assert found == {
        "id": "the key",
        "x": "a float",
        "p": "a partition",
        "st": None,
        "n": "new",
        "m": "merged",
    }
    other.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(path)
    assert {field.name: field.metadata.get("comment") for field in DeltaTable(path).schema} == {
        "id": "other",
        "n": "new",
    }


def test_bounded_text_is_refused_where_it_is_too_long(tmp_path: Path, session: Any) -> None:
    fields = [
        Field("id", "long"),
        Field("v", "string", metadata={KEY: "varchar(3)"}),
        Field("c", "string", metadata={KEY: "char(3)"}),
    ]
    path = str(tmp_path / "t")
    DeltaTable.create(path, Schema(fields))
    session.sql(f"INSERT INTO delta.`{path}` VALUES (1, 'abc', 'a')")
    long = session.sql("SELECT 1L AS id, 'abcd' AS v, 'a' AS c")
    for statement in (
        lambda: session.sql(f"INSERT INTO delta.`{path}` VALUES (2, 'abcd', 'a')"),
        lambda: session.sql(f"UPDATE delta.`{path}` SET c = 'abcd'"),
        lambda: (
            DeltaTable(path, spark=session).merge(long, "t.id = s.id").when_matched_update_all().execute()
        ),
        lambda: long.write.format("delta").mode("append").save(path),
        lambda: long.repartition(2).write.format("delta").mode("overwrite").save(path),
    ):
        with pytest.raises(
            ConstraintViolationError, match=r"column [vc] has a value that is longer.*char\(3\)"
        ):
            statement()
    assert DeltaTable(path).version == 1
    loaded = session.read.format("delta").load(path)
    assert loaded.where("c = 'a'").count() == 1
    loaded.write.format("delta").save(str(tmp_path / "copy"))
    with pytest.raises(ConstraintViolationError, match="column v"):
        deltaic.write(DeltaTable(tmp_path / "copy"), [{"id": 1, "v": "abcd", "c": "a"}], mode="append")


def test_not_null_is_shown_and_does_not_go_into_a_copy(tmp_path: Path, session: Any, spark: Any) -> None:
    """With Spark's public interfaces alone a DataFrame cannot express it."""
    path, copy = str(tmp_path / "t"), str(tmp_path / "copy")
    session.sql(
        f"CREATE TABLE delta.`{path}` (id INT NOT NULL, st STRUCT<a: INT NOT NULL, b: INT> NOT NULL, p INT)"
        " USING delta"
    )
    session.sql(f"INSERT INTO delta.`{path}` VALUES (1, named_struct('a', 1, 'b', NULL), NULL)")
    queried = session.sql(f"SELECT * FROM delta.`{path}`")
    loaded = [session.read.format("delta").load(path), queried, deltaic.spark.read(session, path, version=1)]
    if engine_of(session).is_native:
        for frame in loaded:
            assert [field.nullable for field in frame.schema] == [False, False, True]
            assert [field.nullable for field in frame.schema["st"].dataType] == [False, True]
    for frame in loaded:
        assert (
            frame.where("id IS NOT NULL AND st.a = 1").collect() == frame.collect() == [(1, (1, None), None)]
        )
        assert frame.where("id IS NULL").count() == 0
    loaded[0].write.format("delta").save(copy)
    assert [field.nullable for field in DeltaTable(copy).schema] == [True, True, True]
