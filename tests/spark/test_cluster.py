"""Executors in processes of their own, one of which is killed while it writes: all rows once, or none of them."""

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


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc to find the executor of a task")
def test_an_executor_dies_during_an_append(tmp_path: Path) -> None:
    package = str(Path(str(deltaic.__file__)).parent.parent)
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable, "PYTHONPATH": package}
    if (home := java_home(tmp_path / "java")) is not None:
        environment["JAVA_HOME"] = home
    script = Path(__file__).with_name("cluster_job.py")
    done = subprocess.run([sys.executable, script, tmp_path], capture_output=True, text=True, env=environment, timeout=240, cwd=tmp_path)
    answers = [line for line in done.stdout.splitlines() if line.startswith("ANSWER ")]
    assert answers, done.stderr[-3000:]
    answer = json.loads(answers[0].removeprefix("ANSWER "))
    assert answer["died"]
    if answer["outcome"] == "written":
        assert (answer["version"], answer["rows"], answer["distinct"], answer["read"]) == (1, 2000, 1000, 2000)
    else:
        assert (answer["version"], answer["rows"], answer["distinct"], answer["read"]) == (0, 1000, 1000, 1000), answer["outcome"]
