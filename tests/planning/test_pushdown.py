"""The part of a condition that becomes a predicate, which must express this part exactly."""

from __future__ import annotations

import json

import pytest

from deltaic import _core
from deltaic.engine.duckdb.engine import LocalEngine
from deltaic.planning.pushdown import Pushdown, push
from deltaic.protocol.schema import Schema

SCHEMA = Schema.from_ddl(
    "a bigint, i int, b string, c double, f float, d date, e decimal(10,2), flag boolean, st struct<x: int>,"
    " ts timestamp, n timestamp_ntz, `odd.name` int"
)
TABLE = _core.TableSchema(SCHEMA.to_json())


def pushed(text: str, **options: object) -> Pushdown:
    conjuncts = LocalEngine().resolve(text, {"t": SCHEMA}).conjuncts
    return push(conjuncts, SCHEMA, TABLE, **options)  # type: ignore[arg-type]


def said(text: str, **options: object) -> object:
    predicate = pushed(text, **options).predicate
    return None if predicate is None else json.loads(predicate.json)


def compare(op: str, column: str, literal: str) -> dict[str, object]:
    return {"op": op, "column": [column], "literal": literal}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = 5", compare("=", "a", "5")),
        ("5 < A", compare(">", "a", "5")),
        ("t.a >= -7", compare(">=", "a", "-7")),
        ("a = 5L", compare("=", "a", "5")),
        ("a = 1.0", compare("=", "a", "1")),
        ("i <> 3", compare("!=", "i", "3")),
        ("c > 1.5", compare(">", "c", "1.5")),
        ("c = 1e3", compare("=", "c", "1000.0")),
        ("f = 0.5", compare("=", "f", "0.5")),
        ("e = 1.5", compare("=", "e", "1.50")),
        ("b = 'x'", compare("=", "b", "x")),
        ("b like 'x%'", {"op": "starts_with", "column": ["b"], "literal": "x"}),
        ("b like 'x'", compare("=", "b", "x")),
        ("d >= '2024-01-31'", compare(">=", "d", "2024-01-31")),
        ("d >= date'2024-01-31'", compare(">=", "d", "2024-01-31")),
        ("ts = '2024-01-31 10:00:00'", compare("=", "ts", "2024-01-31T10:00:00.000000Z")),
        ("ts = timestamp'2024-01-31 10:00:00+02:00'", compare("=", "ts", "2024-01-31T08:00:00.000000Z")),
        ("flag", compare("=", "flag", "true")),
        ("not flag", {"op": "not", "arg": compare("=", "flag", "true")}),
        ("st.x is null", {"op": "is_null", "column": ["st", "x"]}),
        ("`odd.name` = 1", {"op": "=", "column": ["odd.name"], "literal": "1"}),
        ("a = null", {"op": "null"}),
        ("a between 1 and 2", {"op": "and", "args": [compare(">=", "a", "1"), compare("<=", "a", "2")]}),
        ("a in (1, 2)", {"op": "in", "column": ["a"], "literals": ["1", "2"]}),
        (
            "a in (1, null)",
            {"op": "or", "args": [{"op": "in", "column": ["a"], "literals": ["1"]}, {"op": "null"}]},
        ),
        ("a <=> null", {"op": "is_null", "column": ["a"]}),
        ("a = 1 or b = 'x'", {"op": "or", "args": [compare("=", "a", "1"), compare("=", "b", "x")]}),
    ],
)
def test_said_exactly(text: str, expected: object) -> None:
    assert said(text) == expected
    assert pushed(text).residual == ()


@pytest.mark.parametrize(
    "text",
    [
        "a = 1.5",  # no long is equal to it, but the tree has no such literal
        "i = 3000000000",  # beyond the column's type
        "a = 9007199254740993D",  # compared as doubles
        "f = 0.1",  # compared as doubles: no float is 0.1
        "e = 1.555",
        "abs(a) = 1",
        "e = 1e0",
        "b = 5",  # compared as numbers
        "a = '5'",
        "b like '_xy'",
        "b like '%x'",
        "d = '2024-1-1'",
        "d > timestamp'2024-01-01 00:00:00'",
        "n = '2024-01-01 00:00:00Z'",
        "ts > '0001-01-01 00:00:00+10:00'",  # in the year 0 in UTC
        "ts > '9999-12-31 23:00:00-05:00'",  # in the year 10000
        "a + 1 = 2",
        "a = i",
        "b = 'x\\\\y'",
    ],
)
def test_left_to_the_engine(text: str) -> None:
    found = pushed(text)
    assert found.predicate is None
    assert [each.text for each in found.residual] == [text]


def test_a_timestamp_without_a_zone_waits_for_the_session_zone() -> None:
    assert pushed("ts = '2024-01-31 10:00:00'", time_zone="America/New_York").predicate is None
    assert said("ts = '2024-01-31 10:00:00Z'", time_zone="America/New_York") == compare(
        "=", "ts", "2024-01-31T10:00:00.000000Z"
    )


def test_conjuncts_are_divided() -> None:
    found = pushed("a = 1 and b rlike 'q' and c > 2")
    assert [each.text for each in found.residual] == ["b rlike 'q'"]
    assert json.loads(found.predicate.json if found.predicate else "null") == {
        "op": "and",
        "args": [compare("=", "a", "1"), compare(">", "c", "2.0")],
    }


def test_a_weaker_predicate_prunes_and_the_text_decides() -> None:
    text = "(a = 1 and b rlike 'q') or a = 7"
    found = pushed(text)
    assert [each.text for each in found.residual] == [text]
    assert json.loads(found.predicate.json if found.predicate else "null") == {
        "op": "or",
        "args": [compare("=", "a", "1"), compare("=", "a", "7")],
    }
    assert pushed("b rlike 'q' or a = 7").predicate is None
    like = pushed("b like 'x_y%'")
    assert [each.text for each in like.residual] == ["b like 'x_y%'"]
    assert like.predicate is not None
    assert json.loads(like.predicate.json) == {"op": "starts_with", "column": ["b"], "literal": "x"}
    assert pushed("b not like 'x_y'").predicate is None


def test_a_negation_prunes_by_its_parts() -> None:
    below = {"op": "not", "arg": compare(">=", "a", "1")}
    for text in ("not (a >= 1 or b rlike 'q')", "not (not (not (b rlike 'q' or a >= 1)))"):
        assert said(text) == below
        assert [each.text for each in pushed(text).residual] == [text]
    assert said("not (a >= 1 and not (b rlike 'q' and c = 2))") == {
        "op": "or",
        "args": [below, compare("=", "c", "2.0")],
    }
    for text in ("not (a >= 1 and b rlike 'q')", "not (b like 'x_y')", "not (year(d) = 2024)"):
        assert pushed(text).predicate is None


def test_other_aliases_are_not_this_tables_columns() -> None:
    schema = Schema.from_ddl("s struct<x: int>, x int")
    table = _core.TableSchema(schema.to_json())
    conjuncts = LocalEngine().resolve("s.x = 1", {"t": schema}).conjuncts
    assert push(conjuncts, schema, table, others=("s",)).predicate is None
    assert push(conjuncts, schema, table).predicate is not None
