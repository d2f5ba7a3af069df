"""Records Spark's results of TPC-H at scale 0.1: tests/spark_sql/recorded/tpch.json.

    TPCHGEN=tpchgen-cli python scripts/record_tpch.py

`tpchgen-cli` (PyPI) makes the data. ANSI mode is on, as it is by default.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "spark_sql"))

from tpch import SCALE, TABLES, answer_of, queries, save


def main() -> None:
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "4")
        .getOrCreate()
    )
    with tempfile.TemporaryDirectory() as folder:
        command = [os.environ.get("TPCHGEN", "tpchgen-cli"), "parquet", "-s", SCALE, f"--output-dir={folder}"]
        subprocess.run(command, check=True)
        for name in TABLES:
            spark.read.parquet(f"{folder}/{name}.parquet").createOrReplaceTempView(name)
        save({name: answer_of(spark.sql(text).toArrow()) for name, text in queries().items()})


if __name__ == "__main__":
    main()
