"""UPDATE, with vectors and by rewriting files."""

from __future__ import annotations

from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from commands_model import Make, asked, rows

import deltaic
from deltaic import lit
from deltaic.errors import (
    ConstraintViolationError,
    InvalidArgumentError,
    InvalidTypeError,
    SchemaMismatchError,
)


@pytest.mark.parametrize(
    ("changes", "where", "columns"),
    [
        ({"name": "'new'"}, "id = 5", "id, grp, CASE WHEN id = 5 THEN 'new' ELSE name END, x"),
        (
            {"x": "x * 2", "grp": "grp + 1"},
            "name = 'n3'",
            (
                "id, grp + (coalesce(name = 'n3', false))::int, name, x * (1 + coalesce(name = 'n3',"
                " false)::int)"
            ),
        ),
        (
            {"X": "id", "ID": "id + 1000"},
            "id > 97",
            "CASE WHEN id > 97 THEN id + 1000 ELSE id END, grp, name, CASE WHEN id > 97 THEN id ELSE x END",
        ),
        ({"name": None}, None, "id, grp, NULL, x"),
        ({}, "id > 97", "id, grp, name, x"),
        (
            {"grp": 7},
            "name rlike '3'",
            "id, CASE WHEN regexp_matches(name, '3') THEN 7 ELSE grp END, name, x",
        ),
    ],
)
@pytest.mark.parametrize("files", [1, 4])
def test_rows(
    make: Make, sample: pa.Table, changes: dict[str, Any], where: str | None, columns: str, files: int
) -> None:
    table = make(sample, files=files)
    metrics = table.update(changes, where)
    assert rows(table) == asked(f"SELECT {columns} FROM t", t=sample)
    spoken = "true" if where is None else where.replace("name rlike '3'", "regexp_matches(name, '3')")
    assert metrics["num_updated_rows"] == asked(f"SELECT count(*) FROM t WHERE {spoken}", t=sample)[0][0]
    assert rows(table.at(files - 1)) == rows(sample)


def test_every_expression_sees_the_old_row(make: Make) -> None:
    table = make(pa.table({"a": [1, 2], "b": [10, 20]}))
    table.update({"a": "b", "b": "a"})
    assert rows(table) == [(10, 1), (20, 2)]


def test_what_is_written(make: Make, vectors: bool) -> None:
    table = make(pa.table({"id": range(10_000), "payload": ["x" * 100] * 10_000}))
    metrics = table.update({"payload": "'y'"}, "id = 777")
    assert metrics["num_added_files"] == 1
    if vectors:
        assert metrics["num_copied_rows"] == metrics["num_removed_bytes"] == 0
        assert metrics["num_removed_files"] == metrics["num_deletion_vectors_added"] == 1
    else:
        assert metrics["num_copied_rows"] == 9_999
        assert metrics["num_removed_files"] == 1


def test_partition_values_change(make: Make, sample: pa.Table) -> None:
    table = make(sample, partition_by="grp")
    table.update({"grp": "grp + 10"}, "id < 30")
    assert rows(table) == asked(
        "SELECT id, CASE WHEN id < 30 THEN grp + 10 ELSE grp END, name, x FROM t", t=sample
    )
    assert {row["grp"] for row in table.partitions().to_arrow().to_pylist()} == {0, 1, 2, 10, 11, 12}


def test_struct_fields(make: Make) -> None:
    table = make(pa.table({"id": [1, 2], "s": [{"a": 1, "b": {"c": "x"}}, {"a": 2, "b": {"c": "y"}}]}))
    table.update({"s.b.c": "'new'", "s.`a`": "id + 100"}, "id = 2")
    assert rows(table) == [(1, {"a": 1, "b": {"c": "x"}}), (2, {"a": 102, "b": {"c": "new"}})]


def test_literals_of_python(make: Make) -> None:
    values: dict[str, Any] = {
        "s": lit("O'Ne\\il\n"),
        "i": -5,
        "d": date(2024, 2, 29),
        "ts": datetime(2024, 1, 1, 12, 30, 0, 5, tzinfo=timezone.utc),
        "n": datetime(2024, 1, 1, 12, 30),
        "e": Decimal("12.34"),
        "b": b"\x00\xff",
        "f": True,
    }
    schema = "s string, i bigint, d date, ts timestamp, n timestamp_ntz, e decimal(10,2), b binary, f boolean"
    empty = {name: pa.nulls(1) for name in values}
    path = make(pa.table({"x": [1]})).location + "-typed"
    table = deltaic.DeltaTable.create(path, schema)
    table = deltaic.write(table, pa.table(empty), mode="append")
    table.update(values)
    assert table.scan().to_arrow().to_pylist() == [{**values, "s": "O'Ne\\il\n"}]


def test_a_value_that_does_not_fit(make: Make) -> None:
    table = make(pa.table({"id": pa.array([1, 2], pa.int64()), "small": pa.array([1, 2], pa.int8())}))
    with pytest.raises(SchemaMismatchError, match="small"):
        table.update({"small": "id * 1000"}, "id = 2")
    with pytest.raises(SchemaMismatchError, match="small"):
        table.update({"small": "'word'"})
    with pytest.raises(SchemaMismatchError, match="small"):
        table.update({"small": "array(1)"})
    assert table.version == 0
    table.update({"small": "id * 100"}, casting="try")
    assert rows(table) == [(1, 100), (2, None)]


def test_an_expression_that_fails_leaves_nothing(make: Make) -> None:
    table = make(pa.table({"id": [1, 2, 0]}))
    before = sorted(path for path in Path(table.location).rglob("*") if path.is_file())
    with pytest.raises(InvalidArgumentError, match="DIVIDE_BY_ZERO"):
        table.update({"id": "1 div id"})
    assert sorted(path for path in Path(table.location).rglob("*") if path.is_file()) == before


def test_not_null_and_invariants(make: Make, tmp_path: Path) -> None:
    schema = deltaic.Schema(
        [
            deltaic.Field("id", "long", nullable=False),
            deltaic.Field(
                "n", "integer", metadata={"delta.invariants": '{"expression": {"expression": "n > 3"}}'}
            ),
        ]
    )
    table = deltaic.DeltaTable.create(tmp_path / "strict", schema)
    table = deltaic.write(table, pa.table({"id": [1, 2], "n": pa.array([4, 5], pa.int32())}), mode="append")
    with pytest.raises(ConstraintViolationError):
        table.update({"id": None}, "id = 1")
    with pytest.raises(ConstraintViolationError, match="n > 3"):
        table.update({"n": "n - 1"})
    table.update({"n": "n + 1"})
    assert rows(table) == [(1, 5), (2, 6)]


def test_what_finds_nothing_commits_nothing(make: Make, sample: pa.Table) -> None:
    table = make(sample)
    assert table.update({"x": 0}, "id > 1000")["num_updated_rows"] == 0
    assert table.update({"x": 0}, "name = null")["num_updated_rows"] == 0
    assert table.version == 0


def test_refusals(make: Make, sample: pa.Table) -> None:
    table = make(sample)
    for changes in ({"nope": 1}, {"x": 1, "X": 2}, {"x": "nope + 1"}, {"x": ""}, {"id.a": 1}):
        with pytest.raises(InvalidArgumentError):
            table.update(changes, "id = 1")
    with pytest.raises(InvalidTypeError):
        table.update("x = 1")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="casting"):
        table.update({"x": 1}, casting="loose")  # type: ignore[arg-type]
    assert table.version == 0


def test_hld_steps(make: Make, vectors: bool) -> None:
    """Deletion Vectors High Level Design, steps 1 to 4: files a and b of 1000 rows, UPDATE of 2 rows, DELETE
    of 501, compaction."""
    if not vectors:
        pytest.skip("the steps are those of a table with vectors")
    data = pa.table({"id": pa.array(range(2000), pa.int64()), "v": pa.array([0] * 2000)})
    table = make(data, files=2)
    first = {row["path"]: row for row in table.files().to_arrow().to_pylist()}
    table.update({"v": 1}, "id in (24, 42)")
    step2 = {row["path"]: row for row in table.files().to_arrow().to_pylist()}
    (a,) = [path for path, row in step2.items() if row["deletion_vector"] is not None]
    assert a in first
    assert len(step2) == 3
    assert step2[a]["deletion_vector"]["cardinality"] == 2
    table.delete("id between 300 and 800")
    step3 = {row["path"]: row for row in table.files().to_arrow().to_pylist()}
    assert step3.keys() == step2.keys()
    assert step3[a]["deletion_vector"]["cardinality"] == 503
    assert step3[a]["num_records"] == 1000
    table.optimize.purge()
    step4 = table.files().to_arrow().to_pylist()
    assert len(step4) == 3
    assert a not in {row["path"] for row in step4}
    assert sorted(row["num_records"] for row in step4) == [2, 497, 1000]
    assert all(row["deletion_vector"] is None for row in step4)
    expected = asked(
        "SELECT id, CASE WHEN id IN (24, 42) THEN 1 ELSE 0 END FROM t WHERE id NOT BETWEEN 300 AND 800",
        t=data,
    )
    assert rows(table) == expected


def test_four_transactions(make: Make) -> None:
    """Understanding Delta Lake's consistency model: four transactions whose rows at every version are the
    same in both ways of writing."""
    table = make(pa.table({"color": ["red", "green", "blue"], "n": [1, 1, 1]}))
    table.delete("color = 'green'")
    table.update({"n": 2}, "color = 'blue'")
    deltaic.write(table, pa.table({"color": ["cyan", "magenta"], "n": [1, 2]}), mode="append")
    assert [rows(table.at(version)) for version in range(4)] == [
        [("blue", 1), ("green", 1), ("red", 1)],
        [("blue", 1), ("red", 1)],
        [("blue", 2), ("red", 1)],
        [("blue", 2), ("cyan", 1), ("magenta", 2), ("red", 1)],
    ]
