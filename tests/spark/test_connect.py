"""A session of Spark Connect: no JVM to talk to, so everything goes by Spark's public interfaces. Rows are the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import deltaic
from java import java_home

pytest.importorskip("pyspark")
for needed in ("grpc", "grpc_status", "zstandard"):
    pytest.importorskip(needed, reason="pyspark[connect] is not installed")


def test_commands_and_queries(tmp_path: Path) -> None:
    package = str(Path(str(deltaic.__file__)).parent.parent)
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable, "PYTHONPATH": package}
    if (home := java_home(tmp_path / "java")) is not None:
        environment["JAVA_HOME"] = home
    script = Path(__file__).with_name("connect_job.py")
    done = subprocess.run([sys.executable, script, tmp_path], capture_output=True, text=True, env=environment, timeout=400, cwd=tmp_path)
    answers = [line for line in done.stdout.splitlines() if line.startswith("ANSWER ")]
    assert answers, done.stderr[-4000:]
    answer = json.loads(answers[0].removeprefix("ANSWER "))
    assert answer["same"]
    assert answer["read"]
    assert answer["by format"]
    assert answer["by sql"] == answer["deleted by sql"] > 0
    [said] = answer["said"]
    assert "Spark Connect" in said
