"""Finds tables written by Spark, delta-kernel and others. They are not part of this project: `python
scripts/fetch_golden_tables.py` downloads them.

If `DELTAIC_GOLDEN` names a folder, the tables must be in it. Otherwise they may be in `.golden` of the
checkout or in `shared/golden` beside it. If they are in neither folder, the tests that need them are skipped
with a reason.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
NAMES = tuple(
    line
    for line in (TESTS / "golden_tables.txt").read_text(encoding="utf-8").splitlines()
    if not line.startswith("#")
)


def folder(named: str | None, checkout: Path) -> Path:
    """Where the tables are. Whoever names a folder gets an error when a table is missing there, so that
    nothing is skipped unnoticed."""
    if not named:
        places = (checkout / ".golden", checkout.parent / "shared" / "golden")
        return next((place for place in places if place.is_dir()), places[0])
    missing = [name for name in NAMES if not (Path(named) / name).is_dir()]
    if missing:
        raise FileNotFoundError(
            f"DELTAIC_GOLDEN={named} lacks {len(missing)} tables, the first {missing[0]}:"
            " fetch_golden_tables.py gets them"
        )
    return Path(named).resolve()


GOLDEN = folder(os.environ.get("DELTAIC_GOLDEN"), TESTS.parent)
REASON = "no golden tables: python scripts/fetch_golden_tables.py"
needs_golden = pytest.mark.skipif(not GOLDEN.is_dir(), reason=REASON)
