"""Cases that differ on a session of Spark Connect, which has no JVM in the process; `test_connect.py` runs
them on a server of its own."""

from __future__ import annotations

import logging
import tempfile
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltaic
import deltaic.spark
from deltaic.engine.spark.columns import BY_ID
from deltaic.engine.spark.settings import LAST_COMMIT
from deltaic.errors import UnsupportedFeatureError
from spark_session import other_session


@pytest.fixture
def session(spark: Any) -> Any:
    """A session that is not the active one."""
    own = other_session(spark)
    deltaic.spark.enable(own)
    return own


@pytest.fixture
def path(tmp_path: Path) -> str:
    place = str(tmp_path / "t")
    rows = pa.table({"id": [1, 2, 3, 4], "part": ["a", "a", "b", "b"], "amount": [1.0, 2.0, 3.0, None]})
    deltaic.write(place, rows, partition_by="part", properties={"delta.enableDeletionVectors": True})
    return place


def rows_at(path: str | Path) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in deltaic.DeltaTable(path).scan().to_arrow().to_pylist())


def test_the_log_says_why_once(spark: Any, path: str, caplog: pytest.LogCaptureFixture) -> None:
    own = other_session(spark)
    with caplog.at_level(logging.INFO, "deltaic.spark"):
        for _ in range(2):
            deltaic.spark.read(own, path).count()
    assert [
        record.getMessage().endswith("the session has no JVM to talk to (Spark Connect)")
        for record in caplog.records
    ] == [True]


def test_rows_are_those_of_one_machine(tmp_path: Path, session: Any) -> None:
    found = []
    for name in ("local", "connect"):
        place = tmp_path / name
        data = pa.table(
            {"id": range(1000), "part": [i % 2 for i in range(1000)], "x": [i / 2 for i in range(1000)]}
        )
        made = deltaic.write(
            place, data, partition_by=["part"], properties={"delta.enableDeletionVectors": True}
        )
        table = made if name == "local" else deltaic.DeltaTable(place, spark=session)
        table.delete("id % 5 = 0 or x = 3.5")
        table.update({"x": "x + 1"}, "part = 1 and id > 900")
        source = pa.table({"id": [1, 2, 9000], "part": [1, 0, 0], "x": [None, 0.5, 1.5]})
        table.merge(source, "t.id = s.id").when_matched_update_all().when_not_matched_insert_all().execute()
        more = pa.table({"id": [7000, 7001], "part": [0, 1], "x": [1.0, 2.0]})
        deltaic.write(place, more if name == "local" else session.createDataFrame(more), mode="append")
        table.refresh()
        table.optimize.compact()
        found.append(sorted(map(repr, deltaic.DeltaTable(place).scan().to_arrow().to_pylist())))
    assert found[0] == found[1]
    frame = deltaic.spark.read(session, tmp_path / "connect", where="x > 100")
    assert sorted(frame.toArrow().to_pylist(), key=repr) == sorted(
        (row for row in map(eval, found[0]) if row["x"] and row["x"] > 100), key=repr
    )


def test_nothing_stays_behind(tmp_path: Path, session: Any, path: str) -> None:
    before, table = dict(session.conf.getAll), f"delta.`{path}`"
    frame = session.createDataFrame(pa.table({"id": [4, 5], "part": ["b", "{c}"], "amount": [0.5, 0.25]}))
    frame.write.format("delta").mode("append").save(path)
    text = (
        f"MERGE INTO {table} t USING {{new}} s ON t.id = s.id AND s.part <> {{word}} WHEN MATCHED THEN DELETE"
    )
    session.sql(text, new=frame, word="it's")
    session.sql(f"INSERT INTO {table} SELECT id + 10, part, amount FROM {{new}}", new=frame)
    query = (
        f"SELECT t.id, '{{{{x}}}}' AS x FROM {table} t JOIN {{new}} n ON t.part = n.part WHERE t.id > :low"
        " ORDER BY 1"
    )
    assert [tuple(row) for row in session.sql(query, {"low": 4}, new=frame).collect()] == [
        (14, "{x}"),
        (15, "{x}"),
    ]
    one = f"SELECT `{path}`.id, '{{}}' AS x FROM {table} WHERE part = '{{c}}' AND `{path}`.id > 10"
    assert session.sql(one).collect() == [(15, "{}")]
    session.sql(f"OPTIMIZE {table} ZORDER BY (id)")
    assert dict(session.conf.getAll) == {**before, LAST_COMMIT: session.conf.get(LAST_COMMIT)}
    assert session.catalog.listTables() == []


def test_columns_by_their_ids(tmp_path: Path, session: Any) -> None:
    """The setting by which Spark's reader heeds ids is the user's: rows are the same with and without."""
    path = tmp_path / "t"
    frame = session.range(8).selectExpr(
        "id", "id % 2 AS p", "named_struct('a', id, 'b', array(named_struct('c', id))) AS st"
    )
    before = dict(session.conf.getAll)
    options = {
        "delta.columnMapping.mode": "id",
        "delta.enableDeletionVectors": "true",
        "delta.enableRowTracking": "true",
    }
    frame.write.format("delta").partitionBy("p").options(**options).save(str(path))
    session.sql(f"ALTER TABLE delta.`{path}` RENAME COLUMN st.a TO z")
    session.sql(f"DELETE FROM delta.`{path}` WHERE st.z = 4")
    session.sql(f"UPDATE delta.`{path}` SET id = id + 100 WHERE st.z = 3")
    expected = sorted(
        (id + 100 * (id == 3), id % 2, {"z": id, "b": [{"c": id}]}) for id in (0, 1, 2, 3, 5, 6, 7)
    )
    assert rows_at(path) == expected
    assert dict(session.conf.getAll) == {**before, LAST_COMMIT: session.conf.get(LAST_COMMIT)}
    for by_id in ("false", "true"):
        session.conf.set(BY_ID, by_id)
        found = session.read.format("delta").load(str(path)).toArrow().to_pylist()
        assert sorted(tuple(row.values()) for row in found) == expected


def test_other_sessions_of_the_application(spark: Any, session: Any, path: str) -> None:
    other = other_session(spark)
    assert other.read.format("delta").load(path).count() == 4
    other.sql(
        f"MERGE INTO delta.`{path}` t USING (SELECT 3L AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE"
    )
    other.range(9, 10).selectExpr("id", "'z' AS part", "0.5D AS amount").write.format("delta").mode(
        "append"
    ).save(path)
    assert [row.id for row in other.table(f"delta.`{path}`").orderBy("id").collect()] == [1, 2, 4, 9]


def test_views(session: Any, path: str) -> None:
    session.read.format("delta").load(path).createOrReplaceTempView("whole")
    session.sql("UPDATE whole SET amount = 7 WHERE id = 1")
    session.sql("MERGE INTO whole USING (SELECT 2L AS id) s ON whole.id = s.id WHEN MATCHED THEN DELETE")
    assert session.sql("SELECT id, amount FROM whole ORDER BY id LIMIT 2").collect() == [(1, 7.0), (3, 3.0)]
    session.sql(f"CREATE TEMP VIEW some AS SELECT id FROM delta.`{path}` WHERE id > 1")
    session.sql(f"CREATE TEMP VIEW sourced USING delta OPTIONS (path '{path}')")
    for view in ("some", "sourced"):
        for statement in (f"DELETE FROM {view} WHERE id = 3", f"UPDATE {view} SET id = 3"):
            with pytest.raises(UnsupportedFeatureError, match=f"of a view.*; found `{view}`"):
                session.sql(statement)
    assert len(rows_at(path)) == 3


def test_what_needs_a_jvm_is_refused_by_name(session: Any) -> None:
    session.sql(
        "CREATE TABLE of_changes (id INT) USING delta TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
    )
    changes = "SELECT * FROM table_changes('of_changes', 0)"
    session.sql("INSERT INTO of_changes VALUES (1)")
    with pytest.raises(UnsupportedFeatureError, match="a permanent view of table_changes"):
        session.sql(f"CREATE VIEW view_of_changes AS {changes}")
    session.sql(f"CREATE TEMPORARY VIEW view_of_changes AS {changes}")
    assert session.sql("SELECT id FROM view_of_changes").first()["id"] == 1
    with pytest.raises(UnsupportedFeatureError, match="a SQL function that reads a Delta table"):
        session.sql(
            "CREATE TEMPORARY FUNCTION rows() RETURNS BIGINT RETURN (SELECT count(*) FROM of_changes)"
        )
    session.sql("DROP VIEW view_of_changes")
    session.sql("DROP TABLE of_changes")


def test_a_batch_of_a_stream_is_of_an_enabled_session(session: Any, tmp_path: Path, path: str) -> None:
    """The function runs in another process, on a clone of the session."""
    source = str(tmp_path / "source")
    session.sql("SELECT * FROM VALUES (1L, 'a', 0D), (50L, 'n', 0D) AS t(id, part, amount)").write.parquet(
        source
    )
    table = f"delta.`{path}`"

    def merged(batch: Any, number: int) -> None:
        text = (
            f"MERGE INTO {table} t USING {{new}} s ON t.id = s.id WHEN MATCHED THEN DELETE WHEN NOT MATCHED"
            " THEN INSERT *"
        )
        batch.sparkSession.sql(text, new=batch)
        batch.selectExpr("id + 100 AS id", "part", "amount").write.format("delta").mode("append").save(path)

    stream = (
        session.readStream.schema("id long, part string, amount double")
        .parquet(source)
        .writeStream.foreachBatch(merged)
    )
    query = (
        stream.option("checkpointLocation", tempfile.mkdtemp(dir=tmp_path)).trigger(availableNow=True).start()
    )
    query.awaitTermination(200)
    assert query.exception() is None
    assert [row[0] for row in rows_at(path)] == [2, 3, 4, 50, 101, 150]


def test_a_stream_from_name_to_name(session: Any, tmp_path: Path) -> None:
    session.range(3).write.format("delta").saveAsTable("streamed")
    try:
        for last in (3, 4):
            frame = session.readStream.table("streamed")
            writer = frame.writeStream.option("checkpointLocation", str(tmp_path / "c")).trigger(
                availableNow=True
            )
            writer.toTable("copied", format="delta").awaitTermination(200)
            assert sorted(row.id for row in session.table("copied").collect()) == list(range(last))
            session.sql("INSERT INTO streamed VALUES (3)")
    finally:
        for name in ("streamed", "copied"):
            session.sql(f"DROP TABLE IF EXISTS {name}")


def test_a_stream_of_changes_and_one_that_outlives_a_rename(session: Any, tmp_path: Path) -> None:
    properties = {"delta.enableChangeDataFeed": True, "delta.columnMapping.mode": "name"}
    table = deltaic.write(tmp_path / "t", {"id": [1, 2], "a": ["x", "y"]}, properties=properties)
    table.update({"a": "'z'"}, "id = 2")

    def followed(name: str, **options: Any) -> Exception | None:
        frame = session.readStream.format("delta").options(**options).load(str(tmp_path / "t"))
        frame = frame.select([column for column in frame.columns if column != "_commit_timestamp"])
        writer = frame.writeStream.format("delta").option(
            "checkpointLocation", str(tmp_path / f"{name}-checkpoint")
        )
        query = writer.option("mergeSchema", "true").trigger(availableNow=True).start(str(tmp_path / name))
        try:
            query.awaitTermination(200)
        except Exception as error:
            return error
        return query.exception()

    assert followed("changes", readChangeFeed=True, startingVersion=1) is None
    found = sorted(
        map(tuple, session.read.format("delta").load(str(tmp_path / "changes")).collect()), key=str
    )
    assert found == [(2, "y", "update_preimage", 1), (2, "z", "update_postimage", 1)]
    logged = {"schemaTrackingLocation": str(tmp_path / "rows-checkpoint")}
    if session.version.startswith("4.1."):  # see test_the_python_source_of_spark_4_1
        with pytest.raises(Exception, match="cannot keep a schema log"):
            followed("rows", **logged)
        return
    assert followed("rows", **logged) is None
    table.alter.rename_column("a", "b")
    deltaic.write(table, {"id": [3], "b": ["w"]}, mode="append")
    assert "DELTA_STREAMING_METADATA_EVOLUTION" in str(followed("rows", **logged))
    assert "DELTA_STREAMING_CANNOT_CONTINUE_PROCESSING_POST_SCHEMA_EVOLUTION" in str(
        followed("rows", **logged)
    )
    session.conf.set("spark.databricks.delta.streaming.allowSourceColumnRename", "always")
    try:
        assert followed("rows", **logged) is None
    finally:
        session.conf.unset("spark.databricks.delta.streaming.allowSourceColumnRename")
    found = sorted(
        (row["id"], row["a"], row["b"])
        for row in session.read.format("delta").load(str(tmp_path / "rows")).collect()
    )
    assert found == [(1, "x", None), (2, "z", None), (3, None, "w")]


def columns() -> list[Any]:
    from pyspark.sql import functions as F
    from pyspark.sql.types import DecimalType

    a, n, s, t, x, xs, m = (F.col(name) for name in ("a", "n", "s", "t", "x", "xs", "m"))
    return [
        *(
            a == 11,
            a != 1,
            ~(a == 1),
            a.between(1, 2),
            a.isin(1, 2),
            n.isNull(),
            n.isNotNull(),
            n.eqNullSafe(1),
            ~F.col("b"),
        ),
        *(
            (a > 1) & F.col("b") | n.isNull(),
            a % 2,
            -a,
            2 - x,
            x / 2,
            x**2,
            a.bitwiseAND(1),
            F.bitwise_not("a"),
            F.expr("a + 1 -- sum"),
        ),
        *(
            F.lit("o'x\\n\n"),
            F.lit(2**40),
            F.lit(1.5),
            F.lit(float("nan")),
            F.lit(Decimal("1.50")),
            F.lit(b"ab"),
            F.lit(None),
        ),
        *(
            F.lit(date(2020, 1, 2)),
            F.lit(datetime(2020, 1, 2, 3, 4, 5, 6)),
            F.lit(None).cast("int"),
            F.lit(5).cast("byte"),
            F.lit(True),
            F.lit([1, 2]),
        ),
        *(
            a.cast("decimal(10,2)"),
            a.cast(DecimalType(12, 3)),
            t.try_cast("int"),
            F.when(a > 1, "x").when(a == 1, "y").otherwise(None),
        ),
        *(F.col("s.f") * 2, s["f"], s.getField("g"), xs[0], m["k"], F.col("`odd.name`"), a.alias("other")),
        *(
            F.struct("a", F.lit(1).alias("q"), "s.f"),
            F.named_struct(F.lit("a"), F.lit(1)),
            F.create_map(F.lit("k"), a),
            F.array(a, n),
        ),
        *(
            t.like("p\\%%"),
            t.rlike("^p"),
            t.ilike("P%"),
            t.contains("x"),
            t.startswith("p"),
            t.substr(1, 2),
            F.concat_ws("-", "t", "t"),
        ),
        *(
            F.transform("xs", lambda e: e + 1),
            F.aggregate("xs", F.lit(0), lambda e, f: e + f),
            F.call_function("abs", a),
            F.coalesce(n, a),
        ),
    ]


def test_columns_have_the_text_of_the_same_expression(session: Any) -> None:
    from pyspark.sql import functions as F

    from deltaic.spark.expressions import sql_text

    kinds = (
        "a int, t string, xs array<int>, m map<string, int>, s struct<f: int, g: string>, x double, b"
        " boolean, n int, `odd.name` int"
    )
    frame = session.createDataFrame([(1, "p%x", [1, 2], {"k": 5}, (7, "b"), 3.5, True, None, 4)], kinds)
    pairs = [(column, F.expr(sql_text(column, "a test"))) for column in columns()]
    found = frame.select(
        *(
            side.alias(f"{name}{n}")
            for n, pair in enumerate(pairs)
            for name, side in zip("ct", pair, strict=True)
        )
    )
    row, types = found.first(), [field.dataType for field in found.schema]
    for number, (column, _) in enumerate(pairs):
        there, text = row[2 * number], row[2 * number + 1]
        assert (repr(there), types[2 * number]) == (repr(text), types[2 * number + 1]), column


def test_columns_without_a_text_are_refused(session: Any, path: str) -> None:
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    table = deltaic.spark.tables.DeltaTable.forPath(session, path)
    frame = session.range(1)
    over = F.row_number().over(Window.partitionBy("id").orderBy("id")) > 1
    for column in (
        frame.id == 1,
        F.col("id").desc(),
        F.udf(lambda value: True, "boolean")("id"),
        over,
        F.count("*") > 1,
    ):
        with pytest.raises(UnsupportedFeatureError, match="no SQL text"):
            table.delete(column)
    table.update(F.col("id") == 1, {"amount": F.col("amount") * 2 + F.lit(Decimal("0.5"))})
    table.delete(F.col("id").isin(3, 4))
    assert rows_at(path) == [(1, "a", 2.5), (2, "a", 2.0)]


def test_a_stream_writer_from_before_enable_starts(session: Any) -> None:
    """Such a writer has no record of its DataFrame."""
    frame = session.readStream.format("rate").load()
    writer = type(frame.writeStream)(frame._plan, session)
    writer.format("noop").start().stop()
