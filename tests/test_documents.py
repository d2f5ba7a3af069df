"""The Python of the documents under docs/ runs: the blocks of a page one after another, in an empty folder, in one namespace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from test_readme import ROOT, python_blocks

PAGES = [page for page in sorted((ROOT / "docs").rglob("*.md")) if python_blocks(page.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_of_a_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": page.stem}
    for number, block in enumerate(python_blocks(page.read_text(encoding="utf-8")), 1):
        exec(compile(block, f"{page.name}, Python block {number}", "exec"), names)


def test_vectors_have_an_example_for_each_library() -> None:
    blocks = "\n".join(python_blocks((ROOT / "docs" / "deletion-vectors.md").read_text(encoding="utf-8")))
    for library in ("pandas", "polars", "pyarrow"):
        assert f"import {library} as" in blocks
