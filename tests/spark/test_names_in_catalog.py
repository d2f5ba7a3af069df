"""Delta tables by name in Spark's session catalog (in memory). The same calls reach a Hive metastore, which
has the same interface.

Rules: delta-spark's DeltaTableCreationTests, DeltaDDLSuite and the documentation of its catalog.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import deltaic
import deltaic.spark
from deltaic.errors import (
    ConstraintViolationError,
    DeltaError,
    InvalidArgumentError,
    SchemaMismatchError,
    TableAlreadyExistsError,
    TableNotFoundError,
    UnsupportedFeatureError,
)
from deltaic.spark.tables import DeltaTable

pytestmark = pytest.mark.usefixtures("catalog_of_the_test_alone")


def ids(frame: Any) -> list[int]:
    return sorted(row.id for row in frame.select("id").collect())


def place(session: Any, name: str) -> Path:
    return Path(session.conf.get("spark.sql.warehouse.dir").removeprefix("file:"), name)


def test_a_managed_table_lies_in_the_warehouse_and_goes_with_its_name(session: Any) -> None:
    session.sql(
        "CREATE TABLE m (id BIGINT NOT NULL, p STRING COMMENT 'part') USING delta PARTITIONED BY (p) "
        "COMMENT 'of mine' TBLPROPERTIES (a = 'b')"
    )
    metadata = deltaic.DeltaTable(place(session, "m")).metadata
    assert (metadata.description, list(metadata.partition_columns), metadata.configuration["a"]) == (
        "of mine",
        ["p"],
        "b",
    )
    session.sql("INSERT INTO m VALUES (1, 'x'), (2, 'y'), (3, 'x')")
    session.sql("UPDATE m SET p = 'z' WHERE id = 3")
    session.sql("DELETE FROM default.m WHERE id = 2")
    session.sql(
        "MERGE INTO spark_catalog.default.m t USING (SELECT 4L AS id, 'w' AS p) s ON t.id = s.id WHEN NOT"
        " MATCHED THEN INSERT *"
    )
    assert (
        ids(session.table("m"))
        == ids(session.read.table("default.m"))
        == ids(session.sql("SELECT * FROM m"))
        == [1, 3, 4]
    )
    assert session.sql("SELECT count(*) AS n FROM m a JOIN default.m b ON a.id = b.id").first().n == 3
    assert ids(session.sql("SELECT default.m.id, m.p FROM default.m WHERE default.m.id < 4")) == [1, 3]
    assert ids(session.sql("WITH m AS (SELECT 7L AS id) SELECT * FROM m")) == [7]
    assert ids(session.sql("SELECT * FROM m VERSION AS OF 1")) == [1, 2, 3]
    assert ids(session.read.option("versionAsOf", 1).table("m")) == [1, 2, 3]
    with pytest.raises(TableAlreadyExistsError):
        session.sql("CREATE TABLE m (id BIGINT) USING delta")
    session.sql("CREATE TABLE IF NOT EXISTS m (other BIGINT) USING delta")
    assert session.catalog.tableExists("m")
    assert "m" in [each.name for each in session.catalog.listTables()]
    assert [(each.name, each.isPartition) for each in session.catalog.listColumns("m")] == [
        ("id", False),
        ("p", True),
    ]
    assert session.catalog.getTable("m").tableType == "MANAGED"
    session.sql("DROP TABLE m")
    assert not place(session, "m").exists()
    assert not session.catalog.tableExists("m")


def test_a_name_goes_where_its_table_is_not_made(session: Any) -> None:
    for statement in (
        "CREATE TABLE f (id BIGINT, c INT GENERATED ALWAYS AS (nothing)) USING delta",
        "CREATE TABLE f USING delta AS SELECT raise_error('no') AS id",
        "CREATE TABLE f (id BIGINT) USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'odd')",
    ):
        with pytest.raises(Exception, match=r"nothing|no|odd"):
            session.sql(statement)
        assert not session.catalog.tableExists("f")
        assert session.sql("SHOW TABLES").where("tableName = 'f'").count() == 0
    with pytest.raises(InvalidArgumentError):
        session.range(1).write.format("delta").option("delta.columnMapping.mode", "odd").saveAsTable("f")
    session.range(2).write.format("delta").saveAsTable("f")
    assert ids(session.table("f")) == [0, 1]


def test_an_external_table_keeps_its_files(session: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "with space")
    session.sql(f"CREATE TABLE e USING delta LOCATION '{path}' AS SELECT id FROM range(3)")
    assert ids(session.table("e")) == [0, 1, 2]
    session.sql("DROP TABLE e")
    assert deltaic.DeltaTable(path).scan().count() == 3
    session.sql(f"CREATE TABLE again USING delta LOCATION '{path}'")  # the table that is there gets a name
    assert ids(session.sql("FROM again SELECT id")) == [0, 1, 2]
    with pytest.raises(InvalidArgumentError, match="DELTA_CREATE_TABLE_SCHEME_MISMATCH"):
        session.sql(f"CREATE TABLE third (other STRING) USING delta LOCATION '{path}'")
    with pytest.raises(InvalidArgumentError, match="DELTA_TABLE_LOCATION_MISMATCH"):
        session.sql(f"CREATE OR REPLACE TABLE again (id INT) USING delta LOCATION '{tmp_path / 'other'}'")


def test_options_of_create_table_are_its_path_and_properties(session: Any, tmp_path: Path) -> None:
    session.sql(f"CREATE TABLE o (id BIGINT) USING delta OPTIONS (path '{tmp_path / 'o'}', 'team' = 'x')")
    properties = deltaic.DeltaTable(tmp_path / "o").metadata.configuration
    assert (properties["team"], properties["option.team"], "path" in properties) == ("x", "x", False)
    session.sql(f"CREATE TABLE again USING delta OPTIONS (path = '{tmp_path / 'o'}')")
    assert session.table("again").columns == ["id"]
    with pytest.raises(InvalidArgumentError, match="both name a path"):
        session.sql(f"CREATE TABLE p (id INT) USING delta OPTIONS (path '{tmp_path}') LOCATION '{tmp_path}'")


def test_a_table_of_hive_is_none_of_the_default_format(session: Any) -> None:
    from pyspark.errors import AnalysisException

    session.conf.set("spark.sql.sources.default", "delta")
    for clause in ("STORED AS PARQUET", "ROW FORMAT DELIMITED FIELDS TERMINATED BY ','"):
        with pytest.raises(AnalysisException) as raised:  # of Spark, as the session has no Hive
            session.sql(f"CREATE TABLE of_hive (id BIGINT) {clause}")
        assert raised.value.getCondition() == "NOT_SUPPORTED_COMMAND_WITHOUT_HIVE_SUPPORT"
    session.conf.unset("spark.sql.sources.default")


def test_write_to_takes_the_place_of_a_new_table(session: Any, tmp_path: Path) -> None:
    rows = session.range(3)
    by_property = rows.writeTo("placed").using("delta").tableProperty("location", str(tmp_path / "a"))
    by_property.tableProperty("comment", "of mine").create()
    rows.writeTo("placed_too").using("delta").option("path", str(tmp_path / "b")).create()
    for name, folder in (("placed", "a"), ("placed_too", "b")):
        rows.writeTo(name).append()
        assert ids(session.table(name)) == [0, 0, 1, 1, 2, 2]
        assert deltaic.DeltaTable(tmp_path / folder).version == 1
        assert session.catalog.getTable(name).tableType == "EXTERNAL"
    metadata = deltaic.DeltaTable(tmp_path / "a").metadata
    assert (metadata.description, metadata.configuration.keys() & {"comment", "location"}) == (
        "of mine",
        set(),
    )


def test_writers_cluster_by_fields_of_structs(session: Any) -> None:
    rows = session.sql("SELECT named_struct('id', 1) AS st, 2 AS `a b`")
    mapped = rows.write.format("delta").option("delta.columnMapping.mode", "name")
    mapped.clusterBy("st.id", "a b").saveAsTable("clustered")
    rows.select("st").writeTo("clustered_too").using("delta").clusterBy("st.id").create()
    for name, expected in (("clustered", ["st.id", "`a b`"]), ("clustered_too", ["st.id"])):
        assert session.sql(f"DESCRIBE DETAIL {name}").first().clusteringColumns == expected
    with pytest.raises(InvalidArgumentError, match="DELTA_COLUMN_NOT_FOUND_IN_SCHEMA"):
        rows.select("st").write.format("delta").clusterBy("nope").saveAsTable("clustered_by_none")


def test_set_location(session: Any, tmp_path: Path) -> None:
    for number, columns in enumerate(("id BIGINT, v INT", "id BIGINT, v INT", "id BIGINT")):
        session.sql(f"CREATE TABLE l{number} ({columns}) USING delta LOCATION '{tmp_path}/{number}'")
    session.sql("INSERT INTO l1 VALUES (1, 1)")
    session.sql(f"ALTER TABLE l0 SET LOCATION '{tmp_path}/1'")
    assert [tuple(row) for row in session.table("l0").collect()] == [(1, 1)]
    session.sql("INSERT INTO l0 VALUES (2, 2)")
    assert deltaic.DeltaTable(tmp_path / "1").scan().count() == 2
    assert deltaic.DeltaTable(tmp_path / "0").version == 0
    with pytest.raises(InvalidArgumentError, match="DELTA_SET_LOCATION_SCHEMA_MISMATCH"):
        session.sql(f"ALTER TABLE l0 SET LOCATION '{tmp_path}/2'")
    with pytest.raises(InvalidArgumentError, match="DELTA_MISSING_DELTA_TABLE"):
        session.sql(f"ALTER TABLE l0 SET LOCATION '{tmp_path}/none'")
    session.conf.set("spark.databricks.delta.alterLocation.bypassSchemaCheck", "true")
    try:
        session.sql(f"ALTER TABLE l0 SET LOCATION '{tmp_path}/2'")
    finally:
        session.conf.unset("spark.databricks.delta.alterLocation.bypassSchemaCheck")
    assert session.table("l0").columns == ["id"]


def test_the_history_of_a_table_that_a_writer_makes(session: Any) -> None:
    session.range(1).write.format("delta").saveAsTable("h")
    session.range(1).write.format("delta").mode("append").saveAsTable("h")
    session.range(1).write.format("delta").mode("append").saveAsTable("h2")
    history = session.sql("DESCRIBE HISTORY h").collect()
    assert [row.operation for row in history] == ["WRITE", "CREATE TABLE AS SELECT"]
    assert {name: history[1].operationParameters[name] for name in ("isManaged", "partitionBy")} == {
        "isManaged": "true",
        "partitionBy": "[]",
    }
    assert session.sql("DESCRIBE HISTORY h2").first().operation == "CREATE TABLE AS SELECT"
    assert (
        session.sql("SHOW TBLPROPERTIES h ('a.b')").first().value
        == "Table spark_catalog.default.h does not have property: a.b"
    )


def test_replacing(session: Any) -> None:
    session.sql("CREATE OR REPLACE TABLE r USING delta AS SELECT id FROM range(2)")
    session.sql("CREATE OR REPLACE TABLE r USING delta AS SELECT id, 'x' AS name FROM r WHERE id > 0")
    assert [tuple(row) for row in session.table("r").collect()] == [(1, "x")]
    session.sql("REPLACE TABLE r (id INT) USING delta")
    assert session.table("r").count() == 0
    with pytest.raises(InvalidArgumentError, match="TABLE_OR_VIEW_NOT_FOUND"):
        session.sql("REPLACE TABLE none (id INT) USING delta")


def test_tables_without_columns_and_external_ones_without_location(session: Any) -> None:
    session.sql("CREATE EXTERNAL TABLE bare USING delta")
    with pytest.raises(SchemaMismatchError, match="DELTA_READ_TABLE_WITHOUT_COLUMNS"):
        session.sql("SELECT * FROM bare")
    session.sql("ALTER TABLE bare ADD COLUMN id BIGINT")
    session.sql("INSERT INTO bare VALUES (1)")
    assert ids(session.sql("SELECT * FROM bare")) == [1]
    assert place(session, "bare").exists()


def test_replacing_by_a_writer_changes_partitions_and_clustering(session: Any) -> None:
    rows = session.range(4).selectExpr("id", "id % 2 AS p")
    rows.write.format("delta").saveAsTable("layout")
    rows.writeTo("layout").using("delta").partitionedBy("p").createOrReplace()
    assert session.sql("DESCRIBE DETAIL layout").first().partitionColumns == ["p"]
    rows.writeTo("layout").using("delta").clusterBy("p").createOrReplace()
    detail = session.sql("DESCRIBE DETAIL layout").first()
    assert (detail.partitionColumns, detail.clusteringColumns) == ([], ["p"])
    with pytest.raises(InvalidArgumentError, match="a partitioned table cannot replace a clustered one"):
        rows.writeTo("layout").using("delta").partitionedBy("p").createOrReplace()


def test_writes_to_an_existing_table_ignore_the_calls_that_define_one(session: Any) -> None:
    from pyspark.sql import functions as F

    rows = session.sql("SELECT 1L AS id, 'a' AS p")
    rows.writeTo("defined").using("delta").partitionedBy("p").create()
    rows.writeTo("defined").tableProperty("a", "b").append()
    rows.writeTo("defined").partitionedBy("id").append()
    rows.writeTo("defined").clusterBy("id").append()
    assert ids(session.table("defined")) == [1] * 4
    rows.writeTo("defined").tableProperty("a", "b").overwrite(F.lit(True))
    assert ids(session.table("defined")) == [1]
    rows.withColumn("id", F.lit(2)).writeTo("defined").partitionedBy("id").overwritePartitions()
    assert ids(session.table("defined")) == [2]
    detail = session.sql("DESCRIBE DETAIL defined").first()
    assert (detail.partitionColumns, "a" in detail.properties) == (["p"], False)


def test_an_overwrite_of_no_row_appends(session: Any) -> None:
    from pyspark.sql import functions as F

    rows = session.range(1)
    rows.write.format("delta").saveAsTable("more")
    rows.writeTo("more").overwrite(F.lit(False))
    assert ids(session.table("more")) == [0, 0]
    path = session.sql("DESCRIBE DETAIL more").first().location
    rows.write.format("delta").mode("overwrite").option("replaceWhere", "FALSE").save(path)
    assert ids(session.table("more")) == [0, 0, 0]
    # delta-spark holds new rows only against the operands of AND that read a column.
    rows.write.format("delta").mode("overwrite").option("replaceWhere", "1 = 2").save(path)
    rows.writeTo("more").overwrite(F.expr("false AND id = 0"))
    assert ids(session.table("more")) == [0] * 5
    for condition in (F.col("id") == 9, F.expr("id = 9 AND 1 = 1"), F.expr("NOT id = 0")):
        with pytest.raises(ConstraintViolationError, match="REPLACE_WHERE_MISMATCH"):
            rows.writeTo("more").overwrite(condition)


def test_a_name_that_the_catalog_does_not_take_leaves_no_folder(session: Any, tmp_path: Path) -> None:
    rows, elsewhere = session.range(1), tmp_path / "elsewhere"
    for create in (
        lambda: session.sql("CREATE TABLE `odd-name` USING delta AS SELECT 1 AS a"),
        lambda: session.sql(f"CREATE TABLE `odd-name` (a INT) USING delta LOCATION '{elsewhere}'"),
        lambda: rows.write.format("delta").saveAsTable("`odd-name`"),
        lambda: rows.writeTo("`odd-name`").using("delta").create(),
        lambda: DeltaTable.create(session).tableName("`odd-name`").addColumn("a", "INT").execute(),
    ):
        with pytest.raises(InvalidArgumentError) as caught:
            create()
        assert caught.value.getCondition() == "INVALID_SCHEMA_OR_RELATION_NAME"
        assert caught.value.getMessageParameters() == {"name": "`odd-name`"}
    assert not elsewhere.exists()
    warehouse = Path(session.conf.get("spark.sql.warehouse.dir").removeprefix("file:"))
    assert not (warehouse / "odd-name").exists()


def test_an_overwrite_of_all_rows_is_mode_overwrite(session: Any) -> None:
    """DeltaDataFrameWriterV2Suite: "Overwrite: overwrite by expression: true"; delta-spark 4.4 also obeys
    the session's setting and overwriteSchema."""
    from pyspark.sql import functions as F

    rows = session.sql("SELECT 1L AS id, 'a' AS p")
    rows.writeTo("overwritten_rows").using("delta").partitionedBy("id").create()
    session.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        rows.withColumn("id", F.lit(2)).writeTo("overwritten_rows").overwrite(F.lit(True))
    finally:
        session.conf.unset("spark.sql.sources.partitionOverwriteMode")
    assert ids(session.table("overwritten_rows")) == [1, 2]
    wider = rows.withColumn("n", F.lit(1))
    wider.writeTo("overwritten_rows").option("overwriteSchema", "true").overwrite(F.lit(True))
    assert session.table("overwritten_rows").columns == ["id", "p", "n"]
    first = session.sql("DESCRIBE HISTORY overwritten_rows LIMIT 1").first()
    assert dict(first.operationParameters) == {
        "mode": "Overwrite",
        "partitionBy": "[]",
        "canOverwriteSchema": "true",
    }
    assert "numCopiedRows" not in first.operationMetrics


def test_alter_view(session: Any) -> None:
    session.sql("CREATE TABLE viewed USING delta AS SELECT 1L AS id, 'a' AS v")
    session.sql("CREATE VIEW lasting AS SELECT 1 AS one")
    session.sql("ALTER VIEW lasting AS SELECT v, id FROM viewed")
    session.sql("CREATE TEMPORARY VIEW passing AS SELECT v FROM viewed")
    session.sql("ALTER VIEW passing AS SELECT id FROM viewed")
    assert ids(session.table("passing")) == ids(session.sql("SELECT * FROM lasting WHERE v > ''")) == [1]
    with pytest.raises(InvalidArgumentError, match="TABLE_OR_VIEW_NOT_FOUND"):
        session.sql("ALTER VIEW missing AS SELECT id FROM viewed")
    session.catalog.dropTempView("passing")


def test_a_table_of_another_format_like_a_delta_table(session: Any) -> None:
    session.sql("CREATE TABLE pattern (id BIGINT COMMENT 'key', p STRING) USING delta PARTITIONED BY (p)")
    session.sql("CREATE TABLE IF NOT EXISTS of_parquet LIKE pattern USING parquet TBLPROPERTIES ('a' = 'b')")
    session.sql("INSERT INTO of_parquet VALUES (1, 'x')")
    assert ids(session.table("of_parquet").where("p = 'x'")) == [1]
    described = {tuple(row)[:2] for row in session.sql("DESCRIBE EXTENDED of_parquet").collect()}
    assert ("Provider", "parquet") in described
    assert session.table("of_parquet").schema["id"].metadata == {"comment": "key"}


def test_upkeep_and_descriptions(session: Any) -> None:
    session.range(3).write.format("delta").saveAsTable("u")
    session.range(3, 5).write.format("delta").mode("append").saveAsTable("u")
    session.sql("OPTIMIZE u")
    session.sql("ALTER TABLE u ADD COLUMNS (n INT)")
    session.sql("ALTER TABLE u SET TBLPROPERTIES ('k' = 'v')")
    session.sql("COMMENT ON TABLE u IS 'text'")
    assert session.sql("DESCRIBE HISTORY u").count() == 6
    assert session.sql("DESCRIBE DETAIL u").first().location.endswith("/u")
    assert [row.col_name for row in session.sql("DESCRIBE TABLE u").collect()] == ["id", "n"]
    assert [row.col_name for row in session.sql("SHOW COLUMNS IN u").collect()] == ["id", "n"]
    assert session.sql("SHOW TBLPROPERTIES u ('k')").first().value == "v"
    session.sql("RESTORE TABLE u TO VERSION AS OF 0")
    assert ids(session.table("u")) == [0, 1, 2]
    assert session.sql("VACUUM u DRY RUN").count() == 0
    session.sql("TRUNCATE TABLE u")
    assert session.table("u").count() == 0
    session.sql("ALTER TABLE u RENAME TO v")
    assert session.table("v").count() == 0


def test_entries_are_described(session: Any, tmp_path: Path) -> None:
    """DESCRIBE and the history show what the catalog has of a table."""
    columns = "(id BIGINT DEFAULT 7, v INT) USING delta"
    feature = "TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')"
    session.sql(f"CREATE TABLE own {columns} {feature}")
    session.sql(f"CREATE TABLE other {columns} {feature} LOCATION '{tmp_path / 'other'}'")
    for name, kind, managed in (("own", "MANAGED", "true"), ("other", "EXTERNAL", "false")):
        rows = [tuple(row) for row in session.sql(f"DESCRIBE EXTENDED {name}").collect()]
        said = {row[0]: row[1] for row in rows}
        assert (said["Catalog"], said["Namespace"], said["Database"], said["Table"]) == (
            "spark_catalog",
            "default",
            "default",
            name,
        )
        assert (said["Type"], said.get("Is_managed_location", "false")) == (kind, managed)
        assert rows[-2:] == [("# Column Default Values", "", ""), ("id", "bigint", "7")]
        for detail in (session.sql(f"DESCRIBE DETAIL {name}"), DeltaTable.forName(session, name).detail()):
            assert detail.first().name == f"spark_catalog.default.{name}"
        parameters = session.sql(f"DESCRIBE HISTORY {name}").first().operationParameters
        assert (parameters["isManaged"], parameters["description"]) == (managed, None)
    assert session.sql(f"DESCRIBE DETAIL delta.`{tmp_path / 'other'}`").first().name is None


def test_a_table_saved_at_a_path_is_created_as_select(session: Any, tmp_path: Path) -> None:
    rows, path = session.range(1).write.format("delta"), str(tmp_path / "outside")
    rows.option("path", path).saveAsTable("outside")
    rows.mode("append").saveAsTable("outside")
    history = deltaic.DeltaTable(path).history()
    assert [entry["operation"] for entry in history] == ["WRITE", "CREATE TABLE AS SELECT"]
    assert history[1]["operationParameters"]["isManaged"] == "false"


def test_rows_that_are_added_by_name_are_cast(session: Any) -> None:
    """`saveAsTable` in append mode and `writeTo` cast by store assignment, as INSERT does."""
    session.sql("CREATE TABLE w (id BIGINT, v INT, k STRING) USING delta PARTITIONED BY (k)")
    rows = session.sql("SELECT '5' AS id, 2.7D AS v, 1 AS k")
    rows.write.format("delta").mode("append").saveAsTable("w")
    rows.writeTo("w").append()
    assert [tuple(row) for row in session.table("w").collect()] == [(5, 2, "1")] * 2
    rows.writeTo("w").overwritePartitions()
    assert [tuple(row) for row in session.table("w").collect()] == [(5, 2, "1")]
    session.sql("CREATE TABLE s (st STRUCT<a: INT, b: INT>) USING delta")
    session.sql("SELECT named_struct('a', '4') AS st").writeTo("s").append()
    assert [row.st.asDict() for row in session.table("s").collect()] == [{"a": 4, "b": None}]
    with pytest.raises(SchemaMismatchError, match="CAST_INVALID_INPUT"):
        session.sql("SELECT 'x' AS id").writeTo("w").append()


def test_writers(session: Any, tmp_path: Path) -> None:
    frame = session.range(3)
    frame.write.format("delta").option("path", str(tmp_path / "t")).saveAsTable("w")
    with pytest.raises(TableAlreadyExistsError):
        frame.write.format("delta").saveAsTable("w")
    frame.write.format("delta").mode("ignore").saveAsTable("w")
    frame.write.format("delta").mode("overwrite").saveAsTable("w")
    frame.write.insertInto("w")
    assert deltaic.DeltaTable(tmp_path / "t").scan().count() == 6
    frame.writeTo("w").append()
    frame.selectExpr("id", "id % 2 AS p").writeTo("n").using("delta").tableProperty("a", "b").create()
    assert session.table("w").count() == 9
    assert ids(session.table("n")) == [0, 1, 2]
    with pytest.raises(TableNotFoundError):
        frame.writeTo("nobody").using("delta").append()
    session.sql("INSERT OVERWRITE n SELECT id, 0L FROM w WHERE id = 1")
    assert ids(session.table("n")) == [1, 1, 1]


def test_the_history_of_an_overwrite_by_name(session: Any) -> None:
    """saveAsTable keeps the definition of the table; the history of delta-spark shows its overwrite as CREATE
    OR REPLACE TABLE AS SELECT."""
    session.sql("CREATE TABLE o (id BIGINT, p BIGINT) USING delta PARTITIONED BY (p) TBLPROPERTIES (a = 'b')")
    frame = session.range(4).selectExpr("id", "id % 2 AS p")
    for options in (
        {},
        {"partitionOverwriteMode": "dynamic"},
        {"overwriteSchema": "true"},
        {"replaceWhere": "p < 2"},
    ):
        writer = frame.write.format("delta").mode("overwrite").options(**options)
        (writer.partitionBy("p") if "overwriteSchema" in options else writer).saveAsTable("o")
    frame.write.format("delta").mode("append").saveAsTable("o")
    frame.write.format("delta").mode("overwrite").saveAsTable("new")
    entries = [
        (row.operation, dict(row.operationParameters))
        for row in session.sql("DESCRIBE HISTORY o").collect()[:5]
    ]
    by_name = "CREATE OR REPLACE TABLE AS SELECT"
    assert [operation for operation, _ in entries] == ["WRITE", "WRITE", by_name, by_name, by_name]
    definition = {"isManaged": "true", "description": None, "partitionBy": '["p"]', "clusterBy": "[]"}
    assert [json.loads(parameters.pop("properties"))["a"] for _, parameters in entries[2:]] == ["b"] * 3
    assert entries[4][1] == {"isV1SaveAsTableOverwrite": "true", **definition}
    assert entries[3][1] == {
        "isV1SaveAsTableOverwrite": "true",
        **definition,
        "isDynamicPartitionOverwrite": "true",
    }
    assert entries[2][1] == {"isV1SaveAsTableOverwrite": "true", **definition, "canOverwriteSchema": "true"}
    first = session.sql("DESCRIBE HISTORY new").first()
    assert (first.operation, first.operationParameters["isV1SaveAsTableOverwrite"]) == (by_name, "true")


def test_delta_tables_by_name(session: Any) -> None:
    made = (
        DeltaTable.create(session)
        .tableName("b")
        .addColumn("id", "BIGINT")
        .addColumn("n", "INT")
        .property("a", "b")
        .execute()
    )
    made.alias("t").merge(session.range(2).alias("s"), "t.id = s.id").whenNotMatchedInsert(
        values={"id": "s.id", "n": "1"}
    ).execute()
    table = DeltaTable.forName(session, "default.b")
    table.delete("id = 0")
    assert ids(table.toDF()) == [1]
    with pytest.raises(TableAlreadyExistsError):
        DeltaTable.create(session).tableName("b").addColumn("id", "BIGINT").execute()
    DeltaTable.createOrReplace(session).tableName("b").addColumn("id", "BIGINT").execute()
    assert session.table("b").count() == 0
    with pytest.raises(InvalidArgumentError, match="DELTA_MISSING_DELTA_TABLE"):
        DeltaTable.forName(session, "nobody")


def test_views_and_other_schemas(session: Any) -> None:
    session.sql("CREATE SCHEMA IF NOT EXISTS other")
    try:
        session.sql("CREATE TABLE other.t USING delta AS SELECT id FROM range(4)")
        session.sql("USE other")
        assert ids(session.table("t")) == [0, 1, 2, 3]
        session.sql("CREATE OR REPLACE TEMPORARY VIEW shown AS SELECT id FROM t WHERE id > 1")
        session.sql("USE default")
        assert ids(session.table("shown")) == [2, 3]
        assert ids(
            session.sql("SELECT other.t.id FROM other.t TABLESAMPLE (100 PERCENT) WHERE t.id < 3")
        ) == [0, 1, 2]
        session.sql("CREATE VIEW other.lasting (number) AS SELECT id FROM other.t WHERE id > 1")
        session.sql("DELETE FROM other.t WHERE id = 3")
        if hasattr(session, "_jsparkSession"):  # by public interfaces a temporary view stays at its version
            assert ids(session.sql("SELECT * FROM shown")) == [2]
        assert [tuple(row) for row in session.sql("SELECT l.number FROM other.lasting l").collect()] == [(2,)]
        assert session.table("other.lasting").columns == ["number"]
        session.sql("CREATE VIEW other.all AS SELECT * FROM other.t")
        session.sql("ALTER TABLE other.t ADD COLUMNS (later INT)")
        assert session.table("other.all").columns == ["id"]  # of the time when it was made
        session.sql(
            "CREATE OR REPLACE VIEW other.all COMMENT 'it''s\nLocation: none' AS SELECT * FROM other.t"
        )
        assert session.sql("SELECT * FROM other.all").columns == ["id", "later"]
        session.sql("DROP VIEW other.all")
        session.sql("DROP VIEW other.lasting")
        session.sql("DROP TABLE other.t")
    finally:
        session.sql("USE default")
        session.sql("DROP SCHEMA other CASCADE")


def test_a_definition_hides_a_table_only_behind_its_query(session: Any) -> None:
    session.sql("CREATE TABLE hidden USING delta AS SELECT id FROM range(4)")
    for query, expected in {
        "WITH hidden AS (SELECT id FROM hidden WHERE id > 1) SELECT * FROM hidden": [2, 3],
        "WITH a AS (FROM hidden), hidden AS (SELECT 9L AS id) FROM a UNION ALL FROM hidden": [0, 1, 2, 3, 9],
        "SELECT id FROM hidden WHERE id IN (WITH hidden AS (SELECT 2L AS id) FROM hidden)": [2],
        "SELECT (WITH hidden AS (SELECT 5L AS n) SELECT n FROM hidden) + id AS id FROM hidden": [5, 6, 7, 8],
        "WITH RECURSIVE hidden AS (SELECT 1L AS id UNION ALL SELECT id + 1 FROM hidden WHERE id < 3)"
        " SELECT * FROM hidden": [1, 2, 3],
    }.items():
        assert ids(session.sql(query)) == expected, query
    session.sql(
        "CREATE OR REPLACE TABLE hidden AS WITH hidden AS (SELECT id FROM hidden WHERE id > 2) FROM hidden"
    )
    assert ids(session.table("hidden")) == [3]


def test_columns_are_qualified_by_schema_and_catalog(session: Any) -> None:
    session.sql("CREATE SCHEMA IF NOT EXISTS beside")
    session.sql("CREATE TABLE q USING delta AS SELECT id, 'a' AS v FROM range(3)")
    session.sql("CREATE TABLE beside.q USING delta AS SELECT id, 'b' AS v FROM range(1, 5)")
    for query, expected in {
        "SELECT default.q.id FROM q WHERE spark_catalog.default.q.id > 0": [1, 2],
        "SELECT spark_catalog.beside.q.id FROM beside.q": [1, 2, 3, 4],
        "SELECT default.q.* FROM spark_catalog.default.q": [0, 1, 2],
        "SELECT id FROM q WHERE NOT EXISTS (SELECT 1 FROM beside.q WHERE beside.q.id = default.q.id)": [0],
        "SELECT beside.q.id FROM q JOIN beside.q ON default.q.id = beside.q.id": [1, 2],
        "SELECT q.id FROM q WHERE EXISTS (SELECT 1 FROM beside.q x WHERE x.id = default.q.id)": [1, 2],
    }.items():
        assert ids(session.sql(query)) == expected, query
    session.sql("UPDATE q SET default.q.v = concat(default.q.v, '!') WHERE spark_catalog.default.q.id = 0")
    session.sql("UPDATE q SET v = (SELECT v FROM beside.q WHERE beside.q.id = default.q.id) WHERE id = 1")
    session.sql("DELETE FROM q WHERE EXISTS (SELECT 1 FROM beside.q WHERE beside.q.id = default.q.id + 2)")
    assert [tuple(row) for row in session.table("q").collect()] == []
    session.sql(
        "MERGE INTO q USING beside.q ON default.q.id = beside.q.id WHEN NOT MATCHED AND beside.q.id < 3 THEN"
        " INSERT (id, v) VALUES (beside.q.id, spark_catalog.beside.q.v)"
    )
    session.sql(
        "MERGE INTO q USING beside.q ON default.q.id = beside.q.id WHEN MATCHED AND default.q.id > 1 THEN"
        " UPDATE SET default.q.v = concat(default.q.v, beside.q.v)"
    )
    assert sorted(map(tuple, session.table("q").collect())) == [(1, "b"), (2, "bb")]
    session.sql("DROP SCHEMA beside CASCADE")


def test_a_view_is_renamed(session: Any) -> None:
    session.sql("CREATE TABLE under USING delta AS SELECT id, id + 1 AS more FROM range(3)")
    session.sql("CREATE VIEW first_name AS SELECT more AS id FROM under")
    session.sql("ALTER VIEW default.first_name RENAME TO second_name")
    assert ids(session.table("second_name")) == [1, 2, 3]
    assert not session.catalog.tableExists("first_name")
    with pytest.raises(Exception, match="TABLE_OR_VIEW_ALREADY_EXISTS"):  # on Connect, the error is Spark's
        session.sql("ALTER VIEW second_name RENAME TO under")
    session.sql("DROP VIEW second_name")


def test_names_that_begin_with_digits(session: Any) -> None:
    session.sql("CREATE TABLE 2024_sales (1st BIGINT, id BIGINT) USING delta")
    session.sql("INSERT INTO 2024_sales VALUES (5L, 1e0)")
    session.sql("ALTER TABLE 2024_sales ADD CONSTRAINT 1st_is_small CHECK (1st < 1e2)")
    session.sql("UPDATE 2024_sales SET 1st = 1st + 1 WHERE 1st > 2e-1")
    assert [tuple(row) for row in session.sql("SELECT 1st, id FROM 2024_sales").collect()] == [(6, 1)]


def test_a_view_reads_the_names_of_its_own_schema(session: Any) -> None:
    """Neither the session's schema nor a temporary view counts."""
    session.sql("CREATE SCHEMA elsewhere")
    session.sql("CREATE TABLE below_views USING delta AS SELECT 1L AS id")
    session.sql("CREATE VIEW inner_view AS SELECT * FROM below_views")
    session.sql("CREATE VIEW outer_view AS SELECT i.id FROM inner_view i JOIN below_views b ON i.id = b.id")
    session.sql("USE elsewhere")
    try:
        assert ids(session.sql("SELECT * FROM default.outer_view")) == [1]
        assert session.catalog.currentDatabase() == "elsewhere"
    finally:
        session.sql("USE default")
    for name in ("below_views", "inner_view"):
        session.sql(f"CREATE TEMPORARY VIEW {name} AS SELECT 99L AS id")
    try:
        assert ids(session.sql("SELECT * FROM inner_view")) == [99]
        assert ids(session.sql("SELECT * FROM outer_view")) == ids(session.table("outer_view")) == [1]
        assert ids(session.sql("SELECT * FROM default.inner_view")) == [1]
    finally:
        for name in ("below_views", "inner_view"):
            session.catalog.dropTempView(name)
        session.sql("DROP VIEW outer_view")
        session.sql("DROP VIEW inner_view")
        session.sql("DROP SCHEMA elsewhere")


def test_a_view_does_not_read_itself(session: Any) -> None:
    session.sql("CREATE TABLE below_a_cycle USING delta AS SELECT 1L AS id")
    session.sql("CREATE VIEW first_view AS SELECT * FROM below_a_cycle")
    session.sql("CREATE VIEW second_view AS SELECT * FROM first_view")
    for text in (
        "CREATE OR REPLACE VIEW first_view AS SELECT * FROM First_View",
        "CREATE OR REPLACE VIEW default.first_view AS SELECT b.id FROM below_a_cycle b, second_view",
        "ALTER VIEW first_view AS SELECT * FROM second_view",
    ):
        with pytest.raises(InvalidArgumentError, match=r"\[RECURSIVE_VIEW\]") as raised:
            session.sql(text)
        assert raised.value.getSqlState() == "42K0H"
        assert raised.value.getMessageParameters()["viewIdent"] == "`spark_catalog`.`default`.`first_view`"
    assert ids(session.sql("SELECT * FROM second_view")) == [1]
    session.sql("DROP VIEW second_view")
    session.sql("DROP VIEW first_view")


def test_a_view_of_a_table_by_path(session: Any, tmp_path: Path) -> None:
    path = tmp_path / "viewed"
    deltaic.write(path, {"id": [1, 2]})
    text = f"CREATE VIEW by_path AS SELECT * FROM delta.`{path}`"
    if not hasattr(session, "_jsparkSession"):
        with pytest.raises(
            UnsupportedFeatureError,
            match="a permanent view of a table by path is not supported on Spark Connect",
        ):
            session.sql(text)
        return
    session.sql(text)
    deltaic.write(path, {"id": [3]}, mode="append")
    session.sql(f"CREATE VIEW by_version AS SELECT count(*) AS id FROM delta.`{path}` VERSION AS OF 0")
    assert ids(session.sql("SELECT * FROM by_path")) == ids(session.table("by_path")) == [1, 2, 3]
    assert ids(session.sql("SELECT * FROM by_version")) == [2]
    session.sql("DROP VIEW by_path")
    session.sql("DROP VIEW by_version")


def test_cache_table_with_a_storage_level(session: Any) -> None:
    session.sql("CREATE TABLE to_cache USING delta AS SELECT 1L AS id")
    session.sql("CACHE TABLE cached_rows OPTIONS ('storageLevel' 'DISK_ONLY') AS SELECT id FROM to_cache")
    session.sql("CACHE LAZY TABLE lazy_rows SELECT id + 1 AS id FROM to_cache")
    session.sql("CACHE TABLE to_cache OPTIONS ('storageLevel' = 'MEMORY_ONLY')")
    assert session.catalog.isCached("cached_rows")
    assert session.catalog.isCached("to_cache")
    assert ids(session.table("cached_rows")) == ids(session.sql("SELECT * FROM to_cache")) == [1]
    assert ids(session.table("lazy_rows")) == [2]
    with pytest.raises(InvalidArgumentError, match="storage level"):
        session.sql("CACHE TABLE to_cache OPTIONS ('storageLevel' 'ON_PAPER')")
    with pytest.raises(InvalidArgumentError, match="unknown option of CACHE TABLE"):
        session.sql("CACHE TABLE to_cache OPTIONS ('level' 'DISK_ONLY')")
    for name in ("cached_rows", "lazy_rows", "to_cache"):
        session.sql(f"UNCACHE TABLE {name}")
    assert not session.catalog.isCached("to_cache")


def test_a_new_table_is_not_read_from_cached_rows_of_a_dropped_one(session: Any) -> None:
    """DeltaCacheTableRefreshTests: "scenario 5: external drop and recreate table"."""
    for rows in (5, 0):
        session.sql("CREATE TABLE cached_again (id BIGINT) USING delta")
        session.sql(f"INSERT INTO cached_again SELECT id FROM range({rows})")
        session.sql("CACHE TABLE cached_again")
        session.sql("ALTER TABLE cached_again ADD COLUMN n INT")
        assert session.table("cached_again").count() == rows
        assert ids(session.table("cached_again")) == list(range(rows))
        session.sql("DROP TABLE cached_again")
        session.sql("CREATE TABLE cached_again (id BIGINT) USING delta")
        assert session.table("cached_again").collect() == []
        session.sql("DROP TABLE cached_again")


def test_tables_of_other_formats_as_sources_of_a_definition(session: Any) -> None:
    session.sql(
        "CREATE TABLE of_parquet (id BIGINT COMMENT 'c', p STRING) USING parquet PARTITIONED BY (p)"
        " COMMENT 'w'"
    )
    session.sql("CREATE TABLE like_parquet LIKE of_parquet USING delta TBLPROPERTIES ('a' = 'b')")
    metadata = deltaic.DeltaTable(place(session, "like_parquet")).metadata
    assert (list(metadata.partition_columns), metadata.configuration["a"]) == (["p"], "b")
    assert deltaic.DeltaTable(place(session, "like_parquet")).schema[0].metadata == {"comment": "c"}
    session.sql("CREATE TEMPORARY VIEW narrow AS SELECT id + 1 AS n FROM like_parquet")
    session.sql("CREATE TABLE IF NOT EXISTS like_view LIKE narrow USING delta")
    session.sql("CREATE TABLE IF NOT EXISTS like_view LIKE narrow USING delta")
    assert session.table("like_view").columns == ["n"]
    row = session.sql("DESCRIBE DETAIL of_parquet").first()
    assert (row.format, row.partitionColumns, row.description, row.numFiles) == ("parquet", ["p"], "w", None)
    assert row.location == str(place(session, "of_parquet"))
    session.catalog.dropTempView("narrow")
    session.sql("DROP TABLE of_parquet")


def test_columns_have_the_name_of_their_table(session: Any) -> None:
    from pyspark.sql import functions as F

    session.sql(
        "CREATE TABLE clicks USING delta AS SELECT id, id * 2 AS n FROM VALUES (1L), (2L), (3L) AS t(id)"
    )
    session.sql("CREATE TABLE shown USING delta AS SELECT id, 'x' AS n FROM VALUES (1L), (2L) AS t(id)")
    session.sql("CREATE VIEW of_clicks AS SELECT id FROM clicks")
    clicks, shown = session.table("clicks"), session.read.table("default.shown")
    assert ids(clicks.select("clicks.id")) == ids(clicks.select("clicks.*")) == [1, 2, 3]
    assert ids(session.table("of_clicks").where("of_clicks.id > 2")) == [3]
    joined = clicks.join(shown, F.col("clicks.id") == F.col("shown.id")).select("clicks.id", "shown.n")
    assert sorted(map(tuple, joined.collect())) == [(1, "x"), (2, "x")]
    assert ids(clicks.alias("c").select("c.id")) == [1, 2, 3]
    if hasattr(session, "_jsparkSession"):
        assert clicks.select("_metadata.file_name").count() == 3
        assert ids(clicks.where("default.clicks.id = 1")) == [1]
        assert ids(clicks.where("spark_catalog.default.clicks.id = 2")) == [2]
        clicks.createOrReplaceTempView("changed")
        session.sql("DELETE FROM changed WHERE id = 3")
        assert ids(session.table("clicks")) == [1, 2]
        session.catalog.dropTempView("changed")
    session.sql("DROP VIEW of_clicks")


def test_for_name_qualifies_columns_by_the_name(session: Any) -> None:
    """As in delta-spark, where `forName` begins with `spark.table(name)`."""
    from pyspark.sql import functions as F

    session.sql(
        "CREATE TABLE qualified USING delta AS SELECT id, id * 10 AS n FROM VALUES (1L), (2L) AS t(id)"
    )
    table = DeltaTable.forName(session, "qualified")
    new = session.createDataFrame([(1, 100), (7, 700)], "id long, n long").alias("s")

    def rows() -> list[tuple[Any, ...]]:
        return sorted(map(tuple, session.table("qualified").collect()))

    merge = table.merge(new, "qualified.id = s.id").whenMatchedUpdate(
        "qualified.n < 50", {"qualified.n": "s.n"}
    )
    merge.whenNotMatchedInsertAll().execute()
    assert rows() == [(1, 100), (2, 20), (7, 700)]
    by_columns = table.merge(new, F.col("default.qualified.id") == F.col("s.id"))
    by_columns.whenMatchedUpdate(set={"n": F.col("qualified.n") + 1}).execute()
    assert rows() == [(1, 101), (2, 20), (7, 701)]
    # the source has the name, too: the short qualifier is the source's
    other = session.table("qualified").withColumnRenamed("n", "m")
    itself = table.merge(other, "default.qualified.id = qualified.id AND qualified.id = 2")
    itself.whenMatchedUpdate(set={"n": "qualified.m + 2"}).execute()
    assert rows() == [(1, 101), (2, 22), (7, 701)]
    table.delete("qualified.id = 7")
    table.update(F.col("spark_catalog.default.qualified.id") == 2, {"qualified.n": "default.qualified.n + 1"})
    assert rows() == [(1, 101), (2, 23)]
    session.sql("CREATE TABLE asking USING delta AS SELECT 1L AS id")
    table.update("EXISTS (SELECT 1 FROM asking WHERE asking.id = qualified.id)", {"n": "0"})
    assert rows() == [(1, 0), (2, 23)]
    table.alias("x").delete("x.id = 2")
    assert rows() == [(1, 0)]
    if hasattr(session, "_jsparkSession"):
        assert ids(table.toDF().select("qualified.id")) == [1]
    # a field of a column that has the table's name
    session.sql("CREATE TABLE point USING delta AS SELECT named_struct('x', 1L, 'y', 2L) AS point, 5L AS id")
    DeltaTable.forName(session, "point").update("point.x = 1", {"id": "point.y"})
    assert ids(session.table("point")) == [2]
    DeltaTable.forName(session, "point").alias("p").update("p.point.x = 1", {"p.id": "p.id + 1"})
    DeltaTable.forName(session, "point").update("point.id = 3 AND point.x = 1", {"point.y": "point.id"})
    assert session.table("point").collect() == [((1, 3), 3)]


def test_subqueries_in_methods_of_a_frame(session: Any) -> None:
    session.sql("CREATE TABLE asked USING delta AS SELECT id, 'u' AS u FROM VALUES (1L), (2L), (3L) AS t(id)")
    session.sql("CREATE TABLE known USING delta AS SELECT id, id * 10 AS n FROM VALUES (1L), (2L) AS t(id)")
    asked = session.table("asked")
    if not hasattr(session, "_jsparkSession"):
        # An error and no rows: the entry in the catalog has no columns, so `id` would be that of `asked`.
        with pytest.raises(Exception, match="PYTHON_DATA_SOURCE_ERROR"):
            asked.where("id IN (SELECT id FROM known)").collect()
        return
    path = deltaic.DeltaTable(place(session, "known")).location
    rows = session.createDataFrame([(2,), (5,)], "id long")
    views = len(session.catalog.listTables())
    assert ids(asked.where("id IN (SELECT id FROM known)")) == [1, 2]
    assert ids(asked.filter("id NOT IN (SELECT id FROM default.known)")) == [3]
    assert ids(asked.where("EXISTS (SELECT 1 FROM known WHERE known.id = asked.id AND n > 10)")) == [2]
    assert ids(rows.where(f"id IN (SELECT id FROM delta.`{path}`)")) == [2]
    found = asked.selectExpr("id", "(SELECT max(n) FROM known) AS most").where("id = 1").collect()
    assert [tuple(row) for row in found] == [(1, 20)]
    assert ids(asked.selectExpr(["id", "(SELECT max(n) FROM known) most"]).where("most = id * 10")) == [2]
    assert ids(asked.filter(condition="id IN (SELECT id FROM known)").where(condition=asked.id > 1)) == [2]
    assert ids(asked.where(asked.id == 1)) == ids(asked.filter("id IS NOT DISTINCT FROM 1")) == [1]
    assert len(session.catalog.listTables()) == views


def test_streams_in_sql(session: Any, tmp_path: Path) -> None:
    session.sql("CREATE TABLE streamed USING delta AS SELECT 1L AS id")
    session.sql("INSERT INTO streamed VALUES (2)")
    session.sql("CREATE TEMPORARY VIEW of_stream AS SELECT id FROM STREAM streamed WHERE id < 2")
    path = deltaic.DeltaTable(place(session, "streamed")).location

    def streamed(text: str) -> list[int]:
        frame = session.sql(text)
        assert frame.isStreaming
        into = str(tmp_path / str(len(list(tmp_path.iterdir()))))
        writer = frame.writeStream.format("delta").option("checkpointLocation", f"{into}/_checkpoint")
        writer.trigger(availableNow=True).start(into).awaitTermination(60)
        return ids(session.read.format("delta").load(into))

    assert streamed("SELECT id FROM STREAM streamed") == [1, 2]
    assert streamed("SELECT streamed.id FROM STREAM(default.streamed)") == [1, 2]
    assert streamed("SELECT s.id + 1 AS id FROM STREAM streamed WITH ('startingVersion' = '1') AS s") == [3]
    assert streamed(f"WITH c AS (SELECT * FROM STREAM delta.`{path}`) SELECT id FROM c WHERE id > 1") == [2]
    assert streamed("SELECT a.id FROM STREAM streamed a JOIN streamed b ON a.id = b.id") == [1, 2]
    assert streamed("SELECT * FROM of_stream") == [1]
    session.sql("CREATE TABLE stream USING delta AS SELECT 7L AS id")
    assert ids(session.sql("SELECT * FROM stream")) == ids(session.sql("SELECT s.id FROM stream s")) == [7]
    session.catalog.dropTempView("of_stream")


def test_show_columns_with_a_schema(session: Any) -> None:
    session.sql("CREATE SCHEMA shown_elsewhere")
    session.sql("CREATE TABLE shown_elsewhere.c USING delta AS SELECT 1 AS a, 2 AS b")
    for text in ("c IN shown_elsewhere", "c FROM shown_elsewhere", "shown_elsewhere.c IN shown_elsewhere"):
        assert [row.col_name for row in session.sql(f"SHOW COLUMNS IN {text}").collect()] == ["a", "b"]
    session.sql("DROP SCHEMA shown_elsewhere CASCADE")


def test_a_directory_takes_no_delta_table(session: Any, tmp_path: Path) -> None:
    for words in ("", "LOCAL "):
        with pytest.raises(UnsupportedFeatureError, match="INSERT OVERWRITE DIRECTORY"):
            session.sql(f"INSERT OVERWRITE {words}DIRECTORY '{tmp_path}/d' USING delta SELECT 1 AS a")
    assert not (tmp_path / "d").exists()


def test_all_clauses_of_a_view(session: Any) -> None:
    session.sql("CREATE TABLE seen (id BIGINT, who STRING COMMENT 'name') USING delta")
    session.sql("INSERT INTO seen VALUES (1, 'a')")
    clauses = "(k COMMENT 'the key', `a b`) COMMENT 'it''s a view' TBLPROPERTIES ('x' = 'y', z.z = 1)"
    try:
        for made in ("VIEW lasting", "TEMPORARY VIEW passing"):
            session.sql(f"CREATE OR REPLACE {made} {clauses} AS SELECT * FROM seen")
            shown = {
                row.col_name: row.comment for row in session.sql(f"DESCRIBE {made.split()[-1]}").collect()
            }
            assert {name: shown[name] for name in ("k", "a b")} == {"k": "the key", "a b": "name"}
            assert [
                tuple(row) for row in session.sql(f"SELECT `a b`, k FROM {made.split()[-1]}").collect()
            ] == [("a", 1)]
        if hasattr(session, "_jsparkSession"):  # public interfaces do not return the comments of a view
            comments = {each.name: each.metadata.get("comment") for each in session.table("lasting").schema}
            assert comments == {"k": "the key", "a b": "name"}
        properties = {row.key: row.value for row in session.sql("SHOW TBLPROPERTIES lasting").collect()}
        assert {name: properties.get(name) for name in ("x", "z.z")} == {"x": "y", "z.z": "1"}
    finally:
        session.sql("DROP VIEW IF EXISTS lasting")
        session.catalog.dropTempView("passing")


def test_changes_by_name(session: Any) -> None:
    session.sql(
        "CREATE TABLE c (id BIGINT) USING delta TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
    )
    session.sql("INSERT INTO c VALUES (1), (2)")
    session.sql("DELETE FROM c WHERE id = 1")
    found = session.sql(
        "SELECT c.id, _change_type, _commit_version FROM table_changes('c', 1) WHERE c.id > 0"
    ).collect()
    assert sorted(map(tuple, found)) == [(1, "delete", 2), (1, "insert", 1), (2, "insert", 1)]
    path = place(session, "c")
    assert session.sql(f"SELECT * FROM table_changes_by_path('{path}', 2, 2)").count() == 1


def test_views_of_changes_are_not_views_of_the_table(session: Any) -> None:
    """A view of all changes shows them, and a DELETE by its name leaves the table unchanged."""
    session.sql("CREATE TABLE fed (id BIGINT) USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true)")
    session.sql("INSERT INTO fed VALUES (1)")
    session.sql("UPDATE fed SET id = 5")
    session.sql("CREATE TEMPORARY VIEW fed_changes AS SELECT * FROM table_changes('fed', 2)")
    session.sql("CREATE TEMPORARY VIEW fed_types AS SELECT id, _change_type FROM table_changes('fed', 2)")
    session.sql("CREATE TEMPORARY VIEW fed_ids AS SELECT id FROM table_changes('fed', 2)")
    chosen = session.read.option("readChangeFeed", "true").option("startingVersion", 2)
    chosen.option("columns", "id").table("fed").createOrReplaceTempView("fed_chosen")
    try:
        changes = [(1, "update_preimage"), (5, "update_postimage")]
        assert (
            sorted(map(tuple, session.table("fed_changes").select("id", "_change_type").collect())) == changes
        )
        assert sorted(map(tuple, session.table("fed_types").collect())) == changes
        for view in ("fed_changes", "fed_types", "fed_ids", "fed_chosen"):
            with pytest.raises(
                Exception, match=r"DELTA_UNSUPPORTED_SOURCE|DELTA_OPERATION_ON_VIEW_NOT_ALLOWED"
            ):
                session.sql(f"DELETE FROM {view} WHERE id = 5")
        assert ids(session.table("fed")) == [5]
        session.sql("CACHE TABLE fed_cached AS SELECT * FROM table_changes('fed', 2)")
        assert session.table("fed_cached").count() == 2
    finally:
        for view in ("fed_changes", "fed_types", "fed_ids", "fed_chosen", "fed_cached"):
            session.catalog.dropTempView(view)


def test_streams_by_name(session: Any, tmp_path: Path) -> None:
    session.range(3).write.format("delta").saveAsTable("s")
    writer = (
        session.readStream.table("s")
        .writeStream.option("checkpointLocation", str(tmp_path / "c"))
        .trigger(availableNow=True)
    )
    writer.toTable("copied", format="delta").awaitTermination(60)
    assert ids(session.table("copied")) == [0, 1, 2]
    writer = session.readStream.table("s").writeStream.format("delta").option("path", str(tmp_path / "at"))
    writer = writer.option("checkpointLocation", str(tmp_path / "c2")).trigger(availableNow=True)
    writer.toTable("external").awaitTermination(60)
    at = session.read.format("delta").load(str(tmp_path / "at"))
    assert ids(at) == ids(session.table("external")) == [0, 1, 2]
    writer = session.readStream.table("s").writeStream.clusterBy("id").trigger(availableNow=True)
    writer.option("checkpointLocation", str(tmp_path / "c3")).toTable("by_id", "delta").awaitTermination(60)
    assert ids(session.table("by_id")) == [0, 1, 2]
    assert session.sql("DESCRIBE DETAIL by_id").first().clusteringColumns == ["id"]


def test_tables_of_other_formats_and_temporary_views_are_sparks(session: Any) -> None:
    session.range(2).write.saveAsTable("p")
    session.sql("CREATE TABLE q (id INT) USING parquet")
    assert session.table("p").count() == 2
    assert session.sql("SELECT * FROM q").count() == 0
    session.range(1).write.format("delta").saveAsTable("d")
    session.range(5).createOrReplaceTempView("d")
    try:
        assert session.sql("SELECT * FROM d").count() == session.table("d").count() == 5
        assert session.sql("SELECT * FROM default.d").count() == 1
    finally:
        session.catalog.dropTempView("d")


def test_create_table_of_the_catalog(session: Any, tmp_path: Path) -> None:
    """`spark.catalog.createTable`: managed, at a path, of a table that is there, and of another format."""
    from pyspark.errors import AnalysisException
    from pyspark.sql.types import LongType, StringType, StructField, StructType

    columns = StructType(
        [StructField("id", LongType(), False), StructField("s", StringType(), True, {"comment": "a text"})]
    )
    frame = session.catalog.createTable("made", source="delta", schema=columns, description="of mine")
    assert (frame.columns, frame.count()) == (["id", "s"], 0)
    session.sql("INSERT INTO made VALUES (1, 'a')")
    metadata = deltaic.DeltaTable(place(session, "made")).metadata
    assert (metadata.description, '"comment":"a text"' in metadata.schema_string) == ("of mine", True)
    assert session.catalog.getTable("made").tableType == "MANAGED"
    with pytest.raises(TableAlreadyExistsError):
        session.catalog.createTable("made", source="delta", schema=columns)
    session.catalog.createTable("default.outside", str(tmp_path / "t"), "DELTA", columns)
    deltaic.write(tmp_path / "t", {"id": [5], "s": ["b"]}, mode="append")
    assert (
        ids(session.catalog.createTable("again", path=str(tmp_path / "t"), source="delta"))
        == ids(session.table("outside"))
        == [5]
    )
    assert session.catalog.getTable("again").tableType == "EXTERNAL"
    listed = {each.name: each for each in session.catalog.listTables("default")}
    assert [listed[name] for name in ("made", "again")] == [
        session.catalog.getTable(name) for name in ("made", "again")
    ]
    with pytest.raises(AnalysisException, match=r"\[NOT_SUPPORTED_COMMAND_FOR_V2_TABLE\].* LOAD DATA"):
        session.sql(f"LOAD DATA INPATH '{tmp_path}' INTO TABLE made")
    session.catalog.createTable(f"delta.`{tmp_path / 'by path'}`", source="delta", schema=columns)
    assert deltaic.DeltaTable(tmp_path / "by path").schema.names == ["id", "s"]
    session.catalog.createTable("with_options", source="delta", schema=columns, team="x")
    properties = deltaic.DeltaTable(place(session, "with_options")).metadata.configuration
    assert (properties["team"], properties["option.team"]) == ("x", "x")
    session.catalog.createTable(
        "made_of_parquet", source="parquet", schema=StructType([StructField("id", LongType())])
    )
    assert session.table("made_of_parquet").columns == ["id"]
    assert not deltaic.DeltaTable.exists(place(session, "made_of_parquet"))


def test_show_create_table_and_like(session: Any, tmp_path: Path) -> None:
    session.sql(
        "CREATE TABLE s (id BIGINT NOT NULL, p STRING COMMENT 'part') USING delta PARTITIONED BY (p)"
        " TBLPROPERTIES (a = 'b')"
    )
    (made,) = session.sql("SHOW CREATE TABLE s").collect()
    lines = made.createtab_stmt.splitlines()
    assert lines[:5] == [
        "CREATE TABLE spark_catalog.default.s (",
        "  id bigint not null,",
        "  p string comment 'part')",
        "USING delta",
        "PARTITIONED BY (p)",
    ]
    session.sql(made.createtab_stmt.replace("default.s ", "default.again "))
    session.sql("CREATE TABLE alike LIKE s")
    session.sql("CREATE TABLE IF NOT EXISTS alike LIKE default.s USING delta")
    session.sql(f"CREATE TABLE afar LIKE s LOCATION '{tmp_path / 'far'}' TBLPROPERTIES (a = 'c')")
    for name in ("again", "alike"):
        assert (
            session.sql(f"SHOW CREATE TABLE {name}").first()[0].replace(f"default.{name} ", "default.s ")
            == made.createtab_stmt
        )
        assert place(session, name).exists()
    far = session.sql("SHOW CREATE TABLE afar").first()[0]
    assert f"\nLOCATION '{tmp_path / 'far'}'\n" in far
    assert "'a' = 'c'" in far
    session.sql("DROP TABLE afar")
    session.sql(far)  # the table that is there gets its name again
    with pytest.raises(TableAlreadyExistsError):
        session.sql("CREATE TABLE alike LIKE s")
    with pytest.raises(UnsupportedFeatureError, match="ANALYZE TABLE"):
        session.sql("ANALYZE TABLE s COMPUTE STATISTICS FOR ALL COLUMNS")
    session.sql("CREATE TABLE of_parquet (id BIGINT) USING parquet")
    session.sql("CREATE TABLE parquet_too LIKE of_parquet")
    assert "USING parquet" in session.sql("SHOW CREATE TABLE parquet_too").first()[0]
    session.sql("ANALYZE TABLE of_parquet COMPUTE STATISTICS")


def test_the_catalog_knows_comment_and_columns_of_a_replaced_table(session: Any) -> None:
    """dbt reads the columns of its catalog there."""

    def information() -> str:
        (row,) = session.sql("SHOW TABLE EXTENDED LIKE 'replaced_twice'").collect()
        return str(row.information)

    session.sql("CREATE TABLE replaced_twice (a INT) USING delta COMMENT 'the first'")
    assert "Comment: the first\n" in information()
    session.sql("CREATE OR REPLACE TABLE replaced_twice (b INT COMMENT 'x', c STRING) USING delta")
    assert "Comment:" not in information()
    assert [line for line in information().split("\n") if line.startswith(" |--")] == [
        " |-- b: integer (nullable = true)",
        " |-- c: string (nullable = true)",
    ]
    rows = session.range(2).withColumnRenamed("id", "d")
    rows.write.format("delta").mode("overwrite").option("overwriteSchema", "true").saveAsTable(
        "replaced_twice"
    )
    assert " |-- d: long" in information()
    session.sql("ALTER TABLE replaced_twice ADD COLUMNS (e INT)")
    assert session.table("replaced_twice").columns == ["d", "e"], "the table's columns, not the catalog's"


def test_clones_by_name(session: Any, tmp_path: Path) -> None:
    session.range(3).write.format("delta").saveAsTable("original")
    session.sql("DELETE FROM original WHERE id = 2")
    metrics = session.sql("CREATE TABLE copied DEEP CLONE original VERSION AS OF 0").first()
    assert (metrics.source_num_of_files, metrics.num_copied_files > 0) == (metrics.num_copied_files, True)
    assert ids(session.table("copied")) == [0, 1, 2]
    session.sql(
        "CREATE TABLE shallow SHALLOW CLONE default.original TBLPROPERTIES (a = 'b') LOCATION"
        f" '{tmp_path / 'shallow'}'"
    )
    session.sql("CREATE OR REPLACE TABLE copied CLONE original")
    assert ids(session.table("copied")) == [0, 1]
    with pytest.raises(TableAlreadyExistsError):
        session.sql("CREATE TABLE copied CLONE original")
    session.sql("CREATE TABLE IF NOT EXISTS copied CLONE original")
    session.sql(f"CREATE TABLE of_version DEEP CLONE delta.`{place(session, 'original')}@v0`")
    assert ids(session.table("of_version")) == [0, 1, 2]
    session.sql("CREATE TABLE cloned_parquet USING parquet AS SELECT 7 AS id")
    session.sql("CREATE TABLE of_parquet DEEP CLONE cloned_parquet")
    assert ids(session.table("of_parquet")) == [7]
    session.sql("CREATE TABLE cloned_parts USING parquet PARTITIONED BY (p) AS SELECT 7 AS id, 1 AS p")
    with pytest.raises(InvalidArgumentError, match="DELTA_CLONE_UNSUPPORTED_SOURCE"):
        session.sql("CREATE TABLE of_parts DEEP CLONE cloned_parts")
    session.sql("CREATE TABLE other_copy USING parquet AS SELECT 5 AS x")
    session.sql("CREATE VIEW copied_view AS SELECT 1 AS id")
    for statement in ("CREATE OR REPLACE TABLE", "REPLACE TABLE"):
        with pytest.raises(DeltaError):
            session.sql(f"{statement} other_copy DEEP CLONE original VERSION AS OF 9")
        assert session.table("other_copy").first().x == 5
        with pytest.raises(TableAlreadyExistsError):
            session.sql(f"{statement} copied_view DEEP CLONE original")
    session.sql("CREATE OR REPLACE TABLE other_copy DEEP CLONE original")
    assert ids(session.table("other_copy")) == [0, 1]
    assert session.catalog.getTable("other_copy").tableType == "MANAGED"
    session.sql("CREATE TABLE json_copy USING json AS SELECT 5 AS x")
    session.sql("REPLACE TABLE json_copy SHALLOW CLONE original")
    assert session.sql("DESCRIBE DETAIL json_copy").first().format == "delta"
    (first,) = session.sql("DESCRIBE HISTORY copied LIMIT 1").collect()
    assert first.operation == "CLONE"
    assert first.operationParameters["source"] == "spark_catalog.default.original"
    assert session.sql("DESCRIBE DETAIL shallow").first().location == str(tmp_path / "shallow")
    assert session.catalog.getTable("copied").tableType == "MANAGED"
    assert session.catalog.getTable("shallow").tableType == "EXTERNAL"


def test_a_clone_by_name(session: Any, tmp_path: Path) -> None:
    session.sql("CREATE TABLE source USING delta AS SELECT id FROM range(3)")
    table = DeltaTable.forName(session, "source")
    assert ids(table.clone("default.copy").toDF()) == ids(session.table("copy")) == [0, 1, 2]
    assert session.catalog.getTable("copy").tableType == "MANAGED"
    with pytest.raises(TableAlreadyExistsError) as caught:
        DeltaTable.forName(session, "copy").clone("source", isShallow=True)
    assert caught.value.getCondition() == "DELTA_TABLE_ALREADY_EXISTS"
    assert caught.value.getMessageParameters() == {"tableName": "`spark_catalog`.`default`.`source`"}
    assert ids(table.clone(str(tmp_path / "c")).toDF()) == [0, 1, 2]
    assert (tmp_path / "c/_delta_log").exists()


def condition_of(call: Callable[[], Any]) -> tuple[str | None, str | None]:
    from pyspark.errors import AnalysisException

    with pytest.raises(AnalysisException) as caught:
        call()
    return caught.value.getCondition(), caught.value.getSqlState()


def test_names_of_views_and_tables_of_other_formats(session: Any) -> None:
    """As in delta-spark: IF NOT EXISTS and `ignore` do nothing, and no CREATE OR REPLACE replaces them."""
    session.sql("CREATE VIEW other_view AS SELECT 1 AS id")
    session.sql("CREATE TABLE other_table USING parquet AS SELECT 7 AS id")
    for name, condition in (
        ("other_view", ("DELTA_CANNOT_WRITE_INTO_VIEW", "0A000")),
        ("other_table", ("DELTA_NOT_A_DELTA_TABLE", "0AKDD")),
    ):
        before = session.table(name).collect()
        session.sql(f"CREATE TABLE IF NOT EXISTS {name} (x INT) USING delta")
        session.sql(f"CREATE TABLE IF NOT EXISTS {name} USING delta AS SELECT 1 AS x")
        session.range(3).write.format("delta").mode("ignore").saveAsTable(name)
        for replacing in (
            lambda name=name: session.sql(f"CREATE OR REPLACE TABLE {name} (x INT) USING delta"),
            lambda name=name: session.sql(f"CREATE OR REPLACE TABLE {name} USING delta AS SELECT 1 AS x"),
            lambda name=name: session.range(3).writeTo(name).using("delta").createOrReplace(),
        ):
            assert condition_of(replacing) == condition
        assert condition_of(lambda name=name: session.sql(f"CREATE TABLE {name} (x INT) USING delta")) == (
            "TABLE_OR_VIEW_ALREADY_EXISTS",
            "42P07",
        )
        assert session.table(name).collect() == before


def test_an_overwrite_replaces_a_table_of_another_format(session: Any, tmp_path: Path) -> None:
    """As in delta-spark for saveAsTable alone. Unlike there, a write that fails leaves the table."""
    session.sql("CREATE TABLE was_parquet USING parquet AS SELECT 7 AS id")
    session.sql(f"CREATE TABLE was_external USING csv LOCATION '{tmp_path}/csv' AS SELECT 7 AS id")
    fails = session.range(3).selectExpr("CAST(raise_error('no row') AS INT) AS id")
    for name in ("was_parquet", "was_external"):
        with pytest.raises(Exception, match="no row"):
            fails.write.format("delta").mode("overwrite").saveAsTable(name)
        itself = session.table(name).write.format("delta").mode("overwrite")
        assert condition_of(lambda itself=itself, name=name: itself.saveAsTable(name)) == (
            "UNSUPPORTED_OVERWRITE.TABLE",
            "42902",
        )
        assert ids(session.table(name)) == [7]
        session.range(3).write.format("delta").mode("overwrite").saveAsTable(name)
        assert ids(session.table(name)) == [0, 1, 2]
        assert ids(session.sql(f"SELECT * FROM {name} VERSION AS OF 0")) == [0, 1, 2]
        assert deltaic.DeltaTable(place(session, name)).version == 0
    assert list((tmp_path / "csv").glob("*.csv")), "the files of an external table stay"
    names = [each.name for each in session.catalog.listTables() if each.name.startswith("was_")]
    assert sorted(names) == ["was_external", "was_parquet"]


def test_ignore_does_not_pass_over_files_without_a_table(session: Any) -> None:
    """Only a table or view of the name makes mode `ignore` do nothing."""
    folder = place(session, "ignored_folder")
    folder.mkdir(parents=True)
    (folder / "a.txt").write_text("mine")
    writer = session.range(3).write.format("delta").mode("ignore")
    assert condition_of(lambda: writer.saveAsTable("ignored_folder"))[0] == (
        "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION"
    )
    assert [file.name for file in folder.iterdir()] == ["a.txt"]


def test_a_new_table_does_not_hide_files(session: Any, tmp_path: Path) -> None:
    """As in delta-spark, a folder with files but without a log is no place of a new table, unless rows
    replace it."""
    full = tmp_path / "full"
    (full / "p=1").mkdir(parents=True)
    (full / "p=1" / "x.txt").write_text("of someone else")
    refused = ("DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION", "42601")
    for creating in (
        lambda: session.sql(f"CREATE TABLE hides (a INT) USING delta LOCATION '{full}'"),
        lambda: session.sql(f"CREATE TABLE IF NOT EXISTS hides (a INT) USING delta LOCATION '{full}'"),
        lambda: session.sql(f"CREATE OR REPLACE TABLE hides (a INT) USING delta LOCATION '{full}'"),
        lambda: session.sql(f"CREATE TABLE hides USING delta LOCATION '{full}' AS SELECT 1 AS a"),
        lambda: session.range(1).write.format("delta").option("path", str(full)).saveAsTable("hides"),
        lambda: (
            DeltaTable.create(session).tableName("hides").location(str(full)).addColumn("a", "INT").execute()
        ),
    ):
        assert condition_of(creating) == refused
        assert not session.catalog.tableExists("hides")
        assert not deltaic.DeltaTable.exists(full)
    taken = ("TABLE_OR_VIEW_ALREADY_EXISTS", "42P07")
    assert condition_of(lambda: session.sql(f"CREATE TABLE delta.`{full}` (a INT) USING delta")) == taken
    session.sql(f"CREATE OR REPLACE TABLE hides USING delta LOCATION '{full}' AS SELECT 1 AS a")
    assert session.table("hides").first().a == 1
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "x.txt").write_text("of someone else")
    session.range(2).write.format("delta").save(str(tmp_path / "more"))
    assert ids(session.read.format("delta").load(str(tmp_path / "more"))) == [0, 1]


def test_permanent_views_are_not_changed(session: Any) -> None:
    session.sql("CREATE TABLE under_view USING delta AS SELECT 1L AS id")
    session.sql("CREATE VIEW over_table AS SELECT * FROM under_view")
    for change in (
        "DELETE FROM over_table WHERE id = 1",
        "UPDATE default.over_table SET id = 2",
        "MERGE INTO over_table t USING under_view s ON t.id = s.id WHEN MATCHED THEN DELETE",
    ):
        assert condition_of(lambda change=change: session.sql(change)) == (
            "DELTA_UNSUPPORTED_SOURCE",
            "0AKDD",
        )
    assert ids(session.table("under_view")) == [1]


def test_a_replaced_condition_that_does_not_parse(session: Any) -> None:
    session.sql("CREATE TABLE parses (id BIGINT) USING delta")
    writer = session.range(1).write.format("delta").mode("overwrite").option("replaceWhere", "id ==== 1")
    assert condition_of(lambda: writer.saveAsTable("parses")) == ("DELTA_FAILED_RECOGNIZE_PREDICATE", "42601")


def test_columns_that_come_twice_in_a_new_table(session: Any) -> None:
    twice = session.sql("SELECT 1 AS a, 2 AS A")
    for creating in (
        lambda: session.sql("CREATE TABLE twice USING delta AS SELECT 1 AS a, 2 AS A"),
        lambda: twice.write.format("delta").saveAsTable("twice"),
        lambda: twice.writeTo("twice").using("delta").create(),
    ):
        assert condition_of(creating) == ("COLUMN_ALREADY_EXISTS", "42711")
        assert not session.catalog.tableExists("twice")


def test_a_builder_gives_a_table_at_a_place_a_new_name(session: Any, tmp_path: Path) -> None:
    """Like CREATE TABLE name (columns) LOCATION 'path'."""
    place = str(tmp_path / "t")
    deltaic.DeltaTable.create(place, "id BIGINT, part STRING", partition_by=["part"])

    def builder(name: str) -> Any:
        return DeltaTable.createIfNotExists(session).tableName(name).location(place).addColumn("id", "BIGINT")

    builder("named").addColumn("part", "STRING").partitionedBy("part").execute()
    assert session.table("named").columns == ["id", "part"]
    with pytest.raises(InvalidArgumentError, match="DELTA_CREATE_TABLE_SCHEME_MISMATCH"):
        builder("with_other_columns").execute()
    with pytest.raises(InvalidArgumentError, match="DELTA_CREATE_TABLE_WITH_DIFFERENT_PARTITIONING"):
        builder("without_partitions").addColumn("part", "STRING").execute()
    assert not session.catalog.tableExists("with_other_columns")
