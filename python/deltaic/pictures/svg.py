"""Elements of SVG as text, always well-formed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from textwrap import wrap

# Characters that XML 1.0 does not allow, not even as references; text of a table may hold them.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
CHARACTER_WIDTH = 0.6
"""Width of a character in parts of the font size, for a sans-serif font: an estimate on the safe side."""
_CLASS = "deltaic-picture"
_RULES = {
    "text": "font-family:system-ui,sans-serif;font-size:11px;fill:#333",
    ".title": "font-size:14px;font-weight:600;fill:#111",
    ".panel": "font-size:12px;font-weight:600",
    ".note": "fill:#777",
    ".frame": "fill:none;stroke:#bbb",
    ".tick": "stroke:#e4e4e4",
    ".file": "fill:#2f6fb0;fill-opacity:.16;stroke:#2f6fb0;stroke-opacity:.75",
    ".skipped": "fill:#999;fill-opacity:.10;stroke:#999;stroke-opacity:.45",
    ".read": "fill:#e07b1f;fill-opacity:.30;stroke:#c4610a",
    ".live": "fill:#2f6fb0",
    ".live.skipped": "fill:#b9c2cb;fill-opacity:1;stroke:none",
    ".live.read": "fill:#e07b1f;fill-opacity:1;stroke:none",
    ".deleted": "fill:#b3261e",
    ".target": "stroke:#333;stroke-dasharray:5 4",
    ".commit": "fill:#2f6fb0;fill-opacity:.55;stroke:#2f6fb0",
}
# In a notebook the drawing is a part of the page: a rule without the class would change the page.
STYLE = "".join(f".{_CLASS} {selector}{{{rule}}}" for selector, rule in _RULES.items())


def text_of(value: object) -> str:
    """A value as text that may stand in XML: a forbidden character becomes `\\x1b` and the like, `<` a
    reference."""
    return escape(
        _FORBIDDEN.sub(lambda match: match[0].encode("unicode_escape", "surrogatepass").decode(), str(value))
    )


def element(name: str, content: str = "", **attributes: object) -> str:
    """An element; `content` is SVG already. `font_size=11` becomes `font-size="11"`, `class_` is `class`;
    numbers have two decimals."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_attribute(value)}"' for key, value in attributes.items()
    )
    return f"<{name}{written}>{content}</{name}>" if content else f"<{name}{written}/>"


def label(
    x: float,
    y: float,
    text: object,
    *,
    anchor: str = "start",
    class_: str = "label",
    width: float | None = None,
) -> str:
    """A line of text. `width`: pixels that it may take at 11 pixels a line; longer text is cut."""
    shown = str(text)
    if width is not None:
        shown = cut(shown, max(4, int(width / (11 * CHARACTER_WIDTH))))
    return element("text", text_of(shown), x=x, y=y, text_anchor=anchor, class_=class_)


def headline(text: str, width: float) -> str:
    """The first line of a drawing of this width, in bold letters of 14 pixels; longer text is cut."""
    return label(16, 24, cut(text, int((width - 32) / (14 * CHARACTER_WIDTH))), class_="title")


def wrapped(notes: Sequence[str], most: int) -> list[str]:
    """Returns the lines of the notes below a drawing. A line has at most `most` characters."""
    return [line for note in notes for line in wrap(note, most)]


def legend(x: float, y: float, entries: Sequence[tuple[str, str]]) -> list[str]:
    """A coloured square and its meaning for each (class, text), in one line."""
    body = []
    for class_, text in entries:
        body.append(element("rect", x=x, y=y - 9, width=10, height=10, class_=class_))
        body.append(label(x + 15, y, text))
        x += 34 + 7.0 * len(text)
    return body


def cut(text: str, most: int) -> str:
    """Returns a text of at most `most` characters; a longer one ends with an ellipsis."""
    return text if len(text) <= most else text[: most - 1] + "…"


def document(width: int, height: int, title: str, body: list[str]) -> str:
    """Returns a whole drawing on a white background. `title`: its description for screen readers."""
    inside = [
        element("title", text_of(title)),
        element("style", STYLE),
        element("rect", width=width, height=height, fill="#fff"),
        *body,
    ]
    view = f"0 0 {width} {height}"
    return element(
        "svg",
        "\n".join(inside),
        xmlns="http://www.w3.org/2000/svg",
        width=width,
        height=height,
        viewBox=view,
        role="img",
        class_=_CLASS,
    )


def _attribute(value: object) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else text_of(value)
