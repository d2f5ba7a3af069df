"""Filters from the keys of a small table: a query has the same rows with and without them, and reads less of
the large table with them."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltaic
from deltaic.engine.duckdb import join_filters

pytestmark = pytest.mark.usefixtures("arrow_sources")

ROWS = 120_000
DAYS = 1000


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, deltaic.DeltaTable]:
    folder: Path = tmp_path_factory.mktemp("stars")
    first = dt.date(2020, 1, 1)
    sales = pa.table({
        "sold": pa.array([None if row % 997 == 0 else row * DAYS // ROWS for row in range(ROWS)], pa.int32()),
        "day": [first + dt.timedelta(row % 500) for row in range(ROWS)],
        "item": [row * 7 % 5000 for row in range(ROWS)],
        "place": [f"p{row % 40}" for row in range(ROWS)],
        "price": [row % 100 for row in range(ROWS)],
    })  # fmt: skip
    days = pa.table({
        "d_sk": pa.array([None if day == 3 else day for day in range(DAYS)], pa.int32()),
        "d_date": [first + dt.timedelta(day) for day in range(DAYS)],
        "d_year": [2020 + day // 365 for day in range(DAYS)],
        "d_moy": [day // 30 % 12 + 1 for day in range(DAYS)],
    })  # fmt: skip
    items = pa.table({"i_item": list(range(5000)), "i_class": [item % 50 for item in range(5000)]})
    places = pa.table(
        {"p_name": [f"p{place}" for place in range(40)], "p_region": [place % 8 for place in range(40)]}
    )
    given = {"sales": sales, "days": days, "items": items, "places": places}
    return {name: deltaic.write(str(folder / name), rows) for name, rows in given.items()}


QUERIES = {
    "a range of keys": (
        "SELECT count(*), sum(price) FROM sales, days WHERE sold = d_sk AND d_year = 2021 AND d_moy = 3"
    ),
    "keys that are a list": (
        "SELECT count(*), sum(price) FROM sales JOIN items ON item = i_item WHERE i_class = 7"
    ),
    "dates": (
        "SELECT count(*), sum(price) FROM sales, days WHERE day = d_date AND d_moy = 2 AND d_year = 2020"
    ),
    "texts": (
        "SELECT p_region, count(*) FROM sales JOIN places ON place = p_name WHERE p_region IN (2, 5) GROUP BY"
        " ALL ORDER BY 1"
    ),
    "both": (
        "SELECT count(*) FROM sales, days, items WHERE sold = d_sk AND item = i_item AND d_year = 2022 AND"
        " i_class < 3"
    ),
    "no key": "SELECT count(*), sum(price) FROM sales, days WHERE sold = d_sk AND d_year = 1999",
    "kept rows of an outer join": (
        "SELECT count(*), count(d_sk) FROM sales LEFT JOIN days ON sold = d_sk AND d_year = 2021"
    ),
    "added rows of an outer join": (
        "SELECT count(*), count(price) FROM days LEFT JOIN sales ON sold = d_sk WHERE d_year = 2021"
    ),
    "an outer join that WHERE narrows": (
        "SELECT count(*), sum(price) FROM items LEFT JOIN sales ON item = i_item, days "
        "WHERE sold = d_sk AND d_year = 2021"
    ),
    "full": (
        "SELECT count(*), count(sold), count(d_sk) FROM sales FULL JOIN days ON sold = d_sk WHERE"
        " coalesce(d_year, 2021) = 2021"
    ),
    "NOT EXISTS": (
        "SELECT count(*) FROM items WHERE NOT EXISTS "
        "(SELECT * FROM sales, days WHERE item = i_item AND sold = d_sk AND d_year = 2022 AND d_moy = 9)"
    ),
    "NOT IN": (
        "SELECT count(*) FROM sales WHERE sold NOT IN (SELECT d_sk FROM days WHERE d_year = 2021 AND d_sk IS"
        " NOT NULL)"
    ),
    "one of two conditions": (
        "SELECT count(*) FROM sales, days WHERE (sold = d_sk OR price = 5) AND d_year = 2022 AND d_moy = 9"
    ),
    "a name of WITH for two": (
        "WITH s AS (SELECT d_moy, item, sum(price) AS total FROM sales, days WHERE sold = d_sk AND d_year ="
        " 2021 GROUP BY d_moy, item) SELECT count(*), sum(a.total - b.total) FROM s a, s b WHERE a.item ="
        " b.item AND a.d_moy = 1 AND b.d_moy = 2"
    ),
    "one table twice": (
        "SELECT count(*) FROM sales a, sales b, days WHERE a.sold = d_sk AND b.sold = a.sold AND a.item ="
        " b.item AND d_moy = 4 AND d_year = 2020"
    ),
    "a table of days twice": (
        "SELECT count(*) FROM sales, days a, days b WHERE sold = a.d_sk AND day = b.d_date "
        "AND a.d_year = 2021 AND b.d_moy = 1"
    ),
    "some place reads the table without the key": (
        "SELECT count(*), sum(b.price) FROM sales a, sales b, days WHERE a.sold = d_sk "
        "AND b.item = a.item AND a.item < 20 AND d_moy = 4 AND d_year = 2020"
    ),
    "a LIMIT below": (
        "FROM sales |> ORDER BY item, price LIMIT 9 |> JOIN days ON sold = d_sk |> WHERE d_year = 2021 AND"
        " d_moy = 3 |> AGGREGATE count(*) AS n"
    ),
    "rows counted below": (
        "FROM sales |> EXTEND row_number() OVER (ORDER BY item, price, sold) AS n |> JOIN days ON sold = d_sk"
        " |> WHERE d_year = 2021 AND d_moy = 3 |> AGGREGATE sum(n) AS total"
    ),
    "a window below": (
        "SELECT sum(n) FROM (SELECT sold, row_number() OVER (ORDER BY item, price, sold) AS n FROM sales),"
        " days WHERE sold = d_sk AND d_year = 2021 AND d_moy = 3"
    ),
    "a sum of all rows below": (
        "SELECT count(*) FROM sales, days WHERE sold = d_sk AND d_year = 2021 "
        "AND price > (SELECT avg(price) FROM sales)"
    ),
    "a sum for each row around": (
        "SELECT count(*), sum(t) FROM (SELECT (SELECT sum(price) FROM sales WHERE sold = d_sk) AS t FROM days"
        " WHERE d_year = 2021 AND d_moy = 3)"
    ),
    "a count for each row around": (
        "SELECT d_sk, (SELECT count(*) FROM sales s WHERE s.sold = d_sk AND s.price < 5) AS n FROM days "
        "WHERE d_moy = 3 AND d_year = 2021 ORDER BY 1"
    ),
    "EXISTS": (
        "SELECT count(*), sum(d_sk) FROM days WHERE d_year = 2021 AND EXISTS (SELECT 1 FROM sales WHERE sold"
        " = d_sk AND price = 7)"
    ),
    "the first row for each row around": (
        "SELECT sum(p) FROM (SELECT (SELECT max(price) FROM (SELECT price FROM sales WHERE sold = d_sk "
        "ORDER BY price, item LIMIT 3)) AS p FROM days WHERE d_year = 2022 AND d_moy = 1)"
    ),
    "rows around of an outer join": (
        "SELECT count(*), sum(n) FROM (SELECT (SELECT count(*) FROM sales WHERE item = i_item) AS n "
        "FROM places LEFT JOIN items ON p_region = i_class AND i_class = 3)"
    ),
    "NOT EXISTS of rows around": (
        "SELECT count(*), sum(d_sk) FROM days WHERE d_year = 2021 AND "
        "NOT EXISTS (SELECT 1 FROM sales WHERE sold = d_sk AND price = 7)"
    ),
    "two queries around": (
        "SELECT count(*) FROM days a WHERE d_year = 2021 AND d_moy = 4 AND EXISTS (SELECT 1 FROM items WHERE"
        " i_class = 9 AND EXISTS (SELECT 1 FROM sales WHERE sold = a.d_sk AND item = i_item))"
    ),
    "IN (query)": (
        "SELECT count(*), sum(price) FROM sales WHERE sold IN (SELECT d_sk FROM days WHERE d_year = 2021 AND"
        " d_moy = 5)"
    ),
    "IN (groups)": (
        "SELECT count(*), sum(price) FROM sales WHERE price < 50 AND sold IN (SELECT d_sk FROM days WHERE"
        " d_year = 2021 AND d_moy = 5 GROUP BY d_sk HAVING count(*) = 1)"
    ),
    "IN (some rows)": (
        "SELECT count(*), sum(price) FROM sales WHERE sold IN (SELECT d_sk FROM days WHERE d_year = 2021 "
        "ORDER BY d_sk LIMIT 3)"
    ),
    "IN (UNION)": (
        "SELECT count(*), sum(price) FROM sales WHERE sold IN (SELECT d_sk FROM days WHERE d_year = 2021 AND"
        " d_moy = 5 UNION SELECT i_item FROM items WHERE i_class = 3)"
    ),
    "IN or something else": (
        "SELECT count(*), sum(price) FROM sales WHERE sold IN (SELECT d_sk FROM days WHERE d_year = 2021) OR"
        " price = 3"
    ),
    "IN of added rows": (
        "SELECT count(*), count(d_sk) FROM items LEFT JOIN days ON i_item = d_sk AND d_sk IN (SELECT p_region"
        " FROM places WHERE p_name < 'p2')"
    ),
    "IN of kept rows": (
        "SELECT count(*), count(p_name) FROM sales LEFT JOIN places ON place = p_name AND sold IN (SELECT"
        " d_sk FROM days WHERE d_year = 2021 AND d_moy = 5)"
    ),
    "IN of another type": (
        "SELECT count(*), sum(price) FROM sales WHERE sold IN (SELECT i_item FROM items WHERE i_class = 3)"
    ),
    "IN of values computed": (
        "SELECT count(*) FROM sales WHERE sold IN (SELECT d_sk + 1 FROM days WHERE d_year = 2021 AND d_moy"
        " = 5)"
    ),
    "keys of keys": (
        "SELECT count(*), sum(price) FROM sales, days a, days b WHERE sold = b.d_sk AND b.d_date = a.d_date"
        " AND a.d_sk < 90"
    ),
}


def answer(text: str, tables: dict[str, deltaic.DeltaTable]) -> Any:
    return deltaic.sql(text, tables=tables).to_arrow().to_pylist()


@pytest.mark.parametrize("text", QUERIES.values(), ids=QUERIES.keys())
def test_the_same_rows_without_filters(
    text: str, tables: dict[str, deltaic.DeltaTable], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = answer(text, tables)
    monkeypatch.setattr(join_filters, "push_keys", lambda *given: None)
    assert found == answer(text, tables)


def rows_of(text: str, tables: dict[str, deltaic.DeltaTable], table: str = "sales") -> int:
    report: Any = deltaic.sql(text, tables=tables).explain()
    return int(report.scans[table].rows)


def test_the_large_table_is_read_less(tables: dict[str, deltaic.DeltaTable]) -> None:
    joins = ("a range of keys", "keys that are a list", "dates", "texts", "no key", "a name of WITH for two")
    for name in (
        *joins,
        "EXISTS",
        "two queries around",
        "a sum for each row around",
        "NOT EXISTS of rows around",
        "IN (query)",
    ):
        assert rows_of(QUERIES[name], tables) < ROWS // 2, name
    for name in (
        "kept rows of an outer join",
        "one of two conditions",
        "IN or something else",
        "IN of kept rows",
        "NOT IN",
    ):
        assert rows_of(QUERIES[name], tables) == ROWS, name


def test_keys_go_on(tables: dict[str, deltaic.DeltaTable], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(join_filters, "FEWEST_FILTERED", DAYS // 2)
    found = answer(QUERIES["keys of keys"], tables)
    assert rows_of(QUERIES["keys of keys"], tables) < ROWS // 2
    monkeypatch.setattr(join_filters, "push_keys", lambda *given: None)
    assert found == answer(QUERIES["keys of keys"], tables)


def test_a_sample_is_taken_of_all_rows(tables: dict[str, deltaic.DeltaTable]) -> None:
    where = "d_year = 2021 AND d_moy = 3"
    for text in (
        f"SELECT count(*) FROM sales TABLESAMPLE (100 PERCENT), days WHERE sold = d_sk AND {where}",
        f"FROM days |> JOIN sales TABLESAMPLE (100 PERCENT) ON sold = d_sk |> WHERE {where}",
        f"FROM sales |> TABLESAMPLE (100 PERCENT) |> JOIN days ON sold = d_sk |> WHERE {where}",
    ):
        assert rows_of(text, tables) == ROWS, text
