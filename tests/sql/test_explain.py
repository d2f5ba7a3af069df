"""EXPLAIN and `Rows.explain()` of queries: the files and bytes that were read of each table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltaic
from deltaic.errors import UnsupportedFeatureError


@pytest.fixture
def table(tmp_path: Path) -> deltaic.DeltaTable:
    """Three partitions of 1,000 rows in two files each."""
    for start in (0, 500):
        numbers = [number for part in range(3) for number in range(start, start + 500)]
        parts = [part for part in range(3) for _ in range(500)]
        data = pa.table({"part": parts, "id": numbers, "name": [f"<{number}>" for number in numbers]})
        made = deltaic.write(tmp_path / "table", data, mode="append", partition_by=["part"])
    return made


def query(text: str, table: deltaic.DeltaTable) -> deltaic.Rows:
    return deltaic.sql(text, tables={"t": table, "n": pa.table({"id": [1, 2]})})


def test_a_line_for_each_mention_of_a_table(table: deltaic.DeltaTable) -> None:
    rows = query(
        "SELECT a.part, count(*) AS c FROM t AS a JOIN t AS b ON a.id = b.id WHERE a.part = 1 AND b.id >= 500"
        " GROUP BY ALL",
        table,
    )
    expected = rows.to_pylist()
    report = rows.explain()
    assert isinstance(report, deltaic.QueryReport)
    assert rows.to_pylist() == expected == [{"part": 1, "c": 1500}]
    a, b = report.scans["a"], report.scans["b"]
    assert (a.files, a.files_skipped_by_partition, a.files_read) == (
        6,
        4,
        6 - 4 - a.files_skipped_by_statistics,
    )
    assert (b.files, b.files_skipped_by_partition, b.files_skipped_by_statistics, b.files_read, b.rows) == (
        6,
        0,
        3,
        3,
        1500,
    )
    assert 0 < b.bytes_of_files < b.bytes
    assert b.bytes_read > 0
    assert (report.files, report.rows) == (12, a.rows + 1500)
    assert report.columns == ("part", "c")


@pytest.mark.parametrize("mode", ["EXTENDED", "FORMATTED", "COST", "CODEGEN"])
def test_the_modes_of_spark_show_the_same_plan(mode: str, table: deltaic.DeltaTable) -> None:
    plain, of_mode = (
        query(f"EXPLAIN {each} SELECT id FROM t WHERE part = 1", table).to_pylist() for each in ("", mode)
    )
    assert of_mode == plain


def test_a_query_without_tables_has_a_plan_alone(table: deltaic.DeltaTable) -> None:
    assert "pushed" not in query("EXPLAIN SELECT 1", table).to_pylist()[0]["plan"]


def test_pushed_conditions_are_shown_as_sql(table: deltaic.DeltaTable) -> None:
    keys = ", ".join(map(str, range(40)))
    plan = query(
        f"EXPLAIN SELECT id FROM t WHERE id IN ({keys}) AND name LIKE '<1%' AND name IS NOT NULL", table
    ).to_pylist()[0]["plan"]
    line = plan.splitlines()[-1]
    assert line.endswith("id in (0, 1, 2, … 40 values) and name is not null and name >= '<1' and name < '<2'")
    assert "pushed      id in (1, 2) or id > 5" in str(table.scan(where="id IN (1, 2) OR id > 5").explain())


def test_explain_as_text_and_as_html(table: deltaic.DeltaTable) -> None:
    text = "SELECT id FROM t WHERE part = 1 AND upper(name) = '<7>'"
    ((plan,),) = (row.values() for row in query(f"EXPLAIN {text}", table).to_pylist())
    report = query(text, table).explain()
    assert isinstance(report, deltaic.QueryReport)
    assert plan == str(report)
    heading, line = plan.splitlines()[-2:]
    assert heading.split()[:4] == ["table", "files", "by", "partition"]
    assert line.split()[:5] == ["t", "6", "4", "0", "2"]
    assert any(step.strip().startswith("scan: ") for step in plan.splitlines())
    html = report._repr_html_()
    assert '<td style="text-align: left">t</td><td>6</td><td>4</td><td>0</td><td>2</td>' in html
    assert "'<7>'" not in html
    facts = table.scan(where="part = 1").explain()._repr_html_()
    assert 'files</th><td style="text-align: left">6 in the table' in facts


@pytest.mark.parametrize(
    ("text", "read", "rows"),
    [
        ("SELECT * FROM t LIMIT 3", None, None),
        ("SELECT name FROM t WHERE id < 10 ORDER BY id LIMIT 3", 3, None),
        ("SELECT count(*) FROM t WHERE part = 5", 0, 0),
        ("SELECT * FROM n", None, None),
    ],
)
def test_queries_that_read_less(
    table: deltaic.DeltaTable, text: str, read: int | None, rows: int | None
) -> None:
    report = query(text, table).explain()
    assert report.files == (0 if "FROM n" in text else 6)
    assert (
        report.files
        == report.files_read + report.files_skipped_by_partition + report.files_skipped_by_statistics
    )
    assert read is None or report.files_read == read
    assert rows is None or report.rows == rows


@pytest.mark.parametrize("text", ["EXPLAIN DELETE FROM t", "EXPLAIN FORMATTED DELETE FROM t"])
def test_other_forms_are_refused_by_name(table: deltaic.DeltaTable, text: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match="EXPLAIN"):
        query(text, table)


def test_nothing_is_noted_where_nobody_asks(table: deltaic.DeltaTable) -> None:
    from deltaic.engine.duckdb.engine import PLANS
    from deltaic.planning.opening import OPENED

    rows: Any = query("SELECT sum(id) FROM t", table)
    rows.explain()
    assert PLANS.get() is None
    assert OPENED.get() is None
