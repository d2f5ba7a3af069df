"""Writes an archive of Spark's classes, with which the tests start Java in a third of the processors' time:

python scripts/archive_spark_classes.py .venv/spark-classes.jsa

The file is empty if this Java writes no archive, or if Spark fails; the tests then go without one.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from java import JVM, java_home
from spark_session import SETTINGS

STATEMENTS = (
    "CREATE TABLE classes (id BIGINT, name STRING, day DATE) USING delta PARTITIONED BY (day)",
    "INSERT INTO classes SELECT id, 'x', DATE'2026-01-01' FROM range(9)",
    "UPDATE classes SET name = upper(name) WHERE id > 5",
    "DELETE FROM classes WHERE id = 3",
    "MERGE INTO classes t USING (SELECT 7 AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE",
    "ALTER TABLE classes ADD COLUMN more DECIMAL(9, 2)",
    "OPTIMIZE classes",
    "DESCRIBE HISTORY classes",
    "SELECT name, count(*), max(more) FROM classes JOIN range(9) USING (id) GROUP BY name ORDER BY name",
)
"""What most tests do. The classes that it loads are in the archive."""


def run_spark(folder: Path) -> None:
    """Runs STATEMENTS and a stream in a session as the tests have it, and waits for the end of its JVM, which
    writes the archive."""
    from pyspark.sql import SparkSession

    from deltaic.spark import enable

    builder = SparkSession.builder.master("local[2]").config("spark.sql.warehouse.dir", str(folder))
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    process = session.sparkContext._gateway.proc
    enable(session)
    for statement in STATEMENTS:
        session.sql(statement).collect()
    rows = session.readStream.table("classes")
    stream = rows.writeStream.option("checkpointLocation", str(folder / "checkpoint"))
    stream.trigger(availableNow=True).toTable("copied").awaitTermination()
    session.stop()
    process.stdin.close()
    process.wait()


def main(archive: Path) -> None:
    unfinished = archive.absolute().with_suffix(".unfinished")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        home = java_home(folder / "java")
        environment = {**os.environ, "JDK_JAVA_OPTIONS": f'{JVM} "-XX:ArchiveClassesAtExit={unfinished}"'}
        if home is not None:
            environment["JAVA_HOME"] = home
        command = [sys.executable, __file__, "--run", str(folder / "warehouse")]
        done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        print(done.stderr, file=sys.stderr)
        unfinished.unlink(missing_ok=True)
    unfinished.touch()
    unfinished.replace(archive)
    print(f"{archive}: {archive.stat().st_size >> 20} MB")


if __name__ == "__main__":
    if sys.argv[1] == "--run":
        run_spark(Path(sys.argv[2]))
    else:
        main(Path(sys.argv[1]))
