"""The number of rows of a source that DuckDB's planner gets."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import deltaic
from deltaic.engine.duckdb.engine import LocalEngine
from deltaic.engine.duckdb.registering import SAMPLED_FILES, register, rows_of
from deltaic.planning.planned import plan


def adds(*rows: tuple[int, int | None]) -> pa.Table:
    stats = [None if number is None else json.dumps({"numRecords": number}) for _, number in rows]
    return pa.table(
        {"size": pa.array([size for size, _ in rows], pa.int64()), "stats": pa.array(stats, pa.string())}
    )


def test_rows_of_files() -> None:
    assert rows_of(adds()) == 0
    assert rows_of(adds((10, 3), (20, 4))) == 7
    assert rows_of(adds((10, 3), (20, None))) == 9  # by its bytes
    assert rows_of(adds((10, None))) is None
    assert rows_of(adds((0, 5), (0, None))) is None
    assert rows_of(adds(*[(10, 2)] * (SAMPLED_FILES + 50))) == 2 * (SAMPLED_FILES + 50)


def test_rows_of_a_table(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path / "t", {"a": range(1000)})
    assert rows_of(plan(table._snapshot, LocalEngine(), None).scan(["a"]).files) == 1000


class Rows:
    """A source of rows that is not an Arrow table, so that DuckDB has no information about it."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


@pytest.mark.skipif(not hasattr(duckdb.DuckDBPyConnection, "_register_arrow_source"), reason="another DuckDB")
def test_the_smaller_side_of_a_join_is_built() -> None:
    """The right side of DuckDB's hash join is the one that it builds; the left one streams by."""
    plans = []
    for known in (True, False):
        with duckdb.connect() as connection:
            for name, rows in (("small", 1000), ("large", 100_000)):
                register(
                    connection, name, Rows(pa.table({f"{name}_key": range(rows)})), rows if known else None
                )
            for names in (("small", "large"), ("large", "small")):
                query = f"SELECT * FROM {names[0]} JOIN {names[1]} ON small_key = large_key"
                (row,) = connection.execute(f"EXPLAIN (FORMAT json) {query}").fetchall()
                plans.append(scans(json.loads(row[1])))
                assert connection.execute(f"SELECT count(*) FROM ({query})").fetchall() == [(1000,)]
    assert plans[:2] == [["large_key", "small_key"]] * 2
    assert plans[2] != plans[3]  # without them it depends on how the query is written


def scans(nodes: object) -> list[str]:
    """Returns the first projected column of each scan, from left to right."""
    found = []
    for node in nodes if isinstance(nodes, list) else [nodes]:
        projected = node.get("extra_info", {}).get("Projections")
        if not node["children"] and projected:
            found.append(projected if isinstance(projected, str) else projected[0])
        found += scans(node["children"])
    return found
