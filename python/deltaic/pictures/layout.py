"""Files as rectangles over two columns: from the minimum to the maximum that the statistics give for each
file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from deltaic.errors import InvalidArgumentError
from deltaic.html_tables import readable_size
from deltaic.pictures.axes import Axis, Numbers, axis_of, number_text
from deltaic.pictures.files import Bounds, Files
from deltaic.pictures.svg import cut, document, element, headline, label, legend, text_of, wrapped

MOST = 2000
"""Maximum number of rectangles of a panel. Of more files every k-th is drawn, those that a condition reads
before the others."""
_WIDTH, _HEIGHT, _TOP = 380, 330, 64
_LEAST = 5.0
"""Pixels that a file of a single value takes, around its place."""
_STRIP = 16
"""Width of the strip beside an axis, in which files lie that hold only nulls in its column."""


class Layout:
    """One or two panels (before and after) with the same axes."""

    def __init__(
        self, title: str, columns: Sequence[str], panels: Sequence[Files], where: str | None
    ) -> None:
        self.title, self.columns, self.panels, self.where = title, columns, panels, where
        self.notes: list[str] = []
        bounds = [[files.bounds(name) for name in columns] for files in panels]
        self._x = _Scale(columns[0], [each[0] for each in bounds])
        self._y = _Scale(columns[1], [each[1] for each in bounds]) if len(columns) > 1 else None

    def svg(self) -> str:
        margin = self._y.label_width + 44.0 if self._y is not None else 52.0
        between = max(margin - 12 if self._y is not None else 60.0, self._x.label_width + 14)
        top = _TOP if self.where is None else _TOP + 18
        width = (
            margin
            + len(self.panels) * _WIDTH
            + (len(self.panels) - 1) * between
            + max(32.0, self._x.label_width / 2 + 8)
        )
        body = [headline(self.title, width)]
        if self.where is not None:
            body.append(label(16, 44, cut(f"where {self.where}", 70 * len(self.panels))))
        for number, files in enumerate(self.panels):
            body += self._panel(number, files, margin + number * (_WIDTH + between), top)
        middle = top + _HEIGHT / 2
        title = cut(self._y.axis.title if self._y is not None else "files, by their minimum", 48)
        turned = label(20, middle, title, anchor="middle", class_="panel")
        body.append(element("g", turned, transform=f"rotate(-90 20 {middle})"))
        bottom = top + _HEIGHT + 62
        if self.where is not None:
            body += legend(margin, bottom, [("read", "read"), ("skipped", "skipped")])
            bottom += 22
        notes = wrapped(self.notes, 75 * len(self.panels))
        for line, note in enumerate(notes):
            body.append(label(16, bottom + 16 * line, note, class_="note"))
        return document(int(width), int(bottom - 8 + 16 * len(notes)), self.title, body)

    def _panel(self, number: int, files: Files, left: float, top: float) -> list[str]:
        base = top + _HEIGHT
        x = self._x.spans(number, left, left + _WIDTH)
        y = self._y.spans(number, base, top) if self._y is not None else _lanes(x, base, top)
        drawn = x.known & y.known
        body = [element("rect", x=left, y=top, width=_WIDTH, height=_HEIGHT, class_="frame")]
        body += _x_ticks(self._x, left, top) + ([] if self._y is None else _y_ticks(self._y, left, top))
        body.append(
            label(left + _WIDTH / 2, base + 38, cut(self._x.axis.title, 56), anchor="middle", class_="panel")
        )
        body.append(label(left, top - 8, _heading(files, self.where), class_="panel", width=_WIDTH + 40))
        order = np.flatnonzero(drawn)
        if self.where is None:
            kept = _every(order, MOST)
        else:
            reading, skipped = order[files.read[order]], order[~files.read[order]]
            reading = _every(reading, MOST)
            kept = np.concatenate([_every(skipped, MOST - len(reading)), reading])
        for index in kept:
            body.append(self._rectangle(files, int(index), x, y))
        self._say(files, drawn, len(kept))
        return body

    def _rectangle(self, files: Files, index: int, x: _Spans, y: _Spans) -> str:
        class_ = "file" if self.where is None else "read" if files.read[index] else "skipped"
        (left, right), (low, high) = (
            sorted((x.low[index], x.high[index])),
            sorted((y.low[index], y.high[index])),
        )
        about = (
            f"{files.paths[index]}\n{readable_size(int(files.sizes[index]))}, {files.rows[index]:,.0f} rows"
        )
        about += f", {files.deleted[index]:,.0f} deleted" if files.deleted[index] else ""
        inside = element("title", text_of(about))
        width, height = max(right - left, _LEAST), max(high - low, _LEAST)
        left, low = min(left, (left + right - width) / 2), min(low, (low + high - height) / 2)
        return element(
            "rect",
            inside,
            x=float(left),
            y=float(low),
            width=float(width),
            height=float(height),
            class_=class_,
        )

    def _say(self, files: Files, drawn: Any, count: int) -> None:
        bare = len(files) - int(drawn.sum())
        if not len(files):
            self.notes.append(f"Version {files.version} has no files.")
        if bare:
            names = " or ".join(self.columns)
            self.notes.append(
                f"Version {files.version}: {bare:,} of {len(files):,} files have no statistics of {names} and"
                " are not drawn."
            )
        if count < drawn.sum():
            self.notes.append(f"Version {files.version}: {count:,} of {int(drawn.sum()):,} files are drawn.")


class _Spans:
    """Pixels from `low` to `high` of each file; `known`: False where a file cannot be drawn."""

    def __init__(self, low: Numbers, high: Numbers) -> None:
        self.low, self.high = low, high
        self.known = ~(np.isnan(low) | np.isnan(high))


class _Scale:
    """The axis of one column over all panels."""

    def __init__(self, name: str, bounds: Sequence[Bounds]) -> None:
        kinds = {each.low.type for each in bounds if not pa.types.is_null(each.low.type)}
        if len(kinds) > 1:  # a column that was widened between the versions
            kinds = {max(kinds, key=lambda kind: (pa.types.is_floating(kind), kind.bit_width))}
        kind = next(iter(kinds), pa.int64())
        arrays = [array.cast(kind, safe=False) for each in bounds for array in (each.low, each.high)]
        if not any(len(array) - array.null_count for array in arrays) and any(
            len(each.low) and not each.all_null.any() for each in bounds
        ):
            raise InvalidArgumentError(
                "no file has statistics of the column",
                where=f"column {name}",
                found=f"{sum(len(each.low) for each in bounds):,} files without minimum and maximum",
                expected="a column with statistics; table.optimize.statistics() writes them from the footers",
            )
        self.axis: Axis
        self.axis, numbers = axis_of(name, arrays)
        self._numbers = [(numbers[2 * index], numbers[2 * index + 1]) for index in range(len(bounds))]
        self._all_null = [each.all_null for each in bounds]
        self.has_nulls = any(each.all_null.any() for each in bounds)

    def spans(self, panel: int, start: float, end: float) -> _Spans:
        """`start` and `end`: pixels of the axis. Files with nulls alone lie in the strip before it."""
        begin, step = self._begin(start, end), 1 if end > start else -1
        low, high = (
            begin + self.axis.place(numbers) * (end - 4 * step - begin) for numbers in self._numbers[panel]
        )
        alone = self._all_null[panel]
        return _Spans(
            np.where(alone, start + 4 * step, low), np.where(alone, start + (_STRIP - 4) * step, high)
        )

    def ticks(self, start: float, end: float) -> list[tuple[float, str]]:
        begin, step = self._begin(start, end), 1 if end > start else -1
        found = [(begin + place * (end - 4 * step - begin), text) for place, text in self.axis.ticks]
        return ([(start + _STRIP / 2 * step, "null")] if self.has_nulls else []) + found

    @property
    def label_width(self) -> float:
        """Pixels of the longest label."""
        return max([len(text) for _, text in self.axis.ticks] + [4 * self.has_nulls]) * 6.6

    def _begin(self, start: float, end: float) -> float:
        step = 1 if end > start else -1
        return start + step * (_STRIP + 16 if self.has_nulls else 4)


def _lanes(x: _Spans, start: float, end: float) -> _Spans:
    """Gives each file its own lane; lanes are ordered by the beginning of the files' spans."""
    order = np.empty(len(x.low))
    order[np.argsort(np.where(x.known, x.low, np.inf), kind="stable")] = np.arange(len(x.low))
    lane = (end - start) / max(int(x.known.sum()), 1)
    gap = min(1.0, abs(lane) * 0.1) * (1 if lane > 0 else -1)
    return _Spans(
        np.where(x.known, start + order * lane + gap, np.nan),
        np.where(x.known, start + (order + 1) * lane - gap, np.nan),
    )


def _x_ticks(scale: _Scale, left: float, top: float) -> list[str]:
    body, free = [], -1e9
    for place, text in scale.ticks(left, left + _WIDTH):
        body.append(element("line", x1=place, x2=place, y1=top, y2=top + _HEIGHT, class_="tick"))
        half = len(text) * 3.3
        if place - half > free:
            body.append(label(place, top + _HEIGHT + 18, text, anchor="middle"))
            free = place + half + 6
    return body


def _y_ticks(scale: _Scale, left: float, top: float) -> list[str]:
    body = []
    for place, text in scale.ticks(top + _HEIGHT, top):
        body.append(element("line", x1=left, x2=left + _WIDTH, y1=place, y2=place, class_="tick"))
        body.append(label(left - 6, place + 4, text, anchor="end"))
    return body


def _every(indices: Any, most: int) -> Any:
    """Returns at most `most` of the items, at equal distances."""
    if len(indices) <= most:
        return indices
    return indices[np.linspace(0, len(indices) - 1, max(most, 0)).astype(np.int64)]


def _heading(files: Files, where: str | None) -> str:
    if where is None:
        return (
            f"version {files.version}: {len(files):,} {'file' if len(files) == 1 else 'files'},"
            f" {readable_size(int(files.sizes.sum()))}"
        )
    count, size = int(files.read.sum()), readable_size(int(files.sizes[files.read].sum()))
    return (
        f"version {files.version}: {number_text(count)} of {len(files):,}"
        f" {'file' if len(files) == 1 else 'files'} read, {size}"
    )
