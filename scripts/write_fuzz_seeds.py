"""Writes the first inputs of the fuzz targets, one folder for each target: `python
scripts/write_fuzz_seeds.py FOLDER`.

The script writes small tables, and cuts their files into the inputs of each target, which `rust/src/fuzzing/`
describes.
"""

from __future__ import annotations

import datetime as dt
import json
import struct
import sys
import tempfile
import zlib
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import deltaic

ROWS = pa.table(
    {
        "i": pa.array([1, None, -3], pa.int32()),
        "s": ["a", None, "zebra"],
        "d": [0.5, None, -0.0],
        "b": [True, None, False],
        "t": pa.array(
            [dt.datetime(2024, 1, 1, 0, 0, 0, 1), None, dt.datetime(1969, 12, 31)], pa.timestamp("us", "UTC")
        ),
        "n": pa.array([Decimal("1.50"), None, Decimal("-1.50")], pa.decimal128(10, 2)),
        "a": [dt.date(2024, 1, 1), None, dt.date(1500, 1, 1)],
        "st": pa.array([{"x": 1}, None, {"x": None}], pa.struct([("x", pa.int32())])),
        "l": [["a", None], None, []],
        "m": pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.int64())),
        "p": pa.array([1, 1, 2], pa.int32()),
    }
)
FEW = ROWS.select(["i", "s", "p"])
TABLES: dict[str, tuple[pa.Table, dict[str, Any]]] = {
    "plain": (ROWS, {}),
    "partitioned": (FEW, {"partition_by": ["p"]}),
    "mapped": (ROWS, {"properties": {"delta.columnMapping.mode": "name"}}),
    "ids": (FEW, {"properties": {"delta.columnMapping.mode": "id"}}),
    "marked": (
        FEW,
        {"properties": {"delta.enableDeletionVectors": "true", "delta.enableRowTracking": "true"}},
    ),
    "second": (FEW, {"properties": {"delta.checkpointPolicy": "v2"}}),
    "structs": (
        FEW,
        {
            "properties": {
                "delta.checkpoint.writeStatsAsStruct": "true",
                "delta.checkpoint.writeStatsAsJson": "false",
            }
        },
    ),
    "iceberg": (
        FEW,
        {
            "properties": {
                "delta.enableIcebergCompatV3": "true",
                "delta.universalFormat.enabledFormats": "iceberg",
                "delta.enableDeletionVectors": "true",
            }
        },
    ),
}
FORMS: list[dict[str, Any]] = [
    *({"compression": codec} for codec in ["none", "snappy", "gzip", "zstd", "lz4", "brotli"]),
    {"compression": "none", "data_page_version": "2.0"},
    {"compression": "none", "use_dictionary": False, "write_page_index": True},
    {
        "compression": "none",
        "use_dictionary": False,
        "column_encoding": {"i": "DELTA_BINARY_PACKED", "s": "DELTA_BYTE_ARRAY", "p": "BYTE_STREAM_SPLIT"},
    },
    {"compression": "none", "use_dictionary": False, "column_encoding": {"s": "DELTA_LENGTH_BYTE_ARRAY"}},
]
PREDICATES = [
    {"op": "=", "column": ["i"], "literal": "5"},
    {
        "op": "and",
        "args": [
            {"op": "<", "column": ["d"], "literal": "NaN"},
            {"op": "not", "arg": {"op": "is_null", "column": ["s"]}},
        ],
    },
    {"op": "in", "column": ["s"], "literals": ["", "a", None]},
    {
        "op": "or",
        "args": [{"op": "starts_with", "column": ["s"], "literal": "z"}, {"op": "null"}, {"op": "true"}],
    },
    {"op": ">=", "column": ["t"], "literal": "2024-01-01T00:00:00.000001Z"},
    {"op": "<=", "column": ["a"], "literal": "1970-01-01"},
    {"op": "!=", "column": ["n"], "literal": "1.50"},
    {"op": ">", "column": ["st", "x"], "literal": "1"},
    {"op": "=", "column": ["b"], "literal": "true"},
    {"op": "or", "args": [{"op": "=", "column": ["p"], "literal": str(number)} for number in range(17)]},
    {"op": "and", "args": [{"op": "!=", "column": ["i"], "literal": str(number)} for number in range(17)]},
    {"op": "false"},
]
PATHS = [
    "part-0.parquet",
    "p=1/a%20b.parquet",
    "/data/table/x",
    "file:///data/table/x%2Fy",
    "s3://bucket/table/x",
    "../x",
    "a/./b",
    "%2Fx",
]
# In the order of `primitive_types` in rust/src/fuzzing/.
VALUES = [
    *(
        ["text"],
        ["bytes"],
        ["true", "False"],
        ["-7"],
        ["300"],
        ["-70000"],
        ["9223372036854775807"],
        ["1e21", "NaN"],
        ["-Infinity", "0.1"],
    ),
    ["1500-01-01", "2024-02-29", "+10000-01-01"],
    *(["2024-06-01T10:00:00.123456+02:00", "1969-12-31 23:59:59"],) * 2,
    ["1.50", "-2E+1"],
]


class Seeds:
    """Files below `folder`, one folder for each target."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.count = 0

    def add(self, target: str, data: bytes | str) -> None:
        (self.folder / target).mkdir(parents=True, exist_ok=True)
        (self.folder / target / f"seed-{self.count:04}").write_bytes(
            data.encode() if isinstance(data, str) else data
        )
        self.count += 1


def write_tables(root: Path) -> None:
    for name, (rows, options) in TABLES.items():
        path = str(root / name)
        deltaic.write(path, rows, **options)
        table = deltaic.DeltaTable(path)
        deltaic.write(path, rows, mode="append")
        table = deltaic.DeltaTable(path)
        table.delete("i = 1")
        table.checkpoint()


def add_vectors(seeds: Seeds) -> None:
    sets = [
        [],
        [3, 4, 7, 11, 18, 29],
        range(5000),
        range(0, 200_000, 3),
        [1, 1 << 16, 1 << 33, (1 << 62) + 5],
    ]
    for rows in sets:
        vector = deltaic.DeletionVector.from_rows(pa.array(rows, pa.uint64()))
        data = vector.to_bytes()
        text = vector.to_inline()
        seeds.add("vector", data)
        seeds.add("vector_text", text)
        numbers = struct.pack("<ii", len(data), vector.cardinality)
        seeds.add("vector_text", b"\0" + numbers + text.encode())
        seeds.add("vector_file", struct.pack("<i", 1) + numbers + b"\1" + bytes(4) + data + bytes(4))
    seeds.add("vector_text", b"\1" + struct.pack("<ii", 40, 6) + b"ab^-aqEH.-t@S}K{vb[*k^")
    seeds.add("vector_text", b"\2" + struct.pack("<ii", 40, 6) + b"file:///x/a%20b.bin")


def add_log(seeds: Seeds, table: Path) -> None:
    for commit in sorted((table / "_delta_log").glob("*.json")):
        if not commit.stem.isdigit():
            continue
        seeds.add("commit", commit.read_bytes())
        for line in commit.read_text(encoding="utf-8").splitlines():
            action = json.loads(line)
            if "metaData" in action:
                columns = action["metaData"]["partitionColumns"]
                seeds.add("schema_json", ",".join(columns) + "\n" + action["metaData"]["schemaString"])
            for stats in (action[name].get("stats") for name in ("add", "remove") if name in action):
                if stats:
                    seeds.add("file_statistics", stats)
    for checkpoint in [
        *table.glob("_delta_log/*.checkpoint*.parquet"),
        *table.glob("_delta_log/_sidecars/*.parquet"),
    ]:
        seeds.add("checkpoint", checkpoint.read_bytes())
    for hint in table.glob("_delta_log/_last_checkpoint"):
        seeds.add("last_checkpoint", hint.read_bytes())
    for data in table.rglob("*.parquet"):
        if "_delta_log" not in data.parts:
            seeds.add("data_file", data.read_bytes())
    for manifest in table.glob("metadata/*.avro"):
        seeds.add("manifest_list", manifest.read_bytes())
        seeds.add("manifest_list", unpacked(manifest.read_bytes()))


def unpacked(container: bytes) -> bytes:
    """Returns an Avro file with the codec `null` in place of `deflate`, so that a change of one byte changes
    one value."""
    place = 4

    def number() -> bytes:
        nonlocal place
        start = place
        while container[place] >= 0x80:
            place += 1
        place += 1
        return container[start:place]

    def size() -> int:
        value = sum((byte & 0x7F) << 7 * at for at, byte in enumerate(number()))
        return (value >> 1) ^ -(value & 1)

    def take(count: int) -> bytes:
        nonlocal place
        place += count
        return container[place - count : place]

    for _ in range(size()):
        take(size()), take(size())
    size()
    header = container[:place].replace(b"\x0edeflate", b"\x08null")
    marker = take(16)
    out = header + marker
    while place < len(container):
        count, block = number(), zlib.decompress(take(size()), -15)
        out += count + long(len(block)) + block + take(16)
    return out


def long(value: int) -> bytes:
    """Returns a length as Avro writes it: 300 is 600 in groups of seven bits."""
    rest, out = value << 1, bytearray()
    while rest >= 0x80:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes(out) + bytes([rest])


def add_texts(seeds: Seeds) -> None:
    for predicate in PREDICATES:
        seeds.add("predicate", json.dumps(predicate, separators=(",", ":")))
    for path in PATHS:
        seeds.add("path", path)
    for kind, texts in enumerate(VALUES):
        for text in texts:
            seeds.add("partition_value", bytes([kind]) + text.encode())
    bounds: dict[str, Any] = {f"c{kind}": texts[0] for kind, texts in enumerate(VALUES)}
    bounds |= {"st": {"x": 1}}
    counts = dict.fromkeys(bounds, 0)
    statistics = {"numRecords": 3, "minValues": bounds, "maxValues": bounds, "nullCount": counts}
    seeds.add("file_statistics", json.dumps(statistics))
    numbers = {
        "c3": 1,
        "c6": -7,
        "c7": 0.1,
        "c8": 1e300,
        "c10": "1969-12-31T23:59:59.999Z",
        "c12": 1.5,
        "c2": True,
        "st": {"x": 2},
    }
    seeds.add(
        "file_statistics",
        json.dumps({"numRecords": 1, "minValues": numbers, "maxValues": numbers, "nullCount": {}}),
    )
    metadata = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "c", "comment": 0.1}
    field = {"name": "c", "type": "decimal(10,2)", "nullable": True, "metadata": metadata}
    seeds.add("schema_json", "c\n" + json.dumps({"type": "struct", "fields": [field]}))


def main(folder: Path) -> None:
    seeds = Seeds(folder)
    with tempfile.TemporaryDirectory() as root:
        write_tables(Path(root))
        for name in TABLES:
            add_log(seeds, Path(root) / name)
        for form in FORMS:
            file = Path(root) / "form.parquet"
            pq.write_table(FEW if "column_encoding" in form else ROWS, file, **form)
            seeds.add("data_file", file.read_bytes())
    add_vectors(seeds)
    add_texts(seeds)
    print(f"{seeds.count} seeds in {folder}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
