"""Runs jobs on executors in processes of their own, one of which dies in each job, and prints the outcome of
each as JSON.

`python cluster_job.py <folder>` is run by `test_cluster.py`, because a session of another master cannot be in
the process of the other tests.
"""

from __future__ import annotations

import json
import os
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

import deltaic
from deltaic.log import references


def dying_once(marker: str) -> Any:
    """Returns a function of one value that returns it, and ends its executor, with its JVM, on its first
    call."""

    def each(value: Any) -> Any:
        import os
        import signal

        try:
            os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return value
        # Python workers are children of a daemon whose parent is the executor.
        daemon = os.getppid()
        with open(f"/proc/{daemon}/stat", encoding="utf-8") as status:
            executor = int(status.read().rsplit(")", 1)[1].split()[1])
        os.kill(executor, signal.SIGKILL)
        os.kill(daemon, signal.SIGKILL)
        return value

    return each


def append_by_source(spark: Any, path: str) -> None:
    """Through the Python data source, whose tasks write by themselves."""
    spark.range(N, N + 400, 1, 4).selectExpr("append_by_source(id) AS id", "0L AS x").write.format(
        "deltaic"
    ).mode("append").save(path)


def delete(spark: Any, path: str) -> None:
    deltaic.DeltaTable(path, spark=spark).delete("delete(id) % 3 = 0")


def merge(spark: Any, path: str) -> None:
    """It dies when the source is read."""
    source = spark.range(N - 200, N + 200, 1, 4).selectExpr("merge(id) AS id", "7L AS x")
    deltaic.DeltaTable(path, spark=spark).merge(
        source, "t.id = s.id"
    ).when_matched_update_all().when_not_matched_insert_all().execute()


def merge_in_files(spark: Any, path: str) -> None:
    """It dies when files are written anew."""
    deltaic.DeltaTable(path).alter.set_properties({"delta.enableDeletionVectors": False})
    source = spark.range(N - 200, N + 200, 1, 4).selectExpr("id", "7L AS x")
    job = (
        deltaic.DeltaTable(path, spark=spark).merge(source, "t.id = s.id").when_matched_delete("t.id % 2 = 0")
    )
    job.when_matched_update({"x": "merge_in_files(s.x)"}).when_not_matched_insert_all().execute()


N = 1000
JOBS = (append_by_source, delete, merge, merge_in_files)


def outcome_of(spark: Any, job: Any, folder: Path) -> dict[str, Any]:
    """What became of one job on a table of its own."""
    name, path = job.__name__, str(folder / job.__name__)
    table = deltaic.write(
        path, pa.table({"id": range(N), "x": range(N)}), properties={"delta.enableDeletionVectors": True}
    )
    deltaic.write(table, pa.table({"id": range(-500, 0), "x": [5] * 500}), mode="append")
    marker = folder / f"{name}.marker"
    spark.udf.register(name, dying_once(str(marker)), "bigint")
    outcome = "done"
    try:
        job(spark, path)
    except Exception as error:  # a clean failure would be right as well
        outcome = f"failed: {error}"[:500]
    table = deltaic.DeltaTable(path)
    rows = sorted((row["id"], row["x"]) for row in table.scan().to_arrow().to_pylist())
    last = table.history(1)[0]["operation"]
    read = sorted(map(tuple, deltaic.DeltaTable(path, spark=spark).scan().to_spark().collect()))
    # VACUUM deletes each file that no version names: after it, only the files of the last version are left.
    table.vacuum(retention=timedelta(0), enforce_retention=False)
    live = {os.path.relpath(each, path) for each in table.files().to_arrow()["location"].to_pylist()}
    live |= set(
        references.vector_files(
            table._snapshot.core.files(table._snapshot.table_schema).adds, path
        ).to_pylist()
    )
    # Hadoop's checksums of local files.
    live |= {str(Path(each).with_name(f".{Path(each).name}.crc")) for each in live}
    left = {
        os.path.relpath(each, path)
        for each in Path(path).rglob("*")
        if each.is_file() and "_delta_log" not in each.parts
    }
    strangers = sorted(left - live)
    after = sorted((row["id"], row["x"]) for row in deltaic.DeltaTable(path).scan().to_arrow().to_pylist())
    return {
        "job": name,
        "outcome": outcome,
        "died": marker.exists(),
        "last": last,
        "rows": rows,
        "read": read,
        "after": after,
        "strangers": strangers,
    }


def main(folder: Path) -> None:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local-cluster[2,1,600]").appName("cluster")
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.memory": "600m",
        "spark.executor.memory": "600m",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        # Row ids become bitmaps on the executors, also of one that dies meanwhile.
        "spark.deltaic.driverRowIds": "100",
        "spark.ui.showConsoleProgress": "false",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    for job in JOBS:
        started = time.monotonic()
        print("ANSWER " + json.dumps(outcome_of(spark, job, folder)), flush=True)
        print(f"{job.__name__} took {time.monotonic() - started:.1f} s", flush=True)
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
