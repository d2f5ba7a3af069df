"""SQL as text: its tokens, and names and texts in quotes, as Spark and DuckDB read them.

Every module that reads words and quotes of a statement, a condition or DDL takes the tokens of this one, and
every module that writes a name or a text into SQL quotes it here. Expressions and queries as a whole are
parsed by sqlglot, with sqlglot's own tokens (`deltaic.spark_sql.parsing`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

Kind = Literal["comment", "string", "quoted", "number", "word", "symbol", "open", "end"]

# The most frequent kinds of tokens come first, for speed. A word may begin with digits (`2024_sales`), unless
# it is a number with its suffix (`5L`, `1e3`, `2BD`).
_TOKEN = re.compile(
    r"""\s*(?:
    (?P<word>(?!\d+(?:[eE][+-]?\d+)?(?:[LSYFDlsyfd]|[bB][dD])?\b|[rR]['"])\w+)
  | (?P<number>\d+(?:\.\d*)?(?:[eE][+-]?\d+)?\w*|\.\d+(?:[eE][+-]?\d+)?\w*)
  | (?P<comment>--(?:\\\n|[^\n])*|/\*.*?\*/)
  | (?P<string>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"|[rR]'[^']*'|[rR]"[^"]*")
  | (?P<symbol><=>|->|=>|<=|>=|<>|!=|==|\|\||::|[^\s'"`])
  | (?P<quoted>`(?:[^`]|``)*`)
  | (?P<open>\S)
    )""",
    re.VERBOSE | re.DOTALL,
)
_COMMENT_MARK = re.compile(r"/\*(?!\+)|\*/")  # `/*+` opens a hint, in which no comment stands
MAY_HOLD_QUERY = re.compile(r"\b(SELECT|VALUES|FROM|TABLE)\b", re.IGNORECASE)
"""Matches a word that every subquery contains. A text without such a word has no subquery."""
QUERY_STARTS = frozenset({"SELECT", "WITH", "VALUES", "FROM", "TABLE"})
"""Words behind a bracket that holds a query."""
MOST_DIGITS = 1000
"""Maximum number of characters of a number; a longer one is an InvalidArgumentError. Python converts at most
4,300 digits to an int."""
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "b": "\b", "Z": "\x1a", "%": "\\%", "_": "\\_"}
_ESCAPED = str.maketrans({"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\0": "\\u0000"})


class Token(NamedTuple):
    """A token of SQL text. `text`: the token as written. `start`, `end`: its position in the whole text. A
    token of the kind "quoted" is a name in backticks; a token of the kind "open" is a quote that is never
    closed, or a comment with comments in it."""

    kind: Kind
    text: str
    start: int
    end: int

    @property
    def keyword(self) -> str:
        """The word in upper case; empty for a quoted name or a string, which are no keywords."""
        return self.text.upper() if self.kind in ("word", "symbol", "number") else ""

    @property
    def name(self) -> str:
        """The name that a word is, or that stands in backticks."""
        return name_of(self.text) if self.kind == "quoted" else self.text


def tokens(text: str) -> list[Token]:
    """Returns the tokens of a text, with comments and without white space."""
    new = tuple.__new__  # in half the time of `Token(...)`
    text = text.rstrip()
    found = [
        new(Token, (kind := match.lastgroup, match[kind], *match.span(kind)))  # type: ignore
        for match in _TOKEN.finditer(text)
    ]
    for index, token in enumerate(found) if text.count("/*") > 1 else ():
        if token.kind == "comment" and _COMMENT_MARK.match(token.text) and "/*" in token.text[2:]:
            end = _end_of_comment(text, token.start)
            whole = Token(
                "comment" if end else "open",
                text[token.start : end or len(text)],
                token.start,
                end or len(text),
            )
            # The text after the first `*/` was read as code, so it is read again from the comment's real end.
            rest = tokens(" " * whole.end + text[whole.end :])
            return [*found[:index], whole, *rest]
    return found


def _end_of_comment(text: str, start: int) -> int | None:
    """Returns the end of the comment that begins at `start` and may hold comments: `/* a /* b */ c */`. None
    if it is never closed."""
    depth = 0
    for mark in _COMMENT_MARK.finditer(text, start):
        depth += 1 if mark[0] == "/*" else -1
        if depth == 0:
            return mark.end()
    return None


def opens_query(found: Sequence[Token], index: int) -> bool:
    """True if the token at the index is a bracket that holds a query. In `(values, id)` and `(from > 2)` the
    first word is a column."""
    start = [token.keyword for token in found[index : index + 2]]
    if start[:1] != ["("] or start[-1] not in QUERY_STARTS:
        return False
    after = found[index + 2] if index + 2 < len(found) else None
    is_operand = after is not None and (after.kind != "symbol" or after.text in "(+-?:")
    return start[-1] in ("SELECT", "WITH") or is_operand


def edited(text: str, edits: Iterable[tuple[int, int, str]]) -> str:
    """Returns the text with each part from `start` to `end` replaced. `edits`: (start, end, replacement),
    parts that do not overlap, in any order."""
    pieces: list[str] = []
    copied = 0
    for start, end, replacement in sorted(edits):
        pieces += [text[copied:start], replacement]
        copied = end
    return "".join(pieces) + text[copied:]


def name_of(quoted: str) -> str:
    """Returns the name in backticks: `` `my col` `` -> `my col`. A backtick inside is doubled."""
    return quoted[1:-1].replace("``", "`")


def with_backticks(text: str) -> str:
    """Returns a text with names in backticks instead of double quotes: `"a" > 1` -> `` `a` > 1 ``."""
    return edited(
        text,
        (
            (token.start, token.end, spark_name(token.text[1:-1].replace('""', '"')))
            for token in tokens(text)
            if token.kind == "string" and token.text[0] == '"'
        ),
    )


def string_value(token: str) -> str:
    """Returns the text of a string literal of Spark, with its escapes replaced; an r before the quote turns
    escapes off."""
    if token[0] in "rR":
        return token[2:-1]
    quote = token[0]
    return re.sub(rf"\\(u[0-9A-Fa-f]{{4}}|.)|{quote}({quote})", _unescaped, token[1:-1], flags=re.DOTALL)


def _unescaped(match: re.Match[str]) -> str:
    what: str = match[1] or match[2]
    return chr(int(what[1:], 16)) if len(what) == 5 else _ESCAPES.get(what, what)


def spark_name(name: str) -> str:
    """Returns a name in Spark's SQL: `my col` -> `` `my col` ``."""
    return "`" + name.replace("`", "``") + "`"


def quote_name(name: str) -> str:
    """Returns a name in Spark's SQL as people write it: in backticks unless it is a plain identifier."""
    return name if _PLAIN_NAME.fullmatch(name) else spark_name(name)


def spark_text(value: str) -> str:
    """Returns a text as a string literal of Spark, which has escapes: `it's` -> `'it\\'s'`. In an expression
    that both engines read, use `plan.literal.lit`."""
    return f"'{value.translate(_ESCAPED)}'"


def duckdb_name(name: str) -> str:
    """Returns a name in DuckDB's SQL: `my col` -> `"my col"`."""
    return '"' + name.replace('"', '""') + '"'


def duckdb_text(value: str) -> str:
    """Returns a text in DuckDB's SQL, whose literals have no escapes, and no character NUL: `it's` ->
    `'it''s'`. Without backslashes and control characters, Spark reads the same text."""
    if "\0" in value:
        return "(" + " || chr(0) || ".join(map(duckdb_text, value.split("\0"))) + ")"
    return "'" + value.replace("'", "''") + "'"
