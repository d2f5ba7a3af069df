"""Predicates as JSON and from pyarrow expressions: the filters that DuckDB and Polars push down are expressed
exactly, or left to the caller."""

from __future__ import annotations

import datetime as dt
import functools
import json
import operator
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest

from deltaic import errors
from deltaic._core import Predicate, TableSchema, schema_from_arrow

UTC = dt.timezone.utc
TABLE = pa.table(
    {
        "a": pa.array([1, 2, None], pa.int32()),
        "s": ["x", "yy", None],
        "d": pa.array([1.5, float("nan"), None]),
        "f": pa.array([1.5, 0.5, None], pa.float32()),
        "ts": pa.array([0, 1, None], pa.timestamp("us", "UTC")),
        "st": pa.array([{"x": 1}, {"x": None}, None]),
        "dec": pa.array([Decimal("1.10"), None, None], pa.decimal128(10, 2)),
        "dt": pa.array([dt.date(2020, 1, 1), None, None]),
        "b": [True, False, None],
        "bin": [b"a", b"b", None],
    }
)
SCHEMA = TableSchema(schema_from_arrow(TABLE.schema), ["a"])


def said(expression: Any) -> tuple[Any, bool]:
    predicate, exact = Predicate.from_pyarrow(expression, SCHEMA)
    return (json.loads(predicate.json) if predicate else None), exact


def compare(op: str, column: str, literal: str) -> dict[str, Any]:
    return {"op": op, "column": column.split("."), "literal": literal}


f = pc.field
NOT_NULL_A = {"op": "not", "arg": {"op": "is_null", "column": ["a"]}}


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (f("a") > 5, compare(">", "a", "5")),
        (pc.scalar(5) > f("a"), compare("<", "a", "5")),
        (f("A") == 5, compare("=", "a", "5")),
        (f("st", "x") != 1, compare("!=", "st.x", "1")),
        (f("a").cast(pa.int64()) >= 5, compare(">=", "a", "5")),
        (f("dec") == Decimal("1.1"), compare("=", "dec", "1.10")),
        (f("ts") <= dt.datetime(2020, 1, 1, tzinfo=UTC), compare("<=", "ts", "2020-01-01T00:00:00.000000Z")),
        (f("dt") < dt.date(2021, 1, 1), compare("<", "dt", "2021-01-01")),
        (f("f") == 0.5, compare("=", "f", "0.5")),
        (f("d") == float("nan"), compare("=", "d", "NaN")),
        (f("b"), compare("=", "b", "true")),
        (pc.starts_with(f("s"), "ab"), {"op": "starts_with", "column": ["s"], "literal": "ab"}),
        (f("a").is_null(), {"op": "is_null", "column": ["a"]}),
        (f("a").is_valid(), NOT_NULL_A),
        (
            f("a").isin([1, 2]),
            {"op": "and", "args": [NOT_NULL_A, {"op": "in", "column": ["a"], "literals": ["1", "2"]}]},
        ),
        (
            f("a").isin([1, None]),
            {
                "op": "or",
                "args": [
                    {"op": "is_null", "column": ["a"]},
                    {"op": "in", "column": ["a"], "literals": ["1"]},
                ],
            },
        ),
        (~(f("s") == "x"), {"op": "not", "arg": compare("=", "s", "x")}),
        (
            (f("a") == 1) | (f("s") == "x"),
            {"op": "or", "args": [compare("=", "a", "1"), compare("=", "s", "x")]},
        ),
    ],
)
def test_said_exactly(expression: Any, expected: Any) -> None:
    assert said(expression) == (expected, True)


@pytest.mark.parametrize(
    "expression",
    [
        f("a") + 1 > 5,
        f("a") == 1.5,
        f("a") > 2**40,
        f("f") == 0.1,
        f("dec") == Decimal("1.105"),
        f("ts") == dt.datetime(2020, 1, 1),
        f("d").is_null(nan_is_null=True),
        pc.starts_with(f("s"), "ab", ignore_case=True),
        f("a").cast(pa.int8()) == 1,
        f("a") == f("st", "x"),
        ~((f("a") == 1) & (f("a") + 1 == 2)),
        (f("a") == 1) | (f("a") + 1 == 2),
    ],
)
def test_left_to_the_caller(expression: Any) -> None:
    assert said(expression) == (None, False)


def test_of_a_conjunction_what_can_be_said_is() -> None:
    assert said((f("a") == 1) & (f("a") + 1 == 2) & (f("s") == "x")) == (
        {"op": "and", "args": [compare("=", "a", "1"), compare("=", "s", "x")]},
        False,
    )


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize(("op", "connect"), [("or", operator.or_), ("and", operator.and_)])
def test_a_chain_of_thousands_is_one_call(op: str, connect: Any, right: bool) -> None:
    """pyarrow nests it once for each operand, to the left where a loop builds it."""
    parts = [
        (f("a") != number) & (f("s") == "x") if op == "or" else f("a") != number for number in range(3_000)
    ]
    chain = (
        functools.reduce(lambda one, other: connect(other, one), reversed(parts))
        if right
        else functools.reduce(connect, parts)
    )
    found, exact = said(chain)
    assert exact
    assert found["op"] == op
    assert len(found["args"]) == 3_000
    compared = [arg["args"][0] if op == "or" else arg for arg in found["args"]]
    assert sorted(int(arg["literal"]) for arg in compared) == list(range(3_000))


def test_connectives_inside_each_other_keep_their_places() -> None:
    one, two, three, four = (compare("=", "a", str(number)) for number in range(1, 5))
    a, b, c, d = (f("a") == number for number in range(1, 5))
    assert said((a | b) & (c | d) & (a | (b & (c & d)))) == (
        {
            "op": "and",
            "args": [
                {"op": "or", "args": [one, two]},
                {"op": "or", "args": [three, four]},
                {"op": "or", "args": [one, {"op": "and", "args": [two, three, four]}]},
            ],
        },
        True,
    )


def test_calls_nested_too_deeply_are_left_to_the_caller() -> None:
    def negated(times: int) -> Any:
        return functools.reduce(lambda inner, _: ~inner, range(times), f("a") == 1)

    assert said(negated(150))[1]
    assert said(negated(250)) == (None, False)


class Recorder(ds.Dataset):
    """Keeps the filters that DuckDB pushes."""

    def __init__(self, table: pa.Table) -> None:
        self.table, self.filters = table, []

    @property
    def schema(self) -> pa.Schema:
        return self.table.schema

    def scanner(self, columns: Any = None, filter: Any = None, **_: Any) -> ds.Scanner:
        self.filters.append(filter)
        return ds.dataset(self.table).scanner(columns=columns, filter=filter)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("a > 1", compare(">", "a", "1")),
        ("a in (1, 2)", {"op": "in", "column": ["a"], "literals": ["1", "2"]}),
        ("s not in ('x', 'y')", {"op": "not", "arg": {"op": "in", "column": ["s"], "literals": ["x", "y"]}}),
        ("a between 1 and 5", {"op": "and", "args": [compare(">=", "a", "1"), compare("<=", "a", "5")]}),
        ("ts >= '2020-01-01'::timestamptz", compare(">=", "ts", "2020-01-01T00:00:00.000000Z")),
        ("st.x = 1", compare("=", "st.x", "1")),
        ("dec > 1.1", compare(">", "dec", "1.10")),
        ("dt < date '2021-01-01'", compare("<", "dt", "2021-01-01")),
        ("d = 0.0", compare("=", "d", "0.0")),
    ],
)
def test_what_duckdb_pushes_is_understood(where: str, expected: Any) -> None:
    recorder = Recorder(TABLE)
    with duckdb.connect() as connection:
        connection.execute("set timezone = 'UTC'")
        connection.register("d", recorder)
        connection.execute(f"select count(*) from d where {where}").fetchall()
    (pushed,) = recorder.filters
    assert said(pushed) == (expected, True)


def test_json_names_columns_without_case_and_refuses_what_does_not_fit() -> None:
    predicate = Predicate.from_json('{"op": "=", "column": ["ST", "X"], "literal": "7"}', SCHEMA)
    assert json.loads(predicate.json) == compare("=", "st.x", "7")
    assert predicate.columns == ["st"]
    assert not predicate.is_partition_only()
    assert Predicate.from_json('{"op": "is_null", "column": ["A"]}', SCHEMA).is_partition_only()
    both = predicate & Predicate.from_json('{"op": "true"}', SCHEMA)
    assert json.loads(both.json) == {"op": "and", "args": [compare("=", "st.x", "7"), {"op": "true"}]}
    for text, part in [
        ("{", "JSON"),
        ('{"op":"=","column":["zz"],"literal":"1"}', "zz"),
        ('{"op":"=","column":["a"],"literal":"x"}', '"x"'),
    ]:
        with pytest.raises(errors.DeltaError, match=part):
            Predicate.from_json(text, SCHEMA)
    deep = '{"op":"not","arg":' * 5000 + '{"op":"true"}' + "}" * 5000
    with pytest.raises(errors.InvalidArgumentError):
        Predicate.from_json(deep, SCHEMA)
