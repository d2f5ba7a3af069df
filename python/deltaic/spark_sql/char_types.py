"""The types CHAR(n) and VARCHAR(n): Spark stores such a column as a string and keeps its type in the column's
metadata.

The metadata key is `__CHAR_VARCHAR_TYPE_STRING`, of top-level columns only; its value is the column's whole
type, such as `varchar(5)`, `struct<x:char(3),y:int>` or `map<int,array<char(2)>>`. A value may have at most n
characters. delta-spark stores values without padding.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from deltaic.errors import ProtocolError, SchemaMismatchError
from deltaic.plan.literal import col
from deltaic.protocol.schema import CHAR_TYPES, Field
from deltaic.spark_sql.values import type_text
from deltaic.sql_text import name_of

_T = TypeVar("_T")
_TOKEN = re.compile(r"\s*(`(?:[^`]|``)*`|[<>,:()]|[^\s<>,:()`]+)")


@dataclass(frozen=True)
class LengthLimit:
    """The type CHAR(n) or VARCHAR(n). `name`: "char" or "varchar". `length`: n."""

    name: str
    length: int


@dataclass(frozen=True)
class NestedLimit:
    """A struct, array or map with CHAR or VARCHAR inside. `kind`: "struct", "array" or "map". `parts`: pairs
    of a name (of a field, or `element`, or `key` and `value`) and its type, which is None if the part holds
    neither CHAR nor VARCHAR."""

    kind: str
    parts: tuple[tuple[str, LengthLimit | NestedLimit | None], ...]


def bounded_type(field: Field) -> LengthLimit | NestedLimit | None:
    """Returns the CHAR and VARCHAR types of a column, or None if it has none. Raises ProtocolError if the
    metadata cannot be parsed."""
    text = field.metadata.get(CHAR_TYPES)
    if text is None:
        return None
    try:
        parser = _Parser(text)
        parsed = parser.type()
        parser.end()
    except (IndexError, TypeError, ValueError) as error:
        message = "the type of a CHAR or VARCHAR column cannot be read"
        raise ProtocolError(
            message, where=f"column {field.name}", found=repr(text)[:80], expected="such as 'varchar(5)'"
        ) from error
    return parsed


def check_longer(path: str, old: Field, new: Field) -> None:
    """Raises if the column cannot change from the type of `old` to that of `new`. As in Spark, VARCHAR(n) may
    get a larger n, CHAR(n) may become VARCHAR(n) or a longer VARCHAR, and both may become STRING."""
    before, after = bounded_type(old), bounded_type(new)
    if after is None or before == after:
        return
    if (
        isinstance(before, LengthLimit)
        and isinstance(after, LengthLimit)
        and after.name == "varchar"
        and before.length <= after.length
    ):
        return
    found, expected = new.metadata[CHAR_TYPES], old.metadata.get(CHAR_TYPES, old.type)
    raise SchemaMismatchError(
        "the type of a column cannot become shorter",
        where=path,
        found=found,
        expected=f"{expected}, or longer",
    )


def shown_type(field: Field) -> str:
    """Returns the type of a column as DESCRIBE shows it, such as `varchar(5)`."""
    return str(field.metadata.get(CHAR_TYPES) or type_text(field.type))


def has_char(field: Field) -> bool:
    """True if the type of a top-level column holds CHAR(n), at any depth."""
    return "char" in re.findall(r"\w+", str(field.metadata.get(CHAR_TYPES, "")).lower())


def length_conditions(field: Field) -> Iterator[tuple[str, str, str]]:
    """Yields (place, type, condition) for each CHAR and VARCHAR of a column, also nested ones. The condition
    is SQL that is true if no value at the place is too long."""
    if (kind := bounded_type(field)) is not None:
        yield from _conditions(col(field.name), kind, field.name, 0)


def _conditions(
    value: str, kind: LengthLimit | NestedLimit, place: str, depth: int
) -> Iterator[tuple[str, str, str]]:
    if isinstance(kind, LengthLimit):
        yield place, f"{kind.name}({kind.length})", f"coalesce(length({value}) <= {kind.length}, true)"
        return
    item = f"__deltaic_item{depth}"
    for name, part in kind.parts:
        if part is None:
            continue
        if kind.kind == "struct":
            yield from _conditions(f"{value}.{col(name)}", part, f"{place}.{name}", depth)
            continue
        values = value if kind.kind == "array" else f"map_{name}s({value})"
        for where, shown, condition in _conditions(item, part, f"{place}.{name}", depth + 1):
            yield where, shown, f"coalesce(forall({values}, {item} -> {condition}), true)"


class _Parser:
    """Parses the text of a type. A type without CHAR or VARCHAR inside becomes None."""

    def __init__(self, text: str) -> None:
        self._tokens = _TOKEN.findall(text)
        self._position = 0

    def type(self) -> LengthLimit | NestedLimit | None:
        name = self._next().lower()
        if name in ("struct", "array", "map") and self._at("<"):
            return self._nested(name)
        arguments = self._listed("(", ")", self._next) if self._at("(") else []
        return LengthLimit(name, int(arguments[0])) if name in ("char", "varchar") else None

    def end(self) -> None:
        if self._position != len(self._tokens):
            raise ValueError(self._tokens[self._position])

    def _nested(self, kind: str) -> NestedLimit | None:
        if kind == "struct":
            parts = self._listed("<", ">", self._field)
        else:
            names = ("element",) if kind == "array" else ("key", "value")
            parts = list(zip(names, self._listed("<", ">", self.type), strict=True))
        return NestedLimit(kind, tuple(parts)) if any(part is not None for _, part in parts) else None

    def _field(self) -> tuple[str, LengthLimit | NestedLimit | None]:
        name = self._next()
        self._expect(":")
        return name_of(name) if name.startswith("`") else name, self.type()

    def _listed(self, opening: str, closing: str, read: Callable[[], _T]) -> list[_T]:
        self._expect(opening)
        found: list[_T] = []
        while not self._at(closing):
            if found:
                self._expect(",")
            found.append(read())
        self._expect(closing)
        return found

    def _at(self, token: str) -> bool:
        return self._position < len(self._tokens) and self._tokens[self._position] == token

    def _expect(self, token: str) -> None:
        if self._next() != token:
            raise ValueError(token)

    def _next(self) -> str:
        self._position += 1
        return str(self._tokens[self._position - 1])
