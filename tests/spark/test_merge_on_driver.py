"""MERGE of few rows by the embedded engine on Spark's driver: rows, metrics and errors are those of Spark's
tasks, which are the oracle."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltaic
from deltaic import DeltaTable, Merge
from deltaic.commands import merge_on_driver
from deltaic.engine.spark.engine_session import ROWS_SETTING as SETTING
from deltaic.engine.spark.on_driver import BYTES_SETTING
from deltaic.errors import (
    ConstraintViolationError,
    DeltaError,
    InvalidArgumentError,
    MergeCardinalityError,
    SchemaMismatchError,
)

SCHEMA = pa.schema(
    [
        ("k", pa.int64()),
        ("part", pa.int32()),
        ("n", pa.int32()),
        ("x", pa.float64()),
        ("name", pa.string()),
        ("price", pa.decimal128(9, 2)),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("inner", pa.struct([("a", pa.int32()), ("b", pa.string())])),
    ]
)


def data(keys: range, seed: int) -> pa.Table:
    """Returns a row for each key, with nulls in every column but `part`."""
    draw = random.Random(seed)

    def some(value: Any) -> Any:
        return None if draw.random() < 0.15 else value

    found = [
        {
            "k": some(key),
            "part": key % 3,
            "n": some(draw.randrange(-50, 50)),
            "x": some(draw.choice([0.5, -1.5, float("nan"), 0.0, -0.0])),
            "name": some(draw.choice(["a", "B", "", "ä ö"])),
            "price": some(Decimal(draw.randrange(-999, 999)) / 4),
            "day": some(date(2024, 1, 1) + timedelta(days=draw.randrange(60))),
            "at": some(datetime(2024, 1, 1, tzinfo=timezone.utc) + timedelta(hours=draw.randrange(1500))),
            "inner": some({"a": some(draw.randrange(9)), "b": some("b")}),
        }
        for key in keys
    ]
    return pa.Table.from_pylist(found, SCHEMA)


Clauses = Callable[[Merge], Merge]
ON = "t.k = s.k"
MERGES: dict[str, tuple[str, Clauses]] = {
    "upsert": (ON, lambda m: m.when_matched_update_all().when_not_matched_insert_all()),
    "some columns": (
        ON,
        lambda m: (
            m.when_matched_update(
                {"n": "t.n + s.n", "x": "-s.x", "inner.a": "s.part"}, "s.n > 0 OR t.name = s.name"
            )
            .when_matched_delete("t.price BETWEEN -50 AND 50.5")
            .when_not_matched_insert(
                {"k": "s.k", "part": "2", "name": "CASE WHEN s.n IS NULL THEN 'none' ELSE s.name END"},
                "s.k < 95",
            )
        ),
    ),
    "two equalities": (
        "t.k = s.k AND s.part = t.part AND t.name <=> s.name",
        lambda m: m.when_matched_delete().when_not_matched_insert_all("s.x = 'NaN'"),
    ),
    "moments": (
        "t.k = s.k AND t.at > '2024-01-10 00:00:00'",
        lambda m: m.when_matched_update({"at": "s.at", "day": "'2025-02-03'"}, "s.day >= '2024-01-15'"),
    ),
    "by source": (
        ON,
        lambda m: (
            m.when_matched_update({"price": "s.price * 2"})
            .when_not_matched_by_source_update({"n": "t.n * 2"}, "t.n NOT IN (1, 2, 3) AND t.part = 1")
            .when_not_matched_by_source_delete("NOT t.x = 0")
        ),
    ),
    "fields": (
        "t.k = s.k AND t.inner.a < 7",
        lambda m: m.when_matched_update({"name": "'it\\'s'"}, "NOT (s.inner.b <=> NULL)"),
    ),
}


@pytest.fixture
def session(spark: Any) -> Any:
    """A session whose time zone is not UTC."""
    made = spark.newSession()
    made.conf.set("spark.sql.session.timeZone", "America/New_York")
    return made


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each MERGE, whether the driver was to do it."""
    chosen: list[bool] = []
    choose = merge_on_driver._on_driver

    def noted(*given: Any) -> Any:
        found = choose(*given)
        chosen.append(found is not None)
        return found

    monkeypatch.setattr(merge_on_driver, "_on_driver", noted)
    return chosen


def content(table: DeltaTable) -> list[str]:
    return sorted(map(repr, DeltaTable(table.location).scan().to_arrow().to_pylist()))


PROPERTIES = {"plain": {}, "tracked": {"delta.enableChangeDataFeed": True, "delta.enableRowTracking": True}}


@pytest.mark.parametrize("properties", PROPERTIES.values(), ids=PROPERTIES)
@pytest.mark.parametrize("name", MERGES)
def test_rows_and_metrics_are_those_of_tasks(
    tmp_path: Path, session: Any, done: list[bool], name: str, properties: dict[str, Any]
) -> None:
    on, clauses = MERGES[name]
    source = session.createDataFrame(data(range(60, 120), 2))
    found = {}
    every = {"delta.enableDeletionVectors": True, **properties}
    for way, most in (("driver", None), ("tasks", 0)):
        place = tmp_path / way
        made = deltaic.write(place, data(range(50), 1), partition_by=["part"], properties=every)
        deltaic.write(made, data(range(50, 100), 3), mode="append")
        session.conf.unset(BYTES_SETTING)
        if most is not None:
            session.conf.set(BYTES_SETTING, most)
        table = DeltaTable(place, spark=session)
        metrics = clauses(table.merge(source, on)).execute()
        changes = []
        if properties:
            feed = DeltaTable(place).changes(table.version).to_arrow().drop_columns(["_commit_timestamp"])
            changes = sorted(map(repr, feed.to_pylist()))
        counts = {key: value for key, value in metrics.items() if "bytes" not in key}
        found[way] = (content(table), counts, changes, table.history(1)[0]["operationParameters"])
    assert done == [True, False]
    assert found["driver"] == found["tasks"]
    assert found["driver"][1]["num_source_rows"] == 60
    changed = ("updated", "deleted", "inserted")
    assert sum(found["driver"][1][f"num_target_rows_{kind}"] for kind in changed) > 0


CONDITIONS = [
    "s.n > 0",
    "t.n > s.n",
    "s.name = t.name",
    "t.part = 1",
    "s.price < t.price",
    "t.x >= s.x",
    "t.at < s.at",
    "t.inner.a <=> s.inner.a",
]
CONDITIONS += [
    "s.day IN ('2024-01-05', '2024-02-01')",
    "NOT (s.n IS NULL)",
    "t.name IS NOT NULL OR s.x = 0",
    "t.price BETWEEN s.n AND 100",
]
VALUES = {
    "n": ["s.n", "t.n + s.n", "s.part * 2", "NULL", "CASE WHEN s.n > t.n THEN s.n ELSE t.n END"],
    "x": ["s.x", "s.n", "t.x * 2", "-s.x", "1"],
    "name": ["s.name", "'z'", "CASE WHEN s.n > 0 THEN s.name ELSE t.name END", "s.n"],
    "price": ["s.price", "t.price + s.price", "s.n", "1.005"],
    "day": ["s.day", "'2024-12-31'", "s.at"],
    "at": ["s.at", "s.day", "'2024-03-10 02:30:00'"],
    "inner": ["s.inner"],
}
KEYS = [
    ON,
    "s.k = t.k AND t.part = s.part",
    "t.k = s.k AND t.name <=> s.name",
    "t.k = s.k AND s.n > -20",
    "t.k = s.n",
    "t.k = s.part AND t.n = s.n",
]


def random_merge(draw: random.Random) -> tuple[str, Clauses]:
    """Returns a condition and up to five clauses. Some of them fail: by a second source row for a target row,
    or a value that does not fit."""

    def where(conditions: list[str]) -> str | None:
        return draw.choice(conditions) if draw.random() < 0.6 else None

    def values(side: str) -> dict[str, str]:
        columns = draw.sample(sorted(VALUES), draw.randint(1, 4))
        return {
            name: draw.choice([text for text in VALUES[name] if side == "both" or "t." not in text])
            for name in columns
        }

    of_source = [text for text in CONDITIONS if "t." not in text]
    steps: list[Clauses] = []
    for _ in range(draw.randint(0, 2)):
        condition, change = where(CONDITIONS), values("both")
        steps.append(
            draw.choice(
                [
                    lambda m, condition=condition: m.when_matched_delete(condition),
                    lambda m, condition=condition: m.when_matched_update_all(condition),
                    lambda m, condition=condition, change=change: m.when_matched_update(change, condition),
                ]
            )
        )
        if condition is None:
            break
    condition, row = where(of_source), {**values("source"), "k": "s.k", "part": "s.part"}
    steps.append(
        draw.choice(
            [
                lambda m: m.when_not_matched_insert_all(condition),
                lambda m: m.when_not_matched_insert(row, condition),
                lambda m: m.when_not_matched_by_source_delete("t.n > 0"),
                lambda m: m.when_not_matched_by_source_update({"n": "t.n + 1"}, "t.day < '2024-01-20'"),
            ]
        )
    )

    def clauses(merge: Merge) -> Merge:
        for step in steps:
            merge = step(merge)
        return merge

    return draw.choice(KEYS), clauses


@pytest.mark.parametrize("seed", range(int(os.environ.get("DELTAIC_MERGE_SEEDS", "6"))))
def test_random_merges(tmp_path: Path, session: Any, done: list[bool], seed: int) -> None:
    """Rows, metrics and errors."""
    draw = random.Random(seed)
    on, clauses = random_merge(draw)
    rows = data(range(draw.randint(0, 60), draw.randint(60, 120)), seed)
    if draw.random() < 0.6:  # each key once
        rows = rows.take(list({key: place for place, key in enumerate(rows["k"].to_pylist())}.values()))
    source = session.createDataFrame(rows)
    kept = {
        "delta.enableDeletionVectors": draw.random() < 0.7,
        "delta.enableChangeDataFeed": draw.random() < 0.3,
    }
    partition_by = draw.choice([None, ["part"]])
    found = {}
    for way, most in (("driver", 2**28), ("tasks", 0)):
        made = deltaic.write(
            tmp_path / way, data(range(50), seed + 1), partition_by=partition_by, properties=kept
        )
        deltaic.write(made, data(range(50, 90), seed + 2), mode="append")
        session.conf.set(BYTES_SETTING, most)
        table = DeltaTable(tmp_path / way, spark=session)
        try:
            metrics = clauses(table.merge(source, on)).execute()
            outcome: Any = {key: value for key, value in metrics.items() if "bytes" not in key}
        except DeltaError as error:
            # Which rows it shows is open.
            outcome = type(error), str(error).partition("; found")[0].replace(str(tmp_path / way), "")
        found[way] = (content(table), outcome)
    assert found["driver"] == found["tasks"]
    assert done == [True, False]


BY_TASKS = {
    "a function": ("t.k = s.k", "concat(s.name, 'x')", {}),
    "the text of a double": (ON, "s.x", {}),
    "no equality": ("t.k < s.k AND t.k > s.k - 2", "s.name", {}),
    "an equality of computed values": ("t.k + 1 = s.k", "s.name", {}),
    "other arithmetic": (ON, "s.name", {"spark.sql.ansi.enabled": "false"}),
    "other names": (ON, "s.name", {"spark.sql.caseSensitive": "true"}),
    "a zone of Java's": (ON, "s.name", {"spark.sql.session.timeZone": "GMT+2"}),
    "other texts": (ON, "s.name", {"spark.sql.parser.escapedStringLiterals": "true"}),
    "more rows": (ON, "s.name", {SETTING: "29"}),
    "more bytes": (ON, "s.name", {BYTES_SETTING: "1000"}),
    "neither": (ON, "s.name", {SETTING: "0"}),
}


@pytest.mark.parametrize("name", BY_TASKS)
def test_what_tasks_do(tmp_path: Path, session: Any, done: list[bool], name: str) -> None:
    on, value, settings = BY_TASKS[name]
    deltaic.write(tmp_path / "t", data(range(50), 1), properties={"delta.enableDeletionVectors": True})
    for key, setting in settings.items():
        session.conf.set(key, setting)
    source = session.createDataFrame(data(range(30), 2))
    DeltaTable(tmp_path / "t", spark=session).merge(source, on).when_matched_update({"name": value}).execute()
    assert done == [False]


def test_null_structs_with_fields_that_are_not_null_are_refused(
    tmp_path: Path, session: Any, done: list[bool]
) -> None:
    inner = pa.struct([pa.field("name", pa.string(), nullable=False)])
    schema = pa.schema([("k", pa.int64()), ("inner", inner)])
    deltaic.write(tmp_path / "t", pa.Table.from_pylist([{"k": 1, "inner": {"name": "a"}}], schema))
    source = session.createDataFrame([(1, None), (2, None)], "k bigint, inner struct<name: string>")
    merge = DeltaTable(tmp_path / "t", spark=session).merge(source, ON).when_matched_update_all()
    with pytest.raises(ConstraintViolationError, match=r"inner\.name is NOT NULL"):
        merge.execute()
    assert done == [True]


def test_errors_are_those_of_tasks_and_leave_nothing_behind(
    tmp_path: Path, session: Any, done: list[bool]
) -> None:
    made = deltaic.write(tmp_path / "t", {"k": [1, 2], "n": pa.array([2**31 - 1, 5], pa.int32())})
    made.alter.add_constraints({"few": "n < 1000 OR n = 2147483647"})
    before = {path for path in tmp_path.rglob("*") if path.is_file()}
    table = DeltaTable(tmp_path / "t", spark=session)
    source = session.createDataFrame([(1, 7), (1, 8)], "k bigint, n int")
    one = source.where("n = 7")
    fails: list[tuple[Any, str, type[DeltaError], str]] = [
        (source, "s.n", MergeCardinalityError, "found 2 source rows"),
        (one, "s.n + 5000", ConstraintViolationError, "few"),
        (one, "t.n + s.n", InvalidArgumentError, "ARITHMETIC_OVERFLOW"),
        (one, "'seven'", SchemaMismatchError, "does not fit"),
    ]
    for rows, value, error, text in fails:
        messages = []
        for most in (None, "0"):
            session.conf.unset(BYTES_SETTING) if most is None else session.conf.set(BYTES_SETTING, most)
            with pytest.raises(error, match=text) as info:
                table.merge(rows, ON).when_matched_update({"n": value}).execute()
            messages.append(str(info.value))
        assert messages[0] == messages[1]
    assert done == [True, False] * len(fails)
    assert {path for path in tmp_path.rglob("*") if path.is_file()} == before


def test_columns_that_the_source_brings(tmp_path: Path, session: Any, done: list[bool]) -> None:
    """A comment is a part of a new column on Spark, and would be lost on the way to the driver."""
    for name, comment, driver in (("plain", None, True), ("with a comment", "why", False)):
        made = deltaic.write(tmp_path / name, {"k": [1], "n": [1]})
        source = session.createDataFrame(pa.table({"k": [1, 2], "more": ["a", "b"]}))
        if comment is not None:
            source = source.withMetadata("more", {"comment": comment})
        table = DeltaTable(made.location, spark=session)
        table.merge(
            source, ON, schema_mode="merge"
        ).when_matched_update_all().when_not_matched_insert_all().execute()
        assert content(table) == ["{'k': 1, 'n': 1, 'more': 'a'}", "{'k': 2, 'n': None, 'more': 'b'}"]
        assert table.schema.field("more").metadata == ({} if comment is None else {"comment": comment})
        assert done.pop() == driver


def test_char_columns_are_compared_with_their_spaces(tmp_path: Path, session: Any, done: list[bool]) -> None:
    DeltaTable.create(tmp_path / "t", "k char(4), n int")
    deltaic.write(tmp_path / "t", {"k": ["a", "b"], "n": pa.array([1, 2], pa.int32())}, mode="append")
    source = session.createDataFrame([("a ", 9)], "k string, n int")
    table = DeltaTable(tmp_path / "t", spark=session)
    table.merge(source, ON).when_matched_update({"n": "s.n"}).execute()
    assert done == [False]


def test_batches_of_a_stream(tmp_path: Path, session: Any, done: list[bool]) -> None:
    """Spark has no size of a batch before it has run."""
    import deltaic.spark

    deltaic.spark.enable(session)
    deltaic.write(tmp_path / "t", {"k": [1, 2], "n": [0, 0]})
    for number in range(2):
        deltaic.write(
            tmp_path / "news", {"k": [number + 2, number + 3], "n": [number, number]}, mode="append"
        )

    def merged(batch: Any, number: int) -> None:
        table = DeltaTable(tmp_path / "t", spark=batch.sparkSession)
        table.merge(
            batch.where("n >= 0"), ON
        ).when_matched_update_all().when_not_matched_insert_all().execute()

    stream = session.readStream.format("delta").option("maxFilesPerTrigger", 1).load(str(tmp_path / "news"))
    writer = (
        stream.writeStream.foreachBatch(merged)
        .option("checkpointLocation", str(tmp_path / "c"))
        .trigger(availableNow=True)
    )
    writer.start().awaitTermination()
    assert content(DeltaTable(tmp_path / "t")) == [
        f"{{'k': {key}, 'n': {n}}}" for key, n in ((1, 0), (2, 0), (3, 1), (4, 1))
    ]
    assert done == [True, True]


def test_sql(tmp_path: Path, session: Any, done: list[bool]) -> None:
    """A statement with names of other case, and without aliases in its values."""
    import deltaic.spark

    deltaic.spark.enable(session)
    deltaic.write(tmp_path / "t", {"Key": [1, 2], "N": [1, 2]})
    session.createDataFrame([(2, 20), (3, 30)], "key bigint, m bigint").createOrReplaceTempView("news")
    session.sql(
        f"MERGE INTO delta.`{tmp_path / 't'}` AS T USING news ON T.key = NEWS.KEY "
        "WHEN MATCHED THEN UPDATE SET n = m + T.n WHEN NOT MATCHED THEN INSERT (KEY, n) VALUES (news.key, m)"
    )
    assert content(DeltaTable(tmp_path / "t")) == [
        "{'Key': 1, 'N': 1}",
        "{'Key': 2, 'N': 22}",
        "{'Key': 3, 'N': 30}",
    ]
    assert done == [True]
