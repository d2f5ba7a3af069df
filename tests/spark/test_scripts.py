"""Scripts (BEGIN … END) over Delta tables. The expected results are those of delta-spark 4.4 on Spark 4.2."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from deltaic import DeltaTable, errors
from deltaic.spark.scripts import parse_script


@pytest.fixture
def table(session: Any, tmp_path: Path) -> str:
    session.sql(f"CREATE TABLE delta.`{tmp_path}/t` (id BIGINT, v INT) USING delta")
    return f"delta.`{tmp_path}/t`"


def ids(session: Any, table: str) -> list[int]:
    return [row.id for row in session.sql(f"SELECT id FROM {table} ORDER BY id").collect()]


def test_statements_run_in_turn_and_the_last_query_answers(session: Any, table: str) -> None:
    answer = session.sql(
        f"BEGIN INSERT INTO {table} VALUES (1, 1); SELECT 7 AS n; SELECT id, v FROM {table}; DELETE FROM"
        f" {table}; END"
    )
    assert [tuple(row) for row in answer.collect()] == [(1, 1)]
    assert ids(session, table) == []
    assert session.sql(f"BEGIN INSERT INTO {table} VALUES (2, 2); END").columns == []


def test_variables_and_loops(session: Any, table: str) -> None:
    script = f"""
        BEGIN
          DECLARE x INT DEFAULT 5;
          DECLARE low, high = 0;
          WHILE x > 3 DO INSERT INTO {table} VALUES (x, x); SET x = x - 1; END WHILE;
          again: REPEAT SET low = low + 1; IF low = 2 THEN ITERATE again; END IF;
            INSERT INTO {table} VALUES (100 + low, 0);
          UNTIL low >= 3 END REPEAT again;
          out: LOOP SET high = high + 1; IF high > 9 THEN LEAVE out; END IF; END LOOP;
          SELECT x, low, high, (SELECT count(*) FROM {table}) AS rows;
        END"""
    assert [tuple(row) for row in session.sql(script).collect()] == [(3, 3, 10, 4)]
    assert ids(session, table) == [4, 5, 101, 103]


def test_a_new_variable_logs_no_error(session: Any, table: str) -> None:
    """PySpark logs each error of a statement with its stack trace, also the one that shows that there is no
    session variable of the name."""
    from pyspark.logger import PySparkLogger

    logger, records = PySparkLogger.getLogger("SQLQueryContextLogger"), []
    handler = logging.Handler()
    handler.emit = records.append  # type: ignore[method-assign]
    logger.addHandler(handler)
    try:
        session.sql(f"BEGIN DECLARE fresh INT DEFAULT 5; INSERT INTO {table} VALUES (fresh, 1); END")
        assert records == []
        with pytest.raises(Exception, match="UNRESOLVED_COLUMN"):
            session.sql("DECLARE VARIABLE copy = system.session.absent")
        assert len(records) == 1
    finally:
        logger.removeHandler(handler)


def test_choices(session: Any, table: str) -> None:
    script = f"""
        BEGIN
          IF (SELECT count(*) FROM {table}) > 0 THEN SELECT 'full';
          ELSEIF 1 = 1 THEN INSERT INTO {table} VALUES (1, 1); ELSE SELECT 'no'; END IF;
          CASE (SELECT max(id) FROM {table})
            WHEN 0 THEN SELECT 'zero'; WHEN 1 THEN INSERT INTO {table} VALUES (2, 2); END CASE;
          CASE WHEN CASE WHEN true THEN 1 END = 2 THEN SELECT 'never';
            ELSE INSERT INTO {table} VALUES (3, 3); END CASE;
        END"""
    session.sql(script)
    assert ids(session, table) == [1, 2, 3]
    with pytest.raises(errors.InvalidArgumentError, match="CASE_NOT_FOUND"):
        session.sql(f"BEGIN CASE WHEN false THEN DELETE FROM {table}; END CASE; END")


def test_each_row_of_a_query(session: Any, table: str) -> None:
    session.sql(f"INSERT INTO {table} VALUES (1, 1), (2, 2), (3, NULL)")
    session.sql(
        f"BEGIN FOR r AS SELECT id, v AS w FROM {table} WHERE id < 3 DO UPDATE {table} SET v = r.w * 10 WHERE"
        " id = r.id; END FOR; END"
    )
    update = f"UPDATE {table} SET v = coalesce(w, 7) WHERE id = n - 1"
    session.sql(f"BEGIN FOR SELECT id + 1 AS n, v AS w FROM {table} WHERE id = 3 DO {update}; END FOR; END")
    assert [tuple(row) for row in session.sql(f"SELECT id, v FROM {table} ORDER BY id").collect()] == [
        (1, 10),
        (2, 20),
        (3, 7),
    ]


def test_an_inner_variable_hides_an_outer_one(session: Any, table: str) -> None:
    session.sql("DECLARE OR REPLACE VARIABLE x = 1")
    try:
        script = f"""
            BEGIN
              DECLARE x STRING DEFAULT 'outer';
              BEGIN DECLARE x = 9L; INSERT INTO {table} VALUES (x, 0); END;
              SELECT x, (SELECT count(*) FROM {table}) AS n;
            END"""
        assert session.sql(script).first() == ("outer", 1)
        assert session.sql("SELECT x").first() == (1,)
    finally:
        session.sql("DROP TEMPORARY VARIABLE x")
    session.sql(f"BEGIN DECLARE x = 3L; DELETE FROM {table} WHERE v = x; END")
    with pytest.raises(Exception, match="UNRESOLVED_COLUMN"):
        session.sql("SELECT x").collect()


def test_handlers(session: Any, table: str) -> None:
    caught = f"""
        BEGIN
          DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN INSERT INTO {table} VALUES (2, 2); SELECT 'caught'; END;
          INSERT INTO {table} VALUES (1, 1);
          INSERT INTO {table} VALUES (1, 1, 1);
          INSERT INTO {table} VALUES (3, 3);
        END"""
    assert session.sql(caught).first() == ("caught",)
    assert ids(session, table) == [1, 2]
    session.sql(f"""
        BEGIN
          DECLARE mine CONDITION FOR SQLSTATE '22012';
          DECLARE CONTINUE HANDLER FOR mine, CAST_INVALID_INPUT INSERT INTO {table} VALUES (4, 4);
          BEGIN UPDATE {table} SET v = 1 DIV (id - 1); INSERT INTO {table} VALUES (5, 5); END;
          UPDATE {table} SET v = 'x';
          INSERT INTO {table} VALUES (6, 6);
        END""")
    assert ids(session, table) == [1, 2, 4, 4, 5, 6]


def test_an_error_without_a_handler_ends_the_script(session: Any, table: str) -> None:
    with pytest.raises(errors.SchemaMismatchError) as caught:
        session.sql(f"""
            BEGIN
              DECLARE EXIT HANDLER FOR DIVIDE_BY_ZERO SELECT 1;
              DECLARE left_over = 1;
              INSERT INTO {table} VALUES (1, 1);
              INSERT INTO {table} VALUES (1, 1, 1);
              INSERT INTO {table} VALUES (2, 2);
            END""")
    assert caught.value.getCondition() == "DELTA_METADATA_MISMATCH"
    with pytest.raises(Exception, match="UNRESOLVED_COLUMN"):
        session.sql("SELECT left_over").collect()
    assert ids(session, table) == [1]


def test_values_fill_a_script(session: Any, table: str) -> None:
    session.sql(
        f"BEGIN INSERT INTO {table} VALUES (:id, 0); DELETE FROM {table} WHERE id < :low; END",
        {"id": 3, "low": 2},
    )
    assert ids(session, table) == [3]


def test_merge_with_a_variable(session: Any, table: str) -> None:
    session.sql(f"""
        BEGIN
          DECLARE bonus INT DEFAULT 10;
          INSERT INTO {table} VALUES (1, 1);
          MERGE INTO {table} t USING (SELECT id FROM VALUES (1L), (2L) AS x(id)) s ON t.id = s.id
            WHEN MATCHED THEN UPDATE SET v = t.v + bonus
            WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, bonus);
        END""")
    assert [tuple(row) for row in session.sql(f"SELECT id, v FROM {table} ORDER BY id").collect()] == [
        (1, 11),
        (2, 10),
    ]


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("BEGIN DELETE FROM t END", "does not parse"),
        ("BEGIN IF true THEN DELETE FROM t; END; END", "does not parse"),
        ("a: BEGIN DELETE FROM t; END b", "does not parse"),
        ("BEGIN SIGNAL SQLSTATE '45000'; END", "SIGNAL in a script"),
    ],
)
def test_what_is_no_script_here(script: str, message: str) -> None:
    with pytest.raises((errors.InvalidArgumentError, errors.UnsupportedFeatureError), match=message):
        parse_script(script)


def test_a_failed_statement_leaves_those_before_it(session: Any, table: str, tmp_path: Path) -> None:
    with pytest.raises(errors.DeltaError):
        session.sql(f"BEGIN INSERT INTO {table} VALUES (1, 1); DELETE FROM delta.`{tmp_path}/none`; END")
    assert DeltaTable(tmp_path / "t").version == 1
