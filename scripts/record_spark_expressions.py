"""Records the value, type and error that Spark (ANSI on) gives for every form of
tests/spark_sql/spark_forms.py on every row, in tests/spark_sql/recorded/. Needs PySpark and Java; run it in
the repository's root: `python scripts/record_spark_expressions.py [family ...]`.

A form that fails on some row is evaluated again row by row. A form that Spark refuses before any row is
recorded with `refused`. For the queries of planning_queries.py, the script records whether they fail without
any row.
"""

from __future__ import annotations

import logging
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "spark_sql"))

import pyarrow as pa
from name_forms import name_forms
from planning_queries import PLANNING, PLANNING_SCHEMA
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from spark_cases import Family
from spark_forms import FAMILIES
from spark_recording import encode, save
from transpilation import TRANSPILATION


def condition(error: BaseException) -> str:
    """Returns the error condition, such as DIVIDE_BY_ZERO, of an exception of Spark."""
    if isinstance(error, PySparkException) and error.getCondition():
        return str(error.getCondition())
    text = str(error)
    start = text.find("[")
    return text[start + 1 : text.find("]", start)] if start >= 0 else type(error).__name__


def ask(frame: DataFrame, form: str) -> tuple[str, list[Any]]:
    result = frame.selectExpr(f"({form}) AS value")
    return result.schema["value"].dataType.json(), encode(result.toArrow().column(0))


def load(spark: SparkSession, rows: pa.Table, *, partitions: bool = True) -> DataFrame:
    """Loads the rows into Spark, in one partition or (`partitions=False`) in the plan itself. A timestamp
    without zone is sent as one in UTC, which is the session's zone here, so that no other clock changes
    it."""
    local = [field.name for field in rows.schema if field.type == pa.timestamp("us")]
    zoned = pa.schema(
        [
            field.with_type(pa.timestamp("us", "UTC")) if field.name in local else field
            for field in rows.schema
        ]
    )
    frame = spark.createDataFrame(rows.cast(zoned))
    frame = frame.coalesce(1) if partitions else frame
    for name in local:
        frame = frame.withColumn(name, frame[name].cast("timestamp_ntz"))
    return frame


def record(spark: SparkSession, family: Family, zone: str) -> list[dict[str, Any]]:
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    frame = load(spark, family.rows)
    rows = [load(spark, family.rows.take([i])) for i in range(family.rows.num_rows)]
    spark.conf.set("spark.sql.session.timeZone", zone)
    recorded = []
    for form in family.forms:
        try:
            kind = frame.selectExpr(f"({form}) AS value").schema["value"].dataType.json()
        except PySparkException as error:
            recorded.append({"form": form, "refused": condition(error)})
            continue
        try:
            _, values = ask(frame, form)
        except Exception:
            values = []
            for row in rows:
                try:
                    values += ask(row, form)[1]
                except Exception as error:
                    values.append({"error": condition(error)})
        recorded.append({"form": form, "type": kind, "values": values})
    return recorded


def record_planning(spark: SparkSession) -> list[dict[str, Any]]:
    """Returns for each query if it fails over a table without rows: one of files, as Spark computes rows in
    the plan before it plans."""
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    spark.conf.set("spark.sql.sources.useV1SourceList", "parquet")
    folder = tempfile.mkdtemp()
    spark.createDataFrame([], PLANNING_SCHEMA).write.mode("overwrite").parquet(folder)
    spark.read.schema(PLANNING_SCHEMA).parquet(folder).createOrReplaceTempView("t")
    recorded: list[dict[str, Any]] = []
    for query in PLANNING:
        try:
            spark.sql(query).collect()
            recorded.append({"query": query})
        except Exception as error:
            recorded.append({"query": query, "error": condition(error)})
    shutil.rmtree(folder)
    return recorded


def record_names(spark: SparkSession) -> list[dict[str, Any]]:
    """Returns the name of the column that each form makes, without the forms that Spark refuses."""
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    recorded, known = [], set[str]()
    for family, form in name_forms():
        if family.name not in known:
            load(spark, family.rows, partitions=False).createOrReplaceTempView(family.name)
            known.add(family.name)
        try:
            names = spark.sql(f"SELECT {form} FROM {family.name}").columns
        except Exception:  # what is no analysis error is one inside Spark
            continue
        recorded.append({"rows": family.name, "form": form, "names": names})
    return recorded


def session() -> SparkSession:
    """Returns a local Spark with the settings of the recordings."""
    spark: SparkSession = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.ansi.enabled", "true")
        .config("spark.sql.shuffle.partitions", "1")
        # Thousands of tiny queries: compiling each would take the time.
        .config("spark.sql.codegen.wholeStage", "false")
        .config("spark.sql.codegen.factoryMode", "NO_CODEGEN")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    logging.disable(logging.ERROR)  # failing rows are the point
    return spark


def main(names: list[str]) -> None:
    spark = session()
    if not names or "planning" in names:
        save("planning", "UTC", record_planning(spark))
    if not names or "names" in names:
        save("names", "UTC", record_names(spark))
    for family in (*FAMILIES, TRANSPILATION):
        for zone in family.zones:
            if not names or family.name in names:
                start = time.monotonic()
                recorded = record(spark, family, zone)
                save(family.name, zone, recorded)
                refused = [(entry["form"], entry["refused"]) for entry in recorded if "refused" in entry]
                print(
                    f"{family.name} {zone}: {len(recorded)} forms, {time.monotonic() - start:.0f} s; refused:"
                    f" {refused}",
                    flush=True,
                )


if __name__ == "__main__":
    main(sys.argv[1:])
