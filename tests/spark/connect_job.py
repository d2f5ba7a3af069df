"""Commands through Spark Connect, where there is no JVM to talk to; prints what became of them as JSON.

`python connect_job.py <folder>`: run by `test_connect.py`, as a process has either a session of Connect or one with a JVM.
"""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path

import pyarrow as pa

import deltaic
import deltaic.spark


def main(folder: Path) -> None:
    from pyspark.sql import SparkSession

    said: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("deltaic.spark").addHandler(handler)
    logging.getLogger("deltaic.spark").setLevel(logging.INFO)
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.memory": "1g",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
    }
    builder = SparkSession.builder.remote("local[2]").config("spark.sql.session.timeZone", "UTC")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    deltaic.spark.enable(spark)
    rows = {}
    for name in ("local", "connect"):
        place = folder / name
        data = pa.table({"id": range(1000), "part": [i % 2 for i in range(1000)], "x": [i / 2 for i in range(1000)]})
        made = deltaic.write(place, data, partition_by=["part"], properties={"delta.enableDeletionVectors": True})
        table = made if name == "local" else deltaic.DeltaTable(place, spark=spark)
        table.delete("id % 5 = 0 or x = 3.5")
        table.update({"x": "x + 1"}, "part = 1 and id > 900")
        source = pa.table({"id": [1, 2, 9000], "part": [1, 0, 0], "x": [None, 0.5, 1.5]})
        table.merge(source, "t.id = s.id").when_matched_update_all().when_not_matched_insert_all().execute()
        more = pa.table({"id": [7000, 7001], "part": [0, 1], "x": [1.0, 2.0]})
        deltaic.write(place, more if name == "local" else spark.createDataFrame(more), mode="append")
        table.refresh()
        table.optimize.compact()
        rows[name] = sorted(map(repr, deltaic.DeltaTable(place).scan().to_arrow().to_pylist()))
    frame = deltaic.spark.read(spark, folder / "connect", where="x > 100")
    answer = {
        "same": rows["local"] == rows["connect"],
        "read": sorted(map(repr, frame.toArrow().to_pylist())) == [row for row in rows["local"] if eval(row)["x"] and eval(row)["x"] > 100],
        "by format": spark.read.format("deltaic").load(str(folder / "connect")).count() == len(rows["local"]),
        "by sql": deltaic.spark.sql(spark, f"SELECT count(*) FROM delta.`{folder / 'connect'}` WHERE part = 1").first()[0],
        "deleted by sql": deltaic.spark.sql(spark, f"DELETE FROM delta.`{folder / 'connect'}` WHERE part = 1").first()[0],
        "said": said,
    }
    print("ANSWER " + json.dumps(answer), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
