"""Join keys that are computed and may fail: the join uses them as keys, so that each row is not first paired
with all others."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

import deltaic
from deltaic.engine.duckdb import engine
from deltaic.spark_sql.duckdb import ExpressionError

A = pa.table({"id": [1, 2, 3], "x": [1, 2, 5]})
B = pa.table({"id": [1, 2, 3], "y": pa.array([10, 5, 0], pa.int32()), "t": ["1", "2", "z"]})


def answer(text: str) -> list[tuple[object, ...]]:
    found = deltaic.sql(text, tables={"a": A, "b": B}).to_arrow()
    return sorted(tuple(row.values()) for row in found.to_pylist())


def joins(text: str) -> list[str]:
    """Returns the joins of DuckDB's plan: their conditions."""
    token = engine.PLANS.set(plans := [])
    try:
        answer(text)
    finally:
        engine.PLANS.reset(token)
    found, pending = [], list(plans)
    while pending:
        node = pending.pop()
        if "JOIN" in node["name"] or "PRODUCT" in node["name"]:
            found.append(f"{node['name']} {json.dumps(node.get('extra_info'))}")
        pending += node.get("children", ())
    return found


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("SELECT a.id, b.id AS i FROM a, b WHERE a.id < 9 AND b.id < 9 AND a.x = b.y - 4", [(1, 2)]),
        ("SELECT a.id, b.id AS i FROM a JOIN b ON a.id < b.id AND a.x = b.y - 4", [(1, 2)]),
        ("SELECT a.id, b.id AS i FROM a, b WHERE a.id = b.id AND a.x <=> b.y - 9", [(1, 1)]),
    ],
)
def test_an_equality_of_two_tables_is_a_key(text, rows):
    assert answer(text) == rows
    (join,) = joins(text)
    assert "HASH_JOIN" in join
    assert "CASE" not in join
    assert "subtract" in join


def test_what_stands_on_one_table_comes_before_the_key():
    for text in (
        "SELECT a.id FROM a, b WHERE b.y <> 0 AND a.x = 10 div b.y",
        "SELECT a.id FROM a, b WHERE a.x = 10 div b.y AND b.y <> 0",
        "SELECT a.id FROM a JOIN b ON b.t <> 'z' AND a.x = CAST(b.t AS INT)",
        "SELECT a.id FROM a, (SELECT * FROM b WHERE y <> 0) AS b WHERE a.x = 10 div b.y",
    ):
        assert answer(text) == [(1,), (2,)]


def test_a_key_that_fails_is_an_error_as_in_spark():
    """Spark computes a join's keys for all rows that come to the join, not only where another key is
    equal."""
    with pytest.raises(ExpressionError, match="DIVIDE_BY_ZERO"):
        answer("SELECT a.id FROM a, b WHERE a.id + 1 = b.id + 9 AND a.x = 10 div b.y")


def test_other_equalities_keep_their_guards():
    """Outer joins, LATERAL VIEW and GROUP BY make rows before the condition is evaluated: the first operand
    decides first."""
    assert answer(
        "SELECT a.id FROM a LEFT JOIN b ON a.id = b.id WHERE coalesce(b.y, 1) <> 0 AND a.x = 10 div b.y"
    ) == [(1,), (2,)]
    assert answer(
        "SELECT a.id, v FROM a LATERAL VIEW explode(array(0, x)) e AS v WHERE v <> 0 AND a.x = 25 div v"
    ) == [(3, 5)]
    assert answer(
        "SELECT a.id FROM a JOIN b ON a.id = b.id GROUP BY a.id HAVING min(b.y) <> 0 AND min(a.x) = 10 div"
        " min(b.y)"
    ) == [
        (1,),
        (2,),
    ]
