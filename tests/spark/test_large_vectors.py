"""A table whose deletion vectors have 1 GB, on a driver of 2 GB: each file's vector is sent with its task."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deltaic
from java import java_home

pytest.importorskip("pyspark")

MEGABYTES = int(os.environ.get("DELTAIC_VECTOR_MEGABYTES", "0"))
"""How large the vectors are in all; none are made by default, as reading 1,024 of them takes minutes."""
BLOCKS = 128
"""In each file, of 65,536 rows and 8 KB of its vector each."""
BLOCK = 65_536
READ = np.r_[:8, 120:128]
"""Blocks whose rows the job reads."""
IN_ONE = 64
"""Number of vectors in one file."""

Expected = list[list[int]]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Expected]]:
    """Files that are all one on disk, `block` the number of a row's block, each with a vector of its own that
    no encoding makes smaller, seven eighths of its rows; and for each `file` how many rows the job finds, and
    the sum of their blocks."""
    root = tmp_path_factory.mktemp("large") / "t"
    (root / "_delta_log").mkdir(parents=True)
    pq.write_table(
        pa.table({"block": np.repeat(np.arange(BLOCKS, dtype=np.int32), BLOCK)}),
        root / "0.parquet",
        row_group_size=8 * BLOCK,
    )
    random = np.random.default_rng(7)
    blocks = np.bitwise_or.reduce(random.integers(0, 256, (3, 512, BLOCK // 8), dtype=np.uint8))
    counts = np.unpackbits(blocks, axis=1).sum(axis=1, dtype=np.int64)
    expected, actions = [], _definition()
    for first in range(0, MEGABYTES, IN_ONE):
        place, offset = root / f"deletion_vector_{first}.bin", 1
        with place.open("wb") as file:
            file.write(b"\x01")
            for number in range(first, min(first + IN_ONE, MEGABYTES)):
                if number:
                    os.link(root / "0.parquet", root / f"{number}.parquet")
                chosen = random.integers(0, len(blocks), BLOCKS)
                frame = _vector(counts[chosen], blocks[chosen])
                file.write(len(frame).to_bytes(4, "big") + frame + zlib.crc32(frame).to_bytes(4, "big"))
                left = BLOCK - counts[chosen[READ]]
                expected.append([number, int(left.sum()), int((left * READ).sum())])
                actions.append(_add(root, number, place, offset, len(frame), int(counts[chosen].sum())))
                offset += len(frame) + 8
    (root / "_delta_log" / f"{0:020}.json").write_text(
        "".join(json.dumps(action) + "\n" for action in actions), encoding="utf-8"
    )
    yield root, expected
    for vectors in root.glob("*.bin"):  # pytest keeps folders for a while
        vectors.unlink()


def _definition() -> list[dict[str, Any]]:
    fields = [
        {"name": name, "type": "integer", "nullable": True, "metadata": {}} for name in ("block", "file")
    ]
    features = ["deletionVectors"]
    protocol = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": features,
        "writerFeatures": features,
    }
    schema = json.dumps({"type": "struct", "fields": fields})
    metadata = {"id": "large", "format": {"provider": "parquet", "options": {}}, "schemaString": schema,
                "partitionColumns": ["file"], "configuration": {"delta.enableDeletionVectors": "true"},
                "createdTime": 1}  # fmt: skip
    return [{"protocol": protocol}, {"metaData": metadata}]


def _add(root: Path, number: int, place: Path, offset: int, size: int, cardinality: int) -> dict[str, Any]:
    vector = {
        "storageType": "p",
        "pathOrInlineDv": place.as_uri(),
        "offset": offset,
        "sizeInBytes": size,
        "cardinality": cardinality,
    }
    stats = json.dumps({"numRecords": BLOCKS * BLOCK, "tightBounds": False})
    return {
        "add": {
            "path": f"{number}.parquet",
            "partitionValues": {"file": str(number)},
            "size": (root / "0.parquet").stat().st_size,
            "modificationTime": 1,
            "dataChange": True,
            "stats": stats,
            "deletionVector": vector,
        }
    }


def _vector(counts: Any, blocks: Any) -> bytes:
    """PROTOCOL.md's bitmap array of one roaring bitmap whose containers are all bits."""
    many = len(counts)
    descriptions = np.column_stack([np.arange(many), counts - 1]).astype("<u2").tobytes()
    offsets = (8 + 8 * many + 8192 * np.arange(many)).astype("<u4").tobytes()
    bitmap = (
        (12346).to_bytes(4, "little") + many.to_bytes(4, "little") + descriptions + offsets + blocks.tobytes()
    )
    return (1681511377).to_bytes(4, "little") + (1).to_bytes(8, "little") + (0).to_bytes(4, "little") + bitmap


@pytest.mark.timeout(1800)
@pytest.mark.skipif(not MEGABYTES, reason="takes minutes: DELTAIC_VECTOR_MEGABYTES=1024")
@pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="needs /proc for what memory a process has had"
)
@pytest.mark.parametrize("native", ["auto", "never"], ids=["native", "portable"])
def test_each_vector_travels_with_its_task(table: tuple[Path, Expected], tmp_path: Path, native: str) -> None:
    root, expected = table
    package = str(Path(str(deltaic.__file__)).parent.parent)
    environment = {
        **os.environ,
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONPATH": package,
    }
    if (home := java_home(tmp_path / "java")) is not None:
        environment["JAVA_HOME"] = home
    job = [sys.executable, Path(__file__).with_name("large_vectors_job.py"), root, native]
    done = subprocess.run(job, capture_output=True, text=True, env=environment, timeout=1700, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    (answer,) = [
        json.loads(line.removeprefix("ANSWER "))
        for line in done.stdout.splitlines()
        if line.startswith("ANSWER ")
    ]
    print({name: value for name, value in answer.items() if name != "rows"})
    assert answer["rows"] == expected
    assert answer["broadcasts"] == 0
    assert answer["sent_to_all"] < 100_000
