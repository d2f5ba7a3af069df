"""The rows are the same with and without skipped files, and if Rust or the engine evaluates the condition, on
values whose statistics mislead."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

import deltaic
from deltaic.engine.duckdb.engine import LocalEngine
from deltaic.rows.scan import scan

NAN, INF = float("nan"), float("inf")
LONG = "z" * 40  # longer than the statistics keep
COLUMNS = pa.schema(
    {
        "k": pa.int64(),
        "i": pa.int32(),
        "x": pa.float64(),
        "f": pa.float32(),
        "d": pa.decimal128(10, 2),
        "s": pa.string(),
        "t": pa.timestamp("us", "UTC"),
        "n": pa.timestamp("us"),
        "dd": pa.date32(),
        "b": pa.bool_(),
        "y": pa.binary(),
    }
)
CONDITIONS = """
x = 0
x = 0.0D
x = -0.0D
x > 0
x >= 0
x < 0
x <= 0
x <> 0
x <=> 0
x = 'NaN'
x > 'Infinity'
x >= 'NaN'
x > 5
x = double('NaN')
x < 1
NOT x < 1
NOT (x > 0)
x IN (0, 5)
x NOT IN (0, 5)
x BETWEEN 0 AND 1
x IS NULL
x IS NOT NULL
isnan(x)
f = 0.1
f > 0
f = 1
f <= 1.5D
f >= 5.0
d = 1.1
d > 99999999.9
d = 1.100
d < -1
d = 1.105
d IN (1.1, 2)
d BETWEEN -1 AND 2
d = 2e0
d = '1.1'
d > 12345678901234567890
s = 'a'
s < 'b'
s > 'z'
s >= 'zzzz'
s LIKE 'z%'
s LIKE 'zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzza'
s LIKE 'x_y'
s LIKE 'x%y'
s LIKE 'x\\%y'
s LIKE 'x\\_y'
s LIKE '%'
s LIKE ''
s LIKE 'Ä%'
s = 'é'
s > 'é'
s > '\U0001f5ff'
s >= '\uffff'
s < '\U0001f600'
s = ''
s IN ('é', 'a', NULL)
s NOT IN ('a', NULL)
s BETWEEN 'a' AND 'b'
startswith(s, 'zz')
k = '10'
k IN (10, 20)
k BETWEEN 10 AND 15
k > 10.5
k = 10.0
k = 1e1
k < 9223372036854775808
k % 10 = 0
i = 1 OR k = 2
i IS NULL
i IS NULL OR i > 3
NOT (i IS NULL)
i = NULL
i <=> NULL
i <> 1
i IN (1, NULL)
i NOT IN (1, 2)
cast(k as string) = '10'
cast(k as int) = 10
cast(t as date) = DATE'2024-01-02'
to_date(t) >= '2024-01-05'
t = TIMESTAMP'2024-01-02 23:59:59.999999'
t > TIMESTAMP'2024-01-02 23:59:59.999'
t >= '2024-01-03'
t < '2024-01-02T00:00:00+05:00'
t BETWEEN '2024-01-02' AND '2024-01-04'
t > DATE'2024-01-04'
t > TIMESTAMP_NTZ'2024-01-04 00:00:00'
n = TIMESTAMP_NTZ'2024-01-02 01:02:03.456789'
n > '2024-01-02 01:02:03.456'
n >= TIMESTAMP'2024-01-03 00:00:00'
n < DATE'2024-01-03'
dd = '2024-01-02'
dd > DATE'2024-01-03'
dd >= TIMESTAMP'2024-01-03 00:00:00'
dd = '2024-1-2'
dd IN ('2024-01-01', DATE'2024-01-02')
dd + INTERVAL 1 DAY = '2024-01-03'
b
NOT b
b = true
b IS NULL
b IS NOT TRUE
b = 'true'
y = X'61'
coalesce(i, 0) = 0
upper(s) = 'A'
s || 'x' = 'ax'
x = 0 AND s = 'a' OR k > 40
true
false
CAST(NULL AS boolean)
1 = 1
length(s) > 3
""".strip().splitlines()


def _file(
    number: int, floats: list[float | None], decimals: list[str | None], texts: list[str | None]
) -> pa.Table:
    day, count = number + 1, len(floats)
    moment = dt.datetime(2024, 1, day, 23, 59, 59, 999999, tzinfo=dt.timezone.utc)
    return pa.table(
        {
            "k": [number * 10 + row for row in range(count)],
            "i": [None, *[number] * (count - 1)],
            "x": floats,
            "f": floats,
            "d": [None if value is None else Decimal(value) for value in decimals],
            "s": texts,
            "t": [*[moment] * (count - 1), None],
            "n": [dt.datetime(2024, 1, day, 1, 2, 3, 456789)] * count,
            "dd": [dt.date(2024, 1, day)] * count,
            "b": [*[number % 2 == 0] * (count - 1), None],
            "y": [text.encode() if text else None for text in texts],
        },
        schema=COLUMNS,
    )


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> deltaic.DeltaTable:
    path: Path = tmp_path_factory.mktemp("skipping") / "t"
    for number, (floats, decimals, texts) in enumerate(
        [
            ([0.0, -0.0, 1.0], ["0.00", "1.10", None], ["a", "apple", "Ä"]),
            ([NAN, NAN, NAN], ["-5.00", "-1.00", "-1.00"], ["é", "ß", ""]),
            ([NAN, 5.0, None], ["99999999.99", "5", "7"], [LONG + "a", LONG + "b", LONG + "\U0010ffff"]),
            ([None, None, None], [None, None, None], [None, None, None]),
            ([-0.0, -0.0, -0.0], ["3.33", "3.33", "3.33"], ["\U0001f600x", "\uffff", "x%y"]),
            ([INF, -INF, 1e-320], ["2", "2", "2"], ["x_y", "xay", "X"]),
        ]
    ):
        deltaic.write(path, _file(number, floats, decimals, texts), mode="append")
    return deltaic.DeltaTable(path)


@pytest.mark.parametrize("condition", CONDITIONS)
def test_every_way_gives_the_same_rows(table: deltaic.DeltaTable, condition: str) -> None:
    engine, snapshot = LocalEngine(), table._snapshot
    skipped = scan(snapshot, engine, ["k"], condition)
    read = scan(snapshot, engine, ["k"], condition, skipping=False).to_arrow()["k"].to_pylist()
    evaluated = (
        deltaic.sql(f"SELECT k, ({condition}) AS hit FROM t", tables={"t": table}).to_arrow().to_pylist()
    )
    queried = (
        deltaic.sql(f"SELECT k FROM t WHERE {condition}", tables={"t": table}).to_arrow()["k"].to_pylist()
    )
    expected = sorted(row["k"] for row in evaluated if row["hit"])
    assert [sorted(skipped.to_arrow()["k"].to_pylist()), sorted(read), sorted(queried)] == [expected] * 3
    assert skipped.count() == len(expected)


@pytest.mark.parametrize(
    ("condition", "files"),
    [
        ("k BETWEEN 10 AND 15", 1),
        ("k IN (10, 20)", 2),
        ("t = TIMESTAMP'2024-01-02 23:59:59.999999'", 1),
        ("n = TIMESTAMP_NTZ'2024-01-02 01:02:03.456789'", 1),
        ("dd IN ('2024-01-01', DATE'2024-01-02')", 2),
        ("s LIKE 'x%y'", 4),
        ("d = 1.100", 1),
        ("i = NULL", 0),
    ],
)
def test_files_are_skipped(table: deltaic.DeltaTable, condition: str, files: int) -> None:
    assert table.scan(where=condition).explain().files_read == files
