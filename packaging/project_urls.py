"""Adds the project's URLs to pyproject.toml before a release is built, and makes the links of README.md
absolute, because PyPI shows that page. The address of the repository is in one place, the environment
variable DELTAIC_PROJECT_URL (DELTAIC_SITE_URL is that of the documentation)."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

PYPROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"
README = PYPROJECT.with_name("README.md")
PLACE = "[project.optional-dependencies]"


def with_urls(text: str, project: str, site: str) -> str:
    """The text of pyproject.toml with the table `[project.urls]` before PLACE."""
    project = project.rstrip("/")
    urls = {
        "Source": project,
        "Documentation": site or f"{project}/tree/main/docs",
        "Issues": f"{project}/issues",
        "Changelog": f"{project}/blob/main/CHANGELOG.md",
    }
    lines = "".join(f'{name} = "{url}"\n' for name, url in urls.items())
    before, found, after = text.partition(PLACE)
    if not found or "[project.urls]" in before:
        sys.exit(f"{PYPROJECT.name}: expected {PLACE}, and no [project.urls] yet")
    return f"{before}[project.urls]\n{lines}\n{PLACE}{after}"


def with_absolute_links(text: str, project: str) -> str:
    """The text of a page of the repository, with its relative links made absolute: `docs/read.md` becomes
    `https://example.org/deltaic/blob/main/docs/read.md`."""
    return re.sub(r"\]\((?!\w+:|#)", f"]({project.rstrip('/')}/blob/main/", text)


if __name__ == "__main__":
    address = os.environ.get("DELTAIC_PROJECT_URL") or sys.exit("DELTAIC_PROJECT_URL is not set")
    text = PYPROJECT.read_text(encoding="utf-8")
    PYPROJECT.write_text(with_urls(text, address, os.environ.get("DELTAIC_SITE_URL", "")), encoding="utf-8")
    readme = README.read_text(encoding="utf-8")
    README.write_text(with_absolute_links(readme, address), encoding="utf-8")
