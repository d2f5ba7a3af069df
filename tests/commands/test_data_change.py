"""deltaic.write with data_change=False, which only moves rows to other files: what its commit has in the log,
who does not see it, and what it cannot change."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from commands_model import Make

import deltaic
from deltaic import DeltaTable
from deltaic.errors import AppendOnlyError, ConstraintViolationError, InvalidArgumentError

DATA = pa.table({"id": pa.array([1, 2], pa.int64()), "part": ["a", "b"]})
OF_A = DATA.slice(0, 1)


def rows(table: DeltaTable) -> list[tuple[Any, ...]]:
    found = table.scan().to_arrow().to_pylist()
    return sorted(tuple(row.values()) for row in found)


def actions(table: DeltaTable) -> dict[str, list[dict[str, Any]]]:
    """Returns the actions of the newest commit by name."""
    found: dict[str, list[dict[str, Any]]] = {}
    for line in (Path(table.location) / "_delta_log" / f"{table.version:020}.json").read_text().splitlines():
        ((name, action),) = json.loads(line).items()
        found.setdefault(name, []).append(action)
    return found


@pytest.mark.parametrize(
    ("data", "options", "expected", "removed", "blind"),
    [
        (OF_A, {"mode": "append"}, [(1, "a"), (1, "a"), (2, "b")], 0, True),
        (DATA, {"mode": "overwrite"}, [(1, "a"), (2, "b")], 2, False),
        (OF_A, {"mode": "overwrite", "where": "part = 'a'"}, [(1, "a"), (2, "b")], 1, False),
        (OF_A, {"mode": "overwrite_partitions"}, [(1, "a"), (2, "b")], 1, False),
    ],
    ids=["append", "overwrite", "where", "partitions"],
)
def test_no_action_changes_data(
    make: Make, data: pa.Table, options: dict[str, Any], expected: list[Any], removed: int, blind: bool
) -> None:
    properties = {"delta.enableChangeDataFeed": True}
    table = make(DATA, partition_by=["part"], properties=properties)
    before = table.changes(0).to_arrow().num_rows
    deltaic.write(table, data, data_change=False, **options)
    assert rows(table) == expected
    written = actions(table)
    files = [*written["add"], *written.get("remove", ())]
    assert len(files) == data.num_rows + removed
    assert {action["dataChange"] for action in files} == {False}
    info = written["commitInfo"][0]
    assert (info["isolationLevel"], info["isBlindAppend"]) == ("SnapshotIsolation", blind)
    assert "cdc" not in written
    assert table.changes(0).to_arrow().num_rows == before


def test_files_with_deletion_vectors_are_removed_whole(make: Make) -> None:
    table = make(pa.table({"id": pa.array(range(10), pa.int64()), "part": ["a"] * 10}), partition_by=["part"])
    table.delete("id > 1")
    left = table.scan().to_arrow()
    deltaic.write(table, left, mode="overwrite", where="part = 'a'", data_change=False)
    assert rows(table) == [(0, "a"), (1, "a")]
    assert {action["dataChange"] for kind in ("add", "remove") for action in actions(table)[kind]} == {False}


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (DATA, {"mode": "overwrite", "where": "id > 0"}, "replaces whole partitions"),
        (OF_A, {"mode": "overwrite", "where": "part = 'a' AND id = 1"}, "replaces whole partitions"),
        (
            DATA.append_column("more", pa.array([1, 2])),
            {"mode": "append", "schema_mode": "merge"},
            "cannot change the Delta table schema",
        ),
        (
            DATA.append_column("more", pa.array([1, 2])),
            {"mode": "overwrite", "schema_mode": "overwrite"},
            "cannot overwrite the Delta table schema or change the partition schema",
        ),
    ],
)
def test_only_whole_partitions_and_no_definition(
    make: Make, data: pa.Table, options: dict[str, Any], message: str
) -> None:
    table = make(DATA, partition_by=["part"])
    with pytest.raises(InvalidArgumentError, match=message):
        deltaic.write(table, data, data_change=False, **options)
    assert (DeltaTable(table.location).version, rows(table)) == (0, [(1, "a"), (2, "b")])


def test_the_same_definition_is_no_change(make: Make) -> None:
    table = make(DATA)
    deltaic.write(table, DATA, mode="overwrite", schema_mode="overwrite", data_change=False)
    assert (table.version, rows(table)) == (1, [(1, "a"), (2, "b")])


def test_no_table_is_created(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="dataChange=false cannot create a Delta table"):
        deltaic.write(tmp_path / "t", DATA, data_change=False)
    assert not (tmp_path / "t").exists()


def test_constraints_count(make: Make) -> None:
    table = make(DATA)
    table.alter.add_constraints({"positive": "id > 0"})
    with pytest.raises(ConstraintViolationError, match="positive"):
        deltaic.write(table, pa.table({"id": [-1]}), mode="overwrite", data_change=False)


@pytest.mark.parametrize("data_change", [True, False])
def test_an_append_only_table_is_not_overwritten(make: Make, data_change: bool) -> None:
    """Also if it has no rows yet: the mode says that rows are replaced."""
    table = make(DATA.slice(0, 0), properties={"delta.appendOnly": True})
    with pytest.raises(AppendOnlyError):
        deltaic.write(table, DATA, mode="overwrite", data_change=data_change)
    deltaic.write(table, DATA, mode="append", data_change=data_change)
    assert rows(table) == [(1, "a"), (2, "b")]
