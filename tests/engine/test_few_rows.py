"""Plans over few rows: Arrow computes the same rows without a query as DuckDB, and DuckDB runs all other
plans."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from text_plans import filtered, grouped, joined, projected

import deltaic
from deltaic.engine.duckdb import few_rows
from deltaic.engine.duckdb.engine import LocalEngine
from deltaic.engine.duckdb.few_rows import computation
from deltaic.errors import DeltaError
from deltaic.plan.nodes import Data, Plan, Scan
from deltaic.planning.planned import ScanPlan

ENGINE = LocalEngine()
ROWS = pa.table(
    {
        "n": pa.array([1, 2, 2, None, 5], pa.int32()),
        "l": pa.array([10, None, 30, 30, 2**40], pa.int64()),
        "text": ["a", "b", None, "b", "a"],
        "real": [1.0, float("nan"), float("nan"), -0.0, 0.0],
        "day": [date(2020, 1, 1), None, date(2020, 1, 1), date(1, 1, 1), None],
        "money": pa.array(
            [Decimal("1.50"), None, Decimal("1.50"), Decimal("0.00"), None], pa.decimal128(10, 2)
        ),
        "pair": [{"x": 1}, None, {"x": 2}, {"x": None}, {"x": 5}],
        "list": [[1], [], None, [None], [2, 3]],
        "map": pa.array([[("k", 1)], [], None, [("a", None)], []], pa.map_(pa.string(), pa.int64())),
    }
)
COUNT = (("rows", "count(*)"),)
KEYS = ("n", "l", "text", "day")


def every_row(plan: Plan) -> list[str]:
    """As text: NaN is not equal to itself."""
    table = ENGINE.to_arrow(ENGINE.run(plan)).read_all()
    return sorted(repr(tuple(row.values())) for row in table.to_pylist())


def without_query(rows: Plan, others: Data) -> dict[str, Plan]:
    """Plans that need no query of DuckDB."""
    pair = (
        ("a", "s.n"),
        ("b", "o.n"),
        ("c", "s.map"),
        ("d", "o.text"),
        ("e", "CASE WHEN s.n IS NOT NULL THEN 1 ELSE 2 END"),
    )
    return {
        "in": filtered(rows, "n IN (2, 5)"),
        "not null": filtered(rows, "`s`.`text` IS NOT NULL"),
        "null": filtered(rows, "text IS NULL"),
        "both": filtered(rows, "N in (1, 2) AND (S.L IS NOT NULL)"),
        "none": filtered(rows, "n IN (9)"),
        "renamed": projected(
            filtered(rows, "l IN (30)"), (("b", "s.text"), ("a", "(`n`\n)"), ("m", "map")), "p"
        ),
        "twice": filtered(projected(rows, (("z", "n"),), "p"), "p.z IS NOT NULL"),
        "in as a value": projected(rows, (("z", "n IN (1, 2)"),), "p"),
        "literals": projected(
            rows, (("i", "1"), ("l", "3000000000"), ("t", "'it''s'"), ("m", "-7"), ("n", "n")), "p"
        ),
        "whole numbers": projected(
            rows, (("a", "n + 1"), ("b", "n * l - 2"), ("c", "(l - n) * 3"), ("d", "n * 3000000000")), "p"
        ),
        "doubles": projected(
            rows,
            (
                ("a", "real + 1"),
                ("b", "real * n"),
                ("c", "2 - real"),
                ("d", "real * real"),
                ("e", "l + real"),
            ),
            "p",
        ),
        "case": projected(
            rows,
            (("a", "CASE WHEN n IN (2) THEN l WHEN text IS NULL THEN l + 1 ELSE n * 3000000000 END"),),
            "p",
        ),
        "all counted": grouped(rows, (), COUNT),
        "none counted": grouped(filtered(rows, "n IN (9)"), (), COUNT),
        "no groups": grouped(filtered(rows, "n IN (9)"), (("n", "n"),), COUNT),
        **{f"counted by {name}": grouped(rows, (("key", name),), COUNT) for name in (*KEYS, "money")},
        **{
            f"joined by {name}": projected(joined(rows, others, f"s.{name} = o.{name}"), pair, "p")
            for name in KEYS
        },
        "joined the other way": projected(joined(rows, others, "o.n = (s.n)"), pair, "p"),
        "joined by two": projected(joined(rows, others, "s.n = o.n AND s.text = o.text", "right"), pair, "p"),
        "right kept": projected(joined(rows, others, "s.n = o.n", "right"), pair, "p"),
        "right kept, filtered": filtered(
            projected(joined(rows, others, "s.day = o.day", "right"), pair, "p"), "a IS NULL"
        ),
        "no pair": projected(joined(filtered(rows, "n IN (9)"), others, "s.n = o.n", "right"), pair, "p"),
    }


def by_query(rows: Plan, others: Data) -> dict[str, Plan]:
    """Plans of other forms, and of types in which Arrow and Spark part."""
    pair = (("a", "s.n"), ("b", "o.n"))
    return {
        "compared": filtered(rows, "n = 2"),
        "not in": filtered(rows, "n NOT IN (2)"),
        "in reals": filtered(rows, "real IN (0, 1)"),
        "in with null": filtered(rows, "n IN (2, NULL)"),
        "or": filtered(rows, "n IN (2) OR l IN (10)"),
        "field": projected(rows, (("x", "s.pair.x"),), "p"),
        "fractions": projected(rows, (("x", "real + 1.5"),), "p"),
        "divided": projected(rows, (("x", "l / 2"),), "p"),
        "decimals": projected(rows, (("x", "money * 2"),), "p"),
        "days": projected(rows, (("x", "day + 1"),), "p"),
        "escapes": projected(rows, (("x", "'a\\nb'"),), "p"),
        "mixed case": projected(rows, (("x", "CASE WHEN n IS NULL THEN n ELSE l END"),), "p"),
        "case without else": projected(rows, (("x", "CASE WHEN n IS NULL THEN l END"),), "p"),
        "counted by reals": grouped(rows, (("key", "real"),), COUNT),
        "smallest": grouped(rows, (), (("low", "min(n)"),)),
        "two keys": grouped(rows, (("a", "n"), ("b", "text")), COUNT),
        "joined by reals": projected(joined(rows, others, "s.real = o.real"), pair, "p"),
        "joined by two types": projected(joined(rows, others, "s.n = o.l"), pair, "p"),
        "joined by more": projected(joined(rows, others, "s.n = o.n AND s.l > o.l"), pair, "p"),
        "left kept": projected(joined(rows, others, "s.n = o.n", "left"), pair, "p"),
        "joined with itself": projected(joined(rows, others, "s.n = s.l"), pair, "p"),
    }


@pytest.fixture(params=["held", "files"])
def leaf(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Plan]]:
    """The rows as held ones, or as those of a table's files."""
    if request.param == "held":
        with ENGINE.hold(ENGINE.run(ENGINE.source(ROWS, "s")), "s") as held:
            yield lambda: held
    else:
        table = deltaic.write(tmp_path / "table", ROWS)
        columns = tuple(ROWS.column_names)
        yield lambda: ScanPlan(table._snapshot).scan(columns, alias="s")


@pytest.mark.parametrize("few", [True, False])
def test_arrow_and_duckdb_compute_the_same(
    few: bool, leaf: Callable[[], Plan], monkeypatch: pytest.MonkeyPatch
) -> None:
    plans = without_query if few else by_query
    with ENGINE.hold(ENGINE.run(ENGINE.source(ROWS.slice(1), "o")), "o") as others:
        found = {
            name: (computation(plan), ENGINE.run(plan).schema, every_row(plan))
            for name, plan in plans(leaf(), others).items()
        }
        monkeypatch.setattr("deltaic.engine.duckdb.engine.LocalEngine._of_few", lambda *_: None)
        expected = {
            name: (ENGINE.run(plan).schema, every_row(plan)) for name, plan in plans(leaf(), others).items()
        }
    for name, (computed, schema, rows) in found.items():
        assert (computed is not None) is few, name
        assert (schema, rows) == expected[name], name


@pytest.mark.parametrize(
    "text", ["n * 2147483647", "l * 9223372036854775807", "l + 9223372036854775807", "-2 - n * 2147483647"]
)
def test_a_value_beyond_its_type_is_the_engines_error(text: str, leaf: Callable[[], Plan]) -> None:
    plan = projected(leaf(), (("x", text),), "p")
    assert computation(plan) is not None
    with pytest.raises(DeltaError, match="ARITHMETIC_OVERFLOW"):
        every_row(plan)


def test_an_unknown_column_is_the_engines_error(leaf: Callable[[], Plan]) -> None:
    with pytest.raises(Exception, match="no column nope"):
        ENGINE.run(filtered(leaf(), "nope IS NOT NULL"))


def test_larger_files_and_joins_are_duckdbs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = deltaic.write(tmp_path / "table", ROWS)

    def plan(condition: str = "s.n = o.n") -> Plan:
        scan = ScanPlan(table._snapshot).scan(("n",), alias="s")
        assert isinstance(scan, Scan)
        return projected(joined(scan, others, condition), (("a", "s.n"),), "p")

    with ENGINE.hold(ENGINE.run(ENGINE.source(ROWS, "o")), "o") as others:
        expected = every_row(plan())
        for name in ("FEW_FILES", "FEW_BYTES", "FEW_ROWS"):
            with monkeypatch.context() as changed:
                changed.setattr(few_rows, name, 0)
                assert computation(plan()) is None
        monkeypatch.setattr(few_rows, "MOST_PAIRS", len(expected) - 1)
        few = computation(plan())
        assert few is not None
        with pytest.raises(few_rows.TooManyRowsError):
            few.rows(lambda scan: ROWS.select(["n"]))
        assert every_row(plan()) == expected


def test_random_arithmetic() -> None:
    """Random sums and products of columns and numbers, each number beside a column, as DuckDB puts the
    numbers of a longer sum together, which may overflow where the sum does not."""
    random.seed(11)
    names, numbers = ("n", "l", "real"), ("1", "-1", "7", "2147483647", "-2147483648", "3000000000")

    def expression(depth: int) -> str:
        if depth == 0:
            return random.choice(names)
        other = random.choice(numbers) if random.random() < 0.4 else expression(depth - 1)
        return f"({expression(depth - 1)} {random.choice('+-*')} {other})"

    rows = pa.table(
        {
            "n": pa.array([random.choice([None, 0, -1, 5, 2**31 - 1]) for _ in range(20)], pa.int32()),
            "l": pa.array([random.choice([None, 0, 3, -(2**40), 2**62]) for _ in range(20)], pa.int64()),
            "real": pa.array(
                [random.choice([None, 0.5, -0.0, 1e300, float("nan"), float("inf")]) for _ in range(20)],
                pa.float64(),
            ),
        }
    )
    computed = failed = 0
    with ENGINE.hold(ENGINE.run(ENGINE.source(rows, "s")), "s") as held:
        for _ in range(150):
            plan = projected(held, (("x", expression(3)), ("n", "n")), "p")
            answers: list[Any] = []
            for run in (ENGINE.run, ENGINE._query):
                try:
                    answers.append([repr(row) for row in ENGINE.to_arrow(run(plan)).read_all().to_pylist()])
                except DeltaError as error:
                    answers.append(str(error))
            assert answers[0] == answers[1], plan.columns[0][1].text
            computed += computation(plan) is not None
            failed += isinstance(answers[0], str)
    assert computed > 100
    assert 10 < failed < 120
