"""Makes tables whose commits have a file of one row each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

import deltaic
from deltaic import DeltaTable

VECTORS = {"delta.enableDeletionVectors": True}


def rows(*ids: int) -> pa.Table:
    numbers = pa.array(ids, pa.int64())
    return pa.table({"id": numbers, "p": numbers})


def appended(path: Path, count: int, first: int = 0, **options: Any) -> DeltaTable:
    """Returns a table with `count` more commits. `options`: options of the write that creates the table."""
    for number in range(first, first + count):
        table = deltaic.write(path, rows(number), mode="append", **(options if number == 0 else {}))
    return table
