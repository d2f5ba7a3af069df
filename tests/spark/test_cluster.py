"""Executors in processes of their own, one of which is killed in each job: the table has all rows of the job
or none, and only orphaned files are left."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import deltaic
from java import java_home

pytest.importorskip("pyspark")

OLD = {**dict.fromkeys(range(-500, 0), 5), **{i: i for i in range(1000)}}
APPENDED = {**OLD, **dict.fromkeys(range(1000, 1400), 0)}
RIGHT = {
    "append_by_source": APPENDED,
    "delete": {i: x for i, x in OLD.items() if i % 3},
    "merge": {**OLD, **dict.fromkeys(range(800, 1200), 7)},
    "merge_in_files": {
        **{i: x for i, x in OLD.items() if not (i >= 800 and i % 2 == 0)},
        **dict.fromkeys(range(801, 1000, 2), 7),
        **dict.fromkeys(range(1000, 1200), 7),
    },
}
OPERATION = {
    "append_by_source": "WRITE",
    "delete": "DELETE",
    "merge": "MERGE",
    "merge_in_files": "MERGE",
}


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What became of each job: all in one session, as it starts its executors anew."""
    folder = tmp_path_factory.mktemp("cluster")
    package = str(Path(str(deltaic.__file__)).parent.parent)
    environment = {
        **os.environ,
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONPATH": package,
    }
    if (home := java_home(tmp_path_factory.mktemp("java"))) is not None:
        environment["JAVA_HOME"] = home
    script = Path(__file__).with_name("cluster_job.py")
    done = subprocess.run(
        [sys.executable, script, folder],
        capture_output=True,
        text=True,
        env=environment,
        timeout=840,
        cwd=folder,
    )
    found = [
        json.loads(line.removeprefix("ANSWER "))
        for line in done.stdout.splitlines()
        if line.startswith("ANSWER ")
    ]
    assert len(found) == len(RIGHT), done.stderr[-3000:]
    return {answer["job"]: answer for answer in found}


@pytest.mark.timeout(900)  # an executor starts anew for each job: a minute where nothing else runs
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc to find the executor of a task")
@pytest.mark.parametrize("job", RIGHT)
def test_an_executor_dies(answers: dict[str, Any], job: str) -> None:
    answer = answers[job]
    assert answer["died"]
    done = answer["outcome"] == "done"
    assert (answer["last"] == OPERATION[job]) or not done, answer
    expected = [list(row) for row in sorted((RIGHT[job] if done else OLD).items())]
    assert answer["rows"] == expected, answer["outcome"]
    assert answer["read"] == answer["after"] == expected
    assert answer["strangers"] == []
