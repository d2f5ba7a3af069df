"""HTML tables for notebooks: what `_repr_html_` of the public classes returns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from html import escape
from typing import Any

SHOWN = 200
"""Maximum characters of one cell; longer text is cut."""
UNBROKEN = 20
"""Maximum characters of a cell whose text stays on one line, such as the time `2026-01-31 12:00:00`."""

_LEFT = "text-align: left"
_NUMBER = re.compile(r"\d{1,3}(,\d{3})*")


def html_table(headings: Sequence[str], rows: Iterable[Sequence[Any]], note: str = "") -> str:
    """Returns a table with a row of headings as HTML. `note`: a sentence below it. All texts are escaped.
    Columns of numbers are aligned to the right, as a notebook aligns all cells, and other columns to the
    left."""
    shown = [list(row) for row in rows]
    left = ["" if all(_is_number(row[index]) for row in shown) else _LEFT for index in range(len(headings))]
    head = "".join(
        f"<th{_style(align)}>{escape(heading)}</th>" for heading, align in zip(headings, left, strict=True)
    )
    body = "".join("<tr>" + "".join(map(_cell, row, left)) + "</tr>" for row in shown)
    below = f"<p>{escape(note)}</p>" if note else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{below}"


def html_facts(facts: Mapping[str, Any]) -> str:
    """Returns a table with a row for each pair of a name and a value as HTML."""
    rows = "".join(
        f"<tr><th{_style(_LEFT)}>{escape(name)}</th>{_cell(value, _LEFT)}</tr>"
        for name, value in facts.items()
    )
    return f"<table>{rows}</table>"


def _is_number(value: Any) -> bool:
    """True for a number, for its text (`1,234`), and for null."""
    if isinstance(value, str):
        return _NUMBER.fullmatch(value) is not None
    return value is None or (isinstance(value, (int, float, Decimal)) and not isinstance(value, bool))


def _style(*rules: str) -> str:
    """Returns the attribute `style` with those of the rules that are not empty."""
    text = "; ".join(filter(None, rules))
    return f' style="{text}"' if text else ""


def _cell(value: Any, align: str) -> str:
    text = "null" if value is None else str(value)
    style = _style(align, "white-space: nowrap" if " " in text and len(text) <= UNBROKEN else "")
    return f"<td{style}>{escape(text if len(text) <= SHOWN else text[: SHOWN - 1] + '…')}</td>"


def readable_size(count: int) -> str:
    """Returns a number of bytes with a unit: `1536` becomes `1.5 KiB`."""
    size = float(count)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:,.0f} {unit}" if unit == "bytes" else f"{size:,.1f} {unit}"
        size /= 1024
    return f"{size:,.1f} TiB"
