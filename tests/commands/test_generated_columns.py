"""Generated columns: which expressions may define one, and what each command computes or compares.
test_constraints.py has the cases in which each command compares them."""

from __future__ import annotations

from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from commands_model import rows

import deltaic
from deltaic import DeltaTable, Schema
from deltaic.errors import (
    ConstraintViolationError,
    DeltaError,
    InvalidArgumentError,
    SchemaMismatchError,
    UnsupportedFeatureError,
)
from deltaic.protocol.schema import Field

DDL = """id bigint, ts timestamp, day date not null generated always as (cast(ts as date)),
    twice bigint generated always as (id * 2), s string"""


def moment(day: int) -> datetime:
    return datetime(2024, 1, day, 12, tzinfo=timezone.utc)


def data(*days: tuple[int, int]) -> pa.Table:
    return pa.table(
        {
            "id": [number for number, _ in days],
            "ts": [moment(day) for _, day in days],
            "s": ["x" for _ in days],
        }
    )


def shown(table: DeltaTable) -> list[tuple[Any, ...]]:
    table = DeltaTable(table.location)
    return rows(table.scan(["id", "day", "twice"]).to_arrow())


def row(number: int, day: int) -> tuple[Any, ...]:
    return number, date(2024, 1, day), number * 2


@pytest.fixture(params=["embedded", "spark"])
def table(tmp_path: Path, request: pytest.FixtureRequest) -> DeltaTable:
    """Partitioned by a generated column, with rows (1, 1), (2, 2), (3, 3)."""
    DeltaTable.create(tmp_path / "t", DDL, partition_by="day")
    made = DeltaTable(
        tmp_path / "t", spark=request.getfixturevalue("spark") if request.param == "spark" else None
    )
    return deltaic.write(made, data((1, 1), (2, 2), (3, 3)), mode="append")


def test_what_is_not_given_is_computed(table: DeltaTable) -> None:
    assert shown(table) == [row(1, 1), row(2, 2), row(3, 3)]
    assert len(table.files(where="ts < timestamp'2024-01-02'").to_arrow()) == 1
    deltaic.write(table, data((4, 9)).append_column("twice", pa.array([8])), mode="append")
    with pytest.raises(
        ConstraintViolationError,
        match=r"generated column twice .* found 1 row, with id = 5, twice = 9; expected id \* 2",
    ):
        deltaic.write(table, data((5, 9)).append_column("twice", pa.array([9])), mode="append")
    deltaic.write(table, data((7, 9)), mode="overwrite", where="id IN (4, 7)")
    deltaic.write(table, data((8, 1)), mode="overwrite_partitions")
    assert shown(table) == [row(2, 2), row(3, 3), row(7, 9), row(8, 1)]
    deltaic.write(table, data((9, 1)), mode="overwrite")
    assert shown(table) == [row(9, 1)]


def test_update_computes_what_depends_on_a_change(table: DeltaTable) -> None:
    table.update({"id": "id + 10", "s": "'y'"}, "id = 1")
    table.update({"ts": "ts + interval 5 days"}, "id = 2")
    table.update({"s": "'z'"}, "id = 3")
    assert shown(table) == [row(11, 1), row(2, 7), row(3, 3)]
    table.update({"id": "id + 10", "twice": "2 * (id + 10)"}, "id = 2")
    with pytest.raises(ConstraintViolationError, match="generated column twice"):
        table.update({"id": "id + 10", "twice": "2 * id"}, "id = 3")
    assert shown(table) == [row(11, 1), row(12, 7), row(3, 3)]


def test_merge_computes_for_each_clause_what_it_does_not_give(table: DeltaTable) -> None:
    source = data((2, 20), (9, 21))
    computed = ["twice", "day"]
    merge = table.merge(source, "s.id = t.id")
    merge.when_matched_update_all(exclude=computed).when_not_matched_insert_all(exclude=computed).execute()
    assert shown(table) == [row(1, 1), row(2, 20), row(3, 3), row(9, 21)]
    (
        table.merge(data((1, 1), (2, 2), (30, 30), (31, 31)), "s.id = t.id")
        .when_matched_update({"id": "s.id + 100"}, "s.id = 1")
        .when_matched_update({"id": "200", "twice": "400"})
        .when_not_matched_insert({"id": "s.id", "ts": "s.ts"}, "s.id = 30")
        .when_not_matched_insert(
            {"id": "s.id", "ts": "s.ts", "twice": "s.id * 2", "day": "cast(s.ts as date)"}
        )
        .when_not_matched_by_source_update({"s": "'kept'"})
        .execute()
    )
    assert shown(table) == [row(101, 1), row(200, 20), row(3, 3), row(30, 30), row(31, 31), row(9, 21)]
    with pytest.raises(ConstraintViolationError, match="generated column twice"):
        table.merge(source, "s.id = t.id").when_not_matched_insert(
            {"id": "s.id", "ts": "s.ts", "twice": "1"}
        ).execute()


def test_statements(tmp_path: Path) -> None:
    name = f"delta.`{tmp_path / 't'}`"
    deltaic.sql(
        f"CREATE TABLE {name} (a INT, b STRING GENERATED ALWAYS AS (concat('n', cast(a AS STRING))), c INT"
        " DEFAULT 5)"
    )
    deltaic.sql(f"INSERT INTO {name} (a) VALUES (1), (2)")
    deltaic.sql(f"INSERT INTO {name} VALUES (3, 'n3', DEFAULT)")
    deltaic.sql(f"UPDATE {name} SET a = 20 WHERE a = 2")
    deltaic.sql(
        f"MERGE INTO {name} t USING (SELECT 9 AS a) s ON t.a = s.a WHEN NOT MATCHED THEN INSERT (a) VALUES"
        " (s.a)"
    )
    assert rows(DeltaTable(tmp_path / "t")) == [(1, "n1", 5), (20, "n20", 5), (3, "n3", 5), (9, "n9", 5)]
    with pytest.raises(ConstraintViolationError, match="generated column b"):
        deltaic.sql(f"INSERT INTO {name} VALUES (3, 'n4', 1)")
    deltaic.sql(f"DELETE FROM {name} WHERE a > 1")
    deltaic.sql(f"INSERT INTO {name} VALUES (4, DEFAULT, 6), (5, DEFAULT, DEFAULT)")
    deltaic.sql(f"UPDATE {name} SET a = 7, b = DEFAULT WHERE a = 4")
    deltaic.sql(
        f"MERGE INTO {name} t USING (SELECT 8 AS a) s ON t.a = s.a WHEN NOT MATCHED THEN INSERT (a, b, c)"
        " VALUES (s.a, DEFAULT, DEFAULT)"
    )
    assert rows(DeltaTable(tmp_path / "t")) == [(1, "n1", 5), (5, "n5", 5), (7, "n7", 6), (8, "n8", 5)]
    with pytest.raises(UnsupportedFeatureError, match="in all rows or in none"):
        deltaic.sql(f"INSERT INTO {name} VALUES (3, 'n3', 1), (4, DEFAULT, 1)")


@pytest.mark.parametrize(
    ("ddl", "error", "message"),
    [
        ("a int, b int generated always as (a + 1L)", SchemaMismatchError, "found long; expected integer"),
        ("a int, b int generated always as (nope)", InvalidArgumentError, "no column nope"),
        (
            "a int, b int generated always as (a), c int generated always as (b)",
            InvalidArgumentError,
            "another generated column; found b",
        ),
        ("a int, b int generated always as (b)", InvalidArgumentError, "another generated column; found b"),
        ("a int, b int generated always as (a +)", InvalidArgumentError, "generated column b"),
        ("a int, b double generated always as (rand())", UnsupportedFeatureError, "function rand"),
        (
            "a int, b date generated always as (current_date)",
            UnsupportedFeatureError,
            "function current_date",
        ),
        ("a int, b int generated always as (max(a))", UnsupportedFeatureError, "function max"),
        (
            "a int, b int generated always as (row_number() over (order by a))",
            UnsupportedFeatureError,
            "function row_number",
        ),
        ("a int, b int generated always as ((select 1))", DeltaError, "SELECT"),
        ("a int, b int generated always as (a) default 3", InvalidArgumentError, "has no default"),
    ],
)
def test_what_is_no_generated_column(tmp_path: Path, ddl: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        DeltaTable.create(tmp_path / "t", ddl)
    assert not DeltaTable.exists(tmp_path / "t")


FORMS = {
    "year(ts)": "int",
    "date_format(ts, 'yyyy-MM')": "string",
    "date_trunc('HOUR', ts)": "timestamp",
    "CASE WHEN n IN (1, 2) AND s LIKE 'a%' THEN upper(s) ELSE 'rand()' END": "string",
    "CAST(n AS DECIMAL(10, 2)) * 2": "decimal(12,2)",
    "r.x + coalesce(n, 0)": "int",
    "element_at(a, 1)": "int",
    "transform(a, x -> x + 1)": "array<int>",
    "named_struct('k', n, 'v', s)": "struct<k: int, v: string>",
    "sha2(s, 256) -- current_date(": "string",
    "`current_date`": "date",
}


@pytest.mark.parametrize("text", FORMS)
def test_what_may_be_one(tmp_path: Path, text: str) -> None:
    base = Schema.from_ddl(
        "n int, s string, ts timestamp, a array<int>, r struct<x: int>, `current_date` date"
    )
    kind = Schema.from_ddl(f"g {FORMS[text]}").field("g").type
    path = tmp_path / "t"
    DeltaTable.create(path, Schema([*base, Field("g", kind, metadata={"delta.generationExpression": text})]))
    row = {"n": 1, "s": "abc", "ts": moment(1), "a": [5], "r": {"x": 2}, "current_date": date(2024, 1, 2)}
    table = deltaic.write(
        path, pa.Table.from_pylist([row, dict.fromkeys(row)], schema=pa.schema(base)), mode="append"
    )
    assert rows(table.scan(where=f"NOT (g <=> ({text}\n))")) == []
    deltaic.write(table, table.scan().to_arrow(), mode="append")


def test_columns_that_an_expression_reads_stay(tmp_path: Path) -> None:
    properties = {"delta.columnMapping.mode": "name", "delta.enableTypeWidening": True}
    table = DeltaTable.create(
        tmp_path / "t", "a int, b int generated always as (a + 1), c int", properties=properties
    )
    for change in (
        lambda: table.alter.drop_columns("a"),
        lambda: table.alter.rename_column("a", "x"),
        lambda: table.alter.change_column("a", type="long"),
        lambda: table.alter.change_column("b", type="long"),
        lambda: table.alter.add_columns("d int generated always as (a)"),
        lambda: table.alter.set_column_metadata("c", {"delta.generationExpression": "a"}),
    ):
        with pytest.raises(InvalidArgumentError):
            change()
    assert table.version == 0


def test_a_copy_of_the_rows_has_plain_columns(tmp_path: Path) -> None:
    table = DeltaTable.create(tmp_path / "t", "a int, b int generated always as (a + 1)")
    deltaic.write(table, pa.table({"a": pa.array([1], pa.int32())}), mode="append")
    copy = deltaic.write(tmp_path / "copy", DeltaTable(tmp_path / "t").scan(["b"]))
    assert dict(copy.schema.field("b").metadata) == {}
    assert "generatedColumns" not in (copy.protocol.writer_features or ())


def test_without_the_feature_it_is_a_plain_column(tmp_path: Path) -> None:
    """PROTOCOL.md, "Generated Columns": the metadata counts where the protocol has the feature."""
    path = tmp_path / "t"
    DeltaTable.create(
        path, "a int, b int generated always as (a + 1)", properties={"delta.enableDeletionVectors": False}
    )
    log = path / "_delta_log" / f"{0:020}.json"
    log.write_text(
        log.read_text()
        .replace('"minWriterVersion":7', '"minWriterVersion":2')
        .replace(',"writerFeatures":["generatedColumns"]', "")
    )
    (path / "_delta_log" / f"{0:020}.crc").unlink(missing_ok=True)
    table = deltaic.write(path, pa.table({"a": pa.array([1], pa.int32())}), mode="append")
    assert rows(table) == [(1, None)]
