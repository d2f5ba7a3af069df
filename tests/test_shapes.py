"""Geographic columns: WKB passes unchanged through every command, under Parquet's types GEOMETRY and
GEOGRAPHY."""

from __future__ import annotations

import json
import struct

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deltaic
from deltaic import Array, DeltaTable, Field, Schema, Struct
from deltaic.errors import InvalidArgumentError, SchemaMismatchError, UnsupportedFeatureError

SCHEMA = Schema(
    [
        Field("id", "long"),
        Field("place", "geometry(OGC:CRS84)"),
        Field("area", "geography(EPSG:4326, karney)"),
        Field("inside", Struct([Field("corners", Array("geometry(EPSG:3857)"))])),
    ]
)


def point(x: float, y: float) -> bytes:
    return struct.pack("<BIdd", 1, 1, x, y)


def row(number: int) -> dict[str, object]:
    if number % 4 == 3:
        return {"id": number, "place": None, "area": None, "inside": None}
    corners = {"corners": [point(number, 2), None]}
    return {"id": number, "place": point(number, 0), "area": point(number, 1), "inside": corners}


def rows(*numbers: int) -> pa.Table:
    inside = pa.struct([("corners", pa.list_(pa.binary()))])
    types = pa.schema([("id", pa.int64()), ("place", pa.binary()), ("area", pa.binary()), ("inside", inside)])
    return pa.Table.from_pylist([row(number) for number in numbers], types)


def found(table: DeltaTable) -> list[dict[str, object]]:
    return sorted(table.scan().to_arrow().to_pylist(), key=lambda each: each["id"])


@pytest.fixture
def table(tmp_path):
    return deltaic.write(DeltaTable.create(tmp_path / "t", SCHEMA), rows(1, 2, 3, 4), mode="append")


def test_every_command_passes_shapes_on(table, tmp_path):
    assert "geospatial" in table.detail().table_features
    assert found(table) == [row(number) for number in (1, 2, 3, 4)]
    table.delete("id = 2")
    table.update({"place": "NULL"}, "id = 4")
    (
        table.merge(rows(1, 5), "t.id = s.id", target_alias="t", source_alias="s")
        .when_not_matched_insert_all()
        .execute()
    )
    table.update({"id": "id + 10"})
    expected = [
        {**row(1), "id": 11},
        {**row(3), "id": 13},
        {**row(4), "id": 14, "place": None},
        {**row(5), "id": 15},
    ]
    assert found(table) == expected
    table.optimize.compact()
    table.checkpoint()
    assert found(DeltaTable(table.location)) == expected
    deltaic.sql(
        "INSERT INTO t SELECT id + 100, place, area, inside FROM t WHERE id = 11", tables={"t": table}
    )
    assert found(table)[-1] == {**row(1), "id": 111}
    copy = table.clone(tmp_path / "copy", shallow=False)
    assert found(copy) == found(table)
    table.restore(1)
    assert found(table) == [row(number) for number in (1, 2, 3, 4)]


def test_data_files_name_the_types(table):
    (path,) = table.files().to_arrow()["path"].to_pylist()
    columns = pq.ParquetFile(f"{table.location}/{path}").schema
    kinds = {
        columns.column(index).path: str(columns.column(index).logical_type) for index in range(len(columns))
    }
    assert kinds == {
        "id": "None",
        "place": "Geometry(crs=OGC:CRS84)",
        "area": "Geography(crs=EPSG:4326, algorithm=karney)",
        "inside.corners.list.element": "Geometry(crs=EPSG:3857)",
    }


def test_the_log_has_no_bounds_of_bytes(table):
    log = table.location + "/_delta_log/00000000000000000001.json"
    with open(log) as file:
        stats = next(json.loads(line)["add"]["stats"] for line in file if "add" in json.loads(line))
    assert json.loads(stats)["minValues"] == {"id": 1}
    assert json.loads(stats)["nullCount"]["place"] == 1


def test_boxes_that_others_wrote_leave_out_no_row(table):
    """delta-io writes the corners of a file's box as text in WKT."""
    log = f"{table.location}/_delta_log/00000000000000000001.json"
    with open(log) as file:
        actions = [json.loads(line) for line in file]
    for action in actions:
        if add := action.get("add"):
            stats = json.loads(add["stats"])
            stats["minValues"]["place"], stats["maxValues"]["place"] = "POINT(1 0)", "POINT(4 0)"
            add["stats"] = json.dumps(stats)
    with open(log, "w") as file:
        file.writelines(json.dumps(action) + "\n" for action in actions)
    again = DeltaTable(table.location)
    assert sorted(again.scan(columns=["id"], where="place IS NOT NULL").to_arrow()["id"].to_pylist()) == [
        1,
        2,
        4,
    ]
    assert again.scan(where="place IS NULL").to_arrow()["id"].to_pylist() == [3]
    again.checkpoint()
    assert found(DeltaTable(table.location)) == [row(number) for number in (1, 2, 3, 4)]


def test_sql_passes_shapes_on_and_refuses_to_look_inside(table):
    def answer(text: str) -> list[dict[str, object]]:
        return deltaic.sql(text, tables={"t": table}).to_arrow().to_pylist()

    assert answer("SELECT count(place) AS n, typeof(max_by(area, id)) AS kind FROM t") == [
        {"n": 3, "kind": "geography(EPSG:4326, karney)"}
    ]
    assert answer("SELECT CAST(place AS BINARY) AS b FROM t WHERE id = 1") == [{"b": point(1, 0)}]
    assert answer("SELECT typeof(CAST(X'01' AS geography(OGC:CRS84, karney))) AS k") == [
        {"k": "geography(OGC:CRS84, karney)"}
    ]
    for text in (
        "place = place",
        "hash(place)",
        "min(place)",
        "CAST(place AS STRING)",
        "place || place",
        "to_json(struct(place))",
    ):
        with pytest.raises(UnsupportedFeatureError, match="geometry"):
            answer(f"SELECT {text} FROM t")
    for text in (
        "SELECT DISTINCT place FROM t",
        "SELECT place FROM t UNION SELECT place FROM t",
        "SELECT count(*) FROM t GROUP BY place",
    ):
        with pytest.raises(UnsupportedFeatureError, match="geometry"):
            answer(text)
    with pytest.raises(InvalidArgumentError, match="no order"):
        answer("SELECT id FROM t ORDER BY place")


def test_a_shape_goes_into_a_column_of_its_type_alone(table):
    with pytest.raises(SchemaMismatchError, match=r"geography\(EPSG:4326, karney\)"):
        table.update({"place": "area"})
    with pytest.raises(SchemaMismatchError, match="string"):
        deltaic.write(table, pa.table({"id": [9], "place": ["POINT(1 2)"]}), mode="append")
    assert found(table) == [row(number) for number in (1, 2, 3, 4)]


def test_no_order_no_partition(table, tmp_path):
    with pytest.raises(InvalidArgumentError, match="partitioned"):
        DeltaTable.create(tmp_path / "p", SCHEMA, partition_by=["place"])
    with pytest.raises(InvalidArgumentError, match="place"):
        table.alter.cluster_by("place")


def test_ddl_names_shapes_as_delta_and_as_spark():
    schema = Schema.from_ddl(
        "a geometry(OGC:CRS84) not null, b array<GEOGRAPHY( EPSG:4326 ,karney)>, c GEOMETRY(4326), d"
        " geography(4326)"
    )
    assert [item.type for item in schema] == [
        "geometry(OGC:CRS84)",
        Array("geography(EPSG:4326, karney)"),
        "geometry(OGC:CRS84)",
        "geography(OGC:CRS84, spherical)",
    ]
    assert Schema.from_ddl(schema.to_ddl()) == schema
    for text in (
        "a geometry(x y)",
        "a geometry(7)",
        "a geography(OGC:CRS84)",
        "a geography(OGC:CRS84, straight)",
    ):
        with pytest.raises(InvalidArgumentError, match="not a type of shapes"):
            Schema.from_ddl(text)
    for text in ("a geometry", "a geometry("):
        with pytest.raises(InvalidArgumentError, match="does not parse"):
            Schema.from_ddl(text)
