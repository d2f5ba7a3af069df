"""Conditions of 3,000 ORs in commands of the embedded engine."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

import deltaic

NUMBERS = range(10, 3010)
ROWS = pa.table({"id": [1, 2, 3, 4], "s": ["a", "b", "c", "d"]})


def test_long_conditions(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path / "t", ROWS)
    either = " OR ".join(f"id = {number}" for number in NUMBERS)
    assert table.scan(where=f"({either}) OR id = 3").count() == 1
    assert table.delete(f"{either} OR id = 2")["num_deleted_rows"] == 1
    new = pa.table({"id": [10], "s": ["new"]})
    deltaic.write(table, new, mode="overwrite", where=f"{either} OR id = 1")
    of_target = " OR ".join(f"t.id = {number}" for number in NUMBERS)
    table.merge(ROWS, "t.id = s.id").when_matched_delete(f"{of_target} OR t.id = 3").execute()
    rows = table.scan().to_arrow().sort_by("id").to_pylist()
    assert [(row["id"], row["s"]) for row in rows] == [(4, "d"), (10, "new")]


def test_long_conditions_of_functions(tmp_path: Path) -> None:
    """What files cannot decide goes to DuckDB as a whole."""
    table = deltaic.write(tmp_path / "t", ROWS)
    either = " OR ".join(f"length(s) = {number}" for number in NUMBERS)
    assert table.update({"s": "'changed'"}, f"{either} OR upper(s) = 'A'")["num_updated_rows"] == 1
    neither = " AND ".join(f"length(s) <> {number}" for number in NUMBERS)
    assert table.delete(f"{neither} AND s <> 'c'")["num_deleted_rows"] == 3
