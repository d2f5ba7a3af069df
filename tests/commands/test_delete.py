"""DELETE, with vectors and by rewriting files: both have the same rows, and the metrics of delta-spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from commands_model import Make, asked, rows

import deltaic
from deltaic.errors import AppendOnlyError, InvalidArgumentError, SchemaMismatchError, UnsupportedFeatureError

CONDITIONS = [
    "id = 5",
    "id = 5 or id > 97",
    "id in (1, 50, 99)",
    "name is null",
    "name = 'n3'",
    "name like 'n3%' and x > 10",
    "name rlike '3'",  # left to the engine
    "id > 10 and name rlike '3'",
    "x / 2 > 10",
    "not (id < 90)",
    "grp = 1",
    "true",
]


@pytest.mark.parametrize("where", CONDITIONS)
@pytest.mark.parametrize("files", [1, 4])
def test_rows(make: Make, sample: pa.Table, where: str, files: int) -> None:
    table = make(sample, files=files)
    metrics = table.delete(where)
    spoken = where.replace("name rlike '3'", "regexp_matches(name, '3')")
    expected = asked(f"SELECT * FROM t WHERE NOT coalesce({spoken}, false)", t=sample)
    assert rows(table) == expected
    assert metrics["num_deleted_rows"] == 100 - len(expected)
    assert table.scan().count() == len(expected)
    assert rows(table.at(files - 1)) == rows(sample)


def test_what_is_written(make: Make, sample: pa.Table, vectors: bool) -> None:
    table = make(sample, files=2)
    metrics = table.delete("id = 5")
    if vectors:
        assert metrics["num_added_files"] == metrics["num_removed_files"] == metrics["num_copied_rows"] == 0
        assert metrics["num_deletion_vectors_added"] == 1
        assert table.delete("id = 6")["num_deletion_vectors_updated"] == 1
    else:
        assert metrics["num_added_files"] == metrics["num_removed_files"] == 1
        assert metrics["num_copied_rows"] == 49
        assert metrics["num_deletion_vectors_added"] == 0


def test_one_row_costs_less_than_a_kilobyte(make: Make, tmp_path: Path, vectors: bool) -> None:
    if not vectors:
        pytest.skip("files are rewritten")
    table = make(pa.table({"id": range(10_000)}))
    before = {path: path.stat().st_size for path in Path(table.location).rglob("*") if path.is_file()}
    table.delete("id = 7777")
    new = {
        path: path.stat().st_size
        for path in Path(table.location).rglob("*")
        if path.is_file() and path not in before
    }
    assert sum(size for path, size in new.items() if "_delta_log" not in path.parts) <= 1024


def test_a_file_with_no_row_left_is_removed(make: Make, sample: pa.Table, vectors: bool) -> None:
    table = make(sample, files=4)
    metrics = table.delete("id < 25 and name rlike '.' or id < 25")
    assert metrics["num_removed_files"] == 1
    assert metrics["num_added_files"] == 0
    assert metrics["num_deletion_vectors_added"] == 0
    table.delete("id = 30")
    metrics = table.delete("id >= 25 and id < 50 and x > 0")
    assert metrics["num_deleted_rows"] == 24
    assert metrics["num_removed_files"] == 1
    assert table.files().count() == 2


def test_whole_partitions_go_by_metadata_alone(make: Make, sample: pa.Table) -> None:
    table = make(sample, partition_by="grp")
    for path in Path(table.location).rglob("*.parquet"):
        path.write_bytes(b"not read")
    metrics = table.delete("grp = 1")
    assert metrics["num_deleted_rows"] == 33
    assert metrics["num_removed_files"] == 1
    assert metrics["num_copied_rows"] == 0
    assert table.delete()["num_deleted_rows"] == 67
    assert table.scan().to_arrow().num_rows == 0


def test_what_finds_nothing_commits_nothing(make: Make, sample: pa.Table) -> None:
    table = make(sample)
    for where in ("id = 1000", "id < 0 and name rlike '3'", "name = null", "false"):
        assert table.delete(where)["num_deleted_rows"] == 0
    assert table.version == 0
    table.delete()
    assert table.delete()["num_removed_files"] == 0
    assert table.version == 1


def test_history(make: Make, sample: pa.Table, way: str) -> None:
    table = make(sample)
    table.delete("id = 5")
    newest = table.history(1)[0]
    assert newest["operation"] == "DELETE"
    # Spark's form of a resolved condition, as in delta-spark
    assert newest["operationParameters"]["predicate"] == (
        '["(id = 5)"]' if way.endswith("spark") else '["id = 5"]'
    )
    assert newest["operationMetrics"]["numDeletedRows"] == "1"
    times = {
        name: int(newest["operationMetrics"][name])
        for name in ("executionTimeMs", "scanTimeMs", "rewriteTimeMs")
    }
    assert 0 <= times["scanTimeMs"] + times["rewriteTimeMs"] <= times["executionTimeMs"] + 2
    table.delete()
    assert table.history(1)[0]["operationParameters"]["predicate"] == '["true"]'


def test_refusals(make: Make, sample: pa.Table) -> None:
    table = make(sample)
    with pytest.raises(InvalidArgumentError, match="nmae"):
        table.delete("nmae = 'x'")
    with pytest.raises(InvalidArgumentError):
        table.delete("id = ")
    with pytest.raises(SchemaMismatchError, match="boolean"):
        table.delete("id + 1")
    assert table.version == 0


def test_subqueries_on_the_embedded_engine_alone(make: Make, sample: pa.Table, session: Any) -> None:
    table = make(sample)
    if session is None:
        assert table.delete("id in (select 1)")["num_deleted_rows"] == 1
        return
    with pytest.raises(UnsupportedFeatureError, match="SELECT"):
        table.delete("id in (select 1)")
    assert table.version == 0


def test_append_only(make: Make, sample: pa.Table) -> None:
    table = make(sample, properties={"delta.appendOnly": True})
    for where in ("id = 1", None):
        with pytest.raises(AppendOnlyError):
            table.delete(where)
    assert table.refresh() is None
    assert table.version == 0
    assert not list(Path(table.location).rglob("*.bin"))


def test_floats_compare_as_in_spark(make: Make) -> None:
    nan = float("nan")
    table = make(pa.table({"x": [0.0, -0.0, 1.0, nan, None]}))
    assert table.delete("x = 0")["num_deleted_rows"] == 2
    assert table.delete("x > 1")["num_deleted_rows"] == 1  # NaN is greater than everything
    assert [row[0] for row in rows(table)] == [1.0, None]


def test_names_match_without_case_and_qualified(make: Make) -> None:
    table = make(pa.table({"Id": [1, 2, 3], "s": [{"f": 1}, {"f": 2}, None]}))
    assert table.delete("ID = 1")["num_deleted_rows"] == 1
    assert table.delete("S.F = 2")["num_deleted_rows"] == 1
    assert rows(table) == [(3, None)]


def test_by_path_again_and_again(make: Make, sample: pa.Table) -> None:
    table = make(sample, files=3)
    expected = {row[0]: row for row in rows(sample)}
    for number in (0, 99, 50, 51, 33, 34, 66):
        deltaic.DeltaTable(table.location).delete(f"id = {number}")
        expected.pop(number)
    table.refresh()
    assert rows(table) == sorted(expected.values(), key=repr)
