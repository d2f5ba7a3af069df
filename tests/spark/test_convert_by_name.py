"""CONVERT TO DELTA of Parquet tables by their names in the session catalog.

The expectations were recorded from delta-spark 4.4 for the same statements.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import deltaic
from deltaic.errors import PathOutsideTableError, SchemaMismatchError, UnsupportedFeatureError
from deltaic.spark.tables import DeltaTable
from spark_session import REMOTE

ON_CONNECT = REMOTE in os.environ


pytestmark = pytest.mark.usefixtures("catalog_of_the_test_alone")


@pytest.fixture
def parts(session: Any, tmp_path: Path) -> Path:
    """The folder of an external table `parts` with two files in two partitions."""
    folder = tmp_path / "with space"
    session.sql(
        "CREATE TABLE parts (id INT COMMENT 'number', note VARCHAR(5), p INT, q STRING) USING parquet"
        f" PARTITIONED BY (p, q) COMMENT 'in parts' LOCATION '{folder}' TBLPROPERTIES ('a.b' = '1',"
        " 'delta.appendOnly' = 'true')"
    )
    session.sql("INSERT INTO parts VALUES (1, 'x', 5, 'a b%'), (2, 'y', NULL, '05')")
    return folder


def rows(session: Any, name: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in session.table(name).collect())


def details(session: Any, name: str) -> dict[str, str]:
    return {row.col_name: row.data_type for row in session.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()}


def condition_of(call: Any) -> tuple[str, str, dict[str, str]]:
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException) as caught:
        call()
    return caught.value.getCondition(), caught.value.getSqlState(), caught.value.getMessageParameters()


def test_a_table_of_a_schema_with_the_name_of_the_format(session: Any) -> None:
    """ConvertToDeltaSuiteBase: "convert a parquet table to delta with database name as parquet"."""
    session.sql("CREATE SCHEMA parquet")
    try:
        session.sql("CREATE TABLE parquet.named USING parquet AS SELECT 1 AS id")
        session.sql("CONVERT TO DELTA parquet.named")
        assert details(session, "parquet.named")["Provider"] == "delta"
        assert rows(session, "parquet.named") == [(1,)]
    finally:
        session.sql("DROP SCHEMA parquet CASCADE")


def test_an_external_table_with_partitions(session: Any, parts: Path) -> None:
    before = rows(session, "parts")
    session.sql("CONVERT TO DELTA default.parts")
    assert rows(session, "parts") == before == [(1, "x", 5, "a b%"), (2, "y", None, "05")]
    assert {name: details(session, "parts")[name] for name in ("Type", "Provider")} == {
        "Type": "EXTERNAL",
        "Provider": "delta",
    }
    table = deltaic.DeltaTable(parts)
    assert table.metadata.partition_columns == ("p", "q")
    assert table.metadata.description == "in parts"
    assert {"a.b": "1", "delta.appendOnly": "true"}.items() <= table.metadata.configuration.items()
    assert [field.metadata for field in table.schema][:2] == [
        {"comment": "number"},
        {"__CHAR_VARCHAR_TYPE_STRING": "varchar(5)"},
    ]
    commit = table.history()[0]
    assert commit["operation"] == "CONVERT"
    assert commit["operationParameters"] == {
        "catalogTable": "`spark_catalog`.`default`.`parts`",
        "numFiles": 2,
        "partitionedBy": "[]",
        "collectStats": True,
        "sourceFormat": "parquet",
    }
    session.sql("INSERT INTO parts VALUES (3, 'z', 6, 'c')")
    assert len(rows(session, "parts")) == 3
    session.sql("DROP TABLE parts")
    assert parts.exists()
    elsewhere = parts.with_name("elsewhere")
    session.sql(f"CREATE TABLE parts (id INT, p INT) USING parquet PARTITIONED BY (p) LOCATION '{elsewhere}'")
    session.sql("INSERT INTO parts VALUES (7, 8)")
    assert rows(session, "parts") == [(7, 8)]
    assert list(elsewhere.glob("p=8/*.parquet"))


def test_a_managed_table(session: Any) -> None:
    session.sql("CREATE TABLE m (id INT, name STRING) USING parquet")
    session.sql("INSERT INTO m VALUES (1, 'x')")
    if ON_CONNECT:
        with pytest.raises(UnsupportedFeatureError, match=r"is not supported; found `default`\.`m`"):
            session.sql("CONVERT TO DELTA m")
        return
    session.sql("CONVERT TO DELTA m")
    folder = Path(deltaic.DeltaTable(details(session, "m")["Location"].removeprefix("file:")).location)
    assert {name: details(session, "m")[name] for name in ("Type", "Provider")} == {
        "Type": "MANAGED",
        "Provider": "delta",
    }
    session.sql("UPDATE m SET name = 'y'")
    assert rows(session, "m") == [(1, "y")]
    session.sql("DROP TABLE m")
    assert not folder.exists()


def test_partitioned_by_agrees_with_the_catalog(session: Any, parts: Path) -> None:
    tree = "root\n |-- p: integer (nullable = true)\n |-- q: string (nullable = true)\n"
    for given, shown in (
        ("p INT", "root\n |-- p: integer (nullable = true)\n"),
        ("p STRING, q STRING", tree.replace("integer", "string")),
        ("q STRING, p INT", "root\n |-- q: string (nullable = true)\n |-- p: integer (nullable = true)\n"),
    ):
        for call in (
            lambda given=given: session.sql(f"CONVERT TO DELTA parts PARTITIONED BY ({given})"),
            lambda given=given: DeltaTable.convertToDelta(session, "parts", given),
        ):
            parameters = {"catalogPartitionSchema": tree, "userPartitionSchema": shown}
            assert condition_of(call) == ("DELTA_UNEXPECTED_PARTITION_SCHEMA_FROM_USER", "KD009", parameters)
    assert not (parts / "_delta_log").exists()
    session.sql("CONVERT TO DELTA parts NO STATISTICS PARTITIONED BY (p INT, q STRING)")
    table = deltaic.DeltaTable(parts)
    assert table.history()[0]["operationParameters"]["partitionedBy"] == '["p","q"]'
    assert [action["stats"] for action in table.files().to_arrow().to_pylist() if "stats" in action] in (
        [],
        [None, None],
    )


def test_the_python_call(session: Any, parts: Path) -> None:
    table = DeltaTable.convertToDelta(session, "parts", "p INT, q STRING")
    assert table.toDF().count() == 2
    # It is one already.
    assert DeltaTable.convertToDelta(session, "spark_catalog.default.parts").toDF().count() == 2
    session.sql("CONVERT TO DELTA parts PARTITIONED BY (other INT)")
    assert len(table.history().collect()) == 1


def test_the_catalog_decides_about_files_and_columns(session: Any, tmp_path: Path) -> None:
    folder = tmp_path / "t"
    session.sql(f"CREATE TABLE t (id BIGINT, p INT) USING parquet PARTITIONED BY (p) LOCATION '{folder}'")
    session.sql("INSERT INTO t VALUES (1, 5)")
    session.range(3).write.parquet(f"{folder}/p=7")  # no partition of the catalog
    session.sql(f"CREATE TABLE wide (Id BIGINT, later STRING) USING parquet LOCATION '{tmp_path}/wide'")
    session.range(2).selectExpr("CAST(id AS INT) AS Id", "1 AS unknown").write.mode("append").parquet(
        f"{tmp_path}/wide"
    )
    for name in ("t", "wide"):
        session.sql(f"CONVERT TO DELTA {name}")
    assert rows(session, "t") == [(1, 5)]
    assert rows(session, "wide") == [(0, None), (1, None)]
    read = deltaic.DeltaTable(tmp_path / "wide").scan().to_arrow()
    assert sorted(read.to_pylist(), key=repr) == [{"Id": 0, "later": None}, {"Id": 1, "later": None}]


def test_an_entry_over_a_delta_table(session: Any, tmp_path: Path) -> None:
    """Also what is left of a conversion that ended after its commit."""
    deltaic.write(tmp_path / "t", {"id": [1, 2]})
    session.sql(f"CREATE TABLE t (id BIGINT) USING parquet LOCATION '{tmp_path}/t'")
    session.sql("CONVERT TO DELTA t")
    assert details(session, "t")["Provider"] == "delta"
    assert rows(session, "t") == [(1,), (2,)]
    assert deltaic.DeltaTable(tmp_path / "t").version == 0


def test_tables_that_are_not_converted(session: Any, tmp_path: Path) -> None:
    session.sql(f"CREATE TABLE c (id INT) USING csv LOCATION '{tmp_path}/c'")
    session.sql("CREATE VIEW v AS SELECT 1 AS id")
    session.range(1).createOrReplaceTempView("temporary")
    session.sql(f"CREATE TABLE nothing (id INT) USING parquet LOCATION '{tmp_path}/nothing'")
    session.range(2).selectExpr("id", "id AS p").write.partitionBy("p").parquet(f"{tmp_path}/unknown")
    session.sql(
        "CREATE TABLE unknown (id BIGINT, p BIGINT) USING parquet PARTITIONED BY (p) LOCATION"
        f" '{tmp_path}/unknown'"
    )
    for name, condition, state, parameters in (
        ("c", "DELTA_CONVERT_NON_PARQUET_TABLE", "0AKDC", {"sourceName": "csv", "tableId": "`default`.`c`"}),
        (
            "v",
            "DELTA_OPERATION_NOT_ALLOWED_DETAIL",
            "0AKDC",
            {"operation": "Converting a view to a Delta table", "tableName": "`default`.`v`"},
        ),
        ("temporary", "TABLE_OR_VIEW_NOT_FOUND", "42P01", {"relationName": "`temporary`"}),
        ("nobody", "TABLE_OR_VIEW_NOT_FOUND", "42P01", {"relationName": "`nobody`"}),
        ("nothing", "DELTA_EMPTY_DIRECTORY", "42K03", {"directory": f"{tmp_path}/nothing"}),
        (
            "unknown",
            "DELTA_CONVERSION_NO_PARTITION_FOUND",
            "42KD6",
            {"tableName": "spark_catalog.default.unknown"},
        ),
    ):
        found = condition_of(lambda name=name: session.sql(f"CONVERT TO DELTA {name}"))
        assert found[:2] == (condition, state)
        assert parameters.items() <= found[2].items()
    session.catalog.dropTempView("temporary")


def test_files_that_do_not_fit(session: Any, tmp_path: Path) -> None:
    session.sql(f"CREATE TABLE other (id INT) USING parquet LOCATION '{tmp_path}/other'")
    session.sql("SELECT 'x' AS id").write.mode("append").parquet(f"{tmp_path}/other")
    with pytest.raises(
        SchemaMismatchError,
        match="another type for a column than the catalog; found string; expected integer",
    ):
        session.sql("CONVERT TO DELTA other")
    session.sql(
        f"CREATE TABLE away (id INT, p INT) USING parquet PARTITIONED BY (p) LOCATION '{tmp_path}/away'"
    )
    session.sql(f"ALTER TABLE away ADD PARTITION (p = 9) LOCATION '{tmp_path}/place'")
    session.sql("INSERT INTO away VALUES (1, 5), (2, 9)")
    with pytest.raises(PathOutsideTableError, match="a partition of the table has its own place"):
        session.sql("CONVERT TO DELTA away")
    session.sql(f"CREATE TABLE filled (id INT, x INT DEFAULT 5) USING parquet LOCATION '{tmp_path}/filled'")
    session.sql("INSERT INTO filled VALUES (1, 2)")
    with pytest.raises(UnsupportedFeatureError, match="columns with defaults is not supported; found x"):
        session.sql("CONVERT TO DELTA filled")
    for name in ("other", "away", "filled"):
        assert details(session, name)["Provider"] == "parquet"
        assert not (tmp_path / name / "_delta_log").exists()
