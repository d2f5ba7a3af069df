"""Held rows: a few are kept in memory, more are moved to a table of DuckDB, and none is lost in the move."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from deltaic.engine.duckdb import held_rows
from deltaic.engine.duckdb.engine import LocalEngine
from deltaic.plan.nodes import Plan

ENGINE = LocalEngine()


def held(data: Any, limit: int, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(held_rows, "HELD_BYTES", limit)
    return ENGINE.hold(ENGINE.run(ENGINE.source(data, "s")), "s")


def every_row(plan: Plan) -> list[str]:
    """As text: NaN is not equal to itself."""
    table = ENGINE.to_arrow(ENGINE.run(plan)).read_all()
    return sorted(repr(tuple(row.values())) for row in table.to_pylist())


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
