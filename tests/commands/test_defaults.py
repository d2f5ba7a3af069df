"""Column defaults: rows get them if their writer does not name the column; existing rows never do.

Source: PROTOCOL.md, "Default Columns"; Spark's ALTER TABLE ... SET DEFAULT.
"""

from __future__ import annotations

import datetime
from pathlib import Path

import pyarrow as pa
import pytest

import deltaic
from deltaic import DeltaTable
from deltaic.errors import DeltaError, InvalidArgumentError, SchemaMismatchError, UnsupportedFeatureError

DDL = (
    "id bigint, n int default 5, name string not null default 'x', d date default date'2020-01-02', m"
    " decimal(10,2) default 1.5"
)


def rows(table: DeltaTable) -> list[dict[str, object]]:
    return sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"])


def test_a_new_table_has_them_and_writers_may_leave_columns_out(tmp_path: Path) -> None:
    table = DeltaTable.create(tmp_path / "t", DDL)
    assert "allowColumnDefaults" in (table.protocol.writer_features or ())
    deltaic.write(table, pa.table({"id": [1]}), mode="append")
    deltaic.write(
        table, pa.table({"id": [2], "n": pa.array([None], pa.int32()), "name": ["y"]}), mode="append"
    )
    day, money = datetime.date(2020, 1, 2), pa.scalar(1.5).cast(pa.decimal128(10, 2)).as_py()
    assert rows(table) == [
        {"id": 1, "n": 5, "name": "x", "d": day, "m": money},
        {"id": 2, "n": None, "name": "y", "d": day, "m": money},
    ]
    deltaic.sql("INSERT INTO t (id, n) VALUES (3, 7)", tables={"t": table})
    assert rows(table)[2] == {"id": 3, "n": 7, "name": "x", "d": day, "m": money}


def test_alter_sets_them_for_rows_to_come(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path / "t", pa.table({"id": [1], "n": pa.array([None], pa.int64())}))
    table.alter.change_column("N", default="40 + 2")
    assert table.schema.field("n").metadata == {"CURRENT_DEFAULT": "40 + 2"}
    assert "allowColumnDefaults" in (table.protocol.writer_features or ())
    deltaic.write(table, pa.table({"id": [2]}), mode="append")
    assert rows(table) == [{"id": 1, "n": None}, {"id": 2, "n": 42}]
    deltaic.sql("ALTER TABLE t ALTER COLUMN n SET DEFAULT 43", tables={"t": table})
    deltaic.write(table, pa.table({"id": [3]}), mode="append")
    table.alter.change_column("n", default="null")
    deltaic.write(table, pa.table({"id": [4]}), mode="append")
    assert [row["n"] for row in rows(table)] == [None, 42, 43, None]


def test_merge_inserts_them_and_update_leaves_them(tmp_path: Path) -> None:
    table = DeltaTable.create(tmp_path / "t", "id bigint, n int default 5, s string")
    deltaic.write(table, pa.table({"id": [1]}), mode="append")
    source = pa.table({"id": [1, 2], "s": ["u", "i"]})
    merge = (
        table.merge(source, "t.id = s.id")
        .when_matched_update({"s": "s.s", "n": "null"})
        .when_not_matched_insert({"id": "s.id"})
    )
    merge.execute()
    assert rows(table) == [{"id": 1, "n": None, "s": "u"}, {"id": 2, "n": 5, "s": None}]
    table.merge(pa.table({"id": [3], "s": ["a"]}), "t.id = s.id").when_not_matched_insert_all(
        exclude=["n"]
    ).execute()
    assert rows(table)[2] == {"id": 3, "n": 5, "s": "a"}
    table.update({"s": "'v'"}, "id = 1")
    assert rows(table)[0] == {"id": 1, "n": None, "s": "v"}


def test_what_is_no_default_is_refused(tmp_path: Path) -> None:
    for ddl, error in [
        ("a int default b, b int", InvalidArgumentError),
        ("a tinyint default 1000", DeltaError),
        ("a boolean default date'2020-01-01'", DeltaError),
        ("a int default no_such_function()", UnsupportedFeatureError),
        ("a int default 1 / 0", DeltaError),
    ]:
        with pytest.raises(error):
            DeltaTable.create(tmp_path / "t", ddl)
        assert not DeltaTable.exists(tmp_path / "t")
    table = DeltaTable.create(tmp_path / "u", "a int, s struct<x: int>")
    with pytest.raises(InvalidArgumentError, match="top-level column"):
        table.alter.change_column("s.x", default="1")
    with pytest.raises(InvalidArgumentError, match="older rows"):
        table.alter.add_columns("b int default 1")
    with pytest.raises(SchemaMismatchError, match="column a"):
        table.alter.change_column("a", default="array(1)")
    assert table.version == 0


def test_a_column_that_data_brings_has_none(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path / "t", pa.table({"id": [1]}))
    field = pa.field("n", pa.int64(), metadata={"CURRENT_DEFAULT": "5"})
    deltaic.write(
        table,
        pa.table([[2], [3]], schema=pa.schema([pa.field("id", pa.int64()), field])),
        mode="append",
        schema_mode="merge",
    )
    assert table.schema.field("n").metadata == {}


def test_the_word_default_in_sql(tmp_path: Path) -> None:
    table = DeltaTable.create(tmp_path / "t", "id bigint, n int default 5, s string")
    deltaic.write(table, pa.table({"id": [1, 2], "n": pa.array([7, 8], pa.int32())}), mode="append")
    source = pa.table({"id": [2, 3]})
    tables = {"t": table, "s": source}
    deltaic.sql("UPDATE t AS x SET x.n = DEFAULT, s = DEFAULT WHERE id = 1", tables=tables)
    deltaic.sql(
        "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET t.n = DEFAULT, s = 'u'"
        " WHEN NOT MATCHED THEN INSERT (id, n, s) VALUES (s.id, DEFAULT, DEFAULT)",
        tables=tables,
    )
    assert rows(table) == [
        {"id": 1, "n": 5, "s": None},
        {"id": 2, "n": 5, "s": "u"},
        {"id": 3, "n": 5, "s": None},
    ]
    deltaic.sql("ALTER TABLE t ALTER COLUMN n DROP DEFAULT", tables=tables)
    deltaic.write(table, pa.table({"id": [4]}), mode="append")
    assert rows(table)[3] == {"id": 4, "n": None, "s": None}
