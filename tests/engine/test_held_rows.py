"""Held rows in memory: what is computed without a query is what DuckDB computes, and all else goes to DuckDB."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from text_plans import filtered, grouped, projected

from deltaic.engine.duckdb import held_rows
from deltaic.engine.duckdb.engine import LocalEngine
from deltaic.plan.nodes import Data, Plan

ENGINE = LocalEngine()
ROWS = pa.table(
    {
        "n": pa.array([1, 2, 2, None, 5], pa.int32()),
        "l": pa.array([10, None, 30, 30, 2**40], pa.int64()),
        "text": ["a", "b", None, "b", "a"],
        "real": [1.0, float("nan"), float("nan"), -0.0, 0.0],
        "day": [date(2020, 1, 1), None, date(2020, 1, 1), date(1, 1, 1), None],
        "money": pa.array([Decimal("1.50"), None, Decimal("1.50"), Decimal("0.00"), None], pa.decimal128(10, 2)),
        "pair": [{"x": 1}, None, {"x": 2}, {"x": None}, {"x": 5}],
        "list": [[1], [], None, [None], [2, 3]],
        "map": pa.array([[("k", 1)], [], None, [("a", None)], []], pa.map_(pa.string(), pa.int64())),
    }
)
COUNT = (("rows", "count(*)"),)


def held(data: Any, limit: int, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(held_rows, "HELD_BYTES", limit)
    return ENGINE.hold(ENGINE.run(ENGINE.source(data, "s")), "s")


def every_row(plan: Plan) -> list[str]:
    """As text: NaN is not equal to itself."""
    table = ENGINE.to_arrow(ENGINE.run(plan)).read_all()
    return sorted(repr(tuple(row.values())) for row in table.to_pylist())


def without_query(rows: Data) -> dict[str, Plan]:
    """Plans that need no query of DuckDB where the rows are in memory."""
    return {
        "whole": rows,
        "in": filtered(rows, "n IN (2, 5)"),
        "not null": filtered(rows, "`s`.`text` IS NOT NULL"),
        "both": filtered(rows, "N in (1, 2) AND (S.L IS NOT NULL)"),
        "none": filtered(rows, "n IN (9)"),
        "renamed": projected(filtered(rows, "l IN (30)"), (("b", "s.text"), ("a", "(`n`\n)"), ("m", "map")), "p"),
        "twice": filtered(projected(rows, (("z", "n"),), "p"), "p.z IS NOT NULL"),
        "all counted": grouped(rows, (), COUNT),
        "none counted": grouped(filtered(rows, "n IN (9)"), (), COUNT),
        "no groups": grouped(filtered(rows, "n IN (9)"), (("n", "n"),), COUNT),
        **{f"counted by {name}": grouped(rows, (("key", name),), COUNT) for name in ("n", "l", "text", "day", "money")},
    }


def by_query(rows: Data) -> dict[str, Plan]:
    """Plans that are no copies and counts: a short cut for them would be a second evaluator."""
    return {
        "computed": projected(rows, (("m", "n + 1"),), "p"),
        "compared": filtered(rows, "n = 2"),
        "not in": filtered(rows, "n NOT IN (2)"),
        "in reals": filtered(rows, "real IN (0, 1)"),
        "in with null": filtered(rows, "n IN (2, NULL)"),
        "or": filtered(rows, "n IN (2) OR l IN (10)"),
        "field": projected(rows, (("x", "s.pair.x"),), "p"),
        "counted by reals": grouped(rows, (("key", "real"),), COUNT),
        "smallest": grouped(rows, (), (("low", "min(n)"),)),
        "two keys": grouped(rows, (("a", "n"), ("b", "text")), COUNT),
    }


@pytest.mark.parametrize("few", [True, False])
def test_rows_in_memory_and_in_a_table_are_the_same(few: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    with held(ROWS, held_rows.HELD_BYTES, monkeypatch) as memory, held(ROWS, -1, monkeypatch) as table:
        assert isinstance(table.handle, str)
        plans = without_query if few else by_query
        for name, plan in plans(memory).items():
            relation, expected = ENGINE.run(plan), ENGINE.run(plans(table)[name])
            assert (relation.held is not None) is few, name
            assert relation.schema == expected.schema, name
            assert every_row(plan) == every_row(plans(table)[name]), name


def test_an_unknown_column_is_the_engines_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with held(ROWS, held_rows.HELD_BYTES, monkeypatch) as memory, pytest.raises(Exception, match="no column nope"):
        ENGINE.run(filtered(memory, "nope IS NOT NULL"))


def test_rows_beyond_the_limit_go_to_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the limit is passed in the middle of the batches, of which none is lost or comes twice."""
    batches = [pa.record_batch({"n": list(range(start, start + 100))}) for start in range(0, 1000, 100)]
    for limit, in_memory in ((10_000, True), (2_000, False), (0, False)):
        with held(iter(batches), limit, monkeypatch) as rows:
            assert isinstance(rows.handle, str) is not in_memory
            assert every_row(rows) == sorted(repr((number,)) for number in range(1000))


def test_an_error_behind_the_limit_has_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"n": [1, 2]})
        yield pa.record_batch({"n": [3, 4]})
        raise LookupError("the third batch is missing")

    for limit in (held_rows.HELD_BYTES, 0):
        with pytest.raises(LookupError, match="third batch"), held(failing(), limit, monkeypatch):
            pass
