"""Results of functions of a text, kept while a command reads the same text at each of its steps."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")
_CHARACTERS_OF_AN_ENTRY = 100
"""Characters that an entry counts besides its text."""


class TextCache(Generic[T]):
    """Results for texts of at most `characters` characters in all; those that nobody has asked for longest go first. It bounds memory by
    characters and not by entries, as the parsed form of a text grows with it: about 200 bytes a character.

    Threads share it without a lock, which a fork could leave held: at worst a result is computed twice."""

    def __init__(self, characters: int) -> None:
        self.characters = characters
        self._newer: dict[Hashable, T] = {}
        self._older: dict[Hashable, T] = {}
        self._count = 0

    def get(self, text: str, make: Callable[[], T], key: Hashable = None) -> T:
        """The value kept for the text and `key`, else the result of `make`. Errors are not kept."""
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
