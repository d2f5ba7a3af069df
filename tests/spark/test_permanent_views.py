"""Permanent views over Delta tables: their rows by each of their names, their rows after their tables have
changed, and the SQL settings under which they were created.

Rules: Spark's SQLViewSuite and SchemaBindingSuite, with Delta tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from deltaic.errors import InvalidArgumentError, SchemaMismatchError, UnsupportedFeatureError

pytestmark = pytest.mark.usefixtures("catalog_of_the_test_alone")


def rows(frame: Any) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, frame.collect()), key=repr)


@pytest.fixture
def based(session: Any) -> Iterator[Any]:
    """A session with the table `pv_base`, and without the views of a test at its end."""
    session.sql("CREATE TABLE pv_base (id INT, name STRING) USING delta")
    session.sql("INSERT INTO pv_base VALUES (1, 'a'), (2, 'b')")
    yield session
    for view in session.catalog.listTables():
        if view.tableType == "VIEW":
            session.sql(f"DROP VIEW {view.name}")


def test_readers_take_a_view(based: Any) -> None:
    based.sql("CREATE VIEW pv_read AS SELECT id, name FROM pv_base")
    expected = [(1, "a"), (2, "b")]
    for name in ("pv_read", "default.pv_read", "spark_catalog.default.pv_read"):
        assert rows(based.read.table(name)) == rows(based.table(name)) == expected
    assert rows(based.read.table("pv_read").select("pv_read.id")) == [(1,), (2,)]
    assert rows(based.read.option("readChangeFeed", "true").table("pv_read")) == expected
    for option, value in (("versionAsOf", 0), ("timestampAsOf", "2030-01-01")):
        with pytest.raises(UnsupportedFeatureError, match="a view has no versions") as raised:
            based.read.option(option, value).table("pv_read")
        assert raised.value.getCondition() == "UNSUPPORTED_FEATURE.TIME_TRAVEL"
    with pytest.raises(Exception, match=r"[Ss]chema"):
        based.read.schema("id INT").table("pv_read").collect()


def test_rows_of_a_view_are_cached(based: Any) -> None:
    based.sql("CREATE VIEW pv_cached AS SELECT id FROM pv_base WHERE id > 0")
    catalog = based.catalog
    assert not catalog.isCached("pv_cached")
    ways = (
        (lambda: catalog.cacheTable("pv_cached"), lambda: catalog.uncacheTable("pv_cached")),
        (lambda: based.sql("CACHE TABLE pv_cached"), lambda: based.sql("UNCACHE TABLE pv_cached")),
        (
            lambda: based.sql("CACHE LAZY TABLE pv_cached OPTIONS ('storageLevel' 'DISK_ONLY')"),
            lambda: based.sql("UNCACHE TABLE IF EXISTS pv_cached"),
        ),
    )
    for cache, uncache in ways:
        cache()
        assert catalog.isCached("pv_cached")
        assert catalog.isCached("default.pv_cached")
        based.sql("ANALYZE TABLE pv_cached COMPUTE STATISTICS")
        uncache()
        assert not catalog.isCached("pv_cached")
    catalog.refreshTable("pv_cached")
    based.sql("REFRESH TABLE pv_cached")
    with pytest.raises(UnsupportedFeatureError) as raised:
        based.sql("ANALYZE TABLE pv_cached COMPUTE STATISTICS FOR ALL COLUMNS")
    assert raised.value.getCondition() == "UNSUPPORTED_FEATURE.ANALYZE_VIEW"


def test_a_column_of_a_view_is_described(based: Any) -> None:
    if not hasattr(based, "_jsparkSession"):
        pytest.skip("Spark Connect describes no column of a DataFrame")
    based.sql("CREATE VIEW pv_described (k COMMENT 'the key', name) AS SELECT * FROM pv_base")
    for words in ("DESCRIBE", "DESC TABLE", "DESCRIBE EXTENDED"):
        shown = dict(map(tuple, based.sql(f"{words} pv_described k").collect()))
        assert (shown["data_type"], shown["comment"]) == ("int", "the key")


def test_schema_modes(based: Any) -> None:
    """What a view shows after its table has got a column, a wider type and fewer columns."""
    if not hasattr(based, "_jsparkSession"):
        with pytest.raises(
            UnsupportedFeatureError, match="the schema mode of a view is not supported on Spark Connect"
        ):
            based.sql("CREATE VIEW pv_evolved WITH SCHEMA EVOLUTION AS SELECT * FROM pv_base")
        return
    modes = {
        "binding": "BINDING",
        "compensated": "COMPENSATION",
        "typed": "TYPE EVOLUTION",
        "evolved": "EVOLUTION",
    }
    for name, mode in modes.items():
        based.sql(f"CREATE VIEW pv_{name} WITH SCHEMA {mode} AS SELECT * FROM pv_base")
        assert f"WITH SCHEMA {mode}\n" in based.sql(f"SHOW CREATE TABLE pv_{name}").first()[0]
    based.sql("CREATE VIEW pv_named (a COMMENT 'x', b) WITH SCHEMA EVOLUTION AS SELECT * FROM pv_base")
    based.sql("ALTER TABLE pv_base SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    based.sql("ALTER TABLE pv_base SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
    based.sql("ALTER TABLE pv_base ADD COLUMN more INT")
    based.sql("ALTER TABLE pv_base ALTER COLUMN id TYPE BIGINT")
    types = {name: based.table(f"pv_{name}").dtypes for name in ("compensated", "typed", "evolved", "named")}
    name = ("name", "string")
    assert types == {
        "compensated": [("id", "int"), name],
        "typed": [("id", "bigint"), name],
        "evolved": [("id", "bigint"), name, ("more", "int")],
        "named": [("a", "bigint"), ("b", "string")],
    }
    with pytest.raises(Exception, match="CANNOT_UP_CAST_DATATYPE"):
        based.table("pv_binding")
    shown = [tuple(row)[:2] for row in based.sql("DESCRIBE pv_evolved").collect()]
    assert shown == [("id", "bigint"), name, ("more", "int")]
    assert based.catalog.listColumns("pv_typed")[0].dataType == "bigint"
    assert {row.col_name: row.comment for row in based.sql("DESCRIBE pv_named").collect()}["a"] == "x"
    based.sql("INSERT INTO pv_base VALUES (5000000000, 'c', 3)")
    with pytest.raises(Exception, match="CAST_OVERFLOW"):
        based.table("pv_compensated").collect()
    assert rows(based.sql("SELECT max(id) FROM pv_typed")) == [(5000000000,)]
    based.sql("ALTER TABLE pv_base DROP COLUMN name")
    assert based.sql("SELECT * FROM pv_evolved").columns == ["id", "more"]
    for view in ("compensated", "typed", "named"):
        with pytest.raises(Exception, match="INCOMPATIBLE_VIEW_SCHEMA_CHANGE"):
            based.sql(f"SELECT * FROM pv_{view}")
    based.sql("ALTER VIEW pv_compensated WITH SCHEMA EVOLUTION")
    assert based.table("pv_compensated").columns == ["id", "more"]


def test_altered_views_keep_their_clauses(based: Any) -> None:
    based.sql(
        "CREATE VIEW pv_altered COMMENT 'y' WITH SCHEMA TYPE EVOLUTION TBLPROPERTIES ('k' = 'w') AS SELECT id"
        " FROM pv_base"
    )
    based.sql("ALTER VIEW pv_altered AS SELECT name, id FROM pv_base")
    assert based.table("pv_altered").columns == ["name", "id"]
    made = based.sql("SHOW CREATE TABLE pv_altered").first()[0]
    assert all(part in made for part in ("COMMENT 'y'", "'k' = 'w'", "WITH SCHEMA TYPE EVOLUTION"))
    based.sql("ALTER VIEW pv_altered SET TBLPROPERTIES ('q' = '1')")
    based.sql("ALTER VIEW pv_altered UNSET TBLPROPERTIES ('k')")
    properties = dict(map(tuple, based.sql("SHOW TBLPROPERTIES pv_altered").collect()))
    assert ("k" in properties, properties["q"]) == (False, "1")
    assert rows(based.table("pv_altered")) == [("a", 1), ("b", 2)]


def test_a_view_is_read_with_its_own_settings(based: Any) -> None:
    """Also a view over views, each with its own."""
    if not hasattr(based, "_jsparkSession"):
        pytest.skip("on Spark Connect a view is read with the settings of the session")
    zone = based.conf.get("spark.sql.session.timeZone")
    try:
        based.conf.set("spark.sql.ansi.enabled", "false")
        based.sql("CREATE VIEW pv_lenient AS SELECT CAST(name AS INT) AS n, id FROM pv_base")
        based.conf.set("spark.sql.ansi.enabled", "true")
        based.conf.set("spark.sql.session.timeZone", "America/New_York")
        based.sql(
            "CREATE VIEW pv_zoned AS SELECT CAST('2024-01-01 00:00:00' AS TIMESTAMP) AS t, n FROM pv_lenient"
        )
        based.conf.set("spark.sql.session.timeZone", "UTC")
        based.sql(
            "CREATE VIEW pv_nested AS SELECT unix_seconds(t) AS t, n,"
            " unix_seconds(TIMESTAMP'2024-01-01') AS u FROM pv_zoned"
        )
        assert rows(based.table("pv_lenient")) == rows(based.sql("SELECT * FROM pv_lenient"))
        assert rows(based.sql("SELECT * FROM pv_lenient")) == [(None, 1), (None, 2)]
        assert rows(based.table("pv_nested")) == [(1704085200, None, 1704067200)] * 2
        with pytest.raises(Exception, match="CAST_INVALID_INPUT"):
            based.sql("SELECT CAST(name AS INT) FROM pv_base").collect()
    finally:
        based.conf.unset("spark.sql.ansi.enabled")
        based.conf.set("spark.sql.session.timeZone", zone)


def test_a_view_of_metadata_columns(based: Any) -> None:
    if not hasattr(based, "_jsparkSession"):
        pytest.skip("the columns of a table's entry are those of its rows on Spark Connect")
    based.sql("CREATE VIEW pv_files AS SELECT id, _metadata.file_path IS NOT NULL AS has_file FROM pv_base")
    assert rows(based.table("pv_files")) == [(1, True), (2, True)]


def test_columns_of_a_new_view_are_checked(based: Any) -> None:
    for names, kind in (("a", "TOO_MANY"), ("a, b, c", "NOT_ENOUGH")):
        with pytest.raises(InvalidArgumentError) as raised:
            based.sql(f"CREATE VIEW pv_wrong ({names}) AS SELECT id, name FROM pv_base")
        assert raised.value.getCondition() == f"CREATE_VIEW_COLUMN_ARITY_MISMATCH.{kind}_DATA_COLUMNS"
        assert raised.value.getMessageParameters()["dataColumns"] == "`id`, `name`"
    for columns in ("id, id", "id, name AS ID"):
        with pytest.raises(SchemaMismatchError) as twice:
            based.sql(f"CREATE VIEW pv_wrong AS SELECT {columns} FROM pv_base")
        assert twice.value.getCondition() == "COLUMN_ALREADY_EXISTS"
    with pytest.raises(InvalidArgumentError) as doubled:
        based.sql("CREATE VIEW pv_wrong COMMENT 'a' COMMENT 'b' AS SELECT id FROM pv_base")
    assert doubled.value.getCondition() == "DUPLICATE_CLAUSES"
    with pytest.raises(UnsupportedFeatureError, match="DEFAULT COLLATION"):
        based.sql("CREATE VIEW pv_wrong DEFAULT COLLATION UNICODE AS SELECT id FROM pv_base")
    with pytest.raises(Exception, match="TEMPORARY_VIEW_WITH_SCHEMA_BINDING_MODE"):
        based.sql("CREATE TEMPORARY VIEW pv_wrong WITH SCHEMA BINDING AS SELECT id FROM pv_base")
    assert not based.catalog.tableExists("pv_wrong")


def test_statements_read_views(based: Any) -> None:
    """Over other views, joins with a table of another format, and common table expressions."""
    based.sql("CREATE TABLE pv_parquet USING parquet AS SELECT 1 AS id, 'p' AS p")
    based.sql("CREATE VIEW pv_joined AS SELECT b.id, p.p FROM pv_base b JOIN pv_parquet p ON b.id = p.id")
    based.sql(
        "CREATE VIEW pv_cte AS WITH x AS (SELECT id FROM pv_base), pv_base AS (SELECT 5 AS id)"
        " SELECT x.id, (SELECT max(id) FROM pv_base) AS m FROM x WHERE x.id IN (SELECT id FROM pv_joined)"
    )
    assert rows(based.read.table("pv_cte")) == [(1, 5)]
    based.sql("CREATE TABLE pv_target USING delta AS SELECT id, p AS name FROM pv_joined")
    based.sql("INSERT INTO pv_target SELECT id, name FROM pv_base WHERE id IN (SELECT id + 1 FROM pv_cte)")
    based.sql("CREATE VIEW pv_source AS TABLE pv_base")
    based.sql(
        "MERGE INTO pv_target t USING pv_source ON t.id = pv_source.id AND t.id = 1 WHEN MATCHED THEN"
        " UPDATE SET name = concat(pv_source.name, '!') WHEN NOT MATCHED THEN INSERT *"
    )
    assert rows(based.table("pv_target")) == [(1, "a!"), (2, "b"), (2, "b")]
