"""Fields of structs that have had nothing but nulls: their type is void until later data has values for them.
No data file has them.

The expectations were recorded from delta-spark 4.4.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands_model import Make, rows

import deltaic
from deltaic import DeltaTable
from deltaic.errors import InvalidArgumentError, SchemaMismatchError

NULL = pa.null()
STRUCT = pa.struct([("a", pa.int32()), ("b", NULL)])
DEEP = pa.struct(
    [
        ("v", NULL),
        ("t", pa.struct([("x", pa.float64()), ("n", NULL), ("y.z", pa.string())])),
        ("w", NULL),
        ("l", pa.list_(pa.struct([("k", pa.int64())]))),
    ]
)


def table_of(data: list[dict[str, Any]], **types: pa.DataType) -> pa.Table:
    return pa.Table.from_pylist(data, pa.schema([("id", pa.int64()), *types.items()]))


def deep(number: int) -> dict[str, Any] | None:
    """A value of the type DEEP, whose structs are null in some rows."""
    inner = {"x": number / 2 if number % 3 else None, "n": None, "y.z": f"t{number}"}
    whole = {"v": None, "t": None if number % 5 == 2 else inner, "w": None, "l": [{"k": number}, None]}
    return None if number % 7 == 3 else whole


def by_id(table: DeltaTable, *columns: str, where: str | None = None) -> list[dict[str, Any]]:
    found = table.scan(list(columns) or None, where=where).to_arrow().to_pylist()
    return sorted(found, key=lambda row: row.get("id", 0))


def file_schemas(table: DeltaTable) -> list[pa.Schema]:
    return [pq.read_schema(file) for file in sorted(Path(table.location).rglob("*.parquet"))]


def test_files_lack_the_field(make: Make) -> None:
    data = [{"id": 1, "s": {"a": 1, "b": None}}, {"id": 2, "s": None}, {"id": 3, "s": {"a": None, "b": None}}]
    table = make(table_of(data, s=STRUCT))
    deltaic.write(table, table_of([{"id": 4, "s": {"a": 4, "b": None}}], s=STRUCT), mode="append")
    assert table.schema.to_ddl() == "id bigint, s struct<a: int, b: void>"
    for schema in file_schemas(table):
        assert [field.name for field in schema.field("s").type] == ["a"]
    assert table.scan().to_arrow().schema.field("s").type == STRUCT
    assert by_id(table) == [*data, {"id": 4, "s": {"a": 4, "b": None}}]
    stats = sorted(json.dumps(file["null_count"]["s"]) for file in table.files().to_arrow().to_pylist())
    assert stats == ['{"a": 0, "b": 1}', '{"a": 2, "b": 3}']
    for where, ids in {
        "s.b IS NULL": [1, 2, 3, 4],
        "s.b IS NOT NULL": [],
        "s IS NULL": [2],
        "s.a = 4 AND s.b IS NULL": [4],
        "s.b = s.a": [],
    }.items():
        assert [row["id"] for row in by_id(table, "id", where=where)] == ids, where
    assert by_id(table, "id", "s.b")[1:3] == [{"id": 2, "s": None}, {"id": 3, "s": {"b": None}}]
    assert by_id(table, "id", "s.a")[:2] == [{"id": 1, "s": {"a": 1}}, {"id": 2, "s": None}]


@pytest.mark.parametrize("mapping", ["none", "name", "id"])
def test_rows_in_are_rows_out(make: Make, mapping: str) -> None:
    """Random changes, compared with a dict of rows."""
    chance = random.Random(mapping)
    model = {number: deep(number) for number in range(30)}

    def data(numbers: Any) -> pa.Table:
        return table_of([{"id": number, "s": model[number]} for number in numbers], s=DEEP)

    properties = {"delta.columnMapping.mode": mapping}
    table = make(data(model), files=3, properties=properties)
    first = table.version
    for step in range(8):
        action = chance.choice(["append", "delete", "update", "merge", "optimize"])
        numbers = chance.sample(sorted(model), 5)
        listed = ", ".join(map(str, numbers))
        if action == "append":
            new = range(100 * (step + 1), 100 * (step + 1) + 4)
            model |= {number: deep(number) for number in new}
            deltaic.write(table, data(new), mode="append")
        elif action == "delete":
            table.delete(f"id IN ({listed})")
            model = {number: value for number, value in model.items() if number not in numbers}
        elif action == "update":
            table.update({"s.t.x": "-1.5"}, f"id IN ({listed})")
            for number in numbers:
                kept = model[number] or {"v": None, "t": None, "w": None, "l": None}
                inner = kept["t"] or {"x": None, "n": None, "y.z": None}
                model[number] = {**kept, "t": {**inner, "x": -1.5}}
        elif action == "merge":
            model |= {number: deep(number + 1) for number in [*numbers, 1000 + step]}
            source = data([*numbers, 1000 + step])
            merge = table.merge(source, "t.id = s.id")
            merge.when_matched_update_all().when_not_matched_insert_all().execute()
        else:
            table.optimize.compact()
        assert by_id(table) == [{"id": number, "s": model[number]} for number in sorted(model)], (
            step,
            action,
        )
    table.optimize.z_order(["id"])
    table.optimize.purge()
    assert by_id(table) == [{"id": number, "s": model[number]} for number in sorted(model)]
    assert by_id(table.at(first)) == [{"id": number, "s": deep(number)} for number in range(30)]
    assert all(
        pa.null() not in (field.type for field in schema.field(1).type) for schema in file_schemas(table)
    )


def test_later_data_gives_the_field_a_type(make: Make) -> None:
    table = make(table_of([{"id": 1, "s": {"a": 1, "b": None}}], s=STRUCT))
    typed = pa.struct([("b", pa.string()), ("a", pa.int32())])
    new = table_of([{"id": 2, "s": {"a": 2, "b": "x"}}], s=typed)
    with pytest.raises(SchemaMismatchError, match=r"^s\.b: the column has no type yet.*found string"):
        deltaic.write(table, new, mode="append")
    deltaic.write(table, new, mode="append", schema_mode="merge")
    assert table.schema.to_ddl() == "id bigint, s struct<a: int, b: string>"
    deltaic.write(table, table_of([{"id": 3, "s": {"a": 3, "b": None}}], s=STRUCT), mode="append")
    assert by_id(table) == [
        {"id": number, "s": {"a": number, "b": "x" if number == 2 else None}} for number in (1, 2, 3)
    ]
    assert by_id(table, where="s.b = 'x'") == [{"id": 2, "s": {"a": 2, "b": "x"}}]


def test_a_merge_gives_the_field_a_type(make: Make) -> None:
    table = make(table_of([{"id": 1, "s": {"a": 1, "b": None}}, {"id": 9, "s": None}], s=STRUCT))
    typed = pa.struct([("a", pa.int32()), ("b", pa.string())])
    source = table_of([{"id": number, "s": {"a": 5, "b": "q"}} for number in (1, 2)], s=typed)

    def merge(**options: Any) -> None:
        job = table.merge(source, "t.id = s.id", **options)
        job.when_matched_update_all().when_not_matched_insert_all().execute()

    with pytest.raises(SchemaMismatchError):
        merge()
    merge(schema_mode="merge")
    assert table.schema.to_ddl() == "id bigint, s struct<a: int, b: string>"
    expected = {"a": 5, "b": "q"}
    assert by_id(table) == [{"id": 1, "s": expected}, {"id": 2, "s": expected}, {"id": 9, "s": None}]


def test_a_merge_adds_void_fields(make: Make) -> None:
    table = make(table_of([{"id": 1, "s": {"a": 1}}, {"id": 9, "s": None}], s=pa.struct([("a", pa.int32())])))
    new = {"a": 5, "b": None}
    source = table_of([{"id": number, "s": new} for number in (1, 2)], s=STRUCT)
    merge = table.merge(source, "t.id = s.id", schema_mode="merge")
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    assert table.schema.to_ddl() == "id bigint, s struct<a: int, b: void>"
    assert by_id(table) == [{"id": 1, "s": new}, {"id": 2, "s": new}, {"id": 9, "s": None}]


def test_new_void_fields_of_a_table(make: Make) -> None:
    table = make(table_of([{"id": 1, "s": {"a": 1}}], s=pa.struct([("a", pa.int32())])))
    data = table_of([{"id": 2, "s": {"a": 2, "b": None}, "t": deep(0)}], s=STRUCT, t=DEEP)
    with pytest.raises(SchemaMismatchError, match="lacks"):
        deltaic.write(table, data, mode="append")
    deltaic.write(table, data, mode="append", schema_mode="merge")
    assert by_id(table) == [
        {"id": 1, "s": {"a": 1, "b": None}, "t": None},
        {"id": 2, "s": {"a": 2, "b": None}, "t": deep(0)},
    ]
    deltaic.write(table, data, mode="overwrite", schema_mode="overwrite")
    assert by_id(table) == data.to_pylist()


def test_updates(make: Make) -> None:
    table = make(table_of([{"id": 1, "s": {"a": 1, "b": None}}, {"id": 2, "s": None}], s=STRUCT))
    table.update({"s.b": "null", "s.a": "7"}, "id = 1")
    assert by_id(table) == [{"id": 1, "s": {"a": 7, "b": None}}, {"id": 2, "s": None}]
    table.update({"s": "named_struct('a', 9, 'b', null)"}, "id = 2")
    assert by_id(table)[1] == {"id": 2, "s": {"a": 9, "b": None}}
    table.update({"s": "null"}, "id = 1")
    assert by_id(table)[0] == {"id": 1, "s": None}
    with pytest.raises(SchemaMismatchError):
        table.update({"s.b": "'x'"})


def test_the_change_feed(make: Make) -> None:
    properties = {"delta.enableChangeDataFeed": "true"}
    data = table_of([{"id": 1, "s": {"a": 1, "b": None}}, {"id": 2, "s": None}], s=STRUCT)
    table = make(data, properties=properties)
    start = table.version
    table.update({"s.a": "2"}, "id = 1")
    table.delete("id = 2")
    found = table.changes(start, start + 2).to_arrow().to_pylist()
    changes = sorted((row["_commit_version"] - start, row["_change_type"], row["s"]) for row in found[2:])
    wanted = [
        (1, "update_postimage", {"a": 2, "b": None}),
        (1, "update_preimage", {"a": 1, "b": None}),
        (2, "delete", None),
    ]
    assert (len(found), changes) == (5, wanted)


@pytest.mark.parametrize(
    ("data_type", "message"),
    [
        (pa.list_(NULL), r"s: the column has no type.*found array<void>"),
        (pa.map_(pa.string(), NULL), r"s: the column has no type.*found map<string, ?void>"),
        (pa.list_(STRUCT), r"s: the column has no type.*found array<struct<a: ?integer, ?b: ?void>>"),
        (pa.struct([("a", pa.int32()), ("l", pa.list_(NULL))]), r"s\.l: the column has no type"),
        (pa.struct([("b", NULL)]), r"s: every field of the struct holds nothing but nulls"),
        (pa.struct([("a", pa.int32()), ("t", pa.struct([("c", NULL)]))]), r"s\.t: every field of the struct"),
    ],
)
def test_refused(make: Make, tmp_path: Path, data_type: pa.DataType, message: str) -> None:
    data = table_of([{"id": 1, "s": None}], s=data_type)
    with pytest.raises(InvalidArgumentError, match=message):
        make(data)
    assert not DeltaTable.exists(tmp_path / "table")
    table = make(table_of([{"id": 1}]))
    for mode in ("merge", "overwrite"):
        with pytest.raises(InvalidArgumentError, match=message):
            deltaic.write(table, data, mode="append" if mode == "merge" else mode, schema_mode=mode)
    assert rows(table) == [(1,)]
