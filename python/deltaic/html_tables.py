"""HTML tables for notebooks: what `_repr_html_` of the public classes returns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

SHOWN = 200
"""Maximum characters of one cell; longer text is cut."""


def html_table(headings: Sequence[str], rows: Iterable[Sequence[Any]], note: str = "") -> str:
    """A table with a line of headings. `note`: a sentence below it. Every text is escaped."""
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    body = "".join("<tr>" + "".join(f"<td>{_cell(value)}</td>" for value in row) + "</tr>" for row in rows)
    below = f"<p>{escape(note)}</p>" if note else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{below}"


def html_facts(facts: Mapping[str, Any]) -> str:
    """A table with a line for each fact: its name, its value."""
    rows = "".join(f"<tr><th>{escape(name)}</th><td>{_cell(value)}</td></tr>" for name, value in facts.items())
    return f"<table>{rows}</table>"


def _cell(value: Any) -> str:
    text = "null" if value is None else str(value)
    return escape(text if len(text) <= SHOWN else text[: SHOWN - 1] + "…")


def readable_size(count: int) -> str:
    """Bytes with the unit that people use: `1536` becomes `1.5 KiB`."""
    size = float(count)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:,.0f} {unit}" if unit == "bytes" else f"{size:,.1f} {unit}"
        size /= 1024
    return f"{size:,.1f} TiB"
