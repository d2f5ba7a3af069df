"""A session keeps the files and deletion vectors of the tables that it read last: reading an unchanged table
again sends nothing to the JVM, and gives the same rows as the first read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import deltaic.spark
from deltaic import DeltaTable, _core
from deltaic.engine.spark.engine import engine_of
from deltaic.engine.spark.native import tables
from deltaic.engine.spark.native.tables import RecentTables
from deltaic.engine.spark.stores import RecentSnapshots


@pytest.fixture
def places(session: Any, tmp_path: Path) -> list[str]:
    """Three tables of two files with the ids 0 to 99, in each of which another row is deleted."""
    places = [str(tmp_path / f"t{number}") for number in range(3)]
    for number, place in enumerate(places):
        session.range(0, 100, 1, 2).write.format("delta").option("delta.enableDeletionVectors", "true").save(
            place
        )
        DeltaTable(place).delete(f"id = {number * 10}")
    return places


@pytest.fixture
def sent(session: Any, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of files of each list that a session without known tables sends to the JVM from now on."""
    lists: list[int] = []
    hand_over = _core.hand_over

    def counted(store: Any, schema: Any, files: Any) -> Any:
        lists.append(files.num_rows)
        return hand_over(store, schema, files)

    session.range(1).collect()
    monkeypatch.setattr(_core, "hand_over", counted)
    monkeypatch.setattr(engine_of(session), "recent_snapshots", RecentSnapshots())
    monkeypatch.setattr(engine_of(session), "_recent_tables", RecentTables())
    return lists


def ids(frame: Any) -> list[int]:
    return sorted(row["id"] for row in frame.collect())


def all_but(*deleted: int) -> list[int]:
    return [each for each in range(100) if each not in deleted]


def test_tables_that_are_read_in_turns_are_sent_once(
    session: Any, places: list[str], sent: list[int]
) -> None:
    # The first scan of a session is rehearsed with one file more.
    deltaic.spark.read(session, places[0]).collect()
    sent.clear()
    for _ in range(3):
        for number, place in enumerate(places):
            assert ids(deltaic.spark.read(session, place)) == all_but(number * 10)
            assert ids(deltaic.spark.read(session, place).where("id < 30")) == [
                each for each in all_but(number * 10) if each < 30
            ]
    assert sum(sent) == 4  # two files of each table but the first


def test_frames_of_one_leaf_can_be_joined(session: Any, places: list[str], sent: list[int]) -> None:
    one, other = (deltaic.spark.read(session, places[1]) for _ in range(2))
    assert ids(one.join(other, one["id"] == other["id"]).select(one["id"])) == all_but(10)
    assert ids(one.join(one, "id")) == all_but(10)
    assert ids(one.union(other)) == sorted(all_but(10) * 2)


def test_a_query_that_names_a_table_often_sends_it_once(
    session: Any, places: list[str], sent: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "MOST_SCANS", 2)
    deltaic.spark.read(session, places[1]).createOrReplaceTempView("named_often")
    sent.clear()
    query = """SELECT a.id FROM named_often a JOIN named_often b ON a.id = b.id + 1
        WHERE a.id > (SELECT avg(id) FROM named_often)
        AND EXISTS (SELECT 1 FROM named_often c WHERE c.id = b.id)
        UNION ALL SELECT id FROM named_often WHERE id < 3"""
    for _ in range(3):
        assert ids(session.sql(query)) == [0, 1, 2, *range(50, 100)]
    assert sum(sent) <= 3  # two files and the one of a rehearsal


def test_queries_that_are_planned_at_once_take_plans_of_their_own(
    session: Any, places: list[str], sent: list[int]
) -> None:
    """Two queries that name one table in turns: each scan of a query has expression ids of its own."""
    deltaic.spark.read(session, places[1])
    (table,) = engine_of(session)._recent_tables._known.values()
    leaf = tables.TableLeaf(table.jvm, table.rows, None)
    taken: dict[str, list[str]] = {"one": [], "other": []}
    for query in ("one", "other", "other", "one", "one", "other"):
        columns = leaf.plan(query, None).output()
        taken[query] += [columns.apply(number).exprId().toString() for number in range(columns.size())]
    for expression_ids in taken.values():
        assert len(set(expression_ids)) == len(expression_ids) == 3


def test_a_change_is_seen_and_a_version_stays(session: Any, places: list[str], sent: list[int]) -> None:
    place = places[2]
    before = deltaic.spark.read(session, place)
    DeltaTable(place).delete("id = 50")
    DeltaTable(place, spark=session).delete("id = 51")
    for _ in range(2):
        assert ids(deltaic.spark.read(session, place)) == all_but(20, 50, 51)
        assert ids(deltaic.spark.read(session, place, version=1)) == all_but(20)
        assert ids(deltaic.spark.read(session, place, columns=["id"])) == all_but(20, 50, 51)
        assert ids(session.read.format("delta").load(place)) == all_but(20, 50, 51)
    assert ids(before) == all_but(20)


@pytest.mark.parametrize("limit", ["leaves", "bytes of vectors"])
def test_limits(
    session: Any, places: list[str], sent: list[int], monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    """Beyond a limit only the newest leaf is kept; the rows are the same."""
    for place in places:
        deltaic.spark.read(session, place).collect()
    engine = engine_of(session)
    leaves = list(engine._recent_tables._known.values())
    assert [leaf.rows.place for leaf in leaves] == places
    engine._recent_tables = RecentTables()
    if limit == "leaves":
        monkeypatch.setattr(tables, "MOST_TABLES", 1)
    else:
        monkeypatch.setitem(
            vars(engine.jvm), "most_set_bytes", leaves[0].rows.snapshot.core.with_vectors[2] - 1
        )
    for leaf in leaves:
        engine._recent_tables.add(leaf)
    assert list(engine._recent_tables._known.values()) == leaves[2:]
    assert [ids(deltaic.spark.read(session, place)) for place in places] == [
        all_but(0),
        all_but(10),
        all_but(20),
    ]
