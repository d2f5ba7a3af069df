"""Report on a query: the files and rows that it read from each table, and its plan, for terminals and
notebooks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from html import escape
from typing import Any

from deltaic.html_tables import html_table
from deltaic.rows.rows import ScanReport
from deltaic.rows.shown_predicates import shown_predicate

SHOWN = 160
"""Maximum characters of a condition in the steps of a plan; a longer one is cut."""
_HEADINGS = (
    "table",
    "files",
    "by partition",
    "by statistics",
    "files read",
    "bytes",
    "bytes read",
    "rows",
    "pushed",
)
_DETAILS = ("Join Type", "Conditions", "Groups", "Aggregates", "Expression", "Filters", "Order By", "Top")
_SUMMED = tuple(
    item.name for item in fields(ScanReport) if item.name not in ("columns", "pushed", "evaluated")
)


@dataclass(frozen=True, kw_only=True)
class QueryReport(ScanReport):
    """Report on a query. Its numbers, such as `files_read`, are totals of the `ScanReport`s of all tables.

    `scans`: a ScanReport for each mention of a Delta table, by its alias in the query.
    `plan`: the steps of the engine as text, one in each line; the last step is the first line.
    `columns`: names of the columns of the result. `rows`: number of rows from the files."""

    plan: str = ""
    scans: Mapping[str, ScanReport]

    @staticmethod
    def of(columns: Sequence[str], plan: str, scans: Mapping[str, ScanReport]) -> QueryReport:
        totals: dict[str, Any] = {
            name: sum(getattr(scan, name) for scan in scans.values()) for name in _SUMMED
        }
        return QueryReport(columns=tuple(columns), plan=plan, scans=scans, **totals)

    def __str__(self) -> str:
        if not self.scans:
            return self.plan
        rows = [_HEADINGS, *self._cells]
        widths = [max(len(row[index]) for row in rows) for index in range(len(_HEADINGS))]
        last = len(_HEADINGS) - 1
        lines = [
            "  ".join(
                cell if index == last else cell.ljust(width) if index == 0 else cell.rjust(width)
                for index, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in rows
        ]
        return "\n".join([self.plan, "", *lines])

    @property
    def _cells(self) -> list[tuple[str, ...]]:
        cells = []
        for name, scan in self.scans.items():
            counts = (
                scan.files,
                scan.files_skipped_by_partition,
                scan.files_skipped_by_statistics,
                scan.files_read,
            )
            sizes = (scan.bytes, scan.bytes_read, scan.rows)
            cells.append(
                (name, *map(str, counts), *(f"{size:,}" for size in sizes), shown_predicate(scan.pushed))
            )
        return cells

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.plan)}</pre>{html_table(_HEADINGS, self._cells)}"


def steps(node: Mapping[str, Any], depth: int = 0) -> list[str]:
    """Returns the lines of a plan of the engine, such as `hash join: INNER; a = b`. A step stands above the
    steps from which it takes rows."""
    name = str(node.get("name", "")).strip().replace("_", " ").lower().removeprefix("python arrow ")
    details = node.get("extra_info") or {}
    shown = []
    for key in _DETAILS:
        if value := details.get(key):
            joined = " AND " if key == "Filters" else ", "
            text = joined.join(value) if isinstance(value, list) else value
            shown.append(text if len(text) <= SHOWN else text[: SHOWN - 1] + "…")
    if name == "scan" and (columns := details.get("Projections")):
        shown.insert(0, ", ".join(columns) if isinstance(columns, list) else columns)
    below = [line for child in node.get("children") or () for line in steps(child, depth + 1)]
    return ["  " * depth + (f"{name}: {'; '.join(shown)}" if shown else name), *below]
