"""Partition columns whose names are more than one word, on Spark: by DataFrameWriter, SQL and the
commands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import deltaic.spark
from deltaic import DeltaTable
from deltaic.engine.spark.engine_session import ROWS_SETTING as DRIVER_ROWS

NAMES = ("event-date", "a.b", "1st", "a:b", "p/q", "tick`ed")


def frame(session: Any, start: int, stop: int) -> Any:
    values = ", ".join(f"CAST(id % 2 AS int) AS `{name.replace('`', '``')}`" for name in NAMES)
    return session.range(start, stop, 1, 2).selectExpr(
        "id", "id AS `v-1`", values.split(", ")[0], *values.split(", ")[1:]
    )


@pytest.mark.parametrize(("mapping", "driver_rows"), [("none", 0), ("name", 0), ("name", 5000)])
def test_every_command(tmp_path: Path, spark: Any, mapping: str, driver_rows: int) -> None:
    session, path = spark.newSession(), str(tmp_path / "t")
    deltaic.spark.enable(session)
    session.conf.set(DRIVER_ROWS, driver_rows)
    options = {"delta.columnMapping.mode": mapping, "optimizeWrite": "true"}
    frame(session, 0, 8).write.format("delta").options(**options).partitionBy(*NAMES).save(path)
    frame(session, 8, 10).write.format("delta").mode("append").partitionBy(*NAMES).save(path)
    name, table = f"delta.`{path}`", DeltaTable(path, spark=session)
    assert table.metadata.partition_columns == NAMES
    session.sql(
        f"UPDATE {name} SET `a.b` = 7, `v-1` = `v-1` + 1 WHERE `event-date` = 0 AND `a.b` = 0 AND `tick``ed`"
        " = 0 AND id = 0"
    )
    frame(session, 1, 2).createOrReplaceTempView("source")
    session.sql(
        f"MERGE INTO {name} t USING source s ON t.`p/q` = s.`p/q` AND t.id = s.id WHEN MATCHED THEN UPDATE"
        " SET `1st` = 8"
    )
    session.sql(f"DELETE FROM {name} WHERE `1st` = 1 AND id IN (3, 5)")
    where = "`a.b` = 0 AND id BETWEEN 4 AND 6"
    frame(session, 4, 5).write.format("delta").mode("overwrite").option("replaceWhere", where).save(path)
    expected = [
        (0, 7, 0, 1),
        (1, 1, 8, 1),
        (2, 0, 0, 2),
        (4, 0, 0, 4),
        (7, 1, 1, 7),
        (8, 0, 0, 8),
        (9, 1, 1, 9),
    ]
    loaded = session.read.format("delta").load(path)
    assert sorted(map(tuple, loaded.select("id", "`a.b`", "`1st`", "`v-1`").collect())) == expected
    assert loaded.where("`event-date` = 1 AND `p/q` = 1").count() == 3
    session.sql(f"OPTIMIZE {name} WHERE `a:b` = 1 ZORDER BY (`v-1`, id)")
    frame(session, 21, 22).write.format("delta").mode("overwrite").option(
        "partitionOverwriteMode", "dynamic"
    ).save(path)
    assert sorted(DeltaTable(path).scan(["id"]).to_arrow()["id"].to_pylist()) == [0, 1, 2, 4, 8, 21]
    with pytest.raises(deltaic.errors.InvalidArgumentError, match="partition_by"):
        frame(session, 1, 2).write.format("delta").mode("append").partitionBy("a.b").save(path)
