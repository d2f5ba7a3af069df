"""Conversion between Delta schemas and Arrow (`_core.TableSchema`, `schema_from_arrow`).

Source: PROTOCOL.md, "Schema Serialization Format", "Column Mapping".
"""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deltaic import _core
from deltaic.errors import InvalidArgumentError, ProtocolError, SchemaMismatchError, UnsupportedFeatureError


def schema(*fields: tuple[str, object], **metadata: dict[str, object]) -> str:
    return json.dumps(
        {
            "type": "struct",
            "fields": [
                {"name": n, "type": t, "nullable": True, "metadata": metadata.get(n, {})} for n, t in fields
            ],
        }
    )


PRIMITIVES = {
    "string": pa.string(),
    "long": pa.int64(),
    "integer": pa.int32(),
    "short": pa.int16(),
    "byte": pa.int8(),
    "float": pa.float32(),
    "double": pa.float64(),
    "decimal(38,18)": pa.decimal128(38, 18),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "void": pa.null(),
}


@pytest.mark.parametrize("name", PRIMITIVES)
def test_primitive_types_map_both_ways(name: str) -> None:
    assert _core.TableSchema(schema(("c", name))).to_arrow().field("c").type == PRIMITIVES[name]
    assert json.loads(_core.type_from_arrow(PRIMITIVES[name])) == name


def test_nested_children_carry_the_names_of_the_specification() -> None:
    inner = {"type": "map", "keyType": "string", "valueType": "long", "valueContainsNull": False}
    table = _core.TableSchema(schema(("c", {"type": "array", "elementType": inner, "containsNull": True})))
    found = table.to_arrow().field("c").type
    assert found.value_field.name == "element"
    assert found.value_type.key_field.name == "key"
    assert found.value_type.item_field.name == "value"
    assert not found.value_type.item_field.nullable
    assert (
        json.loads(_core.schema_from_arrow(table.to_arrow()))["fields"][0]["type"]
        == json.loads(table.json)["fields"][0]["type"]
    )


@pytest.mark.parametrize(
    ("arrow", "delta"),
    [
        (pa.timestamp("ns"), "timestamp_ntz"),
        (pa.timestamp("s", "Europe/Berlin"), "timestamp"),
        (pa.date64(), "date"),
        (pa.uint8(), "short"),
        (pa.uint16(), "integer"),
        (pa.uint32(), "long"),
        (pa.uint64(), "decimal(20,0)"),
        (pa.null(), "void"),
        (pa.dictionary(pa.int32(), pa.string()), "string"),
        (pa.string_view(), "string"),
        (pa.large_string(), "string"),
        (pa.binary(4), "binary"),
        (pa.float16(), "float"),
        (pa.decimal256(20, 3), "decimal(20,3)"),
        (pa.decimal128(5, -2), "decimal(7,0)"),
        (pa.list_(pa.int32(), 3), {"type": "array", "elementType": "integer", "containsNull": True}),
    ],
)
def test_other_arrow_types_become_the_type_that_holds_their_values(arrow: pa.DataType, delta: object) -> None:
    assert json.loads(_core.type_from_arrow(arrow)) == delta


@pytest.mark.parametrize("arrow", [pa.duration("s"), pa.time64("us"), pa.decimal256(50, 0)])
def test_arrow_types_without_a_delta_type_are_refused_by_name(arrow: pa.DataType) -> None:
    with pytest.raises(SchemaMismatchError, match="column_x"):
        _core.schema_from_arrow(pa.schema([("column_x", arrow)]))


def test_field_metadata_goes_both_ways() -> None:
    metadata = {"delta.columnMapping.id": 7, "delta.columnMapping.physicalName": "col-1", "comment": "seven"}
    table = _core.TableSchema(schema(("c", "long"), c=metadata), column_mapping="id")
    field = table.to_arrow().field("c")
    assert field.metadata == {
        b"delta.columnMapping.id": b"7",
        b"delta.columnMapping.physicalName": b"col-1",
        b"comment": b"seven",
    }
    assert json.loads(_core.schema_from_arrow(table.to_arrow()))["fields"][0]["metadata"] == metadata


def test_columns_are_chosen_without_case_and_by_branch() -> None:
    inner = {
        "type": "struct",
        "fields": [{"name": n, "type": "long", "nullable": True, "metadata": {}} for n in ("x", "y")],
    }
    table = _core.TableSchema(schema(("A", inner), ("b", "string")), ["b"])
    assert table.partition_columns == ["b"]
    assert table.to_arrow(["B", "a.Y"]) == pa.schema(
        [("b", pa.string()), ("A", pa.struct([("y", pa.int64())]))]
    )
    with pytest.raises(InvalidArgumentError, match=r'no column "a\.z".*expected one of A, b'):
        table.to_arrow(["a.z"])


def test_what_is_no_schema_is_refused() -> None:
    for text in ("", "[]", '"long"', '{"type":"struct"}', '{"type":"struct","fields":[{"name":"a"}]}'):
        with pytest.raises(ProtocolError):
            _core.TableSchema(text)
    with pytest.raises(UnsupportedFeatureError, match="interval year"):
        _core.TableSchema(schema(("v", "interval year")))
    with pytest.raises(ProtocolError, match="partition column is not in the schema"):
        _core.TableSchema(schema(("a", "long")), ["b"])
    nested: object = "long"
    for _ in range(200):
        nested = {"type": "array", "elementType": nested, "containsNull": True}
    with pytest.raises(ProtocolError):
        _core.TableSchema(schema(("a", nested)))


def test_field_ids_of_files(tmp_path: Path) -> None:
    """Files that differ only in their field ids have different schemas."""

    def field(name: str, data_type: pa.DataType, number: int) -> pa.Field:
        return pa.field(name, data_type, metadata={"PARQUET:field_id": str(number)})

    nested = pa.struct([field("x", pa.list_(field("element", pa.int32(), 4)), 3)])
    schemas = {
        "a": pa.schema([field("id", pa.int64(), 1), field("s", nested, 2)]),
        "b": pa.schema([field("id", pa.int64(), 7), field("s", nested, 2)]),
        "c": pa.schema([("id", pa.int64()), ("s", nested)]),
        "d": pa.schema([field("id", pa.int64(), 1), field("s", nested, 2)]),
    }
    sizes = []
    for name, written in schemas.items():
        pq.write_table(written.empty_table(), tmp_path / name, store_schema=False)
        sizes.append((tmp_path / name).stat().st_size)
    times = pa.array([0] * len(schemas), pa.int64())
    listing = pa.table(
        {"path": list(schemas), "size": pa.array(sizes, pa.int64()), "modification_time": times}
    )
    found = _core.Survey(_core.Store(str(tmp_path)), listing, hive=False).arrow_schemas
    assert [path for _, path in found] == ["a", "b", "c"]
    for read, path in found:
        assert read.equals(pq.read_schema(tmp_path / path), check_metadata=True)
