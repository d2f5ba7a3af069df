"""Columns whose type is widened by ALTER, by data and by MERGE; old files keep their bytes.

Source: PROTOCOL.md, "Type Widening".
"""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from commands_model import Make

import deltaic
from deltaic import DeltaTable, Schema
from deltaic.errors import InvalidArgumentError, MetadataChangedException, SchemaMismatchError
from deltaic.protocol.widening import is_widening, recorded

ON = {"delta.enableTypeWidening": "true"}


def changes(table: DeltaTable, name: str) -> Any:
    return table.schema.find(name)[1].metadata.get("delta.typeChanges")


def values(table: DeltaTable, column: str = "a") -> list[Any]:
    return sorted(table.scan().to_arrow()[column].to_pylist(), key=lambda value: (value is None, value))


CASES = [
    ("tinyint", "smallint", [1, -128], [300]),
    ("smallint", "int", [1], [70_000]),
    ("int", "bigint", [1, -5], [2**40]),
    ("int", "double", [1], [0.5]),
    ("float", "double", [0.5], [1e300]),
    ("int", "decimal(12,2)", [1], [Decimal("0.25")]),
    ("bigint", "decimal(22,1)", [2**62], [Decimal("0.5")]),
    ("decimal(5,2)", "decimal(10,4)", [Decimal("1.25")], [Decimal("123456.1234")]),
    ("date", "timestamp_ntz", [datetime.date(2020, 1, 2)], [datetime.datetime(2021, 1, 1, 12)]),
]


@pytest.mark.parametrize(
    ("before", "after", "old", "new"), CASES, ids=lambda value: value if isinstance(value, str) else ""
)
def test_alter_widens_and_old_files_read_as_the_new_type(
    make: Make, before: str, after: str, old: list[Any], new: list[Any]
) -> None:
    schema, wide = Schema.from_ddl(f"a {before}, b int"), Schema.from_ddl(f"a {after}, b int")
    old_data = pa.table({"a": old, "b": [0] * len(old)}, schema=pa.schema(schema))
    table = make(old_data, properties=ON)
    assert "typeWidening" in (table.protocol.reader_features or ())
    table.alter.change_column("a", type=after)
    old_type, new_type = schema.field("a").type, wide.field("a").type
    assert changes(table, "a") == [{"fromType": old_type, "toType": new_type}]
    deltaic.write(table, pa.table({"a": new, "b": [1] * len(new)}, schema=pa.schema(wide)), mode="append")
    expected = sorted(
        [
            *pa.array(old, pa.schema(schema).field("a").type)
            .cast(pa.schema(wide).field("a").type)
            .to_pylist(),
            *new,
        ]
    )
    assert values(table) == expected
    first = expected[0]
    literal = f"timestamp_ntz'{first}'" if isinstance(first, datetime.datetime) else str(first)
    if not isinstance(first, float):
        assert table.scan(where=f"a = {literal}").count() == 1
    table.update({"b": "7"}, "b = 0")
    table.checkpoint()
    assert values(DeltaTable(table.location)) == expected
    table.optimize.compact()
    table.optimize.purge()
    assert values(table) == expected


def test_nested_types_are_noted_where_they_are(make: Make) -> None:
    schema = Schema.from_ddl(
        "id int, s struct<x: int, l: array<struct<y: int>>>, l array<int>, m map<int, array<int>>"
    )
    row = {"id": 1, "s": {"x": 1, "l": [{"y": 2}]}, "l": [3], "m": [(4, [5])]}
    table = make(pa.Table.from_pylist([row], pa.schema(schema)), properties=ON)
    table.alter.change_column("s.x", type="long")
    table.alter.change_column("s.l.element.y", type="bigint")
    table.alter.change_column("l.element", type="long")
    table.alter.change_column("m", type="map<bigint, array<bigint>>")
    assert changes(table, "s") is None
    assert changes(table, "s.x") == [{"fromType": "integer", "toType": "long"}]
    assert changes(table, "s.l") is None
    assert changes(table, "s.l.element.y") == [{"fromType": "integer", "toType": "long"}]
    assert changes(table, "l") == [{"fromType": "integer", "toType": "long", "fieldPath": "element"}]
    assert changes(table, "m") == [
        {"fromType": "integer", "toType": "long", "fieldPath": "key"},
        {"fromType": "integer", "toType": "long", "fieldPath": "value.element"},
    ]
    assert table.scan().to_arrow().to_pylist() == [row]
    big = {"id": 2, "s": {"x": 2**40, "l": [{"y": 2**40}]}, "l": [2**40], "m": [(2**40, [2**40])]}
    deltaic.write(table, pa.Table.from_pylist([big], pa.schema(table.schema)), mode="append")
    assert sorted(table.scan().to_arrow().to_pylist(), key=lambda found: found["id"]) == [row, big]
    table.optimize.compact()
    assert sorted(table.scan().to_arrow().to_pylist(), key=lambda found: found["id"]) == [row, big]


def test_replaced_columns_widen(make: Make) -> None:
    """delta-spark's REPLACE COLUMNS takes the wider types that ALTER COLUMN takes."""
    table = make(pa.table({"a": pa.array([1], pa.int32()), "l": [[1]]}))
    with pytest.raises(InvalidArgumentError, match="replacing columns changes no type"):
        table.alter.replace_columns("l array<bigint>, a bigint")
    table.alter.set_properties(ON)
    with pytest.raises(InvalidArgumentError, match="replacing columns changes no type"):
        table.alter.replace_columns("l array<bigint>, a smallint")
    table.alter.replace_columns("l array<bigint>, a bigint")
    assert changes(table, "a") == [{"fromType": "integer", "toType": "long"}]
    assert table.scan().to_arrow().to_pylist() == [{"l": [1], "a": 1}]


def test_a_second_change_is_added_to_the_first(make: Make) -> None:
    table = make(pa.table({"a": pa.array([1], pa.int8())}), properties=ON)
    table.alter.change_column("a", type="short")
    deltaic.write(table, pa.table({"a": pa.array([300], pa.int16())}), mode="append")
    table.alter.change_column("a", type="int", comment="wide")
    assert changes(table, "a") == [
        {"fromType": "byte", "toType": "short"},
        {"fromType": "short", "toType": "integer"},
    ]
    assert table.schema.field("a").metadata["comment"] == "wide"
    assert values(table) == [1, 300]


@pytest.mark.parametrize(
    ("before", "after", "old", "new"), CASES, ids=lambda value: value if isinstance(value, str) else ""
)
def test_the_changes_of_a_restore_have_the_wider_type_of_the_rows_it_removed(
    make: Make, before: str, after: str, old: list[Any], new: list[Any]
) -> None:
    nested = f"a {before}, s struct<l: array<{before}>, m: map<string, {before}>>"
    schema = Schema.from_ddl(nested)
    wide = Schema.from_ddl(nested.replace(before, after))

    def rows(values: list[Any], of: Schema) -> pa.Table:
        each = [{"a": value, "s": {"l": [value], "m": [("k", value)]}} for value in values]
        return pa.Table.from_pylist(each, schema=pa.schema(of))

    table = make(rows(old, schema), properties={**ON, "delta.enableChangeDataFeed": "true"})
    version = table.version
    table.alter.change_column("a", type=after)
    table.alter.change_column("s.l.element", type=after)
    table.alter.change_column("s.m.value", type=after)
    added = rows(new, wide)
    deltaic.write(table, added, mode="append")
    table.restore(version)
    assert table.schema.to_ddl() == schema.to_ddl()
    gone = table.changes(table.version, table.version).to_arrow()
    assert gone["_change_type"].to_pylist() == ["delete"] * len(new)
    assert sorted(gone.select(["a", "s"]).to_pylist(), key=str) == sorted(added.to_pylist(), key=str)
    assert table.changes(table.version, table.version, columns=["a"], where="a is null").to_pylist() == []
    deltaic.write(table, rows(old, schema), mode="append")
    later = table.changes(table.version, table.version, columns=["a"]).to_arrow()
    assert later.schema.field("a").type == pa.schema(schema).field("a").type


@pytest.mark.parametrize("mode", ["name", "id"])
def test_under_column_mapping_names_stay(make: Make, mode: str) -> None:
    table = make(
        pa.table({"a": pa.array([1], pa.int32())}), properties={**ON, "delta.columnMapping.mode": mode}
    )
    physical = table.schema.field("a").metadata["delta.columnMapping.physicalName"]
    table.alter.rename_column("a", "z")
    table.alter.change_column("z", type="bigint")
    assert table.schema.field("z").metadata["delta.columnMapping.physicalName"] == physical
    deltaic.write(table, pa.table({"z": [2**40]}), mode="append")
    assert values(table, "z") == [1, 2**40]


def test_partition_columns_widen(make: Make) -> None:
    table = make(
        pa.table({"p": pa.array([1, None], pa.int32()), "v": [1, 2]}), properties=ON, partition_by="p"
    )
    table.alter.change_column("p", type="bigint")
    deltaic.write(table, pa.table({"p": [2**40], "v": [3]}), mode="append")
    assert values(table, "p") == [1, 2**40, None]
    assert table.scan(where="p = 1").count() == 1
    dated = deltaic.write(
        table.location + "-dated",
        pa.table({"p": [datetime.date(2020, 1, 2)], "v": [1]}),
        properties=ON,
        partition_by="p",
    )
    dated.alter.change_column("p", type="timestamp_ntz")
    assert values(dated, "p") == [datetime.datetime(2020, 1, 2)]


def test_what_is_refused_names_the_column(make: Make) -> None:
    table = make(pa.table({"a": pa.array([1], pa.int32()), "l": [[1]], "s": [{"x": 1}]}))
    with pytest.raises(InvalidArgumentError, match="type widening is on") as caught:
        table.alter.change_column("a", type="bigint")
    assert "integer to long" in str(caught.value)
    table.alter.set_properties(ON)
    for name, wanted, match in [
        ("a", "smallint", "integer to short"),
        ("a", "string", "integer to string"),
        ("a", "float", "integer to float"),
        ("a", "decimal(9,0)", "integer to decimal"),
        ("a", "array<int>", "integer to array"),
        ("l", "bigint", "array<long> to long"),
        ("l.element", "int", r"l\.element"),
        ("s", "struct<x: bigint, y: int>", "type of a struct"),
    ]:
        with pytest.raises(InvalidArgumentError, match=match):
            table.alter.change_column(name, type=wanted)
    version = table.version
    table.alter.change_column("a", type="int")
    assert table.version == version
    assert "delta.typeChanges" not in str(table.metadata.schema_string)


def test_data_widens_columns_where_it_may(make: Make) -> None:
    table = make(
        pa.table(
            {
                "a": pa.array([1], pa.int32()),
                "b": pa.array([1], pa.int32()),
                "f": pa.array([0.5], pa.float32()),
            }
        ),
        properties=ON,
    )
    wide = pa.table({"a": [2**40], "b": [2.5], "f": [1e300], "c": ["new"]})
    deltaic.write(table, wide, mode="append", schema_mode="merge")
    assert [item.type for item in table.schema] == ["long", "double", "double", "string"]
    assert changes(table, "a") == [{"fromType": "integer", "toType": "long"}]
    assert changes(table, "b") == [{"fromType": "integer", "toType": "double"}]
    assert sorted(table.scan(["b"]).to_arrow()["b"].to_pylist()) == [1.0, 2.5]
    assert values(table) == [1, 2**40]
    assert values(table, "f") == [0.5, 1e300]
    with pytest.raises(SchemaMismatchError, match="a"):
        deltaic.write(
            make(pa.table({"a": pa.array([1], pa.int32())}), name="off"),
            pa.table({"a": [2**40]}),
            mode="append",
            schema_mode="merge",
        )
    narrow = pa.table({"a": pa.array([5], pa.int16())})
    deltaic.write(table, narrow, mode="append", schema_mode="merge")
    assert table.schema.field("a").type == "long"


def test_merge_widens_columns_of_star_clauses(make: Make) -> None:
    table = make(pa.table({"k": [1, 2], "a": pa.array([10, 20], pa.int32())}), properties=ON)
    source = pa.table({"k": [2, 3], "a": [2**40, 2**41]})
    table.merge(
        source, "t.k = s.k", schema_mode="merge"
    ).when_matched_update_all().when_not_matched_insert_all().execute()
    assert table.schema.field("a").type == "long"
    assert changes(table, "a") == [{"fromType": "integer", "toType": "long"}]
    assert values(table) == [10, 2**40, 2**41]


def test_merge_widens_columns_that_a_clause_names(make: Make) -> None:
    struct = pa.struct([("x", pa.int32())])
    rows = {"k": [1, 2], "a": pa.array([10, 20], pa.int16()), "s": pa.array([{"x": 1}, None], struct)}
    table = make(pa.table({**rows, "b": pa.array([1, 2], pa.int16())}), properties=ON)
    wide = pa.array([{"x": 2**40, "new": 7}], pa.struct([("x", pa.int64()), ("new", pa.int64())]))
    source = pa.table({"k": [2], "a": pa.array([100_000], pa.int32()), "s": wide, "b": ["word"]})
    merge = table.merge(source, "t.k = s.k", schema_mode="merge")
    merge.when_matched_update({"a": "s.a + 1", "s.x": "s.s.x", "b": "3"}).execute()
    assert table.schema.to_ddl() == "k bigint, a int, s struct<x: bigint>, b smallint"
    row = table.scan(where="k = 2").to_arrow().to_pylist()
    assert row == [{"k": 2, "a": 100_001, "s": {"x": 2**40}, "b": 3}]
    insert = table.merge(pa.table({"k": [3], "a": [2**40]}), "t.k = s.k", schema_mode="merge")
    insert.when_not_matched_insert({"k": "s.k", "a": "s.a"}).execute()
    assert table.schema.field("a").type == "long"
    plain = table.merge(pa.table({"k": [3], "b": [5]}), "t.k = s.k")
    plain.when_matched_update({"b": "s.b"}).execute()
    assert (table.schema.field("b").type, table.scan(where="b = 5").count()) == ("short", 1)


def test_rewritten_definitions_forget_the_changes(make: Make) -> None:
    table = make(pa.table({"a": pa.array([1], pa.int32())}), properties=ON)
    table.alter.change_column("a", type="bigint")
    deltaic.write(table, pa.table({"a": [2]}), mode="overwrite", schema_mode="overwrite")
    assert changes(table, "a") is None
    copied = DeltaTable.create(table.location + "-copy", DeltaTable(table.location, version=1).schema)
    assert changes(copied, "a") is None


def test_restore_brings_the_narrow_type_back(make: Make) -> None:
    table = make(pa.table({"a": pa.array([1], pa.int32())}), properties=ON)
    table.alter.change_column("a", type="bigint")
    deltaic.write(table, pa.table({"a": [2**40]}), mode="append")
    table.restore(0)
    assert table.schema.field("a").type == "integer"
    assert values(table) == [1]


def test_a_writer_of_the_narrow_type_conflicts(make: Make) -> None:
    table = make(pa.table({"a": pa.array([1], pa.int32())}), properties=ON)
    stale = DeltaTable(table.location)
    table.alter.change_column("a", type="bigint")
    with pytest.raises(MetadataChangedException):
        deltaic.write(stale, pa.table({"a": pa.array([2], pa.int32())}), mode="append")


def test_sql(make: Make) -> None:
    table = make(pa.table({"a": pa.array([1], pa.int32())}), properties=ON)
    deltaic.sql("ALTER TABLE t ALTER COLUMN a TYPE BIGINT", tables={"t": table})
    assert table.schema.field("a").type == "long"


def test_which_changes_are_widenings() -> None:
    for before, after in [
        ("byte", "long"),
        ("float", "double"),
        ("decimal(5,2)", "decimal(7,2)"),
        ("date", "timestamp_ntz"),
        ("integer", "double"),
        ("integer", "decimal(12,0)"),
        ("long", "decimal(20,0)"),
    ]:
        assert is_widening(before, after)
    for before, after in [
        ("long", "integer"),
        ("long", "double"),
        ("integer", "float"),
        ("integer", "string"),
    ]:
        assert not is_widening(before, after)


def test_a_schema_that_only_grows_notes_nothing() -> None:
    before, after = (
        Schema.from_ddl("a int, s struct<x: int>"),
        Schema.from_ddl("b int, s struct<x: int, y: int>"),
    )
    assert recorded(before, after) == after
    with pytest.raises(InvalidArgumentError, match=r"s\.x"):
        recorded(before, Schema.from_ddl("s struct<x: string>"))


def test_other_readers_take_the_result(tmp_path: Path) -> None:
    """The files have the types that they were written with, the log the record of the changes; delta-kernel
    reads both."""
    table = deltaic.write(
        tmp_path / "t",
        pa.table({"a": pa.array([1], pa.int32())}),
        properties={**ON, "delta.enableDeletionVectors": False},
    )
    table.alter.change_column("a", type="bigint")
    deltaic.write(table, pa.table({"a": [2**40]}), mode="append")
    import pyarrow.parquet as pq

    types = sorted(str(pq.read_schema(path).field("a").type) for path in (tmp_path / "t").glob("*.parquet"))
    assert types == ["int32", "int64"]
