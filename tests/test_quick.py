"""slow_tests.txt, the list of tests that `make test-quick` omits, names only folders, files and functions
that exist."""

from __future__ import annotations

from slow_tests import SLOW, TESTS


def test_every_slow_test_exists() -> None:
    gone = []
    for line in SLOW:
        place, _, function = line.partition("::")
        path = TESTS / place
        if not path.exists() or (function and f"def {function}(" not in path.read_text(encoding="utf-8")):
            gone.append(line)
    assert gone == []
