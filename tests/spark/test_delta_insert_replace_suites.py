"""Overwrites that replace a part of a table: the options replaceUsing and replaceOn, and the partitions of
the new rows.

Sources: delta-io/delta, DeltaInsertReplaceUsingDFWriterTests, DeltaInsertReplaceOnDFWriterTests,
DeltaInsertReplaceOnOrUsingDFOptionCombinationSuite, DeltaDataFrameWriterV2Suite. The expectations are those
of delta-spark 4.4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import deltaic
import deltaic.spark
from deltaic.engine.spark.engine import SETTING
from deltaic.errors import DeltaError

ROWS = [(1, "t"), (1, "t2"), (2, "t"), (None, "n")]
FILTER = "DELTA_OVERWRITE_BY_FILTER_INCOMPATIBLE_REPLACE_ON_OR_USING"
DYNAMIC = "DELTA_DYNAMIC_PARTITION_OVERWRITE_INCOMPATIBLE_REPLACE_ON_OR_USING"
UNKNOWN = "DELTA_INSERT_REPLACE_ON_UNRESOLVED_COLUMNS_IN_CONDITION"
AMBIGUOUS = "DELTA_INSERT_REPLACE_ON_AMBIGUOUS_COLUMNS_IN_CONDITION"


@pytest.fixture
def enabled(spark: Any) -> Iterator[Any]:
    deltaic.spark.enable(spark)
    yield spark
    delattr(spark, SETTING)


@pytest.fixture
def place(tmp_path: Path, enabled: Any) -> str:
    """A table with the rows ROWS."""
    path = str(tmp_path / "t")
    enabled.createDataFrame(ROWS, "id INT, value STRING").write.format("delta").save(path)
    return path


def rows(spark: Any, path: str) -> set[tuple[Any, ...]]:
    return {tuple(row) for row in spark.read.format("delta").load(path).collect()}


def overwrite(frame: Any, **options: str) -> Any:
    return frame.write.format("delta").mode("overwrite").options(**options)


def condition(run: Callable[[], Any]) -> str | None:
    with pytest.raises(DeltaError) as raised:
        run()
    name: str | None = raised.value.getCondition()  # type: ignore[attr-defined]
    return name


def test_replace_using(place: str, enabled: Any) -> None:
    new = enabled.createDataFrame([(1, "s"), (1, "s2"), (None, "sn"), (4, "s")], "id INT, value STRING")
    overwrite(new, replaceUsing="id").save(place)
    kept = {(1, "s"), (1, "s2"), (2, "t"), (4, "s"), (None, "n"), (None, "sn")}
    assert rows(enabled, place) == kept
    overwrite(new.where("id = 4").selectExpr("id", "'i' AS b"), replaceUsing=" id ").insertInto(
        f"delta.`{place}`"
    )
    assert rows(enabled, place) == kept - {(4, "s")} | {(4, "i")}
    entry = deltaic.DeltaTable(place).history(1)[0]
    assert (entry["operation"], entry["operationParameters"]["replaceUsingCols"]) == ("WRITE", "( id )")


def test_replace_on(place: str, enabled: Any) -> None:
    new = enabled.createDataFrame([(1, "s"), (3, "s")], "id INT, value STRING").alias("s")
    on = "t.id <=> s.id AND t.value = 't'"
    overwrite(new, replaceOn=on, targetAlias="t").save(place)
    assert rows(enabled, place) == {(1, "s"), (1, "t2"), (2, "t"), (3, "s"), (None, "n")}
    assert deltaic.DeltaTable(place).history(1)[0]["operationParameters"]["replaceOnCond"] == on
    overwrite(new, replaceOn="true").save(place)
    assert rows(enabled, place) == {(1, "s"), (3, "s")}


def test_conditions_of_replace_options(place: str, enabled: Any, tmp_path: Path) -> None:
    new = enabled.createDataFrame([(1, "s")], "id INT, value STRING")
    for options, expected in (
        ({"replaceUsing": "id,"}, "DELTA_ILLEGAL_OPTION"),
        ({"replaceUsing": "nope"}, "UNRESOLVED_INSERT_REPLACE_USING_COLUMN"),
        ({"replaceUsing": "id", "replaceWhere": "id = 1"}, FILTER),
        ({"replaceUsing": "id", "partitionOverwriteMode": "dynamic"}, DYNAMIC),
        ({"replaceUsing": "id", "overwriteSchema": "true"}, "DELTA_INCOMPATIBLE_DATAFRAME_OPTIONS"),
        ({"replaceUsing": "id", "replaceOn": "true"}, "DELTA_INCOMPATIBLE_DATAFRAME_OPTIONS"),
        ({"replaceOn": "t.id = 1"}, UNKNOWN),
        ({"replaceOn": "id = 1"}, AMBIGUOUS),
    ):
        assert condition(partial(overwrite(new, **options).save, place)) == expected
    moved = overwrite(new.select("value", "id"), replaceUsing="id")
    found = condition(lambda: moved.insertInto(f"delta.`{place}`"))
    assert found == "INSERT_REPLACE_USING_DISALLOW_MISALIGNED_COLUMNS"
    absent = partial(overwrite(new, replaceUsing="id").save, str(tmp_path / "absent"))
    assert condition(absent) == "DELTA_PATH_DOES_NOT_EXIST"
    assert deltaic.DeltaTable(place).version == 0


def test_partitions_of_the_new_rows(enabled: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "p")
    name, new = f"delta.`{path}`", enabled.createDataFrame(ROWS, "id INT, value STRING")
    new.writeTo(name).using("delta").partitionedBy("id").create()
    absent, unknown = "DELTA_NON_PARTITION_COLUMN_ABSENT", "DELTA_PARTITION_COLUMN_NOT_FOUND"
    assert condition(lambda: new.select("id").writeTo(name).overwritePartitions()) == absent
    assert condition(lambda: new.select("value").writeTo(name).overwritePartitions()) == unknown
    new.selectExpr("2 AS id", "NULL AS value").limit(1).writeTo(name).overwritePartitions()
    assert rows(enabled, path) == {(1, "t"), (1, "t2"), (2, None), (None, "n")}
    writer = new.where("id = 2").writeTo(name).using("delta").option("partitionOverwriteMode", "dynamic")
    writer.partitionedBy("value").createOrReplace()
    assert rows(enabled, path) == {(2, "t")}


def test_variants_of_structs_with_other_names(enabled: Any, tmp_path: Path) -> None:
    """DeltaVariantSuite: "add a new Variant column should upgrade to the correct protocol versions"."""
    table = f"delta.`{tmp_path}/variants`"
    enabled.sql(f"CREATE TABLE {table} (s STRUCT<v: VARIANT>, a ARRAY<STRUCT<v: VARIANT>>) USING delta")
    enabled.sql(f"INSERT INTO {table} SELECT struct(parse_json('2')), array(struct(parse_json('[3]')))")
    row = enabled.sql(f"SELECT s.v::int AS s, to_json(a[0].v) AS a FROM {table}").first()
    assert tuple(row) == (2, "[3]")


def test_structs_of_insert_by_name(enabled: Any, tmp_path: Path) -> None:
    """Fields of structs, also in arrays, match by name, and by position if a column needs a cast (suites
    DeltaInsertIntoColumnOrderSuite and DeltaInsertIntoColumnOrderAdvancedSuite). A list of columns names the
    fields of structs by position, but not those in arrays."""
    path, pair = str(tmp_path / "structs"), "STRUCT<x: INT, y: INT>"
    enabled.sql(f"CREATE TABLE delta.`{path}` (a INT, s {pair}, l ARRAY<{pair}>) USING delta")
    struct = "named_struct('y', 5, 'x', 4)"
    for insert in (
        f"BY NAME SELECT {struct} AS s, 1 AS a, array({struct}) AS l",
        f"BY NAME SELECT {struct} AS s, 2L AS a, array({struct}) AS l",
        f"(a, s, l) SELECT 3, {struct}, array({struct})",
        f"(a, s, l) SELECT 4L, {struct}, array({struct})",
        f"SELECT 5, {struct}, array({struct})",
    ):
        enabled.sql(f"INSERT INTO delta.`{path}` {insert}")
    found = enabled.sql(f"SELECT a, s, l[0] FROM delta.`{path}` ORDER BY a").collect()
    by_name, by_position = (4, 5), (5, 4)
    assert [tuple(row) for row in found] == [
        (1, by_name, by_name),
        (2, by_position, by_position),
        (3, by_position, by_name),
        (4, by_position, by_position),
        (5, by_position, by_position),
    ]


def test_partition_columns_in_backticks(enabled: Any, tmp_path: Path) -> None:
    frame = enabled.createDataFrame([(1, "a")], "id INT, `a.part` STRING")
    writer = frame.write.format("delta").option("path", str(tmp_path / "ticks"))
    writer.partitionBy("`a.part`").saveAsTable("partitioned_in_backticks")
    try:
        table = deltaic.DeltaTable(tmp_path / "ticks", spark=enabled)
        assert table.metadata.partition_columns == ["a.part"]
    finally:
        enabled.sql("DROP TABLE partitioned_in_backticks")
