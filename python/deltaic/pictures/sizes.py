"""Sizes of files as bars, with the part of each that deletion vectors have deleted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deltaic.html_tables import readable_size
from deltaic.pictures.files import Files
from deltaic.pictures.svg import cut, document, element, headline, label, legend, text_of, wrapped

MOST = 1000
"""Maximum number of bars of a panel; of more files every k-th by size is drawn."""
_WIDTH, _HEIGHT, _LEFT, _TOP, _BETWEEN = 380, 260, 96, 80, 90


class Sizes:
    """One or two panels (before and after), the largest file first. `target`: bytes that a new file aims at,
    drawn as a dashed line."""

    def __init__(self, title: str, panels: Sequence[Files], where: str | None, target: int) -> None:
        self.title, self.panels, self.where, self.target = title, panels, where, target
        self.notes: list[str] = []

    def svg(self) -> str:
        largest = max((float(files.sizes.max()) for files in self.panels if len(files)), default=1024.0)
        above = max(largest, float(self.target)) if self.target <= 2 * largest else largest
        top = _TOP if self.where is None else _TOP + 18
        width = _LEFT + len(self.panels) * _WIDTH + (len(self.panels) - 1) * _BETWEEN + 32
        body = [headline(self.title, width)]
        if self.where is not None:
            body.append(label(16, 44, cut(f"where {self.where}", 65 * len(self.panels))))
        for number, files in enumerate(self.panels):
            body += self._panel(_LEFT + number * (_WIDTH + _BETWEEN), top, files, max(above, 1.0) * 1.06)
        bottom = top + _HEIGHT + 30
        meanings = (
            [("live", "live rows")]
            if self.where is None
            else [("live read", "read"), ("live skipped", "skipped")]
        )
        body += legend(_LEFT, bottom, [*meanings, ("deleted", "deleted rows")])
        notes = wrapped(self.notes, 75 * len(self.panels))
        for line, note in enumerate(notes):
            body.append(label(16, bottom + 22 + 16 * line, note, class_="note"))
        return document(width, bottom + 16 + 16 * len(notes), self.title, body)

    def _panel(self, left: float, top: float, files: Files, most: float) -> list[str]:
        base = top + _HEIGHT
        body = [element("rect", x=left, y=top, width=_WIDTH, height=_HEIGHT, class_="frame")]
        for size in _round_sizes(most):
            place = base - _HEIGHT * size / most
            body.append(element("line", x1=left, x2=left + _WIDTH, y1=place, y2=place, class_="tick"))
            body.append(label(left - 6, place + 4, readable_size(size).replace(".0 ", " "), anchor="end"))
        order = np.argsort(-files.sizes, kind="stable")
        if len(order) > MOST:
            order = order[np.linspace(0, len(order) - 1, MOST).astype(np.int64)]
            self.notes.append(f"Version {files.version}: {MOST:,} of {len(files):,} files are drawn.")
        step = _WIDTH / max(len(order), 1)
        width = max(step * 0.86, 0.4) if step > 3 else step
        width = min(width, 60.0)
        for place, index in enumerate(order):
            body += self._bar(
                files, int(index), left + place * step + (min(step, 70) - width) / 2, width, base, most
            )
        if self.target <= most:
            place = base - _HEIGHT * self.target / most
            body.append(element("line", x1=left, x2=left + _WIDTH, y1=place, y2=place, class_="target"))
            body.append(
                label(left + _WIDTH - 4, place - 4, f"target {readable_size(self.target)}", anchor="end")
            )
        reading = "" if self.where is None else f"{int(files.read.sum()):,} of "
        noun = "file" if len(files) == 1 else "files"
        heading = f"version {files.version}: {reading}{len(files):,} {noun}{' read' if reading else ''}"
        body.append(label(left, top - 22, heading, class_="panel"))
        marked = int((files.deleted > 0).sum())
        count = files.deleted.sum()
        deleted = f"{count:,.0f} {'row' if count == 1 else 'rows'} deleted" if marked else "no deleted rows"
        deleted += f" in {marked:,} of them" if marked and len(files) > 1 else ""
        target = "" if self.target <= most else f"; target {readable_size(self.target)}"
        about = f"{readable_size(int(files.sizes.sum()))}, {deleted}{target}"
        body.append(label(left, top - 7, about, width=_WIDTH + 60))
        return body

    def _bar(self, files: Files, index: int, x: float, width: float, base: float, most: float) -> list[str]:
        height = _HEIGHT * float(files.sizes[index]) / most
        part = min(files.deleted[index] / files.rows[index], 1.0) if files.rows[index] else 0.0
        gone = height * float(part)
        about = (
            f"{files.paths[index]}\n{readable_size(int(files.sizes[index]))}, {files.rows[index]:,.0f} rows"
        )
        about += f", {files.deleted[index]:,.0f} deleted" if files.deleted[index] else ""
        class_ = "live" if self.where is None else "live read" if files.read[index] else "live skipped"
        inside = element("title", text_of(about))
        bars = [
            element("rect", inside, x=x, y=base - height, width=width, height=height - gone, class_=class_)
        ]
        if gone:
            bars.append(
                element("rect", inside, x=x, y=base - gone, width=width, height=gone, class_="deleted")
            )
        return bars


def _round_sizes(most: float) -> list[int]:
    """At most six round sizes from 0 on, such as 0, 200 KiB, 400 KiB."""
    unit = next((1024**power for power in (3, 2, 1) if most >= 2 * 1024**power), 1)
    step = next(
        step for power in range(15) for part in (1, 2, 5) if most / (step := part * 10**power * unit) <= 5
    )
    return [step * number for number in range(int(most // step) + 1)]
