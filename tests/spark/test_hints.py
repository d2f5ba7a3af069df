"""Errors on Spark advise options, settings and statements of Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import deltaic
import deltaic.spark
from deltaic.errors import InvalidArgumentError, SchemaMismatchError
from deltaic.spark.hints import advise_on_spark
from deltaic.spark.tables import DeltaTable


@pytest.mark.parametrize(
    ("expected", "advice"),
    [
        ("mode='append' or another", 'mode("append") or another'),
        (
            "the table's columns, or schema_mode='merge' to add it, or 'overwrite' to replace the columns",
            "the table's columns, or the option mergeSchema to add it, or overwriteSchema to replace the"
            " columns",
        ),
        (
            "alter.set_properties({'delta.columnMapping.mode': 'name'}) first",
            "ALTER TABLE ... SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name') first",
        ),
    ],
)
def test_advice(expected: str, advice: str) -> None:
    error = InvalidArgumentError("wrong", found="this", expected=expected)
    advise_on_spark(error)
    assert (error.expected, error.args) == (advice, (f"wrong; found this; expected {advice}",))


def test_calls_advise_their_own_arguments(session: Any, tmp_path: Path) -> None:
    deltaic.write(tmp_path / "t", {"id": [1]})
    other = session.range(1).selectExpr("id AS x")
    with pytest.raises(SchemaMismatchError, match="the option mergeSchema to add it"):
        other.write.format("delta").mode("append").save(str(tmp_path / "t"))
    with pytest.raises(SchemaMismatchError, match="schema_mode='merge' to add it"):
        deltaic.spark.write(other, str(tmp_path / "t"), mode="append")


def test_a_table_by_name_needs_an_enabled_session() -> None:
    from deltaic.spark.options import ReadOptions

    with pytest.raises(InvalidArgumentError, match=r"or deltaic\.spark\.enable\(spark\) for tables by name"):
        ReadOptions.of({})


def test_a_merge_says_that_it_has_not_run(session: Any, tmp_path: Path) -> None:
    deltaic.write(tmp_path / "t", {"id": [1]})
    merge = DeltaTable.forPath(session, str(tmp_path / "t")).merge(session.range(1).alias("s"), "true")
    assert repr(merge.whenMatchedDelete()) == "<DeltaMergeBuilder with 1 clause; not run yet: call execute()>"
