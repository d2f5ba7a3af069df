"""Random queries within queries: they have the same rows with filters from the keys of other tables and
without them.

`DELTAIC_QUERY_EXAMPLES=20000` makes a long run; the number of a query reproduces it.
"""

from __future__ import annotations

import os
import random
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltaic
from deltaic.engine.duckdb import engine, join_filters, sources

EXAMPLES = int(os.environ.get("DELTAIC_QUERY_EXAMPLES", "150"))
ROWS = {"a": 200, "b": 120, "c": 60}


class Walk:
    """One random query over tables with the columns k (may be null), j, f and x."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.numbers = count()

    def query(self) -> str:
        source, aliases = self.source()
        sums = ", ".join(f"sum({alias}.x), count({alias}.k)" for alias in aliases)
        return f"SELECT count(*), {sums} FROM {source}{self.where(aliases, [], 0)}"

    def source(self) -> tuple[str, list[str]]:
        draw, one, other = self.draw, f"t{next(self.numbers)}", f"t{next(self.numbers)}"
        first = f"{draw.choice('abc')} {one}"
        if draw.random() < 0.6:
            return first, [one]
        kind = draw.choice(["", "LEFT", "RIGHT", "FULL", "LEFT SEMI", "LEFT ANTI"])
        conditions = [
            f"{self.key(one)} = {self.key(other)}",
            *(self.filter(alias) for alias in (one, other) if draw.random() < 0.4),
        ]
        text = f"{first} {kind} JOIN {draw.choice('abc')} {other} ON {' AND '.join(conditions)}"
        return text, [one] if kind in ("LEFT SEMI", "LEFT ANTI") else [one, other]

    def where(self, own: list[str], around: list[str], depth: int) -> str:
        draw = self.draw
        conditions = [self.condition(own, around, depth) for _ in range(draw.randrange(4))]
        if around and draw.random() < 0.6:
            conditions.append(f"{self.key(own[0])} = {self.key(draw.choice(around))}")
        return f" WHERE {' AND '.join(conditions)}" if conditions else ""

    def condition(self, own: list[str], around: list[str], depth: int) -> str:
        draw, chance = self.draw, self.draw.random()
        alias = draw.choice(own)
        if chance < 0.3 or depth > 2:
            return self.filter(alias)
        if chance < 0.4 and around:
            return f"{self.key(alias)} = {self.key(draw.choice(around))}"
        negated = "NOT " if draw.random() < 0.3 else ""
        if chance < 0.6:
            return f"{self.key(alias)} {negated}IN ({self.column([*own, *around], depth + 1)})"
        if chance < 0.8:
            return f"{negated}EXISTS ({self.within('1', [*own, *around], depth + 1)})"
        if chance < 0.9:
            aggregate = f"{draw.choice(['max', 'min', 'count', 'sum'])}({draw.choice('kjx')})"
            return (
                f"{self.key(alias)} {draw.choice(['<', '>=', '='])}"
                f" ({self.within(aggregate, [*own, *around], depth + 1)})"
            )
        parts = [self.condition(own, around, depth + 1) for _ in range(2)]
        return f"({' OR '.join(parts)})" if chance < 0.95 else f"NOT ({parts[0]})"

    def within(self, what: str, around: list[str], depth: int, end: str = "") -> str:
        source, own = self.source()
        alias = self.draw.choice(own)
        shown = (
            what
            if what == "1"
            else f"{what[:-2]}{alias}.{what[-2:]}"
            if what.endswith(")")
            else f"{alias}.{what}"
        )
        return f"SELECT {shown} FROM {source}{self.where(own, around, depth)}{end.format(alias)}"

    def column(self, around: list[str], depth: int) -> str:
        end = self.draw.choice(["", "", "", " GROUP BY {0}.k", " ORDER BY {0}.k, {0}.x LIMIT 5"])
        return self.within("k" if end else self.draw.choice("kj"), around, depth, end)

    def key(self, alias: str) -> str:
        return f"{alias}.{self.draw.choice('kj')}"

    def filter(self, alias: str) -> str:
        return f"{alias}.f {self.draw.choice(['=', '<', '>', '<='])} {self.draw.randrange(10)}"


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, deltaic.DeltaTable]:
    draw, folder = random.Random(5), tmp_path_factory.mktemp("keys")

    def rows(number: int) -> pa.Table:
        k = [None if draw.random() < 0.1 else draw.randrange(30) for _ in range(number)]
        f = [None if draw.random() < 0.05 else draw.randrange(10) for _ in range(number)]
        return pa.table(
            {"k": k, "j": [draw.randrange(30) for _ in range(number)], "f": f, "x": range(number)}
        )

    return {name: deltaic.write(Path(folder, name), rows(number)) for name, number in ROWS.items()}


@pytest.mark.usefixtures("arrow_sources")
def test_the_same_answer_without_filters(
    tables: dict[str, deltaic.DeltaTable], monkeypatch: pytest.MonkeyPatch
) -> None:
    filters: list[Any] = []
    push, made, among = join_filters.push_keys, sources.ScanSource.__init__, sources.ScanSource.among_keys

    def of_many_rows(self: sources.ScanSource, *args: Any, **named: Any) -> None:
        made(self, *args, **named)
        self._rows = 1_000_000  # a filter takes less time than reading, as there are few keys

    def noted(self: sources.ScanSource, *args: Any) -> Any:
        filters.append(among(self, *args))
        return filters[-1]

    monkeypatch.setattr(sources.ScanSource, "__init__", of_many_rows)
    # What DuckDB orders joins by.
    monkeypatch.setattr(sources.ScanSource, "rows", lambda self: max(ROWS.values()))
    monkeypatch.setattr(sources.ScanSource, "among_keys", noted)
    monkeypatch.setattr(engine, "PLANNED_TWICE", 0)
    monkeypatch.setattr(join_filters, "FEWEST_FILTERED", 0)
    compared = 0
    for number in range(EXAMPLES):
        text = Walk(number).query()
        filters.clear()
        monkeypatch.setattr(join_filters, "push_keys", push)
        found = deltaic.sql(text, tables=tables).to_arrow().to_pylist()
        if any(each is not None for each in filters):
            compared += 1
            monkeypatch.setattr(join_filters, "push_keys", lambda *given: None)
            assert found == deltaic.sql(text, tables=tables).to_arrow().to_pylist(), f"{number}: {text}"
    assert compared > EXAMPLES // 10
