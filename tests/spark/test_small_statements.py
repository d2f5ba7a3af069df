"""Repeated small queries of a table that has not changed: few calls to the JVM, and DataFrames that are
independent of each other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltaic
import deltaic.spark
from deltaic.engine.spark.native.session import has_jvm

MOST_CALLS = 45
"""Maximum number of messages to the JVM for one query by name, without the rows."""


@pytest.fixture
def named(tmp_path: Path, spark: Any) -> Iterator[str]:
    if not has_jvm(spark):
        pytest.skip("Spark Connect has no JVM to call")
    for start in (0, 10):
        rows = pa.table({"id": range(start, start + 10), "other": range(9 - start, -1 - start, -1)})
        deltaic.write(tmp_path / "t", rows, mode="append")
    deltaic.spark.enable(spark)
    spark.sql(f"CREATE TABLE small_statements USING delta LOCATION '{tmp_path / 't'}'")
    yield "small_statements"
    spark.sql("DROP TABLE small_statements")


def test_a_query_by_name_makes_few_calls(named: str, spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from py4j.java_gateway import GatewayClient

    spark.sql(f"SELECT id FROM {named} WHERE id < 3").collect()
    messages: list[str] = []
    send = GatewayClient.send_command

    def counted(self: Any, command: str, *args: Any, **named_args: Any) -> Any:
        # Messages that an object is no longer used depend on Python's garbage collector.
        if not command.startswith("m\n"):
            messages.append(command)
        return send(self, command, *args, **named_args)

    monkeypatch.setattr(GatewayClient, "send_command", counted)
    frame = spark.sql(f"SELECT id FROM {named} WHERE id < 4")
    assert len(messages) <= MOST_CALLS
    messages.clear()
    frame._jdf.queryExecution().executedPlan().execute()
    assert len(messages) <= MOST_CALLS
    monkeypatch.undo()
    assert sorted(row.id for row in frame.collect()) == [0, 1, 2, 3]


def test_two_frames_of_a_table_can_be_joined(named: str, spark: Any, tmp_path: Path) -> None:
    for make in (
        lambda: spark.sql(f"SELECT * FROM {named}"),
        lambda: spark.read.format("delta").load(str(tmp_path / "t")),
    ):
        one, two = make(), make()
        assert one.join(two, one.id == two.other + 1).count() == 11
        assert one.where("id < 5").join(two.where("id > 2"), "id").count() == 2


def test_each_query_sees_the_newest_version(named: str, spark: Any) -> None:
    before = spark.sql(f"SELECT * FROM {named}")
    spark.sql(f"DELETE FROM {named} WHERE id = 3")
    after = spark.sql(f"SELECT * FROM {named}")
    spark.sql(f"INSERT INTO {named} VALUES (100, 100), (101, 101)")
    assert before.count() == after.count() == spark.sql(f"SELECT * FROM {named}").count() == 21
