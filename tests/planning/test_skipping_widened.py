"""Skipping in columns whose type was widened: files from before and after, by every source of bounds, give
the rows that a scan of all files gives.

Source: PROTOCOL.md, "Type Widening", supported type changes. Bounds in the log are texts of the type that the
column had then: the float 0.699999988079071 is `0.7` there.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltaic
from deltaic import Schema
from deltaic.engine.duckdb.engine import LocalEngine
from deltaic.rows.scan import scan

# Type before and after; a value of each file from before; a value of each file from after; literals of the
# new type.
FLOATS = [0.7, 0.1, -0.7, 3.4028234663852886e38, 1e-45, -0.0, float("inf")]
WIDENINGS: dict[str, tuple[str, str, list[Any], list[Any], list[str]]] = {
    "byte to short": ("tinyint", "smallint", [-128, 127, 0], [300, -300], ["127", "-128", "128"]),
    "byte to decimal": (
        "tinyint", "decimal(12,2)", [-128, 127], [Decimal("127.01")],
        ["127", "127.00", "127.005", "-127.99"]),
    "short to int": ("smallint", "int", [-32768, 32767], [70000], ["32767", "32767.5"]),
    "int to long": ("int", "bigint", [-(2**31), 2**31 - 1], [2**40], ["2147483647", "2147483648"]),
    "byte to double": ("tinyint", "double", [-7, 7], [7.5], ["7D", "7.25D", "-7"]),
    "int to double": ("int", "double", [2**31 - 1, -5], [0.5], ["2147483647D", "2147483646.5D", "0.7D"]),
    "int to decimal": (
        "int", "decimal(20,9)", [2**31 - 1, 1], [Decimal("1.000000001")],
        ["1", "1.0000000005", "2147483647"]),
    "long to decimal": (
        "bigint", "decimal(38,18)", [2**63 - 1, -7], [Decimal("0.5")],
        ["9223372036854775807", "-7", "-7.0001"]),
    "float to double": (
        "float",
        "double",
        FLOATS,
        [0.7, 0.1, 1e300, 0.699999988079071],
        ["0.7D", "cast(0.7 as float)", "0.1D", "-0.7D", "cast(-0.7 as float)", "1e-45D", "3.4028235e38D",
         "double('Infinity')"],
    ),
    "decimal to more digits": (
        "decimal(5,2)", "decimal(20,2)", [Decimal("1.23"), Decimal("-999.99")], [Decimal("1.24")],
        ["1.23", "1.235"]),
    "decimal to more scale": (
        "decimal(5,2)", "decimal(38,10)", [Decimal("1.23"), Decimal("-1")], [Decimal("1.2300000001")],
        ["1.23", "1.2300000001"]),
    "wide decimal": (
        "decimal(20,5)", "decimal(30,10)", [Decimal("123456789012345.12345")], [Decimal("0.1")],
        ["123456789012345.12345", "0.1"]),
    "date to timestamp_ntz": (
        "date",
        "timestamp_ntz",
        [dt.date(2020, 1, 2), dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(9999, 12, 31)],
        [dt.datetime(2020, 1, 2, 0, 0, 0, 1)],
        ["timestamp_ntz'2020-01-02 00:00:00'", "timestamp_ntz'2020-01-02 00:00:00.000001'",
         "timestamp_ntz'9999-12-31 00:00:00'", "timestamp_ntz'0001-01-01 00:00:00'",
         "timestamp_ntz'1969-12-31 00:00:00'"],
    ),
}  # fmt: skip
PROPERTIES = {"delta.enableTypeWidening": "true", "delta.checkpointInterval": "1000"}


def _widened(
    path: Path, widening: str, properties: dict[str, str], *, nested: bool, partitioned: bool = False
) -> deltaic.DeltaTable:
    """One file for each value; with `nested` the column is `s.a`, else `a`."""
    before, after, old, new, _ = WIDENINGS[widening]
    wrap = "s struct<a: {}>, k int" if nested else "a {}, k int"
    table = None
    for number, value in enumerate([*old, *new]):
        if number == len(old):
            table.alter.change_column("s.a" if nested else "a", type=after)
        schema = pa.schema(Schema.from_ddl(wrap.format(before if number < len(old) else after)))
        row = {"s": {"a": value}, "k": number} if nested else {"a": value, "k": number}
        data = pa.Table.from_pylist([row, {"k": number}], schema)
        options = (
            {}
            if table
            else {"properties": {**PROPERTIES, **properties}, "partition_by": "a" if partitioned else None}
        )
        table = deltaic.write(table or path, data, mode="append", **options)
    assert table is not None
    return table


def _compared(table: deltaic.DeltaTable, widening: str, column: str, *, most: int | None = None) -> int:
    """Compares the scan that skips with the one of all files, and with the condition evaluated by the engine;
    files left out in all."""
    conditions = [
        condition
        for literal in WIDENINGS[widening][4][:most]
        for condition in (
            *(f"{column} {operator} {literal}" for operator in ("=", "<>", "<", "<=", ">", ">=")),
            f"{column} IN ({literal}, NULL)",
            f"NOT ({column} < {literal})",
        )
    ]
    hits = ", ".join(f"({condition}) AS hit_{number}" for number, condition in enumerate(conditions))
    evaluated = deltaic.sql(f"SELECT k, {hits} FROM t", tables={"t": table}).to_arrow().to_pylist()
    left_out = 0
    for number, condition in enumerate(conditions):
        expected = sorted(row["k"] for row in evaluated if row[f"hit_{number}"])
        for skipping in (True, False):
            rows = scan(table._snapshot, LocalEngine(), ["k"], condition, skipping=skipping)
            assert sorted(rows.to_arrow()["k"].to_pylist()) == expected, (condition, skipping)
        report = table.scan(where=condition).explain()
        left_out += report.files - report.files_read
    return left_out


@pytest.mark.parametrize("nested", [False, True], ids=["column", "nested"])
@pytest.mark.parametrize("widening", WIDENINGS)
def test_bounds_of_files_from_before(tmp_path: Path, widening: str, nested: bool) -> None:
    column = "s.a" if nested else "a"
    table = _widened(
        tmp_path / "t", widening, {"delta.columnMapping.mode": "name" if nested else "none"}, nested=nested
    )
    assert _compared(table, widening, column) > 0


@pytest.mark.parametrize("as_json", ["true", "false"])
@pytest.mark.parametrize(
    "widening", ["float to double", "decimal to more scale", "date to timestamp_ntz", "int to double"]
)
def test_typed_bounds_of_checkpoints(tmp_path: Path, widening: str, as_json: str) -> None:
    """A checkpoint from before the change has bounds of the narrow type, one from after it bounds that were
    texts of it."""
    properties = {"delta.checkpoint.writeStatsAsStruct": "true", "delta.checkpoint.writeStatsAsJson": as_json}
    table = _widened(tmp_path / "t", widening, properties, nested=False)
    values = len(WIDENINGS[widening][2])
    for version in (values - 1, table.version):
        table.at(version).checkpoint()
        again = deltaic.DeltaTable(tmp_path / "t")
        assert _compared(again, widening, "a", most=2) > 0


def test_statistics_and_rewritten_files_keep_every_row(tmp_path: Path) -> None:
    table = _widened(tmp_path / "t", "float to double", {}, nested=False)
    table.delete("a < 0.7D and k = 0")
    table.update({"k": "k + 100"}, "a < 0.1D or a = cast(0.1 as float)")
    table.optimize.statistics()
    _compared(table, "float to double", "a", most=3)
    table.optimize.compact()
    _compared(table, "float to double", "a", most=3)


def test_other_engines_push_into_widened_columns(tmp_path: Path) -> None:
    import polars as pl
    import pyarrow.dataset as ds

    table = _widened(tmp_path / "t", "float to double", {}, nested=False)
    every = table.scan().to_arrow().to_pylist()
    rows = sorted(row["k"] for row in every if row["a"] is not None and row["a"] < 0.7)
    assert sorted(table.scan().to_dataset().to_table(filter=ds.field("a") < 0.7)["k"].to_pylist()) == rows
    assert (
        sorted(table.scan().to_polars(lazy=True).filter(pl.col("a") < 0.7).collect()["k"].to_list()) == rows
    )


def test_a_listing_shows_the_log(tmp_path: Path) -> None:
    table = _widened(tmp_path / "t", "float to double", {}, nested=False)
    shown = table.files().to_arrow().to_pylist()
    assert {row["min_values"]["a"] for row in shown} >= {0.7, 0.1, -0.7}


def test_partition_values_are_read_in_the_new_type(tmp_path: Path) -> None:
    """As delta-spark does: the text in the log is cast to the column's type now, so a float's 0.1 is the
    double 0.1 from then on."""
    table = _widened(tmp_path / "t", "float to double", {}, nested=False, partitioned=True)
    values = {row["k"]: row["a"] for row in table.scan().to_arrow().to_pylist() if row["a"] is not None}
    assert [values[0], values[1], values[2]] == [0.7, 0.1, -0.7]
    assert table.scan(where="a = 0.1D").count() == 2
    _compared(table, "float to double", "a", most=3)
