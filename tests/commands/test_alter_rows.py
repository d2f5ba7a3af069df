"""Rows of tables whose definition was altered."""

from __future__ import annotations

import pyarrow as pa
import pytest

import deltaic

NAME_MODE = {"delta.columnMapping.mode": "name"}
ROWS = pa.table({"id": [1, 2], "s": [{"a": 1, "b": 2}, {"a": 3, "b": 4}], "p": ["x", "y"]})


@pytest.fixture
def plain(tmp_path):
    return deltaic.DeltaTable.create(
        tmp_path / "plain", ROWS.schema, properties={"delta.enableDeletionVectors": False}
    )


@pytest.fixture
def mapped(tmp_path):
    return deltaic.DeltaTable.create(tmp_path / "mapped", ROWS.schema, properties=NAME_MODE, partition_by="p")


def filled(table):
    return deltaic.write(table, ROWS, mode="append")


def rows(table, **options):
    return sorted(table.scan(**options).to_arrow().to_pylist(), key=lambda row: row.get("id", row.get("key")))


def test_rows_after_add_columns(plain):
    plain = filled(plain)
    plain.alter.add_columns("n int comment 'new', s struct<c: string>")
    assert rows(plain) == [
        {"id": 1, "s": {"a": 1, "b": 2, "c": None}, "p": "x", "n": None},
        {"id": 2, "s": {"a": 3, "b": 4, "c": None}, "p": "y", "n": None},
    ]
    plain = deltaic.write(plain, pa.table({"id": [3], "n": pa.array([7], pa.int32())}), mode="append")
    assert rows(plain)[2] == {"id": 3, "s": None, "p": None, "n": 7}


def test_mapping_turned_on_for_files_that_are_there(plain):
    plain = filled(plain)
    plain.alter.set_properties(NAME_MODE)
    plain.alter.rename_column("id", "key")
    plain.alter.drop_columns("s.a")
    assert rows(plain) == [{"key": 1, "s": {"b": 2}, "p": "x"}, {"key": 2, "s": {"b": 4}, "p": "y"}]


def test_rows_after_rename(mapped):
    mapped = filled(mapped)
    for name, new in [("id", "key"), ("s.a", "my field"), ("p", "q")]:
        mapped.alter.rename_column(name, new)
    assert rows(mapped) == [
        {"key": 1, "s": {"my field": 1, "b": 2}, "q": "x"},
        {"key": 2, "s": {"my field": 3, "b": 4}, "q": "y"},
    ]
    assert rows(mapped, where="q = 'x' and key = 1 and s.`my field` = 1") == [
        {"key": 1, "s": {"my field": 1, "b": 2}, "q": "x"}
    ]


def test_dropped_values_do_not_come_back(mapped):
    mapped = filled(mapped)
    mapped.alter.drop_columns("id", "s.b")
    mapped.alter.add_columns("id bigint, s struct<b: bigint>")
    assert sorted(map(str, mapped.scan().to_arrow().to_pylist())) == [
        "{'s': {'a': 1, 'b': None}, 'p': 'x', 'id': None}",
        "{'s': {'a': 3, 'b': None}, 'p': 'y', 'id': None}",
    ]
    assert rows(mapped.at(1)) == ROWS.to_pylist()
