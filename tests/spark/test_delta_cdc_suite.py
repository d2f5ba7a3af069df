"""The behaviour of batch reads of change data feeds that delta-spark's suites DeltaCDCScalaSuite and
DeltaCDCSQLSuite test. A docstring names the tests of the suite."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException

from spark_session import with_jvm

FEED = "TBLPROPERTIES (delta.enableChangeDataFeed = true)"


@pytest.fixture
def session(session: Any) -> Any:
    return with_jvm(session)


@pytest.fixture
def path(session: Any, tmp_path: Path) -> str:
    """A table with a change data feed and one version."""
    session.sql(f"CREATE TABLE delta.`{tmp_path}/t` (id BIGINT) USING delta {FEED}")
    return f"{tmp_path}/t"


def condition_of(session: Any, statement: str) -> tuple[str, str]:
    with pytest.raises(PySparkException) as raised:
        session.sql(statement).collect()
    return raised.value.getCondition(), raised.value.getSqlState()


@pytest.mark.parametrize(
    "end", ["1.0", "true", "1S", "current_date()", "DATE'2000-01-01'", "TIMESTAMP_NTZ'2000-01-01'", "X'01'"]
)
def test_invalid_types_of_ends(session: Any, path: str, end: str) -> None:
    """negative case - invalid type of args"""
    unsupported = ("DELTA_UNSUPPORTED_EXPRESSION", "0A000")
    assert condition_of(session, f"SELECT * FROM table_changes_by_path('{path}', {end})") == unsupported
    assert condition_of(session, f"SELECT * FROM table_changes_by_path('{path}', 0, {end})") == unsupported


def test_the_table_is_named_by_a_text(session: Any, path: str) -> None:
    """negative case - invalid type of args; resolve invalid table name should throw error"""
    for name in ("1", "now()", f"concat('{path}', '')", "NULL"):
        for function in ("table_changes", "table_changes_by_path"):
            statement = f"SELECT * FROM {function}({name}, 0)"
            assert condition_of(session, statement) == ("DELTA_UNSUPPORTED_EXPRESSION", "0A000")
    unresolved = ("UNRESOLVED_COLUMN.WITHOUT_SUGGESTION", "42703")
    assert condition_of(session, "SELECT * FROM table_changes(unquoted, 0)") == unresolved
    assert condition_of(session, f"SELECT * FROM table_changes_by_path('{path}', 0, 1 LIMIT 1)") == (
        "PARSE_SYNTAX_ERROR",
        "42601",
    )


def test_changes_of_what_is_no_delta_table(session: Any, tmp_path: Path) -> None:
    """table_changes and table_changes_by_path with a non-delta table"""
    session.sql("CREATE TABLE of_rows (id INT) USING parquet")
    try:
        only = condition_of(session, "SELECT * FROM table_changes('of_rows', 0, 1)")
        assert only == ("DELTA_TABLE_ONLY_OPERATION", "0AKDD")
    finally:
        session.sql("DROP TABLE of_rows")
    session.range(1).write.parquet(f"{tmp_path}/p")
    for folder in ("p", "missing"):
        found = condition_of(session, f"SELECT * FROM table_changes_by_path('{tmp_path}/{folder}', 0, 1)")
        assert found == ("DELTA_MISSING_DELTA_TABLE", "42P01")


def test_the_feed_of_a_version_in_the_path(session: Any, path: str) -> None:
    """A version in the path is no range of a change feed."""
    reader = session.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 0)
    with pytest.raises(Exception, match="DELTA_UNSUPPORTED_TIME_TRAVEL_VIEWS"):
        reader.load(f"{path}@v0")


def test_new_tables_without_names_of_the_feed(session: Any, tmp_path: Path) -> None:
    """writes with metadata columns"""
    reserved = ("RESERVED_CDC_COLUMNS_ON_WRITE", "42939")
    new = f"CREATE TABLE delta.`{tmp_path}/n`"
    assert condition_of(session, f"{new} (_change_type STRING) USING delta {FEED}") == reserved
    assert condition_of(session, f"{new} USING delta {FEED} AS SELECT 1L AS _commit_version") == reserved
    session.sql(f"{new} USING delta AS SELECT 1L AS _commit_version")
    turns_on = f"ALTER TABLE delta.`{tmp_path}/n` SET {FEED}"
    assert condition_of(session, turns_on) == ("DELTA_TABLE_ALREADY_CONTAINS_CDC_COLUMNS", "42711")


def test_columns_that_a_table_got_after_the_range(session: Any, path: str) -> None:
    """The rows of an earlier range have the columns of the newest version."""
    session.sql(f"INSERT INTO delta.`{path}` VALUES (1)")
    session.sql(f"ALTER TABLE delta.`{path}` ADD COLUMN (`b.c` STRING)")
    columns = ["id", "b.c", "_change_type", "_commit_version", "_commit_timestamp"]
    rows = session.sql(f"SELECT * FROM table_changes_by_path('{path}', 0, 1) WHERE _change_type = 'insert'")
    assert (rows.columns, [tuple(row)[:4] for row in rows.collect()]) == (columns, [(1, None, "insert", 1)])
