"""A cursor over the tokens of one SQL statement. It passes expressions to commands as slices of the user's
text.

Only the structure of statements is parsed here: words, quotes, brackets. `deltaic.spark_sql` parses
expressions and queries.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import copy
from typing import Any, NoReturn, TypeVar

from deltaic.errors import InvalidArgumentError
from deltaic.spark_sql.text_cache import TextCache
from deltaic.sql_text import MOST_DIGITS, Token, edited, string_value, tokens

_T = TypeVar("_T")


def _tokens(text: str) -> tuple[Token, ...]:
    found = tuple(token for token in tokens(text) if token.kind != "comment")
    for token in found:
        if token.kind == "open":
            rest = text[token.start : token.start + 20]
            raise InvalidArgumentError(
                "SQL does not parse: a quote or a comment is never closed",
                where=f"character {token.start + 1}",
                found=rest,
            )
        if token.kind == "number" and len(token.text) > MOST_DIGITS:
            raise InvalidArgumentError(
                "a number is too long",
                found=f"{len(token.text)} characters",
                expected=f"at most {MOST_DIGITS}",
            )
    return found


_INFIX = frozenset({*"=</%&|^", "==", "<=>", "<=", ">=", "<>", "!=", "||"})
_OPERATORS = _INFIX | set(".,([+-")
"""Symbols behind which a value is expected; `>` and `*` may also end one: `x::ARRAY<INT>`, `t.*`."""
_BEFORE_A_VALUE = frozenset({"WHEN", "THEN", "ELSE", "AND", "OR", "NOT"})
_BEHIND_A_VALUE = _INFIX | {*",)]>*", "AND", "OR", "IS", "IN", "LIKE", "BETWEEN", "THEN", "ELSE", "WHERE"}
_TOKENS_OF = TextCache[tuple[Token, ...]](1 << 16)
"""Tokens of statements: a program runs the same statement again and again."""


class Reader:
    """The cursor. `accept` advances if the words come next; `expect` raises an error if they do not.
    `several`: semicolons may divide the text."""

    def __init__(self, text: str, *, several: bool = False) -> None:
        self.text = text
        self.tokens = list(_TOKENS_OF.get(text, lambda: _tokens(text)))
        while self.tokens and self.tokens[-1].text == ";":
            self.tokens.pop()
        self.position = 0
        if not several and any(token.text == ";" for token in self.tokens):
            raise InvalidArgumentError(
                "the text has more than one statement", found="several, divided by ';'"
            )
        if not self.tokens:
            raise InvalidArgumentError("the statement is empty", expected="a SQL statement")

    def part(self, start: int, stop: int) -> Reader:
        """Returns a cursor over the tokens from `start` (inclusive) to `stop` (exclusive), with their
        positions in the whole text."""
        part = copy(self)
        part.tokens, part.position = self.tokens[start:stop], 0
        return part

    # --- look ahead ---

    def at(self, *words: str) -> bool:
        """True if the next tokens are these words (upper case)."""
        ahead = self.tokens[self.position : self.position + len(words)]
        return len(ahead) == len(words) and all(
            token.keyword == word for token, word in zip(ahead, words, strict=True)
        )

    @property
    def done(self) -> bool:
        return self.position >= len(self.tokens)

    def fail(self, expected: str) -> NoReturn:
        """Raises InvalidArgumentError at the current token."""
        if self.done:
            raise InvalidArgumentError("SQL does not parse", where="end of the statement", expected=expected)
        token = self.tokens[self.position]
        line = self.text.count("\n", 0, token.start) + 1
        column = token.start - self.text.rfind("\n", 0, token.start)
        raise InvalidArgumentError(
            "SQL does not parse", where=f"line {line}, column {column}", found=token.text, expected=expected
        )

    # --- advance ---

    def accept(self, *words: str) -> bool:
        if self.at(*words):
            self.position += len(words)
            return True
        return False

    def accept_equals(self) -> bool:
        """Advances past `=`, which Spark also writes as `==`; True if it did."""
        return self.accept("=") or self.accept("==")

    def accept_option(self, word: str) -> bool:
        """Advances past `word` if the name of a table may follow; True if it did. In `DESCRIBE history` and
        `DESCRIBE history.t`, the word is part of the name."""
        ahead = self.tokens[self.position + 1 : self.position + 2]
        return bool(ahead) and ahead[0].text != "." and self.accept(word)

    def expect(self, *words: str) -> None:
        if not self.accept(*words):
            self.fail(" ".join(words))

    def end(self) -> None:
        if not self.done:
            self.fail("the end of the statement")

    def _take(self, kind: str, expected: str) -> Token:
        if self.done or self.tokens[self.position].kind != kind:
            self.fail(expected)
        token = self.tokens[self.position]
        self.position += 1
        return token

    def name(self) -> str:
        """Parses a name, quoted or not."""
        if not self.done and self.tokens[self.position].kind == "quoted":
            return self._take("quoted", "a name").name
        return self._take("word", "a name").text

    def dotted(self) -> tuple[str, ...]:
        """a.b.c"""
        parts = [self.name()]
        while self.accept("."):
            parts.append(self.name())
        return tuple(parts)

    def string(self) -> str:
        return string_value(self._take("string", "a string in quotes").text)

    def integer(self) -> int:
        token = self._take("number", "a whole number")
        if not token.text.isdecimal():
            self.position -= 1
            self.fail("a whole number")
        return int(token.text)

    def number(self) -> float:
        text = self._take("number", "a number").text
        try:
            return float(text)
        except ValueError:
            self.position -= 1
            self.fail("a number")

    def listed(self, item: Callable[[], _T]) -> list[_T]:
        """item, item, ..."""
        items = [item()]
        while self.accept(","):
            items.append(item())
        return items

    def bracketed(self, item: Callable[[], _T]) -> list[_T]:
        """(item, item, ...)"""
        self.expect("(")
        items = self.listed(item)
        self.expect(")")
        return items

    def slice(self, *stops: str, expected: str = "an expression", of_type: bool = False) -> str:
        """Returns the text before the next of `stops` (each one word) outside brackets and CASE ... END, or
        to the end. An empty text is an error. `of_type`: True for the text of a type, in which `<` and `>`
        are brackets: `MAP<STRING, INT>`. In an expression they are brackets after `::MAP` and the like."""
        start = self.position
        depth = cases = 0
        type_depth = 0  # of `<`
        while not self.done:
            word = self.tokens[self.position].keyword
            closes = word in (")", "]")
            if depth == 0 and (closes or (cases == 0 and word in stops and not self._is_inner(start))):
                break
            depth += (word in ("(", "[")) - closes
            if set(word) <= {"<", ">"} and (of_type or type_depth or self._opens_type(start)):
                change = word.count("<") - word.count(">")  # `>>` may be one token
                depth += change
                type_depth += change
            if word == "CASE" and not self._is_column_case(start, self.position):
                cases += 1
            elif word == "END" and cases and not self._is_column(start, self.position):
                cases -= 1
            self.position += 1
        if start == self.position:
            self.fail(expected)
        return self.text[self.tokens[start].start : self.tokens[self.position - 1].end]

    def _is_inner(self, start: int) -> bool:
        """True if the next token is no keyword of a clause: a column, as in `s.when` and `1 + when`, or the
        FROM of IS [NOT] DISTINCT FROM."""
        is_word = self.tokens[self.position].kind == "word"
        return is_word and (
            self._is_column(start, self.position) or is_distinct_from(self.tokens, self.position)
        )

    def _is_column(self, start: int, position: int) -> bool:
        """True if the word at the position is a column, as a value is expected there: behind a dot, an
        operator, or a keyword such as THEN in `THEN end ELSE else END`."""
        if position == start:
            return self._ends_value(position)
        before, word = self.tokens[position - 1], self.tokens[position].keyword
        if before.keyword == "CASE" and not self._is_column_case(start, position - 1):
            return word != "WHEN"
        is_keyword = before.keyword in _BEFORE_A_VALUE and not self._is_column(start, position - 1)
        return is_keyword or before.text in _OPERATORS

    def _is_column_case(self, start: int, position: int) -> bool:
        """True if the word CASE at the position is a column: no value follows it."""
        follows_dot = position > start and self.tokens[position - 1].text == "."
        return follows_dot or self._ends_value(position)

    def _ends_value(self, position: int) -> bool:
        """True if the token behind the position cannot begin a value."""
        ahead = self.tokens[position + 1 : position + 2]
        return not ahead or ahead[0].keyword in _BEHIND_A_VALUE

    def _opens_type(self, start: int) -> bool:
        """True if the next token, a `<`, follows `::MAP`, `::ARRAY` or `::STRUCT`."""
        before = [token.keyword for token in self.tokens[max(self.position - 2, start) : self.position]]
        return len(before) == 2 and before[0] == "::" and before[1] in ("ARRAY", "MAP", "STRUCT")

    def rest(self, expected: str) -> str:
        """Returns the text to the end of the statement."""
        if self.done:
            self.fail(expected)
        start = self.tokens[self.position].start
        self.position = len(self.tokens)
        return self.text[start : self.tokens[-1].end]

    def inside(self, expected: str) -> str:
        """Returns the text between an opening bracket, which comes next, and the closing one."""
        self.expect("(")
        text = self.slice(expected=expected)
        self.expect(")")
        return text


def inserts(text: str) -> tuple[str, ...]:
    """Rewrites `FROM tables INSERT INTO name SELECT ...`, which may have several INSERTs, to a statement
    `INSERT INTO name FROM tables SELECT ...` for each of them. Any other statement is returned unchanged."""
    reader = Reader(text)
    if not reader.accept("FROM") or reader.done or reader.at("INSERT"):
        return (text,)
    reader.slice("INSERT", "SELECT")
    if not reader.at("INSERT"):
        return (text,)
    tables = text[reader.tokens[0].start : reader.tokens[reader.position - 1].end]
    statements = []
    while reader.at("INSERT"):
        head = reader.slice("SELECT")
        if reader.done:
            return (text,)
        statements.append(f"{head} {tables} {reader.slice('INSERT')}")
    return tuple(statements) if reader.done else (text,)


def without_qualifiers(
    text: str, qualifiers: tuple[tuple[str, ...], ...], columns: Iterable[str] = ()
) -> str:
    """Removes qualifiers from columns, as commands on one table have no alias: `t.id > 3` becomes `id > 3`.
    `columns`: the columns of the table. `t.w` stays as it is if the table has a column `t` and no column `w`:
    it is a field of the struct `t`. The rest of the text does not change."""
    return requalified(text, dict.fromkeys(qualifiers, ""), columns)


def requalified(text: str, names: Mapping[tuple[str, ...], str], columns: Iterable[str] = ()) -> str:
    """Replaces qualifiers of columns. `names`: replacement by qualifier. It includes the dot, or is empty:
    {("delta", "x"): "x."} makes `x.id` of delta.`x`.id. Any other replacement is that of a whole column:
    {("r", "w"): "s.w"}. `columns`: as of `without_qualifiers`. The rest of the text does not change."""
    if not names:
        return text
    found = _tokens(text)
    replacements = {
        tuple(part.lower() for part in qualifier): replacement for qualifier, replacement in names.items()
    }
    edits: list[tuple[int, int, str]] = []
    index = 0
    variables, own = _uses_of_variables(found), {column.lower() for column in columns}
    while index < len(found):
        length = 0 if index in variables else _qualifier_at(found, index, replacements)
        if length and not is_field(tuple(map(_plain, found[index : index + length + 1 : 2])), own):
            qualifier = tuple(_plain(token) for token in found[index : index + length : 2])
            edits.append((found[index].start, found[index + length - 1].end, replacements[qualifier]))
            index += length
        index += 1
    return edited(text, edits)


def is_field(parts: tuple[str, ...], columns: Collection[str]) -> bool:
    """True if a name in lower case, which begins with a qualifier of a table, is a field of a column of the
    table, because the table has no column of the last part's name."""
    return parts[0] in columns and parts[-1] not in columns


def is_distinct_from(tokens: Sequence[Token], index: int) -> bool:
    """True if the token at the index is the FROM of IS [NOT] DISTINCT FROM, which begins no clause."""
    words = [token.keyword for token in tokens[max(index - 2, 0) : index + 1]]
    return words in (["IS", "DISTINCT", "FROM"], ["NOT", "DISTINCT", "FROM"])


def _uses_of_variables(tokens: Sequence[Token]) -> set[int]:
    """Returns the indexes of the names within a lambda that are its variables. A variable hides a table: with
    the alias x, `exists(items, x -> x.price > 5)` names no column."""
    found: set[int] = set()
    for arrow, token in enumerate(tokens):
        if token.text != "->" or arrow == 0:
            continue
        first = arrow - 1
        if tokens[first].text == ")":
            while first > 0 and tokens[first].text != "(":
                first -= 1
        variables = {each.name.lower() for each in tokens[first:arrow] if each.kind in ("word", "quoted")}
        depth, index = 0, arrow + 1
        while index < len(tokens) and (depth or tokens[index].text not in (",", ")", "]")):
            depth += (tokens[index].text in ("(", "[")) - (tokens[index].text in (")", "]"))
            if tokens[index].kind in ("word", "quoted") and tokens[index].name.lower() in variables:
                found.add(index)
            index += 1
    return found


def _qualifier_at(tokens: Sequence[Token], index: int, replacements: Mapping[tuple[str, ...], str]) -> int:
    """Returns the number of tokens from `index` on that are one of the qualifiers and the dot after it, or
    one of the columns; 0 if there is none."""
    if index and tokens[index - 1].text == ".":
        return 0
    for qualifier in sorted(replacements, key=len, reverse=True):
        replacement = replacements[qualifier]
        is_column = replacement != "" and not replacement.endswith(".")
        length = 2 * len(qualifier) - is_column
        part = tokens[index : index + length]
        if len(part) == length and (
            is_column or (index + length < len(tokens) and tokens[index + length].kind in ("word", "quoted"))
        ):
            names = tuple(_plain(token) for token in part[::2])
            if names == qualifier and all(token.text == "." for token in part[1::2]):
                return length
    return 0


def _plain(token: Token) -> str | Any:
    return token.name.lower() if token.kind in ("quoted", "word") else None
