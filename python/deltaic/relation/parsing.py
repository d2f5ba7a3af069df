"""Spark SQL text to sqlglot trees, with Spark's own grammar where sqlglot's differs.

sqlglot's Databricks parser turns functions into its own nodes and so loses what was written, and it ranks `||`, `&`, `|`, `=` and `IS NULL`
differently from Spark's SqlBaseParser.g4. The parser here keeps every function as `exp.Anonymous` under the name that was written, and
takes
Spark's precedence, so that a tree means what Spark would run.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, cast

from sqlglot import exp
from sqlglot.dialects.databricks import Databricks
from sqlglot.errors import ParseError, SqlglotError, TokenError
from sqlglot.parsers.databricks import DatabricksParser
from sqlglot.tokenizer_core import Token, TokenType

from deltaic.errors import InvalidArgumentError, UnsupportedFeatureError

_COMPARISONS: dict[TokenType, type[exp.Binary]] = {
    TokenType.EQ: exp.EQ,
    TokenType.NEQ: exp.NEQ,
    TokenType.NULLSAFE_EQ: exp.NullSafeEQ,
    TokenType.GT: exp.GT,
    TokenType.GTE: exp.GTE,
    TokenType.LT: exp.LT,
    TokenType.LTE: exp.LTE,
}
_PREDICATES = (exp.Is, exp.In, exp.Between, exp.Like, exp.ILike, exp.RegexpLike, exp.Escape, exp.NullSafeNEQ)
MAX_LENGTH = 1_000_000
"""Longer text is refused: the trees would not fit the interpreter's stack."""


class _Parser(DatabricksParser):
    # ruff: noqa: RUF012 - class attributes are sqlglot's way to configure a parser
    FUNCTIONS: ClassVar[dict[str, Any]] = {}
    FUNCTION_PARSERS = {
        **{name: DatabricksParser.FUNCTION_PARSERS[name] for name in ("CAST", "TRY_CAST", "EXTRACT", "TRIM", "SUBSTRING", "SUBSTR")},
        "POSITION": lambda self: self._parse_with_words("position", "IN"),
        "OVERLAY": lambda self: self._parse_with_words("overlay", "PLACING", "FROM", "FOR"),
    }
    NO_PAREN_FUNCTION_PARSERS = {"CASE": DatabricksParser.NO_PAREN_FUNCTION_PARSERS["CASE"]}
    COLON_IS_VARIANT_EXTRACT = False
    ARRAY_CONSTRUCTORS: ClassVar[dict[str, Any]] = {}  # `array[0]` and `array(1, 2)[0]` are items, not arrays
    TERM = {TokenType.DASH: exp.Sub, TokenType.PLUS: exp.Add, TokenType.DPIPE: exp.DPipe}
    FACTOR = {TokenType.DIV: exp.IntDiv, TokenType.MOD: exp.Mod, TokenType.SLASH: exp.Div, TokenType.STAR: exp.Mul}

    UNARY_PARSERS = {
        **DatabricksParser.UNARY_PARSERS,
        TokenType.PLUS: lambda self: self.expression(exp.Anonymous(this="positive", expressions=[self._parse_unary()])),
    }

    def _parse_with_words(self, name: str, *words: str) -> exp.Expr:
        """`position(part IN text)`, `overlay(text PLACING part FROM start FOR length)`, or with commas."""
        arguments = [self._parse_bitwise()]
        for word in words:
            if self._match_text_seq(word):
                arguments.append(self._parse_bitwise())
        if len(arguments) == 1:
            while self._match(TokenType.COMMA):
                arguments.append(self._parse_disjunction())
        return self.expression(exp.Anonymous(this=name, expressions=[argument for argument in arguments if argument is not None]))

    def _parse_substring(self) -> exp.Expr:  # type: ignore[override]
        """`substring(text FROM start FOR length)`, or with commas; a call of any other number of arguments is no form."""
        arguments = self._parse_csv(self._parse_disjunction)
        for word in (TokenType.FROM, TokenType.FOR):
            if self._match(word) and (argument := self._parse_bitwise()) is not None:
                arguments.append(argument)
        if len(arguments) not in (2, 3):
            return self.expression(exp.Anonymous(this="substring", expressions=arguments))
        return exp.Substring.from_arg_list(arguments)

    def _parse_equality(self, parse_is: bool = True) -> exp.Expr | None:
        this = self._parse_range()
        if self._curr and self._curr.token_type in _COMPARISONS:
            self.raise_error("Expected parentheses around a predicate that is compared")
        return this

    def _parse_range(self, this: exp.Expr | None = None, parse_is: bool = True) -> exp.Expr | None:
        result: exp.Expr | None = super()._parse_range(this or self._parse_comparison(), parse_is)
        return result

    def _is_predicate_ahead(self) -> bool:
        return False

    def _parse_is_rhs(self, distinct: bool = False) -> exp.Expr | None:
        if not distinct and self._match(TokenType.UNKNOWN):
            return exp.Var(this="UNKNOWN")
        return self._parse_bitwise() if distinct else (self._parse_null() or self._parse_bitwise())

    def _parse_comparison(self, this: exp.Expr | None = None) -> exp.Expr | None:
        this = this or self._parse_bitwise()
        while self._curr and (node := _COMPARISONS.get(self._curr.token_type)):
            self._advance()
            this = self.expression(node(this=this, expression=self._parse_bitwise()))
        return this

    def _parse_bitwise(self) -> exp.Expr | None:
        return self._parse_level(0)

    def _parse_level(self, level: int) -> exp.Expr | None:
        if level == len(_BITWISE):
            return self._parse_shift()
        token, node = _BITWISE[level]
        this = self._parse_level(level + 1)
        while self._match(token):
            this = self.expression(node(this=this, expression=self._parse_level(level + 1)))
        return this

    def _parse_shift(self) -> exp.Expr | None:
        this = self._parse_term()
        while True:
            if self._match_pair(TokenType.LT, TokenType.LT):
                name = "shiftleft"
            elif self._match_pair(TokenType.GT, TokenType.GT):
                name = "shiftrightunsigned" if self._match(TokenType.GT) else "shiftright"
            else:
                return this
            this = self.expression(exp.Anonymous(this=name, expressions=[this, self._parse_term()]))


_BITWISE: tuple[tuple[TokenType, type[exp.Binary]], ...] = (
    (TokenType.PIPE, exp.BitwiseOr),
    (TokenType.CARET, exp.BitwiseXor),
    (TokenType.AMP, exp.BitwiseAnd),
)


class _Dialect(Databricks):
    class Tokenizer(Databricks.Tokenizer):
        STRING_ESCAPES = ["\\", "'", '"']  # a doubled quote is one quote, not the end of one string and the start of another

    Parser = _Parser


_DIALECT = _Dialect()


def tokenize(text: str) -> list[Token]:
    """The tokens of the text. InvalidArgumentError for text that has none or cannot be divided into tokens."""
    if not isinstance(text, str):
        raise InvalidArgumentError("SQL is text", found=type(text).__name__)
    if len(text) > MAX_LENGTH:
        raise InvalidArgumentError(f"SQL text is longer than {MAX_LENGTH} characters", found=f"{len(text)} characters")
    try:
        tokens = _DIALECT.tokenize(text)
    except (TokenError, ValueError) as error:
        raise InvalidArgumentError(f"SQL does not parse: {error}", found=_excerpt(text)) from None
    for token in tokens:
        if token.token_type == TokenType.HEX_STRING and text[token.start : token.start + 1] == "0":
            raise InvalidArgumentError(
                "SQL does not parse: 0x... is no number in Spark", where=_position(token), found=_excerpt(text), expected="X'...'"
            )
        if token.token_type == TokenType.SEMICOLON:
            raise InvalidArgumentError(
                "SQL does not parse: one statement or expression is expected", where=_position(token), found=_excerpt(text)
            )
    if not tokens:
        raise InvalidArgumentError("SQL does not parse: the text is empty", found=repr(text[:40]))
    return tokens


def parse(text: str) -> exp.Expression:
    """One expression in Spark's SQL dialect. CAST and `a / b` stay as written, functions are `exp.Anonymous` with their written name.

    InvalidArgumentError, with the position, for text that is not exactly one expression.
    """
    return _parse(text, exp.Condition)


def parse_statement(text: str) -> exp.Expression:
    """One statement (SELECT with what may stand around it) by the same rules as `parse`; what `query.translate_query` takes."""
    return _parse(text, None)


def _parse(text: str, into: type[exp.Condition] | None) -> exp.Expression:
    tokens = tokenize(text)
    parser = _DIALECT.parser()
    try:
        trees = parser.parse(tokens, text) if into is None else parser.parse_into(into, tokens, text)
    except ParseError as error:
        detail = error.errors[0] if error.errors else {}
        inner = error.__cause__
        if isinstance(inner, ParseError) and inner.errors:
            detail = inner.errors[0]
        where = f"line {detail['line']}, column {detail['col']}" if detail.get("line") else None
        reason = detail.get("description") or "not an expression"
        raise InvalidArgumentError(f"SQL does not parse: {reason}", where=where, found=_excerpt(text)) from None
    except SqlglotError as error:
        raise InvalidArgumentError(f"SQL does not parse: {error}", found=_excerpt(text)) from None
    except RecursionError:
        raise InvalidArgumentError("SQL is nested too deeply", found=_excerpt(text)) from None
    if len(trees) != 1 or trees[0] is None:
        raise InvalidArgumentError("SQL does not parse: exactly one expression is expected", found=_excerpt(text))
    tree = cast(exp.Expression, trees[0])
    if into is not None and isinstance(tree, exp.Subquery):
        raise UnsupportedFeatureError("a subquery (SELECT) as the value of an expression", found=_excerpt(text))
    if into is not None and isinstance(tree, (exp.Alias, exp.Query, exp.Star)):
        raise InvalidArgumentError(f"an expression is expected, not {type(tree).__name__.lower()}", found=_excerpt(text))
    return tree


def split_conjuncts(text: str) -> tuple[str, ...]:
    """The parts of `a AND b AND c` as slices of the text; the whole text where it is no conjunction."""
    tokens = tokenize(text)
    slices = list(_conjuncts(tokens, 0, len(tokens)))
    return tuple(text[tokens[start].start : tokens[stop - 1].end + 1] for start, stop in slices)


_OPENING = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE}
_CLOSING = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END}


def _conjuncts(tokens: list[Token], start: int, stop: int) -> Iterator[tuple[int, int]]:
    while stop - start > 2 and tokens[start].token_type == TokenType.L_PAREN and _closing(tokens, start, stop) == stop - 1:
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


def _position(token: Token) -> str:
    return f"line {token.line}, column {token.col}"


def _excerpt(text: str) -> str:
    return repr(text if len(text) <= 200 else text[:200] + "…")
