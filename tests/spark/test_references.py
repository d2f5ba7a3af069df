"""Finds the Delta tables in Spark's statements, the statements that deltaic runs, and their parameters,
without a session."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from deltaic.errors import InvalidArgumentError

pytest.importorskip("pyspark")

from deltaic.spark.expressions import infix
from deltaic.spark.heads import by_name, target_of
from deltaic.spark.parameters import with_arguments
from deltaic.spark.references import references, spliced
from deltaic.sql.tokens import Reader

NO_NAMES = SimpleNamespace(collect=list)
NO_VIEWS: Any = type("Session", (), {"sql": lambda *_, **__: NO_NAMES})()
"""A session whose catalog has no table and no view."""


def replaced(text: str) -> str:
    names = {}
    for reference in references(Reader(text), NO_VIEWS):
        travel = reference.version if reference.timestamp is None else reference.timestamp
        names[reference] = f"<{reference.path}{'' if travel is None else f'@{travel}'}>"
    return spliced(text, names)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("select * from delta.`/a b`", "select * from </a b>"),
        ("SELECT x FROM deltaic . `p` t WHERE t.x > 1", "SELECT x FROM <p> t WHERE t.x > 1"),
        ("select * from delta.`p` version as of 3 t", "select * from <p@3> t"),
        ("select * from delta.`p` FOR VERSION AS OF '3'", "select * from <p@3>"),
        ("select * from delta.`p` timestamp as of '2024-01-01' as t", "select * from <p@'2024-01-01'> as t"),
        ("select * from delta.`p` timestamp as of TIMESTAMP '2024-01-01'",
         "select * from <p@TIMESTAMP '2024-01-01'>"),
        ("select * from delta.`p` timestamp as of date_sub(current_date(), 1) t",
         "select * from <p@date_sub(current_date(), 1)> t"),
        ("select * from delta.`p` timestamp as of current_timestamp()",
         "select * from <p@current_timestamp()>"),
        ("select * from delta.`p` timestamp as of now() - interval 1 day 2 hours t",
         "select * from <p@now() - interval 1 day 2 hours> t"),
        ("from delta.`p` timestamp as of now() + interval '1' day limit 1",
         "from <p@now() + interval '1' day> limit 1"),
        ("select * from delta.`p` version as of :v where x = :v", "select * from <p@:v> where x = :v"),
        ("select delta.`p`.x, `p`.*, p.x from delta.`p` where delta.`p`.x > 1",
         "select <p>.x, <p>.*, p.x from <p> where <p>.x > 1"),
        ("from delta.`a` left anti join delta.`b` on `a`.x = delta.`b`.x",
         "from <a> left anti join <b> on <a>.x = <b>.x"),
        ("select * from delta.`a` join delta.`b` on a.x = b.x, delta.`c`",
         "select * from <a> join <b> on a.x = b.x, <c>"),
        ("with q as (from delta.`a`) select * from q, (from delta.`b`)",
         "with q as (from <a>) select * from q, (from <b>)"),
        ("select * from (delta.`a` cross join t)", "select * from (<a> cross join t)"),
        ("select * from t where x in (select y from delta.`a`)",
         "select * from t where x in (select y from <a>)"),
        ("select 1 union from delta.`a` where 'from delta.`b`' = x",
         "select 1 union from <a> where 'from delta.`b`' = x"),
        ("select x from t -- from delta.`c`", "select x from t -- from delta.`c`"),
        ("insert into other select * from delta.`a`", "insert into other select * from <a>"),
        ("insert into other table delta.`a`", "insert into other table <a>"),
        # A struct called delta is no table.
        ("select delta.`x`, delta.`y` from t delta", "select delta.`x`, delta.`y` from t delta"),
        ("select a from t order by delta.`x`, delta.`y`", "select a from t order by delta.`x`, delta.`y`"),
        ("select extract(year from delta.`x`) from delta.`p`",
         "select extract(year from delta.`x`) from <p>"),
        ("select * from t join u on (delta.`x` = u.x)", "select * from t join u on (delta.`x` = u.x)"),
        ("select * from t version as of 3", "select * from t version as of 3"),
        # Words of clauses may be names of tables and aliases.
        ("select * from values (1) as w(id), delta.`b`", "select * from values (1) as w(id), <b>"),
        ("select * from delta.`a` as window, delta.`b`", "select * from <a> as window, <b>"),
        ("select * from delta.`a` set, delta.`b`", "select * from <a> set, <b>"),
        ("select * from set, limit, delta.`b`", "select * from set, limit, <b>"),
        ("select * from t join sort on sort.id = t.id, delta.`b`",
         "select * from t join sort on sort.id = t.id, <b>"),
        ("select * from t window join u window w as (order by x), delta.`b`",
         "select * from t window join u window w as (order by x), delta.`b`"),
        ("create table w using parquet as select x, delta.`b` from t",
         "create table w using parquet as select x, delta.`b` from t"),
    ],
)  # fmt: skip
def test_references(text: str, expected: str) -> None:
    assert replaced(text) == expected


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("DELETE FROM delta.`p` WHERE x", ("delta", "p")),
        ("delete from t", ("t",)),
        ("UPDATE t SET x = 1", ("t",)),
        ("MERGE WITH SCHEMA EVOLUTION INTO t USING s ON x", ("t",)),
        ("INSERT INTO TABLE delta.`p` VALUES (1)", ("delta", "p")),
        ("INSERT OVERWRITE t SELECT 1", ("t",)),
        ("CREATE TABLE IF NOT EXISTS delta.`p` (x int)", ("delta", "p")),
        ("CREATE OR REPLACE TABLE delta.`p` AS SELECT 1", ("delta", "p")),
        ("VACUUM '/a/b' DRY RUN", ("delta", "/a/b")),
        ("DESCRIBE HISTORY t LIMIT 3", ("t",)),
        ("DESC DETAIL delta.`p`", ("delta", "p")),
        ("DESCRIBE history", ("history",)),
        ("DESCRIBE TABLE extended", ("extended",)),
        ("DESC EXTENDED formatted", ("formatted",)),
        ("DESC history.t", ("history", "t")),
        ("DESCRIBE HISTORY history", ("history",)),
        ("DESCRIBE query", ("query",)),
        ("DESCRIBE QUERY SELECT 1", None),
        ("DESC FUNCTION abs", None),
        ("RESTORE TABLE t TO VERSION AS OF 1", ("t",)),
        ("OPTIMIZE t ZORDER BY (x)", ("t",)),
        ("ALTER TABLE a.b.c ADD COLUMN x int", ("a", "b", "c")),
        ("SELECT * FROM t", None),
        ("CREATE VIEW v AS SELECT 1", None),
        ("INSERT INTO (SELECT 1)", None),
        ("SHOW TABLES", None),
    ],
)
def test_the_table_of_a_statement(text: str, parts: tuple[str, ...] | None) -> None:
    reader = Reader(text)
    target = target_of(reader)
    assert (None if target is None else target.parts) == parts
    assert reader.position == 0


def test_a_path_in_quotes() -> None:
    assert by_name("VACUUM '/a`b' RETAIN 0 HOURS") == "VACUUM delta.`/a``b` RETAIN 0 HOURS"
    assert by_name("DELETE FROM t WHERE x = '/a'") == "DELETE FROM t WHERE x = '/a'"
    assert by_name('DESCRIBE DETAIL "/a"') == "DESCRIBE DETAIL delta.`/a`"


def test_arguments() -> None:
    assert (
        with_arguments("x = :a AND y = ':a' AND z::int = :b", {"a": "O'Neil", "b": 2})
        == "x = 'O''Neil' AND y = ':a' AND z::int = 2"
    )
    assert with_arguments("x = : a /**/ AND y = :/**/b", {"a": 1, "b": 2}) == "x = 1 /**/ AND y = 2"
    assert with_arguments("v:a = :a AND f(v):a > 1 LIMIT : a", {"a": 1}) == "v:a = 1 AND f(v):a > 1 LIMIT 1"
    assert with_arguments("BEGIN l: LOOP SELECT :a; END", {"a": 1}) == "BEGIN l: LOOP SELECT 1; END"
    assert with_arguments("x IN (?, ?)", [1, None]) == "x IN (1, NULL)"
    assert with_arguments("x = 1", None) == "x = 1"
    assert with_arguments("x -:a", {"a": -1}) == "x -(-1)"  # `x --1` would be a comment
    assert with_arguments("x = ?", [{"k": 1}]) == "x = map('k', 1)"
    for text, args in [("x = :c", {"a": 1}), ("x = ?", []), ("x = ? OR ?", [1]), ("x", [1])]:
        if args:
            with pytest.raises(InvalidArgumentError):
                with_arguments(text, args)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("`=`(a, 'x\\'y`')", "(a = 'x\\'y`')"),
        ("and(`>=`(a, 1), `<=`(`b c`, 2))", "((a >= 1) AND (`b c` <= 2))"),
        ("and(`!`(`=`(a, 1)), in(b, 1, 2))", "((NOT (a = 1)) AND (b IN (1, 2)))"),
        (
            "CASE WHEN `>`(a, 1) THEN upper(`+`(a, b)) ELSE NULL END",
            "CASE WHEN (a > 1) THEN upper((a + b)) ELSE NULL END",
        ),
        ("isNull(m['k'])", "(m['k'] IS NULL)"),
        ("`=`(t.`in`, arr[`-`(n, 1)])", "(t.`in` = arr[(n - 1)])"),
        ("`my func`(`*`(a, 2))", "`my func`((a * 2))"),
        ("(a AND (b OR c))", "(a AND (b OR c))"),
        ("a", "a"),
    ],
)
def test_operators_between_their_operands(written: str, expected: str) -> None:
    assert infix(written) == expected
