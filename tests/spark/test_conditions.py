"""Errors of the public functions on Spark as jobs of delta-spark catch them: condition, SQLSTATE and class of
PySpark, and the class of deltaic.

Conditions and SQLSTATEs: delta-io/delta, spark/src/main/resources/error/delta-error-classes.json.
"""

from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltaic
import deltaic.spark
from deltaic import errors
from deltaic.engine.spark.settings import ZORDER_CHECK
from deltaic.spark.conditions import CONDITIONS
from deltaic.spark.exceptions import ConcurrentAppendException, ConcurrentDeleteReadException
from deltaic.spark.tables import DeltaTable
from spark_session import REMOTE

IS_REMOTE = REMOTE in os.environ


@dataclass(frozen=True)
class Place:
    """A table `t` of id, part and text with two rows in two versions, below `root`."""

    spark: Any
    root: Path

    @property
    def path(self) -> str:
        return str(self.root / "t")

    @property
    def table(self) -> str:
        return f"delta.`{self.path}`"

    def sql(self, text: str) -> Any:
        return self.spark.sql(text.replace("{t}", self.table).replace("{root}", str(self.root))).collect()

    def read(self, path: str | None = None, **options: Any) -> Any:
        return self.spark.read.format("delta").options(**options).load(path or self.path)

    def write(
        self, query: str = "SELECT 1L AS id, 'a' AS part, 'x' AS text", mode: str = "append", **options: Any
    ) -> None:
        self.spark.sql(query).write.format("delta").mode(mode).options(**options).save(self.path)

    def stream(self) -> Any:
        return self.spark.readStream.format("delta")

    def writer(self) -> Any:
        """Returns a writer of one row that fits the table."""
        return (
            self.spark.sql("SELECT 1L AS id, 'a' AS part, 'x' AS text").write.format("delta").mode("append")
        )

    def properties(self, **values: str) -> None:
        deltaic.DeltaTable(self.path).alter.set_properties(
            {f"delta.{name}": value for name, value in values.items()}
        )

    def log(self, action: str) -> None:
        folder = self.root / "t/_delta_log"
        (folder / f"{len(list(folder.glob('*.json'))):020}.json").write_text(action)


@pytest.fixture
def place(session: Any, tmp_path: Path) -> Place:
    columns = {"id": pa.array([1], pa.int64()), "part": ["a"], "text": ["x"]}
    deltaic.write(tmp_path / "t", pa.table(columns), partition_by="part")
    deltaic.write(tmp_path / "t", pa.table({**columns, "id": pa.array([2], pa.int64())}), mode="append")
    return Place(session, tmp_path)


MERGE = "MERGE INTO {t} t USING (SELECT 1L AS id UNION ALL SELECT 1L) s ON t.id = s.id WHEN MATCHED THEN"
CREATE = "CREATE TABLE delta.`{root}/n` (id INT) USING delta"
NEW_PARTITION = "ALTER TABLE {t} ADD PARTITION (part = 'b')"
SET_RETENTION = "ALTER TABLE {{t}} SET TBLPROPERTIES ('delta.logRetentionDuration' = '{}')"
GENERATED = "CREATE TABLE delta.`{{root}}/n` (id INT, text STRING, {}) USING delta"
FEED = {"readChangeFeed": "true", "startingVersion": 0}
MANIFESTS = "delta.compatibility.symlinkFormatManifest.enabled"
VALIDATION_FAILED = "DELTA_VIOLATE_TABLE_PROPERTY_VALIDATION_FAILED"
NEW = "MERGE INTO {t} t USING (SELECT 5L AS id) s ON t.id = s.id WHEN NOT MATCHED THEN"
ANY = "MERGE INTO {{t}} t USING (SELECT 5L AS id) s ON {} WHEN MATCHED THEN"


def nested_insert(at: Place) -> None:
    at.sql("ALTER TABLE {t} ADD COLUMN st STRUCT<a: INT, b: INT>")
    at.sql(f"{NEW} INSERT (id, st.a) VALUES (1, 2)")


def of_list(at: Place, text: str) -> None:
    at.sql(
        "CREATE TABLE delta.`{root}/n` (n INT, items ARRAY<INT>, text STRING) USING delta"
        " TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    )
    at.sql(f"ALTER TABLE delta.`{{root}}/n` {text}")


def overwrite_with_two_conditions(at: Place) -> None:
    from pyspark.sql import functions as F

    rows = at.spark.sql("SELECT 1L AS id, 'a' AS part, 'x' AS text")
    rows.writeTo(f"delta.`{at.path}`").option("replaceWhere", "part = 'a'").overwrite(F.col("id") == 1)


def replaced_by_a_wrong_row(at: Place) -> None:
    at.sql("ALTER TABLE {t} ADD CONSTRAINT low CHECK (id < 10)")
    at.write("SELECT 10L AS id, 'a' AS part, 'x' AS text", "overwrite", replaceUsing="part")


def convert_of_no_parquet_file(at: Place) -> None:
    (at.root / "p").mkdir()
    (at.root / "p/x.parquet").write_bytes(b"text")
    at.sql("CONVERT TO DELTA parquet.`{root}/p`")


def sync_of_a_parquet_table(at: Place) -> None:
    at.spark.sql("CREATE TABLE IF NOT EXISTS table_without_identity (id BIGINT) USING parquet")
    try:
        at.spark.sql("ALTER TABLE table_without_identity ALTER COLUMN id SYNC IDENTITY")
    finally:
        at.spark.sql("DROP TABLE table_without_identity")


def default_of_a_not_null_column(at: Place) -> None:
    at.sql("CREATE TABLE delta.`{root}/n` (id INT NOT NULL, text STRING) USING delta")
    at.sql("INSERT INTO delta.`{root}/n` VALUES (DEFAULT, 'x')")


def convert_with_a_wrong_type(at: Place) -> None:
    (at.root / "p/a=x").mkdir(parents=True)
    (at.root / "p/a=x/x.parquet").write_bytes(next((at.root / "t").rglob("*.parquet")).read_bytes())
    at.sql("CONVERT TO DELTA parquet.`{root}/p` PARTITIONED BY (a INT)")


def stream_without_columns(at: Place) -> None:
    at.sql("CREATE TABLE delta.`{root}/n` USING delta")
    at.stream().load(f"{at.root}/n")


def bad_pattern(at: Place) -> None:
    at.spark.readStream.format("delta").option("excludeRegex", "(").load(at.path)


def gap(at: Place) -> None:
    at.write()
    (at.root / "t/_delta_log" / f"{1:020}.json").unlink()
    at.read()


def missing_part(at: Place) -> None:
    log = at.root / "t/_delta_log"
    (log / f"{1:020}.checkpoint.{1:010}.{2:010}.parquet").write_bytes(b"x")
    (log / "_last_checkpoint").write_text(json.dumps({"version": 1, "size": 5, "parts": 2}))
    (log / f"{0:020}.json").unlink()
    at.read()


def of_temporary_view(text: str, at: Place) -> None:
    at.spark.sql("SELECT 1 AS one").createOrReplaceTempView("view_of_one")
    at.spark.sql(text.format("view_of_one"))


def edited(at: Place, before: str, after: str) -> None:
    """Reads the table after `before` is replaced by `after` in its first commit."""
    first = at.root / "t/_delta_log" / f"{0:020}.json"
    text = first.read_text()
    assert before in text
    first.write_text(text.replace(before, after))
    for checksum in first.parent.glob("*.crc"):
        checksum.unlink()
    at.read().collect()


def unknown_widening(at: Place) -> None:
    change = '{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":'
    widened = change + '{"delta.typeChanges":[{"fromType":"string","toType":"long"}]}'
    as_text = str.maketrans({'"': '\\"'})
    edited(at, (change + "{}").translate(as_text), widened.translate(as_text))


def broken_vector(at: Place, change: Callable[[Path], object]) -> None:
    at.properties(enableDeletionVectors="true")
    at.sql("INSERT INTO {t} SELECT id, 'a', 'x' FROM range(100)")
    at.sql("DELETE FROM {t} WHERE id % 3 = 1")
    for vectors in (at.root / "t").rglob("*.bin"):
        change(vectors)
    at.sql("SELECT count(*) FROM {t}")


def reads_within_a_partition(at: Place) -> None:
    at.read(f"{at.path}/part=a/nothing").collect()


def converted_by_ids(at: Place) -> None:
    (at.root / "p").mkdir()
    (at.root / "p/x.parquet").write_bytes(next((at.root / "t").rglob("*.parquet")).read_bytes())
    name = "spark.databricks.delta.properties.defaults.columnMapping.mode"
    at.spark.conf.set(name, "id")
    try:
        at.sql("CONVERT TO DELTA parquet.`{root}/p`")
    finally:
        at.spark.conf.unset(name)


def truncated(at: Place, **options: Any) -> None:
    (at.root / "t/_delta_log" / f"{0:020}.json").unlink()
    at.read(**options)


def without_protocol(at: Place) -> None:
    first = at.root / "t/_delta_log" / f"{0:020}.json"
    lines = first.read_text().splitlines(keepends=True)
    first.write_text("".join(line for line in lines if '"protocol"' not in line))
    for checksum in first.parent.glob("*.crc"):
        checksum.unlink()
    at.read()


def without_time(at: Place) -> None:
    at.properties(enableInCommitTimestamps="true")
    last = max((at.root / "t/_delta_log").glob("*.json"))
    lines = [json.loads(line) for line in last.read_text().splitlines()]
    for line in lines:
        line.get("commitInfo", {}).pop("inCommitTimestamp", None)
    last.write_text("".join(json.dumps(line) + "\n" for line in lines))
    for checksum in last.parent.glob("*.crc"):
        checksum.unlink()
    at.sql("INSERT INTO {t} SELECT * FROM {t}")


def append_only(at: Place) -> None:
    at.properties(appendOnly="true")
    at.sql("DELETE FROM {t} WHERE id = 1")


def check(at: Place) -> None:
    at.sql("ALTER TABLE {t} ADD CONSTRAINT low CHECK (id < 10)")
    at.sql("INSERT INTO {t} VALUES (10, 'a', 'x')")


def drop_of_feature_of_view(at: Place) -> None:
    at.spark.sql("CREATE OR REPLACE TEMP VIEW view_without_features AS SELECT 1 AS id")
    at.spark.sql("ALTER TABLE view_without_features DROP FEATURE vacuumProtocolCheck")


def drop_of_a_feature_that_stays(at: Place) -> None:
    at.sql("ALTER TABLE {t} SET TBLPROPERTIES (delta.feature.invariants = 'supported')")
    at.sql("ALTER TABLE {t} DROP FEATURE invariants")


def drop_of_protection(at: Place) -> None:
    at.sql("ALTER TABLE {t} SET TBLPROPERTIES (delta.feature.checkpointProtection = 'supported')")
    at.sql("ALTER TABLE {t} DROP FEATURE checkpointProtection")


def constraint_twice(at: Place) -> None:
    for _ in range(2):
        at.sql("ALTER TABLE {t} ADD CONSTRAINT low CHECK (id < 10)")


def constrained_column(at: Place) -> None:
    at.properties(**{"columnMapping.mode": "name"})
    at.sql("ALTER TABLE {t} ADD CONSTRAINT low CHECK (id < 10)")
    at.sql("ALTER TABLE {t} DROP COLUMN id")


def generating_column(at: Place) -> None:
    at.sql(
        "CREATE TABLE delta.`{root}/g` (id BIGINT, day DATE, month INT GENERATED ALWAYS AS (month(day)))"
        " USING delta"
    )
    at.sql("ALTER TABLE delta.`{root}/g` RENAME COLUMN day TO date")


def widened_by_rows(at: Place, columns: str, rule: str = "") -> None:
    """Writes rows that would widen the field `s.a`, which a rule of the table uses."""
    at.sql(
        f"CREATE TABLE delta.`{{root}}/w` (s STRUCT<a: TINYINT>{columns}) USING delta"
        " TBLPROPERTIES (delta.enableTypeWidening = true)"
    )
    if rule:
        at.sql(f"ALTER TABLE delta.`{{root}}/w` ADD CONSTRAINT low CHECK ({rule})")
    rows = at.spark.sql("SELECT named_struct('a', 200) AS s").write.format("delta").mode("append")
    rows.option("mergeSchema", True).save(f"{at.root}/w")


def suspended_row_tracking(at: Place) -> None:
    at.properties(enableRowTracking="true")
    at.sql("ALTER TABLE {t} SET TBLPROPERTIES (delta.rowTrackingSuspended = true)")


def converted_without_statistics(at: Place) -> None:
    at.spark.range(2).write.parquet(f"{at.root}/p")
    setting = "spark.databricks.delta.properties.defaults.enableRowTracking"
    at.spark.conf.set(setting, "true")
    try:
        at.sql("CONVERT TO DELTA parquet.`{root}/p` NO STATISTICS")
    finally:
        at.spark.conf.unset(setting)


def identity_replaced(at: Place) -> None:
    at.sql("CREATE TABLE delta.`{root}/n` (id BIGINT GENERATED ALWAYS AS IDENTITY, x STRING) USING delta")
    at.sql("ALTER TABLE delta.`{root}/n` REPLACE COLUMNS (id BIGINT, x STRING)")


def mapped_feed(at: Place, change: Callable[[Place], object]) -> None:
    at.sql(
        "CREATE TABLE delta.`{root}/n` (id BIGINT, x STRING) USING delta TBLPROPERTIES"
        " (delta.columnMapping.mode = 'name', delta.enableChangeDataFeed = true)"
    )
    at.sql("INSERT INTO delta.`{root}/n` VALUES (1, 'x')")
    rows = at.spark.sql("SELECT 2L AS id, 'y' AS x, 3 AS added").write.format("delta").mode("overwrite")
    rows.option("overwriteSchema", True).save(f"{at.root}/n")
    assert at.read(f"{at.root}/n", **FEED).count() == 3
    change(at)


def lost_mapped_column(at: Place) -> None:
    rows = at.spark.sql("SELECT 2L AS id, 'y' AS X, 3 AS added").write.format("delta").mode("overwrite")
    rows.option("overwriteSchema", True).save(f"{at.root}/n")


def dropped_column(at: Place, first: int) -> None:
    table = "delta.`{root}/n`"
    at.sql(
        f"CREATE TABLE {table} (id BIGINT, x STRING) USING delta TBLPROPERTIES"
        " (delta.columnMapping.mode = 'name', delta.enableChangeDataFeed = true)"
    )
    at.sql(f"ALTER TABLE {table} ADD COLUMN y INT")
    at.sql(f"ALTER TABLE {table} DROP COLUMN y")
    at.read(f"{at.root}/n", readChangeFeed="true", startingVersion=first).collect()


def repeated(at: Place) -> Any:
    return at.spark.sql("SELECT 1L AS id, 'x' AS text").select("id", "text", "text")


REPLACED_FEED = """REPLACE TABLE delta.`{root}/n` (id BIGINT) USING delta
TBLPROPERTIES (delta.columnMapping.mode = 'name', delta.enableChangeDataFeed = true)"""


def missing_not_null(at: Place) -> None:
    at.sql("CREATE TABLE delta.`{root}/n` (id BIGINT NOT NULL, x STRING) USING delta")
    at.spark.sql("SELECT 'x' AS x").write.format("delta").mode("append").save(f"{at.root}/n")


def not_null(at: Place) -> None:
    at.sql("CREATE TABLE delta.`{root}/n` (id BIGINT NOT NULL, x STRING) USING delta")
    at.sql("INSERT INTO delta.`{root}/n` VALUES (NULL, 'x')")


def too_long(at: Place) -> None:
    at.sql("CREATE TABLE delta.`{root}/n` (id BIGINT, x VARCHAR(2)) USING delta")
    at.sql("INSERT INTO delta.`{root}/n` VALUES (1, 'xyz')")


def partitioned_again(at: Place) -> None:
    at.sql(f"{CREATE} CLUSTER BY (id)")
    at.sql("REPLACE TABLE delta.`{root}/n` (id INT, p INT) USING delta PARTITIONED BY (p)")


def identity_given(at: Place) -> None:
    at.sql("CREATE TABLE delta.`{root}/n` (id BIGINT GENERATED ALWAYS AS IDENTITY, x STRING) USING delta")
    at.sql("INSERT INTO delta.`{root}/n` (id, x) VALUES (1, 'x')")


def identity_updated(at: Place) -> None:
    at.sql("CREATE TABLE delta.`{root}/n` (id BIGINT GENERATED ALWAYS AS IDENTITY, x STRING) USING delta")
    at.sql("UPDATE delta.`{root}/n` SET id = 5")


def identity_altered(at: Place, change: str) -> None:
    at.sql("CREATE TABLE delta.`{root}/n` (id BIGINT GENERATED ALWAYS AS IDENTITY, x STRING) USING delta")
    at.sql(f"ALTER TABLE delta.`{{root}}/n` ALTER COLUMN id {change}")


def newer_reader(at: Place) -> None:
    at.log('{"protocol":{"minReaderVersion":9,"minWriterVersion":9}}')
    at.read()


def unknown_reader_feature(at: Place) -> None:
    at.log(
        '{"protocol":{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["newThing"],'
        '"writerFeatures":["newThing"]}}'
    )
    at.read()


def of_a_catalog(at: Place) -> None:
    features = '["catalogManaged","inCommitTimestamp"]'
    at.log(
        f'{{"protocol":{{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["catalogManaged"],'
        f'"writerFeatures":{features}}}}}'
    )
    at.read()


def unknown_writer_feature(at: Place) -> None:
    at.log('{"protocol":{"minReaderVersion":1,"minWriterVersion":7,"writerFeatures":["newThing"]}}')
    at.write()


def vectors_and_manifest(at: Place) -> None:
    at.properties(enableDeletionVectors="true")
    at.sql("DELETE FROM {t} WHERE id = 7")
    at.write("SELECT id, 'a' AS part, 'x' AS text FROM range(10)")
    at.sql("DELETE FROM {t} WHERE id = 7")
    at.sql("GENERATE symlink_format_manifest FOR TABLE {t}")


def wrong_checksum(at: Place) -> None:
    at.write()
    newest = max((at.root / "t/_delta_log").glob("*.crc"))
    values = {**json.loads(newest.read_text()), "numFiles": 77}
    values.pop("allFiles", None)
    newest.write_text(json.dumps(values))
    at.read().collect()


def vectors_and_kept_manifests(at: Place) -> None:
    at.properties(enableDeletionVectors="true")
    at.write("SELECT id, 'a' AS part, 'x' AS text FROM range(10)")
    at.sql("DELETE FROM {t} WHERE id = 7")
    at.properties(enableDeletionVectors="false")
    at.sql(f"ALTER TABLE {{t}} SET TBLPROPERTIES ('{MANIFESTS}' = 'true')")


def unwritten_manifests(at: Place) -> None:
    """A file is where the folder of the manifests should be."""
    at.properties(enableDeletionVectors="false")
    at.sql(f"ALTER TABLE {{t}} SET TBLPROPERTIES ('{MANIFESTS}' = 'true')")
    shutil.rmtree(at.root / "t/_symlink_format_manifest")
    (at.root / "t/_symlink_format_manifest").write_text("")
    at.write()


def schema_log_of(at: Place, schema: str | None = None) -> None:
    """Opens a stream with the schema log of another table, or with a text that is no schema."""
    folder = at.root / f"log/_schema_log_{deltaic.DeltaTable(at.path).metadata.id}"
    folder.mkdir(parents=True)
    text = '{"type":"struct","fields":[]}' if schema is None else schema
    names = ("dataSchemaJson", "partitionSchemaJson")
    entry = {"tableId": "another", "deltaCommitVersion": 0, **dict.fromkeys(names, text)}
    (folder / "0").write_text(f"v1\n{json.dumps(entry)}")
    at.stream().option("schemaTrackingLocation", str(at.root / "log")).load(at.path)


def mapped_manifest(at: Place) -> None:
    at.properties(**{"columnMapping.mode": "name"})
    at.sql("GENERATE symlink_format_manifest FOR TABLE {t}")


def clustered_zorder(at: Place) -> None:
    at.sql("CREATE TABLE delta.`{root}/n` (id BIGINT, x STRING) USING delta CLUSTER BY (id)")
    at.sql("OPTIMIZE delta.`{root}/n` ZORDER BY (x)")


def zorder_by_an_unknown_field(at: Place) -> None:
    at.sql("CREATE TABLE delta.`{root}/n` (id BIGINT, s STRUCT<a: INT, b: INT>) USING delta")
    at.sql("OPTIMIZE delta.`{root}/n` ZORDER BY (s.x)")


def saved_time(at: Place) -> None:
    at.spark.sql("SELECT 1 AS id, TIME'10:00:00' AS v").write.format("delta").save(f"{at.root}/n")


def clustered_condition(at: Place) -> None:
    at.sql(f"{CREATE} CLUSTER BY (id)")
    at.sql("OPTIMIZE delta.`{root}/n` WHERE id = 1")


def merge_builder(at: Place) -> DeltaTable:
    return DeltaTable.forPath(at.spark, at.path)


def empty_merge(at: Place) -> None:
    merge_builder(at).alias("t").merge(at.spark.range(1).alias("s"), "t.id = s.id").execute()


def with_struct(at: Place, assignment: str) -> None:
    at.sql("CREATE TABLE delta.`{root}/n` (id BIGINT, st STRUCT<a: INT, b: INT>) USING delta")
    at.sql(f"UPDATE delta.`{{root}}/n` SET {assignment}")


def struct_without_field(at: Place) -> None:
    with_struct(at, "st = named_struct('a', 1)")


def unknown_field(at: Place) -> None:
    with_struct(at, "st.c = 1")


def reserved_columns(at: Place) -> None:
    at.properties(enableChangeDataFeed="true")
    at.write("SELECT 1L AS id, 'a' AS part, 'x' AS text, 'insert' AS _change_type", mergeSchema="true")


def hidden_column(at: Place) -> None:
    at.properties(enableRowTracking="true")
    configuration = deltaic.DeltaTable(at.path).metadata.configuration
    name = configuration["delta.rowTracking.materializedRowIdColumnName"]
    at.sql(f"ALTER TABLE {{t}} ADD COLUMN `{name}` BIGINT")


def new_table(at: Place) -> Any:
    """Returns a writer of DataFrameWriterV2 for a new table with the columns a and b."""
    return at.spark.sql("SELECT 1 AS a, 2 AS b").writeTo(f"delta.`{at.root}/n`").using("delta")


def replacing(at: Place) -> Any:
    """Returns a writer of DataFrameWriterV2 for the table."""
    return at.spark.range(1).writeTo(at.table).using("delta")


def clustered_without_statistics(at: Place) -> None:
    at.sql("CREATE TABLE delta.`{root}/n` (a INT, b INT) USING delta CLUSTER BY (a)")
    at.sql("ALTER TABLE delta.`{root}/n` SET TBLPROPERTIES ('delta.dataSkippingStatsColumns' = 'b')")


def all_partitioned(at: Place) -> None:
    at.spark.range(1).write.format("delta").partitionBy("id").save(f"{at.root}/n")


def only_partitions(at: Place) -> None:
    rows = at.spark.range(1).selectExpr("id", "id AS p")
    rows.write.format("delta").partitionBy("p").save(f"{at.root}/n")
    rows.select("p").write.format("delta").mode("append").save(f"{at.root}/n")


def partitioned(data_type: str) -> str:
    return CREATE.replace("INT)", f"INT, x {data_type})") + " PARTITIONED BY (x)"


def with_default(text: str) -> str:
    feature = "TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')"
    return f"{CREATE.replace('INT)', f'INT DEFAULT {text})')} {feature}"


def new_default(at: Place, text: str) -> None:
    at.sql(f"ALTER TABLE {{t}} ALTER COLUMN id SET DEFAULT {text}")


def nothing_typed(at: Place) -> None:
    at.spark.sql("SELECT NULL AS x").write.format("delta").save(f"{at.root}/n")


def struct_of_nulls(at: Place) -> None:
    rows = at.spark.sql("SELECT 1 AS id, named_struct('a', 1, 'b', named_struct('c', NULL)) AS s")
    rows.write.format("delta").save(f"{at.root}/n")


def of_parquet(at: Place, command: str) -> None:
    """The command for a table of another format."""
    at.sql("CREATE TABLE other_format (id BIGINT) USING parquet LOCATION '{root}/other'")
    try:
        at.sql(f"{command} other_format")
    finally:
        at.sql("DROP TABLE other_format")


def history_of_view(at: Place) -> None:
    at.spark.range(1).createOrReplaceTempView("shown")
    at.sql("DESCRIBE HISTORY shown")


def clone_of_view(at: Place) -> None:
    at.spark.range(1).createOrReplaceTempView("shown")
    at.sql("CREATE TABLE delta.`{root}/n` SHALLOW CLONE shown")


def clone_over_a_name(at: Place) -> None:
    at.sql("CREATE TABLE cloned_over USING delta AS SELECT id FROM range(3)")
    try:
        DeltaTable.forPath(at.spark, at.path).clone("cloned_over")
    finally:
        at.sql("DROP TABLE cloned_over")


def replaced_columns(at: Place) -> None:
    at.sql("CREATE TABLE delta.`{root}/n` (id BIGINT, x INT) USING delta")
    at.sql("ALTER TABLE delta.`{root}/n` REPLACE COLUMNS (id INT, x INT)")


def converted_without_folders(at: Place) -> None:
    at.spark.range(1).write.parquet(f"{at.root}/files")
    DeltaTable.convertToDelta(at.spark, f"parquet.`{at.root}/files`", "nothing INT")


def not_null_left_out(at: Place, insert: str) -> None:
    at.sql("CREATE TABLE delta.`{root}/n` (id BIGINT NOT NULL, x STRING) USING delta")
    at.sql(f"INSERT INTO delta.`{{root}}/n` {insert}")


def in_nested(at: Place, field: str) -> None:
    at.sql(
        "CREATE TABLE delta.`{root}/n` (id INT, items ARRAY<STRUCT<a: INT>>, counts MAP<STRING, INT>) USING"
        " delta"
    )
    at.sql(f"UPDATE delta.`{{root}}/n` SET {field} = 1")


def generated_as(column: str) -> str:
    return CREATE.replace("INT)", f"INT, {column})")


def built_as(expression: str) -> Callable[[Place], Any]:
    """Returns the builder of a table whose column b is generated."""

    def build(at: Place) -> None:
        builder = DeltaTable.create(at.spark).location(f"{at.root}/built").addColumn("a", "INT")
        builder.addColumn("b", "INT", generatedAlwaysAs=expression).execute()

    return build


def by_sql_function(at: Place) -> None:
    at.spark.sql("CREATE OR REPLACE TEMPORARY FUNCTION one_more(x BIGINT) RETURNS BIGINT RETURN x + 1")
    try:
        at.sql("UPDATE {t} SET id = one_more(id)")
    finally:
        at.spark.sql("DROP TEMPORARY FUNCTION one_more")


def replaced(at: Place) -> None:
    at.spark.range(1).writeTo(f"delta.`{at.root}/none`").replace()


def widened_by_merging(at: Place) -> None:
    at.sql("ALTER TABLE {t} ADD COLUMN small SMALLINT")
    at.write("SELECT 1L AS id, 'a' AS part, 'x' AS text, 1 AS small")


@dataclass(frozen=True)
class Case:
    """`kind`: a class of pyspark.errors; `own`: of deltaic.errors; `jvm`: whether it needs the session
    catalog, native streams or trees."""

    condition: str
    sql_state: str
    kind: str
    own: type[errors.DeltaError]
    provoke: Callable[[Place], Any]
    jvm: bool = False


def statement(text: str) -> Callable[[Place], Any]:
    return lambda at: at.sql(text)


A, R = "AnalysisException", "SparkRuntimeException"
I, U = "IllegalArgumentException", "UnsupportedOperationException"  # noqa: E741
P = "ParseException"
ARGUMENT, VERSION, SCHEMA = (
    errors.InvalidArgumentError,
    errors.VersionNotFoundError,
    errors.SchemaMismatchError,
)
ROW, UNSUPPORTED = errors.ConstraintViolationError, errors.UnsupportedFeatureError

CASES = (
    Case("DELTA_CANNOT_MODIFY_APPEND_ONLY", "42809", U, errors.AppendOnlyError, append_only),
    Case(
        "DELTA_DATA_CHANGE_FALSE",
        "0AKDE",
        A,
        errors.InvalidArgumentError,
        lambda at: at.write("SELECT 1L AS id, 'a' AS part, 2 AS more", mergeSchema=True, dataChange=False),
    ),
    Case(
        "DELTA_REPLACE_WHERE_WITH_FILTER_DATA_CHANGE_UNSET",
        "42613",
        A,
        errors.InvalidArgumentError,
        lambda at: at.write(mode="overwrite", replaceWhere="id = 1", dataChange=False),
    ),
    Case(
        "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE",
        "21506",
        U,
        errors.MergeCardinalityError,
        statement(f"{MERGE} UPDATE SET text = 'y'"),
    ),
    Case(
        "DELTA_NEW_CHECK_CONSTRAINT_VIOLATION",
        "23512",
        A,
        ROW,
        statement("ALTER TABLE {t} ADD CONSTRAINT few CHECK (id < 2)"),
    ),
    Case("DELTA_VIOLATE_CONSTRAINT_WITH_VALUES", "23001", R, ROW, check),
    Case("DELTA_NOT_NULL_CONSTRAINT_VIOLATED", "23502", R, ROW, not_null),
    Case("DELTA_EXCEED_CHAR_VARCHAR_LIMIT", "22001", R, ROW, too_long),
    Case(
        "DELTA_REPLACE_WHERE_MISMATCH",
        "44000",
        A,
        ROW,
        lambda at: at.write(mode="overwrite", replaceWhere="part = 'b'"),
    ),
    Case("PATH_NOT_FOUND", "42K03", A, errors.TableNotFoundError, lambda at: at.read(f"{at.root}/none")),
    Case(
        "PATH_NOT_FOUND", "42K03", A, errors.TableNotFoundError, statement("DELETE FROM delta.`{root}/none`")
    ),
    Case("TABLE_OR_VIEW_NOT_FOUND", "42P01", A, errors.TableNotFoundError, replaced),
    Case(
        "DELTA_MISSING_DELTA_TABLE",
        "42P01",
        A,
        errors.TableNotFoundError,
        lambda at: DeltaTable.forPath(at.spark, f"{at.root}/none"),
    ),
    Case(
        "TABLE_OR_VIEW_ALREADY_EXISTS",
        "42P07",
        A,
        errors.TableAlreadyExistsError,
        statement("CREATE TABLE {t} (id BIGINT) USING delta"),
    ),
    Case(
        "DELTA_CANNOT_SET_LOCATION_ON_PATH_IDENTIFIER",
        "42613",
        A,
        UNSUPPORTED,
        statement("ALTER TABLE {t} SET LOCATION '{root}/n'"),
    ),
    Case(
        "DELTA_CANNOT_CREATE_LOG_PATH",
        "42KD5",
        "PySparkException",
        ARGUMENT,
        lambda at: at.spark.range(1).write.format("delta").save(f"{at.path}/_delta_log/{0:020}.json/t"),
    ),
    Case("DELTA_PATH_EXISTS", "42K04", A, errors.TableAlreadyExistsError, lambda at: at.write(mode="error")),
    Case(
        "DELTA_CANNOT_RESTORE_TABLE_VERSION",
        "22003",
        A,
        VERSION,
        statement("RESTORE TABLE {t} TO VERSION AS OF 9"),
    ),
    Case(
        "DELTA_CANNOT_RESTORE_TABLE_VERSION",
        "22003",
        A,
        VERSION,
        lambda at: merge_builder(at).restoreToVersion(9),
    ),
    Case(
        "DELTA_CANNOT_RESTORE_TIMESTAMP_EARLIER",
        "22003",
        A,
        VERSION,
        statement("RESTORE TABLE {t} TO TIMESTAMP AS OF '1999-01-01'"),
    ),
    Case(
        "DELTA_CANNOT_RESTORE_TIMESTAMP_GREATER",
        "22003",
        A,
        VERSION,
        lambda at: merge_builder(at).restoreToTimestamp("2100-01-01"),
    ),
    Case(
        "DELTA_TIMESTAMP_GREATER_THAN_COMMIT",
        "42816",
        A,
        VERSION,
        lambda at: at.read(timestampAsOf="2100-01-01"),
    ),
    Case(
        "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION",
        "42816",
        A,
        VERSION,
        statement("SELECT * FROM {t} TIMESTAMP AS OF '1999-01-01'"),
    ),
    Case("DELTA_VERSION_NOT_FOUND", "22003", A, VERSION, lambda at: at.read(versionAsOf=9)),
    Case("DELTA_VERSION_NOT_FOUND", "22003", A, ARGUMENT, lambda at: at.read(versionAsOf=-1)),
    Case(
        "INVALID_TIME_TRAVEL_TIMESTAMP_EXPR.INPUT",
        "42K0E",
        A,
        ARGUMENT,
        statement("SELECT * FROM {t} TIMESTAMP AS OF NULL"),
    ),
    Case(
        "DELTA_TIMESTAMP_INVALID",
        "42816",
        A,
        ARGUMENT,
        lambda at: merge_builder(at).restoreToTimestamp("none"),
    ),
    Case("DELTA_TIMESTAMP_INVALID", "42816", A, ARGUMENT, lambda at: at.read(timestampAsOf="none")),
    Case(
        "DELTA_TIME_TRAVEL_INVALID_BEGIN_VALUE",
        "42604",
        I,
        ARGUMENT,
        statement("SELECT * FROM {t} VERSION AS OF 'x'"),
    ),
    Case("DELTA_TIME_TRAVEL_INVALID_BEGIN_VALUE", "42604", I, ARGUMENT, lambda at: at.read(versionAsOf="x")),
    Case(
        "DELTA_UNSUPPORTED_TIME_TRAVEL_VIEWS", "0AKDC", A, ARGUMENT, lambda at: at.read(**FEED, versionAsOf=0)
    ),
    Case(
        "DELTA_VERSION_INVALID",
        "42815",
        A,
        ARGUMENT,
        lambda at: at.read(readChangeFeed="true", startingVersion="x"),
    ),
    Case(
        "DELTA_CDC_START_VERSION_AFTER_LATEST",
        "22003",
        I,
        VERSION,
        lambda at: at.read(readChangeFeed="true", startingVersion=9),
    ),
    Case(
        "DELTA_CDC_READ_NULL_RANGE_BOUNDARY",
        "22004",
        I,
        ARGUMENT,
        statement("SELECT * FROM table_changes_by_path('{root}/t', NULL)"),
    ),
    Case(
        "DELTA_ONEOF_IN_TIMETRAVEL",
        "42601",
        I,
        ARGUMENT,
        lambda at: at.read(versionAsOf=0, timestampAsOf="2020-01-01"),
    ),
    Case(
        "INVALID_TIME_TRAVEL_SPEC",
        "42K0E",
        A,
        ARGUMENT,
        lambda at: at.spark.read.options(versionAsOf=0, timestampAsOf="2020-01-01").table(at.table),
    ),
    Case(
        "INVALID_TIME_TRAVEL_TIMESTAMP_EXPR.OPTION",
        "42K0E",
        A,
        ARGUMENT,
        lambda at: at.spark.read.option("timestampAsOf", "none").table(at.table),
    ),
    Case(
        "DELTA_UNSUPPORTED_TIME_TRAVEL_MULTIPLE_FORMATS",
        "42613",
        A,
        ARGUMENT,
        lambda at: at.read(f"{at.path}@v0", versionAsOf=0),
    ),
    *(
        Case(
            f"DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_{kind}",
            "0AKDC",
            U,
            errors.SchemaMismatchError,
            partial(dropped_column, first=first),
        )
        for first, kind in enumerate(("SCHEMA_CHANGE", "DATA_SCHEMA"))
    ),
    *(
        Case(
            "DELTA_BLOCK_COLUMN_MAPPING_AND_CDC_OPERATION",
            "42KD4",
            U,
            UNSUPPORTED,
            partial(mapped_feed, change=change),
        )
        for change in (lost_mapped_column, statement(REPLACED_FEED))
    ),
    Case("DELTA_INVALID_PROTOCOL_VERSION", "KD004", R, UNSUPPORTED, newer_reader),
    Case("DELTA_UNSUPPORTED_FEATURES_FOR_READ", "56038", R, UNSUPPORTED, unknown_reader_feature),
    Case("DELTA_UNSUPPORTED_FEATURES_FOR_WRITE", "56038", R, UNSUPPORTED, unknown_writer_feature),
    Case(
        "DELTA_UNSUPPORTED_FEATURES_IN_CONFIG",
        "56038",
        R,
        UNSUPPORTED,
        lambda at: merge_builder(at).addFeatureSupport("newThing"),
    ),
    Case(
        "DELTA_FEATURE_DROP_FEATURE_NOT_PRESENT",
        "55000",
        R,
        ARGUMENT,
        statement("ALTER TABLE {t} DROP FEATURE identityColumns"),
    ),
    *(
        Case("DELTA_FEATURE_DROP_FEATURE_NOT_PRESENT", "55000", R, ARGUMENT, statement(text))
        for text in ("ALTER TABLE {t} DROP FEATURE variantType", "ALTER TABLE {t} DROP FEATURE ROWTRACKING")
    ),
    Case(
        "DELTA_FEATURE_DROP_FEATURE_IS_DELTA_PROPERTY",
        "42000",
        R,
        ARGUMENT,
        statement("ALTER TABLE {t} DROP FEATURE `delta.appendOnly`"),
    ),
    Case(
        "DELTA_READ_FEATURE_PROTOCOL_REQUIRES_WRITE",
        "KD004",
        R,
        ARGUMENT,
        lambda at: merge_builder(at).upgradeTableProtocol(3, 5),
    ),
    *(
        Case(condition, state, I, ARGUMENT, statement(f"ALTER TABLE {{t}} SET TBLPROPERTIES ({text})"))
        for condition, state, text in (
            ("DELTA_INVALID_CALENDAR_INTERVAL_EMPTY", "2200P", "'delta.logRetentionDuration' = ''"),
            ("DELTA_INVALID_INTERVAL", "22006", "'delta.logRetentionDuration' = 'soon'"),
        )
    ),
    *(
        Case("UNSUPPORTED_TABLE_CHANGE", "0A000", R, ARGUMENT, statement(SET_RETENTION.format(text)))
        for text in ("interval 1 month", "interval -1 days")
    ),
    Case(
        "DELTA_CANNOT_MODIFY_TABLE_PROPERTY",
        "42939",
        U,
        ARGUMENT,
        statement("ALTER TABLE {t} SET TBLPROPERTIES ('clusteringColumns' = 'id')"),
    ),
    *(
        Case("INVALID_FIELD_NAME", "42000", A, ARGUMENT, partial(of_list, text=text))
        for text in (
            "ALTER COLUMN n.x COMMENT 'k'",
            "ADD COLUMNS (items.x.y INT)",
            "RENAME COLUMN items.element TO c",
        )
    ),
    Case(
        "DELTA_UNSUPPORTED_DROP_NESTED_COLUMN_FROM_NON_STRUCT_TYPE",
        "0AKDC",
        A,
        ARGUMENT,
        partial(of_list, text="DROP COLUMN items.element"),
    ),
    Case(
        "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA",
        "42703",
        A,
        ARGUMENT,
        partial(of_list, text="DROP COLUMNS (n, n)"),
    ),
    Case(
        "DELTA_SHOW_PARTITION_IN_NON_PARTITIONED_COLUMN",
        "42P10",
        A,
        SCHEMA,
        statement("SHOW PARTITIONS {t} PARTITION (id = 1)"),
    ),
    Case(
        "DELTA_INVALID_PARTITION_COLUMN_NAME",
        "42996",
        A,
        ARGUMENT,
        statement("CREATE TABLE delta.`{root}/n` (id INT, `p q` INT) USING delta PARTITIONED BY (`p q`)"),
    ),
    Case(
        "DELTA_UNSUPPORTED_DATA_TYPE_IN_GENERATED_COLUMN",
        "42621",
        A,
        UNSUPPORTED,
        statement(GENERATED.format("g VARIANT GENERATED ALWAYS AS (parse_json(text))")),
    ),
    *(
        Case("UNSUPPORTED_EXPRESSION_GENERATED_COLUMN", "42621", A, UNSUPPORTED, statement(text))
        for text in (
            GENERATED.format("g INT GENERATED ALWAYS AS ((SELECT 1))"),
            GENERATED.format("g INT GENERATED ALWAYS AS (nobodys(id))"),
        )
    ),
    Case(
        "DELTA_TABLE_FOR_PATH_UNSUPPORTED_HADOOP_CONF",
        "0AKDC",
        I,
        ARGUMENT,
        lambda at: DeltaTable.forPath(at.spark, at.path, {"dfs.x": "1", "parquet.x": "1"}),
    ),
    *(
        Case("DELTA_FAILED_SCAN_WITH_HISTORICAL_VERSION", "KD002", A, ARGUMENT, statement(text))
        for text in ("UPDATE delta.`{root}/t@v0` SET id = 1", "DELETE FROM delta.`{root}/t@v0`")
    ),
    Case(
        "DELTA_INVALID_CLONE_PATH",
        "22KD1",
        I,
        ARGUMENT,
        statement("CREATE TABLE clone_at_no_place SHALLOW CLONE {t} LOCATION 'relative/path'"),
        jvm=True,
    ),
    Case("DELTA_FAILED_CAST_PARTITION_VALUE", "22018", R, SCHEMA, convert_with_a_wrong_type),
    Case("DELTA_FAILED_READ_FILE_FOOTER", "KD001", R, errors.ProtocolError, convert_of_no_parquet_file),
    Case(
        "DELTA_IDENTITY_COLUMNS_ALTER_NON_DELTA_FORMAT",
        "0AKDD",
        A,
        ARGUMENT,
        sync_of_a_parquet_table,
        jvm=True,
    ),
    Case("NO_DEFAULT_COLUMN_VALUE_AVAILABLE", "42608", A, ROW, default_of_a_not_null_column),
    Case(
        "DELTA_TABLE_ALREADY_CONTAINS_CDC_COLUMNS",
        "42711",
        R,
        SCHEMA,
        statement(
            "CREATE TABLE delta.`{root}/n` (id INT, _change_type STRING) USING delta"
            " TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
        ),
    ),
    *(
        Case("UNSUPPORTED_GENERATOR.OUTSIDE_SELECT", "42K0E", A, ARGUMENT, statement(text))
        for text in (
            "UPDATE {t} SET id = explode(array(1L, 2L))",
            "MERGE INTO {t} t USING (SELECT 1L AS id) s ON t.id = s.id"
            " WHEN MATCHED THEN UPDATE SET id = explode(array(1L, 2L))",
        )
    ),
    Case(
        "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN",
        "42K09",
        A,
        SCHEMA,
        lambda at: at.write(mode="overwrite", replaceOn="1"),
    ),
    Case("PARSE_SYNTAX_ERROR", "42601", P, ARGUMENT, lambda at: at.write(mode="overwrite", replaceOn="id =")),
    Case("DELTA_REPLACE_WHERE_IN_OVERWRITE", "42613", A, ARGUMENT, overwrite_with_two_conditions),
    Case("DELTA_REPLACE_ON_OR_USING_TABLE_CONSTRAINT_VIOLATION", "44000", A, ROW, replaced_by_a_wrong_row),
    Case(
        "DELTA_FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE",
        "0AKDC",
        R,
        ARGUMENT,
        statement("ALTER TABLE {t} DROP FEATURE newThing"),
    ),
    Case(
        "DELTA_FEATURE_DROP_NONREMOVABLE_FEATURE",
        "0AKDC",
        R,
        UNSUPPORTED,
        drop_of_a_feature_that_stays,
    ),
    Case(
        "TABLE_OR_VIEW_NOT_FOUND",
        "42P01",
        A,
        ARGUMENT,
        statement("ALTER TABLE no_table_with_features DROP FEATURE vacuumProtocolCheck"),
        jvm=True,
    ),
    Case("EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE", "42809", A, ARGUMENT, drop_of_feature_of_view, jvm=True),
    Case(
        "DELTA_FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD",
        "22KD0",
        R,
        ARGUMENT,
        statement("ALTER TABLE {t} DROP FEATURE deletionVectors TRUNCATE HISTORY"),
    ),
    Case(
        "DELTA_FEATURE_CAN_ONLY_DROP_CHECKPOINT_PROTECTION_WITH_HISTORY_TRUNCATION",
        "55000",
        R,
        ARGUMENT,
        drop_of_protection,
    ),
    Case(
        "DELTA_UNSUPPORTED_FEATURE_STATUS",
        "0AKDE",
        R,
        ARGUMENT,
        statement("ALTER TABLE {t} SET TBLPROPERTIES (delta.feature.rowTracking = 'yes')"),
    ),
    Case(
        "DELTA_UNKNOWN_CONFIGURATION",
        "F0000",
        A,
        ARGUMENT,
        statement("ALTER TABLE {t} SET TBLPROPERTIES (delta.newThing = 'x')"),
    ),
    Case("DELTA_CONSTRAINT_ALREADY_EXISTS", "42710", A, ARGUMENT, constraint_twice),
    Case(
        "DELTA_CONSTRAINT_DOES_NOT_EXIST",
        "42704",
        A,
        ARGUMENT,
        statement("ALTER TABLE {t} DROP CONSTRAINT low"),
    ),
    Case(
        "DELTA_NON_BOOLEAN_CHECK_CONSTRAINT",
        "42621",
        A,
        SCHEMA,
        statement("ALTER TABLE {t} ADD CONSTRAINT low CHECK (id)"),
    ),
    Case("DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE", "42K09", A, ARGUMENT, constrained_column),
    Case("DELTA_GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE", "42K09", A, ARGUMENT, generating_column),
    Case(
        "DELTA_GENERATED_COLUMNS_DATA_TYPE_MISMATCH",
        "42K09",
        A,
        ARGUMENT,
        partial(widened_by_rows, columns=", g INT GENERATED ALWAYS AS (hash(s.a))"),
    ),
    Case(
        "DELTA_CONSTRAINT_DATA_TYPE_MISMATCH",
        "42K09",
        A,
        ARGUMENT,
        partial(widened_by_rows, columns="", rule="hash(s.a) > 0"),
    ),
    Case("DELTA_ROW_TRACKING_ILLEGAL_PROPERTY_COMBINATION", "55000", R, ARGUMENT, suspended_row_tracking),
    Case(
        "DELTA_CONVERT_TO_DELTA_ROW_TRACKING_WITHOUT_STATS",
        "22000",
        R,
        ARGUMENT,
        converted_without_statistics,
    ),
    Case("DELTA_IDENTITY_COLUMNS_REPLACE_COLUMN_NOT_SUPPORTED", "429BQ", A, ARGUMENT, identity_replaced),
    Case(
        "DELTA_UNIVERSAL_FORMAT_VIOLATION",
        "KD00E",
        U,
        ARGUMENT,
        statement("ALTER TABLE {t} SET TBLPROPERTIES (delta.universalFormat.enabledFormats = 'iceberg')"),
    ),
    Case(
        "DELTA_ICEBERG_COMPAT_VIOLATION.COMPAT_VERSION_NOT_SUPPORTED",
        "KD00E",
        U,
        ARGUMENT,
        statement("REORG TABLE {t} APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = 9))"),
    ),
    Case(
        "DELTA_ICEBERG_COMPAT_VIOLATION.WRONG_REQUIRED_TABLE_PROPERTY",
        "KD00E",
        U,
        ARGUMENT,
        statement(
            "ALTER TABLE {t} SET TBLPROPERTIES (delta.enableIcebergCompatV2 = 'true',"
            " delta.enableDeletionVectors = 'false')"
        ),
    ),
    Case("DELTA_UNSUPPORTED_GENERATE_WITH_DELETION_VECTORS", "0A000", U, UNSUPPORTED, vectors_and_manifest),
    Case(
        "DELTA_UNSUPPORTED_MANIFEST_GENERATION_WITH_COLUMN_MAPPING", "0AKDC", U, UNSUPPORTED, mapped_manifest
    ),
    Case(
        "DELTA_EMPTY_DATA",
        "428GU",
        A,
        SCHEMA,
        lambda at: at.spark.range(1).drop("id").write.format("delta").save(at.path),
    ),
    Case("DELTA_MISSING_NOT_NULL_COLUMN_VALUE", "23502", A, SCHEMA, missing_not_null),
    Case(
        "DELTA_FAILED_TO_MERGE_FIELDS",
        "22005",
        A,
        SCHEMA,
        lambda at: at.write("SELECT array(1) AS id, 'a' AS part, 'x' AS text", mergeSchema="true"),
    ),
    Case(
        "DELTA_METADATA_MISMATCH",
        "42KDG",
        A,
        SCHEMA,
        lambda at: at.write("SELECT 1L AS id, 'a' AS part, 2 AS more"),
    ),
    Case(
        "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES",
        "42K05",
        A,
        ARGUMENT,
        statement("CREATE TABLE delta.`{root}/n` (`a b` INT) USING delta"),
    ),
    Case(
        "DELTA_UNSUPPORTED_DROP_COLUMN", "0AKDC", A, ARGUMENT, statement("ALTER TABLE {t} DROP COLUMN text")
    ),
    Case(
        "DELTA_UNSUPPORTED_RENAME_COLUMN",
        "0AKDC",
        A,
        ARGUMENT,
        statement("ALTER TABLE {t} RENAME COLUMN text TO words"),
    ),
    *(
        Case("DELTA_FEATURES_REQUIRE_MANUAL_ENABLEMENT", "42000", R, ARGUMENT, change)
        for change in (
            statement("ALTER TABLE {t} ADD COLUMNS (x ARRAY<TIMESTAMP_NTZ>)"),
            statement("REPLACE TABLE {t} USING delta AS SELECT TIMESTAMP_NTZ '2024-01-01 00:00:00' AS x"),
            lambda at: at.write(
                "SELECT 1L AS id, 'a' AS part, TIMESTAMP_NTZ '2024-01-01 00:00:00' AS x", mergeSchema=True
            ),
        )
    ),
    *(
        Case("WRONG_COLUMN_DEFAULTS_FOR_DELTA_FEATURE_NOT_ENABLED", "0AKDE", A, ARGUMENT, statement(text))
        for text in ("ALTER TABLE {t} ALTER COLUMN id SET DEFAULT 1", CREATE.replace("INT", "INT DEFAULT 1"))
    ),
    Case(
        "DELTA_CREATE_TABLE_SET_CLUSTERING_TABLE_FEATURE_NOT_ALLOWED",
        "42000",
        A,
        ARGUMENT,
        statement(f"{CREATE} TBLPROPERTIES ('delta.feature.clustering' = 'supported')"),
    ),
    Case(
        "DELTA_ALTER_TABLE_SET_CLUSTERING_TABLE_FEATURE_NOT_ALLOWED",
        "42000",
        A,
        ARGUMENT,
        statement("ALTER TABLE {t} SET TBLPROPERTIES ('delta.feature.clustering' = 'supported')"),
    ),
    Case("DELTA_CLUSTERING_REPLACE_TABLE_WITH_PARTITIONED_TABLE", "42000", A, ARGUMENT, partitioned_again),
    Case("DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED", "42808", A, ARGUMENT, identity_given),
    Case("DELTA_IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED", "42808", A, ARGUMENT, identity_updated),
    Case(
        "CAST_INVALID_INPUT", "22018", "NumberFormatException", SCHEMA, statement("UPDATE {t} SET id = 'x'")
    ),
    Case(
        "CAST_INVALID_INPUT",
        "22018",
        "NumberFormatException",
        SCHEMA,
        statement("INSERT INTO {t} VALUES ('x', 'a', 'x')"),
    ),
    Case(
        "DELTA_CAST_OVERFLOW_IN_TABLE_WRITE",
        "22003",
        "ArithmeticException",
        SCHEMA,
        statement("UPDATE {t} SET id = 1e30D"),
    ),
    Case(
        "CAST_OVERFLOW_IN_TABLE_INSERT",
        "22003",
        "ArithmeticException",
        SCHEMA,
        statement("INSERT INTO {t} VALUES (1e30D, 'a', 'x')"),
    ),
    Case(
        "DATATYPE_MISMATCH.CAST_WITHOUT_SUGGESTION",
        "42K09",
        A,
        SCHEMA,
        statement("INSERT INTO {t} VALUES (array(1), 'a', 'x')"),
    ),
    Case("DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION", "42846", A, SCHEMA, struct_without_field),
    Case("FIELD_NOT_FOUND", "42704", A, ARGUMENT, unknown_field),
    Case(
        "DELTA_UNSUPPORTED_NESTED_FIELD_IN_UPDATE", "0A000", A, ARGUMENT, lambda at: in_nested(at, "items.a")
    ),
    Case(
        "DELTA_UNSUPPORTED_NESTED_FIELD_IN_UPDATE", "0A000", A, ARGUMENT, lambda at: in_nested(at, "counts.k")
    ),
    Case("INVALID_EXTRACT_BASE_FIELD_TYPE", "42000", A, ARGUMENT, lambda at: in_nested(at, "id.x")),
    Case(
        "DELTA_INSERT_COLUMN_MISMATCH",
        "42802",
        A,
        SCHEMA,
        lambda at: not_null_left_out(at, "(x) VALUES ('x')"),
    ),
    Case(
        "DELTA_INSERT_COLUMN_MISMATCH",
        "42802",
        A,
        SCHEMA,
        lambda at: not_null_left_out(at, "BY NAME SELECT 'x' AS x"),
    ),
    Case(
        "DELTA_MISSING_COLUMN",
        "42703",
        A,
        SCHEMA,
        statement("INSERT INTO {t} BY NAME SELECT 1 AS id, 2 AS other"),
    ),
    Case(
        "INSERT_COLUMN_ARITY_MISMATCH.TOO_MANY_DATA_COLUMNS",
        "21S01",
        A,
        SCHEMA,
        statement("INSERT INTO {t} BY NAME SELECT 1 AS id, 'a' part, 'x' text, 2 x"),
    ),
    Case(
        "DELTA_METADATA_MISMATCH",
        "42KDG",
        A,
        SCHEMA,
        statement("INSERT INTO {t} BY NAME SELECT 1L AS id, 'a' part, 'x' text, 2 x"),
    ),
    Case(
        "DELTA_FAILED_TO_MERGE_FIELDS",
        "22005",
        A,
        SCHEMA,
        lambda at: at.write("SELECT array(1) AS id", mode="overwrite"),
    ),
    Case(
        "DELTA_FAILED_TO_MERGE_FIELDS",
        "22005",
        A,
        SCHEMA,
        lambda at: at.write("SELECT 1L AS id, 'a' AS part, 1 AS text"),
    ),
    Case("DELTA_FAILED_TO_MERGE_FIELDS", "22005", A, SCHEMA, lambda at: at.write("SELECT 1 AS id, 'a' part")),
    Case("DELTA_METADATA_MISMATCH", "42KDG", A, SCHEMA, widened_by_merging),
    Case("DELTA_PARTITION_COLUMN_NOT_FOUND", "42703", A, SCHEMA, lambda at: at.write("SELECT 1L AS id")),
    Case(
        "DELTA_VERSION_NOT_FOUND",
        "22003",
        A,
        VERSION,
        statement("CREATE TABLE {t} SHALLOW CLONE {t} VERSION AS OF 9"),
    ),
    *(
        Case(
            "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION",
            "42601",
            A,
            errors.TableAlreadyExistsError,
            statement(text),
        )
        for text in (
            "CREATE TABLE {t} SHALLOW CLONE {t}",
            "CREATE TABLE {t} SHALLOW CLONE delta.`{root}/none`",
            "CREATE TABLE delta.`{root}/t/part=a` SHALLOW CLONE {t}",
        )
    ),
    Case("DELTA_CLONE_UNSUPPORTED_SOURCE", "0AKDC", A, ARGUMENT, clone_of_view),
    Case(
        "UNSUPPORTED_FEATURE.PARTITION_WITH_NESTED_COLUMN_IS_UNSUPPORTED",
        "0A000",
        A,
        ARGUMENT,
        statement(f"{CREATE} CLUSTER BY (nothing)"),
    ),
    Case(
        "DELTA_GENERATED_COLUMNS_EXPR_TYPE_MISMATCH",
        "42K09",
        A,
        SCHEMA,
        statement(generated_as("g STRING GENERATED ALWAYS AS (id + 1)")),
    ),
    Case(
        "UNSUPPORTED_EXPRESSION_GENERATED_COLUMN",
        "42621",
        A,
        UNSUPPORTED,
        statement(generated_as("g DOUBLE GENERATED ALWAYS AS (rand())")),
    ),
    Case(
        "DELTA_UNSUPPORTED_EXPRESSION_GENERATED_COLUMN",
        "42621",
        A,
        UNSUPPORTED,
        statement(generated_as("g STRING GENERATED ALWAYS AS (raise_error('x'))")),
    ),
    Case(
        "DELTA_NON_DETERMINISTIC_EXPRESSION_IN_GENERATED_COLUMN",
        "42621",
        A,
        UNSUPPORTED,
        built_as("rand()"),
    ),
    Case("DELTA_AGGREGATE_IN_GENERATED_COLUMN", "42621", A, UNSUPPORTED, built_as("max(a)")),
    Case(
        "DELTA_UNSUPPORTED_EXPRESSION_GENERATED_COLUMN", "42621", A, UNSUPPORTED, built_as("current_date()")
    ),
    Case("DELTA_INVALID_GENERATED_COLUMN_REFERENCES", "42621", A, ARGUMENT, built_as("a + b")),
    Case("DELTA_INVALID_GENERATED_COLUMN_REFERENCES", "42621", A, ARGUMENT, built_as("a + nothing")),
    Case(
        "PARSE_SYNTAX_ERROR",
        "42601",
        P,
        ARGUMENT,
        statement("ALTER TABLE {t} ADD COLUMN g BIGINT GENERATED ALWAYS AS (id + 1)"),
    ),
    Case(
        "CREATE_TABLE_COLUMN_DESCRIPTOR_DUPLICATE",
        "42710",
        P,
        ARGUMENT,
        statement("CREATE TABLE x (id BIGINT COMMENT 'a' COMMENT 'b') USING delta"),
    ),
    Case(
        "IDENTITY_COLUMNS_DUPLICATED_SEQUENCE_GENERATOR_OPTION",
        "42601",
        P,
        ARGUMENT,
        statement(
            "CREATE TABLE x (id BIGINT GENERATED ALWAYS AS IDENTITY (START WITH 1 START WITH 2)) USING delta"
        ),
    ),
    *(
        Case(
            "DELTA_IDENTITY_COLUMNS_ALTER_COLUMN_NOT_SUPPORTED",
            "429BQ",
            A,
            ARGUMENT,
            partial(identity_altered, change=change),
        )
        for change in ("TYPE DECIMAL(20, 0)", "TYPE DOUBLE", "SET DEFAULT 1")
    ),
    Case(
        "DELTA_INVALID_CONSTRAINT_NAME",
        "42939",
        A,
        ARGUMENT,
        statement("ALTER TABLE {t} ADD CONSTRAINT __CHAR_VARCHAR_STRING_LENGTH_CHECK__ CHECK (id > 0)"),
    ),
    Case(
        "DELTA_NON_BOOLEAN_CHECK_CONSTRAINT",
        "42621",
        A,
        SCHEMA,
        statement("ALTER TABLE {t} ADD CONSTRAINT nothing CHECK (NULL)"),
    ),
    Case(
        "DELTA_CONFLICT_SET_COLUMN", "42701", A, ARGUMENT, statement("UPDATE {t} SET text = 'a', text = 'b'")
    ),
    Case(
        "DELTA_INSERT_COLUMN_ARITY_MISMATCH", "42802", A, SCHEMA, statement("INSERT INTO {t} VALUES (1, 'a')")
    ),
    Case(
        "MERGE_INSERT_VALUE_COUNT_MISMATCH",
        "21S01",
        P,
        ARGUMENT,
        statement(f"{NEW} INSERT (id, part) VALUES (5)"),
    ),
    Case("FIELD_ALREADY_EXISTS", "42710", A, ARGUMENT, statement("ALTER TABLE {t} ADD COLUMN text STRING")),
    Case("FIELD_NOT_FOUND", "42704", A, ARGUMENT, statement("ALTER TABLE {t} ADD COLUMN x INT AFTER y")),
    Case(
        "DELTA_OPERATION_NOT_ALLOWED",
        "0AKDC",
        A,
        ARGUMENT,
        statement("ALTER TABLE {t} ADD COLUMN x INT NOT NULL"),
    ),
    Case(
        "WRONG_COLUMN_DEFAULTS_FOR_DELTA_ALTER_TABLE_ADD_COLUMN_NOT_SUPPORTED",
        "0AKDC",
        A,
        ARGUMENT,
        statement("ALTER TABLE {t} ADD COLUMN x INT DEFAULT 3"),
    ),
    Case(
        "DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED",
        "0AKDC",
        A,
        ARGUMENT,
        statement(f"{ANY.format('rand() > 0.5')} DELETE"),
    ),
    Case(
        "DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED",
        "0AKDC",
        A,
        ARGUMENT,
        statement(MERGE.replace("MATCHED THEN", "MATCHED AND rand() > 2 THEN") + " DELETE"),
    ),
    *(
        Case(condition, state, A, UNSUPPORTED, statement(CREATE.replace("INT)", f"{kind})")))
        for condition, state, kind in (
            ("UNSUPPORTED_TIME_TYPE", "0A000", "TIME"),
            ("DELTA_UNSUPPORTED_DATA_TYPES", "0AKDC", "INTERVAL DAY TO SECOND"),
            ("DELTA_UNSUPPORTED_DATA_TYPES", "0AKDC", "STRING COLLATE UTF8_LCASE"),
        )
    ),
    Case(
        "DELTA_UNSUPPORTED_DATA_TYPES",
        "0AKDC",
        A,
        UNSUPPORTED,
        statement("CREATE TABLE delta.`{root}/n` USING delta AS SELECT INTERVAL '1' DAY AS id"),
    ),
    Case(
        "UNSUPPORTED_TIME_TYPE",
        "0A000",
        A,
        UNSUPPORTED,
        statement("CREATE TABLE delta.`{root}/n` USING delta AS SELECT TIME'10:00:00' AS id"),
    ),
    Case("UNSUPPORTED_DATA_TYPE_FOR_DATASOURCE", "0A000", A, UNSUPPORTED, saved_time),
    Case(
        "IDENTITY_COLUMNS_UNSUPPORTED_DATA_TYPE",
        "428H2",
        P,
        ARGUMENT,
        statement(CREATE.replace("INT)", "STRING GENERATED ALWAYS AS IDENTITY)")),
    ),
    Case(
        "DELTA_AGGREGATION_NOT_SUPPORTED",
        "42903",
        A,
        ARGUMENT,
        statement(f"{ANY.format('sum(t.id) = 1')} DELETE"),
        jvm=True,
    ),
    Case(
        "DELTA_AGGREGATION_NOT_SUPPORTED",
        "42903",
        A,
        ARGUMENT,
        statement("MERGE INTO {t} t USING (SELECT 1 AS k) s ON t.id = max(s.k) WHEN MATCHED THEN DELETE"),
    ),
    *(
        Case(f"FAILED_READ_FILE.{kind}", "KD001", R, errors.ProtocolError, provoke)
        for kind, provoke in (
            ("FILE_NOT_EXIST", lambda at: broken_vector(at, Path.unlink)),
            (
                "NO_HINT",
                lambda at: broken_vector(at, lambda file: file.write_bytes(file.read_bytes()[:-1] + b"x")),
            ),
            ("NO_HINT", lambda at: edited(at, '{"add"', '{"add')),
        )
    ),
    Case("DELTA_UNSUPPORTED_TYPE_CHANGE_IN_SCHEMA", "0AKDC", R, UNSUPPORTED, unknown_widening),
    Case(
        "INVALID_JSON_DATA_TYPE",
        "2203G",
        "IllegalArgumentException",
        errors.ProtocolError,
        lambda at: edited(at, '\\"long\\"', '\\"foo\\"'),
    ),
    Case(
        "DELTA_DUPLICATE_COLUMNS_FOUND.EXISTING_SCHEMA",
        "42711",
        A,
        errors.ProtocolError,
        lambda at: edited(at, '\\"text\\"', '\\"ID\\"'),
    ),
    Case(
        "DELTA_DUPLICATE_COLUMNS_FOUND.READ_SCHEMA",
        "42711",
        A,
        errors.DeltaError,
        lambda at: (
            at.sql("CREATE TABLE delta.`{root}/n` (s STRUCT<x: INT>) USING delta"),
            at.sql("INSERT INTO delta.`{root}/n` SELECT named_struct('x', 1, 'X', 2) AS s"),
        ),
    ),
    Case(
        "DELTA_DUPLICATE_COLUMNS_FOUND.ADDING_COLUMNS",
        "42711",
        A,
        ARGUMENT,
        statement("ALTER TABLE {t} ADD COLUMN z STRUCT<q: INT, Q: INT>"),
    ),
    Case("DELTA_INVALID_PARTITION_PATH", "22KD1", A, ARGUMENT, reads_within_a_partition),
    Case(
        "DELTA_FILE_NOT_FOUND",
        "42K03",
        R,
        errors.TableNotFoundError,
        statement("DESCRIBE DETAIL delta.`{root}/nothing`"),
    ),
    Case(
        "DELTA_ONLY_OPERATION",
        "0AKDD",
        A,
        errors.TableNotFoundError,
        statement("REORG TABLE delta.`{root}/nothing` APPLY (PURGE)"),
    ),
    Case(
        "DELTA_UNSUPPORTED_NON_EMPTY_CLONE",
        "0AKDC",
        R,
        ARGUMENT,
        statement("CREATE OR REPLACE TABLE {t} SHALLOW CLONE {t}"),
    ),
    Case(
        "DELTA_CONVERSION_UNSUPPORTED_COLUMN_MAPPING",
        "0AKDC",
        "UnsupportedOperationException",
        UNSUPPORTED,
        converted_by_ids,
    ),
    Case("DELTA_REGEX_OPT_SYNTAX_ERROR", "2201B", "IllegalArgumentException", ARGUMENT, bad_pattern),
    Case("DELTA_VERSIONS_NOT_CONTIGUOUS", "KD00C", R, errors.ProtocolError, gap),
    Case("DELTA_TRUNCATED_TRANSACTION_LOG", "42K03", R, errors.ProtocolError, truncated),
    Case(
        "DELTA_TRUNCATED_TRANSACTION_LOG",
        "42K03",
        R,
        errors.ProtocolError,
        lambda at: truncated(at, timestampAsOf="2100-01-01"),
    ),
    Case("DELTA_PATH_BASED_ACCESS_TO_CATALOG_MANAGED_TABLE_BLOCKED", "KD00G", R, UNSUPPORTED, of_a_catalog),
    Case("DELTA_TXN_LOG_FAILED_INTEGRITY", "XXKDS", R, errors.ProtocolError, wrong_checksum),
    Case(
        "DELTA_UNSUPPORTED_CATALOG_MANAGED_TABLE_CREATION",
        "0AKDC",
        U,
        UNSUPPORTED,
        statement(f"{CREATE} TBLPROPERTIES (delta.feature.catalogManaged = 'supported')"),
    ),
    Case(
        f"{VALIDATION_FAILED}.EXISTING_DELETION_VECTORS_WITH_INCREMENTAL_MANIFEST_GENERATION",
        "0A000",
        R,
        UNSUPPORTED,
        vectors_and_kept_manifests,
    ),
    Case("DELTA_POST_COMMIT_HOOK_FAILED", "2DKD0", R, errors.CommitUnknownError, unwritten_manifests),
    Case(
        "DELTA_STREAMING_SCHEMA_LOG_PARSE_SCHEMA_FAILED",
        "22000",
        R,
        errors.ProtocolError,
        lambda at: schema_log_of(at, schema="text"),
        jvm=True,
    ),
    Case(
        "DELTA_STREAMING_SCHEMA_LOG_INCOMPATIBLE_DELTA_TABLE_ID",
        "22000",
        A,
        ARGUMENT,
        lambda at: schema_log_of(at),
        jvm=True,
    ),
    Case("DELTA_STATE_RECOVER_ERROR", "XXKDS", R, errors.ProtocolError, without_protocol),
    Case("DELTA_MISSING_COMMIT_TIMESTAMP", "KD004", R, errors.ProtocolError, without_time),
    Case(
        "DELTA_CANNOT_REPLACE_MISSING_TABLE",
        "42P01",
        A,
        ARGUMENT,
        statement("REPLACE TABLE no_table_to_clone SHALLOW CLONE {t}"),
    ),
    Case(
        "COLUMN_ALREADY_EXISTS",
        "42711",
        A,
        SCHEMA,
        statement("INSERT INTO {t} (id, id, text) VALUES (1, 2, 'x')"),
    ),
    Case(
        "DELTA_DUPLICATE_COLUMNS_ON_INSERT",
        "42701",
        A,
        ARGUMENT,
        statement(f"{NEW} INSERT (id, id) VALUES (1, 2)"),
    ),
    Case("DELTA_MERGE_MISSING_WHEN", "42601", A, ARGUMENT, empty_merge),
    Case(
        "NO_MERGE_ACTION_SPECIFIED",
        "42K0E",
        R,
        ARGUMENT,
        lambda at: at.spark.range(1).mergeInto(at.table, "true").merge(),
    ),
    Case(
        "MERGE_WITHOUT_WHEN",
        "42601",
        P,
        ARGUMENT,
        statement("MERGE INTO {t} t USING (SELECT 5L AS id) s ON t.id = s.id"),
    ),
    Case(
        "NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION",
        "42613",
        P,
        ARGUMENT,
        statement(f"{MERGE} DELETE WHEN MATCHED THEN DELETE"),
    ),
    Case(
        "DELTA_NON_PARTITION_COLUMN_REFERENCE", "42P10", A, ARGUMENT, statement("OPTIMIZE {t} WHERE id = 1")
    ),
    Case(
        "DELTA_NON_PARTITION_COLUMN_REFERENCE",
        "42P10",
        A,
        ARGUMENT,
        statement("OPTIMIZE {t} WHERE nothing = 1"),
        jvm=True,
    ),
    Case(
        "DELTA_FAILED_RECOGNIZE_PREDICATE",
        "42601",
        A,
        ARGUMENT,
        statement("OPTIMIZE {t} WHERE part ="),
        jvm=True,
    ),
    Case(
        "DELTA_FAILED_RECOGNIZE_PREDICATE",
        "42601",
        A,
        ARGUMENT,
        lambda at: at.write(mode="overwrite", replaceWhere="part ="),
        jvm=True,
    ),
    *(
        Case(
            "DELTA_FAILED_RECOGNIZE_PREDICATE",
            "42601",
            A,
            ARGUMENT,
            lambda at, text=text: at.write(mode="overwrite", replaceWhere=text),
        )
        for text in ("", " ")
    ),
    *(
        Case("DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN", "42K09", A, SCHEMA, run)
        for run in (
            lambda at: at.write(mode="overwrite", replaceWhere="id"),
            statement("DELETE FROM {t} WHERE NULL"),
            statement("UPDATE {t} SET id = 3 WHERE NULL"),
        )
    ),
    *(
        Case(f"DELTA_DUPLICATE_COLUMNS_FOUND.{kind}", "42711", A, ARGUMENT, run)
        for kind, run in (
            ("DATA", lambda at: repeated(at).write.format("delta").mode("append").save(at.path)),
            ("READ_SCHEMA", lambda at: repeated(at).writeTo(at.table).append()),
        )
    ),
    Case(
        "AMBIGUOUS_REFERENCE",
        "42704",
        A,
        ARGUMENT,
        statement("MERGE INTO {t} t USING (SELECT 1L AS id) T ON t.id = t.id WHEN MATCHED THEN DELETE"),
    ),
    Case(
        "DEFAULT_PLACEMENT_INVALID",
        "42608",
        A,
        ARGUMENT,
        statement("INSERT INTO {t} VALUES (DEFAULT + 1, 'a', 'x')"),
    ),
    Case("DELTA_MISSING_PART_FILES", "42KD6", R, errors.ProtocolError, missing_part),
    Case("RESERVED_CDC_COLUMNS_ON_WRITE", "42939", R, SCHEMA, reserved_columns),
    Case("DELTA_ADDING_COLUMN_WITH_INTERNAL_NAME_FAILED", "42000", R, SCHEMA, hidden_column),
    Case("DELTA_ONLY_OPERATION", "0AKDD", A, ARGUMENT, lambda at: of_parquet(at, "OPTIMIZE"), jvm=True),
    Case("DELTA_ONLY_OPERATION", "0AKDD", A, ARGUMENT, lambda at: of_parquet(at, "VACUUM"), jvm=True),
    *(
        Case("EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE", "42809", A, ARGUMENT, partial(of_temporary_view, text))
        for text in (
            "VACUUM {}",
            "REORG TABLE {} APPLY (PURGE)",
            "GENERATE symlink_format_manifest FOR TABLE {}",
        )
    ),
    Case(
        "DELTA_ONLY_OPERATION", "0AKDD", A, ARGUMENT, lambda at: of_parquet(at, "DESCRIBE HISTORY"), jvm=True
    ),
    Case("EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE", "42809", A, ARGUMENT, history_of_view, jvm=True),
    Case(
        "NOT_SUPPORTED_CHANGE_COLUMN",
        "0A000",
        A,
        ARGUMENT,
        statement("ALTER TABLE {t} ALTER COLUMN id TYPE INT"),
    ),
    Case(
        "DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP",
        "0AKDC",
        A,
        ARGUMENT,
        statement("ALTER TABLE {t} ALTER COLUMN id TYPE STRING"),
    ),
    Case("DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP", "0AKDC", A, ARGUMENT, replaced_columns),
    Case(
        "DELTA_ALTER_TABLE_CLUSTER_BY_ON_PARTITIONED_TABLE_NOT_ALLOWED",
        "42000",
        A,
        ARGUMENT,
        statement("ALTER TABLE {t} CLUSTER BY (id)"),
    ),
    Case("JOIN_CONDITION_IS_NOT_BOOLEAN_TYPE", "42K0E", A, SCHEMA, statement(f"{ANY.format('t.id')} DELETE")),
    Case(
        "DELTA_TABLE_ALREADY_EXISTS",
        "42P07",
        A,
        errors.TableAlreadyExistsError,
        clone_over_a_name,
    ),
    Case(
        "DELTA_UNEXPECTED_NUM_PARTITION_COLUMNS_FROM_FILE_NAME",
        "KD009",
        A,
        ARGUMENT,
        converted_without_folders,
    ),
    Case(
        "DELTA_ZORDERING_COLUMN_DOES_NOT_EXIST",
        "42703",
        I,
        ARGUMENT,
        statement("OPTIMIZE {t} ZORDER BY (nothing)"),
    ),
    Case(
        "DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT",
        "22003",
        I,
        ARGUMENT,
        statement("VACUUM {t} RETAIN 1 HOURS"),
    ),
    Case(
        "DELTA_VACUUM_RETENTION_PERIOD_NEGATIVE",
        "22003",
        I,
        ARGUMENT,
        lambda at: merge_builder(at).vacuum(-1),
    ),
    Case("DELTA_MODE_NOT_SUPPORTED", "0AKDC", I, ARGUMENT, statement("GENERATE other FOR TABLE {t}")),
    Case("FIELD_NOT_FOUND", "42704", A, ARGUMENT, zorder_by_an_unknown_field),
    Case(
        "DELTA_ZORDERING_ON_PARTITION_COLUMN",
        "42P10",
        I,
        ARGUMENT,
        statement("OPTIMIZE {t} ZORDER BY (part)"),
    ),
    Case(
        "DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED",
        "0A000",
        A,
        ARGUMENT,
        statement("CREATE TABLE delta.`{root}/n` (id BIGINT, v ARRAY<INT>) USING delta CLUSTER BY (v)"),
    ),
    Case("DELTA_CLUSTERING_WITH_ZORDER_BY", "42613", A, ARGUMENT, clustered_zorder),
    Case(
        "DELTA_UNSUPPORTED_SCHEMA_DURING_READ",
        "0AKDC",
        A,
        ARGUMENT,
        lambda at: at.spark.read.schema("id int").format("delta").load(at.path),
    ),
    Case("DELTA_ILLEGAL_OPTION", "42616", I, ARGUMENT, lambda at: at.write(mergeSchema="x")),
    *(
        # DeltaDataFrameWriterV2Suite: "throw error with createOrReplace and Replace if overwriteSchema=false"
        Case(
            "DELTA_ILLEGAL_USAGE",
            "42601",
            I,
            ARGUMENT,
            lambda at, end=end: getattr(replacing(at).option("overwriteSchema", "false"), end)(),
        )
        for end in ("replace", "createOrReplace")
    ),
    Case(
        "CODEC_NOT_AVAILABLE.WITH_AVAILABLE_CODECS_SUGGESTION",
        "56038",
        I,
        ARGUMENT,
        lambda at: at.write(compression="x"),
    ),
    Case(
        "DELTA_METADATA_MISMATCH",
        "42KDG",
        A,
        ARGUMENT,
        lambda at: at.writer().partitionBy("text").save(at.path),
    ),
    Case(
        "DELTA_PARTITION_COLUMN_NOT_FOUND",
        "42703",
        A,
        ARGUMENT,
        lambda at: at.writer().partitionBy("x").save(f"{at.root}/n"),
    ),
    Case(
        "DELTA_DUPLICATE_COLUMNS_FOUND.DATA",
        "42711",
        A,
        ARGUMENT,
        lambda at: at.write("SELECT 1L AS id, 2L AS id"),
    ),
    Case(
        "DELTA_OPERATION_NOT_ALLOWED_DETAIL",
        "0AKDC",
        A,
        UNSUPPORTED,
        statement(f"{CREATE} CLUSTERED BY (id) INTO 2 BUCKETS"),
    ),
    Case(
        "DELTA_OPERATION_NOT_ALLOWED",
        "0AKDC",
        A,
        UNSUPPORTED,
        statement(f"{CREATE} PARTITIONED BY (years(id))"),
    ),
    Case(
        "UNSUPPORTED_FEATURE.TABLE_OPERATION",
        "0A000",
        A,
        UNSUPPORTED,
        statement(CREATE.replace("INT)", "INT PRIMARY KEY)")),
    ),
    Case(
        "UNSUPPORTED_FEATURE.TABLE_OPERATION",
        "0A000",
        A,
        UNSUPPORTED,
        statement("ALTER TABLE {t} ADD CONSTRAINT k PRIMARY KEY (id)"),
    ),
    Case("COLUMN_ALREADY_EXISTS", "42711", A, ARGUMENT, statement(CREATE.replace("INT)", "INT, ID INT)"))),
    Case(
        "COLUMN_ALREADY_EXISTS",
        "42711",
        A,
        errors.DeltaError,
        statement("CREATE TABLE delta.`{root}/n` USING delta AS SELECT 1 a, 2 a"),
    ),
    Case(
        "ALL_PARTITION_COLUMNS_NOT_ALLOWED", "KD005", A, ARGUMENT, statement(f"{CREATE} PARTITIONED BY (id)")
    ),
    Case("DELTA_CANNOT_USE_ALL_COLUMNS_FOR_PARTITION", "428FT", A, ARGUMENT, all_partitioned),
    Case("DELTA_NON_PARTITION_COLUMN_ABSENT", "KD005", A, errors.SchemaMismatchError, only_partitions),
    *(
        Case(
            "ALL_PARTITION_COLUMNS_NOT_ALLOWED",
            "KD005",
            A,
            ARGUMENT,
            lambda at, end=end: getattr(new_table(at).partitionedBy("a", "b"), end)(),
        )
        for end in ("create", "createOrReplace")
    ),
    Case(
        "SPECIFY_CLUSTER_BY_WITH_PARTITIONED_BY_IS_NOT_ALLOWED",
        "42908",
        A,
        ARGUMENT,
        lambda at: new_table(at).clusterBy("a").partitionedBy("b").create(),
    ),
    Case("DELTA_CLUSTERING_COLUMN_MISSING_STATS", "22000", A, ARGUMENT, clustered_without_statistics),
    *(
        Case("DELTA_COLUMN_NOT_FOUND_IN_SCHEMA", "42703", A, ARGUMENT, statement(text))
        for text in (
            "ALTER TABLE {t} SET TBLPROPERTIES ('delta.dataSkippingStatsColumns' = 'id,nope')",
            f"{CREATE} TBLPROPERTIES ('delta.dataSkippingStatsColumns' = 'nope')",
        )
    ),
    *(
        Case(
            condition,
            sql_state,
            I,
            ARGUMENT,
            statement(
                f"ALTER TABLE {{t}} SET TBLPROPERTIES ('delta.dataSkippingStatsColumns' = '{columns}')"
            ),
        )
        for condition, sql_state, columns in (
            ("DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_PARTITIONED_COLUMN", "0AKDC", "part"),
            ("DELTA_DUPLICATE_DATA_SKIPPING_COLUMNS", "42701", "id,id"),
        )
    ),
    Case("INVALID_PARTITION_COLUMN_DATA_TYPE", "0A000", A, ARGUMENT, statement(partitioned("ARRAY<INT>"))),
    Case("DELTA_CANNOT_WRITE_EMPTY_SCHEMA.TABLE_ALL_VOID_COLUMNS", "428GU", A, ARGUMENT, nothing_typed),
    Case("DELTA_CANNOT_WRITE_EMPTY_SCHEMA.STRUCT_ALL_VOID_FIELDS", "428GU", A, ARGUMENT, struct_of_nulls),
    *(
        Case(
            "DELTA_COMPLEX_TYPE_COLUMN_CONTAINS_NULL_TYPE",
            "22005",
            A,
            ARGUMENT,
            statement(f"CREATE TABLE delta.`{{root}}/nulls` USING delta AS SELECT 1 AS id, {value} AS x"),
        )
        for value in ("array()", "map('k', NULL)")
    ),
    Case("INVALID_DEFAULT_VALUE.DATA_TYPE", "42623", A, SCHEMA, statement(with_default("'x'"))),
    Case("INVALID_DEFAULT_VALUE.DATA_TYPE", "42623", A, SCHEMA, statement(with_default("false"))),
    Case("INVALID_DEFAULT_VALUE.NON_DETERMINISTIC", "42623", A, ARGUMENT, statement(with_default("rand()"))),
    Case(
        "INVALID_DEFAULT_VALUE.SUBQUERY_EXPRESSION",
        "42623",
        A,
        UNSUPPORTED,
        statement(with_default("(SELECT 1)")),
    ),
    Case("INVALID_DEFAULT_VALUE.NOT_CONSTANT", "42623", A, ARGUMENT, statement(with_default("nothing"))),
    Case("INVALID_DEFAULT_VALUE.DATA_TYPE", "42623", A, SCHEMA, lambda at: new_default(at, "'x'")),
    Case(
        "INVALID_DEFAULT_VALUE.SUBQUERY_EXPRESSION",
        "42623",
        A,
        UNSUPPORTED,
        lambda at: new_default(at, "(SELECT 1)"),
    ),
    Case("INVALID_DEFAULT_VALUE.NOT_CONSTANT", "42623", A, ARGUMENT, lambda at: new_default(at, "nothing")),
    Case("UNSUPPORTED_DATATYPE", "0A000", P, ARGUMENT, statement(CREATE.replace("INT)", "NOTHING)"))),
    Case(
        "INVALID_PARTITION_OPERATION.PARTITION_MANAGEMENT_IS_UNSUPPORTED",
        "42601",
        A,
        UNSUPPORTED,
        statement(NEW_PARTITION),
    ),
    Case(
        "NOT_SUPPORTED_COMMAND_FOR_V2_TABLE",
        "0A000",
        A,
        UNSUPPORTED,
        statement("ALTER TABLE {t} RECOVER PARTITIONS"),
    ),
    Case(
        "DELTA_TRUNCATE_TABLE_PARTITION_NOT_SUPPORTED",
        "0AKDC",
        A,
        UNSUPPORTED,
        statement("TRUNCATE TABLE {t} PARTITION (part = 'a')"),
    ),
    Case(
        "NON_PARTITION_COLUMN",
        "42000",
        A,
        SCHEMA,
        statement("INSERT INTO {t} PARTITION (text = 'x') SELECT 1, 'a'"),
    ),
    Case("DELTA_METADATA_MISMATCH", "42KDG", A, SCHEMA, statement("INSERT INTO {t} VALUES (1, 'a', 'x', 2)")),
    Case(
        "DELTA_CREATE_TABLE_IDENTIFIER_LOCATION_MISMATCH",
        "0AKDC",
        A,
        ARGUMENT,
        lambda at: DeltaTable.create(at.spark).tableName(f"delta.`{at.root}/a`").location(f"{at.root}/b"),
    ),
    Case(
        "UNSUPPORTED_FEATURE.INSERT_PARTITION_SPEC_IF_NOT_EXISTS",
        "0A000",
        A,
        UNSUPPORTED,
        statement("INSERT OVERWRITE {t} PARTITION (part = 'a') IF NOT EXISTS SELECT 1, 'x'"),
    ),
    Case(
        "INSERT_COLUMN_ARITY_MISMATCH.NOT_ENOUGH_DATA_COLUMNS",
        "21S01",
        A,
        SCHEMA,
        statement("INSERT INTO {t} (id, text) VALUES (1)"),
    ),
    Case(
        "INSERT_COLUMN_ARITY_MISMATCH.TOO_MANY_DATA_COLUMNS",
        "21S01",
        A,
        SCHEMA,
        statement("INSERT INTO {t} (id) VALUES (1, 2)"),
    ),
    Case(
        "DELTA_READ_SOURCE_SCHEMA_CONFLICT",
        "42K07",
        A,
        ARGUMENT,
        lambda at: at.stream().schema("id INT").load(at.path),
        jvm=True,
    ),
    Case("DELTA_SCHEMA_NOT_SET", "KD008", A, errors.SchemaMismatchError, stream_without_columns, jvm=True),
    Case(
        "DELTA_SCHEMA_NOT_SET",
        "KD008",
        A,
        errors.TableNotFoundError,
        lambda at: at.stream().load(f"{at.root}/none"),
        jvm=True,
    ),
    Case(
        "UNSUPPORTED_EXPR_FOR_OPERATOR",
        "42K0E",
        A,
        ARGUMENT,
        statement("DELETE FROM {t} WHERE sum(id) = 1"),
        jvm=True,
    ),
    Case(
        "UNSUPPORTED_EXPR_FOR_OPERATOR",
        "42K0E",
        A,
        ARGUMENT,
        statement("DELETE FROM {t} WHERE id = max(id)"),
    ),
    Case(
        "DEFAULT_PLACEMENT_INVALID",
        "42608",
        A,
        ARGUMENT,
        statement("UPDATE {t} SET id = DEFAULT + 1"),
    ),
    Case(
        "UNSUPPORTED_FEATURE.TABLE_OPERATION",
        "0A000",
        A,
        UNSUPPORTED,
        statement("INSERT INTO {t} REPLACE USING (id) VALUES (1, 'a', 'x')"),
    ),
    Case("UNSUPPORTED_SQL_UDF_USAGE", "0A000", A, ARGUMENT, by_sql_function, jvm=True),
    Case(
        "INVALID_WHERE_CONDITION",
        "42903",
        A,
        ARGUMENT,
        statement("ALTER TABLE {t} ADD CONSTRAINT c CHECK (id > max(id))"),
    ),
    Case(
        "UNRESOLVED_COLUMN.WITH_SUGGESTION",
        "42703",
        A,
        ARGUMENT,
        statement("ALTER TABLE {t} ALTER COLUMN id AFTER nothing"),
    ),
    *(
        Case("DELTA_TABLE_ONLY_OPERATION", "0AKDD", A, errors.TableNotFoundError, statement(text))
        for text in (
            "VACUUM '{root}/none'",
            "OPTIMIZE '{root}/none'",
            "DESCRIBE HISTORY '{root}/none'",
            "DESCRIBE HISTORY delta.`{root}/none`",
        )
    ),
    Case(
        "DELTA_INVALID_INTERVAL",
        "22006",
        I,
        ARGUMENT,
        statement("ALTER TABLE {t} SET TBLPROPERTIES (delta.logRetentionDuration = 'x')"),
    ),
    *(
        Case("UNSUPPORTED_TABLE_CHANGE", "0A000", R, ARGUMENT, statement(f"ALTER TABLE {{t}} {change}"))
        for change in (
            "SET TBLPROPERTIES (delta.appendOnly = 'x')",
            "SET TBLPROPERTIES (delta.checkpointInterval = 'x')",
            "SET TBLPROPERTIES (delta.logRetentionDuration = 'interval 1 hour')",
            "SET TBLPROPERTIES (delta.minWriterVersion = '99')",
        )
    ),
    *(
        Case("DELTA_NESTED_NOT_NULL_CONSTRAINT", "0AKDC", A, ARGUMENT, statement(text))
        for text in (
            "CREATE TABLE delta.`{root}/n` (a ARRAY<STRUCT<x: INT NOT NULL>>) USING delta",
            "CREATE TABLE delta.`{root}/n` (s STRUCT<m: MAP<INT, STRUCT<x: INT NOT NULL>>>) USING delta",
            "CREATE OR REPLACE TABLE {t} (a MAP<STRUCT<x: INT NOT NULL>, INT>) USING delta",
        )
    ),
    Case("DELTA_CLUSTERING_WITH_PARTITION_PREDICATE", "0A000", U, UNSUPPORTED, clustered_condition),
    Case(
        "DELTA_DUPLICATE_COLUMNS_FOUND.CLUSTER_BY",
        "42711",
        A,
        ARGUMENT,
        statement(f"{CREATE} CLUSTER BY (id, id)"),
    ),
    Case(
        "DELTA_MISSING_DELTA_TABLE",
        "42P01",
        A,
        errors.TableNotFoundError,
        statement("OPTIMIZE delta.`{root}/none`"),
    ),
    Case(
        "DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS", "42616", I, ARGUMENT, lambda at: at.write(txnAppId="job")
    ),
    Case(
        "DELTA_REPLACE_WHERE_WITH_DYNAMIC_PARTITION_OVERWRITE",
        "42613",
        I,
        ARGUMENT,
        lambda at: at.write(mode="overwrite", replaceWhere="id = 1", partitionOverwriteMode="dynamic"),
    ),
    Case(
        "DELTA_MISSING_CHANGE_DATA",
        "KD002",
        A,
        ARGUMENT,
        lambda at: at.read(readChangeFeed="true", startingVersion=0).collect(),
    ),
    Case("DELTA_NO_START_FOR_CDC_READ", "42601", A, ARGUMENT, lambda at: at.read(readChangeFeed="true")),
    Case(
        "DELTA_MERGE_UNRESOLVED_EXPRESSION",
        "42601",
        A,
        ARGUMENT,
        statement(f"{MERGE} UPDATE SET nothing = 1"),
    ),
    Case("DELTA_MERGE_UNRESOLVED_EXPRESSION", "42601", A, SCHEMA, statement(f"{MERGE} UPDATE SET *")),
    Case(
        "UNSUPPORTED_GENERATOR.OUTSIDE_SELECT",
        "42K0E",
        A,
        ARGUMENT,
        statement(f"{ANY.format('true')} DELETE".replace("MATCHED", "MATCHED AND explode(array(1)) = 1")),
    ),
    Case(
        "DELTA_UNSUPPORTED_NESTED_FIELD_IN_OPERATION",
        "0AKDC",
        A,
        UNSUPPORTED,
        nested_insert,
    ),
    Case(
        "NOT_SUPPORTED_COMMAND_FOR_V2_TABLE",
        "0A000",
        A,
        UNSUPPORTED,
        statement("ANALYZE TABLE {t} COMPUTE STATISTICS"),
    ),
    *(
        Case("NOT_SUPPORTED_COMMAND_FOR_V2_TABLE", "0A000", A, UNSUPPORTED, statement(text))
        for text in ("MSCK REPAIR TABLE {t}", "REPAIR TABLE {t}", "DESCRIBE EXTENDED {t} AS JSON")
    ),
    Case(
        "INVALID_PARTITION_OPERATION.PARTITION_MANAGEMENT_IS_UNSUPPORTED",
        "42601",
        A,
        UNSUPPORTED,
        statement("DESCRIBE {t} PARTITION (id = 1)"),
    ),
    Case("PARSE_SYNTAX_ERROR", "42601", P, ARGUMENT, statement("VACUUM {t} RETAIN x")),
    Case("DUPLICATE_CLAUSES", "42614", P, ARGUMENT, statement("VACUUM {t} LITE FULL")),
    Case(
        "UNRESOLVED_COLUMN.WITH_SUGGESTION",
        "42703",
        A,
        ARGUMENT,
        statement("DELETE FROM {t} WHERE nothing = 1"),
    ),
    Case(
        "DIVIDE_BY_ZERO",
        "22012",
        "ArithmeticException",
        ARGUMENT,
        statement("UPDATE {t} SET id = 1 DIV (id - 1)"),
    ),
    Case(
        "DELTA_MISSING_DELTA_TABLE",
        "42P01",
        A,
        ARGUMENT,
        lambda at: DeltaTable.forName(at.spark, "nothing"),
        jvm=True,
    ),
    Case(
        "DELTA_STARTING_VERSION_AND_TIMESTAMP_BOTH_SET",
        "42613",
        I,
        ARGUMENT,
        lambda at: (
            at.spark.readStream.format("delta")
            .option("startingVersion", 1)
            .option("startingTimestamp", "2020-01-01")
            .load(at.path)
        ),
        jvm=True,
    ),
    Case(
        "DELTA_UNSUPPORTED_OUTPUT_MODE",
        "0AKDC",
        A,
        ARGUMENT,
        lambda at: (
            at.spark.readStream.format("delta")
            .load(at.path)
            .writeStream.format("delta")
            .outputMode("update")
            .start(f"{at.root}/n")
        ),
        jvm=True,
    ),
)


@pytest.mark.parametrize(
    "case", [case for case in CASES if not (case.jvm and IS_REMOTE)], ids=lambda case: case.condition
)
def test_an_error_is_of_delta_sparks_condition(place: Place, case: Case) -> None:
    import pyspark.errors

    with pytest.raises(getattr(pyspark.errors, case.kind)) as caught:
        case.provoke(place)
    error = caught.value
    assert (error.getCondition(), error.getSqlState()) == (case.condition, case.sql_state)
    assert isinstance(error, case.own)
    text = str(error)
    assert text.count(f"[{case.condition}]") == 1
    assert text.endswith(f" SQLSTATE: {case.sql_state}")
    assert isinstance(error.getMessageParameters(), dict)
    with pytest.warns(FutureWarning, match="getCondition"):
        assert error.getErrorClass() == case.condition


def test_the_table_says_no_condition_in_two_ways() -> None:
    import pyspark.errors

    known: dict[str, tuple[str, str]] = {}
    for each in CONDITIONS:
        if each.name != "CAST_INVALID_INPUT":  # its class is of the type that is cast to
            assert known.setdefault(each.name, (each.sql_state, each.kind)) == (each.sql_state, each.kind)
        assert issubclass(getattr(pyspark.errors, each.kind), pyspark.errors.PySparkException)
    for case in CASES:
        if case.condition.startswith("DELTA_"):
            assert known[case.condition] == (case.sql_state, case.kind)


def test_names_of_the_catalog(session: Any, tmp_path: Path) -> None:
    """A name that is taken, and one that no table has, for each call that makes or replaces a table."""
    from pyspark.errors import AnalysisException

    rows = session.range(1)
    session.sql("CREATE TABLE taken (id BIGINT) USING delta")
    taken = (
        lambda: session.sql("CREATE TABLE taken (id BIGINT) USING delta"),
        lambda: session.sql("CREATE TABLE taken USING delta AS SELECT 1 AS id"),
        lambda: rows.write.format("delta").saveAsTable("taken"),
        lambda: rows.writeTo("taken").using("delta").create(),
        lambda: DeltaTable.create(session).tableName("taken").addColumn("id", "BIGINT").execute(),
    )
    elsewhere = f"{tmp_path}/elsewhere"
    taken += (
        lambda: session.sql(f"CREATE TABLE taken (id BIGINT) USING delta LOCATION '{elsewhere}'"),
        lambda: rows.write.format("delta").option("path", elsewhere).saveAsTable("taken"),
        lambda: (
            DeltaTable.create(session)
            .tableName("taken")
            .location(elsewhere)
            .addColumn("id", "BIGINT")
            .execute()
        ),
    )
    stays = (
        lambda: session.sql(
            f"CREATE TABLE IF NOT EXISTS taken (id BIGINT) USING delta LOCATION '{elsewhere}'"
        ),
        lambda: (
            DeltaTable.createIfNotExists(session)
            .tableName("taken")
            .location(elsewhere)
            .addColumn("id", "BIGINT")
            .execute()
        ),
        lambda: session.sql("CONVERT TO DELTA taken"),
        lambda: DeltaTable.convertToDelta(session, "taken"),
    )
    moved = (
        lambda: session.sql(f"CREATE OR REPLACE TABLE taken (id BIGINT) USING delta LOCATION '{elsewhere}'"),
        lambda: (
            DeltaTable.createOrReplace(session)
            .tableName("taken")
            .location(elsewhere)
            .addColumn("id", "BIGINT")
            .execute()
        ),
    )
    missing = (
        lambda: session.sql("CREATE TABLE taken SHALLOW CLONE nobody"),
        lambda: session.sql("CREATE TABLE taken LIKE nobody USING delta"),
        lambda: session.sql("CONVERT TO DELTA nobody"),
        lambda: DeltaTable.convertToDelta(session, "nobody"),
        lambda: session.sql("REPLACE TABLE nobody (id BIGINT) USING delta"),
        lambda: session.sql("DESCRIBE DETAIL nobody").collect(),
        lambda: session.sql("OPTIMIZE nobody").collect(),
        lambda: session.sql("SELECT * FROM table_changes('nobody', 0)").collect(),
        lambda: rows.writeTo("nobody").using("delta").replace(),
        lambda: DeltaTable.replace(session).tableName("nobody").addColumn("id", "BIGINT").execute(),
    )
    try:
        for condition, state, calls in (
            ("TABLE_OR_VIEW_ALREADY_EXISTS", "42P07", taken),
            ("TABLE_OR_VIEW_NOT_FOUND", "42P01", missing),
            ("DELTA_TABLE_LOCATION_MISMATCH", "42613", moved),
        ):
            for call in calls:
                with pytest.raises(AnalysisException) as caught:
                    call()
                assert (caught.value.getCondition(), caught.value.getSqlState()) == (condition, state)
                parameters = caught.value.getMessageParameters()
                if condition == "TABLE_OR_VIEW_ALREADY_EXISTS":
                    assert parameters == {"relationName": "`default`.`taken`"}
                elif condition == "TABLE_OR_VIEW_NOT_FOUND":
                    assert parameters["relationName"] in ("`nobody`", "`default`.`nobody`")
                    assert (
                        parameters["searchPath"] == "not available"
                        or "`spark_catalog`.`default`" in parameters["searchPath"]
                    )
                else:
                    assert parameters["tableName"] == "`default`.`taken`"
        for call in stays:
            call()
        assert not Path(elsewhere).exists()
    finally:
        session.sql("DROP TABLE taken")


def test_a_table_whose_files_are_gone(session: Any, tmp_path: Path) -> None:
    """The catalog still has the name, but somebody has deleted the folder. No write makes another table there
    unasked."""
    from pyspark.errors import AnalysisException, PySparkException

    rows, where = session.range(1), tmp_path / "lost"
    session.sql(f"CREATE TABLE lost (id BIGINT) USING delta LOCATION '{where}'")
    session.sql("INSERT INTO lost VALUES (1)")
    shutil.rmtree(where / "_delta_log")
    named = (
        lambda: session.table("lost").collect(),
        lambda: session.read.table("default.lost").collect(),
        lambda: session.sql("SELECT count(*) FROM lost").collect(),
        lambda: session.sql("INSERT INTO lost VALUES (1)"),
        lambda: session.sql("DELETE FROM lost WHERE id = 1"),
        lambda: session.sql("MERGE INTO lost t USING lost s ON t.id = s.id WHEN MATCHED THEN DELETE"),
        lambda: rows.write.insertInto("lost"),
        lambda: rows.write.format("delta").mode("append").saveAsTable("lost"),
        lambda: DeltaTable.forName(session, "lost"),
        lambda: session.sql("CONVERT TO DELTA lost"),
    )
    placed = (
        lambda: session.sql("ALTER TABLE lost ADD COLUMN x INT"),
        lambda: session.sql("OPTIMIZE lost").collect(),
        lambda: session.sql("VACUUM lost").collect(),
        lambda: session.sql("DESCRIBE DETAIL lost").collect(),
        lambda: session.sql("TRUNCATE TABLE lost"),
    )
    absent = (lambda: session.sql("REPLACE TABLE lost (id BIGINT) USING delta"),)
    taken = (lambda: session.sql("CREATE TABLE lost (id BIGINT) USING delta"),)
    exists = "TABLE_OR_VIEW_ALREADY_EXISTS"
    of_two = "DELTA_METADATA_ABSENT_EXISTING_CATALOG_TABLE"
    try:
        for condition, state, parameter, kind, calls in (
            ("DELTA_TABLE_NOT_FOUND", "42P01", ("tableName", "`default`.`lost`"), AnalysisException, named),
            ("DELTA_PATH_DOES_NOT_EXIST", "42K03", ("path", str(where)), AnalysisException, placed),
            (of_two, "42K03", ("tableNameForDropCmd", "`default`.`lost`"), PySparkException, absent),
            (exists, "42P07", ("relationName", "`default`.`lost`"), AnalysisException, taken),
        ):
            for call in calls:
                with pytest.raises(kind) as caught:
                    call()
                assert (caught.value.getCondition(), caught.value.getSqlState()) == (condition, state)
                assert parameter in caught.value.getMessageParameters().items()
        session.sql("CREATE TABLE IF NOT EXISTS lost (id BIGINT) USING delta")
        assert not (where / "_delta_log").exists()
    finally:
        session.sql("DROP TABLE lost")


def test_a_name_with_too_many_parts(session: Any) -> None:
    from pyspark.errors import AnalysisException

    for text in (
        "OPTIMIZE a.b.c",
        "CREATE TABLE a.b.c SHALLOW CLONE delta.`/x`",
        "CREATE OR REPLACE TABLE a.b.c CLONE delta.`/x`",
        "DESCRIBE DETAIL a.b.c",
        "CONVERT TO DELTA a.b.c",
        "VACUUM spark_catalog.a.b.c",
    ):
        with pytest.raises(AnalysisException) as caught:
            session.sql(text)
        assert (caught.value.getCondition(), caught.value.getSqlState()) == (
            "REQUIRES_SINGLE_PART_NAMESPACE",
            "42K05",
        )
        assert caught.value.getMessageParameters()["sessionCatalog"] == "spark_catalog"
    with pytest.raises(AnalysisException) as caught:
        session.sql("OPTIMIZE spark_catalog.nowhere.nothing")
    assert caught.value.getCondition() == "TABLE_OR_VIEW_NOT_FOUND"


def test_a_table_of_another_definition_at_the_place(place: Place) -> None:
    from pyspark.errors import AnalysisException

    columns = "CREATE TABLE elsewhere (id BIGINT, part STRING, text STRING) USING delta LOCATION '{root}/t'"
    for clause, condition in {
        "PARTITIONED BY (text)": "DELTA_CREATE_TABLE_WITH_DIFFERENT_PARTITIONING",
        "PARTITIONED BY (part) TBLPROPERTIES ('a' = 'b')": "DELTA_CREATE_TABLE_WITH_DIFFERENT_PROPERTY",
    }.items():
        with pytest.raises(AnalysisException) as caught:
            place.sql(f"{columns} {clause}")
        assert (caught.value.getCondition(), caught.value.getSqlState()) == (condition, "42KD7")
    assert not place.spark.catalog.tableExists("elsewhere")


def test_what_delta_spark_raises_as_an_error_of_the_jvm(place: Place) -> None:
    """PySpark has no class for the runtime exceptions of delta-spark: jobs catch them as Py4JJavaError."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import AnalysisException, UnsupportedOperationException

    place.sql("ALTER TABLE {t} ADD CONSTRAINT low CHECK (id < 10)")
    for run in (
        lambda: place.sql("INSERT INTO {t} VALUES (10, 'a', 'x')"),
        lambda: place.write("SELECT 10L AS id, 'a' AS part, 'x' AS text"),
        lambda: merge_builder(place).update(set={"id": "10"}),
    ):
        with pytest.raises(Py4JJavaError, match="DELTA_VIOLATE_CONSTRAINT_WITH_VALUES") as row:
            run()
        assert isinstance(row.value, errors.ConstraintViolationError)
        assert row.value.java_exception.getMessage() == row.value.errmsg == str(row.value)
        copied = pickle.loads(pickle.dumps(row.value))
        assert type(copied) is errors.ConstraintViolationError
    with pytest.raises(Py4JJavaError, match="UNSUPPORTED_TABLE_CHANGE") as change:
        place.sql("ALTER TABLE {t} SET TBLPROPERTIES (delta.appendOnly = 'x')")
    assert change.value.getMessageParameters().keys() == {"message"}
    with pytest.raises(Py4JJavaError, match="DELTA_UNSUPPORTED_FEATURES_IN_CONFIG"):
        merge_builder(place).addFeatureSupport("newThing")
    with pytest.raises(AnalysisException) as analysis:
        place.read(f"{place.root}/none")
    assert not isinstance(analysis.value, Py4JJavaError)
    place.sql("ALTER TABLE {t} SET TBLPROPERTIES ('delta.appendOnly' = 'true')")
    with pytest.raises(UnsupportedOperationException) as append_only:
        place.sql("DELETE FROM {t} WHERE id = 1")
    assert not isinstance(append_only.value, Py4JJavaError)
    assert len(place.sql("RESTORE TABLE {t} TO VERSION AS OF 0")) == 1  # as in delta-spark


def parameters_of_merge() -> dict[str, dict[str, str]]:
    """Statements of delta-spark's MergeIntoSuiteBase and MergeIntoNotMatchedBySourceSuite, "analysis errors"
    -> message parameters."""
    own, both = "t.id, t.part, t.text", "t.id, t.part, t.text, s.id"
    start = "MERGE INTO {t} t USING (SELECT 1L AS id) s ON t.id = s.id WHEN"
    unresolved = {
        f"{start} MATCHED THEN UPDATE SET nothing = 1": ("nothing", "UPDATE clause", own),
        f"{start} MATCHED THEN UPDATE SET s.id = 1": ("s.id", "UPDATE clause", own),
        f"{start} MATCHED THEN UPDATE SET text = s.nope": ("s.nope", "UPDATE clause", both),
        f"{start} MATCHED THEN UPDATE SET *": ("part", "UPDATE clause", "s.id"),
        f"{start} MATCHED AND nope.x > 1 THEN DELETE": ("nope.x", "DELETE condition", both),
        f"{start} NOT MATCHED AND text = 'x' THEN INSERT *": ("text", "INSERT condition", "s.id"),
        f"{start} NOT MATCHED THEN INSERT (id) VALUES (t.id)": ("t.id", "INSERT clause", "s.id"),
        f"{start} NOT MATCHED BY SOURCE AND s.id = 1 THEN DELETE": ("s.id", "DELETE condition", own),
        start.replace("t.id =", "t.k =") + " MATCHED THEN DELETE": ("t.k", "search condition", both),
    }
    return {
        **{
            text: {"sqlExpr": column, "clause": clause, "cols": columns}
            for text, (column, clause, columns) in unresolved.items()
        },
        f"{start} MATCHED AND max(0) > 0 THEN DELETE": {
            "operation": "DELETE condition of MERGE operation",
            "predicate": "(condition = (max(0) > 0))",
        },
        f"{start} NOT MATCHED AND rand() > 2 THEN INSERT *": {
            "operation": "INSERT condition of MERGE operation",
            "expression": "(condition = (rand() > 2)).",
        },
        f"{start} MATCHED THEN UPDATE SET t.text = 'a', text = 'b'": {"columnList": "[`text`, `text`]"},
        f"{start} NOT MATCHED THEN INSERT (t.id, id) VALUES (1, 2)": {},
    }


def test_parameters_of_a_condition(place: Place) -> None:
    from pyspark.errors import (
        AnalysisException,
        IllegalArgumentException,
        NumberFormatException,
        ParseException,
        SparkRuntimeException,
    )

    place.sql("ALTER TABLE {t} ADD CONSTRAINT low CHECK (id < 10)")
    with pytest.raises(SparkRuntimeException) as row:
        place.sql("INSERT INTO {t} VALUES (10, 'a', 'x')")
    # Rows are counted where they are cheap to compute again.
    values = "id = 10" if IS_REMOTE else "1 row, with id = 10"
    assert row.value.getMessageParameters() == {
        "constraintName": "low",
        "expression": "id < 10",
        "values": values,
    }
    with pytest.raises(AnalysisException) as missing:
        place.read(f"{place.root}/none")
    assert set(missing.value.getMessageParameters()) == {"path"}
    (place.root / "empty").mkdir()
    with pytest.raises(AnalysisException) as empty:
        place.sql("OPTIMIZE '{root}/empty'")
    assert empty.value.getMessageParameters()["tableName"] == f"`{place.root}/empty`"
    assert f"{place.root}/none" in missing.value.getMessageParameters()["path"]
    assert missing.value.getQueryContext() == []
    with pytest.raises(NumberFormatException) as value:
        place.sql("UPDATE {t} SET id = 'abc'")
    assert value.value.getMessageParameters() == {
        "expression": "'abc'",
        "sourceType": '"STRING"',
        "targetType": '"BIGINT"',
        "ansiConfig": '"spark.sql.ansi.enabled"',
    }
    with pytest.raises(ParseException) as unparsed:
        place.sql("VACUUM {t} RETAIN 5")
    assert unparsed.value.getMessageParameters() == {"error": "'VACUUM'", "hint": ""}
    with pytest.raises(IllegalArgumentException) as early:
        place.sql("VACUUM {t} RETAIN 0 HOURS")
    assert early.value.getMessageParameters() == {"configuredRetentionHours": "168"}
    with pytest.raises(AnalysisException) as late:
        place.read(timestampAsOf="2100-01-01")
    of_time = late.value.getMessageParameters()
    assert of_time["lastCommitTimestamp"].startswith(of_time["maximumTimestamp"])
    assert datetime.fromisoformat(of_time["providedTimestamp"]).year in (2099, 2100)  # in the local time zone
    wanted = {
        "ALTER TABLE {t} SET TBLPROPERTIES (delta.newThing = 'x')": {
            "config": "delta.newThing",
            "disableCheckConfig": "spark.databricks.delta.allowArbitraryProperties.enabled",
        },
        "SELECT * FROM {t} VERSION AS OF 9": {"userVersion": "9", "earliest": "0", "latest": "2"},
        "RESTORE TABLE {t} TO VERSION AS OF 9": {"version": "9", "startVersion": "0", "endVersion": "2"},
        "ALTER TABLE {t} ALTER COLUMN text TYPE INT": {
            "originName": "`text`",
            "newName": "`text`",
            "originType": '"STRING"',
            "newType": '"INT"',
            "table": f"`spark_catalog`.`delta`.`{place.path}`",
        },
        "ALTER TABLE {t} DROP COLUMN nope": {"objectName": "`nope`", "proposal": "`id`, `part`, `text`"},
        "ALTER TABLE {t} DROP COLUMN nope.x": {"objectName": "`nope`", "proposal": "`id`, `part`, `text`"},
        "ALTER TABLE {t} ADD COLUMN text STRING": {
            "op": "add",
            "fieldNames": "`text`",
            "struct": '"STRUCT<id: BIGINT, part: STRING, text: STRING>"',
        },
        "ALTER TABLE {t} ADD COLUMN x INT AFTER nope": {"fieldName": "`x`", "fields": "id, part, text"},
        "ALTER TABLE {t} ADD COLUMN `a b` INT": {"invalidColumnNames": "a b"},
        "UPDATE {t} SET nothing = 1": {"objectName": "`nothing`", "proposal": "`id`, `text`, `part`"},
        "UPDATE {t} t SET t.nothing = 1": {"objectName": "`nothing`", "proposal": "`id`, `text`, `part`"},
        "UPDATE {t} SET id = array(1)": {
            "sqlExpr": '"array(1)"',
            "srcType": '"ARRAY<INT>"',
            "targetType": '"BIGINT"',
        },
        "UPDATE {t} SET id = 1, id = 2": {"columnList": "[`id`, `id`]"},
        "DELETE FROM {t} WHERE id": {"sqlExpr": '"id"', "filter": '"id"', "type": '"BIGINT"'},
        "INSERT INTO {t} BY NAME SELECT 1 AS id, 2 AS other": {
            "columnName": "other",
            "columnList": "id, part, text",
        },
        "INSERT INTO {t} BY NAME SELECT 1 AS id, 'a' part, 'x' text, 2 x": {
            "tableName": f"`spark_catalog`.`delta`.`{place.path}`",
            "tableColumns": "`id`, `part`, `text`",
            "dataColumns": "`id`, `part`, `text`, `x`",
        },
        "INSERT INTO {t} PARTITION (part = 'a') SELECT 1": {
            "tableName": f"delta.`{place.path}`",
            "columnName": "not enough data columns",
            "insertColumns": "2",
            "numColumns": "3",
        },
        "CREATE TABLE delta.`{root}/n` (day DATE) USING delta PARTITIONED BY (years(day))": {
            "operation": "Partitioning by expressions"
        },
        "OPTIMIZE {t} WHERE id = 1": {"columnName": "id", "columnList": "part"},
        "OPTIMIZE nobody": {
            "relationName": "`nobody`",
            "searchPath": "[`system`.`session`, `spark_catalog`.`default`]",
        },
        "SELECT * FROM {t} TIMESTAMP AS OF 'none'": {"expr": '"none"'},
        **parameters_of_merge(),
        "CREATE TABLE delta.`{root}/n` (id INT) USING delta CLUSTER BY (nope)": {"cols": "`nope`"},
        "ALTER TABLE {t} ADD CONSTRAINT low CHECK (id < 5)": {
            "constraintName": "low",
            "oldConstraint": "id < 10",
        },
        "ALTER TABLE {t} ADD CONSTRAINT LOW CHECK (id < 5)": {
            "constraintName": "LOW",
            "oldConstraint": "id < 10",
        },
        "CREATE TABLE delta.`{root}/n` (id INT, g INT GENERATED ALWAYS AS (id) DEFAULT 3) USING delta"
        " TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')": {
            "colName": "g",
            "defaultValue": "3",
            "genExpr": "id",
        },
        "ALTER TABLE {t} DROP FEATURE checkConstraints": {"constraints": "`low`"},
        "VACUUM {t} LITE FULL": {"clauseName": "LITE/FULL"},
        "VACUUM {t} DRY RUN DRY RUN": {"clauseName": "DRY RUN"},
        "SELECT * FROM {t} VERSION AS OF -1": {"error": "'-'", "hint": ""},
        "SELECT * FROM {t} VERSION AS OF 1 + 1": {"error": "'+'", "hint": ""},
        "SELECT * FROM {t} VERSION AS OF 1.0": {"error": "'1.0'", "hint": ""},
        "SELECT * FROM {t} VERSION AS OF abs(1)": {"error": "'abs'", "hint": ""},
        "RESTORE nobody TO VERSION AS OF 0": {"relationName": "`nobody`", "searchPath": "not available"},
        "SELECT * FROM table_changes('nobody', 0)": {
            "relationName": "`nobody`",
            "searchPath": "[`system`.`builtin`, `system`.`session`, `spark_catalog`.`default`]",
        },
        "CREATE TABLE delta.`{root}/n` (id BIGINT, g BIGINT GENERATED ALWAYS AS (g + 1)) USING delta": {
            "fieldName": "g",
            "expressionStr": "g + 1",
            "reason": "generation expression cannot reference itself",
        },
        "CREATE TABLE delta.`{root}/n` (a INT, b INT, c INT, d INT, e INT)"
        " USING delta CLUSTER BY (a, b, c, d, e)": {
            "numColumnsLimit": "4",
            "actualNumColumns": "5",
        },
        "INSERT INTO {t} VALUES (array(1), 'a', 'x')": {"srcType": '"ARRAY<INT>"', "targetType": '"BIGINT"'},
    }
    found = {}
    for text in wanted:
        with pytest.raises(AnalysisException) as refused:
            place.sql(text)
        found[text] = refused.value.getMessageParameters()
    assert found == wanted
    place.sql("ALTER TABLE {t} DROP CONSTRAINT low")
    with pytest.raises(AnalysisException) as narrowed:
        place.sql("ALTER TABLE {t} ALTER COLUMN id TYPE STRING")
    assert narrowed.value.getMessageParameters() == {
        "fieldPath": "id",
        "oldField": "BIGINT",
        "newField": "STRING",
    }


def test_conditions_of_upkeep(place: Place) -> None:
    """OptimizeCompactionSuite, OptimizeZOrderSuite, DeltaVacuumSuite, CloneTableSQLSuite and
    ConvertToDeltaSuiteBase: the errors of their negative cases. RestoreTableSuiteBase: "restore after
    vacuum"."""
    from pyspark.errors import IllegalArgumentException, PySparkException

    place.properties(dataSkippingNumIndexedCols="0")
    for folder in ("p/a=1", "q/y", "r/a=1", "r/y"):
        (place.root / folder).mkdir(parents=True)
        file = next((place.root / "t").rglob("*.parquet"))
        (place.root / folder / "x.parquet").write_bytes(file.read_bytes())
    wanted: dict[str, tuple[str, str | None, dict[str, str]]] = {
        "SELECT * FROM {t} VERSION AS OF 'x'": (
            I,
            "DELTA_TIME_TRAVEL_INVALID_BEGIN_VALUE",
            {"timeTravelKey": "versionAsOf"},
        ),
        "SELECT * FROM {t} TIMESTAMP AS OF rand()": (
            A,
            "INVALID_TIME_TRAVEL_TIMESTAMP_EXPR.NON_DETERMINISTIC",
            {"expr": '"rand()"'},
        ),
        f"{ANY.format('t.id = s.id AND t.id IN (SELECT id FROM {t})')} DELETE": (
            A,
            "DELTA_UNSUPPORTED_SUBQUERY",
            {
                "operation": "search condition of MERGE operation",
                "cond": f"(t.id = s.id AND t.id IN (SELECT id FROM {place.table}))",
            },
        ),
        f"{ANY.format('t.id = s.id')[:-5]} AND EXISTS (SELECT 1 FROM {{t}}) THEN DELETE": (
            A,
            "DELTA_UNSUPPORTED_SUBQUERY",
            {
                "operation": "DELETE condition of MERGE operation",
                "cond": f"(EXISTS (SELECT 1 FROM {place.table}))",
            },
        ),
        "INSERT INTO {t} REPLACE WHERE id IN (SELECT id FROM {t}) SELECT 1, 'a', 'x'": (
            A,
            "UNSUPPORTED_FEATURE.OVERWRITE_BY_SUBQUERY",
            {},
        ),
        "OPTIMIZE {t} WHERE part > (SELECT 'a')": (
            A,
            "DELTA_UNSUPPORTED_SUBQUERY_IN_PARTITION_PREDICATES",
            {},
        ),
        "OPTIMIZE {t} ZORDER BY (id)": (
            A,
            "DELTA_ZORDERING_ON_COLUMN_WITHOUT_STATS",
            {"cols": "[id]", "zorderColStatKey": ZORDER_CHECK},
        ),
        "CREATE TABLE delta.`{root}/c` SHALLOW CLONE {t} LOCATION '{root}/d'": (
            I,
            "DELTA_CLONE_AMBIGUOUS_TARGET",
            {"externalLocation": f"{place.root}/d", "targetIdentifier": f"`delta`.`{place.root}/c`"},
        ),
        "CONVERT TO DELTA orc.`{root}/x`": (
            A,
            "DELTA_CONVERT_NON_PARQUET_TABLE",
            {"sourceName": "orc", "tableId": f"`orc`.`{place.root}/x`"},
        ),
        "CONVERT TO DELTA `{root}/x`": (
            A,
            "DELTA_MISSING_PROVIDER_FOR_CONVERT",
            {"path": f"{place.root}/x"},
        ),
        "CONVERT TO DELTA parquet.`{root}/p` PARTITIONED BY (b INT)": (
            A,
            "DELTA_UNEXPECTED_PARTITION_COLUMN_FROM_FILE_NAME",
            {"expectedCol": "`b`", "parsedCol": "`a`", "path": f"file:{place.root}/p/a=1/x.parquet"},
        ),
        "CONVERT TO DELTA parquet.`{root}/q` PARTITIONED BY (a INT, b INT)": (
            A,
            "DELTA_UNEXPECTED_NUM_PARTITION_COLUMNS_FROM_FILE_NAME",
            {
                "expectedCols": "[`a`, `b`]",
                "expectedColsSize": "2",
                "parsedCols": "[]",
                "parsedColsSize": "0",
                "path": f"file:{place.root}/q/y/x.parquet",
            },
        ),
        "CONVERT TO DELTA parquet.`{root}/r`": (
            A,
            "DELTA_UNEXPECTED_NUM_PARTITION_COLUMNS_FROM_FILE_NAME",
            {
                "expectedCols": "[]",
                "expectedColsSize": "0",
                "parsedCols": "[`a`]",
                "parsedColsSize": "1",
                "path": f"file:{place.root}/r/a=1/x.parquet",
            },
        ),
    }
    found = {}
    for text in wanted:
        with pytest.raises(PySparkException) as refused:
            place.sql(text)
        error = refused.value
        kind = I if isinstance(error, IllegalArgumentException) else A
        found[text] = kind, error.getCondition(), error.getMessageParameters()
    assert found == wanted
    with pytest.raises(PySparkException) as inventory:
        place.sql("VACUUM {t} USING INVENTORY (SELECT 1 AS x)")
    assert inventory.value.getCondition() == "DELTA_INVALID_INVENTORY_SCHEMA"
    assert "-- length: long" in inventory.value.getMessageParameters()["expectedSchema"]
    place.spark.conf.set(ZORDER_CHECK, "false")
    try:
        assert place.sql("OPTIMIZE {t} ZORDER BY (id)")[0].metrics.numFilesAdded == 1
    finally:
        place.spark.conf.unset(ZORDER_CHECK)
    deltaic.DeltaTable(place.path).vacuum(retention=timedelta(0), enforce_retention=False)
    with pytest.raises(IllegalArgumentException, match="files of version 1 are missing"):
        place.sql("RESTORE TABLE {t} TO VERSION AS OF 1")
    deltaic.DeltaTable(place.path).checkpoint()
    (place.root / "t/_delta_log" / f"{0:020}.json").unlink()
    with pytest.raises(PySparkException) as lite:
        place.sql("VACUUM {t} LITE DRY RUN")
    assert lite.value.getCondition() == "DELTA_CANNOT_VACUUM_LITE"


def test_parameters_of_iceberg_compatibility(place: Place) -> None:
    from pyspark.errors import UnsupportedOperationException

    version = "delta.enableIcebergCompatV{}"
    violation = "DELTA_ICEBERG_COMPAT_VIOLATION"
    tree = "root\n |-- id: integer (nullable = true)\n |-- a: array (nullable = true)\n"
    tree += " |    |-- element: integer (containsNull = true)\n"
    for columns, properties, condition, parameters in (
        (
            "",
            {2: "true", "delta.columnMapping.mode": "none"},
            f"{violation}.WRONG_REQUIRED_TABLE_PROPERTY",
            {
                "version": "2",
                "key": "delta.columnMapping.mode",
                "requiredValue": "name",
                "actualValue": "NoMapping",
            },
        ),
        (
            "",
            {3: "true", "delta.enableRowTracking": "false"},
            f"{violation}.WRONG_REQUIRED_TABLE_PROPERTY",
            {
                "version": "3",
                "key": "delta.enableRowTracking",
                "requiredValue": "true",
                "actualValue": "false",
            },
        ),
        (
            "",
            {2: "true", "delta.enableDeletionVectors": "true"},
            f"{violation}.DELETION_VECTORS_SHOULD_BE_DISABLED",
            {"version": "2"},
        ),
        ("", {1: "true", 2: "true"}, f"{violation}.VERSION_MUTUAL_EXCLUSIVE", {"version": "1"}),
        (
            ", a ARRAY<INT>",
            {1: "true"},
            f"{violation}.UNSUPPORTED_DATA_TYPE",
            {"version": "1", "dataType": "array", "schema": tree},
        ),
    ):
        values = {"delta.enableDeletionVectors": "false", **properties}
        texts = (
            f"'{version.format(name) if isinstance(name, int) else name}' = '{value}'"
            for name, value in values.items()
        )
        with pytest.raises(UnsupportedOperationException) as refused:
            place.sql(f"{CREATE.replace('INT)', f'INT{columns})')} TBLPROPERTIES ({', '.join(texts)})")
        assert (refused.value.getCondition(), refused.value.getMessageParameters()) == (condition, parameters)


def test_parameters_of_a_broken_log(place: Place) -> None:
    from pyspark.errors import SparkRuntimeException

    (place.root / "t/_delta_log" / f"{0:020}.json").unlink()
    with pytest.raises(SparkRuntimeException) as truncated_log:
        place.read()
    assert truncated_log.value.getMessageParameters() == {
        "path": f"{place.path}/_delta_log/{0:020}.json",
        "version": "1",
        "logRetentionKey": "delta.logRetentionDuration",
        "logRetention": "30 days",
        "checkpointRetentionKey": "delta.checkpointRetentionDuration",
        "checkpointRetention": "2 days",
    }


def test_parameters_of_a_predicate(place: Place) -> None:
    from pyspark.errors import AnalysisException

    for call, parameters in (
        (statement("OPTIMIZE {t} WHERE nothing = 1"), {"columnName": "nothing", "columnList": "part"}),
        (statement("OPTIMIZE {t} WHERE part ="), {"predicate": "part ="}),
        (lambda at: at.write(mode="overwrite", replaceWhere="part ="), {"predicate": "part ="}),
    ):
        with pytest.raises(AnalysisException) as refused:
            call(place)
        assert refused.value.getMessageParameters() == parameters


def saved(at: Place, query: str, **options: Any) -> None:
    at.spark.sql(query).write.format("delta").options(**options).save(f"{at.root}/n")


def test_parameters_of_columns_with_one_name(place: Place) -> None:
    """Fields of structs, too. delta-spark names the data of a DataFrame, Spark a definition."""
    twice = "DELTA_DUPLICATE_COLUMNS_FOUND."
    of_table = "CREATE TABLE delta.`{root}/n`"
    place.spark.sql("SELECT 1 AS a, 2 AS p").write.partitionBy("p").parquet(f"{place.root}/p")
    for call, condition, parameters in (
        (lambda at: saved(at, "SELECT 1 AS B, 2 AS b"), f"{twice}DATA", {"duplicateCols": "b"}),
        (
            lambda at: saved(at, "SELECT named_struct('a', 1, 'A', 2) AS S"),
            f"{twice}DATA",
            {"duplicateCols": "s.a"},
        ),
        (
            lambda at: at.write("SELECT 1 AS id, 2 AS ID", "overwrite", overwriteSchema="true"),
            f"{twice}METADATA_UPDATE",
            {"duplicateCols": "id"},
        ),
        (
            lambda at: saved(at, "SELECT array(named_struct('a', 1, 'a', 2)) AS s"),
            f"{twice}DATA",
            {"duplicateCols": "s.element.a"},
        ),
        (
            statement(f"{of_table} USING delta AS SELECT named_struct('a', 1, 'A', 2) AS s"),
            "COLUMN_ALREADY_EXISTS",
            {"columnName": "`s`.`a`"},
        ),
        (
            statement(f"{of_table} (id INT, s STRUCT<a: INT, A: INT>) USING delta"),
            "COLUMN_ALREADY_EXISTS",
            {"columnName": "`s`.`a`"},
        ),
        (
            statement("ALTER TABLE {t} ADD COLUMN q ARRAY<STRUCT<a: INT, A: INT>>"),
            f"{twice}ADDING_COLUMNS",
            {"duplicateCols": "q.element.a"},
        ),
        (
            statement("ALTER TABLE {t} REPLACE COLUMNS (id BIGINT, ID BIGINT)"),
            "COLUMN_ALREADY_EXISTS",
            {"columnName": "`id`"},
        ),
        (
            statement("INSERT INTO {t} SELECT named_struct('a', 1, 'A', 2) AS s, 'a', 'b'"),
            f"{twice}READ_SCHEMA",
            {"duplicateCols": "a, A"},
        ),
        (
            statement("CONVERT TO DELTA parquet.`{root}/p` PARTITIONED BY (p INT, P INT)"),
            f"{twice}METADATA_UPDATE",
            {"duplicateCols": "p"},
        ),
        (
            statement(f"{of_table} (id INT, p INT) USING delta PARTITIONED BY (p, P)"),
            "_LEGACY_ERROR_TEMP_3058",
            {"checkType": "in the partitioning", "duplicateColumns": "p"},
        ),
    ):
        assert condition_with_parameters(place, call) == (condition, parameters)


def test_parameters_of_types_that_a_table_cannot_have(place: Place) -> None:
    from pyspark.sql.types import StructType

    columns = "id INT, a INTERVAL YEAR, b STRUCT<x: INTERVAL DAY TO SECOND>, c ARRAY<INTERVAL MONTH>"
    refused = "DELTA_UNSUPPORTED_DATA_TYPES"
    kept = {"config": "spark.databricks.delta.schema.typeCheck.enabled"}
    for text, types in (
        (
            f"CREATE TABLE delta.`{{root}}/n` ({columns}) USING delta",
            "[a: YearMonthIntervalType(0,0), b.x: DayTimeIntervalType(0,3), c[]: YearMonthIntervalType(1,1)]",
        ),
        (
            "CREATE TABLE delta.`{root}/n` (c STRING COLLATE UTF8_LCASE) USING delta",
            "[c: StringType(UTF8_LCASE)]",
        ),
        ("ALTER TABLE {t} ADD COLUMN a INTERVAL DAY", "[a: DayTimeIntervalType(0,0)]"),
        (
            "CREATE TABLE delta.`{root}/n` USING delta AS SELECT 'a' COLLATE UTF8_LCASE AS c",
            "[c: StringType(UTF8_LCASE)]",
        ),
        (
            "CREATE TABLE delta.`{root}/n` USING delta AS SELECT 1 AS id, INTERVAL '1' DAY AS c",
            "[c: DayTimeIntervalType(0,0)]",
        ),
    ):
        found = condition_with_parameters(place, statement(text))
        assert found == (refused, {"dataTypeList": types, **kept})
    rows = place.spark.createDataFrame([], StructType.fromDDL("id INT, c ARRAY<INTERVAL DAY>"))
    found = condition_with_parameters(place, lambda at: rows.write.format("delta").save(f"{at.root}/n"))
    assert found == (
        "UNSUPPORTED_DATA_TYPE_FOR_DATASOURCE",
        {"columnName": "`c`", "columnType": '"ARRAY<INTERVAL DAY>"'},
    )


def test_parameters_of_structs_without_data(place: Place) -> None:
    empty = "DELTA_CANNOT_WRITE_EMPTY_SCHEMA."
    place.sql("CREATE TABLE delta.`{root}/e` (i INT, s STRUCT<>) USING delta")
    for call, kind, column in (
        (lambda at: saved(at, "SELECT 1 AS a, named_struct() AS s"), "STRUCT_NO_FIELDS", "s"),
        (lambda at: saved(at, "SELECT 1 AS a, array(named_struct()) AS s"), "STRUCT_NO_FIELDS", "s.element"),
        (statement("INSERT INTO delta.`{root}/e` SELECT 1, named_struct()"), "STRUCT_NO_FIELDS", "s"),
        (
            lambda at: saved(at, "SELECT 1 AS a, named_struct('x', 1, 'q', named_struct('z', null)) AS s"),
            "STRUCT_ALL_VOID_FIELDS",
            "s.q",
        ),
    ):
        found = condition_with_parameters(place, call)
        assert found == (f"{empty}{kind}", {"columnPath": column})


def test_parameters_of_names_that_lead_into_a_type(place: Place) -> None:
    place.sql(
        "CREATE TABLE delta.`{root}/n` (i INT, l ARRAY<STRUCT<x: INT>>, m MAP<STRING, INT>) USING delta"
    )
    table = "delta.`{root}/n`"
    for column, condition, parameters in (
        (
            "i.x",
            "DELTA_COLUMN_PATH_NOT_NESTED",
            {"columnPath": "x", "other": "IntegerType", "column": "i"},
        ),
        ("l.x", "DELTA_INCORRECT_ARRAY_ACCESS_BY_NAME", {"rightName": "l.element", "wrongName": "l"}),
        ("m.x", "DELTA_FOUND_MAP_TYPE_COLUMN", {"key": "m.key", "value": "m.value"}),
    ):
        for text in (
            f"OPTIMIZE {table} ZORDER BY ({column})",
            f"ALTER TABLE {table} CLUSTER BY ({column})",
            f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.dataSkippingStatsColumns' = '{column}')",
        ):
            name, found = condition_with_parameters(place, statement(text))
            assert found.pop("schema").startswith("root\n |-- i: integer (nullable = true)\n"), text
            assert (name, found) == (condition, parameters), text


def test_clone_of_files_without_numbers_of_rows(place: Place) -> None:
    place.spark.range(2).write.parquet(f"{place.root}/p")
    place.sql("CONVERT TO DELTA parquet.`{root}/p` NO STATISTICS")
    clone = "CREATE TABLE delta.`{root}/n` SHALLOW CLONE delta.`{root}/p` TBLPROPERTIES"
    found = condition_with_parameters(place, statement(f"{clone} (delta.enableRowTracking = true)"))
    assert found == ("DELTA_CLONE_WITH_ROW_TRACKING_WITHOUT_STATS", {})


def test_parameters_of_folders(place: Place) -> None:
    """CONVERT names a file whose folders do not fit."""
    place.spark.sql("SELECT 1 AS a, 2 AS p").write.partitionBy("p").parquet(f"{place.root}/p")
    (file,) = (place.root / "p/p=2").glob("*.parquet")
    convert = "CONVERT TO DELTA parquet.`{root}/p` PARTITIONED BY"
    for columns, condition in (
        ("(q INT)", "DELTA_UNEXPECTED_PARTITION_COLUMN_FROM_FILE_NAME"),
        ("(p INT, q INT)", "DELTA_UNEXPECTED_NUM_PARTITION_COLUMNS_FROM_FILE_NAME"),
    ):
        name, parameters = condition_with_parameters(place, statement(f"{convert} {columns}"))
        assert (name, parameters["path"]) == (condition, f"file:{file}")
    place.spark.sql("SELECT 1 AS a, 2 AS z").write.mode("append").partitionBy("z").parquet(f"{place.root}/p")
    (file,) = (place.root / "p/z=2").glob("*.parquet")
    assert condition_with_parameters(place, statement(f"{convert} (p INT)")) == (
        "DELTA_UNEXPECTED_PARTITION_COLUMN_FROM_FILE_NAME",
        {"expectedCol": "`p`", "parsedCol": "`z`", "path": f"file:{file}"},
    )


def test_columns_of_a_change_feed_by_a_default(place: Place) -> None:
    """A feed that the session's default turns on, not a property of the table."""
    setting = "spark.databricks.delta.properties.defaults.enableChangeDataFeed"
    columns, query = (
        "(a INT, _change_type STRING, _commit_version INT)",
        "SELECT 1 AS a, 2 AS _commit_version",
    )
    place.spark.conf.set(setting, "true")
    try:
        for call, names in (
            (
                statement(f"CREATE TABLE delta.`{{root}}/n` {columns} USING delta"),
                "_change_type,_commit_version",
            ),
            (statement(f"CREATE TABLE delta.`{{root}}/n` USING delta AS {query}"), "_commit_version"),
            (lambda at: saved(at, query), "_commit_version"),
        ):
            assert condition_with_parameters(place, call) == (
                "RESERVED_CDC_COLUMNS_ON_WRITE",
                {"columnList": f"[{names}]", "config": "delta.enableChangeDataFeed"},
            )
        assert condition_with_parameters(
            place, lambda at: saved(at, query, **{"delta.enableChangeDataFeed": "true"})
        ) == ("DELTA_TABLE_ALREADY_CONTAINS_CDC_COLUMNS", {"columnList": "[_commit_version]"})
    finally:
        place.spark.conf.unset(setting)


def condition_with_parameters(at: Place, call: Callable[[Place], Any]) -> tuple[str | None, dict[str, str]]:
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException) as caught:
        call(at)
    return caught.value.getCondition(), dict(caught.value.getMessageParameters() or {})


def test_conflicts_have_delta_sparks_names(place: Place) -> None:
    """A transaction that read all rows, while another one adds some."""
    from pyspark.errors import PySparkException

    place.properties(isolationLevel="Serializable")
    table = DeltaTable.forPath(place.spark, place.path)
    opened = deltaic.DeltaTable(place.path, spark=place.spark)
    table._table = lambda: opened  # type: ignore[method-assign]
    deltaic.write(
        place.path, pa.table({"id": pa.array([1], pa.int64()), "part": ["a"], "text": ["x"]}), mode="append"
    )
    with pytest.raises(ConcurrentAppendException) as caught:
        table.delete("id = 1")
    error: Any = caught.value
    assert isinstance(error, PySparkException)
    assert isinstance(error, errors.CommitError)
    assert (error.getCondition(), error.getSqlState(), error.winner) == (
        "DELTA_CONCURRENT_APPEND",
        "2D521",
        3,
    )
    assert error.getMessageParameters() == {
        "operation": "WRITE",
        "tableName": f"delta.`file:{place.path}`",
        "version": "3",
        "partitionValues": "[part=a]",
        "docLink": "https://docs.delta.io/latest/concurrency-control.html",
    }


def test_conflicts_over_one_file(place: Place) -> None:
    """A transaction that read and removes a file which another one removes."""
    rows = pa.table({"id": pa.array([1], pa.int64())})
    for partition_by, parameters in (((), {}), (("part",), {"partitionValues": "[part=null]"})):
        path = str(place.root / f"by{len(partition_by)}")
        columns = rows.append_column("part", pa.array([None], pa.string()))
        properties = {"delta.columnMapping.mode": "name", "delta.enableDeletionVectors": "false"}
        deltaic.write(path, columns, properties=properties, partition_by=partition_by)
        opened = deltaic.DeltaTable(path, spark=place.spark)
        deltaic.DeltaTable(path).delete()
        table = DeltaTable.forPath(place.spark, path)
        table._table = lambda opened=opened: opened  # type: ignore[method-assign]
        with pytest.raises(ConcurrentDeleteReadException) as caught:
            table.delete("id = 1")
        error: Any = caught.value
        assert error.getCondition() == "DELTA_CONCURRENT_DELETE_READ"
        assert error.getMessageParameters() == {
            "operation": "DELETE",
            "tableName": f"delta.`file:{path}`",
            "version": "1",
            "docLink": "https://docs.delta.io/latest/concurrency-control.html",
            **parameters,
        }


def test_arguments_of_a_wrong_type_stay_those_of_python(place: Place) -> None:
    for call in (
        lambda: merge_builder(place).restoreToVersion("1"),  # type: ignore[arg-type]
        lambda: merge_builder(place).delete(5),  # type: ignore[arg-type]
    ):
        with pytest.raises(TypeError):
            call()


def test_an_error_travels_to_a_process_without_pyspark(place: Place) -> None:
    with pytest.raises(errors.TableNotFoundError) as caught:
        place.read(f"{place.root}/none")
    code = (
        "import pickle, sys; e = pickle.load(sys.stdin.buffer); assert 'pyspark' not in sys.modules;"
        " print(type(e).__mro__[0], e.where)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input=pickle.dumps(caught.value), capture_output=True, check=True
    )
    assert done.stdout.decode().startswith("<class 'deltaic.errors.TableNotFoundError'> ")
    assert b"none" in done.stdout


def test_without_spark_an_error_is_ours_alone(place: Place) -> None:
    with pytest.raises(errors.TableNotFoundError) as caught:
        deltaic.DeltaTable(place.root / "none")
    assert not hasattr(caught.value, "getCondition")
    assert "SQLSTATE" not in str(caught.value)


def test_classes_of_errors_without_a_condition(place: Place) -> None:
    """delta-spark raises Java's exceptions for these, which PySpark gives classes of its own."""
    from pyspark.errors import IllegalArgumentException, UnsupportedOperationException

    for kind, call in (
        (IllegalArgumentException, lambda at: at.spark.read.format("delta").load()),
        (IllegalArgumentException, lambda at: at.writer().save()),
        (IllegalArgumentException, statement(f"{CREATE} TBLPROPERTIES (delta.appendOnly = 'x')")),
        (IllegalArgumentException, statement(f"{CREATE} TBLPROPERTIES (delta.checkpointInterval = 'x')")),
        (
            UnsupportedOperationException,
            statement("ALTER TABLE {t} SET TBLPROPERTIES (delta.columnMapping.mode = 'x')"),
        ),
        (IllegalArgumentException, lambda at: merge_builder(at).upgradeTableProtocol(9, 9)),
    ):
        with pytest.raises(kind) as caught:
            call(place)
        assert caught.value.getCondition() is None
        assert isinstance(caught.value, errors.InvalidArgumentError)


def test_no_message_shows_an_alias_of_ours(place: Place) -> None:
    from pyspark.errors import AnalysisException

    builder = merge_builder(place).merge(place.spark.range(1).alias("s"), "id = id").whenMatchedDelete()
    with pytest.raises(AnalysisException) as caught:
        builder.execute()
    assert caught.value.getCondition() == "AMBIGUOUS_REFERENCE"
    assert caught.value.getMessageParameters()["referenceNames"] == "[`id`, `s`.`id`]"
    assert "__deltaic" not in str(caught.value)


def test_types_in_parameters(place: Place) -> None:
    from pyspark.errors import AnalysisException

    place.sql("CREATE TABLE delta.`{root}/n` (id INT, st STRUCT<a: INT, b: ARRAY<BIGINT>>) USING delta")
    merge = (
        "MERGE INTO delta.`{root}/n` t USING (SELECT 1 AS id, named_struct('a', 1) AS st) s ON t.id = s.id"
    )
    wanted = {
        "UPDATE delta.`{root}/n` SET st = named_struct('c', 1.5BD)": (
            "DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION",
            {"fromCatalog": "struct<c:decimal(2,1)>", "toCatalog": "struct<a:int,b:array<bigint>>"},
        ),
        f"{merge} WHEN MATCHED THEN UPDATE SET st = s.st": (
            "DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION",
            {"fromCatalog": "struct<a:int>", "toCatalog": "struct<a:int,b:array<bigint>>"},
        ),
        "CREATE TABLE delta.`{root}/m` (id INT, p MAP<STRING, BIGINT>) USING delta PARTITIONED BY (p)": (
            "INVALID_PARTITION_COLUMN_DATA_TYPE",
            {"type": '"MAP<STRING, BIGINT>"'},
        ),
        "CREATE TABLE delta.`{root}/m` (id INT, p ARRAY<INT>) USING delta CLUSTER BY (p)": (
            "DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED",
            {"columnsWithDataTypes": "p : ARRAY<INT>"},
        ),
        "CREATE TABLE delta.`{root}/m` (id STRING GENERATED ALWAYS AS IDENTITY) USING delta": (
            "IDENTITY_COLUMNS_UNSUPPORTED_DATA_TYPE",
            {"dataType": "StringType"},
        ),
        "CREATE TABLE delta.`{root}/m` USING delta AS SELECT 1 AS id, map('k', NULL) AS x": (
            "DELTA_COMPLEX_TYPE_COLUMN_CONTAINS_NULL_TYPE",
            {"columName": "x", "dataType": "MapType"},
        ),
    }
    found = {}
    for text in wanted:
        with pytest.raises(AnalysisException) as refused:
            place.sql(text)
        found[text] = refused.value.getCondition(), refused.value.getMessageParameters()
    assert found == wanted
    rows = place.spark.sql("SELECT 1 AS id, array(1) AS a")
    with pytest.raises(AnalysisException) as unfit:
        rows.write.format("delta").partitionBy("a").save(str(place.root / "m"))
    assert unfit.value.getCondition() == "DELTA_INVALID_PARTITION_COLUMN_TYPE"
    assert unfit.value.getMessageParameters() == {"name": "a", "dataType": "ArrayType(IntegerType,true)"}
