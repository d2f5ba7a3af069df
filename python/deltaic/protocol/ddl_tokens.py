"""The tokens of a schema in DDL."""

from __future__ import annotations

from collections.abc import Iterator

from deltaic.sql_text import Token, tokens


def words_and_marks(text: str) -> Iterator[Token]:
    """Yields the tokens as DDL has them: the brackets `<>` are two marks, and a name may begin with a digit
    or be a whole number."""
    for token in tokens(text):
        if token.kind in ("symbol", "open"):
            for position, mark in enumerate(token.text, token.start):
                yield Token("symbol", mark, position, position + 1)
        elif token.kind == "number" and token.text.replace("_", "").isalnum():
            yield token._replace(kind="word")
        elif token.kind != "comment":
            yield token
