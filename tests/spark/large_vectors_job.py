"""Reads a table whose deletion vectors have 1 GB, on executors in processes of their own and a driver of 2
GB, and prints the results as JSON.

`python large_vectors_job.py <table> <native>` is run by `test_large_vectors.py`, because its driver has
another heap than that of the other tests.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from deltaic import DeltaTable
from deltaic.engine.spark.engine import SETTING

WHERE = "block < 8 OR block >= 120"
"""Spark's reader leaves out the row groups between: the vectors come whole, and most rows of 8 billion need
not be read to see it."""

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "2g",
    "spark.executor.memory": "1g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
}


def weight(spark: Any, thing: Any) -> int:
    """Returns the number of bytes of a Java object as Spark sends it."""
    made = spark._jvm.java.io.ByteArrayOutputStream()
    spark._jvm.java.io.ObjectOutputStream(made).writeObject(thing)
    return int(made.size())


def peak(process: int) -> int:
    """Returns the maximum bytes of memory that a process has had."""
    status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def answer(spark: Any, path: str) -> dict[str, Any]:
    from pyspark.sql import functions as F

    started = time.monotonic()
    frame = DeltaTable(path, spark=spark).scan(where=WHERE).to_spark()
    grouped = frame.groupBy("file").agg(F.count("*").alias("rows"), F.sum("block").alias("sum"))
    found = sorted(map(tuple, grouped.collect()))
    seconds = time.monotonic() - started
    plan = grouped._jdf.queryExecution().executedPlan().toString()
    return {
        "rows": found,
        "broadcasts": plan.count("Broadcast"),
        "sent_to_all": weight(spark, frame._jdf.queryExecution().toRdd()),
        "seconds": round(seconds, 1),
        "python": peak(os.getpid()),
        "java": peak(int(spark._jvm.java.lang.ProcessHandle.current().pid())),
    }


def main(path: str, native: str) -> None:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local-cluster[2,1,1024]").appName("large vectors")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    setattr(spark, SETTING, native)
    print("ANSWER " + json.dumps(answer(spark, path)), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
