"""The first version that a new table keeps from its commit equals the version that is read from the log."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltaic
from deltaic.log.snapshot import Snapshot

ROWS = pa.table(
    {"id": [1, 2, 3, 4], "part": ["a", None, "b=/ä", "a"], "value": [1.5, None, float("nan"), 2.0]}
)


def written(place: Path, **options: Any) -> deltaic.DeltaTable:
    return deltaic.write(place, ROWS, **options)


def source(place: Path) -> deltaic.DeltaTable:
    """Returns a table with deletion vectors, partitions and a txn."""
    commit = deltaic.CommitOptions(transactions={"job": 3})
    table = written(
        place.with_name("source"),
        partition_by=["part"],
        properties={"delta.enableRowTracking": True},
        commit=commit,
    )
    table.delete("id = 1")
    return table


def converted(place: Path) -> deltaic.DeltaTable:
    import pyarrow.parquet as pq

    (place / "part=a").mkdir(parents=True)
    pq.write_table(ROWS.select(["id"]), place / "part=a" / "one.parquet")
    return deltaic.DeltaTable.convert(place, partition_schema="part string")


MADE: dict[str, Callable[[Path], deltaic.DeltaTable]] = {
    "empty": lambda place: deltaic.DeltaTable.create(place, "id long"),
    "written": written,
    "partitioned": lambda place: written(place, partition_by=["part"]),
    "row tracking": lambda place: written(
        place, properties={"delta.enableRowTracking": True, "delta.enableInCommitTimestamps": True}
    ),
    "column mapping": lambda place: written(
        place, partition_by=["part"], properties={"delta.columnMapping.mode": "name"}
    ),
    "clustered": lambda place: written(place, cluster_by=["id"]),
    "shallow clone": lambda place: source(place).clone(place, shallow=True),
    "deep clone": lambda place: source(place).clone(place, shallow=False),
    "converted": converted,
}


@pytest.mark.parametrize("way", MADE)
def test_a_new_table_is_known_as_it_is_read(way: str, tmp_path: Path) -> None:
    made = MADE[way](tmp_path / "table")._snapshot
    read = Snapshot.load(made.store)
    assert made.version == read.version == 0
    assert made.files().adds.equals(read.files().adds)
    assert (made.protocol, made.metadata, made.domains) == (read.protocol, read.metadata, read.domains)
    core, other = made.core, read.core
    assert core.transactions == other.transactions
    assert (core.file_count, core.size_in_bytes, core.num_records) == (
        other.file_count,
        other.size_in_bytes,
        other.num_records,
    )
    assert core.size_histogram() == other.size_histogram()
    assert core.deleted_records == other.deleted_records
