"""The crates of the extension and those of its Rust tests."""

from __future__ import annotations

import shutil
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.skipif(shutil.which("cargo") is None, reason="cargo is not installed")
def test_rust_tests_reuse_the_crates_of_the_extension() -> None:
    """A crate with other features is another crate to cargo: it and all that depends on it, such as parquet,
    would be compiled twice. The comment on the dev-dependencies of Cargo.toml explains how to add a
    feature."""
    extension = features("--edges", "normal,build")
    checks = features("--edges", "normal,build,dev", "--no-default-features")
    shared = (extension.keys() & checks.keys()) - {f"deltaic v0.1.0 ({ROOT})"}
    assert len(shared) > 100
    differing = {
        crate: (extension[crate], checks[crate]) for crate in shared if extension[crate] != checks[crate]
    }
    assert differing == {}


def features(*options: str) -> dict[str, set[str]]:
    """Returns crate and version -> its features, as text: a crate of build scripts may have others."""
    command = ["cargo", "tree", "--locked", "--prefix", "none", "--format", "{p}|{f}", *options]
    lines = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    found = defaultdict(set)
    for crate, listed in (line.removesuffix(" (*)").split("|") for line in lines):
        found[crate].add(listed)
    return found
