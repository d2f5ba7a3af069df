"""A job on executors in processes of their own, one of which dies while it writes; prints what became of it as JSON.

`python cluster_job.py <folder>`: run by `test_cluster.py`, as a session of another master cannot live beside the tests' own.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import deltaic


def dying_once(marker: str) -> Any:
    """A function of batches that ends its executor, Java and all, the first time that anybody runs it."""

    def each(batches: Any) -> Any:
        import os
        import signal

        for batch in batches:
            try:
                os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                yield batch
                continue
            # Python workers are children of a daemon whose parent is the executor.
            daemon = os.getppid()
            with open(f"/proc/{daemon}/stat", encoding="utf-8") as status:
                executor = int(status.read().rsplit(")", 1)[1].split()[1])
            os.kill(executor, signal.SIGKILL)
            os.kill(daemon, signal.SIGKILL)

    return each


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
        "spark.ui.showConsoleProgress": "false",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    path = str(folder / "t")
    frame = spark.range(0, 1000, 1, 4)
    frame.write.format("deltaic").mode("append").save(path)
    dying = frame.mapInArrow(dying_once(str(folder / "marker")), "id bigint")
    outcome = "written"
    try:
        dying.write.format("deltaic").mode("append").save(path)
    except Exception as error:  # a clean failure would be right as well
        outcome = f"failed: {error}"[:500]
    table = deltaic.DeltaTable(path)
    rows = table.scan().to_arrow()["id"].to_pylist()
    print(
        "ANSWER "
        + json.dumps(
            {
                "outcome": outcome,
                "died": (folder / "marker").exists(),
                "version": table.version,
                "rows": len(rows),
                "distinct": len(set(rows)),
                "read": spark.read.format("deltaic").load(path).count(),
            }
        ),
        flush=True,
    )
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
