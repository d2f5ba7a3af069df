"""Tables with geographic columns on Spark: they can be read and rows can be deleted; commands that would
write such rows are refused before they start."""

from __future__ import annotations

import struct
from typing import Any

import pyarrow as pa
import pytest

import deltaic
import deltaic.spark
from deltaic import DeltaTable, Field, Schema
from deltaic.errors import UnsupportedFeatureError

pytest.importorskip("pyspark")

POINT = struct.pack("<BIdd", 1, 1, 1.0, 2.0)


@pytest.fixture
def session(spark: Any) -> Any:
    made = spark.newSession()
    deltaic.spark.enable(made)
    return made


def refused_by_spark_4_1(session, path):
    """Spark 4.1 reads no shapes of Parquet files, and its types of shapes are off."""
    if not session.version.startswith("4.1."):
        return False
    with pytest.raises(UnsupportedFeatureError, match="Geospatial feature is disabled"):
        DeltaTable(path, spark=session).scan().to_arrow()
    return True


def test_shapes_are_read_and_never_written(session, tmp_path):
    path = str(tmp_path / "t")
    table = DeltaTable.create(path, Schema([Field("id", "long"), Field("place", "geometry(OGC:CRS84)")]))
    deltaic.write(table, pa.table({"id": [1, 2, 3], "place": [POINT, POINT, None]}), mode="append")
    if refused_by_spark_4_1(session, path):
        return
    name = f"delta.`{path}`"
    session.sql(f"DELETE FROM {name} WHERE id = 2").collect()
    assert [
        (row.id, row.b)
        for row in session.sql(f"SELECT id, st_asbinary(place) AS b FROM {name} ORDER BY id").collect()
    ] == [
        (1, POINT),
        (3, None),
    ]
    on_spark = DeltaTable(path, spark=session)
    assert on_spark.scan(where="id = 1").to_arrow().to_pylist() == [{"id": 1, "place": POINT}]
    before = DeltaTable(path)
    one = f"SELECT 9L AS id, st_geomfromwkb(X'{POINT.hex()}', 4326) AS place"
    for text in (
        f"UPDATE {name} SET id = 7 WHERE id = 1",
        f"INSERT INTO {name} {one}",
        f"MERGE INTO {name} t USING ({one}) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *",
    ):
        with pytest.raises(UnsupportedFeatureError, match=r"column place.*geometry\(OGC:CRS84\)"):
            session.sql(text).collect()
    after = DeltaTable(path)
    assert after.version == before.version
    assert sorted(after.scan().to_arrow()["id"].to_pylist()) == [1, 3]


def test_shapes_within_columns_come_to_the_driver(session, tmp_path):
    path = str(tmp_path / "t")
    shape = "geometry(OGC:CRS84)"
    place = deltaic.Struct([Field("a.b", shape), Field("n", "long")])
    columns = [
        Field("id", "long"),
        Field("s", place),
        Field("l", deltaic.Array(shape)),
        Field("m", deltaic.Map("string", place)),
    ]
    table = DeltaTable.create(path, Schema(columns))
    full = {"a.b": POINT, "n": 1}
    rows = [
        {"id": 1, "s": full, "l": [POINT, None], "m": [("k", full), ("l", None)]},
        {"id": 2, "s": None, "l": None, "m": None},
        {"id": 3, "s": {"a.b": None, "n": None}, "l": [], "m": []},
    ]
    deltaic.write(table, pa.Table.from_pylist(rows, schema=table.scan().to_arrow().schema), mode="append")
    if refused_by_spark_4_1(session, path):
        return
    found = DeltaTable(path, spark=session).scan().to_arrow()
    assert found.schema.equals(table.scan().to_arrow().schema)
    assert sorted(found.to_pylist(), key=lambda row: row["id"]) == rows
