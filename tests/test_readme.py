"""The Python blocks of README.md, run top to bottom in an empty folder, one after another. Also run by packaging/check_wheel.py, which
has no pytest: this file needs the standard library only."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
DOCUMENTS = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "tests" / "README.md"]


def python_blocks(text: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def run_blocks(folder: str) -> int:
    before = os.getcwd()
    os.chdir(folder)
    try:
        blocks = python_blocks(README.read_text(encoding="utf-8"))
        for number, block in enumerate(blocks, 1):
            exec(compile(block, f"README.md, Python block {number}", "exec"), {"__name__": "readme"})
        return len(blocks)
    finally:
        os.chdir(before)


def test_python_blocks_run(tmp_path: Path) -> None:
    assert run_blocks(str(tmp_path)) >= 2


def test_first_block_is_ten_lines() -> None:
    first = python_blocks(README.read_text(encoding="utf-8"))[0]
    assert len([line for line in first.splitlines() if line.strip()]) <= 10


def test_every_path_named_exists() -> None:
    named = {
        (document.name, path)
        for document in DOCUMENTS
        for path in re.findall(r"`((?:python|rust|tests|benches|docs|examples|packaging)/[\w./-]*)`", document.read_text(encoding="utf-8"))
    }
    assert len(named) > 20
    assert {(document, path) for document, path in named if not (ROOT / path).exists()} == set()


def test_every_link_leads_somewhere() -> None:
    links = {(document, link) for document in DOCUMENTS for link in re.findall(r"\]\(([^)#:]+)\)", document.read_text(encoding="utf-8"))}
    assert {str(link) for document, link in links if not (document.parent / link).exists()} == set()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        print(f"{run_blocks(scratch)} blocks of README.md run")
