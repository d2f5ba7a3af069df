"""Columns that have no SQL text of their own, as conditions and values of delta-spark's API: `frame.x`,
lambdas, Python functions."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import deltaic.spark
from deltaic.engine.spark.native.column_text import Origins
from deltaic.errors import UnsupportedFeatureError
from deltaic.spark.expressions import sql_text
from deltaic.spark.tables import DeltaTable

pytest.importorskip("pyspark")


@pytest.fixture(params=["auto", "never"])
def session(spark: Any, request: pytest.FixtureRequest) -> Any:
    made = spark.newSession()
    deltaic.spark.enable(made, native=request.param)
    return made


@pytest.fixture
def table(session: Any, tmp_path: Path) -> DeltaTable:
    path = str(tmp_path / "t")
    rows = (
        "(1, array(1, 2), 10, named_struct('x', 1, 'y', 'a')), (2, array(5), 20, named_struct('x', 2, 'y',"
        " 'b')), (3, NULL, 30, NULL)"
    )
    frame = session.sql(f"SELECT * FROM VALUES {rows} AS t(id, a, x_1, st)")
    frame.write.format("delta").save(path)
    return DeltaTable.forPath(session, path)


def rows(table: DeltaTable) -> list[tuple[Any, ...]]:
    return sorted(tuple(row)[:3] for row in table.toDF().collect())


def test_texts(spark: Any) -> None:
    """Spark itself has parsed each text to the same expression."""
    from pyspark.sql import functions as F

    frame = spark.sql("SELECT 1 AS id, array(1) AS a, named_struct('x y', 1) AS `s t`").alias("q")
    of = Origins(lambda: [(frame, "the s")], spark)
    texts = {
        "(`the s`.id = 1)": frame.id == 1,
        "`the s`.`s t`['x y']": frame["s t"]["x y"],
        "((`the s`.id > 1) OR (NOT b))": (frame["id"] > 1) | ~F.col("b"),
        "CASE WHEN (`the s`.id = 1) THEN 2 ELSE `the s`.id END": F.when(frame.id == 1, 2).otherwise(frame.id),
    }
    for text, column in texts.items():
        assert sql_text(column, "set", of) == text
    nested = sql_text(
        F.transform("a", lambda x: F.aggregate("a", frame.id, lambda s, y: s + x * y)), "set", of
    )
    names = sorted(set(re.findall(r"__deltaic_\w+", nested)))
    assert len(names) == 3
    assert nested.count("->") == 2
    other = spark.range(1)
    with pytest.raises(UnsupportedFeatureError, match="condition: a column of another DataFrame; found id"):
        sql_text(other.id == 1, "condition", of)
    with pytest.raises(UnsupportedFeatureError, match="of target and source alike"):
        sql_text(frame.id == 1, "condition", Origins(lambda: [(frame, "t"), (frame, "s")], spark))


def test_update_and_delete(session: Any, table: DeltaTable) -> None:
    from pyspark.sql import functions as F

    frame = table.toDF()
    table.update(
        F.exists(frame.a, lambda x: x > 1),
        {
            "a": F.transform("a", lambda x, i: x + i + F.col("x_1")),
            "x_1": F.aggregate(frame["a"], F.lit(0), lambda s, x: s + x),
        },
    )
    assert rows(table) == [(1, [11, 13], 3), (2, [25], 5), (3, None, 30)]
    plus = F.udf(lambda value: value + 1, "int")
    table.update(
        table.toDF().id == 3,
        {"x_1": plus(frame.x_1), "a": F.filter(F.array(plus("id"), F.lit(9)), lambda x: x > 4)},
    )
    assert rows(table) == [(1, [11, 13], 3), (2, [25], 5), (3, [9], 31)]
    aliased = table.alias("t")
    aliased.delete((aliased.toDF().id == 1) | (F.col("t.id") == 2) | (frame["st.x"] == 7))
    assert rows(table) == [(3, [9], 31)]
    with pytest.raises(UnsupportedFeatureError, match="of another DataFrame"):
        table.delete(session.range(3).id == 1)


def test_merge(session: Any, table: DeltaTable) -> None:
    from pyspark.sql import functions as F

    source = session.createDataFrame([(1, [7], 100), (4, [8], 400)], "id int, a array<int>, x_1 int")
    target = table.toDF()
    merge = table.merge(source.alias("s"), target.id == source.id).whenMatchedUpdate(
        source.x_1 > target.x_1,
        {"x_1": source["x_1"] + target["x_1"], "a": F.transform(source.a, lambda x: x + F.col("s.id"))},
    )
    merge = merge.whenNotMatchedInsert(
        values={"id": source.id, "a": source.a, "x_1": F.udf(lambda value: -value, "int")("s.x_1")}
    )
    later = table.toDF()
    merge.whenNotMatchedBySourceUpdate(later.x_1 > 25, {"x_1": later.x_1 * 2}).execute()
    assert rows(table) == [(1, [8], 110), (2, [5], 20), (3, None, 60), (4, [8], -400)]
    again = table.toDF().where("id < 3")
    with pytest.raises(UnsupportedFeatureError, match="of another DataFrame"):
        table.merge(source, session.range(1).id == source.id)
    same = table.toDF()
    with pytest.raises(UnsupportedFeatureError, match="of target and source alike"):
        table.merge(same.where("id < 3"), same.id == again.id)
