"""Each row of docs/features.md agrees with the code."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

from deltaic.commands.drop_feature import DROPPABLE
from deltaic.protocol.features import FEATURES, Change, Feature
from deltaic.protocol.properties import REGISTRY
from deltaic.protocol.values import format_duration

PAGE = Path(__file__).parents[2] / "docs" / "features.md"


def rows(heading: str) -> dict[str, list[str]]:
    section = PAGE.read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    table = [line.strip("| ").split("|") for line in section.splitlines() if line.startswith("| `")]
    cells = [[cell.strip() for cell in row] for row in table]
    assert len({row[0] for row in cells}) == len(cells)
    return {row[0].strip("`"): row[1:] for row in cells}


def refused(feature: Feature) -> str:
    if feature.refused == frozenset(Change):
        return "every commit"
    return ", ".join(change.name.lower() for change in Change if change in feature.refused) or "nothing"


def shown(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return format_duration(value) if isinstance(value, timedelta) else str(value)


def test_features():
    expected = {
        name: [
            "reader, writer" if feature.reader else "writer",
            "{} / {}".format(*feature.legacy) if feature.legacy else "",
            feature.read.value,
            refused(feature),
            feature.status.value,
        ]
        for name, feature in FEATURES.items()
    }
    assert rows("Table features") == expected


def test_properties():
    assert rows("Properties") == {
        name: [shown(item.default), item.status.value] for name, item in REGISTRY.items()
    }


def test_the_page_names_what_can_be_dropped():
    (line,) = [
        note
        for note in PAGE.read_text(encoding="utf-8").split("\n- ")
        if note.startswith("`alter.drop_feature` drops")
    ]
    assert set(re.findall(r"`([\w-]+)`", line)) & set(FEATURES) == set(DROPPABLE)
