"""The examples of README.md run one after another in an empty folder. packaging/check_wheel.py runs them and
those of get-started.md without pytest: this file needs only the standard library."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
DOCUMENTS = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "tests" / "README.md"]


def python_blocks(text: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def blocks(page: Path) -> list[tuple[str, str]]:
    """(language, text) of each fenced block."""
    return re.findall(
        r"^ *```(\w*)\n(.*?)^ *```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )


def run_page(page: Path, folder: str) -> int:
    """Runs the examples of a page, one after another, in a folder: blocks of Python in one namespace, and in
    blocks of shell the lines that call `deltaic`. -> how many blocks of Python."""
    before = os.getcwd()
    os.chdir(folder)
    names: dict[str, object] = {"__name__": page.stem}
    try:
        for number, (language, text) in enumerate(blocks(page), 1):
            if language == "python":
                if page == README:  # each of its blocks is complete
                    names = {"__name__": page.stem}
                exec(compile(text, f"{page.name}, block {number}", "exec"), names)
            elif language == "sh":
                for line in text.splitlines():
                    if line.startswith("deltaic "):
                        command = [sys.executable, "-m", "deltaic.cli", *shlex.split(line)[1:]]
                        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
                        assert done.returncode == 0, f"{page.name}, {line}: {done.stderr}"
    finally:
        os.chdir(before)
    return len(python_blocks(page.read_text(encoding="utf-8")))


def test_python_blocks_run(tmp_path: Path) -> None:
    assert run_page(README, str(tmp_path)) >= 2


def test_first_block_is_ten_lines() -> None:
    first = python_blocks(README.read_text(encoding="utf-8"))[0]
    assert len([line for line in first.splitlines() if line.strip()]) <= 10


def test_every_path_named_exists() -> None:
    named = {
        (document.name, path)
        for document in DOCUMENTS
        for path in re.findall(
            r"`((?:python|rust|tests|benches|docs|examples|packaging)/[\w./-]*)`",
            document.read_text(encoding="utf-8"),
        )
    }
    assert len(named) > 20
    assert {(document, path) for document, path in named if not (ROOT / path).exists()} == set()


def test_every_link_leads_somewhere() -> None:
    links = {
        (document, link)
        for document in DOCUMENTS
        for link in re.findall(r"\]\(([^)#:]+)\)", document.read_text(encoding="utf-8"))
    }
    assert {str(link) for document, link in links if not (document.parent / link).exists()} == set()


if __name__ == "__main__":
    for page in map(Path, sys.argv[1:] or [README]):
        with tempfile.TemporaryDirectory() as scratch:
            print(f"{run_page(page.resolve(), scratch)} blocks of {page.name} run")
