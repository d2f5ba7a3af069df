"""Maps with a repeated key: no command writes one from its data, and commands that do not read such a map in
a file of another writer copy it.

Spark: DUPLICATED_MAP_KEY, with the default of spark.sql.mapKeyDedupPolicy.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deltaic
from deltaic import DeltaTable
from deltaic.errors import InvalidArgumentError, SchemaMismatchError

TWICE = [("a", 1), ("a", 2)]
MAP = pa.map_(pa.string(), pa.int32())
NESTED = pa.struct({"l": pa.list_(pa.map_(pa.int32(), MAP)), "x": pa.int32()})
SCHEMA = pa.schema({"id": pa.int64(), "m": MAP, "n": NESTED, "v": pa.int32(), "p": pa.string()})


def rows(first: int, keys: list[Any], deep: list[Any]) -> pa.Table:
    columns = [
        [first, first + 1],
        [keys, None],
        [{"l": [[(1, deep)], None], "x": 5}, {"l": None, "x": None}],
        [0, None],
        ["x", "y"],
    ]
    return pa.table(
        [pa.array(values, item.type) for values, item in zip(columns, SCHEMA, strict=True)], schema=SCHEMA
    )


@pytest.fixture(params=[True, False], ids=["vectors", "copy-on-write"])
def foreign(tmp_path: Path, request: pytest.FixtureRequest) -> DeltaTable:
    """A table one of whose files, written by pyarrow, holds maps with a key twice."""
    table = deltaic.write(
        tmp_path / "t", rows(0, [("a", 1)], []), properties={"delta.enableDeletionVectors": request.param}
    )
    pq.write_table(rows(10, TWICE, TWICE), tmp_path / "t" / "foreign.parquet")
    table.add_files(["foreign.parquet"])
    return table


def contents(table: DeltaTable) -> dict[int, dict[str, Any]]:
    return {row["id"]: row for row in table.scan().to_arrow().to_pylist()}


@pytest.mark.parametrize("bad", [rows(5, TWICE, []), rows(5, [], TWICE)], ids=["map", "nested"])
def test_every_way_in_refuses_them(tmp_path: Path, bad: pa.Table) -> None:
    with pytest.raises(SchemaMismatchError, match=r"row 0: a key of a map comes twice.*DUPLICATED_MAP_KEY"):
        deltaic.write(tmp_path / "new", bad)
    table = deltaic.write(tmp_path / "t", rows(0, [("a", 1)], []))
    good, before = rows(0, [("b", 2)], [("b", 2)]), contents(table)
    for attempt in (
        lambda: deltaic.write(table, bad, mode="append"),
        lambda: deltaic.write(table, pa.concat_tables([good, bad]).to_reader(), mode="overwrite"),
        lambda: deltaic.write(table, bad, mode="overwrite", where="id >= 0"),
        lambda: table.merge(bad, "t.id = s.id").when_not_matched_insert_all().execute(),
        lambda: table.merge(bad.to_reader(), "t.id = s.id - 5").when_matched_update_all().execute(),
        lambda: deltaic.sql("INSERT INTO t SELECT * FROM d", tables={"t": table, "d": bad}),
        lambda: deltaic.sql("SELECT m FROM d", tables={"d": bad}).to_arrow(),
    ):
        with pytest.raises((SchemaMismatchError, InvalidArgumentError), match="comes twice"):
            attempt()
    for expression in (
        "map('a', 1, 'a', 2)",
        "map_from_arrays(array('a', 'a'), array(1, 2))",
        "map_concat(m, m)",
    ):
        with pytest.raises(InvalidArgumentError, match="DUPLICATED_MAP_KEY"):
            table.update({"m": expression}, "m IS NOT NULL")
    assert contents(table) == before


def test_commands_that_do_not_read_them_copy_them(foreign: DeltaTable) -> None:
    expected = contents(foreign)
    assert expected[10]["m"] == TWICE
    assert expected[10]["n"]["l"][0] == [(1, TWICE)]

    def check() -> None:
        assert contents(foreign) == expected

    foreign.update({"v": "v + 1"}, "v = 0")
    for row in (0, 10):
        expected[row]["v"] = 1
    check()
    foreign.update({"v": "7", "p": "upper(p)"}, "upper(p) = 'X'")
    for row in (0, 10):
        expected[row] |= {"v": 7, "p": "X"}
    check()
    source = pa.table({"id": [10, 11, 0], "w": pa.array([3, 4, 5], pa.int32())})
    foreign.merge(source, "t.id = s.id").when_matched_update({"v": "s.w"}).execute()
    for row, value in ((10, 3), (11, 4), (0, 5)):
        expected[row]["v"] = value
    check()
    clauses = foreign.merge(source, "t.id = s.id").when_matched_update({"v": "s.w + t.v"}, "s.w = 3")
    clauses.when_matched_update({"p": "'q'"}).when_not_matched_by_source_update({"v": "-1"}).execute()
    expected[10]["v"] = 6
    expected[11]["p"] = expected[0]["p"] = "q"
    expected[1]["v"] = -1
    check()
    assert len(foreign.scan(where="length(p) = 1 AND v % 2 = 0").to_arrow()) == 2
    deltaic.write(foreign, rows(20, [("z", 1)], []), mode="overwrite", where="length(p) > 9 OR id >= 20")
    expected |= {row["id"]: row for row in rows(20, [("z", 1)], []).to_pylist()}
    check()
    foreign.optimize.compact()
    foreign.optimize.z_order(["v", "n.x"])
    check()
    foreign.delete("upper(p) = 'Y'")
    del expected[1], expected[21]
    check()


def test_a_query_that_only_copies_them_passes_them_on(foreign: DeltaTable) -> None:
    assert deltaic.sql("SELECT m FROM t", tables={"t": foreign}).to_arrow() == foreign.scan(["m"]).to_arrow()


def test_expressions_that_read_them_fail_by_name(foreign: DeltaTable) -> None:
    for attempt in (
        lambda: foreign.update({"v": "m['a']"}, "upper(p) = 'X'"),
        lambda: foreign.scan(where="cardinality(m) = 2").to_arrow(),
        lambda: deltaic.sql("SELECT m['a'] AS v FROM t", tables={"t": foreign}).to_arrow(),
    ):
        with pytest.raises(InvalidArgumentError) as caught:
            attempt()
        assert getattr(caught.value, "condition", None) == "DUPLICATED_MAP_KEY"
        assert str(caught.value) == "[DUPLICATED_MAP_KEY] a map has one key twice"
