"""Parses Spark SQL to sqlglot trees, by the grammar of `grammar`, and divides conditions.

The tokens are sqlglot's, as its parser knows no others; all other text of SQL is read by those of
`deltaic.sql_text`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import cast

from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from deltaic.errors import InvalidArgumentError, UnsupportedFeatureError
from deltaic.spark_sql.grammar import DIALECT
from deltaic.spark_sql.text_cache import TextCache
from deltaic.sql_text import MOST_DIGITS

_KEPT_CHARACTERS = 300_000
"""Maximum number of characters of all texts in the cache of parsed trees."""
# Matches `name` and `alias`.`name`. Names with characters that need the tokenizer do not match.
_QUOTED_NAME = re.compile(r"(?:`((?:[^`\\\x00-\x1f]|``)+)`\.)?`((?:[^`\\\x00-\x1f]|``)+)`")

_TREES = TextCache[exp.Expression](_KEPT_CHARACTERS)
MAX_LENGTH = 1_000_000
"""Maximum number of characters of a SQL text; longer text raises InvalidArgumentError, as its tree may exceed
the interpreter's stack."""


def tokenize(text: str) -> list[Token]:
    """Returns the tokens of a text. Raises InvalidArgumentError if the text is empty or cannot be divided
    into tokens."""
    if not isinstance(text, str):
        raise InvalidArgumentError("SQL must be a string", found=type(text).__name__)
    if len(text) > MAX_LENGTH:
        raise InvalidArgumentError(
            f"SQL text is longer than {MAX_LENGTH} characters", found=f"{len(text)} characters"
        )
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise InvalidArgumentError("SQL text has half of a surrogate pair", found=ascii(text[:40]))
    try:
        tokens = DIALECT.tokenize(text)
    except (TokenError, ValueError):
        raise InvalidArgumentError(
            "SQL does not parse: a quote, comment or number is not complete", found=_excerpt(text)
        ) from None
    for place, token in enumerate(tokens):
        if _is_name(tokens, place):
            tokens[place] = Token(
                TokenType.VAR, token.text, token.line, token.col, token.start, token.end, token.comments
            )
        if token.token_type == TokenType.HEX_STRING and text[token.start : token.start + 1] == "0":
            raise InvalidArgumentError(
                "SQL does not parse: 0x... is no number in Spark",
                where=_position(token),
                found=_excerpt(text),
                expected="X'...'",
            )
        if token.token_type == TokenType.NUMBER and len(token.text) > MOST_DIGITS:
            raise InvalidArgumentError(
                "a number is too long",
                found=f"{len(token.text)} characters",
                expected=f"at most {MOST_DIGITS}",
            )
        if token.token_type == TokenType.SEMICOLON:
            raise InvalidArgumentError(
                "SQL does not parse: one statement or expression is expected",
                where=_position(token),
                found=_excerpt(text),
            )
    if not tokens:
        raise InvalidArgumentError("SQL does not parse: the text is empty", found=repr(text[:40]))
    return tokens


_OF_STATEMENTS = {TokenType.INSERT, TokenType.CREATE, TokenType.ALTER, TokenType.DROP}
_BEHIND_NAMES = {
    TokenType.COMMA, TokenType.R_PAREN, TokenType.DOT, TokenType.FROM, TokenType.ALIAS, TokenType.PLUS,
    TokenType.DASH, TokenType.STAR, TokenType.SLASH, TokenType.EQ, TokenType.NEQ, TokenType.LT, TokenType.LTE,
    TokenType.GT, TokenType.GTE, TokenType.NULLSAFE_EQ, TokenType.DPIPE, TokenType.AND, TokenType.OR,
    TokenType.IS, TokenType.IN, TokenType.BETWEEN, TokenType.LIKE, TokenType.ILIKE, TokenType.RLIKE,
    TokenType.NOT, TokenType.THEN, TokenType.ELSE, TokenType.END, TokenType.WHEN, TokenType.WHERE,
    TokenType.GROUP_BY, TokenType.HAVING, TokenType.ORDER_BY, TokenType.ASC, TokenType.DESC, TokenType.LIMIT,
    TokenType.L_BRACKET, TokenType.R_BRACKET, TokenType.COLON, TokenType.DCOLON, TokenType.PIPE_GT,
    TokenType.UNION, TokenType.EXCEPT, TokenType.JOIN,
}  # fmt: skip

_SIGNS = {TokenType.DASH, TokenType.PLUS, TokenType.NOT}
_SET_OPERATIONS = {TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT, TokenType.ALL, TokenType.DISTINCT}
_BEFORE_ARGUMENTS = {TokenType.VAR, TokenType.IDENTIFIER, TokenType.LEFT, TokenType.RIGHT, TokenType.REPLACE}


def _is_name(tokens: list[Token], place: int) -> bool:
    """True for a word that sqlglot takes for one of a statement or clause, and that is a name here: INSERT,
    CREATE, ALTER and DROP begin no query; WINDOW begins the clause `WINDOW w AS (…)` only; VALUES is a name
    before what follows a name."""
    kind = tokens[place].token_type
    if kind == TokenType.WINDOW:
        return len(tokens) <= place + 2 or tokens[place + 2].token_type != TokenType.ALIAS
    if kind == TokenType.VALUES:
        behind = tokens[place + 1].token_type if len(tokens) > place + 1 else None
        if behind in _SIGNS or (place and tokens[place - 1].token_type == TokenType.SELECT):
            return not _may_begin_query(tokens, place)
        return behind is None or behind in _BEHIND_NAMES
    return kind in _OF_STATEMENTS and (place == 0 or tokens[place - 1].token_type != TokenType.PIPE_GT)


def _may_begin_query(tokens: list[Token], place: int) -> bool:
    """True at the begin of a text, after a set operation, and in brackets that are not those of a
    function."""
    before = [token.token_type for token in tokens[max(0, place - 2) : place]]
    if not before or before[-1] in _SET_OPERATIONS:
        return True
    return before[-1] == TokenType.L_PAREN and (len(before) == 1 or before[0] not in _BEFORE_ARGUMENTS)


def parse(text: str) -> exp.Expression:
    """Parses one expression in Spark's SQL dialect. CAST and `a / b` stay as written; a function is an
    `exp.Anonymous` with its name as written.

    The tree is cached and returned again for the same text, so it must not be changed.

    Raises InvalidArgumentError, with the position, if the text is not exactly one expression.
    """
    if not isinstance(text, str):
        return _parse(text, exp.Condition)
    if (name := _QUOTED_NAME.fullmatch(text)) is not None:
        return _column(name)
    return _TREES.get(text, lambda: _parse(text, exp.Condition))


def parse_with_queries(text: str) -> exp.Expression:
    """Parses one expression like `parse`, but subqueries are allowed, and the tree is not shared: the caller
    may change it."""
    return _parse(text, exp.Condition, queries=True)


def _column(name: re.Match[str]) -> exp.Column:
    """Returns the tree of a quoted column name, without the tokenizer: commands write such a name for each
    column of a table."""
    parts = [
        exp.Identifier(this=part.replace("``", "`"), quoted=True)
        for part in name.groups()
        if part is not None
    ]
    return exp.Column(this=parts[-1], table=parts[0] if len(parts) > 1 else None)


def parse_statement(text: str) -> exp.Expression:
    """Parses one query by the same rules as `parse`: SELECT, set operations, VALUES, WITH.
    `query.translate_query` takes the tree."""
    return _parse(text, None)


_ONE_CONDITION = "one expression without words of a statement, like \"id > 1 AND city = 'Rome'\""


def _parse(text: str, into: type[exp.Condition] | None, *, queries: bool = False) -> exp.Expression:
    tokens = tokenize(text)
    kinds = Counter(token.token_type for token in tokens)
    # sqlglot accepts CAST, TRIM and EXTRACT without a closing bracket
    if kinds[TokenType.L_PAREN] > kinds[TokenType.R_PAREN]:
        raise InvalidArgumentError("SQL does not parse: a bracket is never closed", found=_excerpt(text))
    parser = DIALECT.parser()
    try:
        trees = parser.parse(tokens, text) if into is None else parser.parse_into(into, tokens, text)
    except ParseError as error:
        if any(token.token_type is TokenType.COLLATE for token in tokens):
            raise UnsupportedFeatureError(
                "COLLATE", found=_excerpt(text), expected="text without a collation"
            ) from None
        raise _syntax_error(error, tokens, text, None if into is None else _ONE_CONDITION) from None
    except SqlglotError:
        raise InvalidArgumentError("SQL does not parse", found=_excerpt(text)) from None
    except RecursionError:
        raise InvalidArgumentError("SQL is nested too deeply", found=_excerpt(text)) from None
    if len(trees) != 1 or trees[0] is None:
        raise InvalidArgumentError(
            "SQL does not parse: exactly one expression is expected", found=_excerpt(text)
        )
    tree = cast(exp.Expression, trees[0])
    if into is not None and not queries and isinstance(tree, exp.Subquery):
        raise UnsupportedFeatureError(
            "a subquery (SELECT) as the value of an expression is not supported", found=_excerpt(text)
        )
    is_value = queries and isinstance(tree, exp.Subquery) and not tree.alias
    if into is not None and isinstance(tree, (exp.Alias, exp.Query, exp.Star)) and not is_value:
        raise InvalidArgumentError(
            f"an expression is expected, not {type(tree).__name__.lower()}", found=_excerpt(text)
        )
    return tree


def operands(node: exp.Expr) -> list[exp.Expr]:
    """Returns the operands of a chain of ANDs or ORs, in order, also from brackets: `a OR (b OR c)` -> a, b,
    c. Any other node is its only operand. Works without recursion, as the tree of a chain of thousands is
    thousands of levels deep."""
    kind, found, pending = type(node), [], [node]
    if kind not in (exp.And, exp.Or):
        return [node]
    while pending:
        each = inner = pending.pop()
        while isinstance(inner, exp.Paren):
            inner = inner.this
        if type(inner) is kind:
            pending += [inner.expression, inner.this]
        else:
            found.append(each)
    return found


def split_conjuncts(text: str) -> tuple[str, ...]:
    """Returns the texts of the conditions that a text joins with AND: of `a AND b AND c`, ("a", "b", "c"). A
    text without AND is its only condition."""
    tokens = tokenize(text)
    slices = list(_conjuncts(tokens, 0, len(tokens)))
    return tuple(text[tokens[start].start : tokens[stop - 1].end + 1] for start, stop in slices)


_OPENING = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE}
_CLOSING = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END}


def _conjuncts(tokens: list[Token], start: int, stop: int) -> Iterator[tuple[int, int]]:
    while (
        stop - start > 2
        and tokens[start].token_type == TokenType.L_PAREN
        and _closing(tokens, start, stop) == stop - 1
    ):
        start, stop = start + 1, stop - 1
    cuts, depth, betweens = [], 0, 0
    for index in range(start, stop):
        kind = tokens[index].token_type
        if kind in _OPENING:
            depth += 1
        elif kind in _CLOSING:
            depth -= 1
        elif depth == 0 and kind in (TokenType.OR, TokenType.ARROW):
            yield start, stop
            return
        elif depth == 0 and kind == TokenType.BETWEEN:
            betweens += 1
        elif depth == 0 and kind == TokenType.AND:
            if betweens:
                betweens -= 1
            else:
                cuts.append(index)
    if not cuts:
        yield start, stop
        return
    for first, last in zip([start, *(cut + 1 for cut in cuts)], [*cuts, stop], strict=True):
        yield from _conjuncts(tokens, first, last)


def _closing(tokens: list[Token], start: int, stop: int) -> int:
    depth = 0
    for index in range(start, stop):
        kind = tokens[index].token_type
        depth += (kind in _OPENING) - (kind in _CLOSING)
        if depth == 0:
            return index
    return stop


def _syntax_error(
    error: ParseError, tokens: list[Token], text: str, expected: str | None
) -> InvalidArgumentError:
    """Returns the error for text that does not parse, with the position of sqlglot's error. Its message is
    not used: it names classes of the parser."""
    cause = error.__cause__ if isinstance(error.__cause__, ParseError) else error
    detail = next(iter(cause.errors or error.errors), {})
    near = next(
        (token for token in tokens if (token.line, token.col) == (detail.get("line"), detail.get("col"))),
        None,
    )
    if near is None:
        return InvalidArgumentError("SQL does not parse", found=_excerpt(text), expected=expected)
    before = next((token for token in reversed(tokens) if token.start < near.start), None)
    if (
        near.token_type == TokenType.STRING
        and before is not None
        and before.token_type in (TokenType.FROM, TokenType.JOIN)
    ):
        expected = f"delta.`{near.text}`"
    place = f"after {near.text!r} at the end" if near is tokens[-1] else f"at or near {near.text!r}"
    return InvalidArgumentError(
        f"SQL does not parse {place}", where=_position(near), found=_excerpt(text), expected=expected
    )


def _position(token: Token) -> str:
    return f"line {token.line}, column {token.col}"


def _excerpt(text: str) -> str:
    return repr(text if len(text) <= 200 else text[:200] + "…")
