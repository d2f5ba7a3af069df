"""Tables written by Spark, delta-kernel and others. They are no part of this project: `python
scripts/fetch_golden_tables.py` gets them.

They are looked for in the folder that `DELTAIC_GOLDEN` names, which must have them then; without it in
`.golden` of the checkout and in `shared/golden` beside it. Where they are in neither, the tests that need
them are skipped, and say so.
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
