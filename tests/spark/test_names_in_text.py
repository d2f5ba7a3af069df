"""Words of a statement that have several meanings: a lambda's variable and a table's alias, a column and a
clause, a schema and a table. Spark decides by its grammar, for Delta tables as for tables of Parquet."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

import deltaic
from deltaic.errors import DeltaError, InvalidArgumentError
from deltaic.spark.stream_write import BatchWriter
from deltaic.spark.tables import DeltaTable

pytestmark = pytest.mark.usefixtures("catalog_of_the_test_alone")


def rows(frame: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in frame.collect())


def made(session: Any, name: str, *numbers: int) -> None:
    session.sql(f"CREATE TABLE {name} (id INT, word STRING) USING delta")
    if numbers:
        session.sql(f"INSERT INTO {name} VALUES " + ", ".join(f"({each}, '{name}')" for each in numbers))


ITEMS = "SELECT 1 AS id, 100 AS price, array(named_struct('price', 1)) AS items"
MORE = "SELECT 2, 1, array(named_struct('price', 100))"


def test_a_variable_of_a_lambda_hides_the_alias_of_the_table(session: Any) -> None:
    for change, left in {
        "DELETE FROM hidden t WHERE exists(items, t -> t.price > 50)": [(1, 100)],
        "DELETE FROM hidden t WHERE exists(items, t -> t.price > 50 AND t.price < 1000)": [(1, 100)],
        "DELETE FROM hidden t WHERE exists(items, i -> i.price > 50) AND t.price = 1": [(1, 100)],
        "UPDATE hidden x SET price = aggregate(items, 0, (a, x) -> a + x.price)": [(1, 1), (2, 100)],
        "UPDATE hidden x SET price = aggregate(items, x.id, (a, b) -> a + b.price)": [(1, 2), (2, 102)],
    }.items():
        session.sql(f"CREATE OR REPLACE TABLE hidden USING delta AS {ITEMS} UNION ALL {MORE}")
        session.sql(change)
        assert rows(session.sql("SELECT id, price FROM hidden")) == left, change
    session.sql(f"CREATE OR REPLACE TABLE hidden USING delta AS {ITEMS} UNION ALL {MORE}")
    DeltaTable.forName(session, "hidden").alias("t").delete("exists(items, t -> t.price > 50)")
    assert rows(session.sql("SELECT id FROM hidden")) == [(1,)]


def test_a_variable_of_a_lambda_in_the_process(tmp_path: Path) -> None:
    place = f"delta.`{tmp_path / 't'}`"
    deltaic.sql(f"CREATE TABLE {place} (id INT, price INT, items ARRAY<STRUCT<price INT>>)")
    deltaic.sql(f"INSERT INTO {place} {ITEMS} UNION ALL {MORE}")
    deltaic.sql(f"DELETE FROM {place} t WHERE exists(items, t -> t.price > 50)")
    assert deltaic.DeltaTable(tmp_path / "t").scan(columns=["id"]).to_pylist() == [{"id": 1}]


def test_names_of_another_current_catalog_are_not_those_of_the_session_catalog(
    session: Any, tmp_path: Path
) -> None:
    made(session, "both", 1)
    session._jvm.java.lang.System.setProperty("derby.stream.error.file", str(tmp_path / "derby.log"))
    for key, value in {
        "": "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog",
        ".url": f"jdbc:derby:{tmp_path / 'derby'};create=true",
        ".driver": "org.apache.derby.jdbc.EmbeddedDriver",
    }.items():
        session.conf.set(f"spark.sql.catalog.derby{key}", value)
    try:
        session.conf.set("spark.sql.sources.default", "delta")
        session.sql("CREATE NAMESPACE derby.APP2")
        session.sql("USE derby.APP2")
        session.sql("CREATE TABLE both (n INT)")
        session.sql("INSERT INTO both VALUES (5)")
        assert rows(session.sql("SELECT * FROM both")) == [(5,)]
        assert rows(session.sql("SELECT id FROM spark_catalog.default.both")) == [(1,)]
        session.sql("CREATE SCHEMA spark_catalog.derby")
        session.sql("USE spark_catalog.default")
        made(session, "spark_catalog.derby.both", 1)
        with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
            session.sql("SELECT * FROM derby.both")
        session.sql("DROP SCHEMA spark_catalog.derby CASCADE")
        session.sql("USE derby.APP2")
        session.sql("DROP TABLE both")
    finally:
        session.conf.unset("spark.sql.sources.default")
        session.sql("USE spark_catalog.default")
    assert rows(session.sql("SELECT id FROM both")) == [(1,)]


def test_a_view_does_not_replace_a_table(session: Any) -> None:
    made(session, "kept", 1)
    made(session, "source_of_view", 2)
    with pytest.raises(InvalidArgumentError, match="EXPECT_VIEW_NOT_TABLE") as caught:
        session.sql("CREATE OR REPLACE VIEW kept AS SELECT * FROM source_of_view")
    assert caught.value.getCondition() == "EXPECT_VIEW_NOT_TABLE.NO_ALTERNATIVE"  # type: ignore[attr-defined]
    assert rows(session.sql("SELECT id FROM kept")) == [(1,)]
    session.createDataFrame([(9,)], ["id"]).createOrReplaceTempView("beside")
    session.sql("CREATE VIEW beside AS SELECT * FROM source_of_view")
    assert rows(session.sql("SELECT id FROM default.beside")) == [(2,)]
    session.catalog.dropTempView("beside")


def test_a_view_reads_the_tables_of_its_schema(session: Any) -> None:
    session.sql("CREATE SCHEMA IF NOT EXISTS viewed")
    made(session, "here", 1)
    made(session, "viewed.here", 2)
    session.sql("CREATE TABLE viewed.plain (id INT) USING parquet")
    session.sql("INSERT INTO viewed.plain VALUES (2)")
    session.sql("ALTER TABLE viewed.here SET TBLPROPERTIES (delta.enableChangeDataFeed = true)")
    session.sql("INSERT INTO viewed.here VALUES (3, 'c')")
    session.sql("USE viewed")
    try:
        session.sql("CREATE VIEW v AS SELECT here.id FROM here, plain WHERE plain.id = here.id")
        session.sql("CREATE VIEW w AS WITH here AS (SELECT 7 AS id) SELECT * FROM here")
        session.sql("CREATE VIEW c AS SELECT id FROM table_changes('here', 3)")
    finally:
        session.sql("USE default")
    session.createDataFrame([(1,)], ["id"]).createOrReplaceTempView("plain")
    assert rows(session.sql("SELECT * FROM viewed.v")) == rows(session.table("viewed.v")) == [(2,)]
    assert rows(session.sql("SELECT * FROM viewed.w")) == [(7,)]
    assert rows(session.sql("SELECT * FROM viewed.c")) == [(3,)]
    session.catalog.dropTempView("plain")
    stop, wrong = threading.Event(), []

    def read_view() -> None:
        while not stop.is_set():
            session.sql("SELECT * FROM viewed.v").collect()

    reader = threading.Thread(target=read_view)
    reader.start()
    for _ in range(5):
        wrong += [each for each in rows(session.sql("SELECT id FROM here")) if each != (1,)]
    stop.set()
    reader.join()
    assert (wrong, session.catalog.currentDatabase()) == ([], "default")
    session.sql("DROP SCHEMA viewed CASCADE")


def test_a_batch_without_the_id_of_its_query_is_refused(session: Any, tmp_path: Path) -> None:
    """With PYSPARK_PIN_THREAD=false the id is unknown: two queries would count as one, and rows be lost."""
    writer = BatchWriter.__new__(BatchWriter)
    object.__setattr__(writer, "checkpoint", None)
    with pytest.raises(InvalidArgumentError, match="PYSPARK_PIN_THREAD"):
        writer._query(session.range(1))


def test_a_subquery_of_a_dataframe_follows_its_table(session: Any) -> None:
    made(session, "outer_rows", 1, 2)
    made(session, "inner_rows", 1)
    frame = session.table("outer_rows").where("id IN (SELECT id FROM inner_rows)")
    session.sql("INSERT INTO inner_rows VALUES (2, 'b')")
    assert rows(frame.select("id")) == [(1,), (2,)]


def test_a_subquery_of_a_statement_leaves_cached_rows(session: Any) -> None:
    made(session, "held_rows", 1, 2)
    made(session, "changed_rows", 1, 2)
    cached = session.read.format("delta").option("versionAsOf", 1).table("held_rows").cache()
    assert cached.count() == 2
    session.sql("DELETE FROM changed_rows WHERE id IN (SELECT id FROM held_rows VERSION AS OF 1)")
    assert cached.storageLevel.useMemory
    cached.unpersist()


def test_the_history_names_tables_of_subqueries_as_the_statement_does(session: Any, tmp_path: Path) -> None:
    made(session, "shown_rows", 1, 2, 3, 4)
    made(session, "chosen", 1, 2)
    session.range(3, 4).write.format("delta").save(str(tmp_path))
    path = f"delta.`{tmp_path}`"
    session.sql("DELETE FROM shown_rows WHERE id IN (SELECT id FROM chosen WHERE chosen.id = 1)")
    session.sql("DELETE FROM shown_rows WHERE id = (SELECT max(c.id) FROM chosen VERSION AS OF 1 c)")
    session.sql(f"UPDATE shown_rows SET word = 'x' WHERE EXISTS (SELECT 1 FROM {path} o WHERE o.id = 3)")
    history = session.sql("DESCRIBE HISTORY shown_rows LIMIT 3").select("operationParameters.predicate")
    assert [json.loads(row.predicate) for row in history.collect()] == [
        [f"EXISTS(SELECT 1 FROM {path} AS o WHERE (o.id = 3))"],
        ["(id = (SELECT max(c.id) FROM chosen VERSION AS OF 1 AS c))"],
        ["(id IN (SELECT id FROM chosen WHERE (chosen.id = 1)))"],
    ]


def test_the_most_specific_handler_of_a_script_runs(session: Any) -> None:
    made(session, "handled", 1)
    script = """-- two handlers
    BEGIN
      DECLARE EXIT HANDLER FOR SQLEXCEPTION SELECT 'any' AS handler;
      DECLARE EXIT HANDLER FOR DIVIDE_BY_ZERO SELECT 'zero' AS handler;
      SELECT 1 / 0 FROM handled;
    END"""
    assert rows(session.sql(script)) == [("zero",)]


def test_scripts_with_a_semicolon_in_a_text(session: Any) -> None:
    made(session, "scripted")
    session.sql(
        "BEGIN INSERT INTO scripted VALUES (3, 'a;b'); INSERT INTO scripted VALUES (4, 'END; x'); END"
    )
    assert rows(session.table("scripted")) == [(3, "a;b"), (4, "END; x")]


def test_words_of_a_query_that_name_no_table(session: Any) -> None:
    session.sql("CREATE TABLE day (id INT, day STRING) USING delta")
    session.sql("INSERT INTO day VALUES (1, 'm'), (2, 't')")
    session.sql("CREATE TABLE a USING delta AS SELECT * FROM day")
    for query, expected in {
        "SELECT a.id FROM a JOIN day b USING (id, day)": [(1,), (2,)],
        "SELECT id FROM a WHERE 'm' IS DISTINCT FROM day": [(2,)],
        "SELECT id IS NOT DISTINCT FROM 1, day FROM a": [(False, "t"), (True, "m")],
    }.items():
        assert rows(session.sql(query)) == expected, query
    session.sql("CREATE SCHEMA IF NOT EXISTS sales")
    made(session, "sales", 1)
    made(session, "sales.orders_of_day", 1)
    for listed, expected_names in (("TABLES", ["orders_of_day"]), ("VIEWS", [])):
        found = session.sql(f"SHOW {listed} FROM sales").where("NOT isTemporary").collect()
        assert [row[1] for row in found] == expected_names
    session.sql("DROP SCHEMA sales CASCADE")


def test_words_of_a_change_that_end_no_clause(session: Any) -> None:
    session.sql("CREATE TABLE st (id INT, then INT) USING delta")
    session.sql("INSERT INTO st VALUES (1, 10), (2, 20)")
    session.sql(
        "MERGE INTO st USING (SELECT 1 AS id, 7 AS when) k ON st.id = k.id WHEN MATCHED THEN"
        " UPDATE SET then = k.when + 5"
    )
    assert rows(session.table("st")) == [(1, 12), (2, 20)]
    session.sql("INSERT INTO st REPLACE WHERE id IS DISTINCT FROM 2 SELECT 3, 30")
    assert rows(session.table("st")) == [(2, 20), (3, 30)]
    session.sql("CREATE TABLE listed (values INT, id INT) USING delta")
    session.sql("INSERT INTO listed (values, id) VALUES (1, 2)")
    session.sql("INSERT INTO listed (VALUES (3, 4))")
    session.sql(
        "WITH c AS (SELECT 9 AS id) DELETE FROM listed WHERE abs(values) > 2 OR id IN (SELECT id FROM c)"
    )
    assert rows(session.table("listed")) == [(1, 2)]
    made(session, "s", 1)
    session.sql("MERGE INTO s USING (SELECT 1 AS k) ON s.id = k WHEN MATCHED THEN UPDATE SET word = 'x'")
    assert rows(session.table("s")) == [(1, "x")]


def test_a_table_may_be_called_clone(session: Any) -> None:
    session.sql("CREATE TABLE clone (id INT) USING parquet")
    session.sql("INSERT INTO clone VALUES (1)")
    assert rows(session.table("clone")) == [(1,)]


def test_the_colon_of_a_type_is_no_parameter(session: Any) -> None:
    made(session, "typed")
    session.sql(
        "INSERT INTO typed SELECT CAST(named_struct('a', :v, 'b', array(1))"
        " AS STRUCT<a:INT, b:ARRAY<INT>>).a, :w",
        {"v": 9, "w": "x"},
    )
    assert rows(session.table("typed")) == [(9, "x")]


def test_comments_in_comments(session: Any) -> None:
    made(session, "commented", 1, 2, 3)
    session.sql("DELETE /* a /* b */ c */ FROM commented WHERE /* d /* e */ id < */ id = 3")
    session.sql("/* a /* b */ UPDATE commented */ UPDATE commented SET id = 4 /* /* */ */ WHERE id = 1")
    assert rows(session.table("commented").select("id")) == [(2,), (4,)]


def test_tables_with_names_of_options(session: Any) -> None:
    for name in ("history", "detail", "query", "function", "extended"):
        session.sql(f"CREATE TABLE {name} ({name}_column INT) USING delta")
        for text in (name, f"TABLE {name}", f"default.{name}"):
            assert session.sql(f"DESCRIBE {text}").first()[0] == f"{name}_column", text
    assert session.sql("DESC DETAIL detail").first()["name"] == "spark_catalog.default.detail"
    assert session.sql("DESCRIBE HISTORY history").first()["operation"] == "CREATE TABLE"
    assert session.sql("DESCRIBE QUERY SELECT 1 AS one FROM history").first()[0] == "one"
    assert "abs" in session.sql("DESCRIBE FUNCTION abs").first()[0]


def test_columns_with_names_of_words_of_case(session: Any) -> None:
    session.sql("CREATE TABLE cased (id INT, end INT, case INT, when INT) USING delta")
    session.sql("INSERT INTO cased VALUES (1, 2, 3, 4), (2, 9, 8, 7)")
    session.sql("UPDATE cased SET id = CASE WHEN end < 5 THEN end ELSE when END, when = case WHERE case > 0")
    assert rows(session.table("cased")) == [(2, 2, 3, 3), (7, 9, 8, 8)]
    session.sql(
        "MERGE INTO cased USING (SELECT 2 AS id) s ON cased.id = s.id WHEN MATCHED AND end = 2 THEN UPDATE"
        " SET when = CASE WHEN end = 9 THEN 1 WHEN end = 2 THEN end END WHEN NOT MATCHED THEN INSERT (id)"
        " VALUES (s.id)"
    )
    session.sql("DELETE FROM cased WHERE CASE WHEN end = 9 THEN true ELSE false END")
    assert rows(session.table("cased")) == [(2, 2, 3, 2)]


def test_tables_and_aliases_with_names_of_clauses(session: Any) -> None:
    made(session, "set", 8)
    made(session, "first_list", 1)
    made(session, "second_list", 2)
    for query in (
        "SELECT w.id, second_list.id FROM VALUES (1) AS w(id), second_list",
        "SELECT window.id, second_list.id FROM first_list AS window, second_list",
        "SELECT set.id - 7, second_list.id FROM set, second_list WHERE set.id = 8",
        "SELECT set.id, second_list.id FROM first_list set, second_list",
        "SELECT limit.id, second_list.id FROM first_list limit JOIN set ON set.id > 0, second_list LIMIT 1",
        "TABLE first_list |> JOIN second_list |> SELECT first_list.id, second_list.id",
    ):
        assert rows(session.sql(query)) == [(1, 2)], query
    assert rows(session.sql("TABLE first_list ORDER BY first_list.id")) == [(1, "first_list")]
    assert rows(session.sql("TABLE set UNION TABLE default.first_list")) == [(1, "first_list"), (8, "set")]


def test_scripts_that_name_tables_when_they_run(session: Any) -> None:
    made(session, "run_rows", 1, 2)
    for script, expected in {
        "DECLARE n STRING DEFAULT 'run_rows'; SELECT id FROM IDENTIFIER(n)": [(1,), (2,)],
        "DECLARE n STRING DEFAULT 'run_rows'; DELETE FROM IDENTIFIER(n) WHERE id = 2": [],
        "EXECUTE IMMEDIATE 'SELECT id FROM run_rows'": [(1,)],
        "EXECUTE IMMEDIATE 'SELECT 7 AS id'": [(7,)],
        "DECLARE c INT; EXECUTE IMMEDIATE 'SELECT count(*) FROM run_rows' INTO c; SELECT c": [(1,)],
        "WITH s AS (SELECT 3 AS id) INSERT INTO run_rows SELECT id, 'x' FROM s": [],
        "DECLARE EXIT HANDLER FOR SQLEXCEPTION INSERT INTO run_rows VALUES (4, 'x'); SELECT 1 / 0": [],
    }.items():
        assert rows(session.sql(f"BEGIN {script}; END")) == expected, script
    assert rows(session.table("run_rows").select("id")) == [(1,), (3,), (4,)]


def test_a_space_in_a_parameter(session: Any) -> None:
    made(session, "spaced", 1, 2)
    session.sql("UPDATE spaced SET id = : new WHERE id = : old", {"new": 5, "old": 1})
    session.sql("DELETE FROM spaced WHERE id = : old", {"old": 2})
    assert rows(session.sql("SELECT id FROM spaced WHERE id = : new", {"new": 5})) == [(5,)]


def test_a_schema_called_delta(session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for has_schema in (False, True):
        if has_schema:
            session.sql("CREATE SCHEMA delta")
        for change in (
            lambda: session.sql("CREATE TABLE delta.relative (id INT) USING delta"),
            lambda: session.sql("CREATE TABLE delta.relative USING delta AS SELECT 1 AS id"),
            lambda: session.range(1).write.format("delta").saveAsTable("delta.relative"),
        ):
            with pytest.raises(DeltaError, match="called delta" if has_schema else "SCHEMA_NOT_FOUND"):
                change()
    session.sql("DROP SCHEMA delta")
    assert list(tmp_path.glob("relative*")) == []
