"""Statements whose tables are known only after values are filled in: IDENTIFIER(…), EXECUTE IMMEDIATE,
`mergeInto`, `spark.catalog`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import deltaic
import deltaic.spark
from deltaic.errors import InvalidArgumentError, UnsupportedFeatureError

pytest.importorskip("pyspark")


@pytest.fixture
def session(spark: Any) -> Any:
    made = spark.newSession()
    deltaic.spark.enable(made)
    return made


@pytest.fixture
def path(tmp_path: Path) -> str:
    place = str(tmp_path / "t")
    deltaic.write(place, [{"id": 1, "v": 10}, {"id": 2, "v": 20}])
    return place


def rows(path: str) -> list[tuple[int, int]]:
    return sorted((row["id"], row["v"]) for row in deltaic.DeltaTable(path).scan().to_arrow().to_pylist())


def test_identifier(session: Any, path: str) -> None:
    def run(text: str, args: Any = None) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in session.sql(text, args=args).collect()]

    name = f"delta.`{path}`"
    assert run(f"SELECT count(*) FROM IDENTIFIER('{name}')") == [(2,)]
    assert run(
        "SELECT max(v) FROM IDENTIFIER('delta.`' || :path || '`') VERSION AS OF 0 WHERE id < :n",
        {"path": path, "n": 2},
    ) == [(10,)]
    assert run("SELECT t.id FROM IDENTIFIER(?) AS t WHERE id = ?", [name, 2]) == [(2,)]
    assert run(f"SELECT IDENTIFIER(:c) FROM {name} WHERE IDENTIFIER(:c) > 10", {"c": "v"}) == [(20,)]
    run("UPDATE IDENTIFIER(:t) SET v = :v, id = IDENTIFIER('v') WHERE id = 1", {"t": name, "v": 11})
    assert rows(path) == [(2, 20), (10, 11)]
    run("INSERT INTO IDENTIFIER(?) VALUES (?, ?)", [name, 3, 30])
    run("DELETE FROM IDENTIFIER(:t) WHERE id = :i", {"t": name, "i": 10})
    assert rows(path) == [(2, 20), (3, 30)]
    assert len(run("DESCRIBE HISTORY IDENTIFIER(:t) LIMIT 2", {"t": name})) == 2
    session.range(2).createOrReplaceTempView("plain_numbers")
    assert run("SELECT count(*) FROM IDENTIFIER(:t)", {"t": "plain_numbers"}) == [(2,)]
    with pytest.raises(Exception, match="no_such"):
        run("SELECT * FROM IDENTIFIER(:t)", {"t": "no_such"})


def test_sql_functions_read_tables(session: Any, path: str) -> None:
    """Spark analyses the text of a function at each call, so the function follows the table."""
    table = f"delta.`{path}`"
    for replaces in ("", "OR REPLACE "):
        session.sql(
            f"CREATE {replaces}TEMPORARY FUNCTION larger(least INT) RETURNS BIGINT"
            f" RETURN (SELECT count(*) FROM {table} AS t WHERE t.v > least)"
        )
        assert session.sql("SELECT larger(10), larger(0)").first()[:] == (1, 2)
    deltaic.write(path, [{"id": 3, "v": 30}], mode="append")
    assert session.sql("SELECT larger(10)").first()[0] == 2
    session.sql("DROP TEMPORARY FUNCTION larger")
    for replaces in ("", "OR REPLACE "):
        with pytest.raises(UnsupportedFeatureError, match="a persistent SQL function"):
            session.sql(
                f"CREATE {replaces}FUNCTION larger() RETURNS BIGINT RETURN (SELECT count(*) FROM {table})"
            )


def test_identifier_of_a_new_table_and_of_a_view(session: Any) -> None:
    def run(text: str, **args: Any) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in session.sql(text, args=args).collect()]

    run("CREATE TABLE IDENTIFIER(:t || '_new') (`a-b` BIGINT) USING delta", t="identified")
    run("INSERT INTO IDENTIFIER(:t) VALUES (5)", t="default.identified_new")
    run("CREATE VIEW IDENTIFIER(:v) AS SELECT IDENTIFIER(:c) + 1 AS n FROM IDENTIFIER('identified_new')",
        v="identified_view", c="`a-b`")  # fmt: skip
    assert run("SELECT n, IDENTIFIER('max')(n) OVER () FROM IDENTIFIER(:v)", v="identified_view") == [(6, 6)]
    run("CREATE OR REPLACE TABLE IDENTIFIER(:t) USING delta AS SELECT 7L AS id", t="identified_new")
    assert run("SELECT * FROM identified_new") == [(7,)]
    run("DROP VIEW IDENTIFIER(:v)", v="identified_view")
    run("DROP TABLE IDENTIFIER(:t)", t="identified_new")


def test_execute_immediate(session: Any, path: str) -> None:
    name = f"delta.`{path}`"
    assert session.sql(f"EXECUTE IMMEDIATE 'SELECT v FROM {name} WHERE id = ?' USING 2").collect() == [(20,)]
    assert session.sql("EXECUTE IMMEDIATE 'SELECT 1 + ?' USING 2").collect() == [(3,)]
    session.sql(
        f"DECLARE OR REPLACE VARIABLE deltaic_q STRING DEFAULT 'UPDATE {name} SET v = :v WHERE id = :i'"
    )
    session.sql("EXECUTE IMMEDIATE deltaic_q USING (10 + 2 AS v, 1 AS i)")
    assert rows(path) == [(1, 12), (2, 20)]
    with pytest.raises(Exception, match="ALL_PARAMETERS_MUST_BE_NAMED"):
        session.sql("EXECUTE IMMEDIATE deltaic_q USING 5 AS v, 1")
    assert session.sql(
        f"BEGIN DELETE FROM {name} WHERE id = 1; SELECT count(*) FROM {name}; END"
    ).collect() == [(1,)]
    assert rows(path) == [(2, 20)]


def test_execute_immediate_into_variables(session: Any, path: str) -> None:
    session.sql(f"CREATE TABLE by_name USING delta LOCATION '{path}'")
    for variable in ("deltaic_n", "deltaic_m"):
        session.sql(f"DECLARE OR REPLACE VARIABLE {variable} INT")
    session.sql(
        "EXECUTE IMMEDIATE 'SELECT max(v), min(v) FROM by_name WHERE id < ?' INTO deltaic_n, deltaic_m"
        " USING 9"
    )
    assert session.sql("SELECT deltaic_n, deltaic_m").collect() == [(20, 10)]
    session.sql(f"EXECUTE IMMEDIATE 'SELECT v FROM delta.`{path}` WHERE id = 9' INTO deltaic_n")
    assert session.sql("SELECT deltaic_n").collect() == [(None,)]
    session.sql("EXECUTE IMMEDIATE 'DELETE FROM by_name WHERE id = ?' USING 1")
    assert rows(path) == [(2, 20)]
    with pytest.raises(UnsupportedFeatureError, match="INVALID_STATEMENT_FOR_EXECUTE_INTO"):
        session.sql("EXECUTE IMMEDIATE 'DELETE FROM by_name' INTO deltaic_n")
    session.sql("BEGIN IF 1 < 2 THEN DELETE FROM by_name; END IF; END")
    assert rows(path) == []
    session.sql("DROP TABLE by_name")


def test_merge_into(session: Any, path: str) -> None:
    from pyspark.sql import functions as F

    source = session.createDataFrame([(1, 100), (3, 300), (4, -1)], "id bigint, v bigint")
    merge = source.alias("s").mergeInto(f"delta.`{path}`", F.expr(f"s.id = delta.`{path}`.id"))
    merge = merge.whenMatched(F.col("s.v") > 50).update({"v": F.col(f"`{path}`.v") + source.v})
    merge = merge.whenNotMatched(source.v > 0).insert(
        {"id": F.col("s.id"), "v": F.transform(F.array("s.v"), lambda x: x + 1)[0]}
    )
    merge.whenNotMatchedBySource().delete().merge()
    assert rows(path) == [(1, 110), (3, 301)]
    wider = source.withColumn("w", F.lit("x")).where("id = 3").alias("s")
    wider.mergeInto(
        f"delta.`{path}`", F.expr(f"s.id = `{path}`.id")
    ).whenMatched().updateAll().withSchemaEvolution().merge()
    assert deltaic.DeltaTable(path).schema.names == ["id", "v", "w"]
    assert rows(path) == [(1, 110), (3, 300)]


def test_merge_into_a_name(session: Any, path: str) -> None:
    """Conditions and values may qualify columns by the table's name, as in Spark's documentation."""
    session.sql(f"CREATE TABLE merged USING delta LOCATION '{path}'")
    try:
        source = session.createDataFrame([(1, 100), (3, 300)], "id bigint, v bigint").alias("source")
        merge = source.mergeInto("merged", "merged.id = source.id")
        merge = merge.whenMatched("default.merged.v < 1000").update(
            {"v": "spark_catalog.default.merged.v + 1"}
        )
        merge.whenNotMatched().insertAll().merge()
        assert rows(path) == [(1, 11), (2, 20), (3, 300)]
        with pytest.raises(InvalidArgumentError, match="different aliases") as raised:
            source.alias("Merged").mergeInto("merged", "merged.id = 1").whenMatched().updateAll().merge()
        assert raised.value.getCondition() == "AMBIGUOUS_REFERENCE"  # merged.id of the table or the DataFrame
        assert rows(path) == [(1, 11), (2, 20), (3, 300)]
    finally:
        session.sql("DROP TABLE merged")


def test_merge_into_a_view(session: Any, path: str) -> None:
    """A temporary view of the whole table is a target, as in a MERGE statement. An update or insert without
    assignments sets every column, as in Spark."""
    session.sql(f"CREATE TEMPORARY VIEW viewed AS SELECT * FROM delta.`{path}`")
    source = session.createDataFrame([(1, 100), (3, 300)], "id bigint, v bigint").alias("s")
    merge = source.mergeInto("viewed", "viewed.id = s.id")
    merge.whenMatched().update({}).whenNotMatched().insert({}).merge()
    assert rows(path) == [(1, 100), (2, 20), (3, 300)]
    with pytest.raises(UnsupportedFeatureError, match="updateAll"):
        source.mergeInto("viewed", "viewed.id = s.id").whenNotMatchedBySource().update({})


def test_catalog(session: Any, path: str) -> None:
    catalog, name = session.catalog, f"delta.`{path}`"
    assert catalog.tableExists(name)
    assert not catalog.tableExists(f"delta.`{path}/nowhere`")
    assert not catalog.tableExists("no_such_table")
    assert not catalog.isCached(name)
    catalog.cacheTable(name)
    assert catalog.isCached(name)
    catalog.uncacheTable(name)
    assert not catalog.isCached(name)
    assert [each.name for each in catalog.listColumns(name)] == session.table(name).columns
    with pytest.raises(UnsupportedFeatureError, match=r"getTable.*DESCRIBE DETAIL"):
        catalog.getTable(name)
