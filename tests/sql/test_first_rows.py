"""Queries that need only few rows of a table read few of them, and have the same results as if they read
all."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

import deltaic
from deltaic import _core
from deltaic.engine import dataset
from deltaic.engine.duckdb import engine
from deltaic.engine.duckdb.engine import _execute as executed
from deltaic.sql import first_rows

ROWS = 4_000


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> deltaic.DeltaTable:
    """Three files with deleted rows, nulls, NaN and many equal keys."""
    root = tmp_path_factory.mktemp("first_rows")
    for part in range(3):
        numbers = range(part * ROWS, (part + 1) * ROWS)
        data = pa.table(
            {
                "id": pa.array(numbers, pa.int64()),
                "k": pa.array([None if n % 97 == 0 else n * 7919 % 50 for n in numbers], pa.int32()),
                "x": pa.array(
                    [
                        float("nan") if n % 89 == 0 else None if n % 83 == 0 else -float(n % 1000)
                        for n in numbers
                    ]
                ),
                "s": pa.array([f"text {n * 31 % 1009}" for n in numbers]),
                "st": pa.array([{"a": n % 13, "b": str(n)} for n in numbers]),
            }
        )
        found = deltaic.write(root, data, mode="append" if part else "error")
    found.delete("id % 5 = 2")
    return found


@pytest.fixture(autouse=True)
def of_a_large_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small one is read whole."""
    monkeypatch.setattr(first_rows, "SMALL_BYTES", 0)


TOTAL = [
    "select * from t order by x, id limit 7",
    "select * from t order by x desc, id limit 300 offset 11",
    "select id, s from t order by k desc nulls last, id desc limit 9",
    "select t.id, st from t order by st.a, t.id limit 20",
    "select s from t where k > 48 and s like '%7' order by length(s) desc, id limit 5",
    "select * from t where id > 3000000 order by k limit 5",
    "select * from t order by k, id limit 0",
    "select S, ID from t as T order by upper(T.s), Id limit 3",
    "select id from t order by id limit 4",
    "select * from t order by x, id limit 100000",
]


@pytest.mark.parametrize("text", TOTAL)
def test_a_total_order_has_one_answer(
    table: deltaic.DeltaTable, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = deltaic.sql(text, tables={"t": table}).to_arrow()
    monkeypatch.setattr(
        first_rows,
        "relation",
        lambda engine, tree, translated, leaves, keep: engine.query(translated, leaves, keep),
    )
    assert repr(found.to_pylist()) == repr(deltaic.sql(text, tables={"t": table}).to_arrow().to_pylist())
    assert found.schema == deltaic.sql(text, tables={"t": table}).to_arrow().schema


WHOLE = [
    "select * from t",
    "select x, id from t",
    "select T.S, t.id, s from t",
    "select *, id from t",
    "select id, ID from t limit 5",
    "select st from t as T offset 7",
    "select st.a from t",
]


@pytest.mark.parametrize("text", WHOLE)
def test_columns_without_a_condition_are_those_of_the_scan(
    table: deltaic.DeltaTable, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = deltaic.sql(text, tables={"t": table}).to_arrow()
    monkeypatch.setattr(
        first_rows,
        "relation",
        lambda engine, tree, translated, leaves, keep: engine.query(translated, leaves, keep),
    )
    expected = deltaic.sql(text, tables={"t": table}).to_arrow()
    assert found.schema == expected.schema
    assert [repr(column.to_pylist()) for column in found.columns] == [
        repr(column.to_pylist()) for column in expected.columns
    ]


def test_among_equal_keys_any_rows_are_right(table: deltaic.DeltaTable) -> None:
    keys = sorted(key for key in table.scan(["k"]).to_arrow()["k"].to_pylist() if key is not None)
    found = deltaic.sql(
        "select * from t where k is not null order by k limit 50", tables={"t": table}
    ).to_arrow()
    assert found["k"].to_pylist() == keys[:50]
    assert len(set(found["id"].to_pylist())) == 50
    rows = {row["id"]: row for row in table.scan().to_arrow().to_pylist()}
    # NaN is not equal to itself.
    assert repr([rows[row["id"]] for row in found.to_pylist()]) == repr(found.to_pylist())


def read(
    text: str, table: deltaic.DeltaTable, monkeypatch: pytest.MonkeyPatch
) -> list[tuple[tuple[str, ...], int]]:
    """(columns, rows) of each scan that a query opens."""
    streams = []

    def opened(scan: object, **options: object) -> _core.ReadStream:
        streams.append((scan.columns, opening(scan, **options)))
        return streams[-1][1]

    opening = dataset.open_scan
    monkeypatch.setattr("deltaic.planning.opening.open_scan", opened)
    deltaic.sql(text, tables={"t": table}).to_arrow()
    return [(columns, stream.metrics["rows"]) for columns, stream in streams]


def test_keys_are_read_before_the_rows(table: deltaic.DeltaTable, monkeypatch: pytest.MonkeyPatch) -> None:
    live = table.scan().count()
    first, second = read("select * from t order by x limit 7", table, monkeypatch)
    assert first == (("x",), live)
    assert (set(second[0]), second[1]) == ({"id", "k", "x", "s", "st"}, 7)


def test_a_scan_ends_after_the_rows_that_are_asked_for(
    table: deltaic.DeltaTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [rows for _, rows in read("select * from t limit 5 offset 2", table, monkeypatch)] == [7]


COPIES = [
    "select * from t limit 5",
    "select * from t limit 4001",  # of the first file are 3,200 left
    "select S, ID, St from t as T limit 20000",
    "select t.id from t limit 1",
]


@pytest.mark.parametrize("text", COPIES)
def test_the_first_rows_as_they_are_need_no_query(
    table: deltaic.DeltaTable, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = deltaic.sql(text, tables={"t": table})
    assert not queried(found, monkeypatch)
    expected = expected_of(text, table, monkeypatch)
    assert found.to_arrow().schema == expected.schema
    assert found.to_reader().read_all().num_rows == expected.num_rows
    # Without an order any rows are right: as many as requested, each one of the table's.
    assert found.to_arrow().num_rows == expected.num_rows
    rows = {
        repr(tuple(row))
        for row in zip(
            *(found.to_arrow()[name].to_pylist() for name in found.to_arrow().column_names), strict=True
        )
    }
    whole = table.scan([field.name for field in found.schema]).to_arrow()
    assert rows <= {
        repr(tuple(row)) for row in zip(*(column.to_pylist() for column in whole.columns), strict=True)
    }


@pytest.mark.parametrize(
    "text",
    ["select * from t limit 0", "select id as i from t limit 3", "select * from t limit 2 offset 1"],
)
def test_other_first_rows_are_a_query(
    table: deltaic.DeltaTable, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = deltaic.sql(text, tables={"t": table})
    assert queried(found, monkeypatch)
    expected = expected_of(text, table, monkeypatch)
    assert (found.to_arrow().schema, found.to_arrow().num_rows) == (expected.schema, expected.num_rows)


def queried(rows: deltaic.Rows, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Returns true if DuckDB is called for the rows."""
    asked = []
    with monkeypatch.context() as patched:
        patched.setattr(
            engine, "_execute", lambda *given, **options: (asked.append(1), executed(*given, **options))[1]
        )
        rows.to_arrow()
    return bool(asked)


def expected_of(text: str, table: deltaic.DeltaTable, monkeypatch: pytest.MonkeyPatch) -> pa.Table:
    with monkeypatch.context() as patched:
        patched.setattr(
            first_rows,
            "relation",
            lambda engine, tree, translated, leaves, keep: engine.query(translated, leaves, keep),
        )
        return deltaic.sql(text, tables={"t": table}).to_arrow()


@pytest.mark.parametrize(
    "text",
    [
        "select id + 1 as x, s from t order by x, id limit 3",  # x is not the column
        "select distinct k, s from t order by k, s limit 3",
        "select k, count(*) from t group by k order by k limit 3",
        "select * from t order by 2, 1 limit 3",
        "select * from t where id in (select max(id) from t) limit 3",
        "select a.id, b.s from t a join t b on a.id = b.id order by a.id limit 3",
        "select st.b, s from t order by b limit 3",
        "(select id from t) union all (select id from t) order by id limit 3",
        "select id, id as k from t order by k limit 3",
    ],
)
def test_other_queries_stay_as_they_are(
    table: deltaic.DeltaTable, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = deltaic.sql(text, tables={"t": table}).to_arrow().to_pylist()
    monkeypatch.setattr(
        first_rows,
        "relation",
        lambda engine, tree, translated, leaves, keep: engine.query(translated, leaves, keep),
    )
    assert repr(found) == repr(deltaic.sql(text, tables={"t": table}).to_arrow().to_pylist())


# --- the number of rows from the log

COUNTS = [
    "SELECT count(*) FROM t",
    "SELECT count(*) AS n, COUNT(*) AS m FROM t AS a",
    "SELECT count(*) n FROM t VERSION AS OF 1",
    "FROM t |> AGGREGATE count(*) AS n",
]
OTHERS = [
    "SELECT count(*) AS n FROM t WHERE k = 3",
    "SELECT count(*), max(id) FROM t",
    "SELECT count(DISTINCT k) FROM t",
    "SELECT count(k) FROM t",
    "SELECT count(*) FILTER (WHERE k = 3) FROM t",
    "SELECT count(*) OVER () AS n FROM t ORDER BY n LIMIT 1",
    "SELECT count(*) FROM t GROUP BY k ORDER BY ALL",
    "SELECT count(*) FROM t LIMIT 0",
    "SELECT count(*) FROM t HAVING count(*) > 1000000",
    "SELECT count(*) FROM t TABLESAMPLE (10 ROWS)",
    "SELECT count(*) FROM t a, t b WHERE a.id = b.id",
    "SELECT count(* EXCEPT (id, x)) FROM t",
    "SELECT DISTINCT count(*) FROM t",
]


def answers(query: str, table: deltaic.DeltaTable) -> pa.Table:
    return deltaic.sql(query, tables={"t": table}).to_arrow()


@pytest.mark.parametrize("query", [*COUNTS, *OTHERS])
def test_counts_are_those_of_the_rows(
    query: str, table: deltaic.DeltaTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = answers(query, table)
    monkeypatch.setattr(first_rows, "is_count", lambda _: False)
    assert found.equals(answers(query, table))


@pytest.mark.parametrize("query", COUNTS[:3])
def test_a_count_reads_no_file(
    query: str, table: deltaic.DeltaTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = deltaic.sql(query, tables={"t": table})
    assert rows.explain().scans != {}  # a report reads them

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a file was read")

    monkeypatch.setattr(engine, "_execute", refuse)
    assert rows.to_arrow().column(0).to_pylist() == [
        2 * ROWS if "VERSION" in query else 3 * ROWS - 3 * ROWS // 5
    ]
    assert rows.count() == 1


def test_a_log_without_the_number_of_rows_is_no_answer(table: deltaic.DeltaTable, tmp_path: Path) -> None:
    place = tmp_path / "t"
    deltaic.write(place, pa.table({"id": range(10)}), properties={"delta.dataSkippingNumIndexedCols": 0})
    commit = place / "_delta_log" / f"{0:020}.json"
    actions = [json.loads(line) for line in commit.read_text().splitlines()]
    for action in actions:
        action.get("add", {}).pop("stats", None)
    commit.write_text("".join(json.dumps(action) + "\n" for action in actions))
    (place / "_delta_log" / f"{0:020}.crc").unlink(missing_ok=True)
    assert deltaic.DeltaTable(place)._snapshot.core.num_records is None
    assert deltaic.sql(f"SELECT count(*) AS n FROM delta.`{place}`").to_pylist() == [{"n": 10}]
