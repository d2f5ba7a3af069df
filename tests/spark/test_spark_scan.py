"""Reading on Spark by its driver interfaces and by public ones: the rows are those of the embedded engine,
for files of every kind."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deltaic
from deltaic import DeltaTable
from deltaic.engine.spark import streamed_rows
from deltaic.engine.spark.engine import SETTING, engine_of
from deltaic.engine.spark.native.jvm import Jvm
from deltaic.errors import InvalidArgumentError, ProtocolError, UnsupportedFeatureError

VECTORS = {"delta.enableDeletionVectors": True}
MAPPED = {"delta.columnMapping.mode": "name", **VECTORS}


@pytest.fixture(params=["auto", "never"], ids=["native", "portable"])
def path(request: pytest.FixtureRequest, spark: Any) -> Iterator[str]:
    """Which way the session reads."""
    setattr(spark, SETTING, request.param)
    yield request.param
    delattr(spark, SETTING)


def rows(data: pa.Table) -> list[str]:
    return sorted(map(repr, data.to_pylist()))


def same(
    table: DeltaTable, spark: Any, columns: list[str] | None = None, where: str | None = None
) -> pa.Table:
    """Both engines give the same rows and the same columns; -> Spark's answer."""
    ours = DeltaTable(table.location, version=table.version, spark=spark).scan(columns, where)
    theirs = table.scan(columns, where).to_arrow()
    found = ours.to_arrow()
    assert found.schema.equals(theirs.schema, check_metadata=True)
    assert rows(found) == rows(theirs)
    assert ours.count() == theirs.num_rows
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streamed_rows, "COLLECTED_BYTES", -1)
        streamed = ours.to_reader().read_all()
    assert streamed.schema.equals(theirs.schema, check_metadata=True)
    assert rows(streamed) == rows(theirs)
    return found


def numbers(count: int, start: int = 0) -> pa.Table:
    return pa.table({"id": range(start, start + count), "name": [f"n{i % 7}" for i in range(count)]})


def test_deleted_rows_in_both_forms_and_files_without_any(tmp_path: Path, spark: Any, path: str) -> None:
    table = deltaic.write(tmp_path / "t", numbers(200_000), properties=VECTORS)
    deltaic.write(table, numbers(200_000, 200_000), mode="append")
    deltaic.write(table, numbers(1000, 400_000), mode="append")
    table.delete("id % 9 = 0 and id < 200000")  # bits
    table.delete("id in (200001, 399999)")  # a roaring bitmap
    found = same(table, spark)
    assert found.num_rows == 401_000 - 22_223 - 2
    same(table, spark, ["name"], "id > 399990")
    same(table, spark, ["id"], "id between 100 and 130 or length(name) = 1")
    same(table, spark, ["id"], "id < 0")


def test_partition_values_of_every_type(tmp_path: Path, spark: Any, path: str) -> None:
    moment = dt.datetime(2024, 6, 1, 10, 11, 12, 123456, tzinfo=dt.timezone.utc)
    columns = {
        "s": pa.array(["a b/c=%20é", "", None, "x"]),
        "d": pa.array([dt.date(1500, 1, 1), dt.date(2024, 2, 29), None, dt.date(9999, 12, 31)]),
        "t": pa.array([moment, None, moment.replace(year=1960), moment], pa.timestamp("us", "UTC")),
        "n": pa.array([moment.replace(tzinfo=None), None, None, dt.datetime(1, 1, 1)], pa.timestamp("us")),
        "m": pa.array(
            [Decimal("1.50"), Decimal("-0.01"), None, Decimal("99999999.99")], pa.decimal128(10, 2)
        ),
        "f": pa.array([1.5, float("nan"), None, -0.0]),
        "b": pa.array([True, False, None, True]),
        "i": pa.array([1, 2, None, -3], pa.int8()),
    }
    table = deltaic.write(tmp_path / "t", pa.table({"id": range(4), **columns}), partition_by=list(columns))
    same(table, spark)
    for where in (
        "s = 'x' or d = date'1500-01-01'",
        "t > timestamp'2000-01-01' and upper(s) like 'A%'",
        "m < 0 or i is null",
        "f = 0 or b",
        "n < timestamp_ntz'2000-01-01 00:00:00'",
        "length(s) = 1 and id > 2",
    ):
        same(table, spark, None, where)
    frame = DeltaTable(table.location, spark=spark).scan().to_spark()
    assert frame.where("i = 2 or (b and i < 0)").count() == 2
    assert frame.where("s is null").count() == 2


def test_mapped_names_nested_too(tmp_path: Path, spark: Any, path: str) -> None:
    inner = pa.struct([("x y", pa.int64()), ("z", pa.string())])
    data = pa.table(
        {
            "a b": pa.array([1, 2, 3]),
            "s": pa.array([{"x y": 1, "z": "p"}, None, {"x y": None, "z": "q"}], inner),
            "l": pa.array([[{"x y": 7, "z": None}], [], None], pa.list_(inner)),
            "m": pa.array([[("k", {"x y": 1, "z": "v"})], None, []], pa.map_(pa.string(), inner)),
        }
    )
    table = deltaic.write(tmp_path / "t", data, properties=MAPPED)
    table.alter.rename_column("a b", "renamed")
    table.alter.add_columns("extra double")
    table.alter.drop_columns("l")
    deltaic.write(table, pa.table({"renamed": [9], "extra": [0.5]}), mode="append")
    table.delete("renamed = 2")
    found = same(table, spark)
    assert found.column_names == ["renamed", "s", "m", "extra"]
    same(table, spark, ["s.`x y`", "renamed"])
    same(table, spark, ["extra"], "s.z = 'q' or renamed = 9")


def test_columns_are_found_by_their_ids(tmp_path: Path, spark: Any, path: str) -> None:
    """A file of a program that calls them otherwise: two names are swapped, at the top and in the struct."""
    inner = pa.struct([("x", pa.int64()), ("y", pa.int64())])
    data = pa.table(
        {
            "a": pa.array(range(1000)),
            "b": pa.array(range(5000, 6000)),
            "s": pa.array([{"x": i, "y": -i} for i in range(1000)], inner),
            "f": pa.array([i / 2 for i in range(1000)]),
        }
    )
    table = deltaic.write(tmp_path / "t", data, properties={"delta.columnMapping.mode": "id", **VECTORS})
    table.delete("a = 3")
    [file] = table.files().to_arrow()["location"].to_pylist()
    written = pq.read_table(file)
    a, b, s, f = (written.schema.field(index) for index in range(4))
    x, y = s.type
    nested = pa.struct([x.with_name(y.name), y.with_name(x.name)])
    whole = written.column(2).combine_chunks()
    columns = [
        written.column(0),
        written.column(1),
        pa.StructArray.from_arrays(whole.flatten(), fields=list(nested)),
        written.column(3),
    ]
    renamed = [a.with_name(b.name), b.with_name(a.name), s.with_type(nested), f.with_name("else")]
    for log in (tmp_path / "t" / "_delta_log").glob("*.json"):
        before = os.path.getsize(file)
        pq.write_table(
            pa.Table.from_arrays(columns, schema=pa.schema(renamed)), f"{file}.new", row_group_size=100
        )
        log.write_text(
            log.read_text().replace(f'"size":{before}', f'"size":{os.path.getsize(file + ".new")}')
        )
    os.replace(f"{file}.new", file)
    for checksum in (tmp_path / "t" / "_delta_log").glob("*.crc"):
        checksum.unlink()
    table = DeltaTable(tmp_path / "t")
    assert same(table, spark).num_rows == 999
    same(table, spark, ["s.y", "b"])
    same(table, spark, ["f"], "a between 10 and 20 or s.x = 40")
    frame = DeltaTable(tmp_path / "t", spark=spark).scan().to_spark()
    assert [tuple(row) for row in frame.where("a = 7").select("a", "b", "s.x", "f").collect()] == [
        (7, 5007, 7, 3.5)
    ]
    assert [tuple(row) for row in frame.where("s.y = -8").selectExpr("s.x", "s.y").collect()] == [(8, -8)]
    assert frame.where("b < 5000 or s.x < 0").count() == 0


def test_widened_and_missing_columns(tmp_path: Path, spark: Any, path: str) -> None:
    data = pa.table(
        {
            "i": pa.array([1, 2], pa.int8()),
            "f": pa.array([0.5, 1.5], pa.float32()),
            "d": pa.array([1, 2], pa.date32()),
        }
    )
    table = deltaic.write(tmp_path / "t", data, properties={"delta.enableTypeWidening": True, **VECTORS})
    for name, wider in (("i", "bigint"), ("f", "double"), ("d", "timestamp_ntz")):
        table.alter.change_column(name, type=wider)
    table.alter.add_columns("later string, s struct<a int>")
    deltaic.write(table, pa.table({"i": [2**40]}), mode="append")
    table.delete("i = 2")
    same(table, spark)
    same(table, spark, None, "i > 1000 or later is null")


def test_a_frame_is_an_ordinary_one(tmp_path: Path, spark: Any, path: str) -> None:
    from pyspark.sql import functions as F

    table = deltaic.write(tmp_path / "t", numbers(100), properties=VECTORS)
    table.delete("id < 10")
    before = DeltaTable(table.location, spark=spark)
    frame = before.scan().to_spark()
    later = DeltaTable(table.location, spark=spark)
    later.delete("id < 50")
    assert frame.count() == 90  # the snapshot that it was made with
    assert later.scan().to_spark().unionAll(frame).count() == 140
    joined = frame.alias("a").join(frame.alias("b"), F.expr("a.id = b.id + 1"))
    assert joined.count() == 89
    assert frame.join(later.scan().to_spark().select("id"), "id").count() == 50
    assert frame.groupBy("name").count().agg(F.sum("count")).first()[0] == 90
    assert before.scan(limit=5).to_spark().count() == 5
    assert before.scan(limit=5).to_arrow().num_rows == 5


def test_what_does_not_resolve_is_told_by_name(tmp_path: Path, spark: Any, path: str) -> None:
    table = DeltaTable(deltaic.write(tmp_path / "t", numbers(3)).location, spark=spark)
    with pytest.raises(InvalidArgumentError, match="nope"):
        table.scan(where="nope = 3")
    with pytest.raises(InvalidArgumentError, match=r"(?i)syntax|parse"):
        table.scan(where="id = = 3")
    for text in ("sum(id) > 3", "id in (select 1)", "row_number() over (order by id) = 1"):
        with pytest.raises(
            (InvalidArgumentError, UnsupportedFeatureError), match=r"(?i)aggregate|subquery|window|select"
        ):
            table.scan(where=text)
    with pytest.raises(InvalidArgumentError, match="DIVIDE_BY_ZERO"):
        table.scan(where="1 / (id - id) > 1").to_arrow()


def test_a_file_that_is_gone_is_an_error_and_one_that_is_skipped_is_not(
    tmp_path: Path, spark: Any, path: str
) -> None:
    table = deltaic.write(tmp_path / "t", numbers(10))
    deltaic.write(table, numbers(10, 1000), mode="append")
    [gone] = table.files("id < 5").to_arrow()["location"].to_pylist()
    os.unlink(gone)
    ours = DeltaTable(table.location, spark=spark)
    assert ours.scan(where="id > 500").count() == 10
    if path == "auto":  # Spark's own filter leaves the file out when the query is planned
        assert ours.scan().to_spark().where("id > 500").count() == 10
    with pytest.raises(ProtocolError, match="is not there"):
        ours.scan().to_arrow()


def test_names_of_files_and_folders_may_hold_anything(tmp_path: Path, spark: Any, path: str) -> None:
    table = deltaic.write(tmp_path / "a b%20c#d[e]{f}é", numbers(20), properties=VECTORS)
    table.delete("id = 3")
    assert same(table, spark).num_rows == 19


def test_not_a_number_is_greater_than_what_parquet_says(tmp_path: Path, spark: Any, path: str) -> None:
    floats = [0.5, float("nan"), None, -1.0]
    inner = pa.struct([("y", pa.float64())])
    data = pa.table(
        {
            "x": floats,
            "f": pa.array(floats, pa.float32()),
            "s": pa.array([{"y": value} for value in floats], inner),
        }
    )
    frame = DeltaTable(deltaic.write(tmp_path / "t", data).location, spark=spark).scan().to_spark()
    for where in ("x > 1", "f >= 2", "s.y > 1", "x = double('nan')"):
        assert frame.where(where).count() == 1, where


@pytest.mark.parametrize("mode", ["none", "name", "id"])
def test_columns_are_chosen_in_one_call_or_one_by_one(
    tmp_path: Path, spark: Any, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names that need quotes, floats, comments, a partition, a struct and row ids, with and without the short
    way."""
    fields = [
        pa.field("a`b:c", pa.int64(), metadata={"comment": "a 'number'"}),
        pa.field("f", pa.float64(), metadata={"comment": "ü"}),
    ]
    fields += [
        pa.field("p", pa.string()),
        pa.field("st", pa.struct([("x", pa.float32()), ("y", pa.string())])),
    ]
    columns = [
        [1, 2, 3],
        [0.5, float("nan"), None],
        ["u", "v", "u"],
        [{"x": 1.5, "y": "s"}, None, {"x": None, "y": "t"}],
    ]
    data = pa.Table.from_arrays(
        [pa.array(each, field.type) for each, field in zip(columns, fields, strict=True)],
        schema=pa.schema(fields),
    )
    properties = VECTORS if mode == "none" else {**VECTORS, "delta.columnMapping.mode": mode}
    table = deltaic.write(tmp_path / "t", data, partition_by=["p"], properties=properties)
    table.delete("`a``b:c` = 3")

    def shown() -> list[Any]:
        scans = (None, ["f", "a`b:c"], ["st", "p"])
        frames = [DeltaTable(table.location, spark=spark).scan(each).to_spark() for each in scans]
        found = [
            (frame.schema.json(), sorted(map(repr, frame.where("f IS NULL OR f > 0 OR true").collect())))
            for frame in frames[:2]
        ]
        return [*found, frames[2].schema.json(), sorted(map(repr, frames[2].collect()))]

    quick = shown()
    made = DeltaTable(table.location, spark=spark).update({"f": "f + 1"}, "f > 0")
    monkeypatch.setattr("deltaic.engine.spark.columns.ScanColumns.plain", lambda self, row_index: None)
    same(DeltaTable(table.location), spark)
    table.restore(version=1)
    assert shown() == quick
    assert (
        DeltaTable(table.location, spark=spark).update({"f": "f + 1"}, "f > 0")["num_updated_rows"]
        == made["num_updated_rows"]
        == 2
    )


def test_an_error_of_a_partition_filter_keeps_its_condition(tmp_path: Path, spark: Any, path: str) -> None:
    from pyspark.errors import NumberFormatException

    deltaic.write(tmp_path, {"id": [1, 2], "p": ["1", "x"]}, partition_by="p")
    frame = DeltaTable(tmp_path, spark=spark).scan().to_spark().where("CAST(p AS INT) = 1")
    with pytest.raises(NumberFormatException) as raised:
        frame.collect()
    assert raised.value.getCondition() == "CAST_INVALID_INPUT"


def test_a_reader_of_many_rows_takes_partitions_one_after_another(
    tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streamed_rows, "COLLECTED_BYTES", -1)
    table = deltaic.write(tmp_path / "t", numbers(8))
    for start in range(8, 64, 8):
        deltaic.write(table, numbers(8, start), mode="append")
    spark.conf.set("spark.sql.files.maxPartitionBytes", 4 * 1024**2)  # one file, with the cost of opening it
    spark.sparkContext.setJobGroup("streamed", "")
    try:
        with DeltaTable(table.location, spark=spark).scan().to_reader() as reader:
            assert reader.read_next_batch().num_rows == 8
            assert 1 <= len(spark.sparkContext.statusTracker().getJobIdsForGroup("streamed")) <= 3
            left = [batch.num_rows for batch in reader]
        assert left == [8] * 7
    finally:
        spark.conf.unset("spark.sql.files.maxPartitionBytes")
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)


def test_equal_reads_are_equal_plans(tmp_path: Path, spark: Any) -> None:
    table = deltaic.write(tmp_path / "t", numbers(100), properties=VECTORS)
    table.delete("id = 1")

    def frame(version: int) -> Any:
        return DeltaTable(table.location, version=version, spark=spark).scan().to_spark()

    assert frame(1)._jdf.sameSemantics(frame(1)._jdf)
    assert not frame(1)._jdf.sameSemantics(frame(0)._jdf)
    kept = frame(1).cache()
    try:
        assert kept.count() == 99
        assert "InMemory" in frame(1).select("id")._jdf.queryExecution().executedPlan().toString()
        assert "InMemory" not in frame(0).select("id")._jdf.queryExecution().executedPlan().toString()
    finally:
        kept.unpersist()


def test_a_native_scan_is_one_stage_without_what_files_do_not_need(tmp_path: Path, spark: Any) -> None:
    table = deltaic.write(tmp_path / "t", numbers(100), properties=VECTORS)
    plain = DeltaTable(table.location, spark=spark).scan().to_spark()
    assert "row_index" not in plain._jdf.queryExecution().executedPlan().toString()
    table.delete("id = 1")
    marked = (
        DeltaTable(table.location, spark=spark)
        .scan()
        .to_spark()
        ._jdf.queryExecution()
        .executedPlan()
        .toString()
    )
    assert "Join" not in marked
    assert "Exchange" not in marked
    assert "Batched: true" in marked
    size = plain._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()
    assert 0 < int(str(size)) < 10 * 1024**2  # small tables are broadcast


def test_of_many_files_those_that_a_query_leaves(
    tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A scan gives the same rows if all files are sent to the JVM at once, if only the files that statistics
    cannot exclude are sent, and if all are sent when a query needs them."""
    data = pa.table({"id": range(60), "part": [i // 20 for i in range(60)]})
    for start in range(0, 60, 5):
        deltaic.write(
            tmp_path / "t", data.slice(start, 5), mode="append", partition_by=["part"], properties=VECTORS
        )
    DeltaTable(tmp_path / "t").delete("id in (7, 33)")
    told: list[int] = []
    rows_of = Jvm.rows

    def counted(self: Jvm, table: pa.Table, schema: Any) -> Any:
        told.append(table.num_rows)
        return rows_of(self, table, schema)

    monkeypatch.setattr("deltaic.engine.spark.native.files.MANY_FILES", 0)
    monkeypatch.setattr(Jvm, "rows", counted)
    live = [i for i in range(60) if i not in (7, 33)]
    frame = DeltaTable(tmp_path / "t", spark=spark).scan().to_spark()
    engine_of(spark).jvm.is_rehearsed = True
    told.clear()
    for where, expected in {
        "id between 40 and 44": [40, 41, 42, 43, 44],
        "id = 34 or id = 8": [8, 34],
        "part = 1 and id > 37": [38, 39],
        "part = 2": [i for i in live if i >= 40],
        "id >= 0": live,
        "id between 50 and 53 ": [50, 51, 52, 53],
    }.items():
        assert sorted(row["id"] for row in frame.where(where).collect()) == expected, where
        if where == "id between 40 and 44":
            assert sum(told) == 1


def test_vectors_travel_with_the_tasks_of_their_files(tmp_path: Path, spark: Any) -> None:
    """Neither what all tasks are sent nor another file's task has them."""
    table = None
    for number in range(6):
        part = numbers(160_000, number * 160_000)
        table = deltaic.write(tmp_path / "t", part, mode="append", properties=None if table else VECTORS)
    assert table is not None
    table.delete("id % 2 = 0")  # 20,000 bytes for each file
    session = spark.newSession()
    session.conf.set("spark.sql.files.maxPartitionBytes", "1m")
    session.conf.set("spark.sql.files.openCostInBytes", "1m")
    frame = DeltaTable(tmp_path / "t", spark=session).scan(["id"]).to_spark()
    jvm = spark._jvm

    def weight(thing: Any) -> int:
        made = jvm.java.io.ByteArrayOutputStream()
        jvm.java.io.ObjectOutputStream(made).writeObject(thing)
        return int(made.size())

    plan = frame._jdf.queryExecution().toRdd()
    tasks = [weight(part) for part in plan.partitions()]
    assert len(tasks) == 6
    assert all(20_000 < each < 30_000 for each in tasks)
    assert weight(plan) < 40_000  # of all six: 120,000
    assert frame.selectExpr("sum(id)").first()[0] == sum(range(1, 960_000, 2))


@pytest.mark.parametrize("native", ["auto", "never"])
def test_vectors_too_large_for_the_driver_are_read_by_tasks(
    native: str, tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is broadcast; rows, row ids, constants and what DML finds are the same."""
    kinds = {
        "at": [dt.datetime(2024, 1, 1, tzinfo=dt.timezone.utc)] * 1000,
        "s": pa.array(
            [{"x y": i, "d": Decimal(i)} for i in range(1000)],
            pa.struct([("x y", pa.int64()), ("d", pa.decimal128(9, 2))]),
        ),
        "l": [[i, None] for i in range(1000)],
        "m": pa.array([[("k", i)] for i in range(1000)], pa.map_(pa.string(), pa.int64())),
        "part": [i // 500 for i in range(1000)],
    }
    data = pa.table({"id": range(1000), **kinds})
    properties = {**MAPPED, "delta.enableRowTracking": True}
    table = deltaic.write(tmp_path / "t", data, partition_by=["part"], properties=properties)
    table.delete("id % 3 = 0 and part = 0")
    deltaic.write(table, data.slice(0, 10), mode="append")
    monkeypatch.setattr("deltaic.engine.spark.read_by_tasks.MOST_BITS", 0)
    monkeypatch.setattr(spark, SETTING, native, raising=False)
    if native == "auto":
        monkeypatch.setattr(engine_of(spark).jvm, "most_set_bytes", 0)
        monkeypatch.setattr("deltaic.engine.spark.native.files.MANY_VECTORS", 0)
    same(table, spark)
    same(table, spark, ["l", "s.d", "part"], "id > 100 and part = 0")
    frame = DeltaTable(tmp_path / "t", spark=spark).scan(where="part = 0 and id between 20 and 40").to_spark()
    assert frame.count() == 14
    plan = (
        DeltaTable(tmp_path / "t", version=1, spark=spark)
        .scan(where="part = 0")
        .to_spark()
        ._jdf.queryExecution()
        .executedPlan()
        .toString()
    )
    assert "Broadcast" not in plan
    DeltaTable(tmp_path / "t", spark=spark).update({"id": "-id"}, "id between 20 and 22")
    table.refresh()
    assert sorted(same(table, spark, ["id"])["id"].to_pylist())[:2] == [-22, -20]
