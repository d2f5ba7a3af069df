"""delta-spark's Python API on a Spark session: what its calls do and what they return."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltaic
import deltaic.spark
from deltaic.engine.spark.native.session import is_classic_frame
from deltaic.errors import (
    DeltaError,
    InvalidArgumentError,
    TableAlreadyExistsError,
    TableNotFoundError,
    UnsupportedFeatureError,
)

pytest.importorskip("pyspark")

from pyspark.errors import UnsupportedOperationException

from deltaic.spark.tables import DeltaTable, IdentityGenerator
from spark_session import other_session

SIZES = "struct<min:bigint,max:bigint,avg:double,totalFiles:bigint,totalSize:bigint>"
CUBE, ZCUBE = "struct<num:bigint,size:bigint>", "struct<numFiles:bigint,size:bigint>"
# As delta-spark 4.4 has it.
OPTIMIZE_METRICS = (
    f"struct<numFilesAdded:bigint,numFilesRemoved:bigint,filesAdded:{SIZES},filesRemoved:{SIZES},"
    f"partitionsOptimized:bigint,zOrderStats:struct<strategyName:string,inputCubeFiles:{CUBE},"
    f"inputOtherFiles:{CUBE},inputNumCubes:bigint,mergedFiles:{CUBE},numOutputCubes:bigint,"
    f"mergedNumCubes:bigint>,clusteringStats:struct<inputZCubeFiles:{ZCUBE},inputOtherFiles:{ZCUBE},"
    f"inputNumZCubes:bigint,mergedFiles:{ZCUBE},numOutputZCubes:bigint>,numBins:bigint,numBatches:bigint,"
    "totalConsideredFiles:bigint,totalFilesSkipped:bigint,preserveInsertionOrder:boolean,"
    "numFilesSkippedToReduceWriteAmplification:bigint,numBytesSkippedToReduceWriteAmplification:bigint,"
    "startTimeMs:bigint,endTimeMs:bigint,totalClusterParallelism:bigint,totalScheduledTasks:bigint,"
    "autoCompactParallelismStats:struct<maxClusterActiveParallelism:bigint,"
    "minClusterActiveParallelism:bigint,"
    "maxSessionActiveParallelism:bigint,minSessionActiveParallelism:bigint>,"
    "deletionVectorStats:struct<numDeletionVectorsRemoved:bigint,numDeletionVectorRowsRemoved:bigint>,"
    "numTableColumns:bigint,numTableColumnsWithStats:bigint>"
)


@pytest.fixture
def path(tmp_path: Path) -> str:
    place = str(tmp_path / "t")
    rows = pa.table({"id": [1, 2, 3, 4], "part": ["a", "a", "b", "b"], "amount": [1.0, 2.0, 3.0, None]})
    deltaic.write(place, rows, partition_by="part", properties={"delta.enableDeletionVectors": True})
    return place


def rows_at(path: str, *columns: str) -> list[tuple[Any, ...]]:
    found = deltaic.DeltaTable(path).scan(list(columns) or None).to_arrow().to_pylist()
    return sorted(tuple(row.values()) for row in found)


def test_reading_and_aliases(spark: Any, path: str) -> None:
    table = DeltaTable.forPath(spark, path)
    assert table.toDF().count() == 4
    assert table.alias("t").toDF().where("t.id > 2").count() == 2
    assert DeltaTable.forName(spark, f"delta.`{path}`").toDF().count() == 4
    assert DeltaTable.isDeltaTable(spark, path)
    assert not DeltaTable.isDeltaTable(spark, path + "x")
    with pytest.raises(TableNotFoundError):
        DeltaTable.forPath(spark, path + "x")
    with pytest.raises(InvalidArgumentError, match="DELTA_MISSING_DELTA_TABLE"):
        DeltaTable.forName(spark, "some_table")
    with pytest.raises(UnsupportedFeatureError):
        DeltaTable.forPath(spark, "s3a://bucket/t", {"fs.x": "y"})


def test_an_object_sees_what_others_commit(spark: Any, path: str) -> None:
    table = DeltaTable.forPath(spark, path)
    deltaic.write(path, pa.table({"id": [9], "part": ["c"], "amount": [9.0]}), mode="append")
    assert table.toDF().count() == 5
    table.delete("id = 9")
    assert deltaic.DeltaTable(path).scan().count() == 4


def test_a_library_that_imports_delta_gets_this_module(
    spark: Any, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line is in docs/from-delta-spark.md."""
    for name in ("delta", "delta.tables"):
        monkeypatch.setitem(sys.modules, name, deltaic.spark.tables)
    library: dict[str, Any] = {}
    exec("from delta import DeltaTable\nfrom delta.tables import DeltaTable as Same", library)
    assert library["Same"] is library["DeltaTable"] is DeltaTable
    assert library["DeltaTable"].isDeltaTable(spark, path)


def test_delete(spark: Any, path: str) -> None:
    from pyspark.sql import functions as F

    table = DeltaTable.forPath(spark, path)
    assert table.delete("id = 1") is None
    table.delete((F.col("amount") > 2.5) & F.col("part").isin("b", "c"))
    assert [row[0] for row in rows_at(path, "id")] == [2, 4]
    table.alias("t").delete("t.id = 2")
    assert [row[0] for row in rows_at(path, "id")] == [4]
    table.delete()
    assert rows_at(path) == []
    assert table.history(1).collect()[0]["operation"] == "DELETE"


def test_update(spark: Any, path: str) -> None:
    from pyspark.sql import functions as F

    table = DeltaTable.forPath(spark, path)
    table.update("id = 1", {"amount": "amount + 10"})
    table.update(condition=F.col("id") == 2, set={"amount": F.col("amount") * 2})
    table.alias("t").update(F.expr("t.id = 3"), {"t.amount": F.lit(0.5)})
    table.update(set={"part": "upper(part)"})
    assert rows_at(path) == [(1, "A", 11.0), (2, "A", 4.0), (3, "B", 0.5), (4, "B", None)]
    with pytest.raises(ValueError, match="set"):
        table.update("id = 1")
    for wrong in ({"amount": 1}, {1: "amount"}, "amount = 1"):
        with pytest.raises(TypeError):
            table.update("id = 1", wrong)
    with pytest.raises(TypeError):
        table.delete(3)


def test_a_struct_has_a_text(spark: Any) -> None:
    from pyspark.sql import functions as F

    from deltaic.spark.expressions import sql_text

    inner = F.struct(F.col("x").alias("q"), F.struct(F.col("y")))
    assert sql_text(F.struct(F.lit(1).alias("a"), F.col("b")), "set") == "struct(1 AS a, b)"
    assert sql_text(F.coalesce(F.col("s"), inner), "set") == "coalesce(s, struct(x AS q, struct(y)))"
    with pytest.raises(UnsupportedFeatureError, match="no SQL text"):
        sql_text(F.struct(F.col("s").withField("x", F.lit(1)).alias("q")), "set")


def test_merge(spark: Any, path: str) -> None:
    source = spark.createDataFrame(
        [(1, "a", 10.0), (3, "b", None), (7, "c", 7.0)], "id bigint, part string, amount double"
    )
    table = DeltaTable.forPath(spark, path)
    merge = (
        table.alias("t")
        .merge(source.alias("s"), "t.id = s.id")
        .whenMatchedDelete("s.amount is null")
        .whenMatchedUpdate(set={"amount": "s.amount"})
        .whenNotMatchedInsertAll()
        .whenNotMatchedBySourceUpdate("t.id = 4", {"amount": "0"})
        .whenNotMatchedBySourceDelete("t.id = 2")
    )
    assert rows_at(path, "id") == [(1,), (2,), (3,), (4,)]
    (row,) = merge.execute().collect()
    assert row.asDict() == {
        "num_affected_rows": 5,
        "num_updated_rows": 2,
        "num_deleted_rows": 2,
        "num_inserted_rows": 1,
    }
    assert rows_at(path) == [(1, "a", 10.0), (4, "b", 0.0), (7, "c", 7.0)]


def test_merge_with_columns_and_no_aliases(spark: Any, path: str) -> None:
    from pyspark.sql import functions as F

    source = spark.createDataFrame([(1, 10.0), (8, 8.0)], "key bigint, value double")
    table = DeltaTable.forPath(spark, path)
    merge = table.merge(source, F.col("id") == F.col("key")).whenMatchedUpdate(
        F.col("value") > 1, {"amount": F.col("value")}
    )
    merge.whenNotMatchedInsert(values={"id": "key", "part": F.lit("n"), "amount": "value"}).execute()
    assert rows_at(path)[0] == (1, "a", 10.0)
    assert rows_at(path)[-1] == (8, "n", 8.0)
    with pytest.raises(ValueError, match="source"):
        table.merge(None, "id = key")
    with pytest.raises(ValueError, match="condition"):
        table.merge(source, None)
    with pytest.raises(TypeError):
        table.merge([1], "id = key")
    with pytest.raises(ValueError, match="values"):
        table.merge(source, "id = key").whenNotMatchedInsert("true")


def test_merge_without_assignments(spark: Any, path: str) -> None:
    """delta-spark's MergeIntoScalaSuite, "update with empty map should do nothing"."""
    source = spark.createDataFrame([(1,), (8,)], "key bigint")
    merge = DeltaTable.forPath(spark, path).merge(source, "id = key")
    before = rows_at(path)
    added = merge.whenMatchedUpdate(set={}).whenNotMatchedInsert(values={}).execute()
    assert added.first().num_affected_rows == 1
    assert deltaic.DeltaTable(path).delete("id IS NULL")["num_deleted_rows"] == 1
    left = merge.whenMatchedUpdate("id = 1", {}).whenMatchedDelete().execute().first()
    assert (left.num_updated_rows, left.num_deleted_rows) == (1, 0)
    assert rows_at(path) == before


def test_an_insert_of_a_merge_into_itself_has_the_columns_of_the_source(spark: Any, path: str) -> None:
    """delta-spark's MergeIntoScalaSuite, "self-merge + pre-resolved exprs: duplicate refs should resolve in
    not-matched clauses"."""
    table = DeltaTable.forPath(spark, path).alias("t")
    target = table.toDF()
    if not is_classic_frame(target):  # on Spark Connect, only the server has the columns
        return
    merge = table.merge(target.filter("id = 1").alias("s"), "t.id = s.id AND false")
    with pytest.raises(UnsupportedFeatureError, match="of target and source alike") as refused:
        merge.whenMatchedDelete(target["id"] > 0)
    assert refused.value.getCondition() == "AMBIGUOUS_REFERENCE"  # type: ignore[attr-defined]
    merge.whenNotMatchedInsert(target["id"] > 0, {"id": target["id"] + 8}).execute()
    assert rows_at(path)[-1] == (9, None, None)


def test_merge_with_an_alias_below_other_operations(spark: Any, path: str) -> None:
    from pyspark.sql import functions as F

    made = spark.createDataFrame(
        [(1, 10.0), (1, 10.0), (7, 7.0), (None, 0.0)], "id bigint, amount double"
    ).alias("s")
    alike = [
        made.dropDuplicates(["id"]),
        made.distinct().filter("s.id IS NOT NULL"),
        made.distinct().where(F.col("s.id") > 0).orderBy("id").limit(2).repartition(2),
    ]
    for at, source in enumerate(alike):
        table = DeltaTable.forPath(spark, path)
        table.alias("t").merge(source, "t.id = s.id").whenMatchedUpdate(
            set={"amount": f"s.amount + {at}"}
        ).execute()
        assert rows_at(path)[0] == (1, "a", 10.0 + at)


def test_merge_with_an_alias_below_a_projection(spark: Any, path: str) -> None:
    from pyspark.sql import functions as F

    made = spark.createDataFrame([(1, 10.0), (7, 7.0)], "id bigint, amount double").alias("s")
    below = [
        made.withColumn("more", F.lit(1.0)),
        made.withColumn("amount", F.col("amount") + 1).withColumn("more", F.lit(2.0)),
        made.withColumnsRenamed({"amount": "more"}),
    ]
    if is_classic_frame(made):  # on Spark Connect, only the server finds the columns that a SELECT keeps
        below += [
            made.select("id", F.lit(4.0).alias("more")),
            made.groupBy("s.id").agg(F.max("amount").alias("more")),
            made.join(made.alias("u"), "id").select("s.id", (F.col("u.amount") + 1).alias("more")),
        ]
    for at, source in enumerate(below):
        table = DeltaTable.forPath(spark, path)
        table.alias("t").merge(source, "t.id = s.id").whenMatchedUpdate(
            set={"amount": f"more + s.id + {at}"}
        ).execute()
        added = source.where("id = 1").first()["more"]
        assert rows_at(path)[0] == (1, "a", added + 1.0 + at)


def test_merge_with_a_join_of_two_aliases(spark: Any, path: str) -> None:
    from pyspark.sql import functions as F

    made = spark.createDataFrame([(1, 10.0), (7, 7.0)], "id bigint, amount double").alias("s")
    other = spark.createDataFrame([(1, 2.5, 3.5)], "key bigint, more double, amount double").alias("u")
    both = made.join(other.drop("amount"), F.col("s.id") == F.col("u.key"))
    table = DeltaTable.forPath(spark, path)
    merge = table.alias("t").merge(both, "t.id = s.id AND `U`.key = 1")
    merge = merge.whenMatchedUpdate("u.more > 1", {"amount": "u.more + s.amount + t.amount"})
    if not is_classic_frame(made):  # on Spark Connect, only the server has the aliases of a join
        with pytest.raises(InvalidArgumentError, match="cannot be resolved"):
            merge.execute()
        return
    merge.execute()
    assert rows_at(path)[0] == (1, "a", 13.5)
    table.alias("t").merge(both, F.col("t.id") == F.col("u.key")).whenMatchedUpdate(
        set={"amount": F.col("u.more")}
    ).execute()
    assert rows_at(path)[0] == (1, "a", 2.5)
    for unknown in ("u.id = t.id", "s.more = t.id", "v.key = t.id"):
        with pytest.raises(InvalidArgumentError, match="cannot be resolved"):
            table.alias("t").merge(both, unknown).whenMatchedDelete().execute()
    twice = made.join(other, F.col("s.id") == F.col("u.key"))
    with pytest.raises(InvalidArgumentError, match="a column of the data comes twice"):
        table.alias("t").merge(twice, "t.id = u.key").whenMatchedDelete().execute()


def test_merge_with_schema_evolution(spark: Any, path: str) -> None:
    source = spark.createDataFrame(
        [(9, "z", 1.0, "new")], "id bigint, part string, amount double, note string"
    )
    merge = DeltaTable.forPath(spark, path).alias("t").merge(source.alias("s"), "t.id = s.id")
    merge.withSchemaEvolution().whenNotMatchedInsertAll().execute()
    assert deltaic.DeltaTable(path).schema.names == ["id", "part", "amount", "note"]


def test_history_and_detail(spark: Any, path: str) -> None:
    from deltaic.sql.describe import DETAIL, HISTORY

    table = DeltaTable.forPath(spark, path)
    table.delete("id = 1")
    history = table.history()
    assert history.columns == HISTORY.names
    assert [row["version"] for row in history.collect()] == [1, 0]
    assert table.history(1).collect()[0]["operationMetrics"]["numDeletedRows"] == "1"
    detail = table.detail()
    assert detail.columns == DETAIL.names
    assert detail.collect()[0]["partitionColumns"] == ["part"]


def test_upkeep(spark: Any, path: str) -> None:
    for number in range(2):
        deltaic.write(path, pa.table({"id": [number + 10], "part": ["a"], "amount": [0.0]}), mode="append")
    table = DeltaTable.forPath(spark, path)
    done = table.optimize().where("part = 'a'").executeCompaction()
    assert done.columns == ["path", "metrics"]
    assert done.schema["metrics"].dataType.simpleString() == OPTIMIZE_METRICS
    metrics = done.collect()[0]["metrics"]
    assert metrics["numFilesRemoved"] == metrics["filesRemoved"]["totalFiles"] == 3
    assert metrics["filesAdded"]["min"] == metrics["filesAdded"]["totalSize"] > 0
    assert table.optimize().executeZOrderBy("id", "amount").count() == 1
    assert table.optimize().executeZOrderBy(["id"]).count() == 1
    assert table.optimize().executeZOrderBy("id", "ID").count() == 1
    assert table.optimize().executeZOrderBy().first().metrics.zOrderStats is None
    with pytest.raises(TypeError):
        table.optimize().executeZOrderBy(1)
    assert table.restoreToVersion(0).columns[0] == "table_size_after_restore"
    assert [row[0] for row in rows_at(path, "id")] == [1, 2, 3, 4]
    moment = deltaic.DeltaTable(path).history()[-2]["timestamp"]
    table.restoreToTimestamp(moment.strftime("%Y-%m-%d %H:%M:%S.%f"))
    assert len(rows_at(path)) == 5
    assert table.vacuum().count() == 0
    with pytest.raises(ValueError, match="int"):
        table.restoreToVersion("1")


def test_vacuum_within_the_retention(spark: Any, path: str) -> None:
    table = DeltaTable.forPath(spark, path)
    table.delete("part = 'a'")
    with pytest.raises(InvalidArgumentError):
        table.vacuum(0)
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    try:
        table.vacuum(0)
    finally:
        spark.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")
    assert not list((Path(path) / "part=a").glob("*.parquet"))


def test_protocol(spark: Any, path: str) -> None:
    table = DeltaTable.forPath(spark, path)
    table.addFeatureSupport("v2Checkpoint")
    assert "v2Checkpoint" in table.detail().collect()[0]["tableFeatures"]
    table.dropFeatureSupport("v2Checkpoint")
    assert "v2Checkpoint" not in table.detail().collect()[0]["tableFeatures"]
    with pytest.raises(ValueError, match="integer"):
        table.upgradeTableProtocol("3", 7)


def test_clone_convert_and_generate(spark: Any, path: str, tmp_path: Path) -> None:
    from pyspark.sql import types as T

    table = DeltaTable.forPath(spark, path)
    wanted = sorted(table.toDF().collect())
    clone = table.clone(str(tmp_path / "deep"), properties={"a": "b"})
    assert sorted(clone.toDF().collect()) == wanted
    assert clone.detail().collect()[0]["properties"]["a"] == "b"
    table.delete("id = 1")
    assert sorted(table.cloneAtVersion(0, str(tmp_path / "deep"), replace=True).toDF().collect()) == wanted
    with deltaic.configure(allowed_roots=[tmp_path, path]):
        shallow = table.clone(str(tmp_path / "shallow"), isShallow=True)
        assert sorted(shallow.toDF().collect()) == sorted(table.toDF().collect())
    spark.sql("SELECT id, CAST(id % 2 AS STRING) p FROM range(4)").write.partitionBy("p").parquet(
        str(tmp_path / "files")
    )
    schema = T.StructType([T.StructField("p", T.StringType())])
    converted = DeltaTable.convertToDelta(spark, f"parquet.`{tmp_path / 'files'}`", schema)
    assert sorted((row["id"], row["p"]) for row in converted.toDF().collect()) == [
        (0, "0"),
        (1, "1"),
        (2, "0"),
        (3, "1"),
    ]
    converted.generate("symlink_format_manifest")
    assert (tmp_path / "files/_symlink_format_manifest/p=0/manifest").read_text().startswith("file:/")


def test_builder(spark: Any, tmp_path: Path) -> None:
    from pyspark.sql import types as T

    place = str(tmp_path / "t")

    def described(builder: Any) -> Any:
        builder.location(place).comment("all of it").addColumn(
            "id", "bigint", nullable=False, comment="the key"
        )
        builder.addColumn("s", T.StructType([T.StructField("x", T.IntegerType())]))
        builder.addColumns(T.StructType([T.StructField("part", T.StringType(), True, {"comment": "c"})]))
        return builder.partitionedBy("part").property("delta.appendOnly", "true")

    with pytest.raises(TableNotFoundError):
        described(DeltaTable.replace(spark)).execute()
    table = described(DeltaTable.create(spark)).execute()
    found = deltaic.DeltaTable(place)
    assert table.toDF().columns == ["id", "s", "part"]
    assert (
        found.schema.to_ddl()
        == "id bigint not null comment 'the key', s struct<x: int>, part string comment 'c'"
    )
    assert (found.metadata.description, found.metadata.partition_columns) == ("all of it", ("part",))
    assert found.metadata.configuration["delta.appendOnly"] == "true"
    with pytest.raises(TableAlreadyExistsError):
        described(DeltaTable.create(spark)).execute()
    described(DeltaTable.createIfNotExists(spark)).execute()
    assert deltaic.DeltaTable(place).version == 0
    DeltaTable.createOrReplace(spark).tableName(f"delta.`{place}`").addColumn("n", T.IntegerType()).clusterBy(
        "n"
    ).execute()
    assert deltaic.DeltaTable(place).schema.names == ["n"]


def test_a_builder_makes_columns_that_are_computed(spark: Any, tmp_path: Path) -> None:
    place = str(tmp_path / "t")
    builder = (
        DeltaTable.create(spark)
        .location(place)
        .addColumn("id", "bigint", generatedAlwaysAs=IdentityGenerator(start=5, step=2))
    )
    builder.addColumn("n", "int").addColumn("twice", "int", generatedAlwaysAs="n * 2").property(
        "delta.constraints.few", "n < 100"
    ).execute()
    frame = spark.createDataFrame([(1,), (2,)], "n int").coalesce(1)
    # The data source, in a session without `enable`.
    with pytest.raises(Exception, match="cannot assign identity values"):
        frame.write.format("delta").mode("append").save(place)
    deltaic.write(deltaic.DeltaTable(place, spark=spark), frame, mode="append")
    table = DeltaTable.forPath(spark, place)
    table.update("n = 2", {"n": "3"})
    source = spark.createDataFrame([(1,), (9,)], "n int").alias("s")
    table.alias("t").merge(source, "s.n = t.n").whenMatchedUpdate(set={"n": "s.n + 10"}).whenNotMatchedInsert(
        values={"n": "s.n"}
    ).execute()
    found = [tuple(row) for row in table.toDF().orderBy("n").collect()]
    assert [(n, twice) for _, n, twice in found] == [(3, 6), (9, 18), (11, 22)]
    assert len({number for number, _, _ in found}) == 3
    assert all(number % 2 == 1 for number, _, _ in found)
    for wrong, message in (
        (frame.selectExpr("n", "n * 3 AS twice"), "generated column twice"),
        (
            frame.selectExpr("n + 99 AS n"),
            r"CHECK constraint few; found (2 rows, one with )?n = 10[01]; expected n < 100",
        ),
        (frame.selectExpr("n", "7L AS id"), "GENERATED ALWAYS"),
    ):
        with pytest.raises(DeltaError, match=message):
            deltaic.write(deltaic.DeltaTable(place, spark=spark), wrong, mode="append")
    assert dict(table.toDF().schema["twice"].metadata) == {}


def test_what_a_builder_refuses(spark: Any, tmp_path: Path) -> None:
    builder = DeltaTable.create(spark).location(str(tmp_path / "t"))
    for wrong in (
        lambda: builder.addColumn(1, "int"),
        lambda: builder.addColumn("a", 1),
        lambda: builder.location(1),
    ):
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(TypeError):
        builder.property("a", 1)
    with pytest.raises(ValueError, match="both"):
        builder.addColumn("a", "int", generatedAlwaysAs="1", generatedByDefaultAs=IdentityGenerator())
    with pytest.raises(ValueError, match="step"):
        builder.addColumn("a", "bigint", generatedAlwaysAs=IdentityGenerator(step=0))
    with pytest.raises(InvalidArgumentError, match="no location and no table name"):
        DeltaTable.create(spark).addColumn("a", "int").execute()


def test_errors_have_the_words_of_delta_spark(spark: Any, path: str) -> None:
    """The texts that delta-spark's own tests expect (python/delta/tests/test_deltatable.py)."""
    table = DeltaTable.forPath(spark, path)
    merge = table.merge(spark.range(1).withColumnRenamed("id", "k"), "id = k")
    column = "must be a Spark SQL Column or a string"
    for call, words in (
        (lambda: table.update(1, {}), column),
        (lambda: merge.whenMatchedDelete(1), column),
        (lambda: table.update(set={"v": 1}), "Values of dict in 'set' must contain only Spark SQL Columns"),
        (lambda: table.update(set={1: ""}), "Keys of dict in 'set' must contain only strings"),
        (
            lambda: table.optimize().where("id = 1").executeCompaction(),
            "Predicate references non-partition column 'id'. Only the partition columns may be referenced:"
            " [part]",
        ),
        (
            lambda: table.restoreToTimestamp("05/04/1999"),
            "The provided timestamp ('05/04/1999') cannot be converted to a valid timestamp",
        ),
        (
            lambda: DeltaTable.replace(spark).location(path + "2").addColumn("a", "int").execute(),
            "cannot be found",
        ),
    ):
        with pytest.raises(DeltaError) as raised:
            call()
        assert words in str(raised.value)
    with pytest.raises(UnsupportedOperationException):
        DeltaTable.create(spark).addColumn("a", "int", generatedAlwaysAs=IdentityGenerator())
    with pytest.raises(DeltaError, match=r"part is a partition column\. Z-Ordering can only be performed on"):
        table.optimize().executeZOrderBy("part")


def test_the_history_has_the_parsed_condition_of_optimize(spark: Any, path: str) -> None:
    """As delta-spark's own tests expect it (python/delta/tests/test_deltatable.py), also by Spark's public
    interfaces."""
    public = other_session(spark)
    deltaic.spark.enable(public, native="never")
    table = DeltaTable.forPath(public, path)
    for condition, parsed in (
        ("part = 'a'", "('part = a)"),
        ("part = 'a' OR NOT part IN ('b\n', 'c') -- note", "(('part = a) OR NOT 'part IN (b\n,c))"),
        ("true", "true"),
    ):
        deltaic.write(path, pa.table({"id": [9], "part": ["a"], "amount": [9.0]}), mode="append")
        table.optimize().where(condition).executeCompaction()
        assert json.loads(table.history(1).first().operationParameters["predicate"]) == [parsed]


def test_settings_of_the_protocol(spark: Any, tmp_path: Path) -> None:
    """A table of an older protocol has no deletion vectors by default; Hadoop's settings do not matter on a
    local path."""
    names = [f"spark.databricks.delta.min{kind}Version" for kind in ("Reader", "Writer")]
    try:
        for name, version in zip(names, ("1", "2"), strict=True):
            spark.conf.set(name, version)
        deltaic.spark.write(spark.range(3), tmp_path / "t")
    finally:
        for name in names:
            spark.conf.unset(name)
    table = DeltaTable.forPath(spark, str(tmp_path / "t"), {"fs.fake.impl": "none"})
    table.upgradeTableProtocol(1, 3)
    detail = table.detail().first()
    assert (detail.minReaderVersion, detail.minWriterVersion) == (1, 3)
