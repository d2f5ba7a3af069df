"""Runs delta-spark in a process with a pipe: an interpreter with the PySpark of its jars answers requests,
one line of JSON each.

`python delta_spark_peer.py <folder of jars>`. {"sql": text} -> rows as lists; {"read": path, "columns":
[expression, ...], "version": n} -> sorted rows; {"stream": path, "into": path, "checkpoint": path, "options":
{...}} -> the id of a query that has read all rows of the source. Answers are lines that begin with ANSWER; an
error is {"error": text}.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

NEEDED = ("delta-", "unitycatalog", "jackson-datatype-jdk8")


def session(jars: str) -> Any:
    from pyspark.sql import SparkSession

    chosen = [str(path) for path in Path(jars).glob("*.jar") if any(name in path.name for name in NEEDED)]
    builder = SparkSession.builder.master("local[1]").appName("peer")
    for key, value in {
        "spark.jars": ",".join(chosen),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "1g",
    }.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def answer(spark: Any, question: dict[str, Any]) -> Any:
    if "sql" in question:
        return [list(row) for row in spark.sql(question["sql"]).collect()]
    if "stream" in question:
        return streamed(spark, question)
    reader = spark.read.format("delta")
    if question.get("version") is not None:
        reader = reader.option("versionAsOf", question["version"])
    frame = reader.load(question["read"]).selectExpr(*question["columns"])
    return [list(row) for row in frame.orderBy(*frame.columns).collect()]


def streamed(spark: Any, question: dict[str, Any]) -> str:
    frame = spark.readStream.format("delta").options(**question["options"]).load(question["stream"])
    writer = (
        frame.writeStream.format("delta")
        .option("checkpointLocation", question["checkpoint"])
        .trigger(availableNow=True)
    )
    query = writer.start(question["into"])
    query.awaitTermination()
    return str(query.id)


def main() -> None:
    spark = session(sys.argv[1])
    print("ANSWER " + json.dumps("ready"), flush=True)
    for line in sys.stdin:
        try:
            found = answer(spark, json.loads(line))
        except Exception as error:  # each error is passed to the test
            found = {"error": str(error)[:2000]}
        print("ANSWER " + json.dumps(found, default=str), flush=True)


if __name__ == "__main__":
    main()
