"""Structs with the same names as the aliases of rows in commands: `s.v` is the field v of the column s, not
the column v."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltaic
from deltaic import DeltaTable
from deltaic.errors import ConstraintViolationError

STRUCTS = ("s", "t", "u", "checked")
PROPERTIES = {"delta.enableChangeDataFeed": True}


def made(path: Path, ddl: str, session: Any) -> DeltaTable:
    DeltaTable.create(path, ddl, properties=PROPERTIES)
    return DeltaTable(path, spark=session)


def row(table: DeltaTable, name: str, v: int, inner: int) -> pa.Table:
    types = {item.name: item.type for item in DeltaTable(table.location).scan().to_arrow().schema}
    return pa.table({"id": [1], "v": [v], name: pa.array([{"v": inner}], types[name])})


@pytest.mark.parametrize("name", STRUCTS)
def test_constraints(way: str, session: Any, tmp_path: Path, name: str) -> None:
    table = made(tmp_path / "t", f"id BIGINT, v BIGINT, {name} STRUCT<v: BIGINT>", session)
    table.alter.add_constraints({"inner": f"{name}.v > 0"})
    bad, good = row(table, name, 1, -1), row(table, name, -1, 1)
    with pytest.raises(
        ConstraintViolationError, match=rf"CHECK constraint inner; found 1 row, with {name}\.v = -1"
    ):
        deltaic.write(table, bad, mode="append")
    deltaic.write(table, good, mode="append")
    with pytest.raises(ConstraintViolationError, match="CHECK constraint inner"):
        table.update({f"{name}.v": "-5"}, "id = 1")
    with pytest.raises(ConstraintViolationError, match="CHECK constraint inner"):
        table.merge(
            bad, "x.id = y.id", source_alias="y", target_alias="x"
        ).when_matched_update_all().execute()
    table.alter.drop_constraint("inner")
    deltaic.write(table, bad, mode="append")
    with pytest.raises(ConstraintViolationError, match="found 1 row"):
        table.alter.add_constraints({"inner": f"{name}.v > 0"})


@pytest.mark.parametrize("name", STRUCTS)
def test_lengths_and_generated_columns(way: str, session: Any, tmp_path: Path, name: str) -> None:
    ddl = (
        f"id BIGINT, v BIGINT, {name} STRUCT<v: BIGINT>, g BIGINT GENERATED ALWAYS AS ({name}.v), k STRUCT<v:"
        " VARCHAR(2)>"
    )
    table = made(tmp_path / "t", ddl, session)
    deltaic.write(table, row(table, name, 1, 7), mode="append")
    table.update({f"{name}.v": "8"}, "id = 1")
    table.merge(
        row(table, name, 2, 9), "x.id = y.id", source_alias="y", target_alias="x"
    ).when_matched_update({f"{name}.v": f"y.{name}.v"}).execute()
    changes = table.changes(1, where=f"{name}.v = 8").to_arrow().to_pylist()
    assert sorted((each["_change_type"], each["g"]) for each in changes) == [
        ("update_postimage", 8),
        ("update_preimage", 8),
    ]
    assert table.scan(["v", "g"]).to_arrow().to_pylist() == [{"v": 1, "g": 9}]


def test_varchar_in_a_struct_beside_a_column_of_its_name(tmp_path: Path) -> None:
    table = DeltaTable.create(tmp_path / "t", "v STRING, s STRUCT<v: VARCHAR(2)>")
    with pytest.raises(ConstraintViolationError, match=r"column s\.v has a value that is longer"):
        deltaic.write(table, [{"v": "a", "s": {"v": "abc"}}], mode="append")


def test_conditions_without_an_alias(way: str, session: Any, tmp_path: Path) -> None:
    made(tmp_path / "t", "v BIGINT, t STRUCT<v: BIGINT>", None)
    table = DeltaTable(tmp_path / "t", spark=session)
    deltaic.write(table, pa.table({"v": [1, 2], "t": [{"v": 2}, {"v": 1}]}), mode="append")
    assert table.scan(["v"], "t.v = 1").to_arrow().to_pylist() == [{"v": 2}]
    assert table.update({"v": "t.v + 10"}, "t.v = 1")["num_updated_rows"] == 1
    assert table.delete("t.v = 2")["num_deleted_rows"] == 1
    assert table.scan(["v"]).to_arrow().to_pylist() == [{"v": 11}]
