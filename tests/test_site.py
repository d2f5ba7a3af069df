"""The documentation site: its navigation has every page, its reference every public name, and every drawing
is as its script draws it. `make docs` builds it and checks the links inside it."""

from __future__ import annotations

import re

import deltaic
from deltaic.spark import tables
from loaded import loaded
from test_readme import ROOT

DOCS = ROOT / "docs"
SITE = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")


def test_every_page_is_in_the_navigation() -> None:
    listed = re.findall(r": (\S+\.md)$", SITE, re.MULTILINE)
    assert len(listed) == len(set(listed))
    there = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")}
    made = set(re.findall(r'": "(\w+\.md)"', (ROOT / "scripts" / "docs_site.py").read_text(encoding="utf-8")))
    assert {page for page in there if not page.startswith("decisions/")} | {
        "decisions/README.md"
    } | made == set(listed)


def test_every_decision_is_linked_from_their_list() -> None:
    text = (DOCS / "decisions" / "README.md").read_text(encoding="utf-8")
    assert [
        page.name
        for page in (DOCS / "decisions").glob("*.md")
        if page.name != "README.md" and f"]({page.name})" not in text
    ] == []


def test_every_public_name_is_in_the_reference() -> None:
    text = (DOCS / "reference.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"^::: (\S+)$", text, re.MULTILINE))
    homes = {f"{home}.{name}" for name, home in deltaic._HOMES.items() if name != "__version__"}
    assert homes <= shown
    of_spark = {f"{getattr(tables, name).__module__}.{name}" for name in tables.__all__}
    assert {"deltaic.errors", "deltaic.spark", "deltaic.spark.functions", *of_spark} <= shown


def test_the_reference_has_the_methods_of_vectors() -> None:
    """mkdocstrings shows no members of a compiled class by itself."""
    text = (DOCS / "reference.md").read_text(encoding="utf-8")
    (members,) = re.findall(r"::: deltaic\._core\.DeletionVector\n.*\n +members: \[(.*)\]", text)
    public = {name for name in vars(deltaic.DeletionVector) if not name.startswith("_")}
    assert set(members.split(", ")) == public


def test_benchmarks_are_those_of_the_records() -> None:
    """After a new record: `python scripts/draw_benchmarks.py`."""
    for path, text in loaded("scripts/draw_benchmarks.py").files().items():
        assert (DOCS / path).read_text(encoding="utf-8") == text, path


def test_drawings_are_those_of_their_script() -> None:
    """After a change: `python scripts/draw_pages.py`."""
    for name, svg in loaded("scripts/draw_pages.py").drawings().items():
        assert (DOCS / "drawings" / name).read_text(encoding="utf-8") == svg + "\n", name


def test_the_map_of_rooms_is_that_of_the_code() -> None:
    """After a change of a first sentence, or a new room: `python scripts/write_rooms.py`."""
    assert (DOCS / "rooms.md").read_text(encoding="utf-8") == loaded("scripts/write_rooms.py").page()


def test_every_room_says_what_is_in_it() -> None:
    rooms = loaded("scripts/write_rooms.py")
    sentences = [text for _, text, _ in rooms.rooms()] + [text for _, text in rooms.crate()]
    assert [text for text in sentences if len(text.split()) < 4] == []
    assert len(set(sentences)) == len(sentences)


def test_every_drawing_is_on_a_page() -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in DOCS.glob("*.md"))
    assert [
        path.name for path in (DOCS / "drawings").glob("*.svg") if f"](drawings/{path.name})" not in pages
    ] == []
