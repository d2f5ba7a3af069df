"""Queries: versions, named tables, laziness. What expressions mean is tested in tests/relation."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import deltaic
from deltaic.errors import InvalidArgumentError, UnsupportedFeatureError, VersionNotFoundError


def values(statement: str, **tables: Any) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in deltaic.sql(statement, tables=tables).to_arrow().to_pylist()]


def test_select_by_path(table: deltaic.DeltaTable) -> None:
    assert values(f"SELECT id, amount FROM delta.`{table.location}` WHERE amount > 0 ORDER BY id") == [(1, 1.5), (4, 40.0)]


def test_select_star_has_the_tables_types(table: deltaic.DeltaTable) -> None:
    rows = deltaic.sql("SELECT * FROM t", tables={"t": table})
    assert rows.schema.names == ["id", "part", "amount"]
    assert rows.to_arrow().schema.types == table.scan().to_arrow().schema.types


def test_aggregates_and_groups(table: deltaic.DeltaTable) -> None:
    statement = """
        SELECT part, count(*) AS n, count(amount) AS known, sum(amount) AS total, max(id) AS last
        FROM t GROUP BY part HAVING count(*) >= 1 ORDER BY part NULLS LAST"""
    assert values(statement, t=table) == [("a", 2, 1, 1.5, 2), ("b", 1, 1, -2.0, 3), (None, 1, 1, 40.0, 4)]


def test_joins_of_tables_and_data(table: deltaic.DeltaTable) -> None:
    names = pa.table({"part": ["a", "b"], "name": ["first", "second"]})
    statement = "SELECT t.id, n.name FROM t JOIN names AS n ON t.part = n.part ORDER BY t.id"
    assert values(statement, t=table, names=names) == [(1, "first"), (2, "first"), (3, "second")]
    statement = "SELECT t.id, names.name FROM t LEFT JOIN names ON t.part = names.part WHERE names.name IS NULL"
    assert values(statement, t=table, names=names) == [(4, None)]


def test_with_and_subqueries(table: deltaic.DeltaTable) -> None:
    statement = (
        "WITH big AS (SELECT * FROM t WHERE amount > 1), t2 AS (SELECT id FROM big) SELECT sum(x.id) AS s FROM (SELECT id FROM t2) AS x"
    )
    assert values(statement, t=table) == [(5,)]


def test_a_with_name_hides_a_table(table: deltaic.DeltaTable) -> None:
    assert values("WITH t AS (SELECT id FROM t WHERE id = 3) SELECT * FROM t", t=table) == [(3,)]


def test_union_order_limit(table: deltaic.DeltaTable) -> None:
    assert values("SELECT id FROM t UNION ALL SELECT id + 10 FROM t ORDER BY id DESC LIMIT 2", t=table) == [(14,), (13,)]
    assert values("SELECT DISTINCT part FROM t WHERE part IS NOT NULL ORDER BY part", t=table) == [("a",), ("b",)]


def test_versions(table: deltaic.DeltaTable) -> None:
    deltaic.sql("DELETE FROM t WHERE id = 1", tables={"t": table})
    path = f"delta.`{table.location}`"
    assert values(f"SELECT count(*) FROM {path}") == [(3,)]
    assert values(f"SELECT count(*) FROM {path} VERSION AS OF 0") == [(4,)]
    assert values("SELECT count(*) FROM t VERSION AS OF 0 AS old", t=table) == [(4,)]
    moment = table.history()[-1]["timestamp"].isoformat()
    assert values(f"SELECT count(*) FROM {path} TIMESTAMP AS OF '{moment}'") == [(4,)]
    gone = "SELECT old.id FROM t VERSION AS OF 0 AS old LEFT JOIN t AS new ON old.id = new.id WHERE new.id IS NULL"
    assert values(gone, t=table) == [(1,)]
    with pytest.raises(VersionNotFoundError):
        deltaic.sql(f"SELECT * FROM {path} VERSION AS OF 9")


def test_lazy_and_of_the_version_at_the_call(table: deltaic.DeltaTable) -> None:
    rows = deltaic.sql(f"SELECT count(*) AS n FROM delta.`{table.location}`")
    table.delete("id = 1")
    assert rows.to_arrow()["n"].to_pylist() == [4]
    assert rows.to_arrow()["n"].to_pylist() == [4]


def test_every_exit(table: deltaic.DeltaTable) -> None:
    rows = deltaic.sql("SELECT id, part FROM t WHERE id <= 2 ORDER BY id", tables={"t": table})
    expected = [{"id": 1, "part": "a"}, {"id": 2, "part": "a"}]
    assert rows.to_arrow().to_pylist() == expected
    assert rows.to_reader().read_all().to_pylist() == expected
    assert rows.to_pandas().to_dict("records") == expected
    assert rows.to_polars().to_dicts() == expected
    assert rows.to_duckdb().fetchall() == [(1, "a"), (2, "a")]
    assert pa.table(rows).to_pylist() == expected
    assert rows.count() == 2


def test_statements_without_a_table() -> None:
    assert values("SELECT 1 + 1 AS two, 'x' AS x") == [(2, "x")]
    assert values("VALUES (1, 'a'), (2, NULL)") == [(1, "a"), (2, None)]
    assert values("TABLE s", s=pa.table({"a": [1]})) == [(1,)]


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("SELECT nothing FROM t", InvalidArgumentError),
        ("SELECT * FROM nobody", InvalidArgumentError),
        ("SELECT FROM WHERE", InvalidArgumentError),
        ("SELECT no_such_function(id) FROM t", UnsupportedFeatureError),
        ("SELECT * FROM s VERSION AS OF 1", InvalidArgumentError),
        ("SELECT * FROM parquet.`/x`", UnsupportedFeatureError),
        ("SELECT * FROM t VERSION AS OF 1 + 1", (UnsupportedFeatureError, InvalidArgumentError)),
        ("SELECT read_csv('/etc/passwd')", UnsupportedFeatureError),
        ("SELECT * FROM read_csv('/etc/passwd')", (UnsupportedFeatureError, InvalidArgumentError)),
        ("SELECT * FROM '/etc/passwd'", (UnsupportedFeatureError, InvalidArgumentError)),
        ("SELECT * FROM duckdb_settings()", (UnsupportedFeatureError, InvalidArgumentError)),
        ("SELECT * FROM information_schema.tables", InvalidArgumentError),
    ],
)
def test_refusals(table: deltaic.DeltaTable, statement: str, error: Any) -> None:
    with pytest.raises(error):
        deltaic.sql(statement, tables={"t": table, "s": pa.table({"a": [1]})}).to_arrow()


def test_names_that_differ_by_case_only() -> None:
    data = pa.table({"a": [1]})
    with pytest.raises(InvalidArgumentError, match="case"):
        deltaic.sql("SELECT 1", tables={"t": data, "T": data})


def test_a_scalar_query_of_many_rows_is_an_error(table: deltaic.DeltaTable) -> None:
    with pytest.raises(InvalidArgumentError, match="SCALAR_SUBQUERY_TOO_MANY_ROWS"):
        deltaic.sql("SELECT (SELECT id FROM t) AS one", tables={"t": table}).to_arrow()


def test_an_at_sign_after_a_table_is_no_alias(table: deltaic.DeltaTable) -> None:
    with pytest.raises(UnsupportedFeatureError, match="v0"):
        deltaic.sql("SELECT count(*) FROM t@v0", tables={"t": table})
