"""The examples of every page run: the blocks of a page run one after another, in an empty folder. Blocks of
Python share one namespace; in blocks of shell, the lines that call `deltaic` run. Blocks of `py` need a Spark
session: tests/spark/test_spark_page.py runs them."""

from __future__ import annotations

import codeop
import re
from pathlib import Path

import pytest

from loaded import loaded
from test_readme import DOCUMENTS, README, ROOT, blocks, python_blocks, run_page

RUN = ("python", "sh")
LANGUAGES = {*RUN, "py", "text"}
"""`text` is never run. A block of another language, or of none, would be an example that no test runs."""


PAGES = sorted(page for page in DOCUMENTS if page != README)
WITH_EXAMPLES = [page for page in PAGES if any(language in RUN for language, _ in blocks(page))]


@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=lambda page: page.name)
def test_examples_of_a_page_run(page: Path, tmp_path: Path) -> None:
    run_page(page, str(tmp_path))


@pytest.mark.parametrize("page", [*PAGES, README], ids=lambda page: page.name)
def test_a_page_has_only_blocks_whose_language_is_known(page: Path) -> None:
    assert {language for language, _ in blocks(page)} <= LANGUAGES


@pytest.mark.parametrize("page", [*PAGES, README], ids=lambda page: page.name)
def test_blocks_can_be_pasted_into_an_interpreter(page: Path) -> None:
    """The interactive interpreter up to Python 3.12 ends a compound statement at an empty line, and only
    there: a `for` without an empty line after it is an error, and so is an empty line within a class."""
    for language, text in blocks(page):
        if language not in ("python", "py"):
            continue
        lines: list[str] = []
        for line in [*text.splitlines(), ""]:
            lines.append(line)
            if codeop.compile_command("\n".join(lines), page.name, "single") is not None:
                lines.clear()
        assert lines == []


def test_links_of_a_released_readme_are_absolute() -> None:
    """PyPI shows README.md, and relative links lead nowhere there."""
    project_urls = loaded("packaging/project_urls.py")
    readme = README.read_text(encoding="utf-8")
    released = project_urls.with_absolute_links(readme, "https://example.org/deltaic/")
    assert "](https://example.org/deltaic/blob/main/docs/get-started.md)" in released
    links = re.findall(r"\]\(([^)]*)\)", released)
    assert len(links) > 20
    assert [link for link in links if not link.startswith("https://")] == []
    assert "](https://delta.io)" in released


def test_vectors_have_an_example_for_each_library() -> None:
    text = "\n".join(python_blocks((ROOT / "docs" / "deletion-vectors.md").read_text(encoding="utf-8")))
    for library in ("pandas", "polars", "pyarrow"):
        assert f"import {library} as" in text
