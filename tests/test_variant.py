"""Variants: read and written in their encoding, kept by every change, and joined again if they are shredded.

Source: PROTOCOL.md, "Variant Data Type"; the encoding is Parquet's ("Variant Binary Encoding").
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import deltaic
from deltaic import DeltaTable, Schema
from deltaic.errors import InvalidArgumentError, SchemaMismatchError

METADATA = b"\x01\x00\x00"
"""Version 1, a dictionary without keys."""
PARTS = pa.struct(
    [pa.field("metadata", pa.binary(), nullable=False), pa.field("value", pa.binary(), nullable=False)]
)


def small(number: int) -> dict[str, bytes]:
    """Returns a whole number of one byte."""
    return {"metadata": METADATA, "value": bytes([0x0C, number % 256])}


def rows_of(*numbers: int | None, start: int = 0) -> pa.Table:
    values = [None if number is None else small(number) for number in numbers]
    return pa.table(
        {"id": pa.array(range(start, start + len(numbers)), pa.int64()), "v": pa.array(values, PARTS)}
    )


def make(tmp_path: Path, *, vectors: bool = True, **properties: Any) -> DeltaTable:
    wanted = {
        "delta.enableDeletionVectors": vectors,
        **{f"delta.{name}": value for name, value in properties.items()},
    }
    return DeltaTable.create(tmp_path / "t", "id bigint, v variant", properties=wanted)


def found(table: DeltaTable) -> dict[int, Any]:
    data = DeltaTable(table.location).scan().to_arrow()
    assert data.schema.field("v").type == PARTS
    return dict(zip(data["id"].to_pylist(), data["v"].to_pylist(), strict=True))


def test_a_table_with_variants(tmp_path: Path) -> None:
    table = make(tmp_path)
    assert "variantType" in (table.protocol.reader_features or ())
    assert table.schema.field("v").type == "variant"
    deltaic.write(table, rows_of(1, None, 3), mode="append")
    assert found(table) == {0: small(1), 1: None, 2: small(3)}
    (stats,) = table._snapshot.files().adds["stats"].to_pylist()
    assert json.loads(stats)["nullCount"] == {"id": 0, "v": 1}
    assert "v" not in json.loads(stats)["minValues"]
    assert table.scan(where="v is null").to_arrow()["id"].to_pylist() == [1]
    assert table.scan(["v"], where="id = 2").to_arrow()["v"].to_pylist() == [small(3)]
    (path,) = Path(table.location).glob("*.parquet")
    group = pq.ParquetFile(path).schema_arrow.field("v").type
    assert sorted((part.name, str(part.type), part.nullable) for part in group) == [
        ("metadata", "binary", False),
        ("value", "binary", False),
    ]


@pytest.mark.parametrize("mapping", ["none", "name", "id"])
@pytest.mark.parametrize("vectors", [True, False])
def test_every_change_carries_them(tmp_path: Path, vectors: bool, mapping: str) -> None:
    table = make(tmp_path, vectors=vectors, **{"columnMapping.mode": mapping, "enableRowTracking": True})
    deltaic.write(table, rows_of(*range(10)), mode="append")
    deltaic.write(table, rows_of(*range(10, 20), start=10), mode="append")
    table.update({"id": "id + 100"}, "id = 3")
    table.delete("id = 5")
    table.merge(
        rows_of(77, 99, start=19), "t.id = s.id"
    ).when_matched_update_all().when_not_matched_insert_all().execute()
    expected = {
        **{key: small(key) for key in range(20) if key not in (3, 5)},
        103: small(3),
        19: small(77),
        20: small(99),
    }
    assert found(table) == expected
    table.optimize.compact()
    table.optimize.z_order(["id"])
    table.optimize.purge()
    table.optimize.statistics()
    table.checkpoint()
    assert found(table) == expected
    assert table.files().to_arrow().num_rows == 1
    table.restore(1)
    assert found(table) == {key: small(key) for key in range(10)}


def test_nested_variants_and_new_columns(tmp_path: Path) -> None:
    schema = Schema.from_ddl("id bigint, s struct<a: variant, b: array<variant>>, m map<string, variant>")
    table = DeltaTable.create(tmp_path / "t", schema)
    row = {"id": 1, "s": {"a": small(1), "b": [small(2), None]}, "m": [("k", small(3))]}
    deltaic.write(table, pa.Table.from_pylist([row], pa.schema(table.schema)), mode="append")
    assert table.scan().to_arrow().to_pylist() == [row]
    table.alter.add_columns("w variant")
    deltaic.write(
        table, pa.Table.from_pylist([{**row, "id": 2, "w": small(9)}], pa.schema(table.schema)), mode="append"
    )
    assert sorted(table.scan().to_arrow().to_pylist(), key=lambda each: each["id"]) == [
        {**row, "w": None},
        {**row, "id": 2, "w": small(9)},
    ]
    table.optimize.compact()
    assert table.scan(["s.a"]).to_arrow().to_pylist() == [{"s": {"a": small(1)}}] * 2


def test_the_extension_type_makes_a_variant(tmp_path: Path) -> None:
    field = pa.field(
        "v", PARTS, metadata={"ARROW:extension:name": "arrow.parquet.variant", "ARROW:extension:metadata": ""}
    )
    data = pa.table([[1], [small(4)]], schema=pa.schema([pa.field("id", pa.int64()), field]))
    table = deltaic.write(tmp_path / "t", data)
    assert table.schema.field("v").type == "variant"
    assert found(table) == {1: small(4)}
    plain = deltaic.write(tmp_path / "plain", rows_of(1))
    assert not isinstance(plain.schema.field("v").type, str), "a struct is a struct"


def test_rows_of_deltaic_keep_their_variants(tmp_path: Path) -> None:
    query = "SELECT 1 AS id, parse_json('{\"a\": 7}') AS v, array(parse_json('2')) AS l"
    first = deltaic.write(tmp_path / "query", deltaic.sql(query))
    deltaic.sql(f"CREATE TABLE delta.`{tmp_path / 'created'}` AS {query}")
    merged = deltaic.write(tmp_path / "merged", {"id": [1]})
    merged.merge(first.scan(), "t.id = s.id", schema_mode="merge").when_matched_update_all().execute()
    created, copy = deltaic.DeltaTable(tmp_path / "created"), deltaic.write(tmp_path / "copy", first)
    for table in (first, created, copy, merged):
        assert table.schema.to_ddl().endswith("v variant, l array<variant>")
        answer = deltaic.sql("SELECT v:a::int AS a FROM x", tables={"x": table.scan()})
        assert answer.to_pylist() == [{"a": 7}]


def test_insert_casts_values_to_variants(tmp_path: Path) -> None:
    """By store assignment, what Spark's ANSI cast converts: primitive types and arrays of them."""
    at = f"delta.`{tmp_path / 'table'}`"
    deltaic.sql(f"CREATE TABLE {at} (id INT, v VARIANT, s STRUCT<x: VARIANT>) USING delta")
    deltaic.sql(f"INSERT INTO {at} VALUES (1, 5, NULL), (2, NULL, named_struct('x', 6))")
    deltaic.sql(f"INSERT INTO {at} (id, v) VALUES (3, 'a')")
    deltaic.sql(f"INSERT INTO {at} (id, v) SELECT 4, array(true, false)")
    deltaic.sql(f"INSERT INTO {at} (id, v) VALUES (5, parse_json('[null]'))")
    for value in ("map('a', 1)", "named_struct('a', 1)"):
        with pytest.raises(SchemaMismatchError, match="does not fit"):
            deltaic.sql(f"INSERT INTO {at} (id, v) VALUES (6, {value})")
    rows = deltaic.sql(f"SELECT to_json(v) AS v, to_json(s.x) AS x FROM {at} ORDER BY id").to_pylist()
    assert [row["v"] for row in rows] == ["5", None, '"a"', "[true,false]", "[null]"]
    assert [row["x"] for row in rows] == [None, "6", None, None, None]


def test_other_data_is_refused(tmp_path: Path) -> None:
    table = make(tmp_path)
    for values in (
        pa.array([1]),
        pa.array(["x"]),
        pa.array([{"a": 1}]),
        pa.array([{"metadata": b"", "value": b"", "more": 1}]),
    ):
        with pytest.raises(SchemaMismatchError, match="v"):
            deltaic.write(table, pa.table({"id": [1], "v": values}), mode="append")
    for options in ({"partition_by": "v"}, {"cluster_by": "v"}):
        with pytest.raises(InvalidArgumentError, match="v"):
            DeltaTable.create(tmp_path / "u", "id bigint, v variant", **options)
    with pytest.raises(InvalidArgumentError, match="v"):
        table.optimize.z_order(["v"])


KEYED = b"\x01\x01\x00\x01a"
"""A dictionary of the one key `a`."""
WHOLE = pa.field("metadata", pa.binary(), nullable=False)
REST = pa.field("value", pa.binary())


def shredded(tmp_path: Path, values: list[dict[str, Any] | None], typed: pa.DataType) -> DeltaTable:
    """Returns a table whose one file holds these shredded variants (parquet-format, VariantShredding.md)."""
    table = make(tmp_path, enableVariantShredding=True)
    deltaic.write(table, rows_of(*[0] * len(values)), mode="append")
    (path,) = Path(table.location).glob("*.parquet")
    column = pa.array(values, pa.struct([WHOLE, REST, pa.field("typed_value", typed)]))
    pq.write_table(pa.table({"id": pa.array(range(len(values)), pa.int64()), "v": column}), path)
    return DeltaTable(table.location)


def test_a_shredded_variant_is_put_together(tmp_path: Path) -> None:
    values = [
        {"metadata": METADATA, "value": small(7)["value"]},
        {"metadata": METADATA, "typed_value": 5},
        None,
    ]
    table = shredded(tmp_path, values, pa.int32())
    assert {"variantType", "variantShredding"} <= set(table.protocol.reader_features or ())
    assert found(table) == {0: small(7), 1: {"metadata": METADATA, "value": b"\x14\x05\0\0\0"}, 2: None}
    table.update({"id": "9"}, "id = 1")
    table.optimize.compact()
    assert found(table) == {0: small(7), 9: {"metadata": METADATA, "value": b"\x14\x05\0\0\0"}, 2: None}
    newest = max(Path(table.location).glob("*.parquet"), key=lambda path: path.stat().st_mtime_ns)
    assert sorted(pq.ParquetFile(newest).schema_arrow.field("v").type.names) == ["metadata", "value"]


def test_a_shredded_object_is_put_together(tmp_path: Path) -> None:
    member = pa.struct([REST, pa.field("typed_value", pa.int32())])
    values = [
        {"metadata": KEYED, "typed_value": {"a": {"typed_value": 5}}},
        {"metadata": KEYED, "typed_value": {"a": {"value": small(1)["value"]}}},
        {"metadata": KEYED, "typed_value": {"a": {}}},
        {"metadata": METADATA, "value": small(3)["value"]},
    ]
    table = shredded(tmp_path, values, pa.struct([pa.field("a", member, nullable=False)]))
    assert found(table) == {
        0: {"metadata": KEYED, "value": b"\x02\x01\x00\x00\x05\x14\x05\0\0\0"},
        1: {"metadata": KEYED, "value": b"\x02\x01\x00\x00\x02\x0c\x01"},
        2: {"metadata": KEYED, "value": b"\x02\x00\x00"},
        3: small(3),
    }


@pytest.mark.parametrize("metadata", [b"", b"\x01\x09", b"\xff\xff\xff"])
def test_a_shredded_variant_of_other_bytes_is_refused(tmp_path: Path, metadata: bytes) -> None:
    table = shredded(tmp_path, [{"metadata": metadata, "typed_value": 5}], pa.int32())
    with pytest.raises(deltaic.errors.ProtocolError, match="shredded variant"):
        table.scan().to_arrow()


def nested(levels: int) -> bytes:
    """Returns an array in an array, this many times, around null."""
    parts, size = [b"\x00"], 1
    for _ in range(levels):
        parts.append(b"\x0f\x01" + bytes(4) + size.to_bytes(4, "little"))
        size += len(parts[-1])
    return b"".join(reversed(parts))


def doubled(levels: int) -> bytes:
    """Returns an object whose fields `a` and `b` are the same bytes, which are such an object: 2^levels
    values."""
    value = b"\x00"
    for _ in range(levels):
        value = b"\x0e\x02\x00\x01" + bytes(8) + len(value).to_bytes(4, "little") + value
    return value


@pytest.mark.parametrize("place", ["value", "member", "item"])
def test_a_shredded_variant_of_too_many_levels_is_refused(tmp_path: Path, place: str) -> None:
    value = doubled(40) if place == "value" else nested(100_000)
    member = pa.struct([REST, pa.field("typed_value", pa.int32())])
    typed, row = {
        "value": (pa.int32(), {"value": value}),
        "member": (
            pa.struct([pa.field("a", member, nullable=False)]),
            {"typed_value": {"a": {"value": value}}},
        ),
        "item": (pa.list_(pa.field("element", member, nullable=False)), {"typed_value": [{"value": value}]}),
    }[place]
    table = shredded(tmp_path, [{"metadata": KEYED, **row}], typed)
    with pytest.raises(deltaic.errors.ProtocolError, match="shredded variant"):
        table.scan().to_arrow()


@pytest.mark.parametrize(
    "call",
    ["to_json(v)", "cast(v as string)", "schema_of_variant(v)", "variant_get(v, '$', 'string')"],
)
def test_a_variant_of_too_many_levels_is_an_error_of_a_function(tmp_path: Path, call: str) -> None:
    table = make(tmp_path)
    variant = {"metadata": METADATA, "value": nested(100_000)}
    deltaic.write(table, pa.table({"id": [0], "v": pa.array([variant], PARTS)}), mode="append")
    with pytest.raises(InvalidArgumentError, match="VARIANT_SIZE_LIMIT"):
        deltaic.sql(f"SELECT {call} AS c FROM delta.`{table.location}`").to_pylist()
    answer = deltaic.sql(f"SELECT is_valid_variant(v) AS valid FROM delta.`{table.location}`")
    assert answer.to_pylist() == [{"valid": False}]


def test_a_variant_of_many_levels(tmp_path: Path) -> None:
    table = make(tmp_path)
    rows = pa.table({"id": [0], "v": pa.array([{"metadata": METADATA, "value": nested(1000)}], PARTS)})
    deltaic.write(table, rows, mode="append")
    answer = deltaic.sql(
        f"SELECT to_json(v) AS text, is_valid_variant(v) AS valid FROM delta.`{table.location}`"
    )
    assert answer.to_pylist() == [{"text": "[" * 1000 + "null" + "]" * 1000, "valid": True}]


def test_a_variant_without_its_parts_is_refused(tmp_path: Path) -> None:
    table = make(tmp_path)
    deltaic.write(table, rows_of(1), mode="append")
    (path,) = Path(table.location).glob("*.parquet")
    pq.write_table(pa.table({"id": [0], "v": [{"metadata": METADATA}]}), path)
    with pytest.raises(deltaic.errors.ProtocolError, match="column v"):
        DeltaTable(table.location).scan().to_arrow()


@given(st.lists(st.one_of(st.none(), st.tuples(st.binary(max_size=20), st.binary(max_size=20))), max_size=30))
def test_bytes_come_back_as_they_are(
    tmp_path_factory: pytest.TempPathFactory, parts: list[tuple[bytes, bytes] | None]
) -> None:
    values = [None if part is None else {"metadata": part[0], "value": part[1]} for part in parts]
    table = make(tmp_path_factory.mktemp("variant"))
    deltaic.write(
        table,
        pa.table({"id": pa.array(range(len(values)), pa.int64()), "v": pa.array(values, PARTS)}),
        mode="append",
    )
    table.delete("id = 0")
    assert found(table) == {key: value for key, value in enumerate(values) if key}
