"""Queries: versions, named tables, laziness. tests/spark_sql tests the meaning of expressions."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltaic
from deltaic.errors import (
    DeltaConcurrentModificationException,
    DeltaError,
    InvalidArgumentError,
    TableNotFoundError,
    UnsupportedFeatureError,
    VersionNotFoundError,
)
from deltaic.sql.names import Tables


def values(statement: str, **tables: Any) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in deltaic.sql(statement, tables=tables).to_arrow().to_pylist()]


def test_select_by_path(table: deltaic.DeltaTable) -> None:
    assert values(f"SELECT id, amount FROM delta.`{table.location}` WHERE amount > 0 ORDER BY id") == [
        (1, 1.5),
        (4, 40.0),
    ]


def test_all_mentions_of_a_path_are_one_version(
    table: deltaic.DeltaTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another writer adds rows after each opening of the table."""
    opened = Tables.opened

    def opened_and_changed(self: Tables, *arguments: Any) -> deltaic.DeltaTable:
        found = opened(self, *arguments)
        deltaic.write(table.location, found.scan(), mode="append")
        return found

    monkeypatch.setattr(Tables, "opened", opened_and_changed)
    path, rows = f"delta.`{table.location}`", table.scan().count()
    assert values(f"SELECT (SELECT count(*) FROM {path}), count(*) FROM {path}") == [(rows, rows)]
    # The target that the subquery read is the one that is changed.
    with pytest.raises(DeltaConcurrentModificationException):
        deltaic.sql(f"DELETE FROM {path} WHERE id = (SELECT max(id) FROM {path} WHERE id < 1000)")


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
    statement = (
        "SELECT t.id, names.name FROM t LEFT JOIN names ON t.part = names.part WHERE names.name IS NULL"
    )
    assert values(statement, t=table, names=names) == [(4, None)]


def test_with_and_subqueries(table: deltaic.DeltaTable) -> None:
    statement = (
        "WITH big AS (SELECT * FROM t WHERE amount > 1), t2 AS (SELECT id FROM big) SELECT sum(x.id) AS s"
        " FROM (SELECT id FROM t2) AS x"
    )
    assert values(statement, t=table) == [(5,)]


def test_a_with_name_hides_a_table(table: deltaic.DeltaTable) -> None:
    assert values("WITH t AS (SELECT id FROM t WHERE id = 3) SELECT * FROM t", t=table) == [(3,)]


def test_union_order_limit(table: deltaic.DeltaTable) -> None:
    assert values("SELECT id FROM t UNION ALL SELECT id + 10 FROM t ORDER BY id DESC LIMIT 2", t=table) == [
        (14,),
        (13,),
    ]
    assert len(values(f"SELECT id FROM t LIMIT {2**63}", t=table)) == 4
    assert values("SELECT DISTINCT part FROM t WHERE part IS NOT NULL ORDER BY part", t=table) == [
        ("a",),
        ("b",),
    ]


def test_versions(table: deltaic.DeltaTable) -> None:
    deltaic.sql("DELETE FROM t WHERE id = 1", tables={"t": table})
    path = f"delta.`{table.location}`"
    assert values(f"SELECT count(*) FROM {path}") == [(3,)]
    assert values(f"SELECT count(*) FROM {path} VERSION AS OF 0") == [(4,)]
    assert values("SELECT count(*) FROM t VERSION AS OF 0 AS old", t=table) == [(4,)]
    moment = table.history()[-1]["timestamp"].isoformat()
    assert values(f"SELECT count(*) FROM {path} TIMESTAMP AS OF '{moment}'") == [(4,)]
    gone = (
        "SELECT old.id FROM t VERSION AS OF 0 AS old LEFT JOIN t AS new ON old.id = new.id WHERE new.id IS"
        " NULL"
    )
    assert values(gone, t=table) == [(1,)]
    with pytest.raises(VersionNotFoundError):
        deltaic.sql(f"SELECT * FROM {path} VERSION AS OF 9")
    assert values(f"SELECT count(*) FROM delta.`{table.location}@v0`") == [(4,)]
    assert values(f"SELECT count(*) FROM delta.`{table.location}@v0/`") == [(4,)]
    with pytest.raises(TableNotFoundError):
        deltaic.sql(f"DELETE FROM delta.`{table.location}@v0`")


def test_timestamps_of_versions_are_expressions_in_the_time_zone(table: deltaic.DeltaTable) -> None:
    table.delete("id = 1")
    for version, time in enumerate(("2026-01-02T10:00Z", "2026-01-02T11:30Z")):
        seconds = datetime.fromisoformat(time.replace("Z", "+00:00")).timestamp()
        os.utime(Path(table.location) / "_delta_log" / f"{version:020}.json", (seconds, seconds))
    path = f"delta.`{table.location}`"
    with deltaic.configure(time_zone="Europe/Rome"):  # 11:00 and 12:30 there
        for text, rows in (
            ("'2026-01-02 12:00:00'", 4),
            ("'2026-1-2 12:00:00'", 4),
            ("'2026-01-02 12:00:00Z'", 3),
            ("TIMESTAMP'2026-01-02 12:30:00'", 3),
            ("TIMESTAMP'2026-01-02 12:30:00' - INTERVAL 1 SECOND", 4),
            ("CAST('2026-01-03 10:00:00' AS DATE)", 3),
            ("current_date() - 1", 3),
            ("'12000-01-01'", 3),
        ):
            assert values(f"SELECT count(*) FROM {path} TIMESTAMP AS OF {text}") == [(rows,)], text
        deltaic.sql(f"RESTORE {path} TIMESTAMP AS OF '2026-01-02 12:00:00'")
        table.refresh()
        table.delete(f"id IN (SELECT id FROM {path} TIMESTAMP AS OF '2026-01-02 12:30:00' WHERE id < 3)")
        assert values(f"SELECT count(*) FROM {path}") == [(3,)]
    for text, error in (
        ("'x'", "The provided timestamp"),
        ("(SELECT max(day) FROM t)", "subquery"),
        ("NULL", "The provided timestamp"),
        ("DATE'-1000-01-01'", "before the first version"),
    ):
        with pytest.raises(DeltaError, match=error):
            deltaic.sql(f"SELECT * FROM {path} TIMESTAMP AS OF {text}", tables={"t": table})


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


def test_an_error_of_a_row_ends_where_its_message_ends() -> None:
    with pytest.raises(InvalidArgumentError, match=r"because it is malformed\.$"):
        deltaic.sql("SELECT 1 UNION ALL SELECT 'z'").to_pylist()


def test_two_columns_of_one_name(table: deltaic.DeltaTable) -> None:
    rows = deltaic.sql(
        "SELECT a.id, b.id, NULL AS none FROM t a JOIN t b ON a.id = b.id + 3", tables={"t": table}
    )
    assert (
        rows.schema.names
        == rows.to_arrow().schema.names
        == rows.to_reader().schema.names
        == ["id", "id", "none"]
    )
    assert [column.to_pylist() for column in rows.to_arrow().columns] == [[4], [1], [None]]
    assert list(rows.to_pandas().columns) == ["id", "id", "none"]
    with pytest.raises(InvalidArgumentError):
        deltaic.sql(
            f"CREATE TABLE delta.`{table.location}_2` USING delta AS SELECT id, id FROM t",
            tables={"t": table},
        )


def test_no_error_of_the_engine_comes_through(monkeypatch: pytest.MonkeyPatch) -> None:
    import duckdb

    from deltaic.engine.duckdb import engine

    def refuse(*args: Any, **kwargs: Any) -> None:
        raise duckdb.BinderException("Binder Error: words of the engine")

    monkeypatch.setattr(engine, "_execute", refuse)
    with pytest.raises(
        UnsupportedFeatureError, match=r"^the embedded engine cannot run a query of this form"
    ) as caught:
        deltaic.sql("SELECT 1").to_arrow()
    assert "words of the engine" not in str(caught.value)


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


def test_table_changes(tmp_path: Path) -> None:
    """The change data feed in a query: delta-spark's table functions, by name and by path."""
    table = deltaic.write(
        tmp_path / "t", pa.table({"id": [1, 2, 3]}), properties={"delta.enableChangeDataFeed": True}
    )
    table.update({"id": "id + 10"}, "id > 1")
    table.delete("id = 1")
    path = table.location
    counted = "SELECT _change_type, count(*) n, sum(id) s FROM {} GROUP BY _change_type ORDER BY _change_type"
    expected = [("delete", 1, 1), ("update_postimage", 2, 25), ("update_preimage", 2, 5)]
    for source in (
        f"table_changes('delta.`{path}`', 1)",
        f"table_changes_by_path('{path}', 1, 2)",
        "TABLE_CHANGES('named', 1) AS c",
        "table_changes('named', 2 - 1, CAST('2' AS BIGINT))",
    ):
        rows = deltaic.sql(counted.format(source), tables={"named": table}).to_pylist()
        assert [tuple(row.values()) for row in rows] == expected
    joined = (
        f"SELECT c.id FROM table_changes('named', 0, 0) c JOIN delta.`{path}` t ON c.id + 10 = t.id WHERE"
        " c._commit_version = 0"
    )
    assert sorted(row["id"] for row in deltaic.sql(joined, tables={"named": table})) == [2, 3]
    for start in (
        "'2001-01-01'",
        "CAST('2001-01-01' AS DATE)",
        "TIMESTAMP'2001-01-01 00:00:00' + INTERVAL 1 DAY",
    ):
        query = f"SELECT * FROM table_changes('named', {start}, 0)"
        assert deltaic.sql(query, tables={"named": table}).count() == 3
    for wrong in (
        "table_changes('named')",
        "table_changes('nothing', 0)",
        "table_changes(1, 0)",
        "table_changes('named', NULL)",
        "table_changes('named', 0, CAST(NULL AS TIMESTAMP))",
        "table_changes('named', -1)",
        "table_changes('named', true)",
        "table_changes('named', 1.0)",
        "table_changes('named', 0) VERSION AS OF 1",
        "table_changes('named@v1', 0)",
        "default.table_changes('named', 0)",
    ):
        with pytest.raises(InvalidArgumentError):
            deltaic.sql(f"SELECT * FROM {wrong}", tables={"named": table})
    with pytest.raises(VersionNotFoundError):
        deltaic.sql("SELECT * FROM table_changes('named', 9)", tables={"named": table})
