"""Files that are selected when Spark plans a query: the files and rows are the same as when all files are
known from the start, and files that a query does not need cost no work."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltaic
import deltaic.spark
from deltaic import DeltaTable
from deltaic.engine.spark.engine import engine_of
from deltaic.engine.spark.native.file_index import FileIndex
from deltaic.engine.spark.native.tables import RecentTables

VECTORS = {"delta.enableDeletionVectors": True}
MAPPED = {"delta.columnMapping.mode": "name", **VECTORS}
MANY = "deltaic.engine.spark.native.files.MANY_FILES"
MANY_VECTORS = "deltaic.engine.spark.native.files.MANY_VECTORS"


@pytest.fixture(autouse=True)
def unknown(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The session has read no table yet, so that each test's limits apply to its first read."""
    monkeypatch.setattr(engine_of(spark), "_recent_tables", RecentTables())


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of files that Spark has got, call by call."""
    answers: list[int] = []
    list_files = FileIndex.listFiles

    def counted(self: FileIndex, partition_filters: Any, data_filters: Any) -> Any:
        found = list_files(self, partition_filters, data_filters)
        answers.append(int(found.size()))
        return found

    monkeypatch.setattr(FileIndex, "listFiles", counted)
    return answers


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """No file is known before a query."""
    monkeypatch.setattr(MANY, 0)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> DeltaTable:
    """12 files in 4 partitions, some with deleted rows; columns have other names in the files."""
    place = tmp_path_factory.mktemp("planned") / "t"
    day = dt.date(2024, 1, 1)
    count = 240
    data = pa.table(
        {
            "id": pa.array(range(count)),
            "x y": pa.array([None if i % 40 == 7 else i / 4 for i in range(count)]),
            "name": pa.array([f"n{i:03}" for i in range(count)]),
            "price": pa.array([Decimal(i) / 100 for i in range(count)], pa.decimal128(9, 2)),
            "at": pa.array(
                [
                    dt.datetime(2024, 1, 1, tzinfo=dt.timezone.utc) + dt.timedelta(hours=i)
                    for i in range(count)
                ]
            ),
            "s": pa.array([{"deep": i} for i in range(count)], pa.struct([("deep", pa.int32())])),
            "day": pa.array([None if i >= 180 else day + dt.timedelta(days=i // 60) for i in range(count)]),
            "kind": pa.array([["a", "b/c", "", "d"][i // 60] for i in range(count)]),
        }
    )
    for start in range(0, count, 20):
        deltaic.write(
            place, data.slice(start, 20), mode="append", partition_by=["day", "kind"], properties=MAPPED
        )
    made = DeltaTable(place)
    made.delete("id in (3, 65, 66, 200)")
    made.alter.rename_column("name", "title")
    return made


PREDICATES = (
    "id = 65",
    "id between 100 and 130 and `x y` > 26",
    "`x y` is null",
    "title like 'n07%'",
    "price in (0.25, 1.99)",
    "at > timestamp'2024-01-09 12:00:00Z'",
    "s.deep = 77",
    "day = date'2024-01-02'",
    "day is not null and id % 7 = 0",
    "kind = 'b/c'",
    "kind is null and id > 150",
    "month(day) = 1 and dayofmonth(day) > 2",
    "day > date'2024-01-01' or kind = 'a'",
    "day <=> null and title < 'n190'",
    "id > 1000",
    "true",
)


def test_the_same_files_and_rows_either_way(
    table: DeltaTable, spark: Any, listed: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A query over two scans, with and without vectors, gives the same sum if all files are sent to the
    JVM at first, and if only the files that the query needs are sent."""

    def files_of(frame: Any) -> int:
        listed.clear()
        frame._jdf.queryExecution().toRdd().getNumPartitions()
        return sum(listed)

    for columns, where in ((None, None), (["id", "kind"], "id >= 30"), (["id"], "day is null or id % 2 = 0")):
        frames = []
        for many in (10_000, 0):
            monkeypatch.setattr(MANY, many)
            monkeypatch.setattr(engine_of(spark), "_recent_tables", RecentTables())
            frames.append(DeltaTable(table.location, spark=spark).scan(columns, where).to_spark())
        given, later = frames
        plans = [frame.where("id >= 0")._jdf.queryExecution().optimizedPlan() for frame in frames]
        assert not plans[0].sameResult(plans[1])
        for predicate in PREDICATES if columns is None else ("id = 65", "id > 1000", "true"):
            files = files_of(given.where(predicate))
            rows = later.where(predicate).select("id")
            listed.clear()
            found = sorted(row["id"] for row in rows.collect())
            assert sum(listed) == files, (columns, where, predicate)
            both = predicate if where is None else f"({where}) and ({predicate})"
            assert found == sorted(table.scan(["id"], both).to_arrow()["id"].to_pylist()), both


def _of_days(place: Path, partition_by: list[str] | None = None) -> None:
    """One file for each day; ids are years."""
    for day in (dt.date(1, 6, 1), dt.date(1582, 10, 10), dt.date(2024, 1, 1)):
        data = pa.table({"id": [day.year], "day": [day]})
        deltaic.write(place, data, mode="append", partition_by=partition_by)


@pytest.mark.parametrize("partition_by", [None, ["day"]], ids=["column", "partition"])
def test_files_with_early_dates(tmp_path: Path, spark: Any, partition_by: list[str] | None) -> None:
    """Spark passes a date as a java.sql.Date, which shows the year -1 as the year 2."""
    _of_days(tmp_path / "t", partition_by)
    frame = DeltaTable(tmp_path / "t", spark=spark).scan().to_spark()
    early = frame.where("day >= date'-0001-01-01' and day < date'1000-01-01'")
    assert [row["id"] for row in early.collect()] == [1]


def test_counts_of_early_partitions(tmp_path: Path, session: Any) -> None:
    """A java.sql.Date of 1582-10-10 is 1582-10-15, as the Julian calendar ends with 1582-10-04."""
    _of_days(tmp_path / "t", ["day"])
    frame = session.read.format("delta").load(str(tmp_path / "t"))
    for condition in ("day = date'1582-10-10'", "day >= date'1582-10-06' and day < date'1900-01-01'"):
        assert [row["id"] for row in frame.where(condition).collect()] == [1582]
        assert frame.where(condition).count() == 1


@pytest.mark.parametrize("mapping", ["none", "id"])
def test_floats_and_null_safe_equality_skip_files(
    tmp_path: Path, spark: Any, listed: list[int], mapping: str
) -> None:
    """Spark pushes no condition on a float into Parquet, as bounds of footers leave NaN out. Statistics of
    the log skip files by it, if no NaN matches the condition."""
    nan, inner = float("nan"), pa.struct([("x", pa.float64())])
    for day, values in enumerate(([0.5], [7.0, nan], [None]), 1):
        data = {
            "id": [10 * day + number for number in range(len(values))],
            "x": pa.array(values, pa.float64()),
            "f": pa.array(values, pa.float32()),
            "s": pa.array([{"x": value} for value in values], inner),
            "at": [dt.datetime(2024, 1, day)] * len(values),
        }
        properties = {"delta.columnMapping.mode": mapping} if day == 1 else None
        deltaic.write(tmp_path / "t", pa.table(data), mode="append", properties=properties)
    frame = DeltaTable(tmp_path / "t", spark=spark).scan().to_spark()
    for where, ids, files in (
        ("x = 0.5D", [10], 1),
        ("f <= 1", [10], 1),
        ("s.x = 0.5D", [10], 1 if mapping == "none" else 3),  # with ids, the struct is cast
        ("x IS NULL", [30], 1),
        ("x > 5", [20, 21], 2),  # the first file may have a NaN
        ("x = double('nan')", [21], 2),
        ("x <=> 0.5D", [10], 1),
        ("id <=> 21", [21], 1),
        ("NOT id <=> 10", [20, 21, 30], 2),
        ("at = timestamp_ntz'2024-01-02 00:00:00'", [20, 21], 1),
    ):
        listed.clear()
        assert sorted(row["id"] for row in frame.where(where).collect()) == ids, where
        assert sum(listed) == files, where


def test_files_that_are_chosen_are_few(
    table: DeltaTable, spark: Any, later: None, listed: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files that the JVM gets before it applies conditions on constants itself."""
    from deltaic.engine.spark.native.jvm import Jvm

    told: list[int] = []
    rows_of = Jvm.rows
    monkeypatch.setattr(
        Jvm, "rows", lambda self, table, schema: told.append(table.num_rows) or rows_of(self, table, schema)
    )
    frame = DeltaTable(table.location, spark=spark).scan().to_spark()
    told.clear()
    assert frame.where("id = 65").count() == 0
    assert (sum(told), sum(listed)) == (1, 1)
    told.clear()
    assert frame.where("kind = 'b/c' and id < 90").count() == 28
    assert sum(told) == 2


def test_of_many_vectors_those_that_a_query_needs(
    table: DeltaTable, spark: Any, listed: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three files have one: no more than two may come at once."""
    told: list[int] = []
    hand_over = deltaic._core.hand_over
    monkeypatch.setattr(
        "deltaic._core.hand_over",
        lambda store, schema, adds: told.append(adds.num_rows) or hand_over(store, schema, adds),
    )
    for most, expected in ((3, 12), (2, 1)):
        monkeypatch.setattr(MANY_VECTORS, most)
        monkeypatch.setattr(engine_of(spark), "_recent_tables", RecentTables())
        told.clear()
        frame = DeltaTable(table.location, spark=spark).scan().to_spark()
        assert sorted(row["id"] for row in frame.where("id between 62 and 67").collect()) == [62, 63, 64, 67]
        assert sum(told) == expected


def test_partitions_that_are_known_only_while_a_query_runs(
    table: DeltaTable, spark: Any, later: None
) -> None:
    from pyspark.sql import functions as F

    fact = DeltaTable(table.location, spark=spark).scan().to_spark()
    days = spark.createDataFrame(
        [(dt.date(2024, 1, 2), "x"), (dt.date(2024, 1, 3), "y")], "day date, label string"
    ).repartition(1)
    days.write.mode("overwrite").parquet(str(Path(table.location) / ".." / "days"))
    days = spark.read.parquet(str(Path(table.location) / ".." / "days"))
    joined = fact.join(F.broadcast(days.where("label = 'x'")), "day").select("id")
    assert "dynamicpruning" in joined._jdf.queryExecution().optimizedPlan().toString().lower()
    assert sorted(row["id"] for row in joined.collect()) == [i for i in range(60, 120) if i not in (65, 66)]
    plan = joined._jdf.queryExecution().executedPlan().toString()
    assert "dynamicpruning" in plan
    fact.createOrReplaceTempView("planned_fact")
    days.createOrReplaceTempView("planned_days")
    chosen = spark.sql(
        "SELECT id FROM planned_fact WHERE day = (SELECT max(day) FROM planned_days WHERE label = 'y') AND id"
        " < 130"
    )
    assert sorted(row["id"] for row in chosen.collect()) == list(range(120, 130))
    some = spark.sql(
        "SELECT id FROM planned_fact WHERE day IN (SELECT day FROM planned_days WHERE label = 'y') AND title"
        " < 'n122'"
    )
    assert sorted(row["id"] for row in some.collect()) == [120, 121]


def test_equal_reads_are_equal_plans(table: DeltaTable, spark: Any, later: None) -> None:
    def frame(version: int | None = None, where: str | None = None) -> Any:
        return DeltaTable(table.location, version=version, spark=spark).scan(["id", "kind"], where).to_spark()

    assert frame()._jdf.sameSemantics(frame()._jdf)
    assert frame(where="id > 3")._jdf.sameSemantics(frame(where="id > 3")._jdf)
    for other in (frame(version=11), frame(where="id > 3")):
        assert not frame()._jdf.sameSemantics(other._jdf)
    kept = frame().cache()
    try:
        assert kept.count() == 236
        assert "InMemory" in frame().where("id = 3")._jdf.queryExecution().executedPlan().toString()
        assert (
            "InMemory"
            not in frame(version=11).where("id = 3")._jdf.queryExecution().executedPlan().toString()
        )
        assert frame(version=11).count() == 240
    finally:
        kept.unpersist()
    session = spark.newSession()
    session.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    session.conf.set("spark.sql.adaptive.enabled", "false")
    grouped = [
        DeltaTable(table.location, spark=session).scan(["id", "kind"]).to_spark().groupBy("kind").count()
        for _ in range(2)
    ]
    joined = grouped[0].join(grouped[1].withColumnRenamed("count", "other"), "kind")
    assert "ReusedExchange" in joined._jdf.queryExecution().executedPlan().toString()
    assert sorted(row["count"] for row in joined.collect()) == [58, 59, 59]


def test_sizes_reach_the_optimiser(table: DeltaTable, spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """With and without vectors each for itself: their sum is the table's."""
    sizes = []
    for many in (10_000, 0):
        monkeypatch.setattr(MANY, many)
        frame = DeltaTable(table.location, spark=spark).scan().to_spark()
        leaves = frame._jdf.queryExecution().analyzed().collectLeaves()
        sizes.append(
            sum(int(str(leaves.apply(index).stats().sizeInBytes())) for index in range(leaves.size()))
        )
    assert sizes[0] == sizes[1] == table.detail().size_in_bytes


def test_a_vector_that_is_gone_fails_the_query_by_name(tmp_path: Path, spark: Any, later: None) -> None:
    table = deltaic.write(tmp_path / "t", pa.table({"id": range(10)}), properties=VECTORS)
    table.delete("id = 3")
    for vector in (tmp_path / "t").glob("*.bin"):
        vector.unlink()
    frame = DeltaTable(tmp_path / "t", spark=spark).scan().to_spark()
    with pytest.raises(Exception, match=r"(?s)ProtocolError.*deletion_vector"):
        frame.collect()
    assert engine_of(spark).is_native


@pytest.fixture(scope="module")
def many_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of 100,000 files that are not there, 1,000 ids in each, 100 partitions."""
    root = tmp_path_factory.mktemp("many") / "t"
    (root / "_delta_log").mkdir(parents=True)
    fields = [
        {"name": name, "type": of, "nullable": True, "metadata": {}}
        for name, of in (("id", "long"), ("p", "integer"))
    ]
    schema = json.dumps({"type": "struct", "fields": fields})
    head = [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {"metaData": {"id": "m", "format": {"provider": "parquet", "options": {}}, "schemaString": schema,
                      "partitionColumns": ["p"], "configuration": {}, "createdTime": 1}},
    ]  # fmt: skip
    with (root / "_delta_log" / f"{0:020}.json").open("w") as log:
        log.writelines(json.dumps(action) + "\n" for action in head)
        for number in range(100_000):
            low, high = number * 1000, number * 1000 + 999
            stats = (
                f'{{\\"numRecords\\":1000,\\"minValues\\":{{\\"id\\":{low}}},'
                f'\\"maxValues\\":{{\\"id\\":{high}}}}}'
            )
            log.write(
                f'{{"add":{{"path":"f{number}.parquet","partitionValues":{{"p":"{number % 100}"}},'
                f'"size":1000,"modificationTime":1,"dataChange":true,"stats":"{stats}"}}}}\n'
            )
    return root


@pytest.fixture
def calls(spark: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The commands that were sent to the JVM, without those that free objects of Python."""
    from py4j.clientserver import ClientServerConnection

    said: list[str] = []
    send = ClientServerConnection.send_command

    def noted(self: Any, command: str) -> Any:
        if not command.startswith("m\n"):
            said.append(command)
        return send(self, command)

    monkeypatch.setattr(ClientServerConnection, "send_command", noted)
    return said


def test_of_a_hundred_thousand_files(many_files: Path, spark: Any, calls: list[str]) -> None:
    """For any number of files: no call for each, a small plan, and tasks that get only their own files."""

    def weight(thing: Any) -> int:
        made = spark._jvm.java.io.ByteArrayOutputStream()
        spark._jvm.java.io.ObjectOutputStream(made).writeObject(thing)
        return int(made.size())

    frame = DeltaTable(many_files, spark=spark).scan().to_spark()
    narrow = frame.where("id between 70000 and 71999")._jdf.queryExecution().toRdd()
    assert sum(len(partition.files()) for partition in narrow.partitions()) == 2
    assert len(calls) < 1000
    assert sum(map(len, calls)) < 200_000
    calls.clear()
    partition = frame.where("p = 17")._jdf.queryExecution().toRdd()
    assert len(calls) < 1000
    assert partition.getNumPartitions() >= 2
    calls.clear()
    whole = frame._jdf.queryExecution()
    tasks = whole.toRdd()
    assert len(calls) < 1000
    assert tasks.getNumPartitions() > 1000
    assert weight(tasks) < 50_000
    assert len(whole.toString()) < 5_000


def test_the_large_log_that_was_read_last_stays_known(
    tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another read of the same version reads no log again, and sees each commit of others."""
    data = pa.table({"id": [1, 2, 3]})
    for name in ("t", "other"):
        deltaic.write(tmp_path / name, data)
        DeltaTable(tmp_path / name).checkpoint()
    monkeypatch.setattr("deltaic.log.snapshot.READ_AT_ONCE", 0)
    monkeypatch.setattr("deltaic.log.snapshot.OPENED_AT_ONCE", 0)

    def opened(name: str = "t", **options: Any) -> Any:
        return DeltaTable(tmp_path / name, spark=spark, **options)._snapshot

    first = opened()
    assert opened() is first
    assert opened(storage_options={"a": "b"}) is not first, "other rights"
    first = opened()
    with deltaic.configure(durable=False):
        assert opened() is not first, "other settings"
    first = opened()
    opened("other")
    assert opened() is first
    monkeypatch.setattr("deltaic.engine.spark.stores.MOST_SNAPSHOTS", 1)
    opened("other")
    assert opened() is not first, "at most MOST_SNAPSHOTS are kept"
    deltaic.write(tmp_path / "t", data, mode="append")
    assert deltaic.spark.read(spark, tmp_path / "t").count() == 6
    assert deltaic.spark.read(spark, tmp_path / "t", version=0).count() == 3
