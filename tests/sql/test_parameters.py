"""Parameters of statements: values in place of `:name` and `?`."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pytest

import deltaic
from deltaic.errors import InvalidArgumentError, InvalidTypeError, UnsupportedFeatureError


def value(statement: str, parameters: Any) -> Any:
    ((found,),) = [tuple(row.values()) for row in deltaic.sql(statement, parameters=parameters).to_pylist()]
    return found


@pytest.mark.parametrize(
    "given",
    [1, -7, 2**40, 1.5, -0.25, "it's ?", "", None, True, datetime.date(2024, 2, 29),
     datetime.datetime(2024, 1, 2, 3, 4, 5, 6), Decimal("-12.50"), b"\x00\xff", [1, 2], {"a": 1, "b": "x"},
     "line\nbreak \\ :x"],
)  # fmt: skip
def test_values_come_back_as_they_are(given: Any) -> None:
    assert value("SELECT :v AS v", {"v": given}) == given
    assert value("SELECT ? AS v", [given]) == given


def test_markers_inside_texts_comments_and_casts_are_none() -> None:
    assert (
        value(
            "SELECT ':a ?' || `b` /* :c ? */ || ('1'::string) AS x FROM VALUES (:d) AS t(b) -- ?", {"d": "y"}
        )
        == ":a ?y1"
    )


def test_negative_numbers_are_no_comments() -> None:
    assert value("SELECT 5-:n AS x", {"n": -3}) == 8


def test_in_other_clauses_and_statements(table: deltaic.DeltaTable) -> None:
    tables = {"t": table}
    found = deltaic.sql(
        "SELECT id FROM t WHERE id IN (:a, :b) ORDER BY id LIMIT :n",
        tables=tables,
        parameters={"a": 2, "b": 3, "n": 1},
    )
    assert found.to_pylist() == [{"id": 2}]
    deltaic.sql("UPDATE t SET amount = ? WHERE id = ?", tables=tables, parameters=[9.5, 2])
    deltaic.sql(
        "INSERT INTO t (id, part) VALUES (:id, :part)", tables=tables, parameters={"id": 7, "part": "q"}
    )
    deltaic.sql("DELETE FROM t WHERE part = :part", tables=tables, parameters={"part": "b"})
    rows = deltaic.sql(
        "SELECT id, amount FROM t VERSION AS OF :v ORDER BY id", tables=tables, parameters={"v": 3}
    )
    assert [tuple(row.values()) for row in rows] == [(1, 1.5), (2, 9.5), (4, 40.0), (7, None)]


@pytest.mark.parametrize(
    ("statement", "parameters", "error", "message"),
    [
        ("SELECT :a", {"b": 1}, InvalidArgumentError, "no value for :a"),
        ("SELECT ?, ?", [1], InvalidArgumentError, "no value for a \\?"),
        ("SELECT ?", [1, 2], InvalidArgumentError, "different numbers"),
        ("SELECT ?", {"a": 1}, InvalidArgumentError, "sequence"),
        ("SELECT :a", [1], InvalidArgumentError, "mapping"),
        ("SELECT :a", None, InvalidArgumentError, "no value for :a"),
        ("SELECT ?", None, InvalidArgumentError, "no value for ?"),
        ("SELECT ?", "x", InvalidTypeError, "mapping"),
        ("SELECT ?", [object()], InvalidTypeError, "no SQL literal"),
        ("DECLARE x INT", None, UnsupportedFeatureError, "parameters="),
        ("SET VAR x = 1", None, UnsupportedFeatureError, "parameters="),
    ],
)
def test_refusals(statement: str, parameters: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        deltaic.sql(statement, parameters=parameters).to_arrow()


def test_the_colon_of_a_type_is_no_parameter() -> None:
    query = "SELECT CAST(named_struct('a', :v, 'b', array(1)) AS STRUCT<a:INT, b:ARRAY<INT>>).a AS a"
    assert deltaic.sql(query, parameters={"v": 9}).to_pylist() == [{"a": 9}]
