"""Records the rows, names and types that Spark (ANSI on) gives for each query of the files that
tests/spark_sql/query_answers.py names, in tests/spark_sql/recorded/queries-UTC.json.gz. Needs PySpark and
Java; run it in the repository's root: `python scripts/record_spark_queries.py [name ...]`. With names, only
these queries are run, and those that are not recorded yet."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "spark_sql"))

from pyspark.sql import SparkSession
from query_answers import encoded, queries
from query_tables import tables
from record_spark_expressions import condition, load, session
from spark_recording import load as recorded
from spark_recording import save


def main(names: list[str]) -> None:
    texts = dict(queries())
    known = {} if not names else {entry["query"]: entry for entry in recorded("queries", "UTC")}
    spark = session()
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    for name, rows in tables().items():
        load(spark, rows, partitions=False).createOrReplaceTempView(name)
    for name, text in texts.items():
        if name in names or name not in known:
            known[name] = {"query": name, **ask(spark, text)}
            print(name, "--", known[name].get("error", f"{len(known[name].get('rows', ()))} rows"))
    save("queries", "UTC", [known[name] for name in texts])
    spark.stop()


def ask(spark: SparkSession, text: str) -> dict[str, Any]:
    try:
        frame = spark.sql(text)
        columns = [[field.name, field.dataType.simpleString()] for field in frame.schema]
        return {"columns": columns, "rows": encoded(frame.toArrow())}
    except Exception as error:
        return {"error": condition(error)}


if __name__ == "__main__":
    main(sys.argv[1:])
