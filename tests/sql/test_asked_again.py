"""A repeated query uses its cached translation and the filters of its first plan: its results are those of a
query that runs for the first time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltaic
from deltaic.engine.duckdb import engine
from deltaic.engine.duckdb.sources import ScanSource
from deltaic.errors import DeltaError
from deltaic.spark_sql.parsing import parse_statement
from deltaic.spark_sql.query import queries
from deltaic.spark_sql.query.tables import mentioned_names

JOIN = "SELECT k, sum(v) AS total FROM facts JOIN names ON k = n WHERE g = 1 AND v > 2 GROUP BY k ORDER BY k"


@pytest.fixture
def tables(tmp_path: Path) -> dict[str, deltaic.DeltaTable]:
    facts = pa.table({"k": [row % 10 for row in range(100)], "v": list(range(100)), "other": ["x"] * 100})
    names = pa.table({"n": list(range(10)), "g": [row % 3 for row in range(10)]})
    return {
        "facts": deltaic.write(tmp_path / "facts", facts),
        "names": deltaic.write(tmp_path / "names", names),
    }


def answer(text: str, tables: dict[str, deltaic.DeltaTable]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = deltaic.sql(text, tables=tables).to_arrow().to_pylist()
    return rows


@pytest.fixture
def translations(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """A note of each translation."""
    made: list[Any] = []
    translate = queries.translate_query

    def counted(*given: Any, **named: Any) -> Any:
        made.append(given)
        return translate(*given, **named)

    monkeypatch.setattr(queries, "translate_query", counted)
    return made


def test_the_rows_are_those_of_the_version_at_hand(
    tables: dict[str, deltaic.DeltaTable], translations: list[Any]
) -> None:
    text = JOIN + " -- of this test"
    first = answer(text, tables)
    assert answer(text, tables) == first
    tables = {
        **tables,
        "facts": deltaic.write(
            tables["facts"].location,
            pa.table({"k": [1, 1, 4], "v": [1000, 2, 1], "other": ["y"] * 3}),
            mode="append",
        ),
    }
    changed = [row if row["k"] != 1 else {"k": 1, "total": row["total"] + 1000} for row in first]
    assert answer(text, tables) == changed
    assert len(translations) == 1


def test_other_columns_are_translated_anew(
    tables: dict[str, deltaic.DeltaTable], translations: list[Any]
) -> None:
    text = "SELECT * FROM names WHERE n = 3 -- of this test"
    assert answer(text, tables) == [{"n": 3, "g": 0}]
    deltaic.sql("ALTER TABLE names ADD COLUMN (more STRING)", tables=tables)
    assert answer(text, {"names": deltaic.DeltaTable(tables["names"].location)}) == [
        {"n": 3, "g": 0, "more": None}
    ]
    other = deltaic.write(
        Path(tables["names"].location).parent / "texts", pa.table({"n": ["3", "4"], "g": ["a", "b"]})
    )
    assert answer(text, {"names": other}) == [{"n": "3", "g": "a"}]
    assert len(translations) == 3


def test_the_time_zone_belongs_to_the_query(tables: dict[str, deltaic.DeltaTable]) -> None:
    text = "SELECT hour(TIMESTAMP '2024-01-01 12:00:00Z') AS h FROM names WHERE n = 0"
    assert answer(text, tables) == [{"h": 12}]
    with deltaic.configure(time_zone="Asia/Tokyo"):
        assert answer(text, tables) == [{"h": 21}]
    assert answer(text, tables) == [{"h": 12}]


@pytest.mark.usefixtures("arrow_sources")
@pytest.mark.parametrize(
    ("condition", "learned"), [("v > 2", True), ("v > 2 AND current_date() > DATE '2024-01-01'", False)]
)
def test_filters_of_the_first_plan_serve_the_next_run(
    tables: dict[str, deltaic.DeltaTable], monkeypatch: pytest.MonkeyPatch, condition: str, learned: bool
) -> None:
    monkeypatch.setattr(engine, "PLANNED_TWICE", 0)
    given: list[tuple[str, ...] | None] = []
    keep = ScanSource.keep_filters

    def noted(source: ScanSource, learned: tuple[str, ...] | None = None) -> tuple[str, ...]:
        given.append(learned)
        return keep(source, learned)

    monkeypatch.setattr(ScanSource, "keep_filters", noted)
    text = JOIN.replace("v > 2", condition) + f" -- {condition}"
    first = answer(text, tables)
    assert given == [None, None]
    tables = {
        **tables,
        "facts": deltaic.write(
            tables["facts"].location, pa.table({"k": [1], "v": [5000], "other": ["y"]}), mode="append"
        ),
    }
    again = answer(text, tables)
    assert [row["total"] for row in again] == [row["total"] + 5000 * (row["k"] == 1) for row in first]
    assert [filters is not None for filters in given[2:]] == [learned, learned]
    assert not learned or any("v" in text for filters in given[2:] for text in filters or ())


def test_errors_name_all_columns(tables: dict[str, deltaic.DeltaTable]) -> None:
    with pytest.raises(DeltaError) as raised:
        deltaic.sql("SELECT k, missing FROM facts", tables=tables)
    assert "other" in str(raised.value)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("SELECT a.x + y FROM t a WHERE z.inner > 1", {"a", "x", "y", "t", "z", "inner"}),
        ("SELECT count(*) FROM t", {"t"}),
        ("SELECT a FROM t WHERE EXISTS (SELECT * FROM u WHERE u.b = t.a)", {"a", "t", "u", "b"}),
        ("SELECT a FROM t JOIN u USING (k)", {"a", "t", "u", "k"}),
        ("SELECT * FROM t", None),
        ("SELECT t.* FROM t", None),
        ("SELECT count(DISTINCT *) FROM t", None),
        ("SELECT a FROM t WHERE b IN (SELECT * FROM u)", None),
        ("SELECT a FROM t NATURAL JOIN u", None),
        ("SELECT * FROM t PIVOT (sum(a) FOR b IN (1, 2))", None),
        ("SELECT a FROM t UNPIVOT (v FOR n IN (b, c))", None),
        ("SELECT a FROM t |> WHERE a > 1", None),
        ("FROM t |> WHERE a > 1", None),
        ("SELECT x FROM (FROM t |> WHERE a > 1)", None),
    ],
)
def test_columns_that_a_query_mentions(text: str, names: set[str] | None) -> None:
    found = mentioned_names(parse_statement(text))
    assert (found is None) if names is None else (found is not None and names <= found)
