"""Converts values to the form in which they are recorded; it is the same for Spark's Arrow and the
engine's."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa

FOLDER = Path(__file__).parent / "recorded"


def encode(values: pa.Array | pa.ChunkedArray) -> list[Any]:
    """Arrow values as JSON that keeps every bit that counts: floats by repr, moments as microseconds, dates
    as days, bytes as hex."""
    array = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    kind = array.type
    if pa.types.is_timestamp(kind):
        return list(array.cast(pa.int64()).to_pylist())
    if pa.types.is_date32(kind):
        return list(array.cast(pa.int32()).to_pylist())
    if pa.types.is_struct(kind):
        columns = {kind.field(i).name: encode(array.field(i)) for i in range(kind.num_fields)}
        return [
            {key: column[i] for key, column in columns.items()} if array[i].is_valid else None
            for i in range(len(array))
        ]
    if pa.types.is_map(kind):
        return [None if not array[i].is_valid else _pairs(array, i) for i in range(len(array))]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [encode(item.values) if item.is_valid else None for item in array]
    return [_scalar(value, kind) for value in array.to_pylist()]


def _pairs(array: pa.MapArray, index: int) -> list[Any]:
    entries = array[index].values
    return [list(pair) for pair in zip(encode(entries.field(0)), encode(entries.field(1)), strict=True)]


def _scalar(value: Any, kind: pa.DataType) -> Any:
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).hex()
    if pa.types.is_float32(kind):
        import struct

        return "nan" if value != value else repr(struct.unpack("<f", struct.pack("<f", value))[0])
    return repr(value) if isinstance(value, float) else str(value)


def path_of(family: str, zone: str) -> Path:
    return FOLDER / f"{family}-{zone.replace('/', '_')}.json.gz"


def save(family: str, zone: str, recorded: list[dict[str, Any]]) -> None:
    """One form a line, compressed without a time stamp, so that a new recording of the same answers is the
    same file."""
    text = "".join(json.dumps(entry, ensure_ascii=False, sort_keys=True) + "\n" for entry in recorded)
    FOLDER.mkdir(exist_ok=True)
    path_of(family, zone).write_bytes(gzip.compress(text.encode(), mtime=0))


def load(family: str, zone: str) -> list[dict[str, Any]]:
    text = gzip.decompress(path_of(family, zone).read_bytes()).decode()
    return [json.loads(line) for line in text.splitlines()]
