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


def test_invalid_types_of_ends(session: Any, path: str) -> None:
    """negative case - invalid type of args"""
    unsupported = ("DELTA_UNSUPPORTED_EXPRESSION", "0A000")
    timestamp = "TIMESTAMP_NTZ'2000-01-01'"
    for end in ("1.0", "true", "1S", "current_date()", "DATE'2000-01-01'", timestamp, "X'01'"):
        assert condition_of(session, f"SELECT * FROM table_changes_by_path('{path}', {end})") == unsupported
        assert (
            condition_of(session, f"SELECT * FROM table_changes_by_path('{path}', 0, {end})") == unsupported
        )


def test_wrong_number_of_arguments(session: Any, path: str) -> None:
    """negative case - not enough / too many args"""
    wrong = ("INCORRECT_NUMBER_OF_ARGUMENTS", "42605")
    for arguments in ("", f"'{path}'", f"'{path}', 0, 1, 2"):
        for function in ("table_changes", "table_changes_by_path"):
            assert condition_of(session, f"SELECT * FROM {function}({arguments})") == wrong


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


def test_changes_of_what_is_no_delta_table(session: Any, path: str, tmp_path: Path) -> None:
    """table_changes and table_changes_by_path with a non-delta table"""
    session.sql("CREATE TABLE of_rows (id INT) USING parquet")
    try:
        only = condition_of(session, "SELECT * FROM table_changes('of_rows', 0, 1)")
        assert only == ("DELTA_TABLE_ONLY_OPERATION", "0AKDD")
        session.sql(f"CREATE TEMPORARY VIEW of_delta AS SELECT * FROM delta.`{path}`")
        assert condition_of(session, "SELECT id FROM table_changes('of_delta', 0)") == only
    finally:
        session.sql("DROP VIEW IF EXISTS of_delta")
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
    taken = ("DELTA_TABLE_ALREADY_CONTAINS_CDC_COLUMNS", "42711")
    new = f"CREATE TABLE delta.`{tmp_path}/n`"
    assert condition_of(session, f"{new} (_change_type STRING) USING delta {FEED}") == taken
    assert condition_of(session, f"{new} USING delta {FEED} AS SELECT 1L AS _commit_version") == taken
    session.sql(f"{new} USING delta AS SELECT 1L AS _commit_version")
    assert condition_of(session, f"ALTER TABLE delta.`{tmp_path}/n` SET {FEED}") == taken


def test_columns_that_a_table_got_after_the_range(session: Any, path: str) -> None:
    """The rows of an earlier range have the columns of the newest version."""
    session.sql(f"INSERT INTO delta.`{path}` VALUES (1)")
    session.sql(f"ALTER TABLE delta.`{path}` ADD COLUMN (`b.c` STRING)")
    columns = ["id", "b.c", "_change_type", "_commit_version", "_commit_timestamp"]
    rows = session.sql(f"SELECT * FROM table_changes_by_path('{path}', 0, 1) WHERE _change_type = 'insert'")
    assert (rows.columns, [tuple(row)[:4] for row in rows.collect()]) == (columns, [(1, None, "insert", 1)])


def test_ranges_without_an_end_follow_the_table(session: Any, path: str) -> None:
    """A view or DataFrame of a range that ends after the newest version also has the changes of later
    commits."""
    view = "CREATE TEMPORARY VIEW of_changes AS SELECT id, _change_type FROM table_changes_by_path"
    session.sql(f"{view}('{path}', 0)")
    reader = session.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 0)
    frames = [reader.option("endingVersion", last).load(path) for last in (0, 1, 7)]
    try:
        session.sql(f"INSERT INTO delta.`{path}` VALUES (1)")
        session.sql(f"DELETE FROM delta.`{path}`")
        assert sorted(map(tuple, session.table("of_changes").collect())) == [(1, "delete"), (1, "insert")]
        counted = session.sql("SELECT count(*) FROM of_changes WHERE _change_type = 'delete'")
        assert counted.first()[0] == 1
    finally:
        session.sql("DROP VIEW of_changes")
    assert [frame.count() for frame in frames] == [0, 1, 2]


def test_options_of_the_range(session: Any, path: str) -> None:
    """In `load`, a version goes before a timestamp. None is a wrong end, and no end."""
    reader = session.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 0)
    assert reader.option("startingTimestamp", "2000-01-01").load(path).count() == 0
    for end, condition in (
        ("endingTimestamp", "DELTA_TIMESTAMP_INVALID"),
        ("endingVersion", "DELTA_VERSION_INVALID"),
    ):
        with pytest.raises(PySparkException) as raised:
            reader.option(end, None).load(path)
        assert raised.value.getCondition() == condition


def test_options_beside_time_travel(session: Any, path: str) -> None:
    """A table with time travel has neither a change feed nor another version in its options."""
    feed = "'readChangeFeed' = 'true'"
    for options, condition in (
        (feed, "DELTA_NO_START_FOR_CDC_READ"),
        (f"{feed}, 'startingVersion' = '0'", "DELTA_UNSUPPORTED_TIME_TRAVEL_VIEWS"),
        ("'versionAsOf' = '0'", "MULTIPLE_TIME_TRAVEL_SPEC"),
    ):
        statement = f"SELECT * FROM delta.`{path}` VERSION AS OF 0 WITH ({options})"
        assert condition_of(session, statement)[0] == condition
    both = f"{feed}, 'startingVersion' = '0', 'startingTimestamp' = '2000-01-01'"
    condition = condition_of(session, f"SELECT * FROM delta.`{path}` WITH ({both})")
    assert condition == ("DELTA_MULTIPLE_CDC_BOUNDARY", "42614")
