"""pyarrow, DuckDB and Polars give the same results over a table's rows as over the same rows in memory."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest

import deltaic
from deltaic import DeltaTable
from deltaic.rows.lazy_frame import pushed_conjuncts

NAN, INF = float("nan"), float("inf")
ROWS = pa.table(
    {
        "i": pa.array([1, 2, 3, None, 5, 6, 7, None], pa.int64()),
        "b": pa.array([1, -1, 127, None, 5, 6, 7, 8], pa.int8()),
        "x": [1.0, 2.0, NAN, None, -0.0, INF, -INF, 0.5],
        "y": [NAN, 1.0, NAN, 2.0, 0.0, -INF, None, 0.5],
        "f": pa.array([1.5, NAN, None, 0.1, -0.0, INF, 2.0, 3.0], pa.float32()),
        "s": ["a", None, "b", "ab", "", "é", "a", "b"],
        "d": pa.array([0, 1, None, 3, 4, 5, 6, 7], pa.date32()),
        "t": pa.array([0, 1, None, 3, 4, 5, 6, 7], pa.timestamp("us")),
        "u": pa.array([0, 1, None, 3, 4, 5, 6, 7], pa.timestamp("us", "UTC")),
        "ok": [True, False, None, True, False, None, True, False],
        "st": [
            {"a": 1, "z": NAN},
            {"a": None, "z": 1.0},
            None,
            {"a": 4, "z": None},
            *[{"a": n, "z": float(n)} for n in range(4)],
        ],
        "n": pa.array(range(8), pa.int64()),
    }
)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> DeltaTable:
    made = deltaic.write(tmp_path_factory.mktemp("engines") / "t", ROWS.slice(0, 3))
    for at in (3, 5):
        deltaic.write(made, ROWS.slice(at, 2 if at == 3 else 3), mode="append")
    return made


F = ds.field
NUMBERS = [1.0, 0.0, -0.0, NAN, INF, -INF, 0.5]


def _comparisons(column: Any, value: Any) -> list[Any]:
    return [
        column > value,
        column >= value,
        column < value,
        column <= value,
        column == value,
        column != value,
    ]


ARROW = [
    *(
        each
        for column in ("x", "f")
        for value in NUMBERS
        for each in _comparisons(F(column), pa.scalar(value))
    ),
    *(
        each
        for value in (1.0, NAN)
        for each in _comparisons(pa.scalar(value), F("x"))
        if isinstance(each, pc.Expression)
    ),
    *(F("x").isin(values) for values in ([1.0], [NAN], [1.0, NAN], [0.0], [-0.0], [None], [None, 1.0], [])),
    *(F("i").isin(values) for values in ([1, 2], [None], [None, 2])),
    F("x").is_nan(),
    F("x").is_null(),
    F("x").is_null(nan_is_null=True),
    F("x").is_valid(),
    (F("x") > 1) & (F("x") > F("y")),
    (F("x") > 1) | (F("i") < F("x")),
    (F("st", "z") >= 1) & (F("i") > 0),
    F("x") > F("y"),
    F("ok"),
    F("s") == "a",
]


@pytest.mark.parametrize("condition", [*ARROW, *(~each for each in ARROW)], ids=str)
def test_a_dataset_answers_as_pyarrow(table: DeltaTable, condition: pc.Expression) -> None:
    expected = ds.dataset(ROWS).to_table(filter=condition, columns=["n"])["n"].to_pylist()
    dataset = table.scan().to_dataset()
    assert sorted(dataset.to_table(filter=condition, columns=["n"])["n"].to_pylist()) == expected
    assert sorted(dataset.to_table().filter(condition)["n"].to_pylist()) == expected
    assert sorted(dataset.filter(condition).to_table()["n"].to_pylist()) == expected
    assert dataset.count_rows(filter=condition) == len(expected)


SQL = [
    *(
        f"{c} {op} {v}"
        for c in ("x", "f")
        for op in (">", ">=", "<", "<=", "=", "!=")
        for v in ("1", "0", "'nan'", "'infinity'", "0.1")
    ),
    "x > y",
    "x > 1 and x > y",
    "x > 1 or i < 2",
    "x in (1, 'nan')",
    "x in (0, 2)",
    "i in (1, 2)",
    "x between 0 and 'nan'",
    "x is distinct from 1",
    "isnan(x)",
    "x is null",
    "s in ('a', 'b')",
    "st.z > 1",
    "b > 5 and ok",
]


@pytest.mark.parametrize("condition", [*SQL, *(f"not ({each})" for each in SQL)])
def test_duckdb_answers_as_over_rows_in_memory(table: DeltaTable, condition: str) -> None:
    with duckdb.connect() as connection:
        expected = connection.from_arrow(ROWS).filter(condition).project("n").order("n").fetchall()
        assert (
            table.scan().to_duckdb(connection).filter(condition).project("n").order("n").fetchall()
            == expected
        )


x, i, s = pl.col("x"), pl.col("i"), pl.col("s")
POLARS = [
    *(
        each
        for column in (x, pl.col("f"))
        for value in (*NUMBERS, 0.1)
        for each in _comparisons(column, value)
    ),
    *(each for value in (2, 300, -1) for each in _comparisons(pl.col("b"), value)),
    *(each for value in (2, 2.5, 2**62) for each in _comparisons(i, value)),
    *(i.is_in(values) for values in ([1, 2], [2, None], [])),
    *(x.is_in(values) for values in ([1.0, NAN], [0.0], [1.0, None])),
    i.is_in([1, None], nulls_equal=True),
    *(s.is_in(values) for values in (["a", "b"], ["a", None])),
    *(s == value for value in ("a", "", "é")),
    i.is_between(2, 5),
    i.is_between(2, 5, closed="left"),
    i.is_null(),
    x.is_not_null(),
    x.is_nan(),
    i.eq_missing(1),
    i.eq_missing(None),
    pl.col("d") >= dt.date(1970, 1, 4),
    pl.col("t") > dt.datetime(1970, 1, 1, 0, 0, 0, 3),
    pl.col("u") > dt.datetime(1970, 1, 1, 0, 0, 0, 3, dt.timezone.utc),
    pl.col("ok"),
    pl.col("ok") == False,  # noqa: E712 - an expression
    (i > 2) & (x > pl.col("y")),
    (i > 2) | s.is_null(),
    (i > 2) ^ (i < 6),
    (i + 1 > 3) & (i < 6),
    pl.col("st").struct.field("a") > 1,
    pl.col("st").struct.field("z") >= 1.0,
    s.str.starts_with("a") & (i > 1),
    i.map_batches(lambda series: series > 2, return_dtype=pl.Boolean),
    i > i.mean(),
    pl.lit(True),
    pl.lit(None, dtype=pl.Boolean),
]


@pytest.mark.parametrize("number", range(len(POLARS)))
def test_polars_answers_as_over_rows_in_memory(table: DeltaTable, number: int) -> None:
    frame = pl.DataFrame(ROWS)
    lazy = table.scan().to_polars(lazy=True)
    for condition in (POLARS[number], ~POLARS[number], POLARS[number] & (pl.col("n") < 6)):
        expected = frame.filter(condition)["n"].to_list()
        assert sorted(lazy.filter(condition).select("n").collect()["n"].to_list()) == expected, str(condition)
        assert lazy.filter(condition).select(pl.len()).collect().item() == len(expected), str(condition)


def test_polars_frames_are_whole(table: DeltaTable) -> None:
    lazy = table.scan().to_polars(lazy=True)
    assert lazy.sort("n").collect().equals(pl.DataFrame(ROWS), null_equal=True)
    assert lazy.collect_schema() == pl.DataFrame(ROWS).schema
    assert lazy.head(3).collect().height == lazy.filter(pl.col("n") > 2).head(3).collect().height == 3
    assert lazy.select(pl.len()).collect().item() == 8
    assert lazy.select(pl.col("n").sum(), pl.col("i").max()).collect().row(0) == (28, 7)
    assert lazy.join(lazy, on="n").collect().height == 8
    assert table.scan(["n", "st.a"], "n > 3", limit=2).to_polars(lazy=True).filter(
        pl.col("n") > 0
    ).collect().columns == ["n", "st"]
    counted = deltaic.sql("select s, count(*) as c from t group by s", tables={"t": table}).to_polars(
        lazy=True
    )
    assert counted.filter(pl.col("c") == 2).sort("s").collect()["s"].to_list() == ["a", "b"]


def test_conditions_of_polars_reach_the_files(table: DeltaTable, monkeypatch: pytest.MonkeyPatch) -> None:
    from deltaic.rows import scan

    read: list[tuple[int, tuple[str, ...]]] = []
    plain = scan._ScanRows._read

    def recorded(self: Any, narrow: Any, limit: int | None = None) -> Any:
        read.append((narrow.files.num_rows, narrow.columns))
        return plain(self, narrow, limit)

    monkeypatch.setattr(scan._ScanRows, "_read", recorded)
    lazy = table.scan().to_polars(lazy=True)
    for condition in (
        pl.col("n") > 4,
        pl.col("n").is_in([5, 6]),
        ~(pl.col("n") <= 4),
        pl.col("n").is_between(5, 9),
        (pl.col("n") > 4) & (x > pl.col("y")),
    ):
        lazy.filter(condition).select("s").collect()
        assert read[-1][0] == 1, str(condition)
    assert set(read[0][1]) == {"n", "s"}
    texts = [
        (pl.col("st").struct.field("a") > 1)
        & ~i.is_in([1, 2])
        & (s == "a")
        & (pl.col("d") < dt.date(1970, 1, 4)),
        (x >= 1)
        & (pl.col("u") > dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc))
        & (pl.col("t") > dt.datetime(1970, 1, 1)),
    ]
    assert [len(pushed_conjuncts(each, table.schema)) for each in texts] == [4, 3]
    assert pushed_conjuncts((i + 1 > 2) | (i > 1), table.schema) == []


def test_errors_reach_the_reader_of_a_lazy_frame(tmp_path: Path) -> None:
    made = deltaic.write(tmp_path / "t", ROWS)
    lazy = made.scan().to_polars(lazy=True)
    for file in (tmp_path / "t").glob("*.parquet"):
        file.unlink()
    with pytest.raises(Exception, match=r"parquet"):
        lazy.collect()
