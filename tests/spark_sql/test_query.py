"""Queries for DuckDB: structure, names, types and rows; other modules test the meaning of expressions.

Expected rows follow Spark 4 with ANSI on: nulls first when ascending, sums of `bigint` in `bigint`, averages
of decimals with four more digits.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import deltaic
from deltaic.errors import InvalidArgumentError, UnsupportedFeatureError
from deltaic.protocol.schema import Schema
from deltaic.spark_sql.duckdb import failure_of, prepare
from deltaic.spark_sql.parsing import parse_statement
from deltaic.spark_sql.query.queries import translate_query

TABLES = {
    "t": Schema.from_ddl(
        "id bigint not null, part string, amount double, d decimal(10,2), s struct<a: int, b: string>"
    ),
    "n": Schema.from_ddl("part string, name string"),
}


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    connection = duckdb.connect()
    prepare(connection)
    connection.execute(
        """
        CREATE TABLE t AS
        SELECT id::BIGINT AS id, part, amount::DOUBLE AS amount, d::DECIMAL(10, 2) AS d,
            {'a': id::INTEGER, 'b': part} AS s
        FROM (VALUES (1, 'a', 1.5, 10.25), (2, 'a', NULL, 1.10), (3, 'b', -2.0, NULL), (4, NULL, 40.0, -3.33))
            AS v(id, part, amount, d)"""
    )
    connection.execute(
        "CREATE TABLE n AS SELECT * FROM (VALUES ('a', 'first'), ('b', 'second')) AS v(part, name)"
    )
    yield connection
    connection.close()


CASES: list[tuple[str, str, list[tuple[Any, ...]]]] = [
    ("SELECT id, amount FROM t WHERE amount > 0", "id bigint not null, amount double", [(1, 1.5), (4, 40.0)]),
    ("SELECT T.ID FROM t AS T WHERE t.s.a >= 3", "ID bigint not null", [(3,), (4,)]),
    ("SELECT s.b AS x FROM t ORDER BY s.a LIMIT 1", "x string", [("a",)]),
    ("SELECT part FROM t ORDER BY part", "part string", [(None,), ("a",), ("a",), ("b",)]),
    ("SELECT part FROM t ORDER BY part DESC", "part string", [("b",), ("a",), ("a",), (None,)]),
    ("SELECT id AS x FROM t ORDER BY amount + 1 DESC, x", "x bigint not null", [(4,), (1,), (3,), (2,)]),
    ("SELECT id FROM t ORDER BY 1 DESC LIMIT 2 OFFSET 1", "id bigint not null", [(3,), (2,)]),
    ("SELECT -id AS id FROM t ORDER BY id LIMIT 1", "id bigint not null", [(-4,)]),
    ("SELECT DISTINCT part FROM t ORDER BY part", "part string", [(None,), ("a",), ("b",)]),
    (
        "SELECT t.id, n.name FROM t LEFT JOIN n ON t.part = n.part ORDER BY id",
        "id bigint not null, name string",
        [(1, "first"), (2, "first"), (3, "second"), (4, None)],
    ),
    (
        "SELECT n.* FROM t RIGHT JOIN n ON t.id = 3 AND t.part = n.part ORDER BY name",
        "part string, name string",
        [("a", "first"), ("b", "second")],
    ),
    (
        "SELECT * FROM n JOIN (SELECT id, part FROM t) AS q USING (part) ORDER BY id LIMIT 1",
        "part string, name string, id bigint not null",
        [("a", "first", 1)],
    ),
    ("SELECT id FROM t LEFT ANTI JOIN n ON t.part = n.part", "id bigint not null", [(4,)]),
    (
        "SELECT id FROM t LEFT SEMI JOIN n ON t.part = n.part ORDER BY id",
        "id bigint not null",
        [(1,), (2,), (3,)],
    ),
    (
        "SELECT a.id, b.id AS other FROM t a, t b WHERE a.id = b.id + 3",
        "id bigint not null, other bigint not null",
        [(4, 1)],
    ),
    ("SELECT count(*) AS n FROM t CROSS JOIN n", "n bigint not null", [(8,)]),
    (
        "SELECT count(*), count(amount), sum(id) FROM t",
        "`count(1)` bigint not null, `count(amount)` bigint not null, `sum(id)` bigint",
        [(4, 3, 10)],
    ),
    (
        "SELECT count(1) AS n, sum(id) AS s, min(part) AS m FROM t WHERE 1 = 0",
        "n bigint not null, s bigint, m string",
        [(0, None, None)],
    ),
    (
        "SELECT sum(d) AS s, avg(d) AS a, avg(id) AS i FROM t",
        "s decimal(20,2), a decimal(14,6), i double",
        [(Decimal("8.02"), Decimal("2.673333"), 2.5)],
    ),
    ("SELECT avg(-d) AS a FROM t", "a decimal(14,6)", [(Decimal("-2.673333"),)]),
    ("SELECT avg(x) AS a FROM (VALUES (0.1), (0.2)) AS v(x)", "a decimal(5,5)", [(Decimal("0.15000"),)]),
    ("SELECT avg(x) AS a FROM (VALUES (1), (2), (2)) AS v(x)", "a double", [(5 / 3,)]),
    (
        "SELECT part, count(*) AS n FROM t GROUP BY part ORDER BY n DESC, part",
        "part string, n bigint not null",
        [("a", 2), (None, 1), ("b", 1)],
    ),
    (
        "SELECT upper(t.part) AS p, sum(id) + 1 AS s FROM t GROUP BY Upper(PART) ORDER BY p DESC",
        "p string, s bigint",
        [("B", 4), ("A", 4), (None, 5)],
    ),
    (
        "SELECT part AS p, max(id) AS m FROM t GROUP BY p HAVING m > 2 ORDER BY 2",
        "p string, m bigint",
        [("b", 3), (None, 4)],
    ),
    (
        "SELECT s.b, count(*) AS n FROM t GROUP BY s.b ORDER BY 1",
        "b string, n bigint not null",
        [(None, 1), ("a", 2), ("b", 1)],
    ),
    (
        "SELECT id % 2 AS odd, count(*) AS n FROM t GROUP BY 1 ORDER BY 1",
        "odd bigint not null, n bigint not null",
        [(0, 2), (1, 2)],
    ),
    (
        "SELECT part, count(*) AS n FROM t GROUP BY ALL ORDER BY part",
        "part string, n bigint not null",
        [(None, 1), ("a", 2), ("b", 1)],
    ),
    ("SELECT part FROM t GROUP BY part HAVING sum(id) = 3 ORDER BY part", "part string", [("a",), ("b",)]),
    (
        "SELECT part FROM t GROUP BY part ORDER BY sum(id) DESC, part",
        "part string",
        [(None,), ("a",), ("b",)],
    ),
    (
        "SELECT count(DISTINCT part) AS n, count(DISTINCT part, amount) AS m FROM t",
        "n bigint not null, m bigint not null",
        [(2, 2)],
    ),
    (
        "SELECT count(*) FILTER (WHERE id > 2) AS x, sum(id) FILTER (WHERE part = 'a') AS y FROM t",
        "x bigint not null, y bigint",
        [(2, 3)],
    ),
    ("SELECT collect_list(part) AS l FROM t WHERE part IS NULL", "l array<string> not null", [([],)]),
    (
        "SELECT count_if(id > 1) AS c, bool_and(id > 1) AS a, some(id > 3) AS s FROM t",
        "c bigint not null, a boolean, s boolean",
        [(3, False, True)],
    ),
    (
        (
            "WITH big AS (SELECT * FROM t WHERE amount > 1), x(k) AS (SELECT id FROM big) SELECT sum(k) AS s"
            " FROM x"
        ),
        "s bigint",
        [(5,)],
    ),
    ("WITH t AS (SELECT id FROM t WHERE id = 3) SELECT * FROM t", "id bigint not null", [(3,)]),
    (
        "SELECT id FROM t UNION ALL SELECT id + 10 FROM t ORDER BY id DESC LIMIT 2",
        "id bigint not null",
        [(14,), (13,)],
    ),
    (
        "SELECT 1 AS a UNION SELECT 1 UNION SELECT 2.5 ORDER BY a",
        "a decimal(11,1) not null",
        [(Decimal("1.0"),), (Decimal("2.5"),)],
    ),
    ("SELECT id FROM t EXCEPT SELECT 3 ORDER BY id", "id bigint not null", [(1,), (2,), (4,)]),
    ("SELECT id FROM t INTERSECT SELECT 3", "id bigint not null", [(3,)]),
    (
        (
            "(SELECT id FROM t ORDER BY id LIMIT 1) UNION ALL (SELECT id FROM t ORDER BY id DESC LIMIT 1)"
            " ORDER BY id"
        ),
        "id bigint not null",
        [(1,), (4,)],
    ),
    ("SELECT id FROM t WHERE id IN (SELECT max(id) FROM t)", "id bigint not null", [(4,)]),
    ("SELECT id FROM t WHERE part NOT IN (SELECT part FROM t WHERE id > 2)", "id bigint not null", []),
    ("SELECT (SELECT max(id) FROM t) AS m", "m bigint", [(4,)]),
    (
        "SELECT count(*) AS n FROM t WHERE EXISTS (SELECT 1 FROM n WHERE name = 'nobody')",
        "n bigint not null",
        [(0,)],
    ),
    ("VALUES (1, 'a'), (2, NULL)", "col1 int not null, col2 string", [(1, "a"), (2, None)]),
    ("SELECT b FROM VALUES (1, 2), (3, 4) AS v(a, b) WHERE a > 1", "b int not null", [(4,)]),
    ("SELECT 1 + 1 AS two WHERE 1 < 2", "two int not null", [(2,)]),
    # subqueries that read the query around them
    (
        "SELECT id FROM t WHERE EXISTS (SELECT 1 AS x FROM n WHERE n.part = t.part) ORDER BY id",
        "id bigint not null",
        [(1,), (2,), (3,)],
    ),
    ("SELECT id FROM t WHERE NOT EXISTS (SELECT * FROM n WHERE part = t.part)", "id bigint not null", [(4,)]),
    (
        "SELECT id FROM t WHERE 'first' IN (SELECT name FROM n WHERE n.part = t.part) ORDER BY id",
        "id bigint not null",
        [(1,), (2,)],
    ),
    (
        "SELECT id, (SELECT max(name) FROM n WHERE n.part = t.part) AS m FROM t ORDER BY id",
        "id bigint not null, m string",
        [(1, "first"), (2, "first"), (3, "second"), (4, None)],
    ),
    (
        (
            "SELECT part FROM t GROUP BY part HAVING count(*) > (SELECT count(*) FROM n WHERE n.part ="
            " t.part) ORDER BY part"
        ),
        "part string",
        [(None,), ("a",)],
    ),
    (
        "SELECT id, (id, part) IN (SELECT 1L, part FROM n) AS i FROM t ORDER BY id",
        "id bigint not null, i boolean not null",
        [(1, True), (2, False), (3, False), (4, False)],
    ),
    (
        "SELECT (id, part) IN (SELECT 4L, part FROM n) AS i FROM t WHERE id = 4",
        "i boolean not null",
        [(False,)],
    ),
    (
        "SELECT id FROM t WHERE NOT ((id, part) IN (SELECT 4L, part FROM n)) ORDER BY id",
        "id bigint not null",
        [(1,), (2,), (3,)],
    ),
    (
        "SELECT id, q.name FROM t, LATERAL (SELECT name FROM n WHERE n.part = t.part) AS q ORDER BY id",
        "id bigint not null, name string",
        [(1, "first"), (2, "first"), (3, "second")],
    ),
    # windows
    (
        (
            "SELECT id, rank() OVER (PARTITION BY part ORDER BY id DESC) AS r, sum(id) OVER w AS s, lag(id,"
            " 1, -1) OVER w AS l FROM t WINDOW w AS (ORDER BY id) ORDER BY id"
        ),
        "id bigint not null, r int not null, s bigint, l bigint not null",
        [(1, 2, 1, -1), (2, 1, 3, 1), (3, 1, 6, 2), (4, 1, 10, 3)],
    ),
    (
        (
            "SELECT part, sum(sum(id)) OVER () AS s, rank() OVER (ORDER BY sum(id) DESC) AS r FROM t GROUP BY"
            " part ORDER BY r, part"
        ),
        "part string, s bigint, r int not null",
        [(None, 10, 1), ("a", 10, 2), ("b", 10, 2)],
    ),
    (
        "SELECT id FROM t QUALIFY row_number() OVER (PARTITION BY part ORDER BY id DESC) = 1 ORDER BY id",
        "id bigint not null",
        [(2,), (3,), (4,)],
    ),
    (
        (
            "SELECT id, last_value(amount) IGNORE NULLS OVER (ORDER BY id ROWS UNBOUNDED PRECEDING) AS a FROM"
            " t ORDER BY id"
        ),
        "id bigint not null, a double",
        [(1, 1.5), (2, 1.5), (3, -2.0), (4, 40.0)],
    ),
    (
        (
            "SELECT id, avg(d) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS a FROM t ORDER"
            " BY id LIMIT 1"
        ),
        "id bigint not null, a decimal(14,6)",
        [(1, Decimal("5.675000"))],
    ),
    ("SELECT cbrt(27) AS c, cbrt(-1000) AS d", "c double not null, d double not null", [(3.0, -10.0)]),
    # grouping
    (
        "SELECT part, count(*) AS c, grouping(part) AS g FROM t GROUP BY ROLLUP (part) ORDER BY g, part",
        "part string, c bigint not null, g tinyint not null",
        [(None, 1, 0), ("a", 2, 0), ("b", 1, 0), (None, 4, 1)],
    ),
    (
        (
            "SELECT part, id % 2 AS odd, count(*) AS c, grouping_id() AS g FROM t"
            " GROUP BY part, id % 2 GROUPING SETS ((id % 2), ()) ORDER BY ALL"
        ),
        "part string, odd bigint, c bigint not null, g bigint not null",
        [(None, None, 4, 3), (None, 0, 2, 2), (None, 1, 2, 2)],
    ),
    (
        "SELECT id > 3 AS b, count(*) AS c FROM t GROUP BY CUBE (id > 3) ORDER BY ALL",
        "b boolean, c bigint not null",
        [(None, 4), (False, 3), (True, 1)],
    ),
    (
        "SELECT count(*) AS c FROM t GROUP BY GROUPING SETS (id > 3, ROLLUP (part IS NULL)) ORDER BY ALL",
        "c bigint not null",
        [(1,), (1,), (3,), (3,), (4,)],
    ),
    # joins
    (
        (
            "SELECT part, t.part AS l, n.part AS r FROM (SELECT * FROM t WHERE id > 2) t FULL JOIN n USING"
            " (part) ORDER BY 1, 2"
        ),
        "part string, l string, r string",
        [(None, None, None), ("a", None, "a"), ("b", "b", "b")],
    ),
    (
        "SELECT * FROM n NATURAL JOIN (SELECT id, part FROM t) ORDER BY id LIMIT 1",
        "part string, name string, id bigint not null",
        [("a", "first", 1)],
    ),
    # functions that make rows
    (
        (
            "SELECT n.part, x FROM n LATERAL VIEW OUTER explode(CASE WHEN part = 'a' THEN array(1, 2) END) e"
            " AS x ORDER BY 1, 2"
        ),
        "part string, x int",
        [("a", 1), ("a", 2), ("b", None)],
    ),
    ("SELECT posexplode(array('x', 'y'))", "pos int not null, col string not null", [(0, "x"), (1, "y")]),
    (
        "SELECT * FROM range(2) CROSS JOIN explode(map('k', 1)) AS m(k, v)",
        "id bigint not null, k string not null, v int not null",
        [(0, "k", 1), (1, "k", 1)],
    ),
    ("SELECT stack(2, 1, 'a', 2) AS (n, s)", "n int not null, s string", [(1, "a"), (2, None)]),
    # the rest
    ("SELECT * EXCEPT (amount, d, s) FROM t WHERE id = 1", "id bigint not null, part string", [(1, "a")]),
    (
        "SELECT id + 1 AS x, x * 2 AS y FROM t ORDER BY y DESC LIMIT 1",
        "x bigint not null, y bigint not null",
        [(5, 10)],
    ),
    (
        "SELECT 1 AS a, 2 AS b UNION ALL BY NAME SELECT 3 AS b, 4 AS a ORDER BY a",
        "a int not null, b int not null",
        [(1, 2), (4, 3)],
    ),
    ("SELECT part FROM t MINUS SELECT part FROM n", "part string", [(None,)]),
    (
        (
            "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 4) SELECT sum(n) AS s"
            " FROM r"
        ),
        "s bigint",
        [(10,)],
    ),
    (
        "SELECT * FROM (SELECT part, id FROM t) PIVOT (sum(id) FOR part IN ('a', 'b' AS bee))",
        "a bigint, bee bigint",
        [(3, 3)],
    ),
    (
        (
            "SELECT * FROM (SELECT id, amount FROM t WHERE id < 3) UNPIVOT (v FOR k IN (amount AS `x`)) ORDER"
            " BY id"
        ),
        "id bigint not null, k string not null, v double not null",
        [(1, "x", 1.5)],
    ),
    ("SELECT /*+ BROADCAST(t) */ count(*) AS n FROM t TABLESAMPLE (2 ROWS)", "n bigint not null", [(2,)]),
    ("SELECT id FROM t DISTRIBUTE BY part SORT BY id", "id bigint not null", [(1,), (2,), (3,), (4,)]),
    (
        "SELECT part FROM t GROUP BY part ORDER BY CASE WHEN part IS NULL THEN 'z' ELSE part END",
        "part string",
        [("a",), ("b",), (None,)],
    ),
]


@pytest.mark.parametrize(("text", "ddl", "rows"), CASES, ids=[text for text, _, _ in CASES])
def test_query(
    connection: duckdb.DuckDBPyConnection, text: str, ddl: str, rows: list[tuple[Any, ...]]
) -> None:
    query = translate_query(parse_statement(text), TABLES)
    assert query.schema.to_ddl().lower() == Schema.from_ddl(ddl).to_ddl().lower()
    answer = connection.execute(query.sql)
    assert [column[0] for column in answer.description or ()] == query.schema.names
    found = answer.fetchall()
    assert (found if "ORDER BY" in text else sorted(found, key=repr)) == (
        rows if "ORDER BY" in text else sorted(rows, key=repr)
    )


def test_floats_are_grouped_as_spark_groups_them(connection: duckdb.DuckDBPyConnection) -> None:
    text = "SELECT amount AS x, count(*) AS n FROM f GROUP BY amount ORDER BY x"
    connection.execute(
        "CREATE OR REPLACE TABLE f AS SELECT unnest([0.0, -0.0, 'NaN'::DOUBLE, -('NaN'::DOUBLE), 1.0]) AS"
        " amount"
    )
    query = translate_query(parse_statement(text), {"f": Schema.from_ddl("amount double")})
    assert [(str(x), n) for x, n in connection.execute(query.sql).fetchall()] == [
        ("0.0", 2),
        ("1.0", 1),
        ("nan", 2),
    ]


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("SELECT part, id FROM t GROUP BY part", InvalidArgumentError, "neither grouped nor aggregated"),
        ("SELECT id, count(*) AS n FROM t", InvalidArgumentError, "neither grouped nor aggregated"),
        ("SELECT sum(sum(id)) AS s FROM t", InvalidArgumentError, "aggregate function contains another one"),
        (
            "SELECT id FROM t WHERE count(*) > 1",
            InvalidArgumentError,
            "INVALID_WHERE_CONDITION.*aggregate function count",
        ),
        ("SELECT count(*) AS n FROM t GROUP BY 2", InvalidArgumentError, "position"),
        ("SELECT count(*) AS n FROM t GROUP BY n", InvalidArgumentError, "GROUP_BY_AGGREGATE"),
        ("SELECT id FROM t a, t a", InvalidArgumentError, "ambiguous"),
        (
            "SELECT t.id FROM t WHERE row_number() OVER (ORDER BY id) = 1",
            InvalidArgumentError,
            "window function",
        ),
        (
            "SELECT rank() OVER (PARTITION BY id) AS n FROM t",
            InvalidArgumentError,
            "WINDOW_FUNCTION_FRAME_NOT_ORDERED",
        ),
        ("SELECT sum(id) OVER w AS n FROM t", InvalidArgumentError, "MISSING_WINDOW_SPECIFICATION"),
        ("SELECT count(DISTINCT id) OVER () AS n FROM t", InvalidArgumentError, "DISTINCT_WINDOW"),
        ("SELECT grouping(part) FROM t GROUP BY part", InvalidArgumentError, "ROLLUP"),
        ("SELECT id FROM t WHERE id IN (SELECT id, part FROM t)", InvalidArgumentError, "as many columns"),
        (
            "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM n WHERE n.part = t.nothing)",
            InvalidArgumentError,
            "nothing",
        ),
        ("SELECT * FROM t FULL JOIN LATERAL (SELECT t.id) q ON true", InvalidArgumentError, "LATERAL"),
        ("SELECT * FROM t JOIN n USING (name)", InvalidArgumentError, "no column name on the left side"),
        ("SELECT * FROM read_csv('/etc/passwd')", UnsupportedFeatureError, "read_csv"),
        ("SELECT part FROM t JOIN n ON t.part = n.part", InvalidArgumentError, "ambiguous"),
        ("SELECT nothing FROM t", InvalidArgumentError, "nothing"),
        ("SELECT * FROM nobody", InvalidArgumentError, "TABLE_OR_VIEW_NOT_FOUND.*no such table"),
        ("SELECT *", InvalidArgumentError, "FROM"),
        ("SELECT id FROM t ORDER BY 2", InvalidArgumentError, "position"),
        ("SELECT DISTINCT map(id, part) AS m FROM t", UnsupportedFeatureError, "grouping"),
        (
            "SELECT id FROM t UNION SELECT id, part FROM t",
            InvalidArgumentError,
            "NUM_COLUMNS_MISMATCH.*as many columns",
        ),
        ("SELECT id FROM t LIMIT id", UnsupportedFeatureError, "LIMIT"),
        ("SELECT id FROM t@v0", UnsupportedFeatureError, "v0"),
        ("SELECT histogram_numeric(part, 3) AS m FROM t", UnsupportedFeatureError, "histogram_numeric"),
        ("SELECT EXCEPT", InvalidArgumentError, "does not parse"),
        ("SELECT id FROM t UNION ALL SELECT true", InvalidArgumentError, "INCOMPATIBLE_COLUMN_TYPE"),
        ("SELECT part FROM t ORDER BY 'a' COLLATE UNICODE_CI", UnsupportedFeatureError, "COLLATE"),
        ("SELECT id FROM t WHERE part COLLATE UTF8_LCASE = 'x'", UnsupportedFeatureError, "COLLATE"),
        ("SELECT 1e400", InvalidArgumentError, "INVALID_NUMERIC_LITERAL_RANGE"),
        ("SELECT id FROM t WHERE id < -1e400", InvalidArgumentError, "INVALID_NUMERIC_LITERAL_RANGE"),
    ],
)
def test_refusals(text: str, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        translate_query(parse_statement(text), TABLES)


def test_two_columns_of_one_name(connection: duckdb.DuckDBPyConnection) -> None:
    query = translate_query(
        parse_statement("SELECT a.id, b.id, a.part AS id_2 FROM t a, t b WHERE a.id = 1 AND b.id = 2"), TABLES
    )
    assert query.schema.names == ["id", "id", "id_2"]
    answer = connection.execute(query.sql)
    assert [column[0] for column in answer.description or ()] == ["id", "id_3", "id_2"]
    assert answer.fetchall() == [(1, 2, "a")]
    with pytest.raises(InvalidArgumentError, match="ambiguous"):
        translate_query(parse_statement("SELECT id FROM (SELECT a.id, b.id FROM t a, t b)"), TABLES)


def test_a_sum_that_leaves_bigint_is_an_error(connection: duckdb.DuckDBPyConnection) -> None:
    text = "SELECT sum(x) AS s FROM VALUES (9223372036854775807), (1) AS v(x)"
    with pytest.raises(duckdb.Error) as caught:
        connection.execute(translate_query(parse_statement(text), {}).sql).fetchall()
    assert "ARITHMETIC_OVERFLOW" in str(failure_of(caught.value))


def test_intervals_come_as_durations_and_as_months() -> None:
    rows = deltaic.sql(
        "SELECT INTERVAL 36 HOUR AS span, INTERVAL '-1-2' YEAR TO MONTH AS term UNION ALL SELECT NULL, NULL"
    ).to_arrow()
    assert rows.schema == pa.schema([("span", pa.duration("us")), ("term", pa.month_day_nano_interval())])
    assert rows["span"].to_pylist() == [datetime.timedelta(hours=36), None]
    assert rows["term"].to_pylist() == [pa.MonthDayNano([-14, 0, 0]), None]


def test_no_table_takes_an_interval(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedFeatureError, match='a: the type "interval day" is not supported'):
        deltaic.write(str(tmp_path), deltaic.sql("SELECT INTERVAL 1 DAY AS a"))
