"""The examples of every page run: the blocks of a page one after another, in an empty folder, Python in one namespace, and in blocks of
shell the lines that call `deltaic`. Blocks of `py` need a Spark session: tests/spark/test_spark_page.py runs them."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from test_readme import DOCUMENTS, README, ROOT, python_blocks

RUN = ("python", "sh")
LANGUAGES = {*RUN, "py", "text"}
"""`text` is never run. A block of another language, or of none, would be an example that no test knows of."""


def blocks(page: Path) -> list[tuple[str, str]]:
    """(language, text) of each fenced block."""
    return re.findall(r"^ *```(\w*)\n(.*?)^ *```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


PAGES = sorted(page for page in DOCUMENTS if page != README)
WITH_EXAMPLES = [page for page in PAGES if any(language in RUN for language, _ in blocks(page))]


@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=lambda page: page.name)
def test_examples_of_a_page_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": page.stem}
    for number, (language, text) in enumerate(blocks(page), 1):
        if language == "python":
            exec(compile(text, f"{page.name}, block {number}", "exec"), names)
        elif language == "sh":
            for line in text.splitlines():
                if line.startswith("deltaic "):
                    command = [sys.executable, "-m", "deltaic.cli", *shlex.split(line)[1:]]
                    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
                    assert done.returncode == 0, f"{page.name}, {line}: {done.stderr}"


@pytest.mark.parametrize("page", [*PAGES, README], ids=lambda page: page.name)
def test_a_page_has_only_blocks_whose_language_is_known(page: Path) -> None:
    assert {language for language, _ in blocks(page)} <= LANGUAGES


def test_vectors_have_an_example_for_each_library() -> None:
    text = "\n".join(python_blocks((ROOT / "docs" / "deletion-vectors.md").read_text(encoding="utf-8")))
    for library in ("pandas", "polars", "pyarrow"):
        assert f"import {library} as" in text
