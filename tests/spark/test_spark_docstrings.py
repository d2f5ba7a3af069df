"""The examples in the docstrings of `deltaic.spark` run, and every public method has one. In each example,
`/data` is a new folder."""

from __future__ import annotations

import doctest
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deltaic
import deltaic.spark
from deltaic.spark import functions
from deltaic.spark.merge_builder import DeltaMergeBuilder
from deltaic.spark.merge_into import PathMerge
from deltaic.spark.table_builder import DeltaTableBuilder, IdentityGenerator
from deltaic.spark.tables import DeltaOptimizeBuilder, DeltaTable
from deltaic.spark.writers import PathWriter

CLASSES = (DeltaTable, DeltaMergeBuilder, DeltaOptimizeBuilder, DeltaTableBuilder)
# Classes whose own docstring has the example of all their methods.
ONE_EXAMPLE = (IdentityGenerator, PathMerge, PathWriter)
# `session` and `disable` have examples that would change the session of the other tests.
FUNCTIONS = (deltaic.spark.read, deltaic.spark.write, deltaic.spark.sql, deltaic.spark.enable)


def documented() -> Iterator[tuple[str, str]]:
    for owner in (*CLASSES, *ONE_EXAMPLE):
        yield owner.__name__, inspect.getdoc(owner) or ""
    for owner in CLASSES:
        for name in vars(owner):
            if not name.startswith("_"):
                yield f"{owner.__name__}.{name}", inspect.getdoc(getattr(owner, name)) or ""
    for function in FUNCTIONS:
        yield f"spark.{function.__name__}", inspect.getdoc(function) or ""
    for name in functions.__all__:
        yield f"functions.{name}", inspect.getdoc(getattr(functions, name)) or ""


TEXTS = dict(documented())


def examples(name: str) -> list[doctest.Example]:
    return doctest.DocTestParser().get_examples(TEXTS[name])


def test_every_public_method_has_an_example() -> None:
    whole = {owner.__name__ for owner in ONE_EXAMPLE}
    assert [name for name in TEXTS if ("." in name or name in whole) and not examples(name)] == []


@pytest.fixture
def names(spark: Any, tmp_path: Path) -> dict[str, Any]:
    """What the examples name: a table of two versions, one without vectors, one by day, a DataFrame,
    builders."""
    deltaic.write(
        tmp_path / "flights", {"id": [1, 2, 3], "origin": ["JFK", "LGA", "EWR"], "delay": [5, None, 70]}
    )
    deltaic.write(tmp_path / "flights", {"id": [4], "origin": ["EWR"], "delay": [20]}, mode="append")
    deltaic.write(tmp_path / "plain", {"id": [1]}, properties={"delta.enableDeletionVectors": False})
    deltaic.sql(f"CREATE TABLE delta.`{tmp_path}/by_day` (id INT, day DATE) PARTITIONED BY (day)")
    day = tmp_path / "events" / "day=2026-01-01"
    day.mkdir(parents=True)
    pq.write_table(pa.table({"id": [1]}), day / "a.parquet")
    table, plain, by_day = (
        DeltaTable.forPath(spark, str(tmp_path / name)) for name in ("flights", "plain", "by_day")
    )
    news = spark.createDataFrame(
        [(1, "JFK", 6), (9, "LGA", 0)], "id BIGINT, origin STRING, delay BIGINT"
    ).alias("s")
    return {
        **{
            "deltaic": deltaic,
            "functions": functions,
            "spark": spark,
            "DeltaTable": DeltaTable,
            "IdentityGenerator": IdentityGenerator,
            "table": table,
            "plain": plain,
        },
        **{"by_day": by_day, "news": news, "merge": table.alias("t").merge(news, "t.id = s.id")},
        "builder": DeltaTable.create(spark),
    }


class Checker(doctest.OutputChecker):
    """Compares an answer where the example shows one."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        return not want or super().check_output(want, got, optionflags)


@pytest.mark.parametrize("name", [name for name in TEXTS if examples(name)])
def test_the_example_runs(name: str, names: dict[str, Any], tmp_path: Path) -> None:
    runs = [
        doctest.Example(each.source.replace("/data", str(tmp_path)), each.want) for each in examples(name)
    ]
    report: list[str] = []
    outcome = doctest.DocTestRunner(checker=Checker()).run(
        doctest.DocTest(runs, names, name, None, None, None), out=report.append
    )
    assert outcome.failed == 0, "".join(report)
