"""Pages that decompress to far more bytes than their headers declare, in checkpoints and in data files, with
each codec of Parquet."""

from __future__ import annotations

import functools
import gzip
import json
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bounded import PEAK_MIB, Bounded
from checkpoints import classic, state
from healthy import FIELDS, Table

MIB = 1 << 20
UNFOLDED = 1024 * MIB
STORED = 5 * MIB  # a page's own bytes, which the bomb is put in the place of


CODECS = ["gzip", "brotli", "lz4 of hadoop", "zstd", "snappy"]


def written_as(codec: str) -> str:
    """Returns the name of a codec in pyarrow."""
    return "lz4" if codec == "lz4 of hadoop" else codec


def level(codec: str) -> int | None:
    """Brotli's usual one takes seconds."""
    return 1 if codec == "brotli" else None


@functools.cache
def bomb(codec: str) -> bytes:
    """Returns bytes that decompress to UNFOLDED zeros."""
    if codec == "gzip":
        return gzip.compress(bytes(16 * MIB)) * (UNFOLDED // (16 * MIB))  # members, one behind the other
    if codec == "snappy":  # at most about twenty times as many bytes
        return bytes(pa.compress(bytes(64 * MIB), "snappy", asbytes=True))
    zeros = pa.py_buffer(memoryview(bytearray(UNFOLDED)))
    packed: bytes = pa.Codec(written_as(codec), compression_level=level(codec)).compress(zeros, asbytes=True)
    return packed


def text_of(size: int) -> str:
    """Returns a text that no codec makes much smaller than two thirds of it."""
    return random.Random(5).randbytes(size).hex()


def arm(path: Path, column: str, codec: str) -> None:
    """Puts a bomb in the place of the only page of a column."""
    data = bytearray(path.read_bytes())
    group = pq.read_metadata(path).row_group(0)
    chunk = next(
        c for c in (group.column(number) for number in range(group.num_columns)) if c.path_in_schema == column
    )
    start = chunk.data_page_offset
    at, numbers = start, []
    for _ in range(3):  # the kind of page, its size once unfolded, its size as stored
        assert data[at] == 0x15
        at, value, shift = at + 1, 0, 0
        while True:
            value |= (data[at] & 0x7F) << shift
            at, shift = at + 1, shift + 7
            if data[at - 1] < 0x80:
                break
        numbers.append(value >> 1)
    stored = numbers[2]
    body = start + chunk.total_compressed_size - stored
    packed = bomb(codec)
    assert len(packed) <= stored, (len(packed), stored)
    data[body : body + len(packed)] = packed
    if codec == "lz4 of hadoop":  # pyarrow writes the newer codec only: its number, 7, is 5 in the older one
        name = column.split(".")[-1].encode()
        mark = bytes([len(name)]) + name + b"\x15"
        assert data.count(mark + b"\x0e") == 1
        data = data.replace(mark + b"\x0e", mark + b"\x0a")
    path.write_bytes(data)


def held(bounded: Bounded, root: Path, where: str) -> None:
    result = bounded.run("read", str(root))
    assert result.ended is None, result
    assert result.peak_mib < PEAK_MIB
    assert "ProtocolError" in result.bases, result.text or result.value
    assert where in str(result.where)
    assert result.found
    assert result.expected


@pytest.mark.parametrize("codec", CODECS)
def test_of_a_checkpoint(codec: str, tmp_path: Path, bounded: Bounded) -> None:
    table = Table(tmp_path / "table")
    whole = state(table)
    whole[3]["add"]["stats"] = text_of(STORED)
    classic(
        table,
        whole,
        compression=written_as(codec),
        compression_level=level(codec),
        use_dictionary=False,
        data_page_size=1 << 30,
    )
    table.delete(0, 1, 2)
    arm(table.log / f"{2:020}.checkpoint.parquet", "add.stats", codec)
    held(bounded, table.root, f"{2:020}.checkpoint.parquet")


@pytest.mark.parametrize("codec", CODECS)
def test_of_a_data_file(codec: str, tmp_path: Path, bounded: Bounded) -> None:
    table = Table(tmp_path / "table")
    path = table.root / "p=x/f2.parquet"
    pq.write_table(
        pa.table({"a": [6, 7, 8], "s": [text_of(STORED), "", ""]}),
        path,
        compression=written_as(codec),
        compression_level=level(codec),
        use_dictionary=False,
        data_page_size=1 << 30,
    )
    table.change(2, "add", size=path.stat().st_size)
    text = {"name": "s", "type": "string", "nullable": True, "metadata": {}}
    table.change(0, "metaData", schemaString=json.dumps({"type": "struct", "fields": [*FIELDS, text]}))
    arm(path, "s", codec)
    held(bounded, table.root, "f2.parquet")
