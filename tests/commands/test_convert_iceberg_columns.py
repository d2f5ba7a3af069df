"""CONVERT of Iceberg tables whose data files have no ids of columns, or lack columns that have defaults."""

from __future__ import annotations

import json
import re
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyiceberg")

from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import IntegerType, ListType, LongType, MapType, NestedField, StringType, StructType

import deltaic
from deltaic import DeltaTable
from deltaic.errors import UnsupportedFeatureError
from iceberg_tables import catalog, edited, folder_of, rows, with_foreign_file

_ITEM = StructType(NestedField(11, "x", LongType()), NestedField(12, "y", StringType()))
_FIELDS = [
    NestedField(1, "id", LongType()),
    NestedField(2, "name", StringType()),
    NestedField(3, "items", ListType(4, _ITEM, element_required=False)),
    NestedField(5, "pairs", MapType(6, StringType(), 7, IntegerType(), value_required=False)),
]
_ROW = {"id": 1, "name": "a", "items": [{"x": 2, "y": "b"}, None], "pairs": [("k", 3)]}


def delta_rows(table: DeltaTable, columns: list[str] | None = None) -> list[dict[str, Any]]:
    return sorted(table.scan(columns).to_arrow().to_pylist(), key=repr)


def created(folder: Path, *fields: NestedField) -> Table:
    return catalog(folder).create_table("n.t", Schema(*fields))


def test_a_name_mapping_is_not_needed_where_files_have_ids(tmp_path: Path) -> None:
    table = created(tmp_path, *_FIELDS)
    with table.transaction() as change:
        change.set_properties({"schema.name-mapping.default": table.schema().name_mapping.model_dump_json()})
    table.append(pa.Table.from_pylist([_ROW], table.schema().as_arrow()))
    with table.update_schema() as change:
        change.rename_column("name", "title")
    converted = DeltaTable.convert_iceberg(folder_of(table))
    assert converted.metadata.configuration["delta.columnMapping.mode"] == "id"
    assert delta_rows(converted) == rows(table) != []


def test_files_without_ids_are_read_by_their_names(tmp_path: Path) -> None:
    table = created(tmp_path, *_FIELDS)
    with_foreign_file(table, [_ROW])
    with table.update_schema() as change:
        change.rename_column("name", "title").rename_column("items.element.x", "z").add_column(
            "late", StringType()
        )
    converted = DeltaTable.convert_iceberg(folder_of(table))
    assert converted.metadata.configuration["delta.columnMapping.mode"] == "name"
    assert (
        delta_rows(converted)
        == rows(table)
        == [{"id": 1, "title": "a", "items": [{"z": 2, "y": "b"}, None], "pairs": [("k", 3)], "late": None}]
    )
    assert converted.schema.field("title").metadata["delta.columnMapping.physicalName"] == "name"
    deltaic.write(
        converted, [{"id": 2, "title": "new", "items": [{"z": 1, "y": "q"}], "late": "l"}], mode="append"
    )
    assert delta_rows(converted, ["title", "late"]) == [
        {"title": "a", "late": None},
        {"title": "new", "late": "l"},
    ]


def test_files_with_and_without_ids(tmp_path: Path) -> None:
    table = created(tmp_path, *_FIELDS)
    with_foreign_file(table, [_ROW])
    table.append(pa.Table.from_pylist([{**_ROW, "id": 2}], table.schema().as_arrow()))
    converted = DeltaTable.convert_iceberg(folder_of(table), mode="error")
    assert converted.metadata.configuration["delta.columnMapping.mode"] == "name"
    assert delta_rows(converted) == rows(table)
    assert converted.scan().count() == 2


def test_a_column_with_two_names_in_files_is_refused(tmp_path: Path) -> None:
    table = created(tmp_path, *_FIELDS)
    with_foreign_file(table, [_ROW])
    with table.update_schema() as change:
        change.rename_column("name", "title")
    table.append(pa.Table.from_pylist([{"id": 2, "title": "b"}], table.schema().as_arrow()))
    with pytest.raises(
        UnsupportedFeatureError, match=r"column title: a column has several names.*name in .*foreign\.parquet"
    ):
        DeltaTable.convert_iceberg(folder_of(table))
    assert not DeltaTable.exists(folder_of(table))


def test_a_column_with_the_name_of_a_dropped_one_is_no_column_of_files_without_ids(tmp_path: Path) -> None:
    table = created(tmp_path, NestedField(1, "id", LongType()), NestedField(2, "name", StringType()))
    with_foreign_file(table, [{"id": 1, "name": "dropped"}])
    with table.update_schema() as change:
        change.delete_column("name")
    with table.update_schema() as change:
        change.add_column("name", StringType())
    table = edited(
        table, {"properties": {"schema.name-mapping.default": json.dumps([{"field-id": 1, "names": ["id"]}])}}
    )
    converted = DeltaTable.convert_iceberg(folder_of(table))
    assert delta_rows(converted) == [{"id": 1, "name": None}]


def test_files_without_ids_need_a_name_mapping(tmp_path: Path) -> None:
    table = created(tmp_path, NestedField(1, "id", LongType()))
    with_foreign_file(table, [{"id": 1}])
    with_defaults(edited(table, {"properties": {}}), {"id": {"initial-default": 3}})
    with pytest.raises(
        UnsupportedFeatureError,
        match=r"foreign\.parquet: a data file has no field ids, and the table has no name mapping",
    ):
        DeltaTable.convert_iceberg(folder_of(table))


def hive_table(folder: Path) -> Table:
    """Returns a table as Iceberg migrates it from Hive: the partition column is not in the data file."""
    spec = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "part"))
    table = catalog(folder).create_table("n.t", Schema(*_FIELDS[:2]), partition_spec=spec)
    with_foreign_file(table, [{"id": 1, "name": "p"}])
    path = folder_of(table) / "data" / "foreign.parquet"
    size = path.stat().st_size
    pq.write_table(pa.table({"id": [1]}), path)
    data = path.read_bytes()
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    # Its size is that in the manifest.
    path.write_bytes(data[:footer] + bytes(size - len(data)) + data[footer:])
    return table


def test_partition_columns_that_files_lack(tmp_path: Path) -> None:
    table = hive_table(tmp_path)
    converted = DeltaTable.convert_iceberg(folder_of(table))
    assert delta_rows(converted) == [{"id": 1, "name": "p"}]


def test_partition_columns_that_files_lack_must_stay_partition_columns(tmp_path: Path) -> None:
    table = hive_table(tmp_path)
    with table.update_spec() as change:
        change.remove_field("part")
    with pytest.raises(
        UnsupportedFeatureError,
        match=r"foreign\.parquet, column name: a data file lacks a column whose value",
    ):
        DeltaTable.convert_iceberg(folder_of(table))


def with_defaults(table: Table, defaults: dict[str, dict[str, Any]]) -> Table:
    """Returns the table as format version 3, in which fields have these defaults (as JSON, by name; at any
    depth)."""
    schemas = [json.loads(each.model_dump_json()) for each in table.metadata.schemas]

    def visit(node: Any) -> None:
        if isinstance(node, dict):
            node.update(defaults.get(node.get("name", ""), {}) if "id" in node else {})
            for below in node.values():
                visit(below)
        elif isinstance(node, list):
            for below in node:
                visit(below)

    visit(schemas[table.metadata.current_schema_id :])
    return edited(table, {"schemas": schemas, "format-version": 3, "next-row-id": 1000})


@pytest.mark.parametrize(
    ("kind", "default", "value"),
    [
        ("long", 5, 5),
        ("string", "it's \\n", "it's \\n"),
        ("boolean", True, True),
        ("double", 0.1, 0.1),
        ("decimal(9,2)", "1.50", Decimal("1.50")),
        ("date", "1960-01-02", date(1960, 1, 2)),
        ("timestamp", "2024-01-01T02:03:04.000005", datetime(2024, 1, 1, 2, 3, 4, 5)),
        ("timestamptz", "2024-01-01T00:00:00+00:00", datetime(2024, 1, 1, tzinfo=timezone.utc)),
        ("binary", "00ff", b"\x00\xff"),
    ],
)
def test_write_defaults_become_defaults(tmp_path: Path, kind: str, default: Any, value: Any) -> None:
    table = created(tmp_path, NestedField(1, "id", LongType()), NestedField(2, "c", kind))
    table.append(
        pa.Table.from_pylist([{"id": 1, "c": value}, {"id": 2, "c": None}], table.schema().as_arrow())
    )
    # The file has the column.
    with_defaults(table, {"c": {"initial-default": default, "write-default": default}})
    converted = DeltaTable.convert_iceberg(folder_of(table))
    deltaic.write(converted, pa.table({"id": [3]}), mode="append")
    assert delta_rows(converted) == [{"id": 1, "c": value}, {"id": 2, "c": None}, {"id": 3, "c": value}]


def test_defaults_of_fields_in_structs_are_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    table = created(tmp_path, *_FIELDS[:3])
    with_defaults(table, {"x": {"write-default": 5}})
    assert DeltaTable.convert_iceberg(folder_of(table)).scan().count() == 0
    assert re.search(r"column items\.element\.x: .*its write-default is left out", caplog.text)


@pytest.mark.parametrize(("name", "place"), [("late", "late"), ("z", "items.element.z")])
def test_initial_defaults_of_columns_that_files_lack_are_refused(
    tmp_path: Path, name: str, place: str
) -> None:
    table = created(tmp_path, *_FIELDS[:3])
    table.append(
        pa.Table.from_pylist([{**_ROW, "pairs": None}], pa.schema(table.schema().as_arrow())).select(
            ["id", "name", "items"]
        )
    )
    with table.update_schema() as change:
        change.add_column("late", LongType()).add_column(("items", "z"), LongType())
    with_defaults(table, {name: {"initial-default": 7}})
    with pytest.raises(
        UnsupportedFeatureError,
        match=rf"\.parquet, column {place}: a data file lacks .* initial-default.*found 7",
    ):
        DeltaTable.convert_iceberg(folder_of(table))
    assert not DeltaTable.exists(folder_of(table))
