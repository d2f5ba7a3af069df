"""HTML tables for notebooks: what `_repr_html_` of the public classes returns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

SHOWN = 200
"""Maximum characters of one cell; longer text is cut."""
UNBROKEN = 20
"""Maximum characters of a cell whose text stays on one line, such as the time `2026-01-31 12:00:00`."""


def html_table(headings: Sequence[str], rows: Iterable[Sequence[Any]], note: str = "") -> str:
    """Returns a table with a row of headings as HTML. `note`: a sentence below it. All texts are escaped."""
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    body = "".join("<tr>" + "".join(map(_cell, row)) + "</tr>" for row in rows)
    below = f"<p>{escape(note)}</p>" if note else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{below}"


def html_facts(facts: Mapping[str, Any]) -> str:
    """Returns a table with a row for each pair of a name and a value as HTML."""
    rows = "".join(f"<tr><th>{escape(name)}</th>{_cell(value)}</tr>" for name, value in facts.items())
    return f"<table>{rows}</table>"


def _cell(value: Any) -> str:
    text = "null" if value is None else str(value)
    style = ' style="white-space: nowrap"' if " " in text and len(text) <= UNBROKEN else ""
    return f"<td{style}>{escape(text if len(text) <= SHOWN else text[: SHOWN - 1] + '…')}</td>"


def readable_size(count: int) -> str:
    """Returns a number of bytes with a unit: `1536` becomes `1.5 KiB`."""
    size = float(count)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:,.0f} {unit}" if unit == "bytes" else f"{size:,.1f} {unit}"
        size /= 1024
    return f"{size:,.1f} TiB"
