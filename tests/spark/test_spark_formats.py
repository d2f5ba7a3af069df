"""The formats delta and deltaic of an enabled session, through Spark's own reader and writer; other formats
are not affected."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow.parquet as pq
import pytest

import deltaic
import deltaic.spark
from deltaic import DeltaTable
from deltaic.commands import auto_compaction
from deltaic.engine.spark.engine import SETTING
from deltaic.errors import (
    ConstraintViolationError,
    InvalidArgumentError,
    SchemaMismatchError,
    TableAlreadyExistsError,
    TableNotFoundError,
    UnsupportedFeatureError,
    VersionNotFoundError,
)


@pytest.fixture
def enabled(spark: Any) -> Iterator[Any]:
    deltaic.spark.enable(spark)
    deltaic.spark.enable(spark)  # twice is once
    yield spark
    delattr(spark, SETTING)


def numbers(spark: Any, count: int = 12) -> Any:
    return spark.range(0, count, 1, 2).selectExpr("id", "CAST(id % 3 AS INT) AS p", "concat('n', id) AS name")


def test_modes(tmp_path: Path, enabled: Any) -> None:
    path = str(tmp_path / "t")
    frame = numbers(enabled)
    frame.write.format("delta").save(path)
    with pytest.raises(TableAlreadyExistsError):
        frame.write.format("delta").save(path)
    frame.write.format("deltaic").mode("ignore").save(path)
    frame.write.save(path, format="delta", mode="append")
    assert enabled.read.format("delta").load(path).count() == 24
    frame.limit(3).write.format("delta").mode("overwrite").save(path)
    assert enabled.read.load(path, format="delta").count() == 3
    assert DeltaTable(path).version == 2
    with pytest.raises(InvalidArgumentError, match="unknown save mode"):
        frame.write.format("delta").save(path, mode="often")


def test_every_writer_computes_columns_and_keeps_rules(tmp_path: Path, enabled: Any) -> None:
    path = str(tmp_path / "t")
    ddl = "key bigint generated always as identity, id bigint, twice bigint generated always as (id * 2)"
    DeltaTable.create(path, ddl, properties={"delta.constraints.few": "id < 100"})
    writers = (
        lambda frame: frame.write.format("delta").mode("append").save(path),
        lambda frame: frame.writeTo(f"delta.`{path}`").append(),
        lambda frame: (
            frame.write.format("delta").mode("overwrite").option("replaceWhere", "id >= 0").save(path)
        ),
    )
    for number, write in enumerate(writers):
        before = DeltaTable(path).version
        for wrong, message in (
            (enabled.range(98, 102), r"CHECK constraint few; found (2 rows, one with )?id = 10[01]"),
            (enabled.range(2).selectExpr("id", "id + 1 AS twice"), "generated column twice"),
        ):
            with pytest.raises(ConstraintViolationError, match=message):
                write(wrong)
        assert DeltaTable(path).version == before
        write(enabled.range(number, 4))
        found = DeltaTable(path).scan().to_arrow().to_pylist()
        assert all(row["twice"] == 2 * row["id"] for row in found)
        assert len({row["key"] for row in found}) == len(found)


def test_a_save_that_evolves_the_schema_casts_up_bytes_and_shorts(enabled: Any, tmp_path: Path) -> None:
    """As in delta-spark, without type widening: Parquet stores these types alike."""
    path = str(tmp_path / "t")
    enabled.sql("SELECT 1Y AS b, 2S AS s, named_struct('e', array(3Y)) AS n, 4 AS i").write.format(
        "delta"
    ).save(path)
    wider = enabled.sql("SELECT 300S AS b, 70000 AS s, named_struct('e', array(80000)) AS n, 5S AS i")
    with pytest.raises(SchemaMismatchError):
        wider.write.format("delta").mode("append").save(path)
    wider.write.format("delta").mode("append").option("mergeSchema", "true").save(path)
    table = DeltaTable(path)
    assert table.schema.to_ddl() == "b smallint, s int, n struct<e: array<int>>, i int"
    assert not any("delta.typeChanges" in item.metadata for item in table.schema)
    rows = [(1, 2, {"e": [3]}, 4), (300, 70000, {"e": [80000]}, 5)]
    assert sorted(tuple(row.values()) for row in table.scan().to_pylist()) == rows
    read = enabled.read.format("delta").load(path).orderBy("b").collect()
    assert [(row.b, row.s, row.n.asDict(), row.i) for row in read] == rows
    too_wide = enabled.sql("SELECT 1 AS b, 70000L AS s")
    with pytest.raises(SchemaMismatchError):
        too_wide.write.format("delta").mode("append").option("mergeSchema", "true").save(path)
    with pytest.raises(InvalidArgumentError, match="where type widening is on"):
        table.alter.change_column("b", type="int")


def test_many_rows_are_not_computed_again_to_be_counted(
    tmp_path: Path, enabled: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    DeltaTable.create(tmp_path / "t", "id bigint", properties={"delta.constraints.few": "id < 100"})
    monkeypatch.setattr("deltaic.engine.spark.engine.CHEAP_BYTES", 10)
    with pytest.raises(ConstraintViolationError, match=r"CHECK constraint few; found id = 10[01]"):
        enabled.range(98, 102).write.format("delta").mode("append").save(str(tmp_path / "t"))


def test_partitions_and_what_replaces_them(tmp_path: Path, enabled: Any) -> None:
    path = str(tmp_path / "t")
    numbers(enabled).write.format("delta").partitionBy("p").save(path)
    assert DeltaTable(path).metadata.partition_columns == ["p"]
    new = enabled.createDataFrame([(100, 1, "new")], "id long, p int, name string")
    new.write.format("delta").mode("overwrite").option("partitionOverwriteMode", "dynamic").save(path)
    assert enabled.read.format("delta").load(path).where("p = 1").collect()[0]["id"] == 100
    new.selectExpr("id + 1 AS id", "2 AS p", "name").write.format("delta").mode("overwrite").option(
        "replaceWhere", "p = 2"
    ).save(path)
    assert sorted(row["id"] for row in enabled.read.format("delta").load(path).collect()) == [
        0,
        3,
        6,
        9,
        100,
        101,
    ]
    nothing = new.selectExpr("CAST(NULL AS BIGINT) AS id", "p", "name")
    for rows, where in ((new, "p = 0"), (nothing, "id < 100"), (nothing.where("p > 0"), "id < 100")):
        with pytest.raises(ConstraintViolationError):
            rows.write.format("delta").mode("overwrite").option("replaceWhere", where).save(path)


def test_a_frame_has_the_partition_columns_unless_the_call_names_the_table(
    tmp_path: Path, enabled: Any
) -> None:
    path = str(tmp_path / "t")
    numbers(enabled).write.format("delta").partitionBy("p").save(path)
    ids = enabled.range(100, 102)
    for mode in ("append", "overwrite"):
        with pytest.raises(
            SchemaMismatchError, match=r"DELTA_PARTITION_COLUMN_NOT_FOUND.*found id; expected p"
        ):
            ids.write.format("delta").mode(mode).save(path)
    ids.writeTo(f"delta.`{path}`").append()
    enabled.sql(f"INSERT INTO delta.`{path}` (id) VALUES (102)")
    assert enabled.read.format("delta").load(path).where("p IS NULL AND name IS NULL").count() == 3


def test_writes_that_change_nothing_commit_nothing(tmp_path: Path, enabled: Any) -> None:
    path = str(tmp_path / "t")
    numbers(enabled).write.format("delta").partitionBy("p").save(path)
    none = numbers(enabled).where("id < 0")
    none.write.format("delta").mode("append").save(path)
    none.write.format("delta").mode("overwrite").option("partitionOverwriteMode", "dynamic").save(path)
    enabled.sql(f"INSERT INTO delta.`{path}` SELECT * FROM delta.`{path}` WHERE id < 0")
    assert DeltaTable(path).version == 0
    none.write.format("delta").mode("append").option("txnAppId", "app").option("txnVersion", 1).save(path)
    none.selectExpr("*", "1 AS more").write.format("delta").mode("append").option("mergeSchema", "true").save(
        path
    )
    assert DeltaTable(path).version == 2


def test_overwrite_schema_replaces_the_partitions(tmp_path: Path, enabled: Any) -> None:
    path = str(tmp_path / "t")
    numbers(enabled).write.format("delta").partitionBy("p").save(path)
    enabled.range(2).write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(path)
    assert list(DeltaTable(path).metadata.partition_columns) == []
    numbers(enabled).write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(path)
    numbers(enabled).write.format("delta").mode("append").options(
        overwriteSchema="true", replaceWhere="p = 1"
    ).save(path)
    assert DeltaTable(path).scan().count() == 24


@pytest.mark.parametrize("is_setting", [False, True])
def test_overwrite_schema_beside_dynamic_overwrites(tmp_path: Path, enabled: Any, is_setting: bool) -> None:
    """The partition columns of the new definition decide: with any, the two options exclude each other, also
    for a new table; without, all rows are replaced (delta-spark 4.4.0)."""
    mode = "spark.sql.sources.partitionOverwriteMode"
    if is_setting:
        enabled.conf.set(mode, "dynamic")
    try:
        for number, partitions in enumerate((None, [], ["p"])):
            path = str(tmp_path / str(number))
            if partitions is not None:
                numbers(enabled).write.format("delta").partitionBy(*partitions).save(path)
            writer = numbers(enabled).where("p = 1").write.format("delta").mode("overwrite")
            writer = writer.option("overwriteSchema", "true")
            writer = writer if is_setting else writer.option("partitionOverwriteMode", "dynamic")
            with pytest.raises(
                InvalidArgumentError, match="DELTA_OVERWRITE_SCHEMA_WITH_DYNAMIC_PARTITION_OVERWRITE"
            ):
                writer.partitionBy("p").save(path)
            writer.partitionBy().save(path)
            table = DeltaTable(path)
            assert (table.metadata.partition_columns, table.scan().count()) == ((), 4)
    finally:
        enabled.conf.unset(mode)


def test_replace_where_beside_dynamic_overwrites(tmp_path: Path, enabled: Any) -> None:
    """A table without partition columns has no partitions to overwrite, so replaceWhere alone counts; for a
    partitioned table the two exclude each other (delta-spark 4.4.0)."""
    both = {"replaceWhere": "p = 1", "partitionOverwriteMode": "dynamic"}
    flat, partitioned = str(tmp_path / "flat"), str(tmp_path / "partitioned")
    numbers(enabled).write.format("delta").save(flat)
    numbers(enabled).write.format("delta").partitionBy("p").save(partitioned)
    some = numbers(enabled).where("p = 1").limit(1)
    some.write.format("delta").mode("overwrite").options(**both).save(flat)
    others = numbers(enabled).where("p <> 1").count()
    assert enabled.read.format("delta").load(flat).count() == others + 1
    with pytest.raises(InvalidArgumentError, match="DELTA_REPLACE_WHERE_WITH_DYNAMIC_PARTITION_OVERWRITE"):
        some.write.format("delta").mode("overwrite").options(**both).save(partitioned)
    assert DeltaTable(partitioned).version == 0


def test_overwrite_schema_beside_other_options(tmp_path: Path, enabled: Any) -> None:
    """A replaceWhere keeps the definition, since it keeps rows. Without it, overwriteSchema goes before
    mergeSchema: `canOverwriteSchema` in WriteIntoDelta.scala."""
    path = str(tmp_path / "t")
    numbers(enabled).write.format("delta").partitionBy("p").save(path)
    writer = numbers(enabled).where("p = 1").write.format("delta").mode("overwrite")
    writer.options(overwriteSchema="true", replaceWhere="p = 1").save(path)
    assert (list(DeltaTable(path).metadata.partition_columns), DeltaTable(path).scan().count()) == (["p"], 12)
    wider = numbers(enabled).selectExpr("*", "1 AS x").where("p = 1")
    with pytest.raises(SchemaMismatchError, match="x"):
        wider.write.format("delta").mode("overwrite").options(
            overwriteSchema="true", replaceWhere="p = 1"
        ).save(path)
    both = {"overwriteSchema": "true", "mergeSchema": "true"}
    wider.write.format("delta").mode("overwrite").options(**both, replaceWhere="p = 1").save(path)
    assert (DeltaTable(path).schema.names, DeltaTable(path).scan().count()) == (["id", "p", "name", "x"], 12)
    automerge = "spark.databricks.delta.schema.autoMerge.enabled"
    enabled.conf.set(automerge, "true")
    try:
        writer = wider.selectExpr("*", "2 AS y").write.format("delta").mode("overwrite")
        writer.options(overwriteSchema="true", replaceWhere="p = 1").save(path)
    finally:
        enabled.conf.unset(automerge)
    assert DeltaTable(path).schema.names == ["id", "p", "name", "x", "y"]
    enabled.range(2).write.format("delta").mode("overwrite").options(**both).save(path)
    assert DeltaTable(path).schema.names == ["id"]


def test_the_path_of_a_partition(tmp_path: Path, enabled: Any) -> None:
    path = str(tmp_path / "t")
    frame = numbers(enabled).selectExpr("id", "p", "nullif(concat('a b', p), 'a b0') AS q")
    frame.write.format("delta").partitionBy("p", "q").save(path)
    load = enabled.read.format("delta").load
    assert sorted(row.id for row in load(f"{path}/p=1").collect()) == [1, 4, 7, 10]
    at_first = enabled.read.format("delta").option("versionAsOf", 0).load(f"{path}/p=1/q=a%20b1/")
    assert (at_first.columns, at_first.count()) == (["id", "p", "q"], 4)
    assert enabled.sql(f"SELECT max(id) FROM delta.`{path}/p=0/q=__HIVE_DEFAULT_PARTITION__`").first()[0] == 9
    with pytest.raises(InvalidArgumentError, match="DELTA_NON_PARTITION_COLUMN_SPECIFIED"):
        load(f"{path}/id=1")
    with pytest.raises(TableNotFoundError, match="DELTA_PATH_DOES_NOT_EXIST"):
        load(f"{path}/p=7")


def test_schemas(tmp_path: Path, enabled: Any) -> None:
    path = str(tmp_path / "t")
    numbers(enabled).write.format("delta").save(path)
    wider = numbers(enabled).selectExpr("*", "1.5D AS extra")
    with pytest.raises(SchemaMismatchError, match="extra"):
        wider.write.format("delta").mode("append").save(path)
    wider.write.format("delta").mode("append").option("mergeSchema", True).save(path)
    assert enabled.read.format("delta").load(path).columns == ["id", "p", "name", "extra"]
    enabled.range(2).write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(path)
    assert enabled.read.format("delta").load(path).columns == ["id"]


@pytest.mark.parametrize(
    ("column", "value", "fits"),
    [
        ("INT", "5L", False),
        ("BIGINT", "5", False),
        ("FLOAT", "1.5D", False),
        ("DECIMAL(5, 2)", "CAST(1.25 AS DECIMAL(10, 2))", False),
        ("DATE", "TIMESTAMP'2026-01-01 10:00:00'", False),
        ("TIMESTAMP", "TIMESTAMP_NTZ'2026-01-01 10:00:00'", False),
        ("STRUCT<a: ARRAY<INT>>", "named_struct('a', array(5L))", False),
        ("MAP<STRING, INT>", "map('a', 5L)", False),
        ("INT", "5S", True),
        ("INT", "NULL", True),
        ("STRUCT<a: INT, b: INT>", "named_struct('B', 1)", True),
        ("VARCHAR(3)", "'abc'", True),
    ],
)
def test_save_takes_the_types_of_the_columns_and_insert_casts(
    tmp_path: Path, enabled: Any, column: str, value: str, fits: bool
) -> None:
    path = str(tmp_path / "t")
    enabled.sql(f"CREATE TABLE delta.`{path}` (v {column}) USING delta")
    rows = enabled.sql(f"SELECT {value} AS v")
    for mode in ("append", "overwrite"):
        if fits:
            rows.write.format("delta").mode(mode).save(path)
        else:
            with pytest.raises(SchemaMismatchError, match="a type that the column cannot take"):
                rows.write.format("delta").mode(mode).save(path)
    assert DeltaTable(path).version == (2 if fits else 0)
    rows.writeTo(f"delta.`{path}`").append()


def test_a_wider_type_widens_the_column_if_both_say_so(tmp_path: Path, enabled: Any) -> None:
    path = str(tmp_path / "t")
    properties = "TBLPROPERTIES ('delta.enableTypeWidening' = 'true')"
    enabled.sql(f"CREATE TABLE delta.`{path}` (v INT) USING delta {properties}")
    writer = enabled.sql("SELECT 5000000000 AS v").write.format("delta").mode("append")
    with pytest.raises(SchemaMismatchError, match="a type that the column cannot take"):
        writer.save(path)
    writer.option("mergeSchema", "true").save(path)
    assert DeltaTable(path).scan().to_pylist() == [{"v": 5_000_000_000}]


def test_time_travel(tmp_path: Path, enabled: Any) -> None:
    path = str(tmp_path / "t")
    for _ in range(3):
        numbers(enabled, 5).write.format("delta").mode("append").save(path)
    read = enabled.read.format("delta")
    assert read.option("versionAsOf", 0).load(path).count() == 5
    assert enabled.read.format("delta").load(f"{path}@v1").count() == 10
    moment = DeltaTable(path).history()[1]["timestamp"]
    assert enabled.read.format("delta").option("timestampAsOf", moment.isoformat()).load(path).count() == 10
    with pytest.raises(VersionNotFoundError):
        enabled.read.format("delta").option("versionAsOf", 7).load(path)
    with pytest.raises(TableNotFoundError):
        enabled.read.format("delta").load(str(tmp_path / "none"))


def test_moments_are_said_in_the_zone_of_the_session(tmp_path: Path, enabled: Any) -> None:
    path = str(tmp_path / "t")
    for _ in range(2):
        numbers(enabled, 5).write.format("delta").mode("append").save(path)
    before = enabled.conf.get("spark.sql.session.timeZone")
    moment = DeltaTable(path).history()[1]["timestamp"]
    try:
        for zone in ("America/New_York", "Asia/Kolkata"):
            enabled.conf.set("spark.sql.session.timeZone", zone)
            local = moment.astimezone(ZoneInfo(zone))
            read = enabled.read.format("delta")
            assert (
                read.option("timestampAsOf", local.strftime("%Y-%m-%d %H:%M:%S.%f")).load(path).count() == 5
            )
            digits = local.strftime("%Y%m%d%H%M%S") + f"{local.microsecond // 1000:03}"
            assert enabled.read.format("delta").load(f"{path}@{digits}").count() == 5
    finally:
        enabled.conf.set("spark.sql.session.timeZone", before)


def test_tables_by_path_have_a_name_for_table(tmp_path: Path, enabled: Any) -> None:
    path = str(tmp_path / "t")
    for _ in range(2):
        numbers(enabled, 5).write.format("delta").mode("append").save(path)
    assert enabled.table(f"delta.`{path}`").count() == 10
    assert enabled.read.option("versionAsOf", 0).table(f"delta.`{path}`").count() == 5
    assert enabled.table(f"delta.`{path}@V0`").count() == 5
    assert deltaic.spark.read(enabled, f"{path}@v0").count() == 5
    enabled.range(3).createOrReplaceTempView("three")
    assert enabled.table("three").count() == enabled.read.table("three").count() == 3


def test_commit_options(tmp_path: Path, enabled: Any) -> None:
    path = str(tmp_path / "t")
    options = {
        "userMetadata": "why",
        "txnAppId": "job",
        "txnVersion": 1,
        "maxRecordsPerFile": 4,
        "optimizeWrite": "true",
    }
    for _ in range(2):
        numbers(enabled).write.format("delta").options(**options).mode("append").save(path)
    table = DeltaTable(path)
    assert table.version == 0
    assert table.history()[0]["userMetadata"] == "why"
    assert table.transaction_version("job") == 1
    assert max(table.files().to_arrow()["num_records"].to_pylist()) == 4


def test_optimized_writes_and_the_version_of_parquet(tmp_path: Path, enabled: Any) -> None:
    rows = enabled.range(0, 20000, 1, 8).selectExpr("id", "CAST(id % 3 AS STRING) p")
    found = {}
    for name, properties, options in (
        ("plain", {}, {}),
        (
            "optimized",
            {"delta.autoOptimize.optimizeWrite": "true", "delta.parquet.format.version": "2.12.0"},
            {},
        ),
        ("not", {"delta.autoOptimize.optimizeWrite": "true"}, {"optimizeWrite": "false"}),
    ):
        table = DeltaTable.create(
            tmp_path / name, "id bigint, p string", partition_by="p", properties=properties
        )
        rows.write.format("delta").options(**options).mode("append").save(table.location)
        table.refresh()
        assert table.scan().count() == 20000
        found[name] = table.files().count()
    assert found == {"plain": 24, "optimized": 3, "not": 24}
    file = pq.ParquetFile(next((tmp_path / "optimized").rglob("*.parquet")))
    assert "DELTA_BINARY_PACKED" in file.metadata.row_group(0).column(0).encodings


def test_unknown_options_have_no_effect_but_a_warning(
    tmp_path: Path, enabled: Any, caplog: pytest.LogCaptureFixture
) -> None:
    path = str(tmp_path / "t")
    with caplog.at_level("WARNING", "deltaic.spark"):
        numbers(enabled).write.format("delta").options(header=True, nonsense="x").save(path)
        assert (
            enabled.read.format("delta")
            .options(inferSchema=True, maxFilesPerTrigger=1, readChangeFeed=False)
            .load(path)
            .count()
            == 12
        )
    warned = {
        record.args[0]
        for record in caplog.records
        if "has no effect" in record.msg and isinstance(record.args, tuple)
    }
    assert warned == {"header", "nonsense", "inferschema", "maxfilespertrigger"}
    for wrong in (
        {"mergeSchema": "maybe"},
        {"txnAppId": "a", "txnVersion": "x"},
        {"maxRecordsPerFile": "many"},
    ):
        with pytest.raises(InvalidArgumentError, match=list(wrong)[-1]):
            numbers(enabled).write.format("delta").mode("append").options(**wrong).save(path)
    with pytest.raises(InvalidArgumentError, match="versionAsOf"):
        enabled.read.format("delta").option("versionAsOf", "one").load(path)
    assert DeltaTable(path).version == 0


def test_settings_of_the_session_say_what_options_do_not(tmp_path: Path, enabled: Any) -> None:
    path, flat = str(tmp_path / "t"), str(tmp_path / "flat")
    numbers(enabled).write.format("delta").partitionBy("p").save(path)
    new = enabled.createDataFrame([(100, 1, "new")], "id long, p int, name string")
    settings = {
        "spark.sql.sources.partitionOverwriteMode": "DYNAMIC",
        "spark.databricks.delta.schema.autoMerge.enabled": "true",
        "spark.databricks.delta.commitInfo.userMetadata": "of the session",
        "spark.databricks.delta.properties.defaults.appendOnly": "false",
        "spark.sql.files.maxRecordsPerFile": "2",
    }
    try:
        for name, value in settings.items():
            enabled.conf.set(name, value)
        new.write.format("delta").mode("overwrite").save(path)
        assert enabled.read.format("delta").load(path).count() == 9
        enabled.sql(f"INSERT OVERWRITE delta.`{path}` SELECT 200L, 2, 'x'")
        assert sorted(row["id"] for row in enabled.read.format("delta").load(path).collect()) == [
            0,
            3,
            6,
            9,
            100,
            200,
        ]
        DeltaTable(path, spark=enabled).delete("id = 200")
        assert [row["userMetadata"] for row in DeltaTable(path).history(3)] == ["of the session"] * 3
        with pytest.raises(InvalidArgumentError, match="exclude each other"):
            new.write.format("delta").mode("overwrite").options(
                replaceWhere="p = 1", partitionOverwriteMode="dynamic"
            ).save(path)
        new.write.format("delta").mode("overwrite").option("replaceWhere", "p < 2").save(path)
        assert [row["id"] for row in enabled.read.format("delta").load(path).collect()] == [100]
        for count in (5, 3):  # a table without partitions is one
            enabled.range(count).write.format("delta").mode("overwrite").save(flat)
        assert enabled.read.format("delta").load(flat).count() == 3
        assert max(DeltaTable(flat).files().to_arrow()["num_records"].to_pylist()) == 2
        assert DeltaTable(flat).metadata.configuration["delta.appendOnly"] == "false"
        enabled.range(1).selectExpr("id", "'x' AS more").write.format("delta").mode("append").save(flat)
        enabled.sql(
            f"MERGE INTO delta.`{flat}` t USING (SELECT 9L AS id, 1 AS other) s ON t.id = s.id WHEN NOT"
            " MATCHED THEN INSERT *"
        )
        assert DeltaTable(flat).schema.names == ["id", "more", "other"]
    finally:
        for name in settings:
            enabled.conf.unset(name)


def test_tables_by_path_under_the_calls_that_name_tables(tmp_path: Path, enabled: Any) -> None:
    from pyspark.sql import functions as F

    path, frame = str(tmp_path / "t"), numbers(enabled, 6)
    name = f"delta.`{path}`"
    with pytest.raises(TableNotFoundError):
        frame.writeTo(name).append()
    frame.writeTo(name).using("delta").partitionedBy(F.col("p")).tableProperty(
        "delta.appendOnly", "false"
    ).create()
    with pytest.raises(TableAlreadyExistsError):
        frame.writeTo(name).create()
    frame.writeTo(name).option("userMetadata", "why").append()
    assert enabled.read.format("delta").load(path).count() == 12
    frame.where("p = 1").writeTo(name).overwritePartitions()
    frame.where("id = 0").writeTo(name).overwrite(F.col("p") == 0)
    assert sorted(row["id"] for row in enabled.read.format("delta").load(path).collect()) == [
        0,
        1,
        2,
        2,
        4,
        5,
        5,
    ]
    frame.selectExpr("id AS x", "p AS y", "name AS z").where("x = 3").write.insertInto(name, overwrite=True)
    frame.where("id = 1").write.format("delta").mode("append").saveAsTable(name)
    assert sorted(row["name"] for row in enabled.read.format("delta").load(path).collect()) == ["n1", "n3"]
    with pytest.raises(SchemaMismatchError, match="insertInto"):
        enabled.range(1).write.insertInto(name)
    frame.selectExpr("CAST(id + 100 AS STRING)", "p", "id").where("id = 3").write.insertInto(name)
    assert enabled.sql(f"SELECT * FROM {name} WHERE id = 103").collect()[0][2] == "3"
    with pytest.raises(SchemaMismatchError, match="column id"):
        frame.selectExpr("'abc'", "p", "name").write.insertInto(name)
    with pytest.raises(InvalidArgumentError, match="cannot change the partition columns"):
        frame.where("id = 1").writeTo(name).option("replaceWhere", "id = 1").createOrReplace()
    frame.select("id").writeTo(name).createOrReplace()
    frame.select("id").writeTo(name).replace()
    history = [row["operation"] for row in DeltaTable(path).history()]
    assert history[:2] == ["REPLACE TABLE AS SELECT", "CREATE OR REPLACE TABLE AS SELECT"]
    assert history[-1] == "CREATE TABLE AS SELECT"
    assert DeltaTable(path).metadata.partition_columns == []
    with pytest.raises(UnsupportedFeatureError, match="bucketBy"):
        frame.write.format("delta").bucketBy(2, "id").save(path + "b")
    with pytest.raises(SchemaMismatchError, match="no columns"):
        frame.select().write.format("delta").mode("append").save(path)
    frame.write.format("parquet").saveAsTable("of_spark")
    frame.write.insertInto("of_spark")
    assert enabled.table("of_spark").count() == 12
    enabled.sql("DROP TABLE of_spark")


@pytest.mark.parametrize("name", ["ignoreMissingFiles", "ignoreCorruptFiles", "fs.s3a.access.key"])
def test_options_of_delta_spark_that_come_later_are_named(tmp_path: Path, enabled: Any, name: str) -> None:
    path = str(tmp_path / "t")
    DeltaTable.create(path, "id bigint")
    with pytest.raises(UnsupportedFeatureError, match=name.lower()):
        enabled.read.format("delta").option(name, "true").load(path)
    assert enabled.read.format("delta").option("mergeSchema", "true").load(path).count() == 0
    writer = enabled.range(3).write.format("delta").option("writePartitionColumns", "true")
    with pytest.raises(UnsupportedFeatureError, match="writePartitionColumns"):
        writer.mode("append").save(path)


def test_other_formats_are_left_alone(tmp_path: Path, enabled: Any) -> None:
    path = str(tmp_path / "p")
    numbers(enabled).write.format("parquet").partitionBy("p").option("compression", "gzip").save(path)
    assert enabled.read.schema("id long, p int").parquet(path).count() == 12
    assert enabled.read.format("parquet").load(path).where("p = 0").count() == 4


def test_read_and_write_need_no_enabling(tmp_path: Path, spark: Any) -> None:
    path = tmp_path / "t"
    deltaic.spark.write(
        numbers(spark), path, partition_by="p", properties={"delta.enableDeletionVectors": True}
    )
    frame = deltaic.spark.read(spark, path, columns=["name", "p"], where="id > 5 and p = 1")
    assert frame.columns == ["name", "p"]
    assert sorted(row["name"] for row in frame.collect()) == ["n10", "n7"]
    DeltaTable(path, spark=spark).delete("id = 7")
    assert frame.count() == 2
    assert deltaic.spark.read(spark, path, where="id > 5 and p = 1").count() == 1
    assert deltaic.spark.read(spark, path, version=0).count() == 12


def test_the_session_sets_auto_compaction(
    tmp_path: Path, enabled: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The setting goes before the property of the table: `getAutoCompactType` of delta-spark."""
    monkeypatch.setattr(auto_compaction, "AUTO_COMPACT_FILES", 3)
    setting = "spark.databricks.delta.autoCompact.enabled"
    for of_session, of_table, compacts in (
        ("true", "false", True),
        ("auto", "false", True),
        ("false", "true", False),
        (None, "true", True),
    ):
        path = str(tmp_path / f"{of_session} {of_table}")
        if of_session is not None:
            enabled.conf.set(setting, of_session)
        try:
            for number in range(3):
                writer = enabled.range(number, number + 1).coalesce(1).write.format("delta").mode("append")
                writer.option("delta.autoOptimize.autoCompact", of_table).save(path)
        finally:
            enabled.conf.unset(setting)
        operations = [each["operation"] for each in DeltaTable(path).history()]
        assert operations == ["OPTIMIZE"] * compacts + ["WRITE"] * 3
        assert DeltaTable(path).scan().count() == 3
