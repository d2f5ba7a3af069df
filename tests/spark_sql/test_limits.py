"""Limits of columns from the statistics of files: expressions that cannot exceed them need no check and no
more than 64 bits."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Context, Decimal, localcontext
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import deltaic
from deltaic.planning.column_limits import column_limits
from deltaic.protocol.schema import Field, Schema
from deltaic.spark_sql.duckdb import ExpressionError, translate
from deltaic.spark_sql.parsing import parse_statement
from deltaic.spark_sql.query.queries import translate_query
from deltaic.spark_sql.scope import LIMITS
from deltaic.spark_sql.values import Limits

PRICE = pa.decimal128(15, 2)


def translated(text: str, limits: dict[str, tuple[int, int]]) -> Any:
    types = {"i": "integer", "l": "long", "p": "decimal(15,2)", "d": "decimal(15,2)", "w": "decimal(38,2)"}
    known = {name: {LIMITS: Limits(*limits[name])} if name in limits else {} for name in types}
    schema = Schema(
        [Field(name, kind, metadata=known[name]) for name, kind in types.items()]  # type: ignore[arg-type]
    )
    return translate(text, {"t": schema}, column_sql=lambda alias, path: path[0])


@pytest.mark.parametrize(
    ("text", "limits", "raises"),
    [
        ("i + 1", {}, True),
        ("i + 1", {"i": (0, 10)}, False),
        ("i + 1", {"i": (0, 2**31 - 1)}, True),
        ("i - 1", {"i": (-(2**31), 10)}, True),
        ("i * i", {"i": (-46340, 46340)}, False),
        ("i * i", {"i": (-46341, 0)}, True),
        ("i + l", {"l": (0, 10)}, False),
        ("cast(l AS int)", {"l": (-5, 2**31 - 1)}, False),
        ("cast(l AS int)", {"l": (-5, 2**31)}, True),
        ("cast(cast(l AS int) AS tinyint) + 1", {"l": (-128, 127)}, False),
        ("p * (1 - d) * (1 + d)", {}, True),
        ("p * (1 - d) * (1 + d)", {"p": (90_100, 10_494_950), "d": (0, 10)}, False),
    ],
)
def test_what_limits_prove_cannot_fail(text: str, limits: dict[str, tuple[int, int]], raises: bool) -> None:
    assert translated(text, limits).raises is raises


def test_metadata_of_a_table_proves_nothing() -> None:
    """Any writer may put the key into a table's schema, as JSON."""
    schema = Schema([Field("i", "integer", metadata={LIMITS: [0, 1]})])
    assert translate("i + 1", {"t": schema}, column_sql=lambda alias, path: path[0]).raises


NUMBERS = {
    "i": pa.array([1, -7, None, 2_000_000_000], pa.int32()),
    "p": pa.array([Decimal("901.00"), Decimal("104949.50"), None, Decimal("-0.01")], PRICE),
    "d": pa.array([Decimal("0.10"), Decimal("0.00"), Decimal("0.07"), None], PRICE),
}
FORMS = """p * (1 - d)
p * (1 - d) * (1 + d)
p + d * 100
1.5 - p
p * p * p
-p + i
sum(p * (1 - d))
sum(p * (1 - d) * (1 + d))
avg(p)
sum(CASE WHEN i > 0 THEN p * (1 - d) ELSE 0 END)
sum(CASE WHEN i > 0 THEN p * (1 - d) END)
sum(CASE WHEN i > 0 THEN p * (1 - d) ELSE NULL END)
max(CASE i WHEN 1 THEN p * d ELSE 0.5 END)
cast(i AS bigint) * 3 - 1
(p - d) / (p * d + 1)
p * d = 90.1
sum(cast(i AS bigint) * 1000)""".splitlines()


@pytest.mark.parametrize("form", FORMS)
def test_values_and_types_are_those_without_limits(form: str, tmp_path: Path) -> None:
    """Arrow data has no statistics."""
    data = pa.table(NUMBERS)
    table = deltaic.write(tmp_path / "t", data)
    with_limits, without = (
        deltaic.sql(f"SELECT {form} AS x FROM t", tables={"t": source}).to_arrow() for source in (table, data)
    )
    assert with_limits.schema == without.schema
    assert sorted(map(str, with_limits["x"].to_pylist())) == sorted(map(str, without["x"].to_pylist()))


def test_limits_of_columns(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path / "t", pa.table(NUMBERS))
    table = deltaic.write(
        table, pa.table({"i": pa.array([9], pa.int32()), "p": pa.nulls(1, PRICE)}), mode="append"
    )
    found = column_limits(table._snapshot, ["I", "p", "d", "missing"])
    assert found == {"i": Limits(-7, 2_000_000_000), "p": Limits(-1, 10_494_950), "d": Limits(0, 10)}


def test_a_file_without_statistics_has_no_limits(tmp_path: Path) -> None:
    table = deltaic.write(
        tmp_path / "t", pa.table(NUMBERS), properties={"delta.dataSkippingNumIndexedCols": 0}
    )
    assert column_limits(table._snapshot, ["i", "p", "d"]) == {}
    with pytest.raises(ExpressionError):
        deltaic.sql("SELECT i * 2 AS x FROM t", tables={"t": table}).to_arrow()


def test_an_overflow_is_still_one(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path / "t", pa.table(NUMBERS))
    for form in ("i + 147483648", "cast(i AS smallint)", "i * 2"):
        with pytest.raises(ExpressionError):
            deltaic.sql(f"SELECT {form} AS x FROM t", tables={"t": table}).to_arrow()
    huge = deltaic.write(
        tmp_path / "huge", pa.table({"w": pa.array([Decimal(10) ** 35], pa.decimal128(38, 2))})
    )
    with pytest.raises(ExpressionError) as caught:
        deltaic.sql("SELECT w * 1000.5 AS x FROM t", tables={"t": huge}).to_arrow()
    assert caught.value.condition == "NUMERIC_VALUE_OUT_OF_RANGE"


def test_a_common_type_beyond_38_digits_keeps_those_before_the_point() -> None:
    """Recorded from Spark 4.3: coalesce of decimal(36,2) and decimal(38,6) is a decimal(38,4)."""
    wide = pa.table(
        {
            "a": pa.array([Decimal("1.23")], pa.decimal128(36, 2)),
            "b": pa.array([Decimal("1.234567")], pa.decimal128(38, 6)),
        }
    )
    row = deltaic.sql(
        "SELECT coalesce(a, b) AS c, coalesce(b, a) AS d, a > b AS e, a = b AS f FROM t", tables={"t": wide}
    ).to_arrow()
    assert row.schema.field("c").type == pa.decimal128(38, 4)
    assert row.to_pylist() == [{"c": Decimal("1.2300"), "d": Decimal("1.2346"), "e": False, "f": False}]


@pytest.mark.parametrize(
    ("left", "right"),
    # The first six divide in 64 bits, the others in 128.
    [((10, 2), (1, 0)), ((7, 2), (7, 2)), ((9, 4), (5, 3)), ((5, 5), (4, 0)), ((9, 2), (6, 3)),
     ((4, 2), (9, 4)), ((14, 2), (1, 0)), ((10, 2), (8, 8)), ((12, 0), (3, 1))],
)  # fmt: skip
def test_quotients_and_averages_of_decimals_are_exact(left: tuple[int, int], right: tuple[int, int]) -> None:
    """Against Python's decimals, rounded half up as Spark does."""
    random = Random(str((left, right)))

    def number(precision: int, scale: int) -> Decimal:
        most = 10**precision - 1
        return Decimal(random.choice([0, 1, -1, most, -most, random.randint(-most, most)])).scaleb(-scale)

    def rounded(value: Decimal, field: pa.Field) -> Decimal:
        return value.quantize(Decimal(1).scaleb(-field.type.scale), ROUND_HALF_UP)

    a = [number(*left) for _ in range(300)]
    b = [number(*right) or Decimal(1).scaleb(-right[1]) for _ in range(300)]
    data = pa.table({"a": pa.array(a, pa.decimal128(*left)), "b": pa.array(b, pa.decimal128(*right))})
    found = deltaic.sql(
        "SELECT a / b AS quotient, avg(a) OVER () AS mean FROM t", tables={"t": data}
    ).to_arrow()
    quotient, mean = found.schema
    with localcontext(Context(prec=80)):
        assert found["quotient"].to_pylist() == [rounded(x / y, quotient) for x, y in zip(a, b, strict=True)]
        assert set(found["mean"].to_pylist()) == {rounded(sum(a, Decimal(0)) / len(a), mean)}


def test_a_place_among_rows_needs_no_guard() -> None:
    """So a join on it is a join on equal keys."""
    data = pa.table({"g": [1, 1, 2, 2], "v": [10, 20, 30, 40]})
    text = """WITH ranked AS (SELECT g, v, rank() OVER (PARTITION BY g ORDER BY v) AS place FROM t)
        SELECT a.v, b.v AS last FROM ranked a, ranked b
        WHERE a.g = b.g AND a.place = b.place + 1 ORDER BY a.v"""
    rows = deltaic.sql(text, tables={"t": data})
    assert rows.to_arrow().to_pylist() == [{"v": 20, "last": 10}, {"v": 40, "last": 30}]
    schema = Schema([Field("g", "long"), Field("v", "long")])
    assert "IS NOT TRUE" not in translate_query(parse_statement(text), {"t": schema}).sql
