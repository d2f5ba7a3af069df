"""Columns of user-defined types, such as the vectors of Spark ML, and Observations of written rows."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

import deltaic
from deltaic import Schema
from deltaic.errors import InvalidArgumentError
from deltaic.spark.tables import DeltaTable

pytest.importorskip("pyspark")
from pyspark.ml.linalg import DenseVector, SparseVector, Vectors, VectorUDT
from pyspark.sql import Observation
from pyspark.sql import functions as F

ROWS = [(1, Vectors.dense([1.0, 2.0])), (2, Vectors.sparse(3, [0], [5.0])), (3, None)]


@pytest.mark.parametrize("mode", ["none", "name", "id"])
def test_vectors_of_spark_ml(session: Any, tmp_path: Path, mode: str) -> None:
    path = str(tmp_path / "t")
    frame = session.createDataFrame(ROWS, ["id", "v"])
    # As delta-spark creates it: fields within the vectors are NOT NULL.
    deltaic.DeltaTable.create(
        path, Schema.from_json(frame.schema.json()), properties={"delta.columnMapping.mode": mode}
    )
    frame.write.format("delta").mode("append").save(path)

    def values() -> list[tuple[int, Any]]:
        return sorted((row.id, row.v) for row in session.read.format("delta").load(path).collect())

    assert values() == ROWS
    table = DeltaTable.forPath(session, path)
    changed = session.createDataFrame([(2, Vectors.dense([7.0])), (4, Vectors.dense([8.0]))], ["id", "v"])
    merge = table.alias("t").merge(changed.alias("s"), "t.id = s.id")
    merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    table.delete("id = 1")
    table.update("id = 3", {"v": "null"})
    assert values() == [(2, DenseVector([7.0])), (3, None), (4, DenseVector([8.0]))]
    table.optimize().executeCompaction()
    assert values() == [(2, DenseVector([7.0])), (3, None), (4, DenseVector([8.0]))]
    # without Spark they have the type of their values
    two = deltaic.DeltaTable(path).scan(["v.values"], where="id = 2").to_arrow().to_pylist()
    assert two == [{"v": {"values": [7.0]}}]


def test_vectors_within_other_types(session: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    frame = session.createDataFrame(ROWS[:2], ["id", "v"])
    frame = frame.select("id", F.struct("v").alias("s"), F.array("v").alias("a"))
    frame.write.format("delta").save(path)
    first, second = session.read.format("delta").load(path).orderBy("id").collect()
    assert (first.s.v, first.a) == (DenseVector([1.0, 2.0]), [DenseVector([1.0, 2.0])])
    assert second.s.v == SparseVector(3, {0: 5.0})


def test_a_vector_is_a_column_as_a_whole(session: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    DeltaTable.create(session).location(path).addColumn("id", "long").addColumn("v", VectorUDT()).execute()
    session.createDataFrame(ROWS, ["id", "v"]).write.format("delta").mode("append").save(path)
    session.sql(f"INSERT INTO delta.`{path}` (id) VALUES (4)")
    session.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    for change in ("ADD COLUMN v.x INT", "DROP COLUMN v.size", "RENAME COLUMN v.size TO x"):
        with pytest.raises(InvalidArgumentError, match="only a struct gets new fields"):
            session.sql(f"ALTER TABLE delta.`{path}` {change}")
    session.sql(f"ALTER TABLE delta.`{path}` RENAME COLUMN v TO features")
    frame = session.read.format("delta").load(path)
    assert frame.schema["features"].dataType == VectorUDT()
    assert sorted((row.id, row.features) for row in frame.collect()) == [*ROWS, (4, None)]


@pytest.mark.parametrize("rows", [5, 300_000])
def test_an_observation_of_written_rows_is_completed(session: Any, tmp_path: Path, rows: int) -> None:
    observation = Observation(f"observed {rows}")
    frame = session.range(rows).observe(observation, F.count(F.lit(1)).alias("n"))
    frame.write.format("delta").save(str(tmp_path / "t"))
    found: list[Any] = []
    waiting = threading.Thread(target=lambda: found.append(observation.get), daemon=True)
    waiting.start()
    waiting.join(30)
    assert found == [{"n": rows}]
