"""Reads slow_tests.txt, the tests that `make test-quick` omits."""

from __future__ import annotations

from pathlib import Path

TESTS = Path(__file__).parent
SLOW = tuple(
    line
    for line in (TESTS / "slow_tests.txt").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
)
"""Folders, files and `file::function`, relative to `TESTS`."""
