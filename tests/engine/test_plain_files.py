"""Tables that DuckDB reads by its own Parquet reader: their rows are those that `_core` reads, and only plain
files are read in this way."""

from __future__ import annotations

import datetime as dt
import math
import shutil
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deltaic
from deltaic import _core
from deltaic.engine.duckdb import native_tables, plain_files
from deltaic.engine.duckdb.engine import LocalEngine
from deltaic.errors import ProtocolError
from deltaic.planning.planned import plan

ROWS = 5000
INSTANT = dt.datetime(2024, 2, 29, 23, 59, 59, 999999, dt.timezone.utc)


def values(first: int) -> pa.Table:
    """Returns rows of every type without parts, with nulls, extremes, NaN and both zeros."""
    rows = range(first, first + ROWS)

    def some(value: Callable[[int], Any], every: int = 7) -> list[Any]:
        return [None if row % every == 3 else value(row) for row in rows]

    doubles = [math.nan, -0.0, 0.0, math.inf, -math.inf, 1.5]
    return pa.table({
        "id": pa.array(rows, pa.int64()),
        "b": pa.array(some(lambda row: row % 256 - 128), pa.int8()),
        "h": pa.array(some(lambda row: row % 60000 - 30000), pa.int16()),
        "i": pa.array(some(lambda row: row * 7919 % 1000), pa.int32()),
        "l": pa.array(some(lambda row: (row - 2500) << 45), pa.int64()),
        "f": pa.array(some(lambda row: doubles[row % 6]), pa.float32()),
        "d": pa.array(some(lambda row: doubles[row // 100 % 6] if row % 2 else row / 8), pa.float64()),
        "finite": pa.array([row / 8 for row in rows], pa.float64()),
        "t": some(lambda row: f"{'é' * 40}{row % 900:04}{'z' * 60}"),
        "u": pa.array(some(lambda row: ["", "a", "A", "ß", "\u0000", "\U0001f600"][row % 6])),
        "y": pa.array(some(lambda row: bytes([row % 256, 255 - row % 256])), pa.binary()),
        "bo": pa.array(some(lambda row: row % 3 == 0), pa.bool_()),
        "dec9": pa.array(some(lambda row: Decimal(row) / 100), pa.decimal128(9, 2)),
        "dec18": pa.array(some(lambda row: Decimal(row - 2500) / 1000), pa.decimal128(18, 3)),
        "dec38": pa.array(some(lambda row: Decimal(10**36 + row)), pa.decimal128(38, 0)),
        "da": pa.array(some(lambda row: dt.date(1582, 10, 1) + dt.timedelta(row * 31)), pa.date32()),
        "ts": pa.array(some(lambda row: INSTANT + dt.timedelta(hours=row)), pa.timestamp("us", "UTC")),
        "tn": pa.array(
            some(lambda row: INSTANT.replace(tzinfo=None) - dt.timedelta(hours=row)), pa.timestamp("us")
        ),
    })  # fmt: skip


QUERIES = [
    "SELECT * FROM t ORDER BY id",
    "SELECT id, f, d FROM t WHERE d > 1 ORDER BY id",
    "SELECT id FROM t WHERE f > 1e30 ORDER BY id",
    "SELECT count(*) FROM t WHERE d = 0.0",
    "SELECT count(*) FROM t WHERE NOT (d <= 1.5)",
    "SELECT count(*) FROM t WHERE finite > 1e9",
    "SELECT d, count(*) FROM t GROUP BY d ORDER BY d",
    "SELECT min(f), max(f), min(d), max(d), min(finite), max(finite) FROM t",
    "SELECT min(t), max(t), min(u), max(u), min(y), max(y), min(bo), max(bo) FROM t",
    "SELECT min(dec38), max(dec38), min(da), max(da), min(ts), max(ts), min(tn), max(tn) FROM t",
    "SELECT count(*), count(b), count(t), sum(i), sum(dec18) FROM t",
    "SELECT count(*) FROM t",
    "SELECT 1 FROM t LIMIT 3",
    "SELECT id FROM t WHERE t > 'é' AND u IN ('', 'ß') ORDER BY id",
    "SELECT id FROM t WHERE y = X'00FF' ORDER BY id",
    (
        "SELECT id FROM t WHERE dec9 BETWEEN 10 AND 10.05 OR dec38 = 1000000000000000000000000000000000017"
        " ORDER BY id"
    ),
    "SELECT id, da FROM t WHERE da < DATE'1583-01-01' ORDER BY id",
    "SELECT id, hour(ts), tn FROM t WHERE ts >= TIMESTAMP'2024-09-01 00:00:00' AND hour(ts) = 2 ORDER BY id",
    "SELECT id FROM t WHERE b = -128 AND h IS NOT NULL ORDER BY id",
    "SELECT a.id, b.l FROM t a JOIN t b ON a.i = b.id WHERE b.bo ORDER BY 1, 2 LIMIT 50",
    "SELECT count(*) FROM t a WHERE EXISTS (SELECT 1 FROM t b WHERE b.id = a.i AND b.d > a.d)",
    "SELECT count(*) FROM t WHERE d IN (SELECT f FROM t)",
    "SELECT id, row_number() OVER (PARTITION BY u ORDER BY d, id) FROM t ORDER BY id",
    "WITH x AS (SELECT i, count(*) AS n FROM t GROUP BY i) SELECT max(n), (SELECT count(*) FROM x) FROM x",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("plain") / "it's plain"
    for first in (0, ROWS, 2 * ROWS):
        deltaic.write(path, values(first), mode="append")
    return path


@pytest.fixture(autouse=True)
def without_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native_tables, "SMALL_ROWS", -1)


def tables_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Gets the number of tables that DuckDB reads by itself, for each query."""
    found: list[int] = []
    original = native_tables.native_tables

    def counting(*args: Any) -> Any:
        tables = original(*args)
        found.append(len(tables))
        return tables

    monkeypatch.setattr(native_tables, "native_tables", counting)
    return found


def answer(query: str, table: Any) -> str:
    # NaN = NaN and -0.0 differs from 0.0 as text.
    return str(deltaic.sql(query, tables={"t": table}).to_arrow().to_pylist())


@pytest.mark.parametrize("query", QUERIES)
def test_rows_are_those_of_the_core(folder: Path, monkeypatch: pytest.MonkeyPatch, query: str) -> None:
    read = tables_read(monkeypatch)
    table = deltaic.DeltaTable(folder)
    found = answer(query, table)
    assert all(read) or "LIMIT 3" in query
    monkeypatch.setattr(plain_files, "MOST_FILES", 0)
    assert found == answer(query, table)
    assert not any(read[len(read) // 2 :])


def files_of(path: Path, columns: list[str] | None = None) -> tuple[list[str], list[str], int, bool] | None:
    return _core.plain_files(*scan_of(path, columns))


def scan_of(
    path: Path, columns: list[str] | None = None
) -> tuple[_core.Store, _core.TableSchema, pa.Table, Sequence[str]]:
    table = deltaic.DeltaTable(path)
    scan = plan(table._snapshot, LocalEngine(), None).scan(columns or table.schema.names)
    return scan.store, scan.table_schema, scan.files, scan.columns


def test_paths_and_names(folder: Path) -> None:
    files = files_of(folder, ["ts", "id"])
    assert files is not None
    paths, names, _, _ = files
    assert names == ["ts", "id"]
    assert sorted(paths) == sorted(str(path) for path in folder.glob("*.parquet"))


def test_physical_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t"
    deltaic.write(
        path, {"a": [1, 2, 3], "b": ["x", "y", "z"]}, properties={"delta.columnMapping.mode": "name"}
    )
    table = deltaic.DeltaTable(path)
    table.alter.rename_column("a", "select")
    read = tables_read(monkeypatch)
    assert deltaic.sql("SELECT `select` + 1 AS n, b FROM t", tables={"t": table}).to_pylist() == [
        {"n": 2, "b": "x"},
        {"n": 3, "b": "y"},
        {"n": 4, "b": "z"},
    ]
    assert read == [1]


def vector(path: Path) -> None:
    deltaic.DeltaTable(path).delete("a = 2")


def new_column(path: Path) -> None:
    deltaic.DeltaTable(path).alter.add_columns(deltaic.Schema.from_ddl("c int"))


def wider_type(path: Path) -> None:
    table = deltaic.DeltaTable(path)
    table.alter.set_properties({"delta.enableTypeWidening": True})
    table.alter.change_column("a", type="long")


def foreign_file(**options: Any) -> Callable[[Path], None]:
    def add(path: Path) -> None:
        rows = pa.table({"a": pa.array([5], pa.int32()), "b": ["v"], "s": [{"n": 2}]})
        pq.write_table(rows, path / "other.parquet", **options)
        deltaic.DeltaTable(path).add_files(["other.parquet"])

    return add


def other_case(path: Path) -> None:
    pq.write_table(
        pa.table({"A": pa.array([5], pa.int32()), "b": ["v"], "s": [{"n": 2}]}), path / "other.parquet"
    )
    deltaic.DeltaTable(path).add_files(["other.parquet"])


CHANGES = {
    "vector": vector,
    "new column": new_column,
    "wider type": wider_type,
    "codec": foreign_file(compression="brotli"),
    "case": other_case,
}


@pytest.mark.parametrize("change", CHANGES)
def test_other_files_are_read_by_the_core(tmp_path: Path, change: str) -> None:
    path = tmp_path / "t"
    deltaic.write(
        path, pa.table({"a": pa.array([1, 2, 3], pa.int32()), "b": ["x", "y", "z"], "s": [{"n": 1}] * 3})
    )
    assert files_of(path, ["a", "b"]) is not None
    CHANGES[change](path)
    columns = ["a", "b", *(["c"] if change == "new column" else [])]
    assert files_of(path, columns) is None
    rows = deltaic.sql("SELECT * FROM t ORDER BY a", tables={"t": deltaic.DeltaTable(path)}).to_pylist()
    assert rows == sorted(deltaic.DeltaTable(path).scan().to_pylist(), key=lambda row: row["a"])


def test_files_of_another_writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t"
    deltaic.write(
        path, pa.table({"a": pa.array([1, 2, 3], pa.int32()), "b": ["x", "y", "z"], "s": [{"n": 1}] * 3})
    )
    foreign_file(compression="snappy")(path)
    read = tables_read(monkeypatch)
    assert deltaic.sql(
        "SELECT sum(a) AS n, max(b) AS b FROM t", tables={"t": deltaic.DeltaTable(path)}
    ).to_pylist() == [{"n": 11, "b": "z"}]
    assert read == [1]


@pytest.mark.parametrize("columns", [["s"], ["p"], ["a", "p"]])
def test_nested_and_partition_columns(tmp_path: Path, columns: list[str]) -> None:
    rows = pa.table({"a": [1, 2], "p": ["x", "y"], "s": [{"n": 1}] * 2})
    deltaic.write(tmp_path / "t", rows, partition_by=["p"])
    assert files_of(tmp_path / "t", columns) is None
    assert files_of(tmp_path / "t", ["a"]) is not None


def test_a_pattern_in_a_path(tmp_path: Path) -> None:
    for name in ("t[1]", "t*"):
        deltaic.write(tmp_path / name, {"a": [1]})
        assert files_of(tmp_path / name) is None
        assert deltaic.sql(
            "SELECT sum(a) AS n FROM t", tables={"t": deltaic.DeltaTable(tmp_path / name)}
        ).to_pylist() == [{"n": 1}]


def flip(path: Path, table: Path) -> None:
    """Copies a table and flips a bit of a value in the middle of its file."""
    shutil.copytree(table, path)
    (file,) = path.glob("*.parquet")
    content = bytearray(file.read_bytes())
    at = content.find((1234).to_bytes(8, "little"))
    content[at] ^= 1
    file.write_bytes(content)


def test_checksums_are_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = deltaic.ParquetOptions(
        compression="uncompressed", default=deltaic.ColumnOptions(dictionary=False)
    )
    deltaic.write(tmp_path / "t", {"a": range(3000), "b": range(3000)}, parquet=options)
    flip(tmp_path / "broken", tmp_path / "t")
    read = tables_read(monkeypatch)
    with pytest.raises(ProtocolError, match="checksum"):
        _core.verify_pages(*scan_of(tmp_path / "broken"))
    with pytest.raises(ProtocolError, match=r"(?i)crc|checksum|damaged"):
        deltaic.sql("SELECT sum(a) FROM t", tables={"t": deltaic.DeltaTable(tmp_path / "broken")}).to_arrow()
    assert read == [0]
    assert deltaic.sql(
        "SELECT sum(b) AS n FROM t", tables={"t": deltaic.DeltaTable(tmp_path / "broken")}
    ).to_pylist() == [{"n": sum(range(3000))}]
    assert read == [0, 1]


def test_many_bytes_are_verified_by_the_second_query(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain_files, "VERIFIED_AT_ONCE", 0)
    deltaic.write(tmp_path / "t", {"a": range(3000), "b": range(3000)})
    read = tables_read(monkeypatch)
    for column in ("a", "a", "b"):
        table = deltaic.DeltaTable(tmp_path / "t")
        assert deltaic.sql(f"SELECT sum({column}) AS n FROM t", tables={"t": table}).to_pylist() == [
            {"n": 4498500}
        ]
    assert read == [0, 1, 1]
    files = files_of(tmp_path / "t")
    assert files is not None
    assert files[2:] == (0, True)
    monkeypatch.setattr(plain_files, "VERIFIED_LATER", 0)
    deltaic.write(tmp_path / "t", {"a": [1], "b": [1]}, mode="overwrite")
    for _ in range(2):
        deltaic.sql("SELECT sum(a) FROM t", tables={"t": deltaic.DeltaTable(tmp_path / "t")}).to_arrow()
    assert read == [0, 1, 1, 0, 0]


def test_all_tables_of_a_query_have_one_reader(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = deltaic.write(tmp_path / "keys", {"k": [1, 2, 3]})
    tables = {"t": deltaic.DeltaTable(folder), "keys": keys, "given": pa.table({"g": [2, 3]})}
    query = "SELECT count(*) AS n FROM t, keys, given WHERE id = k AND k = g"
    read = tables_read(monkeypatch)
    assert deltaic.sql(query, tables=tables).to_pylist() == [{"n": 2}]
    keys.delete("k = 3")
    assert deltaic.sql(query, tables=tables).to_pylist() == [{"n": 1}]
    assert read == [2, 0]


def test_a_file_that_is_gone(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path / "t", {"a": range(3000)})
    rows = deltaic.sql("SELECT sum(a) AS n FROM t", tables={"t": table})
    assert rows.to_pylist() == [{"n": 4498500}]
    (file,) = (tmp_path / "t").glob("*.parquet")
    file.unlink()
    with pytest.raises(ProtocolError, match="a file that the log names is not there") as caught:
        rows.to_arrow()
    assert file.name in str(caught.value)


def test_a_report_counts_what_is_read(folder: Path) -> None:
    (report,) = (
        deltaic.sql("SELECT sum(i) FROM t", tables={"t": deltaic.DeltaTable(folder)}).explain().scans.values()
    )
    assert (report.files_read, report.rows) == (3, 3 * ROWS)


def test_a_bloom_filter_of_floating_point_numbers(tmp_path: Path) -> None:
    options = deltaic.ParquetOptions(default=deltaic.ColumnOptions(bloom_filter=True))
    deltaic.write(tmp_path / "t", {"d": [0.0, -0.0] * 10, "i": range(20)}, parquet=options)
    assert files_of(tmp_path / "t", ["d"]) is None
    assert files_of(tmp_path / "t", ["i"]) is not None
    table = deltaic.DeltaTable(tmp_path / "t")
    assert deltaic.sql("SELECT count(*) AS n FROM t WHERE d = 0", tables={"t": table}).to_pylist() == [
        {"n": 20}
    ]


@pytest.mark.parametrize("kind", ["json", "geo"])
def test_types_that_other_readers_have(tmp_path: Path, kind: str) -> None:
    deltaic.write(tmp_path / "t", {"a": ["{}"]})
    rows = pa.table({"a": pa.array(['{"b": 1}'], pa.json_() if kind == "json" else pa.string())})
    if kind == "geo":
        rows = rows.replace_schema_metadata({"geo": '{"version": "1.0.0", "columns": {}}'})
    pq.write_table(rows, tmp_path / "t" / "other.parquet")
    table = deltaic.DeltaTable(tmp_path / "t")
    assert files_of(tmp_path / "t") is not None
    table.add_files(["other.parquet"])
    assert files_of(tmp_path / "t") is None
    assert deltaic.sql("SELECT a FROM t ORDER BY a", tables={"t": table}).to_pylist() == [
        {"a": '{"b": 1}'},
        {"a": "{}"},
    ]
