"""A hook of MkDocs: it makes pages of the site from the pages in the repository's root, and turns their links
to docs/ into links to the site's pages."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[1]
PAGES = {
    "CONTRIBUTING.md": "contributing.md",
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changelog.md",
}


def on_files(files: Any, config: Any) -> Any:
    for source, page in PAGES.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=re.sub(r"\]\(docs/", "](", text)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Changes the links of a page of docs/ to pages of the root into links within the site:
    `../CONTRIBUTING.md` becomes `contributing.md`. In a cell of a table, GitHub needs `\\|` for a bar within
    code, and MkDocs `|`."""
    for source, target in PAGES.items():
        markdown = markdown.replace(f"](../{source}", f"]({target}")
    lines = [
        re.sub(r"`[^`]*`", _unescaped, line) if line.startswith("|") else line
        for line in markdown.split("\n")
    ]
    return "\n".join(lines)


def _unescaped(code: re.Match[str]) -> str:
    return code[0].replace("\\|", "|")
