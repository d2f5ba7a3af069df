"""Scans with row ids that DuckDB narrows further: the rows keep their files."""

from __future__ import annotations

import pyarrow as pa
import pytest

import deltaic

VALUES = [b"\x00", b"\xff", b"abc", None, b"abc"]


@pytest.fixture(params=[True, False], ids=["vectors", "copies"])
def table(request, tmp_path):
    """A file for each value. A binary literal is compared by DuckDB, which pushes it into the scan."""
    for number, value in enumerate(VALUES):
        rows = pa.table({"i": [number, number + 10], "v": pa.array([value, b"other"], pa.binary())})
        mode = "append" if number else "error"
        properties = None if number else {"delta.enableDeletionVectors": request.param}
        table = deltaic.write(tmp_path / "t", rows, mode=mode, properties=properties)
    return table


def ids(table):
    return sorted(table.scan(["i"]).to_arrow()["i"].to_pylist())


@pytest.mark.parametrize("value", [b"\x00", b"\xff", b"abc"])
def test_the_rows_of_the_right_files_change(table, value):
    where = f"v = {deltaic.lit(value)}"
    hit = [number for number, item in enumerate(VALUES) if item == value]
    assert table.update({"i": "i + 100"}, where)["num_updated_rows"] == len(hit)
    left = [number + (100 if number in hit else 0) for number in range(len(VALUES))]
    assert ids(table) == sorted([*left, *range(10, 10 + len(VALUES))])
    assert table.delete(where)["num_deleted_rows"] == len(hit)
    assert ids(table) == sorted([*(number for number in left if number < 100), *range(10, 10 + len(VALUES))])
