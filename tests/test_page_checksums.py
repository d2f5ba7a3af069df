"""Checksums of Parquet pages: they are written into every data file, checkpoint and sidecar, and compared
whenever a page with a checksum is read.

Source: Parquet's format, `PageHeader.crc`: CRC-32 of the page's bytes as they are stored.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deltaic
from deltaic import _core
from deltaic.errors import ProtocolError

ROWS = 4000
FLIPS = 24
CODECS = ["zstd", "snappy", "uncompressed", "lz4_raw", "gzip", "brotli"]


def data() -> pa.Table:
    chance = random.Random(1)
    return pa.table(
        {
            "i": pa.array(range(ROWS), pa.int64()),
            "d": [f"text {row % 50}" for row in range(ROWS)],
            "s": [chance.randbytes(9).hex() for _ in range(ROWS)],
            "f": [chance.random() if row % 7 else None for row in range(ROWS)],
            "l": pa.array([[row, None] if row % 3 else None for row in range(ROWS)], pa.list_(pa.int32())),
            "e": pa.array([None] * ROWS, pa.int32()),
        }
    )


def pages(path: Path) -> Iterator[tuple[int, int]]:
    """First byte and length of each page's data, found as a reader without an index finds them: header after
    header."""
    content = path.read_bytes()
    metadata = pq.ParquetFile(path).metadata
    for group in range(metadata.num_row_groups):
        for number in range(metadata.num_columns):
            column = metadata.row_group(group).column(number)
            at = column.dictionary_page_offset if column.has_dictionary_page else column.data_page_offset
            end = at + column.total_compressed_size
            while at < end:
                length, size = header(content[at:])
                yield at + length, size
                at += length + size
            assert at == end


def header(content: bytes) -> tuple[int, int]:
    """Returns the length of a page header, and of the data after it. Asserts that the header has a
    checksum."""
    position, found = 0, {}

    def varint() -> int:
        nonlocal position
        value = shift = 0
        while True:
            byte = content[position]
            position, value, shift = position + 1, value | (byte & 0x7F) << shift, shift + 7
            if byte < 0x80:
                return value

    def fields() -> None:
        nonlocal position
        number = 0
        while (head := content[position]) != 0:
            position += 1
            number += head >> 4
            kind = head & 15
            if kind in (4, 5, 6):
                found.setdefault((depth, number), varint())
            elif kind == 8:
                length = varint()
                position += length
            elif kind == 12:
                nested()
            else:
                assert kind in (1, 2), kind
        position += 1

    depth = 0

    def nested() -> None:
        nonlocal depth
        depth += 1
        fields()
        depth -= 1

    fields()
    assert (0, 4) in found, "no checksum"
    return position, found[0, 3] >> 1


def read(table: deltaic.DeltaTable) -> pa.Table:
    return table.scan().to_arrow().sort_by("i")


def flipped(content: bytes, chance: random.Random, places: list[tuple[int, int]]) -> bytes:
    start, size = chance.choice([place for place in places if place[1] > 0])
    damaged = bytearray(content)
    damaged[start + chance.randrange(size)] ^= 1 << chance.randrange(8)
    return bytes(damaged)


def check_flips(path: Path, places: list[tuple[int, int]], read_all: Any, message: str = "") -> None:
    content, chance = path.read_bytes(), random.Random(7)
    for _ in range(FLIPS):
        path.write_bytes(flipped(content, chance, places))
        with pytest.raises(ProtocolError, match=message):
            read_all()
    path.write_bytes(content)
    read_all()


@pytest.mark.parametrize("codec", CODECS)
def test_our_files(tmp_path: Path, codec: str) -> None:
    options = deltaic.ParquetOptions(
        data_page_row_count_limit=500, write_batch_size=250, max_row_group_size=2500
    )
    properties = {"delta.parquet.compression.codec": codec}
    table = deltaic.write(tmp_path / "t", data(), properties=properties, parquet=options)
    (file,) = (tmp_path / "t").glob("*.parquet")
    places = list(pages(file))
    assert len(places) > 20
    if codec != "lz4_raw":  # pyarrow compares checksums, too
        assert pq.read_table(file, page_checksum_verification=True).num_rows == ROWS
    index = pq.ParquetFile(file).metadata.row_group(1).column(0)
    assert index.has_offset_index
    assert table.scan(["i"], "i between 3100 and 3105").to_arrow()["i"].to_pylist() == list(range(3100, 3106))
    expected = read(table)
    assert expected["f"].to_pylist() == data()["f"].to_pylist()
    check_flips(file, places, lambda: read(table), "damaged")


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "zstd"])
def test_files_of_other_writers(tmp_path: Path, codec: str, version: str) -> None:
    table = deltaic.write(tmp_path / "t", data().slice(0, 0))
    file = tmp_path / "t" / "other.parquet"
    pq.write_table(
        data(),
        file,
        compression=codec,
        data_page_version=version,
        write_page_checksum=True,
        data_page_size=4000,
    )
    table.add_files(["other.parquet"])
    check_flips(file, list(pages(file)), lambda: read(table), "damaged")


def test_files_without_checksums_are_read(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path / "t", data().slice(0, 0))
    pq.write_table(data(), tmp_path / "t" / "other.parquet", write_page_checksum=False)
    table.add_files(["other.parquet"])
    assert read(table).num_rows == ROWS


@pytest.mark.parametrize("policy", ["classic", "v2"])
def test_checkpoints_and_sidecars(tmp_path: Path, policy: str) -> None:
    properties = {
        "delta.checkpointPolicy": policy,
        "delta.checkpointInterval": 1000,
        "delta.enableDeletionVectors": True,
    }
    table = deltaic.write(tmp_path / "t", data().slice(0, 20), properties=properties)
    for _ in range(3):
        table = deltaic.write(table, data().slice(0, 20), mode="append")
    table.checkpoint()
    log = tmp_path / "t" / "_delta_log"
    files = [*log.glob("*.checkpoint*.parquet"), *log.glob("_sidecars/*.parquet")]
    assert len(files) == 1
    for commit in [*log.glob("*.json"), *log.glob("*.crc")]:
        if ".checkpoint." not in commit.name:
            commit.unlink()
    for file in files:
        places = list(pages(file))
        assert pq.read_table(file, page_checksum_verification=True).num_rows > 0
        content, chance = file.read_bytes(), random.Random(3)
        expected = sorted(deltaic.DeltaTable(tmp_path / "t").files().to_arrow()["path"].to_pylist())
        wrong = 0
        for _ in range(FLIPS):
            file.write_bytes(flipped(content, chance, places))
            try:
                assert (
                    sorted(deltaic.DeltaTable(tmp_path / "t").files().to_arrow()["path"].to_pylist())
                    == expected
                )
            except ProtocolError:
                wrong += 1
        assert wrong > 0  # columns that are not read are not compared
        file.write_bytes(content)


def test_statistics_of_footers_hold(tmp_path: Path) -> None:
    """Offsets and sizes in the footer are those of headers with checksums."""
    table = deltaic.write(tmp_path / "t", data(), parquet=deltaic.ParquetOptions(max_row_group_size=1000))
    (file,) = (tmp_path / "t").glob("*.parquet")
    metadata = pq.ParquetFile(file).metadata
    ends = 4
    for group in range(metadata.num_row_groups):
        for number in range(metadata.num_columns):
            column = metadata.row_group(group).column(number)
            start = column.dictionary_page_offset if column.has_dictionary_page else column.data_page_offset
            assert start == ends
            ends += column.total_compressed_size
    snapshot = table._snapshot
    for pruning in (True, False):
        stream = _core.read(
            snapshot.store, snapshot.table_schema, snapshot.files().adds, ["i"], pruning=pruning
        )
        assert stream.to_table()["i"].to_pylist() == list(range(ROWS))
