"""Statements and expressions that Spark's parser refuses change nothing, on either engine and through every
function that takes them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltaic
from broken_statements import STATEMENTS, broken, is_statement
from deltaic.errors import DeltaError, InvalidArgumentError, InvalidTypeError

pytest.importorskip("pyspark")

from pyspark.errors import PySparkException

ROWS = pa.table({"id": [1, 2, 3, 4], "p": pa.array([1, 1, 2, 2], pa.int32()), "s": ["a", "b", "c", "d"]})


@pytest.fixture
def table(tmp_path: Path) -> deltaic.DeltaTable:
    return deltaic.write(
        tmp_path / "t", ROWS, partition_by="p", properties={"delta.enableDeletionVectors": True}
    )


@pytest.mark.parametrize("engine", ["spark", "embedded"])
def test_broken_statements(spark: Any, tmp_path: Path, table: deltaic.DeltaTable, engine: str) -> None:
    from deltaic.spark import sql

    source = deltaic.write(tmp_path / "s", ROWS)
    run: Callable[[str], Any] = (lambda text: sql(spark, text)) if engine == "spark" else deltaic.sql
    names = {"{t}": f"delta.`{table.location}`", "{s}": f"delta.`{source.location}`"}
    count = 0
    for form in broken(STATEMENTS, seed=7, per_statement=14):
        text = form
        for name, value in names.items():
            text = text.replace(name, value)
        if is_statement(spark, text):
            continue
        count += 1
        with pytest.raises((DeltaError, PySparkException)):  # noqa: PT012 - what is taken is named
            run(text)
            print("taken for a statement:", form)
        assert deltaic.DeltaTable(table.location).version == 0, form
    assert count > 180
    assert table.scan().to_arrow().num_rows == 4


ALIASED = (
    "id = 1 AND",
    "id > 3 OR",
    "p = 1 garbage",
    "p = 1 AS x",
    "id = 1) OR (p = 1",
    "id = 1 /* open",
    "p = 1; id = 2",
    "",
)


@pytest.mark.parametrize("text", ALIASED)
@pytest.mark.parametrize("engine", ["spark", "embedded"])
def test_an_expression_goes_to_the_end_of_its_text(
    spark: Any, table: deltaic.DeltaTable, engine: str, text: str
) -> None:
    if engine == "spark":
        table = deltaic.DeltaTable(table.location, spark=spark)
    value = text.replace("id = 1", "1").replace("p = 1", "1").replace("id > 3", "1")
    commands: list[Callable[[], Any]] = [
        lambda: table.delete(text),
        lambda: table.update({"s": "'x'"}, text),
        lambda: table.update({"id": value}),
        lambda: table.scan(where=text).to_arrow(),
        lambda: deltaic.write(table, ROWS, mode="overwrite", where=text),
        lambda: table.optimize.compact(text),
        lambda: (
            table.merge(ROWS, text.replace("id", "t.id").replace("p ", "t.p "))
            .when_matched_delete()
            .execute()
        ),
        lambda: (
            table.merge(ROWS, "t.id = s.id")
            .when_matched_delete(text.replace("id", "t.id").replace("p ", "t.p "))
            .execute()
        ),
        lambda: table.merge(ROWS, "t.id = s.id").when_matched_update({"id": value}).execute(),
        lambda: table.merge(ROWS, "t.id = s.id").when_not_matched_insert({"id": value}).execute(),
    ]
    for number, command in enumerate(commands):
        with pytest.raises((InvalidArgumentError, InvalidTypeError)):  # noqa: PT012 - what is taken is named
            command()
            print("not refused: command", number)
    assert deltaic.DeltaTable(table.location).version == 0


def test_deltas_python_api(spark: Any, table: deltaic.DeltaTable) -> None:
    from deltaic.spark.tables import DeltaTable

    ours = DeltaTable.forPath(spark, table.location)
    for command in (
        lambda: ours.delete("id = 1 AND"),
        lambda: ours.update("p = 1 OR", {"s": "'x'"}),
        lambda: ours.update(set={"s": "'x' AND"}),
        lambda: ours.optimize().where("p = 1 AND").executeCompaction(),
        lambda: (
            spark.read.format("deltaic")
            .load(table.location)
            .transform(lambda _: deltaic.spark.read(spark, table.location, where="id = 1 OR"))
        ),
    ):
        with pytest.raises(InvalidArgumentError):
            command()
    assert deltaic.DeltaTable(table.location).version == 0


def test_a_comment_may_end_an_expression(spark: Any, table: deltaic.DeltaTable) -> None:
    for engine in (None, spark):
        assert deltaic.DeltaTable(table.location, spark=engine).scan(where="id = 1 -- the first").count() == 1
