"""Finds the names of columns and fields in the text of constraints, invariants and generated columns."""

from __future__ import annotations

from collections.abc import Iterator

from deltaic.sql_text import tokens


def uses(text: str, path: tuple[str, ...]) -> bool:
    """Returns True if an expression contains the last name of a path in lower case, or one of the columns and
    structs around it as a whole: `s.x` is used by `x > 0` and by `hash(s)`, but not by `s.y > 0`."""
    if path[-1] in _words(text):
        return True
    around = {path[:end] for end in range(1, len(path))}
    return bool(around) and not around.isdisjoint(_dotted_names(text))


def _dotted_names(text: str) -> Iterator[tuple[str, ...]]:
    """Yields the dotted names of an expression in lower case: `hash(s.x) > t` has `hash`, `s.x` and `t`."""
    chain: list[str] = []
    continues = False
    for token in tokens(text):
        if token.kind in ("word", "quoted"):
            if not continues and chain:
                yield tuple(chain)
                chain = []
            chain.append(token.name.lower())
            continues = False
        else:
            continues = token.text == "."
    if chain:
        yield tuple(chain)


def _words(text: str) -> set[str]:
    """Returns all that may be a name in an expression, in lower case. A name may begin with a digit. Words in
    comments count, too."""
    found: set[str] = set()
    for token in tokens(text):
        if token.kind == "comment":
            found |= _words(token.text[2:])
        elif token.kind == "quoted":
            found.add(token.name.lower())
        elif token.kind in ("word", "number"):
            found |= set(token.text.lower().split("."))
    return found
