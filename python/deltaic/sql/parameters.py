"""Parameters of a statement: replaces the markers `:name` and `?` by literals of their values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from deltaic.errors import InvalidArgumentError, InvalidTypeError
from deltaic.plan.literal import lit
from deltaic.sql.tokens import Reader
from deltaic.sql_text import Token

_BEFORE_A_VALUE = frozenset(
    {"AND", "OR", "NOT", "SELECT", "WHERE", "WHEN", "THEN", "ELSE", "IN", "LIKE", "BETWEEN", "LIMIT", "OF"}
)
"""Keywords behind which a colon begins a parameter, also if a space follows the colon."""


def bound(statement: str, parameters: Mapping[str, Any] | Sequence[Any] | None) -> str:
    """Replaces the markers of a statement by literals: `id = :id` with {"id": 7} becomes `id = 7`.

    `parameters`: a mapping for markers `:name`, a sequence for `?` in their order. Unused values of a mapping
    are ignored; a sequence must have as many values as there are markers."""
    if parameters is None:
        return statement
    if isinstance(parameters, (str, bytes)) or not isinstance(parameters, (Mapping, Sequence)):
        raise InvalidTypeError(
            "parameters must be a mapping of names, or a sequence",
            found=type(parameters).__name__,
            expected="a mapping or a sequence",
        )
    parts, position, count = [], 0, 0
    tokens = Reader(statement).tokens
    named = named_markers(tokens)
    for index, token in enumerate(tokens):
        if token.text == "?" and token.kind == "symbol":
            value, end = _positional(parameters, count), token.end
            count += 1
        elif index in named:
            name = tokens[index + 1]
            value, end = _named(parameters, name.text), name.end
        else:
            continue
        parts += [statement[position : token.start], literal(value)]
        position = end
    if not isinstance(parameters, Mapping) and count != len(parameters):
        raise InvalidArgumentError(
            "the statement and parameters= have different numbers of values",
            found=count,
            expected=len(parameters),
        )
    return "".join([*parts, statement[position:]])


def named_markers(tokens: Sequence[Token]) -> set[int]:
    """Returns the indexes of the colons before names of parameters: `:v`, which may be written `= : v`. The
    colons of a path in a variant (`v:a`), of a label (`again: LOOP`) and of a type are none."""
    of_types = colons_of_types(tokens)
    return {
        index
        for index, (colon, name) in enumerate(pairwise(tokens))
        if colon.text == ":"
        and name.kind == "word"
        and index not in of_types
        and _may_be_marker(tokens[index - 1] if index else None, colon, name)
    }


def _may_be_marker(before: Token | None, colon: Token, name: Token) -> bool:
    if before is None or before.keyword in _BEFORE_A_VALUE:
        return True
    is_behind_value = before.kind != "symbol" or before.text in (")", "]")
    return not is_behind_value or (name.start == colon.end and before.end != colon.start)


def colons_of_types(tokens: Sequence[Token]) -> set[int]:
    """Returns the indexes of the colons between name and type, as in STRUCT<a:INT>."""
    found: set[int] = set()
    opened: list[str] = []  # the word before each `<` that is open
    words = [token.keyword for token in tokens]
    for index, word in enumerate(words):
        if word == "<" and index and words[index - 1] in ("STRUCT", "ARRAY", "MAP"):
            opened.append(words[index - 1])
        elif opened and word and set(word) == {">"}:
            del opened[-len(word) :]
        elif word == ":" and opened[-1:] == ["STRUCT"] and tokens[index - 2].text in ("<", ","):
            found.add(index)
    return found


def literal(value: Any) -> str:
    """Returns a value as SQL. A negative number is put in brackets, as `1 -:n` would become `1 --7`, which is
    a comment."""
    text = lit(value)
    return f"({text})" if text.startswith("-") else text


def _positional(parameters: Mapping[str, Any] | Sequence[Any], index: int) -> Any:
    if isinstance(parameters, Mapping):
        raise InvalidArgumentError(
            "the values of ? must be a sequence", found="a mapping", expected="parameters=[...]"
        )
    if index >= len(parameters):
        raise InvalidArgumentError(
            "[UNBOUND_SQL_PARAMETER] no value for a ?", found=f"{len(parameters)} values", expected=index + 1
        )
    return parameters[index]


def _named(parameters: Mapping[str, Any] | Sequence[Any], name: str) -> Any:
    if not isinstance(parameters, Mapping):
        raise InvalidArgumentError(
            f"the values of :{name} must be in a mapping", found="a sequence", expected="parameters={...}"
        )
    if name not in parameters:
        raise InvalidArgumentError(
            f"[UNBOUND_SQL_PARAMETER] no value for :{name}", found=sorted(map(str, parameters)), expected=name
        )
    return parameters[name]
