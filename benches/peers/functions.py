"""Every function of docs/sql.md over a million rows, beside DuckDB's function of the same name where it takes the same arguments.

The rows are those that Spark's answers are recorded for, over and over; of each function the first recorded form that fails on no row is
measured. `PYTHONPATH=python:tests/spark_sql python benches/peers/functions.py [name ...]` prints the slowest first.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb

TESTS = Path(__file__).resolve().parents[2] / "tests" / "spark_sql"
sys.path.insert(0, str(TESTS))

ROWS = 1_000_000
RUNS = 3
RECORD = Path(__file__).resolve().parents[1] / "records" / "functions.json"


def forms() -> Iterator[tuple[str, Any, str]]:
    """(function, family, form), one of each function."""
    from spark_forms import FAMILIES
    from spark_recording import load

    from deltaic.spark_sql.functions.nested import SPECIAL
    from deltaic.spark_sql.functions.registry import FORMS

    seen: set[str] = set()
    for family in FAMILIES:
        for entry in load(family.name, family.zones[0]):
            name = entry["form"].split("(")[0]
            fails = "refused" in entry or any(isinstance(value, dict) and "error" in value for value in entry["values"])
            if name in seen or fails or name not in {**FORMS, **SPECIAL}:
                continue
            if any(column in re.findall(r"[a-z]+", entry["form"][len(name) :]) for column in family.rows.column_names):
                seen.add(name)
                yield name, family, entry["form"]


def seconds(connection: duckdb.DuckDBPyConnection, sql: str, rows: str) -> float:
    """The least of a few runs; every value is computed and hashed."""
    best = float("inf")
    for _ in range(RUNS):
        start = time.perf_counter()
        connection.execute(f"SELECT bit_xor(hash({sql})) FROM {rows}").fetchall()
        best = min(best, time.perf_counter() - start)
    return best


def main(names: list[str]) -> None:
    """Measures all functions, or those named."""
    from test_recorded import schema_of

    from deltaic.spark_sql.duckdb import prepare, quote, translate

    connection = duckdb.connect()
    connection.execute("SET threads = 2")
    prepare(connection)
    measured: list[dict[str, Any]] = []
    known: set[str] = set()
    for name, family, form in forms():
        if names and name not in names:
            continue
        rows = f"rows_{family.name}"
        if rows not in known:
            known.add(rows)
            connection.register(family.name, family.rows)
            connection.execute(f"CREATE TABLE {rows} AS SELECT {family.name}.* FROM range({ROWS // family.rows.num_rows}), {family.name}")
        found = translate(form, {"t": schema_of(family)}, column_sql=lambda alias, path: quote(*path), time_zone="UTC")
        ours = seconds(connection, found.sql, rows)
        try:
            peer = seconds(connection, form, rows)
        except duckdb.Error:
            peer = None
        measured.append({"function": name, "form": form, "seconds": round(ours, 3), "duckdb": None if peer is None else round(peer, 3)})
        print(f"{ours:8.3f} {'' if peer is None else f'{peer:.3f}':>8} {form}", flush=True)
    measured.sort(key=lambda one: -one["seconds"])
    if not names:
        RECORD.write_text(json.dumps({"rows": ROWS, "functions": measured}, indent=1) + "\n", encoding="utf-8")
    slow = [one["form"] for one in measured if one["seconds"] > 1]
    far = [one["form"] for one in measured if one["duckdb"] and one["seconds"] > 3 * one["duckdb"]]
    print(f"{len(measured)} functions; above 1 s: {slow}; above 3 x DuckDB: {far}")


if __name__ == "__main__":
    main(sys.argv[1:])
