"""Tables as sources of DuckDB: encoded columns, filters in the scan, and a `pyarrow.dataset` if DuckDB has no
interface for these."""

from __future__ import annotations

import decimal
from datetime import date, datetime, timedelta, timezone
from typing import Any

import pyarrow as pa
import pytest

import deltaic
from deltaic import _core
from deltaic.engine.duckdb import registering, sources
from deltaic.engine.duckdb.engine import LocalEngine
from deltaic.planning.opening import PLAIN
from deltaic.planning.planned import plan

pytestmark = pytest.mark.usefixtures("arrow_sources")

ROWS = 4000


def rows(start: int) -> pa.Table:
    numbers = range(start, start + ROWS)
    cents = [decimal.Decimal(number % 1999 - 999) / 100 for number in numbers]
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "part": pa.array([f"p{number % 3}" if number % 5 else None for number in numbers]),
            "rate": pa.array([decimal.Decimal(number % 2) for number in numbers], pa.decimal128(12, 2)),
            "kind": pa.array([("air", "ship", "", "ß", None)[number % 5] for number in numbers]),
            "name": pa.array([f"{number * 7919:040d}" for number in numbers]),
            "d4": pa.array(cents, pa.decimal128(4, 2)),
            "d9": pa.array(
                [None if number % 7 == 0 else value for number, value in zip(numbers, cents, strict=True)],
                pa.decimal128(9, 2),
            ),
            "d18": pa.array(cents, pa.decimal128(18, 4)),
            "d38": pa.array(cents, pa.decimal128(38, 2)),
            "f": pa.array(
                [(1.5, float("nan"), None, -0.0, float("inf"), 0.0)[number % 6] for number in numbers]
            ),
            "b": pa.array([number % 3 == 0 for number in numbers]),
            "day": pa.array([date(2024, 1, 1) + timedelta(number % 400) for number in numbers]),
            "at": pa.array(
                [datetime(1999, 1, 1, tzinfo=timezone.utc) + timedelta(hours=number) for number in numbers]
            ),
            "local": pa.array([datetime(1999, 1, 1) + timedelta(microseconds=number) for number in numbers]),
            "st": pa.array(
                [None if number % 4 == 0 else {"x": number % 10, "s": f"s{number % 3}"} for number in numbers]
            ),
        }
    )


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> deltaic.DeltaTable:
    """Several files, row groups, partitions of text and decimals; deleted rows; a column that older files
    lack, and one of another name."""
    path = tmp_path_factory.mktemp("sources") / "t"
    options = deltaic.ParquetOptions(
        max_row_group_size=700, columns={"name": deltaic.ColumnOptions(dictionary=False)}
    )
    properties = {"delta.columnMapping.mode": "name", "delta.enableTypeWidening": True}
    table = deltaic.write(
        path, rows(0), partition_by=["part", "rate"], properties=properties, parquet=options
    )
    table.delete("id % 11 = 3")
    table.alter.rename_column("kind", "sort")
    table.alter.add_columns("late string, digits decimal(7,2)")
    table.alter.change_column("d4", type="decimal(14,3)")
    renamed = [{"kind": "sort"}.get(name, name) for name in rows(0).column_names]
    more = (
        rows(ROWS)
        .rename_columns(renamed)
        .append_column("late", pa.array([f"l{number % 4}" for number in range(ROWS)]))
    )
    deltaic.write(table, more, mode="append", parquet=options)
    table.refresh()
    return table


QUERIES = (
    "SELECT * FROM t WHERE f > 1",
    "SELECT * FROM t WHERE id BETWEEN 100 AND 120 OR sort = 'ß' AND d4 > 9",
    "SELECT id FROM t WHERE NOT (f > 1) AND f = 0",
    "SELECT id, name FROM t WHERE f = cast('nan' as double) AND sort IN ('air', '', 'no')",
    (
        "SELECT sort, late, part, rate, count(*), sum(d4), min(d9), max(d18), max(d38), min(name) FROM t"
        " GROUP BY ALL"
    ),
    "SELECT count(*) FROM t",
    "SELECT count(*), count(digits), count(late) FROM t WHERE late IS NULL",
    "SELECT id FROM t WHERE d9 = 1.25 OR d18 IN (-9.99, 0.5, 2) OR d38 < -9.97 OR rate <> 1 AND id < 9",
    (
        "SELECT upper(sort), length(part) FROM t WHERE length(sort) < 4 AND part LIKE 'p%' AND st.s = 's1'"
        " AND st.x > 7"
    ),
    "SELECT id FROM t WHERE day >= date'2025-01-30' AND at < timestamp'1999-03-01 00:00:00'",
    "SELECT id FROM t WHERE local > timestamp_ntz'1999-01-01 00:00:00.0001' AND id < 120",
    "SELECT id FROM t WHERE b AND name < '0000000000000000000000000000000000050000'",
    "SELECT max(d4 * d9), min(d18 - d4), sum(cast(d4 AS int)) FROM t WHERE d4 BETWEEN -1 AND 1",
    (
        "SELECT a.id, b.id FROM t a JOIN t b ON a.id = b.id + 4000 WHERE a.sort = 'air' AND b.sort <> 'ship'"
        " AND b.d4 > 5"
    ),
    (
        "SELECT a.id FROM t a LEFT JOIN t b ON a.id = b.id AND b.late = 'l1' WHERE b.id IS NULL AND a.part ="
        " 'p1'"
    ),
    (
        "SELECT id FROM t a WHERE EXISTS (SELECT 1 FROM t b WHERE b.id = a.id + 1 AND b.sort = 'ß') AND"
        " a.rate = 0"
    ),
    (
        "WITH c AS (SELECT id, sort, d4 FROM t) SELECT x.id FROM c x JOIN c y ON x.id = y.id + 1 WHERE x.sort"
        " = 'air' AND y.d4 > 0"
    ),
    (
        "WITH c AS (SELECT id, sort FROM t) SELECT count(*) FROM c JOIN t ON c.id = t.id WHERE c.sort = 'air'"
        " AND t.part = 'p2'"
    ),
    "SELECT (SELECT max(id) FROM t WHERE sort = 'air'), (SELECT max(id) FROM t WHERE sort = 'ship')",
    "SELECT id FROM t WHERE sort = 'air' UNION ALL SELECT id FROM t WHERE sort = 'ship' AND id > 7000",
)


def answers(table: deltaic.DeltaTable, query: str) -> list[str]:
    found = deltaic.sql(query, tables={"t": table}).to_arrow()
    return [str([(item.name, item.type) for item in found.schema]), *sorted(map(str, found.to_pylist()))]


@pytest.mark.parametrize("query", QUERIES)
def test_every_way_gives_the_same_rows(
    table: deltaic.DeltaTable, query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = answers(table, query)
    assert len(found) > 1
    monkeypatch.setattr(sources, "SMALL_BYTES", 0)  # texts as dictionaries
    assert answers(table, query) == found
    monkeypatch.setattr("deltaic.engine.duckdb.engine.PLANNED_TWICE", 0)  # filters in the scan and above it
    assert answers(table, query) == found
    monkeypatch.setattr(sources, "_encoding", lambda scan: PLAIN)
    assert answers(table, query) == found
    monkeypatch.setattr(registering, "_knows_sources", lambda cursor: False)  # a `pyarrow.dataset`
    assert answers(table, query) == found


def streams(table: deltaic.DeltaTable, query: str, monkeypatch: pytest.MonkeyPatch) -> list[_core.ReadStream]:
    opened = list[_core.ReadStream]()
    original = registering.TableRows.open

    def noted(self: registering.TableRows, *arguments: Any) -> _core.ReadStream:
        opened.append(original(self, *arguments))
        return opened[-1]

    monkeypatch.setattr(registering.TableRows, "open", noted)
    monkeypatch.setattr("deltaic.engine.duckdb.engine.PLANNED_TWICE", 0)
    monkeypatch.setattr(sources, "SMALL_BYTES", 0)
    deltaic.sql(query, tables={"t": table}).to_arrow()
    return opened


def test_columns_come_as_the_files_have_them(
    table: deltaic.DeltaTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    (stream,) = streams(table, "SELECT * FROM t WHERE length(name) > 0", monkeypatch)
    types = {item.name: str(item.type) for item in stream.schema}
    dictionary = "dictionary<values=string, indices=int32, ordered=0>"
    assert {name: types[name] for name in ("sort", "name", "d4", "d9", "d18", "d38", "rate", "id")} == {
        "sort": dictionary,
        "name": "string_view",  # each value once
        "d4": "decimal64(14, 3)",
        "d9": "decimal32(9, 2)",
        "d18": "decimal64(18, 4)",
        "d38": "decimal128(38, 2)",
        "rate": "decimal64(12, 2)",
        "id": "int64",
    }


def test_filters_reach_the_scans_of_a_join(
    table: deltaic.DeltaTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = streams(
        table,
        "SELECT a.id, b.id FROM t a JOIN t b ON a.id = b.id WHERE a.sort = 'air' AND b.id < 50",
        monkeypatch,
    )
    assert [stream.metrics["rows"] < ROWS for stream in read] == [True, True]


def test_filters_of_one_place_are_not_applied_in_another(
    table: deltaic.DeltaTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = """WITH c AS (SELECT id, sort FROM t)
        SELECT a.sort, b.sort FROM c a JOIN c b ON a.id = b.id + 1 JOIN t ON t.id = a.id
        WHERE a.sort = 'air'"""
    monkeypatch.setattr("deltaic.engine.duckdb.engine.PLANNED_TWICE", 0)
    found = deltaic.sql(query, tables={"t": table}).to_arrow()
    assert set(found.column(0).to_pylist()) == {"air"}
    assert set(found.column(1).to_pylist()) == {None}


def test_encoded_columns_are_the_plain_ones(table: deltaic.DeltaTable) -> None:
    """The oracle is the plain scan, cast by Arrow; with predicates and without."""
    scan = plan(table._snapshot, LocalEngine(), None).scan(table.schema.names)
    names = [
        item.name for item in table.schema if item.type == "string" or str(item.type).startswith("decimal")
    ]
    for text in (
        None,
        '{"op": "=", "column": ["sort"], "literal": "ship"}',
        '{"op": ">", "column": ["d4"], "literal": "3.5"}',
        '{"op": "in", "column": ["d18"], "literals": ["1", "2", "3", "4", "5", "6", "7", "8", "9"]}',
        '{"op": "not", "arg": {"op": "in", "column": ["sort"], "literals": ["air"]}}',
        '{"op": "is_null", "column": ["sort"]}',
        '{"op": "starts_with", "column": ["name"], "literal": "00000000000000000000000000000000000"}',
    ):
        predicate = None if text is None else _core.Predicate.from_json(text, scan.table_schema)
        plain = _core.read(scan.store, scan.table_schema, scan.files, scan.columns, predicate).to_table()
        assert plain.num_rows > 0
        for how in ({"encoded": names}, {"views": names}, {"encoded": names[::2], "views": names[1::2]}):
            found = _core.read(scan.store, scan.table_schema, scan.files, scan.columns, predicate, **how)
            assert found.schema == scan.table_schema.to_arrow(list(scan.columns), **how).remove_metadata()
            # NaN is not equal to itself.
            assert str(found.to_table().cast(plain.schema).to_pylist()) == str(plain.to_pylist())
