"""Settings of a session for delta-spark: they are used if an option or argument does not override them."""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deltaic
import deltaic.spark
from deltaic import CommitOptions, DeltaTable
from deltaic.engine.spark.settings import (
    ARBITRARY_PROPERTIES,
    LAST_COMMIT,
    MAPPING_REMOVAL,
    OVERWRITE_PARTITIONS,
    REPLACE_WHERE_CHECK,
    REPLACE_WHERE_DATA,
    SINK_LOG,
    TWO_PATHS,
    TXN_APP_ID,
    TXN_AUTO_RESET,
    TXN_VERSION,
    USER_METADATA,
)
from deltaic.errors import (
    ConstraintViolationError,
    DeltaError,
    InvalidArgumentError,
    SchemaMismatchError,
    TableAlreadyExistsError,
    UnsupportedFeatureError,
)
from deltaic.spark.tables import DeltaTable as DeltaTableOfSpark
from spark_session import setting


@pytest.fixture
def session(session_of_the_test: Any) -> Any:
    return session_of_the_test


def test_enabling_warns_of_settings_that_deltaic_does_not_read(
    spark: Any, caplog: pytest.LogCaptureFixture
) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "spark.md").read_text()
    names = re.findall(r"^\| `(spark\.databricks\.delta\.[\w.]+)`", page, re.MULTILINE)
    assert len(names) > 20
    own = spark.newSession()
    for name in names:
        own.conf.set(name, "1")
    unread = [
        f"spark.databricks.delta.{name}"
        for name in ("snapshotPartitions", "streaming.offsetValidation.enabled")
    ]
    for name in unread:
        own.conf.set(name, "1")
    with caplog.at_level(logging.WARNING, "deltaic.spark"):
        deltaic.spark.enable(own)
    deltaic.spark.disable(own)
    (warning,) = (record.getMessage() for record in caplog.records if "have no effect" in record.getMessage())
    assert warning.endswith(": " + ", ".join(unread))


def transactions(path: Path) -> list[tuple[str, int]]:
    """Returns each `txn` action of the log."""
    lines = [
        json.loads(line)
        for commit in sorted((path / "_delta_log").glob("*.json"))
        for line in commit.read_text().splitlines()
    ]
    return [(line["txn"]["appId"], line["txn"]["version"]) for line in lines if "txn" in line]


def test_a_transaction_of_the_session_is_committed_once(tmp_path: Path, session: Any) -> None:
    path = tmp_path / "t"
    table, rows = f"delta.`{path}`", session.range(3)
    writer = rows.write.format("delta").mode("append")
    session.conf.set(TXN_APP_ID, "job")
    with pytest.raises(
        InvalidArgumentError, match="only one of the two settings of an application transaction"
    ):
        writer.save(str(path))
    statements = [
        # The mode "error": made by its own transaction the first time.
        lambda: rows.write.format("delta").save(str(path)),
        lambda: writer.save(str(path)),
        lambda: session.sql(f"DELETE FROM {table} WHERE id = 0"),
        lambda: session.sql(f"UPDATE {table} SET id = id + 10 WHERE id = 1"),
        lambda: session.sql(
            f"MERGE INTO {table} t USING (SELECT 99L AS id) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *"
        ),
        lambda: DeltaTable(path, spark=session).delete("id = 99"),
    ]
    for number, statement in enumerate(statements, 1):
        session.conf.set(TXN_VERSION, number)
        for _ in range(2):
            statement()
        assert transactions(path) == [("job", each) for each in range(1, number + 1)]
        assert DeltaTable(path).version == number - 1
    writer.option("txnAppId", "other").option("txnVersion", 1).save(str(path))
    deltaic.write(DeltaTable(path), rows, mode="append", commit=CommitOptions(transactions={"third": 5}))
    assert transactions(path)[-2:] == [("other", 1), ("third", 5)]
    session.sql(f"OPTIMIZE {table}")  # rows are the same before and after it: no transaction of a job
    assert len(transactions(path)) == len(statements) + 2
    session.conf.unset(TXN_APP_ID)
    session.conf.unset(TXN_VERSION)
    with pytest.raises(TableAlreadyExistsError):
        rows.write.format("delta").save(str(path))


def test_a_transaction_of_the_session_is_unset_after_its_command(tmp_path: Path, session: Any) -> None:
    writer = session.range(3).write.format("delta").mode("append")
    session.conf.set(TXN_APP_ID, "job")
    session.conf.set(TXN_AUTO_RESET, "true")
    for _ in range(2):  # also after a command that is skipped
        session.conf.set(TXN_VERSION, "7")
        writer.save(str(tmp_path))
        assert (session.conf.get(TXN_VERSION, None), session.conf.get(TXN_APP_ID)) == (None, "job")
    assert transactions(tmp_path) == [("job", 7)]
    session.conf.set(TXN_VERSION, "8")
    writer.option("txnAppId", "other").option("txnVersion", 1).save(str(tmp_path))
    assert session.conf.get(TXN_VERSION) == "8"
    session.conf.set(TXN_VERSION, "soon")
    with pytest.raises(InvalidArgumentError, match="txnVersion"):
        session.range(3).write.format("delta").mode("append").save(str(tmp_path))


def test_the_session_has_the_version_of_its_last_commit(tmp_path: Path, session: Any) -> None:
    path = str(tmp_path)
    session.range(3).write.format("delta").save(path)
    versions = [session.conf.get(LAST_COMMIT)]
    deltaic.write(tmp_path, pa.table({"id": [7]}), mode="append")  # of no session
    table = DeltaTableOfSpark.forPath(session, path)
    for command in (
        lambda: session.sql(f"INSERT INTO delta.`{path}` VALUES (8)"),
        lambda: table.delete("id = 100"),  # commits nothing
        lambda: table.optimize().executeCompaction(),
        lambda: session.sql(f"ALTER TABLE delta.`{path}` ADD COLUMNS (x INT)"),
        lambda: table.restoreToVersion(0),
        lambda: session.sql(f"CREATE TABLE delta.`{path}/other` (id INT) USING delta"),
    ):
        command()
        versions.append(session.conf.get(LAST_COMMIT))
    assert versions == ["0", "2", "2", "3", "4", "5", "0"]


def test_metadata_of_the_session_is_in_every_commit(tmp_path: Path, session: Any) -> None:
    session.conf.set(USER_METADATA, "nightly")
    session.conf.set("spark.databricks.delta.properties.defaults.appendOnly", "false")
    table = f"delta.`{tmp_path}`"
    for statement in (
        f"CREATE TABLE {table} (id bigint) USING delta",
        f"INSERT INTO {table} VALUES (1)",
        f"INSERT INTO {table} VALUES (2)",
        f"ALTER TABLE {table} SET TBLPROPERTIES ('a' = 'b')",
        f"ALTER TABLE {table} ADD COLUMNS (x int)",
        f"OPTIMIZE {table}",
        f"RESTORE TABLE {table} TO VERSION AS OF 1",
    ):
        session.sql(statement)
    DeltaTable(tmp_path, spark=session).alter.set_name("x", commit=CommitOptions(user_metadata="of the call"))
    history = DeltaTable(tmp_path).history()
    assert [row["userMetadata"] for row in history] == ["of the call"] + ["nightly"] * 7
    assert DeltaTable(tmp_path, version=0).metadata.configuration["delta.appendOnly"] == "false"


def test_default_properties_of_the_session_are_those_of_a_replaced_table(
    tmp_path: Path, session: Any
) -> None:
    session.conf.set("spark.databricks.delta.properties.defaults.enableDeletionVectors", "false")
    table = f"delta.`{tmp_path}`"
    session.sql(f"CREATE TABLE {table} (id bigint) USING delta")
    session.sql(f"CREATE OR REPLACE TABLE {table} USING delta AS SELECT 1 AS id")
    session.range(3).writeTo(table).createOrReplace()
    for version in range(3):
        table_then = DeltaTable(tmp_path, version=version)
        assert table_then.metadata.configuration["delta.enableDeletionVectors"] == "false"
        assert table_then.protocol.min_reader_version == 1


def test_without_default_properties_new_tables_are_those_of_delta_spark(tmp_path: Path, session: Any) -> None:
    """delta-spark writes no property and the protocol (1, 2)."""
    by_sql, by_writer = tmp_path / "sql", tmp_path / "writer"
    with deltaic.configure(default_properties={}):
        session.sql(f"CREATE TABLE delta.`{by_sql}` (id bigint NOT NULL) USING delta")
        session.range(3).write.format("delta").save(str(by_writer))
    for path in (by_sql, by_writer):
        assert dict(DeltaTable(path).metadata.configuration) == {}
        shown = session.sql(f"SHOW TBLPROPERTIES delta.`{path}`").collect()
        assert {row.key: row.value for row in shown} == {
            "delta.minReaderVersion": "1",
            "delta.minWriterVersion": "2",
        }


def test_a_default_of_an_unknown_property_has_no_effect(tmp_path: Path, session: Any) -> None:
    session.conf.set("spark.databricks.delta.properties.defaults.nope", "1")
    session.conf.set("spark.databricks.delta.properties.defaults.enablechangedatafeed", "true")
    session.sql(f"CREATE TABLE delta.`{tmp_path}` (id bigint) USING delta")
    configuration = DeltaTable(tmp_path).metadata.configuration
    assert (configuration.get("delta.enableChangeDataFeed"), configuration.get("delta.nope")) == (
        "true",
        None,
    )


def test_an_overwrite_that_does_not_check_its_condition(tmp_path: Path, session: Any) -> None:
    """delta-spark's setting for replaceWhere with rows for which the condition is not true."""
    path = str(tmp_path)
    session.range(4).write.format("delta").save(path)
    rows = session.range(7, 9)
    with pytest.raises(ConstraintViolationError):
        rows.write.format("delta").mode("overwrite").option("replaceWhere", "id < 2").save(path)
    session.conf.set(REPLACE_WHERE_CHECK, "false")
    rows.write.format("delta").mode("overwrite").option("replaceWhere", "id < 2").save(path)
    session.sql(f"INSERT INTO delta.`{path}` REPLACE WHERE id = 2 SELECT 10L AS id")
    assert sorted(row.id for row in session.read.format("delta").load(path).collect()) == [3, 7, 8, 10]


def test_rows_of_a_new_table_need_not_match_the_condition(tmp_path: Path, session: Any) -> None:
    writer = session.range(3).write.format("delta").mode("overwrite").option("replaceWhere", "id < 2")
    writer.save(str(tmp_path))
    assert session.read.format("delta").load(str(tmp_path)).count() == 3
    (commit,) = DeltaTable(tmp_path).history()
    assert commit["operationParameters"]["predicate"] == "id < 2"
    assert commit["operationMetrics"].keys() >= {"numAddedChangeFiles", "numCopiedRows"}
    with pytest.raises(ConstraintViolationError):
        writer.save(str(tmp_path))


def test_a_condition_that_may_read_partition_columns_only(tmp_path: Path, session: Any) -> None:
    path, rows = str(tmp_path), session.range(4).selectExpr("id", "id % 2 AS part")
    rows.write.format("delta").partitionBy("part").save(path)
    writer = rows.where("part = 1").write.format("delta")
    session.conf.set(REPLACE_WHERE_DATA, "false")
    for condition, name in (
        ("id < 5", "DELTA_NON_PARTITION_COLUMN_REFERENCE"),
        ("part IN (SELECT 1)", "DELTA_UNSUPPORTED_SUBQUERY_IN_PARTITION_PREDICATES"),
        ("part = 0", "DELTA_REPLACE_WHERE_MISMATCH"),
        ("false", "DELTA_REPLACE_WHERE_MISMATCH"),
        ("null", "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN"),
    ):
        with pytest.raises(DeltaError) as caught:
            writer.mode("overwrite").option("replaceWhere", condition).save(path)
        assert caught.value.getCondition() == name, condition
    writer.option("replaceWhere", "part = 1").save(path)
    metrics = DeltaTable(tmp_path).history(1)[0]["operationMetrics"]
    assert "numRemovedFiles" in metrics
    assert not metrics.keys() & {"numDeletedRows", "numCopiedRows"}


def test_the_history_shows_a_condition_that_has_no_effect(tmp_path: Path, session: Any) -> None:
    writer = session.range(3).write.format("delta").mode("append").option("replaceWhere", "id < 2")
    for _ in range(2):
        writer.save(str(tmp_path))
        commit = DeltaTable(tmp_path).history(1)[0]
        assert commit["operationParameters"]["predicate"] == "id < 2"
        assert commit["operationMetrics"].keys() >= {"numAddedChangeFiles", "numCopiedRows"}
    with pytest.raises(InvalidArgumentError) as caught:
        writer.option("replaceWhere", "id < ").save(str(tmp_path))
    assert caught.value.getCondition() == "DELTA_FAILED_RECOGNIZE_PREDICATE"


def test_a_session_that_refuses_to_overwrite_by_partition(tmp_path: Path, session: Any) -> None:
    path, rows = str(tmp_path), session.range(4).selectExpr("id", "id % 2 AS part")
    rows.write.format("delta").partitionBy("part").save(path)
    session.conf.set(OVERWRITE_PARTITIONS, "false")
    writer = rows.write.format("delta").mode("overwrite")
    writer.option("partitionOverwriteMode", "adaptive").save(path)
    session.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    for overwrite in (
        lambda: writer.option("partitionOverwriteMode", "dynamic").save(path),
        lambda: rows.writeTo(f"delta.`{path}`").overwritePartitions(),
        lambda: session.sql(f"INSERT OVERWRITE delta.`{path}` VALUES (1, 1)"),
    ):
        with pytest.raises(InvalidArgumentError) as caught:
            overwrite()
        assert caught.value.getCondition() == "DELTA_DYNAMIC_PARTITION_OVERWRITE_DISABLED"


def test_values_that_do_not_fit_are_no_errors_with_legacy_store_assignment(
    tmp_path: Path, session: Any
) -> None:
    table = f"delta.`{tmp_path / 't'}`"
    session.sql(f"CREATE TABLE {table} (id INT, small TINYINT, day DATE, part STRUCT<n: INT>) USING delta")
    session.conf.set("spark.sql.storeAssignmentPolicy", "LEGACY")
    session.conf.set("spark.sql.ansi.enabled", "false")
    session.sql(f"INSERT INTO {table} VALUES (1, 1000, 'x', named_struct('n', 'x')), (2, 7, null, null)")
    session.sql(f"UPDATE {table} SET small = 300, day = 'x' WHERE id = 2")
    session.sql("SELECT 3 AS id, 'x' AS small").writeTo(table).append()
    session.sql(
        f"MERGE INTO {table} t USING (SELECT 4 AS id, 'x' AS small, 'x' AS day, null AS part) s"
        " ON t.id = s.id WHEN NOT MATCHED THEN INSERT *"
    )
    session.conf.set("spark.sql.ansi.enabled", "true")
    session.sql(f"INSERT INTO {table} VALUES (5, 1000, 'x', null)")
    session.conf.unset("spark.sql.ansi.enabled")  # Spark's default is ANSI mode
    session.sql(f"INSERT INTO {table} VALUES (6, 1000, 'x', null)")
    rows = session.sql(f"SELECT id, small, day, part.n FROM {table} ORDER BY id")
    smalls = [-24, 44, None, None, -24, -24]
    assert [tuple(row) for row in rows.collect()] == [
        (number, small, None, None) for number, small in enumerate(smalls, 1)
    ]


def test_legacy_store_assignment_keeps_the_low_bits_in_ansi_mode(tmp_path: Path, session: Any) -> None:
    """The numbers were recorded from delta-spark."""
    table = f"delta.`{tmp_path / 't'}`"
    session.sql(f"CREATE TABLE {table} (k INT, b TINYINT, i INT, l BIGINT) USING delta")
    session.conf.set("spark.sql.storeAssignmentPolicy", "LEGACY")
    numbers = ("3000000000L", "-300.7", "40000.6D", "-1e30D", "double('NaN')", "float('3e9')")
    values = ", ".join(f"({k}, {number}, {number}, {number})" for k, number in enumerate(numbers))
    for each in values.replace("), (", ");(").split(";"):
        session.sql(f"INSERT INTO {table} VALUES {each}")
    assert [tuple(row) for row in session.sql(f"SELECT b, i, l FROM {table} ORDER BY k").collect()] == [
        (0, -1294967296, 3000000000),
        (-44, -300, -300),
        (64, 40000, 40000),
        (0, -(2**31), -(2**63)),
        (0, 0, 0),
        (-1, 2**31 - 1, 3000000000),
    ]


def test_an_insert_names_all_columns_if_nulls_do_not_fill_them(tmp_path: Path, session: Any) -> None:
    table = f"delta.`{tmp_path / 't'}`"
    properties = "TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')"
    session.sql(f"CREATE TABLE {table} (a INT, b INT, c INT DEFAULT 5) USING delta {properties}")
    session.conf.set("spark.sql.defaultColumn.useNullsForMissingDefaultValues", "false")
    for rest in ("(a) VALUES (1)", "BY NAME SELECT 1 AS a"):
        with pytest.raises(SchemaMismatchError, match="leaves out a column that has no default") as caught:
            session.sql(f"INSERT INTO {table} {rest}")
        assert caught.value.getCondition() == "DELTA_INSERT_COLUMN_MISMATCH"
    session.sql(f"INSERT INTO {table} (a, b) VALUES (1, 2)")
    session.sql("SELECT 3 AS a").write.format("delta").mode("append").save(str(tmp_path / "t"))
    rows = session.sql(f"SELECT * FROM {table} ORDER BY a").collect()
    assert [tuple(row) for row in rows] == [(1, 2, 5), (3, None, 5)]


def test_properties_among_options_are_those_of_a_new_table(tmp_path: Path, session: Any) -> None:
    path = str(tmp_path / "t")
    writer = session.range(1).write.format("delta")
    writer.option("delta.appendOnly", "true").save(path)
    for mode, options in (
        ("append", {"delta.appendOnly": "false", "delta.nothing": "1"}),
        ("append", {"delta.enableChangeDataFeed": "maybe"}),
    ):
        session.range(1).write.format("delta").mode(mode).options(**options).save(path)
    DeltaTable(path).alter.unset_properties("delta.appendOnly")
    over = session.range(1).write.format("delta").mode("overwrite").option("overwriteSchema", "true")
    over.option("delta.appendOnly", "true").save(path)
    assert "delta.appendOnly" not in DeltaTable(path).metadata.configuration
    assert DeltaTable(path).version == 4


def test_strict_store_assignment_casts_to_wider_types_only(tmp_path: Path, session: Any) -> None:
    table = f"delta.`{tmp_path / 't'}`"
    session.sql(f"CREATE TABLE {table} (id INT, whole BIGINT, text STRING, real DOUBLE) USING delta")
    session.conf.set("spark.sql.storeAssignmentPolicy", "STRICT")
    session.sql(f"INSERT INTO {table} VALUES (1, 2, 3.5, 4), (CAST(2 AS TINYINT), 3BD, null, null)")
    session.sql(f"UPDATE {table} SET whole = timestamp'1970-01-01 00:00:02 UTC' WHERE id = 1")
    for statement in (
        f"INSERT INTO {table} (id) VALUES (3L)",
        f"INSERT INTO {table} (id) VALUES (array(3))",
        f"INSERT INTO {table} (whole) VALUES (date'2024-01-01')",
        f"UPDATE {table} SET whole = '5'",
        f"UPDATE {table} SET real = 1.5",  # a decimal
        f"UPDATE {table} SET text = array(1)",
        f"UPDATE {table} SET whole = array(1)",
        f"MERGE INTO {table} t USING (SELECT 1 AS id) s ON t.id = s.id"
        " WHEN MATCHED THEN UPDATE SET whole = 5.5",
    ):
        with pytest.raises(SchemaMismatchError, match="value needs a cast") as raised:
            session.sql(statement)
        assert raised.value.getCondition() == "CANNOT_UP_CAST_DATATYPE"  # type: ignore[attr-defined]
    rows = session.sql(f"SELECT * FROM {table} ORDER BY id").collect()
    assert [tuple(row) for row in rows] == [(1, 2, "3.5", 4.0), (2, 3, None, None)]


def test_timestamps_keep_their_zone_if_the_type_timestamp_has_none(tmp_path: Path, session: Any) -> None:
    path = tmp_path / "t"
    session.conf.set("spark.sql.session.timeZone", "America/New_York")
    session.sql(f"CREATE TABLE delta.`{path}` (id INT, at TIMESTAMP, s STRUCT<at: TIMESTAMP>) USING delta")
    session.conf.set("spark.sql.timestampType", "TIMESTAMP_NTZ")
    session.sql(f"INSERT INTO delta.`{path}` (id, at) VALUES (1, '2024-01-01 00:00:00')")
    session.sql(f"INSERT INTO delta.`{path}` SELECT 2, timestamp'2024-01-01 00:00:00', null")
    session.sql(f"INSERT INTO delta.`{path}` (id) VALUES (3)")
    session.sql(f"UPDATE delta.`{path}` SET at = '2024-01-01 00:00:00' WHERE id = 3")
    rows = DeltaTable(path).scan(where="at = timestamp'2024-01-01 05:00:00 UTC' AND s IS NULL").to_pylist()
    assert sorted(row["id"] for row in rows) == [1, 2, 3]


def test_timestamps_of_new_columns_have_the_type_of_the_setting(tmp_path: Path, session: Any) -> None:
    path, built = tmp_path / "t", tmp_path / "built"
    session.conf.set("spark.sql.timestampType", "TIMESTAMP_NTZ")
    session.sql(f"CREATE TABLE delta.`{path}` (at TIMESTAMP, zoned TIMESTAMP_LTZ, s STRUCT<at: TIMESTAMP>)")
    session.sql(f"ALTER TABLE delta.`{path}` ADD COLUMNS (b TIMESTAMP)")
    builder = deltaic.spark.tables.DeltaTable.create(session).location(str(built))
    builder.addColumn("at", "TIMESTAMP").execute()
    session.conf.unset("spark.sql.timestampType")
    session.sql(f"ALTER TABLE delta.`{path}` ADD COLUMNS (c TIMESTAMP)")
    expected = "at timestamp_ntz, zoned timestamp, s struct<at: timestamp_ntz>, b timestamp_ntz, c timestamp"
    assert DeltaTable(path).schema.to_ddl() == expected
    assert DeltaTable(built).schema.to_ddl() == "at timestamp_ntz"
    with pytest.raises(InvalidArgumentError, match="no such type"):
        session.sql(f"ALTER TABLE delta.`{path}` ADD COLUMNS (d TIMESTAMP_X)")


def test_the_session_sets_the_size_of_files_of_optimize(tmp_path: Path, session: Any) -> None:
    of_session, of_table = tmp_path / "session", tmp_path / "table"
    for path in (of_session, of_table):
        for first in range(0, 4_000, 1_000):
            deltaic.write(path, pa.table({"id": pa.array(range(first, first + 1_000))}), mode="append")
    size = max(DeltaTable(of_session).files().to_arrow()["size"].to_pylist())
    session.conf.set("spark.databricks.delta.optimize.maxFileSize", str(int(size * 2.5)))
    session.sql(f"OPTIMIZE delta.`{of_session}`")
    assert DeltaTable(of_session).files().count() == 2
    session.conf.set("spark.databricks.delta.optimize.maxFileSize", "1g")
    with pytest.raises(InvalidArgumentError, match=r"optimize\.maxFileSize"):
        session.sql(f"OPTIMIZE delta.`{of_table}`")
    session.conf.unset("spark.databricks.delta.optimize.maxFileSize")
    session.sql(f"OPTIMIZE delta.`{of_table}`")
    assert DeltaTable(of_table).files().count() == 1


@pytest.mark.parametrize(("setting", "is_auto"), [("optimize", False), ("autoCompact", True)])
def test_the_session_sets_which_files_are_small(
    tmp_path: Path, session: Any, setting: str, is_auto: bool
) -> None:
    """Source: `minFileSize` of OptimizeTableCommand and of AutoCompact of delta-spark."""
    path = tmp_path / "t"
    for first, count in ((0, 10), (10, 10), (100, 10_000), (20_000, 10_000)):
        deltaic.spark.write(session.range(first, first + count).coalesce(1), path, mode="append")
    sizes = sorted(DeltaTable(path).files().to_arrow()["size"].to_pylist())
    between = (sizes[1] + sizes[2]) // 2

    def compact(first: int) -> int:
        session.conf.set("spark.databricks.delta.autoCompact.enabled", is_auto)
        session.conf.set("spark.databricks.delta.autoCompact.minNumFiles", "2")
        deltaic.spark.write(session.range(first, first + 1).coalesce(1), path, mode="append")
        if not is_auto:
            session.sql(f"OPTIMIZE delta.`{path}`")
        return DeltaTable(path).files().count()

    session.conf.set(f"spark.databricks.delta.{setting}.minFileSize", str(between))
    assert compact(50_000) == 3
    session.conf.set(f"spark.databricks.delta.{setting}.minFileSize", str(2 * sizes[-1]))
    assert compact(50_001) == 1
    assert DeltaTable(path).scan().count() == 20_022


@pytest.mark.parametrize(("least", "files"), [("3", 1), ("4", 3), (None, 3)])
def test_the_session_sets_when_auto_compaction_runs(
    tmp_path: Path, session: Any, least: str | None, files: int
) -> None:
    session.conf.set("spark.databricks.delta.autoCompact.enabled", "true")
    if least is not None:
        session.conf.set("spark.databricks.delta.autoCompact.minNumFiles", least)
    for number in range(3):
        deltaic.spark.write(session.range(number, number + 1).coalesce(1), tmp_path / "t", mode="append")
    assert DeltaTable(tmp_path / "t").files().count() == files
    assert DeltaTable(tmp_path / "t").scan().count() == 3


def test_the_session_sets_the_size_of_files_of_auto_compaction(tmp_path: Path, session: Any) -> None:
    for number in range(4):
        rows = session.range(number * 1_000, (number + 1) * 1_000).coalesce(1)
        deltaic.spark.write(rows, tmp_path / "t", mode="append")
    size = max(DeltaTable(tmp_path / "t").files().to_arrow()["size"].to_pylist())
    session.conf.set("spark.databricks.delta.autoCompact.enabled", "true")
    session.conf.set("spark.databricks.delta.autoCompact.minNumFiles", "2")
    session.conf.set("spark.databricks.delta.autoCompact.maxFileSize", str(int(size * 2.5)))
    deltaic.spark.write(session.range(1).coalesce(1), tmp_path / "t", mode="append")
    assert DeltaTable(tmp_path / "t").files().count() == 2
    assert DeltaTable(tmp_path / "t").scan().count() == 4_001


def test_the_session_sets_how_vacuum_and_restore_run(tmp_path: Path, session: Any) -> None:
    """DeltaLiteVacuumSuite; RestoreTableSuiteBase: "restore downgrade protocol (allowed=true)"."""
    path = tmp_path / "t"
    deltaic.write(path, {"id": [1]}, properties={"delta.enableDeletionVectors": "false"})
    DeltaTable(path).delete("id = 1")
    DeltaTable(path).alter.set_properties({"delta.enableDeletionVectors": "true"})
    (path / "stray.parquet").write_bytes(b"x")
    (removed,) = path.glob("[!s]*.parquet")
    for file in (removed, path / "stray.parquet"):
        os.utime(file, (0, 0))
    session.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    session.conf.set("spark.databricks.delta.vacuum.lite.enabled", "true")
    session.sql(f"VACUUM delta.`{path}` RETAIN 0 HOURS")
    assert [file.name for file in path.glob("*.parquet")] == ["stray.parquet"]
    session.conf.set("spark.databricks.delta.vacuum.logging.enabled", "false")
    (path / "other.parquet").write_bytes(b"x")
    os.utime(path / "other.parquet", (0, 0))
    version = DeltaTable(path).version
    DeltaTableOfSpark.forPath(session, str(path)).vacuum(0)
    session.conf.set("spark.databricks.delta.vacuum.lite.enabled", "false")
    session.sql(f"VACUUM delta.`{path}` RETAIN 0 HOURS")
    session.conf.unset("spark.databricks.delta.vacuum.logging.enabled")
    assert (list(path.glob("*.parquet")), DeltaTable(path).version) == ([], version)
    (path / "stray.parquet").write_bytes(b"x")
    os.utime(path / "stray.parquet", (0, 0))
    session.conf.set("spark.databricks.delta.restore.protocolDowngradeAllowed", "true")
    session.conf.set("spark.sql.files.ignoreMissingFiles", "true")
    assert session.sql(f"RESTORE delta.`{path}` TO VERSION AS OF 0").first().num_restored_files == 0
    assert DeltaTable(path).protocol == DeltaTable(path, version=0).protocol
    session.sql(f"VACUUM delta.`{path}` FULL RETAIN 0 HOURS")
    assert list(path.glob("*.parquet")) == []


def test_text_is_resolved_anew_when_a_setting_gives_it_another_meaning(tmp_path: Path, session: Any) -> None:
    table = f"delta.`{tmp_path}/t`"
    deltaic.write(tmp_path / "t", {"id": [1, 2], "t": ["a", "T"]})
    session.sql(f"DELETE FROM {table} WHERE id = 3 AND T = 'b'")
    session.sql(f'UPDATE {table} SET t = "T" WHERE "T" = t')
    with (
        setting(session, "spark.sql.caseSensitive", "true"),
        pytest.raises(InvalidArgumentError, match="`T` cannot be resolved"),
    ):
        session.sql(f"DELETE FROM {table} WHERE id = 3 AND T = 'b'")
    with (
        setting(session, "spark.sql.ansi.enabled", "true"),
        setting(session, "spark.sql.ansi.doubleQuotedIdentifiers", "true"),
    ):
        assert session.sql(f'UPDATE {table} SET t = "T" WHERE "T" = t').first()[0] == 2


def test_the_catalog_of_delta_spark_without_its_jar_is_named_at_once(session: Any) -> None:
    other = session.newSession()
    name = "spark.sql.catalog.spark_catalog"
    other.conf.set(name, "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    with pytest.raises(InvalidArgumentError, match=f"{name}: Spark cannot load the class"):
        deltaic.spark.enable(other)
    other.conf.set(name, "org.apache.spark.sql.execution.datasources.v2.V2SessionCatalog")
    deltaic.spark.enable(other)
    other.conf.unset(name)
    deltaic.spark.disable(other)


def test_unknown_properties_of_tables_if_a_setting_allows_them(tmp_path: Path, session: Any) -> None:
    table, rows = f"delta.`{tmp_path / 't'}`", session.sql("SELECT 1 AS id")
    with setting(session, ARBITRARY_PROPERTIES, "true"):
        properties = "'delta.some.Thing' = '1', 'delta.APPENDONLY' = 'true'"
        session.sql(f"CREATE TABLE {table} (id INT) USING delta TBLPROPERTIES ({properties})")
        session.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.other' = '2', 'delta.gone' = '3')")
        session.sql(f"ALTER TABLE {table} UNSET TBLPROPERTIES ('delta.gone')")
        rows.write.format("delta").option("delta.third", "3").save(str(tmp_path / "u"))
        with pytest.raises(DeltaError, match="nope"):
            session.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.feature.nope' = 'supported')")
    found = {
        name: value
        for name, value in DeltaTable(tmp_path / "t").metadata.configuration.items()
        if name != "delta.enableDeletionVectors"
    }
    assert found == {"delta.some.Thing": "1", "delta.appendOnly": "true", "delta.other": "2"}
    assert DeltaTable(tmp_path / "u").metadata.configuration["delta.third"] == "3"
    assert [row.id for row in session.read.format("delta").load(str(tmp_path / "u")).collect()] == [1]
    with pytest.raises(InvalidArgumentError, match="unknown table property"):
        session.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.other' = '3')")


def test_a_setting_keeps_column_mapping(tmp_path: Path, session: Any) -> None:
    from pyspark.errors import UnsupportedOperationException

    table, mode = f"delta.`{tmp_path}`", "delta.columnMapping.mode"
    session.sql(f"CREATE TABLE {table} (id INT) USING delta TBLPROPERTIES ('{mode}' = 'name')")
    with setting(session, MAPPING_REMOVAL, "false"):
        for change in (f"SET TBLPROPERTIES ('{mode}' = 'None')", f"UNSET TBLPROPERTIES ('{mode.upper()}')"):
            with pytest.raises(UnsupportedOperationException) as refused:
                session.sql(f"ALTER TABLE {table} {change}")
            assert refused.value.getCondition() == "DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE"
            assert refused.value.getMessageParameters() == {"oldMode": "name", "newMode": "none"}
        session.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('{mode}' = 'name', 'team' = 'x')")
    session.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('{mode}' = 'none')")
    assert DeltaTable(tmp_path).metadata.configuration.get(mode, "none") == "none"


def test_a_setting_ignores_a_location_beside_a_path(tmp_path: Path, session: Any) -> None:
    text = f"CREATE TABLE delta.`{tmp_path}/a` (id INT) USING delta LOCATION '{tmp_path}/b'"
    with pytest.raises(UnsupportedFeatureError) as refused:
        session.sql(text)
    assert refused.value.getMessageParameters()["config"] == TWO_PATHS
    with setting(session, TWO_PATHS, "true"):
        session.sql(text)
    assert os.listdir(tmp_path) == ["a"]


def test_a_setting_ignores_the_log_of_the_stream_that_wrote_the_files(tmp_path: Path, session: Any) -> None:
    for name in ("sql", "api"):
        for file, value in (("a", 1), ("b", 2)):
            (tmp_path / name).mkdir(exist_ok=True)
            pq.write_table(pa.table({"id": [value]}), tmp_path / name / f"{file}.parquet")
        (tmp_path / name / "_spark_metadata").mkdir()
        entry = {"path": (tmp_path / name / "a.parquet").as_uri(), "action": "add"}
        (tmp_path / name / "_spark_metadata/0").write_text(f"v1\n{json.dumps(entry)}")
    with setting(session, SINK_LOG, "false"):
        session.sql(f"CONVERT TO DELTA parquet.`{tmp_path}/sql`")
        DeltaTableOfSpark.convertToDelta(session, f"parquet.`{tmp_path}/api`")
    for name in ("sql", "api"):
        rows = session.read.format("delta").load(str(tmp_path / name)).collect()
        assert sorted(row.id for row in rows) == [1, 2]
        shutil.rmtree(tmp_path / name / "_delta_log")
    session.sql(f"CONVERT TO DELTA parquet.`{tmp_path}/sql`")
    assert DeltaTable(tmp_path / "sql").scan().to_arrow().to_pylist() == [{"id": 1}]
