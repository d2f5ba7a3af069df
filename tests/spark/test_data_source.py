"""The formats "deltaic" and "delta" on a session that deltaic has not set up."""

from __future__ import annotations

import datetime as dt
import pickle
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltaic
from deltaic import DeltaTable

pytest.importorskip("pyspark")

DDL = (
    "b boolean, i1 tinyint, i2 smallint, i4 int, i8 bigint not null, f float, d double, s string, bin binary,"
    " dt date, ts timestamp, tn timestamp_ntz, de decimal(10,2), a array<int>, m map<string,int>, st"
    " struct<x:int,y:array<struct<z:string>>>"
)
UTC = dt.timezone.utc


def row(number: int) -> dict[str, Any]:
    moment = dt.datetime(2024, 1, 1 + number % 28, 3, 4, 5, 678901)
    return {
        "b": number % 2 == 0,
        "i1": number % 100,
        "i2": number,
        "i4": number * 1000,
        "i8": number,
        "f": number + 0.5,
        "d": number / 7,
        "s": f"s{number}" if number % 5 else None,
        "bin": bytes([number % 256]),
        "dt": moment.date(),
        "ts": moment.replace(tzinfo=UTC),
        "tn": moment,
        "de": Decimal(number) / 100,
        "a": [number, None],
        "m": [("k", number)],
        "st": {"x": number, "y": [{"z": str(number)}, None]} if number % 3 else None,
    }


def every_type(path: Path, count: int = 40, **properties: Any) -> DeltaTable:
    table = DeltaTable.create(path, DDL, properties=properties)
    schema = deltaic.Schema.from_ddl(DDL)
    rows = pa.Table.from_pylist([row(number) for number in range(count)], pa.schema(schema))
    return deltaic.write(table, rows, mode="append")


def ids(frame: Any, column: str = "i8") -> list[int]:
    return sorted(found[0] for found in frame.select(column).collect())


@pytest.fixture
def pushdown(spark: Any) -> Any:
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    yield
    spark.conf.unset("spark.sql.python.filterPushdown.enabled")


@pytest.mark.parametrize("name", ["deltaic", "delta"])
def test_every_type_is_read(spark: Any, tmp_path: Path, name: str) -> None:
    table = every_type(tmp_path / "t", **{"delta.enableDeletionVectors": True})
    table.delete("i8 % 4 = 1")
    frame = spark.read.format(name).load(str(tmp_path / "t"))
    assert frame.schema["i8"].nullable is False
    assert frame.toArrow().sort_by("i8").to_pylist() == table.scan().to_arrow().sort_by("i8").to_pylist()


def test_versions(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    deltaic.write(path, pa.table({"i8": [1]}))
    moment = DeltaTable(path).history(1)[0]["timestamp"]
    deltaic.write(path, pa.table({"i8": [2]}), mode="append")
    reader = spark.read.format("deltaic")
    assert ids(spark.read.format("deltaic").load(path)) == [1, 2]
    assert ids(reader.option("versionAsOf", 0).load(path)) == [1]
    assert ids(spark.read.format("deltaic").option("timestampAsOf", moment.isoformat()).load(path)) == [1]
    assert ids(spark.read.format("deltaic").load(f"{path}@v0")) == [1]


def test_a_frame_keeps_its_version(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    deltaic.write(path, pa.table({"i8": [1]}))
    frame = spark.read.format("deltaic").load(path)
    deltaic.write(path, pa.table({"i8": [2]}), mode="append")
    assert ids(frame) == [1]
    assert ids(spark.read.format("deltaic").load(path)) == [1, 2]


def test_columns(spark: Any, tmp_path: Path) -> None:
    table = every_type(tmp_path / "t")
    frame = spark.read.format("deltaic").option("columns", "S, i8, st.x").load(table.location)
    assert frame.columns == ["s", "i8", "st"]
    assert (
        frame.toArrow().sort_by("i8").to_pylist()
        == table.scan(["s", "i8", "st.x"]).to_arrow().sort_by("i8").to_pylist()
    )


@pytest.mark.parametrize(
    "condition",
    [
        "i8 = 7",
        "i8 <=> 7 or i8 is null",
        "not (s <=> 's7')",
        "not (s <=> null)",
        "s in ('s1', 's2', null)",
        "s not in ('s1', 's2')",
        "s not in ('s1', null)",
        "s like 's1%' and not (s like 's12%')",
        "s like '%7'",
        "dt between date'2024-01-03' and date'2024-01-05'",
        "ts >= timestamp'2024-01-20T00:00:00Z'",
        "tn < timestamp_ntz'2024-01-02'",
        "de > 0.33",
        "d <= 1.5 and f <> 2.5",
        "b and i1 > 3",
        "st.x > 10",
        "st is null",
        "bin = X'03'",
    ],
)
def test_filters(spark: Any, tmp_path: Path, pushdown: None, condition: str) -> None:
    table = every_type(tmp_path / "t", **{"delta.enableDeletionVectors": True})
    table.delete("i8 in (3, 20)")
    every = spark.createDataFrame(table.scan().to_arrow())
    assert ids(spark.read.format("deltaic").load(table.location).where(condition)) == ids(
        every.where(condition)
    )


def test_filters_of_dates_that_the_julian_calendar_does_not_have(
    spark: Any, tmp_path: Path, pushdown: None
) -> None:
    """Spark makes 1582-10-15 of each of these dates before it passes a filter."""
    path = str(tmp_path / "t")
    for day in (10, 15):
        deltaic.write(path, pa.table({"i8": [day], "d": [dt.date(1582, 10, day)]}), mode="append")
    frame = spark.read.format("deltaic").load(path)
    assert ids(frame.where("d = date'1582-10-10'")) == [10]
    assert ids(frame.where("d >= date'1582-10-06'")) == [10, 15]
    assert ids(frame.where("d in (date'1582-10-10', date'2024-01-01')")) == [10]


def test_pushed_filters_skip_files(tmp_path: Path) -> None:
    from pyspark.sql.datasource import EqualTo, GreaterThan, StringContains

    from deltaic.spark.portable.data_source import DeltaicSource

    path = str(tmp_path / "t")
    for part in range(4):
        deltaic.write(
            path,
            pa.table({"p": [part] * 3, "x": [part * 10 + i for i in range(3)]}),
            mode="append",
            partition_by="p",
        )
    source = DeltaicSource({"path": path})

    def rows(*filters: Any) -> list[int]:
        reader = source.reader(source.schema())
        assert reader.pushFilters(list(filters)) == list(filters)
        return sorted(
            value
            for part in reader.partitions()
            for batch in reader.read(part)
            for value in batch["x"].to_pylist()
        )

    assert rows(EqualTo(("p",), 2)) == [20, 21, 22]
    assert rows(GreaterThan(("x",), 21)) == [22, 30, 31, 32]
    assert len(rows(StringContains(("x",), "2"))) == 12


def test_many_files_are_few_tasks(tmp_path: Path) -> None:
    from deltaic.spark.portable.data_source import DeltaicSource

    path = str(tmp_path / "t")
    table = deltaic.write(path, pa.table({"p": list(range(60)), "x": list(range(60))}), partition_by="p")
    assert table.files().count() == 60
    source = DeltaicSource({"path": path})
    reader = source.reader(source.schema())
    assert 1 <= len(reader.partitions()) <= 16
    source = DeltaicSource({"path": path, "partitions": "3"})
    reader = source.reader(source.schema())
    parts = reader.partitions()
    assert len(parts) == 3
    assert sorted(
        value for part in parts for batch in reader.read(part) for value in batch["x"].to_pylist()
    ) == list(range(60))


def test_a_table_without_rows(spark: Any, tmp_path: Path) -> None:
    table = DeltaTable.create(tmp_path / "t", "a int, b struct<c: int>")
    assert spark.read.format("deltaic").load(table.location).count() == 0


def test_a_variant_there_and_back(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    variant = "if(id = 2, null, parse_json(concat('{\"k\": ', id, '}')))"
    frame = spark.range(4).selectExpr(
        "id", f"{variant} v", f"if(id = 3, null, array(named_struct('w', {variant}))) nested"
    )
    frame.write.format("deltaic").mode("append").save(path)
    assert DeltaTable(path).schema.field("v").type == "variant"
    back = (
        spark.read.format("deltaic")
        .load(path)
        .selectExpr("id", "to_json(v) j", "to_json(nested[0].w) n")
        .orderBy("id")
        .collect()
    )
    texts = ['{"k":0}', '{"k":1}', None, '{"k":3}']
    assert [tuple(found) for found in back] == [
        (0, texts[0], texts[0]),
        (1, texts[1], texts[1]),
        (2, None, None),
        (3, texts[3], None),
    ]


@pytest.mark.parametrize("zone", ["UTC", "America/Los_Angeles"])
def test_every_type_is_written(spark: Any, tmp_path: Path, zone: str) -> None:
    source = every_type(tmp_path / "source")
    path = str(tmp_path / "t")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        spark.read.format("deltaic").load(source.location).write.format("deltaic").mode("append").save(path)
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert (
        DeltaTable(path).scan().to_arrow().sort_by("i8").to_pylist()
        == source.scan().to_arrow().sort_by("i8").to_pylist()
    )


def test_append_and_overwrite(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    frame = spark.range(10).selectExpr("id", "id % 3 as p")
    frame.write.format("deltaic").mode("append").option("partitionBy", "p").option(
        "userMetadata", "first"
    ).save(path)
    assert DeltaTable(path).metadata.partition_columns == ("p",)
    assert [column.nullable for column in DeltaTable(path).schema] == [True, True]
    frame.selectExpr("p", "id + 100 as ID").write.format("deltaic").mode("append").save(path)
    table = DeltaTable(path)
    assert sorted(table.scan(["id"]).to_arrow()["id"].to_pylist()) == [*range(10), *range(100, 110)]
    assert [entry["operation"] for entry in table.history()] == ["WRITE", "WRITE"]
    assert table.history()[1]["userMetadata"] == "first"
    assert table.history()[0]["operationMetrics"]["numOutputRows"] == "10"
    frame.where("p = 1").write.format("deltaic").mode("overwrite").option("replaceWhere", "p = 1").save(path)
    table.refresh()
    assert sorted(table.scan(["id"], "p = 1").to_arrow()["id"].to_pylist()) == [1, 4, 7]
    assert table.scan().count() == 3 + 8 + 6
    frame.where("p = 2").write.format("deltaic").mode("overwrite").option(
        "partitionOverwriteMode", "dynamic"
    ).save(path)
    assert sorted(DeltaTable(path).scan(["id"], "p = 2").to_arrow()["id"].to_pylist()) == [2, 5, 8]
    frame.limit(1).write.format("deltaic").mode("overwrite").save(path)
    assert DeltaTable(path).scan().count() == 1


def test_schemas_change(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    spark.range(2).write.format("deltaic").mode("append").save(path)
    wider = spark.range(2).selectExpr("id", "'x' as note")
    with pytest.raises(Exception, match="SchemaMismatchError"):
        wider.write.format("deltaic").mode("append").save(path)
    wider.write.format("deltaic").mode("append").option("mergeSchema", "true").save(path)
    assert DeltaTable(path).schema.names == ["id", "note"]
    spark.range(2).selectExpr("cast(id as string) id").write.format("deltaic").mode("overwrite").option(
        "overwriteSchema", True
    ).save(path)
    assert DeltaTable(path).schema.field("id").type == "string"
    assert DeltaTable(path).schema.names == ["id"]


def test_a_transaction_is_written_once(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    for _ in range(2):
        spark.range(2).write.format("deltaic").mode("append").option("txnAppId", "app").option(
            "txnVersion", 7
        ).save(path)
    table = DeltaTable(path)
    assert (table.version, table.scan().count(), table.transaction_version("app")) == (0, 2, 7)


def test_defaults_generated_columns_and_rules(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    rule = {"delta.constraints.few": "id < 100"}
    table = DeltaTable.create(
        path, "id bigint not null, n int, day bigint generated always as (id * 2)", properties=rule
    )
    table.alter.set_properties({"delta.feature.allowColumnDefaults": "supported"})
    table.alter.change_column("n", default="1 + 1")
    spark.range(2).write.format("deltaic").mode("append").save(path)
    assert sorted(tuple(row.values()) for row in DeltaTable(path).scan().to_arrow().to_pylist()) == [
        (0, 2, 0),
        (1, 2, 2),
    ]
    version = DeltaTable(path).version
    with pytest.raises(Exception, match=r"ConstraintViolationError|SchemaMismatchError"):
        spark.range(2).selectExpr("if(id = 1, null, id) id").write.format("deltaic").mode("append").save(path)
    with pytest.raises(Exception, match="CHECK constraint few; found id = 100"):
        spark.range(100, 101).write.format("deltaic").mode("append").save(path)
    with pytest.raises(Exception, match="generated column day"):
        spark.range(2).selectExpr("id", "id + 1 AS day").write.format("deltaic").mode("append").save(path)
    assert DeltaTable(path).version == version


def test_a_failing_task_commits_nothing(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    spark.range(2).write.format("deltaic").mode("append").save(path)
    failing = spark.range(0, 1000, 1, 4).selectExpr("if(id = 999, raise_error('no'), id) id")
    with pytest.raises(Exception, match="no"):
        failing.write.format("deltaic").mode("append").save(path)
    table = DeltaTable(path)
    assert (table.version, table.scan().count()) == (0, 2)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"versionAsOf": "9"}, "VersionNotFoundError"),
        ({"versionAsOf": "one"}, "InvalidArgumentError"),
        ({"readChangeFeed": "true"}, "UnsupportedFeatureError"),
        ({"columns": "none"}, "InvalidArgumentError"),
    ],
)
def test_errors_of_reading(spark: Any, tmp_path: Path, options: dict[str, str], text: str) -> None:
    deltaic.write(tmp_path / "t", pa.table({"i8": [1]}))
    with pytest.raises(Exception, match=text):
        spark.read.format("deltaic").options(**options).load(str(tmp_path / "t")).collect()


def test_no_table(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="TableNotFoundError"):
        spark.read.format("deltaic").load(str(tmp_path / "none"))
    assert not (tmp_path / "none").exists()


def test_an_executor_without_deltaic_is_told(tmp_path: Path) -> None:
    from pyspark import cloudpickle

    from deltaic.spark.portable.data_source import DeltaicSource

    deltaic.write(tmp_path / "t", pa.table({"i8": [1]}))
    source = DeltaicSource({"path": str(tmp_path / "t")})
    reader = source.reader(source.schema())
    (tmp_path / "reader").write_bytes(cloudpickle.dumps((reader, source)))
    assert pickle.loads(cloudpickle.dumps(reader)).task.columns == ("i8",)
    # As deltaic: a package of this name that is not there, on any path.
    code = (
        "import sys, pickle; sys.meta_path.insert(0, type('No', (), {'find_spec': staticmethod(lambda name,"
        " path=None, target=None: (_ for _ in ()).throw(ModuleNotFoundError('No module', name=name)) if name"
        f" == 'deltaic' else None)}})); pickle.load(open({str(tmp_path / 'reader')!r}, 'rb'))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "deltaic is not installed where this task runs" in done.stderr


def test_a_stream_is_not_warned_of_its_options(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Spark asks for the schema before it says if a stream or a batch reads the rows."""
    from deltaic.spark.portable.data_source import DeltaSource

    table = deltaic.write(tmp_path / "t", {"id": [1]})
    options = {"path": table.location, "maxFilesPerTrigger": "10"}
    with caplog.at_level("WARNING", "deltaic.spark"):
        source = DeltaSource(options)
        schema = source.schema()
        source.streamReader(schema)
        assert caplog.messages == []
        source.reader(schema)
    assert "maxfilespertrigger" in "".join(caplog.messages)
