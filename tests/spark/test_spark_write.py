"""Writing on Spark: Spark's own writer writes the files, and the commit adds them with the statistics and
names that the table requires."""

from __future__ import annotations

import datetime as dt
import json
import logging
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

import deltaic
import deltaic.spark
from deltaic import CommitOptions, DeltaTable, ParquetOptions
from deltaic.errors import (
    ConcurrentAppendException,
    ConstraintViolationError,
    InvalidArgumentError,
    SchemaMismatchError,
    UnsupportedFeatureError,
)
from deltaic.spark.frames import newest

INNER = pa.struct([("x", pa.int64()), ("y", pa.string())])
EVERYTHING = pa.table(
    {
        "id": pa.array(range(4), pa.int64()),
        "by": pa.array([1, -128, None, 127], pa.int8()),
        "sh": pa.array([1, 2, None, -32768], pa.int16()),
        "it": pa.array([1, 2, None, 3], pa.int32()),
        "fl": pa.array([0.5, float("nan"), None, -0.0], pa.float32()),
        "db": pa.array([1e300, float("-inf"), None, 2.5]),
        "dc": pa.array([Decimal("1.50"), None, Decimal("-99.99"), Decimal("0.01")], pa.decimal128(10, 2)),
        "wide": pa.array([Decimal(10) ** 30, None, Decimal(1), Decimal(-5)], pa.decimal128(38, 0)),
        "tx": pa.array(["a", "", None, "ünï" * 20]),
        "bn": pa.array([b"\x00\xff", b"", None, b"x"]),
        "bl": pa.array([True, False, None, True]),
        "dt": pa.array([dt.date(1500, 1, 1), None, dt.date(2024, 2, 29), dt.date(9999, 12, 31)]),
        "ts": pa.array([-1, None, 1717236672123456, 0], pa.timestamp("us", "UTC")),
        "nz": pa.array([-1, None, 1717236672123456, 0], pa.timestamp("us")),
        "st": pa.array([{"x": 1, "y": "a"}, None, {"x": None, "y": None}, {"x": 4, "y": "b"}], INNER),
        "ls": pa.array([[1, None], [], None, [3]], pa.list_(pa.int64())),
        "mp": pa.array([[("k", 1)], None, [], [("a", None)]], pa.map_(pa.string(), pa.int64())),
        "nest": pa.array([[{"x": 1, "y": "a"}], None, [None], []], pa.list_(INNER)),
    }
)


def rows(data: Any) -> list[str]:
    return sorted(map(repr, (data.scan().to_arrow() if isinstance(data, DeltaTable) else data).to_pylist()))


def statistics(table: DeltaTable) -> list[str]:
    listing = (
        table.files()
        .to_arrow()
        .select(["num_records", "null_count", "min_values", "max_values", "partition_values"])
    )
    return sorted(map(repr, listing.to_pylist()))


@pytest.mark.parametrize("mapping", ["none", "name"])
def test_every_type_with_its_statistics(tmp_path: Path, spark: Any, mapping: str) -> None:
    properties = {"delta.columnMapping.mode": mapping, "delta.dataSkippingNumIndexedCols": -1}
    local = deltaic.write(tmp_path / "local", EVERYTHING, properties=properties)
    DeltaTable.create(tmp_path / "spark", local.schema, properties=properties)
    table = DeltaTable(tmp_path / "spark", spark=spark)
    deltaic.write(table, EVERYTHING, mode="append")
    read = DeltaTable(tmp_path / "spark")
    assert rows(read) == rows(table) == rows(EVERYTHING)
    assert statistics(read) == statistics(local)
    [file] = read.files().to_arrow()["location"].to_pylist()
    parquet = pq.ParquetFile(file)
    assert {parquet.metadata.row_group(0).column(0).compression} == {"ZSTD"}
    moment = parquet.schema.column(
        [column.path for column in map(parquet.schema.column, range(len(parquet.schema)))].index(
            _name(read, "ts")
        )
    )
    assert moment.physical_type == "INT64"
    if mapping == "name":
        assert parquet.schema_arrow.field(0).metadata[b"PARQUET:field_id"] == b"1"


def _name(table: DeltaTable, column: str) -> str:
    field = table.schema.field(column)
    return str(field.metadata.get("delta.columnMapping.physicalName", column))


def test_partitions(tmp_path: Path, spark: Any) -> None:
    moment = dt.datetime(2024, 6, 1, 10, 11, 12, 123456, tzinfo=dt.timezone.utc)
    columns = {
        "s": pa.array(["a b/c=%20é", "", None, "_x", "."]),
        "d": pa.array([dt.date(1500, 1, 1), dt.date(2024, 2, 29), None, dt.date(1, 1, 1), None]),
        "_t": pa.array([moment, None, moment.replace(year=1960), moment, moment], pa.timestamp("us", "UTC")),
        "n": pa.array(
            [moment.replace(tzinfo=None), None, None, None, dt.datetime(1, 1, 1)], pa.timestamp("us")
        ),
        "m": pa.array([Decimal("1.50"), Decimal("-0.01"), None, None, Decimal("0.00")], pa.decimal128(10, 2)),
        "f": pa.array([1.5, float("nan"), None, -0.0, 1e21]),
        "b": pa.array([True, False, None, True, None]),
    }
    data = pa.table({"id": range(5), **columns})
    local = deltaic.write(tmp_path / "local", data, partition_by=list(columns))
    DeltaTable.create(tmp_path / "spark", local.schema, partition_by=list(columns))
    deltaic.write(DeltaTable(tmp_path / "spark", spark=spark), data, mode="append")
    read = DeltaTable(tmp_path / "spark")
    assert rows(read) == rows(local)
    assert statistics(read) == statistics(local)
    texts = [
        sorted(
            repr(sorted(json.loads(line)["add"]["partitionValues"].items()))
            for line in commit.read_text().splitlines()
            if '"add"' in line
        )
        for table in (local, read)
        for commit in [max((Path(table.location) / "_delta_log").glob("*.json"))]
    ]
    assert texts[0] == texts[1]


@pytest.mark.parametrize(
    ("ddl", "query", "place"),
    [
        ("id bigint not null", "CAST(NULL AS bigint) AS id", "id"),
        (
            "id bigint, s struct<x: bigint not null>",
            "1L AS id, named_struct('x', CAST(NULL AS bigint)) AS s",
            "s.x",
        ),
    ],
)
def test_a_null_where_none_may_be(tmp_path: Path, spark: Any, ddl: str, query: str, place: str) -> None:
    table = DeltaTable.create(tmp_path / "t", ddl)
    frame = spark.sql(f"SELECT {query} UNION ALL SELECT {query}")
    with pytest.raises(ConstraintViolationError, match=f"column {place} is NOT NULL"):
        deltaic.write(table, frame, mode="append")
    assert DeltaTable(tmp_path / "t").version == 0
    assert [path.name for path in (tmp_path / "t").iterdir()] == ["_delta_log"]


def test_types_that_fit_value_by_value(tmp_path: Path, spark: Any) -> None:
    table = DeltaTable.create(tmp_path / "t", "i int, s struct<a: int, b: string>")
    deltaic.write(table, spark.sql("SELECT 5L AS I, named_struct('B', 'x') AS s"), mode="append")
    deltaic.write(table, spark.sql("SELECT 7.0D AS i"), mode="append")
    assert rows(DeltaTable(tmp_path / "t")) == sorted(
        ["{'i': 5, 's': {'a': None, 'b': 'x'}}", "{'i': 7, 's': None}"]
    )
    for value in ("3000000000L", "1.5D"):
        with pytest.raises(SchemaMismatchError, match="column i: a value does not fit"):
            deltaic.write(table, spark.sql(f"SELECT {value} AS i"), mode="append")
    with pytest.raises(SchemaMismatchError, match="string"):
        deltaic.write(table, spark.sql("SELECT 'x' AS i"), mode="append")
    assert DeltaTable(tmp_path / "t").version == 2


def test_a_null_struct_whose_fields_take_no_null(tmp_path: Path, spark: Any) -> None:
    frame = spark.sql(
        "SELECT * FROM VALUES (1L, named_struct('a', 1, 'b', array(named_struct('c', 'z')))), (2L, NULL) AS"
        " t(id, s)"
    )
    expected = ["{'id': 1, 's': {'a': 1, 'b': [{'c': 'z'}]}}", "{'id': 2, 's': None}"]
    for name, source in (("here", frame), ("tasks", frame.coalesce(1))):
        assert rows(deltaic.write(tmp_path / name, source)) == expected
        assert rows(DeltaTable(tmp_path / name)) == expected


def test_a_failed_job_leaves_nothing(tmp_path: Path, spark: Any) -> None:
    table = deltaic.write(tmp_path / "t", spark.range(10))
    before = sorted(path.name for path in (tmp_path / "t").iterdir())
    with pytest.raises(InvalidArgumentError, match="DIVIDE_BY_ZERO"):
        deltaic.write(table, spark.range(0, 1000, 1, 4).selectExpr("id DIV (id - 999) AS id"), mode="append")
    assert sorted(path.name for path in (tmp_path / "t").iterdir()) == before
    assert DeltaTable(tmp_path / "t").version == 0


def test_spark_writes_text_that_is_not_utf8(tmp_path: Path, spark: Any) -> None:
    path, text = str(tmp_path / "t"), "CAST(X'ff61' AS STRING) AS s"
    table = deltaic.write(path, spark.sql(f"SELECT 1 AS id, {text}"))
    deltaic.write(table, spark.range(2, 3).selectExpr("CAST(id AS INT) AS id", text), mode="append")
    table.update({"s": "CAST(X'ff62' AS STRING)"}, "id = 2")
    table.merge(spark.sql(f"SELECT 3 AS id, {text}"), "t.id = s.id").when_not_matched_insert_all().execute()
    found = deltaic.spark.read(spark, path).selectExpr("id", "hex(s) AS bytes").collect()
    assert sorted(map(tuple, found)) == [(1, "FF61"), (2, "FF62"), (3, "FF61")]


def test_tasks_that_write_by_arrow_refuse_text_that_is_not_utf8(tmp_path: Path, spark: Any) -> None:
    frame = spark.sql("SELECT 1 AS id, named_struct('s', CAST(X'ff61' AS STRING)) AS n")
    with pytest.raises(Exception, match="column n: text that is not UTF-8"):
        frame.write.format("deltaic").mode("append").save(str(tmp_path / "t"))


def test_a_failed_cleanup_does_not_hide_the_error_of_the_job(
    tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: Any) -> None:
        raise OSError("the folder is busy")

    table = deltaic.write(tmp_path / "t", spark.range(10))
    monkeypatch.setattr("deltaic.engine.spark.write.delete_folder", fail)
    with (
        caplog.at_level(logging.WARNING, "deltaic.spark"),
        pytest.raises(InvalidArgumentError, match="DIVIDE_BY_ZERO"),
    ):
        deltaic.write(table, spark.range(0, 9, 1, 4).selectExpr("id DIV (id - 8) AS id"), mode="append")
    assert "the folder is busy" in caplog.text


def test_row_counts_and_compression_are_options(tmp_path: Path, spark: Any) -> None:
    import deltaic.spark

    deltaic.spark.write(
        spark.range(0, 100, 1, 1), tmp_path / "t", parquet=ParquetOptions(compression="gzip(6)")
    )
    table = DeltaTable(tmp_path / "t", spark=spark)
    [file] = table.files().to_arrow()["location"].to_pylist()
    assert pq.ParquetFile(file).metadata.row_group(0).column(0).compression == "GZIP"
    before = sorted(each.name for each in (tmp_path / "t").iterdir())
    with pytest.raises(UnsupportedFeatureError, match=r"gzip\(9\)"):
        deltaic.spark.write(
            spark.range(100), tmp_path / "t", mode="append", parquet=ParquetOptions(compression="gzip(9)")
        )
    assert sorted(each.name for each in (tmp_path / "t").iterdir()) == before
    commit = CommitOptions(transactions={"job": 1}, user_metadata="first")
    for _ in range(2):  # the second time it is known
        deltaic.spark.write(spark.range(5), table, mode="append", commit=commit)
    assert table.version == 1
    assert table.history(1)[0]["userMetadata"] == "first"


@pytest.mark.parametrize("native", ["auto", "never"])
def test_partitions_of_a_frame_are_kept(tmp_path: Path, spark: Any, native: str) -> None:
    session = spark.newSession()
    deltaic.spark.enable(session, native=native)  # type: ignore[arg-type]

    def files(name: str, rows: Any, **options: Any) -> int:
        rows.write.format("delta").options(**options).save(str(tmp_path / name))
        table = DeltaTable(tmp_path / name)
        assert table.scan().count() == 8
        return table.files().to_arrow().num_rows

    assert files("repartitioned", session.range(8).repartition(4)) == 4
    assert files("range", session.range(0, 8, 1, 3).selectExpr("id", "id AS other")) == 3
    assert files("some empty", session.range(0, 8, 1, 2).repartition(5, "id").where("id < 100")) <= 5
    assert files("optimized", session.range(8).repartition(4), optimizeWrite=True) == 1
    assert files("in the plan", session.createDataFrame([(i,) for i in range(8)], "id long")) <= 2


def test_a_table_made_of_a_frame_takes_nulls(tmp_path: Path, spark: Any) -> None:
    deltaic.write(tmp_path / "t", spark.range(3))
    assert DeltaTable(tmp_path / "t").schema.to_ddl() == "id bigint"


def test_rows_of_one_value_spread_over_files_along_the_curve(tmp_path: Path, spark: Any) -> None:
    heavy = spark.range(0, 200_000, 1, 4).selectExpr(
        "IF(id % 10 = 0, id, 7L) AS a", "id % 1000 AS b", "uuid() AS filler"
    )
    table = deltaic.write(tmp_path / "t", heavy)
    target = sum(table.files().to_arrow()["size"].to_pylist()) // 8
    expected = table.scan(["a", "b"]).to_spark().selectExpr("sum(a)", "sum(b)", "count(*)").first()
    table.optimize.z_order(["a", "b"], target_size=target)
    files = table.files().to_arrow()
    sizes = files["size"].to_pylist()
    assert 6 <= len(sizes) <= 10
    assert max(sizes) <= 2 * min(sizes)
    assert table.scan(["a", "b"]).to_spark().selectExpr("sum(a)", "sum(b)", "count(*)").first() == expected
    assert table.files("a > 100000 and b < 100").to_arrow().num_rows < len(sizes)


def test_compaction_makes_one_file_of_many(tmp_path: Path, spark: Any) -> None:
    table = deltaic.write(
        tmp_path / "t", spark.range(0, 1000, 1, 1), properties={"delta.enableDeletionVectors": True}
    )
    for start in (1000, 2000, 3000):
        deltaic.write(table, spark.range(start, start + 1000, 1, 1), mode="append")
    table.delete("id % 10 = 0")
    assert table.optimize.compact()["num_files_added"] == 1
    assert table.files().to_arrow()["num_records"].to_pylist() == [3600]
    assert table.scan().to_spark().selectExpr("sum(id)").first()[0] == sum(i for i in range(4000) if i % 10)


@pytest.mark.parametrize("partitioned", [False, True])
def test_footers_are_read_by_tasks_where_they_are_many(
    tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch, partitioned: bool
) -> None:
    import deltaic.spark
    from deltaic.engine.spark import footers

    session = spark.newSession()
    session.conf.set(footers.DRIVER_SETTING, "3")
    session.conf.set(footers.TASK_SETTING, "4")
    session.conf.set("spark.deltaic.driverRows", "0")
    jobs, by_tasks = [], footers._by_tasks
    monkeypatch.setattr(footers, "_by_tasks", lambda *args: jobs.append(args[1].num_rows) or by_tasks(*args))
    deltaic.spark.enable(session)
    rows = session.range(1000).selectExpr("id", "id % 5 AS part", "id / 4 AS x")
    for name in ("tasks", "driver"):
        if name == "driver":
            session.conf.set(footers.DRIVER_SETTING, "1000")
        writer = rows.write.format("delta").option("maxRecordsPerFile", 20 if partitioned else 100)
        (writer.partitionBy("part") if partitioned else writer).save(str(tmp_path / name))
    tasks, driver = DeltaTable(tmp_path / "tasks"), DeltaTable(tmp_path / "driver")
    assert jobs == [50 if partitioned else 10]
    assert tasks.files().to_arrow().num_rows == jobs[0]
    assert (
        tasks.scan(where="id = 777").to_arrow().to_pylist()
        == driver.scan(where="id = 777").to_arrow().to_pylist()
    )
    for line in (tmp_path / "tasks" / "_delta_log" / "00000000000000000000.json").read_text().splitlines():
        if (add := json.loads(line).get("add")) is not None:
            stats = json.loads(add["stats"])
            assert stats["maxValues"]["id"] - stats["minValues"]["id"] < 100
            assert (stats["numRecords"], stats["tightBounds"]) == (20 if partitioned else 100, True)

    def lost(*args: Any) -> Any:
        raise OSError("no way there")

    session.conf.set(footers.DRIVER_SETTING, "3")
    monkeypatch.setattr(footers, "_by_tasks", lost)
    rows.write.format("delta").mode("append").option("maxRecordsPerFile", 100).save(str(tmp_path / "tasks"))
    assert DeltaTable(tmp_path / "tasks").scan(where="id > 990").count() == 18


@pytest.mark.parametrize(
    "properties",
    [{}, {"delta.columnMapping.mode": "name", "delta.enableRowTracking": True}],
    ids=["plain", "mapped and tracked"],
)
def test_tasks_write_by_themselves(tmp_path: Path, spark: Any, properties: dict[str, Any]) -> None:
    from deltaic.engine.spark import direct
    from deltaic.engine.spark.sources import frame_of

    session = spark.newSession()
    session.conf.set(direct.SETTING, "true")
    session.conf.set("spark.deltaic.driverRows", "0")
    session.conf.set("spark.sql.session.timeZone", "America/New_York")
    vectors = {"delta.enableDeletionVectors": True}
    for name, source in (("tasks", frame_of(session, EVERYTHING)[0].repartition(2)), ("local", EVERYTHING)):
        deltaic.write(tmp_path / name, source, partition_by=["by"], properties={**vectors, **properties})
        table = DeltaTable(tmp_path / name, spark=session if name == "tasks" else None)
        table.update({"by": "7"}, "id = 2")
    tasks, local = DeltaTable(tmp_path / "tasks"), DeltaTable(tmp_path / "local")
    assert rows(tasks.scan().to_arrow()) == rows(local.scan().to_arrow())
    assert not list((tmp_path / "tasks").rglob("_temporary"))
    assert {line["num_records"] for line in tasks.files().to_arrow().to_pylist()} <= {1, 2}
    DeltaTable(tmp_path / "tasks", spark=session).optimize.compact()
    assert rows(DeltaTable(tmp_path / "tasks").scan().to_arrow()) == rows(local.scan().to_arrow())
    failing = session.range(0, 4000, 1, 2).selectExpr("id DIV (id - 3999) AS id", "1 AS by")
    with pytest.raises(InvalidArgumentError, match="DIVIDE_BY_ZERO"):
        deltaic.write(tmp_path / "tasks", failing, mode="append")
    assert rows(DeltaTable(tmp_path / "tasks").scan().to_arrow()) == rows(local.scan().to_arrow())


def test_who_writes(tmp_path: Path, spark: Any) -> None:
    from types import SimpleNamespace

    from deltaic.engine.spark import direct
    from deltaic.protocol.schema import Array, Field, Schema

    plain = Field("a", Array("integer"))
    with_ids = plain.with_(metadata={direct.NESTED_IDS: {"a.element": 2}})

    def asked(location: str, said: str, field: Field = plain) -> bool:
        session = SimpleNamespace(conf=SimpleNamespace(get=lambda name, default: said))
        place = SimpleNamespace(location=location, __reduce__=lambda: (None, (location,)))
        target = SimpleNamespace(store=place, schema=SimpleNamespace(json=Schema([field]).to_json()))
        return direct.is_direct(SimpleNamespace(spark=session), target)  # type: ignore[arg-type]

    assert asked("s3a://bucket/t", "auto")
    assert not asked("s3a://bucket/t", "false")
    assert not asked("hdfs://name/t", "auto")
    assert not asked(str(tmp_path), "auto")
    assert asked(str(tmp_path), "true")
    assert asked(str(tmp_path), "false", with_ids)  # Spark's writer would leave out the ids of elements
    with pytest.raises(InvalidArgumentError, match=direct.SETTING):
        asked(str(tmp_path), "perhaps")


@pytest.mark.parametrize(
    "text", ["s COLLATE UTF8_LCASE", "array(s COLLATE UNICODE_CI)", "named_struct('x', s COLLATE UTF8_LCASE)"]
)
def test_text_with_a_collation_is_refused(tmp_path: Path, spark: Any, text: str) -> None:
    frame = spark.sql("SELECT 'a' AS s")
    with pytest.raises(UnsupportedFeatureError, match=r"column [cx].*collation.*(LCASE|UNICODE_CI)"):
        deltaic.write(tmp_path / "t", frame.selectExpr(f"{text} AS c"))
    assert not (tmp_path / "t").exists()
    deltaic.write(
        tmp_path / "t", frame.selectExpr("CAST(s COLLATE UTF8_LCASE AS STRING COLLATE UTF8_BINARY) AS c")
    )
    assert DeltaTable(tmp_path / "t").scan().to_arrow().to_pylist() == [{"c": "a"}]


def test_a_new_column_of_nulls_gets_its_type_later(session: Any, tmp_path: Path) -> None:
    """delta-spark too adds `lit(None)` as a column of type void."""
    place = str(tmp_path / "t")
    session.range(1).write.format("delta").save(place)

    def append(id: int, value: Any) -> None:
        frame = session.range(id, id + 1).withColumn("n", value)
        frame.write.format("delta").mode("append").option("mergeSchema", "true").save(place)

    append(1, F.lit(None))
    assert session.read.format("delta").load(place).dtypes == [("id", "bigint"), ("n", "void")]
    session.sql(f"UPDATE delta.`{place}` SET id = 10 WHERE n IS NULL AND id = 1")
    append(2, F.lit("x"))
    assert session.read.format("delta").load(place).dtypes == [("id", "bigint"), ("n", "string")]
    rows = session.read.format("delta").load(place).collect()
    assert {(row.id, row.n) for row in rows} == {(0, None), (10, None), (2, "x")}


def test_a_frame_that_was_written_reads_the_newest_version_afterwards(spark: Any, tmp_path: Path) -> None:
    """Spark keeps the first plan of a DataFrame, and a write must not be what makes it."""
    table = deltaic.write(tmp_path / "t", pa.table({"id": pa.array(range(10), pa.int64())}))
    deltaic.write(tmp_path / "copy", pa.table({"id": pa.array([0], pa.int64())}))
    opened = DeltaTable(tmp_path / "t", spark=spark)
    writes: list[Callable[[Any], object]] = [
        lambda frame: deltaic.write(DeltaTable(tmp_path / "copy", spark=spark), frame, mode="append"),
        lambda frame: (
            DeltaTable(tmp_path / "copy", spark=spark)
            .merge(frame, "t.id = s.id")
            .when_matched_delete()
            .execute()
        ),
    ]
    for number, write in enumerate(writes, start=1):
        frame = newest(spark, str(tmp_path / "t"))
        write(frame)
        opened.delete(f"id < {number}")
        assert (len(frame.collect()), frame.count()) == (10 - number, 10 - number)
    table.refresh()
    assert table.scan().count() == 10 - len(writes)


def test_only_rows_of_other_tables_are_blind_appends(session: Any, tmp_path: Path) -> None:
    own, other = (f"delta.`{deltaic.write(tmp_path / name, {'id': [1, 2]}).location}`" for name in "tu")
    frame = session.read.format("delta").load(str(tmp_path / "t"))
    merge = "MERGE INTO {own} USING (SELECT id + 9 AS id FROM {source}) s ON {own}.id = s.id"
    frame.createOrReplaceTempView("own_rows")
    blind = {
        f"INSERT INTO {own} VALUES (3L)": True,
        f"INSERT INTO {own} SELECT * FROM {other}": True,
        f"INSERT INTO {own} SELECT * FROM {own} VERSION AS OF 0": True,
        f"INSERT INTO {own} SELECT id FROM {own} WHERE id = 1": False,
        f"INSERT INTO {own} SELECT (SELECT max(id) FROM {own}) + 1": False,
        f"INSERT INTO {own} SELECT * FROM {other} WHERE id IN (SELECT id FROM own_rows)": False,
        f"WITH c AS (SELECT * FROM {own}) INSERT INTO {own} SELECT * FROM c LIMIT 1": False,
        f"{merge.format(own=own, source=own)} WHEN NOT MATCHED THEN INSERT *": False,
    }
    for statement in blind:
        session.sql(statement).collect()
    frame.limit(1).write.format("delta").mode("append").save(str(tmp_path / "t"))
    history = DeltaTable(tmp_path / "t").history()
    found = [entry["isBlindAppend"] for entry in reversed(history)]
    assert found == [True, *blind.values(), False]


def test_own_rows_that_change_meanwhile_are_a_conflict(session: Any, tmp_path: Path) -> None:
    from pyspark.sql.functions import udf

    table = deltaic.write(tmp_path / "t", {"id": [1, 2]})
    path = table.location

    def appended(number):  # type: ignore[no-untyped-def]  # Spark warns of a hint that is no pandas type
        deltaic.write(path, {"id": [number + 1]}, mode="append")  # while the statement runs
        return number + 1

    frame = session.read.format("delta").load(path).selectExpr("max(id) AS id")
    frame = frame.select(udf(appended, "long")("id"))
    with pytest.raises(ConcurrentAppendException):
        frame.toDF("id").write.format("delta").mode("append").save(path)
    assert sorted(DeltaTable(path).scan().to_arrow()["id"].to_pylist()) == [1, 2, 3]


def test_intervals_are_written_as_text(session: Any, tmp_path: Path) -> None:
    """No table can store an interval, but a string column takes its text, as in delta-spark."""
    table = f"delta.`{tmp_path}`"
    session.sql(f"CREATE TABLE {table} (id INT, text STRING, s STRUCT<x: STRING>) USING delta")
    session.sql(
        f"INSERT INTO {table} SELECT 1, DATE'2026-01-03' - DATE'2026-01-01',"
        " named_struct('x', INTERVAL 3 MONTH)"
    )
    session.sql(f"UPDATE {table} SET text = INTERVAL '1:30' HOUR TO MINUTE, s.x = id * INTERVAL 1 DAY")
    session.sql(
        f"MERGE INTO {table} t USING (SELECT 2 AS id, make_interval(1, 2) AS text, struct(INTERVAL 90 SECOND)"
        " AS s) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, text) VALUES (s.id, s.text)"
    )
    rows = session.sql(f"SELECT id, text, s.x FROM {table} ORDER BY id").collect()
    assert list(map(tuple, rows)) == [
        (1, "INTERVAL '01:30' HOUR TO MINUTE", "INTERVAL '1 00:00:00' DAY TO SECOND"),
        (2, "1 years 2 months", None),
    ]
    for change in (
        f"CREATE OR REPLACE TABLE {table} USING delta AS SELECT 1 AS id, array(INTERVAL 1 DAY) AS text",
        f"INSERT WITH SCHEMA EVOLUTION INTO {table} SELECT 3, 'x', NULL, INTERVAL 1 DAY AS more",
    ):
        with pytest.raises(UnsupportedFeatureError, match="the type 'interval day' is not supported"):
            session.sql(change)
    assert DeltaTable(tmp_path).version == 3
