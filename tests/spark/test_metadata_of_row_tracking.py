"""`_metadata.row_id` and the other fields of Spark's hidden column for a table with row tracking, compared
with the ids that the core reads.

Source: PROTOCOL.md, "Row Tracking"; RowIdSuite and RowTrackingReadWriteSuite of delta-spark.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException

from deltaic import DeltaTable, _core
from deltaic.engine.spark.engine import engine_of
from deltaic.engine.spark.native.tables import RecentTables
from deltaic.protocol import row_tracking

FIELDS = ["row_index", "row_id", "base_row_id", "default_row_commit_version", "row_commit_version"]
MANY = "deltaic.engine.spark.native.files.MANY_FILES"
Rows = dict[int, tuple[int, int]]


def by_core(place: str) -> Rows:
    """id -> (row id, row commit version)"""
    table = DeltaTable(place)
    names = row_tracking.hidden_columns(table.metadata)
    assert names is not None
    snapshot = table._snapshot
    rows = _core.read(
        snapshot.store, snapshot.table_schema, snapshot.files().adds, ["id"], row_tracking=names
    ).to_table()
    pairs = zip(rows[names[0]].to_pylist(), rows[names[1]].to_pylist(), strict=True)
    return dict(zip(rows["id"].to_pylist(), pairs, strict=True))


def by_spark(frame: Any) -> Rows:
    rows = frame.select("id", "_metadata.row_id", "_metadata.row_commit_version").collect()
    found = {row.id: (row.row_id, row.row_commit_version) for row in rows}
    assert len(found) == len(rows)
    return found


def written(session: Any, place: str, mapping: str = "none", vectors: bool = True) -> None:
    (
        session.range(12)
        .selectExpr("id", "id % 2 AS part", "cast(id AS string) AS text")
        .coalesce(1)
        .write.format("delta")
        .partitionBy("part")
        .options(**{"delta.enableRowTracking": "true", "delta.columnMapping.mode": mapping})
        .option("delta.enableDeletionVectors", vectors)
        .save(place)
    )


@pytest.mark.parametrize(
    ("mapping", "vectors", "many"),
    [("none", True, 10_000), ("none", False, 0), ("name", True, 0), ("id", True, 10_000)],
)
def test_rows_keep_their_ids(
    session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mapping: str, vectors: bool, many: int
) -> None:
    monkeypatch.setattr(MANY, many)
    monkeypatch.setattr(engine_of(session), "_recent_tables", RecentTables())
    place = str(tmp_path / "t")
    written(session, place, mapping, vectors)
    frame = session.read.format("delta").load(place)
    first = by_spark(frame)
    assert sorted(row_id for row_id, _ in first.values()) == list(range(12))
    for statement in (
        "DELETE FROM {t} WHERE id IN (0, 5)",
        "UPDATE {t} SET text = 'new' WHERE id IN (1, 2)",
        "INSERT INTO {t} VALUES (100, 0, 'x')",
        "MERGE INTO {t} AS t USING (SELECT 3 AS k) ON id = k WHEN MATCHED THEN UPDATE SET text = 'merged'",
        "OPTIMIZE {t}",
        "REORG TABLE {t} APPLY (PURGE)",
    ):
        session.sql(statement.format(t=f"delta.`{place}`"))
        found = by_spark(frame)
        assert found == by_core(place) == by_spark(session.sql(f"SELECT id, _metadata FROM delta.`{place}`"))
        kept = first.keys() & found.keys()
        assert {key: found[key][0] for key in kept} == {key: first[key][0] for key in kept}
    assert {key: version for key, (_, version) in found.items() if version} == {1: 2, 2: 2, 100: 3, 3: 4}
    assert by_spark(session.read.format("delta").option("versionAsOf", 0).load(place)) == first


def test_conditions_on_row_ids(session: Any, tmp_path: Path) -> None:
    place = str(tmp_path / "t")
    written(session, place)
    session.sql(f"UPDATE delta.`{place}` SET text = 'new' WHERE id = 7")
    frame, rows = session.read.format("delta").load(place), by_core(place)
    chosen = frame.where("_metadata.row_id > 4 AND part = 1").select("id")
    assert {row.id for row in chosen.collect()} == {
        key for key, (row_id, _) in rows.items() if row_id > 4 and key % 2
    }
    assert [row.id for row in frame.where("_metadata.row_commit_version = 1").select("id").collect()] == [7]
    assert frame.where("_metadata.row_id IS NULL").count() == 0


def test_fields_of_a_table_without_row_tracking(session: Any, tmp_path: Path) -> None:
    place, other = str(tmp_path / "t"), str(tmp_path / "u")
    written(session, place)
    session.range(2).write.format("delta").save(other)
    frame = session.read.format("delta").load(place)
    assert frame.select("_metadata").schema["_metadata"].dataType.names[-5:] == FIELDS
    with pytest.raises(AnalysisException, match="row_id"):
        session.read.format("delta").load(other).select("_metadata.row_id").collect()
    before = by_spark(frame)
    session.sql(f"ALTER TABLE delta.`{place}` SET TBLPROPERTIES ('delta.enableRowTracking' = 'false')")
    assert by_spark(frame) == before  # its plan has the fields
    with pytest.raises(AnalysisException, match="row_id"):
        session.read.format("delta").load(place).select("_metadata.row_id").collect()


def test_a_table_whose_row_tracking_was_dropped(session: Any, tmp_path: Path) -> None:
    place = str(tmp_path / "t")
    written(session, place)
    frame = session.read.format("delta").load(place).select("id", "_metadata.row_id")
    session.sql(f"ALTER TABLE delta.`{place}` DROP FEATURE rowTracking")
    with pytest.raises(Exception, match="a version without row tracking"):
        frame.collect()


def test_an_empty_table_has_the_fields(session: Any, tmp_path: Path) -> None:
    place = str(tmp_path / "t")
    written(session, place)
    session.sql(f"DELETE FROM delta.`{place}`")
    frame = session.read.format("delta").load(place)
    assert frame.select("_metadata.row_id", "_metadata.base_row_id", "id").collect() == []
