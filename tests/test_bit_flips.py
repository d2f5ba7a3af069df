"""A flipped bit in a deletion vector or in a file of the log: an error, or the rows as before.

Deletion vectors have a CRC-32. A commit has no checksum of its own; the version's `.crc` has protocol,
metadata, the number of files, their sizes and deleted rows, and a missing data file is an error. So a table
without partitions, whose values are only in its data files, never has wrong rows. The pages of data files and
checkpoints are in `test_page_checksums.py`.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltaic
from deltaic.errors import DeltaError, ProtocolError
from deltaic.log import recent

FLIPS = 60
"""Flips of each file of the log."""


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Four files, two of them with deletion vectors in one file, and a log with removed files."""
    place = tmp_path / "t"
    properties = {"delta.enableDeletionVectors": True, "delta.checkpointInterval": 100}
    opened = deltaic.write(place, rows(0), properties=properties)
    for start in (10, 20, 30):
        opened = deltaic.write(opened, rows(start), mode="append")
    opened.delete("id % 10 = 3 AND id < 20")
    opened.delete("id % 10 = 4 AND id < 20")
    opened.update({"word": "'new'"}, "id = 35")
    return place


def rows(start: int) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(range(start, start + 10), pa.int64()),
            "word": [f"w{at}" for at in range(start, start + 10)],
        }
    )


def read(place: Path) -> list[Any]:
    for known in (recent._OPENED, recent._VERSIONS):
        known.reset()  # the log is read again
    return sorted(deltaic.DeltaTable(place).scan().to_arrow().to_pylist(), key=lambda row: row["id"])


def flip(content: bytes, bit: int) -> bytes:
    damaged = bytearray(content)
    damaged[bit // 8] ^= 1 << bit % 8
    return bytes(damaged)


def test_every_bit_of_a_vector_file(table: Path) -> None:
    expected = read(table)
    newest = {action["deletionVector"]["pathOrInlineDv"] for action in vectors(table)}
    assert len(newest) == 2  # that of the DELETE, and that of the UPDATE
    used = [path for path in table.glob("*.bin") if path.read_bytes() and is_read(table, path)]
    assert len(used) == 2
    for path in used:
        content = path.read_bytes()
        for bit in range(8 * len(content)):
            path.write_bytes(flip(content, bit))
            with pytest.raises(ProtocolError):
                read(table)
        path.write_bytes(content)
    assert read(table) == expected


def vectors(table: Path) -> list[Any]:
    files = deltaic.DeltaTable(table)._snapshot.files().adds.to_pylist()
    return [action for action in files if action["deletionVector"] is not None]


def is_read(table: Path, path: Path) -> bool:
    """True if the newest version needs this file."""
    moved = path.rename(path.with_suffix(".moved"))
    try:
        read(table)
    except DeltaError:
        return True
    finally:
        moved.rename(path)
    return False


@pytest.mark.parametrize("pattern", ["*.json", "*.crc", "_last_checkpoint", "*.checkpoint.parquet"])
def test_bits_of_the_log(table: Path, pattern: str) -> None:
    if "checkpoint" in pattern:
        deltaic.DeltaTable(table).checkpoint()
    expected, chance, refused = read(table), random.Random(5), 0
    files = sorted((table / "_delta_log").glob(pattern))
    assert files
    for path in files:
        content = path.read_bytes()
        for bit in chance.sample(range(8 * len(content)), FLIPS):
            path.write_bytes(flip(content, bit))
            try:
                assert read(table) == expected, (
                    path.name,
                    bit // 8,
                    content[max(bit // 8 - 40, 0) : bit // 8 + 40],
                )
            except DeltaError:
                refused += 1
        path.write_bytes(content)
    # A broken one is passed over.
    assert refused > 0 or pattern in ("_last_checkpoint", "*.checkpoint.parquet")
    assert read(table) == expected
