"""Refusals of ALTER TABLE and CREATE TABLE on Spark. Each case has the condition and the parameters of
delta-spark, for statements of its suites DeltaAlterTableTests, DeltaDDLSuite, DeltaTableCreationTests,
DeltaColumnRenameSuite and DeltaDropColumnSuite."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import deltaic
from deltaic.spark.tables import DeltaTable

COLUMNS = (
    "id INT, s STRUCT<a: INT, b: STRING>, ar ARRAY<INT>, m MAP<STRING, STRUCT<x: INT>>, c CHAR(4), p STRING"
)
HIVE = {"command": "ALTER COLUMN"}
CHANGES: dict[str, tuple[str, dict[str, str]]] = {
    "ADD COLUMNS (s.a INT)": ("FIELD_ALREADY_EXISTS", {"op": "add", "fieldNames": "`s`.`a`"}),
    "ADD COLUMNS (m.x INT)": ("INVALID_FIELD_NAME", {"fieldName": "`m`.`x`", "path": "`m`"}),
    "ADD COLUMNS (m.key.x INT)": ("INVALID_FIELD_NAME", {"fieldName": "`m`.`key`.`x`", "path": "`m`.`key`"}),
    "ADD COLUMNS (n INT, N INT)": ("COLUMN_ALREADY_EXISTS", {"columnName": "`n`"}),
    "ADD COLUMNS (n STRUCT<a: INT NOT NULL>)": (
        "DELTA_OPERATION_NOT_ALLOWED",
        {"operation": "NOT NULL in ALTER TABLE ADD COLUMNS"},
    ),
    "CHANGE COLUMN id other INT": (
        "_LEGACY_ERROR_TEMP_0034",
        {**HIVE, "operation": "Renaming column", "msg": ", please run RENAME COLUMN instead"},
    ),
    "CHANGE COLUMN id id INT NOT NULL": (
        "_LEGACY_ERROR_TEMP_0034",
        {
            **HIVE,
            "operation": "NOT NULL",
            "msg": ", please run ALTER COLUMN ... SET/DROP NOT NULL instead",
        },
    ),
    "ALTER COLUMN id SET NOT NULL": ("_LEGACY_ERROR_TEMP_2330", {"fieldName": "id"}),
    "CHANGE COLUMN s s STRUCT<a: INT, b: STRING NOT NULL>": (
        "CANNOT_UPDATE_FIELD.STRUCT_TYPE",
        {"fieldName": "`s`"},
    ),
    "ALTER COLUMN ar TYPE ARRAY<BIGINT>": ("CANNOT_UPDATE_FIELD.ARRAY_TYPE", {"fieldName": "`ar`"}),
    "ALTER COLUMN m TYPE MAP<STRING, STRUCT<x: INT, y: INT>>": (
        "CANNOT_UPDATE_FIELD.MAP_TYPE",
        {"fieldName": "`m`"},
    ),
    "ALTER COLUMN s COMMENT 'x', s.a FIRST": ("NOT_SUPPORTED_CHANGE_SAME_COLUMN", {"fieldName": "`s`"}),
    "ALTER COLUMN ar.element COMMENT 'x'": (
        "DELTA_UNSUPPORTED_COMMENT_MAP_ARRAY",
        {"fieldPath": "ar.element"},
    ),
    "ALTER COLUMN c TYPE VARCHAR(3)": (
        "NOT_SUPPORTED_CHANGE_COLUMN",
        {"originName": "`c`", "originType": '"CHAR(4)"', "newType": '"VARCHAR(3)"'},
    ),
    "SET TBLPROPERTIES ('location' = 'x')": (
        "UNSUPPORTED_FEATURE.SET_TABLE_PROPERTY",
        {"property": "location", "msg": "please use the LOCATION clause to specify it"},
    ),
    "RECOVER PARTITIONS": (
        "NOT_SUPPORTED_COMMAND_FOR_V2_TABLE",
        {"cmd": "ALTER TABLE ... RECOVER PARTITIONS"},
    ),
    "DROP COLUMN p": ("DELTA_UNSUPPORTED_DROP_PARTITION_COLUMN", {"columnList": "p"}),
    "DROP COLUMN m.value.x": (
        "DELTA_DROP_COLUMN_ON_SINGLE_FIELD_SCHEMA",
        {"schema": "root\n |-- x: integer (nullable = true)\n"},
    ),
    "RENAME COLUMN s.b TO B": ("FIELD_ALREADY_EXISTS", {"op": "rename", "fieldNames": "`s`.`B`"}),
    "RENAME COLUMN s TO t": (
        "DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE",
        {"columnName": "s", "constraints": "delta.constraints.low -> s.a < 9"},
    ),
}


def refused(session: Any, statement: str) -> tuple[str, dict[str, str]]:
    from pyspark.errors import AnalysisException

    with pytest.raises(AnalysisException) as caught:
        session.sql(statement)
    return caught.value.getCondition(), caught.value.getMessageParameters()


def test_changes_that_are_refused(session: Any, tmp_path: Path) -> None:
    table = f"delta.`{tmp_path}/t`"
    session.sql(
        f"CREATE TABLE {table} ({COLUMNS}) USING delta PARTITIONED BY (p)"
        " TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    )
    session.sql(f"ALTER TABLE {table} ADD CONSTRAINT low CHECK (s.a < 9)")
    found = {}
    for change, (_, wanted) in CHANGES.items():
        condition, parameters = refused(session, f"ALTER TABLE {table} {change}")
        found[change] = condition, {name: parameters.get(name) for name in wanted}
    assert found == CHANGES
    assert deltaic.DeltaTable(tmp_path / "t").version == 1


def test_properties_that_are_not_set_can_be_unset(session: Any, tmp_path: Path) -> None:
    """DeltaAlterTableTests: "SET/UNSET comment by TBLPROPERTIES", "SET/UNSET TBLPROPERTIES - unset
    non-existent config value should still unset the config if key matches"."""
    table = f"delta.`{tmp_path}/t`"
    session.sql(f"CREATE TABLE {table} (id INT) USING delta COMMENT 'c' TBLPROPERTIES ('key' = 'v')")
    session.sql(f"ALTER TABLE {table} UNSET TBLPROPERTIES ('delta.key', 'kEy', 'comment')")
    assert session.sql(f"DESCRIBE DETAIL {table}").first().description is None
    (last,) = deltaic.DeltaTable(tmp_path / "t").history(1)
    assert last["operationParameters"]["properties"] == '["delta.key","kEy","comment"]'
    assert deltaic.DeltaTable(tmp_path / "t").metadata.configuration["key"] == "v"


@pytest.mark.usefixtures("catalog_of_the_test_alone")
def test_a_name_for_an_existing_table_has_its_definition(session: Any, tmp_path: Path) -> None:
    """DeltaTableCreationTests: "CREATE TABLE with existing data path", "create table with table properties -
    case insensitivity with existing configuration", "create external table without schema but using non-delta
    files", "CTAS external table with existing data should fail"."""
    path = tmp_path / "t"
    session.sql(
        f"CREATE TABLE delta.`{path}` (a INT COMMENT 'x', p STRING) USING delta PARTITIONED BY (p)"
        " TBLPROPERTIES ('delta.checkpointInterval' = '20')"
    )
    location, partitioned = f"USING delta LOCATION '{path}'", "PARTITIONED BY (p)"
    session.sql(
        f"CREATE TABLE one (p STRING, a INT COMMENT 'x') {location} {partitioned}"
        " TBLPROPERTIES ('DelTa.ChEckPoiNtinTervAl' = '20')"
    )
    assert session.table("one").columns == ["a", "p"]
    for columns in ("a INT, p STRING", "A INT COMMENT 'x', p STRING", "a INT NOT NULL COMMENT 'x', p STRING"):
        condition, parameters = refused(session, f"CREATE TABLE two ({columns}) {location} {partitioned}")
        assert condition == "DELTA_CREATE_TABLE_SCHEME_MISMATCH"
        assert parameters["existingSchema"].startswith("root\n |-- a: integer (nullable = true)\n")
    assert refused(session, f"CREATE TABLE two (a INT COMMENT 'x', p STRING) {location}") == (
        "DELTA_CREATE_TABLE_WITH_DIFFERENT_PARTITIONING",
        {"path": str(path), "specifiedColumns": "", "existingColumns": "p"},
    )
    condition, parameters = refused(
        session, f"CREATE TABLE two {location} TBLPROPERTIES ('delta.checkpointInterval' = '9')"
    )
    assert condition == "DELTA_CREATE_TABLE_WITH_DIFFERENT_PROPERTY"
    assert parameters["specifiedProperties"] == "delta.checkpointInterval=9"
    assert "delta.checkpointInterval=20" in parameters["existingProperties"].split("\n")
    condition, _ = refused(session, f"CREATE TABLE two {location} AS SELECT 1 AS a")
    assert condition == "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION"
    (tmp_path / "other").mkdir()
    (tmp_path / "other/file.parquet").touch()
    condition, parameters = refused(session, f"CREATE TABLE two USING delta LOCATION '{tmp_path}/other'")
    assert condition == "DELTA_CREATE_EXTERNAL_TABLE_WITHOUT_TXN_LOG"
    clustered = f"(a INT, b INT) USING delta LOCATION '{tmp_path}/c'"
    session.sql(f"CREATE TABLE three {clustered} CLUSTER BY (a)")
    session.sql(f"CREATE TABLE four {clustered} CLUSTER BY (A)")
    for clause in ("", "CLUSTER BY (b)"):
        condition, _ = refused(session, f"CREATE TABLE two {clustered} {clause}")
        assert condition == "DELTA_CREATE_TABLE_WITH_DIFFERENT_CLUSTERING"
    assert parameters["logPath"] == f"{tmp_path}/other/_delta_log"


@pytest.mark.usefixtures("catalog_of_the_test_alone")
def test_a_name_for_an_existing_table_has_its_generated_columns(session: Any, tmp_path: Path) -> None:
    """GeneratedColumnSuite: "creating a table with a different schema should fail"."""
    place = f"USING delta LOCATION '{tmp_path}/g'"
    session.sql(f"CREATE TABLE one (a BIGINT, g BIGINT GENERATED ALWAYS AS (a + 10)) {place}")
    session.sql(f"CREATE TABLE two (a BIGINT, g BIGINT GENERATED ALWAYS AS (a + 10)) {place}")
    for column in ("g BIGINT", "g BIGINT GENERATED ALWAYS AS (a + 11)"):
        condition, _ = refused(session, f"CREATE TABLE three (a BIGINT, {column}) {place}")
        assert condition == "DELTA_CREATE_TABLE_SCHEME_MISMATCH"


def test_one_path_as_name_and_location(session: Any, tmp_path: Path) -> None:
    """DeltaDDLSuite: "table creation with ambiguous paths only allowed with legacy flag"."""
    session.sql(f"CREATE TABLE delta.`{tmp_path}/t` (id LONG) USING delta LOCATION 'file:{tmp_path}/t'")
    assert deltaic.DeltaTable.exists(tmp_path / "t")
    condition, _ = refused(
        session, f"CREATE TABLE delta.`{tmp_path}/a` (id LONG) USING delta LOCATION '{tmp_path}/b'"
    )
    assert condition == "DELTA_AMBIGUOUS_PATHS_IN_CREATE_TABLE"


def test_a_table_without_columns(session: Any, tmp_path: Path) -> None:
    """DeltaTableCreationTests: "Create an empty table without schema - unsupported cases"."""
    from pyspark.errors import AnalysisException

    with pytest.raises(AnalysisException) as caught:
        DeltaTable.createOrReplace(session).location(f"{tmp_path}/t").execute()
    assert caught.value.getCondition() == "DELTA_SCHEMA_NOT_PROVIDED"
    session.sql(f"CREATE TABLE delta.`{tmp_path}/t` USING delta")
    condition, _ = refused(
        session,
        f"MERGE INTO delta.`{tmp_path}/t` USING (SELECT 1 AS a) ON false WHEN NOT MATCHED THEN INSERT *",
    )
    assert condition == "DELTA_MERGE_INTO_EMPTY_SCHEMA_TARGET"
