"""A cache for results that depend on a text, such as parsed SQL: a command needs the same text at several
steps."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")
_CHARACTERS_OF_AN_ENTRY = 100
"""Number of characters that each entry counts in addition to its text."""


class TextCache(Generic[T]):
    """A cache of results for texts with at most `characters` characters in total; the least recently used
    results are removed first. The limit is in characters instead of entries because the parsed form of a text
    grows with the text: about 200 bytes per character.

    Threads share a cache without a lock, as a fork could leave a lock held. At worst, a result is computed
    twice."""

    def __init__(self, characters: int) -> None:
        self.characters = characters
        self._newer: dict[Hashable, T] = {}
        self._older: dict[Hashable, T] = {}
        self._count = 0

    def get(self, text: str, make: Callable[[], T], key: Hashable = None) -> T:
        """Returns the cached result for the text and `key`, or else the result of `make`, which is then
        cached. Errors are not cached."""
        newer = self._newer
        place = (text, key)
        if (found := newer.get(place)) is not None:
            return found
        found = self._older.get(place)
        if found is None:
            found = make()
        size = len(text) + _CHARACTERS_OF_AN_ENTRY
        if size > self.characters // 2:
            return found
        if self._count + size > self.characters // 2:
            self._older, self._newer, self._count = self._newer, {}, 0
        self._newer[place] = found
        self._count += size
        return found
