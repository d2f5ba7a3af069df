"""The program of user_program.py runs, and uses every public name."""

from __future__ import annotations

import re
from pathlib import Path

import user_program

HERE = Path(__file__).parent


def test_it_runs(tmp_path: Path) -> None:
    user_program.main(tmp_path)


def test_it_uses_every_public_name() -> None:
    lines = [
        line
        for line in (HERE / "public_api.txt").read_text(encoding="utf-8").splitlines()
        if line and not line.startswith("#")
    ]
    names = {re.split(r"[(]", line)[0].split(".")[-1] for line in lines}
    used = set(re.findall(r"\w+", (HERE / "user_program.py").read_text(encoding="utf-8")))
    assert len(names) > 90
    assert names - used == set()
