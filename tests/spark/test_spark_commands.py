"""Each command runs on both engines, one after the other. Rows, metrics and log must be equal, apart from
times, ids, sizes and names of files."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltaic
from deltaic import CommitOptions, DeltaTable
from deltaic.engine.spark import many_rows
from deltaic.engine.spark.engine import SETTING
from deltaic.engine.spark.engine_session import ROWS_SETTING as DRIVER_ROWS
from deltaic.engine.spark.many_rows import SETTING as DRIVER_ROW_IDS
from deltaic.engine.spark.on_driver import BYTES_SETTING as DRIVER_BYTES
from deltaic.errors import ConstraintViolationError, MergeCardinalityError
from deltaic.spark_sql.resolved_text import resolved_text

Step = Callable[[DeltaTable], Any]

SOURCE = pa.table(
    {
        "id": [1, 2, 3, 500, 501, None],
        "name": ["a", None, "c", "d", "e", "f"],
        "x": [0.5, 1.5, None, 3.5, 4.5, 5.5],
    }
)
WITH_GROUP = SOURCE.append_column("grp", pa.nulls(len(SOURCE), pa.int32()))

STEPS: list[Step] = [
    lambda t: t.delete("id = 5"),
    lambda t: t.delete("id between 20 and 25 or name rlike '^n6'"),
    lambda t: t.delete("grp = 2"),
    lambda t: t.update({"name": "concat(name, '!')", "x": "x + 1"}, "id % 10 = 1"),
    lambda t: t.update({"x": None}, "x > 20"),
    lambda t: (
        t.merge(SOURCE, "t.id = s.id")
        .when_matched_update({"name": "s.name"}, "s.id > 1")
        .when_matched_delete()
        .when_not_matched_insert({"id": "s.id", "grp": "7", "name": "s.name"})
        .execute()
    ),
    lambda t: (
        t.merge(SOURCE, "t.id = s.id AND t.x < s.x")
        .when_matched_update_all(exclude=["grp"])
        .when_not_matched_by_source_update({"name": "'orphan'"}, "t.grp = 1")
        .when_not_matched_by_source_delete("t.id < 10")
        .execute()
    ),
    lambda t: deltaic.write(t, WITH_GROUP, mode="append", schema_mode="merge"),
    lambda t: deltaic.write(t, WITH_GROUP.slice(0, 2), mode="overwrite", where="id in (1, 2)"),
    lambda t: t.delete("id is null"),
    lambda t: t.optimize.purge(),
    lambda t: t.update({"grp": "grp + 100"}),
    lambda t: t.delete(),
]


# Way of reading, and how many rows may come to the driver as part of a command's work. All but the first
# leave the files to tasks.
PATHS = {
    "native": ("auto", None),
    "jobs": ("auto", None),
    "tasks": ("auto", 0),
    "some on the driver": ("auto", 4),
    "portable": ("never", None),
}


@pytest.fixture(params=PATHS)
def path(request: pytest.FixtureRequest, spark: Any) -> Iterator[str]:
    way, rows = PATHS[request.param]
    setattr(spark, SETTING, way)
    if rows is not None:
        spark.conf.set(DRIVER_ROWS, rows)
    if request.param != "native":
        spark.conf.set(DRIVER_BYTES, 0)
    yield request.param
    spark.conf.unset(DRIVER_BYTES)
    spark.conf.unset(DRIVER_ROWS)
    delattr(spark, SETTING)


def data(start: int, stop: int) -> pa.Table:
    numbers = range(start, stop)
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "grp": pa.array([i % 3 for i in numbers], pa.int32()),
            "name": pa.array([None if i % 11 == 0 else f"n{i % 7}" for i in numbers]),
            "x": pa.array([i / 4 for i in numbers]),
        }
    )


def rows(table: DeltaTable) -> list[str]:
    return sorted(map(repr, table.scan().to_arrow().to_pylist()))


def committed(table: DeltaTable, exact: bool) -> list[Any]:
    """Returns the last commit, without the values that differ from run to run; if not `exact`, without its
    files too."""
    found = []
    for line in (Path(table.location) / "_delta_log" / f"{table.version:020d}.json").read_text().splitlines():
        [(kind, action)] = json.loads(line).items()
        if kind == "commitInfo":
            for name in ("timestamp", "txnId"):
                action.pop(name, None)
            action["operationMetrics"] = countable(action.get("operationMetrics", {}), exact)
            if table._spark is None and action["operation"] != "WRITE":
                action["operationParameters"] = {
                    name: resolved(value) for name, value in action["operationParameters"].items()
                }
        elif kind in ("add", "remove"):
            if not exact:
                continue
            vector = action.get("deletionVector") or {}
            stats = json.loads(action["stats"]) if action.get("stats") else {}
            kept = {"partitionValues": action.get("partitionValues"), "dataChange": action["dataChange"]}
            action = {**kept, "deleted": vector.get("cardinality"), "stats": stats}
        found.append((kind, json.dumps(action, sort_keys=True)))
    return sorted(found)


def resolved(parameter: Any) -> Any:
    """Returns a parameter of a commit of the embedded engine, which has conditions as the user wrote them,
    with the text that Spark shows: `["(id = 5)"]` of `["id = 5"]`."""
    if not isinstance(parameter, str):
        return parameter
    found = json.loads(parameter)
    for number, clause in enumerate(found if isinstance(found, list) else ()):
        if isinstance(clause, str):
            found[number] = resolved_text(clause, None)
        elif "predicate" in clause:
            clause["predicate"] = resolved_text(clause["predicate"], None)
    return json.dumps(found, separators=(",", ":"))


def countable(metrics: Any, exact: bool) -> Any:
    """Metrics without bytes and times, and where not `exact` without what depends on which rows share a
    file."""
    if not isinstance(metrics, dict):
        return None
    left = (
        ("bytes", "time", "size")
        if exact
        else ("bytes", "time", "size", "file", "vector", "copied", "output")
    )
    return {name: value for name, value in metrics.items() if not any(word in name.lower() for word in left)}


@pytest.mark.parametrize("partitioned", [False, True], ids=["flat", "partitioned"])
@pytest.mark.parametrize("vectors", [True, False], ids=["vectors", "copy-on-write"])
def test_one_after_the_other(tmp_path: Path, spark: Any, path: str, vectors: bool, partitioned: bool) -> None:
    if (path == "portable" and partitioned != vectors) or (
        path in ("jobs", "tasks", "some on the driver") and partitioned
    ):
        pytest.skip("the other combinations are enough for this way")
    for name in ("local", "spark"):
        made = deltaic.write(
            tmp_path / name,
            data(0, 60),
            partition_by=["grp"] if partitioned else None,
            properties={"delta.enableDeletionVectors": vectors},
        )
        deltaic.write(made, data(60, 120), mode="append")
    local, clustered = DeltaTable(tmp_path / "local"), DeltaTable(tmp_path / "spark", spark=spark)
    # By public interfaces the number of rows is unknown, and so the right number of files.
    exact = path != "portable"
    for number, step in enumerate(STEPS):
        expected, found = countable(step(local), exact), countable(step(clustered), exact)
        assert rows(DeltaTable(tmp_path / "spark")) == rows(local), number
        assert clustered.version == local.version, number
        assert found == expected, number
        assert committed(clustered, exact) == committed(local, exact), number


def test_two_source_rows_for_one_target_row(tmp_path: Path, spark: Any, path: str) -> None:
    deltaic.write(tmp_path / "t", data(0, 10))
    table = DeltaTable(tmp_path / "t", spark=spark)
    twice = pa.table({"id": [3, 3], "name": ["a", "b"]})
    with pytest.raises(MergeCardinalityError):
        table.merge(twice, "t.id = s.id").when_matched_update({"name": "s.name"}).execute()
    assert table.merge(twice, "t.id = s.id").when_matched_delete().execute()["num_target_rows_deleted"] == 1
    assert DeltaTable(tmp_path / "t").version == 1


@pytest.mark.parametrize("way", ["auto", "never"])
def test_many_row_ids_become_bitmaps_by_tasks(
    tmp_path: Path, spark: Any, way: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_tasks = []
    kept = many_rows.bitmaps
    monkeypatch.setattr(many_rows, "bitmaps", lambda pairs: by_tasks.append(kept(pairs)) or by_tasks[-1])
    session = spark.newSession()
    setattr(session, SETTING, way)
    session.conf.set(DRIVER_ROWS, 0)
    session.conf.set(DRIVER_ROW_IDS, 0)
    for name in ("local", "spark"):
        made = deltaic.write(tmp_path / name, data(0, 200), properties={"delta.enableDeletionVectors": True})
        deltaic.write(made, data(200, 300), mode="append")
    local, clustered = DeltaTable(tmp_path / "local"), DeltaTable(tmp_path / "spark", spark=session)
    twice = pa.table({"id": [3, 3, 250], "name": ["a", "b", "c"]})
    steps: list[Step] = [
        lambda t: t.delete("id % 7 = 0 OR id > 280"),
        lambda t: t.update({"x": "x + 1"}, "id % 10 = 1"),
        lambda t: t.merge(twice, "t.id = s.id").when_matched_delete().execute(),
    ]
    for step in steps if way == "auto" else steps[:1]:
        before = len(by_tasks)
        assert countable(step(clustered), True) == countable(step(local), True)
        assert len(by_tasks) > before
        assert rows(DeltaTable(tmp_path / "spark")) == rows(local)
        assert committed(clustered, way == "auto") == committed(local, way == "auto")
    assert by_tasks[0]["__deltaic_file"].to_pylist() in ([0, 1], [1, 0])
    again = clustered.merge(pa.table({"id": [9, 9, 251], "name": ["a", "b", "c"]}), "t.id = s.id")
    with pytest.raises(MergeCardinalityError, match=r"found 2 source rows with \{id: 9\}"):
        again.when_matched_update({"name": "s.name"}).execute()


NOT_NULL_INSIDE = pa.schema(
    [
        ("id", pa.int32()),
        ("amt", pa.int32()),
        ("cust", pa.struct([pa.field("name", pa.string(), nullable=False), ("age", pa.int32())])),
    ]
)
CUSTOMERS: list[dict[str, Any]] = [
    {"id": i, "amt": 3 * i, "cust": {"name": f"n{i}", "age": i} if i % 2 else None} for i in range(8)
]


@pytest.mark.parametrize("path", ["native", "jobs", "portable"], indirect=True)
@pytest.mark.parametrize("vectors", [True, False])
@pytest.mark.parametrize("mapped", ["at first", "later"])
def test_null_structs_with_fields_that_are_not_null(
    tmp_path: Path, spark: Any, path: str, mapped: str, vectors: bool
) -> None:
    mapping = {"delta.columnMapping.mode": "name"}
    plain = {"delta.enableDeletionVectors": vectors}
    place = tmp_path / "table"
    table = DeltaTable.create(
        place, NOT_NULL_INSIDE, properties=plain | mapping if mapped == "at first" else plain
    )
    deltaic.write(table, pa.Table.from_pylist(CUSTOMERS, schema=NOT_NULL_INSIDE), mode="append")
    if mapped == "later":
        table.alter.set_properties(mapping)
    table.alter.add_constraints({"positive": "amt >= 0"})
    table = DeltaTable(place, spark=spark)
    with pytest.raises(ConstraintViolationError, match="positive"):
        table.update({"amt": "-amt"}, "amt = 6")
    with pytest.raises(ConstraintViolationError, match=r"cust\.name is NOT NULL"):
        table.update({"amt": "amt + 1"}, "id < 4")  # new rows with a null struct, which only Arrow may write
    DeltaTable(place).update({"amt": "amt + 1"}, "id < 4")
    table = DeltaTable(place, spark=spark)
    table.update({"cust.age": "cust.age + 10"}, "cust IS NOT NULL AND id > 4")
    table.delete("id = 0")
    new = [{"id": i, "amt": 0, "cust": CUSTOMERS[i - 2]["cust"]} for i in (7, 9)]
    source = pa.Table.from_pylist(new, schema=NOT_NULL_INSIDE)
    table.merge(source, "t.id = s.id").when_matched_update_all().when_not_matched_insert_all().execute()
    table.optimize.purge()
    table.optimize.compact()
    assert table.scan(where="cust.name IS NULL").to_arrow().num_rows == 3
    names = table.scan(["id", "cust.name"], "id > 5").to_arrow().sort_by("id")["cust"].to_pylist()
    assert names == [None, {"name": "n5"}, {"name": "n7"}]
    expected = [
        {**row, "amt": row["amt"] + (row["id"] < 4)}
        | ({"cust": {**row["cust"], "age": row["id"] + 10}} if row["id"] in (5, 7) else {})
        for row in CUSTOMERS[1:]
    ]
    expected[6] = new[0]
    assert DeltaTable(place).scan().to_arrow().sort_by("id").to_pylist() == [*expected, *new[1:]]


def test_executors_without_deltaic_are_named(spark: Any) -> None:
    from pyspark.errors import PythonException

    from deltaic.engine.spark.errors import named_errors

    trace = (
        "Traceback (most recent call last):\n  File 'worker.py'\nModuleNotFoundError: No module named"
        " 'deltaic'\n"
    )
    with pytest.raises(ModuleNotFoundError, match=r"every executor needs the driver's wheel"), named_errors():
        raise PythonException(trace)


def test_a_source_that_differs_each_time_is_read_once(tmp_path: Path, spark: Any, path: str) -> None:
    DeltaTable.create(tmp_path / "t", "id bigint, name string")
    table = DeltaTable(tmp_path / "t", spark=spark)
    source = spark.range(50).selectExpr("CAST(rand() * 1000000000 AS BIGINT) AS id", "uuid() AS name")
    metrics = table.merge(source, "t.id = s.id").when_not_matched_insert_all().execute()
    assert metrics["num_target_rows_inserted"] == metrics["num_source_rows"] == 50
    assert len({row["name"] for row in table.scan().to_arrow().to_pylist()}) == 50


def test_a_table_may_be_the_source_of_its_own_merge(tmp_path: Path, spark: Any, path: str) -> None:
    deltaic.write(tmp_path / "t", data(0, 20), properties={"delta.enableDeletionVectors": True})
    table = DeltaTable(tmp_path / "t", spark=spark)
    table.merge(table, "t.id = s.id").when_matched_update({"x": "s.x * 2"}, "s.id > 10").execute()
    table.merge(table.scan(where="id < 3").to_spark(), "t.id = s.id").when_matched_delete().execute()
    expected = sorted(i / 4 * (2 if i > 10 else 1) for i in range(3, 20))
    assert sorted(table.scan(["x"]).to_arrow()["x"].to_pylist()) == expected


def test_application_transactions_are_not_repeated(tmp_path: Path, spark: Any) -> None:
    deltaic.write(tmp_path / "t", data(0, 20))
    table = DeltaTable(tmp_path / "t", spark=spark)
    options = CommitOptions(transactions={"job": 3})
    assert table.delete("id = 1", commit=options)["num_deleted_rows"] == 1
    assert table.delete("id = 2", commit=options)["num_deleted_rows"] == 0
    assert table.scan().count() == 19


@pytest.mark.parametrize("native", ["auto", "never"])
def test_the_cache_of_a_source_stays(tmp_path: Path, spark: Any, native: str) -> None:
    from pyspark.sql import functions as F

    session = spark.newSession()
    setattr(session, SETTING, native)
    session.conf.set(DRIVER_ROWS, 0)
    table = deltaic.write(tmp_path / "t", session.range(10).selectExpr("id", "'old' AS name"))
    # Spark takes a Python function for deterministic: only the cache makes its rows the same each time.
    other = F.udf(lambda _: uuid.uuid4().hex, "string")
    source = session.range(0, 20, 1, 2).withColumn("name", other("id")).cache()
    try:
        before = sorted(map(tuple, source.collect()))
        table.merge(source, "t.id = s.id").when_matched_update_all().when_not_matched_insert_all().execute()
        assert source.storageLevel.useMemory
        assert sorted(map(tuple, source.collect())) == before
        assert sorted(map(tuple, table.scan().to_spark().collect())) == before
    finally:
        source.unpersist()
    # Of other tests: Java lets go of some of them when it likes.
    kept = set(session.sparkContext._jsc.getPersistentRDDs())
    plain = session.range(0, 20, 1, 2).selectExpr("id", "'new' AS name")
    table.merge(plain, "t.id = s.id").when_matched_update_all().execute()
    assert not plain.storageLevel.useMemory
    if native == "auto":  # a checkpoint, which public interfaces need, goes with its frame
        assert set(session.sparkContext._jsc.getPersistentRDDs()) - kept == set()
