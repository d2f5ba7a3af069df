"""Writes the drawings of docs/how-it-works.md, docs/layout.md and docs/time-travel.md: run
`python scripts/draw_pages.py`."""

from __future__ import annotations

import os
import re
import tempfile
from datetime import datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import pyarrow as pa

import deltaic
from deltaic.pictures.svg import document, element, label

DRAWINGS = Path(__file__).resolve().parents[1] / "docs" / "drawings"
BLUE, ORANGE, RED, GREY, GREEN = "#2f6fb0", "#e07b1f", "#b3261e", "#999", "#6a8f2f"
_ARROW = element(
    "defs",
    element(
        "marker",
        element("path", d="M0 0L8 4L0 8z", fill="#555"),
        id="arrow",
        viewBox="0 0 8 8",
        refX=8,
        refY=4,
        markerWidth=7,
        markerHeight=7,
        orient="auto",
    ),
)


def box(x: float, y: float, width: float, height: float, *lines: str, colour: str = BLUE) -> list[str]:
    """Draws a box with lines of text in its middle."""
    shape = {"x": x, "y": y, "width": width, "height": height, "rx": 5}
    body = [
        element("rect", **shape, fill="#fff"),
        element("rect", **shape, fill=colour, fill_opacity=0.12, stroke=colour),
    ]
    first = y + height / 2 - 7.5 * (len(lines) - 1) + 4
    for number, line in enumerate(lines):
        class_ = "panel" if number == 0 and len(lines) > 1 else "label"
        body.append(label(x + width / 2, first + 15 * number, line, anchor="middle", class_=class_))
    return body


def arrow(x1: float, y1: float, x2: float, y2: float, text: str = "", *, dashed: bool = False) -> list[str]:
    dashes = {"stroke_dasharray": "5 4"} if dashed else {}
    body = [element("line", x1=x1, y1=y1, x2=x2, y2=y2, stroke="#555", marker_end="url(#arrow)", **dashes)]
    return (
        [*body, label((x1 + x2) / 2, (y1 + y2) / 2 - 5, text, anchor="middle", class_="note")]
        if text
        else body
    )


def log() -> str:
    body = [_ARROW, label(16, 24, "The log: a file for each version", class_="title")]
    for number in range(9):
        x = 20 + 82 * number
        colour = GREEN if number > 6 else GREY if number < 6 else BLUE
        body += box(x, 44, 70, 40, f"…{number + 4}.json", colour=colour)
    body += box(20 + 82 * 6 - 12, 112, 94, 40, "checkpoint", "of version 10")
    body += arrow(547, 84, 547, 110) + arrow(547, 152, 547, 194)
    body += arrow(629, 84, 610, 194) + arrow(711, 84, 670, 194)
    body += box(400, 196, 330, 50, "snapshot of version 12", "protocol, schema, properties, live files")
    body.append(label(20, 132, "older commits: history and time travel,", class_="note"))
    body.append(label(20, 147, "not read to open the table", class_="note"))
    return document(770, 270, "A snapshot is a checkpoint and the commits after it", body)


def read() -> str:
    body = [_ARROW, label(16, 24, "A read: what rules out what", class_="title")]
    steps = [
        ("condition", "resolved and typed", "once"),
        ("log", "partition values,", "min and max of files"),
        ("footers", "min and max of row", "groups and pages"),
        ("rows", "decoded, without", "the deleted ones"),
        ("DuckDB", "what files could", "not decide"),
    ]
    counts = ["", "100 files", "→ 7 files", "→ 31 row groups", "→ 52,000 rows"]
    for number, (name, *lines) in enumerate(steps):
        x = 20 + 150 * number
        colour = ORANGE if name in ("DuckDB", "condition") else BLUE
        body += box(x, 50, 122, 66, name, *lines, colour=colour)
        if number:
            body += arrow(x - 28, 83, x - 1, 83)
        body.append(label(x + 61, 136, counts[number], anchor="middle", class_="note"))
    body += [
        element("line", x1=170, x2=592, y1=152, y2=152, stroke=BLUE),
        label(381, 168, "Rust: deltaic._core", anchor="middle"),
    ]
    body += [
        element("line", x1=20, x2=142, y1=152, y2=152, stroke=ORANGE),
        label(81, 168, "Python", anchor="middle"),
    ]
    body += [
        element("line", x1=620, x2=742, y1=152, y2=152, stroke=ORANGE),
        label(681, 168, "the engine", anchor="middle"),
    ]
    return document(770, 186, "The steps of a read", body)


def vectors() -> str:
    body = [_ARROW, label(16, 24, "DELETE and UPDATE with a deletion vector", class_="title")]
    deleted, updated = {3, 4, 11}, {7}
    body.append(label(20, 56, "data file (stays as it is)", class_="panel"))
    for row in range(16):
        x = 20 + 30 * row
        gone = row in deleted | updated
        colour = RED if row in deleted else ORANGE if row in updated else BLUE
        body.append(
            element(
                "rect",
                x=x,
                y=66,
                width=26,
                height=34,
                fill=colour,
                fill_opacity=0.55 if gone else 0.14,
                stroke=colour,
            )
        )
        body.append(label(x + 13, 88, row, anchor="middle"))
    body += box(540, 60, 200, 46, "deletion vector", "{3, 4, 7, 11}", colour=RED)
    body += arrow(540, 83, 503, 83)
    body.append(label(20, 138, "new file of the UPDATE", class_="panel"))
    body.append(
        element("rect", x=20, y=148, width=26, height=34, fill=ORANGE, fill_opacity=0.3, stroke=ORANGE)
    )
    body.append(label(33, 170, "7'", anchor="middle"))
    body.append(label(60, 170, "the row with its new values"))
    body += box(
        540,
        136,
        200,
        62,
        "commit",
        "remove the file as it was",
        "add it with the vector, add 7'",
        colour=GREEN,
    )
    return document(760, 212, "A deletion vector marks rows of a file", body)


def commits() -> str:
    body = [
        _ARROW,
        label(16, 24, "Two writers: the second one checks, rebases and goes on top", class_="title"),
    ]
    for name, y in (("writer A", 66), ("the log", 126), ("writer B", 186)):
        body.append(label(20, y + 4, name, class_="panel"))
        body.append(element("line", x1=100, x2=740, y1=y, y2=y, stroke="#ddd"))
    body += box(110, 108, 80, 36, "version 4", colour=GREY)
    body += box(320, 108, 80, 36, "version 5", colour=BLUE)
    body += box(640, 108, 80, 36, "version 6", colour=ORANGE)
    body += box(210, 48, 96, 36, "delete id = 1", colour=BLUE)
    body += box(210, 168, 96, 36, "delete id = 2", colour=ORANGE)
    body += arrow(150, 108, 208, 70) + arrow(150, 144, 208, 182)
    body += arrow(306, 70, 358, 107)
    body.append(label(372, 86, "put if absent", class_="note"))
    body += arrow(306, 182, 350, 146, dashed=True)
    body.append(label(338, 176, "exists already", class_="note"))
    body += box(440, 168, 170, 36, "no conflict: join vectors", colour=ORANGE)
    body += arrow(390, 144, 438, 172) + arrow(610, 178, 662, 146)
    body.append(label(672, 176, "put if absent", class_="note"))
    return document(760, 222, "Commits of two writers", body)


def _hilbert(side: int, index: int) -> tuple[int, int]:
    x = y = 0
    size, rest = 1, index
    while size < side:
        right = 1 & (rest // 2)
        up = 1 & (rest ^ right)
        if up == 0:
            if right == 1:
                x, y = size - 1 - x, size - 1 - y
            x, y = y, x
        x, y = x + size * right, y + size * up
        rest, size = rest // 4, size * 2
    return x, y


def _z_order(side: int, index: int) -> tuple[int, int]:
    x = sum(((index >> 2 * bit) & 1) << bit for bit in range(side.bit_length()))
    y = sum(((index >> 2 * bit + 1) & 1) << bit for bit in range(side.bit_length()))
    return x, y


def curves() -> str:
    side, cell, parts = 8, 34, 8
    shades = ["#2f6fb0", "#e07b1f", "#6a8f2f", "#7a5ea8", "#b3261e", "#3a9a9a", "#a08020", "#777777"]
    body = [label(16, 24, "Both curves visit every cell once; each file gets a piece", class_="title")]
    for panel, (name, curve) in enumerate((("Z-order", _z_order), ("Hilbert", _hilbert))):
        left, top = 40 + panel * 350, 66
        body.append(label(left, 54, name, class_="panel"))
        points = []
        for index in range(side * side):
            column, line = curve(side, index)
            x, y = left + column * cell, top + (side - 1 - line) * cell
            colour = shades[index * parts // (side * side)]
            body.append(
                element(
                    "rect", x=x, y=y, width=cell, height=cell, fill=colour, fill_opacity=0.22, stroke="#fff"
                )
            )
            points.append(f"{x + cell / 2:g},{y + cell / 2:g}")
        body.append(
            element("polyline", points=" ".join(points), fill="none", stroke="#333", stroke_width=1.5)
        )
        body.append(
            label(left + side * cell / 2, top + side * cell + 20, "range of column a", anchor="middle")
        )
        side_label = label(left - 14, top + side * cell / 2, "range of column b", anchor="middle")
        body.append(element("g", side_label, transform=f"rotate(-90 {left - 14} {top + side * cell / 2})"))
    return document(700, 372, "The Z-order curve and the Hilbert curve", body)


def layouts() -> dict[str, str]:
    """Pictures of a table, as `table.optimize.picture` draws them. Names of files are numbered: they are
    random."""
    random = np.random.default_rng(7)
    with tempfile.TemporaryDirectory() as folder:
        where, count = "x < 300 and y between 400 and 700", 160_000
        table = deltaic.write(
            f"{folder}/points", {"x": [0], "y": [0]}, properties={"delta.targetFileSize": "131072"}
        )
        table.delete()
        for _ in range(16):
            data = pa.table(
                {"x": random.integers(0, 1000, count // 16), "y": random.integers(0, 1000, count // 16)}
            )
            deltaic.write(table, data, mode="append")
        spread = table.version
        table.delete("x % 7 = 0 and y < 450")
        marked = table.optimize.picture(kind="sizes").svg
        table.optimize.z_order(["x", "y"], target_size=7_000)
        layout = table.optimize.picture(["x", "y"], where, before=spread).svg
    return {"layout.svg": _numbered(layout), "sizes.svg": _numbered(marked)}


def history() -> str:
    """Draws the picture of a table's history. The commits get the times of five days."""
    random, start = np.random.default_rng(7), datetime(2026, 3, 2, 6, tzinfo=timezone.utc)
    with tempfile.TemporaryDirectory() as folder:
        table = deltaic.write(f"{folder}/events", {"id": pa.array([], pa.int64())})
        for day in range(5):
            for _ in range(4):
                deltaic.write(table, {"id": random.integers(0, 10**6, 3000 + 1500 * day)}, mode="append")
            table.delete(f"id % 10 = {day}")
            table.optimize.compact()
        for version in range(table.version + 1):
            day, step = divmod(version - 1, 6)
            hours = 24 * day + (15 if step == 5 else 3 * step + random.random()) if version else 0
            time = (start + timedelta(hours=hours)).timestamp()
            os.utime(Path(folder, "events", "_delta_log", f"{version:020}.json"), (time, time))
        return deltaic.DeltaTable(f"{folder}/events").optimize.picture(kind="history").svg


def _numbered(svg: str) -> str:
    numbers: dict[str, str] = {}
    return re.sub(
        r"part-[\w.-]+?\.parquet",
        lambda match: numbers.setdefault(match[0], f"file-{len(numbers) + 1}.parquet"),
        svg,
    )


def drawings() -> dict[str, str]:
    """Returns the SVG of the drawings of how-it-works.md, by file name."""
    return {f"{draw.__name__}.svg": draw() for draw in (log, read, vectors, commits, curves)}


if __name__ == "__main__":
    DRAWINGS.mkdir(exist_ok=True)
    for name, svg in {**drawings(), **layouts(), "history.svg": history()}.items():
        (DRAWINGS / name).write_text(svg + "\n", encoding="utf-8")
        print(DRAWINGS / name)
