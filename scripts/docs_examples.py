"""An extension of Griffe, which reads docstrings for the site: it turns examples (`>>> ...`) into blocks of
code instead of quotations."""

from __future__ import annotations

import re
from typing import Any

import griffe


class Examples(griffe.Extension):
    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(text: str) -> str:
    """Returns the text with a fence around each run of lines that begin with `>>>` or `...`, and the answers
    after them."""
    return re.sub(r"^(>>> .*(?:\n(?!\s*$).*)*)$", r"```pycon\n\1\n```", text, flags=re.MULTILINE)
