"""`IDENTIFIER('a.b')` of a statement: the name that a text literal holds, of a table, a column or a
function."""

from __future__ import annotations

from deltaic.errors import InvalidArgumentError
from deltaic.plan.literal import col
from deltaic.sql.tokens import Reader
from deltaic.sql_text import Token, string_value


def with_identifiers(statement: str) -> str:
    """The statement with names in place of `IDENTIFIER('...')`, also of texts joined by `||`.
    `IDENTIFIER(:table)` is one of these, once parameters are literals."""
    if "identifier" not in statement.lower():
        return statement
    tokens, parts, position = Reader(statement).tokens, [], 0
    for index, token in enumerate(tokens):
        if token.keyword == "IDENTIFIER" and (found := _call(tokens, index + 1)) is not None:
            text, last = found
            following = tokens[last + 1].text if last + 1 < len(tokens) else ""
            if following == ".":  # Spark takes no part of a name from elsewhere
                continue
            is_function = following == "(" and text.isidentifier()
            parts += [statement[position : token.start], text if is_function else _name(text)]
            position = tokens[last].end
    return "".join([*parts, statement[position:]])


def _call(tokens: list[Token], start: int) -> tuple[str, int] | None:
    """The text of `('a' || 'b')` and the place of its last token; None where it is something else."""
    words, index = [], start
    while index < len(tokens) and tokens[index].text == ("(" if index == start else "||"):
        if index + 1 >= len(tokens) or tokens[index + 1].kind != "string":
            return None
        words.append(string_value(tokens[index + 1].text))
        index += 2
    return ("".join(words), index) if words and index < len(tokens) and tokens[index].text == ")" else None


def _name(text: str) -> str:
    """A dotted name with each part in quotes."""
    reader = Reader(text)
    parts = reader.dotted()
    if not reader.done:
        raise InvalidArgumentError(
            "[PARSE_SYNTAX_ERROR] the text of IDENTIFIER is no name",
            found=repr(text),
            expected="'table.column'",
        )
    return ".".join(map(col, parts))
