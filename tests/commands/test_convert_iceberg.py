"""CONVERT of Iceberg tables: versions 1 to 3, rows compared with those that PyIceberg reads."""

from __future__ import annotations

import builtins
import shutil
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyiceberg")

from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    YearTransform,
)
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

import deltaic
from deltaic import DeltaTable
from deltaic.errors import (
    DeltaError,
    InvalidArgumentError,
    PathOutsideTableError,
    ProtocolError,
    TableAlreadyExistsError,
    TableNotFoundError,
    UnsupportedFeatureError,
)
from deltaic.log.store import open_store
from iceberg_tables import Delete, catalog, edited, folder_of, rows, with_deletes


def delta_rows(
    table: DeltaTable, where: str | None = None, columns: list[str] | None = None
) -> list[dict[str, Any]]:
    return sorted(table.scan(columns, where).to_arrow().to_pylist(), key=repr)


def arrow_schema(data: dict[str, Any], kinds: list[pa.DataType]) -> pa.Schema:
    return pa.schema(list(zip(data, kinds, strict=True)))


def simple(folder: Path, *, version: str = "2", name: str = "t") -> Table:
    """Makes a table with two files of ids 0..9 and 10..19."""
    table = catalog(folder).create_table(
        f"n.{name}", Schema(NestedField(1, "id", LongType())), properties={"format-version": version}
    )
    for first in (0, 10):
        table.append(pa.table({"id": range(first, first + 10)}))
    return table


def files(table: Table) -> list[str]:
    """Paths of the data files, in the order of their smallest id."""
    found = table.inspect.data_files().to_pylist()
    return [each["file_path"] for each in sorted(found, key=lambda each: each["lower_bounds"][0][1])]


@pytest.mark.parametrize("version", ["1", "2"])
def test_types_and_names(tmp_path: Path, version: str) -> None:
    columns = [
        ("flag", BooleanType(), pa.bool_(), True),
        ("i", IntegerType(), pa.int32(), -5),
        ("n", LongType(), pa.int64(), 2**40),
        ("f", FloatType(), pa.float32(), 0.5),
        ("d", DoubleType(), pa.float64(), 1.25),
        ("dec", DecimalType(12, 3), pa.decimal128(12, 3), Decimal("1.250")),
        ("day", DateType(), pa.date32(), date(1969, 12, 31)),
        ("local", TimestampType(), pa.timestamp("us"), datetime(2026, 1, 1, 2, 3, 4, 5)),
        ("moment", TimestamptzType(), pa.timestamp("us", "UTC"), datetime(2026, 1, 1, tzinfo=timezone.utc)),
        ("a name, with {signs}", StringType(), pa.string(), "text"),
        ("b", BinaryType(), pa.binary(), b"\x00\xff"),
        ("fixed", FixedType(3), pa.binary(3), b"abc"),
    ]
    fields = [
        NestedField(at, name, kind, required=name == "n", doc="said" if name == "i" else None)
        for at, (name, kind, _, _) in enumerate(columns, 1)
    ]
    nested = StructType(NestedField(41, "x", IntegerType()), NestedField(42, "y", StringType()))
    fields += [
        NestedField(20, "s", nested),
        NestedField(
            21, "l", ListType(50, StructType(NestedField(51, "z", LongType())), element_required=False)
        ),
        NestedField(22, "m", MapType(60, StringType(), 61, IntegerType(), value_required=False)),
    ]
    table = catalog(tmp_path).create_table(
        "n.t", Schema(*fields), properties={"format-version": version, "owner": "me"}
    )
    values = {name: [value, value if name == "n" else None] for name, _, _, value in columns}
    arrow = pa.schema([pa.field(name, kind, nullable=name != "n") for name, _, kind, _ in columns])
    more = {"s": [{"x": 1, "y": "q"}, None], "l": [[{"z": 1}, None], []], "m": [[("k", 1)], None]}
    kinds = {
        "s": pa.struct([("x", pa.int32()), ("y", pa.string())]),
        "l": pa.list_(pa.struct([("z", pa.int64())])),
        "m": pa.map_(pa.string(), pa.int32()),
    }
    for name, kind in kinds.items():
        arrow = arrow.append(pa.field(name, kind))
    table.append(pa.table({**values, **more}, arrow))

    converted = DeltaTable.convert_iceberg(folder_of(table), name="n", description="d")
    assert delta_rows(converted) == rows(table)
    assert (
        converted.schema.to_ddl()
        == "flag boolean, i int comment 'said', n bigint not null, f float, d double, dec decimal(12,3), day"
        " date, local timestamp_ntz, moment timestamp, `a name, with {signs}` string, b binary, fixed"
        " binary, s struct<x: int, y: string>, l array<struct<z: bigint>>, m map<string, int>"
    )
    ids = {field.field_id for field in table.schema().fields}
    assert {field.metadata["delta.columnMapping.id"] for field in converted.schema} == ids
    assert {field.metadata["delta.columnMapping.physicalName"] for field in converted.schema} == set(
        converted.schema.names
    )
    configuration = converted.metadata.configuration
    assert (configuration["delta.columnMapping.mode"], configuration["owner"]) == ("id", "me")
    assert int(configuration["delta.columnMapping.maxColumnId"]) == table.metadata.last_column_id
    assert (converted.metadata.name, converted.metadata.description) == ("n", "d")
    info = converted.history()[0]
    assert (info["operation"], info["operationMetrics"]) == ("CONVERT", {"numConvertedFiles": "1"})
    assert info["operationParameters"]["sourceFormat"] == "iceberg"
    file = converted.files().to_arrow().to_pylist()[0]
    assert (file["num_records"], file["min_values"]["n"], file["null_count"]["i"]) == (2, 2**40, 1)
    deltaic.write(converted, pa.table({"n": [7], "s": [{"x": 3, "y": "w"}]}), mode="append")
    assert delta_rows(converted, "n = 7", ["s"]) == [{"s": {"x": 3, "y": "w"}}]


def test_columns_that_were_renamed_dropped_and_promoted(tmp_path: Path) -> None:
    fields = [
        NestedField(1, "id", IntegerType()),
        NestedField(2, "gone", StringType()),
        NestedField(3, "f", FloatType()),
        NestedField(4, "dec", DecimalType(5, 2)),
        NestedField(5, "s", StructType(NestedField(6, "x", IntegerType()))),
        NestedField(7, "l", ListType(8, IntegerType(), element_required=False)),
    ]
    table = catalog(tmp_path).create_table("n.t", Schema(*fields))
    kinds = [
        pa.int32(),
        pa.string(),
        pa.float32(),
        pa.decimal128(5, 2),
        pa.struct([("x", pa.int32())]),
        pa.list_(pa.int32()),
    ]
    first = [[1], ["old"], [0.1], [Decimal("1.25")], [{"x": 9}], [[4]]]
    table.append(pa.table(first, pa.schema(list(zip([f.name for f in fields], kinds, strict=True)))))
    with table.update_schema() as change:
        change.delete_column("gone").rename_column("id", "number").update_column("id", LongType())
        change.update_column("f", DoubleType()).update_column("dec", DecimalType(9, 2))
        change.update_column(("s", "x"), LongType()).rename_column(("s", "x"), "y")
        change.update_column(("l", "element"), LongType())
    with table.update_schema() as change:
        change.add_column("gone", StringType()).add_column("late", IntegerType())
    with table.update_schema() as change:
        change.update_column("late", LongType())
    table.append(
        pa.table(
            [[2**40], [0.2], [Decimal("1234567.25")], [{"y": 2**40}], [[2**40]], ["new"], [2**41]],
            pa.schema(
                [
                    ("number", pa.int64()),
                    ("f", pa.float64()),
                    ("dec", pa.decimal128(9, 2)),
                    ("s", pa.struct([("y", pa.int64())])),
                    ("l", pa.list_(pa.int64())),
                    ("gone", pa.string()),
                    ("late", pa.int64()),
                ]
            ),
        )
    )
    converted = DeltaTable.convert_iceberg(folder_of(table))
    assert delta_rows(converted) == rows(table)
    assert delta_rows(converted, "gone = 'new'", ["number"]) == [{"number": 2**40}]
    assert "typeWidening" in (converted.protocol.reader_features or ())
    changes = {field.name: field.metadata.get("delta.typeChanges") for field in converted.schema}
    assert changes["number"] == [{"fromType": "integer", "toType": "long"}]
    assert changes["l"] == [{"fromType": "integer", "toType": "long", "fieldPath": "element"}]
    assert changes["gone"] is None
    assert changes["late"] == changes["number"]
    assert converted.schema.find(("s", "y"))[1].metadata["delta.typeChanges"] == [
        {"fromType": "integer", "toType": "long"}
    ]
    converted.alter.add_columns("added string")  # no id is given again, not even that of the dropped column
    assert converted.schema.field("added").metadata["delta.columnMapping.id"] > table.metadata.last_column_id


def test_a_table_that_was_set_back_to_an_earlier_schema(tmp_path: Path) -> None:
    columns = Schema(NestedField(1, "n", IntegerType()), NestedField(2, "f", FloatType()))
    table = catalog(tmp_path).create_table("n.t", columns)
    table.append(pa.table({"n": pa.array([1], pa.int32()), "f": pa.array([0.1], pa.float32())}))
    with table.update_schema() as change:
        change.update_column("n", LongType()).update_column("f", DoubleType())
    table = edited(table, {"current-schema-id": 0})
    converted = DeltaTable.convert_iceberg(folder_of(table))
    assert delta_rows(converted) == rows(table)
    assert converted.schema.to_ddl() == "n int, f float"


def test_identity_partitions(tmp_path: Path) -> None:
    fields = [
        NestedField(1, "id", LongType()),
        NestedField(2, "day", DateType()),
        NestedField(3, "city", StringType()),
        NestedField(4, "at", TimestamptzType()),
        NestedField(5, "dec", DecimalType(9, 2)),
        NestedField(6, "local", TimestampType()),
        NestedField(7, "flag", BooleanType()),
        NestedField(8, "x", DoubleType()),
    ]
    spec = PartitionSpec(*(PartitionField(at, 998 + at, IdentityTransform(), f"p{at}") for at in range(2, 9)))
    table = catalog(tmp_path).create_table("n.t", Schema(*fields), partition_spec=spec)
    moment = datetime(2026, 3, 1, 5, 6, 7, 8)
    data = {
        "id": [1, 2, 3],
        "day": [date(1900, 1, 1), None, date(2026, 1, 2)],
        "city": ["a/b c%", None, "=,"],
        "at": [moment.replace(tzinfo=timezone.utc), None, datetime(1960, 1, 1, tzinfo=timezone.utc)],
        "dec": [Decimal("-1.50"), None, Decimal("100.00")],
        "local": [moment, None, datetime(1960, 1, 1, 1)],
        "flag": [True, None, False],
        "x": [1e300, None, 0.1],
    }
    times = [pa.timestamp("us", "UTC"), pa.decimal128(9, 2), pa.timestamp("us")]
    kinds = [pa.int64(), pa.date32(), pa.string(), *times, pa.bool_(), pa.float64()]
    table.append(pa.table(data, arrow_schema(data, kinds)))
    converted = DeltaTable.convert_iceberg(folder_of(table))
    assert converted.metadata.partition_columns == [field.name for field in fields[1:]]
    assert delta_rows(converted) == rows(table)
    assert converted.scan(where="city = 'a/b c%'").explain().files_read == 1
    assert delta_rows(converted, "at < timestamp'1970-01-01T00:00:00Z'", ["id"]) == [{"id": 3}]


def test_partition_columns_that_were_renamed_and_promoted(tmp_path: Path) -> None:
    fields = [
        NestedField(1, "n", IntegerType()),
        NestedField(2, "dec", DecimalType(5, 2)),
        NestedField(3, "f", FloatType()),
    ]
    spec = PartitionSpec(*(PartitionField(at, 999 + at, IdentityTransform(), f"p{at}") for at in (1, 2, 3)))
    table = catalog(tmp_path).create_table(
        "n.t", Schema(*fields, NestedField(4, "id", LongType())), partition_spec=spec
    )
    table.append(
        pa.Table.from_pylist([{"n": 1, "dec": Decimal("1.50"), "f": 0.1, "id": 1}], table.schema().as_arrow())
    )
    with table.update_schema() as change:
        change.update_column("n", LongType()).update_column("dec", DecimalType(9, 2)).update_column(
            "f", DoubleType()
        )
        change.rename_column("n", "z")
    new = {"z": 2**40, "dec": Decimal("1234567.50"), "f": 0.1, "id": 2}
    table.append(pa.Table.from_pylist([new], table.schema().as_arrow()))
    converted = DeltaTable.convert_iceberg(folder_of(table))
    assert delta_rows(converted) == rows(table)
    assert converted.metadata.partition_columns == ["z", "dec", "f"]


@pytest.mark.parametrize(
    ("column", "transform", "expression", "values"),
    [
        ("ts", YearTransform(), "year(ts)", [1969, 2026]),
        ("ts", MonthTransform(), "date_format(ts, 'yyyy-MM')", ["1969-12", "2026-03"]),
        ("ts", DayTransform(), "CAST(ts AS DATE)", [date(1969, 12, 31), date(2026, 3, 4)]),
        ("ts", HourTransform(), "date_format(ts, 'yyyy-MM-dd-HH')", ["1969-12-31-22", "2026-03-04-05"]),
        ("d", MonthTransform(), "date_format(d, 'yyyy-MM')", ["1969-12", "2026-03"]),
        ("text", TruncateTransform(2), "substring(text, 0, 2)", ["ab", "é—"]),
        ("n", TruncateTransform(10), "n - (((n % 10) + 10) % 10)", [-10, 20]),
    ],
)
def test_other_transforms_become_generated_columns(
    tmp_path: Path, column: str, transform: Transform[Any, Any], expression: str, values: list[Any]
) -> None:
    fields = [
        NestedField(1, "ts", TimestamptzType()),
        NestedField(2, "d", DateType()),
        NestedField(3, "text", StringType()),
        NestedField(4, "n", IntegerType()),
    ]
    source = next(field.field_id for field in fields if field.name == column)
    spec = PartitionSpec(PartitionField(source, 1000, transform, "part"))
    table = catalog(tmp_path).create_table("n.t", Schema(*fields), partition_spec=spec)
    moments = [
        datetime(1969, 12, 31, 22, 1, tzinfo=timezone.utc),
        datetime(2026, 3, 4, 5, 6, tzinfo=timezone.utc),
        None,
    ]
    data = {
        "ts": moments,
        "d": [each and each.date() for each in moments],
        "text": ["abc", "é—€", None],
        "n": [-1, 25, None],
    }
    kinds = [pa.timestamp("us", "UTC"), pa.date32(), pa.string(), pa.int32()]
    table.append(pa.table(data, arrow_schema(data, kinds)))
    converted = DeltaTable.convert_iceberg(folder_of(table))
    assert delta_rows(converted, None, ["ts", "d", "text", "n"]) == rows(table)
    generated = converted.schema.field("part")
    assert generated.metadata["delta.generationExpression"] == expression
    assert generated.metadata["delta.columnMapping.id"] > table.metadata.last_column_id
    assert converted.metadata.partition_columns == ["part"]
    found = [each["part"] for each in delta_rows(converted, None, ["part"])]
    assert sorted(found, key=repr) == sorted([*values, None], key=repr)
    # Values of files agree with the expression.
    assert converted.scan(where=f"NOT (part <=> {expression})").count() == 0
    deltaic.write(
        converted,
        pa.table({name: values[:1] for name, values in data.items()}, arrow_schema(data, kinds)),
        mode="append",
    )
    assert converted.scan(where=f"NOT (part <=> {expression})").count() == 0
    assert converted.scan(where=f"part <=> {expression}").count() == 4


def test_position_deletes_become_deletion_vectors(tmp_path: Path) -> None:
    table = simple(tmp_path)
    one, two = files(table)
    deleted = with_deletes(table, [Delete({one: [0, 3], two: [9]}), Delete({two: [1, 9]})])
    assert [each["id"] for each in rows(deleted)] == sorted(
        {*range(20)} - {0, 3, 11, 19}, key=lambda each: repr({"id": each})
    )
    converted = DeltaTable.convert_iceberg(folder_of(table))
    assert delta_rows(converted) == rows(deleted)
    vectors = converted.files().to_arrow()["deletion_vector"].to_pylist()
    assert sorted(each["cardinality"] for each in vectors) == [2, 2]
    assert {each["storage_type"] for each in vectors} == {"u"}
    assert "deletionVectors" in (converted.protocol.reader_features or ())
    converted.delete("id = 5")
    assert converted.scan().count() == 15


def test_deletes_apply_to_older_data_only(tmp_path: Path) -> None:
    table = simple(tmp_path)
    one, two = files(table)
    # `two` came with sequence number 2; PyIceberg overlooks it.
    with_deletes(table, [Delete({one: [0], two: [0]}, sequence_number=1)])
    converted = DeltaTable.convert_iceberg(folder_of(table))
    assert {each["id"] for each in delta_rows(converted)} == set(range(1, 20))


def test_a_file_without_rows_left_is_no_file_of_the_table(tmp_path: Path) -> None:
    table = simple(tmp_path)
    deleted = with_deletes(table, [Delete({files(table)[0]: list(range(10))})])
    converted = DeltaTable.convert_iceberg(folder_of(table))
    assert delta_rows(converted) == rows(deleted)
    assert converted.files().count() == 1


def test_vectors_of_version_3(tmp_path: Path) -> None:
    table = simple(tmp_path)
    one, two = files(table)
    former = with_deletes(table, [Delete({one: [0, 1], two: [5]})])
    newer = with_deletes(former, [Delete({one: [0, 1, 2], two: [5, 6]}, kind="vector")], version=3)
    expected = [
        {"id": each} for each in sorted({*range(20)} - {0, 1, 2, 15, 16}, key=lambda each: repr({"id": each}))
    ]
    assert rows(newer) == expected
    converted = DeltaTable.convert_iceberg(
        folder_of(table), properties={"delta.enableDeletionVectors": False}
    )
    assert delta_rows(converted) == expected
    assert sorted(
        each["cardinality"] for each in converted.files().to_arrow()["deletion_vector"].to_pylist()
    ) == [2, 3]
    deltalake = pytest.importorskip("deltalake")
    # deltalake reads no vectors: an error, so that it shows no deleted rows.
    with pytest.raises(deltalake.exceptions.DeltaProtocolError):
        deltalake.DeltaTable(folder_of(table)).to_pyarrow_table()


def test_a_damaged_vector_is_refused(tmp_path: Path) -> None:
    table = simple(tmp_path)
    with_deletes(table, [Delete({files(table)[0]: [1]}, kind="vector")], version=3)
    puffin = next((folder_of(table) / "data").glob("*.puffin"))
    data = bytearray(puffin.read_bytes())
    data[20] ^= 1
    puffin.write_bytes(data)
    with pytest.raises(ProtocolError, match=r"puffin at 4: a deletion vector's checksum is wrong"):
        DeltaTable.convert_iceberg(folder_of(table))
    assert not DeltaTable.exists(folder_of(table))


def test_equality_deletes_are_refused_where_they_apply(tmp_path: Path) -> None:
    table = simple(tmp_path)
    # Older than all data: applies to nothing.
    with_deletes(table, [Delete({"x": [1]}, kind="equality", sequence_number=1)])
    assert DeltaTable.convert_iceberg(folder_of(table)).scan().count() == 20
    other = simple(tmp_path, name="other")
    with_deletes(other, [Delete({"x": [1]}, kind="equality")])
    with pytest.raises(UnsupportedFeatureError, match="equality deletes cannot be converted"):
        DeltaTable.convert_iceberg(folder_of(other))
    assert not DeltaTable.exists(folder_of(other))


def test_equality_deletes_apply_to_their_partition(tmp_path: Path) -> None:
    spec = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "part"))
    columns = Schema(NestedField(1, "part", LongType()), NestedField(2, "id", LongType()))
    table = catalog(tmp_path).create_table("n.t", columns, partition_spec=spec)
    table.append(pa.table({"part": [1, 2], "id": [10, 20]}))
    one = next(
        each["file_path"] for each in table.inspect.data_files().to_pylist() if "part=1" in each["file_path"]
    )
    with_deletes(table, [Delete({one: [0]}, kind="equality")])
    with pytest.raises(UnsupportedFeatureError, match="equality deletes cannot be converted"):
        DeltaTable.convert_iceberg(folder_of(table))
    table.delete("part = 1")
    two = next(each["file_path"] for each in table.inspect.data_files().to_pylist())
    assert "part=2" in two
    with_deletes(table, [Delete({one: [0]}, kind="equality", partition=1)])
    assert delta_rows(DeltaTable.convert_iceberg(folder_of(table)), None, ["id"]) == [{"id": 20}]


def test_the_table_of_a_catalog_and_a_metadata_file(tmp_path: Path) -> None:
    table = simple(tmp_path)
    first = sorted((folder_of(table) / "metadata").glob("00001-*.metadata.json"))[0]
    assert DeltaTable.convert_iceberg(first).scan().count() == 10
    shutil.rmtree(folder_of(table) / "_delta_log")
    shutil.copy(first, first.with_name("00009-zzz.metadata.json"))  # of a commit that lost
    converted = DeltaTable.convert_iceberg(table)
    assert (converted.scan().count(), converted.location) == (20, str(folder_of(table)))


def test_the_newest_metadata_must_be_known(tmp_path: Path) -> None:
    table = simple(tmp_path)
    newest = Path(table.metadata_location.removeprefix("file://"))
    twin = newest.with_name(f"{newest.name.partition('-')[0]}-twin.metadata.json")
    shutil.copy(newest, twin)
    with pytest.raises(
        InvalidArgumentError,
        match=r"only the table's catalog knows.*found metadata/00002-.* and metadata/00002-",
    ):
        DeltaTable.convert_iceberg(folder_of(table))
    twin.unlink()
    newest.rename(newest.with_name("v10.metadata.json"))
    (newest.parent / "v9.metadata.json").write_text("{}")
    assert DeltaTable.convert_iceberg(folder_of(table)).scan().count() == 20
    with pytest.raises(TableNotFoundError, match="no Iceberg table is there"):
        DeltaTable.convert_iceberg(tmp_path / "nowhere")
    with pytest.raises(InvalidArgumentError, match="lies in the table's folder `metadata`"):
        DeltaTable.convert_iceberg(tmp_path / "v9.metadata.json")


def test_a_table_that_moved(tmp_path: Path) -> None:
    table = simple(tmp_path)
    folder_of(table).rename(tmp_path / "moved")
    assert DeltaTable.convert_iceberg(tmp_path / "moved").scan().count() == 20


def test_what_cannot_be_converted(tmp_path: Path) -> None:
    names = catalog(tmp_path)

    def refused(name: str, kind: Any = None, spec: PartitionSpec | None = None, **properties: str) -> str:
        options = {"partition_spec": spec} if spec else {}
        columns = Schema(NestedField(1, "c", kind or LongType()), NestedField(2, "d", LongType()))
        table = names.create_table(f"n.{name}", columns, properties=properties, **options)
        with pytest.raises(DeltaError) as error:
            DeltaTable.convert_iceberg(folder_of(table))
        assert not DeltaTable.exists(folder_of(table))
        assert isinstance(error.value, UnsupportedFeatureError)
        return str(error.value)

    assert "column c: a column has an Iceberg type that Delta does not have; found time" in refused(
        "time", TimeType()
    )
    assert "found uuid" in refused("uuid", UUIDType())
    assert "column c.element.x" in refused("deep", ListType(5, StructType(NestedField(6, "x", UUIDType()))))


@pytest.mark.parametrize(
    ("kind", "source", "transform", "value", "reason"),
    [
        (LongType(), 1, BucketTransform(4), 5, "Delta has no such partitioning"),
        (DecimalType(5, 1), 1, TruncateTransform(4), Decimal("5.5"), "Delta has no such partitioning"),
        (BinaryType(), 1, IdentityTransform(), b"x", "cannot be partitioned by binary values"),
        (
            StructType(NestedField(6, "x", LongType())),
            6,
            IdentityTransform(),
            {"x": 5},
            "cannot be a field of a struct",
        ),
        (StringType(), 1, IdentityTransform(), "", "an empty text, which Delta readers take for null"),
    ],
)
def test_partition_fields_that_delta_does_not_have(
    tmp_path: Path,
    kind: Any,
    source: int,
    transform: Transform[Any, Any],
    value: Any,
    reason: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    spec = PartitionSpec(
        PartitionField(source, 1000, transform, "b"), PartitionField(2, 1001, IdentityTransform(), "d")
    )
    columns = Schema(NestedField(1, "c", kind), NestedField(2, "d", LongType()))
    table = catalog(tmp_path).create_table("n.t", columns, partition_spec=spec)
    table.append(pa.table({"c": [value, None], "d": [1, 2]}, table.schema().as_arrow()))
    converted = DeltaTable.convert_iceberg(folder_of(table))
    assert delta_rows(converted) == rows(table)
    assert converted.metadata.partition_columns == ["d"]
    assert reason in caplog.text
    assert "partition field b: " in caplog.text


def test_files_of_an_earlier_partitioning(tmp_path: Path) -> None:
    spec = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "c"))
    columns = Schema(NestedField(1, "c", LongType()), NestedField(2, "d", LongType()))
    table = catalog(tmp_path).create_table("n.t", columns, partition_spec=spec)
    table.append(pa.table({"c": [1], "d": [1]}))
    with table.update_spec() as change:
        change.add_field("d", IdentityTransform(), "d")
    table.append(pa.table({"c": [1, 2], "d": [2, 3]}))
    converted = DeltaTable.convert_iceberg(folder_of(table))
    assert delta_rows(converted) == rows(table)
    assert converted.metadata.partition_columns == ["c"]  # all files have a value of it
    shutil.rmtree(folder_of(table) / "_delta_log")
    with table.update_spec() as change:
        change.remove_field("c")
    converted = DeltaTable.convert_iceberg(folder_of(table))
    assert (delta_rows(converted), converted.metadata.partition_columns) == (rows(table), [])


def test_files_outside_and_other_formats_are_refused(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    table = catalog(tmp_path).create_table(
        "n.t", Schema(NestedField(1, "id", LongType())), properties={"write.data.path": elsewhere.as_uri()}
    )
    table.append(pa.table({"id": [1]}))
    with pytest.raises(PathOutsideTableError, match="a file outside its folder"):
        DeltaTable.convert_iceberg(folder_of(table))
    other = simple(tmp_path, name="other")
    with_deletes(other, [Delete({files(other)[0]: [1]}, file_format="ORC")])
    with pytest.raises(UnsupportedFeatureError, match=r"only Parquet files.*found ORC; expected PARQUET"):
        DeltaTable.convert_iceberg(folder_of(other))


def test_metadata_that_cannot_be_read(tmp_path: Path) -> None:
    table = simple(tmp_path)
    edited(table, {"format-version": 9}, load=False)
    with pytest.raises(
        ProtocolError, match=r"metadata/00003-edited\.metadata\.json: the Iceberg metadata cannot be read"
    ):
        DeltaTable.convert_iceberg(folder_of(table))
    (folder_of(table) / "metadata" / "00003-edited.metadata.json").write_text("{")
    with pytest.raises(ProtocolError, match="cannot be read"):
        DeltaTable.convert_iceberg(folder_of(table))
    for manifest in (folder_of(table) / "metadata").glob("*-m0.avro"):
        manifest.write_bytes(manifest.read_bytes()[:200])
    with pytest.raises(ProtocolError, match=r"m0\.avro: the Iceberg metadata cannot be read"):
        DeltaTable.convert_iceberg(table)
    for manifest in (folder_of(table) / "metadata").glob("*-m0.avro"):
        manifest.unlink()
    with pytest.raises(ProtocolError, match=r"m0\.avro: a file of the Iceberg metadata is missing"):
        DeltaTable.convert_iceberg(table)
    assert not DeltaTable.exists(folder_of(table))


def test_a_data_file_that_is_gone_leaves_no_table(tmp_path: Path) -> None:
    table = simple(tmp_path)
    Path(files(table)[0].removeprefix("file://")).unlink()
    with pytest.raises(DeltaError, match=r"\.parquet"):
        DeltaTable.convert_iceberg(folder_of(table))
    assert not DeltaTable.exists(folder_of(table))


def test_an_empty_table_and_modes(tmp_path: Path) -> None:
    properties = {"history.expire.max-snapshot-age-ms": "60000"}
    table = catalog(tmp_path).create_table(
        "n.t", Schema(NestedField(1, "id", LongType())), properties=properties
    )
    with pytest.raises(InvalidArgumentError, match="unknown mode"):
        DeltaTable.convert_iceberg(folder_of(table), mode="overwrite")  # type: ignore[arg-type]
    with pytest.raises(UnsupportedFeatureError, match=r"columnMapping\.mode.*found name"):
        DeltaTable.convert_iceberg(folder_of(table), properties={"delta.columnMapping.mode": "name"})
    converted = DeltaTable.convert_iceberg(folder_of(table), properties={"delta.appendOnly": True})
    assert (converted.scan().count(), converted.version) == (0, 0)
    assert converted.metadata.configuration["delta.logRetentionDuration"] == "interval 60000 milliseconds"
    with pytest.raises(TableAlreadyExistsError):
        DeltaTable.convert_iceberg(folder_of(table))
    assert DeltaTable.convert_iceberg(folder_of(table), mode="ignore").version == 0


def test_an_iceberg_table_is_no_folder_of_parquet_files(tmp_path: Path) -> None:
    with pytest.raises(
        InvalidArgumentError, match=r"that of an Iceberg table.*expected DeltaTable\.convert_iceberg"
    ):
        DeltaTable.convert(folder_of(simple(tmp_path)))


def test_without_statistics(tmp_path: Path) -> None:
    table = simple(tmp_path)
    with_deletes(table, [Delete({files(table)[0]: [1]})])
    converted = DeltaTable.convert_iceberg(folder_of(table), statistics=False)
    found = converted.files().to_arrow().to_pylist()
    assert sorted((each["num_records"], each["min_values"]["id"]) for each in found) == [
        (10, None),
        (10, None),
    ]
    assert converted.scan().count() == 19


def test_conversion_in_sql(tmp_path: Path) -> None:
    table = simple(tmp_path)
    for _ in range(2):
        assert deltaic.sql(f"CONVERT TO DELTA iceberg.`{folder_of(table)}` NO STATISTICS").count() == 0
    assert DeltaTable(folder_of(table)).scan().count() == 20
    with pytest.raises(InvalidArgumentError, match="PARTITIONED BY cannot be used"):
        deltaic.sql(f"CONVERT TO DELTA iceberg.`{folder_of(table)}` PARTITIONED BY (a int)")


def test_without_pyiceberg_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = simple(tmp_path)
    original = builtins.__import__

    def missing(name: str, *arguments: Any, **options: Any) -> Any:
        if name == "pyiceberg":
            raise ModuleNotFoundError(name)
        return original(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'deltaic\[iceberg\]'"):
        DeltaTable.convert_iceberg(folder_of(table))


def test_a_table_in_an_object_store(tmp_path: Path) -> None:
    table = simple(tmp_path)
    deleted = with_deletes(
        table, [Delete({files(table)[0]: [3]}), Delete({files(table)[1]: [4]}, kind="vector")], version=3
    )
    place = "memory://convert-iceberg/lake/t"
    store = open_store(place)
    for path in folder_of(table).rglob("*"):
        if path.is_file():
            store.put(str(path.relative_to(folder_of(table))), path.read_bytes())
    converted = DeltaTable.convert_iceberg(place)
    assert (converted.location, delta_rows(converted)) == (place, rows(deleted))
    newest = next(path for path, _, _ in store.entries("metadata") if path.endswith("edited.metadata.json"))
    assert DeltaTable.convert_iceberg(f"{place}/{newest}", mode="ignore").version == 0
