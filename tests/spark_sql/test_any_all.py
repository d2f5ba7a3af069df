"""Comparisons with ANY and ALL of a query, which Spark's grammar does not have, follow the SQL standard."""

from __future__ import annotations

import operator
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltaic
from deltaic.errors import DeltaError

OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt,
    ">=": operator.ge,
}  # fmt: skip
LISTS: list[list[int | None]] = [[], [1], [1, 2], [None], [1, None], [3, None], [2, 2, 1]]


def expected(symbol: str, word: str, value: int | None, others: list[int | None]) -> bool | None:
    found = [None if value is None or other is None else OPERATORS[symbol](value, other) for other in others]
    decisive = word != "ALL"
    return decisive if decisive in found else None if None in found else not decisive


@pytest.mark.parametrize("word", ["ANY", "SOME", "ALL"])
@pytest.mark.parametrize("symbol", OPERATORS)
def test_each_value(symbol: str, word: str) -> None:
    values = [1, 2, 3, None]
    for others in LISTS:
        tables = {
            "t": pa.table({"a": pa.array(values, pa.int32())}),
            "u": pa.table({"b": pa.array(others, pa.int64())}),
        }
        wanted = {value: expected(symbol, word, value, others) for value in values}
        condition = f"a {symbol} {word} (SELECT b FROM u)"
        found = {
            row["a"]: row["r"]
            for row in deltaic.sql(f"SELECT a, {condition} AS r FROM t", tables=tables).to_pylist()
        }
        assert found == wanted
        for text, kept in ((condition, True), (f"NOT ({condition})", False)):
            rows = deltaic.sql(f"SELECT a FROM t WHERE {text}", tables=tables).to_pylist()
            assert {row["a"] for row in rows} == {value for value in values if wanted[value] is kept}


def test_columns_of_the_outer_query_and_changes(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path / "t", {"k": [1, 2, 3], "a": [1.0, float("nan"), -0.0]})
    tables: dict[str, Any] = {"t": table, "u": pa.table({"b": [1, 2, 3], "k": [1, 1, 2]})}
    query = "SELECT k FROM t WHERE a >= ALL (SELECT b FROM u WHERE u.k = t.k) ORDER BY k"
    assert deltaic.sql(query, tables=tables).to_pylist() == [{"k": 2}, {"k": 3}]
    deltaic.sql("DELETE FROM t WHERE k <= ANY (SELECT k FROM u)", tables=tables)
    assert deltaic.DeltaTable(tmp_path / "t").scan(["k"]).to_pylist() == [{"k": 3}]


@pytest.mark.parametrize(
    "text", ["1 > ANY (SELECT 1, 2)", "'a' > ANY (SELECT array(1))", "1 <=> ANY (SELECT 1)", "1 > ANY (1, 2)"]
)
def test_what_is_refused(text: str) -> None:
    with pytest.raises(DeltaError):
        deltaic.sql(f"SELECT {text}").to_arrow()
