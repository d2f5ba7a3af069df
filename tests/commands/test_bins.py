"""OPTIMIZE: the groups of files that are rewritten together."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa

from deltaic.commands.bins import CandidateFiles, compaction_bins, measure, purge_bins, whole_partitions


def files(*described: tuple[int, int, int] | tuple[int, int, int, str | None]) -> CandidateFiles:
    """(size, rows, deleted rows[, partition]) of each file."""
    listed: list[dict[str, Any]] = [
        {
            "path": f"f{number}",
            "size": size,
            "stats": json.dumps({"numRecords": count}) if count else None,
            "deletionVector": {"cardinality": deleted} if deleted else None,
            "partitionValues": [("p", partition[0] if partition else None)],
        }
        for number, (size, count, deleted, *partition) in enumerate(described)
    ]
    schema = pa.schema(
        {
            "path": pa.string(),
            "size": pa.int64(),
            "stats": pa.string(),
            "deletionVector": pa.struct({"cardinality": pa.int64()}),
            "partitionValues": pa.map_(pa.string(), pa.string()),
        }
    )
    return measure(pa.Table.from_pylist(listed, schema), ["p"])


def shown(partitions: list[list[pa.Table]]) -> list[list[list[str]]]:
    return [[table["path"].to_pylist() for table in bins] for bins in partitions]


def test_small_neighbours_make_a_file() -> None:
    assert shown(compaction_bins(files((30, 9, 0), (30, 9, 0), (30, 9, 0), (30, 9, 0)), 100)) == [
        [["f0", "f1", "f2"]]
    ]
    assert shown(compaction_bins(files((30, 9, 0), (90, 9, 0), (40, 9, 0)), 100)) == [[["f0", "f2"]]]


def test_a_lone_or_large_file_stays() -> None:
    assert compaction_bins(files((30, 9, 0)), 100) == []
    assert compaction_bins(files((60, 9, 0), (70, 9, 0), (500, 9, 0)), 100) == []
    assert compaction_bins(files(), 100) == []


def test_files_with_many_deleted_rows_go_alone_and_large() -> None:
    assert shown(compaction_bins(files((30, 100, 6)), 100)) == [[["f0"]]]
    assert compaction_bins(files((30, 100, 5)), 100) == []
    assert shown(compaction_bins(files((500, 100, 6), (60, 10, 0)), 100)) == [[["f0"]]]


def test_a_file_is_as_large_as_its_live_rows() -> None:
    assert shown(compaction_bins(files((100, 100, 60), (40, 10, 0)), 100)) == [[["f0", "f1"]]]


def test_partitions_stay_apart() -> None:
    found = files((10, 9, 0, "a"), (10, 9, 0, "b"), (10, 9, 0, "a"), (10, 9, 0, None), (10, 9, 0, "b"))
    assert sorted(shown(compaction_bins(found, 100))) == [[["f0", "f2"]], [["f1", "f4"]]]
    assert sorted(shown(whole_partitions(found))) == [[["f0", "f2"]], [["f1", "f4"]], [["f3"]]]


def test_purge_takes_every_vector() -> None:
    assert shown(purge_bins(files((10, 100, 1), (10, 100, 0), (10, 100, 2), (500, 100, 1)), 100)) == [
        [["f0", "f2"], ["f3"]]
    ]
    assert purge_bins(files((10, 100, 0)), 100) == []


def test_a_file_without_statistics_counts_as_whole() -> None:
    assert shown(compaction_bins(files((30, 0, 0), (30, 0, 3)), 100)) == [[["f0", "f1"]]]


def test_many_files_are_binned_in_their_order() -> None:
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 50, 2000)
    bins = compaction_bins(files(*[(int(size), 9, 0) for size in sizes]), 100)[0]
    found = [path for table in bins for path in table["path"].to_pylist()]
    assert found == [f"f{number}" for number in range(len(found))]
    assert len(found) >= 1999  # a bin of one file is none
    assert all(sum(table["size"].to_pylist()) <= 100 for table in bins)
