"""CHAR(n) and VARCHAR(n) of a table that Spark made: each command refuses a longer value."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltaic
from deltaic import DeltaTable
from deltaic.errors import ConstraintViolationError, InvalidArgumentError, ProtocolError, SchemaMismatchError
from deltaic.protocol.schema import CHAR_TYPES as KEY
from deltaic.protocol.schema import Array, Field, Map, Schema, Struct
from deltaic.spark_sql.char_types import bounded_type, length_conditions

SCHEMA = Schema(
    [
        Field("id", "long"),
        Field("v", "string", metadata={KEY: "varchar(5)"}),
        Field("c", "string", metadata={KEY: "char(3)"}),
        Field(
            "s",
            Struct([Field("x-y", "string"), Field("n", "integer")]),
            metadata={KEY: "struct<`x-y`:varchar(2),n:int>"},
        ),
        Field("a", Array("string"), metadata={KEY: "array<char(2)>"}),
        Field("m", Map("string", "string"), metadata={KEY: "map<varchar(1),varchar(2)>"}),
    ]
)
FITTING: dict[str, Any] = {
    "id": 1,
    "v": "ünïco",
    "c": "ab",
    "s": {"x-y": "ab", "n": 1},
    "a": ["a", None],
    "m": [("k", "vv")],
}
TOO_LONG: dict[str, tuple[Any, str, str]] = {
    "v": ("abcdef", "v", "varchar(5)"),
    "c": ("abc ", "c", "char(3)"),  # spaces count, as in delta-spark
    "s": ({"x-y": "abc", "n": 1}, "s.x-y", "varchar(2)"),
    "a": (["a", "abc"], "a.element", "char(2)"),
    "m": ([("k", "vvv")], "m.value", "varchar(2)"),
}


def rows(*changes: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist([{**FITTING, **change} for change in changes], schema=pa.schema(SCHEMA))


@pytest.fixture
def table(tmp_path: Path) -> DeltaTable:
    made = DeltaTable.create(tmp_path / "t", SCHEMA)
    return deltaic.write(
        made, rows({}, {"id": 2, "v": None, "c": None, "s": None, "a": None, "m": None}), mode="append"
    )


@pytest.mark.parametrize("column", TOO_LONG)
def test_a_value_that_is_too_long_is_refused_by_every_write(table: DeltaTable, column: str) -> None:
    value, place, kind = TOO_LONG[column]
    data, before = rows({column: value}), table.version
    message = f"column {place} has a value that is longer than its type takes.*{kind}".replace(
        "(", r"\("
    ).replace(")", r"\)")
    for job in (
        {"mode": "append"},
        {"mode": "overwrite"},
        {"mode": "overwrite", "where": "id = 1"},
        {"mode": "append", "schema_mode": "merge"},
    ):
        with pytest.raises(ConstraintViolationError, match=message):
            deltaic.write(table, data, **job)
    with pytest.raises(ConstraintViolationError, match=message):
        table.merge(data, "t.id = s.id").when_matched_update_all().when_not_matched_insert_all().execute()
    with pytest.raises(ConstraintViolationError, match=message):
        table.merge(data, "t.id = s.id + 5").when_not_matched_insert_all().execute()
    assert DeltaTable(table.location).version == table.version == before


SHOWN = {
    "v": "v = abcdef",
    "s": "s.`x-y` = abc",
    "a": r"a = \[a, abc\]",
    "m": "m = {k -> vvv}",
}


@pytest.mark.parametrize("column", SHOWN)
def test_the_error_shows_the_value(table: DeltaTable, column: str) -> None:
    with pytest.raises(ConstraintViolationError, match=f"found 1 row, with {SHOWN[column]}; expected"):
        deltaic.write(table, rows({column: TOO_LONG[column][0]}), mode="append")


def test_changes_of_rows(table: DeltaTable) -> None:
    with pytest.raises(ConstraintViolationError, match="column v"):
        table.update({"v": "concat(v, 'x')"})
    with pytest.raises(ConstraintViolationError, match="column v"):
        deltaic.sql("INSERT INTO t (id, v) VALUES (7, '123456')", tables={"t": table})
    table.update({"v": "'12345'"}, "id = 2")
    deltaic.sql("INSERT INTO t (id, c) VALUES (7, '1')", tables={"t": table})
    assert sorted((row["id"], row["v"], row["c"]) for row in table.scan().to_arrow().to_pylist()) == [
        (1, "ünïco", "ab"),
        (2, "12345", None),
        (7, None, "1"),
    ]


def test_types_as_spark_writes_them() -> None:
    field = Field(
        "q`t",
        "string",
        metadata={KEY: "map<struct<`a``b`:varchar(3), d:decimal(10,2)>, array<array<CHAR(4)>>>"},
    )
    assert [(place, kind) for place, kind, _ in length_conditions(field)] == [
        ("q`t.key.a`b", "varchar(3)"),
        ("q`t.value.element.element", "char(4)"),
    ]
    assert bounded_type(Field("x", "string", metadata={KEY: "struct<a:decimal(3,1),b:string>"})) is None
    for wrong in ("varchar", "varchar(x)", "struct<a:varchar(3)", "char(2) char(2)", "map<char(1)>", 7):
        with pytest.raises(ProtocolError, match="column x"):
            bounded_type(Field("x", "string", metadata={KEY: wrong}))


def test_ddl_keeps_the_lengths() -> None:
    text = (
        "v varchar(5) NOT NULL COMMENT 'five', c CHARACTER(3), s STRUCT<`x-y`: VARCHAR(2) COMMENT 'two', n:"
        " INT>"
    )
    schema = Schema.from_ddl(text + ", m map<varchar(1), array<string>>, plain string")
    assert {field.name: field.metadata.get(KEY) for field in schema} == {
        "v": "varchar(5)",
        "c": "char(3)",
        "s": "struct<`x-y`:varchar(2),n:int>",
        "m": "map<varchar(1),array<string>>",
        "plain": None,
    }
    assert schema.field("v") == Field(
        "v", "string", nullable=False, metadata={KEY: "varchar(5)", "comment": "five"}
    )
    assert Schema.from_ddl(schema.to_ddl()).field("c") == schema.field("c")
    for wrong in ("varchar", "varchar()", "varchar(0)", "char(-1)", "char(x)"):
        with pytest.raises(InvalidArgumentError):
            Schema.from_ddl(f"v {wrong}")


def test_sql_creates_and_widens_such_columns(tmp_path: Path) -> None:
    where = f"delta.`{tmp_path / 't'}`"
    deltaic.sql(f"CREATE TABLE {where} (id BIGINT, v VARCHAR(3), c CHAR(2))")
    deltaic.sql(f"INSERT INTO {where} VALUES (1, 'abc', 'x')")
    with pytest.raises(ConstraintViolationError, match="column v"):
        deltaic.sql(f"INSERT INTO {where} VALUES (2, 'abcd', 'x')")
    assert [row["data_type"] for row in deltaic.sql(f"DESCRIBE {where}").to_pylist()] == [
        "bigint",
        "varchar(3)",
        "char(2)",
    ]
    for shorter in ("VARCHAR(2)", "CHAR(3)"):
        with pytest.raises(SchemaMismatchError, match="shorter"):
            deltaic.sql(f"ALTER TABLE {where} ALTER COLUMN v TYPE {shorter}")
    deltaic.sql(f"ALTER TABLE {where} ALTER COLUMN v TYPE VARCHAR(4)")
    deltaic.sql(f"ALTER TABLE {where} CHANGE COLUMN c c VARCHAR(2) COMMENT 'two'")
    deltaic.sql(f"ALTER TABLE {where} ADD COLUMNS (w VARCHAR(1))")
    deltaic.sql(f"INSERT INTO {where} VALUES (2, 'abcd', 'x', 'y')")
    with pytest.raises(ConstraintViolationError, match="column w"):
        deltaic.sql(f"INSERT INTO {where} VALUES (3, 'a', 'x', 'yy')")
    deltaic.sql(f"ALTER TABLE {where} ALTER COLUMN v TYPE STRING")
    deltaic.sql(f"INSERT INTO {where} VALUES (3, 'long enough', 'x', 'y')")
    with pytest.raises(SchemaMismatchError, match="shorter"):
        deltaic.sql(f"ALTER TABLE {where} ALTER COLUMN v TYPE VARCHAR(400)")
    assert [(row["col_name"], row["data_type"]) for row in deltaic.sql(f"DESCRIBE {where}").to_pylist()] == [
        ("id", "bigint"),
        ("v", "string"),
        ("c", "varchar(2)"),
        ("w", "varchar(1)"),
    ]
