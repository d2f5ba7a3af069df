"""CHAR(n) on Spark: values are padded when they are read and compared, whatever the number of spaces with
which they are stored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltaic
import deltaic.spark
from deltaic import DeltaTable
from deltaic.protocol.schema import CHAR_TYPES as KEY
from deltaic.protocol.schema import Array, Field, Schema, Struct

pytest.importorskip("pyspark")

STRUCT, ARRAY = "struct<x:char(3),y:int>", "array<char(3)>"
ROWS = [(1, "ab", "ab"), (2, "cd   ", "cd"), (3, "ef", "x"), (4, None, None)]
"""id, c and s as they are stored: delta-spark stores what a writer hands over, and padded text where it
copies a row."""
PADDED = {"ab   ", "cd   ", "ef   ", None}


@pytest.fixture(params=["auto", "never"])
def session(spark: Any, request: pytest.FixtureRequest) -> Any:
    made = spark.newSession()
    deltaic.spark.enable(made, native=request.param)
    return made


def char_table(path: str, partitioned: bool = False, vectors: bool = True) -> str:
    schema = Schema(
        [
            Field("id", "integer"),
            Field("c", "string", metadata={KEY: "char(5)"}),
            Field("s", "string"),
            Field("st", Struct([Field("x", "string"), Field("y", "integer")]), metadata={KEY: STRUCT}),
            Field("ar", Array("string"), metadata={KEY: ARRAY}),
        ]
    )
    properties = {"delta.enableDeletionVectors": str(vectors).lower()}
    DeltaTable.create(path, schema, partition_by=["c"] if partitioned else None, properties=properties)
    rows = [{"id": i, "c": c, "s": s, "st": {"x": "q", "y": i}, "ar": ["a", None]} for i, c, s in ROWS]
    for part in (rows[:2], rows[2:]):
        deltaic.write(path, pa.Table.from_pylist(part, schema=pa.schema(schema)), mode="append")
    return path


def stored(path: str) -> list[tuple[Any, ...]]:
    found = DeltaTable(path).scan(["id", "c", "s"]).to_arrow().to_pylist()
    return sorted(tuple(row.values()) for row in found)


@pytest.mark.parametrize("partitioned", [False, True])
def test_what_is_read(tmp_path: Path, session: Any, partitioned: bool) -> None:
    path = char_table(str(tmp_path / "t"), partitioned)
    frame = session.read.format("delta").load(path)
    assert {row.c for row in frame.collect()} == PADDED
    assert {row.c for row in session.sql(f"SELECT c FROM delta.`{path}`").collect()} == PADDED
    assert frame.where("id = 1").select("st.x", "ar").first() == ("q  ", ["a  ", None])
    assert frame.schema["c"].metadata == {KEY: "char(5)"}
    expected = {  # as delta-spark answers
        "c = 'ab'": [1],
        "c = 'ab '": [1],
        "c = 'ab   '": [1],
        "c = 'cd'": [2],
        "c <=> 'cd'": [2],
        "'cd' = c": [2],
        "c IN ('ab', 'cd')": [1, 2],
        "c <> 'ab'": [2, 3],
        "c > 'ab'": [2, 3],
        "c <= 'cd'": [1, 2],
        "c = s": [],
        "c LIKE 'ab'": [],
        "c LIKE 'ab%'": [1],
        "length(c) = 5": [1, 2, 3],
        "c IS NULL": [4],
        "st.x = 'q  '": [1, 2, 3, 4],
    }
    answers = frame.selectExpr(
        *(f"sort_array(collect_list(CASE WHEN {condition} THEN id END))" for condition in expected)
    ).first()
    assert dict(zip(expected, answers, strict=True)) == expected
    condition = "c IN ('ab', 'cd ')"
    for read in (
        frame.where(condition),
        deltaic.spark.read(session, path, where=condition),
        deltaic.spark.read(session, path, version=2).where(condition),
    ):
        assert sorted(row.id for row in read.collect()) == [1, 2]


@pytest.mark.parametrize(("partitioned", "vectors"), [(False, True), (True, False)])
def test_what_changes(tmp_path: Path, session: Any, partitioned: bool, vectors: bool) -> None:
    path = char_table(str(tmp_path / "t"), partitioned, vectors)
    session.sql(f"DELETE FROM delta.`{path}` WHERE c = 'cd'")
    assert stored(path) == [ROWS[0], ROWS[2], ROWS[3]]
    session.sql(f"UPDATE delta.`{path}` SET s = concat(c, '|') WHERE c IN ('ab ', 'zz')")
    assert [(i, s) for i, _, s in stored(path)] == [(1, "ab   |"), (3, "x"), (4, None)]
    source = "(SELECT 'ef   ' AS k, 'merged' AS v)"
    session.sql(
        f"MERGE INTO delta.`{path}` t USING {source} u ON t.c = u.k WHEN MATCHED AND t.c = 'ef' THEN UPDATE"
        " SET s = u.v"
    )
    assert [(i, s) for i, _, s in stored(path)] == [(1, "ab   |"), (3, "merged"), (4, None)]


def test_rows_that_are_only_moved_stay_as_they_are_stored(tmp_path: Path, session: Any) -> None:
    path = char_table(str(tmp_path / "t"))
    assert DeltaTable(path, spark=session).optimize.compact()
    assert stored(path) == ROWS
    copy = char_table(str(tmp_path / "copied"), vectors=False)
    session.sql(f"DELETE FROM delta.`{copy}` WHERE id = 2")
    assert stored(copy) == [ROWS[0], ROWS[2], ROWS[3]]


def test_settings_of_the_session(tmp_path: Path, session: Any) -> None:
    path = char_table(str(tmp_path / "t"))

    def ids(condition: str) -> list[int]:
        return sorted(row.id for row in session.read.format("delta").load(path).where(condition).collect())

    session.conf.set("spark.sql.readSideCharPadding", "false")
    assert (ids("c = 'ab'"), ids("c = 'cd'"), ids("length(c) = 2")) == ([1], [2], [1, 3])
    session.conf.set("spark.sql.legacy.charVarcharAsString", "true")
    assert (ids("c = 'ab'"), ids("c = 'cd'"), ids("length(c) = 2")) == ([1], [], [1, 3])
    session.sql(f"DELETE FROM delta.`{path}` WHERE c = 'cd'")
    assert stored(path) == ROWS


def test_a_copy_is_a_column_of_char(tmp_path: Path, session: Any) -> None:
    path, copy = char_table(str(tmp_path / "t")), str(tmp_path / "copy")
    session.read.format("delta").load(path).write.format("delta").save(copy)
    assert {field.name: field.metadata.get(KEY) for field in DeltaTable(copy).schema} == {
        "id": None,
        "c": "char(5)",
        "s": None,
        "st": STRUCT,
        "ar": ARRAY,
    }
    assert {row[1] for row in stored(copy)} == PADDED


def test_skipping_changes_no_answer(tmp_path: Path, session: Any) -> None:
    """A file of one row for each number of spaces: bounds are those of what is stored."""
    path = str(tmp_path / "t")
    schema = Schema([Field("id", "integer"), Field("c", "string", metadata={KEY: "char(4)"})])
    DeltaTable.create(path, schema)
    values = ["a", "a ", "a  ", "a   ", "aa", "b", "", " ", None, "a\t"]
    for number, value in enumerate(values):
        deltaic.write(
            path, pa.Table.from_pylist([{"id": number, "c": value}], schema=pa.schema(schema)), mode="append"
        )
    table = DeltaTable(path, spark=session)
    expected = {
        "c = 'a  '": [0, 1, 2, 3],
        "c IN ('', 'b')": [5, 6, 7],
        "c < 'a'": [6, 7, 9],
        "NOT c = 'a'": [4, 5, 6, 7, 9],
    }
    for condition, ids in expected.items():
        assert sorted(table.scan(["id"], condition).to_arrow()["id"].to_pylist()) == ids, condition
        assert (
            sorted(row.id for row in session.read.format("delta").load(path).where(condition).collect())
            == ids
        ), condition
    assert sorted(table.scan(["id"], "c = 'a'").to_arrow()["id"].to_pylist()) == [0, 1, 2, 3]
    assert table.scan(["id"], "c = 'a'").explain().files_skipped_by_statistics == 4
