"""Commands with current_timestamp() and current_date(): the time is the same in the whole command."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltaic
from deltaic import DeltaTable

NOW = datetime.now(timezone.utc)
EVENTS = pa.table(
    {
        "id": [1, 2, 3],
        "at": pa.array([NOW - timedelta(days=90), NOW - timedelta(days=1), NOW + timedelta(days=90)]),
        "day": [date(2020, 1, 1), date(2020, 1, 2), date(2999, 1, 1)],
    }
)


@pytest.fixture
def events(tmp_path: Path, vectors: bool, session: Any) -> DeltaTable:
    deltaic.write(tmp_path / "t", EVENTS, properties={"delta.enableDeletionVectors": str(vectors).lower()})
    return DeltaTable(tmp_path / "t", spark=session)


def ids(table: DeltaTable) -> list[int]:
    return sorted(deltaic.DeltaTable(table.location).scan(["id"]).to_arrow()["id"].to_pylist())


@pytest.mark.parametrize(
    ("condition", "left"),
    [
        ("at < current_timestamp() - INTERVAL 30 DAYS", [2, 3]),
        ("at > now()", [1, 2]),
        ("unix_timestamp() - unix_timestamp(at) > 86400 * 30", [2, 3]),
        ("day > current_date()", [1, 2]),
        ("datediff(current_date(), day) > 365 AND id < 2", [2, 3]),
    ],
)
def test_delete(events: DeltaTable, condition: str, left: list[int]) -> None:
    events.delete(condition)
    assert ids(events) == left


def test_update_and_merge(events: DeltaTable) -> None:
    events.update(
        {"at": "now()", "day": "current_date()"}, "at < current_timestamp() AND day < current_date()"
    )
    rows = DeltaTable(events.location).scan().to_arrow().sort_by("id").to_pylist()
    assert rows[0]["at"] == rows[1]["at"] >= NOW
    assert rows[2]["at"] > rows[0]["at"]
    source = pa.table({"id": [2, 7, 8], "until": [date(2999, 1, 1), date(2999, 1, 1), date(2020, 1, 1)]})
    merge = events.merge(source, "t.id = s.id AND t.at <= now()")
    merge = merge.when_matched_update({"at": "now()"}, "s.until > current_date()")
    new = {"id": "s.id", "at": "current_timestamp()", "day": "current_date()"}
    merge.when_not_matched_insert(new, "s.until > current_date() - INTERVAL 7 DAYS").execute()
    assert ids(events) == [1, 2, 3, 7]
    rows = DeltaTable(events.location).scan().to_arrow().sort_by("id").to_pylist()
    assert rows[1]["at"] >= rows[0]["at"]
    assert rows[3]["at"] >= rows[1]["at"]


def test_one_moment(tmp_path: Path) -> None:
    """All values of one command are equal, as in one query of Spark; those of the next one are later."""
    table = deltaic.DeltaTable.create(
        tmp_path / "t",
        "id int, a timestamp default current_timestamp(), b timestamp default now()",
        properties={"delta.feature.allowColumnDefaults": "supported"},
    )
    for number in range(2):
        deltaic.write(table, pa.table({"id": pa.array([number], pa.int32())}), mode="append")
    deltaic.sql(f"INSERT INTO delta.`{tmp_path / 't'}` (id) VALUES (2)")
    table.refresh()
    table.update({"a": "now()", "b": "current_timestamp()"}, "id = 0")
    deltaic.sql(f"UPDATE delta.`{tmp_path / 't'}` SET a = current_timestamp(), b = now() WHERE id = 1")
    rows = sorted(DeltaTable(tmp_path / "t").scan().to_pylist(), key=lambda row: row["id"])
    assert [row["a"] for row in rows] == [row["b"] for row in rows]
    assert len({row["a"] for row in rows}) == 3
