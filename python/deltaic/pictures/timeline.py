"""The history as a time line: a lane for each operation, a circle for each commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

import pyarrow as pa

from deltaic.pictures.axes import axis_of
from deltaic.pictures.svg import cut, document, element, headline, label, text_of

MOST = 1000
"""Maximum number of commits that are drawn: the newest."""
_WIDTH, _LEFT, _TOP, _LANE = 700, 190, 56, 34
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class Timeline:
    """`entries`: of `DeltaTable.history`, newest first. `more`: whether there are older ones, which are not
    drawn."""

    def __init__(self, title: str, entries: Sequence[Mapping[str, Any]], *, more: bool) -> None:
        self.title, self.entries = title, list(reversed(entries))
        self.notes = [f"Only the newest {len(entries):,} commits are drawn."] if more else []

    def svg(self) -> str:
        lanes = list(dict.fromkeys(_operation(entry) for entry in self.entries))
        times = [(entry["timestamp"] - _EPOCH) // timedelta(microseconds=1) for entry in self.entries]
        axis, (numbers,) = axis_of("time", [pa.array(times, pa.timestamp("us", "UTC"))])
        places = _LEFT + 12 + axis.place(numbers) * (_WIDTH - 24)
        base = _TOP + _LANE * max(len(lanes), 1)
        body = [headline(self.title, _LEFT + _WIDTH + 32)]
        body.append(element("rect", x=_LEFT, y=_TOP, width=_WIDTH, height=base - _TOP, class_="frame"))
        for place, text in axis.ticks:
            x = _LEFT + 12 + place * (_WIDTH - 24)
            body.append(element("line", x1=x, x2=x, y1=_TOP, y2=base, class_="tick"))
            body.append(label(x, base + 18, text, anchor="middle"))
        body.append(label(_LEFT + _WIDTH / 2, base + 38, axis.title, anchor="middle", class_="panel"))
        counts = [sum(_operation(entry) == name for entry in self.entries) for name in lanes]
        for number, (name, count) in enumerate(zip(lanes, counts, strict=True)):
            y = _TOP + _LANE * (number + 0.6)
            body.append(label(_LEFT - 8, y + 4, f"{cut(name, 20)} ({count:,})", anchor="end"))
            body.append(element("line", x1=_LEFT, x2=_LEFT + _WIDTH, y1=y, y2=y, class_="tick"))
        free = dict.fromkeys(lanes, -1e9)
        for entry, x in zip(self.entries, places, strict=True):
            name = _operation(entry)
            y = _TOP + _LANE * (lanes.index(name) + 0.6)
            body.append(
                element(
                    "circle",
                    element("title", text_of(_about(entry))),
                    cx=float(x),
                    cy=y,
                    r=5,
                    class_="commit",
                )
            )
            text = f"{entry['version']}"
            if x - 3.3 * len(text) > free[name]:
                body.append(label(float(x), y - 8, text, anchor="middle", class_="note"))
                free[name] = x + 3.3 * len(text) + 4
        bottom = base + 62
        for line, note in enumerate(self.notes):
            body.append(label(16, bottom + 16 * line, note, class_="note"))
        return document(_LEFT + _WIDTH + 32, bottom - 10 + 16 * len(self.notes), self.title, body)


def _operation(entry: Mapping[str, Any]) -> str:
    found = entry.get("operation")
    return found if isinstance(found, str) and found else "(not named)"


def _about(entry: Mapping[str, Any]) -> str:
    named = {**_mapping(entry, "operationParameters"), **_mapping(entry, "operationMetrics")}
    details = [
        f"{name}: {value}" for name, value in named.items() if value not in (None, "", "[]", "{}", "0", 0)
    ]
    lines = [
        f"version {entry['version']}: {_operation(entry)}",
        entry["timestamp"].isoformat(" ", "milliseconds"),
        *details,
    ]
    return "\n".join(cut(line, 200) for line in lines)


def _mapping(entry: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = entry.get(key)
    return found if isinstance(found, dict) else {}
