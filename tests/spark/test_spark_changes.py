"""The change data feed on Spark: both engines write the same feed, and `readChangeFeed` and `changes()` read
it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltaic
import deltaic.spark
from deltaic import DeltaTable
from deltaic.engine.spark.engine import SETTING
from deltaic.engine.spark.engine_session import ROWS_SETTING as DRIVER_ROWS
from deltaic.errors import InvalidArgumentError, VersionNotFoundError

SOURCE = pa.table({"id": [1, 2, 3, 500, None], "grp": [0, 5, 0, 1, 2], "name": ["a", None, "c", "d", "f"]})
STEPS: list[Callable[[DeltaTable], Any]] = [
    lambda t: t.delete("id % 7 = 5"),
    lambda t: t.update({"name": "concat(name, '!')"}, "id % 10 = 1"),
    lambda t: (
        t.merge(SOURCE, "t.id = s.id")
        .when_matched_delete("s.id = 1")
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .when_not_matched_by_source_update({"name": "'orphan'"}, "t.id > 38")
        .execute()
    ),
    lambda t: t.restore(1),
    lambda t: deltaic.write(t, SOURCE.slice(0, 2), mode="overwrite", where="id in (1, 2)"),
    lambda t: t.optimize.compact(),
    lambda t: t.delete(),
]


def data(start: int, stop: int) -> pa.Table:
    numbers = range(start, stop)
    return pa.table(
        {
            "id": numbers,
            "grp": [number % 3 for number in numbers],
            "name": [f"n{number % 5}" for number in numbers],
        }
    )


def said(rows: list[dict[str, Any]]) -> list[str]:
    """Returns the changes without the times of their commits."""
    return sorted(
        repr([row[name] for name in ("_commit_version", "_change_type", "id", "grp", "name")]) for row in rows
    )


@pytest.mark.parametrize(
    ("way", "driver_rows", "vectors", "mapping", "partition"),
    [
        ("auto", None, True, "name", "grp"),
        ("auto", 0, False, "id", "grp"),
        ("auto", 0, True, "none", None),
        ("never", None, True, "name", "grp"),
    ],
)
def test_both_engines_record_the_same_changes(
    tmp_path: Path,
    spark: Any,
    way: Any,
    driver_rows: int | None,
    vectors: bool,
    mapping: str,
    partition: str | None,
) -> None:
    session = spark.newSession()
    setattr(session, SETTING, way)
    if driver_rows is not None:
        session.conf.set(DRIVER_ROWS, driver_rows)
    properties = {
        "delta.enableChangeDataFeed": True,
        "delta.enableDeletionVectors": vectors,
        "delta.columnMapping.mode": mapping,
        "delta.enableInCommitTimestamps": vectors,
    }
    for name in ("local", "spark"):
        made = deltaic.write(tmp_path / name, data(0, 20), partition_by=partition, properties=properties)
        deltaic.write(made, data(20, 40), mode="append")
    local, clustered = DeltaTable(tmp_path / "local"), DeltaTable(tmp_path / "spark", spark=session)
    for step in STEPS:
        step(local)
        step(clustered)
    expected = said(local.changes(0).to_pylist())
    assert said(DeltaTable(tmp_path / "spark").changes(0).to_pylist()) == expected
    assert said(clustered.changes(0).to_arrow().to_pylist()) == expected
    assert clustered.changes(0).count() == len(expected)
    for name in ("local", "spark"):
        assert list((tmp_path / name / "_change_data").rglob("*.parquet"))
    where = "_change_type = 'update_preimage' and id > 5 and _commit_version < 4"
    assert said(clustered.changes(0, where=where).to_spark().toArrow().to_pylist()) == said(
        local.changes(0, where=where).to_pylist()
    )
    assert clustered.scan().count() == 0


@pytest.mark.parametrize("way", ["auto", "never"])
def test_the_changes_of_a_restore_have_the_wider_type_of_the_rows_it_removed(
    tmp_path: Path, spark: Any, way: str
) -> None:
    session = spark.newSession()
    setattr(session, SETTING, way)
    properties = {"delta.enableChangeDataFeed": True, "delta.enableTypeWidening": True}
    old = pa.table({"k": pa.array([1, 2], pa.int32())})
    table = DeltaTable(deltaic.write(tmp_path / "t", old, properties=properties).location, spark=session)
    table.alter.change_column("k", type="bigint")
    deltaic.write(table, pa.table({"k": [2**40]}), mode="append")
    table.optimize.compact()
    table.restore(0)
    rows = table.changes(table.version, table.version).to_spark().select("k", "_change_type").collect()
    assert sorted(map(tuple, rows)) == [
        (1, "delete"),
        (1, "insert"),
        (2, "delete"),
        (2, "insert"),
        (2**40, "delete"),
    ]


def test_read_change_feed(tmp_path: Path, spark: Any) -> None:
    deltaic.spark.enable(spark)
    path = str(tmp_path / "t")
    spark.range(5).write.format("delta").option("delta.enableChangeDataFeed", "true").save(path)
    table = DeltaTable(path, spark=spark)
    table.update({"id": "id + 10"}, "id > 2")
    table.delete("id = 0")
    reader = lambda **options: (  # noqa: E731
        spark.read.format("delta").options(readChangeFeed=True, **options).load(path)
    )
    frame = reader(startingVersion=0)
    assert frame.columns == ["id", "_change_type", "_commit_version", "_commit_timestamp"]
    counted = {
        (row["_commit_version"], row["_change_type"]): row["count"]
        for row in frame.groupBy("_commit_version", "_change_type").count().collect()
    }
    assert counted == {
        (0, "insert"): 5,
        (1, "update_preimage"): 2,
        (1, "update_postimage"): 2,
        (2, "delete"): 1,
    }
    assert (
        reader(startingVersion=1, endingVersion=1)
        .where("_change_type = 'update_postimage'")
        .agg({"id": "sum"})
        .collect()[0][0]
        == 27
    )
    assert reader(startingVersion=2, endingVersion=99).count() == 1
    assert reader(startingTimestamp="2001-01-01", endingVersion=0).count() == 5
    with pytest.raises(VersionNotFoundError):
        reader(startingVersion=7)
    with pytest.raises(InvalidArgumentError):
        reader(endingVersion=1)
    with pytest.raises(InvalidArgumentError, match="endingVersion"):
        reader(startingVersion=0, versionAsOf=1)
