"""delta.parquet.format.version: files of Parquet's second version, which every reader can read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deltaic
from deltaic.errors import InvalidArgumentError


def encodings(folder: Path) -> set[str]:
    files = [pq.ParquetFile(path, page_checksum_verification=True) for path in folder.rglob("*.parquet")]
    for file in files:
        file.read()
    return {name for file in files for name in file.metadata.row_group(0).column(0).encodings}


@pytest.mark.parametrize(("version", "second"), [(None, False), ("1.0.0", False), ("2.12.0", True)])
def test_pages_and_encodings(tmp_path: Path, version: str | None, second: bool) -> None:
    properties: dict[str, Any] = {} if version is None else {"delta.parquet.format.version": version}
    data = pa.table({"id": pa.array(range(300_000), pa.int64()), "s": [None, "a", "b"] * 100_000})
    table = deltaic.write(
        tmp_path,
        data,
        properties=properties,
        parquet=deltaic.ParquetOptions(default=deltaic.ColumnOptions(dictionary=False)),
    )
    assert ("DELTA_BINARY_PACKED" in encodings(tmp_path)) is second
    table.delete("id % 3 = 0")
    assert table.scan().to_arrow().sort_by("id")["s"].to_pylist() == ["a", "b"] * 100_000


def test_an_unknown_version_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match=r"2\.12\.0"):
        deltaic.write(tmp_path, pa.table({"id": [1]}), properties={"delta.parquet.format.version": "3.0.0"})
