"""OPTIMIZE: the rows stay the same at every step, files become fewer and larger, and invalid arguments are
refused."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from commands_model import Make, rows

import deltaic
from deltaic import DeltaTable
from deltaic.commands import auto_compaction
from deltaic.commands.optimize_rewrite import Rewrite
from deltaic.errors import (
    DeltaError,
    InvalidArgumentError,
    InvalidTypeError,
    UnsupportedFeatureError,
)
from deltaic.planning import partition_functions


def last(table: DeltaTable) -> dict[str, Any]:
    return table.history(1)[0]


def test_compact(make: Make, sample: pa.Table) -> None:
    table = make(sample, files=10)
    metrics = table.optimize.compact()
    assert metrics["num_files_removed"] == metrics["total_considered_files"] == 10
    assert metrics["num_files_added"] == metrics["partitions_optimized"] == metrics["num_batches"] == 1
    assert table.files().count() == 1
    assert rows(table) == rows(sample)
    newest = last(table)
    assert newest["operation"] == "OPTIMIZE"
    assert newest["isolationLevel"] == "SnapshotIsolation"
    assert newest["operationMetrics"]["numRemovedFiles"] == "10"
    assert table.optimize.compact()["num_files_added"] == 0
    assert table.version == newest["version"]


def test_rows_keep_their_order(make: Make, sample: pa.Table) -> None:
    table = make(sample, files=10)
    before = table.scan().to_arrow()
    table.optimize.compact()
    assert table.scan().to_arrow().equals(before)


def test_compact_in_partitions_and_where(make: Make, sample: pa.Table) -> None:
    table = make(sample, files=5, partition_by="grp")
    metrics = table.optimize.compact("grp = 1")
    assert metrics["num_files_removed"] == metrics["total_considered_files"] == 5
    assert table.files().count() == 11
    with pytest.raises(InvalidArgumentError, match="partition"):
        table.optimize.compact("id = 1")
    metrics = table.optimize.compact(commit_interval=timedelta(0))
    assert metrics["num_batches"] == metrics["partitions_optimized"] == 2
    assert table.files().count() == 3
    assert rows(table) == rows(sample)


def test_the_last_commit_of_several_records_the_application_transaction(
    make: Make, sample: pa.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make(sample, files=5, partition_by="grp")
    stage, staged = Rewrite._stage_bin, []

    def fails_at_the_second(self: Rewrite, *arguments: Any) -> None:
        staged.append(arguments)
        if len(staged) == 2:
            raise OSError("disk full")
        stage(self, *arguments)

    commit = deltaic.CommitOptions(transactions={"nightly": 7})
    monkeypatch.setattr(Rewrite, "_stage_bin", fails_at_the_second)
    with pytest.raises(OSError, match="disk full"):
        table.optimize.compact(commit_interval=timedelta(0), commit=commit)
    table.refresh()
    assert table.files().count() == 11, "the first partition was committed"
    metrics = table.optimize.compact(commit_interval=timedelta(0), commit=commit)
    assert metrics["num_files_removed"] == 5 * metrics["num_batches"], "the retry rewrites the others"
    assert table.optimize.compact(commit_interval=timedelta(0), commit=commit)["num_files_removed"] == 0
    assert table.files().count() == 3
    assert rows(table) == rows(sample)


@pytest.mark.parametrize(
    ("where", "matches"),
    [
        ("year(day) = 2024", lambda day, part: day is not None and day.year == 2024),
        ("part LIKE '%/%' OR day IS NULL", lambda day, part: day is None or "/" in part),
        ("upper(part) = 'A B' AND month(day) < 3", lambda day, part: part == "a b" and day and day.month < 3),
        ("length(part) > 100", lambda day, part: False),
        ("1 = 1", lambda day, part: True),
        ("1 > 2", lambda day, part: False),
        (
            "day IS NOT NULL AND 1 / (year(day) - 2023) > 0 AND day > '2024-01-01'",
            lambda day, part: day and day > date(2024, 1, 1),
        ),
    ],
)
def test_where_takes_any_condition_on_partition_columns(
    make: Make,
    where: str,
    matches: Callable[[date | None, str], bool],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also with more partitions than the predicate of a scan may name."""
    monkeypatch.setattr(partition_functions, "MOST_IN_PREDICATE", 1)
    days = [date(2023, 12, 31), date(2024, 1, 1), date(2024, 1, 2), date(2024, 3, 1), None]
    parts = ["a b", "a b", "c%d", "é/x", "a b"]
    table = make(pa.table({"id": range(5), "day": days, "part": parts}), partition_by=["day", "part"])
    deltaic.write(table.location, table.scan().to_arrow(), mode="append")
    table.refresh()
    before = rows(table)
    expected = sum(bool(matches(day, part)) for day, part in zip(days, parts, strict=True))
    metrics = table.optimize.compact(where)
    assert metrics["num_files_added"] == metrics["partitions_optimized"] == expected
    assert metrics["num_files_removed"] == 2 * expected
    assert rows(table) == before


def test_where_that_fails_on_a_partition(make: Make, sample: pa.Table) -> None:
    table = make(sample, files=5, partition_by="grp")
    for where in ("grp = 'x'", "1 / (grp - 1) > 0"):
        with pytest.raises(DeltaError, match=r"cannot be cast|by zero"):
            table.optimize.compact(where)
    for where in ("grp = id", "grp IN (SELECT 1)", "rand() < 0.5", "'a' = 'b' OR id > 0"):
        with pytest.raises(DeltaError):
            table.optimize.compact(where)
    assert table.files().count() == 15


def test_many_deleted_rows_make_a_lone_file_a_candidate(make: Make, sample: pa.Table, vectors: bool) -> None:
    if not vectors:
        pytest.skip("no vectors")
    table = make(sample)
    table.delete("id < 5")
    assert table.optimize.compact()["num_files_added"] == 0
    table.delete("id = 50")
    assert table.optimize.compact()["num_deletion_vectors_removed"] == 1
    assert table.files().to_arrow()["num_records"].to_pylist() == [94]


def test_purge(make: Make, sample: pa.Table, vectors: bool) -> None:
    if not vectors:
        pytest.skip("no vectors")
    table = make(sample, files=4)
    table.delete("id in (1, 30)")
    before = rows(table)
    metrics = table.optimize.purge()
    assert metrics["num_deletion_vectors_removed"] == 2
    assert metrics["num_files_removed"] == 2
    assert all(vector is None for vector in table.files().to_arrow()["deletion_vector"].to_pylist())
    assert rows(table) == before
    assert last(table)["operation"] == "REORG"
    version = table.version
    assert table.optimize.purge()["num_files_added"] == 0
    assert table.version == version


@pytest.mark.parametrize("curve", ["zorder", "hilbert"])
def test_z_order_skips_files_by_each_column(make: Make, curve: Any) -> None:
    rng = np.random.default_rng(1)
    data = pa.table(
        {name: rng.integers(0, 1_000_000, 40_000) for name in ("a", "b")} | {"pad": ["x" * 20] * 40_000}
    )
    table = make(data)
    size = table.files().to_arrow()["size"].to_pylist()[0]
    metrics = table.optimize.z_order(["a", "B"], curve=curve, target_size=size // 16)
    assert metrics["num_files_added"] >= 12
    assert rows(table) == rows(data)
    assert last(table)["operationParameters"]["zOrderBy"] == '["a","b"]'
    for column in ("a", "b"):
        report = table.scan(where=f"{column} between 500000 and 500100").explain()
        assert report.files_read <= metrics["num_files_added"] * 0.6, column


def test_z_order_of_few_values_nulls_and_types(make: Make) -> None:
    data = pa.table(
        {
            "flag": [True, False, None] * 100,
            "text": [None, "a", "ä", "zz", ""] * 60,
            "x": [float("nan"), -0.0, 0.0, None, 1.5, -1.5] * 50,
            "one": [7] * 300,
            "bin": [b"\xff", None, b""] * 100,
        }
    )
    table = make(data, files=3)
    table.optimize.z_order(["text", "x", "one", "flag"])
    assert rows(table) == rows(data)
    assert table.files().count() == 1


def test_z_order_of_an_empty_table(make: Make, sample: pa.Table) -> None:
    table = make(sample.slice(0, 0))
    assert table.optimize.z_order("id")["num_files_added"] == 0
    assert table.version == 0


def test_z_order_refuses(make: Make, sample: pa.Table) -> None:
    data = sample.append_column("tags", pa.array([["x"]] * 100))
    table = make(data, partition_by="grp", properties={"delta.dataSkippingStatsColumns": "id,name"})
    for columns in (["grp"], ["x"], ["nope"], ["tags"], ["id", "ID"], []):
        with pytest.raises(InvalidArgumentError):
            table.optimize.z_order(columns)
    with pytest.raises(InvalidArgumentError, match="curve"):
        table.optimize.z_order(["id"], curve="peano")  # type: ignore[arg-type]
    with pytest.raises(UnsupportedFeatureError, match="clustering columns"):
        table.optimize.cluster()
    with pytest.raises(InvalidTypeError):
        table.optimize.compact(commit_interval=5)
    for size in (0, 2**64):
        with pytest.raises(InvalidArgumentError, match="target_size"):
            table.optimize.compact(target_size=size)
    assert table.version == 0


def test_statistics_become_tight(make: Make, sample: pa.Table, vectors: bool) -> None:
    table = make(sample)
    table.delete("id > 50")
    table.optimize.statistics()
    (listed,) = table.files().to_arrow().to_pylist()
    assert listed["max_values"]["id"] == 50
    assert rows(table) == [row for row in rows(sample) if row[0] <= 50]
    version = table.version
    assert table.optimize.statistics()["num_files_updated"] == 0
    assert table.version == version


def test_auto_compaction_after_writes(make: Make, sample: pa.Table) -> None:
    table = make(sample.slice(0, 1), properties={"delta.autoOptimize.autoCompact": True})
    for start in range(1, 49):
        table = deltaic.write(table, sample.slice(start, 1), mode="append")
    assert table.files().count() == 49
    table = deltaic.write(table, sample.slice(49, 1), mode="append")
    assert table.files().count() == 1
    assert rows(table) == rows(sample.slice(0, 50))


@pytest.mark.parametrize("command", ["update", "merge", "delete"])
def test_auto_compaction_after_changes(
    make: Make, sample: pa.Table, command: str, vectors: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in delta-spark, commands that write files compact their partitions. A DELETE that only marks rows
    writes none."""
    table = make(sample, files=4)
    monkeypatch.setattr(auto_compaction, "AUTO_COMPACT_FILES", 4)
    table.alter.set_properties({"delta.autoOptimize.autoCompact": True})
    if command == "update":
        table.update({"grp": "7"}, "id = 3")
    elif command == "merge":
        table.merge(sample.slice(3, 1), "s.id = t.id").when_matched_update_all().execute()
    else:
        table.delete("id = 3")
    kept = command == "delete" and vectors
    assert table.files().count() == (4 if kept else 1)
    assert last(table)["operation"] == ("DELETE" if kept else "OPTIMIZE")
    assert table.scan().count() == sample.num_rows - (command == "delete")


def test_a_rewrite_beside_an_append(make: Make, sample: pa.Table) -> None:
    table = make(sample, files=4)
    other = DeltaTable(table.location)
    deltaic.write(other, sample.slice(0, 1), mode="append")
    table.optimize.compact()
    assert rows(table) == sorted(rows(sample) + rows(sample.slice(0, 1)), key=repr)
    assert table.files().count() == 2
